"""The receipt of a gradient: what would be saved, why, and how many bytes for given arguments.

It also counts the two other things that a gradient call allocates: shadows (those of arguments are the
gradients that the call returns) and temporaries (the arrays that the primal makes, and the adjoint's
scratch). It reads these two off the gradient function, which is written only when somebody asks.
"""

from __future__ import annotations

import io
import linecache
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard

from rich.console import Console
from rich.table import Table
from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import IntegerAttr, MemRefType, VectorType
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..diagnostics import line_of
from ..names import as_written
from ..rules import Contents
from .budget_receipt import Budget
from .intervals import Number
from .plan import Plan, Replay, Save
from .replays_apart import SIDE_BY_SIDE
from .rollback import Rolled, inverses
from .saved_value import (
    SavedValue,
    added_up,
    name_of,
    name_of_value,
    program_s_name,
    reader_of,
    saved_value,
    shown,
)
from .segments import bytes_of
from .sizes import Sizes
from .source_words import expression_of, line_number, source_text

if TYPE_CHECKING:
    from ..kernels.figures import KernelFigures
    from ..kernels.loop_figures import LoopFigures


@dataclass(frozen=True)
class RolledBack:
    """An integer variable that the reverse sweep counts back, in place of saving each of its values."""

    name: str
    line: int
    """Where the program counts."""
    bytes: int
    """None; where a branch decides whether it counts, `saves` tells what that costs."""
    file: str

    @property
    def source(self) -> str:
        """The text of its line."""
        return linecache.getline(self.file, self.line).strip()


@dataclass(frozen=True)
class Replayed:
    """What the reverse sweep makes again: of iterations between those that save it, or of each by itself."""

    name: str
    line: int
    """Where the value is read."""
    every: int
    """It is saved in every so many-th iteration; or before the loop, and made again for so many at once."""
    bytes: int | None
    """What so many iterations take, for the given arguments; None where that is known at run time only."""
    file: str
    apart: bool = False
    """It is saved before the loop."""

    def __str__(self) -> str:
        size, every = in_bytes(self.bytes), self.every
        if self.apart:
            return f"line {self.line}: `{self.name}` is made again, for {every} iterations at a time, {size}"
        what = f"`{self.name}` is saved every {every} iterations and made again"
        return f"line {self.line}: {what}, {size} at a time"


@dataclass(frozen=True)
class NeededValue:
    """A value that the adjoint reads: its name, its line, the line and the expression that need it."""

    name: str
    line: int
    needed_by: tuple[int, str]


@dataclass(frozen=True)
class Allocated:
    """Bytes that a gradient call allocates beside its tapes; None where that is known at run time only."""

    shadow: int | None
    temporary: int | None
    is_bound: bool = False
    """Whether it may be less: where a branch, a length or an early exit decides."""


@dataclass(frozen=True, repr=False)
class Receipt:
    """What a gradient call would save: shown as a table; `to_html` writes an annotated listing."""

    function: str
    file: str
    line: int
    saves: tuple[SavedValue, ...]
    needs: tuple[NeededValue, ...]
    """Every value that the adjoint reads, saved or not."""
    rolled_back: tuple[RolledBack, ...]
    """The integers that are counted back instead of being saved."""
    allocated: Callable[[], Allocated] = field(compare=False)
    replayed: tuple[Replayed, ...] = ()
    """What is made again between the iterations that save it."""
    budget: Budget | None = None
    """Where there is one: what it means for these arguments."""
    kernels: tuple[KernelFigures, ...] = ()
    """What a device runs, where there is one (`compiler.kernels.figures`)."""
    loops: tuple[LoopFigures, ...] = ()
    """The host's loops that launch it: what they fetch, whether they are graphs."""

    @property
    def saved_bytes(self) -> int | None:
        """The sum for the given arguments; None where that is known at run time only."""
        return total([s.bytes for s in self.saves])

    @property
    def is_bound(self) -> bool:
        """Whether it saves at most `saved_bytes`: how much, a branch or an early exit decides."""
        return any(s.is_bound for s in self.saves)

    @property
    def formula(self) -> str:
        """The sum as an expression of the arguments' sizes; equal terms are added up."""
        return added_up([s.formula for s in self.saves])

    @property
    def bound(self) -> str | None:
        """What the formula is at most, where a number is known at run time only; None without a bound."""
        bounds = [
            s.formula if s.depends_on is None and s.bound is None else s.bound for s in self.saves
        ]
        known = [b for b in bounds if b is not None]
        is_bound = any(s.bound is not None for s in self.saves)
        return added_up(known) if is_bound and len(known) == len(bounds) else None

    @cached_property
    def _allocated(self) -> Allocated:
        return self.allocated()

    @property
    def shadow_bytes(self) -> int | None:
        """The shadows: the gradients that are returned, and those of arrays inside the function."""
        return self._allocated.shadow

    @property
    def temporary_bytes(self) -> int | None:
        """The arrays that the function makes itself, and the scratch arrays of the adjoint."""
        return self._allocated.temporary

    @property
    def allocated_is_bound(self) -> bool:
        """Whether shadows and temporaries are at most `shadow_bytes` and `temporary_bytes`: a branch, the
        length of a list or of a slice decides."""
        return self._allocated.is_bound

    def to_dict(self) -> dict[str, Any]:
        """All of it as JSON-able values."""
        return {
            "function": self.function,
            "file": self.file,
            "line": self.line,
            "saved_bytes": self.saved_bytes,
            "is_bound": self.is_bound,
            "shadow_bytes": self.shadow_bytes,
            "temporary_bytes": self.temporary_bytes,
            "allocated_is_bound": self.allocated_is_bound,
            "formula": self.formula,
            "bound": self.bound,
            "saves": [{**asdict(s), "needed_by": list(s.needed_by)} for s in self.saves],
            "rolled_back": [asdict(r) for r in self.rolled_back],
            "replayed": [asdict(r) for r in self.replayed],
            "budget": None if self.budget is None else self.budget.to_dict(),
            "kernels": [one.to_dict() for one in self.kernels],
            "loops": [one.to_dict() for one in self.loops],
        }

    def to_html(self, path: str | Path) -> None:
        """Write the source with each save, its kill and its need drawn beside it; one file, no network."""
        Path(path).write_text(self._page(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """The same page in a notebook."""
        from ..pages.page import frame

        return frame(self._page(), f"what the gradient of {self.function} saves", height=520)

    def _page(self) -> str:
        from ..pages.receipt_page import receipt_page

        return receipt_page(self)

    def totals(self) -> str:
        """One line: what is saved, what the shadows take, what the temporaries take."""
        saved = in_bytes(self.saved_bytes, is_bound=self.is_bound)
        if self.saves and self.formula != str(self.saved_bytes):
            bound = "" if self.bound is None else f" <= {self.bound}"
            saved = f"{self.formula}{bound} = {saved}"
        is_bound = self.allocated_is_bound
        shadows, temporaries = (
            in_bytes(size, is_bound=is_bound and bool(size))
            for size in (self.shadow_bytes, self.temporary_bytes)
        )
        return f"saved: {saved}; shadows: {shadows}; temporaries: {temporaries}"

    def _counted_back(self) -> Iterator[str]:
        for r in self.rolled_back:
            yield f"line {r.line}: `{r.name}` is rolled back, {r.bytes} bytes"

    def _on_device(self) -> list[str]:
        if not self.kernels:
            return []
        from ..kernels import figures, loop_figures

        return [*figures.table(self.kernels), *loop_figures.table(self.loops)]

    def __repr__(self) -> str:
        budget = [] if self.budget is None else [str(self.budget)]
        budget += self._on_device()
        if not self.saves:
            return "\n".join(["nothing is saved", *self._counted_back(), self.totals(), *budget])
        table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="")
        for name in ("line", "source", "saved", "bytes", "formula"):
            table.add_column(name, no_wrap=True, justify="right" if name == "bytes" else "left")
        previous = None
        for s in self.saves:
            here = (s.file, s.line)
            place = (s.line_shown(self.file), s.source) if here != previous else ("", "")
            table.add_row(*place, s.name, s.bytes_shown, s.formula_shown)
            previous = here
        out = io.StringIO()
        console = Console(
            file=out, width=10_000, color_system=None, markup=False, highlight=False,
            emoji=False, force_jupyter=False,
        )  # fmt: skip
        console.print(table)
        head, *rows = [line.rstrip() for line in out.getvalue().splitlines()]
        lines = [head]
        for row, s in zip(rows, self.saves, strict=True):
            lines += [row, " " * head.index("source") + s.why]
        lines += [*map(str, self.replayed), *self._counted_back(), self.totals(), *budget]
        for what in dict.fromkeys(s.depends_on for s in self.saves if s.bytes is None):
            if what is not None:
                lines.append(f"depends on {what}")
        for way in dict.fromkeys(s.way_out for s in self.saves if s.way_out is not None):
            lines.append(f"way out: {way}")
        return "\n".join(lines)


def total(sizes: Sequence[int | None]) -> int | None:
    """The sum; None where a part is unknown."""
    return None if None in sizes else sum(s for s in sizes if s is not None)


def in_bytes(size: int | None, *, is_bound: bool = False) -> str:
    return shown(size, is_bound=is_bound) + ("" if size is None else " bytes")


def receipt_of(
    plan: Plan,
    arguments: Sequence[Any] | None,
    allocated: Callable[[], Allocated],
    activations: Sequence[func.FuncOp] = (),
    inner: Iterable[SavedValue] = (),
    counts: Sequence[int] | None = None,
) -> Receipt:
    """The receipt of `plan` for IR arguments `arguments` (arrays and scalars; None: symbolic only).

    `activations`: the functions of the module whose activations keep records; `inner`: what derivatives save
    that the program asks for; `counts`: the bytes of each save of the plan that a run counted.
    """
    sizes = Sizes(plan.function, arguments)
    at = line_of(plan.function) or ("", 0, 0)
    saves = tuple(saved_value(s, sizes) for s in plan.saves)
    if counts is not None:
        counted = zip(saves, counts, strict=True)
        saves = tuple(replace(s, bytes=count, is_bound=False) for s, count in counted)
    saves += tuple(record_of(f) for f in activations if "keeps" in f.attributes)
    saves += tuple(inner)
    needs = tuple(needed_value(need, op) for need, op in plan.needed.by.items())
    back = sorted({one for r in plan.rolled.values() for one in rolled_back(r)}, key=line_of_one)
    name = as_written(plan.function.sym_name.data)
    again = tuple(replayed_value(s, r, sizes) for r in plan.replays.values() for s in r.saves)
    return Receipt(name, at[0], at[1], saves, needs, tuple(back), allocated, again)


def replayed_value(save: Save, replay: Replay, sizes: Sizes) -> Replayed:
    if replay.apart:  # each has as much memory as the longest
        every, longest = SIDE_BY_SIDE, sizes.stretch(sizes.factors(save), 1)
        count = None if longest is None else every * longest
    else:
        every = next(iter(replay.states.values())).segment.every
        count = sizes.stretch(sizes.factors(save), every)
    size = None if count is None else bytes_of(save.element) * count
    at = line_of(reader_of(save)) or ("", 0, 0)
    return Replayed(name_of(save), at[1], every, size, at[0], replay.apart)


def rolled_back(rolled: Rolled) -> Iterator[RolledBack]:
    """Each line on which the variable is counted."""
    hint = rolled.stretch.cell.name_hint or "value"
    for op in (op for undo in rolled.updates.values() for op in inverses(undo)):
        at, name = line_of(op), program_s_name(hint, op)
        if at is not None:
            yield RolledBack(name, at[1], 0, at[0])


def line_of_one(one: RolledBack) -> tuple[str, int, str]:
    return one.file, one.line, one.name


RECORD = "record of each activation"


def record_of(forward: func.FuncOp) -> SavedValue:
    """The records that a recursive function leaves, one for each activation."""
    keeps, last = forward.attributes["keeps"], forward.body.block.last_op
    assert isinstance(keeps, IntegerAttr)
    assert last is not None
    kept = last.operands[len(last.operands) - keeps.value.data :]
    ranks = [v.type.get_num_dims() for v in kept if isinstance(v.type, MemRefType)]
    vectors = [v.type.get_shape()[0] - 1 for v in kept if isinstance(v.type, VectorType)]
    size = 8 * (len(kept) + 2 * sum(ranks) + sum(vectors))
    at = line_of(forward) or ("", 0, 0)
    called = source_text(forward).partition("(")[0].removeprefix("def ")
    more = " and its tapes" if any(isinstance(v.type, ad.TapeType) for v in kept) else ""
    return SavedValue(
        RECORD,
        at[1],
        None,
        False,
        f"{size}*activations",
        None,
        f"how often `{called}` is called",
        None,
        (at[1], "call"),
        f"the adjoint of each call reads its record{more}",
        None,
        at[0],
        at[0],
        at[0],
    )


def needed_value(need: SSAValue | Contents, op: Operation) -> NeededValue:
    value, source = (need.memref, need.op) if isinstance(need, Contents) else (need, need.owner)
    at = line_of(source if isinstance(source, Operation) else op) or ("", 0, 0)
    return NeededValue(name_of_value(value), at[1], (line_number(op), expression_of(op)))


# What the finished gradient function allocates.


def allocated_by(
    gradient: func.FuncOp,
    arguments: Sequence[Any] | None,
    own_shadows: int | None,
    called: tuple[str, ...] = ("_shadow",),
) -> Allocated:
    """The arrays that a gradient function allocates; `own_shadows`: the bytes of its arguments' shadows.

    Shadows of arrays within are `called` so.
    """
    sizes = Bounded(gradient, arguments)
    inner = most_at_once(gradient.body.block, sizes, called)
    both = most_at_once(gradient.body.block, sizes, ("",))
    temporary = None if inner is None or both is None else both - inner
    return Allocated(total([own_shadows, inner]), temporary, sizes.may_be_less)


class Bounded(Sizes):
    """Sizes of which it is noted whether any is a bound."""

    may_be_less = False

    def most(self, number: Number) -> int | None:
        found = self.intervals.of(number)
        self.may_be_less |= found.value is None
        return found.high


def most_at_once(block: Block, sizes: Bounded, called: tuple[str, ...]) -> int | None:
    """The most bytes that arrays `called` so, of a block and of those within, hold at one time."""
    held: int | None = 0
    inside: list[int | None] = [0]
    for op in block.ops:
        if has_one_row_more(op):
            if "" in called:
                held = total([held, size_of(op, op.extents[1:], sizes)])
        elif isinstance(op, array.AllocOp) and is_called(op, called):
            held = total([held, size_of(op, op.extents, sizes)])
        for region in op.regions:
            for nested in region.blocks if sizes.may_run(region) else ():
                found = most_at_once(nested, sizes, called)
                inside.append(found)
                sizes.may_be_less |= bool(found) and may_not_run(op, sizes)
    most = None if None in inside else max(size for size in inside if size is not None)
    return total([held, most])


def has_one_row_more(op: Operation) -> TypeGuard[array.AllocOp | ad.PushOp]:
    """Whether all rows but one are what is saved."""
    rows = isinstance(op, array.AllocOp) and ad.ROWS in op.attributes
    return rows or (isinstance(op, ad.PushOp) and ad.VERSIONS in op.attributes)


def may_not_run(op: Operation, sizes: Sizes) -> bool:
    """Whether it is known at run time only that the region runs."""
    match op:
        case scf.IfOp():
            return sizes.evaluate(op.cond) is None
        case array.LoopOp():
            return op.count is None or not sizes.evaluate(op.count)
        case _:
            return False


def is_called(op: array.AllocOp, called: tuple[str, ...]) -> bool:
    """An array of the heap with such a name."""
    name = (op.memref.name_hint or "").rstrip("_0123456789")
    return array.STACK not in op.attributes and name.endswith(called)


def size_of(
    op: array.AllocOp | ad.PushOp, extents: Sequence[SSAValue], sizes: Bounded
) -> int | None:
    assert isinstance(op.memref.type, MemRefType)
    item = bytes_of(op.memref.type.element_type)
    if array.GROWABLE in op.attributes:
        length = reach(op.memref, sizes)
        return None if length is None else item * length
    size: int | None = item
    for extent in extents:
        known = sizes.most(extent)
        size = None if size is None or known is None else size * max(known, 0)
    return size


def reach(base: SSAValue, sizes: Bounded) -> int | None:
    """How many elements of a list, or of an array that grows, are used at most, from its start."""
    ends: list[int | None] = [0]
    for use in base.uses:
        match use.operation:
            case memref.DimOp() | ad.HandoverOp():
                continue
            case memref.LoadOp(indices=(at,)) | memref.StoreOp(indices=(at,)):
                ends.append(end_of(sizes.most(at)))
            case memref.CastOp(dest=seen):
                ends.append(reach(seen, sizes))
            case array.ViewOp(offsets=(first,)) as view:
                axes = zip(view.extents, view.steps, view.source_dims, strict=True)
                lengths = [walked(*map(sizes.most, axis[:2])) for axis in axes if axis[2] >= 0]
                ends.append(end_of(total([sizes.most(first), *lengths])))
            case _:
                return None
    known = [end for end in ends if end is not None]
    return max(known) if len(known) == len(ends) else None


def end_of(last: int | None) -> int | None:
    return None if last is None else max(last + 1, 0)


def walked(extent: int | None, step: int | None) -> int | None:
    """How far the last element of an axis is from the first, in the direction of the memory."""
    return None if extent is None or step is None else max(extent - 1, 0) * max(step, 0)
