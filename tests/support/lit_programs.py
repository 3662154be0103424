"""The functions of the lit tests as programs: each alone, with inputs, and the passes of its RUN lines."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import func, get_all_dialects
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass, PassPipeline

from mutad.compiler.analysis.effects import is_private
from mutad.compiler.interpreter import Undefined
from mutad.compiler.interpreter.memory import dtype_of, lanes_of
from mutad.compiler.kernels.passes import DEVICE_PASSES
from mutad.compiler.pass_order import PASSES
from mutad.compiler.program_calls import Call, call_of, element_of, public_functions, values_of
from mutad.dialects.activation import Activation
from mutad.dialects.ad import Ad
from mutad.dialects.array import Array
from mutad.dialects.dense import Dense
from mutad.dialects.device import Device
from mutad.dialects.foreign import Foreign
from mutad.dialects.special import Special
from mutad.running import run_call

KNOWN: dict[str, Callable[[], type[ModulePass]]] = {
    p.name: (lambda p=p: p) for p in (*PASSES, *DEVICE_PASSES)
}
STEPS, TRIALS = 3_000, 100


def context() -> Context:
    found = Context()
    for name, dialect in get_all_dialects().items():
        found.register_dialect(name, dialect)
    for dialect in (Array, Ad, Dense, Special, Foreign, Activation, Device):
        found.load_dialect(dialect)
    return found


@dataclass
class Program:
    """One function of a lit test, and the passes that a RUN line puts it through."""

    name: str
    module: ModuleOp
    passes: tuple[ModulePass, ...]

    @property
    def call(self) -> Call:
        return call_of(self.module)

    @property
    def sharing(self) -> tuple[tuple[str, str], ...]:
        """The arguments of one type that may be the same array."""
        overlaps = public_functions(self.module)[0].attributes.get("overlaps")
        if not isinstance(overlaps, ArrayAttr):
            return ()
        parameters = self.call.parameters
        pairs = [[parameters[number(k)] for k in pair] for pair in overlaps]  # pyright: ignore
        return tuple((a.name, b.name) for a, b in pairs if a.type == b.type)


def number(attribute: Any) -> int:
    assert isinstance(attribute, IntegerAttr)
    return attribute.value.data


def programs_of(path: Path, ctx: Context) -> Iterator[Program]:
    text = path.read_text()
    for run in re.findall(r"RUN: (.*)", text):
        if " --run " in run:
            continue  # a claim of values, beside one of the same passes
        parts = [shlex.split(part) for part in run.split("|")]
        specs = [part[part.index("-p") + 1] for part in parts if "-p" in part]
        passes = tuple(one for spec in specs for one in PassPipeline.parse_spec(KNOWN, spec).passes)
        module = Parser(ctx, text).parse_module()
        private = [op for op in module.ops if isinstance(op, func.FuncOp) and is_private(op)]
        for function in public_functions(module):
            alone = ModuleOp([one.clone() for one in (function, *private)])
            yield Program(function.sym_name.data, alone, passes)


def inputs_of(program: Program) -> dict[str, Any]:
    """Inputs on which the program runs, to its end if there are such; Undefined where none were found."""
    raising: dict[str, Any] | None = None
    why: Exception | None = None
    for seed in range(TRIALS):
        inputs = random_inputs(program.call, seed)
        try:
            values = values_of(program.call, inputs)
            left = run_call(program.module, program.call, values, steps=STEPS)
        except Undefined as error:
            why = error
            continue
        if left.raised is None:
            return inputs
        raising = raising or inputs
    if raising is None:
        raise why or AssertionError
    return raising


def random_inputs(call: Call, seed: int) -> dict[str, Any]:
    """Arrays of one extent, and numbers that may be subscripts of them."""
    rng, extent = np.random.default_rng(seed), 3 + seed % 6
    found: dict[str, Any] = {}
    for parameter in call.parameters:
        element = element_of(parameter.type)
        dtype, shape = dtype_of(element), lanes_of(element)
        limit = extent + 1 if seed % 2 else 3
        if isinstance(parameter.type, MemRefType):
            own = [extent if n < 0 else n for n in parameter.type.get_shape()]
            shape, limit = (*own, *shape), extent
        if dtype.kind == "f":
            found[parameter.name] = rng.uniform(0.5, 1.5, shape).astype(dtype)
        else:
            limit = 2 if dtype.kind == "b" else limit
            found[parameter.name] = rng.integers(0, limit, shape).astype(dtype)
    return found
