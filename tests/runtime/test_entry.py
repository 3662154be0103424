"""The compiled entries, around kernels written by hand."""

from __future__ import annotations

import ctypes
import signal
import sys
import threading
import time
from traceback import extract_tb
from typing import Any

import numpy as np
import pytest
from handmade import SCALAR, SUM, SUM_GRADIENT, Handmade

from mutad.compiler.codegen.entries.writer import HEADER, LINK_SLOTS
from mutad.runtime import native_code
from mutad.runtime.link import Link


def square_sum(x):
    return (x * x).sum()


def test_link_slots_lie_where_the_entries_read_them():
    link = Link()
    for i, name in enumerate(LINK_SLOTS):
        value = object()
        setattr(link, name, value)
        assert ctypes.c_size_t.from_address(id(link) + HEADER + 8 * i).value == id(value)


def test_numpy_functions_are_at_the_places_we_take_them_from():
    zeros = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_int, ctypes.c_void_p, ctypes.py_object, ctypes.c_int
    )(native_code.numpy_address("PyArray_Zeros"))
    extents = (ctypes.c_ssize_t * 2)(2, 3)
    dtype = np.dtype(np.float32)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(dtype))
    made = zeros(2, ctypes.addressof(extents), dtype, 0)
    assert made.shape == (2, 3)
    assert made.dtype == np.float32
    assert not made.any()


def test_scalar_result_of_an_array():
    f = Handmade(SCALAR, SUM).of(square_sum)
    assert f(np.array([1.0, 2.0, 3.0])) == 14.0
    assert type(f(np.array([1.0]))) is float
    assert f(np.zeros(0)) == 0.0


def test_layout_classes_are_compiled_once_each():
    compiler = Handmade(SCALAR, SUM)
    f = compiler.of(square_sum)
    x = np.arange(6.0)
    for _ in range(3):
        assert f(x) == 55.0
        assert f(x[::2]) == 20.0
        assert f(x[::-1]) == 55.0
        assert f(x[:1]) == 0.0
    assert [r[1] for r in compiler.requests] == [("f64[?]C",), ("f64[?]S",), ("f64[1]C",)]


def test_gradient_of_an_array():
    f = Handmade(SCALAR, SUM, SUM_GRADIENT).of(square_sum)
    x = np.array([1.0, 2.0, 3.0])
    for call in (f.grad(x), f.grad(x, wrt=0), f.grad(x, wrt="x"), f.grad(x=x), f.grad(x, wrt=-1)):
        np.testing.assert_array_equal(call, 2 * x)
    (only,) = f.grad(x, wrt=("x",))
    np.testing.assert_array_equal(only, 2 * x)
    (only,) = f.grad(x, wrt=[0])
    np.testing.assert_array_equal(only, 2 * x)
    value, gradient = f.value_and_grad(x[::-1])
    assert value == 14.0
    np.testing.assert_array_equal(gradient, [6.0, 4.0, 2.0])
    assert gradient.flags.c_contiguous


def test_references_are_balanced():
    f = Handmade(SCALAR, SUM, SUM_GRADIENT).of(square_sum)
    x = np.array([1.0, 2.0, 3.0])

    def calls():
        f(x)
        f.grad(x)
        f.value_and_grad(x, wrt=("x",))

    calls()
    before = sys.getrefcount(x), sys.getrefcount(x.dtype)
    for _ in range(100):
        calls()
    assert before == (sys.getrefcount(x), sys.getrefcount(x.dtype))


ADD = """
define internal i32 @kernel(ptr %ctx, i1 %b, i64 %i, double %f, i1 %nb, i32 %ni, i64 %nl, float %ns, double %nd, ptr %r) {
  %b8 = zext i1 %b to i8
  store i8 %b8, ptr %r
  %r1 = getelementptr i64, ptr %r, i64 1
  store i64 %i, ptr %r1
  %r2 = getelementptr i64, ptr %r, i64 2
  store double %f, ptr %r2
  %r3 = getelementptr i64, ptr %r, i64 3
  %nb8 = zext i1 %nb to i8
  store i8 %nb8, ptr %r3
  %r4 = getelementptr i64, ptr %r, i64 4
  store i32 %ni, ptr %r4
  %r5 = getelementptr i64, ptr %r, i64 5
  store i64 %nl, ptr %r5
  %r6 = getelementptr i64, ptr %r, i64 6
  store float %ns, ptr %r6
  %r7 = getelementptr i64, ptr %r, i64 7
  store double %nd, ptr %r7
  ret i32 0
}
"""  # noqa: E501
TYPES = ["py_bool", "py_int", "py_float", "b1", "i32", "i64", "f32", "f64"]


def test_scalars_of_every_type_go_in_and_come_out():
    items = [{"kind": "scalar", "type": t} for t in TYPES]
    nested = {"kind": "tuple", "items": [{"kind": "none"}, {"kind": "tuple", "items": items}]}
    f = Handmade(nested, ADD).of(lambda b, i, f, nb, ni, nl, ns, nd, none=None: None)
    given = (
        True, -(2**63), 0.1, np.False_, np.int32(-7), np.int64(2**62), np.float32(0.1), np.float64(0.2),
    )  # fmt: skip
    for _ in range(2):
        none, result = f(*given)
        assert none is None
        assert result == given
        assert [type(v) for v in result] == [type(v) for v in given]
        assert f(*given, None)[1] == given
        assert f(*given, none=None)[1] == given


NOTHING = "define internal i32 @kernel(ptr %ctx, ptr %x, i64 %n, i64 %s, ptr %r) { ret i32 0 }"


def test_an_argument_that_is_returned_is_the_same_object():
    both = {"kind": "argument", "leaf": 0, "position": 0}
    f = Handmade({"kind": "tuple", "items": [both, both]}, NOTHING).of(lambda x: (x, x))
    x = np.ones(3)
    before = sys.getrefcount(x)
    a, b = f(x)
    assert a is x
    assert b is x
    del a, b
    assert sys.getrefcount(x) == before


FRESH = """
declare ptr @malloc(i64)
define internal i32 @kernel(ptr %ctx, i64 %n, ptr %r) {
  %bytes = mul i64 %n, 48
  %block = call ptr @malloc(i64 %bytes)
  store ptr %block, ptr %r
  %e0 = getelementptr i64, ptr %r, i64 1
  store i64 %n, ptr %e0
  %e1 = getelementptr i64, ptr %r, i64 2
  store i64 6, ptr %e1
  %s0 = getelementptr i64, ptr %r, i64 3
  store i64 6, ptr %s0
  %s1 = getelementptr i64, ptr %r, i64 4
  store i64 1, ptr %s1
  %again = getelementptr i64, ptr %r, i64 5
  store ptr %block, ptr %again
  %f0 = getelementptr i64, ptr %r, i64 6
  store i64 2, ptr %f0
  %t0 = getelementptr i64, ptr %r, i64 7
  store i64 3, ptr %t0
  %first = getelementptr double, ptr %block, i64 3
  store double 1.0, ptr %block
  store double 2.0, ptr %first
  ret i32 0
}
"""


def test_fresh_arrays_own_their_memory_and_share_it_when_they_are_one():
    matrix = {"kind": "array", "dtype": "f64", "rank": 2, "base": None}
    vector = {"kind": "array", "dtype": "f64", "rank": 1, "base": None}
    f = Handmade({"kind": "tuple", "items": [matrix, vector]}, FRESH).of(lambda n: None)
    for n in (1, 4, 1000):
        a, b = f(n)
        assert a.shape == (n, 6)
        assert a.flags.owndata
        assert a.flags.c_contiguous
        assert a.flags.writeable
        assert b.base is a
        assert b.tolist() == [1.0, 2.0]
        a[:] = 5.0
        assert b[1] == 5.0
        del a
        assert b.tolist() == [5.0, 5.0]


VIEW = """
define internal i32 @kernel(ptr %ctx, ptr %x, i64 %n, i64 %s, ptr %r) {
  %last = sub i64 %n, 1
  %k = mul i64 %last, %s
  %at = getelementptr float, ptr %x, i64 %k
  store ptr %at, ptr %r
  %e = getelementptr i64, ptr %r, i64 1
  store i64 %n, ptr %e
  %t = getelementptr i64, ptr %r, i64 2
  %back = sub i64 0, %s
  store i64 %back, ptr %t
  ret i32 0
}
"""


def test_views_of_arguments_have_them_as_base():
    f = Handmade({"kind": "array", "dtype": "f32", "rank": 1, "base": 0}, VIEW).of(
        lambda x: x[::-1]
    )
    x = np.arange(5, dtype=np.float32)
    y = f(x)
    assert y.base is x
    np.testing.assert_array_equal(y, x[::-1])
    assert y.flags.writeable
    x.flags.writeable = False
    assert not f(x).flags.writeable
    np.testing.assert_array_equal(f(np.arange(6, dtype=np.float32)[::2]), [4, 2, 0])


RAISE = """
define internal i32 @kernel(ptr %ctx, i64 %i, ptr %r) {
  %site = getelementptr i8, ptr %ctx, i64 80
  store i64 1, ptr %site
  %payload = getelementptr i8, ptr %ctx, i64 96
  store i64 %i, ptr %payload
  %second = getelementptr i8, ptr %ctx, i64 104
  store double 2.5, ptr %second
  %known = icmp slt i64 %i, 100
  %status = select i1 %known, i32 1, i32 3
  ret i32 %status
}
"""


def test_raise_sites_make_exceptions_with_a_note():
    site = {
        "exception": "IndexError", "message": "index {} is out of bounds, {}",
        "operands": ["index", "f64"], "file": "a.py", "line": 3, "column": 5, "source": "  x[i]",
    }  # fmt: skip
    f = Handmade(SCALAR, RAISE, sites=[{}, site]).of(lambda i: 1.0)
    for _ in range(2):
        with pytest.raises(IndexError, match=r"index 5 is out of bounds, 2\.5") as caught:
            f(5)
        assert caught.value.__notes__ == ["a.py:3:5: x[i]"]
    # No frame of ours: the compiled entry was called directly.
    shown = [(entry.filename, entry.lineno) for entry in extract_tb(caught.tb)]
    assert shown[-1] == ("a.py", 3)
    assert shown[-2][0] == __file__
    with pytest.raises(MemoryError):
        f(100)


PRINT = """
define internal i32 @kernel(ptr %ctx, ptr %x, i64 %n, i64 %s, ptr %r) {
  %at = getelementptr i8, ptr %ctx, i64 64
  %print = load ptr, ptr %at
  %values = alloca [4 x i64]
  store double 1.5, ptr %values
  %v1 = getelementptr i64, ptr %values, i64 1
  store ptr %x, ptr %v1
  %v2 = getelementptr i64, ptr %values, i64 2
  store i64 %n, ptr %v2
  %v3 = getelementptr i64, ptr %values, i64 3
  store i64 %s, ptr %v3
  %failed = call i32 %print(ptr %ctx, i64 0, ptr %values)
  %status = mul i32 %failed, 2
  store double 0.0, ptr %r
  ret i32 %status
}
"""


def test_print_goes_through_python(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    f = Handmade(
        SCALAR, PRINT, sites=[{"print": "a {} b {}", "operands": ["f64", "memref<f64,1>"]}]
    )
    g = f.of(lambda x: print("a", 1.5, "b", x))
    g(np.array([1.0, 2.0]))
    assert capsys.readouterr().out == "a 1.5 b [1. 2.]\n"

    class Broken:
        def write(self, text: str) -> int:
            raise OSError("disk full")

    monkeypatch.setattr(sys, "stdout", Broken())
    with pytest.raises(OSError, match="disk full"):
        g(np.array([1.0, 2.0]))


SPIN = """
define internal i32 @kernel(ptr %ctx, i64 %n, ptr %r) {
entry:
  %at = getelementptr i8, ptr %ctx, i64 56
  %poll = load ptr, ptr %at
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %raised = call i32 %poll(ptr %ctx)
  %next = add i64 %i, 1
  %some = icmp ne i32 %raised, 0
  %done = icmp sge i64 %next, %n
  %stop = or i1 %some, %done
  br i1 %stop, label %end, label %loop
end:
  %status = select i1 %some, i32 2, i32 0
  store double 1.0, ptr %r
  ret i32 %status
}
"""


@pytest.mark.usefixtures("interruptible")
def test_a_signal_interrupts_a_running_kernel():
    f = Handmade(SCALAR, SPIN).of(lambda n: 1.0)
    assert f(10) == 1.0
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        f(2**62)
    timer.join()
    assert f(10) == 1.0


WAIT = """
define internal i32 @kernel(ptr %ctx, ptr %x, i64 %n, i64 %s, ptr %r) {
entry:
  br label %loop
loop:
  %v = load atomic i64, ptr %x acquire, align 8
  %go = icmp ne i64 %v, 0
  br i1 %go, label %end, label %loop
end:
  store double 1.0, ptr %r
  ret i32 0
}
"""


def test_python_runs_while_a_kernel_does():
    f = Handmade(SCALAR, WAIT).of(lambda x: 1.0)
    x = np.ones(2, np.int64)
    f(x)
    x[0] = 0
    results: list[float] = []
    thread = threading.Thread(target=lambda: results.append(f(x)))
    thread.start()
    time.sleep(0.05)
    assert not results
    x[0] = 1
    thread.join(5)
    assert results == [1.0]


SCALARS = """
define internal i32 @kernel(ptr %ctx, ptr %x, i64 %n, i64 %s, double %k, ptr %dx, i64 %dn, i64 %ds, double %bar, ptr %r) {
  %v = load double, ptr %x
  %p = fmul double %v, %k
  store double %p, ptr %r
  %old = load double, ptr %dx
  %t = fmul double %k, %bar
  %new = fadd double %old, %t
  store double %new, ptr %dx
  %at = getelementptr i64, ptr %r, i64 1
  %kbar = fmul double %v, %bar
  store double %kbar, ptr %at
  ret i32 0
}
"""  # noqa: E501


@pytest.mark.parametrize("kind", [float, np.float64])
def test_gradients_of_scalars_have_their_type(kind: Any):
    from mutad.compiler.codegen.entries.entry import GradientSignature

    f = Handmade(SCALAR, "", SCALARS, active=GradientSignature((0,), (0,), (1,))).of(
        lambda x, k: 0.0
    )
    x = np.array([3.0, 1.0])
    for _ in range(2):
        value, (dx, dk) = f.value_and_grad(x, kind(4.0), wrt=("x", "k"))
        assert value == 12.0
        assert dx.tolist() == [4.0, 0.0]
        assert dk == 3.0
        assert type(dk) is kind
        dk, dx = f.grad(x, kind(4.0), wrt=("k", "x"))
        assert (dk, dx.tolist()) == (3.0, [4.0, 0.0])
        assert f.grad(x, kind(4.0), wrt="k") == 3.0
