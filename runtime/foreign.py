"""Functions that mutad cannot see into: C function pointers, and Python functions that CPython runs.

What the compiler must know of one is a `ForeignFunction`. C functions are called directly: the loader
binds their symbols to the addresses that the objects have in this process, so code on disk stays valid. A
Python function is called back by way of the entry's link, with the GIL: numbers are handed over as
CPython would, arrays as NumPy arrays over the memory itself.
"""

from __future__ import annotations

import ctypes
import functools
import re
import struct
import sys
import types
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Generic

from . import keys, sites
from .sites import Site
from .user_tracebacks import concise

RESULTS: dict[Any, str] = {kind: name for name, kind in keys.SCALARS.items()}
"""What an opaque function may return, by the name that the compiler has for it."""

SPECIAL = "scipy.special.cython_special"


@dataclass(frozen=True)
class ForeignFunction:
    """How a function is called from compiled code.

    `arguments` are C types: "f64", "f32", "i64", "i32", "u32", "u64", "b1", or an `ArrayPointer`, followed
    by "!" where no other number is converted, "?" where an int out of range raises; None where a Python
    function takes what it is given. `result` is the compiler's name of the result's type. `trailing` counts
    ints that the C function takes at the end, to be 0. `origin` says where the loader finds `symbol`.
    """

    name: str
    convention: str
    symbol: str
    origin: str
    arguments: tuple[Any, ...] | None
    result: str | None
    trailing: int = 0


@dataclass(frozen=True)
class ArrayPointer:
    """A C parameter of type `np.ctypeslib.ndpointer(...)`; None where nothing is asked."""

    dtype: str | None
    rank: int | None
    shape: tuple[int, ...] | None
    flags: tuple[str, ...]


if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")


class Unsupported(Exception):
    """A foreign function that cannot be called from compiled code; the message says why."""


class OpaqueFunction(Generic[P, R]):
    """What `opaque` makes of a function, as calls see it."""

    def __init__(self, function: Callable[P, R], returns: Any) -> None:
        self.function = function
        self.returns = returns
        self.__name__: str = getattr(function, "__name__", "<function>")
        self.__doc__ = function.__doc__

    @concise
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        return self.function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<opaque function {self.__name__}>"


def is_foreign(value: Any) -> bool:
    """True for what is called without being looked into."""
    return isinstance(value, OpaqueFunction | _CFunction) or is_special(value) or is_cffi(value)


_CFunction: Any = ctypes._CFuncPtr  # pyright: ignore


def is_special(value: Any) -> bool:
    """A function of SciPy's cython_special."""
    return (
        getattr(value, "__module__", None) == SPECIAL
        and not isinstance(value, types.ModuleType)
        and callable(value)
    )


def described(value: Any, constants: Sequence[Any]) -> ForeignFunction:
    """How to call a foreign function, one of these `constants` from outside; raises Unsupported."""
    if is_special(value):
        return special(value)
    name = getattr(value, "__name__", "<function>")
    place = next((k for k, c in enumerate(constants) if c is value), None)
    if place is None:
        raise Unsupported("it is found in a way that is not followed: bind it to a global name")
    if isinstance(value, OpaqueFunction):
        result = None if value.returns is None else RESULTS[value.returns]
        return ForeignFunction(name, "python", name, f"constant:{place}", None, result)
    if is_cffi(value):
        kind = _cffi().typeof(value)
        name, arguments, result = cffi_name(value), *cffi_signature(kind)
    else:
        arguments = tuple(map(c_parameter, _signature(value)))
        result = c_result(value.restype)
    plain = "".join(c if c.isalnum() and c.isascii() else "_" for c in name)
    symbol = f"mutad_foreign_{place}_{plain}"
    return ForeignFunction(name, "c", symbol, f"constant:{place}", arguments, result)


# C functions by way of ctypes.

_NUMBERS: dict[Any, str] = {ctypes.c_bool: "b1", ctypes.c_double: "f64", ctypes.c_float: "f32"}


def _signature(function: Any) -> Sequence[Any]:
    if function.argtypes is None:
        raise Unsupported("its argtypes are not declared: set f.argtypes and f.restype")
    if function._flags_ & _PYTHON_API:
        raise Unsupported("it is of a ctypes.PyDLL, and wants the GIL: use ctypes.CDLL")
    if getattr(function, "errcheck", None) is not None:
        raise Unsupported("it has an errcheck, which runs in Python")
    return function.argtypes


_PYTHON_API = 4
"""ctypes' flag of functions that are called with the GIL."""


def c_parameter(kind: Any) -> Any:
    """A parameter's C type."""
    if kind in _NUMBERS:
        return _NUMBERS[kind]
    if isinstance(kind, type) and hasattr(kind, "_ndim_") and hasattr(kind, "_dtype_"):
        described: Any = kind
        dtype = described._dtype_
        if dtype is not None and dtype not in keys.DTYPES:
            raise Unsupported(f"arrays of dtype {dtype} are not supported")
        names = () if described._flags_ is None else tuple(_flags(described._flags_))
        shape = None if described._shape_ is None else tuple(described._shape_)
        return ArrayPointer(
            None if dtype is None else keys.DTYPES[dtype], described._ndim_, shape, names
        )
    found = _integer(kind)
    if found is None:
        raise Unsupported(
            f"a parameter of type {getattr(kind, '__name__', kind)} is not supported: numbers are, and "
            "arrays declared with np.ctypeslib.ndpointer"
        )
    return found


def _flags(mask: int) -> list[str]:
    named = {
        1: "C_CONTIGUOUS",
        2: "F_CONTIGUOUS",
        0x100: "ALIGNED",
        0x400: "WRITEABLE",
        4: "OWNDATA",
    }
    return [name for bit, name in named.items() if mask & bit]


def _integer(kind: Any) -> str | None:
    """ "i32", "u64" and the like for an integer type of ctypes."""
    code = getattr(kind, "_type_", None)
    if not isinstance(code, str) or code not in "ilqILQ":
        return None
    return f"{'i' if code.islower() else 'u'}{8 * ctypes.sizeof(kind)}"


def c_result(kind: Any) -> str | None:
    """The compiler's name of what a C function returns, as ctypes converts it."""
    if kind is None:
        return None
    found = {ctypes.c_bool: "py_bool", ctypes.c_double: "py_float", ctypes.c_float: "c_float"}.get(
        kind
    )
    found = found or {"i32": "c_int", "i64": "py_int", "u32": "c_uint"}.get(_integer(kind) or "")
    if found is None:
        raise Unsupported(f"a result of type {getattr(kind, '__name__', kind)} is not supported")
    return found


# C functions by way of cffi.


def _cffi() -> Any:
    return sys.modules.get("_cffi_backend")


def is_cffi(value: Any) -> bool:
    """A function pointer of cffi."""
    backend = _cffi()
    return (
        backend is not None
        and isinstance(value, backend._CDataBase)
        and backend.typeof(value).kind == "function"
    )


def cffi_name(value: Any) -> str:
    return re.sub(r"\W+", "_", repr(_cffi().typeof(value).cname)).strip("_")


def cffi_signature(kind: Any) -> tuple[tuple[str, ...], str | None]:
    """C types of the parameters, and of the result, of a cffi function type."""
    if kind.ellipsis:
        raise Unsupported("it takes any number of arguments")
    arguments = tuple(cffi_type(a) for a in kind.args)
    results = {
        "f64": "py_float",
        "f32": "c_float",
        "i32?": "c_int",
        "i64": "py_int",
        "b1": "py_bool",
    }
    return arguments, None if kind.result.kind == "void" else results[cffi_type(kind.result)]


def cffi_type(kind: Any) -> str:
    """The C type of a number: "?" where a Python int must be in its range."""
    backend = _cffi()
    if kind.kind == "primitive":
        named = {"double": "f64", "float": "f32", "_Bool": "b1"}.get(kind.cname)
        if named is not None:
            return named
        size = backend.sizeof(kind)
        if size in (4, 8) and "double" not in kind.cname and int(backend.cast(kind, -1)) < 0:
            return "i32?" if size == 4 else "i64"
    raise Unsupported(f"a parameter or result of type {kind.cname} is not supported: numbers are")


def address_of(function: Any) -> int:
    """The address that a function pointer points to."""
    if is_cffi(function):
        backend = _cffi()
        return int(backend.cast(backend.new_primitive_type("uintptr_t"), function))
    found = ctypes.cast(function, ctypes.c_void_p).value
    assert found is not None
    return found


def addresses(symbols: dict[str, str], constants: Sequence[Any]) -> dict[str, int]:
    """Where the foreign functions among a module's symbols are in this process."""
    found: dict[str, int] = {}
    for symbol, origin in symbols.items():
        kind, _, rest = origin.partition(":")
        if kind == "constant":
            found[symbol] = address_of(constants[int(rest)])
        elif kind == "cython_special":
            found[symbol] = _special_capsules()[rest][1]
        elif kind == "numpy_random":
            function = getattr(_numpy_random(), rest)
            found[symbol] = ctypes.cast(function, ctypes.c_void_p).value or 0
    return found


@functools.cache
def _numpy_random() -> ctypes.CDLL:
    """NumPy's library of random distributions, which its generators call."""
    import numpy.random._generator as module  # pyright: ignore

    return ctypes.CDLL(str(module.__file__))


# SciPy's special functions.

_C_TYPES = {"double": "f64", "float": "f32", "int": "i32", "long": "i64", "Py_ssize_t": "i64"}


def special(function: Any) -> ForeignFunction:
    """A function of cython_special; of the several that one name may stand for, that of doubles."""
    name = function.__name__
    versions = getattr(function, "__signatures__", None) or {}
    if versions:
        chosen = [v for k, v in versions.items() if set(k.split("|")) <= {"double", "long"}]
        reals = [v for k, v in versions.items() if set(k.split("|")) == {"double"}]
        chosen = reals or chosen
        if not chosen:
            raise Unsupported("no version of it takes floats")
        function = chosen[0]
    found = _special_capsules().get(function.__name__)
    if found is None:
        raise Unsupported("SciPy does not export it to C")
    result, _, rest = found[0].partition(" (")
    parameters = [p.strip() for p in rest.rstrip(")").split(",")]
    if "int __pyx_skip_dispatch" not in parameters[-1:] or result not in _C_TYPES:
        raise Unsupported(f"its C signature is {found[0]}")
    if not all(p in _C_TYPES for p in parameters[:-1]):
        raise Unsupported(f"its C signature is {found[0]}")
    kind = {"f64": "py_float", "f32": "c_float", "i32": "c_int", "i64": "py_int"}[_C_TYPES[result]]
    symbol = f"mutad_special_{function.__name__}"
    exact = "!" if versions else ""  # CPython chooses among the versions by type
    arguments = tuple(_C_TYPES[p] + exact for p in parameters[:-1])
    return ForeignFunction(
        name, "c", symbol, f"cython_special:{function.__name__}", arguments, kind, 1
    )


@functools.cache
def _special_capsules() -> dict[str, tuple[str, int]]:
    """C signature and address of each function that cython_special exports."""
    import scipy.special.cython_special as module  # pyright: ignore

    name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", ctypes.pythonapi)
    )
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    table: dict[str, Any] = module.__pyx_capi__  # pyright: ignore
    return {k: (name(c).decode(), pointer(c, name(c))) for k, c in table.items()}  # pyright: ignore


# Python functions.


def caller(site: Site, constants: Sequence[Any]) -> Callable[[int], None]:
    """What calls the opaque function of a site: on the values at an address, its result left behind them."""
    function: OpaqueFunction = constants[site["call"]]
    called, name = function.function, function.__name__
    pieces = [sites.words_of(kind) for kind in site["operands"]]
    places = list(accumulate(pieces, initial=0))
    numbers = struct.Struct("".join(sites.format_of(kind) for kind in site["operands"]))
    exact = [None if kind.startswith("memref") else sites.exact(kind) for kind in site["operands"]]
    arrays = [k for k, convert in enumerate(exact) if convert is None]
    payload = ctypes.c_char * max(1, numbers.size)
    wanted, leave = site["result"], results_of(name, site["result"])

    def call(address: int) -> None:
        raw = numbers.unpack_from(payload.from_address(address))
        values = [
            convert(raw[place]) if convert is not None else raw[place]
            for place, convert in zip(places, exact, strict=False)
        ]
        for k in arrays:
            values[k] = sites.view_at(
                site["operands"][k], address + 8 * places[k], writeable=site["writes"][k]
            )
        before = [sys.getrefcount(values[k]) for k in arrays]
        result: Any = called(*values)
        if before != [sys.getrefcount(values[k]) for k in arrays]:
            raise RuntimeError(
                f"opaque function {name} kept or returned an array that it was called with: its memory is "
                "compiled code's own; keep a copy"
            )
        leave(result)
        if wanted is not None:
            sites.write_scalar(wanted, address + numbers.size, result)

    return call


def results_of(name: str, wanted: str | None) -> Callable[[Any], None]:
    """What checks a result: of exactly the type that is declared."""
    kind: Any = type(None) if wanted is None else next(k for k, v in RESULTS.items() if v == wanted)

    def check(result: Any) -> None:
        if type(result) is not kind:
            shown = "None: declare it with returns=" if wanted is None else kind.__name__
            raise TypeError(f"opaque function {name} returned {type(result).__name__}, not {shown}")
        if kind is int and not keys.INT_MIN <= result <= keys.INT_MAX:
            raise OverflowError(
                "Python int too large for 64 bits, which compiled code computes with"
            )

    return check
