"""Where the segments of a tape lie: LLVM text, linked against libc."""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import pytest

from mutad.compiler.codegen.llvm_module import optimize_and_emit
from mutad.compiler.codegen.support.functions import functions_text

PROBE = """
define i64 @probe(ptr %ctx, i64 %bytes, i64 %count, i64 %expected) {
entry:
  %tape = alloca [4 x i64]
  store [4 x i64] zeroinitializer, ptr %tape
  %cursor.at = getelementptr i64, ptr %tape, i64 1
  store i64 %expected, ptr %cursor.at
  %end.at = getelementptr i64, ptr %tape, i64 2
  store i64 %expected, ptr %end.at
  br label %push
push:
  %k = phi i64 [ 0, %entry ], [ %next, %push ]
  %all = phi i64 [ 0, %entry ], [ %more, %push ]
  %segment = call ptr @mutad_tape_push(ptr %ctx, ptr %tape, i64 %bytes)
  store i64 %k, ptr %segment
  %at = ptrtoint ptr %segment to i64
  %more = or i64 %all, %at
  %next = add i64 %k, 1
  %again = icmp ult i64 %next, %count
  br i1 %again, label %push, label %pop
pop:
  %left = phi i64 [ %count, %push ], [ %before, %pop ]
  %wrong = phi i64 [ 0, %push ], [ %wrong.now, %pop ]
  %before = sub i64 %left, 1
  %back = call ptr @mutad_tape_pop(ptr %ctx, ptr %tape, i64 %bytes)
  %found = load i64, ptr %back
  %away = sub i64 %found, %before
  %wrong.now = or i64 %wrong, %away
  %done = icmp eq i64 %before, 0
  br i1 %done, label %out, label %pop
out:
  call void @mutad_end(ptr %ctx, i32 0)
  %beside = and i64 %more, 63
  %lost = shl i64 %wrong.now, 6
  %result = or i64 %beside, %lost
  ret i64 %result
}
"""


@pytest.fixture(scope="module")
def probe():
    """Push segments, read them back; 0 where each came back, and all begin at multiples of 64."""
    definitions, declarations = functions_text({"mutad_tape_push", "mutad_tape_pop", "mutad_end"})
    text = "\n".join([*dict.fromkeys(declarations), *definitions, PROBE])
    libc = ctypes.CDLL(None)
    builder = llvm.JITLibraryBuilder().add_object_img(optimize_and_emit(text))
    builder = builder.export_symbol("probe")
    for symbol in ("malloc", "free", "time"):
        address = ctypes.cast(getattr(libc, symbol), ctypes.c_void_p).value
        assert address is not None
        builder.import_symbol(f"mutad_libc_{symbol}", address)
    jit = llvm.create_lljit_compiler()
    tracker = builder.link(jit, "tape_places")
    call = ctypes.CFUNCTYPE(
        ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_int64
    )(tracker["probe"])

    def run(size: int, count: int, expected: int = 0) -> int:
        context = (ctypes.c_int64 * 36)()
        return call(ctypes.addressof(context), size, count, expected)

    yield run
    del tracker, jit


@pytest.mark.parametrize("size", [64, 4096, 1 << 15, 1 << 20])
@pytest.mark.parametrize("count", [1, 2, 50])
def test_rows_of_whole_lines_begin_at_lines_of_the_cache(probe, size, count):
    assert probe(size, count) == 0
    assert probe(size, count, size * count) == 0
    assert probe(size, count, size) == 0


@pytest.mark.parametrize("size", [8, 24, 4000, (1 << 15) + 8])
def test_other_segments_come_back(probe, size):
    assert probe(size, 300) >> 6 == 0
    assert probe(size, 300, 300 * size) >> 6 == 0


@pytest.mark.parametrize("lead", [0, 8, 56, 60])
@pytest.mark.parametrize("whole", [0, 64, 4096 * 40, 1 << 20])
@pytest.mark.parametrize("count", [1, 40])
def test_all_chunks_of_a_tape_may_begin_behind_a_line(
    probe: Any, lead: int, whole: int, count: int
) -> None:
    assert probe(4096, count, whole + lead) == lead


@pytest.mark.parametrize("lead", [0, 56])
def test_chunks_that_are_used_again_begin_there(probe: Any, lead: int) -> None:
    for size in (8, 72, 4000, (1 << 15) + 8):
        assert probe(size, 3000, 64 + lead) >> 6 == 0
