"""Products of a loop whose vectors, one of each iteration, are rows of matrices. Part of `collect_products`.

In ::

    for i in range(n):
        c[i, i + 1:] += a[i, :] @ b[:, i + 1:]

the rows of `a` and those of `c` are stacked, and `b` is the same for all, but for where its columns
begin. What all iterations of a block have in common is a product of three matrices.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import MemRefType, UnitAttr, f32, f64
from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Subscripts
from ..analysis.slabs import Slab, Span, at, computable, slab_of, span_of, way_of
from .hoist_checks import Before

OPERANDS = {"a": ("n", "k"), "b": ("k", "m"), "c": ("n", "m")}
"""The dimensions of each operand."""

FIXED = {"n": "b", "m": "a", "k": "c"}
"""By the dimension in which iterations are stacked, the operand that does not have it."""


@dataclass(frozen=True, eq=False)
class Stack:
    """A product whose vectors, one of each iteration, are rows or columns of matrices."""

    op: array.MatmulOp
    dim: str
    """The dimension, of one element in an iteration, that counts iterations."""
    slabs: dict[str, Slab | None]
    spans: dict[str, Span]
    """The other two dimensions, in subscripts of the fixed operand's array."""
    ragged: str
    """That of the two in which iterations differ; "" where there is none."""
    at_begin: bool
    counter: SSAValue

    @property
    def fixed(self) -> str:
        return FIXED[self.dim]

    def operand(self, name: str) -> SSAValue:
        return {"a": self.op.a, "b": self.op.b, "c": self.op.c}[name]

    @property
    def adds_up(self) -> bool:
        """Whether iterations add to the same elements, which they do in their order."""
        return self.dim == "k"

    @property
    def downwards(self) -> bool:
        """True where the vectors of later iterations lie before those of earlier ones, which they may."""
        if self.adds_up:
            return False
        found = [self.along(name) for name in OPERANDS if name != self.fixed]
        return {along[1] > 0 for along in found if along is not None} == {False}

    def along(self, name: str) -> tuple[int, int] | None:
        """The axis on which the vectors of the iterations lie, and how far apart; None where nowhere."""
        slab = self.slabs[name]
        if slab is None:
            return None
        walked = {slab.axes[p]: p for p in slab.axes}
        found: list[tuple[int, int]] = []
        for axis, begin in enumerate(slab.begin):
            if axis in walked:
                span = self.spans.get(OPERANDS[name][walked[axis]])
                if span is not None:
                    begin = begin - span.begin * slab.steps[walked[axis]]
                if way_of(begin, self.counter) != "still":
                    return None
                continue
            factor = begin.terms.get(self.counter, 0)
            if way_of(begin - Affine({self.counter: factor}), self.counter) != "still":
                return None
            if factor:
                found.append((axis, factor))
        return found[0] if len(found) == 1 else None


def stacks_of(loop: array.LoopOp) -> list[Stack]:
    """The loop's products of which iterations have a part in common, if they may be run elsewhere."""
    forms = Subscripts()
    found = [stack_of(op, loop, forms) for op in products_in(loop)]
    return [stack for stack in found if stack is not None]


def stack_of(op: array.MatmulOp, loop: array.LoopOp, forms: Subscripts) -> Stack | None:
    assert isinstance(op.c.type, MemRefType)
    if op.c.type.element_type not in (f64, f32):
        return None
    slabs = {name: slab_of(getattr(op, name), loop, forms) for name in OPERANDS}
    units = [dim for dim in "knm" if is_one(op, dim)]
    for dim in units:
        others = [d for d in OPERANDS[FIXED[dim]] if d in units]
        if len(others) == 2 or (dim == "k" and op.accumulate is None):
            continue
        stack = stacked(op, dim, slabs, loop, forms)
        if stack is not None:
            return stack
    return None


def is_one(op: array.MatmulOp, dim: str) -> bool:
    """True where the dimension certainly has one element."""
    for name, dims in OPERANDS.items():
        type_ = getattr(op, name).type
        if dim in dims and type_.get_shape()[dims.index(dim)] == 1:
            return True
    return False


def stacked(
    op: array.MatmulOp,
    dim: str,
    slabs: dict[str, Slab | None],
    loop: array.LoopOp,
    forms: Subscripts,
) -> Stack | None:
    fixed = FIXED[dim]
    slab, t = slabs[fixed], loop.induction
    if slab is None:
        return None
    spans, ragged, at_begin = dict[str, Span](), "", False
    for p, other in enumerate(OPERANDS[fixed]):
        extent = forms.extent(getattr(op, fixed), p)
        axis = slab.axes.get(p)
        begin = Affine() if axis is None else slab.begin[axis]
        if not computable(extent, loop):
            return None
        spans[other] = span = span_of(begin, extent)
        moves = span.moves(t)
        if moves == ("still", "still"):
            continue
        one_moves = moves.count("still") == 1 and "mixed" not in moves
        if ragged or not one_moves or axis is None or slab.steps[p] != 1:
            return None
        ragged, at_begin = other, moves[0] != "still"
    for axis, begin in enumerate(slab.begin):
        if axis not in slab.axes.values() and way_of(begin, t) != "still":
            return None
    return Stack(op, dim, slabs, spans, ragged, at_begin, t)


class Common:
    """Writes the part of a stack that iterations have in common: of one iteration, or of all at once."""

    def __init__(self, stack: Stack, first: SSAValue, last: SSAValue, here: Before) -> None:
        self.stack = stack
        self.spans = dict(stack.spans)
        """From where on, and up to where."""
        self.extents: dict[str, SSAValue] = {}
        t = stack.counter
        for dim, span in stack.spans.items():
            if dim == stack.ragged:
                begin, end = span.begin, span.end
                sooner, later = Affine.of(first), Affine.of(last)
                if stack.at_begin:
                    begin = at(begin, t, later if way_of(begin, t) == "up" else sooner)
                else:
                    end = at(end, t, sooner if way_of(end, t) == "up" else later)
                low = here.number(begin)
                begin, end = Affine.of(low), Affine.of(here.number(end))
                self.spans[dim] = span = Span(begin, end)
            self.extents[dim] = here.number(span.count)

    def view(
        self, name: str, slab: Slab, here: Before, time: SSAValue, length: SSAValue | None = None
    ) -> SSAValue:
        """An operand at a time; with a length that of so many iterations, as their rows or columns.

        They begin with the first iteration, or, where arrays are gone through downwards, with the last.
        """
        stack = self.stack
        if name == stack.fixed and not stack.ragged and slab.base is stack.operand(name):
            return slab.base
        along = stack.along(name)
        if length is not None and along is not None and stack.downwards:
            time = here.minus_one(here.plus(time, length))
            along = along[0], -along[1]
        begin, dims, extents, steps = list(slab.begin), list[int](), list[SSAValue](), list[int]()
        for p, dim in enumerate(OPERANDS[name]):
            if dim == stack.dim:
                assert length is None or along is not None
                dims.append(-1 if length is None or along is None else along[0])
                steps.append(0 if length is None or along is None else along[1])
                extents.append(here.constant(1) if length is None else length)
                continue
            axis = slab.axes.get(p)
            dims.append(-1 if axis is None else axis)
            steps.append(0 if axis is None else slab.steps[p])
            extents.append(self.extents[dim])
            if axis is not None:
                moved = self.spans[dim].begin - stack.spans[dim].begin
                begin[axis] = begin[axis] + moved * slab.steps[p]
        offsets = [here.number(at(b, stack.counter, Affine.of(time))) for b in begin]
        view = array.ViewOp(slab.base, offsets, dims, extents, [here.constant(s) for s in steps])
        here.insert(view)
        view.result.name_hint = stack.operand(name).name_hint
        return view.result


def local_view(
    stack: Stack, name: str, begin: SSAValue | None, count: SSAValue | None, here: Before
) -> SSAValue:
    """A part of an operand of the loop's product in its ragged dimension, in its own subscripts."""
    operand = stack.operand(name)
    dims, zero, one = OPERANDS[name], here.constant(0), here.constant(1)
    if stack.ragged not in dims or begin is None or count is None:
        return operand
    extents: list[SSAValue] = []
    offsets: list[SSAValue] = []
    for p, dim in enumerate(dims):
        offsets.append(begin if dim == stack.ragged else zero)
        if dim == stack.ragged:
            extents.append(count)
        elif dim == stack.dim:
            extents.append(one)
        else:
            extents.append(here.number(Subscripts().extent(operand, p)))
    view = array.ViewOp(operand, offsets, [0, 1], extents, [one, one])
    here.insert(view)
    view.result.name_hint = operand.name_hint
    return view.result


def products_in(loop: array.LoopOp) -> list[array.MatmulOp]:
    return [op for op in loop.body.block.ops if isinstance(op, array.MatmulOp)]


def lies_in_array(stack: Stack, name: str) -> bool:
    return name == stack.fixed or stack.along(name) is not None


def product(
    like: array.MatmulOp,
    views: dict[str, SSAValue],
    *,
    accumulate: bool,
    in_order: bool = False,
) -> array.MatmulOp:
    made = array.MatmulOp(views["a"], views["b"], views["c"], accumulate=accumulate)
    if in_order:
        made.attributes[array.IN_ORDER] = UnitAttr()
    made.location = like.location
    return made


def erase(op: Operation) -> None:
    op.detach()
    op.erase()
