"""Split a gradient into two functions: one that runs the primal and keeps, one that runs it backwards.

`vjp` returns to the caller between the two sweeps, and the caller may do what it likes to its arrays
before it asks for cotangents, once, often, or never. So the plan takes everything that the caller can
see as overwritten at the end of the primal (`ad.handover`), and saves what the adjoint needs of it. Then
the gradient is cut there. What the second half reads of the first is *kept*: scalars of the top level by
value, arrays of the function's own by putting them on tapes, and the tapes with their arena.

Before::

    func.func @f_gradient(%x : memref<?xf64>, %k : f64, %x_shadow : memref<?xf64>) -> f64 {
      ... the primal, which saves to %tape
      ad.handover %x : memref<?xf64>
      ... the reverse sweep, which reads %n, %saved and pops %tape
      func.return %k_bar : f64
    }

After::

    func.func @f_forward(%x : memref<?xf64>, %k : f64) -> (index, memref<?xf64>, !ad.tape, !ad.arena) {
      ... the primal, which saves to %tape
      %arena = ad.detach
      func.return %n, %saved, %tape, %arena
    }
    func.func @f_backward(%n : index, %saved : memref<?xf64>, %kept : !ad.tape,
                          %x_shadow : memref<?xf64>) -> f64 {
      %tape = ad.reader %kept
      ... the reverse sweep, which pops %tape
      func.return %k_bar : f64
    }

The second function writes nothing that the first has made: it may run many times, and several at once.
Integer code on what is kept is computed again instead, so that the analyses see through it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    IntegerType,
    MemRefType,
    ModuleOp,
    i64,
)
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from ...dialects import ad, array
from ..analysis.alias import AliasAnalysis
from ..rules import reads, writes
from ..transforms.drop_carried import DropCarried
from ..transforms.eliminate_common import EliminateCommon
from ..transforms.fold_constants import FoldConstants, is_nonnegative
from ..transforms.remove_dead import RemoveDead
from .function_attributes import inherit_locations
from .primal_values import computed_again
from .reverse import (
    gradient_of,
    only_function,
    plan_gradient,
)

CLEANING = (FoldConstants(), EliminateCommon(), RemoveDead(), DropCarried(), RemoveDead())
"""Before the cut: what is unused is not kept."""


def halves_of(
    function: func.FuncOp,
    active_arguments: Sequence[int],
    finals: Sequence[int],
    saves: str,
    lanes: int = 1,
) -> tuple[func.FuncOp, func.FuncOp]:
    """The primal that keeps what the reverse sweep needs, and the reverse sweep.

    `finals`: the IR arguments whose final contents may have cotangents. What `saves="forbid"` forbids are
    the saves of the gradient in one piece; what the caller might change has to be saved here. The first half
    is the same whatever `lanes` of cotangents the second has.
    """
    if saves == "forbid":
        plan_gradient(function, active_arguments, saves)
        saves = "minimal"
    whole = ModuleOp([gradient_of(function, active_arguments, saves, finals, lanes=lanes)])
    for one in CLEANING:
        one.apply(Context(), whole)
    gradient = only_function(whole)
    gradient.detach()
    return Split(gradient, function.sym_name.data).functions()


class Split:
    """The two halves of one gradient function, which it is taken apart for."""

    def __init__(self, gradient: func.FuncOp, name: str, *, detaches: bool = True) -> None:
        self.detaches = detaches
        """Whether the memory of the tapes outlives the whole call, as one more result."""
        self.gradient = gradient
        self.name = name
        self.block = gradient.body.block
        self.marker = next(op for op in self.block.ops if isinstance(op, ad.HandoverOp))
        last = self.block.last_op
        assert isinstance(last, func.ReturnOp)
        own = len(indices(gradient, "shadows")) + len(indices(gradient, "cotangents"))
        self.arguments = len(self.block.args) - own
        """How many arguments the primal has."""
        count = len(last.arguments) - len(indices(gradient, "scalars"))
        self.results = list(last.arguments[:count])
        self.bars = list(last.arguments[count:])
        self.later: list[Operation] = []
        op = self.marker.next_op
        while op is not None and op is not last:
            self.later.append(op)
            op = op.next_op
        self.last = last
        self.body = Block()
        self.prologue: list[Operation] = []
        self.here: dict[SSAValue, SSAValue] = {}
        """What values of the first half are called in the second."""
        self.kept: list[SSAValue] = []

    def functions(self) -> tuple[func.FuncOp, func.FuncOp]:
        """The primal that keeps, and the reverse sweep."""
        self.put_on_tapes(self.check())
        shadows = [self.body.insert_arg(a.type, i) for i, a in enumerate(self.own_arguments)]
        for old, fresh in zip(self.own_arguments, shadows, strict=True):
            fresh.name_hint = old.name_hint
            self.here[old] = fresh
        for op in self.later:
            op.detach()
            self.body.add_op(op)
        end = func.ReturnOp(*self.bars)
        end.location = self.last.location
        self.body.add_op(end)
        for op in list(self.body.walk()):
            for index, operand in enumerate(op.operands):
                if self.is_of_first_half(operand):
                    op.operands[index] = self.bring(operand)
        first = self.body.first_op
        assert first is not None
        for op in self.prologue:
            self.body.insert_op_before(op, first)
        return self.forward(), self.backward()

    @property
    def own_arguments(self) -> list[BlockArgument]:
        """The shadows and the cotangents."""
        return list(self.block.args[self.arguments :])

    # What may cross.

    def check(self) -> list[array.AllocOp]:
        """The arrays of the first half that the second may read; no others are its business.

        An AssertionError where the plan let the adjoint read what the caller may have changed.
        """
        alias = AliasAnalysis(self.gradient)
        visible = {
            root
            for value in (*self.block.args[: self.arguments], *self.results)
            if isinstance(value.type, MemRefType)
            for root in alias.roots(value)
        }
        shadows = set(self.own_arguments)
        inside = dict.fromkeys(op for one in self.later for op in one.walk())
        kept = set[Operation]()
        for op in inside:
            for access in reads(op):
                assert visible.isdisjoint(alias.roots(access.memref)) or not any(
                    alias.may_alias(change.memref, access.memref) for change in writes(self.marker)
                ), f"{op} reads the caller's memory"
            for access in writes(op):
                for root in alias.roots(access.memref):
                    made_here = isinstance(root.owner, memref.AllocaOp) or root.owner in inside
                    assert root in shadows or made_here, f"{op} writes the primal's memory"
            for operand in op.operands:
                if isinstance(operand.type, MemRefType):
                    for root in alias.roots(operand):
                        if root in visible or root.owner in inside:
                            continue
                        if isinstance(root.owner, array.AllocOp):
                            kept.add(root.owner)
        every = self.gradient.walk()
        return [op for op in every if isinstance(op, array.AllocOp) and op in kept]

    def put_on_tapes(self, allocations: Sequence[array.AllocOp]) -> None:
        """Let arrays outlive the call: each in segments of a tape of its own."""
        first = self.block.first_op
        assert first is not None
        for alloc in allocations:
            tape = ad.TapeOp()
            tape.location = alloc.location
            self.block.insert_op_before(tape, first)
            assert isinstance(alloc.memref.type, MemRefType)
            push = ad.PushOp(tape.tape, list(alloc.extents), alloc.memref.type.element_type)
            push.location = alloc.location
            push.memref.name_hint = alloc.memref.name_hint
            Rewriter.replace_op(alloc, push)

    def is_of_first_half(self, value: SSAValue) -> bool:
        owner = value.owner
        return (owner if isinstance(owner, Block) else owner.parent) is self.block

    # Bringing values over.

    def bring(self, value: SSAValue) -> SSAValue:
        """A value of the first half, in the second."""
        found = self.here.get(value)
        if found is None:
            found = self.here[value] = self.brought(value)
            if found.name_hint is None:
                found.name_hint = value.name_hint
        return found

    def brought(self, value: SSAValue) -> SSAValue:
        op = value.owner
        match op:
            case memref.AllocaOp():
                return self.bring_cell(op)
            case ad.TapeOp():
                return self.add(ad.ReaderOp(self.keep(value)), op)
            case array.ViewOp() | array.CollapseOp() | memref.CastOp():
                return self.add(op.clone({o: self.bring(o) for o in op.operands}), op)
            case memref.DimOp() if (extent := known_extent(op)) is not None:
                return self.bring(extent)
            case array.LoopOp() if value is op.trips and op.condition_block is None:
                assert op.count is not None
                if self.detaches and is_nonnegative(op.count):
                    return self.bring(op.count)
                zero = self.add(arith.ConstantOp(IntegerAttr(0, IndexType())), op)
                return self.add(arith.MaxSIOp(self.bring(op.count), zero), op)
            case Operation() if is_integer_code(op):
                again = computed_again(op, self.bring)
                self.add(again, op)
                return again.results[list(op.results).index(value)]  # pyright: ignore[reportArgumentType]
            case _:
                return self.keep(value)

    def bring_cell(self, cell: memref.AllocaOp) -> SSAValue:
        """A cell of the second half alone, or a copy of what a cell of the first holds at its end."""
        if all(self.top_of(use.operation).parent is not self.block for use in cell.memref.uses):
            cell.detach()
            self.prologue.append(cell)
            return cell.memref
        load = memref.LoadOp.get(cell.memref, [])
        load.res.name_hint = cell.memref.name_hint
        load.location = self.marker.location
        self.block.insert_op_before(load, self.marker)
        assert isinstance(cell.memref.type, MemRefType)
        copy = self.add(memref.AllocaOp.get(cell.memref.type.element_type, shape=[]), cell)
        store = memref.StoreOp.get(self.keep(load.res), copy, [])
        store.location = cell.location
        self.prologue.append(store)
        return copy

    def top_of(self, op: Operation) -> Operation:
        """The op that encloses `op` in the outermost block."""
        while (parent := op.parent_op()) is not None and parent is not self.gradient:
            op = parent
        return op

    def keep(self, value: SSAValue) -> SSAValue:
        """One more argument of the second half, one more result of the first."""
        fresh = self.body.insert_arg(value.type, len(self.kept))
        fresh.name_hint = value.name_hint
        self.kept.append(value)
        return fresh

    def add(self, op: Operation, like: Operation) -> SSAValue:
        """Put `op` where the second half begins."""
        op.location = like.location
        self.prologue.append(op)
        return op.results[0]

    # The two functions.

    def forward(self) -> func.FuncOp:
        arena = [ad.DetachOp()] if self.detaches else []
        end = func.ReturnOp(*self.results, *self.kept, *(op.arena for op in arena))
        for op in (*arena, end):
            op.location = self.last.location
        Rewriter.erase_op(self.marker)
        Rewriter.replace_op(self.last, [*arena, end], [])
        for argument in reversed(self.own_arguments):
            self.block.erase_arg(argument)
        made = func.FuncOp(
            f"{self.name}_forward",
            ([a.type for a in self.block.args], [r.type for r in end.arguments]),
            self.gradient.detach_region(0),
        )
        self.describe(made, range(self.arguments), 0)
        return made

    def backward(self) -> func.FuncOp:
        made = func.FuncOp(
            f"{self.name}_backward",
            ([a.type for a in self.body.args], [b.type for b in self.bars]),
            Region(self.body),
        )
        count = len(self.body.args) - len(self.kept)
        self.describe(
            made, range(self.arguments, self.arguments + count), len(self.kept) - self.arguments
        )
        for name in SIGNATURE:
            made.attributes[name] = self.gradient.attributes[name]
        made.attributes["kept"] = IntegerAttr(len(self.kept), i64)
        if self.detaches:  # steps are written as the whole loop is, so that both have the same bits
            known = [k for k, v in enumerate(self.kept) if is_count(v)]
            made.attributes["nonnegative"] = DenseArrayBase.from_list(i64, known)
        return made

    def describe(self, made: func.FuncOp, arguments: range, shift: int) -> None:
        """Give a half what was said of the whole: `arguments` of the whole are its own, shifted."""
        made.location = self.gradient.location
        for name, value in self.gradient.attributes.items():
            if name == "overlaps":
                pairs = [
                    [i, j] for i, j in overlap_pairs(value) if i in arguments and j in arguments
                ]
                made.attributes[name] = ArrayAttr(
                    [ArrayAttr([IntegerAttr(i + shift, i64) for i in pair]) for pair in pairs]
                )
            elif name not in SIGNATURE:
                made.attributes[name] = value
        inherit_locations(made)


def is_count(value: SSAValue) -> bool:
    return isinstance(value.type, IndexType) and is_nonnegative(value)


SIGNATURE = ("shadows", "cotangents", "scalars")
"""The attributes that say what a gradient function takes and returns."""


def indices(gradient: func.FuncOp, name: str) -> tuple[int, ...]:
    """What an attribute of a gradient function lists."""
    listed = gradient.attributes[name]
    assert isinstance(listed, DenseArrayBase)
    return tuple(int(v) for v in listed.get_values())


def overlap_pairs(listed: Attribute) -> Iterator[tuple[int, int]]:
    assert isinstance(listed, ArrayAttr)
    for pair in listed:
        i, j = (cast(IntegerAttr, n).value.data for n in cast(ArrayAttr[Attribute], pair))
        yield i, j


def known_extent(op: memref.DimOp) -> SSAValue | None:
    """The extent as the op that made the memref has it; None where it has none."""
    axis, source = array.constant_value(op.index), op.source
    assert axis is not None
    while isinstance(source.owner, memref.CastOp):
        source = source.owner.source
    match source.owner:
        case array.AllocOp() | array.ViewOp() | array.CollapseOp() | ad.PushOp() as made:
            return made.extents[axis]
        case _:
            return None


def is_integer_code(op: Operation) -> bool:
    """A constant, or pure code on integers: cheap, and it says more than a number does."""
    if isinstance(op, arith.ConstantOp):
        return True
    pure = isinstance(op, array.IndexOp | array.CheckedIntOp) or op.has_trait(Pure)
    values = (*op.operands, *op.results)
    return (
        pure
        and not op.regions
        and bool(op.operands)
        and all(isinstance(v.type, IndexType | IntegerType) for v in values)
    )
