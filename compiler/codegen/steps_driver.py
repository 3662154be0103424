"""The two functions that follow a checkpointed loop's steps, as LLVM text: see `steps_to_llvm`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import activation, array
from ...dialects.within import module_of
from ..analysis.alias import permutation_order
from ..diagnostics import line_of
from ..rules.calls import private_functions
from .activation_calls import symbol
from .kernel_state import (
    COUNT_SLOT,
    OUT_OF_MEMORY,
    PYTHON_RAISED,
    RAISED,
    SITE_SLOT,
    Descriptor,
    KernelState,
    alignment_of,
    memory_type,
    size_of,
    step_type,
    value_type,
)
from .llvm_text import FunctionText
from .support.context import ARENA
from .support.steps import (
    CALLBACKS,
    END,
    ITEM_END,
    ITEM_HEAD,
    ITEM_RECORD,
    ITEM_STEP,
    KEEP,
    KIND,
    LAST,
    LIMIT,
    OWN,
    OWN_END,
    OWN_TOP,
    PENDING,
    SAVED,
    STATE,
    STATES,
    STEP,
    STORE,
    TOP,
    UNTIL,
    VALUES,
    WRITE,
    declaration,
)

WORD = 8


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
        forward = private_functions(module_of(op)).get(f"{op.target}{activation.FORWARD}")
        self.nested = forward is not None and has_steps(forward)
        """Whether steps have checkpointed loops of their own."""

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
        """Run it and keep its values. Loops of its own may take what these take at most, and no more."""
        step = self.load("i64", "%kept", STEP, "step")
        item = self.pushed(str(ITEM_HEAD), VALUES)
        before = self.open_scope(item) if self.nested else {}
        fields = ", ".join(["ptr %ctx", "i64 %depth", f"i64 {step}", *self.shown(self.frame, now)])
        name = symbol(f"{self.op.target}{activation.FORWARD}")
        every = self.text.value(f"call fastcc {{ i32, i64 }} @{name}({fields})", "all")
        self.leave_when_failed(self.text.value(f"extractvalue {{ i32, i64 }} {every}, 0", "status"))
        record = self.text.value(f"extractvalue {{ i32, i64 }} {every}, 1", "record")
        self.store("i64", record, item, ITEM_RECORD)
        if self.nested:
            self.close_scope(item, before)
        self.go_on(now, step)

    def open_scope(self, item: str) -> dict[int, str]:
        """Give a step its own piece of memory at the upper end, and its loops their share of the lower one.

        The words of the stack that hold again when the step has run.
        """
        text = self.text
        before = {at: self.load("i64", "%stack", at) for at in (LAST, LIMIT, OWN_TOP, OWN_END)}
        end, own = self.load("i64", "%stack", END), self.load("i64", "%kept", OWN)
        begin = text.value(f"ptrtoint ptr {self.at(item, ITEM_HEAD)} to i64")
        left = text.sub(end, text.sub(own, str(ITEM_HEAD)))
        self.leave_without_memory(text.value(f"icmp slt i64 {left}, {begin}"))
        self.store("i64", end, item, ITEM_END)
        words = {END: left, OWN_TOP: end, OWN_END: left, LAST: "0"}
        words[LIMIT] = text.add(begin, text.sub(self.load("i64", "%kept", SAVED), own))
        for at, value in words.items():
            self.store("i64", value, "%stack", at)
        return before

    def close_scope(self, item: str, before: dict[int, str]) -> None:
        """What the step has taken at the upper end, the scope around it no longer has either."""
        text, limit = self.text, before[LIMIT]
        end, was = self.load("i64", "%stack", END), self.load("i64", item, ITEM_END)
        smaller = text.add(limit, text.sub(end, was))
        none = text.value(f"icmp eq i64 {limit}, 0")
        left = text.value(f"select i1 {none}, i64 0, i64 {smaller}")
        for at, value in {**before, LIMIT: left}.items():
            self.store("i64", value, "%stack", at)

    def go_on(self, now: str, step: str) -> None:
        self.turn(self.frame, now, self.op.permutation)
        self.store("i64", self.text.add(step, "1"), "%kept", STEP)
        if self.state.memory.polls:
            status = self.text.value("call i32 @mutad_poll(ptr %ctx)", "status")
            label = self.text.label("leave")
            with self.text.in_cold(label):
                self.text.do(f"ret i32 {PYTHON_RAISED}")
            self.text.branch_if_unlikely(self.text.value(f"icmp ne i32 {status}, 0"), label)

    def pushed(self, size: str, kind: int) -> str:
        item = self.text.value(
            f"call ptr @mutad_steps_push(ptr %stack, ptr %kept, i64 {size}, i64 {kind})",
            "item",
        )
        self.leave_without_memory(self.text.value(f"icmp eq ptr {item}, null"))
        return item

    def leave_without_memory(self, condition: str) -> None:
        label = self.text.label("leave")
        with self.text.in_cold(label):
            self.text.do(f"ret i32 {OUT_OF_MEMORY}")
        self.text.branch_if_unlikely(condition, label)

    def asked(self, symbol_: str, *more: str) -> str:
        """What the runtime says; leaves where it could not."""
        stack, kept = (self.text.value(f"ptrtoint ptr {p} to i64") for p in ("%stack", "%kept"))
        found = callback(self.text, self.state, symbol_, [stack, kept, *more])
        label, site = self.text.label("raise"), pending_site(self.state, self.op)
        with self.text.in_cold(label):
            self.store("i64", "0", "%ctx", COUNT_SLOT)
            self.store("i64", str(site), "%ctx", SITE_SLOT)
            self.text.do(f"ret i32 {RAISED}")
        self.text.branch_if_unlikely(self.text.value(f"icmp eq i64 {found}, 0"), label)
        return found

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
        text, element, unit = self.text, memory_type(memory.element), step_type(memory.element)
        size = alignment_of(memory.element)
        loops, offset, linear = [], "0", "0"
        for extent, stride in zip(memory.extents, memory.strides, strict=True):
            loop = text.begin_loop(extent)
            loops.append(loop)
            offset = text.add(offset, text.mul(loop.counter, stride))
            linear = text.add(text.mul(linear, extent), loop.counter)
        there = text.value(f"getelementptr {unit}, ptr {memory.pointer}, i64 {offset}")
        here = text.value(f"getelementptr {unit}, ptr {place}, i64 {linear}")
        source, target = (there, here) if out else (here, there)
        value = text.value(f"load {element}, ptr {source}, align {size}")
        text.do(f"store {element} {value}, ptr {target}, align {size}")
        for loop in reversed(loops):
            text.end_loop(loop)

    # The functions.

    def run(self, name: str) -> str:
        """From the step that the arrays stand before to `%end`; where that is -1, while the flag is set."""
        text = self.text
        head, body, done = text.label("head"), text.label("body"), text.label("done")
        unknown, known, values = text.label("unknown"), text.label("known"), text.label("values")
        store, nothing, away = text.label("store"), text.label("nothing"), text.label("away")
        text.branch(head)
        text.start(head)
        step = self.load("i64", "%kept", STEP)
        self.branch_if_more(step, body, done)
        text.start(body)
        decided = text.value(f"icmp slt i64 {step}, {self.load('i64', '%kept', UNTIL)}")
        text.branch_if(decided, known, unknown)
        text.start(unknown)
        what = self.asked("mutad_steps_ask", "%end")
        text.do(
            f"switch i64 {what}, label %{head} [i64 {STORE}, label %{store}  i64 {WRITE}, label %{store}]"
        )
        text.start(store)
        item = self.pushed(self.load("i64", "%kept", STATE), STATES)
        self.copy_state("%home", item, out=True)
        text.branch_if(text.value(f"icmp eq i64 {what}, {WRITE}"), away, head)
        text.start(away)
        self.asked("mutad_steps_write")
        text.branch(head)
        text.start(known)
        keeps = text.value(f"icmp eq i64 {self.load('i64', '%kept', KIND)}, {KEEP}")
        text.branch_if(keeps, values, nothing)
        text.start(values)
        self.keep_step("%now")
        text.branch(head)
        text.start(nothing)
        self.call_step("%now")
        text.branch(head)
        text.start(done)
        text.do("ret i32 0")
        return self.definition(name, ["ptr %home", "ptr %now", "i64 %end"])

    def branch_if_more(self, step: str, body: str, done: str) -> None:
        """To the body of `run` where there is another step."""
        text = self.text
        counted = text.value(f"icmp slt i64 {step}, %end")
        goes_on = cast("activation.StepsOp", self.op).goes_on
        if goes_on is None:
            text.branch_if(counted, body, done)
            return
        bound, look = text.label("bound"), text.label("look")
        text.branch_if(text.value("icmp slt i64 %end, 0"), bound, look)
        text.start(look)
        text.branch_if(counted, body, done)
        text.start(bound)
        flag = self.load("ptr", "%now", WORD * self.frame.starts[self.frame.values.index(goes_on)])
        text.branch_if(text.value(f"load i1, ptr {flag}, align 1"), body, done)

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
        looked, fetched = text.label("item"), text.label("fetched")
        text.branch_if(text.value(f"icmp eq ptr {item}, null"), fetched, looked)
        text.start(fetched)
        self.asked("mutad_steps_fetch", left)
        text.branch(head)
        text.start(looked)
        record = self.load("i64", item, ITEM_RECORD, "record")
        values, from_state = text.label("values"), text.label("state")
        text.branch_if(text.value(f"icmp ne i64 {record}, 0"), values, from_state)
        text.start(values)
        self.turn(shadows, "%shadows", [turned.index(k) for k in range(len(turned))])
        self.reverse_step(record, shadows)
        text.do(f"store i64 {text.sub(left, '1')}, ptr {end}, align 8")
        text.branch(head)
        text.start(from_state)
        self.restart(item)
        self.asked("mutad_steps_restart", left)
        self.run_again(run, left)
        text.branch(head)
        text.start(done)
        return self.finished(name)

    def reverse_upwards(self, name: str, run: str, shadows: Frame) -> str:
        """All steps from the first on: each is run again, keeps its values, and is reversed."""
        text = self.text
        end = text.alloca("i64", "end")
        text.do(f"store i64 0, ptr {end}, align 8")
        head, body, done = text.label("head"), text.label("body"), text.label("done")
        text.branch(head)
        text.start(head)
        before = text.value(f"load i64, ptr {end}, align 8", "before")
        text.branch_if(text.value(f"icmp slt i64 {before}, %count"), body, done)
        text.start(body)
        item = self.load("ptr", "%kept", TOP, "item")
        first, again, looked = text.label("first"), text.label("again"), text.label("item")
        values, from_state, fetched = (
            text.label("values"),
            text.label("state"),
            text.label("fetched"),
        )
        nothing = text.value(f"icmp eq ptr {item}, null")
        text.branch_if(nothing, first, looked)
        text.start(first)
        text.branch_if(text.value(f"icmp eq i64 {before}, 0"), fetched, again)
        text.start(fetched)
        self.asked("mutad_steps_fetch", "%count")
        text.branch(head)
        text.start(looked)
        record = self.load("i64", item, ITEM_RECORD, "record")
        text.branch_if(text.value(f"icmp ne i64 {record}, 0"), values, from_state)
        text.start(from_state)
        self.restart(item)
        self.asked("mutad_steps_restart", "%count")
        text.branch(again)
        text.start(again)
        self.run_again(run, text.add(before, "1"))
        text.branch(head)
        text.start(values)
        self.reverse_step(record, shadows)
        text.do(f"store i64 {text.add(before, '1')}, ptr {end}, align 8")
        text.branch(head)
        text.start(done)
        return self.finished(name)

    def reverse_step(self, record: str, shadows: Frame) -> None:
        """Reverse the step whose values are on top, and drop these."""
        text, back = self.text, symbol(f"{self.op.target}{activation.BACKWARD}")
        fields = ["ptr %ctx", "i64 %depth", f"i64 {record}", *self.shown(shadows, "%shadows")]
        every = text.value(f"call fastcc {{ i32 }} @{back}({', '.join(fields)})", "all")
        self.leave_when_failed(text.value(f"extractvalue {{ i32 }} {every}, 0", "status"))
        text.do("call void @mutad_steps_pop(ptr %stack, ptr %kept)")

    def run_again(self, run: str, end: str) -> None:
        given = "ptr %ctx, i64 %depth, ptr %kept, ptr %home, ptr %now"
        self.leave_when_failed(self.text.value(f"call i32 @{run}({given}, i64 {end})", "status"))

    def finished(self, name: str) -> str:
        self.asked("mutad_steps_finish")
        self.text.do("ret i32 0")
        return self.definition(name, ["ptr %home", "ptr %now", "ptr %shadows", "i64 %count"])

    def restart(self, item: str) -> None:
        """Take a restart state over to the copies."""
        step = self.load("i64", item, ITEM_STEP, "step")
        self.copy_state("%home", item, out=False)
        self.copy_frame(self.frame, "%home", "%now")
        self.turn_often(self.frame, "%now", self.op.permutation, step)
        self.store("i64", step, "%kept", STEP)

    def definition(self, name: str, parameters: Sequence[str]) -> str:
        shown = ", ".join(["ptr %ctx", "i64 %depth", "ptr %kept", *parameters])
        head = f"define internal i32 @{name}({shown}) noinline nounwind {{"
        at = f"  %stack.at = getelementptr i8, ptr %ctx, i64 {ARENA}"
        stack = "  %stack = load ptr, ptr %stack.at, align 8"
        self.text.lines[:0] = [at, stack]
        return "\n".join([head, self.text.text(), "}"])


def has_steps(function: Operation) -> bool:
    """Whether a function runs checkpointed loops."""
    return any(isinstance(op, activation.StepsOp) for op in function.walk())


def is_step(function: func.FuncOp) -> bool:
    """Whether a function is what a checkpointed loop keeps the values of a step by."""
    module, name = module_of(function), function.sym_name.data
    return any(
        isinstance(op, activation.StepsOp) and name == f"{op.target}{activation.FORWARD}"
        for op in module.walk()
    )


def pending_site(state: KernelState, op: Operation) -> int:
    """Where the runtime's own exceptions are raised."""
    file, line, column = line_of(op) or ("", 0, 0)
    what = {"exception": PENDING, "message": "", "operands": []}
    site = {**what, "file": file, "line": line, "column": column}
    if site not in state.sites:
        state.sites.append(site)
    return state.sites.index(site)


def callback(text: FunctionText, state: KernelState, symbol_: str, numbers: Sequence[str]) -> str:
    """Ask the runtime."""
    assert len(numbers) == CALLBACKS[symbol_]
    state.declare(symbol_, declaration(symbol_), "steps")
    return text.value(f"call i64 @{symbol_}({', '.join(f'i64 {n}' for n in numbers)})", "said")
