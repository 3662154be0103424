"""Variables that hold, at the start of an iteration, what the iteration before computed.

The value of such a variable is the *neighbour* of one that the plan knows: it is recovered as that one is,
one iteration earlier::

    memref.store %first, %left[]
    array.loop %i to %n do {
      %l = memref.load %left[]                        // one iteration ago this was %here
      %here = memref.load %u[%i]                      // saved: %u_saved[%i]
      ...                                             // so %l is %u_saved[%i - 1], in the first one %first
      memref.store %here, %left[]
    }

All that the value is computed from must be available for another iteration than the current one. Counters,
memory that survives, tapes that the loop indexes and other neighbours are. The rest (killed loads, results of
branches and loops) has to be saved: `Neighbour.on_tape`.

Not handled: loops that may leave early, whose tapes are pushed in each iteration.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.dialects import memref
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ..analysis.kills import Kills
from ..rules import Access
from ..rules.descriptors import descriptor_values
from . import available_values
from .segments import is_inside, is_recomputable, value_block
from .versions import Version


@dataclass(frozen=True, eq=False)
class Neighbour:
    """What a variable holds at the start of the iterations of a loop."""

    loop: array.LoopOp
    value: SSAValue
    """What each iteration stores to it at last."""
    entry: Version
    """What it held before the loop."""
    through: set[SSAValue]
    """What `value` is computed from, itself included, as far as that is in the loop."""
    on_tape: set[SSAValue]
    """Of these, what is had again in its own iteration only, where it is not saved."""
    variables: dict[SSAValue, Version]
    """Of these, the loads of other variables that may be neighbours, too."""

    def to_save(self, chosen: Collection[Version]) -> Iterator[SSAValue]:
        """What has to be on a tape where of all variables those `chosen` are had as neighbours."""
        yield from self.on_tape
        yield from (load for load, v in self.variables.items() if v not in chosen)


class Neighbours:
    """Finds them, for one function."""

    def __init__(self, kills: Kills) -> None:
        self.kills = kills
        self.ssa = kills.ssa

    def of(self, version: Version) -> Iterator[Neighbour]:
        """Whose neighbours these contents of a variable are.

        Of a value that is computed once more, and of one that is on a tape itself.
        """
        stored = self._stored(version)
        if stored is None:
            return
        loop, value = stored
        computed = self._computed(version, loop, value)
        yield computed
        if computed.on_tape and computed.on_tape != {value}:
            yield Neighbour(loop, value, computed.entry, {value}, {value}, {})

    def _computed(self, version: Version, loop: array.LoopOp, value: SSAValue) -> Neighbour:
        """With all that the value is computed from."""
        block = loop.body.block
        pending, seen = [value], set[SSAValue]()
        on_tape, variables = set[SSAValue](), dict[SSAValue, Version]()
        while pending:
            v = pending.pop()
            if v in seen or not is_inside(v, loop):
                continue
            seen.add(v)
            if v is loop.induction:
                continue
            taken = self._taken(v, block)
            if taken is not None:
                pending.extend(taken)
                continue
            other = self._variable(v)
            stored = None if other is None else self._stored(other)
            if other is not None and stored is not None and stored[0] is loop:
                variables[v] = other
            else:
                on_tape.add(v)
        entry = Version(version.base, self.ssa.version(version.base, loop))
        return Neighbour(loop, value, entry, seen, on_tape, variables)

    def _stored(self, version: Version) -> tuple[array.LoopOp, SSAValue] | None:
        """The loop at whose header the contents are asked for, and what its body stores last."""
        base = version.base
        if not isinstance(base.owner, memref.AllocaOp) or len(version.token.roots) != 1:
            return None
        ((root, state),) = version.token.roots
        loop = state.op
        if root is not base or state.place != "phi" or not isinstance(loop, array.LoopOp):
            return None
        changes = self.ssa.changes(root, loop.body.block)
        last = changes[-1] if changes else None
        if loop.condition_block is not None or loop.count is None:
            return None
        if not isinstance(last, memref.StoreOp) or last.memref is not root or last.indices:
            return None
        return loop, last.value

    def _taken(self, value: SSAValue, block: Block) -> Iterator[SSAValue] | None:
        """What a value of the loop's body is computed or read from, in any iteration."""
        if isinstance(value, BlockArgument) or value_block(value) is not block:
            return None
        op = cast(Operation, value.owner)
        if isinstance(op, memref.LoadOp):
            if self.kills.killer(Access(op, op.memref, "read", True)) is not None:
                return None
            if not is_plain_view(op.memref, block):
                return None
            return iter((*op.indices, *descriptor_values(op.memref)))
        return iter(op.operands) if is_recomputable(op) else None

    def _variable(self, value: SSAValue) -> Version | None:
        """What a load of a variable reads."""
        op = value.owner
        if not isinstance(op, memref.LoadOp) or not isinstance(op.memref.owner, memref.AllocaOp):
            return None
        return Version(op.memref, self.ssa.version(op.memref, op))


def without_cycles(neighbours: Mapping[Version, Sequence[Neighbour]]) -> None:
    """Have what is loaded on a tape where a variable would be had by way of itself."""
    done = set[Version]()

    def visit(version: Version, path: tuple[Version, ...]) -> None:
        neighbour, *_ = neighbours[version]
        for load, other in list(neighbour.variables.items()):
            if other in path or other not in neighbours:
                del neighbour.variables[load]
                neighbour.on_tape.add(load)
            elif other not in done:
                visit(other, (*path, other))
        done.add(version)

    for version in neighbours:
        if version not in done:
            visit(version, (version,))


def is_plain_view(source: SSAValue, block: Block) -> bool:
    """Whether a memref is a view of memory outside a block, by views and casts of that block alone."""
    while isinstance(owner := source.owner, array.AnyView | memref.CastOp):
        source = owner.source
    return not available_values.is_inside(value_block(source), block)
