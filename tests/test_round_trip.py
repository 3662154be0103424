"""Programs as text and back: nothing is lost, so that `mutad-opt | mutad-opt` does what one does."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from mutad.bisect import read_module
from mutad.compiler import pipeline
from mutad.compiler.compilation import Compilation
from mutad.compiler.print_ir import module_text
from mutad.compiler.request import Request
from mutad.compiler.rules.table import EDGE


def clipped(u: np.ndarray, k: float) -> float:
    total = 0.0
    for i in range(1, u.size):
        u[i] = max(u[i] * k, 0.0) + np.abs(u[i - 1])
        if u[i] > 2.0:
            total += np.sqrt(u[i])
    u[:] = np.clip(u, -1.0, k)
    return total + u.sum()


def projected(a: np.ndarray, b: np.ndarray, steps: int) -> float:
    while steps > 0:
        b[:] = np.maximum(a @ b, 0.0)
        a[0] = a[1] * b
        steps -= 1
    return b.min() + np.linalg.norm(b)


PROGRAMS: tuple[tuple[Callable[..., Any], tuple[str, ...], tuple[int, ...]], ...] = (
    (clipped, ("f64[?]C", "py_float"), (0, 1)),
    (projected, ("f64[?,?]C", "f64[?]C", "py_int"), (0, 1)),
)
STAGES = ("frontend", "simplify", "adjoint", "optimize")


def module_after(stage: str, program: Any, mode: str) -> ModuleOp:
    function, arguments, wrt = program
    made = Compilation(Request(function, arguments, mode=mode, wrt=wrt))
    for one in pipeline.stages_for(made.request):
        one.run(made)
        if one.name == stage:
            return made.module
    raise AssertionError(stage)


def told(op: Operation) -> tuple[Any, ...]:
    return (
        op.name, op.attributes, op.properties,
        [v.type for v in op.operands], [r.type for r in op.results],
    )  # fmt: skip


@pytest.mark.parametrize("mode", ["gradient", "tangent", "hvp"])
@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p[0].__name__)
def test_text_parses_back_to_the_same_ops(program: Any, stage: str, mode: str) -> None:
    module = module_after(stage, program, mode)
    again = read_module(module_text(module, locations=False), "again")
    for ours, theirs in zip(module.walk(), again.walk(), strict=True):
        assert told(ours) == told(theirs)


def test_comparisons_at_an_edge_are_among_them() -> None:
    marked = [
        op
        for op in module_after("adjoint", PROGRAMS[0], "gradient").walk()
        if EDGE in op.attributes
    ]
    assert any(op.name == "arith.cmpf" for op in marked)
