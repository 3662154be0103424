"""Where arrays of several shapes are that are items of a list: one behind the other.

    levels = []
    while n > 1:                          a pool of numbers: array k has `extents[k]` and
        levels.append(np.zeros(n))        begins at `begins[k]`, where array k - 1 ends
        n //= 2

A list becomes one of such arrays in the build after the one that appended an array which may not have
the shape of the others (`Facts.uneven`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, MemRefType, i64
from xdsl.ir import SSAValue

from ....dialects import array
from ..emitter import Emitter


@dataclass(frozen=True)
class Pool:
    """The arrays of a list that have shapes of their own: one behind the other, and their extents."""

    memory: SSAValue
    extents: tuple[SSAValue, ...]


def view(e: Emitter, pool: Pool, offset: SSAValue, extents: Sequence[SSAValue]) -> SSAValue:
    """The view of an array that begins somewhere in a pool, of these extents."""
    steps, step = list[SSAValue](), e.index(1)
    for n in reversed(extents):
        steps.insert(0, step)
        step = e.emit(arith.MuliOp(step, n)) if len(steps) < len(extents) else step
    op = array.ViewOp(pool.memory, [offset], [0] * len(extents), extents, steps)
    found = e.emit(op, pool.memory.name_hint)
    assert isinstance(op.result.type, MemRefType)
    compact = MemRefType(op.result.type.element_type, op.result.type.get_shape())
    made = e.emit(memref.CastOp.get(found, compact), pool.memory.name_hint)
    e.dims |= {(made, d): n for d, n in enumerate(extents)}
    return made


def place(
    e: Emitter, pool: Pool, begins: SSAValue, at: SSAValue, extents: Sequence[SSAValue]
) -> tuple[SSAValue, list[memref.StoreOp]]:
    """Where an array goes that becomes the item at a place, behind the one before; MemoryError where there is
    no room."""
    zero = e.index(0)
    before = e.emit(arith.MaxSIOp(e.emit(arith.SubiOp(at, e.index(1))), zero))
    numbers = [
        e.emit(arith.IndexCastOp(e.emit(memref.LoadOp.get(b, [before])), IndexType()))
        for b in (begins, *pool.extents)
    ]
    end = e.emit(arith.AddiOp(numbers[0], size_of(e, numbers[1:])))
    first = e.emit(arith.CmpiOp(at, zero, "eq"))
    offset = e.emit(arith.SelectOp(first, zero, end))
    full = e.emit(arith.AddiOp(offset, size_of(e, extents)))
    check = e.emit(arith.CmpiOp(full, e.index(array.UNBOUNDED), "ugt"))
    e.insert(array.RaiseIfOp(check, "MemoryError", ""))
    stores = [
        e.insert(memref.StoreOp.get(e.emit(arith.IndexCastOp(n, i64)), b, [at]))
        for b, n in zip((begins, *pool.extents), (offset, *extents), strict=True)
    ]
    return view(e, pool, offset, extents), stores


def size_of(e: Emitter, extents: Sequence[SSAValue]) -> SSAValue:
    size = e.index(1)
    for n in extents:
        size = e.emit(arith.MuliOp(size, n))
    return size
