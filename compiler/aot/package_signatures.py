"""Signatures, annotations and defaults as a package writes them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

NUMPY = {
    "b1": "np.bool_", "f32": "np.float32", "f64": "np.float64",
    **{f"i{n}": f"np.int{n}" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"np.uint{n}" for n in (8, 16, 32, 64)},
}  # fmt: skip


NUMPY_OF = {np.dtype(name.removeprefix("np.")).type: name for name in NUMPY.values()}
OWN = {"grad": "wrt", "value_and_grad": "wrt", "vjp": "wrt", "jvp": "tangents", "hvp": "direction"}
"""The keyword that each derivative has beside the function's own."""


def keywords(mode: str) -> tuple[str, ...]:
    """The keywords of a derivative, in the order in which they are handed on."""
    return ("direction", "wrt") if mode == "hvp" else (OWN[mode],)


def beside(signature: inspect.Signature, mode: str) -> inspect.Signature:
    """A signature with the keywords of a derivative; a parameter of such a name is passed by position."""
    made, added = list(signature.parameters.values()), keywords(mode)
    if not {p.name for p in made}.isdisjoint(added):
        made = [
            p.replace(
                name=f"{p.name}_" if p.name in added else p.name,
                kind=p.POSITIONAL_ONLY if p.kind is p.POSITIONAL_OR_KEYWORD else p.kind,
            )
            for p in made
        ]
    for name in added:
        default = 0 if name == "wrt" else inspect.Parameter.empty
        made.append(inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default))
    return signature.replace(parameters=made, return_annotation=inspect.Signature.empty)


def shown(
    signature: inspect.Signature,
    annotation: Callable[[inspect.Parameter], str] | None = None,
    *,
    values: bool = True,
) -> str:
    """The parameters as Python has them in a `def`."""
    parts: list[str] = []
    kinds = [p.kind for p in signature.parameters.values()]
    for k, p in enumerate(signature.parameters.values()):
        if p.kind is p.KEYWORD_ONLY and p.KEYWORD_ONLY not in kinds[:k]:
            parts.append("*")
        text = annotation(p) if annotation is not None else annotated(p.annotation)
        default = "" if p.default is p.empty else (literal(p.default) if values else "...")
        equals = " = " if text else "="
        parts.append(
            f"{p.name}{f': {text}' if text else ''}{f'{equals}{default}' if default else ''}"
        )
        if p.kind is p.POSITIONAL_ONLY and p.POSITIONAL_ONLY not in kinds[k + 1 :]:
            parts.append("/")
    return ", ".join(parts)


def annotated(annotation: Any) -> str:
    """An annotation as text: what the package cannot name is a string."""
    if annotation is inspect.Parameter.empty:
        return ""
    if annotation is None or annotation in (float, int, bool, str):
        return getattr(annotation, "__name__", "None")
    if isinstance(annotation, type) and issubclass(annotation, np.generic):
        return f"np.{annotation.__name__}"
    if isinstance(annotation, str):
        return repr(annotation)
    return repr(annotation.__name__ if isinstance(annotation, type) else str(annotation))


def returned(signature: inspect.Signature) -> str:
    text = annotated(signature.return_annotation)
    return f" -> {text}" if text else ""


def literal(value: Any) -> str:
    """A default, or a text, as Python writes it."""
    match value:
        case str():
            return repr(value) if "\n" not in value else long_text(value)
        case float() if type(value) is float and not math.isfinite(value):
            return f'float("{value}")'
        case np.generic():
            return f"{NUMPY_OF[type(value)]}({literal(value.item())})"
        case np.ndarray():
            data, dtype = value.tobytes(order="C").hex(), value.dtype.str  # pyright: ignore
            order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
            return (
                f"np.frombuffer(bytes.fromhex({data!r}), {dtype!r})"
                f".reshape({value.shape!r}).copy(order={order!r})"
            )
        case _:
            return repr(value)


def long_text(value: str) -> str:
    """A text of several lines, between three quotes."""
    inside = value.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    return f'"""{inside}{" " if inside.endswith(chr(34)) else ""}"""'
