"""Lists that a function which calls itself is handed: the lists of the functions around and of its caller.

A list is told apart by its key, so the function is lowered for this list; the buffers and the cell of the
length are further arguments. How far such a list grows nobody knows where it is made: it stays growable.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from xdsl.ir import Operation

from ..joins import ListT, RowT
from .lists import ListKey, ListObject, holds_arrays, leaves_of, ready

if TYPE_CHECKING:
    from ..calling.activations import Activation

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
        kept = [] if known.item is None else leaves_of(known.item)
        if not known.is_heap and (
            holds_arrays(known)
            or any(isinstance(leaf, RowT) for leaf in kept)
            or isinstance(known.item, ListT)
            or known.moved is not None
        ):
            raise site.lowering.refusal(
                site.node,
                f"{site.name}() calls itself, and reads a list of arrays or of lists",
                "keep the numbers in an array of one more axis",
            )
        known.passed = known.changed = True
        known.display = None
        known.iterated += 1  # so that it moves into no other list
        self.foreign.add(key)
        self[key] = made = self.handed(known)
        return made

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
