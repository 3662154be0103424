"""Recursive functions: private functions of the module, and `activation.call` of them.

Everything else that is called is inlined. Where that meets a function that is being inlined already, the
function is noted, and the whole is lowered again: now each call of it is a call in the IR::

    def depth(child, i):                       func.func private @depth_1(%child, %i) -> index {
        if i < 0:                                ...
            return 0                             %record, %d = activation.call @depth_1(%child, %j)
        return 1 + depth(child, child[i])        func.return %d_1 : index }

A function is lowered once for each form of its arguments (`forms`). What its outcome is, follows from the
paths that do not recurse: a first build leaves the others out, and the builds that follow widen what was
found, as for the variables of loops. What it reads of enclosing functions and from outside are further
arguments, which every call hands on. A call in a `try` is one of a function that tells its caller what it
raised (`calls_in_try`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any

from xdsl.ir import SSAValue

from ....dialects import activation
from ...diagnostics import CompileError
from ...names import legal
from ..data.fields import classes_in
from ..data.list_parameters import note_changes
from ..frames import Frame, LateName, LocalFunction, Unready
from ..joins import Maybe
from ..values import (
    Array,
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
from . import calls_in_try
from .calls_in_try import Raised, Status
from .forms import (
    Form,
    Formless,
    Making,
    ObjectForm,
    arrays_in,
    bound_in,
    flat,
    ir_types,
    joined,
    key_of,
    leaves,
    strided,
)
from .object_arguments import Passing, RecordType, new_object
from .return_buffers import Buffers, receive

if TYPE_CHECKING:
    from .activations import Activation
    from .calls import Calls

MOST_FORMS = 24
"""A function with more forms of its arguments than this does not settle."""


class Again(Exception):
    """What was learnt makes this build useless: lower once more."""


Place = tuple[int, Any]
"""A field of an object that a call passes: the object's number, the field."""


@dataclass(frozen=True)
class Outcome:
    """What a call leaves: its result (None where no path is known to return), the fields that it assigns,
    the exceptions that it tells its caller of."""

    result: Form | None
    fields: tuple[tuple[Place, Form], ...] = ()
    raises: tuple[Raised, ...] = ()

    def joined(self, other: Outcome) -> Outcome:
        result = self.result or other.result
        if self.result is not None and other.result is not None:
            result = joined(self.result, other.result)
        fields = dict(self.fields)
        for place, form in other.fields:
            fields[place] = joined(fields[place], form) if place in fields else form
        raises = tuple(dict.fromkeys((*self.raises, *other.raises)))
        return Outcome(result, tuple(fields.items()), raises)

    def forms(self) -> list[Form]:
        """The forms of all that is returned."""
        return [*(f for _, f in self.fields), *([] if self.result is None else [self.result])]


# --- Calls ------------------------------------------------------------------------------------

Definition = ast.AST | CodeType | FunctionType
"""What tells functions apart: code, and of functions with closure variables the function."""


def definition_of(function: FunctionType) -> Definition:
    """Two functions of one code differ by what they close over, as the wrappers that a decorator makes."""
    return function if function.__closure__ else function.__code__


Key = tuple[object, ...]


@dataclass
class Registry:
    """The private functions of one build."""

    buffers: Buffers
    open: dict[Key, Activation] = field(default_factory=dict[Key, "Activation"])
    """Those that are being lowered, outermost first."""
    shared: dict[Key, Activation] = field(default_factory=dict[Key, "Activation"])
    """Those that any call with the same key may call."""
    every: list[Activation] = field(default_factory=list["Activation"])
    refused: CompileError | None = None
    """Why there may be none."""


def is_recursive(lowering: Calls, definition: Definition) -> bool:
    return definition in lowering.facts.recursive


def found(lowering: Calls, definition: Definition) -> Again:
    """A function is recursive: the next build knows."""
    lowering.facts.recursive.add(definition)
    lowering.facts.changed = True
    return Again()


@dataclass
class Site:
    """One call of a recursive function, whose arguments `frame` holds."""

    lowering: Calls
    frame: Frame
    body: Sequence[ast.stmt]
    definition: Definition
    node: ast.AST
    forms: dict[str, Form] = field(default_factory=dict[str, Form])
    types: tuple[RecordType, ...] = ()

    @property
    def name(self) -> str:
        return name_of(self.definition)  # pyright: ignore[reportArgumentType]

    def values(self) -> list[Value]:
        return [v for v in self.frame.env.values() if not isinstance(v, Maybe)]


def call(
    lowering: Calls,
    frame: Frame,
    body: Sequence[ast.stmt],
    definition: Definition,
    node: ast.AST,
) -> Value:
    """Call a recursive function."""
    if lowering.registry.refused is not None:
        raise lowering.registry.refused
    site = Site(lowering, frame, body, definition, node)
    passing = described(site)
    values = [*site.values(), *passing.values()]
    forms = [*site.forms.values(), *(f for t in site.types for _, f in t.fields)]
    catches = calls_in_try.is_asked(lowering)
    place = None if frame.parent is None else frame.parent.path
    key: Key = (id(definition), place, tuple(site.forms.items()), site.types, catches)
    registry = lowering.registry
    made = registry.open.get(key) or registry.shared.get(key)
    if made is None:
        made = lowered(site, passing, key)
    outcome = known_outcome(lowering, key)
    if outcome is None:  # the paths that do not come here tell what the result is
        unknown = lowering.refusal(node, f"the result of {site.name}() depends on itself")
        lowering.facts.unready.append(unknown)
        raise Unready
    frames = max(len(lowering.calls), 1)
    if catches:
        calls_in_try.raise_when_too_deep(lowering, frames)
    pairs = zip(values, forms, strict=True)
    operands = [leaf for value, form in pairs for leaf in leaves(lowering.e, value, form)]
    returned = outcome.forms()
    types = [
        *calls_in_try.result_types(outcome.raises, catches),
        *(t for f in returned for t in ir_types(f)),
    ]
    op = activation.CallOp(made.name, operands, types, frames)
    lowering.e.insert(op)
    op.record.name_hint = legal(f"{site.name}_record")
    note_changes(lowering.lists.values())
    return after(site, passing, outcome, iter(op.called), list(arrays_in(values)))


def known_outcome(lowering: Calls, key: Key) -> Outcome | None:
    """What is known of a call's outcome. That it never returns may follow from what is not known yet."""
    known = lowering.facts.outcomes
    outcome = known.get(key)
    if outcome is None or outcome.result is not None:
        return outcome
    return outcome if all(k in known for k in lowering.registry.open) else None


def described(site: Site) -> Passing:
    """What the call passes: forms of its arguments, and objects."""
    passing = Passing(site.lowering)
    if site.frame.parent is not None and isinstance(site.definition, ast.AST):
        around = LocalFunction(site.definition, site.frame.parent, (), ())  # pyright: ignore
        passing.capture(around)
    for parameter, value in site.frame.env.items():
        passing.capture_all(value)
        try:
            form = passing.form(value)  # pyright: ignore
            is_strided = (site.definition, parameter) in site.lowering.facts.strided
            site.forms[parameter] = strided(form) if is_strided else form
        except Formless as reason:
            lowering = site.lowering
            lowering.use_heap(*classes_in([*site.values(), *passing.records]))
            raise unpassable(site, f"its argument `{parameter}` is {reason}") from None
    try:
        site.types = passing.types()
    except Formless as reason:
        site.lowering.use_heap(*classes_in([*site.values(), *passing.records]))
        raise unpassable(site, f"an object that it is given holds {reason}") from None
    return passing


def unpassable(site: Site, text: str) -> Exception:
    return site.lowering.refusal(
        site.node, f"{site.name}() is recursive, and {text}",
        "give it numbers, arrays, lists of numbers, objects and tuples of them, and functions",
    )  # fmt: skip


def after(
    site: Site,
    passing: Passing,
    outcome: Outcome,
    parts: Iterator[SSAValue],
    arrays: Sequence[Array],
) -> Value:
    """What follows a call: fields are assigned, exceptions raised, the result is made."""
    lowering = site.lowering
    status = Status.taken(parts, outcome.raises) if calls_in_try.is_asked(lowering) else None
    make = Making(
        parts,
        passing.records,
        lambda form, parts: receive(lowering, form, parts, arrays),
        lambda form, items: new_object(lowering, form, items),
    )
    for (number, key), form in outcome.fields:
        record = passing.records[number]
        lowering.objects.give(record, key, lowering.frame.env, make.value(form))
    rest = list(parts)
    if status is not None:
        status.raise_again(lowering)
    if outcome.result is None:  # no path of the callee returns: nothing of the statement follows
        lowering.dead = True
        if lowering.e.block in (lowering.statement_block, lowering.arm_block):
            raise Unready
        return NoneValue()
    make.parts = iter(rest)
    return make.value(outcome.result)


def lowered(site: Site, passing: Passing, key: Key) -> Activation:
    """The private function for arguments of these forms."""
    from .activations import Activation

    lowering, name = site.lowering, site.name
    facts, registry = lowering.facts, lowering.registry
    if sum(a.definition is site.definition for a in registry.every) >= MOST_FORMS:
        lowering.use_heap(*classes_in([*site.values(), *passing.records]))
        raise lowering.refusal(
            site.node, f"{name}() is recursive, and each call has new argument types",
            "give the arguments the same types in every call; of lists, hand on one: append, call, pop",
        )  # fmt: skip
    learn_layouts(site)
    number = facts.numbers.setdefault(key, len(facts.numbers) + 1)
    symbol = legal(f"{name}_{len(registry.every) + 1}")
    known = facts.outcomes.get(key)
    made = Activation(site, passing.records, symbol, -number, known)
    registry.every.append(made)
    registry.open[key] = made
    try:
        made.lower()
        del registry.open[key]
        outcome = made.outcome()
        outcome = outcome if known is None else known.joined(outcome)
    except Formless as reason:
        result = [] if made.result is None else [made.result]
        lowering.use_heap(*classes_in([*site.values(), *passing.records, *result]))
        raise lowering.refusal(
            site.node, f"{name}() is recursive, and its result is {reason}",
            "return numbers, new arrays and objects, or arguments themselves; a copy of a view: v.copy()",
        ) from None  # fmt: skip
    if outcome != known:
        facts.outcomes[key] = outcome
        facts.changed = facts.provisional = True
    if not facts.changed:
        made.finish(outcome)
    if facts.changed or is_shared(site):
        registry.shared[key] = made
    return made


def learn_layouts(site: Site) -> None:
    """A function that hands itself strided arrays is one for strided arrays: fewer forms."""
    facts, definition = site.lowering.facts, site.definition
    for around in site.lowering.registry.open.values():
        if around.definition is not definition:
            continue
        for parameter, form in site.forms.items():
            outer = around.site.forms.get(parameter)
            if outer is not None and outer != form and strided(outer) == strided(form):
                known = definition, parameter
                facts.changed |= known not in facts.strided
                facts.strided.add(known)


def is_shared(site: Site) -> bool:
    """True where the function reads nothing of the functions around: then all calls may share it."""
    if site.frame.parent is not None or any(t.serial is not None for t in site.types):
        return False
    return not any(
        isinstance(f, ObjectForm)
        and isinstance(f.value, Static)
        and isinstance(f.value.object, LocalFunction)
        for form in (*site.forms.values(), *(f for t in site.types for _, f in t.fields))
        for f in flat(form)
    )


def name_of(definition: Definition) -> str:
    """The function's name."""
    called = definition.__code__ if isinstance(definition, FunctionType) else definition
    name = getattr(called, "co_name", getattr(called, "name", "lambda"))
    return name if name.isidentifier() else "lambda"


def imported(value: Any, place: Activation) -> Any:
    """A value of a function around, as an activation sees it: a constant, or one more argument."""
    match value:
        case Scalar() if value.constant is not None:
            again = place.emitter.constant(value.constant, value.type)
            return replace(again, low=value.low, high=value.high)
        case Scalar():
            python = value.python
            if python is not None:
                python = Weak(python.type, place.handed(python.when))
            return replace(value, ssa=place.handed(value.ssa), python=python)
        case Array():
            return replace(value, memref=place.handed(value.memref))
        case Tuple(items) | Struct(items):
            return replace(value, items=tuple(imported(item, place) for item in items))
        case Item(at=at) if value.store.is_heap:
            return replace(value, at=place.handed(at))
        case Reference(number, (none, item)):
            return Reference(place.handed(number), (none, imported(item, place)))
        case Record():
            place.entered.number(value)
            return value
        case NoneValue() | Static(LateName()):
            return value
        case Static() if (bound := bound_in(value)) is not None:
            return bound.make([imported(part, place) for part in bound.parts])
        case Static(found):
            key_of(found)
            return value
        case _:
            raise Formless("a value of this kind")
