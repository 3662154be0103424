"""What `jvp`, `pushforward` and `hvp` take, refuse and return; the derivatives are in `tests/gradients`."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mutad import CompileError, Const, Duplicated, compile, rule


@compile(grad=True, opt=1)
def swing(u, k, steps):
    for _ in range(steps):
        u[1:] += k * u[:-1] * u[1:]
    return (u * u).sum()


@compile(grad=True, opt=1)
def parts(x, n):
    y = x * 2.0
    x[0] = 0.0
    return y, x, n, np.ones(2), (x[1], float(n))


def start() -> np.ndarray:
    return np.array([0.5, 1.5, -0.7])


def test_tangents_are_updated_as_their_arrays_are() -> None:
    u, du = start(), np.array([1.0, 0.0, 2.0])
    value, dot = swing.jvp(u, 0.1, 3, tangents={"u": du, "k": 0.5})
    v, dv = start(), np.array([1.0, 0.0, 2.0])
    assert swing.pushforward(Duplicated(v, dv), Duplicated(0.1, 0.5), Const(3)) == (value, dot)
    assert value == swing(start(), 0.1, 3)
    np.testing.assert_array_equal(u, v)
    np.testing.assert_array_equal(du, dv)
    assert not np.array_equal(du, [1.0, 0.0, 2.0])


def test_the_tangent_has_the_form_of_the_result() -> None:
    x, dx = start(), np.ones(3)
    value, (dy, dx_final, dn, dones, (d1, df)) = parts.jvp(x, 4, tangents={"x": dx})
    assert value[1] is x
    assert dx_final is dx
    np.testing.assert_array_equal(dy, [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(dx, [0.0, 1.0, 1.0])
    assert dn is None
    np.testing.assert_array_equal(dones, [0.0, 0.0])
    assert (d1, df) == (1.0, 0.0)


def test_layouts_of_tangents_are_the_callers() -> None:
    matrix, tangent = np.asfortranarray(np.eye(3)), np.ones((6, 3))[::2]
    twice = compile(lambda m: (m * m).sum(), grad=True, opt=1)
    assert twice.jvp(matrix, tangents={"m": tangent}) == (3.0, 6.0)
    single = np.arange(3, dtype=np.float32)
    np.testing.assert_allclose(swing.hvp(single, 0.0, 1, direction=np.ones(3)), [2.0, 2.0, 2.0])


def test_without_tangents_everything_stands_still() -> None:
    u = start()
    value, dot = swing.jvp(u, 0.1, 2, tangents={})
    assert dot == 0.0
    assert value == swing(start(), 0.1, 2)


def test_shared_arguments_have_tangents_that_share() -> None:
    @compile(grad=True, opt=1)
    def both(x, y):
        x[0] = 2.0 * y[1]
        return x[0] * y[2]

    memory, tangents = np.array([1.0, 2.0, 3.0]), np.array([0.0, 1.0, 0.5])
    dots = {"x": tangents, "y": tangents[::-1]}
    value, dot = both.jvp(memory, memory[::-1], tangents=dots)
    # y[2] is x[0], y[1] is x[1]
    assert value == 16.0
    assert dot == 2 * 4.0 * 2.0
    with pytest.raises(ValueError, match="share memory: all of them are Duplicated"):
        both.jvp(memory, memory[::-1], tangents={"x": tangents})
    apart = {"x": tangents, "y": tangents.copy()}
    with pytest.raises(ValueError, match="do not share memory as the arrays do"):
        both.jvp(memory, memory[::-1], tangents=apart)


WRONG: dict[str, tuple[type[Exception], Any]] = {
    "no parameter is called 'z'": (
        TypeError,
        lambda: swing.jvp(start(), 1.0, 1, tangents={"z": 1.0}),
    ),
    "use an array of its shape": (
        TypeError,
        lambda: swing.jvp(start(), 1.0, 1, tangents={"u": 1.0}),
    ),
    "use a number": (TypeError, lambda: swing.jvp(start(), 1.0, 1, tangents={"k": start()})),
    "the tangent of 'u' is float64": (
        ValueError,
        lambda: swing.jvp(start(), 1.0, 1, tangents={"u": np.ones(4)}),
    ),
    "steps": (TypeError, lambda: swing.jvp(start(), 1.0, 1, tangents={"steps": 1.0})),
    "wrap argument 'k': Duplicated": (
        TypeError,
        lambda: swing.pushforward(Duplicated(start(), start()), 1.0, Const(1)),
    ),
    "shares memory with u: pass a copy": (
        ValueError,
        lambda: (lambda u: swing.jvp(u, 1.0, 1, tangents={"u": u}))(start()),
    ),
    "the direction of 'u' has shape": (
        ValueError,
        lambda: swing.hvp(start(), 1.0, 1, direction=np.ones(2)),
    ),
    "one float": (TypeError, lambda: parts.hvp(start(), 1, direction=start())),
}


@pytest.mark.parametrize("words", WRONG)
def test_wrong_calls_are_refused(words: str) -> None:
    kind, call = WRONG[words]
    with pytest.raises(kind, match=words):
        call()


def test_what_the_primal_raises_it_raises() -> None:
    @compile(grad=True, opt=1)
    def stops(x, n):
        x[0] *= 2.0
        if n > 1:
            raise ValueError("too many")
        return x.sum()

    x = start()
    with pytest.raises(ValueError, match="too many"):
        stops.jvp(x, 2, tangents={"x": np.ones(3)})
    assert x[0] == 1.0
    x = start()
    with pytest.raises(ValueError, match="too many"):
        stops.hvp(x, 2, direction=np.ones(3))
    assert x[0] == 1.0


def test_a_rule_without_tangent_is_refused_by_name_and_line() -> None:
    def cube(x):
        return x * x * x

    @rule(cube, needs="x")
    def adjoint(x, result):
        x.cotangent += 3.0 * x.value * x.value * result.cotangent

    f = compile(lambda x: cube(x) + x, grad=True, opt=1)
    assert f.grad(2.0) == 13.0
    with pytest.raises(
        CompileError, match="`cube` has a rule for its adjoint, and none for"
    ) as refused:
        f.jvp(2.0, tangents={"x": 1.0})
    assert "@mutad.tangent_rule(cube)" in str(refused.value)
    assert "compile(lambda x: cube(x) + x" in str(refused.value)
    assert f.hvp(2.0, direction=1.0) == 12.0  # the adjoint is ordinary code


@pytest.mark.parametrize("kind", [np.float64, np.float32])
def test_arrays_of_rank_0_have_directions(kind: Any) -> None:
    """One of several such directions is an array, too."""

    def power(z, x):
        return (z**3 * x).sum()

    f, z, x = compile(power, grad=True, opt=0), np.array(2.0, kind), np.ones(3, kind)
    for direction in (1.0, np.array(1.0)):
        found = f.hvp(z, x, direction=direction)
        assert (found, found.dtype, found.shape) == (36.0, kind, ())
    for batch in (1, 2):
        ones = np.ones(batch, kind)
        assert np.array_equal(f.hvp(z, x, direction=ones, batch=batch), 36.0 * ones)
        _, dot = f.jvp(z, x, tangents={"z": ones}, batch=batch)
        assert np.array_equal(dot, 36.0 * ones)
