"""Foreign functions: C function pointers, SciPy's special functions, opaque Python functions."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable
from typing import Any

import cffi
import numpy as np
import pytest
from scipy.special import cython_special

import mutad

libm = ctypes.CDLL("libm.so.6")
lgamma = libm.lgamma
lgamma.argtypes, lgamma.restype = [ctypes.c_double], ctypes.c_double
sinf = libm.sinf
sinf.argtypes, sinf.restype = [ctypes.c_float], ctypes.c_float
ldexp = libm.ldexp
ldexp.argtypes, ldexp.restype = [ctypes.c_double, ctypes.c_int], ctypes.c_double
lround = libm.lround
lround.argtypes, lround.restype = [ctypes.c_double], ctypes.c_long
ilogb = libm.ilogb
ilogb.argtypes, ilogb.restype = [ctypes.c_double], ctypes.c_int
undeclared = ctypes.CDLL("libm.so.6").cosh

vector = np.ctypeslib.ndpointer(np.float64, ndim=1, flags="C_CONTIGUOUS")
memcpy = ctypes.CDLL(None).memcpy
memcpy.argtypes, memcpy.restype = [vector, vector, ctypes.c_size_t], None

ffi = cffi.FFI()
ffi.cdef("double lgamma(double); float sinf(float); double ldexp(double, int);")
_lib = ffi.dlopen("libm.so.6")
c_lgamma, c_sinf, c_ldexp = _lib.lgamma, _lib.sinf, _lib.ldexp


@mutad.opaque
def scale(x, k):
    x *= k


@mutad.opaque(returns=float)
def norm(x):
    return float(np.sqrt((x * x).sum()))


@mutad.opaque
def kind(a: float, b: int, c: bool) -> float:
    assert (type(a), type(b), type(c)) == (float, int, bool)
    return a + b + c


@mutad.opaque(returns=np.float64)
def strong(a):
    assert type(a) is np.float64
    return np.float64(1.0) / a


@mutad.opaque
def touch(x):
    x[0] = 1.0


@mutad.opaque(returns=int)
def count(x):
    return x.ndim * 1000 + x.shape[0]


def special(x):
    return cython_special.j0(x[0]), cython_special.gamma(x[1]), cython_special.jv(2.0, x[2])


def of_ctypes(x, n):
    return lgamma(x), sinf(x), ldexp(x, n), lround(x * n), ilogb(x)


def of_cffi(x, n):
    return c_lgamma(x), c_sinf(x), c_ldexp(x, n)


def in_a_loop(x):
    total = 0.0
    for v in x:
        if v > 0.5:
            total += lgamma(v) * norm(x)
        scale(x, 1.5)
        if total > 40.0:
            break
    return total


def views(a):
    scale(a[1], 2.0)
    scale(a[:, ::-2], 3.0)
    scale(a.T[:2], 0.5)
    return norm(a[::-1, 0]), count(a[:, 1:].T), count(a[0])


def of_scratch(x):
    y = x * 2
    scale(y, 3.0)
    z = y + x
    touch(z)
    return z, norm(y)


def copied(x):
    y = np.empty(x.size)
    memcpy(y, x, 8 * x.size)
    return y


def kinds(x, n):
    return kind(x, n, n > 3), strong(np.float64(x))


PROGRAMS: list[tuple[Callable[..., Any], tuple[Any, ...]]] = [
    (special, (np.array([0.5, 1.5, 2.5]),)),
    (of_ctypes, (2.75, 3)),
    (of_ctypes, (1e-3, -7)),
    (of_cffi, (2.75, 3)),
    (in_a_loop, (np.linspace(0.1, 2.0, 7),)),
    (in_a_loop, (np.empty(0),)),
    (views, (np.arange(12.0).reshape(3, 4),)),
    (views, (np.asfortranarray(np.arange(12.0).reshape(3, 4)),)),
    (of_scratch, (np.arange(4.0) + 1,)),
    (copied, (np.arange(5.0),)),
    (kinds, (2.5, 4)),
]


@pytest.mark.parametrize(("program", "args"), PROGRAMS, ids=lambda p: getattr(p, "__name__", ""))
def test_does_what_cpython_does(program: Callable[..., Any], args: tuple[Any, ...]) -> None:
    def copies() -> list[Any]:
        return [a.copy(order="K") if isinstance(a, np.ndarray) else a for a in args]

    expected_args, actual_args = copies(), copies()
    expected = program(*expected_args)
    actual = mutad.compile(program)(*actual_args)

    def flat(value):
        return value if isinstance(value, tuple) else (value,)

    for theirs, ours in zip(flat(expected), flat(actual), strict=True):
        assert type(theirs) is type(ours)
        np.testing.assert_array_equal(theirs, ours)
    for theirs, ours in zip(expected_args, actual_args, strict=True):
        np.testing.assert_array_equal(theirs, ours)


def test_what_an_opaque_function_raises_comes_as_it_is() -> None:
    raised = KeyError("mine")

    @mutad.opaque
    def fails(x):
        x[1] = 7.0
        raise raised

    @mutad.compile
    def program(x):
        x[0] = 5.0
        fails(x)
        x[2] = 9.0

    x = np.zeros(3)
    with pytest.raises(KeyError) as caught:
        program(x)
    assert caught.value is raised
    np.testing.assert_array_equal(x, [5.0, 7.0, 0.0])


def test_a_result_of_another_type_than_declared_raises() -> None:
    @mutad.opaque(returns=float)
    def wrong(x):
        return 1

    @mutad.opaque
    def surprising(x):
        return 1.0

    with pytest.raises(TypeError, match="wrong returned int, not float"):
        mutad.compile(lambda x: wrong(x))(1.0)
    with pytest.raises(TypeError, match="surprising returned float, not None"):
        mutad.compile(lambda x: surprising(x))(1.0)


def test_an_array_that_is_kept_raises() -> None:
    kept = []

    @mutad.opaque
    def keeps(x):
        kept.append(x[1:])

    with pytest.raises(RuntimeError, match="kept or returned an array"):
        mutad.compile(lambda x: keeps(x * 2))(np.ones(3))
    kept.clear()


def test_arrays_that_a_rule_does_not_declare_to_be_overwritten_are_read_only() -> None:
    @mutad.opaque
    def stores(x):
        x[0] = 1.0

    @stores.rule
    def stores_rule(x):  # pyright: ignore[reportUnusedFunction]
        pass

    with pytest.raises(ValueError, match="read-only"):
        mutad.compile(lambda x: stores(x))(np.zeros(3))


def test_an_opaque_function_without_rule_may_store_to_all_arrays() -> None:
    @mutad.compile
    def program(x):
        touch(x)
        return x[0]

    x = np.zeros(2)
    assert program(x) == 1.0
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        program(x)


def test_threads_call_back_at_once() -> None:
    @mutad.opaque(returns=float)
    def square(v):
        return float(v * v)

    @mutad.compile
    def program(x):
        total = 0.0
        for v in x:
            total += square(v)
        return total

    x = np.arange(200.0)
    found: list[float] = []
    threads = [threading.Thread(target=lambda: found.append(program(x))) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert found == [(x * x).sum()] * 4


def test_a_function_that_is_rebound_is_compiled_anew() -> None:
    namespace: dict[str, Any] = {"f": mutad.opaque(returns=float)(lambda x: x + 1.0)}
    program = mutad.compile(_reads_f(namespace))
    assert program(1.0) == 2.0
    namespace["f"] = mutad.opaque(returns=float)(lambda x: x + 2.0)
    assert program(1.0) == 3.0
    namespace["f"] = lgamma
    assert program(3.0) == lgamma(3.0)


def _reads_f(namespace: dict[str, Any]) -> Any:
    import types

    def program(x):
        return f(x)  # noqa: F821  # pyright: ignore

    return types.FunctionType(program.__code__, namespace)


def test_code_from_disk_calls_the_functions_of_this_process(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path / "cache"))

    def program(x):
        return lgamma(x) + cython_special.j0(x) + norm(np.ones(3) * x) + c_lgamma(x)

    first = mutad.compile(program)
    expected = program(2.5)
    assert first(2.5) == pytest.approx(expected)
    again = mutad.compile(program)

    def no_compiler(*_args: Any) -> None:
        raise AssertionError("compiled, and not loaded")

    monkeypatch.setattr(type(again._dispatcher.compiler), "compile", no_compiler)  # pyright: ignore
    assert again(2.5) == pytest.approx(expected)


def stopped(x, k):
    y = mutad.stop_gradient(x) * k
    z = mutad.stop_gradient(x)
    z[0] = 7.0
    return y, z, mutad.stop_gradient(k), mutad.stop_gradient(x.size)


@pytest.mark.parametrize("order", ["C", "F"])
def test_stop_gradient_is_the_value(order: Any) -> None:
    x = np.array(np.arange(6.0).reshape(2, 3), order=order)
    for theirs, ours in zip(stopped(x.copy(), 2.0), mutad.compile(stopped)(x, 2.0), strict=True):
        np.testing.assert_array_equal(theirs, ours)
        assert type(theirs) is type(ours)
    np.testing.assert_array_equal(x, np.arange(6.0).reshape(2, 3))


def test_stop_gradient_of_an_array_makes_no_array_where_it_is_only_read() -> None:
    def program(x):
        return (mutad.stop_gradient(x) * x).sum()

    text = mutad.compile(program).inspect("optimize", np.ones(3))
    assert "array.alloc" not in text
