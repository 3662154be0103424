"""A Python function's own source: its syntax tree, the spans of its nodes, its fingerprint.

The whole file is parsed and the function found in it by its code object's first line, so line and
column of every node are those of the file, decorators and indentation included, and lambdas are
found too.
"""

from __future__ import annotations

import ast
import hashlib
import linecache
from dataclasses import dataclass
from functools import lru_cache
from types import CodeType, FunctionType

from ...diagnostics import CompileError, Span, is_library
from ..emitter import span_of

FunctionNode = ast.FunctionDef | ast.Lambda


@dataclass(frozen=True)
class Source:
    """Where a function stands: its file, its qualified name, its syntax tree and its text."""

    file: str
    qualname: str
    node: FunctionNode
    text: str

    def span(self, node: ast.AST) -> Span:
        return span_of(node, self.file, 1)

    @property
    def fingerprint(self) -> tuple[str, str, str]:
        """File, qualified name, and the SHA-256 of the function's text, decorators included."""
        return self.file, self.qualname, hashlib.sha256(self.text.encode()).hexdigest()


def read(function: FunctionType) -> Source:
    """The source of a Python function; CompileError where it is nowhere to be read."""
    code = function.__code__
    linecache.checkcache(code.co_filename)
    lines = tuple(linecache.getlines(code.co_filename))
    if not lines and is_library(code.co_filename):  # a part of Python that is in the interpreter
        raise CompileError(None, f"{function.__qualname__} is not compiled")
    if not lines or code.co_filename == "<string>":  # exec's: the lines there are `python -c`'s
        raise CompileError(
            None,
            f"the source of {function.__qualname__} is not available ({code.co_filename})",
            "define it in a file or a notebook cell (or in the REPL of Python 3.13 or later), not by exec",
        )
    node = find(tree_of(lines), code)
    if node is None:
        at = Span(code.co_filename, code.co_firstlineno, 0, code.co_firstlineno, 0)
        raise CompileError(
            at,
            f"the source of {function.__qualname__} is not where it was when it was imported",
            "the file changed meanwhile: import it again",
        )
    text = "".join(lines[first_line(node) - 1 : node.end_lineno])
    return Source(code.co_filename, function.__qualname__, node, text)


@lru_cache(maxsize=32)
def tree_of(lines: tuple[str, ...]) -> ast.Module:
    tree = ast.parse("".join(lines))
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    for one in reversed(classes):  # inner ones first
        mangle(one)
    return tree


def mangle(owner: ast.ClassDef) -> None:
    """Write the private names of a class as Python knows them: `self.__x` is `self._Owner__x`."""
    for node in (inner for statement in owner.body for inner in ast.walk(statement)):
        if isinstance(node, ast.Global | ast.Nonlocal):
            node.names = [private(name, owner.name) for name in node.names]
        for field, value in ast.iter_fields(node):
            if isinstance(value, str) and not isinstance(node, ast.Constant | ast.keyword):
                setattr(node, field, private(value, owner.name))


def private(name: str, owner: str) -> str:
    is_private = name.startswith("__") and not name.endswith("__") and owner.strip("_")
    return f"_{owner.lstrip('_')}{name}" if is_private else name


def first_line(node: FunctionNode) -> int:
    """The line of the first decorator, as `co_firstlineno` counts."""
    decorators = node.decorator_list if isinstance(node, ast.FunctionDef) else []
    return min([node.lineno, *(d.lineno for d in decorators)])


def find(tree: ast.Module, code: CodeType) -> FunctionNode | None:
    """The definition or lambda that `code` was compiled from."""
    if code.co_name == "<lambda>":
        return find_lambda(tree, code)
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.FunctionDef)
            and node.name.endswith(code.co_name)  # `mangle` may have put the class before it
            and first_line(node) == code.co_firstlineno
        ):
            return node
    return None


def find_lambda(tree: ast.Module, code: CodeType) -> ast.Lambda | None:
    """The innermost lambda whose body all instructions of `code` come from: several share a line."""
    spans = [
        ((line, column), (end_line, end_column))
        for line, end_line, column, end_column in code.co_positions()
        if line is not None and end_line is not None and column is not None and end_column
    ]
    found: ast.Lambda | None = None
    for node in ast.walk(tree):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            body = node.body
            start = body.lineno, body.col_offset
            end = body.end_lineno or 0, body.end_col_offset or 0
            if all(start <= first and last <= end for first, last in spans):
                found = node  # `walk` goes from the outside in
    return found
