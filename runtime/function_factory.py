"""Compiled functions of functions, methods, partials, and of what decorators make."""

from __future__ import annotations

import functools
import types
from typing import Any

from . import wrappers
from .bound import BoundMethod, partial_of
from .compiler_protocol import Compiler
from .differentiable_function import DifferentiableFunction
from .function import CompiledFunction
from .variadic import CompiledWrapper, is_variadic


def compiled(
    function: Any, options: dict[str, Any], compiler: Compiler, with_gradient: bool
) -> Any:
    """A compiled function with a class of its own: of the function that a callable only runs.

    Of a method, one that is bound to the same object; of a partial, one with the same arguments; of what
    `staticmethod` and `classmethod` make, the same of the compiled function.
    """
    match function:
        case types.MethodType() | BoundMethod():
            inner = compiled(function.__func__, options, compiler, with_gradient)
            return BoundMethod(inner, function.__self__)
        case functools.partial():
            inner = compiled(function.func, options, compiler, with_gradient)
            return partial_of(function, inner)
        case staticmethod():
            return staticmethod(compiled(function.__func__, options, compiler, with_gradient))
        case classmethod():
            return ClassMethod(compiled(function.__func__, options, compiler, with_gradient))
        case _ if is_variadic(wrappers.plain(function)):
            return CompiledWrapper(
                wrappers.plain(function), lambda f: compiled(f, options, compiler, with_gradient)
            )
        case _:
            base = DifferentiableFunction if with_gradient else CompiledFunction
            own = type(base.__name__, (base,), {"__module__": __name__, "__doc__": None})
            return own(wrappers.plain(function), options, compiler, compiled)


class ClassMethod(classmethod):  # pyright: ignore[reportMissingTypeArgument]
    """Binds a compiled function to classes: since Python 3.13 `classmethod` itself asks nobody how."""

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return BoundMethod(self.__func__, type(instance) if owner is None else owner)
