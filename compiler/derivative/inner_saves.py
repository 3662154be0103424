"""What derivatives inside a program save, for the receipt.

Each `ad.derivative` of the gradient function, forward or reverse, has its own plan for the function that it
names. Its tapes are empty again when it ends, so the loops around it do not count. Each direction of its
tangents doubles the number of tapes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import SSAValue

from ...dialects import ad
from ..names import as_written
from .expand_derivatives import active_of, apart
from .intervals import ArrayExtent
from .reverse import gradient_of, only_function, plan_gradient
from .saved_value import SavedValue, saved_value
from .sizes import Sizes
from .source_words import line_number


def inner_saves(
    gradient: func.FuncOp,
    module: ModuleOp,
    arguments: Sequence[Any] | None,
    saves: str,
    directions: int = 0,
) -> Iterator[SavedValue]:
    """The saves of all derivatives that a gradient function asks for, and of those that these ask for.

    `arguments` are those of the gradient function, as far as they are known; `module` has the functions;
    tangents are taken of it in so many `directions`.
    """
    sizes = Sizes(gradient, arguments)
    for op in gradient.walk():
        if not isinstance(op, ad.DerivativeOp) or op.reverse is None:
            continue
        active, given = active_of(op), known_arguments(op, sizes)
        plan = plan_gradient(only_function(apart(module, op.target)), active, saves)
        own, name = Sizes(plan.function, given), as_written(op.target.rpartition("_primal")[0])
        line = f"where line {line_number(op)} asks for the gradient of `{name}`"
        where = line if op.silent is None else f"{line}, in the adjoint of that"
        for save in plan.saves:
            found = saved_value(save, own, copies=2 ** (op.directions + directions))
            yield replace(found, why=f"{found.why}, {where}", way_out=None)
        if any(isinstance(inner, ad.DerivativeOp) for inner in plan.function.walk()):
            nested = apart(module, op.target)
            made = gradient_of(only_function(nested), active, saves)
            more = len(made.body.block.args) - len(plan.function.body.block.args)
            known = None if given is None else [*given, *[None] * more]
            yield from inner_saves(made, nested, known, saves, directions + op.directions)


def known_arguments(op: ad.DerivativeOp, sizes: Sizes) -> list[Any] | None:
    """The arguments of the function, as far as sizes depend on them; None where a shape is unknown."""
    found: list[Any] = []
    for part, operand, _ in op.taken():
        if part.kind == "argument" and not part.along:
            value = known_value(operand, sizes)
            if value is None and isinstance(operand.type, MemRefType):
                return None
            found.append(value)
    return found


def known_value(operand: SSAValue, sizes: Sizes) -> Any:
    """An integer, or an array that has the shape of an operand; None where nobody knows it."""
    if not isinstance(operand.type, MemRefType):
        return sizes.evaluate(operand)
    rank = operand.type.get_num_dims()
    shape = [sizes.evaluate(ArrayExtent(operand, axis)) for axis in range(rank)]
    return None if None in shape else np.broadcast_to(np.zeros(()), shape)  # pyright: ignore
