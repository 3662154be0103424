"""A `numpy.random.Generator` as a value: its methods draw (`library.random`)."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from xdsl.ir import SSAValue

from ..calling.special_calls import Member, MemberMethod
from ..library import creation, random
from ..values import Static, Value

if TYPE_CHECKING:
    from ..calling.calls import Calls


@dataclass(frozen=True)
class Method:
    """How a method is called: its parameters, how many of them are needed, and its lowering."""

    parameters: tuple[str, ...]
    needed: int
    lower: Callable[..., Value]


METHODS: dict[str, Method] = {
    "random": Method(("size", "dtype", "out"), 0, random.uniform_draws),
    "standard_normal": Method(("size", "dtype", "out"), 0, random.normal_draws),
    "standard_exponential": Method(
        ("size", "dtype", "method", "out"), 0, random.standard_exponential
    ),
    "normal": Method(("loc", "scale", "size"), 0, random.normal),
    "uniform": Method(("low", "high", "size"), 0, random.uniform),
    "exponential": Method(("scale", "size"), 0, random.exponential),
    "integers": Method(("low", "high", "size", "dtype", "endpoint"), 1, random.integers),
    "shuffle": Method(("x", "axis"), 1, random.shuffle),
    "permutation": Method(("x", "axis"), 1, random.permutation),
    "choice": Method(("a", "size", "replace", "p"), 1, random.choice),
}


@dataclass(frozen=True)
class Generator(Member):
    """The generator that is an argument: which, and where its state is."""

    number: int
    state: SSAValue = field(compare=False)
    described = "a random generator"

    @property
    def type(self) -> type:
        return np.random.Generator

    def read(self, lowering: Calls, attribute: str, node: ast.AST) -> Value:
        if attribute not in METHODS:
            names = ", ".join(METHODS)
            raise lowering.refusal(
                node,
                f"`.{attribute}` of a random generator is not compiled",
                f"draw outside of compiled code, and pass the array ({names} are compiled)",
            )
        return Static(Draw(self, attribute))


@dataclass(frozen=True)
class Draw(MemberMethod):
    """`rng.normal` before its call."""

    generator: Generator
    name: str

    def call(self, lowering: Calls, args: list[Value], kwargs: dict[str, Value]) -> Value:
        method = METHODS[self.name]
        given = creation.bound(
            lowering.e, f"rng.{self.name}", method.parameters, args, kwargs, method.needed
        )
        values = [given.get(name) for name in method.parameters]
        return method.lower(lowering.e, self.generator.state, *values)
