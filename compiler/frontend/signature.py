"""Argument keys: the text that stands for the type of one argument, parsed.

f64[?,?]C      a C-contiguous float64 matrix        memref<?x?xf64>
f64[?,1]F      Fortran order, the last extent is 1  memref<?x1xf64, strided<[1, ?]>>
i32[?]S        any strides                          memref<?xi32, strided<[?]>>
py_int         a Python int                         index
rng            a numpy.random.Generator             index (where its state is)
(f64, None)    a tuple of them                      f64
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ...dialects.array import strided
from .data.generators import Generator
from .values import (
    DTYPES,
    INT64_MAX,
    INT64_MIN,
    IR_TYPE,
    PYTHON_SCALARS,
    Array,
    NoneValue,
    Scalar,
    Static,
    Tuple,
    Value,
)


@dataclass(frozen=True)
class ArrayKey:
    """An array: its dtype, its extents (None where dynamic, else 1) and its layout class."""

    dtype: str
    extents: tuple[int | None, ...]
    layout: str

    @property
    def type(self) -> MemRefType[Attribute]:
        shape = [DYNAMIC_INDEX if n is None else n for n in self.extents]
        element = IR_TYPE[self.dtype]
        if self.layout == "C":
            return MemRefType(element, shape)
        strides: list[int | None] = [None] * len(shape)
        if self.layout == "F" and strides:
            strides[0] = 1
        return strided(element, shape, strides)


@dataclass(frozen=True)
class ScalarKey:
    type: str


@dataclass(frozen=True)
class NoneKey:
    pass


@dataclass(frozen=True)
class TupleKey:
    items: tuple[Key, ...]


Key = ArrayKey | ScalarKey | NoneKey | TupleKey


def parse(text: str) -> Key:
    """The key that `text` spells; ValueError where it spells none."""
    text = text.strip()
    if text == "None":
        return NoneKey()
    if text.startswith("(") and text.endswith(")"):
        return TupleKey(tuple(parse(part) for part in split(text[1:-1])))
    if text in PYTHON_SCALARS or text in DTYPES or text == "rng":
        return ScalarKey(text)
    dtype, bracket, rest = text.partition("[")
    extents, closed, layout = rest.partition("]")
    if dtype not in DTYPES or not bracket or not closed or layout not in ("C", "F", "S"):
        raise ValueError(f"not an argument key: {text!r}")
    sizes = [part.strip() for part in extents.split(",")] if extents.strip() else []
    return ArrayKey(dtype, tuple(None if n == "?" else int(n) for n in sizes), layout)


def split(text: str) -> list[str]:
    """The parts between the commas that no bracket encloses."""
    parts, depth, start = list[str](), 0, 0
    for position, character in enumerate(text):
        depth += (character in "([") - (character in ")]")
        if character == "," and depth == 0:
            parts.append(text[start:position])
            start = position + 1
    if text[start:].strip():
        parts.append(text[start:])
    return parts


def ir_types(key: Key) -> list[Attribute]:
    """The types of the IR arguments that one parameter becomes."""
    match key:
        case ArrayKey():
            return [key.type]
        case ScalarKey(type_):
            return [IR_TYPE[type_]]
        case NoneKey():
            return []
        case TupleKey(items):
            return [t for item in items for t in ir_types(item)]


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
        case ScalarKey(type_):
            return Scalar(type_, next(arguments), None, INT64_MIN, INT64_MAX)
        case NoneKey():
            return NoneValue()
        case TupleKey(items):
            return Tuple(tuple(value_of(item, arguments) for item in items))


def hints(key: Key, name: str) -> Sequence[str]:
    """The name hints of a parameter's IR arguments."""
    if isinstance(key, TupleKey):
        return [h for k, item in enumerate(key.items) for h in hints(item, f"{name}_{k}")]
    return [] if isinstance(key, NoneKey) else [name]
