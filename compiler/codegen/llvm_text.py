"""LLVM IR as text, written front to back: names, blocks, metadata, integer folding.

Text is the fastest road into llvmlite (a parse costs microseconds a line), and it can be read. The
writer keeps three streams, joined at the end: the entry block's allocas, the body, and the cold
blocks (raises), which come last so that hot code stays together.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache

ALIGNED = "alignstack(64)"
"""Of functions with loops: a vector that registers have no room for lies in one line of the cache. Without
it the stack begins where the caller's happens to end, and each load of such a vector may need two lines."""

_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_]")


@lru_cache(maxsize=4096)
def spelled(hint: str) -> str:
    """A hint as names have it; there are few, and each is given again and again."""
    return _NOT_IN_NAMES.sub("_", hint)


def integer(text: str) -> int | None:
    """The integer that an operand spells, or None for an SSA name."""
    return None if text.startswith("%") else int(text)


FEW = 16
"""So many iterations are no loop, where loops are compared by how often their bodies run."""

SLOT = 8
"""The alignment of stack slots. Accesses say so: LLVM takes vectors (several tangents) to lie better."""


def is_few(count: str) -> bool:
    known = integer(count)
    return known is not None and known <= FEW


@dataclass
class Metadata:
    """Numbered metadata nodes: equal ones are shared, distinct ones are not."""

    nodes: list[str] = field(default_factory=list[str])
    known: dict[str, str] = field(default_factory=dict[str, str])
    named: list[str] = field(default_factory=list[str])
    """Lines of metadata with names of their own."""
    flags: list[str] = field(default_factory=list[str])
    """Nodes, the module's flags."""

    def node(self, text: str) -> str:
        """The node `!{text}`."""
        return self.shared(f"!{{{text}}}")

    def shared(self, text: str) -> str:
        """The node that is written so."""
        found = self.known.get(text)
        if found is None:
            found = self.known[text] = f"!{len(self.nodes)}"
            self.nodes.append(f"{found} = {text}")
        return found

    def distinct(self, *rest: str) -> str:
        """A distinct node whose first operand is itself (loop identifiers, scopes)."""
        name = f"!{len(self.nodes)}"
        self.nodes.append(f"{name} = distinct !{{{', '.join((name, *rest))}}}")
        return name

    def unique(self, text: str) -> str:
        """A distinct node that is written so."""
        name = f"!{len(self.nodes)}"
        self.nodes.append(f"{name} = distinct {text}")
        return name

    def empty(self) -> str:
        """A distinct node without operands (an access group)."""
        return self.unique("!{}")

    def lines(self) -> list[str]:
        flags = [f"!llvm.module.flags = !{{{', '.join(self.flags)}}}"] if self.flags else []
        return [*self.named, *flags, *self.nodes]


@dataclass
class OpenLoop:
    """A counted loop whose body is being written."""

    counter: str
    values: tuple[str, ...]
    """The loop-carried scalars as the body sees them."""
    count: str
    types: tuple[str, ...]
    initial: tuple[str, ...]
    before: str
    """The block that skips the loop or not."""
    entered: str
    """The block that the first iteration comes from."""
    body: str
    exit: str
    guarded: bool
    phis: int
    """Where in `lines` the phis stand, to be written when the latch is known."""


class FunctionText:
    """The body of one LLVM function while it is written."""

    def __init__(self, metadata: Metadata) -> None:
        self.metadata = metadata
        self.lines: list[str] = []
        self.entry: list[str] = []
        self.cold: list[str] = []
        self.block = "entry"
        self.fuel: str | None = None
        """The stack slot of what may be done before the function polls, if it does (`polls`)."""
        self.tag = ""
        """What stands behind each instruction: the metadata that says which line it comes from."""
        self.depth = 0
        """In how many loops is written what is written now, short ones aside."""
        self._names = 0

    # Names and instructions.

    def name(self, hint: str | None = None) -> str:
        self._names += 1
        return f"%{spelled(hint) if hint else 'v'}.{self._names}"

    def value(self, instruction: str, hint: str | None = None) -> str:
        """Append an instruction with a result; returns the result's name."""
        name = self.name(hint)
        self.lines.append(f"  {name} = {instruction}{self.tag}")
        return name

    def do(self, instruction: str) -> None:
        self.lines.append(f"  {instruction}{self.tag}")

    def alloca(self, type_: str, hint: str | None = None, align: int = SLOT) -> str:
        """A stack slot of the entry block."""
        name = self.name(hint)
        self.entry.append(f"  {name} = alloca {type_}, align {align}")
        return name

    # Blocks.

    def label(self, hint: str) -> str:
        return self.name(hint)[1:]

    def start(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.block = label

    def branch(self, label: str) -> None:
        self.do(f"br label %{label}")

    def branch_if(
        self, condition: str, then: str, otherwise: str, weights: tuple[int, int] | None = None
    ) -> None:
        """`weights`: how often each side is taken, relative to the other."""
        shown = ""
        if weights is not None:
            node = self.metadata.node(f'!"branch_weights", i32 {weights[0]}, i32 {weights[1]}')
            shown = f", !prof {node}"
        self.do(f"br i1 {condition}, label %{then}, label %{otherwise}{shown}")

    def branch_if_unlikely(self, condition: str, then: str) -> None:
        """Leave for the cold block `then` when the condition holds; go on in a new block otherwise."""
        weights = self.metadata.node('!"branch_weights", i32 1, i32 1048575')
        on = self.label("ok")
        self.do(f"br i1 {condition}, label %{then}, label %{on}, !prof {weights}")
        self.start(on)

    @contextmanager
    def in_cold(self, label: str) -> Generator[None]:
        """Write the block `label` among the cold ones meanwhile."""
        lines, block = self.lines, self.block
        self.lines = self.cold
        self.start(label)
        try:
            yield
        finally:
            self.lines, self.block = lines, block

    # Integers, folded where both operands are known.

    def add(self, a: str, b: str, flags: str = " nsw") -> str:
        x, y = integer(a), integer(b)
        if x is not None and y is not None:
            return str(x + y)
        if x == 0:
            return b
        return a if y == 0 else self.value(f"add{flags} i64 {a}, {b}")

    def sub(self, a: str, b: str, flags: str = " nsw") -> str:
        x, y = integer(a), integer(b)
        if x is not None and y is not None:
            return str(x - y)
        return a if y == 0 else self.value(f"sub{flags} i64 {a}, {b}")

    def mul(self, a: str, b: str, flags: str = " nsw") -> str:
        x, y = integer(a), integer(b)
        if x is not None and y is not None:
            return str(x * y)
        if x == 0 or y == 0:
            return "0"
        if x == 1:
            return b
        return a if y == 1 else self.value(f"mul{flags} i64 {a}, {b}")

    def product(self, factors: Sequence[str]) -> str:
        total = "1"
        for f in factors:
            total = self.mul(total, f)
        return total

    def both(self, conditions: Sequence[str]) -> str:
        """The conjunction of i1 operands, "true" when there is none."""
        total = "true"
        for c in conditions:
            if c == "false" or total == "false":
                return "false"
            if c != "true":
                total = c if total == "true" else self.value(f"and i1 {total}, {c}")
        return total

    # Counted loops in the form that LLVM's vectorizer expects: guarded, tested at the end.

    def begin_loop(
        self,
        count: str,
        carried: Sequence[tuple[str, str]] = (),
        hint: str = "i",
        enter: Callable[[], None] | None = None,
        *,
        certain: bool = False,
    ) -> OpenLoop:
        """Open a loop that counts 0, 1, ... below `count`, carrying scalars given as (type, initial).

        `enter` writes what runs before the first iteration, if there is one; `certain`: there is.
        """
        known = integer(count)
        guarded = not certain and (known is None or known <= 0)
        before, body, exit_ = self.block, self.label("body"), self.label("exit")
        first = body if enter is None else self.label("enter")
        if guarded:
            runs = self.value(f"icmp sgt i64 {count}, 0")
            self.branch_if(runs, first, exit_)
        else:
            self.branch(first)
        if enter is not None:
            self.start(first)
            enter()
            self.branch(body)
        entered = before if enter is None else self.block
        self.start(body)
        counter = self.name(hint)
        values = tuple(self.name("acc") for _ in carried)
        phis = len(self.lines)
        self.lines.append("")
        self.depth += not is_few(count)
        return OpenLoop(
            counter,
            values,
            count,
            tuple(t for t, _ in carried),
            tuple(v for _, v in carried),
            before,
            entered,
            body,
            exit_,
            guarded,
            phis,
        )

    def end_loop(
        self,
        loop: OpenLoop,
        following: Sequence[str] = (),
        properties: Sequence[str] = (),
        leave: Callable[[], None] | None = None,
    ) -> tuple[str, ...]:
        """Close a loop; returns the carried scalars as they leave it.

        `leave` writes what runs after the last iteration, if there was one.
        """
        self.depth -= not is_few(loop.count)
        step = self.value(f"add nuw nsw i64 {loop.counter}, 1")
        again = self.value(f"icmp slt i64 {step}, {loop.count}")
        latch = self.block
        after = loop.exit if leave is None else self.label("leave")
        mark = f", !llvm.loop {self.metadata.distinct(*properties)}" if properties else ""
        self.do(f"br i1 {again}, label %{loop.body}, label %{after}{mark}")
        phis = [f"  {loop.counter} = phi i64 [ 0, %{loop.entered} ], [ {step}, %{latch} ]"]
        for name, type_, start, next_ in zip(
            loop.values, loop.types, loop.initial, following, strict=True
        ):
            phis.append(
                f"  {name} = phi {type_} [ {start}, %{loop.entered} ], [ {next_}, %{latch} ]"
            )
        self.lines[loop.phis] = "\n".join(phis)
        if leave is not None:
            self.start(after)
            leave()
            latch = self.block
            self.branch(loop.exit)
        self.start(loop.exit)
        if not loop.guarded:
            return tuple(following)
        return tuple(
            self.value(f"phi {t} [ {start}, %{loop.before} ], [ {next_}, %{latch} ]")
            for t, start, next_ in zip(loop.types, loop.initial, following, strict=True)
        )

    def text(self, end: str = "") -> str:
        """The whole body, entry block first; `end` follows the last line of the hot part."""
        last = [end] if end else []
        return "\n".join(["entry:", *self.entry, *self.lines, *last, *self.cold])
