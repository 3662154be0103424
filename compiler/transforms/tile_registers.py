"""Keep a tile of what a nest adds up in registers: some rows of it, and a vector of each.

Where the inner loops add to a row again and again, each time it is loaded and stored. Its elements are
independent, and so are those of the next rows: a few rows of one vector's width stay in registers from
the first addition to the last one, and what goes along the row is loaded once for all of them. Each element
has its additions in the order in which they were.

Before::

    func.func @f(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %l : index) {
      %trips = array.loop %i to %n do {
        %trips_1 = array.loop %k to %n do {
          %trips_2 = array.loop %j to %l do {
            %x = memref.load %a[%i, %k] : memref<?x?xf64>
            %y = memref.load %b[%k, %j] : memref<?x?xf64>
            %z = arith.mulf %x, %y : f64
            %old = memref.load %c[%i, %j] : memref<?x?xf64>
            %sum = arith.addf %old, %z : f64
            memref.store %sum, %c[%i, %j] : memref<?x?xf64>
            array.yield
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

With the tiles that pay, in short::

    for i in range(0, n - 5, 6):
        for j in range(0, l - 7, 8):
            t = [c[i + d, j : j + 8] for d in range(6)]          # in registers
            for k in range(n):
                y = b[k, j : j + 8]
                t = [t[d] + a[i + d, k] * y for d in range(6)]
            c[i : i + 6, j : j + 8] = t
    for i in range(n - n % 6, n): ...                           # a row at a time, in vectors as well
    for i in range(n): ...                                      # as it was, from column l - l % 8 on

After, with `rows=2 widths=32`::

    func.func @f(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %l : index) {
      %0 = arith.constant 0 : index
      %1 = arith.maxsi %n, %0 : index
      %2 = arith.subi %l, %0 : index
      %3 = arith.constant 4 : index
      %4 = arith.floordivsi %2, %3 : index
      %5 = arith.muli %4, %3 : index
      %6 = arith.addi %0, %5 : index
      %7 = arith.cmpi sge, %l, %3 : index
      %8 = arith.constant 1 : index
      %9 = arith.cmpi sgt, %n, %0 : index
      %10 = arith.andi %7, %9 : i1
      %11 = arith.muli %8, %n : index
      %12 = arith.cmpi sge, %11, %3 : index
      %13 = arith.maxsi %8, %8 : index
      %14 = arith.constant 64 : index
      %15 = arith.divsi %14, %13 : index
      %16 = arith.andi %10, %12 : i1
      %17 = arith.maxsi %15, %8 : index
      %18 = arith.select %16, %1, %0 : index
      %19 = arith.constant 32 : index
      %20 = arith.subi %19, %8 : index
      %21 = arith.addi %18, %20 : index
      %22 = arith.floordivsi %21, %19 : index
      %23 = arith.subi %17, %8 : index
      %24 = arith.addi %n, %23 : index
      %25 = arith.floordivsi %24, %17 : index
      %26 = array.loop %i to %22 do {
        %27 = arith.muli %i, %19 : index
        %28 = arith.subi %18, %27 : index
        %29 = arith.minsi %28, %19 : index
        %30 = array.loop %k to %25 do {
          %31 = arith.muli %k, %17 : index
          %32 = arith.subi %n, %31 : index
          %33 = arith.minsi %32, %17 : index
          %34 = arith.constant 2 : index
          %35 = arith.divui %29, %34 : index
          %36 = arith.constant 2 : index
          %37 = arith.muli %35, %36 : index
          %38 = arith.subi %29, %37 : index
          %39 = arith.addi %27, %37 : index
          %40 = array.loop %j to %4 do {
            %41 = arith.constant 4 : index
            %42 = arith.muli %j, %41 : index
            %43 = arith.addi %0, %42 : index
            %44 = array.loop %i_1 to %35 do {
              %45 = arith.constant 2 : index
              %46 = arith.muli %i_1, %45 : index
              %47 = arith.addi %27, %46 : index
              %48 = arith.constant 1 : index
              %49 = arith.addi %47, %48 : index
              %50 = memref.alloca() : memref<vector<4xf64>>
              %51 = vector.load %c[%47, %43] : memref<?x?xf64>, vector<4xf64>
              memref.store %51, %50[] : memref<vector<4xf64>>
              %52 = memref.alloca() : memref<vector<4xf64>>
              %53 = vector.load %c[%49, %43] : memref<?x?xf64>, vector<4xf64>
              memref.store %53, %52[] : memref<vector<4xf64>>
              %54 = array.loop %k_1 to %33 do {
                %55 = arith.addi %31, %k_1 : index
                %x = memref.load %a[%47, %55] : memref<?x?xf64>
                %x_1 = memref.load %a[%49, %55] : memref<?x?xf64>
                %y = vector.load %b[%55, %43] : memref<?x?xf64>, vector<4xf64>
                %56 = vector.broadcast %x : f64 to vector<4xf64>
                %z = arith.mulf %56, %y : vector<4xf64>
                %57 = vector.broadcast %x_1 : f64 to vector<4xf64>
                %z_1 = arith.mulf %57, %y : vector<4xf64>
                %58 = memref.load %50[] : memref<vector<4xf64>>
                %59 = memref.load %52[] : memref<vector<4xf64>>
                %sum = arith.addf %58, %z : vector<4xf64>
                %sum_1 = arith.addf %59, %z_1 : vector<4xf64>
                memref.store %sum, %50[] : memref<vector<4xf64>>
                memref.store %sum_1, %52[] : memref<vector<4xf64>>
                array.yield
              }
              %60 = memref.load %50[] : memref<vector<4xf64>>
              vector.store %60, %c[%47, %43] : memref<?x?xf64>, vector<4xf64>
              %61 = memref.load %52[] : memref<vector<4xf64>>
              vector.store %61, %c[%49, %43] : memref<?x?xf64>, vector<4xf64>
              array.yield
            }
            %62 = array.loop %i_2 to %38 do {
              %63 = arith.constant 1 : index
              %64 = arith.muli %i_2, %63 : index
              %65 = arith.addi %39, %64 : index
              %66 = memref.alloca() : memref<vector<4xf64>>
              %67 = vector.load %c[%65, %43] : memref<?x?xf64>, vector<4xf64>
              memref.store %67, %66[] : memref<vector<4xf64>>
              %68 = array.loop %k_2 to %33 do {
                %69 = arith.addi %31, %k_2 : index
                %x_2 = memref.load %a[%65, %69] : memref<?x?xf64>
                %y_1 = vector.load %b[%69, %43] : memref<?x?xf64>, vector<4xf64>
                %70 = vector.broadcast %x_2 : f64 to vector<4xf64>
                %z_2 = arith.mulf %70, %y_1 : vector<4xf64>
                %71 = memref.load %66[] : memref<vector<4xf64>>
                %sum_2 = arith.addf %71, %z_2 : vector<4xf64>
                memref.store %sum_2, %66[] : memref<vector<4xf64>>
                array.yield
              }
              %72 = memref.load %66[] : memref<vector<4xf64>>
              vector.store %72, %c[%65, %43] : memref<?x?xf64>, vector<4xf64>
              array.yield
            }
            array.yield
          }
          array.yield
        }
        array.yield
      } {small}
      %73 = arith.select %16, %6, %0 : index
      %74 = arith.subi %l, %73 : index
      %75 = arith.cmpi sgt, %74, %0 : index
      %76 = arith.select %75, %1, %0 : index
      %trips = array.loop %i_3 to %76 do {
        %trips_1 = array.loop %k_3 to %n do {
          %trips_2 = array.loop %j_1 to %74 do {
            %j_2 = arith.addi %73, %j_1 : index
            %x_3 = memref.load %a[%i_3, %k_3] : memref<?x?xf64>
            %y_2 = memref.load %b[%k_3, %j_2] : memref<?x?xf64>
            %z_3 = arith.mulf %x_3, %y_2 : f64
            %old = memref.load %c[%i_3, %j_2] : memref<?x?xf64>
            %sum_3 = arith.addf %old, %z_3 : f64
            memref.store %sum_3, %c[%i_3, %j_2] : memref<?x?xf64>
            array.yield
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

Kept: nests whose inner loops differ in length from row to row, that read what they store otherwise, or that
have more than such additions in them; rows that share nothing. Where there are fewer rows or columns, or the
inner loops are short, the nest runs as it was. Runs before `unroll_and_jam`, which is for nests that cannot
be tiled, and after `reorder_loops`: innermost loops go along rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import AnyFloat, ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.strides import stride
from ..rules import accesses, evaluates_body
from .hoist_checks import is_counted
from .maps_as_loops import attempted, updates_a_row
from .memory_effects import functions
from .register_tiles import BYTES, ROWS, write_tiles
from .scalar_nests import ScalarNest, shared_by_threads
from .tiled_nests import Tiled


@dataclass(frozen=True)
class TileRegisters(ModulePass):
    """Keep tiles of sums in registers."""

    name = "tile-registers"
    threads: bool = False
    """Blocks of rows are for threads."""
    rows: int = ROWS
    """Of a tile."""
    widths: tuple[int, ...] = BYTES
    """Of tiles, in bytes: the widest first."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for leaf in list(innermost(function.body.block, updates_a_row)):
                chain = chain_around(leaf)
                if len(chain) > 1:
                    attempted(leaf, False, partial(tile, function, chain=chain, how=self))


Leaf = array.LoopOp | array.MapOp


def innermost(block: Block, may_be_loop: Callable[[array.MapOp], bool]) -> Iterator[Leaf]:
    """The counted loops without loops in them, and the maps that may be such, that do not only raise."""
    for op in block.ops:
        if array.RAISES in op.attributes:
            continue
        if isinstance(op, array.MapOp):
            if may_be_loop(op):
                yield op
            continue
        if evaluates_body(op) or array.SMALL in op.attributes:
            continue
        if isinstance(op, array.LoopOp) and not any(o.regions for o in op.body.block.ops):
            if is_plain(op):
                yield op
            continue
        for region in op.regions:
            for inner in region.blocks:
                yield from innermost(inner, may_be_loop)


def is_plain(loop: array.LoopOp) -> bool:
    kept = {array.CLAIMED, array.EXCLUSIVE, array.SMALL, array.OWN_BYTES}
    return is_counted(loop) and not loop.carried and not kept & loop.attributes.keys()


def chain_around(leaf: Leaf) -> list[array.LoopOp]:
    """The plain loops around it, the innermost first, that have one loop in them each."""
    found: list[array.LoopOp] = []
    inner: Operation = leaf
    while isinstance(outer := inner.parent_op(), array.LoopOp) and is_plain(outer):
        others = [o for o in outer.body.block.ops if o is not inner]
        if any(o.regions or isinstance(o, memref.StoreOp) for o in others):
            break
        found.append(outer)
        inner = outer
    return found


def tile(
    function: func.FuncOp, leaf: array.LoopOp, chain: Sequence[array.LoopOp], how: TileRegisters
) -> bool:
    """Tile the nest around an innermost loop, where that is exact and pays; whether it was."""
    if not adds_to_an_element(leaf):
        return False
    nest = ScalarNest(function, chain[-1], fastmath=False)
    (store,) = stores_in(leaf)
    (access,) = accesses(store)
    still = 0
    while still < len(chain) and stride(nest.dependence, access, chain[still]) == "still":
        still += 1
    if not 0 < still < len(chain):
        return False
    nest = ScalarNest(function, chain[still], fastmath=False)
    found = Tiled(nest, leaf, tuple(reversed(chain[:still])), store)
    if not found.pays() or not found.is_exact():
        return False
    if shared_by_threads(access, nest.loop, nest.dependence) or not nest.committed():
        return False
    nest.look_again()
    write_tiles(found, how.rows, how.widths, threads=how.threads)
    return True


def stores_in(leaf: array.LoopOp) -> list[memref.StoreOp]:
    return [op for op in leaf.body.block.ops if isinstance(op, memref.StoreOp)]


def adds_to_an_element(leaf: array.LoopOp) -> bool:
    """Whether all that is stored may go to where something was loaded."""
    stores = stores_in(leaf)
    loads = [op.memref for op in leaf.body.block.ops if isinstance(op, memref.LoadOp)]
    return (
        len(stores) == 1
        and stores[0].memref in loads
        and isinstance(stores[0].value.type, AnyFloat)
    )
