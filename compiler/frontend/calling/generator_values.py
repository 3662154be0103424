"""Generators as values: a generator that nobody has asked for items is its function and its arguments.

    g = parts(x, 0.5)           g: parts, with the arguments x and 0.5; nothing runs
    s = total(g)                handed on
    for v in g: ...             here its body runs, the loop's body in the place of `yield`

So a name, an argument or a result may be a generator, of a function of the program's or one of `itertools`.
It is consumed once, and in the block that made it: CPython's object would be exhausted the second time, and
what is left of it after a `break` is not kept.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from inspect import isgeneratorfunction
from types import FunctionType, GeneratorType
from typing import TYPE_CHECKING, Any

from xdsl.ir import Block

from ..data.records import Method
from ..frames import LocalFunction
from ..syntax import comprehensions
from ..values import Static, Value
from . import standard_iterators
from .special_calls import Member

if TYPE_CHECKING:
    from .calls import Calls

GeneratorFunction = FunctionType | LocalFunction


@dataclass(eq=False)
class Pending(Member):
    """A generator before its first item."""

    function: GeneratorFunction
    args: list[Value]
    kwargs: dict[str, Value] = field(default_factory=dict[str, Value])
    made: Block | None = None
    """Where it was made, and has to be consumed."""
    place: Any = None
    """Where in the program that is: for the next build."""

    described = "a generator"

    @property
    def type(self) -> type:
        return GeneratorType

    def read(self, lowering: Any, attribute: str, node: ast.AST) -> Value:
        from . import coroutines

        refusal = lowering.refusal(node, f"`.{attribute}` of a generator is not compiled")
        coroutines.again(lowering, self.place, refusal)


def is_generator(found: object) -> bool:
    """True for a generator function, nested ones and methods included."""
    match found:
        case LocalFunction():
            return comprehensions.is_generator(found.node)
        case Method():
            return isgeneratorfunction(found.function)
        case _:
            return isinstance(found, FunctionType) and isgeneratorfunction(found)


def pending(
    lowering: Calls, function: GeneratorFunction, args: list[Value], kwargs: dict[str, Value]
) -> Value:
    """The generator that a call of its function makes."""
    from . import coroutines

    place = coroutines.place_here(lowering, function)
    if coroutines.is_stepped(lowering, place):
        return coroutines.start(lowering, function, args, kwargs, place)
    return Static(Pending(function, args, kwargs, lowering.homes[-1], place))


def pending_of(value: object) -> Pending | None:
    """The generator that a value is."""
    found = value.object if isinstance(value, Static) else None
    return found if isinstance(found, Pending) else None


def consume(lowering: Any, generator: Pending, node: ast.AST) -> None:
    """The generator is asked for all its items, here."""
    from . import coroutines

    if generator.made is not lowering.homes[-1]:
        refusal = lowering.refusal(
            node,
            "a generator is consumed in another place than it was made, or twice",
            "make a list of it, or make it anew where it is consumed",
        )
        coroutines.again(lowering, generator.place, refusal)
    generator.made = None


def consumer_key(
    function: object, own: ast.FunctionDef, file: str, node: ast.AST
) -> tuple[ast.AST, object]:
    """By what a generator function made to consume its items is known. What visits them is one function for
    all loops, so that a recursive generator is a recursive function; ours end while compiling."""
    if function in comprehensions.VISITING and file != standard_iterators.__file__:
        return own, function
    return node, own


def written(node: ast.GeneratorExp) -> ast.FunctionDef:
    """A generator expression as the generator function that it is, of what its first loop runs over."""
    first, *_ = node.generators
    given = ast.copy_location(ast.Name("outer$0", ast.Load()), first.iter)
    item = ast.copy_location(ast.Expr(ast.copy_location(ast.Yield(node.elt), node.elt)), node.elt)
    body: list[ast.stmt] = [item]
    for generator in reversed(node.generators):
        for test in reversed(generator.ifs):
            body = [ast.copy_location(ast.If(test, body, []), test)]
        over = given if generator is first else generator.iter
        loop = ast.For(generator.target, over, body, [])
        body = [ast.copy_location(loop, generator.target)]
    only = ast.copy_location(ast.arg("outer$0"), first.iter)
    parameters = ast.arguments([], [only], None, [], [], None, [])
    made = ast.FunctionDef("<genexpr>", parameters, body, [])
    vars(made)["type_params"] = []  # a field in Python 3.12 and later
    return ast.copy_location(made, node)
