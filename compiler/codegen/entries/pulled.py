"""What users hand to `pullback`: arguments in wrappers, and the cotangent of the result.

::

    f.pullback(Duplicated(u, u_shadow), Active(k), Const(3), cotangent=1.0)

The entry takes it as it is where Python code would hand it on: shadows of the dtype and extents of their
arrays, contiguous in their order, and a cotangent as compiled code has it, all apart in memory. A kernel that
leaves out guards may ask for one that has them, when it has added to shadows: they are copied before, so the
entry takes few numbers alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...argument_keys import ArrayKey
from .directions import checked
from .guard import ArrayValue, check_sharing, unpack_array
from .plan import EntryPlan
from .result import has_cotangent, leaves_of
from .shadows import float_value
from .stacked import product
from .wrapped import CONST
from .writer import FLOATS, HEADER, ITEM_SIZE, LLVM_TYPE, SCALAR_TYPE, TYPE, Writer

MOST_BYTES, MOST_SHADOWS = 1 << 15, 4
"""Of one shadow, and how many there may be: they are copied to the stack."""
DUPLICATED, ACTIVE = 1, 2
"""The places of classes in the link's slot `wrappers`."""

MEMCPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


def has_pulled(plan: EntryPlan) -> bool:
    """Whether there is such an entry."""
    if plan.mode not in ("gradient", "pullback") or plan.lanes > 1 or plan.driver or plan.of_parts:
        return False
    if not plan.wrt or max(plan.wrt) >= plan.signature.parameters or plan.gradient.filled:
        return False
    arrays = {p for p in plan.wrt if isinstance(plan.keys[p], ArrayKey)}
    if arrays != {*plan.gradient.shadows} or len(arrays) > MOST_SHADOWS:
        return False
    if (
        not all(is_contiguous(plan, p) for p in arrays)
        or {p for pair in plan.overlaps for p in pair} & plan.watched()
    ):
        return False
    result, wanted = plan.results, plan.gradient.cotangents
    if not any(map(has_cotangent, leaves_of(result))):
        return not wanted
    plain = result["kind"] in ("scalar", "array") and "list" not in result
    return plain and wanted == (0,) and result.get("type", result.get("dtype")) in FLOATS


def is_contiguous(plan: EntryPlan, position: int) -> bool:
    key = plan.keys[position]
    return isinstance(key, ArrayKey) and key.layout in "CF"


@dataclass
class Handed:
    """What a call hands in."""

    primals: str = ""
    """Where the arguments are, without their wrappers."""
    shadows: dict[int, str] = field(default_factory=dict[int, str])
    """By parameter."""
    bar: str = ""
    """The cotangent, where there is one."""
    arrays: list[ArrayValue] = field(default_factory=list[ArrayValue])
    """The shadows, unpacked."""
    copies: list[tuple[str, str, str]] = field(default_factory=list[tuple[str, str, str]])
    """Of each shadow its memory, its copy, and how many bytes these are."""


def unwrapped(w: Writer, plan: EntryPlan) -> Handed:
    """Take everything out of its wrappers."""
    count = plan.signature.parameters
    handed = Handed(w.value(f"alloca [{count} x ptr]", "primals"))
    w.require(w.value(f"icmp eq i64 %nargs, {count}"))
    if any(map(has_cotangent, leaves_of(plan.results))):
        handed.bar = named(w, count)
    else:
        w.require(w.value("icmp eq ptr %kwnames, null"))
    wrappers = w.slot("wrappers")
    classes = [w.call("PyTuple_GetItem", wrappers, str(i)) for i in (CONST, DUPLICATED, ACTIVE)]
    for p in range(count):
        obj, kind = w.field("%args", 8 * p), CONST
        if p in plan.wrt:
            kind = DUPLICATED if isinstance(plan.keys[p], ArrayKey) else ACTIVE
        w.require(w.value(f"icmp eq ptr {w.field(obj, TYPE)}, {classes[kind]}"))
        w.store("ptr", w.field(obj, HEADER), handed.primals, 8 * p)
        if kind == DUPLICATED:
            handed.shadows[p] = w.field(obj, HEADER + 8)
    return handed


def named(w: Writer, count: int) -> str:
    """The value of the only keyword, which is `cotangent`."""
    w.require(w.value("icmp ne ptr %kwnames, null"))
    w.require(w.value(f"icmp eq i64 {w.call('PyTuple_Size', '%kwnames')}, 1"))
    keyword = w.call("PyTuple_GetItem", "%kwnames", "0")
    w.require(w.value(f"icmp eq ptr {keyword}, {w.slot('cotangent')}"))
    return w.field("%args", 8 * count)


def bar_operands(
    w: Writer,
    plan: EntryPlan,
    handed: Handed,
    primals: Sequence[str],
    arrays: Sequence[tuple[int, ArrayValue]],
) -> list[str]:
    """The operands of the cotangent, after a check of all that is `handed` in; shadows are copied."""
    count = len(plan.keys)
    own: list[tuple[int, ArrayValue]] = []
    for p, shadow in handed.shadows.items():
        _, found = checked(w, plan, p, shadow, primals[p], written=True)
        assert found is not None
        own.append((count + p, found))
    operands: list[str] = []
    spec = plan.results
    if handed.bar and spec["kind"] == "scalar":
        kind = w.field(handed.bar, TYPE)
        known = [w.object(name) for name in ("PyFloat_Type", SCALAR_TYPE["f64"])]
        either = [w.value(f"icmp eq ptr {kind}, {one}") for one in known]
        w.require(w.value(f"or i1 {either[0]}, {either[1]}"))
        type_ = LLVM_TYPE[spec["type"]]
        operands = [f"{type_} {float_value(w, type_, handed.bar)}"]
    elif handed.bar:
        key = ArrayKey(spec["dtype"], ("",) * spec["rank"], "C")
        given = unpack_array(w, key, handed.bar, written=False)
        own.append((2 * count, given))
        operands = given.operands()
    check_sharing(w, [*own, *arrays], {}, {p for p, _ in own})
    handed.copies = [copied(w, array) for p, array in own if p < 2 * count]
    return operands


def copied(w: Writer, shadow: ArrayValue) -> tuple[str, str, str]:
    """A shadow of few numbers, a copy of it on the stack, and the bytes of either."""
    item = ITEM_SIZE[shadow.key.dtype]
    bytes_ = w.value(f"mul i64 {product(w, shadow.extents) if shadow.extents else 1}, {item}")
    w.require(w.value(f"icmp ule i64 {bytes_}, {MOST_BYTES}"))
    copy = w.value(f"alloca i8, i64 {bytes_}, align 64", "before")
    move(w, copy, shadow.data, bytes_)
    return shadow.data, copy, bytes_


def restored(w: Writer, handed: Handed) -> None:
    """Make shadows what they were."""
    for data, copy, bytes_ in handed.copies:
        move(w, data, copy, bytes_)


def move(w: Writer, to: str, source: str, bytes_: str) -> None:
    w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {to}, ptr {source}, i64 {bytes_}, i1 false)")
