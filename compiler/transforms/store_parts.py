"""Store what is added, part by part, to memory that is zero, and do not fill that with zero before.

The adjoint of a slice's store adds to a slice of the shadow. Where the slices of several such stores are
together all of an array, as those of a rolled one are, each element is touched by one sum.
Runs after `store-first`, which knows sums of all points, and takes zeros where they come first.

Before::

    func.func @f(%n : index, %k : index, %v : memref<?xf64>, %w : memref<?xf64>) -> memref<?xf64> {
      %zero = arith.constant 0.0 : f64
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rest = arith.subi %n, %k : index
      %s = array.alloc(%n) : memref<?xf64>
      array.map(%n) outs(%s : memref<?xf64>) kinds ["store"] {
        array.yield %zero : f64
      }
      %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64>
          -> memref<?xf64, strided<[1]>>
      %tail = array.view %s[%k] dims [0] extents(%rest) steps(%c1) : memref<?xf64>
          -> memref<?xf64, strided<[1]>>
      array.map(%k) ins(%v : memref<?xf64>) outs(%head : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.map(%rest) ins(%w : memref<?xf64>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["add"] {
      ^bb0(%y : f64):
        array.yield %y : f64
      }
      func.return %s : memref<?xf64>
    }

After::

    func.func @f(%n : index, %k : index, %v : memref<?xf64>, %w : memref<?xf64>) -> memref<?xf64> {
      %zero = arith.constant 0.0 : f64
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %rest = arith.subi %n, %k : index
      %s = array.alloc(%n) : memref<?xf64>
      %head = array.view %s[%c0] dims [0] extents(%k) steps(%c1) : memref<?xf64>
          -> memref<?xf64, strided<[1]>>
      %tail = array.view %s[%k] dims [0] extents(%rest) steps(%c1) : memref<?xf64>
          -> memref<?xf64, strided<[1]>>
      array.map(%k) ins(%v : memref<?xf64>) outs(%head : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%x : f64):
        array.yield %x : f64
      }
      array.map(%rest) ins(%w : memref<?xf64>) outs(%tail : memref<?xf64, strided<[1]>>) kinds ["store"] {
      ^bb0(%y : f64):
        array.yield %y : f64
      }
      func.return %s : memref<?xf64>
    }

The zeros and the sums stand in one block, and nothing else between them touches the memory. Adding zero may
lose the sign of a zero, which adjoint code may.

Kept: zeros of more than the parts are together; parts that may share elements; sums whose map touches the
memory by another name.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.footprint import Footprints, Region
from ..analysis.parts import is_made_of, part_of_map
from ..analysis.views import strip_views
from ..rules.table import constant_float
from .memory_effects import functions
from .store_first import FirstTouches, Sum, Zeros, is_plain, keep_without, store_where
from .touches import Touches

MOST = 8
"""More parts than this are not looked for."""


@dataclass(frozen=True)
class StoreParts(ModulePass):
    """Replace a fill with zero, and the additions to all its parts, by stores."""

    name = "store-parts"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            changed = True
            while changed:
                changed = Parts(function).store_all()


class Parts:
    """The zeros of a function, each with the sums that together touch all of them first."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self.touched = FirstTouches(function)
        self.footprints = Footprints()

    def store_all(self) -> bool:
        """Rewrite the sums behind zeros; whether there were such."""
        changed = False
        for block in self.blocks():
            assert block is not None
            self.touches = Touches(block, self.touched.alias, self.touched.effects)
            for place in range(len(self.touches.ops)):
                while self.store_at(place):
                    changed = True
        return changed

    def blocks(self) -> Iterable[Block | None]:
        """Those in which something is added to an array that is also set to zero."""
        maps = ops_of_kind(self.function, array.MapOp)
        sums = (sum_ for op in maps for sum_ in self.touched.sums(op))
        added = {(sum_.op.parent, strip_views(sum_.out)) for sum_ in sums}
        filled = (zeros for op in maps for zeros in self.zeros_of(op))
        places = ((zeros.op.parent, strip_views(zeros.out)) for zeros in filled)
        return dict.fromkeys(block for block, base in places if (block, base) in added)

    def store_at(self, place: int) -> bool:
        """Rewrite the sums behind what a map sets to zero, if it does."""
        for zeros in self.zeros_of(self.touches.ops[place]):
            sums = self.sums_behind(zeros, place)
            if sums:
                self.put_in_place(zeros.op, keep_without(zeros))
                for sum_ in sums:
                    self.put_in_place(sum_.op, store_where(sum_, ()))
                return True
        return False

    def put_in_place(self, op: array.MapOp, made: array.MapOp | None) -> None:
        if made is not None:
            self.touches.put_in_place(op, made)

    def zeros_of(self, op: Operation) -> list[Zeros]:
        """What a map sets to zero, if it was not erased."""
        if not isinstance(op, array.MapOp) or op.parent is None:
            return []
        return [
            Zeros(op, k)
            for k, value in enumerate(op.yielded)
            if constant_float(value) == 0.0
            and is_plain(op.outs[k])
            and self.touched.zeros_of(op, op.outs[k]) is not None
        ]

    def sums_behind(self, zeros: Zeros, place: int) -> list[Sum]:
        """The sums that are the next to touch what is zero, each a part of it, if these are all the parts."""
        whole = part_of_map(self.footprints, zeros.op, zeros.out)
        if whole is None:
            return []
        sums: list[Sum] = []
        parts: list[Region] = []
        for op in self.touches.behind(place, zeros.out):
            if self.touched.touches(op, zeros.out):
                found = self.sum_of(op, zeros.out)
                part = None if found is None else part_of_map(self.footprints, found.op, found.out)
                if found is None or part is None or part.base is not whole.base:
                    return []
                sums.append(found)
                parts.append(part)
                if is_made_of(whole, parts):
                    return sums
                if len(parts) == MOST:
                    return []
        return []

    def sum_of(self, op: Operation, memory: SSAValue) -> Sum | None:
        """The output by which a map does nothing to the memory but add to some of it."""
        if not isinstance(op, array.MapOp) or op.gathers is not None:
            return None
        touching = [k for k, m in enumerate(op.outs) if not self.touched.is_apart(m, memory)]
        if len(touching) != 1 or op.out_kinds[touching[0]] != "add":
            return None
        (k,) = touching
        return Sum(op, k) if is_plain(op.outs[k]) and self.touched.only_adds(op, k) else None
