"""Compiled functions with their derivatives: what `compile(grad=True)` makes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from . import (
    gradients,
    keys,
    memory,
    native_code,
    object_gradients,
    object_jacobians,
    object_tangents,
)
from .foreign_idioms import needs_direction, needs_tangents
from .function import COUNTED, CompiledFunction
from .hessian_products import FORWARD_OVER_REVERSE
from .hessian_products import value_grad_hvp as run_hvp
from .jacobians import hessian as run_hessian
from .jacobians import jacobian as run_jacobian
from .linear_operators import linear_operator as run_linear_operator
from .sparse_jacobians import jacobian_sparsity as find_sparsity
from .sparse_jacobians import sparse_hessian, sparse_jacobian
from .sparsity import Sparsity
from .tangents import jvp as run_jvp
from .tangents import pushforward as run_pushforward
from .user_tracebacks import with_concise_methods
from .vjp import Back
from .vjp import vjp as run_vjp

if TYPE_CHECKING:
    from typing_extensions import ParamSpec, TypeVar

    from .object_gradients import ObjectBack

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:  # without defaults, which the language has from 3.13 on
    from typing import ParamSpec, TypeVar

    P, R = ParamSpec("P"), TypeVar("R")


@with_concise_methods
class DifferentiableFunction(CompiledFunction[P, R]):
    """A compiled function with its derivatives: what `compile(grad=True)` makes.

    The gradient of its result: `f.grad`, `f.value_and_grad`, `f.vjp` and `f.pullback`; tangents: `f.jvp` and
    `f.pushforward`; second derivatives: `f.hvp`, `f.value_grad_hvp` and `f.hessian`; matrices: `f.jacobian`,
    `f.jacobian_sparsity` and `f.linear_operator`. `f.explain` says what a gradient saves, and why.
    """

    has_gradient = True

    def grad(self, *args: Any, **kwargs: Any) -> Any:
        """The gradient: `f.grad(*args, wrt=0)`.

        `wrt` is the name or position of a parameter, or a tuple of them, which gives a tuple of gradients.
        The gradient of an array has its shape and dtype, that of a number its type, that of an object is an
        object of its class. TypeError if the result is not a float scalar, or `wrt` names an int or a bool.
        """
        return self._dispatcher.heads["grad"](*args, **kwargs)

    def value_and_grad(self, *args: Any, **kwargs: Any) -> tuple[R, Any]:
        """The result and the gradient: `value, gradient = f.value_and_grad(*args, wrt=0)`."""
        return self._dispatcher.heads["value_and_grad"](*args, **kwargs)

    def vjp(
        self, *args: Any, wrt: Any = 0, batch: int | None = None, **kwargs: Any
    ) -> tuple[R, Back | ObjectBack]:
        """Run the primal and return `(result, back)`: `out, back = f.vjp(*args, wrt=0)`.

        `back(out_bar, u=...)` returns the gradient with respect to `wrt` (`out_bar @ J`; J is the Jacobian),
        for the cotangent `out_bar` of the result and cotangents of array arguments' final values, by name. It
        may be called any number of times, whatever happened to the
        arguments: `vjp` saves what the adjoint reads of them, and `back` does not run the primal again,
        unless that is more than `memory=` allows.

        With `batch=k` each cotangent and each gradient has a first axis of k; one reverse sweep computes them
        all.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_vjp(d, (*bound, *d.era.captures.values()), wrt, batch),
            lambda: object_gradients.vjp(d, bound, wrt, batch),
        )

    def pullback(self, *args: Any, cotangent: Any = None, **kwargs: Any) -> tuple[R, Any]:
        """Run the primal and its adjoint, in place: `f.pullback(Duplicated(u, du), Const(k), cotangent=1.0)`.

        On entry each shadow holds the cotangent of its array's final value, on exit that of its
        initial value. Returns the result and a tuple of the cotangents of the `Active` scalars.
        The cotangent of an array has the array's shape; ValueError otherwise: before the primal runs where
        the shape follows from the arguments, else after it, with the shadows as they were.

        `BatchDuplicated(u, du)` has k shadows side by side: `du` is of shape `(*u.shape, k)`, and so are the
        cotangents of results, and those that are returned.
        """
        d = self._dispatcher
        wrapped = d.bind(*args, **kwargs)
        bound = tuple(map(gradients.primal_of, wrapped))
        return d.either(
            bound,
            lambda: gradients.pullback(d, wrapped, cotangent),
            lambda: object_gradients.pullback(d, wrapped, bound, cotangent),
        )

    @needs_tangents
    def jvp(
        self, *args: Any, tangents: Mapping[str, Any], batch: int | None = None, **kwargs: Any
    ) -> tuple[R, Any]:
        """The result and its tangent: `value, value_dot = f.jvp(*args, tangents={"u": du, "k": 1.0})`.

        `tangents` has an entry for each parameter that varies: an array of the argument's shape and dtype,
        which is updated as the argument is (afterwards it is the tangent of the argument's final value), or a
        number. The tangent of the result (`J @ v`: J is the Jacobian) has its form, with None for parts that
        are not floats.

        With `batch=k` there are k tangents of each, along a first axis: of an array of shape `(k, *u.shape)`,
        of a number `(k,)`. The primal runs once.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_jvp(d, (*bound, *d.era.captures.values()), tangents, batch),
            lambda: object_tangents.jvp(d, bound, tangents, batch),
        )

    def pushforward(self, *args: Any, **kwargs: Any) -> tuple[R, Any]:
        """Run the primal with its tangents, in place: `f.pushforward(Duplicated(u, du), Const(k))`.

        On entry `du` is the tangent of the initial value of `u`, on exit that of its final value. Numbers
        have tangents, too: `Duplicated(k, 1.0)`. Returns the result and its tangent, as `jvp` does.

        `BatchDuplicated(u, du)` has k tangents side by side: `du` is of shape `(*u.shape, k)`, and so are the
        tangents of results.
        """
        d = self._dispatcher
        wrapped = d.bind(*args, **kwargs)
        bound = tuple(map(gradients.primal_of, wrapped))
        if any(type(a) is gradients.BatchDuplicated for a in wrapped):
            return d.plainly("BatchDuplicated", bound, lambda _: run_pushforward(d, wrapped))
        return d.either(
            bound,
            lambda: run_pushforward(d, wrapped),
            lambda: object_tangents.pushforward(d, wrapped, bound),
        )

    @needs_direction
    def hvp(
        self,
        *args: Any,
        direction: Any,
        wrt: Any = 0,
        batch: int | None = None,
        mode: str = FORWARD_OVER_REVERSE,
        **kwargs: Any,
    ) -> Any:
        """The Hessian times a direction: `f.hvp(*args, wrt=0, direction=v)`, shaped as the argument.

        If `wrt` is a tuple, so are `direction` and the product. TypeError if the result is not a float
        scalar. With `batch=k` there are k directions along a first axis, and as many products, from one run
        of primal and adjoint. `mode="reverse-over-reverse"` runs the adjoint of the gradient instead of its
        tangent: slower, as an independent check.
        """
        return self._products(args, kwargs, wrt, direction, batch, mode, alone=True)[2]

    @needs_direction
    def value_grad_hvp(
        self,
        *args: Any,
        direction: Any,
        wrt: Any = 0,
        batch: int | None = None,
        mode: str = FORWARD_OVER_REVERSE,
        **kwargs: Any,
    ) -> tuple[R, Any, Any]:
        """The result, the gradient and the Hessian times a direction, in one call: see `hvp`."""
        return self._products(args, kwargs, wrt, direction, batch, mode)

    def _products(
        self,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        wrt: Any,
        direction: Any,
        batch: int | None,
        mode: str,
        *,
        alone: bool = False,
    ) -> tuple[Any, Any, Any]:
        """Result, gradient and product; where the product is wanted `alone`, the first two mean nothing."""
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_hvp(
                d, (*bound, *d.era.captures.values()), wrt, direction, batch, mode, alone
            ),
            lambda: object_tangents.value_grad_hvp(d, bound, wrt, direction, mode, batch),
        )

    def hessian(self, *args: Any, wrt: Any = 0, sparsity: Any = None, **kwargs: Any) -> Any:
        """The Hessian, dense: `f.hessian(*args, wrt=0)`, of shape `u.shape + u.shape`; of a number, a number.

        For a tuple of arguments, it is a tuple of tuples of blocks: `H[i][j]` is the derivative of the
        gradient in argument i with respect to argument j. One `hvp` computes eight columns, on copies: the
        arguments are left as by one plain call. Both halves are computed. `sparsity` is that of `jacobian`.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        if sparsity is None:
            return d.either(
                bound,
                lambda: run_hessian(d, (*bound, *d.era.captures.values()), wrt),
                lambda: object_jacobians.hessian(d, bound, wrt),
            )
        return d.either(
            bound,
            lambda: sparse_hessian(d, (*bound, *d.era.captures.values()), wrt, sparsity),
            lambda: object_jacobians.sparse_hessian(d, bound, wrt, sparsity),
        )

    def jacobian(
        self, *args: Any, wrt: Any = 0, mode: str = "auto", sparsity: Any = None, **kwargs: Any
    ) -> Any:
        """The Jacobian, dense: `f.jacobian(*args, wrt=0)`, of shape `result.shape + u.shape`.

        For a tuple of results it is a tuple, with None for parts that are not floats; for a tuple of
        arguments, each item is a tuple. `mode="forward"` runs the tangents of eight elements of the arguments
        at a time, on copies; "reverse" the primal once and one cotangent for each element of the results;
        "auto" chooses the cheaper one. The arguments are left as by one plain call.

        With `sparsity="auto"` a `scipy.sparse.csc_array` of shape (size of the result, size of the argument):
        the pattern is found at these arguments, and one tangent runs for each of its colours (or one
        cotangent). A given pattern (from `jacobian_sparsity`, an array or a sparse matrix) is only checked:
        ValueError if an entry is missing.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        if sparsity is None:
            return d.either(
                bound,
                lambda: run_jacobian(d, (*bound, *d.era.captures.values()), wrt, mode),
                lambda: object_jacobians.jacobian(d, bound, wrt, mode),
            )
        return d.either(
            bound,
            lambda: sparse_jacobian(d, (*bound, *d.era.captures.values()), wrt, mode, sparsity),
            lambda: object_jacobians.sparse_jacobian(d, bound, wrt, mode, sparsity),
        )

    def jacobian_sparsity(
        self, *args: Any, wrt: Any = 0, mode: str = "auto", **kwargs: Any
    ) -> Sparsity:
        """Which elements of the result depend on which of the arguments: `f.jacobian_sparsity(*args, wrt=0)`.

        `.pattern` is a `scipy.sparse.csc_array` of bools, `.colours` the number of tangents or cotangents
        that the Jacobian takes with it. It has every entry that is not zero at these arguments, and holds at
        others as long as branches and subscripts are the same. The arguments are left as by one plain call.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: find_sparsity(d, (*bound, *d.era.captures.values()), wrt, mode),
            lambda: object_jacobians.jacobian_sparsity(d, bound, wrt, mode),
        )

    def linear_operator(self, *args: Any, wrt: Any = 0, **kwargs: Any) -> Any:
        """The Jacobian as a `scipy.sparse.linalg.LinearOperator`, of float64, without its elements.

        Its shape is (size of the result, size of the argument), 1 for a number; several results or arguments
        come one after another. It is made by one plain call, which has its effects, and keeps copies of the
        arguments as they were before: later products run on copies of these, and neither read nor change your
        arrays. `A @ v` runs the tangent; `A.T @ w` the adjoint, after one run of the primal.
        """
        d = self._dispatcher
        bound = d.bind(*args, **kwargs)
        return d.either(
            bound,
            lambda: run_linear_operator(d, (*bound, *d.era.captures.values()), wrt),
            lambda: object_jacobians.linear_operator(d, bound, wrt),
        )

    def explain(
        self,
        *args: Any,
        wrt: Any = 0,
        plan: str = "joint",
        mode: str = "gradient",
        batch: int | None = None,
        run: bool = False,
        **kwargs: Any,
    ) -> Any:
        """What the gradient would save, why, and how many bytes; runs nothing.

        `plan="split"` describes `vjp`, which also saves what the caller could change before `back` is called.
        `mode="hvp"` describes `value_grad_hvp`, which also saves tangents of the gradient's saves; `hvp`
        saves no more. `mode="tangent"` describes `jvp`, which saves nothing, but allocates arrays. `batch=k`
        describes these calls, and `vjp`, with k tangents or cotangents; `mode="gradient"` is then `pullback`.

        Without arguments it gives only the formulas, for the argument types of the latest call: byte counts
        are None unless they are 0. Before any call, the types come from annotations, `u: "f64[:, :]"` for an
        array, and from defaults; ValueError if they are missing.

        With `run=True` the primal runs once, on copies of the arguments, and counts the bytes of each save:
        it takes the time and the memory of a gradient's forward sweep, and another compilation. The function
        prints.
        """
        if mode not in ("gradient", "tangent", "hvp"):
            raise ValueError(f"mode={mode!r}: use 'gradient', 'tangent' or 'hvp'")
        if mode != "gradient" and plan != "joint":
            raise ValueError(f"mode={mode!r} has one plan: leave out plan={plan!r}")
        if run and mode == "tangent":
            raise ValueError(
                "mode='tangent' saves nothing that a run could count: leave out run=True"
            )
        if batch is not None:
            gradients.require_lanes(batch)
        return self._looking(lambda: self._explain(args, kwargs, wrt, plan, mode, batch, run))

    def _explain(
        self, args: Any, kwargs: Any, wrt: Any, plan: str, of: str, batch: int | None, run: bool
    ) -> Any:
        d = self._dispatcher
        if (taken := self._taken_apart(args, kwargs, wrt)) is not None:
            flat, parts, names = taken
            options = {"plan": plan, "mode": of, "batch": batch, "run": run}
            return flat.compiled.explain(*parts, wrt=names, **options)
        symbolic = not args and not kwargs and len(d.defaults) < len(d.parameters)
        values = None if symbolic else d.values_of(*args, **kwargs)
        arguments, overlaps, positions, mode = self._key(args, kwargs, wrt, plan, latest=symbolic)
        mode = mode if of == "gradient" else of
        if mode == "gradient" and batch is not None:
            mode = "pullback"
        options = {**d.options, "lanes": batch or 1}
        request = d.function, arguments, overlaps, mode, positions, options, d.era.captures
        if not run:
            with native_code.compiling:
                return d.compiler.explain(*request, values)
        if values is None:
            raise ValueError("run=True counts what a call saves: pass the arguments of one")
        counts = self._counted(values, overlaps, positions, COUNTED[plan])
        with native_code.compiling:
            return d.compiler.explain(*request, values, counts)

    def _counted(
        self, values: tuple[Any, ...], overlaps: keys.Overlaps, active: tuple[int, ...], mode: str
    ) -> tuple[int, ...]:
        """The bytes of each save: the primal runs on copies of the arguments and counts."""
        copied = memory.copies(values, overlaps)
        return self._dispatcher.specialize(copied, active, mode).direct["primal"](*copied)
