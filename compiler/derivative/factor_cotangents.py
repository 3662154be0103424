"""Multiply a cotangent once by the sum of its partials, instead of adding up its products with each.

The reverse sweep adds to a shadow what each use of a variable gives: `u + nu * (r - 2.0 * u + l)` reads `u`
twice, so its cotangent is `y_bar - 2.0 * (y_bar * nu)`. The partials alone are what differs from one use to
the next. Their sum is one factor, and what of it is the same for all points is computed once, before the map.

Before::

    func.func @f(%n : index, %nu : f64, %g : memref<?xf64>, %p : memref<?xf64>, %s : memref<?xf64>) {
      %two = arith.constant 2.0 : f64
      array.map(%n) ins(%g, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
      ^bb0(%y_bar : f64, %x : f64):
        %a = ad.mul %y_bar, %nu {ad.adjoint} : f64
        %b = arith.mulf %a, %two {ad.adjoint} : f64
        %c = arith.subf %y_bar, %b {ad.adjoint} : f64
        %d = ad.mul %y_bar, %x {ad.adjoint} : f64
        %e = arith.addf %c, %d {ad.adjoint} : f64
        array.yield %e : f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %nu : f64, %g : memref<?xf64>, %p : memref<?xf64>, %s : memref<?xf64>) {
      %two = arith.constant 2.0 : f64
      %one = arith.constant 1.0 : f64
      %two_1 = arith.constant 2.0 : f64
      %a = arith.mulf %nu, %two_1 {ad.adjoint} : f64
      %b = arith.subf %one, %a {ad.adjoint} : f64
      array.map(%n) ins(%g, %p : memref<?xf64>, memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
      ^bb0(%y_bar : f64, %x : f64):
        %c = arith.addf %b, %x {ad.adjoint} : f64
        %d = ad.mul %y_bar, %c {ad.adjoint, ad.collected} : f64
        array.yield %d : f64
      }
      func.return
    }

Runs right behind each reverse sweep, on bodies as that wrote them: a gradient has the same bits alone, within
a budget, in a tangent of it, and where another function asks for it. Partials are values here, however they
are made.

Why it is as good: see the note at the end.

Kept: sums in which that saves no op; terms with two partials, or with a constant that is very large or very
small; products in which a zero of the partial is strong, too; sums of the primal; and all but what maps add
to memory, because only that is a cotangent for sure.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects import arith, func, vector
from xdsl.dialects.builtin import LocationAttr, ModuleOp, UnitAttr, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from ..rules.table import ADJOINT, COLLECTED, constant_float, float_constant
from ..transforms.body_slices import slice_of
from ..transforms.map_outputs import is_pure

MOST_TERMS = 16
"""Sums of more are taken as they are: of what many loops have in common, each would be a sum of its own."""

MOST_SCALE = 1024.0
"""The largest constant of a partial, and one over the smallest: so much earlier it may overflow."""

SUMS = arith.AddfOp | arith.SubfOp
HANDED_ON = (arith.DivfOp, ad.DivOp, arith.ExtFOp, arith.TruncFOp, array.CastOp)
"""Ops beside sums and products whose first operand is a cotangent, if the result is."""


FREE = (arith.NegfOp, arith.ConstantOp, vector.BroadcastOp)


@dataclass(frozen=True)
class FactorCotangents(ModulePass):
    """Collect the terms of a cotangent's sum by the cotangents that they are products of."""

    name = "factor-cotangents"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in op.ops:
            if isinstance(function, func.FuncOp):
                for one in list(ops_of_kind(function, array.MapOp)):
                    factor(one)


def factor(op: array.MapOp) -> None:
    """Put a map in the place of one, if its body has fewer ops."""
    if not sums_of(op):
        return
    made = op.clone()
    before: list[Operation] = []
    body = made.body.block
    roots = sums_of(made)
    terms = terms_in(body)
    for root in roots:
        own = terms.get(root.results[0], [])
        collected = (
            collect(own) if own else None
        )  # a sum is of more terms where one before was rewritten
        if collected is not None and cost(collected, body) < ops_of(root, own, body):
            rewrite(root, collected, before)
            terms = terms_in(body)
    if count(made) < count(op):
        parent = op.parent
        assert parent is not None
        parent.insert_ops_before(before, op)
        Rewriter.replace_op(op, made)
    else:
        made.erase()
        for one in reversed(before):
            one.erase()


def count(op: array.MapOp) -> int:
    return distinct(slice_of(op.yielded, op.body.block))


def distinct(ops: Iterable[Operation]) -> int:
    """How many ops there are, in order, but for those that cost nothing, and for equal ones."""
    first: dict[SSAValue, SSAValue] = {}
    seen: dict[tuple[object, ...], Operation] = {}
    for op in ops:
        operands = [first.get(o, o) for o in op.operands]
        known = seen.setdefault((type(op), *op.properties.values(), *operands), op)
        if not op.regions:
            first.update(zip(op.results, known.results, strict=True))
    return sum(not isinstance(op, FREE) for op in seen.values())


# What is a cotangent, and what it is a sum of.


@dataclass(frozen=True)
class Term:
    """`scale * bar * partial`; without a partial, `scale * bar`."""

    scale: float
    bar: SSAValue
    partial: SSAValue | None = None
    guarded: bool = False
    """Whether a zero of `bar` is strong."""

    def scaled(self, by: float) -> Term:
        return replace(self, scale=self.scale * by)

    @property
    def is_moderate(self) -> bool:
        return 1 / MOST_SCALE <= abs(self.scale) <= MOST_SCALE


def sums_of(op: array.MapOp) -> list[Operation]:
    """The sums in which a cotangent is there more than once, in the order of the body."""
    body = op.body.block
    if not any(is_adjoint(one) and isinstance(one, SUMS) for one in body.ops):
        return []
    terms = terms_in(body)
    found: set[Operation] = set()
    pending = [v for v, kind in zip(op.yielded, op.out_kinds, strict=True) if kind == "add"]
    seen: set[SSAValue] = set()
    while pending:
        value = pending.pop()
        if value in seen:
            continue
        seen.add(value)
        own = terms.get(value, [Term(1.0, value)])
        bars = [t.bar for t in own]
        if bars == [value]:
            bars = cotangents_of(value, body)
        elif isinstance(value.owner, SUMS) and len(set(bars)) < len(bars):
            found.add(value.owner)
        pending.extend(bars)
    return [one for one in body.ops if one in found]


def is_adjoint(op: Operation) -> bool:
    return ADJOINT in op.attributes


def cotangents_of(value: SSAValue, body: Block) -> list[SSAValue]:
    """What of an op's operands is a cotangent, where its result is one."""
    op = value.owner
    if isinstance(op, Block) or op.parent is not body or not is_adjoint(op):
        return []
    match op:
        case arith.AddfOp() | arith.SubfOp():
            return [*op.operands]
        case arith.SelectOp():
            return [op.lhs, op.rhs]
        case arith.MulfOp() | ad.MulOp() | arith.NegfOp():
            return [op.operands[0]]
        case _:
            return [op.operands[0]] if isinstance(op, HANDED_ON) else []


def terms_in(body: Block) -> dict[SSAValue, list[Term]]:
    """What sums and products of the adjoint are sums of, if they are of few terms."""
    terms: dict[SSAValue, list[Term]] = {}
    for op in body.ops:
        if not is_adjoint(op):
            continue
        operands = [terms.get(o, [Term(1.0, o)]) for o in op.operands]
        match op:
            case arith.AddfOp():
                made = operands[0] + operands[1]
            case arith.SubfOp():
                made = operands[0] + negated(operands[1])
            case arith.NegfOp():
                made = negated(operands[0])
            case arith.MulfOp() | ad.MulOp():
                product = product_of(op, operands[0])
                made = [] if product is None else [product]
            case _:
                continue
        if 0 < len(made) <= MOST_TERMS:
            terms[op.results[0]] = made
    return terms


def negated(terms: Iterable[Term]) -> list[Term]:
    return [t.scaled(-1.0) for t in terms]


def product_of(op: arith.MulfOp | ad.MulOp, terms: Sequence[Term]) -> Term | None:
    """A product as one term: of what its cotangent is a multiple of, where that has no partial yet."""
    if COLLECTED in op.attributes or (isinstance(op, ad.MulOp) and op.both is not None):
        return None
    term, partial = terms[0], spread(op.rhs)
    if len(terms) > 1 or term.partial is not None:
        term = Term(1.0, op.lhs)
    known = constant_float(partial)
    if known is not None:
        made = terms[0].scaled(known) if len(terms) == 1 else term.scaled(known)
        return made if made.is_moderate else None
    if partial.type != number_type(op.result.type):
        return None
    return replace(term, partial=partial, guarded=isinstance(op, ad.MulOp))


def spread(value: SSAValue) -> SSAValue:
    """The number that a vector has in all lanes, where that is known; any other value itself."""
    return value.owner.source if isinstance(value.owner, vector.BroadcastOp) else value


def number_type(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType) else type_


# What is a sum of products again, and what that costs.


@dataclass(frozen=True)
class Product:
    """A cotangent times the sum of its partials."""

    bar: SSAValue
    parts: Sequence[Term]
    """No two with the same partial."""

    @property
    def guarded(self) -> bool:
        return any(t.guarded for t in self.parts)

    @property
    def constant(self) -> float:
        return sum(t.scale for t in self.parts if t.partial is None)

    def fixed(self, body: Block) -> list[Term]:
        """The parts that are the same for all points."""
        return [t for t in self.parts if t.partial is not None and is_outside(t.partial, body)]

    def varying(self, body: Block) -> list[Term]:
        return [t for t in self.parts if t.partial is not None and not is_outside(t.partial, body)]

    def cost(self, body: Block) -> int:
        """The ops in the body."""
        varying = self.varying(body)
        scaled = sum(abs(t.scale) != 1.0 for t in varying)
        first = len(varying) == len(self.parts)
        is_one = len(self.parts) == 1 and not varying and abs(self.constant) == 1.0
        return scaled + len(varying) - first + (not is_one)


def is_outside(value: SSAValue, body: Block) -> bool:
    owner = value.owner
    return (owner if isinstance(owner, Block) else owner.parent) is not body


def collect(terms: Sequence[Term]) -> list[Product] | None:
    """A product for each cotangent; None where terms cancel, or add up to an extreme constant."""
    groups: dict[SSAValue, dict[SSAValue | None, Term]] = {}
    for term in terms:
        group = groups.setdefault(term.bar, {})
        known = group.get(term.partial)
        if known is not None:
            guarded = known.guarded or term.guarded
            term = replace(known, scale=known.scale + term.scale, guarded=guarded)
            if not term.is_moderate:
                return None
        group[term.partial] = term
    return [Product(bar, [*group.values()]) for bar, group in groups.items()]


def cost(products: Sequence[Product], body: Block) -> int:
    return sum(p.cost(body) for p in products) + len(products) - 1


def ops_of(root: Operation, terms: Sequence[Term], body: Block) -> int:
    """How many ops a sum is made of now, down to its cotangents."""
    bars, found = {t.bar for t in terms}, set[Operation]()
    pending: list[SSAValue] = [*root.results]
    while pending:
        value = pending.pop()
        op = value.owner
        if value in bars or isinstance(op, Block) or op in found:
            continue
        found.add(op)
        pending.extend(op.operands if isinstance(op, SUMS) else op.operands[:1])
    return distinct(one for one in body.ops if one in found)


# The rewrite.


Emit = Callable[[Operation], SSAValue]


@dataclass
class Emission:
    """Ops of the adjoint in the place of a sum: in the body, and before the map."""

    root: Operation
    before: list[Operation]

    def inside(self, op: Operation) -> SSAValue:
        parent = self.root.parent
        assert parent is not None
        parent.insert_op_before(marked(op, self.root.location), self.root)
        return op.results[0]

    def outside(self, op: Operation) -> SSAValue:
        self.before.append(marked(op, self.root.location))
        return op.results[0]

    def product(self, product: Product) -> SSAValue:
        body, bar = self.root.parent, product.bar
        assert body is not None
        type_ = number_type(bar.type)
        fixed, varying = product.fixed(body), product.varying(body)
        if not fixed and not varying:
            return self.multiple(bar, product.constant)
        total: SSAValue | None = None
        if product.constant:
            place = self.outside if fixed else self.inside
            total = place(float_constant(product.constant, type_))
        total = added(total, fixed, type_, self.outside)
        total = added(total, varying, type_, self.inside)
        assert total is not None
        if isinstance(bar.type, VectorType):
            total = self.inside(vector.BroadcastOp(total, bar.type))
        return self.inside(ad.MulOp(bar, total) if product.guarded else arith.MulfOp(bar, total))

    def multiple(self, bar: SSAValue, scale: float) -> SSAValue:
        if scale == 1.0:
            return bar
        if scale == -1.0:
            return self.inside(arith.NegfOp(bar))
        return self.inside(arith.MulfOp(bar, self.inside(float_constant(scale, bar.type))))


def marked(op: Operation, location: LocationAttr) -> Operation:
    if not isinstance(op, arith.ConstantOp):
        op.attributes[ADJOINT] = UnitAttr()
    op.location = location
    return op


def added(
    total: SSAValue | None, parts: Sequence[Term], type_: Attribute, emit: Emit
) -> SSAValue | None:
    """The parts added to a sum; those that are not subtracted first, where there is none yet."""
    if total is None:
        parts = sorted(parts, key=lambda t: t.scale < 0)
    for part in parts:
        assert part.partial is not None
        size, value = abs(part.scale), part.partial
        if size != 1.0:
            value = emit(arith.MulfOp(value, emit(float_constant(size, type_))))
        if total is None:
            total = value if part.scale > 0 else emit(arith.NegfOp(value))
        else:
            total = emit((arith.AddfOp if part.scale > 0 else arith.SubfOp)(total, value))
    return total


def rewrite(root: Operation, products: Sequence[Product], before: list[Operation]) -> None:
    emission = Emission(root, before)
    total = emission.product(products[0])
    for product in products[1:]:
        total = emission.inside(arith.AddfOp(total, emission.product(product)))
    old, body = root.results[0], root.parent
    assert body is not None
    if len(products) == 1 and isinstance(total.owner, arith.MulfOp | ad.MulOp):
        total.owner.attributes[COLLECTED] = UnitAttr()
    old.replace_all_uses_with(total)
    if total.name_hint is None:
        total.name_hint = old.name_hint
    for op in reversed(list(body.ops)):
        if is_pure(op) and is_adjoint(op) and all(r.first_use is None for r in op.results):
            Rewriter.erase_op(op)


# Note [Sums of partials]
#
# Adjoint code may reassociate. What is left to show is that no number is lost that the products have.
#
# * Zeros. A cotangent of 0 gives 0 in each product with a guard, and so does the one product with theirs. A
#   product has a guard if one of its terms had. A term has one partial: so the order in which a cotangent
#   meets two of them, one zero and one infinite, is kept.
# * What is not finite. An infinite partial makes its product infinite, and the sum; two of opposite signs
#   make both sums NaN. So a sum of partials is as finite as the sum of products is.
# * Overflow and underflow. A term is a partial times a constant between 1/1024 and 1024: so a sum overflows
#   only where a partial is within a factor of 16 * 1024 of the largest number, and loses bits only where one
#   is so near to the smallest. A product of two partials could be either long before.
# * Cancellation. The sum's error is a few units in the last place of its largest term, as before.
