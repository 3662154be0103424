"""What a class of the program says of its objects in builtins and statements.

abs(v), float(v), bool(v)      `__abs__`, `__float__`, `__bool__` or `__len__`
for c in v, c in v             `__iter__`, `__contains__`
v += w, v[i] += 1.0            `__iadd__`, `__getitem__` and `__setitem__`
"""

from __future__ import annotations

import ast
from typing import Any

import numpy as np

from .. import library, scalars
from ..calling import standard_deques, standard_iterators, standard_tables
from ..frames import Unready
from ..values import NUMPY_DTYPE, Array, Record, Scalar, Static, Struct, Value
from .classes import described, method_of
from .object_operators import OPERATOR_METHODS


def by_method(lowering: Any, value: Value, name: str, node: ast.AST) -> Value | None:
    """What a method without arguments gives; None where the value's class has none of this name."""
    method = method_of(value, name) if isinstance(value, Record | Struct) else None
    return None if method is None else lowering.invoked(method, [value], node)


def truth(lowering: Any, value: Record | Struct) -> Scalar:
    """`bool(value)`: by `__bool__`, else by `__len__`, else true."""
    node = lowering.frame.source.node
    if value.cls is dict:
        return lowering.e.constant(bool(lowering.keys_of(value)), "py_bool")
    said = by_method(lowering, value, "__bool__", node)
    if isinstance(said, Scalar) and said.type != "py_bool":
        kind = NUMPY_DTYPE.get(said.type)
        name = said.type[3:] if kind is None else f"numpy.{kind.type.__name__}"
        lowering.always("TypeError", f"__bool__ should return bool, returned {name}")
        raise Unready
    found = by_method(lowering, value, "__len__", node) if said is None else said
    if found is None:
        return lowering.e.constant(True, "py_bool")
    return scalars.truth(lowering.e, found)


def iterated(lowering: Any, value: Record | Struct, node: ast.AST) -> Value:
    """What a loop over an object runs over."""
    found = by_method(lowering, value, "__iter__", node)
    if found is None:
        raise lowering.refusal(node, f"a loop over {described(value)}", "loop over its fields")
    if isinstance(found, Record | Struct) and method_of(found, "__next__") is not None:
        return lowering.generator(standard_iterators.iterated, found)
    return found


def contains(lowering: Any, wanted: Value, container: Value) -> Scalar | None:
    """`wanted in container` by `__contains__`; None where there is none."""
    bounds = getattr(container.object, "bounds", None) if isinstance(container, Static) else None
    if bounds is not None and isinstance(wanted, Scalar):
        return in_range(lowering, wanted, bounds)
    is_ours = isinstance(container, Record | Struct)
    method = method_of(container, "__contains__") if is_ours else None
    if method is None:
        return None
    found = lowering.invoked(method, [container, wanted], lowering.frame.source.node)
    return scalars.truth(lowering.e, found)


def in_range(lowering: Any, wanted: Scalar, bounds: dict[str, Scalar]) -> Scalar | None:
    """`k in range(...)` of an int, upwards."""
    e, (start, stop, step) = lowering.e, bounds.values()
    if scalars.is_float(wanted.type) or step.low <= 0:
        return None
    k = scalars.convert(e, wanted, "py_int")
    inside = [scalars.compare(e, "GtE", k, start), scalars.compare(e, "Lt", k, stop)]
    if step.constant != 1:
        rest = scalars.integer(e, "Mod", scalars.integer(e, "Sub", k, start), step)
        inside.append(scalars.compare(e, "Eq", rest, e.constant(0, "py_int")))
    found = e.constant(True, "py_bool")
    for test in inside:
        found = lowering.conjunction("and", found, test)
    return found


def in_place(lowering: Any, op: str, before: Value, value: Value, node: ast.AST) -> Value | None:
    """What `before op= value` binds by `__iadd__` and the like; None where there is none."""
    name = f"__i{OPERATOR_METHODS[op]}__"
    method = method_of(before, name) if isinstance(before, Record | Struct) else None
    if method is None:
        return None
    return lowering.invoked(method, [before, value], node)


def augmented_item(
    lowering: Any, base: Record | Struct, target: ast.Subscript, op: str, node: ast.expr
) -> None:
    """`base[key] op= value` of an object with `__getitem__` and `__setitem__`."""
    get, set_ = method_of(base, "__getitem__"), method_of(base, "__setitem__")
    if get is None or set_ is None:
        raise lowering.refusal(target, f"an item of {described(base)} is changed in place")
    key = lowering.subscript_of(target.slice)
    before = lowering.invoked(get, [base, key], target)
    is_table = set_.__module__ in (standard_tables.__name__, standard_deques.__name__)
    if is_table and isinstance(before, Array) and not lowering.has_name(before):
        before, is_table = library.call(lowering.e, np.copy, [before], {}), False  # a row anew
    after = lowering.changed(op, before, lowering.expression(node), target)
    if after is not None or not is_table:
        lowering.invoked(set_, [base, key, before if after is None else after], target)
