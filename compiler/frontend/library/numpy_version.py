"""What depends on the version of NumPy or SciPy: compiled code does what the one does that is installed."""

from __future__ import annotations

from importlib.metadata import version

import numpy as np


def is_before(given: str, major: int, minor: int) -> bool:
    return tuple(int(part) for part in given.split(".")[:2]) < (major, minor)


BEFORE_2_5 = is_before(np.__version__, 2, 5)
SCIPY_BEFORE_1_18 = is_before(version("scipy"), 1, 18)
