"""Streams of the emulated driver: what is launched waits until somebody waits for it.

A device runs behind the host, and each stream behind the others, unless an event orders them. Here a stream
does nothing before it is waited for (`Stream.drain`): whoever looks at memory too early sees what was there
before, and a stream that should have waited for another one runs first.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

Step = Callable[[], None]


@dataclass(eq=False)
class Graph:
    """What was captured: each a function that does it again."""

    steps: list[Step] = field(default_factory=list[Step])


@dataclass(eq=False)
class Stream:
    """What is to be done, in order."""

    steps: deque[Step] = field(default_factory=deque[Step])
    given: int = 0
    """How many steps there were so far."""
    capturing: Graph | None = None
    device: int | None = None
    """Whose it is; None of the default ones, which each device has."""

    def do(self, step: Step) -> None:
        """Do something when its turn comes, or when the graph is launched that is being captured."""
        if self.capturing is not None:
            self.capturing.steps.append(step)
            return
        self.steps.append(step)
        self.given += 1

    def drain(self, upto: int | None = None) -> None:
        """Do what is to be done, or so many steps of all that there were."""
        left = len(self.steps) if upto is None else upto - (self.given - len(self.steps))
        for _ in range(left):
            if self.steps:  # a step may drain this stream, by way of another one
                self.steps.popleft()()


@dataclass(eq=False)
class Event:
    """A place in a stream."""

    stream: Stream | None = None
    place: int = 0

    def record(self, stream: Stream) -> None:
        self.stream, self.place = stream, stream.given

    def wait(self, stream: Stream) -> None:
        """What comes on this stream waits for what was before the event: as it is now."""
        first, place = self.stream, self.place
        if first is not None and first is not stream:
            stream.do(lambda: first.drain(place))
