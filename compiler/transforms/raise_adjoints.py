"""Turn loops of an adjoint whose iterations are independent into maps, where they stand alone.

`total += z[i] * x[i]` goes one by one, for that is the user's order. Its adjoint does not: each iteration
adds to elements of its own. As a map it shares a loop with the maps around it (`fuse-rows`), and stores what
it is the first to add to (`store-first`). Runs after the last derivative; loops within loops are left for
`reorder-loops` and `unroll-and-jam`, which find better orders for them.

Before::

    func.func @f(%n : index, %bar : f64, %x : memref<?xf64>, %s : memref<?xf64>) {
      %one = arith.constant 1 : index
      %last = arith.subi %n, %one : index
      %trips = array.loop %k to %n do {
        %i = arith.subi %last, %k : index
        %a = memref.load %x[%i] : memref<?xf64>
        %b = arith.mulf %bar, %a : f64
        %old = memref.load %s[%i] : memref<?xf64>
        %new = arith.addf %old, %b : f64
        memref.store %new, %s[%i] : memref<?xf64>
        array.yield
      }
      func.return
    }

After::

    !view = memref<?xf64, strided<[1]>>
    func.func @f(%n: index, %bar: f64, %x: memref<?xf64>, %s: memref<?xf64>) {
      %one = arith.constant 1 : index
      %last = arith.subi %n, %one : index
      %0 = arith.constant 1 : index
      %1 = arith.subi %n, %0 : index
      %2 = arith.constant 0 : index
      %trips = arith.maxsi %n, %2 : index
      %3 = arith.constant 1 : index
      %x_view = array.view %x[%2] dims [0] extents(%trips) steps(%3) : memref<?xf64> -> !view
      %s_view = array.view %s[%2] dims [0] extents(%trips) steps(%3) : memref<?xf64> -> !view
      %s_view_1 = array.view %s[%2] dims [0] extents(%trips) steps(%3) : memref<?xf64> -> !view
      array.map(%trips) ins(%x_view : !view) outs(%s_view_1 : !view) kinds ["add"] {
      ^bb0(%a: f64):
        %b = arith.mulf %bar, %a : f64
        array.yield %b : f64
      }
      func.return
    }

Kept: whatever `raise-loops` keeps.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.alias import AliasAnalysis
from .fold_constants import is_nonnegative
from .map_outputs import with_outputs
from .memory_effects import functions
from .raise_loops import Nest, is_simple
from .run_upwards import run_upwards


@dataclass(frozen=True)
class RaiseAdjoints(ModulePass):
    """Make maps of the independent loops that a function's own block has."""

    name = "raise-adjoints"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            alias = AliasAnalysis(function)
            for loop in filter(is_simple, list(outermost_loops(function.body.block))):
                count_trips(loop)
                if not any(inner.regions for inner in loop.body.block.ops):
                    raise_one(loop, alias)


def outermost_loops(block: Block) -> Iterator[array.LoopOp]:
    """The loops that are in no other, in branches as well."""
    for op in block.ops:
        if isinstance(op, array.LoopOp):
            yield op
        elif isinstance(op, scf.IfOp) and array.RAISES not in op.attributes:
            for region in op.regions:
                for inner in region.blocks:
                    yield from outermost_loops(inner)


def count_trips(loop: array.LoopOp) -> None:
    """The trips of a loop that nothing ends early are its count."""
    assert loop.count is not None
    if is_nonnegative(loop.count):
        loop.trips.replace_all_uses_with(loop.count)


def raise_one(loop: array.LoopOp, alias: AliasAnalysis) -> None:
    """Put a map in the place of the loop, if that is exact."""
    nest = Nest((loop,), alias)
    places = nest.independent()
    if places is None:
        return
    if all(s.factor <= 0 for place in places for s in place.subscripts):
        run_upwards(loop)
        nest = Nest((loop,), alias)
    made = nest.raised()
    if made is not None:
        add_in_place(made)


def add_in_place(op: array.MapOp) -> None:
    """Let outputs that store what was there and something more add that."""
    kinds = list(op.out_kinds)
    end = op.body.block.last_op
    assert end is not None
    for k, value in enumerate(op.yielded):
        more = added(op, op.outs[k], value)
        if more is not None:
            kinds[k] = "add"
            end.operands[k] = more
    if tuple(kinds) != op.out_kinds:
        with_outputs(op, range(len(op.outs)), kinds)


def added(op: array.MapOp, out: SSAValue, value: SSAValue) -> SSAValue | None:
    """What is added to the element that was there, of which nothing else is made."""
    total = value.owner
    if not isinstance(total, arith.AddfOp) or not value.has_one_use():
        return None
    for old, more in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        read = old.owner is op.body.block and old.has_one_use() and old is not more
        if read and is_same_view(op.ins[op.body.block.args.index(old)], out):  # pyright: ignore
            return more
    return None


def is_same_view(a: SSAValue, b: SSAValue) -> bool:
    """Two views of the same elements in the same order."""
    if a is b:
        return True
    one, other = a.owner, b.owner
    return (
        isinstance(one, array.ViewOp)
        and isinstance(other, array.ViewOp)
        and one.properties == other.properties
        and all(same(x, y) for x, y in zip(one.operands, other.operands, strict=True))
    )


def same(a: SSAValue, b: SSAValue) -> bool:
    """The same value, or equal constants."""
    number = array.constant_value(a)
    return a is b or (number is not None and number == array.constant_value(b))
