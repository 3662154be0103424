"""The last points of a row, fewer than a vector has: in vectors of half, a quarter, ... of its width.

LLVM makes a loop over vectors, and one over single elements for what is left: up to seven for rows of doubles
in vectors of 64 bytes, which take as long as seven vectors. Where a map has many rows that is much of the
time, and a vector that is read where elements were stored one by one waits for all of them. So the loop over
a row is written for whole vectors, and again for each binary digit of the rest::

    for j < n & -8:    ...          a loop over vectors, nothing left
    if n & 4: for j < 4: ...        one vector of four elements
    if n & 2: for j < 2: ...        of two
    if n & 1:          ...

Only where a map takes a part of an array's rows, as `c[:, 1:-1]` is: rows of whole arrays are more often
whole vectors. Each point has the operations that it had. Not for sums, whose order would change, nor where
elements have several sizes, or the body has functions, of which single elements have others than vectors. And
not for quotients by what stands still (`invariant_divisors`), which look at all numbers of a row.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects.builtin import VectorType
from xdsl.ir import SSAValue

from ...dialects import array
from .kernel_state import KernelState, size_of
from .line_starts import column_of
from .llvm_text import integer
from .map_nest import Nest, registers
from .map_stages import Stage
from .vector_width import is_wide
from .whole_lines import LINE

SMALL = 48
"""Bodies of more operations are not written several times."""
EXACT = ("math.absf", "math.copysign", "math.fma", "math.sqrt")
"""Besides arithmetic: what vectors compute as single elements do."""


def lanes_of(nest: Nest, stage: Stage, count: str) -> int:
    """The elements of a whole vector, where the ends of rows are written apart; else 0."""
    whole_body = len(nest.stages) == 1 and not (stage.checks or stage.taken or stage.quotients)
    several_rows = len(nest.op.extents) > 1 and integer(count) is None
    if not (whole_body and several_rows) or registers(nest) or nest.state.scalar_only:
        return 0
    if not any(map(is_part_of_rows, nest.op.operands)):
        return 0
    sizes = {size_of(o.element) for o in nest.operands}
    strides = {o.strides[-1] for o in nest.outputs}, {o.strides[-1] for o in nest.inputs}
    side_by_side = strides[0] == {"1"} and strides[1] <= {"0", "1"}
    if len(sizes) > 1 or not side_by_side or any(o.in_order for o in nest.outputs):
        return 0
    if any(isinstance(o.element, VectorType) for o in nest.operands) or not is_plain(nest.op):
        return 0
    return LINE // sizes.pop() if is_wide(nest.state.features) else 0


def is_part_of_rows(operand: SSAValue) -> bool:
    """Whether an array is a view that begins behind the first column of another."""
    view = operand.owner
    while isinstance(view, array.ViewOp):
        if column_of(view) not in (0, None):
            return True
        view = view.source.owner
    return False


def is_plain(op: array.MapOp) -> bool:
    """Whether the body is a little arithmetic."""
    names = [inner.name for inner in op.body.block.ops]
    plain = all(name.startswith("arith.") or name in EXACT for name in names[:-1])
    return plain and len(names) <= SMALL


def parts_of_row(state: KernelState, count: str, lanes: int) -> Iterator[tuple[str, str]]:
    """The parts of a row: the first point of each, and how many it has. What follows writes the part.

    With 0 lanes the row is one part.
    """
    if not lanes:
        yield "0", count
        return
    text = state.text
    first = text.value(f"and i64 {count}, {-lanes}")
    yield "0", first
    while lanes > 1:
        lanes //= 2
        some = text.value(f"and i64 {count}, {lanes}")
        then, on = text.label("end"), text.label("on")
        text.branch_if(text.value(f"icmp ne i64 {some}, 0"), then, on)
        text.start(then)
        yield first, str(lanes)
        text.branch(on)
        text.start(on)
        first = text.add(first, some)


def properties_of_end(state: KernelState, count: str, group: str) -> list[str]:
    """Metadata of the loop over the points behind the whole vectors: they are one vector."""
    node = state.metadata.node
    parallel = node(f'!"llvm.loop.parallel_accesses", {group}')
    if int(count) <= 2:  # LLVM does not count to two: written out, they become a vector
        return [parallel]
    return [
        parallel,
        node(f'!"llvm.loop.vectorize.width", i32 {count}'),
        node('!"llvm.loop.interleave.count", i32 1'),
        node('!"llvm.loop.unroll.disable"'),  # before it is a vector
    ]
