"""`array.map` as a kernel: a thread for each point, each row that is reduced, or a share of all points.

::

    array.map(%n) ins(%a) outs(%c) kinds ["store"] { ... }     thread i < n: c[i] = ...
    array.map(%n, %m) ins(%a) outs(%s) kinds ["add"] { ... }   thread i < n: s[i] += a[i, 0] + a[i, 1] + ...
    array.map(%n) ins(%a) outs(%cell) kinds ["add"] { ... }    `reductions`

Which it is follows from the axes along which its outputs stand still. Outputs that stand still along
different axes, or meet in memory, are given kernels of their own (`parts`).

Each thread reads and writes in the order of the map, so results do not depend on how threads are run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import MemRefType, UnitAttr
from xdsl.ir import SSAValue
from xdsl.rewriter import InsertPoint, Rewriter

from ...dialects import array, device
from ..analysis.dependence import Dependence
from ..analysis.views import strip_casts
from ..diagnostics import refusal
from ..rules import Access
from ..transforms.map_outputs import with_outputs
from .kernel import Kernel, element_of, point, zero_of

Visit = Callable[[dict[int, SSAValue]], None]


@dataclass(frozen=True)
class Form:
    """Which axes of a map its threads share out, and which each walks alone."""

    shared: tuple[int, ...]
    """Outermost first."""
    walked: tuple[int, ...]
    still: bool
    """The outputs stand still along all that is walked: they are reduced in a register."""

    @property
    def is_total(self) -> bool:
        """One element is left of all points."""
        return self.still and not self.shared


def split(op: array.MapOp, dependence: Dependence) -> list[array.MapOp]:
    """Put maps in its place that each are one kernel; they run one after the other."""
    found = parts(op, dependence)
    if len(found) == 1:
        return [op]
    made: list[array.MapOp] = []
    for part in found:
        clone = op.clone()
        Rewriter.insert_op(clone, InsertPoint.before(op))
        before = clone.prev_op
        with_outputs(clone, part)
        one = op.parent.first_op if before is None and op.parent else before and before.next_op
        assert isinstance(one, array.MapOp)
        made.append(one)
    Rewriter.erase_op(op)
    return made


def parts(op: array.MapOp, dependence: Dependence) -> list[list[int]]:
    """The outputs of each kernel, in order."""
    found: list[list[int]] = []
    for k in range(len(op.outs)):
        fitting = (part for part in found if all(together(op, dependence, j, k) for j in part))
        part = next(fitting, None)
        if part is None:
            found.append([k])
        else:
            part.append(k)
    last = [p for p in found if any(meet(op, op.outs[k], i, dependence) for k in p for i in op.ins)]
    if len(found) > 1 and len(last) > 1:
        raise refusal(
            op,
            "this writes several arrays that it also reads, and one may be a view of another, "
            "which is known at run time only: threads of a kernel would meet in elements",
            "where a name is bound to one of several arrays, bind a copy (b = u[i].copy()), or compile the "
            "function for the CPU",
        )
    return [p for p in found if p not in last] + last


def together(op: array.MapOp, dependence: Dependence, j: int, k: int) -> bool:
    """Whether a thread may write two outputs, one after the other."""
    a, b = op.outs[j], op.outs[k]
    if form_of(op, [j]) != form_of(op, [k]):
        return False
    stored = op.out_kinds[j] == op.out_kinds[k] == "store"
    same = dependence.alias.same_or_apart(a, b)
    return stored or same or not meet(op, a, b, dependence)


def meet(op: array.MapOp, a: SSAValue, b: SSAValue, dependence: Dependence) -> bool:
    """Whether two arrays of a map may share elements."""
    if not dependence.alias.may_alias(a, b) or dependence.alias.apart_in_turn(a, b):
        return False
    return dependence.may_meet(Access(op, a, "write"), Access(op, b, "read"), None)


def form_of(op: array.MapOp, outputs: Sequence[int] | None = None) -> Form:
    """How a map is shared out, with all its outputs or some.

    An axis along which an output may turn out to stand still (it was broadcast at run time) is walked.
    """
    axes = order(op)
    outs = [(op.outs[k], op.out_kinds[k]) for k in outputs or range(len(op.outs))]
    adding = [m for m, kind in outs if kind != "store"]
    walked = tuple(a for a in axes if any(may_stand_still(m, a) for m in adding))
    shared = tuple(a for a in axes if a not in walked)
    still = bool(walked) and all(stands_still(m, a) for m in adding for a in walked)
    return Form(shared, walked, still)


def order(op: array.MapOp) -> list[int]:
    """The axes, outermost first: threads beside each other go along the one of unit stride."""
    extents = [array.constant_value(e) for e in op.extents]
    axes = [a for a in range(len(extents)) if extents[a] != 1]
    types = [m.type for m in (*op.ins, *op.outs)]

    def score(axis: int) -> int:
        strides = [array.strides_of(t)[axis] for t in types if isinstance(t, MemRefType)]
        return sum(s == 1 for s in strides)

    inner = max(axes, key=lambda a: (score(a), a), default=None)
    return [a for a in axes if a != inner] + ([] if inner is None else [inner])


def stands_still(memref: SSAValue, axis: int) -> bool:
    assert isinstance(memref.type, MemRefType)
    return array.strides_of(memref.type)[axis] == 0


def may_stand_still(memref: SSAValue, axis: int) -> bool:
    """Whether the stride along an axis may be 0: of a view whose step is known only at run time."""
    while True:
        memref = strip_casts(memref)
        assert isinstance(memref.type, MemRefType)
        stride = array.strides_of(memref.type)[axis]
        if stride is not None:
            return stride == 0
        owner = memref.owner
        if not isinstance(owner, array.ViewOp):
            return isinstance(owner, array.CollapseOp)
        step, dim = array.constant_value(owner.steps[axis]), owner.source_dims[axis]
        if step is None or dim < 0:
            return True
        memref, axis = owner.source, dim


# Writing.


class MapKernel:
    """Writes the kernel of a map; `inputs` are those that are numbers, not arrays."""

    def __init__(
        self, kernel: Kernel, op: array.MapOp, form: Form, inputs: dict[SSAValue, SSAValue]
    ) -> None:
        self.kernel, self.op, self.form = kernel, op, form
        self.inputs = inputs
        self.extents = [kernel.value(e) for e in op.extents]

    def points(self) -> None:
        """A thread for each point of the axes that are shared out."""
        kernel, form = self.kernel, self.form
        at, inside = point(kernel, [self.extents[a] for a in form.shared])
        known = dict(zip(form.shared, at, strict=True))
        with kernel.where(inside):
            if not form.still:
                self.walk(known, form.walked, self.write_point)
                return
            cells = self.begin()
            self.walk(known, form.walked, lambda known: self.combine_point(known, cells))
            self.end(known, cells)

    def walk(self, known: dict[int, SSAValue], axes: Sequence[int], visit: Visit) -> None:
        """Loops over axes, in their order."""
        if not axes:
            visit(known)
            return
        with self.kernel.loop(self.extents[axes[0]]) as at:
            self.walk({**known, axes[0]: at}, axes[1:], visit)

    def begin(self) -> dict[int, SSAValue]:
        """A register for each output that is reduced."""
        cells: dict[int, SSAValue] = {}
        for k, (m, kind) in enumerate(zip(self.op.outs, self.op.out_kinds, strict=True)):
            if kind != "store":
                element = element_of(m)
                cells[k] = self.kernel.cell(element)
                self.kernel.store(self.kernel.identity(kind, element), cells[k])
        return cells

    def end(self, known: dict[int, SSAValue], cells: dict[int, SSAValue]) -> None:
        """What is reduced meets memory."""
        for k, cell in cells.items():
            self.write(k, self.kernel.load(cell), self.subscripts(known))

    def write_point(self, known: dict[int, SSAValue]) -> None:
        self.combine_point(known, {})

    def combine_point(self, known: dict[int, SSAValue], cells: dict[int, SSAValue]) -> None:
        """The body at a point; what is reduced goes to its register."""
        kernel, op = self.kernel, self.op
        at = self.subscripts(known)
        arguments = op.body.block.args
        for k, (argument, m) in enumerate(zip(arguments, op.ins, strict=True)):
            if argument.first_use is not None:
                kernel.values[argument] = self.read(k, m, at)
        for inner in op.body.block.ops:
            if not isinstance(inner, array.YieldOp):
                kernel.copy(inner)
        for k, value in enumerate(op.yielded):
            new = kernel.value(value)
            if k not in cells:
                self.write(k, new, at)
            else:
                old = kernel.load(cells[k])
                kernel.store(kernel.combined(op.out_kinds[k], old, new), cells[k])

    def subscripts(self, known: dict[int, SSAValue]) -> list[SSAValue]:
        """A subscript for each axis; 0 where there is one element, or the output stands still."""
        return [known.get(a) or self.kernel.index(0) for a in range(len(self.extents))]

    def read(self, k: int, m: SSAValue, at: list[SSAValue]) -> SSAValue:
        gathers = self.op.gathers
        if gathers is None:
            return self.element(m, at)
        return self.gathered(gathers, k, m, at)

    def element(self, m: SSAValue, at: list[SSAValue]) -> SSAValue:
        if m in self.inputs:
            return self.kernel.value(self.inputs[m])
        return self.kernel.load(self.kernel.value(m), at)

    def gathered(
        self, gathers: array.Gathers, k: int, source: SSAValue, at: list[SSAValue]
    ) -> SSAValue:
        """The element that is nearest, or 0 where there is none and zeros are meant."""
        kernel = self.kernel
        self.kernel.value(self.inputs.get(source, source))
        shifted = self.shifted(gathers, gathers.shifts[k], at)
        window = [kernel.value(n) for n in gathers.window]
        element = element_of(source)
        zero = kernel.index(0)
        if k in gathers.zeros:
            inside = self.is_inside(shifted, window)
            where = shifted
        else:
            inside = kernel.all([kernel.less(zero, n) for n in window])
            one = kernel.index(1)
            last = [kernel.emit(arith.SubiOp(n, one)) for n in window]
            low = [kernel.emit(arith.MinSIOp(i, n)) for i, n in zip(shifted, last, strict=True)]
            where = [kernel.emit(arith.MaxSIOp(i, zero)) for i in low]
        return kernel.either(
            inside,
            element,
            lambda: self.element(source, where),
            lambda: kernel.emit(zero_of(element)),
        )

    def shifted(
        self, gathers: array.Gathers, shift: Sequence[int], at: list[SSAValue]
    ) -> list[SSAValue]:
        kernel = self.kernel
        origin = [kernel.value(n) for n in gathers.origin]
        found = [kernel.sum(i, o) for i, o in zip(at, origin, strict=True)] if origin else at
        return [
            kernel.sum(i, kernel.index(-s)) if s else i for i, s in zip(found, shift, strict=True)
        ]

    def is_inside(self, at: Sequence[SSAValue], window: Sequence[SSAValue]) -> SSAValue:
        zero = self.kernel.index(0)
        low = [self.kernel.emit(arith.CmpiOp(i, zero, "sge")) for i in at]
        high = [self.kernel.less(i, n) for i, n in zip(at, window, strict=True)]
        return self.kernel.all([*low, *high])

    def write(self, k: int, new: SSAValue, at: list[SSAValue]) -> None:
        """Store an element, or combine it with what is there."""
        kernel, op = self.kernel, self.op
        kind, target = op.out_kinds[k], kernel.value(op.outs[k])
        gathers = op.gathers
        if kind != "store" and gathers is not None and gathers.fresh is not None:
            window = [kernel.value(n) for n in gathers.window]
            fresh = self.is_inside(self.shifted(gathers, gathers.fresh, at), window)
            new = kernel.either(
                fresh,
                new.type,
                lambda: new,
                lambda: kernel.combined(kind, self.load_at_edge(target, at), new),
            )
        elif kind != "store":
            new = kernel.combined(kind, kernel.load(target, at), new)
        kernel.store(new, target, at)

    def load_at_edge(self, target: SSAValue, at: list[SSAValue]) -> SSAValue:
        """What few points load: those beside the window that is stored to."""
        found = memref.LoadOp.get(target, list(at))
        found.attributes[device.EDGE] = UnitAttr()
        return self.kernel.emit(found)
