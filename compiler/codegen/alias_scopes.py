"""Tell LLVM which accesses never meet: `!alias.scope` and `!noalias` from the alias roots.

Why here: LLVM sees pointers and strides; only we know that two arguments are disjoint (the dispatch
checked it) and that a swap of two arrays keeps them two. Without it every inner loop would carry
run-time overlap checks, and a loop with many arrays would not be vectorized at all.

One domain holds a scope for each root. An access carries the scopes of all roots it may touch, and
`noalias` of every root that interferes with none of them::

    load double, ptr %p, !alias.scope {a}, !noalias {b, tmp}

What has no root here is `elsewhere`, of which nothing is said. Every load has a scope: by that the masked
loads are known that the vectorizer made of ours (`Note [Masked loads]` in `llvm_module`).

A loop that permutes memrefs with pairwise distinct roots gets a domain of its own, with a scope for
each carried memref, declared at the start of each iteration (as LLVM's inliner does for `noalias`
parameters): within one iteration `u` and `v` are different memory although each may be either root.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import ad, array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.views import strip_views
from .llvm_text import Metadata


class AliasScopes:
    """The metadata of every access of one function."""

    def __init__(self, function: func.FuncOp, alias: AliasAnalysis, metadata: Metadata) -> None:
        self._alias = alias
        self._metadata = metadata
        domain = metadata.distinct('!"mutad"')
        elsewhere = metadata.distinct(domain, '!"elsewhere"')
        self._elsewhere = f", !alias.scope {metadata.node(elsewhere)}"
        self._scopes: dict[SSAValue, str] = {}
        for root in roots(function):
            self._scopes[root] = metadata.distinct(domain, f'!"{root.name_hint or "memory"}"')
        self._places = {root: k for k, root in enumerate(self._scopes)}
        self._iteration: dict[array.LoopOp, tuple[str, ...]] = {}
        self._tags: dict[SSAValue, str] = {}

    def declare_iteration(self, loop: array.LoopOp) -> list[str]:
        """The scopes that an iteration of `loop` declares, each as a list of one."""
        if not loop.carried or not self._alias.distinct(loop):
            return []
        if loop not in self._iteration:
            domain = self._metadata.distinct('!"iteration"')
            self._iteration[loop] = tuple(
                self._metadata.distinct(domain, f'!"{a.name_hint or "carried"}"')
                for a in loop.body_carried
            )
        return [self._metadata.node(scope) for scope in self._iteration[loop]]

    def apart(self, a: SSAValue, b: SSAValue) -> bool:
        """True when the two never share memory at one moment."""
        return not self._alias.may_alias(a, b) or self._alias.apart_in_turn(a, b)

    def among(self, memrefs: Sequence[SSAValue]) -> AliasScopes:
        """The scopes for code that touches no other memory than this."""
        limited = copy(self)
        touched = {r for m in memrefs for r in self._alias.roots(strip_views(m))}
        in_order = sorted(touched & self._scopes.keys(), key=self._places.__getitem__)
        limited._scopes = {root: self._scopes[root] for root in in_order}
        limited._tags = {}
        return limited

    def tags(self, memref: SSAValue) -> str:
        """The metadata of a load or store through `memref`, ready to append."""
        base = strip_views(memref)
        found = self._tags.get(base)
        if found is None:
            found = self._tags[base] = self._compute(base)
        return found

    def _compute(self, base: SSAValue) -> str:
        touched = self._alias.roots(base)
        if any(r not in self._scopes for r in touched):
            return self._elsewhere
        near = {n for r in touched for n in self._alias.interfering(r)}
        own = [s for r, s in self._scopes.items() if r in touched]
        others = [s for r, s in self._scopes.items() if r not in near]
        slot = self._alias.slot(base)
        if slot is not None and slot[0] in self._iteration:
            loop, position = slot
            scopes = self._iteration[loop]
            own.append(scopes[position])
            others.extend(s for k, s in enumerate(scopes) if k != position)
        tags = f", !alias.scope {self._metadata.node(', '.join(own))}"
        if others:
            tags += f", !noalias {self._metadata.node(', '.join(others))}"
        return tags


def roots(function: func.FuncOp) -> list[SSAValue]:
    """Every root of the function but the cells, which LLVM turns into registers."""
    found: list[SSAValue] = [a for a in function.body.block.args if isinstance(a.type, MemRefType)]
    for op in every_op(function):
        if isinstance(op, array.AllocOp | ad.PushOp | ad.PopOp):
            found.append(op.results[0])
    return found
