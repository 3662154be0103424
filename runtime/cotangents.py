"""Cotangents as callers hand them over, and as compiled code takes them: one of each value, or several."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import keys, result_pool
from .keys import Array
from .lane_copies import turn

Spec = dict[str, Any]


def describe(spec: Spec) -> str:
    """What a function returns, in words."""
    match spec["kind"]:
        case "none":
            return "None"
        case "scalar":
            return f"a scalar of type {keys.SCALARS[spec['type']].__name__}"
        case "tuple":
            return f"a tuple of {len(spec['items'])}"
        case _:
            return "an array"


def leaves_of(spec: Spec) -> Iterator[Spec]:
    """The scalars and arrays among the results, in order."""
    if spec["kind"] == "tuple":
        for item in spec["items"]:
            yield from leaves_of(item)
    elif spec["kind"] in ("scalar", "array"):
        yield spec


def is_float(leaf: Spec) -> bool:
    return leaf.get("type", leaf.get("dtype")) in keys.FLOATS


def shape_of(result: Any) -> Any:
    """Of an array its extents, of a tuple a list of shapes, else None."""
    if isinstance(result, tuple):
        items: tuple[Any, ...] = result
        return [shape_of(item) for item in items]
    return result.shape if isinstance(result, np.ndarray) else None


@dataclass(frozen=True)
class Form:
    """How cotangents come: one of each value, or as many as `lanes` says, along an `axis`: first or last."""

    lanes: int | None = None
    axis: int = -1

    def shape(self, own: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of the cotangents of what has this one."""
        if self.lanes is None:
            return own
        return (self.lanes, *own) if self.axis == 0 else (*own, self.lanes)

    def beside(self, bar: Any) -> Array:
        """Cotangents side by side, as compiled code takes them."""
        given = keys.as_array(bar)
        if self.lanes is None or given.ndim == 0:
            return given
        return given[(0,) if self.axis == 0 else (..., 0)] if self.lanes == 1 else self.last(given)

    def last(self, given: Array) -> Array:
        return np.moveaxis(given, self.axis, -1)

    def number(self, bar: Any, type_: str) -> Any:
        """The cotangent of a number of this type: a number, or an array of as many as there are lanes."""
        if self.lanes is None:
            return 0.0 if bar is None else _float(bar)
        dtype = _DTYPE.get(type_, np.float64)
        given = np.zeros(self.lanes, dtype) if bar is None else np.array(bar, dtype, order="C")
        if given.shape != (self.lanes,):
            raise ValueError(
                f"the cotangents of a number have shape {given.shape}: use ({self.lanes},)"
            )
        return float(given[0]) if self.lanes == 1 else given

    def own(self, result: Any, number: bool) -> Any:
        """What compiled code returns as the caller has it."""
        if self.lanes is None:
            return result
        if number:
            return np.array(result if isinstance(result, tuple) else [result] * self.lanes)
        if self.lanes == 1:
            return np.expand_dims(result, self.axis)
        return np.moveaxis(result, -1, self.axis)


ONE = Form()


def shaped(bar: Any, shape: tuple[int, ...], what: str, form: Form = ONE) -> Array:
    """A cotangent as an array; ValueError where it has another shape than what it belongs to."""
    given = keys.as_array(bar)
    if given.shape == form.shape(shape):
        return form.beside(given)
    if form.lanes is None:
        raise ValueError(f"the cotangent of {what} has shape {given.shape}, not {shape}")
    raise ValueError(
        f"the cotangents of {what} have shape {given.shape}: with {form.lanes} of them use "
        f"{form.shape(shape)}"
    )


def cotangents_of(
    spec: Spec, out_bar: Any, shape: Any, form: Form = ONE
) -> tuple[list[Any], list[tuple[int, Any]]]:
    """The entry's cotangents, and those that belong to arguments which are returned themselves.

    Arrays come as fresh copies, so that no shadow can share their memory; None stands for zeros. Without
    `shape` only their ranks are looked at: compiled code compares the extents with those of the results.
    """
    leaves: list[Any] = []
    of_arguments: list[tuple[int, Any]] = []

    def visit(spec: Spec, bar: Any, shape: Any) -> None:
        match spec["kind"]:
            case "tuple":
                items = [None] * len(spec["items"]) if bar is None else bar
                if not isinstance(items, tuple | list) or len(items) != len(spec["items"]):  # pyright: ignore
                    raise TypeError(f"the result is {describe(spec)}, so its cotangent is one too")
                shapes = [None] * len(spec["items"]) if shape is None else shape
                for item, part, extent in zip(spec["items"], items, shapes, strict=True):  # pyright: ignore
                    visit(item, part, extent)
            case "argument":
                if bar is not None and spec["position"] is not None:
                    of_arguments.append((spec["position"], bar))
                elif bar is not None and shape is not None:
                    shaped(bar, shape, "the result", form)
            case "none":
                if bar is not None:
                    raise TypeError("the function returns None, which has no cotangent")
            case _ if not is_float(spec):
                if bar is not None:
                    raise TypeError(f"the result is {describe(spec)}, which has no cotangent")
            case "scalar":
                leaves.append(form.number(bar, spec["type"]))
            case _:
                leaves.append(None if bar is None else _array(spec, bar, shape, form))

    visit(spec, out_bar, shape)
    return leaves, of_arguments


def _array(spec: Spec, bar: Any, shape: tuple[int, ...] | None, form: Form) -> Array:
    bar = form.beside(bar) if shape is None else shaped(bar, shape, "the result", form)
    several = form.lanes is not None and form.lanes > 1
    dtype = _DTYPE[spec["dtype"]]
    given = beside(bar, dtype) if several else keys.as_array(bar).astype(dtype)
    if several and given.shape[-1:] != (form.lanes,):
        raise ValueError(
            f"the last axis of the cotangent is not {form.lanes}, one for each direction"
        )
    if given.ndim != spec["rank"] + several:
        raise ValueError(
            f"the cotangent of the result has shape {given.shape}; the result has {spec['rank']} dimensions"
        )
    return given


def beside(bars: Array, dtype: Any) -> Array:
    """A copy of several cotangents, side by side."""
    made = result_pool.empty(bars.shape, dtype)
    turn(made, bars)
    return made


_DTYPE = {"f64": np.float64, "f32": np.float32}


def _float(bar: Any) -> float:
    if isinstance(bar, bool | int | float | np.generic) or (
        isinstance(bar, np.ndarray) and bar.ndim == 0
    ):
        return float(bar)
    raise TypeError(f"the cotangent of a scalar result is a number, not {type(bar).__name__}")
