"""Whole-array statements: one map once fused, copied first where NumPy copies, checked only where needed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    IndexType,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    UnknownLoc,
    f64,
    i32,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from mutad.compiler.diagnostics import CompileError, Span
from mutad.compiler.frontend import library
from mutad.compiler.frontend.emitter import Carried, Emitter
from mutad.compiler.frontend.values import Array, NoneValue, Scalar, SliceValue, Value
from mutad.compiler.transforms.eliminate_common import EliminateCommon
from mutad.compiler.transforms.fuse_elementwise import FuseElementwise
from mutad.compiler.transforms.resolve_overlap import ResolveOverlap
from mutad.compiler.transforms.unify_extents import UnifyExtents
from mutad.dialects import array

VECTOR = MemRefType(f64, [DYNAMIC_INDEX])
MATRIX = MemRefType(f64, [DYNAMIC_INDEX, DYNAMIC_INDEX])
INTS = MemRefType(i64, [DYNAMIC_INDEX])
NARROW = MemRefType(i32, [DYNAMIC_INDEX])
DTYPES: dict[Attribute, str] = {f64: "f64", i64: "i64", i32: "i32"}


class Program:
    """A function under construction, its arguments as frontend values."""

    def __init__(
        self, *types: Attribute, overlaps: Sequence[tuple[int, int]] = (), **options: bool
    ) -> None:
        self.function = func.FuncOp("f", (list(types), []), Region(Block(arg_types=list(types))))
        if overlaps:
            pairs = [ArrayAttr([IntegerAttr(k, i64) for k in pair]) for pair in overlaps]
            self.function.attributes["overlaps"] = ArrayAttr(pairs)
        block = self.function.body.block
        self.e = Emitter(block, block, Span(__file__, 1, 0, 1, 1), **options)
        self.e.assumed = set()
        self.args = [self.value(a) for a in block.args]

    def value(self, a: SSAValue) -> Value:
        if isinstance(a.type, MemRefType):
            return Array(a, DTYPES[a.type.element_type])
        return Scalar("py_int" if isinstance(a.type, IndexType) else "py_float", a)

    def number(self, value: float) -> Scalar:
        return self.e.constant(value, "py_int" if isinstance(value, int) else "py_float")

    def part(self, index: object) -> Value:
        if isinstance(index, slice):
            parts = (index.start, index.stop, index.step)
            return SliceValue(*(self.part(p) if p is not None else None for p in parts))  # type: ignore[arg-type]
        if index is None:
            return NoneValue()
        return self.number(index) if isinstance(index, int | float) else index  # type: ignore[return-value]

    def at(self, a: Value, *indices: object) -> Value:
        assert isinstance(a, Array)
        return library.subscript(self.e, a, tuple(map(self.part, indices)))

    def assign(self, a: Value, indices: object, value: Value) -> None:
        assert isinstance(a, Array)
        given = indices if isinstance(indices, tuple) else (indices,)
        library.store(self.e, a, tuple(map(self.part, given)), value)

    def augment(self, operator: str, a: Value, indices: object, value: Value) -> None:
        assert isinstance(a, Array)
        given = indices if isinstance(indices, tuple) else (indices,)
        place = library.locate(self.e, a, tuple(map(self.part, given)))
        library.augmented(self.e, operator, place, value)

    def binary(self, operator: str, left: Value, right: Value) -> Value:
        return library.binary(self.e, operator, left, right)

    def ops(self, kind: type[Operation]) -> list[Operation]:
        return [op for op in self.function.walk() if isinstance(op, kind)]

    def counts(self, *kinds: type[Operation]) -> tuple[int, ...]:
        return tuple(len(self.ops(kind)) for kind in kinds)

    def finish(self) -> None:
        """End the function, fuse its maps and resolve its assignments."""
        self.e.insert(func.ReturnOp())
        module = ModuleOp([self.function])
        module.verify()
        for one in (EliminateCommon(), UnifyExtents(), FuseElementwise(), ResolveOverlap()):
            one.apply(Context(), module)
            module.verify()
        for op in self.function.body.walk():
            assert not isinstance(op.location, UnknownLoc), op


EFFECTS = (array.MapOp, array.AllocOp, array.RaiseIfOp)


def stencil(p: Program, u: Value) -> Value:
    neighbours = p.binary("Add", p.at(u, slice(None, -2)), p.at(u, slice(2, None)))
    twice = p.binary("Mult", p.number(2), p.at(u, slice(1, -1)))
    return p.binary("Sub", neighbours, twice)


def test_a_stencil_into_other_memory_is_one_map_without_checks() -> None:
    p = Program(VECTOR, VECTOR)
    u, v = p.args
    p.assign(v, slice(1, -1), stencil(p, u))
    p.finish()
    # The two arguments' extents are equal: the entry checks it, and no step depends on it.
    assert p.e.assumed is not None
    assert len(p.e.assumed) == 1
    assert p.counts(*EFFECTS) == (1, 0, 1)
    assert [c.exception.data for c in p.ops(array.RaiseIfOp) if isinstance(c, array.RaiseIfOp)] == [
        "SystemError"
    ]
    assert all(array.constant_value(s) for v in p.ops(array.ViewOp) for s in v.operands[-1:])
    (copy,) = p.ops(array.MapOp)
    assert isinstance(copy, array.MapOp)
    assert len(copy.ins) == 3


def test_a_stencil_into_itself_goes_through_a_temporary() -> None:
    p = Program(VECTOR)
    (u,) = p.args
    p.assign(u, slice(1, -1), stencil(p, u))
    p.finish()
    assert p.counts(*EFFECTS) == (2, 1, 0)


def test_the_same_view_is_updated_in_place() -> None:
    p = Program(VECTOR)
    (u,) = p.args
    p.augment("Mult", u, slice(1, -1), p.at(u, slice(1, -1)))
    p.finish()
    assert p.counts(*EFFECTS) == (1, 0, 0)
    (update,) = p.ops(array.MapOp)
    assert isinstance(update, array.MapOp)
    assert len(update.ins) == 1


@pytest.mark.parametrize(
    ("target", "source"),
    [
        (slice(None, -1), slice(1, None)),
        (slice(1, None), slice(None, -1)),
        (slice(None, None, -1), slice(None)),
    ],
)
def test_shifted_and_reversed_copies_go_through_a_temporary(target: slice, source: slice) -> None:
    p = Program(VECTOR)
    (x,) = p.args
    p.assign(x, target, p.at(x, source))
    p.finish()
    assert p.counts(*EFFECTS) == (2, 1, 0)


@pytest.mark.parametrize(
    ("target", "source"),
    [
        ((slice(None, None, 2),), (slice(1, None, 2),)),
        ((slice(0, 3),), (slice(3, 6),)),
    ],
)
def test_parts_that_provably_differ_need_no_temporary(
    target: tuple[slice, ...], source: tuple[slice, ...]
) -> None:
    p = Program(VECTOR)
    (x,) = p.args
    p.assign(x, target, p.at(x, *source))
    p.finish()
    assert p.counts(array.MapOp, array.AllocOp) == (1, 0)


def test_the_rank_one_update_of_lu_is_in_place() -> None:
    p = Program(MATRIX, IndexType())
    a, k = p.args
    assert isinstance(k, Scalar)
    k = Scalar("py_int", k.ssa, None, 0, 2**48)
    after = library.shapes.plus(p.e, k.ssa, 1)
    rest = SliceValue(Scalar("py_int", after, None, 1, 2**48), None, None)
    column = p.at(p.at(a, rest, k), slice(None), None)
    row = p.at(a, k, rest)
    assert isinstance(column, Array)
    p.augment("Sub", a, (rest, rest), p.binary("Mult", column, row))
    p.finish()
    assert p.counts(*EFFECTS) == (1, 0, 0)


def test_arguments_that_overlap_are_copied() -> None:
    p = Program(VECTOR, VECTOR, overlaps=[(0, 1)])
    x, y = p.args
    p.assign(x, slice(None), p.binary("Add", y, p.number(1.0)))
    p.finish()
    assert p.counts(array.MapOp, array.AllocOp) == (2, 1)


def test_ping_pong_arrays_of_a_loop_are_distinct_and_of_one_shape() -> None:
    p = Program(VECTOR)
    (u,) = p.args
    v = library.call(p.e, __import__("numpy").zeros_like, [u], {})
    assert isinstance(u, Array)
    assert isinstance(v, Array)
    body = Block(arg_types=[IndexType(), VECTOR, VECTOR])
    carried = Carried(tuple(body.args[1:]), (u.memref, v.memref))
    p.e.carried |= {a: carried for a in body.args[1:]}
    a, b = (Array(m, "f64") for m in body.args[1:])
    with p.e.at(body):
        p.assign(b, slice(1, -1), stencil(p, a))
        p.e.insert(array.YieldOp([b.memref, a.memref]))
    p.e.insert(array.LoopOp(p.e.index(10), list(carried.initial), body))
    p.finish()
    assert p.counts(*EFFECTS) == (2, 1, 0)


def test_arguments_of_unknown_extents_are_checked_once() -> None:
    p = Program(VECTOR, VECTOR, VECTOR)
    x, y, out = p.args
    p.assign(out, slice(None), p.binary("Add", x, y))
    p.finish()
    (first, second) = p.ops(array.RaiseIfOp)
    assert isinstance(first, array.RaiseIfOp)
    assert isinstance(second, array.RaiseIfOp)
    assert first.message.data == "operands could not be broadcast together with shapes ({},) ({},) "
    assert (
        second.message.data == "could not broadcast input array from shape ({},) into shape ({},)"
    )


def test_static_unit_extents_broadcast_by_stride_zero() -> None:
    p = Program(VECTOR, MATRIX)
    x, out = p.args
    product = p.binary("Mult", p.at(x, slice(None), None), p.at(x, None, slice(None)))
    p.assign(out, slice(None), product)
    p.finish()
    (statement,) = p.ops(array.MapOp)
    assert isinstance(statement, array.MapOp)
    assert len(statement.ins) == 2


def test_a_view_written_through_keeps_numpys_casts() -> None:
    p = Program(INTS, VECTOR)
    n, x = p.args
    p.assign(n, slice(None), x)
    with pytest.raises(CompileError, match="Cannot cast ufunc 'add' output"):
        p.augment("Add", n, slice(None), p.number(1.5))
    p.augment("Add", n, 0, p.number(1.5))
    p.finish()


def test_leading_unit_dimensions_of_the_source_are_dropped() -> None:
    p = Program(VECTOR, MemRefType(f64, [1, DYNAMIC_INDEX]))
    x, row = p.args
    p.assign(x, slice(None), row)
    p.finish()
    assert p.counts(*EFFECTS) == (1, 0, 1)


@pytest.mark.parametrize("value", [2**31, -(2**40)])
def test_python_ints_that_do_not_fit_are_refused(value: int) -> None:
    p = Program(NARROW)
    (n,) = p.args
    with pytest.raises(CompileError, match="out of bounds for int32"):
        p.binary("Add", n, p.number(value))


def test_python_ints_of_any_size_compare_with_narrow_ones() -> None:
    p = Program(NARROW)
    (n,) = p.args
    assert isinstance(library.compare(p.e, "Lt", n, p.number(2**40)), Array)
    p.finish()


def test_trusted_subscripts_are_not_checked() -> None:
    p = Program(VECTOR, IndexType(), boundscheck=False)
    x, i = p.args
    p.at(x, i)
    p.finish()
    (index,) = p.ops(array.IndexOp)
    assert isinstance(index, array.IndexOp)
    assert index.unchecked is not None


def test_mixed_steps_known_at_run_time_are_handled() -> None:
    p = Program(VECTOR, IndexType())
    x, step = p.args
    taken = p.at(x, SliceValue(None, None, step))  # type: ignore[arg-type]
    assert isinstance(taken, Array)
    p.finish()
    assert p.counts(array.RaiseIfOp) == (1,)
