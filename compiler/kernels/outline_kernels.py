"""Take out of a function what a device runs: kernels. The host keeps scalars, loops, branches and launches.

Runs last: kernels gather by now, and temporaries that are not needed do not exist. What becomes a kernel:

- `array.map` (`map_kernels`), to one element also (`reductions`), and `array.matmul` (`products`);
- loops over elements whose iterations are independent (`nest_kernels`), or else in one thread
  (`serial_kernels`).

Arrays that a kernel touches, and all that are given or returned, are in the memory of the device; which that
is, their types say from here on. Single elements of them the host fetches and puts (boundary values). What
has no place on a device is refused, by line.

Before::

    func.func @f(%u : memref<?xf64>, %x : f64) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %u, %c0 : memref<?xf64>
      array.map(%n) outs(%u : memref<?xf64>) kinds ["store"] {
        array.yield %x : f64
      }
      func.return
    }

After::

    !u = memref<?xf64, 1 : i64>
    func.func @f(%u : !u, %x : f64) {
      %c0 = arith.constant 0 : index
      %n = memref.dim %u, %c0 : !u
      %0 = arith.constant 0 : index
      %1 = arith.maxsi %n, %0 : index
      %2 = arith.constant 255 : index
      %3 = arith.addi %1, %2 : index
      %4 = arith.constant 256 : index
      %5 = arith.divui %3, %4 : index
      device.launch @f_0 blocks(%5) (%n, %x, %u : index, f64, !u)
      func.return
    }
    func.func private @f_0(%n : index, %x : f64, %u : !u)
        attributes {kernel, overlaps = [], read_only = array<i64>} {
      %c256 = arith.constant 256 : index
      %thread = device.thread
      %block = device.block
      %first = arith.muli %block, %c256 : index
      %i = arith.addi %first, %thread : index
      %inside = arith.cmpi slt, %i, %n : index
      scf.if %inside {
        memref.store %x, %u[%i] : !u
      }
      func.return
    }
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FunctionType, MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.carried_cells import Role, cell_of
from ..analysis.dependence import Dependence
from ..analysis.effects import is_private, mark_overlaps, sharing
from ..analysis.independence import Addition, Independence, Independent
from ..analysis.views import strip_views
from ..diagnostics import refusal
from . import map_kernels, nest_kernels, reductions, updates
from .additions_to_elements import make_local
from .gathered_sums import GatheredSum
from .kernel import Kernel, Writer, blocks, describe, element_of, essence
from .lanes import refuse_lanes
from .map_kernels import Form, MapKernel, form_of
from .nest_kernels import NestKernel
from .ordered_kernels import OrderedKernel
from .placeless import is_raising, refuse_placeless
from .placement import Placement, agree, names_in, returned
from .products import ProductKernel
from .reductions import Term
from .serial_kernels import SerialKernel, serial_loops
from .sorted_kernels import Ways, is_sortable, run_sorted, sorted_before
from .updates import Ordered, Sharing, Split

ADDED_UP = Role("reduction", kind="add")


@dataclass(frozen=True)
class Sum:
    """What threads combine, and the variable or the element that the result is combined with."""

    kind: str
    target: SSAValue


@dataclass(frozen=True)
class OutlineKernels(ModulePass):
    """Outline what a device runs into kernels."""

    name = "outline-kernels"

    deterministic: bool = False
    """Nothing is added atomically."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        functions = [f for f in op.ops if isinstance(f, func.FuncOp)]
        for function in functions:
            if is_private(function):
                raise refusal(
                    function,
                    "this function is recursive: a device runs no such function",
                    "write it as a loop, or compile it for the CPU",
                )
        outliners = [Outliner(op, f, deterministic=self.deterministic) for f in functions]
        agree([one.placement for one in outliners])
        while any(one.take_serial() for one in outliners):
            agree([one.placement for one in outliners])
        for one in outliners:
            one.run()


class Outliner:
    """Makes the kernels of one function."""

    def __init__(self, module: ModuleOp, function: func.FuncOp, *, deterministic: bool) -> None:
        self.module, self.function = module, function
        self.alias = AliasAnalysis(function)
        self.dependence = Dependence(function, self.alias)
        independence = Independence(function, self.dependence)
        self.sharing = Sharing(independence, deterministic=deterministic)
        self.kernels: list[Operation] = []
        """What becomes a kernel, or several."""
        self.serial: set[Operation] = set()
        """Those of them that one thread runs."""
        self.sorted_before: dict[array.LoopOp, array.LoopOp] = {}
        self.made: dict[Hashable, func.FuncOp] = {}
        """Kernels by what they do: fills and copies are many, and one function."""
        refuse_lanes(function)
        self.find(function.body.block, raising=False)
        self.placement = Placement(function, self.alias, self.kernels)

    def run(self) -> None:
        refuse_placeless(self.function, self.kernels, self.serial, self.placement, self.sharing)
        loops = [k for k in self.kernels if isinstance(k, array.LoopOp) and k not in self.serial]
        self.sorted_before = sorted_before(loops, self.sharing)  # launches hide what is written
        for op in self.kernels:
            self.outline(op)
        self.reach()
        self.name_spaces()

    # What becomes a kernel.

    def find(self, block: Block, *, raising: bool) -> None:
        """Loops that end in an exception stay on the host: what is stored before is exact."""
        for op in block.ops:
            nest = not raising and isinstance(op, array.LoopOp) and self.is_nest(op)
            if nest or isinstance(op, array.MapOp | array.MatmulOp):
                self.kernels.append(op)
            else:
                ends = raising or array.RAISES in op.attributes
                for inner in (b for region in op.regions for b in region.blocks):
                    self.find(inner, raising=ends)

    def is_nest(self, loop: array.LoopOp) -> bool:
        if nest_kernels.whole_arrays_in(loop):
            return False
        told = self.sharing.of(loop)
        if not nest_kernels.leaves_something(loop, told):
            return False
        return nest_kernels.obstacle(loop, told, self.sharing) is None

    def take_serial(self) -> bool:
        """Have one thread run what is left of loops over elements, where a thread can."""
        inside = {inner for op in self.kernels for inner in op.walk()}
        elements = [
            op
            for op in every_op(self.function)
            if isinstance(op, memref.LoadOp | memref.StoreOp) and op not in inside
            if self.is_device(op.memref) and not is_raising(op)
        ]
        found = serial_loops(elements, self.kernels)
        self.kernels += found
        self.serial.update(found)
        if found:
            self.placement = Placement(self.function, self.alias, self.kernels)
        return bool(found)

    def is_device(self, memref: SSAValue) -> bool:
        return self.placement.has(memref)

    def variable(self, memref: SSAValue) -> SSAValue | None:
        """The host's variable that the memref is (a view of)."""
        cell = cell_of(memref)
        return None if cell is None or self.is_device(cell) else cell

    # Kernels.

    def outline(self, op: Operation) -> None:
        match op:
            case array.MapOp():
                for one in map_kernels.split(op, self.dependence):
                    self.outline_map(one)
            case array.MatmulOp():
                self.outline_matmul(op)
            case array.LoopOp() if op in self.serial:
                self.outline_serial(op)
            case array.LoopOp():
                self.outline_nest(op)
            case _:
                raise AssertionError(op.name)

    def host(self, op: Operation) -> Writer:
        """Writes before an op."""
        return Writer(lambda new: Rewriter.insert_op(new, InsertPoint.before(op)), op.location)

    def kernel(self, op: Operation) -> Kernel:
        return Kernel(op.location)

    def buffer(self, host: Writer, count: SSAValue, element: Attribute) -> SSAValue:
        """Memory of the device, of its own."""
        found = host.emit(array.AllocOp([count], element))
        self.placement.roots.add(found)
        return found

    def launch(
        self, host: Writer, kernel: Kernel, count: SSAValue, *, told: str | None = None
    ) -> device.LaunchOp:
        """Add a kernel to the module, and its launch to the function; `told`: an attribute of it."""
        made = kernel.finish(f"{self.function.sym_name.data}_{len(self.made)}")
        if told is not None:
            made.attributes[told] = UnitAttr()
        pairs = list(sharing(kernel.given, self.alias))
        mark_overlaps(made, pairs)
        describe(made, pairs)
        known = self.made.setdefault(essence(made), made)
        if known is made:
            self.module.body.block.add_op(made)
        launch = device.LaunchOp(known.sym_name.data, count, kernel.given)
        host.add(launch)
        return launch

    def outline_map(self, op: array.MapOp) -> None:
        host, form = self.host(op), form_of(op)
        inputs: dict[SSAValue, SSAValue] = {}
        for m in op.ins:
            if (cell := self.variable(m)) is not None and m not in inputs:
                inputs[m] = host.load(cell)
        if form.is_total:
            self.reduce(op, form, inputs, host)
        else:
            after = self.cells_as_arrays(op, host)
            kernel = self.kernel(op)
            MapKernel(kernel, op, form, inputs).points()
            count = blocks(host, [op.extents[a] for a in form.shared])
            self.launch(host, kernel, count if op.gathers is None else any_of(host, op, count))
            for one in after:
                one()
        Rewriter.erase_op(op)

    def cells_as_arrays(self, op: array.MapOp, host: Writer) -> list[Callable[[], None]]:
        """Variables that a map of one point writes go to the device and back; what is done after it."""
        after: list[Callable[[], None]] = []
        offset = len(op.extents) + len(op.ins)
        for k, m in enumerate(list(op.outs)):
            cell = self.variable(m)
            if cell is None:
                continue
            zero = host.index(0)
            buffer = self.buffer(host, host.index(1), element_of(cell))
            host.add(device.PutOp(host.load(cell), buffer, [zero]))
            rank, extents = len(op.extents), list(op.extents)
            view = array.ViewOp(buffer, [zero], [-1] * rank, extents, [zero] * rank)
            op.operands[offset + k] = host.emit(view)

            def back(buffer: SSAValue = buffer, cell: SSAValue = cell) -> None:
                host.store(host.emit(device.FetchOp(buffer, [host.index(0)])), cell)

            after.append(back)
        return after

    def reduce(
        self, op: array.MapOp, form: Form, inputs: dict[SSAValue, SSAValue], host: Writer
    ) -> None:
        """A map that leaves one element of all points, for each output that adds up."""
        count = reductions.blocks_of(host, list(op.extents))
        kernel = self.kernel(op)
        writer = MapKernel(kernel, op, form, inputs)
        cells, partial = writer.begin(), dict[int, SSAValue]()
        extents = [writer.extents[a] for a in form.walked]
        first, step, trips = reductions.share(kernel, extents, kernel.value(count))
        with kernel.loop(trips) as k:
            number = kernel.sum(first, kernel.product(k, step))
            at = reductions.at_number(kernel, number, extents)
            writer.combine_point(dict(zip(form.walked, at, strict=True)), cells)
        terms = list[Term]()
        for k, cell in cells.items():
            partial[k] = self.buffer(host, count, element_of(cell))
            keep = reductions.keep_for_block(kernel, partial[k])
            terms.append(Term(op.out_kinds[k], kernel.load(cell), keep))
        reductions.meet(kernel, terms)
        self.launch(host, kernel, count)
        for k, m in partial.items():
            self.reduce_blocks(op, op.out_kinds[k], m, count, op.outs[k], host)

    def reduce_blocks(
        self,
        op: Operation,
        kind: str,
        partial: SSAValue,
        count: SSAValue,
        target: SSAValue,
        host: Writer,
    ) -> None:
        """One block combines what blocks have, with an element of an array or a variable."""
        kernel, cell = self.kernel(op), self.variable(target)
        mine = reductions.of_blocks(kernel, kind, partial, count)
        one, zero = host.index(1), host.index(0)
        if cell is not None:
            result = self.buffer(host, one, element_of(cell))
            keep = reductions.keep_for_block(kernel, result)
            reductions.meet(kernel, [Term(kind, mine, keep)])
            self.launch(host, kernel, one)
            new = host.emit(device.FetchOp(result, [zero]))
            host.store(host.combined(kind, host.load(cell), new), cell)
            return
        assert isinstance(target.type, MemRefType)
        first = [zero] * target.type.get_num_dims()  # there also where the sum is of no points
        element = host.emit(array.ViewOp(target, first, [], [], [])) if first else target
        into = kernel.value(element)

        def keep_there(value: SSAValue) -> None:
            kernel.store(kernel.combined(kind, kernel.load(into), value), into)

        reductions.meet(kernel, [Term(kind, mine, keep_there)])
        self.launch(host, kernel, one)

    def outline_matmul(self, op: array.MatmulOp) -> None:
        host, kernel = self.host(op), self.kernel(op)
        product = ProductKernel(kernel, host, op)
        count = product.write()
        launch = self.launch(host, kernel, count)
        if (told := product.for_library()) is not None:
            launch.attributes[device.PRODUCT] = told
        Rewriter.erase_op(op)

    def outline_nest(self, loop: array.LoopOp) -> None:
        told = self.sharing.of(loop)
        assert told is not None
        host, kernel = self.host(loop), self.kernel(loop)
        if isinstance(told, Ordered):
            self.outline_ordered(loop, told, host)
            return
        split = self.sharing.split(loop, told)
        for one, inner in split.gathered:
            self.gather(loop, inner, told, one)
        atomic = {strip_views(one.store.memref) for one in split.atomic}
        loops = nest_kernels.perfect(loop, atomic, self.sharing)
        sums = self.meet_in_elements(split, host)
        if split.gathered and not nest_kernels.has_effect(loop, told):
            loop.trips.replace_all_uses_with(host.at_least_zero(trips_of(loop)))
            Rewriter.erase_op(loop)
            return
        nest = NestKernel(kernel, host, loops, told, self.buffer)
        for cell in sums:
            nest.own_cell(cell, ADDED_UP)
        nest.write()
        for cell, role in told.cells.items():
            if role.name == "reduction":
                assert role.kind is not None
                sums[cell] = Sum(role.kind, cell)
        count, partial = blocks(host, nest.counts), dict[SSAValue, SSAValue]()
        terms = list[Term]()
        for cell, one in sums.items():
            partial[cell] = self.buffer(host, count, element_of(cell))
            keep = reductions.keep_for_block(kernel, partial[cell])
            terms.append(Term(one.kind, kernel.load(kernel.values[cell]), keep))
        if terms:
            reductions.meet(kernel, terms)
        self.launch(host, kernel, count)
        for cell, one in sums.items():
            self.reduce_blocks(loop, one.kind, partial[cell], count, one.target, host)
        nest.take_over()
        loop.trips.replace_all_uses_with(nest.counts[0])
        Rewriter.erase_op(loop)

    def outline_ordered(self, loop: array.LoopOp, told: Ordered, host: Writer) -> None:
        """Few iterations all threads go through; many are sorted."""
        trips = host.at_least_zero(trips_of(loop))

        def all_in_all() -> None:
            kernel = self.kernel(loop)
            ordered = OrderedKernel(kernel, host, told)
            ordered.write()
            self.launch(host, kernel, ordered.count, told=device.IN_ORDER)

        if is_sortable(told):
            place = self.sorted_before[loop]
            ways = Ways(self.host(place), host, self.buffer, self.launch_told)
            run_sorted(ways, told, all_in_all, guarded=place is not loop)
        else:
            all_in_all()
        loop.trips.replace_all_uses_with(trips)
        Rewriter.erase_op(loop)

    def launch_told(self, host: Writer, kernel: Kernel, count: SSAValue, told: str | None) -> None:
        self.launch(host, kernel, count, told=told)

    def outline_serial(self, loop: array.LoopOp) -> None:
        host, kernel = self.host(loop), self.kernel(loop)
        serial = SerialKernel(kernel, host, loop, self.is_device, self.buffer)
        serial.write()
        self.launch(host, kernel, host.index(1), told=device.ONE_THREAD)
        serial.take_over()
        Rewriter.erase_op(loop)

    def gather(
        self, loop: array.LoopOp, inner: array.LoopOp, told: Independent, one: Addition
    ) -> None:
        """A sum that the inner loop's iterations own leaves the nest, for a kernel of its own."""
        host, kernel = self.host(loop), self.kernel(one.store)
        sum_ = GatheredSum(kernel, host, told, (loop, inner), one)
        sum_.write()
        self.launch(host, kernel, sum_.blocks)
        for op in (one.store, *reversed(one.totals), one.load):
            Rewriter.erase_op(op)

    def meet_in_elements(self, split: Split, host: Writer) -> dict[SSAValue, Sum]:
        """What iterations add to elements that others add to as well is atomic, or a sum in a variable."""
        sums: dict[SSAValue, Sum] = {}
        for one in split.atomic:
            updates.make_atomic(one)
        for (target, indices), found in split.uniform.items():
            cell = host.cell(element_of(target))
            sums[cell] = Sum("add", host.emit(array.ViewOp(target, list(indices), [], [], [])))
            for one in found:
                make_local(one, cell)
        return sums

    # What the host still touches, and where memory is.

    def reach(self) -> None:
        """The host fetches and puts elements of the device's memory."""
        for op in every_op(self.function):
            if isinstance(op, memref.LoadOp) and self.is_device(op.memref):
                Rewriter.replace_op(op, like(op, device.FetchOp(op.memref, list(op.indices))))
            elif isinstance(op, memref.StoreOp) and self.is_device(op.memref):
                put = device.PutOp(op.value, op.memref, list(op.indices))
                Rewriter.replace_op(op, like(op, put), [])

    def name_spaces(self) -> None:
        """Types say where memory is."""
        for value in [v for v in names_in(self.function) if self.is_device(v)]:
            type_ = device.in_space(value.type, device.GLOBAL)
            Rewriter.replace_value_with_new_type(value, type_)
        inputs = [a.type for a in self.function.body.block.args]
        outputs = [v.type for v in returned(self.function)]
        self.function.properties["function_type"] = FunctionType.from_lists(inputs, outputs)


def any_of(host: Writer, op: array.MapOp, count: SSAValue) -> SSAValue:
    """So many blocks, or none where the window is empty: then the map reaches beyond its array."""
    zero = host.index(0)
    there = host.all([host.less(zero, n) for n in op.window])
    return host.emit(arith.SelectOp(there, count, zero))


def trips_of(loop: array.LoopOp) -> SSAValue:
    assert loop.count is not None
    return loop.count


def like(op: Operation, new: Operation) -> Operation:
    """The new op, at the place of another."""
    new.location = op.location
    for old, result in zip(op.results, new.results, strict=True):
        result.name_hint = old.name_hint
    return new
