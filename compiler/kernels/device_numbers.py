"""Numbers that an iteration hands to the next in the device's memory, so that the host need not know them.

A loop that the device ends (`while_on_device`) has variables: a counter, the residual of the last iteration,
the step of a conjugate gradient. Here each is an array of one element, its *slot*. What is computed of them,
or of what kernels have left, is a kernel of one thread; kernels that were given such a number load it.

::

    %y = device.fetch %s[%c0]              device.launch @numbers(%s, %last, %x)    y = s[0]
    %old = memref.load %last[]                                                      x[0] = y * last[0]
    %x = arith.mulf %y, %old                                                        last[0] = y
    memref.store %y, %last[]               device.launch @g(%u, %x)                 f, with the number x[0]
    device.launch @f(%u, %x)

Consecutive numbers are one kernel. It is launched as late as may be: before a launch that needs one of them
and, where it reads or writes elements of arrays, before whatever else is launched.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from types import UnionType
from typing import cast

from xdsl.dialects import arith, func, math, memref, scf
from xdsl.dialects.builtin import (
    IntegerAttr,
    ModuleOp,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import array, device
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import mark_overlaps, sharing
from ..analysis.replays import COMPUTED, is_scalar, only_raises
from ..analysis.views import is_memref
from .count_on_device import on_device
from .kernel import Kernel, Writer, describe, essence

EXACT = (math.SqrtOp, math.AbsFOp, math.FloorOp, math.CeilOp, math.CopySignOp)
"""Functions that are the same to the bit on host and device."""

PLAIN: dict[type[Operation], type[Operation]] = {
    array.CheckedAddOp: arith.AddiOp,
    array.CheckedSubOp: arith.SubiOp,
}
"""What kernels count by; the pass has looked that it fits."""


class DeviceNumbers:
    """Writes the ops of a loop as launches."""

    def __init__(
        self,
        module: ModuleOp,
        function: func.FuncOp,
        host: Writer,
        moving: set[SSAValue],
        one: SSAValue,
        outside: Writer,
        *,
        flag: SSAValue | None = None,
        checked: bool = False,
    ) -> None:
        """`outside` writes where memory is allocated; `flag`: what conditions are left in; `checked`: checks
        stay where they are."""
        self.module, self.function, self.host = module, function, host
        self.moving, self.one, self.outside = moving, one, outside
        self.flag, self.checked = flag, checked
        self.kernels = {f.sym_name.data: f for f in module.ops if isinstance(f, func.FuncOp)}
        self.slots: dict[SSAValue, SSAValue] = {}
        """The device's memory of a number, or of a variable."""
        self.copies: dict[SSAValue, SSAValue] = {}
        """What the host has computed in place of values of the loop."""
        self.pending: list[Operation | SSAValue] = []
        """Numbers, in order; a counter stands for one iteration more."""
        self.unfinished: list[tuple[device.LaunchOp, func.FuncOp]] = []
        """Kernels that are not in the module yet."""

    # Memory.

    def reserve(self, value: SSAValue, element: Attribute) -> SSAValue:
        outside = self.outside
        slot = on_device(outside.emit(array.AllocOp([outside.index(1)], element)))
        slot.name_hint = value.name_hint
        self.slots[value] = slot
        return slot

    def reserve_for(self, block: Block) -> None:
        """Memory of the numbers that are not used in their own kernel alone."""
        part, parts = 0, dict[Operation, int]()
        for op in block.ops:
            if is_number(op, self.moving):
                parts[op] = part
            elif not (is_scalar(op) or isinstance(op, COMPUTED) or self.is_check(op)):
                part += 1
        for op in parts:
            for value in op.results:
                users = {above_in(block, use.operation) for use in value.uses}
                if any(user is not None and parts.get(user) != parts[op] for user in users):
                    self.reserve(value, value.type)

    # The host's side.

    def write(self, op: Operation) -> None:
        """What the loop does there, now or as late as may be."""
        if is_number(op, self.moving):
            self.pending.append(op)
        elif isinstance(op, COMPUTED) and not self.moving.isdisjoint(op.operands):
            pass  # whoever needs it computes it
        elif isinstance(op, device.LaunchOp):
            moved = not self.moving.isdisjoint(op.operands)
            if moved or self.touches_arrays():
                self.flush()
            if moved:
                self.relaunch(op)
            else:
                self.put(op)
        elif self.is_check(op):
            self.check(op)
        else:
            if not (is_scalar(op) or isinstance(op, COMPUTED)) and self.touches_arrays():
                self.flush()
            self.put(op)

    def is_check(self, op: Operation) -> bool:
        return self.checked and isinstance(op, array.RaiseIfOp | array.IndexOp)

    def check(self, op: Operation) -> None:
        """Where it raises, what is pending comes first."""
        puts = [k for k, one in enumerate(self.pending) if has_op(one, device.PutOp)]
        if puts and array.is_operation_that_may_raise(op):
            made = op.clone(self.copies)
            no = self.host.emit(arith.ConstantOp(IntegerAttr(0, i1)))
            wrong = self.host.emit(arith.CmpiOp(is_fine(made, self.host), no, "eq"))
            with self.host.where(wrong):
                self.launch_numbers(self.pending[: puts[-1] + 1])
            made.erase()
        self.put(op)

    def put(self, op: Operation) -> None:
        made = op.clone(self.copies)
        self.host.put(made)
        for inner in every_op(made):
            if isinstance(inner, array.IndexOp) and not self.checked:  # looked at before
                inner.properties["unchecked"] = UnitAttr()

    def touches_arrays(self) -> bool:
        return any(has_op(one, device.FetchOp | device.PutOp) for one in self.pending)

    def flush(self) -> None:
        """Launch what is pending, in one kernel."""
        if self.pending:
            self.launch_numbers(self.pending)
            self.pending = []

    def launch_numbers(self, numbered: Sequence[Operation | SSAValue]) -> None:
        kernel = Kernel(self.host.location)
        numbers = Numbers(self, kernel)
        first = kernel.emit(arith.CmpiOp(kernel.emit(device.ThreadOp()), numbers.zero, "eq"))
        with kernel.where(first):
            for one in numbered:
                if isinstance(one, Operation):
                    numbers.compute(one)
                else:
                    numbers.count(one)
        self.launch(kernel, self.one)

    def relaunch(self, launch: device.LaunchOp) -> None:
        """The launch, of a kernel that loads what it was given."""
        kernel, before = Kernel(launch.location), self.kernels[launch.target]
        numbers = Numbers(self, kernel)
        given = [numbers.known(v) for v in launch.values]
        taken = before.body.block.args
        mapped: dict[SSAValue, SSAValue] = dict(zip(taken, given, strict=True))
        for op in before.body.block.ops:
            if not isinstance(op, func.ReturnOp):
                kernel.put(op.clone(mapped))
        told = {k: v for k, v in before.attributes.items() if k in KEPT}
        self.launch(kernel, self.copies.get(launch.blocks, launch.blocks), told)

    def launch(
        self, kernel: Kernel, blocks: SSAValue, told: dict[str, Attribute] | None = None
    ) -> None:
        made = kernel.finish(self.function.sym_name.data)
        made.attributes.update(told or {})
        launch = device.LaunchOp(made.sym_name.data, blocks, kernel.given)
        self.host.add(launch)
        self.unfinished.append((launch, made))

    def settle(self) -> None:
        """Add the kernels to the module, once all ops are in the function; those that do the same are one."""
        alias, known = AliasAnalysis(self.function), dict[Hashable, func.FuncOp]()
        number = sum(map(device.is_kernel, self.module.ops))
        for launch, made in self.unfinished:
            pairs = list(sharing(launch.values, alias))
            mark_overlaps(made, pairs)
            describe(made, pairs)
            kernel = known.setdefault(essence(made), made)
            if kernel is made:
                made.properties["sym_name"] = StringAttr(f"{self.function.sym_name.data}_{number}")
                self.module.body.block.add_op(made)
                number += 1
            launch.properties["kernel"] = SymbolRefAttr(kernel.sym_name.data)


KEPT = (device.ONE_THREAD, device.IN_ORDER)


class Numbers:
    """Writes numbers in a kernel."""

    def __init__(self, of: DeviceNumbers, kernel: Kernel) -> None:
        self.of, self.kernel = of, kernel
        self.zero = kernel.index(0)

    def known(self, value: SSAValue) -> SSAValue:
        """What a value of the loop is in the kernel."""
        kernel, of = self.kernel, self.of
        if value in kernel.values:
            return kernel.values[value]
        owner = value.owner
        if value in of.slots:
            found = kernel.load(kernel.value(of.slots[value]), [self.zero])
            found.name_hint = value.name_hint
        elif value in of.moving and isinstance(owner, COMPUTED):
            for operand in owner.operands:
                self.known(operand)
            kernel.copy(owner)
            return kernel.values[value]
        else:
            found = kernel.value(of.copies.get(value, value))
        kernel.values[value] = found
        return found

    def compute(self, op: Operation) -> None:
        kernel, of = self.kernel, self.of
        match op:
            case device.FetchOp():
                found = kernel.load(self.known(op.source), [self.known(i) for i in op.indices])
                found.name_hint = op.result.name_hint
                self.keep(op.result, found)
            case device.PutOp():
                at = [self.known(i) for i in op.indices]
                kernel.store(self.known(op.value), self.known(op.target), at)
            case memref.LoadOp():
                found = kernel.load(kernel.value(of.slots[op.memref]), [self.zero])
                found.name_hint = op.res.name_hint
                self.keep(op.res, found)
            case memref.StoreOp():
                kernel.store(self.known(op.value), kernel.value(of.slots[op.memref]), [self.zero])
            case array.ConditionOp():
                assert of.flag is not None
                more = kernel.emit(arith.ExtUIOp(self.known(op.condition), i64))
                kernel.store(more, kernel.value(of.flag), [self.zero])
            case scf.IfOp():
                self.branch(op)
            case _ if isinstance(op, COMPUTED):
                pass  # whoever needs it computes it
            case _:
                operands = [self.known(v) for v in op.operands]
                plain = PLAIN.get(type(op))
                if plain is not None:
                    found = kernel.emit(plain(*operands))  # pyright: ignore[reportCallIssue]
                    found.name_hint = op.results[0].name_hint
                    self.keep(op.results[0], found)
                    return
                made = op.clone(kernel.values)
                kernel.put(made)
                for old, new in zip(op.results, made.results, strict=True):
                    self.keep(old, new)

    def keep(self, value: SSAValue, found: SSAValue) -> None:
        self.kernel.values[value] = found
        if value in self.of.slots:
            self.kernel.store(found, self.kernel.value(self.of.slots[value]), [self.zero])

    def branch(self, op: scf.IfOp) -> None:
        """What is from outside of a branch is loaded before it."""
        own = {r for o in every_op(op) for r in o.results}
        for inner in every_op(op):
            for operand in inner.operands:
                is_variable = isinstance(inner, memref.LoadOp | memref.StoreOp)
                if operand not in own and not (is_variable and operand is variable_of(inner)):
                    self.known(operand)
        kernel, condition = self.kernel, self.known(op.cond)
        then, otherwise = (self.region(one) for one in op.regions)
        made = scf.IfOp(condition, [r.type for r in op.results], then, otherwise)
        kernel.add(made)
        for old, new in zip(op.results, made.results, strict=True):
            self.keep(old, new)

    def region(self, region: Region) -> Region:
        if not region.blocks:
            return Region()
        made = Block()
        with self.kernel.within(made):
            for op in region.block.ops:
                if isinstance(op, scf.YieldOp):
                    self.kernel.add(scf.YieldOp(*(self.known(v) for v in op.operands)))
                else:
                    self.compute(op)
        return Region(made)

    def count(self, counter: SSAValue) -> None:
        """One iteration more."""
        slot = self.kernel.value(self.of.slots[counter])
        more = self.kernel.sum(self.kernel.load(slot, [self.zero]), self.kernel.index(1))
        self.kernel.store(more, slot, [self.zero])


def is_fine(op: Operation, host: Writer) -> SSAValue:
    """Whether a check does not fail."""
    if isinstance(op, array.RaiseIfOp):
        no = host.emit(arith.ConstantOp(IntegerAttr(0, i1)))
        return host.emit(arith.CmpiOp(op.condition, no, "eq"))
    assert isinstance(op, array.IndexOp)
    least = host.emit(arith.SubiOp(host.index(0), op.extent))
    above = host.emit(arith.CmpiOp(least, op.index, "sle"))
    return host.emit(arith.AndIOp(above, host.less(op.index, op.extent)))


def has_op(pending: Operation | SSAValue, kinds: type[Operation] | UnionType) -> bool:
    if not isinstance(pending, Operation):
        return False
    return any(isinstance(inner, kinds) for inner in every_op(pending))


def variable_of(op: Operation) -> SSAValue:
    return cast("memref.LoadOp | memref.StoreOp", op).memref


def is_number(op: Operation, moving: set[SSAValue]) -> bool:
    """Whether an op is of numbers that differ between iterations; `moving` has their variables, too."""
    if isinstance(op, scf.IfOp):
        if only_raises(op) or chooses_array(op):
            return False
        return any(is_number(inner, moving) for inner in every_op(op)[1:]) or op.cond in moving
    if isinstance(op, array.ConditionOp):
        return True
    if isinstance(op, device.FetchOp):
        return op.result in moving
    if isinstance(op, memref.LoadOp | memref.StoreOp):
        return op.memref in moving
    if moving.isdisjoint(op.operands):
        return False
    return isinstance(op, (device.PutOp, *PLAIN)) or is_scalar(op)


def may_be_written(op: Operation, moving: set[SSAValue]) -> bool:
    """Whether `Numbers` has a way to compute what is neither a variable nor a check, with the host's bits."""
    if isinstance(op, scf.IfOp):
        return not chooses_array(op)
    if isinstance(op, scf.YieldOp | device.FetchOp | device.PutOp):
        return True
    if isinstance(op, COMPUTED):
        return not moving.isdisjoint(op.results)
    exact = op.dialect_name() not in ("math", "special") or isinstance(op, EXACT)
    return is_scalar(op) and exact


def chooses_array(op: scf.IfOp) -> bool:
    """Whether the branch taken decides which array is used behind it: the host has to know that."""
    return any(map(is_memref, op.results))


def above_in(block: Block, op: Operation) -> Operation | None:
    """The op of a block that an op is in; None for what a pass has left behind, in no function."""
    above: Operation | None = op
    while above is not None and above.parent is not block:
        above = above.parent_op()
    return above
