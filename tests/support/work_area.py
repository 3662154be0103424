"""Kernels as the ahead-of-time compiler writes them, run in an area of memory that is measured."""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType

from mutad import _compiler, compile
from mutad.compiler.codegen.kernel_memory import KernelMemory
from mutad.compiler.codegen.kernel_module import KernelText
from mutad.compiler.codegen.llvm_module import optimize_and_emit
from mutad.compiler.codegen.module_to_llvm import kernel_text
from mutad.compiler.codegen.support import area, callbacks
from mutad.compiler.codegen.support.context import CURSOR, END, RECURSION_LIMIT
from mutad.compiler.compilation import Compilation, last_function
from mutad.compiler.pipeline import stages_for
from mutad.compiler.request import Request
from mutad.compiler.sizes.equal_extents import alike, listed
from mutad.compiler.sizes.work_size import WorkSize, measure_work
from mutad.dialects import ad, array
from mutad.runtime import engine, keys, memory
from mutad.runtime.gradients import with_groups
from mutad.runtime.measure import bytes_of

_numbers = itertools.count()
_keep: list[Any] = []
TYPES = {
    "f64": ctypes.c_double, "f32": ctypes.c_float, "index": ctypes.c_int64, "i64": ctypes.c_int64,
    "i32": ctypes.c_int32, "i16": ctypes.c_int16, "i8": ctypes.c_int8, "i1": ctypes.c_bool,
}  # fmt: skip


@dataclass
class Called:
    """One call of a kernel."""

    status: int
    used: int
    """The bytes of the area that it took at its peak."""
    size: int | None
    """What `@kernel_work_size` says; None where it raised."""


def compilation_of(
    function: Callable[..., Any], arguments: Sequence[Any], mode: str, wrt: Any = 0
) -> tuple[Compilation, tuple[Any, ...]]:
    """A function compiled for these arguments up to the optimized module, and copies of the arguments.

    As libraries have it: without another gradient for long tapes.
    """
    dispatcher = compile(function, grad=True, cache=False, opt=1)._dispatcher
    values = dispatcher.values_of(*arguments)
    overlaps = keys.overlaps_of(values)
    active: tuple[int, ...] = ()
    if mode != "primal":
        active = with_groups(dispatcher, values, set(dispatcher.resolve_wrt(wrt)[0]), overlaps)
    request: Request = _compiler._request(
        dispatcher.function, dispatcher.arguments_of(values), overlaps, mode, active,
        {**dispatcher.options, "replays": False}, dispatcher.era.captures,
    )  # fmt: skip
    c = optimized(request)
    if not keys.assumptions_hold(c.built.assumed, values):
        c = optimized(replace(request, options=replace(request.options, stretch=True)))
    return c, values


def optimized(request: Request) -> Compilation:
    """A compilation up to the optimized module."""
    c = Compilation(request)
    for stage in stages_for(request):
        if stage.name == "llvm":
            break
        stage.run(c)
    return c


@dataclass
class Ran:
    """What a kernel left: its status, the numbers that it returned, the contents of all arguments."""

    status: int
    numbers: list[int]
    arrays: list[np.ndarray[Any, Any]]


class AotKernel:
    """The kernel of a function, with memory of one kind."""

    def __init__(
        self,
        function: Callable[..., Any],
        arguments: Sequence[Any],
        mode: str,
        wrt: Any = 0,
        source: KernelMemory = KernelMemory.AREA,
    ) -> None:
        c, _ = compilation_of(function, arguments, mode, wrt)
        kernel = last_function(c.module)
        self.found = WorkSize()
        if source is KernelMemory.AREA:
            self.found = measure_work(kernel, c.built.assumed)
        self.types = [a.type for a in kernel.body.block.args]
        self.function, self.mode, self.wrt = function, mode, wrt
        self.shadows = listed(kernel, "shadows")
        sized = (array.AllocOp, ad.PushOp)
        self.allocations = sum(isinstance(op, sized) for op in kernel.walk())
        self.cotangents = listed(kernel, "cotangents")
        places = {a: k for k, a in enumerate(kernel.body.block.args)}
        moving = len(listed(kernel, "moving"))
        self.first_cotangent = len(self.types) - moving - len(self.cotangents)
        self.alike = {places[a]: places[b] for a, b in alike(kernel).items()}
        if source is not KernelMemory.AREA or self.found.function is not None:
            c.module.verify()
            self.load(kernel_text(c.module, c.request.options, memory=source), kernel)

    def load(self, text: KernelText, kernel: func.FuncOp) -> None:
        """Make machine code of it."""
        symbols = ["kernel"] + ["kernel_work_size"] * (self.found.function is not None)
        whole = text.module()
        for symbol in symbols:
            whole = whole.replace(f"define internal i32 @{symbol}(", f"define i32 @{symbol}(")
        last = kernel.body.block.last_op
        assert last is not None
        slots = zip(last.operands, text.result_slots, strict=True)
        self.numbers = [slot for v, slot in slots if not isinstance(v.type, MemRefType)]
        self.slots = max(0, *text.result_slots, 0) + 64
        engine.load_vector_math()
        builder = llvm.JITLibraryBuilder().add_object_img(optimize_and_emit(whole, 1))
        builder.add_current_process()
        for symbol in symbols:
            builder.export_symbol(symbol)
        for symbol, kind in text.symbols.items():
            address = engine.address_of(symbol, kind)
            if address is not None:
                builder.import_symbol(symbol, address)
        jit = llvm.create_lljit_compiler()
        self.tracker = builder.link(jit, f"area{next(_numbers)}")
        _keep.extend((jit, self.tracker))

    def run(self, arguments: Sequence[Any], context: Any, symbol: str = "kernel") -> Ran:
        """Call it with copies of these arguments."""
        given = copied(arguments)
        values: list[Any] = list(leaves(given))
        passed: list[Any] = []
        types: list[Any] = []
        arrays: list[np.ndarray[Any, Any]] = []
        for k, type_ in enumerate(self.types):
            if not isinstance(type_, MemRefType):
                kind = TYPES[str(type_)]
                passed.append(kind(values[k] if k < len(values) else 1.0))
                types.append(kind)
                continue
            value = values[k] if k < len(values) else self.like(k, arguments, values)
            arrays.append(value)
            strides = (s // value.itemsize for s in value.strides)
            passed.append(ctypes.c_void_p(value.ctypes.data))
            passed += map(ctypes.c_int64, (*value.shape, *strides))
            types += [ctypes.c_void_p, *[ctypes.c_int64] * (2 * value.ndim)]
        results = (ctypes.c_int64 * self.slots)()
        word = ctypes.c_void_p
        made = ctypes.CFUNCTYPE(ctypes.c_int32, word, *types, word)(self.tracker[symbol])
        status = made(ctypes.addressof(context), *passed, ctypes.addressof(results))
        numbers = [0] if symbol != "kernel" else self.numbers
        return Ran(status, [results[slot] for slot in numbers], arrays)

    def like(self, k: int, arguments: Sequence[Any], values: list[Any]) -> np.ndarray[Any, Any]:
        """Zeros for the argument `k`, which a derivative adds."""
        if k in self.alike:
            return np.zeros_like(values[self.alike[k]], order="C")
        result = self.function(*memory.copies(arguments, keys.overlaps_of(arguments)))
        results = list(leaves([result]))
        return np.zeros_like(results[self.cotangents[k - self.first_cotangent]], order="C")


class AreaKernel(AotKernel):
    """The kernel of a function with an area, and the function that measures it."""

    def __call__(self, *arguments: Any, room: int | None = None) -> Called:
        """Call it in an area of the size that is said, or of `room` bytes."""
        size = self.run(arguments, empty_context(), "kernel_work_size")
        said = size.numbers[0] if size.status == 0 else None
        room = (said or 0) if room is None else room
        block = np.zeros(room + 128, np.uint8)
        start = -(-block.ctypes.data // 64) * 64
        context = empty_context()
        context[CURSOR // 8] = start
        context[END // 8] = start + room
        context[area.ROOM // 8] = room
        self.ran = self.run(arguments, context)
        return Called(self.ran.status, room - context[area.ROOM // 8], said)

    def explained(self, *arguments: Any) -> int:
        """What `explain` says that a call takes, without the shadows of arguments, which are the caller's."""
        made = compile(self.function, grad=True, cache=False, opt=1)
        plan = made.explain(*arguments, wrt=self.wrt, mode=self.mode)
        parts = (plan.saved_bytes, plan.shadow_bytes, plan.temporary_bytes)
        assert not plan.is_bound
        assert None not in parts
        return sum(parts) - self.own_shadow_bytes(arguments)

    def own_shadow_bytes(self, arguments: Sequence[Any]) -> int:
        """The bytes of the shadows of arguments, which `explain` counts and the caller has.

        Of a Hessian-vector product the gradients, the products and the directions.
        """
        overlaps = keys.overlaps_of(arguments)
        shadows = memory.zero_shadows(arguments, self.shadows, overlaps)
        padding = 64 * len(memory.groups_of(overlaps))
        kinds = {"gradient": 1, "hvp": 3}.get(self.mode, 0)
        return kinds * (bytes_of(shadows) - padding)


class Counting:
    """An allocator that knows what it gave."""

    def __init__(self, limit: int = 1 << 30) -> None:
        self.live: dict[int, Any] = {}
        self.limit = limit

        def allocate(state: int | None, size: int) -> int | None:
            if size > self.limit:
                return None
            block = ctypes.create_string_buffer(size)
            self.live[ctypes.addressof(block)] = block
            return ctypes.addressof(block)

        def release(state: int | None, block: int, size: int) -> None:
            assert len(self.live.pop(block)) == size

        word = ctypes.c_void_p
        self.functions = (
            ctypes.CFUNCTYPE(word, word, ctypes.c_size_t)(allocate),
            ctypes.CFUNCTYPE(None, word, word, ctypes.c_size_t)(release),
        )
        self.words = (word * 3)(*(ctypes.cast(f, word).value for f in self.functions), None)

    def context(self) -> Any:
        context = empty_context()
        context[callbacks.ALLOCATOR // 8] = ctypes.addressof(self.words)
        return context


def copied(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Copies of the arguments that lie in memory as they do."""
    overlaps = keys.overlaps_of(arguments)
    if overlaps:
        return memory.copies(arguments, overlaps)
    made: list[Any] = []
    for value in arguments:
        if isinstance(value, np.ndarray):
            (copy,) = memory.zeros_placed_as([value])
            copy[...] = value
            made.append(copy)
        else:
            made.append(memory.copies((value,), ())[0])
    return tuple(made)


def empty_context() -> Any:
    """A context of zeros; 1000 calls of recursive functions may be nested."""
    context = (ctypes.c_int64 * 36)()
    context[RECURSION_LIMIT // 8] = 1000
    return context


def leaves(values: Sequence[Any]) -> Any:
    for value in values:
        if isinstance(value, tuple):
            yield from leaves(value)
        elif value is not None:
            yield value
