"""Where control flow meets, a name has one type: templates, how they join, how values take their form.

A template is a value with its SSA values taken out. Joining two of them gives the type that a
variable has after a branch or around a loop::

    py_int 0         with  f64           ->  f64      (a cell of f64, the 0 converted)
    memref<?xf64>    with  strided<[?]>  ->  strided<[?]>                    (memref.cast)
    (py_int, f64)    with  (f64, f64)    ->  (f64, f64)
    unbound          with  f64           ->  f64 and an i1 "is it bound"
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, UnitAttr, i1
from xdsl.ir import Attribute, SSAValue

from ...dialects import array
from ..scalar_types import Mismatch as Mismatch
from ..scalar_types import join_types
from . import choices
from .emitter import PLACEHOLDER, Emitter
from .scalars import convert, is_bool
from .values import (
    INT64_MAX,
    INT64_MIN,
    IR_TYPE,
    Array,
    Choice,
    Item,
    NoneValue,
    Record,
    Reference,
    Row,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)


@dataclass(frozen=True)
class Maybe:
    """A name that may be unbound: its value is valid where `defined` is true."""

    value: Value
    defined: SSAValue


Binding = Value | Maybe


@dataclass(frozen=True)
class ScalarT:
    type: str
    low: int = INT64_MIN
    high: int = INT64_MAX


@dataclass(frozen=True)
class ArrayT:
    type: MemRefType[Attribute]
    dtype: str


@dataclass(frozen=True)
class TupleT:
    """A tuple; with `names`, an object of these fields."""

    items: tuple[Template, ...]
    cls: type | None = None
    names: tuple[str, ...] | None = None
    made: Any = field(default=None, compare=False)
    """Where the list of this length was made that it is (`FixedList`)."""


@dataclass(frozen=True)
class FixedT:
    """None, or an object known while compiling: the same on every path."""

    value: NoneValue | Static | Record | Tuple


@dataclass(frozen=True)
class ChoiceT:
    """One of several forms; which, a number says."""

    options: tuple[Template, ...]


@dataclass(frozen=True)
class ClosureT(TupleT):
    """A nested function that is one of several: the forms of its defaults."""

    place: tuple[int, int] = (0, 0)
    """Where it is defined, and in which call."""
    function: Any = field(default=None, compare=False)


@dataclass(frozen=True)
class RowT:
    """A list that is an item of another."""

    store: Any


@dataclass(frozen=True)
class ReferenceT(RowT):
    """None, or an object that is an item of a store: its place, -1 for None."""


@dataclass(frozen=True)
class ObjectT(TupleT):
    """What the items of a list are that are objects: the forms of their fields."""


@dataclass(frozen=True)
class ListT:
    """What the items of a list are that are lists: the form of theirs, None while nothing is known."""

    item: Template | None


@dataclass(frozen=True)
class MaybeT:
    inner: Template


Template = ScalarT | ArrayT | TupleT | FixedT | ChoiceT | RowT | ListT | MaybeT


def template_of(value: Binding) -> Template:
    match value:
        case Scalar():
            if is_bool(value.type):
                return ScalarT(value.type, 0, 1)
            if value.type != "py_int":
                return ScalarT(value.type)
            return ScalarT(value.type, value.low, value.high)
        case Array():
            return ArrayT(value.type, value.dtype)
        case Tuple(items) if hasattr(items, "record"):  # they change: `LiveItems`
            return FixedT(value)
        case Tuple(items, cls):
            parts = tuple(template_of(item) for item in items)
            if (made := made_by(value)) is not None:
                return TupleT(parts, list, None, *made)
            return TupleT(parts, cls)
        case Struct(items, names, cls):
            return TupleT(tuple(template_of(item) for item in items), cls, names)
        case Row(store) | Item(store=store):
            return RowT(store)
        case Maybe(inner, _):
            return MaybeT(template_of(inner))
        case Reference(_, (_, Item(store=store))):
            return ReferenceT(store)
        case Choice(_, options):
            return ChoiceT(tuple(template_of(option) for option in options))
        case NoneValue() | Static() | Record():
            return FixedT(value)
        case _:
            raise Mismatch("a slice on each path", alike=True)


def join(a: Template, b: Template) -> Template:
    """The template that covers both; Mismatch where none does."""
    if a == b:
        return a
    if isinstance(a, MaybeT) or isinstance(b, MaybeT):
        inner = [t.inner if isinstance(t, MaybeT) else t for t in (a, b)]
        return MaybeT(join(inner[0], inner[1]))
    match a, b:
        case ScalarT(), ScalarT():
            type_ = join_types(a, b)
            if type_ != "py_int" and not is_bool(type_):
                return ScalarT(type_)
            return ScalarT(type_, min(a.low, b.low), max(a.high, b.high))
        case ArrayT(), ArrayT():
            if a.dtype != b.dtype:
                raise Mismatch(f"an array of {a.dtype} on one path and of {b.dtype} on another")
            if a.type.get_num_dims() != b.type.get_num_dims():
                one, other = (t.type.get_num_dims() for t in (a, b))
                raise Mismatch(f"an array of rank {one} on one path and of rank {other} on another")
            return ArrayT(common_type(a.type, b.type), a.dtype)
        case TupleT(), TupleT() if len(a.items) == len(b.items) and is_one_class(a, b):
            items = tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True))
            return replace(a, items=items)
        case _ if (reference := joined_references(a, b)) is not None:
            return reference
        case _ if (either := choices.joined(a, b)) is not None:
            return either
        case _:
            made = [t.made for t in (a, b) if isinstance(t, TupleT) and is_list(a) and is_list(b)]
            one, other, objects = describe(a), describe(b), classes_that_meet(a, b)
            paths = "each path" if one == other else f"one path and {other} on another"
            raise Mismatch(f"{one} on {paths}", *made, objects=objects, alike=one == other)


def deepened(joined: Template, *forms: Template) -> set[type]:
    """The classes of objects that refer to others of their class, deeper on one path than on another."""
    found = {cls for cls, depth in depths(joined).items() if depth > 1}
    return {cls for cls in found if len({depths(t).get(cls, 0) for t in forms}) > 1}


def depths(t: Template) -> dict[type, int]:
    """How many objects of a class are in one another, by class."""
    match t:
        case TupleT(items) | ChoiceT(items):
            inner = [depths(item) for item in items]
            found = {cls: max(d.get(cls, 0) for d in inner) for d in inner for cls in d}
            if isinstance(t, TupleT) and t.names is not None and t.cls is not None:
                found[t.cls] = found.get(t.cls, 0) + 1
            return found
        case MaybeT(inner):
            return depths(inner)
        case _:
            return {}


def classes_that_meet(a: Template, b: Template) -> set[type]:
    """The classes of objects where an object meets another, or None."""
    found = set[type]()
    for t in (a, b):
        match t:
            case FixedT(Record(cls=cls)):
                found.add(cls)
            case TupleT(_, type() as cls, tuple()):
                found.add(cls)
            case RowT(store):
                found.add(store.cls)
            case ChoiceT(options):
                for option in options:
                    found |= classes_that_meet(option, option)
            case FixedT(NoneValue()):
                pass
            case _:
                return set()
    return found


def joined_references(a: Template, b: Template) -> ReferenceT | None:
    """The form of None or an object of a store, where that covers both."""
    stores = [t.store for t in (a, b) if isinstance(t, RowT) and t.store.is_heap]
    others = [t for t in (a, b) if not isinstance(t, RowT)]
    known = all(isinstance(t, FixedT) and isinstance(t.value, NoneValue) for t in others)
    if not known or len(stores) + len(others) < 2 or any(s != stores[0] for s in stores):
        return None
    return ReferenceT(stores[0]) if stores else None


def is_list(t: Template) -> bool:
    """True for the form of a list, of known length or not."""
    from .data.lists import ListObject

    match t:
        case TupleT(cls=cls):
            return cls is list
        case FixedT(Static(found)):
            return isinstance(found, ListObject)
        case _:
            return isinstance(t, RowT)


def is_one_class(a: TupleT, b: TupleT) -> bool:
    return a.cls is b.cls and a.names == b.names


def common_type(a: MemRefType[Attribute], b: MemRefType[Attribute]) -> MemRefType[Attribute]:
    """The memref type that keeps what both types know of extents and strides."""
    pairs = zip(a.get_shape(), b.get_shape(), strict=True)
    shape = [m if m == n else DYNAMIC_INDEX for m, n in pairs]
    if array.is_contiguous(a) and array.is_contiguous(b):
        return MemRefType(a.element_type, shape)
    strides = zip(array.strides_of(a), array.strides_of(b), strict=True)
    return array.strided(a.element_type, shape, [s if s == t else None for s, t in strides])


def loosened(t: Template) -> Template:
    """The template of a loop's variable: of an int's range only the sign is kept, for the range
    itself may grow with every iteration."""
    match t:
        case ScalarT(type_, low, _):
            return ScalarT(type_, 0) if type_ == "py_int" and low >= 0 else ScalarT(type_)
        case TupleT(items):
            return replace(t, items=tuple(loosened(item) for item in items))
        case MaybeT(inner):
            return MaybeT(loosened(inner))
        case ChoiceT(options):
            return ChoiceT(tuple(map(loosened, options)))
        case _:
            return t


def describe(t: Template) -> str:
    match t:
        case ClosureT():
            return "a nested function"
        case ScalarT(type_):
            return {"py_int": "an int", "py_float": "a float", "py_bool": "a bool"}.get(
                type_, f"a NumPy scalar ({type_})"
            )
        case ArrayT(type_, dtype):
            return f"an array of {dtype}, rank {type_.get_num_dims()}"
        case TupleT(_, type() as cls, names):
            keys = f" with the keys {', '.join(names)}" if cls is dict and names else ""
            return f"a {cls.__name__}{keys}"
        case TupleT(items):
            return f"a tuple of {len(items)}"
        case FixedT(NoneValue()):
            return "None"
        case FixedT(Record() as record):
            return f"a {record.cls.__name__}"
        case FixedT(Static(str() as text)):
            return f"the string {text!r}"
        case FixedT(Static(found)):
            return getattr(found, "described", "an object")
        case FixedT():
            return "an object"
        case ChoiceT(options):
            return " or ".join(dict.fromkeys(map(describe, options)))
        case ReferenceT(store):
            return f"None or {describe(RowT(store))}"
        case RowT(store) if store.is_heap:
            return f"a {store.cls.__name__}"
        case RowT(store):
            return f"{describe(store.item or ListT(None))} in a list"
        case ListT():
            return "a list"
        case MaybeT(inner):
            return describe(inner)


def ir_types(t: Template) -> list[Attribute]:
    """The types of the SSA values that a value of this form consists of."""
    match t:
        case ScalarT(type_):
            return [IR_TYPE[type_]]
        case ArrayT(type_):
            return [type_]
        case TupleT(items):
            return [leaf for item in items for leaf in ir_types(item)]
        case FixedT() | ListT():
            return []
        case ChoiceT(options):
            return [IndexType(), *(leaf for option in options for leaf in ir_types(option))]
        case RowT():
            return [IndexType()]
        case MaybeT(inner):
            return [*ir_types(inner), i1]


def coerced(e: Emitter, value: Binding | None, t: Template) -> list[SSAValue]:
    """The SSA values of `value` (None: of a placeholder for an unbound name) in the form `t`."""
    match t:
        case ScalarT(type_):
            if value is None:
                return [e.constant(0, type_).ssa]
            assert isinstance(value, Scalar)
            return [convert(e, value, type_).ssa]
        case ArrayT(type_):
            if value is None:
                return [placeholder(e, type_)]
            assert isinstance(value, Array)
            return [cast(e, value.memref, type_)]
        case TupleT(items):
            parts = (None,) * len(items) if value is None else tuple_items(value)
            return [
                leaf for v, item in zip(parts, items, strict=True) for leaf in coerced(e, v, item)
            ]
        case FixedT() | ListT():
            return []
        case ChoiceT():
            assert not isinstance(value, Maybe)
            return choices.coerced(e, value, t)
        case ReferenceT():
            return [place_in_store(e, value)]
        case RowT():
            assert value is None or isinstance(value, Row | Item)
            return [e.index(0) if value is None else value.at]
        case MaybeT(inner):
            if isinstance(value, Maybe):
                return [*coerced(e, value.value, inner), value.defined]
            defined = e.constant(value is not None, "py_bool").ssa
            return [*coerced(e, value, inner), defined]


def presence(e: Emitter, t: Template, leaves: Iterator[SSAValue]) -> Iterator[SSAValue | None]:
    """For each SSA value of a form whether it is one of the value, and no placeholder; None: it always is."""
    match t:
        case TupleT(items):
            for item in items:
                yield from presence(e, item, leaves)
        case ChoiceT(options):
            number = next(leaves)
            yield None
            for k, option in enumerate(options):
                if not ir_types(option):
                    continue
                known = array.constant_value(number)
                same = None if known is None else e.constant(known == k, "py_bool").ssa
                here = choices.is_number(e, number, k) if same is None else same
                for inner in presence(e, option, leaves):
                    yield here if inner is None else e.emit(arith.AndIOp(here, inner))
        case MaybeT(inner):
            parts = [next(leaves) for _ in ir_types(inner)]
            defined = next(leaves)
            for one in presence(e, inner, iter(parts)):
                yield defined if one is None else e.emit(arith.AndIOp(defined, one))
            yield None
        case _:
            for _ in ir_types(t):
                next(leaves)
                yield None


def place_in_store(e: Emitter, value: Binding | None) -> SSAValue:
    """The place of an object, -1 for None."""
    match value:
        case Reference(number):
            return number
        case Row(at=at) | Item(at=at):
            return at
        case _:
            assert value is None or isinstance(value, NoneValue)
            return e.index(-1)


def tuple_items(value: Binding) -> tuple[Value, ...]:
    if isinstance(value, Static):
        return choices.defaults_of(value)
    assert isinstance(value, Tuple | Struct)
    return value.items


def rebuilt(t: Template, leaves: Iterator[SSAValue]) -> Binding:
    """The value of form `t` made of the next `leaves`."""
    match t:
        case ScalarT(type_, low, high):
            return Scalar(type_, next(leaves), None, low, high)
        case ArrayT(_, dtype):
            return Array(next(leaves), dtype)
        case ClosureT(items):
            parts = (rebuilt(item, leaves) for item in items)
            return choices.with_defaults(t.function, [p for p in parts if not isinstance(p, Maybe)])
        case TupleT(items):
            parts = [rebuilt(item, leaves) for item in items]
            values = tuple(p for p in parts if not isinstance(p, Maybe))
            if t.cls is list:
                return fixed_list(values, t.made)
            if t.names is None or t.cls is None:
                return Tuple(values, t.cls)
            return Struct(values, t.names, t.cls)
        case FixedT(value):
            return value
        case ChoiceT(options):
            number = next(leaves)
            values = [rebuilt(option, leaves) for option in options]
            return Choice(number, tuple(v for v in values if not isinstance(v, Maybe)))
        case ReferenceT(store):
            at = next(leaves)
            return Reference(
                at, (NoneValue(), Item(-1, store.cls, store.cls.__name__, None, store, at))
            )
        case RowT(store) if store.is_heap:
            return Item(-1, store.cls, store.cls.__name__, None, store, next(leaves))
        case RowT(store):
            if isinstance(store.item, ObjectT) and (cls := store.item.cls) is not None:
                return Item(-1, cls, cls.__name__, None, store, next(leaves))
            return Row(store, next(leaves))
        case ListT():
            raise AssertionError("the form of no value")
        case MaybeT(inner):
            value = rebuilt(inner, leaves)
            assert not isinstance(value, Maybe)
            return Maybe(value, next(leaves))


def made_by(value: Binding) -> tuple[Any] | None:
    """Of a list of known length, where it was made; None for anything else."""
    from .data.lists import FixedList

    return (value.made,) if isinstance(value, FixedList) else None


def fixed_list(items: tuple[Value, ...], made: Any) -> Tuple:
    from .data.lists import FixedList

    return FixedList(items, made=made)


def cast(e: Emitter, ssa: SSAValue, type_: MemRefType[Attribute]) -> SSAValue:
    """The same array under a type that knows less of its extents and strides."""
    if ssa.type == type_:
        return ssa
    return e.emit(memref.CastOp.get(ssa, type_), ssa.name_hint)


def placeholder(e: Emitter, type_: MemRefType[Attribute]) -> SSAValue:
    extents = [e.index(n if n >= 0 else 0) for n in type_.get_shape()]
    op = e.insert(array.AllocOp(extents, type_.element_type))
    op.attributes[PLACEHOLDER] = UnitAttr()
    return cast(e, op.memref, type_)
