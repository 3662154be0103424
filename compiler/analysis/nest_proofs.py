"""Which checks of a loop nest can be proved before it runs, and under which condition.

A subscript check within a nest is a pair of inequalities between linear combinations of loop counters
and of values that the nest does not change. Going from the innermost loop to the outermost, each
counter is replaced by its least or greatest value; what remains is evaluated once, on entry::

    for i in range(1, n - 1):          on entry:  0 <= 0  and  n - 3 <= x.size - 3
        y[i] = x[i - 1] + x[i + 1]

Where all hold the nest runs in a copy without these checks, else in one that has them: the raise is
never moved. Arithmetic is that of the integers (128 bits), so `i + k` cannot wrap around in a proof.

So are sums of Python ints, which must fit in 64 bits. A variable that each iteration adds to, or leaves as
it is, lies between what so many of the least and of the greatest steps make of it::

    count = 0                          count is at most j, which is below n
    for j in range(n):
        if x[j] > t:
            count += 1                 count + 1 <= n: no check is left

Not handled: subscripts that are loaded or computed nonlinearly, and loops without a count. Their
checks stay where they are.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..rules import is_whole_array
from .affine import Affine, Extent, Subscripts, Symbol, Term
from .alias import AliasAnalysis
from .counters import Counter, counter_of
from .views import strip_casts

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1
DEPTH = 12
"""Proofs that split more often are given up."""


@dataclass(frozen=True)
class AtMostZero:
    """The inequality `value <= 0` between values known on entry."""

    value: Affine


@dataclass(frozen=True)
class All:
    parts: tuple[Condition, ...]


@dataclass(frozen=True)
class Some:
    parts: tuple[Condition, ...]


Condition = bool | AtMostZero | All | Some


def all_of(parts: list[Condition]) -> Condition:
    if any(p is False for p in parts):
        return False
    left = tuple(dict.fromkeys(p for p in parts if p is not True))
    return True if not left else left[0] if len(left) == 1 else All(left)


def some_of(parts: list[Condition]) -> Condition:
    if any(p is True for p in parts):
        return True
    left = tuple(dict.fromkeys(p for p in parts if p is not False))
    return False if not left else left[0] if len(left) == 1 else Some(left)


def has_whole_array_work(loop: array.LoopOp) -> bool:
    """True when maps or products run inside: beside them the checks of the loop cost nothing."""
    return any(map(is_whole_array, every_op(loop)))


class NestProofs:
    """The checks inside one loop nest and the conditions, on entry, under which they hold."""

    def __init__(self, nest: array.LoopOp, subscripts: Subscripts, alias: AliasAnalysis) -> None:
        self._nest = nest
        self._subscripts = subscripts
        self._alias = alias
        self._stored = {op.memref for op in ops_of_kind(nest, memref.StoreOp)}
        self._counters: dict[SSAValue, Counter | None] = {}

    def provable(self, proved: set[Operation]) -> dict[Operation, Condition]:
        """For each check not yet proved its condition, where there is one."""
        found: dict[Operation, Condition] = {}
        for op in every_op(self._nest):
            if op not in proved and array.is_operation_that_may_raise(op):
                condition = self._condition(op)
                if condition is not False:
                    found[op] = condition
        return found

    def _condition(self, op: Operation) -> Condition:
        affine = self._subscripts.affine
        needs: list[Affine] = []
        if isinstance(op, array.IndexOp):
            needs += self._range(op)
        elif isinstance(op, array.CheckedIntOp):
            value = affine(op.result)
            if value == Affine.of(op.result):
                return False
            needs += [value - INT64_MAX, -value + INT64_MIN]
        else:
            return False
        loops, facts = self._surroundings(op)
        return all_of([self._prove(n, loops, facts) for n in needs])

    def _range(self, op: array.IndexOp) -> list[Affine]:
        """What must be at most 0 for the subscript to be one from the front."""
        index, extent = self._subscripts.affine(op.index), self._subscripts.affine(op.extent)
        match op.sign.data:
            case "negative":
                return [-(index + extent)]
            case "any":
                return [index - extent + 1, -index]
            case _:
                return [index - extent + 1]

    def is_always_in_range(self, op: array.IndexOp) -> bool:
        """True when the subscript is in range in every iteration, whatever branches it is on."""
        loops, _ = self._surroundings(op)
        return all(self._prove(n, loops, []) is True for n in self._range(op))

    def _surroundings(self, op: Operation) -> tuple[list[array.LoopOp], list[Affine]]:
        """The loops of the nest around `op`, outermost first, and what is at most 0 where it runs."""
        loops: list[array.LoopOp] = []
        facts: list[Affine] = []
        inner, outer = op, op.parent_op()
        while outer is not None:
            if isinstance(outer, array.LoopOp):
                loops.append(outer)
            elif isinstance(outer, scf.IfOp):
                holds = inner.parent_region() is outer.true_region
                facts.extend(self._facts(outer.cond, holds))
            if outer is self._nest:
                break
            inner, outer = outer, outer.parent_op()
        return loops[::-1], facts

    def _facts(self, condition: SSAValue, holds: bool) -> list[Affine]:
        """Combinations at most 0 where the condition is (or is not) true."""
        owner = condition.owner
        both = arith.AndIOp if holds else arith.OrIOp
        if isinstance(owner, both):
            return self._facts(owner.lhs, holds) + self._facts(owner.rhs, holds)
        if isinstance(owner, arith.XOrIOp) and array.constant_value(owner.rhs) in (1, -1):
            return self._facts(owner.lhs, not holds)
        if not isinstance(owner, arith.CmpiOp):
            return []
        predicate = arith.CMPI_COMPARISON_OPERATIONS[owner.predicate.value.data]
        if not holds:
            opposite = {
                "eq": "ne",
                "ne": "eq",
                "slt": "sge",
                "sle": "sgt",
                "sgt": "sle",
                "sge": "slt",
            }
            predicate = opposite.get(predicate, "")
        difference = self._subscripts.affine(owner.lhs) - self._subscripts.affine(owner.rhs)
        match predicate:
            case "slt":
                return [difference + 1]
            case "sle":
                return [difference]
            case "sgt":
                return [-difference + 1]
            case "sge":
                return [-difference]
            case "eq":
                return [difference, -difference]
            case _:
                return []

    def _prove(self, need: Affine, loops: list[array.LoopOp], facts: list[Affine]) -> Condition:
        """When `need <= 0` in every iteration: as it stands, or because a fact bounds it."""
        return some_of(
            [
                self._bound(need, loops, 0),
                *(self._bound(need - fact, loops, 0) for fact in facts),
            ]
        )

    def _bound(self, e: Affine, loops: list[array.LoopOp], depth: int) -> Condition:
        """When `e <= 0` in every iteration of the loops."""
        if depth > DEPTH:
            return False
        for symbol, factor in e.terms.items():
            if self._is_counter(symbol) or self.invariant(symbol):
                continue
            alternatives, every = self._replacements(e, symbol, factor)
            parts = [self._bound(a, loops, depth + 1) for a in alternatives]
            return all_of(parts) if every and parts else some_of(parts)
        if not loops:
            if greatest(e) <= 0:
                return True
            if e.is_constant:
                return False
            return AtMostZero(e) if all(map(self.invariant, e.terms)) else False
        outer, loop = loops[:-1], loops[-1]
        factor = e.terms.get(loop.induction, 0)
        rest = e - Affine({loop.induction: factor})
        if factor <= 0:  # The counter is at least 0.
            return self._bound(rest, outer, depth)
        if loop.count is None:
            return False
        count = at_least_one(self._subscripts.affine(loop.count))
        return self._bound(rest + (count - 1) * factor, outer, depth)

    def _replacements(self, e: Affine, symbol: Symbol, factor: int) -> tuple[list[Affine], bool]:
        """Combinations that bound `e` with `symbol` gone: whether all must be at most 0, or one may."""
        rest = e - Affine({symbol: factor})
        if isinstance(symbol, Extent):
            sources = self._sources(symbol.memref)
            extents = [self._subscripts.extent(s, symbol.axis) for s in sources]
            return [rest + x * factor for x in extents], True
        if isinstance(symbol, Term):
            match symbol.kind:
                case "max" | "min":
                    every = (symbol.kind == "max") == (factor > 0)
                    return [rest + a * factor for a in symbol.args], every
                case "floordiv":
                    top, bottom = symbol.args[0], symbol.args[1].constant
                    if factor % bottom:
                        return [e * bottom], True
                    if factor < 0:
                        top = top - (bottom - 1)
                    return [rest + top * (factor // bottom)], True
                case _:
                    return [], False
        loop = symbol.owner
        if isinstance(loop, memref.LoadOp):
            counter = self._counter(symbol)
            return ([rest + counter.extreme(factor > 0) * factor], True) if counter else ([], False)
        if not isinstance(loop, array.LoopOp) or not isinstance(symbol, OpResult) or symbol.index:
            return [], False
        if loop.count is not None and loop.condition_block is None:
            trips = Term("max", (self._subscripts.affine(loop.count), Affine()))
            return [rest + Affine({trips: factor})], True
        return [], False

    def _counter(self, loaded: SSAValue) -> Counter | None:
        """What is known of a variable that was loaded, of which each iteration makes more or less."""
        if loaded not in self._counters:
            self._counters[loaded] = counter_of(loaded, self._subscripts)
        return self._counters[loaded]

    def _is_counter(self, symbol: Symbol) -> bool:
        if not isinstance(symbol, BlockArgument) or symbol.index:
            return False
        loop = symbol.owner.parent_op()
        return isinstance(loop, array.LoopOp) and self._inside(loop)

    def invariant(self, symbol: Symbol) -> bool:
        """True when the symbol has one value during the whole nest, known on entry."""
        if isinstance(symbol, Term):
            return all(self.invariant(s) for a in symbol.args for s in a.terms)
        if isinstance(symbol, Extent):
            return not self._defined_inside(symbol.memref)
        if not self._defined_inside(symbol):
            return True
        load = symbol.owner
        return (
            isinstance(load, memref.LoadOp)
            and isinstance(load.memref.owner, memref.AllocaOp)
            and load.memref not in self._stored
        )

    def _inside(self, op: Operation) -> bool:
        current: Operation | None = op
        while current is not None and current is not self._nest:
            current = current.parent_op()
        return current is self._nest

    def _defined_inside(self, value: SSAValue) -> bool:
        owner = value.owner
        if isinstance(owner, Block):
            parent = owner.parent_op()
            return parent is not None and self._inside(parent)
        return self._inside(owner)

    def _sources(self, value: SSAValue) -> list[SSAValue]:
        """Memrefs from outside the nest (or made in it) one of which the carried `value` is."""
        seen: set[SSAValue] = set()
        pending, found = [value], list[SSAValue]()
        while pending:
            current = strip_casts(pending.pop())
            if current in seen:
                continue
            seen.add(current)
            loop_slot = self._alias.slot(current)
            if loop_slot is not None and self._inside(loop_slot[0]):
                loop, slot = loop_slot
                pending += [loop.carried[slot], loop.yielded[slot]]
            elif current is value:
                return []
            else:
                found.append(current)
        return found


def greatest(e: Affine) -> int:
    """A number that `e` does not exceed, as its symbols are 64-bit integers and extents not negative."""
    return e.constant + sum(max(f * bound for bound in bounds(s)) for s, f in e.terms.items())


def bounds(symbol: Symbol) -> tuple[int, int]:
    """The least and the greatest value of a symbol."""
    match symbol:
        case Extent():
            return 0, INT64_MAX
        case Term("max" | "min", args):
            choose = max if symbol.kind == "max" else min
            return choose(-greatest(-a) for a in args), choose(greatest(a) for a in args)
        case Term("floordiv", (top, bottom)):
            return -greatest(-top) // bottom.constant, greatest(top) // bottom.constant
        case Term(_, (a, b)):
            corners = [
                x * y for x in (-greatest(-a), greatest(a)) for y in (-greatest(-b), greatest(b))
            ]
            return min(corners), max(corners)
        case _:
            return INT64_MIN, INT64_MAX


def at_least_one(count: Affine) -> Affine:
    """The trip count of a loop that runs: `max(e, 0)` is `e` there."""
    if len(count.terms) == 1 and count.constant == 0:
        ((symbol, factor),) = count.terms.items()
        if factor == 1 and isinstance(symbol, Term) and symbol.kind == "max":
            rest = [a for a in symbol.args if not (a.is_constant and a.constant <= 0)]
            if len(rest) == 1:
                return rest[0]
    return count
