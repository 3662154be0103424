"""Loops whose iterations start from what was there before them are replayed one by one (`replays_apart`).

Steps that update all later rows become steps that finish one row (`finish-rows`): with the same bits.
"""

from __future__ import annotations

import numpy as np
import pytest

import mutad.compiler.stages.adjoint as stage
from mutad import check_gradient, compile, hvp
from mutad.compiler.derivative import planner, replays_apart
from mutad.compiler.transforms import step_on_tapes

rng = np.random.default_rng(12)


def columns(matrix):
    a = matrix.copy()
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]) + 1.0)
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return (r * r * r).sum() + q.sum()


def rows(matrix):
    a = matrix.copy()
    n = a.shape[0]
    q = np.zeros_like(a)
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[k], a[k]) + 1.0)
        q[k] = a[k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[k], a[j])
            a[j] -= q[k] * r[k, j]
    return (r * r * r).sum() + (q * q * q).sum()


def row_by_row(matrix):
    a = matrix.copy()
    n = a.shape[0]
    q = np.zeros_like(a)
    r = np.zeros((n, n), dtype=a.dtype)
    for j in range(n):
        for k in range(j):
            r[k, j] = np.dot(q[k], a[j])
            a[j] -= q[k] * r[k, j]
        r[j, j] = np.sqrt(np.dot(a[j], a[j]) + 1.0)
        q[j] = a[j] / r[j, j]
    return (r * r * r).sum() + (q * q * q).sum()


def argument_in_place(a):
    """Rows that are finished are read where they are, of the array that is replayed."""
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[k], a[j]) / m
            a[j] -= 0.5 * a[k] * r[k, j]
    return (r * r * r).sum() + (a * a * a).sum()


def normed_in_place(a):
    """The last store of an iteration fills no tape."""
    n, _ = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        r[k, k] = np.sqrt(np.dot(a[k], a[k]) + 1.0)
        a[k] /= r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[k], a[j])
            a[j] -= a[k] * r[k, j]
    return (r * r * r).sum() + (a * a * a).sum()


def two_arrays(matrix):
    a, b = matrix.copy(), 2.0 * matrix
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[k], b[j]) / m
            a[j] -= 0.1 * a[k] * r[k, j]
            b[j] += 0.1 * r[k, j] * b[k]
    return (r * r * r).sum() + (a * b).sum()


def as_many_each(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for j in range(n):
        for k in range(n):
            r[j, k] = np.dot(a[j], matrix[k]) / m
            a[j] -= 0.1 * matrix[k] * r[j, k]
    return (r * r * r).sum() + (a * a).sum()


def fewer_each(matrix):
    """The first tape is the longest."""
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for j in range(n):
        for k in range(n - 1 - j):
            r[j, k] = np.dot(a[j], matrix[k]) / m
            a[j] -= 0.1 * matrix[k] * r[j, k]
    return (r * r * r).sum() + (a * a).sum()


def in_some_cases(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for j in range(n):
        for k in range(j):
            r[j, k] = np.dot(a[j], matrix[k]) / m
            if (j + k) % 3 != 1:
                a[j] -= 0.1 * matrix[k] * r[j, k]
    return (r * r * r).sum() + (a * a).sum()


def of_halves(matrix):
    """Views of views, and a part of each row."""
    a = matrix.copy()
    n, m = a.shape
    inner = a[:, : m // 2]
    r = np.zeros((n, n), dtype=a.dtype)
    for j in range(n):
        for k in range(j):
            r[j, k] = np.dot(inner[j], matrix[k, : m // 2]) / m
            inner[j] -= 0.1 * matrix[k, : m // 2] * r[j, k]
    return (r * r * r).sum() + (a * a).sum()


def rows_from_the_next(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        for j in range(k + 1, n - 1):
            r[k, j] = np.dot(a[k], a[j]) / m
            a[j] -= 0.1 * a[k] * r[k, j] * a[j + 1]
    return (r * r * r).sum() + (a * a).sum()


def changes_the_last(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for k in range(n):
        a[n - 1] *= 0.9
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[k], a[j]) / m
            a[j] -= 0.1 * a[k] * r[k, j]
    return (r * r * r).sum() + (a * a).sum()


def changes_the_last_in_the_end(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for j in range(n):
        for k in range(j):
            r[k, j] = np.dot(matrix[k], a[j]) / m
            a[j] -= 0.1 * matrix[k] * r[k, j]
        a[n - 1] *= 0.9
    return (r * r * r).sum() + (a * a).sum()


def reads_sums_of_others(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.ones((n, n), dtype=a.dtype)
    for k in range(n):
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[k], a[j]) / m * r[k, j - 1]
            a[j] -= 0.1 * a[k] * r[k, j]
    return (r * r * r).sum() + (a * a).sum()


def carries_a_number(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.ones((n, n), dtype=a.dtype)
    s = 0.0
    for k in range(n):
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[k], a[j]) / m
            s = 0.5 * s + r[k, j]
            a[j] -= 0.1 * a[k] * s
    return (r * r * r).sum() + (a * a).sum()


def ends_early(matrix):
    a = matrix.copy()
    n, m = a.shape
    r = np.ones((n, n), dtype=a.dtype)
    for k in range(n):
        for j in range(k + 1, n):
            r[k, j] = np.dot(a[k], a[j]) / m
            if r[k, j] > 1e3:
                break
            a[j] -= 0.1 * a[k] * r[k, j]
    return (r * r * r).sum() + (a * a).sum()


def no_sum(matrix):
    a = matrix.copy()
    n, _ = a.shape
    for j in range(n):
        for k in range(j):
            a[j] *= matrix[k]
    return (a * a).sum()


def every_row_again(matrix):
    """Each step begins with what the one before has left."""
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for t in range(n):
        for k in range(n):
            r[t, k] = np.dot(a[k], a[k]) / m
            a[k] -= 0.1 * matrix[k] * r[t, k]
    return (r * r * r).sum() + (a * a).sum()


def steps_of_two(matrix):
    """How long the longest tape is comes of a division."""
    a = matrix.copy()
    n, m = a.shape
    r = np.zeros((n, n), dtype=a.dtype)
    for j in range(n):
        for k in range(0, j, 2):
            r[k, j] = np.dot(matrix[k], a[j]) / m
            a[j] -= 0.1 * matrix[k] * r[k, j]
    return (r * r * r).sum() + (a * a).sum()


APART = (
    columns, rows, row_by_row, argument_in_place, normed_in_place, two_arrays, as_many_each, fewer_each,
    in_some_cases, of_halves,
)  # fmt: skip
WHOLE = (
    rows_from_the_next, changes_the_last, changes_the_last_in_the_end, reads_sums_of_others,
    carries_a_number, ends_early, no_sum, every_row_again, steps_of_two,
)  # fmt: skip
SHAPES = ((0, 3), (1, 4), (2, 2), (3, 3), (4, 7), (5, 4), (9, 33), (30, 40), (35, 70))


@pytest.fixture
def found(monkeypatch):
    """The loops that are replayed."""
    loops = []
    adopt = replays_apart.adopt

    def noting(plan, made):
        loops.append(made[0])
        adopt(plan, made)

    monkeypatch.setattr(replays_apart, "adopt", noting)
    return loops


def same_as_whole(function, shapes, dtype=np.float64, **options):
    one, other = (
        compile(function, grad=True, saves=saves, cache=False, **options)
        for saves in ("minimal", "all")
    )
    for shape in shapes:
        agree(function, one, other, shape, dtype)


def agree(function, one, other, shape, dtype):
    tolerance = 1e-10 if dtype == np.float64 else 2e-4
    x = rng.normal(size=shape if function is not columns else shape[::-1]).astype(dtype)
    mine, theirs, python = x.copy(), x.copy(), x.copy()
    with np.errstate(all="ignore"):
        expected = function(python)
    value, gradient = one.value_and_grad(mine)
    whole, reference = other.value_and_grad(theirs)
    np.testing.assert_allclose(value, expected, rtol=tolerance)
    np.testing.assert_allclose(value, whole, rtol=1e-12 if dtype == np.float64 else 1e-5)
    np.testing.assert_allclose(mine, python, rtol=tolerance, atol=tolerance)
    assert gradient.dtype == dtype
    most = np.abs(reference).max(initial=1.0)
    np.testing.assert_allclose(gradient / most, reference / most, rtol=0.0, atol=tolerance)


@pytest.mark.parametrize("function", APART, ids=lambda f: f.__name__)
def test_rows_are_replayed_one_by_one(function, found):
    same_as_whole(function, SHAPES)
    assert found


@pytest.mark.parametrize("function", WHOLE, ids=lambda f: f.__name__)
def test_others_are_not(function, found):
    same_as_whole(function, SHAPES[1:])
    assert not found


@pytest.mark.parametrize("options", [{"fastmath": True}, {"parallel": True}, {"memory": "1GiB"}])
def test_options(options):
    same_as_whole(columns, SHAPES[3:], **options)


def test_single_precision(found):
    for function in (columns, rows, argument_in_place):
        same_as_whole(function, SHAPES[1:], np.float32)
    assert found


@pytest.mark.parametrize("function", APART, ids=lambda f: f.__name__)
def test_without_the_passes_bits_are_the_same(function, monkeypatch):
    """But for the order in which cotangents are added up."""
    x = rng.normal(size=(37, 37))
    results = []
    for whole in (False, True):
        if whole:
            monkeypatch.setattr(stage, "ROW_BY_ROW", ())
            monkeypatch.setattr(planner, "replay_apart", lambda plan, graph: None)
        copy = x.copy()
        compiled = compile(function, grad=True, cache=False)
        results.append((*compiled.value_and_grad(copy), copy))
    (value, gradient, after), (reference, expected, left) = results
    assert value == reference
    assert np.array_equal(after, left)
    np.testing.assert_allclose(gradient, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_gradients_are_checked():
    for function in (columns, argument_in_place, fewer_each):
        check_gradient(compile(function, grad=True, cache=False), rng.normal(size=(9, 9)))


def test_a_pullback_may_be_taken_again():
    x = rng.normal(size=(12, 9))
    compiled = compile(rows, grad=True, cache=False)
    _, back = compiled.vjp(x, wrt="matrix")
    first, second = back(1.0), back(2.0)
    np.testing.assert_allclose(first, compiled.grad(x), rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(second, 2.0 * first, rtol=1e-12)


def test_hessian_products():
    x, v = rng.normal(size=(7, 6)), rng.normal(size=(7, 6))
    product = hvp(rows)(x, direction=v)
    step, gradient = 1e-6, compile(rows, grad=True, cache=False).grad
    difference = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(product, difference, rtol=1e-4, atol=1e-5 * np.abs(product).max())


def test_exceptions_leave_arrays_as_python_does():
    def raises(a, order):
        n, m = a.shape
        r = np.zeros((n, n))
        for k in range(n):
            for j in range(k + 1, n):
                r[k, j] = np.dot(a[k], a[order[j]]) / m
                a[order[j]] -= 0.5 * a[k] * r[k, j]
        return (a * a).sum()

    a, order = rng.normal(size=(6, 5)), np.array([0, 1, 2, 3, 9, 5])
    mine, theirs = a.copy(), a.copy()
    with pytest.raises(IndexError):
        raises(theirs, order)
    with pytest.raises(IndexError):
        compile(raises, grad=True, cache=False).grad(mine, order, wrt="a")
    np.testing.assert_allclose(mine, theirs, rtol=1e-14)


def test_arguments_that_are_one_array():
    def against(a, b):
        n, m = a.shape
        r = np.zeros((n, n))
        for k in range(n):
            for j in range(k + 1, n):
                r[k, j] = np.dot(b[k], a[j]) / m
                a[j] -= 0.5 * b[k] * r[k, j]
        return (r * r * r).sum() + (a * a * a).sum()

    compiled = compile(against, grad=True, cache=False)
    whole = compile(against, grad=True, saves="all", cache=False)
    x, y = rng.normal(size=(11, 8)), rng.normal(size=(11, 8))
    for one, other in ((x, y), (x, x), (x[:-1], x[1:])):
        results = []
        for f in (compiled, whole):
            base = x.copy()
            views = [base, y.copy()]
            if other is x:
                views = [base, base]
            elif other is not y:
                views = [base[:-1], base[1:]]
            results.append((*f.value_and_grad(*views, wrt=("a", "b")), base))
        (value, gradients, left), (reference, expected, after) = results
        np.testing.assert_allclose(value, reference, rtol=1e-13)
        np.testing.assert_allclose(left, after, rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(gradients, expected, rtol=1e-9, atol=1e-11)


def test_receipts_say_what_is_made_again():
    receipt = compile(columns, grad=True, cache=False).explain(rng.normal(size=(50, 40)))
    assert receipt.saved_bytes == 8 * 50 * 40
    (one,) = receipt.replayed
    assert (one.name, one.every, one.apart) == ("a", 4, True)
    assert one.bytes == 4 * 8 * 50 * 39
    assert f"`a` is made again, for 4 iterations at a time, {one.bytes:,} bytes" in repr(receipt)
    assert receipt.to_dict()["replayed"][0]["bytes"] == one.bytes


def test_a_tape_that_must_not_be():
    with pytest.raises(Exception, match="this store kills a value that the gradient needs"):
        compile(columns, grad=True, saves="forbid", cache=False).grad(np.ones((3, 3)))


def counted_from_the_end(a, q):
    n = a.shape[0]
    r = np.zeros((n, n))
    for k in range(n):
        q[-1 - k] = np.tanh(a[-1 - k])
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[-1 - k], a[-1 - j])
            a[-1 - j] -= q[-1 - k] * r[k, j]
    return (r * r).sum() + np.sin(q).sum() + np.sin(a).sum()


@pytest.mark.parametrize("shape", [(1, 1), (9, 1), (4, 7), (9, 7)])
def test_rows_that_are_counted_from_the_end(shape):
    """Four iterations add to one row; of rows of one element each computes the number by itself."""
    a, q = 0.5 * np.random.default_rng(sum(shape)).normal(size=(2, *shape))
    check_gradient(compile(counted_from_the_end, grad=True, cache=False), a, q, wrt=("a", "q"))


IN_PLACE = (in_some_cases, of_halves)


@pytest.mark.parametrize("function", APART, ids=lambda f: f.__name__)
def test_which_rows_go_along_their_tapes(function, monkeypatch):
    steps = []
    monkeypatch.setattr(step_on_tapes, "rewrite", steps.append)
    compiled = compile(function, grad=True, cache=False)
    name = function.__code__.co_varnames[0]
    compiled.inspect("optimize", rng.normal(size=(9, 7)), wrt=name)
    assert bool(steps) is (function not in IN_PLACE)


def scattered(u, v):
    """Each iteration reads elements that others stored to: what it saves is all of `u`."""
    s = 0.0
    n = v.shape[0]
    for i in range(n):
        for j in range(n):
            for k in range(n):
                u[1 + i] = v[k, 0] * v[k, 0]
                s += v[k, 1 + j] * u[2 * k]
    return s


def test_iterations_that_save_what_others_stored_are_not_apart():
    u, v = rng.uniform(0.5, 1.5, 19), rng.uniform(0.5, 1.5, (9, 10))
    free = compile(scattered, grad=True)
    whole = compile(scattered, grad=True, saves="all").grad(u.copy(), v, wrt="v")
    np.testing.assert_allclose(free.grad(u.copy(), v, wrt="v"), whole, rtol=1e-12)
    check_gradient(free, u, v, wrt=("u", "v"))
