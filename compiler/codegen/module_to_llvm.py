"""The kernels of a module: the functions that are called from outside, and those that they call.

Without a budget there is one kernel; with one there are two, and a function that chooses. Of a gradient for
long tapes, the one for short ones is in a module of its own, which came before. The two halves of a split
gradient are two kernels, of which the second takes what the first has recorded.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, StridedLayoutAttr

from ...dialects import activation
from ..analysis.effects import is_private
from .activations_to_llvm import ActivationWriter
from .debug_info import Subject, without_lines
from .function_to_llvm import CodegenOptions, KernelWriter
from .handles import Record
from .kernel_memory import KernelMemory
from .kernel_module import IN_STEPS, OTHER, SIZES, WHOLE, KernelText, module_text
from .kernel_state import LONG, KernelState


def kernel_text(
    module: ModuleOp,
    options: CodegenOptions,
    name: str = "kernel",
    memory: KernelMemory = KernelMemory.SYSTEM,
    subject: Subject | None = None,
    *,
    shares: bool = False,
    sites: int = 0,
) -> KernelText:
    """The kernel for the one function of `module`; it `shares` libraries with others of the process.

    So many `sites` are those of a kernel that it calls, and come before its own.
    `memory` says where it has its memory from; `subject` what to call it in debug metadata, if any is wanted.
    A function that computes the bytes of its work area is `@kernel_work_size`, of the same parameters.
    """
    public, private = functions_of(module)
    kernels = [f for f in public if SIZES not in f.attributes]
    spread = any(map(takes_spread, kernels))
    before, state = private_text(
        private, options, memory, subject, spread=spread, shares=shares, sites=sites
    )
    if len(kernels) == 2 or activation.LONGEST in kernels[0].attributes:
        writers = kernels, public[0], before, state, options, subject
        return either_text(*writers, spread=spread, shares=shares, sites=sites)
    (function,) = kernels
    writer = writer_for(memory)(function, options, name, state, memory=memory, subject=subject)
    writer.state.spread, writer.state.shares = spread, shares
    writer.state.begin_sites(sites)
    definitions = [*before, writer.write()]
    for size in (f for f in public if SIZES in f.attributes):
        beside = KernelWriter(size, options, f"{name}_{SIZES}", writer.state)
        # Without lines: what calls it has none, and would have those of another function once it is inlined.
        definitions.append([without_lines(part) for part in beside.write()])
    return module_text(writer.state, definitions, writer.result_slots)


def takes_spread(kernel: func.FuncOp) -> bool:
    """Whether an argument is not contiguous row by row."""
    types = (a.type for a in kernel.args)
    return any(isinstance(t, MemRefType) and isinstance(t.layout, StridedLayoutAttr) for t in types)


def writer_for(memory: KernelMemory) -> type[KernelWriter]:
    """What writes a kernel: where arrays are a device's, one that has them computed there."""
    if not memory.launches:
        return KernelWriter
    from .launches_to_llvm import (
        LaunchingWriter,  # of a dialect that code for the CPU does not load
    )

    return LaunchingWriter


def either_text(
    kernels: Sequence[func.FuncOp],
    size: func.FuncOp,
    before: list[list[str]],
    state: KernelState | None,
    options: CodegenOptions,
    subject: Subject | None,
    *,
    spread: bool,
    shares: bool,
    sites: int,
) -> KernelText:
    """Two kernels of one signature, and `@kernel`: the first where its tapes hold no more than the budget.

    Of kernels for short and for long tapes only one is here. That for long ones calls the other by its
    address; in the place of that for long ones stands a status that asks for it.
    """
    in_steps = activation.CHECKPOINTED in kernels[-1].attributes
    names = [WHOLE, IN_STEPS] if len(kernels) == 2 else [IN_STEPS if in_steps else WHOLE]
    writers: list[KernelWriter] = []
    definitions = list(before)
    for function, name in zip((size, *kernels), (f"kernel_{SIZES}", *names), strict=True):
        writers.append(KernelWriter(function, options, name, state, subject=subject))
        writers[-1].state.spread, writers[-1].state.shares = spread, shares
        writers[-1].state.begin_sites(sites)
        state, lines = writers[-1].state, writers[-1].write()
        definitions.append(lines if function in kernels else [without_lines(p) for p in lines])
    state = writers[-1].state
    parameters = ["ptr %ctx", *KernelWriter(kernels[-1], options, "", state).parameters()]
    if not in_steps:  # another module calls it: a copy would be compiled for nothing
        definitions[-1] = [without_inlining(line) for line in definitions[-1]]
    elif WHOLE not in names:
        types = ", ".join(one.split(" %")[0] for one in (*parameters, "ptr %results"))
        state.declare(OTHER, f"declare i32 @{OTHER}({types})", "whole")
    limit = activation.CHECKPOINTED if in_steps else activation.LONGEST
    budget = cast("IntegerAttr[Any]", kernels[-1].attributes[limit]).value.data
    definitions.append(choice_of_kernel(names, parameters, budget))
    return module_text(state, definitions, writers[-1].result_slots)


def without_inlining(line: str) -> str:
    """The head of the kernel for short tapes, which stays a function of its own."""
    return line.replace(" nounwind ", " noinline nounwind ", 1) if f"@{WHOLE}(" in line else line


def choice_of_kernel(names: Sequence[str], parameters: Sequence[str], budget: int) -> list[str]:
    """The kernel that measures, and calls one or the other; `names` are those of this module."""
    given = ", ".join(parameters)
    called = WHOLE if WHOLE in names else OTHER
    in_steps = f"call i32 @{IN_STEPS}({given}, ptr %results)"
    return [
        f"define internal i32 @kernel({', '.join((*parameters, 'ptr %results'))}) nounwind {{",
        "  %size = alloca i64, align 8",
        f"  %measured = call i32 @kernel_{SIZES}({given}, ptr %size)",
        "  %failed = icmp ne i32 %measured, 0",
        "  %bytes = load i64, ptr %size, align 8",
        f"  %larger = icmp ugt i64 %bytes, {budget}",
        "  %split = or i1 %failed, %larger",
        "  br i1 %split, label %in.steps, label %whole",
        "whole:",
        f"  %first = call i32 @{called}({given}, ptr %results)",
        "  ret i32 %first",
        "in.steps:",
        f"  %second = {in_steps if IN_STEPS in names else f'add i32 {LONG}, 0'}",
        "  ret i32 %second",
        "}",
    ]


def split_text(
    module: ModuleOp,
    options: CodegenOptions,
    memory: KernelMemory = KernelMemory.SYSTEM,
    subject: Subject | None = None,
    *,
    shares: bool = False,
) -> KernelText:
    """The kernels of the two halves of a split gradient: `@kernel` and `@backward`, which takes a record."""
    (forward, backward), private = functions_of(module)
    before, state = private_text(private, options, memory, subject, shares=shares)
    made = writer_for(memory)
    first = made(forward, options, "kernel", state, memory=memory, subject=subject)
    first.state.shares = shares
    definition = first.write()
    kept = backward.attributes["kept"]
    assert isinstance(kept, IntegerAttr)
    slots = first.result_slots[-1 - kept.value.data : -1]
    second = made(backward, options, "backward", first.state, Record(slots))
    definitions = [*before, definition, second.write()]
    return module_text(second.state, definitions, first.result_slots)


def functions_of(module: ModuleOp) -> tuple[list[func.FuncOp], list[func.FuncOp]]:
    """The functions that are called from outside, and those that the module has for itself."""
    every = [op for op in module.body.block.ops if isinstance(op, func.FuncOp)]
    private = [f for f in every if is_private(f)]
    return [f for f in every if f not in private], private


def private_text(
    private: Sequence[func.FuncOp],
    options: CodegenOptions,
    memory: KernelMemory = KernelMemory.SYSTEM,
    subject: Subject | None = None,
    *,
    spread: bool = False,
    shares: bool = False,
    sites: int = 0,
) -> tuple[list[list[str]], KernelState | None]:
    """The definitions of private functions, and the state that the kernels go on with."""
    definitions: list[list[str]] = []
    state: KernelState | None = None
    for function in private:
        name = function.sym_name.data
        writer = ActivationWriter(function, options, name, state, None, memory, subject)
        state = writer.state
        state.spread, state.shares = spread, shares
        state.begin_sites(sites)
        definitions.append(writer.write())
    return definitions, state
