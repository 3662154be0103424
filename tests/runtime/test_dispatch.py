"""Calls find their specialization: keys, signatures, sharing, threads, processes."""

from __future__ import annotations

import copy
import gc
import inspect
import multiprocessing
import pickle
import subprocess
import sys
import threading
import types
import weakref
from typing import Any

import numpy as np
import pytest
from handmade import SCALAR, SUM, SUM_GRADIENT, Handmade

import mutad
from mutad.runtime import dispatch, keys
from mutad.runtime.engine import Library
from mutad.runtime.function import CompiledFunction
from mutad.runtime.options import check_options


def square_sum(x):
    """The sum of squares."""
    return (x * x).sum()


def constant(value: float, *parameters: str) -> str:
    return (
        f"define internal i32 @kernel(ptr %ctx, {', '.join([*parameters, 'ptr %r'])}) {{\n"
        f"  store double {value}, ptr %r\n  ret i32 0\n}}"
    )


ARRAY = "ptr, i64, i64"
TWO = constant(1.0, ARRAY, ARRAY)
MODULE_LEVEL = Handmade(SCALAR, SUM, SUM_GRADIENT).of(square_sum)
named_otherwise = MODULE_LEVEL


# Keys.


@pytest.mark.parametrize(
    ("value", "key"),
    [
        (np.zeros((2, 3)), "f64[?,?]C"),
        (np.zeros((2, 3), order="F"), "f64[?,?]F"),
        (np.zeros((2, 3))[:, ::2], "f64[?,?]S"),
        (np.zeros((1, 3)), "f64[1,?]C"),
        (np.zeros((0, 3)), "f64[?,?]C"),
        (np.zeros(()), "f64[]C"),
        (np.zeros(4, np.int32)[::-1], "i32[?]S"),
        (np.zeros(4, bool), "b1[?]C"),
        (np.zeros(4, np.longlong), "i64[?]C"),
        (1, "py_int"),
        (True, "py_bool"),
        (1.0, "py_float"),
        (None, "None"),
        (np.float64(1), "f64"),
        (np.bool_(1), "b1"),
        ((1, (np.zeros(2), None)), "(py_int,(f64[?]C,None))"),
        ((), "()"),
    ],
)
def test_key(value: Any, key: str):
    assert keys.argument_key(value, "x") == key


UNALIGNED = np.zeros(17, np.uint8)[1:].view(np.float64)


@pytest.mark.parametrize(
    ("value", "exception", "words"),
    [
        (b"a", TypeError, "'x'.*bytes"),
        (1j, TypeError, "complex"),
        (2**63, OverflowError, "64 bits"),
        (np.float16(1), TypeError, "float16"),
        (np.zeros(2, np.float16), TypeError, "float16.*float32"),
        (np.zeros(2, np.longdouble), TypeError, "longdouble|float128"),
        (np.zeros(2, object), TypeError, "object"),
        (np.zeros(2, complex), TypeError, "complex128"),
        (np.zeros(2, "U3"), TypeError, "U3"),
        (np.zeros(2, "M8[s]"), TypeError, "datetime64"),
        (np.zeros(2, [("a", float)]), TypeError, r"structured.*\['a'\]"),
        (np.zeros(2, ">f8"), TypeError, "byte order"),
        (np.ma.zeros(2), TypeError, r"has a mask: pass x\.data and x\.mask"),
        (np.rec.array(np.zeros(2)), TypeError, "subclass"),
        (UNALIGNED, ValueError, "aligned"),
        ((1, b"a"), TypeError, r"x\[1\]"),
        (np.longlong(1), TypeError, "int64"),
    ],
)
def test_refused(value: Any, exception: type[Exception], words: str):
    with pytest.raises(exception, match=words):
        MODULE_LEVEL(value)


def test_sharing_is_exact_where_that_is_cheap():
    x = np.zeros(10)
    matrix = np.zeros((4, 4))
    assert keys.sharing(x[::2], x[1::2]) is None
    assert keys.sharing(x, x[::1]) == "same"
    assert keys.sharing(x[:-1], x[1:]) == "overlap"
    assert keys.sharing(matrix, matrix.T) == "overlap"
    assert keys.sharing(x[:5], x[5:]) is None
    assert keys.sharing(x[3:3], x) is None


def test_overlap_of_itself():
    windows = np.lib.stride_tricks.sliding_window_view(np.zeros(6), 3)
    assert keys.overlaps_itself(windows)
    assert keys.overlaps_itself(np.broadcast_to(np.zeros(3), (2, 3)))
    assert not keys.overlaps_itself(np.zeros((3, 4, 5)).transpose(2, 0, 1)[::-1, ::2])
    assert not keys.overlaps_itself(np.broadcast_to(np.zeros(1), (1, 1)))


# Signatures.


def test_errors_of_a_call_are_python_s():
    for wrong in (lambda f: f(), lambda f: f(1, 2), lambda f: f(y=1), lambda f: f(1, x=2)):
        with pytest.raises(TypeError) as ours:
            wrong(MODULE_LEVEL)
        with pytest.raises(TypeError) as python_s:
            wrong(square_sum)
        assert str(ours.value) == str(python_s.value)


def test_keywords_and_defaults():
    text = """
    define internal i32 @kernel(ptr %ctx, i64 %a, i64 %b, i64 %c, ptr %r) {
      %t = mul i64 %a, 100
      %u = mul i64 %b, 10
      %v = add i64 %t, %u
      %w = add i64 %v, %c
      store i64 %w, ptr %r
      ret i32 0
    }
    """
    compiler = Handmade({"kind": "scalar", "type": "py_int"}, text)

    def plain(a, b=2, c=3):
        return 100 * a + 10 * b + c

    def only(a, *, b=2, c):
        return 100 * a + 10 * b + c

    def slashed(a, /, b, *, c=3):
        return 100 * a + 10 * b + c

    f, g, h = map(compiler.of, (plain, only, slashed))
    for _ in range(2):
        assert f(1) == 123
        assert f(1, 5) == 153
        assert f(1, c=7) == 127
        assert f(c=1, b=1, a=1) == 111
        assert f(1, 2, 4) == 124
        assert g(1, c=3) == 123
        assert g(1, c=3, b=0) == 103
        assert h(1, 2) == 123
        assert h(1, b=2, c=9) == 129
        for wrong in (
            lambda: g(1, 2, 3), lambda: g(1), lambda: h(a=1, b=2), lambda: h(1, 2, 3),
            lambda: f(1, 2, 3, 4), lambda: f(),
        ):  # fmt: skip
            with pytest.raises(TypeError):
                wrong()
    with pytest.raises(TypeError, match="name the parameters"):
        compiler.of(lambda *a: 1)


def test_looks_like_its_function():
    f = MODULE_LEVEL
    assert (f.__name__, f.__module__) == ("square_sum", __name__)
    assert f.__doc__ is not None
    assert f.__doc__.startswith("The sum of squares.\n\nCompiled by mutad")
    assert f.__wrapped__ is square_sum
    assert inspect.signature(f) == inspect.signature(square_sum)
    assert repr(f) == "<compiled function square_sum>"
    assert callable(f)


def test_works_as_a_method():
    text = constant(7.0, "double", ARRAY)

    class Holder(list):
        scale = Handmade(SCALAR, text).of(lambda self, x: 1.0)

    with pytest.raises(TypeError, match="'self'"):
        Holder().scale(np.ones(2))
    assert Holder.scale(2.0, np.ones(2)) == 7.0
    bound = Holder.scale.__get__(2.0)
    assert bound(np.ones(2)) == 7.0
    assert bound.__name__ == "<lambda>"
    with pytest.raises(TypeError, match="no parameter is called 'y'"):
        bound.grad(np.ones(2), wrt="y")


def test_options_are_checked():
    for wrong, exception in (
        ({"sav": 1}, TypeError),
        ({"saves": "some"}, ValueError),
        ({"fastmath": 1}, TypeError),
        ({"opt": 4}, ValueError),
        ({"opt": True}, ValueError),
        ({"target": "cuda"}, ValueError),
        ({"parallel": "no"}, TypeError),
    ):
        with pytest.raises(exception):
            mutad.compile(**wrong)
    assert check_options({"parallel": True, "target": "cpu", "opt": 1})["opt"] == 1
    with pytest.raises(TypeError, match="grad"):
        mutad.compile(grad="yes")
    with pytest.raises(TypeError, match="Python function"):
        mutad.compile(np.sin)


def test_without_gradient_the_methods_say_so():
    f = Handmade(SCALAR, SUM).of(square_sum, grad=False)
    for name in ("grad", "value_and_grad", "vjp", "pullback"):
        with pytest.raises(AttributeError, match="grad=True"):
            getattr(f, name)(np.ones(2))


def test_wrong_wrt():
    for wrt in ("y", 1, -2, 1.5, True, None):
        with pytest.raises(TypeError, match="wrt"):
            MODULE_LEVEL.grad(np.ones(2), wrt=wrt)
    for wrt in ((), (0, "x")):
        with pytest.raises(ValueError, match="wrt"):
            MODULE_LEVEL.grad(np.ones(2), wrt=wrt)
    with pytest.raises(TypeError, match="int"):
        MODULE_LEVEL.grad(3)
    with pytest.raises(TypeError, match="i64"):
        MODULE_LEVEL.grad(np.ones(2, np.int64))


# Sharing of memory.


def test_partition_by_sharing():
    compiler = Handmade(SCALAR, TWO, written=(0,))
    f = compiler.of(lambda x, y: 1.0)
    x = np.zeros(12)
    calls = [(x, np.zeros(12)), (x[:6], x[6:]), (x, x), (x[:-1], x[1:]), (x[0:0], x), (x, x[0:0])]
    for _ in range(2):
        for pair in calls:
            f(*pair)
    assert [r[2] for r in compiler.requests] == [(), ((0, 1, "same"),), ((0, 1, "overlap"),)]
    compiler.requests.clear()
    f(x[::2], x[1::2])
    f(x[::2], x[1::2])
    f(x[::2], x[::2])
    f(x[::2], x[2::2])
    assert [r[2] for r in compiler.requests] == [(), ((0, 1, "same"),), ((0, 1, "overlap"),)]


def test_arguments_that_are_only_read_may_share():
    compiler = Handmade(SCALAR, TWO)
    f = compiler.of(lambda x, y: 1.0)
    x = np.zeros(12)
    f(x, np.zeros(12))
    f(x, x)
    assert len(compiler.requests) == 1


def test_read_only_arguments_that_are_written_have_code_of_their_own():
    compiler = Handmade(SCALAR, SUM, written=(0,))
    f = compiler.of(square_sum)
    x = np.ones(3)
    for writeable in (True, False, True, False):
        x.flags.writeable = writeable
        assert f(x) == 3.0
        assert f((x, x)[0][::2]) == 2.0
    assert [r[1] for r in compiler.requests] == [(f"f64[?]{k}",) for k in ("C", "S", "Cr", "Sr")]


def test_read_only_arguments_that_are_only_read_are_as_any():
    compiler = Handmade(SCALAR, SUM)
    f = compiler.of(square_sum)
    x = np.ones(3)
    for x.flags.writeable in (False, True):
        assert f(x) == 3.0
    assert len(compiler.requests) == 1


def test_written_arguments_are_no_broadcasts():
    f = Handmade(SCALAR, SUM, written=(0,)).of(square_sum)
    window = np.lib.stride_tricks.as_strided(np.zeros(3), (3,), (0,), writeable=True)
    with pytest.raises(ValueError, match="overlaps itself"):
        f(window)


def test_arrays_in_tuples_share_with_nobody():
    text = constant(2.0, ARRAY, ARRAY, ARRAY)
    f = Handmade(SCALAR, text, written=(0,)).of(lambda p, z: 1.0)
    x, y, z = np.zeros((3, 4))
    assert f((x, y), z) == 2.0
    assert f((x, y), z) == 2.0
    for p, q in (((x, x), z), ((x, y), y), ((x, y), x[1:])):
        with pytest.raises(ValueError, match="share"):
            f(p, q)
    assert Handmade(SCALAR, text).of(lambda p, z: 1.0)((x, x), x[1:]) == 2.0


# Many specializations, threads, processes.


def test_long_chains_begin_anew():
    def kernel(arguments: tuple[str, ...], wrt: tuple[int, ...]) -> str:
        rank = arguments[0].count("?") + arguments[0].count("1,") + arguments[0].count("1]")
        return constant(float(rank), ", ".join(["ptr", *["i64"] * (2 * rank)]))

    compiler = Handmade(SCALAR, kernel)
    f = compiler.of(lambda x: 1.0)
    arrays = [
        np.zeros([2 + (bits >> d & 1) * -1 for d in range(rank)])
        for rank in (1, 2, 3, 4)
        for bits in range(1 << rank)
    ]
    for _ in range(3):
        for a in arrays:
            assert f(a) == a.ndim
    assert len(compiler.requests) == len(arrays) > dispatch.LONGEST_CHAIN


def test_concurrent_first_calls_compile_once():
    compiler = Handmade(SCALAR, SUM, SUM_GRADIENT)
    f = compiler.of(square_sum)
    start = threading.Barrier(8)
    results: list[Any] = []

    def call():
        start.wait()
        for _ in range(100):
            results.append((f(np.ones(5)), f.grad(np.ones(5)).sum()))

    threads = [threading.Thread(target=call) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert results == [(5.0, 10.0)] * 800
    assert len(compiler.requests) == 2


def test_pickles_by_reference():
    for value in (MODULE_LEVEL, MODULE_LEVEL.grad):
        pickle.loads(pickle.dumps(value))
    MODULE_LEVEL.value_and_grad(np.ones(2))
    loaded = pickle.loads(pickle.dumps(MODULE_LEVEL.value_and_grad))
    assert loaded(np.ones(2))[0] == 2.0
    assert copy.deepcopy(MODULE_LEVEL) is MODULE_LEVEL or MODULE_LEVEL.__wrapped__ is square_sum


def test_survives_fork():
    f = Handmade(SCALAR, SUM, SUM_GRADIENT).of(square_sum)
    f(np.ones(3))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()

    def child() -> None:
        queue.put((f(np.ones(4)), f(np.ones(8)[::2]), f.grad(np.ones(2)).tolist()))

    process = context.Process(target=child)
    process.start()
    assert queue.get() == (4.0, 4.0, [2.0, 2.0])
    process.join()
    assert process.exitcode == 0


def test_functions_that_are_gone_are_unloaded():
    f = Handmade(SCALAR, SUM).of(square_sum)
    f(np.ones(3))
    library = weakref.ref(f._dispatcher)
    del f
    gc.collect()
    assert library() is None


class Tracker:
    """What keeps a library loaded, as llvmlite has it."""

    def __init__(self) -> None:
        self.state = types.SimpleNamespace(closed=False)

    def __getitem__(self, symbol: str) -> int:
        return 0

    def close(self) -> None:
        self.state.closed = True

    __del__ = close


def test_a_library_goes_after_the_finalizers_of_what_goes_with_it():
    seen = []

    class Asking:
        """Calls the library when it is finalized, as a record of `vjp` does; in a cycle with it."""

        def __del__(self):
            seen.append(watched.closed)

    tracker = Tracker()
    watched = tracker.state
    asking = Asking()
    asking.library, asking.itself = Library.of("mutad.test", tracker, {"primal": "f"}), asking
    del tracker, asking
    gc.collect()
    assert seen == [False]
    assert watched.closed


def test_heads_taken_early_reach_the_compiled_code():
    compiler = Handmade(SCALAR, SUM, SUM_GRADIENT)
    f = compiler.of(square_sum)
    early = f.value_and_grad
    for _ in range(3):
        value, gradient = early(np.ones(2))
        assert (value, gradient.tolist()) == (2.0, [2.0, 2.0])
    assert type(f.value_and_grad).__name__ == "builtin_function_or_method"
    assert isinstance(f, CompiledFunction)


def test_import_is_light():
    code = (
        "import sys, numpy, mutad; heavy = ('xdsl', 'scipy', 'llvmlite', 'rich', 'asyncio');"
        "print([m for m in heavy if m in sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_the_face_offers_what_it_says():
    for name in mutad.__all__:
        assert getattr(mutad, name) is not None
    with pytest.raises(AttributeError, match="nothing"):
        _ = mutad.nothing
