"""Calls within `try` of recursive functions: what is raised in the callee is a result of the call.

The callee is lowered as the body of a `try` that catches everything. Its first result says what it has raised
(0: nothing), those after it what the messages show; the caller raises that again, where its handlers are::

    try:                     %deep = activation.too_deep frames 1         RecursionError, where it is
        y = f(i - 1)         %r, %raised, %y = activation.call @f_2(%j)
    except ValueError:       %any = arith.cmpi ne, %raised, %c0
        y = 0.0              scf.if %any { ... } else { ... }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, SSAValue

from ....dialects import activation, array
from ...diagnostics import Span
from ..catching import STRIDE, Catching
from ..catching_scopes import Attempt
from ..emitter import Emitter
from ..frames import Frame

if TYPE_CHECKING:
    from .calls import Calls

TOO_DEEP = ("RecursionError", "maximum recursion depth exceeded")


@dataclass(frozen=True)
class Raised:
    """An exception that a function may raise: its class, its message, the types of what that shows."""

    exception: str
    message: str
    types: tuple[Attribute, ...]
    span: Span | None = field(compare=False)

    @property
    def text(self) -> tuple[str, tuple[Attribute, ...]]:
        """What is shown is the same for all with this text."""
        return self.message, self.types


def result_types(raises: Sequence[Raised], catches: bool) -> list[Attribute]:
    """The types of the results that say what was raised."""
    if not catches:
        return []
    shown = dict.fromkeys(r.text for r in raises)
    return [IndexType(), *(t for _, types in shown for t in types)]


def is_asked(lowering: Calls) -> bool:
    """True where what a call raises goes to a handler, or hands the caller's objects over."""
    return lowering.catches() or lowering.e.leave is not None


def raise_when_too_deep(lowering: Calls, frames: int) -> None:
    """Raise RecursionError here, where a handler gets it."""
    if lowering.catching.target(*TOO_DEEP) is not None or lowering.e.leave is not None:
        deep = lowering.e.emit(activation.TooDeepOp(frames))
        lowering.e.insert(array.RaiseIfOp(deep, *TOO_DEEP))


@dataclass
class Status:
    """What a call says it has raised."""

    number: SSAValue
    raises: Sequence[Raised]
    shown: dict[object, list[SSAValue]]

    @classmethod
    def taken(cls, parts: Iterator[SSAValue], raises: Sequence[Raised]) -> Status:
        """The status that comes first among the results of a call."""
        number = next(parts)
        shown: dict[object, list[SSAValue]] = {}
        for raised in raises:
            if raised.text not in shown:
                shown[raised.text] = [next(parts) for _ in raised.types]
        return cls(number, raises, shown)

    def raise_again(self, lowering: Calls) -> None:
        """Raise in the caller what the callee has raised."""
        whats = [(r.exception, r.message, self.shown[r.text]) for r in self.raises]
        lowering.catching.leave_with(self.number, STRIDE, whats)


class Guard:
    """The `try` around the body of a callee."""

    def __init__(
        self, catching: Catching, e: Emitter, frame: Frame, known: Sequence[Raised]
    ) -> None:
        self.e = e
        cell = e.cell(IndexType(), "raised")
        e.store(e.index(0), cell)
        handlers = [(BaseException,)]
        self.attempt = Attempt(frame, handlers, frozenset(), True, cell, merges=True)
        for raised in known:
            e.span, span = raised.span, e.span
            catching.note(self.attempt, 0, (raised.exception, raised.message, raised.types))
            e.span = span

    def raises(self) -> tuple[Raised, ...]:
        return tuple(
            Raised(r.exception, r.message, tuple(map(element, r.shown)), r.span)
            for r in self.attempt.raises
        )

    def results(self) -> list[SSAValue]:
        """The status."""
        shown = dict.fromkeys(cell for r in self.attempt.raises for cell in r.shown)
        return [self.e.load(self.attempt.cell), *map(self.e.load, shown)]


def element(cell: SSAValue) -> Attribute:
    assert isinstance(cell.type, MemRefType)
    return cell.type.element_type
