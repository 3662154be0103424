"""The `device` dialect: kernels, launches, and single elements that go between host and device.

A kernel is a private function with the attribute `kernel`. A launch runs it once for each thread of a number
of blocks; each block has `THREADS` of them. A thread knows its number, and that of its block, and nothing
else of the grid: index spaces of any rank are cut into blocks by arithmetic, so grids have one dimension.

Memory is where its memref's type says: 0 (no attribute) on the host, `GLOBAL` on the device, `SHARED` with
the threads of one block. Launches, copies and allocations happen in the order of the program (a stream).

Why not xDSL's `gpu` dialect: its ops have no syntax but the generic one, its copy takes no two memory spaces,
its grids have three dimensions, and its functions are none that analyses, the interpreter and the code
generator take.
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    IndexType,
    IntegerAttr,
    MemRefType,
    NoneAttr,
    StringAttr,
    SymbolRefAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure

THREADS = 256
"""Threads of a block."""

READ_ONLY = "read_only"
"""The attribute of a kernel that lists the arrays which nothing writes while it runs."""

GLOBAL, SHARED = 1, 3
"""Memory spaces, as NVIDIA's assembler numbers them."""

KERNEL = "kernel"
"""The attribute of a function that is launched."""

SORT = "sort"
"""The attribute of a loop of the host whose iterations are passes of a sort."""

PRODUCT = "product"
"""The attribute of a launch that multiplies matrices, which a library may do as well: the places of `a`, `b`
and `c` among its values, and 1 where it adds to `c`."""

OF_BLOCK = "of_block"
"""The attribute of an atomic addition that one thread of a block does for all."""

EDGE = "edge"
"""On a load: only points at the edge of what a kernel goes over make it, of n x n points about n."""

TILE = "tile"
"""The attribute of a loop that goes through what the threads of a block have loaded for each other."""

IN_ORDER = "in_order"
"""The attribute of a kernel whose threads each go through all iterations of a loop."""

ONE_THREAD = "one_thread"
"""The attribute of a kernel that only its first thread does something in."""


def space_of(type_: Attribute) -> int:
    """Where the memory of a memref is; 0 is the host."""
    assert isinstance(type_, MemRefType)
    space = type_.memory_space
    return space.value.data if isinstance(space, IntegerAttr) else 0


def in_space(type_: Attribute, space: int) -> MemRefType[Attribute]:
    """The memref type in a memory space."""
    assert isinstance(type_, MemRefType)
    where = IntegerAttr(space, i64) if space else NoneAttr()
    return MemRefType(type_.element_type, type_.get_shape(), type_.layout, where)


@irdl_op_definition
class ThreadOp(IRDLOperation):
    """The number of this thread in its block, from 0: `%t = device.thread`."""

    name = "device.thread"
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class BlockOp(IRDLOperation):
    """The number of this thread's block, from 0: `%b = device.block`."""

    name = "device.block"
    result = result_def(IndexType)
    traits = traits_def(Pure())
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[IndexType()])


@irdl_op_definition
class BarrierOp(IRDLOperation):
    """All threads of a block come here before any goes on; stands in a kernel's own block only."""

    name = "device.barrier"
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__()


@irdl_op_definition
class LaunchOp(IRDLOperation):
    """Run a kernel: `device.launch @k blocks(%n) (%a, %x : memref<?xf64, 1 : i64>, f64)`.

    Blocks run in any order, also at once; with none nothing happens. What one thread writes, no thread of
    another block touches, and no other of its block but past a barrier; atomic additions of any threads may
    meet.
    """

    name = "device.launch"
    kernel = prop_def(SymbolRefAttr)
    blocks = operand_def(IndexType)
    values = var_operand_def()
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$kernel `blocks` `(` $blocks `)` `(` ($values^ `:` type($values))? `)` attr-dict"
    )

    def __init__(self, kernel: str, blocks: SSAValue, values: Sequence[SSAValue]) -> None:
        super().__init__(
            operands=[blocks, list(values)], properties={"kernel": SymbolRefAttr(kernel)}
        )

    @property
    def target(self) -> str:
        return self.kernel.root_reference.data


@irdl_op_definition
class IsReplayedOp(IRDLOperation):
    """Whether a loop of so many iterations is replayed as a graph: `%r = device.is_replayed %n period 2`.

    The runtime decides, from how often the loop launches the same: every `period` iterations.
    """

    name = "device.is_replayed"
    count = operand_def(IndexType)
    period = prop_def(IntegerAttr[I64])
    result = result_def(i1)
    assembly_format = "$count `period` $period attr-dict"

    def __init__(self, count: SSAValue, period: int) -> None:
        super().__init__(
            operands=[count], properties={"period": IntegerAttr(period, i64)}, result_types=[i1]
        )


@irdl_op_definition
class HasConditionsOp(IRDLOperation):
    """Whether the driver has graphs whose body the device repeats: `%able = device.has_conditions`."""

    name = "device.has_conditions"
    result = result_def(i1)
    assembly_format = "attr-dict"

    def __init__(self) -> None:
        super().__init__(result_types=[i1])


@irdl_op_definition
class WhileStepOp(IRDLOperation):
    """A step of a graph that repeats a body: `device.while_step "begin" %flag : memref<1xi64, 1 : i64>`.

    What is launched between "begin" and "body", and between "body" and "end", is captured. Both end with what
    leaves in `flag` whether the body runs (once more). At "end" the graph is launched.
    """

    name = "device.while_step"
    step = prop_def(StringAttr)
    flag = operand_def(MemRefType)
    assembly_format = "$step $flag attr-dict `:` type($flag)"

    def __init__(self, step: str, flag: SSAValue) -> None:
        super().__init__(operands=[flag], properties={"step": StringAttr(step)})


@irdl_op_definition
class FetchOp(IRDLOperation):
    """The host reads an element of device memory, and waits for it: `%x = device.fetch %a[%i] : T -> f64`."""

    name = "device.fetch"
    source = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    result = result_def()
    assembly_format = "$source `[` $indices `]` attr-dict `:` type($source) `->` type($result)"

    def __init__(self, source: SSAValue, indices: Sequence[SSAValue]) -> None:
        assert isinstance(source.type, MemRefType)
        super().__init__(operands=[source, list(indices)], result_types=[source.type.element_type])


@irdl_op_definition
class PutOp(IRDLOperation):
    """The host writes an element of device memory: `device.put %x, %a[%i] : f64, T`."""

    name = "device.put"
    value = operand_def()
    target = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    assembly_format = (
        "$value `,` $target `[` $indices `]` attr-dict `:` type($value) `,` type($target)"
    )

    def __init__(self, value: SSAValue, target: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[value, target, list(indices)])


@irdl_op_definition
class AtomicAddOp(IRDLOperation):
    """Add to an element at once, whoever else does so: `device.atomic_add %x, %a[%i] : f64, T`.

    The order in which threads come to an element is that of a run: sums of floating-point numbers may differ
    in their last bits from one run to the next.
    """

    name = "device.atomic_add"
    value = operand_def()
    target = operand_def(MemRefType)
    indices = var_operand_def(IndexType)
    assembly_format = (
        "$value `,` $target `[` $indices `]` attr-dict `:` type($value) `,` type($target)"
    )

    def __init__(self, value: SSAValue, target: SSAValue, indices: Sequence[SSAValue]) -> None:
        super().__init__(operands=[value, target, list(indices)])


def is_kernel(op: Operation) -> bool:
    """Whether an op is a function that is launched."""
    return KERNEL in op.attributes


Device = Dialect(
    "device",
    [
        ThreadOp,
        BlockOp,
        BarrierOp,
        LaunchOp,
        IsReplayedOp,
        HasConditionsOp,
        WhileStepOp,
        FetchOp,
        PutOp,
        AtomicAddOp,
    ],
)
