"""`print-needed` and `print-plan` show what the gradient reads and saves; `reverse` writes it.

`print-plan` turns ::

    %a = memref.load %x[%i] : memref<?xf64>
    memref.store %b, %x[%i] : memref<?xf64>

into ::

    %a = memref.load %x[%i] {plan = ["save %a: killed by memref.store, needed by arith.mulf"]} : memref<?xf64>
    memref.store %b, %x[%i] : memref<?xf64>

and `print-needed` writes at the product, `needs = ["%a"]`: what of the primal its adjoint reads.
Nothing reads these attributes. `reverse` replaces each function by its gradient function, `forward` by its
tangent function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from ...dialects import activation
from ..analysis.activity import Activity, active_by_default
from ..analysis.affine import name as name_of
from ..analysis.alias import AliasAnalysis
from ..analysis.needed import Needed
from ..diagnostics import line_of
from ..rules import Contents, Need
from ..rules.calls import private_functions
from ..rules.routines import inline_rules, is_routine, keep_opaque_calls
from ..transforms.resolve_overlap import resolve_all
from .activation_pairs import activation_pairs
from .extremum_sides import forget_sides
from .forward import tangent_functions
from .overwritten import Overwritten
from .plan import Plan, Save, hint_of, killing_line
from .replays import IN_WHOLE_STEPS, REPLAYABLE, REPLAYS, WORTH_WHOLE_STEPS
from .reverse import activities_of, gradient_of, only_function, plan_gradient
from .split import halves_of
from .steps import drop_untouched_shadows
from .versions import Version


@dataclass(frozen=True)
class PrintNeeded(ModulePass):
    """Attach to each op the primal values that its adjoint is the first to read."""

    name = "print-needed"
    active: tuple[int, ...] | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            arguments = function.body.block.args
            active = {arguments[i] for i in chosen(function, self.active)}
            needed = Needed(function, Activity(function, AliasAnalysis(function), active))
            notes: dict[Operation, list[StringAttr]] = {}
            for need, by in needed.by.items():
                notes.setdefault(by, []).append(StringAttr(shown(need)))
            for by, lines in notes.items():
                by.attributes["needs"] = ArrayAttr(lines)


def shown(need: Need) -> str:
    if isinstance(need, Contents):
        return f"the contents of {name_of(need.memref)} {'after' if need.after else 'before'}"
    return name_of(need)


@dataclass(frozen=True)
class PrintPlan(ModulePass):
    """Attach to each op what the plan saves of it. `active` are argument indices, by default all floats.

    With `split` the plan is that of `vjp`.
    """

    name = "print-plan"
    saves: str = "minimal"
    active: tuple[int, ...] | None = None
    split: bool = False

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            active = chosen(function, self.active)
            annotate_function(function, active, self.saves, active if self.split else None)


@dataclass(frozen=True)
class Reverse(ModulePass):
    """Replace functions by their gradient functions. `active` are argument indices, by default all floats.

    With `split` by the two halves of those of `vjp`; `finals` are then the arguments whose final contents may
    have a cotangent, by default the active ones.
    """

    name = "reverse"
    saves: str = "minimal"
    active: tuple[int, ...] | None = None
    split: bool = False
    finals: tuple[int, ...] | None = None
    tangents: bool = False
    """The gradient's own tangents will be taken: calls of functions whose rule has one are kept."""
    lanes: int = 1
    """How many cotangents there are of each value, as one vector."""
    fresh: bool = False
    """Shadows of arguments hold nothing before: the gradient function sets them to zero itself."""
    adjoints: bool = False
    """Its own adjoint will be taken: besides, calls are kept of what the compiler cannot see into."""

    tape: int | None = None
    """For tapes that are longer than so many bytes there is a gradient that runs updates again (`replays`),
    where there are any."""
    long: bool = False
    """It is put beside the one for short tapes, which else only says that there is one."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        resolve_all(op)
        if self.adjoints:
            keep_opaque_calls(op)
            keep_every_step(op)
        block = op.body.block
        pairs: dict[str, func.FuncOp] = {}
        for function in functions(op):
            active = chosen(function, self.active)
            finals = None if not self.split else active if self.finals is None else self.finals
            saves = self.saves
            if finals is not None:
                made = halves_of(function, active, finals, saves, self.lanes)
                saves = "minimal" if saves == "forbid" else saves
            else:
                gradient = gradient_of(function, active, saves, fresh=self.fresh, lanes=self.lanes)
                made = (gradient,)
                worth = function.attributes.pop(REPLAYABLE, None)
                if isinstance(worth, IntegerAttr) and self.tape is not None:
                    if self.long:
                        made = (gradient, self._replayed(function, active, worth.value.data))
                    else:
                        tape = worth.value.data * self.tape
                        gradient.attributes[activation.LONGEST] = IntegerAttr(tape, i64)
            activities = activities_of(function, active, finals)
            kept = not self.split
            for one in activation_pairs(function, activities, saves, self.lanes, owned=kept):
                pairs.setdefault(one.sym_name.data, one)
            block.insert_ops_before(made, function)
            function.detach()
            function.erase()
        for name, function in private_functions(op).items():
            if name in pairs:
                function.detach()
                function.erase()
        block.add_ops(pairs.values())
        if not (self.tangents or self.adjoints):
            drop_untouched_shadows(op)
            for function in [one for one in op.ops if isinstance(one, func.FuncOp)]:
                inline_rules(function)

    def _replayed(self, function: func.FuncOp, active: Sequence[int], worth: int) -> func.FuncOp:
        """The gradient for longer tapes."""
        function.attributes[REPLAYS] = UnitAttr()
        made = gradient_of(function, active, self.saves, fresh=self.fresh, lanes=self.lanes)
        made.properties["sym_name"] = StringAttr(f"{made.sym_name.data}_in_steps")
        made.attributes[activation.CHECKPOINTED] = IntegerAttr(worth * cast(int, self.tape), i64)
        if worth == WORTH_WHOLE_STEPS:
            made.attributes[IN_WHOLE_STEPS] = UnitAttr()
        return made


@dataclass(frozen=True)
class Forward(ModulePass):
    """Replace functions by their tangent functions. `active` are argument indices, by default all floats.

    `finals` are arguments whose final contents have tangents that matter, beside the active ones; `lanes`:
    how many tangents there are of each value, as one vector.
    """

    name = "forward"
    active: tuple[int, ...] | None = None
    finals: tuple[int, ...] = ()
    lanes: int = 1

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        resolve_all(op)
        block = op.body.block
        private: dict[str, func.FuncOp] = {}
        for function in functions(op):
            tangent, *others = tangent_functions(
                function, chosen(function, self.active), self.finals, self.lanes
            )
            for one in others:
                private.setdefault(one.sym_name.data, one)
            block.insert_op_before(tangent, function)
            function.detach()
            function.erase()
        for name, function in private_functions(op).items():
            if name in private:
                function.detach()
                function.erase()
        block.add_ops(private.values())


def keep_every_step(module: ModuleOp) -> None:
    """Let checkpointed loops be loops that call their steps: the reverse sweep's adjoint goes forward."""
    for op in module.walk():
        for name in (activation.CHECKPOINTED, activation.CHANGING, activation.LIVE):
            op.attributes.pop(name, None)


def functions(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.ops if isinstance(op, func.FuncOp) and not is_routine(op)]


def chosen(function: func.FuncOp, active: tuple[int, ...] | None) -> Sequence[int]:
    if active is not None:
        return active
    arguments = list(function.body.block.args)
    return [arguments.index(a) for a in active_by_default(function)]  # pyright: ignore[reportArgumentType]


def annotate(
    module: ModuleOp,
    active_arguments: Sequence[int],
    saves: str,
    finals: Sequence[int] | None = None,
) -> Plan:
    """Plan the gradient of the one function and write the plan into the IR."""
    return annotate_function(only_function(module), active_arguments, saves, finals)


def annotate_function(
    function: func.FuncOp,
    active_arguments: Sequence[int],
    saves: str,
    finals: Sequence[int] | None = None,
) -> Plan:
    """Plan the gradient and write the plan into the IR, as `plan` attributes of the ops."""
    plan = plan_gradient(function, active_arguments, saves, finals)
    notes: dict[Operation, list[StringAttr]] = {}
    for save in plan.saves:
        notes.setdefault(save.at, []).append(StringAttr(describe(save)))
    for op, lines in notes.items():
        op.attributes["plan"] = ArrayAttr(lines)
    forget_sides(function)
    return plan


def describe(save: Save) -> str:
    """One line: what is saved, what kills it, what needs it."""
    node = save.node
    if isinstance(node, Version):
        subject = f"the contents of %{node.base.name_hint or '?'}"
    elif isinstance(node, Overwritten):
        subject = f"the old contents of %{hint_of(save)}"
    elif isinstance(node, Contents):
        done = "leaves in" if node.after else "reads of"
        subject = f"what {node.op.name} {done} %{hint_of(save)}"
    else:
        subject = f"%{getattr(node, 'name_hint', None) or '?'}"
    parts = [f"save {subject}"]
    if save.killer is not None:
        parts.append(f"killed by {place(save.killer, killing_line(save))}")
    parts.append(f"needed by {place(save.needed_by, line_of(save.needed_by))}")
    return f"{parts[0]}: {', '.join(parts[1:])}"


def place(op: Operation, at: tuple[str, int, int] | None) -> str:
    """An op and its line, if it has one."""
    return op.name if at is None else f"{op.name} of line {at[1]}"
