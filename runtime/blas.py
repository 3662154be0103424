"""SciPy's BLAS as function pointers, looked up when the first compiled module needs one.

Where `gemm` is faster, products of matrices are its own.
"""

from __future__ import annotations

import ctypes
from importlib import import_module
from typing import Any

from . import gemm


def address_of(symbol: str) -> int:
    """The address of a BLAS routine (`mutad_dgemm`, `mutad_ddot`, ...).

    The pointers have Fortran's calling convention: everything is passed by address.
    """
    functions: Any = import_module("scipy.linalg.cython_blas")
    capsule = functions.__pyx_capi__[symbol.removeprefix("mutad_")]
    python = ctypes.pythonapi
    get_name = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(("PyCapsule_GetName", python))
    get_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", python)
    )
    address = get_pointer(capsule, get_name(capsule))
    assert address is not None
    return gemm.address(symbol, address, functions.__file__) or address
