"""Rules of what names, makes, reads and writes memory element by element."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from xdsl.dialects import arith, memref, scf, vector
from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import array
from .access import Access, Activity, Need
from .descriptors import descriptor_values
from .rule import LeavesNothing, Rule, Rules, WithoutDerivative
from .sweeps import SHADOW, ReverseSweep, TangentSweep


class Load(Rule[memref.LoadOp]):
    """`x = load a[i]`: `a_shadow[i] += x_bar`; `x_dot = a_dot[i]`."""

    smooth = True
    repeatable = True

    def effects(self, op: memref.LoadOp) -> list[Access]:
        return [Access(op, op.memref, "read")]

    def nan_flows(self, op: memref.LoadOp) -> Iterator[tuple[SSAValue, SSAValue | None]]:
        yield op.memref, op.res

    def needs(self, op: memref.LoadOp, activity: Activity) -> Iterator[Need]:
        yield from op.indices
        yield from descriptor_values(op.memref)

    def adjoint(self, op: memref.LoadOp, sweep: ReverseSweep) -> None:
        bar = sweep.take_bar(op.res)
        if bar is None:
            return
        shadow = sweep.primal.memref(op.memref, SHADOW)
        indices = [sweep.primal.get(i) for i in op.indices]
        load = memref.LoadOp.get(shadow, indices)
        store = memref.StoreOp.get(sweep.scalars.add(sweep.emit(load), bar), shadow, indices)
        if any(is_same_place(op, other) and is_exclusive(other) for other in stores_to(op.memref)):
            load.attributes[array.EXCLUSIVE] = store.attributes[array.EXCLUSIVE] = UnitAttr()
        sweep.append(store)

    def tangent(self, op: memref.LoadOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if sweep.activity.active(op.res):
            shadow = sweep.dot(op.memref, zero=True)
            load = memref.LoadOp.get(shadow, sweep.values(op.indices))
            sweep.set_dot(op.res, sweep.emit(load))


class LoadLanes(WithoutDerivative):
    """Several elements of a row at once: written behind the last derivative (`tile_registers`)."""

    def effects(self, op: Operation) -> list[Access]:
        assert isinstance(op, vector.LoadOp)
        return [Access(op, op.base, "read")]


class StoreLanes(WithoutDerivative):
    """The same, stored."""

    def effects(self, op: Operation) -> list[Access]:
        assert isinstance(op, vector.StoreOp)
        return [Access(op, op.base, "write")]


class Store(Rule[memref.StoreOp]):
    """`store x, a[i]`: `x_bar += a_shadow[i]`, `a_shadow[i] = 0`; `a_dot[i] = x_dot`."""

    smooth = True
    repeatable = True

    def effects(self, op: memref.StoreOp) -> list[Access]:
        return [Access(op, op.memref, "write")]

    def needs(self, op: memref.StoreOp, activity: Activity) -> Iterator[Need]:
        yield from op.indices
        yield from descriptor_values(op.memref)

    def adjoint(self, op: memref.StoreOp, sweep: ReverseSweep) -> None:
        shadow = sweep.primal.memref(op.memref, SHADOW)
        indices = [sweep.primal.get(i) for i in op.indices]
        alone = {array.EXCLUSIVE: UnitAttr()} if is_exclusive(op) else {}
        if sweep.activity.active(op.value):
            load = memref.LoadOp.get(shadow, indices)
            load.attributes.update(alone)
            sweep.add_bar(op.value, sweep.emit(load))
        zero = sweep.scalars.constant(0.0, sweep.wide(op.value.type))
        store = memref.StoreOp.get(zero, shadow, indices)
        store.attributes.update(alone)
        sweep.append(store)

    def tangent(self, op: memref.StoreOp, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if sweep.activity.active(op.memref):
            shadow, dot = sweep.dot(op.memref, zero=True), sweep.dot(op.value, zero=True)
            store = memref.StoreOp.get(dot, shadow, sweep.values(op.indices))
            store.attributes.update(op.attributes)
            sweep.append(store)


def is_exclusive(op: memref.StoreOp) -> bool:
    """What one iteration of a claimed loop stores to, no other one touches: not a sum of several."""
    if adds_to_place(op):
        return False
    parent = op.parent_op()
    while parent is not None and array.CLAIMED not in parent.attributes:
        parent = parent.parent_op()
    return parent is not None and bool(op.indices)


def adds_to_place(op: memref.StoreOp) -> bool:
    """What is stored is what was there with terms, as far as can be seen."""
    loads = (s.owner for s in summands(op.value))
    return any(
        isinstance(load, memref.LoadOp)
        and load.memref is op.memref
        and all(map(may_be_same_number, load.indices, op.indices))
        for load in loads
    )


def summands(value: SSAValue) -> set[SSAValue]:
    """The value, and what it may be a sum of, under conditions as well."""
    found, pending = set[SSAValue](), [value]
    while pending:
        one = pending.pop()
        if one in found:
            continue
        found.add(one)
        match one.owner:
            case arith.AddfOp() | arith.AddiOp() as op:
                pending += [op.lhs, op.rhs]
            case arith.SubfOp() | arith.SubiOp() as op:
                pending += [op.lhs, op.rhs]
            case arith.SelectOp() as op:
                pending += [op.lhs, op.rhs]
            case scf.IfOp() as op:
                ends = (region.block.last_op for region in op.regions if region.blocks)
                k = op.results.index(one)
                pending += [end.operands[k] for end in ends if end is not None]
            case _:
                pass
    return found


def stores_to(array_: SSAValue) -> Iterator[memref.StoreOp]:
    """The stores to elements of an array, by this name."""
    for use in array_.uses:
        if isinstance(use.operation, memref.StoreOp) and use.operation.memref is array_:
            yield use.operation


def is_same_place(a: memref.LoadOp, b: memref.StoreOp) -> bool:
    return a.memref is b.memref and tuple(a.indices) == tuple(b.indices)


def may_be_same_number(a: SSAValue, b: SSAValue) -> bool:
    """Whether the two are computed alike, whatever is stored meanwhile: each branch of an `if` does so again,
    with a check or without."""
    x, y = a.owner, b.owner
    if isinstance(x, array.IndexOp):
        return may_be_same_number(x.index, b)
    if isinstance(y, array.IndexOp):
        return may_be_same_number(a, y.index)
    if a is b or not isinstance(x, Operation) or not isinstance(y, Operation):
        return a is b
    shape = (x.name, x.attributes, x.properties, len(x.operands), len(x.regions))
    alike = shape == (y.name, y.attributes, y.properties, len(y.operands), 0)
    return alike and all(map(may_be_same_number, x.operands, y.operands))


class Alloc(LeavesNothing):
    """Memory of the program: its shadow goes with it, and its tangents are memory as large."""

    def has_derivative(self, op: Operation, activity: Activity) -> bool:
        return activity.active(op.results[0])

    def needs(self, op: Operation, activity: Activity) -> Iterator[Need]:
        yield from op.operands

    def adjoint(self, op: Operation, sweep: ReverseSweep) -> None:
        """Nothing: the shadow is made where it is first asked for."""

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if self.has_derivative(op, sweep.activity):
            shadow = sweep.clone_dot(op, {o: sweep.value(o) for o in op.operands})
            sweep.set_dot(op.results[0], shadow)


class View(LeavesNothing):
    """Another name for elements of the source: the shadow of a view is the view of the shadow."""

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if sweep.activity.active(op.results[0]):
            assert isinstance(op, array.ViewOp | array.CollapseOp)
            view = op.of(sweep.dot(op.source, zero=True), sweep.value)
            sweep.set_dot(op.result, sweep.emit(view))


class Cast(LeavesNothing):
    """The same memref in another type."""

    def tangent(self, op: Operation, sweep: TangentSweep) -> None:
        sweep.clone(op)
        if sweep.activity.active(op.results[0]):
            source = sweep.dot(op.operands[0], zero=True)
            type_ = sweep.wide(op.results[0].type)
            cast_ = memref.CastOp.get(source, cast(MemRefType[Attribute], type_))
            sweep.set_dot(op.results[0], sweep.emit(cast_))


RULES: Rules = {
    memref.LoadOp: Load(),
    vector.LoadOp: LoadLanes(),
    vector.StoreOp: StoreLanes(),
    memref.StoreOp: Store(),
    **dict.fromkeys((array.AllocOp, memref.AllocaOp, memref.AllocOp), Alloc()),
    **dict.fromkeys((array.ViewOp, array.CollapseOp), View()),
    memref.CastOp: Cast(),
    **dict.fromkeys((array.StrideOp, array.OverlapOp, memref.DimOp), LeavesNothing()),
}
