"""Private functions: code that stands in a module beside the function that is compiled.

Each is built for the arguments of one call, as a function of its own: its arguments are what it is first
asked for, by key. A call of a function with a rule has some (`rule_calls`), one of `g.grad` has one
(`library.derivatives`).
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from types import CodeType
from typing import TYPE_CHECKING, Any, ClassVar

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, BlockArgument, Region, SSAValue

from ....dialects import array
from ...analysis.alias import AliasAnalysis
from ...analysis.effects import mark_overlaps
from ...derivative.cotangents import EntryExtents
from ...diagnostics import CompileError
from ...names import as_symbol, legal
from ...rules import accesses
from ...rules.access import AccessKind
from ...rules.handwritten import may_raise
from ..bindings.roots import roots
from ..build import MAX_RESTARTS, Build
from ..data.list_room import make_room
from ..emitter import Emitter
from ..facts import Facts
from ..library import overlap, read_only
from ..values import Array, NoneValue, Scalar, Static, Struct, Tuple, Value
from . import foreign_calls, recursion

if TYPE_CHECKING:
    from .calls import Calls

Key = tuple[str, Any]
"""What an argument of a private function is: ("value", 0), ("shadow", 1), ("outside", place), ..."""


@dataclass(frozen=True)
class Slot:
    """In the place of a number or an array among the arguments: which operand of the op it is."""

    number: int


@dataclass(frozen=True)
class Number:
    """In the place of a number that the function returns: which result of the op it is."""

    position: int


def has_slots(value: Any) -> bool:
    """True when the value holds something that an op is given or gives."""
    match value:
        case Slot() | Number():
            return True
        case Tuple(items):
            return any(map(has_slots, items))
        case _:
            return False


Place = tuple[int, str]


class Outside(dict[Place, Value]):
    """The inputs from outside, as a private function sees them: each is an argument once it is read."""

    def __init__(self, outer: dict[Place, Value], seen: Callable[[Place, Any], Value]) -> None:
        super().__init__(outer)
        self.seen = seen

    def __getitem__(self, place: Place) -> Value:
        return self.seen(place, super().__getitem__(place))


class Routine(Build):
    """A private function under construction."""

    def __init__(self, call: RoutineCall, kind: str, facts: Facts) -> None:
        outer, name = call.lowering, call.fresh_name(kind)
        super().__init__(_nobody, [], (), outer.e.boundscheck, False, facts, None)
        self.kind, self.outer = kind, outer
        self.keys_of: list[Key] = []
        self.private = func.FuncOp(name, ([], []), Region(self.entry), visibility="private")
        self.emitter.span = outer.e.span
        if outer.e.span is not None:
            self.private.location = outer.e.span.location()
        self.lowering.routines = [*outer.routines, self.private]
        self.lowering.inputs = Outside(outer.inputs, lambda k, v: self.argument(("outside", k), v))
        self.lowering.fixed, self.lowering.watched = outer.fixed, outer.watched
        self.lowering.outside = outer.outside
        self.lowering.frame = replace(outer.frame, env={})
        self.lowering.calls = list(outer.calls)
        self.lowering.registry.refused = call.refusal(
            f"{call.name}(), {call.special}, calls a recursive function", call.instead
        )

    def argument(self, key: Key, like: Value) -> Scalar | Array:
        """The argument for `key`, made when it is first asked for: as `like`, of unknown value."""
        if not isinstance(like, Scalar | Array):
            raise self.outer.refusal(None, "a generator from outside draws here", "pass numbers")
        ssa = ssa_of(like)
        found = self.placed(key, ssa.type, ssa.name_hint)
        if isinstance(like, Array):
            if key[0] in ("value", "outside"):  # not its shadow
                read_only.hand_on(self.outer.e, like.memref, self.emitter, found)
            return Array(found, like.dtype)
        return Scalar(like.type, found)

    def placed(self, key: Key, type_: Attribute, hint: str | None) -> SSAValue:
        if key not in self.keys_of:
            made = self.entry.insert_arg(type_, len(self.entry.args))
            made.name_hint = None if hint is None else legal(hint)
            self.keys_of.append(key)
        return self.entry.args[self.keys_of.index(key)]

    def touched(self, kind: AccessKind) -> set[Key]:
        """The arguments whose elements the function reads ("read"), or stores to ("write")."""
        accessed = (a.memref for op in self.private.walk() for a in accesses(op) if a.kind == kind)
        return {
            self.keys_of[root.index]
            for memref in accessed
            for root in roots(self.emitter, memref)
            if isinstance(root, BlockArgument) and root.owner is self.entry
        }

    def finished(self, results: Sequence[SSAValue]) -> None:
        """The function ends here."""
        self.emitter.insert(func.ReturnOp(*results))
        make_room(self.lowering.lists.values(), self.facts)
        self.erase_dead_loads()
        self.check_rebindings()

    def arranged(self, keys: Sequence[Key], types: Sequence[Attribute]) -> None:
        """Give the function exactly these arguments, in this order."""
        old = dict(zip(self.keys_of, list(self.entry.args), strict=True))
        for key, type_ in zip(keys, types, strict=True):
            made = self.entry.insert_arg(type_, len(self.entry.args))
            if key in old:
                made.name_hint = old[key].name_hint
                old[key].replace_all_uses_with(made)
        for argument in old.values():
            self.entry.erase_arg(argument)
        self.keys_of = list(keys)
        self.private.update_function_type()


def within(value: Any, emitter: Emitter, fetch: Callable[[Any], Value]) -> Value:
    """A value as another function sees it; `fetch` finds what slots stand for."""
    match value:
        case Slot() | Number():
            return fetch(value)
        case Tuple(items) | Struct(items):
            return replace(value, items=tuple(within(item, emitter, fetch) for item in items))
        case Scalar():
            assert value.constant is not None
            return emitter.constant(value.constant, value.type)
        case _:
            return value


class RoutineCall(ABC):
    """A call that becomes one op beside private functions: its operands, what the function returns.

    In messages: what is `special` about the function, why its arguments must be `apart`, and what to do
    `instead` of recursion.
    """

    special: ClassVar[str]
    apart: ClassVar[str]
    instead: ClassVar[str]

    def __init__(
        self, lowering: Calls, name: str, given: Mapping[str, Value], node: ast.AST
    ) -> None:
        self.lowering, self.name, self.node = lowering, name, node
        self.operands: list[Scalar | Array] = []
        self.names: list[str] = []
        self.values = [self.slotted(v, n) for n, v in given.items()]
        self.own = len(self.operands)
        self.results: list[Scalar] = []
        self.arrays: list[Array] = []
        self.result: Any = NoneValue()

    def refusal(self, message: str, way_out: str | None = None) -> CompileError:
        return self.lowering.refusal(self.node, message, way_out)

    def slotted(self, value: Value, name: str) -> Any:
        """The value with a slot for each number and array that the op is to be given."""
        match value:
            case Tuple(items):
                return replace(value, items=tuple(self.slotted(item, name) for item in items))
            case Scalar(constant=None) | Array():
                self.operands.append(value)
                self.names.append(name)
                return Slot(len(self.operands) - 1)
            case Scalar() | NoneValue():
                return value
            case Static(found) if not type(found).__module__.startswith("mutad.compiler."):
                return value
            case _:
                raise self.refusal(
                    f"argument `{name}` of {self.name}(), {self.special}, is not a number, array or tuple"
                )

    def attempt(self, make: Callable[[Facts], Routine]) -> Routine:
        """Build a private function as often as it takes (see `build`, Note [Widening by restart])."""
        outer = self.lowering.facts
        known = {k: getattr(outer, k) for k in ("trees", "nested", "constants", "recursive")}
        facts = Facts(**known)
        for _ in range(MAX_RESTARTS):
            facts.changed = False
            facts.unready.clear()
            try:
                routine = make(facts)
            except recursion.Again:
                continue
            if not facts.changed:
                if facts.unready:
                    raise facts.unready[0]
                self.lowering.routines[:] = routine.lowering.routines
                return routine
        raise self.refusal(f"the types of {self.name}() do not settle")

    def primal(self, facts: Facts) -> Routine:
        """The function that is called, for these arguments."""
        routine = Routine(self, "primal", facts)
        for k, operand in enumerate(self.operands):
            routine.argument(("value", k), operand)
        self.list_sharing(routine)

        def fetch(slot: Any) -> Value:
            return routine.argument(("value", slot.number), self.operands[slot.number])

        result = self.body(routine, [within(v, routine.emitter, fetch) for v in self.values])
        if not facts.changed:
            self.results, self.arrays = [], []
            self.result = self.leave(routine.with_identity(result), routine)
        routine.finished([r.ssa for r in self.results] if not facts.changed else [])
        return routine

    @abstractmethod
    def body(self, routine: Routine, values: list[Value]) -> Value:
        """Lower the call itself, in the private function."""

    def completed(self) -> Routine:
        """The function that is called; what it returns in memory has become operands."""
        primal = self.attempt(self.primal)
        if self.lowering.catching.attempts and any(map(may_raise, primal.private.walk())):
            raise foreign_calls.uncaught(self.lowering, self.name, self.node)
        self.destinations(primal)
        return primal

    def outer_result(self, value: Any, numbers: Sequence[SSAValue]) -> Value:
        """What the call returns, where it stands."""

        def fetch(part: Slot | Number) -> Value:
            if isinstance(part, Slot):
                return self.operands[part.number]
            return replace(self.results[part.position], ssa=numbers[part.position], python=None)

        return within(value, self.lowering.e, fetch)

    def operand(self, kind: str, place: Any) -> Scalar | Array:
        """What an argument of a private function stands for, here."""
        found = self.lowering.inputs[place] if kind == "outside" else self.operands[place]
        assert isinstance(found, Scalar | Array)
        return found

    def check_sharing(
        self, operands: Sequence[Value], names: Sequence[str], changed: Mapping[int, str]
    ) -> None:
        """What is `changed` (each with how) shares no memory with another argument: which changes is unknown.

        Where that is dynamic, a check at run time says so before the call, in the same words.
        """
        e, checked = self.lowering.e, set[frozenset[int]]()
        arrays = {k: o.memref for k, o in enumerate(operands) if isinstance(o, Array)}
        for k, j in product((k for k in changed if k in arrays), arrays):
            pair, how = frozenset((k, j)), changed[k]
            if k == j or pair in checked or overlap.disjoint(e, arrays[k], arrays[j]):
                continue
            text = f"{how} `{names[k]}`, which {{}} memory with `{names[j]}`{{}}: {self.apart}"
            way_out = f"pass a copy: {names[j]}.copy()"
            if overlap.meet(e, arrays[k], arrays[j]):
                raise self.refusal(text.format("may share", ""), way_out)
            checked.add(pair)
            shared = e.emit(array.OverlapOp(arrays[k], arrays[j]), "shared")
            text = f"mutad: {text.format('shares', ' in this call')}; {way_out}"
            e.insert(array.RaiseIfOp(shared, "ValueError", text))

    def leave(self, value: Value, routine: Routine) -> Any:
        """The result, with its numbers and (as operands that are still to be made) its arrays counted."""
        match value:
            case Scalar():
                self.results.append(value)
                return Number(len(self.results) - 1)
            case Tuple(items):
                return replace(value, items=tuple(self.leave(item, routine) for item in items))
            case NoneValue():
                return value
            case Array():
                if any(isinstance(r, BlockArgument) for r in roots(routine.emitter, value.memref)):
                    raise self.refusal(
                        f"{self.name}(), {self.special}, returns one of its arguments, or a view of one",
                        "return nothing, or a copy",
                    )
                owner = value.memref.owner
                is_plain = isinstance(owner, array.AllocOp) and owner.parent is routine.entry
                if not is_plain or value.memref in [a.memref for a in self.arrays]:
                    value = routine.copied(value)
                self.arrays.append(value)
                return Slot(len(self.operands) + len(self.arrays) - 1)
            case _:
                raise self.refusal(
                    f"{self.name}(), {self.special}, returns no number, array or tuple"
                )

    def destinations(self, primal: Routine) -> None:
        """Let the caller allocate the arrays that the primal returns: operands that it overwrites."""
        e = self.lowering.e
        given: dict[SSAValue, SSAValue] = {}
        for key, argument in zip(primal.keys_of, primal.entry.args, strict=True):
            given[argument] = ssa_of(self.operand(*key))
        extents = EntryExtents(AliasAnalysis(primal.private), given, e.emit)
        for result in self.arrays:
            shape = extents.of(result.memref)
            if shape is None:
                raise self.refusal(
                    f"{self.name}(), {self.special}, returns an array whose shape depends on values",
                    "let it write into an array that it is given",
                )
            alloc = e.insert(array.AllocOp(shape, result.type.element_type), "result")
            self.operands.append(Array(alloc.memref, result.dtype))
            self.names.append("result")
            self.redirect(primal, result.memref, len(self.operands) - 1, alloc.memref.type)

    def redirect(self, primal: Routine, made: SSAValue, number: int, type_: Attribute) -> None:
        """The primal fills an argument in the place of an array of its own."""
        target = primal.placed(("value", number), type_, "result")
        owner = made.owner
        assert isinstance(owner, array.AllocOp)
        if target.type != made.type:
            assert isinstance(made.type, MemRefType)
            cast = memref.CastOp.get(target, made.type)
            cast.location = owner.location
            primal.entry.insert_op_before(cast, owner)
            target = cast.dest
        made.replace_all_uses_with(target)
        owner.detach()
        owner.erase()

    def list_sharing(self, routine: Routine) -> None:
        """Arguments of a private function, or their shadows, share memory where the caller's may."""
        arrays = [
            (i, kind in ("shadow", "tangent"), operand.memref)
            for i, (kind, place) in enumerate(routine.keys_of)
            if kind in ("value", "after", "shadow", "tangent", "outside")
            and isinstance(operand := self.operand(kind, place), Array)
        ]
        e, pairs = self.lowering.e, combinations(arrays, 2)
        alike = ((i, j, a, b) for (i, one, a), (j, two, b) in pairs if one == two)
        shared = ((i, j) for i, j, a, b in alike if not overlap.disjoint(e, a, b))
        mark_overlaps(routine.private, shared)

    def fresh_name(self, kind: str) -> str:
        taken = {f.sym_name.data for f in self.lowering.routines}
        stem = as_symbol(self.name, "function")
        name, number = f"{stem}_{kind}", 1
        while name in taken:
            number += 1
            name = f"{stem}_{kind}_{number}"
        return name


def ssa_of(operand: Scalar | Array) -> SSAValue:
    return operand.memref if isinstance(operand, Array) else operand.ssa


def keyword_only(code: CodeType) -> tuple[str, ...]:
    """The names of the parameters that are given by name."""
    return code.co_varnames[code.co_argcount :][: code.co_kwonlyargcount]


def _nobody() -> None:
    """Stands for the function of a routine, which is none of the program's."""
