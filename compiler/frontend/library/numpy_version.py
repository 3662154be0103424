"""What depends on the version of NumPy or SciPy: compiled code does what the one does that is installed."""

from __future__ import annotations

import re
from importlib.util import find_spec
from pathlib import Path

import numpy as np


def is_before(given: str, major: int, minor: int) -> bool:
    return tuple(int(part) for part in given.split(".")[:2]) < (major, minor)


def version_of_scipy() -> str:
    """As its own file says it: to import SciPy, or `importlib.metadata`, takes a tenth of a second."""
    package = find_spec("scipy")
    assert package is not None
    assert package.origin is not None
    said = re.search(
        r'^version = "(.*)"', Path(package.origin).with_name("version.py").read_text("utf-8"), re.M
    )
    assert said is not None
    return said[1]


BEFORE_2_5 = is_before(np.__version__, 2, 5)
SCIPY_BEFORE_1_18 = is_before(version_of_scipy(), 1, 18)
