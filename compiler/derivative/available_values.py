"""What the reverse sweep has already recovered: primal values, memrefs and copies, each once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.ir import Block, SSAValue

from .segments import value_block
from .versions import Version

Key = TypeVar("Key")


@dataclass
class Known:
    """For each thing of the primal its name in the reverse sweep, where that can be used."""

    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    memrefs: dict[tuple[SSAValue, str], SSAValue] = field(
        default_factory=dict[tuple[SSAValue, str], SSAValue]
    )
    """Of each memref the memory itself, or its shadow."""
    copies: dict[Version, SSAValue] = field(default_factory=dict[Version, SSAValue])
    filled: dict[Version, Block] = field(default_factory=dict[Version, Block])
    """Where each copy has its contents: a cell is made where the function begins, and filled elsewhere."""
    tapes: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Of each tape that of the shadows; for the whole function."""

    def copy(self) -> Known:
        return Known(
            dict(self.values), dict(self.memrefs), dict(self.copies), self.filled, self.tapes
        )

    def return_to(self, before: Known) -> None:
        """Forget what came since."""
        self.values, self.memrefs, self.copies = before.values, before.memrefs, before.copies

    def leave(self, block: Block, before: Known) -> None:
        """Forget what was had inside of `block` meanwhile; what was made outside of it stays."""
        self.values = kept_outside(block, before.values, self.values)
        self.memrefs = kept_outside(block, before.memrefs, self.memrefs)
        copies = {v: c for v, c in self.copies.items() if not is_inside(self.filled[v], block)}
        self.copies = copies | before.copies


def kept_outside(
    block: Block, before: dict[Key, SSAValue], now: dict[Key, SSAValue]
) -> dict[Key, SSAValue]:
    """What was known before, with what was made meanwhile outside of `block`: a shadow exists once."""
    return {k: v for k, v in now.items() if not is_inside(value_block(v), block)} | before


def is_inside(inner: Block, outer: Block) -> bool:
    """True when `inner` is `outer` or nested in it."""
    block: Block | None = inner
    while block is not None and block is not outer:
        parent = block.parent_op()
        block = None if parent is None else parent.parent_block()
    return block is outer
