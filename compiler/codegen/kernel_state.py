"""What the parts of the code generator share while one kernel is written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import (
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    MemRefType,
    VectorType,
)
from xdsl.ir import Attribute, Operation, SSAValue

from ...dialects.ad import ArenaType, TapeType
from ...dialects.array import strides_of
from ..analysis.additions import Place
from ..analysis.alias import AliasAnalysis
from ..diagnostics import line_of
from .kernel_memory import KernelMemory
from .llvm_text import FunctionText, Metadata, OpenLoop, integer
from .vector_width import Leaf, has_vectors, is_wide, narrow_lanes, work_of

if TYPE_CHECKING:
    from .alias_scopes import AliasScopes
    from .debug_info import DebugInfo

OK, RAISED, PYTHON_RAISED, OUT_OF_MEMORY, RETRY, LONG = 0, 1, 2, 3, 4, 5
"""What a kernel returns."""

SITE_SLOT, COUNT_SLOT, PAYLOAD_SLOT = 80, 88, 96
"""Byte offsets of the raise record in the context."""


def value_type(type_: Attribute) -> str:
    """The LLVM type of a scalar in a register."""
    match type_:
        case Float64Type():
            return "double"
        case Float32Type():
            return "float"
        case IndexType() | ArenaType():
            return "i64"
        case IntegerType():
            return f"i{type_.width.data}"
        case TapeType():
            return "ptr"
        case VectorType():
            return f"<{lanes_of(type_)} x {value_type(type_.element_type)}>"
        case _:
            raise AssertionError(f"no LLVM type for {type_}")


def memory_type(type_: Attribute) -> str:
    """The LLVM type of an array element: a bool is a byte."""
    found = value_type(type_)
    return "i8" if found == "i1" else found


@dataclass(frozen=True)
class LastBits:
    """How often was written what computes other last bits in other vectors."""

    calls: int = 0
    """Functions with vector versions."""
    sums: int = 0
    """Sums the order of which is free."""
    work: int = 0
    """Arithmetic of the adjoint."""

    def side_by_side(self, before: LastBits) -> int | None:
        """How many vectors a loop computes at once that has what came since; None: as many as LLVM likes.

        Sums wait for the one before, so four go on side by side; but not where as much is computed between
        them, which would not fit the registers four times. Whether a function is computed there or read, from
        where it was saved, changes nothing: a sum has one order.
        """
        if self.sums > before.sums:
            return 4 if self.work - before.work < MUCH_WORK else 1
        return 2 if self.calls > before.calls else None

    def more(self, *, calls: int = 0, sums: int = 0, work: int = 0) -> LastBits:
        return LastBits(self.calls + calls, self.sums + sums, self.work + work)


MUCH_WORK = 24
"""So many operations between two additions to a sum take as long as the addition does."""


ITEM_BYTES = {"double": 8, "float": 4, "i64": 8, "i32": 4, "i16": 2, "i8": 1, "i1": 1}
"""Bytes of an array element, by its LLVM type."""


def size_of(type_: Attribute) -> int:
    """Bytes of an array element."""
    return lanes_of(type_) * alignment_of(type_)


def alignment_of(type_: Attribute) -> int:
    """Bytes of a number of an array element: arrays of vectors are aligned as those of numbers are."""
    return ITEM_BYTES[memory_type(number_type(type_))]


def number_type(type_: Attribute) -> Attribute:
    """The type of one number of a vector; any other type itself."""
    return type_.element_type if isinstance(type_, VectorType) else type_


def lanes_of(type_: Attribute) -> int:
    """How many numbers a value is."""
    return type_.get_shape()[0] if isinstance(type_, VectorType) else 1


def step_type(type_: Attribute) -> str:
    """What an address is counted in: elements without what LLVM would put between vectors."""
    if isinstance(type_, VectorType):
        return f"[{lanes_of(type_)} x {memory_type(type_.element_type)}]"
    return memory_type(type_)


def type_name(type_: Attribute) -> str:
    """How a site table calls the type of an operand: "index", "f64", "i1", "memref<f64,2>"."""
    if isinstance(type_, MemRefType):
        return f"memref<{type_.element_type},{type_.get_num_dims()}>"
    return str(type_)


@dataclass(frozen=True)
class Descriptor:
    """A memref value: where element (0, ..., 0) is, extents, and strides in elements.

    All are LLVM operands; what the type knows is a number.
    """

    pointer: str
    extents: tuple[str, ...]
    strides: tuple[str, ...]
    element: Attribute

    @property
    def fields(self) -> tuple[str, ...]:
        return (self.pointer, *self.extents, *self.strides)

    @property
    def transposed(self) -> Descriptor:
        """The axes in the opposite order."""
        return Descriptor(self.pointer, self.extents[::-1], self.strides[::-1], self.element)


@dataclass
class KernelState:
    """One kernel under construction: its text, and what every SSA value has become."""

    text: FunctionText
    alias: AliasAnalysis
    fastmath: bool
    features: frozenset[str]
    """What the CPU has, by LLVM's names: "avx2", ..."""
    memory: KernelMemory = KernelMemory.SYSTEM
    scopes: AliasScopes = field(init=False)
    emit: Callable[[Operation], None] = field(init=False)
    """Writes any op; set by who owns the dispatch."""
    shared_number: Callable[[str], str] = str
    """What a number is called that may be another one where the function is called again (`Outlined`)."""
    scalars: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])
    memrefs: dict[SSAValue, Descriptor] = field(default_factory=dict[SSAValue, Descriptor])
    sites: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    site_numbers: dict[Operation, int] = field(default_factory=dict[Operation, int])
    declarations: dict[str, str] = field(default_factory=dict[str, str])
    """Declaration lines of what is called from outside, by symbol."""
    symbols: dict[str, str] = field(default_factory=dict[str, str])
    """External symbols that the loader has to bind, and where each comes from."""
    kept_alive: list[str] = field(default_factory=list[str])
    """Symbols that only the vectorizer will call."""
    shared: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])
    """What the module calls of libraries of the process (`shared_code`): products of a kind and an LLVM type,
    and functions of libm ("function") by their symbols."""
    products: dict[SSAValue, tuple[str, str, str]] = field(
        default_factory=dict[SSAValue, tuple[str, str, str]]
    )
    """Products of adjoint code, each as it was written, with its factors: a sum may be contracted with it."""
    last_bits: LastBits = field(default_factory=LastBits)
    """What was written so far the last bits of which depend on how a loop is vectorized."""
    functions: dict[str, str] = field(default_factory=dict[str, str])
    """Functions written for this module (matrix products), by name."""
    alike: dict[str, str] = field(default_factory=dict[str, str])
    """By what it does, the name of the function of a map (`outlined_maps`)."""
    support: set[str] = field(default_factory=set[str])
    """Support functions in use."""
    map_depth: int = 0
    """Within a map how deep its points are: axes that become one loop are as many."""
    leaves: list[Leaf] = field(default_factory=list[Leaf])
    """The innermost loops of the module so far."""
    attributes: dict[str, int] = field(default_factory=dict[str, int])
    buffers: dict[tuple[int, int], str] = field(default_factory=dict[tuple[int, int], str])
    """Stack buffers of maps, by length and number, shared by all maps of the kernel."""
    proved: set[Operation] = field(default_factory=set[Operation])
    """Checks that cannot fail in what is being written."""
    escaping: set[Operation] = field(default_factory=set[Operation])
    """Allocations that the function may return."""
    registers: dict[Place, str] = field(default_factory=dict[Place, str])
    """Stack slots (registers, for LLVM) of the accumulators of the loop being written."""
    group: str = ""
    """The metadata of accesses in a parallel loop."""
    reserved: int = 0
    """How many ranges of address space the kernel has for arrays that grow."""
    returns: str = "i32"
    """What the function returns: its status, or a structure that begins with it."""
    depth: str = ""
    """How many calls of recursive functions may still be nested."""
    chained: bool = False
    """Whether tapes are chains of segments on the arena (`arena`)."""
    arena_push: str = ""
    """What takes memory of the arena where that is the stack of checkpointed loops (`support.steps`)."""
    debug: DebugInfo | None = None
    """The lines of the function, where they are wanted."""
    scalar_only: bool = False
    """Within a cold copy of a loop nest: no vectorization, no unrolling."""
    in_vectors: bool = False
    """Numbers that vector loops leave at their end go through vector functions: in gradients, which have the
    same bits within a budget, whose steps are other loops."""
    spread: bool = False
    """Arguments need not be contiguous row by row: sums have one order, whatever strides turn out to be."""
    shares: bool = False
    """Products, and versions of functions, are in libraries that the process has once (`shared_code`)."""
    side_by_side: bool | None = False
    """Within a loop of which LLVM may compute several iterations at once, with vector functions. None: that
    depends on what LLVM unrolls."""
    recurrent: bool = False
    """Within a loop each iteration of which waits for a number of the one before."""
    optimized: bool = False
    """Functions of our own may take the place of libm's: at the levels of LLVM at which gradients have one
    version of each (`in_vectors`), or they would have two."""
    plain: bool = False
    """Within a run whose results are looked at (`unguarded_runs`): zeros are not strong."""

    def beside(self, alias: AliasAnalysis) -> KernelState:
        """The state of another kernel in the same module."""
        return replace(
            self, text=FunctionText(self.metadata), alias=alias, scalars={}, memrefs={}, buffers={},
            proved=set(), escaping=set(), registers={}, site_numbers={}, returns="i32",
            depth="", chained=False,
        )  # fmt: skip

    @property
    def metadata(self) -> Metadata:
        return self.text.metadata

    def scalar(self, value: SSAValue) -> str:
        return self.scalars[value]

    def typed(self, value: SSAValue) -> str:
        """`value` with its type, as a call's argument."""
        return f"{value_type(value.type)} {self.scalars[value]}"

    def declare(self, symbol: str, line: str, origin: str | None = None) -> None:
        self.declarations.setdefault(symbol, line)
        if origin is not None:
            self.symbols.setdefault(symbol, origin)

    def declare_shared(self, symbol: str, line: str, kind: str, name: str) -> None:
        """A function of a library of the process: which one, kind and name say (`shared`)."""
        self.declare(symbol, line, "shared")
        self.shared.add((kind, name))

    def attribute_group(self, text: str) -> str:
        """`#n` of the attribute group `{ text }`."""
        return f"#{self.attributes.setdefault(text, len(self.attributes))}"

    def intrinsic(self, name: str, result: str, arguments: str) -> str:
        self.declarations.setdefault(name, f"declare {result} @{name}({arguments})")
        return name

    # Memory.

    def descriptor(
        self,
        type_: MemRefType[Attribute],
        pointer: str,
        extents: tuple[str, ...],
        strides: tuple[str, ...] | None = None,
    ) -> Descriptor:
        """A descriptor in which all that the type knows is a number.

        Without strides the memref is C-contiguous.
        """
        shape = type_.get_shape()
        known_extents = tuple(str(n) if n >= 0 else e for n, e in zip(shape, extents, strict=True))
        known = strides_of(type_)
        result: list[str] = []
        suffix = "1"
        for axis in reversed(range(len(shape))):
            stride = known[axis]
            if shape[axis] == 1:
                result.append("0")
            elif stride is not None:
                result.append(str(stride))
            else:
                result.append(suffix if strides is None else strides[axis])
            if strides is None and axis:
                suffix = self.text.mul(suffix, known_extents[axis])
        return Descriptor(pointer, known_extents, tuple(reversed(result)), type_.element_type)

    def offset(self, pointer: str, element: Attribute, index: str, *, inbounds: bool = True) -> str:
        """The address `index` elements on."""
        if integer(index) == 0:
            return pointer
        flags = " inbounds" if inbounds else ""
        return self.text.value(
            f"getelementptr{flags} {step_type(element)}, ptr {pointer}, i64 {index}", "p"
        )

    def address(self, memref: Descriptor, indices: list[str]) -> str:
        """The address of one element: the strided dimensions first, then the ones of unit stride."""
        rows, unit = "0", "0"
        for index, stride in zip(indices, memref.strides, strict=True):
            if stride == "1":
                unit = self.text.add(unit, index)
            else:
                rows = self.text.add(rows, self.text.mul(index, stride))
        row = self.offset(memref.pointer, memref.element, rows)
        return self.offset(row, memref.element, unit)

    def load(self, pointer: str, element: Attribute, tags: str, hint: str | None = None) -> str:
        """One element; `tags` is metadata."""
        type_ = memory_type(element)
        found = self.text.value(
            f"load {type_}, ptr {pointer}, align {alignment_of(element)}{tags}", hint
        )
        return self.text.value(f"icmp ne i8 {found}, 0") if value_type(element) == "i1" else found

    def store(self, value: str, pointer: str, element: Attribute, tags: str) -> None:
        if value_type(element) == "i1":
            value = self.text.value(f"zext i1 {value} to i8")
        self.text.do(
            f"store {memory_type(element)} {value}, ptr {pointer}, "
            f"align {alignment_of(element)}{tags}"
        )

    # Leaving.

    def begin_sites(self, number: int) -> None:
        """Let sites have numbers from this one on."""
        self.sites += [{} for _ in range(number - len(self.sites))]

    def site(self, op: Operation, **what: Any) -> int:
        """The number of the op's entry in the site table."""
        found = self.site_numbers.get(op)
        if found is None:
            file, line, column = line_of(op) or ("", 0, 0)
            found = self.site_numbers[op] = len(self.sites)
            self.sites.append({**what, "file": file, "line": line, "column": column})
        return found

    def widened(self, value: str, type_: Attribute) -> str:
        """A scalar as 8 bytes, its natural representation at their start."""
        match value_type(type_):
            case "i1" as t:
                return f"i64 {self.text.value(f'zext {t} {value} to i64')}"
            case "i8" | "i16" | "i32" as t:
                return f"i64 {self.text.value(f'sext {t} {value} to i64')}"
            case "float":
                bits = self.text.value(f"bitcast float {value} to i32")
                return f"i64 {self.text.value(f'zext i32 {bits} to i64')}"
            case t:
                return f"{t} {value}"

    def context_slot(self, offset: int) -> str:
        return self.text.value(f"getelementptr inbounds i8, ptr %ctx, i64 {offset}")

    def raise_when(self, condition: str, site: int, payload: list[tuple[str, Attribute]]) -> None:
        """Leave with a raise record when the condition holds."""
        label = self.text.label("raise")
        with self.text.in_cold(label):
            for k, (value, type_) in enumerate(payload[:16]):
                wide = self.widened(value, type_)
                self.text.do(
                    f"store {wide}, ptr {self.context_slot(PAYLOAD_SLOT + 8 * k)}, align 8"
                )
            self.text.do(f"store i64 {len(payload)}, ptr {self.context_slot(COUNT_SLOT)}, align 8")
            self.text.do(f"store i64 {site}, ptr {self.context_slot(SITE_SLOT)}, align 8")
            self.leave(str(RAISED))
        self.text.branch_if_unlikely(condition, label)

    def return_when(self, condition: str, status: int) -> None:
        """Leave with a status when the condition holds."""
        label = self.text.label("leave")
        with self.text.in_cold(label):
            self.leave(str(status))
        self.text.branch_if_unlikely(condition, label)

    def leave(self, status: str) -> None:
        """Return a status, and nothing else."""
        if self.returns == "i32":
            self.text.do(f"ret i32 {status}")
            return
        whole = self.text.value(f"insertvalue {self.returns} poison, i32 {status}, 0")
        self.text.do(f"ret {self.returns} {whole}")

    # Loops.

    def loop_properties(
        self,
        *,
        parallel_group: str | None = None,
        innermost: bool = False,
        since: LastBits | None = None,
        body: OpenLoop | None = None,
        scalar: bool = False,
        chained: bool = False,
        own_width: bool = True,
    ) -> list[str]:
        """Metadata operands of a loop's latch.

        Only innermost loops may be unrolled: a copy of an outer loop's body is a copy of the nest,
        which costs compile time and gains nothing.

        Where the last bits depend on how many vectors go side by side, that is said here, for LLVM decides
        it by what is around the loop, and the same code would compute other numbers elsewhere (`since`: what
        was written before the loop).

        `body`: the loop, as it is written so far; `scalar`: vectors gain nothing; `chained`: its
        iterations wait for each other; `own_width`: LLVM may be told how wide its vectors are.
        """
        node = self.metadata.node
        no_unroll = [node('!"llvm.loop.unroll.disable"')]
        if self.scalar_only:
            return [node('!"llvm.loop.vectorize.enable", i1 false'), *no_unroll]
        if innermost and body is not None:
            lines = self.text.lines[body.phis + 1 :]
            branches = body.body != self.text.block
            slow = narrow_lanes(lines) is not None or chained
            slow = slow or (branches and parallel_group is None)
            self.leaves.append(Leaf(self.map_depth or self.text.depth, work_of(lines), not slow))
        found = [] if innermost else no_unroll
        if scalar:
            return [node('!"llvm.loop.vectorize.enable", i1 false'), *found]
        if parallel_group is not None:
            found.append(node(f'!"llvm.loop.parallel_accesses", {parallel_group}'))
        wide = is_wide(self.features)
        if since is not None and (vectors := self.last_bits.side_by_side(since)):
            found.append(node(f'!"llvm.loop.interleave.count", i32 {vectors}'))
        if (
            wide
            and own_width
            and parallel_group is not None
            and body is not None
            and body.body == self.text.block
        ):
            lines = self.text.lines[body.phis + 1 :]
            lanes = narrow_lanes(lines)
            if lanes is not None and not has_vectors(lines):
                found.append(node(f'!"llvm.loop.vectorize.width", i32 {lanes}'))
        return found
