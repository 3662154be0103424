"""A map on its way to loops: operands with their strides, and how its outputs are combined with memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import AnyFloat, VectorType
from xdsl.ir import Attribute, SSAValue

from ...dialects import array
from .floats_to_llvm import multiply_add
from .kernel_state import KernelState, number_type, value_type
from .map_stages import WHOLE, Stage
from .scalar_text import FAST, FREE_SUM, float_of

if TYPE_CHECKING:
    from .lane_sums import LaneSums


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


@dataclass
class Together:
    """Buffered outputs of the same rows, and the column from which on one loop adds to them all."""

    columns: dict[int, int]
    """By the number of the output, in the order of the map: its first column, from that of the first one."""
    start: int


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
    stages: tuple[Stage, ...] = WHOLE
    """What the loops over points do, one loop after the other."""
    innermost: int | None = None
    """The axis along which the innermost loop goes."""
    together: Sequence[Together] = ()
    """The buffered outputs that one loop adds from their buffers."""
    reciprocals: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    """The buffers of the reciprocals of divisors."""
    sums: LaneSums | None = None
    """The sums of the row being written whose lanes are no matter of LLVM's."""

    def __post_init__(self) -> None:
        self.group = self.state.metadata.empty()

    @property
    def operands(self) -> list[Operand]:
        return [*self.inputs, *self.outputs]


def is_number(o: Operand) -> bool:
    return not isinstance(o.element, VectorType)


def overwritten_inputs(nest: Nest) -> list[SSAValue]:
    """The elements of inputs that the first stage may have overwritten when the second begins."""
    written = [o for o in nest.outputs if is_number(o)]
    apart = nest.state.scopes.apart
    return [
        argument
        for argument, i in zip(nest.op.body.block.args, nest.inputs, strict=True)
        if is_number(i) and not all(apart(i.memref, o.memref) for o in written)
    ]


def registers(nest: Nest) -> list[Output]:
    return [o for o in nest.outputs if o.still]


def strip_buffer(state: KernelState, number: int, points: int, margin: int = 0) -> str:
    """The stack buffer of this number, among those for so many points, `margin` bytes behind its begin."""
    key = points + margin // 8, number
    if key not in state.buffers:
        state.buffers[key] = state.text.alloca(f"[{key[0]} x i64]", "strip", 64)
    if not margin:
        return state.buffers[key]
    return state.text.value(f"getelementptr inbounds i8, ptr {state.buffers[key]}, i64 {margin}")


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
    state: KernelState,
    kind: str,
    element: Attribute,
    old: str,
    new: str,
    *,
    free: bool,
    factors: tuple[str, str] | None = None,
) -> str:
    """What is there combined with a new element; `free` allows another order of the sum.

    `factors`: the new element is their product, with which the sum may be contracted.
    """
    type_ = value_type(element)
    if kind == "store":
        return new
    if type_ == "i1":
        return state.text.value(f"{'and' if kind in ('mul', 'min') else 'or'} i1 {old}, {new}")
    if kind in ("add", "mul"):
        if is_float(element):
            flags = FAST if state.fastmath else FREE_SUM if free else ""
            state.last_bits = state.last_bits.more(sums=free)
            if kind == "add" and factors is not None and not state.fastmath:
                return multiply_add(state, type_, flags, factors, old)
            return state.text.value(f"f{kind}{flags} {type_} {old}, {new}")
        return state.text.value(f"{kind} {type_} {old}, {new}")
    if is_float(element):
        suffix = "f64" if type_ == "double" else "f32"
        name = state.intrinsic(f"llvm.{kind}imum.{suffix}", type_, f"{type_}, {type_}")
        return state.text.value(f"call nsz {type_} @{name}({type_} {old}, {type_} {new})")
    name = state.intrinsic(f"llvm.s{kind}.{type_}", type_, f"{type_}, {type_}")
    return state.text.value(f"call {type_} @{name}({type_} {old}, {type_} {new})")


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
