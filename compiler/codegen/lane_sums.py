"""Sums along a row, in lanes that depend on the row's length alone.

A sum goes on in two vectors of 64 bytes side by side. LLVM would add up their lanes first, then go on with
what is left of the row in shorter vectors, then with single numbers. Each waits for the one before: for a row
of a hundred numbers that is a third of the time. Here what is left is added to lanes, and these are added up
once. With eight lanes, and 29 = 16 + 8 + 4 + 1 numbers::

    0..15    vectors 0 and 1            24..27    lanes 0 to 3 of vector 1
    16..23   vector 0                   28        lane 6 (two numbers would be in lanes 4 and 5)

Which lane a number goes to, and whether a product is contracted with the sum, does not depend on what else
the loop computes. So there are two ways to the same bits: where a row is arithmetic on elements side by side,
it is written as vectors (`vector_rows`). Elsewhere LLVM makes vectors of a loop that stores the terms in a
buffer, from which they are added (`map_points`).

In gradients alone, on CPUs with AVX-512: other modules have vectors of a width that is known only when all of
it is written. On those without AVX2, only where elements need not lie side by side (`is_weighed`). Not where
rows have few numbers for certain: LLVM writes these out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Attribute

from .floats_to_llvm import multiply_add
from .kernel_state import KernelState, size_of, value_type
from .llvm_text import integer
from .map_nest import Nest, Output, identity, registers, strip_buffer
from .scalar_text import vector_suffix
from .vector_width import is_wide
from .whole_lines import LINE

SIDES = 2
"""Vectors side by side."""

Factors = tuple[str, str] | None


@dataclass
class LaneSum:
    """One of a row's sums."""

    element: Attribute
    slots: list[str]
    """The stack slots (registers, for LLVM) of its vectors."""
    buffers: list[str] = field(default_factory=list[str])
    """Where a loop before leaves its terms, or both factors."""


def lanes_of_sums(nest: Nest, count: str) -> int:
    """The lanes of a row's sums; 0 where LLVM adds them up."""
    state, found = nest.state, sums_of(nest)
    if not found or state.fastmath or state.scalar_only:
        return 0
    if not (state.in_vectors and (is_wide(state.features) or is_weighed(nest))):
        return 0
    sizes = {size_of(o.element) for o in found.values()}
    if len(sizes) > 1:
        return 0
    lanes, known = LINE // sizes.pop(), integer(count)
    return lanes if known is None or known >= SIDES * lanes else 0


def is_weighed(nest: Nest) -> bool:
    """Whether LLVM would weigh what else is in the loop, before it makes vectors of it: two numbers that lie
    apart are hardly worth one."""
    state = nest.state
    apart = state.spread or any(o.strides[-1] not in ("0", "1", "-1") for o in nest.operands)
    return apart and "sse4.2" in state.features and "avx2" not in state.features


def sums_of(nest: Nest) -> dict[int, Output]:
    """The sums of floats among the registers, by position."""
    return {
        k: o
        for k, o in enumerate(registers(nest))
        if o.kind == "add" and isinstance(o.element, Float64Type | Float32Type)
    }


class LaneSums:
    """All sums of a row."""

    def __init__(self, nest: Nest, lanes: int) -> None:
        self.state, self.lanes, text = nest.state, lanes, nest.state.text
        self.sums: dict[int, LaneSum] = {}
        self.first_buffer = self.points = 0
        for k, o in sums_of(nest).items():
            type_ = vector_of(o.element, lanes)
            self.sums[k] = LaneSum(
                o.element, [text.alloca(type_, "sum", LINE) for _ in range(SIDES)]
            )
            for slot in self.sums[k].slots:
                text.do(f"store {type_} {nothing(o.element)}, ptr {slot}, align {LINE}")

    def add(self, k: int, side: int, width: int, term: str, factors: Factors) -> None:
        """Add so many terms, or the products of factors."""
        one, state = self.sums[k], self.state
        type_, slot = vector_of(one.element, self.lanes), one.slots[side]
        if width < self.lanes:
            term, factors = self.in_lanes(one, width, term), None
        before = state.text.value(f"load {type_}, ptr {slot}, align {LINE}")
        after = added(state, one.element, type_, before, term, factors)
        state.text.do(f"store {type_} {after}, ptr {slot}, align {LINE}")

    def in_lanes(self, one: LaneSum, width: int, term: str) -> str:
        """A shorter vector in lanes of its own; the others have what adds nothing."""
        short = vector_of(one.element, width)
        first = self.lanes - 2 * width
        of = [k - first if first <= k < first + width else width for k in range(self.lanes)]
        shown = ", ".join(f"i32 {k}" for k in of)
        return self.state.text.value(
            f"shufflevector {short} {term}, {short} {nothing(one.element)}, "
            f"<{self.lanes} x i32> <{shown}>"
        )

    def finish(self, accumulators: list[str]) -> list[str]:
        """The registers after the row."""
        state, found = self.state, list(accumulators)
        for k, one in self.sums.items():
            type_, number = vector_of(one.element, self.lanes), value_type(one.element)
            first, second = (
                state.text.value(f"load {type_}, ptr {slot}, align {LINE}") for slot in one.slots
            )
            both = added(state, one.element, type_, second, first, None)
            name = state.intrinsic(
                f"llvm.vector.reduce.fadd.{vector_suffix(type_)}", number, f"{number}, {type_}"
            )
            start = identity("add", one.element)
            whole = state.text.value(
                f"call reassoc {number} @{name}({number} {start}, {type_} {both})"
            )
            found[k] = added(state, one.element, number, accumulators[k], whole, None)
        return found

    # Terms in buffers.

    def take_buffers(self, first: int, points: int) -> None:
        """Have stack buffers from this number on."""
        self.first_buffer, self.points = first, points

    def keep(self, k: int, at: str, new: str, factors: Factors, group: str) -> None:
        """Leave a term for `add_kept`; `at` is its number."""
        one, state = self.sums[k], self.state
        first = self.first_buffer + 2 * k
        one.buffers = [
            strip_buffer(state, first + j, self.points) for j, _ in enumerate(factors or (new,))
        ]
        for place, value in zip(one.buffers, factors or (new,), strict=True):
            state.store(value, state.offset(place, one.element, at), one.element, group)

    def add_kept(self, count: str) -> None:
        """Add so many terms."""
        state = self.state
        for first, width, side in lane_parts(state, count, self.lanes):
            for k, one in self.sums.items():
                type_ = vector_of(one.element, width)
                align = size_of(one.element)
                found = [
                    state.text.value(
                        f"load {type_}, ptr {state.offset(place, one.element, first)}, align {align}"
                    )
                    for place in one.buffers
                ]
                if len(found) == 1:
                    self.add(k, side, width, found[0], None)
                elif width == self.lanes:
                    self.add(k, side, width, "", (found[0], found[1]))
                else:
                    product = state.text.value(f"fmul {type_} {found[0]}, {found[1]}")
                    self.add(k, side, width, product, None)


def lane_parts(state: KernelState, count: str, lanes: int) -> Iterator[tuple[str, int, int]]:
    """The parts of a row: their first number, how many, and the vector that they are added to. What follows
    writes the part."""
    text, block = state.text, SIDES * lanes
    blocks = text.value(f"lshr i64 {count}, {block.bit_length() - 1}")
    loop = text.begin_loop(blocks, (), "block")
    first = text.mul(loop.counter, str(block))
    for side in range(SIDES):
        yield text.add(first, str(side * lanes)), lanes, side
    node = state.metadata.node
    written = [
        node('!"llvm.loop.isvectorized", i32 1'),
        node('!"llvm.loop.unroll.runtime.disable"'),
    ]
    text.end_loop(loop, (), written)
    first, width = text.value(f"and i64 {count}, {-block}"), lanes
    rest, whole = text.label("rest"), text.label("whole")
    left = text.value(f"and i64 {count}, {block - 1}")
    text.branch_if(text.value(f"icmp ne i64 {left}, 0"), rest, whole)
    text.start(rest)
    while width:
        some = text.value(f"and i64 {count}, {width}")
        then, on = text.label("end"), text.label("on")
        text.branch_if(text.value(f"icmp ne i64 {some}, 0"), then, on)
        text.start(then)
        yield first, width, int(width < lanes)
        text.branch(on)
        text.start(on)
        first = text.add(first, some)
        width //= 2
    text.branch(whole)
    text.start(whole)


def added(
    state: KernelState, element: Attribute, type_: str, old: str, new: str, factors: Factors
) -> str:
    """A sum of vectors, in this order."""
    if factors is not None:
        return multiply_add(state, type_, "", factors, old)
    return state.text.value(f"fadd {type_} {old}, {new}")


def vector_of(element: Attribute, lanes: int) -> str:
    return f"<{lanes} x {value_type(element)}>"


def nothing(element: Attribute) -> str:
    """A vector that leaves sums unchanged."""
    return f"splat ({value_type(element)} {identity('add', element)})"
