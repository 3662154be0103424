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
from collections.abc import Sequence
from dataclasses import replace
from types import FunctionType
from typing import TYPE_CHECKING, Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType

from ....dialects import foreign
from ...diagnostics import CompileError
from ...rules.builders import fill
from ...rules.handwritten import HandwrittenRule, effects_of
from .. import scalars
from ..facts import Facts
from ..values import Array, NoneValue, Static, Tuple, Value
from . import foreign_calls
from .foreign_calls import ForeignFunction
from .routines import Key, Routine, RoutineCall, keyword_only, ssa_of
from .rule_parameters import ATTRIBUTES, Parameter

if TYPE_CHECKING:
    from .calls import Calls


class RuleCall(RoutineCall):
    """One call: its operands, its functions."""

    special = "which has a rule"
    apart = "its rule is written for arguments that do not"
    instead = "write a loop, or leave out the rule"

    def __init__(
        self,
        lowering: Calls,
        rule: HandwrittenRule,
        callee: FunctionType | ForeignFunction,
        values: Sequence[Value],
        node: ast.AST,
    ) -> None:
        self.rule, self.callee = rule, callee
        self.parameters = list(rule.parameters)
        name = callee.__name__ if isinstance(callee, FunctionType) else callee.name
        if len(self.parameters) not in (len(values), len(values) + 1):
            raise lowering.refusal(
                node,
                f"the rule of {name}() has {len(self.parameters)} parameters, and the call"
                f" {len(values)} arguments",
                "one for each argument, and one more for the result if there is one",
            )
        super().__init__(lowering, name, dict(zip(self.parameters, values, strict=False)), node)

    def refusal_of_rule(
        self, message: str, way_out: str | None = None, mode: str = "adjoint"
    ) -> CompileError:
        """The rule itself is what cannot be compiled."""
        own = self.lowering.function_parts(getattr(self.rule, mode))[0]
        return CompileError(own.span(own.node), message, way_out)

    def lowered(self) -> Value:
        primal = self.completed()
        adjoint = self.attempt(lambda facts: self.derivative(facts, "adjoint"))
        self.check_needs(adjoint)
        made = [primal, adjoint]
        if self.rule.tangent is not None:
            made.append(self.attempt(lambda facts: self.derivative(facts, "tangent")))
        places = dict.fromkeys(k for r in made for k in r.keys_of if k[0] == "outside")
        keys = [("value", k) for k in range(len(self.operands))] + list(places)
        operands = [self.operand(*key) for key in keys]
        ssa = [ssa_of(operand) for operand in operands]
        stored, read = primal.touched("write"), primal.touched("read")
        effects = [self.effect(key, o, stored, read) for key, o in zip(keys, operands, strict=True)]
        written = [k for k, effect in enumerate(effects) if "write" in effect]
        names = [*self.names, *(place[1][1] for place in places)]
        self.check_sharing(operands, names, dict.fromkeys(written, f"{self.name}() overwrites"))
        for kind, number in made[-1].touched("write"):
            if kind == "tangent" and "write" not in effects[number]:
                raise self.refusal_of_rule(
                    f"the rule of {self.name}() stores to the tangent of `{self.names[number]}`, "
                    f"which {self.name}() does not overwrite",
                    mode="tangent",
                )
        primal.arranged(keys, [v.type for v in ssa])
        takes = [self.taken(one, keys) for one in made[1:]]
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
        return self.outer_result(self.result, op.called)

    def taken(self, routine: Routine, keys: Sequence[Key]) -> list[str]:
        """Let a function take what it uses, and say what that is; `keys` are those of the op's operands."""
        used = [(k, a) for k, a in zip(routine.keys_of, routine.entry.args, strict=True) if a.uses]
        routine.arranged([k for k, _ in used], [a.type for _, a in used])
        places = [("value", keys.index(k)) if k[0] == "outside" else k for k, _ in used]
        return [f"{kind} {number}" for kind, number in places]

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

    def body(self, routine: Routine, values: list[Value]) -> Value:
        """The call of the function, or of the foreign function, in the primal."""
        if not isinstance(self.callee, FunctionType):
            effects = effects_of(self.rule, values)
            return foreign_calls.call(routine.lowering, self.callee, values, {}, effects, self.node)
        first = self.callee.__code__.co_argcount
        named = dict(zip(keyword_only(self.callee.__code__), values[first:], strict=True))
        return routine.lowering.inline(self.callee, values[:first], named, self.node)  # pyright: ignore

    # The adjoint, and the tangent.

    def derivative(self, facts: Facts, mode: str) -> Routine:
        """The "adjoint", or the "tangent", compiled for these arguments."""
        routine = Routine(self, mode, facts)
        if mode == "adjoint":
            routine.lowering.purpose = self.lowering.purpose.within(self.rule.adjoint)
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
        for key in routine.touched("write"):
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
