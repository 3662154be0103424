"""Edits of a program whose gradient saves less: each is made, and its plan compared, before it is proposed.

An array of the function's own that is overwritten once may stay as it is, where the rest works on a copy::

    h[:] = h[::-1] * x             h_new = h.copy()
    return s + (h**3).sum()        h_new[:] = h[::-1] * x
                                   return s + (h_new**3).sum()

Both compute the same where no other name is given to the array's elements.
"""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
import types
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

from .derivative.receipt import Receipt
from .request import Request

LEAVING = (
    *(ast.Return, ast.Raise, ast.Yield, ast.YieldFrom, ast.Try, ast.Global, ast.Nonlocal),
    *(ast.FunctionDef, ast.Lambda, ast.Delete, ast.With),
)
COPYING = {"copy", "sum", "mean", "max", "min", "astype"}
"""Methods whose result shares no memory with the array."""
CREATING = {
    "copy",
    "zeros",
    "ones",
    "empty",
    "full",
    "zeros_like",
    "ones_like",
    "empty_like",
    "array",
}
"""Calls whose result is an array of its own."""

Explain = Callable[[Request], Receipt]


@dataclass(frozen=True)
class Rewrite:
    """A program that computes the same, and how it is made."""

    function: types.FunctionType
    edit: str


def with_ways_out(receipt: Receipt, request: Request, explain: Explain) -> Receipt:
    """The receipt, which proposes the edits that make it smaller."""
    found: dict[str, str] = {}
    for name in dict.fromkeys(s.name for s in receipt.saves):
        lines = [s.killed_by for s in receipt.saves if s.name == name and s.killed_by]
        if name.isidentifier():
            way_out = best_edit(receipt, explain, request, rewrites(request, name, lines))
            if way_out is not None:
                found[name] = way_out
    saves = tuple(replace(s, way_out=found.get(s.name)) for s in receipt.saves)
    return replace(receipt, saves=saves) if found else receipt


def best_edit(
    receipt: Receipt, explain: Explain, request: Request, edits: Iterator[Rewrite]
) -> str | None:
    """The edit that saves least, of those with which a call takes no more memory in all."""
    best: tuple[int, str] | None = None
    for one in edits:
        mine = receipt.saved_bytes
        try:
            other = explain(replace(request, function=one.function))
            theirs, smaller = other.saved_bytes, is_smaller(other, receipt)
        except Exception:  # what cannot be compiled, for whatever reason, is no way out
            continue
        finally:
            linecache.cache.pop(one.function.__code__.co_filename, None)
        if not smaller or mine is None or theirs is None:
            continue
        if theirs < (mine if best is None else best[0]):
            best = theirs, f"{one.edit}: saves {theirs:,} bytes instead of {mine:,}"
    return None if best is None else best[1]


def is_smaller(one: Receipt, other: Receipt) -> bool:
    """Whether a call takes no more memory, all in all."""
    sizes = [(r.saved_bytes, r.shadow_bytes, r.temporary_bytes) for r in (one, other)]
    totals = [sum(s for s in size if s is not None) for size in sizes]
    return not any(None in size for size in sizes) and totals[0] <= totals[1]


def rewrites(request: Request, name: str, lines: Sequence[int]) -> Iterator[Rewrite]:
    """The program where it works on a copy of an array from one of the lines on."""
    tree = definition_of(request.function)
    if tree is None or not has_own_memory(tree, name):
        return
    fresh = f"{name}_new"
    if any(isinstance(n, ast.Name) and n.id == fresh for n in ast.walk(tree)):
        return
    edited = [from_there_on(tree, name, fresh, line) for line in lines]
    for one in edited:
        made = None if one is None else compiled(request.function, one[0])
        if one is not None and made is not None:
            yield Rewrite(made, one[1])


Edited = tuple[ast.FunctionDef, str]


def from_there_on(tree: ast.FunctionDef, name: str, fresh: str, line: int) -> Edited | None:
    """The function with another array from the statement of a line on; None where the caller would see it."""
    at = [k for k, n in enumerate(tree.body) if n.lineno == line]
    if not at or binds(tree.body[at[0] :], name):
        return None
    edited = deepcopy(tree)
    before, store, later = edited.body[: at[0]], edited.body[at[0]], edited.body[at[0] + 1 :]
    match store:  # which may read the array that stays
        case ast.Assign(targets=[ast.Subscript(value=ast.Name() as target)]):
            pass
        case ast.AugAssign(target=ast.Name() | ast.Subscript(value=ast.Name()) as whole):
            target = whole.value if isinstance(whole, ast.Subscript) else whole
        case _:
            return None
    if not isinstance(target, ast.Name) or target.id != name:
        return None
    target.id = fresh
    copied = ast.parse(f"{fresh} = {name}.copy()").body
    later = [Renamed(name, fresh).visit(statement) for statement in later]
    edited.body = [*before, *copied, store, *later]
    return edited, f"line {line}: write to `{fresh} = {name}.copy()`, and use it from there on"


def definition_of(function: Any) -> ast.FunctionDef | None:
    """The syntax of a function, with the lines of its file."""
    try:
        source = textwrap.dedent(inspect.getsource(function))
        (tree,) = ast.parse(source).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return None
    if not isinstance(tree, ast.FunctionDef):
        return None
    ast.increment_lineno(tree, function.__code__.co_firstlineno - 1)
    return tree


def has_own_memory(tree: ast.FunctionDef, name: str) -> bool:
    """Whether the function made the array, and its elements have no other name in it."""
    if name in [a.arg for a in (*tree.args.posonlyargs, *tree.args.args, *tree.args.kwonlyargs)]:
        return False
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=targets, value=value):
                binds = any(isinstance(t, ast.Name) and t.id == name for t in targets)
                if may_share(value, name) or (binds and not is_new(value)):
                    return False
            case ast.AnnAssign(value=value) | ast.NamedExpr(value=value):
                if value is not None and may_share(value, name):
                    return False
            case ast.For(iter=value) | ast.comprehension(iter=value):
                if may_share(value, name):
                    return False
            case ast.Lambda() | ast.FunctionDef() if node is not tree:
                if any(isinstance(n, ast.Name) and n.id == name for n in ast.walk(node)):
                    return False
            case _:
                pass
    return True


def may_share(node: ast.expr, name: str) -> bool:
    """True where the value of an expression may be the array, or see its elements."""
    match node:
        case ast.Name(id=found):
            return found == name
        case ast.Subscript(value=base) | ast.Starred(value=base):
            return may_share(base, name)
        case ast.Attribute(value=base, attr=attribute):
            return attribute not in {*COPYING, "size", "shape", "ndim"} and may_share(base, name)
        case ast.Call(func=called, args=args, keywords=keywords):
            given = [*args, *(k.value for k in keywords)]
            return may_share(called, name) or any(may_share(a, name) for a in given)
        case ast.Tuple(elts=parts) | ast.List(elts=parts):
            return any(may_share(p, name) for p in parts)
        case ast.IfExp(body=one, orelse=other):
            return may_share(one, name) or may_share(other, name)
        case _:
            return False


def is_new(node: ast.expr) -> bool:
    """True for arithmetic, and for a call that makes an array."""
    if isinstance(node, ast.BinOp | ast.UnaryOp):
        return True
    return isinstance(node, ast.Call) and (
        isinstance(node.func, ast.Attribute) and node.func.attr in CREATING
    )


def binds(body: Sequence[ast.stmt], name: str) -> bool:
    """Whether statements bind the name anew, or may end before their end; updates in place do not."""
    nodes = [n for statement in body for n in ast.walk(statement)]
    ends = [n for n in nodes if isinstance(n, LEAVING) and n is not body[-1]]
    in_place = [n.target for n in nodes if isinstance(n, ast.AugAssign)]
    stored = [n for n in nodes if isinstance(n, ast.Name) and not isinstance(n.ctx, ast.Load)]
    return bool(ends) or any(n.id == name and n not in in_place for n in stored)


class Renamed(ast.NodeTransformer):
    """Another name in the place of one."""

    def __init__(self, name: str, fresh: str) -> None:
        self.name, self.fresh = name, fresh

    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name(self.fresh, node.ctx) if node.id == self.name else node


def compiled(function: Any, tree: ast.FunctionDef) -> types.FunctionType | None:
    """The function with another definition: its globals, its defaults, what it closes over."""
    tree.decorator_list = []
    code, free = function.__code__, function.__code__.co_freevars
    text = ast.unparse(ast.fix_missing_locations(tree))
    if free:
        inner = textwrap.indent(text, "    ")
        text = f"def around({', '.join(free)}):\n{inner}\n    return {tree.name}\n"
    file = f"<{code.co_filename}:{code.co_firstlineno}, rewritten>"
    linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
    made = next(code_objects(compile(text, file, "exec"), tree.name), None)
    if made is None or {*made.co_freevars} != {*free}:
        return None
    cells = dict(zip(free, function.__closure__ or (), strict=True))
    closure = tuple(cells[n] for n in made.co_freevars)
    result = types.FunctionType(
        made, function.__globals__, function.__name__, function.__defaults__, closure
    )
    result.__kwdefaults__ = function.__kwdefaults__
    result.__module__, result.__qualname__ = function.__module__, function.__qualname__
    return result


def code_objects(code: types.CodeType, name: str) -> Iterator[types.CodeType]:
    """The code objects of this name inside another."""
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            if constant.co_name == name:
                yield constant
            yield from code_objects(constant, name)
