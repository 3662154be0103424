"""Let each element of a shadow collect from the points that read it, where many points added to it.

The adjoint of a map with shifted reads adds to several shifted views of one shadow. These are as many sweeps
over it. A map over the elements of the shadow, which reads the cotangents at shifts, is one. Runs last: its
maps are not point by point, which the passes before take for granted.

Before::

    func.func @f(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %a = array.view %s[%c0] dims [0] extents(%n) steps(%c1)
          : memref<?xf64> -> memref<?xf64, strided<[1]>>
      %b = array.view %s[%c1] dims [0] extents(%n) steps(%c1)
          : memref<?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%n) ins(%v : memref<?xf64>)
          outs(%a, %b : memref<?xf64, strided<[1]>>, memref<?xf64, strided<[1]>>) kinds ["add", "add"] {
      ^bb0(%bar : f64):
        %minus = arith.negf %bar : f64
        array.yield %minus, %bar : f64, f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %v : memref<?xf64>, %s : memref<?xf64>) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %0 = arith.constant 1 : index
      %1 = arith.addi %n, %0 : index
      %s_1 = array.view %s[%c0] dims [0] extents(%1) steps(%c1)
          : memref<?xf64> -> memref<?xf64, strided<[1]>>
      array.map(%1) ins(%v, %v : memref<?xf64>, memref<?xf64>) outs(%s_1 : memref<?xf64, strided<[1]>>)
          kinds ["add"] window(%n) shifts [0, 1] zeros [0, 1] {
      ^bb0(%bar : f64, %bar_1 : f64):
        %minus = arith.negf %bar : f64
        %s_2 = arith.addf %minus, %bar_1 {ad.adjoint} : f64
        array.yield %s_2 : f64
      }
      func.return
    }

Why it is the same: an element gets what the points gave that are in the window, in another order, and zero
for each point that is not there: what is added *vanishes* with the cotangents, and those are 0 outside. The
elements between the views of the shadow that no point reaches (the corners of a cross) get zero alone. The
other numbers are read at the nearest point, so no partial is computed from what the program does not have: a
product of the adjoint, with the cotangent first, vanishes even where it is not guarded (`drop-guards`).
Only adjoints add to one array at several views, and their sums may be reordered: an element's old value comes
last.

Kept as they are, as sweeps: views that differ by what is known only at run time, or whose strides differ;
views that stand still (a broadcast) or walk an axis twice; contributions that do not vanish with an input
(`vanishes_with`); a map that reads, or stores to, the memory that it adds to; and what is dearer to compute
once for each view than to write (`is_worth_it`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import arith, func, vector
from xdsl.dialects.builtin import (
    AnyFloat,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnitAttr,
    VectorType,
)
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import ad, array
from ..analysis.affine import affine
from ..analysis.alias import AliasAnalysis
from ..rules.table import ADJOINT, COLLECTED, constant_float
from .body_slices import inputs_of, slice_of
from .body_work import swept, work
from .map_outputs import puts_back, with_outputs
from .memory_effects import functions

Shift = tuple[int, ...]


@dataclass(frozen=True)
class GatherAdds(ModulePass):
    """Turn a map that adds to an array at several shifts into one map over that array."""

    name = "gather-adds"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            gather_in(function)


def gather_in(function: func.FuncOp) -> None:
    alias: AliasAnalysis | None = None
    for op in tuple(function.walk()):
        if isinstance(op, array.MapOp) and may_scatter(op):
            alias = alias or AliasAnalysis(function)
            groups = [g for g in groups_of(op) if g.is_scattered and may_gather(g, alias)]
            bodies = [body_of(g) for g in groups]
            if groups and is_worth_it(op, groups, bodies):
                rewrite(op, groups, bodies, alias)


def may_scatter(op: array.MapOp) -> bool:
    return op.gathers is None and op.out_kinds.count("add") > 1


# What is added to one array.


@dataclass
class Group:
    """Outputs of a map that add to one array, at views that differ by a shift."""

    op: array.MapOp
    outputs: list[int]
    shifts: list[Shift]
    """How much later than the first view each begins, in steps of the view."""

    @property
    def views(self) -> list[array.ViewOp]:
        views = [self.op.outs[k].owner for k in self.outputs]
        return [v for v in views if isinstance(v, array.ViewOp)]

    @property
    def source(self) -> SSAValue:
        return self.views[0].source

    @property
    def is_scattered(self) -> bool:
        return len(set(self.shifts)) > 1

    @property
    def least(self) -> Shift:
        return tuple(map(min, zip(*self.shifts, strict=True)))

    @property
    def spread(self) -> Shift:
        """By how much more elements there are than points, for each axis."""
        return tuple(max(s) - min(s) for s in zip(*self.shifts, strict=True))

    @property
    def taken(self) -> list[Shift]:
        """What each contribution's point is before the element that gets it."""
        least = self.least
        return [tuple(s - m for s, m in zip(shift, least, strict=True)) for shift in self.shifts]


def groups_of(op: array.MapOp) -> Iterator[Group]:
    groups: list[Group] = []
    for k, (out, kind) in enumerate(zip(op.outs, op.out_kinds, strict=True)):
        if kind != "add" or not isinstance(out.owner, array.ViewOp) or not walks(out):
            continue
        for group in groups:
            first = group.views[0]
            shift = shift_between(first, out.owner)
            if shift is not None and first.source is out.owner.source:
                group.outputs.append(k)
                group.shifts.append(shift)
                break
        else:
            groups.append(Group(op, [k], [(0,) * len(op.extents)]))
    yield from groups


def walks(out: SSAValue) -> bool:
    """Whether the points are elements of their own, of an array of floats (or of vectors of them), along an
    axis each."""
    view, type_ = out.owner, out.type
    assert isinstance(view, array.ViewOp)
    assert isinstance(type_, MemRefType)
    assert isinstance(view.source.type, MemRefType)
    dims = view.source_dims
    return (
        isinstance(type_.element_type, AnyFloat | VectorType)
        and min(dims, default=-1) >= 0
        and len(set(dims)) == len(dims)
        and 0 not in array.strides_of(view.source.type)
    )


def shift_between(first: array.ViewOp, other: array.ViewOp) -> Shift | None:
    """How many steps after `first` the other view begins, along each axis; None where that is not known.

    As if they were views of one memref.
    """
    alike = first.source_dims == other.source_dims and len(first.offsets) == len(other.offsets)
    if not alike:
        return None  # a row of a matrix and a part of a vector, for example
    away = [affine(b) - affine(a) for a, b in zip(first.offsets, other.offsets, strict=True)]
    shift: list[int] = []
    for d, a, b in zip(first.source_dims, first.steps, other.steps, strict=True):
        step = affine(a)
        if step != affine(b) or not away[d].is_constant:
            return None
        distance = away[d].constant
        if distance:
            if not step.is_constant or step.constant == 0 or distance % step.constant:
                return None
            distance //= step.constant
        shift.append(distance)
    still = [a for d, a in enumerate(away) if d not in first.source_dims]
    if any(not a.is_constant or a.constant for a in still):
        return None
    return tuple(shift)


# Whether it is the same, and cheaper.


def may_gather(group: Group, alias: AliasAnalysis) -> bool:
    """True when nothing but these sums touches the array in the map, and all vanish with cotangents."""
    op, view = group.op, group.views[0]
    stored = [m for m, kind in zip(op.outs, op.out_kinds, strict=True) if kind != "add"]
    for m in (*op.ins, *stored):
        if not apart(alias, group.source, m) and not interleaved(view, m):
            return False
    return all(vanishes_with(op.yielded[k], op.body.block) is not None for k in group.outputs)


def apart(alias: AliasAnalysis, a: SSAValue, b: SSAValue) -> bool:
    return not alias.may_alias(a, b) or alias.apart_in_turn(a, b)


def interleaved(view: array.ViewOp, other: SSAValue) -> bool:
    """True when no element of the other view is one of this view, however far that goes on (every other)."""
    if not isinstance(other.owner, array.ViewOp) or other.owner.source is not view.source:
        return False
    dims, steps, theirs = view.source_dims, view.steps, other.owner.steps
    if dims != other.owner.source_dims:
        return False
    for d, (a, b) in enumerate(zip(view.offsets, other.owner.offsets, strict=True)):
        away = affine(b) - affine(a)
        if not away.is_constant or dims.count(d) > 1:
            continue
        if d not in dims:
            period = 0
        else:
            step = affine(steps[dims.index(d)])
            if step != affine(theirs[dims.index(d)]) or not step.is_constant:
                continue
            period = step.constant
        if away.constant % period if period else away.constant:
            return True
    return False


def vanishes_with(value: SSAValue, body: Block) -> frozenset[SSAValue] | None:
    """Inputs such that the value is 0 where they are all 0; None where there are none."""
    inputs, seen, pending = set[SSAValue](), set[SSAValue](), [value]
    while pending:
        value = pending.pop()
        if value in seen or known_float(value) == 0.0:
            continue
        seen.add(value)
        if value.owner is body:
            inputs.add(value)
            continue
        factors = zero_if_zero(value.owner, body)
        if factors is None:
            return None
        pending += factors
    return frozenset(inputs)


def zero_if_zero(op: Operation | Block, body: Block) -> Sequence[SSAValue] | None:
    """Operands of an op of the body such that its result is 0 where they are all 0."""
    if isinstance(op, Block) or op.parent is not body:
        return None
    match op:
        case ad.MulOp() | ad.DivOp() | arith.NegfOp() | arith.ExtFOp() | arith.TruncFOp():
            return (op.operands[0],)
        case arith.MulfOp() if is_finite(op.rhs):
            return (op.lhs,)
        case arith.MulfOp() if is_finite(op.lhs):
            return (op.rhs,)
        case arith.MulfOp() | arith.DivfOp() if "ad.adjoint" in op.attributes:
            return (op.lhs,)
        case arith.DivfOp() if is_finite(op.rhs) and known_float(op.rhs) != 0.0:
            return (op.lhs,)
        case arith.AddfOp() | arith.SubfOp() | arith.SelectOp():
            return (op.lhs, op.rhs)
        case _:
            return None


def is_finite(value: SSAValue) -> bool:
    known = known_float(value)
    return known is not None and isfinite(known)


def known_float(value: SSAValue) -> float | None:
    """The float that a value certainly is, in each of several tangents, too."""
    return constant_float(spread(value))


def spread(value: SSAValue) -> SSAValue:
    """The number that a vector has in all places, where that is known; any other value itself."""
    return value.owner.source if isinstance(value.owner, vector.BroadcastOp) else value


def is_worth_it(op: array.MapOp, groups: Sequence[Group], bodies: Sequence[Body]) -> bool:
    """Whether the gathering maps cost less than sweeps with a strip for each view."""
    body = op.body.block
    gathered = {k for g in groups for k in g.outputs}
    left = [v for k, v in enumerate(op.yielded) if k not in gathered and not puts_back(op, k)]
    taken = [v for k, v in enumerate(op.yielded) if k in gathered]
    again = inputs_of(left, body)
    rest = swept(left, body) + len(again) + AGAIN * len(again & inputs_of(taken, body))
    gathers = sum(work([*made.block.ops]) + len(made.ins) + 2 for made in bodies)
    sweeps = swept(op.yielded, body) + len(op.ins) + SWEEP * len(gathered)
    return gathers + rest <= sweeps


AGAIN = 3.0
"""What it costs a vector that another map reads it again: it is no longer in the nearest cache."""

SWEEP = 4.0
"""What a sweep costs a vector: a strip is written and read, and so is the array. An access is the unit."""


# The rewrite.


@dataclass
class Body:
    """The body of a gathering map under construction; its inputs are those of contributions, shifted."""

    block: Block = field(default_factory=Block)
    ins: list[SSAValue] = field(default_factory=list[SSAValue])
    shifts: list[Shift] = field(default_factory=list[Shift])
    zeros: set[int] = field(default_factory=set[int])
    numbers: dict[tuple[SSAValue, Shift], int] = field(
        default_factory=dict[tuple[SSAValue, Shift], int]
    )

    def contribution(self, op: array.MapOp, value: SSAValue, shift: Shift) -> SSAValue:
        """What the point gives that is `shift` before the element."""
        body = op.body.block
        zeros = vanishes_with(value, body)
        assert zeros is not None
        here: dict[SSAValue, SSAValue] = {}
        read = inputs_of([value], body)
        for argument, memref in zip(body.args, op.ins, strict=True):
            if argument in read:
                here[argument] = self.input(argument, memref, shift, zero=argument in zeros)
        for step in slice_of([value], body):
            made = step.clone(here)
            made.attributes.pop(COLLECTED, None)  # these sums are the same wherever there are any
            self.block.add_op(made)
        return here.get(value, value)

    def spread_over(self, factor: Operation) -> dict[SSAValue, SSAValue]:
        """The number of a factor once more, as a vector."""
        made = {
            o: o.owner.clone() for o in factor.operands if isinstance(o.owner, vector.BroadcastOp)
        }
        self.block.add_ops(made.values())
        return {old: op.results[0] for old, op in made.items()}

    def sum_of(self, values: Sequence[SSAValue], group: Group) -> SSAValue:
        total = values[0]
        for value in values[1:]:
            sum_ = arith.AddfOp(total, value)
            sum_.attributes[ADJOINT] = UnitAttr()
            sum_.location = group.op.location
            sum_.result.name_hint = group.source.name_hint
            self.block.add_op(sum_)
            total = sum_.result
        return total

    def input(self, argument: SSAValue, memref: SSAValue, shift: Shift, *, zero: bool) -> SSAValue:
        number = self.numbers.setdefault((memref, shift), len(self.ins))
        if number == len(self.ins):
            self.ins.append(memref)
            self.shifts.append(shift)
            self.block.insert_arg(argument.type, number).name_hint = argument.name_hint
        if zero:
            self.zeros.add(number)
        return self.block.args[number]


def body_of(group: Group) -> Body:
    """What an element collects. Points that give a like multiple of something give that something instead."""
    op, body = group.op, Body()
    given: dict[SSAValue, list[Shift]] = {}
    for k, shift in zip(group.outputs, group.taken, strict=True):
        given.setdefault(op.yielded[k], []).append(shift)
    sums: list[SSAValue] = []
    for value, shifts in given.items():
        factors, base = factored(value, op.body.block) if len(shifts) > 1 else ([], value)
        total = body.sum_of([body.contribution(op, base, s) for s in shifts], group)
        for factor in factors:
            again = factor.clone({base: total} | body.spread_over(factor))
            body.block.add_op(again)
            base, total = factor.results[0], again.results[0]
        sums.append(total)
    end = array.YieldOp([body.sum_of(sums, group)])
    end.location = op.location
    body.block.add_op(end)
    return body


def factored(value: SSAValue, body: Block) -> tuple[list[Operation], SSAValue]:
    """A value as a number times another: the products that make it, first to last, and what they are of."""
    factors: list[Operation] = []
    while True:
        op = value.owner
        match op:
            case arith.NegfOp():
                pass
            case arith.MulfOp() | arith.DivfOp() | ad.MulOp() | ad.DivOp() if is_number(
                op.rhs, body
            ):
                pass
            case _:
                return factors[::-1], value
        factors.append(op)
        value = op.operands[0]


def is_number(value: SSAValue, body: Block) -> bool:
    """Whether a factor, or divisor, is a finite number from outside of the body."""
    number = spread(value).owner
    inside = isinstance(number, Block) or number.parent is body
    return not inside and is_finite(value) and known_float(value) != 0.0


def rewrite(
    op: array.MapOp, groups: Sequence[Group], bodies: Sequence[Body], alias: AliasAnalysis
) -> None:
    """Put a gathering map for each group before the map, which keeps its other outputs."""
    builder = Builder(InsertPoint.before(op))
    for group, body in zip(groups, bodies, strict=True):
        gather(group, body, builder)
    gathered = {k for g in groups for k in g.outputs}
    views = [v for g in groups for v in g.views]
    left = [k for k in range(len(op.outs)) if k not in gathered]
    kept = [k for k in left if not puts_back(op, k) or touched_by_others(op, k, alias)]
    with_outputs(op, kept)
    for view in dict.fromkeys(views):
        if view.result.first_use is None:
            Rewriter.erase_op(view)


def touched_by_others(op: array.MapOp, k: int, alias: AliasAnalysis) -> bool:
    """Whether other outputs may write to what an output writes to."""
    others = [m for j, m in enumerate(op.outs) if j != k]
    return any(not apart(alias, op.outs[k], m) for m in others)


def gather(group: Group, body: Body, builder: Builder) -> None:
    op = group.op
    extents = [more(n, s, op, builder) for n, s in zip(op.extents, group.spread, strict=True)]
    how = array.Gathers(tuple(op.extents), tuple(body.shifts), frozenset(body.zeros))
    target = around(group, extents, builder)
    made = array.MapOp(extents, body.ins, [target], ["add"], body.block, how)
    made.location = op.location
    made.attributes.update(op.attributes)
    builder.insert(made)


def more(n: SSAValue, by: int, op: Operation, builder: Builder) -> SSAValue:
    """`n + by`."""
    if by == 0:
        return n
    known = array.constant_value(n)
    number = arith.ConstantOp(IntegerAttr(by if known is None else known + by, IndexType()))
    number.location = op.location
    builder.insert(number)
    if known is not None:
        return number.result
    total = arith.AddiOp(n, number.result)
    total.location = op.location
    return builder.insert(total).result


def around(group: Group, extents: Sequence[SSAValue], builder: Builder) -> SSAValue:
    """The view that begins where the first of the views does along each axis, to the end of the last."""
    views, offsets = group.views, list(group.views[0].offsets)
    for axis, d in enumerate(views[0].source_dims):
        first = min(range(len(views)), key=lambda k: group.shifts[k][axis])
        offsets[d] = views[first].offsets[d]
    view = array.ViewOp(group.source, offsets, views[0].source_dims, extents, views[0].steps)
    view.location = views[0].location
    view.result.name_hint = group.source.name_hint
    return builder.insert(view).result
