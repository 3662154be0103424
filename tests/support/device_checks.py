"""What tests of kernels compare, and NVIDIA's assembler."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np


def close(found: Any, wanted: Any) -> None:
    """Sums come in another order, functions of the C library with other last bits."""
    a, b = np.asarray(found), np.asarray(wanted)
    assert a.dtype == b.dtype
    tolerance = 1e-4 if a.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def ptxas() -> str:
    wheels = [w for p in sys.path for w in Path(p).glob("nvidia/*/bin/ptxas")]
    found = str(wheels[0]) if wheels else shutil.which("ptxas")
    assert found, "ptxas is missing: pip install nvidia-cuda-nvcc-cu12"
    return found


def assemble(text: str, kind: str, folder: Path) -> None:
    """`ptxas` takes it."""
    (folder / "k.ptx").write_text(text)
    asked = [ptxas(), f"-arch={kind}", str(folder / "k.ptx"), "-o", str(folder / "k.cubin")]
    made = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
