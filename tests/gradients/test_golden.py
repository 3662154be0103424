"""Small programs that systems of automatic differentiation get wrong, in dtypes, layouts, ranks and sizes.

By theme, other files hold more of them; here are the variants: the same claim from the end of the
array, by rows, through `out=`, for arguments that share memory in every way.
"""

import inspect
import math

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests
from python_oracle import compiled

from mutad import CompileError

programs = GradientPrograms()
on = programs.on

OVERLAPS = (
    "f64[6]& f64[6]&[::-1]",
    "f64[7]&[:-1] f64[7]&[1:]",
    "f32[7]&[1:] f32[7]&[:-1]",
    "f64[6]& f64[6]&",
    "f64[8]&[6::-2] f64[8]&[:4]",
)
MATRICES = (
    "f64[4,4]& f64[4,4]&.T",
    "f32[3,3]F& f32[3,3]F&.T",
)


def size(x, *others):
    return x.nbytes


# Linear updates save nothing, in whatever way they are written.


@on("f64[2,3,2]L", L="C S T", exact=lambda x: 2.0, saved=0)
@on("f64[]", "f32[3,4]T", "f64[0,4]", "f64[3,1]", exact=lambda x: 2.0, saved=0)
def doubled_whole(x):
    x[...] = 2 * x
    return x.sum()


@on("f64[5]L", L="R O", exact=lambda x: 2.0, saved=0)
@on("f32[5]S", "f64[1]", "f64[0]", exact=lambda x: 2.0, saved=0)
def doubled_from_the_end(x):
    for i in range(-1, -x.size - 1, -1):
        x[i] *= 2
    return x.sum()


@on("f64[5]L", L="C S", exact=lambda x: 4.0, saved=0)
@on("f32[2,3]F", exact=lambda x: 4.0, saved=0)
def doubled_by_out_and_by_itself(x):
    np.multiply(2, x, out=x)
    x += x
    return np.sum(x)


# What an update kills is saved once, whichever way it goes.


@on("f64[5]L", L="R O", exact=lambda x: 2 * x, saved=size)
@on("f32[5]S", "f64[1]", "f64[0]", exact=lambda x: 2 * x, saved=size)
def squared_from_the_end(x):
    for i in range(x.size - 1, -1, -1):
        x[i] = x[i] ** 2
    return x.sum()


@on("f64[6]", "f32[6]R", "f64[2]", "f64[0]", saved=lambda x: x.nbytes // 2)
def squared_every_second(x):
    for i in range(0, x.size, 2):
        x[i] = x[i] ** 2
    return x.sum()


@on("f64[3,4]L", L="C F", exact=lambda x: 2 * x, saved=size)
@on("f32[3,4]R", "f64[0,4]", "f64[1,4]", exact=lambda x: 2 * x, saved=size)
def squared_by_rows(x):
    for i in range(x.shape[0]):
        x[i] = x[i] ** 2
    return x.sum()


@on("f64[3,4]L", L="C F", exact=lambda x: 2 * x, saved=size)
def squared_by_columns_from_the_end(x):
    for j in range(x.shape[1]):
        for i in range(x.shape[0]):
            x[i, -1 - j] = x[i, -1 - j] * x[i, -1 - j]
    return x.sum()


@on("f64[3,4]L", L="C R", exact=lambda x: 2 * x, saved=size)
def squared_through_rows(x):
    for row in x:
        for j in range(row.size):
            row[j] = row[j] ** 2
    return x.sum()


@on("f64[2,3]L", L="C O", exact=lambda x: 2 * x, saved=size)
@on("f32[5]S", "f64[0]", exact=lambda x: 2 * x, saved=size)
def square_then_zeroed(x):
    y = x * x
    x[...] = 0
    return y.sum()


@on("f64[5]L", L="C R", exact=lambda x: 2 * x)
def square_then_zeroed_in_part(x):
    y = x * x
    x[1:3] = 0
    return y.sum()


def test_what_a_fill_kills_is_named_with_the_product_and_both_lines() -> None:
    first = inspect.getsourcelines(square_then_zeroed)[1]
    first += inspect.getsource(square_then_zeroed).splitlines().index("def square_then_zeroed(x):")
    with pytest.raises(CompileError) as raised:
        compiled(square_then_zeroed, grad=True, saves="forbid").grad(np.ones((2, 3)))
    message = str(raised.value)
    assert f":{first + 2}:" in message
    assert "x[...] = 0" in message
    assert f"`x * x` on line {first + 1} needs it" in message
    assert "y = x * x" in message


# Helpers that allocate, fill and mutate.


def store_double(z, y):
    for i in range(y.size):
        z[i] = 2 * y[i]


def doubled(y):
    z = np.empty_like(y)
    store_double(z, y)
    return z


@on("f64[5]L", L="C R", exact=lambda y: 32 * y, saved=0)
@on("f32[5]", "f64[1]", "f64[0]", exact=lambda y: 32 * y, saved=0)
def sum_of_squares_of_an_allocating_helper(y):
    z = doubled(doubled(y))
    return (z * z).sum()


@on("f64[3,4]L", L="C F", saved=0)
def helper_on_rows(y):
    z = np.empty_like(y)
    for i in range(y.shape[0]):
        store_double(z[i], y[i])
        store_double(z[i], z[i])
    return (z * y).sum()


def test_a_helper_that_allocates_costs_the_shadow_of_what_it_allocates() -> None:
    def total(y):
        return doubled(y).sum()

    plan = compiled(total, grad=True).explain(np.ones(10))
    assert plan.saved_bytes == 0
    assert plan.shadow_bytes == 160  # of y and of z
    assert plan.temporary_bytes == 0  # z is computed where it is added up


def axpy(a, x, y):
    y[:] = a * x + y


def axpy_times(a, x, y):
    y[:] = a * x * y


@on("1.5 f64[5] 3", "1.5 f32[5]R 2", "f64(1.5) f64[1] 1")
def axpy_of_views_of_one_array(a, x, n):
    for _ in range(n):
        axpy(a, x, x)
        axpy_times(a, x[::-1], x)
        axpy(0.1 * a, x[1:], x[:-1])
        axpy_times(a, x[:-1], x[1:])
    return (x * x).sum()


# Results.


@on("f64[5]R f64[5]#1", "f32[2,3]F f32[2,3]#1", "f64[0] f64[0]")
def results_of_a_product_that_changes(x, y):
    z = x * y
    w = z + y
    z *= w
    return z, w, z.sum(), (w * x)[1:]


@on("f64[5]R", "f64[1]")
def one_array_returned_twice(x):
    y = x * x
    return y, y


# Arguments that share memory.


@on(*OVERLAPS, *MATRICES, saved=0)
def product_of_overlapping_arguments(x, y):
    return (y * x).sum()


@on(*OVERLAPS, *MATRICES)
def overlapping_arguments_updated_in_turn(x, y):
    x *= 0.5
    y *= x
    return (x * x).sum()


@on(*OVERLAPS)
def overlapping_arguments_by_elements(x, y):
    s = 0.0
    for i in range(x.size):
        x[i] = x[i] * y[i]
        s += y[i] * x[i]
    return s


@on(*MATRICES)
def matrix_and_transpose_by_rows(x, y):
    s = 0.0
    for i in range(x.shape[0]):
        x[i] *= y[i] + 1
        s += (y[:, i] * x[i]).sum()
    return s


@on("f64[3,3]& f64[3,3]&.T", "f64[3,3]F f64[3,3]#1")
def products_with_the_transpose(a, b):
    c = a @ b
    a[...] = c * b
    return (a @ b).sum()


@on("f64[4,4]:unit f64[4]", "f64[1,1] f64[1]")
def tied_layers(w, x):
    h = np.tanh(w @ x)
    return (w.T @ h * x).sum()


@on("f64[3,3]L:unit& f64[3,3]L:unit&.T f64[3]", L="C F")
@on("f64[3,3]:unit f64[3,3]:unit#1 f64[3]")
def tied_layers_that_learn(w, v, x):
    for _ in range(2):
        h = np.tanh(w @ x)
        w -= 0.1 * np.outer(h, x)
        x = v @ h
    return (x * x).sum()


# Products into memory that is there.


@on("f64[3,4] f64[4,2]F f64[3,2]S", "f64[3,4]S f64[4,2]R f64[3,2]F")
@on("f32[3,4] f32[4,2] f32[3,2]", "f64[0,4] f64[4,2] f64[0,2]")
def matmul_out(a, b, c):
    np.matmul(a, b, out=c)
    return (c * c).sum()


@on("f64[3,3]S", "f64[0,0]", saved=size)
def matmul_onto_itself(a):
    np.matmul(a, a, out=a)
    return (a * a).sum()


@on("f64[3,3]S:unit f64[3,3]F:unit#1")
def matmul_onto_either(a, b):
    a[...] = a @ b
    b[...] = a @ b
    np.matmul(a.T, b, out=a)
    np.matmul(b, a, out=b)
    a[:2] = a[1:] @ b
    return (a * b).sum()


@on("f64[5] f64[5]S#1", "f32[2,3]F f32[2,3]#1", "f64[0] f64[0]", saved=lambda x, y: 2 * x.nbytes)
def multiply_out(x, y):
    np.multiply(x, y, out=x)
    np.sin(x, out=x)
    return x.sum()


@on("f64[5]R", "f32[2,3]F", "f64[0]")
def everything_by_out(x):
    np.exp(x, out=x)
    np.add(x, x[::-1], out=x)
    np.divide(x, 3.0, out=x[::-1])
    np.multiply(x[:1], x, out=x)
    np.square(x, out=x)
    np.subtract(2, x, x)
    return (x * x).sum()


# Overwritten before the adjoint reads it.


@on("f64[7]:pos&[:-1] f64[7]:pos&[1:]", "f64[2,3]F:pos f64[2,3]:pos#1", "f32[4]R:pos f32[4]:pos#1")
def quotients_in_place(a, b):
    a /= b
    a /= a[0] + 1
    b -= a.sum()
    b /= a + 3
    return (a * a).sum() + b.sum()


@on("f64[n]", n="4 1 0")
@on("f32[4]R")
def running_products_kept(x):
    p = 1.0
    for i in range(x.size):
        p *= x[i]
        x[i] = p
    return (x * x).sum()


@on("f64[4] N", N="0 1 3")
def two_recurrences_share_a_name(x, n):
    p = x[0] * 2
    for k in range(n):
        q = p
        p = p * q + x[k]
        q = p * q
        x[k] = q
    return p * x.sum()


@on("f64[5]& f64[5]&[::-1]", "f32[5] f32[5]R")
def a_factor_changed_and_restored(x, b):
    loss = x * b
    b += 100
    loss *= b[0]
    b -= 100
    loss += b * x
    return loss.sum()


@on("f64[6]R:pos", "f32[6]:pos")
def subscripts_from_data_that_changes(x):
    positions = np.zeros(x.size, dtype=np.int64)
    for i in range(x.size):
        positions[i] = int(x[i] * 3) % x.size
    x *= x
    s = 0.0
    for i in range(x.size):
        s += x[positions[i]] ** 2
        positions[i] = 0
    for i in range(x.size):
        x[positions[i]] *= x[i]
    return s + x.sum()


@on("f64[4,3] 3", "f64[4,3]F 2")
def scratch_matrix_reused(x, n):
    tmp = np.zeros((3, 3))
    s = 0.0
    for t in range(n):
        tmp += np.outer(x[t], x[t + 1])
        tmp *= tmp.T
        s += (tmp @ x[t]).sum()
    return s


@on("f64[8]", "f64[1]", "f64[8]R")
def while_shrinks_its_bound(x):
    n = x.size
    i = 0
    s = 0.0
    while i < n:
        s += x[i] * x[i] * n
        if x[i] > 0:
            n -= 1
            x[i] *= x[n]
        i += 1
    return s + (x * x).sum()


@on("f64[5]:unit 1.3", "f64[5]R:unit 0.4")
def adaptive_steps_of_a_field(u, end):
    t = 0.0
    while t < end:
        dt = min(0.25 / (1.0 + u[0] * u[0]), end - t)
        u[1:-1] += dt * np.sin(u[1:-1]) * (u[2:] - u[:-2])
        t += dt
    return (u * u).sum() * t


# Sweeps: every direction, distance and nesting.


@on("f64[8]R:unit", "f32[8]:unit", "f64[4]:unit")
def ahead_and_behind_by_two(u):
    for i in range(2, u.size - 2):
        u[i] = u[i + 2] * u[i - 2] + u[i + 1] ** 2
    for i in range(u.size - 3, 1, -2):
        u[i] = u[i - 1] * u[i + 1] * u[i]


@on("f64[8]:unit 2", "f64[8]S:unit 3")
def mirrored_and_fixed(u, sweeps):
    n = u.size
    for _ in range(sweeps):
        for i in range(n - 1):
            u[i] = u[n - 1 - i] * u[i + 1] + 0.5 * u[2] * u[i]


@on("f64[4,5]L:unit", L="C F")
def matrix_backwards_along_both_axes(u):
    for i in range(u.shape[0] - 2, -1, -1):
        for j in range(u.shape[1] - 2, 0, -1):
            u[i, j] = u[i + 1, j - 1] * u[i, j + 1] + u[i, j] * u[0, j]


@on("f64[5,5]:unit", "f64[5,5]F:unit", "f64[1,1]:unit")
def triangle_with_its_mirror(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[j, i] * a[i, j] + a[i, i] * a[j, j]
            a[j, i] *= a[i, j]


# Overlap.


@on("f64[6]S", "f32[6]", "f64[1]", "f64[2]", saved=0)
def shifted_both_ways(x):
    x[1:] = x[:-1]
    x[:-1] = x[1:]
    x[::-1] = x
    x[1:] += x[:-1]
    return (x * x).sum()


@on("f64[4,5]F", "f64[1,1]", "f64[0,3]", saved=0)
def shifted_along_both_axes(x):
    x[1:, 1:] = x[:-1, :-1]
    x[:, ::-1] = x
    x[:-1] = x[1:]
    return (x * x).sum()


@on("f64[7]R:unit", "f64[3]:unit", "f64[2]:unit", "f64[1]:unit")
def nonlinear_updates_of_shifts(u):
    u[1:-1] = u[:-2] * u[2:] - u[1:-1] ** 2
    u[1:] *= u[:-1]
    u[:-1] /= 2 + u[1:] * u[1:]


@on("f64[3,4]L", L="C S", saved=0)
def running_sums_along_both_axes(x):
    for i in range(1, x.shape[0]):
        x[i] += x[i - 1]
    for j in range(x.shape[1] - 2, -1, -1):
        x[:, j] -= 0.5 * x[:, j + 1]
    return (x * x).sum()


@on("f64[4,5]S f64[2,2]T", "f64[4,5]F f64[2,1]", "f32[4,5] f32[2]")
def blocks_through_views(b, a):
    b[:2, :2] = a
    b.T[3:, 1:3] = a * a
    b[::-1, ::2][:2, 1:3] *= a
    r = b[1:3, ::-1]
    r[:, :2] += a
    t = b.T
    t[0] = t[1] * t[2]
    return (b * b).sum()


@on("f64[5] f64[5]#1 N", N="0 1 2 5")
@on(
    "f32[5]R f32[5]S#1 3",
    "f64[5]& f64[5]&[::-1] 3",
    "f64[6]&[:-1] f64[6]&[1:] 3",
    "f64[3]& f64[3]& 2",
)
def arrays_that_change_places(u, v, n):
    for _ in range(n):
        u *= 0.5 * v
        u, v = v, u
    return (u * u).sum() + 2 * v.sum()


# Memory that must not be spent.


@on("f64[5,4]:unit", "f64[5,4]F:unit", "f32[5,4]R:unit", "f64[1,3]", saved=0)
def time_expanded_with_many_functions(a):
    for t in range(a.shape[0] - 1):
        for i in range(a.shape[1]):
            a[t + 1, i] = np.sin(a[t, i]) * a[t, i - 1] ** 2 + math.exp(-a[t, 0])
    return (a[-1] ** 2).sum()


@on("f64[4,6]:unit", saved=0)
def time_expanded_in_columns_backwards(a):
    for t in range(a.shape[1] - 2, -1, -1):
        a[:, t] = a[:, t + 1] ** 2 * a[::-1, t + 1]
    return a[:, 0].sum()


@on("f64[5,5] 3", "f32[5,5]F 2", "f64[2,2] 1", saved=0)
def linear_stencil_of_a_matrix(u, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
    return (u * u).sum()


@on("f64[5,5]:unit N", N="0 3", saved=lambda u, steps: steps * u.nbytes)
@on("f32[5,5]F:unit 2")
def stencil_of_a_matrix_with_one_nonlinear_factor(u, steps):
    for _ in range(steps):
        around = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] += 0.1 * u[1:-1, 1:-1] ** 2 * (around - 4 * u[1:-1, 1:-1])
    return (u * u).sum()


@on("f64[4,5]", "f64[4,5]F", "f32[4,5]", "f64[0,3]", saved=0)
def accumulation_by_rows(x):
    s = 0.0
    for i in range(x.shape[0]):
        r = 0.0
        for j in range(x.shape[1]):
            r += x[i, j] ** 2 * (i + j)
        s += r
    return s


def running_sum(x):
    for i in range(1, x.size):
        x[i] += x[i - 1]
    return x.sum()


def test_the_adjoint_of_a_running_sum_takes_linear_time() -> None:
    """A quadratic one would take hours."""
    n = 1_000_000
    assert np.array_equal(compiled(running_sum, grad=True).grad(np.ones(n)), np.arange(n, 0, -1.0))


TestGradients = gradient_tests(programs, fits=True)
