"""The entries of a split gradient that come after its `forward`: `back` and `drop`.

`back(record, shadows.., cotangents..)` calls `@backward` and returns the cotangents of the active scalars;
`drop(arena)` gives back the memory that `forward` has left. Records and arenas are addresses, as ints.
"""

from __future__ import annotations

from .plan import EntryPlan
from .result import Boxes
from .run import CTX_BYTES, endings, fill_context, run_kernel
from .shadows import cotangent_operands, shadow_operands
from .tangents import in_lanes, scalar_spec
from .writer import Writer


def back(plan: EntryPlan, symbols: dict[str, str]) -> str:
    """The body of the entry of the reverse sweep."""
    w = Writer(symbols)
    scalars = plan.gradient.scalars
    lanes = plan.lanes
    words_of = {"ctx": CTX_BYTES // 8, "results": lanes * len(scalars), "nothing": lanes}
    for name, words in words_of.items():
        w.do(f"%{name} = alloca [{max(words, 1)} x i64], align 64")
    boxes = Boxes(w)
    boxes.begin()
    w.do(f"store [{lanes} x i64] zeroinitializer, ptr %nothing")
    count = 1 + len(plan.gradient.shadows) + len(plan.gradient.cotangents)
    w.require(w.value(f"icmp eq i64 %nargs, {count}"))
    operands = [f"ptr {handed_address(w, 0)}"]
    for k, position in enumerate(plan.gradient.shadows):
        operands += shadow_operands(w, plan, position, w.field("%args", 8 * (1 + k)))
    operands += cotangent_operands(w, plan, "back", 1 + len(plan.gradient.shadows))
    run_kernel(w, operands, "backward", recursive=plan.recursive, retries=True)
    bars: dict[int, str] = {}
    for k, position in enumerate(scalars):
        spec = in_lanes(scalar_spec(plan.keys[position]), lanes)
        bars[position] = boxes.result(spec, lanes * k, {})
    for position in plan.wrt_scalars():
        if position not in bars:
            bars[position] = boxes.zero(plan.scalar_type(position))
    boxes.finish(boxes.tuple([bars[p] for p in plan.wrt_scalars()]))
    endings(w, boxes, 0, retries=True)
    return "\n".join(w.lines)


def drop(symbols: dict[str, str]) -> str:
    """The body of the entry that gives memory back."""
    w = Writer(symbols)
    w.do(f"%ctx = alloca [{CTX_BYTES // 8} x i64], align 64")
    fill_context(w)
    w.do(f"call void {w.code('drop')}(ptr %ctx, ptr {handed_address(w, 0)})")
    none = w.object("_Py_NoneStruct")
    w.call("Py_IncRef", none)
    w.do(f"ret ptr {none}")
    return "\n".join(w.lines)


def handed_address(w: Writer, position: int) -> str:
    """The address that is handed in as an int."""
    overflow = w.value("alloca i32")
    given = w.field("%args", 8 * position)
    number = w.call("PyLong_AsLongLongAndOverflow", given, overflow)
    return w.value(f"inttoptr i64 {number} to ptr", "address")
