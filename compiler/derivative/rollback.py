"""Integer cells that are rolled back: a counter needs no tape where all that comes later can be undone.

The reverse sweep keeps a cell beside each such cell, the *reverse cell*. It starts with the last value, and
each store that is reversed undoes its update; so it holds, all along the reverse sweep, what the cell held::

    array.loop %i to %n do {                 array.loop ... do {          // last iteration first
      scf.if %c {                              scf.if %c {
        %k1 = memref.load %k[]                   %r = memref.load %k_back[]
        memref.store %y, %out[%k1]               %k1 = %r - 1
        %k2 = arith.addi %k1, %one               ...
        memref.store %k2, %k[]                   memref.store %k1, %k_back[]
      }                                        }
    }
    %last = memref.load %k[]                 memref.store %last, %k_back[]     // before all of that

What is rolled back is a *stretch*: the ops of one block from somewhere to its end, or to the first op
that may store what cannot be undone (`k = 0`). Its last value is a load, put there where the program has
none; like any other value it is saved where it must be, once each time that the block runs. As the reverse
of a block starts, the reverse cell holds what the cell held at the end of that block. A load is had there,
the updates after it in its block being undone at once; those in a branch by choosing again (`Either`).

So a rolled-back value needs the last value, the conditions and trips around the updates, and the amounts. The
plan decides whether these are free, recomputed or saved, as for any value. A condition that depends on the
cell is saved.

Not handled: floats (they round), a load with a loop that counts between it and the end of its block,
cells that a loop's condition stores to.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, IntegerType, MemRefType
from xdsl.ir import Block, Operation, OpResult, SSAValue, Use

from ...dialects import ad, array
from ..analysis.needed import Needed
from ..rules.descriptors import trips_source
from ..transforms.promote_scalars import simple_cells
from .inversions import kept_operands
from .segments import value_block

MOST_STEPS = 8
"""The operations of one update that are looked through."""


@dataclass(frozen=True)
class Inverse:
    """One operation undone: its result is known, `operand` is asked for."""

    op: Operation
    operand: SSAValue


@dataclass(frozen=True)
class Either:
    """What the side taken of a branch did, undone; `sides` as its regions."""

    branch: scf.IfOp
    sides: tuple[Undo, ...]


@dataclass(frozen=True)
class Selected:
    """What a selection chose, undone: of its first value, of its second."""

    op: arith.SelectOp
    sides: tuple[Undo, Undo]


Undo = tuple[Inverse | Either | Selected, ...]
"""From the value after to the value before."""

Leaf = tuple[SSAValue, Block]
"""A value in a branch, and the block around the branch in whose reverse it is asked for."""


@dataclass(eq=False)
class Stretch:
    """The part of a block, up to `end`, in which all stores to `cell` can be undone."""

    cell: SSAValue
    block: Block
    end: Operation
    last: SSAValue
    """What the cell holds there."""


@dataclass(eq=False)
class Rolled:
    """A value that is had from the last value of a stretch: the cell holds it after `at`."""

    value: SSAValue
    at: Operation
    stretch: Stretch
    undo: Undo
    """What the block stores after that, back from the end of the block, or of the stretch."""
    updates: dict[memref.StoreOp, Undo] = field(
        default_factory=dict[memref.StoreOp, "Undo"], init=False
    )
    """The stores between that and the end of the stretch, in the program's order."""
    takes: dict[SSAValue, None] = field(default_factory=dict[SSAValue, None])
    """The last value, conditions, trips and amounts, in the program's order."""
    inside: list[Leaf] = field(default_factory=list[Leaf])
    """What is asked for in branches that are chosen again, where nothing that a branch saved can be had."""

    @property
    def is_nested(self) -> bool:
        """Whether it is read off the reverse cell."""
        return self.at.parent is not self.stretch.block


Held = dict[SSAValue, frozenset[SSAValue]]
"""For each cell, values that it holds."""


@dataclass
class Rollbacks:
    """The values of one function that can be rolled back. Puts loads of last values into it."""

    function: func.FuncOp
    needed: Needed
    found: dict[SSAValue, Rolled] = field(default_factory=dict[SSAValue, Rolled])
    undo_of: dict[Operation, Undo | None] = field(default_factory=dict[Operation, "Undo | None"])
    """Of each store to a cell; None where it cannot be undone."""
    storing: dict[Operation, set[SSAValue]] = field(default_factory=dict[Operation, set[SSAValue]])
    """The cells that each op stores to, itself or inside."""
    closed: dict[Operation, set[SSAValue]] = field(default_factory=dict[Operation, set[SSAValue]])
    """Those of which it cannot be undone."""
    stretches: dict[tuple[SSAValue, Operation], Stretch] = field(
        default_factory=dict[tuple[SSAValue, Operation], Stretch]
    )

    def __post_init__(self) -> None:
        self.cells = set(filter(self._is_counted, simple_cells(self.function)))
        if not self.cells:
            return
        for cell in self.cells:
            for use in cell.uses:
                if isinstance(use.operation, memref.StoreOp) and runs_normally(use.operation):
                    self._mark(self.storing, use.operation, cell)
        self._follow(self.function.body.block, {})
        self._find_closed()
        accesses = [(use.operation, cell) for cell in self._ordered() for use in cell.uses]
        for op, cell in accesses:
            value = held_after(op)
            if value is not None and runs_normally(op):
                rolled = self._roll(value, op, cell)
                if rolled is not None:
                    self.found[value] = rolled

    def _ordered(self) -> list[SSAValue]:
        return [c for c in simple_cells(self.function) if c in self.cells]

    def _is_counted(self, cell: SSAValue) -> bool:
        """An integer cell that some loop changes, and that branches and loops only access."""
        assert isinstance(cell.type, MemRefType)
        if not isinstance(cell.type.element_type, IndexType | IntegerType):
            return False
        accesses = [use.operation for use in cell.uses]
        known = all(isinstance(a, array.LoopOp | scf.IfOp) for o in accesses for a in above(o))
        stores = [o for o in accesses if isinstance(o, memref.StoreOp)]
        return known and any(isinstance(a, array.LoopOp) for o in stores for a in above(o))

    def _mark(self, marks: dict[Operation, set[SSAValue]], op: Operation, cell: SSAValue) -> None:
        """Note the cell at an op and at all that enclose it."""
        for enclosing in (op, *above(op)):
            marks.setdefault(enclosing, set()).add(cell)

    # What each store does.

    def _follow(self, block: Block, held: Held) -> None:
        """Undo each store of a block and of those within, given what the cells hold as it starts."""
        for op in block.ops:
            if array.RAISES in op.attributes:
                continue
            match op:
                case memref.LoadOp() if op.memref in self.cells:
                    held[op.memref] = held.get(op.memref, frozenset()) | {op.res}
                case memref.StoreOp() if op.memref in self.cells:
                    before = held.get(op.memref, frozenset())
                    self.undo_of[op] = undone_to(op.value, before, block, MOST_STEPS)
                    held[op.memref] = frozenset({op.value})
                case array.LoopOp() | scf.IfOp():
                    stored = self.storing.get(op, set())
                    if isinstance(op, array.LoopOp):
                        held = {c: v for c, v in held.items() if c not in stored}
                    for region in op.regions:
                        for inner in region.blocks:
                            self._follow(inner, dict(held))
                    held = {c: v for c, v in held.items() if c not in stored}
                case _:
                    pass

    def _find_closed(self) -> None:
        for op, undo in self.undo_of.items():
            assert isinstance(op, memref.StoreOp)
            if undo is None:
                self._mark(self.closed, op, op.memref)
        for op, cells in self.storing.items():
            if not isinstance(op, array.LoopOp):
                continue
            condition = op.condition_block
            asked = set[SSAValue]().union(
                *(self.storing.get(o, ()) for o in condition.ops) if condition is not None else ()
            )
            swaps = bool(op.carried) and not self.needed.has_adjoint(op)
            for cell in cells if swaps else asked:
                self._mark(self.closed, op, cell)

    # What each value takes.

    def _roll(self, value: SSAValue, at: Operation, cell: SSAValue) -> Rolled | None:
        """How a value is had that the cell holds after an op."""
        home = at.parent
        assert home is not None
        if is_condition(home):
            return None
        op, block = self._outermost(at, cell)
        end, through = self._ahead(op, cell, itself=op is not at)
        undo = self._between(at.next_op, cell, end if block is home else None)
        if undo is None:
            return None
        stretch = self._stretch(cell, block, end)
        if stretch.last is value:
            return None
        rolled = Rolled(value, at, stretch, undo)
        rolled.takes[stretch.last] = None
        for op in (o for t in through for o in t.walk() if cell in self.storing.get(o, ())):
            self._take(rolled, op)
        rolled.inside += inner_leaves(undo, home)
        return rolled

    def _take(self, rolled: Rolled, op: Operation) -> None:
        """Add what undoing the updates of one op takes, without those within."""
        match op:
            case memref.StoreOp():
                home, update = op.parent, self.undo_of[op]
                assert home is not None
                assert update is not None
                rolled.updates[op] = update
                rolled.takes |= dict.fromkeys(leaves(update))
                rolled.inside += inner_leaves(update, home)
            case scf.IfOp():
                rolled.takes[op.cond] = None
            case array.LoopOp():
                rolled.takes[trips_source(op)] = None
            case _:
                pass

    def _outermost(self, at: Operation, cell: SSAValue) -> tuple[Operation, Block]:
        """The op around an access that is rolled back as a whole, and its block."""
        assert isinstance(cell, OpResult)
        op = at
        while True:
            block, parent = op.parent, op.parent_op()
            assert block is not None
            if parent is None or parent is self.function or block is cell.op.parent:
                return op, block
            if cell in self.closed.get(parent, ()):
                return op, block
            op = parent

    def _ahead(
        self, op: Operation, cell: SSAValue, *, itself: bool
    ) -> tuple[Operation, tuple[Operation, ...]]:
        """Where the stretch from `op` on ends, and the ops up to there that store to the cell."""
        through: list[Operation] = []
        here: Operation | None = op if itself else op.next_op
        while here is not None:
            if cell in self.closed.get(here, ()) or is_end(here):
                return here, tuple(through)
            if cell in self.storing.get(here, ()):
                through.append(here)
            here = here.next_op
        raise AssertionError("a block without an end")

    def _between(
        self, first: Operation | None, cell: SSAValue, end: Operation | None
    ) -> Undo | None:
        """What a part of a block does to the cell, undone; None where a loop does it."""
        undo: Undo = ()
        op = first
        while op is not None and op is not end:
            if cell in self.storing.get(op, ()):
                step = self._undone(op, cell)
                if step is None:
                    return None
                undo = step + undo
            op = op.next_op
        return undo

    def _undone(self, op: Operation, cell: SSAValue) -> Undo | None:
        """What one op does to the cell, undone."""
        if isinstance(op, memref.StoreOp):
            return self.undo_of[op]
        if not isinstance(op, scf.IfOp):
            return None
        sides: list[Undo] = []
        for region in op.regions:
            side = self._between(region.block.first_op if region.blocks else None, cell, None)
            if side is None:
                return None
            sides.append(side)
        return (Either(op, tuple(sides)),)

    def _stretch(self, cell: SSAValue, block: Block, end: Operation) -> Stretch:
        key = (cell, end)
        if key not in self.stretches:
            self.stretches[key] = Stretch(cell, block, end, self._last_value(cell, end))
        return self.stretches[key]

    def _last_value(self, cell: SSAValue, end: Operation) -> SSAValue:
        """What the cell holds before `end`: a load that is there, or one that is put there."""
        op = end.prev_op
        while op is not None and cell not in self.storing.get(op, ()):
            if isinstance(op, memref.LoadOp) and op.memref is cell:
                return op.res
            op = op.prev_op
        load = memref.LoadOp.get(cell, [])
        load.location = end.location
        load.res.name_hint = cell.name_hint
        block = end.parent
        assert block is not None
        block.insert_op_before(load, end)
        return load.res


def held_after(op: Operation) -> SSAValue | None:
    """The value of its own block that a cell holds after an access: a load, or a choice that is stored."""
    if isinstance(op, memref.LoadOp):
        return op.res
    if isinstance(op, memref.StoreOp) and isinstance(chosen := op.value.owner, scf.IfOp):
        return op.value if chosen.parent is op.parent else None
    return None


def undone_to(value: SSAValue, before: frozenset[SSAValue], home: Block, steps: int) -> Undo | None:
    """How one of the values `before` is had of `value`; None where it is not computed of it exactly."""
    if value in before:
        return ()
    op = value.owner
    if steps == 0 or isinstance(op, Block):
        return None
    if isinstance(op, scf.IfOp):
        if op.parent is not home or not isinstance(value, OpResult):
            return None
        sides: list[Undo] = []
        for region in op.regions:
            ends = region.block.last_op
            assert ends is not None
            side = undone_to(ends.operands[value.index], before, region.block, steps - 1)
            if side is None:
                return None
            sides.append(side)
        return (Either(op, tuple(sides)),)
    if isinstance(op, arith.SelectOp):
        of_both = [undone_to(v, before, home, steps - 1) for v in (op.lhs, op.rhs)]
        if of_both[0] is None or of_both[1] is None:
            return None
        return (Selected(op, (of_both[0], of_both[1])),)
    for index, operand in enumerate(op.operands):
        if kept_operands(Use(op, index)) is not None:
            rest = undone_to(operand, before, home, steps - 1)
            if rest is not None:
                return (Inverse(op, operand), *rest)
    return None


def inverses(undo: Undo) -> Iterator[Operation]:
    """The operations that are undone."""
    for step in undo:
        if isinstance(step, Inverse):
            yield step.op
        else:
            for side in step.sides:
                yield from inverses(side)


def leaves(undo: Undo) -> Iterator[SSAValue]:
    """The values that undoing takes besides the one that it starts from."""
    for step in undo:
        match step:
            case Inverse():
                yield from (v for v in step.op.operands if v is not step.operand)
            case Selected():
                yield step.op.cond
                for side in step.sides:
                    yield from leaves(side)
            case Either():
                yield step.branch.cond
                for side in step.sides:
                    yield from leaves(side)


def inner_leaves(undo: Undo, home: Block) -> list[Leaf]:
    """Those that stand in branches within `home`, in whose reverse it is undone."""
    return [(v, home) for v in leaves(undo) if not is_around(value_block(v), home)]


def above(op: Operation) -> Iterator[Operation]:
    """The ops around an op, within its function."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, func.FuncOp):
        yield parent
        parent = parent.parent_op()


def runs_normally(op: Operation) -> bool:
    """False in a branch that raises: no adjoint follows it."""
    return not any(array.RAISES in o.attributes for o in above(op))


def is_condition(block: Block) -> bool:
    """Whether a block is, or stands in, the condition of a loop."""
    here: Block | None = block
    while here is not None:
        parent = here.parent_op()
        if isinstance(parent, array.LoopOp) and here is parent.condition_block:
            return True
        here = None if parent is None else parent.parent
    return False


def is_end(op: Operation) -> bool:
    """The end of a block; of a function whose gradient is split, where it hands over."""
    return op.next_op is None or isinstance(op, ad.HandoverOp)


def is_around(block: Block, inner: Block) -> bool:
    """Whether `block` is `inner` or encloses it."""
    here: Block | None = inner
    while here is not None and here is not block:
        parent = here.parent_op()
        here = None if parent is None else parent.parent
    return here is block


NodeT = TypeVar("NodeT", bound=Hashable)


def cycle_in(
    starts: Iterable[NodeT], operands: Callable[[NodeT], Iterable[NodeT]]
) -> list[NodeT] | None:
    """Nodes of which each is an operand of the one before, and the first of the last; None without any."""
    done = set[NodeT]()
    for start in starts:
        path: dict[NodeT, Iterator[NodeT]] = {}
        node: NodeT | None = start
        while node is not None or path:
            if node is not None and node in path:
                passed = list(path)
                return passed[passed.index(node) :]
            if node is not None and node not in done:
                path[node] = iter(operands(node))
            last = next(reversed(path), None)
            if last is None:
                break
            node = next(path[last], None)
            if node is None:
                done.add(last)
                del path[last]
    return None
