"""Where `check_gradient` has failed: the command that finds the pass of the compiler that is wrong.

It needs a dump of the program, and inputs. Both are written where dumps are wanted (MUTAD_DUMP).
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from . import native_code
from .keys import Overlaps, is_generator

if TYPE_CHECKING:
    from .function import CompiledFunction


class Check(Protocol):
    """What is being checked: a function at these values."""

    @property
    def function(self) -> CompiledFunction: ...
    @property
    def values(self) -> tuple[Any, ...]: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def overlaps(self) -> Overlaps: ...
    @property
    def mode(self) -> str: ...


def pointer(check: Check, arguments: Sequence[str], active: Sequence[int]) -> str:
    """The line that says how to go on: the command, or how to have it."""
    if not os.environ.get("MUTAD_DUMP"):
        return (
            "find the pass that is wrong: run this again with MUTAD_DUMP=frontend in the environment, and "
            "here stands a `mutad bisect` command"
        )
    d = check.function._dispatcher  # pyright: ignore[reportPrivateUsage]
    wrt = () if check.mode == "primal" else tuple(active)
    asked = tuple(arguments), check.overlaps, check.mode, wrt, d.options, d.era.captures
    with native_code.compiling:
        path = d.compiler.dump(d.function, *asked)
    inputs = f"{path.removesuffix('.mlir')}.npz"
    save: Any = np.savez  # whose stub takes names for its options
    save(inputs, **dict(_leaves(check.names, check.values)))
    files = f"{shlex.quote(path)} --inputs {shlex.quote(inputs)}"
    return f"find the pass that is wrong: mutad bisect {files}"


def _leaves(names: Sequence[str], values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    """What a file of arrays has: numbers and arrays, an item of a tuple as `p.0`."""
    for name, value in zip(names, values, strict=True):
        if isinstance(value, tuple):
            items: tuple[Any, ...] = value
            yield from _leaves([f"{name}.{k}" for k in range(len(items))], items)
        elif is_generator(value):
            yield name, 0
        elif value is not None:
            yield name, np.asarray(value)
