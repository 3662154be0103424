"""Which functions, classes and files are the program's, and which are Python's, NumPy's, SciPy's or ours."""

from __future__ import annotations

import os
import sys
import sysconfig
import types

import numpy as np

STANDARD_LIBRARY = sysconfig.get_path("stdlib") + os.sep
INSTALLED = os.sep + "site-packages" + os.sep
OWN = os.path.dirname(os.path.dirname(__file__)) + os.sep
LIBRARIES = tuple(
    os.path.join(os.path.dirname(os.path.dirname(np.__file__)), name, "")
    for name in ("numpy", "scipy")
)


def is_standard(file: str) -> bool:
    """True for a source file of Python, NumPy, SciPy, or of ours: what it defines does not change."""
    own = file.startswith((OWN, *LIBRARIES))
    return own or (file.startswith((STANDARD_LIBRARY, "<frozen ")) and INSTALLED not in file)


def is_of_library(function: types.FunctionType) -> bool:
    """A function of NumPy, SciPy or Python."""
    return is_versioned(function.__module__) or is_standard(function.__code__.co_filename)


def is_versioned(module: str | None) -> bool:
    """Part of NumPy or of Python: nothing assigns there, and cache keys have the version."""
    return module is not None and module.partition(".")[0] in (
        "numpy",
        "scipy",
        "math",
        "builtins",
        "operator",
    )


def is_fixed(holder: types.ModuleType | type) -> bool:
    """A module or class of NumPy, SciPy or Python."""
    if isinstance(holder, type):
        return is_versioned(holder.__module__)
    file = getattr(holder, "__file__", None)
    return is_versioned(holder.__name__) or (file is not None and is_standard(file))


def is_own_fixed(cls: type) -> bool:
    """True for a class that the program did not define."""
    module = sys.modules.get(cls.__module__)
    file = getattr(module, "__file__", None)
    return is_fixed(cls) or (file is not None and is_standard(file))
