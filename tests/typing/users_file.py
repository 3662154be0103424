"""A user's file, with right and wrong uses: type checkers report the lines that say `# wrong`, no others."""

from functools import partial
from typing import Any, assert_type

import numpy as np
import numpy.typing as npt

import mutad
from mutad import compile

Array = npt.NDArray[np.float64]


@compile
def energy(u: Array, k: float, steps: int = 10) -> float:
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
    return float((u**2).sum())


@compile(grad=True, saves="minimal", opt=2)
def loss(u: Array, k: float) -> float:
    return float(k * (u**2).sum())


@compile(grad=True)
def halves(u: Array) -> tuple[Array, Array]:
    return u[::2], u[1::2]


def quartered(u: Array, k: float) -> float:
    return 0.25 * k * float(u.sum())


u = np.ones(9)

# A call is checked as the function's is, and has its result.
assert_type(energy(u, 0.1), float)
assert_type(energy(u, k=0.1, steps=3), float)
assert_type(loss(u, 2.0), float)
assert_type(halves(u), tuple[Array, Array])
energy(u)  # wrong
energy(u, 0.1, step=3)  # wrong
energy(u, "0.1")  # wrong
loss(u, 2.0, 3)  # wrong
loss(u, 2.0).size  # wrong

# Derivatives are there with grad=True.
value, gradient = loss.value_and_grad(u, 2.0, wrt="u")
assert_type(value, float)
loss.grad(u, 2.0, wrt=("u", "k"))
value, moved = loss.jvp(u, 2.0, tangents={"k": 1.0})
result, back = halves.vjp(u)
assert_type(result, tuple[Array, Array])
loss.hvp(u, 2.0, direction=u)
print(loss.explain(u, 2.0), loss.inspect("plan"))
mutad.assert_saved_bytes(loss, u, 2.0, at_most=0)
energy.grad(u, 0.1)  # wrong
energy.explain(u, 0.1)  # wrong
loss.gradient(u, 2.0)  # wrong
loss.jvp(u, 2.0)  # wrong
mutad.assert_saved_bytes(energy, u, 0.1, at_most=0)  # wrong

# So it is without a decorator.
half = compile(loss.__wrapped__, grad=True)
half.grad(u, 2.0)
plain = compile(energy.__wrapped__, boundscheck=False)
plain.grad(u)  # wrong

# Options have names and values.
compile(energy.__wrapped__, memory="1GiB", parallel=True, sanitize="grad", target="cpu")
compile(energy.__wrapped__, savez="all")  # wrong
compile(energy.__wrapped__, saves="everything")  # wrong
compile(grad=True, opt=4)  # wrong
compile(energy.__wrapped__, grad=1)  # wrong
compile(3)  # wrong


class Model:
    """Methods are bound, as Python's are."""

    rate = 0.1

    @compile(grad=True)
    def decay(self, u: Array, times: int) -> float:
        for _ in range(times):
            u *= 1.0 - self.rate
        return float(u.sum())

    @compile(grad=True)
    @classmethod
    def made(cls, u: Array) -> float:
        return float(u.sum())

    @classmethod
    @compile(grad=True)
    def made_so(cls, u: Array) -> float:
        return float(u.sum())

    def plain(self, u: Array, times: int) -> float:
        return times * float(u.sum())


model = Model()
assert_type(model.decay(u, 3), float)
model.decay.grad(u, 3)
model.decay(u)  # wrong
model.decay(u, "3")  # wrong

# So are class methods, with the decorators in either order.
assert_type(Model.made(u), float)
assert_type(model.made(u), float)
assert_type(Model.made_so(u), float)
Model.made.grad(u)
model.made_so.grad(u)
Model.made("u")  # wrong
model.made_so("u")  # wrong

# What is bound, or given, is no argument any more.
bound = compile(model.plain, grad=True)
assert_type(bound(u, 3), float)
bound.grad(u, 3)
bound(u)  # wrong
given = compile(partial(loss.__wrapped__, u), grad=True)
given.grad(0.1)
quarter = compile(partial(quartered, u), grad=True)
assert_type(quarter(2.0), float)
quarter.grad(2.0)

# Options are a dict of their own type.
options: mutad.Options = {"saves": "all", "opt": 1}
compile(quartered, grad=True, **options).grad(u, 0.1)
misspelt: mutad.Options = {"savez": "all"}  # wrong
if compile(quartered, grad=bool(u.size)).has_gradient:
    mutad.grad(quartered)(u, 2.0)
mutad.grad(quartered, argnums=0)  # wrong


# Foreign functions keep their signatures, and rules are functions as they were.
@mutad.opaque(returns=float)
def norm(x: Array) -> float:
    return float(np.linalg.norm(x))


@mutad.rule(norm, reads="x")
def norm_rule(x: Any, y: Any) -> None:
    x.shadow[...] += y.cotangent * x.value / y.value


assert_type(norm(u), float)
norm("u")  # wrong
