"""Calls that a program should not make, and what each is answered with.

`WRONG` maps a title to a `WrongCall`. Run as a script, this module makes all of them in one process
and prints how many it survived.
"""

from __future__ import annotations

import array
import decimal
import fractions
import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from python_oracle import compiled

import mutad
from mutad import Active, CompileError, Const, Duplicated


@dataclass(frozen=True)
class WrongCall:
    call: Callable[[], Any]
    exception: type[BaseException] | tuple[type[BaseException], ...]
    words: str
    """A regular expression that the message matches."""


WRONG: dict[str, WrongCall] = {}


def total(x):
    return x.sum()


def scale(x, by):
    x *= by
    return x[0] + by


def first(x):
    return x[0] * 2.0


def store(x):
    x[0] = 1


def store_slice(x):
    x[1:] = 2


def fill(x):
    x.fill(3)


def add_in_place(x):
    x += 1


def store_through_a_view(x):
    v = x[::-1]
    v[0] = 1


def store_through_a_call(x):
    store(x[1:])


def store_in_a_branch(x):
    if x.size > 4:
        x[0] = 1


def store_in_rows(a):
    for row in a:
        row[0] = 1


def product(x, y):
    return (x * y).sum()


def matrix(a):
    return a[0, 0] + a[1, 1]


def loop(x, n):
    s = 0.0
    for i in range(n):
        s += x[i]
    return s


def keyword_only(x, *, k=1.0):
    return x.sum() * k


WORDS = "argument|dtype|supported"


def f(function: Callable[..., Any]) -> Any:
    return compiled(function, grad=True)


def wrong(
    title: str,
    call: Callable[[], Any],
    exception: Any = TypeError,
    words: str = WORDS,
) -> None:
    assert title not in WRONG, title
    WRONG[title] = WrongCall(call, exception, words)


class Subclass(np.ndarray):
    pass


class LikeAnArray:
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.zeros(3)


def read_only(a: Any) -> Any:
    a.flags.writeable = False
    return a


def unaligned(dtype: Any) -> Any:
    size = np.dtype(dtype).itemsize
    return np.zeros(4 * size + 1, np.uint8)[1:].view(dtype)


# Objects that are no arguments, read, written and differentiated.

UNSUPPORTED: dict[str, Callable[[], Any]] = {
    "an array of objects": lambda: np.array([1.0, None, "x"], object),
    "an array of lists": lambda: np.array([[1], [2, 3]], dtype=object),
    "complex128": lambda: np.zeros(3, complex),
    "complex64": lambda: np.zeros(3, np.complex64),
    "float16": lambda: np.zeros(3, np.float16),
    "longdouble": lambda: np.zeros(3, np.longdouble),
    "unicode": lambda: np.array(["a", "b"]),
    "bytes in an array": lambda: np.array([b"a", b"b"]),
    "datetime64": lambda: np.array(["2020-01-01"], "datetime64[D]"),
    "timedelta64": lambda: np.array([1, 2], "timedelta64[s]"),
    "a structured array": lambda: np.zeros(3, [("a", float), ("b", int)]),
    "a record array": lambda: np.rec.array([(1, 2.0)], names=("a", "b")),
    "void": lambda: np.zeros(3, "V8"),
    "big-endian float64": lambda: np.zeros(3, ">f8"),
    "big-endian float32": lambda: np.zeros(3, ">f4"),
    "big-endian int64": lambda: np.zeros(3, ">i8"),
    "big-endian int32": lambda: np.zeros(3, ">i4"),
    "a subclass": lambda: np.zeros(3).view(Subclass),
    "a matrix": lambda: np.zeros((2, 2)).view(np.matrix),
    "a masked array": lambda: np.ma.array([1.0, 2.0], mask=[True, False]),
    "a list": lambda: [1.0, 2.0],
    "a nested list": lambda: [[1.0], [2.0]],
    "an empty list": lambda: [],
    "a dict": lambda: {"x": 1.0},
    "a set": lambda: {1.0},
    "a string": lambda: "abc",
    "bytes": lambda: b"abc",
    "a bytearray": lambda: bytearray(8),
    "a memoryview": lambda: memoryview(bytearray(8)),
    "an array.array": lambda: array.array("d", [1.0]),
    "a range": lambda: range(3),
    "a generator": lambda: (v for v in (1.0, 2.0)),
    "a class": lambda: float,
    "a module": lambda: math,
    "a dtype": lambda: np.dtype(float),
    "a complex": lambda: 1j,
    "a fraction": lambda: fractions.Fraction(1, 2),
    "a decimal": lambda: decimal.Decimal("0.5"),
    "an object with __array__": LikeAnArray,
    "an object": object,
    "a NumPy complex": lambda: np.complex128(1j),
    "a NumPy float16": lambda: np.float16(1),
    "a NumPy string": lambda: np.str_("a"),
    "a NumPy datetime": lambda: np.datetime64("2020-01-01"),
    "Ellipsis": lambda: ...,
    "a slice": lambda: slice(3),
}

COMPILED_FOR = {
    "a class",
    "a dict",
    "a string",
    "a fraction",
    "an object with __array__",
    "a list",
    "a nested list",
    "an empty list",
}
"""What may be an argument; the functions here do not know what to do with it."""

for title, make in UNSUPPORTED.items():
    kinds: Any = (TypeError, CompileError) if title in COMPILED_FOR else TypeError
    words = (
        "not compiled|no attribute|number|float|integers|tuple" if title in COMPILED_FOR else WORDS
    )
    wrong(f"{title}, read", lambda make=make: f(total)(make()), kinds, words)
    wrong(f"{title}, written", lambda make=make: f(scale)(make(), 2.0), kinds, words)
    wrong(f"{title}, differentiated", lambda make=make: f(total).grad(make()), kinds, words)
for title in (
    "an array of objects",
    "a set",
    "big-endian float64",
    "a NumPy float16",
    "an object",
):
    make = UNSUPPORTED[title]
    wrong(
        f"{title}, as second argument",
        lambda make=make: f(product)(np.zeros(3), make()),
        TypeError,
        "'y'",
    )
    wrong(f"{title}, in a tuple", lambda make=make: f(total)((make(),)), TypeError, "x")

for bits in (63, 64, 200):
    wrong(
        f"an int of {bits + 1} bits",
        lambda bits=bits: f(loop)(np.zeros(3), 2**bits),
        OverflowError,
        "int",
    )
wrong("a negative int of 65 bits", lambda: f(loop)(np.zeros(3), -(2**64)), OverflowError, "int")

# Memory.

for dtype in ("f8", "f4", "i8", "i4"):
    wrong(f"unaligned {dtype}, read", lambda d=dtype: f(total)(unaligned(d)), ValueError, "align")
    wrong(
        f"unaligned {dtype}, written",
        lambda d=dtype: f(scale)(unaligned(d), 2),
        ValueError,
        "align",
    )
wrong("unaligned, differentiated", lambda: f(total).grad(unaligned("f8")), ValueError, "align")

for program in (
    store,
    store_slice,
    fill,
    add_in_place,
    store_through_a_view,
    store_through_a_call,
    store_in_a_branch,
):
    for title, make in {
        "read-only": lambda: read_only(np.zeros(5)),
        "a view of read-only memory": lambda: read_only(np.zeros(10))[::2],
        "read-only bytes": lambda: np.frombuffer(bytes(40)),
        "read-only and differentiated": None,
    }.items():
        if make is None:
            call = lambda p=program: f(p).pullback(Duplicated(read_only(np.zeros(5)), np.zeros(5)))  # noqa: E731
        else:
            call = lambda p=program, make=make: f(p)(make())  # noqa: E731
        wrong(f"{title}: {program.__name__}", call, ValueError, "read-only")
wrong(
    "rows of a read-only array",
    lambda: f(store_in_rows)(read_only(np.zeros((2, 2)))),
    ValueError,
    "read-only",
)
wrong(
    "a broadcast array, written", lambda: f(store)(np.broadcast_to(1.0, 5)), ValueError, "read-only"
)
wrong(
    "a writeable broadcast array, written",
    lambda: f(store)(np.lib.stride_tricks.as_strided(np.zeros(1), (5,), (0,))),
    ValueError,
    "overlaps itself",
)
wrong(
    "a sliding window, differentiated",
    lambda: f(total).grad(np.lib.stride_tricks.as_strided(np.zeros(5), (3, 3), (8, 8))),
    ValueError,
    "overlaps itself",
)

# How many arguments.

wrong("no argument", lambda: f(total)(), TypeError, "missing 1 required positional argument: 'x'")
wrong(
    "one argument of two", lambda: f(product)(np.zeros(3)), TypeError, "missing 1 required .* 'y'"
)
wrong(
    "too many arguments",
    lambda: f(total)(np.zeros(3), 1),
    TypeError,
    "takes 1 positional argument but 2",
)
wrong(
    "an unknown keyword",
    lambda: f(total)(np.zeros(3), axis=0),
    TypeError,
    "unexpected keyword argument 'axis'",
)
wrong(
    "an unknown keyword alone",
    lambda: f(total)(y=np.zeros(3)),
    TypeError,
    "unexpected keyword|missing",
)
wrong(
    "an argument twice", lambda: f(total)(np.zeros(3), x=np.zeros(3)), TypeError, "multiple values"
)
wrong(
    "keyword-only by position",
    lambda: f(keyword_only)(np.zeros(3), 2.0),
    TypeError,
    "takes 1 positional",
)
wrong("grad without arguments", lambda: f(total).grad(), TypeError, "missing")
wrong("grad with too many", lambda: f(total).grad(np.zeros(3), 1), TypeError, "takes 1 positional")
wrong(
    "grad with an unknown keyword",
    lambda: f(total).grad(np.zeros(3), to=1),
    TypeError,
    "unexpected keyword",
)
wrong(
    "value_and_grad without arguments", lambda: f(total).value_and_grad(wrt=0), TypeError, "missing"
)
wrong("vjp without arguments", lambda: f(total).vjp(), TypeError, "missing")
wrong("pullback without arguments", lambda: f(total).pullback(), TypeError, "missing|argument")
wrong(
    "keywords that are no identifiers",
    lambda: f(total)(**{"x y": 1, "": 2}),
    TypeError,
    "unexpected|missing",
)

# Ranks and shapes.

wrong("a scalar for an array", lambda: f(first)(2.0), (CompileError, TypeError), "subscript|index")
wrong("None for an array", lambda: f(first)(None), (CompileError, TypeError), "None|subscript")
wrong(
    "a NumPy scalar for an array",
    lambda: f(first)(np.float64(2)),
    (CompileError, IndexError),
    "subscript|index|scalar",
)
wrong(
    "an array of rank 0",
    lambda: f(first)(np.array(2.0)),
    (CompileError, IndexError),
    "too many indices|rank",
)
wrong(
    "an array of rank 1 for 2",
    lambda: f(matrix)(np.zeros(3)),
    (CompileError, IndexError),
    "too many indices|rank",
)
wrong(
    "an empty matrix",
    lambda: f(matrix)(np.zeros((0, 0))),
    IndexError,
    "index 0 is out of bounds for axis 0",
)
wrong(
    "a narrow matrix",
    lambda: f(matrix)(np.zeros((2, 1))),
    IndexError,
    "index 1 is out of bounds for axis 1",
)
wrong(
    "an empty vector",
    lambda: f(first)(np.zeros(0)),
    IndexError,
    "index 0 is out of bounds for axis 0 with size 0",
)
wrong(
    "an empty vector, differentiated",
    lambda: f(first).grad(np.zeros(0)),
    IndexError,
    "index 0 is out of bounds",
)
wrong(
    "shapes that differ",
    lambda: f(product)(np.zeros(3), np.zeros(4)),
    ValueError,
    "could not be broadcast",
)
wrong(
    "shapes that differ, grad",
    lambda: f(product).grad(np.zeros(3), np.zeros(4)),
    ValueError,
    "could not be broad",
)
wrong(
    "a float for an int",
    lambda: f(loop)(np.zeros(3), 2.0),
    (CompileError, TypeError),
    "integer|int",
)
wrong(
    "an array for an int",
    lambda: f(loop)(np.zeros(3), np.zeros(3)),
    (CompileError, TypeError),
    "int",
)
wrong(
    "a loop too long",
    lambda: f(loop)(np.zeros(3), 4),
    IndexError,
    "index 3 is out of bounds for axis 0 with size 3",
)
wrong(
    "a loop far too long",
    lambda: f(loop)(np.zeros(3), 2**62),
    IndexError,
    "index 3 is out of bounds",
)

# Gradients.

X = (1.0, 2.0, 3.0)


def x() -> Any:
    return np.array(X)


wrong("wrt an unknown name", lambda: f(total).grad(x(), wrt="y"), TypeError, "wrt")
wrong("wrt a position too large", lambda: f(total).grad(x(), wrt=1), TypeError, "wrt")
wrong("wrt None", lambda: f(total).grad(x(), wrt=None), TypeError, "wrt")
wrong("wrt a float", lambda: f(total).grad(x(), wrt=0.0), TypeError, "wrt")
wrong("wrt True", lambda: f(total).grad(x(), wrt=True), TypeError, "wrt")
wrong("wrt nothing", lambda: f(total).grad(x(), wrt=()), ValueError, "wrt")
wrong("wrt twice", lambda: f(total).grad(x(), wrt=(0, "x")), ValueError, "wrt")
wrong("wrt an array", lambda: f(total).grad(x(), wrt=x()), TypeError, "wrt")
wrong("wrt an int", lambda: f(loop).grad(x(), 2, wrt="n"), TypeError, "int")
wrong("wrt an int array", lambda: f(total).grad(np.zeros(3, int)), TypeError, "i64|int")
wrong("wrt a bool array", lambda: f(total).grad(np.zeros(3, bool)), TypeError, "b1|bool")
wrong(
    "wrt None, an argument", lambda: f(product).grad(None, x()), (TypeError, CompileError), "None"
)
wrong("grad of a procedure", lambda: f(store).grad(x()), TypeError, "None")
wrong(
    "pullback of bare arguments",
    lambda: f(total).pullback(x(), cotangent=1.0),
    TypeError,
    "Duplicated",
)
wrong(
    "pullback without a cotangent",
    lambda: f(total).pullback(Duplicated(x(), x())),
    TypeError,
    "cotangent",
)
wrong(
    "Active around an array",
    lambda: f(total).pullback(Active(x()), cotangent=1.0),
    TypeError,
    "Duplicated",
)
wrong(
    "Duplicated around a float",
    lambda: f(scale).pullback(Const(x()), Duplicated(2.0, 1.0), cotangent=1.0),
    TypeError,
    "Active",
)
wrong(
    "a list as a shadow",
    lambda: f(total).pullback(Duplicated(x(), [0.0] * 3), cotangent=1.0),
    TypeError,
    "shadow",
)
wrong(
    "a short shadow",
    lambda: f(total).pullback(Duplicated(x(), np.zeros(2)), cotangent=1.0),
    ValueError,
    "shadow",
)
wrong(
    "an int shadow",
    lambda: f(total).pullback(Duplicated(x(), np.zeros(3, int)), cotangent=1.0),
    ValueError,
    "shadow",
)
wrong(
    "a read-only shadow",
    lambda: f(total).pullback(Duplicated(x(), read_only(np.zeros(3))), cotangent=1.0),
    ValueError,
    "read-only",
)
wrong(
    "an unaligned shadow",
    lambda: f(total).pullback(Duplicated(np.zeros(4), unaligned("f8")), cotangent=1.0),
    ValueError,
    "shadow",
)
wrong(
    "a shadow that overlaps itself",
    lambda: f(total).pullback(
        Duplicated(x(), np.lib.stride_tricks.as_strided(np.zeros(1), (3,), (0,))), cotangent=1.0
    ),
    ValueError,
    "shadow",
)
wrong("a cotangent of another kind", lambda: f(total).vjp(x())[1]("one"), TypeError, "cotangent")
wrong(
    "an array as the cotangent of a scalar",
    lambda: f(total).vjp(x())[1](np.ones(3)),
    TypeError,
    "cotangent",
)
wrong(
    "a final cotangent of another shape",
    lambda: f(store).vjp(x())[1](x=np.ones(4)),
    ValueError,
    "cotangent",
)
wrong("a final cotangent of nobody", lambda: f(store).vjp(x())[1](y=np.ones(3)), TypeError, "y")
wrong(
    "pullback with too few",
    lambda: f(product).pullback(Const(x()), cotangent=1.0),
    (TypeError, ValueError),
    "missing 1 required",
)

# What is compiled, and with which options.

for title, thing in {
    "a number": 3,
    "a builtin": len,
    "a ufunc": np.sin,
    "a class": Subclass,
}.items():
    wrong(
        f"compile {title}",
        lambda thing=thing: mutad.compile(thing),
        TypeError,
        "takes a Python function",
    )
wrong(
    "compile None with options",
    lambda: mutad.compile(None, saves="some"),
    (TypeError, ValueError),
    "saves",
)
wrong("an unknown option", lambda: mutad.compile(total, speed="high"), TypeError, "speed")
wrong("saves of another kind", lambda: mutad.compile(total, saves="some"), ValueError, "saves")
wrong("opt of another kind", lambda: mutad.compile(total, opt=9), ValueError, "opt")
wrong("grad of a number", lambda: mutad.grad(3), TypeError, "takes a Python function")
wrong(
    "a generator function",
    lambda: mutad.compile(generator)(x()),
    (TypeError, CompileError),
    "yield|generator",
)
wrong(
    "a coroutine function",
    lambda: mutad.compile(coroutine)(x()),
    (TypeError, CompileError),
    "async|coroutine",
)
wrong("starred parameters", lambda: mutad.compile(starred)(x()), (TypeError, CompileError), r"\*")
wrong(
    "source that is nowhere",
    lambda: mutad.compile(sourceless())(x()),
    (CompileError, TypeError, OSError),
    "source",
)
wrong(
    "inspect of an unknown stage",
    lambda: f(total).inspect("nothing", np.zeros(3)),
    (ValueError, TypeError),
    "nothing|stage",
)


def generator(x):
    yield x


async def coroutine(x):
    return x


def starred(*x):
    return x


def sourceless() -> Any:
    names: dict[str, Any] = {}
    exec("def nowhere(x):\n    return x", names)
    return names["nowhere"]


def main() -> None:
    """Make every wrong call, several times each, in one process."""
    survived = 0
    warnings.simplefilter("ignore")
    for case in WRONG.values():
        for _ in range(2):
            try:
                case.call()
            except Exception:
                survived += 1
    print("survived", survived)


if __name__ == "__main__":
    main()
