"""Generators that are asked for some of their items here and for others there.

    g = parts(x)           g: `resume$` of `parts` (`syntax.stepping`), and the names of its frame
    a = next(g)            resume$(None), inlined: the body up to its next `yield`
    for v in g: ...        while there is an item: resume$(None), then the body of the loop
    g.send(a)              resume$(a)

A generator is consumed whole where that is possible, as the code of a loop is better than that of one which
goes on in its middle (`generator_values`). Where it is not, because it is asked again, beside another one, or
has a `yield` in a `try`, the next build makes it one of these (`again`). What `iter`, `zip`, `map` and
generator expressions make is a generator of our own there (`standard_iterators`). Its names are fields of
objects, so branches and loops join them as any.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any, NoReturn

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, SSAValue

from .. import scalars
from ..bindings import nonlocals
from ..frames import Frame, LateName, LocalFunction, Scope, Unready
from ..joins import Maybe
from ..syntax import normalize, stepping
from ..syntax.exits import LeavableFor
from ..syntax.liveness import Liveness, assigned, bound_by
from ..syntax.nodes import negated
from ..syntax.scopes import parameters
from ..values import Choice, NoneValue, Scalar, Static, Struct, Tuple, Value
from . import recursion, standard_iterators
from .special_calls import Member, MemberMethod

if TYPE_CHECKING:
    from .calls import Calls

MOST_NESTED = 12
"""So often a generator may be about within itself."""

Place = tuple[object, ...]
"""Where a generator is made."""


@dataclass(eq=False)
class Suspended(Member):
    """A generator that goes on where it has stopped: how, and whose names it has."""

    resume: LocalFunction
    frame: Frame
    how: stepping.Stepped
    own: ast.FunctionDef
    place: Place
    build: Any
    home: Block
    """Where its memory ends."""
    is_inner: bool = False
    """A generator makes it: whatever that makes at this place has the same names."""
    given: Value | None = None
    """The item that it was last asked for, until the next."""

    def consists_of(self) -> tuple[object, ...]:
        """Its code, and what tells how far it is: the names of its body are its frame's."""
        return self.resume, self.how, self.own

    def makes(self, other: object) -> bool:
        return isinstance(other, Suspended) and other.is_inner and other.place[0] == self.place

    def __eq__(self, other: object) -> bool:
        if not self.is_inner:
            return self is other
        return isinstance(other, Suspended) and other.is_inner and other.place == self.place

    def __hash__(self) -> int:
        return hash(self.place) if self.is_inner else id(self)

    described = "a generator"

    @property
    def type(self) -> type:
        return GeneratorType

    def read(self, lowering: Calls, attribute: str, node: ast.AST) -> Value:
        if attribute not in METHODS:
            raise lowering.refusal(
                node, f"`.{attribute}` of a generator is not compiled",
                "next(g), g.send(v), g.close()",
            )  # fmt: skip
        return Static(Method(self, attribute))


@dataclass(frozen=True)
class Method(MemberMethod):
    """`g.send` before its call."""

    generator: Suspended
    name: str

    def call(self, lowering: Calls, args: list[Value], kwargs: dict[str, Value]) -> Value:
        node = node_here(lowering, self.name)
        if kwargs or len(args) != METHODS[self.name]:
            raise lowering.refusal(None, f"the arguments of `.{self.name}` of a generator")
        if self.name == "__iter__":
            return Static(self.generator)
        if self.name == "close":
            return close(lowering, self.generator)
        sent = args[0] if args else NoneValue()
        if not isinstance(sent, NoneValue):
            if self.generator.how.ignores_first:
                raise lowering.refusal(
                    node, "a value is sent to a generator that takes none", "next(g)"
                )
            state = state_of(lowering, self.generator)
            first = lowering.e.constant(self.generator.how.starts_at, "py_int")
            text = "can't send non-None value to a just-started generator"
            raised(lowering, equal(lowering, state, first), "TypeError", text)
        return next_item(lowering, self.generator, sent, node)


METHODS = {"send": 1, "__next__": 0, "close": 0, "__iter__": 0}


# Making them


def again(lowering: Any, place: Place | None, refusal: Exception) -> NoReturn:
    """What is made at a place is asked item by item: the next build makes it so. Where this one has, or
    the place is unknown, it is refused."""
    if place is None or place in lowering.facts.stepped:
        raise refusal
    lowering.facts.stepped[place] = ast.Pass()
    lowering.facts.changed = True
    raise recursion.Again


def place_here(lowering: Any, what: object) -> Place:
    """The place that is being lowered: within a generator, the same wherever that is asked."""
    path, around = lowering.frame.place, ()
    if lowering.resuming:
        outer, known = lowering.resuming[-1]
        path, around = path[known:], (outer.place,)
    name = getattr(what, "__name__", type(what).__name__)
    return *around, path, lowering.e.span, name


def is_stepped(lowering: Any, place: Place) -> bool:
    return place in lowering.facts.stepped


def start(
    lowering: Any, function: Any, args: list[Value], kwargs: dict[str, Value], place: Place
) -> Value:
    """A generator before its first item, that can be asked for its items one by one."""
    if function is standard_iterators.chain:
        behind: Value = Tuple(())
        for k, part in enumerate(args[::-1], 1):
            both = [part, behind]
            behind = start(lowering, standard_iterators.one_behind_another, both, {}, (*place, k))
        return behind
    node = lowering.facts.stepped.setdefault(place, ast.Pass())
    defaults, keyword = (), ()
    if isinstance(function, LocalFunction):
        own, source, scope = function.node, function.frame.source, function.frame.scope
        parent, defaults, keyword = function.frame, function.defaults, function.keyword_defaults
    else:
        source, scope, parent = lowering.function_parts(function)[0], Scope.of(function), None
        own = source.node
    assert isinstance(own, ast.FunctionDef)
    if sum(active.own is own for active, _ in lowering.resuming) > MOST_NESTED:
        raise lowering.refusal(
            None, f"the recursive generator {own.name} is not consumed by one loop",
            "loop over it to its end, or append to a list that is passed",
        )  # fmt: skip
    if place not in lowering.facts.stepping:
        direct = place not in lowering.facts.indirect
        managers = lowering.facts.managers
        lowering.facts.stepping[place] = stepping.stepped(own, source, managers, direct=direct)
    how = lowering.facts.stepping[place]
    made = how.made
    if made not in lowering.facts.nested:
        body = normalize.function_body(
            made, source, lowering.facts.generators, lowering.facts.managers
        )
        lowering.facts.nested[made] = (
            body,
            Liveness.of(body),
            parameters(made.args) | bound_by(body),
        )
    body, liveness, names = lowering.facts.nested[made]
    lowering.enter(made, own.name, node)
    frame = lowering.new_frame(source, scope, names, liveness, node)
    frame.parent, frame.certain = parent, how.bound
    if isinstance(function, FunctionType):
        defaults, keyword = lowering.defaults_of(function, source, frame)
    lowering.bind_arguments(frame, made.args, own.name, args, kwargs, defaults, keyword, node)
    suspended = Suspended(
        resume_of(made, frame), frame, how, own, place, lowering, lowering.homes[-1]
    )
    if lowering.resuming:
        suspended = inner(lowering, suspended, [*args, *kwargs.values()])
    if how.guarded and suspended.is_inner:
        require_end(lowering, suspended)
    lowering.run_call(suspended.frame, body, made, node)
    if how.guarded:
        keep_watch(lowering, suspended)
    for of_inner, shared in lowering.facts.inner_generators.get(place, {}).items():
        cells = {n: nonlocals.cell_of(lowering, n) for n in shared}
        lowering.inner_generators.setdefault(of_inner, cells)
    return Static(suspended)


def resume_of(made: ast.FunctionDef, frame: Frame) -> LocalFunction:
    node = next(
        s for s in made.body if isinstance(s, ast.FunctionDef) and s.name == stepping.RESUME
    )
    return LocalFunction(node, frame, (), ())


def suspended_of(value: object) -> Suspended | None:
    found = value.object if isinstance(value, Static) else None
    return found if isinstance(found, Suspended) else None


# Generators that generators make


def inner(lowering: Any, made: Suspended, given: Sequence[Value]) -> Suspended:
    """A generator that another one makes, in whatever state: it has the names that the other one has for it,
    from where that was made on. So there is one at a time."""
    outer, _ = lowering.resuming[-1]
    made.is_inner, place, frame = True, made.place, made.frame
    known = lowering.facts.inner_generators.setdefault(outer.place, {})
    shared = sorted(frame.liveness.rebound & frame.locals)
    lowering.facts.changed |= known.get(place) != shared
    known[place] = shared
    before = lowering.inner_generators.get(place)
    if isinstance(before, Suspended):
        require_only(lowering, made, outer, given)
        frame.cells = before.frame.shared
    elif before is not None:
        require_only(lowering, made, outer, given)
        frame.cells = before
    lowering.inner_generators[place] = made
    return made


def require_only(lowering: Any, made: Suspended, outer: Suspended, given: Sequence[Value]) -> None:
    """Refuse where the generator that was made here before may be asked again."""
    span = lowering.e.span
    target = outer.how.targets.get((span.line, span.column))
    frame: Frame | None = lowering.frame
    found = any(holds(v, made.__eq__) for v in given)
    while frame is not None:
        for name, binding in frame.env.items():
            text = name.partition("$0.")[0]
            if text != target and not text.startswith("over$"):
                found |= holds(binding, made.__eq__)
        frame = frame.parent
    if found:
        raise lowering.refusal(
            None, "a generator makes another one here while a name may hold the one before",
            "make it where it is run over: for v in g(): ...",
        )  # fmt: skip


def holds(binding: Any, wanted: Callable[[object], bool]) -> bool:
    """True for a value in which there is such a generator."""
    match binding:
        case Maybe(value, _):
            return holds(value, wanted)
        case Tuple(items) | Struct(items):
            return any(holds(item, wanted) for item in items)
        case Choice(_, options):
            return any(holds(option, wanted) for option in options)
        case Static(found):
            return wanted(found)
        case _:
            return False


def has_name(lowering: Any, generator: object) -> bool:
    """True where a generator may be asked again later."""
    frame: Frame | None = lowering.frame
    while frame is not None:
        if any(holds(b, lambda found: found is generator) for b in frame.env.values()):
            return True
        frame = frame.parent
    return False


def current(lowering: Any, generator: Suspended) -> Suspended:
    """The generator as this build has it; one that only a later part of this build makes, as it will be."""
    if generator.build is lowering:
        return generator
    found = lowering.inner_generators.get(generator.place)
    if isinstance(found, Suspended):
        return found
    old = generator.frame
    parent = None if old.parent is None else lowering.frames.get(old.parent.path)
    if found is None or (parent is None) != (old.parent is None):
        unknown(lowering, generator)
    frame = replace(old, parent=parent, env={}, shared=found)
    resume = replace(generator.resume, frame=frame)
    return replace(generator, resume=resume, frame=frame, build=lowering)


# Asking them


def state_of(lowering: Any, generator: Suspended, name: str = stepping.STATE) -> Any:
    cell = current(lowering, generator).frame.shared[name]
    found = lowering.frame.env.get(lowering.objects.name(cell, name))
    if found is None and generator.is_inner:
        raise Unready  # in the last build: a state that constants keep from being reached
    if found is None:
        unknown(lowering, generator)
    return found.value if isinstance(found, Maybe) else found


def unknown(lowering: Calls, generator: Suspended) -> NoReturn:
    """Refuse, unless the next build knows better, a generator whose names have ended with an iteration."""
    lowering.not_ready(
        generator.frame,
        stepping.STATE,
        "a generator is asked for an item that another iteration of a loop has made, or that is not made",
        "make it before the loop, or consume it where it is made",
    )


def advance(lowering: Any, generator: Suspended, sent: Value, node: ast.AST) -> Scalar:
    """Let it go on to its next item; whether there is one."""
    now = current(lowering, generator)
    if state_of(lowering, now).low < 0:
        begin_on_their_own(lowering, now.home)
    lowering.resuming.append((now, 1 + len(lowering.frame.place)))
    try:
        generator.given = lowering.inline_local(now.resume, [sent], {}, node)
    finally:
        lowering.resuming.pop()
    if generator.given is not None and holds(generator.given, now.makes):
        raise lowering.refusal(node, "a generator yields a generator that it makes: not compiled")
    over = lowering.e.constant(stepping.OVER, "py_int")
    return scalars.compare(lowering.e, "NotEq", state_of(lowering, generator), over)


def begin_on_their_own(lowering: Any, home: Any) -> None:
    """What was made in `home` begins in the first iteration of the loops within it: let the next build
    take that iteration out of each."""
    found = [key for key, depth in lowering.loops if home in lowering.homes[:depth]]
    for key in found:
        if key not in lowering.facts.peeled:
            error = lowering.refusal(
                None, "the first iteration of this loop is another than the rest"
            )
            lowering.facts.peeled[key] = 1, error
            lowering.facts.changed = True
            raise recursion.Again


def given_item(lowering: Any, node: ast.expr) -> Value:
    """What `resume$` returns: valid where the state says that there is an item."""
    assert isinstance(node, ast.Name)
    found = lowering.frame.env.get(node.id)
    if isinstance(found, Maybe):
        found = found.value
    if found is None or (isinstance(found, Static) and isinstance(found.object, LateName)):
        return NoneValue()
    return found


def next_item(lowering: Any, generator: Suspended, sent: Value, node: ast.AST) -> Value:
    """`next(g)`, `g.send(v)`."""
    goes = advance(lowering, generator, sent, node)
    raised(lowering, scalars.unary(lowering.e, "Not", goes), "StopIteration", "")
    assert generator.given is not None
    return generator.given


def next_or(lowering: Any, generator: Suspended, default: Value, node: ast.AST) -> Value:
    """`next(g, default)`."""
    goes = advance(lowering, generator, NoneValue(), node)
    item = generator.given
    assert item is not None
    return lowering.chosen(goes, (lambda: item, lambda: default))


def equal(lowering: Any, state: Scalar, other: Scalar) -> Scalar:
    """Whether a state is another, as far as the ranges of both say while compiling."""
    if state.low == state.high == other.low == other.high:
        return lowering.e.constant(True, "py_bool")
    return scalars.compare(lowering.e, "Eq", state, other)


def raised(lowering: Any, condition: Scalar, exception: str, text: str) -> None:
    if condition.constant is True:
        lowering.always(exception, text)
        raise Unready
    if condition.constant is None:
        scalars.raise_if(lowering.e, condition.ssa, (exception, text))


def close(lowering: Any, generator: Suspended) -> Value:
    now = current(lowering, generator)
    if now.how.guarded:
        raise lowering.refusal(
            None, "`.close()` of a generator with a `yield` in `try ... finally` is not compiled",
            "let it come to its end",
        )  # fmt: skip
    cell = now.frame.shared[stepping.STATE]
    over = lowering.e.constant(stepping.OVER, "py_int")
    lowering.objects.give(cell, stepping.STATE, lowering.frame.env, over)
    return NoneValue()


def node_here(lowering: Any, what: str) -> ast.Call:
    """The call that is being lowered, the same in every build."""
    place = lowering.e.span, ("generator", what)
    known = lowering.facts.implied
    if place not in known:
        made = ast.Call(ast.Constant(None), [], [])
        known[place] = ast.copy_location(made, lowering.frame.source.node)
    return known[place]


def keep_watch(lowering: Any, generator: Suspended) -> None:
    """A `finally` around a `yield` runs at the latest when the generator has no reference left."""
    outermost = lowering.resuming[0][0].home if generator.is_inner else generator.home
    if outermost is not lowering.homes[0]:
        raise lowering.refusal(
            None, "a generator with a `yield` in `try ... finally` is made in a loop, and asked for its items"
            " one by one",
            "make it before the loop, or loop over it to its end",
        )  # fmt: skip
    lowering.watched_generators.append(generator)


def require_ends(lowering: Any) -> None:
    """The function ends: raise where CPython would run a `finally` of a generator that was left."""
    for generator in lowering.watched_generators:
        require_end(lowering, generator)


def require_end(lowering: Any, generator: Suspended) -> None:
    e, cells = lowering.e, generator.frame.shared or generator.frame.cells
    if stepping.STATE not in cells:
        return
    found = lowering.frame.env.get(lowering.objects.name(cells[stepping.STATE], stepping.STATE))
    state = found.value if isinstance(found, Maybe) else found
    if not isinstance(state, Scalar):
        return
    for k in sorted(generator.how.guarded):
        left = scalars.compare(e, "Eq", state, e.constant(k, "py_int"))
        if left.constant is False:
            continue
        defined = [found.defined] if isinstance(found, Maybe) else []
        condition = reduce(lambda a, b: e.emit(arith.AndIOp(a, b)), defined, left.ssa)
        text = "mutad: a generator is left in a `try` whose `finally` has not run"
        scalars.raise_if(e, condition, ("NotImplementedError", text))


def loop(lowering: Any, s: ast.For, generator: Suspended) -> None:
    """`for v in g`: goes on while there is an item; a `break` is seen before the next is asked for."""
    from ..data.list_access import Asked

    e = lowering.e
    goes: SSAValue = e.cell(i1, "goes")
    e.store(e.constant(True, "py_bool").ssa, goes)
    asked = ast.copy_location(Asked(), s.iter)
    asked.answer = lambda: Scalar("py_bool", e.load(goes))
    test: ast.expr = asked
    if isinstance(s, LeavableFor):
        both: list[ast.expr] = [negated(s.until.id, s.until), asked]
        test = ast.copy_location(ast.BoolOp(ast.And(), both), s.iter)
    names = assigned(s.target, *s.body) & lowering.frame.liveness.head[s]

    def body(_: SSAValue) -> None:
        there = advance(lowering, generator, NoneValue(), s)
        e.store(there.ssa, goes)

        def one() -> None:
            assert generator.given is not None
            with lowering.located(s.target):
                lowering.bind(s.target, generator.given)
            lowering.block(s.body)

        lowering.conditional(there, (one, lambda: None), names | {"<return>"})

    lowering.loop(s, None, test, body)
