"""Gradients with long tapes run updates again, from states: bit for bit as those that keep whole tapes.

Here even small tapes are long ones (`LONGEST_TAPE`), and what is run again costs nothing (`AGAIN`).
"""

from __future__ import annotations

import math

import numpy as np
import pytest

import mutad.compiler.request as request
from mutad import check_gradient, compile
from mutad.compiler.derivative import replays
from mutad.compiler.transforms import step_on_rows, step_on_tape
from mutad.dialects import ad

rng = np.random.default_rng(11)


def projections(matrix):
    """Each step changes the last column: none can be finished before the next begins."""
    a = matrix.copy()
    n = a.shape[1]
    q = np.zeros_like(a)
    r = np.zeros((n, n))
    for k in range(n):
        a[:, n - 1] *= 0.9
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, n):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return (r * r * r).sum() + q.sum()


def reversed_rows(r):
    n = r.size
    y = np.zeros(n)
    alpha = -r[0]
    beta = 1.0
    y[0] = -r[0]
    for k in range(1, n):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(r[k - 1 :: -1], y[:k])) / beta
        y[:k] += alpha * y[k - 1 :: -1]
        y[k] = alpha
    return (y * y).sum()


def fixed_vector(x, w):
    """Nothing shrinks: one segment for all iterations, where nothing is replayed."""
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, x) * w[k]
        y -= s[k] * x
    return (s * s).sum() + (y * y).sum()


def two_arrays(x, w):
    y, z = x.copy(), 2.0 * x
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, z) * w[k]
        y -= s[k] * x
        z += s[k] * y
    return (s * s).sum() + (y * z).sum()


def argument_in_place(x, w):
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(x, x) * w[k]
        x -= s[k] * w[k] * x
    return (s * s).sum() + (x * x).sum()


def through_views(x, w):
    y = x.copy()
    inner, odd = y[1:-1], y[1::2]
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(inner, inner) * w[k]
        odd -= s[k] * odd
        inner += w[k] * s[k]
    return (s * s).sum() + (y * y * y).sum()


def in_scalar_loops(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        t = 0.0
        for i in range(y.size):
            t += y[i] * y[i]
        s[k] = t * w[k]
        for i in range(y.size):
            y[i] -= s[k] * x[i]
    return (s * s).sum() + (y * y).sum()


def with_branches(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        if w[k] > 0.02:
            y -= s[k] * x
        else:
            y += w[k]
    return (s * s).sum() + (y * y).sum()


def with_scratch(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        t = y[::-1] * w[k]
        s[k] = np.dot(t, y)
        t += s[k]
        y -= 0.1 * t
    return (s * s).sum() + (y * y).sum()


def in_single(x, w):
    y = x.copy()
    s = np.zeros(w.size, dtype=np.float32)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
    return (s * s).sum() + (y * y).sum()


def one_after_the_other(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
    for k in range(w.size):
        s[k] += np.dot(y, x) * w[k]
        y += s[k] * x
    return (s * s).sum() + (y * y).sum()


def nested(x, w):
    y = np.outer(x, x)
    s = np.zeros((w.size, x.size))
    for k in range(w.size):
        for i in range(x.size):
            s[k, i] = np.dot(y[i], y[i]) * w[k]
            y[i] -= s[k, i] * x
    return (s * s).sum() + (y * y).sum()


def sum_in_a_variable(x, w):
    """The plan saves it, for the square."""
    y = x.copy()
    for k in range(w.size):
        s = np.dot(y, y) * w[k]
        y -= s * s * x
    return (y * y).sum()


def two_updates(x, w):
    """What the update takes is replayed, too."""
    y, z = x.copy(), x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        z *= 0.9
        y -= s[k] * z
    return (s * s).sum() + (y * z).sum()


def ends_early(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        if s[k] > 1e9:
            break
        y -= s[k] * x
    return (s * s).sum() + (y * y).sum()


def counts_itself(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    k = 0
    while k < w.size:
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
        k += 1
    return (s * s).sum() + (y * y).sum()


def of_functions(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * np.sin(y)
    return (s * s).sum() + (y * y).sum()


def may_raise(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        if s[k] < -1e9:
            raise ValueError("too small")
        y -= math.sqrt(w[k] * w[k] + 1.0) * s[k] * x
    return (s * s).sum() + (y * y).sum()


def carried(x, w):
    y, z = x.copy(), x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
        y, z = z, y
    return (s * s).sum() + (y * z).sum()


def in_a_branch(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    if w.size > 3:
        for k in range(w.size):
            s[k] = np.dot(y, y) * w[k]
            y -= s[k] * x
    return (s * s).sum() + (y * y).sum()


def three_times(x, w):
    """The states would be as large as the tape."""
    y = x.copy()
    s = np.zeros(3)
    for k in range(3):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
    return (s * s).sum() + (y * y).sum()


def filled(x, w):
    """As many numbers as there are steps."""
    y = 0.1 * w
    y[: x.size] = 0.1 * x[: w.size]
    return y, np.zeros(w.size)


def two_more(x, w):
    """Rows that grow by two."""
    y, s = filled(x, w)
    for k in range(2, w.size - 1, 2):
        s[k] = np.dot(y[:k], y[:k]) * w[k]
        y[:k] -= s[k] * w[k]
        y[k] = w[k]
        y[k + 1] = s[k]
    return (y * y).sum()


def reversed_vector(x, w):
    y, s = filled(x, w)
    for k in range(1, w.size):
        s[k] = np.dot(w[k - 1 :: -1], y[:k]) * w[k]
        y[:k] -= s[k] * y[k - 1 :: -1]
        y[k] = s[k]
    return (y * y).sum()


def one_less(x, w):
    """Rows become shorter, and longer from the last one to the first."""
    y, s = filled(x, w)
    for k in range(w.size):
        s[k] = np.dot(y[: w.size - k], y[: w.size - k]) * w[k]
        y[: w.size - k] -= s[k] * w[k]
    return (y * y).sum()


def of_unknown_length(x, w):
    """How much longer rows become, no analysis sees."""
    y, s = filled(x, w)
    for k in range(w.size):
        m = (7 * k) % w.size + 1
        s[k] = np.dot(y[:m], y[:m]) * w[k]
        y[:m] -= s[k] * w[k]
    return (y * y).sum()


def one_of_two(x, w):
    """Of the two elements that rows have more, one is as it was at first."""
    y, s = filled(x, w)
    for k in range(2, w.size - 1, 2):
        s[k] = np.dot(y[:k], y[:k]) * w[k]
        y[:k] -= s[k] * w[k]
        y[k + 1] = w[k]
    return (y * y).sum()


def reads_beyond(x, w):
    y, s = filled(x, w)
    for k in range(1, w.size - 1):
        s[k] = np.dot(y[:k], y[:k]) * w[k]
        y[:k] -= s[k] * y[1 : k + 1]
        y[k] = w[k]
    return (y * y).sum()


def reads_behind_the_store(x, w):
    y, s = filled(x, w)
    for k in range(1, w.size):
        s[k] = np.dot(y[:k], y[:k]) * w[k]
        y[:k] -= s[k] * y[k - 1 :: -1]
        y[k] = y[0] * w[k]
    return (y * y).sum()


def stored_in_a_branch(x, w):
    y, s = filled(x, w)
    for k in range(1, w.size):
        s[k] = np.dot(y[:k], y[:k]) * w[k]
        y[:k] -= s[k] * y[k - 1 :: -1]
        if w[k] > 0.025:
            y[k] = w[k]
    return (y * y).sum()


def from_the_end(x, w):
    """What is saved are not the first elements."""
    y, s = filled(x, w)
    for k in range(w.size):
        s[k] = np.dot(y[k:], y[k:]) * w[k]
        y[k:] -= s[k] * w[k]
    return (y * y).sum()


STEPPING = (fixed_vector, argument_in_place, reversed_vector, two_more, one_less)
IN_PLACE = (
    through_views, with_branches, one_of_two, reads_beyond, reads_behind_the_store, stored_in_a_branch,
    from_the_end, of_unknown_length,
)  # fmt: skip
"""Those whose steps do not go from one row to the next."""

REPLAYED = (
    fixed_vector, two_arrays, argument_in_place, through_views, with_branches, one_after_the_other, nested,
    sum_in_a_variable, two_updates, in_scalar_loops, two_more, one_less, of_unknown_length, reversed_vector,
    one_of_two, reads_beyond, reads_behind_the_store, stored_in_a_branch, from_the_end,
)  # fmt: skip
REFUSED = (
    ends_early, counts_itself, of_functions, may_raise, carried, in_a_branch, three_times,
    with_scratch,
)  # fmt: skip


@pytest.fixture(autouse=True)
def all_pay(monkeypatch):
    monkeypatch.setattr(replays, "AGAIN", 0)


@pytest.fixture
def found(monkeypatch):
    """The loops that are replayed."""
    loops = []
    adopt = replays.adopt

    def noting(plan, made):
        loops.append(made[0])
        adopt(plan, made)

    monkeypatch.setattr(replays, "adopt", noting)
    return loops


def both(monkeypatch, function, *arguments, wrt, **options):
    """The values, gradients and arguments afterwards: with long tapes, and with whole ones."""
    (results,) = both_of_each(monkeypatch, function, [arguments], wrt=wrt, **options)
    return results


def both_of_each(monkeypatch, function, lists, *, wrt, **options):
    """The same for each list of arguments."""
    results = []
    for longest in (0, 1 << 60):
        monkeypatch.setattr(request, "LONGEST_TAPE", longest)
        compiled = compile(function, grad=True, cache=False, **options)
        for arguments in lists:
            copies = [a.copy() for a in arguments]
            value, gradients = compiled.value_and_grad(*copies, wrt=wrt)
            results.append([value, *gradients, *copies])
    return list(zip(results[: len(lists)], results[len(lists) :], strict=True))


def is_same(one, other):
    return all(np.array_equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("function", REPLAYED, ids=lambda f: f.__name__)
def test_vectors_are_replayed(function, found, monkeypatch):
    whole = compile(function, grad=True, saves="all")
    sizes = ((40, 70), (5, 16), (7, 17), (40, 2), (40, 0))
    lists = [(0.3 * rng.random(length), 0.05 * rng.random(steps)) for length, steps in sizes]
    results = both_of_each(monkeypatch, function, lists, wrt=("x", "w"))
    for (x, w), (replayed, kept) in zip(lists, results, strict=True):
        assert is_same(replayed, kept)
        for one, other in zip(replayed[1:3], whole.grad(x.copy(), w, wrt=("x", "w")), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
    assert found


@pytest.mark.parametrize("function", REFUSED, ids=lambda f: f.__name__)
def test_others_are_not(function, found, monkeypatch):
    x, w = 0.3 * rng.random(20), 0.05 * rng.random(70)
    assert is_same(*both(monkeypatch, function, x, w, wrt=("x", "w")))
    assert not found


@pytest.mark.parametrize("function", [*STEPPING, *IN_PLACE], ids=lambda f: f.__name__)
def test_which_steps_go_from_row_to_row(function, found, monkeypatch):
    steps = []
    monkeypatch.setattr(request, "LONGEST_TAPE", 0)
    on_tape = step_on_tape.rewrite

    def rewrite(step):
        if ad.REFILLED in step.push.attributes:
            steps.append(step)
        return on_tape(step)

    monkeypatch.setattr(step_on_rows, "rewrite", steps.append)
    monkeypatch.setattr(step_on_tape, "rewrite", rewrite)
    compiled = compile(function, grad=True, cache=False)
    compiled.inspect("optimize", rng.random(20), rng.random(70), wrt=("x", "w"))
    assert found
    assert bool(steps) is (function in STEPPING)


@pytest.mark.parametrize("columns", [1, 2, 15, 16, 17, 40])
def test_columns_of_a_matrix(columns, found, monkeypatch):
    matrix = rng.normal(size=(columns + 3, columns))
    assert is_same(*both(monkeypatch, projections, matrix, wrt=("matrix",)))
    assert found or columns == 1


@pytest.mark.parametrize("length", [1, 2, 16, 17, 18, 60])
def test_a_tape_of_growing_rows(length, found, monkeypatch):
    r = 0.3 / np.arange(1.0, length + 1.0) ** 2
    assert is_same(*both(monkeypatch, reversed_rows, r, wrt=("r",)))


def test_single_precision(found, monkeypatch):
    x, w = 0.3 * rng.random(40), 0.05 * rng.random(70)
    x, w = x.astype(np.float32), w.astype(np.float32)
    assert is_same(*both(monkeypatch, in_single, x, w, wrt=("x", "w")))
    assert found


def test_gradients_are_checked(monkeypatch):
    monkeypatch.setattr(request, "LONGEST_TAPE", 0)
    vectors, rows = (compile(f, grad=True, cache=False) for f in (two_arrays, reversed_rows))
    check_gradient(vectors, 0.3 * rng.random(6), 0.05 * rng.random(40))
    check_gradient(rows, 0.3 / np.arange(1.0, 40.0) ** 2)


def test_exceptions_leave_arrays_as_python_does(found, monkeypatch):
    def raises(x, w):
        s = np.zeros(w.size)
        for k in range(w.size):
            s[k] = np.dot(x, x) * w[k]
            x -= s[k] * x
            s[k + 1] = 0.0
        return (s * s).sum() + (x * x).sum()

    monkeypatch.setattr(request, "LONGEST_TAPE", 0)
    x, w = 0.3 * rng.random(5), 0.05 * rng.random(40)
    mine, theirs = x.copy(), x.copy()
    with pytest.raises(IndexError):
        raises(theirs, w)
    with pytest.raises(IndexError):
        compile(raises, grad=True, cache=False).grad(mine, w, wrt=("x", "w"))
    np.testing.assert_allclose(mine, theirs, rtol=1e-14)  # BLAS adds up in an order of its own


def test_vjp_keeps_whole_tapes(found, monkeypatch):
    monkeypatch.setattr(request, "LONGEST_TAPE", 0)
    x, w = 0.3 * rng.random(20), 0.05 * rng.random(40)
    compiled = compile(fixed_vector, grad=True, cache=False)
    _, back = compiled.vjp(x, w, wrt="x")
    assert not found
    np.testing.assert_allclose(back(1.0), compiled.grad(x, w, wrt="x"), rtol=1e-12)
    assert found


def test_receipts_say_what_is_made_again(monkeypatch):
    matrix = rng.normal(size=(50, 40))
    compiled = compile(projections, grad=True, cache=False)
    whole = compiled.explain(matrix)
    assert whole.saved_bytes == 8 * 50 * 40 * 39 // 2
    assert not whole.replayed
    monkeypatch.setattr(request, "LONGEST_TAPE", whole.saved_bytes - 1)
    receipt = compile(projections, grad=True, cache=False).explain(matrix)
    assert receipt.saved_bytes == 8 * 3 * 50 * 40
    (one,) = receipt.replayed
    assert (one.name, one.every) == ("a", 16)
    assert one.bytes == 8 * 50 * sum(39 - k for k in range(16))
    assert f"`a` is saved every 16 iterations and made again, {one.bytes:,} bytes" in repr(receipt)
    assert receipt.to_dict()["replayed"][0]["bytes"] == one.bytes
