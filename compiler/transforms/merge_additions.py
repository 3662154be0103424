"""Add to an array once where two maps of the adjoint add to it, one after the other.

The adjoint of `r = np.dot(q, a); a -= q * r` adds to the shadow of `q` for the update, and, when it knows the
cotangent of `r`, for the sum. The later map adds both terms: it has at hand what the first one is made of. So
the shadow is loaded and stored once, and each iteration adds one number to it, which several iterations that
run at once can do in their order (`jam-maps`).

Before::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<f64>, %r : f64, %n : index) {
      %c0 = arith.constant 0 : index
      %sum = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
      array.map(%n) ins(%x : memref<?xf64>)
          outs(%y, %sum : memref<?xf64>, memref<?xf64, strided<[0]>>) kinds ["add", "add"] {
      ^bb0(%a : f64):
        %b = arith.mulf %a, %r {ad.adjoint} : f64
        array.yield %b, %a : f64, f64
      }
      %t = memref.load %s[] : memref<f64>
      array.map(%n) outs(%y, %x : memref<?xf64>, memref<?xf64>) kinds ["add", "add"] {
        %c = arith.mulf %t, %r {ad.adjoint} : f64
        array.yield %c, %t : f64, f64
      }
      func.return
    }

After::

    func.func @f(%x : memref<?xf64>, %y : memref<?xf64>, %s : memref<f64>, %r : f64, %n : index) {
      %c0 = arith.constant 0 : index
      %sum = array.view %s[] dims [-1] extents(%n) steps(%c0) : memref<f64> -> memref<?xf64, strided<[0]>>
      array.map(%n) ins(%x : memref<?xf64>)
          outs(%sum : memref<?xf64, strided<[0]>>) kinds ["add"] {
      ^bb0(%a : f64):
        array.yield %a : f64
      }
      %t = memref.load %s[] : memref<f64>
      array.map(%n) ins(%x : memref<?xf64>)
          outs(%y, %x : memref<?xf64>, memref<?xf64>) kinds ["add", "add"] {
      ^bb0(%a : f64):
        %c = arith.mulf %t, %r {ad.adjoint} : f64
        %b = arith.mulf %a, %r {ad.adjoint} : f64
        %d = arith.addf %b, %c {ad.adjoint} : f64
        array.yield %d, %t : f64, f64
      }
      func.return
    }

Kept: sums of the primal, whose terms have an order; terms made of what the later map does not touch, or of
more than products and sums; and where something in between, or one of the maps itself, touches the array
in another way, or stores to what the term is made of.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, math
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import ad, array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.alias import AliasAnalysis
from ..analysis.in_place import stands_still
from ..diagnostics import locate
from ..rules import Access, accesses, rule_of
from ..rules.table import ADJOINT
from .map_outputs import with_outputs
from .memory_effects import functions

CHEAP = arith.AddfOp | arith.SubfOp | arith.MulfOp | arith.NegfOp | math.FmaOp | ad.MulOp


@dataclass(frozen=True)
class MergeAdditions(ModulePass):
    """Let the later of two maps that add to an array add both terms."""

    name = "merge-additions"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            memory = Memory(AliasAnalysis(function))
            for one in reversed(list(ops_of_kind(function, array.MapOp))):
                self.merged(one, memory)

    def merged(self, one: array.MapOp, memory: Memory) -> None:
        for out in one.outs:
            later = later_addition(one, out, memory)
            if later is not None:
                rest = merge(one, later, out)
                if rest is not None:
                    self.merged(rest, memory)
                return


def is_plain(op: array.MapOp) -> bool:
    return op.gathers is None and op.shifts is None and not op.attributes


class Memory:
    """What the ops of a function touch, each asked once: many maps look for a later one past the same ops."""

    def __init__(self, alias: AliasAnalysis) -> None:
        self.alias = alias
        self._accesses: dict[Operation, list[Access]] = {}

    def accesses(self, op: Operation) -> list[Access]:
        """Of an op, and of what is in it."""
        found = self._accesses.get(op)
        if found is None:
            found = self._accesses[op] = [a for inner in every_op(op) for a in accesses(inner)]
        return found

    def touches(self, op: Operation, memory: SSAValue, but: int | None = None) -> bool:
        """Whether an op reads or writes what may be of an array, with more than one of its outputs."""
        mine = op.outs[but] if but is not None and isinstance(op, array.MapOp) else None
        return any(
            a.memref is not mine and self.alias.may_alias(a.memref, memory)
            for a in self.accesses(op)
        )

    def stores(self, op: Operation, read: list[SSAValue]) -> bool:
        """Whether an op may write to what is read."""
        written = [a.memref for a in self.accesses(op) if a.kind != "read"]
        return any(self.alias.may_alias(w, memory) for w in written for memory in read)


def later_addition(one: array.MapOp, out: SSAValue, memory: Memory) -> array.MapOp | None:
    """The next map that adds to the array that this one adds to, if it can add this term as well."""
    if not is_plain(one) or not is_added(one, out) or not is_in_another(one, out):
        return None
    parts, block = list(term_of(one, out)), one.body.block
    read = [one.ins[p.index] for p in parts if isinstance(p, BlockArgument) and p.owner is block]
    if not is_cheap(parts, one):
        return None
    if memory.touches(one, out, but=one.outs.index(out)) or memory.stores(one, read):
        return None
    op = one.next_op
    while op is not None:
        if isinstance(op, array.MapOp) and out in op.outs:
            fits = is_plain(op) and is_added(op, out) and list(op.extents) == list(one.extents)
            mine = fits and not memory.touches(op, out, but=op.outs.index(out))
            at_hand = all(m in op.ins or m in op.outs for m in read)
            in_place = all(m in op.outs or not memory.stores(op, [m]) for m in read)
            apart = not meets_itself(op, read, memory.alias)
            return op if mine and at_hand and in_place and apart else None
        if op.regions and not isinstance(op, array.MapOp):
            return None
        if rule_of(type(op)).opaque or memory.touches(op, out) or memory.stores(op, read):
            return None
        op = op.next_op
    return None


def is_in_another(one: array.MapOp, out: SSAValue) -> bool:
    """Whether another map of the block has this output, too: else there is nothing to look for."""
    others = (use.operation for use in out.uses if use.operation is not one)
    return any(
        isinstance(op, array.MapOp) and op.parent is one.parent and out in op.outs for op in others
    )


def is_added(op: array.MapOp, out: SSAValue) -> bool:
    """Whether all that a map does with an output is to add a term of the adjoint to its elements."""
    if list(op.outs).count(out) != 1 or out in op.ins or stands_still(out):
        return False
    k = list(op.outs).index(out)
    term = op.yielded[k].owner
    return op.out_kinds[k] == "add" and isinstance(term, Operation) and ADJOINT in term.attributes


def term_of(op: array.MapOp, out: SSAValue) -> Iterator[SSAValue]:
    """A term, and all that it is made of."""
    pending, seen = [op.yielded[list(op.outs).index(out)]], set[SSAValue]()
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            yield value
            if isinstance(value.owner, Operation) and value.owner.parent is op.body.block:
                pending.extend(value.owner.operands)


def is_cheap(parts: list[SSAValue], op: array.MapOp) -> bool:
    own = [
        p.owner for p in parts if isinstance(p.owner, Operation) and p.owner.parent is op.body.block
    ]
    return all(isinstance(one, CHEAP) for one in own)


def meets_itself(op: array.MapOp, read: list[SSAValue], alias: AliasAnalysis) -> bool:
    """Whether a map stores to what is read by another view."""
    return any(
        out is not memory and alias.may_alias(out, memory) for out in op.outs for memory in read
    )


def merge(one: array.MapOp, later: array.MapOp, out: SSAValue) -> array.MapOp | None:
    """Move the term; what the first map still does."""
    body, last = later.body.block, later.body.block.last_op
    k, at = list(one.outs).index(out), list(later.outs).index(out)
    assert last is not None
    ins, known = list(later.ins), dict[SSAValue, SSAValue]()
    parts = set(term_of(one, out))
    for argument in one.body.block.args:
        if argument in parts:
            memory = one.ins[argument.index]
            if memory not in ins:
                ins.append(memory)
                body.insert_arg(argument.type, len(body.args)).name_hint = argument.name_hint
            known[argument] = body.args[ins.index(memory)]
    for op in one.body.block.ops:
        if not parts.isdisjoint(op.results):
            body.insert_op_before(op.clone(known), last)
    term = arith.AddfOp(known.get(one.yielded[k], one.yielded[k]), later.yielded[at])
    term.attributes[ADJOINT] = UnitAttr()
    locate(term, later.location)
    body.insert_op_before(term, last)
    last.operands[at] = term.result
    made = array.MapOp(
        [*later.extents], ins, [*later.outs], [*later.out_kinds], later.detach_region(later.body)
    )
    locate(made, later.location)
    Rewriter.replace_op(later, made, [])
    return with_outputs(one, [i for i in range(len(one.outs)) if i != k])
