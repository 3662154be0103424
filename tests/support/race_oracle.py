"""No two threads of a kernel meet: what the emulated driver launches is interpreted first, on copies.

Each thread of each block runs by itself, in a shuffled order, and every element that it touches is noted. So
all calls of a program are looked at as they are made, with the memory that they share, in every mode.
"""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from lit_programs import context
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

import mutad
from mutad.compiler.interpreter import interpret_launch
from mutad.compiler.interpreter.memory import dtype_of
from mutad.kernels import World
from mutad.runtime.emulated_driver import EmulatedDriver, Function

POINTS = 4096
"""Launches of more threads are the machine code's alone."""
STEPS = 1_000_000
"""After so many steps the rest of a program is the machine code's."""
STANDING = 1 << 20
"""An axis along which an array stands still is shown as at most so long."""


@functools.lru_cache(64)
def module_of(text: str) -> ModuleOp:
    return Parser(context(), text).parse_module()


@dataclass
class Watch:
    """Interprets what is launched; a launch with the same arguments once."""

    driver: EmulatedDriver
    seen: set[tuple[str, str, tuple[int, ...], int]] = field(
        default_factory=set[tuple[str, str, tuple[int, ...], int]]
    )
    kernels: int = 0
    steps: int = 0

    def __call__(self, function: Function, words: Sequence[int], blocks: int) -> None:
        key = function.ir, function.name, tuple(words), blocks
        if key in self.seen or 256 * blocks > POINTS or self.steps > STEPS:
            return
        self.seen.add(key)
        self.kernels += 1
        module = module_of(function.ir)
        (kernel,) = (
            f for f in module.ops if isinstance(f, FuncOp) and f.sym_name.data == function.name
        )
        self.steps += interpret_launch(
            module, function.name, self.arguments(kernel, words), blocks, World()
        )

    def arguments(self, kernel: FuncOp, words: Sequence[int]) -> list[Any]:
        """What a kernel is given, its arrays in copies of the blocks that they lie in."""
        copies: dict[int, Any] = {}
        found: list[Any] = []
        left = list(words)
        for argument in kernel.body.block.args:
            if not isinstance(argument.type, MemRefType):
                found.append(number(left.pop(0), dtype_of(argument.type)))
                continue
            rank, dtype = argument.type.get_num_dims(), dtype_of(argument.type.element_type)
            start, shape = left[0], tuple(left[1 : 1 + rank])
            strides = tuple(dtype.itemsize * s for s in left[1 + rank : 1 + 2 * rank])
            del left[: 1 + 2 * rank]
            found.append(self.array(start, shape, dtype, strides, copies))
        assert not left
        return found

    def array(
        self,
        start: int,
        shape: tuple[int, ...],
        dtype: Any,
        strides: tuple[int, ...],
        copies: dict[int, Any],
    ) -> Any:
        if 0 in shape:
            return np.empty(shape, dtype)
        block = self.driver.block_of(start)
        assert block is not None, "this is nobody's memory"
        if block not in copies:
            size = self.driver.blocks[block]
            held = ctypes.string_at(block + self.driver.shift, size)
            copies[block] = ctypes.create_string_buffer(held, size)
        # an axis that stands still may be as long as there are numbers (the least of no extents)
        few = tuple(
            [n if step else min(n, STANDING) for n, step in zip(shape, strides, strict=True)]
        )
        return np.ndarray(few, dtype, copies[block], start - block, strides)


def number(word: int, dtype: Any) -> Any:
    return np.array([word], np.int64).view(dtype)[0]


@contextmanager
def watched() -> Generator[Watch]:
    """Arrays and calls are the emulated device's meanwhile, and all launches are looked at."""
    with mutad.cuda.emulated() as driver:
        driver.watch = made = Watch(driver)
        try:
            yield made
        finally:
            driver.watch = None
            if driver.unexpected:  # which the call has seen as an error of the driver
                raise driver.unexpected.pop()
