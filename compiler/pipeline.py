"""Every stage of the compiler, in order, with its reason. Read `STAGES` top to bottom.

A stage has a name that users type (`f.inspect("simplify")`, `MUTAD_DUMP=simplify,adjoint`) and takes
a `Compilation` one step further. Each pass of a stage runs alone as well: `mutad-opt -p <name>`.

Environment: `MUTAD_DUMP=stage[,stage]` writes what each named stage leaves, one file a stage and
function, to `MUTAD_DUMP_DIR` (else `./mutad-dump`); `MUTAD_DUMP=all` what every stage and pass leaves;
`MUTAD_TIME=1` prints seconds per stage.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .. import (
    dialects as dialects,
)  # before any of xDSL's, which are declared in less time after it
from . import simplified_ir
from .beside import ENTRIES, LIBRARY, Missing, beside, entries_text, library_text, taken
from .collection import without_collection
from .compilation import Compilation, print_times, with_time
from .deep_stack import with_deep_stack
from .diagnostics import CompileError, CompilerFault, line_of_function, place_of
from .pass_hooks import after, what_failed, within
from .print_ir import module_text
from .request import EMULATED, HOST_DRIVER, Artifact, Request
from .stages.adjoint import adjoint, plan, prepare
from .stages.kernels import emulated, kernels, launches, ptx, sass
from .stages.machine_code import (
    assembly,
    llvm,
    machine_code,
    metadata_of,
    optimized_llvm,
    show_llvm,
)
from .stages.optimize import optimize
from .stages.simplify import frontend, simplify

if TYPE_CHECKING:
    from .codegen.llvm_module import Target

EVERYTHING = "all"
"""What `MUTAD_DUMP` calls all stages, and their passes."""


def show_module(c: Compilation) -> str:
    return module_text(c.module, c.locations)


def nothing(c: Compilation) -> None:
    """For a stage that only shows."""


@dataclass(frozen=True)
class Stage:
    """One step, the reason for it, and how users see what it leaves."""

    name: str
    run: Callable[[Compilation], None]
    why: str
    show: Callable[[Compilation], str] = show_module
    suffix: str = "mlir"
    gradient_only: bool = False


STAGES: tuple[Stage, ...] = (
    Stage(
        "frontend", frontend, "Python to typed array IR: one function, a source span on every op"
    ),
    Stage(
        "simplify", simplify, "before the analyses: the less goes through memory, the less to save"
    ),
    Stage(
        "plan", prepare, "what the adjoint needs and stores kill: shown", plan, gradient_only=True
    ),
    Stage(
        "adjoint", adjoint, "the primal with its saves, then the reverse sweep", gradient_only=True
    ),
    Stage("optimize", optimize, "the adjoint is ordinary IR again: fuse, hoist, allocate once"),
    Stage(
        "llvm",
        llvm,
        "structured IR straight to LLVM text: the kernel; its entries are shared",
        show_llvm,
        "ll",
    ),
    Stage(
        "llvm-opt", machine_code, "LLVM's O3, vector math calls, object code", optimized_llvm, "ll"
    ),
    Stage("assembly", nothing, "the machine code of this CPU, to read", assembly, "s"),
)

OUTLINED = Stage(
    "kernels", kernels, "what a device runs, and launches: the host touches no array any more"
)

AFTER_KERNELS = {
    EMULATED: Stage("emulated", emulated, "launches are loops over threads, shuffled"),
    "cuda": Stage("ptx", nothing, "the kernels in NVIDIA's assembler, to read", ptx, "ptx"),
}

MACHINE_CODE = Stage("sass", nothing, "the device's machine code, to read", sass, "sass")
"""What NVIDIA's tools show, where they are there: of `inspect` only, when it is asked for."""

LAUNCHED = Stage(
    "launches", launches, "the kernels are a driver's to load: the host is what is left"
)
"""Stages of devices, behind `optimize`; emulated kernels go on as code of the CPU."""


@with_deep_stack
def compile_request(
    request: Request,
    wanted: Callable[[Sequence[Any]], bool] | None = None,
    missing: Missing | None = None,
) -> Artifact:
    """Compile for the runtime: every stage that makes something.

    Where the code would not be `wanted` with what it assumes of the arguments' extents, there is none, and
    of the metadata only that. What is `missing` beside the code is compiled beside it.
    """
    with without_collection():  # of its IR nothing is left when garbage is looked for
        return artifact_of(request, wanted, missing)


def artifact_of(
    request: Request,
    wanted: Callable[[Sequence[Any]], bool] | None,
    missing: Missing | None = None,
) -> Artifact:
    """See `compile_request`."""
    from . import stage_dumps

    c = Compilation(request)
    dump = frozenset(os.environ.get("MUTAD_DUMP", "").split(",")) - {""}
    unknown = dump - {s.name for s in (*STAGES, *stages_for(request))} - {EVERYTHING}
    if unknown:
        raise ValueError(
            f"MUTAD_DUMP: no stage named {', '.join(sorted(unknown))}; {stage_names()}"
        )
    with own_faults(request), beside(missing, request.options.target) as more:
        if not dump:
            c = begun(request)
        c.beside = more
        if EVERYTHING in dump:
            c.hooks.append(after(stage_dumps.PassDumps(c)))
        for stage in stages_for(request):
            advance(c, stage)
            if dump & {stage.name, EVERYTHING}:
                stage_dumps.write_dump(c, stage)
            if stage.name == "frontend" and wanted is not None and not wanted(c.built.assumed):
                return Artifact(b"", {"assumed": c.built.assumed})
    if os.environ.get("MUTAD_TIME") == "1":
        print_times(c)
    return Artifact(c.object_code, metadata_of(c))


def compile_entries(convention: str, opt: int, target: Target | None) -> Artifact:
    """The entries of all kernels that are called like this, for the runtime."""
    from .codegen.llvm_module import emit_entries

    if (known := taken(ENTRIES, convention, opt, target)) is not None:
        return known
    with without_collection():
        text, metadata = entries_text(convention)
        return Artifact(emit_entries(text, opt, target), metadata)


def compile_shared(asked: str, opt: int, target: Target | None) -> Artifact:
    """A library that kernels ask for, for the runtime."""
    from .codegen.llvm_module import optimize_and_emit

    if (known := taken(LIBRARY, asked, opt, target)) is not None:
        return known
    with without_collection():
        text, metadata = library_text(asked, target)
        return Artifact(optimize_and_emit(text, opt, target), metadata)


def compile_support(opt: int, target: Target | None) -> Artifact:
    """What kernels and entries of a process call, for the runtime."""
    from .codegen.llvm_module import optimize_and_emit
    from .codegen.support.library import library

    made = library()
    metadata = {"symbols": made.symbols, "entries": {name: name for name in made.exports}}
    with without_collection():
        return Artifact(optimize_and_emit(made.text, opt, target), metadata)


def begun(request: Request) -> Compilation:
    """A compilation that goes on from the most that earlier ones made (`simplified_ir`)."""
    checked = simplified_ir.take_checked(request)
    if checked is None:
        return simplified(request)
    checked.request = request
    return checked


def simplified(request: Request) -> Compilation:
    """A compilation that need not come as far as `simplify`, if an earlier one did."""
    c, known = Compilation(request), simplified_ir.recall(request)
    if known is not None:
        c.built, c.module = known.built, known.module.clone()
        c.done = {"frontend", "simplify"}
    return c


def advance(c: Compilation, stage: Stage) -> None:
    """Run a stage, unless that was done."""
    if stage.name in c.done:
        return
    with with_time(c, stage.name), within(f"the stage {stage.name}"):
        stage.run(c)
    c.done.add(stage.name)
    if stage.name == "simplify":
        simplified_ir.remember(c)


@with_deep_stack
def check_request(request: Request, wanted: Callable[[Sequence[Any]], bool]) -> None:
    """CompileError where the gradient cannot be compiled, and is `wanted`; makes no code."""
    with without_collection(), own_faults(request):
        c = begun(request)
        for stage in stages_for(request):
            advance(c, stage)
            if stage.name == "frontend" and not wanted(c.built.assumed):
                return
            if stage.name == "adjoint":
                simplified_ir.remember_checked(c)
                return


@contextmanager
def own_faults(request: Request) -> Generator[None]:
    """What the compiler did not foresee is its own fault, and says so at the line that it worked on.

    Not that memory runs out, nor that what it is built on is missing or unknown (`require_known_llvm`).
    """
    try:
        yield
    except (CompilerFault, MemoryError, ImportError, RecursionError):
        raise
    except Exception as error:
        span = place_of(error) or line_of_function(request.function)
        if not isinstance(error, CompileError):
            from .stage_dumps import reproducing

            raise CompilerFault(span, error, what_failed(error), reproducing(request)) from error
        error.span = error.span or span
        raise


@with_deep_stack
def run_stages(request: Request, upto: str) -> str:
    """What stage `upto` leaves, as text. ValueError where this request has no such stage."""
    c = Compilation(request)
    stages = stages_for(request)
    if upto == MACHINE_CODE.name and AFTER_KERNELS["cuda"] in stages:
        from .aot.device_tools import require_tools

        require_tools()
        stages.append(MACHINE_CODE)
    if upto not in {s.name for s in stages}:
        if upto in {s.name for s in STAGES if s.gradient_only}:
            raise ValueError(
                f"stage {upto!r} is one of gradients, and none was asked for: name a parameter by "
                f"wrt=, as in inspect({upto!r}, ..., wrt=0)"
            )
        raise ValueError(f"no stage named {upto!r}; {stage_names()}")
    with own_faults(request):
        for stage in stages:
            with within(f"the stage {stage.name}"):
                stage.run(c)
            if stage.name == upto:
                return stage.show(c)
    raise AssertionError("unreachable")


def stages_for(request: Request) -> list[Stage]:
    return stages_of(request.mode, request.options.device, launched=request.options.launched)


def stages_of(mode: str, device: str, *, launched: bool = False) -> list[Stage]:
    stages = [s for s in STAGES if mode != "primal" or not s.gradient_only]
    if not device:
        return stages
    before = 1 + [s.name for s in stages].index("optimize")
    behind = [OUTLINED]
    if device != HOST_DRIVER:
        behind.append(AFTER_KERNELS["cuda" if device != EMULATED else device])
    if launched:
        behind.append(LAUNCHED)
    goes_on = launched or device == EMULATED
    return [*stages[:before], *behind, *(stages[before:] if goes_on else ())]


def stage_names() -> str:
    every = (*STAGES, OUTLINED, *AFTER_KERNELS.values(), MACHINE_CODE)
    return (
        "stages are "
        + ", ".join(s.name for s in every[: len(STAGES)])
        + (f"; of devices {', '.join(s.name for s in every[len(STAGES) :])}")
    )
