"""Loads, stores, views and fresh memory as LLVM text.

::

    %x = memref.load %a[%i, %j]       %p = getelementptr inbounds double, ptr %a, i64 %i_times_stride
                                      %q = getelementptr inbounds double, ptr %p, i64 %j
                                      %x = load double, ptr %q, align 8, !alias.scope ..., !noalias ...

A view is arithmetic on a descriptor and no memory traffic. Fresh memory comes from the support
functions, see `support`; where there is none the kernel returns 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xdsl.dialects import memref, vector
from xdsl.dialects.builtin import MemRefType, NoneAttr
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects import ad, array
from ..analysis.additions import is_cell, place_of
from .arena import chained_pop, chained_push
from .kernel_memory import KernelMemory
from .kernel_state import (
    OUT_OF_MEMORY,
    Descriptor,
    KernelState,
    Place,
    alignment_of,
    memory_type,
    number_type,
    size_of,
    value_type,
)
from .line_starts import lead_of, lead_of_tape
from .llvm_text import integer
from .overlap_test import lower_overlap
from .support.context import TAPE_WORDS
from .whole_lines import LINE

RUNTIME_MEMORY = "nounwind memory(argmem: readwrite, inaccessiblemem: readwrite)"
"""Support functions touch the context and memory that only they know."""


def lower_load(state: KernelState, op: memref.LoadOp) -> None:
    source = state.memrefs[op.memref]
    state.scalars[op.res] = state.load(
        *place_in_memory(state, place_of(op), source), op.res.name_hint
    )


def lower_store(state: KernelState, op: memref.StoreOp) -> None:
    value = state.scalars[op.value]
    state.store(value, *place_in_memory(state, place_of(op), state.memrefs[op.memref]))


def place_in_memory(
    state: KernelState, place: Place, memref: Descriptor
) -> tuple[str, Attribute, str]:
    """Address, element type and metadata of an access."""
    register = state.registers.get(place)
    if register is not None:
        return register, memref.element, ""
    address = state.address(memref, [state.scalars[i] for i in place[1]])
    # Of variables `leaf_facts` says nothing: iterations may hand them on.
    group = "" if is_cell(place[0]) else state.group
    return address, memref.element, state.scopes.tags(place[0]) + group


def lower_load_lanes(state: KernelState, op: vector.LoadOp) -> None:
    address, tags = row_in_memory(state, op.base, op.indices)
    type_ = value_type(op.result.type)
    at = alignment_of(number_type(op.result.type))
    state.scalars[op.result] = state.text.value(f"load {type_}, ptr {address}, align {at}{tags}")


def lower_store_lanes(state: KernelState, op: vector.StoreOp) -> None:
    address, tags = row_in_memory(state, op.base, op.indices)
    type_, value = value_type(op.vector.type), state.scalars[op.vector]
    at = alignment_of(number_type(op.vector.type))
    state.text.do(f"store {type_} {value}, ptr {address}, align {at}{tags}")


def row_in_memory(
    state: KernelState, source: SSAValue, indices: Sequence[SSAValue]
) -> tuple[str, str]:
    """Address and metadata of elements side by side, of which the subscripts are of the first."""
    address = state.address(state.memrefs[source], [state.scalars[i] for i in indices])
    return address, state.scopes.tags(source) + state.group


def lower_cell(state: KernelState, op: memref.AllocaOp) -> None:
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    assert not type_.get_num_dims()
    slot = state.text.alloca(memory_type(type_.element_type), op.memref.name_hint or "cell")
    state.memrefs[op.memref] = Descriptor(slot, (), (), type_.element_type)


def lower_dim(state: KernelState, op: memref.DimOp) -> None:
    axis = array.constant_value(op.index)
    assert axis is not None
    state.scalars[op.result] = state.memrefs[op.source].extents[axis]


def lower_stride(state: KernelState, op: array.StrideOp) -> None:
    state.scalars[op.result] = state.memrefs[op.source].strides[op.axis.value.data]


def lower_cast(state: KernelState, op: memref.CastOp) -> None:
    state.memrefs[op.dest] = state.memrefs[op.source]


def lower_view(state: KernelState, op: array.ViewOp) -> None:
    text = state.text
    source = state.memrefs[op.source]
    offset = "0"
    for start, stride in zip(op.offsets, source.strides, strict=True):
        offset = text.add(offset, text.mul(state.scalars[start], stride))
    pointer = state.offset(source.pointer, source.element, offset, inbounds=False)
    strides = tuple(
        "0" if d < 0 else text.mul(source.strides[d], state.scalars[step])
        for d, step in zip(op.source_dims, op.steps, strict=True)
    )
    extents = tuple(state.scalars[e] for e in op.extents)
    assert isinstance(op.result.type, MemRefType)
    state.memrefs[op.result] = state.descriptor(op.result.type, pointer, extents, strides)


def lower_collapse(state: KernelState, op: array.CollapseOp) -> None:
    text = state.text
    source = state.memrefs[op.source]
    first, end = op.merged
    stride = source.strides[end - 1]
    inner = source.extents[end - 1]
    if op.units is not None:  # that of the last dimension which has not one element
        for d in reversed(range(first, end - 1)):
            alone = text.value(f"icmp eq i64 {inner}, 1")
            stride = text.value(f"select i1 {alone}, i64 {source.strides[d]}, i64 {stride}")
            inner = text.mul(inner, source.extents[d])
    strides = (*source.strides[:first], stride, *source.strides[end:])
    extents = tuple(state.scalars[e] for e in op.extents)
    assert isinstance(op.result.type, MemRefType)
    state.memrefs[op.result] = state.descriptor(op.result.type, source.pointer, extents, strides)


def bytes_of(state: KernelState, type_: MemRefType[Attribute], extents: list[str]) -> str:
    """The size of a contiguous array in bytes; 2^64 - 1 where it does not fit 64 bits."""
    text = state.text
    total, overflow = str(size_of(type_.element_type)), "false"
    name = state.intrinsic("llvm.umul.with.overflow.i64", "{ i64, i1 }", "i64, i64")
    for extent in extents:
        x, y = integer(total), integer(extent)
        if x is not None and y is not None:
            total = str(x * y)
            continue
        pair = text.value(f"call {{ i64, i1 }} @{name}(i64 {total}, i64 {extent})")
        total = text.value(f"extractvalue {{ i64, i1 }} {pair}, 0")
        wrapped = text.value(f"extractvalue {{ i64, i1 }} {pair}, 1")
        overflow = wrapped if overflow == "false" else text.value(f"or i1 {overflow}, {wrapped}")
    if overflow == "false":
        return total if int(total) < 2**63 else "-1"
    return text.value(f"select i1 {overflow}, i64 -1, i64 {total}")


def support_call(state: KernelState, function: str, *arguments: str) -> str:
    state.support.add(function)
    group = state.attribute_group(RUNTIME_MEMORY)
    return state.text.value(f"call ptr @{function}({', '.join(arguments)}) {group}")


def fresh(
    state: KernelState, result: SSAValue, extents: list[SSAValue], function: str, *leading: str
) -> None:
    """A contiguous array in memory from a support function that may have none left."""
    type_ = result.type
    assert isinstance(type_, MemRefType)
    shape = [state.scalars[e] for e in extents]
    size = bytes_of(state, type_, shape)
    lead = (
        lead_of(result) if function == "mutad_alloc" and state.memory is KernelMemory.SYSTEM else 0
    )
    if lead:
        name = state.intrinsic("llvm.uadd.sat.i64", "i64", "i64, i64")
        size = state.text.value(f"call i64 @{name}(i64 {size}, i64 {lead})")
    pointer = support_call(state, function, "ptr %ctx", *leading, f"i64 {size}")
    if function not in ("mutad_tape_pop", "mutad_tape_read"):
        state.return_when(state.text.value(f"icmp eq ptr {pointer}, null"), OUT_OF_MEMORY)
    if lead:
        pointer = state.text.value(f"getelementptr inbounds i8, ptr {pointer}, i64 {lead}")
    state.memrefs[result] = state.descriptor(type_, pointer, tuple(shape))


def lower_growable(state: KernelState, op: array.AllocOp) -> None:
    """Reserved address space: always the same at this place of the code, in one call."""
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    state.reserved += 2
    number = state.reserved + (array.ZERO in op.attributes)
    pointer = support_call(state, "mutad_reserve", "ptr %ctx", f"i64 {number}")
    state.return_when(state.text.value(f"icmp eq ptr {pointer}, null"), OUT_OF_MEMORY)
    if array.CLEARED in op.attributes:
        state.support.add("mutad_clear")
        state.text.do(f"call void @mutad_clear(ptr {pointer})")
    shape = tuple(state.scalars[e] for e in op.extents)
    state.memrefs[op.memref] = state.descriptor(type_, pointer, shape)


def lower_alloc(state: KernelState, op: array.AllocOp) -> None:
    if array.GROWABLE in op.attributes:
        lower_growable(state, op)
        return
    if array.STACK in op.attributes:
        lower_on_stack(state, op)
        return
    function = "mutad_alloc_result" if op in state.escaping else "mutad_alloc"
    fresh(state, op.memref, list(op.extents), function)


def lower_on_stack(state: KernelState, op: array.AllocOp) -> None:
    """A slot of the function that is written now; of a thread's own, where that is a thread's."""
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    shape = tuple(state.scalars[e] for e in op.extents)
    (size,) = type_.get_shape()
    slot = state.text.alloca(f"[{size} x {memory_type(type_.element_type)}]", "buffer", 16)
    state.memrefs[op.memref] = state.descriptor(type_, slot, shape)


def lower_tape(state: KernelState, op: ad.TapeOp) -> None:
    if state.chained:
        state.scalars[op.tape] = slot = state.text.alloca("i64", "tape")
        state.text.do(f"store i64 0, ptr {slot}")
        return
    words = TAPE_WORDS
    slot = state.text.alloca(f"[{words} x i64]", "tape")
    state.text.do(f"store [{words} x i64] zeroinitializer, ptr {slot}")
    state.scalars[op.tape] = slot
    if state.memory is KernelMemory.AREA:
        reserve_tape(state, slot, op.reserved)
    elif not state.memory.launches and (op.reserved is not None or not op.grows):
        size = str(LINE) if op.reserved is None else state.scalars[op.reserved]
        expect_bytes(state, slot, size, lead_of_tape(op))


def expect_bytes(state: KernelState, slot: str, size: str, lead: int) -> None:
    """The first chunk of a tape will have so many bytes, or what its first segment takes, and all begin
    `lead` bytes behind a line: an empty chunk that ends there says so (`mutad_tape_grow`)."""
    text = state.text
    size = text.value(f"and i64 {text.add(size, str(LINE - 1))}, {-LINE}")
    size = text.value(f"or i64 {size}, {lead}") if lead else size
    for offset in (8, 16):
        at = state.text.value(f"getelementptr inbounds i8, ptr {slot}, i64 {offset}")
        state.text.do(f"store i64 {size}, ptr {at}, align 8")


def reserve_tape(state: KernelState, slot: str, size: SSAValue | None) -> None:
    """The whole of a tape's memory, of which its segments are taken; none for one that is not used."""
    text = state.text
    reserved = "0" if size is None else state.scalars[size]
    found = support_call(state, "mutad_alloc_result", "ptr %ctx", f"i64 {reserved}")
    state.return_when(text.value(f"icmp eq ptr {found}, null"), OUT_OF_MEMORY)
    end = text.value(f"getelementptr i8, ptr {found}, i64 {reserved}")
    for offset, field in ((8, found), (16, end)):
        at = text.value(f"getelementptr inbounds i8, ptr {slot}, i64 {offset}")
        text.do(f"store ptr {field}, ptr {at}, align 8")


def lower_push(state: KernelState, op: ad.PushOp) -> None:
    if state.chained:
        chained(state, op)
        return
    tape = f"ptr {state.scalars[op.tape]}"
    fresh(state, op.memref, list(op.extents), "mutad_tape_push", tape)


def lower_pop(state: KernelState, op: ad.PopOp) -> None:
    if state.chained:
        chained(state, op)
        return
    tape = f"ptr {state.scalars[op.tape]}"
    function = "mutad_tape_read" if isinstance(op.tape.owner, ad.ReaderOp) else "mutad_tape_pop"
    if function == "mutad_tape_pop":
        state.support.add("mutad_tape_push")
    fresh(state, op.memref, list(op.extents), function, tape)


def chained(state: KernelState, op: ad.PushOp | ad.PopOp) -> None:
    """A segment of an activation's tape."""
    type_ = op.memref.type
    assert isinstance(type_, MemRefType)
    shape = [state.scalars[e] for e in op.extents]
    tape = state.scalars[op.tape]
    if isinstance(op, ad.PushOp):
        pointer = chained_push(state, tape, bytes_of(state, type_, shape))
    else:
        pointer = chained_pop(state, tape)
    state.memrefs[op.memref] = state.descriptor(type_, pointer, tuple(shape))


def takes_scratch(state: KernelState, op: Operation) -> bool:
    """True for an allocation of memory that ends with the iteration or the call."""
    return (
        isinstance(op, array.AllocOp)
        and op not in state.escaping
        and isinstance(op.memref.type.memory_space, NoneAttr)  # of a device there are others
        and not {array.GROWABLE, array.STACK} & op.attributes.keys()
    )


MEMORY_OPS: dict[type[Operation], Callable[[KernelState, Any], None]] = {
    memref.LoadOp: lower_load,
    memref.StoreOp: lower_store,
    vector.LoadOp: lower_load_lanes,
    vector.StoreOp: lower_store_lanes,
    memref.AllocaOp: lower_cell,
    memref.DimOp: lower_dim,
    array.StrideOp: lower_stride,
    array.OverlapOp: lower_overlap,
    memref.CastOp: lower_cast,
    array.ViewOp: lower_view,
    array.CollapseOp: lower_collapse,
    array.AllocOp: lower_alloc,
    ad.TapeOp: lower_tape,
    ad.PushOp: lower_push,
    ad.PopOp: lower_pop,
}
