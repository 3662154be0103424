"""Rules of tapes, so that a gradient function has derivatives as any other function has.

What is pushed and what is popped is the same memory under two names: a derivative flows between each segment
and the tape. The tangents of a tape's segments lie on a tape of their own::

    %t = ad.tape                 %t_dot = ad.tape
    %s = ad.push %t(%n)          %s_dot = ad.push %t_dot(%n)
    %p = ad.pop %t(%n)           %p_dot = ad.pop %t_dot(%n)

So do their cotangents, from the pops, which come last and are reversed first, to the pushes::

    %t = ad.tape                 %t_shadow = ad.tape
    %s = ad.push %t(%n)          %s_shadow = ad.pop %t_shadow(%n)
    %p = ad.pop %t(%n)           %p_shadow = ad.push %t_shadow(%n), filled with 0
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.ir import Operation

from ...dialects import ad
from .access import Access, Activity, Flow, Need
from .rule import Rule, Rules, WithoutDerivative, memrefs, touching
from .sweeps import ReverseSweep, TangentSweep


class Tape(WithoutDerivative):
    """An empty tape; one with a second name, for what reads it."""

    def flows(self, op: Operation) -> Iterator[Flow]:
        for operand in op.operands:
            yield operand, op.results[0]

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if sweep.activity.active(op.results[0]):
            operands = {o: sweep.dot(o, zero=True) for o in op.operands}
            sweep.set_dot(op.results[0], sweep.emit(op.clone(operands)))


class Segment(WithoutDerivative):
    """`ad.push`, `ad.pop`."""

    def flows(self, op: Operation) -> Iterator[Flow]:
        assert isinstance(op, ad.SegmentOp)
        yield op.memref, op.tape
        yield op.tape, op.memref

    def has_derivative(self, op: Operation, activity: Activity) -> bool:
        return activity.active(op.results[0])

    def needs(self, op: Operation, activity: Activity) -> Iterator[Need]:
        assert isinstance(op, ad.SegmentOp)
        yield from op.extents

    def adjoint(self, op: Operation, sweep: ReverseSweep) -> None:
        """Nothing: the shadow is there since the reverse of the block began."""

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        assert isinstance(op, ad.SegmentOp)
        sweep.clone(op)
        if sweep.activity.active(op.memref):
            values = {e: sweep.value(e) for e in op.extents}
            values[op.tape] = sweep.dot(op.tape, zero=True)
            sweep.set_dot(op.memref, sweep.clone_dot(op, values))


class Handover(Rule[ad.HandoverOp]):
    """The caller may have stored anything: that is no work of the function, and has no derivative here."""

    def effects(self, op: ad.HandoverOp) -> list[Access]:
        return touching(op, [], memrefs(op.operands), must=False)

    def flows(self, op: ad.HandoverOp) -> Iterator[Flow]:
        yield from ()

    def has_derivative(self, op: ad.HandoverOp, activity: object) -> bool:
        return False


RULES: Rules = {
    **dict.fromkeys((ad.TapeOp, ad.ReaderOp, ad.DetachOp), Tape()),
    **dict.fromkeys((ad.PushOp, ad.PopOp), Segment()),
    ad.HandoverOp: Handover(),
}
