"""Whether two memrefs share bytes, as `array.overlap` says it: false is certain, true a guess where they
interleave (`codegen.overlap_test` has the rule, and reasons)."""

from __future__ import annotations

from .memory import Memref


def share_bytes(a: Memref, b: Memref) -> bool:
    """Whether two memrefs may have an element in common."""
    if 0 in a.shape or 0 in b.shape:
        return False
    (low, high), (start, end) = extent_of(a), extent_of(b)
    if high <= start or end <= low:
        return False
    ranks = len(a.shape), len(b.shape)
    if not all(ranks) or size_of(a) != size_of(b):
        return True
    return not any(take_turns(a, b, d, e) for d, e in {(0, 0), (ranks[0] - 1, ranks[1] - 1)})


def size_of(m: Memref) -> int:
    """The bytes of an element."""
    return m.root.cells.strides[0]


def extent_of(m: Memref, but: int | None = None) -> tuple[int, int]:
    """The first byte and the one behind the last: of all elements, or of those at one place along `but`."""
    size = size_of(m)
    low = m.root.cells.__array_interface__["data"][0] + m.offset * size
    high = low + size
    for axis, (extent, stride) in enumerate(zip(m.shape, m.strides, strict=True)):
        if axis != but:
            reach = (extent - 1) * stride * size
            low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high


def take_turns(a: Memref, b: Memref, d: int, e: int) -> bool:
    """Whether both fit into one period side by side, where the strides along these dimensions agree."""
    period = abs(a.strides[d]) * size_of(a)
    if not period or abs(a.strides[d]) != abs(b.strides[e]):
        return False
    (low, high), (start, end) = extent_of(a, d), extent_of(b, e)
    shift = (start - low) % period
    return shift >= high - low and shift + end - start <= period
