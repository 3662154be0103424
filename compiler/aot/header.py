"""The header of a library: plain C99, which C++ may include."""

from __future__ import annotations

from collections.abc import Iterator

from ..codegen.kernel_memory import KernelMemory
from . import device_header
from .library import Library
from .signature import (
    C_TYPE,
    ArrayParameter,
    CFunction,
    OutParameter,
    Parameter,
    ScalarParameter,
    struct_name,
)
from .statuses import DEVICE_ERROR, KINDS, enumerator
from .text_of_c import comment, prototype

MEANS = {
    "grad": "The gradient of {python}, with respect to {wrt}.",
    "value_and_grad": "The value and the gradient of {python}, with respect to {wrt}.",
    "vjp": "{python}, and the product of its transposed Jacobian with cotangents, for {wrt}.",
    "jvp": "{python}, and the product of its Jacobian with tangents of {wrt}.",
    "hvp": "The Hessian of {python} with respect to {wrt}, times a direction.",
    "primal": "{python}.",
}


def header_text(library: Library) -> str:
    """The whole header."""
    name, upper = library.name, library.name.upper()
    needs = ["NVIDIA's driver" if library.launches else "libm"]
    needs += ["libmvec (part of glibc's libm)"] if library.uses_libmvec else []
    needs += ["BLAS (" + ", ".join(blas_of(library)) + ")"] if library.uses_blas else []
    lines = [
        *comment(
            f"{name}: compiled by mutadc. Needs {', '.join(needs)}; no Python. All functions are re-entrant.",
            "",
            "Arrays are structs: where element (0, ..., 0) is, extents, and strides counted in elements. A"
            " function that returns other than 0 has failed: the low byte is the kind of the failure, and "
            f"{name}_strerror() has its words. Arguments are checked before anything is stored; after an"
            " exception of the program, arrays hold what they would in Python.",
            "",
            f"{upper}_RESTRICT marks the arrays that may share memory with no other argument: those that are"
            " written, and in derivatives those that they are taken of. Others may overlap.",
            "",
            "Values from outside of the functions (globals, closures) are those of the time of compilation.",
        ),
        *(device_header.about(library) if library.launches else ()),
        f"#ifndef {upper}_H",
        f"#define {upper}_H",
        "",
        "#include <stdbool.h>",
        "#include <stddef.h>",
        "#include <stdint.h>",
        "#include <stdlib.h>",
        "",
        "#ifdef __cplusplus",
        f"#define {upper}_RESTRICT __restrict",
        'extern "C" {',
        "#else",
        f"#define {upper}_RESTRICT restrict",
        "#endif",
        "",
        *structs(library),
        *kinds(upper, launches=library.launches),
        *comment(
            "The words of a status: a constant string, with file and line where there are any."
        ),
        f"const char *{name}_strerror(int status);",
        "",
    ]
    if library.launches:
        lines += device_header.declarations(library)
    if any(f.memory is KernelMemory.AREA for f in library.functions):
        lines += aligned(name)
    if any(f.memory is KernelMemory.ALLOCATOR for f in library.functions):
        lines += allocator(name)
    for function in library.functions:
        lines += declaration(library, function)
    lines += ["#ifdef __cplusplus", "}", "#endif", "", f"#endif /* {upper}_H */", ""]
    return "\n".join(lines)


def blas_of(library: Library) -> list[str]:
    """The routines of BLAS that the library calls."""
    return [symbol for symbol, origin in library.symbols.items() if origin == "blas"]


def array_types(library: Library) -> list[tuple[str, int]]:
    """The dtype and rank of all arrays that functions take and return."""
    kinds: set[tuple[str, int]] = set()
    for function in library.functions:
        for p in function.parameters:
            if isinstance(p, ArrayParameter):
                kinds.add((p.key.dtype, p.key.rank))
            elif isinstance(p, OutParameter) and p.rank is not None:
                kinds.add((p.type, p.rank))
    return sorted(kinds)


def structs(library: Library) -> Iterator[str]:
    """One type for each dtype and rank, and what makes one of contiguous elements."""
    for dtype, rank in array_types(library):
        type_, name = C_TYPE[dtype], struct_name(library.name, dtype, rank)
        yield "typedef struct {"
        yield f"    {type_} *data;"
        if rank:
            yield f"    int64_t shape[{rank}];"
            yield f"    int64_t strides[{rank}];"
        yield f"}} {name};"
        yield ""
        axes = range(rank)
        yield from comment(
            f"An array of contiguous elements{', in C order: the last axis is the fastest' * (rank > 1)}."
        )
        given = [f"{type_} *data", *(f"int64_t n_{d}" for d in axes)]
        yield from prototype(f"static inline {name} {name}_of(", given, ") {")
        yield f"    {name} made;"
        yield "    made.data = data;"
        for d in axes:
            yield f"    made.shape[{d}] = n_{d};"
        for d in axes:
            yield f"    made.strides[{d}] = {' * '.join(f'n_{k}' for k in axes[d + 1 :]) or '1'};"
        yield "    return made;"
        yield "}"
        yield ""


def kinds(upper: str, *, launches: bool) -> Iterator[str]:
    """The kinds of failure: Python's exceptions, then breaches of the contract."""
    known = [kind for kind in KINDS if launches or kind != DEVICE_ERROR]
    yield from comment("Kinds of failure: `status & 0xff`.")
    yield "enum {"
    yield f"    {upper}_OK = 0,"
    *others, last = (f"{upper}_{enumerator(kind)} = {KINDS[kind]}" for kind in known)
    yield from (f"    {one}," for one in others)
    yield f"    {last}"  # a comma behind it would be an extension of C++98
    yield "};"
    yield ""


def aligned(name: str) -> Iterator[str]:
    """Where a work area begins in a block."""
    yield from comment("The first multiple of 64 in a block; NULL in NULL.")
    yield f"static inline void *{name}_aligned(void *block) {{"
    yield "    return block ? (char *)block + (64 - (uintptr_t)block % 64) % 64 : NULL;"
    yield "}"
    yield ""


def allocator(name: str) -> Iterator[str]:
    """Where functions have their memory from whose size depends on data, and malloc as one."""
    yield from comment(
        "Memory for functions whose sizes depend on data: `allocate` returns NULL where there is none."
    )
    yield "typedef struct {"
    yield "    void *(*allocate)(void *state, size_t bytes);"
    yield "    void (*release)(void *state, void *block, size_t bytes);"
    yield "    void *state;"
    yield f"}} {name}_allocator;"
    yield ""
    yield f"static inline void *{name}_malloc(void *state, size_t bytes) {{"
    yield "    (void)state;"
    yield "    return malloc(bytes);"
    yield "}"
    yield ""
    yield f"static inline void {name}_free(void *state, void *block, size_t bytes) {{"
    yield "    (void)state;"
    yield "    (void)bytes;"
    yield "    free(block);"
    yield "}"
    yield ""


def declared(library: str, p: Parameter) -> str:
    """One parameter."""
    restrict = f"{library.upper()}_RESTRICT "
    match p:
        case ScalarParameter():
            return f"{C_TYPE[p.type]} {p.name}"
        case ArrayParameter():
            mark = restrict if p.watched else ""
            return f"const {struct_name(library, p.key.dtype, p.key.rank)} *{mark}{p.name}"
        case OutParameter():
            type_ = C_TYPE[p.type] if p.rank is None else struct_name(library, p.type, p.rank)
            return f"{type_} *{restrict}{p.name}"


def memory_parameters(library: str, function: CFunction) -> list[str]:
    if function.sized:
        return ["void *work", "int64_t work_bytes"]
    if function.memory.launches:
        return []
    return [f"const {library}_allocator *allocator"]


def described(p: Parameter) -> str:
    """What the comment of a function says of a parameter."""
    match p:
        case ArrayParameter():
            return f"  {p.name}: {C_TYPE[p.key.dtype]}, {shape_of(p)}; {p.comment}"
        case OutParameter() if p.rank:
            shape = ", ".join(["any"] * p.rank)
            return f"  {p.name}: {C_TYPE[p.type]}, shape ({shape}); {p.comment}"
        case _:
            return f"  {p.name}: {C_TYPE[p.type]}{'; ' if p.comment else ''}{p.comment}"


def shape_of(p: ArrayParameter) -> str:
    """The extents that an argument must have, and its layout: `shape (n, 3), C order`."""
    if not p.key.rank:
        return "no axes"
    extents = [str(n) if n is not None else k if k == "1" else "any"
               for n, k in zip(p.extents, p.key.extents, strict=True)]  # fmt: skip
    layout = {"C": "C order", "F": "Fortran order", "S": "any strides"}[p.key.layout]
    if p.key.rank == 1 and p.key.layout != "S":
        layout = "contiguous"
    return f"shape ({', '.join(extents)}), {layout}"


def declaration(library: Library, function: CFunction) -> Iterator[str]:
    """One function, what it is for, and its inline wrapper."""
    means = MEANS[function.mode].format(python=function.python, wrt=", ".join(function.wrt))
    lines = [means, *(described(p) for p in function.parameters)]
    if function.sized:
        asked = f"{function.symbol}_worksize({', '.join(s.name for s in function.sizes)})"
        most = "at most " if function.is_bound else ""
        lines.append(
            f"  work: {most}{asked} bytes{' of the device' if function.memory.launches else ''}, at a "
            "multiple of 64 (NULL where that is 0);"
            " -1: more than there can be"
        )
        if function.has_arrays:
            lines.append("  Result arrays lie in it, or are arguments.")
    elif function.memory.launches:
        lines += device_header.about_pool(library.name, function)
    else:
        lines.append("  allocator: memory, for the time of the call")
        lines.append(f"  (How much it takes depends on data: {function.unknown}.)")
        if function.has_arrays:
            lines.append("  Result arrays are blocks of it, which are the caller's to release.")
    yield from comment(*lines)
    given = [declared(library.name, p) for p in function.parameters]
    if function.memory.launches:
        given = [*device_header.parameters(library.name), *given]
    yield from prototype(
        f"int {function.symbol}(", [*given, *memory_parameters(library.name, function)], ");"
    )
    if function.sized:
        sizes = [f"int64_t {s.name}" for s in function.sizes] or ["void"]
        yield from prototype(f"int64_t {function.symbol}_worksize(", sizes, ");")
    yield ""
    if not function.memory.launches:
        yield from wrapper(library.name, function, given)
    elif function.sized:
        yield from device_header.wrapper(library.name, function, given, size_arguments(function))


def wrapper(library: str, function: CFunction, given: list[str]) -> Iterator[str]:
    """The inline function that allocates."""
    names = [p.name for p in function.parameters]
    if function.memory is KernelMemory.ALLOCATOR:
        released = " Free the data of result arrays." if function.has_arrays else ""
        yield from comment(f"{function.symbol}, with memory of malloc.{released}")
        yield from prototype(
            f"static inline int {function.symbol}_alloc(", given or ["void"], ") {"
        )
        yield f"    const {library}_allocator of_malloc = {{{library}_malloc, {library}_free, NULL}};"
        yield from prototype(f"    return {function.symbol}(", [*names, "&of_malloc"], ");")
        yield from ("}", "")
        return
    owned = ["void **owner"] if function.has_arrays else []
    said = " Result arrays lie in *owner: free it." if owned else ""
    yield from comment(f"{function.symbol}, with a work area of malloc.{said}")
    yield from prototype(
        f"static inline int {function.symbol}_alloc(", [*given, *owned] or ["void"], ") {"
    )
    yield from prototype(
        f"    int64_t work_bytes = {function.symbol}_worksize(", size_arguments(function), ");"
    )
    yield "    void *block = work_bytes > 0 ? malloc((size_t)work_bytes + 64) : NULL;"
    yield from prototype(
        f"    int status = {function.symbol}(",
        [*names, f"{library}_aligned(block)", "block ? work_bytes : 0"],
        ");",
    )
    if owned:
        yield "    if (status == 0 && owner) {"
        yield "        *owner = block;"
        yield "    } else {"
        yield "        free(block);"
        yield "    }"
    else:
        yield "    free(block);"
    yield "    return status;"
    yield from ("}", "")


def size_arguments(function: CFunction) -> list[str]:
    """What the wrapper asks the size for: an extent of `u` is `u->shape[0]`."""
    optional = {p.name for p in function.arrays() if p.optional}
    types = {p.name: C_TYPE[p.type] for p in function.parameters if isinstance(p, ScalarParameter)}
    found: list[str] = []
    for size in function.sizes:
        extent = f"{size.parameter}->shape[{size.axis}]"
        if size.parameter in optional:
            extent = f"{size.parameter} ? {extent} : 0"
        if size.axis is None:
            same = types[size.parameter] == "int64_t"
            extent = size.parameter if same else f"(int64_t){size.parameter}"
        found.append(extent)
    return found
