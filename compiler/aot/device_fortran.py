"""The Fortran module of a library that launches kernels: what the header declares, and arrays of a device.

    type(model_device) :: device
    status = model_open(device)
    status = loss_alloc(device, stream, model_array(u), 0.1_c_double, 50_c_int64_t, value)

`model_array` reads no element: `u` may be an array of CUDA Fortran, or what `use_device_addr` of OpenMP and
`host_data` of OpenACC make of one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from .fortran import Module
from .fortran_text import FORTRAN_TYPE, comment, statement
from .header import array_types
from .library import DEVICE_FUNCTIONS, Library
from .signature import C_TYPE, CFunction
from .statuses import DEVICE_ERROR

FUNCTIONS = {
    "open": ("Load NVIDIA's driver and the kernels, for the context that is current.", ()),
    "close": ("Unload the kernels, in the context that they were loaded in.", ()),
    "cublas": (
        "Let the cuBLAS of a handle multiply matrices from now on, or kernels of this library (c_null_ptr).",
        ("handle",),
    ),
    "allocate": ("Memory of the device, in the order of the stream.", ("stream", "bytes", "block")),
    "release": ("Give it back.", ("stream", "block")),
}
"""What has to do with the device alone: what it is for, and parameters behind the device."""


def device_fortran_text(library: Library) -> str:
    """The whole module."""
    return "\n".join([*DeviceModule(library).lines(), ""])


class DeviceModule(Module):
    """The module on its way."""

    OWN: ClassVar = ("array", "transposed", "strerror", "device", *DEVICE_FUNCTIONS)
    FAILURES: ClassVar = (*Module.FAILURES, DEVICE_ERROR)
    FIRST: ClassVar = {
        "device": "type({}_device), intent(in)",
        "stream": "type(c_ptr), value",
    }

    def __post_init__(self) -> None:
        self.names.taken |= {*self.FIRST, "handle", "bytes", "block", "k"}
        made = (f"{self.struct(*kind)}_of".lower() for kind in array_types(self.library))
        self.names.taken |= {*made}
        super().__post_init__()

    def hidden(self) -> list[str]:
        return ["c_strerror", "c_strlen"]

    def about(self) -> Iterator[str]:
        yield from comment(
            f"{self.library.name}: compiled by mutadc. Needs NVIDIA's driver; no Python. Fortran 2018.",
            "",
            "Arrays are in the memory of a device, and handed over as structs that point to them. Python's"
            " are in C order unless said otherwise, the last axis the fastest; in Fortran the first is. So:",
            f"  {self.own('transposed')}(a): axes reversed, u[i, j] of Python is a(j + 1, i + 1). Parameters"
            " in C order take it.",
            f"  {self.own('array')}(a): axes as they are, u[i, j] of Python is a(i + 1, j + 1). Parameters"
            " in Fortran order, or of any strides, take it.",
            "Both take addresses alone: `a` is an array of the device (CUDA Fortran), or one within"
            " use_device_addr of OpenMP or host_data of OpenACC. The name of a struct and _of: elements at an"
            " address, in C order.",
            "",
            f"{self.own('open')} is needed once for each context. Work is put on the stream that a call"
            " names (c_null_ptr: the default one), and a call may return before it is done. A function that"
            " returns other than 0 has failed: iand(status, 255) is the kind of the failure, and"
            f" {self.own('strerror')}(status) has its words. The `optional` may be left out. Unsigned"
            " integers of C are signed ones here.",
            "",
            "f_alloc is f with memory of the driver's pool. The header says what this file leaves out.",
            indent="",
        )  # fmt: skip

    def helpers(self) -> Iterator[tuple[str, list[str]]]:
        return ((own, listed) for own, listed in super().helpers() if own != "values")

    def converted(self, dtype: str, rank: int) -> Iterator[str]:
        yield from self.struct_of_array(dtype, rank)
        yield from self.struct_of_address(dtype, rank)

    def struct_of_address(self, dtype: str, rank: int) -> Iterator[str]:
        struct = self.struct(dtype, rank)
        extents = [f"n_{d}" for d in range(rank)]
        what = FORTRAN_TYPE[C_TYPE[dtype]]
        yield from comment(
            f"Elements {what} at an address of the device, the last axis the fastest."
        )
        yield from statement(f"function {struct}_of(", ["data", *extents], ") result(made)", "    ")
        yield "        type(c_ptr), intent(in) :: data"
        for extent in extents:
            yield f"        integer(c_int64_t), intent(in) :: {extent}"
        yield f"        type({struct}) :: made"
        yield "        made%data = data"
        for d, extent in enumerate(extents):
            yield f"        made%shape({d + 1}) = {extent}"
            yield f"        made%strides({d + 1}) = {' * '.join(extents[d + 1 :]) or '1'}"
        yield f"    end function {struct}_of"
        yield ""

    def types(self) -> Iterator[str]:
        yield from comment("The kernels in one context; its words are the library's own.")
        yield f"    type, bind(c) :: {self.own('device')}"
        yield f"        type(c_ptr) :: words({self.library.device_words}) = c_null_ptr"
        yield f"    end type {self.own('device')}"
        yield ""
        yield from super().types()

    def memory_of_c(self) -> Iterator[str]:
        """There is none; instead what has to do with the device."""
        kinds = {
            "stream": "type(c_ptr), value",
            "handle": "type(c_ptr), value",
            "bytes": "integer(c_int64_t), value",
        }
        for word, (told, more) in FUNCTIONS.items():
            name = self.own(word)
            changed = "intent(in)" if "stream" in more else "intent(inout)"
            yield from comment(told, indent="        ")
            yield from statement(f"function {name}(", ["device", *more], ") &", "        ")
            yield f'                bind(c, name="{name}") result(status)'
            yield "            import"
            yield f"            type({self.own('device')}), {changed} :: device"
            for one in more:
                block = "type(c_ptr), value" if word == "release" else "type(c_ptr), intent(out)"
                yield f"            {kinds.get(one, block)} :: {one}"
            yield "            integer(c_int) :: status"
            yield f"        end function {name}"
            yield ""

    def memory(self) -> Iterator[str]:
        yield from ()

    def of_memory(self, function: CFunction) -> dict[str, str]:
        return super().of_memory(function) if function.sized else {}

    def about_memory(self, function: CFunction) -> Iterator[str]:
        if function.sized:
            yield (
                f"  work: {function.symbol}_worksize(...) bytes of the device at a multiple of 64,"
                " c_null_ptr for none"
            )
        else:
            yield "  Its memory is of the driver's pool, for the time of the call."
            if function.has_arrays:
                yield f"  Result arrays are blocks of it, for {self.own('release')}."

    def wrapper(self, function: CFunction, shown: str) -> Iterator[str]:
        """None where a call takes its memory itself."""
        return super().wrapper(function, shown) if function.sized else iter(())

    def about_wrapper(self, function: CFunction) -> str:
        more = f" Result arrays lie in `owner`: {self.own('release')} gives it back."
        return f"with memory of the driver's pool.{more if function.has_arrays else ''}"

    def called_with_area(
        self, function: CFunction, shown: str, names: dict[str, str]
    ) -> Iterator[str]:
        release = f"{self.own('release')}(device, stream, area)"
        yield "        type(c_ptr) :: area"
        yield "        integer(c_int) :: released"
        yield from self.asked_size(function, shown, names)
        yield "        area = c_null_ptr"
        yield "        status = 0"
        yield f"        if (work_bytes > 0) status = {self.own('allocate')}(device, stream, work_bytes, area)"
        if function.has_arrays:
            yield "        owner = c_null_ptr"
        yield "        if (status /= 0) return"
        given = [*self.FIRST, *(names[p.name] for p in function.parameters)]
        yield from statement(f"status = {shown}(", [*given, "area", "work_bytes"], ")", "        ")
        if function.has_arrays:
            yield "        if (status == 0) then"
            yield "            owner = area"
            yield "            return"
            yield "        end if"
        yield f"        if (c_associated(area)) released = {release}"
