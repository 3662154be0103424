"""One private function for a function that calls itself: lowered by itself, handed what it reads around."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, i64
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from ....dialects import activation, array
from ...analysis.effects import describe_calls
from ...diagnostics import CompileError
from ..bindings.roots import choices
from ..build import Build
from ..context import Frame
from ..data.list_room import make_room
from ..joins import Maybe
from ..values import Array, Tuple, Value
from .recursion import (
    Definition,
    Form,
    Formless,
    SameForm,
    TupleForm,
    form_of,
    imported,
    ir_types,
    leaves,
    name_of,
    rebuilt,
)

if TYPE_CHECKING:
    from .calls import Calls


class Outside(dict[tuple[int, str], Value]):
    """The inputs from outside, as a private function sees them: arguments, once they are read."""

    def __init__(self, place: Activation, outer: dict[tuple[int, str], Value]) -> None:
        super().__init__(outer)
        self.place = place
        self.outer = outer

    def __getitem__(self, key: tuple[int, str]) -> Value:
        return imported(self.outer[key], self.place)


class Activation(Build):
    """A private function under construction."""

    def __init__(
        self,
        outer: Calls,
        name: str,
        definition: Definition,
        forms: Sequence[Form],
        number: int,
    ) -> None:
        super().__init__(nobody, [], (), outer.e.boundscheck, False, outer.facts, None)
        self.name = name
        self.definition = definition
        self.forms = forms
        self.number = number
        self.captures: dict[SSAValue, SSAValue] = {}
        """What it reads of the functions around, with its arguments that stand for that."""
        self.private = func.FuncOp(name, ([], []), Region(self.entry), visibility="private")
        self.emitter.span = outer.e.span
        if outer.e.span is not None:
            self.private.location = outer.e.span.location()
        for type_ in (t for form in forms for t in ir_types(form)):
            self.entry.insert_arg(type_, len(self.entry.args))
        self.overlap_all()
        lowering = self.lowering
        lowering.registry = outer.registry
        lowering.inputs = Outside(self, outer.inputs)
        lowering.fixed, lowering.watched = outer.fixed, outer.watched
        lowering.outside, lowering.with_rules = outer.outside, outer.with_rules
        lowering.routines = outer.routines
        lowering.importer = self.seen
        lowering.calls = [definition]

    def lower(self, frame: Frame, body: Sequence[ast.stmt], names: Sequence[str]) -> Value:
        """Lower the body; the result, of whatever paths have one so far."""
        node = self.definition if isinstance(self.definition, ast.AST) else frame.source.node
        self.private.location = frame.source.span(node).location()
        parts = iter(list(self.entry.args))
        values = [rebuilt(form, parts) for form in self.forms]
        own = replace(frame, path=(self.number,), env=dict(zip(names, values, strict=True)))
        for name, form in zip(names, self.forms, strict=True):
            self.name_arguments(name, form)
        self.lowering.frame = own
        return self.lowering.run_frame(own, body)

    def name_arguments(self, name: str, form: Form) -> None:
        """Call the next arguments without a name after a parameter."""
        nameless = [a for a in self.entry.args if a.name_hint is None]
        for argument, _ in zip(nameless, ir_types(form), strict=False):
            argument.name_hint = name

    def outcome(self, result: Value) -> Form | None:
        """The form of the result; None where no path is known to return."""
        if self.lowering.dead:
            return None
        places = list[SSAValue](self.entry.args[: self.own])
        places = [a for a in places if isinstance(a.type, MemRefType)]

        def visit(value: Value) -> Form:
            match value:
                case Array():
                    found = set(choices(value.memref))
                    if value.whole or len(found) != 1 or not found <= set(places):
                        raise Formless("an array that is none of its arguments")
                    return SameForm(places.index(found.pop()))
                case Tuple(items):
                    return TupleForm(tuple(map(visit, items)))
                case _:
                    return form_of(value)

        return visit(result)

    @property
    def own(self) -> int:
        """How many IR arguments the parameters are."""
        return sum(len(ir_types(form)) for form in self.forms)

    def finish(self, result: Value, outcome: Form) -> None:
        """The function ends here."""
        make_room(self.lowering.lists.values(), self.lowering.facts)
        for op in self.private.walk():
            if array.GROWABLE in op.attributes:
                raise CompileError(
                    self.emitter.span,
                    f"a list grows in {name_of(self.definition)}(), which calls itself",
                    "fill an array, or let a function that does not call itself make the list",
                )
        self.emitter.insert(func.ReturnOp(*leaves(self.emitter, result, outcome)))

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
                None, "a function that calls itself reads something that is no number or array",
                "pass it as an argument",
            ) from None  # fmt: skip

    def handed(self, value: SSAValue) -> SSAValue:
        """The argument that stands for a value of another function."""
        if value not in self.captures:
            made = self.entry.insert_arg(value.type, len(self.entry.args))
            made.name_hint = value.name_hint
            self.captures[value] = made
            self.overlap_all()
        return self.captures[value]

    def overlap_all(self) -> None:
        """Until all calls are known, any two arrays may share memory."""
        places = [k for k, a in enumerate(self.entry.args) if isinstance(a.type, MemRefType)]
        pairs = [(i, j) for n, i in enumerate(places) for j in places[n + 1 :]]
        self.private.attributes["overlaps"] = ArrayAttr(
            [ArrayAttr([IntegerAttr(i, i64), IntegerAttr(j, i64)]) for i, j in pairs]
        )


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
