"""Jacobians as operators: `f.linear_operator`, whose products are tangents and cotangents of one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from .captures import Captures
from .jacobians import Start, form_of, leaves_of, plainly, require_floats, rows_of, size_of, started
from .keys import Array
from .vjp import Back, vjp

if TYPE_CHECKING:
    from .dispatch import Dispatcher


def linear_operator(dispatcher: Dispatcher, values: tuple[Any, ...], wrt: Any) -> Any:
    """`f.linear_operator`: the Jacobian as a `scipy.sparse.linalg.LinearOperator`."""
    return operator_of(started(dispatcher, values, wrt, "linear_operator"), values)[1]


def operator_of(start: Start, values: tuple[Any, ...]) -> tuple[Any, Any]:
    """What the plain call returns, and the operator."""
    from scipy.sparse.linalg import LinearOperator  # pyright: ignore

    require_floats(start)
    start.require("tangent")
    captures = start.dispatcher.era.captures
    value = plainly(start.dispatcher, values)
    products = Products(start, form_of(start.own(value)), captures)
    make: Any = LinearOperator
    shape = size_of(products.form), start.size
    ways = {
        n: placed(start, getattr(products, n)) for n in ("matvec", "rmatvec", "matmat", "rmatmat")
    }
    return value, make(shape, **ways, dtype=np.float64)


def placed(start: Start, product: Callable[[Any], Array]) -> Callable[[Any], Array]:
    """A product, whose arrays are where the function's are: with SciPy's vectors, which are the host's."""
    name = start.dispatcher.options.get("driver")
    if name is None:
        return product

    def on_device(x: Any) -> Array:
        from .drivers import begun

        with begun[name].placing():
            return product(x)

    return on_device


@dataclass(eq=False)
class Products:
    """Products with a Jacobian at arguments that are kept: tangents forward, cotangents back."""

    start: Start
    form: Any
    """The form of the result: see `form_of`."""
    captures: Captures

    def matvec(self, x: Any) -> Array:
        """The tangent of the result along `x`."""
        direction = self.start.divided(as_vector(x))
        self.require_same()
        dot = self.start.push(direction)
        return joined([d for d in leaves_of(dot) if d is not None])

    def rmatvec(self, y: Any) -> Array:
        """The cotangent of the arguments for that of the result."""
        return joined(self.start.pull(self.back, self.form, as_vector(y)[None]))

    def matmat(self, x: Any) -> Array:
        """The tangents along the columns of `x`, some at a time."""
        start, columns = self.start, as_matrix(x).T
        lanes = start.require_lanes("tangent", len(columns))
        self.require_same()
        made = np.empty((size_of(self.form), len(columns)))
        for first in range(0, len(columns), lanes):
            some = columns[first : first + lanes]
            dots = leaves_of(start.push_beside(start.beside(list(some), lanes)))
            made[:, first : first + lanes] = rows_of(
                [d for d in dots if d is not None], len(some)
            ).T
        return made

    def rmatmat(self, y: Any) -> Array:
        """The cotangents for the columns of `y`, some at a time."""
        found = self.start.pull(self.back_of_several, self.form, as_matrix(y).T)
        return np.concatenate([part.reshape(len(part), -1) for part in found], axis=1).T

    @cached_property
    def back(self) -> Back:
        """Made by a run on copies, when it is asked for: many operators only multiply forward."""
        return self.made_back(1)

    @cached_property
    def back_of_several(self) -> Back:
        return self.made_back(self.start.require_lanes("vjp", size_of(self.form)))

    def made_back(self, lanes: int) -> Back:
        self.require_same()
        return vjp(self.start.dispatcher, self.start.again(), self.start.names, lanes)[1]

    def require_same(self) -> None:
        """RuntimeError where the function reads constants from outside that are others by now."""
        if not self.captures.agrees(self.start.dispatcher.era.captures):
            name = self.start.dispatcher.function.__qualname__
            raise RuntimeError(
                f"linear_operator: what {name} reads from outside has changed: make the operator anew"
            )


def as_vector(x: Any) -> Array:
    """What SciPy hands over as float64; TypeError for complex numbers."""
    return as_matrix(x).reshape(-1)


def as_matrix(x: Any) -> Array:
    if np.iscomplexobj(x):
        raise TypeError("linear_operator: the vector is complex: multiply its parts")
    return np.asarray(x, np.float64)


def joined(parts: Sequence[Any]) -> Array:
    """The elements of all parts, one after another."""
    return np.concatenate([np.ravel(part).astype(np.float64) for part in parts])
