"""Forms: what is known while compiling of the arguments and the results of a recursive function.

A form is a value with its SSA values taken out: types, ranks and layouts of numbers and arrays, and which
function, string or list it is. A function is lowered once for each form of its arguments::

    walk(x, 3, f)       (memref<?xf64>, py_int, the function f)        operands %x, %c3
    step(state, 2)      (object 0, py_int), object 0: State(f64, memref<?xf64>)
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any
from typing import cast as cast_value

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, IndexType, MemRefType, i1
from xdsl.ir import Attribute, SSAValue

from ....dialects import array
from ...scalar_types import Mismatch, join_types
from .. import scalars
from ..data.assigned_items import LiveItems
from ..data.generators import Generator
from ..data.lists import FixedList, ListObject
from ..data.records import Method, Opaque
from ..emitter import Emitter
from ..frames import LocalFunction
from ..joins import ReferenceT, RowT, cast, place_in_store, rebuilt
from ..values import (
    IR_TYPE,
    PYTHON_SCALARS,
    Array,
    Choice,
    Item,
    NoneValue,
    Record,
    Reference,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
    Weak,
)
from .arguments import Partial


class Formless(Exception):
    """A value that no argument or result of a call can be. The text says what it is."""


@dataclass(frozen=True)
class ScalarForm:
    """A scalar; `weak` is the Python type that it stands for where a flag, which follows it, is set."""

    type: str
    weak: str | None = None


@dataclass(frozen=True)
class ArrayForm:
    type: MemRefType[Attribute]
    dtype: str
    whole: bool
    read_only: bool = False


@dataclass(frozen=True)
class SentForm:
    """Of a result: a new array, in the buffer `tag` (`fresh`), or the argument of one of these numbers."""

    dtype: str
    rank: int
    tag: object
    fresh: bool
    among: frozenset[int]

    @property
    def has_choice(self) -> bool:
        """Whether a number tells which of several it is."""
        return self.fresh + len(self.among) > 1


@dataclass(frozen=True)
class TupleForm:
    """A tuple; with `names`, an object that is a value. `kind` tells named tuples and lists apart."""

    items: tuple[Form, ...]
    kind: type | None = None
    names: tuple[Any, ...] | None = None
    origin: int | None = None


@dataclass(frozen=True)
class RecordForm:
    """An object with an identity: its number among those that the call passes."""

    number: int


@dataclass(frozen=True)
class PlaceForm:
    """An object known at run time, of a store (`data.heaps`); or None, where it `may_be_none`."""

    store: ListObject
    may_be_none: bool


@dataclass(frozen=True)
class BoundForm:
    """What holds values besides an object known while compiling: a method of an object, a partial."""

    key: object
    parts: tuple[Form, ...]
    make: Callable[[Sequence[Any]], Value] = field(compare=False)


@dataclass(frozen=True)
class ObjectForm:
    """An object known while compiling, told apart by `key`."""

    key: object
    value: NoneValue | Static = field(compare=False)


Form = (
    ScalarForm | ArrayForm | SentForm | TupleForm | RecordForm | PlaceForm | BoundForm | ObjectForm
)


@dataclass(frozen=True)
class Bound:
    """The values in what a `BoundForm` is the form of."""

    key: object
    parts: tuple[Value, ...]
    make: Callable[[Sequence[Any]], Value]


def bound_in(value: Value) -> Bound | None:
    """What a method of an object, a partial, a random generator holds; None for anything else."""
    match value:
        case Static(Method(receiver, function)):

            def method(parts: Sequence[Any]) -> Value:
                return Static(Method(parts[0], function))  # pyright: ignore[reportArgumentType]

            return Bound(("method", id(function)), (receiver,), method)
        case Static(Partial(function, args, kwargs)):
            count = 1 + len(args)
            parts = (function, *args, *kwargs.values())
            return Bound(
                ("partial", count, tuple(kwargs)),
                parts,
                lambda v: Static(
                    Partial(v[0], tuple(v[1:count]), dict(zip(kwargs, v[count:], strict=True)))
                ),
            )
        case Static(Generator(number, state)):
            return Bound(
                ("generator", number),
                (Scalar("rng", state),),
                lambda v: Static(Generator(number, v[0].ssa)),
            )
        case _:
            return None


class Sent(tuple[Any, ...]):
    """The class of what stands for an array on its way to the caller: (which it is, *extents)."""

    dtype: str
    rank: int
    tag: object


@functools.cache
def sent_class(dtype: str, rank: int, tag: object) -> type[Sent]:
    return type(
        f"new array of {dtype}, rank {rank}", (Sent,), {"dtype": dtype, "rank": rank, "tag": tag}
    )


def form_of(
    value: Value,
    number: Callable[[Record], int] | None = None,
    sent: Callable[[Tuple, type[Sent]], Form] | None = None,
    is_read_only: Callable[[SSAValue], bool] = lambda _: False,
) -> Form:
    """The form of an argument or a result: what is known of its type, nothing of its value."""

    def visit(value: Value) -> Form:
        match value:
            case Scalar():
                return ScalarForm(value.type, None if value.python is None else value.python.type)
            case Array():
                sealed = is_read_only(value.memref)
                return ArrayForm(general(value.type), value.dtype, value.whole, sealed)
            case FixedList(items) if isinstance(items, LiveItems):
                raise Formless("a list that is an argument and has items assigned")
            case FixedList(items, origin=origin):
                return TupleForm(tuple(map(visit, items)), FixedList, None, origin)
            case Tuple(_, type() as cls) if issubclass(cls, Sent) and sent is not None:
                return sent(value, cls)
            case Tuple(items, cls):
                return TupleForm(tuple(map(visit, items)), cls)
            case Struct(items, names, cls, origin):
                return TupleForm(tuple(map(visit, items)), cls, names, origin)
            case Item(store=store):
                if not store.is_heap:
                    raise Formless("an object in a list")
                return PlaceForm(store, False)
            case Reference(_, (_, Item(store=store))):
                return PlaceForm(store, True)
            case Record() if number is not None:
                return RecordForm(number(value))
            case NoneValue():
                return ObjectForm(None, value)
            case Static(found):
                bound = bound_in(value)
                if bound is not None:
                    return BoundForm(bound.key, tuple(map(visit, bound.parts)), bound.make)
                return ObjectForm(key_of(found), value)
            case Choice(_, options):
                none = any(isinstance(o, NoneValue) for o in options)
                raise Formless(
                    f"{'None' if none else 'one object'} or another value: the path decides"
                )
            case _:
                raise Formless("a value of this kind")

    return visit(value)


def key_of(found: Any) -> object:
    """What tells an object from others, in every build alike."""
    if isinstance(found, LocalFunction):
        return id(found.node), found.frame.path
    if isinstance(found, ListObject):
        return "list", found.key
    if isinstance(found, Opaque):
        return "opaque", found.cls
    if isinstance(found, str | np.dtype):
        return str(found)
    known = FunctionType | BuiltinFunctionType | ModuleType | type | np.ufunc
    if isinstance(found, known | enum.Enum | functools.partial):
        return id(found)
    if callable(found) and hasattr(found, "__wrapped__"):
        return id(found)
    raise Formless(getattr(found, "described", f"{found!r:.60}"))


def general(type_: MemRefType[Attribute]) -> MemRefType[Attribute]:
    """The type of arrays of any extents, contiguous where these are."""
    shape = [DYNAMIC_INDEX] * type_.get_num_dims()
    if array.is_contiguous(type_):
        return MemRefType(type_.element_type, shape)
    return array.strided(type_.element_type, shape, [None] * len(shape))


def strided(form: Form) -> Form:
    """The form, with arrays of any strides, and objects that may be None."""
    match form:
        case ArrayForm(type_):
            count = type_.get_num_dims()
            loose = array.strided(type_.element_type, [DYNAMIC_INDEX] * count, [None] * count)
            return replace(form, type=loose)
        case TupleForm(items):
            return replace(form, items=tuple(map(strided, items)))
        case BoundForm(_, parts):
            return replace(form, parts=tuple(map(strided, parts)))
        case PlaceForm():
            return replace(form, may_be_none=True)
        case _:
            return form


def joined(a: Form, b: Form) -> Form:
    """The form of a result that is of either form; Formless where there is none."""
    if a == b:
        return a
    match a, b:
        case ScalarForm(), ScalarForm():
            python = [f.type for f in (a, b) if f.type in PYTHON_SCALARS]
            weak = {t for t in (a.weak, b.weak) if t is not None}
            try:
                type_ = join_types(a, b)  # pyright: ignore
            except Mismatch as mismatch:
                raise Formless(str(mismatch)) from None
            if type_ not in PYTHON_SCALARS:
                weak |= set(python)
            if len(weak) > 1:
                raise Formless(
                    f"a NumPy scalar on one path, {' and '.join(sorted(weak))} on others"
                )
            return ScalarForm(type_, next(iter(weak), None))
        case SentForm(), SentForm() if (a.dtype, a.rank, a.tag) == (b.dtype, b.rank, b.tag):
            return replace(a, fresh=a.fresh or b.fresh, among=a.among | b.among)
        case PlaceForm(p), PlaceForm(q) if p == q:
            return PlaceForm(p, True)
        case (PlaceForm(p), ObjectForm(None)) | (ObjectForm(None), PlaceForm(p)):
            return PlaceForm(p, True)
        case TupleForm(x), TupleForm(y) if (len(x), a.kind, a.names) == (len(y), b.kind, b.names):
            items = tuple(joined(p, q) for p, q in zip(x, y, strict=True))
            return replace(a, items=items, origin=a.origin if a.origin == b.origin else None)
        case _:
            raise Formless("of one type on one path and of another on another")


def ir_types(form: Form) -> list[Attribute]:
    """The types of the SSA values that a value of this form consists of."""
    match form:
        case ScalarForm(type_, weak):
            return [IR_TYPE[type_], *([] if weak is None else [i1])]
        case ArrayForm(type_):
            return [type_]
        case PlaceForm():
            return [IndexType()]
        case SentForm():
            return [IndexType()] * (form.has_choice + form.fresh * form.rank)
        case TupleForm(items):
            return [t for item in items for t in ir_types(item)]
        case BoundForm(_, parts):
            return [t for part in parts for t in ir_types(part)]
        case _:
            return []


def leaves(e: Emitter, value: Value, form: Form) -> list[SSAValue]:
    """The SSA values of `value` in this form."""
    match form, value:
        case ScalarForm(type_, weak), Scalar():
            ssa = scalars.convert(e, value, type_).ssa
            if weak is None:
                return [ssa]
            if value.python is not None:
                return [ssa, value.python.when]
            return [ssa, e.constant(value.type == weak, "py_bool").ssa]
        case ArrayForm(type_), Array():
            return [cast(e, value.memref, type_)]
        case PlaceForm(), _:
            return [place_in_store(e, value)]
        case SentForm(), Tuple((which, *extents)):
            shown = [*([which] if form.has_choice else []), *(extents if form.fresh else [])]
            return [s.ssa for s in shown if isinstance(s, Scalar)]
        case TupleForm(items), Tuple() | Struct():
            pairs = zip(value.items, items, strict=True)
            return [leaf for item, f in pairs for leaf in leaves(e, item, f)]
        case BoundForm(_, forms), _:
            bound = bound_in(value)
            assert bound is not None
            pairs = zip(bound.parts, forms, strict=True)
            return [leaf for part, f in pairs for leaf in leaves(e, part, f)]
        case _:
            return []


@dataclass
class Making:
    """Makes values of forms, of the SSA values that follow each other in `parts`."""

    parts: Iterator[SSAValue]
    records: Sequence[Record] = ()
    received: Callable[[SentForm, Iterator[SSAValue]], Value] | None = None
    made: Callable[[TupleForm, tuple[Value, ...]], Value] | None = None
    """Makes an object with an identity of its own."""

    def value(self, form: Form) -> Value:
        match form:
            case ScalarForm(type_, weak):
                ssa = next(self.parts)
                python = None if weak is None else Weak(weak, next(self.parts))
                low = {"low": 0, "high": 1} if type_ in ("py_bool", "b1") else {}
                return Scalar(type_, ssa, python=python, **low)
            case ArrayForm(_, dtype, whole):
                return Array(next(self.parts), dtype, whole)
            case SentForm():
                assert self.received is not None
                return self.received(form, self.parts)
            case PlaceForm(store, may_be_none):
                found = rebuilt(ReferenceT(store) if may_be_none else RowT(store), self.parts)
                return cast_value(Any, found)
            case TupleForm():
                return self.tuple_or_object(form)
            case RecordForm(number):
                return self.records[number]
            case BoundForm(_, parts, make):
                return make([self.value(part) for part in parts])
            case ObjectForm(_, value):
                return value

    def tuple_or_object(self, form: TupleForm) -> Value:
        items = tuple(map(self.value, form.items))
        if form.kind is FixedList:
            return FixedList(items, origin=form.origin)
        if form.names is None:
            return Tuple(items, form.kind)
        if self.made is not None:
            return self.made(form, items)
        assert form.kind is not None
        return Struct(items, form.names, form.kind, form.origin)


def arrays_in(values: Sequence[Value]) -> Iterator[Array]:
    """The arrays among values, in order."""
    for value in values:
        if isinstance(value, Tuple | Struct):
            yield from arrays_in(value.items)
        elif isinstance(value, Array):
            yield value
        elif (bound := bound_in(value)) is not None:
            yield from arrays_in(bound.parts)


def flat(form: Form) -> Iterator[Form]:
    if isinstance(form, TupleForm):
        for item in form.items:
            yield from flat(item)
    elif isinstance(form, BoundForm):
        for part in form.parts:
            yield from flat(part)
    else:
        yield form
