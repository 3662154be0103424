"""`array.map` as loop nests that LLVM vectorizes.

::

    array.map(%n, %m) ins(%a) outs(%c) kinds ["store"] { ... }     for i < n: for j < m: c[i, j] = ...

What is decided here, because LLVM cannot decide it:

- *Order.* The innermost loop walks the dimension along which most operands have unit stride.
- *Collapse.* Two loops become one where every operand is contiguous across them; where that is
  known only at run time, the inner trip count is chosen then (an outer loop of one trip remains).
- *Direction.* Rows that lie backwards are walked from their ends if they are the most.
- *Registers.* An output that stands still in the innermost loops (a reduction) is accumulated in a
  register, with `reassoc`, and combined with memory once. Sums of gradients have an order (`lane_sums`).
- *Strips.* Several "add"s to one array at different views (the adjoint of a stencil) cannot be
  vectorized in one loop: the inner loop runs in strips of 256 points. The first stage evaluates the
  body and stores the contributions in stack buffers, then each output has a loop of its own. Those that go to
  other rows need none (`rows_apart`).
- *Stages.* Of several tangents at once the elements are vectors: a strip is first all that is numbers, then
  all that is vectors (`map_stages`).
- *Gathers.* A map with a window has an innermost loop without tests (`gather_maps`).
- *Independence.* What one point writes no other point reads, so LLVM is told to skip its dependence
  analysis (`llvm.loop.parallel_accesses`).
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Attribute

from ...dialects import array
from ..analysis.row_order import INNERMOST, innermost_of
from .gather_maps import Part, lower_gather
from .kernel_state import KernelState, lanes_of, value_type
from .llvm_text import integer, is_few
from .map_nest import (
    Nest,
    Operand,
    Output,
    identity,
    is_float,
    is_number,
    overwritten_inputs,
    registers,
    registers_begun,
    step_rows,
    write_registers,
)
from .map_points import emit_innermost, emit_point
from .map_stages import Stage, stages_of
from .rows_apart import are_rows_apart, place_of

SHORT = 8
"""Points from which on a map of numbers and vectors has a loop for each."""


def lower_map(state: KernelState, op: array.MapOp, part: Part | None = None) -> None:
    """Write the loops of a map; of a part, with which the operands begin where it does not gather."""
    assert array.READS_FIRST not in op.attributes, "resolve-overlap has not run"
    extents = [state.scalar(e) for e in op.extents] if part is None else list(part.extents)
    if any((n := integer(e)) is not None and n <= 0 for e in extents):
        return
    before = state.side_by_side, state.map_depth
    state.side_by_side = None if all(map(is_short, extents)) else True
    state.map_depth = state.text.depth + sum(not is_few(n) for n in extents)
    lower_points(state, op, extents, part)
    state.side_by_side, state.map_depth = before


def lower_points(
    state: KernelState, op: array.MapOp, extents: list[str], part: Part | None
) -> None:
    descriptors = [state.memrefs[m] for m in (*op.ins, *op.outs)]
    order = loop_order(state, op, extents)
    if op.gathers is not None:
        lower_gather(state, op, op.gathers, order, part)
        return
    memrefs = [*op.ins, *op.outs]
    operands = [
        Operand(m, d.element, [d.strides[axis] for axis in order], state.scopes.tags(m), d.pointer)
        for m, d in zip(memrefs, descriptors, strict=True)
    ]
    nest = Nest(
        state,
        op,
        [extents[axis] for axis in order],
        operands[: len(op.ins)],
        [
            Output(o.memref, o.element, o.strides, o.tags, o.pointer, kind, value)
            for o, kind, value in zip(
                operands[len(op.ins) :], op.out_kinds, op.yielded, strict=True
            )
        ],
        innermost=order[-1] if order else None,
    )
    beside = outputs_beside(nest, order)
    if not beside:
        collapse(nest)
    face_forward(nest)
    place_outputs(nest, beside)
    if nest.extents and not is_short(nest.extents[-1]):
        stores_numbers = any(is_number(o) for o in nest.outputs)
        nest.stages = stages_of(op.body.block, stores_numbers, overwritten_inputs(nest))
    identities = [
        (value_type(o.element), identity(o.kind, o.element)) for o in nest.outputs if o.still
    ]
    pointers = [o.pointer for o in nest.operands]
    with where_not_empty(nest):
        emit_level(nest, 0, pointers, [i for _, i in identities])


@contextmanager
def where_not_empty(nest: Nest) -> Generator[None]:
    """One test before the nest that all its loops run, so that none inside needs its own.

    LLVM would clone an outer loop to move the tests of the inner ones out of it.
    """
    text = nest.state.text
    known = [integer(e) for e in nest.extents]
    tests = [
        text.value(f"icmp sgt i64 {e}, 0")
        for e, n in zip(nest.extents, known, strict=True)
        if n is None
    ]
    if not tests:
        yield
        return
    nest_, done = text.label("nest"), text.label("done")
    text.branch_if(text.both(tests), nest_, done)
    text.start(nest_)
    yield
    text.branch(done)
    text.start(done)


def loop_order(state: KernelState, op: array.MapOp, extents: list[str]) -> list[int]:
    """The axes from the outermost loop to the innermost; axes of extent 1 have no loop.

    Of a sum only what is read counts (`row_order`): that something is saved beside it must not change the
    order of its terms.
    """
    axes = [a for a in range(len(extents)) if extents[a] != "1"]
    if len(axes) < 2:
        return axes
    outs = [state.memrefs[m] for m in op.outs]
    sums = (is_free_sum(k, o.element, o.strides) for k, o in zip(op.out_kinds, outs, strict=True))
    operands = [state.memrefs[m] for m in op.ins]
    if not any(sums):
        operands += outs
    inner = innermost_of(axes, [d.strides for d in operands])
    decided = op.attributes.get(INNERMOST)
    if isinstance(decided, IntegerAttr) and decided.value.data in axes:
        inner = decided.value.data
    if inner == axes[0]:
        return axes[::-1]
    return [a for a in axes if a != inner] + [inner]


def collapse(nest: Nest) -> None:
    """Merge loops that all operands walk without a gap.

    A sum in a free order is that of rows, or of all elements: which, must not depend on where its terms lie.
    """
    text = nest.state.text
    is_sum = any(is_free_sum(o.kind, o.element, o.strides) for o in nest.outputs)
    inner = len(nest.extents) - 1
    proved = "true"
    while inner > 0:
        outer = inner - 1
        flags: list[str] = []
        for o in nest.operands:
            step = text.mul(nest.extents[inner], o.strides[inner])
            flags.append(same(nest.state, o.strides[outer], step))
        proved = text.both([proved, *dict.fromkeys(flags)])
        if proved == "false" or (is_sum and proved != "true"):
            return
        total = text.mul(nest.extents[outer], nest.extents[inner])
        if proved == "true":
            nest.extents[outer : inner + 1] = [total]
            for o in nest.operands:
                del o.strides[outer]
        else:
            small = nest.extents
            small[inner] = text.value(f"select i1 {proved}, i64 {total}, i64 {small[inner]}", "n")
            small[outer] = text.value(f"select i1 {proved}, i64 1, i64 {small[outer]}", "n")
            if outer:
                # The next pair joins where the inner one did: its extents are those joined so far.
                merged = nest.extents[inner]
                _collapse_further(nest, inner, outer, proved, merged)
            return
        inner = outer


def _collapse_further(nest: Nest, inner: int, outer: int, proved: str, merged: str) -> None:
    """After a join decided at run time, join the remaining outer loops into the innermost one too."""
    text = nest.state.text
    for axis in reversed(range(outer)):
        flags = [
            same(nest.state, o.strides[axis], text.mul(merged, o.strides[inner]))
            for o in nest.operands
        ]
        proved = text.both([proved, *dict.fromkeys(flags)])
        if proved == "false":
            return
        total = text.mul(nest.extents[axis], merged)
        merged = text.value(f"select i1 {proved}, i64 {total}, i64 {merged}", "n")
        nest.extents[axis] = text.value(f"select i1 {proved}, i64 1, i64 {nest.extents[axis]}", "n")
        nest.extents[inner] = merged


def face_forward(nest: Nest) -> None:
    """Begin at the other end of the rows if most of them lie backwards: each costs a shuffle a vector.

    Of a sum what is saved beside it does not count: its terms would come in another order.
    """
    if not nest.extents:
        return
    is_sum = any(is_free_sum(o.kind, o.element, o.strides) for o in nest.outputs)
    ways = [o.strides[-1] for o in (nest.inputs if is_sum else nest.operands)]
    added = [o.strides[-1] for o in nest.outputs if o.kind != "store"]  # read and written
    ways += added if not is_sum else [*added, *added]
    if ways.count("-1") <= ways.count("1"):
        return
    text = nest.state.text
    last = text.value(f"sub i64 {nest.extents[-1]}, 1")
    for o in nest.operands:
        distance = text.mul(last, o.strides[-1])
        o.pointer = nest.state.offset(o.pointer, o.element, distance, inbounds=False)
        o.strides = [*o.strides[:-1], text.mul("-1", o.strides[-1])]


def same(state: KernelState, a: str, b: str) -> str:
    """Whether two strides are equal: "true", "false" or an i1."""
    if a == b:
        return "true"
    x, y = integer(a), integer(b)
    if (x is not None and y is not None) or x == 0 or y == 0:
        return "false"
    return state.text.value(f"icmp eq i64 {a}, {b}")


def outputs_beside(nest: Nest, order: list[int]) -> set[tuple[int, int]]:
    """The pairs of outputs that the innermost loop writes to different rows of one array."""
    adding = [k for k, o in enumerate(nest.outputs) if o.kind == "add"]
    if not order or len(adding) < 2:
        return set()
    extents = [*nest.op.extents]
    places = {k: place for k in adding if (place := place_of(nest.outputs[k].memref)) is not None}
    return {
        (j, k)
        for k, later in places.items()
        for j, earlier in places.items()
        if j < k and are_rows_apart(earlier, later, extents, order[-1])
    }


def place_outputs(nest: Nest, beside: set[tuple[int, int]]) -> None:
    """Decide for each output: register, written in the loop, or buffered."""
    for o in nest.outputs:
        if o.kind != "store":
            while o.still < len(o.strides) and o.strides[-1 - o.still] == "0":
                o.still += 1
    if not nest.extents:
        return
    for k, o in enumerate(nest.outputs):
        if o.still:
            continue
        for j, earlier in enumerate(nest.outputs[:k]):
            if earlier.still or nest.state.scopes.apart(earlier.memref, o.memref):
                continue
            if (j, k) in beside:
                continue
            if earlier.buffered or earlier.in_order or not harmless_together(nest, earlier, o):
                o.in_order = lanes_of(o.element) > 1
                o.buffered = not o.in_order
                break


def is_free_sum(kind: str, element: Attribute, strides: Sequence[str]) -> bool:
    """Whether an output has the sum, or the product, of the floats of several points."""
    return kind in ("add", "mul") and "0" in strides and is_float(element)


def is_short(count: str) -> bool:
    """Whether a loop is certainly too short to be worth several."""
    known = integer(count)
    return known is not None and known < SHORT


def harmless_together(nest: Nest, a: Output, b: Output) -> bool:
    """True when writing a then b point by point needs no order among points."""
    if a.kind == b.kind == "store":
        return True
    return a.memref is b.memref or nest.state.alias.same_view(a.memref, b.memref)


def emit_level(nest: Nest, level: int, pointers: list[str], accumulators: list[str]) -> list[str]:
    """The loop at `level` and all inside; `accumulators` belong to the outputs in registers.

    Returns the accumulators after it. An output's register starts at the identity where its still
    loops begin, and meets memory where they end.
    """
    state, depth = nest.state, len(nest.extents)
    if level == depth:
        return emit_point(nest, Stage(), pointers, accumulators, {}, "")
    if level == depth - 1:
        return emit_innermost(nest, pointers, accumulators)
    inside = registers_begun(nest, level + 1)
    carried = [
        (value_type(o.element), accumulators[i])
        for i, o in enumerate(registers(nest))
        if i not in inside
    ]
    loop = state.text.begin_loop(nest.extents[level], carried, "i", certain=True)
    rows = step_rows(nest, pointers, level, loop.counter)
    values = iter(loop.values)
    before = [
        identity(o.kind, o.element) if i in inside else next(values)
        for i, o in enumerate(registers(nest))
    ]
    after = emit_level(nest, level + 1, rows, before)
    write_registers(nest, level + 1, rows, after)
    results = iter(
        state.text.end_loop(
            loop, [a for i, a in enumerate(after) if i not in inside], state.loop_properties()
        )
    )
    final = [accumulators[i] if i in inside else next(results) for i in range(len(registers(nest)))]
    if level == 0:
        write_registers(nest, 0, pointers, final)
    return final
