"""Rules of control flow: loops, branches, what ends a block.

The adjoint of a loop runs its iterations last first, that of a branch is the branch that was taken: the
sweep's own work. A tangent goes along: a loop carries the tangents of what it carries, a branch yields them.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, Region

from ...dialects import ad, array
from .access import Activity, Flow, Need
from .descriptors import descriptor_values, trips_source
from .rule import LeavesNothing, Rules, WithoutDerivative, is_float_scalar
from .sweeps import ReverseSweep, TangentSweep, bind_with_tangents


class Loop(LeavesNothing):
    """`array.loop`: memrefs are carried, scalars live in cells."""

    def needs(self, op: Operation, activity: Activity) -> Iterator[Need]:
        assert isinstance(op, array.LoopOp)
        yield trips_source(op)
        for carried in op.carried:
            yield from descriptor_values(carried)

    def adjoint(self, op: Operation, sweep: ReverseSweep) -> None:
        assert isinstance(op, array.LoopOp)
        sweep.reverse_loop(op)

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        assert isinstance(op, array.LoopOp)
        moving = [p for p, c in enumerate(op.body_carried) if sweep.activity.active(c)]
        count = None if op.count is None else sweep.value(op.count)
        inits = [sweep.value(c) for c in op.carried]
        inits += [sweep.dot(op.carried[p], zero=True) for p in moving]

        def both(source: Block) -> Block:
            """A region of the loop, with the tangents of what is carried."""
            inner = Block(arg_types=[source.args[0].type, *(i.type for i in inits)])
            bind_with_tangents(sweep, source.args, inner.args, [source.args[1 + p] for p in moving])
            sweep.run(source, inner, end)
            return inner

        def end(terminator: Operation) -> None:
            if isinstance(terminator, array.YieldOp):
                yields = sweep.values(terminator.values)
                yields += [sweep.dot(terminator.values[p], zero=True) for p in moving]
                sweep.append(array.YieldOp(yields))
            else:
                sweep.clone(terminator)

        condition = op.condition_block
        loop = array.LoopOp(
            count, inits, both(op.body.block), None if condition is None else both(condition)
        )
        loop.attributes.update(op.attributes)
        sweep.append(loop)
        bind_with_tangents(sweep, op.results, loop.results, [op.results_carried[p] for p in moving])


class Branch(LeavesNothing):
    """`scf.if`: what the branch taken yields."""

    def flows(self, op: Operation) -> Iterator[Flow]:
        for region in op.regions:
            end = region.blocks.first.last_op if region.blocks.first is not None else None
            for value, result in zip(end.operands if end else (), op.results, strict=False):
                if is_float_scalar(result):
                    yield value, result

    def has_derivative(self, op: Operation, activity: Activity) -> bool:
        return any(map(activity.active, self.targets(op)))  # arrays are chosen at their uses

    def needs(self, op: Operation, activity: Activity) -> Iterator[Need]:
        assert isinstance(op, scf.IfOp)
        yield op.cond

    def adjoint(self, op: Operation, sweep: ReverseSweep) -> None:
        assert isinstance(op, scf.IfOp)
        sweep.reverse_branches(op)

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        assert isinstance(op, scf.IfOp)
        moving = [k for k, r in enumerate(op.results) if sweep.activity.active(r)]
        types = [r.type for r in op.results]

        def end(terminator: Operation) -> None:
            yields = sweep.values(terminator.operands)
            yields += [sweep.dot(terminator.operands[k], zero=True) for k in moving]
            types[len(op.results) :] = [y.type for y in yields[len(op.results) :]]
            sweep.append(scf.YieldOp(*yields))

        regions: list[Region] = []
        for region in op.regions:
            inner = Block()
            if region.blocks:
                sweep.run(region.block, inner, end)
            else:
                inner.add_op(scf.YieldOp())
            regions.append(Region(inner))
        branch = scf.IfOp(sweep.value(op.cond), types, regions[0], regions[1])
        branch.attributes.update(op.attributes)
        sweep.append(branch)
        bind_with_tangents(sweep, op.results, branch.results, [op.results[k] for k in moving])


RULES: Rules = {
    array.LoopOp: Loop(),
    scf.IfOp: Branch(),
    **dict.fromkeys((func.FuncOp, ModuleOp), WithoutDerivative()),
    **dict.fromkeys((array.IndexOp, array.CheckedIntOp, array.RaiseIfOp), LeavesNothing()),
    ad.RetryIfOp: WithoutDerivative(),
}
