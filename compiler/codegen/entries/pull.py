"""`pull`: a reverse sweep from what `back` is called with, to the gradients that it returns.

`pull(record, shapes, shape, single, out_bar, ...)`: the address of what `vjp` keeps, the shapes of the arrays
with shadows, that of the result, whether `wrt` was one name. Behind the cotangent of the result there may be
those of the final values of all arrays with shadows, None for zeros. It exists where the result is one float,
an array of floats, or None, and takes cotangents that are as compiled code has them. Python code takes all
others (`runtime/vjp.py`). What is handed in is checked before anything is made.
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

MEMORY = """declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"""


def has_pull(plan: EntryPlan) -> bool:
    """Whether there is such an entry."""
    if plan.mode != "vjp" or plan.overlaps or plan.driver or plan.of_parts or not plan.wrt:
        return False
    keys = [plan.keys[p] for p in plan.gradient.shadows]
    if not all(isinstance(key, ArrayKey) and key.layout == "C" for key in keys):
        return False
    arrays = {p for p in plan.wrt if isinstance(plan.keys[p], ArrayKey)}
    if not arrays <= {*plan.gradient.shadows}:
        return False
    result, wanted = plan.results, plan.gradient.cotangents
    if result["kind"] == "none":
        return wanted == () and plan.lanes == 1
    return (
        result["kind"] in ("scalar", "array")
        and "list" not in result
        and wanted == (0,)
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
    places = plan.gradient.shadows
    shapes, shape, single, bar = (w.field("%args", 8 * k) for k in (1, 2, 3, 4))
    w.require(w.value(f"icmp eq i64 %nargs, {5 + len(places)}"))
    wholes = [new_extents(w, plan, k, p, shapes) for k, p in enumerate(places)]
    finals = [
        final(w, plan, k, position, whole)
        for k, (position, whole) in enumerate(zip(places, wholes, strict=True))
    ]
    bars = cotangent(w, plan, boxes, bar, shape)
    operands = [f"ptr {handed_address(w, 0)}"]
    shadows: dict[int, str] = {}
    for position, whole, given in zip(places, wholes, finals, strict=True):
        key = plan.keys[position]
        assert isinstance(key, ArrayKey)
        shadows[position] = filled(w, boxes, key, whole, given)
        operands += shadow_operands(w, plan, position, shadows[position])
    operands += bars
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


def new_extents(w: Writer, plan: EntryPlan, number: int, position: int, shapes: str) -> list[str]:
    """Those of a shadow of few numbers; several lanes lie beside each other."""
    key = plan.keys[position]
    assert isinstance(key, ArrayKey)
    extents = ints(w, w.call("PyTuple_GetItem", shapes, str(number)), key.rank)
    whole = [*extents, *([str(plan.lanes)] if plan.lanes > 1 else [])]
    w.require(w.value(f"icmp ult i64 {product(w, whole)}, {LARGE}"))
    return whole


def final(w: Writer, plan: EntryPlan, number: int, position: int, whole: list[str]) -> str:
    """The numbers of the cotangent of an array's final value; null for zeros."""
    key = plan.keys[position]
    assert isinstance(key, ArrayKey)
    given, none = w.field("%args", 8 * (5 + number)), w.object("_Py_NoneStruct")
    is_none = w.value(f"icmp eq ptr {given}, {none}")
    if plan.lanes > 1:
        w.require(is_none)
        return "null"
    there, known = w.fresh("final"), w.fresh("known")
    place = w.value("alloca ptr")
    w.do(f"store ptr null, ptr {place}")
    w.do(f"br i1 {is_none}, label %{known}, label %{there}")
    w.label(there)
    found = unpack_array(w, ArrayKey(key.dtype, ("",) * key.rank, "C"), given, written=False)
    for extent, own in zip(found.extents, whole, strict=True):
        w.require(w.value(f"icmp eq i64 {extent}, {own}"))
    w.do(f"store ptr {found.data}, ptr {place}")
    w.do(f"br label %{known}")
    w.label(known)
    return w.value(f"load ptr, ptr {place}", "final")


def filled(w: Writer, boxes: Boxes, key: ArrayKey, whole: list[str], given: str) -> str:
    """A new array: of what is given, or of zeros."""
    shape = w.value(f"alloca [{max(len(whole), 1)} x i64]")
    for d, extent in enumerate(whole):
        w.store("i64", extent, shape, 8 * d)
    made = boxes.keep(new(w, key.dtype, len(whole), shape, "null", "null", "0"))
    bytes_, data = (
        w.value(f"mul i64 {product(w, whole)}, {ITEM_SIZE[key.dtype]}"),
        w.field(made, ARRAY_DATA),
    )
    copy, clear, ready = w.fresh("copy"), w.fresh("clear"), w.fresh("ready")
    w.do(f"br i1 {w.value(f'icmp ne ptr {given}, null')}, label %{copy}, label %{clear}")
    w.label(copy)
    w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {data}, ptr {given}, i64 {bytes_}, i1 false)")
    w.do(f"br label %{ready}")
    w.label(clear)
    w.do(f"call void @llvm.memset.p0.i64(ptr {data}, i8 0, i64 {bytes_}, i1 false)")
    w.do(f"br label %{ready}")
    w.label(ready)
    return made


def cotangent(w: Writer, plan: EntryPlan, boxes: Boxes, bar: str, shape: str) -> list[str]:
    """The operands of the cotangent of the result, of several lanes stacked along a first axis."""
    spec, lanes = plan.results, plan.lanes
    if spec["kind"] == "none":
        w.require(w.value(f"icmp eq ptr {bar}, {w.object('_Py_NoneStruct')}"))
        return []
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
