"""The programs in JAX, twice: as a user writes them, and as an expert rewrites them.

As written: the same algorithm in JAX's spelling, `.at[...]` for assignments, `fori_loop` for loops; what is
independent in a scalar loop is an array expression, since no user of JAX writes that loop. The expert avoids
`.at` in loops, replaces scatters by pads and products, computes what is constant once, goes along diagonals,
and calls the library. Where no expert's form is given, there is nothing to rewrite.
"""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from . import algebra, fluids, models, networks, stencils

FAMILIES = (stencils, fluids, algebra, networks, models)
OTHER_ALGORITHMS = algebra.OTHER_ALGORITHMS


def forms(name: str) -> dict[str, Callable[..., Any]]:
    """The forms that there are of a program."""
    kinds = {"JAX": "Written", "expert": "Expert"}
    found = {
        kind: getattr(getattr(family, holder), name, None)
        for kind, holder in kinds.items()
        for family in FAMILIES
        if hasattr(getattr(family, holder), name)
    }
    return {kind: form for kind, form in found.items() if form is not None}


class Form:
    """One form, compiled for arguments: calls that wait for their results."""

    def __init__(
        self, jax: Any, form: Callable[..., Any], arguments: tuple[Any, ...], wrt: tuple[str, ...]
    ) -> None:
        parameters = list(inspect.signature(form).parameters)
        places = tuple(parameters.index(name) for name in wrt)
        moving = [k for k, a in enumerate(arguments) if k in places or isinstance(a, np.ndarray)]

        def of_moving(*values: Any) -> Any:
            full = list(arguments)
            for k, value in zip(moving, values, strict=True):
                full[k] = value
            return form(*full)

        self.jax = jax
        self.values = [jax.numpy.asarray(arguments[k]) for k in moving]
        wanted = tuple(moving.index(k) for k in places)
        self.compiled = jax.jit(of_moving).lower(*self.values).compile()
        start = time.process_time()
        slope = jax.jit(jax.value_and_grad(of_moving, wanted))
        self.differentiated = slope.lower(*self.values).compile()
        self.seconds = time.process_time() - start

    def value(self) -> Any:
        return self.jax.block_until_ready(self.compiled(*self.values))

    def gradient(self) -> Any:
        return self.jax.block_until_ready(self.differentiated(*self.values))

    def peak(self) -> int:
        used = self.differentiated.memory_analysis()
        return used.temp_size_in_bytes + used.output_size_in_bytes
