"""`check_rule`: does a function do what its rule declares, and is the rule its adjoint?"""

from __future__ import annotations

import linecache
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import keys, memory, rules, wrappers
from .agreement import GradientError, same
from .function import CompiledFunction
from .gradient_check import GradientReport, check_gradient


def check_rule(
    compile_: Callable[..., CompiledFunction],
    function: Any,
    *args: Any,
    tolerance: float | None = None,
    seed: int = 0,
) -> GradientReport:
    """Check the rule of a function at these arguments (`mutad.check_rule`, which passes `compile_`)."""
    rule = rules.rule_of(function)
    if rule is None:
        raise TypeError(f"{name_of(function)} has no rule: give it one with mutad.rule")
    check = _Check(function, rule, args, np.random.default_rng(seed))
    check.is_repeatable()
    check.overwrites()
    check.reads()
    once = compile_(caller(rule.function, len(args), 1), grad=True)
    floats = [k for k, v in enumerate(args) if keys.is_active_key(keys.argument_key(v, f"p{k}"))]
    if not floats:
        raise TypeError("no argument is a float or an array of floats: there is nothing to check")
    report = check_gradient(once, *args, tolerance=tolerance, seed=seed)
    for position in floats if len(floats) > 1 else ():
        wrt = f"p{position}"
        check_gradient(once, *args, wrt=wrt, tolerance=tolerance, seed=seed, second=False)
    twice = compile_(caller(rule.function, len(args), 2), grad=True)
    check_gradient(twice, *args, tolerance=tolerance, seed=seed, second=False)
    return report


def name_of(function: Any) -> str:
    return getattr(function, "__name__", repr(function))


def caller(function: Any, count: int, times: int) -> types.FunctionType:
    """A Python function that calls `function` with its own arguments, and returns what it returns."""
    names = ", ".join(f"p{k}" for k in range(count))
    calls = [f"    r{k} = function({names})\n" for k in range(times)]
    results = ", ".join(f"r{k}" for k in range(times))
    source = f"def call({names}):\n{''.join(calls)}    return {results}\n"
    file = f"<mutad: check_rule of {name_of(function)}, {id(function):x}, {count}, {times}>"
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace: dict[str, Any] = {"function": function, "__name__": "check_rule"}
    exec(compile(source, file, "exec"), namespace)
    made: types.FunctionType = namespace["call"]
    made.__qualname__ = f"the rule of {name_of(function)}"
    return made


class _Check:
    """What can be seen of the function without its rule."""

    def __init__(
        self, function: Any, rule: rules.Rule, args: Sequence[Any], rng: np.random.Generator
    ) -> None:
        self.function = wrappers.plain(function)
        self.rule, self.args, self.rng = rule, tuple(args), rng
        self.names = dict(enumerate(rule.parameters[: len(args)]))
        self.overlaps = keys.overlaps_of(self.args)
        self.outcome = self.run(self.fresh())

    def fresh(self) -> tuple[Any, ...]:
        return memory.copies(self.args, self.overlaps)

    def run(self, values: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
        """What the function returns, and its arguments afterwards."""
        return self.function(*values), values

    def is_repeatable(self) -> None:
        """Equal arguments, equal results."""
        result, values = self.run(self.fresh())
        try:
            same(self.outcome[0], result, "the result of a second call with equal arguments")
            same(self.outcome[1], values, "the arguments after a second call with equal ones")
        except GradientError as error:
            raise GradientError(
                f"{name_of(self.function)} has a state of its own: {error}"
            ) from None

    def overwrites(self) -> None:
        """Arrays that are not declared to be overwritten stay as they are."""
        declared = self.rule.overwrites
        if declared is None and isinstance(self.function, types.FunctionType):
            return  # The compiler sees for itself.
        for k, (before, after) in enumerate(zip(self.args, self.outcome[1], strict=True)):
            if not isinstance(before, np.ndarray) or self.names[k] in (declared or ()):
                continue
            if not np.array_equal(before, after, equal_nan=before.dtype.kind == "f"):
                raise GradientError(
                    f"{name_of(self.function)} stores to {self.names[k]!r}, which its rule does not "
                    f"declare: overwrites={self.names[k]!r}"
                )

    def reads(self) -> None:
        """What arrays that are not declared to be read hold makes no difference."""
        if self.rule.reads is None:
            return
        for k, value in enumerate(self.args):
            if not isinstance(value, np.ndarray) or self.names[k] in self.rule.reads:
                continue
            values = self.fresh()
            values[k][...] = self.rng.permutation(value.ravel()).reshape(value.shape) + 1
            result, after = self.run(values)
            others = [
                i
                for i in range(len(values))
                if i != k or self.names[k] in (self.rule.overwrites or ())
            ]
            try:
                same(self.outcome[0], result, "the result")
                for i in others:
                    same(self.outcome[1][i], after[i], f"argument {self.names[i]!r} afterwards")
            except GradientError as error:
                raise GradientError(
                    f"{name_of(self.function)} reads {self.names[k]!r} (or leaves a part of it), which its "
                    f"rule does not declare: {error}"
                ) from None
