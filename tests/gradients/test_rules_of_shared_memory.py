"""Functions with rules whose arguments may share memory: found at run time."""

import numpy as np
import pytest

import mutad
from mutad import CompileError, check_gradient


def axpy(a, x, y):
    y[:] = a * x + y


@mutad.rule(axpy)
def axpy_rule(a, x, y):
    a.cotangent += (x.value * y.shadow).sum()
    x.shadow += a.value * y.shadow


def blocks(a, rows, columns, n, m):
    i, k = rows
    j, q = columns
    axpy(2.0, a[i : i + n, j : j + m], a[k : k + n, q : q + m])
    return (a**2).sum()


def rows(a, i, j):
    axpy(a[0, 0], a[i], a[j])
    return (a**2).sum()


def columns(a, i, j):
    axpy(2.0, a[:, i], a[::-1, j])
    return (a**2).sum()


def halves(x, n, m):
    axpy(2.0, x[:n][::-1], x[m : m + n])
    return (x**2).sum()


def chosen(x, y, c):
    z = x if c > 0 else y
    axpy(2.0, z, y)
    return (y**2).sum()


def in_a_loop(x, places):
    for k in range(places.size):
        axpy(0.5, x[places[k]], x[k])
    return (x**2).sum()


def matrix(order="C"):
    return np.arange(20.0).reshape(4, 5).copy(order)


@pytest.mark.parametrize(
    ("function", "args", "shares"),
    [
        (rows, (matrix(), 0, 2), False),
        (rows, (matrix("F"), 3, 2), False),
        (rows, (matrix(), 2, 2), True),
        (columns, (matrix(), 0, 1), False),
        (columns, (matrix("F"), 1, 0), False),
        (columns, (matrix(), 1, 1), True),
        (halves, (np.arange(6.0), 3, 3), False),
        (halves, (np.arange(6.0), 3, 2), True),
        (halves, (np.arange(6.0), 0, 0), False),
        (chosen, (np.arange(3.0), np.ones(3), 1.0), False),
        (chosen, (np.arange(3.0), np.ones(3), -1.0), True),
        (in_a_loop, (matrix(), np.array([2, 3, 0, 1])), False),
        (in_a_loop, (matrix(), np.array([2, 1, 0])), True),
    ],
)
def test_the_run_tells(function, args, shares):
    compiled = mutad.compile(function, grad=True)
    if not shares:
        assert check_gradient(compiled, *args).error < 1e-9
        return
    with pytest.raises(ValueError, match=r"axpy\(\) overwrites `y`, which shares memory with `x`"):
        compiled.grad(*args)


def test_as_numpy_has_it_for_blocks():
    compiled = mutad.compile(blocks, grad=True)
    rng = np.random.default_rng(0)
    told = set[bool]()
    for _ in range(200):
        n, m = rng.integers(0, 4, 2).tolist()
        i, k = rng.integers(0, 5 - n, 2).tolist()
        j, q = rng.integers(0, 6 - m, 2).tolist()
        a = matrix(rng.choice(["C", "F"]))
        shares = np.shares_memory(a[i : i + n, j : j + m], a[k : k + n, q : q + m])
        told.add(bool(shares))
        if shares:
            with pytest.raises(ValueError, match="shares memory"):
                compiled.grad(a, (i, k), (j, q), n, m)
        else:
            compiled.grad(a, (i, k), (j, q), n, m)
    assert told == {False, True}


def test_the_plain_call_has_no_such_check():
    a = matrix()
    expected = rows(matrix(), 2, 2)
    assert mutad.compile(rows)(a, 2, 2) == expected


def test_what_no_run_decides_is_refused():
    for program in (
        lambda x: axpy(2.0, x, x),
        lambda x: axpy(2.0, x[1:], x[:-1]),
        lambda x: axpy(2.0, x[::-1], x),
    ):

        def loss(x, program=program):
            program(x)
            return x.sum()

        with pytest.raises(CompileError, match="may share memory"):
            mutad.compile(loss, grad=True).grad(np.ones(3))


def test_arguments_that_share_memory_at_the_call():
    def loss(x, y):
        axpy(2.0, x, y)
        return (y**2).sum()

    compiled = mutad.compile(loss, grad=True)
    for part, other in ((slice(4), slice(4, None)), (slice(0, None, 2), slice(1, None, 2))):
        buffer = np.arange(8.0)
        x, y = buffer[part], buffer[other]
        expected = compiled.grad(x.copy(), y.copy(), wrt=(0, 1))
        for theirs, ours in zip(expected, compiled.grad(x, y, wrt=(0, 1)), strict=True):
            np.testing.assert_array_equal(ours, theirs)
    buffer = np.arange(8.0)
    for x, y in ((buffer, buffer), (buffer[:4], buffer[2:6])):
        with pytest.raises(CompileError, match=r"pass a copy: x.copy\(\)"):
            compiled.grad(x, y)
