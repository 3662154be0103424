"""When a kernel asks whether the user wants it to stop: after so much work, in whatever loops.

Asking reads a clock, and that takes longer than a map of nine elements. So the function has some fuel, in
elements: whole-array work and innermost loops spend their trips, an iteration of the loops around them a
little. Where an iteration ends and the tank is empty, the kernel asks, and fills it::

    %left = sub i64 %fuel, 8                      after each iteration of a loop with loops or maps in it
    br i1 (%left < 0), label %ask, label %on      ask: call i32 @mutad_poll(ptr %ctx), fuel = 32768

The fuel is a stack slot, a register for LLVM. It is empty when the function begins: a private function asks
once in each call, since the loop that calls it may do nothing else. (Nests that are functions of their own,
see `nests_apart`, go on with the fuel of the kernel.)
"""

from __future__ import annotations

from xdsl.ir import SSAValue

from .kernel_state import PYTHON_RAISED, KernelState
from .llvm_text import integer
from .memory_to_llvm import RUNTIME_MEMORY

FUEL, ITERATION = 1 << 15, 8
"""Elements between two polls; what an iteration spends besides what runs in it."""


def poll(state: KernelState) -> None:
    """Ask now."""
    if not state.memory.polls:
        return
    state.support.add("mutad_poll")
    group = state.attribute_group(RUNTIME_MEMORY)
    status = state.text.value(f"call i32 @mutad_poll(ptr %ctx) {group}")
    state.return_when(state.text.value(f"icmp ne i32 {status}, 0"), PYTHON_RAISED)


def poll_every(state: KernelState, counter: str, mask: int) -> None:
    """Ask once in mask + 1 iterations."""
    if not state.memory.polls:
        return
    low = state.text.value(f"and i64 {counter}, {mask}")
    poll_if(state, state.text.value(f"icmp eq i64 {low}, {mask}"), mask)


def poll_when_spent(state: KernelState) -> None:
    """Ask at the end of an iteration, if enough was done since the kernel asked last."""
    if not state.memory.polls:
        return
    left = spend(state, ITERATION)
    poll_if(state, state.text.value(f"icmp slt i64 {left}, 0"), FUEL // ITERATION, refill=True)


def poll_if(state: KernelState, due: str, rarity: int, refill: bool = False) -> None:
    text = state.text
    ask, on = text.label("poll"), text.label("on")
    text.branch_if(due, ask, on, (1, rarity))
    text.start(ask)
    poll(state)
    if refill:
        text.do(f"store i64 {FUEL}, ptr {fuel(state)}, align 8")
    text.branch(on)
    text.start(on)


def spend_map(state: KernelState, extents: tuple[SSAValue, ...]) -> None:
    """The elements of a map."""
    elements = "1"
    for extent in extents:
        elements = times(state, elements, state.scalars[extent])
    if state.memory.polls:
        spend(state, elements)


def spend_trips(state: KernelState, trips: str) -> None:
    """The iterations of an innermost loop."""
    if state.memory.polls:
        spend(state, trips)


def times(state: KernelState, a: str, b: str) -> str:
    if (x := integer(a)) is not None and (y := integer(b)) is not None:
        return str(x * y)
    return b if a == "1" else state.text.value(f"mul i64 {a}, {b}")


def spend(state: KernelState, amount: str | int) -> str:
    """Less fuel; how much is left."""
    before = state.text.value(f"load i64, ptr {fuel(state)}, align 8")
    left = state.text.value(f"sub i64 {before}, {amount}", "fuel")
    state.text.do(f"store i64 {left}, ptr {fuel(state)}, align 8")
    return left


def fuel(state: KernelState) -> str:
    """The stack slot."""
    text = state.text
    if text.fuel is None:
        text.fuel = text.alloca("i64", "fuel")
        text.entry.append(f"  store i64 0, ptr {text.fuel}, align 8")
    return text.fuel
