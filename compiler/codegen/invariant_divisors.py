"""Quotients by what stands still in the innermost loop of a map: products, corrected, with one reciprocal.

::

    e / sum   for a row          z = 1 / s                       s, and enough points, are known before
                                 q = x z;  r = s q - x           for each point
                                 y = q - r z;  wild |= x is too small or too large
                                 if wild: the loop once more, with divisions

A division of a vector takes as long as eight products or more. The results have all bits of divisions: see
Note [Quotients by invariants]. The loop runs again only where its outputs are none of its inputs, and it has
no sums.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..rules.table import constant_float
from .floats_to_llvm import bits_of
from .kernel_state import KernelState
from .llvm_text import integer
from .map_nest import Nest, is_number, overwritten_inputs
from .map_stages import Quotients
from .scalar_text import float_text, negated

LEAST, LARGEST = 2.0**-450, 2.0**450
"""Sizes of numbers and divisors of which no product, and nothing that is left, is too small or too large."""
PAYS = 32
"""Points of a row from which on the loop pays."""
FEW = 8
"""So many ops of a point, for each division, are less work than it."""
QUICK = (
    *(arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.NegfOp, math.AbsFOp, arith.DivfOp),
    *(arith.ConstantOp, array.YieldOp),
)
"""What is in bodies of which divisions are most of the work."""
UNSEEN = (("i64", "-1"), ("i64", "0"))
"""The least and the largest size of no numbers, as `look_at` has them."""


def invariant_divisors(nest: Nest, count: str) -> dict[Operation, SSAValue]:
    """The quotients of a map for which products pay, with their divisors; `count`: of the innermost loop."""
    state, body, known = nest.state, nest.op.body.block, integer(count)
    if known is not None and known < PAYS:
        return {}
    if state.fastmath or state.scalar_only or "avx512f" not in state.features:
        return {}
    if overwritten_inputs(nest) or not all(map(is_number, nest.operands)):
        return {}
    if any(o.kind != "store" or o.buffered for o in nest.outputs) or len(nest.stages) > 1:
        return {}
    if any(o.strides[-1] not in ("0", "1") for o in nest.operands):
        return {}  # vectors wait for their elements
    if not all(isinstance(op, QUICK) for op in body.ops):
        return {}
    inputs = zip(body.args, nest.inputs, strict=True)
    still = {argument for argument, o in inputs if o.strides[-1] == "0"}
    found: dict[Operation, SSAValue] = {
        op: op.rhs
        for op in body.ops
        if isinstance(op, arith.DivfOp)
        and isinstance(op.result.type, Float64Type)
        and constant_float(op.rhs) is None
        and (op.rhs in still or not is_of(op.rhs, body))
    }
    return found if len([*body.ops]) <= FEW * len(found) else {}


def is_of(value: SSAValue, body: Block) -> bool:
    """Whether a point computes the value, or reads it."""
    return (value.owner.parent if isinstance(value.owner, Operation) else value.owner) is body


def read_divisors(
    nest: Nest, pointers: list[str], divisors: dict[Operation, SSAValue]
) -> list[str]:
    """The divisors; those that are elements of inputs are read here, before the loop."""
    wanted = {*divisors.values()}
    for argument, o, at in zip(nest.op.body.block.args, nest.inputs, pointers, strict=False):
        if argument in wanted:
            loaded = nest.state.load(at, o.element, o.tags, argument.name_hint)
            nest.state.scalars[argument] = loaded
    return [*dict.fromkeys(nest.state.scalar(d) for d in divisors.values())]


def are_tame(state: KernelState, divisors: Sequence[str], count: str) -> str:
    """Whether all are above 0, and of a size that the loop may have, and its points enough."""
    text, least = state.text, bits_of(LEAST)
    tests = [text.value(f"icmp sge i64 {count}, {PAYS}")]
    for value in divisors:
        bits = text.value(f"bitcast double {value} to i64")
        beyond = text.value(f"sub i64 {bits}, {least}")
        tests.append(text.value(f"icmp ult i64 {beyond}, {bits_of(LARGEST) - least}"))
    return text.both(tests)


def with_reciprocals(state: KernelState, divisors: dict[Operation, SSAValue]) -> Quotients:
    """The quotients, with their divisors and the reciprocals of these."""
    made: dict[str, str] = {}
    for divisor in map(state.scalar, divisors.values()):
        if divisor not in made:
            made[divisor] = state.text.value(f"fdiv double {float_text(1.0, 'double')}, {divisor}")
    return {op: (s := state.scalar(d), made[s]) for op, d in divisors.items()}


def quotient_by(state: KernelState, dividend: str, divisor: str, reciprocal: str) -> str:
    """See Note [Quotients by invariants]."""
    text = state.text
    fma = state.intrinsic("llvm.fma.f64", "double", "double, double, double")

    def multiply_add(a: str, b: str, c: str) -> str:
        return text.value(f"call double @{fma}(double {a}, double {b}, double {c})")

    near = text.value(f"fmul double {dividend}, {reciprocal}")
    beyond = multiply_add(divisor, near, negated(state, "double", dividend))
    return multiply_add(negated(state, "double", beyond), reciprocal, near)


def look_at(state: KernelState, number: str, seen: Sequence[str]) -> list[str]:
    """The least and the largest size seen, with that of one more number.

    A size is twice the bits, which drops the sign; the least one is less 1, so that 0 is none.
    """
    text = state.text
    umin, umax = (
        state.intrinsic(f"llvm.{name}.i64", "i64", "i64, i64") for name in ("umin", "umax")
    )
    size = text.value(f"shl i64 {text.value(f'bitcast double {number} to i64')}, 1")
    less = text.value(f"add i64 {size}, -1")
    return [
        text.value(f"call i64 @{umin}(i64 {seen[0]}, i64 {less})"),
        text.value(f"call i64 @{umax}(i64 {seen[1]}, i64 {size})"),
    ]


def are_wild(state: KernelState, seen: Sequence[str]) -> str:
    """1 where a number was too small or too large, as an i64."""
    text = state.text
    small = text.value(f"icmp ult i64 {seen[0]}, {2 * bits_of(LEAST) - 1}")
    large = text.value(f"icmp ugt i64 {seen[1]}, {2 * bits_of(LARGEST)}")
    return text.value(f"zext i1 {text.value(f'or i1 {small}, {large}')} to i64")


# Note [Quotients by invariants]
#
# For numbers x and divisors s > 0 from LEAST to LARGEST let z = RN(1/s), q = RN(x z), r = RN(s q - x), u the
# unit of x/s's last digit, and e = 2^-53. Then RN(q - r z) is x/s, rounded. Let 1 <= s < 2, 1 <= x < 2.
#
# - q is off by at most x |z - 1/s| + u/2. With |z - 1/s| <= e/2 that is less than u where x >= s (u = 2e),
#   and at most (x + 1) u/2 < 1.5 u where x < s (u = e).
# - Let m be halfway between two results, and x/s be d away from it. x - m s is a multiple of u e, and not 0:
#   m has one digit more than x may have. So d >= u e/s. Where q is u/2 away from m, r has no error, and
#   q - r z is off by s (u/2 + d) |z - 1/s|, less than d, as s^2 < 4 - 4 e: it is on the same side of m as x/s
#   (Markstein).
# - Elsewhere q - r z is off by less than 3 u e. Where q is 1.5 u away from m, and d is less than that, x < s
#   and x >= 2 - 6 e, so that x/s is next to a multiple of u: not near m.
# - For x = 0, r is +0 and -r z is -0: the result is q, which has the sign of x.
