"""The entry's guard: are these arguments those that the kernel was compiled for?

What is checked is what the key says: exact types, dtype, rank, layout, unit extents, alignment, and
that arrays share memory as the key says. A mismatch is no error: the next entry is asked.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import combinations

import numpy as np

from ...argument_keys import ArrayKey, Key, ScalarKey, TupleKey
from .writer import (
    ALIGNED,
    ARRAY_DATA,
    ARRAY_DTYPE,
    ARRAY_EXTENTS,
    ARRAY_FLAGS,
    ARRAY_RANK,
    ARRAY_STRIDES,
    C_CONTIGUOUS,
    DTYPE_BYTE_ORDER,
    DTYPE_NUMBER,
    F_CONTIGUOUS,
    ITEM_SIZE,
    LLVM_TYPE,
    SCALAR_TYPE,
    SCALAR_VALUE,
    TYPE,
    TYPE_NUMBERS,
    WRITEABLE,
    Writer,
)

EXTENT_MAX = 2**48
"""The longest dimension that code is compiled for (`frontend.values`)."""
FARTHEST = 2**61
"""No memory is as large, in bytes: what ends before it may be added to an address."""


@dataclass(frozen=True)
class ArrayValue:
    """An unpacked array: names of LLVM values. Strides count elements."""

    key: ArrayKey
    object: str
    data: str
    extents: tuple[str, ...]
    strides: tuple[str, ...]

    def operands(self) -> list[str]:
        return [f"ptr {self.data}", *(f"i64 {v}" for v in (*self.extents, *self.strides))]


@dataclass(frozen=True)
class ScalarValue:
    """An unpacked scalar."""

    key: ScalarKey
    value: str

    def operands(self) -> list[str]:
        return [] if self.key.type == "None" else [f"{LLVM_TYPE[self.key.type]} {self.value}"]


Leaf = ArrayValue | ScalarValue


def unpack(w: Writer, key: Key, obj: str, *, written: bool) -> list[Leaf]:
    """Check one argument against its key; the leaves to hand to the kernel."""
    match key:
        case ArrayKey():
            return [unpack_array(w, key, obj, written=written)]
        case ScalarKey():
            return [ScalarValue(key, unpack_scalar(w, key.type, obj))]
        case TupleKey(items):
            require_type(w, obj, "PyTuple_Type")
            size = w.call("PyTuple_Size", obj)
            w.require(w.value(f"icmp eq i64 {size}, {len(items)}"))
            leaves: list[Leaf] = []
            for i, item in enumerate(items):
                leaves += unpack(w, item, w.call("PyTuple_GetItem", obj, str(i)), written=written)
            return leaves


def require_type(w: Writer, obj: str, symbol: str) -> None:
    actual = w.field(obj, TYPE, hint="type")
    w.require(w.value(f"icmp eq ptr {actual}, {w.object(symbol)}"))


def unpack_scalar(w: Writer, type_: str, obj: str) -> str:
    """Check a scalar's exact type and load its value."""
    if type_ == "None":
        w.require(w.value(f"icmp eq ptr {obj}, {w.object('_Py_NoneStruct')}"))
        return ""
    if type_ in ("py_bool", "b1"):
        symbols = ["_Py_TrueStruct", "_Py_FalseStruct"]
        if type_ == "b1":
            symbols = ["mutad_numpy_true", "mutad_numpy_false"]
        true, false = symbols
        is_true = w.value(f"icmp eq ptr {obj}, {w.object(true)}", "true")
        is_false = w.value(f"icmp eq ptr {obj}, {w.object(false)}")
        w.require(w.value(f"or i1 {is_true}, {is_false}"))
        return is_true
    if type_ == "py_int":
        require_type(w, obj, "PyLong_Type")
        value = w.call("PyLong_AsLongLongAndOverflow", obj, "%overflow", hint="int")
        overflow = w.value("load i32, ptr %overflow")
        w.require(w.value(f"icmp eq i32 {overflow}, 0"))
        return value
    if type_ == "rng":
        require_type(w, obj, "mutad_numpy_generator")
        state = w.value(f"getelementptr i8, ptr {obj}, i64 {generator_state_offset()}")
        return w.value(f"ptrtoint ptr {state} to i64", "rng")
    require_type(w, obj, "PyFloat_Type" if type_ == "py_float" else SCALAR_TYPE[type_])
    return w.field(obj, SCALAR_VALUE, LLVM_TYPE[type_], "scalar")


@cache
def generator_state_offset() -> int:
    """Where a `numpy.random.Generator` holds its `bitgen_t`: found by the words that are there.

    The generator has a copy of that of its bit generator, a pointer to the state and four functions.
    """
    generator = np.random.default_rng(0)
    pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", ctypes.pythonapi)
    )
    words = ctypes.c_size_t * 5
    wanted = list(words.from_address(pointer(generator.bit_generator.capsule, b"BitGenerator")))
    for offset in range(0, type(generator).__basicsize__ - 5 * 8 + 1, 8):
        if list(words.from_address(id(generator) + offset)) == wanted:
            return offset
    raise NotImplementedError("this NumPy keeps the state of random generators elsewhere")


def unpack_array(w: Writer, key: ArrayKey, obj: str, *, written: bool) -> ArrayValue:
    """Check an array's type, dtype, rank, flags and unit extents; load its extents and strides."""
    require_type(w, obj, "mutad_numpy_ndarray")
    rank = w.field(obj, ARRAY_RANK, "i32", "rank")
    w.require(w.value(f"icmp eq i32 {rank}, {key.rank}"))
    dtype = w.field(obj, ARRAY_DTYPE, hint="dtype")
    conditions = [is_native(w, dtype, key.dtype), has_flags(w, obj, key, written=written)]
    data, extents, strides = load_array(w, key, obj)
    for wanted, extent in zip(key.extents, extents, strict=True):
        if wanted:  # else the caller of this knows them
            conditions.append(w.value(f"icmp {'eq' if wanted == '1' else 'ne'} i64 {extent}, 1"))
        if wanted != "1":
            conditions.append(w.value(f"icmp ule i64 {extent}, {EXTENT_MAX}"))
    w.require(w.all_of(conditions))
    return ArrayValue(key, obj, data, extents, strides)


def load_array(w: Writer, key: ArrayKey, obj: str) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """The data pointer, the extents, and the strides in elements; the axis of the lanes, the last, aside."""
    data = w.field(obj, ARRAY_DATA, hint="data")
    if key.rank == 0:
        return data, (), ()
    at_extents = w.field(obj, ARRAY_EXTENTS)
    at_strides = w.field(obj, ARRAY_STRIDES)
    extents = tuple(w.field(at_extents, 8 * d, "i64", "n") for d in range(key.rank))
    in_bytes = (w.field(at_strides, 8 * d, "i64", "bytes") for d in range(key.rank))
    size = ITEM_SIZE[key.dtype] * key.lanes
    return data, extents, tuple(w.value(f"sdiv i64 {s}, {size}", "stride") for s in in_bytes)


def is_native(w: Writer, dtype: str, name: str) -> str:
    """The dtype has our type number and native byte order."""
    number = w.field(dtype, DTYPE_NUMBER, "i32", "number")
    order = w.field(dtype, DTYPE_BYTE_ORDER, "i8", "order")
    result = w.value(f"icmp eq i8 {order}, {ord('|' if ITEM_SIZE[name] == 1 else '=')}")
    same = "false"
    for candidate in TYPE_NUMBERS[name]:
        equal = w.value(f"icmp eq i32 {number}, {candidate}")
        same = equal if same == "false" else w.value(f"or i1 {same}, {equal}")
    return w.value(f"and i1 {result}, {same}")


def has_flags(w: Writer, obj: str, key: ArrayKey, *, written: bool) -> str:
    """Aligned, of the key's layout class, writeable if it will be written, read-only if the key says so."""
    layout = C_CONTIGUOUS | F_CONTIGUOUS
    wanted = {"C": C_CONTIGUOUS, "F": F_CONTIGUOUS, "S": 0}[key.layout]
    mask = (C_CONTIGUOUS if key.layout == "C" else layout) | ALIGNED
    if written or key.read_only:
        mask |= WRITEABLE
    flags = w.field(obj, ARRAY_FLAGS, "i32", "flags")
    masked = w.value(f"and i32 {flags}, {mask}")
    refused = layout | (WRITEABLE if key.read_only else 0)
    return w.value(f"icmp eq i32 {masked}, {wanted | (mask & ~refused)}")


MANY_ARRAYS = 12
"""The pairs of so many arrays are compared in a loop."""


def check_sharing(
    w: Writer,
    arrays: Sequence[tuple[int, ArrayValue]],
    overlaps: dict[tuple[int, int], str],
    watched: set[int],
) -> None:
    """Check that arrays share memory as the key says, and that none overlaps itself.

    `arrays` come with their parameters: several of one parameter are those of a tuple, which share
    memory with nobody. `watched` are the parameters that are written or active: two arrays that are
    neither may share memory as they like. Bounds decide; where the caller has proved more
    (interleaved slices), the link's `proved` slot is set.
    """
    bounds: dict[int, tuple[str, str]] = {}

    def bounds_of(index: int) -> tuple[str, str]:
        if index not in bounds:
            bounds[index] = memory_bounds(w, arrays[index][1])
        return bounds[index]

    for position, array in arrays:
        if position in watched and array.key.layout == "S":
            w.require(never_overlaps_itself(w, array))
    if len(arrays) >= MANY_ARRAYS and not overlaps:
        first = [k for k, (i, _) in enumerate(arrays) if i in watched]
        others = [k for k, (i, _) in enumerate(arrays) if i not in watched]
        require_apart(w, [bounds_of(k) for k in (*first, *others)], len(first))
        return
    for (k, (i, a)), (m, (j, b)) in combinations(enumerate(arrays), 2):
        kind = overlaps.get((i, j))
        if kind == "same":
            w.require(w.all_of(identical(w, a, b)))
        elif kind is not None or watched & {i, j}:
            (low_i, high_i), (low_j, high_j) = bounds_of(k), bounds_of(m)
            before = w.value(f"icmp ule ptr {high_i}, {low_j}")
            after = w.value(f"icmp ule ptr {high_j}, {low_i}")
            apart = w.value(f"or i1 {before}, {after}", "apart")
            wanted = apart if kind is None else w.value(f"xor i1 {apart}, true")
            w.require(w.value(f"or i1 {wanted}, %is_proved"))


def require_apart(w: Writer, bounds: Sequence[tuple[str, str]], watched: int) -> None:
    """Check that each of the first `watched` arrays shares memory with none behind it, in two loops:
    the code grows with the arrays, not with their pairs."""
    if not watched:
        return
    table = w.value(f"alloca ptr, i64 {2 * len(bounds)}", "bounds")
    for k, (low, high) in enumerate(bounds):
        w.store("ptr", low, table, 16 * k)
        w.store("ptr", high, table, 16 * k + 8)
    names = ("start", "outer", "inner", "pair", "step", "apart")
    start, outer, inner, pair, step, apart = (w.fresh(name) for name in names)
    i, i_next, j, j_next = (f"%{w.fresh(name)}" for name in ("i", "i_next", "j", "j_next"))
    w.do(f"br label %{start}")
    w.label(start)
    w.do(f"br label %{outer}")
    w.label(outer)
    w.do(f"{i} = phi i64 [ 0, %{start} ], [ {i_next}, %{step} ]")
    w.do(f"{i_next} = add i64 {i}, 1")
    low_i, high_i = loaded_bounds(w, table, i)
    w.do(f"br label %{inner}")
    w.label(inner)
    w.do(f"{j} = phi i64 [ {i_next}, %{outer} ], [ {j_next}, %{pair} ]")
    w.do(f"{j_next} = add i64 {j}, 1")
    last = w.value(f"icmp eq i64 {j}, {len(bounds)}")
    w.do(f"br i1 {last}, label %{step}, label %{pair}")
    w.label(pair)
    low_j, high_j = loaded_bounds(w, table, j)
    before = w.value(f"icmp ule ptr {high_i}, {low_j}")
    after = w.value(f"icmp ule ptr {high_j}, {low_i}")
    wanted = w.value(f"or i1 {w.value(f'or i1 {before}, {after}')}, %is_proved")
    w.do(f"br i1 {wanted}, label %{inner}, label %mismatch")
    w.label(step)
    done = w.value(f"icmp eq i64 {i_next}, {watched}")
    w.do(f"br i1 {done}, label %{apart}, label %{outer}")
    w.label(apart)


def loaded_bounds(w: Writer, table: str, k: str) -> tuple[str, str]:
    at = w.value(f"getelementptr i8, ptr {table}, i64 {w.value(f'mul i64 {k}, 16')}")
    return w.field(at, 0, hint="low"), w.field(at, 8, hint="high")


Number = tuple[int, int] | tuple[str, tuple["Form", ...]]
Form = tuple[int, tuple[tuple[int, Number], ...]]
"""A number made of arguments (`frontend.emitter`)."""


def check_assumed(w: Writer, leaves: Sequence[Leaf], assumed: Sequence[Form]) -> None:
    """Check what the kernel assumes of the extents and ints among its arguments: each form is 0.

    `leaves` are those that the kernel takes.
    """
    for form in assumed:
        w.require(w.value(f"icmp eq i64 {value_of(w, leaves, form)}, 0"))


def value_of(w: Writer, leaves: Sequence[Leaf], form: Form) -> str:
    constant, numbers = form
    total = str(constant)
    for factor, number in numbers:
        scaled = w.value(f"mul i64 {number_value(w, leaves, number)}, {factor}")
        total = w.value(f"add i64 {total}, {scaled}")
    return total


def number_value(w: Writer, leaves: Sequence[Leaf], number: Number) -> str:
    match number:
        case (int(position), int(axis)):
            leaf = leaves[position]
            return leaf.extents[axis] if isinstance(leaf, ArrayValue) else leaf.value
        case (str(kind), operands):
            a, b = (value_of(w, leaves, operand) for operand in operands)
            if kind == "mul":
                return w.value(f"mul i64 {a}, {b}")
            if kind == "floordiv":
                quotient, rest = w.value(f"sdiv i64 {a}, {b}"), w.value(f"srem i64 {a}, {b}")
                inexact = w.value(f"icmp slt i64 {rest}, 0")
                return w.value(f"sub i64 {quotient}, {w.value(f'zext i1 {inexact} to i64')}")
            test = w.value(f"icmp {'sgt' if kind == 'max' else 'slt'} i64 {a}, {b}")
            return w.value(f"select i1 {test}, i64 {a}, i64 {b}")


def memory_bounds(w: Writer, a: ArrayValue) -> tuple[str, str]:
    """First byte and the byte behind the last; (null, null) for an array without elements."""
    size = ITEM_SIZE[a.key.dtype]
    low, high = "0", str(size)
    empty = "false"
    if a.key.layout == "S":
        for extent, stride in zip(a.extents, a.strides, strict=True):
            last = w.value(f"sub i64 {extent}, 1")
            elements = w.value(f"mul i64 {last}, {stride}")
            reach = w.value(f"mul i64 {elements}, {size}")
            negative = w.value(f"icmp slt i64 {reach}, 0")
            down = w.value(f"select i1 {negative}, i64 {reach}, i64 0")
            up = w.value(f"select i1 {negative}, i64 0, i64 {reach}")
            low, high = w.value(f"add i64 {low}, {down}"), w.value(f"add i64 {high}, {up}")
    else:
        for extent in a.extents:
            high = w.value(f"mul i64 {high}, {extent}")
    for extent in a.extents:
        zero = w.value(f"icmp eq i64 {extent}, 0")
        empty = zero if empty == "false" else w.value(f"or i1 {empty}, {zero}")
    first = w.value(f"getelementptr i8, ptr {a.data}, i64 {low}")
    end = w.value(f"getelementptr i8, ptr {a.data}, i64 {high}")
    return (
        w.value(f"select i1 {empty}, ptr null, ptr {first}", "low"),
        w.value(f"select i1 {empty}, ptr null, ptr {end}", "high"),
    )


def ends_in_memory(w: Writer, a: ArrayValue) -> str:
    """The bounds of the array's memory are numbers that do not wrap around."""
    far = "0.0"
    for extent, stride in zip(a.extents, a.strides, strict=True):
        last = w.value(f"sitofp i64 {w.value(f'sub i64 {extent}, 1')} to double")
        step = w.value(f"uitofp i64 {absolute(w, stride)} to double")
        far = w.value(f"fadd double {far}, {w.value(f'fmul double {last}, {step}')}")
    result = w.value(f"fcmp olt double {far}, {FARTHEST // ITEM_SIZE[a.key.dtype]}.0")
    for extent in a.extents:
        result = w.value(f"or i1 {result}, {w.value(f'icmp eq i64 {extent}, 0')}")
    return result


def identical(w: Writer, a: ArrayValue, b: ArrayValue) -> list[str]:
    """The two views address the same elements in the same order."""
    conditions = [w.value(f"icmp eq ptr {a.data}, {b.data}")]
    for d, wanted in enumerate(a.key.extents):
        conditions.append(w.value(f"icmp eq i64 {a.extents[d]}, {b.extents[d]}"))
        if wanted != "1":
            conditions.append(w.value(f"icmp eq i64 {a.strides[d]}, {b.strides[d]}"))
    return conditions


def never_overlaps_itself(w: Writer, a: ArrayValue) -> str:
    """Each stride steps over everything that the smaller strides span: no element is met twice."""
    dimensions = [d for d, wanted in enumerate(a.key.extents) if wanted != "1"]
    size = {d: absolute(w, a.strides[d]) for d in dimensions}
    span = {
        d: w.value(f"mul i64 {size[d]}, {w.value(f'sub i64 {a.extents[d]}, 1')}")
        for d in dimensions
    }
    conditions: list[str] = []
    for d in dimensions:
        below = "0"
        for e in dimensions:
            if e != d:
                smaller = w.value(f"icmp ule i64 {size[e]}, {size[d]}")
                added = w.value(f"select i1 {smaller}, i64 {span[e]}, i64 0")
                below = w.value(f"add i64 {below}, {added}")
        conditions.append(w.value(f"icmp sgt i64 {size[d]}, {below}"))
    result = w.all_of(conditions)
    for d in dimensions:
        empty = w.value(f"icmp eq i64 {a.extents[d]}, 0")
        result = w.value(f"or i1 {result}, {empty}")
    return result


def absolute(w: Writer, value: str) -> str:
    negative = w.value(f"icmp slt i64 {value}, 0")
    negated = w.value(f"sub i64 0, {value}")
    return w.value(f"select i1 {negative}, i64 {negated}, i64 {value}")
