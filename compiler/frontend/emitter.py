"""The one place where the frontend makes ops: it sets their source location and name hint."""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import NoReturn, TypeVar

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, MemRefType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array as ops
from ...dialects.array import AllocOp, AnyView, StrideOp, is_operation_that_may_raise
from ..diagnostics import CompileError, Span, locate
from ..names import as_hint
from ..scalar_types import IR_TYPE, has_no_sign
from .values import Scalar

OpT = TypeVar("OpT", bound=Operation)
TOO_LARGE = ("OverflowError", "Python integer does not fit 64 bits")


Number = tuple[int, int] | tuple[str, tuple["Form", ...]]
"""What the entry computes from the arguments: (argument, axis), an extent of an array or (axis -1) an
int; or ("max" | "min" | "floordiv" | "mul", operands)."""
Form = tuple[int, tuple[tuple[int, Number], ...]]
"""constant + sum of factor * number."""


@dataclass(frozen=True)
class Carried:
    """What one loop carries: the memrefs as its body sees them, and as the loop starts with them.

    The body permutes them, so each is at any time one of the initial ones, no two the same.
    """

    arguments: tuple[SSAValue, ...]
    initial: tuple[SSAValue, ...]


@dataclass
class Emitter:
    """Appends ops at the end of `block`, located at `span`.

    `entry` is the function's entry block: cells (`memref.alloca`) and integer constants go to its
    start, so that each exists once however often its loop runs. Without `boundscheck` subscripts are trusted:
    whoever makes an `array.index` passes `unchecked=not emitter.boundscheck`. `carried` knows the
    carried memrefs of the loops that are being built, by block argument; `settled` the pairs of
    extents that a check in that block has compared. `assumed` collects what the function assumes to be 0;
    it is None where nothing may be assumed (`library.shapes`), and `agreed` are the pairs of extents
    that are equal for it.
    """

    entry: Block
    block: Block
    span: Span | None = None
    boundscheck: bool = True
    carried: dict[SSAValue, Carried] = field(default_factory=dict[SSAValue, Carried])
    counts: dict[object, SSAValue] = field(default_factory=dict[object, SSAValue])
    """How often the loops run that are being built, by their counters."""
    settled: dict[Block, set[frozenset[object]]] = field(
        default_factory=dict[Block, set[frozenset[object]]]
    )
    scattered: bool = False  # an argument of any strides is never contiguous: its key says so
    assumed: set[Form] | None = None
    agreed: set[frozenset[object]] = field(default_factory=set[frozenset[object]])
    constants: dict[int, SSAValue] = field(default_factory=dict[int, SSAValue])
    dims: dict[tuple[SSAValue, int], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, int], SSAValue]
    )
    around: list[Block] = field(default_factory=list[Block])
    """The blocks that are being written, from the outside in, but for this one."""
    rooms: set[SSAValue] = field(default_factory=set[SSAValue])
    """The memory of arrays that change their shape: mostly addresses, which no gradient saves whole."""
    became: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Arrays whose memory is that of another since they were made: what was noted of them is of that."""
    catch: Callable[[Operation], Operation | None] | None = None
    """Lowers an op that may raise what a handler catches, and says by which op; or None."""
    leave: Callable[[Operation], Operation | None] | None = None
    """The same for one that may end the call, where the caller's objects have changed."""
    read_only: set[SSAValue] = field(default_factory=set[SSAValue])
    """Arguments and views to which nothing may be stored (`library.read_only`)."""
    stored_anyway: set[SSAValue] = field(default_factory=set[SSAValue])
    """Those of them to which something is."""
    before: Callable[[Operation], None] = lambda _op: None
    """Told of each op before it is put."""

    def insert(self, op: OpT, hint: str | None = None) -> OpT:
        """Append `op` here, give it the current location, and its first result a name hint."""
        if is_operation_that_may_raise(op):
            for lowered in (self.catch, self.leave):
                made = None if lowered is None else lowered(op)
                if made is not None:
                    return self.named(made, hint)  # pyright: ignore[reportReturnType]
        return self.put(op, hint)

    def put(self, op: OpT, hint: str | None = None) -> OpT:
        """`insert`, of an op whose exception no handler and no `finally` gets: the machine's."""
        self.before(op)
        if self.span is not None:
            locate(op, self.span.location())
        self.block.add_op(op)
        return self.named(op, hint)

    def named(self, op: OpT, hint: str | None) -> OpT:
        if hint is not None and op.results:
            op.results[0].name_hint = as_hint(hint.partition("$")[0] if "." in hint else hint)
        return op

    def emit(self, op: Operation, hint: str | None = None) -> SSAValue:
        """`insert`, for the single result."""
        return self.insert(op, hint).results[0]

    @contextmanager
    def at(self, block: Block) -> Generator[None]:
        """Emit into `block` meanwhile."""
        self.around.append(self.block)
        self.block = block
        try:
            yield
        finally:
            self.block = self.around.pop()

    def now(self, value: SSAValue) -> SSAValue:
        """The array that an array has become."""
        while value in self.became:
            value = self.became[value]
        return value

    def index(self, value: int) -> SSAValue:
        """A constant of type `index`, made once, at the start of the function."""
        if value not in self.constants:
            op = arith.ConstantOp(ops.index_number(value))
            op.result.name_hint = f"c{value}".replace("-", "m")
            self._insert_first(self.entry, op)
            self.constants[value] = op.result
        return self.constants[value]

    def constant(self, value: bool | int | float, type_: str) -> Scalar:
        """A constant scalar of our type name `type_`."""
        ir = IR_TYPE[type_]
        if type_ in ("py_float", "f64", "f32"):
            ssa = self.emit(arith.ConstantOp(FloatAttr(float(value), ir)))  # pyright: ignore
            return Scalar(type_, ssa, float(value))
        if type_ in ("py_bool", "b1"):
            ssa = self.emit(arith.ConstantOp(IntegerAttr(int(value), i1)))
            return Scalar(type_, ssa, bool(value))
        made = None if type_ == "py_int" else arith.ConstantOp(IntegerAttr(int(value), ir))  # pyright: ignore
        ssa = self.index(int(value)) if made is None else self.emit(made)
        return Scalar(type_, ssa, int(value), int(value), int(value))

    def cast(self, value: SSAValue, from_: str, to: str) -> SSAValue:
        """One element converted as `astype` does it; nothing is emitted between equal IR types."""
        if IR_TYPE[from_] == IR_TYPE[to]:
            return value
        if (from_, to) == ("u64", "py_int"):
            beyond = self.emit(arith.CmpiOp(value, self.constant(0, from_).ssa, "slt"))
            self.insert(ops.RaiseIfOp(beyond, *TOO_LARGE))
        op = ops.CastOp(value, IR_TYPE[to], unsigned=has_no_sign(from_, to))
        return self.emit(op, value.name_hint)

    def cell(self, type_: Attribute, hint: str) -> SSAValue:
        """A new rank-0 cell for a scalar variable, uninitialized."""
        op = memref.AllocaOp.get(type_, shape=[])
        self._insert_first(self.entry, op)
        op.memref.name_hint = as_hint(hint)
        return op.memref

    def load(self, cell: SSAValue, hint: str | None = None) -> SSAValue:
        return self.emit(memref.LoadOp.get(cell, []), hint or cell.name_hint)

    def store(self, value: SSAValue, cell: SSAValue) -> None:
        self.insert(memref.StoreOp.get(value, cell, []))

    def extents(self, array: SSAValue) -> tuple[SSAValue, ...]:
        """The extents of a memref, without a new op where its type or its definition tells them.

        Else one `memref.dim` for each, right behind the definition: so each exists once.
        """
        if isinstance(array.owner, AllocOp | AnyView):
            return tuple(array.owner.extents)
        assert isinstance(array.type, MemRefType)
        return tuple(
            self.index(n) if n >= 0 else self._dim(array, d)
            for d, n in enumerate(array.type.get_shape())
        )

    def _dim(self, array: SSAValue, d: int) -> SSAValue:
        if (array, d) in self.dims:
            return self.dims[array, d]
        index = self.index(d)
        op = memref.DimOp(array, index)
        self.dims[array, d] = op.result
        op.result.name_hint = f"{array.name_hint or 'array'}_{d}"
        if array.owner is self.entry:
            self.insert_behind(index.owner, op)
        elif isinstance(array.owner, Block):
            self._insert_first(array.owner, op)
        else:
            self.insert_behind(array.owner, op)
        return op.result

    def stride(self, argument: SSAValue, d: int) -> SSAValue:
        """A stride of an argument, in elements; read where the function begins, once."""
        key = (argument, ~d)
        if key not in self.dims:
            op = StrideOp(argument, d)
            op.result.name_hint = f"{argument.name_hint or 'array'}_stride_{d}"
            self._insert_first(self.entry, op)
            self.dims[key] = op.result
        return self.dims[key]

    def _insert_first(self, block: Block, op: Operation) -> None:
        if self.span is not None:
            op.location = self.span.location()
        if block.first_op is None:
            block.add_op(op)
        else:
            block.insert_op_before(op, block.first_op)

    def insert_behind(self, before: Operation | Block, op: Operation) -> None:
        """Put an op at a place that has been passed, where what it needs is known."""
        if self.span is not None:
            op.location = self.span.location()
        assert isinstance(before, Operation)
        block = before.parent
        assert block is not None
        block.insert_op_after(op, before)

    def fail(self, message: str, way_out: str | None = None, span: Span | None = None) -> NoReturn:
        """Refuse the program at the current (or given) span."""
        raise CompileError(span or self.span, message, way_out)


def span_of(node: ast.AST, file: str, first_line: int) -> Span:
    """The span of an AST node whose function's source starts at `first_line` of `file`."""
    return Span(
        file,
        getattr(node, "lineno", 1) + first_line - 1,
        getattr(node, "col_offset", 0),
        (getattr(node, "end_lineno", None) or 1) + first_line - 1,
        getattr(node, "end_col_offset", None) or 0,
    )


PLACEHOLDER = "placeholder"
"""Attribute of an allocation that stands for an array on a path that has none."""


def is_placeholder(root: SSAValue) -> bool:
    return isinstance(root.owner, Operation) and PLACEHOLDER in root.owner.attributes
