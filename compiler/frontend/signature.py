"""What an argument of each key is in the IR, and as a value of the frontend.

f64[?,?]C      memref<?x?xf64>
f64[?,1]F      memref<?x1xf64, strided<[1, ?]>>
i32[?]S        memref<?xi32, strided<[?]>>
py_int         index
rng            index (where the generator's state is)
(f64, None)    f64
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ...dialects.array import strided
from ..argument_keys import ArrayKey, Key, ScalarKey, TupleKey, leaves
from .data.generators import Generator
from .values import INT64_MAX, INT64_MIN, IR_TYPE, Array, NoneValue, Scalar, Static, Tuple, Value


def ir_types(key: Key) -> list[Attribute]:
    """The types of the IR arguments that one parameter becomes."""
    return [
        array_type(leaf) if isinstance(leaf, ArrayKey) else ir_type(leaf.type)
        for leaf in leaves(key)
    ]


def array_type(key: ArrayKey) -> MemRefType[Attribute]:
    shape = [DYNAMIC_INDEX if n == "?" else int(n) for n in key.extents]
    element = ir_type(key.dtype)
    if key.layout == "C":
        return MemRefType(element, shape)
    strides: list[int | None] = [None] * len(shape)
    if key.layout == "F" and strides:
        strides[0] = 1
    return strided(element, shape, strides)


def ir_type(name: str) -> Attribute:
    if name not in IR_TYPE:
        raise ValueError(f"not an argument key: {name!r}")
    return IR_TYPE[name]


def value_of(key: Key, arguments: Iterator[SSAValue]) -> Value:
    """The parameter as a frontend value, taking its IR arguments from `arguments`."""
    match key:
        case ArrayKey():
            return Array(next(arguments), key.dtype)
        case ScalarKey("rng"):
            state = next(arguments)
            assert isinstance(state, BlockArgument)
            return Static(Generator(state.index, state))
        case ScalarKey("py_bool" as type_):
            return Scalar(type_, next(arguments), None, 0, 1)
        case ScalarKey("None"):
            return NoneValue()
        case ScalarKey(type_):
            return Scalar(type_, next(arguments), None, INT64_MIN, INT64_MAX)
        case TupleKey(items):
            return Tuple(tuple(value_of(item, arguments) for item in items))


def hints(key: Key, name: str) -> Sequence[str]:
    """The name hints of a parameter's IR arguments."""
    if isinstance(key, TupleKey):
        return [h for k, item in enumerate(key.items) for h in hints(item, f"{name}_{k}")]
    return [] if key == ScalarKey("None") else [name]
