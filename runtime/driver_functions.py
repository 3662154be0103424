"""The functions of NVIDIA's driver that Python code calls, and the numbers that these take and give."""

from __future__ import annotations

import ctypes
from typing import Any

from .device_text import (
    CONDITIONAL,
    DRIVER,
)

POINTER, NUMBER, SIZE, HANDLE = (
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.c_size_t,
    ctypes.c_uint64,
)


FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "cuInit": (ctypes.c_uint,),
    "cuDeviceGetCount": (POINTER,),
    "cuDeviceGet": (POINTER, NUMBER),
    "cuDeviceGetAttribute": (POINTER, NUMBER, NUMBER),
    "cuDevicePrimaryCtxRetain": (POINTER, NUMBER),
    "cuCtxSetCurrent": (POINTER,),
    "cuCtxGetCurrent": (POINTER,),
    "cuDeviceGetDefaultMemPool": (POINTER, NUMBER),
    "cuMemPoolSetAttribute": (POINTER, NUMBER, POINTER),
    "cuMemPoolTrimTo": (POINTER, SIZE),
    "cuStreamCreate": (POINTER, ctypes.c_uint),
    "cuStreamSynchronize": (POINTER,),
    "cuStreamWaitEvent": (POINTER, POINTER, ctypes.c_uint),
    "cuEventCreate": (POINTER, ctypes.c_uint),
    "cuEventRecord": (POINTER, POINTER),
    "cuModuleLoadDataEx": (POINTER, POINTER, ctypes.c_uint, POINTER, POINTER),
    "cuModuleGetFunction": (POINTER, POINTER, ctypes.c_char_p),
    "cuModuleUnload": (POINTER,),
    "cuMemcpyHtoDAsync": (HANDLE, POINTER, SIZE, POINTER),
    "cuMemcpyDtoHAsync": (POINTER, HANDLE, SIZE, POINTER),
    "cuMemcpyDtoDAsync": (HANDLE, HANDLE, SIZE, POINTER),
    "cuMemsetD8Async": (HANDLE, ctypes.c_uint8, SIZE, POINTER),
    "cuPointerGetAttribute": (POINTER, NUMBER, HANDLE),
    "cuGetErrorName": (NUMBER, POINTER),
}
"""What Python code calls of a driver, with the kinds of arguments."""


NAMES = tuple(dict.fromkeys((*FUNCTIONS, *DRIVER)))
"""All functions that a driver has to have."""


CONDITIONAL_SINCE = {
    **dict.fromkeys(CONDITIONAL, 12030),
    "cuGraphCreate": 12000,
    "cuStreamGetCaptureInfo": 12000,
}
"""The version of CUDA whose form of a function is called."""


NON_BLOCKING, NO_TIMING = 1, 2
"""Flags: a stream of its own, an event that keeps no time."""


MAJOR, MINOR, POOLS, RELEASE_THRESHOLD = 75, 76, 115, 4
"""Attributes: the two numbers of a device's kind, whether it has pools, how many bytes its pool keeps."""


MULTIPROCESSORS, CLOCK = 16, 13
"""Attributes: how many multiprocessors a device has, and their kilohertz."""


MEMORY_TYPE, ORDINAL, OF_DEVICE = 2, 9, 2
"""Attributes of memory: whose it is, and on which device; that it is a device's."""


STICKY = {
    *(700, 701, 702, 709, 710),
    *range(714, 721),
}
"""Errors after which a context is of no use: illegal addresses, traps, time-outs."""


LOST = (
    ": nothing runs on this device any more in this process, and its arrays are lost: start it anew"
)
"""What follows from these."""


ERROR_LOG, ERROR_LOG_BYTES, LOG = 5, 6, 8192
"""Options where modules are loaded: where the compiler says what is wrong, and in how many bytes."""
