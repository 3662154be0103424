"""Values of the iteration before, in the reverse sweep: `neighbours`.

Each is computed or read again, from memory or a tape, with the loop's counter reduced by one::

    %last = arith.subi %i, %one
    %before = arith.maxsi %last, %zero            // an iteration that has run
    %y = memref.load %u_saved[%before]
    %first = memref.load %entry[]
    %value = arith.select (%i > 0), %y, %first
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array
from ..rules.sweeps import PRIMAL
from . import bits
from .neighbours import Neighbour
from .old_contents import OldContents
from .plan import ReadNeighbour, ReadOld, Reload, Save
from .segments import is_inside
from .sweeps import Primal
from .versions import Version


class IterationBefore:
    """What a loop's body has computed one iteration before the one at `counter`."""

    def __init__(self, primal: Primal, loop: array.LoopOp, counter: SSAValue) -> None:
        self.primal = primal
        self.loop = loop
        self.block = loop.body.block
        self.counter = counter
        self.zero = primal.prologues.index(0, self.block)
        last = self._emit(arith.SubiOp(counter, primal.prologues.index(1, self.block)))
        self.known: dict[SSAValue, SSAValue] = {
            loop.induction: self._emit(arith.MaxSIOp(last, self.zero))
        }

    def handed_on(self, neighbour: Neighbour) -> SSAValue:
        """What a variable holds at the start of the iteration at `counter`."""
        before, copy = self.get(neighbour.value), self.primal.copy_of(neighbour.entry)
        first = self._emit(memref.LoadOp.get(copy, []))
        later = self._emit(arith.CmpiOp(self.counter, self.zero, "sgt"))
        return self._emit(arith.SelectOp(later, before, first))

    def get(self, value: SSAValue) -> SSAValue:
        """A value as the iteration before had it."""
        if not is_inside(value, self.loop):
            return self.primal.get(value)
        if value not in self.known:
            found = self.known[value] = self._again(value)
            found.name_hint = value.name_hint
        return self.known[value]

    def _again(self, value: SSAValue) -> SSAValue:
        op = cast(Operation, value.owner)
        match self.primal.plan.how(value):
            case Save() as save:
                return self._saved(save)
            case ReadOld(answer):
                old = OldContents(self.primal, self.block, self.get, self._view)
                return old.scalar(answer)
            case Reload(copy=Version() as version):
                how = self.primal.plan.how(version)
                assert isinstance(how, ReadNeighbour), f"{value} is asked for one iteration later"
                counter = self.known[self.loop.induction]
                return IterationBefore(self.primal, self.loop, counter).handed_on(how.neighbour)
            case _ if isinstance(op, memref.LoadOp):
                indices = [self.get(i) for i in op.indices]
                return self._emit(memref.LoadOp.get(self._view(op.memref), indices))
            case _:
                return self.primal.compute(op, self.block, self.get)

    def _saved(self, save: Save) -> SSAValue:
        own = self.known[self.loop.induction]
        indices = [own if lp is self.loop else self.primal.induction[lp] for lp in save.loops]
        segment = self.primal.segment(save)
        if save.in_bits:
            return bits.load_bit(segment, indices, self._emit)
        return self._emit(memref.LoadOp.get(segment, indices))

    def _view(self, source: SSAValue) -> SSAValue:
        """Memory as the iteration before saw it."""
        if not is_inside(source, self.loop):
            return self.primal.memref(source, PRIMAL)
        owner = source.owner
        assert isinstance(owner, array.AnyView | memref.CastOp)
        inner = self._view(owner.source)
        if isinstance(owner, array.AnyView):
            return self._emit(owner.of(inner, self.get))
        return self._emit(memref.CastOp.get(inner, cast(MemRefType[Attribute], source.type)))

    def _emit(self, op: Operation) -> SSAValue:
        op.location = self.loop.location
        return self.primal.prologues.append(self.block, op)
