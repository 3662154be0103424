"""Scalar replacement over iterations: an element that the next one stores to again stays in a register.

The adjoint of `u[i] = f(u[i], u[i + 1])` adds to two neighbours in each iteration, and the next iteration
adds to one of them again. So no two iterations may change places, and `distribute-loops` splits the loop: one
sum goes through a small array, to a loop of its own. If an iteration hands the element on in a cell, which is
a register, each element is loaded once and stored once, and LLVM makes vectors of the loop as it is (a
fixed-order recurrence). Runs before `distribute-loops`, which then finds less to split.

Before::

    func.func @f(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
      %c1 = arith.constant 1 : index
      %trips = array.loop %i to %n do {
        %j = arith.addi %i, %c1 : index
        %a = memref.load %s[%i] : memref<?xf64>
        %x = memref.load %v[%i] : memref<?xf64>
        %b = arith.addf %a, %x : f64
        memref.store %b, %s[%i] : memref<?xf64>
        %c = memref.load %s[%j] : memref<?xf64>
        %d = arith.addf %c, %x : f64
        memref.store %d, %s[%j] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
      %c1 = arith.constant 1 : index
      %0 = arith.constant 0 : index
      %1 = arith.cmpi slt, %0, %n : index
      %s_ahead = memref.alloca() : memref<f64>
      scf.if %1 {
        %2 = memref.load %s[%0] : memref<?xf64>
        memref.store %2, %s_ahead[] : memref<f64>
      } else {
      }
      %trips = array.loop %i to %n do {
        %a = memref.load %s_ahead[] : memref<f64>
        %j = arith.addi %i, %c1 : index
        %x = memref.load %v[%i] : memref<?xf64>
        %b = arith.addf %a, %x : f64
        %c = memref.load %s[%j] : memref<?xf64>
        %d = arith.addf %c, %x : f64
        memref.store %d, %s_ahead[] : memref<f64>
        memref.store %b, %s[%i] : memref<?xf64>
        array.yield
      }
      %3 = arith.constant 1 : index
      %4 = arith.subi %n, %3 : index
      scf.if %1 {
        %5 = memref.load %s_ahead[] : memref<f64>
        %j_1 = arith.addi %4, %c1 : index
        memref.store %5, %s[%j_1] : memref<?xf64>
      } else {
      }
      func.return
    }

Why it is the same: the loop touches two places of the array, one iteration apart. What an iteration leaves at
the place ahead is what the next one finds, and that one is the last to touch it. So every element is computed
by the same ops in the same order. The first iteration finds what is in memory; what the last one leaves ahead
is stored behind the loop.

Kept: arrays with a third place in the loop, or that may be touched under another name; an iteration that does
not store to both places; loops that branch, raise, or hold other loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.affine import Affine, Subscripts
from ..analysis.alias import AliasAnalysis
from ..diagnostics import locate
from ..rules.table import index_constant
from .distribute_loops import leaves
from .interchange import known_before
from .memory_effects import functions
from .stage_plan import is_pure, scalar_ops

Touch = memref.LoadOp | memref.StoreOp


@dataclass(frozen=True)
class ScalarReplaceCarried(ModulePass):
    """Keep an element that the next iteration loads, and stores to again, in a scalar."""

    name = "scalar-replace-carried"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            alias: AliasAnalysis | None = None
            for loop in list(leaves(function.body.block)):
                if stores_in_pairs(loop):
                    alias = alias or AliasAnalysis(function)
                    for pair in pairs_of(loop, alias):
                        pair.hand_on()


def stores_in_pairs(loop: array.LoopOp) -> bool:
    """Whether something is stored to twice; nothing in the loop raises or branches."""
    ops = scalar_ops(loop)
    stored = [op.memref for op in ops if isinstance(op, memref.StoreOp) and op.indices]
    plain = all(isinstance(op, Touch) or is_pure(op) for op in ops)
    return plain and len(stored) > len(set(stored))


def pairs_of(loop: array.LoopOp, alias: AliasAnalysis) -> list[Pair]:
    touching = [op for op in scalar_ops(loop) if isinstance(op, Touch)]
    stored = dict.fromkeys(op.memref for op in touching if isinstance(op, memref.StoreOp))
    found: list[Pair] = []
    for base in stored:
        near = [op for op in touching if alias.may_alias(op.memref, base)]
        if all(op.memref is base for op in near):
            pair = pair_of(loop, near)
            if pair is not None:
                found.append(pair)
    return found


def pair_of(loop: array.LoopOp, touching: Sequence[Touch]) -> Pair | None:
    """The two places of an array in a loop, if each iteration stores to both, and meets the one before."""
    forms = Subscripts()
    places = {op: tuple(map(forms.affine, op.indices)) for op in touching}
    kinds = list(dict.fromkeys(places.values()))
    if len(kinds) != 2:
        return None
    counter = loop.induction
    if not all(goes_by_counter(form, loop) for place in kinds for form in place):
        return None
    for behind, ahead in (kinds, kinds[::-1]):
        if tuple(form + form.terms.get(counter, 0) for form in behind) == ahead:
            at = {op: place == ahead for op, place in places.items()}
            stored = {at[op] for op in touching if isinstance(op, memref.StoreOp)}
            return Pair(loop, at) if len(stored) == 2 else None
    return None


def goes_by_counter(form: Affine, loop: array.LoopOp) -> bool:
    """Whether nothing but a multiple of the counter differs between iterations."""
    slope = form.terms.get(loop.induction, 0)
    return known_before(form - Affine({loop.induction: slope}), loop)


@dataclass(frozen=True)
class Pair:
    """Two places of an array that a loop touches, one iteration apart."""

    loop: array.LoopOp
    ahead: dict[Touch, bool]
    """What touches the array, in order, and whether at the place that the next iteration is at, too."""

    def hand_on(self) -> None:
        loop = self.loop
        assert loop.count is not None
        first = next(op for op in self.ahead if not self.ahead[op])
        last = next(op for op in self.ahead if self.ahead[op])
        base = first.memref
        before, behind = Place(loop), Place(loop.next_op or loop)
        zero = before.put(index_constant(0))
        runs = before.put(arith.CmpiOp(zero, loop.count, "slt"))
        cell = before.put(memref.AllocaOp.get(self._number(), shape=[]))
        cell.name_hint = f"{base.name_hint or 'array'}_ahead"
        if isinstance(first, memref.LoadOp):
            inside = before.branch(runs)
            found = inside.put(memref.LoadOp.get(base, inside.subscripts(first, loop, zero)))
            inside.put(memref.StoreOp.get(found, cell, []))
        self._rewrite(cell)
        one = behind.put(index_constant(1))
        final = behind.put(arith.SubiOp(loop.count, one))
        inside = behind.branch(runs)
        left = inside.put(memref.LoadOp.get(cell, []))
        inside.put(memref.StoreOp.get(left, base, inside.subscripts(last, loop, final)))
        for op in self.ahead:
            if self.ahead[op] and isinstance(op, memref.StoreOp):
                Rewriter.erase_op(op)

    def _number(self) -> Attribute:
        op = next(iter(self.ahead))
        return op.results[0].type if isinstance(op, memref.LoadOp) else op.value.type

    def _rewrite(self, cell: SSAValue) -> None:
        """Let the body load from the cell, or what it has stored before, and store to it at its end."""
        block = self.loop.body.block
        start, end = Place(block.first_op or self.loop), Place(block.last_op or self.loop)
        known: dict[bool, SSAValue] = {}
        stores: list[memref.StoreOp] = []
        for op, ahead in self.ahead.items():
            if isinstance(op, memref.StoreOp):
                known[ahead] = op.value
                stores += [] if ahead else [op]
            elif ahead in known:
                Rewriter.replace_op(op, [], [known[ahead]])
            elif ahead:
                known[ahead] = op.results[0]
            else:
                known[ahead] = start.put(memref.LoadOp.get(cell, []))
                Rewriter.replace_op(op, [], [known[ahead]])
        end.put(memref.StoreOp.get(known[True], cell, []))
        *dead, last = stores
        last.detach()
        end.put(last)  # LLVM moves no store past what it hands on
        for store in dead:
            Rewriter.erase_op(store)


@dataclass(frozen=True)
class Place:
    """Puts ops before an op, located where that is."""

    op: Operation

    def put(self, op: Operation) -> SSAValue:
        locate(op, self.op.location)
        block = self.op.parent_block()
        assert block is not None
        block.insert_op_before(op, self.op)
        return op.results[0] if op.results else op.operands[0]

    def branch(self, condition: SSAValue) -> Place:
        """Where ops run only if the condition holds."""
        end = scf.YieldOp()
        locate(end, self.op.location)
        other = Block([scf.YieldOp()])
        self.put(scf.IfOp(condition, [], Region(Block([end])), Region(other)))
        return Place(end)

    def subscripts(self, op: Touch, loop: array.LoopOp, counter: SSAValue) -> list[SSAValue]:
        """The subscripts of an op of the loop, computed anew for a value of its counter."""
        made: dict[SSAValue, SSAValue] = {loop.induction: counter}

        def anew(value: SSAValue) -> SSAValue:
            owner = value.owner
            if value not in made and isinstance(owner, Operation) and loop.is_ancestor(owner):
                made[value] = self.put(owner.clone({v: anew(v) for v in owner.operands}))
            return made.get(value, value)

        return [anew(index) for index in op.indices]
