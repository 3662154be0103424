"""The C entry of an exported function, as LLVM text: arguments are unpacked and checked, the kernel called.

    define i32 @loss(ptr %u, double %kappa, ptr %result, ptr %work, i64 %work_bytes) nounwind {
      ... load data, extents and strides of u; leave with a status where they are not as promised
      %ctx = alloca [36 x i64]                        ; the kernel's context: its memory, nothing else
      %status = call i32 @loss_kernel(ptr %ctx, ptr %data, i64 %n, i64 %stride, double %kappa, ptr %results)
      ... the status, or the results in the caller's places
    }

Nothing is stored before all checks have passed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import combinations

from ...dialects.ad import AS_MANY_AS_IT_TAKES
from ..argument_keys import ArrayKey, ScalarKey
from ..codegen.entries.guard import (
    EXTENT_MAX,
    ArrayValue,
    Form,
    Leaf,
    ScalarValue,
    ends_in_memory,
    memory_bounds,
    never_overlaps_itself,
    value_of,
)
from ..codegen.entries.run import CTX_BYTES, CTX_PAYLOAD
from ..codegen.entries.writer import ITEM_SIZE, LLVM_TYPE, Writer
from ..codegen.kernel_memory import KernelMemory
from ..codegen.kernel_module import SIZES
from ..codegen.support import area, callbacks
from ..codegen.support.context import CURSOR, END
from ..codegen.support.context import RECURSION_LIMIT as LIMIT_AT
from .signature import ArrayParameter, CFunction, OutParameter, ScalarParameter, SizeParameter
from .statuses import Statuses

TOO_SMALL = "the work area is too small"
MOST_FLAGS = 16
"""How many flags of results are told, in the place of the values that an exception shows."""
RECURSION_LIMIT = 1000
"""How many calls of recursive functions may be nested, as in CPython."""


@dataclass
class Stored:
    """One result of the kernel, from `slot` on, and the parameter that it goes to."""

    out: OutParameter | None
    slot: int
    argument: str | None = None
    """The array parameter that is returned itself, instead of a slot."""


@dataclass
class KernelCall:
    """What is handed to the kernel, in its order, and what becomes of what it returns."""

    kernel: str
    operands: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    """A kind and a name: the array or scalar "parameter" of that name, "like" an array parameter but
    without memory, a constant "text"."""
    leaves: list[str] = field(default_factory=list[str])
    """Of each IR argument of the primal the parameter, or the name under which it is baked in."""
    baked: dict[str, Leaf] = field(default_factory=dict[str, Leaf])
    """What the function reads from outside, as it was when it was compiled."""
    assumed: Sequence[Form] = ()
    stored: list[Stored] = field(default_factory=list[Stored])
    zeros: list[OutParameter] = field(default_factory=list[OutParameter])
    """Outputs that are 0 whatever the arguments."""
    zeroed: list[str] = field(default_factory=list[str])
    """Array parameters of which the same is true."""
    flags: list[int] = field(default_factory=list[int])
    """The slots that tell whether a result is Python's number or NumPy's."""
    slots: int = 1
    raised: str = ""
    """The constant array with the status of each site of the kernel."""
    recursive: bool = False
    lines: tuple[str, str] = ("", "")
    """What debug metadata adds to the head of the C function, and to the call of the kernel in it."""


class EntryText(Writer):
    """A `Writer` that leaves with a status where a condition does not hold."""

    NO_MEMORY = "the allocator has no memory"

    def __init__(self, statuses: Statuses, symbol: str) -> None:
        super().__init__({})
        self.statuses, self.symbol = statuses, symbol
        self.refusals: dict[int, str] = {}
        self.arrays: dict[str, ArrayValue] = {}
        self.scalars: dict[str, ScalarValue] = {}

    def check(self, condition: str, kind: str, message: str) -> None:
        """Go on where the condition holds."""
        status = self.statuses.status(kind, f"{self.symbol}: {message}")
        self.require(condition, self.refusals.setdefault(status, f"refuse.{status >> 8}"))

    def any_of(self, *conditions: str) -> str:
        total = conditions[0]
        for condition in conditions[1:]:
            total = self.value(f"or i1 {total}, {condition}")
        return total

    def begin(self) -> None:
        """What the entry has on its stack."""
        self.do("%nothing = alloca i64")
        self.do("store i64 0, ptr %nothing")

    # Arguments.

    def unpack(self, p: ArrayParameter) -> None:
        """Load the struct and check it; an optional one that is null is the zero of `%nothing` everywhere."""
        rank = p.key.rank
        source = f"%in.{p.name}"
        if p.optional:
            source = self.or_nothing(p, source)
        data = self.field(source, 0, hint="data")
        extents = tuple(self.field(source, 8 + 8 * d, "i64", "n") for d in range(rank))
        strides = tuple(
            self.field(source, 8 + 8 * (rank + d), "i64", "stride") for d in range(rank)
        )
        self.arrays[p.name] = ArrayValue(p.key, "", data, extents, strides)
        if not p.optional:
            self.check_extents(p)
            self.check_layout(p)
            return
        self.optional(p.name, lambda: (self.check_extents(p), self.check_layout(p)))

    def or_nothing(self, p: ArrayParameter, source: str) -> str:
        """The struct, or one for zeros of any shape in the place of null."""
        rank, absent = p.key.rank, f"%absent.{p.name}"
        self.do(f"store ptr %nothing, ptr {absent}")
        for d in range(rank):
            self.store("i64", str(AS_MANY_AS_IT_TAKES), absent, 8 + 8 * d)
            self.store("i64", "0", absent, 8 + 8 * (rank + d))
        missing = self.value(f"icmp eq ptr {source}, null")
        return self.value(f"select i1 {missing}, ptr {absent}, ptr {source}")

    def check_extents(self, p: ArrayParameter) -> None:
        a = self.arrays[p.name]
        for d, extent in enumerate(a.extents):
            within = self.value(f"icmp ule i64 {extent}, {EXTENT_MAX}")
            self.check(within, "BAD_SHAPE", f"{p.name}.shape[{d}] is negative or too large")
            if a.key.extents[d] == "1":
                one = self.value(f"icmp eq i64 {extent}, 1")
                self.check(one, "BAD_SHAPE", f"{p.name}.shape[{d}] is not 1")

    def check_layout(self, p: ArrayParameter) -> None:
        """Aligned, and of the key's layout; strides along axes of one element mean nothing."""
        a, name = self.arrays[p.name], p.name
        size = ITEM_SIZE[a.key.dtype]
        if size > 1:
            address = self.value(f"ptrtoint ptr {a.data} to i64")
            aligned = self.value(f"icmp eq i64 {self.value(f'and i64 {address}, {size - 1}')}, 0")
            self.check(aligned, "BAD_LAYOUT", f"{name}.data is not aligned for its type")
        if a.key.layout == "S":
            self.check(ends_in_memory(self, a), "BAD_SHAPE", f"{name} ends beyond all memory")
            return
        order = range(a.key.rank) if a.key.layout == "F" else reversed(range(a.key.rank))
        expected, empty = "1", "false"
        for extent in a.extents:
            empty = self.any_of(empty, self.value(f"icmp eq i64 {extent}, 0"))
        conditions: list[str] = []
        for d in order:
            fits = self.value(f"icmp eq i64 {a.strides[d]}, {expected}")
            single = self.value(f"icmp eq i64 {a.extents[d]}, 1")
            conditions.append(self.any_of(fits, single, empty))
            expected = self.value(f"mul i64 {expected}, {a.extents[d]}")
        language = "Fortran" if a.key.layout == "F" else "C"
        self.check(
            self.all_of(conditions), "BAD_LAYOUT", f"{name} is not contiguous in {language} order"
        )

    def check_names(self, arrays: Iterable[ArrayParameter]) -> None:
        """Extents of one name are equal, and those with a number are that."""
        first: dict[str, tuple[str, str]] = {}
        for p in arrays:
            for d, wanted in enumerate(p.extents):
                if wanted is None:
                    continue
                shown, extent = f"{p.name}.shape[{d}]", self.arrays[p.name].extents[d]
                if isinstance(wanted, str):
                    place, value = first.setdefault(wanted, (shown, extent))
                    if place == shown:
                        continue
                    message = f"{shown} is not {wanted}, that of {place}"
                else:
                    value, message = str(wanted), f"{shown} is not {wanted}"
                same = self.value(f"icmp eq i64 {extent}, {value}")
                self.check(same, "BAD_SHAPE", message)

    def check_like(self, name: str, primal: str) -> None:
        """A gradient, cotangent or tangent has the shape of its array."""
        for d, (a, b) in enumerate(
            zip(self.arrays[name].extents, self.arrays[primal].extents, strict=True)
        ):
            same = self.value(f"icmp eq i64 {a}, {b}")
            self.check(same, "BAD_SHAPE", f"{name}.shape[{d}] is not that of {primal}")

    def check_overlaps(self, function: CFunction) -> None:
        """No array that is written shares memory with another, or with itself."""
        arrays = [p for p in function.arrays() if not p.optional]
        for p in arrays:
            if p.watched and p.key.layout == "S":
                apart = never_overlaps_itself(self, self.arrays[p.name])
                self.check(apart, "OVERLAP", f"{p.name} overlaps itself")
        if not any(p.watched for p in arrays):
            return
        bounds = {p.name: memory_bounds(self, self.arrays[p.name]) for p in arrays}
        for p, q in combinations(arrays, 2):
            if p.watched or q.watched:
                (low_p, high_p), (low_q, high_q) = bounds[p.name], bounds[q.name]
                before = self.value(f"icmp ule ptr {high_p}, {low_q}")
                after = self.value(f"icmp ule ptr {high_q}, {low_p}")
                apart = self.any_of(before, after)
                self.check(apart, "OVERLAP", f"{p.name} and {q.name} share memory")

    # The call.

    def operand(self, kind: str, name: str) -> list[str]:
        match kind:
            case "parameter" if name in self.arrays:
                return self.arrays[name].operands()
            case "parameter":
                return self.scalars[name].operands()
            case "like":
                a = self.arrays[name]
                return ["ptr null", *(f"i64 {n}" for n in (*a.extents, *a.strides))]
            case _:
                return [name]

    def fill_context(self, function: CFunction, *, recursive: bool) -> None:
        """The kernel's context: where its memory is."""
        self.do(f"store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx")
        if recursive:
            self.store("i64", str(RECURSION_LIMIT), "%ctx", LIMIT_AT)
        if function.memory is KernelMemory.ALLOCATOR:
            self.store("ptr", "%allocator", "%ctx", callbacks.ALLOCATOR)
            return
        self.store("i64", self.fill_area(function, CURSOR, END), "%ctx", area.ROOM)

    def fill_area(self, function: CFunction, begin: int, end: int) -> str:
        """Where the work area begins and ends; its bytes, which are enough."""
        address = self.value("ptrtoint ptr %work to i64")
        low = self.value(f"and i64 {address}, 63")
        aligned = self.value(f"icmp eq i64 {low}, 0")
        self.check(aligned, "BAD_LAYOUT", "work is not aligned to 64 bytes")
        nowhere = self.value("icmp eq ptr %work, null")
        start = self.value(f"select i1 {nowhere}, i64 64, i64 {address}")
        positive = self.value("icmp sgt i64 %work_bytes, 0")
        whole = self.value("and i64 %work_bytes, -64")
        given = self.value(f"select i1 {positive}, i64 {whole}, i64 0")
        room = self.value(f"select i1 {nowhere}, i64 0, i64 {given}")
        self.store("i64", start, "%ctx", begin)
        self.store("i64", self.value(f"add i64 {start}, {room}"), "%ctx", end)
        sizes = ", ".join(f"i64 {self.size_operand(s, function)}" for s in function.sizes)
        needed = self.value(f"call i64 @{function.symbol}_worksize({sizes})")
        enough = self.value(f"icmp ule i64 {needed}, {room}")
        self.check(enough, "WORK_TOO_SMALL", TOO_SMALL)
        return room

    def size_operand(self, size: SizeParameter, function: CFunction) -> str:
        """What `_worksize` is asked for: an extent, 0 of an array that is not given; an integer."""
        if size.axis is None:
            given = self.scalars[size.parameter]
            type_ = LLVM_TYPE[given.key.type]
            signed = given.key.type.startswith("i")
            extended = f"{'sext' if signed else 'zext'} {type_} {given.value} to i64"
            return given.value if type_ == "i64" else self.value(extended)
        extent = self.arrays[size.parameter].extents[size.axis]
        if not any(p.optional and p.name == size.parameter for p in function.arrays()):
            return extent
        absent = self.value(f"icmp eq i64 {extent}, {AS_MANY_AS_IT_TAKES}")
        return self.value(f"select i1 {absent}, i64 0, i64 {extent}")

    # Results.

    def finish(self) -> None:
        """What comes before each way out behind the call."""

    def exhausted(self, status: int) -> str:
        """The status where there is no more memory."""
        return str(status)

    def optional(self, place: str, write: Callable[[], object]) -> None:
        """Write what the caller wants."""
        wanted, on = self.fresh("wanted"), self.fresh("on")
        null = self.value(f"icmp eq ptr %in.{place}, null")
        self.do(f"br i1 {null}, label %{on}, label %{wanted}")
        self.label(wanted)
        write()
        self.do(f"br label %{on}")
        self.label(on)

    def store_result(self, stored: Stored) -> None:
        out = stored.out
        if out is None:
            return
        base = f"%in.{out.name}"
        if out.rank is None:
            type_ = "i8" if LLVM_TYPE[out.type] == "i1" else LLVM_TYPE[out.type]
            value = self.field("%results", 8 * stored.slot, type_)
            self.optional(out.name, lambda: self.store(type_, value, base, 0))
            return
        if stored.argument is not None:
            a = self.arrays[stored.argument]
            data, numbers = a.data, [*a.extents, *a.strides]
        else:
            data = self.field("%results", 8 * stored.slot)
            numbers = [
                self.field("%results", 8 * (stored.slot + 1 + k), "i64")
                for k in range(2 * out.rank)
            ]

        def write() -> None:
            self.store("ptr", data, base, 0)
            for k, number in enumerate(numbers):
                self.store("i64", number, base, 8 + 8 * k)

        self.optional(out.name, write)

    def store_zero(self, out: OutParameter) -> None:
        type_ = LLVM_TYPE[out.type]
        self.optional(out.name, lambda: self.store(type_, "0.0", f"%in.{out.name}", 0))

    def fill_zeros(self, name: str) -> None:
        """Zeros in an array: element k of it, in the order of subscripts, for each k."""
        a, size = self.arrays[name], ITEM_SIZE[self.arrays[name].key.dtype]
        total = "1"
        for extent in a.extents:
            total = self.value(f"mul i64 {total}, {extent}")
        loop, body, on = self.fresh("zeros"), self.fresh("zero"), self.fresh("on")
        counter = self.value("alloca i64")
        self.do(f"store i64 0, ptr {counter}")
        self.do(f"br label %{loop}")
        self.label(loop)
        k = self.value(f"load i64, ptr {counter}")
        self.do(f"br i1 {self.value(f'icmp slt i64 {k}, {total}')}, label %{body}, label %{on}")
        self.label(body)
        offset, rest = "0", k
        for extent, stride in reversed([*zip(a.extents, a.strides, strict=True)]):
            subscript = self.value(f"urem i64 {rest}, {extent}")
            rest = self.value(f"udiv i64 {rest}, {extent}")
            step = self.value(f"mul i64 {subscript}, {stride}")
            offset = self.value(f"add i64 {offset}, {step}")
        place = self.value(f"getelementptr i{8 * size}, ptr {a.data}, i64 {offset}")
        self.do(f"store i{8 * size} 0, ptr {place}")
        self.do(f"store i64 {self.value(f'add i64 {k}, 1')}, ptr {counter}")
        self.do(f"br label %{loop}")
        self.label(on)


def entry_text(
    function: CFunction,
    call: KernelCall,
    statuses: Statuses,
    like: Sequence[tuple[str, str]],
    watched: str = "",
    writer: Callable[[Statuses, str], EntryText] = EntryText,
) -> str:
    """The definition of the C function; `like` says which arrays have the shapes of which.

    With another name, `watched`, a function that is handed the kernel's context, and so leaves in it what was
    raised, or else the flags of the results.
    """
    w = writer(statuses, function.symbol)
    if not watched:
        w.do(f"%ctx = alloca [{CTX_BYTES // 8} x i64], align 64")
    w.do(f"%results = alloca [{max(call.slots, 1)} x i64], align 64")
    w.begin()
    for p in function.arrays():
        if p.optional:
            w.do(f"%absent.{p.name} = alloca [{1 + 2 * p.key.rank} x i64]")
    for p in function.parameters:
        if isinstance(p, ArrayParameter):
            w.unpack(p)
        elif isinstance(p, ScalarParameter):
            w.scalars[p.name] = ScalarValue(ScalarKey(p.type), f"%in.{p.name}")
    for name, leaf in call.baked.items():
        if isinstance(leaf, ArrayValue):
            w.arrays[name] = leaf
        else:
            w.scalars[name] = leaf
    derived = {name for name, _ in like}
    w.check_names(p for p in function.arrays() if p.name not in derived)
    for name, primal in like:
        w.check_like(name, primal)
    w.check_overlaps(function)
    check_assumed(w, call)
    w.fill_context(function, recursive=call.recursive)
    operands = [text for kind, name in call.operands for text in w.operand(kind, name)]
    shown = ", ".join(["ptr %ctx", *operands, "ptr %results"])
    attachment, tag = ("", "") if watched else call.lines
    w.do(f"%status = call i32 @{call.kernel}({shown}){tag}")
    memory = "WORK_TOO_SMALL" if function.sized else "MemoryError"
    message = TOO_SMALL if function.sized else w.NO_MEMORY
    message = f"{function.symbol}: {message}"
    exhausted = statuses.status(memory, message)
    w.do("switch i32 %status, label %exhausted [ i32 0, label %succeeded i32 1, label %raised ]")
    w.label("succeeded")
    for name in call.zeroed:
        w.fill_zeros(name)
    w.finish()
    for stored in call.stored:
        w.store_result(stored)
    for out in call.zeros:
        w.store_zero(out)
    for k, slot in enumerate(call.flags[:MOST_FLAGS] if watched else ()):
        w.store("i64", w.field("%results", 8 * slot, "i64"), "%ctx", CTX_PAYLOAD + 8 * k)
    w.do("ret i32 0")
    w.label("raised")
    w.finish()
    site = w.field("%ctx", 80, "i64")
    at = w.value(f"getelementptr inbounds i32, ptr @{call.raised}, i64 {site}")
    w.do(f"ret i32 {w.value(f'load i32, ptr {at}')}")
    w.label("exhausted")
    found = w.exhausted(exhausted)
    w.finish()
    w.do(f"ret i32 {found}")
    for status, label in w.refusals.items():
        w.label(label)
        w.do(f"ret i32 {status}")
    assert not w.symbols
    parameters = ", ".join([*function.llvm_parameters(), *(["ptr %ctx"] if watched else [])])
    defined = f"internal i32 @{watched}" if watched else f"i32 @{function.symbol}"
    return "\n".join(
        [f"define {defined}({parameters}) nounwind {attachment}{{", "entry:", *w.lines, "}"]
    )


def check_assumed(w: EntryText, call: KernelCall) -> None:
    """What the kernel assumes of extents and ints: where it does not hold NumPy would broadcast, or raise."""
    leaves: list[Leaf] = [w.arrays.get(name) or w.scalars[name] for name in call.leaves]
    for form in call.assumed:
        holds = w.value(f"icmp eq i64 {value_of(w, leaves, form)}, 0")
        w.check(holds, "BAD_SHAPE", "the shapes do not fit together without broadcasting")


def size_text(function: CFunction, call: KernelCall, keys: Sequence[ArrayKey | ScalarKey]) -> str:
    """The definition of `_worksize`, which asks the kernel's own (`work_size`); -1 where that raises.

    `keys` are those of the kernel's operands; it reads the extents and integers that `function.sizes` says.
    """
    symbol = f"{function.symbol}_worksize"
    given = {(s.parameter, s.axis): f"%in.{s.name}" for s in function.sizes}
    operands, narrowed = list[str](), list[str]()
    for (kind, name), key in zip(call.operands, keys, strict=True):
        baked = call.baked.get(name)
        if kind == "text":
            operands.append(name)
        elif baked is not None:
            operands += baked.operands()
        elif isinstance(key, ArrayKey):
            extents = [extent_named(function, given, name, d) for d in range(key.rank)]
            operands += ["ptr null", *(f"i64 {n}" for n in extents), *["i64 0"] * key.rank]
        else:
            type_ = LLVM_TYPE[key.type]
            zero = "0.0" if type_ in ("float", "double") else "0"
            value = given.get((name, None), zero)
            if (name, None) in given and type_ != "i64":
                narrowed.append(f"  %narrow.{name} = trunc i64 {value} to {type_}\n")
                value = f"%narrow.{name}"
            operands.append(f"{type_} {value}")
    shown = ", ".join(["ptr %ctx", *operands, "ptr %results"])
    parameters = ", ".join(f"i64 %in.{s.name}" for s in function.sizes)
    return f"""define i64 @{symbol}({parameters}) nounwind {{
  %ctx = alloca [{CTX_BYTES // 8} x i64], align 64
  %results = alloca i64
  store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx
{"".join(narrowed)}  %status = call i32 @{call.kernel}_{SIZES}({shown})
  %good = icmp eq i32 %status, 0
  br i1 %good, label %made, label %none
made:
  %bytes = load i64, ptr %results
  ret i64 %bytes
none:
  ret i64 -1
}}"""


def extent_named(
    function: CFunction, given: dict[tuple[str, int | None], str], name: str, axis: int
) -> str:
    """The operand for an extent: what is given for it, or for another of its name; a number it must be."""
    if (name, axis) in given:
        return given[name, axis]
    extents = {p.name: p.extents for p in function.arrays()}
    wanted = extents[name][axis] if name in extents else None
    if isinstance(wanted, int):
        return str(wanted)
    for (other, at), value in given.items():
        if at is not None and wanted is not None and extents[other][at] == wanted:
            return value
    return "0"
