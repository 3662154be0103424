"""The fields of objects, as names of the frame that runs.

An object in the frontend is an identity known while compiling. The value of its field is bound to a
name of the innermost frame, `particle.mass$3` for the field `mass` of the third object, so that
branches, loops and restarts treat it as they treat any variable::

    s.t += dt                          s.t$0 = s.t$0 + dt
    p.pos = p.pos + dt * p.vel         p.pos$1 = p.pos$1 + dt * p.vel$1

A call takes the names along and brings them back (`Calls.run_frame`). Which of them a loop assigns, in
inlined calls too, one build teaches the next (`Facts.fields`).
"""

from __future__ import annotations

import ast
import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from types import FunctionType
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IntegerAttr, f64, i64
from xdsl.ir import Block, SSAValue

from ...scalar_types import DTYPES, PYTHON_SCALARS
from ..emitter import Emitter
from ..joins import Binding, Maybe
from ..values import Array, Choice, Item, NoneValue, Record, Scalar, Static, Struct, Tuple, Value
from .lists import FixedList, ListObject, is_of_numbers

if TYPE_CHECKING:
    from .write_back import Leaving

TYPE_CODES = ("", *PYTHON_SCALARS, *DTYPES)
"""What the journal calls the types of scalars; 0 where nothing was assigned."""
OTHER = len(TYPE_CODES)
"""What it calls a value that is no scalar."""


@dataclass
class Journal:
    """An array of int64 in which compiled code notes the scalars that it assigns to the fields of
    arguments: for each field a type code and the bits. Read where the call raises."""

    memref: SSAValue
    capacity: int
    slots: dict[tuple[int, Any], int] = field(default_factory=dict[tuple[int, Any], int])

    def note(self, e: Emitter, place: tuple[int, Any], value: Value) -> bool:
        """Write down an assignment; False where there is no room."""
        slot = self.slots.setdefault(place, len(self.slots))
        if slot >= self.capacity:
            return False
        code = TYPE_CODES.index(value.type) if isinstance(value, Scalar) else OTHER
        e.insert(memref.StoreOp.get(e.constant(code, "i64").ssa, self.memref, [e.index(2 * slot)]))
        if isinstance(value, Scalar):
            e.insert(memref.StoreOp.get(bits(e, value), self.memref, [e.index(2 * slot + 1)]))
        return True

    def empty(self, e: Emitter) -> None:
        """Write where the function begins that nothing is assigned: the caller uses one journal again."""
        used = range(min(len(self.slots), self.capacity))
        places = [e.index(2 * slot) for slot in used]
        constants = {place.owner for place in places}
        before = [op for op in e.entry.ops if op in constants][-1:]
        if not before:
            return
        zero = arith.ConstantOp(IntegerAttr(0, i64))
        stores = [memref.StoreOp.get(zero, self.memref, [place]) for place in places]
        for op in reversed((zero, *stores)):
            if e.span is not None:
                op.location = e.span.location()
            e.entry.insert_op_after(op, before[0])


def bits(e: Emitter, value: Scalar) -> SSAValue:
    """The bits of a scalar as an i64: an integer, so that no derivative flows into it."""
    match value.type:
        case "py_float" | "f64":
            return e.emit(arith.BitcastOp(value.ssa, i64))
        case "f32":
            return e.emit(arith.BitcastOp(e.emit(arith.ExtFOp(value.ssa, f64)), i64))
        case _:
            return e.cast(value.ssa, value.type, "i64")


OPERATOR_NAMES = frozenset(
    f"__{prefix}{name}__"
    for prefix in ("", "r")
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and", "or", "xor",
        "lshift", "rshift", "neg", "pos", "invert", "lt", "le", "gt", "ge", "getitem",
    )
)  # fmt: skip
"""Methods that stand for operators; the `__eq__` of dataclasses writes nothing."""


@dataclass
class Objects:
    """The objects of one build."""

    keys: dict[int, list[Any]] = field(default_factory=dict[int, list[Any]])
    """The fields that each object was given, in order."""
    names: dict[tuple[int, Any], str] = field(default_factory=dict[tuple[int, Any], str])
    places: dict[int, tuple[tuple[int, ...], int]] = field(
        default_factory=dict[int, tuple[tuple[int, ...], int]]
    )
    """By serial number, where in the program a dict was made."""
    homes: dict[int, Block] = field(default_factory=dict[int, Block])
    """The block in which each was made."""
    arguments: dict[int, Value] = field(default_factory=dict[int, Value])
    """Those of the caller, by number."""
    initial: dict[int, dict[Any, Binding]] = field(default_factory=dict[int, dict[Any, Binding]])
    """Their fields, by number, as they come."""
    lists: dict[int, ListObject] = field(default_factory=dict[int, ListObject])
    """The caller's lists of numbers, by number."""
    assigned: dict[int, Record] = field(default_factory=dict[int, Record])
    """The caller's lists whose items are assigned, by number: objects, whose fields those are."""
    leaves: dict[SSAValue, int] = field(default_factory=dict[SSAValue, int])
    """The caller's arrays: which of all numbers and arrays that the arguments hold."""
    snapshots: set[int] = field(default_factory=set[int])
    """Those whose fields a value of several paths has copied: nothing is assigned to them any more."""
    moved: dict[int, Item] = field(default_factory=dict[int, Item])
    """Those that have become items of lists."""
    given: dict[int, set[Any]] = field(default_factory=dict[int, set[Any]])
    """Of those in heaps, the fields that they were given since (`heaps`)."""
    journal: Journal | None = None
    leaving: Leaving | None = None
    code: set[str] = field(default_factory=set[str])
    """The names of methods and properties of their classes."""

    def assigned_to(self) -> list[tuple[int, Record]]:
        """The caller's objects, and those lists, by number."""
        found = [(n, r) for n, r in self.arguments.items() if isinstance(r, Record)]
        return sorted([*found, *self.assigned.items()], key=lambda pair: pair[0])

    def knows(self, cls: type) -> None:
        """Objects of this class are about: its methods may be what an expression runs."""
        for owner in cls.__mro__[:-1]:
            self.code |= {
                n for n, v in vars(owner).items() if isinstance(v, FunctionType | property)
            }

    def runs_code(self, node: ast.AST) -> bool:
        """True for an attribute that may be a property, an operator that may be a method."""
        if isinstance(node, ast.Attribute):
            return node.attr in self.code
        is_operator = isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare | ast.Subscript)
        return is_operator and not self.code.isdisjoint(OPERATOR_NAMES)

    def make(self, cls: type, name: str, block: Block, origin: int | None = None) -> Record:
        record = Record(len(self.keys), cls, name, origin)
        if cls is not dict:
            self.knows(cls)
        self.keys[record.serial] = []
        self.homes[record.serial] = block
        return record

    def name(self, record: Record, key: Any) -> str:
        """The name under which a frame keeps this field."""
        place = record.serial, (type(key), key)
        if place not in self.names:
            shown = re.sub(r"\W", "_", key.name if isinstance(key, enum.Enum) else str(key))
            name = f"{record.name}.{shown}"
            taken = sum(serial == record.serial for serial, _ in self.names)
            self.names[place] = f"{name}${taken}.{record.serial}"
        return self.names[place]

    def known_name(self, record: Record, key: Any) -> str | None:
        """That name, where the object has such a field."""
        return self.names.get((record.serial, (type(key), key)))

    def give(self, record: Record, key: Any, env: dict[str, Binding], value: Value) -> None:
        """Bind a field."""
        if key not in self.keys[record.serial]:
            self.keys[record.serial].append(key)
        env[self.name(record, key)] = value


def is_field(name: str) -> bool:
    return "." in name


def serial_of(name: str) -> int:
    """Of which object a name is a field."""
    return int(name.rpartition(".")[2])


def shown(name: str) -> str:
    """A name as the program writes it."""
    return name.partition("$")[0] if is_field(name) else name


def as_written(text: str) -> str:
    """A message in which fields are called what the program calls them."""
    return re.sub(r"\$\d+\.\d+", "", text)


def fields_in(env: Mapping[str, Binding]) -> dict[str, Binding]:
    """The fields of objects among the names."""
    return {name: binding for name, binding in env.items() if "." in name}


def is_frozen(cls: type) -> bool:
    """A frozen dataclass: nothing is assigned to its instances."""
    return is_dataclass(cls) and bool(cls.__dataclass_params__.frozen)  # pyright: ignore


def is_object(value: Binding | None) -> bool:
    """True for what has attributes or items by name."""
    return isinstance(value, Record | Struct) or (
        isinstance(value, Tuple) and value.cls is not None
    )


def record_in(binding: Binding | None) -> Record | None:
    """The object that a name is bound to, or may be."""
    value = binding.value if isinstance(binding, Maybe) else binding
    return value if isinstance(value, Record) and not isinstance(value, Item) else None


def is_plain(value: Value) -> bool:
    """True for what a kernel returns by itself: numbers, arrays, lists of numbers, None, tuples of them."""
    if isinstance(value, Tuple):
        is_tuple = value.cls is None and not isinstance(value, FixedList)
        return is_tuple and all(map(is_plain, value.items))
    if isinstance(value, Static):
        seq = value.object
        return isinstance(seq, ListObject) and seq.origin is None and is_of_numbers(seq)
    return isinstance(value, Scalar | Array | NoneValue)


def classes_in(values: Iterable[Value]) -> Iterator[type]:
    """The classes of objects in values."""
    for value in values:
        match value:
            case Item():
                pass
            case Record():
                yield value.cls
            case Struct(items):
                yield value.cls
                yield from classes_in(items)
            case Tuple(items) | Choice(_, items):
                yield from classes_in(items)
            case _:
                pass
