"""Array variables of loops: permuted ones are carried, others live in buffers.

    for _ in range(n):              %buffer = array.alloc(...)           and a copy of %u
        u = step(u)                 array.loop ... {
                                      ...                                reads %buffer
                                      array.map ... ins(%new) outs(%buffer) }

See Note [Rebinding by copy].
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from typing import NoReturn

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ....dialects import array
from ...analysis.views import strip_casts
from ...diagnostics import CompileError
from ..consumers import Consumers
from ..emitter import Emitter
from ..facts import Facts, Key
from ..joins import (
    ArrayT,
    ChoiceT,
    FixedT,
    ListT,
    MaybeT,
    RowT,
    ScalarT,
    Template,
    TupleT,
    cast,
    common_type,
)
from . import copy_on_rebind, resizing
from .deferred_allocs import LateBuffers, Unshaped, agrees, refuse_other_shape
from .descriptors import Described, either
from .pooling import Pool
from .roots import choices, is_fresh_in, is_placeholder, is_root, roots


@dataclass
class Variable:
    """A name that lives across the iterations of one loop."""

    name: str
    key: Key
    known: Template
    """Its form before the loop, joined with what an earlier build has learnt."""
    template: Template
    """Its form around the loop."""
    places: list[Place]


@dataclass
class Place:
    """Where one leaf of a variable is kept: in a cell, carried by the loop, in a buffer, in numbers, or in
    a pool."""

    kind: str
    ssa: SSAValue
    number: int = -1
    initial: SSAValue | None = None
    leaf: int = 0
    described: Described | None = None
    moved: SSAValue | None = None
    """Of a buffer: the cell that says whether the array is there, or still the one before the loop."""
    now: SSAValue | None = None
    """With `moved` or `sizes`: the array as the current iteration finds it."""
    sizes: list[SSAValue] = field(default_factory=list[SSAValue])
    """Of an array that changes its shape: the cells of its extents."""
    own: list[Operation] = field(default_factory=list[Operation])
    """Of a buffer: the copy of what the array was before the loop; with `sizes` that of what it is after."""
    there: SSAValue | None = None
    """Of a name that may be None or unbound: whether an iteration leaves it an array."""
    end: SSAValue | None = None
    """The array that an iteration leaves."""
    pool: Pool | None = None
    which: SSAValue | None = None
    """Of a pool: which of its arrays the current iteration finds."""


class Rebindings(Consumers):
    """Keeps the arrays of a loop's variables from one iteration to the next."""

    def __init__(self, emitter: Emitter, facts: Facts) -> None:
        super().__init__(emitter, facts)
        self.buffers = LateBuffers(emitter)
        self.pool_copies = list[Operation]()
        self.not_kept: dict[CompileError, tuple[str, ...]] = {}
        """The names that an error refuses, for what a loop rebinds them to."""

    def place_in_buffer(self, leaf: SSAValue, name: str, *, stays: bool) -> Place:
        """A buffer for an array: with what it holds before the loop, if it is bound there. With `stays`
        the name stays the array before the loop until it is rebound."""
        assert isinstance(leaf.type, MemRefType)
        if is_placeholder(strip_casts(leaf)):
            return Place("buffer", self.buffers.make(leaf.type, name))
        if stays:
            own = self.e.emit(array.AllocOp(self.e.extents(leaf), leaf.type.element_type), name)
            return Place("buffer", own, initial=leaf, moved=copy_on_rebind.moved_cell(self.e, name))
        if self.buffers.is_free(strip_casts(leaf), name):
            return Place("buffer", strip_casts(leaf))
        return self.buffer(leaf, name)

    def buffer(self, initial: SSAValue, name: str) -> Place:
        """A buffer that holds a copy of `initial`."""
        assert isinstance(initial.type, MemRefType)
        fresh = self.e.emit(array.AllocOp(self.e.extents(initial), initial.type.element_type), name)
        return Place("buffer", fresh, initial=initial, own=[self.copy(initial, fresh)])

    def copy(self, source: SSAValue, target: SSAValue) -> Operation:
        """Copy an array into another of the same shape."""
        assert isinstance(source.type, MemRefType)
        block = Block(arg_types=[source.type.element_type])
        with self.e.at(block):
            self.e.insert(array.YieldOp([block.args[0]]))
        return self.e.insert(
            array.MapOp(self.e.extents(target), [source], [target], ["store"], block)
        )

    def copy_back(
        self, copies: list[tuple[Variable, Place, SSAValue]]
    ) -> dict[SSAValue, tuple[Operation, list[Operation]]]:
        """Copy each variable's new array into its buffer, a buffer that is read before it is written."""
        copies = [(v, place, self.taken_out(place, leaf, copies)) for v, place, leaf in copies]
        buffers = {place.ssa for _, place, _ in copies}
        done = dict[SSAValue, tuple[Operation, list[Operation]]]()
        sources = {place.ssa: roots(self.e, leaf) for _, place, leaf in copies}
        self.check_copies(copies, sources, buffers)
        self.learn_shapes(copies)
        waiting = [c for c in copies if not self.is_there(*c)]
        while waiting:
            ready = [
                c
                for c in waiting
                if not any(c[1].ssa in sources[other[1].ssa] for other in waiting if other is not c)
            ]
            if not ready:
                error = self.refusal(
                    None,
                    f"the arrays {', '.join(f'`{v.name}`' for v, _, _ in waiting)} change places in a way"
                    " that is not the same in each iteration",
                    "swap all of them in each iteration, or copy the contents: a[...] = b",
                )
                self.not_kept[error] = tuple(v.name for v, _, _ in waiting)
                raise error
            for variable, place, leaf in ready:
                done[place.ssa] = self.copy_one(variable, place, leaf)
            waiting = [c for c in waiting if c[1].ssa not in done]
        for _, place, _ in copies:
            if place.ssa not in done and place.initial is not None and place.moved is None:
                done[place.ssa] = place.own[0], []
        return done

    def taken_out(
        self, place: Place, leaf: SSAValue, copies: Sequence[tuple[Variable, Place, SSAValue]]
    ) -> SSAValue:
        """A part of the variable's own buffer, copied, where no other variable has any of it."""
        own = place.moved is None and place.ssa in roots(self.e, leaf)
        if not own or self.same_array(leaf, place):
            return leaf
        if any(place.ssa in roots(self.e, one) for _, other, one in copies if other is not place):
            return leaf
        assert isinstance(leaf.type, MemRefType)
        part = self.e.emit(array.AllocOp(self.e.extents(leaf), leaf.type.element_type))
        self.copy(leaf, part)
        return part

    def learn_shapes(self, copies: Sequence[tuple[Variable, Place, SSAValue]]) -> None:
        """Find the arrays of which the loop changes the shape."""
        kept = [c for c in copies if c[1].initial is not None and roots(self.e, c[1].initial)]
        extents = [self.e.extents(place.now or place.ssa) for _, place, _ in kept]
        for (variable, place, leaf), wanted in zip(kept, extents, strict=True):
            if not place.sizes and resizing.resizes(self, leaf, wanted, extents):
                self.facts.resize(variable.key, place.leaf)

    def is_there(self, variable: Variable, place: Place, leaf: SSAValue) -> bool:
        if place.now is not None:
            return uncast(leaf) is place.now
        return uncast(leaf) is place.ssa or self.arrived(variable, place, leaf)

    def arrived(self, variable: Variable, place: Place, leaf: SSAValue) -> bool:
        """Give a buffer that was made for the loop its shape; True when the array is in it already."""
        if place.initial is not None:
            return False
        try:
            self.buffers.shape(place.ssa, leaf)
        except Unshaped:
            self.facts.resize(variable.key, place.leaf)
            return False
        wanted = self.e.extents(place.ssa)
        if not all(agrees(self.e, shape, wanted) for shape in resizing.shapes_of(self, leaf)):
            self.facts.resize(variable.key, place.leaf)
            return False
        return self.buffers.absorb(leaf, place.ssa, variable.name)

    def copy_one(
        self, variable: Variable, place: Place, leaf: SSAValue
    ) -> tuple[Operation, list[Operation]]:
        if place.moved is not None:
            copied = self.arrive(variable, place, leaf)
            return copied[0], copied
        found = list[Operation]()
        if place.sizes:
            where(self.e, place.there, lambda: found.append(resizing.keep(self, place, leaf)))
            return place.own[0], found

        def keep() -> None:
            extents = self.e.extents(leaf), self.e.extents(place.ssa)
            refuse_other_shape(self.e, *extents, variable.name)
            found.append(self.copy(leaf, place.ssa))

        where(self.e, place.there, keep)
        return (place.own or found)[0], found

    def arrive(self, variable: Variable, place: Place, leaf: SSAValue) -> list[Operation]:
        try:
            return copy_on_rebind.arrive(self, place, leaf, variable.name)
        except copy_on_rebind.Undecided:
            self.refuse_rebinding(
                variable.name, "an array of another name, and changed in place as well"
            )

    def check_copies(
        self,
        copies: list[tuple[Variable, Place, SSAValue]],
        sources: dict[SSAValue, frozenset[SSAValue]],
        buffers: set[SSAValue],
    ) -> None:
        """Each new array is fresh in this iteration or another's buffer, and no two share memory."""
        seen = set[SSAValue]()
        for variable, place, leaf in copies:
            for root in sources[place.ssa]:
                own = root is place.ssa
                if isinstance(uncast(leaf).owner, array.LoopOp):
                    error = self.refusal(
                        None,
                        f"`{variable.name}` changes places with another array in a loop inside of this one",
                        "swap in a loop that is in no other, or copy the contents: a[...] = b",
                    )
                    self.not_kept[error] = (variable.name,)
                    raise error
                if own and not self.same_array(leaf, place):
                    self.refuse_rebinding(variable.name, "a view of its own array")
                if root in seen and root in buffers:
                    what = "the array of another variable, in some iterations only"
                    self.refuse_rebinding(variable.name, what)
                if root in seen and (place.moved is None or is_fresh_in(root, self.e.block)):
                    self.refuse_rebinding(variable.name, "an array that has another name too")
                if (
                    place.moved is None
                    and not own
                    and root not in buffers
                    and not is_fresh_in(root, self.e.block)
                ):
                    self.refuse_rebinding(variable.name, "an array that was made before the loop")
            seen |= sources[place.ssa]

    def same_array(self, leaf: SSAValue, place: Place) -> bool:
        """True when `leaf` is either the very array of a buffer or memory apart from it."""
        if leaf is (place.now if place.sizes else place.ssa):
            return True
        owner = leaf.owner
        if isinstance(owner, memref.CastOp):
            return self.same_array(owner.source, place)
        if isinstance(owner, scf.IfOp):
            number = list(owner.results).index(leaf)  # pyright: ignore
            lasts = [region.block.last_op for region in owner.regions]
            return all(
                last is not None and self.same_array(last.operands[number], place) for last in lasts
            )
        return place.ssa not in roots(self.e, leaf)

    def is_new_array(self, leaf: SSAValue, buffer: SSAValue, block: Block) -> bool:
        """True when `leaf`, at the end of an iteration, was made in it, whatever happened."""
        kept = {buffer, *(self.e.now(r.buffer) for r in self.rebindings)}
        return all(is_fresh_in(r, block) and r not in kept for r in roots(self.e, leaf))

    def unless_rebound(self, value: SSAValue, others: Collection[SSAValue]) -> SSAValue:
        """The array that the name of a buffer stands for: the one before the loop, where that did not run.

        For the end of the function, which may return it: only where somebody can tell them apart, since
        the array before the loop is an argument or one of `others`, which are returned as well. Not of a
        view: who has its base then depends on the run.
        """
        owner = value.owner
        if isinstance(owner, array.AnyView | memref.CastOp):
            source = self.unless_rebound(owner.source, others)
            if source is owner.source:
                return value
            if isinstance(owner, memref.CastOp):
                return source
            return self.e.emit(owner.of(source, lambda number: number), value.name_hint)
        for r in self.rebindings:
            if (
                (r.after or r.buffer) is not value
                or r.trips is None
                or not self.is_at_hand(r.trips)
            ):
                continue
            initial = self.unless_rebound(r.initial, others)
            found = choices(initial)
            named = any(isinstance(root, BlockArgument) or root in others for root in found)
            if named and all(map(is_root, found)):
                return self.either_array(r.trips, initial, value)
        return value

    def is_at_hand(self, value: SSAValue) -> bool:
        return isinstance(value.owner, Operation) and value.owner.parent is self.e.block

    def either_array(self, trips: SSAValue, initial: SSAValue, rebound: SSAValue) -> SSAValue:
        """The array before a loop where it made no trips, else the one that its last trip left."""
        assert isinstance(initial.type, MemRefType)
        assert isinstance(rebound.type, MemRefType)
        type_ = common_type(initial.type, rebound.type)
        never = self.e.emit(arith.CmpiOp(trips, self.e.index(0), "eq"))
        pair = [cast(self.e, a, type_) for a in (initial, rebound)]
        return either(self.e, never, lambda: pair[:1], lambda: pair[1:])[0]

    def refuse_rebinding(self, name: str, what: str) -> NoReturn:
        raise self.refused_rebinding(name, what)

    def refused_rebinding(self, name: str, what: str, way_out: str = "") -> CompileError:
        way_out = way_out or f"change the array in place: {name}[...] = ..., or bind a copy"
        error = self.refusal(None, f"in this loop `{name}` is rebound to {what}", way_out)
        self.not_kept[error] = (name,)
        return error


def where(e: Emitter, condition: SSAValue | None, emit: Callable[[], None]) -> None:
    """Emit code that runs where the condition holds; always, where there is none."""
    known = True if condition is None else array.constant_value(condition)
    if condition is None or known is not None:
        if known:
            emit()
        return
    block = Block()
    with e.at(block):
        emit()
        e.insert(scf.YieldOp())
    e.insert(scf.IfOp(condition, [], Region(block), Region()))


def uncast(value: SSAValue) -> SSAValue:
    """The array under its first type. (All that a loop permutes get one type, in the next build.)"""
    owner = value.owner
    return uncast(owner.source) if isinstance(owner, memref.CastOp) else value


def only_layout_of_kept(variable: Variable, template: Template) -> bool:
    """True when all that the new template forgets is the layout of arrays that are copied anyway, or
    kept in numbers."""
    own = {k for k, p in enumerate(variable.places) if p.kind in ("buffer", "described", "pooled")}
    return without_layouts(template, own) == without_layouts(variable.template, own)


def without_layouts(template: Template, leaves: Collection[int]) -> Template:
    """The template with nothing known of the extents and strides of the arrays at `leaves`."""
    numbers = count()

    def visit(t: Template) -> Template:
        match t:
            case TupleT(items):
                return replace(t, items=tuple(visit(item) for item in items))
            case MaybeT(inner):
                t = MaybeT(visit(inner))
                next(numbers)
                return t
            case FixedT():
                return t
            case ChoiceT(options):
                next(numbers)
                return ChoiceT(tuple(visit(option) for option in options))
            case ArrayT(type_, dtype) if next(numbers) in leaves:
                rank = type_.get_num_dims()
                return ArrayT(
                    array.strided(type_.element_type, [DYNAMIC_INDEX] * rank, [None] * rank), dtype
                )
            case ScalarT() | RowT():
                next(numbers)
                return t
            case _:
                return t

    return visit(template)


def retyped(template: Template, leaves: Iterator[SSAValue]) -> Template:
    """The template with the array types that the leaves have."""
    match template:
        case TupleT(items):
            return replace(template, items=tuple(retyped(item, leaves) for item in items))
        case MaybeT(inner):
            inner = retyped(inner, leaves)
            next(leaves)
            return MaybeT(inner)
        case ArrayT(_, dtype):
            type_ = next(leaves).type
            assert isinstance(type_, MemRefType)
            return ArrayT(type_, dtype)
        case ScalarT() | RowT():
            next(leaves)
            return template
        case ChoiceT(options):
            next(leaves)
            return ChoiceT(tuple(retyped(option, leaves) for option in options))
        case FixedT() | ListT():
            return template


# Note [Rebinding by copy]
#
# `u = step(u)` in a loop binds a fresh array each time. Its memory belongs to the iteration, so the
# new array is copied into a buffer that was made before the loop, and `u` is that buffer. Nobody can
# tell, provided that
#   - the new array is fresh in this iteration and has no other name that outlives it, and
#   - the buffer is never written but by these copies, and neither is the array that `u` was before
#     the loop: then no write shows, or fails to show, through the wrong one of the two; or else that
#     initial array is a local one that is never looked at again.
# Where iterations change the shape, the buffer has room for any (`resizing`). Where one only happens to have
# another shape, NotImplementedError is raised at run time.
