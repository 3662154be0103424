"""Derivatives from first axes to last ones, and back: users stack what compiled code has side by side.

NumPy moves one number after another there. This is machine code that takes eight of eight arrays at a
time, in registers::

    u_dots[k, i]   k = 0 ... 7, arrays one after another        ->        beside[i, k], a vector for each i

Other layouts, and other numbers of arrays than multiples of eight, are NumPy's.
"""

from __future__ import annotations

import ctypes
import functools
from typing import Any

import numpy as np

from .keys import Array, address_of
from .native_code import object_code

SIDE = 8
"""Rows and columns that are turned at a time."""

FEW = 1 << 14
"""Fewer numbers are turned by NumPy: to ask takes as long."""


def turn(target: Array, source: Array) -> None:
    """`target[...] = source`, where one may be stacked along its first axis, and one along its last."""
    if not turned(target, source) and not turned(target, source, back=True):
        target[...] = source


def turned(target: Array, source: Array, *, back: bool = False) -> bool:
    """Whether that was done: of arrays as rows into columns, or `back` of columns into rows."""
    rows, columns = (target, source) if back else (source, target)
    if rows.size < FEW or rows.dtype != columns.dtype or rows.itemsize not in (4, 8):
        return False
    if not (type(rows) is type(columns) is np.ndarray):  # those of a device are not read here
        return False
    lanes, itemsize = rows.shape[-1], rows.itemsize
    rows = np.moveaxis(rows, -1, 0)
    if lanes % SIDE or not columns.flags.c_contiguous or not rows[0].flags.c_contiguous:
        return False
    if rows.strides[0] % itemsize or rows.dtype.byteorder not in "=|" or not rows.flags.aligned:
        return False
    code = functions()[itemsize, back]
    code(address_of(rows), address_of(columns), rows[0].size, lanes, rows.strides[0] // itemsize)
    return True


@functools.cache
def functions() -> dict[tuple[int, bool], Any]:
    """The functions, by the size of a number and by where to."""
    from llvmlite import binding

    code = binding.JITLibraryBuilder().add_object_img(object_code(TEXT, for_host=True))
    names = {(n, b): f"mutad_turn_{n}_{int(b)}" for n in (4, 8) for b in (False, True)}
    for name in names.values():
        code.export_symbol(name)
    linker = binding.create_lljit_compiler()
    library = code.link(linker, "mutad.turn")
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_size_t] * 5)
    kept = {key: kind(library[name]) for key, name in names.items()}
    for immortal in (linker, library):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(immortal))
    return kept


def shuffled(number: str) -> list[str]:
    """LLVM's text that turns `%a0` to `%a7`, vectors of eight, into `%d0` to `%d7`, in three steps."""
    lines: list[str] = []
    for step, (old, new) in enumerate(("ab", "bc", "cd")):
        far = 1 << step
        for k in range(SIDE):
            low = k & ~far
            mask = [
                (lane if not k & far else lane | far)
                if not lane & far
                else ((lane & ~far) + SIDE if not k & far else lane + SIDE)
                for lane in range(SIDE)
            ]
            shown = ", ".join(f"i32 {m}" for m in mask)
            type_ = f"<{SIDE} x {number}>"
            lines.append(
                f"%{new}{k} = shufflevector {type_} %{old}{low}, {type_} %{old}{low | far},"
                f" <{SIDE} x i32> <{shown}>"
            )
    return lines


def function(number: str, size: int, back: bool) -> str:
    """Rows `apart` numbers, of `count` numbers each, from or to `lanes` numbers side by side."""
    type_ = f"<{SIDE} x {number}>"
    loads: list[str] = []
    stores: list[str] = []
    for k in range(SIDE):
        row = [
            f"%row.i{k} = add i64 %lane, {k}",
            f"%row.j{k} = mul i64 %row.i{k}, %apart",
            f"%row.k{k} = add i64 %row.j{k}, %i",
            f"%row{k} = getelementptr {number}, ptr %rows, i64 %row.k{k}",
        ]
        column = [
            f"%column.i{k} = add i64 %i, {k}",
            f"%column.j{k} = mul i64 %column.i{k}, %lanes",
            f"%column.k{k} = add i64 %column.j{k}, %lane",
            f"%column{k} = getelementptr {number}, ptr %columns, i64 %column.k{k}",
        ]
        taken, given = ("column", "row") if back else ("row", "column")
        loads += [*row, *column, f"%a{k} = load {type_}, ptr %{taken}{k}, align {size}"]
        stores.append(f"store {type_} %d{k}, ptr %{given}{k}, align {size}")
    whole = "\n  ".join([*loads, *shuffled(number), *stores])
    taken, given = ("column", "row") if back else ("row", "column")
    return f"""
define void @mutad_turn_{size}_{int(back)}(
    ptr noalias %rows, ptr noalias %columns, i64 %count, i64 %lanes, i64 %apart) {{
entry:
  %whole = and i64 %count, -{SIDE}
  br label %points
points:
  %i = phi i64 [ 0, %entry ], [ %i.next, %points.next ]
  %some = icmp ult i64 %i, %whole
  br i1 %some, label %lanes.of, label %rest
lanes.of:
  %lane = phi i64 [ 0, %points ], [ %lane.next, %lanes.of ]
  {whole}
  %lane.next = add i64 %lane, {SIDE}
  %more = icmp ult i64 %lane.next, %lanes
  br i1 %more, label %lanes.of, label %points.next
points.next:
  %i.next = add i64 %i, {SIDE}
  br label %points
rest:
  %r = phi i64 [ %whole, %points ], [ %r.next, %rest.next ]
  %left = icmp ult i64 %r, %count
  br i1 %left, label %rest.of, label %done
rest.of:
  %l = phi i64 [ 0, %rest ], [ %l.next, %rest.of ]
  %row.j = mul i64 %l, %apart
  %row.k = add i64 %row.j, %r
  %row = getelementptr {number}, ptr %rows, i64 %row.k
  %column.j = mul i64 %r, %lanes
  %column.k = add i64 %column.j, %l
  %column = getelementptr {number}, ptr %columns, i64 %column.k
  %one = load {number}, ptr %{taken}, align {size}
  store {number} %one, ptr %{given}, align {size}
  %l.next = add i64 %l, 1
  %l.more = icmp ult i64 %l.next, %lanes
  br i1 %l.more, label %rest.of, label %rest.next
rest.next:
  %r.next = add i64 %r, 1
  br label %rest
done:
  ret void
}}"""


TEXT = "\n".join(
    function(number, size, back)
    for number, size in (("float", 4), ("double", 8))
    for back in (False, True)
)
