"""One rule for each kind of op: effects, flows of derivatives, needs, adjoint, tangent. See `rule`.

A new op is a class in a dialect and a rule: an entry of `RULES` here, from one of the modules, or made by
whoever brings the op along (`register`). Of ops without an entry the class `Rule` says all there is: they may
touch their memrefs in any way, and a program is refused where a derivative would flow through one.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from xdsl.ir import Operation
from xdsl.traits import IsTerminator, NoMemoryEffect

from . import (
    arith,
    calls,
    control,
    dense,
    derivatives,
    maps,
    math,
    memory,
    products,
    special,
    tapes,
)
from .access import Access, Contents, Need
from .rule import Rule, Rules, Unknown, WithoutDerivative
from .scalars import ScalarRule

RULES: Rules = {
    **arith.RULES,
    **math.RULES,
    **special.RULES,
    **memory.RULES,
    **control.RULES,
    **maps.RULES,
    **products.RULES,
    **dense.RULES,
    **calls.RULES,
    **tapes.RULES,
    **derivatives.rules(lambda op: runs_once(op)),
}
"""The rule of each kind; of a subclass, where it has none of its own, that of its base."""


@cache
def rule_of(kind: type[Operation]) -> Rule[Any]:
    """The rule of ops of a kind, found once for each kind: every analysis asks of every op."""
    for known, rule in RULES.items():
        if issubclass(kind, known):
            return rule
    if kind.has_trait(IsTerminator):
        return WithoutDerivative()
    return Rule[Operation]() if kind.has_trait(NoMemoryEffect) else Unknown()


@cache
def touches_nothing(kind: type[Operation]) -> bool:
    """Whether ops of a kind never touch memory themselves: scalar code, names, ends of blocks."""
    silent = WithoutDerivative.effects, ScalarRule.effects
    return type(rule_of(kind)).effects in silent


def evaluates_body(op: Operation) -> bool:
    """Whether the rule of `op` looks into its region: nothing else has to."""
    return rule_of(type(op)).evaluates_body


def is_whole_array(op: Operation) -> bool:
    """Whether `op` is a loop over elements by itself: a map, a product."""
    return rule_of(type(op)).whole_array


@cache
def is_repeatable(kind: type[Operation]) -> bool:
    """Whether ops of a kind leave nothing behind but what they store: they can run again, in threads, too."""
    rule = rule_of(kind)
    return rule.repeatable or rule.whole_array or kind.has_trait(IsTerminator)


def runs_once(op: Operation) -> bool:
    """Whether running `op` a second time could show: it prints, draws, calls what nothing is known of."""
    return not (op.has_trait(NoMemoryEffect) or is_repeatable(type(op)))


def is_opaque(op: Operation) -> bool:
    """Whether `op` may touch memory that it does not name."""
    return rule_of(type(op)).opaque


def register(kind: type[Operation], rule: Rule[Any]) -> None:
    """Add the rule of a new kind of op."""
    RULES[kind] = rule
    rule_of.cache_clear()
    touches_nothing.cache_clear()
    is_repeatable.cache_clear()


def accesses(op: Operation) -> list[Access]:
    """What `op` itself reads and writes, reads first; what its regions do is theirs."""
    return [] if touches_nothing(type(op)) else rule_of(type(op)).effects(op)


def writes(op: Operation) -> list[Access]:
    if touches_nothing(type(op)):  # most ops
        return []
    return [a for a in rule_of(type(op)).effects(op) if a.kind == "write"]


def reads(op: Operation) -> list[Access]:
    return [a for a in accesses(op) if a.kind == "read"]


__all__ = [
    "RULES",
    "Access",
    "Contents",
    "Need",
    "Rule",
    "ScalarRule",
    "accesses",
    "evaluates_body",
    "is_opaque",
    "is_repeatable",
    "is_whole_array",
    "reads",
    "register",
    "rule_of",
    "runs_once",
    "touches_nothing",
    "writes",
]
