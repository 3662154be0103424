"""What a call is specialized on: one string for each argument, and which arrays share memory.

`f64[?,1]C` is an array of float64 of rank 2 whose second extent is 1, C-contiguous (F: Fortran-
contiguous, S: any strides), and read-only where an `r` follows, which is said only where the function may
store to it; `py_float`, `f32`, ... are scalars; `(f64[?]C,py_int)` is a tuple.
Whatever cannot be compiled is refused here, with the parameter's name and a way out.
"""

from __future__ import annotations

import array
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from itertools import combinations
from operator import floordiv, mul
from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]
Overlaps = tuple[tuple[int, int, str], ...]

NUMPY_SCALARS: dict[str, type[Any]] = {
    "b1": np.bool_,
    "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f32": np.float32, "f64": np.float64,
}  # fmt: skip
"""NumPy's scalar types, by the compiler's names and in the order that the compiler numbers them."""
SCALARS: dict[str, type[Any]] = {
    "py_bool": bool,
    "py_int": int,
    "py_float": float,
    **NUMPY_SCALARS,
}
DTYPES: dict[np.dtype[Any], str] = {np.dtype(t): name for name, t in NUMPY_SCALARS.items()}
FLOATS = ("f64", "f32", "py_float")
"""Scalar keys that have a derivative."""

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
EXTENT_MAX = 2**48
"""No longer dimension is compiled for; only arrays without elements, or broadcast ones, have such."""
EXACTNESS: Any = 20_000
"""How hard to try to prove that two interleaved arrays share no element (`np.shares_memory`)."""


class NeedsGuards(Exception):
    """What a derivative without guards has added to the shadows is not exact.

    Of `back` the argument is the code to call in its place.
    """


def argument_key(value: Any, name: str) -> str:
    """The key of one argument; TypeError, ValueError or OverflowError where it cannot be compiled."""
    describe = _BY_TYPE.get(type(value))
    if describe is None:
        if is_generator(value):
            return "rng"
        raise TypeError(f"argument {name!r}: {_refusal(value, name)}")
    return describe(value, name)


def is_generator(value: Any) -> bool:
    """A `numpy.random.Generator`, found without importing `numpy.random`, which takes its time."""
    kind = type(value)
    return kind.__name__ == "Generator" and kind.__module__ == "numpy.random._generator"


def with_read_only(
    arguments: Sequence[str], values: Sequence[Any], written: Collection[int]
) -> tuple[str, ...]:
    """The keys, where arrays among the arguments that may be `written` are read-only: they say so."""
    if all(leaf.flags.writeable for i in written for leaf in leaves(values[i])):
        return tuple(arguments)
    return tuple(
        _marked(key, value) if i in written else key
        for i, (key, value) in enumerate(zip(arguments, values, strict=True))
    )


def _marked(key: str, value: Any) -> str:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return f"({','.join(_marked(argument_key(v, ''), v) for v in items)})"
    return f"{key}r" if isinstance(value, np.ndarray) and not value.flags.writeable else key


def _array_key(value: Array, name: str) -> str:
    dtype = value.dtype
    kind = DTYPES.get(dtype)
    if kind is None or not dtype.isnative:
        raise TypeError(f"argument {name!r}: {_dtype_refusal(dtype, name)}")
    flags = value.flags
    if not flags.aligned:
        raise ValueError(
            f"argument {name!r}: the array's memory is not aligned for {dtype}: pass {name}.copy()"
        )
    layout = "C" if flags.c_contiguous else "F" if flags.f_contiguous else "S"
    if value.shape and max(value.shape) > EXTENT_MAX:
        raise ValueError(f"argument {name!r}: an extent of {max(value.shape)} is not supported")
    extents = ",".join(["1" if n == 1 else "?" for n in value.shape])
    return f"{kind}[{extents}]{layout}"


def _int_key(value: int, name: str) -> str:
    if not INT_MIN <= value <= INT_MAX:
        raise OverflowError(
            f"argument {name!r}: Python int too large for 64 bits, which compiled code computes with"
        )
    return "py_int"


def _tuple_key(value: tuple[Any, ...], name: str) -> str:
    return f"({','.join(argument_key(v, f'{name}[{i}]') for i, v in enumerate(value))})"


def _constant(key: str) -> Callable[[Any, str], str]:
    return lambda _value, _name: key


_BY_TYPE: dict[type, Callable[[Any, str], str]] = {
    np.ndarray: _array_key,
    int: _int_key,
    tuple: _tuple_key,
    float: _constant("py_float"),
    bool: _constant("py_bool"),
    type(None): _constant("None"),
    **{kind: _constant(name) for name, kind in NUMPY_SCALARS.items()},
}


PLAIN = {kind for kind in _BY_TYPE if kind is not tuple}
"""The types of arguments that hold nothing else."""


FRAMEWORKS = ("torch", "jax", "jaxlib", "tensorflow", "cupy")
"""Packages with arrays of their own, and functions on them: compiled code calls none of these."""
WRAPPED = " (mutad.{0}.wrap(f) makes a function of {0}'s own of one that is compiled)"
ARRAYS = {
    "torch": "{x}.numpy(), which shares its memory" + WRAPPED.format("torch"),
    "jax": "np.array({x})" + WRAPPED.format("jax"),
    "jaxlib": "np.array({x})" + WRAPPED.format("jax"),
    "pandas": "{x}.to_numpy()",
    "polars": "{x}.to_numpy()",
    "xarray": "{x}.to_numpy()",
    "tensorflow": "{x}.numpy()",
    "cupy": "{x}.get()",
    "dask": "{x}.compute()",
}
"""By package, what to pass instead of its arrays, tables and tensors."""


def array_of_another(kind: type) -> str | None:
    """What to pass instead of an array of another package; None of any other class."""
    package = kind.__module__.partition(".")[0]
    return ARRAYS.get(package) if hasattr(kind, "__array__") else None


def _refusal(value: Any, x: str) -> str:
    """Why a value of this type is no argument, and what to pass instead."""
    kind = type(value)
    shown = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if (instead := array_of_another(kind)) is not None:
        return f"{shown} is no NumPy array: pass {instead.format(x=x)}"
    if isinstance(value, list):
        return f"a list has no dtype and no shape: pass np.asarray({x})"
    if isinstance(value, np.ndarray):
        if isinstance(value, np.ma.MaskedArray):
            return (
                f"{shown} has a mask: pass {x}.data and {x}.mask, or what {x}.filled(value) returns"
            )
        if isinstance(value, np.matrix):
            return f"{shown} is not a plain array: pass np.asarray({x}), and write @ for products"
        return f"{shown} is a subclass of numpy.ndarray: pass np.asarray({x}), the plain array"
    if isinstance(value, np.generic):
        if value.dtype in DTYPES:
            return f"{shown} is not supported: pass np.{value.dtype.name}({x})"
        return _dtype_refusal(value.dtype, x)
    if isinstance(value, complex):
        return "complex numbers are not supported: pass real and imaginary part"
    if isinstance(value, bytes):
        return f"{shown} is not supported: capture it, or pass a number that stands for it"
    if kind.__module__.startswith("scipy.sparse"):
        parts = [
            name for name in ("data", "indices", "indptr", "row", "col") if hasattr(value, name)
        ]
        arrays = ", ".join([f"{x}.{name}" for name in parts])
        return f"{shown} is not an array: pass {arrays or f'the arrays of {x}.tocsr()'}"
    if isinstance(value, np.random.RandomState):
        return f"{shown} is not supported: pass a generator, np.random.default_rng(seed)"
    if isinstance(value, memoryview | array.array):
        return f"{shown} is not supported: pass np.asarray({x})"
    if isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        made = "sorted" if isinstance(value, Set) else "list"
        return f"{shown} is not supported: pass {made}({x})"
    return (
        f"{shown} is not supported: pass arrays, numbers, strings, None, or tuples, dicts and objects "
        "that hold them"
    )


def is_array(value: Any) -> bool:
    """Whether a value is an array that compiled code takes: NumPy's own, or a device's."""
    return _BY_TYPE.get(type(value)) is _array_key


def register_array(kind: type) -> None:
    """Arrays of this class are arguments as NumPy's own are."""
    _BY_TYPE[kind] = _array_key
    PLAIN.add(kind)


def _dtype_refusal(dtype: np.dtype[Any], x: str) -> str:
    supported = "float64, float32, int8 to int64, uint8 to uint64 and bool are supported"
    if not dtype.isnative:
        return (
            f"dtype {dtype.str} has non-native byte order: "
            f"pass {x}.astype({x}.dtype.newbyteorder('='))"
        )
    if dtype.names is not None:
        return (
            f"structured dtypes are not supported: pass the fields, as in {x}[{dtype.names[0]!r}]"
        )
    if dtype.kind == "f":
        nearest = "float32" if dtype.itemsize < 4 else "float64"
        return f"dtype {dtype.name} is not supported ({supported}): pass {x}.astype(np.{nearest})"
    instead = {
        "c": f"{x}.real and {x}.imag",
        "m": f"{x}.view(np.int64)",
        "M": f"{x}.view(np.int64)",
        "O": f"{x}.astype(float), if it holds numbers",
        "S": f"{x}.tolist()",
        "U": f"{x}.tolist()",
    }.get(dtype.kind)
    return f"dtype {dtype} is not supported ({supported})" + (
        f": pass {instead}" if instead else ""
    )


def overlaps_of(values: Sequence[Any]) -> Overlaps:
    """The pairs of array arguments that share memory: "same" (the identical view) or "overlap".

    Exact where that is cheap: `x[::2]` and `x[1::2]` are disjoint. Arrays without elements share
    nothing. Arrays within tuples are left out: `refuse_shared_in_tuples`.
    """
    arrays = [(i, v) for i, v in enumerate(values) if isinstance(v, np.ndarray)]
    found: list[tuple[int, int, str]] = []
    for (i, a), (j, b) in combinations(arrays, 2):
        kind = sharing(a, b)
        if kind is not None:
            found.append((i, j, kind))
    return tuple(found)


Number = tuple[int, int] | tuple[str, tuple["Form", ...]]
Form = tuple[int, tuple[tuple[int, Number], ...]]
"""constant + sum of factor * number; a number is (argument, axis), an extent or (axis -1) an int, or
an operation on forms."""


def assumptions_hold(assumed: Sequence[Form], values: Sequence[Any]) -> bool:
    """Whether the extents and ints among the arguments are what compiled code assumes: each form is 0."""
    if not assumed:
        return True
    leaves = list(numbers_and_arrays(tuple(values)))
    return not any(_value_of(form, leaves) for form in assumed)


def _value_of(form: Form, leaves: Sequence[Any]) -> int:
    constant, numbers = form
    return constant + sum(factor * _number(n, leaves) for factor, n in numbers)


def _number(number: Number, leaves: Sequence[Any]) -> int:
    first, second = number
    if isinstance(first, str):
        a, b = (_value_of(form, leaves) for form in second)  # pyright: ignore
        return {"max": max, "min": min, "floordiv": floordiv, "mul": mul}[first](a, b)
    leaf = leaves[first]
    return leaf if second == -1 else leaf.shape[second]


def numbers_and_arrays(value: Any) -> Iterator[Any]:
    """What an argument hands to compiled code: tuples flattened, None dropped."""
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        for item in items:
            yield from numbers_and_arrays(item)
    elif value is not None:
        yield value


def sharing(a: Array, b: Array) -> str | None:
    """How two arrays share memory: None (disjoint), "same" or "overlap"."""
    if not np.may_share_memory(a, b):
        return None
    if is_same_view(a, b) and a.flags.writeable == b.flags.writeable:
        return "same"
    try:
        return "overlap" if np.shares_memory(a, b, max_work=EXACTNESS) else None
    except np.exceptions.TooHardError:
        return "overlap"


def is_same_view(a: Array, b: Array) -> bool:
    """The two arrays address the same elements in the same order."""
    if a is b:
        return True
    if a.shape != b.shape or a.dtype != b.dtype or address_of(a) != address_of(b):
        return False
    return all(n == 1 or s == t for n, s, t in zip(a.shape, a.strides, b.strides, strict=True))


def address_of(a: Array) -> int:
    """The address of element (0, ..., 0)."""
    return a.__array_interface__["data"][0]


def copy_of_array(a: Array) -> Array:
    """A copy with the same strides: what a function reshapes is a view of some arrays, of others a copy."""
    if a.flags.c_contiguous or a.flags.f_contiguous:
        return a.copy(order="K")
    reach = [(extent - 1) * stride for extent, stride in zip(a.shape, a.strides, strict=True)]
    before, after = -sum(min(r, 0) for r in reach), sum(max(r, 0) for r in reach)
    buffer = np.empty(before + after + a.itemsize, np.uint8)
    made: Array = np.ndarray(a.shape, a.dtype, buffer, before, a.strides)
    made[...] = a
    return made


def as_array(value: Any) -> Array:
    """`np.asarray`, but that arrays stay what they are: those of a device (`resident`) of their class."""
    return value if isinstance(value, np.ndarray) else np.asarray(value)


def leaves(value: Any) -> list[Array]:
    if isinstance(value, tuple):
        items: tuple[Any, ...] = value
        return [leaf for item in items for leaf in leaves(item)]
    return [value] if isinstance(value, np.ndarray) else []


def refuse_shared_in_tuples(
    values: Sequence[Any], names: Sequence[str], watched: Collection[int]
) -> None:
    """Arrays within a tuple share no memory with another array, where one of them is in `watched`.

    Those are the parameters that are written or active.
    """
    arrays = [(i, leaf) for i, v in enumerate(values) for leaf in leaves(v)]
    for (i, a), (j, b) in combinations(arrays, 2):
        inside = isinstance(values[i], tuple) or isinstance(values[j], tuple)
        if inside and (i in watched or j in watched) and sharing(a, b):
            name = names[i] if isinstance(values[i], tuple) else names[j]
            raise ValueError(
                f"argument {name!r}: an array inside of a tuple shares memory with another array: "
                "pass it as an argument of its own, or a copy"
            )


def overlaps_itself(a: Array) -> bool:
    """True where two elements may be the same memory (broadcast, sliding window).

    Conservative: each stride must step over everything that the smaller strides span.
    """
    if a.flags.c_contiguous or a.flags.f_contiguous or a.size == 0:
        return False
    steps = sorted((abs(s), n) for s, n in zip(a.strides, a.shape, strict=True) if n != 1)
    span = a.itemsize
    for stride, extent in steps:
        if stride < span:
            return True
        span += stride * (extent - 1)
    return False


def resolve_wrt(
    wrt: Any, names: Sequence[str], inputs: Sequence[str] = (), option: str = "wrt"
) -> tuple[tuple[int, ...], bool]:
    """Positions, and whether `wrt` was one name or position rather than a tuple.

    `inputs` are what the function reads from outside: they have names, and follow the parameters. `option`
    is what the caller names them by.
    """
    if isinstance(wrt, tuple | list):
        items: Sequence[Any] = wrt
        if not items:
            raise ValueError("wrt is empty: name at least one parameter")
        positions = tuple(_position(item, names, inputs, option) for item in items)
        if len(set(positions)) < len(positions):
            raise ValueError(f"wrt names a parameter twice: {wrt!r}")
        return positions, False
    return (_position(wrt, names, inputs, option),), True


def _position(item: Any, names: Sequence[str], inputs: Sequence[str], option: str) -> int:
    if isinstance(item, str):
        known = (*names, *inputs)
        if item in known:
            return known.index(item)
        raise TypeError(f"{option}: no parameter is called {item!r}; there are {', '.join(known)}")
    if isinstance(item, int) and not isinstance(item, bool):
        if -len(names) <= item < len(names):
            return item % len(names)
        raise TypeError(f"{option}: there is no parameter {item}; there are {len(names)}")
    raise TypeError(f"{option} takes names and positions of parameters, not {item!r}")


def is_active_key(key: str) -> bool:
    """Arguments of this key have a derivative."""
    return key in FLOATS or key.startswith(("f64[", "f32["))


def require_active(key: str, name: str) -> None:
    """TypeError where there is no derivative with respect to an argument of this key."""
    if not is_active_key(key):
        what = "a tuple" if key.startswith("(") else key.replace("py_", "").partition("[")[0]
        instead = f", pass {name}.astype(float)" if "[" in key else ""
        instead = f", pass list({name}), whose gradient is one" if what == "a tuple" else instead
        if what in ("int", "bool") or (what.startswith(("i", "u")) and what[1:].isdigit()):
            instead = instead or f", pass float({name})"
        raise TypeError(
            f"{name!r} has no derivative, its type is {what}: derivatives are with respect to floats{instead}"
        )
