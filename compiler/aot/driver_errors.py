"""What NVIDIA's driver refuses, as statuses of a library."""

from __future__ import annotations

from .statuses import DEVICE_ERROR, Statuses

OUT_OF_MEMORY = 2
ERRORS = {
    1: "INVALID_VALUE", 3: "NOT_INITIALIZED", 4: "DEINITIALIZED", 46: "DEVICE_UNAVAILABLE",
    100: "NO_DEVICE", 101: "INVALID_DEVICE", 200: "INVALID_IMAGE", 201: "INVALID_CONTEXT",
    209: "NO_BINARY_FOR_GPU", 214: "ECC_UNCORRECTABLE", 218: "INVALID_PTX", 220: "NVLINK_UNCORRECTABLE",
    221: "JIT_COMPILER_NOT_FOUND", 222: "UNSUPPORTED_PTX_VERSION", 304: "OPERATING_SYSTEM",
    400: "INVALID_HANDLE", 500: "NOT_FOUND", 700: "ILLEGAL_ADDRESS", 701: "LAUNCH_OUT_OF_RESOURCES",
    702: "LAUNCH_TIMEOUT", 709: "CONTEXT_IS_DESTROYED", 710: "ASSERT", 714: "HARDWARE_STACK_ERROR",
    715: "ILLEGAL_INSTRUCTION", 716: "MISALIGNED_ADDRESS", 717: "INVALID_ADDRESS_SPACE", 718: "INVALID_PC",
    719: "LAUNCH_FAILED", 800: "NOT_PERMITTED", 801: "NOT_SUPPORTED", 802: "SYSTEM_NOT_READY",
    803: "SYSTEM_DRIVER_MISMATCH", 900: "STREAM_CAPTURE_UNSUPPORTED", 901: "STREAM_CAPTURE_INVALIDATED",
    906: "STREAM_CAPTURE_IMPLICIT", 999: "UNKNOWN",
}  # fmt: skip
"""What the driver refuses with, by its numbers."""


def refusals(name: str, statuses: Statuses) -> str:
    """From the driver's errors to statuses."""
    cases = {
        code: statuses.status(DEVICE_ERROR, f"{name}: the driver refuses: CUDA_ERROR_{e} ({code})")
        for code, e in ERRORS.items()
    }
    cases[OUT_OF_MEMORY] = statuses.status("MemoryError", f"{name}: the device has no memory left")
    other = statuses.status(DEVICE_ERROR, f"{name}: the driver refuses")
    listed = " ".join(f"i32 {code}, label %is{code}" for code in cases)
    blocks = "\n".join(f"is{code}:\n  ret i32 {status}" for code, status in cases.items())
    return f"""
define i32 @mutad_library_status(i32 %code) {{
  switch i32 %code, label %other [ i32 0, label %good {listed} ]
good:
  ret i32 0
{blocks}
other:
  ret i32 {other}
}}
"""
