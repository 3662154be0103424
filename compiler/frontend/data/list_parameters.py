"""Lists that a recursive function is handed: the lists of the functions around and of its caller.

A list is told apart by its key, so the function is lowered for this list; the buffers and the cell of the
length are further arguments. So are the columns of objects that are known by their places (`heaps`), and what
keeps their arrays and lists. How far such a list grows is unknown where it is made: it stays growable.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation

from ..joins import ListT, RowT, Template, TupleT
from .lists import ListKey, ListObject, holds_arrays, leaves_of, ready
from .pools import Pool

if TYPE_CHECKING:
    from ..calling.activations import Activation
    from ..emitter import Emitter

ELSEWHERE = (-1, "")
"""The name that such a list has in another function."""


class HandedLists(dict[ListKey, ListObject]):
    """The lists of an activation: its own, and those of `outer` that it asks for."""

    def __init__(self, place: Activation, outer: dict[ListKey, ListObject]) -> None:
        super().__init__()
        self.place, self.outer = place, outer
        self.foreign = set[ListKey]()
        """Those that are not its own."""

    def __missing__(self, key: ListKey) -> ListObject:
        outer, emitter = self.outer, self.place.site.lowering.registry.buffers.main
        while isinstance(outer, HandedLists) and not outer.owns(key):
            outer = outer.outer
        known = dict[ListKey, ListObject].get(outer, key)
        if known is None:
            raise KeyError(key)
        site = self.place.site
        if isinstance(outer, HandedLists):
            emitter = outer.place.emitter
        ready(emitter, known)
        if not self.can_be_handed(known):
            raise site.lowering.refusal(
                site.node,
                f"{site.name}() is recursive, and reads a list of arrays or of lists",
                "keep the numbers in an array of one more axis",
            )
        known.passed = known.changed = True
        known.display = None
        known.iterated += 1  # so that it moves into no other list
        self.foreign.add(key)
        self[key] = made = self.handed(known)
        if made.is_heap or self.is_of_heap(made):
            self.hand_over_parts(known, made, emitter)
        if made.item is not None:
            made.item = self.with_stores(made.item)
        return made

    def can_be_handed(self, known: ListObject) -> bool:
        """True for lists of numbers and of objects in heaps, and for what keeps the arrays and lists of such
        objects: those have lengths and shapes of their own, from the next build on."""
        if known.is_heap:
            return True
        kept = [] if known.item is None else leaves_of(known.item)
        facts = self.place.site.lowering.facts
        if self.is_of_heap(known):
            from ..calling.recursion import Again

            found = facts.ragged if isinstance(known.item, ListT) else facts.uneven
            if holds_arrays(known) and known.key not in found:
                found.add(known.key)
                raise Again
            return True
        elsewhere = any(isinstance(leaf, RowT) and not leaf.store.is_heap for leaf in kept)
        return not (holds_arrays(known) or elsewhere or known.moved is not None)

    def is_of_heap(self, known: ListObject) -> bool:
        """True for what keeps the arrays or lists of objects in a heap."""
        heaps = self.place.site.lowering.facts.heaps.values()
        return known.keeps is not None and known.keeps[0][0] in heaps

    def hand_over_parts(self, known: ListObject, made: ListObject, outer: Emitter) -> None:
        """Hand over what lists and arrays of several lengths and shapes are in."""
        from .nested_lists import end_of, pools_of

        handed = self.place.handed
        made.ragged, made.uneven = known.ragged, known.uneven
        if known.ragged:
            made.pools = [handed(pool) for pool in pools_of(outer, known)]
            made.pool_end = handed(end_of(outer, known))
        for buffer, pool in known.own_shapes.items():
            extents = tuple(handed(n) for n in pool.extents)
            made.own_shapes[handed(buffer)] = Pool(handed(pool.memory), extents)

    def with_stores(self, form: Template) -> Template:
        """The form of items, stores as they are handed over."""
        match form:
            case RowT(store):
                return replace(form, store=self[store.key])
            case TupleT(items):
                return replace(form, items=tuple(map(self.with_stores, items)))
            case ListT(item) if item is not None:
                return ListT(self.with_stores(item))
            case _:
                return form

    def owns(self, key: ListKey) -> bool:
        return dict.__contains__(self, key) and key not in self.foreign

    def get(self, key: ListKey, default: Any = None) -> Any:
        try:
            return self[key]
        except KeyError:
            return default

    def handed(self, known: ListObject) -> ListObject:
        entry, emitter = self.place.entry, self.place.emitter
        with emitter.at(entry):
            start = emitter.constant(0, "py_float").ssa.owner
        assert isinstance(start, Operation)
        made = ListObject(known.key, entry, entry, start, self.place.handed(known.length))
        made.item = known.item
        made.buffers = [self.place.handed(b) for b in known.buffers]
        made.origin, made.iterated = known.origin, 1
        made.is_heap, made.cls, made.keeps = known.is_heap, known.cls, known.keeps
        made.names.add(ELSEWHERE)
        made.passed = made.read_untyped = True
        return made


def note_changes(lists: Iterable[ListObject]) -> None:
    """A call may have changed the lists that are handed to it."""
    for one in lists:
        if one.passed:
            one.touched += 1
            one.display = None
