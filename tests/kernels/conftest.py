"""Tests on arrays of a device: the emulated one, and with `-m gpu` NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from assembled_kernels import assembled_in_turn
from device_checks import blocks_in_use

import mutad
from mutad.runtime.emulated_driver import EmulatedDriver


@pytest.fixture(autouse=True)
def kernels_are_assembled(request: pytest.FixtureRequest) -> Iterator[None]:
    """`ptxas` takes what tests run on the emulated device; today for those that have their turn."""
    with assembled_in_turn(request.node.nodeid):
        yield


@pytest.fixture(params=["emulated", pytest.param("cuda", marks=pytest.mark.gpu)])
def on_a_device(request: Any) -> Iterator[EmulatedDriver | None]:
    """Arrays and calls are this device's; skipped, with what is missing, where there is none."""
    if request.param == "cuda":
        if not (available := mutad.cuda.is_available()):
            pytest.skip(available.reason)
        yield None
        return
    with mutad.cuda.emulated() as found:
        yield found
        blocks_in_use(found)
        assert not found.unexpected
