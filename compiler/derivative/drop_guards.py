"""Gradients without the guards of strong zeros, which say so where that is not exact.

A guard (`ad.mul`, `ad.div`) makes 0 of 0 times what is not finite. Without it that is NaN. A cotangent is
only added up, multiplied, divided and chosen by values of the primal, and a NaN stays one in all of this. So
each cotangent of a sweep without guards is that of the sweep with them, or NaN. Where no gradient holds
a NaN at the end, all of them are exact::

    %p = ad.mul %y_bar, %x : f64             %p = arith.mulf %y_bar, %x : f64
    ...                                      ...
    func.return %p : f64                     %wrong = arith.cmpf uno, %p, %p : f64
                                             ad.retry_if %wrong
                                             func.return %p : f64

Elsewhere the caller runs code with guards in its place. That needs a call which can be made again: one that
stores to none of its arguments, prints nothing and calls no foreign code.

Refused, too, where a cotangent reaches an op that may turn a NaN into a number (a comparison, a minimum, a
conversion to an integer, or any that is not listed here) or a result, and where looking at the gradients
costs more than the guards: see `worthwhile`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    f64,
)
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import ad, array
from ..analysis.alias import AliasAnalysis, enclosing_loops
from ..analysis.effects import is_private
from ..rules import reads, writes
from ..transforms.map_outputs import is_pure

LINEAR: dict[type[Operation], tuple[int, ...]] = {
    arith.AddfOp: (0, 1),
    arith.SubfOp: (0, 1),
    arith.NegfOp: (0,),
    arith.MulfOp: (0, 1),
    arith.DivfOp: (0,),
    arith.ExtFOp: (0,),
    arith.TruncFOp: (0,),
    arith.SelectOp: (1, 2),
    array.CastOp: (0,),
    math.FmaOp: (0, 1, 2),
    ad.MulOp: (0, 1),
    ad.DivOp: (0,),
}
"""The operands of an op that are NaN only if its result is, or is not chosen."""

PLAIN = (
    *(memref.AllocaOp, memref.LoadOp, memref.StoreOp, memref.DimOp, memref.CastOp),
    *(array.AllocOp, array.ViewOp, array.CollapseOp, array.StrideOp, array.OverlapOp),
    *(array.LoopOp, array.ConditionOp, array.MapOp, array.YieldOp, array.MatmulOp),
    *(array.IndexOp, array.RaiseIfOp, array.CheckedIntOp, ad.TapeOp, ad.PushOp, ad.PopOp),
    *(scf.IfOp, scf.YieldOp, func.ReturnOp),
)
"""Ops that can be run again, as all without effects can."""

FEW = 4
"""So many guards of an element cost more than to look at its gradient (2 do not, 6 do); in scalar code 1."""


@dataclass(frozen=True)
class DropGuards(ModulePass):
    """Make guarded products and quotients of a gradient plain, and check what comes out."""

    name = "drop-guards"
    unchecked: bool = False
    """All is assumed to be finite (`fastmath`): no guard stays, and nothing is looked at."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if self.unchecked:
            make_plain(guards_among(op.walk()))
            return
        for function in [one for one in op.ops if isinstance(one, func.FuncOp)]:
            if "shadows" in function.attributes and not is_private(function):
                gradient = Gradient(function)
                if gradient.can_run_again() and gradient.worthwhile() and gradient.reached():
                    gradient.drop()


class Gradient:
    """A gradient function, and what its guards reach."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.ops = list(function.walk())
        self.guards = guards_among(self.ops)
        block = function.body.block
        terminator = block.last_op
        assert isinstance(terminator, func.ReturnOp)
        self.end = terminator
        count, arrays = (self._listed(name) for name in ("cotangents", "shadows"))
        first = len(block.args) - len(count) - len(arrays)
        self.shadows = block.args[first : first + len(arrays)]
        self.first_scalar = len(terminator.arguments) - len(self._listed("scalars"))

    @property
    def scalars(self) -> Sequence[SSAValue]:
        """The gradients that are returned."""
        return self.end.arguments[self.first_scalar :]

    def _listed(self, name: str) -> Sequence[int]:
        listed = self.function.attributes[name]
        assert isinstance(listed, DenseArrayBase)
        return [int(v) for v in listed.get_values()]

    def can_run_again(self) -> bool:
        """Whether a call leaves nothing behind but gradients."""
        alias = AliasAnalysis(self.function)
        own = set(self.shadows)
        for op in self.ops:
            if op is not self.function and not isinstance(op, PLAIN) and not is_pure(op):
                return False
            for access in writes(op):
                roots = alias.roots(access.memref)
                if any(isinstance(r, BlockArgument) and r not in own for r in roots):
                    return False
        return True

    def worthwhile(self) -> bool:
        """Whether guards cost more than to look at the gradients."""
        ranks = [s.type.get_num_dims() for s in self.shadows if isinstance(s.type, MemRefType)]
        rank, weight = max(ranks, default=0), 0
        for guard in self.guards:
            depth = depth_of(guard)
            if depth > rank:
                return True
            if depth == rank > 0:
                weight += 1 if isinstance(guard.parent_op(), array.MapOp) else FEW
        return weight >= FEW * max(len(ranks), 1)

    def reached(self) -> bool:
        """Whether a NaN for want of a guard stays one as far as it goes: into gradients, or nowhere."""
        return Reach(self).is_kept()

    def drop(self) -> None:
        make_plain(self.guards)
        self._check()

    def _check(self) -> None:
        """Look for NaN among the gradients, before they are returned: count them."""
        counter = Counter(self.end)
        for shadow in self.shadows:
            counter.count_elements(shadow)
        for value in self.scalars:
            counter.add(counter.count(value))
        zero = counter.emit(arith.ConstantOp(FloatAttr(0.0, f64)))
        total = counter.emit(memref.LoadOp.get(counter.cell, []))
        counter.emit(ad.RetryIfOp(counter.emit(arith.CmpfOp(total, zero, "ogt"))))


def guards_among(ops: Iterable[Operation]) -> list[ad.MulOp | ad.DivOp]:
    return [op for op in ops if isinstance(op, ad.MulOp | ad.DivOp)]


def make_plain(guards: Iterable[ad.MulOp | ad.DivOp]) -> None:
    """Put a plain product or quotient in the place of each."""
    for op in guards:
        parent = op.parent
        assert parent is not None
        plain = arith.MulfOp if isinstance(op, ad.MulOp) else arith.DivfOp
        made = plain(op.lhs, op.rhs)
        made.attributes, made.location = dict(op.attributes), op.location
        made.result.name_hint = op.result.name_hint
        parent.insert_op_before(made, op)
        op.result.replace_all_uses_with(made.result)
        op.detach()
        op.erase()


class Counter:
    """Code before an op that counts NaNs in a cell. (Truths: nothing that may be folded as x - x is.)"""

    def __init__(self, before: Operation) -> None:
        self.before = before
        zero = self.emit(arith.ConstantOp(FloatAttr(0.0, f64)))
        self.cell = self.emit(memref.AllocaOp.get(f64, shape=[]))
        self.cell.name_hint = "wrong"
        self.emit(memref.StoreOp.get(zero, self.cell, []))

    def emit(self, op: Operation) -> SSAValue:
        """Insert an op; its first result, if it has any."""
        block = self.before.parent
        assert block is not None
        for one in op.walk():
            one.location = self.before.location
        block.insert_op_before(op, self.before)
        return op.results[0] if op.results else self.cell

    def count(self, value: SSAValue) -> SSAValue:
        """1 for NaN, 0 for a number."""
        made = counted(value)
        for op in made:
            self.emit(op)
        return made[-1].results[0]

    def add(self, number: SSAValue) -> None:
        total = self.emit(memref.LoadOp.get(self.cell, []))
        self.emit(memref.StoreOp.get(self.emit(arith.AddfOp(total, number)), self.cell, []))

    def count_elements(self, array_: SSAValue) -> None:
        assert isinstance(array_.type, MemRefType)
        zero = self.emit(arith.ConstantOp(IntegerAttr(0, IndexType())))
        extents: list[SSAValue] = []
        for k in range(array_.type.get_num_dims()):
            axis = self.emit(arith.ConstantOp(IntegerAttr(k, IndexType())))
            extents.append(self.emit(memref.DimOp(array_, axis)))
        rank = len(extents)
        view = self.emit(array.ViewOp(self.cell, [], [-1] * rank, extents, [zero] * rank))
        body = Block(arg_types=[array_.type.element_type])
        made = counted(body.args[0])
        body.add_ops([*made, array.YieldOp([made[-1].results[0]])])
        self.emit(array.MapOp(extents, [array_], [view], ["add"], body))


def counted(value: SSAValue) -> list[Operation]:
    """Ops the last of which gives 1 for NaN, 0 for a number."""
    one, none = (arith.ConstantOp(FloatAttr(x, f64)) for x in (1.0, 0.0))
    is_nan = arith.CmpfOp(value, value, "uno")
    return [one, none, is_nan, arith.SelectOp(is_nan.result, one.result, none.result)]


def depth_of(op: Operation) -> int:
    """In how many dimensions an op is done again and again: of loops, and of a map."""
    parent = op.parent_op()
    points = len(parent.extents) if isinstance(parent, array.MapOp) else 0
    return len(enclosing_loops(op)) + points


class Reach:
    """What a NaN comes to that a guard would have kept back: numbers and memory."""

    def __init__(self, gradient: Gradient) -> None:
        self.gradient = gradient
        self.alias = AliasAnalysis(gradient.function)
        self.numbers: set[SSAValue] = set()
        self.memory: set[SSAValue] = set()
        """Roots."""
        self.waiting: list[SSAValue] = []
        self.readers: dict[SSAValue, list[tuple[Operation, SSAValue]]] = {}
        """By root, what reads it: the op, and the number that is read; of a product what it writes to."""
        for op in gradient.ops:
            for source, target in sources_of(op):
                for root in self.alias.roots(source):
                    self.readers.setdefault(root, []).append((op, target))
        arrays = (v for v in gradient.end.arguments if isinstance(v.type, MemRefType))
        self.returned = {root for array_ in arrays for root in self.alias.roots(array_)}

    def is_kept(self) -> bool:
        """Whether it comes to nothing that makes a number of it."""
        for guard in self.gradient.guards:
            self.reach(guard.result)
        while self.waiting:
            value = self.waiting.pop()
            if not all(self.use(use.operation, use.index) for use in value.uses):
                return False
        return True

    def reach(self, value: SSAValue) -> bool:
        if value not in self.numbers:
            self.numbers.add(value)
            self.waiting.append(value)
        return True

    def use(self, op: Operation, index: int) -> bool:
        """Follow one use of a number; False where it cannot be followed."""
        match op:
            case memref.StoreOp():
                return index == 0 and self.reach_memory(op.memref)
            case array.YieldOp() if isinstance(over := op.parent_op(), array.MapOp):
                return over.out_kinds[index] in ("store", "add") and self.reach_memory(
                    over.outs[index]
                )
            case scf.YieldOp():
                branch = op.parent_op()
                return isinstance(branch, scf.IfOp) and self.reach(branch.results[index])
            case func.ReturnOp():
                return index >= self.gradient.first_scalar
            case _:
                known = index in LINEAR.get(type(op), ())
                return known and is_float(op.results[0]) and self.reach(op.results[0])

    def reach_memory(self, memory: SSAValue) -> bool:
        """Follow what is stored, but not to tapes: what is popped has a root of its own."""
        for root in self.alias.roots(memory):
            for one in self.alias.interfering(root):
                if one in self.memory:
                    continue
                self.memory.add(one)
                if isinstance(one.owner, ad.PushOp | ad.PopOp) or not self.is_ours(one):
                    return False
                if not all(self.read(op, target) for op, target in self.readers.get(one, ())):
                    return False
        return True

    def is_ours(self, root: SSAValue) -> bool:
        """Whether memory is made here and stays here, or holds a gradient that is looked at."""
        if isinstance(root, BlockArgument):
            return root in self.gradient.shadows
        return root not in self.returned

    def read(self, op: Operation, target: SSAValue) -> bool:
        return self.reach_memory(target) if isinstance(op, array.MatmulOp) else self.reach(target)


def sources_of(op: Operation) -> Iterator[tuple[SSAValue, SSAValue]]:
    """What an op reads, each with the number that it is, or with what a product is written to."""
    match op:
        case memref.LoadOp():
            yield op.memref, op.res
        case array.MapOp():
            yield from zip(op.ins, op.body.block.args, strict=True)
        case array.MatmulOp():
            yield from ((factor, op.c) for factor in (op.a, op.b))
        case _:
            assert not reads(op), op.name


def is_float(value: SSAValue) -> bool:
    return isinstance(value.type, AnyFloat)
