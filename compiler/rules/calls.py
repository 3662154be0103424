"""Rules of calls: of foreign functions, of recursive functions, of the outside world.

What a foreign function computes has no derivative that the compiler knows. Recursive functions have a
forward and a backward function each (`derivative.activations`), and one with tangents::

    %r, %y = activation.call @f(%x, %a)
    forward  %r, %y = activation.call @f_forward(%x, %a)
    reverse  %x_bar = activation.call @f_backward(%r, %a_shadow, ...)
    tangent  %r, %y, %y_dot = activation.call @f_tangent(%x, %a, %a_dot, ...)
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import activation, array, foreign
from ...dialects.within import module_of
from ..diagnostics import CompileError, WithoutTangent, refusal
from .access import Access, Activity, Contents, Flow, Need
from .builders import element_of
from .descriptors import descriptor_values
from .routines import inlined, is_routine, primal_of
from .rule import Rule, Rules, WithoutDerivative, memrefs, touching
from .rule_calls import CallAdjoint, CallTangent, cast_to, tangent_or_zeros
from .shadows import scratch_shadow, shadow_type
from .sweeps import SHADOW, ReverseSweep, TangentSweep, bind_with_tangents

Checkpointed = activation.StepsOp | activation.ReverseStepsOp

SIGNATURE = ("shadows", "cotangents", "scalars")
"""The attributes that say what a gradient function takes and returns, here of the function that it is of."""


class ForeignCall(Rule[foreign.CallOp]):
    """A call of what the compiler cannot see into."""

    opaque = True

    def effects(self, op: foreign.CallOp) -> list[Access]:
        read, written = op.arguments_that("read"), op.arguments_that("write")
        return touching(op, read, written, must=False)

    def needs(self, op: foreign.CallOp, activity: Activity) -> Iterator[Need]:
        raise without_rule(op)

    def tangent(self, op: foreign.CallOp, sweep: TangentSweep) -> None:
        if self.has_derivative(op, sweep.activity):
            raise without_rule(op, "a rule with a tangent (`@mutad.rule`, `@mutad.tangent_rule`)")
        sweep.clone(op)


def without_rule(op: foreign.CallOp, what: str = "") -> CompileError:
    """Refuse the derivative of a foreign function; `what` rule it lacks."""
    name = op.callee.data.removeprefix("mutad_special_")
    if op.convention.data == "c" and name.startswith("mutad_foreign_"):
        name = name.split("_", 3)[3]
    name = name.removeprefix("__pyx_fuse_1")
    return refusal(
        op,
        f"the {'tangent' if what else 'gradient'} needs the derivative of `{name}`, into which the compiler "
        "cannot see",
        f"write its rule (`@mutad.rule({name}, ...)`), or call it on `mutad.stop_gradient(x)`"
        if not what
        else f"give it {what}, or call it on `mutad.stop_gradient(x)`",
        WithoutTangent if what else CompileError,
    )


class StopGradient(WithoutDerivative):
    """The same number, through which no derivative flows."""


class NoDerivative(Rule[foreign.NoDerivativeOp]):
    """A number whose derivative the library cannot give."""

    def effects(self, op: foreign.NoDerivativeOp) -> list[Access]:
        return []

    def adjoint(self, op: foreign.NoDerivativeOp, sweep: ReverseSweep) -> None:
        if self.has_derivative(op, sweep.activity):
            raise self.refused(op)

    def tangent(self, op: foreign.NoDerivativeOp, sweep: TangentSweep) -> None:
        if self.has_derivative(op, sweep.activity):
            raise self.refused(op)
        sweep.clone(op)

    def needs(self, op: foreign.NoDerivativeOp, activity: Activity) -> Iterator[Need]:
        if self.has_derivative(op, activity):
            raise self.refused(op)
        yield from ()

    def refused(self, op: foreign.NoDerivativeOp) -> CompileError:
        return refusal(
            op,
            f"the derivative of {op.what.data} is not known",
            "call `mutad.stop_gradient` on them, or leave them out of what is differentiated",
        )


class Print(WithoutDerivative):
    """Python's `print`: it reads what it shows."""

    def effects(self, op: Operation) -> list[Access]:
        return touching(op, memrefs(op.operands), [])


class ActivationCall(Rule[activation.CallOp]):
    """A call of a recursive function."""

    smooth = True  # what it compares it makes itself, and keeps

    def effects(self, op: activation.CallOp) -> list[Access]:
        return touching(op, op.read(), op.written(), must=False)

    def flows(self, op: activation.CallOp) -> Iterator[Flow]:
        """Into what forward functions keep, and out of it into what backward functions make."""
        pairs = activation.flows(op)
        if pairs is None:
            yield from super().flows(op)
        else:
            yield from ((op.arguments[s], op.arguments[t]) for s, t in pairs)
        if op.keeps_record:
            for source in self.sources(op):
                yield source, op.record
        if op.takes_record:
            for target in self.targets(op):
                yield op.record, target

    def has_derivative(self, op: activation.CallOp, activity: Activity) -> bool:
        """Not where the function itself turns out to have none: a tree that ends here, in no child.

        A forward function keeps tangents for whichever backward call asks for them.
        """
        kept = op.keeps_record and activity.active(op.record)
        return (kept or super().has_derivative(op, activity)) and moves(op)

    def needs(self, op: activation.CallOp, activity: Activity) -> Iterator[Need]:
        if not is_step(op):
            yield op.record
        if op.takes_record:
            yield op.arguments[0]
        for argument in op.arguments:
            if isinstance(argument.type, MemRefType):
                yield from descriptor_values(argument)

    def adjoint(self, op: activation.CallOp, sweep: ReverseSweep) -> None:
        """Call the backward function with the record, the shadows and the cotangents."""
        callee = private_functions(sweep.function.parent_op())[op.target]
        types = [a.type for a in callee.body.block.args]
        operands = [sweep.primal.get(op.record)]
        if op.takes_record:
            operands.append(sweep.primal.get(op.arguments[0]))
        for k in listed(callee, "shadows"):
            if (place := argument_of(callee, k)) is not None:
                operands.append(shadow_of(sweep, op, op.arguments[place], types[k]))
        for k in listed(callee, "cotangents"):
            if k < len(op.called):  # those of what it keeps are in the record
                result = op.called[k]
                zero = sweep.wide(result.type)
                operands.append(sweep.take_bar(result) or sweep.scalars.constant(0.0, zero))
        places = [(k, argument_of(callee, k)) for k in listed(callee, "scalars")]
        scalars = [(types[k], place) for k, place in places if place is not None]
        call = activation.CallOp(
            f"{op.target}{activation.BACKWARD}",
            operands,
            [sweep.wide(type_) for type_, _ in scalars],
            op.frames.value.data,
        )
        sweep.append(call)
        for (_, place), bar in zip(scalars, call.called, strict=True):
            sweep.add_bar(op.arguments[place], bar)

    def tangent(self, op: activation.CallOp, sweep: TangentSweep) -> None:
        """Call the function with tangents: behind the arguments those of arrays, then those of numbers."""
        if not self.has_derivative(op, sweep.activity):
            sweep.clone(op)
            return
        callee = private_functions(sweep.function.parent_op())[op.target]
        moving = [*listed(callee, "shadows"), *listed(callee, "scalars")]
        passed = [place for k in moving if (place := argument_of(callee, k)) is not None]
        operands = sweep.values(op.arguments)
        operands += [tangent_or_zeros(sweep, op, op.arguments[k]) for k in passed]
        results = [r.type for r in op.called]
        dots = [k for k in listed(callee, "cotangents") if k < len(results)]
        call = activation.CallOp(
            tangent_name(op.target),
            operands,
            [*results, *(sweep.wide(results[k]) for k in dots)],
            op.frames.value.data,
        )
        sweep.append(call)
        sweep.bind(op.record, call.record)
        bind_with_tangents(sweep, op.called, call.called, [op.called[k] for k in dots])


def run_again(op: Operation) -> CompileError:
    """The adjoint of a reverse sweep goes forward: it would ask for each step's values in another order."""
    return refusal(
        op,
        "the adjoint of steps that are run again is not computed",
        "take the gradient's tangents, or keep what its steps need (`reverse{adjoints=true}`)",
    )


class Steps(Rule[activation.StepsOp]):
    """The steps of a checkpointed loop; a gradient has them, which is split where its primal ends."""

    smooth = True  # both sweeps run the same steps

    def needs(self, op: activation.StepsOp, activity: Activity) -> Iterator[Need]:
        raise run_again(op)

    def effects(self, op: activation.StepsOp) -> list[Access]:
        """Arrays that take turns are each in every place once."""
        places = activation.in_turns(op.read, op.permutation), op.changing
        read, written = ([op.arguments[k] for k in listed] for listed in places)
        if op.goes_on is not None:
            read.append(op.goes_on)
        return touching(op, read, written, must=False)

    def flows(self, op: activation.StepsOp) -> Iterator[Flow]:
        """As in a call of the step, from and to each place in which an array is in turn."""
        pairs = activation.flows(op)
        if pairs is None:
            yield from super().flows(op)
            return
        for pair in pairs:
            sources, targets = (activation.in_turns([k - 1], op.permutation) for k in pair)
            yield from ((op.arguments[s], op.arguments[t]) for s in sources for t in targets)

    def tangent(self, op: activation.StepsOp, sweep: TangentSweep) -> None:
        """The same steps with tangents, which a state has, and what is kept of a step, as well."""
        places = moving_arguments(sweep, op)
        if not places:
            sweep.clone(op)
            return
        made = activation.StepsOp(
            op.target, sweep.values(op.operands[:8]), with_dots(sweep, op, places), op.permutation,
            op.read, op.written, [k.value.data for k in op.live], op.memory.value.data,
            None if op.flag is None else op.flag.value.data, followed=op.followed is not None,
            upwards=op.upwards is not None,
        )  # fmt: skip
        made.move(tangent_name(op.target), places)
        sweep.append(made)
        for old, fresh in zip(op.results, made.results, strict=True):
            sweep.bind(old, fresh)


class Stack(Rule[activation.StackOp]):
    """Memory for steps."""

    def effects(self, op: activation.StackOp) -> list[Access]:
        return []


class ReverseSteps(Rule[activation.ReverseStepsOp]):
    """The same steps backwards: what they write they write to copies, which begin as restart states."""

    smooth = True

    def needs(self, op: activation.ReverseStepsOp, activity: Activity) -> Iterator[Need]:
        raise run_again(op)

    def effects(self, op: activation.ReverseStepsOp) -> list[Access]:
        shadows = [*op.shadows, *op.shared]
        places = activation.in_turns(op.read, op.permutation)
        read = [op.arguments[k] for k in places if k not in op.changing]
        return touching(op, [*read, *shadows], shadows, must=False)

    def flows(self, op: activation.ReverseStepsOp) -> Iterator[Flow]:
        """Out of what steps keep, too."""
        for source in (*memrefs(op.arguments), *op.shadows):
            for target in op.shadows:
                yield source, target

    def tangent(self, op: activation.ReverseStepsOp, sweep: TangentSweep) -> None:
        """The backward functions with tangents, which move all shadows."""
        places = moving_arguments(sweep, op)
        if not places:
            sweep.clone(op)
            return
        made = activation.ReverseStepsOp(
            op,
            sweep.value(op.kept),
            with_dots(sweep, op, places),
            [*sweep.values(op.shadows), *(tangent_or_zeros(sweep, op, s) for s in op.shadows)],
            [*op.of, *(len(op.arguments) + places.index(k) for k in op.of)],
        )
        made.move(tangent_name(op.target), places)
        sweep.append(made)


def moving_arguments(sweep: TangentSweep, op: Checkpointed) -> list[int]:
    """Which arguments of a loop have tangents: those of its step, in the order of its functions."""
    private = private_functions(sweep.function.parent_op())
    names = (op.target, f"{op.target}{activation.FORWARD}")
    kinds = [[listed(private[name], key) for key in ("shadows", "scalars")] for name in names]
    assert kinds[0] == kinds[1], "the two functions of a step move the same arguments"
    return [k - 1 for places in kinds[0] for k in places]


def with_dots(sweep: TangentSweep, op: Checkpointed, places: list[int]) -> list[SSAValue]:
    """The arguments of a loop, and the tangents of those in these places."""
    dots = [tangent_or_zeros(sweep, op, op.arguments[k]) for k in places]
    return [*sweep.values(op.arguments), *dots]


class RuleCall(Rule[foreign.RuleCallOp]):
    """A call of a function whose adjoint the user wrote: `rule_calls`."""

    def effects(self, op: foreign.RuleCallOp) -> list[Access]:
        read, written = op.arguments_that("read"), op.arguments_that("write")
        return touching(op, read, written, must=False)

    def needs(self, op: foreign.RuleCallOp, activity: Activity) -> Iterator[Need]:
        self.refuse_outside(op, activity)
        for kind, number in op.taken:
            if kind == "result":
                yield op.results[number]
            elif kind in ("value", "after"):
                operand = op.operands[number]
                in_memory = isinstance(operand.type, MemRefType)
                yield Contents(op, number, kind == "after") if in_memory else operand
        for operand in op.operands:
            if isinstance(operand.type, MemRefType):
                yield from descriptor_values(operand)

    def adjoint(self, op: foreign.RuleCallOp, sweep: ReverseSweep) -> None:
        CallAdjoint(sweep, op).emit()

    def tangent(self, op: foreign.RuleCallOp, sweep: TangentSweep) -> None:
        if self.has_derivative(op, sweep.activity):
            self.refuse_outside(op, sweep.activity)
            if op.tangent is None:
                raise without_tangent(op)
            CallTangent(sweep, op).emit()
            return
        results = inlined(primal_of(op), sweep.values(op.operands), sweep.insert, sweep.entry)
        for old, fresh in zip(op.results, results, strict=True):
            sweep.bind(old, fresh)

    def refuse_outside(self, op: foreign.RuleCallOp, activity: Activity) -> None:
        """A rule has no parameter for what the function reads from outside."""
        outside = list(zip(op.operands, op.names, strict=True))[op.outside.value.data :]
        for argument, name in outside:
            if activity.active(argument):
                raise refusal(
                    op,
                    f"the gradient needs the derivative with respect to `{name.data}`, which the function "
                    "reads from outside, and of which its rule says nothing",
                    f"make `{name.data}` a parameter of the function",
                )


def is_step(op: activation.CallOp) -> bool:
    """Whether it stands for an iteration of a checkpointed loop, of which no record is saved."""
    loop = op.parent_op()
    return loop is not None and activation.CHECKPOINTED in loop.attributes


def without_tangent(op: foreign.RuleCallOp) -> CompileError:
    """A rule is the adjoint; the tangent is another one."""
    name = op.primal.string_value().rpartition("_primal")[0]
    return refusal(
        op,
        f"`{name}` has a rule for its adjoint, and none for its tangent",
        f"give it one (`@mutad.tangent_rule({name})`), or take gradients (`grad`, `vjp`)",
        WithoutTangent,
    )


def private_functions(module: Operation | None) -> dict[str, func.FuncOp]:
    """The functions that only the module itself calls."""
    if not isinstance(module, ModuleOp):
        return {}
    return {
        op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp) and is_routine(op)
    }


def moves(op: activation.CallOp) -> bool:
    """Whether a derivative flows through the function that is called, by what is written on it so far."""
    callee = private_functions(module_of(op)).get(op.target)
    if callee is None or any(key not in callee.attributes for key in SIGNATURE):
        return True
    return has_derivative_function(callee)


def has_derivative_function(function: func.FuncOp) -> bool:
    """Whether a derivative flows through a function, by what is written on it.

    A forward function keeps what those that it calls keep: backward functions with tangents rely on that.
    """
    return "keeps" in function.attributes or any(listed(function, key) for key in SIGNATURE)


def count_in_record(function: func.FuncOp, name: str) -> int:
    """How many results a forward function "keeps"; how many arguments of a backward one are "kept"."""
    count = function.attributes.get(name)
    return count.value.data if isinstance(count, IntegerAttr) else 0


def records_of(callee: func.FuncOp) -> list[int]:
    """For each record that a function is given how many of its first arguments are what it holds."""
    if "kept" not in callee.attributes:
        return []
    if activation.RECORDS in callee.attributes:
        return listed(callee, activation.RECORDS)
    return [count_in_record(callee, "kept")]


def argument_of(callee: func.FuncOp, k: int) -> int | None:
    """Which argument of a call is that of the callee; None for what a record stands for."""
    records = records_of(callee)
    count = sum(records)
    return None if k < count else k - count + len(records)


def tangent_name(name: str) -> str:
    """The name of the function with tangents; forward and backward functions stay what they are."""
    for end in (activation.FORWARD, activation.BACKWARD):
        if name.endswith(end):
            return f"{name.removesuffix(end)}_tangent{end}"
    return f"{name}_tangent"


def listed(function: func.FuncOp, name: str) -> list[int]:
    """The indices in an attribute that says what a gradient function takes or returns."""
    indices = function.attributes[name]
    assert isinstance(indices, DenseArrayBase)
    return [int(v) for v in indices.get_values()]


def shadow_of(
    sweep: ReverseSweep, op: activation.CallOp, operand: SSAValue, type_: Attribute
) -> SSAValue:
    """The shadow of an argument, in the type that the function expects; scratch zeros where it has none."""
    if sweep.activity.active(operand):
        shadow = sweep.primal.memref(operand, SHADOW)
    else:
        shadow = scratch_shadow(sweep, op, operand, sweep.wide(element_of(operand)))
    return cast_to(sweep, shadow, sweep.wide(shadow_type(type_)))


RULES: Rules = {
    foreign.CallOp: ForeignCall(),
    foreign.RuleCallOp: RuleCall(),
    foreign.StopGradientOp: StopGradient(),
    foreign.NoDerivativeOp: NoDerivative(),
    activation.CallOp: ActivationCall(),
    activation.StackOp: Stack(),
    activation.StepsOp: Steps(),
    activation.ReverseStepsOp: ReverseSteps(),
    array.PrintOp: Print(),
}
