"""May two accesses, one executed before the other, touch the same element?

The question is asked level by level. Within the *same* iteration of all loops that enclose both
accesses, or in a *later* iteration of one of them (equal counters outside it, a larger counter of
it, anything within). Equal subscripts, loop ranges, enclosing conditions and array bounds
make a linear system; where it has no solution the accesses never meet. In ::

    array.loop %i to %n do {
      %x = memref.load %u[%i1]        // %i1 = %i + 1
      memref.store %y, %u[%i]
    }

the load and the store of one iteration do not meet (`i + 1 = i`), but the store of a later iteration
i' meets the load (`i' = i + 1, i' >= i + 1`), and the load of a later iteration never meets the store.

"Never" is proved; "may" is everything else.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, Operation, OpResult, SSAValue

from ...dialects import array
from ..rules import Access
from .affine import Affine, Extent, Symbol, Term, extreme, is_positive
from .alias import AliasAnalysis
from .feasibility import System, feasible
from .footprint import Footprints, Point, Range, Region

CASES = 32
"""Give up (may) after this many cases of "max" and "min", of subscripts from the end and of "not equal"."""

NOTHING = Affine()


class Dependence:
    """Answers the question for the accesses of one function."""

    def __init__(self, function: func.FuncOp, alias: AliasAnalysis) -> None:
        self.function = function
        self.alias = alias
        self.footprints = Footprints(alias)
        self._loops: dict[Block, tuple[array.LoopOp, ...]] = {}
        self._distinct: dict[array.LoopOp, bool] = {}
        self._known: dict[Hashable, bool] = {}
        self._contexts: dict[tuple[Block | None, Block | None, array.LoopOp | None], Problem] = {}

    def loops(self, block: Block | None) -> tuple[array.LoopOp, ...]:
        """The loops around a block, outermost first."""
        if block is None:
            return ()
        found = self._loops.get(block)
        if found is None:
            parent = block.parent_op()
            outer = self.loops(parent.parent) if parent is not None else ()
            found = (*outer, parent) if isinstance(parent, array.LoopOp) else outer
            self._loops[block] = found
        return found

    def may_meet(self, earlier: Access, later: Access, level: array.LoopOp | None) -> bool:
        """True when the two may touch one element.

        `level` None: in the same iteration of the loops around both. Otherwise `later` runs in a
        later iteration of `level`, which encloses both, and in the same one of the loops around it.
        """
        touched = self.region(earlier), self.region(later)
        key = (
            earlier.op.parent,
            later.op.parent,
            level,
            touched,
        )  # of the ops, nothing else matters
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._compute(earlier, later, level)
        return found

    def region(self, access: Access) -> Region:
        return self.footprints.of(access)

    def _compute(self, earlier: Access, later: Access, level: array.LoopOp | None) -> bool:
        stated = self.problem(earlier, later, level)
        return stated if isinstance(stated, bool) else stated.may_hold()

    def problem(
        self,
        earlier: Access,
        later: Access,
        level: array.LoopOp | None,
        touched: Region | None = None,
    ) -> Problem | bool:
        """The system that has a solution if the two may meet; True or False where that is known without.

        `touched`: what `earlier` touches, where the caller knows it better than its footprint.
        """
        a, b = touched or self.region(earlier), self.region(later)
        if not self._roots_meet(a.base, b.base, level):
            return False
        if not self._same_subscripts(a.base, b.base, level):
            return True
        problem = self._context(earlier.op, later.op, level)
        if problem.constants_differ(a, b) or not problem.relate_carried(a.base, b.base):
            return False
        problem.state_equal(a, b)
        return problem

    def _context(self, earlier: Operation, later: Operation, level: array.LoopOp | None) -> Problem:
        """A problem of which only the context is stated: that of all accesses in these two blocks."""
        key = earlier.parent, later.parent, level
        found = self._contexts.get(key)
        if found is None:
            found = self._contexts[key] = Problem(self, level)
            found.state_context(earlier, 0)
            found.state_context(later, 1)
        made = found.copy()
        made.system.numbers = dict(found.system.numbers)  # as if no other question had been asked
        return made

    def _roots_meet(self, a: SSAValue, b: SSAValue, level: array.LoopOp | None) -> bool:
        """The bases may be the same memory; an allocation in `level` is another one each iteration."""
        others = self.alias.roots(b)
        return any(
            not others.isdisjoint(self.alias.interfering(root))
            for root in self.alias.roots(a)
            if level is None or not self.varies(root, level)
        )

    def _same_subscripts(self, a: SSAValue, b: SSAValue, level: array.LoopOp | None) -> bool:
        """Where the bases are the same memory, do equal subscripts mean equal elements?"""
        if a is b and (level is None or not self.varies(a, level)):
            return True
        common = self.alias.roots(a) | self.alias.roots(b)
        if any(not common.isdisjoint(self.alias.interfering(r) - {r}) for r in common):
            return False
        return self.alias.whole(a) and self.alias.whole(b)

    def distinct(self, loop: array.LoopOp) -> bool:
        """The memrefs that the loop carries share no memory and are only permuted."""
        found = self._distinct.get(loop)
        if found is None:
            found = self._distinct[loop] = self.alias.distinct(loop)
        return found

    def varies(self, symbol: Symbol, level: array.LoopOp | None) -> bool:
        """True when the symbol may mean something else in another iteration of `level`."""
        if level is None:
            return False
        if isinstance(symbol, Term):
            return any(self.varies(s, level) for arg in symbol.args for s in arg.terms)
        value = symbol.memref if isinstance(symbol, Extent) else symbol
        owner = value.owner
        if isinstance(owner, array.IndexOp):
            numbers = map(self.footprints.subscripts.affine, owner.operands)
            return any(self.varies(s, level) for number in numbers for s in number.terms)
        return level in self.loops(owner if isinstance(owner, Block) else owner.parent)


@dataclass(frozen=True)
class Case:
    """One of two ways in which something nonlinear may be: a number is not negative, and another is 0."""

    positive: Affine
    zero: Affine = NOTHING


class Problem:
    """The linear system of one question. Side 0 is the earlier access, side 1 the later one."""

    def __init__(self, dependence: Dependence, level: array.LoopOp | None) -> None:
        self.dependence = dependence
        self.level = level
        self.system = System()
        self.stated: set[Hashable] = set()
        self.cases: list[tuple[tuple[Case, Case], int]] = []
        self.subscripts = dependence.footprints.subscripts
        self._varying: dict[Symbol, bool] = {}

    def copy(self) -> Problem:
        """The same problem, to state more."""
        other = Problem.__new__(Problem)  # all the rest is shared
        other.__dict__ |= self.__dict__
        other.system, other.stated = self.system.copy(), set(self.stated)
        other.cases = list(self.cases)
        return other

    # Variables.

    def side_of(self, symbol: Symbol, side: int) -> int:
        """The side that a variable belongs to; -1 for what both share."""
        if self.level is None:
            return -1
        varying = self._varying.get(symbol)
        if varying is None:
            varying = self._varying[symbol] = self.dependence.varies(symbol, self.level)
        return side if varying else -1

    def row(self, value: Affine, side: int) -> dict[Hashable, int]:
        """The terms of `value` as variables of `side`, with what is known of each stated."""
        terms: dict[Hashable, int] = {}
        for symbol, factor in value.terms.items():
            own = self.side_of(symbol, side)
            terms[symbol, own] = factor
            self.state_symbol(symbol, own)
        return terms

    def at_least(self, low: Affine, value: Affine, side: int, gap: int = 0) -> None:
        """State `value >= low + gap`."""
        difference = value - low
        self.system.at_least_zero(self.row(difference, side), difference.constant - gap)

    def below(self, value: dict[Hashable, int], constant: int, count: Affine, side: int) -> None:
        """State `value + constant < count`, for a value known not to be negative."""
        if len(count.terms) == 1 and count.constant == 0:
            ((term, factor),) = count.terms.items()
            if factor == 1 and isinstance(term, Term):
                x, y = term.args if len(term.args) == 2 else (Affine(), Affine())
                if term.kind == "min":
                    self.below(value, constant, x, side)
                    self.below(value, constant, y, side)
                    return
                if term.kind == "max":
                    if x.is_constant:
                        x, y = y, x
                    if y.is_constant and y.constant <= 0:
                        # Not negative and below max(x, 0): below x.
                        self.below(value, constant, x, side)
                        return
        terms = self.row(count, side)
        for variable, factor in value.items():
            terms[variable] = terms.get(variable, 0) - factor
        self.system.at_least_zero(terms, count.constant - constant - 1)

    # What is known.

    def state_symbol(self, symbol: Symbol, side: int) -> None:
        """What is known of the symbol where it is of this side."""
        if (symbol, side) in self.stated:
            return
        self.stated.add((symbol, side))
        if isinstance(symbol, Extent):
            self.system.at_least_zero({(symbol, side): 1}, 0)
        elif isinstance(symbol, Term):
            self.state_term(symbol, side)
        elif isinstance(symbol, OpResult):
            owner = symbol.owner
            if isinstance(owner, array.LoopOp):
                self.system.at_least_zero({(symbol, side): 1}, 0)
            elif isinstance(owner, array.IndexOp):
                # The index, or the index and the extent; from 0 to the extent.
                self.system.at_least_zero({(symbol, side): 1}, 0)
                index, count = map(self.subscripts.affine, owner.operands)
                self.below({(symbol, side): 1}, 0, count, side)
                this = Affine.of(symbol)
                self.at_least(index, this, side)
                self.at_least(this, index + count, side)
                from_end = Case(-index - 1, this - index - count)
                self.cases.append(((Case(index, this - index), from_end), side))
            elif isinstance(owner, array.FloorModOp):
                divisor = self.subscripts.affine(owner.rhs)
                if isinstance(owner.result.type, IndexType) and is_positive(divisor):
                    self.system.at_least_zero({(symbol, side): 1}, 0)
                    self.below({(symbol, side): 1}, 0, divisor, side)

    def state_term(self, term: Term, side: int) -> None:
        """Bounds of a nonlinear term; both cases of "max" and "min" are looked at only when needed."""
        this = Affine.of(term)
        if term.kind == "floordiv":
            top, bottom = term.args[0], term.args[1].constant
            self.at_least(this * bottom, top, side)
            self.at_least(top, this * bottom, side, 1 - bottom)
        elif term.kind in ("max", "min"):
            for arg in term.args:
                low, high = (arg, this) if term.kind == "max" else (this, arg)
                self.at_least(low, high, side)
            a, b = term.args
            more = a - b if term.kind == "max" else b - a
            self.cases.insert(0, ((Case(more, this - a), Case(-more, this - b)), side))

    def state_context(self, op: Operation, side: int) -> None:
        """Ranges of the counters and truths of the conditions around `op`, and the order of iterations."""
        block = op.parent
        while block is not None and (parent := block.parent_op()) is not None:
            if isinstance(parent, array.LoopOp):
                self.state_counter(parent, block, side)
            elif isinstance(parent, scf.IfOp):
                holds = block is parent.true_region.blocks.first
                self.state_condition(parent.cond, holds, side)
            block = parent.parent
        if side == 1 and self.level is not None:
            induction = self.level.induction
            self.system.at_least_zero({(induction, 1): 1, (induction, 0): -1}, -1)

    def state_counter(self, loop: array.LoopOp, block: Block, side: int) -> None:
        key = ("counter", loop, block is loop.body.block, self.side_of(loop.induction, side))
        if key in self.stated:
            return
        self.stated.add(key)
        variable: dict[Hashable, int] = {(loop.induction, self.side_of(loop.induction, side)): 1}
        self.system.at_least_zero(variable, 0)
        if loop.count is not None:
            count = self.subscripts.affine(loop.count)
            if block is loop.body.block:
                self.below(variable, 0, count, side)
            else:
                self.below(variable, 0, self._count_or_none(count) + 1, side)

    def _count_or_none(self, count: Affine) -> Affine:
        return extreme("max", count, Affine())

    def state_condition(self, condition: SSAValue, holds: bool, side: int) -> None:
        """State an enclosing condition where it is a comparison of integers, or several of them."""
        owner = condition.owner
        if isinstance(owner, arith.AndIOp if holds else arith.OrIOp):
            self.state_condition(owner.lhs, holds, side)
            self.state_condition(owner.rhs, holds, side)
        elif isinstance(owner, arith.CmpiOp) and isinstance(owner.lhs.type, IndexType):
            lhs, rhs = self.subscripts.affine(owner.lhs), self.subscripts.affine(owner.rhs)
            predicate = COMPARISONS.get(owner.predicate.value.data)
            if predicate is not None:
                self.state_comparison(predicate if holds else OPPOSITE[predicate], lhs, rhs, side)

    def state_comparison(self, predicate: str, lhs: Affine, rhs: Affine, side: int) -> None:
        match predicate:
            case "<":
                self.at_least(lhs, rhs, side, 1)
            case "<=":
                self.at_least(lhs, rhs, side)
            case ">":
                self.at_least(rhs, lhs, side, 1)
            case ">=":
                self.at_least(rhs, lhs, side)
            case "==":
                self.at_least(lhs, rhs, side)
                self.at_least(rhs, lhs, side)
            case "!=":
                self.cases.append(((Case(lhs - rhs - 1), Case(rhs - lhs - 1)), side))
            case _:
                pass

    # The question.

    def relate_carried(self, a: SSAValue, b: SSAValue) -> bool:
        """State when two carried memrefs are the same memory; False when they never are.

        After d iterations slot s holds what slot p(p(...p(s))) (d times) held, p the permutation.
        """
        alias = self.dependence.alias
        if isinstance(a.owner, scf.IfOp) and not self.dependence.varies(a, self.level):
            return a is b or not alias.apart_in_turn(a, b)
        slot_a, slot_b = alias.slot(a), alias.slot(b)
        if slot_a is None or slot_b is None or slot_a[0] is not slot_b[0]:
            return True
        loop = slot_a[0]
        if not self.dependence.distinct(loop):
            return True
        if not self.dependence.varies(loop.induction, self.level):
            return slot_a[1] == slot_b[1]
        if loop is not self.level:
            return True
        permutation = alias.permutation(loop)
        orbit = [slot_b[1]]
        while (following := permutation[orbit[-1]]) is not None and following != orbit[0]:
            orbit.append(following)
        if slot_a[1] not in orbit:
            return False
        first = orbit.index(slot_a[1]) or len(orbit)
        # counter_b - counter_a = first + len(orbit) * turns
        self.system.zero(
            {(loop.induction, 1): 1, (loop.induction, 0): -1, "turns": -len(orbit)}, -first
        )
        self.system.at_least_zero({"turns": 1}, 0)
        return True

    def constants_differ(self, a: Region, b: Region) -> bool:
        """The cheap test: in some dimension the subscripts differ by a constant other than 0."""
        for x, y in zip(a.dimensions, b.dimensions, strict=False):
            if isinstance(x, Point) and isinstance(y, Point):
                difference = x.at - y.at
                if (
                    difference.is_constant
                    and difference.constant != 0
                    and not any(self.dependence.varies(s, self.level) for s in x.at.terms)
                ):
                    return True
        return False

    def state_equal(self, a: Region, b: Region) -> None:
        """State that both accesses touch one element, which lies within the array."""
        for axis, (x, y) in enumerate(zip(a.dimensions, b.dimensions, strict=True)):
            row_a, row_b = self.subscript(x, axis, 0), self.subscript(y, axis, 1)
            if row_a is None or row_b is None:
                continue
            terms = dict(row_a[0])
            for variable, factor in row_b[0].items():
                terms[variable] = terms.get(variable, 0) - factor
            self.system.zero(terms, row_a[1] - row_b[1])
            self.system.at_least_zero(*row_a)
            self.below(row_a[0], row_a[1], self.subscripts.extent(a.base, axis), 0)

    def subscript(
        self, dimension: Point | Range, axis: int, side: int
    ) -> tuple[dict[Hashable, int], int] | None:
        """A subscript of the dimension as a linear form; None where it may be anything."""
        if isinstance(dimension, Point):
            return self.row(dimension.at, side), dimension.at.constant
        if dimension.step is None:
            return None
        terms = self.row(dimension.start, side)
        step = ("step", axis, side)
        terms[step] = dimension.step
        self.system.at_least_zero({step: 1}, 0)
        if dimension.count is not None:
            self.below({step: 1}, 0, dimension.count, side)
        return terms, dimension.start.constant

    def may_hold(self) -> bool:
        """False when the system has no solution, whatever the cases of its "max" and "min"."""
        if not feasible(self.system):
            return False
        budget = [CASES]
        return self._some_case(self.system, list(self.cases), budget)

    def _some_case(
        self, system: System, cases: list[tuple[tuple[Case, Case], int]], budget: list[int]
    ) -> bool:
        if not cases:
            return True
        either, side = cases[0]
        for case in either:
            if budget[0] <= 0:
                return True
            budget[0] -= 1
            self.system = stated = system.copy()
            stated.zero(self.row(case.zero, side), case.zero.constant)
            self.at_least(Affine(), case.positive, side)
            if feasible(stated) and self._some_case(stated, cases[1:], budget):
                return True
        return False


COMPARISONS = {0: "==", 1: "!=", 2: "<", 3: "<=", 4: ">", 5: ">="}
OPPOSITE = {"==": "!=", "!=": "==", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
