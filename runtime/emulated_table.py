"""What there is of the emulated driver: its functions, their arguments, and when they may be called."""

from __future__ import annotations

import ctypes

from . import device_products, device_text, driver_functions
from .driver_functions import HANDLE, NUMBER, POINTER, SIZE
from .emulated_functions import (
    CAPTURE_UNSUPPORTED,
    INVALID_CONTEXT,
    INVALID_VALUE,
)

GIVEN = 1 << 16
"""So many blocks may be given back between two other calls."""


FREE = f"""
@mutad_given = external global i64
@mutad_given_count = external global i64
@mutad_context = external global i64
@mutad_captured = external global i64
define i32 @mutad_emulated_free(i64 %block, ptr %stream) {{
  %context = load i64, ptr @mutad_context
  %ours = icmp ne i64 %context, 0
  br i1 %ours, label %here, label %nowhere
here:
  %captured = load i64, ptr @mutad_captured
  %own = icmp ne i64 %captured, 0
  br i1 %own, label %unsupported, label %free
unsupported:
  ret i32 {CAPTURE_UNSUPPORTED}
free:
  %k = atomicrmw add ptr @mutad_given_count, i64 1 acq_rel
  %room = icmp ult i64 %k, {GIVEN}
  br i1 %room, label %note, label %lost
note:
  %at = getelementptr {{ i64, ptr }}, ptr @mutad_given, i64 %k
  %stream.at = getelementptr i8, ptr %at, i64 8
  store i64 %block, ptr %at
  store ptr %stream, ptr %stream.at
  ret i32 0
lost:
  ret i32 {INVALID_VALUE}
nowhere:
  ret i32 {INVALID_CONTEXT}
}}
define i32 @mutad_emulated_get(ptr %place) {{
  %now = load i64, ptr @mutad_context
  store i64 %now, ptr %place
  ret i32 0
}}
define i32 @mutad_emulated_set(i64 %context) {{
  store i64 %context, ptr @mutad_context
  ret i32 0
}}
"""
"""What is called where an array goes: `cuMemFreeAsync`, `cuCtxGetCurrent`, `cuCtxSetCurrent`."""


OF_MACHINE_CODE = {
    "cuMemFreeAsync": "mutad_emulated_free",
    "cuCtxGetCurrent": "mutad_emulated_get",
    "cuCtxSetCurrent": "mutad_emulated_set",
}


MORE = {
    "cuLaunchKernel": (POINTER, *[ctypes.c_uint] * 7, POINTER, POINTER, POINTER),
    "cuMemAllocAsync": (POINTER, SIZE, POINTER),
    "cuMemsetD16Async": (HANDLE, ctypes.c_uint16, SIZE, POINTER),
    "cuMemsetD32Async": (HANDLE, ctypes.c_uint32, SIZE, POINTER),
    "cuStreamBeginCapture": (POINTER, NUMBER),
    "cuStreamEndCapture": (POINTER, POINTER),
    "cuGraphInstantiateWithFlags": (POINTER, POINTER, ctypes.c_uint64),
    "cuGraphLaunch": (POINTER, POINTER),
    "cuGraphExecDestroy": (POINTER,),
    "cuGraphDestroy": (POINTER,),
    "cuGraphCreate": (POINTER, ctypes.c_uint),
    "cuGraphConditionalHandleCreate": (POINTER, POINTER, POINTER, ctypes.c_uint, ctypes.c_uint),
    "cuGraphAddNode": (POINTER, POINTER, POINTER, POINTER, SIZE, POINTER),
    "cuStreamBeginCaptureToGraph": (POINTER, POINTER, POINTER, POINTER, SIZE, NUMBER),
    "cuStreamGetCaptureInfo": (POINTER,) * 6,
}
"""What compiled code alone calls."""


CUBLAS = {
    **device_products.FUNCTIONS,
    **dict.fromkeys(
        device_text.GEMMS,
        (POINTER, *[NUMBER] * 5, POINTER, HANDLE, NUMBER, HANDLE, NUMBER, POINTER, HANDLE, NUMBER),
    ),
}
"""What there is of cuBLAS."""


BEFORE = {"cuInit", "cuGetErrorName", "cuDriverGetVersion"}
"""Functions that may be called before the driver has begun."""


WITHOUT = {
    *BEFORE, "cuDeviceGetCount", "cuDeviceGet", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain",
    "cuDeviceGetDefaultMemPool", "cuCtxSetCurrent", "cuCtxGetCurrent", "cuMemPoolSetAttribute",
    "cuMemPoolTrimTo", "cuPointerGetAttribute",
}  # fmt: skip
"""Functions that need no context."""


IN_CONTEXT = {*driver_functions.FUNCTIONS, *MORE, *CUBLAS} - WITHOUT


CAPTURED = {
    *device_text.GEMMS, "cuLaunchKernel", "cuMemsetD8Async", "cuMemsetD16Async", "cuMemsetD32Async",
    "cuMemcpyDtoDAsync", "cuStreamEndCapture", "cuGetErrorName", "cuStreamGetCaptureInfo",
}  # fmt: skip
"""Functions that may be called while a stream is captured (copies of memory that is paged may not)."""
