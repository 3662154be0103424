"""Check cotangents and tangents: the first that is infinite or NaN raises FloatingPointError with its place.

Runs last of what makes derivatives, where `MUTAD_SANITIZE=grad` asks for it. `sanitizer_marks` says which ops
make a cotangent or a tangent. Maps with such ops become loops, so that each point is checked before the next.

Before::

    func.func @f(%x : f64, %y_bar : f64) -> f64 {
      %x_bar = ad.div %y_bar, %x {ad.adjoint, ad.made = ["cotangent", "x", "log(x)"]} : f64
      func.return %x_bar : f64
    }

After::

    func.func @f(%x : f64, %y_bar : f64) -> f64 {
      %x_bar = ad.div %y_bar, %x {ad.adjoint} : f64
      %size = math.absf %x_bar : f64
      %most = arith.constant 0x7FF0000000000000 : f64
      %wrong = arith.cmpf uge, %size, %most : f64
      array.raise_if %wrong, "FloatingPointError", "log(x): the cotangent of x is {}: {} / {}"
          (%x_bar, %y_bar, %x : f64, f64, f64)
      func.return %x_bar : f64
    }

A zero that is strong is finite, as what a kink is given by convention: neither is found. A tangent that is
not finite is, though a selection may drop it later. Maps that take a product, a minimum or a maximum stay as
they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import TypeAlias

from xdsl.context import Context
from xdsl.dialects import arith, math, memref
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import ad, array
from ..analysis.alias import enclosing_loops
from ..diagnostics import line_of
from ..names import as_written
from ..rules.table import ADJOINT, constant_float
from .sanitizer_marks import ITERATION, MADE, SUMS, WATCHED, WHOLE, mark_sum, sums_of, words_of
from .saved_value import program_s_name
from .segments import comes_before, encloses, is_recomputable, value_block
from .source_words import is_program_s

POINTS = "ad.points"
"""The attribute of loops that were maps: their counters are subscripts."""
MOST_SHOWN = 6
"""The most numbers of a formula that are shown."""


@dataclass(frozen=True)
class Moved:
    """The subscript `start + index * step`."""

    start: SSAValue
    index: Subscript
    step: SSAValue


Subscript: TypeAlias = "SSAValue | Moved"


@dataclass(frozen=True)
class SanitizeDerivatives(ModulePass):
    """Raise FloatingPointError at the first cotangent or tangent that is not finite."""

    name = "sanitize-derivatives"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for one in [o for o in op.walk() if isinstance(o, array.MapOp) and is_marked(o)]:
            as_loops(one)
        for one in [o for o in op.walk() if MADE in o.attributes]:
            check(one)
        for one in op.walk():
            for name in (WATCHED, MADE, SUMS, ITERATION, POINTS):
                one.attributes.pop(name, None)


# Maps become loops.


def is_marked(op: array.MapOp) -> bool:
    """True for a map whose derivatives can be checked point by point."""
    plain = set(op.out_kinds) <= {"store", "add"}
    is_made = bool(sums_of(op)[1]) or any(MADE in o.attributes for o in op.body.block.ops)
    return plain and is_made


def as_loops(op: array.MapOp) -> None:
    """Put a nest of loops over its points in the place of a map."""
    outer = op.parent
    assert outer is not None
    blocks = [Block(arg_types=[IndexType()]) for _ in op.extents]
    points = [block.args[0] for block in blocks]
    inner = blocks[-1] if blocks else Block()
    for argument, source in zip(op.body.block.args, op.ins, strict=True):
        load = memref.LoadOp.get(source, points)
        load.location, load.res.name_hint = op.location, argument.name_hint
        inner.add_op(load)
        argument.replace_all_uses_with(load.res)
    writes = list(zip(op.outs, op.out_kinds, op.yielded, strict=True))
    for one in list(op.body.block.ops):
        one.detach()
        if isinstance(one, array.YieldOp):
            one.erase()
        else:
            inner.add_op(one)
    kind_of_sums, sums = sums_of(op)
    for number, (out, kind, value) in enumerate(writes):
        for made in written(out, kind, value, points):
            if number in sums and isinstance(made, arith.AddfOp):
                name = program_s_name(name_of_memory(out), op)
                mark_sum(made.result, kind_of_sums, name)
            made.location = op.location
            inner.add_op(made)
    if not blocks:
        ops = list(inner.ops)
        for one in ops:
            one.detach()
        outer.insert_ops_before(ops, op)
    nest: Operation | None = None
    for block, extent in zip(reversed(blocks), reversed(op.extents), strict=True):
        if nest is not None:
            block.add_op(nest)
        block.add_op(end := array.YieldOp([]))
        nest = array.LoopOp(extent, [], block)
        nest.attributes[POINTS] = UnitAttr()
        nest.location = end.location = op.location
    if nest is not None:
        outer.insert_op_before(nest, op)
    op.detach()
    op.erase()


def written(
    out: SSAValue, kind: str, value: SSAValue, points: Sequence[SSAValue]
) -> Iterator[Operation]:
    """One element is stored, or added to what is there."""
    if kind == "add":
        yield (old := memref.LoadOp.get(out, points))
        integer = not isinstance(value.type, AnyFloat)
        total = arith.AddiOp(old.res, value) if integer else arith.AddfOp(old.res, value)
        yield total
        value = total.result
    yield memref.StoreOp.get(value, out, points)


# Checks.


def check(op: Operation) -> None:
    """Behind an op that makes a derivative: raise where that is not finite."""
    made = op.results[0]
    if not isinstance(made.type, AnyFloat) or isinstance(op.parent_op(), array.MapOp):
        return
    ops: list[Operation] = []
    size = math.AbsFOp(made)
    most = arith.ConstantOp(FloatAttr(float("inf"), made.type))
    wrong = arith.CmpfOp(size.result, most.result, "uge")
    ops += [size, most, wrong]
    text, shown = Message(op, ops).written()
    ops.append(array.RaiseIfOp(wrong.result, "FloatingPointError", text, shown))
    for one in ops:
        one.location = op.location
    assert op.parent is not None
    op.parent.insert_ops_after(ops, op)


class Message:
    """What is said of a derivative that is not finite, and the numbers in it."""

    def __init__(self, op: Operation, ops: list[Operation]) -> None:
        self.op, self.ops = op, ops
        self.shown: list[SSAValue] = []
        self.kind, self.name, self.by, *more = words_of(op)
        self.is_whole = WHOLE in more

    def written(self) -> tuple[str, list[SSAValue]]:
        made = self.op.results[0]
        what = f"the {self.kind} of {self._subject()}"
        what = f"{escaped(self.by)}: {what}" if self.by else f"{what}, a sum,"
        at = line_of(self.op)
        place = "" if at is None else f"{escaped(PurePath(at[0]).name)}:{at[1]}: "
        text = f"{place}{what} is {self._number(made)}"
        if not self.is_whole:
            text += f": {self._formula(made)[0]}"
        return text + self._iterations(), self.shown

    def _number(self, value: SSAValue) -> str:
        self.shown.append(value)
        return "{}"

    def _subject(self) -> str:
        """What it is a derivative of: a variable, an element, an expression."""
        is_cotangent = self.kind.startswith("cotangent")
        if (place := place_of(self.op.results[0], through_sums=is_cotangent)) is not None:
            known = [self._subscript(i) for i in place[1]]
            found = [k for k in known if k is not None]
            if len(found) == len(known) and self._is_named(place[0]):
                return f"{place[0]}[{', '.join(map(self._number, found))}]"
        is_name = all(part.isidentifier() for part in self.name.split("."))
        name = self.name if is_name else f"`{escaped(self.name)}`"
        numbers = ", ".join(map(self._number, self._points()))
        return f"{name} at [{numbers}]" if numbers else name

    def _is_named(self, array: str) -> bool:
        """Whether the program calls an array so."""
        at = line_of(self.op)
        return array == self.name or (at is not None and is_program_s(array, at[0], at[1]))

    def _points(self) -> list[SSAValue]:
        """The point of the map that this was in."""
        loops = enclosing_loops(self.op)
        return [loop.induction for loop in loops if POINTS in loop.attributes]

    def _subscript(self, of: Subscript) -> SSAValue | None:
        """A subscript at the check; None where it is not known there."""
        if isinstance(of, SSAValue):
            return self._available(of)
        index, step, start = self._subscript(of.index), *map(self._available, (of.step, of.start))
        if index is None or step is None or start is None:
            return None
        if array.constant_value(step) != 1:
            self.ops.append(factor := arith.MuliOp(index, step))
            index = factor.result
        if array.constant_value(start) != 0:
            self.ops.append(total := arith.AddiOp(start, index))
            index = total.result
        return index

    def _available(self, value: SSAValue) -> SSAValue | None:
        """The value at the check, computed once more where it would come later; None where it cannot be."""
        owner = value.owner
        block = value_block(value)
        if encloses(block, self.op):
            here = around(self.op, block)
            if isinstance(owner, Block) or owner is here or comes_before(owner, here):
                return value
        if not isinstance(owner, Operation) or not is_recomputable(owner):
            return None
        found: dict[SSAValue, SSAValue] = {}
        for operand in owner.operands:
            known = self._available(operand)
            if known is None:
                return None
            found[operand] = known
        clone = owner.clone(found)
        self.ops.append(clone)
        return clone.results[list(owner.results).index(value)]  # pyright: ignore[reportArgumentType]

    def _formula(self, value: SSAValue, depth: int = 0) -> tuple[str, int]:
        """How it was computed, and how tightly the operator binds: 0 sum, 1 product, 2 number or call."""
        op = value.owner
        number = constant_float(value)
        if number is not None:
            return repr(number), 2
        if not isinstance(op, Operation) or len(self.shown) > MOST_SHOWN:
            return self._number(value), 2
        if depth and (ADJOINT not in op.attributes or MADE in op.attributes):
            return self._number(value), 2
        match op:
            case arith.AddfOp() | arith.SubfOp():
                return self._both(op, "+" if isinstance(op, arith.AddfOp) else "-", 0, depth)
            case arith.MulfOp() | ad.MulOp():
                return self._both(op, "*", 1, depth)
            case arith.DivfOp() | ad.DivOp():
                return self._both(op, "/", 1, depth)
            case arith.NegfOp():
                return f"-{self._at(op.operand, 1, depth)}", 1
            case array.CastOp():
                return self._formula(op.value, depth + 1)
            case arith.SelectOp() if constant_float(op.lhs) is not None:
                return self._formula(op.rhs, depth + 1)
            case arith.SelectOp() if constant_float(op.rhs) is not None:
                return self._formula(op.lhs, depth + 1)
            case Operation() if op.name.startswith("math.") and len(op.operands) <= 2:
                inner = ", ".join(self._formula(o, depth + 1)[0] for o in op.operands)
                return f"{op.name.removeprefix('math.')}({inner})", 2
            case _:
                return self._number(value), 2

    def _both(self, op: Operation, sign: str, tight: int, depth: int) -> tuple[str, int]:
        left, right = op.operands[:2]
        first = self._at(left, tight, depth)
        return f"{first} {sign} {self._at(right, tight + (sign in '-/'), depth)}", tight

    def _at(self, value: SSAValue, least: int, depth: int) -> str:
        text, tight = self._formula(value, depth + 1)
        return text if tight >= least else f"({text})"

    def _iterations(self) -> str:
        """In which iteration of which loops of the program."""
        told: list[str] = []
        for loop in reversed(enclosing_loops(self.op)):
            at = line_of(loop)
            if POINTS in loop.attributes or at is None:
                continue
            said = [o for o in loop.body.block.ops if ITERATION in o.attributes]
            counter = said[0].results[0] if said else loop.induction
            if (known := self._available(counter)) is not None:
                told.append(f"iteration {self._number(known)} of line {at[1]}")
        return f" ({', '.join(told)}, counted from 0)" if told else ""


def escaped(text: str) -> str:
    """A text that stays as it is in a format."""
    return text.replace("{", "{{").replace("}", "}}")


def around(op: Operation, block: Block) -> Operation:
    """The op of `block` that is, or has inside, this one."""
    while op.parent is not block:
        parent = op.parent_op()
        assert parent is not None
        op = parent
    return op


def place_of(made: SSAValue, *, through_sums: bool) -> tuple[str, list[Subscript]] | None:
    """The one element of the one array that a derivative goes to: the array's name, and subscripts of it."""
    stores: list[memref.StoreOp] = []
    pending = [made]
    while pending:
        for use in pending.pop().uses:
            op = use.operation
            if isinstance(op, memref.StoreOp) and use.index == 0:
                stores.append(op)
            elif isinstance(op, arith.AddfOp) and through_sums:
                pending.append(op.result)
    if len(stores) != 1 or not stores[0].indices:
        return None
    return element_of(stores[0].memref, list(stores[0].indices))


def element_of(memory: SSAValue, indices: list[Subscript]) -> tuple[str, list[Subscript]] | None:
    """Which element of the whole array an element of a view of its shadow is; None elsewhere."""
    name = name_of_memory(memory)
    while isinstance(view := memory.owner, memref.CastOp | array.ViewOp):
        memory = view.source
        if isinstance(view, array.ViewOp):
            found = list[Subscript](view.offsets)
            for axis, index, step in zip(view.source_dims, indices, view.steps, strict=True):
                if axis >= 0:
                    found[axis] = Moved(view.offsets[axis], index, step)
            indices = found
    return (name, indices) if name and indices else None


def name_of_memory(memory: SSAValue) -> str:
    """What the array is called whose derivatives lie here; "" where that is not known."""
    while isinstance(view := memory.owner, memref.CastOp | array.ViewOp):
        memory = view.source
    hint = as_written(memory.name_hint or "")
    for ending in ("_shadow", "_bar", "_dot"):
        if hint.endswith(ending):
            return hint.removesuffix(ending)
    return ""
