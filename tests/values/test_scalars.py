"""Python's scalars and NumPy's: types, arithmetic, division by zero, domain errors, conversions."""

import math

import numpy as np
import pytest
from python_oracle import Case, Programs, compiled

programs = Programs()
on = programs.on

SCALARS = "3 -2 2.5 True f64(2.5) f32(2.5) i64(3) i32(-3) b1(True)"


@on("V W", V=SCALARS, W=SCALARS)
def arithmetic(v, w):
    return v + w, v * w, v / w, v < w, v == w, v >= w


@on(
    "V W",
    V="3 -2 2.5 f64(2.5) f32(2.5) i64(3) i32(-3)",
    W="3 -2 2.5 f64(2.5) f32(2.5) i64(3) i32(-3)",
)
def difference_and_remainder(v, w):
    return v - w, v // w, v % w, -v, +v, abs(v)


@on("V", V="7 -7 7.5 -7.5 0 0.0 -0.0")
def floor_division_of_every_sign(v):
    return v // 3, v // -3, v % 3, v % -3, v // 2.5, v % -2.5


@on(
    "2.5 3",
    "2.5 -2",
    "-2.5 3",
    "2.0 0.5",
    "f64(2.5) 2",
    "f32(2.5) 3",
    "i64(3) 4",
    "i32(3) i32(2)",
    "0.0 0",
    ulp=4,
)
def power(v, n):
    return v**n


@on("2", "-3", "0", "1", "i64(3)")
def powers_with_constant_exponents(v):
    return v**0, v**1, v**2, v**5


@on("1.0 V", "1 V", "-3 V", V="0.0 0 -0.0 False")
@on("f64(1) V", "1.0 f64(0)", "0.0 f64(0)", "f32(-1) f32(0)", "f64(0) 0.0", V="0 0.0")
def true_division_by_zero(v, w):
    return v / w


@on("V W", V="1 5.0 0", W="0 0.0")
@on(
    "f64(1) 0",
    "f64(1) 0.0",
    "i64(5) 0",
    "i64(5) i64(0)",
    "i32(-5) i32(0)",
    "5 i64(0)",
    "0.0 f64(0)",
)
def floor_division_by_zero(v, w):
    return v // w


@on("V W", V="1 5.0 0", W="0 0.0")
@on("f64(1) 0", "i64(5) 0", "i64(5) i64(0)", "f32(2) f32(0)")
def remainder_by_zero(v, w):
    return v % w


@on("0 -1", "0.0 -1", "0.0 -0.5", "f64(0) -1")
def zero_to_a_negative_power(v, n):
    return v**n


@on("f64[3] 0", "f64[3]:zero 0.0", "i64[3]:nz 0", "f32[3] f32(0)")
def arrays_divide_by_zero(x, v):
    return x / v, x[0] / v


@on("-1.0", "-1", "-0.5", "f64(-1)", "inf", "-inf", "nan", "0.0")
def math_sqrt(v):
    return math.sqrt(v)


@on("0.0", "0", "-1.0", "-2", "f64(0)", "f32(-1)", "inf", "-inf", "nan")
def math_log(v):
    return math.log(v)


@on("V", V="inf -inf nan")
def math_sin(v):
    return math.sin(v)


@on("V", V="inf -inf nan 1.0", ulp=4)
def math_tan(v):
    return math.tan(v)


@on("V", V="1000.0 -1000.0 710 inf -inf nan", ulp=4)
def math_exp(v):
    return math.exp(v)


@on("0.0 -1.0", "-1.0 0.5", "1e300 2.0", "inf 0.0", "nan 0.0", ulp=4)
def math_pow(v, w):
    return math.pow(v, w)


@on("1e200 2", "10.0 400", "2.0 1024", "f64(1e200) 2", ulp=4)
def float_power_overflow(v, n):
    return v**n


@on("0.0 0.0", "-0.0 -0.0", "0.0 -1.0", "inf -inf", "nan 1.0", ulp=4)
def math_atan2(v, w):
    return math.atan2(v, w)


@on("-1.0", "f64(-1)", "0.0", "f32(-2)", "-3")
def numpy_does_not_raise(v):
    return np.sqrt(v), np.log(v), 1 / np.exp(v) / np.float64(0)


@on("V", V="2.7 -2.7 3 True f64(-2.7) f32(2.7) i64(9) b1(False)")
def conversions(v):
    return int(v), float(v), bool(v)


@on("V", V="2.7 -2.7 3 True f64(-2.7) f32(2.7) i64(9)")
def numpy_conversions(v):
    return np.float64(v), np.float32(v), np.int64(v), np.int32(v)


@on("V", V="nan inf -inf")
def conversion_to_int_may_raise(v):
    return int(v)


@on("V", V="0 1 0.0 2.5 -0.0 True False f64(0) i32(2) nan")
def truth(v):
    if v:
        return 1
    return 0


@on("V W", V="0 2 0.5", W="0 3 0.25")
def boolean_operators_return_booleans(v, w):
    return v > 0 and w > 0, v > 0 or w > 0, not v, not w > v


@on("V", V="1 5 10 -3 2.5")
def chained_comparison(v):
    return 0 < v < 10, 1 <= v <= 5 < 8, v == v > 3, not 0 < v < 2


@on("f64[3] 0", "f64[3] 5", "f64[3] -1")
def short_circuit_guards_an_index(x, i):
    if 0 <= i < x.size and x[i] > -100:
        return 1
    return 0


@on("4 0", "4 2", "0 0")
def short_circuit_guards_a_division(a, b):
    return b == 0 or a / b > 1


@on("V", V="3 -3 0 2.5 f64(-1)")
def conditional_expression(v):
    return (v if v > 0 else -v), (1 if v else 2)


@on("V", V="3 -3 0")
def constants_fold_like_python(v):
    return v + 2**10, 7 // 2, -7 // 2, -7 % 3, 2**-1, 1 / 4, 1e3, 5 % -3


@on("2 3", "-2 5", "0 0")
def integers_of_python(a, b):
    n = a * b + 7
    n -= a
    n *= 2
    n //= 3
    n %= 5
    n **= 2
    return n, a & b, a | b, a ^ b, ~a


@on("5", "-3")
def shifts(a):
    return a << 3, a >> 1


@on("V", V="1.5 f64(1.5) f32(1.5) 2 i32(2)")
def scalar_reassigned(v):
    w = v
    w += 1
    w = w * w
    w /= 2
    return w, v


@on("f64[5]", "f32[5]", "i64[5]", "i32[5]", "b1[5]")
def scalars_of_arrays(x):
    v = x[0]
    w = x[1] + x[2]
    return v, w, v * 2, v + 0.5, v == w, float(v), int(w)


@on("f32[4]", "f64[4]")
def accumulators_take_the_type_of_what_they_add(x):
    s = 0.0
    for i in range(4):
        s = s + x[i] * x[i]
    return s


@on("None 3", "2 3")
def none_is_a_value(a, b):
    if a is None:
        return b
    return a


@on("f64[3] None", "f64[3] f64[3]#1")
def optional_array(x, y):
    if y is not None:
        x += y
    return x.sum()


@on("True", "False")
def booleans_index_conditions(flag):
    s = 1 if flag else 2
    return s + flag, flag * 3, flag and s > 1


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


def add(a, b):
    return a + b


def multiply(a, b):
    return a * b


@pytest.mark.parametrize(
    ("function", "a", "b"), [(add, 2**62, 2**62), (multiply, 2**40, 2**40), (add, -(2**63), -1)]
)
def test_python_integers_have_64_bits(function, a, b) -> None:
    """The documented deviation: where CPython goes on with a big integer, OverflowError is raised."""
    with pytest.raises(OverflowError):
        compiled(function)(a, b)
