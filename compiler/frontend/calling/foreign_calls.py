"""Calls of functions that the compiler cannot see into: C function pointers, and Python that CPython runs.

::

    s += j0(x[i])      %r = foreign.call "c" "mutad_special_j0" of "cython_special:j0"(%x : f64) ...

Arguments are converted as ctypes and Cython convert them. What the function does to arrays its rule
says (`rule_calls`); without one it may read and write all that it is given.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects import arith
from xdsl.dialects.builtin import f32, i32, i64
from xdsl.ir import Attribute, SSAValue

from ....dialects import array, foreign
from ...diagnostics import CompileError
from .. import scalars
from ..library import read_only
from ..library.maps import copy, mapped
from ..values import IR_TYPE, Array, NoneValue, Scalar, Static, Tuple, Value

if TYPE_CHECKING:
    from .calls import Calls


class ArrayPointer(Protocol):
    """A C parameter that is an array; None where nothing is asked."""

    @property
    def dtype(self) -> str | None: ...
    @property
    def rank(self) -> int | None: ...
    @property
    def shape(self) -> Sequence[int] | None: ...
    @property
    def flags(self) -> Sequence[str]: ...


class ForeignFunction(Protocol):
    """How a function is called: what the runtime found out about it."""

    @property
    def name(self) -> str: ...
    @property
    def convention(self) -> str: ...
    @property
    def symbol(self) -> str: ...
    @property
    def origin(self) -> str: ...
    @property
    def arguments(self) -> Sequence[Any] | None: ...
    @property
    def result(self) -> str | None: ...
    @property
    def trailing(self) -> int: ...


OUTCOMES: dict[str, Attribute] = {
    **IR_TYPE,
    "c_float": f32,
    "c_int": i32,
    "c_uint": i32,
}
"""The IR types of what a call returns, before it is converted."""


def call(
    lowering: Calls,
    function: ForeignFunction,
    args: Sequence[Value],
    kwargs: Mapping[str, Value],
    effects: Sequence[str] | None,
    node: ast.AST,
) -> Value:
    """Lower the call. `effects`: what it does to each argument, None where that is unknown."""
    refuse_keywords(lowering, function, kwargs, node)
    if function.convention == "python" and lowering.catching.attempts:
        raise uncaught(lowering, function.name, node)
    if function.arguments is None:
        passed = [as_it_is(lowering, v, node) for v in args]
    else:
        if len(args) != len(function.arguments):
            raise lowering.refusal(
                node,
                f"{function.name}() takes {len(function.arguments)} arguments, not {len(args)}",
            )
        passed = [
            converted(lowering, v, kind, k, function.name, node)
            for k, (v, kind) in enumerate(zip(args, function.arguments, strict=True), 1)
        ]
    known = effects or ["readwrite"] * len(passed)
    stated = [
        read_only.effect_on(lowering.e, v, e, function.convention)
        if isinstance(v, Array)
        else "none"
        for v, e in zip(args, known, strict=True)
    ]
    outcome = function.result or ""
    op = lowering.e.insert(
        foreign.CallOp(
            function.convention,
            function.symbol,
            function.origin,
            [ssa for _, ssa in passed],
            [kind for kind, _ in passed],
            stated,
            outcome,
            [OUTCOMES[outcome]] if outcome else [],
            function.trailing,
        )
    )
    return returned(lowering, outcome, op.called[0]) if outcome else NoneValue()


def refuse_keywords(
    lowering: Calls, function: ForeignFunction, kwargs: Mapping[str, Value], node: ast.AST
) -> None:
    if kwargs:
        raise lowering.refusal(
            node, f"{function.name}() is called with keyword arguments", "pass them by position"
        )


def uncaught(lowering: Calls, name: str, node: ast.AST) -> CompileError:
    """What CPython raises within a call leaves compiled code at once, past its handlers."""
    return lowering.refusal(
        node,
        f"`{name}` is called in a `try`: no handler of compiled code can catch its exceptions",
        "let it catch its exceptions itself, and return what happened",
    )


def as_it_is(lowering: Calls, value: Value, node: ast.AST) -> tuple[str, SSAValue]:
    """What a Python function is given: numbers and arrays."""
    match value:
        case Scalar():
            return value.type, value.ssa
        case Array():
            return value.dtype, value.memref
        case _:
            raise lowering.refusal(
                node, "an opaque function is called with something that is neither a number nor an array",
                "pass numbers and arrays, one by one",
            )  # fmt: skip


def converted(
    lowering: Calls, value: Value, kind: Any, position: int, name: str, node: ast.AST
) -> tuple[str, SSAValue]:
    """A C function's argument, by name of its C type."""
    e = lowering.e
    if not isinstance(kind, str):
        if not isinstance(value, Array):
            raise lowering.refusal(node, f"argument {position} of {name}() must be an array")
        return "ptr", pointer(lowering, value, kind, position, name, node)
    wanted, exact = kind.rstrip("!?"), kind.endswith("!")
    if not isinstance(value, Scalar):
        raise lowering.refusal(node, f"argument {position} of {name}() must be a number")
    floating = scalars.is_float(value.type)
    if exact and value.type not in ("py_float", "f64"):
        raise lowering.refusal(
            node,
            f"argument {position} of {name}() must be a Python float or np.float64",
            "write float(...)",
        )
    if wanted in ("f64", "f32"):
        found = scalars.convert(e, value, "py_float")
        return wanted, found.ssa if wanted == "f64" else e.emit(arith.TruncFOp(found.ssa, f32))
    if wanted == "b1":
        return wanted, scalars.truth(e, value).ssa
    if floating:
        raise lowering.refusal(
            node, f"argument {position} of {name}() must be an integer", "write int(...)"
        )
    number = scalars.convert(e, value, "py_int").ssa
    if kind.endswith("?") and not -(2**31) <= value.low <= value.high < 2**31:
        for predicate, bound in (("slt", -(2**31)), ("sgt", 2**31 - 1)):
            beyond = e.emit(arith.CmpiOp(number, e.index(bound), predicate))
            e.insert(
                array.RaiseIfOp(beyond, "OverflowError", "integer {} does not fit 'int'", [number])
            )
    return wanted, e.emit(array.CastOp(number, i32)) if wanted.endswith("32") else number


def pointer(
    lowering: Calls, value: Array, kind: ArrayPointer, position: int, name: str, node: ast.AST
) -> SSAValue:
    """The array, which is what its parameter asks for: known now, or checked when the code runs."""
    e = lowering.e
    if kind.dtype not in (None, value.dtype):
        raise lowering.refusal(
            node, f"argument {position} of {name}() must have dtype {kind.dtype}"
        )
    if kind.rank not in (None, value.rank):
        raise lowering.refusal(
            node, f"argument {position} of {name}() must have {kind.rank} dimension(s)"
        )
    if kind.shape is not None:
        for extent, wanted in zip(e.extents(value.memref), kind.shape, strict=True):
            wrong = e.emit(arith.CmpiOp(extent, e.index(wanted), "ne"))
            text = f"argument {position}: TypeError: array must have shape {tuple(kind.shape)}"
            e.insert(array.RaiseIfOp(wrong, "ctypes.ArgumentError", text))
    if "WRITEABLE" in kind.flags:
        text = f"argument {position}: TypeError: array must have flags ['WRITEABLE']"
        read_only.require_writable(e, value.memref, text, "ctypes.ArgumentError")
    if "F_CONTIGUOUS" in kind.flags and value.rank > 1:
        raise lowering.refusal(
            node,
            "an array in Fortran order is asked for",
            "declare it C_CONTIGUOUS, or without flags",
        )
    compact = array.is_contiguous(value.type) or array.strides_of(value.type) in ((), (1,))
    if {"C_CONTIGUOUS", "F_CONTIGUOUS"} & set(kind.flags) and not compact:
        raise lowering.refusal(
            node,
            f"argument {position} of {name}() must be contiguous, and may not be",
            "pass a copy, or an array that is contiguous for certain",
        )
    return value.memref


def returned(lowering: Calls, outcome: str, ssa: SSAValue) -> Scalar:
    """What CPython makes of the result."""
    e = lowering.e
    match outcome:
        case "c_float":
            return Scalar("py_float", e.emit(arith.ExtFOp(ssa, IR_TYPE["py_float"])))  # pyright: ignore
        case "c_int":
            return Scalar(
                "py_int", e.emit(array.CastOp(ssa, IR_TYPE["py_int"])), None, -(2**31), 2**31 - 1
            )
        case "c_uint":
            wide = e.emit(arith.ExtUIOp(ssa, i64))
            return Scalar(
                "py_int", e.emit(array.CastOp(wide, IR_TYPE["py_int"])), None, 0, 2**32 - 1
            )
        case "py_bool":
            return Scalar("py_bool", ssa, None, 0, 1)
        case _:
            return Scalar(outcome, ssa)


def stopped(lowering: Calls, value: Value, node: ast.AST, stop: str) -> Value:
    """Numbers, and elements as they are used, through which no derivative flows ("stop_gradient") or none is
    known: then `stop` says of what."""
    e = lowering.e
    marked = foreign.StopGradientOp
    if stop != "stop_gradient":
        marked = partial(foreign.NoDerivativeOp, what=stop)
    match value:
        case Scalar() if scalars.is_float(value.type):
            return replace(value, ssa=e.emit(marked(value.ssa)))
        case Array() if scalars.is_float(value.dtype):
            loop = (value.dtype, value.dtype)
            extents = e.extents(value.memref)
            return mapped(e, [value], loop, extents, lambda e, xs: e.emit(marked(xs[0])))
        case Array():
            return copy(e, value)
        case Tuple():
            return Tuple(tuple(stopped(lowering, item, node, stop) for item in value.items))
        case Static():
            raise lowering.refusal(
                node, "stop_gradient of something that is neither a number nor an array"
            )
        case _:
            return value
