"""SciPy's BLAS as function pointers, looked up when the first compiled module needs one."""

from __future__ import annotations

import ctypes
import os
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, spec_from_file_location
from types import ModuleType
from typing import Any

BINDINGS = "scipy.linalg.cython_blas"


@cache
def bindings() -> ModuleType:
    """SciPy's pointers to BLAS, by themselves: `scipy.linalg` imports 0.1 s worth of other modules.

    Whoever imports them the usual way, before or after, has the same module.
    """
    known = sys.modules.get(BINDINGS)
    if known is not None:
        return known
    import scipy

    folders = [os.path.join(folder, "linalg") for folder in scipy.__path__]
    found = PathFinder.find_spec("cython_blas", folders)
    if found is None or found.origin is None:
        return import_module(BINDINGS)
    spec = spec_from_file_location(BINDINGS, found.origin)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    # Else `scipy.linalg` would be without the attribute; importing it runs nothing again.
    sys.modules.pop(BINDINGS, None)
    return module


def address_of(symbol: str) -> int:
    """The address of a BLAS routine (`mutad_dgemm`, `mutad_ddot`, ...).

    The pointers have Fortran's calling convention: everything is passed by address.
    """
    functions: Any = bindings()
    capsule = functions.__pyx_capi__[symbol.removeprefix("mutad_")]
    python = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python)
    )
    address = get_pointer(capsule, get_name(capsule))
    assert address is not None
    return address
