"""Multiplications in innermost loops are additions; LLVM's own pass, which looks for more, does not run."""

from __future__ import annotations

import ctypes

import llvmlite.binding as llvm
import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import llvm_module
from mutad.compiler.codegen.llvm_module import assembly, machine_of, parsed
from mutad.compiler.codegen.strength_reduction import blocks_of, reduced

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
CASES = """
  switch i64 %n, label %loop [
    i64 0, label %done
  ]
loop:"""


def is_reduced(text: str) -> bool:
    return reduced(text) != text


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (UNIT, False),
        (STRIDED, True),
        (STRIDED.replace("\nentry:", "").replace("%entry", "%0"), True),
        (ROWS, False),
        (ROWS.replace("; PLACE", "%k = mul nuw nsw i64 %j, %m"), True),
        (ROWS.replace("; PLACE", "%k = mul <4 x i64> %u, %v"), False),
        ("define i64 @square(i64 %n) {\n  %s = mul i64 %n, %n\n  ret i64 %s\n}\n" + UNIT, False),
        (UNIT + STRIDED, True),
        (STRIDED + UNIT, True),
        (CALLING.format("call void @llvm.memset.p0.i64(ptr %p, i8 0, i64 %m, i1 false)"), False),
        (CALLING.format("%c = tail call double @_ZGVdN4v_exp(double %x)"), False),
        (CALLING.format("%c = call i64 @llvm.smin.i64(i64 %j, i64 %m)"), True),
        (CALLING.format("%c = tail call i32 @mutad_poll(ptr %ctx)"), True),
        (CALLING.format("call void @map_1(ptr %p)") + STRIDED, True),
        (STRIDED.replace("mul i64 %i, %s", "mul i64 %i, %i"), False),
        (ROWS.replace("; PLACE", "%a = load i64, ptr %x\n  %k = mul i64 %j, %a"), False),
        (STRIDED.replace("%next = add i64 %i, 1", "%next = add i64 %i, %n"), False),
        (STRIDED.replace("%next = add i64 %i, 1", "%next = shl i64 %i, 1"), False),
        (STRIDED.replace("\n  br label %loop\nloop:", CASES), False),
        (
            STRIDED.replace("{\nentry", "#0 {\nentry") + "attributes #0 = { optnone noinline }\n",
            False,
        ),
    ],
    ids=[
        *("unit", "strided", "unnamed", "outer", "inner", "vector", "no_loop", "second", "first"),
        *("fills", "calls", "intrinsic", "polls", "beside_calls"),
        *("square", "data", "dynamic_step", "doubled", "switch", "unoptimized"),
    ],
)
def test_products_of_counters_and_invariants_are_reduced(text, wanted):
    assert is_reduced(text) == wanted


def test_blocks_of_an_innermost_loop():
    assert list(blocks_of(ROWS[1:]).innermost()) == [("inner", {"inner", "skip", "on"})]


LOOP = """
define void @f(ptr %out, i64 %n, i64 %s, i64 %from) {{
  %any = icmp sgt i64 %n, 0
  br i1 %any, label %ahead, label %done

ahead:                                            ; preds = %0
  {ahead}
  br label %loop

loop:                                             ; preds = %on, %ahead
  %number = phi i64 [ 0, %ahead ], [ %number.next, %on ]
  %i = phi i64 [ %i.next, %on ], [ {first}, %ahead ]
  {products}
  br label %on

on:                                               ; preds = %loop
  {behind}
  %at = getelementptr i64, ptr %out, i64 %number
  store i64 %k, ptr %at, align 8
  %number.next = add nuw nsw i64 %number, 1
  %i.next = {step}
  %again = icmp slt i64 %number.next, %n
  br i1 %again, label %loop, label %done

done:                                             ; preds = %on, %0
  ret void
}}
"""


def loop(products: str, behind: str = "", *, ahead="", first="%from", step="add i64 %i, 1") -> str:
    parts = {"products": products, "behind": behind, "ahead": ahead, "first": first, "step": step}
    return LOOP.format(**{k: v.replace("; ", "\n  ") for k, v in parts.items()})


LOOPS = {
    "plain": loop("%k = mul nsw i64 %i, %s"),
    "constant": loop("%k = mul i64 24, %i", first="-3"),
    "down": loop("%k = mul i64 %i, %s", step="add nsw i64 %i, -3"),
    "subtracted": loop("%r = sub i64 %n, %i; %k = mul i64 %r, %s"),
    "disjoint": loop(
        "%j = or disjoint i64 %i, 1; %k = mul i64 %j, %s", first="0", step="add i64 %i, 2"
    ),
    "invariants": loop(
        "%a = add i64 %i, %n; %b = sub i64 %a, %s; %c = add i64 5, %b; %k = mul i64 %c, %s"
    ),
    "twice_an_invariant": loop("%a = add i64 %n, %i; %b = add i64 %n, %a; %k = mul i64 %s, %b"),
    "numbered": loop("%2 = mul i64 %i, %s; %3 = add i64 %2, %s; %k = xor i64 %3, 5"),
    "quoted": loop('%"a b" = mul i64 %i, %s; %k = add i64 %"a b", %i'),
    "unrolled": loop(
        "%a = mul i64 %i, %s; %j = add i64 %i, 1; %b = mul i64 %j, %s; %h = add i64 %i, 2;"
        " %c = mul i64 %h, %s; %g = add i64 %i, 7; %d = mul i64 %g, %s",
        "%x = xor i64 %a, %b; %y = xor i64 %c, %d; %k = sub i64 %x, %y",
        step="add i64 %i, 4",
    ),
    "backwards": loop(
        "%g = add i64 %i, 7; %d = mul i64 %g, %s; %a = mul i64 %i, %s", "%k = xor i64 %a, %d"
    ),
    "in_another_block": loop(
        "%a = mul i64 %i, %s",
        "%j = add i64 %i, 1; %b = mul i64 %j, %s; %h = add i64 %i, 2; %c = mul i64 %h, %s;"
        " %x = xor i64 %a, %b; %k = sub i64 %x, %c",
    ),
    "only_in_another_block": loop("", "%j = add i64 %i, 9; %k = mul i64 %j, %s"),
    "two_factors": loop("%a = mul i64 %i, %s; %b = mul i64 %i, %n", "%k = xor i64 %a, %b"),
    "two_counters": loop("%a = mul i64 %i, %s; %b = mul i64 %number, %s", "%k = xor i64 %a, %b"),
    "a_product_of_a_product": loop("%a = mul i64 %i, %s; %k = mul i64 %a, %n"),
    "invariant_of_the_block_ahead": loop(
        "%j = add i64 %i, %p; %k = mul i64 %j, %q", ahead="%p = xor i64 %n, %s; %q = add i64 %p, 1"
    ),
}


def filled(text: str, n: int, s: int, start: int) -> list[int]:
    """What the function stores, emitted as it is."""
    machine = machine_of(3, None)
    jit = llvm.create_lljit_compiler()
    code = machine.emit_object(parsed(text, machine))
    made = llvm.JITLibraryBuilder().add_object_img(code).export_symbol("f").link(jit, "reduced")
    out = np.zeros(max(n, 1), np.int64)
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, *3 * (ctypes.c_int64,))(made["f"])
    call(out.ctypes.data, n, s, start)
    return out.tolist()


@pytest.mark.parametrize("name", LOOPS)
def test_the_numbers_are_the_same(name):
    before, after = LOOPS[name], reduced(LOOPS[name])
    in_loop = after[after.index("\nloop:") :]
    assert in_loop.count(" = mul ") == (name == "a_product_of_a_product")
    for n, s, start in [(0, 3, 1), (1, 7, -2), (13, -5, 4), (40, 2**61 + 3, 2**62 - 5)]:
        assert filled(after, n, s, start) == filled(before, n, s, start)


def test_a_loop_with_many_addresses_is_left_to_llvm():
    loads = (
        f"%p{i} = getelementptr double, ptr %y{i}, i64 %i\n  %v{i} = load double, ptr %p{i}\n"
        for i in range(6)
    )
    crowded = STRIDED.replace("  %v =", "  ".join(("", *loads, "%v =")))
    assert reduced(crowded) is None
    assert reduced(crowded + UNIT) is None
    assert reduced(crowded.replace("ptr %y5,", "ptr %x,")) not in (None, crowded)


@pytest.mark.parametrize("left_to_llvm", [False, True])
def test_what_is_emitted_is_reduced(monkeypatch, left_to_llvm):
    if left_to_llvm:
        monkeypatch.setattr(llvm_module, "reduced", lambda _: None)
    made = assembly(STRIDED)
    monkeypatch.setattr(llvm_module, "reduced", lambda text: text)
    assert made.count("\timul") < assembly(STRIDED).count("\timul")


def test_nothing_is_left_for_other_modules():
    before = assembly(STRIDED)
    assert assembly(UNIT)
    assert assembly(STRIDED) == before


def looked_up(u, a, w, index, n):
    e = 0.0
    for _ in range(n):
        for i in range(u.shape[0]):
            k = index[i]
            for j in range(n - 1):
                e += u[index[index[i]]] * a[j, i]
                index[i] = (index[i] + j) % u.shape[0]
                a[i, j] *= u[index[k]]
                e += a[i, j] * u[index[i]] * w[index[0] % 3]
    return e


def test_loops_in_loops_that_are_left_to_llvm():
    """(LLVM's pass breaks the form of loops around them: as one of several passes it ends the process.)"""
    u, a, w = (np.random.default_rng(5).uniform(0.2, 0.9, n) for n in (5, (5, 5), 3))
    given, of = np.array([3, 0, 4, 1, 1]), mutad.compile(looked_up, grad=True, opt=3)
    value, slopes = of.value_and_grad(u, a.copy(), w, given.copy(), 3, wrt=("u", "a", "w"))
    plus, minus = (looked_up(u, a.copy(), w * s, given.copy(), 3) for s in (1 + 1e-6, 1 - 1e-6))
    assert value == pytest.approx((plus + minus) / 2)
    assert (slopes[2] * w).sum() == pytest.approx((plus - minus) / 2e-6, rel=1e-6)
