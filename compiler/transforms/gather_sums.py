"""Give each sum that a nest of loops adds up a nest of its own, in which its elements stay in registers.

An adjoint adds to what the program read: to elements that other iterations add to as well, far apart in
time. Each addition loads an element and stores it. But these additions may come in any order. So the loops
over the elements go outside, those over the terms of one element inside, and a tile of elements is in
registers from its first term to the last one.

Before::

    func.func @f(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %l : index) {
      %trips = array.loop %i to %n do {
        %trips_1 = array.loop %k to %n do {
          %trips_2 = array.loop %j to %l do {
            %x = memref.load %a[%i, %k] : memref<?x?xf64>
            %y = memref.load %b[%i, %j] : memref<?x?xf64>
            %z = arith.mulf %x, %y {ad.adjoint} : f64
            %old = memref.load %c[%k, %j] : memref<?x?xf64>
            %sum = arith.addf %old, %z {ad.adjoint} : f64
            memref.store %sum, %c[%k, %j] : memref<?x?xf64>
            array.yield
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

In short::

    for s in blocks of 128 i:                                    # what is read for them stays in the cache
        for j in range(0, l - 7, 8):
            for k in range(0, n - 2, 3):                         # then a row that is left over
                t = [0] * 3                                      # in registers
                for i in s:
                    y = b[i, j : j + 8]
                    t = [t[d] + a[i, k + d] * y for d in range(3)]
                c[k : k + 3, j : j + 8] += t
    for i in range(n): ...                                       # as it was, from column l - l % 8 on

After, with `heights=1 widths=32 turns=1`::

    func.func @f(%c: memref<?x?xf64>, %a: memref<?x?xf64>, %b: memref<?x?xf64>, %n: index, %l: index) {
      %0 = arith.constant 0 : index
      %1 = arith.maxsi %0, %n : index
      %2 = arith.maxsi %0, %l : index
      %3 = arith.cmpi sgt, %1, %0 : index
      %4 = arith.cmpi sgt, %2, %0 : index
      %5 = arith.andi %3, %3 : i1
      %6 = arith.andi %5, %4 : i1
      %7 = arith.select %6, %1, %0 : index
      %8 = arith.select %6, %2, %0 : index
      %9 = arith.subi %8, %0 : index
      %10 = arith.constant 4 : index
      %11 = arith.floordivsi %9, %10 : index
      %12 = arith.muli %11, %10 : index
      %13 = arith.addi %0, %12 : index
      %14 = arith.constant 1 : index
      %15 = arith.maxsi %14, %14 : index
      %16 = arith.constant 128 : index
      %17 = arith.divsi %16, %15 : index
      %18 = arith.maxsi %17, %14 : index
      %19 = arith.cmpi sgt, %11, %0 : index
      %20 = arith.select %19, %7, %0 : index
      %21 = arith.subi %18, %14 : index
      %22 = arith.addi %20, %21 : index
      %23 = arith.floordivsi %22, %18 : index
      %24 = arith.floordivsi %20, %14 : index
      %25 = arith.addi %0, %24 : index
      %26 = arith.subi %20, %24 : index
      %27 = array.loop %i to %23 do {
        %28 = arith.muli %i, %18 : index
        %29 = arith.subi %20, %28 : index
        %30 = arith.minsi %29, %18 : index
        %31 = array.loop %j to %11 do {
          %32 = arith.constant 4 : index
          %33 = arith.muli %j, %32 : index
          %34 = arith.addi %0, %33 : index
          %35 = array.loop %k to %24 do {
            %36 = arith.constant 1 : index
            %37 = arith.muli %k, %36 : index
            %38 = arith.addi %0, %37 : index
            %39 = arith.constant 0.000000e+00 : f64
            %40 = vector.broadcast %39 : f64 to vector<4xf64>
            %c_1 = memref.alloca() : memref<vector<4xf64>>
            memref.store %40, %c_1[] : memref<vector<4xf64>>
            %41 = array.loop %i_1 to %30 do {
              %42 = arith.addi %28, %i_1 : index
              %x = memref.load %a[%42, %38] : memref<?x?xf64>
              %y = vector.load %b[%42, %34] : memref<?x?xf64>, vector<4xf64>
              %43 = vector.broadcast %x : f64 to vector<4xf64>
              %z = arith.mulf %43, %y {ad.adjoint} : vector<4xf64>
              %44 = memref.load %c_1[] : memref<vector<4xf64>>
              %45 = arith.addf %44, %z {ad.adjoint} : vector<4xf64>
              memref.store %45, %c_1[] : memref<vector<4xf64>>
              array.yield
            }
            %46 = memref.load %c_1[] : memref<vector<4xf64>>
            %47 = vector.load %c[%38, %34] : memref<?x?xf64>, vector<4xf64>
            %48 = arith.addf %47, %46 {ad.adjoint} : vector<4xf64>
            vector.store %48, %c[%38, %34] : memref<?x?xf64>, vector<4xf64>
            array.yield
          }
          array.yield
        }
        array.yield
      } {small}
      %49 = arith.maxsi %n, %0 : index
      %50 = arith.subi %l, %13 : index
      %51 = arith.cmpi sgt, %50, %0 : index
      %52 = arith.select %51, %49, %0 : index
      %trips = array.loop %i_2 to %52 do {
        %trips_1 = array.loop %k_1 to %n do {
          %trips_2 = array.loop %j_1 to %50 do {
            %j_2 = arith.addi %13, %j_1 : index
            %x_1 = memref.load %a[%i_2, %k_1] : memref<?x?xf64>
            %y_1 = memref.load %b[%i_2, %j_2] : memref<?x?xf64>
            %z_1 = arith.mulf %x_1, %y_1 {ad.adjoint} : f64
            %old = memref.load %c[%k_1, %j_2] : memref<?x?xf64>
            %sum = arith.addf %old, %z_1 {ad.adjoint} : f64
            memref.store %sum, %c[%k_1, %j_2] : memref<?x?xf64>
            array.yield
          }
          array.yield
        }
        array.yield
      } {small}
      func.return
    }

Where two counters are added up in a subscript, as in a convolution, an element's terms come from a window::

    for i in range(n):                      for p in range(n + m - 1):
        for a in range(m):                      for a in range(max(0, p - n + 1), min(m, p + 1)):
            x[i + a, :] += ...                      x[p, :] += ...                       # i = p - a

Where the innermost loop adds to one element, too, its vectors' lanes are sums that are added up at the end.

Kept: nests that read what they add to; sums in which one counter moves two axes of an element, or three move
one; those whose innermost loop does not go along rows, in vectors, of all that is read; loops of lengths that
differ; and nests that sum in their innermost loops as they are (`tile_registers`). All statements of a nest
go, or none. Where the innermost loop is shorter than a vector, the nest runs as it was. Runs after the passes
that make products of nests, which are faster, and before `tile_registers`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects import array
from ..analysis.alias import enclosing_loops
from ..rules import accesses
from .decided_sums import DecidedSums
from .hoist_allocs import outermost_independent
from .maps_as_loops import attempted, is_adjoint, may_be_loop
from .memory_effects import functions
from .register_tiles import BYTES
from .scalar_nests import shared_by_threads
from .sum_nests import Sum, SumNest
from .sum_tiles import Tiling, write_sums
from .tile_registers import Leaf, chain_around, innermost

HEIGHTS = 3, 1
"""As many rows share what they read; the rest goes row by row."""

TURNS = 4
"""As many sums of one row, which take turns, wait for each other no longer."""


@dataclass(frozen=True)
class GatherSums(ModulePass):
    """Reorder nests so that all additions to an element stay in a register."""

    name = "gather-sums"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""
    threads: bool = False
    """Elements are for threads."""
    heights: tuple[int, ...] = HEIGHTS
    """Of tiles, in rows: the highest first."""
    widths: tuple[int, ...] = BYTES[:1]
    """Of tiles, in bytes: the widest first."""
    turns: int = TURNS
    """Sums of one row, at most."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        sums = DecidedSums()
        for function in functions(op):
            found = innermost(function.body.block, may_be_loop)
            leaves = [x for x in found if adds(x, self.fastmath) and len(chain_around(x)) > 1]
            kept = outermost_independent(function) if self.threads and leaves else set[Operation]()
            for leaf in leaves:
                if not kept.isdisjoint(enclosing_loops(chain_around(leaf)[-1])):
                    continue
                place = leaf.location
                attempt = partial(gather, function, how=self)
                if sums.may_change(function, place) and attempted(leaf, self.fastmath, attempt):
                    sums.changed(place)


def adds(leaf: Leaf, fastmath: bool) -> bool:
    if isinstance(leaf, array.MapOp):
        found = zip(leaf.yielded, leaf.out_kinds, strict=True)
        return any(kind == "add" and (fastmath or is_adjoint(value)) for value, kind in found)
    totals = [o.value.owner for o in leaf.body.block.ops if isinstance(o, memref.StoreOp)]
    return any(
        isinstance(t, arith.AddfOp) and (fastmath or "ad.adjoint" in t.attributes) for t in totals
    )


def gather(function: func.FuncOp, leaf: array.LoopOp, how: GatherSums) -> bool:
    """Take the sums out of the nest around a loop, as large as can be; whether there were any."""
    loops = [leaf, *chain_around(leaf)][::-1]
    while len(loops) > 2:
        found = SumNest(function, loops, how.fastmath).sums()
        if found and all(map(fits, found)) and any(map(pays, found)):
            write_sums(found, Tiling(how.heights, how.widths, how.turns, how.threads))
            return True
        loops = loops[1:]
    return False


def fits(one: Sum) -> bool:
    """Whether vectors along the innermost loop lie in rows, and no other thread adds to them."""
    nest = one.nest
    (access,) = (a for a in accesses(one.store))
    if shared_by_threads(access, nest.outermost, nest.dependence):
        return False
    if any(nest.leaf in (p.loop, p.other) for p in one.places if p.other is not None):
        return False
    sign = nest.signs(one).get(nest.leaf.induction, 1)
    elements = [one.target, *one.factors.values()]
    return all(nest.way(e, sign) != "far" for e in elements)


def pays(one: Sum) -> bool:
    """Whether elements leave registers between two of their terms as it is."""
    if not one.summed or one.summed == [one.nest.leaf]:
        return False
    last = one.nest.loops[-1 - len(one.summed) : -1]
    return one.is_dot or one.rows is None or one.summed != list(last)
