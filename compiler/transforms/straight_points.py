"""Scalar code without branches and whole-array ops: what `vectorize_outer` makes of the body of a loop.

- A branch that always raises is a check of its condition.
- A branch that only computes is computed whichever way it goes, and its results are selected. What is not
  taken computes with 1.0: it is finite, so that its adjoint, 0 times a partial, is 0 without a guard.
- A map is loops over its points, one for each axis; one that takes an extreme is that again later
  (`point_extremes`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import arith, math, memref, scf
from xdsl.dialects.builtin import AnyFloat, FloatAttr, IndexType, IntegerAttr, i1
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array
from ...dialects.within import every_op, ops_of_kind
from ..analysis.alias import AliasAnalysis
from ..analysis.views import is_memref, strip_views
from ..diagnostics import locate
from .point_extremes import Extreme, isolated, takes_extreme

Emit = Callable[[Operation], SSAValue]

Extremes = dict[Operation, Extreme]
"""By the loops that stand for them the maps that take an extreme."""

FEW = 24
"""A branch of more ops stays one."""

TOTAL = (math.AbsFOp, math.CopySignOp, math.FloorOp, math.CeilOp, math.TruncOp, math.RoundEvenOp)
"""Functions that are finite where their operand is, with partials that are."""


def expect_raises(loop: array.LoopOp) -> None:
    """Let branches that always raise be checks: where one fails, points run as they were written."""
    for branch in reversed(ops_of_kind(loop, scf.IfOp)):
        if array.RAISES in branch.attributes:
            check = array.RaiseIfOp(branch.cond, "SystemError", "mutad: a branch that raises")
            locate(check, branch.location)
            Rewriter.replace_op(branch, check, [])


def only_computes(branch: scf.IfOp) -> bool:
    """The branch has no effects but exceptions, and chooses no memory."""
    inside = every_op(branch)[1:]
    return (
        len(inside) <= FEW
        and array.RAISES not in branch.attributes
        and not any(is_memref(r) for r in branch.results)
        and all(is_computation(op) for op in inside)
    )


def is_computation(op: Operation) -> bool:
    if isinstance(op, scf.IfOp | scf.YieldOp | array.RaiseIfOp):
        return True
    if isinstance(op, array.IndexOp):
        return False
    return not op.regions and (op.name.startswith(("arith.", "math.")) or op.name == "array.cast")


def straighten(loop: array.LoopOp) -> int:
    """Replace the branches in the loop that only compute; how many there were."""
    found = [b for b in ops_of_kind(loop, scf.IfOp) if only_computes(b)]
    for branch in reversed(found):  # inner ones first
        straighten_branch(branch)
    return len(found)


def straighten_branch(branch: scf.IfOp) -> None:
    def emit(op: Operation) -> SSAValue:
        locate(op, branch.location)
        Rewriter.insert_op(op, InsertPoint.before(branch))
        return op.results[0]

    cond = branch.cond
    sides = [
        taken_from(r.block) if r.blocks else [] for r in (branch.true_region, branch.false_region)
    ]
    shared = shared_function(*sides)
    otherwise: list[SSAValue] = []

    def not_taken() -> SSAValue:
        if not otherwise:
            otherwise.append(emit(arith.XOrIOp(cond, emit(true()))))
        return otherwise[0]

    def put(op: Operation, side: int) -> None:
        if isinstance(op, array.RaiseIfOp):
            taken = not_taken() if side else cond
            op.operands[0] = emit(arith.AndIOp(taken, op.condition))
        else:
            for k in wild(op):
                op.operands[k] = emit(tame(cond, op.operands[k], emit, taken=not side))
        Rewriter.insert_op(op, InsertPoint.before(branch))

    rest: list[list[Operation]] = []
    gone: list[Operation] = []
    for side, ops in enumerate(sides):
        ops = [op for op in ops if not isinstance(op, scf.YieldOp)]
        at = ops.index(shared[side]) if shared else 0
        for op in ops[:at]:
            put(op, side)
        rest.append(ops[at:])
    if shared:
        one, other = shared
        one.operands[0] = emit(arith.SelectOp(cond, one.operands[0], other.operands[0]))
        Rewriter.insert_op(one, InsertPoint.before(branch))
        other.results[0].replace_all_uses_with(one.results[0])
        gone.append(other)
        rest = [ops[1:] for ops in rest]
    for side, ops in enumerate(rest):
        for op in ops:
            put(op, side)
    pairs = zip(*map(yielded_by, sides), strict=True)
    results = [a if a is b else emit(arith.SelectOp(cond, a, b)) for a, b in pairs]
    for op in (*gone, *(op for ops in sides for op in ops if isinstance(op, scf.YieldOp))):
        op.erase()
    for result, old in zip(results, branch.results, strict=True):
        result.name_hint = result.name_hint or old.name_hint
    Rewriter.replace_op(branch, [], results)


def yielded_by(ops: Sequence[Operation]) -> list[SSAValue]:
    return [v for op in ops if isinstance(op, scf.YieldOp) for v in op.operands]


def shared_function(
    one: Sequence[Operation], other: Sequence[Operation]
) -> tuple[Operation, Operation] | None:
    """A costly function of one number that both sides call, each once: one call will do for both."""
    mine, theirs = ([op for op in ops if wild(op)] for ops in (one, other))
    if len(mine) != 1 or len(theirs) != 1 or type(mine[0]) is not type(theirs[0]):
        return None
    is_unary = len(mine[0].operands) == 1 and mine[0].results[0].type == theirs[0].results[0].type
    return (mine[0], theirs[0]) if is_unary else None


def true() -> arith.ConstantOp:
    return arith.ConstantOp(IntegerAttr(1, i1))


def wild(op: Operation) -> Sequence[int]:
    """The operands from which the op may compute what is not finite."""
    if isinstance(op, arith.DivfOp):
        return (1,)
    if op.name.startswith("math.") and not isinstance(op, TOTAL):
        return [k for k, o in enumerate(op.operands) if isinstance(o.type, AnyFloat)]
    return ()


def tame(cond: SSAValue, value: SSAValue, emit: Emit, *, taken: bool) -> arith.SelectOp:
    """The value where the branch is taken, else 1.0."""
    assert isinstance(value.type, AnyFloat)
    one = emit(arith.ConstantOp(FloatAttr(1.0, value.type)))
    return arith.SelectOp(cond, *((value, one) if taken else (one, value)))


# Maps.


def unroll_maps(loop: array.LoopOp) -> Extremes | None:
    """Replace the maps in the loop, and views by subscripts; None where one has to stay.

    Else the loops that stand for maps which take an extreme.
    """
    maps = ops_of_kind(loop, array.MapOp)
    if not all(map(can_be_unrolled, maps)):
        return None
    taking = [isolated(one) for one in maps if takes_extreme(one)]
    if None in taking:
        return None
    extremes = {one: extreme for found in taking if found is not None for one, extreme in [found]}
    loops = {one: unroll_map(one) for one in ops_of_kind(loop, array.MapOp)}
    for op in every_op(loop):
        touches = isinstance(op, memref.LoadOp | memref.StoreOp)
        if touches and strip_views(op.memref) is not op.memref and not look_through(op):
            return None
    for op in reversed(every_op(loop)):
        if isinstance(op, array.ViewOp) and op is not loop and not op.result.uses:
            Rewriter.erase_op(op)
    return {loops[one]: extreme for one, extreme in extremes.items()}


def taken_from(block: Block) -> list[Operation]:
    """The ops of a block, which go elsewhere."""
    ops = list(block.ops)
    for op in ops:
        op.detach()
    return ops


def load_early(loop: array.LoopOp, alias: AliasAnalysis) -> None:
    """Move a load that is the same in all iterations of an inner loop before it.

    `x[i, 0]` in the loop over j would be a column for the points, read again and again. Only out of loops
    that run once at least (as often as one around them), and of memory that the points do not store to.
    """
    inner = [op for op in every_op(loop)[1:] if isinstance(op, array.LoopOp)]
    for one in reversed(inner):
        if not runs_once(one, loop):
            continue
        for op in tuple(one.body.block.ops):
            if array.is_operation_that_may_raise(op) or op.regions:
                break  # what follows may rely on it
            if isinstance(op, memref.LoadOp) and not stores_to(loop, op.memref, alias):
                moved = dict[Operation, None]()
                if is_movable(op, one, moved):
                    for each in moved:
                        each.detach()
                        Rewriter.insert_op(each, InsertPoint.before(one))


def runs_once(inner: array.LoopOp, loop: array.LoopOp) -> bool:
    """Whether an inner loop has an iteration wherever the points come to it."""
    count = None if inner.count is None else array.constant_value(inner.count)
    around = inner.parent_op()
    while count is None and isinstance(around, array.LoopOp):
        if around.count is inner.count:
            return True
        around = None if around is loop else around.parent_op()
    return count is not None and count > 0


def is_movable(op: Operation, loop: array.LoopOp, moved: dict[Operation, None]) -> bool:
    """Whether an op of a loop's body can run before the loop; collects it, and what it needs before it."""
    for operand in op.operands:
        owner = operand.owner
        if operand is loop.induction:
            return False
        if isinstance(owner, Operation) and loop.is_ancestor(owner) and owner not in moved:
            checked = isinstance(owner, array.IndexOp) and owner.unchecked is None
            known = isinstance(owner, array.IndexOp) or owner.name.startswith("arith.")
            if checked or not known or owner.parent is not op.parent:
                return False
            if not is_movable(owner, loop, moved):
                return False
    moved[op] = None
    return True


def load_late(loop: array.LoopOp, alias: AliasAnalysis) -> None:
    """Move each load to the first op that reads what it loads, if nothing stores to that memory between.

    What a point loads before an inner loop and uses behind it would otherwise be kept for all points.
    """
    for op in reversed(every_op(loop)):
        if not isinstance(op, memref.LoadOp):
            continue
        users = [use.operation for use in op.res.uses]
        inside = [u for u in users if u.parent is op.parent]
        if not users or len(inside) < len(users):
            continue
        after = op.next_op
        while after is not None and after not in inside and not stores_to(after, op.memref, alias):
            after = after.next_op
        if after is not None and after is not op.next_op:
            op.detach()
            Rewriter.insert_op(op, InsertPoint.before(after))


def stores_to(op: Operation, memory: SSAValue, alias: AliasAnalysis) -> bool:
    return any(
        isinstance(o, memref.StoreOp) and alias.may_alias(o.memref, memory) for o in every_op(op)
    )


COMBINED: dict[str, tuple[type[Operation], type[Operation]]] = {
    "add": (arith.AddfOp, arith.AddiOp),
    "mul": (arith.MulfOp, arith.MuliOp),
    "min": (arith.MinimumfOp, arith.MinSIOp),
    "max": (arith.MaximumfOp, arith.MaxSIOp),
}


def can_be_unrolled(one: array.MapOp) -> bool:
    """It reads point by point, and combines numbers whose order does not depend on their sign."""
    if one.window or array.READS_FIRST in one.attributes:
        return False
    return all(
        kind == "store"
        or isinstance(value.type, AnyFloat)
        or (kind in ("add", "mul") and value.type != i1)
        for value, kind in zip(one.yielded, one.out_kinds, strict=True)
    )


def unroll_map(one: array.MapOp) -> Operation:
    """Loops over the points of a map; the outermost one, or what is left where it has no axes."""
    points: list[SSAValue] = []
    blocks: list[Block] = []
    for _ in one.extents:
        block = Block(arg_types=[IndexType()])
        blocks.append(block)
        points.append(block.args[0])
    inner = blocks[-1] if blocks else Block()

    def emit(op: Operation) -> SSAValue:
        inner.add_op(op)
        return op.results[0] if op.results else one.outs[0]

    values: dict[SSAValue, SSAValue] = {}
    for argument, source in zip(one.body.block.args, one.ins, strict=True):
        values[argument] = emit(memref.LoadOp.get(source, points))
        values[argument].name_hint = argument.name_hint
    for op in one.body.block.ops:
        if isinstance(op, array.YieldOp):
            results = [values.get(v, v) for v in op.operands]
            for value, target, kind in zip(results, one.outs, one.out_kinds, strict=True):
                if kind != "store":
                    old = emit(memref.LoadOp.get(target, points))
                    floats, integers = COMBINED[kind]
                    combine = floats if isinstance(value.type, AnyFloat) else integers
                    value = emit(combine(old, value))  # pyright: ignore[reportCallIssue]
                emit(memref.StoreOp.get(value, target, points))
            continue
        clone = op.clone(values)
        inner.add_op(clone)
        values.update(zip(op.results, clone.results, strict=True))
    made: Operation | None = None
    for block, count in zip(reversed(blocks), reversed(tuple(one.extents)), strict=True):
        if made is not None:
            block.add_op(made)
        block.add_op(array.YieldOp())
        made = array.LoopOp(count, (), block)
    new = [made] if made is not None else taken_from(inner)
    for op in new:
        locate(op, one.location)
    Rewriter.replace_op(one, new, [])
    return new[0]


def look_through(op: memref.LoadOp | memref.StoreOp) -> bool:
    """Let the access name the memory itself, not a view; False where a view is none of subscripts."""

    def emit(made: Operation) -> SSAValue:
        locate(made, op.location)
        Rewriter.insert_op(made, InsertPoint.before(op))
        return made.results[0]

    source, at = op.memref, list(op.indices)
    while isinstance(view := source.owner, array.ViewOp):
        where = list(view.offsets)
        for axis, index, step in zip(view.source_dims, at, view.steps, strict=True):
            if axis < 0:
                continue
            by = array.constant_value(step)
            moved = index if by == 1 else emit(arith.MuliOp(index, step))
            zero = array.constant_value(where[axis]) == 0
            where[axis] = moved if zero else emit(arith.AddiOp(where[axis], moved))
        source, at = view.source, where
    if strip_views(source) is not source:
        return False
    if isinstance(op, memref.LoadOp):
        made = memref.LoadOp.get(source, at)
        made.res.name_hint = op.res.name_hint
    else:
        made = memref.StoreOp.get(op.value, source, at)
    made.location = op.location
    Rewriter.replace_op(op, made)
    return True
