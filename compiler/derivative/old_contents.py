"""Primal values of the reverse sweep from the saved old contents of stores.

Where the store of iteration %q, if there is one, is the first to overwrite what was read, the value is ::

    %y = scf.if %q_exists -> (f64) {
      %a = memref.load %u_saved[%q]
      scf.yield %a : f64
    } else {
      %b = memref.load %u[%i]           // never overwritten: it survives
      scf.yield %b : f64
    }

and the first load alone where the store always comes (see `overwritten`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Extent, Symbol
from ..rules.builders import common_type, transfer
from ..rules.sweeps import PRIMAL
from .overwritten import Answer, Instance, decides
from .plan import Save
from .segments import value_block
from .store_iterations import Conditions
from .sweeps import Primal


class OldContents:
    """Writes the loads, in the prologue of the reverse of a block."""

    def __init__(
        self,
        primal: Primal,
        block: Block,
        get: Callable[[SSAValue], SSAValue] | None = None,
        find: Callable[[SSAValue], SSAValue] | None = None,
    ) -> None:
        """`get` finds numbers, and `find` memory, where not those of the current iteration are meant."""
        self.primal = primal
        self.block = block
        self._get = get or primal.get
        self._find = find or self._memory

    def _memory(self, value: SSAValue) -> SSAValue:
        return self.primal.memref(value, PRIMAL)

    def scalar(self, answer: Answer) -> SSAValue:
        """What a load read, or a store wrote."""
        found = [self._element(one) for one in answer.instances]
        conditions = [self._holds(one.where) for one in answer.instances]
        if answer.may_survive:
            op = answer.access.op
            assert isinstance(op, memref.LoadOp | memref.StoreOp)
            found.append((self._find(op.memref), [self._get(i) for i in op.indices]))
        else:
            conditions[-1] = None
        like = answer.access.op
        block = Block()
        value = self._load(found.pop(), block, like)
        for place, holds in reversed(list(zip(found, conditions, strict=False))):
            assert holds is not None
            taken = Block()
            element = self._load(place, taken, like)
            taken.add_op(scf.YieldOp(element))
            block.add_op(scf.YieldOp(value))
            branch = scf.IfOp(holds, [element.type], Region(taken), Region(block))
            branch.location = like.location
            block = Block([branch])
            value = branch.results[0]
        for op in tuple(block.ops):
            op.detach()
            self.primal.prologues.append(self.block, op)
        return value

    def view(self, answer: Answer, extents: Sequence[SSAValue]) -> SSAValue:
        """What an op read as a whole, or a map wrote: a view of a segment, or the memory that survives."""
        found = [self._view(answer, one, extents) for one in answer.instances]
        conditions = [self._holds(one.where) for one in answer.instances]
        if answer.may_survive:
            found.append(self.primal.memref(answer.access.memref, PRIMAL))
        type_ = common_type([cast(MemRefType[Attribute], v.type) for v in found])
        view = self._cast(found.pop(), type_)
        for other, holds in reversed(list(zip(found, conditions, strict=False))):
            assert holds is not None
            taken = [Block([scf.YieldOp(v)]) for v in (self._cast(other, type_), view)]
            branch = scf.IfOp(holds, [type_], [taken[0]], [taken[1]])
            branch.location = answer.access.op.location
            view = self._emit(branch)
        return view

    def mosaic(self, answer: Answer, extents: Sequence[SSAValue]) -> SSAValue:
        """A copy of what was read as a whole: what survives, and over that the box of each instance."""
        memory = answer.access.memref
        alloc = array.AllocOp(extents, cast(MemRefType[Attribute], memory.type).element_type)
        alloc.location = answer.access.op.location
        copy = self._emit(alloc)
        if answer.may_survive:
            survivor = transfer(self.primal.memref(memory, PRIMAL), copy, extents)
            survivor.location = alloc.location
            self._emit(survivor)
        for one in reversed(answer.instances):
            self._lay(answer, one, copy, extents)
        return copy

    def _lay(
        self, answer: Answer, one: Instance, copy: SSAValue, extents: Sequence[SSAValue]
    ) -> None:
        """Copy the box in which an instance is the first to overwrite."""
        boxes = [self._range(d, e, one.where) for d, e in zip(answer.dims, extents, strict=True)]
        starts, counts = [s for s, _ in boxes], [c for _, c in boxes]
        source = self._view(answer, one, counts, starts)
        ones = [self._constant(1)] * len(starts)
        target = self._emit(array.ViewOp(copy, starts, list(range(len(starts))), counts, ones))
        laid = transfer(source, target, counts)
        laid.location = answer.access.op.location
        holds = self._holds(tuple(w for w in one.where if not decides(w, answer.dims)))
        if holds is None:
            self._emit(laid)
            return
        sides = [Block([laid, scf.YieldOp()]), Block([scf.YieldOp()])]
        branch = scf.IfOp(holds, [], [sides[0]], [sides[1]])
        branch.location = laid.location
        self._emit(branch)

    def _range(
        self, dim: SSAValue, extent: SSAValue, where: Conditions
    ) -> tuple[SSAValue, SSAValue]:
        """The first of the subscripts that meet all conditions, and how many there are."""
        start, end = self._constant(0), extent
        for number in where:
            factor = number.terms.get(dim, 0)
            rest = number - Affine.of(dim) * factor
            if factor > 0:
                start = self._emit(arith.MaxSIOp(start, self.number(-rest)))
            elif factor < 0:
                end = self._emit(arith.MinSIOp(end, self.number(rest + 1)))
        count = self._emit(arith.SubiOp(end, start))
        return start, self._emit(arith.MaxSIOp(count, self._constant(0)))

    def _view(
        self,
        answer: Answer,
        one: Instance,
        extents: Sequence[SSAValue],
        starts: Sequence[SSAValue] = (),
    ) -> SSAValue:
        """The part of a segment that an instance of a store is, as a point of the read goes through all.

        Or through those from `starts` on.
        """
        save = self._save(one)
        dims = [-1] * len(answer.dims)
        steps = [0] * len(answer.dims)
        offsets: list[SSAValue] = []
        for axis, (q, first) in enumerate(zip(one.at, firsts_of(one, save), strict=True)):
            for position, dim in enumerate(answer.dims):
                if dim in q.terms:
                    dims[position], steps[position] = axis, q.terms[dim]
            start = Affine({s: f for s, f in q.terms.items() if s not in answer.dims}, q.constant)
            offset = self.number(start - first)
            if starts and axis in dims:
                walked = dims.index(axis)
                step = self._constant(steps[walked])
                skipped = self._emit(arith.MuliOp(starts[walked], step))
                offset = self._emit(arith.AddiOp(offset, skipped))
            offsets.append(offset)
        strides = [self.primal.prologues.index(s, self.block) for s in steps]
        view = array.ViewOp(self.segment(save), offsets, dims, list(extents), strides)
        view.location = answer.access.op.location
        return self._emit(view)

    def _cast(self, view: SSAValue, type_: MemRefType[Attribute]) -> SSAValue:
        return view if view.type == type_ else self._emit(memref.CastOp.get(view, type_))

    def segment(self, save: Save) -> SSAValue:
        return self.primal.segment(save)

    def _save(self, one: Instance) -> Save:
        save = self.primal.plan.save_of(one.of)
        assert save is not None
        return save

    def _element(self, one: Instance) -> tuple[SSAValue, list[SSAValue]]:
        """The segment and the place in it of an instance."""
        save = self._save(one)
        firsts = firsts_of(one, save)
        places = [self.number(q - first) for q, first in zip(one.at, firsts, strict=True)]
        return self.segment(save), places

    def _load(
        self, place: tuple[SSAValue, Sequence[SSAValue]], block: Block, like: Operation
    ) -> SSAValue:
        load = memref.LoadOp.get(*place)
        load.location = like.location
        block.add_op(load)
        return load.res

    def _holds(self, where: Conditions) -> SSAValue | None:
        """All numbers are at least 0; None where there are none."""
        holds: SSAValue | None = None
        for number in where:
            above = Affine(
                {s: f for s, f in number.terms.items() if f > 0}, max(number.constant, 0)
            )
            below = above - number
            compare = arith.CmpiOp(self.number(above), self.number(below), "sge")
            one = self._emit(compare)
            holds = one if holds is None else self._emit(arith.AndIOp(holds, one))
        return holds

    def _emit(self, op: Operation) -> SSAValue:
        return self.primal.prologues.append(self.block, op)

    # Numbers.

    def number(self, value: Affine) -> SSAValue:
        """A linear combination, computed."""
        total: SSAValue | None = None
        for symbol, factor in value.terms.items():
            part = self._symbol(symbol)
            if abs(factor) != 1:
                part = self._emit(arith.MuliOp(part, self._constant(abs(factor))))
            if total is None:
                total = part if factor > 0 else self._emit(arith.SubiOp(self._constant(0), part))
            else:
                total = self._emit((arith.AddiOp if factor > 0 else arith.SubiOp)(total, part))
        if total is None:
            return self._constant(value.constant)
        if value.constant:
            total = self._emit(arith.AddiOp(total, self._constant(value.constant)))
        return total

    def _constant(self, value: int) -> SSAValue:
        return self.primal.prologues.index(value, self.block)

    def _symbol(self, symbol: Symbol) -> SSAValue:
        if isinstance(symbol, SSAValue):
            return self._value(symbol)
        if isinstance(symbol, Extent):
            return self.primal.extent(symbol.memref, symbol.axis, self.block)
        a, b = map(self.number, symbol.args)
        return self._emit(TERMS[symbol.kind](a, b))

    def _value(self, value: SSAValue) -> SSAValue:
        """A value of a block around this one, or pure code on such values wherever it stands."""
        home = value_block(value)
        if home is self.primal.top or home in self.primal.prologues:
            return self._get(value)
        assert isinstance(value.owner, Operation)
        return self.primal.compute(value.owner, self.block, self._value)


def firsts_of(one: Instance, save: Save) -> list[int]:
    """For each dimension of a segment, the first counter that is saved."""
    firsts = [first for first, _ in save.margins]
    return firsts + [0] * (len(one.at) - len(firsts))


TERMS = {
    "max": arith.MaxSIOp,
    "min": arith.MinSIOp,
    "floordiv": arith.FloorDivSIOp,
    "mul": arith.MuliOp,
}
"""The operation that each kind of `Term` is."""
