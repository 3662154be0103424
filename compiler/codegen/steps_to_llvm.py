"""Checkpointed loops, as LLVM text: the driver that follows a schedule.

::

    %kept = activation.steps @f_step %count ...         call i64 @mutad_steps_begin(...)       the schedule
                                                        call i32 @f_step_run(..., i64 %count)
    activation.reverse_steps @f_step %kept ...          call i32 @f_step_reverse(..., i64 %count)

Two functions are written for each loop. `run` goes from the step that the arrays stand before to the one it
is told, and at each decision either runs one step that keeps its values, or keeps the state and runs a few
that keep nothing. `reverse` looks at the top of the stack until it is empty: the values of a step are
reversed; from a restart state steps are run again, on copies, up to the last that is not reversed.

The arguments of a step lie in *frames*, as words: numbers as they are, an array as its address, extents and
strides. Where a loop permutes arrays, its frame is turned after each step; another holds them as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from ...dialects import activation, array
from ..analysis.alias import permutation_order
from .activation_calls import shown_fields, symbol
from .checks_to_llvm import site_of
from .kernel_state import (
    OUT_OF_MEMORY,
    PYTHON_RAISED,
    Descriptor,
    KernelState,
    memory_type,
    size_of,
    value_type,
)
from .llvm_text import FunctionText
from .support import ARENA
from .support_steps import (
    BEGUN,
    COPIES,
    EXHAUSTED,
    ITEM_HEAD,
    ITEM_RECORD,
    ITEM_STEP,
    KEPT_WORDS,
    NEXT,
    SCHEDULE,
    STATE,
    STEP,
    TOP,
)

WORD = 8
TOO_LITTLE = "the gradient cannot be computed within {} bytes: it takes at least {}"
"""What MemoryError says where a budget cannot be kept."""


class Frame:
    """How values lie in a frame: the first word of each, and the types of its words."""

    def __init__(self, values: Sequence[SSAValue]) -> None:
        self.values = list(values)
        self.fields = [field_types(v.type) for v in values]
        starts = [0]
        for fields in self.fields:
            starts.append(starts[-1] + len(fields))
        self.starts = starts[:-1]
        self.words = max(starts[-1], 1)


def field_types(type_: Attribute) -> list[str]:
    if isinstance(type_, MemRefType):
        return ["ptr", *["i64"] * (2 * type_.get_num_dims())]
    return [value_type(type_)]


class StepsWriter:
    """Writes one of the two functions of a loop."""

    def __init__(self, state: KernelState, op: activation.CheckpointedOp, arguments: Frame) -> None:
        self.state, self.op, self.frame = state, op, arguments
        self.text = FunctionText(state.metadata)

    # Words.

    def word(self, base: str, number: int) -> str:
        return self.at(base, WORD * number)

    def at(self, base: str, offset: int) -> str:
        return self.text.value(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")

    def load(self, type_: str, base: str, offset: int, hint: str | None = None) -> str:
        return self.text.value(f"load {type_}, ptr {self.at(base, offset)}, align 8", hint)

    def store(self, type_: str, value: str, base: str, offset: int) -> None:
        self.text.do(f"store {type_} {value}, ptr {self.at(base, offset)}, align 8")

    # Calls.

    def shown(self, frame: Frame, base: str) -> list[str]:
        """The values of a frame as arguments of a call."""
        return [
            f"{type_} {self.load(type_, base, WORD * (start + k))}"
            for start, fields in zip(frame.starts, frame.fields, strict=True)
            for k, type_ in enumerate(fields)
        ]

    def leave_when_failed(self, status: str) -> None:
        label = self.text.label("leave")
        with self.text.in_cold(label):
            self.text.do(f"ret i32 {status}")
        self.text.branch_if_unlikely(self.text.value(f"icmp ne i32 {status}, 0"), label)

    def call_step(self, now: str) -> None:
        """Run the step that the arrays stand before, keeping nothing."""
        step = self.load("i64", "%kept", STEP, "step")
        fields = ", ".join(["ptr %ctx", "i64 %depth", f"i64 {step}", *self.shown(self.frame, now)])
        name = symbol(self.op.target)
        every = self.text.value(f"call fastcc {{ i32 }} @{name}({fields})", "all")
        self.leave_when_failed(self.text.value(f"extractvalue {{ i32 }} {every}, 0", "status"))
        self.go_on(now, step)

    def keep_step(self, now: str) -> None:
        """Run it and keep its values."""
        step = self.load("i64", "%kept", STEP, "step")
        item = self.pushed(str(ITEM_HEAD))
        fields = ", ".join(["ptr %ctx", "i64 %depth", f"i64 {step}", *self.shown(self.frame, now)])
        name = symbol(f"{self.op.target}{activation.FORWARD}")
        every = self.text.value(f"call fastcc {{ i32, i64 }} @{name}({fields})", "all")
        self.leave_when_failed(self.text.value(f"extractvalue {{ i32, i64 }} {every}, 0", "status"))
        record = self.text.value(f"extractvalue {{ i32, i64 }} {every}, 1", "record")
        self.store("i64", record, item, ITEM_RECORD)
        self.go_on(now, step)

    def go_on(self, now: str, step: str) -> None:
        self.turn(self.frame, now, self.op.permutation)
        self.store("i64", self.text.add(step, "1"), "%kept", STEP)
        if self.state.memory.polls:
            status = self.text.value("call i32 @mutad_poll(ptr %ctx)", "status")
            label = self.text.label("leave")
            with self.text.in_cold(label):
                self.text.do(f"ret i32 {PYTHON_RAISED}")
            self.text.branch_if_unlikely(self.text.value(f"icmp ne i32 {status}, 0"), label)

    def pushed(self, size: str) -> str:
        item = self.text.value(
            f"call ptr @mutad_steps_push(ptr %ctx, ptr %kept, i64 {size})", "item"
        )
        label = self.text.label("leave")
        with self.text.in_cold(label):
            self.text.do(f"ret i32 {OUT_OF_MEMORY}")
        self.text.branch_if_unlikely(self.text.value(f"icmp eq ptr {item}, null"), label)
        return item

    # Frames that turn.

    def turn(self, frame: Frame, base: str, moves: Sequence[int]) -> None:
        """Each array becomes the one that it `moves` from."""
        moving = [k for k, source in enumerate(moves) if source != k]
        loaded = [
            self.load(type_, base, WORD * (frame.starts[moves[k]] + j))
            for k in moving
            for j, type_ in enumerate(frame.fields[k])
        ]
        places = [(k, j) for k in moving for j in range(len(frame.fields[k]))]
        for (k, j), value in zip(places, loaded, strict=True):
            self.store(frame.fields[k][j], value, base, WORD * (frame.starts[k] + j))

    def turn_often(self, frame: Frame, base: str, moves: Sequence[int], times: str) -> None:
        """As that many steps do."""
        order = permutation_order(moves)
        if order == 1:
            return
        rest = self.text.value(f"srem i64 {times}, {order}")
        loop = self.text.begin_loop(rest, hint="turn")
        self.turn(frame, base, moves)
        self.text.end_loop(loop)

    def copy_frame(self, frame: Frame, source: str, target: str) -> None:
        for word in range(frame.words):
            self.store("i64", self.load("i64", source, WORD * word), target, WORD * word)

    # States.

    def copy_state(self, home: str, item: str, *, out: bool) -> None:
        """Copy the arrays of a restart state between where they are at home and an item."""
        place = self.at(item, ITEM_HEAD)
        for k in cast("activation.StepsOp", self.op).states:
            memory = self.descriptor(k, home)
            type_ = cast("MemRefType[Attribute]", self.frame.values[k].type)
            bytes_ = self.text.mul(
                self.text.product(memory.extents), str(size_of(type_.element_type))
            )
            if array.is_contiguous(type_):
                ends = (place, memory.pointer) if out else (memory.pointer, place)
                name = self.state.intrinsic("llvm.memcpy.p0.p0.i64", "void", "ptr, ptr, i64, i1")
                self.text.do(
                    f"call void @{name}(ptr {ends[0]}, ptr {ends[1]}, i64 {bytes_}, i1 false)"
                )
            else:
                self.copy_strided(memory, place, out=out)
            rounded = self.text.value(f"and i64 {self.text.add(bytes_, '7')}, -8")
            place = self.text.value(f"getelementptr i8, ptr {place}, i64 {rounded}")

    def descriptor(self, k: int, base: str) -> Descriptor:
        type_ = cast("MemRefType[Attribute]", self.frame.values[k].type)
        start, rank = self.frame.starts[k], type_.get_num_dims()
        pointer = self.load("ptr", base, WORD * start)
        numbers = [self.load("i64", base, WORD * (start + 1 + j)) for j in range(2 * rank)]
        return Descriptor(pointer, tuple(numbers[:rank]), tuple(numbers[rank:]), type_.element_type)

    def copy_strided(self, memory: Descriptor, place: str, *, out: bool) -> None:
        """Element for element, the last axis innermost."""
        text, element = self.text, memory_type(memory.element)
        size = size_of(memory.element)
        loops, offset, linear = [], "0", "0"
        for extent, stride in zip(memory.extents, memory.strides, strict=True):
            loop = text.begin_loop(extent)
            loops.append(loop)
            offset = text.add(offset, text.mul(loop.counter, stride))
            linear = text.add(text.mul(linear, extent), loop.counter)
        there = text.value(f"getelementptr {element}, ptr {memory.pointer}, i64 {offset}")
        here = text.value(f"getelementptr {element}, ptr {place}, i64 {linear}")
        source, target = (there, here) if out else (here, there)
        value = text.value(f"load {element}, ptr {source}, align {size}")
        text.do(f"store {element} {value}, ptr {target}, align {size}")
        for loop in reversed(loops):
            text.end_loop(loop)

    # The functions.

    def decision(self) -> tuple[str, str]:
        """The next decision, and where it stands."""
        at = self.load("ptr", "%kept", NEXT, "next")
        narrow = self.text.value(f"load i32, ptr {at}, align 4")
        return self.text.value(f"sext i32 {narrow} to i64", "decision"), at

    def decided(self, at: str) -> None:
        self.store("ptr", self.text.value(f"getelementptr i8, ptr {at}, i64 4"), "%kept", NEXT)

    def several(self, count: str, now: str) -> None:
        loop = self.text.begin_loop(count, hint="step", certain=True)
        self.call_step(now)
        self.text.end_loop(loop)

    def run(self, name: str) -> str:
        """From the step that the arrays stand before to `%end`."""
        text = self.text
        head, body, done = text.label("head"), text.label("body"), text.label("done")
        text.branch(head)
        text.start(head)
        more = text.value(f"icmp slt i64 {self.load('i64', '%kept', STEP)}, %end")
        text.branch_if(more, body, done)
        text.start(body)
        decision, at = self.decision()
        self.decided(at)
        values, from_state = text.label("values"), text.label("state")
        text.branch_if(text.value(f"icmp eq i64 {decision}, 0"), values, from_state)
        text.start(values)
        self.keep_step("%now")
        text.branch(head)
        text.start(from_state)
        item = self.pushed(self.load("i64", "%kept", STATE))
        self.copy_state("%home", item, out=True)
        self.several(decision, "%now")
        text.branch(head)
        text.start(done)
        text.do("ret i32 0")
        return self.definition(name, ["ptr %home", "ptr %now", "i64 %end"])

    def reverse(self, name: str, run: str, shadows: Frame, turned: Sequence[int]) -> str:
        """All steps backwards; `turned`: how the shadows move from a step to the next."""
        text = self.text
        self.turn_often(shadows, "%shadows", turned, "%count")
        end = text.alloca("i64", "end")
        text.do(f"store i64 %count, ptr {end}, align 8")
        head, body, done = text.label("head"), text.label("body"), text.label("done")
        text.branch(head)
        text.start(head)
        left = text.value(f"load i64, ptr {end}, align 8", "left")
        text.branch_if(text.value(f"icmp sgt i64 {left}, 0"), body, done)
        text.start(body)
        item = self.load("ptr", "%kept", TOP, "item")
        record = self.load("i64", item, ITEM_RECORD, "record")
        values, from_state = text.label("values"), text.label("state")
        text.branch_if(text.value(f"icmp ne i64 {record}, 0"), values, from_state)
        text.start(values)
        self.turn(shadows, "%shadows", [turned.index(k) for k in range(len(turned))])
        fields = ["ptr %ctx", "i64 %depth", f"i64 {record}", *self.shown(shadows, "%shadows")]
        back = symbol(f"{self.op.target}{activation.BACKWARD}")
        every = text.value(f"call fastcc {{ i32 }} @{back}({', '.join(fields)})", "all")
        self.leave_when_failed(text.value(f"extractvalue {{ i32 }} {every}, 0", "status"))
        text.do("call void @mutad_steps_pop(ptr %kept)")
        text.do(f"store i64 {text.sub(left, '1')}, ptr {end}, align 8")
        text.branch(head)
        text.start(from_state)
        self.restart(item)
        status = text.value(
            f"call i32 @{run}(ptr %ctx, i64 %depth, ptr %kept, ptr %home, ptr %now, i64 {left})",
            "status",
        )
        self.leave_when_failed(status)
        text.branch(head)
        text.start(done)
        text.do("ret i32 0")
        return self.definition(name, ["ptr %home", "ptr %now", "ptr %shadows", "i64 %count"])

    def restart(self, item: str) -> None:
        """Take a restart state over to the copies, and run the steps that nothing is kept of."""
        text = self.text
        step = self.load("i64", item, ITEM_STEP, "step")
        self.copy_state("%home", item, out=False)
        self.copy_frame(self.frame, "%home", "%now")
        self.turn_often(self.frame, "%now", self.op.permutation, step)
        self.store("i64", step, "%kept", STEP)
        decision, at = self.decision()
        drop, leave, ready = text.label("drop"), text.label("stay"), text.label("ready")
        text.branch_if(text.value(f"icmp eq i64 {decision}, 0"), drop, leave)
        text.start(drop)
        text.do("call void @mutad_steps_pop(ptr %kept)")
        text.branch(ready)
        text.start(leave)
        self.decided(at)
        self.several(decision, "%now")
        text.branch(ready)
        text.start(ready)

    def definition(self, name: str, parameters: Sequence[str]) -> str:
        shown = ", ".join(["ptr %ctx", "i64 %depth", "ptr %kept", *parameters])
        head = f"define internal i32 @{name}({shown}) noinline nounwind {{"
        return "\n".join([head, self.text.text(), "}"])


# --- The ops ----------------------------------------------------------------------------------


def lower_steps(state: KernelState, op: activation.StepsOp) -> None:
    """Plan, and run the loop."""
    text = state.text
    state.support |= {"mutad_steps_begin", "mutad_steps_push", "mutad_steps_pop", "mutad_tape_push"}
    if state.memory.polls:
        state.support.add("mutad_poll")
    state.declare("mutad_schedule", SCHEDULE, "schedule")
    kept = text.alloca(f"[{KEPT_WORDS} x i64]", "kept")
    count, budget, others, size, saved, whole = (state.scalars[o] for o in op.operands[:6])
    left = text.sub(budget, others)
    numbers = ", ".join(f"i64 {n}" for n in (count, left, size, saved, copied_bytes(state, op)))
    begun = text.value(f"call i64 @mutad_steps_begin(ptr %ctx, ptr {kept}, {numbers})", "least")
    state.return_when(text.value(f"icmp eq i64 {begun}, {EXHAUSTED}"), OUT_OF_MEMORY)
    site = site_of(state, op, "MemoryError", TOO_LITTLE, ["index", "index"])
    smaller = state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
    in_steps = text.add(begun, others)
    least = text.value(f"call i64 @{smaller}(i64 {in_steps}, i64 {whole})", "least")
    payload = [(budget, op.count.type), (least, op.count.type)]
    state.raise_when(text.value(f"icmp ne i64 {begun}, {BEGUN}"), site, payload)
    state.scalars[op.kept] = text.value(f"ptrtoint ptr {kept} to i64", "kept")
    frame = Frame(op.arguments)
    run = run_function(state, op, frame)
    home, now = written_frame(state, frame, "home"), written_frame(state, frame, "now")
    status = text.value(
        f"call i32 @{run}(ptr %ctx, i64 {state.depth}, ptr {kept}, ptr {home}, ptr {now}, i64 {count})",
        "status",
    )
    leave_when_failed(state, status)


def lower_reverse_steps(state: KernelState, op: activation.ReverseStepsOp) -> None:
    """Run it backwards, on copies of what the steps write."""
    text = state.text
    kept = text.value(f"inttoptr i64 {state.scalars[op.kept]} to ptr", "kept")
    text.do(f"store ptr {kept}, ptr {state.context_slot(ARENA)}, align 8")
    frame, shadows = Frame(op.arguments), Frame(op.shadows)
    home = written_frame(state, frame, "home")
    move_to_copies(state, op, frame, home, kept)
    now = text.alloca(f"[{frame.words} x i64]", "now")
    beside = written_frame(state, shadows, "shadows")
    run, name = f"{symbol(op.target)}_run", f"{symbol(op.target)}_reverse"
    moves, of = op.permutation, op.of
    turned = [of.index(moves[k]) for k in of]
    state.functions[name] = StepsWriter(state, op, frame).reverse(name, run, shadows, turned)
    given = f"ptr %ctx, i64 {state.depth}, ptr {kept}, ptr {home}, ptr {now}, ptr {beside}"
    status = text.value(f"call i32 @{name}({given}, i64 {state.scalars[op.count]})", "status")
    leave_when_failed(state, status)


def run_function(state: KernelState, op: activation.StepsOp, frame: Frame) -> str:
    name = f"{symbol(op.target)}_run"
    state.functions[name] = StepsWriter(state, op, frame).run(name)
    return name


def written_frame(state: KernelState, frame: Frame, hint: str) -> str:
    """A frame with the values as the kernel has them."""
    text = state.text
    base = text.alloca(f"[{frame.words} x i64]", hint)
    for start, value in zip(frame.starts, frame.values, strict=True):
        for k, field in enumerate(shown_fields(state, value)):
            at = text.value(f"getelementptr inbounds i64, ptr {base}, i64 {start + k}")
            text.do(f"store {field}, ptr {at}, align 8")
    return base


def changing(
    state: KernelState, op: activation.CheckpointedOp, arguments: Sequence[SSAValue]
) -> Iterator[tuple[int, Descriptor, str]]:
    """The arrays that steps write, each with its descriptor and its bytes, rounded up."""
    for k in op.changing:
        memory = state.memrefs[arguments[k]]
        size = str(size_of(memory.element))
        bytes_ = state.text.mul(state.text.product(memory.extents), size)
        yield k, memory, state.text.value(f"and i64 {state.text.add(bytes_, '7')}, -8")


def copied_bytes(state: KernelState, op: activation.StepsOp) -> str:
    """What the copies take on which steps are run again."""
    total = "0"
    for _, _, bytes_ in changing(state, op, op.arguments):
        total = state.text.add(total, bytes_)
    return total


def move_to_copies(
    state: KernelState, op: activation.ReverseStepsOp, frame: Frame, home: str, kept: str
) -> None:
    """Let a frame name the copies in place of the arrays that steps write."""
    text = state.text
    at = text.value(
        f"load ptr, ptr {text.value(f'getelementptr i8, ptr {kept}, i64 {COPIES}')}, align 8"
    )
    for k, memory, bytes_ in changing(state, op, op.arguments):
        type_ = cast("MemRefType[Attribute]", op.arguments[k].type)
        words = [f"ptr {at}", *(f"i64 {n}" for n in strides_like(state, type_, memory))]
        rank = len(memory.extents)
        places = [0, *range(1 + rank, 1 + 2 * rank)]
        for place, word in zip(places, words, strict=True):
            slot = text.value(f"getelementptr i64, ptr {home}, i64 {frame.starts[k] + place}")
            text.do(f"store {word}, ptr {slot}, align 8")
        at = text.value(f"getelementptr i8, ptr {at}, i64 {bytes_}")


def strides_like(state: KernelState, type_: MemRefType[Attribute], memory: Descriptor) -> list[str]:
    """The strides of a compact array of a type: by columns where the type says so, else by rows."""
    rank = len(memory.extents)
    known = array.strides_of(type_)
    by_columns = rank > 1 and known[0] == 1 and not array.is_contiguous(type_)
    strides, step = ["1"] * rank, "1"
    for axis in range(rank) if by_columns else reversed(range(rank)):
        strides[axis] = step
        step = state.text.mul(step, memory.extents[axis])
    return strides


def leave_when_failed(state: KernelState, status: str) -> None:
    label = state.text.label("leave")
    with state.text.in_cold(label):
        state.leave(status)
    state.text.branch_if_unlikely(state.text.value(f"icmp ne i32 {status}, 0"), label)
