"""Whole-array expressions: functions, operators, broadcasting, promotion, creation, reductions, products."""

import math

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on

FLOATS = "f64 f32"
INTEGERS = "i64 i32"
NUMBERS = "f64 f32 i64 i32"
EVERY_DTYPE = "f64 f32 i64 i32 b1"


# Elementwise functions.


@on("D[n]", D=FLOATS, n="7 0", ulp=4)
@on("f64[3,4]L", L="F R S", ulp=4)
@on("f64[14]:special", "f32[14]:special", ulp=4)
def trigonometry(x):
    return np.sin(x), np.cos(x), np.tan(x), np.tanh(x)


@on("D[n]:pos", D=FLOATS, n="7 0", ulp=4)
@on("f64[14]:special", "f32[14]:special", ulp=4)
def exponentials(x):
    return np.exp(x), np.log(x), np.sqrt(x), np.abs(x)


@on("D[7]", D="i64 i32", ulp=4)
def functions_of_integers_are_float64(x):
    return np.sin(x), np.exp(x), np.sqrt(np.abs(x)), np.tanh(x)


@on("D[7]", D=NUMBERS)
def magnitude(x):
    return np.abs(x), np.absolute(x), abs(x)


@on("D[7] D[7]#1", D=FLOATS, ulp=4)
@on("f64[14]:special f64[14]:special#1", ulp=4)
def arctangents(y, x):
    return np.arctan2(y, x), np.arctan2(y[::-1], x)


@on("D[7] E[7]#1", D=NUMBERS, E=NUMBERS)
@on("f64[14]:special f64[14]:special", "b1[7] i64[7]")
def extremes(x, y):
    return np.minimum(x, y), np.maximum(x, y), np.minimum(x, 1), np.maximum(y[::-1], x)


@on("D[7]:pos D[7]", D=FLOATS, ulp=4)
@on("f64[14]:special f64[14]:special", ulp=4)
def powers_of_floats(x, y):
    return np.power(x, y), x**y, x**2, x**0.5, x**-1, 2**y, x**3, x**0


@on("D[7]", D=INTEGERS)
def powers_of_integers(x):
    return x**2, x**0, x**3, np.power(x, 2)


@on("b1[7] D[7] E[7]#1", D=EVERY_DTYPE, E=EVERY_DTYPE)
@on(
    "b1[3,4]F f64[3,4] f64[4]",
    "b1[7] f64[7] 0",
    "b1[7] f32[7] 0.5",
    "b1[7] i64[7] 0.5",
    "b1[7] 1 2",
)
def choose(c, x, y):
    return np.where(c, x, y), np.where(~c, y, x)


@on("f64[7] f64[7]#1", "f32[7] i32[7]", "i64[7] f64[7]:special")
def choose_by_comparison(x, y):
    return np.where(x > y, x, y), np.where(x > 0, x, 0), np.where((x > 0) & (y > 0), 1.0, x)


# Operators.


@on("D[7] E[7]:nz", D=NUMBERS, E=NUMBERS)
@on("f64[3,4]L f64[3,4]:nz", L="F R S O")
@on("f64[0] f64[0]", "f64[1] f64[1]")
def arithmetic(x, y):
    return x + y, x - y, x * y, x / y, -x, +y


@on("D[7] E[7]:nz", D=NUMBERS, E=NUMBERS)
@on("D[7] D[7]:zero", D=INTEGERS)
@on("f64[14]:special f64[14]:special", "f64[14]:special f64[14]:zero")
def division(x, y):
    return x // y, x % y


@on("D[14]:special D[14]:special", D=FLOATS)
def special_numbers(x, y):
    z = y[::-1]
    return x + z, x - z, x * z, x / z, x == z, x != z, x < z, x <= z, x > z, x >= z


@on("D[7] E[7]", D=EVERY_DTYPE, E=EVERY_DTYPE)
@on("f64[3,4]R f64[3,4]F", "f64[0] f64[0]")
def comparisons(x, y):
    return x == y, x != y, x < y, x <= y, x > y, x >= y


@on("D[7]", D=EVERY_DTYPE)
def operators_with_python_scalars(x):
    return x + 2, 2 - x, x * 2.5, x / 2, 3 > x, x == True, x * True  # noqa: E712


@on("D[7]:nz", D=NUMBERS)
def division_with_python_scalars(x):
    return x // 2, 7 // x, x % 3, 7.5 % x, x // 0.3, 1 / x


@on("D[7] S", D=NUMBERS, S="f64(0.1) f32(0.1) i64(3) i32(3) b1(True) 3 0.1 True")
def promotion_with_scalars(x, s):
    return x + s, s * x, x > s, np.maximum(x, s)


@on("b1[7] b1[7]#1")
def arithmetic_of_booleans(p, q):
    return p + q, p * q, p & q, p | q, p ^ q, ~p, p == q, p / (q + 1)


@on("D[7] D[7]#1", D=INTEGERS)
def bits_of_integers(x, y):
    return x & y, x | y, x ^ y, ~x


@on("D[3]", D=INTEGERS)
def integers_wrap_around(x):
    x[:] = 2147483647
    return x * x, x + x, x * x * x, -(x * x)


@on(
    "f64[4] f64[3,1]",
    "f64[1] f64[3,4]",
    "f64[3,4] f64[4]",
    "f64[2,1,4] f64[3,1]",
    "f64[3,1]F f64[1,4]",
    "f32[4] i64[3,1]",
)
@on("f64[1] f64[0]", "f64[1,4] f64[3,1]S", "f64[3,4] f64[]")
def broadcasting(x, y):
    return x + y, x * y - 1, np.maximum(x, y), x < y


@on(
    "f64[6] f64[6] f64[6]",
    "f32[6] f64[6] f32[6]",
    "f64[6]R i32[6] f64[6]S",
    "f64[1] f64[6] f64[2,1]",
)
def long_expressions(x, y, z):
    t = x * y + z
    return t - (x - y) * (z + 2) / (1 + t * t) + 0.5 * t, t


@on(
    "f64[5] 2.0 3",
    "f32[5] 2.0 3",
    "i64[5] 2.0 3",
    "f32[5] f64(2.0) i64(3)",
    "i32[5] f32(2.0) i32(3)",
)
def scalars_mix_with_arrays(x, a, k):
    return a * x + k, a * (k * x), (a * k) * x, x[0] * a + k, x[1] * k


# Creation.


@on("3", "0", "1")
def creation(n):
    return (
        np.zeros(n),
        np.ones(n),
        np.full(n, 2.5),
        np.zeros((n, 2)),
        np.ones((2, n)),
        np.full((n, n), 3),
    )


@on("3", "0")
def creation_with_dtype(n):
    a = np.zeros(n, dtype=np.float32)
    b = np.ones((n, 2), np.int32)
    c = np.full(n, 2, dtype=np.float64)
    d = np.zeros(n, dtype=bool)
    e = np.ones(n, dtype=int)
    f = np.zeros(n, float)
    return a, b, c, d, e, f


@on("D[3,4]", D=EVERY_DTYPE)
@on("f64[0]", "f64[1]", "f64[5]R")
def creation_like(x):
    e = np.empty_like(x)
    e[:] = x
    return np.zeros_like(x), np.ones_like(x), np.full_like(x, 2), e


@on("f64[3,4]", "f32[3,4]F")
def creation_from_a_shape(x):
    e = np.empty(x.shape)
    e.fill(1)
    z = np.zeros(x.shape, dtype=x.dtype)
    z[1] = x[0]
    w = np.zeros(x.size)
    return e, z, w, np.ones(x.shape[1])


# Reductions.


@on("D[n]", D=NUMBERS, n="7 1 2", terms=lambda x: x)
@on("f64[L", terms=lambda x: x, L="3,4] 3,4]F 3,4]R 3,4]S 2,3,4] 40,50] 2000]")
@on("D[0]", D=FLOATS)
def total(x):
    return x.sum(), np.sum(x)


@on("D[n]", D=NUMBERS, n="7 1", terms=lambda x: x / x.size)
@on("f64[3,4]L", L="F R S", terms=lambda x: x / x.size)
@on("b1[7]", terms=lambda x: x / x.size)
def average(x):
    return x.mean(), np.mean(x)


@on("D[n]", D=EVERY_DTYPE, n="7 1")
@on("f64[3,4]L", L="F R S")
@on("f64[14]:special", "f64[5]:ties")
def largest_and_smallest(x):
    return x.max(), x.min(), np.max(x), np.min(x)


@on("D[n]", D=NUMBERS, n="7 1 0", ulp=16)
@on("b1[3]")
def product(x):
    return x.prod(), np.prod(x)


@on("b1[7]", "b1[0]", "b1[3,4]")
def count(p):
    return p.sum(), np.sum(p)


@on("f64[L", terms=lambda a: a, L="3,4] 3,4]F 3,4]R 3,4]S 1,4] 3,1] 0,4] 3,0]")
@on("D[3,4]", D="f32 i64 i32 b1", terms=lambda a: a)
def totals_along_axes(a):
    return a.sum(axis=0), a.sum(axis=1), a.sum(axis=-1), np.sum(a, 0), np.sum(a, axis=(0, 1))


@on("f64[2,3,4]L", terms=lambda a: a, L="C F R S")
def totals_of_a_cube(a):
    return a.sum(0), a.sum(1), a.sum(axis=2), a.sum(axis=(0, 2)), a[0].sum(axis=1), a.sum(axis=-2)


@on("D[3,4]", D="f64 f32 i64", terms=lambda a: a / 3)
@on("f64[3,4]F", terms=lambda a: a / 3)
def averages_along_axes(a):
    return a.mean(axis=0), np.mean(a, axis=1), a.mean(axis=-1)


@on("D[3,4]", D="f64 f32 i64")
@on("f64[3,4]L", L="F R S")
@on("f64[2,3,4]")
def extremes_along_axes(a):
    return a.max(axis=0), a.min(axis=1), np.max(a, axis=-1), np.min(a, 0)


@on("D[3,4]", D="f64 i32", ulp=16)
def products_along_axes(a):
    return a.prod(axis=0), np.prod(a, axis=1)


@on("D[3,4]", D="f64 i64", terms=lambda a: a)
def reductions_that_keep_dimensions(a):
    return a.sum(axis=0, keepdims=True), a.sum(axis=1, keepdims=True), a.max(axis=0, keepdims=True)


@on("f64[3,4] f64[3,4]#1", "f64[3,4]F f64[3,4]#1", terms=lambda a, b: (a * b, 3 * a))
def reductions_of_expressions(a, b):
    return (a * b).sum(), np.sum(a - b, axis=0), (2 * a + b).mean(), (a * b).max(), (a > b).sum()


@on("D[7]", D=EVERY_DTYPE)
def python_reductions(x):
    return max(x[0], x[1]), min(x[2], x[3], x[4]), abs(x[0])


# Products.


def row_terms(a, b):
    return np.abs(a).max() * np.abs(b).max() * np.ones(np.shape(a)[-1])


@on("D[n] D[n]#1", D=FLOATS, n="7 2 0", terms=lambda x, y: x * y)
@on("f64[7]R f64[7]S", "f64[7]S f64[7]", terms=lambda x, y: x * y)
@on("D[5] D[5]#1", D="i64 i32")
def inner_product(x, y):
    return x @ y, np.dot(x, y)


@on("D[3,4] D[4]", D=FLOATS, terms=row_terms)
@on("f64[3,4]L f64[4]", L="F R S", terms=row_terms)
@on("f64[3,4] f64[4]R", "f64[1,4] f64[4]", "f64[3,1] f64[1]", "f64[30,40] f64[40]", terms=row_terms)
@on("i64[3,4] i64[4]")
def matrix_times_vector(a, x):
    return a @ x


@on("f64[0,4] f64[4]", "f64[3,0] f64[0]")
def matrix_times_vector_of_nothing(a, x):
    return a @ x


@on("D[3] D[3,4]", D=FLOATS, terms=lambda x, a: row_terms(a.T, x))
@on("f64[3]R f64[3,4]L", L="F R S", terms=lambda x, a: row_terms(a.T, x))
def vector_times_matrix(x, a):
    return x @ a


@on("D[3,4] D[4,5]", D=FLOATS, terms=row_terms)
@on("f64[3,4]L f64[4,5]M", L="C F R S", M="C F S", terms=row_terms)
@on(
    "f64[1,4] f64[4,5]",
    "f64[3,1] f64[1,5]",
    "f64[3,4] f64[4,1]",
    "f64[30,40] f64[40,20]",
    terms=row_terms,
)
@on("i32[3,4] i32[4,5]", "i64[3,4] i64[4,5]F")
@on("f64[0,4] f64[4,5]", "f64[3,0] f64[0,5]", "f64[3,4] f64[4,0]")
def matrix_product(a, b):
    return a @ b


@on("f64[4,4] f64[4,4]#1", "f64[4,4]F f64[4,4]", terms=lambda a, b: 20 * row_terms(a, b))
def products_in_expressions(a, b):
    c = a.T @ b
    c += a @ b.T
    c[1:, 1:] -= a[1:] @ b[:, 1:]
    return c, (a[0] @ b[0]) * c[0], (a @ b).sum()


@on("f64[3,4] f32[4]", "f32[3,4] i64[4]", "f64[3,4] i32[4]", terms=row_terms)
def products_promote(a, x):
    return a @ x


@on("f64[4,4] f64[4,4]#1", terms=lambda a, b: row_terms(a, b))
def product_onto_an_operand(a, b):
    a[...] = a @ b


# math and NumPy functions on scalars.


@on("0.5", "1", "True", "f64(0.5)", "f32(0.5)", "i64(1)", "b1(True)", "2.5", ulp=4)
def functions_of_math(v):
    return (
        math.sin(v),
        math.cos(v),
        math.tan(v),
        math.tanh(v),
        math.exp(v),
        math.log(v),
        math.sqrt(v),
    )


@on("f64[3] 0.5", "f32[3] 2")
def arrays_of_lists(x, v):
    a = np.array([[1.0, v], [0.0, x[0]]])
    z = np.zeros([2, 2])
    z[:] = a @ a
    return np.concatenate([z[0], x]), np.stack([x, x]), np.array([1, 2, 3]), np.array([x[0], v])


@on("0.5 1.5", "2 3", "f64(0.5) 2", "f32(0.5) i32(2)", "2.5 -1", "0.0 0.0", "inf nan", ulp=4)
def functions_of_math_of_two(v, w):
    return math.atan2(v, w), math.pow(v, w), math.fabs(w), math.hypot(v, w), math.pi, math.e


@on("2.5", "-2.5", "f64(-2.5)", "f32(2.5)", "7")
def rounding_of_math(v):
    return math.floor(v), math.ceil(v)


@on("0.5", "1", "f64(0.5)", "f32(0.5)", "i64(1)", "i32(2)", "-2.0", "inf", "nan", ulp=4)
def numpy_functions_of_scalars(v):
    return np.sin(v), np.exp(v), np.sqrt(v), np.abs(v), np.log(v), np.tanh(v)


@on(
    "0.5 2",
    "1 2",
    "f32(0.5) 2",
    "f32(0.5) f64(2)",
    "i32(3) i64(2)",
    "2 0.5",
    "f64(2) i32(3)",
    ulp=4,
)
def numpy_functions_of_two_scalars(v, w):
    return (
        np.maximum(v, w),
        np.minimum(v, w),
        np.arctan2(v, w),
        np.power(v, w),
        float(np.where(v < w, v, w)),
    )


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()
