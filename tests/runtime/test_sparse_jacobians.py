"""Sparse Jacobians and Hessians: equal to the dense ones, in few runs; patterns that are given; colours."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_matrix, issparse
from scipy.sparse.linalg import splu

import mutad
from mutad.runtime import keys, memory
from mutad.runtime.colouring import coloured

RNG = np.random.default_rng(5)
ORDER = RNG.permutation(12)
RATES = RNG.uniform(0.5, 1.5, 8)


def made(function: Any) -> Any:
    return mutad.compile(function, grad=True, opt=1)


def heat(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2.0 * u[1:-1] + u[2:])
    return u


def plate(u):
    r = -4.0 * u
    r[1:] += u[:-1]
    r[:-1] += u[1:]
    r[:, 1:] += u[:, :-1]
    r[:, :-1] += u[:, 1:]
    return r * u


def seidel(u, f):
    for i in range(1, u.size - 1):
        u[i] = 0.5 * (u[i - 1] + u[i + 1] + f[i] * u[i])
    return u


def maxwell(ex, ey, hz):
    ex[:, 1:] += 0.5 * (hz[:, 1:] - hz[:, :-1])
    ey[1:] -= 0.5 * (hz[1:] - hz[:-1])
    hz[:-1, :-1] += 0.5 * (ex[:-1, 1:] - ex[:-1, :-1] - ey[1:, :-1] + ey[:-1, :-1]) ** 2
    return ex, ey, hz, hz.size


def gathered(u, where):
    v = u[where] * u[where[::-1]]
    v[where] += np.sin(u)
    return v


def kinked(u):
    v = np.where(u > 1.0, u * np.roll(u, 1), 3.0 * u)
    return np.maximum(v, u.max())


def upwind(u, c):
    r = np.zeros_like(u)
    for i in range(1, u.size - 1):
        if c[i] > 0.0:
            r[i] = c[i] * (u[i] - u[i - 1])
        else:
            r[i] = c[i] * (u[i + 1] - u[i])
    return r


def halved(u):
    while u.sum() > 1.0:
        u *= 0.5
    return u[::2], (u**2).sum()


def arrow(u):
    v = u**2
    v[0] = u.sum()
    return v


def bordered(u):
    return u[0] * u


def reaction(u, v, b):
    du = 1.0 + u * u * v - (b + 1.0) * u
    dv = b * u - u * u * v
    du[1:-1] += u[:-2] - 2.0 * u[1:-1] + u[2:]
    dv[1:-1] += v[:-2] - 2.0 * v[1:-1] + v[2:]
    return du, dv


def from_outside(u):
    return (u * RATES)[::-1] * RATES[0]


def by_matrix(u, a):
    return a @ u + np.cumsum(u)


def tall(k, x):
    return k[0] * x + k[1], k[1] * k[1]


def number(k):
    return k**3


def one() -> Any:
    return RNG.uniform(1.0, 2.0, 12)


def grid() -> Any:
    return RNG.uniform(1.0, 2.0, (5, 6))


def narrow() -> Any:
    return one().astype(np.float32)


def blocks() -> Any:
    return np.kron(np.eye(4), np.ones((3, 3))) * 2.0


MAXWELL = ("ex", "ey", "hz")
PROGRAMS: dict[str, tuple[Any, Any, Any, int | None]] = {
    "stencil": (heat, lambda: (one(), 0.1, 1), 0, 3),
    "stencil_steps": (heat, lambda: (one(), 0.1, 3), 0, 7),
    "stencil_and_rate": (heat, lambda: (one(), 0.1, 2), ("u", "k"), 6),
    "stencil_float32": (heat, lambda: (narrow(), 0.1, 1), 0, 3),
    "stencil_2d": (plate, lambda: (grid(),), 0, 5),
    "strided": (heat, lambda: (RNG.uniform(1, 2, 24)[::2], 0.1, 1), 0, 3),
    "sweep": (seidel, lambda: (one(), one()), 0, 11),
    "sweep_source": (seidel, lambda: (one(), one()), "f", None),
    "fields": (maxwell, lambda: (grid(), grid(), grid()), MAXWELL, None),
    "gather": (gathered, lambda: (one(), ORDER), 0, None),
    "where": (kinked, lambda: (RNG.uniform(0.5, 1.5, 12),), 0, None),
    "branches": (upwind, lambda: (one(), RNG.uniform(-1, 1, 12)), 0, None),
    "while": (halved, lambda: (one(),), 0, None),
    "dense_row": (arrow, lambda: (one(),), 0, 2),
    "dense_column": (bordered, lambda: (one(),), 0, 2),
    "two_species": (reaction, lambda: (one(), one(), 3.0), ("u", "v"), None),
    "captured": (from_outside, lambda: (RNG.uniform(1, 2, 8),), ("RATES", "u"), None),
    "product": (by_matrix, lambda: (one(), blocks()), 0, 12),
    "few_arguments": (tall, lambda: (one()[:2], one()), ("k",), 2),
    "numbers": (number, lambda: (1.5,), 0, 1),
    "nothing": (number, lambda: (np.ones(0),), 0, 0),
}


def dense(tree: Any, result: Any, sizes: list[int]) -> Any:
    """The nested Jacobian as one matrix."""
    if isinstance(result, tuple):
        return np.vstack([dense(t, r, sizes) for t, r in zip(tree, result, strict=True)])
    if tree is None:
        return np.zeros((0, sum(sizes)))
    parts = []
    for block, n in zip(tree if isinstance(tree, tuple) else (tree,), sizes, strict=True):
        if issparse(block):
            assert isinstance(block, csc_array)
            assert block.shape == (np.size(result), n)
            assert block.dtype == np.asarray(result).dtype
            block = block.toarray()
        parts.append(np.reshape(block, (np.size(result), n)))
    return np.hstack(parts)


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return memory.copies(arguments, keys.overlaps_of(arguments))


@pytest.mark.parametrize("name", PROGRAMS)
def test_sparse_is_dense_in_every_mode_and_by_every_pattern(name: str) -> None:
    function, make, wrt, colours = PROGRAMS[name]
    f, start = made(function), make()
    after = copied(start)
    result = function(*after)
    names = function.__code__.co_varnames[: len(start)]
    inputs = [
        RATES if w == "RATES" else start[names.index(w) if isinstance(w, str) else w]
        for w in (wrt if isinstance(wrt, tuple) else (wrt,))
    ]
    sizes = [np.size(a) for a in inputs]
    reference = {
        mode: dense(f.jacobian(*copied(start), wrt=wrt, mode=mode), result, sizes)
        for mode in ("forward", "reverse")
    }
    sparsity = f.jacobian_sparsity(*copied(start), wrt=wrt)
    if colours is not None:
        assert sparsity.colours == colours
    assert not (reference["forward"] != 0)[~sparsity.pattern.toarray()].any()
    pattern = reference["forward"] != 0
    for mode in ("forward", "reverse", "auto"):
        for given in ("auto", sparsity, pattern, csr_matrix(pattern)):
            arguments = copied(start)
            tree = f.jacobian(*arguments, wrt=wrt, mode=mode, sparsity=given)
            found = dense(tree, result, sizes)
            taken = sparsity.mode if mode == "auto" else mode
            tolerance = 1e-5 if name.endswith("32") else 1e-13
            if mode != "auto" or given is sparsity:  # with guards, which NaN asks for, or without
                own = reference[taken]
                np.testing.assert_allclose(found, own, rtol=tolerance / 10, atol=tolerance / 100)
            np.testing.assert_allclose(found, reference["forward"], rtol=tolerance, atol=tolerance)
            for got, want in zip(arguments, after, strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-6 if name.endswith("32") else 1e-14)


# Patterns that are found.


def test_a_pattern_has_entries_that_happen_to_be_zero() -> None:
    f = made(plate)
    anywhere, at_zero = f.jacobian_sparsity(grid()), f.jacobian_sparsity(np.zeros((5, 6)))
    np.testing.assert_array_equal(anywhere.pattern.toarray(), at_zero.pattern.toarray())
    assert f.jacobian(np.zeros((5, 6)), sparsity="auto").count_nonzero() == 0


def test_values_that_are_not_finite_stay_in_their_places() -> None:
    def neighbours(u):
        return u[1:] * u[:-1] + np.log(u[1:])

    f, u = made(neighbours), np.array([1.0, np.inf, 0.0, np.nan, 2.0, 3.0])
    wanted = f.jacobian(u)
    for given in ("auto", wanted != 0.0):
        for mode in ("forward", "reverse"):
            found = f.jacobian(u, mode=mode, sparsity=given)
            np.testing.assert_array_equal(found.toarray(), wanted)
    assert f.jacobian_sparsity(u).pattern.nnz == 10


def test_fast_math_loses_no_entry() -> None:
    f = mutad.compile(plate, grad=True, fastmath=True)
    assert f.jacobian_sparsity(grid()).pattern.nnz == 30 + 2 * 25 + 2 * 24


def announced(u):
    print("run")
    r = np.zeros_like(u)
    r[1:-1] = u[1:-1] * (u[:-2] + u[2:])
    return r


def runs(capsys: pytest.CaptureFixture[str], call: Any) -> int:
    call()
    return capsys.readouterr().out.count("run")


def test_a_stencil_takes_as_many_runs_as_it_has_halvings(
    capsys: pytest.CaptureFixture[str],
) -> None:
    f = made(announced)
    taken = {}
    for n in (5_000, 10_000, 20_000):
        u = RNG.uniform(1.0, 2.0, n)
        taken[n] = runs(capsys, lambda u=u: f.jacobian(u, sparsity="auto"))
        known = f.jacobian_sparsity(u)
        assert known.colours == 3
        assert known.pattern.nnz == 3 * (n - 2)
        assert "3 colours (forward)" in repr(known)
        capsys.readouterr()
        assert runs(capsys, lambda u=u, k=known: f.jacobian(u, sparsity=k)) == 3
    assert taken[10_000] < 18
    assert taken[20_000] - taken[10_000] <= 2


def test_what_is_dense_takes_little_more_than_its_columns(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def mixed(u):
        print("run")
        return np.cumsum(np.cumsum(u)[::-1]) * u

    f, u = made(mixed), RNG.uniform(1.0, 2.0, 400)
    taken = runs(capsys, lambda: f.jacobian(u, mode="forward", sparsity="auto"))
    assert taken <= (400 + 100) // 8 + 10
    found = f.jacobian(u, sparsity="auto")
    np.testing.assert_allclose(found.toarray(), f.jacobian(u), rtol=1e-12)


def test_one_dense_row_is_found_by_rows(capsys: pytest.CaptureFixture[str]) -> None:
    def constrained(u):
        print("run")
        v = u * np.roll(u, 1)
        v[7] = u.sum()
        return v

    f, u = made(constrained), RNG.uniform(1.0, 2.0, 1000)
    sparsity = f.jacobian_sparsity(u)
    assert (sparsity.mode, sparsity.colours) == ("reverse", 3)
    assert sparsity.pattern.nnz == 2 * 999 + 1000
    capsys.readouterr()
    assert runs(capsys, lambda: f.jacobian(u, sparsity=sparsity)) == 3
    np.testing.assert_allclose(
        f.jacobian(u, sparsity=sparsity).toarray(), f.jacobian(u), rtol=1e-14
    )


def squared_by_rule(x):
    return x * x


@mutad.rule(squared_by_rule)
def squared_rule(x, result):
    x.cotangent += 2.0 * x.value * result.cotangent


def test_through_rules_without_tangents_rows_are_found() -> None:
    def ruled(u):
        for i in range(u.size - 1):
            u[i] += squared_by_rule(u[i + 1])
        return u

    f = made(ruled)
    sparsity = f.jacobian_sparsity(np.ones(20))
    assert (sparsity.mode, sparsity.modes, sparsity.colours) == ("reverse", ("reverse",), 2)
    found = f.jacobian(np.ones(20), sparsity="auto")
    np.testing.assert_array_equal(found.toarray(), np.eye(20) + 2.0 * np.eye(20, k=1))
    with pytest.raises(mutad.CompileError, match="tangent"):
        f.jacobian(np.ones(20), mode="forward", sparsity="auto")


@mutad.opaque
def checked(x: float) -> float:
    if math.isnan(x):
        raise ValueError("x must be finite")
    return float(x)


def cubed(x):
    return x * x * x


@mutad.rule(cubed)
def cubed_rule(x, result):
    x.cotangent += checked(3.0 * x.value * x.value * result.cotangent)


def test_a_rule_that_refuses_what_is_not_a_number_needs_a_pattern() -> None:
    def ruled(u):
        v = np.zeros_like(u)
        for i in range(u.size - 1):
            v[i] = cubed(u[i + 1])
        return v

    f, wanted = made(ruled), 3.0 * np.eye(5, k=1)
    with pytest.raises(ValueError, match="x must be finite") as caught:
        f.jacobian(np.ones(5), sparsity="auto")
    assert "give sparsity= a pattern" in caught.value.__notes__[-1]
    np.testing.assert_array_equal(f.jacobian(np.ones(5), sparsity=wanted).toarray(), wanted)


# Patterns that are given.


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_a_pattern_without_an_entry_is_refused_whichever_it_is(mode: str) -> None:
    f, u = made(heat), RNG.uniform(1.0, 2.0, 7)
    whole = f.jacobian(u.copy(), 0.1, 1) != 0.0
    for row, column in np.argwhere(whole):
        pattern, given = whole.copy(), u.copy()
        pattern[row, column] = False
        with pytest.raises(ValueError, match=rf"no entry \({row}, {column}\)"):
            f.jacobian(given, 0.1, 1, mode=mode, sparsity=pattern)
        np.testing.assert_array_equal(given, u)


def test_a_pattern_of_other_branches_is_refused() -> None:
    f, u, c = made(upwind), one(), np.ones(12)
    sparsity = f.jacobian_sparsity(u, c)
    np.testing.assert_array_equal(
        f.jacobian(2.0 * u, 3.0 * c, sparsity=sparsity).toarray(), f.jacobian(u, 3.0 * c)
    )
    with pytest.raises(ValueError, match=r"no entry \(1, 2\)"):
        f.jacobian(u, -c, sparsity=sparsity)


def test_a_pattern_with_too_much_costs_colours_only() -> None:
    f, u = made(heat), RNG.uniform(1.0, 2.0, 7)
    found = f.jacobian(u.copy(), 0.1, 1, sparsity=np.ones((7, 7)))
    assert found.nnz == 49
    np.testing.assert_array_equal(found.toarray(), f.jacobian(u, 0.1, 1))


def test_rounding_is_no_missing_entry() -> None:
    def cancelled(u):
        big = np.exp(32.0 * u)
        return (big + np.roll(u, 1)) * u - big * u

    f, u = made(cancelled), RNG.uniform(0.9, 1.0, 6)
    pattern = np.eye(6) + np.roll(np.eye(6), -1, axis=1)
    found = f.jacobian(u, sparsity=pattern)
    np.testing.assert_array_equal(found.toarray(), f.jacobian(u))
    with pytest.raises(ValueError, match="no entry"):
        f.jacobian(u, sparsity=np.eye(6))


# Hessians.


def test_a_sparse_hessian_is_the_dense_one(capsys: pytest.CaptureFixture[str]) -> None:
    def rosenbrock(u, w):
        print("run")
        w *= 2.0
        return ((1.0 - u[:-1]) ** 2 + w * (u[1:] - u[:-1] ** 2) ** 2).sum()

    f, u, w = made(rosenbrock), RNG.uniform(1.0, 2.0, 40), RNG.uniform(1.0, 2.0, 39)
    wanted = f.hessian(u, w.copy())
    capsys.readouterr()
    for given in ("auto", wanted != 0.0):
        weights = w.copy()
        found = f.hessian(u, weights, sparsity=given)
        np.testing.assert_array_equal(weights, 2.0 * w)
        assert isinstance(found, csc_array)
        np.testing.assert_array_equal(found.toarray(), wanted)
    assert capsys.readouterr().out.count("run") < 30
    assert f.hessian(0.0 * u, w.copy(), sparsity=found).nnz == found.nnz
    again = f.hessian(u, w.copy(), sparsity=f.hessian(0.0 * u, w.copy(), sparsity="auto"))
    np.testing.assert_array_equal(again.toarray(), wanted)  # what is stored counts, 0 or not
    (uu, uw), (wu, ww) = f.hessian(u, w.copy(), wrt=("u", "w"), sparsity="auto")
    assert [b.shape for b in (uu, uw, wu, ww)] == [(40, 40), (40, 39), (39, 40), (39, 39)]
    np.testing.assert_array_equal(uu.toarray(), wanted)
    np.testing.assert_allclose(uw.toarray(), wu.toarray().T, rtol=1e-13)
    assert ww.nnz == 0
    with pytest.raises(ValueError, match=r"no entry \(1, 0\)"):
        f.hessian(u, w, sparsity=np.eye(40))


# Effects and refusals.


def raising(u, k):
    u[0] = 7.0
    if k > 0.0:
        raise ValueError("k is positive")
    return u * k


CALLS: dict[str, Any] = {
    "auto": lambda f, *a: f.jacobian(*a, sparsity="auto"),
    "reverse": lambda f, *a: f.jacobian(*a, mode="reverse", sparsity="auto"),
    "given": lambda f, *a: f.jacobian(*a, sparsity=np.eye(3)),
    "found": lambda f, *a: f.jacobian_sparsity(*a),
}


@pytest.mark.parametrize("sparsity", ["auto", np.eye(3)])
def test_effects_of_a_hessian_that_raises(sparsity: Any) -> None:
    def summed(u, k):
        return raising(u, k).sum()

    u = np.ones(3)
    with pytest.raises(ValueError, match="k is positive"):
        made(summed).hessian(u, 1.0, sparsity=sparsity)
    np.testing.assert_array_equal(u, [7.0, 1.0, 1.0])


@pytest.mark.parametrize("call", CALLS)
def test_effects_are_those_of_one_plain_call(call: str) -> None:
    f, u = made(raising), np.ones(3)
    with pytest.raises(ValueError, match="k is positive"):
        CALLS[call](f, u, 1.0)
    np.testing.assert_array_equal(u, [7.0, 1.0, 1.0])

    def drawn(u, rng):
        u *= rng.normal()
        return u

    rng, other, u, v = np.random.default_rng(1), np.random.default_rng(1), np.ones(3), np.ones(3)
    CALLS[call](made(drawn), u, rng)
    np.testing.assert_array_equal(u, drawn(v, other))
    assert rng.bit_generator.state == other.bit_generator.state


COUNT = [0]


@mutad.opaque
def counted() -> int:
    COUNT[0] += 1
    return COUNT[0] % 5


def test_runs_that_differ_are_noticed() -> None:
    def moving(u):
        v = np.zeros_like(u)
        k = counted()
        v[k] = u[k]
        return v

    with pytest.raises(RuntimeError, match=r"two runs of .*moving"):
        made(moving).jacobian(np.ones(5), mode="forward", sparsity="auto")


REFUSED: list[tuple[Any, type[Exception], str]] = [
    (np.eye(4), ValueError, r"shape \(4, 4\), and the matrix \(3, 3\)"),
    ("static", TypeError, "'static'"),
    (3, TypeError, "use 'auto'"),
]


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row[2])
def test_refusals_come_before_any_effect(row: Any) -> None:
    given, error, words = row
    f, u = made(raising), np.ones(3)
    with pytest.raises(error, match=words):
        f.jacobian(u, -1.0, sparsity=given)
    np.testing.assert_array_equal(u, np.ones(3))
    with pytest.raises(ValueError, match="'forward'"):
        f.jacobian_sparsity(u, -1.0, mode="sideways")


def test_methods_and_decorated_functions_have_sparse_jacobians() -> None:
    import functools
    import types

    def scaled(s, x):
        return s * x * x

    m = mutad.compile(types.MethodType(scaled, 3.0), grad=True, opt=1)
    np.testing.assert_array_equal(
        m.jacobian(np.ones(3), sparsity="auto").toarray(), 6.0 * np.eye(3)
    )
    assert m.jacobian_sparsity(np.ones(3), wrt="s").pattern.shape == (3, 1)

    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return 2.0 * function(*args, **kwargs)

        return wrapper

    d = mutad.compile(doubled(scaled), grad=True, opt=1)
    sparsity = d.jacobian_sparsity(2.0, np.ones(3), wrt="x")
    assert sparsity.colours == 1
    found = d.jacobian(2.0, np.ones(3), wrt="x", sparsity=sparsity)
    np.testing.assert_array_equal(found.toarray(), 8.0 * np.eye(3))
    np.testing.assert_array_equal(
        mutad.jacobian(scaled, wrt=1)(1.0, np.ones(3), sparsity="auto").toarray(), 2.0 * np.eye(3)
    )


def test_direct_solvers_take_the_matrix_as_it_is() -> None:
    f, u = made(plate), grid()
    matrix = f.jacobian(u, sparsity="auto")
    assert matrix.indices.dtype == np.int32
    assert matrix.has_sorted_indices
    solution = splu(matrix).solve(np.ones(30))
    np.testing.assert_allclose(matrix @ solution, np.ones(30), rtol=1e-9)


# Colours.


def stencil(shape: tuple[int, ...], reach: list[tuple[int, ...]]) -> Any:
    """The pattern of a stencil with these offsets on a grid with borders."""
    numbers = np.arange(np.prod(shape)).reshape(shape)
    pattern = np.zeros((numbers.size, numbers.size), bool)
    for place in np.ndindex(*shape):
        for offset in reach:
            other = tuple(np.add(place, offset))
            if all(0 <= o < s for o, s in zip(other, shape, strict=True)):
                pattern[numbers[place], numbers[other]] = True
    return csc_array(pattern)


def star(rank: int, reach: int) -> list[tuple[int, ...]]:
    units = np.eye(rank, dtype=int)
    return [tuple(k * unit) for unit in units for k in range(-reach, reach + 1)]


PATTERNS: dict[str, tuple[Any, tuple[int, ...], int]] = {
    "tridiagonal": (stencil((30,), star(1, 1)), (30,), 3),
    "five_points": (stencil((12, 10), star(2, 1)), (12, 10), 5),
    "nine_points": (stencil((9, 9), [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1)]), (9, 9), 9),
    "wide": (stencil((11, 11), star(2, 2)), (11, 11), 10),
    "seven_points": (stencil((5, 5, 5), star(3, 1)), (5, 5, 5), 7),
    "without_grid": (stencil((12, 10), star(2, 1)), (), 6),
    "random": (csc_array(RNG.uniform(size=(40, 60)) < 0.05), (), 10),
    "empty": (csc_array((5, 7), dtype=bool), (7,), 1),
    "dense": (csc_array(np.ones((5, 7), bool)), (7,), 7),
    "no_columns": (csc_array((5, 0), dtype=bool), (0,), 0),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_no_row_has_a_colour_twice(name: str) -> None:
    pattern, shape, most = PATTERNS[name]
    colours = coloured(pattern, shape)
    dense = pattern.toarray()
    for colour in range(int(colours.max(initial=-1)) + 1):
        assert dense[:, colours == colour].sum(axis=1).max() <= 1
    assert colours.max(initial=-1) + 1 <= most


def test_zeros_of_one_call_are_no_zeros_of_the_next() -> None:
    """A factor that is zero hides the entries of the other one, where nothing else tells floats apart."""

    def product(x):
        return (x[:-1] * x[1:] ** 3).sum()

    def quotient(x, y):
        return x[1:] / y[1:] * (x[:-1] / y[:-1])

    f, g, x = made(product), made(quotient), np.arange(1.0, 6.0)
    for at in (np.zeros(5), x + 1.0, np.zeros(5), x[::-1].copy()):
        found = f.hessian(at, sparsity="auto").toarray()
        np.testing.assert_allclose(found, f.hessian(at), rtol=1e-14)
        for wrt in ("x", "y"):
            found = g.jacobian(at, x, wrt=wrt, sparsity="auto").toarray()
            np.testing.assert_allclose(found, g.jacobian(at, x, wrt=wrt), rtol=1e-14)
