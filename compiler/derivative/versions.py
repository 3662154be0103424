"""The contents of whole arrays between stores, and which arrays are too large to be copied whole."""

from __future__ import annotations

from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase, MemRefType, i64
from xdsl.ir import BlockArgument, Operation, SSAValue

from ...dialects import activation, array
from ..analysis.alias import AliasAnalysis
from ..analysis.memory_ssa import Version as MemoryVersion
from ..rules.calls import argument_of, private_functions


class Version(NamedTuple):
    """The contents of a whole array while no store changes them."""

    base: SSAValue
    token: MemoryVersion


GROWABLE_ARGUMENTS = "growable_arguments"
"""The attribute of a private function that lists which arguments are growable arrays of some caller."""


def is_growable(base: SSAValue) -> bool:
    """True for memory that is mostly addresses: it is never copied whole."""
    if isinstance(base.owner, Operation):
        return array.GROWABLE in base.owner.attributes
    function = base.owner.parent_op()
    listed = None if function is None else function.attributes.get(GROWABLE_ARGUMENTS)
    assert isinstance(base, BlockArgument)
    return isinstance(listed, DenseArrayBase) and base.index in listed.get_values()


def mark_growable(main: func.FuncOp) -> None:
    """Write on each private function which of its arguments are growable."""
    private = private_functions(main.parent_op())
    found: dict[str, set[int]] = {name: set() for name in private}
    alias = {f: AliasAnalysis(f) for f in (main, *private.values()) if activation.calls(f)}
    count = -1
    while count != (count := sum(map(len, found.values()))):
        for name, function in private.items():
            listed = DenseArrayBase.from_list(i64, sorted(found[name]))
            function.attributes[GROWABLE_ARGUMENTS] = listed
        for function, known in alias.items():
            for call in activation.calls(function):
                callee = private[call.target]
                for argument in callee.body.block.args:
                    place = argument_of(callee, argument.index)
                    if place is None or not isinstance(argument.type, MemRefType):
                        continue
                    if any(map(is_growable, known.roots(call.arguments[place]))):
                        found[call.target].add(argument.index)
    for name, function in private.items():
        if not found[name]:
            del function.attributes[GROWABLE_ARGUMENTS]
