"""The one place where the frontend makes ops: it sets their source location and name hint."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NoReturn, TypeVar

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import FloatAttr, IndexType, IntegerAttr, MemRefType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ..diagnostics import CompileError, Span
from .values import IR_TYPE, Scalar


OpT = TypeVar("OpT", bound=Operation)


@dataclass
class Emitter:
    """Appends ops at the end of `block`, located at `span`.

    `entry` is the function's entry block: cells (`memref.alloca`) go to its start, so that each
    exists once however often its loop runs. Without `boundscheck` subscripts are trusted:
    whoever makes an `array.index` passes `unchecked=not emitter.boundscheck`.
    """

    entry: Block
    block: Block
    span: Span | None = None
    boundscheck: bool = True

    def insert(self, op: OpT, hint: str | None = None) -> OpT:
        """Append `op` here, give it the current location, and its first result a name hint."""
        if self.span is not None:
            op.location = self.span.location()
        self.block.add_op(op)
        if hint is not None and op.results:
            op.results[0].name_hint = hint
        return op

    def emit(self, op: Operation, hint: str | None = None) -> SSAValue:
        """`insert`, for the single result."""
        return self.insert(op, hint).results[0]

    @contextmanager
    def at(self, block: Block) -> Iterator[None]:
        """Emit into `block` meanwhile."""
        outer, self.block = self.block, block
        try:
            yield
        finally:
            self.block = outer

    def index(self, value: int) -> SSAValue:
        """A constant of type `index`."""
        return self.emit(arith.ConstantOp(IntegerAttr(value, IndexType())), f"c{value}".replace("-", "m"))

    def constant(self, value: bool | int | float, type_: str) -> Scalar:
        """A constant scalar of our type name `type_`."""
        ir = IR_TYPE[type_]
        if type_ in ("py_float", "f64", "f32"):
            ssa = self.emit(arith.ConstantOp(FloatAttr(float(value), ir)))  # pyright: ignore
            return Scalar(type_, ssa, float(value))
        if type_ in ("py_bool", "b1"):
            return Scalar(type_, self.emit(arith.ConstantOp(IntegerAttr(int(value), i1))), bool(value))
        ssa = self.index(int(value)) if type_ == "py_int" else self.emit(
            arith.ConstantOp(IntegerAttr(int(value), ir))  # pyright: ignore
        )
        return Scalar(type_, ssa, int(value), int(value), int(value))

    def cell(self, type_: Attribute, hint: str) -> SSAValue:
        """A new rank-0 cell for a scalar variable, uninitialized."""
        op = memref.AllocaOp.get(type_, shape=[])
        if self.span is not None:
            op.location = self.span.location()
        first = self.entry.first_op
        if first is None:
            self.entry.add_op(op)
        else:
            self.entry.insert_op_before(op, first)
        op.memref.name_hint = hint
        return op.memref

    def load(self, cell: SSAValue, hint: str | None = None) -> SSAValue:
        return self.emit(memref.LoadOp.get(cell, []), hint or cell.name_hint)

    def store(self, value: SSAValue, cell: SSAValue) -> None:
        self.insert(memref.StoreOp.get(value, cell, []))

    def extents(self, array: SSAValue) -> tuple[SSAValue, ...]:
        """The extents of a memref: constants where the type knows them, else `memref.dim`."""
        assert isinstance(array.type, MemRefType)
        return tuple(
            self.index(n)
            if n >= 0
            else self.emit(memref.DimOp.from_source_and_index(array, self.index(d)), f"n{d}")
            for d, n in enumerate(array.type.get_shape())
        )

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
