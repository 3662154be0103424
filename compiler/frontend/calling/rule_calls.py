"""Calls of functions with a rule, where a gradient is compiled.

The call becomes one op, `foreign.call_with_rule`, beside private functions: the *primal*, the function
compiled for these arguments, the *adjoint*, the rule compiled for them, and the *tangent*, if there is one::

    axpy(a, x, y)       foreign.call_with_rule @axpy_primal @axpy_adjoint(%a, %x, %y) takes [...]

The simplifying passes and the analyses see a call with effects; the derivative puts the functions' code
in its place (`rules.rule_calls`). Where no gradient is compiled the function is inlined as any other.

In both a parameter is an object whose attributes are what the op hands over: `x.value` and `x.shadow`
become parameters of the IR function when they are first read.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, BlockArgument, SSAValue

from ....dialects import activation, array, foreign
from ...analysis.alias import AliasAnalysis
from ...derivative.cotangents import EntryExtents
from ...diagnostics import CompileError
from ...names import as_symbol
from ...rules.builders import fill
from ...rules.handwritten import HandwrittenRule, effects_of, may_raise
from .. import scalars
from ..bindings.roots import roots
from ..build import MAX_RESTARTS
from ..facts import Facts
from ..library import overlap
from ..values import Array, NoneValue, Scalar, Static, Tuple, Value
from . import foreign_calls, recursion
from .foreign_calls import ForeignFunction
from .routines import Key, Number, Routine, Slot
from .rule_parameters import ATTRIBUTES, Parameter

if TYPE_CHECKING:
    from .calls import Calls


class RuleCall:
    """One call: its operands, its two functions."""

    def __init__(
        self,
        lowering: Calls,
        rule: HandwrittenRule,
        callee: FunctionType | ForeignFunction,
        values: Sequence[Value],
        node: ast.AST,
    ) -> None:
        self.lowering, self.rule, self.callee, self.node = lowering, rule, callee, node
        self.name = callee.__name__ if isinstance(callee, FunctionType) else callee.name
        self.operands: list[Scalar | Array] = []
        self.names: list[str] = []
        self.parameters = list(rule.parameters)
        if len(self.parameters) not in (len(values), len(values) + 1):
            raise self.refusal(
                f"the rule of {self.name}() has {len(self.parameters)} parameters, and the call"
                f" {len(values)} arguments",
                "one for each argument, and one more for the result if there is one",
            )
        self.values = [
            self.slotted(lowering.settled(v), n)
            for v, n in zip(values, self.parameters, strict=False)
        ]
        self.own = len(self.operands)
        self.results: list[Scalar] = []
        self.result: Any = NoneValue()

    def refusal(self, message: str, way_out: str | None = None) -> CompileError:
        return self.lowering.refusal(self.node, message, way_out)

    def refusal_of_rule(
        self, message: str, way_out: str | None = None, mode: str = "adjoint"
    ) -> CompileError:
        """The rule itself is what cannot be compiled."""
        own = self.lowering.function_parts(getattr(self.rule, mode))[0]
        return CompileError(own.span(own.node), message, way_out)

    # Arguments.

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
                    f"argument `{name}` of {self.name}(), which has a rule, is no number, array or tuple"
                )

    def within(self, value: Any, routine: Routine, fetch: Callable[[Any], Value]) -> Value:
        """A value as a private function sees it; `fetch` finds what slots stand for."""
        match value:
            case Slot() | Number():
                return fetch(value)
            case Tuple(items):
                return replace(
                    value, items=tuple(self.within(item, routine, fetch) for item in items)
                )
            case Scalar():
                assert value.constant is not None
                return routine.emitter.constant(value.constant, value.type)
            case _:
                return value

    def attempt(self, make: Callable[[Facts], Routine]) -> Routine:
        """Build a private function as often as it takes (see `build`, Note [Widening by restart])."""
        outer = self.lowering.facts
        facts = Facts(
            trees=outer.trees,
            nested=outer.nested,
            constants=outer.constants,
            recursive=outer.recursive,
        )
        for _ in range(MAX_RESTARTS):
            facts.changed = False
            facts.unready.clear()
            try:
                routine = make(facts)
            except recursion.Again:
                continue
            if activation.calls(routine.private):
                raise self.refusal(
                    f"{self.name}(), which has a rule, or its rule, calls a function that calls itself",
                    "write a loop, or leave out the rule",
                )
            if not facts.changed:
                if facts.unready:
                    raise facts.unready[0]
                self.lowering.routines[:] = routine.lowering.routines
                return routine
        raise self.refusal(f"the types of {self.name}() do not settle")

    def lowered(self) -> Value:
        primal = self.attempt(self.primal)
        if self.lowering.catching.attempts and any(map(may_raise, primal.private.walk())):
            raise foreign_calls.uncaught(self.lowering, self.name, self.node)
        self.destinations(primal)
        adjoint = self.attempt(lambda facts: self.derivative(facts, "adjoint"))
        self.check_needs(adjoint)
        made = [primal, adjoint]
        if self.rule.tangent is not None:
            made.append(self.attempt(lambda facts: self.derivative(facts, "tangent")))
        places = dict.fromkeys(k for r in made for k in r.keys_of if k[0] == "outside")
        operands = [*self.operands, *(self.lowering.inputs[k[1]] for k in places)]
        keys = [("value", k) for k in range(len(self.operands))] + list(places)
        ssa = [o.memref if isinstance(o, Array) else o.ssa for o in operands]  # pyright: ignore
        stored, read = primal.written_arguments(), primal.read_arguments()
        effects = [self.effect(key, o, stored, read) for key, o in zip(keys, operands, strict=True)]
        self.check_sharing(operands, effects)
        for kind, number in made[-1].written_arguments():
            if kind == "tangent" and "write" not in effects[number]:
                raise self.refusal_of_rule(
                    f"the rule of {self.name}() stores to the tangent of `{self.names[number]}`, "
                    f"which {self.name}() does not overwrite",
                    mode="tangent",
                )
        primal.arranged(keys, [v.type for v in ssa])
        takes = [self.taken(one, keys) for one in made[1:]]
        names = [*self.names, *(place[1][1] for place in places)]
        op = foreign.RuleCallOp(
            primal.private.sym_name.data,
            adjoint.private.sym_name.data,
            ssa,
            takes[0],
            effects,
            names,
            len(self.operands),
            [r.ssa.type for r in self.results],
            (made[2].private.sym_name.data, takes[1]) if len(made) > 2 else None,
        )
        self.lowering.e.insert(op)
        return self.outer_result(self.result, op)

    def taken(self, routine: Routine, keys: Sequence[Key]) -> list[str]:
        """Let a function take what it uses, and say what that is; `keys` are those of the op's operands."""
        used = [(k, a) for k, a in zip(routine.keys_of, routine.entry.args, strict=True) if a.uses]
        routine.arranged([k for k, _ in used], [a.type for _, a in used])
        places = [("value", keys.index(k)) if k[0] == "outside" else k for k, _ in used]
        return [f"{kind} {number}" for kind, number in places]

    def outer_result(self, value: Any, op: foreign.RuleCallOp) -> Value:
        """What the call returns, where it stands."""
        match value:
            case Slot(number):
                return self.operands[number]
            case Number(position):
                return replace(self.results[position], ssa=op.called[position], python=None)
            case Tuple(items):
                return replace(value, items=tuple(self.outer_result(item, op) for item in items))
            case _:
                return value

    def effect(self, key: Key, operand: Value, stored: set[Key], read: set[Key]) -> str:
        """What the call does to an operand's memory."""
        if not isinstance(operand, Array):
            return "none"
        if key[0] == "outside":
            return "readwrite" if key in stored else "read"
        if key[1] >= self.own:
            return "write"
        found = effects_of(self.rule, self.values)[self.parameters.index(self.names[key[1]])]
        if not isinstance(self.callee, FunctionType):
            return found
        if key in read and "read" not in found:
            raise self.refusal(
                f"{self.name}() reads `{self.names[key[1]]}`, which its rule does not say",
                f"declare it: reads=(..., {self.names[key[1]]!r})",
            )
        if key in stored and "write" not in found:
            if self.rule.overwrites is not None:
                raise self.refusal(
                    f"{self.name}() stores to `{self.names[key[1]]}`, which its rule does not say",
                    f"declare it: overwrites={self.names[key[1]]!r}",
                )
            found += "write"
        return found.replace("none", "")

    def check_sharing(self, operands: Sequence[Value], effects: Sequence[str]) -> None:
        """What is overwritten shares no memory with another argument: the rule could not know.

        Where only the run can tell, it does: before the call, and with the same words.
        """
        names = [*self.names, *["what is read from outside"] * len(operands)]
        checked = set[frozenset[int]]()
        for k, (one, effect) in enumerate(zip(operands, effects, strict=True)):
            for j, other in enumerate(operands):
                if j == k or "write" not in effect or not isinstance(other, Array):
                    continue
                assert isinstance(one, Array)
                e, pair = self.lowering.e, frozenset((j, k))
                if pair in checked or overlap.disjoint(e, one.memref, other.memref):
                    continue
                if overlap.meet(e, one.memref, other.memref):
                    raise self.refusal(
                        f"{self.name}() overwrites `{names[k]}`, which may share memory with "
                        f"`{names[j]}`: its rule is written for arguments that do not",
                        f"pass a copy: {names[j]}.copy()",
                    )
                checked.add(pair)
                shared = e.emit(array.OverlapOp(one.memref, other.memref), "shared")
                text = (
                    f"mutad: {self.name}() overwrites `{names[k]}`, which shares memory with "
                    f"`{names[j]}` in this call: its rule is written for arguments that do not; "
                    f"pass a copy, {names[j]}.copy()"
                )
                e.insert(array.RaiseIfOp(shared, "ValueError", text))

    # The primal.

    def primal(self, facts: Facts) -> Routine:
        lowering = self.lowering
        routine = Routine(lowering, self.fresh_name("primal"), facts, "primal")
        for k, operand in enumerate(self.operands):
            routine.argument(("value", k), operand)
        self.list_sharing(routine, "value")

        def fetch(slot: Any) -> Value:
            return routine.argument(("value", slot.number), self.operands[slot.number])

        values = [self.within(v, routine, fetch) for v in self.values]
        if isinstance(self.callee, FunctionType):
            code, first = self.callee.__code__, self.callee.__code__.co_argcount
            names = code.co_varnames[first : first + code.co_kwonlyargcount]
            named = dict(zip(names, values[first:], strict=True))
            result = routine.lowering.inline(self.callee, values[:first], named, self.node)  # pyright: ignore
        else:
            effects = effects_of(self.rule, values)
            result = foreign_calls.call(
                routine.lowering, self.callee, values, {}, effects, self.node
            )
        if not facts.changed:
            self.results = []
            self.arrays: list[Array] = []
            self.result = self.leave(routine.with_identity(result), routine)
        routine.finished([r.ssa for r in self.results] if not facts.changed else [])
        return routine

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
                        f"{self.name}(), which has a rule, returns one of its arguments, or a view of one",
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
                    f"{self.name}(), which has a rule, returns no number, array or tuple"
                )

    def destinations(self, primal: Routine) -> None:
        """Let the caller allocate the arrays that the primal returns: operands that it overwrites."""
        e = self.lowering.e
        given: dict[SSAValue, SSAValue] = {}
        for key, argument in zip(primal.keys_of, primal.entry.args, strict=True):
            found = self.operands[key[1]] if key[0] == "value" else self.lowering.inputs[key[1]]
            given[argument] = found.memref if isinstance(found, Array) else found.ssa  # pyright: ignore
        extents = EntryExtents(AliasAnalysis(primal.private), given, e.emit)
        for result in self.arrays:
            shape = extents.of(result.memref)
            if shape is None:
                raise self.refusal(
                    f"{self.name}(), which has a rule, returns an array whose shape only its values tell",
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

    def list_sharing(self, routine: Routine, kind: str) -> None:
        """Arguments of a private function share memory where the caller's may."""
        pairs: list[tuple[int, int]] = []
        for i, (what, k) in enumerate(routine.keys_of):
            for j, (other, n) in enumerate(routine.keys_of[:i]):
                if what != kind or other != kind:
                    continue
                one, two = self.operands[k], self.operands[n]
                if not isinstance(one, Array) or not isinstance(two, Array):
                    continue
                if not overlap.disjoint(self.lowering.e, one.memref, two.memref):
                    pairs.append((j, i))
        routine.list_overlaps(pairs)

    def fresh_name(self, kind: str) -> str:
        taken = {f.sym_name.data for f in self.lowering.routines}
        stem = as_symbol(self.name, "function")
        name, number = f"{stem}_{kind}", 1
        while name in taken:
            number += 1
            name = f"{stem}_{kind}_{number}"
        return name

    # The adjoint, and the tangent.

    def derivative(self, facts: Facts, mode: str) -> Routine:
        """The "adjoint", or the "tangent", compiled for these arguments."""
        routine = Routine(self.lowering, self.fresh_name(mode), facts, mode)
        if mode == "adjoint":
            routine.lowering.purpose = self.lowering.purpose.within
        args: list[Value] = [
            self.parameter(routine, name, value)
            for name, value in zip(self.parameters, self.values, strict=False)
        ]
        returns = not isinstance(self.result, NoneValue)
        if returns != (len(self.parameters) > len(args)):
            more = (
                "one more, for the result" if returns else "no result, and so no parameter for it"
            )
            raise self.refusal_of_rule(
                f"the rule of {self.name}() has {len(self.parameters)} parameters: there is {more}",
                mode=mode,
            )
        if returns:
            args.append(self.parameter(routine, self.parameters[-1], self.result, result=True))
        of_arrays = ATTRIBUTES[mode][0]
        if mode == "tangent":
            self.zero_results(routine, of_arrays)
        result = routine.lowering.inline(getattr(self.rule, mode), args, {}, self.node)  # pyright: ignore
        if not isinstance(result, NoneValue):
            raise self.refusal_of_rule(
                f"the rule of {self.name}() returns something",
                f"update {of_arrays}s in place, and return nothing",
                mode,
            )
        if mode == "adjoint":
            self.zero_results(routine, of_arrays)
        routine.finished([])
        for key in routine.written_arguments():
            if key[0] in ("value", "after", "outside"):
                which = self.names[key[1]] if key[0] != "outside" else "what it reads from outside"
                raise self.refusal_of_rule(
                    f"the rule of {self.name}() stores to {which}",
                    f"a rule stores to {of_arrays}s only; an opaque or C function that it calls counts as "
                    "storing to all arrays that it is given, unless a rule of its own declares what it "
                    "overwrites",
                    mode,
                )
        if mode == "adjoint":
            self.use_shadows_for_shapes(routine)
        return routine

    def parameter(self, routine: Routine, name: str, value: Any, *, result: bool = False) -> Value:
        """What the rule is given for an argument, or for the result: of a tuple, a tuple of those."""
        if isinstance(value, Tuple):
            items = enumerate(value.items)
            parts = [self.parameter(routine, f"{name}_{k}", v, result=result) for k, v in items]
            return replace(value, items=tuple(parts))
        return Static(Parameter(self, routine, name, value, result=result))

    def zero_results(self, routine: Routine, kind: str) -> None:
        """An array that is returned was overwritten: what it held before has no cotangent, and no tangent."""
        for number in range(self.own, len(self.operands)):
            operand = self.operands[number]
            if isinstance(operand, Array) and scalars.is_float(operand.dtype):
                memory = routine.argument((kind, number), operand).memref  # pyright: ignore
                extents = routine.emitter.extents(memory)
                routine.emitter.insert(fill(memory, extents, routine.private))

    def use_shadows_for_shapes(self, routine: Routine) -> None:
        """Where only the shape of a value is asked for, the shadow has it too."""
        for key, argument in list(zip(routine.keys_of, list(routine.entry.args), strict=True)):
            if key[0] not in ("value", "after") or not isinstance(argument.type, MemRefType):
                continue
            operand = self.operands[key[1]]
            if not isinstance(operand, Array) or not scalars.is_float(operand.dtype):
                continue
            users = [u.operation for u in argument.uses]
            if users and all(isinstance(u, memref.DimOp) for u in users):
                shadow = routine.placed(
                    ("shadow", key[1]), argument.type, f"{self.names[key[1]]}_shadow"
                )
                argument.replace_all_uses_with(shadow)

    def check_needs(self, routine: Routine) -> None:
        """The rule reads nothing that it does not declare to need."""
        if self.rule.needs is None:
            return
        for (kind, number), argument in zip(routine.keys_of, routine.entry.args, strict=True):
            if kind not in ("value", "after", "result") or not argument.uses:
                continue
            if kind == "result" or number >= self.own:  # an array that is returned
                name, text = self.parameters[-1], f"{self.parameters[-1]}.value"
            else:
                name = self.names[number] + (".after" if kind == "after" else "")
                text = name if kind == "after" else f"{name}.value"
            if name not in self.rule.needs:
                raise self.refusal_of_rule(
                    f"the rule of {self.name}() reads `{text}`, which it does not declare to need",
                    f"declare it: needs=(..., {name!r})",
                )
