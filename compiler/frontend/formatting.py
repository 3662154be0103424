"""Texts with numbers in them: `"%g of %d" % (x, n)`, `"{:.3f}".format(x)`, f-strings.

What is known while compiling makes a string. Else the text is a format and its operands, which whoever
catches the exception, or reads what is printed, sees filled in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from string import Formatter
from typing import TYPE_CHECKING, Any

from ..scalar_types import UNSIGNED
from .scalars import is_float
from .values import Array, Scalar, Static, Tuple, Value

if TYPE_CHECKING:
    from .statements import Statements

PERCENT = re.compile(r"%(?:(%)|(\d*(?:\.\d+)?)([diufFeEgGsr]))")
WAY_OUT = "show the numbers as they are: {}"


@dataclass(frozen=True)
class Formatted:
    """A text that numbers of the run are part of."""

    form: str
    operands: tuple[Scalar, ...]


def made(form: str, operands: list[Scalar]) -> Value:
    """A text as a value."""
    return Static(Formatted(form, tuple(operands))) if operands else Static(form.format())


def field_of(value: Scalar | Array, spec: str = "") -> str:
    """The replacement field of a number, or an array: marked where what it shows has no sign."""
    type_ = value.type if isinstance(value, Scalar) else value.dtype
    spec = f"unsigned {spec}" if type_ in UNSIGNED else spec
    return f"{{:{spec}}}" if spec else "{}"


def escaped(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")


def percent(lowering: Statements, text: str, given: Value) -> Value:
    """`text % given`."""
    values = list(given.items) if isinstance(given, Tuple) else [given]
    form, operands, end = "", list[Scalar](), 0
    for found in PERCENT.finditer(text):
        form += escaped(text[end : found.start()])
        end = found.end()
        if found[1]:
            form += "%"
            continue
        if not values:
            raise lowering.refusal(None, "not enough arguments for format string")
        piece, shown = part(lowering, values.pop(0), found[2], found[3])
        form, operands = form + piece, operands + shown
    rest = text[end:]
    if "%" in rest or "%" in PERCENT.sub("", text) or values:
        raise lowering.refusal(None, f"this format is not compiled: {text!r}", WAY_OUT)
    return made(form + escaped(rest), operands)


def part(lowering: Statements, value: Value, size: str, kind: str) -> tuple[str, list[Scalar]]:
    """One conversion of `%`."""
    if kind in "sr":
        if size:
            raise lowering.refusal(None, "a width of `%s` is not compiled", WAY_OUT)
        return lowering.shown(value, quoted=kind == "r")
    if not isinstance(value, Scalar):
        raise lowering.refusal(None, f"`%{kind}` takes a number", "show it with %s")
    if kind in "diu" and (is_float(value.type) or "." in size):
        raise lowering.refusal(None, "`%d` of a float is not compiled", "convert it with int(...)")
    return field_of(value, f"{size}{'d' if kind in 'iu' else kind}"), [value]


def braces(lowering: Statements, text: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`text.format(*args, **kwargs)`."""
    form, operands, position = "", list[Scalar](), 0
    for literal, name, spec, conversion in Formatter().parse(text):
        form += escaped(literal)
        if name is None:
            continue
        if name == "":
            name, position = str(position), position + 1
        value = args[int(name)] if name.isdigit() and int(name) < len(args) else kwargs.get(name)
        if value is None or "{" in (spec or ""):
            raise lowering.refusal(None, f"this format is not compiled: {text!r}", WAY_OUT)
        piece, shown = field(lowering, value, spec or "", conversion)
        form, operands = form + piece, operands + shown
    return made(form, operands)


def field(
    lowering: Statements, value: Value, spec: str, conversion: str | None
) -> tuple[str, list[Scalar]]:
    """A replacement field of `format` or of an f-string."""
    if not spec:
        return lowering.shown(value, quoted=conversion == "r")
    known: Any = value.object if isinstance(value, Static) else None
    if not isinstance(known, str) and (not isinstance(value, Scalar) or conversion is not None):
        raise lowering.refusal(None, "this format is compiled for numbers only", WAY_OUT)
    has_point = isinstance(value, Scalar) and is_float(value.type)
    try:
        text = format(known if isinstance(known, str) else 1.0 if has_point else 1, spec)
    except ValueError as error:
        raise lowering.refusal(None, str(error), WAY_OUT) from None
    return (field_of(value, spec), [value]) if isinstance(value, Scalar) else (escaped(text), [])


def added(first: Value, second: Value) -> Value:
    """One text behind the other."""
    forms, operands = list[str](), list[Scalar]()
    for value in (first, second):
        known: Any = value.object if isinstance(value, Static) else None
        forms.append(known.form if isinstance(known, Formatted) else escaped(known))
        operands += known.operands if isinstance(known, Formatted) else ()
    return made("".join(forms), operands)


def is_text(value: Value) -> bool:
    return isinstance(value, Static) and isinstance(value.object, str | Formatted)
