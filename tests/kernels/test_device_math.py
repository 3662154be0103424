"""Functions of devices, run on the CPU: errors are those that the documentation has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks import device_math
from mutad.compiler.codegen import ptx
from mutad.compiler.codegen.scalars_to_llvm import SCALAR_OPS

PAGE = Path(__file__).parents[2] / "docs" / "gpu-numbers.md"
ROWS = re.findall(r"\| `(\w+)` \| (\d\.\d) \| (\d\.\d) (?=\|)", PAGE.read_text())
TOLD = {
    **{name: float(ulp) for name, ulp, _ in ROWS},
    **{f"{name}f": float(ulp) for name, _, ulp in ROWS},
}


def test_the_page_has_all_functions() -> None:
    assert TOLD.keys() == {*device_math.FUNCTIONS, *device_math.SINGLE}


@pytest.mark.parametrize("name", [*device_math.FUNCTIONS, *device_math.SINGLE])
def test_errors_are_those_of_the_page(name: str) -> None:
    found = device_math.error(name)
    assert found <= TOLD[name] + 0.05
    assert found > TOLD[name] - 0.5


def test_functions_that_devices_lack_are_seen() -> None:
    """LLVM would end the process."""
    assert len(SCALAR_OPS) > 60
    text = """
    declare double @llvm.exp.f64(double)
    define ptx_kernel void @k(ptr addrspace(1) %p, double %x) {
      %y = call double @llvm.exp.f64(double %x)
      store double %y, ptr addrspace(1) %p
      ret void
    }
    """
    with pytest.raises(AssertionError, match=r"no device has llvm\.exp\.f64"):
        ptx.assembled(text, frozenset(), "sm_80")
