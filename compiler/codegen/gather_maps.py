"""Lower a gathering map to loops: points of a row whose inputs all lie in the window need no tests.

::

    for i < n + 2:                    rows i - 0, i - 1, i - 2 of the inputs, the nearest where there is none
      for 2 <= j < m:                     no tests, vectorized
        s[i, j] += v_0[j] + v_1[j - 2]
      for the other j < m + 2:            few points, one by one
        s[i, j] += (j < m ? v_0[j] : 0) + (0 <= j - 2 ? v_1[j - 2] : 0)

A row of an input that is 0 there is read from a strip of zeros: the first loop then goes in strips, so that
the rows at the border are vectorized by the same code. What is not 0 is read where the nearest element is,
so that no element is computed from numbers that the program does not have.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from xdsl.ir import Attribute, BlockArgument

from ...dialects import array
from .kernel_state import KernelState, lanes_of, value_type
from .llvm_text import OpenLoop, integer
from .map_nest import combine, identity, is_float
from .map_points import STRIP
from .scalar_text import float_of
from .vector_width import may_be_long
from .whole_lines import from_line, may_begin_at_line

ZEROS = "@gather.zeros"
"""A strip of zeros of any type."""


@dataclass(frozen=True)
class Part:
    """Some of a map's points: the first along each axis, and how many."""

    low: Sequence[str]
    extents: Sequence[str]


@dataclass
class Input:
    """An input in one row: what the points of the innermost loop read."""

    argument: BlockArgument
    element: Attribute
    stride: str
    """Of the innermost axis."""
    shift: int
    tags: str
    pointer: str
    """The first element of the row, or of the nearest."""
    inside: str
    """Whether the row is one of the window; "true" where that does not matter."""


@dataclass
class Gather:
    """A map that gathers on its way to loops."""

    state: KernelState
    op: array.MapOp
    how: array.Gathers
    order: list[int]
    """The axes, outermost first."""
    extents: list[str]
    """How many points of each axis are written here, from `low` on."""
    low: list[str]
    window: list[str]
    origin: list[str]
    """What is added to the subscripts of a point before shifts are taken off."""
    group: str
    innermost: int
    """The axis along which the innermost loop goes from element to element."""
    unit: str
    """How many of its elements are one point of the last axis of `order`: of axes that are one loop."""

    def __post_init__(self) -> None:
        self.text = self.state.text

    def smin(self, a: str, b: str) -> str:
        return self._extreme("min", min, a, b)

    def smax(self, a: str, b: str) -> str:
        return self._extreme("max", max, a, b)

    def _extreme(self, name: str, known: Callable[[int, int], int], a: str, b: str) -> str:
        x, y = integer(a), integer(b)
        if x is not None and y is not None:
            return str(known(x, y))
        found = self.state.intrinsic(f"llvm.s{name}.i64", "i64", "i64, i64")
        return self.text.value(f"call i64 @{found}(i64 {a}, i64 {b})")

    def inside(self, at: str, axis: int) -> str:
        """Whether a subscript is one of the window."""
        return self.text.value(f"icmp ult i64 {at}, {self.window[axis]}")

    def nearest(self, at: str, axis: int) -> str:
        return self.smax("0", self.smin(at, self.text.sub(self.window[axis], "1")))

    def choose(self, condition: str, type_: str, yes: str, no: str) -> str:
        if condition == "true" or yes == no:
            return yes
        return self.text.value(f"select i1 {condition}, {type_} {yes}, {type_} {no}")


def lower_gather(
    state: KernelState,
    op: array.MapOp,
    how: array.Gathers,
    loops: Sequence[int],
    part: Part | None = None,
) -> None:
    """Write the loops of a map with a window; `loops` is the order of those axes that are long."""
    extents, window = [[state.scalar(n) for n in ns] for ns in (op.extents, how.window)]
    low = ["0"] * len(extents)
    if part is not None:
        low, extents = list(part.low), list(part.extents)
    order = [a for a in range(len(extents)) if a not in loops] + [*loops]
    origin = [state.scalar(n) for n in how.origin] or ["0"] * len(extents)
    inner = order[-1]
    order, unit = joined(state, op, how, order, (extents, low, window, origin))
    if len(order) > 1 and integer(origin[order[0]]) is not None:
        origin[order[0]] = state.shared_number(origin[order[0]])
    group = state.metadata.empty()
    gather = Gather(state, op, how, order, extents, low, window, origin, group, inner, unit)
    state.declare(
        ZEROS, f"{ZEROS} = private unnamed_addr constant [{STRIP} x i64] zeroinitializer, align 64"
    )
    inputs: list[Input] = []
    for k, (argument, memref) in enumerate(zip(op.body.block.args, op.ins, strict=True)):
        d, tags = state.memrefs[memref], state.scopes.tags(memref)
        shift = how.shifts[k][order[-1]]
        inputs.append(Input(argument, d.element, d.strides[inner], shift, tags, d.pointer, "true"))
    pointers = [state.memrefs[m].pointer for m in op.outs]
    with where_not_empty(gather):
        rows(gather, 0, inputs, pointers, "false" if how.fresh is None else "true")


def joined(
    state: KernelState,
    op: array.MapOp,
    how: array.Gathers,
    order: list[int],
    numbers: tuple[list[str], list[str], list[str], list[str]],
) -> tuple[list[int], str]:
    """The axes without those along which nothing is shifted, and that continue the one before in memory."""
    extents, low, window, origin = numbers
    operands = [state.memrefs[m] for m in (*op.ins, *op.outs)]
    unit, inner = "1", order[-1]
    while len(order) > 1:
        axis, outer = order[-1], order[-2]
        unit_ = state.text.mul(extents[axis], unit)
        shifted = {s[axis] for s in how.shifts} | ({how.fresh[axis]} if how.fresh else set[int]())
        if (
            shifted != {0}
            or (low[axis], origin[axis], extents[axis]) != ("0", "0", window[axis])
            or any(d.strides[outer] != state.text.mul(unit_, d.strides[inner]) for d in operands)
        ):
            break
        order, unit = order[:-1], unit_
    return order, unit


@contextmanager
def where_not_empty(gather: Gather) -> Generator[None]:
    """One test before the nest that there are points, and elements to read."""
    text = gather.text
    unknown = [n for n in (*gather.extents, *gather.window) if (integer(n) or 0) <= 0]
    tests = [text.value(f"icmp sgt i64 {n}, 0") for n in dict.fromkeys(unknown)]
    nest, done = text.label("nest"), text.label("done")
    if tests:
        text.branch_if(text.both(tests), nest, done)
        text.start(nest)
    yield
    if tests:
        text.branch(done)
        text.start(done)


def rows(gather: Gather, level: int, inputs: list[Input], pointers: list[str], fresh: str) -> None:
    """The loop at `level` and all inside; `fresh`: whether there are points that store what they add."""
    if level == len(gather.order) - 1:
        row(gather, inputs, pointers, fresh)
        return
    state, text, axis = gather.state, gather.text, gather.order[level]
    loop = text.begin_loop(gather.extents[axis], (), "i", certain=True)
    here = text.add(gather.low[axis], loop.counter)
    there = text.add(here, gather.origin[axis])
    at = {s: text.sub(there, str(s)) for s in {row[axis] for row in gather.how.shifts}}
    near = {s: gather.nearest(i, axis) for s, i in at.items()}
    found = {s: gather.inside(i, axis) for s, i in at.items()}
    inner: list[Input] = []
    for k, i in enumerate(inputs):
        shift, stride = gather.how.shifts[k][axis], state.memrefs[gather.op.ins[k]].strides[axis]
        pointer = state.offset(i.pointer, i.element, text.mul(near[shift], stride))
        inside = i.inside
        if k in gather.how.zeros:
            inside = text.both([inside, found[shift]])
        inner.append(Input(i.argument, i.element, i.stride, i.shift, i.tags, pointer, inside))
    after: list[str] = []
    for memref, pointer in zip(gather.op.outs, pointers, strict=True):
        d = state.memrefs[memref]
        after.append(state.offset(pointer, d.element, text.mul(here, d.strides[axis])))
    if gather.how.fresh is not None:
        mine = gather.inside(text.sub(there, str(gather.how.fresh[axis])), axis)
        fresh = text.both([fresh, mine])
    rows(gather, level + 1, inner, after, fresh)
    text.end_loop(loop, (), state.loop_properties())


def row(gather: Gather, inputs: list[Input], pointers: list[str], fresh: str) -> None:
    """The points of a row: those in the middle by a loop without tests, then the others."""
    text, axis = gather.text, gather.order[-1]
    low, window, origin = gather.low[axis], gather.window[axis], gather.origin[axis]
    high = text.add(low, gather.extents[axis])
    shifts = [i.shift for i in inputs] or [0]
    first = gather.smax(low, gather.smin(text.sub(str(max(shifts)), origin), high))
    end = gather.smin(text.sub(text.add(window, str(min(shifts))), origin), high)
    count = text.sub(gather.smax(end, first), first)
    start, length = text.mul(first, gather.unit), text.mul(count, gather.unit)
    if fresh in ("true", "false"):
        middle(gather, inputs, pointers, start, length, fresh)
    else:
        stored, added, on = text.label("stored"), text.label("added"), text.label("border")
        text.branch_if(fresh, stored, added, (1023, 1))
        for label, all_fresh in ((stored, "true"), (added, "false")):
            text.start(label)
            middle(gather, inputs, pointers, start, length, all_fresh)
            text.branch(on)
        text.start(on)
    border(gather, inputs, pointers, first, count, fresh)


def middle(
    gather: Gather, inputs: list[Input], pointers: list[str], first: str, count: str, fresh: str
) -> None:
    """`count` points from `first` on: in one piece, or in strips where some rows are zeros."""
    state, text = gather.state, gather.text
    everywhere = text.both([i.inside for i in inputs if not is_vector(i)])
    if everywhere == "true":
        d = state.memrefs[gather.op.outs[0]]
        alone = len(gather.order) == 1
        if not alone or not may_begin_at_line(count, d.element, d.strides[gather.innermost]):
            piece(gather, inputs, pointers, first, count, fresh)
            return
        target = state.offset(pointers[0], d.element, first)
        with from_line(state, target, d.element, count) as (start, length):
            piece(gather, inputs, pointers, text.add(first, start), length, fresh)
        return
    more = text.value(f"lshr i64 {text.add(count, str(STRIP - 1))}, {STRIP.bit_length() - 1}")
    strips = text.value(f"select i1 {everywhere}, i64 1, i64 {more}")
    loop = text.begin_loop(strips, (), "strip")
    start = text.mul(loop.counter, str(STRIP))
    short = gather.smin(text.sub(count, start), str(STRIP))
    length = text.value(f"select i1 {everywhere}, i64 {count}, i64 {short}")
    piece(gather, inputs, pointers, text.add(first, start), length, fresh)
    text.end_loop(loop, (), state.loop_properties())


def piece(
    gather: Gather, inputs: list[Input], pointers: list[str], first: str, count: str, fresh: str
) -> None:
    """The loop without tests."""
    state, text, axis = gather.state, gather.text, gather.order[-1]
    begin: list[tuple[str, str]] = []
    for i in inputs:
        away = text.mul(text.sub(gather.origin[axis], str(i.shift)), gather.unit)
        at = text.mul(text.add(first, away), i.stride)
        own = state.offset(i.pointer, i.element, at, inbounds=False)
        pointer = gather.choose(i.inside, "ptr", own, ZEROS)
        stride = i.stride
        if stride != "1" or is_vector(i):
            stride = gather.choose(i.inside, "i64", stride, "0")
        begin.append((pointer, stride))
    loop = text.begin_loop(count, (), "j")
    for i, (pointer, stride) in zip(inputs, begin, strict=True):
        load(gather, i, state.offset(pointer, i.element, text.mul(loop.counter, stride)))
    outputs(gather, pointers, text.add(loop.counter, first), fresh)
    text.end_loop(loop, (), element_properties(gather, loop))


def element_properties(gather: Gather, loop: OpenLoop) -> list[str]:
    """What LLVM knows of a loop over elements."""
    strides = [gather.state.memrefs[m].strides[gather.innermost] for m in gather.op.outs]
    moves = all((integer(s) or 0) != 0 for s in strides)
    group = gather.group if moves else None
    long = any(may_be_long(n, gather.op) for n in gather.op.extents)
    return gather.state.loop_properties(
        parallel_group=group, innermost=True, body=loop, own_width=long
    )


MOST = 4
"""The most points at either end of a row that have code of their own."""


def border(
    gather: Gather, inputs: list[Input], pointers: list[str], first: str, count: str, fresh: str
) -> None:
    """The points before `first`, and those from `first + count` on.

    Where the row is as long as shifts are wide, each has code of its own: which inputs are there is known.
    """
    text, axis = gather.text, gather.order[-1]
    shifts = {i.shift for i in inputs} or {0}
    spread = max(shifts)
    whole = (gather.low[axis], gather.origin[axis]) == ("0", "0") and min(shifts) == 0
    if not whole or spread > MOST:
        few(gather, inputs, pointers, first, count, fresh)
        return
    if not spread and gather.extents[axis] == gather.window[axis]:
        return
    window = gather.window[axis]
    long = text.value(f"icmp sge i64 {window}, {spread}")
    all_ = text.value(f"icmp eq i64 {gather.extents[axis]}, {text.add(window, str(spread))}")
    known, unknown, on = text.label("ends"), text.label("edges"), text.label("row")
    text.branch_if(text.both([long, all_]), known, unknown, (1023, 1))
    text.start(known)
    ends(gather, inputs, pointers, spread, fresh)
    text.branch(on)
    text.start(unknown)
    few(gather, inputs, pointers, first, count, fresh)
    text.branch(on)
    text.start(on)


def ends(gather: Gather, inputs: list[Input], pointers: list[str], spread: int, fresh: str) -> None:
    """The first `spread` points, and as many behind the window."""
    state, text, axis = gather.state, gather.text, gather.order[-1]
    window, first = gather.window[axis], gather.how.fresh
    for at in range(2 * spread):
        late = at - spread
        here = str(at) if late < 0 else text.add(window, str(late))

        def is_there(shift: int, at: int = at, late: int = late) -> bool:
            return at >= shift if late < 0 else late < shift

        mine = fresh if first is not None and is_there(first[axis]) else "false"
        nearest = "0" if late < 0 else text.sub(window, "1")
        with elements(gather) as k:
            for i in inputs:
                there = is_there(i.shift)
                if not there and is_zero(gather, i):
                    state.scalars[i.argument] = zero_of(i.element)
                    continue
                element = text.sub(here, str(i.shift)) if there else nearest
                pointer = place(gather, i, element, k)
                load(gather, i, gather.choose(i.inside, "ptr", pointer, ZEROS))
            outputs(gather, pointers, text.add(text.mul(here, gather.unit), k), mine)


def few(
    gather: Gather, inputs: list[Input], pointers: list[str], first: str, count: str, fresh: str
) -> None:
    """The points before `first`, and those from `first + count` on, in a loop."""
    state, text, axis = gather.state, gather.text, gather.order[-1]
    loop = text.begin_loop(text.sub(gather.extents[axis], count), (), "edge")
    here = text.add(gather.low[axis], loop.counter)
    before = text.value(f"icmp slt i64 {here}, {first}")
    behind = text.add(here, count)
    at = text.value(f"select i1 {before}, i64 {here}, i64 {behind}")
    there = text.add(at, gather.origin[axis])
    own = {s: text.sub(there, str(s)) for s in {i.shift for i in inputs}}
    near = {s: gather.nearest(j, axis) for s, j in own.items()}
    found = {s: gather.inside(j, axis) for s, j in own.items()}
    if gather.how.fresh is not None:
        mine = text.sub(there, str(gather.how.fresh[axis]))
        fresh = text.both([fresh, gather.inside(mine, axis)])
    with elements(gather) as k:
        for i in inputs:
            pointer = place(gather, i, near[i.shift], k)
            if is_zero(gather, i):
                inside = text.both([i.inside, found[i.shift]])
                pointer = gather.choose(inside, "ptr", pointer, ZEROS)
            load(gather, i, pointer)
        outputs(gather, pointers, text.add(text.mul(at, gather.unit), k), fresh)
    with scalar_only(state):
        text.end_loop(loop, (), state.loop_properties())


@contextmanager
def elements(gather: Gather) -> Generator[str]:
    """The elements of one point of the row: itself, or those of the axes that were joined."""
    if gather.unit == "1":
        yield "0"
        return
    loop = gather.text.begin_loop(gather.unit, (), "k", certain=True)
    yield loop.counter
    gather.text.end_loop(loop, (), element_properties(gather, loop))


def place(gather: Gather, i: Input, at: str, k: str) -> str:
    """The address of an element of an input's row."""
    text = gather.text
    element = text.add(text.mul(at, gather.unit), k)
    return gather.state.offset(i.pointer, i.element, text.mul(element, i.stride))


def is_zero(gather: Gather, i: Input) -> bool:
    """Whether an input is 0 where it has no element."""
    return i.argument.index in gather.how.zeros


def zero_of(element: Attribute) -> str:
    return float_of(0.0, element) if is_float(element) else "0"


def is_vector(i: Input) -> bool:
    """Whether an element is a vector: a loop over such stands still at the first zeros."""
    return lanes_of(i.element) > 1


@contextmanager
def scalar_only(state: KernelState) -> Generator[None]:
    before, state.scalar_only = state.scalar_only, True
    yield
    state.scalar_only = before


def load(gather: Gather, i: Input, pointer: str) -> None:
    tags = f"{i.tags}, !llvm.access.group {gather.group}"
    hint = i.argument.name_hint
    gather.state.scalars[i.argument] = gather.state.load(pointer, i.element, tags, hint)


def outputs(gather: Gather, pointers: list[str], at: str, fresh: str) -> None:
    """The body at a point whose inputs are loaded; where the point is `fresh`, nothing was there."""
    state, text, op = gather.state, gather.text, gather.op
    for inner in op.body.block.ops:
        if not isinstance(inner, array.YieldOp):
            state.emit(inner)
    group = f", !llvm.access.group {gather.group}"
    yielded = zip(op.outs, op.out_kinds, op.yielded, pointers, strict=True)
    for memref, kind, value, pointer in yielded:
        d, tags = state.memrefs[memref], state.scopes.tags(memref) + group
        stride = d.strides[gather.innermost]
        target = state.offset(pointer, d.element, text.mul(at, stride))
        new = state.scalar(value)
        if kind != "store" and fresh != "true":
            old = state.load(target, d.element, tags)
            if fresh != "false":
                old = gather.choose(fresh, value_type(d.element), identity(kind, d.element), old)
            new = combine(state, kind, d.element, old, new, free=False)
        state.store(new, target, d.element, tags)
