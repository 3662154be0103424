"""The `array` dialect: whole-array operations, loops, checks.

It stands beside xDSL's `func`, `scf.if`, `arith`, `math` and `memref`
(`alloca`, `load`, `store`, `dim`) and supplies what they lack:

- one view op for every basic indexing form (`array.view`);
- one whole-array op for every elementwise expression and reduction (`array.map`);
- one loop op for `for` and `while`, whose actual trip count is a value (`array.loop`);
- checks that raise Python exceptions and are ordered with memory (`array.raise_if`, `array.index`).

Conventions. A Python int is `index` (64 bits); NumPy's integers are `i32`, `i64`; bool is `i1`.
A mutable scalar variable is a rank-0 `memref.alloca`, a *cell*. A memref's pointer addresses
element (0, ..., 0) whatever its strides, so layouts carry no offset; strides count elements.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from xdsl.dialects import arith, builtin
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    StringAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Dialect, Operation, Region, SSAValue
from xdsl.irdl import (
    AnyAttr,
    AttrSizedOperandSegments,
    IRDLOperation,
    VarConstraint,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, Pure, RecursiveMemoryEffect
from xdsl.utils.exceptions import VerifyException

from .within import is_kind

MapKind = str
"""How a map writes an output: "store", or combines with what is there: "add", "mul", "min", "max"."""

MAP_KINDS: tuple[MapKind, ...] = ("store", "add", "mul", "min", "max")

UNBOUNDED = 2**33
"""As many items a growable array has room for: more than memory holds."""

GROWABLE = "growable"
"""The attribute of an `array.alloc` whose memory is reserved, and becomes real where it is touched. Its
shadow is 0 by itself: no element is read before it is stored to."""

FRESH = "fresh"
"""The attribute of a store, or of the view that is stored to, whose elements nobody has touched before since
the memory was made: what is appended to a list that only grows."""

ZERO = "zero"
"""The attribute of such a shadow: it is found and left full of zeros."""

CLEARED = "cleared"
"""The attribute of the shadow of a shadow: it is filled with zeros where it is made, and left as it is."""

READS_FIRST = "reads_first"
"""The attribute of an `array.map` with NumPy's meaning of an assignment: every element is read before any is
written, so inputs may overlap the output. `resolve-overlap` takes it away."""

CLAIMED = "claimed"
"""The attribute of a loop over `prange`: the program says that its iterations are independent."""

EXCLUSIVE = "exclusive"
"""The attribute of the adjoint of such a loop, and of the accesses in it to what one iteration stored to."""

OWN_BYTES = "own_bytes"
"""The attribute of a loop whose iterations share no byte that they save."""

RAISES = "raises"
"""The attribute of an `scf.if` whose first branch always ends with an exception, and whose other is empty."""

SMALL = "small"
"""The attribute of a loop that is compiled to be small, not fast.

It has few iterations, runs where not all checks in it pass, or holds tiles, which are fast as they are.
"""


STACK = "stack"
"""The attribute of an `array.alloc` of a small constant size whose memory is the stack's."""


def constant_value(value: SSAValue) -> int | None:
    """The integer that `value` certainly is, or None."""
    owner = value.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def strides_of(type_: MemRefType[Attribute]) -> tuple[int | None, ...]:
    """The strides of a memref type in elements; None where known only at run time."""
    layout = type_.layout
    if isinstance(layout, StridedLayoutAttr):
        return tuple(s.data if isinstance(s, IntAttr) else None for s in layout.strides)
    assert isinstance(layout, NoneAttr), layout
    strides: list[int | None] = []
    stride: int | None = 1
    for extent in reversed(type_.get_shape()):
        strides.append(stride)
        stride = None if stride is None or extent == DYNAMIC_INDEX else stride * extent
    return tuple(reversed(strides))


def is_by_columns(type_: MemRefType[Attribute]) -> bool:
    """Whether an array lies in Fortran's order, as far as its type says."""
    strides = strides_of(type_)
    return len(strides) > 1 and strides[0] == 1 and not is_contiguous(type_)


def is_contiguous(type_: MemRefType[Attribute]) -> bool:
    """True when the type promises C order without gaps (the identity layout)."""
    return isinstance(type_.layout, NoneAttr)


def strided(
    element: Attribute,
    shape: Sequence[int],
    strides: Sequence[int | None],
    space: Attribute | None = None,
) -> MemRefType[Attribute]:
    """A memref type of the given shape (DYNAMIC_INDEX where unknown) and strides (None where unknown)."""
    return MemRefType(element, shape, StridedLayoutAttr(list(strides), 0), space or NoneAttr())


@cache
def contiguous(element: Attribute, shape: tuple[int, ...]) -> MemRefType[Attribute]:
    """The memref type of an array in C order, one object for all ops that ask."""
    return MemRefType(element, shape)


@irdl_op_definition
class AllocOp(IRDLOperation):
    """A fresh C-contiguous array with undefined contents: `%a = array.alloc(%n, %m) : memref<?x?xf64>`.

    One extent for each dimension, static ones too. The memory lives until the end of the
    enclosing loop iteration (or of the call), or as long as the caller wants when it is returned.
    """

    name = "array.alloc"
    extents = var_operand_def(IndexType)
    memref = result_def(MemRefType)
    assembly_format = "`(` $extents `)` attr-dict `:` type($memref)"

    def __init__(self, extents: Sequence[SSAValue], element: Attribute) -> None:
        shape = [DYNAMIC_INDEX if (c := constant_value(e)) is None else c for e in extents]
        super().__init__(operands=[extents], result_types=[contiguous(element, tuple(shape))])


@irdl_op_definition
class ViewOp(IRDLOperation):
    """Every basic view: slice, integer index, transpose, newaxis, reversal, broadcast.

    `%v = array.view %a[%o0, %o1] dims [1, -1] extents(%e0, %e1) steps(%s0, %s1) : T -> U`

    The view starts at element (o0, o1) of the source. Result dimension r walks source dimension
    dims[r] in steps of s_r elements, or stands still (stride 0) where dims[r] is -1: a new axis
    or a broadcast. A source dimension that is not named is dropped (an integer index).
    The view shares the source's memory and reads none of it.
    """

    name = "array.view"
    source = operand_def(MemRefType)
    offsets = var_operand_def(IndexType)
    extents = var_operand_def(IndexType)
    steps = var_operand_def(IndexType)
    dims = prop_def(DenseArrayBase.constr(i64))
    result = result_def(MemRefType)
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(Pure())
    assembly_format = (
        "$source `[` $offsets `]` `dims` $dims `extents` `(` $extents `)` `steps` `(` $steps `)`"
        " attr-dict `:` type($source) `->` type($result)"
    )

    def __init__(
        self,
        source: SSAValue,
        offsets: Sequence[SSAValue],
        dims: Sequence[int],
        extents: Sequence[SSAValue],
        steps: Sequence[SSAValue],
    ) -> None:
        super().__init__(
            operands=[source, offsets, extents, steps],
            properties={"dims": DenseArrayBase.from_list(i64, list(dims))},
            result_types=[view_type(source.type, dims, extents, steps)],
        )

    def of(self, source: SSAValue, number: Callable[[SSAValue], SSAValue]) -> "ViewOp":
        """The same view of another memref, each of its numbers replaced."""
        groups = ([number(v) for v in vs] for vs in (self.offsets, self.extents, self.steps))
        offsets, extents, steps = groups
        return ViewOp(source, offsets, self.source_dims, extents, steps)

    @property
    def source_dims(self) -> tuple[int, ...]:
        """For each result dimension the source dimension it walks, or -1."""
        return tuple(int(d) for d in self.dims.get_values())

    def verify_(self) -> None:
        assert isinstance(self.source.type, MemRefType)
        if len(self.offsets) != self.source.type.get_num_dims():
            raise VerifyException("array.view needs one offset for each source dimension")
        if not len(self.source_dims) == len(self.extents) == len(self.steps):
            raise VerifyException(
                "array.view needs one extent and one step for each result dimension"
            )


def view_type(
    source: Attribute, dims: Sequence[int], extents: Sequence[SSAValue], steps: Sequence[SSAValue]
) -> MemRefType[Attribute]:
    """The type of a view, with every extent and stride that is known statically."""
    assert isinstance(source, MemRefType)
    source_strides = strides_of(source)
    shape: list[int] = []
    strides: list[int | None] = []
    for d, extent, step in zip(dims, extents, steps, strict=True):
        known = constant_value(extent)
        shape.append(DYNAMIC_INDEX if known is None else known)
        if d < 0:
            strides.append(0)
            continue
        stride, by = source_strides[d], constant_value(step)
        strides.append(None if stride is None or by is None else stride * by)
    return strided(source.element_type, shape, strides, source.memory_space)


@irdl_op_definition
class CollapseOp(IRDLOperation):
    """A view in which some dimensions that follow each other in memory are one: `a.reshape(-1)`.

    `%v = array.collapse %a dims [0, 2] extents(%nm, %k) : memref<?x?x?xf64> -> memref<?x?xf64>`

    Dimensions 0 and 1 (the first; one past the last) become one, whose extent is their product; the
    others stay. The one obligation on who builds it: where a step of the one after the last element of
    the other would be, the next row is. With `units` that holds once the dimensions which happen to have
    one element are left out, which may stand anywhere. The view shares the source's memory.
    """

    name = "array.collapse"
    source = operand_def(MemRefType)
    extents = var_operand_def(IndexType)
    dims = prop_def(DenseArrayBase.constr(i64))
    units = opt_prop_def(UnitAttr)
    result = result_def(MemRefType)
    traits = traits_def(Pure())
    assembly_format = (
        "$source `dims` $dims `extents` `(` $extents `)` (`units` $units^)? attr-dict"
        " `:` type($source) `->` type($result)"
    )

    def __init__(
        self,
        source: SSAValue,
        first: int,
        end: int,
        extents: Sequence[SSAValue],
        *,
        units: bool = False,
    ) -> None:
        super().__init__(
            operands=[source, extents],
            properties={
                "dims": DenseArrayBase.from_list(i64, [first, end]),
                **({"units": UnitAttr()} if units else {}),
            },
            result_types=[collapsed_type(source.type, first, end, extents, units=units)],
        )

    def of(self, source: SSAValue, number: Callable[[SSAValue], SSAValue]) -> "CollapseOp":
        """The same view of another memref, laid out alike, each of its numbers replaced."""
        extents = [number(n) for n in self.extents]
        return CollapseOp(source, *self.merged, extents, units=self.units is not None)

    @property
    def merged(self) -> tuple[int, int]:
        """The first dimension that is merged, and the one past the last."""
        first, end = self.dims.get_values()
        return int(first), int(end)

    def verify_(self) -> None:
        assert isinstance(self.source.type, MemRefType)
        (first, end), rank = self.merged, self.source.type.get_num_dims()
        if not 0 <= first < end <= rank or len(self.extents) != rank - (end - first) + 1:
            raise VerifyException("array.collapse merges dimensions that its source does not have")


def collapsed_type(
    source: Attribute, first: int, end: int, extents: Sequence[SSAValue], *, units: bool
) -> MemRefType[Attribute]:
    """The type of a collapsed array; contiguous where the source is."""
    assert isinstance(source, MemRefType)
    numbers = [constant_value(n) for n in extents]
    shape = [DYNAMIC_INDEX if n is None else n for n in numbers]
    if is_contiguous(source):
        return MemRefType(source.element_type, shape, NoneAttr(), source.memory_space)
    strides = strides_of(source)
    inner = None if units else strides[end - 1]
    merged = [*strides[:first], inner, *strides[end:]]
    return strided(source.element_type, shape, merged, source.memory_space)


@irdl_op_definition
class StrideOp(IRDLOperation):
    """The stride of a dimension of an array, in elements: `%s = array.stride %a axis 0  : T`."""

    name = "array.stride"
    source = operand_def(MemRefType)
    axis = prop_def(IntegerAttr)
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "$source `axis` $axis attr-dict `:` type($source)"

    def __init__(self, source: SSAValue, axis: int) -> None:
        super().__init__(
            operands=[source],
            properties={"axis": IntegerAttr(axis, i64)},
            result_types=[IndexType()],
        )


@irdl_op_definition
class OverlapOp(IRDLOperation):
    """Whether two arrays have an element in common: `%o = array.overlap %a, %b : T, U`.

    False is certain. Where one interleaves with the other, true may be said of arrays that have none.
    """

    name = "array.overlap"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    result = result_def(i1)
    traits = traits_def(Pure())
    assembly_format = "$a `,` $b attr-dict `:` type($a) `,` type($b)"

    def __init__(self, a: SSAValue, b: SSAValue) -> None:
        super().__init__(operands=[a, b], result_types=[i1])


AnyView = ViewOp | CollapseOp
"""The ops whose result is another name for elements of their source."""


@irdl_op_definition
class YieldOp(IRDLOperation):
    """Ends a map's body (the elements to write) or a loop's body (the carried memrefs)."""

    name = "array.yield"
    values = var_operand_def()
    traits = traits_def(IsTerminator())
    assembly_format = "($values^ `:` type($values))? attr-dict"

    def __init__(self, values: Iterable[SSAValue] = ()) -> None:
        super().__init__(operands=[list(values)])


@dataclass(frozen=True)
class Gathers:
    """How a map with a window reads its inputs."""

    window: tuple[SSAValue, ...]
    """The extents of the inputs."""
    shifts: tuple[tuple[int, ...], ...]
    """For each input what is taken off a point's subscripts."""
    zeros: frozenset[int]
    """The inputs that are 0 outside of the window."""
    fresh: tuple[int, ...] | None = None
    """What is taken off a point's subscripts to see whether it stores what it adds."""
    origin: tuple[SSAValue, ...] = ()
    """What is added to a point's subscripts before anything is taken off; nothing where it is empty."""

    def fits(self, rank: int, inputs: int) -> bool:
        lengths = {rank, len(self.window), len(self.origin) or rank, *map(len, self.shifts)}
        lengths.add(rank if self.fresh is None else len(self.fresh))
        return lengths == {rank} and len(self.shifts) == inputs and self.zeros <= set(range(inputs))

    def of(self, inputs: Sequence[int]) -> "Gathers":
        """The same of some of the inputs."""
        zeros = frozenset(k for k, i in enumerate(inputs) if i in self.zeros)
        return replace(self, shifts=tuple(self.shifts[i] for i in inputs), zeros=zeros)


@cache
def kinds_attribute(kinds: tuple[MapKind, ...]) -> ArrayAttr[StringAttr]:
    return ArrayAttr([StringAttr(k) for k in kinds])


@irdl_op_definition
class MapOp(IRDLOperation):
    """Compute elements of whole arrays: every elementwise expression, copy, fill and reduction.

    `array.map(%n, %m) ins(%a : T) outs(%c : T) kinds ["store"] { ^bb0(%x : f64): ... array.yield %y : f64 }`

    For each point of the index space (n, m): load one element of each input, evaluate the body,
    then write its results to the outputs in order: "store", or combine with the element that is
    there ("add", "mul", "min", "max"). Every operand has the rank of the index space; where an
    output's stride is 0 the map reduces. The body is pure scalar code and may use outer scalars.

    The one obligation on who builds a map: what one point writes, no other point reads, so points
    may be evaluated in any order, vectorized or in parallel. (Reading and writing the very same
    view is fine; so are several "add"s to overlapping places.) A map that `reads_first` is free of it, and
    is none that analyses and code generation see. No two outputs "store" to one place: the
    adjoint would find the cotangent of the last store in both. "add" may be reassociated.

    A map with a `window` gathers (`gather-adds`): `window(%n, %m) shifts [0, 1, 2, 1] zeros [0]`. Its
    inputs have n x m elements: point p reads the element p - (0, 1) of the first and p - (2, 1) of the
    second. Where that is none, the inputs numbered in `zeros` are 0, and the others the element that is
    nearest. It reads nothing that it writes. With `fresh [1, 1]` the points p where p - (1, 1) is in the
    window store what the others add. With an `origin(%i, %j)` all that is said of p is said of p + (i, j):
    the map is a part of a larger one (`fuse-rows`).
    """

    name = "array.map"
    extents = var_operand_def(IndexType)
    ins = var_operand_def(MemRefType)
    outs = var_operand_def(MemRefType)
    window = var_operand_def(IndexType)
    origin = var_operand_def(IndexType)
    kinds = prop_def(ArrayAttr[StringAttr])
    shifts = opt_prop_def(DenseArrayBase.constr(i64))
    zeros = opt_prop_def(DenseArrayBase.constr(i64))
    fresh = opt_prop_def(DenseArrayBase.constr(i64))
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "`(` $extents `)` (`ins` `(` $ins^ `:` type($ins) `)`)? `outs` `(` $outs `:` type($outs) `)`"
        " `kinds` $kinds (`window` `(` $window^ `)`)? (`origin` `(` $origin^ `)`)?"
        " (`shifts` $shifts^)? (`zeros` $zeros^)? (`fresh` $fresh^)? attr-dict-with-keyword $body"
    )

    def __init__(
        self,
        extents: Sequence[SSAValue],
        ins: Sequence[SSAValue],
        outs: Sequence[SSAValue],
        kinds: Sequence[MapKind],
        body: Region | Block,
        gathers: "Gathers | None" = None,
    ) -> None:
        properties: dict[str, Attribute] = {"kinds": kinds_attribute(tuple(kinds))}
        if gathers is not None:
            flat = [s for row in gathers.shifts for s in row]
            properties["shifts"] = DenseArrayBase.from_list(i64, flat)
            properties["zeros"] = DenseArrayBase.from_list(i64, sorted(gathers.zeros))
            if gathers.fresh is not None:
                properties["fresh"] = DenseArrayBase.from_list(i64, [*gathers.fresh])
        super().__init__(
            operands=[
                extents,
                ins,
                outs,
                () if gathers is None else gathers.window,
                () if gathers is None else gathers.origin,
            ],
            properties=properties,
            regions=[Region(body) if isinstance(body, Block) else body],
        )

    @property
    def gathers(self) -> "Gathers | None":
        """How the inputs are read, where that is not point by point."""
        if self.shifts is None or not self.window:
            return None
        rank, flat = len(self.window), [int(s) for s in self.shifts.get_values()]
        shifts = tuple(tuple(flat[k : k + rank]) for k in range(0, len(flat), rank))
        zeros = (
            frozenset[int]() if self.zeros is None else frozenset(map(int, self.zeros.get_values()))
        )
        fresh = None if self.fresh is None else tuple(map(int, self.fresh.get_values()))
        return Gathers(tuple(self.window), shifts, zeros, fresh, tuple(self.origin))

    @property
    def out_kinds(self) -> tuple[MapKind, ...]:
        return tuple(k.data for k in self.kinds)

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The elements written, one for each output."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    def verify_(self) -> None:
        rank = len(self.extents)
        for m in (*self.ins, *self.outs):
            assert isinstance(m.type, MemRefType)
            if m.type.get_num_dims() != rank:
                raise VerifyException(
                    f"array.map over {rank} dimensions has an operand of type {m.type}"
                )
        if len(self.body.block.args) != len(self.ins):
            raise VerifyException("array.map needs one body argument for each input")
        if not len(self.out_kinds) == len(self.outs) == len(self.yielded):
            raise VerifyException(
                "array.map needs one kind and one yielded element for each output"
            )
        if any(k not in MAP_KINDS for k in self.out_kinds):
            raise VerifyException(f"array.map kinds are {MAP_KINDS}")
        found = self.gathers
        if (self.shifts is None) != (not self.window):
            raise VerifyException("array.map has a window and shifts, or neither")
        if found is not None and not found.fits(rank, len(self.ins)):
            raise VerifyException("array.map needs one shift of each input for each dimension")


@irdl_op_definition
class ConditionOp(IRDLOperation):
    """Ends a loop's condition region: another iteration runs when the operand is true."""

    name = "array.condition"
    condition = operand_def(i1)
    traits = traits_def(IsTerminator())
    assembly_format = "$condition attr-dict"

    def __init__(self, condition: SSAValue) -> None:
        super().__init__(operands=[condition])


@irdl_op_definition
class LoopOp(IRDLOperation):
    """The one loop: `for` (a count), `while` (a condition), or both.

    ::

        %trips, %u2 = array.loop %i to %count carry(%u = %u0 : memref<?xf64>) while {
          ...
          array.condition %c
        } do {
          ...
          array.yield %v : memref<?xf64>
        }

    `%i` counts 0, 1, 2, ...; the loop ends when it reaches `%count` (if there is one) or when the
    condition region (if there is one), evaluated before each iteration, says false. `%trips` is the
    number of iterations that ran. Only memrefs are carried; scalars live in cells. Both regions take
    (%i, carried...). Everything else they use from outside by dominance.
    """

    name = "array.loop"
    count = opt_operand_def(IndexType)
    carried = var_operand_def(MemRefType)
    trips = result_def(IndexType)
    results_carried = var_result_def(MemRefType)
    condition = region_def()
    body = region_def("single_block")
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    traits = traits_def(RecursiveMemoryEffect())

    def __init__(
        self,
        count: SSAValue | None,
        carried: Sequence[SSAValue],
        body: Block,
        condition: Block | None = None,
    ) -> None:
        super().__init__(
            operands=[[] if count is None else [count], list(carried)],
            result_types=[IndexType(), [c.type for c in carried]],
            regions=[Region() if condition is None else Region(condition), Region(body)],
        )

    @property
    def induction(self) -> SSAValue:
        return self.body.block.args[0]

    @property
    def body_carried(self) -> tuple[SSAValue, ...]:
        """The carried memrefs as the body sees them."""
        return tuple(self.body.block.args[1:])

    @property
    def yielded(self) -> tuple[SSAValue, ...]:
        """The carried memrefs at the end of an iteration."""
        last = self.body.block.last_op
        assert isinstance(last, YieldOp)
        return tuple(last.values)

    @property
    def condition_block(self) -> Block | None:
        return self.condition.blocks.first

    def verify_(self) -> None:
        types = (IndexType(), *(c.type for c in self.carried))
        blocks = [b for b in (self.condition_block, self.body.block) if b is not None]
        if any(tuple(a.type for a in b.args) != types for b in blocks):
            raise VerifyException("array.loop regions take (index, carried...)")
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("array.loop's body ends in array.yield")
        if tuple(v.type for v in self.yielded) != types[1:]:
            raise VerifyException("array.loop yields its carried memrefs")
        if self.condition_block is None and self.count is None:
            raise VerifyException("array.loop needs a count or a condition")

    def print(self, printer: Printer) -> None:
        body = self.body.block
        printer.print_string(" ")
        printer.print_ssa_value(body.args[0])
        if self.count is not None:
            printer.print_string(" to ")
            printer.print_ssa_value(self.count)
        if self.carried:
            printer.print_string(" carry(")

            def print_carried(pair: tuple[SSAValue, SSAValue]) -> None:
                printer.print_ssa_value(pair[0])
                printer.print_string(" = ")
                printer.print_ssa_value(pair[1])
                printer.print_string(" : ")
                printer.print_attribute(pair[1].type)

            printer.print_list(list(zip(body.args[1:], self.carried, strict=True)), print_carried)
            printer.print_string(")")
        if self.condition_block is not None:
            printer.print_string(" while ")
            printer.print_region(self.condition)
        printer.print_string(" do ")
        printer.print_region(self.body, print_entry_block_args=False)
        printer.print_op_attributes(self.attributes)

    @classmethod
    def parse(cls, parser: Parser) -> "LoopOp":
        induction = parser.parse_argument(expect_type=False).resolve(IndexType())
        count = None
        if parser.parse_optional_keyword("to"):
            count = parser.resolve_operand(parser.parse_unresolved_operand(), IndexType())
        args, carried = [induction], []
        if parser.parse_optional_keyword("carry"):

            def parse_carried() -> None:
                arg = parser.parse_argument(expect_type=False)
                parser.parse_punctuation("=")
                operand = parser.parse_unresolved_operand()
                parser.parse_punctuation(":")
                type_ = parser.parse_type()
                args.append(arg.resolve(type_))
                carried.append(parser.resolve_operand(operand, type_))

            parser.parse_comma_separated_list(parser.Delimiter.PAREN, parse_carried)
        condition = parser.parse_region() if parser.parse_optional_keyword("while") else Region()
        parser.parse_keyword("do")
        body = parser.parse_region(args)
        attributes = parser.parse_optional_attr_dict()
        return cls.create(
            operands=[*([] if count is None else [count]), *carried],
            result_types=[IndexType(), *(c.type for c in carried)],
            regions=[condition, body],
            attributes=attributes,
            properties={
                "operandSegmentSizes": DenseArrayBase.from_list(
                    builtin.i32, [0 if count is None else 1, len(carried)]
                )
            },
        )


@irdl_op_definition
class IndexOp(IRDLOperation):
    """A subscript made ready for memory: negative ones wrapped, out of range raises IndexError.

    `%j = array.index %i, %n axis 0 sign "nonneg"`

    `sign` says what is known of `%i`: "nonneg" (`%j` is `%i`), "negative" (`%j` is `%i + %n`) or
    "any". With `unchecked` the range is known, or the user took the risk. `message` is what the
    IndexError says where it is not NumPy's words.
    """

    name = "array.index"
    index = operand_def(IndexType)
    extent = operand_def(IndexType)
    axis = prop_def(IntegerAttr)
    sign = prop_def(StringAttr)
    unchecked = opt_prop_def(UnitAttr)
    message = opt_prop_def(StringAttr)
    result = result_def(IndexType)
    assembly_format = (
        "$index `,` $extent `axis` $axis `sign` $sign (`unchecked` $unchecked^)?"
        " (`message` $message^)? attr-dict"
    )

    def __init__(
        self,
        index: SSAValue,
        extent: SSAValue,
        axis: int,
        sign: str,
        *,
        unchecked: bool = False,
        message: str | None = None,
    ) -> None:
        super().__init__(
            operands=[index, extent],
            properties={
                "axis": IntegerAttr(axis, i64),
                "sign": StringAttr(sign),
                **({"unchecked": UnitAttr()} if unchecked else {}),
                **({} if message is None else {"message": StringAttr(message)}),
            },
            result_types=[IndexType()],
        )


@irdl_op_definition
class RaiseIfOp(IRDLOperation):
    """Raise a Python exception when the condition holds.

    `array.raise_if %c, "ValueError", "could not broadcast ({},) into ({},)" (%n, %m : index, index)`

    The message is a format string for the operands. An effect, ordered with memory.
    """

    name = "array.raise_if"
    condition = operand_def(i1)
    operands_shown = var_operand_def()
    exception = prop_def(StringAttr)
    message = prop_def(StringAttr)
    assembly_format = (
        "$condition `,` $exception `,` $message (`(` $operands_shown^ `:` type($operands_shown) `)`)?"
        " attr-dict"
    )

    def __init__(
        self, condition: SSAValue, exception: str, message: str, shown: Sequence[SSAValue] = ()
    ) -> None:
        super().__init__(
            operands=[condition, list(shown)],
            properties={"exception": StringAttr(exception), "message": StringAttr(message)},
        )


@irdl_op_definition
class PrintOp(IRDLOperation):
    """Python's `print` of scalars and arrays. `format` holds one `{}` for each operand.

    One that `leaves` shows nothing: it hands over the values that an exception leaves of the caller's
    objects, which are put together in the way of this number.
    """

    name = "array.print"
    values = var_operand_def()
    format = prop_def(StringAttr)
    leaves = opt_prop_def(IntegerAttr)
    assembly_format = "$format (`leaves` $leaves^)? (`(` $values^ `:` type($values) `)`)? attr-dict"

    def __init__(
        self, format_: str, values: Sequence[SSAValue], *, leaves: int | None = None
    ) -> None:
        properties: dict[str, Attribute] = {"format": StringAttr(format_)}
        if leaves is not None:
            properties["leaves"] = IntegerAttr(leaves, i64)
        super().__init__(operands=[list(values)], properties=properties)


@irdl_op_definition
class MatmulOp(IRDLOperation):
    """`c = a @ b` (or `c += a @ b` with `accumulate`) for a (n, k), b (k, m), c (n, m), one dtype.

    Vectors come as matrices with a unit dimension. `c` overlaps neither `a` nor `b`.
    """

    name = "array.matmul"
    a = operand_def(MemRefType)
    b = operand_def(MemRefType)
    c = operand_def(MemRefType)
    accumulate = opt_prop_def(UnitAttr)
    assembly_format = (
        "$a `,` $b `into` $c (`accumulate` $accumulate^)? attr-dict"
        " `:` type($a) `,` type($b) `,` type($c)"
    )

    def __init__(self, a: SSAValue, b: SSAValue, c: SSAValue, *, accumulate: bool = False) -> None:
        super().__init__(
            operands=[a, b, c], properties={"accumulate": UnitAttr()} if accumulate else {}
        )


@irdl_op_definition
class CastOp(IRDLOperation):
    """A dtype conversion as NumPy's `astype` does it: `%y = array.cast %x : index -> f64`.

    With `unsigned` the integer that it reads (or makes of a float) has no sign.
    """

    name = "array.cast"
    value = operand_def()
    result = result_def()
    unsigned = opt_prop_def(UnitAttr)
    traits = traits_def(Pure())
    assembly_format = (
        "$value (`unsigned` $unsigned^)? attr-dict `:` type($value) `->` type($result)"
    )

    def __init__(self, value: SSAValue, to: Attribute, *, unsigned: bool = False) -> None:
        super().__init__(
            operands=[value],
            properties={"unsigned": UnitAttr()} if unsigned else {},
            result_types=[to],
        )


class BinaryScalarOp(IRDLOperation):
    """Two scalars of one type to one of that type."""

    T: ClassVar = VarConstraint("T", AnyAttr())
    lhs = operand_def(T)
    rhs = operand_def(T)
    result = result_def(T)
    traits = traits_def(Pure())
    assembly_format = "$lhs `,` $rhs attr-dict `:` type($result)"

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[lhs.type])


@irdl_op_definition
class FloorDivOp(BinaryScalarOp):
    """`lhs // rhs` as NumPy computes it, for any dtype; an integer divided by zero is 0."""

    name = "array.floordiv"


@irdl_op_definition
class FloorModOp(BinaryScalarOp):
    """`lhs % rhs` with the sign of the divisor, as NumPy computes it; an integer modulo zero is 0."""

    name = "array.floormod"


class CheckedIntOp(IRDLOperation):
    """Exact arithmetic on Python ints; raises OverflowError where 64 bits do not suffice."""

    lhs = operand_def(IndexType)
    rhs = operand_def(IndexType)
    result = result_def(IndexType)
    assembly_format = "$lhs `,` $rhs attr-dict"

    def __init__(self, lhs: SSAValue, rhs: SSAValue) -> None:
        super().__init__(operands=[lhs, rhs], result_types=[IndexType()])


@irdl_op_definition
class CheckedAddOp(CheckedIntOp):
    """`lhs + rhs`, or OverflowError."""

    name = "array.checked_add"


@irdl_op_definition
class CheckedSubOp(CheckedIntOp):
    """`lhs - rhs`, or OverflowError."""

    name = "array.checked_sub"


@irdl_op_definition
class CheckedMulOp(CheckedIntOp):
    """`lhs * rhs`, or OverflowError."""

    name = "array.checked_mul"


def is_operation_that_may_raise(op: Operation) -> bool:
    """True when the op itself (not what it contains) may leave the function with an exception."""
    if not is_kind(type(op), IndexOp, RaiseIfOp, CheckedIntOp):
        return False
    return not isinstance(op, IndexOp) or op.unchecked is None


Array = Dialect(
    "array",
    [
        AllocOp,
        ViewOp,
        CollapseOp,
        StrideOp,
        OverlapOp,
        YieldOp,
        MapOp,
        ConditionOp,
        LoopOp,
        IndexOp,
        RaiseIfOp,
        PrintOp,
        MatmulOp,
        CastOp,
        FloorDivOp,
        FloorModOp,
        CheckedAddOp,
        CheckedSubOp,
        CheckedMulOp,
    ],
)
