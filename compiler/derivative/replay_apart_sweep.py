"""The reverse of a loop whose iterations are replayed one by one (`replays_apart`), a few at a time.

::

    array.map ins(%a_saved) outs(%a_again)              // what was there before the loop
    %tapes = array.alloc(%4, %longest, %n)
    array.loop %b to (%trips + 3) / 4 do {
      %count = min(%trips - 4 * %b, 4)
      %first = %trips - 4 * %b - %count
      array.loop %i to %count do {                      // the updates of iteration %first + %i
        %a_saved_1 = %tapes[%i]
        ...
      }
      array.loop %s to %count do {                      // the adjoint of iteration %first + %count - 1 - %s
        %a_saved_2 = %tapes[%count - 1 - %s]
        ...
      }
    }
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..rules.builders import extents_of, index, transfer, whole_lines
from .forward_sweep import state_at
from .plan import Replay, Save, hint_of
from .primal_values import computed_again
from .replay_sweep import ReplaySweep
from .replays_apart import SIDE_BY_SIDE, slope
from .segments import is_inside
from .sweeps import Sweep


def sweep_of(sweep: Sweep, replay: Replay | None) -> ReplaySweep | None:
    """What writes the clones of a loop, where it is replayed."""
    if replay is None:
        return None
    return ApartSweep(sweep, replay) if replay.apart else ReplaySweep(sweep, replay)


class ApartSweep(ReplaySweep):
    """Writes the clones of one loop, on tapes that lie side by side."""

    def __init__(self, sweep: Sweep, replay: Replay) -> None:
        super().__init__(sweep, replay)
        self.first: SSAValue | None = None
        """The first iteration of a block."""

    def make_tapes(self) -> None:
        """There are none that grow."""

    @contextmanager
    def blocks(self, trips: SSAValue) -> Generator[tuple[SSAValue, SSAValue | None]]:
        sweep, emit = self.sweep, self.sweep.emit
        for base, state in self.replay.states.items():
            copy = self.values[base]
            extents = extents_of(copy, emit)
            segment = self.primal.forward.segments[state]
            sweep.append(
                transfer(state_at(segment, state, (), extents, sweep.block), copy, extents)
            )
        size, zero = index(SIDE_BY_SIDE, emit), index(0, emit)
        last = emit(arith.MaxSIOp(emit(arith.SubiOp(trips, index(1, emit))), zero))
        for save in self.replay.saves:
            self.rows_of[save] = self._allocate(save, size, zero, last)
        up = emit(arith.AddiOp(trips, index(SIDE_BY_SIDE - 1, emit)))
        count = emit(arith.ShRUIOp(up, index(SIDE_BY_SIDE.bit_length() - 1, emit)))
        body = Block(arg_types=[IndexType()])
        with sweep.at(body):
            done = emit(arith.MuliOp(body.args[0], size))
            left = emit(arith.SubiOp(trips, done))
            some = emit(arith.MinSIOp(left, size))
            self.first = emit(arith.SubiOp(left, some))
            self.run_again(self.first, some)
            yield some, self.first
            sweep.append(array.YieldOp())
        sweep.append(array.LoopOp(count, [], body))

    def _allocate(self, save: Save, size: SSAValue, zero: SSAValue, last: SSAValue) -> SSAValue:
        """The tapes of some iterations, each as long as the longest of all."""
        emit, loop = self.sweep.emit, self.replay.loop

        def longest(number: SSAValue) -> SSAValue:
            known = {loop.induction: last if (slope(number, loop) or 0) > 0 else zero}

            def get(value: SSAValue) -> SSAValue:
                if value not in known:
                    inside = isinstance(value.owner, Operation) and is_inside(value, loop)
                    known[value] = (
                        emit(computed_again(value.owner, get))
                        if inside and isinstance(value.owner, Operation)
                        else self.primal.get(value)
                    )
                return known[value]

            return emit(arith.MaxSIOp(get(number), zero))

        def extent(base: SSAValue, axis: int) -> SSAValue:
            return extents_of(self.primal.forward.values[base], emit)[axis]

        *others, row = [size, *save.segment.sizes(longest, extent, emit)]
        if others:
            row = whole_lines(row, save.stored, emit)
        tapes = array.AllocOp([*others, row], save.stored)
        tapes.attributes[ad.TAPES] = UnitAttr()
        made = emit(tapes)
        made.name_hint = f"{hint_of(save)}_tapes"
        return made

    def before(self, induction: SSAValue, done: SSAValue) -> None:
        """Say which of the tapes the reverse of an iteration takes."""
        assert self.first is not None
        place = self.sweep.emit(arith.SubiOp(induction, self.first))
        self.primal.forward.rows |= {s: (rows, place) for s, rows in self.rows_of.items()}
