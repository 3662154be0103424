"""`array.map` as loop nests that LLVM vectorizes.

::

    array.map(%n, %m) ins(%a) outs(%c) kinds ["store"] { ... }     for i < n: for j < m: c[i, j] = ...

What is decided here, because LLVM cannot decide it:

- *Order.* The innermost loop walks the dimension along which most operands have unit stride.
- *Collapse.* Two loops become one where every operand is contiguous across them; where only the run
  knows, the inner trip count is chosen then (an outer loop of one trip remains).
- *Registers.* An output that stands still in the innermost loops (a reduction) is accumulated in a
  register, with `reassoc`, and combined with memory once.
- *Strips.* Several "add"s to one array at different views (the adjoint of a stencil) cannot be
  vectorized in one loop: the inner loop runs in strips of 256 points. The first stage evaluates the
  body and stores the contributions in stack buffers, then each output has a loop of its own.
- *Lanes.* Of several tangents at once the elements are vectors, and a loop over these is none that LLVM
  would vectorize over points. So the first stage of a strip is all that is numbers, with the vectorizer; the
  second is all that is vectors, and reads from stack buffers what it needs of the numbers.
- *Independence.* What one point writes no other point reads, so LLVM is told to skip its dependence
  analysis (`llvm.loop.parallel_accesses`).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, VectorType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from .kernel_state import Descriptor, KernelState, lanes_of, number_type, value_type
from .llvm_text import integer
from .scalars_to_llvm import FAST, float_of

STRIP = 256
"""Points of a strip: a few buffers of this many elements stay in the first-level cache."""


@dataclass
class Operand:
    """An input or output of a map, its strides in loop order."""

    memref: SSAValue
    element: Attribute
    strides: list[str]
    tags: str
    pointer: str
    """The address of element (0, ..., 0)."""


@dataclass
class Output(Operand):
    kind: str
    value: SSAValue
    """The element that the body yields."""
    still: int = 0
    """In how many innermost loops the output stands still: it lives in a register there."""
    buffered: bool = False
    """Written by a loop of its own from a buffer."""
    in_order: bool = False
    """Written in the loop, whose points have to come one after another: its elements are vectors anyhow."""


@dataclass(frozen=True)
class Stage:
    """The part of a map that one loop over points computes; by default all of it."""

    wide: bool | None = None
    """Whether it is what has vectors for elements, or what has numbers."""
    taken: frozenset[SSAValue] = frozenset()
    """Numbers that it reads from the buffers of the stage before."""

    def does(self, element: Attribute) -> bool:
        """Whether values of this type are computed here."""
        return self.wide is None or self.wide == isinstance(element, VectorType)


@dataclass
class Nest:
    """A map on its way to loops."""

    state: KernelState
    op: array.MapOp
    extents: list[str]
    """Trip counts, outermost first."""
    inputs: list[Operand]
    outputs: list[Output]
    group: str = field(init=False)
    stages: tuple[Stage, ...] = (Stage(),)
    """What the loops over points do, one loop after the other."""

    def __post_init__(self) -> None:
        self.group = self.state.metadata.empty()

    @property
    def operands(self) -> list[Operand]:
        return [*self.inputs, *self.outputs]


def lower_map(state: KernelState, op: array.MapOp) -> None:
    """Write the loops of a map."""
    extents = [state.scalar(e) for e in op.extents]
    if any((n := integer(e)) is not None and n <= 0 for e in extents):
        return
    descriptors = [state.memrefs[m] for m in (*op.ins, *op.outs)]
    order = loop_order(extents, descriptors, len(op.ins))
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
    )
    collapse(nest)
    place_outputs(nest)
    nest.stages = stages_of(nest)
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


def loop_order(extents: list[str], operands: list[Descriptor], inputs: int) -> list[int]:
    """The axes from the outermost loop to the innermost; axes of extent 1 have no loop.

    Unit strides decide the innermost; an operand that is reduced or broadcast counts half.
    """
    axes = [a for a in range(len(extents)) if extents[a] != "1"]
    if len(axes) < 2:
        return axes

    def score(axis: int) -> int:
        total = 0
        for d in operands:
            if d.strides[axis] == "1":
                total += 1 if any(d.strides[a] == "0" for a in axes) else 2
        return total

    inner = max(axes, key=lambda a: (score(a), a))
    if inner == axes[0] and score(inner):
        return axes[::-1]
    return [a for a in axes if a != inner] + [inner]


def collapse(nest: Nest) -> None:
    """Merge loops that all operands walk without a gap."""
    text = nest.state.text
    inner = len(nest.extents) - 1
    proved = "true"
    while inner > 0:
        outer = inner - 1
        flags: list[str] = []
        for o in nest.operands:
            step = text.mul(nest.extents[inner], o.strides[inner])
            flags.append(same(nest.state, o.strides[outer], step))
        proved = text.both([proved, *dict.fromkeys(flags)])
        if proved == "false":
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


def same(state: KernelState, a: str, b: str) -> str:
    """Whether two strides are equal: "true", "false" or an i1."""
    if a == b:
        return "true"
    x, y = integer(a), integer(b)
    if (x is not None and y is not None) or x == 0 or y == 0:
        return "false"
    return state.text.value(f"icmp eq i64 {a}, {b}")


def place_outputs(nest: Nest) -> None:
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
        for earlier in nest.outputs[:k]:
            if earlier.still or nest.state.scopes.apart(earlier.memref, o.memref):
                continue
            if earlier.buffered or earlier.in_order or not harmless_together(nest, earlier, o):
                o.in_order = lanes_of(o.element) > 1
                o.buffered = not o.in_order
                break


def stages_of(nest: Nest) -> tuple[Stage, ...]:
    """Numbers before vectors, where a map has both: what is computed of numbers, or written."""
    body = nest.op.body.block
    wide = [op for op in body.ops if op.results and isinstance(op.results[0].type, VectorType)]
    numbers = [op for op in body.ops if op.results and op not in wide]
    computed = [op for op in numbers if not isinstance(op, arith.ConstantOp)]
    if not wide or not nest.extents or not (computed or any(is_number(o) for o in nest.outputs)):
        return (Stage(),)
    used = {o for op in wide for o in op.operands if not isinstance(o.type, VectorType)}
    taken = {v for v in used if v.owner in computed or v in overwritten_inputs(nest)}
    return Stage(wide=False), Stage(wide=True, taken=frozenset(taken))


def is_number(o: Operand) -> bool:
    return not isinstance(o.element, VectorType)


def overwritten_inputs(nest: Nest) -> set[SSAValue]:
    """The elements of inputs that the first stage may have overwritten when the second begins."""
    written = [o for o in nest.outputs if is_number(o)]
    apart = nest.state.scopes.apart
    return {
        argument
        for argument, i in zip(nest.op.body.block.args, nest.inputs, strict=True)
        if is_number(i) and not all(apart(i.memref, o.memref) for o in written)
    }


def harmless_together(nest: Nest, a: Output, b: Output) -> bool:
    """True when writing a then b point by point needs no order among points."""
    if a.kind == b.kind == "store":
        return True
    return a.memref is b.memref or nest.state.alias.same_view(a.memref, b.memref)


def identity(kind: str, element: Attribute) -> str:
    """What the kind's combination leaves unchanged."""
    type_ = value_type(element)
    if is_float(element):
        number = {"add": -0.0, "mul": 1.0, "min": float("inf"), "max": float("-inf")}[kind]
        return float_of(number, element)
    if type_ == "i1":
        return "true" if kind in ("mul", "min") else "false"
    bits = int(type_[1:])
    least = -(1 << (bits - 1))
    return str({"add": 0, "mul": 1, "min": -least - 1, "max": least}[kind])


def is_float(element: Attribute) -> bool:
    return isinstance(number_type(element), AnyFloat)


def combine(
    state: KernelState, kind: str, element: Attribute, old: str, new: str, *, free: bool
) -> str:
    """What is there combined with a new element; `free` allows another order of the sum."""
    type_ = value_type(element)
    if kind == "store":
        return new
    if type_ == "i1":
        return state.text.value(f"{'and' if kind in ('mul', 'min') else 'or'} i1 {old}, {new}")
    if kind in ("add", "mul"):
        if is_float(element):
            flags = FAST if state.fastmath else " reassoc" if free else ""
            return state.text.value(f"f{kind}{flags} {type_} {old}, {new}")
        return state.text.value(f"{kind} {type_} {old}, {new}")
    if is_float(element):
        suffix = "f64" if type_ == "double" else "f32"
        name = state.intrinsic(f"llvm.{kind}imum.{suffix}", type_, f"{type_}, {type_}")
        return state.text.value(f"call nsz {type_} @{name}({type_} {old}, {type_} {new})")
    name = state.intrinsic(f"llvm.s{kind}.{type_}", type_, f"{type_}, {type_}")
    return state.text.value(f"call {type_} @{name}({type_} {old}, {type_} {new})")


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


def registers(nest: Nest) -> list[Output]:
    return [o for o in nest.outputs if o.still]


def registers_begun(nest: Nest, level: int) -> set[int]:
    """The registers (by position) whose still loops start at `level` or deeper."""
    depth = len(nest.extents)
    return {i for i, o in enumerate(registers(nest)) if depth - o.still >= level}


def write_registers(nest: Nest, level: int, pointers: list[str], accumulators: list[str]) -> None:
    """Combine with memory the registers whose still loops start at `level`."""
    state, depth = nest.state, len(nest.extents)
    position = 0
    for o, pointer in zip(nest.outputs, pointers[len(nest.inputs) :], strict=True):
        if not o.still:
            continue
        if depth - o.still == level:
            old = state.load(pointer, o.element, o.tags)
            new = combine(state, o.kind, o.element, old, accumulators[position], free=True)
            state.store(new, pointer, o.element, o.tags)
        position += 1


def step_rows(nest: Nest, pointers: list[str], level: int, counter: str) -> list[str]:
    """Every operand's address at one iteration of the loop at `level`."""
    offsets: dict[str, str] = {}
    rows: list[str] = []
    for o, pointer in zip(nest.operands, pointers, strict=True):
        stride = o.strides[level]
        if stride not in offsets:
            offsets[stride] = nest.state.text.mul(counter, stride)
        rows.append(nest.state.offset(pointer, o.element, offsets[stride]))
    return rows


def emit_innermost(nest: Nest, pointers: list[str], accumulators: list[str]) -> list[str]:
    """The innermost loop: plain, or in strips where outputs are buffered."""
    state, text = nest.state, nest.state.text
    last = len(nest.extents) - 1
    count = nest.extents[last]
    types = [value_type(o.element) for o in registers(nest)]
    if not any(o.buffered for o in nest.outputs) and len(nest.stages) == 1:
        final = points_loop(nest, nest.stages[0], pointers, accumulators, count, {})
    else:
        buffers = buffers_of(nest)
        known = integer(count)
        if known is not None and known <= STRIP:
            final = strip(nest, pointers, accumulators, count, buffers)
        else:
            more = text.add(count, str(STRIP - 1))
            strips = text.value(f"lshr i64 {more}, {STRIP.bit_length() - 1}")
            carried = list(zip(types, accumulators, strict=True))
            loop = text.begin_loop(strips, carried, "strip", certain=True)
            start = text.mul(loop.counter, str(STRIP))
            left = text.sub(count, start)
            smin = state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
            length = text.value(f"call i64 @{smin}(i64 {left}, i64 {STRIP})")
            rows = step_rows(nest, pointers, last, start)
            after = strip(nest, rows, list(loop.values), length, buffers)
            final = list(text.end_loop(loop, after, state.loop_properties()))
    if last == 0:
        write_registers(nest, 0, pointers, final)
    return final


def buffers_of(nest: Nest) -> dict[SSAValue, str]:
    """A stack buffer for each value of the body that is buffered, or that a later stage takes."""
    state = nest.state
    body = nest.op.body.block
    kept = dict.fromkeys(o.value for o in nest.outputs if o.buffered)
    kept |= dict.fromkeys(value for stage in nest.stages for value in in_order(body, stage.taken))
    found: dict[SSAValue, str] = {}
    for value in kept:
        owner = value.owner
        if owner is not body and not (isinstance(owner, Operation) and owner.parent is body):
            continue
        if len(found) == len(state.buffers):
            state.buffers.append(state.text.alloca(f"[{STRIP} x i64]", "strip", 64))
        found[value] = state.buffers[len(found)]
    return found


def in_order(body: Block, values: frozenset[SSAValue]) -> Iterator[SSAValue]:
    """The values of a body in its order: the same text for the same map."""
    yield from (a for a in body.args if a in values)
    yield from (r for op in body.ops for r in op.results if r in values)


def strip(
    nest: Nest,
    pointers: list[str],
    accumulators: list[str],
    count: str,
    buffers: dict[SSAValue, str],
) -> list[str]:
    """One strip: the body for all its points, stage by stage, then each buffered output in order."""
    state, text = nest.state, nest.state.text
    final = accumulators
    for stage in nest.stages:
        final = points_loop(nest, stage, pointers, final, count, buffers)
    last = len(nest.extents) - 1
    for o, pointer in zip(nest.outputs, pointers[len(nest.inputs) :], strict=True):
        if not o.buffered:
            continue
        loop = text.begin_loop(count, (), "j", certain=True)
        group = f", !llvm.access.group {nest.group}"
        if o.value in buffers:
            at = state.offset(buffers[o.value], o.element, loop.counter)
            new = state.load(at, o.element, group)
        else:
            new = state.scalar(o.value)
        target = state.offset(pointer, o.element, text.mul(loop.counter, o.strides[last]))
        write(state, o, target, new, group)
        parallel = nest.group if independent(o, last) else None
        text.end_loop(loop, (), state.loop_properties(parallel_group=parallel, innermost=True))
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
) -> list[str]:
    """The innermost loop over points of one stage, buffered values going to their buffers."""
    state, text = nest.state, nest.state.text
    last = len(nest.extents) - 1
    mine = [k for k, o in enumerate(registers(nest)) if stage.does(o.element)]
    carried = [(value_type(registers(nest)[k].element), accumulators[k]) for k in mine]
    loop = text.begin_loop(count, carried, "j", certain=True)
    rows = step_rows(nest, pointers, last, loop.counter)
    group = f", !llvm.access.group {nest.group}"
    current = list(accumulators)
    for k, value in zip(mine, loop.values, strict=True):
        current[k] = value
    after = emit_point(nest, stage, rows, current, buffers, group, loop.counter)
    here = [o for o in nest.outputs if not o.still and not o.buffered and stage.does(o.element)]
    parallel = all(independent(o, last) and not o.in_order for o in here)
    group_ = nest.group if parallel else None
    properties = state.loop_properties(parallel_group=group_, innermost=True)
    final = list(accumulators)
    for k, value in zip(
        mine, text.end_loop(loop, [after[k] for k in mine], properties), strict=True
    ):
        final[k] = value
    return final


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
    for inner in op.body.block.ops:
        if not isinstance(inner, array.YieldOp) and stage.does(inner.results[0].type):
            state.emit(inner)
    after = list(accumulators)
    position = 0
    for o, pointer in zip(nest.outputs, pointers[len(nest.inputs) :], strict=True):
        if not stage.does(o.element):
            position += o.still > 0
        elif o.still:
            new = state.scalar(o.value)
            after[position] = combine(state, o.kind, o.element, after[position], new, free=True)
            position += 1
        elif not o.buffered:
            write(state, o, pointer, state.scalar(o.value), group)
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


def write(state: KernelState, o: Output, pointer: str, new: str, group: str) -> None:
    """Write one element as the output's kind says."""
    tags = o.tags + group
    if o.kind != "store":
        old = state.load(pointer, o.element, tags)
        new = combine(state, o.kind, o.element, old, new, free=False)
    state.store(new, pointer, o.element, tags)
