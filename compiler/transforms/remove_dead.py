"""Remove what cannot be observed: dead values, dead memory, and all that only they need.

Marks what is live, and erases the rest. Live are the ops that act on the world: they raise, print, call, may
not end, write the caller's memory. So is what a live op uses, the ops around it, and every write of memory
that it reads. Cycles of dead ops go, too: two arrays that only each other is computed from. Of a map each
output lives by itself, and none that puts back what the map reads. Linear in the size of the function.

Before::

    func.func @f(%a : memref<?xf64>, %n : index, %i : index) -> f64 {
      %cell = memref.alloca() : memref<f64>
      %t = array.alloc(%n) : memref<?xf64>
      %x = memref.load %a[%i] : memref<?xf64>
      %y = memref.load %cell[] : memref<f64>
      memref.store %y, %cell[] : memref<f64>
      array.map(%n) ins(%a : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      func.return %x : f64
    }

After::

    func.func @f(%a : memref<?xf64>, %n : index, %i : index) -> f64 {
      %x = memref.load %a[%i] : memref<?xf64>
      func.return %x : f64
    }

Not handled: a store that a later store overwrites before it is read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.traits import IsTerminator, NoMemoryEffect

from ...dialects import ad, array
from ...dialects.quick_xdsl import operands_of
from ...dialects.within import every_op_of, has_kind_trait
from ..analysis.views import is_memref
from ..rules import is_whole_array, reads, touches_nothing, writes
from .map_outputs import puts_back, with_outputs
from .memory_effects import MemoryEffects, functions

MEMORY = (array.AllocOp, memref.AllocaOp, ad.TapeOp)
"""What makes memory that is not seen outside of the function, unless it is returned or handed on."""

REMOVABLE = (
    *MEMORY,
    *(memref.LoadOp, memref.StoreOp, scf.IfOp),
)
"""What does nothing but compute, and touch memory that it names, as whole-array ops do; what is inside speaks
for itself."""


@dataclass(frozen=True)
class RemoveDead(ModulePass):
    """Erase ops on which nothing observable depends."""

    name = "remove-dead"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            remove_in(function)


def remove_in(function: func.FuncOp) -> None:
    """Erase maps of no points, then all that is not live."""
    for op in every_op_of(function.body):
        if isinstance(op, array.MapOp) and any(array.constant_value(n) == 0 for n in op.extents):
            Rewriter.erase_op(op)
    live = Liveness(function)
    for op in reversed(every_op_of(function.body)):  # users first
        parent = op.parent_op()
        if op in live.ops:
            if isinstance(op, array.MapOp):
                with_outputs(op, [k for k in range(len(op.outs)) if live.has_output(op, k)])
        elif parent is function or (parent in live.ops and not isinstance(parent, array.MapOp)):
            Rewriter.erase_op(op)


class Liveness:
    """The live ops of a function, and the live outputs of its maps."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.ops: set[Operation] = set()
        self.outputs: set[tuple[array.MapOp, int]] = set()
        self._effects = MemoryEffects(function)
        self._writers: dict[SSAValue, list[tuple[Operation, SSAValue]]] = {}
        self._read: set[SSAValue] = set()
        self._work: list[Operation] = []
        ops = every_op_of(function.body)
        for op in ops:
            for memory in written(op):
                for root in self._effects.roots(memory):
                    self._writers.setdefault(root, []).append((op, memory))
        detached = any(isinstance(op, ad.DetachOp) for op in ops)
        for root in list(self._writers):
            if not isinstance(root.owner, MEMORY) or (
                detached and isinstance(root.owner, ad.TapeOp)
            ):
                self._read_root(root)
        for op in ops:
            if not is_removable(op):
                self._mark(op)
        while self._work:
            self._follow(self._work.pop())

    def has_output(self, op: array.MapOp, k: int) -> bool:
        """Whether an output of a map is live, and puts something else there than what the point finds."""
        if (op, k) not in self.outputs:
            return False
        mine, earlier = self._effects.roots(op.outs[k]), op.outs[:k]
        as_found = all(mine.isdisjoint(self._effects.roots(m)) for m in earlier)
        as_found &= array.READS_FIRST not in op.attributes
        return not (as_found and puts_back(op, k))

    def _mark(self, op: Operation) -> None:
        if op not in self.ops and op is not self.function:
            self.ops.add(op)
            self._work.append(op)

    def _follow(self, op: Operation) -> None:
        """What a live op makes live: what it uses, the contents that it reads, what is around it."""
        parent = op.parent_op()
        assert parent is not None
        if isinstance(parent, array.MapOp) and parent not in self.ops:  # it acts by itself
            for k in range(len(parent.outs)):
                self._mark_output(parent, k)
        self._mark(parent)
        for region in op.regions:
            for block in region.blocks:
                assert block.last_op is not None
                self._mark(block.last_op)
        if isinstance(op, array.MapOp):  # the rest for each output by itself
            operands = (*op.extents, *op.window, *op.origin)
        else:
            operands = () if isinstance(parent, array.MapOp) and is_end(op) else operands_of(op)
            for memory in read(op):
                self._read_all(memory)
        for operand in operands:
            self._use(operand)

    def _mark_output(self, op: array.MapOp, k: int) -> None:
        if (op, k) in self.outputs:
            return
        self.outputs.add((op, k))
        self._mark(op)
        self._use(op.outs[k])
        self._use(op.yielded[k])
        if op.out_kinds[k] != "store":
            self._read_all(op.outs[k])

    def _use(self, value: SSAValue) -> None:
        if not isinstance(value, BlockArgument):
            assert isinstance(value.owner, Operation)
            self._mark(value.owner)
            return
        around = value.owner.parent_op()
        assert around is not None
        if isinstance(around, array.MapOp):
            self._use(around.ins[value.index])
            self._read_all(around.ins[value.index])
        else:
            self._mark(around)

    def _read_all(self, memory: SSAValue) -> None:
        for root in self._effects.roots(memory):
            self._read_root(root)

    def _read_root(self, root: SSAValue) -> None:
        """Whatever writes the root is live."""
        if root in self._read:
            return
        self._read.add(root)
        for op, memory in self._writers.get(root, ()):
            if isinstance(op, array.MapOp):
                for k, out in enumerate(op.outs):
                    if out is memory:
                        self._mark_output(op, k)
            else:
                self._mark(op)


def is_removable(op: Operation) -> bool:
    """True when the op has no observable effect but its results and writes."""
    if isinstance(op, array.LoopOp):
        return op.count is not None  # else it may never end, and Python would not return either
    if isinstance(op, array.IndexOp):
        return op.unchecked is not None
    return is_whole_array(op) or is_removable_kind(type(op))


@cache
def is_removable_kind(kind: type[Operation]) -> bool:
    """The same of a class of ops, where it is the same for all of them."""
    if kind.has_trait(IsTerminator):
        return not issubclass(kind, func.ReturnOp)
    return issubclass(kind, (*REMOVABLE, ad.SegmentOp)) or kind.has_trait(NoMemoryEffect)


def is_end(op: Operation) -> bool:
    return has_kind_trait(type(op), IsTerminator)


def written(op: Operation) -> list[SSAValue]:
    """The memory that the op itself writes; of pushes and pops the tape."""
    if isinstance(op, ad.SegmentOp):
        return [op.tape, *(a.memref for a in writes(op))]
    return [] if touches_nothing(type(op)) else [a.memref for a in writes(op)]


def read(op: Operation) -> list[SSAValue]:
    """The memory that the op itself reads, or hands on to who may read it."""
    if isinstance(op, ad.SegmentOp):
        return [op.tape]
    if not is_removable(op):
        return [v for v in op.operands if is_memref(v) or isinstance(v.type, ad.TapeType)]
    return [] if touches_nothing(type(op)) else [a.memref for a in reads(op)]
