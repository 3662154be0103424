"""Derivatives: the plan, the sweeps, what runs between two of them, budgets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, UnitAttr, i64
from xdsl.passes import ModulePass

from ...dialects import activation, ad
from ..analysis.diagonal import DIAGONAL, is_diagonal
from ..compilation import Compilation, last_function, returned_arguments
from ..derivative.activation_pairs import activation_pairs
from ..derivative.checkpoint_loops import CheckpointLoops
from ..derivative.counting import counting_function
from ..derivative.expand_derivatives import ExpandDerivatives, PassesOfDerivatives, expand
from ..derivative.factor_cotangents import FactorCotangents
from ..derivative.hessian_products import KeepProduct, shadow_arguments
from ..derivative.keep_tangents import KeepTangents
from ..derivative.passes import Forward, Reverse
from ..derivative.raise_recurrences import RaiseRecurrences
from ..derivative.reverse import activities_of, only_function
from ..derivative.sanitize_derivatives import SanitizeDerivatives
from ..derivative.sanitizer_marks import watch
from ..derivative.symmetric import Symmetric
from ..pass_order import BEFORE_ANOTHER, ROW_BY_ROW, for_threads
from ..print_ir import module_text
from ..request import HESSIAN, JOINT, TANGENT, WITHIN_BUDGETS, Request
from ..rules.calls import listed, private_functions
from ..rules.routines import inline_rules
from ..transforms.privatize_cells import PrivatizeCells
from ..transforms.remove_dead import RemoveDead
from ..transforms.transpose_matrices import TransposeMatrices

SAVE = "save"
"""The attribute that says to which save of the plan a tape belongs."""


def prepare(c: Compilation) -> None:
    """What a plan of the reverse sweep is made of."""
    finals = c.final_arguments
    if c.request.mode not in TANGENT:
        last = None if finals is None else tuple(finals)
        c.run(preparing(c, c.active_arguments, last))


def preparing(
    c: Compilation, active: Sequence[int], last: tuple[int, ...] | None = None
) -> list[ModulePass]:
    """What runs ahead of the plan of a reverse sweep."""
    options = c.request.options
    by_rows = ROW_BY_ROW if options.on_host and not options.parallel else ()
    return [*by_rows, RaiseRecurrences(tuple(active), last)]


def adjoint(c: Compilation) -> None:
    r, active = c.request, tuple(c.active_arguments)
    finals = c.final_arguments
    if r.options.sanitize:
        watch(c.module.ops)
    reverse = Reverse(
        r.options.plan,
        active,
        finals is not None,
        None if finals is None else tuple(finals),
        r.mode in HESSIAN,
        cotangents_at_once(r),
        fresh=r.mode in (*HESSIAN, "gradient"),
        tape=r.options.longest_tape if r.mode in JOINT else None,
        long=bool(r.options.long),
    )
    match r.mode:
        case "tangent" | "tangent-alone":
            finals = tuple(returned_arguments(c.built.results))
            c.run([Forward(active, finals, r.options.lanes)])
            mark_diagonal(c.module)
            if r.mode == "tangent-alone":
                c.run([KeepTangents(), RemoveDead()])
        case "reverse-hvp":
            c.run([replace(reverse, adjoints=True), *factored(c), *for_threads(c, BEFORE_ANOTHER)])
            symmetric = Symmetric(last_function(c.module))
            c.run([Reverse(r.options.plan, symmetric.differentiated)])
            symmetric.turn(last_function(c.module))
        case "count" | "count-split":
            count_saves(c, active, finals)
        case _ if r.options.memory and r.mode in WITHIN_BUDGETS:
            within_budget(c, reverse)
        case _:
            differentiate(c, reverse, c.module)
    expand_derivatives(c)


def mark_diagonal(module: ModuleOp) -> None:
    """Say of a tangent function whether its Jacobian is diagonal: matrices are then made in one run."""
    first, *others = [op for op in module.ops if isinstance(op, func.FuncOp)]
    if not others and is_diagonal(first):
        first.attributes[DIAGONAL] = UnitAttr()


def cotangents_at_once(r: Request) -> int:
    """How many cotangents go along: in a gradient's tangent the lanes are those of tangents."""
    return r.options.lanes if r.mode in ("pullback", "vjp") else 1


def differentiate(c: Compilation, reverse: Reverse, module: ModuleOp) -> None:
    """The gradient of the module's function, or the tangent of that."""
    c.run([reverse, *factored(c)], module)
    if c.request.mode not in HESSIAN:
        return
    number_tapes(last_function(module))
    c.run(for_threads(c, BEFORE_ANOTHER), module)
    # Shadows are zero at first: their tangents are what the reverse sweep makes of them.
    finals = tuple(shadow_arguments(last_function(module)))
    c.run([Forward(reverse.active, finals, c.request.options.lanes)], module)
    if c.request.mode == "product":
        c.run([KeepProduct(), RemoveDead()], module)
        mark_diagonal(module)


def factored(c: Compilation) -> list[ModulePass]:
    """What runs on each reverse sweep as it was written: its cotangents have the same bits wherever it runs.
    (What is sanitized tells of each partial where it comes from.)"""
    return [] if c.request.options.sanitize else [FactorCotangents()]


def within_budget(c: Compilation, reverse: Reverse) -> None:
    """Two derivatives, where a loop can be checkpointed: the one that saves all, and the one in steps.

    A call is for either, so both take the same shadows. What a step hands on may have one in the second
    alone: then it is differentiated in both.
    """
    source = c.module.clone()
    memory, active = c.request.options.memory or 0, reverse.active or ()
    in_steps = c.module.clone()
    # A variable that steps do not hand on is a step's own: its plan knows what the variable held.
    # The function of a step goes along the columns of what it is handed, as they lie. (Shadows of arguments
    # lie as the caller's do: sums over their columns would have another order than without a budget.)
    before = [PrivatizeCells(), TransposeMatrices(own=True)]
    c.run([*before, CheckpointLoops(memory, active, reverse.saves)], in_steps)
    if not any(activation.CHECKPOINTED in op.attributes for op in in_steps.walk()):
        differentiate(c, reverse, c.module)
        return
    differentiate(c, reverse, c.module)
    differentiate(c, reverse, in_steps)
    function = last_function(in_steps)
    taken = [{*listed(f, "shadows")} for f in (last_function(c.module), function)]
    if taken[0] != taken[1] and (more := sorted(set().union(*taken).difference(active))):
        c.module = source
        within_budget(c, replace(reverse, active=(*active, *more)))
        return
    function.properties["sym_name"] = StringAttr(f"{function.sym_name.data}_in_steps")
    function.attributes[activation.CHECKPOINTED] = IntegerAttr(memory, i64)
    for op in list(in_steps.ops):
        op.detach()
        c.module.body.block.add_op(op)


def count_saves(c: Compilation, active: Sequence[int], finals: Sequence[int] | None) -> None:
    """Put the primal that counts in the place of the function."""
    saves = c.request.options.plan
    if finals is not None and saves == "forbid":
        saves = "minimal"
    function = only_function(c.module)
    made = counting_function(function, active, saves, finals)
    activities = activities_of(function, active, finals)
    pairs = activation_pairs(function, activities, saves, owned=finals is None)
    others = [one.clone() for one in private_functions(c.module).values()]
    c.module = ModuleOp([made, *(pairs or others)])
    for op in c.module.ops:
        if isinstance(op, func.FuncOp):
            inline_rules(op)
    count = {"kind": "scalar", "type": "py_int"}
    results = {"kind": "tuple", "items": [count for _ in made.function_type.outputs]}
    c.built = replace(c.built, module=c.module, results=results, records=None)


@dataclass(frozen=True, eq=False)
class ExpandSimplified(ExpandDerivatives):
    """The pass with others between two derivatives: equal to none that a specification says."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def expand_derivatives(c: Compilation) -> None:
    """Put code in the place of derivatives that the program asks for."""

    saves = c.request.options.plan
    if c.request.options.sanitize:
        watch(c.module.ops)
    with c.around(ExpandSimplified(saves), c.module):
        passes = PassesOfDerivatives(
            ahead=lambda module, active: c.run(preparing(c, active), module),
            behind=lambda module: c.run(factored(c), module),
            between=lambda module: c.run(for_threads(c, BEFORE_ANOTHER), module),
        )
        expand(c.module, saves, passes)
    if c.request.options.sanitize:
        c.run([SanitizeDerivatives()])


def number_tapes(gradient: func.FuncOp) -> None:
    """Number the tapes in the order of the plan's saves: those with tangents are there twice afterwards."""
    for number, op in enumerate(op for op in gradient.body.block.ops if isinstance(op, ad.TapeOp)):
        op.attributes[SAVE] = IntegerAttr(number, i64)


def plan(c: Compilation) -> str:
    return module_text(planned(c), c.locations)


def planned(c: Compilation) -> ModuleOp:
    """A copy of the module that shows its plan."""
    from ..derivative.passes import annotate

    shown = c.module.clone()
    annotate(shown, c.active_arguments, c.request.options.plan, c.final_arguments)
    return shown
