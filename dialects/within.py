"""The ops in an op, found fast: passes and analyses ask for them more often than for anything else.

xDSL's own `walk` is a generator within a generator for each level of regions, and `isinstance` of its classes
goes through Python code, as they have an abstract base; both are most of the time of a pass that changes
nothing. Here ops are collected by one loop, and what a class is a subclass of is known after the first time.
"""

# pyright: reportPrivateUsage=false

from __future__ import annotations

from functools import cache
from typing import TypeVar

from xdsl.ir import Operation, Region
from xdsl.irdl import IRDLOperation
from xdsl.irdl.operations import VariadicDef

Wanted = TypeVar("Wanted", bound=Operation)


def every_op(top: Operation) -> list[Operation]:
    """An op and all that is in it, in order; as `list(top.walk())`."""
    found = [top]
    for region in top.regions:
        _collect(region, found)
    return found


def every_op_of(region: Region) -> list[Operation]:
    """All that is in a region, in order."""
    found: list[Operation] = []
    _collect(region, found)
    return found


def _collect(region: Region, found: list[Operation]) -> None:
    block = region._first_block
    while block is not None:
        op = block._first_op
        while op is not None:
            found.append(op)
            if op.regions:
                for inner in op.regions:
                    _collect(inner, found)
            op = op._next_op
        block = block._next_block


def _collect_structured(region: Region, found: list[Operation]) -> None:
    """The ops of a region that have regions; most have none."""
    block = region._first_block
    while block is not None:
        op = block._first_op
        while op is not None:
            if op.regions:
                found.append(op)
                for inner in op.regions:
                    _collect_structured(inner, found)
            op = op._next_op
        block = block._next_block


def ops_of_kind(top: Operation, wanted: type[Wanted]) -> list[Wanted]:
    """The ops of a class among `every_op(top)`."""
    return ops_of_kinds(top, wanted)  # pyright: ignore[reportReturnType]


def ops_of_kinds(top: Operation, *wanted: type[Operation]) -> list[Operation]:
    """Those of any of these classes."""
    if have_regions(wanted):
        ops = [top]
        for region in top.regions:
            _collect_structured(region, ops)
    else:
        ops = every_op(top)
    kinds = {kind for kind in {*map(type, ops)} if issubclass(kind, wanted)}
    return [op for op in ops if type(op) in kinds] if kinds else []


@cache
def have_regions(kinds: tuple[type[Operation], ...]) -> bool:
    """Whether all ops of these classes have regions, as far as their definitions say."""
    return all(issubclass(kind, IRDLOperation) and has_own_region(kind) for kind in kinds)


def has_own_region(kind: type[IRDLOperation]) -> bool:
    declared = getattr(kind.get_irdl_definition(), "regions", ())  # a class without ops has none
    return any(not isinstance(how, VariadicDef) for _, how in declared)


@cache
def is_kind(kind: type, *wanted: type) -> bool:
    """Whether a class is one of these, or of a subclass."""
    return issubclass(kind, wanted)


@cache
def has_kind_trait(kind: type[Operation], trait: type) -> bool:
    """Whether ops of a class have a trait."""
    return kind.has_trait(trait)


def module_of(op: Operation) -> Operation:
    """The outermost op around it."""
    while (above := op.parent_op()) is not None:
        op = above
    return op
