"""What lies outside the language is refused: where, what, and the way out."""

from __future__ import annotations

import functools
import inspect
import linecache
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from mutad.compiler.diagnostics import CompileError
from mutad.compiler.frontend.build import build_function

CASES: list[tuple[Callable[..., Any], tuple[str, ...], str, str]] = []
OUTSIDE = np.arange(3.0)


def refused(
    *arguments: str, at: str, says: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function is refused for these arguments, at the text `at`, with the words `says`."""

    def record(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, arguments, at, says))
        return function

    return record


class Thing:
    factor = 2.0


THING = Thing()


@refused("f64[?]C", at="x.shape", says="y = y.reshape")
def changes_the_shape_of_the_caller_s_array(x):
    x.shape = (2, 2)
    return x.sum()


@refused("f64[?]C", at="y.shape", says="another path")
def changes_the_shape_on_one_path(x):
    y = x * 2.0
    if x[0] > 0.0:
        y.shape = (2, 2)
    return y.sum()


@refused("f64[?]C", at="y.shape", says="another path")
def changes_the_shape_of_one_of_two_arrays(x):
    y = x * 2.0
    z = y if x[0] > 0.0 else x
    y.shape = (2, 2)
    return z.sum()


@refused("f64[?]C", at="y.shape", says="a list may hold")
def changes_the_shape_of_an_item(x):
    made = []
    y = x * 2.0
    made.append(y)
    y.shape = (1, -1)
    return made[0].sum()


@refused("f64[?]C", at="y.shape", says="an object")
def changes_the_shape_of_a_method_s_array(x):
    y = x * 2.0
    total = y.sum
    y.shape = (2, 2)
    return total()


@refused("f64[?]C", at="y.shape", says="an object")
def changes_the_shape_of_an_argument_kept(x):
    y = x * 2.0
    total = functools.partial(np.sum, y)
    y.shape = (2, 2)
    return total()


@refused("f64[?]C", at="y.shape", says="another path")
def changes_the_shape_of_a_default(x):
    y = x * 2.0

    def first(of=y):
        return of[0]

    y.shape = (2, 2)
    return first().sum()


@refused("f64[?,?]C", at="y.shape", says="y = y.reshape")
def changes_the_shape_of_a_transposed_array(a):
    y = a.T
    y.shape = (-1,)
    return y.sum()


@refused("f64[?]C", at="x.dtype", says="astype")
def assigns_a_dtype(x):
    x.dtype = np.int64
    return x.sum()


@refused("f64[?]C", at="x.flat", says="x[...] = ...")
def assigns_through_flat(x):
    x.flat = 1.0
    return x.sum()


@refused("py_float", at="try:", says="use `except`")
def catches_groups(x):
    try:
        return math.sqrt(x)
    except* ValueError:
        x = 0.0
    return x


@refused("py_float", at="raise", says="in an `except` clause only")
def raises_nothing_again(x):
    if x > 0:
        x += 1.0
        raise
    return x


@refused("f64[?]C", at="raise Stateful(3, x)", says="not a number, string, None")
def raises_with_an_array_that_is_caught(x):
    try:
        raise Stateful(3, x)
    except Stateful as e:
        return e.code


@refused("f64[?]C", at="raise Stateful(x, x)", says="not a number, string, None")
def raises_with_an_array(x):
    raise Stateful(x, x)


@refused("py_float", at="Unmade(3)", says="defines `__new__`")
def raises_what_makes_itself(x):
    raise Unmade(3)


class Stateful(Exception):
    def __init__(self, step, code):
        super().__init__(step)
        self.code = code


class Unmade(Exception):
    def __new__(cls, code):
        return super().__new__(cls, code)


@refused("py_float", at="raise Hidden", says="top of a module")
def raises_what_has_no_name(x):
    raise Hidden


Hidden = type("Unknown", (Exception,), {})


@refused("py_float", "py_float", at='f"{e}"', says="an `except` for each")
def keeps_what_one_of_several_says(x, y):
    try:
        return math.sqrt(x) / y
    except (ValueError, ZeroDivisionError) as e:
        text = f"{e}"
        print(text)
        return 0.0


@refused("py_float", at="x:", says="name classes of exceptions")
def catches_a_number(x):
    try:
        return math.sqrt(x)
    except x:
        return 0.0


@refused("py_int", at='"raise"', says="test for the condition")
def enters_a_context(n):
    with np.errstate(divide="raise"):
        return n


@refused("py_int", at="os.getpid()", says="is not compiled")
def imports(n):
    import os

    return os.getpid() + n


@refused("py_int", at="global COUNT", says="return the value")
def writes_a_global(n):
    global COUNT
    COUNT = n


@refused("py_int", at="n", says="may be read after")
def deletes_what_is_read(n):
    del n
    return n  # noqa: F821


@refused("py_int", at="np", says="use it outside the function")
def enters_another_context(n):
    with np:
        return n


@refused("py_int", at="thing", says="no `__enter__`")
def enters_what_is_no_context(n):
    thing = Thing()
    with thing:
        return n


@refused("(py_int,py_int)", at='{"x": 1, **rest}', says="use if and elif")
def matches_the_rest_of_a_mapping(pair):
    match pair:
        case {"x": 1, **rest}:
            return len(rest)


@refused("py_float", at="OUTSIDE", says="pass it as an argument")
def reads_a_captured_array(a):
    return OUTSIDE.sum() * a


@refused("py_float", at="THING.factor", says="pass its value as an argument")
def reads_an_attribute(a):
    return THING.factor * a


@refused("py_int", "py_int", at="a, b, c", says="2 values are unpacked into 3")
def unpacks_too_many(n, m):
    a, b, c = n, m
    return a + b + c


@refused("f64[?]C", at="rest(x, 2)", says="a view of an array that the caller has")
def returns_a_view_of_an_argument(x):
    def rest(v, i):
        return v[1:] if i == 0 else rest(v, i - 1)

    return rest(x, 2)


@refused("f64[?]C", at="halves(x, 2)", says="arrays that share memory")
def returns_a_new_array_twice(x):
    def halves(v, i):
        y = v * 0.5
        return (y, y[1:]) if i == 0 else halves(y, i - 1)

    return halves(x, 2)


@refused("f64[?]C", at="doubled(x, 2)", says="None or another value: the path decides")
def returns_none_or_an_array(x):
    def doubled(v, i):
        if i == 0:
            return None
        return v * 2.0 if i == 1 else doubled(v, i - 1)

    return doubled(x, 2)


@refused(
    "f64[?]C", at="best(q, s, i - 1)", says="it was given or another one, which depends on the path"
)
def returns_one_object_or_another(x):
    def best(s, q, i):
        if i == 0:
            return s if s["t"] > q["t"] else q
        return best(q, s, i - 1)

    a, b = {"t": x[0]}, {"t": x[1]}
    return best(a, b, 2)["t"]


@refused("py_int", at="kept(p, 1)", says="an object in two places")
def returns_an_object_that_it_keeps(n):
    def kept(s, i):
        if i == 0:
            inner = {"t": 1.0}
            s["inner"] = inner
            return inner
        return kept(s, i - 1)

    p = {"inner": {"t": 0.5}}
    return kept(p, 1)["t"] + n


@refused("py_int", at="listed(n)", says="a list of its own")
def returns_a_list_of_each_activation(n):
    def listed(k):
        return [1.0] if k == 0 else listed(k - 1)

    return listed(n)


@refused("py_int", at="total(path + [n], n - 1)", says="append, call, pop")
def hands_on_new_lists(n):
    def total(path, n):
        return sum(path) if n == 0 else total(path + [n], n - 1)

    return total([1], n)


@refused("py_int", at="collect(n)", says="a list grows in the recursive collect()")
def collects_in_a_list_of_each_activation(n):
    def collect(k):
        found = []
        while k * len(found) < k:
            found.append(k)
        return 0 if k == 0 else len(found) + collect(k - 1)

    return collect(n)


@refused("py_int", at="nested(n - 1, (deeper, n))", says="the same types in every call")
def nests(n):
    def nested(n, deeper):
        return 0 if n == 0 else nested(n - 1, (deeper, n))

    return nested(n, n)


@refused("py_int", at="undefined_name", says="'undefined_name' is not defined")
def reads_what_is_not_there(n):
    return n + undefined_name  # noqa: F821


@refused("py_int", at="late", says="is read before it is assigned")
def reads_too_early(n):
    total = n + late  # noqa: F821
    late = 3
    return total + late


@refused("py_int", "f64[?]C", at="if n > 0:", says="of this branch")
def gives_two_kinds(n, x):
    if n > 0:
        y = x
    else:
        y = 0.0
    return y


@refused("py_int", "f64[?]C", at="if n > 0:", says="rank 1 on one path and of rank 2")
def gives_two_ranks(n, x):
    if n > 0:
        y = x
    else:
        y = np.zeros((3, 3))
    return y.sum()


@refused(
    "py_int", at="if n > 0:", says="`steps` is a range or an iterator on each path of this branch"
)
def gives_two_ranges(n):
    if n > 0:
        steps = range(n)
    else:
        steps = range(n, 0)
    return sum(steps)


@refused("py_int", "f64[?]C", at="if n > 0:", says="`y` is assigned here\n                y = x\n")
def names_the_one_assignment(n, x):
    if n > 0:
        y = x
    else:
        y = np.zeros((3, 3))
    return y.sum()


@refused(
    "py_int", "f64[?]C", at="if n > 0:", says="`y` is assigned here\n                y = np.zeros"
)
def names_the_other_assignment(n, x):
    if n > 0:
        y = x
    else:
        y = np.zeros((3, 3))
    return y.sum()


@refused("py_int", at="for _ in range(n):", says="of this loop")
def has_more_and_more_rank(n):
    s = 0.0
    for _ in range(n):
        s = np.stack((s, s))
    return s


@refused("f64[?]C", "f64[?]C", "py_int", at="for i in range(n):", says="made before the loop")
def is_written_to_and_may_be_part_of_another_array(u, v, n):
    for i in range(n):
        u[0] = 0.0
        u = v[1:] if i % 3 == 1 else u * 2.0
    return u


@refused("f64[?,?]C", "f64[?]C", "py_int", at="for _ in range(n):", says="`reshape`, `ravel`")
def is_a_vector_or_all_of_a_matrix(a, x, n):
    v = x
    for _ in range(n):
        v[1] += v[0]
        v = a.reshape(-1)
    return v.sum()


@refused("f64[?]C", "py_int", at="for i in range(n):", says="an array that has another name too")
def two_names_for_parts_of_one_array_of_a_loop(x, n):
    r = x
    for i in range(n):
        t = x * i
        if i > 1:
            r = t[1:]
    return r.sum() + t.sum()


@refused("f64[?]C", "py_int", at="s", says="read in the loop before the loop assigns it")
def never_bound_before_it_is_read(x, n):
    for i in range(n):
        s = s + x[i]  # noqa: F821 - bound later, or never
    return s


@refused("f64[?]C", at="x:", says="reduce it: ")
def array_as_a_condition(x):
    if x:
        return 1
    return 0


@refused("f64[?]C", at="min(x)", says="x.min()")
def builtin_min_of_an_array(x):
    return min(x)


@refused("f64[?]C", at="math.exp(x)", says="NumPy")
def math_of_an_array(x):
    return math.exp(x)


@refused("py_int", at="math.ulp(n)", says="is not compiled")
def unknown_math(n):
    return math.ulp(n)


@refused("f64[?,?]C", at="np.array(a, dtype=np.float32, copy=False)", says="cannot be avoided")
def copy_that_is_needed(a):
    return np.array(a, dtype=np.float32, copy=False)


@refused("f64", at="np.nan_to_num(s, copy=False)", says="copy=False")
def number_in_place(s):
    return np.nan_to_num(s, copy=False)


@refused("f64[?,?]C", "py_bool", at="np.array(a, copy=c)", says="known while compiling")
def copy_that_the_caller_decides(a, c):
    return np.array(a, copy=c)


@refused("f64[?,?]C", at="np.roll(a, 1, axis)", says="`axis` must be known while compiling")
def axis_of_a_loop(a):
    return sum(np.roll(a, 1, axis)[0, 0] for axis in range(2))


@refused("f64[?,?]S", at="np.diagonal(a)", says="it is a view")
def diagonal_with_gaps(a):
    return np.diagonal(a).sum()


@refused("f64[?,?]C", at="np.linalg.svd(a)", says="is not compiled")
def unknown_numpy(a):
    return np.linalg.svd(a)


@refused("py_int", at="hash", says="is not compiled")
def unknown_builtin(n):
    return hash(n)


@refused("py_int", at="helper(n, 1, 2)", says="takes 1 positional arguments but 3 were given")
def calls_wrongly(n):
    return helper(n, 1, 2)


def helper(n):
    return n


@refused("f64[?]C", "py_int", at="i]", says="put the values in an array")
def indexes_a_tuple(x, i):
    return (x, 2.0)[i]


@refused("py_int", at="n is n", says="use `==`")
def compares_objects(n):
    return n is n


@refused("py_int", at="n @ 2", says="needs arrays")
def multiplies_matrices_of_numbers(n):
    return n @ 2


@refused("py_int", at="(m := n - 1) > 3", says="assign before the loop")
def names_inside_the_condition_of_a_loop_with_an_else(n):
    while (m := n - 1) > 3:
        n = m
    else:
        n = -1
    return n


@refused("py_float", at="def makes_text", says="return")
def makes_text(x):
    return f"{x:.3f}"


@refused("f64[?]C", at="x.ctypes", says=".ctypes")
def unknown_attribute(x):
    return x.ctypes


@refused("py_float", at="1j", says="complex")
def complex_number(x):
    return x + 1j


@refused("f64[?]C", at="'')", says="`end=`")
def prints_without_an_end(x):
    print(x, end='')  # fmt: skip


@refused("f64[?]C", "py_int", at="def gives_one_or_the_other", says="return a copy")
def gives_one_or_the_other(x, n):
    return x[1:] if n > 0 else x * 2


@pytest.mark.parametrize("case", CASES, ids=lambda c: c[0].__name__)
def test_refused(case: tuple[Callable[..., Any], tuple[str, ...], str, str]) -> None:
    """The error stands at the right text of the right line, and says what to do."""
    function, arguments, at, says = case
    with pytest.raises(CompileError) as caught:
        build_function(function, arguments)
    error, span = caught.value, caught.value.span
    assert span is not None
    assert span.file == __file__
    assert span.source()[span.column :].startswith(at), str(error)
    assert says in str(error)
    lines, first = inspect.getsourcelines(function)
    assert f"{__file__}:{span.line}:{span.column + 1}: error:" in str(error)
    assert "^" in str(error)
    assert first <= span.line < first + len(lines)


@pytest.mark.parametrize("kept", [None, "def f(x):\n    return 2 * x\n", "import sys\n"])
def test_a_function_without_source_is_refused(kept: str | None, monkeypatch: Any) -> None:
    if kept is not None:  # what Python 3.13 keeps of `python -c`, under the same name
        lines = kept.splitlines(keepends=True)
        monkeypatch.setitem(linecache.cache, "<string>", (len(kept), None, lines, "<string>"))
    namespace: dict[str, Any] = {}
    exec("def f(x):\n    return x\n", namespace)
    with pytest.raises(CompileError, match="source of f is not available"):
        build_function(namespace["f"], ("py_int",))
