"""Views of arrays, and what their layouts are: the ops of `array` that touch no element."""

from collections.abc import Callable, Sequence
from functools import cache, lru_cache

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    DenseArrayBase,
    IndexType,
    IntAttr,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StridedLayoutAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException


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
    return _strided(element, tuple(shape), tuple(strides), space or NoneAttr())


@cache
def _strided(
    element: Attribute, shape: tuple[int, ...], strides: tuple[int | None, ...], space: Attribute
) -> MemRefType[Attribute]:
    return MemRefType(element, shape, StridedLayoutAttr(strides, 0), space)


@cache
def contiguous(element: Attribute, shape: tuple[int, ...]) -> MemRefType[Attribute]:
    """The memref type of an array in C order, one object for all ops that ask."""
    return MemRefType(element, shape)


@cache
def numbers(of: tuple[int, ...]) -> DenseArrayBase:
    """Numbers as an attribute, one object for all ops that ask."""
    return DenseArrayBase.from_list(i64, of)


@lru_cache(maxsize=1024, typed=True)
def index_number(value: int) -> IntegerAttr[IndexType]:
    """What an index constant is, one object for all that are."""
    return IntegerAttr(value, IndexType())


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
            properties={"dims": numbers(tuple(dims))},
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
