"""`import` inside a function: the module is imported while compiling, its names are names from outside."""

from __future__ import annotations

import ast
import importlib
from types import ModuleType
from typing import TYPE_CHECKING

from .bindings import nonlocals
from .values import Static, Value

if TYPE_CHECKING:
    from .statements import Statements


def run(lowering: Statements, s: ast.Import | ast.ImportFrom) -> None:
    """Bind what the statement imports."""
    for alias in s.names:
        if isinstance(s, ast.Import):
            module = found(lowering, s, alias.name, 0)
            first = alias.name.partition(".")[0]
            value: Value = Static(module if alias.asname else importlib.import_module(first))
            nonlocals.bind(lowering, alias.asname or first, value)
            continue
        if alias.name == "*":
            raise lowering.refusal(s, "`from m import *` inside a function is not compiled")
        module = found(lowering, s, s.module or "", s.level)
        nonlocals.bind(
            lowering, alias.asname or alias.name, member(lowering, s, module, alias.name)
        )


def found(lowering: Statements, s: ast.stmt, name: str, level: int) -> ModuleType:
    package = lowering.frame.scope.globals.get("__package__") or ""
    try:
        return importlib.import_module("." * level + name, package if level else None)
    except ImportError as error:
        raise lowering.refusal(s, f"this import fails: {error}", "install the module") from None


def member(lowering: Statements, s: ast.stmt, module: ModuleType, name: str) -> Value:
    if not hasattr(module, name):
        try:
            return Static(importlib.import_module(f"{module.__name__}.{name}"))
        except ImportError:
            raise lowering.refusal(
                s, f"cannot import name {name!r} from {module.__name__!r}"
            ) from None
    value = getattr(module, name)
    if lowering.fixed(module):
        return lowering.constant(value, name)
    return lowering.captured(vars(module), name, value, name)
