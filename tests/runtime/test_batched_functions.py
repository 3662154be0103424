"""`mutad.batch`: against a loop in Python over the same function, bit for bit."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import mutad
from mutad import Active, Const, Duplicated, batch, compile


@compile(grad=True, opt=1)
def heat(u, k, steps=3):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2.0 * u[1:-1] + u[2:])
    return (u * u).sum()


@compile(grad=True, opt=1)
def parts(x, w, n):
    y = w @ x
    x[0] = y[0]
    return y, (x.sum(), n, None), x, x > 0.0


@compile(grad=True, opt=1)
def scaled(x, *, by):
    return x * by


@compile(grad=True, opt=1)
def root(x, limit):
    if x > limit:
        raise ValueError(f"{x} is too large")
    return x**0.5


@compile(grad=True, opt=1)
def kept(x, limit):
    return x[x > limit]


@compile(grad=True, opt=1)
def counted(u, total):
    total += u
    u[0] = total[0]
    return total.sum()


heats = batch(heat, in_axes=(0, None, None))


def arrays(*shape: int, dtype: Any = np.float64) -> np.ndarray:
    return np.random.default_rng(len(shape)).uniform(0.5, 1.5, shape).astype(dtype)


def stacked(results: list[Any]) -> Any:
    """What a loop over items returns, stacked."""
    if isinstance(results[0], tuple):
        return tuple(stacked(list(column)) for column in zip(*results, strict=True))
    return None if results[0] is None else np.stack(results)


def assert_same(got: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for g, e in zip(got, expected, strict=True):
            assert_same(g, e)
    elif expected is None:
        assert got is None
    else:
        assert got.dtype == expected.dtype
        np.testing.assert_array_equal(got, expected)


ROWS: dict[str, tuple[Any, Any, tuple[Any, ...], dict[str, Any]]] = {
    "scalars are stacked": (heat, (0, None, None), (arrays(4, 6), 0.1), {}),
    "keywords": (heat, {"u": 0}, (arrays(4, 6),), {"steps": 2, "k": 0.1}),
    "two arguments are mapped": (heat, {"u": 0, "k": 0}, (arrays(3, 5), arrays(3)), {}),
    "the last axis": (heat, {"u": -1}, (arrays(6, 4), 0.1), {}),
    "an axis in the middle": (parts, {"x": 1}, (arrays(3, 4), arrays(2, 3), 7), {}),
    "Fortran order": (parts, {"x": 1}, (np.asfortranarray(arrays(3, 4)), arrays(2, 3), 7), {}),
    "float32": (heat, {"u": 0}, (arrays(4, 6, dtype=np.float32), np.float32(0.1)), {}),
    "tuples of arrays": (parts, {"x": 0, "w": 0}, (arrays(4, 3), arrays(4, 2, 3), 7), {}),
    "keyword only": (scaled, {"x": 0}, (arrays(4),), {"by": 2.0}),
    "matrices": (scaled, {"by": 0}, (arrays(2, 3),), {"by": arrays(4)}),
    "one item": (heat, {"u": 0}, (arrays(1, 6), 0.1), {}),
    "shared arrays are shared": (counted, {"u": 0}, (arrays(4, 3), np.zeros(3)), {}),
    "no items": (heat, {"u": 0}, (arrays(0, 6), 0.1), {}),
}


def copied(values: dict[str, Any]) -> dict[str, Any]:
    return {n: v.copy("K") if isinstance(v, np.ndarray) else v for n, v in values.items()}


@pytest.mark.parametrize("row", ROWS)
def test_it_is_the_loop(row: str) -> None:
    function, in_axes, args, named = ROWS[row]
    f = batch(function, in_axes=in_axes)
    given = dict(zip(f.parameters, args, strict=False)) | named
    mine, theirs = copied(given), copied(given)
    axes = {n: a for n, a in zip(f.parameters, f.axes, strict=True) if a is not None}
    (count,) = {given[n].shape[a] for n, a in axes.items()}

    def item(i: int) -> dict[str, Any]:
        slices = {n: np.moveaxis(theirs[n], a, 0)[i] for n, a in axes.items()}
        return theirs | slices

    results = [function(**item(i)) for i in range(count)]
    got = f(*(mine[n] for n in f.parameters[: len(args)]), **{n: mine[n] for n in named})
    assert_same(got, stacked(results) if results else np.empty(0))
    for name, value in mine.items():
        np.testing.assert_array_equal(value, theirs[name])


def test_gradients_of_items_and_their_sum_for_what_is_shared() -> None:
    u = arrays(4, 6)
    values, (du, dk) = heats.value_and_grad(u.copy(), 0.1, wrt=("u", "k"))
    alone = [heat.value_and_grad(one.copy(), 0.1, wrt=("u", "k")) for one in u]
    np.testing.assert_array_equal(values, [value for value, _ in alone])
    np.testing.assert_array_equal(du, [g for _, (g, _) in alone])
    np.testing.assert_allclose(dk, sum(g for _, (_, g) in alone), rtol=1e-14)
    np.testing.assert_array_equal(heats.grad(u.copy(), 0.1), du)
    assert type(heats.grad(u.copy(), 0.1, wrt="k")) is float


def test_its_plan_is_that_of_the_loop() -> None:
    u = arrays(4, 6)
    one = heat.explain(u[0].copy(), 0.1, wrt="k").saved_bytes
    assert heats.explain(u, 0.1, wrt="k").saved_bytes == 4 * one
    assert heats.explain(u, 0.1, wrt="u").saved_bytes == 0
    assert "u_shadow" in heats.inspect("adjoint", u, 0.1, wrt="u")
    assert "u_shadow" not in heats.inspect("optimize", u, 0.1)


def test_the_other_modes() -> None:
    u, bar = arrays(4, 6), np.arange(1.0, 5.0)
    out, back = heats.vjp(u.copy(), 0.1, wrt=("u", "k"))
    du, dk = back(bar)
    shadow = np.zeros_like(u)
    result, (rate,) = heats.pullback(Duplicated(u.copy(), shadow), Active(0.1), cotangent=bar)
    np.testing.assert_array_equal(result, out)
    np.testing.assert_allclose(shadow, du, rtol=1e-14)
    np.testing.assert_allclose(rate, dk, rtol=1e-14)
    along = arrays(4, 6)
    value, dots = heats.jvp(u.copy(), 0.1, tangents={"u": along.copy()})
    np.testing.assert_allclose(bar @ dots, (du * along).sum(), rtol=1e-13)
    moved = along.copy()
    again = heats.pushforward(Duplicated(u.copy(), moved), Const(0.1))
    np.testing.assert_array_equal(again[1], dots)
    two = heats.jvp(u.copy(), 0.1, tangents={"u": np.stack((along, along))}, batch=2)[1]
    np.testing.assert_allclose(two, [dots, dots], rtol=1e-14)
    values, gradient, product = heats.value_grad_hvp(u.copy(), 0.1, direction=along)
    np.testing.assert_array_equal(values, value)
    for k in range(4):
        np.testing.assert_allclose(
            product[k], heat.hvp(u[k].copy(), 0.1, direction=along[k].copy()), rtol=1e-13
        )
    np.testing.assert_array_equal(heats.grad(u.copy(), 0.1), gradient)
    block = heats.jacobian(u.copy(), 0.1, wrt="k")
    np.testing.assert_allclose(block, [heat.grad(one.copy(), 0.1, wrt="k") for one in u])


def test_batches_of_batches() -> None:
    table = batch(batch(scaled, in_axes={"x": 0}), in_axes={"by": 0})
    x, by = arrays(3), np.array([1.0, 2.0])
    np.testing.assert_array_equal(table(x, by=by), by[:, None] * x)
    np.testing.assert_allclose(table.vjp(x, by=by, wrt="by")[1](np.ones((2, 3))), x.sum())


def test_exceptions_are_those_of_the_loop() -> None:
    roots = batch(root, in_axes=(0, None))
    x = np.array([1.0, 4.0, 9.0])
    for call in (roots, roots.grad):
        with pytest.raises(ValueError, match=r"9\.0 is too large"):
            call(x, 5.0)
    u = arrays(3, 4)
    u[1, 0] = np.inf

    @compile(opt=1)
    def stops(v):
        v[1] = 0.0
        if not v[0] < 10.0:
            raise OverflowError("no number")
        v[2] = 0.0
        return v.sum()

    with pytest.raises(OverflowError, match="no number"):
        batch(stops)(u)
    np.testing.assert_array_equal(u[:, 1] == 0.0, [True, True, False])
    np.testing.assert_array_equal(u[:, 2] == 0.0, [True, False, False])
    with pytest.raises(ValueError, match="the results of two items differ in shape"):
        batch(kept, in_axes=(0, None))(np.array([[1.0, 2.0], [1.0, 0.0]]), 0.5)


def test_it_is_pickled_with_its_function() -> None:
    again = pickle.loads(pickle.dumps(heats))
    assert again.function is heat
    assert again.axes == (0, None, None)
    gradient = pickle.loads(pickle.dumps(mutad.grad(heats, wrt="k")))
    assert gradient(arrays(2, 5), 0.1) == heats.grad(arrays(2, 5), 0.1, wrt="k")


def test_the_loop_is_on_disk(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path))
    doubled = compile(plainly_doubled, opt=1)
    batch(doubled)(arrays(3))
    before = sorted(tmp_path.iterdir())
    assert len([one for one in before if "plainly_doubled" in one.name]) == 2
    batch(compile(plainly_doubled, opt=1))(arrays(3))
    assert sorted(tmp_path.iterdir()) == before


def plainly_doubled(x):
    return 2.0 * x


def test_hessians_are_those_of_the_sum() -> None:
    u, along = arrays(2, 4), arrays(3, 2, 4)
    full = mutad.hessian(heats)(u.copy(), 0.1)
    mixed = heats.hessian(u.copy(), 0.1, wrt=("u", "k"))
    for k in range(2):
        alone = heat.hessian(u[k].copy(), 0.1, wrt=("u", "k"))
        np.testing.assert_allclose(full[k, :, k], alone[0][0], rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(mixed[0][1][k], alone[0][1], rtol=1e-12)
    np.testing.assert_array_equal(full[0, :, 1], 0.0)
    sparse = heats.hessian(u.copy(), 0.1, sparsity="auto")
    np.testing.assert_allclose(sparse.toarray().reshape(full.shape), full, rtol=1e-12, atol=1e-14)
    changed = u.copy()
    products = heats.hvp(changed, 0.1, direction=along, batch=3)
    np.testing.assert_allclose(products, np.einsum("abcd,kcd->kab", full, along), rtol=1e-12)
    np.testing.assert_array_equal(changed, [heated(one) for one in u])


def heated(u: np.ndarray) -> np.ndarray:
    u = u.copy()
    heat(u, 0.1)
    return u


def test_stacked_results_have_an_operator_a_pattern_and_several_cotangents() -> None:
    x = arrays(3)
    doubles = batch(plainly_doubled)
    squares = batch(compile(lambda x: x * x, grad=True, opt=1))
    np.testing.assert_array_equal(squares.linear_operator(x) @ np.ones(3), 2.0 * x)
    np.testing.assert_array_equal(squares.jacobian_sparsity(x).pattern.toarray(), np.eye(3))
    _, back = squares.vjp(x, batch=2)
    np.testing.assert_array_equal(back(np.ones((2, 3))), [2.0 * x, 2.0 * x])
    assert "batch of plainly_doubled" in repr(mutad.grad(doubles))


def test_functions_that_are_not_compiled() -> None:
    doubles = batch(plainly_doubled)
    np.testing.assert_array_equal(doubles(np.arange(3.0)), [0.0, 2.0, 4.0])
    np.testing.assert_array_equal(mutad.grad(doubles)(np.arange(3.0)), [2.0, 2.0, 2.0])


def weighted(a, x, k=2.0):
    return a * k * (x**2).sum()


def test_partials_share_what_they_give() -> None:
    x = arrays(2, 3)
    mapped = batch(functools.partial(weighted, 3.0, k=1.0))
    np.testing.assert_allclose(mapped(x), 3.0 * (x**2).sum(1))
    np.testing.assert_allclose(mapped.grad(x), 6.0 * x)
    np.testing.assert_allclose(mapped.hvp(x, direction=x), 6.0 * x)
    np.testing.assert_allclose(mapped.grad(x, wrt="a"), (x**2).sum())
    with pytest.raises(ValueError, match="in_axes has 2 entries, and there are 1"):
        batch(functools.partial(weighted, 3.0, k=1.0), in_axes=(0, None))


def test_decorated_functions_are_called_with_all_arguments() -> None:
    @functools.wraps(weighted)
    def twice(*args, **kwargs):
        return 2.0 * weighted(*args, **kwargs)

    x = arrays(2, 3)
    mapped = batch(mutad.compile(twice, grad=True), in_axes=(None, 0, None))
    np.testing.assert_allclose(mapped(3.0, x, 1.0), 6.0 * (x**2).sum(1))
    np.testing.assert_allclose(mapped.grad(3.0, x, 1.0, wrt="x"), 12.0 * x)


class Pair(NamedTuple):
    a: Any
    b: Any


def paired(x):
    return Pair(x, 2.0 * x)


class Holder:
    """Objects are shared by the items: what one assigns to their fields the next ones see."""

    def __init__(self) -> None:
        self.k, self.w, self.calls = 2.0, np.arange(1.0, 4.0), 0

    @compile(grad=True, opt=1)
    def method(self, x):
        return self.k * (self.w * x * x).sum()

    @compile(grad=True, opt=1)
    def several(self, x):
        self.calls += 1
        self.k = 0.5 * self.k
        x *= self.k
        return x * self.w, (self.k, None), self.calls

    def returned(self, x):
        return self


def test_a_method_maps_its_arguments_and_shares_its_object() -> None:
    held, x = Holder(), arrays(2, 3)
    mapped, alone = batch(held.method), Holder().method
    assert np.array_equal(mapped(x), [alone(row) for row in x])
    assert np.array_equal(mapped.grad(x), [alone.grad(row) for row in x])
    shared = mapped.grad(x, wrt=("self.k", "self.w"))
    each = [alone.grad(row, wrt=("self.k", "self.w")) for row in x]
    np.testing.assert_allclose(shared[0], each[0][0] + each[1][0])
    np.testing.assert_allclose(shared[1], each[0][1] + each[1][1])
    product = [alone.hvp(row, direction=row.copy()) for row in x]
    assert np.array_equal(mapped.hvp(x, direction=x.copy()), product)
    assert np.array_equal(mapped.vjp(x)[1](np.ones(2)), mapped.grad(x))
    shadow = np.zeros((2, 3))
    mapped.pullback(Duplicated(x, shadow), cotangent=np.ones(2))
    assert np.array_equal(shadow, mapped.grad(x))
    held.k, alone.__self__.k = 3, 3  # another kind
    assert np.array_equal(mapped(x), [alone(row) for row in x])
    assert np.array_equal(batch(mapped)(np.stack((x, x)))[1], mapped(x))


def test_items_see_what_those_before_assigned_to_fields() -> None:
    held, reference, x = Holder(), Holder(), arrays(3, 3)
    y = x.copy()
    moved, (k, nothing), calls = batch(held.several)(x)
    expected = [reference.several(row) for row in y]
    assert np.array_equal(moved, [one[0] for one in expected])
    assert np.array_equal(x, y)
    assert nothing is None
    assert (list(k), list(calls)) == ([1.0, 0.5, 0.25], [1, 2, 3])
    assert (held.k, held.calls) == (reference.k, reference.calls)


def test_lists_and_dicts_are_shared() -> None:
    mapped = batch(lambda x, o, d: x * o[0] + d["b"], in_axes=(0, None, None))
    x = arrays(3)
    assert np.array_equal(mapped(x, [2.0, 1.0], {"b": 3.0}), x * 2.0 + 3.0)
    assert mapped.grad(x, [2.0, 1.0], {"b": 3.0}, wrt=2) == {"b": 3.0}


WRONG: dict[str, tuple[type[Exception], Callable[[], Any]]] = {
    "no parameter is called 'z': there are u, k, steps": (
        TypeError,
        lambda: batch(heat, in_axes={"z": 0}),
    ),
    "in_axes has 2 entries, and there are 3 parameters": (
        ValueError,
        lambda: batch(heat, in_axes=(0, None)),
    ),
    "no argument is mapped": (ValueError, lambda: batch(heat, in_axes=None)),
    "in_axes holds 1.0": (TypeError, lambda: batch(heat, in_axes={"u": 1.0})),
    "argument 'k' is float, and is mapped over axis 0": (
        TypeError,
        lambda: batch(heat)(arrays(2, 5), 0.1, 3),
    ),
    "argument 'u' has 2 dimensions, and no axis 2": (
        ValueError,
        lambda: batch(heat, in_axes={"u": 2})(arrays(2, 5), 0.1),
    ),
    "the mapped axes differ in length: 3 of 'u', 2 of 'k'": (
        ValueError,
        lambda: batch(heat, in_axes={"u": 0, "k": 0})(arrays(3, 5), arrays(2)),
    ),
    "there are no items, and it returns arrays": (
        ValueError,
        lambda: batch(parts, in_axes={"x": 0})(arrays(0, 3), arrays(2, 3), 1),
    ),
    "grad needs a function that returns one float; parts returns a tuple": (
        TypeError,
        lambda: batch(parts, in_axes={"x": 0}).grad(arrays(2, 3), arrays(2, 3), 1),
    ),
    "it returns objects or lists": (
        TypeError,
        lambda: batch(lambda x: [x, x])(arrays(2)),
    ),
    "batch of paired: it returns objects": (TypeError, lambda: batch(paired)(arrays(2))),
    "batch of Holder.returned: it returns objects": (
        TypeError,
        lambda: batch(Holder().returned)(arrays(2)),
    ),
    "argument 'o' is list, and is mapped over axis 0": (
        TypeError,
        lambda: batch(lambda x, o: x)(arrays(2), [1.0]),
    ),
    "missing 1 required positional argument": (TypeError, lambda: heats(arrays(2, 5))),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_calls_are_refused(words: str) -> None:
    kind, call = WRONG[words]
    with pytest.raises(kind, match=words):
        call()


def test_jacobians_of_batches_are_sparse() -> None:
    """Items do not touch: a column of each goes along with one tangent."""

    def swept(x: np.ndarray) -> np.ndarray:
        x[1:] += x[:-1] ** 2
        return x

    batched, x = mutad.batch(mutad.compile(swept, grad=True)), np.arange(12.0).reshape(3, 4)
    dense = batched.jacobian(x.copy()).reshape(12, 12)
    np.testing.assert_array_equal(batched.jacobian(x, sparsity="auto").toarray(), dense)
