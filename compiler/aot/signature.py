"""The C parameters of an exported function: what the entry unpacks, and the header declares."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ..argument_keys import ArrayKey
from ..codegen.kernel_memory import KernelMemory
from .c_names import KEYWORDS

C_TYPE = {
    "py_bool": "bool", "py_int": "int64_t", "py_float": "double", "b1": "bool",
    "f32": "float", "f64": "double",
    **{f"i{n}": f"int{n}_t" for n in (8, 16, 32, 64)},
    **{f"u{n}": f"uint{n}_t" for n in (8, 16, 32, 64)},
}  # fmt: skip
PASSED = {
    "bool": "i1", "int8_t": "i8", "int16_t": "i16", "int32_t": "i32", "int64_t": "i64",
    "uint8_t": "i8", "uint16_t": "i16", "uint32_t": "i32", "uint64_t": "i64",
    "float": "float", "double": "double",
}  # fmt: skip
"""How LLVM takes a C type by value. Nothing is assumed of the upper bits of a register: not every ABI has
callers extend small integers (that of AArch64 does not)."""


USED = (
    "work work_bytes allocator block owner status of_malloc malloc free result device stream "
    "errno stdin stdout stderr I linux unix"
)
TAKEN = KEYWORDS | frozenset(USED.split())
"""Words that no parameter of C is called by: keywords of C and C++, macros, what the header uses itself."""
ODD = re.compile(r"result(_\w+)?|_+[A-Z_]\w*|\w+_(t|worksize)|[A-Z][A-Z0-9_]{2,}")
"""Names like those of results, types and macros (`NAN`, `INT64_MAX`)."""
BESIDE = re.compile(r"(\w+)_(grad|bar|dot|hvp|\d+)")
"""What stands beside a parameter: its gradient, cotangent, tangent and product, its extents."""


def c_name(name: str) -> str:
    """What C calls a parameter of Python."""
    plain = re.sub(r"[^A-Za-z0-9_]", lambda found: f"u{ord(found[0]):x}_", name)
    return f"{plain}_" if plain in TAKEN or ODD.fullmatch(plain) else plain


def c_names(names: Sequence[str], function: str) -> list[str]:
    """What C calls the parameters of a function: none as it, as another, or as what stands beside one."""
    plain, found = [c_name(name) for name in names], list[str]()
    for made in plain:
        while made in (function, *found) or (
            (beside := BESIDE.fullmatch(made)) and beside[1] in plain
        ):
            made += "_"
        found.append(made)
    return found


@dataclass(frozen=True)
class ArrayParameter:
    """A `struct` with data, extents and strides, which the caller has filled in."""

    name: str
    key: ArrayKey
    extents: tuple[str | int | None, ...]
    written: bool
    """Whether the function stores to its elements."""
    watched: bool
    """Whether it may share memory with no other array."""
    optional: bool
    comment: str


@dataclass(frozen=True)
class ScalarParameter:
    """A number, by value."""

    name: str
    type: str
    comment: str


@dataclass(frozen=True)
class OutParameter:
    """A place for a number, or (with a rank) for an array; null where it is not wanted."""

    name: str
    type: str
    rank: int | None
    comment: str


Parameter = ArrayParameter | ScalarParameter | OutParameter


@dataclass(frozen=True)
class SizeParameter:
    """A parameter of `_worksize`: an extent of an array, or an integer."""

    name: str
    parameter: str
    axis: int | None


@dataclass
class CFunction:
    """An exported C function."""

    symbol: str
    mode: str
    wrt: tuple[str, ...]
    python: str
    """The Python function, as the source has it, and where."""
    memory: KernelMemory
    parameters: list[Parameter] = field(default_factory=list[Parameter])
    sizes: list[SizeParameter] = field(default_factory=list[SizeParameter])
    """The parameters of `_worksize`, in order."""
    is_bound: bool = False
    """Whether a call may take less than `_worksize` says."""
    unknown: str = ""
    """Why what a call takes is unknown."""
    has_arrays: bool = False
    """Whether result arrays lie in memory that the function took."""

    def arrays(self) -> Iterator[ArrayParameter]:
        return (p for p in self.parameters if isinstance(p, ArrayParameter))

    def llvm_parameters(self) -> list[str]:
        """How LLVM declares them."""
        shown: list[str] = []
        for p in self.parameters:
            if isinstance(p, ScalarParameter):
                shown.append(f"{PASSED[C_TYPE[p.type]]} %in.{p.name}")
            else:
                shown.append(f"ptr %in.{p.name}")
        before = ["ptr %device", "ptr %stream"] if self.memory.launches else []
        if self.sized:
            return [*before, *shown, "ptr %work", "i64 %work_bytes"]
        return [*before, *shown, *([] if before else ["ptr %allocator"])]

    @property
    def sized(self) -> bool:
        """Whether the caller hands in a work area, whose bytes `_worksize` tells."""
        return self.memory in (KernelMemory.AREA, KernelMemory.DEVICE_AREA)


def struct_name(library: str, dtype: str, rank: int) -> str:
    """The type of an array of this dtype and rank: `model_f64_2`."""
    return f"{library}_{'bool' if dtype == 'b1' else dtype}_{rank}"
