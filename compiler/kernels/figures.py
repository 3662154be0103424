"""What can be said of kernels without a device: launches, bytes, shared memory, atomic additions.

Bytes are those of one point: what a thread loads from and stores to the device's memory when it runs its
code once, each loop in it taken once. The *least* is what has to go through memory if caches keep what
neighbours read as well: each array that is read, and each that is written, once. What only the points at the
edges of an array load is not counted. The bound of a kernel's time is the least times the points over the
bandwidth, or its operations over what the device does of them: where there are more of these for each byte
than the device has (`intensity`), they are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import ArrayAttr, FixedBitwidthType, IndexType, MemRefType, ModuleOp
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ad, array, device
from ...dialects.within import every_op, ops_of_kind
from ..analysis.alias import enclosing_loops
from ..analysis.carried_cells import is_outside
from ..analysis.views import strip_views
from ..diagnostics import line_of

ARITHMETIC = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, ad.MulOp, ad.DivOp)


@dataclass(frozen=True)
class KernelFigures:
    """One kernel of a function."""

    name: str
    line: int
    launches: tuple[int, ...]
    """For each launch the line of the innermost of the host's loops around it; 0 without."""
    in_branch: tuple[bool, ...]
    """Whether a condition decides of it, such as how many iterations are to be sorted."""
    in_sort: tuple[bool, ...]
    """Whether it is one in each pass of a sort, about log4 of what is sorted."""
    loads: int
    stores: int
    least: int
    """Bytes a point."""
    shared: int
    """Bytes of shared memory a block."""
    intensity: float
    """Arithmetic operations on floating-point numbers for each byte of them, where most of the time goes."""
    atomics: int
    """Ops by which threads add atomically."""
    block_atomics: int
    """Those by which blocks do, once their threads have met."""
    library: bool
    """A product of matrices, which goes to cuBLAS where that is installed."""
    ordered: bool
    """Its threads go through all iterations, in order, since they meet."""
    serial: bool
    """One thread runs a loop whose iterations need each other: slow where the loop is long."""

    @property
    def launched(self) -> str:
        """How often it is launched."""
        counts = Counter(zip(self.launches, self.in_branch, self.in_sort, strict=True))
        shown: list[str] = []
        for (line, in_branch, in_sort), n in sorted(
            counts.items(), key=lambda item: item[0][0] > 0
        ):
            each = [" a pass of a sort"] * in_sort + [f" an iteration of line {line}"] * (line > 0)
            shown.append(f"{'up to ' * in_branch}{n}{', in'.join(each)}")
        return " + ".join(shown)

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def figures_of(module: ModuleOp) -> tuple[KernelFigures, ...]:
    """The kernels of an outlined module, in the order of their first launch."""
    functions = [f for f in module.ops if isinstance(f, func.FuncOp)]
    kernels = {f.sym_name.data: f for f in functions if device.is_kernel(f)}
    launches: dict[str, list[device.LaunchOp]] = {}
    for function in functions:
        for launch in ops_of_kind(function, device.LaunchOp):
            launches.setdefault(launch.target, []).append(launch)
    return tuple(figures(kernels[name], where) for name, where in launches.items())


def around(launch: Operation) -> tuple[int, bool, bool]:
    """Of a launch: the line of the loop that it is in, whether it is in a branch there, and in a sort."""
    found = enclosing_loops(launch)
    loops = [loop for loop in found if device.SORT not in loop.attributes]
    parent, last = launch.parent_op(), loops[-1] if loops else None
    in_branch = False
    while parent is not None and parent is not last:
        in_branch |= isinstance(parent, scf.IfOp)
        parent = parent.parent_op()
    return line(last) if last is not None else 0, in_branch, len(loops) < len(found)


def line(op: Operation) -> int:
    at = line_of(op)
    return at[1] if at is not None else 0


def figures(kernel: func.FuncOp, launches: Sequence[device.LaunchOp]) -> KernelFigures:
    loads, stores = list(loaded(kernel)), list(stored(kernel))
    given = zip(kernel.body.block.args, launches[0].values, strict=True)
    whole: dict[SSAValue, SSAValue] = {own: strip_views(value) for own, value in given}
    read = {whole.get(own := strip_views(m), own): size_of(m) for m in loads}
    written = {whole.get(own := strip_views(m), own): size_of(m) for m in stores}
    shared = [
        op.memref.type
        for op in ops_of_kind(kernel, memref.AllocaOp)
        if device.space_of(op.memref.type) == device.SHARED
    ]
    atomic = ops_of_kind(kernel, device.AtomicAddOp)
    lines, in_branch, in_sort = zip(*map(around, launches), strict=True)
    return KernelFigures(
        kernel.sym_name.data,
        line(kernel),
        lines,
        in_branch,
        in_sort,
        sum(map(size_of, loads)),
        sum(map(size_of, stores)),
        sum(read.values()) + sum(written.values()),
        sum(t.get_shape()[0] * bytes_of(t.element_type) for t in shared),
        intensity(kernel),
        sum(device.OF_BLOCK not in op.attributes for op in atomic),
        sum(device.OF_BLOCK in op.attributes for op in atomic),
        any(device.PRODUCT in launch.attributes for launch in launches),
        device.IN_ORDER in kernel.attributes,
        device.ONE_THREAD in kernel.attributes,
    )


def loaded(kernel: func.FuncOp) -> Iterator[SSAValue]:
    """The array of each element that a thread loads, the same element once."""
    seen: set[tuple[SSAValue, ...]] = set()
    for op in ops_of_kind(kernel, memref.LoadOp):
        place = op.memref, *op.indices
        if is_global(op.memref) and place not in seen and device.EDGE not in op.attributes:
            seen.add(place)
            yield op.memref


def stored(kernel: func.FuncOp) -> Iterator[SSAValue]:
    for op in every_op(kernel):
        if isinstance(op, memref.StoreOp) and is_global(op.memref):
            yield op.memref
        elif isinstance(op, device.AtomicAddOp):
            yield op.target


def intensity(kernel: func.FuncOp) -> float:
    """Operations a byte in the loop whose trips are not known and that is deepest; without, of a thread."""
    loops = [op for op in ops_of_kind(kernel, array.LoopOp) if trips(op) is None]
    within = max(loops, key=lambda loop: len(enclosing_loops(loop)), default=kernel)
    inside = [op for op in every_op(kernel) if within.is_ancestor(op)]
    operations = sum(times(op, within) for op in inside if isinstance(op, ARITHMETIC))
    loads = {(op.memref, *op.indices): op for op in inside if isinstance(op, memref.LoadOp)}
    stores = [op for op in inside if isinstance(op, memref.StoreOp)]
    moving = [op for op in (*loads.values(), *stores) if again(kernel, op, within)]
    touched = [(op, op.memref) for op in moving]
    touched += [(op, op.target) for op in inside if isinstance(op, device.AtomicAddOp)]
    moved = sum(times(op, within) * size_of(m) for op, m in touched if is_global(m))
    return round(operations / moved, 2) if moved else 0.0


def again(kernel: func.FuncOp, op: memref.LoadOp | memref.StoreOp, within: Operation) -> bool:
    """Whether an element is not that of the iteration before, which a thread has in a register."""
    around = enclosing_loops(op)
    if within is kernel or not around or kernel.attributes.get("overlaps", NO_PAIRS) != NO_PAIRS:
        return True
    return not all(is_outside(v, around[-1]) for v in (op.memref, *op.indices))


NO_PAIRS = ArrayAttr[Attribute]([])


def times(op: Operation, within: Operation) -> int:
    """How often an op runs while what it is within runs once, as far as that is known."""
    found = 1
    for loop in enclosing_loops(op):
        if loop is not within and within.is_ancestor(loop):
            found *= trips(loop) or 1
    return found


def trips(loop: array.LoopOp) -> int | None:
    if device.TILE in loop.attributes:  # but for the last tile
        return device.THREADS
    return None if loop.count is None else array.constant_value(loop.count)


def is_global(m: SSAValue) -> bool:
    return not isinstance(m.owner, memref.AllocaOp | array.AllocOp)


def size_of(m: SSAValue) -> int:
    assert isinstance(m.type, MemRefType)
    return bytes_of(m.type.element_type)


def bytes_of(element: Attribute) -> int:
    if isinstance(element, IndexType):
        return 8
    assert isinstance(element, FixedBitwidthType)
    return max(1, element.bitwidth // 8)


def table(kernels: Sequence[KernelFigures]) -> list[str]:
    """Lines of text: a row each."""
    rows = [
        (
            "kernel",
            "line",
            "launches",
            "loads",
            "stores",
            "least",
            "shared",
            "flop/byte",
            "threads meet by",
        )
    ]
    rows += [
        (
            k.name,
            str(k.line),
            k.launched,
            str(k.loads),
            str(k.stores),
            str(k.least),
            str(k.shared),
            f"{k.intensity:g}",
            meeting(k),
        )
        for k in kernels
    ]
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = (
        "  ".join(cell.ljust(w) for cell, w in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    return ["kernels (bytes a point; shared memory a block)", *lines]


def meeting(k: KernelFigures) -> str:
    """How threads of a kernel come to elements of each other's."""
    counts = ((k.atomics, ""), (k.block_atomics, " a block"))
    if k.atomics or k.block_atomics:
        shown = (f"{n} atomic addition{'s' * (n > 1)}{each}" for n, each in counts if n)
        return ", ".join(shown)
    if k.ordered:
        return "owners, in order"
    if k.serial:
        return "one thread"
    return ("shared memory" + ", or cuBLAS" * k.library) if k.shared else ""
