"""The derivative of every operation of the language, one small program each."""

import math

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[5]", "f32[5]", "f64[3,4]F", "f64[0]", "f64[1]")
def unary_functions(x):
    return (
        np.sin(x) + 2 * np.cos(x) + 3 * np.tanh(x) - np.exp(x) / 4 + np.abs(x) - x + np.absolute(-x)
    ).sum()


@on("f64[5]:pos", "f32[5]:pos", "f64[5]R:pos")
def unary_functions_of_positive_numbers(x):
    return (np.log(x) + np.sqrt(x) + np.tan(x / 2)).sum()


@on("f64[5] f64[5]:pos", "f32[5] f32[5]:pos", "f64[3,4] f64[3,4]F:pos")
def binary_operators(x, y):
    return (x + 2 * y - x * y + x / y).sum()


@on("f64[5]:pos f64[5]:pos#1", "f32[5]:pos f32[5]:pos#1")
def binary_functions(x, y):
    return (
        x**y + np.power(y, x) + np.arctan2(x, y) + np.minimum(x, 2 * y) + np.maximum(x, y)
    ).sum()


@on("f64[5]:pos", "f64[5]S:pos")
def powers(x):
    return (x**2 + x**3 + x**-1 + x**0.5 + 2**x + x**1 + x**0 + 1.5**x + np.power(x, 4)).sum()


@on("f64[5]", "f32[5]")
def powers_of_negative_numbers(x):
    return (x**2 - x**3 + (-x) ** 4).sum()


@on("f64[5]:unit f64[5]:pos")
def floor_division_and_remainder(x, y):
    return (x // 0.3 + x % 0.3 + x % y + (x * y) % 0.7).sum()


@on("f64[5] f64[5]#1", "f32[5] f32[5]#1", "f64[1] f64[5]")
def choices(x, y):
    return (
        np.where(x > y, x * y, x) + np.where(y < 0, 1.0, y * y) * np.where(x != 0, x, 2.0)
    ).sum()


@on(
    "f64[4] f64[3,1]",
    "f64[1] f64[3,4]",
    "f64[3,4] f64[4]",
    "f64[2,1,4] f64[3,1]",
    "f64[3,1]F f64[1,4]",
)
def broadcasting(x, y):
    return (x * y + np.sin(x) - y / (2 + x * x)).sum()


@on("f64[4] f64[3,4]", "f64[1] f64[2,4]", "f32[4] f32[3,4]")
def broadcasting_into_a_store(x, a):
    a[:] = x * x
    a[0] += x[0] * x
    a *= x


@on("1.5 f64[5]", "f64(1.5) f64[5]", "f32(1.5) f32[5]", "1.5 f32[5]", "1.5 f64[0]")
def scalars_in_array_expressions(a, x):
    return (a * x + np.sin(a) * x * x - x / a + a**2).sum() * a


@on("f32[5] f64[5]", "f64[5] f32[5]", "f32[5] f64(0.5)", "f64[5] f32(0.5)", "f32[5] 0.5")
def mixed_precision(x, y):
    return (x * y + x * x).sum()


@on("f64[5] i64[5]", "f32[5] i64[5]", "f64[5] i32[5]", "f64[5] b1[5]")
def inert_integers_and_booleans(x, k):
    y = x * k
    return (y * y).sum() + k.sum()


@on("f64[6] 2 True None", "f64[6] -1 False None")
def inert_scalars(x, k, flag, nothing):
    if flag:
        x[0] = x[k] * k
    elif nothing is None:
        x[1] *= x[k]
    return (x * x).sum()


@on("1.5 0.5", "f64(1.5) f64(0.5)", "f32(1.5) f32(0.5)", "1.5 f64(0.5)", "f32(1.5) 0.5")
def functions_of_math(v, w):
    a = math.sin(v) * math.cos(w) + math.tan(w) * math.tanh(v)
    b = math.exp(w) + math.log(v) * math.sqrt(v) + math.atan2(v, w) + math.pow(v, w)
    return a * b + abs(w - v) + v / w - v**3 + w**v


@on("1.5 0.5", "f64(1.5) f64(0.5)", "f32(1.5) f32(0.5)")
def numpy_functions_of_scalars(v, w):
    return (
        np.sin(v) * np.exp(w)
        + np.maximum(v, w)
        + np.sqrt(v) * np.where(v > w, v * w, v)
        + np.power(v, w)
    )


@on("1.5 0.5", "f64(0.5) f64(1.5)", "0.5 -1.5")
def branches_and_builtins(v, w):
    a = v * w if v > w else v - w
    if w < 0:
        a *= w
    elif w < 1:
        a += max(v, w, a)
    else:
        a = min(a, w * w) * v
    return a * a


@on("1.5", "f64(1.5)")
def conversions_are_transparent(v):
    return float(v) * np.float64(v) + int(v) * v


@on("f64[5]", "f32[5]", "f64[3,4]R", "f64[1]")
def reductions(x):
    return x.sum() * x.mean() + x.max() * x.min() + np.sum(x * x) - np.mean(x) ** 2


@on("f64[4]:pos", "f64[2,3]:pos", "f32[4]:pos", "f64[1]", exact=lambda x: x.prod() / x)
def product_of_elements(x):
    return x.prod()


@on("f64[3,4]", "f64[3,4]F", "f64[3,4]R", "f32[3,4]", "f64[1,4]", "f64[3,1]")
def reductions_along_axes(a):
    s = a.sum(axis=0) * a.mean(axis=0) + a.max(axis=0) * a.min(axis=0)
    r = np.sum(a, axis=1) * a.max(axis=-1)
    return (s * s).sum() + (r * a[:, 0]).sum()


@on("f64[3,4]:pos", "f64[2,3,4]:pos")
def products_along_axes(a):
    p = a.prod(axis=0)
    return (p * p).sum() + a.prod(axis=-1).sum()


@on("f64[2,3,4]", "f64[2,3,4]F")
def reductions_of_a_cube(a):
    return (
        (a.sum(axis=1) ** 2).sum()
        + (a.sum(axis=(0, 2)) ** 2).sum()
        + (a.mean(axis=-1) * a[:, :, 0]).sum()
    )


@on("f64[3,4]", "f64[3,4]S")
def reductions_kept(a):
    return ((a - a.mean(axis=0, keepdims=True)) ** 2 / a.size).sum() * (
        a / a.sum(axis=1, keepdims=True)
    ).max()


@on("f64[5] f64[5]#1", "f64[5]R f64[5]S#1", "f32[5] f32[5]#1")
@on("f64[0] f64[0]", "f64[1] f64[1]", saved=0)
def inner_product(x, y):
    return (x @ y) * (x @ x)


@on(
    "f64[3,4] f64[4]", "f64[3,4]F f64[4]R", "f64[3,4]S f64[4]", "f32[3,4] f32[4]", "f64[1,4] f64[4]"
)
def matrix_times_vector(a, x):
    y = a @ x
    return (y * y).sum()


@on("f64[3] f64[3,4]", "f64[3]S f64[3,4]T")
def vector_times_matrix(x, a):
    return np.sin(x @ a).sum()


@on(
    "f64[3,4] f64[4,2]",
    "f64[3,4]F f64[4,2]R",
    "f64[3,4]S f64[4,2]F",
    "f32[3,4] f32[4,2]",
    "f64[3,1] f64[1,2]",
)
@on("f64[0,4] f64[4,2]", "f64[3,0] f64[0,2]")
def matrix_product(a, b):
    c = a @ b
    return (c * c).sum()


@on("f64[3,3] f64[3,3]#1", "f64[3,3]F f64[3,3]")
def products_of_transposes_and_slices(a, b):
    c = a.T @ b + a @ b.T
    c[1:] -= a[1:] @ b
    c[:, 0] += a @ b[0]
    return (c * c).sum() + a[0] @ c @ b[:, 1]


@on("f64[3,3]:unit 3", "f64[3,3]:unit 0")
def product_onto_itself(a, n):
    for _ in range(n):
        a[...] = a @ a
        a += 0.1
    return a.sum()


@on("f64[4,4]:unit f64[4,4]:unit#1")
def products_of_updated_operands(a, b):
    c = a @ b
    a *= c
    d = a @ c
    b[:] = d * d
    return c[0, 0] * (b * c).sum()


@on("f64[5]", "f64[5]R")
def creation(x):
    z = np.zeros_like(x)
    z += x * x
    o = np.ones(x.size)
    o *= x
    f = np.full(x.shape, x[0])
    e = np.empty_like(x)
    e[:] = x[1] * f
    c = (z * o).copy()
    z.fill(x[2])
    return (z * o + c * e).sum() + f.sum()


@on("f64[5] 1.5", "f64[5]S f64(1.5)", "f32[5] 1.5")
def filled_by_an_active_scalar(x, v):
    x[1:3] = v * v
    x.fill(v)
    x[0] *= v
    return (x * x).sum()


@on("f64[7]", "f64[7]R", "f32[7]")
def slices(x):
    y = x[1:-1] * x[::2][:1] + x[2:] * x[:-2]
    return (y * x[-2::-1][:5]).sum() + x[-1] * x[::3].sum()


@on("f64[3,4]", "f64[3,4]F")
def views_of_views(a):
    v = a[1:].T[::-1]
    v[0] *= v[1]
    w = v[None, 1:, 0]
    return (w * w).sum() * a[..., 0].sum() + (a.T * v[0, 0]).sum()


@on("f64[6]:unit 3 -1", "f64[6]:unit 5 2")
def slices_known_at_run_time(x, i, j):
    x[:i] *= x[i - 1]
    y = x[j::-1]
    y += x[j] * y
    return (x[i:] * 2).sum() + (y * y).sum()


@on("f64[4,3]:unit", "f64[4,3]F:unit", "f64[0,3]")
def loops_over_rows(a):
    s = 0.0
    for i, row in enumerate(a):
        row *= row[0]
        for j, v in enumerate(row):
            s += v * v * (i + 2 * j)
            row[j] = v + s * 0.01
    return s


@on("f64[6]:unit 3", "f64[6]:unit 0")
def branches_in_loops(x, n):
    s = 0.0
    for k in range(n):
        for i in range(x.size):
            if x[i] > s:
                x[i] *= 0.5 * x[i - 1]
            elif k % 2 == 0:
                s += x[i] ** 2
            else:
                x[i], x[i - 1] = x[i - 1], x[i] * s
    return s * s + (x * x).sum()


@on("f64[4] f64[4]#1 True", "f64[4] f64[4]#1 False")
def branch_chooses_an_array(x, y, flag):
    z = x if flag else y
    z *= z
    return (z * x).sum()


@on("f64[4] True", "f64[4] False")
def branch_rebinds_an_array(x, flag):
    y = x * x
    if flag:
        x, y = y, x
    y *= x
    return (x * x * y).sum()


@on("f64[4]:unit 3", "f64[4]:unit 0")
def rebinding_in_a_loop(x, n):
    y = x
    for k in range(n):
        y = np.sin(y) * x + 0.1 * k
    return (y * y).sum()


@on("f64[4]:unit 3", "f64[4]:unit 1")
def while_inside_for(x, n):
    s = 0.0
    for k in range(n):
        i = 0
        t = x[k]
        while t * t < 2.0 and i < 4:
            t = t * 1.3 + x[i] * x[i]
            x[i] = t
            i += 1
        s += t
    return s


@on("f64[4]:unit 2.5")
def for_inside_while(x, limit):
    s = 0.0
    trips = 0
    while s < limit and trips < 5:
        for i in range(x.size - 1):
            x[i] = x[i + 1] * x[i] + 1
            s += x[i] ** 2
        trips += 1
    return s


@on("1.5 3", "f64(0.5) 4", "f32(0.5) 2", "1.5 0")
def scalar_recurrence(v, n):
    u = v
    w = 1.0
    for _ in range(n):
        u, w = np.sin(u) * w, u + w * v
    return u * w


@on("f64[5]:unit f64[5]:unit#1 0.3")
def tuples_and_calls(x, y, k):
    (a, b), c = pair(x, y), (k, 2 * k)
    p, q = scaled(a, c[0]), scaled(b, c[1])
    return (p * q).sum() + dot(x, y)


def pair(x, y):
    return y * x, x


def scaled(x, by):
    x *= by
    return x


def dot(x, y):
    s = 0.0
    for v, w in zip(x, y):
        s += v * w
    return s


@on("f64[3]:unit 1.5 2")
def many_results(x, a, n):
    y = x * a
    x *= y
    return y, n, a * a, (x[0], x), None


@on("f64[4]:unit", "f64[4]R:unit")
def the_argument_itself(x):
    x *= x
    return x


@on("f64[]", "f32[]")
def rank_zero(x):
    x *= x
    return x[()] * 3


TestGradients = gradient_tests(programs, tangents=True)
