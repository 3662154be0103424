"""`try` statements that `break`, `continue` and `return` leave, as ordinary control flow.

What remains are two kinds of statements, and nothing in them leaves but by an exception: `ast.Try`
without `finally`, and `Guarded`, the `finally`. A statement that leaves goes behind them::

    try:                            try:
        return math.sqrt(x)             result$ = math.sqrt(x)
    except ValueError:              except ValueError:
        pass                            y = 0.0
    y = 0.0                         else:
    return y                            return result$
                                    return y

As in a loop (`exits`), a flag tells what follows whether it runs, where several paths go on to it.
A `finally` runs with the flags of what it follows put aside, as it may leave in its own way.
"""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .nodes import assign, flag, name, negated, when

RETURNED, RESULT = "returned$", "result$"


class Guarded(ast.stmt):
    """A `finally`: `finalbody` runs after `body`, whatever ended it.

    An exception of `body` goes on after it, unless the name `completes` then says that `finalbody` left.
    """

    _fields = ("body", "finalbody")
    body: list[ast.stmt]
    finalbody: list[ast.stmt]
    completes: str | None


@dataclass
class Region:
    """What `break`, `continue` and `return` leave: a loop, or (not `is_loop`) a `try` of a function."""

    left: str | None = None
    """The flag of the loop, where something leaves it."""
    is_loop: bool = True


class Tries(ABC):
    """Rewrites `try`."""

    returns: bool

    @abstractmethod
    def flag(self, stem: str) -> str:
        """A name for a flag."""

    @abstractmethod
    def block(self, statements: Sequence[ast.stmt], region: Region | None) -> list[ast.stmt]:
        """The statements, none of which leaves but through flags."""

    @abstractmethod
    def escapes(self, statements: Sequence[ast.stmt], region: Region | None) -> bool:
        """True where a statement leaves the region; of a function: returns."""

    def attempt(
        self, s: ast.Try, rest: Sequence[ast.stmt], region: Region | None
    ) -> list[ast.stmt]:
        """A `try` and what follows it."""
        if s.finalbody and s.handlers:
            inner = ast.copy_location(ast.Try(s.body, s.handlers, s.orelse, []), s)
            s = ast.copy_location(ast.Try([inner], [], [], s.finalbody), s)
        if s.finalbody:
            return self.guarded(s, rest, region)
        s = leaving_after(s, lambda body: self.escapes(body, region))
        arms = arms_of(s)
        if not self.escapes([s], region):
            made = [self.block(arm, region) for arm in arms]
            return [remade(s, self.block(s.body, region), made), *self.block(rest, region)]
        if not self.escapes(s.body, region):
            through = goes_through(s)
            if not rest or sum(through) <= 1:
                made = [
                    self.block([*arm, *rest] if t else arm, region)
                    for arm, t in zip(arms, through, strict=True)
                ]
                return [remade(s, self.block(s.body, region), made)]
        if region is None:
            return self.returning(s, rest)
        return self.staying(s, rest, region)

    def returning(self, s: ast.Try, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """A `try` of a function from which some paths return."""
        own = Region(is_loop=False)
        arms = [self.block(arm, own) for arm in arms_of(s)]
        if s.orelse and self.escapes(s.body, None):
            arms[0] = [when(negated(RETURNED, s), arms[0], s)]
        return [remade(s, self.block(s.body, own), arms), *self.returned(s, rest)]

    def returned(self, s: ast.stmt, rest: Sequence[ast.stmt]) -> list[ast.stmt]:
        """What follows a `try` that has returned, perhaps."""
        result = ast.copy_location(ast.Return(name(RESULT, s)), s)
        if tries_end(s):
            return [result]
        return [when(name(RETURNED, s), [result], s), *self.block(rest, None)]

    def staying(self, s: ast.Try, rest: Sequence[ast.stmt], region: Region) -> list[ast.stmt]:
        """A `try` of a loop: a flag says whether what follows it runs."""
        stays = self.flag("stays")
        through, arms, body = goes_through(s), arms_of(s), list(s.body)
        before = [flag(stays, False, s)]
        for k, arm in enumerate(arms):
            if through[k]:
                arms[k] = [*arm, flag(stays, True, s)]
        if self.escapes(body, region):
            completed = self.flag("completed")
            before.append(flag(completed, False, s))
            body.append(flag(completed, True, s))
            arms[0] = [when(name(completed, s), arms[0], s)]
        made = [self.block(arm, region) for arm in arms]
        after = [when(name(stays, rest[0]), self.block(rest, region), rest[0])] if rest else []
        return [*before, remade(s, self.block(body, region), made), *after]

    def guarded(
        self, s: ast.Try, rest: Sequence[ast.stmt], region: Region | None
    ) -> list[ast.stmt]:
        """A `finally` and what follows it."""
        own = Region(is_loop=False) if region is None else region
        left, leaves = self.escapes(s.body, region), self.escapes(s.finalbody, region)
        before, body, final = list[ast.stmt](), list(s.body), list(s.finalbody)
        asked = list[str]()
        if left and region is not None and rest:
            asked.append(self.flag("stays"))
            before.append(flag(asked[-1], False, s))
            body.append(flag(asked[-1], True, s))
        body = self.block(body, own)
        completes = None
        if leaves:
            completes = self.flag("completed")
            asked.append(completes)
            before.append(flag(completes, False, s))
            aside, again = self.put_aside(s, own) if left else ([], [])
            final = [*aside, *final, *again, flag(completes, True, s)]
        final = self.block(final, own)
        made = ast.copy_location(Guarded(body, final), s)  # pyright: ignore[reportCallIssue]
        made.completes = completes
        if region is None and (left or leaves):
            return [*before, made, *self.returned(s, rest)]
        if not asked or not rest:
            return [*before, made, *self.block(rest, region)]
        test: ast.expr = name(asked[0], rest[0])
        if len(asked) > 1:
            both: list[ast.expr] = [name(a, rest[0]) for a in asked]
            test = ast.copy_location(ast.BoolOp(ast.And(), both), rest[0])
        return [*before, made, when(test, self.block(rest, region), rest[0])]

    def put_aside(self, s: ast.Try, own: Region) -> tuple[list[ast.stmt], list[ast.stmt]]:
        """Flags that a `finally` finds set, put aside while it runs; set again where it completes."""
        aside, again = list[ast.stmt](), list[ast.stmt]()
        returns = any(isinstance(n, ast.Return) for n in inner(s.body))
        for each in ([RETURNED] if returns else []) + ([own.left] if own.left else []):
            kept = self.flag("kept")
            aside += [assign(kept, name(each, s), s), flag(each, False, s)]
            again.append(assign(each, name(kept, s), s))
        return aside, again


def leaving_after(s: ast.Try, escapes: Callable[[Sequence[ast.stmt]], bool]) -> ast.Try:
    """The `try` with what leaves at the end of its body, and nowhere else in it, in its `else`."""
    *body, last = s.body
    if escapes(body) or not isinstance(last, ast.Return | ast.Break | ast.Continue):
        return s
    leave = last
    if isinstance(last, ast.Return) and last.value is not None:
        body.append(assign(RESULT, last.value, last))
        leave = ast.copy_location(ast.Return(name(RESULT, last)), last)
    body = body or [ast.copy_location(ast.Pass(), last)]
    return ast.copy_location(ast.Try(body, s.handlers, [leave], []), s)


def arms_of(s: ast.Try) -> list[list[ast.stmt]]:
    """What runs after the body: the `else`, then the handlers."""
    return [list(s.orelse), *(list(h.body) for h in s.handlers)]


def remade(s: ast.Try, body: list[ast.stmt], arms: Sequence[list[ast.stmt]]) -> ast.stmt:
    handlers = [
        ast.copy_location(ast.ExceptHandler(h.type, h.name, arm or [ast.Pass()]), h)
        for h, arm in zip(s.handlers, arms[1:], strict=True)
    ]
    return ast.copy_location(ast.Try(body, handlers, list(arms[0]), []), s)


def goes_through(s: ast.Try) -> list[bool]:
    """Which of a `try`'s arms what follows it may run after."""
    return [
        not ends(s.body) and not ends(s.orelse),
        *(not ends(h.body) for h in s.handlers),
    ]


def tries_end(s: ast.stmt) -> bool:
    """True when nothing that follows a `try` runs."""
    match s:
        case ast.Try():
            return (bool(s.finalbody) and ends(s.finalbody)) or not any(goes_through(s))
        case Guarded():
            return ends(s.body) or ends(s.finalbody)
        case _:
            return False


def ends(statements: Sequence[ast.stmt]) -> bool:
    """True when every path through the statements leaves: nothing that follows them runs."""
    for s in statements:
        match s:
            case ast.Return() | ast.Raise() | ast.Break() | ast.Continue():
                return True
            case ast.If(_, body, orelse) if ends(body) and ends(orelse):
                return True
            case ast.Try() | Guarded() if tries_end(s):
                return True
            case _:
                pass
    return False


def inner(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """All statements within, those of nested functions apart."""
    found = list[ast.stmt]()
    for s in statements:
        found.append(s)
        if not isinstance(s, ast.FunctionDef):
            found += inner(children(s))
    return found


def children(s: ast.stmt) -> list[ast.stmt]:
    """The statements in a statement, those in the handlers of a `try` too."""
    nodes = [n for c in ast.iter_child_nodes(s) for n in nested(c)]
    return [n for n in nodes if isinstance(n, ast.stmt)]


def nested(node: ast.AST) -> list[ast.AST]:
    return list[ast.AST](node.body) if isinstance(node, ast.ExceptHandler) else [node]
