"""Kernels from textual IR, compiled, loaded and called through ctypes."""

from __future__ import annotations

import ctypes
import itertools
import re
from dataclasses import dataclass, field
from typing import Any

import llvmlite.binding as llvm
import numpy as np
import pytest
from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.parser import Parser

from mutad.compiler.codegen.kernel_memory import KernelMemory
from mutad.compiler.codegen.kernel_module import KernelText
from mutad.compiler.codegen.llvm_module import assembly, optimize_and_emit
from mutad.compiler.codegen.module_to_llvm import kernel_text
from mutad.dialects.ad import Ad
from mutad.dialects.array import Array
from mutad.dialects.special import Special
from mutad.runtime.target import LEVELS, Target

_numbers = itertools.count()
_keep: list[Any] = []
SCALARS = {"i1": ctypes.c_bool, "i32": ctypes.c_int32, "i64": ctypes.c_int64, "index": ctypes.c_int64,
           "f32": ctypes.c_float, "f64": ctypes.c_double}  # fmt: skip
DTYPES = {
    "i1": np.bool_,
    "i32": np.int32,
    "i64": np.int64,
    "index": np.int64,
    "f32": np.float32,
    "f64": np.float64,
}


@dataclass(frozen=True)
class Fast:
    fastmath: bool = True
    opt: int = 3
    parallel: bool = False
    target: None = None


@dataclass(frozen=True)
class Exact:
    fastmath: bool = False
    opt: int = 3
    parallel: bool = False
    target: None = None


def parse(source: str) -> ModuleOp:
    context = Context()
    for name, dialect in get_all_dialects().items():
        context.register_dialect(name, dialect)
    context.load_dialect(Array)
    context.load_dialect(Ad)
    context.load_dialect(Special)
    module = Parser(context, source).parse_module()
    module.verify()
    return module


def external_addresses(symbols: dict[str, str]) -> dict[str, int]:
    """Where each external symbol of a kernel is in this process."""
    from scipy.linalg import cython_blas

    libc, libm = ctypes.CDLL(None), ctypes.CDLL("libm.so.6")
    ctypes.pythonapi.PyCapsule_GetName.restype = ctypes.c_char_p
    ctypes.pythonapi.PyCapsule_GetName.argtypes = [ctypes.py_object]
    ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
    ctypes.pythonapi.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    found: dict[str, int] = {}
    for symbol, origin in symbols.items():
        if origin == "blas":
            capsule = cython_blas.__pyx_capi__[symbol.removeprefix("mutad_")]
            name = ctypes.pythonapi.PyCapsule_GetName(capsule)
            found[symbol] = ctypes.pythonapi.PyCapsule_GetPointer(capsule, name)
            continue
        library = {"libm": libm, "libc": libc}.get(origin) or ctypes.CDLL("libmvec.so.1")
        function = getattr(library, symbol.removeprefix("mutad_libc_"))
        address = ctypes.cast(function, ctypes.c_void_p).value
        assert address is not None
        found[symbol] = address
    return found


@dataclass
class Outcome:
    status: int
    results: list[Any]
    site: int
    payload: list[int]
    context: list[int] = field(default_factory=list)


class Kernel:
    """A compiled kernel; call it with NumPy arrays and scalars."""

    def __init__(
        self,
        source: str,
        *,
        fastmath: bool = False,
        memory: KernelMemory = KernelMemory.SYSTEM,
    ) -> None:
        module = parse(source)
        self.function = next(iter(module.body.block.ops))
        self.kernel: KernelText = kernel_text(
            module, Fast() if fastmath else Exact(), memory=memory
        )
        self.text = re.sub(
            r"define internal i32 @kernel\(", "define i32 @kernel(", self.kernel.module()
        )
        object_code = optimize_and_emit(self.text)
        builder = llvm.JITLibraryBuilder().add_object_img(object_code).export_symbol("kernel")
        for symbol, address in external_addresses(self.kernel.symbols).items():
            builder.import_symbol(symbol, address)
        jit = llvm.create_lljit_compiler()
        self.tracker = builder.link(jit, f"test{next(_numbers)}")
        _keep.extend((jit, self.tracker))
        self.address = self.tracker["kernel"]
        self.print_callback: Any = None

    @property
    def assembly(self) -> str:
        """For a CPU with AVX2, whichever we run on."""
        return assembly(self.text, target=Target("x86-64-v3", LEVELS["x86-64-v3"]))

    def __call__(self, *arguments: Any, context: Any = None) -> Outcome:
        function_type = self.function.function_type
        context = context or (ctypes.c_int64 * 36)()
        if self.print_callback is not None:
            context[8] = ctypes.cast(self.print_callback, ctypes.c_void_p).value
        passed: list[Any] = [ctypes.addressof(context)]
        types: list[Any] = [ctypes.c_void_p]
        for value, type_ in zip(arguments, function_type.inputs, strict=True):
            if isinstance(type_, MemRefType):
                assert value.dtype == DTYPES[str(type_.element_type)], value.dtype
                passed += [
                    value.ctypes.data,
                    *value.shape,
                    *(s // value.itemsize for s in value.strides),
                ]
                types += [ctypes.c_void_p] + [ctypes.c_int64] * (2 * value.ndim)
            else:
                passed.append(value)
                types.append(SCALARS[str(type_)])
        slots = sum(
            1 + 2 * t.get_num_dims() if isinstance(t, MemRefType) else 1
            for t in function_type.outputs
        )
        results = (ctypes.c_int64 * max(1, slots))()
        call = ctypes.CFUNCTYPE(ctypes.c_int32, *types, ctypes.c_void_p)(self.address)
        status = call(*passed, ctypes.addressof(results))
        values: list[Any] = []
        slot = 0
        for type_ in function_type.outputs if status == 0 else ():
            at = ctypes.addressof(results) + 8 * slot
            if not isinstance(type_, MemRefType):
                values.append(SCALARS[str(type_)].from_address(at).value)
                slot += 1
                continue
            rank, dtype = type_.get_num_dims(), np.dtype(DTYPES[str(type_.element_type)])
            fields = [results[slot + k] for k in range(1 + 2 * rank)]
            shape, strides = fields[1 : 1 + rank], [s * dtype.itemsize for s in fields[1 + rank :]]
            values.append(view_at(fields[0], shape, strides, dtype))
            slot += 1 + 2 * rank
        return Outcome(
            status, values, context[10], list(context)[12 : 12 + context[11]], list(context)
        )


def view_at(
    address: int, shape: list[int], strides: list[int], dtype: np.dtype[Any]
) -> np.ndarray[Any, Any]:
    """A copy of the array at an address."""
    if 0 in shape:
        return np.empty(shape, dtype)
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True)) + dtype.itemsize
    memory = (ctypes.c_char * (high - low)).from_address(address + low)
    return np.ndarray(shape, dtype, memory, -low, strides).copy()


@pytest.fixture(scope="session")
def compile_kernel():
    """Compile textual IR; each text once."""
    known: dict[tuple[str, bool, KernelMemory], Kernel] = {}

    def make(
        source: str, *, fastmath: bool = False, memory: KernelMemory = KernelMemory.SYSTEM
    ) -> Kernel:
        key = source, fastmath, memory
        if key not in known:
            known[key] = Kernel(source, fastmath=fastmath, memory=memory)
        return known[key]

    return make
