"""LLVM: from text to optimized machine code for this CPU.

Why llvmlite's new pass manager with the O3 pipeline and the target machine at hand: loop and SLP
vectorization know the CPU, and the libm variants of `vector_math` are seen. The code is position
independent with the small code model, which every JIT linker loads anywhere: calls go through stubs,
data through the global offset table.
"""

from __future__ import annotations

import platform
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache

import llvmlite.binding as llvm


@cache
def target_machine(opt: int = 3) -> llvm.TargetMachine:
    """The machine we run on.

    Up to the first level it translates instruction by instruction, which takes a fourth of the time.
    """
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=opt if opt >= 2 else 0,
        reloc="pic",
        codemodel="small",
    )


@cache
def host_features() -> frozenset[str]:
    """What the CPU has, by LLVM's names."""
    return frozenset(name for name, has in llvm.get_host_cpu_features().items() if has)


def optimized(text: str, opt: int = 3) -> llvm.ModuleRef:
    """The module after LLVM's pipeline for `opt` (0 to 3).

    It has a context of its own: the types, constants and metadata that LLVM interns are gone with the module.
    """
    machine = target_machine(opt)
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()  # LLVM aborts the process where it meets IR that is not well formed.
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    with passes(machine, opt) as (manager, builder), sums_in_order_vectorized():
        manager.run(module, builder)
    return module


@contextmanager
def passes(
    machine: llvm.TargetMachine, opt: int
) -> Generator[tuple[llvm.ModulePassManager, llvm.PassBuilder]]:
    """LLVM's default pipeline, and what runs it.

    A pass manager keeps the work lists of its passes, a hundred KiB and more, and llvmlite frees none: its
    class inherits `_dispose` of the wrong base first.
    """
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt)
    tuning.loop_vectorization = tuning.slp_vectorization = tuning.loop_interleaving = opt >= 2
    tuning.loop_unrolling = opt >= 2
    with llvm.create_pass_builder(machine, tuning) as builder:
        manager = builder.getModulePassManager()
        try:
            yield manager, builder
        finally:
            llvm.NewPassManager._dispose(manager)  # pyright: ignore[reportPrivateUsage]
            manager.detach()


ORDERED = "-force-ordered-reductions"
"""LLVM's option: the terms of a sum that must stay in order are computed as vectors, and added one by one."""

HAVE_ORDERED = range(16, 23)
"""The LLVM versions that are known to have it. (Where an option does not exist LLVM ends the process.)"""


def known_ordered() -> bool:
    """Whether the option is there, and does something."""
    on_x86 = platform.machine() in ("x86_64", "AMD64")
    return on_x86 and llvm.llvm_version_info[0] in HAVE_ORDERED


@contextmanager
def sums_in_order_vectorized() -> Generator[None]:
    """What follows is optimized with that option; LLVM itself uses it on other CPUs than these.

    `total += math.sqrt(v)` in a loop: Python's order of the additions stays, the roots are had four at a
    time. Options are LLVM's, not ours alone, so it is as it was afterwards.
    """
    if not known_ordered():
        yield
        return
    llvm.set_option("mutad", f"{ORDERED}=true")
    try:
        yield
    finally:
        llvm.set_option("mutad", f"{ORDERED}=false")


def optimize_and_emit(text: str, opt: int = 3) -> bytes:
    """Object code."""
    return target_machine(opt).emit_object(optimized(text, opt))


def optimized_ir(text: str, opt: int = 3) -> str:
    """LLVM IR after optimization, to read."""
    return str(optimized(text, opt))


def assembly(text: str, opt: int = 3) -> str:
    """The assembly of what `optimize_and_emit` emits."""
    return target_machine(opt).emit_assembly(optimized(text, opt))
