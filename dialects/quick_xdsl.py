"""What xDSL's classes are asked most often, answered faster: the same answers, by shorter ways.

A compilation asks millions of times for the class of an op, an operand by its name, a result, a hash. xDSL
answers in Python, through several calls each: `op.lhs` makes six. Here these few methods take the
place of its own, when the dialects are imported:

- `isinstance` of ops, attributes and values: their metaclass is `abc.ABCMeta`, which also asks for classes
  that were registered. None is, so the built-in check serves.
- Ops, blocks, regions and values are hashed and compared by identity, as before, but by Python's own
  methods. The hash of the attributes that ops have most often is taken once.
- Operands, results and regions by name go to the tuple that holds them; sizes of segments are unpacked once.
- The ops of a block, and `walk`, are generators: one for each region, where xDSL has four.
- A new attribute is filled in one go. One that equals one that was verified is not verified again; locations,
  of which no two are equal, are verified as before. The shape of a memref type is an array attribute, or
  becomes one: which, its class says (`quick_attributes`).
- A name that was found to be valid is not looked at again.
- A new op whose arguments are as declared, single or a list of several, is filled in one go, as is a copy.

`tests/test_quick_xdsl.py` holds each of them against what it replaces. (`pyproject.toml` admits the minor
versions of xDSL that it was run with.)
"""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from itertools import accumulate
from operator import attrgetter
from typing import Any, cast

from xdsl.dialects.arith import SignlessIntegerBinaryOperation
from xdsl.dialects.builtin import (
    UNKNOWN_LOC,
    DenseArrayBase,
    i32,
)
from xdsl.ir import (
    Attribute,
    Block,
    BlockOps,
    Operation,
    OpOperands,
    OpResult,
    Region,
    RegionBlocks,
    SSAValue,
    SSAValues,
    Use,
    core,
)
from xdsl.irdl import operations
from xdsl.irdl.operations import (
    AttrSizedOperandSegments,
    AttrSizedResultSegments,
    IRDLOperation,
    OperandDef,
    OptionalAttrAccessor,
    OptionalDef,
    ParsePropInAttrDict,
    ResultDef,
    VariadicAttrAccessor,
    VariadicDef,
    VarIRConstruct,
)

from . import quick_attributes
from .quick_walks import blocks_of, count_of, ops_of, walk, walk_block, walk_region

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


IDENTITY = "__hash__", "__eq__"
"""The methods by which `object` goes by identity."""

BY_IDENTITY = (SSAValue, core._IRNode, IRDLOperation, SignlessIntegerBinaryOperation)
"""Classes that say in Python what `object` says: the hash of each is its own, and none equals another one."""


# Ops: their arguments by name. --------------------------------------------------------------------

OPERAND, RESULT, REGION = VarIRConstruct.OPERAND, VarIRConstruct.RESULT, VarIRConstruct.REGION


def constructs_of(op: Any, construct: VarIRConstruct) -> Sequence[Any]:
    """The operands, results, regions or successors of an op: to read."""
    if construct is OPERAND:
        return op._operands
    if construct is RESULT:
        return op.results
    return op.regions if construct is REGION else op._successors


operands_of: Callable[[Operation], SSAValues[SSAValue]] = attrgetter("_operands")
"""The operands of an op as a tuple, which has a hash."""


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


def starts_of(sizes: Any) -> tuple[int, ...]:
    """Where the segments of these sizes begin, and where the last one ends."""
    known = vars(sizes)
    if "_starts" not in known:
        known["_starts"] = tuple(accumulate(sizes_of(sizes), initial=0))
    return known["_starts"]


def starts_for(option: Any, op: Any) -> tuple[int, ...]:
    """Where the segments of an op begin whose sizes it holds."""
    sizes = (op.properties if option.as_property else op.attributes)[option.attribute_name]
    return vars(sizes).get("_starts") or starts_of(sizes)


def one_of(accessor: Any, op: Any, kind: Any = None) -> Any:
    """What is declared once, where segments are found by their sizes."""
    start = starts_for(accessor.option, op)[accessor.idx] if accessor.idx else 0
    return constructs_of(op, accessor.construct)[start]


def one_or_none_of(accessor: Any, op: Any, kind: Any = None) -> Any:
    k, starts = accessor.idx, starts_for(accessor.option, op)
    there = starts[k] < starts[k + 1]
    return constructs_of(op, accessor.construct)[starts[k]] if there else None


def segment_of(accessor: Any, op: Any, kind: Any = None) -> Any:
    k, starts = accessor.idx, starts_for(accessor.option, op)
    segment = slice(starts[k], starts[k + 1])
    if accessor.construct is OPERAND:
        return SSAValues(item(op._operands, segment))
    return constructs_of(op, accessor.construct)[segment]


# Traits. ------------------------------------------------------------------------------------------

of_class = cast("classmethod[Operation, ..., bool]", vars(Operation)["has_trait"]).__func__


def has_trait(kind: type[Operation], trait: Any, *, value_if_unregistered: bool = True) -> bool:
    """Whether ops of a class have a trait: of a class of traits it is asked again and again."""
    return has_kind_of_trait(kind, trait) if isinstance(trait, type) else of_class(kind, trait)


@cache
def has_kind_of_trait(kind: type[Operation], trait: type) -> bool:
    return of_class(kind, trait)


# Names. -------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def valid_name(kind: type[core.IRWithName], name: str | None) -> str | None:
    """The name without a number at its end; ValueError where it is none."""
    return kind.extract_valid_name(name)


def set_name(self: Any, name: str | None) -> None:
    self._name = valid_name(type(self), name)


# New ops. -----------------------------------------------------------------------------------------

SINGLE, LISTS = (SSAValue, Attribute, Region), (list, tuple)
NO_VALUES: SSAValues[Any] = SSAValues()
init_each, init_any = IRDLOperation.__init__, Operation.__init__
clone_any, erase_used = Operation.clone_without_regions, SSAValue.erase


def init(
    self: IRDLOperation,
    *,
    operands: Any = None,
    result_types: Any = None,
    properties: Any = None,
    attributes: Any = None,
    successors: Any = None,
    regions: Any = None,
) -> None:
    """A new op. Where what it is given is as declared, there is nothing to look at one by one."""
    declared = type(self).get_irdl_definition()
    values, types = in_a_row(operands, declared.operands), in_a_row(result_types, declared.results)
    own = in_a_row(regions, declared.regions)
    sizes = None
    if not successors and values is not None and types is not None and own is not None:
        sizes = sizes_held(declared.options, values[1], types[1])
    if values is None or types is None or own is None or sizes is None:
        init_each(
            self,
            operands=operands,
            result_types=result_types,
            properties=properties,
            attributes=attributes,
            successors=successors,
            regions=regions,
        )
        return
    properties, attributes = present(properties), present(attributes)
    for as_property, name, one in sizes:
        (properties if as_property else attributes)[name] = one
    fill(self, values[0], types[0], properties, attributes, own[0])


def in_a_row(
    given: Sequence[Any] | None, declared: Sequence[tuple[str, Any]]
) -> tuple[list[Any], list[int]] | None:
    """The arguments, and how many each is: one, or a list where several are declared. None: anything else."""
    if given is None or len(given) != len(declared):
        return None if given or declared else ([], [])
    found: list[Any] = []
    sizes: list[int] = []
    for one, (_, how) in zip(given, declared, strict=True):
        size = 1
        if isinstance(one, SINGLE):
            found.append(one)
        elif isinstance(one, Operation):
            found.append(SSAValue.get(one))
        elif isinstance(one, LISTS) and is_variadic(type(how)):
            several = [SSAValue.get(each) if isinstance(each, Operation) else each for each in one]
            if not all(isinstance(each, SINGLE) for each in several):
                return None
            found += several
            size = len(several)
        else:
            return None
        sizes.append(size)
    return found, sizes


@cache
def is_variadic(kind: type) -> bool:
    """Whether what is declared so may be there any number of times: of operands and results."""
    several = issubclass(kind, VariadicDef) and not issubclass(kind, OptionalDef)
    return several and issubclass(kind, OperandDef | ResultDef)


def sizes_held(
    options: Sequence[Any], operands: Sequence[int], results: Sequence[int]
) -> list[tuple[bool, str, Attribute]] | None:
    """The attributes that hold the sizes of segments; None where something else is to be looked at."""
    found: list[tuple[bool, str, Attribute]] = []
    for option in options:
        if isinstance(option, ParsePropInAttrDict):  # it is about text
            continue
        if isinstance(option, AttrSizedOperandSegments):
            sizes = operands
        elif isinstance(option, AttrSizedResultSegments):
            sizes = results
        else:
            return None
        found.append((option.as_property, option.attribute_name, sizes_attribute(tuple(sizes))))
    return found


@cache
def sizes_attribute(sizes: tuple[int, ...]) -> Attribute:
    return DenseArrayBase.from_list(i32, sizes)


def present(named: Mapping[str, Attribute | None] | None) -> dict[str, Attribute]:
    """The attributes that are not None."""
    return {name: one for name, one in named.items() if one is not None} if named else {}


def hold_operands(op: Any, operands: Sequence[SSAValue]) -> None:
    """The operands of an op that has none, and its uses of them."""
    uses: list[Use] = []
    for k, value in enumerate(operands):
        following = value.first_use
        value.first_use = use = Use(op, k, None, following)
        if following is not None:
            following._prev_use = use
        uses.append(use)
    op._operands, op._operand_uses = SSAValues(operands) if operands else NO_VALUES, tuple(uses)


def set_operands(self: Any, operands: Sequence[SSAValue]) -> None:
    for value, use in zip(self._operands, self._operand_uses, strict=True):
        value.remove_use(use)
    hold_operands(self, operands)


def fill(
    op: Any,
    operands: Sequence[SSAValue],
    result_types: Sequence[Attribute],
    properties: dict[str, Attribute],
    attributes: dict[str, Attribute],
    regions: Sequence[Region],
    location: Any = None,
) -> None:
    """What `Operation.__init__` does for an op without successors."""
    hold_operands(op, operands)
    op._successors = op._successor_uses = ()
    results = [OpResult(type_, op, k) for k, type_ in enumerate(result_types)]
    op.results = SSAValues(results) if results else NO_VALUES
    op.properties, op.attributes = properties, attributes
    op.location = UNKNOWN_LOC if location is None else location
    op.regions = ()
    for region in regions:
        op.add_region(region)
    op.__post_init__()


def init_operation(
    self: Operation,
    *,
    operands: Sequence[SSAValue] = (),
    result_types: Sequence[Attribute] = (),
    properties: Mapping[str, Attribute] = {},
    attributes: Mapping[str, Attribute] = {},
    location: Any = None,
    successors: Sequence[Block] = (),
    regions: Sequence[Region] = (),
) -> None:
    if not successors:
        held = dict(properties), dict(attributes)
        fill(self, operands, result_types, *held, regions, location)
        return
    init_any(
        self,
        operands=operands,
        result_types=result_types,
        properties=properties,
        attributes=attributes,
        location=location,
        successors=successors,
        regions=regions,
    )


def erase_value(self: SSAValue, safe_erase: bool = True) -> None:
    """A value without uses has nothing to be replaced in."""
    if self.first_use is not None:
        erase_used(self, safe_erase)


def clone_without_regions(
    self: Operation,
    value_mapper: dict[SSAValue, SSAValue] | None = None,
    block_mapper: dict[Block, Block] | None = None,
    *,
    clone_name_hints: bool = True,
    clone_operands: bool = True,
) -> Operation:
    if self._successors:
        hints = {"clone_name_hints": clone_name_hints, "clone_operands": clone_operands}
        return clone_any(self, value_mapper, block_mapper, **hints)
    mapped = {} if value_mapper is None else value_mapper
    operands = [mapped.get(one, one) for one in self._operands] if clone_operands else ()
    types, regions = [one.type for one in self.results], [Region() for _ in self.regions]
    made = type(self).__new__(type(self))
    held = self.properties.copy(), self.attributes.copy()
    fill(made, operands, types, *held, regions, self.location)
    for old, new in zip(self.results, made.results, strict=True):
        mapped[old] = new
        if clone_name_hints:
            new._name = old._name  # which is valid
    return made


@cache
def defaults_of(kind: type[IRDLOperation]) -> tuple[tuple[bool, str, Attribute], ...]:
    """The properties (True) and attributes that an op has where it is not told."""
    definition = kind.get_irdl_definition()
    return tuple(
        (is_property, name, one.default_value)
        for is_property, declared in ((True, definition.properties), (False, definition.attributes))
        for name, one in declared.items()
        if not isinstance(one, OptionalDef) and one.default_value is not None
    )


def set_defaults(self: IRDLOperation) -> None:
    for is_property, name, value in defaults_of(type(self)):
        (self.properties if is_property else self.attributes).setdefault(name, value)


# In the place of xDSL's own. ----------------------------------------------------------------------


READ_OFTEN = (
    (Operation, "next_op"),
    (Block, "first_op"),
    (Block, "last_op"),
    (Block, "next_block"),
    (Region, "first_block"),
    (Region, "last_block"),
    (SSAValue, "type"),
)
"""Properties that return an attribute of nearly their name."""


def install() -> None:
    own = {vars(one).get(name) for one in BY_IDENTITY for name in IDENTITY} - {None}
    for root in (core.IRWithUses, core.IRWithName, core._IRNode, Attribute):
        for one in with_derived(root):
            if type(one) is ABCMeta:
                one.__class__ = PlainChecks
            for name in IDENTITY:
                if vars(one).get(name) in own:
                    setattr(one, name, getattr(object, name))
    operations.get_op_constructs = constructs_of
    operations.BeforeVariadicSingleAccessor.__get__ = named
    operations.BaseAttrAccessor.__get__ = one_of
    OptionalAttrAccessor.__get__, VariadicAttrAccessor.__get__ = one_or_none_of, segment_of
    IRDLOperation.__init__, Operation.__init__ = init, init_operation
    IRDLOperation.__post_init__ = set_defaults
    Operation.clone_without_regions = clone_without_regions
    SSAValues.__getitem__, SSAValue.erase = item_or_items, erase_value
    DenseArrayBase.get_values = sizes_of
    quick_attributes.install()
    BlockOps.__iter__, BlockOps.__len__ = ops_of, count_of
    RegionBlocks.__iter__ = blocks_of
    Operation.has_trait = classmethod(has_trait)
    Operation.walk, Region.walk, Block.walk = walk, walk_region, walk_block
    core._unknown_loc = lambda: UNKNOWN_LOC  # which it imports for each op
    core.IRWithName.name_hint = core.IRWithName.name_hint.setter(set_name)
    for kind, name in READ_OFTEN:
        setattr(kind, name, property(attrgetter(f"_{name}"), doc=getattr(kind, name).__doc__))
    Operation.operands = property(OpOperands, set_operands, doc=Operation.operands.__doc__)


install()
