"""The compiler makes the same text wherever its objects lie in memory, and however strings are hashed.

Values and ops of the IR are hashed by address, so a set of them has another order in each process. Here they
are hashed otherwise on purpose: what iterates over such a set, or sorts by hashes, makes other text. Strings
(and types, which have some in them) are hashed otherwise in each process.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
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


def scaled_steps(u, n):
    scale, low, high, total = 1.0, 0.0, 0.0, 0.0
    for _ in range(n):
        v = u * scale + low - high * total
        scale = 0.5 / np.abs(v).max()
        low = v.min()
        high = v.max()
        total = v.sum()
        u[:] = v
    return (u * u).sum() * scale + low * high - total


def checked_elements(u, v, n):
    total = 0.0
    for k in range(n):
        x, y = u[k], v[k]
        if x < y:
            raise ValueError(f"{x} < {y} at {k}")
        total += np.sqrt(x - y)
    return total


MATRIX, VECTOR = "f64[?,?]C", "f64[?]C"
CPU, DEVICE = Options(), Options(device="sm_90", launched=True)
PROGRAMS = (
    (jacobi, (MATRIX, MATRIX, "py_int"), ("primal", "gradient"), CPU),
    (fib, ("py_float", "py_int"), ("gradient",), CPU),
    (products, (MATRIX, MATRIX), ("vjp", "product"), CPU),
    (mixtures, (MATRIX, MATRIX, VECTOR), ("primal", "gradient"), CPU),
    (swaps, (VECTOR, VECTOR, "py_int"), ("vjp",), CPU),
    (scaled_steps, (VECTOR, "py_int"), ("primal",), DEVICE),
    (checked_elements, (VECTOR, "f32[?]C", "py_int"), ("primal",), DEVICE),
)
CASES = [(f, keys, mode, options) for f, keys, modes, options in PROGRAMS for mode in modes]


def compiled(
    function: Callable[..., Any], keys: tuple[str, ...], mode: str, options: Options
) -> Compilation:
    wrt = () if mode == "primal" else (0,)
    c = Compilation(Request(function, keys, (), mode, wrt, True, options, captures_of(function)))
    for stage in stages_for(c.request):
        stage.run(c)
        if stage.name == "llvm":
            break
    return c


@pytest.mark.parametrize(("function", "keys", "mode", "options"), CASES)
def test_text_does_not_depend_on_hashes(
    function: Callable[..., Any],
    keys: tuple[str, ...],
    mode: str,
    options: Options,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    texts: set[str] = set()
    kinds = [*with_derived(Operation), Block, Region, OpResult, BlockArgument]
    for salt in range(3):
        with monkeypatch.context() as patched:
            for kind in kinds:
                patched.setattr(kind, "__hash__", lambda self, salt=salt: hash((id(self), salt)))
            texts.add(compiled(function, keys, mode, options).llvm)
    assert len(texts) == 1


def digests() -> list[str]:
    """What the text of some programs comes to, and the symbols that it needs, in their order."""
    found = [compiled(*case) for case in CASES if case[2] in ("primal", "vjp")]
    texts = [f"{c.llvm}{c.image}{c.kernel.symbols}" for c in found]
    return [hashlib.sha256(text.encode()).hexdigest() for text in texts]


def test_another_process_makes_the_same_text() -> None:
    env = {**os.environ, "PYTHONHASHSEED": "1", "PYTHONPATH": os.pathsep.join(sys.path)}
    call = [sys.executable, __file__]
    done = subprocess.run(call, env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == digests()


if __name__ == "__main__":
    print(*digests(), sep="\n")
