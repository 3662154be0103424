"""Python's garbage collector rests while the compiler is imported and while it works.

Classes, functions and IR are webs that live to the end, which it would walk in vain, again and again.
"""

from __future__ import annotations

import gc
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def without_collection(*, keeps: bool = False) -> Generator[None]:
    """What follows makes objects and no garbage to speak of; if it `keeps` all, they are old afterwards.

    (Not with Python 3.12, whose collector freezes immortal objects: a program's cannot be told from these.)
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if (
            keeps and not gc.get_freeze_count()
        ):  # the next collection of new objects walks none of these
            gc.freeze()
            gc.unfreeze()  # to the old ones; it would be wrong where a program keeps objects frozen
        if enabled:
            gc.enable()
