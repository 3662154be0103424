"""`mutad.torch`: autograd checks first and second derivatives, memory is shared, stores are in place."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

import mutad
import mutad.torch
from mutad import compile

D = torch.float64


def vector(n: int = 4, seed: int = 0) -> Any:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(n, dtype=D, generator=generator, requires_grad=True)


def number(value: float) -> Any:
    return torch.tensor(value, dtype=D, requires_grad=True)


@mutad.torch.wrap
@compile(grad=True, opt=1)
def energy(x, k=2.0):
    return k * (x**3).sum()


@mutad.torch.wrap
@compile(grad=True, opt=1)
def waves(x, y, k):
    return np.sin(x) * y * k, (x * x * y).sum(), x.size


def diffuse(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2.0 * u[1:-1] + u[2:]) * u[1:-1]
    return (u**2).sum()


in_place = mutad.torch.wrap(compile(diffuse, grad=True, opt=1), second=True)
once = mutad.torch.wrap(compile(diffuse, grad=True, opt=1))


class Spring:
    def __init__(self, k: float) -> None:
        self.k = k

    @compile(grad=True, opt=1)
    def energy(self, x):
        return self.k * (x**3).sum()


CASES: dict[str, tuple[Any, tuple[Any, ...]]] = {
    "a number of a vector": (energy, (vector(),)),
    "of a number, too": (energy, (vector(), number(0.7))),
    "several results": (lambda *a: waves(*a)[:2], (vector(), vector(seed=1), number(1.3))),
    "one argument moves": (lambda x: waves(x, vector(seed=1).detach(), 2.0)[:2], (vector(),)),
    "stores to a clone": (lambda u, k: in_place(u.clone(), k, 3), (vector(5), number(0.1))),
    "the final values": (
        lambda u, k: [v := u.clone(), in_place(v, k, 2), v][1:],
        (vector(5), number(0.1)),
    ),
    "a method": (mutad.torch.wrap(Spring(2.0).energy), (vector(),)),
    "a partial": (
        lambda u, k: mutad.torch.wrap(functools.partial(diffuse, steps=2), second=True)(
            u.clone(), k
        ),
        (vector(5), number(0.1)),
    ),
    "a matrix, transposed": (lambda x: energy(x.reshape(2, 2).T), (vector(),)),
}


@pytest.mark.parametrize("name", CASES)
def test_gradcheck(name: str) -> None:
    function, inputs = CASES[name]
    assert torch.autograd.gradcheck(function, inputs)
    assert torch.autograd.gradgradcheck(function, inputs)


def test_single_precision() -> None:
    x = vector().detach().float().requires_grad_()
    energy(x).backward()
    assert x.grad.dtype == torch.float32
    torch.testing.assert_close(x.grad, 6.0 * x.detach() ** 2)


def test_memory_is_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of arguments, results and gradients the tensor and the array lie at one address."""
    pairs: list[tuple[Any, Any]] = []

    def remembered(convert: Any) -> Any:
        def convert_and_remember(value: Any, *more: Any) -> Any:
            pairs.append((value, made := convert(value, *more)))
            return made

        return convert_and_remember

    monkeypatch.setattr(mutad.torch, "numpy_of", remembered(mutad.torch.numpy_of))
    monkeypatch.setattr(mutad.torch, "tensor_of", remembered(mutad.torch.tensor_of))
    x = vector()
    result = mutad.torch.wrap(compile(lambda x: 2.0 * x, grad=True, opt=1))(x)
    (gradient,) = torch.autograd.grad(result, x, torch.ones(4, dtype=D))
    addresses = [
        tuple(v.ctypes.data if isinstance(v, np.ndarray) else v.data_ptr() for v in pair)
        for pair in pairs
    ]
    assert all(a == b for a, b in addresses)
    known = {a for a, _ in addresses}
    assert {x.data_ptr(), result.data_ptr(), gradient.data_ptr()} <= known
    returned = mutad.torch.wrap(compile(lambda x: x, grad=True, opt=1))(x)
    assert returned.data_ptr() != x.data_ptr()  # autograd knows of one tensor over one memory


def test_stores_are_in_place() -> None:
    u = vector(5).detach()
    want = u.numpy().copy()
    value = diffuse(want, 0.1, 3)
    version = u._version
    assert once(u, 0.1, 3).item() == pytest.approx(value)
    np.testing.assert_allclose(u.numpy(), want)
    assert u._version > version  # autograd has been told
    x = vector(5)
    v = x.clone()
    once(v, 0.1, 3)
    assert v.grad_fn is not None
    v.sum().backward()
    base = x.grad.clone()
    x.grad = None
    v = x.clone()
    (once(v, 0.1, 3) * 0.0 + v.sum()).backward()
    torch.testing.assert_close(x.grad, base)


def test_a_tensor_that_is_kept_for_another_gradient_must_not_be_stored_to() -> None:
    x = vector(5)
    v = x * 1.0
    y = (v * v).sum()
    once(v, 0.1, 1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_arguments_that_change_after_the_call_do_no_harm() -> None:
    x = vector()
    v = x.detach().clone().requires_grad_()
    y = energy(v)
    with torch.no_grad():
        v *= 100.0
    y.backward()
    torch.testing.assert_close(v.grad, 6.0 * x.detach() ** 2)


def test_backward_twice_and_within_a_model() -> None:
    x = vector()
    y = energy(torch.sin(x))
    first = torch.autograd.grad(y, x, retain_graph=True)[0]
    torch.testing.assert_close(torch.autograd.grad(y, x)[0], first)
    layer = torch.nn.Linear(4, 4, dtype=D)
    energy(layer(x)).backward()
    assert layer.weight.grad is not None


def test_what_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"'u' is a leaf that requires a gradient.*clone"):
        once(vector(5), 0.1, 2)
    x = vector(5)
    (gradient,) = torch.autograd.grad(once(x.clone(), 0.1, 2), x)
    with pytest.raises(
        RuntimeError, match=r"stores to 'u' need what was there before.*second=True"
    ):
        torch.autograd.grad(once(x.clone(), 0.1, 2), x, create_graph=True)
    with pytest.raises(TypeError, match=r"'x' is on meta: pass x.cpu\(\)"):
        energy(torch.ones(3, dtype=D, device="meta"))
    with pytest.raises(TypeError, match="arrays, numbers, None, or a tuple of them, not dict"):
        mutad.torch.wrap(compile(lambda x: {"a": x}, grad=True, opt=1))(vector())
    with pytest.raises(TypeError, match=r"torch.Tensor is no NumPy array.*mutad.torch.wrap"):
        compile(diffuse)(vector(), 0.1, 1)
    with pytest.raises(TypeError, match="unexpected keyword argument 'z'"):
        energy(vector(), z=1)


def test_a_python_function_and_looks() -> None:
    wrapped = mutad.torch.wrap(diffuse)
    assert wrapped.__name__ == "diffuse"
    x = vector(5)
    wrapped(u=x.clone(), steps=2, k=0.1).backward()
    again = vector(5)
    once(again.clone(), 0.1, 2).backward()
    torch.testing.assert_close(x.grad, again.grad)
