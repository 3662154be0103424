"""Check all subscripts of a loop nest once, before it.

Where every subscript of a nest is affine in its inductions and the nest is rectangular, the least
and greatest subscripts are known on entry. If one is out of range, some iteration certainly raises:
then the nest as written runs, and raises where Python would, with memory as Python leaves it. Else
the nest runs without checks. No raise moves. Runs before the derivative, so that neither sweep checks,
and before raise-loops, which wants nests that cannot raise.

Before::

    func.func @f(%x : memref<?xf64>, %m : index, %n : index, %v : f64) {
      %trips = array.loop %i to %m do {
        %j = array.index %i, %n axis 0 sign "nonneg"
        memref.store %v, %x[%j] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    func.func @f(%x : memref<?xf64>, %m : index, %n : index, %v : f64) {
      %c0 = arith.constant 0 : index
      %beyond = arith.constant 1125899906842624 : index
      %far = arith.cmpi sgt, %m, %beyond : index
      %c1 = arith.constant 1 : index
      %span = arith.subi %m, %c1 : index
      %last = arith.addi %c0, %span : index
      %out = arith.cmpi sge, %last, %n : index
      %fails = arith.ori %far, %out : i1
      %runs = arith.cmpi sgt, %m, %c0 : index
      %bad = arith.andi %fails, %runs : i1
      scf.if %bad {
        %trips = array.loop %i to %m do {
          %j = array.index %i, %n axis 0 : i64 sign "nonneg"
          memref.store %v, %x[%j] : memref<?xf64>
          array.yield
        }
      } else {
      } {raises}
      %trips_1 = array.loop %i to %m do {
        %j = array.index %i, %n axis 0 : i64 sign "nonneg" unchecked
        memref.store %v, %x[%j] : memref<?xf64>
        array.yield
      }
      func.return
    }

Kept: checks under an `if` or in a `while`, in nests that are not rectangular, of subscripts whose
sign is not known, or that depend on anything the nest computes. But what holds in any case, wherever it
stands (`u[i + 1]` for i up to the extent of `u` less 2, a count of iterations that must fit in 64 bits),
is not asked anywhere: see `analysis/nest_proofs`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.affine import Affine, Extent, Subscripts, Symbol, Term
from ..analysis.alias import AliasAnalysis
from ..analysis.nest_proofs import NestProofs
from ..diagnostics import locate
from ..rules import evaluates_body, is_whole_array

BEYOND = 2**50
"""More than any extent: a subscript that starts or moves so far is out of range."""

SMALL = 64
"""The largest factor of an induction in a subscript; larger ones could overflow and are left alone."""


@dataclass(frozen=True)
class HoistChecks(ModulePass):
    """Replace the checks of each outermost rectangular nest by one before it."""

    name = "hoist-checks"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                drop_proved(function)
                subscripts = Subscripts()
                for loop in list(outermost_nests(function.body.block)):
                    Nest(loop, subscripts).hoist()


def drop_proved(function: func.FuncOp) -> None:
    """Drop the checks that hold whatever the arguments are."""
    alias, subscripts = AliasAnalysis(function), Subscripts()
    proved = set[Operation]()
    for loop in ops_of_kind(function, array.LoopOp):
        conditions = NestProofs(loop, subscripts, alias).provable(proved)
        proved.update(op for op, condition in conditions.items() if condition is True)
    for op in proved:
        if isinstance(op, array.IndexOp):
            op.properties["unchecked"] = UnitAttr()
            if op.sign.data == "any":
                op.properties["sign"] = StringAttr("nonneg")
        elif isinstance(op, array.CheckedIntOp):
            plain = UNCHECKED[type(op)](op.lhs, op.rhs)
            plain.location = op.location
            Rewriter.replace_op(op, plain)


UNCHECKED: dict[type[array.CheckedIntOp], type[arith.AddiOp | arith.SubiOp | arith.MuliOp]] = {
    array.CheckedAddOp: arith.AddiOp,
    array.CheckedSubOp: arith.SubiOp,
    array.CheckedMulOp: arith.MuliOp,
}


def outermost_nests(block: Block) -> Iterator[array.LoopOp]:
    """The outermost loops that are counted and hold scalar code only; other loops are looked into.

    The nest is there twice afterwards: whole-array work is not worth compiling twice.
    """
    for op in block.ops:
        if isinstance(op, array.LoopOp) and is_counted(op) and is_scalar_code(op):
            yield op
        elif not evaluates_body(op) and array.RAISES not in op.attributes:
            for region in op.regions:
                for inner in region.blocks:
                    yield from outermost_nests(inner)


def is_scalar_code(loop: array.LoopOp) -> bool:
    return not loop.carried and not any(
        isinstance(o, array.AllocOp) or is_whole_array(o) for o in loop.walk()
    )


def is_counted(loop: array.LoopOp) -> bool:
    return loop.condition_block is None and loop.count is not None


@dataclass
class Check:
    """One subscript: its least value must not be negative, its greatest must be below the extent."""

    op: array.IndexOp
    subscript: Affine
    extent: Affine
    loops: tuple[array.LoopOp, ...]


@dataclass
class Nest:
    """One outermost loop with the checks inside it that can be decided on entry."""

    loop: array.LoopOp
    subscripts: Subscripts

    def hoist(self) -> None:
        checks = list(self._checks(self.loop, (self.loop,)))
        if not checks:
            return
        emitter = Before(self.loop)
        bad = emitter.any([self._fails(c, emitter) for c in unique(checks)])
        branch = scf.IfOp(bad, [], [self.loop.clone(), scf.YieldOp()], [scf.YieldOp()])
        branch.attributes[array.RAISES] = UnitAttr()
        emitter.insert(branch)
        for check in checks:
            check.op.properties["unchecked"] = UnitAttr()

    def _checks(self, op: array.LoopOp, loops: tuple[array.LoopOp, ...]) -> Iterator[Check]:
        """The checks that run in every iteration of the loops around them."""
        assert op.count is not None
        if not self._outside(op.count):
            return
        for inner in op.body.block.ops:
            if isinstance(inner, array.LoopOp) and is_counted(inner):
                yield from self._checks(inner, (*loops, inner))
            elif isinstance(inner, array.IndexOp) and inner.unchecked is None:
                check = self._check(inner, loops)
                if check is not None:
                    yield check

    def _check(self, op: array.IndexOp, loops: tuple[array.LoopOp, ...]) -> Check | None:
        if op.sign.data == "any":
            return None
        subscript = self.subscripts.affine(op.result)
        extent = self.subscripts.affine(op.extent)
        inductions = {loop.induction for loop in loops}
        moving = {s: f for s, f in subscript.terms.items() if s in inductions}
        rest = subscript - Affine(moving)
        if any(abs(f) > SMALL for f in moving.values()):
            return None
        if not (self._invariant(rest) and self._invariant(extent)):
            return None
        return Check(op, subscript, extent, loops)

    def _invariant(self, form: Affine) -> bool:
        """True when the form's value can be computed before the nest."""
        return all(self._known_before(s) for s in form.terms)

    def _known_before(self, symbol: Symbol) -> bool:
        if isinstance(symbol, Extent):
            return self._outside(symbol.memref)
        if isinstance(symbol, Term):
            return False
        return isinstance(symbol.type, IndexType) and self._outside(symbol)

    def _outside(self, value: SSAValue) -> bool:
        owner = value.owner
        inside = owner.parent_op() if isinstance(owner, Block) else owner
        return inside is None or not self.loop.is_ancestor(inside)

    def _fails(self, check: Check, before: Before) -> SSAValue:
        """True when some iteration's subscript is out of range."""
        inductions = {loop.induction: loop for loop in check.loops}
        moving = {s: f for s, f in check.subscript.terms.items() if s in inductions}
        rest = before.number(check.subscript - Affine(moving))
        least = greatest = rest
        wrong: list[SSAValue] = []
        for symbol, factor in moving.items():
            assert isinstance(symbol, SSAValue)
            count = inductions[symbol].count
            assert count is not None
            wrong.append(before.compare("sgt", count, before.constant(BEYOND)))
            span = before.times(before.minus_one(count), factor)
            if factor > 0:
                greatest = before.plus(greatest, span)
            else:
                least = before.plus(least, span)
        if moving and array.constant_value(rest) is None:
            wrong.append(before.compare("sgt", rest, before.constant(BEYOND)))
            wrong.append(before.compare("slt", rest, before.constant(-BEYOND)))
        if check.op.sign.data == "negative" or any(f < 0 for f in moving.values()):
            wrong.append(before.compare("slt", least, before.constant(0)))
        if check.op.sign.data == "nonneg":
            wrong.append(before.compare("sge", greatest, before.number(check.extent)))
        fails = before.any(wrong)
        for loop in check.loops:
            assert loop.count is not None
            runs = before.compare("sgt", loop.count, before.constant(0))
            fails = before.emit(arith.AndIOp(fails, runs))
        return fails


def unique(checks: list[Check]) -> list[Check]:
    """Checks of the same subscript against the same extent fail together."""
    seen: dict[tuple[Affine, Affine, str, tuple[array.LoopOp, ...]], Check] = {}
    for check in checks:
        key = (check.subscript, check.extent, check.op.sign.data, check.loops)
        seen.setdefault(key, check)
    return list(seen.values())


class Before:
    """Emits index arithmetic before an op, once for equal operands."""

    def __init__(self, op: Operation, like: Operation | None = None) -> None:
        self.op = op
        self.like = like or op
        """Whose place in the source the arithmetic has."""
        self.known: dict[object, SSAValue] = {}

    def insert(self, op: Operation) -> None:
        locate(op, self.like.location)
        block = self.op.parent_block()
        assert block is not None
        block.insert_op_before(op, self.op)

    def emit(self, op: Operation) -> SSAValue:
        key = (type(op), tuple(op.operands), tuple(op.properties.items()))
        if key not in self.known:
            self.insert(op)
            self.known[key] = op.results[0]
        else:
            op.erase()  # its operands have no such user
        return self.known[key]

    def constant(self, value: int) -> SSAValue:
        return self.emit(arith.ConstantOp(array.index_number(value)))

    def plus(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.AddiOp(a, b))

    def times(self, a: SSAValue, factor: int) -> SSAValue:
        return a if factor == 1 else self.emit(arith.MuliOp(a, self.constant(factor)))

    def minus_one(self, a: SSAValue) -> SSAValue:
        return self.emit(arith.SubiOp(a, self.constant(1)))

    def compare(self, predicate: str, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.CmpiOp(a, b, predicate))

    def any(self, conditions: list[SSAValue]) -> SSAValue:
        if not conditions:
            return self.emit(arith.ConstantOp(IntegerAttr(0, i1)))
        result = conditions[0]
        for condition in conditions[1:]:
            result = self.emit(arith.OrIOp(result, condition))
        return result

    def number(self, form: Affine) -> SSAValue:
        """The value of a linear combination."""
        total: SSAValue | None = None
        for symbol, factor in form.terms.items():
            term = self.times(self._symbol(symbol), factor)
            total = term if total is None else self.plus(total, term)
        if total is None:
            return self.constant(form.constant)
        return total if form.constant == 0 else self.plus(total, self.constant(form.constant))

    def _symbol(self, symbol: Symbol) -> SSAValue:
        match symbol:
            case Extent():
                return self.emit(memref.DimOp(symbol.memref, self.constant(symbol.axis)))
            case Term():
                a, b = map(self.number, symbol.args)
                greater = symbol.kind == "max"
                return self.emit(arith.MaxSIOp(a, b) if greater else arith.MinSIOp(a, b))
            case _:
                return symbol
