"""Compute the bytes of work area that a call takes at its peak, from extents and integers alone.

Why here: after everything else, for it reads off what the code generator allocates.

::

    func.func @f(%a : memref<?xf64>, %steps : index) {       func.func @f_work_size(%a, %steps) -> index {
      %n = memref.dim %a, %c0 : memref<?xf64>                  %n = memref.dim %a, %c0 : memref<?xf64>
      %tape = ad.tape                                          %row = array.checked_mul %c8, %n
      %trips = array.loop %i to %steps do {                    %all = array.checked_mul %steps, %row
        %s = ad.push %tape(%n) : memref<?xf64>                 ... rounded up to 64
        ...                                                    func.return %bytes : index

The tape says how much it holds at most, `ad.tape reserves %bytes`: its segments need no chunks.

The function is a slice of the kernel's control flow. A loop of which all iterations take alike is a product;
a loop is left where a size depends on the iteration. Branches are left where their condition is known on
entry. Numbers that 64 bits do not hold raise OverflowError. Where a size is dynamic there is no such
function and no tape reserves memory: `WorkSize.unknown` says why, and where. Where it is the most that can be
taken, but a run may take less, `WorkSize.bound` does: a branch that data decides, a loop that ends early.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    FunctionType,
    IndexType,
    MemRefType,
    ModuleOp,
    NoneAttr,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass

from ...dialects import activation, ad, array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis, if_blocks
from ..analysis.effects import is_private
from ..codegen.entries.guard import Form
from ..codegen.function_to_llvm import escaping_allocations
from ..codegen.kernel_module import SIZES
from ..codegen.kernel_state import size_of
from ..codegen.scratch import SCRATCH
from ..transforms.eliminate_common import EliminateCommon
from ..transforms.fold_constants import FoldConstants
from ..transforms.hoist_invariants import HoistInvariants
from ..transforms.remove_dead import RemoveDead
from .amounts import (
    LINE,
    NOTHING,
    WORD,
    ZERO,
    Amount,
    Amounts,
    Taken,
    held,
    passing,
    scratch,
    unknown,
)
from .entry_numbers import Arithmetic, Number
from .entry_values import EntryValues, Undetermined, Varies, Why, why
from .equal_extents import equal_extents
from .product_copies import ProductCopies
from .reserved_tapes import reserve_tapes

CLEAN = (EliminateCommon(), FoldConstants(), HoistInvariants(), EliminateCommon(), RemoveDead())

Effect = Callable[[], Taken]


@dataclass(frozen=True)
class Read:
    """What the size depends on: an extent of an argument, or (without an axis) an integer."""

    argument: int
    axis: int | None = None


@dataclass(frozen=True)
class WorkSize:
    """What is known of a kernel's work area."""

    function: func.FuncOp | None = None
    """`@f_work_size`, which is in the module now."""
    unknown: Why | None = None
    """Why there is none."""
    bound: Why | None = None
    """Why a run may take less; None where it takes exactly as much."""
    reads: tuple[Read, ...] = ()


@dataclass(frozen=True)
class MeasureWork(ModulePass):
    """Add the function that computes a kernel's work area."""

    name = "measure-work"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [f for f in op.ops if isinstance(f, func.FuncOp) and not is_private(f)]:
            found = measure_work(kernel)
            for name, reason in (("work_unknown", found.unknown), ("work_bound", found.bound)):
                if reason is not None:
                    kernel.attributes[name] = StringAttr(str(reason))


Counts = Callable[[Attribute], bool]
"""Whether memory of a type is in the work area."""


def everything(type_: Attribute) -> bool:
    return True


def measure_work(
    kernel: func.FuncOp, assumed: Sequence[Form] = (), counts: Counts = everything
) -> WorkSize:
    """Add `@f_work_size` before the kernel `@f`, and let its tapes reserve what they hold.

    `assumed`: forms that are 0 (`Built.assumed`), which whoever calls the kernel has checked.
    """
    measure = Measure(kernel, assumed, counts, checked=True)
    total = measure.total()
    if total.unknown is not None:
        return WorkSize(unknown=total.unknown)
    function = measure.function(total)
    clean(function)
    block = kernel.parent
    assert block is not None
    block.insert_op_before(function, kernel)
    reserve_tapes(kernel, Measure(kernel, assumed, counts, checked=False))
    return WorkSize(function, None, total.loose, tuple(read_by(function)))


def clean(function: func.FuncOp) -> None:
    module = ModuleOp([function])
    drop_abandoned(module)
    for one in CLEAN:
        one.apply(Context(), module)
    function.detach()


def drop_abandoned(module: ModuleOp) -> None:
    """Let go of ops in blocks that were begun and left (a branch whose sides turned out alike)."""
    for op in every_op(module):
        for result in op.results:
            for user in [use.operation for use in result.uses]:
                if not module.is_ancestor(user):
                    user.drop_all_references()


def read_by(function: func.FuncOp) -> Iterable[Read]:
    """The extents and integers that the size depends on."""
    for k, argument in enumerate(function.body.block.args):
        if not isinstance(argument.type, MemRefType):
            if argument.first_use is not None:
                yield Read(k)
            continue
        users = [use.operation for use in argument.uses]
        axes = {array.constant_value(op.index) for op in users if isinstance(op, memref.DimOp)}
        yield from (Read(k, axis) for axis in sorted(a for a in axes if a is not None))


class Measure:
    """Walks over a kernel and writes what it takes.

    `checked`: into a function of its own, where too large numbers raise; else for the kernel's beginning.
    """

    def __init__(
        self,
        kernel: func.FuncOp,
        assumed: Sequence[Form],
        counts: Counts = everything,
        *,
        checked: bool,
        alias: AliasAnalysis | None = None,
    ) -> None:
        self.kernel, self.counts = kernel, counts
        self.alias = alias or AliasAnalysis(kernel)
        arguments = kernel.body.block.args
        self.block = Block(arg_types=[a.type for a in arguments] if checked else [])
        for mine, given in zip(self.block.args, arguments, strict=False):
            mine.name_hint = given.name_hint
        self.a = Arithmetic(self.block, checked=checked)
        self.amounts = Amounts(self.a)
        now = self.block.args if checked else arguments
        pairs = [
            pair
            for pair in zip(arguments, now, strict=True)
            if not (checked and isinstance(pair[0].type, AnyFloat))
        ]
        equal = equal_extents(kernel, assumed)
        self.values = EntryValues(self.alias, pairs, self.a, equal)
        self.copies = ProductCopies(self.a, self.amounts, self.values).of
        self.written: set[array.LoopOp] = set()
        """Loops of which the iterations take different sizes."""
        self.effects: dict[Operation, Effect] = {}
        self.relevant: set[Operation] = set()

    def function(self, total: Amount) -> func.FuncOp:
        """The finished function."""
        self.a.emit(func.ReturnOp(self.a.value(total.number)))
        types: Sequence[Attribute] = [a.type for a in self.block.args]
        name = f"{self.kernel.sym_name.data}_{SIZES}"
        made = func.FuncOp(name, FunctionType.from_lists(types, [IndexType()]), Region(self.block))
        made.attributes[SIZES] = UnitAttr()
        made.location = self.kernel.location
        return made

    # What is taken by which op.

    def total(self) -> Amount:
        """The bytes at the peak."""
        tapes = self.tapes()
        escaping = escaping_allocations(self.kernel, self.alias)
        effects: dict[Operation, Effect] = {}
        for op in self.kernel.walk():
            match op:
                case array.AllocOp() if array.STACK not in op.attributes:
                    if self.counts(op.memref.type):
                        effects[op] = self._allocation(op, escaping)
                case memref.AllocaOp() if not isinstance(op.memref.type.memory_space, NoneAttr):
                    effects[op] = lambda op=op: scratch(self.size(op, op.memref, (), LINE))
                case ad.TapeOp() if op in tapes:
                    effects[op] = lambda size=tapes[op]: held(size)
                case activation.CallOp() if takes_memory(op):
                    effects[op] = lambda op=op: held(
                        unknown(why("how deep a recursive function goes", op))
                    )
                case _ if type(op) in SCRATCH:
                    effects[op] = lambda op=op: passing(self.copies(op))
                case _:
                    pass
        return self._whole(effects).peak

    def tapes(self) -> dict[ad.TapeOp, Amount]:
        """How many bytes each tape holds at most, a multiple of 64."""
        found: dict[ad.TapeOp, Amount] = {}
        for op in self.kernel.walk():
            if isinstance(op, ad.TapeOp) and self._counts_tape(op):
                found[op] = self._rounded(self.held_by(op), LINE)
        return found

    def _counts_tape(self, tape: ad.TapeOp) -> bool:
        users = (use.operation for use in tape.tape.uses)
        return all(self.counts(u.memref.type) for u in users if isinstance(u, ad.PushOp | ad.PopOp))

    def held_by(self, tape: ad.TapeOp, *, outliving: bool = False) -> Amount:
        """The bytes of the segments that a tape holds at most at one time.

        `outliving`: of one that is returned, too, until the call ends.
        """
        return self._whole(self._segments(tape, outliving=outliving)).peak

    def _segments(self, tape: ad.TapeOp, *, outliving: bool) -> dict[Operation, Effect]:
        effects: dict[Operation, Effect] = {}
        for use in tape.tape.uses:
            match use.operation:
                case ad.PushOp() as op:
                    effects[op] = lambda op=op: held(self.size(op, op.memref, op.extents, WORD))
                case ad.PopOp() as op:
                    effects[op] = lambda op=op: self._popped(op)
                case func.ReturnOp() if outliving:
                    pass
                case op:
                    reason = why("a tape that outlives the call", op)
                    effects[op] = lambda reason=reason: held(unknown(reason))
        return effects

    def _popped(self, op: ad.PopOp) -> Taken:
        size = self.size(op, op.memref, op.extents, WORD)
        if size.unknown is not None:
            return Taken(held=unknown(size.unknown, -1), rises=False)
        less = self.amounts.made(self.a.sub(0, size.number), -1, size)
        return Taken(held=less, rises=False)

    def _allocation(self, op: array.AllocOp, escaping: set[Operation]) -> Effect:
        if array.GROWABLE in op.attributes:
            return lambda: held(unknown(why("a list, or an array that grows", op)))
        kind = held if op in escaping else scratch
        return lambda: kind(self.size(op, op.memref, op.extents, LINE))

    def size(
        self, op: Operation, memory: SSAValue, extents: Iterable[SSAValue], unit: int
    ) -> Amount:
        """The bytes of an array, rounded up."""
        assert isinstance(memory.type, MemRefType)
        self.a.place = op
        try:
            total: Number = size_of(memory.type.element_type)
            for extent in extents:
                total = self.a.mul(total, self.a.at_least_zero(self.values.number(extent)))
        except Undetermined as error:
            return unknown(error.why)
        exact = size_of(memory.type.element_type) % unit == 0
        return Amount(total if exact else self.a.rounded_up(total, unit), 0 if total == 0 else 1)

    def _rounded(self, size: Amount, unit: int) -> Amount:
        if size.unknown is not None or size.is_zero:
            return size
        return self.amounts.made(self.a.rounded_up(size.number, unit), size.sign, size)

    # Control flow.

    def _whole(self, effects: dict[Operation, Effect]) -> Taken:
        """What the kernel takes by these ops."""
        self.effects, self.relevant = effects, set()
        for op in effects:
            at: Operation | None = op
            while at is not None and at not in self.relevant:
                self.relevant.add(at)
                at = at.parent_op()
        return self._block(self.kernel.body.block)

    def _block(self, block: Block) -> Taken:
        total = NOTHING
        for op in block.ops:
            if op in self.relevant:
                total = self.amounts.then(total, self._op(op))
        return total

    def _op(self, op: Operation) -> Taken:
        match op:
            case scf.IfOp():
                return self._branch(op)
            case array.LoopOp():
                return self._loop(op)
            case _:
                return self.effects[op]()

    def _branch(self, op: scf.IfOp) -> Taken:
        if array.RAISES in op.attributes:
            found = self._block(op.true_region.block)
            return passing(found.peak.as_bound(why("memory of an exception", op)))
        self.a.place = op
        try:
            condition = self.values.of(op.cond)
        except Undetermined as error:
            found = [self._block(b) for b in if_blocks(op)]
            return self.amounts.either(found[0], found[1] if found[1:] else NOTHING, error.why)
        return self._written_branch(op, condition)

    def _written_branch(self, op: scf.IfOp, condition: SSAValue) -> Taken:
        """Either side, where the condition is known on entry."""
        sides: list[tuple[Block, Taken]] = []
        for region in op.regions:
            block = Block()
            with self.values.within(block):
                taken = self._block(region.block) if region.blocks else NOTHING
            sides.append((block, taken))
        (first, x), (second, y) = sides
        parts = [
            (x.scratch, y.scratch),
            (x.held, y.held),
            (x.peak, y.peak),
        ]
        joined: list[Amount] = []
        results = [self._joined(*pair) for pair in parts]
        numbers = [
            k
            for k, pair in enumerate(parts)
            if pair[0].number != pair[1].number or pair[0].is_zero != pair[1].is_zero
        ]
        if not numbers:
            joined = results
        else:
            for block, side in ((first, 0), (second, 1)):
                with self.values.within(block):
                    self.a.emit(
                        scf.YieldOp(*(self.a.value(parts[k][side].number) for k in numbers))
                    )
            made = self.a.emit(
                scf.IfOp(condition, [IndexType()] * len(numbers), Region(first), Region(second))
            )
            now = dict(zip(numbers, made.results, strict=True))
            joined = [
                Amount(now.get(k, r.number), r.sign, r.unknown, r.loose)
                for k, r in enumerate(results)
            ]
        return Taken(*joined, rises=x.rises and y.rises)

    def _joined(self, x: Amount, y: Amount) -> Amount:
        """One of two, but for the number."""
        signs = {x.sign, y.sign} - {0}
        sign = signs.pop() if len(signs) == 1 else (0 if not signs else None)
        return Amount(x.number, sign, x.unknown or y.unknown, x.loose or y.loose)

    def _loop(self, op: array.LoopOp) -> Taken:
        self.a.place = op
        trips = self._trips(op)
        if op not in self.written:
            try:
                return self._finish(op, self.amounts.repeated(trips, self._iteration(op)))
            except Varies as varying:
                if varying.loop is not op:
                    raise
                self.written.add(op)
        return self._finish(op, self._written_loop(op, trips))

    def _trips(self, op: array.LoopOp) -> Amount:
        """How often the body runs, at most."""
        early = why("how often a loop runs that may end early", op)
        try:
            if op.count is None:
                return unknown(early)
            most = self.a.at_least_zero(self.values.number(op.count))
        except Undetermined as error:
            return unknown(error.why)
        return Amount(most, 0 if most == 0 else 1, None, early if op.condition_block else None)

    def _iteration(self, op: array.LoopOp) -> Taken:
        before = NOTHING
        if op.condition_block is not None:
            before = self.amounts.released(self._block(op.condition_block))
        return self.amounts.then(before, self.amounts.released(self._block(op.body.block)))

    def _finish(self, op: array.LoopOp, taken: Taken) -> Taken:
        """The condition is evaluated once more than the body."""
        if op.condition_block is None:
            return taken
        try:
            last = self.amounts.released(self._block(op.condition_block))
        except Varies as varying:
            if varying.loop is not op:
                raise
            reason = why("memory of a condition that is another size in each iteration", op)
            last = passing(unknown(reason))
        return self.amounts.then(taken, passing(last.peak))

    def _written_loop(self, op: array.LoopOp, trips: Amount) -> Taken:
        """A loop over iterations that take different sizes."""
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = op.induction.name_hint
        with self.values.within(body):
            for block in (op.condition_block, op.body.block):
                if block is not None:
                    self.values.bind(block.args[0], body.args[0])
            one = self._iteration(op)
        reason = trips.unknown or one.held.unknown or one.peak.unknown
        if reason is not None:
            return Taken(held=unknown(reason, one.held.sign), peak=unknown(reason), rises=False)
        if one.is_nothing:
            return NOTHING
        holds = not one.held.is_zero
        total, peak = self._cell() if holds else None, self._cell()
        with self.values.within(body):
            before = 0 if total is None else self._load(total)
            reached = self.a.larger(self._load(peak), self.a.add(before, one.peak.number))
            self._store(reached, peak)
            if total is not None:
                self._store(self.a.add(before, one.held.number), total)
            self.a.emit(array.YieldOp())
        count = self._written_trips(op, trips.number)
        self.a.emit(array.LoopOp(self.a.value(count), [], body))
        made = self.amounts.made
        left = ZERO if total is None else made(self._load(total), one.held.sign, trips, one.held)
        most = made(self._load(peak), one.peak.sign, trips, one.peak, one.held)
        return Taken(held=left, peak=most, rises=one.rises)

    def _written_trips(self, op: array.LoopOp, trips: Number) -> Number:
        """How many iterations are added up."""
        return trips

    def _cell(self) -> SSAValue:
        """A variable that begins as 0."""
        cell = memref.AllocaOp.get(IndexType(), shape=[])
        self.a.emit(cell)
        self._store(0, cell.memref)
        return cell.memref

    def _load(self, cell: SSAValue) -> SSAValue:
        return self.a.emit(memref.LoadOp.get(cell, [])).results[0]

    def _store(self, number: Number, cell: SSAValue) -> None:
        self.a.emit(memref.StoreOp.get(self.a.value(number), cell, []))


def takes_memory(call: activation.CallOp) -> bool:
    """Whether the activation of a recursive function takes memory: a record, a tape, an array."""
    if call.keeps_record or call.takes_record:
        return True
    module = call
    while (parent := module.parent_op()) is not None:
        module = parent
    private = [f for f in module.walk() if isinstance(f, func.FuncOp) and is_private(f)]
    kinds = (array.AllocOp, ad.TapeOp, *SCRATCH)
    return any(isinstance(op, kinds) for f in private for op in f.walk())
