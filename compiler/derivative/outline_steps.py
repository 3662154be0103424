"""Make the body of a loop a private function, which is called once an iteration: see `checkpoint_loops`.

An active float is in a cell from where it is computed, and is read at each use, in the loop, before and after
it, so that its cotangent is added up in the order of the loop itself. `overwritten` lists the arrays that the
function writes after the loop, or in loops around it, and in steps of steps all cells, which may be gone.
Where steps only read such an array, they read a copy of it when they run again.

A loop that may end early decides in its steps whether it goes on (`decide_in_body`). Before::

    %trips = array.loop %i while {
    ^bb0(%j : index):
      %x = memref.load %u[%c0] : memref<?xf64>
      %more = arith.cmpf ogt, %x, %t : f64
      array.condition %more
    } do {
      ...
    }

After::

    memref.store %more, %go[] : memref<i1>         of the first iteration
    %trips = array.loop %i while {
    ^bb0(%j : index):
      %g = memref.load %go[] : memref<i1>
      array.condition %g
    } do {
      ...
      memref.store %again, %go[] : memref<i1>      of the next
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import activation, array, foreign
from ..analysis import footprint
from ..analysis.activity import Activity
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import list_effects, mark_overlaps
from ..analysis.footprint import Footprints, covers
from ..rules import evaluates_body, reads, writes
from ..rules.calls import private_functions
from ..rules.table import index_constant
from .available_values import is_inside
from .primal_values import computed_again
from .segments import value_block
from .split import is_integer_code
from .steps import can_be_copied, is_of_any_strides, moves_of


def arrays_of(loop: array.LoopOp, alias: AliasAnalysis) -> list[SSAValue]:
    """The arrays from outside that the body uses: first those that the loop carries.

    Each is whole, but where all that is used of one is views of a row, say, it is that row.
    """
    used: dict[SSAValue, list[SSAValue]] = {}
    for value in outer_values(loop):
        if isinstance(value.type, MemRefType):
            used.setdefault(alias.base(value), []).append(value)
    return [*loop.body_carried, *(part_of(base, views) for base, views in used.items())]


def part_of(base: SSAValue, views: Sequence[SSAValue]) -> SSAValue:
    """What all these are views of: with fewer axes than the whole array, or the whole."""
    chains = [sources(view) for view in views]
    common = [v for v in chains[0] if all(v in chain for chain in chains)]
    least = min(common, key=rank_of)
    there = outlives_branches(least) and rank_of(least) < rank_of(base)
    there = there and can_be_copied(cast("MemRefType[Attribute]", least.type))
    return least if there else base


def sources(view: SSAValue) -> list[SSAValue]:
    """A view, what it is a view of, and so on."""
    found = [view]
    while isinstance(owner := found[-1].owner, array.AnyView | memref.CastOp):
        found.append(owner.source)
    return found


def rank_of(value: SSAValue) -> int:
    return cast("MemRefType[Attribute]", value.type).get_num_dims()


def outlives_branches(value: SSAValue) -> bool:
    """Whether an array is there outside of all branches: the reverse sweep has branches of its own."""
    return not isinstance(value_block(value).parent_op(), scf.IfOp)


def outer_values(loop: array.LoopOp) -> Iterator[SSAValue]:
    """What the ops of the body use and the loop does not define."""
    body = loop.body.block
    for op in body.walk():
        for operand in op.operands:
            if not is_inside(value_block(operand), body):
                yield operand


def scope_of(block: Block) -> Block:
    """The body of the loop around the branches that this block is of, or of the function."""
    above = block.parent_op()
    while isinstance(above, scf.IfOp):
        above = above.parent_op()
    assert isinstance(above, array.LoopOp | func.FuncOp)
    return above.body.block


def cell_for(type_: Attribute, block: Block, loop: array.LoopOp, name: str) -> SSAValue:
    """A cell for the block, which is there outside of all branches."""
    cell = memref.AllocaOp.get(type_, shape=[])
    cell.memref.name_hint = name
    cell.location = loop.location
    scope = scope_of(block)
    assert scope.first_op is not None
    scope.insert_op_before(cell, scope.first_op)
    return cell.memref


# --- Whether there is another iteration -------------------------------------------------------


def decide_in_body(loop: array.LoopOp) -> SSAValue | None:
    """Let each iteration say whether there is another, in the cell that is returned."""
    condition = loop.condition_block
    if condition is None:
        return None
    cell = cell_for(i1, cast(Block, loop.parent), loop, "go")
    decided = memref.LoadOp.get(cell, [])
    ends = [decided, array.ConditionOp(decided.res)]
    before, zero = Block(), index_constant(0)
    before.add_op(zero)
    decide(loop, before, cell, zero.result, loop.carried)
    cast(Block, loop.parent).insert_ops_before(detached(before), loop)
    body = loop.body.block
    last, one = body.last_op, index_constant(1)
    assert isinstance(last, array.YieldOp)
    last.detach()
    following = arith.AddiOp(loop.induction, one.result)
    body.add_ops([one, following])
    decide(loop, body, cell, following.result, last.values)
    body.add_op(last)
    for op in reversed(list(condition.ops)):
        op.detach()
        op.erase()
    condition.add_ops(ends)
    for op in (zero, one, following, *ends):
        op.location = loop.location
    return cell


def decide(
    loop: array.LoopOp, block: Block, cell: SSAValue, number: SSAValue, carried: Sequence[SSAValue]
) -> None:
    """At the end of a block, what the condition says of an iteration of that number, if there may be one."""
    condition = loop.condition_block
    assert condition is not None
    values: dict[SSAValue, SSAValue] = {}
    values.update(zip(condition.args, (number, *carried), strict=True))
    ops: list[Operation] = []
    for op in condition.ops:
        if isinstance(op, array.ConditionOp):
            store = memref.StoreOp.get(values.get(op.condition, op.condition), cell, [])
            store.location = op.location
            ops.append(store)
        else:
            clone = op.clone(values)
            clone.location = op.location
            values.update(zip(op.results, clone.results, strict=True))
            ops.append(clone)
    if loop.count is None:
        block.add_ops(ops)
        return
    possible = arith.CmpiOp(number, loop.count, "slt")
    no = arith.ConstantOp(IntegerAttr(0, i1))
    end = memref.StoreOp.get(no.result, cell, [])
    branch = scf.IfOp(
        possible.result, [], [Block([*ops, scf.YieldOp()])], [Block([no, end, scf.YieldOp()])]
    )
    for op in (possible, no, end, branch):
        op.location = loop.location
    block.add_ops([possible, branch])


def detached(block: Block) -> list[Operation]:
    ops = list(block.ops)
    for op in ops:
        op.detach()
    return ops


# --- The function -----------------------------------------------------------------------------


def flows_of(step: func.FuncOp) -> list[int]:
    """Pairs of arguments, one behind the other: what is in the second depends on the first."""
    arguments, activity = step.body.block.args, Activity(step, AliasAnalysis(step), [])
    return [
        index
        for k, argument in enumerate(arguments)
        for other in activity.depending_on(argument, arguments)
        if other != k
        for index in (k, other)
    ]


class Outline:
    """Makes the body of one loop a function."""

    def __init__(self, function: func.FuncOp, loop: array.LoopOp, activity: Activity) -> None:
        self.function, self.loop, self.activity = function, loop, activity
        self.alias = AliasAnalysis(function)
        self.entry = Block(arg_types=[IndexType()])
        self.prologue: list[Operation] = []
        self.operands: list[SSAValue] = [loop.induction]
        self.here: dict[SSAValue, SSAValue] = {loop.induction: self.entry.args[0]}
        """What values of the function are called in the body's."""
        self.cells: dict[SSAValue, SSAValue] = {}
        """The cells, as the body has them, of active floats."""
        self.of_maps: dict[tuple[Operation, SSAValue], SSAValue] = {}
        """What maps have read of these cells."""

    def run(self, memory: int, go: SSAValue | None, *, followed: bool) -> None:
        """`go`: the cell that says whether there is another iteration; whether it is `followed` by others."""
        loop, body = self.loop, self.loop.body.block
        self.entry.args[0].name_hint = loop.induction.name_hint
        carried, live = list(loop.body_carried), live_in(loop, self.alias)
        for value in arrays_of(loop, self.alias):
            self.take(value)
        permutation = [cast(int, p) for p in self.alias.permutation(loop)]
        for op in list(body.ops):
            if not isinstance(op, array.YieldOp):
                op.detach()
                self.entry.add_op(op)
        self.bring_operands()
        end = func.ReturnOp()
        end.location = loop.location
        self.entry.add_op(end)
        first = self.entry.first_op
        assert first is not None
        for op in self.prologue:
            self.entry.insert_op_before(op, first)
        step = self.step()
        call = activation.CallOp(step.sym_name.data, self.operands, [], 0)
        old = body.last_op
        assert old is not None
        again = array.YieldOp([carried[p] for p in permutation])
        for op in (call, again):
            op.location = loop.location
        body.insert_op_before(call, old)
        body.insert_op_before(again, old)
        old.detach()
        old.erase()
        loop.attributes[activation.CHECKPOINTED] = IntegerAttr(memory, i64)
        if go is not None:
            flag = IntegerAttr(self.operands.index(go) - 1, i64)
            loop.attributes[activation.FLAG] = flag
        if followed:
            loop.attributes[activation.FOLLOWED] = UnitAttr()
        pairs = [
            (i, j)
            for (i, a), (j, b) in combinations(enumerate(self.operands), 2)
            if isinstance(a.type, MemRefType)
            and isinstance(b.type, MemRefType)
            and self.alias.may_alias(a, b)
            and not self.alias.apart_in_turn(a, b)
        ]
        mark_overlaps(step, pairs)
        private = private_functions(self.function.parent_op())
        list_effects([self.function, *private.values()], private)
        later = roots_written(list(ops_later(loop)), self.alias)
        inner = isinstance(scope_of(cast(Block, loop.parent)).parent_op(), array.LoopOp)
        overwritten = [
            k
            for k, a in enumerate(self.operands[1:])
            if isinstance(a.type, MemRefType)
            and ((inner and rank_of(a) == 0) or not self.alias.roots(a).isdisjoint(later))
        ]
        loop.attributes[activation.OVERWRITTEN] = DenseArrayBase.from_list(i64, overwritten)
        call.attributes[activation.FLOWS] = DenseArrayBase.from_list(i64, flows_of(step))
        writes = [k.value.data - 1 for k in call.writes or ()]
        changing = [k + 1 for k in activation.in_turns(writes, moves_of(loop))]
        step.attributes[activation.CHANGING] = DenseArrayBase.from_list(i64, changing)
        copied = [
            k + 1
            for k in overwritten
            if k + 1 not in changing and is_of_any_strides(self.operands[k + 1].type)
        ]
        if copied:
            step.attributes[activation.COPIED] = DenseArrayBase.from_list(i64, copied)
        found = [k for k, a in enumerate(self.operands) if a in live]
        step.attributes[activation.LIVE] = DenseArrayBase.from_list(i64, found)

    def step(self) -> func.FuncOp:
        """The private function, beside the other."""
        types = [a.type for a in self.entry.args]
        module = self.function.parent_op()
        name, number = f"{self.function.sym_name.data}_step", 1
        while name in private_functions(module):
            number += 1
            name = f"{self.function.sym_name.data}_step{number}"
        step = func.FuncOp(name, (types, []), Region(self.entry), "private")
        step.location = self.loop.location
        cast(Block, self.function.parent).insert_op_after(step, self.function)
        return step

    def in_cell(self, value: SSAValue) -> SSAValue:
        """A number in a cell of its own, of which all read it: each operand by itself, since each has a
        cotangent, the first of which is to be added first."""
        block, users = value_block(value), [use.operation for use in value.uses]
        cell = cell_for(value.type, block, self.loop, f"{value.name_hint or 'value'}_cell")
        store = memref.StoreOp.get(value, cell, [])
        store.location = self.loop.location
        after = value.owner if isinstance(value.owner, Operation) else cell.owner
        block.insert_op_after(store, cast(Operation, after))
        for user in dict.fromkeys(users):
            if not is_inside(cast(Block, user.parent), self.entry):
                for index in reversed(range(len(user.operands))):
                    if user.operands[index] is value:
                        user.operands[index] = self.read_of(cell, value, user)
        return cell

    # What the body takes from outside.

    def bring_operands(self) -> None:
        for op in list(self.entry.walk()):
            for index, operand in enumerate(op.operands):
                if operand in self.here or not is_inside(value_block(operand), self.entry):
                    op.operands[index] = self.bring(operand, op)

    def bring(self, value: SSAValue, user: Operation) -> SSAValue:
        """A value of the function, in the body's."""
        if value in self.here:
            return self.here[value]
        if (
            isinstance(value.type, AnyFloat)
            and not is_constant(value)
            and self.activity.active(value)
        ):
            return self.read(value, user)
        found = self.here[value] = self.brought(value)
        found.name_hint = found.name_hint or value.name_hint
        return found

    def brought(self, value: SSAValue) -> SSAValue:
        op = value.owner
        if isinstance(op, Operation) and is_plain(op) and self.is_at_hand(op):
            operands = {o: self.bring(o, op) for o in op.operands}
            again = (
                computed_again(op, operands.__getitem__)
                if is_integer_code(op)
                else op.clone(operands)
            )
            again.location = op.location
            self.prologue.append(again)
            return again.results[list(op.results).index(value)]  # pyright: ignore[reportArgumentType]
        return self.take(value)

    def is_at_hand(self, op: Operation) -> bool:
        """Of an array that the body does not use its extents are numbers from outside."""
        return not isinstance(op, memref.DimOp) or self.alias.base(op.source) in self.here

    def take(self, value: SSAValue) -> SSAValue:
        """One more argument."""
        fresh = self.here[value] = self.entry.insert_arg(value.type, len(self.entry.args))
        fresh.name_hint = value.name_hint
        self.operands.append(self.still(value) if isinstance(value.type, AnyFloat) else value)
        return fresh

    def still(self, value: SSAValue) -> SSAValue:
        """A float that is not active, such that it is not for who sees no more than a call, either."""
        op = foreign.StopGradientOp(value)
        op.location = self.loop.location
        cast(Block, self.loop.parent).insert_op_before(op, self.loop)
        return op.results[0]

    def read(self, value: SSAValue, user: Operation) -> SSAValue:
        """An active float, read of its cell where it is used."""
        cell = self.cells.get(value)
        if cell is None:
            cell = self.cells[value] = self.take(self.in_cell(value))
        return self.read_of(cell, value, user)

    def read_of(self, cell: SSAValue, value: SSAValue, user: Operation) -> SSAValue:
        at = user
        while isinstance(above := at.parent_op(), array.MapOp):
            at = above
        if at is not user and (known := self.of_maps.get((at, cell))) is not None:
            return known  # of a map it is one cotangent, whose terms are added point by point
        load = memref.LoadOp.get(cell, [])
        if at is not user:
            self.of_maps[at, cell] = load.res
        load.res.name_hint = value.name_hint
        load.location = user.location
        cast(Block, at.parent).insert_op_before(load, at)
        return load.res


def is_constant(value: SSAValue) -> bool:
    return isinstance(value.owner, arith.ConstantOp)


def is_plain(op: Operation) -> bool:
    """What the body has again rather than being given it: the analyses see through it."""
    if isinstance(op, memref.DimOp | memref.CastOp | array.AnyView):
        return True
    return is_constant(op.results[0]) or is_integer_code(op) if len(op.results) == 1 else False


def live_in(loop: array.LoopOp, alias: AliasAnalysis) -> set[SSAValue]:
    """The arrays of which an iteration may read what is in them when it begins.

    A read is of the iteration's own where one op before it, in the body itself, has overwritten all that it
    reads.
    """
    footprints = Footprints(alias)
    arrays = arrays_of(loop, alias)
    live, whole, parts = set[SSAValue](), set[SSAValue](), list[footprint.Region]()
    for op in loop.body.block.ops:
        for read in (access for inner in op.walk() for access in reads(inner)):
            base, region = alias.base(read.memref), footprints.of(read)
            if base not in whole and not any(covers(part, region) for part in parts):
                live |= {a for a in arrays if a is base or alias.roots(a) & alias.roots(base)}
        if evaluates_body(op) or not op.regions:
            for write in filter(lambda access: access.must, writes(op)):
                base, region = alias.base(write.memref), footprints.of(write)
                parts.append(region)
                if region.exact and region.dimensions == footprints.entire(base).dimensions:
                    whole.add(base)
    return live


def ops_later(loop: array.LoopOp) -> Iterator[Operation]:
    """What the function does after a loop, and in the iterations of those around it."""
    at: Operation = loop
    while not isinstance(at, func.FuncOp):
        following = at.next_op
        while following is not None:
            yield following
            following = following.next_op
        above = at.parent_op()
        assert above is not None
        at = above
        if isinstance(at, array.LoopOp):
            yield at


def roots_written(ops: Sequence[Operation], alias: AliasAnalysis) -> set[SSAValue]:
    """The memory that ops may write, themselves or inside."""
    return {
        other
        for op in ops
        for inner in op.walk()
        for write in writes(inner)
        for root in alias.roots(write.memref)
        for other in alias.interfering(root)
    }
