"""Loops whose strength LLVM reduces: those that multiply; the others are emitted without the pass."""

from __future__ import annotations

import pytest

from mutad.compiler.codegen import llvm_module
from mutad.compiler.codegen.llvm_module import assembly
from mutad.compiler.codegen.strength_reduction import functions_of, multiplies_in_loops

UNIT = """
define double @unit(ptr %x, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %old = phi double [ 1.0, %entry ], [ %new, %loop ]
  %at = getelementptr double, ptr %x, i64 %i
  %v = load double, ptr %at
  %new = fdiv double %v, %old
  store double %new, ptr %at
  %next = add i64 %i, 1
  %again = icmp slt i64 %next, %n
  br i1 %again, label %loop, label %done
done:
  ret double %new
}
"""
STRIDED = UNIT.replace("@unit(ptr %x,", "@strided(ptr %x, i64 %s,").replace(
    "  %at = getelementptr double, ptr %x, i64 %i",
    "  %k = mul i64 %i, %s\n  %at = getelementptr double, ptr %x, i64 %k",
)

ROWS = """
define void @rows(ptr %x, i64 %n, i64 %m) {
  br label %outer
outer:                                            ; preds = %next.row, %0
  %i = phi i64 [ 0, %0 ], [ %i.next, %next.row ]
  %row = mul nsw i64 %i, %m
  br label %inner
next.row:                                         ; preds = %inner
  %i.next = add i64 %i, 1
  %more = icmp slt i64 %i.next, %n
  br i1 %more, label %outer, label %done
inner:                                            ; preds = %on, %outer
  %j = phi i64 [ 0, %outer ], [ %j.next, %on ]
  ; PLACE
  br i1 %more, label %on, label %skip
skip:
  br label %on
on:
  %j.next = add i64 %j, 1
  %again = icmp slt i64 %j.next, %m
  br i1 %again, label %inner, label %next.row
done:
  ret void
}
"""
CALLING = (
    ROWS.replace("; PLACE", "%k = mul i64 %j, %m\n  {}")
    .replace("{\n", "{{\n")
    .replace("\n}\n", "\n}}\n")
)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (UNIT, False),
        (STRIDED, True),
        (STRIDED.replace("\nentry:", ""), True),
        (ROWS, False),
        (ROWS.replace("; PLACE", "%k = mul nuw nsw i64 %j, %m"), True),
        (ROWS.replace("; PLACE", "%k = mul <4 x i64> %u, %v"), False),
        ("define i64 @square(i64 %n) {\n  %s = mul i64 %n, %n\n  ret i64 %s\n}\n" + UNIT, False),
        (UNIT + STRIDED, True),
        (CALLING.format("call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %m, i1 false)"), False),
        (CALLING.format("%c = tail call double @_ZGVdN4v_exp(double %x)"), False),
        (CALLING.format("%c = call i64 @llvm.smin.i64(i64 %j, i64 %m)"), True),
        (CALLING.format("%c = tail call i32 @mutad_poll(ptr %ctx)"), True),
        (CALLING.format("call void @map_1(ptr %p)") + STRIDED, True),
    ],
    ids=[
        *("unit", "strided", "unnamed", "outer", "inner", "vector", "no_loop", "second"),
        *("fills", "calls", "intrinsic", "polls", "beside_calls"),
    ],
)
def test_only_multiplications_in_innermost_loops_count(text, wanted):
    assert multiplies_in_loops(text) == wanted


def test_blocks_of_an_innermost_loop():
    (_, rows) = functions_of(ROWS)
    assert list(rows.innermost()) == [{"inner", "skip", "on"}]


def test_multiplications_in_loops_are_reduced_and_nothing_is_left_for_other_modules(monkeypatch):
    reduced = assembly(STRIDED)
    assert assembly(UNIT)
    assert assembly(STRIDED) == reduced
    monkeypatch.setattr(llvm_module, "multiplies_in_loops", lambda _: False)
    assert assembly(STRIDED).count("\timul") > reduced.count("\timul")
