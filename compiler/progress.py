"""What a long compilation is doing: one line on a terminal, or in a notebook, which goes when it is done.

    mutad: compiling heat.grad, 3 s: fuse-elementwise

It is written after two seconds, to the standard error, where somebody is looking.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Generator
from contextlib import contextmanager
from threading import Event, Thread
from time import perf_counter

PATIENCE = 2.0
"""Seconds after which a compilation is a long one."""
EVERY = 0.2
"""Seconds between two looks at what it is doing."""
doing = ""
"""The stage or pass that runs now: compilations run one at a time."""


@contextmanager
def shown(name: str) -> Generator[None]:
    """Show what the compilation of a function is doing."""
    global doing
    doing = "importing the compiler"
    if not is_watched():
        yield
        return
    done = Event()
    short = name.rpartition("<locals>.")[2]
    thread = Thread(target=tell, args=(short, done), daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def is_watched() -> bool:
    """Whether standard error is shown as it is written: on a terminal, or in a notebook."""
    is_terminal = getattr(sys.stderr, "isatty", bool)  # sys.stderr may be None
    return is_terminal() or "ipykernel" in sys.modules


def tell(name: str, done: Event) -> None:
    """Write the line, again and again, and remove it when the compilation is done."""
    started, wait, written = perf_counter(), PATIENCE, 0
    most = shutil.get_terminal_size().columns - 1
    while not done.wait(wait):
        seconds, wait = perf_counter() - started, EVERY
        text = f"mutad: compiling {name}, {seconds:.0f} s: {doing}"[:most]
        sys.stderr.write("\r" + text.ljust(written))
        sys.stderr.flush()
        written = max(written, len(text))
    if written:
        sys.stderr.write("\r" + " " * written + "\r")
        sys.stderr.flush()
