"""Functions of installed pure-Python packages, compiled along without decoration, have CPython's values."""

import copy

import numpy as np
import pytest
from third_party_cases import CALLS

from mutad import compile


@pytest.mark.parametrize("call", CALLS, ids=[f"{c.label}-{k}" for k, c in enumerate(CALLS)])
def test_value_is_cpythons(call):
    function, numbers = call.function(), call.numbers
    want = function(**copy.deepcopy(numbers))
    got = compile(function, cache=False)(**copy.deepcopy(numbers))
    assert type(got) is type(want)
    np.testing.assert_allclose(got, want, rtol=1e-12)
