"""Programs that ask for derivatives of other functions: `g.grad`, `g.value_and_grad`, `g.jvp`, `g.hvp`.

The oracle of values is the same Python, which calls the compiled `g.grad`; that of gradients is differences
of it.
"""

import math
from typing import Any

import numpy as np
import pytest
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad
from mutad import check_gradient

programs = GradientPrograms()
on = programs.on
differentiable = mutad.compile(grad=True, opt=1)

WEIGHTS = np.array([1.0, 2.0, 3.0, 4.0, 5.0])


@differentiable
def potential(q):
    return (np.sin(q) ** 2).sum() + 0.1 * (q**4).sum()


@differentiable
def misfit(w, theta):
    s = 0.0
    for i in range(w.size):
        s += (w[i] - theta[i]) ** 2 * np.exp(theta[i]) + 0.1 * w[i] ** 4
    return s


@differentiable
def relax(u, k, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.size - 1):
            u[i] = k * (u[i - 1] + u[i + 1]) - 0.1 * u[i] * u[i]
    return (u * u).sum()


@differentiable
def network(W, b, c, t):
    return c @ np.tanh(W * t + b)


@differentiable
def wave(a, b=1.2):
    return math.sin(a * b) * a


@on("f64[5] 1.5", "f32[3] 0.5", "f64[5]S 1.5", "f64[0] 1.0")
def gradient_penalty(x, k):
    slope = potential.grad(x)
    return k * potential(x) + (slope**2).sum()


@on("f64[4] f64[4]#1 0.1 3")
def leapfrog(q, p, dt, steps):
    for _ in range(steps):
        p -= 0.5 * dt * potential.grad(q)
        q += dt * p
        p -= 0.5 * dt * potential.grad(q)
    return (q * p).sum()


@on("f64[3]:unit", saved=lambda theta: theta.nbytes * 4)
def inner_gradient_descent(theta):
    w = np.zeros(theta.size)
    for _ in range(4):
        w -= 0.1 * misfit.grad(w, theta)
    return ((w - 1.0) ** 2).sum()


@on("f64[3]:unit f64[3]:unit#1 3")
def descent_in_place(w, theta, steps):
    for _ in range(steps):
        w -= 0.05 * misfit.grad(w, theta, wrt="w")


@on("f64[3]:unit f64[3]:unit#1")
def descent_until_it_is_flat(w, theta):
    rounds = 0
    while rounds < 50:
        slope = misfit.grad(w, theta)
        if np.sqrt((slope**2).sum()) < 1e-1:
            break
        w -= 0.2 * slope
        rounds += 1
    return (w**2).sum()


@on("f64[3] f64[3]#1 f64[3]#2 f64[2]:unit")
def derivatives_of_a_network_in_its_loss(W, b, c, times):
    loss = (network(W, b, c, 0.0) - 1.0) ** 2
    for t in times:
        value, slope = network.value_and_grad(W, b, c, t, wrt="t")
        bend = network.hvp(W, b, c, t, wrt=-1, direction=1.0)
        loss += (bend + slope + value) ** 2
    return loss


@differentiable
def bowl(t, tilt):
    return t * t + math.exp(0.5 * t) * tilt


@on("1.3")
def newton_on_the_slope(a):
    t = a
    for _ in range(4):
        t -= (bowl.grad(t, 0.7) - a) / bowl.hvp(t, 0.7, direction=1.0)
    return t


@on("f64[5]:unit 0.4 2")
def of_loops_in_place(u, k, sweeps):
    value, (du, dk) = relax.value_and_grad(u, k, sweeps, wrt=("u", "k"))
    return (du * u).sum() * dk + value


@on("f64[5]:unit 0.4 2 f64[5]#1")
def tangents_of_loops_in_place(u, k, sweeps, v):
    value, value_dot = relax.jvp(u, k, sweeps, tangents={"u": v, "k": 0.5})
    return value * value_dot + (u * v).sum()


@on("f64[5]:unit 0.4 2 f64[5]#1")
def products_of_loops_in_place(u, k, sweeps, v):
    value, (du, _), (hu, hk) = relax.value_grad_hvp(
        u, k, sweeps, wrt=("u", "k"), direction=(v, 0.3)
    )
    return (hu * du).sum() + value * hk + (u * v).sum()


@differentiable
def filled(x, buffer):
    buffer[:] = x * x * x
    return (buffer * buffer).sum()


@on("f64[4]:unit")
def a_buffer_that_is_filled_again(x):
    buffer, s = np.zeros_like(x), 0.0
    for _ in range(2):
        s += (filled.grad(x, buffer) * buffer).sum()
        x = x + 0.1 * buffer
    return s


@differentiable
def weighted(x):
    return (x * x * WEIGHTS).sum()


@on("f64[5]")
def reads_from_outside(x):
    return (weighted.grad(x) ** 3).sum()


@differentiable
def slope_of_wave(a, b):
    return wave.grad(a, b) ** 2 + b


@differentiable
def slope_of_slope(a, b):
    return slope_of_wave.grad(a, b, wrt=1) * a


@on("0.7 1.2")
def three_deep(a, b):
    return slope_of_slope.grad(a, b) * slope_of_wave(a, b)


@differentiable
def field(q, k):
    r = np.zeros_like(q)
    r[1:] = q[:-1] * q[1:] * k
    return r, k * k


@on("f64[4] 1.5 f64[4]#1")
def tangents_of_arrays(q, k, v):
    (r, _), (r_dot, k_dot) = field.jvp(q, k, tangents={"q": v, "k": 2.0})
    return (r * r_dot).sum() + k_dot * k


@differentiable
def with_a_branch(x):
    s = 0.0
    for v in x:
        s += v**3 if v > 0.0 else v * v
        if s > 3.0:
            break
    return s


@on("f64[4]")
def of_branches(x):
    return (with_a_branch.grad(x) ** 2).sum()


@differentiable
def squares(A, x):
    return ((A @ x) ** 2).sum()


@on("f64[3,2] f64[2]", "f64[3,2]F f64[2]S")
def of_products(A, x):
    dA, dx = squares.value_and_grad(A, x, wrt=(0, 1))[1]
    return (dA**2).sum() + (dx**3).sum()


@differentiable
def gathered(p, index):
    return (p[index] ** 3).sum()


@on("f64[5] i64[3]:pos")
def of_gathers(p, index):
    return (gathered.grad(p, index % p.size) ** 2).sum()


@on("f64[2,3]")
def of_rows_and_columns(m):
    s = (potential.grad(m.T) * m.T).sum() + (potential.grad(m[:, 1]) ** 2).sum()
    for row in m:
        row += 0.1 * potential.grad(row.copy())
        s += row[0]
    return s


@differentiable
def thrice(x, p, q):
    return (x * p * q).sum()


@on("f64[3] f64[3]#1")
def constants_that_are_one_array(x, p):
    return (thrice.grad(x, p, p) ** 2 * p).sum()


def descend(x, n):
    return x if n == 0 else descend(x - 0.1 * wave.grad(x), n - 1)


@on("0.9 3")
def in_a_recursive_function(x, n):
    return descend(x, n) ** 2


def through_a_function(q, step):
    return q - step * potential.grad(q)


@on("f64[3] 0.1")
def asked_for_by_a_function_that_is_called(q, step):
    for _ in range(2):
        q = through_a_function(q, step)
    return (q * q).sum()


@differentiable
def of_several(layers, t):
    s = 0.0
    for layer in layers:
        s += np.sin(layer * t).sum()
    return s


@on("f64[3] f64[2]#1 0.6")
def arguments_in_tuples_and_lists(a, b, t):
    return of_several.grad([a, b * t], t, wrt="t") ** 2 + of_several.grad((a, b, 2.0), t, wrt="t")


TestGradients = gradient_tests(programs, tangents=True)


@differentiable
def talks(x):
    print("at", x)
    return x**3


def test_a_gradient_prints_as_often_as_the_plain_call(capfd: pytest.CaptureFixture[str]) -> None:
    """The adjoint runs the inner function once more, which nobody is to see."""

    @differentiable
    def listens(x):
        return talks.grad(x) * x

    assert listens.grad(1.5) == pytest.approx(9 * 1.5**2)
    assert capfd.readouterr().out == "at 1.5\n"


@differentiable
def stopped(x, y):
    return x * x * mutad.stop_gradient(x * y)


def test_stopped_values_stay_stopped() -> None:
    @differentiable
    def slope(x, y):
        return stopped.grad(x, y)

    assert slope.grad(1.5, 2.0, wrt=("x", "y")) == (2 * 1.5 * 2.0, 0.0)


@differentiable
def raises(x, most):
    for i in range(x.size):
        x[i] = x[i] ** 2
        if x[i] > most:
            raise ValueError("too large")
    return x.sum()


def test_what_the_plain_call_raises_is_raised() -> None:
    @differentiable
    def asks(x, most):
        return (raises.grad(x, most) * x).sum()

    x = np.array([1.0, 2.0, 3.0])
    with pytest.raises(ValueError, match="too large"):
        asks.grad(x, 3.0)
    assert x.tolist() == [1.0, 4.0, 3.0]
    check_gradient(asks, np.array([1.0, 2.0, 3.0]), 20.0)


def test_arrays_that_meet_at_run_time() -> None:
    @differentiable
    def both(a, b):
        return (a * b).sum()

    @differentiable
    def windows(q, ends):
        return (both.grad(q[ends[0] : ends[1]], q[ends[2] : ends[3]]) ** 3).sum()

    q = np.arange(1.0, 7.0)
    check_gradient(windows, q, np.array([0, 2, 2, 4]))
    with pytest.raises(ValueError, match=r"differentiated with respect to `a`, which shares"):
        windows(q, np.array([0, 2, 1, 3]))


def test_what_the_direction_must_be() -> None:
    @differentiable
    def product(x, v):
        return potential.hvp(x, direction=v).sum()

    with pytest.raises(ValueError, match=r"direction of 'q' has shape \(2,\), not \(3,\)"):
        product(np.ones(3), np.ones(2))


def test_what_is_saved_is_what_the_function_is_given() -> None:
    """Not what it computes: that is had again."""
    theta: Any = np.array([0.3, 0.2, 0.1])
    (save,) = mutad.compile(descent_in_place, grad=True).explain(np.ones(3), theta, 5).saves
    assert (save.name, save.bytes, save.needed_by[1]) == (
        "w",
        5 * 3 * 8,
        'misfit.grad(w, theta, wrt="w")',
    )


def test_the_receipt_has_what_inner_functions_save() -> None:
    """What `g` is given, what its gradient saves, what the adjoint of that saves with its tangents."""
    asks = mutad.compile(of_loops_in_place, grad=True)
    receipt = asks.explain(np.ones(7), 0.4, 3)
    assert [save.bytes for save in receipt.saves] == [7 * 8, 3 * 5 * 8, 2 * 3 * 5 * 8]
    assert "asks for the gradient of `relax`" in receipt.saves[1].why
    assert receipt.saves[2].why.endswith("in the adjoint of that")
    assert receipt.temporary_bytes is not None
    assert mutad.compile(three_deep, grad=True).explain(0.7, 1.2).saved_bytes == 0


class Spring:
    def __init__(self, k: float, rest: np.ndarray) -> None:
        self.k, self.rest = k, rest

    @differentiable
    def energy(self, x):
        self.rest *= 1.5
        return 0.5 * self.k * ((x - self.rest) ** 3).sum()

    @differentiable
    def force(self, x):
        return (self.energy.grad(x) ** 2).sum() + self.energy.hvp(x, direction=x).sum()


def test_methods_and_objects_whose_arrays_change() -> None:
    def spring() -> Spring:
        return Spring(3.0, np.array([0.1, 0.2]))

    x = np.array([0.5, -0.4])
    check_gradient(spring().force, x)
    check_gradient(spring().force, x, wrt="self")


@differentiable
def layered(layers, x):
    for W, b in layers:
        x = np.tanh(W @ x + b)
    return x.sum()


@differentiable
def scaled(settings, x):
    return (settings["a"] * x * x).sum() * settings["k"]


def test_lists_of_layers_and_dicts() -> None:
    @differentiable
    def sensitivity(layers, x):
        return (layered.grad(layers, x, wrt="x") ** 2).sum()

    rng = np.random.default_rng(0)
    layers = [
        (rng.normal(size=(3, 2)), rng.normal(size=3)),
        (rng.normal(size=(1, 3)), rng.normal(size=1)),
    ]
    check_gradient(sensitivity, layers, np.array([0.2, 0.4]))

    @differentiable
    def of_settings(settings, x):
        return scaled.grad(settings, x, wrt="x")

    check_gradient(of_settings, {"a": np.array([1.0, 2.0]), "k": 2.0}, 0.5)


def test_several_items_and_several_directions() -> None:
    penalty = mutad.compile(gradient_penalty, grad=True, opt=1)
    rows = np.arange(6.0).reshape(2, 3) / 6
    slopes = mutad.batch(penalty, in_axes=(0, None)).grad(rows.copy(), 2.0)
    np.testing.assert_allclose(slopes, [penalty.grad(row, 2.0) for row in rows])
    columns = [penalty.hvp(rows[1], 2.0, direction=v) for v in np.eye(3)]
    np.testing.assert_allclose(penalty.hessian(rows[1], 2.0), np.array(columns).T)
