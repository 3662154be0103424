"""Write the blocks of points of `vectorize_outer`: each statement becomes a loop over the points of a block.

What varies from point to point and is used in more than one of these loops lies in an array with an element
for each point; scratch memory gets one more axis, the last one. All of it is allocated for each block.
Uniform code stands between these loops, once for a block.

No point raises in a block: conditions are collected (`_ask`), and if one holds, the points of the block
run as they were written, and raise where Python would. Only then carried cells are handed on.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, MemRefType, UnitAttr, i1, i64
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ..analysis.carried_cells import is_cell
from ..analysis.point_loops import PointLoop
from ..analysis.views import is_memref
from ..diagnostics import locate
from .hoist_checks import Before
from .point_checks import FixedChecks, Values, Writer, raising, truth_cell
from .point_extremes import Extreme
from .point_sizes import BlockSize
from .straight_points import Extremes, taken_from


class PointBlocks:
    """Puts the blocks in the place of a loop; `points` is about its copy, whose body is straight."""

    def __init__(
        self, function: func.FuncOp, loop: array.LoopOp, points: PointLoop, extremes: Extremes
    ) -> None:
        assert loop.count is not None
        self.function = function
        self.loop = loop
        self.extremes = extremes
        self.points = points
        self.copy = points.loop
        self.before = Before(loop)
        self.values: Values = {}
        """Of the copy's uniform values, what they are in the block."""
        self.memory: Values = {}
        """Of private memory, that of a block."""
        self.left = {m for m in points.private if is_cell(m) and points.is_left(m)}
        """The cells in which the last point leaves what is read after the loop."""
        self.kept: Values = {}
        """Of varying values, the array that holds them for all points of the block."""

    def build(self) -> None:
        self.checks = FixedChecks(self.function, self.loop, self.points, self.before)
        self.checks.build()
        count = self.loop.count
        assert count is not None
        size = BlockSize(self.points, self.before).value()
        up = self.before.plus(count, self.before.minus_one(size))
        blocks = self.before.emit(array.FloorDivOp(up, size))
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = "block"
        self.writer = Writer(body)
        self.start = self.writer.emit(arith.MuliOp(body.args[0], size), self.loop)
        self.start.name_hint = "start"
        left = self.writer.emit(arith.SubiOp(count, self.start), self.loop)
        points = self.writer.emit(arith.MinSIOp(left, size), self.loop)
        self.count = self.writer.emit(arith.MaxSIOp(points, self.before.constant(0)), self.loop)
        self.count.name_hint = "points"
        last = body.last_op
        assert last is not None
        self.top: Operation = last
        self._block_body()
        body.add_op(array.YieldOp())
        made = array.LoopOp(blocks, (), body)
        self.before.insert(made)
        if self.loop.trips.uses:
            trips = self.before.emit(arith.MaxSIOp(count, self.before.constant(0)))
            self.loop.trips.replace_all_uses_with(trips)

    def _block_body(self) -> None:
        self._begin_raises()
        self._pack()
        for memory in self.points.written:
            if memory in self.points.outside & self.points.private & self.points.varying:
                self._copy_in(memory)
        ops = [op for op in self.copy.body.block.ops if op not in set(self.points.tail)]
        self._ops(ops)
        self._end_raises()
        self._leave()
        if self.points.tail:
            self._segment(self.points.tail)

    # What may raise where the data say so.

    def _begin_raises(self) -> None:
        """A cell for each check of data: whether it fails for a point of the block."""
        self.raises = {
            op: truth_cell(self.function, op)
            for op in self.points.ops
            if isinstance(op, array.RaiseIfOp) and not self.points.is_fixed(op)
        }
        for cell in self.raises.values():
            truth = self.writer.emit(arith.ConstantOp(IntegerAttr(0, i1)), self.loop)
            self.writer.add(memref.StoreOp.get(truth, cell, []), self.loop)

    def _end_raises(self) -> None:
        """Where one fails the points run as they were written, and raise.

        A function such as `exp` may differ in its last bit between a vector and a number. What was seen to
        fail raises all the same.
        """
        found = {
            op: self.writer.emit(memref.LoadOp.get(cell, []), op)
            for op, cell in self.raises.items()
        }
        if not found:
            return
        first, *others = found.values()
        bad = first
        for other in others:
            bad = self.writer.emit(arith.OrIOp(bad, other), self.loop)
        slow: list[Operation] = [self._one_by_one()]
        for op, fails in found.items():
            shown = Block()
            values = [self.checks.value(v, {}, Writer(shown)) for v in op.operands_shown]
            again = array.RaiseIfOp(fails, op.exception.data, op.message.data, values)
            locate(again, op.location)
            slow += [*taken_from(shown), again]
        self.writer.add(raising(bad, *slow), self.loop)

    # Rows of the block, with the points side by side.

    def _pack(self) -> None:
        """Copy what the points of the block read of their rows again and again."""
        self.rows = self.points.rows()
        self.packed = {
            (memory, axis): self._rows(memory, axis, counts)
            for (memory, axis), counts in self.rows.items()
        }

    def _rows(self, memory: SSAValue, axis: int, counts: Sequence[SSAValue]) -> SSAValue:
        assert isinstance(memory.type, MemRefType)
        before, op, rank = self.before, self.loop, memory.type.get_num_dims()
        extents = [before.emit(memref.DimOp(memory, before.constant(a))) for a in range(rank)]
        left = self.writer.emit(arith.SubiOp(extents.pop(axis), self.start), op)
        rows = self.writer.emit(arith.MinSIOp(self.count, left), op)
        zero = before.constant(0)
        room = [before.emit(arith.MaxSIOp(n, zero)) for n in counts]
        made = self._array(room, memory.type.element_type, memory.name_hint, op)
        columns_of = [
            before.emit(arith.MinSIOp(n, e)) for n, e in zip(counts, extents, strict=True)
        ]
        body = Block(arg_types=[IndexType()])
        writer, inner = self.writer, Writer(body)
        at = inner.emit(arith.AddiOp(self.start, body.args[0]), op)
        blocks = [Block(arg_types=[IndexType()]) for _ in columns_of]
        columns: list[SSAValue] = [b.args[0] for b in blocks]
        source = [*columns[:axis], at, *columns[axis:]]
        value = inner.emit(memref.LoadOp.get(memory, source), op)
        inner.add(memref.StoreOp.get(value, made, [*columns, body.args[0]]), op)
        body.add_op(array.YieldOp())
        nest = array.LoopOp(rows, (), body)
        for block, count in zip(reversed(blocks), reversed(columns_of), strict=True):
            block.add_op(nest)
            block.add_op(array.YieldOp())
            nest = array.LoopOp(count, (), block)
        writer.add(nest, op)
        return made

    def _copy_in(self, memory: SSAValue) -> None:
        """Let all points of the block find what was in an array, where they read more than they store."""
        lanes, rank = self.lanes_of(memory, self.loop), len(memory.type.get_shape())  # pyright: ignore
        blocks = [Block(arg_types=[IndexType()]) for _ in range(rank + 1)]
        *at, point = (block.args[0] for block in blocks)
        inner = Writer(blocks[-1])
        value = inner.emit(memref.LoadOp.get(memory, at), self.loop)
        inner.add(memref.StoreOp.get(value, lanes, [*at, point]), self.loop)
        owner = memory.owner
        assert isinstance(owner, array.AllocOp)
        inner.block.add_op(array.YieldOp())
        nest = array.LoopOp(self.count, (), inner.block)
        for block, count in zip(reversed(blocks[:-1]), reversed(owner.extents), strict=True):
            locate(nest, self.loop.location)
            block.add_op(nest)
            block.add_op(array.YieldOp())
            nest = array.LoopOp(count, (), block)
        self.writer.add(nest, self.loop)

    # A block.

    def _ops(self, ops: Sequence[Operation]) -> None:
        """Code for all points, the code of each op, or of several that follow each other, in one loop."""
        pending: list[Operation] = []

        def flush() -> None:
            if pending:
                self._segment(pending)
                pending.clear()

        for op in ops:
            if isinstance(op, array.YieldOp | scf.YieldOp) or self.is_sunk(op):
                continue
            if isinstance(op, array.LoopOp | scf.IfOp):
                flush()
                self._structured(op)
            elif isinstance(op, array.AllocOp):
                self._alloc(op)
            elif self.points.varies(op):
                if isinstance(op, memref.LoadOp) and self._is_stored(op.memref, pending):
                    flush()
                pending.append(op)
            else:
                if isinstance(op, memref.StoreOp) and self._is_loaded(op.memref, pending):
                    flush()
                self._uniform(op)
        flush()

    def is_sunk(self, op: Operation) -> bool:
        """A load that only loops over points right beside it read: so nests have nothing else in them."""
        if not isinstance(op, memref.LoadOp) or op.memref in self.points.written:
            return False
        if self.points.varies(op) or any(map(is_memref, op.results)):
            return False
        users = [use.operation for use in op.res.uses]
        return all(u.parent is op.parent and self.points.varies(u) for u in users)

    def _is_stored(self, memory: SSAValue, ops: Sequence[Operation]) -> bool:
        stored = [op.memref for op in ops if isinstance(op, memref.StoreOp)]
        return any(m is memory or self.points.alias.may_alias(m, memory) for m in stored)

    def _is_loaded(self, memory: SSAValue, ops: Sequence[Operation]) -> bool:
        loaded = [op.memref for op in ops if isinstance(op, memref.LoadOp)]
        return any(m is memory or self.points.alias.may_alias(m, memory) for m in loaded)

    def _structured(self, op: array.LoopOp | scf.IfOp) -> None:
        writer = self.writer
        if isinstance(op, scf.IfOp):
            regions: list[list[Operation]] = []
            for region in (op.true_region, op.false_region):
                inner = Block()
                self.writer = Writer(inner)
                if region.blocks:
                    self._ops(list(region.block.ops))
                regions.append([*taken_from(inner), scf.YieldOp()])
            self.writer = writer
            writer.add(scf.IfOp(self._of(op.cond), [], regions[0], regions[1]), op)
            return
        if (extreme := self.extremes.get(op)) is not None:
            self._extreme(extreme, op)
            return
        assert op.count is not None
        inner = Block(arg_types=[IndexType()])
        inner.args[0].name_hint = op.induction.name_hint
        self.values[op.induction] = inner.args[0]
        self.writer = Writer(inner)
        self._ops(list(op.body.block.ops))
        inner.add_op(array.YieldOp())
        self.writer = writer
        made = array.LoopOp(self._of(op.count), (), inner)
        writer.add(made, op)
        self.values[op.trips] = made.trips

    def _extreme(self, extreme: Extreme, like: Operation) -> None:
        """A map that takes the extremes of all points."""
        own = self.points.private & self.points.varying
        lanes = {m: self.lanes_of(m, like) for m in extreme.memory() if m in own}
        numbers = (self.writer.number(0, like), self.writer.number(1, like))
        for made in extreme.for_points(self._of, lanes, numbers, self.count):
            self.writer.add(made, like)

    def _alloc(self, op: array.AllocOp) -> None:
        varies = op.memref in self.points.varying
        extents = [self._of(e) for e in op.extents]
        assert isinstance(op.memref.type, MemRefType)
        made = array.AllocOp(
            [*extents, self.count] if varies else extents, op.memref.type.element_type
        )
        made.memref.name_hint = op.memref.name_hint
        self.writer.add(made, op)
        (self.memory if varies else self.values)[op.memref] = made.memref

    def _uniform(self, op: Operation) -> None:
        """What is the same for all points."""
        if isinstance(op, array.RaiseIfOp):
            if not self.points.is_fixed(op):
                self._raise_where(self._of(op.condition), op)
            return
        made = op.clone({o: self._of(o) for o in op.operands})
        if isinstance(made, array.IndexOp):
            made.properties["unchecked"] = UnitAttr()
        self.writer.block.add_op(made)
        self.values.update(zip(op.results, made.results, strict=True))

    def _of(self, value: SSAValue) -> SSAValue:
        return self.values.get(value, value)

    # A loop over the points of the block.

    def _segment(self, ops: Sequence[Operation]) -> None:
        asked = [op for op in ops if isinstance(op, array.RaiseIfOp)]
        rest = [op for op in ops if not isinstance(op, array.RaiseIfOp)]
        if asked:
            self._ask(asked, rest)
        mine = set(ops)
        for op in rest:
            for result in op.results:
                away = any(use.operation not in mine for use in result.uses)
                if away and not self._is_cheap(result):
                    self._keep(result, op)
        if not any(isinstance(op, memref.StoreOp) for op in rest) and not any(
            r in self.kept for op in rest for r in op.results
        ):
            return  # All of it is computed again where it is used.
        inner = Point(self)
        for op in rest:
            inner.copy(op)
            for result in op.results:
                if result in self.kept:
                    inner.put(result, self.kept[result], op)
        inner.finish(rest[0])
        for op in rest:
            if isinstance(op, memref.StoreOp) and op.memref in self.points.left:
                self._leave_last(op)

    def _leave_last(self, op: memref.StoreOp) -> None:
        """Leave in the program's own array what the last point has stored to it."""
        at = [self._of(i) for i in op.indices]
        one = self.writer.number(1, op)
        last = self.writer.emit(arith.SubiOp(self.count, one), op)
        lanes = self.lanes_of(op.memref, op)
        value = self.writer.emit(memref.LoadOp.get(lanes, [*at, last]), op)
        self.writer.add(memref.StoreOp.get(value, op.memref, at), op)

    def _ask(self, asked: Sequence[Operation], rest: Sequence[Operation]) -> None:
        wanted = {o for op in asked for o in op.operands}
        needed: list[Operation] = []
        for op in reversed(rest):
            if any(r in wanted for r in op.results):
                needed.append(op)
                wanted.update(op.operands)
        inner = Point(self)
        for op in reversed(needed):
            inner.copy(op)
        writer, self.writer = self.writer, inner.writer
        for op in asked:
            assert isinstance(op, array.RaiseIfOp)
            self._raise_where(inner.value(op.condition, op), op)
        self.writer = writer
        inner.finish(asked[0])

    def _raise_where(self, condition: SSAValue, op: array.RaiseIfOp) -> None:
        cell = self.raises[op]
        old = self.writer.emit(memref.LoadOp.get(cell, []), op)
        either = self.writer.emit(arith.OrIOp(old, condition), op)
        self.writer.add(memref.StoreOp.get(either, cell, []), op)

    def _is_cheap(self, value: SSAValue) -> bool:
        """An index that is computed from the counters again rather than kept."""
        owner = value.owner
        if value not in self.points.varying or value is self.copy.induction:
            return True
        if not isinstance(value.type, IndexType) or not isinstance(owner, Operation):
            return False
        return not isinstance(owner, memref.LoadOp) and all(map(self._is_cheap, owner.operands))

    def _keep(self, value: SSAValue, like: Operation) -> None:
        element: Attribute = i64 if isinstance(value.type, IndexType) else value.type
        self.kept[value] = self._array([], element, value.name_hint, like)

    def _array(
        self, extents: Sequence[SSAValue], element: Attribute, hint: str | None, like: Operation
    ) -> SSAValue:
        """Memory for the block, with an element, or an array, for each point."""
        made = array.AllocOp([*extents, self.count], element)
        made.memref.name_hint = hint
        locate(made, like.location)
        body = self.top.parent
        assert body is not None
        body.insert_op_after(made, self.top)
        self.top = made
        return made.memref

    def lanes_of(self, memory: SSAValue, like: Operation) -> SSAValue:
        """The memory that all points of the block have instead of private memory."""
        found = self.memory.get(memory)
        if found is None:
            assert isinstance(memory.type, MemRefType)
            owner = memory.owner
            extents = list(owner.extents) if isinstance(owner, array.AllocOp) else []
            found = self._array(extents, memory.type.element_type, memory.name_hint, like)
            self.memory[memory] = found
        return found

    # After the points of a block.

    def _one_by_one(self) -> array.LoopOp:
        """The points of the block as they were written."""
        body = Block(arg_types=[IndexType()])
        writer = Writer(body)
        at = writer.emit(arith.AddiOp(self.start, body.args[0]), self.loop)
        values: Values = {self.loop.induction: at}
        for op in self.loop.body.block.ops:
            body.add_op(op.clone(values))
        made = array.LoopOp(self.count, (), body)
        locate(made, self.loop.location)
        return made

    def _leave(self) -> None:
        """Leave in the program's own cells what the last point has left there."""
        for memory, lanes in self.memory.items():
            if memory in self.left:
                one = self.writer.number(1, self.loop)
                last = self.writer.emit(arith.SubiOp(self.count, one), self.loop)
                value = self.writer.emit(memref.LoadOp.get(lanes, [last]), self.loop)
                self.writer.add(memref.StoreOp.get(value, memory, []), self.loop)


class Point:
    """A loop over the points of a block, in the making."""

    def __init__(self, blocks: PointBlocks) -> None:
        self.blocks = blocks
        self.body = Block(arg_types=[IndexType()])
        self.at = self.body.args[0]
        self.at.name_hint = "point"
        self.writer = Writer(self.body)
        self.values: Values = {}

    def copy(self, op: Operation) -> None:
        operands = {o: self.value(o, op) for o in op.operands if not is_memref(o)}
        made: Operation
        if isinstance(op, memref.LoadOp):
            axis = self.blocks.points.row_axis(op)
            if axis is not None and self.blocks.points.is_in_rows(op, self.blocks.rows):
                rows = self.blocks.packed[op.memref, axis]
                others = [operands[i] for k, i in enumerate(op.indices) if k != axis]
                memory, at = rows, [*others, self.at]
            else:
                memory, at = self._place(op.memref, [operands[i] for i in op.indices], op)
            made = memref.LoadOp.get(memory, at)
        elif isinstance(op, memref.StoreOp):
            memory, at = self._place(op.memref, [operands[i] for i in op.indices], op)
            made = memref.StoreOp.get(operands[op.value], memory, at)
        else:
            made = op.clone(operands)
        if isinstance(made, array.IndexOp):
            made.properties["unchecked"] = UnitAttr()
        for result, old in zip(made.results, op.results, strict=True):
            result.name_hint = old.name_hint
        self.writer.add(made, op)
        self.values.update(zip(op.results, made.results, strict=True))

    def _place(
        self, memory: SSAValue, at: list[SSAValue], like: Operation
    ) -> tuple[SSAValue, list[SSAValue]]:
        points = self.blocks.points
        if memory in points.private and memory in points.varying:
            return self.blocks.lanes_of(memory, like), [*at, self.at]
        return self.blocks.values.get(memory, memory), at

    def value(self, value: SSAValue, like: Operation) -> SSAValue:
        """A value of the copy for one point."""
        blocks = self.blocks
        if value in self.values:
            return self.values[value]
        owner = value.owner
        if (
            isinstance(owner, memref.LoadOp)
            and blocks.copy.is_ancestor(owner)
            and blocks.is_sunk(owner)
        ):
            self.copy(owner)
            return self.values[value]
        if value is blocks.copy.induction:
            made = self.writer.emit(arith.AddiOp(blocks.start, self.at), like)
        elif value not in blocks.points.varying:
            return blocks.values.get(value, value)
        elif value in blocks.kept:
            made = self.writer.emit(memref.LoadOp.get(blocks.kept[value], [self.at]), like)
            if isinstance(value.type, IndexType):
                made = self.writer.emit(arith.IndexCastOp(made, IndexType()), like)
        else:
            assert isinstance(owner, Operation)
            self.copy(owner)
            return self.values[value]
        made.name_hint = value.name_hint
        self.values[value] = made
        return made

    def put(self, value: SSAValue, into: SSAValue, like: Operation) -> None:
        made = self.values[value]
        if isinstance(value.type, IndexType):
            made = self.writer.emit(arith.IndexCastOp(made, i64), like)
        self.writer.add(memref.StoreOp.get(made, into, [self.at]), like)

    def finish(self, like: Operation) -> None:
        self.body.add_op(array.YieldOp())
        self.blocks.writer.add(array.LoopOp(self.blocks.count, (), self.body), like)
