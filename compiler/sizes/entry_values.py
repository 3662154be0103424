"""Values of a kernel that are known on entry, computed again in another function.

Such a value is an extent of an argument, an integer argument, a loop's counter, or what pure code makes of
these. Each is computed where it is first asked for; asking for one that is known only at run time raises
`Undetermined`, and for one that depends on the counter of a loop that is not written out, `Varies`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.traits import Pure

from ...dialects import ad, array
from ..analysis.alias import AliasAnalysis
from ..diagnostics import line_of
from .entry_numbers import Arithmetic, Number, same

Extent = tuple[SSAValue, int]
"""An array and an axis."""

LOWEST = -(2**63)


@dataclass(frozen=True)
class Why:
    """The reason for which a size is not known on entry, and where in the source."""

    reason: str
    file: str = ""
    line: int = 0

    def __str__(self) -> str:
        return f"line {self.line}: {self.reason}" if self.line else self.reason


def why(reason: str, op: Operation | None) -> Why:
    """The reason with the place of the op."""
    at = None if op is None else line_of(op)
    return Why(reason) if at is None else Why(reason, at[0], at[1])


class Undetermined(Exception):
    """The value is known only at run time."""

    def __init__(self, reason: Why) -> None:
        super().__init__(str(reason))
        self.why = reason


class Varies(Exception):
    """The value is another one in each iteration of this loop."""

    def __init__(self, loop: array.LoopOp) -> None:
        super().__init__()
        self.loop = loop


DIVISIONS = (
    arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.FloorDivSIOp,
    arith.CeilDivSIOp, arith.CeilDivUIOp,
)  # fmt: skip
"""What the CPU stops at where the divisor is 0: the kernel divides past a check of it."""


class EntryValues:
    """The values of one function, in the function that `arithmetic` writes."""

    def __init__(
        self,
        alias: AliasAnalysis,
        arguments: Sequence[tuple[SSAValue, SSAValue]],
        arithmetic: Arithmetic,
        equal: Mapping[Extent, Extent],
    ) -> None:
        """`equal`: extents of arguments that are those of others."""
        self.alias = alias
        self.a = arithmetic
        self.top = dict(arguments)
        self.equal = equal
        self.scopes: list[dict[SSAValue, SSAValue]] = [dict(arguments)]

    @contextmanager
    def within(self, block: Block) -> Generator[None]:
        """Write into `block` meanwhile; what it computes is not known outside."""
        outside, self.a.block = self.a.block, block
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()
            self.a.block = outside

    def bind(self, value: SSAValue, now: SSAValue) -> None:
        self.scopes[-1][value] = now

    def of(self, value: SSAValue) -> SSAValue:
        """A scalar."""
        for scope in self.scopes:
            if value in scope:
                return scope[value]
        found = self._compute(value)
        self.bind(value, found)
        return found

    def number(self, value: SSAValue) -> Number:
        known = array.constant_value(value)
        return self.of(value) if known is None else known

    def _compute(self, value: SSAValue) -> SSAValue:
        if isinstance(value, BlockArgument):
            loop = value.owner.parent_op()
            if isinstance(loop, array.LoopOp) and value.index == 0:
                raise Varies(loop)
            if isinstance(loop, func.FuncOp):
                raise Undetermined(Why(f"the float {value.name_hint or 'argument'}"))
            raise Undetermined(why("a value that a block is handed", loop))
        op = value.owner
        assert isinstance(op, Operation)
        assert isinstance(value, OpResult)
        match op:
            case memref.DimOp():
                axis = array.constant_value(op.index)
                assert axis is not None
                return self.a.value(self.extent(op.source, axis))
            case array.StrideOp():
                return self.a.value(self.stride(op.source, op.axis.value.data))
            case array.IndexOp():
                return self._subscript(op)
            case array.LoopOp():
                return self.a.value(self.trips(op))
            case scf.IfOp():
                either = [self.of(y) for y in yielded(op, value.index)]
                return self.a.emit(arith.SelectOp(self.of(op.cond), *either)).results[0]
            case memref.LoadOp():
                raise Undetermined(why(loaded(op), op))
            case array.CheckedIntOp():
                return self.a.binary(type(op), self.of(op.lhs), self.of(op.rhs))
            case _ if isinstance(op, DIVISIONS) or (op.has_trait(Pure()) and not op.regions):
                return self._pure(op).results[value.index]
            case _:
                raise Undetermined(why(f"what `{op.name}` makes", op))

    def _pure(self, op: Operation) -> Operation:
        operands = [self.of(o) for o in op.operands]
        if isinstance(op, DIVISIONS) and array.constant_value(op.rhs) in (None, 0):
            operands = self._divisible(op, *operands)
        types = [r.type for r in op.results]
        return self.a.emit(
            op.create(operands=operands, result_types=types, properties=op.properties.copy())
        )

    def _divisible(self, op: Operation, left: SSAValue, right: SSAValue) -> list[SSAValue]:
        """Operands at which no division stops: where it would, the kernel has raised before it."""
        if not isinstance(left.type, IndexType):
            raise Undetermined(why("a division of machine integers", op))
        divisor = self.a.choose(self.a.compare("eq", right, 0), 1, right)
        return [self.a.binary(arith.MaxSIOp, left, LOWEST + 1), self.a.value(divisor)]

    def _subscript(self, op: array.IndexOp) -> SSAValue:
        index, sign = self.of(op.index), op.sign.data
        if sign == "nonneg":
            return index
        wrapped = self.a.value(self.a.add(index, self.of(op.extent)))
        if sign == "negative":
            return wrapped
        return self.a.value(self.a.choose(self.a.compare("slt", index, 0), wrapped, index))

    def trips(self, loop: array.LoopOp) -> Number:
        """How often a loop's body runs."""
        if loop.condition_block is not None or loop.count is None:
            raise Undetermined(why("how often a loop runs that may end early", loop))
        return self.a.at_least_zero(self.number(loop.count))

    # Arrays.

    def extent(self, memory: SSAValue, axis: int) -> Number:
        """An extent of any array."""
        assert isinstance(memory.type, MemRefType)
        known, owner = memory.type.get_shape()[axis], memory.owner
        if known >= 0:
            return known
        if isinstance(owner, array.AnyView | array.AllocOp | ad.SegmentOp):
            return self.number(owner.extents[axis])
        if memory in self.top:
            memory, axis = self.equal.get((memory, axis), (memory, axis))
            return self.a.emit(memref.DimOp(self.top[memory], self.a.value(axis))).results[0]
        return self._of_names(memory, lambda name: self.extent(name, axis))

    def stride(self, memory: SSAValue, axis: int) -> Number:
        """A stride in elements."""
        assert isinstance(memory.type, MemRefType)
        known, owner = array.strides_of(memory.type)[axis], memory.owner
        if known is not None:
            return known
        if array.is_contiguous(memory.type):
            total: Number = 1
            for later in range(axis + 1, memory.type.get_num_dims()):
                total = self.a.mul(total, self.extent(memory, later))
            return total
        if isinstance(owner, array.ViewOp):
            d = owner.source_dims[axis]
            return self.a.mul(self.stride(owner.source, d), self.number(owner.steps[axis]))
        if isinstance(owner, array.CollapseOp) and owner.units is None:
            first, end = owner.merged
            return self.stride(owner.source, axis if axis < first else axis + end - 1 - first)
        if memory in self.top:
            raise Undetermined(Why("the strides of an argument"))
        return self._of_names(memory, lambda name: self.stride(name, axis))

    def _of_names(self, memory: SSAValue, ask: Callable[[SSAValue], Number]) -> Number:
        """The number of an array that has several names, if all agree."""
        owner = memory.owner
        if isinstance(owner, memref.CastOp):
            return ask(owner.source)
        if isinstance(owner, scf.IfOp) and isinstance(memory, OpResult):
            first, second = map(ask, yielded(owner, memory.index))
            if same(first, second):
                return first
            return self.a.choose(self.of(owner.cond), first, second)
        turn = self.alias.turn(memory)
        if turn is None:
            raise Undetermined(why("an array of which the size is not known", owner_op(memory)))
        loop, slot = turn
        permutation = self.alias.permutation(loop)
        found, at = ask(loop.carried[slot]), permutation[slot]
        while at != slot:
            if at is None or not same(ask(loop.carried[at]), found):
                raise Undetermined(why("the size of an array that a loop binds anew", loop))
            at = permutation[at]
        return found


def yielded(op: scf.IfOp, index: int) -> list[SSAValue]:
    """What both branches yield as one result."""
    ends = [region.block.last_op for region in op.regions]
    return [end.operands[index] for end in ends if end is not None]


def owner_op(value: SSAValue) -> Operation | None:
    """What makes the value, or the op in whose block it is handed."""
    return value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()


def loaded(op: memref.LoadOp) -> str:
    """What a value from memory is, in words."""
    if isinstance(op.memref.owner, memref.AllocaOp):
        return "a number that changes at run time"
    if isinstance(op.memref.owner, ad.SegmentOp):
        return "a number that is saved"
    return "an element of an array"
