"""Gradients through functions of installed pure-Python packages agree with central differences."""

import numpy as np
import pytest
from third_party_cases import CALLS, KERNELS

from mutad import check_gradient, compile


@pytest.mark.parametrize("call", CALLS, ids=[f"{c.label}-{k}" for k, c in enumerate(CALLS)])
def test_gradient_agrees_with_differences(call):
    check_gradient(compile(grad=True, cache=False)(call.scaled()), np.ones(len(call.numbers)))


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda k: k.path)
def test_kernels_have_cpythons_values_and_agree_with_differences(kernel):
    function = compile(kernel.function(), grad=True, cache=False)
    check_gradient(function, *kernel.made(), wrt=kernel.wrt)
