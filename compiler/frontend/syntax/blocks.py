"""The body of a generator, split where it yields (`block_graph`).

Statements without a `yield` (loops, branches, `try`) stay whole, unless they leave what is split around them.
A block of the body of a `try` has the handlers around it: an exception in it runs them, or goes to their
block. A `finally` is written out on each way that leaves it. What a `for` with a `yield` in it runs over is
asked for its items one by one (`Intrinsic.MORE`): a place that is counted up, or a generator.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ...diagnostics import CompileError
from . import generator_loops, managers
from .block_graph import (
    Block,
    Branch,
    Handler,
    Jump,
    Wrapper,
    Yielded,
    beyond,
    constant,
    placed,
    reachable,
)
from .comprehensions import Intrinsic, stops
from .exits import leaves
from .liveness import assigned
from .matching import plain
from .nodes import assign, name
from .scopes import declared, parameters
from .source import Source
from .trying import inner


@dataclass
class Loop:
    """A loop that is split: where `continue` and `break` go, and how many `try` are around it."""

    again: Block
    behind: Block
    depth: int


@dataclass
class Final:
    """A `finally` that is left on the way out."""

    body: list[ast.stmt]
    tries: tuple[Wrapper, ...]


class Blocks:
    """A generator function as blocks."""

    def __init__(
        self,
        own: ast.FunctionDef,
        source: Source,
        contexts: Mapping[generator_loops.Place, str],
        *,
        direct: bool,
    ) -> None:
        self.source, self.direct = source, direct
        body = plain(managers.rewritten(own.body, source.file, contexts), source)
        if sum(map(count_yields, body)) < sum(map(count_yields, own.body)):
            raise self.refusal(
                own, "this generator yields within `with` over what `contextmanager` made",
                "loop over it to its end, or use a class with `__enter__` and `__exit__`",
            )  # fmt: skip
        self.parameters = parameters(own.args)
        nonlocals = declared(body, ast.Nonlocal)
        self.globals = declared(body, ast.Global)
        self.outer = nonlocals | self.globals
        self.names = assigned(*body) | self.parameters
        self.rebound = assigned(*body)
        self.made, self.tries, self.finals = 0, tuple[Wrapper, ...](), list[Final]()
        self.loops = list[Loop]()
        self.raises_stop = any(map(stops, body))
        self.first = Block(own)
        self.now: Block | None = self.first
        self.statements([s for s in body if not isinstance(s, ast.Nonlocal | ast.Global)])
        self.begun = self.at_once()
        self.all = reachable(self.first)

    def at_once(self) -> list[ast.stmt]:
        """The first statements, where they may run when the generator is made: nobody sees that they do.
        What they lead to is then the first block, as another `yield` may lead there, too."""
        first, moved = self.first, list[ast.stmt]()
        while first.body and is_quiet(first.body[0], self.parameters, self.outer):
            moved.append(first.body.pop(0))
        if not first.body and isinstance(first.end, Jump) and (to := beyond(first)) is not first:
            self.first = to
        self.is_quiet_start = self.first is not first
        return moved

    # Blocks

    def block(self, like: ast.AST) -> Block:
        return Block(like, self.tries)

    def fresh(self, stem: str) -> str:
        self.made += 1
        return f"{stem}${self.made}$"

    def end(self, how: Jump | Branch | Yielded | None, then: Block | None) -> None:
        """The block ends; what follows goes into `then`."""
        if self.now is not None:
            self.now.end = how
        self.now = then

    def add(self, s: ast.stmt) -> None:
        if self.now is not None:
            self.now.body.append(s)

    def enter(self, b: Block) -> None:
        self.end(Jump(b), b)

    # Statements

    def statements(self, body: Sequence[ast.stmt]) -> None:
        for s in body:
            if self.now is None:
                return
            self.statement(s)

    def statement(self, s: ast.stmt) -> None:
        match s:
            case ast.If() if self.is_split(s):
                self.branch(s)
            case ast.While() if self.is_split(s):
                self.while_loop(s)
            case ast.For() if self.is_split(s):
                self.for_loop(s)
            case ast.Try() if self.is_split(s):
                self.attempt(s)
            case ast.Return():
                if s.value is not None:
                    value = self.expression(s.value)
                    self.add(assign("returned$v", value, s))
                self.leave(0, None)
            case ast.Break():
                self.leave(self.loops[-1].depth, self.loops[-1].behind)
            case ast.Continue():
                self.leave(self.loops[-1].depth, self.loops[-1].again)
            case ast.Expr(ast.Yield() | ast.YieldFrom()):
                self.expression(s.value, wanted=False)
            case _ if yields(s):
                self.add(self.without_yields(s))
            case _:
                self.add(s)

    def is_split(self, s: ast.stmt) -> bool:
        """True where a statement yields, returns, or leaves the loop around it, which is split."""
        if yields(s) or any(isinstance(n, ast.Return) for n in inner([s])):
            return True
        return bool(self.loops) and leaves(s, in_loop=True)

    def leave(self, depth: int, to: Block | None) -> None:
        """Out of the `finally` clauses within which only `depth` others are, to a block; None: the end."""
        finals, tries, loops = self.finals, self.tries, self.loops
        for k in range(len(finals) - 1, depth - 1, -1):
            final = finals[k]
            self.finals, self.tries, self.loops = finals[:k], final.tries, []
            b = self.block(final.body[0])
            self.enter(b)
            self.statements(copy.deepcopy(final.body))
        self.finals, self.tries, self.loops = finals, tries, loops
        self.end(None if to is None else Jump(to), None)

    def branch(self, s: ast.If) -> None:
        test = self.expression(s.test)
        behind = self.block(s)
        then, otherwise = self.block(s.body[0]), self.block((s.orelse or [s])[0])
        self.end(Branch(test, then, otherwise), then)
        self.statements(s.body)
        self.end(Jump(behind), otherwise)
        self.statements(s.orelse)
        self.end(Jump(behind), behind)

    def while_loop(self, s: ast.While) -> None:
        head, body, otherwise, behind = (self.block(s) for _ in range(4))
        self.enter(head)
        test = self.expression(s.test)
        always = isinstance(test, ast.Constant) and bool(test.value)
        self.end(Jump(body) if always else Branch(test, body, otherwise), body)
        self.looped(s, head, otherwise, behind)

    def looped(self, s: ast.While | ast.For, again: Block, otherwise: Block, behind: Block) -> None:
        """The body of a loop, whose first block is there, and its `else`."""
        self.loops.append(Loop(again, behind, len(self.finals)))
        self.statements(s.body)
        self.loops.pop()
        self.end(Jump(again), otherwise)
        self.statements(s.orelse)
        self.end(Jump(behind), behind)

    def for_loop(self, s: ast.For) -> None:
        iter_ = self.expression(s.iter)
        over, at = self.run_over(iter_), self.fresh("at")
        self.add(assign(at, constant(0, s.iter), s.iter))
        head, body, otherwise, behind = (self.block(s) for _ in range(4))
        self.enter(head)
        item = self.asked(over, at, None, head, body, otherwise, s.iter)
        self.add(placed(ast.Assign([s.target], item), s.target))
        self.looped(s, head, otherwise, behind)

    def run_over(self, node: ast.expr) -> ast.expr:
        """What is run over, kept under a name where it may be another later."""
        if self.is_constant(node):
            return node
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Name)
            and node.func.id == "range"
            and all(map(self.is_constant, node.args))
        ):
            return node
        over = self.fresh("over")
        self.add(assign(over, intrinsic(Intrinsic.PLACES, [node], node), node))
        return name(over, node)

    def is_constant(self, node: ast.expr) -> bool:
        """True for what is the same whenever it is evaluated."""
        if isinstance(node, ast.Name):
            return self.direct and node.id in self.parameters - self.rebound
        return isinstance(node, ast.Constant)

    def asked(
        self,
        over: ast.expr,
        at: str,
        sent: ast.expr | None,
        head: Block,
        body: Block,
        otherwise: Block,
        like: ast.expr,
    ) -> ast.expr:
        """At a loop's head: whether there is another item. In its body: which."""
        given, there = self.fresh("given"), self.fresh("there")
        asked = [copy.deepcopy(over), name(at, like), *([] if sent is None else [sent])]
        self.add(assign(there, intrinsic(Intrinsic.MORE, asked, like), like))
        self.add(assign(given, intrinsic(Intrinsic.GIVEN, [copy.deepcopy(over)], like), like))
        self.end(Branch(name(there, like), body, otherwise), body)
        item = [copy.deepcopy(over), name(at, like), name(given, like)]
        self.add(assign(given, intrinsic(Intrinsic.ITEM, item, like), like))
        self.add(assign(at, intrinsic(Intrinsic.BEHIND, [name(at, like)], like), like))
        return name(given, like)

    # try

    def attempt(self, s: ast.Try) -> None:
        outer, finals = self.tries, self.finals
        behind = self.block(s)
        if s.finalbody:
            if any(map(yields, s.finalbody)):
                raise self.refusal(
                    s.finalbody[0],
                    "`yield` in a `finally` is compiled only where the generator is consumed by one loop",
                    "yield behind the `try`",
                )
            again = [*s.finalbody, placed(ast.Raise(None, None), s)]
            if any(leaves(n, in_loop=True) for n in s.finalbody):
                raise self.refusal(
                    s.finalbody[0], "this generator leaves the `finally` around a `yield`",
                    "leave behind the `try`",
                )  # fmt: skip
            handler = Handler(None, None, again, None, s)
            self.finals = [*finals, Final(s.finalbody, outer)]
            self.tries = (*outer, Wrapper([handler], None))
        guarded = self.tries
        entries = [(h, self.block(h.body[0]) if self.is_apart(h) else None) for h in s.handlers]
        after = self.block(s)
        if s.handlers:
            handlers = [
                Handler(h.type, h.name, [] if entry else h.body, entry, h) for h, entry in entries
            ]
            self.tries = (*guarded, Wrapper(handlers, after))
        self.enter(self.block(s))
        self.statements(s.body)
        self.tries = guarded
        self.enter(self.block(s))
        self.statements(s.orelse)
        self.end(Jump(after), None)
        for h, entry in entries:
            if entry is not None:
                self.now = entry
                self.statements(h.body)
                self.end(Jump(after), None)
        self.now = after
        self.tries, self.finals = outer, finals
        if s.finalbody:
            final = self.block(s.finalbody[0])
            self.enter(final)
            self.statements(copy.deepcopy(s.finalbody))
        self.enter(behind)

    def is_apart(self, h: ast.ExceptHandler) -> bool:
        """True for a handler that yields or leaves."""
        leaving = any(leaves(s, in_loop=True) for s in h.body)
        if not leaving and not any(map(yields, h.body)):
            return False
        again = any(isinstance(n, ast.Raise) and n.exc is None for n in inner(h.body))
        if again or (h.name is not None and mentions(h.name, h.body)):
            raise self.refusal(
                h, "a handler that yields, or that leaves a loop with `yield`, looks at its exception",
                "keep what it says in a variable: not compiled",
            )  # fmt: skip
        return True

    def stopping(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """The statements, where they may raise StopIteration: CPython makes RuntimeError of it."""
        if not self.raises_stop:
            return body
        like = self.first.like
        text = constant("generator raised StopIteration", like)
        error = placed(ast.Call(constant(RuntimeError, like), [text], []), like)
        stop = placed(ast.Raise(error, None), like)
        handler = placed(ast.ExceptHandler(constant(StopIteration, like), None, [stop]), like)
        return [placed(ast.Try(body, [handler], [], []), like)]

    def refusal(self, node: ast.AST, message: str, way_out: str) -> CompileError:
        return CompileError(self.source.span(node), message, way_out)

    # Expressions

    def without_yields(self, s: ast.stmt) -> ast.stmt:
        """A simple statement whose expressions have been evaluated up to their last `yield`."""
        match s:
            case ast.AugAssign(ast.Name()) | ast.Assign() | ast.AnnAssign() | ast.Expr():
                if not any(map(yields, getattr(s, "targets", []))):
                    made = copy.copy(s)
                    made.value = self.expression(s.value)  # pyright: ignore
                    return made
            case _:
                pass
        raise self.refusal(s, "`yield` in this statement is not compiled", "x = yield ...")

    def expression(self, node: ast.expr, *, wanted: bool = True) -> ast.expr:
        """An expression, evaluated up to its last `yield`."""
        if not yields(node):
            return node
        match node:
            case ast.Yield(value):
                given = constant(None, node) if value is None else self.expression(value)
                self.waits(given, node)
                return self.kept(name("sent$", node)) if wanted else node
            case ast.YieldFrom(value):
                return self.delegated(value, node)
            case ast.BoolOp() | ast.IfExp() | ast.Lambda():
                raise self.refusal(
                    node, "a `yield` that is evaluated on a condition is not compiled",
                    "write `if`",
                )  # fmt: skip
            case _:
                return self.parts(node)

    def parts(self, node: ast.expr) -> ast.expr:
        """An expression some of whose parts yield: what is evaluated before them is kept."""
        made = copy.copy(node)
        flat = [
            (f, k, part)
            for f, value in ast.iter_fields(node)
            for k, part in enumerate(value if isinstance(value, list) else [value])
            if isinstance(part, ast.expr | ast.keyword)
        ]
        last = max(k for k, (_, _, part) in enumerate(flat) if yields(part))
        for f, value in ast.iter_fields(node):
            if isinstance(value, list):
                setattr(made, f, list(value))
        for n, (f, k, part) in enumerate(flat[: last + 1]):
            whole = part.value if isinstance(part, ast.keyword | ast.Starred) else part
            if yields(whole):
                now = self.expression(whole)
            elif f == "func" and isinstance(whole, ast.Attribute):
                now = copy.copy(whole)
                now.value = self.before(whole.value)
            else:
                now = self.before(whole)
            if n < last and yields(whole):
                now = self.before(now)
            if whole is not part:
                again = copy.copy(part)
                again.value = now  # pyright: ignore
                now = again
            held = getattr(made, f)
            if isinstance(held, list):
                held[k] = now
            else:
                setattr(made, f, now)
        return made

    def before(self, node: ast.expr) -> ast.expr:
        """What is evaluated before a `yield`."""
        own = isinstance(node, ast.Name) and node.id in self.names - self.outer
        return node if own or isinstance(node, ast.Constant) else self.kept(node)

    def kept(self, node: ast.expr) -> ast.expr:
        text = self.fresh("kept")
        self.add(assign(text, node, node))
        return name(text, node)

    def waits(self, value: ast.expr, like: ast.AST) -> None:
        behind = self.block(like)
        behind.is_resumed = True
        self.end(Yielded(value, behind), behind)

    def delegated(self, value: ast.expr, like: ast.YieldFrom) -> ast.expr:
        """`yield from value`: what is sent goes on to it."""
        iter_ = self.expression(value)
        over, at = self.run_over(iter_), self.fresh("at")
        self.add(assign(at, constant(0, like), like))
        head, body, otherwise = (self.block(like) for _ in range(3))
        again, waiting = self.block(like), self.block(like)
        item = self.fresh("item")
        self.enter(head)
        found = self.asked(over, at, None, head, body, otherwise, like)
        self.add(assign(item, found, like))
        self.enter(waiting)
        self.waits(name(item, like), like)
        self.enter(again)
        following = self.block(like)
        found = self.asked(over, at, name("sent$", like), again, following, otherwise, like)
        self.add(assign(item, found, like))
        self.end(Jump(waiting), otherwise)
        return intrinsic(Intrinsic.RETURNED, [copy.deepcopy(over)], like)


def yields(node: ast.AST) -> bool:
    """True where evaluating yields, functions that are defined there apart."""
    if isinstance(node, ast.Yield | ast.YieldFrom):
        return True
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return False
    return any(map(yields, ast.iter_child_nodes(node)))


def count_yields(node: ast.AST) -> int:
    if isinstance(node, ast.FunctionDef | ast.Lambda):
        return 0
    own = isinstance(node, ast.Yield | ast.YieldFrom)
    return own + sum(map(count_yields, ast.iter_child_nodes(node)))


def is_quiet(s: ast.stmt, given: frozenset[str], outer: frozenset[str]) -> bool:
    """True for a statement that only binds names to constants and to parameters."""

    def is_plain(node: ast.expr) -> bool:
        match node:
            case ast.Tuple(elts):
                return all(map(is_plain, elts))
            case ast.UnaryOp(ast.USub(), ast.Constant()) | ast.Constant():
                return True
            case ast.Name(text):
                return text in given
            case _:
                return False

    match s:
        case ast.Assign(targets, value):
            names = [n for t in targets for n in ast.walk(t) if isinstance(n, ast.expr)]
            bound = {n.id for n in names if isinstance(n, ast.Name)}
            only = all(isinstance(n, ast.Name | ast.Tuple) for n in names)
            return only and bound.isdisjoint(given | outer) and is_plain(value)
        case _:
            return False


def mentions(text: str, body: Sequence[ast.stmt]) -> bool:
    return any(isinstance(n, ast.Name) and n.id == text for s in body for n in ast.walk(s))


def intrinsic(which: Intrinsic, args: Sequence[ast.expr], like: ast.AST) -> ast.expr:
    return placed(ast.Call(constant(which, like), list(args), []), like)
