"""Functions that move elements (rolled, repeated, padded, joined, split), in Python: see `written`.

Along an axis: the array is seen with that axis first, by a transposed view, and sliced there.
"""

# ruff: noqa: RUF005  # a subscript is no place for a starred item here

from __future__ import annotations

from typing import Any

import numpy as np

from .cases import Case
from .plans import axis_of, is_same_kind, moved, quarters, reversing, swapped, upto, whole, widened
from .written_matrices import Array, in_order, refuse

# Views.


def expand_dims(a: Array, axis: Any) -> Array:
    a = np.asarray(a)
    return a[widened(a.ndim, axis)]


def atleast_1d(*arys: Array) -> Any:
    return one_or_all(tuple(np.reshape(a, 1) if np.ndim(a) == 0 else np.asarray(a) for a in arys))


def atleast_2d(*arys: Array) -> Any:
    return one_or_all(tuple(as_matrix(a) for a in arys))


def as_matrix(a: Array) -> Array:
    if np.ndim(a) == 0:
        return np.reshape(a, (1, 1))
    return np.reshape(a, (1, np.size(a))) if np.ndim(a) == 1 else np.asarray(a)


def one_or_all(found: Any) -> Any:
    return found[0] if len(found) == 1 else found


def moveaxis(a: Array, source: Any, destination: Any) -> Array:
    a = np.asarray(a)
    return np.transpose(a, moved(a.ndim, source, destination))


def first(a: Array, axis: int) -> Array:
    """The array with that axis first: a view."""
    return np.transpose(a, moved(a.ndim, axis, 0))


def rollaxis(a: Array, axis: int, start: int = 0) -> Array:
    at, to = axis_of(axis, a.ndim), axis_of(start, a.ndim + 1)
    return np.transpose(a, moved(a.ndim, at, to - 1 if at < to else to))


def swapaxes(a: Array, axis1: int, axis2: int) -> Array:
    return np.transpose(a, swapped(a.ndim, axis1, axis2))


def matrix_transpose(x: Array) -> Array:
    return np.transpose(x, swapped(x.ndim, -1, -2))


def flip(m: Array, axis: Any = None) -> Array:
    m = np.asarray(m)
    return m[reversing(m.ndim, axis)]


def fliplr(m: Array) -> Array:
    return flip(m, 1)


def flipud(m: Array) -> Array:
    return flip(m, 0)


def rot90(m: Array, k: int = 1, axes: Any = (0, 1)) -> Array:
    m = np.asarray(m)
    turns = quarters(k)
    if turns == 0:
        return m[:]
    if turns == 2:
        return flip(m, axes)
    if turns == 1:
        return swapaxes(flip(m, axes[1]), axes[0], axes[1])
    return flip(swapaxes(m, axes[0], axes[1]), axes[1])


# Rolled, repeated, padded.


def roll(a: Array, shift: Any, axis: Any = None) -> Array:
    a = np.asarray(a)
    if axis is None:
        return np.reshape(rolled(in_order(a), shift, 0), a.shape)
    if not isinstance(axis, tuple):
        return rolled(a, shift, axis)
    for k in upto(len(axis)):
        a = rolled(a, shift[k] if isinstance(shift, tuple) else shift, axis[k])
    return a


def rolled(a: Array, shift: int, axis: int) -> Array:
    out = np.empty_like(a)
    into, of = first(out, axis), first(a, axis)
    n = of.shape[0]
    k = int(shift) % max(n, 1)
    into[k:] = of[: n - k]
    into[:k] = of[n - k :]
    return out


def tile(A: Array, reps: Any) -> Array:
    a = np.asarray(A)
    counts = reps if isinstance(reps, tuple) else (reps,)
    counts = (1,) * (a.ndim - len(counts)) + counts
    shape = (1,) * (len(counts) - a.ndim) + a.shape
    apart, given, full = (), (), ()
    for k in upto(len(counts)):
        apart += (counts[k], shape[k])
        given += (1, shape[k])
        full += (counts[k] * shape[k],)
    out = np.empty(apart, a.dtype)
    out[...] = np.reshape(a, given)
    return np.reshape(out, full)


def repeat(a: Array, repeats: Any, axis: int | None = None) -> Array:
    a = np.asarray(a)
    if axis is None:
        return repeated(in_order(a), repeats, 0)
    return repeated(a, repeats, axis_of(axis, a.ndim))


def repeated(a: Array, repeats: Any, axis: int) -> Array:
    before, n, behind = a.shape[:axis], a.shape[axis], a.shape[axis + 1 :]
    if np.ndim(repeats) == 0:
        if repeats < 0:
            raise ValueError("repeats may not contain negative values.")
        out = np.empty((*before, n, repeats, *behind), a.dtype)
        out[...] = np.reshape(a, (*before, n, 1, *behind))
        return np.reshape(out, (*before, n * repeats, *behind))
    counts = np.asarray(repeats)
    if np.any(counts < 0):
        raise ValueError("repeats may not contain negative values.")
    if counts.size != n:
        raise ValueError("operands could not be broadcast together")
    out = np.empty((*before, int(np.sum(counts)), *behind), a.dtype)
    into, of = first(out, axis), first(a, axis)
    at = 0
    for i in range(n):
        for _ in range(counts[i]):
            into[at] = of[i]
            at += 1
    return out


def pad(array: Array, pad_width: Any, mode: str = "constant", constant_values: Any = 0) -> Array:
    a = np.asarray(array)
    if mode not in ("constant", "edge", "wrap", "reflect", "symmetric", "empty"):
        refuse("this mode of `pad` is not compiled", "use constant, edge, wrap, reflect, symmetric")
    shape, inner = (), ()
    for k in upto(a.ndim):
        low, high = pair(pad_width, k)
        if low < 0 or high < 0:
            raise ValueError("index can't contain negative values")
        shape += (low + a.shape[k] + high,)
        inner += (slice(low, low + a.shape[k]),)
    out = np.empty(shape, a.dtype)
    out[inner] = a
    for k in upto(a.ndim):
        low, high = pair(pad_width, k)
        into, n = first(out, k), a.shape[k]
        if mode == "constant":
            left, right = pair(constant_values, k)
            into[:low] = left
            into[low + n :] = right
        elif mode != "empty":
            if n == 0 and low + high > 0:
                raise ValueError(
                    f"can't extend empty axis {k} using modes other than 'constant' or 'empty'"
                )
            for i in range(low):
                into[i] = into[low + source_of(i - low, n, mode)]
            for i in range(low + n, low + n + high):
                into[i] = into[low + source_of(i - low, n, mode)]
    return out


def pair(given: Any, axis: int) -> Any:
    """What is given for both ends of an axis: one number, a pair, or a pair for each axis."""
    if not isinstance(given, tuple):
        return given, given
    part = given if not isinstance(given[0], tuple) else given[axis if len(given) > 1 else 0]
    return (part[0], part[0]) if len(part) == 1 else (part[0], part[1])


def source_of(i: int, n: int, mode: str) -> int:
    """Which element of n stands at place i outside of them."""
    if mode == "edge":
        return 0 if i < 0 else n - 1
    if mode == "wrap":
        return i % n
    if mode == "symmetric":
        at = i % (2 * n)
        return at if at < n else 2 * n - 1 - at
    if n == 1:
        return 0
    at = i % (2 * n - 2)
    return at if at < n else 2 * n - 2 - at


def resize(a: Array, new_shape: Any) -> Array:
    flat = in_order(np.asarray(a))
    out = np.zeros(new_shape, flat.dtype)
    into = np.reshape(out, out.size)
    if flat.size > 0:
        for i in range(into.size):
            into[i] = flat[i % flat.size]
    return out


# Joined, split.


def vstack(tup: Any) -> Array:
    return np.concatenate([atleast_2d(a) for a in tup], axis=0)


def hstack(tup: Any) -> Array:
    return np.concatenate([atleast_1d(a) for a in tup], axis=0 if np.ndim(tup[0]) < 2 else 1)


def dstack(tup: Any) -> Array:
    return np.concatenate([atleast_3d(a) for a in tup], axis=2)


def atleast_3d(a: Array) -> Array:
    if np.ndim(a) == 0:
        return np.reshape(a, (1, 1, 1))
    a = np.asarray(a)
    if a.ndim == 1:
        return a[None, :, None]
    return a[:, :, None] if a.ndim == 2 else a


def column_stack(tup: Any) -> Array:
    return np.concatenate([column(a) for a in tup], axis=1)


def column(a: Array) -> Array:
    return np.reshape(a, (np.size(a), 1)) if np.ndim(a) < 2 else np.asarray(a)


def append(arr: Array, values: Array, axis: int | None = None) -> Array:
    if axis is None:
        return np.concatenate((in_order(atleast_1d(arr)), in_order(atleast_1d(values))))
    return np.concatenate((arr, values), axis=axis)


def split(ary: Array, indices_or_sections: Any, axis: int = 0) -> Any:
    sections = indices_or_sections
    if isinstance(sections, int) and ary.shape[axis] % sections != 0:
        raise ValueError("array split does not result in an equal division")
    return array_split(ary, sections, axis)


def array_split(ary: Array, indices_or_sections: Any, axis: int = 0) -> Any:
    a = np.asarray(ary)
    sections = indices_or_sections
    before = whole(axis_of(axis, a.ndim))
    n = a.shape[axis]
    if isinstance(sections, int):
        size, longer = n // sections, n % sections
        return [
            a[before + (slice(k * size + min(k, longer), (k + 1) * size + min(k + 1, longer)),)]
            for k in upto(sections)
        ]
    if not isinstance(sections, tuple | list):
        refuse(
            "places to split at that are known at run time only are not compiled", "slice in a loop"
        )
    ends = (0, *sections)
    parts = [a[before + (slice(ends[k], ends[k + 1]),)] for k in upto(len(sections))]
    return [*parts, a[before + (slice(ends[-1], None),)]]


def hsplit(ary: Array, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def vsplit(ary: Array, indices_or_sections: Any) -> Any:
    return split(ary, indices_or_sections, 0)


def delete(arr: Array, obj: Any, axis: int | None = None) -> Array:
    a = in_order(arr) if axis is None else np.asarray(arr)
    along = 0 if axis is None else axis_of(axis, a.ndim)
    n = a.shape[along]
    if np.ndim(obj) == 0:
        if obj < -n or obj >= n:
            raise IndexError(f"index {obj} is out of bounds for axis {along} with size {n}")
        k = obj % n
        before, behind = whole(along) + (slice(0, k),), whole(along) + (slice(k + 1, None),)
        return np.concatenate((a[before], a[behind]), axis=along)
    gone = np.asarray(obj)
    kept = np.ones(n, np.bool_)
    if gone.dtype == np.bool_:
        kept[:] = ~gone
    else:
        for k in range(gone.size):
            kept[gone[k]] = False
    return np.compress(kept, a, axis=along)


def insert(arr: Array, obj: int, values: Any, axis: int | None = None) -> Array:
    a = in_order(arr) if axis is None else np.asarray(arr)
    along = 0 if axis is None else axis_of(axis, a.ndim)
    if np.ndim(obj) > 0 or np.ndim(values) > a.ndim - 1:
        refuse("`insert` is compiled for one place and one item", "use np.concatenate")
    n = a.shape[along]
    if obj < -n or obj > n:
        raise IndexError(f"index {obj} is out of bounds for axis {along} with size {n}")
    k = obj if obj >= 0 else obj + n
    out = np.empty((*a.shape[:along], n + 1, *a.shape[along + 1 :]), a.dtype)
    into, of = first(out, along), first(a, along)
    into[:k] = of[:k]
    into[k] = values
    into[k + 1 :] = of[k:]
    return out


def compress(condition: Array, a: Array, axis: int | None = None) -> Array:
    a = in_order(a) if axis is None else np.asarray(a)
    return np.take(a, np.flatnonzero(np.asarray(condition)), axis=0 if axis is None else axis)


def extract(condition: Array, arr: Array) -> Array:
    return in_order(arr)[np.flatnonzero(in_order(condition))]


# In place.


def copyto(dst: Array, src: Any, casting: str = "same_kind", where: Any = None) -> None:
    if casting != "same_kind":
        refuse("`copyto` is compiled with its own casting", "assign, dst[...] = src")
    own = np.result_type(dst, src) if isinstance(src, (int, float)) else np.asarray(src).dtype
    if not is_same_kind(own, dst.dtype):
        refuse("`copyto` casts to dtypes of the same kind", "assign, dst[...] = src")
    dst[...] = src if where is None else np.where(where, src, dst)


def fill_diagonal(a: Array, val: Any) -> None:
    if a.ndim != 2:
        refuse("`fill_diagonal` is compiled for matrices", "write the loop")
    for i in range(min(a.shape[0], a.shape[1])):
        a[i, i] = val if np.ndim(val) == 0 else val[i % len(val)]


def put(a: Array, ind: Any, v: Any) -> None:
    flat, at, values = np.reshape(a, a.size), in_order(atleast_1d(ind)), in_order(atleast_1d(v))
    for k in range(at.size):
        flat[at[k]] = values[k % values.size]


def putmask(a: Array, mask: Array, values: Any) -> None:
    if np.ndim(values) > 0:
        refuse(
            "`putmask` and `place` are compiled for one number",
            "a[...] = np.where(mask, values, a); of `place`, a[mask] = values",
        )
    a[mask] = values


NAMED = (
    expand_dims, atleast_1d, atleast_2d, atleast_3d, moveaxis, rollaxis, swapaxes, matrix_transpose, flip,
    fliplr,
    flipud, rot90, roll, tile, repeat, pad, resize, vstack, hstack, dstack, column_stack, append, split,
    array_split,
    hsplit, vsplit, delete, insert, compress, extract, copyto, fill_diagonal, put, putmask,
)  # fmt: skip

FUNCTIONS: dict[Any, Any] = {
    **{getattr(np, f.__name__): f for f in NAMED},
    np.place: putmask,
}


def tolist(a: Any) -> Any:
    """The items as Python numbers, in lists of lists."""
    if a.ndim == 0:
        return a.item()
    if a.ndim == 1:
        return [v.item() for v in a]
    if a.ndim > 2:
        refuse("`tolist` is compiled for up to two dimensions", "write the loop")
    return [[v.item() for v in row] for row in a]


METHODS: dict[str, Any] = {f.__name__: f for f in (swapaxes, repeat, put, tolist)}


def method_compress(a: Array, condition: Array, axis: int | None = None) -> Array:
    return compress(condition, a, axis)


METHODS["compress"] = method_compress

VECTOR = {"x": "vector"}
MATRIX = {"x": "matrix"}
CUBE = "np.stack((x, 2 * x), axis=1)"

CASES: tuple[Case, ...] = (
    *(
        Case(f"np.{text}", VECTOR)
        for text in (
            "atleast_1d(x)", "atleast_2d(x)",
            "atleast_2d(x, 3, x[None])[1] + np.atleast_1d(1.5, x)[0]",
            "flip(x)", "expand_dims(x, 1)", "roll(x, 2)", "roll(x, -1)",
            "vstack([x, x * 2])", "hstack((x, x * 2, x[:1]))", "column_stack((x, x * 2))", "append(x, 3.0)",
            "tile(x, 2)", "tile(x, (2, 3))", "repeat(x, 2)", "repeat(x, np.arange(x.size))", "pad(x, 2)",
            "pad(x, (1, 2), constant_values=(3.0, 4.0))", "pad(x, (1, 7), mode='edge')",
            "pad(x, (5, 4), mode='wrap')",
            "pad(x, (4, 5), 'reflect')", "pad(x, (5, 4), mode='symmetric')", "delete(x, -1)",
            "delete(x, [0, 0])",
            "insert(x, 1, 5.0)", "compress(x > 0, x)", "dstack((x, x * x))", "resize(x, (2, 4))",
        )
    ),
    *(
        Case(f"np.{text}", MATRIX)
        for text in (
            "flip(x)", "flipud(x)", "fliplr(x)", "rot90(x)", "rot90(x, -1)", "expand_dims(x, -1)",
            "expand_dims(x, (0, -2))", "moveaxis(x, 0, -1)",
            "swapaxes(x, 0, 1)", "roll(x, 1)", "roll(x, -1, axis=1)", "roll(x, (1, 2), axis=(0, 1))",
            "tile(x, (2, 1))", "repeat(x, 2, axis=1)", "pad(x, 1, mode='reflect')",
            "pad(x, ((1, 0), (0, 2)), 'wrap')",
            "pad(x, ((1, 1), (2, 0)))", "delete(x, 0, axis=1)", "extract(x > 0, x)",
            "insert(x, 0, x[0], axis=0)",
            f"rollaxis({CUBE}, 2)", f"moveaxis({CUBE}, 0, 2)", f"swapaxes({CUBE}, 0, 2)",
            f"flip({CUBE}, axis=(0, 2))",
        )
    ),
    Case("np.concatenate(np.array_split(x, 3)[::-1])", VECTOR),
    Case("np.split(x, [1, 2], axis=1)[1]", MATRIX),
    *(Case(f"np.array({x}.tolist())", MATRIX) for x in ("x", "x[0]")),
)  # fmt: skip
