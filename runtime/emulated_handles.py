"""Handles of the emulated driver, the context that is current, and streams and events."""

from __future__ import annotations

import ctypes
from typing import Any

from .emulated_functions import INVALID_HANDLE, Refused
from .emulated_streams import Event, Stream


def put(place: int, value: int) -> None:
    ctypes.c_uint64.from_address(place).value = value


class EmulatedHandles:
    """What handles stand for, and the functions of streams and events, by their names."""

    def __init__(self) -> None:
        self.handles: dict[int, Any] = {}
        self.made = 0x1000
        self.streams = {1: Stream(), 2: Stream()}
        """By their handles; those that there are without being made."""
        self.context_word = ctypes.c_uint64()
        self.unexpected: list[BaseException] = []
        """Errors of the emulation itself."""

    def handle(self, thing: Any, place: int) -> None:
        """Leave a new handle at an address."""
        self.made += 16
        self.handles[self.made] = thing
        put(place, self.made)

    def known(self, handle: int, kind: type[Any]) -> Any:
        found = self.handles.get(handle)
        if not isinstance(found, kind):
            raise Refused(INVALID_HANDLE)
        return found

    @property
    def current(self) -> int:
        """The device whose context is current."""
        return self.context_word.value - 1

    def cuStreamCreate(self, place: int, flags: int) -> None:
        self.handle(Stream(device=self.current), place)

    def cuEventCreate(self, place: int, flags: int) -> None:
        self.handle(Event(), place)

    def stream(self, handle: int | None) -> Stream:
        """A stream by its handle; 0 means one or another, as the program was compiled."""
        found: Stream = self.streams.get(handle or 0) or self.known(handle or 0, Stream)
        if found.device not in (None, self.current):
            raise Refused(INVALID_HANDLE)
        return found

    def cuEventRecord(self, event: int, stream: int) -> None:
        self.known(event, Event).record(self.stream(stream))

    def cuStreamWaitEvent(self, stream: int, event: int, flags: int) -> None:
        self.known(event, Event).wait(self.stream(stream))

    def cuStreamSynchronize(self, stream: int) -> None:
        self.stream(stream).drain()
