"""The innermost loop of a map: its points, in strips where outputs are buffered or stages hand on numbers."""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from .floats_to_llvm import factors_of
from .invariant_divisors import (
    UNSEEN,
    are_tame,
    are_wild,
    invariant_divisors,
    look_at,
    quotient_by,
    read_divisors,
    with_reciprocals,
)
from .kernel_state import KernelState, value_type
from .lane_sums import LaneSums, lanes_of_sums
from .llvm_text import integer
from .map_nest import Nest, Output, combine, registers, step_rows, strip_buffer, write_registers
from .map_stages import Stage, emit_wide, in_order, wild
from .row_ends import lanes_of, parts_of_row, properties_of_end
from .strips import add_together, groups_of, parts_of_group, write_margins
from .vector_rows import is_row_of_vectors, write_row
from .vector_width import may_be_long
from .whole_lines import LINE, begins_behind, from_line, may_begin_at_line

STRIP, SHORT_STRIP = 256, 64
"""Points of a strip: a few buffers of this many elements stay in the first-level cache. Shorter ones where
elements are vectors, of which one point has a cache line: there numbers have dozens of buffers."""


def emit_innermost(nest: Nest, pointers: list[str], accumulators: list[str]) -> list[str]:
    """The innermost loop: plain, or in strips where outputs are buffered."""
    state, text = nest.state, nest.state.text
    last = len(nest.extents) - 1
    count = nest.extents[last]
    types = [value_type(o.element) for o in registers(nest)]
    lanes = lanes_of_sums(nest, count)
    nest.sums = sums = LaneSums(nest, lanes) if lanes else None
    if sums is not None and is_row_of_vectors(nest):
        write_row(nest, sums, pointers, count)
        final = accumulators
    elif (at := begins_at_line(nest)) is not None:
        target = pointers[len(nest.inputs) + at]
        with from_line(state, target, nest.outputs[at].element, count) as (first, length):
            rows = step_rows(nest, pointers, last, first)
            final = whole_loop(nest, rows, accumulators, length)
    elif sums is None and not any(o.buffered for o in nest.outputs) and len(nest.stages) == 1:
        final = whole_loop(nest, pointers, accumulators, count)
    else:
        points = points_of_strip(nest)
        nest.together = groups_of(nest, count)
        buffers = buffers_of(nest, points)
        known = integer(count)
        if known is not None and known <= points:
            final = strip(nest, pointers, accumulators, count, buffers)
        else:
            more = text.add(count, str(points - 1))
            strips = text.value(f"lshr i64 {more}, {points.bit_length() - 1}")
            carried = list(zip(types, accumulators, strict=True))
            loop = text.begin_loop(strips, carried, "strip", certain=True)
            start = text.mul(loop.counter, str(points))
            left = text.sub(count, start)
            smin = state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
            length = text.value(f"call i64 @{smin}(i64 {left}, i64 {points})")
            rows = step_rows(nest, pointers, last, start)
            after = strip(nest, rows, list(loop.values), length, buffers)
            final = list(text.end_loop(loop, after, state.loop_properties()))
    if sums is not None:
        final = sums.finish(final)
    if last == 0:
        write_registers(nest, 0, pointers, final)
    return final


def whole_loop(nest: Nest, pointers: list[str], accumulators: list[str], count: str) -> list[str]:
    """The innermost loop; where it divides by what stands still, with products, if they will do."""
    state, text, stage = nest.state, nest.state.text, nest.stages[0]
    divisors = invariant_divisors(nest, count)
    if not divisors:
        return points_loop(nest, stage, pointers, accumulators, count, {})[0]
    quick, plain, done = text.label("products"), text.label("divisions"), text.label("whole")
    tame = are_tame(state, read_divisors(nest, pointers, divisors), count)
    text.branch_if(tame, quick, plain, (1023, 1))
    text.start(quick)
    again = replace(stage, quotients=with_reciprocals(state, divisors))
    _, wildness = points_loop(nest, again, pointers, accumulators, count, {})
    text.branch_if(text.value(f"icmp eq i64 {wildness}, 0"), done, plain, (1023, 1))
    text.start(plain)
    points_loop(nest, stage, pointers, accumulators, count, {})
    text.branch(done)
    text.start(done)
    return accumulators


def begins_at_line(nest: Nest) -> int | None:
    """The output at whose lines the loop over one long row is to begin."""
    simple = len(nest.extents) == len(nest.stages) == 1 and not registers(nest)
    computes = len([*nest.op.body.block.ops]) > 1  # a copy is a call
    if not simple or not computes or any(o.buffered for o in nest.outputs):
        return None
    if not any(may_be_long(n, nest.op) for n in nest.op.extents):
        return None
    for k, o in enumerate(nest.outputs):
        if may_begin_at_line(nest.extents[0], o.element, o.strides[0]):
            return k if begins_behind(o.memref, o.element) else None
    return None


def points_of_strip(nest: Nest) -> int:
    wide = any(isinstance(o.element, VectorType) for o in nest.operands)
    return SHORT_STRIP if wide else STRIP


def buffers_of(nest: Nest, points: int) -> dict[SSAValue, str]:
    """A stack buffer for each value of the body that is buffered, or that a later stage takes."""
    state = nest.state
    body = nest.op.body.block
    kept = dict.fromkeys(o.value for o in nest.outputs if o.buffered)
    kept |= dict.fromkeys(value for stage in nest.stages for value in in_order(body, stage.taken))
    found: dict[SSAValue, str] = {}
    with_margin = {nest.outputs[k].value for group in nest.together for k in group.columns}
    for value in kept:
        if owner_block(value) is body:
            margin = LINE if value in with_margin else 0
            found[value] = strip_buffer(state, len(found), points, margin)
    divided_by = dict.fromkeys(nest.stages[-1].guards.divisors.values())
    inside = [v for v in divided_by if owner_block(v) is body]
    nest.reciprocals = {
        v: strip_buffer(state, len(found) + k, points) for k, v in enumerate(inside)
    }
    first = len(found) + len(inside)
    if nest.sums is not None:
        nest.sums.take_buffers(first, points)
    return found


def owner_block(value: SSAValue) -> Block | None:
    return value.owner.parent if isinstance(value.owner, Operation) else value.owner


def strip(
    nest: Nest,
    pointers: list[str],
    accumulators: list[str],
    count: str,
    buffers: dict[SSAValue, str],
) -> list[str]:
    """One strip: the body for all its points, stage by stage, then each buffered output in order."""
    state, text = nest.state, nest.state.text
    final, wildness = accumulators, ""
    groups = [(group, parts_of_group(nest, group, pointers, buffers)) for group in nest.together]
    for group, parts in groups:
        write_margins(state, group, parts)
    for stage in nest.stages:
        if wildness:
            final = versions(nest, stage, wildness, pointers, final, count, buffers)
        else:
            final, wildness = points_loop(nest, stage, pointers, final, count, buffers)
    if nest.sums is not None:
        nest.sums.add_kept(count)
    last = len(nest.extents) - 1
    members = {k: min(group.columns) for group in nest.together for k in group.columns}
    written = {min(group.columns): (group, parts) for group, parts in groups}
    for k, (o, pointer) in enumerate(zip(nest.outputs, pointers[len(nest.inputs) :], strict=True)):
        if members.get(k) == k:
            add_together(nest, *written[k], count)
        if not o.buffered or k in members:
            continue
        lanes = lanes_of(nest, nest.stages[-1], count)
        for first, part in parts_of_row(state, count, lanes):
            loop = text.begin_loop(part, (), "j", certain=not lanes or first != "0")
            j = text.add(first, loop.counter)
            group = f", !llvm.access.group {nest.group}"
            if o.value in buffers:
                at = state.offset(buffers[o.value], o.element, j)
                new = state.load(at, o.element, group)
            else:
                new = state.scalar(o.value)
            target = state.offset(pointer, o.element, text.mul(j, o.strides[last]))
            write(state, o, target, new, group)
            parallel = nest.group if independent(o, last) else None
            if first == "0":
                properties = state.loop_properties(parallel_group=parallel, innermost=True)
            else:
                properties = properties_of_end(state, part, nest.group)
            text.end_loop(loop, (), properties)
    return final


def independent(o: Output, axis: int) -> bool:
    """True when no two points along the axis certainly write one element."""
    stride = integer(o.strides[axis])
    return (stride is not None and stride != 0) or o.kind == "store"


def points_loop(
    nest: Nest,
    stage: Stage,
    pointers: list[str],
    accumulators: list[str],
    count: str,
    buffers: dict[SSAValue, str],
) -> tuple[list[str], str]:
    """The innermost loop over points of one stage, buffered values going to their buffers.

    Besides the registers whether it has found wild numbers (0 where it has not), if it looks for them.
    """
    state, text = nest.state, nest.state.text
    if lanes := lanes_of(nest, stage, count):
        in_parts(nest, stage, pointers, count, buffers, lanes)
        return accumulators, ""
    last = len(nest.extents) - 1
    apart = nest.sums.sums if nest.sums is not None else {}
    mine = [k for k, o in enumerate(registers(nest)) if stage.does(o.element) and k not in apart]
    carried = [(value_type(registers(nest)[k].element), accumulators[k]) for k in mine]
    if stage.checks:
        carried.append(("i64", "0"))
    elif stage.quotients:
        carried += UNSEEN
    before = state.last_bits
    loop = text.begin_loop(count, carried, "j", certain=True)
    rows = step_rows(nest, pointers, last, loop.counter)
    group = f", !llvm.access.group {nest.group}"
    current = list(accumulators)
    for k, value in zip(mine, loop.values, strict=False):
        current[k] = value
    after = emit_point(nest, stage, rows, current, buffers, group, loop.counter)
    following = [after[k] for k in mine]
    if stage.checks:
        found = check_point(nest, stage, group, loop.counter)
        following.append(text.value(f"or i64 {loop.values[-1]}, {found}"))
    elif stage.quotients:
        seen = list(loop.values[len(mine) :])
        for value in dict.fromkeys(op.operands[0] for op in stage.quotients):
            seen = look_at(state, state.scalar(value), seen)
        following += seen
    here = [o for o in nest.outputs if not o.still and not o.buffered and stage.does(o.element)]
    parallel = all(independent(o, last) and not o.in_order for o in here)
    group_ = nest.group if parallel else None
    if array.OWN_ORDER in nest.op.attributes:
        before = replace(before, work=state.last_bits.work)
    properties = state.loop_properties(
        parallel_group=group_,
        innermost=True,
        since=before,
        body=loop,
        own_width=any(may_be_long(n, nest.op) for n in nest.op.extents),
    )
    final, left = list(accumulators), text.end_loop(loop, following, properties)
    for k, value in zip(mine, left, strict=False):
        final[k] = value
    if stage.quotients:
        return final, are_wild(state, left[len(mine) :])
    return final, left[-1] if stage.checks else ""


def in_parts(
    nest: Nest,
    stage: Stage,
    pointers: list[str],
    count: str,
    buffers: dict[SSAValue, str],
    lanes: int,
) -> None:
    """The innermost loop over whole vectors, then over the points that are left."""
    state, text = nest.state, nest.state.text
    group = f", !llvm.access.group {nest.group}"
    for first, part in parts_of_row(state, count, lanes):
        before = state.last_bits
        loop = text.begin_loop(part, (), "j", certain=first != "0")
        j = text.add(first, loop.counter)
        rows = step_rows(nest, pointers, len(nest.extents) - 1, j)
        emit_point(nest, stage, rows, [], buffers, group, j)
        if first == "0":
            own_width = any(may_be_long(n, nest.op) for n in nest.op.extents)
            properties = state.loop_properties(
                parallel_group=nest.group,
                innermost=True,
                since=before,
                body=loop,
                own_width=own_width,
            )
        else:
            properties = properties_of_end(state, part, nest.group)
        text.end_loop(loop, (), properties)


def check_point(nest: Nest, stage: Stage, group: str, counter: str) -> str:
    """Whether the numbers of one point are wild; keeps the reciprocals of divisors."""
    state, reciprocals = nest.state, dict[SSAValue, str]()
    found = wild(state, stage.guards, reciprocals)
    for value, place in nest.reciprocals.items():
        at = state.offset(place, value.type, counter)
        state.store(reciprocals[value], at, value.type, group)
    return found


def versions(
    nest: Nest,
    stage: Stage,
    wildness: str,
    pointers: list[str],
    accumulators: list[str],
    count: str,
    buffers: dict[SSAValue, str],
) -> list[str]:
    """The stage of the vectors, with plain products where no number is wild."""
    text = nest.state.text
    tame, wild_, merge = text.label("tame"), text.label("wild"), text.label("merge")
    condition = text.value(f"icmp eq i64 {wildness}, 0")
    text.branch_if(condition, tame, wild_, (1023, 1))
    ends: list[tuple[str, list[str]]] = []
    for label, version in ((tame, replace(stage, tame=True)), (wild_, stage)):
        text.start(label)
        final, _ = points_loop(nest, version, pointers, accumulators, count, buffers)
        ends.append((text.block, final))
        text.branch(merge)
    text.start(merge)
    joined: list[str] = []
    for k, o in enumerate(registers(nest)):
        came = [(final[k], label) for label, final in ends]
        if came[0][0] == came[1][0]:
            joined.append(came[0][0])
        else:
            incoming = ", ".join(f"[ {value}, %{label} ]" for value, label in came)
            joined.append(text.value(f"phi {value_type(o.element)} {incoming}"))
    return joined


def emit_point(
    nest: Nest,
    stage: Stage,
    pointers: list[str],
    accumulators: list[str],
    buffers: dict[SSAValue, str],
    group: str,
    counter: str = "0",
) -> list[str]:
    """The body for one point: load, compute, write; returns the registers after it."""
    state, op = nest.state, nest.op
    for argument, o, pointer in zip(op.body.block.args, nest.inputs, pointers, strict=False):
        if argument not in stage.taken and is_read(argument, stage):
            state.scalars[argument] = state.load(
                pointer, o.element, o.tags + group, argument.name_hint
            )
    for value in in_order(op.body.block, stage.taken):
        at = state.offset(buffers[value], value.type, counter)
        state.scalars[value] = state.load(at, value.type, group, value.name_hint)
    reciprocals: dict[SSAValue, str] = {}
    for value, place in nest.reciprocals.items() if stage.tame else ():
        at = state.offset(place, value.type, counter)
        reciprocals[value] = state.load(at, value.type, group)
    for inner in op.body.block.ops:
        if inner in stage.quotients:
            dividend = state.scalar(inner.operands[0])
            made = quotient_by(state, dividend, *stage.quotients[inner])
            state.scalars[inner.results[0]] = made
        elif not isinstance(inner, array.YieldOp) and stage.does(inner.results[0].type):
            emit_wide(state, inner, stage, reciprocals)
    after, end = list(accumulators), op.body.block.last_op
    assert end is not None
    position = 0
    for o, pointer in zip(nest.outputs, pointers[len(nest.inputs) :], strict=True):
        if not stage.does(o.element):
            position += o.still > 0
        elif o.still:
            new, old = state.scalar(o.value), after[position]
            factors = factors_of(state, o.value, new, end)
            if nest.sums is not None and position in nest.sums.sums:
                nest.sums.keep(position, counter, new, factors, group)
            else:
                after[position] = combine(
                    state, o.kind, o.element, old, new, free=True, factors=factors
                )
            position += 1
        elif not o.buffered:
            new = state.scalar(o.value)
            write(state, o, pointer, new, group, factors_of(state, o.value, new, end))
    for value, buffer in buffers.items():
        if stage.does(value.type):
            at = state.offset(buffer, value.type, counter)
            state.store(state.scalar(value), at, value.type, group)
    return after


def is_read(argument: SSAValue, stage: Stage) -> bool:
    """Whether a stage reads an element of an input itself."""
    if stage.does(argument.type):
        return True
    return any(
        use.operation.results and stage.does(use.operation.results[0].type) for use in argument.uses
    )


def write(
    state: KernelState,
    o: Output,
    pointer: str,
    new: str,
    group: str,
    factors: tuple[str, str] | None = None,
) -> None:
    """Write one element as the output's kind says."""
    tags = o.tags + group
    if o.kind != "store":
        old = state.load(pointer, o.element, tags)
        new = combine(state, o.kind, o.element, old, new, free=False, factors=factors)
    state.store(new, pointer, o.element, tags)
