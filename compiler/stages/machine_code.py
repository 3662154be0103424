"""The kernel as LLVM text and as object code, and what the runtime must know of it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import ModuleOp

from ...dialects import activation, ad
from ..compilation import Compilation, last_function
from ..diagnostics import line_of_function
from ..request import COUNTS, HESSIAN, JOINT, TANGENT, Request
from .adjoint import cotangents_at_once

if TYPE_CHECKING:
    from ..codegen.debug_info import Subject
    from ..codegen.llvm_module import Target


def llvm(c: Compilation) -> None:
    from ..codegen.entries.entry import entries, exported
    from ..codegen.entries.plan import in_parts
    from ..codegen.kernel_memory import KernelMemory
    from ..codegen.module_to_llvm import kernel_text, split_text
    from ..sizes.reserve_tapes import ReserveTapes, reserve_tapes

    r, built = c.request, c.built
    subject = subject_of(r) if r.options.debug else None
    memory = KernelMemory.DEVICE if r.options.launched else KernelMemory.SYSTEM
    if memory is KernelMemory.SYSTEM:
        with c.around(ReserveTapes(), c.module):
            reserve_tapes(c.module, built.assumed)
    c.convention = convention_of(c)
    if c.beside is not None and r.mode in OFTEN and not r.options.debug:
        c.beside.begin_entries(in_parts(c.convention)[0])
    shares = not r.options.launched
    if r.mode == "vjp":
        c.kernel = split_text(c.module, r.options, memory, subject, shares=shares)
    else:
        sites = sites_before(c)
        c.kernel = kernel_text(
            c.module, r.options, memory=memory, subject=subject, shares=shares, sites=sites
        )
    if shares:
        c.kernel = c.kernel.beside_library()
    c.symbols = c.kernel.symbols
    symbols = exported(r.mode, short=is_short(c))
    c.llvm = "\n".join((*c.kernel.declarations, c.kernel.text, symbols))
    if r.options.debug:
        made = entries(c.convention, c.kernel.entry)
        c.symbols = {**c.symbols, **made.symbols}
        missing = (one for one in made.declarations if one not in c.kernel.declarations)
        c.own_entries = "\n".join((*missing, made.text))


def convention_of(c: Compilation) -> str:
    """How entries call the kernel; what it takes and returns (`gradient`, `tangents`) is written as well."""
    from ..codegen.entries.entry import (
        GradientSignature,
        convention,
        gradient_signature,
        signature_of,
    )
    from ..codegen.entries.tangents import tangents_of

    r, built = c.request, c.built
    function = last_function(c.module)
    if r.mode in (*JOINT, "vjp", *HESSIAN, "reverse-hvp"):
        c.gradient = gradient_signature(function, r.arguments)
    if r.mode in (*TANGENT, *HESSIAN, "reverse-hvp"):
        c.tangents = tangents_of(function, r.arguments, built.results, c.gradient, r.options.lanes)
        c.gradient = c.gradient or GradientSignature((), (), ())
    called_by = signature_of(r.function)
    return convention(
        r.arguments, r.overlaps, r.mode, r.wrt, built.results, built.written, called_by, c.gradient,
        built.assumed, activation.goes_deep(c.module),
        built.records is not None and built.records["result"] == ["flat"], c.tangents, cotangents_at_once(r),
        r.options.driver,
    )  # fmt: skip


OFTEN = ("primal", "gradient")
"""The modes whose entries are compiled well, which takes a while."""


def subject_of(r: Request) -> Subject:
    """What debuggers and profilers call the code: `heat`, `heat.grad`, and where it comes from."""
    from ..argument_keys import parse
    from ..codegen.debug_info import Subject
    from ..codegen.debug_variables import parameters_of

    source = source_of(r)
    keys = [parse(key) for key in r.arguments]
    parameters = parameters_of(r.function.__code__, keys)
    return Subject(source["name"], source["file"], source["line"], source["backward"], parameters)


CALLED = {
    "primal": "",
    "gradient": ".grad",
    "pullback": ".grad",
    "vjp": ".vjp",
    **dict.fromkeys(TANGENT, ".jvp"),
    **dict.fromkeys((*HESSIAN, "reverse-hvp"), ".hvp"),
    **dict.fromkeys(COUNTS, ".explain"),
}
"""By mode, which method of a compiled function the kernel is the work of."""


def source_of(r: Request) -> dict[str, Any]:
    """The same for the runtime, and whether the code has debug information."""
    name, at = r.function.__qualname__, line_of_function(r.function)
    file, line = (at.file, at.line) if at is not None else ("", 0)
    return {
        "name": name + CALLED[r.mode],
        "backward": f"{name}.back",
        "module": r.function.__module__,
        "file": file,
        "line": line,
        "debug": r.options.debug,
    }


def level_and_target(c: Compilation) -> tuple[int, Target | None]:
    return c.request.options.opt, c.request.options.target


def machine_code(c: Compilation) -> None:
    from ..codegen.llvm_module import optimize_in_parts

    text = c.llvm + c.own_entries
    libraries = [] if c.beside is None else c.beside.libraries(c.kernel.shared)
    beside = [one.text for one in libraries]
    code = optimize_in_parts(text, *level_and_target(c), beside)
    for library, made in zip(libraries, code, strict=False):
        library.keep(made)
    parts = code[len(libraries) :]
    c.object_code, c.parts = b"".join(parts), [len(part) for part in parts]


def optimized_llvm(c: Compilation) -> str:
    from ..codegen.llvm_module import optimized_ir

    return optimized_ir(c.llvm, *level_and_target(c))


def assembly(c: Compilation) -> str:
    from ..codegen.assembly_lines import without_debugging

    text = assembly_for_debuggers(c)
    return without_debugging(text) if c.request.options.debug else text


def assembly_for_debuggers(c: Compilation) -> str:
    from ..codegen.llvm_module import assembly

    return assembly(c.llvm, *level_and_target(c))


def show_llvm(c: Compilation) -> str:
    return c.llvm


def metadata_of(c: Compilation) -> dict[str, Any]:
    """What the runtime must know of the module beside its code.

    Of the entries too: the `convention` that `compile_entries` makes them of, unless they are in the module;
    and the same of those that are made `later`, if one is called.
    """
    from ..codegen.entries.entry import entry_symbols, exports
    from ..codegen.entries.plan import in_parts
    from ..codegen.streaming import repeats, streams

    first, later = (c.convention, None) if c.request.options.debug else in_parts(c.convention)
    return {
        "sites": c.kernel.sites[sites_before(c) :],
        "results": c.built.results,
        "written": list(c.built.written),
        "assumed": c.built.assumed,
        "records": c.built.records,
        "sources": [list(s) for s in c.built.sources],
        "constants": [list(k) for k in c.built.constants],
        "source": source_of(c.request),
        "symbols": c.symbols,
        "image": c.image,
        "parts": c.parts,
        "entries": entry_symbols(first),
        "code": exports(c.request.mode, short=is_short(c)),
        "shared": [json.dumps(how) for how in c.kernel.shared],
        "convention": None if c.request.options.debug else first,
        "later": later and {"entries": entry_symbols(later), "convention": later},
        "gradient": c.gradient.as_metadata() if c.gradient is not None else None,
        "tangents": c.tangents.as_metadata() if c.tangents is not None else None,
        "record": c.kernel.result_slots[-1] + 1 if c.request.mode == "vjp" else None,
        "retries": retries(c.module),
        "lanes": c.request.options.lanes,
        "streams": c.request.options.lanes > 1 and streams(c.module),
        "repeats": c.request.options.lanes > 1 and repeats(c.module),
    }


def is_short(c: Compilation) -> bool:
    """Whether the code is for short tapes alone."""
    attributes = last_function(c.module).attributes
    return activation.LONGEST in attributes and activation.CHECKPOINTED not in attributes


def sites_before(c: Compilation) -> int:
    """How many sites the kernel has that this one calls."""
    return max(c.request.options.long - 1, 0)


def retries(module: ModuleOp) -> bool:
    """Whether calls may have to be made anew, with guards."""
    return any(isinstance(op, ad.RetryIfOp) for op in module.walk())
