"""Code for long tapes is compiled when the first call has some, and taken by calls that have some alone."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import mutad.compiler.request as request
from mutad import Active, Const, Duplicated, check_gradient, compile
from mutad.compiler.derivative import replays
from mutad.runtime.measure import measure_gradient

rng = np.random.default_rng(5)
LIMIT = 4000


def deflate(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
    return (s * s).sum() + (y * y).sum()


def in_place(x, w, scale):
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(x, x) * w[k]
        x -= scale * s[k] * x
    return (s * s).sum() + (x * x).sum()


def raises_late(x, w):
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(x, x) * w[k]
        x -= s[k] * x
        s[k + 1] = 0.0
    return (s * s).sum() + (x * x).sum()


def raises_at_the_end(x, w):
    if w[0] < 0.0:
        raise ValueError("negative")
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(x, x) * w[k]
        x -= s[k] * x
        if s[k] < 0.0:
            raise ArithmeticError("no norm")
    s[w.size] = 0.0
    return (s * s).sum() + (x * x).sum()


def roots(x, w):
    """At 0 the root's derivative is infinite, times 0: strong zeros need their guards."""
    y = np.sqrt(x) * x
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
    return (s * s).sum() + (y * y).sum()


SHORT, LONG = 8, 60
"""Lengths whose tapes are shorter, and longer, than the limit."""


def arguments(length):
    return 0.3 * rng.random(length), 0.05 * rng.random(length)


@pytest.fixture(autouse=True)
def small_limit(monkeypatch):
    monkeypatch.setattr(request, "LONGEST_TAPE", LIMIT)
    monkeypatch.setattr(replays, "AGAIN", 0)


def compiled(function, **options):
    return compile(function, grad=True, cache=False, **options)


def whole(function):
    """The same without code for long tapes."""
    return compile(function, grad=True, cache=False, saves="all")


def kinds(f, mode="gradient"):
    return [key.long for key in f.dispatcher.table if key.mode == mode]


def test_short_tapes_compile_one_gradient():
    f = compiled(deflate)
    x, w = arguments(SHORT)
    f.grad(x, w)
    f.value_and_grad(x, w)
    assert kinds(f) == [False]
    assert "in_steps" not in f.inspect("llvm", x, w, wrt="x")


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("wrt", ["x", "w", ("w", "x"), ("x", "w")])
def test_long_ones_compile_another_once(wrt, parallel):
    f, other = compiled(deflate, parallel=parallel), whole(deflate)
    for length, known in ((SHORT, 1), (LONG, 2), (LONG + 1, 2), (SHORT, 2), (LONG, 2)):
        x, w = arguments(length)
        value, gradients = f.value_and_grad(x, w, wrt=wrt)
        again, expected = f.grad(x, w, wrt=wrt), other.grad(x, w, wrt=wrt)
        assert value == f(x, w)
        assert len(kinds(f)) == known
        for one, same, wanted in zip(
            *map(np.atleast_2d, (gradients, again, expected)), strict=True
        ):
            assert np.array_equal(one, same)
            np.testing.assert_allclose(one, wanted, rtol=1e-9, atol=1e-12)


def test_later_calls_go_from_entry_to_entry(monkeypatch):
    f = compiled(deflate)
    x, w = arguments(LONG)
    f.grad(x, w)
    monkeypatch.setattr(type(f.dispatcher), "gradient_of", None)
    monkeypatch.setattr(type(f.dispatcher), "lengthen", None)
    f.grad(x, w)
    f.value_and_grad(*arguments(SHORT))
    f.value_and_grad(x, w, wrt="x")


def test_a_first_call_that_is_long():
    x, w = arguments(LONG)
    np.testing.assert_allclose(compiled(deflate).grad(x, w), whole(deflate).grad(x, w), rtol=1e-9)


def test_callers_shadows_are_added_to():
    f, other = compiled(in_place), whole(in_place)
    for length in (SHORT, LONG, LONG, SHORT):
        x, w = arguments(length)
        seed = [rng.random(length), rng.random(length)]
        results = []
        for g in (f, other):
            own, shadows = x.copy(), [a.copy() for a in seed]
            found = g.pullback(
                Duplicated(own, shadows[0]), Duplicated(w, shadows[1]), Active(0.5), cotangent=2.0
            )
            results.append((own, *shadows, *found[1]))
        for one, wanted in zip(*results, strict=True):
            np.testing.assert_allclose(one, wanted, rtol=1e-9, atol=1e-12)


def test_gradient_code_that_serves_pullback():
    """`grad` first: its code may be the one that `pullback` takes."""
    f, other = compiled(deflate), whole(deflate)
    x, w = arguments(LONG)
    f.grad(x, w)
    seed, results = rng.random(LONG), []
    for g in (f, other):
        shadow = seed.copy()
        g.pullback(Duplicated(x, shadow), Const(w), cotangent=1.0)
        results.append(shadow)
    np.testing.assert_allclose(*results, rtol=1e-9)


@pytest.mark.parametrize("lengths", [(SHORT, LONG, SHORT, LONG), (LONG, SHORT, LONG)])
def test_entries_that_take_shadows(lengths):
    """In whichever order code for short and for long tapes is asked for them."""
    f, other = compiled(deflate), whole(deflate)
    for length in (SHORT, LONG):
        f.grad(*arguments(length))
    for length in lengths:
        x, w = arguments(length)
        seed, results = rng.random(length), []
        for g in (f, other):
            shadow = seed.copy()
            g.pullback(Duplicated(x, shadow), Const(w), cotangent=1.0)
            results.append(shadow)
        np.testing.assert_allclose(*results, rtol=1e-9)


def test_arguments_that_share_memory():
    f, other = compiled(deflate), whole(deflate)
    for length in (SHORT, LONG):
        x = 0.3 * rng.random(length)
        for one, wanted in zip(
            f.grad(x, x, wrt=("x", "w")), other.grad(x, x, wrt=("x", "w")), strict=True
        ):
            np.testing.assert_allclose(one, wanted, rtol=1e-9)


def test_batches():
    f, other = compiled(deflate), whole(deflate)
    x, w = arguments(LONG)
    np.testing.assert_allclose(f.hessian(x, w), other.hessian(x, w), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        f.jacobian(x, w, mode="reverse"), other.grad(x, w), rtol=1e-9, atol=1e-12
    )


@pytest.mark.parametrize("length", [SHORT, LONG])
def test_exceptions_leave_arrays_as_python_does(length):
    f = compiled(raises_late)
    x, w = arguments(length)
    theirs = x.copy()
    with pytest.raises(IndexError):
        raises_late(theirs, w)
    for _ in range(2):
        mine = x.copy()
        with pytest.raises(IndexError, match="out of bounds"):
            f.grad(mine, w)
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_exceptions_of_long_tapes_that_are_kept(monkeypatch):
    """Where it does not pay to run updates again, the code for short tapes runs, and says where it raises."""
    x, w = arguments(LONG)
    expected = whole(deflate).grad(x, w)
    monkeypatch.setattr(replays, "AGAIN", 1000)
    f = compiled(raises_at_the_end)
    theirs, mine = x.copy(), x.copy()
    with pytest.raises(IndexError) as plain:
        raises_at_the_end(theirs, w)
    with pytest.raises(IndexError) as found:
        f.grad(mine, w)
    assert kinds(f) == [False, True]
    np.testing.assert_allclose(mine, theirs, rtol=1e-12)
    lines = [info.traceback[-1].lineno for info in (plain, found)]
    assert lines[0] == lines[1]
    f = compiled(deflate)
    np.testing.assert_array_equal(f.grad(x, w), f.grad(x, w))
    np.testing.assert_allclose(f.grad(x, w), expected, rtol=1e-9)
    assert kinds(f) == [False, True]


@pytest.mark.parametrize("first", [SHORT, LONG])
def test_guards_that_turn_out_to_be_needed(first):
    f, other = compiled(roots), whole(roots)
    for length in (first, SHORT, LONG, LONG):
        x, w = arguments(length)
        f.grad(x, w)
        x[3] = 0.0
        found = f.grad(x, w)
        assert np.isfinite(found).all()
        np.testing.assert_allclose(found, other.grad(x, w), rtol=1e-9, atol=1e-12)


def test_two_callers_at_once_compile_it_once(monkeypatch):
    f = compiled(deflate)
    x, w = arguments(LONG)
    f.grad(*arguments(SHORT))
    asked = []
    compiler = type(f.dispatcher.compiler)
    plain = compiler.compile

    def noting(self, *given, **named):
        asked.append(bool(given[5]["long"]))
        return plain(self, *given, **named)

    monkeypatch.setattr(compiler, "compile", noting)
    found, barrier = [], threading.Barrier(4)

    def call():
        barrier.wait()
        found.append(f.grad(x, w))

    threads = [threading.Thread(target=call) for _ in range(4)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert asked == [True]
    assert all(np.array_equal(one, found[0]) for one in found)
    assert len(found) == 4


def test_what_is_shown_is_what_is_called():
    f = compiled(deflate)
    short, long = arguments(SHORT), arguments(LONG)
    assert not f.explain(*short).replayed
    assert f.explain(*long).replayed
    assert "in_steps" not in f.inspect("optimize", *short, wrt="x")
    assert "deflate_gradient_in_steps" in f.inspect("optimize", *long, wrt="x")
    assert "mutad_whole" in f.inspect("llvm", *long, wrt="x")
    f.grad(*short)
    assert "in_steps" not in f.inspect("adjoint")
    f.grad(*long)
    assert "deflate_gradient_in_steps" in f.inspect("adjoint")


def test_what_is_allocated_is_what_is_called():
    f = compiled(deflate)
    x, w = arguments(400)
    receipt = f.explain(x, w)
    measured = measure_gradient(f, x, w)
    bytes_ = receipt.saved_bytes + sum(one.bytes for one in receipt.replayed)
    assert bytes_ <= measured.kernel < 8 * 400 * 400


def test_gradients_are_checked():
    check_gradient(compiled(deflate), *arguments(LONG))
    check_gradient(compiled(in_place), *arguments(LONG), 0.5)


PROGRAM = """
import sys
import numpy as np
import mutad.compiler.request as request
from mutad.compiler.derivative import replays
request.LONGEST_TAPE, replays.AGAIN = 4000, 0
from mutad import compile

def deflate(x, w):
    y = x.copy()
    s = np.zeros(w.size)
    for k in range(w.size):
        s[k] = np.dot(y, y) * w[k]
        y -= s[k] * x
    return (s * s).sum() + (y * y).sum()

f = compile(deflate, grad=True)
rng = np.random.default_rng(1)
for length in (8, 60, 60):
    print(repr(f.grad(0.3 * rng.random(length), 0.05 * rng.random(length)).tolist()))
assert [k.long for k in f.dispatcher.table] == [False, True]
"""


def test_both_are_in_the_disk_cache(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    set_ = {"MUTAD_CACHE_DIR": str(tmp_path / "cache"), "MUTAD_LOG": "info"}
    runs = [
        subprocess.run(
            [sys.executable, str(file)], env={**os.environ, **set_}, capture_output=True, text=True
        )
        for _ in range(2)
    ]
    first, second = (run.stderr for run in runs)
    assert [run.returncode for run in runs] == [0, 0], first + second
    assert first.count("compiled in") == 2
    assert "tapes that are long" in first
    assert second.count("loaded from the disk cache") == 2
    assert "compiled in" not in second
    assert runs[0].stdout == runs[1].stdout


def chosen_updates(x, w):
    a = x.copy()
    r = np.zeros((x.shape[0], x.shape[0]))
    for k in range(x.shape[0]):
        a[k] = a[k] * w[k]
        for j in range(k + 1, x.shape[0]):
            if w[j] > 1.2:
                r[k, j] = (a[k] * a[j]).sum()
                a[j] += 0.2 * a[k] * r[k, j]
    return (r * r).sum() + np.sin(a).sum()


def test_tapes_of_some_iterations_are_measured():
    """What an iteration saves depends on a condition that the size of the tape does not know."""
    x, w = 0.4 * rng.normal(size=(6, 5)), np.linspace(1.0, 1.4, 6)
    check_gradient(compile(chosen_updates, grad=True, cache=False), x, w, wrt=("x", "w"))
