"""Objects that a call of a recursive function passes: among its arguments, and captured ones.

In the frontend an object is an identity, and its fields are names of the frame that runs. A call hands the
fields over as arguments, the callee binds them to the fields of objects of its own, and what it has assigned
comes back as results, which the caller's fields are then bound to::

    step(s, i - 1)            %r, %t = activation.call @step_1(%s_x, %s_t, %i_1)        s.t is %t

An object of a function around is that object in the callee, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from ..context import same_binding
from ..data.fields import Journal, is_frozen
from ..emitter import Emitter
from ..frames import Frame, LocalFunction
from ..joins import Binding, Maybe
from ..library import read_only
from ..values import Array, Item, Record, Static, Struct, Tuple, Value
from .forms import Form, Formless, Making, TupleForm, bound_in, form_of

if TYPE_CHECKING:
    from .activations import Activation
    from .calls import Calls


AMBIGUOUS = "an object that it was given or another one, which depends on the path"


@dataclass(frozen=True)
class RecordType:
    """What is known of an object that a call passes. `serial`: which it is, where it is captured."""

    cls: type
    name: str
    serial: int | None
    origin: int | None
    is_snapshot: bool
    fields: tuple[tuple[Any, Form], ...]


@dataclass
class Passing:
    """The objects that one call passes, in order."""

    lowering: Calls
    records: list[Record] = field(default_factory=list[Record])
    captured: set[int] = field(default_factory=set[int])
    """The serial numbers of those that the callee knows as what they are."""

    def number(self, record: Record) -> int:
        if record not in self.records:
            self.records.append(record)
        return self.records.index(record)

    def form(self, value: Value) -> Form:
        is_read_only = partial(read_only.is_certain, self.lowering.e)
        return form_of(value, self.number, is_read_only=is_read_only)

    def capture(self, function: LocalFunction) -> None:
        """The objects that a nested function reads are among them."""
        for record in captured_records(function, set()):
            self.number(record)
            self.captured.add(record.serial)

    def capture_all(self, value: Binding) -> None:
        """So are those that the nested functions among the arguments read."""
        match value:
            case Static(LocalFunction() as function):
                self.capture(function)
            case Tuple(items) | Struct(items):
                for item in items:
                    self.capture_all(item)
            case Static():
                bound = bound_in(value)
                for part in () if bound is None else bound.parts:
                    self.capture_all(part)
            case _:
                pass

    def types(self) -> tuple[RecordType, ...]:
        """The objects, and with them those in their fields."""
        found = list[RecordType]()
        while len(found) < len(self.records):
            found.append(self.type_of(self.records[len(found)]))
        return tuple(found)

    def type_of(self, record: Record) -> RecordType:
        serial = record.serial if record.serial in self.captured else None
        if serial is not None:  # what it holds is captured with it
            inner = (b for _, b in self.fields(record) if isinstance(b, Record))
            self.captured |= {b.serial for b in inner}
        fields = tuple((key, self.form(value)) for key, value in self.fields(record))
        is_snapshot = record.serial in self.lowering.objects.snapshots
        return RecordType(record.cls, record.name, serial, record.origin, is_snapshot, fields)

    def fields(self, record: Record) -> Iterator[tuple[Any, Value]]:
        objects, env = self.lowering.objects, self.lowering.frame.env
        for key in objects.keys[record.serial]:
            binding = env.get(objects.name(record, key))
            if isinstance(binding, Maybe):
                raise Formless(f"an object of which the path decides whether it has `{key}`")
            if binding is not None:
                yield key, binding

    def values(self) -> list[Value]:
        """The values of all fields."""
        return [value for record in self.records for _, value in self.fields(record)]


def captured_records(function: LocalFunction, seen: set[object]) -> Iterator[Record]:
    """The objects that a nested function, or one that it names, finds in the functions around."""
    if function.node in seen:
        return
    seen.add(function.node)
    for name in sorted({n.id for n in ast.walk(function.node) if isinstance(n, ast.Name)}):
        frame: Frame | None = function.frame
        while frame is not None and name not in frame.locals:
            frame = frame.parent
        if frame is not None and name in frame.shared:
            yield frame.shared[name]
        elif frame is not None:
            yield from records_in(frame.env.get(name), seen)


def records_in(binding: Binding | None, seen: set[object]) -> Iterator[Record]:
    match binding:
        case Maybe(value, _):
            yield from records_in(value, seen)
        case Item():
            pass
        case Record():
            yield binding
        case Tuple(items) | Struct(items):
            for item in items:
                yield from records_in(item, seen)
        case Static(LocalFunction() as function):
            yield from captured_records(function, seen)
        case Static():
            bound = bound_in(binding)
            for part in () if bound is None else bound.parts:
                yield from records_in(part, seen)
        case _:
            pass


class HandedJournal(Journal):
    """The journal of assignments to the caller's objects, an argument of an activation that writes it."""

    def __init__(self, outer: Journal, place: Activation) -> None:
        super().__init__(outer.memref, outer.capacity, outer.slots)
        self.root: SSAValue = getattr(outer, "root", outer.memref)
        self.place = place

    def note(self, e: Emitter, place: tuple[int, Any], value: Value) -> bool:
        self.memref = self.place.handed(self.root)
        return super().note(e, place, value)


@dataclass
class Entered:
    """The objects of a call, as the callee sees them."""

    place: Activation
    types: Sequence[RecordType]
    known: Sequence[Record]
    """Those of the caller."""
    records: list[Record] = field(default_factory=list[Record])
    initial: list[dict[Any, Value]] = field(default_factory=list[dict[Any, Value]])

    def __post_init__(self) -> None:
        objects, entry = self.place.lowering.objects, self.place.entry
        for type_, record in zip(self.types, self.known, strict=True):
            if type_.serial is None:
                record = objects.make(type_.cls, type_.name, entry, type_.origin)
                if type_.is_snapshot:
                    objects.snapshots.add(record.serial)
            self.records.append(record)

    def bind(self, env: dict[str, Binding], make: Making) -> None:
        """Bind the fields to the next arguments."""
        objects = self.place.lowering.objects
        for type_, record in zip(self.types, self.records, strict=True):
            values = {key: make.value(form) for key, form in type_.fields}
            self.initial.append(values)
            for key, value in values.items():
                objects.give(record, key, env, value)

    def assigned(self, env: dict[str, Binding]) -> Iterator[tuple[int, Any, Value]]:
        """The fields that the callee has assigned: of which object, and what they are now."""
        objects = self.place.lowering.objects
        for number, record in enumerate(self.records):
            for key in objects.keys[record.serial]:
                binding = env.get(objects.name(record, key))
                if isinstance(binding, Maybe):
                    raise Formless(f"an object of which the path decides whether it has `{key}`")
                before = self.initial[number].get(key)
                if binding is not None and not same_binding(binding, before):
                    yield number, key, binding

    def number(self, record: Record) -> int:
        if record not in self.records:
            raise Formless("an object that a function around has made")
        return self.records.index(record)

    def leaving(self, value: Value, tag: tuple[Any, ...], seen: list[Record]) -> Value:
        """A result: new arrays on their way, new objects as what is in them."""
        sender, lowering = self.place.sender, self.place.lowering

        def inner(items: Sequence[Value]) -> tuple[Value, ...]:
            return tuple(self.leaving(item, (*tag, k), seen) for k, item in enumerate(items))

        match value:
            case Array():
                return sender.send(value, tag)
            case Item():
                return value
            case Tuple(items):
                made = inner(items)
                return replace(value, items=made)
            case Struct(items, names, cls, origin):
                return Struct(inner(items), names, cls, origin)
            case Record() if value in self.records:
                self.require_one_kind(value.cls, tag, new=False)
                return value
            case Record():
                if value in seen:
                    raise Formless("an object in two places")
                self.require_one_kind(value.cls, tag, new=True)
                seen.append(value)
                self.new.append(value)
                copy = lowering.snapshot(value, lowering.frame.env, mark=False)
                return self.leaving(copy, tag, seen)
            case _:
                return value

    new: list[Record] = field(default_factory=list[Record])
    """The objects made here that are returned."""

    kinds: dict[object, bool] = field(default_factory=dict[object, bool])
    """Whether the object at a place in the results is new."""

    def require_one_kind(self, cls: type, tag: object, *, new: bool) -> None:
        if self.kinds.setdefault((cls, tag), new) != new:
            raise Formless(AMBIGUOUS)

    def check(self, result: Form | None, assigned: Sequence[Form]) -> None:
        """Whose objects the results are must be certain."""
        snapshots = self.place.lowering.objects.snapshots
        own = {r.cls for r in self.records if r.serial in snapshots}
        found = [] if result is None else list(objects_in(result))
        kept = [o for form in assigned for o in objects_in(form)]
        if own & {o.kind for o in (*found, *kept)}:
            raise Formless(AMBIGUOUS)
        if kept and found:
            raise Formless("an object that an argument may hold, too")


def objects_in(form: Form) -> Iterator[TupleForm]:
    """The new objects with an identity in a result."""
    if isinstance(form, TupleForm):
        if form.names is not None and form.kind is not None and not is_frozen(form.kind):
            yield form
        for item in form.items:
            yield from objects_in(item)


def new_object(lowering: Calls, form: TupleForm, items: tuple[Value, ...]) -> Value:
    """An object that a call has made, for its caller."""
    assert form.kind is not None
    assert form.names is not None
    if is_frozen(form.kind):
        return Struct(items, form.names, form.kind, form.origin)
    record = lowering.objects.make(form.kind, form.kind.__name__, lowering.e.block)
    for key, item in zip(form.names, items, strict=True):
        lowering.objects.give(record, key, lowering.frame.env, item)
    return record
