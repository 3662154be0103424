"""LLVM's own errors, forced: we see what it has made, and what we emit is right.

Each program here is wrong where LLVM is left to itself. A test that fails after a new version of llvmlite was
let in says which of the notes in `llvm_module` no longer hold.
"""

from __future__ import annotations

import ctypes
import itertools
import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import llvm_module
from mutad.compiler.codegen.llvm_module import (
    ATTEMPTS,
    MOVMSK,
    after_passes,
    machine_of,
    made_anew,
    optimize_and_emit,
    optimized,
    passes,
    require_known_llvm,
)
from mutad.compiler.codegen.llvm_options import DEFAULTS, set_options
from mutad.runtime.target import LEVELS, Target, missing

AVX2, AVX512 = (Target(name, LEVELS[name]) for name in ("x86-64-v3", "x86-64-v4"))
ZEN5 = Target("znver5", LEVELS["x86-64-v4"])
HERE = [target for target in (AVX2, AVX512) if not missing(target)]
"""Those whose code can run."""
_numbers = itertools.count()
_keep: list[Any] = []


def loaded(code: bytes, name: str) -> Callable[..., None]:
    """A function of the object code that takes arrays, and their length."""
    jit = llvm.create_lljit_compiler()
    builder = llvm.JITLibraryBuilder().add_object_img(code).export_symbol(name)
    tracker = builder.link(jit, f"forced{next(_numbers)}")
    _keep.extend((jit, tracker))

    def call(*arrays: np.ndarray) -> None:
        types = [ctypes.c_void_p] * len(arrays)
        function = ctypes.CFUNCTYPE(None, *types, ctypes.c_int64)(tracker[name])
        function(*(a.ctypes.data for a in arrays), len(arrays[0]))

    return call


# Masked loads that are made anew below a store. ------------------------------------------------------

TAKEN = """
define void @taken(ptr noalias %c, ptr noalias %s, ptr noalias %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %latch ]
  %c.at = getelementptr inbounds double, ptr %c, i64 %i
  %c.i = load double, ptr %c.at, align 8, !alias.scope !5, !noalias !8
  %positive = fcmp ogt double %c.i, 0.0
  br i1 %positive, label %then, label %latch
then:
  %s.at = getelementptr inbounds double, ptr %s, i64 %i
  %s.i = load double, ptr %s.at, align 8, !alias.scope !6, !noalias !9
  store double 0.0, ptr %s.at, align 8, !alias.scope !6, !noalias !9
  br label %latch
latch:
  %bar = phi double [ %s.i, %then ], [ 1.0, %loop ]
  %out.at = getelementptr inbounds double, ptr %out, i64 %i
  store double %bar, ptr %out.at, align 8, !alias.scope !7, !noalias !10
  %next = add nuw nsw i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
!1 = distinct !{!1}
!2 = distinct !{!2, !1}
!3 = distinct !{!3, !1}
!4 = distinct !{!4, !1}
!5 = !{!2}
!6 = !{!3}
!7 = !{!4}
!8 = !{!3, !4}
!9 = !{!2, !4}
!10 = !{!2, !3}
"""
"""`out[i] = s[i] if c[i] > 0 else 1.0`, and `s[i] = 0.0` where it was read."""


@pytest.mark.parametrize("target", [AVX2, AVX512], ids=lambda t: t.cpu)
def test_a_load_that_was_made_anew_is_found_and_the_module_made_without_it(target: Target):
    assert made_anew(after_passes(TAKEN, 3, target, ATTEMPTS[0]))
    module = optimized(TAKEN, 3, target)
    assert not made_anew(module)
    assert "llvm.masked" not in str(module)


@pytest.mark.parametrize("target", HERE, ids=lambda t: t.cpu)
def test_what_is_emitted_reads_before_it_stores(target: Target):
    rng = np.random.default_rng(0)
    c, s, out = rng.normal(size=50), rng.normal(size=50), np.zeros(50)
    want = np.where(c > 0, s, 1.0), np.where(c > 0, 0.0, s)
    loaded(optimize_and_emit(TAKEN, 3, target), "taken")(c, s, out)
    np.testing.assert_array_equal(out, want[0])
    np.testing.assert_array_equal(s, want[1])


def test_each_attempt_makes_less_until_there_is_no_mask(monkeypatch: pytest.MonkeyPatch):
    """If LLVM kept vectorizing branches the last attempt would still be right."""
    monkeypatch.setattr(llvm_module, "ATTEMPTS", (ATTEMPTS[0], ATTEMPTS[0], ATTEMPTS[2]))
    assert "llvm.masked" not in str(optimized(TAKEN, 3, AVX2))
    monkeypatch.setattr(llvm_module, "ATTEMPTS", (ATTEMPTS[0],))
    with pytest.raises(AssertionError):
        optimized(TAKEN, 3, AVX2)


def test_other_conditional_loads_stay_vectors():
    """`s[i] += s[i]` under the condition: nobody chooses between the load and another value."""
    doubled = "%twice = fadd double %s.i, %s.i\n  store double %twice, ptr %s.at"
    text = TAKEN.replace("store double 0.0, ptr %s.at", doubled)
    text = text.replace("phi double [ %s.i, %then ]", "phi double [ 2.0, %then ]")
    assert "llvm.masked.load" in str(optimized(text, 3, AVX2))


def test_loops_of_few_trips_are_not_vectorized_under_masks(monkeypatch: pytest.MonkeyPatch):
    """`b[:2, :2] = a` where `a` has one column: its shadow has the sums of rows of two."""
    text = few_trips(monkeypatch)
    assert made_anew(left_to_itself(text))
    assert "llvm.masked" not in str(after_passes(text, 3, AVX512, ATTEMPTS[0]))


def few_trips(monkeypatch: pytest.MonkeyPatch) -> str:
    def block(b: Any, a: Any) -> Any:
        b[:2, :2] = a
        return (b * b).sum()

    monkeypatch.setenv("MUTAD_TARGET_CPU", AVX512.cpu)
    b, a = np.ones((4, 5)), np.ones((2, 1))
    compiled = mutad.compile(block, grad=True)
    return compiled.inspect("llvm", b, a, wrt=("b", "a"))


def taken(c, s, out):
    for i in range(len(c)):
        if c[i] > 0:
            g = s[i]
            s[i] = 0.0
        else:
            g = 1.0
        out[i] = g


def taken_and_summed(c, s):
    t = 0.0
    for i in range(len(c)):
        if c[i] > 0:
            g = s[i]
            s[i] = 2.0
        else:
            g = 1.0
        t += g * c[i]
    return t


@pytest.mark.parametrize("target", HERE, ids=lambda t: t.cpu)
def test_python_programs_that_llvm_makes_wrong(target: Target, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("MUTAD_TARGET_CPU", target.cpu)
    rng = np.random.default_rng(1)
    c, s = rng.normal(size=40), rng.normal(size=40)
    got, want = [(c.copy(), s.copy(), np.zeros(40)) for _ in range(2)]
    mutad.compile(taken)(*got)
    taken(*want)
    np.testing.assert_array_equal(got, want)
    compiled = mutad.compile(taken_and_summed, grad=True)
    c_bar, s_bar = compiled.grad(c.copy(), s.copy(), wrt=("c", "s"))
    np.testing.assert_allclose(c_bar, np.where(c > 0, s, 1.0))
    np.testing.assert_allclose(s_bar, np.where(c > 0, c, 0.0))


# Masks that are compressed away though they are still read. -------------------------------------------

MAGNITUDES = """
define void @magnitudes(ptr noalias %a, ptr noalias %out, i64 %n) {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %a.at = getelementptr i64, ptr %a, i64 %i
  %v = load i64, ptr %a.at
  %bits = and i64 %v, 9223372036854775807
  %wide = zext i64 %bits to i128
  %zero = icmp eq i64 %v, 0
  %negative = icmp slt i64 %v, 0
  %minus = sub i128 0, %wide
  %signed = select i1 %negative, i128 %minus, i128 %wide
  %value = select i1 %zero, i128 0, i128 %signed
  %out.at = getelementptr i128, ptr %out, i64 %i
  store i128 %value, ptr %out.at
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def test_a_compressed_mask_is_found_and_the_code_emitted_without_it():
    module = optimized(MAGNITUDES, 3, ZEN5)
    assert MOVMSK.search(machine_of(3, ZEN5).emit_object(module))
    assert not MOVMSK.search(optimize_and_emit(MAGNITUDES, 3, ZEN5))
    assert "movmsk" in machine_of(3, ZEN5).emit_assembly(module)
    assert "movmsk" not in llvm_module.assembly(MAGNITUDES, 3, ZEN5)


def test_what_is_emitted_reads_the_mask():
    a = np.random.default_rng(2).integers(-9, 9, 64)
    out = np.zeros(128, np.int64)
    loaded(optimize_and_emit(MAGNITUDES), "magnitudes")(a, out)
    bits = a & np.int64(2**63 - 1)
    np.testing.assert_array_equal(out[::2], np.where(a < 0, -bits, bits))


MOVES = """
vmovmskps %xmm0, %eax
vmovmskps %ymm9, %r9d
vmovmskpd %xmm15, %ecx
vmovmskpd %ymm1, %r15d
vpmovmskb %xmm8, %edx
vpmovmskb %ymm7, %r8d
"""


@pytest.mark.parametrize("instruction", MOVES.split("\n")[1:-1])
def test_every_register_of_a_compressed_mask_is_known(instruction: str):
    llvm.initialize_native_asmparser()
    machine = machine_of(3, AVX2)
    written = f'call void asm sideeffect "{instruction}", ""()'
    module = llvm.parse_assembly(f"define void @f() {{\n  {written}\n  ret void\n}}")
    module.triple = machine.triple
    assert MOVMSK.search(machine.emit_object(module))


# Versions. --------------------------------------------------------------------------------------------


def test_llvm_is_one_that_these_tests_know():
    require_known_llvm(tuple(llvm.llvm_version_info))
    for unknown in ((20, 1, 8), (21, 1, 0), (23, 1, 0)):
        with pytest.raises(
            ImportError, match=re.escape(f"pip install 'llvmlite{llvm_module.LLVMLITE}'")
        ):
            require_known_llvm(unknown)


def test_another_version_is_no_fault_of_the_program(monkeypatch: pytest.MonkeyPatch):
    def one(x: Any) -> Any:
        return x + 1.0

    monkeypatch.setattr(llvm_module, "LLVM_VERSIONS", ((21, 1),))
    llvm_module.target_machine.cache_clear()
    compiled = mutad.compile(one, cache=False)
    with pytest.raises(ImportError, match="which mutad does not know"):
        compiled(1.0)
    with pytest.raises(ImportError, match="which mutad does not know"):
        compiled.inspect("assembly", 1.0)


def test_the_releases_that_are_installed_are_those(root: Path):
    dependencies = tomllib.loads((root / "pyproject.toml").read_text())["project"]["dependencies"]
    assert f"llvmlite{llvm_module.LLVMLITE}" in dependencies


def test_options_are_as_they_were():
    """Another user of LLVM in this process has its own pipeline."""
    before = str(left_to_itself(TAKEN))
    optimized(TAKEN, 3, AVX512)
    assert str(left_to_itself(TAKEN)) == before
    set_options(DEFAULTS)
    assert str(left_to_itself(TAKEN)) == before


def left_to_itself(text: str) -> llvm.ModuleRef:
    """The module after LLVM's pipeline with no option of ours."""
    machine = machine_of(3, AVX512)
    module = llvm.parse_assembly(text)
    module.triple, module.data_layout = machine.triple, str(machine.target_data)
    with passes(machine, 3, ATTEMPTS[0]) as (manager, builder):
        manager.run(module, builder)
    return module


def clipped(x, y):
    wide = x.astype(np.float64)
    y[0] = np.where(x < 0, np.float64(0), x)
    y[1] = np.where(x > 0, np.float64(0), x)
    y[2] = np.where(-0.0 > x, np.float64(0), wide)
    y[3] = np.where(x >= 0, wide, np.float64(0))
    for i in range(x.size):
        y[4, i] = 0.0 if x[i] < 0 else wide[i]


@pytest.mark.parametrize("opt", [0, 1, 3])
def test_a_negative_zero_that_is_chosen_keeps_its_sign(opt: int) -> None:
    """LLVM 22 takes a choice of 0.0 or a widened float32 for a maximum that may lose zeros' signs."""
    x = np.array([-0.0, 0.0, 1.5, -1.5, np.nan, np.inf, -np.inf, -0.0] * 3, np.float32)
    want, got = np.ones((5, x.size)), np.ones((5, x.size))
    clipped(x, want)
    mutad.compile(clipped, opt=opt, cache=False)(x, got)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
