"""The plan of a gradient: how each needed value is had again, and what is saved for that.

`planner` makes it. The sweeps and the receipt read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import i8
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.traits import IsTerminator

from ...dialects import array
from ..analysis.needed import Needed
from ..analysis.views import strip_views
from ..diagnostics import line_of
from ..rules import Contents
from .mirrored_contents import Mirror
from .neighbours import Neighbour
from .overwritten import Answer, Margins, Overwritten
from .refills import Refill
from .rollback import Rolled
from .segments import Segment
from .versions import Version

Node = SSAValue | Contents | Version
Saved = Node | Overwritten


@dataclass(frozen=True)
class Free:
    """A constant, a counter, or a value of the function's top level, which the reverse sweep still sees."""


@dataclass(frozen=True)
class Reload:
    """Read again: where the program `stored` it, of a copy of what the array held, or where it was read."""

    stored: Operation | None = None
    output: int = 0
    """Where a map stored it, the output: the same value may be stored to another, and overwritten there."""
    copy: Version | None = None


@dataclass(frozen=True)
class ReadMirror:
    """Contents of an array, read where the iteration before has stored them too."""

    mirror: Mirror


@dataclass(frozen=True)
class ReadNeighbour:
    """What a variable holds at the start of an iteration: a value of the iteration before."""

    neighbour: Neighbour


@dataclass(frozen=True)
class Recompute:
    """Pure code on what is had again; of contents of an array, by the ops that fill it."""

    refill: Refill | None = None


@dataclass(frozen=True)
class Invert:
    """The operation on it is undone, whose result is had again."""

    op: Operation


@dataclass(frozen=True)
class RollBack:
    """What came later is undone."""

    rolled: Rolled


@dataclass(frozen=True)
class ReadOld:
    """Read of the old contents of the stores that overwrote it."""

    answer: Answer


@dataclass(frozen=True)
class Save:
    """One thing that the forward sweep writes to a tape."""

    node: Saved
    at: Operation
    """The op that defines the value; where memory is copied, the op before which."""
    source: Operation
    """The op that reads or computes the value: of old contents, the first."""
    killer: Operation | None
    needed_by: Operation
    segment: Segment

    @property
    def push_before(self) -> Operation:
        return self.segment.push_before

    @property
    def loops(self) -> tuple[array.LoopOp, ...]:
        return self.segment.loops

    @property
    def margins(self) -> Margins:
        return self.segment.margins

    @property
    def element(self) -> Attribute:
        return self.segment.element

    @property
    def in_bits(self) -> bool:
        return self.segment.in_bits

    @property
    def in_packed_rows(self) -> bool:
        return self.segment.in_packed_rows

    @property
    def stored(self) -> Attribute:
        """The elements of the segment."""
        return i8 if self.in_bits or self.in_packed_rows else self.element


How = Free | Reload | ReadMirror | ReadNeighbour | Recompute | Invert | RollBack | ReadOld | Save
"""The ways to have a value again."""

RECOMPUTE = Recompute()


@dataclass(frozen=True, eq=False)
class Replay:
    """A loop whose reverse sweep fills tapes again, a stretch of iterations at a time (`replays`)."""

    loop: array.LoopOp
    states: Mapping[SSAValue, Save]
    """The arrays that the loop changes, each with the save of its contents where a stretch begins."""
    saves: tuple[Save, ...]
    """What is filled again: their segments are pushed in each iteration."""
    cloned: frozenset[Operation]
    """The ops of the loop's body that run again."""
    arrays: frozenset[SSAValue]
    """Those that the clones have of their own: those with a state, and scratch arrays of an iteration."""
    apart: bool = False
    """Each iteration runs again by itself, from what was there before the loop (`replays_apart`)."""
    final: frozenset[tuple[Operation, SSAValue]] = frozenset()
    """What maps read of these arrays that nothing overwrites afterwards: read where the program left it."""
    late: frozenset[Operation] = frozenset()
    """What stores to these arrays behind all that is filled again: it does not store again."""


@dataclass
class Plan:
    """The decisions for one function; `saves` in program order."""

    function: func.FuncOp
    needed: Needed
    saves: list[Save]
    hows: dict[Node | Overwritten, How]
    """How each value is had that the adjoint asks for, and what that asks for in turn."""
    replays: dict[array.LoopOp, Replay] = field(default_factory=dict[array.LoopOp, Replay])
    can_replay: bool = False
    """Whether there would be some, if the function asked for them."""
    worth: int = 1
    """How many times `LONGEST_TAPE` they must save (`replays.WORTH_WHOLE_STEPS`)."""

    @property
    def read_back(self) -> list[Save]:
        """All that the reverse sweep reads from tapes: what was saved, and what it fills again."""
        return [*self.saves, *(save for r in self.replays.values() for save in r.saves)]

    def how(self, node: Node | Overwritten) -> How:
        """What needed no decision is pure code on numbers that are free."""
        return self.hows.get(node, RECOMPUTE)

    def save_of(self, node: Node | Overwritten) -> Save | None:
        how = self.hows.get(node)
        return how if isinstance(how, Save) else None

    @property
    def rolled(self) -> dict[SSAValue, Rolled]:
        """The values of integer cells that are had again by undoing what came later."""
        found = (h.rolled for h in self.hows.values() if isinstance(h, RollBack))
        return {one.value: one for one in found}


def hint_of(save: Save) -> str:
    """The name of what is saved, as the program calls it where it has a name."""
    if isinstance(save.node, Version):
        return save.node.base.name_hint or "array"
    if isinstance(save.node, Overwritten):
        return strip_views(save.node.target).name_hint or "array"
    if isinstance(save.node, Contents):
        return strip_views(save.node.memref).name_hint or "array"
    return save.node.name_hint or "value"


def is_release(killer: Operation | None) -> bool:
    """True for the end of a block, which releases the memory that the block has allocated."""
    return killer is not None and killer.has_trait(IsTerminator)


def killing_line(save: Save) -> tuple[str, int, int] | None:
    """Where the program overwrites what is saved; for a variable, where its next value is computed."""
    killer = save.killer
    if killer is None:
        return None
    if isinstance(killer, memref.StoreOp) and isinstance(killer.memref.owner, memref.AllocaOp):
        value = killer.value.owner
        if isinstance(value, Operation) and value.parent_block() is killer.parent_block():
            return line_of(value)
    return line_of(killer)
