"""The words of a library's device, and pieces of text that ask for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

MODULE, CONTEXT, NOTHING, FUNCTIONS = range(4)
"""Words of the device; the functions are the first of several."""
MORE = (
    *("cuInit", "cuModuleLoadData", "cuModuleGetFunction", "cuModuleUnload"),
    *("cuMemAlloc", "cuMemFree", "cuMemsetD8"),
)
"""Functions of the driver behind those that launches call."""
STREAMS = ("cublasGetStream_v2", "cublasSetStream_v2")
"""Functions of cuBLAS before those that multiply."""


@dataclass(frozen=True)
class Launching:
    """What compiled code calls to launch kernels (`mutad.runtime.device_text`)."""

    text: str
    words: Mapping[str, int]
    """The places in its state of what a call has to fill in."""
    functions: Sequence[str]
    """Of the driver, in the order of the table."""
    products: str
    """The text that hands a product to cuBLAS, or to our kernel (`mutad.runtime.device_products`)."""
    gemms: Sequence[str]
    """The functions of cuBLAS that it calls, which follow in the table."""

    @property
    def driver(self) -> tuple[str, ...]:
        """All functions of the driver that a library needs."""
        return (*self.functions, *MORE)

    @property
    def cublas(self) -> int:
        """The word of a device that is the caller's handle; the functions of cuBLAS follow."""
        return FUNCTIONS + len(self.driver)

    @property
    def cublas_functions(self) -> tuple[str, ...]:
        return (*STREAMS, *self.gemms)

    @property
    def kernels(self) -> int:
        """The first word of a device that is a kernel."""
        return self.cublas + 1 + len(self.cublas_functions)


def constant(symbol: str, data: bytes, alignment: int = 64) -> str:
    """Bytes, with a zero behind."""
    whole = data + b"\0"
    shown = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in whole)
    return f'@{symbol} = internal constant [{len(whole)} x i8] c"{shown}", align {alignment}'


def strings(symbol: str, texts: Sequence[str]) -> str:
    """A table of strings."""
    lines = [constant(f"mutad_library_{symbol}{k}", t.encode(), 1) for k, t in enumerate(texts)]
    places = ", ".join(f"ptr @mutad_library_{symbol}{k}" for k in range(len(texts)))
    table = f"[{places}]" if texts else "zeroinitializer"
    lines.append(f"@mutad_library_{symbol} = internal constant [{len(texts)} x ptr] {table}")
    return "\n".join(lines)


def field(words: int, number: int, name: str, of: str = "%device") -> str:
    """Load a word."""
    return f"""  %{name}.at = getelementptr ptr, ptr {of}, i64 {words + number}
  %{name} = load ptr, ptr %{name}.at
"""
