"""Ops in the words of the Python program: `*` of line 4, not `arith.mulf`; where they stand in the source.

An op knows where its expression starts; where that ends is looked up in the source, whose text is
parsed again. Where the source cannot be read the span is one column wide.
"""

from __future__ import annotations

import ast
import linecache
import re
from functools import lru_cache
from typing import TypeGuard
from unicodedata import normalize

from xdsl.dialects import memref, scf
from xdsl.ir import Operation

from ...dialects import ad, array, foreign
from ..diagnostics import Span, line_of
from ..names import as_written
from ..rules import ScalarRule, rule_of

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


def word_of(op: Operation) -> str:
    """The Python operator, function or keyword that `op` comes from."""
    if isinstance(op, array.LoopOp):
        return "for" if op.condition_block is None else "while"
    if isinstance(op, array.MapOp):
        inner = first_with_needs(op)
        return "assignment" if inner is None else word_of(inner)
    if isinstance(op, foreign.RuleCallOp):
        return as_written(op.primal.string_value().rpartition("_primal")[0])
    if isinstance(op, ad.DerivativeOp):
        return as_written(op.target.rpartition("_primal")[0])
    node = node_of(op)
    if isinstance(node, ast.BinOp | ast.AugAssign) and isinstance(node.op, ast.Pow):
        return "**"
    return WORDS.get(op.name) or op.name.partition(".")[2]


def line_number(op: Operation) -> int:
    """The line that an op came from; of a map, that of the arithmetic in it that needs values."""
    inner = first_with_needs(op) if isinstance(op, array.MapOp) else None
    at = line_of(inner or op) or line_of(op)
    return at[1] if at else 0


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


def text_of(op: Operation, longest: int = 40) -> str:
    """The expression that an op was made for, on one line; "" where it is long or not readable."""
    node = node_of(op)
    text = "" if node is None or not isinstance(node, ast.expr) else ast.unparse(node)
    return text if len(text) <= longest else ""


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
        if not fitting and isinstance(found[0], ast.stmt):
            fitting = [n for n in ast.walk(found[0]) if is_spelling(n, op)]
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


@lru_cache(maxsize=256)
def words_around(file: str, line: int) -> frozenset[str]:
    """The words of the outermost function around a line: other names are none of the program's."""
    text = "".join(linecache.getline(file, n) for n in function_lines(file, line))
    return frozenset(re.findall(r"\w+", normalize("NFKC", text)))


def function_lines(file: str, line: int) -> range:
    """The lines of the outermost function around a line; that line alone where there is none."""
    nodes = _nodes_by_start(file).values()
    for node in (n for found in nodes for n in found):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno is not None:
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first <= line <= node.end_lineno:
                return range(first, node.end_lineno + 1)
    return range(line, line + 1)
