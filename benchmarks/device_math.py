"""How exact functions of devices are, in units in the last place: NVIDIA's libdevice, run here on the CPU.

The functions are LLVM bitcode. What only a device has is replaced: rounded additions, products and `fma`, of
which every CPU has the same, halves of a double, and first guesses (`rcp.approx`, good for 20 bits). What
devices only approximate in float32 (`ex2.approx` but at whole numbers, `lg2.approx`, `rcp.approx`,
`div.approx`, `sqrt.approx`) is made one unit in the last place too large, about what they may be off.
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


def erf(x: Any) -> Any:
    """The error function, by a series whose terms are all positive."""
    term = total = x
    for n in range(1, 120):
        term = term * (2 * x * x / (2 * n + 1))
        total = total + term
    return 2 / np.sqrt(np.arctan(np.longdouble(1)) * 4) * np.exp(-x * x) * total


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
    "erf": (erf, ((-5, 5),)),
}
"""Those of which more digits are known, and where they are looked at."""

NARROWER = {"exp": (-87, 88), "exp2": (-125, 127), "sinh": (-30, 30), "cosh": (-30, 30)}
"""Where float32 does not reach as far."""

SINGLE = {f"{name}f": name for name in FUNCTIONS}
"""Functions of float32, by their names in libdevice."""

UNARY = {
    "fabs.f64": "fabs.f64",
    "floor.d": "floor.f64",
    "trunc.d": "trunc.f64",
    "round.d": "roundeven.f64",
    "fabs.f32": "fabs.f32",
    "round.f": "roundeven.f32",
    "floor.f": "floor.f32",
    "trunc.f": "trunc.f32",
    "sqrt.rn.f": "sqrt.f32",
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
declare float @llvm.fma.f32(float, float, float)
declare float @llvm.exp2.f32(float)
declare float @llvm.log2.f32(float)
define internal float @nv.add.rn.f(float %a, float %b) {
  %r = fadd float %a, %b
  ret float %r
}
define internal float @nv.mul.rn.f(float %a, float %b) {
  %r = fmul float %a, %b
  ret float %r
}
define internal float @nv.fma.rn.f(float %a, float %b, float %c) {
  %r = call float @llvm.fma.f32(float %a, float %b, float %c)
  ret float %r
}
define internal float @nv.fmax.f(float %a, float %b) {
  %more = fcmp ogt float %a, %b
  %r = select i1 %more, float %a, float %b
  ret float %r
}
define internal float @nv.fmin.f(float %a, float %b) {
  %less = fcmp olt float %a, %b
  %r = select i1 %less, float %a, float %b
  ret float %r
}
define internal float @nv.saturate.f(float %a) {
  %low = call float @nv.fmax.f(float %a, float 0.0)
  %r = call float @nv.fmin.f(float %low, float 1.0)
  ret float %r
}
define internal float @nv.towards(double %a, i1 %too.far) {
  %n = fptrunc double %a to float
  %b = bitcast float %n to i32
  %one = zext i1 %too.far to i32
  %c = sub i32 %b, %one
  %r = bitcast i32 %c to float
  ret float %r
}
define internal float @nv.zero(double %a) {
  %n = fptrunc double %a to float
  %w = fpext float %n to double
  %x = call double @nv.fabs.f64(double %w)
  %y = call double @nv.fabs.f64(double %a)
  %far = fcmp ogt double %x, %y
  %r = call float @nv.towards(double %a, i1 %far)
  ret float %r
}
define internal float @nv.add.rz.f(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %s = fadd double %x, %y
  %r = call float @nv.zero(double %s)
  ret float %r
}
define internal float @nv.mul.rz.f(float %a, float %b) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %s = fmul double %x, %y
  %r = call float @nv.zero(double %s)
  ret float %r
}
define internal float @nv.fma.rm.f(float %a, float %b, float %c) {
  %x = fpext float %a to double
  %y = fpext float %b to double
  %z = fpext float %c to double
  %p = fmul double %x, %y
  %s = fadd double %p, %z
  %n = fptrunc double %s to float
  %w = fpext float %n to double
  %far = fcmp ogt double %w, %s
  %positive = fcmp ogt double %s, 0.0
  %down = and i1 %far, %positive
  %r = call float @nv.towards(double %s, i1 %down)
  ret float %r
}
define internal float @nv.off(float %a) {
  %r = fmul float %a, 0x3FF0000020000000
  ret float %r
}
define internal float @nv.ex2.approx.f32(float %a) {
  %x = call float @llvm.exp2.f32(float %a)
  %off = call float @nv.off(float %x)
  %w = call float @nv.trunc.f(float %a)
  %whole = fcmp oeq float %w, %a
  %r = select i1 %whole, float %x, float %off
  ret float %r
}
define internal float @nv.lg2.approx.f(float %a) {
  %x = call float @llvm.log2.f32(float %a)
  %r = call float @nv.off(float %x)
  ret float %r
}
define internal float @nv.rcp.approx.f(float %a) {
  %x = fdiv float 1.0, %a
  %r = call float @nv.off(float %x)
  ret float %r
}
define internal float @nv.div.approx.f(float %a, float %b) {
  %x = fdiv float %a, %b
  %r = call float @nv.off(float %x)
  ret float %r
}
define internal float @nv.sqrt.approx.f(float %a) {
  %x = call float @nv.sqrt.rn.f(float %a)
  %r = call float @nv.off(float %x)
  ret float %r
}
define internal float @nv.rsqrt.approx.f(float %a) {
  %s = call float @nv.sqrt.rn.f(float %a)
  %r = call float @nv.rcp.approx.f(float %s)
  ret float %r
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
    (r'call float asm "rcp\.approx[^"]*", "[^"]*"', "call float @nv.rcp.approx.f"),
    (r"call \{ i32, i32 \} asm .*", "insertvalue { i32, i32 } zeroinitializer, i32 0, 0"),
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
    names = frozenset(f"__nv_{name}" for name in (*FUNCTIONS, *SINGLE))
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
    kinds: list[Any] = [ctypes.c_float if name in SINGLE else ctypes.c_double]
    function = ctypes.CFUNCTYPE(*kinds * (1 + len(arguments)))(
        library().get_function_address(f"__nv_{name}")
    )
    found = [function(*map(float, point)) for point in zip(*arguments, strict=True)]
    return np.array(found, arguments[0].dtype)


def points(name: str) -> list[np.ndarray]:
    """Points in the function's range, drawn by chance."""
    order = np.random.default_rng(len(name))
    if name not in SINGLE:
        return [order.uniform(low, high, POINTS) for low, high in FUNCTIONS[name][1]]
    own = SINGLE[name]
    ranges = (NARROWER[own],) if own in NARROWER else FUNCTIONS[own][1]
    return [order.uniform(low, high, POINTS).astype(np.float32) for low, high in ranges]


def error(name: str) -> float:
    """The largest error that is found, in units in the last place."""
    arguments = points(name)
    function = FUNCTIONS[SINGLE.get(name, name)][0]
    with np.errstate(over="ignore", under="ignore"):
        truth = function(*(a.astype(np.longdouble) for a in arguments))
        nearest = np.abs(truth.astype(arguments[0].dtype))
    off = np.abs(values(name, arguments) - truth) / np.spacing(nearest)
    normal = np.isfinite(off) & (nearest >= np.finfo(nearest.dtype).tiny)
    return float(off[normal].max())


def main() -> None:
    table = Table(title="functions of devices, run on the CPU: largest error found")
    for column in ("function", "range", "ulp", "float32"):
        table.add_column(column)
    for name, (_, ranges) in FUNCTIONS.items():
        shown = ", ".join(f"{low:g} to {high:g}" for low, high in ranges)
        table.add_row(name, shown, f"{error(name):.2f}", f"{error(name + 'f'):.2f}")
    console.print(table)
