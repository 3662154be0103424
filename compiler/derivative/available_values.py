"""What the reverse sweep has already recovered: primal values, memrefs and copies, each once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

from xdsl.ir import Block, SSAValue

from .segments import value_block
from .versions import Version

Key = TypeVar("Key")

Mark = tuple[int, int, int, int]
"""How much was known at a time: of values, memrefs, copies and their views."""


class Names(dict[Key, SSAValue]):
    """A dictionary that can go back: to forget what came since costs as much as came since."""

    def __init__(self) -> None:
        super().__init__()
        self._changes: list[tuple[Key, SSAValue | None]] = []
        """What was set, in order, with the name that it had before."""

    def __setitem__(self, key: Key, value: SSAValue) -> None:
        self._changes.append((key, self.get(key)))
        super().__setitem__(key, value)

    def mark(self) -> int:
        return len(self._changes)

    def return_to(self, mark: int, stays: Callable[[Key, SSAValue], bool] | None = None) -> None:
        """Names that were there are as they were, those that came since are gone, or stay."""
        since = self._changes[mark:]
        del self._changes[mark:]
        for key, before in dict(reversed(since)).items():
            if before is not None:
                super().__setitem__(key, before)
            elif stays is not None and stays(key, self[key]):
                self._changes.append((key, None))
            else:
                del self[key]


@dataclass
class Known:
    """For each thing of the primal its name in the reverse sweep, where that can be used."""

    values: Names[SSAValue] = field(default_factory=Names[SSAValue])
    memrefs: Names[tuple[SSAValue, str]] = field(default_factory=Names[tuple[SSAValue, str]])
    """Of each memref the memory itself, or its shadow."""
    copies: Names[Version] = field(default_factory=Names[Version])
    filled: dict[Version, Block] = field(default_factory=dict[Version, Block])
    """Where each copy has its contents: a cell is made where the function begins, and filled elsewhere."""
    views: Names[tuple[SSAValue, SSAValue, Block]] = field(
        default_factory=Names[tuple[SSAValue, SSAValue, Block]]
    )
    """Views of arrays, taken of copies in the reverse of a block."""
    tapes: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    """Of each tape that of the shadows; for the whole function."""

    def mark(self) -> Mark:
        """What `return_to` and `leave` take; marks are left in the reverse of their order."""
        return self.values.mark(), self.memrefs.mark(), self.copies.mark(), self.views.mark()

    def return_to(self, mark: Mark) -> None:
        """Forget what came since."""
        values, memrefs, copies, views = mark
        self.values.return_to(values)
        self.memrefs.return_to(memrefs)
        self.copies.return_to(copies)
        self.views.return_to(views)

    def leave(self, block: Block, mark: Mark) -> None:
        """Forget what was had inside of `block` meanwhile; what was made outside of it stays: a shadow
        exists once."""
        values, memrefs, copies, views = mark

        def is_outside(_: object, value: SSAValue) -> bool:
            return not is_inside(value_block(value), block)

        self.values.return_to(values, is_outside)
        self.memrefs.return_to(memrefs, is_outside)
        self.views.return_to(views, is_outside)
        self.copies.return_to(copies, lambda v, _: not is_inside(self.filled[v], block))


def is_inside(inner: Block, outer: Block) -> bool:
    """True when `inner` is `outer` or nested in it."""
    block: Block | None = inner
    while block is not None and block is not outer:
        parent = block.parent_op()
        block = None if parent is None else parent.parent_block()
    return block is outer
