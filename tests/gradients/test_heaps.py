"""Gradients through objects that the run refers to: their fields are plain memory."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from heap_programs import PROGRAMS

import mutad


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_value_and_gradient(program: Callable[..., Any]) -> None:
    x = np.array([0.52, 0.21, 0.8, 0.1, 0.9, 0.3, 0.7])
    compiled = mutad.compile(program, grad=True, opt=1)
    np.testing.assert_allclose(compiled(x.copy()), program(x.copy()), rtol=1e-13)
    mutad.check_gradient(compiled, x)
