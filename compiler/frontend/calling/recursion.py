"""Functions that call themselves: private functions of the module, and `activation.call` of them.

Everything else that is called is inlined. Where that meets a function that is being inlined already, the
function is noted, and the whole is lowered again: now each call of it is a call in the IR::

    def depth(child, i):                       func.func private @depth_1(%child, %i) -> index {
        if i < 0:                                ...
            return 0                             %record, %d = activation.call @depth_1(%child, %j)
        return 1 + depth(child, child[i])        func.return %d_1 : index }

A function is lowered once for each form of its arguments (types, ranks, layouts; functions and other
objects by identity). What its result is, follows from the paths that do not recurse: a first build leaves
the others out, and the builds that follow widen what was found, as for the variables of loops. What it
reads of enclosing functions and from outside are further arguments, which every call hands on.
"""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import DYNAMIC_INDEX, MemRefType, i1
from xdsl.ir import Attribute, SSAValue

from ....dialects import activation, array
from .. import scalars
from ..context import Frame, LateName, LocalFunction, Unready
from ..emitter import Emitter
from ..joins import Maybe, cast
from ..values import IR_TYPE, PYTHON_SCALARS, Array, NoneValue, Scalar, Static, Tuple, Value, Weak
from .arguments import Partial

if TYPE_CHECKING:
    from .activations import Activation
    from .calls import Calls

MOST_FORMS = 24
"""A function with more forms of its arguments than this does not settle."""


class Again(Exception):
    """What was learnt makes this build useless: lower once more."""


class Formless(Exception):
    """A value that no argument or result of a call can be. The text says what it is."""


# --- Forms ------------------------------------------------------------------------------------


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


@dataclass(frozen=True)
class SameForm:
    """Of a result: the argument of this number itself."""

    leaf: int


@dataclass(frozen=True)
class TupleForm:
    items: tuple[Form, ...]


@dataclass(frozen=True)
class ObjectForm:
    """An object known while compiling, told apart by `key`."""

    key: object
    value: NoneValue | Static = field(compare=False)


Form = ScalarForm | ArrayForm | SameForm | TupleForm | ObjectForm


def form_of(value: Value) -> Form:
    """The form of an argument or a result: what is known of its type, nothing of its value."""
    match value:
        case Scalar():
            return ScalarForm(value.type, None if value.python is None else value.python.type)
        case Array():
            return ArrayForm(general(value.type), value.dtype, value.whole)
        case Tuple(items) if getattr(value, "cls", None) is None:
            return TupleForm(tuple(map(form_of, items)))
        case NoneValue():
            return ObjectForm(None, value)
        case Static(found):
            return ObjectForm(key_of(found), value)
        case _:
            raise Formless("a value of this kind")


def key_of(found: Any) -> object:
    """What tells an object from others, in every build alike."""
    if isinstance(found, LocalFunction):
        return id(found.node), found.frame.path
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


def joined(a: Form, b: Form) -> Form:
    """The form of a result that is of either form; Formless where there is none."""
    if a == b:
        return a
    match a, b:
        case ScalarForm(), ScalarForm():
            python = [f.type for f in (a, b) if f.type in PYTHON_SCALARS]
            weak = {t for t in (a.weak, b.weak) if t is not None}
            type_ = scalars.join_types(a, b)  # pyright: ignore
            if type_ not in PYTHON_SCALARS:
                weak |= set(python)
            if len(weak) > 1:
                raise Formless(
                    f"a NumPy scalar on one path, {' and '.join(sorted(weak))} on others"
                )
            return ScalarForm(type_, next(iter(weak), None))
        case TupleForm(x), TupleForm(y) if len(x) == len(y):
            return TupleForm(tuple(joined(p, q) for p, q in zip(x, y, strict=True)))
        case _:
            raise Formless("of one type on one path and of another on another")


def ir_types(form: Form) -> list[Attribute]:
    """The types of the SSA values that a value of this form consists of."""
    match form:
        case ScalarForm(type_, weak):
            return [IR_TYPE[type_], *([] if weak is None else [i1])]
        case ArrayForm(type_):
            return [type_]
        case TupleForm(items):
            return [t for item in items for t in ir_types(item)]
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
        case TupleForm(items), Tuple():
            pairs = zip(value.items, items, strict=True)
            return [leaf for item, f in pairs for leaf in leaves(e, item, f)]
        case _:
            return []


def rebuilt(form: Form, parts: Iterator[SSAValue], arguments: Sequence[Value] = ()) -> Value:
    """The value of this form made of the next SSA values; `arguments` are those of the call."""
    match form:
        case ScalarForm(type_, weak):
            ssa = next(parts)
            python = None if weak is None else Weak(weak, next(parts))
            low = {"low": 0, "high": 1} if type_ in ("py_bool", "b1") else {}
            return Scalar(type_, ssa, python=python, **low)
        case ArrayForm(_, dtype, whole):
            return Array(next(parts), dtype, whole)
        case TupleForm(items):
            return Tuple(tuple(rebuilt(item, parts, arguments) for item in items))
        case SameForm(leaf):
            return list(arrays_in(arguments))[leaf]
        case ObjectForm(_, value):
            return value


def arrays_in(values: Sequence[Value]) -> Iterator[Array]:
    """The arrays among values, in order."""
    for value in values:
        if isinstance(value, Tuple):
            yield from arrays_in(value.items)
        elif isinstance(value, Array):
            yield value


# --- Calls ------------------------------------------------------------------------------------

Definition = ast.AST | CodeType | FunctionType
"""What tells functions apart: code, and of functions with closure variables the function."""

Key = tuple[object, ...]


@dataclass
class Registry:
    """The private functions of one build."""

    open: dict[Key, Activation] = field(default_factory=dict[Key, "Activation"])
    """Those that are being lowered, outermost first."""
    shared: dict[Key, Activation] = field(default_factory=dict[Key, "Activation"])
    """Those that any call with the same key may call."""
    every: list[Activation] = field(default_factory=list["Activation"])


def is_recursive(lowering: Calls, definition: Definition) -> bool:
    return definition in lowering.facts.recursive


def found(lowering: Calls, definition: Definition) -> Again:
    """A function calls itself: the next build knows."""
    lowering.facts.recursive.add(definition)
    lowering.facts.changed = True
    return Again()


def call(
    lowering: Calls,
    frame: Frame,
    body: Sequence[ast.stmt],
    definition: Definition,
    node: ast.AST,
) -> Value:
    """Call a recursive function whose arguments `frame` holds."""
    name = name_of(definition)
    if lowering.catches():
        raise lowering.refusal(
            node, f"{name}() calls itself: such a call within `try` is not compiled",
            "test the condition before the operation that raises",
        )  # fmt: skip
    forms = {p: argument_form(lowering, p, v, name, node) for p, v in frame.env.items()}
    place = None if frame.parent is None else frame.parent.path
    key: Key = (id(definition), place, tuple(forms.items()))
    registry = lowering.registry
    activation_ = registry.open.get(key) or registry.shared.get(key)
    if activation_ is None:
        activation_ = lowered(lowering, frame, body, definition, forms, key, node)
    outcome = lowering.facts.outcomes.get(key)
    if outcome is None:  # the paths that do not come here tell what the result is
        unknown = lowering.refusal(node, f"the result of {name}() depends on itself")
        lowering.facts.unready.append(unknown)
        raise Unready
    values = [v for v in frame.env.values() if not isinstance(v, Maybe)]
    pairs = zip(values, forms.values(), strict=True)
    operands = [leaf for value, form in pairs for leaf in leaves(lowering.e, value, form)]
    frames = max(len(lowering.calls), 1)
    op = activation.CallOp(activation_.name, operands, ir_types(outcome), frames)
    lowering.e.insert(op)
    op.record.name_hint = f"{name}_record"
    return rebuilt(outcome, iter(op.called), values)


def argument_form(lowering: Calls, parameter: str, value: Any, name: str, node: ast.AST) -> Form:
    try:
        return form_of(value)
    except Formless as reason:
        raise lowering.refusal(
            node, f"{name}() calls itself, and its argument `{parameter}` is {reason}",
            "give it numbers, arrays, tuples of them, and functions",
        ) from None  # fmt: skip


def lowered(
    lowering: Calls,
    frame: Frame,
    body: Sequence[ast.stmt],
    definition: Definition,
    forms: dict[str, Form],
    key: Key,
    node: ast.AST,
) -> Activation:
    """The private function for arguments of these forms."""
    from .activations import Activation

    facts, registry, name = lowering.facts, lowering.registry, name_of(definition)
    if sum(a.definition is definition for a in registry.every) >= MOST_FORMS:
        raise lowering.refusal(
            node, f"{name}() calls itself with arguments of ever new types",
            "give the arguments the same types in every call",
        )  # fmt: skip
    number = facts.numbers.setdefault(key, len(facts.numbers) + 1)
    symbol = f"{name}_{len(registry.every) + 1}"
    made = Activation(lowering, symbol, definition, list(forms.values()), -number)
    registry.every.append(made)
    registry.open[key] = made
    result = made.lower(frame, body, list(forms))
    del registry.open[key]
    known = facts.outcomes.get(key)
    try:
        outcome = made.outcome(result)
        if known is not None and outcome is not None:
            outcome = joined(known, outcome)
    except Formless as reason:
        raise lowering.refusal(
            node, f"{name}() calls itself, and its result is {reason}",
            "return numbers of one type, or fill an array that is passed",
        ) from None  # fmt: skip
    if outcome is None:  # no path returns: it raises, or calls itself for ever
        outcome = known or ObjectForm(None, NoneValue())
        result = NoneValue()
    if outcome != known:
        facts.outcomes[key] = outcome
        facts.changed = True
    if facts.changed:
        raise Again
    made.finish(result, outcome)
    if is_shared(frame, forms.values()):
        registry.shared[key] = made
    return made


def is_shared(frame: Frame, forms: Sequence[Form] | Any) -> bool:
    """True where the function reads nothing of the functions around: then all calls may share it."""
    if frame.parent is not None:
        return False
    return not any(
        isinstance(f, ObjectForm) and isinstance(f.value, Static)
        and isinstance(f.value.object, LocalFunction)
        for form in forms
        for f in flat(form)
    )  # fmt: skip


def flat(form: Form) -> Iterator[Form]:
    if isinstance(form, TupleForm):
        for item in form.items:
            yield from flat(item)
    else:
        yield form


def name_of(definition: Definition) -> str:
    """The function's name, as a symbol."""
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
        case Tuple(items):
            return replace(value, items=tuple(imported(item, place) for item in items))
        case Static(Partial(function, args, kwargs)):
            return Static(
                Partial(
                    imported(function, place),
                    tuple(imported(a, place) for a in args),
                    {k: imported(a, place) for k, a in kwargs.items()},
                )
            )
        case NoneValue() | Static(LateName()):
            return value
        case Static(found):
            key_of(found)
            return value
        case _:
            raise Formless("a value of this kind")
