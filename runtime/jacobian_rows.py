"""Jacobians by rows, called by an entry: some cotangents at a time through one run of the primal.

The entry has found the arguments to be its own; they are not stored to, and share no memory. Whatever is not
as plain as that is for `jacobians`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from . import budgets, keys
from .user_tracebacks import concise
from .vjp import Handle

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .specializations import Specialization

MOST = 1 << 17
"""Shadows of more numbers are for Python code, which may take them one after the other."""


def rows_by(dispatcher: Dispatcher, found: Specialization) -> Callable[..., Any]:
    """What the entry calls, with whether `wrt` was one name, and the arguments."""
    forward, back, drop = (found.direct[kind] for kind in ("forward", "back", "drop"))
    words, lanes, wrt = found.metadata["record"], found.metadata.get("lanes", 1), found.wrt
    shadowed, wanted = found.gradient["shadows"], found.gradient["cotangents"]
    names = tuple([dispatcher.parameters[p] for p in wrt])

    def in_python(single: bool, values: tuple[Any, ...]) -> Any:
        chosen = names[0] if single else names
        return dispatcher.method("jacobian", *values, wrt=chosen, mode="reverse")

    @concise
    def rows(single: bool, *values: Any) -> Any:
        if any(values[p].size * lanes > MOST for p in wrt):
            return in_python(single, values)
        handle = Handle(words, drop)
        try:
            value = forward(*values, handle.address)
        except budgets.TooLarge:
            return in_python(single, values)
        leaf = np.asarray(value)
        blocks = {p: np.zeros((leaf.size, *values[p].shape), leaf.dtype) for p in wrt}
        for first in range(0, leaf.size if wanted else 0, lanes):
            bars = np.zeros((leaf.size, lanes), leaf.dtype)
            some = np.arange(min(lanes, leaf.size - first))
            bars[first + some, some] = 1.0
            shadows = {p: np.zeros((*values[p].shape, lanes), values[p].dtype) for p in shadowed}
            bar = bars.reshape(*leaf.shape, lanes) if lanes > 1 else 1.0
            given = [s if lanes > 1 else s[..., 0] for s in shadows.values()]
            try:
                back(handle.address, *given, bar)
            except keys.NeedsGuards:
                return in_python(single, values)
            for p, shadow in shadows.items():
                blocks[p][first : first + lanes] = np.moveaxis(shadow, -1, 0)[: len(some)]
        made = [blocks[p].reshape(*leaf.shape, *values[p].shape) for p in wrt]
        return made[0] if single else tuple(made)

    return rows
