"""Where saved values lie, and which ops are simple enough to be computed again anywhere.

A saved value is an element of a segment that is indexed by the loops around it, as far out as
their counts are known: `rectangular`. The plan prices a `Segment`, the forward sweep pushes it, the reverse
sweep pops it, the receipt writes its size.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
    i1,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.traits import Pure

from ...dialects import ad, array
from ..analysis.carried_shapes import arrays_before
from ..analysis.equal_extents import all_equal, found_equal
from ..analysis.views import strip_casts, strip_views
from ..rules.builders import Emit, extents_of, index
from .bits import PER_BYTE, are_packed, places_for

Margins = tuple[tuple[int, int], ...]
"""For each loop, how many of its first and last iterations are left out."""


@dataclass(frozen=True)
class ArrayExtent:
    """The extent of an array that is asked for at run time."""

    base: SSAValue
    axis: int


@dataclass(frozen=True)
class Dimension:
    """One axis of a segment: as many places as `number` says, `less` what is left out, `per` to a place."""

    number: SSAValue | ArrayExtent
    less: int = 0
    per: int = 1
    is_count: bool = False
    """It counts iterations, and may be negative where none runs."""


@dataclass(frozen=True)
class Segment:
    """The memory of one save, for one execution of the op before which it is pushed.

    It is indexed by the counters of `loops` (outermost first), less `margins`, then by the value's own
    dimensions.
    """

    element: Attribute
    loops: tuple[array.LoopOp, ...]
    push_before: Operation
    margins: Margins
    own: tuple[SSAValue | ArrayExtent, ...] = ()
    is_scalar: bool = False
    """A number, not an array or what a map computes."""
    of_map: bool = False
    """What a map computes."""
    every: int = 1
    """Of the outermost of `loops`, only every so many-th iteration is saved."""
    by_columns: bool = False
    """The value is a matrix of which each column lies in one piece: its extents are the other way round."""
    turned: bool = False
    """The value is a matrix of an argument by columns, and lies as that does: the memory's last two axes are
    the other way round."""

    @property
    def in_bits(self) -> bool:
        """Whether the innermost of `loops` saves eight truths in a byte: scalars, one an iteration."""
        if not self.is_scalar or self.element != i1 or not self.loops:
            return False
        return array.OWN_BYTES not in self.loops[-1].attributes

    @property
    def in_packed_rows(self) -> bool:
        """Whether a map saves truths of a strip of points, eight of them in a byte."""
        return self.of_map and self.element == i1 and bool(self.own) and are_packed(self.own[-1])

    @property
    def dimensions(self) -> list[Dimension]:
        found = [
            Dimension(cast(SSAValue, loop.count), first + last, is_count=True)
            for loop, (first, last) in zip(self.loops, self.margins, strict=True)
        ]
        if self.every > 1:
            found[0] = Dimension(found[0].number, found[0].less, self.every, is_count=True)
        if self.in_bits:
            found[-1] = Dimension(found[-1].number, found[-1].less, PER_BYTE, is_count=True)
        found += [Dimension(number) for number in (self.own[::-1] if self.turned else self.own)]
        if self.in_packed_rows:
            found[-1] = Dimension(found[-1].number, per=PER_BYTE)
        return found

    def sizes(
        self,
        number: Callable[[SSAValue], SSAValue],
        extent: Callable[[SSAValue, int], SSAValue],
        emit: Emit,
    ) -> list[SSAValue]:
        """The code of its dimensions, where `number` and `extent` find what they are computed from."""
        return [self._size(d, number, extent, emit) for d in self.dimensions]

    def computed_of(self) -> Iterator[SSAValue]:
        """The numbers known where it is pushed of which pure code of inner blocks computes its sizes."""
        pending = [d.number for d in self.dimensions if isinstance(d.number, SSAValue)]
        seen = set[SSAValue]()
        while pending:
            number = pending.pop()
            if number in seen:
                continue
            seen.add(number)
            if encloses(value_block(number), self.push_before):
                yield number
            else:
                assert isinstance(number.owner, Operation)
                pending.extend(number.owner.operands)

    def own_sizes(
        self, number: Callable[[SSAValue], SSAValue], extent: Callable[[SSAValue, int], SSAValue]
    ) -> list[SSAValue]:
        """The extents of one saved value."""
        return [
            extent(n.base, n.axis) if isinstance(n, ArrayExtent) else number(n) for n in self.own
        ]

    def _size(
        self,
        dimension: Dimension,
        number: Callable[[SSAValue], SSAValue],
        extent: Callable[[SSAValue, int], SSAValue],
        emit: Emit,
    ) -> SSAValue:
        of = dimension.number
        if isinstance(of, ArrayExtent):
            return extent(of.base, of.axis)
        size = number(of)
        if dimension.less:
            size = emit(arith.SubiOp(size, index(dimension.less, emit)))
        if dimension.is_count:
            size = emit(arith.MaxSIOp(size, index(0, emit)))
        return places_for(size, dimension.per, emit) if dimension.per > 1 else size


def lies_by_columns(memref: SSAValue) -> bool:
    """Whether it is a matrix by columns, of an argument that is one."""
    return all(
        array.is_by_columns(type_) and type_.get_num_dims() == 2
        for type_ in (memref.type, strip_views(memref).type)
        if isinstance(type_, MemRefType)
    )


def as_it_lies(segment: SSAValue, emit: Emit) -> SSAValue:
    """A turned segment, with its axes in the order of the matrices in it."""
    assert isinstance(segment.type, MemRefType)
    rank = segment.type.get_num_dims()
    order = [*range(rank - 2), rank - 1, rank - 2]
    extents = extents_of(segment, emit)
    zeros, ones = ([index(n, emit)] * rank for n in (0, 1))
    return emit(array.ViewOp(segment, zeros, order, [extents[k] for k in order], ones))


def extents_of_base(base: SSAValue) -> tuple[SSAValue | ArrayExtent, ...]:
    """The extents of an array that is copied whole."""
    owner = base.owner
    if isinstance(owner, array.AllocOp | ad.SegmentOp):
        return tuple(owner.extents)
    assert isinstance(base.type, MemRefType)
    if among := arrays_before(base):
        shapes = [extents_of_base(strip_casts(one)) for one in among]
        checked = [(as_asked(one), as_asked(other)) for one, other in found_equal(base)]
        if all(all_equal(list(map(as_asked, axis)), checked) for axis in zip(*shapes, strict=True)):
            return shapes[0]
    return tuple(ArrayExtent(base, axis) for axis in range(base.type.get_num_dims()))


def extents_of_part(memref: SSAValue) -> tuple[SSAValue | ArrayExtent, ...]:
    """The extents of what an op reads of an array."""
    part = strip_casts(memref)
    return (
        tuple(part.owner.extents)
        if isinstance(part.owner, array.AnyView)
        else extents_of_base(part)
    )


def as_asked(number: SSAValue | ArrayExtent) -> SSAValue | ArrayExtent:
    """An extent in one form: that of an array, where it is one."""
    owner = number.owner if isinstance(number, SSAValue) else None
    axis = array.constant_value(owner.index) if isinstance(owner, memref.DimOp) else None
    if not isinstance(owner, memref.DimOp) or axis is None:
        return number
    return ArrayExtent(strip_casts(owner.source), axis)


def rectangular(
    at: Operation, own: Collection[SSAValue | ArrayExtent], skipped: Collection[array.LoopOp] = ()
) -> tuple[tuple[array.LoopOp, ...], Operation]:
    """The enclosing loops that can index one segment, and the op before which it is pushed.

    Outwards from `at` as long as each loop has a count and all counts and extents are known before it.
    Of the loops `skipped`, in which the value does not change, no count is asked for.
    """
    loops: list[array.LoopOp] = []
    push_before = at
    numbers = [n for n in own if isinstance(n, SSAValue)]
    fixed = all(isinstance(n, SSAValue) or is_made_on_entry(n.base) for n in own)
    op: Operation | None = at.parent_op()
    while op is not None and not isinstance(op, func.FuncOp):
        if not isinstance(op, array.LoopOp):
            break
        count = op.count
        if op not in skipped:
            if not fixed or count is None or op.condition_block is not None:
                break
            numbers.append(count)
            loops.insert(0, op)
        if not all(known_before(n, op) for n in numbers):
            if op not in skipped:
                del loops[0]
            break
        push_before = op
        op = op.parent_op()
    return tuple(loops), push_before


def is_made_on_entry(base: SSAValue) -> bool:
    """True for an argument of the function and for a cell: their extents may be asked for anywhere."""
    owner = base.owner
    if isinstance(owner, Block):
        return isinstance(owner.parent_op(), func.FuncOp)
    return isinstance(owner, memref.AllocaOp)


def known_before(value: SSAValue, loop: Operation) -> bool:
    """True when `value` is defined outside `loop`, or is pure code on such values."""
    pending, seen = [value], set[SSAValue]()
    while pending:
        v = pending.pop()
        if v in seen or not loop.is_ancestor(cast(Operation, value_block(v).parent_op())):
            continue
        seen.add(v)
        op = v.owner
        if not isinstance(op, Operation) or not is_recomputable(op):
            return False
        pending.extend(op.operands)
    return True


def enclosing_loops(block: Block) -> Iterator[array.LoopOp]:
    op = block.parent_op()
    while op is not None:
        if isinstance(op, array.LoopOp):
            yield op
        op = op.parent_op()


def is_inside(value: SSAValue, loop: Operation) -> bool:
    parent = value_block(value).parent_op()
    return parent is not None and loop.is_ancestor(parent)


def value_block(value: SSAValue) -> Block:
    owner = value.owner
    if isinstance(owner, Block):
        return owner
    block = owner.parent_block()
    assert block is not None
    return block


def encloses(block: Block, op: Operation) -> bool:
    """True when `op` stands in `block` or within one of its ops."""
    inner: Block | None = op.parent
    while inner is not None and inner is not block:
        parent = inner.parent_op()
        inner = None if parent is None else parent.parent
    return inner is block


def comes_before(a: Operation, b: Operation) -> bool:
    """True when `a` stands before `b` in the block they share."""
    op: Operation | None = a
    while op is not None:
        if op is b:
            return True
        op = op.next_op
    return False


def is_recomputable(op: Operation) -> bool:
    """Pure scalar code (and views): the same operands give the same result, at little cost.

    A subscript check or an overflow check has passed once and passes again.
    """
    if isinstance(op, array.IndexOp | array.CheckedIntOp):
        return True
    if isinstance(op, memref.LoadOp | memref.DimOp | memref.AllocaOp) or op.regions:
        return False
    if isinstance(op, memref.CastOp | array.AnyView) or op.has_trait(Pure):
        return True
    return op.name.startswith(("arith.", "math.")) and not isinstance(op, scf.IfOp)


def bytes_of(type_: Attribute) -> int:
    """The size of one element in memory."""
    match type_:
        case Float64Type() | IndexType():
            return 8
        case Float32Type():
            return 4
        case IntegerType():
            return max(1, type_.width.data // 8)
        case VectorType():
            return type_.get_shape()[0] * bytes_of(type_.element_type)
        case _:
            raise AssertionError(f"no size for {type_}")
