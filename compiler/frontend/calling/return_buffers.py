"""New arrays that a recursive function returns.

Memory that an activation allocates ends with it. So a new array goes through a buffer of the function that
is compiled, one for each place in the results, which every activation is handed: the callee copies its array
to the buffer where it returns, the caller at once from there into an array of its own::

    return np.concatenate([a, b])       %y = ...                             in the callee
                                        array.map %y -> %buffer[0 : %n]
                                        func.return %n

    z = halves(x)                       %r, %n = activation.call @halves_1(%x, %buffer)
                                        %z = array.alloc(%n)
                                        array.map %buffer[0 : %n] -> %z

Nobody else reads the buffer, so no value in it is ever needed after it was overwritten. An argument that is
returned on some paths is not copied: a number says which array it was, and the caller chooses.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ....dialects import array
from .. import library
from ..bindings.roots import choices, roots
from ..data import lists
from ..emitter import Emitter
from ..joins import cast, common_type
from ..values import EXTENT_MAX, INT64_MAX, IR_TYPE, Array, Scalar, Tuple
from .forms import Formless, SentForm, sent_class

if TYPE_CHECKING:
    from .activations import Activation
    from .calls import Calls

TOO_LONG = "mutad: the array that is returned is too long"
VIEW = "a view of an array that the caller has"


class Buffers:
    """The buffers of one build: growable arrays of the function that is compiled."""

    def __init__(self, main: Emitter) -> None:
        self.main = main
        self.made: dict[tuple[str, object], SSAValue] = {}

    def find(self, dtype: str, tag: object) -> SSAValue:
        if (dtype, tag) not in self.made:
            room = self.main.index(array.UNBOUNDED)
            op = lists.growable(self.main, dtype, [room])
            op.memref.name_hint = "sent"
            self.main.insert_behind(room.owner, op)
            self.made[dtype, tag] = op.memref
        return self.made[dtype, tag]


class Sender:
    """The arrays that an activation returns."""

    def __init__(self, place: Activation) -> None:
        self.place = place
        self.among: dict[object, set[int]] = {}
        """By place in the results: the arguments that some path returns there."""
        self.roots: dict[object, set[SSAValue]] = {}
        """By place in the results: the memory of this activation that is copied."""

    @property
    def e(self) -> Emitter:
        return self.place.emitter

    def send(self, value: Array, tag: object) -> Tuple:
        """What stands for an array in the results: which one it is, and its extents where it is new."""
        if not value.whole:
            found = self.place.lowering.unless_rebound(value.memref, ())
            value = Array(found, value.dtype)
        itself, others = self.sources(value)
        self.among.setdefault(tag, set()).update(itself)
        which: int | SSAValue = min(itself, default=-1) + 1
        if (others and itself) or len(itself) > 1:
            which = self.number(value.memref)
        cls = sent_class(value.dtype, value.rank, tag)
        if not others:
            return Tuple((self.shown(which), *[self.shown(0)] * value.rank), cls)
        mine = {r for source in others for r in roots(self.e, source)}
        if not all(isinstance(r.owner, array.AllocOp) for r in mine):
            raise Formless(VIEW)
        self.roots.setdefault(tag, set()).update(mine)
        buffer = self.place.handed(self.place.lowering.registry.buffers.find(value.dtype, tag))
        extents = self.copied(value, buffer, which)
        sizes = [Scalar("py_int", n, None, 0, EXTENT_MAX) for n in extents]
        return Tuple((self.shown(which), *sizes), cls)

    def sources(self, value: Array) -> tuple[set[int], list[SSAValue]]:
        """The arguments that the value may be, by number, and what else it may be."""
        numbers = {a: k for k, a in enumerate(self.place.own_arrays())}
        found = choices(value.memref)
        if value.whole:
            return set(), found
        itself = {numbers[s] for s in found if s in numbers}
        return itself, [s for s in found if s not in numbers]

    def shown(self, which: int | SSAValue) -> Scalar:
        if isinstance(which, int):
            return self.e.constant(which, "py_int")
        return Scalar("py_int", self.e.load(which), None, 0, INT64_MAX)

    def number(self, value: SSAValue) -> int | SSAValue:
        """Which argument the array is, counted from 1; 0 for none; a cell where the path decides."""
        numbers = {a: k for k, a in enumerate(self.place.own_arrays())}
        owner = value.owner
        match owner:
            case memref.CastOp():
                return self.number(owner.source)
            case scf.IfOp():
                at = list(owner.results).index(value)  # pyright: ignore
                return self.after_branch(owner, at)
            case array.LoopOp() if any(c in numbers for c in choices(value)):
                raise Formless("an array that a loop chooses among its arguments")
            case _:
                return numbers.get(value, -1) + 1

    def after_branch(self, op: scf.IfOp, at: int) -> int | SSAValue:
        lasts = [region.block.last_op for region in op.regions]
        ends = [self.number(last.operands[at]) for last in lasts if last is not None]
        if ends[0] == ends[1] and isinstance(ends[0], int):
            return ends[0]
        cell = self.e.cell(IndexType(), "which")
        for last, end in zip(lasts, ends, strict=True):
            assert last is not None
            if isinstance(end, int):
                put(last, memref.StoreOp.get(self.e.index(end), cell, []))
            else:
                load = memref.LoadOp.get(end, [])
                put(last, load)
                put(last, memref.StoreOp.get(load.res, cell, []))
        return cell

    def copied(self, value: Array, buffer: SSAValue, which: int | SSAValue) -> Sequence[SSAValue]:
        """Copy the array to the buffer, where it is none of the arguments; its extents."""
        extents = self.e.extents(value.memref)
        if isinstance(which, int):
            copy_elements(self.e, value, buffer, to_buffer=True)
            return extents
        new = self.e.emit(arith.CmpiOp(self.e.load(which), self.e.index(0), "eq"))
        block = Block()
        with self.e.at(block):
            copy_elements(self.e, value, buffer, to_buffer=True)
            self.e.insert(scf.YieldOp())
        self.e.insert(scf.IfOp(new, [], Region(block), Region()))
        zero = self.e.index(0)
        return [self.e.emit(arith.SelectOp(new, n, zero)) for n in extents]

    def check(self) -> None:
        """No two new arrays that are returned may share memory: the caller would get two."""
        seen: set[SSAValue] = set()
        for mine in self.roots.values():
            if mine & seen:
                raise Formless("arrays that share memory, in two places")
            seen |= mine

    def form(self, value: Tuple, cls: type) -> SentForm:
        tag = cls.tag  # pyright: ignore
        which = value.items[0]
        assert isinstance(which, Scalar)
        among = frozenset(self.among[tag])
        if which.low == which.high and which.low > 0:
            among = frozenset({which.low - 1})
        if which.low == which.high == 0:
            among = frozenset[int]()
        return SentForm(cls.dtype, cls.rank, tag, which.low == 0, among)  # pyright: ignore


def put(before: Operation, op: Operation) -> None:
    op.location = before.location
    block = before.parent
    assert block is not None
    block.insert_op_before(op, before)


def copy_elements(e: Emitter, value: Array, buffer: SSAValue, *, to_buffer: bool) -> None:
    """Copy a compact array to the start of the buffer, or from there."""
    zero, one = e.index(0), e.index(1)
    if value.rank == 0:
        ends = (value.memref, []), (buffer, [zero])
        source, target = ends if to_buffer else reversed(ends)
        e.insert(memref.StoreOp.get(e.emit(memref.LoadOp.get(*source)), *target))
        return
    flat = value if value.rank == 1 else library.call(e, np.ravel, [value], {})
    assert isinstance(flat, Array)
    (n,) = e.extents(flat.memref)
    if to_buffer:
        full = e.emit(arith.CmpiOp(n, e.index(array.UNBOUNDED), "ugt"))
        e.put(array.RaiseIfOp(full, "MemoryError", TOO_LONG))
    view = e.emit(array.ViewOp(buffer, [zero], [0], [n], [one]))
    if to_buffer:
        lists.copy(e, flat, view)
    else:
        lists.copy(e, Array(view, value.dtype), flat.memref)


def receive(
    lowering: Calls, form: SentForm, parts: Iterator[SSAValue], arguments: Sequence[Array]
) -> Array:
    """The array that a call returns; `arguments` are those of the call."""
    e = lowering.e
    which = next(parts) if form.has_choice else None
    found = [(k + 1, arguments[k].memref) for k in sorted(form.among)]
    if form.fresh:
        extents = [next(parts) for _ in range(form.rank)]
        type_ = MemRefType(IR_TYPE[form.dtype], [DYNAMIC_INDEX] * form.rank)
        made = Array(e.emit(array.AllocOp(extents, type_.element_type)), form.dtype)
        buffer = lowering.registry.buffers.find(form.dtype, form.tag)
        if lowering.place is not None:
            buffer = lowering.place.handed(buffer)
        copy_elements(e, made, buffer, to_buffer=False)
        found.append((0, made.memref))
    if which is None:
        return Array(found[0][1], form.dtype)
    type_ = reduce(common_type, (memref_type(m) for _, m in found))
    return Array(chosen(e, which, found, type_), form.dtype)


def chosen(
    e: Emitter,
    which: SSAValue,
    found: Sequence[tuple[int, SSAValue]],
    type_: MemRefType[Attribute],
) -> SSAValue:
    """The one of some arrays that has this number."""
    (number, first), *others = found
    if not others:
        return cast(e, first, type_)
    test = e.emit(arith.CmpiOp(which, e.index(number), "eq"))
    blocks = Block(), Block()
    with e.at(blocks[0]):
        e.insert(scf.YieldOp(cast(e, first, type_)))
    with e.at(blocks[1]):
        e.insert(scf.YieldOp(chosen(e, which, others, type_)))
    return e.emit(scf.IfOp(test, [type_], Region(blocks[0]), Region(blocks[1])))


def memref_type(value: SSAValue) -> MemRefType[Attribute]:
    assert isinstance(value.type, MemRefType)
    return value.type
