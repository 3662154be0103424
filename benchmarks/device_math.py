"""How exact functions of devices are, in units in the last place: NVIDIA's libdevice, run here on the CPU.

The functions are LLVM bitcode. What only a device has is replaced: rounded additions, products and `fma`, of
which every CPU has the same, halves of a double, and first guesses (`rcp.approx`, good for 20 bits).
The truth is `numpy.longdouble`, which has 64 bits of mantissa on x86-64.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from functools import cache
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from rich.table import Table

from mutad.compiler.codegen import ptx

from .timing import console

POINTS = 4000
Ranges = tuple[tuple[float, float], ...]

FUNCTIONS: dict[str, tuple[Callable[..., Any], Ranges]] = {
    "exp": (np.exp, ((-700, 700),)),
    "exp2": (np.exp2, ((-1000, 1000),)),
    "expm1": (np.expm1, ((-40, 40),)),
    "log": (np.log, ((1e-9, 10),)),
    "log2": (np.log2, ((1e-9, 10),)),
    "log10": (np.log10, ((1e-9, 10),)),
    "log1p": (np.log1p, ((-0.99, 10),)),
    "sin": (np.sin, ((-100, 100),)),
    "cos": (np.cos, ((-100, 100),)),
    "tan": (np.tan, ((-100, 100),)),
    "asin": (np.arcsin, ((-1, 1),)),
    "acos": (np.arccos, ((-1, 1),)),
    "atan": (np.arctan, ((-50, 50),)),
    "sinh": (np.sinh, ((-30, 30),)),
    "cosh": (np.cosh, ((-30, 30),)),
    "tanh": (np.tanh, ((-20, 20),)),
    "asinh": (np.arcsinh, ((-50, 50),)),
    "acosh": (np.arccosh, ((1, 50),)),
    "atanh": (np.arctanh, ((-1, 1),)),
    "atan2": (np.arctan2, ((-9, 9), (-9, 9))),
    "pow": (np.power, ((1e-3, 30), (-40, 40))),
    "cbrt": (np.cbrt, ((-50, 50),)),
}
"""Those of which NumPy knows more digits, and where they are looked at."""

UNARY = {
    "fabs.f64": "fabs.f64",
    "floor.d": "floor.f64",
    "trunc.d": "trunc.f64",
    "round.d": "roundeven.f64",
    "fabs.f32": "fabs.f32",
    "round.f": "roundeven.f32",
    "ex2.approx.f32": "exp2.f32",
    "lg2.approx.f": "log2.f32",
}
"""Intrinsics of devices, and those of all machines that are the same, or better."""

INSTEAD = """
declare double @llvm.fma.f64(double, double, double)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i32 @llvm.fptosi.sat.i32.f32(float)
define internal double @nv.add.rn.d(double %a, double %b) {
  %r = fadd double %a, %b
  ret double %r
}
define internal double @nv.mul.rn.d(double %a, double %b) {
  %r = fmul double %a, %b
  ret double %r
}
define internal double @nv.fma.rn.d(double %a, double %b, double %c) {
  %r = call double @llvm.fma.f64(double %a, double %b, double %c)
  ret double %r
}
define internal double @nv.fmax.d(double %a, double %b) {
  %more = fcmp ogt double %a, %b
  %r = select i1 %more, double %a, double %b
  ret double %r
}
define internal double @nv.fmin.d(double %a, double %b) {
  %less = fcmp olt double %a, %b
  %r = select i1 %less, double %a, double %b
  ret double %r
}
define internal i32 @nv.d2i.rn(double %a) {
  %w = call double @nv.round.d(double %a)
  %r = call i32 @llvm.fptosi.sat.i32.f64(double %w)
  ret i32 %r
}
define internal i32 @nv.f2i.rn(float %a) {
  %w = call float @nv.round.f(float %a)
  %r = call i32 @llvm.fptosi.sat.i32.f32(float %w)
  ret i32 %r
}
define internal i32 @nv.d2i.hi(double %a) {
  %b = bitcast double %a to i64
  %h = lshr i64 %b, 32
  %r = trunc i64 %h to i32
  ret i32 %r
}
define internal i32 @nv.d2i.lo(double %a) {
  %b = bitcast double %a to i64
  %r = trunc i64 %b to i32
  ret i32 %r
}
define internal double @nv.lohi.i2d(i32 %l, i32 %h) {
  %a = zext i32 %l to i64
  %b = zext i32 %h to i64
  %c = shl i64 %b, 32
  %d = or i64 %c, %a
  %r = bitcast i64 %d to double
  ret double %r
}
define internal double @nv.rcp.approx.d(double %a) {
  %q = fdiv double 1.0, %a
  %b = bitcast double %q to i64
  %c = and i64 %b, -4294967296
  %r = bitcast i64 %c to double
  ret double %r
}
declare double @llvm.sqrt.f64(double)
define internal double @nv.rsqrt(double %a) {
  %s = call double @llvm.sqrt.f64(double %a)
  %r = call double @nv.rcp.approx.d(double %s)
  ret double %r
}
define internal double @nv.selp(double %a, double %b, double %c, double %d) {
  %same = fcmp ueq double %a, %b
  %r = select i1 %same, double %c, double %d
  ret double %r
}
define internal i32 @__nvvm_reflect(ptr %name) {
  %at = getelementptr i8, ptr %name, i64 7
  %letter = load i8, ptr %at
  %arch = icmp eq i8 %letter, 65
  %r = select i1 %arch, i32 800, i32 0
  ret i32 %r
}
"""


ASSEMBLER = (
    (r'call double asm "rsqrt[^"]*", "[^"]*"', "call double @nv.rsqrt"),
    (r'call double asm "[^"]*setp\.equ\.f64[^"]*", "[^"]*"', "call double @nv.selp"),
    (r"call \{ i64, i64 \} asm .*", "insertvalue { i64, i64 } zeroinitializer, i64 0, 0"),
)
"""What is written in NVIDIA's assembler; the last is for angles above 100,000, which are not looked at."""


def unary(name: str, same: str) -> list[str]:
    """The definition of an intrinsic of devices by another one."""
    type_ = "double" if same.endswith("f64") else "float"
    return [
        f"declare {type_} @llvm.{same}({type_})",
        f"define internal {type_} @nv.{name}({type_} %a) {{",
        f"  %r = call {type_} @llvm.{same}({type_} %a)",
        f"  ret {type_} %r",
        "}",
    ]


@cache
def library() -> Any:
    """The functions as machine code of this CPU."""
    names = frozenset(f"__nv_{name}" for name in FUNCTIONS)
    text = str(llvm.parse_bitcode(ptx.slice_of(names, "sm_80")))
    text = re.sub(r"^target (triple|datalayout) = .*$", "", text, flags=re.M)
    text = re.sub(r"^declare .*@(llvm\.nvvm\.|__nvvm_reflect).*$", "", text, flags=re.M)
    text = text.replace(".ftz", "").replace("@llvm.nvvm.", "@nv.").replace("addrspace(1) ", "")
    for written, instead in ASSEMBLER:
        text = re.sub(written, instead, text)
    declared = {line for line in text.splitlines() if line.startswith("declare")}
    given = [*INSTEAD.splitlines(), *(x for pair in UNARY.items() for x in unary(*pair))]
    own = [line for line in given if line not in declared]
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text + "\n".join(own), llvm.create_context())
    machine = llvm.Target.from_default_triple().create_target_machine(opt=2)
    with llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(2)) as builder:
        builder.getModulePassManager().run(module, builder)
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return engine


def values(name: str, arguments: list[np.ndarray]) -> np.ndarray:
    """What a function of devices makes of each point."""
    kinds = [ctypes.c_double] * (1 + len(arguments))
    function = ctypes.CFUNCTYPE(*kinds)(library().get_function_address(f"__nv_{name}"))
    return np.array([function(*point) for point in zip(*arguments, strict=True)])


def points(name: str) -> list[np.ndarray]:
    """Points in the function's range, drawn by chance."""
    order = np.random.default_rng(len(name))
    return [order.uniform(low, high, POINTS) for low, high in FUNCTIONS[name][1]]


def error(name: str) -> float:
    """The largest error that is found, in units in the last place."""
    arguments = points(name)
    truth = FUNCTIONS[name][0](*(a.astype(np.longdouble) for a in arguments))
    off = np.abs(values(name, arguments) - truth) / np.spacing(np.abs(truth.astype(float)))
    return float(off[np.isfinite(off)].max())


def main() -> None:
    table = Table(title="functions of devices, run on the CPU: float64, largest error found")
    for column in ("function", "range", "ulp"):
        table.add_column(column)
    for name, (_, ranges) in FUNCTIONS.items():
        shown = ", ".join(f"{low:g} to {high:g}" for low, high in ranges)
        table.add_row(name, shown, f"{error(name):.2f}")
    console.print(table)
