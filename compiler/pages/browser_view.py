"""A function through every stage, side by side: the source, the IR, LLVM's, the machine code.

Each row knows the line of Python that it comes from: rows of IR by the location of their op, those of LLVM
and of the machine code by debug metadata, which changes no instruction. Where there is a gradient, arrows
lead from the line that saves a value to the op of the adjoint that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array
from .. import receipts
from ..codegen.assembly_lines import source_lines
from ..codegen.llvm_lines import llvm_lines
from ..compilation import Compilation
from ..deep_stack import with_deep_stack
from ..derivative.saved_value import program_s_name
from ..diagnostics import line_of, line_of_function
from ..pass_hooks import within
from ..pipeline import Stage, own_faults, stages_for
from ..print_ir import module_lines
from ..request import JOINT, Request
from ..stages.adjoint import planned
from ..stages.machine_code import assembly_for_debuggers, subject_of
from .listing import Column, Edge, Place, Places, Row, column_html, folded, marked, row_id
from .page import frame, page
from .receipt_page import legend, lines_of, source_column, source_edges, table

if TYPE_CHECKING:
    from ..derivative.receipt import Receipt


SAVED = "_saved"
"""How the derivative calls what it saves: `%u_saved`."""


@dataclass(frozen=True)
class Shown:
    """A stage: its column, and, of the adjoint, the rows that read what was saved."""

    column: Column
    reads: tuple[tuple[Place, int, str], ...] = ()
    """The place that saves, the row that reads, and what is saved."""


@with_deep_stack
def view_request(request: Request, values: Sequence[Any] | None, *, framed: bool = False) -> str:
    """The page of a request; `values` are those of its arguments, None where they are not known.

    `framed` is how notebooks show it.
    """
    with own_faults(request):
        shown = stages_of(receipts.for_values(request, values))
    text = view(request, shown, receipt_of(request, values))
    return frame(text, f"the stages of {request.function.__qualname__}", 680) if framed else text


def stages_of(request: Request) -> list[Shown]:
    """What each stage leaves."""
    c = Compilation(replace(request, options=replace(request.options, debug=True)))
    shown: list[Shown] = []
    for stage in stages_for(request):
        with within(f"the stage {stage.name}"):
            stage.run(c)
            shown.append(shown_by(stage, c))
    return shown


def shown_by(stage: Stage, c: Compilation) -> Shown:
    match stage.suffix:
        case "mlir":
            return of_module(stage, c)
        case "ll":
            rows = [Row(text, place) for text, place in llvm_lines(stage.show(c))]
        case "ptx":
            rows = [Row(text.expandtabs(8), None) for text in stage.show(c).splitlines()]
        case _:
            lines = source_lines(assembly_for_debuggers(c))
            rows = [Row(text.expandtabs(8), place) for text, place in lines]
    return Shown(column(stage, folded(rows)))


def column(stage: Stage, rows: Iterator[Row]) -> Column:
    return Column(f"stage-{stage.name}", stage.name, stage.why, tuple(rows))


def of_module(stage: Stage, c: Compilation) -> Shown:
    """The IR; of the adjoint with what saves and what reads."""
    module = planned(c) if stage.name == "plan" else c.module
    lines = module_lines(module)
    rows = [Row(text, None if op is None else place_of(op)) for text, op in lines]
    index = {op: k for k, (_, op) in enumerate(lines) if op is not None}
    kinds: dict[int, str] = {}
    reads: list[tuple[Place, int, str]] = []
    for op, k in index.items():
        if not isinstance(op, ad.SegmentOp) or not hint_of(op).endswith(SAVED):
            continue  # not a save: arrays of the function's own lie on tapes, too
        if isinstance(op, ad.PushOp):
            kinds[k] = "saves"
        first = min((index[read] for read in readers(op.memref) if read in index), default=None)
        if first is None:
            continue
        kinds[first] = "reads"
        if (place := place_of(op)) is not None:
            reads.append((place, first, name_of(op)))
    return Shown(column(stage, iter(marked(rows, kinds))), tuple(reads))


def name_of(op: ad.SegmentOp) -> str:
    """What is saved, in the words of the program."""
    name = program_s_name(hint_of(op).removesuffix(SAVED), op)
    return "a value" if name == "value" else name


def hint_of(op: ad.SegmentOp) -> str:
    return op.memref.name_hint or ""


def place_of(op: Operation) -> Place | None:
    at = line_of(op)
    return None if at is None else at[:2]


def readers(saved: SSAValue) -> Iterator[Operation]:
    """The ops that read what a memref holds, by whatever view."""
    for use in saved.uses:
        op = use.operation
        if isinstance(op, array.AnyView | memref.CastOp):
            yield from readers(op.results[0])
        elif isinstance(op, array.MapOp):
            if saved in op.ins:
                yield op
        elif isinstance(op, func.ReturnOp):
            yield from kept_and_read(op, use.index)
        elif not isinstance(op, memref.StoreOp):
            yield op


def kept_and_read(end: func.ReturnOp, index: int) -> Iterator[Operation]:
    """Of what the forward half of a split gradient keeps, the ops of the other half that read it.

    The first arguments of that are the last results of this, but for the arena (`derivative.split`).
    """
    forward, kept = (
        end.parent_op(),
        [v for v in end.arguments if not isinstance(v.type, ad.ArenaType)],
    )
    assert isinstance(forward, func.FuncOp)
    name = forward.sym_name.data.removesuffix("_forward") + "_backward"
    block = forward.parent_block()
    for other in () if block is None else block.ops:
        if isinstance(other, func.FuncOp) and other.sym_name.data == name:
            count = other.attributes["kept"]
            assert isinstance(count, IntegerAttr)
            position = index - (len(kept) - count.value.data)
            if position >= 0:
                yield from readers(other.body.block.args[position])


def receipt_of(request: Request, values: Sequence[Any] | None) -> Receipt | None:
    """What the request's derivative saves; None of a mode that has no receipt, and of primals."""
    if request.mode == "product":
        request = replace(request, mode="hvp")  # which saves no less
    if request.mode not in (*JOINT, "vjp", "hvp"):
        return None
    return receipts.explain_request(request, values)


def view(request: Request, shown: Sequence[Shown], receipt: Receipt | None) -> str:
    """The page."""
    at = line_of_function(request.function)
    saves = () if receipt is None else receipt.saves
    start = [] if at is None else [(at.file, at.line)]
    rows = (row for one in shown for row in one.column.rows)
    places = [*start, *lines_of(saves), *(row.place for row in rows if row.place is not None)]
    source = source_column(places, saves)
    title = f"{subject_of(request).name}: from source to machine code"
    edges = (*source_edges(source, saves), *reloads(source, shown))
    told = "" if receipt is None else f"<p>{escape(receipt.totals())}</p>\n"
    told += legend(edge.kind for edge in edges)
    numbers = Places()
    columns = "".join(column_html(c, numbers) for c in (source, *(s.column for s in shown)))
    choices = "".join(choice(s.column) for s in shown)
    body = (
        f"<header><h1>{escape(title)}</h1>\n{told}"
        f"<fieldset><legend>Stages</legend>{choices}</fieldset></header>\n"
        f'<main class="columns">{columns}<svg class="overlay" aria-hidden="true"></svg></main>\n'
        '<footer><output id="status" aria-live="polite">Hover a line, or press the arrow keys; a click or '
        "Enter keeps it lit, Escape lets go.</output></footer>\n"
    )
    if receipt is not None and saves:
        body += f"<details><summary>What is saved, and why</summary>{table(saves, receipt.file)}</details>\n"
    return page("view", title, body, edges)


def choice(one: Column) -> str:
    """The box that shows a stage or hides it."""
    return (
        f'<label title="{escape(one.why)}"><input type="checkbox" checked value="{one.key}"> '
        f"{escape(one.title)}</label> "
    )


def reloads(source: Column, shown: Sequence[Shown]) -> Iterator[Edge]:
    """From each line that saves to the op of the adjoint that reads."""
    row = {r.place: row_id(source.key, k) for k, r in enumerate(source.rows)}
    for one in shown:
        for place, index, name in one.reads:
            title = f"line {place[1]} saves {name}, which the adjoint reads here"
            yield Edge("reload", row[place], row_id(one.column.key, index), title)
