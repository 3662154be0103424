"""The adjoint of a map: a map over the same points, which gets each input when its body first asks for it.

::

    array.map(%n) ins(%x) outs(%y) kinds ["store"] { y = f(x) }

    array.map(%n) ins(%x, %y_shadow) outs(%y_shadow, %x_shadow) kinds ["store", "add"] {
      0, y_bar * f'(x)
    }
"""

from __future__ import annotations

from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, BlockArgument, Operation, SSAValue

from ...dialects import array
from ..rules import ScalarRule, rule_of
from ..rules.builders import index
from ..rules.sweeps import SHADOW
from ..rules.table import Scalars
from .map_values import MapValues
from .sanitizer_marks import is_watched, mark, mark_sums
from .sweeps import Sweep


class MapAdjoint:
    """One adjoint map under construction: its inputs and outputs grow as its body asks for them."""

    def __init__(self, sweep: Sweep, op: array.MapOp) -> None:
        self.sweep = sweep
        self.op = op
        self.values = MapValues(sweep.primal, op)
        self.get, self.read = self.values.get, self.values.read
        self.extents = self.values.extents
        self.scalars = Scalars(self.values.append)
        self.outs: list[SSAValue] = []
        self.kinds: list[str] = []
        self.yields: list[SSAValue] = []
        self.bars: dict[SSAValue, SSAValue] = {}
        self.reversed: Operation = op
        """The op whose adjoint is being emitted: of the map's body, or the map itself."""
        self.cleared: set[SSAValue] = set()
        """Shadows that are outputs, each of their elements at one point."""

    def write(self, out: SSAValue, kind: str, value: SSAValue) -> None:
        if kind == "add" and out in self.cleared:
            # The view that was stored to is the one that was read: what is added is what is stored.
            position = max(k for k, o in enumerate(self.outs) if o is out)
            old = self.yields[position]
            first = isinstance(old.owner, arith.ConstantOp)
            self.yields[position] = value if first else self.scalars.add(old, value)
            return
        self.outs.append(out)
        self.kinds.append(kind)
        self.yields.append(value)

    def emit(self) -> None:
        """The whole adjoint of a map that stores or adds."""
        sweep = self.sweep
        for out, kind, value in zip(self.op.outs, self.op.out_kinds, self.op.yielded, strict=True):
            if not sweep.activity.active(out):
                continue
            shadow = sweep.primal.memref(out, SHADOW)
            if sweep.activity.active(value):
                self.add(value, self.read(shadow))
            if kind == "store":
                zero = self.scalars.constant(0.0, sweep.wide(value.type))
                self.write(shadow, "store", zero)
                if 0 not in array.strides_of(cast(MemRefType[Attribute], shadow.type)):
                    self.cleared.add(shadow)
        self.propagate()
        self.finish()

    def propagate(self) -> None:
        """Reverse the body, then hand the cotangents of what came from outside on."""
        active = self.sweep.activity.active
        for inner in reversed(list(self.op.body.block.ops)):
            rule = rule_of(type(inner))
            if isinstance(rule, ScalarRule) and inner.results[0] in self.bars:
                bar = self.bars.pop(inner.results[0])
                self.reversed, self.values.location = inner, inner.location
                rule.propagate(inner, bar, self.scalars, active, self.get, self.add)
        self.reversed, self.values.location = self.op, self.op.location
        for value, bar in self.bars.items():
            if isinstance(value, BlockArgument) and value.owner is self.op.body.block:
                shadow = self.sweep.primal.memref(self.op.ins[value.index], SHADOW)
                self.write(shadow, "add", bar)
            else:
                self.write(self.broadcast(self.sweep.bar_cell(value)), "add", bar)

    def broadcast(self, cell: SSAValue) -> SSAValue:
        """A cell seen at every point: rank of the map, all strides 0."""
        one = index(1, self.sweep.emit)
        dims = [-1] * len(self.extents)
        view = array.ViewOp(cell, [], dims, self.extents, [one] * len(dims))
        return self.sweep.emit(view)

    def add(self, value: SSAValue, contribution: SSAValue) -> None:
        if not self.sweep.activity.active(value):
            return
        contribution = self.scalars.cast(contribution, value.type)
        self._mark(contribution, value)
        old = self.bars.get(value)
        self.bars[value] = contribution if old is None else self.scalars.add(old, contribution)
        self._mark(self.bars[value], value, is_sum=True)

    def _mark(self, made: SSAValue, of: SSAValue, *, is_sum: bool = False) -> None:
        if is_watched(self.sweep.function):
            mark(made, "cotangent", of, None if is_sum else self.reversed)

    def finish(self) -> None:
        if not self.outs:
            return
        values = self.values
        values.append(array.YieldOp(self.yields))
        made = array.MapOp(self.extents, values.ins, self.outs, self.kinds, values.body)
        if is_watched(self.sweep.function):
            mark_sums(made, "cotangent", self.outs)
        self.sweep.append(made)
