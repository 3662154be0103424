"""The names of one call: where they are kept, and where those from outside are looked up."""

from __future__ import annotations

import ast
import types
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from ..diagnostics import Span
from .facts import Key
from .joins import Binding
from .syntax.liveness import Liveness, Names
from .syntax.source import FunctionNode, Source
from .values import Record, Value

RESULT = "<return>"
"""The name under which a frame keeps its return value: it joins at branches like any variable."""
VALUE = "<value>"
"""The name under which the arms of a conditional expression keep their value."""


class Place(Protocol):
    """Where a name from outside is looked up: `holder` is a module's dict, a cell or a class."""

    @property
    def holder(self) -> Any: ...
    @property
    def name(self) -> str: ...
    @property
    def key(self) -> tuple[int, str]: ...


class Captured(Protocol):
    """What the function reads from outside: inputs are arguments, after the parameters; constants
    are watched, so that the code is used only while they are what they were."""

    @property
    def inputs(self) -> Sequence[Place]: ...
    @property
    def names(self) -> Sequence[str]: ...
    @property
    def constants(self) -> Sequence[Place]: ...
    def fixed(self, owner: types.ModuleType | type | str) -> bool:
        """Whether nobody watches a module, a class, or what a source file defines."""
        ...

    def foreign(self, value: Any) -> Any:
        """How to call what is not looked into (`foreign_calls`), or why not; None for anything else."""
        ...

    def rule(self, value: Any) -> Any:
        """The rule of a function (`rule_calls`), or None."""
        ...

    def plain(self, value: Any) -> Any:
        """The Python function behind a callable that only runs it; anything else as it is."""
        ...

    @property
    def most_items(self) -> int: ...
    def is_watched(self, table: Any) -> bool:
        """Whether the code may depend on what a list, dict or set holds."""
        ...

    def agrees(self, other: Any) -> bool:
        """Whether code that was made for this serves where the other is found."""
        ...

    def numbers(self, table: Any) -> tuple[tuple[int, str], int, int] | None:
        """In which input the numbers of a table are, from where on, and how many."""
        ...


@dataclass(frozen=True)
class Scope:
    """Where a function finds the names that are not its own: what it captured, its module."""

    name: str
    cells: dict[str, types.CellType]
    globals: dict[str, Any]

    @classmethod
    def of(cls, function: types.FunctionType) -> Scope:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        name = f"{function.__module__}.{function.__qualname__}"
        return cls(name, dict(cells), function.__globals__)


@dataclass
class Frame:
    """One inlined call: its names, and where names that are not its own are looked up."""

    source: Source
    scope: Scope
    locals: Names
    liveness: Liveness
    path: tuple[int, ...]
    serial: int
    parent: Frame | None = None
    turns: tuple[int, ...] = ()
    """Which iterations of loops that have some on their own are being lowered (`peeling`)."""
    env: dict[str, Binding] = field(default_factory=dict[str, Binding])
    after: Names | None = None
    """What is live after the assignment that is being lowered; None: anything."""
    done: bool = False
    """The call has returned: what its names are bound to, was made on some path."""
    cells: dict[str, Record] = field(default_factory=dict[str, Record])
    """Those of its shared names that have been made already."""
    certain: Names = frozenset()
    """The names that are bound wherever they are read, though joins do not know it."""
    shared: dict[str, Record] = field(default_factory=dict[str, Record])
    """The names that functions nested in it rebind, as objects (`nonlocals`)."""
    caller: Span | None = None
    within: str = ""
    """Of code that is not the user's: the call in the user's code that leads to it, of which function."""

    def span(self, node: ast.AST) -> Span:
        """The user's line that a node stands for."""
        return self.caller or self.source.span(node)

    def named(self, name: str) -> str:
        """A variable as it is called in receipts: none of the user's is called what a library's is."""
        return f"{self.within}.{name}" if self.within else name

    @property
    def place(self) -> tuple[int, ...]:
        """What tells a loop or a call made here from the same one in another iteration or call."""
        return (*self.path, *self.turns)


@dataclass(frozen=True, repr=False)
class LocalFunction:
    """A nested `def` or lambda: called where its defining frame's names are visible."""

    node: FunctionNode
    frame: Frame
    defaults: tuple[Value, ...]
    keyword_defaults: tuple[Value | None, ...]

    def __hash__(self) -> int:
        return id(self.node)

    def __repr__(self) -> str:
        return f"the function {getattr(self.node, 'name', 'of a lambda')}"

    def consists_of(self) -> tuple[Value | None, ...]:
        """Its defaults: the names that it reads are its frame's."""
        return *self.defaults, *self.keyword_defaults


@dataclass(frozen=True, eq=False)
class LateName:
    """A name that a loop binds, seen at the start of its first iteration."""

    key: Key


class Unready(Exception):
    """A name was read before anything was bound to it: what follows is never run."""
