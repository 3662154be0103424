"""Python's garbage collector rests while the compiler is imported and while it works.

Classes, functions and IR are webs that live to the end, which it would walk in vain, again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Generator[None]:
    """What follows makes objects and no garbage to speak of."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
