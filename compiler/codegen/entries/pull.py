"""`pull`: a reverse sweep from what `back` is called with, to the gradients that it returns.

`pull(record, shapes, shape, single, out_bar)`: the address of what `vjp` keeps, the shapes of the arrays
with shadows, that of the result, whether `wrt` was one name. It exists where the result is one float or an
array of floats, and takes a cotangent that is as compiled code has it. Python code takes all others, and
those of final values of arguments (`runtime/vjp.py`).
"""

from __future__ import annotations

from ...argument_keys import ArrayKey, ScalarKey
from .guard import ArrayValue, load_array, unpack_array
from .handles import handed_address
from .plan import EntryPlan
from .result import Boxes
from .run import CTX_BYTES, endings, run_kernel
from .several import new
from .shadows import LARGE, float_value, shadow_operands, tangents_of_number
from .stacked import product, turned_anew
from .tangents import scalar_spec
from .writer import ARRAY_DATA, FLOATS, ITEM_SIZE, LLVM_TYPE, SCALAR_TYPE, TYPE, Writer

MEMSET = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"


def has_pull(plan: EntryPlan) -> bool:
    """Whether there is such an entry."""
    if plan.mode != "vjp" or plan.overlaps or plan.driver or plan.of_parts or not plan.wrt:
        return False
    keys = [plan.keys[p] for p in plan.gradient.shadows]
    if not all(isinstance(key, ArrayKey) and key.layout == "C" for key in keys):
        return False
    arrays = {p for p in plan.wrt if isinstance(plan.keys[p], ArrayKey)}
    if not arrays <= {*plan.gradient.shadows} or plan.gradient.cotangents != (0,):
        return False
    result = plan.results
    return (
        result["kind"] in ("scalar", "array")
        and "list" not in result
        and (result.get("type", result.get("dtype")) in FLOATS)
    )


def pull(plan: EntryPlan, symbols: dict[str, str]) -> str:
    """The body of the entry."""
    w, lanes = Writer(symbols), plan.lanes
    words = {"ctx": CTX_BYTES // 8, "results": lanes * len(plan.gradient.scalars)}
    for name, count in words.items():
        w.do(f"%{name} = alloca [{max(count, 1)} x i64], align 64")
    boxes = Boxes(w)
    boxes.begin()
    w.require(w.value("icmp eq i64 %nargs, 5"))
    operands = [f"ptr {handed_address(w, 0)}"]
    shapes, shape, single, bar = (w.field("%args", 8 * k) for k in (1, 2, 3, 4))
    shadows: dict[int, str] = {}
    for k, position in enumerate(plan.gradient.shadows):
        key = plan.keys[position]
        assert isinstance(key, ArrayKey)
        extents = ints(w, w.call("PyTuple_GetItem", shapes, str(k)), key.rank)
        shadows[position] = zeros(w, boxes, key, extents, lanes)
        operands += shadow_operands(w, plan, position, shadows[position])
    operands += cotangent(w, plan, boxes, bar, shape)
    run_kernel(w, operands, "backward", recursive=plan.recursive, retries=True)
    found: dict[int, str] = {}
    for k, position in enumerate(plan.gradient.scalars):
        at = w.value(f"getelementptr i64, ptr %results, i64 {lanes * k}")
        found[position] = number(boxes, plan, position, at)
    for position in plan.wrt:
        key = plan.keys[position]
        if isinstance(key, ScalarKey) and position not in found:
            found[position] = number(boxes, plan, position, "")
        elif isinstance(key, ArrayKey):
            beside = shadows[position]
            found[position] = (
                beside if lanes == 1 else boxes.lanes_first(key.dtype, key.rank, beside)
            )
    if len(plan.wrt) == 1:
        held = list(boxes.made)
        w.do(f"%one = icmp eq ptr {single}, {w.object('_Py_TrueStruct')}")
        w.do("br i1 %one, label %alone, label %together")
        w.label("alone")
        boxes.finish(found[plan.wrt[0]])
        boxes.made = held
        w.label("together")
    boxes.finish(boxes.tuple([found[p] for p in plan.wrt]))
    endings(w, boxes, 0, retries=True)
    return "\n".join(w.lines)


def ints(w: Writer, obj: str, count: int) -> list[str]:
    """The items of a tuple of so many ints."""
    overflow = w.value("alloca i32")
    items = [w.call("PyTuple_GetItem", obj, str(d)) for d in range(count)]
    return [w.call("PyLong_AsLongLongAndOverflow", item, overflow) for item in items]


def zeros(w: Writer, boxes: Boxes, key: ArrayKey, extents: list[str], lanes: int) -> str:
    """A new array of zeros, of few numbers; of several lanes beside each other."""
    whole = [*extents, *([str(lanes)] if lanes > 1 else [])]
    count = product(w, whole)
    w.require(w.value(f"icmp ult i64 {count}, {LARGE}"))
    shape = w.value(f"alloca [{max(len(whole), 1)} x i64]")
    for d, extent in enumerate(whole):
        w.store("i64", extent, shape, 8 * d)
    made = boxes.keep(new(w, key.dtype, len(whole), shape, "null", "null", "0"))
    bytes_ = w.value(f"mul i64 {count}, {ITEM_SIZE[key.dtype]}")
    w.do(
        f"call void @llvm.memset.p0.i64(ptr {w.field(made, ARRAY_DATA)}, i8 0, i64 {bytes_}, i1 false)"
    )
    return made


def cotangent(w: Writer, plan: EntryPlan, boxes: Boxes, bar: str, shape: str) -> list[str]:
    """The operands of the cotangent of the result, of several lanes stacked along a first axis."""
    spec, lanes = plan.results, plan.lanes
    if spec["kind"] == "scalar":
        type_ = spec["type"]
        if lanes == 1:
            kind = w.field(bar, TYPE)
            known = [w.object(name) for name in ("PyFloat_Type", SCALAR_TYPE["f64"])]
            is_one = [w.value(f"icmp eq ptr {kind}, {one}") for one in known]
            w.require(w.value(f"or i1 {is_one[0]}, {is_one[1]}"))
            llvm = LLVM_TYPE[type_]
            return [f"{llvm} {float_value(w, llvm, bar)}"]
        dtype = "f64" if type_ == "py_float" else type_
        given = unpack_array(w, ArrayKey(dtype, ("",), "C"), bar, written=False)
        w.require(w.value(f"icmp eq i64 {given.extents[0]}, {lanes}"))
        return [tangents_of_number(w, ScalarKey(type_, lanes), bar)]
    rank, dtype = spec["rank"], spec["dtype"]
    wanted = [*([str(lanes)] if lanes > 1 else []), *ints(w, shape, rank)]
    given = unpack_array(w, ArrayKey(dtype, ("",) * len(wanted), "C"), bar, written=False)
    for extent, own in zip(given.extents, wanted, strict=True):
        w.require(w.value(f"icmp eq i64 {extent}, {own}"))
    if lanes == 1:
        return given.operands()
    w.require(w.value(f"icmp ult i64 {product(w, given.extents)}, {LARGE}"))
    beside = boxes.keep(turned_anew(w, boxes, given))
    laid = ArrayKey(dtype, ("?",) * rank, "S", lanes=lanes)
    return ArrayValue(laid, beside, *load_array(w, laid, beside)).operands()


def number(boxes: Boxes, plan: EntryPlan, position: int, address: str) -> str:
    """The cotangent of a number, or the array of those of all lanes; zeros without an address."""
    key = plan.keys[position]
    assert isinstance(key, ScalarKey)
    if plan.lanes > 1:
        return boxes.numbers([scalar_spec(key)] * plan.lanes, address)
    return boxes.scalar(key.type, address) if address else boxes.zero(key.type)
