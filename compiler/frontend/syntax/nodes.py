"""Nodes of Python's syntax tree, made for what a rewrite adds, placed in the source where `like` is."""

from __future__ import annotations

import ast


def name(text: str, like: ast.AST) -> ast.Name:
    return ast.copy_location(ast.Name(text, ast.Load()), like)


def negated(flag: str, like: ast.AST) -> ast.expr:
    return ast.copy_location(ast.UnaryOp(ast.Not(), name(flag, like)), like)


def assign(target: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    if not hasattr(value, "lineno"):
        ast.copy_location(value, like)
    stored = ast.copy_location(ast.Name(target, ast.Store()), like)
    return ast.copy_location(ast.Assign([stored], value), like)


def flag(target: str, value: bool, like: ast.stmt) -> ast.stmt:
    return assign(target, ast.Constant(value), like)


def when(test: ast.expr, body: list[ast.stmt], like: ast.stmt) -> ast.stmt:
    return ast.copy_location(ast.If(test, body or [ast.copy_location(ast.Pass(), like)], []), like)
