"""What a Python name or expression is while its function is lowered.

Two kinds of scalars, as in NEP 50: Python's (`py_bool`, `py_int`, `py_float`: weak, and they raise)
and NumPy's (`b1`, `i8`, `u8`, ..., `f64`: strong, and they do not). Signed and unsigned integers of a width
are one IR type, of which only the names, and the ops that compute with them, tell which it is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from .. import scalar_types
from ..scalar_types import INT64_MAX, INT64_MIN

DTYPES, DTYPE_NAME, NUMPY_DTYPE = (
    scalar_types.DTYPES,
    scalar_types.DTYPE_NAME,
    scalar_types.NUMPY_DTYPE,
)
IR_TYPE, PYTHON_SCALARS = scalar_types.IR_TYPE, scalar_types.PYTHON_SCALARS


@dataclass(frozen=True)
class Weak:
    """That a NumPy scalar stands for a Python scalar of this type where `when` holds (see `weak`)."""

    type: str
    when: SSAValue


@dataclass(frozen=True)
class Scalar:
    """A scalar: its type name, its SSA value, what is known of it.

    `constant` is the Python value where it is known while compiling (else None). `low` and `high`
    bound a `py_int`: they prove that arithmetic cannot overflow and that a subscript is not negative.
    """

    type: str
    ssa: SSAValue
    constant: bool | int | float | None = None
    low: int = INT64_MIN
    high: int = INT64_MAX
    python: Weak | None = None


@dataclass(frozen=True)
class Array:
    """An array in memory: a memref and its dtype name.

    `whole` marks a view of all of an array (`x[:]`): the same memref, but another Python object.
    """

    memref: SSAValue
    dtype: str
    whole: bool = False

    @property
    def type(self) -> MemRefType[Attribute]:
        assert isinstance(self.memref.type, MemRefType)
        return self.memref.type

    @property
    def rank(self) -> int:
        return self.type.get_num_dims()


@dataclass(frozen=True)
class Tuple:
    """A Python tuple, or a named tuple: an instance of `cls`."""

    items: tuple[Value, ...]
    cls: type | None = None


@dataclass(frozen=True)
class Struct:
    """An object that nothing is assigned to any more: of a frozen dataclass, or what may be one of
    several objects. `origin` numbers the object among the arguments' where it is one of them."""

    items: tuple[Value, ...]
    names: tuple[str, ...]
    cls: type
    origin: int | None = field(default=None, compare=False)


@dataclass(frozen=True, eq=False)
class Record:
    """An object with an identity: the values of its fields are names of the frame (see `fields`)."""

    serial: int
    cls: type
    name: str
    origin: int | None = None


@dataclass(frozen=True, eq=False)
class Item(Record):
    """An object that is an item of a list: of which, and where (see `data.object_lists`)."""

    store: Any = None
    at: Any = None


@dataclass(frozen=True)
class Row:
    """A list that is the item of a list: which of its items (see `data.nested_lists`)."""

    store: Any
    at: SSAValue


@dataclass(frozen=True)
class NoneValue:
    """Python's None."""


@dataclass(frozen=True)
class Static:
    """A Python object known while compiling: module, function, ufunc, dtype, string, slice, ..."""

    object: Any


@dataclass(frozen=True)
class Choice:
    """One of several values, of different kinds: which, a run-time number says. A function
    or another, None or a float; at most one of them is no object known while compiling."""

    number: SSAValue
    options: tuple[Value, ...]


@dataclass(frozen=True)
class Reference(Choice):
    """None or an object of a store: `number` is the place of the object, -1 for None (see `data.heaps`)."""


@dataclass(frozen=True)
class SliceValue:
    """A slice inside a subscript: `start:stop:step`, each a Python int or absent."""

    start: Scalar | None
    stop: Scalar | None
    step: Scalar | None


@dataclass(frozen=True)
class BoundMethod:
    """`array.sum` before its call: an array or NumPy scalar, and the name (inside a `Static`)."""

    receiver: Value
    name: str


Value = Scalar | Array | Tuple | Struct | Record | Row | NoneValue | Static | Choice | SliceValue

EXTENT_MAX = 2**48
"""No dimension of an array in memory is longer: what `len`, `.shape` and `.size` are bounded by."""
