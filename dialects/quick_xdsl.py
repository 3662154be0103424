"""What xDSL's classes are asked most often, answered faster: the same answers, by shorter ways.

A compilation asks millions of times for the class of an op, an operand by its name, a result, a hash. xDSL
answers in Python, through several calls each: `op.lhs` makes six. Here these few methods take the
place of its own, when the dialects are imported:

- `isinstance` of ops, attributes and values: their metaclass is `abc.ABCMeta`, which also asks for classes
  that were registered. None is, so the built-in check serves.
- The hash of ops, blocks, regions and values is by identity, as before, but Python's own.
- Operands, results and regions by name go to the tuple that holds them; sizes of segments are unpacked once.
- The ops of a block, and `walk`, are generators: one for each region, where xDSL has four.
- Arguments of a new op that are single where one is declared are not looked at one by one.

`tests/test_quick_xdsl.py` holds each of them against what it replaces. (`pyproject.toml` admits one minor
version of xDSL.)
"""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any

from xdsl.dialects.arith import SignlessIntegerBinaryOperation
from xdsl.dialects.builtin import UNKNOWN_LOC, DenseArrayBase
from xdsl.ir import Attribute, Block, BlockOps, Operation, Region, SSAValue, SSAValues, core
from xdsl.irdl import operations
from xdsl.irdl.operations import VarIRConstruct

# Classes. -----------------------------------------------------------------------------------------


class PlainChecks(ABCMeta):
    """Of abstract classes to which none is registered: `isinstance` looks at base classes alone."""

    __instancecheck__ = type.__instancecheck__
    __subclasscheck__ = type.__subclasscheck__


def with_derived(root: type) -> Iterator[type]:
    """A class and all that come from it so far; those that come later have what it has."""
    yield root
    for derived in type.__subclasses__(root):
        yield from with_derived(derived)


BY_IDENTITY = [
    one.__hash__
    for one in (SSAValue, core._IRNode, operations.IRDLOperation, SignlessIntegerBinaryOperation)
]
"""Hashes that are `id(self)`."""


# Ops: their arguments by name. --------------------------------------------------------------------

OPERAND, RESULT, REGION = VarIRConstruct.OPERAND, VarIRConstruct.RESULT, VarIRConstruct.REGION


def constructs_of(op: Any, construct: VarIRConstruct) -> Sequence[Any]:
    """The operands, results, regions or successors of an op: to read."""
    if construct is OPERAND:
        return op._operands
    if construct is RESULT:
        return op.results
    return op.regions if construct is REGION else op._successors


def named(accessor: Any, op: Any, kind: Any = None) -> Any:
    """What is declared before all that may be there several times is at its place."""
    construct = accessor.construct
    if construct is OPERAND:
        return item(op._operands, accessor.idx)
    if construct is RESULT:
        return item(op.results, accessor.idx)
    return constructs_of(op, construct)[accessor.idx]


item = tuple[Any, ...].__getitem__


def item_or_items(values: SSAValues[Any], index: Any) -> Any:
    found = item(values, index)
    return SSAValues(found) if type(index) is slice else found


def sizes_of(sizes: Any) -> tuple[Any, ...]:
    """The values of an array attribute, which never changes."""
    known = vars(sizes)
    if "_values" not in known:
        known["_values"] = sizes.elt_type.unpack(sizes.data.data, len(sizes))
    return known["_values"]


# New ops. -----------------------------------------------------------------------------------------

SINGLE = (SSAValue, Attribute, Region, Block)
build_each = operations.irdl_build_arg_list


def build_arguments(construct: Any, args: Any, arg_defs: Any, error_prefix: str = "") -> Any:
    """The arguments in a row, and how many each is: where each is single there is nothing to look at."""
    if len(args) == len(arg_defs):
        for arg in args:
            if not isinstance(arg, SINGLE):
                break
        else:
            return [*args], [1] * len(args)
    return build_each(construct, args, arg_defs, error_prefix)


# Ops in order. ------------------------------------------------------------------------------------
#
# As with xDSL's own, what comes next is read before an op is handed out: it may be erased, or moved, then.


def ops_from(op: Any) -> Iterator[Operation]:
    """An op and those after it."""
    while op is not None:
        following = op._next_op
        yield op
        op = following


def ops_of(ops: BlockOps) -> Iterator[Operation]:
    return ops_from(ops.block.first_op)


def ops_within(regions: Sequence[Region]) -> Iterator[Operation]:
    """The ops of all blocks of these regions, without what is in them."""
    for region in regions:
        block = region.first_block
        while block is not None:
            following = block.next_block
            yield from ops_from(block.first_op)
            block = following


def each_with_its_own(ops: Iterator[Operation]) -> Iterator[Operation]:
    """Ops, each followed by all that is in it."""
    entered = [ops]
    while entered:
        for op in entered[-1]:
            yield op
            if op.regions:
                entered.append(ops_within(op.regions))
                break
        else:
            entered.pop()


walks = Operation.walk, Region.walk, Block.walk
"""xDSL's own, for the orders that are rare."""


def walk(
    self: Operation, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse or region_first:
        return walks[0](self, reverse=reverse, region_first=region_first)
    return each_with_its_own(iter((self,)))


def walk_region(
    self: Region, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse or region_first:
        return walks[1](self, reverse=reverse, region_first=region_first)
    return each_with_its_own(ops_within((self,)))


def walk_block(
    self: Block, *, reverse: bool = False, region_first: bool = False
) -> Iterator[Operation]:
    if reverse or region_first:
        return iter(walks[2](self, reverse=reverse, region_first=region_first))
    return each_with_its_own(ops_from(self.first_op))


# In the place of xDSL's own. ----------------------------------------------------------------------


def install() -> None:
    for root in (core.IRWithUses, core.IRWithName, core._IRNode, Attribute):
        for one in with_derived(root):
            if type(one) is ABCMeta:
                one.__class__ = PlainChecks
            if vars(one).get("__hash__") in BY_IDENTITY:
                one.__hash__ = object.__hash__
    operations.get_op_constructs = constructs_of
    operations.BeforeVariadicSingleAccessor.__get__ = named
    operations.irdl_build_arg_list = build_arguments
    SSAValues.__getitem__ = item_or_items
    DenseArrayBase.get_values = sizes_of
    BlockOps.__iter__ = ops_of
    Operation.walk, Region.walk, Block.walk = walk, walk_region, walk_block
    core._unknown_loc = lambda: UNKNOWN_LOC  # which it imports for each op
    Operation.next_op = property(attrgetter("_next_op"), doc=Operation.next_op.__doc__)
    SSAValue.type = property(attrgetter("_type"), doc=SSAValue.type.__doc__)


install()
