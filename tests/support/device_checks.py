"""What tests of kernels compare, and NVIDIA's assembler."""

from __future__ import annotations

import gc
import shutil
import subprocess
import sys
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from mutad.runtime.emulated_driver import EmulatedDriver


def close(found: Any, wanted: Any) -> None:
    """Sums come in another order, functions of the C library with other last bits."""
    a, b = np.asarray(found), np.asarray(wanted)
    assert a.dtype == b.dtype
    tolerance = 1e-4 if a.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@contextmanager
def nothing_is_lost(driver: EmulatedDriver) -> Generator[None]:
    """Nothing of what is emulated goes wrong meanwhile, and arrays give back their memory."""
    before = blocks_in_use(driver)
    yield
    assert not driver.unexpected
    if blocks(driver) != before:
        assert blocks_in_use(driver) == before
        assert not driver.unexpected


def blocks_in_use(driver: EmulatedDriver) -> set[int]:
    """Where there are arrays on the device, without those that garbage holds.

    Python's collector takes a tenth of a second: it looks for them where there are blocks that are new.
    """
    IN_USE.intersection_update(blocks(driver))  # others may lie where one was
    if blocks(driver) != IN_USE:
        gc.collect()
        IN_USE.clear()
        IN_USE.update(blocks(driver))
    return set(IN_USE)


IN_USE: set[int] = set()
"""The blocks that were there when the collector had looked."""


def blocks(driver: EmulatedDriver) -> set[int]:
    driver.take_back()
    return set(driver.blocks)


def ptxas() -> str:
    wheels = [w for p in sys.path for w in Path(p).glob("nvidia/*/bin/ptxas")]
    found = str(wheels[0]) if wheels else shutil.which("ptxas")
    assert found, "ptxas is missing: pip install nvidia-cuda-nvcc-cu12"
    return found


def assemble(text: str, kind: str, folder: Path) -> None:
    """`ptxas` takes it."""
    assemble_all({kind: text}, folder)


def assemble_all(texts: Mapping[str, str], folder: Path) -> None:
    """`ptxas` takes what is written for each kind of device; the same text is looked at once."""
    running: list[tuple[tuple[str, str], subprocess.Popen[str]]] = []
    for kind, text in texts.items():
        if (kind, text) in TAKEN:
            continue
        source = folder / f"{kind}.ptx"
        source.write_text(text)
        asked = [ptxas(), f"-arch={kind}", str(source), "-o", str(source) + ".cubin"]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
        running.append(((kind, text), subprocess.Popen(asked, text=True, **pipes)))
    for what, process in running:
        said, _ = process.communicate()
        assert process.returncode == 0, said
        TAKEN.add(what)


TAKEN: set[tuple[str, str]] = set()
"""Kinds, and texts that `ptxas` has taken for them."""
