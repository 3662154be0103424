"""Vectors of long rows that begin at lines of the cache.

A vector of 64 bytes that begins elsewhere is in two lines, so each store takes two, and each load of what is
stored to, too. Where a row is long, the few points before its first line go first, by the same loop::

    for part < 2:                                 one part where the row is short, or begins at a line
      for j in the first `head` points, then in the others:
        ...
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Attribute, SSAValue

from ...dialects import array
from .kernel_state import KernelState, size_of
from .llvm_text import integer

LINE = 64
"""The bytes of a line."""
LONG = 2048
"""The points of a row for which it pays: of fewer the first ones take as long as they save."""


def begins_behind(memory: SSAValue, element: Attribute) -> bool:
    """Whether a vector begins a few elements behind what likely begins at a line, as `u[1:-1]` does."""
    view = memory.owner
    if not isinstance(view, array.ViewOp) or len(view.offsets) != 1:
        return False
    offset = array.constant_value(view.offsets[0])
    return offset is not None and offset * size_of(element) % LINE != 0


def may_begin_at_line(count: str, element: Attribute, stride: str) -> bool:
    """Whether rows of an array may be long, and lie in one piece."""
    known = integer(count)
    many = known is None or known >= LONG
    return many and stride == "1" and not isinstance(element, VectorType)


@contextmanager
def from_line(
    state: KernelState, pointer: str, element: Attribute, count: str
) -> Generator[tuple[str, str]]:
    """Around a loop over a row that stores from `pointer` on: its first point, and how many it has."""
    text, width = state.text, size_of(element)
    address = text.value(f"ptrtoint ptr {pointer} to i64")
    ahead = text.value(f"and i64 {text.sub('0', address)}, {LINE - 1}")
    ahead = text.value(f"lshr i64 {ahead}, {width.bit_length() - 1}")
    long = text.value(f"icmp sge i64 {count}, {LONG}")
    head = text.value(f"select i1 {long}, i64 {ahead}, i64 0")
    some = text.value(f"icmp ne i64 {head}, 0")
    parts = text.value(f"select i1 {some}, i64 2, i64 1")
    loop = text.begin_loop(parts, (), "part", certain=True)
    is_last = text.value(f"icmp eq i64 {text.add(loop.counter, '1')}, {parts}")
    first = text.value(f"select i1 {is_last}, i64 {head}, i64 0")
    length = text.value(f"select i1 {is_last}, i64 {text.sub(count, head)}, i64 {head}")
    yield first, length
    text.end_loop(loop, (), state.loop_properties())
