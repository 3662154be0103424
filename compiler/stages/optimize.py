"""The adjoint is ordinary IR again."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.passes import ModulePass

from ...dialects import activation
from ..analysis.effects import is_private
from ..compilation import Compilation
from ..derivative.drop_guards import DropGuards
from ..pass_order import FOR_KERNELS, OPTIMIZE, with_options
from ..request import JOINT, RETRIED, WITHIN_BUDGETS
from ..rules.calls import listed
from ..sizes.step_sizes import (
    measure_long,
    measure_saved,
    measure_short,
    measure_steps,
    refuse_large,
)
from ..transforms.rotate_sums import RotateSums
from .adjoint import expand_derivatives

X86 = ("x86_64", "AMD64")


def optimize(c: Compilation) -> None:
    r = c.request
    if r.mode == "primal":
        expand_derivatives(c)
    if r.options.fastmath:
        c.run([DropGuards(unchecked=True)])
    elif r.mode in RETRIED and not (r.options.guards or r.options.sanitize or r.options.launched):
        c.run([DropGuards(fused=has_fused(c))])
    c.run(with_registers(c, with_options(c, FOR_KERNELS if r.options.device else OPTIMIZE)))
    if r.options.memory:
        if r.mode in (*WITHIN_BUDGETS, "reverse-hvp"):
            measure_budget(c)
        elif r.mode == "vjp":
            refuse_large(c.module, c.built.assumed, r.options.memory)
    elif r.mode in JOINT:
        measure_tapes(c)


def measure_tapes(c: Compilation) -> None:
    """Write the sizes of tapes, by which a call finds out whether they are long."""
    first, *others = functions_of(c)
    if others:
        fill_alike(first, others[0])
        measure_long(first, others[0], c.built.assumed)
    elif activation.LONGEST in first.attributes:
        measure_short(first, c.built.assumed)


def fill_alike(first: func.FuncOp, second: func.FuncOp) -> None:
    """Either may be called: shadows come as zeros that one of the two does not fill."""
    if "filled" in second.attributes:
        both = sorted({*listed(first, "filled")} & {*listed(second, "filled")})
        for function in (first, second):
            function.attributes["filled"] = DenseArrayBase.from_list(i64, both)


def x86_features(c: Compilation) -> frozenset[str] | None:
    """What the CPU has, if it is an x86."""
    from ..codegen.llvm_module import host

    cpu = c.request.options.target or host()
    x86 = cpu.triple.startswith("x86_64") if cpu.triple else platform.machine() in X86
    return cpu.features if x86 else None


def has_fused(c: Compilation) -> bool:
    """Whether the CPU has a fused multiply-add: x86 with AVX2, and all others that we know."""
    features = x86_features(c)
    return not c.request.options.device and (features is None or "fma" in features)


def with_registers(c: Compilation, passes: Sequence[ModulePass]) -> list[ModulePass]:
    """The passes, for as many vector registers as the CPU has: 16 on an x86 without AVX-512, else 32."""
    features = x86_features(c)
    few = features is not None and "avx512vl" not in features
    return [replace(p, most=1) if few and isinstance(p, RotateSums) else p for p in passes]


def functions_of(c: Compilation) -> list[func.FuncOp]:
    return [op for op in c.module.ops if isinstance(op, func.FuncOp) and not is_private(op)]


def measure_budget(c: Compilation) -> None:
    """Write the sizes of what is saved, by which a gradient keeps to its budget."""
    functions = functions_of(c)
    spill = c.request.options.spill
    memory, assumed = c.request.options.memory or 0, c.built.assumed
    if c.request.mode == "reverse-hvp":  # its adjoint would ask for steps in another order
        keep = 'use `mode="forward-over-reverse"`, which runs steps again, or leave out `memory=`'
        measure_saved(functions[0], assumed, memory, alone=True, way_out=keep)
        return
    fill_alike(functions[0], functions[-1])
    measure_steps(functions[-1], functions[0], assumed, spill)
    measure_saved(functions[0], assumed, memory, alone=len(functions) < 2)
