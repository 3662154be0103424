"""What users write by hand: a rule, as the compiler sees it, and what follows from its declarations."""

from __future__ import annotations

from collections.abc import Sequence
from types import FunctionType
from typing import Any, Protocol

from xdsl.ir import Operation

from ...dialects import array, foreign


class HandwrittenRule(Protocol):
    """What the runtime has of a rule."""

    @property
    def function(self) -> Any: ...
    @property
    def adjoint(self) -> FunctionType: ...
    @property
    def tangent(self) -> FunctionType | None: ...
    @property
    def parameters(self) -> Sequence[str]: ...
    @property
    def reads(self) -> Sequence[str] | None: ...
    @property
    def overwrites(self) -> Sequence[str] | None: ...
    @property
    def needs(self) -> Sequence[str] | None: ...


def effects_of(rule: HandwrittenRule, values: Sequence[Any]) -> list[str]:
    """What the rule declares of each argument of a foreign function."""
    reads, overwrites = rule.reads, rule.overwrites or ()
    found: list[str] = []
    for name, _ in zip(rule.parameters, values, strict=False):
        read = "read" if reads is None or name in reads else ""
        found.append(read + ("write" if name in overwrites else "") or "none")
    return found


def may_raise(op: Operation) -> bool:
    """True for a check, and for a call of what CPython runs."""
    if isinstance(op, foreign.CallOp):
        return op.convention.data == "python"
    return array.is_operation_that_may_raise(op)
