"""`assert_saved_bytes`, and what MUTAD_VERIFY=1 and `check_gradient` notice of a plan that is wrong."""

import inspect

import numpy as np
import pytest

from mutad import GradientError, assert_saved_bytes, check_gradient, compile
from mutad.compiler.analysis.kills import Kills
from mutad.compiler.diagnostics import line_of
from mutad.runtime.measure import measure_gradient


def squares(x, scale):
    for i in range(x.size):
        x[i] = scale * x[i] ** 2
    return x.sum()


def until_large(x):
    y = 1.0
    while y < 100.0:
        y = y * y + x[0]
    return y


def made(function, **options):
    return compile(function, grad=True, cache=False, **options)


@pytest.fixture
def blind_to_kills(monkeypatch: pytest.MonkeyPatch) -> None:
    """An analysis that takes every value for one that survives."""
    monkeypatch.setattr(Kills, "killer", lambda *_: None)
    monkeypatch.setattr(Kills, "killer_of", lambda *_: None)


@pytest.fixture
def verifying(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTAD_VERIFY", "1")


RATES = np.array([1.0, 2.0])


def weighed(x):
    return (x * RATES).sum()


@pytest.mark.usefixtures("verifying")
def test_gradients_by_what_is_read_from_outside_are_verified() -> None:
    np.testing.assert_array_equal(made(weighed, opt=1).grad(np.ones(2), wrt="RATES"), np.ones(2))


def test_saved_bytes_within_the_bound_pass() -> None:
    assert_saved_bytes(made(squares), np.ones(10), 2.0, at_most=80)


def test_saved_bytes_above_the_bound_show_the_receipt() -> None:
    with pytest.raises(AssertionError, match="saves 80 bytes, more than 79\nline") as raised:
        assert_saved_bytes(made(squares), np.ones(10), 2.0, at_most=79, wrt="x")
    assert "x[i] = scale * x[i] ** 2" in str(raised.value)


def test_saved_bytes_known_only_at_run_time_are_an_error() -> None:
    with pytest.raises(AssertionError, match=r"known only at run time.*trips@"):
        assert_saved_bytes(made(until_large), np.ones(1), at_most=10**9)


@pytest.mark.usefixtures("blind_to_kills")
def test_a_wrong_plan_is_told_from_a_wrong_rule() -> None:
    with pytest.raises(
        GradientError, match=r"gradient for 'x'.*saves=.all. gives another gradient"
    ):
        check_gradient(made(squares), np.array([0.5, 2.0, 3.0]), 2.0)


def three_kills(x, y):
    a = x * y
    s = (a * a).sum()
    y *= 2.0
    for i in range(x.size):
        s += x[i] ** 2
        x[i] = 3.0 * np.sin(x[i])
    return s + (x * x).sum() + y.sum()


@pytest.mark.parametrize(
    ("kill", "found"),
    [
        ("y *=", r"the adjoint of `x \* y` in line {a} does not get back y"),
        ("x[i] =", r"the adjoint of `x \* y` in line {a} does not get back x"),
    ],
)
def test_a_wrong_plan_is_traced_to_the_statement_whose_adjoint_it_breaks(
    monkeypatch: pytest.MonkeyPatch, kill: str, found: str
) -> None:
    """Blind to one of the kills, the plan loses what one statement needs."""
    lines = inspect.getsourcelines(three_kills)
    line_of_text = {text.strip(): lines[1] + k for k, text in enumerate(lines[0])}
    blind = next(number for text, number in line_of_text.items() if text.startswith(kill))
    found = found.format(a=line_of_text["a = x * y"])
    seeing = Kills.killer

    def killer(kills, access):
        store = seeing(kills, access)
        at = None if store is None else line_of(store)
        return None if at is not None and at[1] == blind else store

    monkeypatch.setattr(Kills, "killer", killer)
    rng = np.random.default_rng(0)
    with pytest.raises(GradientError, match=found):
        check_gradient(made(three_kills), rng.random(5), rng.random(5))


@pytest.mark.usefixtures("blind_to_kills", "verifying")
def test_verify_stops_the_first_gradient_call_before_it_does_anything() -> None:
    f, x = made(squares), np.array([0.5, 2.0, 3.0])
    f(x.copy(), 2.0)
    with pytest.raises(GradientError, match="the plan of what to save is wrong"):
        f.grad(x, 2.0)
    np.testing.assert_array_equal(x, [0.5, 2.0, 3.0])


@pytest.mark.usefixtures("verifying")
def test_verify_lets_a_right_gradient_pass_and_looks_once() -> None:
    calls = []

    def counted(x):
        return (x * x).sum()

    f = made(counted)
    original = f.__wrapped__.__code__
    np.testing.assert_allclose(f.grad(np.arange(3.0)), [0.0, 2.0, 4.0])
    assert f.__wrapped__.__code__ is original
    f._dispatcher.verify = lambda *a: calls.append(a)
    np.testing.assert_allclose(f._dispatcher.grad(np.arange(4.0)), [0.0, 2.0, 4.0, 6.0])
    assert calls == []
    f._dispatcher.grad(np.ones((2, 2)))
    assert len(calls) == 1


@pytest.mark.usefixtures("blind_to_kills")
def test_verify_is_off_by_default() -> None:
    f = made(squares)
    assert f.grad(np.array([0.5, 2.0]), 2.0).shape == (2,)


@pytest.mark.usefixtures("verifying")
def test_verify_checks_shared_arguments_and_vjp() -> None:
    def overlapping(x, y):
        x *= y
        return (x * x).sum()

    x = np.linspace(0.5, 1.5, 6)
    gradients = made(overlapping).grad(x[:4], x[2:], wrt=("x", "y"))
    assert np.shares_memory(*gradients)
    _, back = made(overlapping).vjp(np.ones(3), np.ones(3), wrt="y")
    np.testing.assert_allclose(back(1.0), [2.0, 2.0, 2.0])


def test_measuring_needs_a_float_result() -> None:
    with pytest.raises(TypeError, match="one float"):
        measure_gradient(made(lambda x: x * x), np.ones(3))


@pytest.mark.filterwarnings("ignore:invalid value")
def test_a_point_at_which_the_function_is_not_finite_is_told() -> None:
    def roots(x):
        return np.sqrt(x).sum()

    with pytest.raises(GradientError, match="the function is not finite around this point"):
        check_gradient(made(roots, opt=1), np.array([-1.0, 4.0]))
