"""Arrays that a loop binds first: their memory is made before the loop, in the shape they will have.

    for _ in range(n):              %rows = memref.dim %x, %c0
        r = x - y                   %r = array.alloc(%rows)
        ...                         array.loop ... {
    return r.sum()                    array.map(%rows) ins(%x, %y) outs(%r) ... }

The shape follows from the body, which has not been lowered when the memory is needed: until it is
known, loads of cells that nobody writes stand for the extents. A shape that changes from iteration to
iteration raises NotImplementedError at run time; one that cannot be computed before the loop is refused.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, Block, BlockArgument, Operation, SSAValue
from xdsl.traits import Pure

from ....dialects import array
from ...analysis.affine import equal_numbers
from ...analysis.views import strip_casts
from ..data.fields import shown
from ..emitter import Emitter
from ..library import shapes
from .descriptors import last_of, result_index
from .roots import is_inside, is_placeholder


class Unshaped(Exception):
    """The shape depends on a value of one iteration."""


class LateBuffers:
    """The memory of arrays that loops bind first."""

    def __init__(self, e: Emitter) -> None:
        self.e = e
        self._unknown: dict[SSAValue, list[SSAValue]] = {}
        self._names: dict[SSAValue, str] = {}

    def make(self, type_: MemRefType[Attribute], name: str) -> SSAValue:
        """Memory for an array of this type, the extents still to be told."""
        extents, unknown = list[SSAValue](), list[SSAValue]()
        for known in type_.get_shape():
            if known < 0:
                cell = self.e.cell(IndexType(), f"{name}_extent")
                unknown.append(self.e.load(cell))
            extents.append(self.e.index(known) if known >= 0 else unknown[-1])
        op = self.e.insert(array.AllocOp(extents, type_.element_type), name)
        self._unknown[op.memref] = unknown
        self._names[op.memref] = name
        return op.memref

    def is_free(self, value: SSAValue, name: str) -> bool:
        """True for the memory of this very variable of an outer loop, as long as nobody has read it."""
        return self._names.get(value) == name and not is_read(value)

    def shape(self, buffer: SSAValue, like: SSAValue) -> None:
        """Tell the extents: those of `like`, an array of an iteration. Unshaped where that fails."""
        unknown = self._unknown.get(buffer)
        if not unknown:
            return
        sizes = sizes_of(self.e, like, buffer)
        if sizes is None:
            return
        owner = buffer.owner
        assert isinstance(owner, array.AllocOp)
        scratch = Block()
        before = Before(self.e, owner)
        with self.e.at(scratch):
            wanted = [before.value(s) for s in sizes]
        assert owner.parent is not None
        first = next(e.owner for e in owner.extents if e in unknown)
        assert isinstance(first, Operation)
        for op in list(scratch.ops):
            op.detach()
            owner.parent.insert_op_before(op, first)
        for old, new in zip(list(owner.extents), wanted, strict=True):
            if old in unknown:
                replace_number(self.e, old, new)
        self._unknown[buffer] = []

    def absorb(self, leaf: SSAValue, buffer: SSAValue, name: str) -> bool:
        """Let the fresh arrays that `leaf` may be, made in this block, be the buffer itself.

        Only where nobody reads what the buffer held: then their contents may go there at once.
        """
        if buffer not in self._names or is_read(buffer):
            return False
        fresh = list[array.AllocOp]()
        if not only_fresh(leaf, buffer, self.e.block, fresh):
            return False
        assert isinstance(buffer.owner, array.AllocOp)
        if any(op.memref.type != buffer.type for op in fresh):
            return False
        for op in fresh:
            scratch = Block()
            with self.e.at(scratch):
                refuse_other_shape(self.e, op.extents, buffer.owner.extents, name)
            assert op.parent is not None
            for check in list(scratch.ops):
                check.detach()
                op.parent.insert_op_before(check, op)
            op.memref.replace_all_uses_with(buffer)
            self.e.became[op.memref] = buffer
            op.detach()
            op.erase()
        return True


def replace_number(e: Emitter, old: SSAValue, new: SSAValue) -> None:
    """Put a number in the place of a load that stood for it."""
    old.replace_all_uses_with(new)
    for place, known in e.dims.items():
        if known is old:
            e.dims[place] = new
    assert isinstance(old.owner, Operation)
    old.owner.detach()
    old.owner.erase()


class Before:
    """Computes numbers once more in front of an op: pure code on what is known there."""

    def __init__(self, e: Emitter, op: Operation) -> None:
        self.e = e
        self.op = op
        self._known: dict[SSAValue, SSAValue] = {}

    def value(self, value: SSAValue) -> SSAValue:
        if self.is_known(value):
            return value
        if value not in self._known:
            self._known[value] = self._again(value)
        return self._known[value]

    def is_known(self, value: SSAValue) -> bool:
        block = value.owner if isinstance(value.owner, Block) else value.owner.parent
        return block is not None and (is_inside(self.op, block) or self.is_around(block))

    def is_around(self, block: Block) -> bool:
        """True for a block around that of the op, in a loop that is still being built."""
        mine, around = self.op.parent, self.e.around
        if mine is None or mine not in around or block not in around:
            return False
        return around.index(block) <= around.index(mine)

    def _again(self, value: SSAValue) -> SSAValue:
        op = value.owner
        if isinstance(op, memref.DimOp):
            axis = array.constant_value(op.index)
            assert axis is not None
            return self.value(self.e.extents(self.array(op.source))[axis])
        if (
            not isinstance(op, Operation)
            or op.regions
            or not (op.has_trait(Pure) or op.name.startswith("arith."))
        ):
            raise Unshaped
        clone = op.clone({o: self.value(o) for o in op.operands})
        return self.e.emit(clone)

    def array(self, value: SSAValue) -> SSAValue:
        """An array known here with the extents of `value`: what a loop carries has those it starts with."""
        while not self.is_known(value):
            owner = value.owner
            if isinstance(value, BlockArgument) and value in self.e.carried:
                carried = self.e.carried[value]
                value = carried.initial[carried.arguments.index(value)]
            elif isinstance(owner, array.LoopOp):
                value = owner.carried[result_index(value) - 1]
            elif isinstance(owner, scf.IfOp):
                value = last_of(owner.regions[0].block).operands[result_index(value)]
            elif isinstance(owner, memref.CastOp):
                value = owner.source
            elif isinstance(owner, array.AnyView | array.AllocOp):
                return value
            else:
                raise Unshaped
        return value


def sizes_of(e: Emitter, value: SSAValue, buffer: SSAValue) -> list[SSAValue] | None:
    """The extents of an array; None where it is the buffer itself, or a placeholder."""
    value = strip_casts(value)
    owner = value.owner
    if value is buffer or is_placeholder(value):
        return None
    if isinstance(owner, scf.IfOp):
        k = result_index(value)
        found = (sizes_of(e, last_of(r.block).operands[k], buffer) for r in owner.regions)
        return next((f for f in found if f is not None), None)
    return list(e.extents(value))


def is_read(buffer: SSAValue) -> bool:
    """True when more than the end of a branch or iteration, or its shape, has been asked of it."""
    for use in buffer.uses:
        match use.operation:
            case scf.YieldOp() | array.YieldOp() | memref.DimOp():
                pass
            case memref.CastOp() as op if not is_read(op.dest):
                pass
            case _:
                return True
    return False


def only_fresh(value: SSAValue, buffer: SSAValue, block: Block, found: list[array.AllocOp]) -> bool:
    """True when `value`, at the end of `block`, is the buffer or an array made in the branch taken."""
    value = strip_casts(value)
    owner = value.owner
    if value is buffer or is_placeholder(value):
        return True
    if isinstance(owner, Block) or owner.parent is not block:
        return False
    if isinstance(owner, array.AllocOp):
        if owner not in found:
            found.append(owner)
        return True
    if isinstance(owner, scf.IfOp):
        k = result_index(value)
        return all(
            only_fresh(last_of(r.block).operands[k], buffer, r.block, found) for r in owner.regions
        )
    return False


def refuse_other_shape(
    e: Emitter, found: tuple[SSAValue, ...], wanted: tuple[SSAValue, ...], name: str
) -> None:
    """NotImplementedError where an array of the loop has not the shape it had before, if nothing that the
    function assumes of its arguments says that it has."""
    wrong = list[SSAValue]()
    broken = list[SSAValue]()
    for new, old in zip(found, wanted, strict=True):
        if not equal_numbers(new, old):
            differs = e.emit(arith.CmpiOp(new, old, "ne"))
            (broken if shapes.agree(e, new, old) else wrong).append(differs)
    if wrong:
        text = f"mutad: the array '{shown(name)}' has another shape after an iteration of this loop"
        e.insert(array.RaiseIfOp(shapes.either(e, wrong), "NotImplementedError", text))
    if broken:
        e.insert(array.RaiseIfOp(shapes.either(e, broken), "SystemError", shapes.BROKEN))


def agrees(e: Emitter, found: Sequence[SSAValue], wanted: Sequence[SSAValue]) -> bool:
    """True where the extents are equal, certainly or under what the function assumes of its arguments."""
    pairs = zip(found, wanted, strict=True)
    return all(equal_numbers(m, n) or shapes.agree(e, m, n) for m, n in pairs)
