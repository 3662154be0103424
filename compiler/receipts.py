"""The receipts of a function's derivatives: what each mode would save, and what else it would allocate.

A gradient saves what its plan says (`derivative.receipt`); `vjp` more, for the caller may change arrays
before `back`. A tangent saves nothing. A Hessian-vector product saves what the gradient saves, and, of what
moves of that, the tangents: never more than twice as much. With a batch of k there are k tangents, or k
cotangents, of each value: a gradient saves no more for these, a product k tangents.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, UnitAttr

from ..dialects import ad
from .compilation import Compilation, last_function
from .deep_stack import with_deep_stack
from .derivative import replays
from .derivative.activation_pairs import activation_pairs
from .derivative.budget_receipt import Budget, Schedule, budget_of
from .derivative.inner_saves import inner_saves
from .derivative.plan import Plan
from .derivative.receipt import RECORD, Allocated, Receipt, allocated_by, receipt_of, record_of
from .derivative.reverse import activities_of, gradient_of, only_function, plan_gradient
from .derivative.saved_value import SavedValue, added_up
from .diagnostics import line_of
from .names import as_written
from .pipeline import OUTLINED, STAGES, advance, own_faults, simplified, stages_for
from .request import JOINT, WITHIN_BUDGETS, Request
from .rewrites import with_ways_out
from .rules.calls import private_functions
from .stages.adjoint import SAVE, adjoint, cotangents_at_once, expand_derivatives
from .stages.optimize import optimize

if TYPE_CHECKING:
    from .kernels.figures import KernelFigures
    from .kernels.loop_figures import LoopFigures

SHADOWS = {"tangent": ("_dot",), "hvp": ("_shadow", "_shadow_dot")}
"""How what lies beside the primal's arrays is called in each mode; in gradients, "_shadow"."""


@with_deep_stack
def explain_request(
    request: Request,
    values: Sequence[Any] | None,
    counts: Sequence[int] | None = None,
    schedule: Schedule | None = None,
    holds: Callable[[Sequence[Any], Sequence[Any]], bool] | None = None,
) -> Receipt:
    """What a derivative would save for these argument values, one for each parameter; None: symbolic only.

    `counts`: the bytes of each save of the plan, where a run counted them; `schedule`: what says how often
    steps are run within a budget; `holds`: whether what code assumes is so, or other code is called.
    """
    with own_faults(request):
        if holds is not None and values is not None:
            stretch = not holds(simplify(request).built.assumed, values)
            request = replace(request, options=replace(request.options, stretch=stretch))
        receipt = explained(request, values, counts, schedule)
        if not request.options.device:
            return receipt
        kernels, loops = on_device(request)
        return replace(receipt, kernels=kernels, loops=loops)


@with_deep_stack
def for_values(request: Request, values: Sequence[Any] | None) -> Request:
    """The request for the code that a call with these arguments takes: for long tapes where they are."""
    if values is None or request.mode not in JOINT or request.options.longest_tape is None:
        return request
    with own_faults(request):
        c = simplify(request)
        function, leaves = (
            only_function(c.module),
            [x for value in values for x in ir_leaves(value)],
        )
        made = plan_gradient(function, c.active_arguments, request.options.plan)
        long = long_plan(c, made, leaves) is not None
        return replace(request, options=replace(request.options, long=int(long)))


def simplify(request: Request) -> Compilation:
    """As far as plans read it."""
    c = simplified(request)
    for stage in STAGES[:3]:
        advance(c, stage)
    return c


def on_device(request: Request) -> tuple[tuple[KernelFigures, ...], tuple[LoopFigures, ...]]:
    """What a device runs of the derivative, and the host's loops around that."""
    from .kernels.figures import figures_of
    from .kernels.loop_figures import loops_of
    from .kernels.scalars_on_device import ScalarsOnDevice
    from .kernels.while_on_device import WhileOnDevice

    c = simplified(request)
    for stage in stages_for(request):
        advance(c, stage)
        if stage is OUTLINED:
            break
    kernels = figures_of(c.module)
    c.run([WhileOnDevice(), ScalarsOnDevice()])
    return kernels, loops_of(c.module)


def explained(
    request: Request,
    values: Sequence[Any] | None,
    counts: Sequence[int] | None,
    schedule: Schedule | None,
) -> Receipt:
    """The receipt of what is saved, and allocated."""
    c = simplify(request)
    leaves = None if values is None else [leaf for value in values for leaf in ir_leaves(value)]
    if request.mode == "tangent":
        return of_tangent(c, leaves)
    in_steps = within_budget(c)
    if request.mode not in JOINT:
        c.request = replace(request, options=replace(request.options, memory=None))
    of = of_product if request.mode == "hvp" else of_gradient
    receipt = of(c, leaves, counts)
    if in_steps is not None:
        budget = budget_for(request, receipt.saved_bytes, in_steps, leaves, schedule)
        receipt = replace(receipt, budget=budget)
    if leaves is None or counts is not None or request.mode == "hvp":
        return receipt
    return with_ways_out(receipt, request, lambda other: of_rewritten(other, leaves))


def within_budget(c: Compilation) -> func.FuncOp | None:
    """The gradient function that keeps to a budget, if there is one; of `vjp` that of `back`."""
    if c.request.options.memory is None:
        return None
    mode = c.request.mode if c.request.mode in WITHIN_BUDGETS else "pullback"
    own = Compilation(replace(c.request, mode=mode))
    own.built, own.module = c.built, c.module.clone()
    adjoint(own)
    optimize(own)
    return last_function(own.module)


def budget_for(
    request: Request,
    saved: int | None,
    in_steps: func.FuncOp,
    leaves: list[Any] | None,
    schedule: Schedule | None,
) -> Budget:
    """What a receipt says of the budget of a derivative that would save so much."""
    memory = request.options.memory or 0
    if request.mode == "vjp" and saved is not None and saved <= memory:
        return Budget(memory, least=saved)
    arguments = None if leaves is None else shadowed(in_steps, leaves)
    found = budget_of(in_steps, arguments, saved, memory, schedule, request.options.spill)
    if request.mode == "vjp" and leaves is not None:
        arrays = [one for one in leaves if isinstance(one, np.ndarray)]
        found = replace(found, copied_bytes=sum(one.nbytes for one in arrays))
    return found


def shadowed(gradient: func.FuncOp, leaves: Sequence[Any]) -> list[Any]:
    """The arguments of a derivative, of whose numbers only the primal's are known."""
    moving = "moving" if "moving" in gradient.attributes else ""
    return padded(gradient, [*leaves, *(leaves[i] for i in indices(gradient, "shadows"))], moving)


def of_rewritten(request: Request, leaves: list[Any]) -> Receipt:
    """What the gradient of an edited program would save."""
    c = Compilation(request)
    for stage in STAGES[:3]:
        advance(c, stage)
    return of_gradient(c, leaves, None)


def long_plan(c: Compilation, made: Plan, leaves: list[Any] | None) -> Plan | None:
    """The plan of the gradient for long tapes, where it is the one that is called."""
    longest = c.request.options.longest_tape if c.request.mode in JOINT else None
    if not made.can_replay or longest is None or leaves is None:
        return None
    function, saves = made.function, c.request.options.plan
    function.attributes[replays.REPLAYS] = UnitAttr()
    again = plan_gradient(function, c.active_arguments, saves, c.final_arguments)
    if saves_less(receipt_of(again, leaves, nothing_allocated), made, leaves, longest):
        return again
    del function.attributes[replays.REPLAYS]
    return None


def saves_less(again: Receipt, whole: Plan, leaves: list[Any], longest: int) -> bool:
    """Whether the gradient that runs updates again is the one that is called."""
    tapes = [again.saved_bytes, *(one.bytes for one in again.replayed)]
    saved = receipt_of(whole, leaves, nothing_allocated).saved_bytes
    if saved is None or None in tapes:
        return False
    filled = sum(one.bytes or 0 for one in again.replayed)
    if whole.worth == replays.WORTH_WHOLE_STEPS and filled > replays.LONGEST_STRETCH:
        return False
    return saved - replays.AGAIN * sum(size or 0 for size in tapes) > whole.worth * longest


def nothing_allocated() -> Allocated:
    """Of receipts of which only the saves are asked."""
    return Allocated(None, None)


def of_gradient(c: Compilation, leaves: list[Any] | None, counts: Sequence[int] | None) -> Receipt:
    """What a gradient would save, or `vjp`."""
    function = only_function(c.module)
    finals, saves = c.final_arguments, c.request.options.plan
    if finals is not None and saves == "forbid":
        saves = "minimal"  # what is forbidden are saves of the gradient in one piece
    made = plan_gradient(function, c.active_arguments, saves, finals)
    if (again := long_plan(c, made, leaves)) is not None:
        made, counts = again, None
    lanes = cotangents_at_once(c.request)

    def written(lanes: int) -> tuple[func.FuncOp, list[Any] | None, list[Any]]:
        """The gradient function, its arguments, and those that have shadows."""
        gradient = gradient_of(function, c.active_arguments, saves, finals, lanes=lanes)
        if leaves is None:
            return gradient, None, []
        return (
            gradient,
            shadowed(gradient, leaves),
            [leaves[i] for i in indices(gradient, "shadows")],
        )

    def allocated() -> Allocated:
        with own_faults(c.request):
            gradient, arguments, arrays = written(lanes)
            others = [one.clone() for one in pairs or private_functions(c.module).values()]
            c.module = ModuleOp([gradient, *others])
            expand_derivatives(c)
            optimize(c)
        own = None if arguments is None else lanes * bytes_of(arrays)
        return allocated_by(only_function(c.module), arguments, own)

    inner: list[SavedValue] = []
    if any(isinstance(op, ad.DerivativeOp) for op in function.walk()):
        gradient, arguments, _ = written(1)
        directions = c.request.options.lanes if c.request.mode == "hvp" else 0
        inner += inner_saves(gradient, c.module, arguments, saves, directions)
    activities = activities_of(function, c.active_arguments, finals)
    pairs = activation_pairs(function, activities, saves, lanes, owned=finals is None)
    return receipt_of(made, leaves, allocated, pairs, inner, counts)


def of_product(c: Compilation, leaves: list[Any] | None, counts: Sequence[int] | None) -> Receipt:
    """What a Hessian-vector product would save: the gradient's saves, and the tangents of those that move.

    Records of recursive functions hold both.
    """
    own, lanes = Compilation(c.request), c.request.options.lanes
    own.built, own.module = c.built, c.module.clone()
    gradient = of_gradient(c, leaves, counts)
    adjoint(own)
    optimize(own)
    function = last_function(own.module)
    tapes = (op for op in function.walk() if isinstance(op, ad.TapeOp) and SAVE in op.attributes)
    tangents = Counter(cast("IntegerAttr[Any]", op.attributes[SAVE]).value.data for op in tapes)
    moving = tuple(
        tangents_of(save, lanes)
        for number, save in enumerate(gradient.saves)
        if tangents[number] > 1
    )

    functions = private_functions(own.module).values()
    records = tuple(record_of(f) for f in functions if "keeps" in f.attributes)
    saves = tuple(s for s in gradient.saves if s.name != RECORD) + records

    def allocated() -> Allocated:
        if leaves is None:
            return allocated_by(function, None, None, SHADOWS["hvp"])
        shadowed = indices(function, "shadows")
        every = padded(function, [*leaves, *(leaves[i] for i in shadowed)], "moving")
        arrays = [leaves[i] for i in dict.fromkeys((*c.active_arguments, *shadowed))]
        moved = bytes_of([a for a in arrays if isinstance(a, np.ndarray)])
        shadows = bytes_of([leaves[i] for i in shadowed])
        both = shadows + lanes * (shadows + moved)  # gradients, products, directions
        return allocated_by(function, every, both, SHADOWS["hvp"])

    return replace(gradient, saves=(*saves, *moving), allocated=allocated)


def tangents_of(save: SavedValue, lanes: int) -> SavedValue:
    """The saved tangents of a value that the gradient saves."""
    return replace(
        save,
        name=f"the tangent{'s' if lanes > 1 else ''} of {save.name}",
        why=f"`hvp` moves it: {save.why}",
        bytes=None if save.bytes is None else lanes * save.bytes,
        formula=added_up([save.formula] * lanes),
        bound=None if save.bound is None else added_up([save.bound] * lanes),
    )


def of_tangent(c: Compilation, leaves: list[Any] | None) -> Receipt:
    """What a tangent would save: nothing."""
    function = only_function(c.module)
    at = line_of(function) or ("", 0, 0)
    name = as_written(function.sym_name.data)

    def allocated() -> Allocated:
        with own_faults(c.request):
            adjoint(c)
            optimize(c)
        made = last_function(c.module)
        known = None if leaves is None else padded(made, leaves, "moving")
        return allocated_by(made, known, 0, SHADOWS["tangent"])

    return Receipt(name, at[0], at[1], (), (), (), allocated)


def padded(function: func.FuncOp, known: Sequence[Any], moving: str = "") -> list[Any]:
    """The arguments of a derivative of which something is known, with None for numbers that are not; last,
    of the arguments that `moving` lists, their tangents."""
    count = len(function.body.block.args)
    moved = indices(function, moving) if moving else []
    primal = [*known, *[None] * (count - len(moved) - len(known))]
    return [*primal, *(primal[i] for i in moved)]


def indices(function: func.FuncOp, name: str) -> list[int]:
    listed: Any = function.attributes[name]
    return [int(v) for v in listed.get_values()]


def bytes_of(arrays: Sequence[Any]) -> int:
    """The bytes of the shadows of these arrays: those that share memory share theirs."""
    from numpy.lib.array_utils import byte_bounds

    apart = 0
    spans: list[tuple[int, int]] = []
    for position, one in enumerate(arrays):
        others = [*arrays[:position], *arrays[position + 1 :]]
        low, high = byte_bounds(one)
        if any(low < end and begin < high for begin, end in map(byte_bounds, others)):
            spans.append((low, high))
        else:
            apart += one.nbytes
    end = 0
    for low, high in sorted(spans):
        apart += max(0, high - max(low, end))
        end = max(end, high)
    return apart


def ir_leaves(value: Any) -> list[Any]:
    """The values that an argument hands to the IR: tuples flattened, None dropped."""
    if isinstance(value, tuple):
        return [leaf for item in cast("tuple[Any, ...]", value) for leaf in ir_leaves(item)]
    return [] if value is None else [value]
