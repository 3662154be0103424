"""Reverse the steps of a checkpointed loop from the first to the last, where they may come in any order.

Steps add to what they have in common: which term comes first decides about last bits. So where the gradient
that runs no step again lets its loop go upwards (`upward_rows`), the steps do. Part of `reorder_loops`.

Before::

    %kept, %n = activation.steps @f_step %count ... (%u, %k : ...) within 1000 ...
    activation.reverse_steps @f_step %kept (%u, %k : ...) shadows (%k_shadow : ...) ...

After::

    %kept, %n = activation.steps @f_step %count ... (%u, %k : ...) within 1000 upwards ...
    activation.reverse_steps @f_step %kept (%u, %k : ...) shadows (%k_shadow : ...) ... upwards ...

That the order is free is asked of a loop that does what the steps do backwards (`step_models`). Kept: steps
among whose arrays some take turns or may overlap, those with such loops of their own, and those of which each
says whether there is another.
"""

from __future__ import annotations

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ArrayAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, SSAValue

from ...dialects import activation
from ..analysis.alias import AliasAnalysis
from ..analysis.independence import Independence
from ..rules import writes
from ..rules.calls import private_functions
from .decided_sums import DecidedSums, runs_steps
from .step_models import Model
from .upward_rows import adds_in_any_order

Both = tuple[list[activation.StepsOp], list[activation.ReverseStepsOp]]


def steps_upwards(module: ModuleOp, fastmath: bool, sums: DecidedSums) -> None:
    """Turn the steps of all loops that `sums` has turned elsewhere."""
    loops: dict[str, Both] = {}
    functions = [f for f in module.ops if isinstance(f, func.FuncOp) and runs_steps(f)]
    for op in (op for function in functions for op in activation.checkpointed(function)):
        if isinstance(op, activation.StepsOp):
            loops.setdefault(op.target, ([], []))[0].append(op)
        else:
            loops.setdefault(op.target, ([], []))[1].append(op)
    for forwards, backwards in loops.values():
        counted = backwards and all(op.goes_on is None for op in forwards)
        if counted and all(is_turned(op, module, fastmath, sums) for op in backwards):
            for op in (*forwards, *backwards):
                op.turn_upwards()


def is_turned(
    steps: activation.ReverseStepsOp, module: ModuleOp, fastmath: bool, sums: DecidedSums
) -> bool:
    if steps.location not in sums.places or steps.shared:
        return False
    if steps.permutation != list(range(len(steps.permutation))):
        return False
    private = private_functions(module)
    forward = private[f"{steps.target}{activation.FORWARD}"]
    backward = private[f"{steps.target}{activation.BACKWARD}"]
    none = ArrayAttr[Attribute]([])
    if any(f.attributes.get("overlaps") != none for f in (forward, backward)):
        return False
    return writes_shadows_alone(backward, len(steps.shadows)) and may_come_in_any_order(
        Model(steps, forward, backward), fastmath
    )


def writes_shadows_alone(backward: func.FuncOp, shadows: int) -> bool:
    """Whether a step leaves what it has kept, and the arrays of the steps that follow, as they were."""
    alias, kept = AliasAnalysis(backward), set(backward.body.block.args[: -shadows or None])
    return not any(
        not alias.roots(w.memref).isdisjoint(kept) for op in backward.walk() for w in writes(op)
    )


def may_come_in_any_order(model: Model, fastmath: bool) -> bool:
    """Whether steps add to what they have in common, or leave it as they found it."""
    for shadow in model.shadows:
        own_cell(shadow)
    found = Independence(model.function, fastmath=fastmath).of(model.loop)
    if found is None or not (fastmath or adds_in_any_order(model.loop, found)):
        return False
    return all(role.name in ("read", "kept", "reduction") for role in found.cells.values())


def own_cell(shadow: SSAValue) -> None:
    """Let a model have a cell of its own for the shadow of a number: what steps do to a cell has a role."""
    type_, entry = shadow.type, shadow.owner
    assert isinstance(type_, MemRefType)
    assert isinstance(entry, Block)
    if not type_.get_num_dims() and entry.first_op is not None:
        cell = memref.AllocaOp.get(type_.element_type, shape=[])
        entry.insert_op_before(cell, entry.first_op)
        shadow.replace_all_uses_with(cell.memref)
