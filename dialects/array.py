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

Views are in `array_views`, loops in `array_loops`; all names are here.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import ClassVar

from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
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
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from .array_loops import ConditionOp, IndexOp, LoopOp, YieldOp
from .array_views import (
    CollapseOp,
    OverlapOp,
    StrideOp,
    ViewOp,
    constant_value,
    contiguous,
)
from .array_views import collapsed_type as collapsed_type
from .array_views import index_number as index_number
from .array_views import is_by_columns as is_by_columns
from .array_views import is_contiguous as is_contiguous
from .array_views import strided as strided
from .array_views import strides_of as strides_of
from .array_views import view_type as view_type
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
"""The attribute of a store, or of the view that is stored to, whose elements were not touched before since
the memory was made: what is appended to a list that only grows."""

ZERO = "zero"
"""The attribute of such a shadow: it is found and left full of zeros."""

CLEARED = "cleared"
"""The attribute of the shadow of a shadow: it is filled with zeros where it is made, and left as it is."""

READS_FIRST = "reads_first"
"""The attribute of an `array.map` with NumPy's meaning of an assignment: every element is read before any is
written, so inputs may overlap the output. `resolve-overlap` takes it away."""

OWN_ORDER = "own_order"
"""The attribute of an `array.map` that also does what another one did: its sums are added up as in a map that
does nothing else."""

CLAIMED = "claimed"
"""The attribute of a loop over `prange`: the program says that its iterations are independent."""

EXCLUSIVE = "exclusive"
"""The attribute of the adjoint of such a loop, and of the accesses in it to what one iteration stored to."""

OWN_BYTES = "own_bytes"
"""The attribute of a loop whose iterations share no byte that they save."""

RAISES = "raises"
"""The attribute of an `scf.if` whose first branch always ends with an exception, and whose other is empty."""

OF_NUMBERS = "of_numbers"
"""The attribute of the reverse of a loop of numbers, of which a step within a budget is a whole block."""

SHORTENED = "shortened"
"""The attribute of an `scf.if` whose first branch is nearly always taken. Its second computes the value,
too, as the program does: by so many ops, one after the other."""

IN_ORDER = "in_order"
"""The attribute of a product that is added to a matrix as its terms would be, one after the other."""

SMALL = "small"
"""The attribute of a loop that is compiled to be small, not fast.

It has few iterations, runs where not all checks in it pass, or holds tiles, which are fast as they are.
"""


STACK = "stack"
"""The attribute of an `array.alloc` of a small constant size whose memory is the stack's."""


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


AnyView = ViewOp | CollapseOp
"""The ops whose result is another name for elements of their source."""


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
    nearest. It reads nothing that it writes. Of an empty window there are no points. With `fresh [1, 1]`
    the points p where p - (1, 1) is in the window store what the others add. With an `origin(%i, %j)` all
    that is said of p is said of p + (i, j): the map is a part of a larger one (`fuse-rows`).
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


ENTRY_EQUAL = "mutad: extents differ that the entry has found equal"
"""The message of a check that the entry of the function has made of its arguments: it holds anywhere."""
IN_ITERATIONS = "in_iterations"
"""The attribute of such a check that holds in the iterations of the loops around it, not beside them."""


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
