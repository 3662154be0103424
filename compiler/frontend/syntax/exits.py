"""`break`, `continue`, and `return` inside a loop, as ordinary control flow.

A statement that leaves sets a flag; what would follow it runs only where it did not; a loop that is
left goes on only while it was not::

    for i in range(n):              left$1 = False
        if x[i] < 0:                for i in range(n) [until left$1]:
            continue                    if x[i] < 0:
        if x[i] > limit:                    pass
            break                       else:
        s += x[i]                           if x[i] > limit:
    else:                                       left$1 = True
        s = 0.0                             else:
                                                s += x[i]
                                    if not left$1:
                                        s = 0.0

A `return` keeps its value in `result$`, says so in `returned$`, and leaves every loop around it.
`$` is in no name of Python's.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .nodes import assign, binds, name, negated, when
from .trying import RESULT, RETURNED, Region, Tries, children, ends, inner


class LeavableFor(ast.For):
    """A `for` loop that ends before an iteration that finds `until` true."""

    until: ast.Name


Loop = ast.For | ast.While


def structured(statements: Sequence[ast.stmt]) -> list[ast.stmt]:
    """The statements of a function, in which nothing leaves a loop but through its flag."""
    exits = _Exits()
    result = exits.block(statements, None)
    if exits.returns:
        result.insert(0, assign(RETURNED, ast.Constant(False), statements[0]))
    return result


class _Exits(Tries):
    def __init__(self) -> None:
        self.flags = 0
        self.returns = False

    def flag(self, stem: str) -> str:
        self.flags += 1
        return f"{stem}${self.flags}"

    def block(self, statements: Sequence[ast.stmt], region: Region | None) -> list[ast.stmt]:
        done = list[ast.stmt]()
        for k, s in enumerate(statements):
            rest = statements[k + 1 :]
            match s:
                case ast.For() | ast.While():
                    return [*done, *self.loop(s, rest, region)]
                case ast.If() if leaves(s, in_loop=region is not None):
                    return [*done, *self.branch(s, rest, region)]
                case ast.Try():
                    return [*done, *self.attempt(s, rest, region)]
                case ast.If():
                    arms = (self.block(arm, region) for arm in (s.body, s.orelse))
                    done.append(ast.copy_location(ast.If(s.test, *arms), s))
                case ast.Continue() if region is not None:
                    return done or [ast.copy_location(ast.Pass(), s)]
                case ast.Break() if region is not None:
                    return [*done, self.leave(s, region)]
                case ast.Return() if region is not None:
                    return [*done, *self.return_from(s, region)]
                case _:
                    done.append(s)
        return done

    def leave(self, s: ast.stmt, region: Region) -> ast.stmt:
        if region.left is None:
            region.left = self.flag("left")
        return assign(region.left, ast.Constant(True), s)

    def return_from(self, s: ast.Return, region: Region) -> list[ast.stmt]:
        self.returns = True
        value = ast.Constant(None) if s.value is None else s.value
        result = [assign(RESULT, value, s), assign(RETURNED, ast.Constant(True), s)]
        return [*result, self.leave(s, region)] if region.is_loop else result

    def escapes(self, statements: Sequence[ast.stmt], region: Region | None) -> bool:
        if region is None:
            return any(isinstance(n, ast.Return) for n in inner(statements))
        return any(leaves(s, in_loop=True) for s in statements)

    def branch(self, s: ast.If, rest: Sequence[ast.stmt], region: Region | None) -> list[ast.stmt]:
        """An `if` that may leave: what follows goes where nothing has left."""
        arms = s.body, s.orelse
        through = [not ends(arm) for arm in arms]
        if not rest or not all(through):
            made = (
                self.block([*arm, *rest] if t else arm, region)
                for arm, t in zip(arms, through, strict=True)
            )
            return [ast.copy_location(ast.If(s.test, *made), s)]
        # Both arms may go on, so what follows, which is there once, asks a flag.
        stays = self.flag("stays")
        going = [self.block([*arm, assign(stays, ast.Constant(True), s)], region) for arm in arms]
        return [
            assign(stays, ast.Constant(False), s),
            ast.copy_location(ast.If(s.test, *going), s),
            when(name(stays, rest[0]), self.block(rest, region), rest[0]),
        ]

    def loop(self, s: Loop, rest: Sequence[ast.stmt], region: Region | None) -> list[ast.stmt]:
        """A loop and what follows it, its `else` clause first."""
        if isinstance(s, ast.While) and binds(s.test) and not s.orelse:
            s = asked_inside(s)
        own = Region()
        body = self.block(s.body, own)
        if own.left is None:
            return [without_else(s, body), *self.block([*s.orelse, *rest], region)]
        after = list(rest)
        if any(isinstance(node, ast.Return) for node in inner(s.body)):
            returns = ast.copy_location(ast.Return(name(RESULT, s)), s)
            only = not breaks(s.body) and (ends(s.orelse) or never_ends(s))
            after = [returns] if only else [when(name(RETURNED, s), [returns], s), *after]
        if s.orelse:
            after = [when(negated(own.left, s), s.orelse, s.orelse[0]), *after]
        start = assign(own.left, ast.Constant(False), s)
        return [start, leavable(s, body, own.left), *self.block(after, region)]


def breaks(statements: Sequence[ast.stmt]) -> bool:
    """True where one of the statements leaves the loop around them by `break`."""
    return any(
        isinstance(s, ast.Break)
        or breaks(s.orelse if isinstance(s, ast.For | ast.While) else children(s))
        for s in statements
        if not isinstance(s, ast.FunctionDef)
    )


def never_ends(loop: Loop) -> bool:
    """True for `while True`: nothing follows it but what leaves it."""
    return (
        isinstance(loop, ast.While) and isinstance(t := loop.test, ast.Constant) and bool(t.value)
    )


def runs_once(loop: Loop) -> bool:
    """True where the syntax says that there is a first iteration: `while True`, left by a flag or not,
    `for k in range(3)`."""
    match loop.iter if isinstance(loop, ast.For) else loop.test:
        case ast.Call(ast.Name("range"), [ast.Constant(int(count))], []):
            return count > 0 and isinstance(loop, ast.For) and not isinstance(loop, LeavableFor)
        case ast.Constant(known):
            return isinstance(loop, ast.While) and bool(known)
        case ast.BoolOp(ast.And(), [ast.UnaryOp(ast.Not(), ast.Name(flag)), ast.Constant(known)]):
            return "$" in flag and bool(known)
        case _:
            return False


def asked_inside(s: ast.While) -> ast.While:
    """The loop whose body begins with its condition, and a `break`."""
    test = ast.copy_location(ast.UnaryOp(ast.Not(), s.test), s.test)
    stop = when(test, [ast.copy_location(ast.Break(), s.test)], s)
    always = ast.copy_location(ast.Constant(True), s.test)
    return ast.copy_location(ast.While(always, [stop, *s.body], []), s)


def without_else(s: Loop, body: list[ast.stmt]) -> ast.stmt:
    match s:
        case ast.For():
            return ast.copy_location(ast.For(s.target, s.iter, body, []), s)
        case ast.While():
            return ast.copy_location(ast.While(s.test, body, []), s)


def leavable(s: Loop, body: list[ast.stmt], left: str) -> ast.stmt:
    """The loop, ended by the flag `left`."""
    match s:
        case ast.For():
            made = LeavableFor(s.target, s.iter, body, [])
            made.until = name(left, s)
            return ast.copy_location(made, s)
        case ast.While():
            test = ast.BoolOp(ast.And(), [negated(left, s), s.test])
            return ast.copy_location(ast.While(ast.copy_location(test, s.test), body, []), s)


def leaves(statement: ast.stmt, *, in_loop: bool) -> bool:
    """True where the statement holds a `break`, `continue` or `return` of this region, or, within a
    loop, a loop that returns.

    A function's own returns are no concern here (`normalize`).
    """
    if in_loop and isinstance(statement, ast.Break | ast.Continue | ast.Return):
        return True
    if isinstance(statement, ast.For | ast.While):
        escaping = any(isinstance(n, ast.Return) for n in inner(statement.body))
        return escaping or any(leaves(c, in_loop=in_loop) for c in statement.orelse)
    if isinstance(statement, ast.If | ast.Try):
        return any(leaves(c, in_loop=in_loop) for c in children(statement))
    return False
