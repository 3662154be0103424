"""Products of matrices by cuBLAS, where it is installed: its functions, and what compiled code calls.

A launch of a product's kernel says what it multiplies (`REQUEST`). Where cuBLAS has begun and takes the
layouts, it does that; else the kernel is launched. cuBLAS reads columns: by rows, `c = a b` is `c' = b' a'`,
each matrix with its rows as columns, and a factor that lies the other way is transposed. A matrix whose
elements have unit stride along no axis is the kernel's, and so are products without a term.

Two runs have the same bits: there is one stream, the workspace is ours, and cuBLAS adds nothing atomically.
Single precision is that (no TF32). `MUTAD_CUBLAS=0` in the environment leaves all to kernels.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from glob import escape, glob
from typing import TYPE_CHECKING, Any

import numpy as np

from .cuda_error import CudaError
from .device_text import DRIVER, GEMMS, HANDLE, PRODUCTS, TABLE, put_word, word
from .keys import address_of

if TYPE_CHECKING:
    from .device import Driver

POINTER, NUMBER, SIZE = ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t

FUNCTIONS = {
    "cublasCreate_v2": (POINTER,),
    "cublasDestroy_v2": (POINTER,),
    "cublasSetStream_v2": (POINTER, POINTER),
    "cublasSetWorkspace_v2": (POINTER, POINTER, SIZE),
    "cublasSetAtomicsMode": (POINTER, NUMBER),
}
"""What Python code calls, with the kinds of arguments."""

WORKSPACE = 1 << 25
"""Bytes: as many as cuBLAS asks for itself on the largest devices."""

NO_ATOMICS = 0

VARIABLE = "MUTAD_CUBLAS"

REQUEST = (
    *("size", "accumulate", "n", "m", "k"),
    *("a", "a0", "a1", "b", "b0", "b1", "c", "c0", "c1"),
)
"""The words that say what is multiplied: bytes of an element, extents, addresses and strides."""


def find() -> tuple[dict[str, int], str]:
    """The addresses of cuBLAS's functions; without, why not."""
    if os.environ.get(VARIABLE) == "0":
        return {}, f"{VARIABLE}=0 is set"
    failed = ""
    for path in places():
        try:
            for beside in glob(f"{escape(os.path.dirname(path))}/libcublasLt.so.*"):
                ctypes.CDLL(beside, mode=ctypes.RTLD_GLOBAL)
            library = ctypes.CDLL(path)
            names = (*FUNCTIONS, *GEMMS)
            return {n: ctypes.cast(library[n], POINTER).value or 0 for n in names}, ""
        except (OSError, AttributeError) as error:
            failed = failed or str(error)
    return {}, failed or "libcublas is not installed: pip install nvidia-cublas"


def places() -> Iterator[str]:
    """In packages, then in a toolkit, then where the system looks."""
    for path in sys.path:
        yield from sorted(glob(f"{escape(path)}/nvidia/*/lib/libcublas.so.*"), reverse=True)
    for variable in ("CUDA_HOME", "CUDA_PATH"):
        if variable in os.environ:
            yield from glob(f"{escape(os.environ[variable])}/lib64/libcublas.so.*[0-9]")
    yield from sorted(glob("/usr/local/cuda*/lib64/libcublas.so.*[0-9]"), reverse=True)


def loaded_words() -> str:
    """What is multiplied, in registers of these names."""
    lines = [
        f"""  %{name}.at = getelementptr i64, ptr %request, i64 {k}
  %{name} = load {"ptr" if name in "abc" else "i64"}, ptr %{name}.at
"""
        for k, name in enumerate(REQUEST)
    ]
    return "".join(lines)


TEXT = f"""
@mutad_gemm_64 = internal constant [2 x double] [double 0.0, double 1.0]
@mutad_gemm_32 = internal constant [2 x float] [float 0.0, float 1.0]
declare i64 @llvm.smax.i64(i64, i64)

; How far apart lines of elements of unit stride are; 0 where that is no such matrix.
define internal i64 @leading(i64 %lines, i64 %length, i64 %step, i64 %unit) {{
  %short = icmp sle i64 %length, 1
  %beside = icmp eq i64 %unit, 1
  %dense = or i1 %short, %beside
  %single = icmp sle i64 %lines, 1
  %least = call i64 @llvm.smax.i64(i64 %length, i64 1)
  %apart = select i1 %single, i64 %least, i64 %step
  %wide = icmp sge i64 %apart, %least
  %fits = icmp sle i64 %apart, 2147483647
  %good = and i1 %dense, %wide
  %all = and i1 %good, %fits
  %found = select i1 %all, i64 %apart, i64 0
  ret i64 %found
}}

define internal i1 @countable(i64 %n) {{
  %some = icmp sgt i64 %n, 0
  %fits = icmp sle i64 %n, 2147483647
  %both = and i1 %some, %fits
  ret i1 %both
}}

define i32 @mutad_device_product(ptr %kernel, i64 %blocks, ptr %parameters, ptr %request) {{
{word(HANDLE, "handle", "ptr")}
  %begun = icmp ne ptr %handle, null
  br i1 %begun, label %look, label %plain
plain:
  %own = call i32 @mutad_device_launch(ptr %kernel, i64 %blocks, ptr %parameters)
  ret i32 %own
look:
{loaded_words()}
  %c.rows = call i64 @leading(i64 %n, i64 %m, i64 %c0, i64 %c1)
  %c.columns = call i64 @leading(i64 %m, i64 %n, i64 %c1, i64 %c0)
  %a.rows = call i64 @leading(i64 %n, i64 %k, i64 %a0, i64 %a1)
  %a.columns = call i64 @leading(i64 %k, i64 %n, i64 %a1, i64 %a0)
  %b.rows = call i64 @leading(i64 %k, i64 %m, i64 %b0, i64 %b1)
  %b.columns = call i64 @leading(i64 %m, i64 %k, i64 %b1, i64 %b0)
  %by.columns = icmp eq i64 %c.rows, 0
  %a.turned = icmp eq i64 %a.rows, 0
  %b.turned = icmp eq i64 %b.rows, 0
  %ldc = select i1 %by.columns, i64 %c.columns, i64 %c.rows
  %lda = select i1 %a.turned, i64 %a.columns, i64 %a.rows
  %ldb = select i1 %b.turned, i64 %b.columns, i64 %b.rows
  %c.good = icmp ne i64 %ldc, 0
  %a.good = icmp ne i64 %lda, 0
  %b.good = icmp ne i64 %ldb, 0
  %ab.good = and i1 %a.good, %b.good
  %abc.good = and i1 %ab.good, %c.good
  %n.good = call i1 @countable(i64 %n)
  %m.good = call i1 @countable(i64 %m)
  %k.good = call i1 @countable(i64 %k)
  %nm.good = and i1 %n.good, %m.good
  %nmk.good = and i1 %nm.good, %k.good
  %good = and i1 %abc.good, %nmk.good
  br i1 %good, label %call, label %plain
call:
  %a.op = xor i1 %a.turned, %by.columns
  %b.op = xor i1 %b.turned, %by.columns
  %first.op = select i1 %by.columns, i1 %a.op, i1 %b.op
  %second.op = select i1 %by.columns, i1 %b.op, i1 %a.op
  %op1 = zext i1 %first.op to i32
  %op2 = zext i1 %second.op to i32
  %rows = select i1 %by.columns, i64 %n, i64 %m
  %columns = select i1 %by.columns, i64 %m, i64 %n
  %first = select i1 %by.columns, ptr %a, ptr %b
  %second = select i1 %by.columns, ptr %b, ptr %a
  %first.ld = select i1 %by.columns, i64 %lda, i64 %ldb
  %second.ld = select i1 %by.columns, i64 %ldb, i64 %lda
  %rows32 = trunc i64 %rows to i32
  %columns32 = trunc i64 %columns to i32
  %k32 = trunc i64 %k to i32
  %ld1 = trunc i64 %first.ld to i32
  %ld2 = trunc i64 %second.ld to i32
  %ld3 = trunc i64 %ldc to i32
  %double = icmp eq i64 %size, 8
  %numbers = select i1 %double, ptr @mutad_gemm_64, ptr @mutad_gemm_32
  %one = getelementptr i8, ptr %numbers, i64 %size
  %offset = mul i64 %accumulate, %size
  %beta = getelementptr i8, ptr %numbers, i64 %offset
  %which = select i1 %double, i64 0, i64 1
  %place = add i64 %which, {len(DRIVER)}
  %slot = add i64 %place, {TABLE}
  %function.at = getelementptr i64, ptr @mutad_device_state, i64 %slot
  %function = load ptr, ptr %function.at
{word(PRODUCTS, "products")}
  %more = add i64 %products, 1
{put_word(PRODUCTS, "%more", "counted")}
  %code = call i32 %function(ptr %handle, i32 %op1, i32 %op2, i32 %rows32, i32 %columns32, i32 %k32,
      ptr %one, ptr %first, i32 %ld1, ptr %second, i32 %ld2, ptr %beta, ptr %c, i32 %ld3)
  %status = call i32 @noted(i32 %code, i64 %place)
  ret i32 %status
}}
"""


class Products:
    """cuBLAS on a driver's stream, with memory of ours; CudaError where it cannot begin."""

    def __init__(self, driver: Driver, addresses: Mapping[str, int]) -> None:
        self.driver = driver
        self.call: dict[str, Callable[..., int]] = {
            name: ctypes.CFUNCTYPE(ctypes.c_int, *types)(addresses[name])
            for name, types in FUNCTIONS.items()
        }
        handle = ctypes.c_void_p()
        self.check("cublasCreate_v2", ctypes.addressof(handle))
        self.handle = handle.value or 0
        try:
            self.workspace = driver.empty((WORKSPACE,), np.uint8)
            where = address_of(self.workspace), self.workspace.nbytes
            self.check("cublasSetStream_v2", self.handle, driver.stream)
            self.check("cublasSetWorkspace_v2", self.handle, *where)
            self.check("cublasSetAtomicsMode", self.handle, NO_ATOMICS)
        except (CudaError, MemoryError):
            self.call["cublasDestroy_v2"](self.handle)
            raise
        for k, name in enumerate(GEMMS):
            driver.state[TABLE + len(DRIVER) + k] = addresses[name]
        driver.state[HANDLE] = self.handle

    def check(self, function: str, *arguments: Any) -> None:
        code = self.call[function](*arguments)
        if code:
            raise self.driver.refusal(code, function)

    @property
    def count(self) -> int:
        """Products that went to cuBLAS, or were captured."""
        return self.driver.state[PRODUCTS]

    def end(self) -> None:
        self.driver.state[HANDLE] = 0
        self.driver.check("cuStreamSynchronize", self.driver.stream)
        self.check("cublasDestroy_v2", self.handle)
