"""The state of one lowering: frames, names, facts that survive a restart."""

from __future__ import annotations

import ast
import builtins
import enum
import types
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, is_dataclass, replace
from functools import reduce
from typing import Any, NoReturn

import numpy as np
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import i1
from xdsl.ir import Block, Operation, Region, SSAValue

from ..diagnostics import CompileError, Span, UndefinedName, note_place
from ..names import as_hint
from . import choices, scalars, weak
from .bindings import nonlocals
from .bindings.peeling import Peeled
from .catching import Catching, is_made_in
from .catching_scopes import Arm, Caught
from .data import fields, settings, tables
from .data.lists import ListKey, ListObject
from .emitter import Emitter
from .facts import Facts, Key, LocalName, LoopKey
from .frames import RESULT, VALUE, Captured, Frame, LateName, Unready
from .joins import (
    Binding,
    Maybe,
    MaybeT,
    Mismatch,
    Template,
    coerced,
    deepened,
    ir_types,
    join,
    loosened,
    rebuilt,
    template_of,
)
from .library import ways_out
from .library.in_place import parts_of
from .library.ranges import Independent
from .syntax import bindings_of, exits
from .syntax.liveness import Names, assigned
from .values import (
    DTYPE_NAME,
    INT64_MAX,
    INT64_MIN,
    Array,
    Choice,
    Item,
    NoneValue,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
    Weak,
)

UNBOUND_LOCAL = "cannot access local variable '{}' where it is not associated with a value"


@dataclass
class Purpose:
    """Whether the derivative will be taken of what is lowered, and whether that was asked."""

    derivative: bool = False
    asked: bool = False
    adjoint: Any = None
    """That of a rule, which is what is lowered: derivatives may be taken of it."""

    def within(self, adjoint: Any) -> Purpose:
        """That of an adjoint in it."""
        return Purpose(self.derivative and self.adjoint is None, adjoint=adjoint)


@dataclass(frozen=True)
class Rebinding:
    """An array variable of a loop that lives in a buffer: valid only while nobody can tell.

    `copies` are the ops that move the variable's new array into the buffer. `trips` is how often, where
    every iteration makes a new array: where it is 0 the variable is still the initial array.
    """

    name: str
    buffer: SSAValue
    initial: SSAValue
    start: Operation
    copies: tuple[Operation, ...]
    span: Span | None
    trips: SSAValue | None
    loop: Peeled
    stays: tuple[Key, int] | None
    """The variable and which of its arrays, where some iterations may leave it what it was."""
    sources: frozenset[SSAValue]
    """The memory that an iteration leaves it in: its own, that of others, what it has made."""
    after: SSAValue | None = None
    """The array after the loop, where that is not the buffer."""
    leaf: int = 0
    """Which of the variable's arrays."""


class Context(ABC):
    """What every part of the lowering shares."""

    def __init__(self, emitter: Emitter, facts: Facts) -> None:
        self.e = emitter
        self.facts = facts
        self.frame: Frame
        self.calls: list[ast.AST | types.CodeType | types.FunctionType] = []
        self.serial = 0
        self.dead = False
        self.statement_block: Block | None = None
        """Where the current statement is lowered to, but for what its expressions evaluate conditionally."""
        self.arm_block: Block | None = None
        """Where the current arm of a conditional expression is lowered to, but for those in it."""
        self.observed: dict[ast.AST, Value] = {}
        self.rebindings: list[Rebinding] = []
        self.loads: list[Operation] = []
        self.named = set[SSAValue]()
        self.cells: dict[tuple[int, str, int, Any], tuple[SSAValue, SSAValue | None]] = {}
        self.objects = fields.Objects()
        self.importer: Callable[[Frame, Binding | None], Binding | None] | None = None
        """Where the function is one of several: how it sees the names of functions around it."""
        self.returning: Callable[[Value], Value] | None = None
        """There: what a `return` makes of its value."""
        self.inputs: dict[tuple[int, str], Value] = {}
        """The inputs from outside, by holder and name."""
        self.watched: frozenset[tuple[int, str]] | None = None
        """The constants from outside that callers compare; None: nothing outside ever changes."""
        self.catching = Catching(self)
        self.handling: list[tuple[Frame, Caught]] = []
        """The exceptions whose handlers are being lowered, and whose calls those are."""
        self.resuming: list[tuple[Any, int]] = []
        """The generators that are being asked for an item, and how long the paths of those calls are."""
        self.inner_generators: dict[object, Any] = {}
        """By place, the generators that others make."""
        self.watched_generators: list[Any] = []
        """Those that may be left in a `try`."""
        self.frames: dict[tuple[int, ...], Frame] = {}
        """By path, the calls."""
        self.loops: list[tuple[LoopKey, int]] = []
        """The loops that are being lowered, and how many of `homes` are around each."""
        self.homes = [emitter.entry]
        """The blocks at whose ends memory ends: the function's, and those of the loops around."""
        self.lists: dict[ListKey, ListObject] = {}
        self.handed_out = set[ListKey]()
        """The lists of arrays, lists, tuples and objects that the caller gets."""
        self.handed_items = set[ListKey]()
        """The lists of which it gets copies of items."""
        self.met_items = dict[ListKey, Array]()
        """By store, which of its items the caller gets (`returned_lists`)."""
        self.counters: dict[SSAValue, tuple[tuple[int, ...], int]] = {}
        self.rounds = 1
        self.list_numbers: dict[tuple[tuple[int, ...], int], int] = {}
        self.merged_lists: dict[LocalName, ListObject] = {}
        self.moved_lists = set[ListKey]()
        """The lists into which fresh ones have been moved."""
        self.outside: Captured | None = None
        """What there is outside: foreign functions, rules."""
        self.purpose = Purpose()
        self.routines: list[func.FuncOp] = []
        """The private functions of calls with rules."""
        self.fixed: Callable[[types.ModuleType | type | str], bool] = lambda _: False
        """Whether a module, a class, or what a source file defines is a library's own."""

    @property
    def with_rules(self) -> bool:
        """The derivative will be taken: calls of functions with a rule are kept as such."""
        self.purpose.asked = True
        return self.purpose.derivative

    def keeps(self, rule: Any) -> bool:
        """Whether a call is kept for this rule's sake: not where it is the rule itself that calls."""
        own = rule is not None and rule.adjoint is self.purpose.adjoint
        return rule is not None and not own and self.with_rules

    @abstractmethod
    def expression(self, node: ast.expr) -> Value:
        """The value of an expression."""

    @abstractmethod
    def block(self, statements: Sequence[ast.stmt]) -> None:
        """Lower statements at the current point."""

    @abstractmethod
    def bind(self, target: ast.expr, value: Value) -> None:
        """Assign a value to a name, a tuple of targets or a subscript."""

    @abstractmethod
    def call(
        self, function: Value, args: list[Value], kwargs: dict[str, Value], node: ast.Call
    ) -> Value:
        """Call a Python or library function."""

    @abstractmethod
    def item_now(self, value: Record) -> Record:
        """The item of a list that an object has become, or the object."""

    @abstractmethod
    def use_heap(self, *classes: type) -> None:
        """The next build knows the objects of these classes by their places, where that is possible."""

    @abstractmethod
    def meet(self, name: str, ends: list[dict[str, Binding]], deads: list[bool]) -> None:
        """Make values of different objects that a name is bound to at the ends of two branches."""

    @abstractmethod
    def print_call(self, node: ast.Call) -> Value:
        """Python's `print`."""

    @abstractmethod
    def for_statement(self, s: ast.For) -> None:
        """Lower a `for` loop."""

    @abstractmethod
    def while_statement(self, s: ast.While) -> None:
        """Lower a `while` loop."""

    def share(self, values: Iterable[Value | None]) -> None:
        """These lists, and those in these values, have references that are not tracked."""
        for value in values:
            match value:
                case Static(found):
                    for one in parts_of(found):
                        if isinstance(one, ListObject):
                            self.mark_shared(one)
                case Tuple(items) | Struct(items) | Choice(_, items):
                    self.share(items)
                case _:
                    pass

    def mark_shared(self, one: ListObject) -> None:
        if one.key not in self.facts.shared_lists:
            self.facts.shared_lists.add(one.key)
            self.facts.changed |= one.key in self.moved_lists

    # Places in the source

    @contextmanager
    def located(self, node: ast.AST) -> Generator[None]:
        """Ops made meanwhile come from `node`."""
        outer, self.e.span = self.e.span, self.frame.span(node)
        try:
            yield
        except Exception as error:
            note_place(error, self.e.span)
            raise
        finally:
            self.e.span = outer

    def refusal(
        self, node: ast.AST | None, message: str, way_out: str | None = None
    ) -> CompileError:
        """The program is outside the language at `node` (None: at the current place)."""
        span = self.e.span if node is None else self.frame.span(node)
        message, way_out = fields.as_written(message), way_out and fields.as_written(way_out)
        return CompileError(span, message, way_out)

    # Names

    def read(self, name: str) -> Value:
        """The value of a name: local, of an enclosing function, captured, global or builtin."""
        frame: Frame | None = self.frame
        while frame is not None:
            if name in frame.locals:
                return self.read_local(frame, name)
            frame = frame.parent
        holder, key, value = self.read_global(name)
        return self.captured(holder, key, value, name)

    def read_local(self, frame: Frame, name: str) -> Value:
        binding = nonlocals.binding_of(self, frame, name)
        if self.importer is not None and name not in frame.shared:
            binding = self.importer(frame, binding)
        if binding is None and name in frame.certain:
            raise Unready  # in this build: in the last, a state that constants keep from being reached
        if binding is None:
            self.not_ready(
                frame,
                name,
                f"`{name}` is read before it is assigned",
                f"give `{name}` a value first, before the branch or loop that assigns it",
            )
        if isinstance(binding, Static) and isinstance(binding.object, LateName):
            self.facts.early.add(binding.object.key)
            self.not_ready(
                frame,
                name,
                f"`{name}` is read in the loop before the loop assigns it",
                f"give `{name}` a value of the same type before the loop",
            )
        if isinstance(binding, Maybe) and (name == exits.RESULT or name in frame.certain):
            return binding.value  # `returned$` has been asked, or the state of a generator
        if isinstance(binding, Maybe):
            unbound = scalars.logical_not(self.e, binding.defined)
            scalars.raise_if(self.e, unbound, ("UnboundLocalError", UNBOUND_LOCAL.format(name)))
            if frame is self.frame:
                nonlocals.bind(self, name, binding.value)
            binding = binding.value
        return self.item_now(binding) if isinstance(binding, Record) else binding

    def not_ready(self, frame: Frame, name: str, message: str, way_out: str) -> NoReturn:
        """Refuse, unless a loop turns out to bind the name, and the next build knows.

        Where only code that constants leave out binds it, this raises when it is run, as CPython does.
        """
        local = frame.path, name
        if (
            local in self.facts.left_out
            and frame is self.frame
            and self.e.block is self.statement_block
        ):
            always = self.e.constant(True, "py_bool").ssa
            scalars.raise_if(self.e, always, ("UnboundLocalError", UNBOUND_LOCAL.format(name)))
            raise Unready
        self.facts.wanted.add(local)
        self.facts.unready.append(self.refusal(None, message, way_out))
        raise Unready

    def leave_out(self, *nodes: ast.AST) -> None:
        """Constants decide that this code never runs."""
        self.facts.leave_out((self.frame.path, name) for name in assigned(*nodes))

    def read_global(self, name: str) -> tuple[object, str, Any]:
        """Where a name that is no local is found (holder and key), and its value."""
        scope = self.frame.scope
        if name in scope.cells:
            with suppress(ValueError):
                return scope.cells[name], name, scope.cells[name].cell_contents
        elif name in scope.globals or hasattr(builtins, name):
            return scope.globals, name, eval(name, scope.globals)  # which imports what is lazy
        known = {*self.frame.env, *scope.cells, *scope.globals, *dir(builtins)}
        raise UndefinedName(
            self.e.span, f"name '{name}' is not defined", ways_out.meant(name, known)
        )

    def captured(self, holder: object, key: str, value: Any, name: str) -> Value:
        """What is found outside under `key`: an input, or a constant, which is noted."""
        place = id(holder), key
        if place in self.inputs:
            return self.inputs[place]
        if self.watched is not None and place not in self.watched and not self.frame.within:
            raise self.refusal(None, *ways_out.not_followed(ways_out.named(holder, key)))
        if value is None or isinstance(value, bool | int | float | str | tuple | np.generic):
            self.note_constant(name, value)
        if settings.is_followed(self, value) and not self.is_plain_frozen(value):
            return settings.settings(self, value, name)
        return self.constant(value, name)

    def is_plain_frozen(self, value: Any) -> bool:
        """A frozen dataclass of constants."""
        if not is_dataclass(value) or not fields.is_frozen(type(value)):
            return False
        known = (getattr(value, f) for f in value.__dataclass_fields__)
        return all(type(v).__hash__ is not None for v in known)

    def note_constant(self, name: str, value: Any) -> None:
        self.facts.constants[f"{self.frame.scope.name}:{name}"] = repr(value)

    def constant(self, value: Any, name: str) -> Value:
        """A Python object as a value."""
        match value:
            case None:
                return NoneValue()
            case enum.Enum():
                if isinstance(value, int):
                    return replace(self.e.constant(int(value), "py_int"), constant=value)
                return Static(value)
            case np.generic():
                if value.dtype not in DTYPE_NAME:
                    raise self.refusal(None, f"`{name}` is a NumPy scalar of dtype {value.dtype}")
                return self.e.constant(value.item(), DTYPE_NAME[value.dtype])
            case bool():
                return self.e.constant(value, "py_bool")
            case int():
                if not INT64_MIN <= value <= INT64_MAX:
                    way_out = "write it as a float, or name a np.uint64 outside of the function"
                    raise self.refusal(None, f"the int {value} does not fit 64 bits", way_out)
                return self.e.constant(int(value), "py_int")
            case float():
                return self.e.constant(value, "py_float")
            case complex():
                raise self.refusal(
                    None,
                    "complex numbers are not compiled",
                    "compute with real and imaginary parts",
                )
            case tuple():
                cls = type(value) if hasattr(value, "_fields") else None
                items = tuple(self.constant(item, name) for item in value)
                return Tuple(items, cls) if cls else tables.TupleOfConstants(items, raw=value)
            case _ if is_dataclass(value) and fields.is_frozen(type(value)):
                return self.frozen_constant(value, name)
            case np.ndarray() | list() | dict() | set() | frozenset():
                return tables.constant(self, value, name)
            case type(__name__="prange", __module__="numba.misc.special" | "mutad"):
                return Static(Independent)
            case _:
                return Static(value)

    def plain(self, found: Any) -> Any:
        """The Python function behind a callable that only runs it; anything else as it is."""
        return found if self.outside is None else self.outside.plain(found)

    def frozen_constant(self, value: Any, name: str) -> Value:
        """An instance of a frozen dataclass that the function finds outside."""
        known: dict[str, Any] = {f: getattr(value, f) for f in value.__dataclass_fields__}
        if any(type(v).__hash__ is None for v in known.values()):
            raise self.refusal(
                None, f"`{name}` is an object with arrays in it", "pass it as an argument"
            )
        self.note_constant(name, value)
        items = tuple(self.constant(v, f"{name}.{f}") for f, v in known.items())
        return Struct(items, tuple(known), type(value))

    # Branches

    def conditional(
        self, condition: Value, arms: tuple[Callable[[], None], Callable[[], None]], names: Names
    ) -> None:
        """Run one of two arms; afterwards `names` hold what the arm that ran gave them.

        A condition known while compiling leaves only its own arm.
        """
        test = scalars.truth(self.e, condition)
        if test.constant is not None:
            arms[0 if test.constant else 1]()
            return
        span, before = self.e.span, dict(self.frame.env)
        ways = list[Arm]()
        moved, moved_after = self.objects.moved, dict(self.objects.moved)
        for arm in arms:
            block = Block()
            self.frame.env, self.dead = dict(before), False
            self.objects.moved = dict(moved)
            with self.e.at(block), self.catching.scope(names) as scope:
                arm()
            if not self.dead or scope.pending:
                moved_after |= self.objects.moved
            ways.append(Arm(block, self.frame.env, self.dead, scope.pending))
        self.objects.moved = moved_after
        self.dead = all(way.dead for way in ways)
        self.e.span = span
        self.frame.env = self.merged(test.ssa, (ways[0], ways[1]), names, before)
        self.catching.announce(ways[0].pending | ways[1].pending)

    def merged(
        self,
        test: SSAValue,
        arms: tuple[Arm, Arm],
        names: Iterable[str],
        before: dict[str, Binding],
        *,
        sparing: bool = False,
    ) -> dict[str, Binding]:
        """The branch of two arms, and the names after it.

        With `sparing`, a name that nobody reads after one arm is what it is after the other, where
        that is known before the branch.
        """
        blocks = [arm.block for arm in arms]
        merged = dict(before)
        joined = list[tuple[str, Template]]()
        gone = dict[str, list[bool]]()
        for name in sorted({*names, *fields_changed(before, arms)}):
            gone[name] = deads = [arm.is_gone(name, self.frame) for arm in arms]
            self.meet(name, [arm.env for arm in arms], deads)
            here = [arm.env.get(name) for arm in arms]
            if (kept := before.get(name)) is not None and all(map(kept_by(kept), here)):
                continue  # some arms only know more of it
            if sparing and deads[0] != deads[1]:
                (only,) = (b for b, dead in zip(here, deads, strict=True) if not dead)
                if only is not None and not any(is_made_in(only, block) for block in blocks):
                    merged[name] = only
                    continue
            if same_binding(here[0], here[1]):
                if (kept := before.get(name)) is not None and same_binding(kept, here[0]):
                    continue  # with what was known of it before
                if here[0] is None:
                    merged.pop(name, None)
                else:
                    merged[name] = here[0]
                continue
            template = self.joined_template(name, here, deads)
            if template is not None:
                joined.append((name, template))
            else:
                merged.pop(name, None)
        sides = {
            name: (
                None if gone[name][0] else arms[0].env.get(name),
                None if gone[name][1] else arms[1].env.get(name),
            )
            for name, _ in joined
        }
        flags = {n: weak.carried_out(self.e, *sides[n], t) for n, t in joined}
        for k, block in enumerate(blocks):
            with self.e.at(block):
                values = list[SSAValue]()
                for name, template in joined:
                    side = sides[name][k]
                    values += coerced(self.e, None if is_late(side) else side, template)
                for n, template in joined:
                    values += [weak.flag(self.e, sides[n][k], p, template) for p in flags[n]]
                if joined or k == 0 or block.first_op is not None:
                    self.e.insert(scf.YieldOp(*values))
        regions = [Region(b) if b.first_op is not None else Region() for b in blocks]
        types_ = [leaf for _, template in joined for leaf in ir_types(template)]
        types_ += [i1] * sum(map(len, flags.values()))
        op = self.e.insert(scf.IfOp(test, types_, regions[0], regions[1]))
        results = iter(op.results)
        for name, template in joined:
            merged[name] = rebuilt(template, results)
            hint(merged[name], self.frame.named(name))
        for name, _ in joined:
            merged[name] = weak.joined(self.e, test, *sides[name], merged[name])
            for path, python in flags[name].items():
                merged[name] = weak.marked(merged[name], path, Weak(python, next(results)))
        return merged

    def joined_template(
        self, name: str, here: list[Binding | None], deads: list[bool]
    ) -> Template | None:
        """The form of a name after a branch, None where it is bound on neither path."""
        alive = [b for b, dead in zip(here, deads, strict=True) if not dead]
        bound = [b for b in alive if b is not None and not is_late(b)]
        if not bound:
            return None
        try:
            forms = [template_of(b) for b in bound]
            template = reduce(join, forms)
            self.use_heap(*deepened(template, *forms))
        except Mismatch as mismatch:
            self.refuse_mismatch(name, mismatch)
        if len(bound) < len(alive) and not isinstance(template, MaybeT):
            template = MaybeT(choices.with_forms(template))
        for binding in alive:
            self.keep_around(binding, template)
        return template

    def keep_around(self, binding: Binding | None, template: Template) -> None:
        """A name that the loop binds in some iterations keeps what an earlier one gave it."""
        if isinstance(binding, Static) and isinstance(binding.object, LateName):
            self.keep_from_start(binding.object.key, template)

    def keep_from_start(self, key: Key, template: Template) -> None:
        """The next build knows the name as a variable of the loop, unbound or of this form."""
        if not choices.outlives_build(template):
            raise self.refusal(
                None,
                f"`{fields.shown(key[-1])}` is a nested function or an iterator that the loop binds first",
                "make it before the loop; pass what changes as arguments",
            )
        try:
            known = join(template, self.facts.widened.get(key, template))
        except Mismatch as mismatch:
            self.refuse_mismatch(key[-1], mismatch, "loop")
        self.facts.widen(key, loosened(known))

    def refuse_mismatch(self, name: str, found: Mismatch, where: str = "branch") -> NoReturn:
        text = str(found)
        self.use_heap(*found.objects)
        if self.facts.let_grow(found.made):
            raise Unready
        line = 0 if self.e.span is None else self.e.span.line
        decided = bindings_of.decided_by(self.frame.source, line)
        same = f"give it the same type on every path, or use another name{decided}"
        parts = "choose its parts (bounds, steps, arrays), and make it where the paths have met"
        way_out = parts if found.alike else same
        if ListObject.described in text:
            both = found.alike or text.count(ListObject.described) == 2
            if both and self.facts.merge_lists(self.frame.path, name):
                raise Unready
            way_out = "keep one list, a copy made before it: m = list(l); then change its items: m[:] = ..."
        result = "the function's result"
        subjects = {RESULT: result, exits.RESULT: result, VALUE: "the value of this expression"}
        subject = subjects.get(name, f"`{fields.shown(name)}`")
        name = "" if "result" in subject else fields.shown(name)
        raise CompileError(
            self.e.span,
            fields.as_written(f"{subject} is {text} of this {where}"),
            way_out,
            bindings_of.places(self.frame.source, name, line),
        )

    def chosen(
        self,
        condition: Value,
        arms: tuple[Callable[[], Value], Callable[[], Value]],
        names: Names = frozenset(),
    ) -> Value:
        """The value of the arm that runs; `names` are those that the arms may bind."""

        def keep(arm: Callable[[], Value]) -> Callable[[], None]:
            def run() -> None:
                frame, depth, outer = self.frame, len(self.calls), self.arm_block
                self.arm_block = self.e.block
                try:
                    self.frame.env[VALUE] = arm()
                except Unready:  # the other arm says what the value is, in this build
                    self.frame, self.dead = frame, True
                    del self.calls[depth:]
                finally:
                    self.arm_block = outer

            return run

        self.conditional(condition, (keep(arms[0]), keep(arms[1])), names | {VALUE})
        value = self.frame.env.pop(VALUE, None)
        if value is None:
            raise Unready
        assert not isinstance(value, Maybe)
        return value


def fields_changed(before: dict[str, Binding], arms: Iterable[Arm]) -> set[str]:
    """The fields of objects that a branch assigns and that are read afterwards."""
    return {
        name
        for arm in arms
        if not arm.dead or arm.pending
        for name, binding in fields.fields_in(arm.env).items()
        if not same_binding(binding, before.get(name))
    }


def kept_by(kept: Binding) -> Callable[[Binding | None], bool]:
    """Whether a path leaves a name what it was, as far as that path knows: None, or not None."""
    options = kept.options if isinstance(kept, Choice) else ()
    return lambda now: now is kept or any(now is o for o in options)


def is_late(binding: Binding | None) -> bool:
    """True for a name that the loop binds, before its first iteration does."""
    return isinstance(binding, Static) and isinstance(binding.object, LateName)


def same_binding(a: Binding | None, b: Binding | None) -> bool:
    """True when two paths leave a name as the very same value."""
    if a is b:
        return True
    if isinstance(a, Scalar) and isinstance(b, Scalar):
        return a.ssa is b.ssa and a.type == b.type
    if isinstance(a, Tuple | Struct) and isinstance(b, Tuple | Struct):
        alike = a.cls is b.cls and len(a.items) == len(b.items)
        return alike and all(same_binding(x, y) for x, y in zip(a.items, b.items, strict=True))
    if isinstance(a, Item) and isinstance(b, Item):
        return a.store == b.store and a.at is b.at
    if isinstance(a, Choice) and isinstance(b, Choice):
        pairs = zip(a.options, b.options, strict=False)
        alike = a.number is b.number and len(a.options) == len(b.options)
        return alike and all(same_binding(x, y) for x, y in pairs)
    if isinstance(a, Static) and isinstance(b, Static):
        return a.object is b.object or (isinstance(a.object, str) and a.object == b.object)
    return type(a) is type(b) and a == b


def hint(binding: Binding, name: str, named: set[SSAValue] | None = None) -> None:
    """Name the SSA values of a variable after it: those without a name, or (given the set of those
    that variables have `named` before) all that a variable names for the first time."""
    match binding:
        case Scalar(_, ssa) | Array(ssa):
            fresh = ssa.name_hint is None if named is None else ssa not in named
            if (
                fresh
                and isinstance(ssa.owner, Operation)
                and not isinstance(ssa.owner, arith.ConstantOp)
            ):
                ssa.name_hint = as_hint(fields.shown(name))
                if named is not None:
                    named.add(ssa)
        case Maybe(value, _):
            hint(value, name, named)
        case Tuple(items) | Struct(items):
            for item in items:
                hint(item, name, named)
        case _:
            pass
