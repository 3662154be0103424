"""Gradients through recursive functions: a record for each activation."""

import math
from typing import Any

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

from mutad import check_gradient, compile
from mutad.compiler.diagnostics import CompileError

programs = GradientPrograms()
on = programs.on


@on("v n", v="1.3 -0.7", n="0 1 7 12")
def power(x, n):
    if n == 0:
        return 1.0
    if n % 2:
        return x * power(x, n - 1)
    half = power(x, n // 2)
    return half * half


@on("f64[5] v n", v="0.7", n="0 3")
def horner(c, x, i):
    if i == c.size - 1:
        return c[i] * 1.0
    return c[i] + x * horner(c, x, i + 1)


@on("f64[15] n", n="0 3 20")
def tree_of_places(v, i):
    if i >= v.size:
        return 0.0
    left = tree_of_places(v, 2 * i + 1)
    return v[i] * left + math.sin(tree_of_places(v, 2 * i + 2)) + v[i] ** 2


@on("f64[7]")
def tree_of_child_indices(v):
    left = np.array([1, 3, -1, -1, 5, -1, -1])
    right = np.array([2, 4, -1, -1, 6, -1, -1])

    def value(i):
        if i < 0:
            return 1.0
        return v[i] + value(left[i]) * value(right[i])

    return value(0)


@on("f64[9]")
def sorted_in_place(x):
    def sort(low, high):
        if low >= high:
            return
        pivot = x[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while x[i] < pivot:
                i += 1
            while x[j] > pivot:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        sort(low, j)
        sort(i, high)

    sort(0, x.size - 1)
    s = 0.0
    for k in range(x.size):
        s += (k + 1) * x[k] * x[k]
    return s


@on("f64[8] f64[8]")
def fourier_in_place(re, im):
    fourier(re, im, 0, 1, re.size)
    return re[1] * im[2] + (re * re).sum()


def fourier(re, im, first, step, n):
    if n == 1:
        return
    half = n // 2
    fourier(re, im, first, 2 * step, half)
    fourier(re, im, first + step, 2 * step, half)
    a, b = np.zeros(n), np.zeros(n)
    for k in range(half):
        c, s = math.cos(2 * math.pi * k / n), -math.sin(2 * math.pi * k / n)
        p, q = first + 2 * k * step, first + step + 2 * k * step
        x, y = c * re[q] - s * im[q], c * im[q] + s * re[q]
        a[k], b[k] = re[p] + x, im[p] + y
        a[k + half], b[k + half] = re[p] - x, im[p] - y
    for k in range(n):
        re[first + k * step], im[first + k * step] = a[k], b[k]


@on("v v", v="0.3 1.7")
def adaptive_quadrature(a, width):
    def f(t):
        return math.sin(3 * t) * a + t * t

    def simpson(low, high):
        return (high - low) / 6 * (f(low) + 4 * f((low + high) / 2) + f(high))

    def refined(low, high, whole, depth):
        middle = (low + high) / 2
        left, right = simpson(low, middle), simpson(middle, high)
        if depth == 0 or abs(left + right - whole) < 1e-4:
            return left + right + (left + right - whole) / 15
        return refined(low, middle, left, depth - 1) + refined(middle, high, right, depth - 1)

    return refined(a, a + width, simpson(a, a + width), 6)


@on("f64[6] n", n="0 5")
def two_that_call_each_other(x, i):
    if i == x.size:
        return x[0] * 1.0
    return odd_step(x, i) * 1.1


def odd_step(x, i):
    if i == x.size:
        return x[1] * 2.0
    return x[i] * two_that_call_each_other(x, i + 1) + x[i]


@on("f64[6]")
def slices_grow_shorter(x):
    if x.size == 0:
        return 1.0
    return x[0] + x[0] * slices_grow_shorter(x[1:])


@on("f64[4,4]")
def factorized_from_the_corner(a):
    factorize(a)
    return a[-1, -1] * a[1, 2]


def factorize(a):
    n = a.shape[0]
    if n == 1:
        return
    a[0, 0] += 5.0
    for i in range(1, n):
        a[i, 0] /= a[0, 0]
        for j in range(1, n):
            a[i, j] -= a[i, 0] * a[0, j]
    factorize(a[1:, 1:])


@on("f64[6] n", n="3")
def calls_in_loops(x, n):
    if n == 0:
        return x[0] * x[1]
    s = 0.0
    for i in range(n):
        x[i] = x[i] * x[i + 1]
        s += calls_in_loops(x, n - 1) * x[i]
    return s


@on("f64[5] v", v="0.4")
def calls_until_a_value(x, limit):
    def fall(y, k):
        if k == 0 or abs(y) < limit:
            return y * x[k]
        while abs(y) > limit:
            y = 0.5 * y + 0.1 * fall(y * 0.3, k - 1)
        return y

    return fall(x[0] * 3 + 2.0, 2)


@on("f64[5] n", n="4")
def returns_a_tuple(x, i):
    def both(k):
        if k < 0:
            return 1.0, 0.0
        p, s = both(k - 1)
        return p * x[k], s + p * x[k] ** 2

    p, s = both(i)
    return p + s


@on("f64[5]")
def overwritten_before_and_after(u):
    def sweep(i):
        if i == u.size:
            return 0.0
        u[i] = u[i] * u[i - 1]
        s = sweep(i + 1)
        u[i] = u[i] + s * u[0]
        return s + u[i] * u[i]

    return sweep(1) * u[2]


@on("f64[6]")
def only_stores(u):
    scan(u, 1)


def scan(u, i):
    if i < u.size:
        u[i] = u[i] * u[i - 1]
        scan(u, i + 1)
        u[i - 1] = u[i - 1] + u[i] ** 2


@on("f64[5] f64[5]& f64[5]&[::-1]")
def shared_arguments(w, x, y):
    def go(i):
        if i == x.size:
            return 0.0
        x[i] = x[i] * w[i]
        return go(i + 1) * y[i] + x[i] + 1.0

    return go(0)


@on("f64[6] f64[6]")
def some_arguments_are_not_active_in_every_call(x, y):
    c = np.ones(6) * 2.0
    return dot(x, c, 0) + dot(x, y, 0) * dot(c, c, 0)


def dot(a, b, i):
    if i == a.size:
        return 0.0
    return a[i] * b[i] + dot(a, b, i + 1)


@on("f64[5] n", n="6")
def recursion_over_ints_beside(x, n):
    return x[fibonacci(n) % 5] * x[1]


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


@on("f32[6] n", n="0")
def single_precision(x, i):
    if i == x.size:
        return x[0] * x[0]
    return x[i] * single_precision(x, i + 1) + x[i]


@on("f64[8]")
def whole_arrays(x):
    def halve(lo, hi):
        if hi - lo < 2:
            return
        m = (lo + hi) // 2
        x[lo:m] = x[lo:m] + np.sin(x[m:hi])
        x[m:hi] *= x[lo:m]
        halve(lo, m)
        halve(m, hi)

    halve(0, x.size)
    return (x * x).sum()


@on("f64[4] n", n="30")
def an_iteration_as_recursion(x, n):
    def settle(y, k):
        if k == 0:
            return y
        return settle(0.5 * (y + (2.0 + x[0] ** 2) / y), k - 1)

    return settle(1.0 + abs(x[1]), n) * x[2]


@on("f64[2,3]:unit n", n="0 2")
def rows_within_rows(x, n):
    def inner(row, k):
        row *= row
        if k > 0:
            inner(row, k - 1)

    def outer(a, i):
        inner(a[i], n)
        if i > 0:
            outer(a, i - 1)

    outer(x, x.shape[0] - 1)
    return (x * x).sum()


TestGradients = gradient_tests(programs, tangents=True)


def test_deep_gradients_raise_recursion_error() -> None:
    @compile(grad=True)
    def down(x, n):
        return x if n == 0 else x * down(x, n - 1) * 0.5

    assert down.grad(1.1, 300) != 0.0
    with pytest.raises(RecursionError):
        down.grad(1.1, 100_000)


def test_a_gradient_that_may_save_nothing_is_refused() -> None:
    @compile(grad=True, saves="forbid")
    def down(x, n):
        return 1.0 if n == 0 else x * down(x, n - 1)

    with pytest.raises(CompileError, match="record of each activation"):
        down.grad(1.1, 3)


def test_receipts_list_the_records_of_activations() -> None:
    @compile(grad=True)
    def product(x, i):
        return 1.0 if i == x.size else x[i] * product(x, i + 1)

    receipt = product.explain(np.ones(3), 0)
    (saved,) = receipt.saves
    assert saved.name == "record of each activation"
    assert saved.bytes is None
    assert saved.formula == "56*activations"
    assert receipt.saved_bytes is None
    assert "def product" in saved.source


def test_receipts_count_the_shadows_beside_a_recursive_call() -> None:
    def fold(a, i):
        return 0.0 if i == len(a) else a[i] + 0.5 * fold(a, i + 1)

    @compile(grad=True)
    def loss(x, y):
        return (x * x).mean() / np.sin(y).sum() / y.sum() + fold(x, 0)

    receipt = loss.explain(np.ones(5), np.ones(5), wrt=("x", "y"))
    assert (receipt.shadow_bytes, receipt.temporary_bytes) == (80, 0)


def test_gradients_of_recursion_are_checked_by_the_users_tool() -> None:
    @compile(grad=True)
    def depth_first(v, child, i):
        if i < 0:
            return 0.0
        v[i] = v[i] * v[i]
        return v[i] + depth_first(v, child, child[i]) * v[0]

    check_gradient(depth_first, np.linspace(0.1, 0.9, 5), np.array([2, -1, 4, 1, 3]), 0)


def test_a_tree_of_objects_has_a_gradient() -> None:
    class Node:
        def __init__(self, value, left=None, right=None):
            self.value, self.left, self.right = value, left, right

    def total(node):
        if node is None:
            return 0.0
        return node.value**2 + 0.5 * total(node.left) + 0.25 * total(node.right)

    def of_a_tree(x):
        return total(Node(x[0], Node(x[1], None, Node(x[2])), Node(x[3])))

    check_gradient(compile(of_a_tree, grad=True, opt=1), np.linspace(0.1, 0.9, 4))


@pytest.mark.parametrize("order", ["C", "F"])
def test_what_lies_without_gaps_is_raveled_in_place(order: Any) -> None:
    """A function that is recursive takes arrays of any strides, contiguous ones, too."""

    def flattened(u, depth):
        flat = u.ravel()
        flat[0] *= 2.0 * flat[1]
        if depth > 0:
            return flat.sum() + flattened(u, depth - 1)
        return (u * u).sum() + flat[0]

    def of_parts(a, depth):
        return flattened(a[1:], depth) + flattened(a.T, depth)

    check_gradient(
        compile(of_parts, grad=True, opt=0), np.linspace(0.1, 0.9, 12).reshape(3, 4, order=order), 2
    )


def test_shadows_without_the_gaps_of_arguments_are_refused() -> None:
    """Every other column follows the one before in rows of six, but not in the shadow's rows of five."""

    def flattened(u, depth):
        flat = u.reshape(-1)
        flat[1:] *= flat[:-1]
        return flat.sum() + flattened(u, depth - 1) if depth > 0 else (u * u).sum()

    def of_columns(a, depth):
        return flattened(a[:, ::2], depth)

    a = np.linspace(0.3, 0.9, 24).reshape(4, 6)
    assert compile(of_columns, opt=0)(a.copy()[:, :5], 2) == of_columns(a.copy()[:, :5], 2)
    with pytest.raises(CompileError, match="depends on the strides"):
        compile(of_columns, grad=True, opt=0).grad(a[:, :5], 2)
    check_gradient(compile(of_columns, grad=True, opt=0), a[:, :5].copy(), 2)
