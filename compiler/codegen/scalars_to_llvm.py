"""Scalar ops of `arith`, `math` and `array` as LLVM instructions.

One function for a family of ops, found through `SCALAR_OPS`. Each takes the kernel state, the op and
its operands as LLVM text, and returns the text of the result.

No instruction here is undefined for any operand: integer division, shifts and conversions are guarded and
give what NumPy gives.
"""

from __future__ import annotations

from xdsl.dialects import arith, math, vector
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, VectorType
from xdsl.ir import Operation
from xdsl.utils.hints import isa

from ...dialects import ad, array, foreign, special
from ..rules.table import constant_float
from .conversions_to_llvm import cast, convert, float_to_integer, index_cast
from .floats_to_llvm import (
    compare_floats,
    negf,
    product,
    quotient,
    strong_product,
    strong_quotient,
    sum_,
)
from .integers_to_llvm import (
    both,
    ceil_division,
    compare_integers,
    first,
    first_alone,
    floor_div,
    floor_mod,
    integer_binary,
    neither,
    on_bits,
    shift,
    truncating_division,
    unsigned_ceil_division,
    wrapping,
)
from .kernel_state import KernelState, value_type
from .math_to_llvm import (
    float_to_integer_power,
    gamma_of,
    integer_power,
    intrinsic,
    libm,
    polygamma_of,
    rsqrt,
    with_poison_flag,
)
from .scalar_text import Rule, float_of, float_text, integer_text, truth_type
from .vectors_to_llvm import broadcast, extract, in_every_lane, insert


def constant(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, arith.ConstantOp)
    value, type_ = op.value, value_type(op.result.type)
    if isinstance(op.result.type, VectorType):
        number = constant_float(op.result)
        assert number is not None
        return float_of(number, op.result.type)
    if isa(value, IntegerAttr):
        number = value.value.data
        if type_ == "i1":
            return "true" if number else "false"
        return integer_text(number, type_)
    assert isinstance(value, FloatAttr)
    return float_text(value.value.data, type_)


def select(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, arith.SelectOp)
    type_ = value_type(op.result.type)
    condition = compared_wide(state, op) or args[0]
    truth = truth_type(op.result.type)
    if truth != value_type(
        op.cond.type
    ):  # one truth for all lanes: LLVM would branch on it, and guess
        condition = in_every_lane(state, condition, "i1", truth)
    return state.text.value(f"select {truth} {condition}, {type_} {args[1]}, {type_} {args[2]}")


def compared_wide(state: KernelState, op: arith.SelectOp) -> str | None:
    """The condition of a choice between a float64 and a float32 that it compares, compared as float64.

    What is compared is the same. But LLVM takes `x < 0.0f ? 0.0 : (double)x` for a maximum that need not
    tell zeros apart (llvm-project issue 157254), and a -0.0 becomes 0.0; `(double)x < 0.0` it does not.
    """
    compared = op.cond.owner
    makers = [v.owner for v in (op.lhs, op.rhs)]
    widened = [m.operands[0] for m in makers if isinstance(m, arith.ExtFOp | array.CastOp)]
    if not isinstance(compared, arith.CmpfOp) or not any(w in compared.operands for w in widened):
        return None
    if value_type(compared.lhs.type) == value_type(op.result.type):
        return None
    source, target = value_type(compared.lhs.type), value_type(op.result.type)
    wide = [
        state.text.value(f"fpext {source} {state.scalar(v)} to {target}") for v in compared.operands
    ]
    predicate = arith.CMPF_COMPARISON_OPERATIONS[compared.predicate.value.data]
    return state.text.value(f"fcmp {predicate} {target} {wide[0]}, {wide[1]}")


SCALAR_OPS: dict[type[Operation], Rule] = {
    arith.ConstantOp: constant,
    arith.AddfOp: sum_,
    arith.SubfOp: sum_,
    arith.MulfOp: product,
    arith.DivfOp: quotient,
    ad.MulOp: strong_product,
    ad.DivOp: strong_quotient,
    vector.BroadcastOp: broadcast,
    vector.ExtractOp: extract,
    vector.InsertOp: insert,
    arith.NegfOp: negf,
    arith.MinimumfOp: intrinsic("minimum", " nsz"),
    arith.MaximumfOp: intrinsic("maximum", " nsz"),
    arith.MinnumfOp: intrinsic("minnum", " nsz"),
    arith.MaxnumfOp: intrinsic("maxnum", " nsz"),
    arith.AddiOp: wrapping("add"),
    arith.SubiOp: wrapping("sub"),
    arith.MuliOp: wrapping("mul"),
    arith.DivSIOp: on_bits(truncating_division("sdiv"), both),
    arith.RemSIOp: on_bits(truncating_division("srem"), neither),
    arith.DivUIOp: on_bits(truncating_division("udiv"), both),
    arith.RemUIOp: on_bits(truncating_division("urem"), neither),
    arith.CeilDivSIOp: on_bits(ceil_division, both),
    arith.CeilDivUIOp: on_bits(unsigned_ceil_division, both),
    arith.FloorDivSIOp: on_bits(floor_div, both),
    arith.MinSIOp: intrinsic("smin"),
    arith.MaxSIOp: intrinsic("smax"),
    arith.MinUIOp: intrinsic("umin"),
    arith.MaxUIOp: intrinsic("umax"),
    arith.AndIOp: integer_binary("and"),
    arith.OrIOp: integer_binary("or"),
    arith.XOrIOp: integer_binary("xor"),
    arith.ShLIOp: on_bits(shift("shl"), first_alone),
    arith.ShRSIOp: on_bits(shift("ashr"), first),
    arith.ShRUIOp: on_bits(shift("lshr"), first_alone),
    arith.CmpiOp: compare_integers,
    arith.CmpfOp: compare_floats,
    arith.SelectOp: select,
    arith.BitcastOp: convert("bitcast"),
    arith.IndexCastOp: index_cast,
    arith.FPToSIOp: float_to_integer,
    arith.SIToFPOp: convert("sitofp"),
    arith.UIToFPOp: convert("uitofp"),
    arith.ExtFOp: convert("fpext"),
    arith.TruncFOp: convert("fptrunc"),
    arith.TruncIOp: convert("trunc"),
    arith.ExtSIOp: convert("sext"),
    arith.ExtUIOp: convert("zext"),
    array.CastOp: cast,
    foreign.StopGradientOp: lambda _state, _op, args: args[0],
    foreign.NoDerivativeOp: lambda _state, _op, args: args[0],
    array.FloorDivOp: floor_div,
    array.FloorModOp: floor_mod,
    math.AbsFOp: intrinsic("fabs"),
    math.AbsIOp: with_poison_flag("abs"),
    math.CeilOp: intrinsic("ceil"),
    math.FloorOp: intrinsic("floor"),
    math.TruncOp: intrinsic("trunc"),
    math.RoundOp: intrinsic("round"),
    math.RoundEvenOp: intrinsic("roundeven"),
    math.CopySignOp: intrinsic("copysign"),
    math.SqrtOp: intrinsic("sqrt"),
    math.FmaOp: intrinsic("fma"),
    math.CountLeadingZerosOp: with_poison_flag("ctlz"),
    math.CountTrailingZerosOp: with_poison_flag("cttz"),
    math.CtPopOp: intrinsic("ctpop"),
    math.RsqrtOp: rsqrt,
    math.FPowIOp: float_to_integer_power,
    math.IPowIOp: integer_power,
    math.ExpOp: libm("exp"),
    math.Exp2Op: libm("exp2"),
    math.ExpM1Op: libm("expm1"),
    math.LogOp: libm("log"),
    math.Log2Op: libm("log2"),
    math.Log10Op: libm("log10"),
    math.Log1pOp: libm("log1p"),
    math.SinOp: libm("sin"),
    math.CosOp: libm("cos"),
    math.TanOp: libm("tan"),
    math.AsinOp: libm("asin"),
    math.AcosOp: libm("acos"),
    math.AtanOp: libm("atan"),
    math.SinhOp: libm("sinh"),
    math.CoshOp: libm("cosh"),
    math.TanhOp: libm("tanh"),
    math.AsinhOp: libm("asinh"),
    math.AcoshOp: libm("acosh"),
    math.AtanhOp: libm("atanh"),
    math.Atan2Op: libm("atan2"),
    math.PowFOp: libm("pow"),
    math.CbrtOp: libm("cbrt"),
    math.ErfOp: libm("erf"),
    special.ErfcOp: libm("erfc"),
    special.GammaOp: gamma_of,
    special.LogGammaOp: libm("lgamma"),
    special.DigammaOp: polygamma_of,
    special.TrigammaOp: polygamma_of,
    special.TetragammaOp: polygamma_of,
}
