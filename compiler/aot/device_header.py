"""What the header of a library that launches kernels has besides: the device, and memory of it."""

from __future__ import annotations

from collections.abc import Iterator

from .library import Library
from .signature import CFunction
from .text_of_c import comment, prototype

HANDLE, STREAM = "device", "struct CUstream_st *stream"
"""The first parameters of all functions; `CUstream` and `cudaStream_t` are pointers to that struct."""


def about(library: Library) -> Iterator[str]:
    """How the library is used."""
    name = library.name
    yield from comment(
        "Arrays are in the memory of a device: `data` is an address there, a CUdeviceptr as a pointer.",
        f"{name}_open() loads the kernels into the current context, and is needed once for each context."
        " Work is put on the stream that a call names (NULL: the default one), and a call may return before"
        " it is done; it waits for what it has to know: numbers that it returns, and exceptions.",
        "",
        f"    {name}_device device;",
        f"    int status = {name}_open(&device);",
        "",
        "A stream must not be captured while a call puts work on it.",
    )


def parameters(library: str) -> list[str]:
    return [f"const {library}_device *{HANDLE}", STREAM]


def declarations(library: Library) -> Iterator[str]:
    """The device, and what has to do with it alone."""
    name = library.name
    yield from ("struct CUstream_st;", "")
    yield from comment(
        "The kernels in one context: threads may share it, and copies are as good. Its words are the"
        " library's own."
    )
    yield from ("typedef struct {", f"    void *words[{library.device_words}];")
    yield from (f"}} {name}_device;", "")
    yield from comment(
        "Load NVIDIA's driver (libcuda.so.1) and the kernels, for the context that is current."
    )
    yield from (f"int {name}_open({name}_device *device);", "")
    yield from comment("Unload the kernels, in the context that they were loaded in.")
    yield from (f"int {name}_close({name}_device *device);", "")
    yield from comment(
        "Let cuBLAS multiply matrices from now on, where it takes their strides: its handle (cublasHandle_t),"
        " or NULL for kernels of this library. Calls put the handle on their stream. Threads that call at"
        " once need a copy of the device and a handle each."
    )
    yield from (f"int {name}_cublas({name}_device *device, void *handle);", "")
    given = ", ".join(parameters(name))
    yield from comment(
        "Memory of the device, in the order of the stream (cuMemAllocAsync, cuMemFreeAsync)."
    )
    yield from prototype(
        f"int {name}_allocate(", [*parameters(name), "int64_t bytes", "void **block"], ");"
    )
    yield from (f"int {name}_release({given}, void *block);", "")


def about_pool(library: str, function: CFunction) -> Iterator[str]:
    """Where a function gets its memory from if its size is not known beforehand."""
    yield "  Its memory is of the driver's pool (cuMemAllocAsync), for the time of the call."
    yield f"  (How much it takes depends on data: {function.unknown}.)"
    if function.has_arrays:
        yield f"  Result arrays are blocks of it, for {library}_release()."


def wrapper(library: str, function: CFunction, given: list[str], sizes: list[str]) -> Iterator[str]:
    """The inline function that allocates."""
    names = [HANDLE, "stream", *(p.name for p in function.parameters)]
    owned = ["void **owner"] if function.has_arrays else []
    said = f" Result arrays lie in *owner: {library}_release() it." if owned else ""
    yield from comment(f"{function.symbol}, with a work area of the driver's pool.{said}")
    yield from prototype(f"static inline int {function.symbol}_alloc(", [*given, *owned], ") {")
    yield from prototype(f"    int64_t work_bytes = {function.symbol}_worksize(", sizes, ");")
    yield "    void *block = NULL;"
    yield "    int status = 0;"
    yield "    if (work_bytes > 0)"
    yield f"        status = {library}_allocate(device, stream, work_bytes, &block);"
    yield "    if (status != 0)"
    yield "        return status;"
    yield from prototype(
        f"    status = {function.symbol}(", [*names, "block", "block ? work_bytes : 0"], ");"
    )
    if owned:
        yield "    if (status == 0 && owner)"
        yield "        *owner = block;"
        yield "    else if (block)"
    else:
        yield "    if (block)"
    yield f"        (void){library}_release(device, stream, block);"
    yield "    return status;"
    yield from ("}", "")
