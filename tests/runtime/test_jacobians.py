"""Jacobians and Hessians: against differences, forward against reverse, effects, exceptions, SciPy."""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, gmres

import mutad
from mutad import Const, Duplicated
from mutad.runtime import keys, memory


def made(function: Any) -> Any:
    return mutad.compile(function, grad=True, opt=1)


RNG = np.random.default_rng(3)
WEIGHTS = RNG.uniform(0.5, 1.5, 4)


def sweep(u, k, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            u[i] += k * (u[i - 1] - 2.0 * u[i] + u[i + 1]) * u[i]
    return u


def halved(u, k):
    n = 0
    while u.sum() > k:
        u *= 0.5 + 0.01 * k * u
        n += 1
    return u[1:], n, (u**2).sum() * n


def decay(k, x):
    return np.exp(-k * x), k * k, (k, None)


def cube(k):
    return k**3


def product(u, v):
    v[0] *= u[1]
    return u[:2] * v[0] + WEIGHTS[:2] * v[1:]


def of_shared(u, v, w):
    v[0] = u.sum()
    return w * u


def matrix(a, b):
    a[0] = np.sin(a[1])
    return a @ b


def inner(u, v):
    return (u * v).sum() ** 2


def total(u, k):
    return (u**2).sum() * k, u * k


PROGRAMS: dict[str, tuple[Any, Any, Any]] = {
    "stencil": (sweep, lambda: (RNG.uniform(1, 2, 5), 0.1, 3), ("u", "k")),
    "returns_what_does_not_move": (sweep, lambda: (RNG.uniform(1, 2, 4), 0.1, 2), "k"),
    "while": (halved, lambda: (RNG.uniform(1, 2, 4), 1.3), (1, 0)),
    "scalar_argument": (decay, lambda: (0.7, np.linspace(0, 1, 3)), "k"),
    "scalars": (cube, lambda: (1.7,), 0),
    "two_arrays": (product, lambda: (RNG.uniform(1, 2, 3), RNG.uniform(1, 2, 3)), ("v", "u")),
    "captured": (product, lambda: (RNG.uniform(1, 2, 3), RNG.uniform(1, 2, 3)), "WEIGHTS"),
    "constants_share": (
        of_shared,
        lambda: (RNG.uniform(1, 2, 3), *[RNG.uniform(1, 2, 3)] * 2),
        "u",
    ),
    "matrices": (matrix, lambda: (RNG.uniform(1, 2, (2, 3)), RNG.uniform(1, 2, (3, 2))), "a"),
    "scalar_result": (inner, lambda: (RNG.uniform(1, 2, 3), RNG.uniform(1, 2, 3)), 1),
    "strided": (sweep, lambda: (RNG.uniform(1, 2, 9)[::2], 0.1, 2), 0),
    "zero_size": (total, lambda: (np.ones(0), 2.0), ("u", "k")),
    "float32": (
        product,
        lambda: (RNG.uniform(1, 2, 3).astype("f"), RNG.uniform(1, 2, 3).astype("f")),
        "u",
    ),
}


@pytest.fixture(autouse=True)
def weights() -> Any:
    """`WEIGHTS` as they were."""
    before = WEIGHTS.copy()
    yield
    WEIGHTS[...] = before


def copied(arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    return memory.copies(arguments, keys.overlaps_of(arguments))


def flat(tree: Any) -> list[float]:
    """All floats in a result, in order."""
    if isinstance(tree, tuple):
        return [x for item in tree for x in flat(item)]
    if isinstance(tree, float | np.floating):
        return [float(tree)]
    return [*np.ravel(tree).astype(float)] if isinstance(tree, np.ndarray) else []


def dense(tree: Any, result: Any, sizes: list[int]) -> Any:
    """The nested Jacobian as one matrix."""
    if isinstance(result, tuple):
        return np.vstack([dense(t, r, sizes) for t, r in zip(tree, result, strict=True)])
    if not flat(result) and not isinstance(result, np.ndarray):
        assert tree is None
        return np.zeros((0, sum(sizes)))
    blocks = tree if isinstance(tree, tuple) else (tree,)
    rows = np.size(result)
    parts = [np.reshape(b, (rows, n)) for b, n in zip(blocks, sizes, strict=True)]
    return np.hstack(parts)


def measured(function: Any, arguments: tuple[Any, ...], name: str, size: int) -> Any:
    """The Jacobian by central differences of CPython, in float64."""
    names = function.__code__.co_varnames[: len(arguments)]
    columns = []
    for k in range(size):
        ends = []
        for step in (1e-6, -1e-6):
            moved = [a.astype(float) if isinstance(a, np.ndarray) else a for a in copied(arguments)]
            groups = memory.groups_of(keys.overlaps_of(arguments))
            for group in groups:
                for position in group:
                    moved[position] = moved[group[0]]
            before = WEIGHTS.copy()
            if name == "WEIGHTS":
                WEIGHTS[k] += step
            elif isinstance(moved[names.index(name)], np.ndarray):
                moved[names.index(name)].reshape(-1)[k] += step
            else:
                moved[names.index(name)] += step
            ends.append(np.array(flat(function(*moved))))
            WEIGHTS[...] = before
        columns.append((ends[0] - ends[1]) / 2e-6)
    return (
        np.array(columns).T if columns else np.zeros((len(flat(function(*copied(arguments)))), 0))
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_jacobians_are_differences_in_both_modes_and_as_operators(name: str) -> None:
    function, make, wrt = PROGRAMS[name]
    compiled, start = made(function), make()
    names = function.__code__.co_varnames[: len(start)]
    chosen = [
        names[w] if isinstance(w, int) else w for w in (wrt if isinstance(wrt, tuple) else (wrt,))
    ]
    inputs = [WEIGHTS if n == "WEIGHTS" else start[names.index(n)] for n in chosen]
    sizes = [np.size(a) for a in inputs]
    after = copied(start)
    result = function(*after)
    wanted = np.hstack(
        [measured(function, start, n, s) for n, s in zip(chosen, sizes, strict=True)]
    )
    found = {}
    for mode in ("forward", "reverse", "auto"):
        arguments = copied(start)
        tree = compiled.jacobian(*arguments, wrt=wrt, mode=mode)
        for got, want in zip(arguments, after, strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6 if name == "float32" else 1e-14)
        found[mode] = dense(tree, result, sizes)
    arguments = copied(start)
    operator = compiled.linear_operator(*arguments, wrt=wrt)
    for got, want in zip(arguments, after, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-6 if name == "float32" else 1e-14)
    assert operator.shape == wanted.shape == (len(flat(result)), sum(sizes))
    assert operator.dtype == np.float64
    found["matvec"] = operator @ np.eye(sum(sizes))
    found["rmatvec"] = (operator.H @ np.eye(len(flat(result)))).T
    tolerance = 1e-6 if name == "float32" else 1e-12
    for way, one in found.items():
        np.testing.assert_allclose(one, wanted, rtol=1e-5, atol=1e-6, err_msg=way)
        np.testing.assert_allclose(
            one, found["forward"], rtol=tolerance, atol=tolerance, err_msg=way
        )


def test_jacobians_are_nested_shaped_and_typed_as_result_and_argument() -> None:
    u = np.arange(1.0, 4.0, dtype=np.float32)
    (of_sum, of_product) = made(total).jacobian(u, np.float64(2.0), wrt=("u", "k"))
    assert [b.shape for b in of_sum] == [(3,), ()]
    assert [b.shape for b in of_product] == [(3, 3), (3,)]
    assert made(total).jacobian(u, 2.0)[1].dtype == np.float32
    assert type(made(cube).jacobian(2.0)) is float
    assert type(made(cube).jacobian(np.float32(2.0))) is np.float32
    assert type(made(cube).hessian(2.0)) is float
    assert type(made(cube).hessian(np.float32(2.0))) is np.float32
    of_array = made(matrix).jacobian(np.ones((2, 3)), np.ones((3, 4)), wrt="b")
    assert of_array.shape == (2, 4, 3, 4)


# Hessians.


def relaxed(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * u[1:-1] * (u[:-2] - 2.0 * u[1:-1] + u[2:])
    return (u**3).sum()


def until(u, k):
    while u[0] < k:
        u *= 1.0 + 0.3 * u * k
    return (u * u[::-1]).sum() * k


def squared(a, b):
    a[0] *= b
    return (a.T @ a).sum() * b


HESSIANS: dict[str, tuple[Any, Any, Any]] = {
    "stencil": (relaxed, lambda: (RNG.uniform(1, 2, 5), 0.1, 3), "u"),
    "stencil_by_a_number": (relaxed, lambda: (RNG.uniform(1, 2, 5), 0.1, 3), "k"),
    "while": (until, lambda: (RNG.uniform(0.4, 0.6, 3), 1.5), ("k", "u")),
    "matrix": (squared, lambda: (RNG.uniform(1, 2, (2, 3)), 1.2), ("a", "b")),
    "float32": (inner, lambda: (*RNG.uniform(1, 2, (2, 3)).astype("f"),), 0),
    "two_arrays": (inner, lambda: (*RNG.uniform(1, 2, (2, 3)),), (0, 1)),
    "scalar": (cube, lambda: (1.7,), "k"),
    "zero_size": (inner, lambda: (np.ones(0), np.ones(0)), 0),
}


@pytest.mark.parametrize("name", HESSIANS)
def test_hessians_are_differences_of_gradients(name: str) -> None:
    function, make, wrt = HESSIANS[name]
    compiled, start = made(function), make()
    names = function.__code__.co_varnames[: len(start)]
    every = wrt if isinstance(wrt, tuple) else (wrt,)
    positions = [names.index(w) if isinstance(w, str) else w for w in every]
    sizes = [np.size(start[p]) for p in positions]
    after, arguments = copied(start), copied(start)
    function(*after)
    blocks = compiled.hessian(*arguments, wrt=wrt)
    for got, want in zip(arguments, after, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-14)
    blocks = blocks if isinstance(wrt, tuple) else ((blocks,),)
    for i, row in zip(positions, blocks, strict=True):
        for j, block in zip(positions, row, strict=True):
            assert np.shape(block) == np.shape(start[i]) + np.shape(start[j])
    found = np.block(
        [
            [np.reshape(block, (m, n)) for block, n in zip(row, sizes, strict=True)]
            for row, m in zip(blocks, sizes, strict=True)
        ]
    )
    columns = []
    for p, size in zip(positions, sizes, strict=True):
        for k in range(size):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [a.astype(float) if isinstance(a, np.ndarray) else a for a in copied(start)]
                if isinstance(moved[p], np.ndarray):
                    moved[p].reshape(-1)[k] += step
                else:
                    moved[p] += step
                ends.append(np.array(flat(compiled.grad(*moved, wrt=tuple(positions)))))
            columns.append((ends[0] - ends[1]) / 2e-5)
    wanted = np.array(columns).T if columns else np.zeros((0, 0))
    single = name == "float32"
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-4 if single else 1e-7)
    np.testing.assert_allclose(found, found.T, rtol=1e-5 if single else 1e-11, atol=1e-12)


def test_hessians_of_what_is_read_from_outside() -> None:
    def cubes(k):
        WEIGHTS[0] *= 2.0
        return (WEIGHTS**3).sum() * k

    before = WEIGHTS.copy()
    blocks = made(cubes).hessian(3.0, wrt=("WEIGHTS", "k"))
    moved = before * [2.0, 1.0, 1.0, 1.0]
    np.testing.assert_array_equal(WEIGHTS, moved)
    scale = np.array([2.0, 1.0, 1.0, 1.0])
    np.testing.assert_allclose(blocks[0][0], np.diag(18.0 * moved * scale**2), rtol=1e-14)
    np.testing.assert_allclose(blocks[0][1], 3.0 * moved**2 * scale, rtol=1e-14)
    np.testing.assert_allclose(blocks[1][0], blocks[0][1], rtol=1e-14)


# Effects.

CALLS: dict[str, Any] = {
    "forward": lambda f, *a: f.jacobian(*a, mode="forward"),
    "reverse": lambda f, *a: f.jacobian(*a, mode="reverse"),
    "auto": lambda f, *a: f.jacobian(*a),
    "hessian": lambda f, *a: f.hessian(*a),
    "operator": lambda f, *a: f.linear_operator(*a) @ np.ones(np.size(a[0])),
}


def raising(u, k):
    u[0] = 7.0
    if k > 0.0:
        raise ValueError("k is positive")
    u[1] = 8.0
    return (u**2).sum() * k


@pytest.mark.parametrize("call", CALLS)
def test_a_primal_that_raises_does_so_with_its_own_effects(call: str) -> None:
    u = np.ones(3)
    with pytest.raises(ValueError, match="k is positive"):
        CALLS[call](made(raising), u, 1.0)
    np.testing.assert_array_equal(u, [7.0, 1.0, 1.0])
    CALLS[call](made(raising), u, -1.0)
    np.testing.assert_array_equal(u, [7.0, 8.0, 1.0])


def test_what_raises_in_a_run_for_its_size_has_its_own_effects() -> None:
    def indexed(u, i):
        u[0] = 7.0
        return u * u[i]

    u = np.ones(3)
    with pytest.raises(IndexError):
        made(indexed).jacobian(u, 5)
    np.testing.assert_array_equal(u, [7.0, 1.0, 1.0])


STREAM = np.random.default_rng(0)


@pytest.mark.parametrize("call", CALLS)
def test_random_generators_draw_once(call: str) -> None:
    def drawn(u, rng):
        return (u * u).sum() * rng.normal() + u[0] * STREAM.normal()

    for given in (np.random.default_rng(1), STREAM):  # which is an argument and read from outside
        before = STREAM.bit_generator.state, given.bit_generator.state
        drawn(np.ones(2), given)
        after = STREAM.bit_generator.state, given.bit_generator.state
        STREAM.bit_generator.state, given.bit_generator.state = before
        CALLS[call](made(drawn), np.ones(2), given)
        assert (STREAM.bit_generator.state, given.bit_generator.state) == after


def test_draws_of_one_stream_are_those_of_the_plain_call() -> None:
    def two(x, a, b):
        return x * x * a.normal() + x * x * b.normal()

    f, first = made(two), np.random.default_rng(1)
    wanted = f(1.0, first, first)
    again = np.random.default_rng(1)
    assert f.hessian(1.0, again, again) == pytest.approx(2.0 * wanted, rel=1e-14)
    assert again.normal() == first.normal()


def test_auto_takes_the_mode_of_fewer_runs(capsys: pytest.CaptureFixture[str]) -> None:
    def announced(x, n):
        print("run")
        return x[0] * np.arange(1.0 * n) + x.sum()

    def announced_sum(x):
        print("run")
        return x.sum() ** 2

    def runs(call: Any) -> int:
        call()
        return capsys.readouterr().out.count("run")

    wide, tall = np.ones(12), np.ones(2)  # eight columns are one run
    f, g = made(announced), made(announced_sum)
    assert runs(lambda: f.jacobian(wide, 2, mode="reverse")) == 1
    assert runs(lambda: f.jacobian(wide, 2, mode="forward")) == 3
    assert made(announced).jacobian(wide, 2).shape == (2, 12)
    assert capsys.readouterr().out.count("run") == 2  # the first for the size of the result
    assert runs(lambda: f.jacobian(wide, 2)) == 3  # the entry that knows columns has tried, too
    assert runs(lambda: f.jacobian(wide, 2)) == 2  # the size of the result is known
    assert runs(lambda: f.jacobian(wide, 2, mode="forward")) == 2  # no plain call
    assert runs(lambda: f.jacobian(tall, 5)) == 1
    assert runs(lambda: g.jacobian(wide)) == 1
    assert runs(lambda: g.hessian(wide)) == 3


def squared_by_rule(x):
    return x * x


@mutad.rule(squared_by_rule)
def squared_rule(x, result):
    x.cotangent += 2.0 * x.value * result.cotangent


def test_auto_takes_reverse_mode_through_rules_that_have_no_tangent() -> None:
    def ruled(k, u):
        u[0] = 7.0
        return squared_by_rule(k) * u

    f, u = made(ruled), np.ones(3)
    with pytest.raises(mutad.CompileError, match="tangent"):
        f.jacobian(3.0, u, mode="forward")
    np.testing.assert_array_equal(u, np.ones(3))
    np.testing.assert_array_equal(f.jacobian(3.0, u), [42.0, 6.0, 6.0])


def test_read_only_arguments_stay_what_they_are() -> None:
    u = np.ones(3)
    u.flags.writeable = False
    np.testing.assert_array_equal(made(inner).hessian(u, np.ones(3)), np.full((3, 3), 2.0))
    for call in CALLS.values():
        with pytest.raises(ValueError, match="read-only"):
            call(made(raising), u, -1.0)


def test_copies_overlap_themselves_as_the_arrays_do() -> None:
    windows = np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 3)
    (copy,) = memory.copies((windows,), ())
    assert copy.strides == windows.strides
    np.testing.assert_array_equal(copy, windows)

    def weighed(k, w):
        return (w * k * k).sum(axis=1)

    np.testing.assert_array_equal(made(weighed).jacobian(2.0, windows), [12.0, 24.0, 36.0])


# Refusals: nothing has run.


def nothing(u, v):
    u[0] = 7.0


def integers(u, v):
    u[0] = 7.0
    return 3, None


def paired(u, pair):
    return (u * pair[0]).sum() * pair[1]


def recursive(u, n):
    u[0] = 7.0
    if n == 0:
        return u[0] * u[1]
    return u[1] * recursive(u, n - 1)


def of_tuple(u, pair):
    pair[0][:] *= u
    return pair[0]


def one() -> Any:
    return np.ones(3)


def calls(name: str, **options: Any) -> Any:
    return lambda f, a: getattr(f, name)(*a, **options)


def pulls(f: Any, a: Any) -> Any:
    return f.pullback(Duplicated(a[0], one()), Const(a[1]), cotangent=one())


SHARED = np.ones(3)
Row = tuple[Any, Any, type[Exception], str]
REFUSED: list[Row] = [
    (calls("jacobian", mode="sideways"), (inner, one(), one()), ValueError, "'forward'"),
    (calls("jacobian"), (inner, SHARED, SHARED), TypeError, "u, v share memory: pass"),
    (calls("hessian"), (inner, SHARED, SHARED[::-1]), TypeError, "u, v share memory"),
    (calls("linear_operator", wrt="v"), (inner, SHARED, SHARED), TypeError, "share memory"),
    (calls("jacobian", mode="forward"), (paired, SHARED, (SHARED, 2.0)), ValueError, "a tuple"),
    (calls("jacobian", mode="forward"), (of_tuple, one(), (one(), 1)), mutad.CompileError, "no tangents"),
    (calls("jacobian", mode="reverse"), (of_tuple, one(), (one(), 1)), mutad.CompileError, "no shadow"),
    (calls("vjp"), (of_tuple, one(), (one(), 1)), mutad.CompileError, "no shadow"),
    (pulls, (of_tuple, one(), (one(), 1)), TypeError, "no shadow"),
    (calls("hessian"), (paired, SHARED, (SHARED, 2.0)), ValueError, "inside of a tuple"),
    (calls("jacobian"), (nothing, one(), one()), TypeError, "nothing returns None: return"),
    (calls("jacobian"), (integers, one(), one()), TypeError, "returns a tuple of 2"),
    (calls("linear_operator"), (nothing, one(), one()), TypeError, "returns None"),
    (calls("hessian"), (nothing, one(), one()), TypeError, "returns None"),
    (calls("hessian"), (sweep, one(), 0.1, 2), TypeError, "one float"),
    (calls("hessian", wrt="n"), (recursive, one(), 2), TypeError, "with respect to floats"),
    (calls("jacobian"), (inner, np.broadcast_to(1.0, 3), one()), ValueError, "overlaps itself"),
    (lambda f, a: f.linear_operator(*a) @ np.full(3, 1j), (inner, one(), one()), TypeError, "complex"),
]  # fmt: skip


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: f"{row[1][0].__name__}-{row[3]}")
def test_refusals_come_before_any_effect(row: Any) -> None:
    call, (function, *arguments), error, words = row
    with pytest.raises(error, match=words):
        call(made(function), arguments)
    np.testing.assert_array_equal(arguments[0], np.ones(3))


def test_without_gradient_there_is_none() -> None:
    f = mutad.compile(cube)
    for name in ("hessian", "jacobian", "linear_operator"):
        with pytest.raises(AttributeError, match="compiled without gradient"):
            getattr(f, name)(1.0)


# Operators.


def test_an_operator_keeps_what_it_was_made_of() -> None:
    f, u = made(sweep), RNG.uniform(1, 2, 5)
    wanted = f.jacobian(u.copy(), 0.1, 3)
    operator = f.linear_operator(u, 0.1, 3)
    u[:] = 0.0
    for _ in range(2):
        np.testing.assert_allclose(operator @ np.eye(5), wanted, rtol=1e-14)
        np.testing.assert_allclose(operator.T @ np.eye(5), wanted.T, rtol=1e-12)
    np.testing.assert_array_equal(u, np.zeros(5))
    assert isinstance(operator, LinearOperator)


KIND = "square"


def test_an_operator_refuses_when_code_would_be_another(monkeypatch: pytest.MonkeyPatch) -> None:
    def chosen(x):
        return x * x if KIND == "square" else x

    operators = [made(chosen).linear_operator(3.0) for _ in range(2)]
    assert operators[0] @ np.ones(1) == 6.0 == operators[0].T @ np.ones(1)
    monkeypatch.setitem(globals(), "KIND", "same")
    for product in (operators[0].matvec, operators[1].rmatvec):
        with pytest.raises(RuntimeError, match="has changed: make the operator anew"):
            product(np.ones(1))
    assert operators[0].T @ np.ones(1) == 6.0  # whose adjoint was made before


def test_gauss_newton_products_are_composed() -> None:
    f, u = made(sweep), RNG.uniform(1, 2, 5)
    jacobian = f.jacobian(u.copy(), 0.1, 3)
    operator = f.linear_operator(u, 0.1, 3)
    np.testing.assert_allclose(
        (operator.T @ operator) @ np.ones(5), jacobian.T @ jacobian @ np.ones(5), rtol=1e-12
    )


def test_newton_cg_finds_the_minimum_of_a_model_in_place() -> None:
    def misfit(c, target, steps):
        u = target.copy()
        u[:] = 0.0
        for _ in range(steps):
            u[1:-1] += 0.2 * (u[:-2] - 2.0 * u[1:-1] + u[2:]) + c[1:-1] ** 2
        return ((u - target) ** 2).sum() + 1e-3 * (c**2).sum()

    f = made(misfit)
    target = np.sin(np.linspace(0.0, np.pi, 12))
    found = minimize(
        lambda c: f.value_and_grad(c, target, 4),
        np.full(12, 0.5),
        jac=True,
        hessp=lambda c, v: f.hvp(c, target, 4, direction=v),
        method="Newton-CG",
        options={"xtol": 1e-10},
    )
    assert np.abs(f.grad(found.x, target, 4)).max() < 1e-7
    assert found.nit < 20
    assert np.linalg.eigvalsh(f.hessian(found.x, target, 4)).min() > 0.0


def test_newtons_method_with_gmres_solves_a_system_in_place() -> None:
    def residual(u, f):
        r = u + 0.0
        r[1:-1] -= 0.3 * (u[:-2] - u[1:-1] ** 3 + u[2:])
        return r - f

    g, f, u = made(residual), np.linspace(0.0, 1.0, 10), np.zeros(10)
    for _ in range(8):
        step, failed = gmres(g.linear_operator(u, f), -g(u, f), rtol=1e-12)
        assert not failed
        u += step
    assert np.abs(residual(u, f)).max() < 1e-12


# The other ways to call them.


def test_methods_that_are_bound_have_every_mode() -> None:
    def scaled(s, x):
        return s * x * x

    m = mutad.compile(types.MethodType(scaled, 3.0), grad=True, opt=1)
    assert m.jvp(2.0, tangents={"x": 1.0}) == (12.0, 12.0)
    assert m.pushforward(Duplicated(2.0, 1.0)) == (12.0, 12.0)
    assert m.hvp(2.0, direction=2.0) == 12.0
    assert m.value_grad_hvp(2.0, direction=1.0) == (12.0, 12.0, 6.0)
    assert m.hessian(2.0) == 6.0
    assert m.hessian(2.0, wrt=("s", "x")) == ((0.0, 4.0), (4.0, 6.0))
    assert m.jacobian(2.0) == m.jacobian(2.0, mode="reverse") == 12.0
    assert m.jacobian(2.0, wrt="s") == 4.0
    assert m.linear_operator(2.0) @ np.ones(1) == 12.0


def test_methods_of_objects_have_every_mode() -> None:
    class Spring:
        def __init__(self, k: float) -> None:
            self.k = k

        @mutad.compile(grad=True, opt=1)
        def energy(self, x):
            return self.k * x * x

    spring = Spring(3.0)
    assert (spring.energy.hessian(2.0), spring.energy.jacobian(2.0)) == (6.0, 12.0)
    assert spring.energy.jacobian(2.0, wrt="self.k") == 4.0
    assert spring.energy.jvp(2.0, tangents={"self.k": 1.0}) == (12.0, 4.0)
    assert spring.energy.linear_operator(2.0) @ np.ones(1) == 12.0


def test_decorated_functions_have_every_mode() -> None:
    def doubled(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            return 2.0 * function(*args, **kwargs)

        return wrapper

    @mutad.compile(grad=True, opt=1)
    @doubled
    def f(x, k=1.0):
        return x * x * k

    assert f.jvp(3.0, tangents={"x": 1.0}) == (18.0, 12.0)
    with pytest.raises(TypeError, match="'k', which this call leaves out"):
        f.jvp(3.0, tangents={"k": 1.0})
    assert f.pushforward(Duplicated(3.0, 1.0)) == (18.0, 12.0)
    assert f.hvp(3.0, direction=1.0) == f.value_grad_hvp(3.0, direction=1.0)[2] == 4.0
    assert f.hessian(3.0, k=2.0, wrt=("x", "k")) == ((8.0, 12.0), (12.0, 0.0))
    assert f.jacobian(3.0, mode="reverse") == f.linear_operator(3.0) @ np.ones(1) == 12.0


def test_functions_of_functions() -> None:
    assert mutad.jvp(cube)(2.0, tangents={"k": 3.0}) == (8.0, 36.0)
    assert mutad.hvp(cube)(2.0, direction=2.0) == 24.0
    assert mutad.hessian(cube, wrt="k")(2.0) == 12.0
    assert mutad.jacobian(cube)(2.0, mode="reverse") == 12.0
    assert "jvp of cube>" in repr(mutad.jvp(cube))


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_copies_of_arguments_are_views_where_these_are(mode: str) -> None:
    """`ravel` copies an array with steps: what is stored to that afterwards is not in the copy."""

    def f(a):
        flat = a.ravel()
        a[0] = 0.1
        return 3.0 * flat.sum() + (a * a).sum()

    a = np.arange(1.0, 17.0).reshape(2, 8)[:, ::2]
    found = mutad.compile(f, grad=True).jacobian(a, mode=mode)
    assert np.array_equal(found, [[3.0] * 4, [21.0, 25.0, 29.0, 33.0]])

    def scaled(x, pair):
        return x * f(pair[0])

    found = mutad.compile(scaled, grad=True).jacobian(2.0, (a.copy()[:, ::-1],), mode=mode)
    assert found == f(a.copy()[:, ::-1])
