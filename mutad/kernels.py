"""Run IR: as compiled code, called below the entries that Python code calls, or in the interpreter.

Both take a `Call` and the values of its parameters, and end in the same exceptions.
"""

from __future__ import annotations

import ctypes
import itertools
import sys
from collections.abc import Sequence
from math import prod
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp, VectorType
from xdsl.ir import Attribute

from mutad.compiler.codegen.entries.run import (
    CTX_BYTES,
    CTX_PAYLOAD,
    CTX_POLL,
    CTX_PRINT,
    CTX_RECURSION_LIMIT,
    CTX_SITE,
)
from mutad.compiler.codegen.foreign_to_llvm import C_TYPES
from mutad.compiler.codegen.function_to_llvm import CodegenOptions
from mutad.compiler.codegen.kernel_module import KernelText
from mutad.compiler.codegen.kernel_state import value_type
from mutad.compiler.codegen.llvm_module import optimize_and_emit
from mutad.compiler.codegen.module_to_llvm import functions_of, kernel_text, split_text
from mutad.compiler.interpreter import Unknown, interpret
from mutad.compiler.interpreter.memory import Memref, dtype_of, lanes_of
from mutad.compiler.program_calls import Call, count_of
from mutad.compiler.request import Options
from mutad.compiler.transforms.resolve_overlap import resolve_all
from mutad.dialects import foreign as foreign_ops
from mutad.runtime import engine, foreign, raised_exceptions, sites

PYTHON_FUNCTION = "it calls a Python function, which is not in the IR"


class World:
    """What a program asks of the world around it, as compiled code asks."""

    def exception(self, name: str, message: str, shown: list[Any]) -> BaseException:
        return raised_exceptions.exception(name, message, shown)

    def show(self, form: str, shown: list[Any]) -> None:
        print(raised_exceptions.filled(form, shown))

    def call(self, op: foreign_ops.CallOp, values: list[Any]) -> Any:
        symbol, origin = op.callee.data, op.origin.data
        if op.convention.data == "python" or origin.startswith("constant:"):
            raise Unknown(PYTHON_FUNCTION)
        address = foreign.addresses({symbol: origin}, ())[symbol]
        outcome = C_NUMBERS[C_TYPES[op.outcome.data]]
        count = op.trailing.value.data
        types = [C_NUMBERS[C_TYPES[t.data]] for t in op.types] + [ctypes.c_int32] * count
        function = ctypes.CFUNCTYPE(outcome, *types)(address)
        return function(*map(c_value, values), *[0] * count)


C_NUMBERS: dict[str, Any] = {
    "double": ctypes.c_double,
    "float": ctypes.c_float,
    "i64": ctypes.c_int64,
    "i32": ctypes.c_int32,
    "i1 zeroext": ctypes.c_bool,
    "ptr": ctypes.c_void_p,
    "void": None,
}


def c_value(value: Any) -> Any:
    """A number, or the address of an array's first element."""
    if isinstance(value, Memref):
        cells = value.root.cells
        return cells.__array_interface__["data"][0] + value.offset * cells.strides[0]
    return value.item()


def passed(value: Any) -> Any:
    """A random generator as compiled code is handed it: where its state is."""
    if isinstance(value, np.random.Generator):
        return value.bit_generator.ctypes.bit_generator.value
    return value


class Interpreted:
    """Runs calls of a module in the interpreter."""

    def __init__(self, module: ModuleOp, steps: int | None = None) -> None:
        self.module = module
        self.steps = steps

    def __call__(self, call: Call, values: Sequence[Any]) -> list[Any]:
        given = list(map(passed, values))
        first, *second = [f.sym_name.data for f in call.functions]
        found = self.run(first, given[: call.first])
        if not second:
            return found
        own = len(found) - call.kept - 1
        return found[:own] + self.run(second[0], [*found[own:-1], *given[call.first :]])

    def run(self, name: str, arguments: Sequence[Any]) -> list[Any]:
        return interpret(self.module, name, arguments, World(), self.steps)


_numbers = itertools.count()


class Compiled:
    """Runs calls of a module as machine code."""

    def __init__(self, module: ModuleOp, options: CodegenOptions | None = None) -> None:
        self.module = module
        self.options = options or Options()
        self.loaded: dict[str, tuple[KernelText, Any]] = {}

    def __call__(self, call: Call, values: Sequence[Any]) -> list[Any]:
        name = call.functions[0].sym_name.data
        if name not in self.loaded:
            self.loaded[name] = self.load(call.functions)
        kernel, tracker = self.loaded[name]
        given = list(map(passed, values))
        first = call.functions[0]
        results = room(first)
        arguments = packed(given[: call.first], argument_types(first))
        Context(kernel).call(tracker["open_kernel"], arguments, results)
        if len(call.functions) == 1:
            return read(first, results, kernel.result_slots)
        own = len(call.results) - len(result_types(call.functions[1]))
        found = read(first, results, kernel.result_slots[:own])
        second, more = call.functions[1], room(call.functions[1])
        arguments = packed(given[call.first :], argument_types(second)[call.kept :])
        Context(kernel).call(tracker["open_backward"], arguments, more, ctypes.addressof(results))
        return found + read(second, more, range(len(result_types(second))))

    def load(self, functions: Sequence[func.FuncOp]) -> tuple[KernelText, Any]:
        """Machine code of these functions and of the private ones that they may call."""
        from llvmlite import binding

        _, private = functions_of(self.module)
        module = ModuleOp([f.clone() for f in (*functions, *private)])
        resolve_all(module)
        text = (split_text if len(functions) > 1 else kernel_text)(module, self.options)
        if any("call" in site for site in text.sites):
            raise Unknown(PYTHON_FUNCTION)
        names = ("kernel", "backward")[: len(functions)]
        kept = (None, count_of(functions[-1], "kept"))
        openers = [opener(n, f, k) for n, f, k in zip(names, functions, kept, strict=False)]
        whole = "\n".join([text.module(), *openers])
        opt = self.options.opt if isinstance(self.options, Options) else 3
        code = optimize_and_emit(whole, opt, self.options.target)
        builder = binding.JITLibraryBuilder().add_object_img(code).add_current_process()
        instead = foreign.addresses(text.symbols, ())
        if {"libmvec", "vector_math"} & {*text.symbols.values()}:
            engine.load_vector_math()
        for symbol, kind in text.symbols.items():
            address = instead.get(symbol) or engine.address_of(symbol, kind)
            if address is not None:
                builder.import_symbol(symbol, address)
        for name in names:
            builder.export_symbol(f"open_{name}")
        number = next(_numbers)
        return text, builder.link(engine.linkers.of(number), f"mutad.run.{number}")


class Context:
    """The context of a call, and what compiled code calls back."""

    def __init__(self, kernel: KernelText) -> None:
        self.kernel = kernel
        self.words = (ctypes.c_int64 * (CTX_BYTES // 8))()
        self.error: BaseException | None = None
        self.poll = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(goes_on)
        kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)
        self.print = kind(self.show)
        for offset, function in ((CTX_POLL, self.poll), (CTX_PRINT, self.print)):
            self.words[offset // 8] = ctypes.cast(function, ctypes.c_void_p).value or 0
        self.words[CTX_RECURSION_LIMIT // 8] = sys.getrecursionlimit()

    def show(self, _context: int, number: int, payload: int) -> int:
        site = self.kernel.sites[number]
        try:
            if "leaves" not in site:
                sites.show(site, payload)
        except BaseException as error:
            self.error = error
            return 1
        return 0

    def call(self, address: int, arguments: bytes, results: Any, record: int | None = None) -> None:
        """Call a kernel by way of its opener; raises what it raises."""
        pointers = [ctypes.addressof(self.words), arguments, record, ctypes.addressof(results)]
        run = ctypes.CFUNCTYPE(ctypes.c_int32, *[ctypes.c_void_p] * 4)(address)
        status = run(*pointers)
        if status == 1:
            at = ctypes.addressof(self.words)
            site = self.kernel.sites[self.words[CTX_SITE // 8]]
            raise sites.exception(site, at + CTX_PAYLOAD)
        if status == 3:
            raise MemoryError
        if status:
            raise self.error or KeyboardInterrupt


def goes_on(_context: int) -> int:
    """No interrupt has come."""
    return 0


def opener(kernel: str, function: func.FuncOp, kept: int | None = None) -> str:
    """A function that calls a kernel with arguments from memory, each at a multiple of 8 bytes.

    The second half of a split gradient takes the record in the place of what is `kept`.
    """
    lines, shown, at = list[str](), ["ptr %context"], 0
    if kept is not None:
        shown.append("ptr %record")
    for type_ in argument_types(function)[kept or 0 :]:
        for kind, size in slots_of(type_):
            name = f"%a{len(lines)}"
            lines.append(f"  {name}.at = getelementptr i8, ptr %arguments, i64 {at}")
            lines.append(f"  {name} = load {kind}, ptr {name}.at, align 8")
            shown.append(f"{kind} {name}")
            at += size
    return "\n".join(
        [
            f"define i32 @open_{kernel}(ptr %context, ptr %arguments, ptr %record, ptr %results) {{",
            *lines,
            f"  %status = call i32 @{kernel}({', '.join([*shown, 'ptr %results'])})",
            "  ret i32 %status",
            "}",
        ]
    )


def slots_of(type_: Attribute) -> list[tuple[str, int]]:
    """The LLVM types of what an argument is handed over as, and how many bytes each takes."""
    if isinstance(type_, MemRefType):
        return [("ptr", 8), *[("i64", 8)] * (2 * type_.get_num_dims())]
    size = dtype_of(type_).itemsize * prod(lanes_of(type_))
    return [(value_type(type_), -8 * (-size // 8))]


def packed(values: Sequence[Any], types: Sequence[Attribute]) -> bytes:
    """Arguments in memory, as `opener` reads them."""
    found = b""
    for value, type_ in zip(values, types, strict=True):
        if isinstance(type_, MemRefType):
            rank = type_.get_num_dims()
            step = value.itemsize * prod(lanes_of(type_.element_type))
            numbers = [*value.shape[:rank], *(s // step for s in value.strides[:rank])]
            pointer = value.__array_interface__["data"][0]
            found += np.array([pointer, *numbers], np.int64).tobytes()
        else:
            raw = np.asarray(value, dtype_of(type_)).tobytes()
            found += raw + bytes(-len(raw) % 8)
    return found + bytes(8)


def argument_types(function: func.FuncOp) -> list[Attribute]:
    return [a.type for a in function.body.block.args]


NUMBERS: dict[str, Any] = {
    "b": ctypes.c_bool,
    "i1": ctypes.c_int8,
    "i2": ctypes.c_int16,
    "i4": ctypes.c_int32,
    "i8": ctypes.c_int64,
    "f4": ctypes.c_float,
    "f8": ctypes.c_double,
}


def c_type(type_: Attribute) -> Any:
    dtype = dtype_of(type_)
    return NUMBERS["b" if dtype.kind == "b" else dtype.str[1:]]


def result_types(function: func.FuncOp) -> list[Attribute]:
    last = function.body.block.last_op
    assert last is not None
    return [v.type for v in last.operands]


def words_of(type_: Attribute) -> int:
    """How many words of 8 bytes a result takes; a tape has the most."""
    if isinstance(type_, MemRefType):
        return 1 + 2 * type_.get_num_dims()
    return prod(type_.get_shape()) if isinstance(type_, VectorType) else 4


def room(function: func.FuncOp) -> Any:
    """Memory for the results of a kernel."""
    return (ctypes.c_int64 * max(1, sum(map(words_of, result_types(function)))))()


def read(function: func.FuncOp, results: Any, slots: Sequence[int]) -> list[Any]:
    """The results of a kernel: numbers, and copies of arrays."""
    found: list[Any] = []
    for type_, slot in zip(result_types(function), slots, strict=False):
        at = ctypes.addressof(results) + 8 * slot
        if isinstance(type_, MemRefType):
            found.append(array_at(at, type_))
        elif isinstance(type_, VectorType):
            lanes, kind = prod(type_.get_shape()), c_type(type_)
            numbers = [kind.from_address(at + 8 * lane).value for lane in range(lanes)]
            found.append(np.array(numbers, dtype_of(type_)))
        else:
            found.append(dtype_of(type_).type(c_type(type_).from_address(at).value))
    return found


def array_at(address: int, type_: MemRefType[Attribute]) -> np.ndarray[Any, np.dtype[Any]]:
    """A copy of the array that is described at an address."""
    rank, element = type_.get_num_dims(), type_.element_type
    pointer, *numbers = (ctypes.c_int64 * (1 + 2 * rank)).from_address(address)
    dtype, lanes = dtype_of(element), lanes_of(element)
    step = dtype.itemsize * prod(lanes)
    shape = (*numbers[:rank], *lanes)
    strides = (*(n * step for n in numbers[rank:]), *(dtype.itemsize for _ in lanes))
    if 0 in shape:
        return np.empty(shape, dtype)
    reach = [(n - 1) * s for n, s in zip(shape, strides, strict=True)]
    low = sum(min(0, r) for r in reach)
    high = sum(max(0, r) for r in reach) + dtype.itemsize
    memory: Any = (ctypes.c_char * (high - low)).from_address(pointer + low)
    return np.ndarray(shape, dtype, memory, -low, strides).copy()
