"""What new users write and mutad refuses: the place, the reason and the way out of each.

A row is a program, with the text that the caret is under, words of the reason and of the way out, and the
program that heeds it. Parameters are called after what they are: a vector `x`, a matrix `m`, a square `q`,
integers `i`, a number `n`, a list of numbers `values`, a dict `d`, an object `g`, a generator `rng`.
"""

from __future__ import annotations

import collections
import copy
import datetime
import decimal
import fractions
import io
import itertools
import json
import logging
import math
import os
import random
import re
import sys
import threading
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import scipy.integrate
import scipy.optimize
import scipy.sparse
import scipy.special
import scipy.special.cython_special
import scipy.stats
from numpy.lib.stride_tricks import as_strided, sliding_window_view

import mutad


class Grid:
    def __init__(self, n):
        self.n = n


MAKE: dict[str, Callable[[], Any]] = {
    "x": lambda: np.array([3.0, 1.0, 2.0]),
    "m": lambda: np.arange(6.0).reshape(2, 3) + 1.0,
    "q": lambda: np.arange(9.0).reshape(3, 3) + 9.0 * np.eye(3),
    "i": lambda: np.array([2, 0, 1]),
    "n": lambda: 3,
    "values": lambda: [1.0, 2.0],
    "d": lambda: {"a": 1.0},
    "g": lambda: Grid(2.0),
    "rng": lambda: np.random.default_rng(1),
}
"""By the name of a parameter, what is passed."""


@dataclass(frozen=True)
class Program:
    function: Callable[..., Any]
    at: str
    why: str
    way_out: str
    """"" where there is none: what is wrong is wrong in CPython and NumPy, too."""
    instead: Callable[..., Any] | None


@dataclass(frozen=True)
class Call:
    name: str
    call: Callable[[], Any]
    exception: type[Exception]
    why: str
    instead: Callable[[], Any] | None
    """What to call instead, and what it gives."""


PROGRAMS: list[Program] = []
CALLS: list[Call] = []

ASIDE = "@mutad.opaque (and @mutad.rule"
"""Part of the way out that there is where there is no better one."""


def wrong(
    at: str, why: str, way_out: str = "", instead: Callable[..., Any] | None = None
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def record(function: Callable[..., Any]) -> Callable[..., Any]:
        PROGRAMS.append(Program(function, at, why, way_out, instead))
        return function

    return record


def wrong_call(
    name: str,
    call: Callable[[], Any],
    why: str,
    instead: Callable[[], Any] | None = None,
    exception: type[Exception] = TypeError,
) -> None:
    CALLS.append(Call(name, call, exception, why, instead))


# What only Python can run, in functions of which compiled code does not look into.


@mutad.opaque(returns=float)
def now():
    return 0.5 * float(time.time() > 0.0)


@mutad.opaque(returns=float)
def first_power(x):
    return float(np.abs(np.fft.rfft(x))[0])


@mutad.opaque(returns=float)
def largest_eigenvalue(q):
    return float(np.linalg.eigvalsh(q + q.T)[-1])


@mutad.opaque(returns=float)
def first_singular(q):
    return float(np.linalg.svd(q, compute_uv=False)[0])


@mutad.opaque(returns=float)
def corner_of_r(q):
    return float(abs(np.linalg.qr(q)[1][0, 0]))


@mutad.opaque(returns=None)
def told(x):
    logging.getLogger("wrong").debug("%s", x)


@mutad.opaque(returns=int)
def written(x):
    return len(json.dumps([float(v) for v in x]))


@mutad.opaque(returns=bool)
def matches():
    return re.match("a", "abc") is not None


@mutad.opaque(returns=float)
def windows(x):
    return float(sliding_window_view(x, 2).sum())


@mutad.opaque(returns=float)
def strided(x):
    return float(as_strided(x, (2, 2), (8, 8)).sum())


@mutad.opaque(returns=None)
def run_in_a_thread(x):
    thread = threading.Thread(target=x.sum)
    thread.start()
    thread.join()


@mutad.opaque(returns=int)
def year():
    return datetime.date(2026, 1, 1).year


@mutad.opaque(returns=int)
def bits(x):
    return int(x.view(np.int64)[0])


@mutad.opaque(returns=int)
def bytes_in(x):
    return len(x.tobytes())


@mutad.opaque(returns=int)
def hash_of(v):
    return hash(v)


@mutad.opaque(returns=float)
def masked_sum(x):
    return float(np.ma.array(x, mask=[0, 1, 0]).sum())


@mutad.opaque(returns=float)
def exact_third():
    return float(fractions.Fraction(1, 3))


@mutad.opaque(returns=float)
def exact_tenth():
    return float(decimal.Decimal("0.1"))


@mutad.opaque(returns=float)
def polynomial_at(x, at):
    return float(np.polynomial.Polynomial(x)(at))


LIST = [1.0, 2.0]
TABLE = {"a": 1.0}
GRID = Grid(1.0)
COUNT = 0


class Meta(type):
    pass


class WithMeta(metaclass=Meta):
    def __init__(self, a):
        self.a = a


Point = collections.namedtuple("Point", "a b")


class Colour(Enum):
    RED = 1


# --- Things from outside that the program changes.


def appended(x, values):
    values.append(x[0])
    return x.sum()


@wrong(
    "LIST.append", "this list is from outside, and is changed", "pass it as an argument", appended
)
def append_to_a_global(x):
    LIST.append(x[0])
    return x.sum()


def item_set(x, values):
    values[0] = x[0]
    return x.sum()


@wrong("LIST[0]", "this list is from outside, and is changed", "pass it as an argument", item_set)
def item_of_a_global(x):
    LIST[0] = x[0]
    return x.sum()


def deleted(x, values):
    del values[0]
    return x.sum()


@wrong(
    "del LIST[0]", "this list is from outside, and is changed", "pass it as an argument", deleted
)
def item_of_a_global_deleted(x):
    del LIST[0]
    return x.sum()


def sorted_argument(x, values):
    values.sort()
    return x.sum() + values[0]


@wrong("LIST.sort", "this list is from outside", "pass it as an argument", sorted_argument)
def global_sorted(x):
    LIST.sort()
    return x.sum()


def key_set(x, d):
    d["a"] = x[0]
    return x.sum()


@wrong(
    'TABLE["a"]', "this dict is from outside, and is assigned to", "pass it as an argument", key_set
)
def key_of_a_global(x):
    TABLE["a"] = x[0]
    return x.sum()


def attribute_set(x, g):
    g.n = x[0]
    return x.sum()


@wrong(
    "GRID.n",
    "this Grid is from outside, and is assigned to",
    "pass it as an argument",
    attribute_set,
)
def attribute_of_a_global(x):
    GRID.n = x[0]
    return x.sum()


@wrong("global COUNT", "assigns to no name of a module", "return the value", lambda x: (x.sum(), 1))
def assigns_to_a_global(x):
    global COUNT
    COUNT += 1
    return x.sum()


# --- Views in lists: a copy would be another program.


def bounds_in_a_list(x):
    starts = []
    for i in range(3):
        starts.append(i)
    for i in starts:
        x[i:] += 1.0
    return x.sum()


@wrong(
    "views.append(x[i:])", "one of the two is changed afterwards", "keep bounds", bounds_in_a_list
)
def views_in_a_list(x):
    views = []
    for i in range(3):
        views.append(x[i:])
    for v in views:
        v += 1.0
    return x.sum()


def element_of_the_array(x):
    stop = 2
    x[0] = 5.0
    return x[:stop][0]


@wrong("views.append(x[:2])", "is changed afterwards", "keep bounds", element_of_the_array)
def view_before_a_store(x):
    views = []
    views.append(x[:2])
    x[0] = 5.0
    return views[0][0]


def starts_in_a_dict(x):
    starts = {}
    for i in range(2):
        starts[i] = i
    x[starts[0]] = 3.0
    return x[0]


@wrong("views[i]", "is changed afterwards", "keep bounds or an index", starts_in_a_dict)
def views_in_a_dict(x):
    views = {}
    for i in range(2):
        views[i] = x[i:]
    views[0][0] = 3.0
    return x[0]


# --- Lists.


@wrong(
    'values.append("a")',
    "on one path and the string 'a'",
    "keep items of one type",
    lambda x: len([x[0], 1.0]),
)
def words_among_numbers(x):
    values = []
    values.append(x[0])
    values.append("a")
    return len(values)


@wrong(
    "[lambda v, k=k: v * k",
    "a list of such items that grows",
    "keep numbers, arrays",
    lambda x: [x[0] * k for k in range(3)][1],
)
def functions_in_a_list(x):
    fs = [lambda v, k=k: v * k for k in range(3)]
    return fs[int(x[1])](x[0])


@wrong(
    "[1.0, x[0]] * 2.0",
    "`*` of a list",
    "np.array(l)",
    lambda x: np.array([1.0, x[0]]) * 2.0,
)
def list_times_float(x):
    return [1.0, x[0]] * 2.0


def by_int(x):
    values = [1.0, 2.0]
    return values[int(x[1])]


@wrong("values[x[1]]", "list indices must be integers", "convert with int(...)", by_int)
def float_subscript_of_a_list(x):
    values = [1.0, 2.0]
    return values[x[1]]


@wrong(
    "[1.0, 2.0, x[0]] / x[1]",
    "`/` of a list",
    "np.array(l)",
    lambda x: np.array([1.0, 2.0, x[0]]) / x[1],
)
def list_arithmetic(x):
    return [1.0, 2.0, x[0]] / x[1]


@wrong(
    "(1.0, x[0]) / x[1]", "`/` of a tuple", "make an array", lambda x: np.array((1.0, x[0])) / x[1]
)
def tuple_arithmetic(x):
    return (1.0, x[0]) / x[1]


def pairs_as_lists(x):
    t = [1.0, x[0]]
    t[0] = 2.0
    return t[0]


@wrong("t[0]", "assignment to an item of a tuple", "use a list", pairs_as_lists)
def item_of_a_tuple(x):
    t = (1.0, x[0])
    t[0] = 2.0
    return t[0]


@wrong(
    "np.array([x, 1.0])",
    "inhomogeneous shape after 1 dimensions",
    "join items of one shape",
    lambda x: np.concatenate((x, np.array([1.0]))),
)
def ragged_by_rank(x):
    return np.array([x, 1.0])


def arrays_of_each(x):
    rows = []
    for k in range(3):
        rows.append([x[0]] * k)
    return sum([np.array(row).sum() for row in rows])


@wrong(
    "np.array(rows)",
    "an array of lists of several lengths",
    "make arrays of the lists",
    arrays_of_each,
)
def ragged_by_length(x):
    rows = []
    for k in range(3):
        rows.append([x[0]] * k)
    return np.array(rows).sum()


@wrong("np.array([x, None])", "an item is None", "")
def none_in_an_array(x):
    return np.array([x, None])


@wrong('np.array(["a", "b"])', "an item is 'a'", "")
def words_in_an_array(x):
    return np.array(["a", "b"]).size


@wrong(
    "np.array(range(n)[::-1])",
    "takes arrays, numbers, and lists",
    "make a list",
    lambda n: np.array(list(range(n)[::-1])),
)
def array_of_a_reversed_range(n):
    return np.array(range(n)[::-1])


@wrong(
    "{1, 2, len(x)}",
    "a loop over a set",
    "loop over sorted(s)",
    lambda x: [v * 1.0 for v in sorted({1, 2, len(x)})][0],
)
def loop_over_a_set(x):
    s = 0.0
    for v in {1, 2, len(x)}:
        s += v
    return s


# --- Paths that give several kinds of values.


@wrong(
    "x if x[0] > 1.0 else 1.0",
    "is an array of f64, rank 1 on one path and a float",
    "give it the same type",
    lambda x: (x if x[0] > 1.0 else np.ones(3)) * 2.0,
)
def array_or_number(x):
    return (x if x[0] > 1.0 else 1.0) * 2.0


def always_an_array(x):
    if x[0] > 1.0:
        return x * 1.0
    return np.ones(3)


@wrong(
    "if x[0] > 1.0:",
    "the function's result is an array of f64",
    "give it the same type",
    always_an_array,
)
def returns_array_or_number(x):
    if x[0] > 1.0:
        return x
    return 1.0


def always_a_number(x):
    if x[0] > 1.0:
        return 2.0
    return 1.0


@wrong(
    "if x[0] > 1.0:",
    "the function's result is the string 'a' on one path",
    "the same type",
    always_a_number,
)
def returns_word_or_number(x):
    if x[0] > 1.0:
        return "a"
    return 1.0


def two_slices(x):
    return x[1:3].sum() if x[0] > 1.0 else x[0:2].sum()


@wrong(
    "slice(1, 3) if x[0] > 1.0 else slice(0, 2)",
    "the value of this expression",
    "choose its parts",
    two_slices,
)
def slice_on_a_path(x):
    s = slice(1, 3) if x[0] > 1.0 else slice(0, 2)
    return x[s].sum()


# --- Truth and comparison of arrays.


@wrong(
    "x > 1.0",
    "the truth value of an array is ambiguous",
    "join masks by `&`, `|` and `~`",
    lambda x: 1.0 if (x > 1.0).sum() > 0 else 0.0,
)
def truth_of_an_array(x):
    if x > 1.0:
        return 1.0
    return 0.0


@wrong(
    "0.0 < x < 2.0",
    "the truth value of an array is ambiguous",
    "(0 < x) & (x < 1)",
    lambda x: ((x > 0.0) & (x < 2.0)).sum() > 0,
)
def chained_comparison(x):
    return 0.0 < x < 2.0


@wrong(
    "(x > 1.0) and (x < 2.0)",
    "the truth value of an array is ambiguous",
    "reduce it: `(x > 0).any()`",
    lambda x: (x > 1.0).sum() > 0 and (x < 2.0).sum() > 0,
)
def and_of_arrays(x):
    return (x > 1.0) and (x < 2.0)


@wrong(
    "not |x",
    "the truth value of an array is ambiguous",
    "reduce it: `(x > 0).any()`",
    lambda x: not (x > 0).sum() > 0,
)
def not_of_an_array(x):
    return not x


def asserted(x):
    assert (x > 0.0).sum() > 0
    return x[0]


@wrong(
    "x > 0.0", "the truth value of an array is ambiguous", "reduce it: `(x > 0).any()`", asserted
)
def assert_of_an_array(x):
    assert x > 0.0
    return x[0]


def whiles(x):
    while (x < 9.0).sum() > 0:
        x *= 2.0
    return x[0]


@wrong("x < 9.0", "the truth value of an array is ambiguous", "reduce it: `(x > 0).any()`", whiles)
def while_of_an_array(x):
    while x < 9.0:
        x *= 2.0
    return x[0]


@wrong(
    "3.0 in x",
    "`in` is compiled for tuples, dicts and strings",
    "(x == v).any()",
    lambda x: (x == 3.0).any(),
)
def member_of_an_array(x):
    return 3.0 in x


@wrong("y is y", "`is` compares objects", "use `==` for numbers", lambda x: bool(x[0] == x[0]))
def identity_of_numbers(x):
    y = x[0]
    return y is y


def flagged(x):
    same = True
    return 1.0 if same else 2.0


@wrong("x is y", "`is` compares objects", "for arrays, pass a bool", flagged)
def identity_of_arrays(x):
    y = x
    return 1.0 if x is y else 2.0


# --- Subscripts.


@wrong("x[x[1]]", "not a float64", "convert with int(...)", lambda x: x[int(x[1])])
def float_subscript(x):
    return x[x[1]]


@wrong("x[: |x[1]", "slice indices must be integers", "", None)
def float_bound(x):
    return x[: x[1]]


@wrong('x["a"]', "are valid indices, not 'a'", "", None)
def word_subscript(x):
    return x["a"]


@wrong("x[0, 0]", "too many indices for array", "", None)
def too_many_subscripts(x):
    return x[0, 0]


@wrong(
    "np.meshgrid(",
    "meshgrid: the argument 'sparse' is not supported",
    ASIDE,
    lambda x: (x[:, None] + x).sum(),
)
def sparse_mesh(x):
    a, b = np.meshgrid(x, x, sparse=True)
    return (a + b).sum()


@wrong(
    "x[0]",
    "`del` is for names, and items of lists and dicts",
    "np.delete(x, k)",
    lambda x: np.delete(x, 0),
)
def deleted_element(x):
    del x[0]
    return x


# --- Attributes and methods of arrays.


@wrong(
    "x.shape",
    "this changes the shape of an array",
    "y = y.reshape(...)",
    lambda x: x.reshape((3, 1)),
)
def assigned_shape(x):
    x.shape = (3, 1)
    return x


def grown(x):
    y = np.zeros(5)
    y[:3] = x
    return y


@wrong(
    "x.resize",
    "attribute .resize of arrays is not compiled",
    "make an array of the new size",
    grown,
)
def resized(x):
    x.resize(5)
    return x


@wrong("x.flags", "attribute .flags of arrays is not compiled", ASIDE, None)
def made_read_only(x):
    x.flags.writeable = False
    return x[0]


@wrong("x.ctypes", "attribute .ctypes of arrays is not compiled", ASIDE, None)
def address(x):
    return x.ctypes.data


@wrong("x.tobytes", "attribute .tobytes of arrays is not compiled", ASIDE, lambda x: bytes_in(x))
def as_bytes(x):
    return len(x.tobytes())


@wrong("x.view", "attribute .view of arrays is not compiled", ASIDE, lambda x: bits(x))
def reinterpreted(x):
    return x.view(np.int64)[0]


def flat_assigned(m):
    m.reshape(-1)[1] = 3.0
    return m.sum()


@wrong("m.flat", "attribute .flat of arrays is not compiled", "use x.reshape(-1)", flat_assigned)
def assigned_flat(m):
    m.flat[1] = 3.0
    return m.sum()


def item_assigned(x):
    x[0] = 1.0
    return x.sum()


@wrong("x.itemset", "no attribute 'itemset'", "write x[i] = value", item_assigned)
def set_by_itemset(x):
    x.itemset(0, 1.0)
    return x.sum()


@wrong(
    "(x / 3.0).round",
    "attribute .round of arrays is not compiled",
    "use np.round(x)",
    lambda x: np.round(x / 3.0, 2),
)
def rounded(x):
    return (x / 3.0).round(2)


@wrong("x.foo", "'numpy.ndarray' object has no attribute 'foo'", "", None)
def misspelt(x):
    return x.foo


# --- Functions of NumPy and SciPy.


@wrong("np.summ", "'numpy' has no attribute 'summ'", "did you mean `sum`?", lambda x: np.sum(x))
def misspelt_function(x):
    return np.summ(x)


@wrong(
    "np.linalg.eigvals(q)",
    "eigvals is not compiled",
    ASIDE,
    lambda q: largest_eigenvalue(q),
)
def eigenvalues(q):
    return np.linalg.eigvals(q).sum()


@wrong("np.linalg.svd(q)", "svd is not compiled", ASIDE, lambda q: first_singular(q))
def singular_values(q):
    return np.linalg.svd(q)


@wrong("np.linalg.qr(q)", "qr is not compiled", ASIDE, lambda q: corner_of_r(q))
def orthogonal(q):
    return np.linalg.qr(q)


@wrong("np.fft.rfft(x)", "rfft is not compiled", "with @mutad.opaque", lambda x: first_power(x))
def power(x):
    return np.abs(np.fft.rfft(x)).sum()


def drawn(x, rng):
    return rng.random() + x[0]


@wrong(
    "np.random.rand()", "rand is not compiled", "np.random.default_rng(seed), that is passed", drawn
)
def numpy_s_generator(x):
    return np.random.rand() + x[0]


@wrong(
    "np.random.seed(0)",
    "seed is not compiled",
    "np.random.default_rng(seed), that is passed",
    drawn,
)
def numpy_s_seed(x):
    np.random.seed(0)
    return x[0]


@wrong(
    "random.random()",
    "random is not compiled",
    "np.random.default_rng(seed), that is passed",
    drawn,
)
def python_s_generator(x):
    return random.random() + x[0]


@wrong(
    "np.vectorize(lambda v: v + 1.0)",
    "vectorize is not compiled",
    "call the function on the array",
    lambda x: (lambda v: v + 1.0)(x),
)
def vectorized(x):
    return np.vectorize(lambda v: v + 1.0)(x)


@wrong('np.einsum_path("i,i", x, x)', "this call of einsum_path is not", "let Python run it")
def own_code_of_numpy(x):
    return np.einsum_path("i,i", x, x)[0]


@wrong(
    "np.fromiter((v for v in x), float)",
    "fromiter is not compiled",
    "np.array([... for ...])",
    lambda x: np.array([v for v in x]).sum(),
)
def from_an_iterator(x):
    return np.fromiter((v for v in x), float).sum()


def over_elements(m):
    s = 0.0
    for v in m.reshape(-1):
        s += v
    return s


@wrong(
    "np.nditer(m)",
    "nditer is not compiled",
    "loop over the array, or over x.reshape(-1)",
    over_elements,
)
def numpy_s_iterator(m):
    s = 0.0
    for v in np.nditer(m):
        s += v
    return s


def over_axes(m):
    s = 0.0
    for j in range(2):
        for k in range(3):
            s += m[j, k]
    return s


@wrong("np.ndindex(2, 3)", "ndindex is not compiled", "write a loop for each axis", over_axes)
def numpy_s_indices(m):
    s = 0.0
    for j, k in np.ndindex(2, 3):
        s += m[j, k]
    return s


@wrong("np.ndenumerate(m)", "ndenumerate is not compiled", "write a loop for each axis", over_axes)
def numpy_s_enumeration(m):
    s = 0.0
    for _, v in np.ndenumerate(m):
        s += v
    return s


@wrong(
    "np.apply_along_axis(np.sum, 0, m)",
    "apply_along_axis is not compiled",
    "call the function in a loop",
    lambda m: np.array([m[:, k].sum() for k in range(3)]),
)
def along_an_axis(m):
    return np.apply_along_axis(np.sum, 0, m)


@wrong(
    "sliding_window_view(x, 2)", "sliding_window_view is not compiled", ASIDE, lambda x: windows(x)
)
def sliding(x):
    return sliding_window_view(x, 2).sum()


@wrong("as_strided(x, (2, 2), (8, 8))", "as_strided is not compiled", ASIDE, lambda x: strided(x))
def by_strides(x):
    return as_strided(x, (2, 2), (8, 8)).sum()


@wrong(
    "np.block([[m], [m]])",
    "block is not compiled",
    "np.concatenate",
    lambda m: np.concatenate((m, m)).sum(),
)
def blocks(m):
    return np.block([[m], [m]]).sum()


@wrong(
    "np.kron(m, m)",
    "kron is not compiled",
    "a[:, None, :, None] * b[None, :, None, :]",
    lambda m: (m[:, None, :, None] * m[None, :, None, :]).sum(),
)
def kronecker(m):
    return np.kron(m, m).sum()


@wrong(
    "np.matrix(m)",
    "matrix is not compiled",
    "use an array of rank 2, and @",
    lambda m: (m @ m.T).sum(),
)
def a_matrix(m):
    return (np.matrix(m) * np.matrix(m).T).sum()


@wrong(
    "np.polynomial.Polynomial(x)",
    "Polynomial is not compiled",
    ASIDE,
    lambda x: polynomial_at(x, 2.0),
)
def a_polynomial(x):
    return np.polynomial.Polynomial(x)(2.0)


@wrong(
    "np.ma.array(x, mask=[0, 1, 0])",
    "array is not compiled",
    ASIDE,
    lambda x: masked_sum(x),
)
def masked(x):
    return np.ma.array(x, mask=[0, 1, 0]).sum()


@wrong('np.save("/tmp/x", x)', "save is not compiled", ASIDE, lambda x: x.sum())
def saved(x):
    np.save("/tmp/x", x)
    return x.sum()


@wrong(
    "np.unique(m, axis=0)",
    "`unique` is compiled for all elements",
    "outside compiled code",
    lambda m: np.unique(m).sum(),
)
def unique_rows(m):
    return np.unique(m, axis=0).sum()


@wrong(
    "np.median(m, axis=(0, 1))",
    "along one axis",
    "reshape the array",
    lambda m: np.median(m.reshape(-1)),
)
def median_over_axes(m):
    return np.median(m, axis=(0, 1))


@wrong(
    "np.sqrt(x, where=x > 0.0)",
    "where",
    "out=np.zeros_like(x)",
    lambda x: np.sqrt(x, where=x > 0.0, out=np.zeros_like(x)),
)
def where_without_out(x):
    return np.sqrt(x, where=x > 0.0)


@wrong(
    "np.c_[x, x]",
    "only arrays and tuples have subscripts",
    "np.stack((a, b), axis=1)",
    lambda x: np.stack((x, x), axis=1),
)
def columns(x):
    return np.c_[x, x]


@wrong(
    "np.r_[x, 1.0]",
    "only arrays and tuples have subscripts",
    "np.concatenate((a, b))",
    lambda x: np.concatenate((x, np.array([1.0]))),
)
def rows(x):
    return np.r_[x, 1.0]


@wrong("np.flatnonzero(m > 2.0)", "flatnonzero", "use np.nonzero", lambda m: np.nonzero(m > 2.0)[1])
def flat_places(m):
    return np.flatnonzero(m > 2.0)


@wrong(
    "i**-1", "Integers to negative integer powers", "use a float base", lambda i: (i + 1.0) ** -1
)
def negative_power(i):
    return i**-1


@wrong(
    "x << 1",
    "ufunc 'left_shift' not supported",
    "convert the operands",
    lambda x: x.astype(np.int64) << 1,
)
def shifted(x):
    return x << 1


# --- Dtypes.


@wrong(
    "x.astype(np.float16)",
    "this dtype is not supported",
    "float32 and float64",
    lambda x: x.astype(np.float32).sum(),
)
def half_precision(x):
    return x.astype(np.float16).sum()


@wrong(
    "x.astype(np.longdouble)",
    "this dtype is not supported",
    "float32 and float64",
    lambda x: x.astype(np.float64).sum(),
)
def long_double(x):
    return x.astype(np.longdouble).sum()


@wrong(
    "x.astype(complex)",
    "this dtype is not supported",
    "float32 and float64",
    lambda x: x.astype(float),
)
def to_complex(x):
    return x.astype(complex)


@wrong(
    'np.zeros(3, dtype=[("a", float)])',
    "this dtype is not supported",
    "float32 and float64",
    lambda x: {"a": np.zeros(3)}["a"] + x,
)
def structured(x):
    return np.zeros(3, dtype=[("a", float)])["a"] + x


@wrong('np.datetime64("2026-01-01")', "this dtype is not supported", "int64", lambda x: 1767225600)
def a_date(x):
    return np.datetime64("2026-01-01")


@wrong(
    "1j",
    "complex numbers are not compiled",
    "real and imaginary parts",
    lambda x: np.hypot(x[0], x[1]),
)
def imaginary(x):
    return abs(x[0] + x[1] * 1j)


@wrong(
    "complex(x[0], 1.0)",
    "the builtin `complex` is not compiled",
    "real and imaginary parts",
    lambda x: np.hypot(x[0], 1.0),
)
def made_complex(x):
    return abs(complex(x[0], 1.0))


# --- Attributes that CPython's classes do not have, either.


@wrong(
    "return |(2.0 * float(x[0])).sum()",
    "'float' object has no attribute 'sum'",
    "use np.sum(x)",
    lambda x: np.sum(2.0 * float(x[0])),
)
def sum_of_a_float(x):
    return (2.0 * float(x[0])).sum()


@wrong(
    "(x, 1.0).size",
    "'tuple' object has no attribute 'size'",
    "use np.size(x)",
    lambda x: np.size((x[0], 1.0)) * 1.0,
)
def size_of_a_tuple(x):
    return (x, 1.0).size * 1.0


@wrong('"abc".size', "'str' object has no attribute 'size'")
def size_of_a_string(x):
    return "abc".size * 1.0


@wrong(
    "x[0].is_integer()",
    "attribute .is_integer of a float64 is not compiled",
    ASIDE,
    lambda x: x[0] == np.floor(x[0]),
)
def is_integer_of_an_element(x):
    return x[0].is_integer()


@wrong("x[0].foo", "'numpy.float64' object has no attribute 'foo'")
def unknown_of_an_element(x):
    return x[0].foo


@mutad.rule(scipy.special.cython_special.jv)
def jv_rule(v, x, result):
    low = scipy.special.cython_special.jv(v.value - 1.0, x.value)
    high = scipy.special.cython_special.jv(v.value + 1.0, x.value)
    x.cotangent += 0.5 * (low - high) * result.cotangent


@wrong(
    "scipy.special.jv(1.0, x)",
    "jv is not compiled",
    "scipy.special.cython_special.jv",
    lambda x: scipy.special.cython_special.jv(1.0, x[0]),
)
def a_bessel_function(x):
    return scipy.special.jv(1.0, x).sum()


# --- Builtins and the standard library.


@wrong("return |max(x)", "`max` of an array", "use x.max()", lambda x: x.max())
def builtin_max(x):
    return max(x)


@wrong("return |min(m)", "`min` of an array", "np.min(x)", lambda m: np.min(m))
def builtin_min(m):
    return min(m)


@wrong('eval("1.0")', "the builtin `eval` is not compiled", ASIDE, lambda x: 1.0)
def evaluated(x):
    return eval("1.0")


@wrong('exec("y = 1")', "the builtin `exec` is not compiled", ASIDE, lambda x: x.sum())
def executed(x):
    exec("y = 1")
    return x.sum()


@wrong("input()", "the builtin `input` is not compiled", ASIDE, lambda x: x.sum())
def asked(x):
    input()
    return x.sum()


@wrong('open("/dev/null")', "open is not compiled", ASIDE, lambda x: x.sum())
def opened(x):
    with open("/dev/null"):
        return x.sum()


@wrong("id(x)", "the builtin `id` is not compiled", ASIDE, None)
def identity(x):
    return id(x)


@wrong("hash(x[0])", "the builtin `hash` is not compiled", ASIDE, lambda x: hash_of(x[0]))
def hashed(x):
    return hash(x[0])


@wrong("chr(n)", "the builtin `chr` is not compiled", ASIDE, None)
def character(n):
    return chr(n)


@wrong(
    'format(x[0], ".2f")',
    "the builtin `format` is not compiled",
    ASIDE,
    lambda x: print(f"{x[0]:.2f}"),
)
def formatted(x):
    print(format(x[0], ".2f"))


@wrong("locals()", "the builtin `locals` is not compiled", ASIDE, None)
def local_names(x):
    return locals()


@wrong("globals()", "the builtin `globals` is not compiled", ASIDE, lambda x: LIST[0])
def global_names(x):
    return globals()["LIST"][0]


@wrong(
    "getattr(x, name)",
    "the builtin `getattr` is not compiled",
    ASIDE,
    lambda x: x.sum() if x[0] > 1.0 else x.max(),
)
def attribute_by_a_name(x):
    name = "sum" if x[0] > 1.0 else "max"
    return getattr(x, name)()


@wrong(
    "def a_type",
    "the function returns something that is not a number",
    "return numbers and arrays",
    lambda x: x.ndim,
)
def a_type(x):
    return type(x)


@wrong("super()", "super() is compiled in methods only", "", None)
def super_of_nothing(x):
    return super().foo


@wrong(
    'end=|" "',
    "`print` with `end=`",
    "print the whole line at once",
    lambda x: print(f"{x[0]} {x[1]}"),
)
def printed_in_parts(x):
    print(x[0], end=" ")
    print(x[1])


@wrong("time.time()", "time is not compiled", "measure around the call", lambda x: x.sum())
def timed(x):
    start = time.time()
    return x.sum() + 0.0 * start


LOG = logging.getLogger("wrong")


@wrong("LOG.info", "`.info` of Logger objects is not compiled", ASIDE, lambda x: told(x))
def logged_by_an_object(x):
    LOG.info("x")


@wrong("breakpoint()", "`breakpoint` is not compiled", "take the decorator off", lambda x: x.sum())
def stopped(x):
    breakpoint()
    return x.sum()


SPARSE = scipy.sparse.csr_array(np.eye(3))


def sparse_product(x):
    data, indices, indptr = np.ones(3), np.arange(3), np.arange(4)
    y = np.zeros(3)
    for row in range(3):
        for k in range(indptr[row], indptr[row + 1]):
            y[row] += data[k] * x[indices[k]]
    return y


@wrong("|SPARSE @ x", "is a csr_array of SciPy", "A.indptr", sparse_product)
def by_sparse(x):
    return SPARSE @ x


@wrong('logging.info("x")', "info is not compiled", ASIDE, lambda x: told(x))
def logged(x):
    logging.info("x")


@wrong("json.dumps(x[0])", "dumps is not compiled", ASIDE, lambda x: written(x))
def as_json(x):
    return len(json.dumps(x[0]))


@wrong('re.match("a", "abc")', "match is not compiled", ASIDE, lambda x: matches())
def by_pattern(x):
    return re.match("a", "abc") is not None


@wrong(
    "threading.Thread(target=x.sum)",
    "Thread.__init__ is not compiled",
    ASIDE,
    lambda x: run_in_a_thread(x),
)
def in_a_thread(x):
    threading.Thread(target=x.sum).start()


@wrong("datetime.datetime.now()", "now is not compiled", ASIDE, lambda x: year())
def today(x):
    return datetime.datetime.now().year


@wrong(
    'decimal.Decimal("0.1")',
    "objects of class Decimal are not compiled",
    ASIDE,
    lambda x: exact_tenth(),
)
def exact_decimal(x):
    return float(decimal.Decimal("0.1"))


@wrong(
    "fractions.Fraction(1, 3)",
    "objects of class Fraction are not compiled",
    ASIDE,
    lambda x: exact_third(),
)
def exact_fraction(x):
    return float(fractions.Fraction(1, 3))


@wrong(
    'collections.namedtuple("P", "a b")',
    "namedtuple is not compiled",
    ASIDE,
    lambda x: Point(x[0], 2.0).a,
)
def named_tuple_inside(x):
    P = collections.namedtuple("P", "a b")
    return P(x[0], 2.0).a


@wrong(
    "list(itertools.permutations(x))",
    "the items of this list are a tuple of 0 on one path",
    "keep items of one type",
    None,
)
def permutations(x):
    return len(list(itertools.permutations(x)))


@wrong(
    "str(v)", "`str` of this is not compiled", "write it in an f-string", lambda x: print(f"{x[0]}")
)
def numbers_as_words(x):
    s = ""
    for v in x:
        s += str(v)
    print(s)


@wrong(
    '"a,b".split(",")', "`.split` of 'a,b' is not compiled", ASIDE, lambda x: ("a", "b")[0] == "a"
)
def split_words(x):
    return "a,b".split(",")[0] == "a"


@wrong('b"ab"', "bytes are not compiled", ASIDE, lambda x: 97 + x[0])
def some_bytes(x):
    return b"ab"[0] + x[0]


# --- Statements and definitions.


@wrong(
    "async def later():",
    "coroutines are not compiled",
    "write it with plain `def`",
    lambda x: (lambda: x.sum())(),
)
def coroutine_inside(x):
    async def later():
        return 1.0

    return x.sum()


class Outside:
    def __init__(self, a):
        self.a = a


@wrong(
    "class Inside:",
    "a class inside a function is not compiled",
    "define the class outside",
    lambda x: Outside(x[0]).a,
)
def class_inside(x):
    class Inside:
        a = 1.0

    return Inside.a


@wrong("WithMeta(x[0])", "its class has a metaclass", "use a dataclass", lambda x: Outside(x[0]).a)
def of_a_metaclass(x):
    return WithMeta(x[0]).a


@wrong(
    "yield x[0]",
    "a generator is compiled where it is consumed",
    "consume it there",
    lambda x: sum(v * 2.0 for v in x),
)
def yields(x):
    yield x[0]


def raises_an_exception(x):
    if x[0] > 9.0:
        raise ValueError("too large")
    return x[0]


@wrong("raise x", "this `raise` is not compiled", "raise ValueError", raises_an_exception)
def raises_an_array(x):
    raise x


@wrong("from math import nonexistent", "cannot import name 'nonexistent' from 'math'", "", None)
def imports_what_is_not_there(x):
    from math import nonexistent

    return nonexistent(x)


@wrong("import no_such_package", "No module named 'no_such_package'", "install the module", None)
def imports_no_module(x):
    import no_such_package

    return no_such_package.f(x)


@wrong("missing", "name 'missing' is not defined", "", None)
def reads_no_name(x):
    return x + missing  # noqa: F821


@wrong(
    "h.k",
    "assignment to an attribute of something that is no object",
    "return the value, and assign it outside",
    lambda x: x * 2.0,
)
def attribute_of_a_function(x):
    def h():
        return 1.0

    h.k = 2.0
    return x * 2.0


@mutad.compile
def without_gradient(x):
    return x.sum()


@mutad.compile(grad=True)
def with_gradient(x):
    return (x**2).sum()


def only_python(x):
    return (x**2).sum()


@wrong(
    "without_gradient.grad",
    "was compiled without gradient",
    "@compile(grad=True)",
    lambda x: with_gradient.grad(x),
)
def gradient_of_a_primal(x):
    return without_gradient.grad(x)


@wrong(
    "only_python.grad",
    "has no attribute `grad`: it is not compiled",
    "@compile(grad=True)",
    lambda x: with_gradient.grad(x),
)
def gradient_of_python(x):
    return only_python.grad(x)


@wrong(
    "with_gradient.vjp",
    "cannot be called from compiled code",
    "may call .grad",
    lambda x: with_gradient.grad(x),
)
def vjp_inside(x):
    return with_gradient.vjp(x)


@wrong("range(n)[x[0]]", "a range is indexed by ints", "", None)
def float_of_a_range(n):
    x = (1.0,)
    return range(n)[x[0]]


# --- What users of JAX, PyTorch and Numba write.


def of_package(name):
    """An object of a class that says it is from another package, with an array in it."""
    package, _, kind = name.rpartition(".")
    cls = type(kind, (), {"__module__": package, "__array__": lambda self, *_: np.ones(3)})
    return cls()


def function_of(package, name):
    """A function that says it is another package's."""

    def function(*args):
        return args[0]

    function.__module__, function.__name__ = package, name
    return function


TENSOR = of_package("torch.Tensor")
FRAME = of_package("pandas.core.frame.DataFrame")
WEIGHTS = np.asarray(TENSOR)
torch_sin = function_of("torch", "sin")
fori_loop = function_of("jax._src.lax.control_flow.loops", "fori_loop")
doubled = np.vectorize(lambda v: 2.0 * v)
AS_ARRAY = "made an array by np.asarray"


@wrong("TENSOR * x", "`*` is torch.Tensor, not a number", AS_ARRAY, lambda x: (WEIGHTS * x).sum())
def tensor_from_outside(x):
    return (TENSOR * x).sum()


@wrong('FRAME["a"]', "only arrays and tuples have subscripts", AS_ARRAY, lambda x: WEIGHTS[0])
def frame_from_outside(x):
    return FRAME["a"]


@wrong("torch_sin(x)", "sin is not compiled", "use np.sin", lambda x: np.sin(x).max())
def function_of_torch(x):
    return torch_sin(x).sum()


def loop_in_python(x):
    total = 0.0
    for i in range(3):
        total += x[i]
    return total


@wrong("fori_loop(", "fori_loop is not compiled", "plain loops", loop_in_python)
def loop_of_jax(x):
    return fori_loop(0, 3, lambda i, v: v + x[i], 0.0)


def stored_in_place(x):
    x[0] = 1.0
    return x.sum()


@wrong("x.at", "no attribute 'at'", "x[i] = value", stored_in_place)
def at_set(x):
    x = x.at[0].set(1.0)
    return x.sum()


@wrong("x.clone", "no attribute 'clone'", "x.copy()", lambda x: x.copy().sum())
def clone(x):
    return x.clone().sum()


@wrong("x.detach", "'detach'", "mutad.stop_gradient", lambda x: mutad.stop_gradient(x).sum())
def detach(x):
    return x.detach().sum()


@wrong("x.exp", "no attribute 'exp'", "use np.exp(x)", lambda x: np.exp(x).sum())
def method_exp(x):
    return x.exp().sum()


@wrong("x.add_", "no attribute 'add_'", "x += y", lambda x: x.sum() + len(x))
def added_in_place(x):
    x.add_(1.0)
    return x.sum()


@wrong("x.cpu", "no attribute 'cpu'", "leave it out", lambda x: x.sum())
def to_the_cpu(x):
    return x.cpu().sum()


@wrong("m.sum(", "unexpected keyword argument 'dim'", "calls it axis=", lambda m: m.sum(axis=0))
def sum_over_dim(m):
    return m.sum(dim=0)


@wrong(
    "np.max(",
    "unexpected keyword argument 'keepdim'",
    "calls it keepdims=",
    lambda m: np.max(m, axis=0, keepdims=True),
)
def max_keeping_dim(m):
    return np.max(m, axis=0, keepdim=True)


@wrong("doubled(x)", "is not compiled", "call the function on the array", lambda x: 2.0 * x)
def vectorized_before(x):
    return doubled(x)


@wrong("np.linalg.norm(q, 2)", "norm of a matrix with ord=2", ASIDE, lambda q: first_singular(q))
def spectral_norm(q):
    return np.linalg.norm(q, 2)


@wrong(
    "np.linalg.norm(q, 1)",
    "norm of a matrix with ord=1",
    "np.abs(x).sum(axis)",
    lambda q: np.abs(q).sum(axis=0).max(),
)
def largest_column(q):
    return np.linalg.norm(q, 1)


def positive(x):
    assert x.min() < 3.0, f"{x[0]}"
    return x.sum()


@wrong("assert x", "an array in the message of an exception", "show numbers of it", positive)
def asserted_with_an_array(x):
    assert x.min() < 3.0, f"bad {x}"
    return x.sum()


@wrong("assert x", "an array in the message of an exception", "show numbers of it", positive)
def asserted_with_an_array_alone(x):
    assert x.min() < 3.0, x
    return x.sum()


@wrong("print(", "the `repr` of an array is not compiled", 'f"x={x}"', lambda x: print(f"x={x}"))
def printed_with_its_name(x):
    print(f"{x=}")


@wrong("sys.stderr", "`print` with `file=` is not compiled", ASIDE, lambda x: told(x))
def printed_to_a_file(x):
    print(x, file=sys.stderr)


def squares(x):
    return (x**2).sum()


gradient_of_squares = mutad.grad(squares)


@wrong("mutad.grad(", "grad is not compiled", "call its .grad", lambda x: with_gradient.grad(x))
def gradient_made_inside(x):
    return mutad.grad(squares)(x)


@wrong("gradient_of", "is not compiled", "call its .grad", lambda x: with_gradient.grad(x))
def gradient_made_outside(x):
    return gradient_of_squares(x)


@wrong("mutad.hessian(", "hessian is not compiled", "take it outside", None)
def hessian_made_inside(x):
    return mutad.hessian(squares)(x)


@wrong("copy.deepcopy", "deepcopy is not compiled", "x.copy()", lambda x: x.copy().sum())
def deeply_copied(x):
    return copy.deepcopy(x).sum()


# --- Calls of what is compiled, and of mutad's own functions.


@mutad.compile(grad=True, opt=0)
def vector_valued(x):
    return x * 2.0


@mutad.compile(grad=True, opt=0)
def energy(x, k=2.0):
    return (x**2).sum() * k


@mutad.compile(grad=True, opt=0)
def of_a_grid(g):
    return g.n * 2.0


@mutad.compile(grad=True, opt=0)
def of_a_pair(p):
    return (p[0] * p[1]).sum()


class Scaling:
    def __call__(self, x):
        return 2.0 * x


@mutad.compile(grad=True, opt=0)
def of_an_int(n):
    return n * 2


@mutad.compile(grad=True, opt=0)
def slope(x):
    return (energy.grad(x) ** 2).sum()


@mutad.compile(opt=0)
def total(x):
    return x.sum()


@mutad.compile(opt=0)
def never_called(x):
    return x.sum()


async def coroutine(x):
    return x.sum()


def variadic(*xs):
    return xs[0].sum()


X = MAKE["x"]
"""A vector."""
GRADIENT = np.array([12.0, 4.0, 8.0])
"""Of `energy`."""


def gradient():
    return energy.grad(X()), GRADIENT


wrong_call("argnums", lambda: energy.grad(X(), argnums=0), "argnums.*wrt=", gradient)
wrong_call(
    "argnums of grad", lambda: mutad.grad(energy, argnums=0), "grad.*argnums.*wrt=", gradient
)
wrong_call(
    "argnums of value_and_grad",
    lambda: mutad.value_and_grad(energy, argnums=(0,)),
    "argnums.*wrt=",
    lambda: (mutad.value_and_grad(energy, wrt=(0,))(X())[1][0], GRADIENT),
)
wrong_call(
    "argnums of hessian",
    lambda: mutad.hessian(energy, argnums=0),
    "argnums.*wrt=",
    lambda: (mutad.hessian(energy, wrt=0)(X()), 4.0 * np.eye(3)),
)
wrong_call(
    "argnums of compile",
    lambda: mutad.compile(only_python, argnums=0),
    "no option 'argnums'.*wrt=",
    gradient,
)
wrong_call(
    "static_argnums",
    lambda: mutad.compile(only_python, static_argnums=1),
    "leave it out",
    lambda: (total(X()), 6.0),
)
wrong_call(
    "nopython", lambda: mutad.compile(nopython=True), "leave it out", lambda: (total(X()), 6.0)
)
wrong_call(
    "has_aux",
    lambda: mutad.grad(energy, has_aux=True),
    "has_aux.*vjp or jacobian",
    lambda: (vector_valued.jacobian(X()), 2.0 * np.eye(3)),
)
wrong_call(
    "create_graph",
    lambda: energy.grad(X(), create_graph=True),
    "hvp and hessian",
    lambda: (energy.hvp(X(), direction=X()), 4.0 * X()),
)
wrong_call("an unknown keyword", lambda: energy(X(), z=1.0), "unexpected keyword argument 'z'")
wrong_call(
    "grad of grad",
    lambda: mutad.grad(mutad.grad(energy)),
    "mutad.hvp.*mutad.hessian.*calls f.grad",
    lambda: (slope.grad(X()), 32.0 * X()),
)
wrong_call(
    "grad of vjp",
    lambda: mutad.grad(mutad.vjp(energy)),
    "vjp of energy is a derivative.*mutad.hessian",
    lambda: (mutad.hessian(energy)(X()), 4.0 * np.eye(3)),
)
wrong_call(
    "hessian of grad",
    lambda: mutad.hessian(mutad.grad(energy)),
    "is a derivative.*mutad.hessian",
    lambda: (mutad.hessian(energy)(X()), 4.0 * np.eye(3)),
)
wrong_call(
    "jacobian of grad",
    lambda: mutad.jacobian(mutad.grad(energy)),
    "is a derivative.*mutad.hessian",
    lambda: (mutad.hessian(energy)(X()), 4.0 * np.eye(3)),
)
wrong_call(
    "grad of a method grad",
    lambda: mutad.grad(energy.grad),
    "is a derivative.*mutad.hvp",
    lambda: (mutad.hvp(energy)(X(), direction=X()), 4.0 * X()),
)
wrong_call(
    "compile of grad",
    lambda: mutad.compile(mutad.grad(energy)),
    "call it as it is, it is compiled.*a function that calls f.grad",
    lambda: (slope(X()), (GRADIENT**2).sum()),
)
wrong_call(
    "batch of grad",
    lambda: mutad.batch(mutad.grad(energy)),
    "grad of energy is a derivative: mutad.batch.f..grad has that of each item",
    lambda: (mutad.batch(energy, in_axes=(0, None)).grad(X()[None], 2.0)[0], GRADIENT),
)
wrong_call(
    "async def",
    lambda: mutad.compile(coroutine),
    "coroutine.*compile a plain `def`",
    lambda: (total(X()), 6.0),
)
wrong_call(
    "*args", lambda: mutad.compile(variadic), "name the parameters", lambda: (total(X()), 6.0)
)
wrong_call(
    "compile of a property",
    lambda: mutad.compile(property(lambda g: g.n)),
    "put @property above @compile",
    lambda: (property(mutad.compile(lambda g: g.n)).__get__(Grid(2.0)), 2.0),
)
wrong_call(
    "the gradient of an int",
    lambda: mutad.grad(lambda n: n * n)(3),
    r"pass float\(n\)",
    lambda: (mutad.grad(lambda n: n * n)(3.0), 6.0),
)
wrong_call("compile of a number", lambda: mutad.compile(3), "takes a Python function, not int")
wrong_call(
    "compile of a class",
    lambda: mutad.compile(Grid),
    "write a function that calls it",
    lambda: (mutad.compile(lambda n: Grid(n).n)(2.0), 2.0),
)
wrong_call(
    "compile of an object",
    lambda: mutad.compile(Scaling()),
    "not an object of class Scaling: compile its method, compile.x.__call__",
    lambda: (mutad.compile(Scaling().__call__, opt=0)(X()), 2.0 * X()),
)
wrong_call(
    "compile of NumPy's sum",
    lambda: mutad.compile(np.sum),
    "not numpy.sum: write a function that calls it",
    lambda: (mutad.compile(lambda x: np.sum(x))(X()), 6.0),
)
wrong_call(
    "the gradient of a tuple",
    lambda: of_a_pair.grad((X(), X())),
    "its type is a tuple.*pass list.p.",
    lambda: (of_a_pair.grad([X(), X()])[0], X()),
)
wrong_call(
    "out_axes",
    lambda: mutad.batch(total, out_axes=1),
    "'out_axes': results are stacked along a first axis: move it with np.moveaxis",
)
wrong_call(
    "a sparse matrix",
    lambda: total(scipy.sparse.csr_array(np.eye(2))),
    "is not an array: pass x.data, x.indices, x.indptr",
    lambda: (total(scipy.sparse.csr_array(np.eye(2)).data), 2.0),
)
wrong_call(
    "complex numbers", lambda: total(X() * 1j), "pass x.real and x.imag", lambda: (total(X()), 6.0)
)
wrong_call(
    "dates",
    lambda: total(np.array(["2020-01-01"], dtype="datetime64[D]")),
    "pass x.view.np.int64.",
    lambda: (total(np.array(["1970-01-03"], dtype="datetime64[D]").view(np.int64)), 2),
)
wrong_call(
    "an array of objects",
    lambda: total(X().astype(object)),
    "pass x.astype.float., if it holds numbers",
    lambda: (total(X().astype(object).astype(float)), 6.0),
)
wrong_call(
    "compile of a ufunc",
    lambda: mutad.compile(np.sin),
    "write a function that calls it",
    lambda: (mutad.compile(lambda x: np.sin(x))(0.0), 0.0),
)
wrong_call(
    "compile of a builtin",
    lambda: mutad.compile(len),
    "write a function that calls it",
    lambda: (mutad.compile(lambda x: len(x))(X()), 3),
)
wrong_call(
    "compile of NumPy's Python",
    lambda: mutad.compile(np.linalg.norm),
    "write a function that calls it",
    lambda: (mutad.compile(lambda x: np.linalg.norm(x))(X()), np.sqrt(14.0)),
)
wrong_call("savez", lambda: mutad.compile(savez="all"), "no option 'savez'; there are saves")
wrong_call(
    "saves",
    lambda: mutad.compile(saves="none"),
    "use 'minimal', 'fewest', 'all' or 'forbid'",
    exception=ValueError,
)
wrong_call("opt", lambda: mutad.compile(opt=4), "use 0, 1, 2 or 3", exception=ValueError)
wrong_call("grad=", lambda: mutad.compile(grad="yes"), "use True or False")
wrong_call("target", lambda: mutad.compile(target="tpu"), "target='tpu'", exception=ValueError)
wrong_call("memory", lambda: mutad.compile(memory="lots"), "256MiB", exception=ValueError)
wrong_call(
    "no gradient",
    lambda: total.grad(X()),
    "decorate it with @compile.grad=True",
    gradient,
    AttributeError,
)
wrong_call(
    "a gradient of a vector",
    lambda: vector_valued.grad(X()),
    "use vjp, pullback or jacobian",
    lambda: (vector_valued.vjp(X())[1](np.ones(3)), 2.0 * np.ones(3)),
)
wrong_call(
    "a gradient in an int", lambda: of_an_int.grad(3), "'n' has no derivative, its type is int"
)
wrong_call(
    "a gradient in ints",
    lambda: energy.grad(np.array([3, 1, 2])),
    "pass x.astype.float.",
    lambda: (energy.grad(np.array([3, 1, 2]).astype(float)), GRADIENT),
)
wrong_call(
    "wrt of no name",
    lambda: energy.grad(X(), wrt="y"),
    "no parameter is called 'y'; there are x, k",
)
wrong_call(
    "wrt of no place", lambda: energy.grad(X(), wrt=5), "there is no parameter 5; there are 2"
)
wrong_call(
    "wrt twice", lambda: energy.grad(X(), wrt=("x", "x")), "a parameter twice", exception=ValueError
)
wrong_call("wrt None", lambda: energy.grad(X(), wrt=None), "takes names and positions")
wrong_call(
    "a torch tensor",
    lambda: energy(of_package("torch.Tensor")),
    "is no NumPy array: pass x.numpy.*mutad.torch.wrap",
)
wrong_call(
    "its gradient",
    lambda: energy.grad(of_package("torch.Tensor")),
    "is no NumPy array: pass x.numpy",
)
wrong_call(
    "a pandas series",
    lambda: energy.grad(of_package("pandas.core.series.Series")),
    "pass x.to_numpy..",
)
wrong_call(
    "a pandas frame", lambda: total(of_package("pandas.core.frame.DataFrame")), "pass x.to_numpy.."
)
wrong_call("a jax array", lambda: energy(of_package("jaxlib._jax.ArrayImpl")), "mutad.jax.wrap")
wrong_call(
    "a matrix",
    lambda: total(np.matrix([[1.0]])),
    "pass np.asarray.x.",
    lambda: (total(np.asarray(np.matrix([[1.0]]))), 1.0),
)
wrong_call(
    "a masked array",
    lambda: total(np.ma.masked_equal(X(), 1.0)),
    "has a mask: pass x.data and x.mask, or what x.filled",
    lambda: (total(np.ma.masked_equal(X(), 1.0).filled(0.0)), 5.0),
)
wrong_call(
    "another masked array",
    lambda: of_an_int(np.ma.masked_equal(X(), 1.0)),
    "has a mask: pass n.data and n.mask, or what n.filled",
)
wrong_call(
    "half precision",
    lambda: total(X().astype(np.float16)),
    "pass x.astype.np.float32.",
    lambda: (total(X().astype(np.float32)), 6.0),
)
wrong_call("complex", lambda: total(X() * 1j), "dtype complex128 is not supported")
wrong_call("objects", lambda: total(np.array([1.0, None])), "dtype object is not supported")
wrong_call("too few", lambda: energy(), "missing 1 required positional argument: 'x'")
wrong_call(
    "too many", lambda: energy(X(), 1.0, 2.0), "takes from 1 to 2 positional arguments but 3"
)
wrong_call(
    "tangents of no name",
    lambda: energy.jvp(X(), tangents={"y": X()}),
    "^tangents: no parameter is called 'y'; there are x, k",
)
wrong_call(
    "tangents of no part",
    lambda: of_a_grid.jvp(Grid(2.0), tangents={"g.m": 1.0}),
    "^tangents: no parameter or part of one is called 'g.m'",
)
wrong_call(
    "jvp as JAX has it",
    lambda: energy.jvp((X(),), (X(),)),
    r"jvp.. missing 1 required keyword-only argument: 'tangents', as in f.jvp.u, k, tangents=.\"u\": du",
    lambda: (energy.jvp(X(), tangents={"x": X()})[1], GRADIENT @ X()),
)
wrong_call(
    "jvp as JAX has it, of a function",
    lambda: mutad.jvp(energy, (X(),), (X(),)),
    r"call what it returns, as in mutad.jvp.f..x, tangents=",
    lambda: (mutad.jvp(energy)(X(), tangents={"x": X()})[1], GRADIENT @ X()),
)
wrong_call(
    "vjp as JAX has it",
    lambda: mutad.vjp(energy, X(), 1.0),
    r"not float: call what it returns, as in out, back = mutad.vjp.f..x.",
    lambda: (mutad.vjp(energy)(X())[1](1.0), GRADIENT),
)
wrong_call("wrt an array", lambda: mutad.grad(energy, X()), r"not ndarray: call what it returns")
wrong_call(
    "hvp as PyTorch has it",
    lambda: energy.hvp(X(), X()),
    "missing 1 required keyword-only argument: 'direction', as in f.hvp.u, direction=v",
)
wrong_call(
    "f.vmap",
    lambda: energy.vmap,
    r"no attribute 'vmap': use mutad.batch.f.",
    exception=AttributeError,
)
wrong_call(
    "f.py_func",
    lambda: energy.py_func,
    "use f.__wrapped__",
    lambda: (energy.__wrapped__(X()), 28.0),
    exception=AttributeError,
)
wrong_call("a device", lambda: mutad.compile(device="cuda"), "pass arrays of mutad.device_array")
wrong_call(
    "a signature",
    lambda: mutad.compile("float64(float64[:])"),
    "not str: leave signatures out, code is made at the first call",
    lambda: (mutad.compile(lambda x: x.sum())(X()), 6.0),
)
wrong_call("signatures", lambda: mutad.compile(["f8(f8[:])"]), "not list: leave signatures out")
wrong_call(
    "tangents in a tuple",
    lambda: energy.jvp(X(), tangents=(X(),)),
    "use a dict",
    lambda: (energy.jvp(X(), tangents={"x": X()})[1], GRADIENT @ X()),
)
wrong_call(
    "a tangent of another shape",
    lambda: energy.jvp(X(), tangents={"x": np.ones(2)}),
    "the tangent of 'x' is",
    exception=ValueError,
)
wrong_call(
    "a direction of another shape",
    lambda: energy.hvp(X(), direction=np.ones(4)),
    "has shape .4,., not .3,.",
    exception=ValueError,
)
wrong_call(
    "pullback without wrappers",
    lambda: energy.pullback(X(), 1.0),
    "Duplicated.array, shadow.",
    lambda: (
        energy.pullback(mutad.Duplicated(X(), np.zeros(3)), mutad.Const(2.0), cotangent=1.0)[0],
        28.0,
    ),
)
wrong_call(
    "a shadow of another shape",
    lambda: energy.pullback(mutad.Duplicated(X(), np.zeros(2)), mutad.Const(2.0)),
    "the shadow of 'x'",
    exception=ValueError,
)
wrong_call(
    "no stage",
    lambda: energy.inspect("assembler", X()),
    "stages are frontend, simplify",
    lambda: (energy.inspect("frontend", X())[:8], "builtin."),
    ValueError,
)
wrong_call(
    "inspect before a call",
    lambda: never_called.inspect("llvm"),
    "call it once, or pass arguments",
    lambda: (total.inspect("frontend", X())[:8], "builtin."),
    ValueError,
)
wrong_call(
    "no mode",
    lambda: vector_valued.jacobian(X(), mode="sideways"),
    "use 'auto', 'forward' or 'reverse'",
    exception=ValueError,
)
wrong_call(
    "axes of a batch",
    lambda: mutad.batch(total, in_axes=(0, 1)),
    "in_axes has 2 entries, and there are 1",
    exception=ValueError,
)
wrong_call(
    "a number in a batch", lambda: mutad.batch(only_python)(3.0), "pass an array, or share it"
)
wrong_call(
    "check of a Python function",
    lambda: mutad.check_gradient(only_python, X()),
    "@compile.grad=True",
)
wrong_call("jit", lambda: mutad.jit, "mutad.compile", exception=AttributeError)
wrong_call("vmap", lambda: mutad.vmap, "mutad.batch", exception=AttributeError)
wrong_call("jacfwd", lambda: mutad.jacfwd, "mutad.jacobian", exception=AttributeError)
wrong_call("custom_vjp", lambda: mutad.custom_vjp, "mutad.rule", exception=AttributeError)


# --- What a first program has.


SETTINGS = types.ModuleType("settings_of_a_program")
SETTINGS.rate = 2.0
SETTINGS.weights = np.ones(3)
BY_NAME = {"a": SETTINGS}
MANY = list(range(5_000))
MANY_AS_ARRAY = np.array(MANY)
MAKES = [SETTINGS]


class Counted:
    count = 0


def of_rows(m):
    y = np.empty(m.shape[0])
    for k in range(m.shape[0]):
        y[k] = m[k].max()
    return y


@wrong("np.apply_along_axis(", "apply_along_axis is not compiled", "in a loop", of_rows)
def along_the_rows(m):
    return np.apply_along_axis(lambda row: row.max(), 1, m)


@wrong(
    "np.apply_over_axes(",
    "apply_over_axes is not compiled",
    "keepdims=True",
    lambda m: m.sum(axis=0, keepdims=True).sum(axis=1, keepdims=True),
)
def over_the_axes(m):
    return np.apply_over_axes(np.sum, m, (0, 1))


@wrong(
    "np.require(x, np.float64",
    "require is not compiled",
    "np.ascontiguousarray(x)",
    lambda x: np.ascontiguousarray(x, np.float64),
)
def required(x):
    return np.require(x, np.float64, "C")


def in_order(x):
    s = 0.0
    for k in range(3):
        s = 2.0 * s + x[k]
    return s


trange = function_of("tqdm.std", "trange")


class tqdm:
    __module__ = "tqdm.std"

    def __new__(cls, items):
        return object.__new__(cls)


@wrong("tqdm(range(3))", "objects of class tqdm are not compiled", "loop over what it", in_order)
def progress(x):
    s = 0.0
    for k in tqdm(range(3)):
        s = 2.0 * s + x[k]
    return s


@wrong("trange(3)", "trange is not compiled", "loop over what it wraps", in_order)
def progress_of_a_range(x):
    s = 0.0
    for k in trange(3):
        s = 2.0 * s + x[k]
    return s


@wrong("np.sqr", "'numpy' has no attribute 'sqr'", "did you mean `sqrt`", lambda x: np.sqrt(x))
def misspelt_root(x):
    return np.sqr(x)


@wrong("np.arrange", "'numpy' has no attribute 'arrange'", "`arange`", lambda n: np.arange(n))
def misspelt_range(n):
    return np.arrange(n)


@wrong(
    "np.linalg.nrom",
    "'numpy.linalg' has no attribute 'nrom'",
    "did you mean `norm`?",
    lambda x: np.linalg.norm(x),
)
def misspelt_norm(x):
    return np.linalg.nrom(x)


@wrong("math.sqr", "'math' has no attribute 'sqr'", "`sqrt`", lambda x: math.sqrt(x[0]))
def misspelt_function_of_math(x):
    return math.sqr(x[0])


@wrong("np.Inf", "'numpy' has no attribute 'Inf'", "did you mean `inf`?", lambda x: x * np.inf)
def old_infinity(x):
    return x * np.Inf


@wrong("np.float", "'numpy' has no attribute 'float'", "`float64`", lambda i: i.astype(np.float64))
def old_float(i):
    return i.astype(np.float)


@wrong("np.in1d", "'numpy' has no attribute 'in1d'", "`isin`", lambda i: np.isin(i, i))
def old_membership(i):
    return np.in1d(i, i)


@wrong("np.trapz", "'numpy' has no attribute 'trapz'", "`trapezoid`", lambda x: np.trapezoid(x))
def old_integral(x):
    return np.trapz(x)


@wrong("np.product", "'numpy' has no attribute 'product'", "`prod`", lambda x: np.prod(x))
def old_product(x):
    return np.product(x)


@wrong("x.meen", "has no attribute 'meen'", "did you mean `mean`?", lambda x: x.mean())
def misspelt_method(x):
    return x.meen()


@wrong("x.lenght", "has no attribute 'lenght'", "", None)
def length_of_others(x):
    return x.lenght


@wrong("GRIDD", "name 'GRIDD' is not defined", "did you mean `GRID`", lambda x: x * GRID.n)
def misspelt_global(x):
    return x * GRIDD.n  # noqa: F821


@wrong("totl", "name 'totl' is not defined", "did you mean `total`", lambda x: x.sum() * 2.0)
def misspelt_local(x):
    total = x.sum()
    return totl + total  # noqa: F821


@wrong("x.append", "has no attribute 'append'", "np.append(x, value)", lambda x: np.append(x, 1.0))
def append_to_an_array(x):
    x.append(1.0)
    return x


@wrong(
    "getattr(SETTINGS",
    "`settings_of_a_program.rate`, from outside, is reached by more than names",
    "write it by names alone",
    lambda x: x * SETTINGS.rate,
)
def read_by_getattr(x):
    return x * getattr(SETTINGS, "rate")


@wrong(
    'BY_NAME["a"].rate',
    "is reached by more than names (an item, a call, getattr): a change of it would not be seen",
    "pass it as an argument",
    lambda x: x * 2.0,
)
def module_in_a_dict(x):
    return x * BY_NAME["a"].rate


@wrong(
    "MAKES[0].weights",
    "`settings_of_a_program.weights`, from outside, is reached by more than names",
    "write it by names alone",
    lambda x: x * SETTINGS.weights,
)
def array_in_a_list_of_modules(x):
    return x * MAKES[0].weights


@wrong(
    "SETTINGS.__dict__",
    "`SETTINGS.__dict__`, a dict of",
    "write it by names alone",
    lambda x: x * SETTINGS.rate,
)
def dict_of_a_module(x):
    return x * SETTINGS.__dict__["rate"]


@wrong(
    "MANY",
    "`MANY`, from outside, is a list of 5000 items: changes of so many are not watched",
    "make it an array",
    lambda x: x * MANY_AS_ARRAY[7],
)
def long_list_from_outside(x):
    return x * MANY[7]


@wrong("values * 2.0", "`*` of a list", "np.array(l)", lambda values: np.array(values) * 2.0)
def list_argument_times_float(values):
    return values * 2.0


@wrong("values[0:1]", "an operator with a slice", "assign the slice", lambda values: values[0] + 1)
def slice_of_a_list_in_place(values):
    values[0:1] += [1.0]
    return values[0] + 1


@wrong(
    "LOG.warning",
    "attribute `.warning` of Logger objects is not compiled",
    ASIDE,
    lambda x: told(x),
)
def warns_in_a_log(x):
    try:
        return math.sqrt(x[0] - 9.0)
    except ValueError as error:
        LOG.warning("odd: %s", error)
        return 0.0


@wrong(
    "np.random.normal(size=3)",
    "normal is not compiled",
    "draw from a generator",
    lambda x, rng: x + rng.normal(size=3),
)
def noise_of_the_process(x):
    return x + np.random.normal(size=3)


@wrong(
    "np.random.default_rng(0)",
    "default_rng is not compiled",
    "rng = np.random.default_rng(seed), that is passed",
    lambda x, rng: x + rng.normal(size=3),
)
def generator_made_inside(x):
    return x + np.random.default_rng(0).normal(size=3)


@wrong("time.sleep(0.0)", "sleep is not compiled", ASIDE, lambda x: x.sum() * now() * 0.0)
def sleeps(x):
    time.sleep(0.0)
    return x.sum() * 0.0


@wrong(
    "Counted.count",
    "assignment to an attribute is not compiled",
    "return the value, and assign it outside",
    lambda x: (x.sum(), Counted.count + 1),
)
def counts_in_a_class(x):
    Counted.count += 1
    return x.sum(), Counted.count


@wrong(
    "Counted.count",
    "assignment to an attribute of something that is no object of a class",
    "return the value, and assign it outside",
    lambda x: x.sum(),
)
def stores_in_a_class(x):
    Counted.count = 1
    return x.sum()


@wrong("TABLE[n]", "this dict is from outside", "pass it as an argument", lambda n: n * 2.0)
def own_cache(n):
    if n not in TABLE:
        TABLE[n] = n * 2.0
    return n * 2.0


def scaled_whole(x):
    return float(int(1000.0 * x[0] + 0.5)) / 1000.0


@wrong(
    "float(text)",
    "the argument of float must be a scalar here",
    "use the number, or round(x, 3)",
    lambda x: round(x[0], 3),
)
def rounds_by_a_text(x):
    text = f"{x[0]:.3f}"
    return float(text)


@wrong("round(x, 2)", "the argument of round must be a scalar here", "the function of NumPy", None)
def rounds_an_array(x):
    return round(x, 2)


def stored_product(x):
    x[...] = np.dot(x, x)
    return x


@wrong(
    "np.dot(x, x, x)", "output array is not acceptable", "out[...] = np.dot(a, b)", stored_product
)
def product_of_three(x):
    return np.dot(x, x, x)


@wrong(
    '|print(f"{x=}")',
    "the `repr` of an array is not compiled",
    "show it as `str` does",
    lambda x: print(f"x={x}"),
)
def prints_its_array(x):
    print(f"{x=}")


@wrong(
    "np.add(x, x, where=x > 1.0)",
    "leaves elements uninitialized",
    "out=np.zeros_like(x)",
    lambda x: np.add(x, x, out=np.zeros_like(x), where=x > 1.0),
)
def sum_of_some(x):
    return np.add(x, x, where=x > 1.0)


@wrong(
    'np.array(m, order="F")',
    "array: the argument 'order' is not supported",
    "leave it out",
    lambda m: np.array(m) * 2.0,
)
def array_in_fortran_s_order(m):
    return np.array(m, order="F") * 2.0


@wrong(
    'np.asarray(m, order="C")',
    "asarray: the argument 'order' is not supported",
    "np.ascontiguousarray(x)",
    lambda m: np.ascontiguousarray(m),
)
def array_in_c_s_order(m):
    return np.asarray(m, order="C")


@wrong(
    'm.copy(order="F")',
    "copy: the argument 'order' is not supported",
    "the elements are the same",
    lambda m: m.copy() * 2.0,
)
def copy_in_fortran_s_order(m):
    return m.copy(order="F") * 2.0


@wrong(
    "np.add(x, x, dtype=np.float32)",
    "add: the argument 'dtype' is not supported",
    "convert an operand",
    lambda x: np.add(x.astype(np.float32), x.astype(np.float32)),
)
def dtype_of_a_ufunc(x):
    return np.add(x, x, dtype=np.float32)


@wrong(
    "i += x",
    "Cannot cast ufunc 'add' output from dtype('float64') to dtype('int64')",
    "convert the operands",
    lambda x, i: i + x.astype(np.int64),
)
def ints_plus_floats_in_place(x, i):
    i += x
    return i


@wrong(
    "(x > 1.0) or (x < 0.0)",
    "the truth value of an array is ambiguous",
    "join masks by `&`, `|` and `~`",
    lambda x: x[(x > 1.0) | (x < 0.0)],
)
def or_of_masks(x):
    return x[(x > 1.0) or (x < 0.0)]


@wrong(
    "not |x > 1.0",
    "the truth value of an array is ambiguous",
    "`~`",
    lambda x: x[~(x > 1.0)],
)
def not_of_a_mask(x):
    return x[not x > 1.0]


@wrong(
    "x > 0.0",
    "the truth value of an array is ambiguous",
    "reduce it",
    lambda x: x if (x > 0.0).all() else -x,
)
def choice_by_an_array(x):
    return x if x > 0.0 else -x


@wrong(
    "x == None",
    "these two cannot be compared",
    "test for None with `is None`",
    lambda x: x is None,
)
def comparison_with_none(x):
    return x == None  # noqa: E711


@wrong(
    "x[1.0]", "valid indices, not a Python float", "convert with int(...)", lambda x: x[int(1.0)]
)
def float_constant_as_subscript(x):
    return x[1.0]


@wrong(
    "x[len(x) / 2]",
    "valid indices, not a Python float",
    "divide by `//`",
    lambda x: x[len(x) // 2],
)
def middle(x):
    return x[len(x) / 2]


@wrong(
    "range(|len(x) / 2",
    "an integer is needed here",
    "convert with int(...)",
    lambda x: [x[k] for k in range(int(len(x) / 2))],
)
def half_a_range(x):
    return [x[k] for k in range(len(x) / 2)]


@wrong("len(x[0])", "`len` of something without a length", "", None)
def length_of_a_number(x):
    return len(x[0])


@wrong("s + 1", "is 'ab', not a number", "", None)
def text_plus_number(n):
    s = "ab"
    return s + 1


@wrong('open("table.txt")', "open is not compiled", ASIDE, lambda x: x * 2.0)
def reads_a_file(x):
    with open("table.txt"):
        return x * 2.0


@wrong('np.loadtxt("t")', "this call of loadtxt is not compiled", ASIDE, lambda x: x * 2.0)
def loads_a_table(x):
    return x * np.loadtxt("t")


@wrong('os.getenv("HOME")', "getenv is not compiled", ASIDE, lambda x: x * 2.0)
def reads_the_environment(x):
    return x * 2.0 if os.getenv("HOME") else x


@wrong("sys.exit(1)", "exit is not compiled", ASIDE, lambda x: x.sum())
def exits(x):
    if x.sum() < 0.0:
        sys.exit(1)
    return x.sum()


@wrong("vars(GRID)", "the builtin `vars` is not compiled", ASIDE, lambda x: x * GRID.n)
def fields_by_vars(x):
    return x * vars(GRID)["n"]


@wrong(
    "scipy.optimize.brentq(",
    "this call of brentq is not compiled",
    "call it outside, with compiled functions",
    lambda x: x[0] * 2.0,
)
def root_inside(x):
    return scipy.optimize.brentq(lambda z: z - 2.0 * x[0], 0.0, 10.0)


@wrong(
    "scipy.optimize.minimize(",
    "this call of minimize is not compiled",
    "jac=f.grad",
    lambda x: x * 0.0,
)
def minimum_inside(x):
    return scipy.optimize.minimize(lambda z: (z**2).sum(), x).x * 0.0


@wrong(
    "np.linalg.eigh(",
    "this call of eigh is not compiled",
    "Solvers inside a model",
    lambda x: x.sum(),
)
def eigenvalues_inside(x):
    return np.linalg.eigh(np.outer(x, x))[0].sum()


NODES, NODE_WEIGHTS = np.polynomial.legendre.leggauss(5)


@wrong(
    "scipy.integrate.quad(",
    "this call of quad is not compiled",
    "a sum over nodes and weights",
    lambda x: (NODE_WEIGHTS * (NODES + 1.0) * x[0]).sum(),
)
def integral_inside(x):
    return scipy.integrate.quad(lambda z: (z + 1.0) * x[0], -1.0, 1.0)[0]


def stepped(x):
    y, h = x.copy(), 0.1
    for _ in range(10):
        y -= h * y
    return y


@wrong(
    "scipy.integrate.odeint(", "this call of odeint is not", "write the steps as a loop", stepped
)
def trajectory_inside(x):
    return scipy.integrate.odeint(lambda y, t: -y, x, np.linspace(0.0, 1.0, 11))[-1]


@wrong(
    "np.polynomial.polynomial.polyval(",
    "polyval is not compiled",
    "np.polyval(c[::-1], x)",
    lambda x: np.polyval(np.array([1.0, 2.0])[::-1], x),
)
def power_series(x):
    return np.polynomial.polynomial.polyval(x, np.array([1.0, 2.0]))


@wrong(
    "np.histogram(",
    "`histogram` is compiled for a number of bins, or their edges",
    "give a number",
    lambda x: np.histogram(x, bins=10)[0],
)
def bins_by_a_rule(x):
    return np.histogram(x, bins="auto")[0]


@wrong(
    "np.frompyfunc(",
    "frompyfunc is not compiled",
    "call the function on the array",
    lambda x: (lambda v: 2.0 * v)(x),
)
def ufunc_of_a_function(x):
    return np.frompyfunc(lambda v: 2.0 * v, 1, 1)(x)


@wrong(
    "np.array(v for v in x)",
    "array takes arrays, numbers, and lists and tuples",
    "make a list: list(...)",
    lambda x: np.array(list(v for v in x)),
)
def array_of_a_generator(x):
    return np.array(v for v in x)


@wrong(
    "totl",
    "`totl` is read in the loop before the loop assigns it",
    "give `totl` a value of the same type before the loop",
    lambda x: x.sum(),
)
def misspelt_sum(x):
    total = 0.0
    for v in x:
        totl += v  # noqa: F821
    return total


@wrong(
    "np.stack([|*x])", "`*` of a sequence of run-time", "pass the array itself", lambda x: x * 1.0
)
def spread_to_stack(x):
    return np.stack([*x]) * 1.0


@wrong("values**2", "`**` of a list", "np.array(l)", lambda values: np.array(values) ** 2)
def square_of_a_list(values):
    return values**2


@wrong("d**2", "`**` of `d`, a dict", "compute with what is in them", lambda d: d["a"] ** 2)
def square_of_a_dict(d):
    return d**2


@wrong(
    "scipy.stats.norm.cdf",
    "attribute `.cdf` of norm_gen objects is not compiled",
    "write its formula, with functions of NumPy and scipy.special",
    lambda x: 0.5 * scipy.special.erfc(-x / math.sqrt(2.0)),
)
def normal_distribution(x):
    return scipy.stats.norm.cdf(x)


@wrong('io.StringIO("a")', "its class defines __new__", ASIDE, lambda x: x.sum())
def class_of_the_library(x):
    return x.sum() if io.StringIO("a") else 0.0


def made_by_new(x):
    return Grid(x[0]).n


class ByNew:
    def __new__(cls, n):
        made = object.__new__(cls)
        made.n = n
        return made


@wrong("ByNew(x[0])", "its class defines __new__", "a class with `__init__`", made_by_new)
def class_with_new(x):
    return ByNew(x[0]).n


@wrong("x(0)", "'numpy.ndarray' object is not callable", "", None)
def array_that_is_called(x):
    return x(0)


@wrong("n(0)", "'int' object is not callable", "", None)
def number_that_is_called(n):
    return n(0)


@wrong(
    "np.zeros((i, 2))",
    "an integer is needed here, not an array of rank 1",
    "take one element of it",
    lambda i: np.zeros((i[0], 2)),
)
def shape_of_an_array(i):
    return np.zeros((i, 2))


# --- And its first calls.


@mutad.compile(grad=True)
def is_large(x):
    return x.sum() > 1.0


@mutad.compile(grad=True)
def whole_sum(x):
    return int(x.sum())


@mutad.compile(grad=True)
def doubles(x):
    x *= 2.0


@mutad.compile(grad=True)
def rate_of(settings):
    return settings["rate"] * 2.0


wrong_call(
    "the gradient of a bool",
    lambda: is_large.grad(X()),
    "returns a scalar of type bool: return the float that it is made of",
    lambda: (mutad.grad(lambda x: x.sum() - 1.0)(X()), np.ones(3)),
)
wrong_call(
    "the gradient of an int result",
    lambda: whole_sum.grad(X()),
    "returns a scalar of type int: return the float that it is made of",
    lambda: (mutad.grad(lambda x: x.sum())(X()), np.ones(3)),
)
wrong_call(
    "the gradient of nothing",
    lambda: doubles.grad(X()),
    "returns None: return a number, or use pullback",
    lambda: (doubles.pullback(mutad.Duplicated(X(), np.ones(3)))[0], None),
)
wrong_call(
    "the gradient of a dict of ints",
    lambda: rate_of.grad({"rate": 2}),
    "'settings' has no derivative, it holds no floats",
    lambda: (rate_of.grad({"rate": 2.0}), {"rate": 2.0}),
)


class Rated:
    def __init__(self):
        self.rate = 2.0

    @mutad.compile(grad=True, opt=1)
    def times(self, count):
        return self.rate * count


wrong_call(
    "the gradient of a method with respect to a count",
    lambda: Rated().times.grad(3),
    "derivatives are with respect to floats, wrt= may name 'self'",
    lambda: (Rated().times.grad(3, wrt="self").rate, 3.0),
)
wrong_call(
    "compile of a method of an array", lambda: mutad.compile(X().sum), "write a function that"
)
wrong_call(
    "a range",
    lambda: total(range(3)),
    "range is not supported: pass list.x.",
    lambda: (total(np.array(list(range(3)), float)), 3.0),
)
wrong_call("a set", lambda: total({1.0, 2.0}), "set is not supported: pass sorted.x.")
wrong_call("a generator of Python", lambda: total(v for v in [1.0]), "pass list.x.")
wrong_call(
    "a buffer",
    lambda: total(memoryview(X())),
    "memoryview is not supported: pass np.asarray.x.",
    lambda: (total(np.asarray(memoryview(X()))), X().sum()),
)
wrong_call(
    "a RandomState", lambda: total(np.random.RandomState(1)), "pass a generator, np.random.def"
)
wrong_call(
    "a gradient that is called",
    lambda: energy.grad(wrt="x")(X()),
    "missing .* required positional argument",
    lambda: (energy.grad(X(), 1.0, wrt="x"), mutad.grad(energy, wrt="x")(X(), 1.0)),
)
