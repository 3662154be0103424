"""`check_gradient`: is a compiled function what CPython says, and its gradient what differences say?"""

from __future__ import annotations

import types
from typing import Any

from . import objects
from .bound import BoundMethod, Partial, named
from .central_differences import GradientReport
from .checked_gradient import check_arguments
from .function import CompiledFunction
from .user_tracebacks import concise
from .variadic import CompiledWrapper


@concise
def check_gradient(
    function: CompiledFunction | CompiledWrapper | Partial | types.MethodType,
    *args: Any,
    wrt: Any = None,
    tolerance: float | None = None,
    seed: int = 0,
    second: bool = True,
    **kwargs: Any,
) -> GradientReport:
    """Check a function that was compiled with `grad=True` at these arguments.

    Checked, in this order:

    - the compiled primal returns what CPython returns (value, type, dtype, shape) and leaves every
      array argument as CPython does;
    - so does `value_and_grad`, where the result is one float;
    - the cotangents of results *and of final values of arrays that it stores to* are pulled back to all
      float arguments (or to `wrt`); in a random direction the gradient agrees with central
      differences of the Python function, at the best of a grid of steps;
    - gradients share memory as their arguments do;
    - the gradient is that of `saves="all"`, which trusts no analysis of memory;
    - `jvp` in that direction gives the same number (the products of tangents with cotangents agree, up to
      rounding), the same result and the same effects; where a function has a rule without
      tangent, it is left out;
    - so does `vjp`, and what it returns gives the same gradient, called once or twice, whatever the caller
      has stored to arguments and results;
    - where the result is one float that has second derivatives here, and unless `second=False`: `hvp` has the
      same value, effects and gradient; Hessians are symmetric, u @ H @ v = v @ H @ u up to rounding; and what
      `hvp` gives is the difference of gradients, on one side at least.

    Of a function with `memory=` no second derivatives are checked, nor `vjp` where the budget does not do.

    With MUTAD_VERIFY=1 in the environment all of this runs on the first gradient call of each kind of
    arguments, whose arguments it then uses; the Python function runs many times.

    Errors are relative to the size of the gradient in the direction (the Euclidean norm of the terms of the
    inner product), as long as differences can tell it from rounding: see `central_differences`, and there
    the sources. Of arguments whose gradients differ much in size, check the small one alone.

    Cannot see: errors that vanish in the one direction that is tried (pass other `seed`s); errors
    below the accuracy of differences, about 1e-12 in float64 beside values of 1; wrong gradients at
    points other than this; kinks, where the two sides differ (move the point away from them); a
    function that CPython itself computes with too much rounding. Where float32 is between arguments and
    results, steps are larger and only errors above 2e-2 are seen: check in float64 too. What a function
    with a rule of its own computes in float32 inside is not known: pass `tolerance=2e-2`.

    Returns a report; raises GradientError, an AssertionError, that says what is wrong. The arguments
    stay as they are: all work is done on copies that share memory as they do. Of a bound method `self` is an
    argument that is not among the "all", unless `wrt` names it or a field of it.
    """
    own = 0  # the first of the parameters that count where `wrt` names none
    if isinstance(function, types.MethodType):
        function = BoundMethod(function.__func__, function.__self__)
    given = None
    if isinstance(function, Partial):
        given, function = function, function.func
    if not isinstance(function, CompiledFunction | CompiledWrapper):
        raise TypeError(
            f"check_gradient takes a compiled function, not {type(function).__name__}: "
            "decorate it with @compile(grad=True)"
        )
    if given is not None:
        wrt, own = given.named(wrt), len(given.args)
        args, kwargs = (*given.args, *args), {**given.keywords, **kwargs}
    if isinstance(function, CompiledWrapper):
        wrt = named(wrt, function.parameters)
        function = function.of(args, kwargs)
    dispatcher = function._dispatcher  # pyright: ignore[reportPrivateUsage]
    if not function.has_gradient:
        raise TypeError(f"{function.__qualname__} was compiled without gradient")
    bound = dispatcher.bind(*args, **kwargs)

    def of_parts() -> GradientReport:
        flat, made = objects.flat_of(dispatcher, bound)
        floats = tuple(range(own, len(dispatcher.parameters))) if wrt is None else wrt
        names = objects.flat_names(flat, objects.selected(flat, made, floats, some=wrt is None))
        parts = (*made.leaves, None)
        return check_gradient(
            flat.compiled, *parts, wrt=names, tolerance=tolerance, seed=seed, second=second
        )

    return dispatcher.either(
        bound, lambda: check_arguments(function, bound, wrt, tolerance, seed, second), of_parts
    )
