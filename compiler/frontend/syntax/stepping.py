"""A generator's body as a function that runs it from one `yield` to the next.

    def pairs(x):                     def pairs(x):
        for v in x:                       state$ = -1
            yield v                       def resume$(sent$):
            s += v                            nonlocal state$, v, s, at$1
        yield s                               pc$, state$ = state$, 0
                                              if pc$ == -1:
                                                  at$1 = 0
                                                  pc$ = 2
                                              if pc$ == 1:                 behind the first `yield`
                                                  s += v
                                                  pc$ = 2
                                              if pc$ == 2:                 the head of the loop
                                                  if more(x, at$1):
                                                      v = item(x, at$1)
                                                      item$, state$, pc$ = v, 1, 0
                                                  else:
                                                      item$, state$, pc$ = s, 3, 0
                                              return item$
                                          return resume$

The body is split into blocks at its yields, and at what goes around them (`blocks`). What one `resume$` runs
behind another block stands behind it here: only blocks that reach themselves without a `yield` are in a loop.
What is done before the first item and nobody sees, is done when the generator is made. Else it begins in the
only state below 0, so that the ranges of ints say that it has started. Names that live across no `yield` are
`resume$`'s own, the others belong to the function around, as names that nested functions rebind do
(`nonlocals`). A generator that has raised, or has come to its end, is in state 0.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from .block_graph import Block, Branch, Jump, Yielded, constant, placed
from .blocks import Blocks
from .generator_loops import Owned, Place
from .liveness import Liveness, assigned, captured_in, reads
from .nodes import assign, name
from .source import Source

FIRST, OVER = -1, 0
"""The states before the first item and after the last."""
STATE, SENT, ITEM, RESUME, RETURNED, WHERE = (
    "state$", "sent$", "item$", "resume$", "returned$v", "pc$",
)  # fmt: skip


class Given(ast.expr):
    """The item of a `yield` that has been reached, at the end of `resume$`: None where there was none."""

    _fields = ("item",)
    item: ast.expr


@dataclass
class Stepped:
    """A generator function as one that makes `resume$`; of the names it keeps, those `bound` wherever
    they are read, and whether the items never end."""

    made: ast.FunctionDef
    bound: frozenset[str]
    endless: bool
    guarded: frozenset[int]
    """The states in which it is suspended within a `try` that must run when it is abandoned."""
    starts_at: int
    """The first state."""
    ignores_first: bool
    """That is also the state behind a `yield`."""
    targets: dict[tuple[int, int], str]
    """By the places of calls, the names that are bound to what they return."""


def stepped(
    own: ast.FunctionDef, source: Source, managers: Mapping[Place, str], *, direct: bool
) -> Stepped:
    """The function that makes the `resume$` of a generator function. With `direct`, what is run over is its
    parameter, asked each time; without, what `iter` makes of it at first."""
    blocks = Blocks(copy.deepcopy(own), source, managers, direct=direct)
    kept, bound = kept_names(blocks)
    statements = [*blocks.begun, *(s for b in blocks.all for s in b.body)]
    own_names = frozenset(blocks.parameters) | assigned(*statements)
    kept = kept & own_names - blocks.outer
    shared = ast.Nonlocal(sorted({STATE, RETURNED, *kept, *(blocks.outer - blocks.globals)}))
    emission = _Emission(blocks)
    body: list[ast.stmt] = [placed(shared, own)]
    if blocks.globals:
        body.append(placed(ast.Global(sorted(blocks.globals)), own))
    body += [assign(WHERE, name(STATE, own), own), assign(STATE, number(OVER, own), own)]
    body += blocks.stopping(emission.all())
    given = placed(Given(), own)
    given.item = name(ITEM, own)
    body.append(placed(ast.Return(given), own))
    resume = function(RESUME, [SENT], body, own)
    first = number(emission.numbers[blocks.first], own)
    start = [assign(STATE, first, own), assign(RETURNED, constant(None, own), own)]
    owned = placed(Owned(), own)
    owned.names = [placed(ast.Name(n, ast.Store()), own) for n in sorted(kept)]
    made = copy.copy(own)
    made.body = [owned, *start, *blocks.begun, resume, placed(ast.Return(name(RESUME, own)), own)]
    made.decorator_list = []
    endless = not any(b.end is None for b in blocks.all)
    numbers = emission.numbers
    waits = [b for b in blocks.all if isinstance(b.end, Yielded) and b.is_guarded]
    guarded = frozenset(numbers[n] for b in waits for n in b.following())
    starts_at = numbers[blocks.first]
    again = blocks.is_quiet_start and blocks.first.is_resumed
    return Stepped(made, bound, endless, guarded, starts_at, again, targets_of(blocks.all))


def targets_of(blocks: Sequence[Block]) -> dict[tuple[int, int], str]:
    return {
        (s.value.lineno, s.value.col_offset): s.targets[0].id
        for b in blocks
        for s in b.body
        if isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)
        if len(s.targets) == 1 and isinstance(s.targets[0], ast.Name)
    }


def kept_names(blocks: Blocks) -> tuple[frozenset[str], frozenset[str]]:
    """The names that live while the generator waits; of these the ones that are bound in every such place."""
    live = live_names(blocks)
    bound = bound_names(blocks)
    resumed = [b for b in blocks.all if b.is_resumed]
    captured = captured_in(s for b in blocks.all for s in b.body)
    kept = live[blocks.first] | captured
    kept = kept.union(*(live[b] for b in resumed))
    uncertain = frozenset(n for b in (blocks.first, *resumed) for n in live[b] - bound[b])
    return kept, kept - uncertain - captured


def live_names(blocks: Blocks) -> dict[Block, frozenset[str]]:
    """By block, the names that are read in it or behind it before they are bound."""
    live = {b: frozenset[str]() for b in blocks.all}
    changed = True
    while changed:
        changed = False
        for b in reversed(blocks.all):
            raised = frozenset[str]().union(*(live[h] for h in b.handlers))
            for wrapper in b.tries:
                raised |= reads(*wrapper.inlined()) | live_of(live, wrapper.after)
            after = frozenset[str]().union(*(live[n] for n in b.following())) | raised
            if isinstance(b.end, Branch):
                after |= reads(b.end.test)
            if isinstance(b.end, Yielded):
                after |= reads(b.end.value)
            found = Liveness().block(b.body, after, raised) | raised
            changed |= found != live[b]
            live[b] = found
    return live


def live_of(live: dict[Block, frozenset[str]], block: Block | None) -> frozenset[str]:
    return frozenset() if block is None else live[block]


def bound_names(blocks: Blocks) -> dict[Block, frozenset[str]]:
    """By block, the names that are bound on every way to it."""
    bound: dict[Block, frozenset[str] | None] = dict.fromkeys(blocks.all)
    bound[blocks.first] = frozenset(blocks.parameters) | certainly_bound(blocks.begun)
    changed = True
    while changed:
        changed = False
        for b in blocks.all:
            before = bound[b]
            if before is None:
                continue
            after = before | certainly_bound(b.body)
            ways = [(n, after) for n in b.following()]
            ways += [(h, before) for h in b.handlers]
            ways += [(w.after, before) for w in b.tries if w.after is not None]
            for n, found in ways:
                known = bound.get(n)
                now = found if known is None else known & found
                changed |= now != known
                bound[n] = now
    return {b: names or frozenset() for b, names in bound.items()}


def certainly_bound(statements: Sequence[ast.stmt]) -> frozenset[str]:
    """The names that running the statements to their end binds."""
    found = frozenset[str]()
    for s in statements:
        match s:
            case ast.Assign():
                found |= assigned(*s.targets)
            case ast.AnnAssign(ast.Name(bound), _, value) if value is not None:
                found |= {bound}
            case ast.AugAssign(ast.Name(bound)):
                found |= {bound}
            case ast.FunctionDef():
                found |= {s.name}
            case ast.If():
                found |= certainly_bound(s.body) & certainly_bound(s.orelse)
            case _:
                pass
    return found


class _Emission:
    """The blocks as statements: each behind those that lead to it, guarded by where one is to go on."""

    def __init__(self, blocks: Blocks) -> None:
        self.blocks = blocks
        self.numbers = {b: k for k, b in enumerate(blocks.all, 1)}
        if not blocks.is_quiet_start:
            self.numbers[blocks.first] = FIRST
        self.groups = groups(blocks.all)
        self.entries = [b for b in blocks.all if b.is_resumed or b is blocks.first]
        self.named = self.targets()

    def targets(self) -> set[Block]:
        """The blocks that are gone to by their number; any other has its place in the only one before it."""
        found, ways = set(self.entries), dict[Block, int]()
        for b in self.blocks.all:
            for n in b.ways():
                ways[n] = ways.get(n, 0) + 1
                if b.tries:
                    found.add(n)
            found.update(b.handlers, (w.after for w in b.tries if w.after is not None))
        found |= {b for b, count in ways.items() if count > 1}
        around = {b: group for group in self.groups for b in group}
        for b in self.blocks.all:
            found |= {n for n in b.ways() if around[n] is not around[b] and len(around[n]) > 1}
        for group in self.groups:
            if is_loop(group) and found.isdisjoint(group):
                found.add(group[0])
        return found

    def all(self) -> list[ast.stmt]:
        pending = {self.numbers[b] for b in self.entries} | {OVER}
        done = list[ast.stmt]()
        for group in self.groups:
            targets = [b for b in group if b in self.named]
            if is_loop(group):
                done.append(self.loop(group, targets))
                for b in targets:
                    pending |= self.leads_to(b)
                pending -= {self.numbers[b] for b in targets}
            elif targets:
                done += self.guarded(targets[0], pending)
        return done

    def guarded(self, b: Block, pending: set[int]) -> list[ast.stmt]:
        """A block, where one is to go on there; `pending` is where that may be, before and behind it."""
        here = self.numbers[b]
        body = self.statements(b)
        only = pending <= {here}
        pending.discard(here)
        pending |= self.leads_to(b)
        return body if only else [placed(ast.If(self.is_at(here, b.like), body, []), b.like)]

    def leads_to(self, b: Block) -> set[int]:
        """Where a block, and what has its place in it, goes on by number."""
        found = {OVER} if b.end is None or isinstance(b.end, Yielded) else set[int]()
        found |= {self.numbers[h] for h in b.handlers}
        found |= {self.numbers[w.after] for w in b.tries if w.after is not None}
        for n in b.ways():
            found |= {self.numbers[n]} if n in self.named else self.leads_to(n)
        return found

    def loop(self, group: Sequence[Block], targets: Sequence[Block]) -> ast.stmt:
        """Blocks that reach themselves without a `yield`."""
        like = targets[0].like
        tests = [self.is_at(self.numbers[b], like) for b in targets]
        test = tests[0] if len(tests) == 1 else placed(ast.BoolOp(ast.Or(), tests), like)
        body, pending = list[ast.stmt](), {self.numbers[b] for b in targets}
        for b in targets:
            body += self.guarded(b, pending)
        return placed(ast.While(test, body, []), like)

    def statements(self, b: Block) -> list[ast.stmt]:
        body = list(b.body)
        match b.end:
            case None:
                body.append(self.go(OVER, b.like))
            case Jump(to):
                body += self.goto(to)
            case Branch(test, then, otherwise):
                made = ast.If(test, self.goto(then), self.goto(otherwise))
                body.append(placed(made, test))
            case Yielded(value, then):
                body.append(assign(ITEM, value, b.like))
                body.append(assign(STATE, number(self.numbers[then], b.like), b.like))
                body.append(self.go(OVER, b.like))
        for wrapper in reversed(b.tries):
            body = [wrapper.around(body, lambda to: self.go(self.numbers[to], b.like))]
        return body

    def goto(self, to: Block) -> list[ast.stmt]:
        return [self.go(self.numbers[to], to.like)] if to in self.named else self.statements(to)

    def go(self, where: int, like: ast.AST) -> ast.stmt:
        return assign(WHERE, number(where, like), like)

    def is_at(self, where: int, like: ast.AST) -> ast.expr:
        return placed(ast.Compare(name(WHERE, like), [ast.Eq()], [number(where, like)]), like)


def groups(blocks: Sequence[Block]) -> list[list[Block]]:
    """The blocks that reach each other without a `yield`; each group before those that it leads to."""
    order, low = dict[Block, int](), dict[Block, int]()
    stack, found = list[Block](), list[list[Block]]()

    def visit(b: Block) -> None:
        order[b] = low[b] = len(order)
        stack.append(b)
        for n in sorted(b.ways() | b.exceptional(), key=blocks.index):
            if n not in order:
                visit(n)
                low[b] = min(low[b], low[n])
            elif n in stack:
                low[b] = min(low[b], order[n])
        if low[b] == order[b]:
            at = stack.index(b)
            group, stack[at:] = stack[at:], []
            found.append(sorted(group, key=blocks.index))

    for b in blocks:
        if b not in order:
            visit(b)
    return found[::-1]


def is_loop(group: Sequence[Block]) -> bool:
    return len(group) > 1 or group[0] in group[0].ways() | group[0].exceptional()


def number(value: int, like: ast.AST) -> ast.expr:
    return constant(value, like)


def function(
    text: str, parameters: Iterable[str], body: list[ast.stmt], like: ast.AST
) -> ast.FunctionDef:
    given = [placed(ast.arg(p), like) for p in parameters]
    made = ast.FunctionDef(text, ast.arguments([], given, None, [], [], None, []), body, [])
    vars(made)["type_params"] = []  # a field in Python 3.12 and later
    return placed(made, like)
