"""The blocks of a generator: statements that run one behind the other, and where they lead.

`while t: a; yield b; c` is

    1: Branch(t, 2, 4)       2: a, Yielded(b, 3)       3: c, Jump(1)       4: ...

A block of the body of a `try` has the handlers around it: an exception in it runs them, or goes to theirs.
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

NodeT = TypeVar("NodeT", bound=ast.AST)


@dataclass
class Jump:
    to: Block


@dataclass
class Branch:
    test: ast.expr
    then: Block
    otherwise: Block


@dataclass
class Yielded:
    value: ast.expr
    then: Block


@dataclass
class Handler:
    """An `except` clause: its statements, or the block that it goes to."""

    type: ast.expr | None
    name: str | None
    body: list[ast.stmt]
    entry: Block | None
    like: ast.AST


@dataclass
class Wrapper:
    """The handlers of a `try`; `after` is where they lead, None where they raise again."""

    handlers: list[Handler]
    after: Block | None

    def inlined(self) -> list[ast.stmt]:
        return [s for h in self.handlers for s in h.body]

    def around(self, body: list[ast.stmt], go: Callable[[Block], ast.stmt]) -> ast.stmt:
        made = list[ast.ExceptHandler]()
        for h in self.handlers:
            target = h.entry or self.after
            then = [*copy.deepcopy(h.body), *([] if target is None else [go(target)])]
            made.append(placed(ast.ExceptHandler(h.type, h.name, then), h.like))
        return placed(ast.Try(body, made, [], []), self.handlers[0].like)


@dataclass(eq=False)
class Block:
    like: ast.AST
    tries: tuple[Wrapper, ...] = ()
    body: list[ast.stmt] = field(default_factory=list[ast.stmt])
    end: Jump | Branch | Yielded | None = None
    """None where the generator ends."""
    is_resumed: bool = False
    number: int = field(default_factory=itertools.count().__next__)
    """In the order in which they are made."""

    @property
    def handlers(self) -> list[Block]:
        return [h.entry for w in self.tries for h in w.handlers if h.entry is not None]

    @property
    def is_guarded(self) -> bool:
        """True within handlers of GeneratorExit."""
        return any(catches_exit(h.type) for w in self.tries for h in w.handlers)

    def ways(self) -> set[Block]:
        """Where it goes on at once."""
        match self.end:
            case Jump(to):
                return {to}
            case Branch(_, then, otherwise):
                return {then, otherwise}
            case _:
                return set()

    def exceptional(self) -> set[Block]:
        """Where it goes on if it raises."""
        return {*self.handlers, *(w.after for w in self.tries if w.after is not None)}

    def following(self) -> set[Block]:
        return {self.end.then} if isinstance(self.end, Yielded) else self.ways()


def reachable(first: Block) -> list[Block]:
    """The blocks that are reached, those that only go on taken out."""
    found, pending = dict[Block, None](), [first]
    while pending:
        b = pending.pop()
        if b in found:
            continue
        found[b] = None
        match b.end:
            case Jump(to):
                b.end = Jump(beyond(to))
            case Branch(test, then, otherwise):
                b.end = Branch(test, beyond(then), beyond(otherwise))
            case Yielded(value, then):
                then = beyond(then)
                then.is_resumed = True
                b.end = Yielded(value, then)
            case None:
                pass
        pending += sorted(b.following() | b.exceptional(), key=lambda n: n.number)
    return sorted(found, key=place_of)


def place_of(b: Block) -> tuple[int, int, int]:
    return getattr(b.like, "lineno", 0), getattr(b.like, "col_offset", 0), b.number


def beyond(b: Block) -> Block:
    """The block that a block without statements leads to."""
    passed = set[Block]()
    while not b.body and isinstance(b.end, Jump) and b not in passed:
        passed.add(b)
        b = b.end.to
    return b


def catches_exit(caught: ast.expr | None) -> bool:
    if caught is None:
        return True
    words = {n.id for n in ast.walk(caught) if isinstance(n, ast.Name)}
    return not words.isdisjoint(("BaseException", "GeneratorExit"))


def constant(value: object, like: ast.AST) -> ast.expr:
    return placed(ast.Constant(value), like)  # pyright: ignore[reportArgumentType]


def placed(node: NodeT, like: ast.AST) -> NodeT:
    return ast.copy_location(node, like)
