"""Devices of NVIDIA: `mutad.cuda.is_available()` is true where functions run on one, and says why not.

::

    >>> print(mutad.cuda.is_available())
    no: there is no NVIDIA driver (libcuda.so.1)

Within `mutad.cuda.emulated()` there is a device that only seems to be one: the driver's functions, over
memory of the host. It is slow, and strict: for tests of what runs on devices where there is none.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

from .runtime.cuda import Availability, CudaError, has_cublas, is_available

__all__ = ["Availability", "CudaError", "emulated", "has_cublas", "is_available"]


def emulated(*, cublas: bool = False) -> AbstractContextManager[Any]:
    """Arrays and calls are an emulated device's meanwhile; what it is given is the emulated driver.

    With `cublas` products of matrices go to what stands for cuBLAS there.
    """
    from .runtime.emulated_driver import emulated

    return emulated(cublas=cublas)
