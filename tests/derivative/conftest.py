"""Kernels from IR for the tests of derivatives: the harness of the code generator's tests."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def kernel() -> Callable[[str], Any]:
    """`kernel(text)` compiles the one function of a module; call the result with arrays and scalars."""
    path = Path(__file__).parents[1] / "codegen" / "conftest.py"
    spec = importlib.util.spec_from_file_location("codegen_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module.Kernel
