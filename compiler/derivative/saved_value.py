"""What a receipt says of one save: its name, its size, why it is needed, and how to avoid it."""

from __future__ import annotations

import linecache
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath
from unicodedata import normalize

from xdsl.dialects import memref, scf
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array, foreign
from ..analysis.alias import enclosing_loops
from ..diagnostics import line_of
from ..names import as_written
from ..rules import evaluates_body, is_whole_array, writes
from . import formulas
from .bounds import Bounds, dependence
from .formulas import PRODUCT, Formula
from .plan import Save, hint_of, is_release, killing_line
from .segments import bytes_of
from .sizes import Sizes
from .source_words import expression_of, is_program_s, line_told, place_of, source_text


@dataclass(frozen=True)
class SavedValue:
    """One saved value: its name, where it is saved, its size, and why it must be."""

    name: str
    line: int
    """Where the value is read or computed."""
    bytes: int | None
    """For the given arguments; None where that is known at run time only."""
    is_bound: bool
    """Whether it is at most so many, which a run may not need."""
    formula: str
    bound: str | None
    """What the formula is at most, where a number in it is known at run time only; None without a bound."""
    depends_on: str | None
    """What decides how much it is, where there is no bound."""
    killed_by: int | None
    """The line of the store that overwrites it; None where it is the caller who might."""
    needed_by: tuple[int, str]
    """The line and the expression whose adjoint reads it."""
    why: str
    way_out: str | None
    """An edit of the source with which the gradient saves less, where one was tried (`compiler.rewrites`)."""
    file: str
    killed_in: str
    """The file of the store that overwrites it."""
    needed_in: str
    """The file of the expression that needs it."""

    @property
    def bytes_shown(self) -> str:
        return shown(self.bytes, is_bound=self.is_bound)

    @property
    def formula_shown(self) -> str:
        return self.formula if self.bound is None else f"{self.formula} <= {self.bound}"

    def line_shown(self, file: str) -> str:
        """Its line, with its file where that is not `file`."""
        return f"{self.line}" if self.file == file else f"{PurePath(self.file).name}:{self.line}"

    @property
    def source(self) -> str:
        """The text of its line."""
        return linecache.getline(self.file, self.line).strip()


def shown(size: int | None, *, is_bound: bool = False) -> str:
    """A size for readers."""
    if size is None:
        return "?"
    return f"at most {size:,}" if is_bound else f"{size:,}"


def saved_value(save: Save, sizes: Sizes, copies: int = 1) -> SavedValue:
    """What a save is for readers; there are so many `copies` of it: itself, and its tangents."""
    factors = sizes.factors(save)
    count = sizes.product(factors)
    size = copies * bytes_of(save.element)
    at = line_of(reader_of(save)) or ("", 0, 0)
    formula = times(size, sizes.show_product(factors))
    is_known = "@" not in formula
    most = None if is_known else Bounds(sizes).product(factors)
    bound = None if most is None else times(size, most)
    needed_in, needed = place_of(save.needed_by)
    killer = None if isinstance(save.killer, ad.HandoverOp) else killing_line(save)
    return SavedValue(
        name_of(save),
        at[1],
        None if count is None else size * count.value,
        count is not None and count.is_bound,
        formula,
        bound,
        None if is_known or bound is not None else dependence(factors, sizes),
        killer[1] if killer else None,
        (needed, expression_of(save.needed_by)),
        why(save),
        None,
        at[0],
        killer[0] if killer else at[0],
        needed_in,
    )


def times(size: int, count: Formula) -> str:
    return formulas.product([formulas.constant(size), count]).at(PRODUCT)


def why(save: Save) -> str:
    """What becomes of the value, and which expression needs it."""
    name, by = name_of(save), expression_of(save.needed_by)
    file = (line_of(reader_of(save)) or ("",))[0]
    what = "its result" if by == name else f"`{name}`"
    needs = f"`{by}` on {line_told(place_of(save.needed_by), file)} needs {what}"
    if isinstance(save.killer, ad.HandoverOp):
        return f"the caller may change `{name}` before `back`, {needs}"
    if save.killer is None or (at := killing_line(save)) is None:
        return needs
    target = name_overwritten(save.killer, at) or name
    if is_release(save.killer):
        return f"`{name}` is freed at the end of the block of {line_told(at[:2], file)}, {needs}"
    return f"{line_told(at[:2], file)} overwrites `{target}`, {needs}"


def reader_of(save: Save) -> Operation:
    """The op that reads the value: of a map, which is many operations, the one that needs it."""
    return save.needed_by if save.needed_by.parent_op() is save.source else save.source


def name_of(save: Save) -> str:
    """The variable or array that is saved, as the program calls it; the expression where it has no name."""
    made = save.node.owner if isinstance(save.node, SSAValue) else save.source
    return program_s_name(hint_of(save), made if isinstance(made, Operation) else save.source)


def name_of_value(value: SSAValue) -> str:
    """The same of a value."""
    owner = value.owner if isinstance(value.owner, Operation) else value.owner.parent_op()
    return program_s_name(value.name_hint or "value", owner)


def program_s_name(hint: str, op: Operation | None) -> str:
    """What an op's value is called in the program; its expression where it is not called there."""
    name, at = as_written(hint), None if op is None else line_of(op)
    if op is None or at is None or is_program_s(name, at[0], at[1]):
        return name
    text = source_text(op)
    is_part = isinstance(op, array.LoopOp | scf.IfOp)
    what = "trips" if hint == "trips" else "state"
    return f"{what} of {text}" if text and is_part else text or name


def way_out(save: Save) -> str | None:
    """The cheapest edit that would leave the value in memory, where one is known.

    It is about what the killer overwrites, which has a name in the program even where the saved value has
    none.
    """
    killer, line = save.killer, killing_line(save)
    if killer is None or line is None or isinstance(killer, ad.HandoverOp):
        return None
    target, name = overwritten_by(killer), name_overwritten(killer, line)
    if target is None or name is None:
        return None
    in_loop = any(loop.is_ancestor(save.at) for loop in enclosing_loops(killer))
    if isinstance(target.owner, memref.AllocaOp):
        if not in_loop:
            return f"line {line[1]}: assign to a name other than `{name}`"
        return f"line {line[1]}: keep each `{name}` in an array, one element a step"
    if in_loop:
        return (
            f"line {line[1]}: give `{name}` one more axis and keep the steps "
            f"({name}[t + 1] = f({name}[t]))"
        )
    return f"line {line[1]}: write to an array other than `{name}`"


def name_overwritten(killer: Operation, line: tuple[str, int, int]) -> str | None:
    """What the program calls the array or variable that an op stores to; None where it has no name there.

    A method calls a field of `m` `self.u`: its own name is enough.
    """
    target = overwritten_by(killer)
    if target is None or target.name_hint is None:
        return None
    name = as_written(target.name_hint)
    return name if name.rpartition(".")[2] in names_in(line[0], line[1]) else None


def overwritten_by(killer: Operation) -> SSAValue | None:
    """The array or variable that an op stores to; None where it is none, or several."""
    match killer:
        case memref.StoreOp():
            target: SSAValue = killer.memref
        case array.MapOp() if len(killer.outs) == 1:
            target = killer.outs[0]
        case foreign.RuleCallOp() if len(killer.arguments_that("write")) == 1:
            (target,) = killer.arguments_that("write")
        case _ if is_whole_array(killer) and not evaluates_body(killer):
            target = writes(killer)[0].memref
        case _:
            return None
    while isinstance(owner := target.owner, array.AnyView | memref.CastOp):
        target = owner.source
    return target


def names_in(file: str, line: int) -> set[str]:
    """The words of a line of source: what is called otherwise there, the program does not know."""
    return set(re.findall(r"\w+", normalize("NFKC", linecache.getline(file, line))))


def added_up(written: Sequence[str]) -> str:
    """The sum of terms `number*rest`: those with the same rest become one.

    `8*n`, `16*n` and `8*n*steps` are `24*n + 8*n*steps`.
    """
    terms: dict[str, int] = {}
    for formula in written:
        number, _, rest = formula.partition("*") if formula[0].isdigit() else ("1", "", formula)
        terms[rest] = terms.get(rest, 0) + int(number)
    return " + ".join(str(Formula(rest, factor=n)) for rest, n in terms.items()) or "0"
