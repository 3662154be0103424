"""What the runtime needs of a compiler, of which it imports nothing: the face hands one in.

And what calls need to make functions, whose modules import theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from . import keys
from .captures import Captures

Wanted = Callable[[Sequence[Any]], bool]
"""Whether code is of use that assumes these forms of the arguments' extents to be 0."""

Missing = Callable[[dict[str, Any]], list[tuple[str, str, int]]]
"""What the process lacks beside code with this metadata (`entry_code.missing`)."""


class Compiler(Protocol):
    """What the face hands in.

    `arguments` has one key for each parameter, then one for each input that is `captured`.
    """

    def compile(
        self,
        function: Callable[..., Any],
        arguments: tuple[str, ...],
        overlaps: keys.Overlaps,
        mode: str,
        wrt: tuple[int, ...],
        options: dict[str, Any],
        captured: Captures,
        wanted: Wanted | None = None,
        missing: Missing | None = None,
    ) -> tuple[bytes, dict[str, Any]]:
        """Object code and metadata; where code with what it assumes is not `wanted`, that alone.

        What `missing` says of such metadata may be compiled at the same time: it is asked for next.
        """
        ...

    def watched(self, name: str) -> AbstractContextManager[None]:
        """Around a compilation: it may show what it is doing."""
        return nullcontext()

    def entries(self, convention: str, opt: int) -> tuple[bytes, dict[str, Any]]:
        """The entries that all code of this calling convention shares (`entry_code`)."""
        ...

    def shared(self, asked: str, opt: int) -> tuple[bytes, dict[str, Any]]:
        """A library that all code shares which asks for the same one (`entry_code`)."""
        ...

    def support(self, opt: int) -> tuple[bytes, dict[str, Any]]:
        """What all code and all entries share (`entry_code`)."""
        ...

    def stage(
        self,
        stage: str,
        function: Callable[..., Any],
        arguments: tuple[str, ...],
        overlaps: keys.Overlaps,
        mode: str,
        wrt: tuple[int, ...],
        options: dict[str, Any],
        captured: Captures,
        values: Sequence[Any] | None = None,
    ) -> str:
        """The text of the program after a stage; of the code that a call with these values takes."""
        ...

    def page(
        self,
        function: Callable[..., Any],
        arguments: tuple[str, ...],
        overlaps: keys.Overlaps,
        mode: str,
        wrt: tuple[int, ...],
        options: dict[str, Any],
        captured: Captures,
        values: Sequence[Any] | None,
        framed: bool,
    ) -> str:
        """The program after every stage as a page; framed, to be shown within another."""
        ...

    def dump(self, *asked: Any) -> str:
        """Write what the frontend makes of what `stage` is asked to where dumps are; the file."""
        ...

    def check_differentiable(
        self,
        function: Callable[..., Any],
        arguments: tuple[str, ...],
        overlaps: keys.Overlaps,
        wrt: tuple[int, ...],
        options: dict[str, Any],
        captured: Captures,
        wanted: Wanted,
    ) -> None:
        """CompileError where the gradient cannot be compiled; makes no code."""
        ...

    def precision(
        self,
        function: Callable[..., Any],
        arguments: tuple[str, ...],
        overlaps: keys.Overlaps,
        mode: str,
        wrt: tuple[int, ...],
        options: dict[str, Any],
        captured: Captures,
        /,
    ) -> tuple[str, str]:
        """The narrowest floats that results are made of, and those of them that arguments move."""
        return "f64", "f64"

    def explain(
        self,
        function: Callable[..., Any],
        arguments: tuple[str, ...],
        overlaps: keys.Overlaps,
        mode: str,
        wrt: tuple[int, ...],
        options: dict[str, Any],
        captured: Captures,
        values: tuple[Any, ...] | None,
        counts: tuple[int, ...] | None = None,
    ) -> Any:
        """The plan: what is saved, why, how many bytes; without values the formulas alone.

        `counts`: what a run counted of each save (the modes "count" and "count-split").
        """
        ...


class Make(Protocol):
    """Makes compiled functions (`function_factory.compiled`, which dispatchers are handed)."""

    def __call__(
        self, function: Any, options: dict[str, Any], compiler: Compiler, with_gradient: bool
    ) -> Any: ...
