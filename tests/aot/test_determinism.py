"""The compiler makes the same text wherever its objects lie in memory.

Values and ops of the IR are hashed by address, so a set of them has another order in each process. Here they
are hashed otherwise on purpose: what iterates over such a set, or sorts by hashes, makes other text.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.ir import Block, BlockArgument, Operation, OpResult, Region

from mutad.compiler.compilation import Compilation
from mutad.compiler.pipeline import stages_for
from mutad.compiler.request import Options, Request
from mutad.dialects.quick_xdsl import with_derived
from mutad.runtime.captures import captures_of


def jacobi(u, f, n):
    v = u.copy()
    for _ in range(n):
        v[1:-1, 1:-1] = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] - f[1:-1, 1:-1])
        u, v = v, u
    return (u**2).sum()


def fib(x, n):
    if n < 2:
        return x
    return fib(x, n - 1) * 0.5 + np.sin(fib(x, n - 2))


def products(a, b):
    c = a @ b
    d = np.tanh(c @ a)
    return (d * c).sum() + a.max() + np.sort(b[0]).sum()


def swaps(u, v, n):
    a, b = u * v, np.sqrt(u * u + 1)
    for i in range(n):
        if a[0] > b[i % 3]:
            a, b = b, a * 2
        c = np.exp(a) * b
        a = c / (1 + c)
        b[1:] = a[:-1] * u[1:]
    return (a * b).sum(), b


def mixtures(x, means, scales):
    term = np.zeros(means.shape[0])
    total = 0.0
    for i in range(x.shape[0]):
        for k in range(means.shape[0]):
            away = x[i] - means[k]
            z = np.exp(scales[k]) * away
            for e in range(1, x.shape[1]):
                z[e] += (scales[:e] * away[:e]).sum()
            term[k] = (z * z).sum()
        total += np.log(np.exp(-term).sum())
    return total


MATRIX, VECTOR = "f64[?,?]C", "f64[?]C"
PROGRAMS = (
    (jacobi, (MATRIX, MATRIX, "py_int"), ("primal", "gradient")),
    (fib, ("py_float", "py_int"), ("gradient",)),
    (products, (MATRIX, MATRIX), ("vjp", "product")),
    (mixtures, (MATRIX, MATRIX, VECTOR), ("primal", "gradient")),
    (swaps, (VECTOR, VECTOR, "py_int"), ("vjp",)),
)
CASES = [(f, keys, mode) for f, keys, modes in PROGRAMS for mode in modes]


def text_of(function: Callable[..., Any], keys: tuple[str, ...], mode: str) -> str:
    wrt = () if mode == "primal" else (0,)
    c = Compilation(Request(function, keys, (), mode, wrt, True, Options(), captures_of(function)))
    for stage in stages_for(c.request):
        stage.run(c)
        if stage.name == "llvm":
            break
    return c.llvm


@pytest.mark.parametrize(("function", "keys", "mode"), CASES)
def test_text_does_not_depend_on_hashes(
    function: Callable[..., Any], keys: tuple[str, ...], mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts: set[str] = set()
    kinds = [*with_derived(Operation), Block, Region, OpResult, BlockArgument]
    for salt in range(3):
        with monkeypatch.context() as patched:
            for kind in kinds:
                patched.setattr(kind, "__hash__", lambda self, salt=salt: hash((id(self), salt)))
            texts.add(text_of(function, keys, mode))
    assert len(texts) == 1
