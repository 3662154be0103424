"""A detector of races: what threads of a launch touch.

Two threads race where one writes an element that the other touches, unless they are of one block with a
barrier between, or both add to it atomically.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from .memory import Memref, Root, Undefined


@dataclass(frozen=True)
class Touch:
    """A thread was at an element, in a part of its kernel between barriers."""

    block: int
    thread: int
    phase: int
    atomic: bool = False

    def races(self, other: Touch) -> bool:
        if self.atomic and other.atomic:
            return False
        if self.block != other.block:
            return True
        return self.thread != other.thread and self.phase == other.phase


@dataclass
class Races:
    """What threads of one launch have touched."""

    written: dict[tuple[Root, int], set[Touch]] = field(
        default_factory=dict[tuple[Root, int], set[Touch]]
    )
    read: dict[tuple[Root, int], set[Touch]] = field(
        default_factory=dict[tuple[Root, int], set[Touch]]
    )

    def look(self, root: Root, place: int, touch: Touch, *, write: bool) -> None:
        """Undefined where another thread is at the element."""
        key = root, place
        others = [*self.written.get(key, ()), *(self.read.get(key, ()) if write else ())]
        other = next((o for o in others if touch.races(o)), None)
        if other is not None:
            raise Undefined(
                f"a race: thread {touch.thread} of block {touch.block} and thread {other.thread} of block "
                f"{other.block} are at one element"
            )
        (self.written if write else self.read).setdefault(key, set()).add(touch)


@dataclass
class Watch:
    """Where a frame is a thread."""

    races: Races
    now: Touch

    def touched(self, source: Memref, place: int, *, write: bool, atomic: bool = False) -> None:
        now = replace(self.now, atomic=True) if atomic else self.now
        self.races.look(source.root, place, now, write=write)
