"""Gradients through functions of installed pure-Python packages agree with central differences."""

import numpy as np
import pytest
from third_party_cases import CALLS

from mutad import check_gradient, compile


@pytest.mark.parametrize("call", CALLS, ids=[f"{c.label}-{k}" for k, c in enumerate(CALLS)])
def test_gradient_agrees_with_differences(call):
    check_gradient(compile(grad=True, cache=False)(call.scaled()), np.ones(len(call.numbers)))
