"""Memory of the interpreter: roots, memrefs into them, tapes of them.

A memref is a place in the cells of a root, with a shape and strides that count elements, as in compiled code:
views may be reversed, stand still or overlap. Each access is checked against the root. Fresh memory holds
*poison*, of which nothing is known: a NaN that no arithmetic makes, or an unlikely integer.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute

from ...dialects.array import is_contiguous

Array = np.ndarray[Any, np.dtype[Any]]

POISON_BITS = 0x7FF8_BADC_0FFE_E000
POISON = {
    "f": np.array([POISON_BITS], np.uint64).view(np.float64)[0],
    "i": -0x5A5A5A5A,
    "b": True,
}
"""What memory holds that was never stored to, by the kind of its dtype."""

RESERVED_FROM = 1 << 28
"""Memory of so many elements is reserved: it becomes real where it is touched."""


MAP_NORESERVE = 0x4000
"""As Linux has it; Python knows the name from 3.13 on."""


class Undefined(Exception):
    """The program does what has no meaning; the message says what, and of which op."""


def dtype_of(type_: Attribute) -> np.dtype[Any]:
    """The dtype of a number; of a vector that of its lanes. Integers have a sign."""
    match type_:
        case VectorType():
            return dtype_of(type_.element_type)
        case Float64Type():
            return np.dtype(np.float64)
        case Float32Type():
            return np.dtype(np.float32)
        case IndexType():
            return np.dtype(np.int64)
        case IntegerType():
            bits = type_.width.data
            return np.dtype(np.bool_ if bits == 1 else f"i{max(8, bits) // 8}")
        case _:
            raise TypeError(f"no number has the type {type_}")


def lanes_of(type_: Attribute) -> tuple[int, ...]:
    """The shape of one element: () of a number, of a vector how many it is."""
    return tuple(type_.get_shape()) if isinstance(type_, VectorType) else ()


def poison_of(dtype: np.dtype[Any]) -> Any:
    """What memory of this dtype holds before anything is stored to it."""
    if dtype.kind == "i":
        return dtype.type(POISON["i"] % (1 << (dtype.itemsize * 8 - 1)))
    return dtype.type(POISON[dtype.kind])


def is_poison(values: Array) -> Array:
    """Where an array holds what was never stored."""
    if values.dtype.kind == "f":
        bits = f"u{values.dtype.itemsize}"
        return values.view(bits) == np.asarray(poison_of(values.dtype)).view(bits)
    return values == poison_of(values.dtype) if values.dtype.kind == "i" else np.zeros_like(values)


@dataclass(eq=False)
class Root:
    """Memory that memrefs address: one cell an element, an axis of lanes behind."""

    cells: Array
    keeper: object = None
    """What the cells lie in, if that is no array of ours."""


@dataclass(frozen=True, eq=False)
class Memref:
    """Elements of a root: where element (0, ..., 0) is, the shape, the strides in elements."""

    root: Root
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def places(self) -> Any:
        """The place of each element in the root's cells."""
        places = np.full(self.shape, self.offset, np.int64)
        for axis, (extent, stride) in enumerate(zip(self.shape, self.strides, strict=True)):
            along = [1] * len(self.shape)
            along[axis] = extent
            places += (np.arange(extent, dtype=np.int64) * stride).reshape(along)
        if places.size and not 0 <= places.min() <= places.max() < len(self.root.cells):
            raise Undefined(f"it reaches outside of the {len(self.root.cells)} elements there are")
        return places

    def place(self, indices: Sequence[int]) -> int:
        """The place of one element."""
        if len(indices) != len(self.shape):
            raise Undefined(f"{len(indices)} subscripts of {len(self.shape)} dimensions")
        at = self.offset + sum(int(i) * s for i, s in zip(indices, self.strides, strict=True))
        if not 0 <= at < len(self.root.cells):
            raise Undefined(f"it reaches outside of the {len(self.root.cells)} elements there are")
        return at

    def read(self) -> Any:
        """All elements, copied."""
        return self.root.cells[self.places()]

    def array(self) -> Array:
        """All elements, as a NumPy array over the same memory."""
        self.places()
        cells, lanes = self.root.cells, self.root.cells.shape[1:]
        size = cells.dtype.itemsize
        step = size * prod(lanes)
        strides = (*(s * step for s in self.strides), *(size for _ in lanes))
        shape = (*self.shape, *lanes)
        if 0 in shape:
            return np.empty(shape, cells.dtype)
        return np.ndarray(shape, cells.dtype, cells, self.offset * step, strides)


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def fresh(type_: MemRefType[Attribute], shape: Sequence[int], *, zero: bool = False) -> Memref:
    """New memory, C-contiguous, of this shape."""
    if any(n < 0 for n in shape):
        raise Undefined(f"no memory has the shape {tuple(shape)}")
    element, size = type_.element_type, prod(shape)
    dtype, lanes = dtype_of(element), lanes_of(element)
    keeper = None
    if size >= RESERVED_FROM:
        count = prod(lanes) * dtype.itemsize * size
        flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
        keeper = mmap.mmap(-1, count, flags=flags)
        cells = np.frombuffer(keeper, dtype, size * prod(lanes)).reshape(size, *lanes)
    else:
        cells = np.full((size, *lanes), 0 if zero else poison_of(dtype), dtype)
    return Memref(Root(cells, keeper), 0, tuple(shape), contiguous_strides(shape))


def bounds(a: Array) -> tuple[int, int]:
    """The address of the first byte, and that behind the last."""
    low = high = a.__array_interface__["data"][0]
    for extent, stride in zip(a.shape, a.strides, strict=True):
        low, high = low + min((extent - 1) * stride, 0), high + max((extent - 1) * stride, 0)
    return low, high + a.itemsize


def over(arrays: Sequence[Array | None], types: Sequence[Attribute]) -> list[Memref | None]:
    """Memrefs over the memory of arrays; those that share memory have one root."""
    roots: list[tuple[int, int, np.dtype[Any], tuple[int, ...], list[int]]] = []
    for k, a in enumerate(arrays):
        if a is None or not a.size:
            continue
        (low, high), members = bounds(a), [k]
        element = cast(MemRefType[Attribute], types[k]).element_type
        dtype, lanes = dtype_of(element), lanes_of(element)
        for other in [r for r in roots if r[0] < high and low < r[1] and r[2:4] == (dtype, lanes)]:
            roots.remove(other)
            low, high, members = min(low, other[0]), max(high, other[1]), [*members, *other[4]]
        roots.append((low, high, dtype, lanes, members))
    found: list[Memref | None] = [None] * len(arrays)
    for low, high, dtype, lanes, members in roots:
        memory: Any = (ctypes.c_char * (high - low)).from_address(low)
        cells = np.frombuffer(memory, dtype).reshape(-1, *lanes)
        root = Root(cells, [arrays[k] for k in members])
        for k in members:
            found[k] = placed(cast(Array, arrays[k]), root, low, len(lanes))
    for k, a in enumerate(arrays):
        if a is not None and not a.size:
            shape = a.shape[: len(cast(MemRefType[Attribute], types[k]).get_shape())]
            found[k] = fresh(cast(MemRefType[Attribute], types[k]), shape)
    return found


def placed(a: Array, root: Root, low: int, inner: int) -> Memref:
    """The memref of an array whose root begins at the address `low`."""
    rank, step = a.ndim - inner, a.itemsize * prod(root.cells.shape[1:])
    offset = (a.__array_interface__["data"][0] - low) // step
    return Memref(root, offset, a.shape[:rank], tuple(s // step for s in a.strides[:rank]))


def has_layout(m: Memref, type_: MemRefType[Attribute]) -> bool:
    """Whether a memref is laid out as its type promises: what compiled code counts on."""
    for extent, known in zip(m.shape, type_.get_shape(), strict=True):
        if known >= 0 and extent != known:
            return False
    if not is_contiguous(type_) or 0 in m.shape:
        return True
    pairs = zip(m.shape, m.strides, contiguous_strides(m.shape), strict=True)
    return all(extent == 1 or stride == step for extent, stride, step in pairs)


@dataclass(eq=False)
class Tape:
    """A stack of segments."""

    segments: list[Memref] = field(default_factory=list[Memref])
    reserved: int | None = None
    """How many bytes it holds at most."""

    def push(self, segment: Memref) -> None:
        self.segments.append(segment)
        held = sum(-8 * (-s.root.cells.nbytes // 8) for s in self.segments)
        if self.reserved is not None and held > self.reserved:
            raise Undefined(f"the tape holds {held} bytes, and has reserved {self.reserved}")
