"""The entries and libraries that the process lacks, compiled beside the kernel that calls them, or is called.

They take LLVM as long as a small kernel. What the entries are is known once no pass changes what the kernel
takes: a thread emits them while its text is written. Which libraries it calls its text says: they are
compiled at once with its parts::

    optimize | llvm: Python      | llvm-opt: parts of the kernel, libraries
             | a thread: entries |

The runtime knows what it lacks (`runtime.entry_code`), and asks for that afterwards as if nothing was there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .request import Artifact

if TYPE_CHECKING:
    from .codegen.llvm_module import Target
    from .codegen.llvm_threads import Task

Lacking = tuple[str, str, int]
"""`ENTRIES` or `LIBRARY`, what it is made of (a convention; what kernels ask for), LLVM's level."""
Missing = Callable[[dict[str, Any]], list[Lacking]]
"""What of that the process lacks which code with this metadata needs."""
ENTRIES, LIBRARY = "entries", "shared"

made: dict[tuple[Lacking, Any], Artifact] = {}
"""What the latest compilation has made, by the target as well, until it is asked for."""


@dataclass
class Beside:
    """What is compiled beside one kernel."""

    missing: Missing
    target: Target | None
    begun: dict[Lacking, tuple[Task[bytes], dict[str, Any]]] = field(default_factory=dict)

    def begin_entries(self, convention: str) -> None:
        """Emit the entries of this convention from now on."""
        from .codegen.llvm_module import entries_begun

        for lacking in self.missing({"convention": convention, "shared": []}):
            text, metadata = entries_text(convention)
            self.begun[lacking] = entries_begun(text, lacking[2], self.target), metadata

    def libraries(self, asked: Sequence[dict[str, Any]]) -> list[Library]:
        """The libraries to compile at once with the kernel."""
        lacking = self.missing({"convention": None, "shared": [json.dumps(how) for how in asked]})
        return [Library(one, self.target, *library_text(one[1], self.target)) for one in lacking]

    def end(self) -> None:
        """Wait for the entries."""
        for lacking, (task, metadata) in self.begun.items():
            made[lacking, self.target] = Artifact(task.result(), metadata)


@contextmanager
def beside(missing: Missing | None, target: Target | None) -> Generator[Beside | None]:
    """What is compiled beside the kernel in here, if the process may lack something; made when that is."""
    made.clear()
    if missing is None:
        yield None
        return
    from .codegen.llvm_options import ended

    one = Beside(missing, target)
    with ended():
        yield one
        one.end()


@dataclass(frozen=True)
class Library:
    lacking: Lacking
    target: Target | None
    text: str
    metadata: dict[str, Any]

    def keep(self, code: bytes) -> None:
        made[self.lacking, self.target] = Artifact(code, self.metadata)


def taken(what: str, of: str, opt: int, target: Target | None) -> Artifact | None:
    """What the latest compilation has made of this."""
    return made.pop(((what, of, opt), target), None)


def entries_text(convention: str) -> tuple[str, dict[str, Any]]:
    """The entries, and what the runtime must know of them."""
    from .codegen.entries.entry import entries, entry_symbols

    written = entries(convention)
    return written.module(), {
        "symbols": written.symbols,
        "entries": entry_symbols(convention),
    }


def library_text(asked: str, target: Target | None) -> tuple[str, dict[str, Any]]:
    """A library that kernels ask for, and what the runtime must know of it."""
    from .codegen.shared_code import shared_text

    written, names = shared_text(asked, target)
    return written.module(), {
        "symbols": written.symbols,
        "entries": {name: name for name in names},
    }
