"""Which extents of a kernel's arguments are the same number."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, MemRefType
from xdsl.ir import SSAValue

from ..codegen.entries.guard import Form
from .entry_values import Extent


def alike(kernel: func.FuncOp) -> dict[SSAValue, SSAValue]:
    """The arguments of a derivative that have the extents of one of the primal's: shadows, tangents.

    Its arguments are the primal's, their shadows, cotangents of results, and tangents of what is "moving".
    """
    shadows, cotangents, moving = (listed(kernel, k) for k in ("shadows", "cotangents", "moving"))
    arguments = list(kernel.body.block.args)
    first = len(arguments) - len(shadows) - len(cotangents) - len(moving)
    tangents = first + len(shadows) + len(cotangents)
    of = {first + k: index for k, index in enumerate(shadows)}
    of |= {tangents + k: of.get(index, index) for k, index in enumerate(moving)}
    return {
        arguments[k]: arguments[index]
        for k, index in of.items()
        if isinstance(arguments[k].type, MemRefType)
    }


def equal_extents(kernel: func.FuncOp, assumed: Sequence[Form]) -> dict[Extent, Extent]:
    """One name for all extents of arguments that are equal."""
    arguments = kernel.body.block.args
    equal: dict[Extent, Extent] = {}
    for constant, numbers in assumed:
        match sorted(numbers, key=repr):
            case [(-1, (int(i), int(a))), (1, (int(j), int(b)))] if constant == 0 and a >= 0 <= b:
                pair = [(arguments[i], a), (arguments[j], b)]
                first, other = (equal.get(e, e) for e in pair)
                equal |= {e: first for e, of in equal.items() if of == other}
                equal[other] = first
            case _:
                pass
    for mine, like in alike(kernel).items():
        assert isinstance(mine.type, MemRefType)
        for axis in range(mine.type.get_num_dims()):
            equal[mine, axis] = equal.get((like, axis), (like, axis))
    return equal


def listed(kernel: func.FuncOp, name: str) -> list[int]:
    found = kernel.attributes.get(name)
    return [int(n) for n in found.get_values()] if isinstance(found, DenseArrayBase) else []
