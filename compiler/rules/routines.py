"""The private functions of a module: primals, adjoints, tangents of functions with a rule (`rule_calls`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import ad, foreign
from ...dialects.within import ops_of_kind


def routine(op: Operation, name: str) -> func.FuncOp:
    """The function of the module that the call names."""
    module: Operation | None = op
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    assert module is not None, "what calls a function of the module stands in one"
    for function in module.ops:
        if isinstance(function, func.FuncOp) and function.sym_name.data == name:
            return function
    raise AssertionError(f"no function @{name}")


def is_routine(function: func.FuncOp) -> bool:
    """True for the primal and the adjoint of a rule, which no one else calls."""
    visibility = function.sym_visibility
    return visibility is not None and visibility.data == "private"


def primal_of(op: foreign.RuleCallOp) -> func.FuncOp:
    return routine(op, op.primal.string_value())


def adjoint_of(op: foreign.RuleCallOp) -> func.FuncOp:
    """The adjoint; of what that calls, calls are left that a gradient keeps."""
    return without_rules(routine(op, op.adjoint.string_value()), is_kept)


def tangent_of(op: foreign.RuleCallOp) -> func.FuncOp:
    assert op.tangent is not None
    return without_rules(routine(op, op.tangent.string_value()), is_kept)


KEPT = "kept"
"""The attribute of calls that are kept in a gradient whose adjoint will be taken."""


def is_kept(op: foreign.RuleCallOp) -> bool:
    """Whether a gradient has the call, not the primal's code in its place: it moves as the rule says."""
    return op.tangent is not None or KEPT in op.attributes


def keep_opaque_calls(module: ModuleOp) -> None:
    """Let gradients have the calls of what the compiler cannot see into: only rules have their adjoints."""
    for op in module.walk():
        if isinstance(op, foreign.RuleCallOp) and is_opaque(primal_of(op)):
            op.attributes[KEPT] = UnitAttr()


def is_opaque(function: func.FuncOp) -> bool:
    return any(isinstance(op, foreign.CallOp) for op in function.walk())


def inlined(
    function: func.FuncOp,
    arguments: Sequence[SSAValue],
    append: Callable[[Operation], None],
    entry: Block,
) -> list[SSAValue]:
    """The function's ops, appended; what they return. Cells and tapes go to `entry`, once for all."""
    values: dict[SSAValue, SSAValue] = dict(zip(function.body.block.args, arguments, strict=True))
    for op in function.body.block.ops:
        if isinstance(op, func.ReturnOp):
            return [values[v] for v in op.arguments]
        clone = op.clone(values)
        if isinstance(clone, memref.AllocaOp | ad.TapeOp):
            if entry.first_op is None:
                entry.add_op(clone)
            else:
                entry.insert_op_before(clone, entry.first_op)
        else:
            append(clone)
    raise AssertionError("a function ends with a return")


def without_rules(
    function: func.FuncOp, kept: Callable[[foreign.RuleCallOp], bool] = lambda _: False
) -> func.FuncOp:
    """A copy of a function in which calls with rules are their primals' code, but those that are kept."""
    copy = function.clone()
    calls = ops_of_kind(function, foreign.RuleCallOp)
    copies = ops_of_kind(copy, foreign.RuleCallOp)
    for call, again in zip(calls, copies, strict=True):
        if kept(call):
            continue
        made: list[Operation] = []
        results = inlined(primal_of(call), list(again.operands), made.append, copy.body.block)
        Rewriter.replace_op(again, made, results)
    return copy


def inline_rules(function: func.FuncOp) -> None:
    """Put the primals' code in the place of calls with rules."""
    for call in ops_of_kind(function, foreign.RuleCallOp):
        made: list[Operation] = []
        results = inlined(primal_of(call), list(call.operands), made.append, function.body.block)
        Rewriter.replace_op(call, made, results)
