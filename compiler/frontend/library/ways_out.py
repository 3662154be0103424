"""What to write instead of functions and attributes of arrays that are not compiled.

Where there is nothing better, the general way out (`diagnostics.ELSEWHERE`) is said.
"""

from __future__ import annotations

import random
import sys
import textwrap
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from ...diagnostics import ELSEWHERE, INSTALLED, is_library
from ..values import NUMPY_DTYPE, Array, Scalar, Value

LEGACY = "draw from a generator, rng = np.random.default_rng(seed), that is passed"
"""NumPy's global generator, and Python's, belong to the process."""

OF_FUNCTIONS: dict[str, str] = {
    "numpy.random.seed": LEGACY,
    "numpy.random.default_rng": LEGACY,
    "numpy.vectorize": "call the function on the array, or in a loop over its elements",
    "numpy.frompyfunc": "call the function on the array, or in a loop over its elements",
    "numpy.fromiter": "make a list, and an array of it: np.array([... for ...])",
    "numpy.nditer": "loop over the array, or over x.reshape(-1)",
    "numpy.ndindex": "write a loop for each axis: for i in range(n)",
    "numpy.ndenumerate": "write a loop for each axis: for i in range(x.shape[0])",
    "numpy.matrix": "use an array of rank 2, and @ for products",
    "numpy.asmatrix": "use an array of rank 2, and @ for products",
    "numpy.poly1d": "use np.polyval(coefficients, x)",
    "itertools.groupby": "loop, and compare each key with the one before",
    "numba.typed.typedlist.List": "use a list: []",
    "numba.typed.typeddict.Dict": "use a dict: {}",
    "builtins.complex": "compute with real and imaginary parts",
    "builtins.breakpoint": "take the decorator off while you debug: the function is Python",
    "time.time": "measure around the call, outside of compiled code",
    "time.perf_counter": "measure around the call, outside of compiled code",
}

OF_CLASSES: dict[str, str] = {
    "numba.core.extending._Intrinsic": "write what it computes: it has no Python function",
    "numba.core.withcontexts._ObjModeContextType": "put the block into a function with @mutad.opaque",
}
"""What is called by its class, for those that have no name of their own."""

OF_ATTRIBUTES: dict[str, str] = {
    "flat": "use x.reshape(-1), of an array in C order",
    "itemset": "write x[i] = value",
    "resize": "make an array of the new size, and copy to it",
    "append": "use np.append(x, value), which makes a new array, or a list",
    "choose": "use np.where, or select items of a list",
    # Of tensors:
    "add_": "write x += y",
    "at": "store in place: x[i] = value, x[i] += value",
    "clamp": "use np.clip(x, low, high)",
    "clone": "use x.copy()",
    "copy_": "write x[...] = y",
    "detach": "use mutad.stop_gradient(x)",
    "div_": "write x /= y",
    "double": "use x.astype(np.float64)",
    "fill_": "use x.fill(value)",
    "float": "use x.astype(np.float32)",
    "int": "use x.astype(np.int32)",
    "long": "use x.astype(np.int64)",
    "matmul": "write x @ y",
    "mm": "write x @ y",
    "mul_": "write x *= y",
    "numel": "use x.size",
    "permute": "use x.transpose(axes)",
    "pow": "write x**y",
    "sub_": "write x -= y",
    "unsqueeze": "use np.expand_dims(x, axis)",
    "zero_": "use x.fill(0)",
    **dict.fromkeys(
        ("block_until_ready", "contiguous", "cpu", "cuda", "numpy", "to"),
        "leave it out: this is an array of NumPy",
    ),
}

OF_ARGUMENTS: dict[str, str] = {
    "dim": "NumPy calls it axis=",
    "dims": "NumPy calls it axis=",
    "keepdim": "NumPy calls it keepdims=",
    "unbiased": "NumPy calls it ddof=",
    "correction": "NumPy calls it ddof=",
}
"""What other packages call the arguments of NumPy's functions."""

WITHOUT: dict[str, str] = {
    "casting": "convert with .astype(dtype)",
    "dtype": "convert an operand: x.astype(dtype)",
    "order": "leave it out, or use np.ascontiguousarray(x): the elements are the same",
    "out": "assign what it returns: y[...] = f(x)",
    "subok": "leave it out: there are no subclasses here",
}
"""How to do without arguments of NumPy's functions."""


COMPARED = "compare numbers and arrays, strings with strings; test for None with `is None`"
ASSIGNED = (
    "store to elements, x[...] = y; of a class or module: return the value, and assign it outside"
)
DELETED = "`del` is for names, and items of lists and dicts", "of an array: x = np.delete(x, k)"
AS_ARRAY = "pass it as an argument, made an array by np.asarray"
COMPLEX = (
    "complex numbers are not compiled: transform outside, or in a function with @mutad.opaque that takes and"
    " returns real arrays (and @mutad.rule, if a derivative goes through it)"
)
DERIVATIVE = "decorate the function with @compile(grad=True), outside, and call its .{}(...) here"
NOT_ALONG: dict[str, str] = (
    {
        f"numpy.fft.{kind}fft{axes}": COMPLEX
        for kind in ("", "i", "r", "ir", "h", "ih")
        for axes in ("", "2", "n")
    }
    | {
        f"mutad.{kind}": DERIVATIVE.format(kind)
        for kind in ("grad", "value_and_grad", "jvp", "hvp")
    }
    | {
        **dict.fromkeys(
            ("mutad.vjp", "mutad.hessian", "mutad.jacobian"),
            "take it outside; compiled code may call .grad, .value_and_grad, .jvp and .hvp of a function",
        ),
        "mutad.batch": "write a loop over the items",
        "mutad.compile": "compile the function outside, at the top of a module",
        "numpy.apply_along_axis": "call the function in a loop: for k in range(m.shape[0]): y[k] = f(m[k])",
        "numpy.apply_over_axes": "call the reduction with axis= and keepdims=True, one axis after the other",
        "numpy.block": "use np.concatenate, np.hstack or np.vstack",
        "numpy.kron": "write (a[:, None, :, None] * b[None, :, None, :]).reshape(m, n)",
        "numpy.polynomial.polynomial.polyval": "use np.polyval(c[::-1], x)",
        "numpy.require": "use np.asarray(x, dtype), np.ascontiguousarray(x), or x.copy()",
        "copy.copy": "write x.copy() of an array or a list; numbers need no copy",
        "copy.deepcopy": "copy arrays by x.copy(), and objects by copy.copy",
    }
)
"""Of functions in Python whose code is not even tried: what is wrong with it says nothing to users."""
SPECIAL = (
    "call scipy.special.cython_special.{}, of numbers, for each element; a derivative through it needs a"
    " @mutad.rule"
)
"""Of SciPy's special functions."""
FRAMEWORKS = ("torch", "jax", "jaxlib", "tensorflow", "cupy")
"""Packages with arrays of their own, and functions on them."""
NUMPY_INSTEAD = (
    "use NumPy's functions and plain loops, or let Python run it: in a function with @mutad.opaque (and"
    " @mutad.rule, if a derivative goes through it)"
)
NOT_ALONG_FROM: dict[str, str] = {
    **dict.fromkeys(FRAMEWORKS, NUMPY_INSTEAD),
    "tqdm": "loop over what it wraps; to show progress, compile what one iteration does, and loop outside",
    "matplotlib": "draw outside of compiled code, what the function returns or leaves in its arguments",
}
"""The same for all functions of a package."""


def of_function(function: object) -> str | None:
    """The way out of a call of this function; None where there is none but the general one."""
    of_numpy = str(getattr(function, "__qualname__", "")).startswith("RandomState.")
    if of_numpy or isinstance(getattr(function, "__self__", None), random.Random):
        return LEGACY
    if type(function).__name__ == "Derivative":  # what `mutad.grad(f)` is
        return DERIVATIVE.format(getattr(function, "kind", "grad"))
    if isinstance(function, np.vectorize):
        return OF_FUNCTIONS["numpy.vectorize"]
    if isinstance(function, np.ufunc) and is_special(function):
        return SPECIAL.format(function.__name__)
    own, cls = name_of(function), type(function)
    return OF_FUNCTIONS.get(own) or OF_CLASSES.get(name_of(cls)) or not_along(function)


def is_special(ufunc: np.ufunc) -> bool:
    """A ufunc of SciPy's whose C function compiled code may call."""
    loaded = sys.modules.get("scipy.special")
    callable_from_c = getattr(loaded, "cython_special", None)
    return getattr(loaded, ufunc.__name__, None) is ufunc and hasattr(
        callable_from_c, ufunc.__name__
    )


def not_along(function: object) -> str | None:
    """The way out of a call of a function that is not compiled along; None of others."""
    name = name_of(function)
    package = name.partition(".")[0]
    if package in FRAMEWORKS and callable(getattr(np, name.rpartition(".")[2], None)):
        return f"use np.{name.rpartition('.')[2]}"
    return NOT_ALONG.get(name) or NOT_ALONG_FROM.get(package)


def of_attribute(name: str, *, known: bool) -> str | None:
    """The way out of an attribute that arrays do not have here; `known`: NumPy has a function of the name."""
    return f"use np.{name}(x)" if known else OF_ATTRIBUTES.get(name)


RENAMED: dict[str, list[str]] = {
    **{name: [f"{name}64"] for name in ("float", "int")},
    "in1d": ["isin"],
    "msort": ["sort"],
    "alltrue": ["all"],
    "sometrue": ["any"],
    "row_stack": ["vstack"],
    "float_": ["float64"],
    "asfarray": ["asarray"],
    "avg": ["mean"],
}
"""What NumPy used to have under names unlike those of today."""


def missing(owner: types.ModuleType | type, name: str) -> tuple[str, str | None]:
    """What is wrong with an attribute that a module or class does not have, and what may be meant."""
    return f"{owner.__name__!r} has no attribute {name!r}", meant(name, dir(owner))


def not_followed(name: str, kind: str = "", large: bool = False) -> tuple[str, str]:
    """Why a change of something outside would not be seen; and how to have it seen."""
    if large:
        return (
            f"`{name}`, from outside, is a {kind}: changes of so many are not watched",
            "pass it as an argument, or make it an array: np.array(...)",
        )
    what = f"`{name}`, {kind and f'a {kind} '}from outside, is reached by more than names"
    return (
        f"{what} (an item, a call, getattr): a change of it would not be seen",
        "write it by names alone, `module.name`, or pass it as an argument",
    )


def named(holder: Any, key: str) -> str:
    """What is called `key` in a module's dict, or in a class."""
    owner = holder.get("__name__") if isinstance(holder, dict) else holder.__name__
    return f"{owner}.{key}"


def meant(name: str, known: Iterable[str]) -> str | None:
    """The names that a misspelt one may stand for."""
    import difflib  # which most processes do without

    public = {one for one in known if not one.startswith("_")} - {name}
    same = [one for one in public if one.lower() == name.lower()]
    close = RENAMED.get(name, same) or difflib.get_close_matches(name, public, n=2, cutoff=0.7)
    return f"did you mean {' or '.join(f'`{one}`' for one in close)}?" if close else None


def unknown_argument(function: str, name: str) -> tuple[str, str | None]:
    """What is wrong with an argument of one of NumPy's functions, and the way out."""
    if name in OF_ARGUMENTS:
        return f"{function}() got an unexpected keyword argument {name!r}", OF_ARGUMENTS[name]
    return f"{function}: the argument {name!r} is not supported", WITHOUT.get(name)


def name_of(function: object) -> str:
    return f"{getattr(function, '__module__', None)}.{getattr(function, '__name__', None)}"


def of_printed(value: Value) -> tuple[str, str]:
    """Why `print` and f-strings do not show a value, and what to write."""
    if isinstance(value, Array):
        return "the `repr` of an array is not compiled", 'show it as `str` does: f"x={x}"'
    return "this cannot be printed from compiled code", "print numbers, strings and arrays"


def class_of(value: Value) -> type | None:
    """A value's class in CPython; None of what is neither a number nor an array."""
    match value:
        case Array():
            return np.ndarray
        case Scalar(type_) if type_ in NUMPY_DTYPE:
            return NUMPY_DTYPE[type_].type
        case Scalar(type_):
            return {"py_float": float, "py_int": int, "py_bool": bool}.get(type_)
        case _:
            return None


def kind_of(value: Value) -> str:
    """The name of a value's class, as CPython has it."""
    if (cls := class_of(value)) is None:
        return f"'{type(value).__name__.lower()}'"
    return f"'{cls.__name__}'" if cls.__module__ == "builtins" else f"'numpy.{cls.__name__}'"


def of_class(cls: type) -> str:
    """The way out where a class is called whose objects are not compiled."""
    file = getattr(sys.modules.get(cls.__module__), "__file__", None) or ""
    foreign = cls.__module__ in sys.builtin_module_names or is_library(file) or INSTALLED in file
    return of_function(cls) or (
        ELSEWHERE if foreign else "use a dataclass, or a class with `__init__`"
    )


DISTRIBUTION = (
    "write its formula, with functions of NumPy and scipy.special, or let Python run it: in a function with"
    " @mutad.opaque (and @mutad.rule, if a derivative goes through it)"
)


def of_member(owner: object, name: str) -> tuple[str, str | None]:
    """What is wrong with an attribute of a constant object; the way out, None for the general one."""
    cls = type(owner)
    if cls is str and not hasattr(str, name):
        return f"'str' object has no attribute {name!r}", None
    what = f"attribute `.{name}` of {cls.__name__} objects is not compiled"
    if cls.__module__.startswith("scipy.stats."):
        return what, DISTRIBUTION
    if callable(getattr(cls, name, None)):
        return what, None
    return what, "read it outside, and pass its value as an argument"


def of_operand(value: object) -> tuple[str, str | None]:
    """What an operand is that is neither a number nor an array, in a line; and what to write instead."""
    if isinstance(value, slice):
        return "a slice", None
    kind = type(value)
    if kind.__module__.startswith("scipy.sparse"):
        way_out = "loop over its arrays, passed as arguments: A.data, A.indices and A.indptr"
        return f"a {kind.__name__} of SciPy", way_out if hasattr(value, "indptr") else None
    if hasattr(kind, "__array__"):
        package = kind.__module__.partition(".")[0]
        return f"{package}.{kind.__name__}", AS_ARRAY
    return textwrap.shorten(repr(value), 80, placeholder=" ..."), None
