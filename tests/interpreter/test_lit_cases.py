"""Every lit case is a program: its passes keep what it means, and it is what compiled code computes.

Inputs are made from types. Before the first pass and after each one the program runs in the interpreter: what
it returns, leaves and raises stays, and derivatives agree with differences. After the last it is compiled.
"""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from lit_programs import Program, context, inputs_of, programs_of
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.rewriter import Rewriter

from mutad.compiler.derivative.expand_derivatives import expand
from mutad.compiler.derivative.passes import Forward, Reverse
from mutad.compiler.interpreter.memory import Memref
from mutad.compiler.kernels.emulate_launches import EmulateLaunches
from mutad.compiler.request import Options
from mutad.compiler.sizes.step_sizes import MeasureSteps
from mutad.dialects import activation, ad, foreign
from mutad.kernels import World
from mutad.pass_checks import PassCheck, as_programs, differing, interpreted, is_gradient
from mutad.running import run_call

LIT = Path(__file__).parents[2] / "lit-tests"
CONTEXT = context()
STEPS, WITH_THREADS = 30_000, 1_000_000
IN_STEPS = "_in_steps"

NO_PROGRAM = {
    "calls_touch_what_their_functions_touch": "recursive without an end",
    "kept_where_a_call_only_reads": "calls a function that is not there",
    "read_again_where_a_call_writes": "calls a function that is not there",
    "calls_that_read_are_uses": "calls a function that is not there",
    "calls_clobber_what_they_write": "calls a function that is not there",
    "calls_of_which_nothing_is_known_clobber_everything": "calls a function that is not there",
    "a_tape_is_given": "takes a tape",
    "saved_forward": "returns tapes",
    "saved_backward": "takes tapes",
    "what_is_handed_on_counts": "returns a tape",
    "kept_where_another_half_pops": "returns a tape",
    "what_the_entry_has_found_is_known_before_the_loop": "the entry has found that it does not raise",
    "what_ends_a_loop_is_fetched": "may not end",
    "shadows_that_change_places": "reverses steps that have not run",
    "steps_that_read_the_sum": "reverses steps that have not run",
    "products_that_the_gradient_does_not_collect": "reverses steps that have not run",
}
"""Functions that nobody can run, with the reason."""
RULES_OF_NOTHING = ("call-with-rule.mlir", "call-with-tangent.mlir")
"""Where the rules are no derivative of what the Python function does: nobody knows what that is."""


def answer(_world: World, op: foreign.CallOp, values: list[Any]) -> Any:
    """A Python function that adds to what it writes something of all that it is called with."""
    total = sum(float(np.sum(v.read() if isinstance(v, Memref) else v)) for v in values)
    for value, effect in zip(values, op.effects, strict=True):
        if "write" in effect.data:
            places = value.places()
            value.root.cells[places] = value.root.cells[places] + 0.125 * total
    return total


@pytest.fixture(autouse=True)
def python_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(World, "call", answer)


def cases() -> list[tuple[Path, Program]]:
    files = sorted(LIT.rglob("*.mlir"))
    found = [(f, p) for f in files for p in programs_of(f, CONTEXT) if p.name not in NO_PROGRAM]
    return [(f, p) for f, p in found if not takes_tape(p)]


def takes_tape(program: Program) -> bool:
    """Whether the caller has the tape: gradients that use it are compared in `tests/gradients`."""
    return any(isinstance(parameter.type, ad.TapeType) for parameter in program.call.parameters)


CASES = cases()
FILES = sorted({path for path, _ in CASES})


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(LIT)))
def test_passes_keep_what_a_lit_case_means(path: Path) -> None:
    for _, program in (case for case in CASES if case[0] == path):
        inputs = inputs_of(program)
        for sharing, which in product({(), program.sharing}, gradients_of(program)):
            steps = WITH_THREADS if path.parent.name == "kernels" else STEPS
            check = PassCheck(inputs, run=interpreted(steps), sharing=sharing)
            module = program.module.clone()
            for one in program.passes:
                before = module.clone()
                one.apply(CONTEXT, module)
                keep(module, which)
                if isinstance(one, Reverse) and is_gradient(before):
                    check = check.again(before)
                    before, module = as_programs(before, module)
                if isinstance(one, Reverse | Forward) and path.name in RULES_OF_NOTHING:
                    check.outcome(module, check.call(module))
                    continue
                wrong = check.of(one, before, module)
                assert wrong is None, f"{program.name}, {one.name}, {sharing}: {wrong}"
            agrees_with_compiled_code(program.name, check, module)


def gradients_of(program: Program) -> tuple[str, ...]:
    """The names' ends of the gradients that a pass makes: another one for long tapes, where it is to."""
    both = any(isinstance(one, Reverse) and one.long for one in program.passes)
    return ("_gradient", IN_STEPS) if both else ("",)


def keep(module: ModuleOp, which: str) -> None:
    """Of two gradients one is looked at."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp)]
    made = [f for f in functions if f.sym_name.data.endswith(("_gradient", IN_STEPS))]
    for function in made:
        function.attributes.pop(activation.LONGEST, None)
        if which and len(made) > 1:
            function.attributes.pop(activation.CHECKPOINTED, None)
            if not function.sym_name.data.endswith(which):
                Rewriter.erase_op(function)


DERIVATIVES = (
    "drop-guards.mlir",
    "drop-guards-of-rows.mlir",
    "factor-cotangents-lanes.mlir",
)
"""Whose functions are derivatives already, with names of shadows, or of several cotangents at once."""


TWICE = [
    path
    for path in FILES
    if path.parent.name == "derivative" and path.name not in (*RULES_OF_NOTHING, *DERIVATIVES)
]


@pytest.mark.parametrize("path", TWICE, ids=lambda p: p.stem)
def test_adjoints_of_gradients_are_differences(path: Path) -> None:
    for name, program in {p.name: p for file, p in CASES if file == path}.items():
        inputs = inputs_of(program)
        for sharing in {(), program.sharing}:
            check = PassCheck(inputs, run=interpreted(STEPS), sharing=sharing)
            module = program.module.clone()
            Reverse(adjoints=True).apply(CONTEXT, module)
            gradient = module.clone()
            Reverse().apply(CONTEXT, module)
            wrong = check.of(Reverse(), gradient, module)
            assert wrong is None, f"{name}, {sharing}: {wrong}"


def agrees_with_compiled_code(name: str, check: PassCheck, module: ModuleOp) -> None:
    ops = list(module.walk())
    if any(isinstance(op, foreign.CallOp | ad.HandoverOp) for op in ops):
        return  # Python functions are not in the IR; the other op is gone before code is made
    found = check.outcome(module, check.call(module))
    if any(isinstance(op, ad.DerivativeOp) for op in ops):
        expand(module, "minimal")
    if not any(isinstance(op, activation.StackOp) for op in ops):
        MeasureSteps().apply(CONTEXT, module)  # compiled steps have a stack
    EmulateLaunches().apply(CONTEXT, module)
    call = check.call(module)
    computed = run_call(module, call, check.values(call), Options(opt=1))
    wrong = differing(found, computed, list(found.values), check.rounding)
    assert wrong is None, f"{name}, compiled: {wrong}"


def test_nearly_all_lit_cases_are_programs() -> None:
    names = {p.name for f in LIT.rglob("*.mlir") for p in programs_of(f, CONTEXT)}
    assert names >= NO_PROGRAM.keys()
    assert len(CASES) > 300
