"""Values whose kind is known at run time only: one function or another, None or a number.

    g = math.sin if x > 0 else math.cos        %g = scf.if %c -> index { 0 } else { 1 }
    return g(x)                                scf.if (%g == 0) { sin } else { cos }

    best = None                                (0, placeholder)
    for v in x:
        if best is None or v < best:           in the second operand, best is a float
            best = v                           (1, %v)

A *choice* is the number of the value that it is, and all that it may be; at most one of those is anything
else than an object known while compiling. What is done with a choice of functions, is done in one branch for
each of them; None must be told from the rest by a test, which narrows the name.
"""

from __future__ import annotations

import ast
import enum
import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...dialects import array
from .scalars import is_bool, is_float, unary
from .values import Choice, NoneValue, Record, Reference, Scalar, Static, Value

if TYPE_CHECKING:
    from .context import Context
    from .emitter import Emitter
    from .frames import LocalFunction
    from .joins import ChoiceT, Template
    from .operators import Operators

MOST_OPTIONS = 16


class Undecided(Exception):
    """What is asked of a choice differs from one of its values to another."""


# Forms.


def joined(a: Template, b: Template) -> ChoiceT | None:
    """The form that is of either; None where no choice is made between such."""
    from .joins import ChoiceT, ClosureT, FixedT, join

    if not isinstance(a, FixedT | ChoiceT) and not isinstance(b, FixedT | ChoiceT):
        return None
    options = [with_forms(o) for o in options_of(a)]
    for other in map(with_forms, options_of(b)):
        place = place_of(options, other)
        if place is None:
            options.append(other)
        elif not isinstance(other, FixedT):
            options[place] = join(options[place], other)
    others = [o for o in options if not isinstance(o, FixedT | ClosureT)]
    fixed = [o.value for o in options if isinstance(o, FixedT)]
    if not all(map(is_choosable, fixed)) or not 2 <= len(options) <= MOST_OPTIONS:
        return None
    if others and (len(others) > 1 or not all(isinstance(v, NoneValue) for v in fixed)):
        return None
    return ChoiceT(tuple(options))


def options_of(t: Template) -> tuple[Template, ...]:
    from .joins import ChoiceT

    return t.options if isinstance(t, ChoiceT) else (t,)


def place_of(options: Sequence[Template], wanted: Template) -> int | None:
    """Which option a form is one of: the same object, or the one that is none."""
    from .joins import ClosureT, FixedT

    for k, option in enumerate(options):
        if isinstance(option, FixedT) and isinstance(wanted, FixedT):
            if is_one(option.value, wanted.value):
                return k
        elif isinstance(option, ClosureT) or isinstance(wanted, ClosureT):
            if (
                isinstance(option, ClosureT)
                and isinstance(wanted, ClosureT)
                and option.place == wanted.place
            ):
                return k
        elif not isinstance(option, FixedT) and not isinstance(wanted, FixedT):
            return k
    return None


def with_forms(t: Template) -> Template:
    """The form of a nested function by those of its defaults, where it has some."""
    from .frames import LocalFunction
    from .joins import ClosureT, FixedT, Mismatch, template_of

    found = t.value.object if isinstance(t, FixedT) and isinstance(t.value, Static) else None
    if not isinstance(found, LocalFunction) or found.frame.done or not defaults_of(Static(found)):
        return t
    try:
        items = tuple(with_forms(template_of(v)) for v in defaults_of(Static(found)))
    except Mismatch:
        return t
    return ClosureT(items, place=(id(found.node), id(found.frame)), function=found)


def defaults_of(value: Static) -> tuple[Value, ...]:
    """The defaults of a nested function: of its parameters, then of those that are keywords only."""
    function = value.object
    return (*function.defaults, *(v for v in function.keyword_defaults if v is not None))


def with_defaults(function: LocalFunction, values: Sequence[Value]) -> Static:
    """The function with these defaults."""
    count = len(function.defaults)
    keywords = iter(values[count:])
    own = tuple(None if v is None else next(keywords) for v in function.keyword_defaults)
    return Static(replace(function, defaults=tuple(values[:count]), keyword_defaults=own))


def is_one(a: Value, b: Value) -> bool:
    """True for one object, known while compiling."""
    if not isinstance(a, Static) or not isinstance(b, Static):
        return a is b or (isinstance(a, NoneValue) and isinstance(b, NoneValue))
    x, y = a.object, b.object
    if method_parts(x) is not None and method_parts(y) is not None:
        pairs = zip(method_parts(x) or (), method_parts(y) or (), strict=True)
        return all(p is q for p, q in pairs)
    return x is y or (isinstance(x, str) and isinstance(y, str) and x == y)


def method_parts(found: Any) -> tuple[Any, Any] | None:
    """The object and the function of a method of an object with an identity."""
    receiver = getattr(found, "receiver", None)
    return (receiver, found.function) if isinstance(receiver, Record) else None


def is_choosable(value: Value) -> bool:
    """True for None, and for objects that are the same wherever they are read."""
    from .frames import LocalFunction

    if isinstance(value, NoneValue):
        return True
    found = value.object if isinstance(value, Static) else None
    if isinstance(found, LocalFunction):
        return not (found.frame.done or found.defaults or any(found.keyword_defaults))
    known = FunctionType | BuiltinFunctionType | MethodType | np.ufunc | type | str | enum.Enum
    if isinstance(found, known | functools.partial) or method_parts(found) is not None:
        return True
    return callable(found) and hasattr(found, "__wrapped__")


def is_lasting(t: Template) -> bool:
    """False where a form holds a function of this build, which the next does not know."""
    from .frames import LocalFunction
    from .joins import ChoiceT, ClosureT, FixedT, MaybeT, TupleT

    match t:
        case ChoiceT(options):
            return not any(
                isinstance(o, ClosureT)
                or (
                    isinstance(o, FixedT)
                    and isinstance(getattr(o.value, "object", None), LocalFunction)
                )
                for o in options
            )
        case ClosureT():
            return False
        case TupleT(items):
            return all(map(is_lasting, items))
        case MaybeT(inner):
            return is_lasting(inner)
        case _:
            return True


def outlives_build(t: Template) -> bool:
    """False where a form holds a function or an iterator of this build, and no value besides."""
    from .frames import LocalFunction
    from .iterables import Iterable
    from .joins import FixedT, MaybeT

    if isinstance(t, MaybeT):
        return outlives_build(t.inner)
    found = t.value.object if isinstance(t, FixedT) and isinstance(t.value, Static) else None
    is_generator = getattr(found, "type", None) is GeneratorType
    return is_lasting(t) and not is_generator and not isinstance(found, LocalFunction | Iterable)


def coerced(e: Emitter, value: Value | None, t: ChoiceT) -> list[SSAValue]:
    """The SSA values of `value` in the form of a choice: its number, and those of all options."""
    from .joins import coerced as one
    from .joins import template_of

    given = value.options if isinstance(value, Choice) else () if value is None else (value,)
    places = [place_of(t.options, with_forms(template_of(option))) or 0 for option in given]
    number = e.index(places[0] if places else 0)
    if isinstance(value, Choice):
        number = renumbered(e, value.number, places)
    by_place = dict(zip(places, given, strict=True))
    pairs = enumerate(t.options)
    return [number, *(leaf for k, option in pairs for leaf in one(e, by_place.get(k), option))]


def renumbered(e: Emitter, number: SSAValue, places: Sequence[int]) -> SSAValue:
    """The number, where option k is at `places[k]` now."""
    if list(places) == list(range(len(places))):
        return number
    result = e.index(places[-1])
    for k in reversed(range(len(places) - 1)):
        result = e.emit(arith.SelectOp(is_number(e, number, k), e.index(places[k]), result))
    return result


def is_number(e: Emitter, number: SSAValue, k: int) -> SSAValue:
    return e.emit(arith.CmpiOp(number, e.index(k), "eq"))


def is_option(e: Emitter, choice: Choice, k: int) -> SSAValue:
    """Whether it is option k."""
    if isinstance(choice, Reference):
        return e.emit(arith.CmpiOp(choice.number, e.index(0), "sge" if k else "slt"))
    return is_number(e, choice.number, k)


# What is done with a choice.


def each(lowering: Context, choice: Choice, use: Callable[[Value], Value]) -> Value:
    """`use` of the value that it is: one branch for each that it may be."""
    last = len(choice.options) - 1

    def from_on(k: int) -> Value:
        if k == last:
            return use(choice.options[k])
        test = Scalar("py_bool", is_option(lowering.e, choice, k))
        arms = lambda: use(choice.options[k]), lambda: from_on(k + 1)
        return lowering.chosen(test, arms)

    return from_on(0)


def is_any_of(e: Emitter, choice: Choice, wanted: Iterable[bool]) -> Scalar:
    """Whether it is one of those options that are wanted."""
    places = [k for k, is_wanted in enumerate(wanted) if is_wanted]
    if len(places) in (0, len(choice.options)):
        return e.constant(bool(places), "py_bool")
    tests = (is_option(e, choice, k) for k in places)
    found = functools.reduce(lambda a, b: e.emit(arith.OrIOp(a, b)), tests)
    return Scalar("py_bool", found, None, 0, 1)


def compared(lowering: Operators, op: ast.cmpop, lhs: Value, rhs: Value) -> Value:
    """`is` and `==` of choices, with objects that are known while compiling; `==` of numbers or None."""
    name = type(op).__name__
    if (found := lowering.references_compared(name, lhs, rhs)) is not None:
        return found
    choice, other = (lhs, rhs) if isinstance(lhs, Choice) else (rhs, lhs)
    assert isinstance(choice, Choice)
    same = name in ("Is", "Eq")
    if is_known(choice) and isinstance(other, Choice) and is_known(other):
        found = same_option(lowering.e, choice, other)
        return found if same else unary(lowering.e, "Not", found)
    if isinstance(other, NoneValue) or (is_known(choice) and isinstance(other, Static)):
        alike = [is_one(option, other) for option in choice.options]
        return is_any_of(lowering.e, choice, [a is same for a in alike])
    numbers = all(isinstance(o, Scalar | NoneValue) for o in choice.options)
    if numbers and name in ("Eq", "NotEq") and isinstance(other, Scalar | Choice):
        return each(lowering, choice, lambda o: lowering.compare_values(op, o, other))
    raise lowering.refusal(None, *unknown(choice))


def is_known(choice: Choice) -> bool:
    """True where all that it may be is known while compiling."""
    return all(isinstance(o, NoneValue | Static) for o in choice.options)


def same_option(e: Emitter, a: Choice, b: Choice) -> Scalar:
    """Whether two choices of known objects are one object."""
    found = e.constant(False, "py_bool").ssa
    for k, option in enumerate(a.options):
        there = is_any_of(e, b, [is_one(option, other) for other in b.options])
        here = e.emit(arith.AndIOp(is_number(e, a.number, k), there.ssa))
        found = e.emit(arith.OrIOp(found, here))
    return Scalar("py_bool", found, None, 0, 1)


def unknown(choice: Choice) -> tuple[str, str]:
    """Why a choice is not computed with, and the way out."""
    from .joins import describe, template_of

    shown = " or ".join(dict.fromkeys(describe(template_of(o)) for o in choice.options))
    way_out = "test `is None` first" if has_none(choice) else "call it, or use it in each branch"
    return f"this is {shown}, known at run time only", way_out


def has_none(choice: Choice) -> bool:
    return any(isinstance(option, NoneValue) for option in choice.options)


def narrowed(choice: Choice, is_none: bool) -> Value:
    """The choice where it is known whether it is None."""
    left = [o for o in choice.options if isinstance(o, NoneValue) is is_none]
    return left[0] if len(left) == 1 else choice


# None where a value is asked for.


def present(lowering: Context, value: Value, text: str, exception: str = "TypeError") -> Value:
    """What a value is unless it is None, for which Python's exception is raised."""
    if isinstance(value, NoneValue):
        raise_always(lowering, text, exception)
    if not isinstance(value, Choice):
        return value
    known = [isinstance(option, NoneValue) for option in value.options]
    if len(known) != 2 or sum(known) != 1:
        raise lowering.refusal(None, *unknown(value))
    absent = is_option(lowering.e, value, known.index(True))
    lowering.e.insert(array.RaiseIfOp(absent, exception, text))
    return value.options[known.index(False)]


def operands(
    lowering: Context, symbol: str, lhs: Value, rhs: Value, *, order: bool = False
) -> tuple[Value, Value]:
    """The operands of an operator, or an order, where neither is None."""
    for k, value in enumerate((lhs, rhs)):
        if isinstance(value, Choice | NoneValue):
            shown = [kind_of(lhs), kind_of(rhs)]
            shown[k] = "NoneType"
            pair = " and ".join(f"'{kind}'" for kind in shown)
            of_numpy = not is_python((lhs, rhs)[1 - k])
            sign = symbol.rstrip("=") if of_numpy and not order else symbol
            sign = "** or pow()" if sign == "**" else sign
            exception, text = "TypeError", f"unsupported operand type(s) for {sign}: {pair}"
            if order:
                text = f"'{symbol}' not supported between instances of {pair}"
            elif sign == "@" and of_numpy:
                exception, text = "ValueError", NO_MATRIX.format(k)
            found = present(lowering, value, text, exception)
            lhs, rhs = (found, rhs) if k == 0 else (lhs, found)
    return lhs, rhs


NO_MATRIX = (
    "matmul: Input operand {} does not have enough dimensions (has 0, gufunc core with signature"
    " (n?,k),(k,m?)->(n?,m?) requires 1)"
)


def arguments_of(lowering: Context, function: Any, args: Sequence[Value]) -> list[Value]:
    """The arguments of a function of NumPy or `math`; where one is None, what it says to None is raised."""
    found = list(args)
    for k, value in enumerate(args):
        if not isinstance(value, Choice):
            continue
        if not isinstance(function, np.ufunc | BuiltinFunctionType):
            raise lowering.refusal(None, *unknown(value))
        try:
            function(*(None if i == k else 1.0 for i in range(len(args))))
        except Exception as error:
            found[k] = present(lowering, value, str(error), type(error).__name__)
        else:
            raise lowering.refusal(None, *unknown(value))
    return found


def is_python(value: Value) -> bool:
    """True for None and Python's numbers."""
    if isinstance(value, Choice):
        return all(map(is_python, value.options))
    return isinstance(value, NoneValue) or (
        isinstance(value, Scalar) and value.type.startswith("py_")
    )


def kind_of(value: Value) -> str:
    """The class of a value, or of the elements of an array, as CPython's messages name it."""
    if isinstance(value, NoneValue):
        return "NoneType"
    if isinstance(value, Choice):
        return next((kind_of(o) for o in value.options if not isinstance(o, NoneValue)), "NoneType")
    type_ = getattr(value, "type", None) if isinstance(value, Scalar) else None
    type_ = type_ or getattr(value, "dtype", "f64")
    return "bool" if is_bool(type_) else "float" if is_float(type_) else "int"


def raise_always(lowering: Any, text: str, exception: str = "TypeError") -> NoReturn:
    """Raise wherever this runs."""
    from .frames import Unready

    lowering.always(exception, text)
    raise Unready


def item_of(lowering: Context, items: Sequence[Value], at: SSAValue) -> Value | None:
    """The item at a place that exists; None where they are not all objects known while compiling."""
    if not items or len(items) > MOST_OPTIONS or not all(map(is_choosable, items)):
        return None
    return Choice(at, tuple(items))
