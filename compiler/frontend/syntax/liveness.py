"""Which names each statement may still read: backward liveness over the syntax tree.

What it decides: a name assigned in a branch or a loop needs a place that outlives it (a result of
`scf.if`, a cell, a carried memref) only when it is live after it, or around the loop's back-edge.
Everything else stays an SSA value of its block.

    for i in range(n):      # live around: s         live after: s
        t = x[i] * 2        # t is dead at the end of an iteration: no cell
        s = s + t
    return s
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from .comprehensions import own_names
from .exits import LeavableFor, runs_once
from .generator_loops import Owned
from .nodes import every_node
from .scopes import declared, parameters, rebound_inside
from .trying import Guarded

Names = frozenset[str]
NOTHING: Names = frozenset()


@dataclass
class Liveness:
    """The names live after each statement, and at the head of each loop's body."""

    after: dict[ast.stmt, Names] = field(default_factory=dict[ast.stmt, Names])
    head: dict[ast.stmt, Names] = field(default_factory=dict[ast.stmt, Names])
    raised: dict[ast.stmt, Names] = field(default_factory=dict[ast.stmt, Names])
    """What is live where an exception leaves the body of a `try`."""
    done: dict[ast.stmt, Names] = field(default_factory=dict[ast.stmt, Names])
    """What is live where nothing does, after the body."""
    rebound: Names = NOTHING
    """The names of this function that functions nested in it rebind."""
    _entering: dict[ast.stmt, Names] = field(default_factory=dict[ast.stmt, Names])

    @classmethod
    def of(cls, body: Sequence[ast.stmt]) -> Liveness:
        """Liveness in a function whose statements are `body`."""
        result = cls(rebound=rebound_inside(body))
        captured = captured_in(body)
        result.block(body, captured, captured)
        return result

    def block(self, statements: Sequence[ast.stmt], live: Names, always: Names) -> Names:
        """The names live before `statements`, given those live after. A local function may be
        called from anywhere, so the names that it captures are `always` live."""
        for statement in reversed(statements):
            live = self.statement(statement, live, always) | always
        return live

    def statement(self, s: ast.stmt, live: Names, always: Names) -> Names:
        self.after[s] = live
        match s:
            case ast.If():
                then = self.block(s.body, live, always)
                otherwise = self.block(s.orelse, live, always)
                return reads(s.test) | then | otherwise
            case ast.For():
                live = self.block(s.orelse, live, always)
                if isinstance(s, LeavableFor):
                    live |= reads(s.until)
                targets = assigned(s.target)
                self.head[s] = head = live | (self.entering(s, always) - targets)
                first = self.block(s.body, head, always) - targets
                return (first if runs_once(s) else head) | reads(s.iter)
            case ast.While():
                live = self.block(s.orelse, live, always) | reads(s.test)
                self.head[s] = head = live | self.entering(s, always)
                first = self.block(s.body, head, always)
                return first | reads(s.test) if runs_once(s) else head
            case ast.Try():
                self.done[s] = done = self.block(s.orelse, live | always, always)
                handlers = (self.handler(h, live | always, always) for h in s.handlers)
                self.raised[s] = raised = always.union(*handlers)
                return self.block(s.body, done | raised, always | raised)
            case Guarded():
                if s.completes is not None:
                    live |= {s.completes}
                self.done[s] = done = self.block(s.finalbody, live | always, always)
                self.raised[s] = raised = done
                if s.completes is None:
                    self.raised[s] = raised = self.block(s.finalbody, always, always)
                    self.block(s.finalbody, live | always, always)
                return self.block(s.body, done | raised, always | raised)
            case ast.Return():
                return always | (reads(s.value) if s.value else NOTHING)
            case ast.AugAssign():
                return live | reads(s)
            case Owned():
                return live
            case _:
                return (live - assigned(s)) | reads(s)

    def handler(self, h: ast.ExceptHandler, live: Names, always: Names) -> Names:
        live = self.block(h.body, live, always) - ({h.name} if h.name else NOTHING)
        return live | (reads(h.type) if h.type else NOTHING)

    def entering(self, loop: ast.For | ast.While, always: Names) -> Names:
        """The names that an iteration may read before it assigns them.

        What is live at the head is these and what is live after the loop, at once: a statement
        passes on what is live after it or does not, whatever else is live. Found once for a loop, so
        that a nest takes as many walks as it is deep, not two to that power.
        """
        if loop not in self._entering:
            self._entering[loop] = self.block(loop.body, NOTHING, always)
        return self._entering[loop]


def reads(*nodes: ast.AST) -> Names:
    """The names that evaluating `nodes` may read. `x += 1` reads x; a function what it captures."""
    return NOTHING.union(*map(read_by, nodes))


def read_by(node: ast.AST) -> Names:
    match node:
        case ast.FunctionDef(args=a) | ast.Lambda(args=a):
            defaults = [d for d in (*a.defaults, *a.kw_defaults) if d is not None]
            return captured_by(node) | reads(*defaults)
        case ast.Name(name, ast.Load()):
            return frozenset({name})
        case ast.ListComp() | ast.GeneratorExp() | ast.SetComp() | ast.DictComp():
            first = reads(node.generators[0].iter)
            return first | (reads(*ast.iter_child_nodes(node)) - own_names(node.generators))
        case ast.AugAssign(ast.Name(name)):
            return reads(node.op, node.value) | {name}
        case _:
            return reads(*ast.iter_child_nodes(node))


def captured_in(tops: Iterable[ast.AST]) -> Names:
    """The names that the functions defined in nodes may read, those of functions around them."""
    functions = (n for n in every_node(tops) if isinstance(n, ast.FunctionDef | ast.Lambda))
    return NOTHING.union(*map(captured_by, functions))


def captured_by(node: ast.FunctionDef | ast.Lambda) -> Names:
    """The names of enclosing functions that a local function may read: not its own."""
    own = parameters(node.args)
    if isinstance(node, ast.Lambda):
        return reads(node.body) - own - assigned(node.body)
    return (reads(*node.body) - own - bound_by(node.body)) | declared(node.body)


def bound_by(body: Sequence[ast.stmt]) -> Names:
    """The names that are a function's own because its body binds them."""
    return assigned(*body) - declared(body)


def assigned(*nodes: ast.AST) -> Names:
    """The names that executing `nodes` may bind, nested statements included."""
    names: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.FunctionDef):
            names.add(node.name)
            return
        if isinstance(node, ast.Lambda) or (isinstance(node, ast.AnnAssign) and node.value is None):
            return
        if isinstance(node, ast.comprehension):
            for part in (node.iter, *node.ifs):
                visit(part)
            return
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        if isinstance(node, ast.ExceptHandler) and node.name is not None:
            names.add(node.name)
        if isinstance(node, ast.alias):
            names.add(node.asname or node.name.partition(".")[0])
        for child in ast.iter_child_nodes(node):
            if child._fields:  # else it is an operator, or says how a name is used
                visit(child)

    for node in nodes:
        visit(node)
    return frozenset(names)
