"""The checks of `vectorize_outer` that are the same for each point, or tell of all points: before the blocks.

The loops of a point with nothing in them but these checks run once. Where one fails, the loop runs as it
was written: its first point raises, or another exception comes before.
"""

from __future__ import annotations

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, UnitAttr, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ..analysis.point_loops import PointLoop
from ..diagnostics import locate
from .hoist_checks import Before
from .straight_points import taken_from

Values = dict[SSAValue, SSAValue]


class Writer:
    """Appends ops to a block; all have the place of the op that they stand for."""

    def __init__(self, block: Block) -> None:
        self.block = block

    def emit(self, op: Operation, like: Operation) -> SSAValue:
        locate(op, like.location)
        self.block.add_op(op)
        return op.results[0]

    def add(self, op: Operation, like: Operation) -> None:
        locate(op, like.location)
        self.block.add_op(op)

    def number(self, value: int, like: Operation) -> SSAValue:
        return self.emit(arith.ConstantOp(IntegerAttr(value, IndexType())), like)


class FixedChecks:
    """Writes them before a loop; `points` is about its copy, whose body is straight."""

    def __init__(
        self, function: func.FuncOp, loop: array.LoopOp, points: PointLoop, before: Before
    ) -> None:
        assert loop.count is not None
        self.function = function
        self.loop = loop
        self.count: SSAValue = loop.count
        self.points = points
        self.before = before

    def build(self) -> None:
        checks = {op for op in self.points.ops if is_check(op) and self.points.is_asked(op)}
        if not checks:
            return
        before = self.before
        cell = truth_cell(self.function, self.loop)
        body = Block()
        self._skeleton(self.points.loop.body.block, {}, checks, cell, Writer(body))
        false = before.emit(arith.ConstantOp(IntegerAttr(0, i1)))
        before.insert(memref.StoreOp.get(false, cell, []))
        runs = before.compare("sgt", self.count, before.constant(0))
        before.insert(scf.IfOp(runs, [], [*taken_from(body), scf.YieldOp()], [scf.YieldOp()]))
        bad = memref.LoadOp.get(cell, [])
        before.insert(bad)
        before.insert(raising(bad.res, self.loop.clone()))

    def _skeleton(
        self,
        block: Block,
        values: Values,
        checks: set[Operation],
        cell: SSAValue,
        writer: Writer,
    ) -> None:
        """The loops of the block with nothing in them but checks."""
        for op in block.ops:
            if isinstance(op, array.LoopOp) and any(o in checks for o in op.walk()):
                assert op.count is not None
                inner = Block(arg_types=[IndexType()])
                count = self.value(op.count, values, writer)
                known = values | {op.induction: inner.args[0]}
                self._skeleton(op.body.block, known, checks, cell, Writer(inner))
                inner.add_op(array.YieldOp())
                writer.add(array.LoopOp(count, (), inner), op)
            elif op in checks:
                for point in self._asked_of(op):
                    old = writer.emit(memref.LoadOp.get(cell, []), op)
                    bad = self._fails(op, values | point, writer)
                    either = writer.emit(arith.OrIOp(old, bad), op)
                    writer.add(memref.StoreOp.get(either, cell, []), op)

    def _asked_of(self, op: Operation) -> list[Values]:
        """The points for which a check is made."""
        if not isinstance(op, array.IndexOp) or not self.points.is_moving(op):
            return [{}]
        at = self.points.loop.induction
        return [{at: self.before.constant(0)}, {at: self.before.minus_one(self.count)}]

    def _fails(self, op: Operation, values: Values, writer: Writer) -> SSAValue:
        if isinstance(op, array.RaiseIfOp):
            return self.value(op.condition, values, writer)
        assert isinstance(op, array.IndexOp)
        index, extent = (self.value(v, values, writer) for v in op.operands)
        high = writer.emit(arith.CmpiOp(index, extent, "sge"), op)
        if op.sign.data == "nonneg":
            return high
        moved = writer.emit(arith.AddiOp(index, extent), op)
        low = writer.emit(arith.CmpiOp(moved, writer.number(0, op), "slt"), op)
        return low if op.sign.data == "negative" else writer.emit(arith.OrIOp(high, low), op)

    def value(self, value: SSAValue, values: Values, writer: Writer) -> SSAValue:
        """A value of the copy that no load has a part in, computed where the writer is."""
        owner = value.owner
        inside = isinstance(owner, Operation) and self.points.loop.is_ancestor(owner)
        if value in values or not isinstance(owner, Operation) or not inside:
            return values.get(value, value)
        if isinstance(owner, array.LoopOp):
            assert owner.count is not None
            count = self.value(owner.count, values, writer)
            return writer.emit(arith.MaxSIOp(count, writer.number(0, owner)), owner)
        made = owner.clone({o: self.value(o, values, writer) for o in owner.operands})
        if isinstance(made, array.IndexOp):
            made.properties["unchecked"] = UnitAttr()
        writer.add(made, owner)
        return made.results[owner.results.index(value)]


def truth_cell(function: func.FuncOp, like: Operation) -> SSAValue:
    """A new variable of the function: whether something fails."""
    cell = memref.AllocaOp.get(i1, shape=[])
    cell.memref.name_hint = "raises"
    locate(cell, like.location)
    first = function.body.block.first_op
    assert first is not None
    Rewriter.insert_op(cell, InsertPoint.before(first))
    return cell.memref


def is_check(op: Operation) -> bool:
    if isinstance(op, array.IndexOp):
        return op.unchecked is None
    return isinstance(op, array.RaiseIfOp)


def raising(condition: SSAValue, *slow: Operation) -> scf.IfOp:
    """Where the condition holds, the code as it was, which raises."""
    branch = scf.IfOp(condition, [], [*slow, scf.YieldOp()], [scf.YieldOp()])
    branch.attributes[array.RAISES] = UnitAttr()
    return branch
