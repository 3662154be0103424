"""The host's arrays that loops fill with what they fetch from the device: they may be the device's as well.

What a gradient saves of `dt = 0.5 / np.abs(u).max()` is an array with one number an iteration. Where the
device computes the number (`scalars_on_device`), it is to store and read it, too::

    %dt = device.fetch ...                    %dt = device.fetch ...
    memref.store %dt, %dt_saved[%i]           device.put %dt, %dt_saved[%i]

An array moves only if every loop that touches its elements is one whose scalars the device computes: the host
would wait for each element else. All segments of a tape move, or none; those of both halves of a gradient.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import ad, array, device
from ...dialects.within import every_op
from ..analysis.alias import enclosing_loops
from .placement import handed_on, tape_of

ELEMENT = (memref.LoadOp, memref.StoreOp)


def arrays_of_host(functions: Sequence[func.FuncOp]) -> list[set[SSAValue]]:
    """The arrays that only elements are touched of, those that are in one memory together."""
    by_tape: dict[SSAValue, set[SSAValue]] = {}
    alone: list[set[SSAValue]] = []
    for op in (op for f in functions for op in every_op(f)):
        if isinstance(op, ad.PushOp | ad.PopOp):
            by_tape.setdefault(tape_of(op), set()).add(op.memref)
        elif isinstance(op, array.AllocOp):
            alone.append({op.memref})
    for one, other in pairwise(functions):
        for given, taken in handed_on(one, other):
            both = by_tape.get(given, set()) | by_tape.get(taken, set())
            by_tape[given] = by_tape[taken] = both
    return [group for group in (*alone, *by_tape.values()) if group and all(map(is_plain, group))]


def is_plain(root: SSAValue) -> bool:
    """Whether an array of the host has no other name, and is not handed on."""
    assert isinstance(root.type, MemRefType)
    owner = root.owner
    if device.space_of(root.type) or array.GROWABLE in getattr(owner, "attributes", {}):
        return False
    return all(isinstance(use.operation, (*ELEMENT, memref.DimOp)) for use in root.uses) and all(
        use.operation.value is not root
        for use in root.uses
        if isinstance(use.operation, memref.StoreOp)
    )


def loops_touching(root: SSAValue) -> Iterator[array.LoopOp]:
    """The innermost loops in which elements are touched."""
    for use in root.uses:
        if isinstance(use.operation, ELEMENT):
            yield from enclosing_loops(use.operation)[-1:]


def move(root: SSAValue) -> None:
    """Make an array the device's; the host fetches and puts its elements."""
    for op in [use.operation for use in root.uses]:
        if isinstance(op, memref.LoadOp):
            found = device.FetchOp(root, list(op.indices))
            found.location, found.result.name_hint = op.location, op.res.name_hint
            Rewriter.replace_op(op, found)
        elif isinstance(op, memref.StoreOp):
            put = device.PutOp(op.value, root, list(op.indices))
            put.location = op.location
            Rewriter.replace_op(op, put, [])
    Rewriter.replace_value_with_new_type(root, device.in_space(root.type, device.GLOBAL))
