"""May the iterations of a loop run in blocks, side by side, each statement for all points of a block?

The iterations are called *points* here. Scratch memory in which a point reads only what it has stored itself
is *private*. In ::

    for i in range(n):                  # a point
        for e in range(d):
            away[e] = x[i, e] - mean[e]
        s = 0.0
        for e in range(d):
            s += away[e] * away[e]
        total += math.sqrt(s)

`away` and `s` are private. `total` is *carried*: only the ops that hand it on have to go point by point, in
order. A value is *varying* if points may compute different ones; all else is computed once for a block.
Private memory with nothing varying in it is left alone.

An array is private if each load follows a store to the same subscripts in the same iteration; or stores to
all of the array, which no branch leaves out (`covered`); or if `point_chains` proves that the point has
stored what it reads. What the last point leaves there may be read after the loop.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.dialects import func, memref, scf
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..rules import Access, accesses
from .affine import Affine, Subscripts
from .alias import AliasAnalysis
from .carried_cells import entered
from .dependence import Dependence
from .made_of import all_made_of
from .point_chains import PointChains, ancestor_in
from .views import is_memref

PAIRS = 400
"""Loops in which more pairs of accesses would have to be compared run point by point."""

Rows = dict[tuple[SSAValue, int], list[SSAValue]]
"""By array and axis the extents of what the points read along the other axes."""


@dataclass
class PointLoop:
    """What is private, carried and varying in one loop; asked for once `refusal` has said None."""

    function: func.FuncOp
    loop: array.LoopOp
    original: array.LoopOp
    """The loop that this one is a copy of, right behind it; it may be the loop itself."""
    private: set[SSAValue] = field(default_factory=set[SSAValue])
    """Memory that belongs to a point."""
    carried: set[SSAValue] = field(default_factory=set[SSAValue])
    """Cells that one point hands to the next."""
    varying: set[SSAValue] = field(default_factory=set[SSAValue])
    """Values and private memory that differ from point to point."""
    left: set[SSAValue] = field(default_factory=set[SSAValue])
    """Private arrays in which the last point leaves what may be read after the loop."""
    outside: set[SSAValue] = field(default_factory=set[SSAValue])
    """Private arrays of which points read elements, too, that none of them stores."""
    tail: list[Operation] = field(default_factory=list[Operation])
    """What goes point by point: the ops that carried cells are handed on through."""
    raising: bool = False
    """Something may raise that depends on data."""

    def __post_init__(self) -> None:
        self.alias = AliasAnalysis(self.function)
        self.forms = Subscripts()
        self.ops = [op for op in every_op(self.loop) if op is not self.loop]
        stores = [op for op in self.ops if isinstance(op, memref.StoreOp)]
        self.written = dict.fromkeys(op.memref for op in stores)
        self.dependence = Dependence(self.function, self.alias)
        self.chains = PointChains(self.loop, self.dependence, stores)

    def refusal(self) -> str | None:
        """Why the points have to be taken one by one; None where they need not."""
        return (
            self._memory() or self._spread() or self._control() or self._tail() or self._visible()
        )

    # Memory.

    def _memory(self) -> str | None:
        touched = dict.fromkeys(
            op.memref for op in self.ops if isinstance(op, memref.LoadOp | memref.StoreOp)
        )
        for memory in self.written:
            if any(m is not memory and self.alias.may_alias(m, memory) for m in touched):
                continue  # Visible, and compared as such.
            if isinstance(memory.owner, memref.AllocaOp):
                reads_first, stored = entered(self.loop.body.block, memory)
                (self.carried if reads_first else self.private).add(memory)
                if not reads_first and not stored and self.is_left(memory):
                    return "the last point may leave what an earlier one has stored"
            elif self._is_scratch(memory):
                if not self.loop.is_ancestor(memory.owner) and self.is_left(memory):
                    if not self._leaves_the_last(memory):
                        continue  # Visible, too.
                    self.left.add(memory)
                self.private.add(memory)
        return None

    def _leaves_the_last(self, memory: SSAValue) -> bool:
        """All points store in the same places, so that after the loop it is the last one's that are there."""
        stores = [s for s in self.ops if isinstance(s, memref.StoreOp) and s.memref is memory]
        return all(self._is_known(i) for s in stores for i in s.indices)

    def _is_scratch(self, memory: SSAValue) -> bool:
        owner = memory.owner
        if not isinstance(owner, array.AllocOp) or array.GROWABLE in owner.attributes:
            return False
        if self.loop.is_ancestor(owner):
            return True
        stores = [s for s in self.ops if isinstance(s, memref.StoreOp) and s.memref is memory]
        loads = [s for s in self.ops if isinstance(s, memref.LoadOp) and s.memref is memory]
        return all(
            any(self.covered(load, s) for s in stores) or self._is_chained(load) for load in loads
        )

    def _is_chained(self, load: memref.LoadOp) -> bool:
        source = self.chains.source(load)
        if source == "outside":
            self.outside.add(load.memref)
        return source is not None

    def is_own(self, load: memref.LoadOp) -> bool:
        """A point reads there what it has stored itself."""
        return self.chains.source(load) == "own"

    def is_handed_on(self, load: memref.LoadOp) -> bool:
        """A point reads there what it has stored in the iteration of an inner loop before."""
        return self.chains.source(load) is not None and load in self.chains.handed_on

    def covered(self, load: memref.LoadOp, store: memref.StoreOp) -> bool:
        """A point that loads has stored to that element before."""
        meeting = common_block(load, store, self.loop)
        if meeting is None or not before_in(meeting, store, load):
            return False
        around: list[array.LoopOp] = []
        block = store.parent
        while block is not meeting:
            parent = None if block is None else block.parent_op()
            if not isinstance(parent, array.LoopOp):
                return False
            around.append(parent)
            block = parent.parent
        left = {loop.induction: loop for loop in around}
        for axis, (a, b) in enumerate(zip(store.indices, load.indices, strict=True)):
            form = self.forms.affine(a)
            inner = [s for s in form.terms if s in left]
            if not inner:
                if form != self.forms.affine(b):
                    return False
                continue
            (symbol,) = inner if len(inner) == 1 else (None,)
            if symbol is None or form != Affine.of(symbol):
                return False
            count = left.pop(symbol).count  # pyright: ignore[reportArgumentType]
            assert count is not None
            if self.forms.affine(count) != self.forms.extent(store.memref, axis):
                return False
        return not left

    # What differs from point to point.

    def _spread(self) -> str | None:
        """Find what varies: all that the counter has a part in, and what points hand on or may hand on."""
        self.varying.add(self.loop.induction)
        self.varying |= set(self.written) - self.private
        known = 0
        while known < len(self.varying):
            known = len(self.varying)
            for op in self.ops:
                if isinstance(op, memref.StoreOp):
                    if op.memref in self.private and any(o in self.varying for o in op.operands):
                        self.varying.add(op.memref)
                elif self.varies(op):
                    self.varying.update(op.results)
        return None

    def varies(self, op: Operation) -> bool:
        """The op belongs to the points, not to the block."""
        if isinstance(op, memref.StoreOp):
            return op.memref in self.varying
        return not isinstance(op, memref.DimOp) and any(o in self.varying for o in op.operands)

    def _control(self) -> str | None:
        for op in self.ops:
            if isinstance(op, array.LoopOp) and op.count in self.varying:
                return "the trips of an inner loop differ from point to point"
            if isinstance(op, scf.IfOp) and (op.cond in self.varying or op.results):
                return "points branch"
            if isinstance(op, array.AllocOp) and any(e in self.varying for e in op.extents):
                return "scratch memory of another size for each point"
            if isinstance(op, array.IndexOp) and op.unchecked is None and not self.is_asked(op):
                return "a subscript is checked that depends on data"
            if isinstance(op, array.RaiseIfOp) and not self.is_fixed(op):
                self.raising = True
                if any(isinstance(p, scf.IfOp) for p in self.around(op)):
                    return "a branch raises"
            if isinstance(op, array.RaiseIfOp) and not all(map(self._is_known, op.operands_shown)):
                return "an exception shows what a point has computed"
        if self.raising and any(self._is_looked_up(op) for op in self.ops):
            return "where something is read depends on data, and something may raise before"
        return None

    def _is_looked_up(self, op: Operation) -> bool:
        """A subscript of the access is no number of the loops' counters and of what is outside."""
        known = isinstance(op, memref.LoadOp | memref.StoreOp)
        return known and not all(self._is_known(i, points=True) for i in op.indices)

    def is_asked(self, op: Operation) -> bool:
        """Whether the check fails for some point is known before the loop."""
        return self.is_fixed(op) or (isinstance(op, array.IndexOp) and self.is_moving(op))

    def is_moving(self, op: array.IndexOp) -> bool:
        """The subscript goes up, or down, with the points: the first and the last one tell of all."""
        if op.unchecked is not None or self.is_fixed(op) or not self._is_known(op.extent):
            return False
        form = self.forms.affine(op.index)
        for symbol in form.terms:
            if symbol is self.loop.induction:
                continue
            if not isinstance(symbol, SSAValue) or not self._is_known(symbol):
                return False
        return self._is_known(op.index, points=True) and self._is_everywhere(op)

    def _is_everywhere(self, op: Operation) -> bool:
        """Each point comes to the op as often as the others, whatever the data are."""
        for parent in self.around(op):
            if not isinstance(parent, array.LoopOp) or parent.count is None:
                return False
            if not self._is_known(parent.count):
                return False
        return True

    def is_fixed(self, op: Operation) -> bool:
        """The op computes from counters of inner loops and what is outside alone, in each iteration."""
        return self._is_everywhere(op) and all(self._is_known(o) for o in op.operands)

    def _is_known(self, value: SSAValue, *, points: bool = False) -> bool:
        """No load has a part in the value, nor, unless `points`, the counter of the points."""

        def sources(v: SSAValue) -> Sequence[SSAValue] | None:
            owner = v.owner
            if v is self.loop.induction:
                return () if points else None
            if isinstance(owner, Block) or not self.loop.is_ancestor(owner):
                return ()
            if owner.name.startswith(("math.", "special.")):
                return None  # A vector of them may differ in the last bits.
            if isinstance(owner, array.LoopOp) and owner.count is not None:
                return (owner.count,)
            return None if isinstance(owner, memref.LoadOp) or owner.regions else owner.operands

        return all_made_of([value], sources)

    def around(self, op: Operation) -> list[Operation]:
        """The ops between an op and the loop."""
        found: list[Operation] = []
        parent = op.parent_op()
        while parent is not None and parent is not self.loop:
            found.append(parent)
            parent = parent.parent_op()
        return found

    # Point by point.

    def _tail(self) -> str | None:
        """Collect what carried cells go through: straight-line code at the level of the points."""
        late: set[SSAValue] = set()
        for op in self.ops:
            touches = isinstance(op, memref.LoadOp | memref.StoreOp) and op.memref in self.carried
            if not touches and not any(o in late for o in op.operands):
                continue
            if op.parent is not self.loop.body.block or op.regions:
                return "an inner loop adds to what points share"
            if isinstance(op, array.RaiseIfOp | array.IndexOp):
                return "what points hand on may raise"
            if isinstance(op, memref.LoadOp | memref.StoreOp) and not touches:
                return "what points hand on goes to memory"
            late.update(op.results)
            self.tail.append(op)
        return None

    # What others see.

    def _visible(self) -> str | None:
        found = [a for op in self.ops for a in accesses(op)]
        writes = [
            a
            for a in found
            if a.kind == "write" and a.memref not in self.private and a.memref not in self.carried
        ]
        if writes and self.raising:
            return "an exception would find what later points have stored"
        if writes and len(writes) * len(found) > PAIRS:
            return "too many accesses"
        if any(self._meet(w, a) for w in writes for a in found):
            return "points may meet in memory"
        return None

    def _meet(self, write: Access, other: Access) -> bool:
        if not self.alias.may_alias(write.memref, other.memref):
            return False
        meet = self.dependence.may_meet
        return meet(write, other, self.loop) or meet(other, write, self.loop)

    # Rows.

    def row_axis(self, op: Operation) -> int | None:
        """The axis of an array that is only read along which a load moves with the points; not the last."""
        if not isinstance(op, memref.LoadOp) or op.memref in self.written or len(op.indices) < 2:
            return None
        if any(self.alias.may_alias(op.memref, m) for m in self.written):
            return None
        owner = op.memref.owner
        if isinstance(owner, Operation) and self.loop.is_ancestor(owner):
            return None
        moving = [k for k, i in enumerate(op.indices) if i in self.varying]
        if len(moving) != 1 or moving[0] == len(op.indices) - 1:
            return None
        (axis,) = moving
        here = self.forms.affine(op.indices[axis]) == Affine.of(self.loop.induction)
        return axis if here else None

    def rows(self) -> Rows:
        """Arrays and axes whose rows the points read from their start, repeatedly: how far."""
        found: Rows = {}
        for op in self.ops:
            axis = self.row_axis(op)
            if isinstance(op, memref.LoadOp) and axis is not None:
                counts = self._counts(op, axis)
                if counts is not None:
                    found.setdefault((op.memref, axis), counts)
        return found

    def _counts(self, op: memref.LoadOp, axis: int) -> list[SSAValue] | None:
        """What the subscripts of the other axes count up to, in loops around which there is another one."""
        around: dict[SSAValue, array.LoopOp] = {
            p.induction: p for p in self.around(op) if isinstance(p, array.LoopOp)
        }
        if len(around) < len(self.around(op)):
            return None
        counts: list[SSAValue] = []
        for k, index in enumerate(op.indices):
            if k == axis:
                continue
            counter = self._counter(index)
            loop = around.pop(counter, None) if counter is not None else None
            if loop is None or loop.count is None or self.is_inside(loop.count):
                return None
            counts.append(loop.count)
        return counts if around else None

    def is_in_rows(self, op: Operation, rows: Rows) -> bool:
        """What is loaded is in what `rows` says of its array."""
        axis = self.row_axis(op)
        if not isinstance(op, memref.LoadOp) or axis is None or (op.memref, axis) not in rows:
            return False
        others = [i for k, i in enumerate(op.indices) if k != axis]
        counts = rows[op.memref, axis]
        return all(self._is_below(i, n) for i, n in zip(others, counts, strict=True))

    def _is_below(self, index: SSAValue, count: SSAValue) -> bool:
        """The subscript is a counter up to the number, or up to another one of which that is true."""
        counter = self._counter(index)
        loop = counter.owner.parent_op() if counter is not None else None
        if not isinstance(loop, array.LoopOp) or loop.count is None:
            return False
        return self.forms.affine(loop.count) == self.forms.affine(count) or self._is_below(
            loop.count, count
        )

    def _counter(self, index: SSAValue) -> BlockArgument | None:
        """The counter of an inner loop that the subscript is."""
        form = self.forms.affine(index)
        for symbol in form.terms:
            if isinstance(symbol, BlockArgument) and form == Affine.of(symbol):
                return symbol if self.is_inside(symbol) else None
        return None

    def columns(self) -> list[SSAValue]:
        """The arrays in which points that follow each other find their elements in other rows."""
        found: dict[SSAValue, None] = {}
        packed = self.rows()
        inner = [op for op in self.ops if isinstance(op, array.LoopOp)]
        for loop in inner:
            ops = list(loop.body.block.ops)
            if any(isinstance(op, array.LoopOp) for op in ops):
                continue
            for op in ops:
                if not isinstance(op, memref.LoadOp | memref.StoreOp):
                    continue
                if self._is_column(op) and not self.is_in_rows(op, packed):
                    found[op.memref] = None
        return list(found)

    def _is_column(self, op: memref.LoadOp | memref.StoreOp) -> bool:
        if op.memref in self.private or not any(i in self.varying for i in op.indices):
            return False
        *rows, last = (self.forms.affine(i) for i in op.indices)
        at = self.loop.induction
        return abs(last.terms.get(at, 0)) != 1 or any(at in f.terms for f in rows)

    def is_inside(self, value: SSAValue) -> bool:
        """The value is computed in the loop, or counts an inner one."""
        owner = value.owner
        op = owner.parent_op() if isinstance(owner, Block) else owner
        return op is not None and self.loop.is_ancestor(op) and value is not self.loop.induction

    # After the loop.

    def is_left(self, memory: SSAValue) -> bool:
        """What the last point stored to private memory may be read after the loop."""
        return any(not self._is_over(use.operation, memory) for use in memory.uses)

    def _is_over(self, op: Operation, memory: SSAValue) -> bool:
        if self.loop.is_ancestor(op) or self.original.is_ancestor(op):
            return True
        if isinstance(op, array.ViewOp):
            return all(self._is_over(use.operation, op.result) for use in op.result.uses)
        writes = isinstance(op, memref.StoreOp) or (
            isinstance(op, array.MapOp)
            and memory not in op.ins
            and all(k == "store" for k in op.out_kinds)
        )
        if writes:
            return True
        if is_memref_user(op):
            return False
        block = self.loop.parent
        while block is not None and (parent := block.parent_op()) is not None:
            if isinstance(parent, array.LoopOp):
                return False
            inside = ancestor_in(block, op)
            if inside is not None:
                mine = ancestor_in(block, self.loop)
                return mine is not None and inside.is_before_in_block(mine)
            block = parent.parent
        return False


def is_memref_user(op: Operation) -> bool:
    """The op gives the memory another name, or away."""
    return any(map(is_memref, op.results)) or not isinstance(op, memref.LoadOp | array.MapOp)


def common_block(a: Operation, b: Operation, loop: array.LoopOp) -> Block | None:
    """The innermost block in the loop with both ops in it."""
    block = a.parent
    while block is not None and block.parent_op() is not None:
        if ancestor_in(block, b) is not None:
            return block
        parent = block.parent_op()
        if parent is loop or parent is None:
            return None
        block = parent.parent
    return None


def before_in(block: Block, first: Operation, second: Operation) -> bool:
    """In one run of the block the first op comes before the second."""
    a, b = ancestor_in(block, first), ancestor_in(block, second)
    return a is not None and b is not None and a is not b and a.is_before_in_block(b)
