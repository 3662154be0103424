"""Lines of LLVM text for the entries, and what they read of Python's and NumPy's objects.

The layouts below are those of CPython's and NumPy's C structures; everything that differs between
the Python versions we support (ints, tuples, reference counts) goes through C-API functions.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ...scalar_types import NUMPY_DTYPE, SIGNED, UNSIGNED

HEADER = object.__basicsize__
"""Bytes of `PyObject_HEAD`: 16, or 32 without the GIL."""
TYPE = HEADER - 8

ARRAY_DATA, ARRAY_RANK, ARRAY_EXTENTS, ARRAY_STRIDES, ARRAY_DTYPE, ARRAY_FLAGS = (
    HEADER + offset for offset in (0, 8, 16, 24, 40, 48)
)
ARRAY_HANDLER = HEADER + 72
"""Who frees the data of an array that owns it (`PyDataMem_Handler`)."""
DTYPE_BYTE_ORDER, DTYPE_NUMBER = HEADER + 10, HEADER + 12
SCALAR_VALUE = HEADER

C_CONTIGUOUS, F_CONTIGUOUS, OWNS_DATA, ALIGNED, WRITEABLE = 1, 2, 4, 0x100, 0x400

LINK_SLOTS = (
    "batch",
    "code",
    "constants",
    "cotangent",
    "defaults",
    "direction",
    "inputs",
    "keyword",
    "lanes",
    "longer",
    "mode",
    "names",
    "next",
    "owner",
    "positions",
    "proved",
    "record",
    "report",
    "show",
    "tangents",
    "wrappers",
)
"""The slots of `mutad.runtime.link.Link`, in memory order (Python sorts them by name)."""

ITEM_SIZE = {name: dtype.itemsize for name, dtype in NUMPY_DTYPE.items()}
INTEGERS = (*SIGNED, *UNSIGNED)
LLVM_TYPE = {
    "py_bool": "i1", "py_int": "i64", "py_float": "double",
    "b1": "i1", "f32": "float", "f64": "double", "rng": "i64",
    **{name: f"i{name[1:]}" for name in INTEGERS},
}  # fmt: skip
FLOATS = ("py_float", "f64", "f32")

TYPE_NUMBERS = {
    name: tuple(np.dtype(c).num for c in "?bhilqBHILQfd" if np.dtype(c) == dtype)
    for name, dtype in NUMPY_DTYPE.items()
}
"""NumPy's type numbers of each dtype (C's `long` and `long long` are both int64), preferred first."""

SCALAR_TYPE = {name: f"mutad_numpy_{dtype.name}" for name, dtype in NUMPY_DTYPE.items()}
"""The external symbol of each NumPy scalar type."""

_FUNCTIONS = {
    "PyBool_FromLong": "ptr (i64)",
    "PyCell_Get": "ptr (ptr)",
    "PyFunction_GetCode": "ptr (ptr)",
    "PyDict_GetItem": "ptr (ptr, ptr)",
    "PyDict_Size": "i64 (ptr)",
    "PyErr_CheckSignals": "i32 ()",
    "PyErr_Clear": "void ()",
    "PyErr_NoMemory": "ptr ()",
    "PyErr_SetObject": "void (ptr, ptr)",
    "PyEval_RestoreThread": "void (ptr)",
    "PyEval_SaveThread": "ptr ()",
    "PyFloat_FromDouble": "ptr (double)",
    "PyFloat_AsDouble": "double (ptr)",
    "PyLong_AsLongLongAndOverflow": "i64 (ptr, ptr)",
    "PyLong_FromLongLong": "ptr (i64)",
    "Py_GetRecursionLimit": "i32 ()",
    "PyObject_GetAttr": "ptr (ptr, ptr)",
    "PyObject_Vectorcall": "ptr (ptr, ptr, i64, ptr)",
    "PySequence_List": "ptr (ptr)",
    "PyTuple_GetItem": "ptr (ptr, i64)",
    "PyTuple_New": "ptr (i64)",
    "PyTuple_SetItem": "i32 (ptr, i64, ptr)",
    "PyTuple_Size": "i64 (ptr)",
    "PyType_GenericAlloc": "ptr (ptr, i64)",
    "Py_DecRef": "void (ptr)",
    "Py_IncRef": "void (ptr)",
    "PyArray_New": "ptr (ptr, i32, ptr, i32, ptr, ptr, i32, i32, ptr)",
    "PyArray_ToList": "ptr (ptr)",
    "PyArray_Zeros": "ptr (i32, ptr, ptr, i32)",
    "PyArray_Empty": "ptr (i32, ptr, ptr, i32)",
    "PyArray_SetBaseObject": "i32 (ptr, ptr)",
    "mutad_entry_free": "void (ptr)",
    "mutad_device_forget": "void (ptr)",
}
CODE = ("pool", "kernel", "backward", "drop")
"""The addresses that a link has in its slot `code`, as bytes: what the entries of many modules share
differs in these."""
CODE_BYTES = bytes.__basicsize__ - 1
"""Where the bytes of a `bytes` object begin."""
_ORIGIN = {
    "PyArray_New": "numpy",
    "PyArray_ToList": "numpy",
    "PyArray_Zeros": "numpy",
    "PyArray_Empty": "numpy",
    "PyArray_SetBaseObject": "numpy",
    "mutad_entry_free": "libc",
}


@dataclass
class Writer:
    """Appends instructions to one function's text; remembers the external symbols they use."""

    symbols: dict[str, str]
    """External symbol -> kind: "python", "numpy", "libc"; shared by all functions of the module."""
    lines: list[str] = field(default_factory=list[str])
    count: int = 0

    def fresh(self, hint: str) -> str:
        self.count += 1
        return f"{hint}.{self.count}"

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}")

    def value(self, instruction: str, hint: str = "t") -> str:
        """Append an instruction that yields a value; its name."""
        name = f"%{self.fresh(hint)}"
        self.do(f"{name} = {instruction}")
        return name

    def label(self, name: str) -> None:
        self.lines.append(f"{name}:")

    def field(self, base: str, offset: int | str, type_: str = "ptr", hint: str = "t") -> str:
        """Load what lies `offset` bytes behind `base`."""
        address = self.value(f"getelementptr i8, ptr {base}, i64 {offset}", "p")
        return self.value(f"load {type_}, ptr {address}", hint)

    def store(self, type_: str, value: str, base: str, offset: int | str) -> None:
        address = self.value(f"getelementptr i8, ptr {base}, i64 {offset}", "p")
        self.do(f"store {type_} {value}, ptr {address}")

    def slot(self, name: str, hint: str = "t") -> str:
        """A slot of `%self`, the link that this entry was made with."""
        return self.field("%self", HEADER + 8 * LINK_SLOTS.index(name), hint=hint)

    def all_of(self, conditions: list[str]) -> str:
        """The conjunction of i1 values."""
        result = conditions[0] if conditions else "true"
        for condition in conditions[1:]:
            result = self.value(f"and i1 {result}, {condition}", "ok")
        return result

    def require(self, condition: str, otherwise: str = "mismatch") -> None:
        """Go on where the condition holds, else branch to `otherwise`."""
        if condition != "true":
            here = self.fresh("go")
            self.do(f"br i1 {condition}, label %{here}, label %{otherwise}")
            self.label(here)

    def call(self, function: str, *operands: str, hint: str = "t") -> str:
        """Call a C-API function; the name of its result ("" for void)."""
        self.symbols.setdefault(function, _ORIGIN.get(function, "python"))
        result, _, parameters = _FUNCTIONS[function].partition(" ")
        types = [t for t in parameters.strip("()").split(", ") if t]
        shown = ", ".join(f"{t} {o}" for t, o in zip(types, operands, strict=True))
        call = f"call {result} @{function}({shown})"
        if result == "void":
            self.do(call)
            return ""
        return self.value(call, hint)

    def object(self, symbol: str) -> str:
        """The address of a Python object that is an external symbol."""
        self.symbols[symbol] = "numpy" if symbol.startswith("mutad_numpy") else "python"
        return f"@{symbol}"

    def device(self, symbol: str, driver: str) -> str:
        """Something of the runtime's for a device: `mutad.runtime.device`."""
        self.symbols[symbol] = f"device {driver}"
        return f"@{symbol}"

    def code(self, name: str) -> str:
        """One of the addresses `CODE`: of the module that this entry is called for."""
        return self.field(self.slot("code"), CODE_BYTES + 8 * CODE.index(name), hint=name)

    def large_arrays(self) -> str:
        """Where the address of the function that makes large arrays is, and behind it that of its loader."""
        self.symbols["mutad_large_arrays"] = "arrays"
        return "@mutad_large_arrays"


def declarations(symbols: dict[str, str]) -> list[str]:
    """One line for each external symbol. (No kernel declares any of these.)"""
    result: list[str] = []
    for symbol in sorted(symbols):
        if signature := _FUNCTIONS.get(symbol):
            returned, _, parameters = signature.partition(" ")
            result.append(f"declare {returned} @{symbol}{parameters}")
        else:
            result.append(f"@{symbol} = external global i8")
    return result


def undo_function(driver: str) -> str:
    """What gives memory back that is of a driver's device, or the host's."""
    return f"mutad_undo_{driver}" if driver else "mutad_undo"
