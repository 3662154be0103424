"""NVIDIA's assembler takes the kernels that the emulated driver runs: whatever a test compiles for it.

What the emulated driver is given as code of the host is written as PTX as well, for one of the kinds of
devices that code is likely to meet, another each day. Each kernel is assembled once in a run.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import zlib
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from device_checks import ptxas
from turns import has_turn
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from mutad.compiler.codegen.ptx import ptx_of
from mutad.compiler.kernels import host_kernels

KINDS = ("sm_80", "sm_90", "sm_100")
SEEN: set[str] = set()
"""Kernels, without their names, that were assembled in this process."""


def kind_of_today(name: str) -> str:
    return KINDS[(zlib.crc32(name.encode()) + date.today().toordinal()) % len(KINDS)]


@contextmanager
def assembled(name: str) -> Generator[list[str]]:
    """What is compiled for the emulated driver, `ptxas` takes; gives the PTX that there was."""
    kind, texts, compiled = kind_of_today(name), list[str](), host_kernels.host_text

    def host_text(kernels: Sequence[func.FuncOp], options: Any) -> Any:
        fresh = [k for k in kernels if is_new(k)]
        if fresh:
            module = ModuleOp([k.clone() for k in fresh])
            texts.append(ptx_of(module, kind, fastmath=options.fastmath))
        return compiled(kernels, options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(host_kernels, "host_text", host_text)
        yield texts
    assemble(texts, kind)


@contextmanager
def assembled_in_turn(name: str) -> Generator[None]:
    """The same for the tests whose turn it is, as `--modes` says."""
    if not has_turn(f"{name} assembled"):
        yield
        return
    with assembled(name):
        yield


def is_new(kernel: func.FuncOp) -> bool:
    """Whether no kernel was assembled that does the same."""
    text = re.sub(rf"@{kernel.sym_name.data}\b", "@", str(kernel))
    return text not in SEEN and not SEEN.add(text)


def assemble(texts: Sequence[str], kind: str) -> None:
    """Side by side: each is read by a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        running: list[subprocess.Popen[str]] = []
        for k, text in enumerate(texts):
            source = Path(folder) / f"{k}.ptx"
            source.write_text(text)
            asked = [ptxas(), f"-arch={kind}", str(source), "-o", str(source) + ".cubin"]
            pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
            running.append(subprocess.Popen(asked, text=True, **pipes))
        for text, process in zip(texts, running, strict=True):
            said, _ = process.communicate()
            assert process.returncode == 0, f"{said}\n{text}"
