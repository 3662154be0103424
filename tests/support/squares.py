"""Ops that the compiler has never seen, from outside: a class, a rule, a row of the library, its code.

`square_into(a, out)`, `square_in_place(x)`, `energy(x)`, and `energy_shown(x)`, which also prints, are what
programs call. Each is one op, which stays one through all passes; what maps compute it is said where code is
generated.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, f64
from xdsl.ir import Block, Operation, SSAValue
from xdsl.irdl import IRDLOperation, irdl_op_definition, operand_def, result_def

from mutad.compiler.codegen import module_to_llvm
from mutad.compiler.frontend import library
from mutad.compiler.frontend.emitter import Emitter
from mutad.compiler.frontend.library.read_only import require_writable
from mutad.compiler.frontend.values import Array, NoneValue, Scalar, Value
from mutad.compiler.rules import (
    RULES,
    Access,
    Contents,
    Need,
    Rule,
    is_repeatable,
    register,
    rule_of,
    touches_nothing,
)
from mutad.compiler.rules.access import Activity
from mutad.compiler.rules.builders import Emit, element_of, extents_of, fill, index, transfer
from mutad.compiler.rules.descriptors import descriptor_values
from mutad.compiler.rules.rule import touching
from mutad.compiler.rules.sweeps import SHADOW, ReverseSweep, Sweep, TangentSweep
from mutad.compiler.rules.table import Scalars
from mutad.dialects import array

# The classes.


@irdl_op_definition
class SquareOp(IRDLOperation):
    """`b[i] = a[i] ** 2`."""

    name = "mine.square"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    assembly_format = "$a `into` $b attr-dict `:` type($a) `,` type($b)"


@irdl_op_definition
class ScaleOp(IRDLOperation):
    """`c[i] += 2 * a[i] * b[i]`."""

    name = "mine.scale"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    assembly_format = "$a `by` $b `into` $c attr-dict `:` type($a) `,` type($b) `,` type($c)"


@irdl_op_definition
class SquareInPlaceOp(IRDLOperation):
    """`x[i] = x[i] ** 2`."""

    name = "mine.square_in_place"
    x = operand_def(MemRefType)
    assembly_format = "$x attr-dict `:` type($x)"


@irdl_op_definition
class EnergyOp(IRDLOperation):
    """The sum of `x[i] ** 2`."""

    name = "mine.energy"
    x = operand_def(MemRefType)
    result = result_def(f64)
    assembly_format = "$x attr-dict `:` type($x)"


@irdl_op_definition
class EnergyShownOp(IRDLOperation):
    """The sum of `x[i] ** 2`, printed: running it again would show."""

    name = "mine.energy_shown"
    x = operand_def(MemRefType)
    result = result_def(f64)
    assembly_format = "$x attr-dict `:` type($x)"


# The rules.


def scale(sweep: Sweep, *operands: SSAValue) -> None:
    sweep.append(ScaleOp.create(operands=operands))


def taken_away(sweep: Sweep, op: Operation, bar: SSAValue) -> SSAValue:
    """The cotangent of what was overwritten, in other memory; it is 0 here."""
    extents = extents_of(bar, sweep.emit)
    taken = sweep.emit(array.AllocOp(extents, element_of(bar)))
    sweep.append(transfer(bar, taken, extents))
    sweep.append(fill(bar, extents, op))
    return taken


class Square(Rule[SquareOp]):
    whole_array = True
    smooth = True
    keeps_nan = (0,)

    def effects(self, op: SquareOp) -> list[Access]:
        return touching(op, [op.a], [op.b])

    def needs(self, op: SquareOp, activity: Activity) -> Iterator[Need]:
        yield from (*descriptor_values(op.a), *descriptor_values(op.b))
        if activity.active(op.a):
            yield Contents(op, 0)

    def adjoint(self, op: SquareOp, sweep: ReverseSweep) -> None:
        bar = taken_away(sweep, op, sweep.primal.memref(op.b, SHADOW))
        if sweep.activity.active(op.a):
            a = sweep.primal.contents(Contents(op, 0), op.a)
            scale(sweep, a, bar, sweep.primal.memref(op.a, SHADOW))

    def tangent(self, op: SquareOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not sweep.activity.active(op.b):
            return
        dot = sweep.dot(op.b, zero=True)
        sweep.append(fill(dot, extents_of(dot, sweep.emit), op))
        if sweep.activity.active(op.a):
            scale(sweep, sweep.value(op.a), sweep.dot(op.a, zero=True), dot)


class Scale(Rule[ScaleOp]):
    whole_array = True
    smooth = True
    keeps_nan = (0, 1, 2)

    def effects(self, op: ScaleOp) -> list[Access]:
        return touching(op, op.operands, [op.c])

    def needs(self, op: ScaleOp, activity: Activity) -> Iterator[Need]:
        for operand in op.operands:
            yield from descriptor_values(operand)
        for k, other in enumerate((op.b, op.a)):
            if activity.active(other):
                yield Contents(op, k)

    def adjoint(self, op: ScaleOp, sweep: ReverseSweep) -> None:
        bar = sweep.primal.memref(op.c, SHADOW)
        for k, (factor, other) in enumerate(((op.a, op.b), (op.b, op.a))):
            if sweep.activity.active(other):
                again = sweep.primal.contents(Contents(op, k), factor)
                scale(sweep, again, bar, sweep.primal.memref(other, SHADOW))

    def tangent(self, op: ScaleOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not sweep.activity.active(op.c):
            return
        for factor, other in ((op.a, op.b), (op.b, op.a)):
            if sweep.activity.active(other):
                dots = [sweep.dot(m, zero=True) for m in (other, op.c)]
                scale(sweep, sweep.value(factor), *dots)


class SquareInPlace(Rule[SquareInPlaceOp]):
    whole_array = True
    smooth = True
    keeps_nan = (0,)

    def effects(self, op: SquareInPlaceOp) -> list[Access]:
        return touching(op, [op.x], [op.x])

    def needs(self, op: SquareInPlaceOp, activity: Activity) -> Iterator[Need]:
        yield from descriptor_values(op.x)
        yield Contents(op, 0)

    def adjoint(self, op: SquareInPlaceOp, sweep: ReverseSweep) -> None:
        bar = sweep.primal.memref(op.x, SHADOW)
        x = sweep.primal.contents(Contents(op, 0), op.x)
        scale(sweep, x, taken_away(sweep, op, bar), bar)

    def tangent(self, op: SquareInPlaceOp, sweep: TangentSweep) -> None:
        if sweep.activity.active(op.x):
            dot = sweep.dot(op.x, zero=True)
            scale(sweep, sweep.value(op.x), taken_away(sweep, op, dot), dot)
        sweep.clone(op)


class Energy(Rule[EnergyOp]):
    whole_array = True
    smooth = True
    keeps_nan = (0,)

    def effects(self, op: EnergyOp) -> list[Access]:
        return touching(op, [op.x], [])

    def needs(self, op: EnergyOp, activity: Activity) -> Iterator[Need]:
        yield from descriptor_values(op.x)
        yield Contents(op, 0)

    def adjoint(self, op: EnergyOp, sweep: ReverseSweep) -> None:
        bar = sweep.take_bar(op.result)
        if bar is not None:
            x = sweep.primal.contents(Contents(op, 0), op.x)
            scale(sweep, x, everywhere(sweep, bar, x), sweep.primal.memref(op.x, SHADOW))

    def tangent(self, op: EnergyOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if not sweep.activity.active(op.x):
            return
        emit, x, dot = sweep.emit, sweep.value(op.x), sweep.dot(op.x, zero=True)
        total = emit(array.AllocOp([index(1, emit)], element_of(dot)))
        sweep.append(fill(total, [index(1, emit)], op))
        scale(sweep, x, dot, standing(emit, total, x))
        sweep.set_dot(op.result, emit(memref.LoadOp.get(total, [index(0, emit)])))


class EnergyShown(Energy):
    whole_array = False


def standing(emit: Emit, cell: SSAValue, like: SSAValue) -> SSAValue:
    """One element, seen at every point of an array."""
    extents = extents_of(like, emit)
    zero, one = index(0, emit), index(1, emit)
    return emit(array.ViewOp(cell, [zero], [-1] * len(extents), extents, [one] * len(extents)))


def everywhere(sweep: Sweep, number: SSAValue, like: SSAValue) -> SSAValue:
    cell = sweep.emit(array.AllocOp([index(1, sweep.emit)], number.type))
    sweep.append(memref.StoreOp.get(number, cell, [index(0, sweep.emit)]))
    return standing(sweep.emit, cell, like)


OURS: dict[type[Operation], Rule[Any]] = {
    SquareOp: Square(),
    ScaleOp: Scale(),
    SquareInPlaceOp: SquareInPlace(),
    EnergyOp: Energy(),
    EnergyShownOp: EnergyShown(),
}

# What programs call, and what the ops compute.


def square_into(a: np.ndarray, out: np.ndarray) -> None:
    out[...] = a * a


def square_in_place(x: np.ndarray) -> None:
    x[...] = x * x


def energy(x: np.ndarray) -> float:
    return float((x * x).sum())


def energy_shown(x: np.ndarray) -> float:
    found = energy(x)
    print("energy", found)
    return found


def in_memory(e: Emitter, value: Value, *, written: bool = False) -> SSAValue:
    assert isinstance(value, Array)
    if written:
        require_writable(e, value.memref, "assignment destination is read-only")
    return value.memref


def call_square_into(e: Emitter, a: Value, out: Value) -> Value:
    e.insert(SquareOp.create(operands=[in_memory(e, a), in_memory(e, out, written=True)]))
    return NoneValue()


def call_square_in_place(e: Emitter, x: Value) -> Value:
    e.insert(SquareInPlaceOp.create(operands=[in_memory(e, x, written=True)]))
    return NoneValue()


def call_energy(e: Emitter, x: Value) -> Value:
    return Scalar(
        "py_float", e.emit(EnergyOp.create(operands=[in_memory(e, x)], result_types=[f64]))
    )


def call_energy_shown(e: Emitter, x: Value) -> Value:
    return Scalar(
        "py_float", e.emit(EnergyShownOp.create(operands=[in_memory(e, x)], result_types=[f64]))
    )


CALLED: dict[Any, Any] = {
    square_into: library.positional("square_into", 2, 2, call_square_into),
    square_in_place: library.positional("square_in_place", 1, 1, call_square_in_place),
    energy: library.positional("energy", 1, 1, call_energy),
    energy_shown: library.positional("energy_shown", 1, 1, call_energy_shown),
}


def lower(op: Operation, emit: Emit) -> None:
    """Put maps in the place of one of our ops."""
    first, last = op.operands[0], op.operands[-1]
    extents, kind, ins, cell = extents_of(first, emit), "store", [first, first], None
    if isinstance(op, ScaleOp):
        kind, ins = "add", [op.a, op.b]
    elif isinstance(op, EnergyOp | EnergyShownOp):
        kind, cell = "add", emit(array.AllocOp([index(1, emit)], f64))
        emit(fill(cell, [index(1, emit)], op))
        last = standing(emit, cell, first)
    body = Block(arg_types=[element_of(m) for m in ins])
    scalars = Scalars(body.add_op)
    product = scalars.mul(*body.args)
    product = scalars.scaled(product, 2.0) if isinstance(op, ScaleOp) else product
    body.add_op(array.YieldOp([product]))
    emit(array.MapOp(extents, ins, [last], [kind], body))
    if cell is not None:
        total = emit(memref.LoadOp.get(cell, [index(0, emit)]))
        if isinstance(op, EnergyShownOp):
            emit(array.PrintOp("energy {}", [total]))
        op.results[0].replace_all_uses_with(total)


def lowered(module: ModuleOp, *rest: Any, **named: Any) -> tuple[Any, ...]:
    for op in [o for o in module.walk() if isinstance(o, tuple(OURS))]:
        block = op.parent
        assert block is not None

        def emit(made: Operation, op: Operation = op, block: Block = block) -> Any:
            made.location = op.location
            block.insert_op_before(made, op)
            return made.results[0] if made.results else None

        lower(op, emit)
        op.detach()
        op.erase()
    return module, *rest


@contextmanager
def known(rules: Sequence[type[Operation]] = tuple(OURS)) -> Generator[None]:
    """The compiler knows our ops; those of `rules` with their rules."""
    kernel, split = module_to_llvm.kernel_text, module_to_llvm.split_text
    with (
        patch.dict(library.FUNCTIONS, CALLED),
        patch.object(module_to_llvm, "kernel_text", lambda *a, **k: kernel(*lowered(*a), **k)),
        patch.object(module_to_llvm, "split_text", lambda *a, **k: split(*lowered(*a), **k)),
    ):
        for kind in rules:
            register(kind, OURS[kind])
        yield
    forget(rules)


def forget(rules: Iterable[type[Operation]]) -> None:
    for kind in rules:
        RULES.pop(kind, None)
    for answer in (rule_of, touches_nothing, is_repeatable):
        answer.cache_clear()
