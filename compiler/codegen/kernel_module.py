"""The text of a module: its kernels, and what they use of support functions, attributes and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from .debug_info import around
from .kernel_state import KernelState
from .support import library
from .support.functions import DECLARATIONS, functions_text
from .vector_width import IN_WIDE_VECTORS, in_wide_vectors, is_wide, width_pays

SIZES = "work_size"
"""The attribute of a function that computes the bytes of a kernel's work area, and the end of its name."""

WHOLE, IN_STEPS, OTHER = "kernel_whole", "kernel_in_steps", "mutad_whole"
"""The kernel that saves all, the one that runs steps or updates again, and the first of another module."""


@dataclass(frozen=True)
class KernelText:
    """A kernel, or the two of a split gradient, as LLVM text."""

    text: str
    """Definitions, attributes and metadata; needs `declarations` in the same module."""
    declarations: tuple[str, ...]
    """One line for each external symbol."""
    sites: list[dict[str, Any]]
    """What can be raised or printed, by site number."""
    symbols: dict[str, str]
    """External symbol -> "libm", "libmvec", "blas" or "libc"."""
    result_slots: tuple[int, ...]
    """The first 8-byte slot of each result (of the first kernel)."""
    entry: tuple[str, str] = ("", "")
    """Where lines are wanted: what the head of a function says into which the kernel may be inlined, and what
    stands behind the call."""
    apart: tuple[str, dict[str, str], tuple[str, ...]] = ("", {}, ())
    """The text without support functions, its own declarations by symbol, and the functions that it uses."""
    shared: tuple[dict[str, Any], ...] = ()
    """The libraries that it needs: how each is to be written (`shared_code`)."""

    def module(self) -> str:
        """The text that can be compiled alone."""
        return "\n".join([*self.declarations, self.text])

    def beside_library(self) -> KernelText:
        """The same for a process that has the support functions in a library of their own."""
        own, declared, used = self.apart
        made = library.linked(own, used)
        return replace(
            self,
            text="\n".join([own, *made.definitions, ""]),
            declarations=tuple(sorted({**declared, **made.declarations}.values())),
            symbols={**self.symbols, **made.symbols},
        )


CALLS_BY_ADDRESS = 'i32 7, !"RtLibUseGOT", i32 1'
"""Calls of `sin` read its address from a table, and do not go through a stub: 3 % of a chain of calls."""


def module_text(
    state: KernelState,
    definitions: Sequence[list[str]],
    result_slots: tuple[int, ...],
    *,
    wide: bool | None = None,
) -> KernelText:
    """The module of these kernels, of which `state` (of any of them) knows what they share.

    `wide`: whether it has wide vectors, where that is decided elsewhere.
    """
    entry = around(state.debug)
    parts = [line for lines in definitions for line in lines]
    parts += state.functions.values()
    supporting, needed = functions_text(state.support, state.memory.functions)
    declared = dict(state.declarations)
    state.declarations.update({symbol_of(line): line for line in needed})
    state.symbols.update({s: "libc" for s in state.declarations if s in DECLARATIONS})
    if state.kept_alive:
        kept = ", ".join(f"ptr @{s}" for s in state.kept_alive)
        parts.append(
            f"@llvm.compiler.used = appending global [{len(state.kept_alive)} x ptr] [{kept}],"
            ' section "llvm.metadata"'
        )
    parts += [f"attributes #{n} = {{ {a} }}" for a, n in state.attributes.items()]
    # A gradient has the same bits within a budget, where its loops are others: width must not hang on them.
    if wide is None:
        wide = is_wide(state.features) and (state.in_vectors or width_pays(state.leaves))
    if wide:
        state.metadata.nodes = [in_wide_vectors(node) for node in state.metadata.nodes]
        state.metadata.named.append(IN_WIDE_VECTORS)
    if "libm" in state.symbols.values():
        state.metadata.flags.append(state.metadata.node(CALLS_BY_ADDRESS))
    parts += state.metadata.lines()
    return KernelText(
        "\n".join([*parts, *supporting]) + "\n",
        tuple(sorted(state.declarations.values())),
        state.sites,
        state.symbols,
        result_slots,
        entry,
        ("\n".join(parts), declared, tuple(sorted(state.support))),
        tuple(asked(state, kind, name, wide=wide) for kind, name in sorted(state.shared)),
    )


def asked(state: KernelState, kind: str, name: str, *, wide: bool) -> dict[str, Any]:
    """How a library is to be written that the module needs."""
    if kind == "function":
        return {"kind": kind, "name": name}
    ways = {"fastmath": state.fastmath, "spread": state.spread, "wide": wide}
    return {"kind": kind, "type": name, **ways}


def symbol_of(line: str) -> str:
    """The symbol that a declaration declares."""
    return line[line.index("@") + 1 : line.index("(")]
