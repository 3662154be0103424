"""Reductions to one element, in an order that depends on the extents alone.

::

    %b = blocks(n)                                 at most `MOST`
    device.launch @sum blocks(%b) (%u, %partial)   thread t of block b adds up points b * 256 + t,
                                                   (b + %b) * 256 + t, ...; then the block's threads meet in
                                                   shared memory, the upper half added to the lower
    device.launch @sum_of_blocks blocks(1) ...     one block does the same with what the blocks have
    %s = device.fetch %result[0]                   the host adds it to its variable

No atomics: two runs have the same bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects import device
from .kernel import Kernel, Writer, element_of

EACH = 8
"""Points that a thread adds up before there is another block."""

MOST = 1024
"""Blocks of a reduction."""


def blocks_of(writer: Writer, extents: Sequence[SSAValue]) -> SSAValue:
    """How many blocks a reduction of an index space has: one at least, so that there is a result."""
    parts = writer.parts(total(writer, extents), device.THREADS * EACH)
    some = writer.emit(arith.MinSIOp(parts, writer.index(MOST)))
    return writer.emit(arith.MaxSIOp(some, writer.index(1)))


def total(writer: Writer, extents: Sequence[SSAValue]) -> SSAValue:
    """How many points an index space has."""
    found = writer.index(1)
    for extent in extents:
        found = writer.product(found, writer.at_least_zero(extent))
    return found


def share(
    kernel: Kernel, extents: Sequence[SSAValue], blocks: SSAValue
) -> tuple[SSAValue, SSAValue, SSAValue]:
    """Of the points in their order: the first that is this thread's, how far its next is, how many it has."""
    number = kernel.index(device.THREADS)
    thread, block = kernel.emit(device.ThreadOp()), kernel.emit(device.BlockOp())
    first = kernel.sum(kernel.product(block, number), thread)
    step = kernel.product(blocks, number)
    left = kernel.emit(arith.SubiOp(total(kernel, extents), first))
    more = kernel.sum(kernel.at_least_zero(left), step)
    return first, step, kernel.quotient(kernel.emit(arith.SubiOp(more, kernel.index(1))), step)


def at_number(kernel: Kernel, number: SSAValue, extents: Sequence[SSAValue]) -> list[SSAValue]:
    """The point of a number; the last axis goes fastest."""
    found: list[SSAValue] = []
    for extent in reversed(extents[1:]):
        found.append(kernel.rest(number, extent))
        number = kernel.quotient(number, extent)
    return [*([number] if extents else []), *reversed(found)]


Keep = Callable[[SSAValue], None]


@dataclass(frozen=True)
class Term:
    """What a thread has of a sum (or another combination), and what is done with that of its block."""

    kind: str
    mine: SSAValue
    keep: Keep


def meet(kernel: Kernel, terms: Sequence[Term]) -> None:
    """The threads of a block combine what they have; the first of them keeps it."""
    thread, zero = kernel.emit(device.ThreadOp()), kernel.index(0)
    slots = [kernel.shared(term.mine.type) for term in terms]
    for term, own in zip(terms, slots, strict=True):
        kernel.store(term.mine, own, [thread])
    width = device.THREADS // 2
    while width:
        kernel.add(device.BarrierOp())
        half = kernel.index(width)
        with kernel.where(kernel.less(thread, half)):
            for term, own in zip(terms, slots, strict=True):
                other = kernel.load(own, [kernel.sum(thread, half)])
                both = kernel.combined(term.kind, kernel.load(own, [thread]), other)
                kernel.store(both, own, [thread])
        width //= 2
    with kernel.where(kernel.emit(arith.CmpiOp(thread, zero, "eq"))):
        for term, own in zip(terms, slots, strict=True):
            term.keep(kernel.load(own, [zero]))


def keep_for_block(kernel: Kernel, partial: SSAValue) -> Keep:
    """Stores what a block has in memory that is given, one element a block."""
    into, block = kernel.value(partial), kernel.emit(device.BlockOp())
    return lambda value: kernel.store(value, into, [block])


def of_blocks(kernel: Kernel, kind: str, partial: SSAValue, count: SSAValue) -> SSAValue:
    """What a thread of the only block has of what blocks left, for a start."""
    source, extent = kernel.value(partial), kernel.value(count)
    element = element_of(partial)
    cell = kernel.cell(element)
    kernel.store(kernel.identity(kind, element), cell)
    first, step, trips = share(kernel, [extent], kernel.index(1))
    with kernel.loop(trips) as k:
        at = kernel.sum(first, kernel.product(k, step))
        new = kernel.combined(kind, kernel.load(cell), kernel.load(source, [at]))
        kernel.store(new, cell)
    return kernel.load(cell)
