"""Calls on arrays of a device: each is what it is on the host.

The emulated device's memory cannot be read by the host, so whatever of the runtime touched an element would
end the process.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from device_programs import waves

import mutad
from mutad import Active, BatchDuplicated, Const, DeviceArray, Duplicated

pytestmark = pytest.mark.usefixtures("on_a_device")


def energy(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:]) ** 2
    return (u**2).sum()


def shifted(u, k):
    v = u * u * k
    u[1:] = v[:-1]
    return v


def returned(u, k):
    u *= k
    return u, u * u


f, g, r = (mutad.compile(p, grad=True, opt=1) for p in (energy, shifted, returned))
Put = Callable[[Any], Any]
D, DS = waves(12) / 3, np.cos(np.arange(24.0)).reshape(2, 12)


def strided(put: Put, array: np.ndarray) -> Any:
    return put(np.stack([array, array], axis=1))[:, 1]


def of_pullback(put: Put, u: Any) -> Any:
    shadow = strided(put, 0 * D)
    return f.pullback(Duplicated(u, shadow), Active(0.1), Const(3), cotangent=2.0), shadow


def of_pullback_of_arrays(put: Put, u: Any) -> Any:
    shadow = put(D)
    return g.pullback(Duplicated(u, shadow), Const(0.3), cotangent=strided(put, D)), shadow


def of_shared_memory(put: Put, u: Any) -> Any:
    products = mutad.compile(lambda a, b: np.multiply(a, b, out=a).sum(), grad=True, opt=1)
    return products.value_and_grad(u[1:], u[:-1], wrt=(0, 1))


def of_vjp(put: Put, u: Any) -> Any:
    value, back = g.vjp(u, 0.3, wrt=("u", "k"))
    return value, back(put(D)), back(strided(put, D), u=put(D)), back(None, u=put(D))


def of_a_returned_argument(put: Put, u: Any) -> Any:
    value, back = r.vjp(u, 0.3)
    assert value[0] is u
    return value, back((put(D), None)), back((None, put(D))), back((put(D), put(2 * D)), u=put(D))


def of_an_operator(put: Put, u: Any) -> Any:
    operator = g.linear_operator(u, 0.3)
    return operator @ D, operator.T @ D, operator @ DS.T


def stored(u, a, b):
    a[:] = u[:-1] * u[1:]
    return b * u[1:]


def of_an_operator_of_shared_memory(put: Put, u: Any) -> Any:
    """What the operator makes on the host for `a` and `b` shares memory as these do."""
    both = put(np.arange(12.0))
    operator = mutad.compile(stored, grad=True, opt=1).linear_operator(u, both[:-1], both[1:])
    return operator @ D, operator.T @ D[1:], both


def of_batches(put: Put, u: Any) -> Any:
    us = put(np.stack([D, 2 * D, D - 1]))
    energies, shifts = mutad.batch(f, in_axes={"u": 0}), mutad.batch(g, in_axes={"u": 0})
    return (
        energies(us, 0.1, 2),
        energies.value_and_grad(us, 0.1, 2, wrt=("u", "k")),
        shifts.vjp(us, 0.3)[1](put(np.stack([D, D, D]))),
        us,
    )


def cubes(u):
    return (u**3).sum()


def of_options(put: Put, u: Any) -> Any:
    options: tuple[dict[str, Any], ...] = (
        {"saves": "all"},
        {"saves": "forbid"},
        {"sanitize": "grad"},
        {"parallel": True},
        {"debug": True},
        {"boundscheck": False},
    )
    return tuple(mutad.compile(cubes, grad=True, opt=1, **one).grad(u) for one in options)


CALLS: dict[str, Callable[[Put, Any], Any]] = {
    "options": of_options,
    "single precision": lambda put, u: mutad.compile(cubes, grad=True, opt=1).grad(
        put(D.astype(np.float32))
    ),
    "no dimensions": lambda put, u: f.hvp(u, 0.1, 1, wrt="k", direction=2.0),
    "primal": lambda put, u: f(u[::2], 0.1, 2),
    "pullback": of_pullback,
    "pullback of arrays": of_pullback_of_arrays,
    "shared memory": of_shared_memory,
    "vjp": of_vjp,
    "a returned argument": of_a_returned_argument,
    "jvp": lambda put, u: g.jvp(u, 0.3, tangents={"u": strided(put, D), "k": 1.0}),
    "hvp": lambda put, u: f.hvp(u, 0.1, 3, direction=put(D)),
    "value_grad_hvp": lambda put, u: f.value_grad_hvp(
        u, 0.1, 3, wrt=("u", "k"), direction=(strided(put, D), 1.0)
    ),
    "reverse over reverse": lambda put, u: f.hvp(
        u, 0.1, 3, direction=put(D), mode="reverse-over-reverse"
    ),
    "hessian": lambda put, u: f.hessian(u, 0.1, 2, wrt=("u", "k")),
    "jacobian": lambda put, u: (g.jacobian(u, 0.3), g.jacobian(u, 0.3, mode="reverse", wrt="k")),
    "sparse jacobian": lambda put, u: g.jacobian(u, 0.3, sparsity="auto").toarray(),
    "linear_operator": of_an_operator,
    "linear_operator of shared memory": of_an_operator_of_shared_memory,
    "batch": of_batches,
    "nothing": lambda put, u: (f.grad(u[:0], 0.1, 0), f.hvp(u[:0], 0.1, 0, direction=put(D[:0]))),
    "explain": lambda put, u: f.explain(u, 0.1, 3, wrt="u").saved_bytes,
}


@pytest.mark.parametrize("name", CALLS)
def test_calls_are_those_of_the_host(name: str) -> None:
    outcomes: list[Any] = []
    for put in (np.copy, mutad.device_array):
        u = put(waves(12))
        outcomes.append((CALLS[name](put, u), u))
    same(outcomes[1], outcomes[0])


def same(found: Any, wanted: Any) -> None:
    if isinstance(wanted, tuple):
        for one, other in zip(found, wanted, strict=True):
            same(one, other)
    elif isinstance(wanted, np.ndarray):
        on_host = found.copy_to_host() if isinstance(found, DeviceArray) else found
        assert on_host.dtype == wanted.dtype
        np.testing.assert_allclose(on_host, wanted, rtol=1e-12, atol=1e-12)
    elif isinstance(wanted, float):
        assert found == pytest.approx(wanted, rel=1e-12)
    elif hasattr(wanted, "__dict__"):
        same(tuple(vars(found).values()), tuple(vars(wanted).values()))
    else:
        assert found == wanted


def test_a_gradient_copies_nothing_to_the_host() -> None:
    driver = mutad.runtime.cuda.driver()
    u, d, shadow = (mutad.device_array(a) for a in (waves(12), D, 0 * D))
    before = driver.downloads
    f.value_and_grad(u, 0.1, 3)
    g.vjp(u, 0.3)[1](d)
    g.pullback(Duplicated(u, shadow), Const(0.3), cotangent=d[::1])
    f.hvp(u, 0.1, 3, direction=d)
    assert driver.downloads == before


# Objects.


@dataclass
class State:
    pos: Any
    vel: Any
    t: float


class Pair(NamedTuple):
    a: Any
    b: Any


def moved(s, dt, n):
    for _ in range(n):
        s.vel -= dt * s.pos
        s.pos += dt * s.vel
        s.t += dt
    return (s.pos**2).sum() * s.t


def scaled(p, x):
    p["w"] *= 2.0
    return (p["w"] * x).sum()


def paired(p, x):
    p.b[:] += p.a
    return (p.a * p.b * x).sum()


def renewed(s, dt):
    return State(s.pos + dt * s.vel, s.vel, s.t + dt)


m, w, p, n = (mutad.compile(one, grad=True, opt=1) for one in (moved, scaled, paired, renewed))
OF_OBJECTS: dict[str, Callable[[State, Any], Any]] = {
    "primal": lambda s, x: m(s, 0.1, 2),
    "grad": lambda s, x: m.value_and_grad(s, 0.1, 2),
    "of a number": lambda s, x: m.grad(s, 0.1, 2, wrt="dt"),
    "vjp": lambda s, x: m.vjp(s, 0.1, 2)[1](2.0),
    "jvp": lambda s, x: m.jvp(s, 0.1, 2, tangents={"dt": 1.0}),
    "dict": lambda s, x: w.value_and_grad({"w": s.pos}, x, wrt="x"),
    "named tuple": lambda s, x: p.value_and_grad(Pair(s.pos, s.vel), x, wrt="x"),
    "returned": lambda s, x: n(s, 0.5),
}


@pytest.mark.parametrize("name", OF_OBJECTS)
def test_objects_hold_arrays_of_a_device(name: str) -> None:
    outcomes: list[Any] = []
    for put in (np.copy, mutad.device_array):
        s = State(put(waves(12)), put(D), 0.5)
        fields = s.pos, s.vel
        outcomes.append((OF_OBJECTS[name](s, put(D)), s))
        assert (s.pos, s.vel) == fields or put is np.copy
    same(outcomes[1], outcomes[0])


# What is refused.


class Elsewhere:
    """An array of another library, on the second device."""

    def __init__(self, array: np.ndarray) -> None:
        driver = mutad.runtime.cuda.driver(1)
        self.memory = DeviceArray(driver.upload(array), driver)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.memory.__dlpack_device__()

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        return self.memory.__dlpack__(stream=stream)


def reads(w: Any) -> Any:
    return mutad.compile(lambda u: (u * w).sum(), opt=1)


REFUSED: dict[str, tuple[Callable[[Any, np.ndarray], Any], str]] = {
    "mixed": (lambda u, x: g.vjp(u, x), "u is on the device, k is on the host"),
    "shadow": (
        lambda u, x: f.pullback(Duplicated(u, x), Const(0.1), Const(1), cotangent=1.0),
        "u is on the device, the shadow of u is on the host",
    ),
    "in objects": (
        lambda u, x: m(State(u, x, 0.0), 0.1, 2),
        r"s.pos is on the device, s.vel is on the host: pass mutad.device_array\(s.vel\)",
    ),
    "cotangent": (
        lambda u, x: g.vjp(mutad.device_array(x), 0.3)[1](x),
        "the cotangent is on the host",
    ),
    "batch of cotangents": (lambda u, x: g.vjp(u, 0.3, batch=2), "one derivative at a time"),
    "batch of tangents": (
        lambda u, x: f.pushforward(BatchDuplicated(u, u), Const(0.1), Const(1)),
        "one derivative at a time",
    ),
    "check": (lambda u, x: mutad.check_gradient(f, u, 0.1, 1), "pass arrays of the host"),
    "budget": (
        lambda u, x: mutad.compile(energy, grad=True, memory="1MiB").grad(u, 0.1, 1),
        "memory= is for the CPU",
    ),
    "NumPy": (lambda u, x: np.sin(u), "copy_to_host"),
    "pickle": (lambda u, x: pickle.dumps(u), "neither copied nor pickled"),
    "several devices": (
        lambda u, x: g.pullback(Duplicated(u, Elsewhere(x)), Const(0.3), cotangent=u),
        "u is on device 0, the shadow of u is on device 1: copy",
    ),
    "cotangent on another device": (
        lambda u, x: g.vjp(mutad.device_array(x), 0.3)[1](Elsewhere(x)),
        "the arguments are on device 0, the cotangent is on device 1",
    ),
    "from outside": (lambda u, x: reads(u)(u), "w is an array of a device, which .* from outside"),
    "host's from outside": (lambda u, x: reads(x)(u), "w is an array of the host"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    call, why = REFUSED[name]
    u = mutad.device_array(waves(12))
    with pytest.raises(TypeError, match=why):
        call(u, D)
    np.testing.assert_array_equal(u.copy_to_host(), waves(12))
