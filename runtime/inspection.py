"""What `f.inspect` is: called with a stage's name it tells the program there; `html` shows all stages."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from .user_tracebacks import with_concise_methods

PAGE, FRAME = "<page>", "<frame>"
"""What is asked for in place of a stage: all stages as a page, and the same to be shown within another."""


@with_concise_methods
class Inspection:
    """The program after each stage of the compiler: `f.inspect("adjoint", u, k, wrt="u")`; runs nothing.

    With `wrt`, the gradient's; with `plan="split"` as well, that of `vjp`. Without arguments, those of the
    latest compilation are taken. `f.inspect.html(path)` writes all stages side by side; a notebook shows that
    page of `f.inspect`.
    """

    __slots__ = ("_name", "shown")

    def __init__(self, name: str, shown: Callable[..., str]) -> None:
        self._name = name
        self.shown = shown
        """`shown(stage, *args, wrt=..., plan=..., **kwargs)`, where the stage may be `PAGE` or `FRAME`."""

    def __call__(
        self, stage: str, *args: Any, wrt: Any = None, plan: str = "joint", **kwargs: Any
    ) -> str:
        return self.shown(stage, *args, wrt=wrt, plan=plan, **kwargs)

    def html(
        self,
        path: str | Path,
        *args: Any,
        wrt: Any = None,
        plan: str = "joint",
        **kwargs: Any,
    ) -> None:
        """Write a page of the source and all stages side by side: one file, no network.

        Arguments are those of `inspect`; with them, and `wrt`, the page says the bytes that are saved.
        """
        page = self.shown(PAGE, *args, wrt=wrt, plan=plan, **kwargs)
        Path(path).write_text(page, encoding="utf-8")

    def _repr_html_(self) -> str | None:
        """The page, in a notebook, for the arguments of the latest call; before any, nothing."""
        try:
            return self.shown(FRAME, wrt=None, plan="joint")
        except ValueError:
            return None  # the kinds of its arguments are not known

    def __repr__(self) -> str:
        return f"<the stages of {self._name}: inspect(stage, ...) or inspect.html(path, ...)>"
