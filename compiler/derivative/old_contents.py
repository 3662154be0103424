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

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Extent, Symbol
from ..rules.builders import common_type
from .overwritten import Answer, Instance
from .plan import Save
from .segments import value_block
from .store_iterations import Conditions
from .sweeps import Primal


class OldContents:
    """Writes the loads, in the prologue of the reverse of a block."""

    def __init__(self, primal: Primal, block: Block) -> None:
        self.primal = primal
        self.block = block

    def scalar(self, answer: Answer) -> SSAValue:
        """What a load read, or a store wrote."""
        found = [self._element(one) for one in answer.instances]
        conditions = [self._holds(one.where) for one in answer.instances]
        if answer.may_survive:
            op = answer.access.op
            assert isinstance(op, memref.LoadOp | memref.StoreOp)
            source = self.primal.memref(op.memref, "primal")
            found.append((source, [self.primal.get(i) for i in op.indices]))
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
            found.append(self.primal.memref(answer.access.memref, "primal"))
        type_ = common_type([cast(MemRefType[Attribute], v.type) for v in found])
        view = self._cast(found.pop(), type_)
        for other, holds in reversed(list(zip(found, conditions, strict=False))):
            assert holds is not None
            taken = [Block([scf.YieldOp(v)]) for v in (self._cast(other, type_), view)]
            branch = scf.IfOp(holds, [type_], [taken[0]], [taken[1]])
            branch.location = answer.access.op.location
            view = self._emit(branch)
        return view

    def _view(self, answer: Answer, one: Instance, extents: Sequence[SSAValue]) -> SSAValue:
        """The part of a segment that an instance of a store is, as a point of the read goes through all."""
        save = self._save(one)
        dims = [-1] * len(answer.dims)
        steps = [0] * len(answer.dims)
        offsets: list[SSAValue] = []
        for axis, (q, first) in enumerate(zip(one.at, firsts_of(one, save), strict=True)):
            for position, dim in enumerate(answer.dims):
                if dim in q.terms:
                    dims[position], steps[position] = axis, q.terms[dim]
            start = Affine({s: f for s, f in q.terms.items() if s not in answer.dims}, q.constant)
            offsets.append(self.number(start - first))
        strides = [self.primal.prologues.index(s, self.block) for s in steps]
        view = array.ViewOp(self.primal.segment(save), offsets, dims, list(extents), strides)
        view.location = answer.access.op.location
        return self._emit(view)

    def _cast(self, view: SSAValue, type_: MemRefType[Attribute]) -> SSAValue:
        return view if view.type == type_ else self._emit(memref.CastOp.get(view, type_))

    def _save(self, one: Instance) -> Save:
        save = self.primal.plan.save_of(one.of)
        assert save is not None
        return save

    def _element(self, one: Instance) -> tuple[SSAValue, list[SSAValue]]:
        """The segment and the place in it of an instance."""
        save = self._save(one)
        firsts = firsts_of(one, save)
        places = [self.number(q - first) for q, first in zip(one.at, firsts, strict=True)]
        return self.primal.segment(save), places

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
            return self.primal.get(value)
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
