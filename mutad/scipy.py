"""A function of arrays, numbers and objects as one of a vector: what SciPy's optimizers take.

::

    from mutad.scipy import Problem
    from scipy.optimize import minimize

    fit = Problem(misfit, u0, model, data, wrt=("u", "model.rate"))
    found = minimize(fit.value_and_grad, fit.start, jac=True, hessp=fit.hessp, method="trust-ncg")
    u, rate = fit.unpack(found.x)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .runtime import keys, memory
from .runtime.bound import Partial, named
from .runtime.differentiable_function import DifferentiableFunction
from .runtime.objects import flat_of, selected
from .runtime.structures import Assembly, flatten
from .runtime.user_tracebacks import with_concise_methods
from .runtime.variadic import CompiledWrapper

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Vector = NDArray[np.float64]


@with_concise_methods
class Problem:
    """A compiled function at these arguments, of which the floats that `wrt` names vary: a vector.

    function: one that was compiled with `grad=True`, or a method of an object that was.
    args, kwargs: as in a call. They are copied: every evaluation starts from them as they are now, whatever
        the function stores to its arguments.
    wrt: parameters by name or position, and parts of objects by path, one or a tuple, as in `grad`.
    sparsity: None for dense Jacobians; "auto", or a pattern, as in `jacobian`, for sparse ones.

    The vector has float64 elements: those of arrays in C order, numbers, and the floats in objects, lists and
    dicts, in the order in which `wrt` and their classes name them. TypeError where `wrt` names no float.
    """

    def __init__(
        self,
        function: DifferentiableFunction[..., Any] | Partial[..., Any] | CompiledWrapper,
        *args: Any,
        wrt: Any = 0,
        sparsity: Any = None,
        **kwargs: Any,
    ) -> None:
        own: Any = function
        if isinstance(own, Partial):
            kwargs = {**own.keywords, **kwargs}
            args, wrt, own = (*own.args, *args), own.named(wrt), own.func
        if isinstance(own, CompiledWrapper):
            wrt, own = named(wrt, own.parameters), own.of(args, kwargs)
        if not isinstance(own, DifferentiableFunction):
            raise TypeError(f"Problem takes a function of @compile(grad=True), not {own!r}")
        self._function: DifferentiableFunction[..., Any] = own
        flat, made = flat_of(own.dispatcher, own.dispatcher.bind(*args, **kwargs))
        selection = selected(flat, made, wrt)
        if any(position >= len(made.leaves) for position in selection.positions):
            raise TypeError(f"wrt={wrt!r}: a Problem is one of the function's arguments")
        self._structure, self._others = flat.structure, made.others
        self._items, self._single = selection.items, selection.single
        self._positions = selection.positions
        self._overlaps = keys.overlaps_of(made.leaves)
        self._leaves = memory.copies(made.leaves, self._overlaps)
        self._wrt = wrt
        self._sparsity = sparsity
        self.start: Vector = pack([self._leaves[p] for p in self._positions])
        """The floats that vary, as they are in the arguments."""

    def value(self, x: Vector) -> Any:
        """The result at x: a float, or all floats of the results in one vector."""
        result = self._function(*self._arguments(x))
        return result if isinstance(result, float) else pack(floats_in(result))

    def grad(self, x: Vector) -> Vector:
        """The gradient at x, a vector."""
        return self._packed(self._function.grad(*self._arguments(x), wrt=self._wrt))

    def value_and_grad(self, x: Vector) -> tuple[float, Vector]:
        """Both: what `minimize(..., jac=True)` calls."""
        value, gradient = self._function.value_and_grad(*self._arguments(x), wrt=self._wrt)
        return value, self._packed(gradient)

    def hessp(self, x: Vector, p: Vector) -> Vector:
        """The Hessian at x times p."""
        made = self._assembled(p)
        direction = made[0] if self._single else made
        products = self._function.hvp(*self._arguments(x), direction=direction, wrt=self._wrt)
        return self._packed(products)

    def hess(self, x: Vector) -> Any:
        """The Hessian at x, a matrix: its columns are products."""
        return np.stack([self.hessp(x, unit) for unit in np.eye(len(self.start))], axis=1)

    def jacobian(self, x: Vector) -> Any:
        """The Jacobian at x, of shape (size of the results, size of x): what `least_squares(jac=...)` calls.

        A `scipy.sparse.csc_array` where the problem was made with `sparsity`, which takes one argument.
        """
        arguments = self._arguments(x)
        if self._sparsity is None:
            operator = self._function.linear_operator(*arguments, wrt=self._wrt)
            rows, columns = operator.shape
            if columns <= rows:
                return operator @ np.eye(columns)
            return (operator.T @ np.eye(rows)).T
        if isinstance(self._sparsity, str):
            self._sparsity = self._function.jacobian_sparsity(*self._arguments(x), wrt=self._wrt)
        return self._function.jacobian(*arguments, wrt=self._wrt, sparsity=self._sparsity)

    def unpack(self, x: Vector) -> Any:
        """What `wrt` names, with the floats of x: an array for an array, an object for an object."""
        made = self._assembled(x)
        return made[0] if self._single else made

    def _arguments(self, x: Vector) -> list[Any]:
        """The arguments of one call, new ones."""
        assembly = Assembly(self._structure, self._with(x), self._others)
        return [assembly.make(node) for node in self._structure.nodes]

    def _assembled(self, x: Vector) -> tuple[Any, ...]:
        assembly = Assembly(self._structure, self._with(x), self._others)
        return tuple([assembly.make(n) for n in self._items if not isinstance(n, int)])

    def _with(self, x: Vector) -> list[Any]:
        """The leaves of the arguments, copies, with these floats."""
        x = np.asarray(x, np.float64)
        if x.shape != self.start.shape:
            raise ValueError(f"x has shape {x.shape}: use {self.start.shape}, as `start` has")
        leaves = list(memory.copies(self._leaves, self._overlaps))
        first = 0
        for position in self._positions:
            leaf = leaves[position]
            if isinstance(leaf, np.ndarray):
                leaf[...] = x[first : first + leaf.size].reshape(leaf.shape)
                first += leaf.size
            else:
                leaves[position] = type(leaf)(x[first])
                first += 1
        return leaves

    def _packed(self, gradient: Any) -> Vector:
        """A gradient, or a product, which has the form of what `wrt` names."""
        return pack(floats_in((gradient,) if self._single else gradient))


def floats_in(values: Any) -> Iterator[Any]:
    """The float arrays and numbers in results, gradients, or products."""
    values = values if isinstance(values, tuple) else (values,)
    _, _, made = flatten(values)
    for leaf in made.leaves:
        kind = leaf.dtype if isinstance(leaf, np.ndarray) else np.dtype(type(leaf))
        if kind in (np.float64, np.float32):
            yield leaf


def pack(leaves: Iterator[Any] | Sequence[Any]) -> Vector:
    """Arrays and numbers as one vector, arrays in C order."""
    parts = [np.ravel(leaf) for leaf in leaves]
    return np.concatenate(parts, dtype=np.float64) if parts else np.zeros(0)
