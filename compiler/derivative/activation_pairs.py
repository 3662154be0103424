"""The forward and the backward function of each recursive function.

Both come from the gradient of the function, split where its primal ends (`split`): see `activations`.
"""

from __future__ import annotations

from typing import cast

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import (
    AnyFloat,
    DenseArrayBase,
    FloatAttr,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    StringAttr,
    UnitAttr,
    i64,
)
from xdsl.ir import Attribute, Operation
from xdsl.rewriter import Rewriter

from ...dialects import activation, ad, array
from ..analysis.activity import Activity
from ..rules.calls import SIGNATURE, has_derivative_function
from ..rules.routines import without_rules
from ..transforms.saved_steps import USING, namings, rename
from .activations import RECORDED, Activities, count_in_record, stable_arguments
from .copied_operands import copy_operands
from .function_attributes import inherit_locations
from .planner import make_plan
from .record_cotangents import TwiceReversed, add_to_cotangents, keep_cotangents
from .reverse import ReverseSweep, only_function
from .split import CLEANING, Split
from .versions import GROWABLE_ARGUMENTS

TAKING = (*USING, array.MatmulOp)
"""What may be done with a copy of which the type is another."""


def activation_pairs(
    main: func.FuncOp,
    activities: Activities | None,
    saves: str,
    lanes: int = 1,
    *,
    owned: bool,
) -> list[func.FuncOp]:
    """The private functions of the module of a gradient: the pairs, and what is called as it was."""
    if activities is None:
        return []
    stable = stable_arguments(main, owned=owned)
    made: list[func.FuncOp] = []
    records: dict[str, TwiceReversed] = {}
    names = sorted(activities.of, key=lambda name: "kept" in activities.private[name].attributes)
    for name in names:  # first those that keep records, then those that are given them
        function, activity = activities.private[name], activities.of[name]
        if has_derivative_function(function):
            keep_for_adjoint(function, stable[name])
            if copy_operands(function, activity):
                activity = activities.renewed(name)
            forward, backward = pair_of(function, activity, saves, lanes)
            tell_copies(forward, backward)
            if "kept" in function.attributes:
                layout = records[name.removesuffix(activation.BACKWARD) + activation.FORWARD]
                add_to_cotangents(function, activity, forward, backward, layout)
            elif "keeps" in function.attributes:
                records[name] = keep_cotangents(function, forward, backward, lanes)
            made += (forward, backward)
        primal = without_rules(function)
        for key in (*SIGNATURE, RECORDED, GROWABLE_ARGUMENTS):
            primal.attributes.pop(key, None)
        for op in list(primal.walk()):
            if isinstance(op, ad.HandoverOp):
                op.detach()
                op.erase()
        made.append(primal)
    return made


def keep_for_adjoint(function: func.FuncOp, stable: set[int]) -> None:
    """Mark the end of the function, where all that is not stable may change."""
    last = function.body.block.last_op
    assert last is not None
    if isinstance(last.prev_op, ad.HandoverOp):
        return
    changing = [
        a
        for k, a in enumerate(function.body.block.args)
        if isinstance(a.type, MemRefType) and k not in stable
    ]
    op = ad.HandoverOp(changing)
    op.location = last.location
    function.body.block.insert_op_before(op, last)


def pair_of(
    function: func.FuncOp, activity: Activity, saves: str, lanes: int
) -> tuple[func.FuncOp, func.FuncOp]:
    """The forward and the backward function of a private function."""
    plan = make_plan(function, activity, saves)
    gradient = ReverseSweep(function, plan, lanes).run()
    keep_in_cells(gradient)
    inherit_locations(gradient)
    whole = ModuleOp([gradient])
    for one in CLEANING:
        one.apply(Context(), whole)
    gradient = only_function(whole)
    gradient.detach()
    split = Split(gradient, function.sym_name.data, detaches=False)
    forward, backward = split.functions()
    forward.attributes["keeps"] = IntegerAttr(len(split.kept), i64)
    backward.attributes.pop("keeps", None)
    for made in (forward, backward):
        for key in (RECORDED, GROWABLE_ARGUMENTS):
            made.attributes.pop(key, None)
        made.sym_visibility = StringAttr("private")
        made.attributes["chained"] = UnitAttr()
    return forward, backward


def tell_copies(forward: func.FuncOp, backward: func.FuncOp) -> None:
    """Let the types of arguments that are copies say that they are contiguous, where steps run backwards.

    A gradient that runs no step again has these contents on a tape: products and sums have the same order.
    """
    last, copied = forward.body.block.last_op, forward.attributes.get(activation.COPIED)
    if not isinstance(copied, DenseArrayBase):
        return
    assert isinstance(last, func.ReturnOp)
    arguments = [forward.body.block.args[int(k)] for k in copied.get_values()]
    first = len(last.operands) - count_in_record(forward, "keeps")
    for index, value in enumerate(last.operands[first:]):
        given = backward.body.block.args[index]
        if value not in arguments or not all(isinstance(op, TAKING) for op, _ in namings(given)):
            continue
        type_ = cast("MemRefType[Attribute]", value.type)
        told = memref.CastOp.get(value, array.contiguous(type_.element_type, type_.get_shape()))
        told.location, told.dest.name_hint = last.location, value.name_hint
        forward.body.block.insert_op_before(told, last)
        last.operands[first + index] = told.dest
        fresh = backward.body.block.insert_arg(told.dest.type, index)
        fresh.name_hint = given.name_hint
        for view in reversed(rename(given, fresh)):
            Rewriter.erase_op(view)
        backward.body.block.erase_arg(given)
    backward.update_function_type()
    forward.update_function_type()


def keep_in_cells(gradient: func.FuncOp) -> None:
    """Let numbers that are saved once in an activation cross in its record, not on tapes of their own.

    They are pushed in branches, for what stands outside of them crosses anyway.
    """
    entry = gradient.body.block
    for tape in [op for op in entry.ops if isinstance(op, ad.TapeOp)]:
        segments = [use.operation for use in tape.tape.uses]
        if not all(isinstance(op, ad.PushOp | ad.PopOp) and is_single(op) for op in segments):
            continue
        element = cast(MemRefType[Attribute], segments[0].results[0].type).element_type
        cell = memref.AllocaOp.get(element, shape=[])
        cell.memref.name_hint = segments[0].results[0].name_hint
        kind = FloatAttr if isinstance(element, AnyFloat) else IntegerAttr
        zero = arith.ConstantOp(kind(0, element))  # pyright: ignore
        for op in segments:
            Rewriter.replace_op(op, [], [cell.memref])
        made = [cell, zero, memref.StoreOp.get(zero.result, cell.memref, [])]
        for op in made:
            op.location = tape.location
        Rewriter.replace_op(tape, made, [None])


def is_single(op: Operation) -> bool:
    """True for a segment of one number, made outside of loops."""
    if cast(MemRefType[Attribute], op.results[0].type).get_num_dims():
        return False
    above = op.parent_op()
    while above is not None and not isinstance(above, func.FuncOp):
        if not isinstance(above, scf.IfOp):
            return False
        above = above.parent_op()
    return True
