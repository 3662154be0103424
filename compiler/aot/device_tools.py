"""NVIDIA's assembler and disassembler: of a package, of a toolkit on the path, or not there."""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from .linking import NoTool, ran

PTXAS = (
    "ptxas: not found, which makes machine code of a device; pip install nvidia-cuda-nvcc-cu12, or put a "
    "toolkit of CUDA on the path; PTX needs none, and the driver compiles it"
)
NVDISASM = (
    "nvdisasm: not found, which shows machine code of a device; pip install nvidia-cuda-nvdisasm, or put a "
    "toolkit of CUDA on the path"
)


def found(name: str, otherwise: str) -> str:
    """A tool's path. NoTool where it is not there."""
    path = of_packages(name) or shutil.which(name)
    if path is None:
        raise NoTool(otherwise)
    return path


def of_packages(name: str) -> str | None:
    """A tool of NVIDIA's packages for Python."""
    every = (w for p in sys.path for w in Path(p).glob(f"nvidia/*/bin/{name}"))
    return next(map(str, every), None)


def cubin_of(ptx: str, kind: str) -> bytes:
    """Machine code of a kind of device."""
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "k.ptx").write_text(ptx)
        ran([found("ptxas", PTXAS), f"-arch={kind}", "k.ptx", "-o", "k.cubin"], Path(made))
        return (Path(made) / "k.cubin").read_bytes()


def sass_of(ptx: str, kind: str) -> str:
    """The same, to read."""
    with tempfile.TemporaryDirectory() as made:
        (Path(made) / "k.cubin").write_bytes(cubin_of(ptx, kind))
        return ran([found("nvdisasm", NVDISASM), "-c", "k.cubin"], Path(made))


def require_tools() -> None:
    """RuntimeError where machine code cannot be shown."""
    try:
        found("ptxas", PTXAS)
        found("nvdisasm", NVDISASM)
    except NoTool as error:
        raise RuntimeError(str(error)) from None
