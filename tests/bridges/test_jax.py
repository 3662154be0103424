"""`mutad.jax`: JAX checks first and second derivatives, under `jit` and `vmap` as well."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import mutad
import mutad.jax
from mutad import compile

jax.config.update("jax_enable_x64", True)
X = jnp.array([0.5, -1.0, 2.0, 0.3])
Y = jnp.array([1.5, 0.2, -0.7, 1.1])


@mutad.jax.wrap
@compile(grad=True, opt=1)
def energy(x, k=2.0):
    return k * (x**3).sum()


def waves(x, y, k):
    return np.sin(x) * y * k, (x * x * y).sum()


def diffuse(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2.0 * u[1:-1] + u[2:]) * u[1:-1]
    return (u**2).sum()


several = mutad.jax.wrap(
    compile(waves, grad=True, opt=1),
    result=lambda x, y, k: (like(x), jax.ShapeDtypeStruct((), x.dtype)),
)
in_place = mutad.jax.wrap(compile(diffuse, grad=True, opt=1))
with_finals = mutad.jax.wrap(compile(diffuse, grad=True, opt=1), finals="u")
returned = mutad.jax.wrap(compile(lambda x: np.exp(x), grad=True, opt=1), result=lambda x: like(x))


def like(x: Any) -> Any:
    return jax.ShapeDtypeStruct(x.shape, x.dtype)


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a number of a vector": (energy, (X,)),
    "of a number, too": (energy, (X, 0.7)),
    "several results": (several, (X, Y, 1.3)),
    "stores to its argument": (lambda u, k: in_place(u, k, 3), (X, 0.1)),
    "final values": (lambda u, k: with_finals(u, k, 3), (X, 0.1)),
    "an array": (returned, (X,)),
    "in a program": (lambda x: energy(jnp.sin(x) * Y) * returned(x)[1], (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_check_grads(name: str) -> None:
    function, inputs = CASES[name]
    check_grads(function, inputs, order=2, modes=["rev"])
    check_grads(jax.jit(function), inputs, order=1, modes=["rev"])


def test_values_and_arguments() -> None:
    want = np.array(X)
    value = diffuse(want, 0.1, 3)
    before = np.array(X)
    got, final = with_finals(X, 0.1, 3)
    assert got == pytest.approx(value)
    np.testing.assert_allclose(final, want)
    np.testing.assert_array_equal(X, before)  # JAX's arrays never change
    assert jax.jit(in_place, static_argnums=2)(X, 0.1, 3) == pytest.approx(value)
    assert jax.jit(in_place)(X, 0.1, 3) == pytest.approx(value)  # an int that is traced


def test_jit_vmap_and_hessian() -> None:
    np.testing.assert_allclose(jax.jit(jax.grad(energy))(X), 6.0 * X**2)
    many = jnp.stack([X, Y])
    np.testing.assert_allclose(jax.vmap(energy)(many), 2.0 * (many**3).sum(axis=1))
    np.testing.assert_allclose(jax.vmap(jax.grad(energy))(many), 6.0 * many**2)
    np.testing.assert_allclose(jax.jacrev(jax.grad(energy))(X), jnp.diag(12.0 * X), atol=1e-12)


def test_single_precision() -> None:
    x = X.astype(jnp.float32)
    gradient = jax.grad(energy)(x)
    assert gradient.dtype == jnp.float32
    np.testing.assert_allclose(gradient, 6.0 * x**2, rtol=1e-6)


def test_arrays_that_are_only_read_are_read_where_they_lie(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    original = mutad.jax.Bridge.filled

    def filled(self: Any, values: Any) -> Any:
        seen.extend(v.ctypes.data for v in values if np.ndim(v))
        return original(self, values)

    monkeypatch.setattr(mutad.jax.Bridge, "filled", filled)
    x = jnp.arange(1000.0)
    jax.block_until_ready(energy(x))
    assert x.unsafe_buffer_pointer() in seen
    seen.clear()
    jax.block_until_ready(in_place(x, 0.1, 1))
    assert x.unsafe_buffer_pointer() not in seen


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match=r"returns an array.*result=jax.ShapeDtypeStruct"):
        mutad.jax.wrap(compile(lambda x: 2.0 * x, grad=True, opt=1))(X)
    with pytest.raises(TypeError, match="stores to no array 'k'"):
        mutad.jax.wrap(compile(diffuse, grad=True, opt=1), finals="k")(X, 0.1, 1)
    with pytest.raises(TypeError, match=r"no NumPy array.*mutad.jax.wrap"):
        compile(diffuse)(X, 0.1, 1)


@mutad.jax.wrap
@compile(grad=True, opt=1)
def rooted(x):
    if x[0] < 0.0:
        raise ValueError("a negative start")
    return np.sqrt(x).sum()


@pytest.mark.parametrize(
    "call",
    [rooted, jax.grad(rooted), jax.jacrev(jax.grad(rooted)), lambda x: jax.vmap(rooted)(x[None])],
)
def test_what_the_function_raises_comes_with_its_own_lines_alone(call: Callable[..., Any]) -> None:
    with pytest.raises(ValueError, match="a negative start") as caught:
        call(-X)
    places = traceback.extract_tb(caught.value.__traceback__)
    ours = str(Path(mutad.__file__).parent)
    assert not [place for place in places if place.filename.startswith(ours)]
    assert "raise ValueError" in str(places[-1].line)
    assert np.isfinite(call(abs(X))).all()  # what was raised before is not raised again


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_under_jit_jax_s_own_error_names_the_line() -> None:
    with pytest.raises(RuntimeError, match="a negative start") as caught:
        jax.block_until_ready(jax.jit(jax.grad(rooted))(-X))
    lines = Path(__file__).read_text().splitlines()
    line = 1 + lines.index('        raise ValueError("a negative start")')
    assert f'test_jax.py", line {line}, in rooted\n' in str(caught.value)
