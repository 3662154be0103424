"""Callables around one Python function: those that only run it are compiled along, and no others."""

import functools
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import CompileError, check_gradient, compile
from mutad.runtime.wrappers import FAST, options_of


class Jitted:
    """What numba's `jit` makes, as far as it is known here."""

    def __init__(self, function: Any, **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.py_func, self.targetoptions = function, {"nopython": True, **options}

    def __call__(self, *args: Any) -> Any:
        return self.py_func(*args)


Jitted.__module__ = "numba.core.registry"
PRANGE = type("prange", (), {"__new__": lambda cls, *args: range(*args)})
PRANGE.__module__ = "numba.misc.special"
prange: Any = PRANGE


@Jitted
def total(x):
    s = 0.0
    for i in prange(x.size):
        s += x[i] * x[i]
    return s


@functools.lru_cache
def remembered(v):
    return v * v + 1.0


class Twice:
    """Does more than call what it wraps."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)
        self.function = function

    def __call__(self, v: Any) -> Any:
        return 2.0 * self.function(v)


@Twice
def shifted(v):
    return v + 1.0


class Vectorized:
    """numba's `vectorize`: it loops over arrays, and converts."""

    def __init__(self, function: Any) -> None:
        functools.update_wrapper(self, function)
        self.targetoptions = {"nopython": True}


Vectorized.__module__ = "numba.np.ufunc.dufunc"


@Vectorized
def elementwise(v):
    v += 1.0
    return v


plain_elementwise = elementwise.__wrapped__
X = np.array([1.5, -2.0, 3.0])


def calls_all(x):
    return total(x) + remembered(x[0]) + shifted(x[1])


def test_what_only_runs_a_function_is_compiled_along() -> None:
    want = total.py_func(X) + remembered(X[0]) + shifted(X[1])
    assert compile(calls_all)(X) == want
    check_gradient(compile(grad=True)(calls_all), X.copy())


def test_a_jitted_function_is_compiled_as_its_python_function() -> None:
    f = compile(grad=True)(total)
    assert f(X) == total.py_func(X)
    np.testing.assert_array_equal(f.grad(X), 2.0 * X)
    np.testing.assert_array_equal(mutad.grad(total)(X), 2.0 * X)
    assert compile(remembered)(2.0) == 5.0


def test_jitted_functions_are_arguments() -> None:
    def applied(f, x):
        return f(x) + 1.0

    f = compile(applied)
    assert f(total, X) == total.py_func(X) + 1.0
    assert f(total.py_func, X) == total.py_func(X) + 1.0


@pytest.mark.parametrize("function", [np.sum, np.trapezoid, np.linalg.norm, np.sin, len])
def test_numpys_functions_are_arguments(function: Any) -> None:
    def applied(x, f=np.sum):
        y = f(x)
        return y * 2

    compiled = compile(applied)
    np.testing.assert_allclose(compiled(X, function), applied(X, function), rtol=1e-15)
    np.testing.assert_allclose(compiled(X), applied(X), rtol=1e-15)


@pytest.mark.parametrize(
    ("given", "fastmath", "boundscheck"),
    [
        ({}, False, True),
        ({"boundscheck": None, "parallel": True, "error_model": "numpy"}, False, True),
        ({"fastmath": True, "boundscheck": False}, True, False),
        ({"fastmath": {"nnan", "reassoc"}, "boundscheck": True}, False, True),
        ({"fastmath": FAST}, True, True),
        ({"fastmath": {"fast"}}, True, True),
        ({"fastmath": {"contract": True}}, False, True),
    ],
)
def test_options_keep_their_meaning(given: Any, fastmath: bool, boundscheck: bool) -> None:
    options = compile(Jitted(total.py_func, **given)).options
    assert (options["fastmath"], options["boundscheck"]) == (fastmath, boundscheck)
    assert options["parallel"] == given.get("parallel", False)


def test_options_that_are_given_here_win() -> None:
    f = Jitted(total.py_func, fastmath=True, boundscheck=False)
    options = compile(f, fastmath=False, boundscheck=True).options
    assert (options["fastmath"], options["boundscheck"]) == (False, True)
    assert options_of(total.py_func) == {}


def test_others_that_wrap_are_refused_with_a_way_out() -> None:
    def mapped(x):
        return elementwise(x)

    def looped(x):
        y = np.empty_like(x)
        for i in range(x.size):
            y[i] = plain_elementwise(x[i])
        return y

    with pytest.raises(
        CompileError, match=r"may do more than call what it wraps(.|\n)*__wrapped__"
    ):
        compile(mapped)(X)
    np.testing.assert_array_equal(compile(looped)(X), X + 1.0)
    with pytest.raises(TypeError, match=r"not Vectorized: compile elementwise\.__wrapped__"):
        compile(elementwise)
    assert compile(elementwise.__wrapped__)(1.0) == 2.0


def test_a_constant_that_is_wrapped_is_watched() -> None:
    around = {"k": 2.0}

    @Jitted
    def scaled(v):
        return around["k"] * v

    f = compile(lambda x: scaled(x[0]))
    assert f(X) == 3.0
    around["k"] = 3.0
    assert f(X) == 4.5


class Plain:
    """No instance of it can be called, though the class itself can."""


def asks_for_types(x):
    plain = Plain()
    return (
        str(type(x)) == "<class 'numpy.ndarray'>", "float64" in str(type(x[0])),
        str(type(x.size)).startswith("<class 'int"), "word" == "word",
        callable(plain), callable(shifted), callable(Plain), callable(x),
    )  # fmt: skip


def test_words_for_types_and_what_can_be_called() -> None:
    assert compile(asks_for_types)(X) == asks_for_types(X)


def test_what_a_method_of_a_string_does_not_take_is_refused() -> None:
    def joined(x):
        names = []
        if x > 0.0:
            names.append("a")
        print(" and ".join(names))
        return x

    def found(x):
        return "abc".index("z") + x

    for f in (joined, found):
        with pytest.raises(
            CompileError, match=r"of strings is not compiled|is not compiled"
        ) as raised:
            compile(f)(1.0)
        assert "own fault" not in str(raised.value)


class Scaled:
    """A method is behind an object that doubles what it returns."""

    def __init__(self, by: float) -> None:
        self.by = by

    @Twice
    def wrapped(self, v):
        return self.by * v


def test_methods_behind_objects_are_not_looked_through() -> None:
    def method(by):
        return Scaled(by).wrapped(2.0)

    with pytest.raises(CompileError):
        compile(method)(3.0)
