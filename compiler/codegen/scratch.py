"""What the code of an op takes of scratch memory beside the allocations that the IR shows.

Only products do: a factor that BLAS cannot walk is packed, and so is the result (`packed_matrices`). A test
finds every place of the code generator that asks for memory, so that a new one is said here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from .kernel_state import lanes_of, number_type, size_of, value_type
from .matmul_to_blas import BLAS_LETTERS, INT_MAX, TINY
from .ordered_products import is_ordered


@dataclass(frozen=True)
class Copies:
    """Matrices that are copied, each in memory of its own, where BLAS cannot walk them.

    It walks a matrix by rows, or by columns: the elements of one follow each other, and the next begins
    behind it and at most `farthest` elements on. Nothing is copied where a size is 0 or larger than that,
    where all are at most `tiny`, and where there is a single row or column.
    """

    matrices: tuple[SSAValue, ...]
    sizes: tuple[tuple[SSAValue, int], ...]
    """Rows, inner size and columns of the product: each the extent of an array's axis."""
    item: int
    tiny: int = TINY
    farthest: int = INT_MAX


class InBlocks(Exception):
    """Columns of vectors are copied in blocks, whose memory is not counted."""


def copies_of_product(op: array.MatmulOp) -> Copies | None:
    """None where the product is written as loops."""
    assert isinstance(op.c.type, MemRefType)
    element = op.c.type.element_type
    if lanes_of(element) > 1:
        raise InBlocks
    if value_type(number_type(element)) not in BLAS_LETTERS or is_ordered(op):
        return None
    return Copies((op.a, op.b, op.c), ((op.a, 0), (op.a, 1), (op.b, 1)), size_of(element))


SCRATCH: dict[type[Operation], Callable[[Any], Copies | None]] = {
    array.MatmulOp: copies_of_product,
}
"""Ops whose code takes scratch memory."""
