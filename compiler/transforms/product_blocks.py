"""A loop over blocks of iterations, a product of matrices for each block. Part of `collect_products`.

::

    for i in range(n):                          for first in range(0, n, 32):
        ...                                         for i in range(first, min(first + 32, n)):
        c += outer(g, x[i])                             ...
                                                        kept[i - first] = g
                                                    c += kept[:length].T @ x[first : first + length]

Products of one iteration that add to one matrix are one of the block (`merged_products`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, extreme
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..analysis.slabs import Span, at
from ..diagnostics import locate
from .counters import count_from
from .hoist_checks import Before
from .interchange import body_like
from .merged_products import Member, groups_of
from .product_places import Place, Places
from .product_stacks import OPERANDS, Common, Stack, erase, lies_in_array, local_view, product

BLOCK = 32
"""Iterations of a block: enough for a product to be fast, few enough that little is left at a diagonal."""

KEPT = 1 << 18
"""As many elements of a block's vectors stay in the second-level cache."""


class Blocks:
    """Turns a loop into one over blocks of its iterations."""

    def __init__(self, function: func.FuncOp, loop: array.LoopOp, stacks: Sequence[Stack]) -> None:
        self.function = function
        self.loop = loop
        self.stacks = stacks

    def build(self, merged: bool = True) -> bool:
        """False where nothing can be collected; the loop is split all the same.

        `merged`: products of one iteration that add to one matrix are one.
        """
        groups = groups_of(self.loop, self.stacks) if merged else []
        parts = self.split()
        commons = {stack: common for stack, common, _ in parts}
        groups = [one for one in groups if self.may_wait(one, commons)]
        together = {member.stack for one in groups for member in one}
        places: list[Place | None] = []
        for stack, common, _ in parts:
            if stack in together:
                places.append(Place(False))
                continue
            dependence = Dependence(self.function, AliasAnalysis(self.function))
            packable = tuple(n for n in "ab" if n != stack.fixed)
            in_array = tuple(n for n in OPERANDS if lies_in_array(stack, n))
            late = stack.op.accumulate is not None or stack.ragged != "k"
            places.append(
                Places(self.loop, common, dependence, in_array).place(
                    packable=packable, buffered=stack.dim != "k" and not stack.ragged, late=late
                )
            )
        if all(place is None for place in places):
            return False
        for members in groups:
            self.merge(members, commons)
        for (stack, common, rest), place in zip(parts, places, strict=True):
            if stack in together:
                stack.op.erase()
            elif place is None:
                self.rejoin(stack, common, rest)
            else:
                self.move(stack, common, place)
                stack.op.erase()
        return True

    def split(self) -> list[tuple[Stack, array.MatmulOp, array.MatmulOp | None]]:
        """The loop over blocks, and each product in the part that iterations have in common and the rest."""
        loop = self.loop
        assert loop.count is not None
        outside = self.outside = Before(loop)
        zero = outside.constant(0)
        trips = self.trips = outside.emit(arith.MaxSIOp(loop.count, zero))
        self.longest: dict[tuple[Stack, str], SSAValue] = {}
        step = self.step = self.step_of(outside, trips)
        up = outside.plus(trips, outside.minus_one(step))
        blocks = outside.emit(arith.FloorDivSIOp(up, step))
        loop.trips.replace_all_uses_with(trips)
        body, writer = body_like(loop)
        first = self.first = writer.emit(arith.MuliOp(body.args[0], step))
        left = writer.emit(arith.SubiOp(trips, first))
        length = self.length = writer.emit(arith.MinSIOp(step, left))
        last = writer.emit(arith.AddiOp(first, length))
        last = writer.emit(arith.SubiOp(last, writer.constant(1)))
        whole = array.LoopOp(blocks, (), body)
        locate(whole, loop.location)
        outside.insert(whole)
        loop.detach()
        body.add_op(loop)
        body.add_op(array.YieldOp())
        loop.operands[0] = length
        self.time = count_from(first, loop)
        self.head = Before(loop)
        self.commons: dict[Stack, Common] = {}
        return [self.divide(stack, first, last) for stack in self.stacks]

    def step_of(self, outside: Before, trips: SSAValue) -> SSAValue:
        """How many iterations a block has: fewer where their vectors are long."""
        most: SSAValue | None = None
        last = outside.minus_one(trips)
        for stack in self.stacks:
            for dim, span in stack.spans.items():
                ends = [
                    at(span.count, stack.counter, Affine.of(v)) for v in (outside.constant(0), last)
                ]
                counts = [outside.number(e) for e in ends]
                both = (
                    outside.emit(arith.MaxSIOp(counts[0], counts[1]))
                    if stack.ragged == dim
                    else counts[0]
                )
                self.longest[stack, dim] = both
                most = both if most is None else outside.emit(arith.MaxSIOp(most, both))
        assert most is not None
        one = outside.constant(1)
        some = outside.emit(arith.MaxSIOp(most, one))
        fit = outside.emit(arith.FloorDivSIOp(outside.constant(KEPT), some))
        fit = outside.emit(arith.MinSIOp(fit, outside.constant(BLOCK)))
        return outside.emit(arith.MaxSIOp(fit, one))

    def divide(
        self, stack: Stack, first: SSAValue, last: SSAValue
    ) -> tuple[Stack, array.MatmulOp, array.MatmulOp | None]:
        """The product of one iteration as two: in what all have, and in the rest."""
        common = self.commons[stack] = Common(stack, first, last, self.head)
        here = Before(stack.op)
        t = stack.counter
        begin = count = rest_begin = rest_count = None
        if stack.ragged:
            span, both = stack.spans[stack.ragged], common.spans[stack.ragged]
            now = Span(
                at(span.begin, t, Affine.of(self.time)), at(span.end, t, Affine.of(self.time))
            )
            count = common.extents[stack.ragged]
            begin = here.constant(0)
            if stack.at_begin:
                begin = here.number(both.begin - now.begin)
                upto = Span(now.begin, extreme("min", both.begin, now.end))
                rest_begin, rest_count = here.constant(0), here.number(upto.count)
            else:
                rest_begin = count
                rest_count = here.number(now.count - Affine.of(count))
        views: dict[str, SSAValue] = {}
        for name, slab in stack.slabs.items():
            if slab is not None and lies_in_array(stack, name):
                views[name] = common.view(name, slab, here, self.time)
            else:
                views[name] = local_view(stack, name, begin, count, here)
        accumulate = stack.op.accumulate is not None
        shared = product(stack.op, views, accumulate=accumulate)
        here.insert(shared)
        rest = None
        if stack.ragged:
            views = {n: local_view(stack, n, rest_begin, rest_count, here) for n in OPERANDS}
            rest = product(stack.op, views, accumulate=accumulate or stack.ragged == "k")
            here.insert(rest)
        stack.op.detach()
        return stack, shared, rest

    def rejoin(self, stack: Stack, common: array.MatmulOp, rest: array.MatmulOp | None) -> None:
        block = common.parent
        assert block is not None
        block.insert_op_before(stack.op, common)
        erase(common)
        if rest is not None:
            erase(rest)

    # What adds to one matrix.

    def may_wait(self, members: Sequence[Member], commons: Mapping[Stack, array.MatmulOp]) -> bool:
        """Whether all products of a group may come after the loop, which keeps their vectors."""
        dependence = Dependence(self.function, AliasAnalysis(self.function))
        every = [Places(self.loop, commons[one.stack], dependence, ("c",)) for one in members]
        found = [one.place(packable=("a", "b"), buffered=False, late=True) for one in every]
        return None not in found

    def merge(self, members: Sequence[Member], commons: Mapping[Stack, array.MatmulOp]) -> None:
        """Write one product of the block for all of a group."""
        first, count = members[0].stack, len(members)
        assert self.loop.next_op is not None
        here = Before(self.loop.next_op, self.loop)
        slab = first.slabs["c"]
        assert slab is not None
        views = {"c": self.commons[first].view("c", slab, here, self.first, self.length)}
        for name in "ab":
            rows = self.rows(first, name, count)
            views[name] = self.whole(first, name, rows, here, count)
            for number, member in enumerate(members):
                common, own = commons[member.stack], member.operand(name)
                inside = Before(common)
                row = self.row(first, name, rows, inside, (count, number))
                vector = self.vector(member.stack, own, getattr(common, own), inside)
                inside.insert(copy(vector, row, self.extent(first, name), "store", member.stack.op))
        here.insert(product(first.op, views, accumulate=True, in_order=True))
        for member in members:
            erase(commons[member.stack])

    # Where the common part goes.

    def move(self, stack: Stack, common: array.MatmulOp, place: Place) -> None:
        """Write the product of the block, and what its iterations keep for it."""
        parts = self.commons[stack]
        anchor = self.loop if place.before else self.loop.next_op
        assert anchor is not None
        here, inside = Before(anchor, self.loop), Before(common)
        views: dict[str, SSAValue] = {}
        for name, slab in stack.slabs.items():
            if name in place.kept:
                rows = self.rows(stack, name)
                views[name] = self.whole(stack, name, rows, here)
                row = self.row(stack, name, rows, inside)
                vector = self.vector(stack, name, getattr(common, name), inside)
                pair = (row, vector) if name == "c" else (vector, row)
                kind = "add" if name == "c" and stack.op.accumulate is not None else "store"
                inside.insert(copy(*pair, self.extent(stack, name), kind, stack.op))
            else:
                assert slab is not None
                views[name] = parts.view(name, slab, here, self.first, self.length)
        accumulate = stack.op.accumulate is not None and "c" not in place.kept
        here.insert(product(stack.op, views, accumulate=accumulate, in_order=stack.adds_up))
        erase(common)

    def rows(self, stack: Stack, name: str, each: int = 1) -> SSAValue:
        """Memory for the vectors of a block, one a row, so many of each iteration."""
        (other,) = [d for d in OPERANDS[name] if d != stack.dim]
        type_ = stack.operand(name).type
        assert isinstance(type_, MemRefType)
        whole = self.loop.parent_op()
        assert whole is not None
        outside = Before(whole)
        count = outside.times(outside.emit(arith.MinSIOp(self.step, self.trips)), each)
        made = array.AllocOp([count, self.longest[stack, other]], type_.element_type)
        made.memref.name_hint = f"{stack.operand(name).name_hint or 'row'}_kept"
        outside.insert(made)
        return made.memref

    def extent(self, stack: Stack, name: str) -> SSAValue:
        (other,) = [d for d in OPERANDS[name] if d != stack.dim]
        return self.commons[stack].extents[other]

    def whole(
        self, stack: Stack, name: str, rows: SSAValue, here: Before, each: int = 1
    ) -> SSAValue:
        dims, extents = list[int](), list[SSAValue]()
        length = here.times(self.length, each)
        for dim in OPERANDS[name]:
            dims.append(0 if dim == stack.dim else 1)
            extents.append(length if dim == stack.dim else self.extent(stack, name))
        zero, one = here.constant(0), here.constant(1)
        view = array.ViewOp(rows, [zero, zero], dims, extents, [one, one])
        here.insert(view)
        return view.result

    def row(
        self,
        stack: Stack,
        name: str,
        rows: SSAValue,
        here: Before,
        place: tuple[int, int] = (1, 0),
    ) -> SSAValue:
        """That of an iteration; `place`: how many it has, and the number of this one."""
        zero, one = here.constant(0), here.constant(1)
        each, number = place
        at_row = [here.times(self.loop.induction, each), zero]
        if number:
            at_row[0] = here.plus(at_row[0], here.constant(number))
        if stack.downwards:
            last = here.minus_one(self.length)
            at_row[0] = here.emit(arith.SubiOp(last, self.loop.induction))
        view = array.ViewOp(rows, at_row, [1], [self.extent(stack, name)], [one])
        here.insert(view)
        return view.result

    def vector(self, stack: Stack, name: str, matrix: SSAValue, here: Before) -> SSAValue:
        zero, one = here.constant(0), here.constant(1)
        other = 1 - OPERANDS[name].index(stack.dim)
        view = array.ViewOp(matrix, [zero, zero], [other], [self.extent(stack, name)], [one])
        here.insert(view)
        return view.result


def copy(
    source: SSAValue, target: SSAValue, extent: SSAValue, kind: str, like: Operation
) -> array.MapOp:
    """The map that copies a vector, or adds it."""
    assert isinstance(source.type, MemRefType)
    body = Block(arg_types=[source.type.element_type])
    body.add_op(array.YieldOp([*body.args]))
    made = array.MapOp([extent], [source], [target], [kind], body)
    locate(made, like.location)
    return made
