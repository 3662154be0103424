"""What `explain` says of programs whose necessary saves are known: bytes, formula, and the lines why."""

import inspect
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from argument_rows import make_arguments
from gradient_oracle import differentiable_positions

from mutad import CompileError, compile


@dataclass(frozen=True)
class Expected:
    """A program, its arguments, and its receipt."""

    function: Callable[..., Any]
    row: str
    formula: str
    bytes: int | None
    saves: tuple[str, ...]
    """`name: killed by "text of the line", needed by "text of the line"`, for each save."""
    wrt: tuple[int, ...] | None

    def __repr__(self) -> str:
        return f"{self.function.__name__} {self.row}"

    def receipt(self, **options: Any) -> Any:
        arguments = make_arguments(self.row)
        wrt = differentiable_positions(arguments) if self.wrt is None else self.wrt
        made = compile(self.function, grad=True, cache=False, **options)
        return made.explain(*arguments, wrt=wrt)

    def described(self, save: Any) -> str:
        killed = f'killed by "{text_of(save.killed_by)}", ' if save.killed_by else ""
        return f'{save.name}: {killed}needed by "{text_of(save.needed_by[0])}"'


PLANS: list[Expected] = []


def saving(
    row: str, formula: str, bytes: int | None, *saves: str, wrt: tuple[int, ...] | None = None
) -> Callable[[Any], Any]:
    def register(function: Any) -> Any:
        PLANS.append(Expected(function, row, formula, bytes, saves, wrt))
        return function

    return register


def saving_nothing(row: str, wrt: tuple[int, ...] | None = None) -> Callable[[Any], Any]:
    return saving(row, "0", 0, wrt=wrt)


def text_of(line: int) -> str:
    """A line of this file, without the colon of a loop's header."""
    with open(__file__) as file:
        return file.read().splitlines()[line - 1].strip()


# Overwritten whole.


@saving_nothing("f64[10]")
def linear_in_place(x):
    x[:] = 2 * x
    return x.sum()


@saving("f64[10]", "8*x.shape[0]", 80,
        'x: killed by "x[i] = x[i] ** 2", needed by "x[i] = x[i] ** 2"')  # fmt: skip
@saving("f32[10]", "4*x.shape[0]", 40,
        'x: killed by "x[i] = x[i] ** 2", needed by "x[i] = x[i] ** 2"')  # fmt: skip
def squares_in_place(x):
    for i in range(x.size):
        x[i] = x[i] ** 2
    return x.sum()


@saving("f64[10]", "8*x.shape[0]", 80, 'x: killed by "x.fill(0)", needed by "y = x * x"')
def filled_after_a_product(x):
    y = x * x
    x.fill(0)
    return y.sum()


@saving_nothing("f64[10]")
def filled_after_a_multiple(x):
    y = 3 * x
    x.fill(0)
    return y.sum()


@saving("f64[10] f64[10] f64[10]", "2*y.shape[0]", 20,
        'np.minimum(x, y): killed by "y[:] = 0.0", needed by "x[:] = np.minimum(x, y)"',
        'np.minimum(x, y): killed by "y[:] = 0.0", needed by "x[:] = np.minimum(x, y)"')  # fmt: skip
def least_in_place(x, y, w):
    x[:] = np.minimum(x, y)
    y[:] = 0.0
    return (w * x).sum()


@saving("f64[10]", "2*ceil(x.shape[0]/8)", 4,
        'x: killed by "x[i] = np.maximum(x[i], 0.0)", needed by "x[i] = np.maximum(x[i], 0.0)"',
        'x: killed by "x[i] = np.maximum(x[i], 0.0)", needed by "x[i] = np.maximum(x[i], 0.0)"')  # fmt: skip
def rectified_one_by_one(x):
    carried = 0.0
    for i in range(x.size):
        x[i] = np.maximum(x[i], 0.0)
        carried = 0.5 * carried + x[i]
    return carried


def double(z, y):
    for i in range(y.size):
        z[i] = 2 * y[i]


def doubled(y):
    z = np.empty_like(y)
    double(z, y)
    return z


@saving_nothing("f64[10]")
def allocated_and_filled_by_other_functions(y):
    return doubled(y).sum()


def axpy(a, x, y):
    y[:] = a * x + y


def axpy_times(a, x, y):
    y[:] = a * x * y


@saving_nothing("2.0 f64[10] f64[10]")
def sum_written_by_another_function(a, x, y):
    axpy(a, x, y)
    return (y * y).sum()


@saving("2.0 f64[10] f64[10]", "8*y.shape[0]", 80,
        'y: killed by "y[:] = a * x * y", needed by "y[:] = a * x * y"')  # fmt: skip
def product_written_by_another_function(a, x, y):
    axpy_times(a, x, y)
    return (y * y).sum()


@saving("f64[10] f64[10]", "8*a.shape[0]", 80, 'a: killed by "a[:] = c", needed by "b = a * a"')
@saving("f64[10] 3.0", "8*a.shape[0]", 80, 'a: killed by "a[:] = c", needed by "b = a * a"')
def product_of_what_is_overwritten(a, c):
    b = a * a
    a[:] = c
    return b.sum() + a.sum()


@saving("f64[10] f64[10]", "8*a.shape[0]", 80,
        'a: killed by "a[i] = 1.0", needed by "b[i] = a[i] * a[i]"')  # fmt: skip
def product_of_elements_overwritten(a, b):
    for i in range(a.size):
        b[i] = a[i] * a[i]
        a[i] = 1.0
    return b.sum()


@saving("f64[10] f64[10]", "8*b.shape[0]", 80, 'a: killed by "a *= b", needed by "a *= b"')
def product_in_place(a, b):
    a *= b
    return a.sum()


@saving_nothing("f64[10] f64[10]", wrt=(0,))
def product_in_place_by_a_constant(a, b):
    a *= b
    return a.sum()


@saving_nothing("f64[10] f64[10]:pos")
def quotient_in_place(a, b):
    a /= b
    return a.sum()


@saving_nothing("f64[10]")
def exponential_in_place(a):
    np.exp(a, out=a)
    return a.sum()


@saving(
    "f64[10]", "8*a.shape[0]", 80, 'a: killed by "np.sin(a, out=a)", needed by "np.sin(a, out=a)"'
)
def sine_in_place(a):
    np.sin(a, out=a)
    return a.sum()


@saving("f64[10] f64[10]", "8*b.shape[0]", 80, 'b: killed by "b += 100", needed by "loss = x * b"')
def factor_changed_afterwards(x, b):
    loss = x * b
    b += 100
    return loss.sum()


# Scalars that loops carry.


@saving("f64[10]", "8*x.shape[0]", 80, 'p: killed by "p *= v", needed by "p *= v"')
def running_product(x):
    p = 1.0
    for v in x:
        p *= v
    return p


@saving_nothing("2.0 3.0")
def rebound_scalar(x, y):
    loss = x * y
    loss += x**2
    loss *= y
    return loss


@saving("f64[10] 7", "8*n", 56,
        'tmp: killed by "tmp[k % 3] *= x[k]", needed by "tmp[k % 3] *= x[k]"')  # fmt: skip
def scratch_used_again(x, n):
    tmp = np.ones(3)
    for k in range(n):
        tmp[k % 3] *= x[k]
    return tmp.sum()


@saving("1.0 0.1 1.0", "WHILE + WHILE", None,
        't: killed by "t += dt", needed by "dt = min(0.3 * t, tf - t)"',
        'u: killed by "u += dt * u * u", needed by "u += dt * u * u"')  # fmt: skip
def adaptive_steps(u, t, tf):
    while t < tf:
        dt = min(0.3 * t, tf - t)
        u += dt * u * u
        t += dt
    return u


# Sweeps that read what they overwrite.


# Of the n - 1 reads one is of u[-1], which nothing overwrites.
@saving("f64[10]", "8*(u.shape[0]-2)", 64,
        'u: killed by "u[i] = u[i + 1] * u[i + 1]", needed by "u[i] = u[i + 1] * u[i + 1]"')  # fmt: skip
def reading_ahead(u):
    for i in range(u.size - 1):
        u[i] = u[i + 1] * u[i + 1]
    return u.sum()


@saving_nothing("f64[10]")
def reading_behind(u):
    for i in range(1, u.size):
        u[i] = u[i - 1] * u[i - 1]
    return u.sum()


@saving_nothing("f64[10]")
def reading_ahead_downwards(u):
    for i in range(u.size - 2, -1, -1):
        u[i] = u[i + 1] * u[i + 1]
    return u.sum()


@saving("f64[10]", "8*(u.shape[0]-3)", 56,
        'u: killed by "u[i] = u[i - 1] * u[i + 1]", needed by "u[i] = u[i - 1] * u[i + 1]"')  # fmt: skip
def reading_on_both_sides(u):
    for i in range(1, u.size - 1):
        u[i] = u[i - 1] * u[i + 1]
    return u.sum()


@saving("f64[10] 4", "8*m*(u.shape[0]-2)", 256,
        'u: killed by "u[i] = u[i + 1] * u[i + 1]", needed by "u[i] = u[i + 1] * u[i + 1]"')  # fmt: skip
def repeated_sweeps(u, m):
    for k in range(m):
        for i in range(u.size - 1):
            u[i] = u[i + 1] * u[i + 1]
    return u.sum()


# Each step reads two values and overwrites one.
@saving("f64[10]", "8*(u.shape[0]-1)", 72,
        'u: killed by "u[i] = u[i - 1] * u[i]", needed by "u[i] = u[i - 1] * u[i]"')  # fmt: skip
def reading_behind_and_here_downwards(u):
    for i in range(u.size - 1, 0, -1):
        u[i] = u[i - 1] * u[i]
    return u.sum()


@saving("f64[10]", "8*(u.shape[0]-3)", 56,
        'u: killed by "u[i] = u[i + 2] * u[i + 1]", needed by "u[i] = u[i + 2] * u[i + 1]"')  # fmt: skip
def reading_two_ahead(u):
    for i in range(u.size - 2):
        u[i] = u[i + 2] * u[i + 1]
    return u.sum()


@saving("f64[10]", "8*u.shape[0]", 80,
        'u: killed by "u[i] = u[n - 1 - i] * u[i]", needed by "u[i] = u[n - 1 - i] * u[i]"')  # fmt: skip
def reading_mirrored(u):
    n = u.size
    for i in range(n):
        u[i] = u[n - 1 - i] * u[i]
    return u.sum()


@saving("f64[10] 3", "8*m*(u.shape[0]-2)", 192,
        'u: killed by "u[i] = 0.3 * u[i] * (u[i - 1] + u[i + 1])", '
        'needed by "u[i] = 0.3 * u[i] * (u[i - 1] + u[i + 1])"')  # fmt: skip
def nonlinear_gauss_seidel(u, m):
    for k in range(m):
        for i in range(1, u.size - 1):
            u[i] = 0.3 * u[i] * (u[i - 1] + u[i + 1])
    return u.sum()


@saving("f64[10] 3", "8*m*ceil((u.shape[0]-2)/2) + 8*m*ceil((u.shape[0]-3)/2)", 192,
        'u: killed by "u[i] = 0.3 * u[i] * u[i - 1] * u[i + 1]", '
        'needed by "u[i] = 0.3 * u[i] * u[i - 1] * u[i + 1]"',
        'u: killed by "u[i] = 0.2 * u[i] * u[i - 1] * u[i + 1]", '
        'needed by "u[i] = 0.3 * u[i] * u[i - 1] * u[i + 1]"')  # fmt: skip
def red_and_black(u, m):
    for k in range(m):
        for i in range(1, u.size - 1, 2):
            u[i] = 0.3 * u[i] * u[i - 1] * u[i + 1]
        for i in range(2, u.size - 1, 2):
            u[i] = 0.2 * u[i] * u[i - 1] * u[i + 1]
    return u.sum()


# The ends are overwritten by statements of their own, so three stores share the reads of one.
@saving("f64[10] 3", "8*m*(u.shape[0]-2) + 16*m", 240,
        'u: killed by "u[i] = 0.5 * u[i - 1] * u[i + 1]", needed by "u[i] = 0.5 * u[i - 1] * u[i + 1]"',
        'u: killed by "u[0] = u[1] * u[1]", needed by "u[i] = 0.5 * u[i - 1] * u[i + 1]"',
        'u: killed by "u[n - 1] = u[n - 2] * 0.5", needed by "u[i] = 0.5 * u[i - 1] * u[i + 1]"')  # fmt: skip
def sweeps_with_ends(u, m):
    n = u.size
    for k in range(m):
        for i in range(1, n - 1):
            u[i] = 0.5 * u[i - 1] * u[i + 1]
        u[0] = u[1] * u[1]
        u[n - 1] = u[n - 2] * 0.5
    return u.sum()


# Every map reads what is left of u; each element is overwritten once.
@saving("f64[6]", "8*u.shape[0]", 48,
        'u: killed by "u[i] = 0.5 * u[i]", needed by "s += (u[i:] * u[i:]).sum()"')  # fmt: skip
def suffixes(u):
    s = 0.0
    for i in range(u.size):
        s += (u[i:] * u[i:]).sum()
        u[i] = 0.5 * u[i]
    return s


# One value for each step of k, though the loop over i reads it every time, and no proof helps: a branch overwrites it.
@saving("f64[10] f64[2] 3 3", "8*m*x.shape[0] + 8*m", 264,
        's: killed by "s += x[i] * np.sin(s) * c[k % 2]", needed by "s += x[i] * np.sin(s) * c[k % 2]"',
        'c: killed by "c[j % 2] += 0.1", needed by "s += x[i] * np.sin(s) * c[k % 2]"', wrt=(0,))  # fmt: skip
def element_overwritten_by_a_branch(x, c, m, j):
    s = 0.5
    for k in range(m):
        for i in range(x.size):
            s += x[i] * np.sin(s) * c[k % 2]
        if k > 1:
            c[j % 2] += 0.1
    return s


@saving("f64[5,6]", "8*(u.shape[0]-1)*(u.shape[1]-1)", 160,
        'u: killed by "u[i, j] = u[i + 1, j] * u[i, j + 1]", '
        'needed by "u[i, j] = u[i + 1, j] * u[i, j + 1]"')  # fmt: skip
def sweep_of_a_matrix(u):
    for i in range(u.shape[0] - 1):
        for j in range(u.shape[1] - 1):
            u[i, j] = u[i + 1, j] * u[i, j + 1]
    return u.sum()


@saving("f64[5,6] 2", "8*m*(u.shape[0]-2)*(u.shape[1]-2)", 192,
        'u: killed by "u[i, j] = 0.1 * u[i, j] * (u[i - 1, j] * u[i + 1, j] + u[i, j - 1] * u[i, j + 1])", '
        'needed by "u[i, j] = 0.1 * u[i, j] * (u[i - 1, j] * u[i + 1, j] + u[i, j - 1] * u[i, j + 1])"')  # fmt: skip
def repeated_sweeps_of_a_matrix(u, m):
    for k in range(m):
        for i in range(1, u.shape[0] - 1):
            for j in range(1, u.shape[1] - 1):
                u[i, j] = 0.1 * u[i, j] * (u[i - 1, j] * u[i + 1, j] + u[i, j - 1] * u[i, j + 1])
    return u.sum()


@saving_nothing("f64[10]")
def running_sum(x):
    for i in range(1, x.size):
        x[i] += x[i - 1]
    return (x * x).sum()


# Each element read ahead is killed one step of j later.
@saving("f64[10] f64[10]", "8*sum(i+1 for i in range(u.shape[0]-1))", 360,
        'u: killed by "u[j] = u[j + 1] * c[j]", needed by "u[j] = u[j + 1] * c[j]"')  # fmt: skip
def triangular_sweeps(u, c):
    for i in range(u.size - 1):
        for j in range(i + 1):
            u[j] = u[j + 1] * c[j]
    return u.sum()


# The maximum is needed for the ties of its entries and by the product: the same eight bytes; the last survives.
@saving("f64[10] 5", "8*(n-1) + 8*n*x.shape[0]", 432,
        'x.max(): killed by "m = x.max()", needed by "m = x.max()"',
        'x: killed by "x *= m", needed by "m = x.max()"')  # fmt: skip
def scaled_by_the_largest(x, n):
    for _ in range(n):
        m = x.max()
        x *= m
    return x.sum()


# What the product needs at the start of a step is what `tanh` needs at the end of the step before.
@saving("f64[6,6] f64[5,6]", "8*inputs.shape[0]*inputs.shape[1]", 240,
        'h: killed by "h[:] = np.tanh(w @ h + inputs[t])", needed by "h[:] = np.tanh(w @ h + inputs[t])"')  # fmt: skip
def recurrent(w, inputs):
    h = np.zeros(w.shape[0])
    loss = 0.0
    for t in range(inputs.shape[0]):
        h[:] = np.tanh(w @ h + inputs[t])
        loss += (h * h).sum()
    return loss


# The inner elements alone are read and overwritten: the border is not saved.
@saving("f64[10] 5", "8*n*(x.shape[0]-2)", 320,
        'x: killed by "x[1:-1] = x[1:-1] ** 2 - 0.5", needed by "s += (x[1:-1] ** 3).sum()"')  # fmt: skip
def inner_elements(x, n):
    s = 0.0
    for _ in range(n):
        s += (x[1:-1] ** 3).sum()
        x[1:-1] = x[1:-1] ** 2 - 0.5
    return s


# Which side the minimum took: eight iterations share a byte, each row starts one.
@saving("f64[5,11]", "x.shape[0]*ceil(x.shape[1]/8)", 10,
        'min(best, x[i, j]): killed by "best = min(best, x[i, j])", needed by "best = min(best, x[i, j])"')  # fmt: skip
def least_of_rows(x):
    total = 0.0
    for i in range(x.shape[0]):
        best = np.inf
        for j in range(x.shape[1]):
            best = min(best, x[i, j])
        total += best
    return total


# Overlap.


@saving_nothing("f64[10]")
def shifted(x):
    x[1:] = x[:-1]
    return (x * x).sum()


@saving_nothing("f64[10]")
def shifted_and_added(x):
    x[1:] += x[:-1]
    return (x * x).sum()


@saving_nothing("f64[10]")
def second_differences(u):
    u[1:-1] = u[:-2] - 2 * u[1:-1] + u[2:]
    return (u * u).sum()


@saving("f64[10]", "8*x.shape[0]", 80,
        'x: killed by "x[::-1] = x * x", needed by "x[::-1] = x * x"')  # fmt: skip
def squares_reversed(x):
    x[::-1] = x * x
    return x.sum()


@saving("f64[10] f64[10] 5", "8*n*u.shape[0]", 400,
        'u: killed by "v[:] = u * u", needed by "v[:] = u * u"')  # fmt: skip
def ping_pong(u, v, n):
    for _ in range(n):
        v[:] = u * u
        u, v = v, u
    return u.sum()


@saving_nothing("f64[10] f64[10] 5")
def linear_ping_pong(u, v, n):
    for _ in range(n):
        v[:] = 2 * u
        u, v = v, u
    return u.sum()


# Memory that need not be spent.


@saving_nothing("f64[6,6]")
def time_expanded(a):
    for t in range(a.shape[0] - 1):
        a[t + 1] = np.sin(a[t]) * a[t]
    return a[-1].sum()


@saving_nothing("f64[10] 5")
def linear_stencil(u, n):
    for _ in range(n):
        u[1:-1] += 0.2 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u * u).sum()


@saving("f64[10] 5", "8*n*u.shape[0]", 400,
        'u: killed by "u[1:-1] += 0.1 * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])", '
        'needed by "u[1:-1] += 0.1 * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])"')  # fmt: skip
def stencil_with_a_factor(u, n):
    for _ in range(n):
        u[1:-1] += 0.1 * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u * u).sum()


@saving_nothing("f64[10]")
def accumulation(x):
    s = 0.0
    for i in range(x.size):
        s += np.sin(x[i]) * x[i]
    return s


@saving_nothing("f64[10] f64[4]", wrt=(0,))
def factors_from_indices_and_inputs(x, w):
    for k in range(w.size):
        g = np.exp(w[k]) * math.cos(0.5 * k)
        for i in range(x.size):
            x[i] = x[i] * g
    return x.sum()


@saving("f64[10] f64[4]", "8*w.shape[0]", 32,
        'p: killed by "p = np.tanh(p * w[k]) + 1", needed by "p = np.tanh(p * w[k]) + 1"')  # fmt: skip
def invariant_in_the_inner_loop(x, w):
    p, s = 1.0, 0.0
    for k in range(w.size):
        p = np.tanh(p * w[k]) + 1
        for i in range(x.size):
            s += x[i] * p * p
    return s


# What the element is before the sweep that overwrites it, once; not once in each iteration of the loop over i.
@saving("f64[10] f64[2] 3", "8*m", 24,
        'c: killed by "c[0] = np.sin(c[0]) + 0.1", needed by "x[i] = x[i] * c[0] + x[i - 1]"', wrt=(0,))  # fmt: skip
def element_used_in_the_inner_loop(x, c, m):
    for k in range(m):
        for i in range(1, x.size):
            x[i] = x[i] * c[0] + x[i - 1]
        c[0] = np.sin(c[0]) + 0.1
    return x.sum()


@saving_nothing("f64[6,6]:pos")
def lu_in_place(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


@saving_nothing("f64[6,6]:pos")
def cholesky_in_place(a):
    n = a.shape[0]
    for j in range(n):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        a[j, j] = math.sqrt(a[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]


@saving_nothing("f64[6,6]:pos")
def ldl_in_two_passes(a):
    n = a.shape[0]
    for j in range(n):
        for i in range(j + 1, n):
            a[i, j] /= a[j, j]
        for i in range(j + 1, n):
            for k in range(j + 1, i + 1):
                a[i, k] -= a[i, j] * a[k, j] * a[j, j]


@saving("f64[10] f64[10]:pos f64[10] f64[10]", "8*(b.shape[0]-1)", 72,
        'b: killed by "b[i] = (b[i] - upper[i] * b[i + 1]) / diagonal[i]", '
        'needed by "b[i] -= w * b[i - 1]"')  # fmt: skip
def thomas_in_place(lower, diagonal, upper, b):
    n = b.size
    for i in range(1, n):
        w = lower[i] / diagonal[i - 1]
        diagonal[i] -= w * upper[i - 1]
        b[i] -= w * b[i - 1]
    b[-1] /= diagonal[-1]
    for i in range(n - 2, -1, -1):
        b[i] = (b[i] - upper[i] * b[i + 1]) / diagonal[i]


@saving("f64[6,6]:pos", "8*sum(a.shape[0]-k-1 for k in range(a.shape[0]))", 120,
        'a: killed by "a[i, k] = f", needed by "a[j, i] -= f * a[j, k]"')  # fmt: skip
def ldl_scaling_a_column_inside_the_update(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            f = a[i, k] / a[k, k]
            for j in range(i, n):
                a[j, i] -= f * a[j, k]
            a[i, k] = f


@saving("f64[10] f64[10]:pos f64[10] f64[10]", "8*(b.shape[0]-1)", 72,
        'd: killed by "d[i] -= c[i] * d[i + 1]", needed by "d[i] = (d[i] - a[i] * d[i - 1]) / w"')  # fmt: skip
def normalising_thomas_in_place(a, b, c, d):
    n = b.size
    c[0] /= b[0]
    d[0] /= b[0]
    for i in range(1, n):
        w = b[i] - a[i] * c[i - 1]
        c[i] = c[i] / w
        d[i] = (d[i] - a[i] * d[i - 1]) / w
    for i in range(n - 2, -1, -1):
        d[i] -= c[i] * d[i + 1]


@saving_nothing("f64[10] f64[4]:unit")
def scratch_from_inputs(x, w):
    tmp = np.zeros_like(x)
    s = 0.0
    for k in range(w.size):
        tmp[:] = x * w[k]
        s += np.exp(tmp).sum()
    return s


@saving_nothing("f64[10] f64[4]:unit")
def scratch_from_inputs_by_elements(x, w):
    tmp = np.zeros_like(x)
    s = 0.0
    for k in range(w.size):
        for i in range(x.size):
            tmp[i] = x[i] * w[k]
        for i in range(x.size):
            s += np.exp(tmp[i])
    return s


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_receipt(plan: Expected) -> None:
    receipt = plan.receipt()
    assert receipt.saved_bytes == plan.bytes
    assert tuple(map(plan.described, receipt.saves)) == plan.saves
    source = inspect.getsource(plan.function)
    for save in receipt.saves:  # in the words of the program, none of the compiler's
        line, expression = save.needed_by
        assert expression in text_of(line)
        assert save.name in source or "." in save.name
        assert f"`{expression}` on line {line} needs" in save.why
    assert "trips@" in receipt.formula if plan.bytes is None else receipt.formula == plan.formula


@pytest.mark.parametrize("plan", PLANS, ids=repr)
def test_forbidding_saves_is_an_error_at_the_kill_where_there_are_some(plan: Expected) -> None:
    if not plan.saves:
        assert plan.receipt(saves="forbid").saves == ()
        return
    first = plan.receipt().saves[0]
    with pytest.raises(CompileError) as raised:
        plan.receipt(saves="forbid")
    message = str(raised.value)
    assert f"{inspect.getsourcefile(plan.function)}:{first.killed_by}:" in message
    assert f"the value is read at line {first.line}" in message
    assert f"on line {first.needed_by[0]} needs it in reverse" in message
    assert 'saves="forbid"' in message


def test_a_receipt_prints_as_a_table() -> None:
    (plan,) = (p for p in PLANS if p.function is filled_after_a_product)
    table = str(plan.receipt()).splitlines()
    assert table[0].split() == ["line", "source", "saved", "bytes", "formula"]
    assert " y = x * x " in table[1]
    assert table[1].split()[6:9] == ["x", "80", "8*x.shape[0]"]
    assert table[2].strip() == plan.receipt().saves[0].why
    assert table[3].startswith("saved: 8*x.shape[0] = 80 bytes; shadows: ")


def test_saving_all_saves_at_least_as_much() -> None:
    for plan in PLANS:
        everything = plan.receipt(saves="all").saved_bytes
        assert plan.bytes is None or (everything is not None and everything >= plan.bytes)
