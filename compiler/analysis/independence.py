"""Are the iterations of a loop independent, so that threads may run them?

They are if no iteration touches what another one writes. For scalar variables `carried_cells` decides it. For
arrays it is proved (`dependence`), or *claimed*: the program says so with `prange`. Two more things help:

- Arrays to which the loop only adds are *summed*: each chunk of iterations has zeros of its own, which
  are added up afterwards, in the order of the chunks. So are the shadows of what all iterations read.
- A claim also holds for the adjoint. No other iteration touches what an iteration stores. So no other
  iteration touches the cotangent that the adjoint of this store takes away (`exclusive`), whatever the
  subscripts are (the premise of FormAD).

A claim that is provably wrong is refused (`broken_claim`). Where nothing can be decided, the claim counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..rules import Access, ScalarRule, accesses, is_opaque, is_repeatable, rule_of, writes
from ..rules.memory import adds_to_place, may_be_same_number, summands
from .affine import Affine
from .alias import AliasAnalysis
from .carried_cells import Role, cell_of, is_cell, is_outside, roles
from .dependence import Dependence
from .footprint import Point, Region
from .near_accesses import NearAccesses
from .views import is_collapsed, strip_views

PAIRS = 600
"""Loops in which more pairs of accesses would have to be compared run in order."""

SCALARS = ("arith.", "math.", "special.", "vector.")
"""Dialects whose ops touch no memory and call nothing."""


@dataclass(frozen=True)
class Independent:
    """How the iterations of a loop are told apart."""

    cells: dict[SSAValue, Role]
    summed: tuple[SSAValue, ...] = ()
    """Arrays of which each chunk has its own, from zero."""


class Independence:
    """Answers for the loops of one function."""

    def __init__(
        self, function: func.FuncOp, dependence: Dependence | None = None, *, fastmath: bool = False
    ) -> None:
        self.alias = AliasAnalysis(function) if dependence is None else dependence.alias
        self.dependence = dependence or Dependence(function, self.alias)
        self.fastmath = fastmath

    def of(self, loop: array.LoopOp) -> Independent | None:
        """None where an iteration may need what another one has done."""
        if loop.count is None or loop.condition_block is not None or loop.carried:
            return None
        inside = list(loop.walk())
        if not all(may_run_in_threads(op) for op in inside):
            return None
        cells = roles(loop, across=True)
        if any(not self.is_free(loop, role) for role in cells.values()):
            return None
        found = [a for op in inside for a in accesses(op) if cell_of(a.memref) is None]
        summed = self.summed(loop, found)
        return None if summed is None else Independent(cells, tuple(summed))

    def is_free(self, loop: array.LoopOp, role: Role) -> bool:
        """The cell hands nothing on, or sums that may be made in any order."""
        if role.name != "reduction":
            return role.name != "carried"
        return not role.ordered or self.fastmath or is_claimed(loop)

    def summed(self, loop: array.LoopOp, found: Sequence[Access]) -> list[SSAValue] | None:
        """The arrays that the loop adds to at places which iterations share; None where they share more."""
        writes = [a for a in found if a.kind == "write"]
        near = NearAccesses(self.alias, found)
        if near.pairs() > PAIRS:
            return None
        shared: dict[SSAValue, None] = {}
        for write in writes:
            base = strip_views(write.memref)
            if base in shared:
                continue
            others = near.to(write.memref)
            if not any(self.meet(loop, write, a) for a in others):
                continue
            if self.is_sum(loop, base, others):
                if any(is_collapsed(a.memref) for a in others) and not has_order(base):
                    return None
                shared[base] = None
            elif (
                not is_claimed(loop) or any(map(is_total, others)) or is_update(loop, write, others)
            ):
                return None
        return list(shared)

    def meet(self, loop: array.LoopOp, write: Access, other: Access) -> bool:
        """Two iterations may touch one element, as far as is known."""
        if array.EXCLUSIVE in loop.attributes and array.EXCLUSIVE in (
            *write.op.attributes,
            *other.op.attributes,
        ):
            return False
        meet = self.dependence.may_meet
        return meet(write, other, loop) or meet(other, write, loop)

    def is_sum(self, loop: array.LoopOp, base: SSAValue, found: Sequence[Access]) -> bool:
        """All that the loop does to the array is adding to its elements, in any order."""
        if not is_outside(base, loop) or not isinstance(base.type, MemRefType):
            return False
        free = self.fastmath or is_claimed(loop)
        return all(
            strip_views(a.memref) is base and is_addition(a, self.alias, free=free) for a in found
        )


def has_order(base: SSAValue) -> bool:
    """Whether the type of an array says in which order its elements lie: so do those of a chunk's own."""
    assert isinstance(base.type, MemRefType)
    return array.is_contiguous(base.type) or array.is_by_columns(base.type)


def is_claimed(loop: array.LoopOp) -> bool:
    """The program says that the iterations are independent."""
    return array.CLAIMED in loop.attributes


def may_run_in_threads(op: Operation) -> bool:
    """Whether threads can run it: what calls back, prints, or keeps memory of the call's own, they cannot."""
    if isinstance(op, array.AllocOp):
        return array.GROWABLE not in op.attributes
    is_scalar = isinstance(rule_of(type(op)), ScalarRule) or op.name.startswith(SCALARS)
    return is_scalar or is_repeatable(type(op))


def is_addition(access: Access, alias: AliasAnalysis, *, free: bool) -> bool:
    """The access is half of `a[i] += x`, or an output of a map that adds; `free`: also in primal code."""
    op = access.op
    if isinstance(op, array.MapOp):
        return is_addition_of_map(op, access.memref, free=free)
    if isinstance(op, memref.LoadOp):
        return addition(op, free=free, alias=alias) is not None
    if isinstance(op, memref.StoreOp):
        loads = (use.operation for use in op.memref.uses)
        found = (addition(x, free=free, alias=alias) for x in loads if isinstance(x, memref.LoadOp))
        return any(one is not None and one.store is op for one in found)
    return access.memref in rule_of(type(op)).added(op)


def is_addition_of_map(op: array.MapOp, target: SSAValue, *, free: bool) -> bool:
    """The map adds to each element of an array, or stores what was there plus terms."""
    into = [k for k, m in enumerate(op.outs) if m is target]
    out_of = [k for k, m in enumerate(op.ins) if m is target]
    kinds = [op.out_kinds[k] for k in into]
    if kinds != ["store"]:
        return kinds == ["add"] and not out_of
    if len(out_of) != 1 or op.gathers is not None or op.window or op.origin:
        return False
    value, totals = added_up(op.body.block.args[out_of[0]], free=free)
    last = value.get_user_of_unique_use()
    return bool(totals) and isinstance(last, array.YieldOp) and op.yielded[into[0]] is value


Total = arith.AddfOp | arith.AddiOp | arith.SubfOp | arith.SubiOp

SUMS = (arith.AddfOp, arith.AddiOp, arith.SubfOp, arith.SubiOp)


@dataclass(frozen=True)
class Addition:
    """`a[i] += x`, as ops; terms may come one after the other."""

    load: memref.LoadOp
    totals: tuple[Total, ...]
    """What adds, or takes away, a term each."""
    store: memref.StoreOp


def addition(
    load: memref.LoadOp, *, free: bool, alias: AliasAnalysis | None = None
) -> Addition | None:
    """What begins with the load: a store puts back what was there plus terms, and nothing is stored between.

    Floating-point numbers are added in any order in adjoints only, or where it is `free`. With `alias`, what
    is stored to other arrays does not count: a tangent adds to an array and to its tangent by turns.
    """
    value, totals = added_up(load.res, free=free)
    use = value.get_user_of_unique_use()
    if not totals or not isinstance(use, memref.StoreOp) or value is not use.value:
        return None
    return Addition(load, totals, use) if is_undisturbed(load, use, alias) else None


def added_up(value: SSAValue, *, free: bool) -> tuple[SSAValue, tuple[Total, ...]]:
    """The value with what is added to it, and nothing else done with it, and the ops that add."""
    totals: list[Total] = []
    while isinstance(use := value.get_user_of_unique_use(), SUMS):
        owner = value.owner
        block = owner if isinstance(owner, Block) else owner.parent
        if use.parent is not block:
            break
        if isinstance(use, arith.SubfOp | arith.SubiOp) and use.lhs is not value:
            break
        in_order = isinstance(use, arith.AddfOp | arith.SubfOp) and not free
        if in_order and "ad.adjoint" not in use.attributes:
            break
        totals.append(use)
        value = use.result
    return value, tuple(totals)


def is_undisturbed(load: memref.LoadOp, store: memref.StoreOp, alias: AliasAnalysis | None) -> bool:
    """Whether the store is to the place of the load, and no other is between them."""
    if load.memref is not store.memref or tuple(load.indices) != tuple(store.indices):
        return False
    if load.parent is not store.parent:
        return False
    op = load.next_op
    while op is not None and op is not store:
        if op.regions or is_opaque(op):
            return False
        if any(alias is None or alias.may_alias(w.memref, load.memref) for w in writes(op)):
            return False
        op = op.next_op
    return op is store


def is_total(access: Access) -> bool:
    """What is written is what was there with a term: iterations that claim to be independent may share it."""
    op = access.op
    if access.kind != "write" or array.EXCLUSIVE in op.attributes:
        return False
    if isinstance(op, memref.StoreOp):
        return adds_to_place(op)
    if isinstance(op, array.MapOp):
        outs = zip(op.outs, op.out_kinds, op.yielded, strict=True)
        read = {op.body.block.args[k] for k, m in enumerate(op.ins) if m is access.memref}
        return any(
            m is access.memref and (kind == "add" or not read.isdisjoint(summands(value)))
            for m, kind, value in outs
        )
    return access.memref in rule_of(type(op)).added(op)


def is_update(loop: array.LoopOp, write: Access, others: Sequence[Access]) -> bool:
    """A map stores to a row that the iteration reads: perhaps a total, by way of a temporary."""
    if not isinstance(write.op, array.MapOp) or array.EXCLUSIVE in write.op.attributes:
        return False
    rows = views_in(loop, write.memref)
    read = [view for a in others if a.kind == "read" for view in views_in(loop, a.memref)]
    return any(may_be_same_number(one, row) for one in read for row in rows)


def views_in(loop: array.LoopOp, value: SSAValue) -> list[SSAValue]:
    """The view, and those that it is one of, as far as the loop takes them."""
    found: list[SSAValue] = []
    while isinstance(value.owner, array.ViewOp) and not is_outside(value, loop):
        found.append(value)
        value = value.owner.source
    return found


# Claims that do not hold.


def broken_claim(loop: array.LoopOp, dependence: Dependence) -> tuple[Operation, str, str] | None:
    """Where iterations of the loop provably meet: the op, what is wrong there, and a way out."""
    if loop.condition_block is not None:
        return (
            loop,
            "iterations of `prange` are independent, so none of them can end the loop",
            "loop over all of it, or use range",
        )
    if loop.carried:
        return (
            loop,
            "an array is bound anew in each iteration of `prange`, and read by the next one",
            "use range, or index with the variable of the loop",
        )
    for cell, role in roles(loop, across=True).items():
        if role.name == "carried" and role.last is not None:
            name = cell.name_hint or "a variable"
            return (
                role.last,
                f"`{name}` goes from one iteration of `prange` to the next",
                "use range; sums (`s += x`) and products are the exception",
            )
    alone = loop.count is not None and array.constant_value(loop.count) in (0, 1)
    return None if alone else broken_store(loop, dependence)


def broken_store(loop: array.LoopOp, dependence: Dependence) -> tuple[Operation, str, str] | None:
    always = [op for op in loop.body.block.ops if isinstance(op, memref.LoadOp | memref.StoreOp)]
    found = [a for op in always if not is_cell(op.memref) for a in accesses(op)]
    for write in (a for a in found if a.kind == "write"):
        for other in found:
            sums = all(is_addition(a, dependence.alias, free=True) for a in (write, other))
            if not sums and surely_meet(loop, dependence, write, other):
                word = "stores to" if other.kind == "write" else "reads"
                return (
                    write.op,
                    f"another iteration of `prange` {word} the element that is stored to here",
                    "use range; iterations of prange share nothing that they store to",
                )
    return None


def surely_meet(loop: array.LoopOp, dependence: Dependence, write: Access, other: Access) -> bool:
    """Subscripts that move alike with the iteration, some whole number of iterations apart, or not at all."""
    a, b = dependence.region(write), dependence.region(other)
    if a.base is not b.base or not is_outside(a.base, loop) or not points_only(a, b):
        return False
    turns: set[int] = set()
    for x, y in zip(a.dimensions, b.dimensions, strict=True):
        assert isinstance(x, Point)
        assert isinstance(y, Point)
        step = x.at.terms.get(loop.induction, 0)
        still = x.at - Affine({loop.induction: step})
        difference = y.at - x.at
        varies = any(dependence.varies(s, loop) for s in still.terms)
        if varies or not difference.is_constant:
            return False
        if step == 0:
            if difference.constant:
                return False
        elif difference.constant % step:
            return False
        else:
            turns.add(difference.constant // step)
    return not turns or (len(turns) == 1 and turns != {0})


def points_only(*regions: Region) -> bool:
    return all(r.exact and all(isinstance(d, Point) for d in r.dimensions) for r in regions)
