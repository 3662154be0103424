"""Gradients through recursive functions.

Each such function becomes two. The forward function runs the primal and keeps what its adjoint reads: scalars
by value, all else on tapes. A call of it yields a record of that. The record is a value like any other: the
caller's plan saves it where it must. The backward function takes the record, the shadows and the cotangents::

    %r, %y = activation.call @f(%x, %a)     forward  %r, %y = activation.call @f_forward(%x, %a)
                                            reverse  %x_bar = activation.call @f_backward(%r, %a_shadow..)

Both come from the gradient of the function, split where its primal ends (`split`). After the primal returns,
anybody may store to its arguments, except those that nothing in the module ever writes (`stable_arguments`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseArrayBase,
    MemRefType,
    i64,
)
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import activation, ad, array
from ...dialects.within import every_op
from ..analysis.activity import Activity, is_float
from ..analysis.alias import AliasAnalysis
from ..analysis.views import is_memref
from ..diagnostics import refusal
from ..rules import accesses
from ..rules.calls import argument_of, count_in_record, private_functions

# --- What is active ---------------------------------------------------------------------------


def activity_of(
    function: func.FuncOp, active_arguments: Sequence[int], finals: Sequence[int] | None
) -> Activity:
    """What is active in the function whose gradient is taken."""
    arguments = function.body.block.args
    active = {arguments[i] for i in active_arguments}
    last_of = [arguments[i] for i in finals or ()]
    return Activity(function, AliasAnalysis(function), active, final_arguments=last_of)


@dataclass
class Asked:
    """What the calls of a function ask of its gradient."""

    arguments: set[int] = field(default_factory=set[int])
    """Those that are active in some call."""
    finals: set[int] = field(default_factory=set[int])
    """Arrays whose contents some caller still uses."""
    results: set[int] = field(default_factory=set[int])

    def count(self) -> int:
        return len(self.arguments) + len(self.finals) + len(self.results)


RECORDED = "recorded"
"""The attribute of a backward function that lists which first arguments have tangents in the record."""


class Activities:
    """The activity of each private function that a function calls, for all calls together."""

    def __init__(self, function: func.FuncOp, activity: Activity) -> None:
        self.main, self.private = function, private_functions(function.parent_op())
        self.asked: dict[str, Asked] = {}
        self.of: dict[str, Activity] = {}
        self.alias = {name: AliasAnalysis(f) for name, f in self.private.items()}
        self.asks_strides = any(
            isinstance(op, array.StrideOp) for f in self.private.values() for op in every_op(f)
        )
        """Whether some of them reshapes an argument in place or copies it, as its strides say."""
        count = -1
        while count != (count := sum(1 + a.count() for a in self.asked.values())):
            self.ask(function, activity)
            for name in list(self.asked):
                self.of[name] = self.activity_of(name)
                self.ask_records(name)
                self.ask(self.private[name], self.of[name])

    def functions(self) -> list[func.FuncOp]:
        """The function, and the private ones that it calls."""
        return [self.main, *(self.private[name] for name in self.of)]

    def ask(self, function: func.FuncOp, activity: Activity) -> None:
        """What the calls in a function ask."""
        for steps in activation.checkpointed(function):
            self.ask_steps(steps, activity)
        for call in activation.calls(function):
            asked = self.asked.setdefault(call.target, Asked())
            callee = self.private[call.target]
            refuse_third_derivatives(call, callee)
            if function is self.main and self.asks_strides:
                refuse_gaps(call, activity)
            for k in range(len(callee.body.block.args)):
                place = argument_of(callee, k)
                if place is None:
                    continue
                operand = call.arguments[place]
                if activity.active(operand):
                    asked.arguments.add(k)
                if isinstance(operand.type, MemRefType) and activity.useful(operand):
                    asked.finals.add(k)
            asked.results |= {k for k, r in enumerate(call.called) if activity.active(r)}

    def ask_steps(
        self, op: activation.StepsOp | activation.ReverseStepsOp, activity: Activity
    ) -> None:
        """What a checkpointed loop asks of its step, the same of each of its functions.

        What takes turns is active together, and so are all shadows.
        """
        forward = f"{op.target}{activation.FORWARD}"
        active = [k for k, a in enumerate(op.arguments) if activity.active(a)]
        used = [k for k, a in enumerate(op.arguments) if is_memref(a) and activity.useful(a)]
        if isinstance(op, activation.ReverseStepsOp):
            backward = self.asked.setdefault(f"{op.target}{activation.BACKWARD}", Asked())
            if active or any(map(activity.active, op.shadows)):
                active += op.of
                count = len(self.private[f"{op.target}{activation.BACKWARD}"].body.block.args)
                backward.arguments |= set(range(count - len(op.shadows), count))
        for name in (op.target, forward):
            asked = self.asked.setdefault(name, Asked())
            asked.arguments |= {1 + k for k in activation.in_turns(active, op.permutation)}
            asked.finals |= {1 + k for k in activation.in_turns(used, op.permutation)}
        kept = count_in_record(self.private[forward], "keeps")
        self.asked[forward].results |= set(range(kept))

    def ask_records(self, name: str) -> None:
        """What a forward function keeps with a derivative its backward function is given with one.

        It keeps what that makes something of that is active.
        """
        function, activity = self.private[name], self.of[name]
        if "kept" in function.attributes:
            forward = name.removesuffix(activation.BACKWARD) + activation.FORWARD
            if forward in self.asked:
                last = self.private[forward].body.block.last_op
                assert isinstance(last, func.ReturnOp)
                arguments = function.body.block.args[: count_in_record(function, "kept")]
                first = len(last.arguments) - len(arguments)
                useful = (k for k, value in enumerate(arguments) if activity.useful(value))
                self.asked[forward].results |= {first + k for k in useful}
        backward = name.removesuffix(activation.FORWARD) + activation.BACKWARD
        if "keeps" in function.attributes and backward in self.asked:
            self.asked[backward].arguments |= set(self.kept_active(backward))

    def kept_active(self, name: str) -> list[int]:
        """Of the first arguments of a backward function those that are kept with tangents."""
        forward = name.removesuffix(activation.BACKWARD) + activation.FORWARD
        if "kept" not in self.private[name].attributes or forward not in self.of:
            return []
        last = self.private[forward].body.block.last_op
        assert isinstance(last, func.ReturnOp)
        kept = last.arguments[len(last.arguments) - count_in_record(self.private[name], "kept") :]
        return [k for k, value in enumerate(kept) if self.of[forward].moves(value)]

    def activity_of(self, name: str) -> Activity:
        function, asked = self.private[name], self.asked[name]
        arguments = function.body.block.args
        active = {arguments[k] for k in sorted(asked.arguments)}
        finals = [arguments[k] for k in sorted(asked.finals)]
        return Activity(function, self.alias[name], active, sorted(asked.results), finals)

    def renewed(self, name: str) -> Activity:
        """The activity of a function with other ops than before."""
        self.alias[name] = AliasAnalysis(self.private[name])
        self.of[name] = self.activity_of(name)
        return self.of[name]

    def describe(self) -> None:
        """Write on each function what its backward function takes and returns."""
        for name, activity in self.of.items():
            function = self.private[name]
            arguments = list(function.body.block.args)
            last = function.body.block.last_op
            assert isinstance(last, func.ReturnOp)
            active = [k for k, a in enumerate(arguments) if activity.active(a)]
            listed = {
                "shadows": [k for k in active if isinstance(arguments[k].type, MemRefType)],
                "cotangents": [k for k, r in enumerate(last.arguments) if activity.moves(r)],
                "scalars": [k for k in active if not isinstance(arguments[k].type, MemRefType)],
            }
            if "kept" in function.attributes:
                listed[RECORDED] = self.kept_active(name)
            for key, indices in listed.items():
                function.attributes[key] = DenseArrayBase.from_list(i64, indices)


def refuse_third_derivatives(call: activation.CallOp, callee: func.FuncOp) -> None:
    """What the adjoint of a gradient calls has records whose cotangents are there already."""
    if activation.REVERSED_TWICE in callee.attributes:
        raise refusal(
            call,
            "third derivatives through recursive functions are not computed by reverse over reverse",
            "take all but one of them in forward mode",
        )


def refuse_gaps(call: activation.CallOp, activity: Activity) -> None:
    """Where strides decide, arrays lie as their shadows do: not those of an argument with gaps."""
    for operand in filter(is_memref, call.arguments):
        if activity.active(operand) and any(map(may_have_gaps, activity.alias.roots(operand))):
            raise refusal(
                call,
                "the derivative of this call is asked for, and whether the recursive function reshapes an "
                "argument in place depends on the strides",
                "pass a copy of the argument: x.copy()",
            )


def may_have_gaps(root: SSAValue) -> bool:
    """Whether it is an argument of any strides, of rank 2 or more."""
    assert isinstance(root.type, MemRefType)
    strides = array.strides_of(root.type)
    return (
        isinstance(root, BlockArgument) and len(strides) > 1 and 1 not in (strides[0], strides[-1])
    )


def describe_activities(function: func.FuncOp, activity: Activity) -> Activities | None:
    """Find and write what the gradient of a function needs of those that it calls."""
    if not activation.goes_deep(function):
        return None
    found = Activities(function, activity)
    found.describe()
    return found


# --- What survives ----------------------------------------------------------------------------


def stable_arguments(main: func.FuncOp, *, owned: bool) -> dict[str, set[int]]:
    """The array arguments of private functions that nothing in the module writes, ever.

    Memory that `main` allocates counts as written where anything writes it. Where the caller may store to
    the arguments of `main` before the adjoint runs, they are not `owned`. What the step of a checkpointed
    loop writes in no turn nobody writes before it is reversed (`checkpoint_loops`). A cell that such a step
    is handed is on the stack of a function that may have returned by then: its record has the number.
    """
    private = private_functions(main.parent_op())
    functions = [main, *private.values()]
    alias = {f: AliasAnalysis(f) for f in functions}
    written = {f: written_roots(f, alias[f]) for f in functions}
    for f in private.values():
        written[f] |= {f.body.block.args[k] for k in changing(f)}
    stable = {
        name: {k for k, a in enumerate(f.body.block.args) if isinstance(a.type, MemRefType)}
        for name, f in private.items()
    }
    for name, f in private.items():
        arguments, is_step = f.body.block.args, activation.CHANGING in f.attributes
        stable[name] -= {
            k
            for k in stable[name]
            if arguments[k] in written[f] or (is_step and is_cell(arguments[k]))
        }

    def holds(function: func.FuncOp, root: SSAValue) -> bool:
        """Whether nothing writes memory. What records hold is only read."""
        if root in written[function]:
            return False
        top = function.body.block
        if not isinstance(root, BlockArgument):
            return owned and function is main and cast(Operation, root.owner).parent is top
        if function is main:
            return owned
        return root.index in stable[function.sym_name.data]

    changed = True
    while changed:
        changed = False
        for function in functions:
            for call in activation.calls(function):
                if activation.CHANGING in private[call.target].attributes:
                    continue
                for k in list(stable[call.target]):
                    place = argument_of(private[call.target], k)
                    if place is None:
                        continue
                    roots = alias[function].roots(call.arguments[place])
                    if not all(holds(function, root) for root in roots):
                        stable[call.target].discard(k)
                        changed = True
    return stable


def is_cell(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType) and not value.type.get_num_dims()


def changing(step: func.FuncOp) -> list[int]:
    """The arguments of a checkpointed loop's body whose arrays some step may write."""
    found = step.attributes.get(activation.CHANGING)
    return [int(k) for k in found.get_values()] if isinstance(found, DenseArrayBase) else []


def written_roots(function: func.FuncOp, alias: AliasAnalysis) -> set[SSAValue]:
    """The memory that the ops of a function may write, calls included."""
    return {
        other
        for op in every_op(function)
        if not isinstance(op, ad.HandoverOp)
        for access in accesses(op)
        if access.kind == "write"
        for root in alias.roots(access.memref)
        for other in alias.interfering(root)
    }


def refuse_to_save(function: func.FuncOp, activity: Activity) -> None:
    """`saves="forbid"`: the adjoint of a call reads its record."""
    for call in activation.calls(function):
        if any(map(activity.active, (*call.called, *filter(is_float, call.written())))):
            raise refusal(
                call,
                'the adjoint of this call needs a record of each activation, and saves="forbid"',
                "write a loop, or allow the saves",
            )
