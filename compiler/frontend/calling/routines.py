"""Private functions: code that stands in a module beside the function that is compiled.

Each is built for the arguments of one call, as a function of its own: its arguments are what it is first
asked for, by key. `rule_calls` builds some for each call of a function with a rule.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, i64
from xdsl.ir import Attribute, BlockArgument, Region, SSAValue

from ...names import legal
from ...rules import reads
from ..bindings.roots import roots, writes
from ..build import Build
from ..data.list_room import make_room
from ..facts import Facts
from ..values import Array, Scalar, Tuple, Value

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


class Outside(dict[tuple[int, str], Value]):
    """The inputs from outside, as a private function sees them: each is an argument once it is read."""

    def __init__(self, routine: Routine, outer: dict[tuple[int, str], Value]) -> None:
        super().__init__(outer)
        self.routine = routine

    def __getitem__(self, place: tuple[int, str]) -> Value:
        value = super().__getitem__(place)
        assert isinstance(value, Scalar | Array)
        return self.routine.argument(("outside", place), value)


class Routine(Build):
    """A private function under construction."""

    def __init__(self, outer: Calls, name: str, facts: Facts, kind: str) -> None:
        super().__init__(_nobody, [], (), outer.e.boundscheck, False, facts, None)
        self.kind = kind
        self.keys_of: list[Key] = []
        self.private = func.FuncOp(name, ([], []), Region(self.entry), visibility="private")
        self.emitter.span = outer.e.span
        if outer.e.span is not None:
            self.private.location = outer.e.span.location()
        self.lowering.routines = [*outer.routines, self.private]
        self.lowering.inputs = Outside(self, outer.inputs)
        self.lowering.fixed, self.lowering.watched = outer.fixed, outer.watched
        self.lowering.outside = outer.outside
        self.lowering.frame = replace(outer.frame, env={})
        self.lowering.calls = list(outer.calls)

    def argument(self, key: Key, like: Value) -> Scalar | Array:
        """The argument for `key`, made when it is first asked for: as `like`, of unknown value."""
        ssa = like.memref if isinstance(like, Array) else like.ssa  # pyright: ignore
        found = self.placed(key, ssa.type, ssa.name_hint)
        if isinstance(like, Array):
            return Array(found, like.dtype)
        assert isinstance(like, Scalar)
        return Scalar(like.type, found)

    def placed(self, key: Key, type_: Attribute, hint: str | None) -> SSAValue:
        if key not in self.keys_of:
            made = self.entry.insert_arg(type_, len(self.entry.args))
            made.name_hint = None if hint is None else legal(hint)
            self.keys_of.append(key)
        return self.entry.args[self.keys_of.index(key)]

    def list_overlaps(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Say which arguments may share memory."""
        if pairs:
            self.private.attributes["overlaps"] = ArrayAttr(
                [ArrayAttr([IntegerAttr(i, i64), IntegerAttr(j, i64)]) for i, j in sorted(pairs)]
            )

    def written_arguments(self) -> set[Key]:
        """The arguments that the function stores to."""
        return self.arguments_of(target for op in self.private.walk() for target in writes(op))

    def read_arguments(self) -> set[Key]:
        """The arguments whose elements the function reads."""
        return self.arguments_of(a.memref for op in self.private.walk() for a in reads(op))

    def arguments_of(self, memrefs: Iterable[SSAValue]) -> set[Key]:
        """The arguments that these may be (views of)."""
        return {
            self.keys_of[root.index]
            for memref in memrefs
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
        order = [self.keys_of.index(k) if k in self.keys_of else None for k in keys]
        listed = self.private.attributes.get("overlaps")
        if isinstance(listed, ArrayAttr):
            pairs = [tuple(n.value.data for n in pair) for pair in listed]  # pyright: ignore
            self.list_overlaps(
                [(order.index(i), order.index(j)) for i, j in pairs if i in order and j in order]
            )  # pyright: ignore
        self.keys_of = list(keys)
        self.private.update_function_type()


def _nobody() -> None:
    """Stands for the function of a routine, which is none of the program's."""
