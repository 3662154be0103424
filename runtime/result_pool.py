"""Memory of the large arrays that calls return: blocks that outlive the arrays, for the next call.

The pages of a fresh large array cost more than many gradients: the system maps each of them at the first
touch, and takes them back when the array goes. Here a block of an array that went waits for the next one::

    gradient = f.grad(x)        1.6 MB of zeros, from the system
    del gradient                the block waits
    gradient = f.grad(x)        the same block, filled with zeros: its pages are there

NumPy's arrays know whose memory they have (NEP 49): a data allocation handler is set while a large array is
made, and the array frees its memory through it, whenever and in whichever thread it goes. `owndata`, `resize`
and `tracemalloc` are as ever, and a program's own handler stays in charge.

Blocks wait in a few slots that are swapped by atomic instructions: no locks, so that `fork` and threads need
no care. No more wait than `limit` bytes; a block serves requests of its size down to half of it; blocks that
waited for two seconds are freed at the next large array, and all by `mutad.release_memory()`. The code is
machine code that is never unloaded, as arrays live as long as they like, even past the interpreter's end.
"""

from __future__ import annotations

import ctypes
import functools
import math
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import disk_cache
from .keys import Array

SLOTS, POOLED_FROM, POOLED_TO = 16, 1 << 18, 1 << 25
"""How many blocks wait, and of what sizes in bytes. Larger ones glibc always has from the system, in huge
pages: those that nothing is stored to cost nothing, so filling old ones with zeros could be slower."""

MOST, SHARE, SECONDS = 1 << 29, 16, 2
"""At most so many bytes wait, and no more than this part of the machine's memory; and for how long."""

SCRATCH_SLOTS, SCRATCH_BLOCKS, RANGE_BYTES = 12, 4, 1 << 36
"""The pool that kernels have for scratch (`engine.scratch_pool`): its slots, how many of them are for blocks,
and the bytes of each range of addresses in the others."""

NAME = "mutad"


def limit() -> int:
    """How many bytes may wait."""
    try:
        memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return MOST // 8
    return min(MOST, memory // SHARE)


def text(most: int, context: int = 0) -> str:
    """The handler's functions, and `PyArray_Zeros` with the handler set, which entries call for large arrays.

    A block: what the default handler gave, then before a multiple of 64 bytes `{given, bytes, since}`, then
    data. `bytes` is how many there are, `since` the second from which on it waits. No more than `most` bytes
    wait; `context` is what the default handler is called with.
    """
    return f"""
@slots = internal global [{SLOTS} x ptr] zeroinitializer
@waiting = internal global i64 0
@swept = internal global i64 0

declare ptr @default_malloc(ptr, i64)
declare ptr @default_calloc(ptr, i64, i64)
declare void @default_free(ptr, ptr, i64)
declare void @mutad_libc_free(ptr)
declare i64 @mutad_libc_time(ptr)
declare i32 @munmap(ptr, i64)
declare ptr @PyArray_Zeros(i32, ptr, ptr, i32)
declare ptr @PyDataMem_GetHandler()
declare ptr @PyDataMem_SetHandler(ptr)
declare void @PyErr_Clear()
declare void @PyErr_Fetch(ptr, ptr, ptr)
declare void @PyErr_Restore(ptr, ptr, ptr)
declare void @Py_DecRef(ptr)
declare void @Py_IncRef(ptr)
@default_handler = external global i8
@our_handler = external global i8
declare {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)

define internal void @drop(ptr %data) nounwind {{
  %header = getelementptr i8, ptr %data, i64 -32
  %given = load ptr, ptr %header
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  %bytes = load i64, ptr %bytes.at
  %whole = add i64 %bytes, 128
  call void @default_free(ptr inttoptr (i64 {context} to ptr), ptr %given, i64 %whole)
  ret void
}}

; Put a block into a slot, if that is empty still: else it goes.
define internal void @put_back(ptr %slot, ptr %data) nounwind {{
  %swap = cmpxchg ptr %slot, ptr null, ptr %data acq_rel monotonic
  %empty = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %empty, label %done, label %full
full:
  call void @forget(ptr %data)
  br label %done
done:
  ret void
}}

; A block that waited no longer does, and goes.
define internal void @forget(ptr %data) nounwind {{
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  %bytes = load i64, ptr %bytes.at
  %before = atomicrmw sub ptr @waiting, i64 %bytes acq_rel
  call void @drop(ptr %data)
  ret void
}}

; The blocks that wait for so many seconds or longer go.
define internal void @sweep(i64 %now, i64 %seconds) nounwind {{
entry:
  br label %look
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr @slots, i64 %slot
  %data = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %none = icmp eq ptr %data, null
  br i1 %none, label %on, label %measure
measure:
  %since.at = getelementptr i8, ptr %data, i64 -16
  %since = load i64, ptr %since.at
  %age = sub i64 %now, %since
  %old = icmp sge i64 %age, %seconds
  br i1 %old, label %go, label %stay
go:
  call void @forget(ptr %data)
  br label %on
stay:
  call void @put_back(ptr %slot.at, ptr %data)
  br label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %done
done:
  ret void
}}

; Once a second.
define internal void @sweep_old(i64 %now) nounwind {{
  %last = atomicrmw xchg ptr @swept, i64 %now acq_rel
  %same = icmp eq i64 %last, %now
  br i1 %same, label %done, label %old
old:
  call void @sweep(i64 %now, i64 {SECONDS})
  br label %done
done:
  ret void
}}

; All that waits goes; so do the blocks and ranges that kernels left in the pool for scratch.
define void @mutad_pool_release(ptr %scratch) nounwind {{
entry:
  call void @sweep(i64 0, i64 {-(1 << 63)})
  br label %look
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr %scratch, i64 %slot
  %block = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %none = icmp eq ptr %block, null
  br i1 %none, label %on, label %some
some:
  %is.block = icmp ult i64 %slot, {SCRATCH_BLOCKS}
  br i1 %is.block, label %free, label %unmap
free:
  call void @mutad_libc_free(ptr %block)
  br label %on
unmap:
  %unmapped = call i32 @munmap(ptr %block, i64 {RANGE_BYTES})
  br label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SCRATCH_SLOTS}
  br i1 %more, label %look, label %done
done:
  ret void
}}

define i64 @mutad_pool_waiting() nounwind {{
  %bytes = load atomic i64, ptr @waiting acquire, align 8
  ret i64 %bytes
}}

; A block that waits and has so many bytes, at most twice as many; else null.
define internal ptr @take(i64 %bytes) nounwind {{
entry:
  %large = icmp uge i64 %bytes, {POOLED_FROM}
  br i1 %large, label %look, label %fail
look:
  %slot = phi i64 [ 0, %entry ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr @slots, i64 %slot
  %data = atomicrmw xchg ptr %slot.at, ptr null acq_rel
  %none = icmp eq ptr %data, null
  br i1 %none, label %on, label %measure
measure:
  %size.at = getelementptr i8, ptr %data, i64 -24
  %size = load i64, ptr %size.at
  %half = lshr i64 %size, 1
  %enough = icmp uge i64 %size, %bytes
  %near = icmp ule i64 %half, %bytes
  %fits = and i1 %enough, %near
  br i1 %fits, label %found, label %stay
stay:
  call void @put_back(ptr %slot.at, ptr %data)
  br label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %fail
found:
  %before = atomicrmw sub ptr @waiting, i64 %size acq_rel
  ret ptr %data
fail:
  ret ptr null
}}

define internal ptr @fresh(i64 %bytes, i1 %zero) nounwind {{
  %huge = icmp ugt i64 %bytes, 4611686018427387904
  br i1 %huge, label %fail, label %ask
ask:
  %whole = add i64 %bytes, 128
  br i1 %zero, label %zeros, label %anything
zeros:
  %made.zero = call ptr @default_calloc(ptr inttoptr (i64 {context} to ptr), i64 1, i64 %whole)
  br label %made
anything:
  %made.any = call ptr @default_malloc(ptr inttoptr (i64 {context} to ptr), i64 %whole)
  br label %made
made:
  %given = phi ptr [ %made.zero, %zeros ], [ %made.any, %anything ]
  %exhausted = icmp eq ptr %given, null
  br i1 %exhausted, label %fail, label %good
good:
  %address = ptrtoint ptr %given to i64
  %past = add i64 %address, 95
  %rounded = and i64 %past, -64
  %data = inttoptr i64 %rounded to ptr
  %header = getelementptr i8, ptr %data, i64 -32
  store ptr %given, ptr %header
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  store i64 %bytes, ptr %bytes.at
  ret ptr %data
fail:
  ret ptr null
}}

define ptr @mutad_pool_malloc(ptr %context, i64 %bytes) nounwind {{
  %old = call ptr @take(i64 %bytes)
  %none = icmp eq ptr %old, null
  br i1 %none, label %make, label %found
found:
  ret ptr %old
make:
  %new = call ptr @fresh(i64 %bytes, i1 false)
  ret ptr %new
}}

define ptr @mutad_pool_calloc(ptr %context, i64 %count, i64 %size) nounwind {{
  %product = call {{ i64, i1 }} @llvm.umul.with.overflow.i64(i64 %count, i64 %size)
  %bytes = extractvalue {{ i64, i1 }} %product, 0
  %over = extractvalue {{ i64, i1 }} %product, 1
  br i1 %over, label %fail, label %ask
ask:
  %old = call ptr @take(i64 %bytes)
  %none = icmp eq ptr %old, null
  br i1 %none, label %make, label %found
found:
  call void @llvm.memset.p0.i64(ptr align 64 %old, i8 0, i64 %bytes, i1 false)
  ret ptr %old
make:
  %new = call ptr @fresh(i64 %bytes, i1 true)
  ret ptr %new
fail:
  ret ptr null
}}

define void @mutad_pool_free(ptr %context, ptr %data, i64 %ignored) nounwind {{
entry:
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %done, label %measure
measure:
  %bytes.at = getelementptr i8, ptr %data, i64 -24
  %bytes = load i64, ptr %bytes.at
  %large = icmp uge i64 %bytes, {POOLED_FROM}
  %near = icmp ule i64 %bytes, {POOLED_TO}
  %keep = and i1 %large, %near
  br i1 %keep, label %count, label %other
other:
  call void @drop(ptr %data)
  br label %done
count:
  %now = call i64 @mutad_libc_time(ptr null)
  call void @sweep_old(i64 %now)
  %since.at = getelementptr i8, ptr %data, i64 -16
  store i64 %now, ptr %since.at
  %before = atomicrmw add ptr @waiting, i64 %bytes acq_rel
  %after = add i64 %before, %bytes
  %many = icmp ugt i64 %after, {most}
  br i1 %many, label %full, label %look
look:
  %slot = phi i64 [ 0, %count ], [ %next, %on ]
  %slot.at = getelementptr ptr, ptr @slots, i64 %slot
  %swap = cmpxchg ptr %slot.at, ptr null, ptr %data acq_rel monotonic
  %empty = extractvalue {{ ptr, i1 }} %swap, 1
  br i1 %empty, label %done, label %on
on:
  %next = add i64 %slot, 1
  %more = icmp ult i64 %next, {SLOTS}
  br i1 %more, label %look, label %full
full:
  call void @forget(ptr %data)
  br label %done
done:
  ret void
}}

define ptr @mutad_pool_realloc(ptr %context, ptr %data, i64 %bytes) nounwind {{
  %nothing = icmp eq ptr %data, null
  br i1 %nothing, label %move, label %measure
measure:
  %size.at = getelementptr i8, ptr %data, i64 -24
  %size = load i64, ptr %size.at
  %half = lshr i64 %size, 1
  %enough = icmp uge i64 %size, %bytes
  %near = icmp ule i64 %half, %bytes
  %fits = and i1 %enough, %near
  br i1 %fits, label %stay, label %move
stay:
  ret ptr %data
move:
  %had = phi i64 [ 0, %0 ], [ %size, %measure ]
  %new = call ptr @mutad_pool_malloc(ptr %context, i64 %bytes)
  %exhausted = icmp eq ptr %new, null
  br i1 %exhausted, label %fail, label %copy
copy:
  %kept = call i64 @llvm.umin.i64(i64 %had, i64 %bytes)
  call void @llvm.memcpy.p0.p0.i64(ptr %new, ptr %data, i64 %kept, i1 false)
  call void @mutad_pool_free(ptr %context, ptr %data, i64 %had)
  ret ptr %new
fail:
  ret ptr null
}}

; A program that has set another handler than NumPy's default keeps it.
define ptr @mutad_pool_zeros(i32 %rank, ptr %extents, ptr %dtype, i32 %fortran) {{
entry:
  %kind = alloca ptr
  %error = alloca ptr
  %trace = alloca ptr
  br label %ask
ask:
  %theirs = call ptr @PyDataMem_GetHandler()
  %unknown = icmp eq ptr %theirs, null
  br i1 %unknown, label %unset, label %compare
compare:
  call void @Py_DecRef(ptr %theirs)
  %default = icmp eq ptr %theirs, @default_handler
  br i1 %default, label %set, label %plain
set:
  %old = call ptr @PyDataMem_SetHandler(ptr @our_handler)
  %failed = icmp eq ptr %old, null
  br i1 %failed, label %unset, label %make
unset:
  call void @PyErr_Clear()
  br label %plain
plain:
  %usual = call ptr @PyArray_Zeros(i32 %rank, ptr %extents, ptr %dtype, i32 %fortran)
  ret ptr %usual
make:
  %zeros = call ptr @PyArray_Zeros(i32 %rank, ptr %extents, ptr %dtype, i32 %fortran)
  call void @PyErr_Fetch(ptr %kind, ptr %error, ptr %trace)
  %ours = call ptr @PyDataMem_SetHandler(ptr %old)
  call void @Py_DecRef(ptr %old)
  %stuck = icmp eq ptr %ours, null
  br i1 %stuck, label %restore, label %drop.ours
drop.ours:
  call void @Py_DecRef(ptr %ours)
  br label %restore
restore:
  %kind.set = load ptr, ptr %kind
  %error.set = load ptr, ptr %error
  %trace.set = load ptr, ptr %trace
  call void @PyErr_Restore(ptr %kind.set, ptr %error.set, ptr %trace.set)
  ret ptr %zeros
}}
"""


class _Allocator(ctypes.Structure):
    _fields_ = [
        ("context", ctypes.c_void_p),
        ("malloc", ctypes.c_void_p),
        ("calloc", ctypes.c_void_p),
        ("realloc", ctypes.c_void_p),
        ("free", ctypes.c_void_p),
    ]


class _Handler(ctypes.Structure):
    """`PyDataMem_Handler`, version 1."""

    _fields_ = [
        ("name", ctypes.c_char * 127),
        ("version", ctypes.c_uint8),
        ("allocator", _Allocator),
    ]


@dataclass(frozen=True)
class Pool:
    """The loaded code, and the handler that NumPy calls."""

    handler: Any
    """The capsule that arrays keep."""
    zeros_address: int
    set_handler: Callable[[Any], Any]
    get_handler: Callable[[], Any]
    default: Any
    release: Callable[[int], None]
    waiting: Callable[[], int]


@functools.cache
def pool() -> Pool | None:
    """The process's pool; None where arrays go to several threads at once, without Python's lock."""
    from . import engine

    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        return None
    with engine.compiling:
        return _load()


@functools.cache  # inside the lock: there is one
def _load() -> Pool:
    """Link the code and fill in the handler. All that arrays refer to is never freed."""
    from . import engine

    python: Any = ctypes.pythonapi
    new_capsule = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p
    )(("PyCapsule_New", python))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python)
    )
    table = engine.numpy_table()
    default: Any = ctypes.cast(
        table[_DEFAULT_HANDLER], ctypes.POINTER(ctypes.py_object)
    ).contents.value
    theirs = _Handler.from_address(get_pointer(default, b"mem_handler") or 0).allocator
    ours, name = _Handler(NAME.encode(), 1), ctypes.create_string_buffer(b"mem_handler")
    handler = new_capsule(ctypes.addressof(ours), name, None)
    symbols = {
        "default_malloc": theirs.malloc,
        "default_calloc": theirs.calloc,
        "default_free": theirs.free,
        "default_handler": id(default),
        "our_handler": id(handler),
        **{
            name: engine.address_of(name, "libc") or 0
            for name in ("mutad_libc_time", "mutad_libc_free")
        },
        "PyArray_Zeros": table[_ZEROS],
        "PyDataMem_SetHandler": table[_SET_HANDLER],
        "PyDataMem_GetHandler": table[_GET_HANDLER],
    }
    code = linked(object_code(text(limit(), theirs.context or 0)), symbols)
    at = {kind: code[symbol] for kind, symbol in _ENTRIES.items()}
    ours.allocator = _Allocator(None, at["malloc"], at["calloc"], at["realloc"], at["free"])
    for immortal in (code, ours, name, handler, default):
        python.Py_IncRef(ctypes.py_object(immortal))
    set_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(table[_SET_HANDLER])
    get_handler: Any = ctypes.PYFUNCTYPE(ctypes.py_object)(table[_GET_HANDLER])
    release: Any = ctypes.PYFUNCTYPE(None, ctypes.c_void_p)(at["release"])
    waiting: Any = ctypes.PYFUNCTYPE(ctypes.c_int64)(at["waiting"])
    return Pool(handler, at["zeros"], set_handler, get_handler, default, release, waiting)


_ZEROS, _SET_HANDLER, _GET_HANDLER, _DEFAULT_HANDLER = 183, 304, 305, 306
LAST_OF_NUMPY = _DEFAULT_HANDLER
"""Places in NumPy's C-API table, part of its ABI, and the last that we read."""

_ENTRIES = {
    kind: f"mutad_pool_{kind}"
    for kind in ("malloc", "calloc", "realloc", "free", "zeros", "release", "waiting")
}


class _Zeros(ctypes.Structure):
    """What entries know of the pool: the function that makes large arrays of zeros, null until it is loaded,
    and the function that loads it and says its address."""

    _fields_ = [("make", ctypes.c_void_p), ("load", ctypes.c_void_p)]


@functools.cache
def zeros_table() -> _Zeros:
    """The process's table for entries."""
    from . import engine

    def load() -> int:
        """Called by entries, where no error may leave: whatever goes wrong, there are arrays."""
        try:
            its = pool()
        except Exception:
            its = None
        table.make = engine.numpy_table()[_ZEROS] if its is None else its.zeros_address
        return table.make

    function = ctypes.PYFUNCTYPE(ctypes.c_void_p)(load)
    table = _Zeros(None, ctypes.cast(function, ctypes.c_void_p).value)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(function))  # as long as there are entries
    return table


def object_code(source: str) -> bytes:
    """Machine code of LLVM text, from the disk cache where it is there."""
    import hashlib

    from llvmlite import binding

    made_by = source, binding.get_default_triple(), binding.llvm_version_info
    digest = hashlib.sha256(repr(made_by).encode()).hexdigest()
    place = f"{NAME}-pool-{digest}{disk_cache.SUFFIX}"
    if (cached := disk_cache.read(place)) is not None:
        return cached[0]
    code = emitted(source)
    disk_cache.write(place, code, {})
    return code


def emitted(source: str) -> bytes:
    """Machine code of LLVM text, made quickly: it runs seldom, but for what libc does."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        opt=0, reloc="pic", codemodel="default", jit=True
    )
    return machine.emit_object(binding.parse_assembly(source))


def linked(code: bytes, symbols: dict[str, int]) -> Any:
    """The code in the process, with a linker of its own: that of others goes with the last of them."""
    from llvmlite import binding

    builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
    for symbol, address in symbols.items():
        builder.import_symbol(symbol, address)
    for symbol in _ENTRIES.values():
        builder.export_symbol(symbol)
    return builder.link(binding.create_lljit_compiler(), "mutad.pool")


def release_memory() -> None:
    """Give back the memory that is kept for the next calls: that of large arrays which went, and scratch.

    Arrays that are there keep theirs.
    """
    from . import engine

    if pool.cache_info().currsize or any(engine.scratch_pool):
        its = pool()
        if its is not None:
            its.release(ctypes.addressof(engine.scratch_pool))


def zeros(shape: Any, dtype: Any = float, order: Any = "C") -> Array:
    """`np.zeros`, large arrays from the pool."""
    return made(np.zeros, shape, dtype, order)


def empty(shape: Any, dtype: Any = float, order: Any = "C") -> Array:
    """`np.empty`, large arrays from the pool."""
    return made(np.empty, shape, dtype, order)


def made(make: Callable[..., Array], shape: int | Sequence[int], dtype: Any, order: Any) -> Array:
    """A new array, made while the handler is set if the array is large."""
    elements = shape if isinstance(shape, int) else math.prod(shape)
    its = pool() if elements * np.dtype(dtype).itemsize >= POOLED_FROM else None
    if its is None or its.get_handler() is not its.default:
        return make(shape, dtype, order)
    before = its.set_handler(its.handler)
    try:
        return make(shape, dtype, order)
    finally:
        its.set_handler(before)
