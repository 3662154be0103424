"""Read an array where it was copied from, while that stays as it is.

`un = u.copy()` saves what a step is about to overwrite. Where the step stores elsewhere (`step-on-tape`), or
where the adjoint has the old contents on the tape, `un` is one more array that holds what another does.

Before::

    func.func @f(%u : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      %un = array.alloc(%n) : memref<?xf64>
      array.map(%n) ins(%u : memref<?xf64>) outs(%un : memref<?xf64>) kinds ["store"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      array.map(%n) ins(%un : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      func.return
    }

After::

    func.func @f(%u : memref<?xf64>, %y : memref<?xf64>, %n : index) {
      array.map(%n) ins(%u : memref<?xf64>) outs(%y : memref<?xf64>) kinds ["add"] {
      ^bb0(%e : f64):
        array.yield %e : f64
      }
      func.return
    }

Legality: the copy is the only store to the array, and up to its last use nothing stores to what was copied.
What is read is asked of the dependence analysis, element by element: another row of the same tape is another
memory. Rows of the copy may be longer. Kept: copies of columns and of tiles, which are copied to lie closer;
arrays that are handed to calls or products, carried by loops, or leave the function.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType, ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ...dialects.within import ops_of_kind
from ..analysis.alias import AliasAnalysis
from ..analysis.dependence import Dependence
from ..rules import Access, accesses, rule_of
from .exchange_arrays import is_copy
from .memory_effects import functions
from .saved_steps import USING, ancestor, is_one, is_zero, namings, rename, writes


@dataclass(frozen=True)
class ReadOriginals(ModulePass):
    """Read what was copied, where the copy still says the same."""

    name = "read-originals"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            originals = Originals(function)
            for made in list(ops_of_kind(function, array.AllocOp)):
                copy = only_copy(made)
                if copy is not None and originals.stay(made, copy):
                    read_original(made, copy)


def only_copy(made: array.AllocOp) -> array.MapOp | None:
    """The copy that fills an array beside it, where all else reads it, afterwards and by its own name."""
    if {array.GROWABLE, array.STACK, array.CLEARED} & made.attributes.keys():
        return None
    users = list(namings(made.memref))
    stores = [op for op, name in users if not isinstance(op, USING) or writes(op, name)]
    if len(stores) != 1:
        return None
    (copy,) = stores
    if not isinstance(copy, array.MapOp) or copy.parent is not made.parent or not is_copy(copy):
        return None
    (filled,), (original,) = copy.outs, copy.ins
    if not is_all_there_is(filled, made) or not (
        lies_well(original) if filled is made.memref else lies_alike(original, filled)
    ):
        return None
    for op, _ in users:
        at = ancestor(op, made.parent)
        if op is not copy and (at is None or not copy.is_before_in_block(at)):
            return None
    return copy


def is_all_there_is(filled: SSAValue, made: array.AllocOp) -> bool:
    """Whether nothing goes to the array but by this name."""
    if filled is made.memref:
        return True
    view = filled.owner
    named = isinstance(view, array.ViewOp) and view.source is made.memref
    return named and all(use.operation is view for use in made.memref.uses)


def lies_alike(original: SSAValue, copy: SSAValue) -> bool:
    """Whether elements of the original are as close as those of the copy, in rows that may be shorter."""
    assert isinstance(original.type, MemRefType)
    assert isinstance(copy.type, MemRefType)
    one, other = array.strides_of(original.type), array.strides_of(copy.type)
    return any(a == b == 1 for a, b in zip(one, other, strict=True))


def lies_well(original: SSAValue) -> bool:
    """Whether an array is all of one, or of its last axes."""
    assert isinstance(original.type, MemRefType)
    if array.strides_of(original.type)[-1:] != (1,):
        return False
    view = original.owner
    if not isinstance(view, array.ViewOp):
        return True
    first = len(view.offsets) - len(view.source_dims)
    last = view.source_dims == tuple(range(first, len(view.offsets)))
    return last and all(map(is_one, view.steps)) and all(map(is_zero, view.offsets[first:]))


@dataclass
class Originals:
    """What happens to arrays of a function that were copied."""

    function: func.FuncOp

    @cached_property
    def dependence(self) -> Dependence:
        return Dependence(self.function, AliasAnalysis(self.function))

    def stay(self, made: array.AllocOp, copy: array.MapOp) -> bool:
        """Whether nothing stores to what was copied up to the last use of the copy."""
        used = {ancestor(op, made.parent) for op, _ in namings(made.memref)} - {copy}
        read = Access(copy, copy.ins[0], "read")
        at = copy.next_op
        while at is not None and used:
            if not all(self.leaves(op, read) for op in at.walk()):
                return False
            used.discard(at)
            at = at.next_op
        return True

    def leaves(self, op: Operation, read: Access) -> bool:
        if rule_of(type(op)).opaque:
            return False
        return not any(
            self.dependence.alias.may_alias(found.memref, read.memref)
            and self.dependence.may_meet(read, found, None)
            for found in accesses(op)
            if found.kind == "write"
        )


def read_original(made: array.AllocOp, copy: array.MapOp) -> None:
    """Give the names of the array to what it is a copy of."""
    after, original, filled = copy.next_op, copy.ins[0], copy.outs[0]
    Rewriter.erase_op(copy)
    names = [*reversed(rename(filled, original, after))]
    if isinstance(filled.owner, array.ViewOp):
        names.append(filled.owner)
    for op in (*names, made):
        Rewriter.erase_op(op)
