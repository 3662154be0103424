"""`*t` and `**d` wherever they may stand: calls and displays.

f(*t, **d)     the items of tuples, and of lists and dicts as they are known while compiling
(a, *t)        a tuple, or list, of more items
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from .. import scalars
from ..data.classes import class_name
from ..data.list_access import Asked
from ..data.records import Method
from ..frames import LocalFunction
from ..values import Record, Scalar, Static, Struct, Tuple, Value


@dataclass(frozen=True)
class Parameters:
    """What the items of `*v` may become in a call, of a function that says so."""

    function: str
    names: Sequence[str]
    """Of all parameters that may be positional."""
    defaults: Sequence[Value]
    """Of the last of them."""
    beside: int
    """How many other positional arguments the call has."""
    keywords: Sequence[str | None]

    @property
    def required(self) -> int:
        return len(self.names) - len(self.defaults)

    @property
    def reach(self) -> int:
        """The first parameter that `*v` cannot fill: a keyword names it."""
        named = (k for k in range(self.beside, len(self.names)) if self.names[k] in self.keywords)
        return next(named, len(self.names))

    def wrong(self, given: int | None) -> str:
        """CPython's words for too many arguments; `{}` for how many, where that is not known."""
        most, least = len(self.names), self.required
        others = sum(k not in self.names for k in self.keywords)
        takes = f"from {least} to {most}" if least < most else str(most)
        takes += " positional argument" + "s" * (least < most or most != 1)
        was = "was" if given == 1 and not others else "were"
        more = f" (and {others} keyword-only argument{'s' * (others != 1)})" if others else ""
        kind = f" positional argument{'s' * (given != 1)}{more}" if others else ""
        shown = "{}" if given is None else given
        return f"{self.function}() takes {takes} but {shown}{kind} {was} given"


def parameters(
    lowering: Any, called: object, before: int, others: Sequence[object]
) -> Parameters | None:
    """What `*v` is handed to, behind `before` arguments and beside `others`; None where that is open."""
    plain = sum(not isinstance(o, ast.keyword) for o in others)
    if isinstance(called, Method):
        called, before, plain = called.function, before + 1, plain + 1
    if isinstance(called, LocalFunction):
        a, name, defaults = called.node.args, qualified(called), called.defaults
        names, is_open = [p.arg for p in (*a.posonlyargs, *a.args)], a.vararg is not None
    elif isinstance(called, FunctionType):
        code, name = called.__code__, called.__qualname__
        names, is_open = code.co_varnames[: code.co_argcount], bool(code.co_flags & 0x04)
        defaults = [lowering.default_value(d) for d in called.__defaults__ or ()]
    else:
        return None
    keywords = [o.arg for o in others if isinstance(o, ast.keyword)]
    found = Parameters(name, names, defaults, plain, keywords)
    unnamed = set(names[found.reach : found.required]) - {*keywords}
    shifts = before < plain and found.reach > found.required  # what follows `*v` has no fixed place
    starred = any(isinstance(o, ast.Starred) for o in others)
    return None if is_open or None in keywords or starred or unnamed or shifts else found


def qualified(function: LocalFunction) -> str:
    """The name of a nested function as CPython's messages have it."""
    own, node = function.frame.source, function.node
    around = [f for f in ast.walk(own.node) if isinstance(f, ast.FunctionDef | ast.Lambda)]
    inside = [f for f in around if f is node or any(n is node for n in ast.walk(f))] or [node]
    names = [getattr(f, "name", "<lambda>") for f in inside if f is not own.node]
    return ".<locals>.".join([own.qualname, *names])


def as_arguments(
    lowering: Any, length: Scalar, item: Callable[[int], Value], to: Parameters
) -> Sequence[Value]:
    """The items of a sequence as arguments, defaults where it has no more; TypeError for a wrong number."""
    e = lowering.e

    def refuse(op: str, count: int, text: str, *shown: SSAValue) -> None:
        scalars.raise_where(e, length, op, count - to.beside, ("TypeError", text), *shown)

    for name in to.keywords:
        if name in to.names[to.reach :]:
            text = f"{to.function}() got multiple values for argument '{name}'"
            refuse("Gt", to.names.index(name), text)
    if not to.names:
        refuse("Eq", 1, to.wrong(1))
    count = e.emit(arith.AddiOp(length.ssa, e.index(to.beside)))
    refuse("Gt", len(to.names), to.wrong(None), count)
    for k in range(to.beside, min(to.reach, to.required)):
        refuse("Eq", k, missing(to.function, to.names[k : min(to.reach, to.required)]))

    def argument(k: int) -> Value:
        if k < to.required:
            return item(k - to.beside)
        default = to.defaults[k - to.required]
        there = scalars.compare(e, "Gt", length, e.constant(k - to.beside, "py_int"))
        return lowering.chosen(there, (lambda: item(k - to.beside), lambda: default))

    return [argument(k) for k in range(to.beside, to.reach)]


def missing(function: str, names: Sequence[str]) -> str:
    """CPython's words for arguments that are missing."""
    shown = [f"'{n}'" for n in names]
    some = f"{', '.join(shown[:-1])}{',' * (len(names) > 2)} and {shown[-1]}"
    argument = "argument" if len(names) == 1 else "arguments"
    listed = shown[0] if len(names) == 1 else some
    return f"{function}() missing {len(names)} required positional {argument}: {listed}"


def items(
    lowering: Any, node: ast.expr, value: Value, to: Parameters | None = None
) -> Sequence[Value]:
    """The values that `*value` stands for; in a call of which `to` is known, of any sequence."""
    if isinstance(value, Record | Struct):
        return lowering.items_of_iterable(value, node)
    if isinstance(value, Tuple):
        return value.items
    seq = lowering.list_of(value)
    if seq is not None and (shown := lowering.written_items(seq)) is not None:
        return shown
    found = lowering.sequence(value)
    if found is not None and to is not None:
        return as_arguments(lowering, found[0], found[1], to)
    if found is not None and found[0].constant is not None:
        return lowering.exactly(found[0].constant, value)
    raise lowering.refusal(
        node, "`*` of a sequence of run-time length is not compiled here",
        "write the items out, pass the array itself, or join: np.concatenate(([a], x))",
    )  # fmt: skip


def keywords(lowering: Any, named: Iterable[tuple[ast.keyword, Value]]) -> dict[str, Value]:
    """The keyword arguments, dicts after `**` by their items."""
    found = dict[str, Value]()
    for keyword, value in named:
        whole = keyword.arg is None
        given = lowering.items_of(value, keyword.value) if whole else {keyword.arg: value}
        for key, item in given.items():
            if not isinstance(key, str):
                raise lowering.refusal(keyword.value, "keywords must be strings")
            if key in found:
                raise lowering.refusal(
                    keyword.value, f"got multiple values for keyword argument '{key}'"
                )
            found[key] = item
    return found


def whole(lowering: Any, function: Value, node: ast.Call) -> Value | None:
    """`zip(*m)`, and `min(*l)` and `max(*l)` of a number of items known at run time; None for other calls."""
    called = function.object if isinstance(function, Static) else None
    if called not in (zip, min, max) or len(node.args) != 1 or node.keywords:
        return None
    starred = node.args[0]
    if not isinstance(starred, ast.Starred):
        return None
    value = lowering.expression(starred.value)
    if called is zip:
        parts = [answered(item, starred) for item in items(lowering, starred, value)]
        place = lowering.e.span, (zip, id(node))
        made = lowering.facts.implied.setdefault(
            place, ast.copy_location(ast.Call(node.func, [], []), node)
        )
        made.args = parts
        return lowering.consumed(zip, made)
    seq = lowering.list_of(value)
    if seq is None or lowering.written_items(seq) is not None:
        return lowering.call(function, list(items(lowering, starred, value)), {}, node)
    count, name = lowering.builtin_len([value], node), "min" if called is min else "max"
    shown = class_name(Scalar(getattr(seq.item, "type", "py_float"), count.ssa))
    none = "TypeError", f"{name} expected at least 1 argument, got 0"
    scalars.raise_where(lowering.e, count, "Eq", 0, none)
    only = "TypeError", f"'{shown}' object is not iterable"
    scalars.raise_where(lowering.e, count, "Eq", 1, only)
    return lowering.consume_value(called, value, [], node)


def answered(value: Value, like: ast.expr) -> ast.expr:
    made = Asked()
    made.answer = lambda: value
    return ast.copy_location(made, like)
