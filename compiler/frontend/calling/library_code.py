"""Calls of library functions that are Python code (`library.written`): inlined as any function is."""

from __future__ import annotations

import ast
import inspect
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...diagnostics import CompileError
from .. import choices, library
from ..data.lists import ListObject
from ..library import plans, written, written_matrices
from ..library.written_matrices import refuse as refuse
from ..values import (
    BoundMethod,
    Choice,
    NoneValue,
    Scalar,
    SliceValue,
    Static,
    Tuple,
    Value,
)

if TYPE_CHECKING:
    from .calls import Calls


def code_of(callee: object, args: list[Value], kwargs: dict[str, Value]) -> FunctionType | None:
    """The Python code of a library function; None where it has none, or needs none."""
    if isinstance(callee, BoundMethod):
        return written.METHODS.get(callee.name)
    found = written.code_of(callee)
    if found is written_matrices.norm and len(args) + len(kwargs) == 1:
        return None
    return found or own_code(callee)


def own_code(callee: object) -> FunctionType | None:
    """The library's own Python code of a function that is none of the table's: tried as it is."""
    root = str(getattr(callee, "__module__", "")).partition(".")[0]
    if root not in ("numpy", "scipy") or isinstance(callee, type) or library.is_known(callee):
        return None
    code = inspect.unwrap(callee) if callable(callee) else None
    return code if isinstance(code, FunctionType) else None


def planned(
    lowering: Calls, plan: Any, args: list[Value], kwargs: dict[str, Value], node: ast.Call
) -> Value | None:
    """What a function that the library's code asks while compiling says; None for any other function."""
    if not isinstance(plan, FunctionType) or plan not in plans.PLANS:
        return None
    if args and isinstance(args[0], Choice):
        rest = args[1:]

        def of_one(one: Value) -> Value:
            return planned(lowering, plan, [one, *rest], kwargs, node) or NoneValue()

        return choices.each(lowering, args[0], of_one)
    shown = [ast.unparse(a) for a in node.args]
    given = [known(lowering, a, node, shown[min(k, len(shown) - 1)]) for k, a in enumerate(args)]
    named = {k: known(lowering, a, node, k) for k, a in kwargs.items()}
    try:
        return constant(lowering, plan(*given, **named))
    except (plans.Unplanned, TypeError) as error:
        raise lowering.refusal(node, *error.args) from None


def known(lowering: Calls, value: Value, node: ast.Call, name: str) -> Any:
    """The Python object that an argument is."""
    match value:
        case NoneValue():
            return None
        case Static(ListObject() as seq) if (items := lowering.written_items(seq)) is not None:
            return tuple(known(lowering, item, node, name) for item in items)
        case Static(found) if not isinstance(found, ListObject):
            return found
        case Scalar(constant=found) if found is not None:
            return found
        case Tuple(items):
            return tuple(known(lowering, item, node, name) for item in items)
        case _:
            reason = f"`{name}` must be known while compiling"
            raise lowering.refusal(node, reason, "write it as a constant")


def constant(lowering: Calls, found: Any) -> Value:
    if isinstance(found, tuple):
        return Tuple(tuple(constant(lowering, item) for item in found))
    if isinstance(found, slice):
        ends = [constant(lowering, end) for end in (found.start, found.stop, found.step)]
        return SliceValue(*(end if isinstance(end, Scalar) else None for end in ends))
    return lowering.constant(found, "a plan")


def is_namespace(callee: object) -> bool:
    """What SciPy asks for the module that an array is of."""
    return getattr(callee, "__name__", "") == "array_namespace" and str(
        getattr(callee, "__module__", "")
    ).startswith("scipy.")


def as_numpy(callee: Any) -> Any:
    """NumPy's function of the same name, for those by which SciPy calls it."""
    if ".array_api_compat" not in str(getattr(callee, "__module__", "")):
        return callee
    return getattr(np, str(getattr(callee, "__name__", "")), callee)


def refused(lowering: Calls, args: list[Value], node: ast.Call) -> CompileError:
    """The code asks for a refusal."""
    reason, way_out = (arg.object for arg in args if isinstance(arg, Static))
    return lowering.refusal(node, reason, way_out)
