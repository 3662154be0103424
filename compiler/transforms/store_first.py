"""Store what is first added to memory that is zero, and do not fill that with zero before.

The adjoint of a store reads the location's shadow and sets it to zero; what adds to it next may as well
store. In a loop that is the next iteration, which perhaps knows the shadow by another name: two grids are
swapped.
Runs after `gather-adds`, for only a gathering map touches each element of a shadow once.

Before::

    func.func @f(%n : index, %s : memref<?xf64>, %t : memref<?xf64>, %v : memref<?xf64>) {
      %zero = arith.constant 0.0 : f64
      array.map(%n) ins(%s : memref<?xf64>) outs(%s, %t : memref<?xf64>, memref<?xf64>)
          kinds ["store", "store"] {
      ^bb0(%x : f64):
        array.yield %zero, %x : f64, f64
      }
      array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["add"] {
      ^bb0(%y : f64):
        array.yield %y : f64
      }
      func.return
    }

After::

    func.func @f(%n : index, %s : memref<?xf64>, %t : memref<?xf64>, %v : memref<?xf64>) {
      %zero = arith.constant 0.0 : f64
      array.map(%n) ins(%s : memref<?xf64>) outs(%t : memref<?xf64>) kinds ["store"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.map(%n) ins(%v : memref<?xf64>) outs(%s : memref<?xf64>) kinds ["store"] {
      ^bb0(%y : f64):
        array.yield %y : f64
      }
      func.return
    }

The zeros must be the last that touched the memory before the sum: of what lies between, nothing may touch it.
Of a loop whose iterations begin with the sum and end with the zeros it must be known that the memory is zero
where the loop is entered (`enters_zero`; what fills it there has to stay, and is `ad.unseen` no more); behind
the loop it is set to zero once, as the last iteration has left it. A map that gathers adds to more than was
zero: it stores there alone (`fresh`).

Kept: zeros of a part of what is added to, or of elements that the sum does not reach; sums whose map reads
the memory, or writes to it in another output; loops with a condition.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from xdsl.builder import Builder
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import AnyFloat, MemRefType, ModuleOp, VectorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import ad, array
from ...dialects.within import ops_of_kind
from ..analysis.affine import equal_numbers
from ..analysis.alias import AliasAnalysis
from ..analysis.views import strip_casts, strip_views
from ..rules.table import constant_float, float_constant
from .drop_overwritten import is_zero_fill, unseen_fill
from .gather_adds import Shift, apart, shift_between
from .map_outputs import with_outputs
from .memory_effects import MemoryEffects, functions
from .touches import Touches, touched_by


@dataclass(frozen=True)
class StoreFirst(ModulePass):
    """Replace a fill with zero and the first addition after it by a store."""

    name = "store-first"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            FirstTouches(function).store_all()


@dataclass
class Sum:
    """An output of a map that adds."""

    op: array.MapOp
    output: int

    @property
    def out(self) -> SSAValue:
        return self.op.outs[self.output]


@dataclass
class Zeros:
    """An output of a map that stores zero."""

    op: array.MapOp
    output: int

    @property
    def out(self) -> SSAValue:
        return self.op.outs[self.output]


class FirstTouches:
    """The sums of a function, each with the zeros that it is the first to touch."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.alias = AliasAnalysis(function)
        self.effects = MemoryEffects(function)
        self.touches_in: dict[Block, Touches] = {}
        self.made: dict[array.MapOp, array.MapOp | None] = {}
        """What is in the place of maps that are no more."""

    def store_all(self) -> None:
        """Rewrite sums that follow zeros, as long as there are any."""
        changed = True
        while changed:
            changed = False
            for op in [
                op for op in ops_of_kind(self.function, array.MapOp) if "add" in op.out_kinds
            ]:
                while (now := self.in_place_of(op)) is not None and self.store_one(now):
                    changed = True

    def in_place_of(self, op: array.MapOp) -> array.MapOp | None:
        found: array.MapOp | None = op
        while found is not None and found in self.made:
            found = self.made[found]
        return found

    def put_in_place(self, op: array.MapOp, made: array.MapOp | None) -> None:
        if made is op:
            return
        self.made[op] = made
        known = None if made is None or made.parent is None else self.touches_in.get(made.parent)
        if made is not None and known is not None:
            known.put_in_place(op, made)

    def store_one(self, op: array.MapOp) -> bool:
        """Rewrite a sum of a map that follows zeros, if there is one."""
        for sum_ in self.sums(op):
            before = self.last_touch(sum_.out, op.prev_op)
            if before is not None:
                zeros = self.zeros_of(before, sum_.out)
                if zeros is not None and self.store(sum_, zeros):
                    return True
            elif self.store_in_turn(sum_):
                return True
        return False

    def sums(self, op: array.MapOp) -> Iterator[Sum]:
        for k, kind in enumerate(op.out_kinds):
            if kind == "add" and is_plain(op.outs[k]) and self.only_adds(op, k):
                yield Sum(op, k)

    def only_adds(self, op: array.MapOp, k: int) -> bool:
        """True when nothing else in the map touches what the output adds to, and it was no store there."""
        if op.gathers is not None and op.gathers.fresh is not None:
            return False
        others = [*op.ins, *(m for j, m in enumerate(op.outs) if j != k)]
        return all(apart(self.alias, op.outs[k], m) for m in others)

    # What touches memory.

    def is_apart(self, a: SSAValue, b: SSAValue) -> bool:
        return apart(self.alias, a, b)

    def touches(self, op: Operation, memory: SSAValue) -> bool:
        """True when the op, or one inside, may read or write an element of `memory`."""
        if self.effects.of(op).opaque:
            return True
        return any(not apart(self.alias, v, memory) for v in touched_by(op))

    def back_from(self, op: Operation | None, memory: SSAValue) -> Iterator[Operation]:
        """The ops that touch roots of the memory, from `op` back to the beginning of the block."""
        if op is None or op.parent is None:
            return iter(())
        if op.parent not in self.touches_in:
            self.touches_in[op.parent] = Touches(op.parent, self.alias, self.effects)
        return self.touches_in[op.parent].back_from(op, memory)

    def last_touch(self, memory: SSAValue, op: Operation | None) -> Operation | None:
        """The last op that touches the memory, from `op` back to the beginning of the block."""
        return next((one for one in self.back_from(op, memory) if self.touches(one, memory)), None)

    def zeros_of(self, op: Operation, memory: SSAValue) -> Zeros | None:
        """The output by which a map does nothing to the memory but set some of it to zero, last of all."""
        if not isinstance(op, array.MapOp):
            return None
        touching = [k for k, m in enumerate(op.outs) if not apart(self.alias, m, memory)]
        if len(touching) != 1 or op.out_kinds[touching[0]] != "store" or op.gathers is not None:
            return None
        (k,) = touching
        return Zeros(op, k) if constant_float(op.yielded[k]) == 0.0 else None

    # Within a block.

    def store(self, sum_: Sum, zeros: Zeros) -> bool:
        fresh = zeroed_part(sum_, zeros)
        if fresh is None or source_of(zeros.out) is not source_of(sum_.out):
            return False
        self.put_in_place(zeros.op, keep_without(zeros))
        self.put_in_place(sum_.op, store_where(sum_, fresh))
        return True

    # From an iteration to the next.

    def store_in_turn(self, sum_: Sum) -> bool:
        """The same where the end of an iteration sets to zero what the next one adds to."""
        block = sum_.op.parent
        loop = block.parent_op() if block is not None else None
        if not isinstance(loop, array.LoopOp) or loop.condition_block is not None:
            return False
        base = strip_views(sum_.out)
        entering, leaving, result = slots_of(loop, base)
        if entering is None or leaving is None or result is None:
            return False
        last = self.last_touch(leaving, loop.body.block.last_op)
        zeros = None if last is None else self.zeros_of(last, leaving)
        if zeros is None or zeros.op is sum_.op:
            return False
        if source_of(zeros.out) is not leaving or source_of(sum_.out) is not base:
            return False
        fresh = zeroed_part(sum_, zeros)
        if fresh is None or not is_unchanging(zeros, loop):
            return False
        fills_before = self.enters_zero(entering, loop)
        if fills_before is None:
            return False
        for fill in fills_before:
            fill.attributes.pop(ad.UNSEEN, None)  # the loop relies on it
        clear_behind(loop, zeros, result)
        self.look_again(loop.parent)
        self.put_in_place(zeros.op, keep_without(zeros))
        self.put_in_place(sum_.op, store_where(sum_, fresh))
        return True

    def look_again(self, block: Block | None) -> None:
        """Forget where memory is touched in a block, and in those around it."""
        while block is not None:
            self.touches_in.pop(block, None)
            around = block.parent_op()
            block = None if around is None else around.parent

    def enters_zero(self, memory: SSAValue, loop: array.LoopOp) -> list[Operation] | None:
        """What sets all of the memory to zero before the loop; None where it may not be zero there."""
        found: list[Operation] = []
        roots = set(self.alias.roots(memory))
        for op in self.back_from(loop.prev_op, memory):
            filled = {r for r in roots if fills(op, r)}
            if not filled and self.touches(op, memory):
                return None
            found += [op] if filled else []
            roots -= filled
            if not roots:
                return found
        return None


def is_plain(out: SSAValue) -> bool:
    """Whether it is an array of floats (or of vectors of them), whose elements are points of their own."""
    type_ = out.type
    assert isinstance(type_, MemRefType)
    return isinstance(type_.element_type, AnyFloat | VectorType) and 0 not in array.strides_of(
        type_
    )


# Which part is zero.


def source_of(value: SSAValue) -> SSAValue:
    return value.owner.source if isinstance(value.owner, array.ViewOp) else value


def zeroed_part(sum_: Sum, zeros: Zeros) -> Shift | None:
    """Where the zeros begin in what is added to, if all of them are; they have the extents of the points."""
    shift = distance(sum_.out, zeros.out)
    if shift is None:
        return None
    gathers = sum_.op.gathers
    wanted = sum_.op.extents if gathers is None else gathers.window
    if not all(equal_numbers(a, b) for a, b in zip(wanted, zeros.op.extents, strict=True)):
        return None
    if gathers is None:
        return shift if not any(shift) else None
    most = [max(s) for s in zip(*gathers.shifts, strict=True)]
    inside = all(0 <= s <= m for s, m in zip(shift, most, strict=True))
    return shift if inside else None


def distance(first: SSAValue, other: SSAValue) -> Shift | None:
    """How much later a view begins than another, of a memref that may have another name there."""
    a, b = first.owner, other.owner
    if isinstance(a, array.ViewOp) and isinstance(b, array.ViewOp):
        return shift_between(a, b)
    assert isinstance(first.type, MemRefType)
    unmoved = (0,) * first.type.get_num_dims()
    for view in (a, b):
        if isinstance(view, array.ViewOp):
            return unmoved if is_beginning(view) else None
    return unmoved if first.type == other.type else None


def is_beginning(view: array.ViewOp) -> bool:
    """Whether a view is of the first elements along each axis."""
    rank = len(view.offsets)
    return (
        list(view.source_dims) == list(range(rank))
        and all(array.constant_value(o) == 0 for o in view.offsets)
        and all(array.constant_value(s) == 1 for s in view.steps)
    )


# Loops.


def slots_of(
    loop: array.LoopOp, base: SSAValue
) -> tuple[SSAValue | None, SSAValue | None, SSAValue | None]:
    """What an iteration calls `base`: as it enters the loop, as an iteration leaves it, behind the loop."""
    body = loop.body.block
    if isinstance(base, BlockArgument) and base.owner is body:
        slot = base.index - 1
        leaving = strip_casts(loop.yielded[slot])
        if leaving not in body.args and not is_outside(leaving, loop):
            return None, None, None
        return strip_casts(loop.carried[slot]), leaving, loop.results_carried[slot]
    return (base, base, base) if is_outside(base, loop) else (None, None, None)


def is_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a value is there before the loop."""
    block: Block | None = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None and block.parent_op() is not loop:
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return block is None


def is_unchanging(zeros: Zeros, loop: array.LoopOp) -> bool:
    """Whether the zeros are the same part of an array in each iteration."""
    view = zeros.out.owner
    numbers = [*zeros.op.extents]
    if isinstance(view, array.ViewOp):
        numbers += view.operands[1:]
    return all(is_outside(n, loop) or array.constant_value(n) is not None for n in numbers)


def clear_behind(loop: array.LoopOp, zeros: Zeros, memory: SSAValue) -> None:
    """Set to zero behind the loop what the last iteration has left."""
    builder = Builder(InsertPoint.after(loop))
    known: dict[SSAValue, SSAValue] = {}

    def number(value: SSAValue) -> SSAValue:
        if is_outside(value, loop):
            return value
        if value not in known:
            assert isinstance(value.owner, Operation)
            known[value] = builder.insert(value.owner.clone()).results[0]
        return known[value]

    out = memory
    if isinstance(zeros.out.owner, array.ViewOp):
        view = zeros.out.owner.of(memory, number)
        view.location, view.result.name_hint = zeros.op.location, memory.name_hint
        out = builder.insert(view).result
    zero = float_constant(0.0, zeros.op.yielded[zeros.output].type)
    end = array.YieldOp([zero.result])
    fill = array.MapOp(
        [number(n) for n in zeros.op.extents], [], [out], ["store"], Block([zero, end])
    )
    for op in (zero, end, fill):
        op.location = zeros.op.location
    builder.insert(fill)


def fills(op: Operation, root: SSAValue) -> bool:
    """Whether an op sets all of an array to zero: one made here, or an argument that held nothing."""
    if not isinstance(op, array.MapOp):
        return False
    made_here = isinstance(root.owner, array.AllocOp) and is_zero_fill(op, root)
    return made_here or unseen_fill(op) is root


# The rewrite.


def keep_without(zeros: Zeros) -> array.MapOp | None:
    """Let a map no longer set something to zero; what is left of it."""
    return with_outputs(zeros.op, [k for k in range(len(zeros.op.outs)) if k != zeros.output])


def store_where(sum_: Sum, fresh: Sequence[int]) -> array.MapOp | None:
    """Let a map store what it added, which it returns."""
    op = sum_.op
    if op.gathers is None:
        kinds = [*op.out_kinds]
        kinds[sum_.output] = "store"
        return with_outputs(op, range(len(kinds)), kinds)
    how, ins, outs = replace(op.gathers, fresh=tuple(fresh)), tuple(op.ins), tuple(op.outs)
    made = array.MapOp(tuple(op.extents), ins, outs, op.out_kinds, op.detach_region(op.body), how)
    made.location = op.location
    made.attributes.update(op.attributes)
    Rewriter.replace_op(op, made)
    return made
