"""`ad.derivative` in the interpreter: the derived function, made as the pass makes it, and called."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from ...dialects import ad
from ...dialects.ad import Part
from ..derivative.expand_derivatives import Expansion
from .frame import Frame
from .memory import Memref, dtype_of, fresh, lanes_of


def run_derivative(frame: Frame, op: ad.DerivativeOp) -> None:
    machine = frame.machine
    if op not in machine.derived:
        machine.derived[op] = Expansion(machine.module, "minimal").derived(op)
    derived = machine.derived[op]
    given = {part: frame.get(operand) for part, operand, _ in op.taken()}
    for part, operand, effect in op.taken():
        if part.kind == "shadow" and effect == "write":
            target: Memref = frame.get(operand)
            target.root.cells[target.places()] = 0
    parameters = zip(derived.takes, derived.function.body.block.args, strict=True)
    arguments = [argument(given, part, p.type) for part, p in parameters]
    made = machine.call(derived.function, arguments, frame.depth)
    found = dict(zip(derived.gives, made, strict=True))
    results = [found[part] if part in found else zero(r.type) for part, r in op.given()]
    frame.bind(op.results, results)


def argument(given: dict[Part, Any], part: Part, type_: Attribute) -> Any:
    """An argument of the derived function: what the op takes, else 0."""
    if part in given:
        return given[part]
    if not isinstance(type_, MemRefType):
        return zero(type_)
    like: Memref = given[Part("argument", part.number)]
    return fresh(cast(MemRefType[Attribute], type_), like.shape, zero=True)


def zero(type_: Attribute) -> Any:
    return np.zeros(lanes_of(type_), dtype_of(type_))[()]
