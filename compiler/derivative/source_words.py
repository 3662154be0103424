"""Ops in the words of the Python program: `u ** 2`, not `arith.mulf`; where they stand in the source.

An op knows where its expression starts; where that ends is looked up in the source, whose text is
parsed again. Where the source cannot be read the span is one column wide.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Sequence
from functools import lru_cache
from pathlib import PurePath
from typing import TypeGuard

from xdsl.dialects import memref, scf
from xdsl.ir import Operation, SSAValue

from ...dialects import ad, array, foreign
from ..diagnostics import Span, line_of
from ..names import as_written
from ..rules import ScalarRule, rule_of
from ..rules.table import constant_float

WORDS: dict[str, str] = {
    "arith.mulf": "*",
    "arith.divf": "/",
    "arith.addf": "+",
    "arith.subf": "-",
    "arith.negf": "-",
    "arith.select": "where",
    "arith.cmpf": "comparison",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "array.matmul": "@",
    "math.powf": "**",
    "math.fpowi": "**",
    "math.absf": "abs",
    "memref.load": "subscript",
    "memref.store": "assignment",
    "scf.if": "if",
}
"""What an op is called where its name does not say it: `math.sqrt` is `sqrt`."""


OPERATORS: dict[str, tuple[type[ast.operator], ...]] = {
    "arith.mulf": (ast.Mult, ast.Pow),
    "arith.divf": (ast.Div, ast.Pow),
    "arith.addf": (ast.Add,),
    "arith.subf": (ast.Sub,),
    "array.matmul": (ast.MatMult,),
    "math.powf": (ast.Pow,),
    "math.fpowi": (ast.Pow,),
}
"""The operators that become an op: a small power is a product in the IR."""


def expression_of(op: Operation) -> str:
    """The source text that `op` comes from: its expression, its statement, the head of its loop or branch.

    On one line, shortened in the middle; the operation's word where the source cannot be read.
    """
    return source_text(op) or word_of(op)


def source_text(op: Operation) -> str:
    """The same, "" where the source cannot be read."""
    if isinstance(op, array.MapOp) and (inner := first_with_needs(op)) is not None:
        return source_text(inner)
    at, node = line_of(op), node_of(op)
    return "" if at is None or node is None else text_of_node(at[0], node)


def text_of_node(file: str, node: ast.expr | ast.stmt) -> str:
    """The text of a node as the program writes it, of a compound statement its head."""
    text = segment(linecache.getlines(file), node)
    body = getattr(node, "body", None)
    if isinstance(node, ast.stmt) and isinstance(body, list):
        text = text.partition("\n")[0].rstrip(" :")
    return shortened(" ".join(text.split()))


def segment(lines: Sequence[str], node: ast.expr | ast.stmt) -> str:
    """What of a file's lines a node is; as `ast.get_source_segment`, which splits the whole file first."""
    if node.end_lineno is None or node.end_col_offset is None or node.end_lineno > len(lines):
        return ""
    chosen = [line.encode() for line in lines[node.lineno - 1 : node.end_lineno]]
    chosen[-1] = chosen[-1][: node.end_col_offset]
    chosen[0] = chosen[0][node.col_offset :]
    return b"".join(chosen).decode()


def shortened(text: str, longest: int = 60) -> str:
    """A text that is too long without its middle."""
    if len(text) <= longest:
        return text
    kept = (longest - 3) // 2
    return f"{text[:kept].rstrip()}...{text[-kept:].lstrip()}"


def word_of(op: Operation) -> str:
    """The Python operator, function or keyword that `op` comes from."""
    if isinstance(op, array.LoopOp):
        return "for" if op.condition_block is None else "while"
    if isinstance(op, foreign.RuleCallOp):
        return as_written(op.primal.string_value().rpartition("_primal")[0])
    if isinstance(op, ad.DerivativeOp):
        return as_written(op.target.rpartition("_primal")[0])
    return WORDS.get(op.name) or op.name.partition(".")[2]


def place_of(op: Operation) -> tuple[str, int]:
    """The file and line that an op came from; of a map, those of the arithmetic in it that needs values."""
    inner = first_with_needs(op) if isinstance(op, array.MapOp) else None
    at = line_of(inner or op) or line_of(op)
    return at[:2] if at else ("", 0)


def line_number(op: Operation) -> int:
    """The line of that place."""
    return place_of(op)[1]


def line_told(place: tuple[str, int], file: str) -> str:
    """A line for readers, with its file where they would take it for one of `file`."""
    there, line = place
    return f"line {line}" if there in ("", file) else f"line {line} of {PurePath(there).name}"


def first_with_needs(op: array.MapOp) -> Operation | None:
    """The first op in a map's body whose adjoint reads a value."""
    for inner in op.body.block.ops:
        rule = rule_of(type(inner))
        if isinstance(rule, ScalarRule) and rule.reads_primal:
            return inner
    return None


def span_of(op: Operation) -> Span | None:
    """The stretch of source of an op; of a store, the target of its assignment."""
    if isinstance(op, array.MapOp) and (inner := first_with_needs(op)) is not None:
        return span_of(inner)
    return _span(op, node_of(op))


def store_span(op: Operation) -> Span | None:
    """The stretch of source that an overwriting op assigns to."""
    node = node_of(op)
    if isinstance(node, ast.Assign):
        node = node.targets[0]
    elif isinstance(node, ast.AugAssign):
        node = node.target
    return _span(op, node)


def _span(op: Operation, node: ast.expr | ast.stmt | None) -> Span | None:
    at = line_of(op)
    if at is None:
        return None
    file, line, column = at
    if node is None or node.end_lineno is None or node.end_col_offset is None:
        return Span(file, line, column - 1, line, column)
    if node.end_lineno != node.lineno:
        text = linecache.getline(file, node.lineno).rstrip("\n")
        return Span(file, node.lineno, node.col_offset, node.lineno, len(text.encode()))
    return Span(file, node.lineno, node.col_offset, node.lineno, node.end_col_offset)


def node_of(op: Operation) -> ast.expr | ast.stmt | None:
    """The syntax that an op was made for: of all that starts where it does, what fits it best.

    Arithmetic of a whole-array statement is located at the statement; it is looked for inside.
    """
    at = line_of(op)
    if at is None:
        return None
    found = _nodes_by_start(at[0]).get((at[1], at[2] - 1), ())
    if not found:
        return None
    if isinstance(op, memref.StoreOp | array.MapOp | array.LoopOp | scf.IfOp):
        fitting = [n for n in found if isinstance(n, ast.stmt)]
    elif isinstance(op, memref.LoadOp):
        fitting = [n for n in found if isinstance(n, ast.Subscript)]
    else:
        fitting = [n for n in found if is_spelling(n, op)]
        if not fitting and not hasattr(found[0], "body"):
            fitting = [n for n in ast.walk(found[0]) if is_spelling(n, op)]
        fitting.sort(key=lambda n: -likeness(n, op))
    return fitting[0] if fitting else found[0]


def is_spelling(node: ast.AST, op: Operation) -> TypeGuard[ast.expr | ast.stmt]:
    """True when `node` is the operator or the call that `op` computes."""
    match node:
        case ast.BinOp() | ast.AugAssign():
            return isinstance(node.op, OPERATORS.get(op.name, ()))
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == WORDS.get(op.name, op.name.partition(".")[2])
        case _:
            return False


def likeness(node: ast.AST, op: Operation) -> int:
    """How many operands of `op` look like those of `node`, whose operator it is."""
    match node:
        case ast.BinOp(op=ast.Pow()) if op.name in ("arith.mulf", "arith.divf"):
            operands = [node.left] * 2  # a small power is a product
        case ast.BinOp():
            operands = [node.left, node.right]
        case ast.AugAssign():
            operands = [node.target, node.value]
        case ast.Call():
            operands = node.args
        case _:
            operands = []
    return sum(is_like(n, value) for n, value in zip(operands, op.operands, strict=False))


def is_like(node: ast.expr, value: SSAValue) -> bool:
    """True when the value may be what `node` is: a number, an array of that name, an operation."""
    match node:
        case ast.Constant(value=int() | float() as number):
            return constant_float(value) == number
        case ast.BinOp() | ast.Call():
            return isinstance(value.owner, Operation) and is_spelling(node, value.owner)
        case ast.Subscript(value=base) | ast.Attribute(value=base):
            return is_like(base, value)
        case ast.Name(id=name):
            return name == as_written(value.name_hint or "")
        case _:
            return False


@lru_cache(maxsize=16)
def _parsed(file: str, text: str) -> dict[tuple[int, int], tuple[ast.expr | ast.stmt, ...]]:
    try:
        tree = ast.parse(text)
    except SyntaxError:
        return {}
    starts: dict[tuple[int, int], tuple[ast.expr | ast.stmt, ...]] = {}
    for node in ast.walk(tree):  # outermost first
        if isinstance(node, (ast.expr, ast.stmt)):
            start = (node.lineno, node.col_offset)
            starts[start] = (*starts.get(start, ()), node)
    return starts


def _nodes_by_start(file: str) -> dict[tuple[int, int], tuple[ast.expr | ast.stmt, ...]]:
    return _parsed(file, "".join(linecache.getlines(file)))


def is_program_s(name: str, file: str, line: int) -> bool:
    """Whether the outermost function around a line calls something so: `a.b` may be of a call of `a`."""
    names, called = names_around(file, line)
    owner, dot, _ = name.partition(".")
    return owner in names or (bool(dot) and owner in called)


@lru_cache(maxsize=256)
def names_around(file: str, line: int) -> tuple[frozenset[str], frozenset[str]]:
    """The names of the outermost function around a line, and those behind dots."""
    names, dotted = set[str](), set[str]()
    lines = function_lines(file, line)
    for (first, _), nodes in _nodes_by_start(file).items():
        for node in nodes if first in lines else ():
            match node:
                case ast.Name(id=name):
                    names.add(name)
                case ast.Attribute(attr=name):
                    dotted.add(name)
                case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                    given = node.args
                    every = (
                        *given.posonlyargs,
                        *given.args,
                        *given.kwonlyargs,
                        given.vararg,
                        given.kwarg,
                    )
                    names.update(a.arg for a in every if a is not None)
                case _:
                    pass
    return frozenset(names), frozenset(dotted)


def function_lines(file: str, line: int) -> range:
    """The lines of the outermost function around a line; that line alone where there is none."""
    nodes = _nodes_by_start(file).values()
    for node in (n for found in nodes for n in found):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= line <= node.end_lineno:
                return range(first, node.end_lineno + 1)
    return range(line, line + 1)
