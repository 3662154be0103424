"""One private function for each recursive function: lowered separately, handed what it reads around."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from itertools import combinations
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ....dialects import activation, array
from ...analysis.effects import describe_calls, mark_overlaps
from ...diagnostics import CompileError
from ...names import as_hint
from ..bindings import nonlocals
from ..build import Build
from ..data.list_parameters import HandedLists
from ..data.list_room import make_room
from ..data.lists import ListObject
from ..frames import RESULT, Frame
from ..joins import Maybe
from ..library import read_only
from ..values import NoneValue, Record, Static, Value
from .calls_in_try import Guard, is_asked
from .forms import ArrayForm, Form, Formless, Making, ObjectForm, flat, form_of, ir_types, leaves
from .object_arguments import Entered, HandedJournal
from .recursion import Outcome, Place, Site, imported
from .return_buffers import Sender
from .routines import Outside

if TYPE_CHECKING:
    from .calls import Calls


class Activation(Build):
    """A private function under construction."""

    def __init__(
        self,
        site: Site,
        records: Sequence[Record],
        name: str,
        number: int,
        known: Outcome | None,
    ) -> None:
        outer = site.lowering
        super().__init__(nobody, [], (), outer.e.boundscheck, False, outer.facts, None)
        self.site = site
        self.name = name
        self.definition = site.definition
        self.forms = [*site.forms.values(), *(f for t in site.types for _, f in t.fields)]
        self.number = number
        self.known = known
        self.captures: dict[SSAValue, SSAValue] = {}
        """What it reads of the functions around, with its arguments that stand for that."""
        self.private = func.FuncOp(name, ([], []), Region(self.entry), visibility="private")
        self.emitter.span = outer.e.span
        if outer.e.span is not None:
            self.private.location = outer.e.span.location()
        self.emitter.read_only |= outer.e.read_only
        for part in (p for form in self.forms for p in flat(form)):
            for type_ in ir_types(part):
                argument = self.entry.insert_arg(type_, len(self.entry.args))
                if isinstance(part, ArrayForm) and part.read_only:
                    self.emitter.read_only.add(argument)
        self.overlap_all()
        self.inherit(outer)
        self.sender = Sender(self)
        self.entered = Entered(self, site.types, records)
        self.guard: Guard | None = None
        self.result: Value | None = None
        self.assigned: dict[Place, Value] = {}

    def inherit(self, outer: Calls) -> None:
        """Let the lowering know what that of the caller knows."""
        lowering = self.lowering
        lowering.registry = outer.registry
        lowering.inputs = Outside(outer.inputs, lambda _, value: imported(value, self))
        lowering.fixed, lowering.watched = outer.fixed, outer.watched
        lowering.outside, lowering.purpose = outer.outside, outer.purpose
        lowering.routines = outer.routines
        lowering.catching.classes = outer.catching.classes
        lowering.lists = HandedLists(self, outer.lists)
        journal = outer.objects.journal
        lowering.objects = replace(
            outer.objects, journal=None if journal is None else HandedJournal(journal, self)
        )
        lowering.importer, lowering.returning, lowering.place = self.seen, self.returning, self
        lowering.calls = [self.definition]  # pyright: ignore[reportAttributeAccessIssue]

    # The body

    def lower(self) -> None:
        """Lower the body: its result, of whatever paths have one so far, and what it has assigned."""
        frame, names = self.site.frame, list(self.site.forms)
        node = self.definition if isinstance(self.definition, ast.AST) else frame.source.node
        self.private.location = frame.span(node).location()
        make = Making(iter(list(self.entry.args)), self.entered.records)
        values = [make.value(form) for form in self.site.forms.values()]
        own = replace(frame, path=(self.number,), env=dict(zip(names, values, strict=True)))
        self.entered.bind(own.env, make)
        for name, form in zip(names, self.site.forms.values(), strict=True):
            self.name_arguments(name, form)
        for type_ in self.site.types:
            for key, form in type_.fields:
                self.name_arguments(f"{type_.name}.{key}", form)
        self.lowering.frame = own
        if is_asked(self.site.lowering):
            self.result = self.guarded_body(own)
        else:
            result = self.lowering.run_frame(own, self.site.body)
            self.result = None if self.lowering.dead else result
        self.lowering.dead = False
        self.assigned = {(n, key): value for n, key, value in self.entered.assigned(own.env)}
        for place, _ in () if self.known is None else self.known.fields:
            self.assigned.setdefault(place, self.entered.initial[place[0]][place[1]])
        for (number, key), value in self.assigned.items():
            self.assigned[number, key] = self.entered.leaving(
                value, (number, key), self.entered.new
            )

    def guarded_body(self, own: Frame) -> Value | None:
        """The result of a body that keeps what it raises."""
        lowering = self.lowering
        raises = () if self.known is None else self.known.raises
        self.guard = Guard(lowering.catching, self.emitter, own, raises)
        with lowering.catching.attempt(self.guard.attempt, frozenset({RESULT})):
            nonlocals.share(lowering, own)
            lowering.block(self.site.body)
        lowering.calls.pop()
        if lowering.dead:
            return None
        result = own.env.get(RESULT, NoneValue())
        assert not isinstance(result, Maybe)
        return result

    def returning(self, value: Value) -> Value:
        """What a `return` of this function returns."""
        if self.lowering.frame.path != (self.number,):
            return value
        return self.entered.leaving(value, ("result",), [])

    def name_arguments(self, name: str, form: Form) -> None:
        """Call the next arguments without a name after a parameter."""
        nameless = [a for a in self.entry.args if a.name_hint is None]
        for argument, _ in zip(nameless, ir_types(form), strict=False):
            argument.name_hint = as_hint(name)

    def own_arrays(self) -> list[SSAValue]:
        """The arrays among the arguments that the call gives, in order."""
        count = sum(len(ir_types(form)) for form in self.forms)
        return [a for a in self.entry.args[:count] if isinstance(a.type, MemRefType)]

    # What it leaves

    def outcome(self) -> Outcome:
        """What is known of the outcome after this build."""
        self.sender.check()
        form = partial(form_of, number=self.entered.number, sent=self.sender.form)
        result = None if self.result is None else form(self.result)
        for one in () if result is None else flat(result):
            if isinstance(one, ObjectForm) and self.is_own_list(one.value):
                raise Formless("a list of its own")
        fields = tuple((place, form(value)) for place, value in self.assigned.items())
        self.entered.check(result, [f for _, f in fields])
        return Outcome(result, fields, () if self.guard is None else self.guard.raises())

    def is_own_list(self, value: Value) -> bool:
        found = value.object if isinstance(value, Static) else None
        return isinstance(found, ListObject) and found.key[0][:1] == (self.number,)

    def finish(self, outcome: Outcome) -> None:
        """The function ends here."""
        make_room(self.lowering.lists.values(), self.lowering.facts)
        for op in self.private.walk():
            if array.GROWABLE in op.attributes:
                raise CompileError(
                    self.emitter.span,
                    f"a list grows in the recursive {self.site.name}() that makes it",
                    "fill an array, or make the list before the call and pass it",
                )
        results = [] if self.guard is None else self.guard.results()
        values = [self.assigned[place] for place, _ in outcome.fields]
        if outcome.result is not None:
            assert self.result is not None
            values.append(self.result)
        for value, form in zip(values, outcome.forms(), strict=True):
            results += leaves(self.emitter, value, form)
        self.emitter.insert(func.ReturnOp(*results))

    # What it reads of the functions around

    def seen(self, frame: Frame, binding: Any) -> Any:
        """A binding of a frame, as this function sees it."""
        if binding is None or frame.path[:1] == (self.number,):
            return binding
        try:
            if isinstance(binding, Maybe):
                return Maybe(imported(binding.value, self), self.handed(binding.defined))
            return imported(binding, self)
        except Formless:
            raise self.lowering.refusal(
                None, "a recursive function reads something that is neither a number nor an array",
                "pass it as an argument",
            ) from None  # fmt: skip

    def handed(self, value: SSAValue) -> SSAValue:
        """The argument that stands for a value of another function."""
        if value not in self.captures:
            made = self.entry.insert_arg(value.type, len(self.entry.args))
            made.name_hint = value.name_hint
            self.captures[value] = made
            read_only.hand_on(self.emitter, value, self.emitter, made)
            self.overlap_all()
        return self.captures[value]

    def overlap_all(self) -> None:
        """Until all calls are known, any two arrays may share memory."""
        places = [k for k, a in enumerate(self.entry.args) if isinstance(a.type, MemRefType)]
        mark_overlaps(self.private, combinations(places, 2))


def nobody() -> None:
    """Stands for the function of an activation, which `Build` does not read."""


def complete(main: func.FuncOp, activations: Sequence[Activation]) -> list[func.FuncOp]:
    """The private functions of a module, ready: calls hand on what is captured, and say what they touch."""
    by_name = {a.name: a for a in activations}
    sites = [(None, call) for call in activation.calls(main)]
    sites += [(a, call) for a in activations for call in activation.calls(a.private)]
    count = -1
    while count != (count := sum(len(a.captures) for a in activations)):
        for place, call in sites:
            for value in list(by_name[call.target].captures):
                if place is not None and not defined_in(value, place.entry):
                    place.handed(value)
    for place, call in sites:
        extra = [
            v if place is None or defined_in(v, place.entry) else place.captures[v]
            for v in by_name[call.target].captures
        ]
        call.operands = [*call.operands, *extra]
    functions = [a.private for a in activations]
    for made in activations:
        made.erase_dead_loads()
        made.private.update_function_type()
    describe_calls([main, *functions])
    for made in activations:
        made.check_rebindings()
    return functions


def defined_in(value: SSAValue, entry: Block) -> bool:
    """True for a value of the function whose entry block this is."""
    owner = value.owner
    if isinstance(value, BlockArgument):
        block: Block | None = value.owner
    else:
        assert isinstance(owner, Operation)
        block = owner.parent
    while block is not None and block is not entry:
        parent = block.parent_op()
        block = None if parent is None else parent.parent
    return block is entry
