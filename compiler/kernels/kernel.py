"""A kernel while it is written, and the index space that its threads share out.

A space of any rank is cut into tiles, one for each block: `TILE` points along the last two axes, one along
the others. The blocks of a rank of two or more are numbered row by row, so a thread finds its point with a
few divisions that are the same for its whole block::

    device.launch @k blocks(%b)            %b = ceil(n / 4) * ceil(m / 64)
    %t = device.thread                     %i = 4 * (block / ceil(m / 64)) + thread / 64
    %b = device.block                      %j = 64 * (block % ceil(m / 64)) + thread % 64
    scf.if %i < %n and %j < %m { ... }
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Sequence
from contextlib import contextmanager
from math import inf
from typing import cast

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IndexType,
    IntegerAttr,
    IntegerType,
    LocationAttr,
    MemRefType,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import array, device
from ..analysis.views import strip_views
from ..diagnostics import refusal

TILE = (4, 64)
"""Points of a block along the last two axes; along the only one `device.THREADS`."""


class Writer:
    """Writes scalar code at a place, which it knows as `put`; every op has the location of what it is for."""

    def __init__(self, put: Callable[[Operation], object], location: LocationAttr) -> None:
        self.put = put
        self.location = location

    def add(self, op: Operation) -> None:
        op.location = self.location
        self.put(op)

    def emit(self, op: Operation) -> SSAValue:
        self.add(op)
        return op.results[0]

    @contextmanager
    def within(self, block: Block) -> Generator[None]:
        """What is written meanwhile goes to the end of a block."""
        before, self.put = self.put, block.add_op
        yield
        self.put = before

    # Numbers.

    def index(self, number: int) -> SSAValue:
        return self.emit(arith.ConstantOp(IntegerAttr(number, IndexType())))

    def sum(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.AddiOp(a, b))

    def product(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.MuliOp(a, b))

    def quotient(self, a: SSAValue, b: SSAValue) -> SSAValue:
        """Of numbers that have no sign."""
        return self.emit(arith.DivUIOp(a, b))

    def rest(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.RemUIOp(a, b))

    def parts(self, count: SSAValue, size: int) -> SSAValue:
        """How many parts of a size there are, the last one not whole."""
        return self.quotient(self.sum(count, self.index(size - 1)), self.index(size))

    def at_least_zero(self, count: SSAValue) -> SSAValue:
        return self.emit(arith.MaxSIOp(count, self.index(0)))

    def less(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.emit(arith.CmpiOp(a, b, "slt"))

    def all(self, conditions: Sequence[SSAValue]) -> SSAValue:
        if not conditions:
            return self.emit(arith.ConstantOp(IntegerAttr(1, i1)))
        found = conditions[0]
        for one in conditions[1:]:
            found = self.emit(arith.AndIOp(found, one))
        return found

    # Structure.

    @contextmanager
    def where(self, condition: SSAValue) -> Generator[None]:
        """What is written meanwhile happens where the condition holds."""
        block = Block()
        with self.within(block):
            yield
            self.add(scf.YieldOp())
        self.add(scf.IfOp(condition, [], Region(block)))

    def either(
        self,
        condition: SSAValue,
        type_: Attribute,
        then: Callable[[], SSAValue],
        otherwise: Callable[[], SSAValue],
    ) -> SSAValue:
        """The one value or the other; only that is computed."""
        blocks = [Block(), Block()]
        for block, value in zip(blocks, (then, otherwise), strict=True):
            with self.within(block):
                self.add(scf.YieldOp(value()))
        then_, else_ = (Region(b) for b in blocks)
        return self.emit(scf.IfOp(condition, [type_], then_, else_))

    @contextmanager
    def loop(self, count: SSAValue) -> Generator[SSAValue]:
        """What is written meanwhile happens so many times."""
        block = Block(arg_types=[IndexType()])
        with self.within(block):
            yield block.args[0]
            self.add(array.YieldOp())
        self.add(array.LoopOp(count, (), block))

    # Memory.

    def load(self, source: SSAValue, indices: Sequence[SSAValue] = ()) -> SSAValue:
        return self.emit(memref.LoadOp.get(source, list(indices)))

    def store(self, value: SSAValue, target: SSAValue, indices: Sequence[SSAValue] = ()) -> None:
        self.add(memref.StoreOp.get(value, target, list(indices)))

    def cell(self, element: Attribute) -> SSAValue:
        return self.emit(memref.AllocaOp.get(element, shape=[]))

    # Combining, as maps do.

    def identity(self, kind: str, element: Attribute) -> SSAValue:
        """What a combination leaves unchanged."""
        if isinstance(element, AnyFloat):
            number = {"add": -0.0, "mul": 1.0, "min": inf, "max": -inf}[kind]
            return self.emit(arith.ConstantOp(FloatAttr(number, element)))
        bits = element.width.data if isinstance(element, IntegerType) else 64
        if bits == 1:
            return self.emit(arith.ConstantOp(IntegerAttr(int(kind in ("mul", "min")), i1)))
        least = -(1 << (bits - 1))
        number = {"add": 0, "mul": 1, "min": -least - 1, "max": least}[kind]
        type_ = cast("IntegerType | IndexType", element)
        return self.emit(arith.ConstantOp(IntegerAttr(number, type_)))

    def combined(self, kind: str, old: SSAValue, new: SSAValue) -> SSAValue:
        """What is there with one more element; `store` knows nothing of what is there."""
        if kind == "store":
            return new
        if old.type == i1:
            return self.emit((arith.AndIOp if kind in ("mul", "min") else arith.OrIOp)(old, new))
        ops = FLOATS if isinstance(old.type, AnyFloat) else INTEGERS
        return self.emit(ops[kind](old, new))


FLOATS = {
    "add": arith.AddfOp,
    "mul": arith.MulfOp,
    "min": arith.MinimumfOp,
    "max": arith.MaximumfOp,
}
INTEGERS = {"add": arith.AddiOp, "mul": arith.MuliOp, "min": arith.MinSIOp, "max": arith.MaxSIOp}


class Kernel(Writer):
    """A kernel function that is being written. What it uses from outside becomes an argument.

    Constants come along. Memory that it is given is the device's.
    """

    def __init__(self, location: LocationAttr) -> None:
        self.head, self.body = Block(), Block()
        super().__init__(self.body.add_op, location)
        self.given: list[SSAValue] = []
        """What a launch hands over."""
        self.values: dict[SSAValue, SSAValue] = {}
        """By what they are outside."""
        self.numbers: dict[int, SSAValue] = {}
        """Constants, each there once."""

    def index(self, number: int) -> SSAValue:
        if number not in self.numbers:
            with self.within(self.head):
                self.numbers[number] = super().index(number)
        return self.numbers[number]

    def value(self, outside: SSAValue) -> SSAValue:
        """What a value from outside, or of what was cloned, is in the kernel."""
        found = self.values.get(outside)
        if found is None:
            found = self.values[outside] = self.brought(outside)
        return found

    def brought(self, outside: SSAValue) -> SSAValue:
        owner = outside.owner
        if isinstance(owner, arith.ConstantOp):
            own = owner.clone()
            self.head.add_op(own)
            return own.result
        if isinstance(owner, array.ViewOp) and self.is_own(strip_views(outside)):
            for operand in owner.operands:
                self.value(operand)
            view = owner.clone(self.values)
            self.put(view)
            return view.result
        self.given.append(outside)
        type_ = outside.type
        if isinstance(type_, MemRefType):
            type_ = device.in_space(type_, device.GLOBAL)
        argument = self.head.insert_arg(type_, len(self.head.args))
        argument.name_hint = outside.name_hint
        return argument

    def is_own(self, cell: SSAValue) -> bool:
        """Whether each thread has a variable of its own for this one from outside."""
        own = self.values.get(cell)
        return own is not None and isinstance(own.owner, memref.AllocaOp)

    def copy(self, op: Operation) -> None:
        """The op, with what is in it; keeps its location."""
        own = {r for o in op.walk() for r in (*o.results, *args_of(o))}
        for inner in op.walk():
            for operand in inner.operands:
                if operand not in own:
                    self.value(operand)
        made = op.clone(self.values)
        self.put(made)
        for old, view in zip(op.walk(), list(made.walk()), strict=True):
            if isinstance(view, array.AnyView | memref.CastOp):
                (result,) = view.results
                type_ = device.in_space(result.type, device.space_of(view.source.type))
                self.values[old.results[0]] = Rewriter.replace_value_with_new_type(result, type_)

    def shared(self, element: Attribute, size: int = device.THREADS) -> SSAValue:
        """Memory of the block, one element a thread, or so many."""
        space = IntegerAttr(device.SHARED, i64)
        found = memref.AllocaOp.get(element, shape=[size], memory_space=space)
        found.location = self.location
        self.head.add_op(found)
        return found.memref

    def finish(self, name: str) -> func.FuncOp:
        """The function, by this name."""
        for op in list(self.body.ops):
            op.detach()
            self.head.add_op(op)
        end = func.ReturnOp()
        end.location = self.location
        self.head.add_op(end)
        made = func.FuncOp(
            name,
            ([a.type for a in self.head.args], []),
            Region(self.head),
            visibility="private",
        )
        made.attributes[device.KERNEL] = UnitAttr()
        made.location = self.location
        if bytes_of_parameters(made) > MOST_PARAMETERS:
            raise refusal(
                made,
                "this reads and writes more arrays and numbers than a kernel can be given (4096 bytes)",
                "do it in several statements, or put arrays of one shape into one array",
            )
        return made


MOST_PARAMETERS = 4096
"""Bytes that a kernel may be given: what every kind of device has room for."""


def bytes_of_parameters(kernel: func.FuncOp) -> int:
    """What a kernel is given: of an array its pointer, extents and strides."""
    types = [a.type for a in kernel.body.block.args]
    ranks = [t.get_num_dims() for t in types if isinstance(t, MemRefType)]
    return 8 * (len(types) + 2 * sum(ranks))


def is_in_range(writer: Writer, source: SSAValue, at: Sequence[SSAValue]) -> SSAValue:
    """Whether there is such an element."""
    zero = writer.index(0)
    axes = [writer.index(k) for k in range(len(at))]
    extents = [writer.emit(memref.DimOp(source, axis)) for axis in axes]
    above = [writer.emit(arith.CmpiOp(zero, i, "sle")) for i in at]
    pairs = zip(at, extents, strict=True)
    return writer.all([*above, *(writer.less(i, n) for i, n in pairs)])


def element_of(memref: SSAValue) -> Attribute:
    assert isinstance(memref.type, MemRefType)
    return memref.type.element_type


def zero_of(element: Attribute) -> arith.ConstantOp:
    if isinstance(element, AnyFloat):
        return arith.ConstantOp(FloatAttr(0.0, element))
    return arith.ConstantOp(IntegerAttr(0, cast("IntegerType | IndexType", element)))


def args_of(op: Operation) -> list[SSAValue]:
    return [a for region in op.regions for block in region.blocks for a in block.args]


# Index spaces.


def tiles(rank: int) -> list[int]:
    """The points of a block along each axis."""
    if rank < 2:
        return [device.THREADS] * rank
    return [1] * (rank - 2) + [*TILE]


def blocks(writer: Writer, extents: Sequence[SSAValue]) -> SSAValue:
    """How many blocks an index space takes; none where it is empty."""
    total: SSAValue | None = None
    for extent, size in zip(extents, tiles(len(extents)), strict=True):
        parts = writer.parts(writer.at_least_zero(extent), size)
        total = parts if total is None else writer.product(total, parts)
    return writer.index(1) if total is None else total


def point(kernel: Kernel, extents: Sequence[SSAValue]) -> tuple[list[SSAValue], SSAValue]:
    """The point of this thread in an index space (outermost axis first), and whether there is one."""
    thread, block = kernel.emit(device.ThreadOp()), kernel.emit(device.BlockOp())
    if not extents:
        return [], kernel.emit(arith.CmpiOp(thread, kernel.index(0), "eq"))
    found: list[SSAValue] = []
    for axis in reversed(range(len(extents))):
        size = tiles(len(extents))[axis]
        mine, own = block, thread
        if axis:
            parts = kernel.parts(extents[axis], size)
            mine, block = kernel.rest(block, parts), kernel.quotient(block, parts)
        if size == 1:
            found.append(mine)
            continue
        if size < device.THREADS:
            number = kernel.index(size)
            own, thread = kernel.rest(thread, number), kernel.quotient(thread, number)
        found.append(kernel.sum(kernel.product(mine, kernel.index(size)), own))
    found.reverse()
    pairs = zip(found, extents, strict=True)
    return found, kernel.all([kernel.less(i, n) for i, n in pairs])


def describe(kernel: func.FuncOp, sharing: Iterable[tuple[int, int]]) -> None:
    """Say of a kernel what it only reads; `sharing`: the arguments that may share memory."""
    arguments = list(kernel.body.block.args)
    stored = {strip_views(m) for m in map(stored_to, kernel.walk()) if m is not None}
    written = {k for k, a in enumerate(arguments) if a in stored}
    written |= {k for pair in sharing for k in pair if not written.isdisjoint(pair)}
    memrefs = {k for k, a in enumerate(arguments) if isinstance(a.type, MemRefType)}
    listed = DenseArrayBase.from_list(i64, sorted(memrefs - written))
    kernel.attributes[device.READ_ONLY] = listed


def stored_to(op: Operation) -> SSAValue | None:
    """The memory that a scalar op writes an element of."""
    match op:
        case memref.StoreOp():
            return op.memref
        case device.AtomicAddOp():
            return op.target
        case _:
            return None


def essence(kernel: func.FuncOp) -> Hashable:
    """What a kernel does, without names: two kernels of which it is the same are one."""
    numbers: dict[SSAValue, int] = {}

    def number(value: SSAValue) -> int:
        return numbers.setdefault(value, len(numbers))

    def of_block(block: Block) -> Hashable:
        taken = tuple((number(a), a.type) for a in block.args)
        return taken, tuple(of_op(op) for op in block.ops)

    def of_op(op: Operation) -> Hashable:
        told = frozenset((*op.attributes.items(), *op.properties.items()))
        used = tuple(number(v) for v in op.operands)
        inside = tuple(of_block(b) for region in op.regions for b in region.blocks)
        return op.name, told, used, inside, tuple((number(r), r.type) for r in op.results)

    return frozenset(kernel.attributes.items()), of_block(kernel.body.block)
