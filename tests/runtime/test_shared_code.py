"""Products of matrices, and functions of numbers, are compiled once in a process for many modules."""

from __future__ import annotations

import math
import os
import subprocess
import sys

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.codegen import module_to_llvm, vector_math
from mutad.runtime import entry_code, target
from mutad.runtime.measure import measure_gradient

rng = np.random.default_rng(3)


def product(a, b):
    return a @ b


def loss(a, b):
    c = a @ b
    return (c * c).sum()


def packed(a, b):
    """Neither factor lies as BLAS takes it: both are copied, to memory of the call."""
    c = a[::2, ::2] @ b[::2, ::2]
    return (c * c).sum()


@pytest.fixture
def compiled(monkeypatch):
    """How products were asked for, each time that some were compiled."""
    monkeypatch.setattr(entry_code, "_shared", {})
    asked = []
    compiler = type(compile(product).dispatcher.compiler)
    plain = compiler.shared

    def noting(self, how, opt):
        asked.append((how, opt))
        return plain(self, how, opt)

    monkeypatch.setattr(compiler, "shared", noting)
    return asked


def test_functions_share_them(compiled):
    a, b = rng.random((7, 5)), rng.random((5, 6))
    one, other = (compile(f, grad=True, cache=False) for f in (loss, packed))
    one.grad(a, b)
    assert len(compiled) == 1
    other.grad(a, b)
    one.grad(a, b, wrt="b")
    assert len(set(compiled)) == len(compiled)
    assert [how for how, _ in compiled if '"double"' not in how] == []


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64, np.int8])
@pytest.mark.parametrize(
    "shapes", [((7, 5), (5, 6)), ((3, 1), (1, 4)), ((40, 50), (50, 30)), ((0, 2), (2, 3))]
)
def test_each_dtype_has_its_own(dtype, shapes, compiled):
    a, b = ((10 * rng.random(shape)).astype(dtype) for shape in shapes)
    f = compile(product, cache=False)
    for x, y in ((a, b), (np.asfortranarray(a), b[:, ::-1]), (a[::-1], np.asfortranarray(b))):
        found, wanted = f(x, y), x @ y
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
    assert compiled


@pytest.mark.parametrize(
    "options", [{}, {"fastmath": True}, {"opt": 0}, {"debug": True}, {"parallel": True}]
)
def test_options_have_their_own(options, compiled):
    a, b = rng.random((7, 5)), rng.random((5, 6))
    compile(loss, grad=True, cache=False).grad(a, b)
    before = len(compiled)
    found = compile(loss, grad=True, cache=False, **options).grad(a, b)
    np.testing.assert_allclose(found, 2 * (a @ b) @ b.T, rtol=1e-12)
    assert (len(compiled) > before) == bool(options.keys() & {"fastmath", "opt"})


@pytest.mark.parametrize("vector", [(slice(None), slice(0, 1)), (slice(0, 1), slice(None))])
def test_columns_and_rows(vector):
    a, b = rng.random((7, 7)), rng.random((7, 7))
    f = compile(loss, grad=True, cache=False)
    for x, y in ((a, b[vector]), (a[vector], b)):
        if x.shape[1] == y.shape[0]:
            np.testing.assert_allclose(f(x, y), ((x @ y) ** 2).sum(), rtol=1e-12)
            np.testing.assert_allclose(f.grad(x, y), 2 * (x @ y) @ y.T, rtol=1e-12)


@pytest.mark.parametrize("opt", [1, 3])
def test_columns_and_rows_of_several_tangents(opt):
    """Of a column of vectors, their numbers side by side are a matrix."""
    a, x = rng.random((6, 5)), rng.random(5)
    for f in (lambda a, x: (a @ x) ** 2, lambda a, x: (x @ a[:5, :5]) ** 2):
        compiled = compile(f, grad=True, cache=False, opt=opt)
        dots = rng.random((3, *a.shape)), rng.random((3, *x.shape))
        value, many = compiled.jvp(a, x, tangents={"a": dots[0], "x": dots[1]}, batch=3)
        np.testing.assert_allclose(value, f(a, x), rtol=1e-12)
        for lane in range(3):
            one = {"a": dots[0][lane].copy(), "x": dots[1][lane].copy()}
            np.testing.assert_allclose(many[lane], compiled.jvp(a, x, tangents=one)[1], rtol=1e-12)


def test_their_memory_is_counted():
    a, b = rng.random((60, 60)), rng.random((60, 60))
    found = measure_gradient(compile(packed, grad=True, cache=False), a, b)
    assert found.kernel >= 8 * 30 * 30


def waves(x):
    return (np.sin(x) * np.exp(x) * np.tan(x)).sum()


def chain(x):
    """More state than there are registers to keep it in, between calls."""
    a, b, c, d, total = 0.1, 0.2, 0.3, 0.4, 0.0
    for i in range(x.size):
        m = max(a, b, c)
        t = m + math.log(math.exp(a - m) + math.exp(b - m) + math.exp(c - m))
        a, b, c, d = b * x[i], c + math.sin(d), t - x[i], math.tanh(a - d) + math.expm1(x[i] * 0.1)
        total += math.cos(t) * d
    return total + a * b * c


@pytest.mark.parametrize("function", [waves, chain])
@pytest.mark.parametrize(
    "options", [{}, {"fastmath": True}, {"opt": 0}, {"opt": 1}, {"debug": True}]
)
def test_functions_have_the_bits_of_their_text(function, options, compiled, monkeypatch):
    """As they are in libraries ahead of time."""
    if not vector_math.variants("exp", (target.chosen() or target.host()).features):
        pytest.skip("no vector functions here")
    x = np.linspace(0.1, 1.4, 77)
    found = compile(function, grad=True, cache=False, **options).value_and_grad(x)
    if "opt" not in options:
        assert any('"function"' in how for how, _ in compiled)
    written = module_to_llvm.kernel_text

    def own(*args, **how):
        return written(*args, **{**how, "shares": False})

    monkeypatch.setattr(module_to_llvm, "kernel_text", own)
    compiled.clear()
    wanted = compile(function, grad=True, cache=False, **options).value_and_grad(x)
    assert not compiled
    if "fastmath" not in options:
        assert found[0] == wanted[0]
        np.testing.assert_array_equal(found[1], wanted[1])
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)


def test_modules_share_a_function(compiled):
    x = np.linspace(0.1, 1.4, 77)
    one = compile(waves, grad=True, cache=False)
    one.grad(x)
    before = [how for how, _ in compiled]
    one(x)
    one.jvp(x, tangents={"x": x.copy()})
    compile(chain, grad=True, cache=False).grad(x)
    after = [how for how, _ in compiled]
    assert len(set(after)) == len(after)
    assert [how for how in after if '"sin"' in how] == [how for how in before if '"sin"' in how]


PROGRAM = """
import numpy as np
from mutad import compile
import mutad

def loss(a, b):
    c = a @ np.exp(b)
    return (c * c).sum()

rng = np.random.default_rng(0)
print(compile(loss, grad=True).grad(rng.random((7, 5)), rng.random((5, 6))).tolist())
"""
GONE = """
import mutad
from mutad.runtime import disk_cache
import os, sys
for name in os.listdir(os.environ["MUTAD_CACHE_DIR"]):
    if name.startswith("shared-"):
        os.unlink(os.path.join(os.environ["MUTAD_CACHE_DIR"], name))
"""


def run(program, folder, **environment):
    env = {**os.environ, "MUTAD_CACHE_DIR": str(folder), **environment}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done


def test_they_are_in_the_disk_cache(tmp_path):
    folder, file = tmp_path / "cache", tmp_path / "program.py"
    file.write_text(PROGRAM)
    started = f"import runpy; runpy.run_path({str(file)!r}, run_name='__main__')"
    first = run(started, folder)
    kept = len([one for one in os.listdir(folder) if one.startswith("shared-")])
    assert kept == 1 + bool(
        vector_math.variants("exp", (target.chosen() or target.host()).features)
    )
    loaded = f"{started}\nimport sys\nassert 'mutad.compiler.pipeline' not in sys.modules"
    assert run(loaded, folder).stdout == first.stdout
    run(GONE, folder)
    assert run(started, folder).stdout == first.stdout
    assert len([one for one in os.listdir(folder) if one.startswith("shared-")]) == kept
