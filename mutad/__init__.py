"""mutad: Python functions over NumPy arrays, mutation included, compiled, with their gradients.

::

    import numpy as np
    from mutad import compile

    @compile(grad=True)
    def loss(u, k, steps):
        for _ in range(steps):
            u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
        return (u**2).sum()

    value, gradient = loss.value_and_grad(np.ones(100), 0.1, 50, wrt="k")

Importing this package loads neither the compiler nor LLVM; the first call of a compiled function does.
"""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from contextlib import AbstractContextManager
from importlib import import_module
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    Never,
    ParamSpec,
    Protocol,
    TypeVar,
    Unpack,
    overload,
)

from . import cuda
from .runtime.assertions import assert_saved_bytes
from .runtime.batching import Batched, axes_of
from .runtime.bound import BoundMethod, Partial, partial_of
from .runtime.cuda import not_called
from .runtime.derivative_functions import Derivative, derivative_of, derived
from .runtime.device_arrays import DeviceArray, device_array
from .runtime.differentiable_function import DifferentiableFunction
from .runtime.disk_cache import clear_cache
from .runtime.foreign_idioms import NAMES, refuse_arguments, refuse_options
from .runtime.function import CompiledFunction
from .runtime.function_factory import compiled
from .runtime.gradients import Active, BatchDuplicated, Const, Duplicated
from .runtime.opaque import opaque
from .runtime.options import Options, check_options
from .runtime.result_pool import release_memory
from .runtime.rules import rule, stop_gradient, tangent_rule
from .runtime.thread_pool import get_num_threads, prange, set_num_threads
from .runtime.user_tracebacks import concise
from .runtime.variadic import CompiledWrapper
from .runtime.wrappers import options_of

if TYPE_CHECKING:
    from .compiler.diagnostics import CompileError
    from .runtime.agreement import GradientError
    from .runtime.gradient_check import GradientReport, check_gradient

P = ParamSpec("P")
R = TypeVar("R")

__version__ = "0.1.0"
__all__ = [
    "Active", "BatchDuplicated", "CompileError", "CompiledFunction", "Const", "DeviceArray",
    "DifferentiableFunction", "Duplicated", "GradientError", "GradientReport", "Options",
    "assert_saved_bytes", "batch",
    "check_gradient", "check_rule", "clear_cache", "compile", "cuda", "device_array", "get_num_threads",
    "grad", "hessian", "hvp", "jacobian", "jvp", "opaque", "prange", "release_memory", "rule",
    "set_num_threads", "stop_gradient", "tangent_rule", "value_and_grad", "vjp",
]  # fmt: skip


def _import_compiler(*, cached: bool) -> None:
    """In a process's first compilation, while Python's collector rests."""
    modules = ("pipeline", "frontend.build", "codegen.module_to_llvm", "codegen.entries.entry")
    if all(f"{__name__}.compiler.{module}" in sys.modules for module in modules):
        return
    from .compiler.collection import without_collection
    from .runtime.import_cache import kept_dataclasses
    from .runtime.module_cache import kept_modules

    classes, code = kept_dataclasses(cached=cached), kept_modules(cached=cached)
    with without_collection(keeps=True), code, classes:
        for module in modules:
            import_module(f".compiler.{module}", __name__)


class _LazyCompiler:
    """The compiler, imported when something is to be compiled. Handed to the runtime."""

    def compile(
        self,
        function: Any,
        arguments: Any,
        overlaps: Any,
        mode: str,
        wrt: Any,
        options: dict[str, Any],
        captured: Any,
        wanted: Any = None,
        missing: Any = None,
    ) -> tuple[bytes, dict[str, Any]]:
        if options["target"].startswith("cuda:sm_") and not options.get("driver"):
            raise RuntimeError(not_called(options["target"], function, arguments))
        _import_compiler(cached=options["cache"])
        from .compiler import pipeline

        request = self._request(function, arguments, overlaps, mode, wrt, options, captured)
        artifact = pipeline.compile_request(request, wanted, missing)
        return artifact.object_code, artifact.metadata

    def watched(self, name: str) -> AbstractContextManager[None]:
        from .compiler.progress import shown

        return shown(name)

    def entries(self, convention: str, opt: int) -> tuple[bytes, dict[str, Any]]:
        from .compiler import pipeline
        from .runtime import target

        artifact = pipeline.compile_entries(convention, opt, target.chosen())
        return artifact.object_code, artifact.metadata

    def support(self, opt: int) -> tuple[bytes, dict[str, Any]]:
        from .compiler import pipeline
        from .runtime import target

        artifact = pipeline.compile_support(opt, target.chosen())
        return artifact.object_code, artifact.metadata

    def shared(self, asked: str, opt: int) -> tuple[bytes, dict[str, Any]]:
        from .compiler import pipeline
        from .runtime import target

        artifact = pipeline.compile_shared(asked, opt, target.chosen())
        return artifact.object_code, artifact.metadata

    def stage(
        self,
        stage: str,
        function: Any,
        arguments: Any,
        overlaps: Any,
        mode: str,
        wrt: Any,
        options: Any,
        captured: Any,
        values: Any = None,
    ) -> str:
        _import_compiler(cached=options["cache"])
        from .compiler import pipeline, receipts

        request = self._request(function, arguments, overlaps, mode, wrt, options, captured)
        return str(pipeline.run_stages(receipts.for_values(request, values), stage))

    def page(
        self,
        function: Any,
        arguments: Any,
        overlaps: Any,
        mode: str,
        wrt: Any,
        options: Any,
        captured: Any,
        values: Any,
        framed: bool,
    ) -> str:
        from .compiler.pages import browser_view

        request = self._request(function, arguments, overlaps, mode, wrt, options, captured)
        return browser_view.view_request(request, values, framed=framed)

    def dump(self, *asked: Any) -> str:
        from .compiler.stage_dumps import dump_frontend

        return dump_frontend(self._request(*asked))

    def check_differentiable(
        self,
        function: Any,
        arguments: Any,
        overlaps: Any,
        wrt: Any,
        options: Any,
        captured: Any,
        wanted: Any,
    ) -> None:
        _import_compiler(cached=options["cache"])
        from .compiler import pipeline

        args = function, arguments, overlaps, "gradient", wrt, options, captured
        pipeline.check_request(self._request(*args), wanted)

    def precision(self, *asked: Any) -> tuple[str, str]:
        from .compiler import precision

        return precision.precision_of(self._request(*asked))

    def explain(
        self,
        function: Any,
        arguments: Any,
        overlaps: Any,
        mode: str,
        wrt: Any,
        options: Any,
        captured: Any,
        values: Any,
        counts: Any = None,
    ) -> Any:
        from .compiler import receipts
        from .runtime import keys, step_replay

        request = self._request(function, arguments, overlaps, mode, wrt, options, captured)
        told = values, counts, step_replay.replay, keys.assumptions_hold
        return receipts.explain_request(request, *told)

    @staticmethod
    def _request(
        function: Any,
        arguments: Any,
        overlaps: Any,
        mode: str,
        wrt: Any,
        options: dict[str, Any],
        captured: Any,
    ) -> Any:
        from .compiler.request import Options, Request
        from .runtime import target

        single = len(wrt) == 1
        asked = {**options}
        device = asked.pop("target", "cpu").removeprefix("cpu").removeprefix("cuda:")
        launched = bool(asked.pop("driver", ""))
        chosen = Options(**asked, target=target.chosen(), device=device, launched=launched)
        return Request(function, arguments, overlaps, mode, wrt, single, chosen, captured)

    def __reduce__(self) -> str:
        return "_compiler"


_compiler = _LazyCompiler()


@overload
def compile(
    function: Callable[P, R], /, *, grad: Literal[True], **options: Unpack[Options]
) -> DifferentiableFunction[P, R]: ...
@overload
def compile(
    function: Callable[P, R], /, *, grad: Literal[False] = False, **options: Unpack[Options]
) -> CompiledFunction[P, R]: ...
@overload
def compile(
    function: Callable[P, R], /, *, grad: bool, **options: Unpack[Options]
) -> CompiledFunction[P, R]: ...
@overload
def compile(*, grad: Literal[True], **options: Unpack[Options]) -> _Differentiating: ...
@overload
def compile(*, grad: Literal[False] = False, **options: Unpack[Options]) -> _Compiling: ...
@concise
def compile(function: Any = None, /, *, grad: bool = False, **options: Unpack[Options]) -> Any:
    """Compile a function for the arguments of its calls; a decorator, with or without options.

    grad: the gradient methods exist, and the first call checks that they can be compiled.
    saves: "minimal" (the default), "fewest" (bytes, at any cost in time), "all", or "forbid" (a save is an
        error).
    memory: how many bytes a gradient may save, a number or "256MiB": if the plan needs more, loops are
        checkpointed and steps run again; ("1GiB", "disk:/scratch") uses a file as well.
    fastmath: the primal may contract and reassociate as well.
    boundscheck: False omits the checks of subscripts.
    cache: False does not use the disk cache.
    opt: LLVM's optimization level, 0 to 3.
    sanitize: "grad" raises FloatingPointError at the first cotangent or tangent that is not finite;
        `MUTAD_SANITIZE=grad` sets it for all functions.
    parallel: True runs independent iterations of loops, those of `prange`, and large maps in threads.
    deterministic: True forbids atomic additions on devices: two runs have the same bits.
    debug: debug information for debuggers and profilers; `MUTAD_DEBUG=1` sets it for all functions.
    target: "cpu", or "cuda:sm_90" (another sm_): kernels for such a device, which `inspect` shows;
        "cuda:host" runs the same kernels on the CPU, as a test.

    Of a function of numba's `jit` or `njit` the Python function is compiled, with its `fastmath`,
    `boundscheck` and `parallel` where they are not given here.
    """
    if grad not in (True, False):
        raise TypeError(f"grad={grad!r}: use True or False")
    check_options({**options})

    @concise
    def decorate(function: Any) -> Any:
        chosen = check_options({**options_of(function), **options})
        return compiled(function, chosen, _compiler, grad)

    return decorate if function is None else decorate(function)


class _Differentiating(Protocol):
    """What `compile(grad=True)` returns: a decorator."""

    def __call__(self, function: Callable[P, R], /) -> DifferentiableFunction[P, R]: ...


class _Compiling(Protocol):
    """What `compile()` returns: a decorator."""

    def __call__(self, function: Callable[P, R], /) -> CompiledFunction[P, R]: ...


def _with_gradient(function: Any) -> Any:
    """The function compiled with its gradient; keeps a compiled function's options."""
    if (taken := derivative_of(function)) is not None:
        raise TypeError(derived(*taken))
    if isinstance(function, BoundMethod | types.MethodType):
        return BoundMethod(_with_gradient(function.__func__), function.__self__)
    if isinstance(function, functools.partial):
        return partial_of(function, _with_gradient(function.func))
    if isinstance(function, Batched):
        return Batched(_with_gradient(function.function), function.in_axes)
    if isinstance(function, CompiledFunction | CompiledWrapper):
        if function.has_gradient:
            return function
        return compiled(function.__wrapped__, function.options, _compiler, True)
    return compile(function, grad=True)


@concise
def grad(
    function: Callable[..., Any], wrt: Any = 0, *others: Never, **unknown: Never
) -> Callable[..., Any]:
    """A function of `function`'s arguments that returns its gradient: `mutad.grad(f, wrt="u")(u, k)`.

    wrt: the name or position of a parameter, or a tuple of them, which gives a tuple of gradients.

    The gradient of an array has its shape and dtype, that of a number its type. TypeError if the result of
    `function` is not a float, or `wrt` names an int or a bool. A Python function is compiled with
    `grad=True`.
    """
    refuse_options("grad", unknown)
    refuse_arguments("grad", others, wrt)
    return Derivative("grad", _with_gradient(function), wrt)


@concise
def value_and_grad(
    function: Callable[..., Any], wrt: Any = 0, *others: Never, **unknown: Never
) -> Callable[..., Any]:
    """A function of `function`'s arguments that returns (its value, its gradient), of one run: see `grad`."""
    refuse_options("value_and_grad", unknown)
    refuse_arguments("value_and_grad", others, wrt)
    return Derivative("value_and_grad", _with_gradient(function), wrt)


@concise
def vjp(
    function: Callable[..., Any], wrt: Any = 0, *others: Never, **unknown: Never
) -> Callable[..., Any]:
    """A function of `function`'s arguments that returns (its result, `back`).

    `back(w)` is `w @ J`, with the shapes and dtypes of the arguments that `wrt` names: J is the Jacobian, and
    `w` has the form of the result. See `DifferentiableFunction.vjp`.
    """
    refuse_options("vjp", unknown)
    refuse_arguments("vjp", others, wrt)
    return Derivative("vjp", _with_gradient(function), wrt)


@concise
def jvp(function: Callable[..., Any], *others: Never) -> Callable[..., Any]:
    """A function of `function`'s arguments and `tangents=` that returns (its result, the tangent of that).

    The tangent is `J @ v`, in the form of the result: J is the Jacobian, and `tangents={"u": du}` gives `v`.
    See `DifferentiableFunction.jvp`.
    """
    refuse_arguments("jvp", others)
    return Derivative("jvp", _with_gradient(function), None)


@concise
def hvp(
    function: Callable[..., Any], wrt: Any = 0, *others: Never, **unknown: Never
) -> Callable[..., Any]:
    """A function of `function`'s arguments and `direction=` that returns its Hessian times the direction.

    Direction and product have the shape of the argument that `wrt` names; see `DifferentiableFunction.hvp`.
    """
    refuse_options("hvp", unknown)
    refuse_arguments("hvp", others, wrt)
    return Derivative("hvp", _with_gradient(function), wrt)


@concise
def hessian(
    function: Callable[..., Any], wrt: Any = 0, *others: Never, **unknown: Never
) -> Callable[..., Any]:
    """A function of `function`'s arguments that returns its Hessian, of shape `u.shape + u.shape`.

    See `DifferentiableFunction.hessian`.
    """
    refuse_options("hessian", unknown)
    refuse_arguments("hessian", others, wrt)
    return Derivative("hessian", _with_gradient(function), wrt)


@concise
def jacobian(
    function: Callable[..., Any], wrt: Any = 0, *others: Never, **unknown: Never
) -> Callable[..., Any]:
    """A function of `function`'s arguments that returns its Jacobian, of shape `result.shape + u.shape`.

    See `DifferentiableFunction.jacobian`.
    """
    refuse_options("jacobian", unknown)
    refuse_arguments("jacobian", others, wrt)
    return Derivative("jacobian", _with_gradient(function), wrt)


@concise
def batch(
    function: Callable[..., Any], in_axes: Any = 0, **unknown: Never
) -> Batched | Partial[..., Any]:
    """A function that maps `function` over an axis of its arguments; results are stacked along a first axis.

    in_axes: the axis of each argument, or None for arguments that all items share: one value for all
        arguments, a tuple with one for each, or a dict by name; missing names are shared. Arguments bound by
        a partial are shared.

    The items are computed one after another by one compiled loop. In-place updates of an item land in its
    slice; exceptions are those of the loop. Objects, lists and dicts are always shared.
    All derivatives exist: `grad` and `value_and_grad` have the gradient of each item's result, and for
    shared arguments the sum.
    """
    refuse_options("batch", unknown)
    if (taken := derivative_of(function)) is not None:
        raise TypeError(derived(*taken, f"mutad.batch(f).{taken[0]} has that of each item"))
    known = (CompiledFunction, Batched, Partial, CompiledWrapper)
    made: Any = function if isinstance(function, known) else compile(function, grad=True)
    if isinstance(made, Partial):
        axes = dict(zip(made.parameters, axes_of(made.parameters, in_axes), strict=True))
        return type(made)(batch(made.func, axes), *made.args, **made.keywords)
    if isinstance(made, CompiledWrapper):
        made = made.called_with(len(made.parameters), ())
    return Batched(made, in_axes)


@concise
def check_rule(
    function: Callable[..., Any], *args: Any, tolerance: float | None = None, seed: int = 0
) -> GradientReport:
    """Check the rule of a function at these arguments; raises GradientError, an AssertionError.

    Checked, in this order:

    - equal arguments give equal results: the function has no state that shows;
    - arrays that the rule does not declare to be overwritten stay as they are;
    - what is in arrays that it does not declare to be read makes no difference;
    - all that `check_gradient` checks, of a function that only calls this one: the cotangents of results and
      of the arrays' final values, which are in the shadows when the rule runs, so that a rule that overwrites
      a shadow where it should add is found; for all float arguments, and for each alone;
    - the same of two calls in a row; where there is a tangent rule, that it agrees with the rule.

    The compiler itself checks that the rule reads nothing which it does not declare to need, and that
    it stores to shadows only.

    Cannot see: what the function reads or writes beside its arguments (files, globals, memory that a C
    function keeps); declarations that only other arguments would break; stores that leave the same value; and
    all that `check_gradient` cannot see.
    """
    from .runtime import rule_check

    return rule_check.check_rule(compile, function, *args, tolerance=tolerance, seed=seed)


@concise
def __getattr__(name: str) -> Any:
    if name == "CompileError":
        from .compiler.diagnostics import CompileError

        return CompileError
    if name == "GradientError":
        from .runtime.agreement import GradientError

        return GradientError
    if name in ("GradientReport", "check_gradient"):
        from .runtime import gradient_check

        return getattr(gradient_check, name)
    instead = f": use {NAMES[name]}" if name in NAMES else ""
    message = f"module 'mutad' has no attribute {name!r}{instead}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])


def __dir__() -> list[str]:
    return sorted([*__all__, "__doc__", "__version__"])
