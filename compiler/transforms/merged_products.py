"""Several products of an iteration that add to one matrix, as one of a block. Part of `collect_products`.

The additions keep their order (`collect_products`), so one product cannot come after the other::

    for i in range(n):                          for first in range(0, n, 32):
        ...                                         for i in range(first, min(first + 32, n)):
        c += outer(g, x[i])                             ...
        ...                                             g_kept[2 * (i - first)] = g
        c.T += outer(h, y)                              x_kept[2 * (i - first)] = x[i]
                                                        ...
                                                        g_kept[2 * (i - first) + 1] = y
                                                        x_kept[2 * (i - first) + 1] = h
                                                    c += g_kept[: 2 * length].T @ x_kept[: 2 * length]

Where one of them has to stay in the loop, or parts of the matrix differ, each is on its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...dialects import array
from ..analysis.affine import Affine, Subscripts
from ..analysis.slabs import Slab, slab_of
from .product_stacks import Stack

TURNED = {"a": "b", "b": "a", "c": "c"}
"""The operands of c' = b' a', by those of c = a b."""


@dataclass(frozen=True)
class Member:
    """A product of a group; `turned`: it adds to the transpose of the matrix of the first."""

    stack: Stack
    turned: bool

    def operand(self, name: str) -> str:
        """Its own name of an operand of the first."""
        return TURNED[name] if self.turned else name


def groups_of(loop: array.LoopOp, stacks: Sequence[Stack]) -> list[list[Member]]:
    """The products that add to one matrix, in their order, where there are several."""
    forms = Subscripts()
    groups: list[tuple[Slab, list[Member]]] = []
    for stack in stacks:
        if not stack.adds_up or stack.ragged:
            continue
        slab = slab_of(stack.op.c, loop, forms, beyond=True)
        if slab is None:
            continue
        for other, members in groups:
            turned = is_turned(stack, slab, members[0].stack, other, forms)
            if turned is not None:
                members.append(Member(stack, turned))
                break
        else:
            groups.append((slab, [Member(stack, turned=False)]))
    return [members for _, members in groups if len(members) > 1]


def is_turned(one: Stack, slab: Slab, other: Stack, place: Slab, forms: Subscripts) -> bool | None:
    """Whether one adds to the transpose of the other's matrix; None where that is another matrix."""
    if slab.base is not place.base or slab.begin != place.begin:
        return None
    for turned in (False, True):
        alike = all(
            slab.axes.get(q) == place.axes.get(p)
            and slab.steps.get(q) == place.steps.get(p)
            and lengths(one, q, forms) & lengths(other, p, forms)
            for p, q in enumerate((1, 0) if turned else (0, 1))
        )
        if alike:
            return turned
    return None


def lengths(stack: Stack, p: int, forms: Subscripts) -> set[Affine]:
    """What is known of the number of rows, or of columns, of the matrix."""
    factor = (stack.op.a, 0) if p == 0 else (stack.op.b, 1)
    return {forms.extent(stack.op.c, p), forms.extent(*factor)}
