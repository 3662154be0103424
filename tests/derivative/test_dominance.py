"""Every operand is defined before it is used, after every pass: what xDSL's verifier does not check."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from small_programs import SmallProgram, small_programs
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from mutad.compiler.compilation import Compilation
from mutad.compiler.diagnostics import CompileError
from mutad.compiler.pipeline import stages_for
from mutad.compiler.request import Options, Request
from mutad.runtime.keys import argument_key, overlaps_of


def undominated(module: ModuleOp) -> list[str]:
    """The operands that are not defined where they are used."""
    wrong: list[str] = []
    visible: set[SSAValue] = set()

    def visit(block: Block) -> None:
        added: list[SSAValue] = list(block.args)
        visible.update(added)
        for op in block.ops:
            for number, operand in enumerate(op.operands):
                if operand not in visible:
                    wrong.append(f"operand {number} ({operand.name_hint}) of {op}")
            for region in op.regions:
                for inner in region.blocks:
                    visit(inner)
            visible.update(op.results)
            added += op.results
        visible.difference_update(added)

    visit(module.body.block)
    return wrong


class CheckedCompilation(Compilation):
    """Looks at the IR after every pass."""

    def run(self, passes: Sequence[ModulePass], module: ModuleOp | None = None) -> None:
        for one in passes:
            super().run([one], module)
            self.check(one.name, module)

    def check(self, after: str, module: ModuleOp | None = None) -> None:
        lost = undominated(self.module if module is None else module)
        assert not lost, f"after {after}: {lost[:3]}"


def check_every_pass(function: Callable[..., Any], arguments: Sequence[Any], saves: str) -> None:
    names = list(inspect.signature(function).parameters)
    keys = tuple(argument_key(a, n) for a, n in zip(arguments, names, strict=True))
    active = tuple(k for k, key in enumerate(keys) if key.startswith("f") or key == "py_float")
    # What overlaps an active array is active.
    compilation = CheckedCompilation(
        Request(
            function, keys, overlaps_of(arguments), "gradient", active, False, Options(saves=saves)
        )
    )
    for stage in stages_for(compilation.request):
        if stage.name == "llvm":
            break
        stage.run(compilation)
        compilation.check(stage.name)


def heat(u, kappa, steps):
    total = 0.0
    v = u.copy()
    for t in range(steps):
        for i in range(1, u.size - 1):
            v[i] = u[i] + kappa * math.sin(u[i - 1]) * (u[i + 1] - u[i])
        u, v = v, u
        if u[1] > 0.5:
            total += u[1] * u[2]
        else:
            u[2:] = u[:-2] * u[2:]
    return total + u.sum()


def views_in_branches(u, kappa, steps):
    total = 0.0
    for t in range(steps):
        w = u[: t + 2] if t % 2 == 0 else u[-t - 1 :]
        w *= kappa * w
        total += w.max() + (w * w).sum()
    return total


def newton(u, kappa, steps):
    x = kappa
    while abs(x * x - u[0]) > 1e-9:
        x -= (x * x - u[0]) / (2 * x)
        u[1] *= x
    return x * u[1]


def scratch(u, kappa, steps):
    s = 0.0
    for t in range(steps):
        a = np.zeros((u.size, u.size))
        for i in range(u.size):
            for j in range(i):
                a[i, j] = u[i] * u[j] + t
        b = a @ a
        s += (b @ u).sum() * kappa
        u[:] = np.tanh(b[0] + a[-1])
    return s


PROGRAMS = [heat, views_in_branches, newton, scratch]


@pytest.mark.parametrize("saves", ["minimal", "all"])
@pytest.mark.parametrize("function", PROGRAMS, ids=lambda f: f.__name__)
def test_operands_are_defined_first(function: Any, saves: str) -> None:
    check_every_pass(function, (np.linspace(0.1, 1, 8), 0.3, 3), saves)


def test_a_use_before_its_definition_is_seen(context: Any) -> None:
    from xdsl.parser import Parser

    text = """
    func.func @f(%x : f64, %c : i1) -> f64 {
      scf.if %c {
        %y = arith.mulf %x, %x : f64
      }
      func.return %x : f64
    }"""
    module = Parser(context, text).parse_module()
    (function,) = module.ops
    product = next(op for op in module.walk() if op.name == "arith.mulf")
    end: Operation = function.body.block.last_op  # pyright: ignore
    end.operands[0] = product.results[0]
    assert len(undominated(module)) == 1


@settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(small_programs())
def test_operands_of_generated_programs_are_defined_first(program: SmallProgram) -> None:
    try:
        check_every_pass(program.function(), program.arguments(), "minimal")
    except CompileError:
        pass  # refused: there is no IR to look at
