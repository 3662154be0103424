"""A compiler whose kernels are written by hand: what the runtime is tested with alone.

A `Handmade` has the LLVM text of a kernel for each mode, the description of its results, and counts
what it compiles.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm

from mutad.compiler.codegen.entries.entry import (
    GradientSignature,
    convention,
    entries,
    entry_symbols,
    exported,
    exports,
    signature_of,
)
from mutad.compiler.pipeline import compile_support
from mutad.runtime.dispatch import Compiler
from mutad.runtime.function import CompiledFunction
from mutad.runtime.function_factory import compiled
from mutad.runtime.options import check_options

Kernel = Callable[[tuple[str, ...], tuple[int, ...]], str]


@dataclass
class Handmade(Compiler):
    results: dict[str, Any]
    primal: str | Kernel
    gradient: str | Kernel = ""
    split: str | Kernel = ""
    """For `vjp`: `@kernel`, which fills a record of `record` words, `@backward` and `@mutad_drop`."""
    active: GradientSignature = field(default_factory=lambda: GradientSignature((0,), (0,), ()))
    """For `gradient`."""
    written: tuple[int, ...] = ()
    record: int = 0
    sites: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    requests: list[tuple[str, tuple[str, ...], Any, tuple[int, ...]]] = field(
        default_factory=list[Any]
    )

    def compile(
        self,
        function: Any,
        arguments: Any,
        overlaps: Any,
        mode: str,
        wrt: Any,
        options: Any,
        captured: Any,
        wanted: Any = None,
        missing: Any = None,
    ) -> tuple[bytes, dict[str, Any]]:
        self.requests.append((mode, arguments, overlaps, wrt))
        called = convention(
            arguments, overlaps, mode, wrt, self.results, self.written, signature_of(function),
            self.active,
        )  # fmt: skip
        texts = {"primal": self.primal, "gradient": self.gradient, "vjp": self.split}
        kernel = {**texts, "pullback": self.gradient}[mode]
        if not isinstance(kernel, str):
            kernel = kernel(arguments, wrt)
        code = object_code("\n".join([kernel, exported(mode)]))
        metadata = {
            "sites": self.sites, "results": self.results, "written": list(self.written),
            "sources": [], "constants": [], "assumed": [], "symbols": {}, "shared": [],
            "convention": called, "entries": entry_symbols(called), "code": exports(mode),
            "gradient": self.active.as_metadata(), "record": self.record, "retries": False,
        }  # fmt: skip
        return code, metadata

    def entries(self, convention: str, opt: int) -> tuple[bytes, dict[str, Any]]:
        made = entries(convention)
        metadata = {"symbols": made.symbols, "entries": entry_symbols(convention)}
        return object_code(made.module()), metadata

    def support(self, opt: int) -> tuple[bytes, dict[str, Any]]:
        artifact = compile_support(opt, None)
        return artifact.object_code, artifact.metadata

    def stage(self, *args: Any) -> str:
        return f"stage {args[0]} of {args[1].__name__} for {', '.join(args[2])}"

    def page(self, *args: Any) -> str:
        return f"page of {args[0].__name__} for {', '.join(args[1])}"

    def check_differentiable(self, *args: Any) -> None:
        pass

    def explain(self, *args: Any) -> str:
        return "plan"

    def of(self, function: Any, *, grad: bool = True, **options: Any) -> CompiledFunction:
        """`function`, compiled by this compiler and not cached."""
        return compiled(function, check_options({"cache": False, **options}), self, grad)


def object_code(text: str) -> bytes:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    module = llvm.parse_assembly(text)
    module.verify()
    machine = llvm.Target.from_default_triple().create_target_machine(opt=3, reloc="pic")
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(3))
    passes = builder.getModulePassManager()
    passes.run(module, builder)
    return machine.emit_object(module)


SCALAR = {"kind": "scalar", "type": "py_float"}

SUM = """
define internal i32 @kernel(ptr %ctx, ptr %x, i64 %n, i64 %s, ptr %results) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %t = phi double [ 0.0, %entry ], [ %sum, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %k = mul i64 %i, %s
  %at = getelementptr double, ptr %x, i64 %k
  %v = load double, ptr %at
  %square = fmul double %v, %v
  %sum = fadd double %t, %square
  %next = add i64 %i, 1
  br label %head
end:
  store double %t, ptr %results
  ret i32 0
}
"""
"""The sum of squares of a vector."""

SUM_GRADIENT = """
define internal i32 @kernel(
    ptr %ctx, ptr %x, i64 %n, i64 %s, ptr %dx, i64 %dn, i64 %ds, double %bar, ptr %results
) {
entry:
  br label %head
head:
  %i = phi i64 [ 0, %entry ], [ %next, %body ]
  %t = phi double [ 0.0, %entry ], [ %sum, %body ]
  %more = icmp slt i64 %i, %n
  br i1 %more, label %body, label %end
body:
  %k = mul i64 %i, %s
  %at = getelementptr double, ptr %x, i64 %k
  %v = load double, ptr %at
  %square = fmul double %v, %v
  %sum = fadd double %t, %square
  %dk = mul i64 %i, %ds
  %dat = getelementptr double, ptr %dx, i64 %dk
  %old = load double, ptr %dat
  %twice = fmul double %v, 2.0
  %scaled = fmul double %twice, %bar
  %new = fadd double %old, %scaled
  store double %new, ptr %dat
  %next = add i64 %i, 1
  br label %head
end:
  store double %t, ptr %results
  ret i32 0
}
"""

SUM_SPLIT = """
define internal i32 @kernel(ptr %ctx, ptr %x, i64 %n, i64 %s, ptr %results) {
  %vector.at = getelementptr i64, ptr %results, i64 1
  store <2 x double> <double 2.0, double 4.0>, ptr %vector.at, align 8
  store double 5.0, ptr %results
  ret i32 0
}
define internal i32 @backward(
    ptr %ctx, ptr %record, ptr %dx, i64 %dn, i64 %ds, double %bar, ptr %results
) {
  %vector.at = getelementptr i64, ptr %record, i64 1
  %vector = load <2 x double>, ptr %vector.at, align 8
  store <2 x double> %vector, ptr %dx, align 8
  ret i32 0
}
define internal void @mutad_drop(ptr %ctx, ptr %arena) {
  ret void
}
"""
"""The sum of squares of the vector (1, 2), and twice the vector."""
