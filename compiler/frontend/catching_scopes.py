"""What is known of `try` statements, and of what is raised within: `catching`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from xdsl.ir import Block, SSAValue

from ..diagnostics import Span
from .data.fields import is_field
from .joins import Binding
from .syntax.liveness import Names

if TYPE_CHECKING:
    from .frames import Frame


@dataclass(frozen=True)
class Raise:
    """One place that raises: the number it sets the flag to, the message, the cells of what it shows."""

    handler: int
    number: int
    exception: str
    message: str
    shown: tuple[SSAValue, ...]
    span: Span | None


@dataclass(eq=False)
class Attempt:
    """A `try` whose body is being lowered: the classes of each handler, and who raised so far.

    `relevant` are the names of its frame that are read where an exception was raised. With `keeps`, what
    was raised may be raised again. With `merges`, places that raise the same are one.
    """

    frame: Frame
    handlers: Sequence[tuple[type[BaseException], ...]]
    relevant: Names
    keeps: bool
    cell: SSAValue
    raises: list[Raise] = field(default_factory=list[Raise])
    merges: bool = False

    def handler_of(self, raised: type[BaseException]) -> int | None:
        return next((k for k, c in enumerate(self.handlers) if issubclass(raised, c)), None)

    def of_handler(self, k: int) -> list[Raise]:
        return [r for r in self.raises if r.handler == k]


Pending = frozenset[Attempt]
NOTHING: Pending = frozenset()


@dataclass(frozen=True)
class Caught:
    """What `except ... as name` binds: an exception that handler `handler` caught, where one of `only`."""

    attempt: Attempt
    handler: int
    only: tuple[Raise, ...] | None = None

    @property
    def raises(self) -> list[Raise]:
        """The places that may have raised it."""
        return self.attempt.of_handler(self.handler) if self.only is None else list(self.only)


@dataclass(frozen=True)
class Arm:
    """One way through a branch: its code, the names at its end, whether it ends normally, and the
    attempts to which it may leave by an exception."""

    block: Block
    env: dict[str, Binding]
    dead: bool
    pending: Pending = NOTHING

    def is_gone(self, name: str, frame: Frame) -> bool:
        """True when nothing reads the name after the arm."""
        if is_field(name):
            return self.dead and not self.pending
        return self.dead and not any(a.frame is frame and name in a.relevant for a in self.pending)


@dataclass(frozen=True)
class Nest:
    """A branch that is open: what follows in `outer` goes to the side where nothing was raised."""

    condition: SSAValue
    outer: Block
    raised: Arm
    span: Span | None


@dataclass(frozen=True)
class Branch:
    """A nest that is closed otherwise."""

    condition: SSAValue
    raised: Arm
    tail: Arm


@dataclass
class Scope:
    """A block whose statements are being lowered, `block` being where the next op goes."""

    frame: Frame
    block: Block
    nests: list[Nest] = field(default_factory=list[Nest])
    ending: Pending = NOTHING
    """Where it leaves to, at an end that is dead."""
    pending: Pending = NOTHING
    """Where it may leave to: known when it is closed."""
