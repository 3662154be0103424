"""Checkpointed loops, as LLVM text: the driver that asks the runtime what to keep.

::

    activation.stack within %budget ...                 call ptr @mutad_tape_push(...)     memory for all
    %kept, %n = activation.steps @f_step %count ...     call i64 @mutad_steps_begin(...)   a head, in there
                                                        call i32 @f_step_run(..., i64 %count)
    activation.reverse_steps @f_step %kept ...          call i32 @f_step_reverse(..., i64 %count)

Two functions are written for each loop. `run` goes from the step that the arrays stand before to the one it
is told, or as long as the loop's flag is set. Where it does not know what to do it asks: to keep the state,
then to run so many steps, and to keep the values of each, or nothing. `reverse` looks at the top of the stack
until it is empty: the values of a step are reversed; from a restart state steps are run again, on copies, up
to the last that is not reversed. Where steps go upwards, it begins at the only restart state, and reverses
each step when it has run it again.

States for which there is no room in memory the runtime takes to a file, from the top of the stack; where a
loop has nothing on it, `reverse` has the last of them brought back. The file is the call's own: the kernel's
wrapper closes it.

The arguments of a step lie in *frames*, as words: numbers as they are, an array as its address, extents and
strides. Where a loop permutes arrays, its frame is turned after each step; another holds them as they were.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import cast

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import activation, array
from .activation_calls import shown_fields, symbol
from .checks_to_llvm import site_of
from .kernel_state import (
    OUT_OF_MEMORY,
    Descriptor,
    KernelState,
    size_of,
)
from .steps_driver import Frame, StepsWriter, callback, pending_site
from .support.context import ARENA
from .support.steps import (
    BASE,
    BUDGET,
    COPIES,
    CURSOR,
    END,
    OTHERS,
    STACK_WORDS,
    STEP,
    WHOLE,
    WHOLE_END,
    declaration,
)

TOO_LITTLE = "the gradient cannot be computed within {} bytes: it takes at least {}"
"""What MemoryError says where a budget cannot be kept."""


# --- The ops ----------------------------------------------------------------------------------


PYTHON = (
    ("i32", "PyGILState_Ensure", ""),
    ("void", "PyErr_Fetch", "ptr, ptr, ptr"),
    ("void", "PyErr_Restore", "ptr, ptr, ptr"),
    ("void", "PyGILState_Release", "i32"),
)
"""What keeps an exception of Python: result, symbol, arguments."""


def word_of(state: KernelState, base: str, offset: int) -> str:
    return state.text.value(f"getelementptr inbounds i8, ptr {base}, i64 {offset}")


def lower_stack(state: KernelState, op: activation.StackOp) -> None:
    """Memory for what is kept, as much as the budget leaves."""
    text = state.text
    state.support.add("mutad_tape_push")
    budget, others, whole = (state.scalars[o] for o in op.operands)
    stack = text.alloca(f"[{STACK_WORDS} x i64]", "stack")
    text.do(f"store [{STACK_WORDS} x i64] zeroinitializer, ptr {stack}")
    text.do(f"store ptr {stack}, ptr {state.context_slot(ARENA)}, align 8")
    size = callback(text, state, "mutad_steps_room", [text.sub(budget, others)])
    base = text.value(f"call ptr @mutad_tape_push(ptr %ctx, ptr {stack}, i64 {size})", "base")
    state.return_when(text.value(f"icmp eq ptr {base}, null"), OUT_OF_MEMORY)
    begin = text.value(f"ptrtoint ptr {base} to i64", "begin")
    end = text.add(begin, size)
    words = {CURSOR: begin, END: end, BASE: begin, WHOLE_END: end}
    words |= {BUDGET: budget, OTHERS: others, WHOLE: whole}
    for offset, value in words.items():
        text.do(f"store i64 {value}, ptr {word_of(state, stack, offset)}, align 8")
    if op.folder is not None:
        name = zero_ended(state, op.folder.data)
        given = [text.value(f"ptrtoint ptr {p} to i64") for p in (stack, "%ctx", name)]
        raise_pending(state, op, callback(text, state, "mutad_steps_open", given))


def closing(function: Operation, state: KernelState) -> list[str]:
    """What the wrapper of a kernel does with its file, however the kernel ended.

    The runtime closes it, in Python. Python has its exception already where the kernel was interrupted or a
    print failed, and keeps it meanwhile.
    """
    if not any(isinstance(op, activation.StackOp) and op.folder for op in function.walk()):
        return []
    state.declare("mutad_steps_close", declaration("mutad_steps_close"), "steps")
    for result, called, given in PYTHON:
        state.declare(called, f"declare {result} @{called}({given})", "python")
    error = [f"%error.{k}" for k in range(3)]
    held = ", ".join(f"ptr {slot}" for slot in error)
    return [
        *(f"  {slot} = alloca ptr, align 8" for slot in error),
        "  %gil = call i32 @PyGILState_Ensure()",
        f"  call void @PyErr_Fetch({held})",
        "  %context = ptrtoint ptr %ctx to i64",
        "  call i64 @mutad_steps_close(i64 %context)",
        *(f"  {slot}.held = load ptr, ptr {slot}, align 8" for slot in error),
        f"  call void @PyErr_Restore({', '.join(f'ptr {slot}.held' for slot in error)})",
        "  call void @PyGILState_Release(i32 %gil)",
    ]


def zero_ended(state: KernelState, name: str) -> str:
    """A constant of the module that holds a file's name."""
    encoded = name.encode("utf-8", "surrogateescape") + b"\0"
    shown = "".join(f"\\{byte:02X}" for byte in encoded)
    state.declare("mutad_folder", folder_line(len(encoded), shown))
    return "@mutad_folder"


def folder_line(count: int, shown: str) -> str:
    return f'@mutad_folder = private constant [{count} x i8] c"{shown}"'


def raise_pending(state: KernelState, op: Operation, said: str) -> None:
    """Leave with the runtime's exception where it could not do what it was asked."""
    text = state.text
    state.raise_when(text.value(f"icmp eq i64 {said}, 0"), pending_site(state, op), [])


def lower_steps(state: KernelState, op: activation.StepsOp) -> None:
    """Begin, and run the loop."""
    text = state.text
    state.support |= {"mutad_steps_push", "mutad_steps_pop"}
    if state.memory.polls:
        state.support.add("mutad_poll")
    stack = text.value(f"load ptr, ptr {state.context_slot(ARENA)}, align 8", "stack")
    count, *sizes = (state.scalars[o] for o in op.operands[:8])
    steps = count if op.goes_on is None else "-1"
    size, low, full, *inner = sizes
    given = [
        text.value(f"ptrtoint ptr {stack} to i64"), steps, size, low, full, copied_bytes(state, op),
        str(int(op.followed is not None)), str(int(op.upwards is not None)), *inner,
    ]  # fmt: skip
    head = callback(text, state, "mutad_steps_begin", given)
    raise_pending(state, op, head)
    raise_too_little(state, op, stack, head)
    state.scalars[op.kept] = head
    kept = text.value(f"inttoptr i64 {head} to ptr", "kept")
    frame = Frame(op.arguments)
    run = run_function(state, op, frame)
    home, now = written_frame(state, frame, "home"), written_frame(state, frame, "now")
    status = text.value(
        f"call i32 @{run}(ptr %ctx, i64 {state.depth}, ptr {kept}, ptr {home}, ptr {now}, i64 {steps})",
        "status",
    )
    leave_when_failed(state, status)
    state.scalars[op.trips] = text.value(
        f"load i64, ptr {word_of(state, kept, STEP)}, align 8", "trips"
    )


def raise_too_little(state: KernelState, op: activation.StepsOp, stack: str, head: str) -> None:
    """MemoryError where there is no head: its number is minus what the stack would have to hold."""
    text = state.text
    budget, others, whole = (
        text.value(f"load i64, ptr {word_of(state, stack, offset)}, align 8")
        for offset in (BUDGET, OTHERS, WHOLE)
    )
    site = site_of(state, op, "MemoryError", TOO_LITTLE, ["index", "index"])
    smaller = state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
    in_steps = text.sub(others, head)
    least = text.value(f"call i64 @{smaller}(i64 {in_steps}, i64 {whole})", "least")
    payload = [(budget, op.count.type), (least, op.count.type)]
    state.raise_when(text.value(f"icmp slt i64 {head}, 0"), site, payload)


def lower_reverse_steps(state: KernelState, op: activation.ReverseStepsOp) -> None:
    """Run it backwards, on copies of what the steps write."""
    text = state.text
    kept = text.value(f"inttoptr i64 {state.scalars[op.kept]} to ptr", "kept")
    stack = text.value(f"load i64, ptr {state.context_slot(ARENA)}, align 8", "stack")
    more = callback(text, state, "mutad_steps_turn", [stack, state.scalars[op.kept]])
    raise_pending(state, op, more)
    count = text.sub(more, "1")
    frame, shadows = Frame(op.arguments), Frame([*op.shadows, *op.shared])
    if op.shared:
        text.do(f"store i64 {count}, ptr {state.memrefs[op.shared[0]].pointer}, align 8")
    home = written_frame(state, frame, "home")
    move_to_copies(state, op, frame, home, kept)
    now = text.alloca(f"[{frame.words} x i64]", "now")
    beside = written_frame(state, shadows, "shadows")
    run, name = f"{symbol(op.target)}_run", f"{symbol(op.target)}_reverse"
    moves, of = op.permutation, op.of
    turned = [of.index(moves[k]) for k in of]
    turned += range(len(of), len(shadows.values))
    writer = StepsWriter(state, op, frame)
    if op.upwards is None:
        state.functions[name] = writer.reverse(name, run, shadows, turned)
    else:
        state.functions[name] = writer.reverse_upwards(name, run, shadows)
    given = f"ptr %ctx, i64 {state.depth}, ptr {kept}, ptr {home}, ptr {now}, ptr {beside}"
    status = text.value(f"call i32 @{name}({given}, i64 {count})", "status")
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
    strides, step = ["1"] * rank, "1"
    for axis in range(rank) if array.is_by_columns(type_) else reversed(range(rank)):
        strides[axis] = step
        step = state.text.mul(step, memory.extents[axis])
    return strides


def leave_when_failed(state: KernelState, status: str) -> None:
    label = state.text.label("leave")
    with state.text.in_cold(label):
        state.leave(status)
    state.text.branch_if_unlikely(state.text.value(f"icmp ne i32 {status}, 0"), label)
