"""What the emulated driver and the graphs with conditions share: kernels that are loaded, and its errors."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

INVALID_VALUE, OUT_OF_MEMORY, INVALID_HANDLE, ILLEGAL_ADDRESS, UNKNOWN = 1, 2, 400, 700, 999
NOT_INITIALIZED, INVALID_DEVICE, INVALID_PTX, NOT_FOUND, MISALIGNED = 3, 101, 218, 500, 716
INVALID_CONTEXT, CAPTURE_UNSUPPORTED, CAPTURE_INVALID = 201, 900, 901
ERRORS = {
    INVALID_VALUE: b"CUDA_ERROR_INVALID_VALUE",
    OUT_OF_MEMORY: b"CUDA_ERROR_OUT_OF_MEMORY",
    NOT_INITIALIZED: b"CUDA_ERROR_NOT_INITIALIZED",
    INVALID_DEVICE: b"CUDA_ERROR_INVALID_DEVICE",
    INVALID_PTX: b"CUDA_ERROR_INVALID_PTX",
    NOT_FOUND: b"CUDA_ERROR_NOT_FOUND",
    MISALIGNED: b"CUDA_ERROR_MISALIGNED_ADDRESS",
    INVALID_CONTEXT: b"CUDA_ERROR_INVALID_CONTEXT",
    CAPTURE_UNSUPPORTED: b"CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED",
    INVALID_HANDLE: b"CUDA_ERROR_INVALID_HANDLE",
    ILLEGAL_ADDRESS: b"CUDA_ERROR_ILLEGAL_ADDRESS",
    CAPTURE_INVALID: b"CUDA_ERROR_STREAM_CAPTURE_INVALIDATED",
    UNKNOWN: b"CUDA_ERROR_UNKNOWN",
}


@dataclass
class Function:
    """A kernel of a loaded module."""

    name: str
    run: Callable[[Any, int, int], None]
    kinds: list[str]
    """LLVM's types of its parameters."""
    ranks: list[int] = field(default_factory=list[int])
    """How many extents follow each pointer."""
    sizes: list[int] = field(default_factory=list[int])
    """Bytes of an element of each."""
    ir: str = ""
    """The kernels of its module, as the compiler prints them."""


@dataclass
class KeptCode:
    """The code of a module is there as long as its functions are."""

    tracker: Any

    def __call__(self, parameters: Any, blocks: int, shift: int) -> None: ...


@dataclass
class Refused(Exception):
    """An error that the driver answers with."""

    code: int
