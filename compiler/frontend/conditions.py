"""Conditions: truth, `and` and `or`, conditional expressions, and what a test tells about names."""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import Block, Operation
from xdsl.traits import Pure

from . import choices, scalars
from .calling import star_arguments, written
from .context import same_binding
from .data import lists, protocols
from .data.constructing import Constructing
from .data.fields import fields_in, record_in
from .data.list_access import ListAccess
from .frames import VALUE, Unready
from .joins import Maybe
from .syntax.liveness import Names, assigned
from .values import (
    Choice,
    Record,
    Scalar,
    Static,
    Struct,
    Tuple,
    Value,
)

OPPOSITE = {"Lt": "GtE", "LtE": "Gt", "Gt": "LtE", "GtE": "Lt", "NotEq": "Eq", "Eq": "NotEq"}
MIRRORED = {"Lt": "Gt", "LtE": "GtE", "Gt": "Lt", "GtE": "LtE", "Eq": "Eq"}


class Conditions(Constructing, ListAccess):
    """Lowers what is evaluated only where something else is true."""

    def values_of(self, nodes: Sequence[ast.expr]) -> list[Value]:
        """The values of expressions, of starred ones of each item."""
        values = list[Value]()
        for node in nodes:
            if isinstance(node, ast.Starred):
                values += star_arguments.items(self, node, self.expression(node.value))
            else:
                values.append(self.expression(node))
        return values

    def test(self, node: ast.expr) -> Scalar:
        """The truth of an expression, as `if` and `while` ask it."""
        with self.located(node):
            if isinstance(node, ast.BoolOp):
                return self.truth(self.bool_op(node.op, node.values, self.test))
            return self.truth(self.expression(node))

    def truth(self, value: Value) -> Scalar:
        """`bool(value)`: of what has a length, whether that is 0."""
        if isinstance(value, Choice):
            found = choices.each(self, value, self.truth)
            assert isinstance(found, Scalar)
            return found
        if isinstance(value, Record | Struct):
            return protocols.truth(self, value)
        asked = isinstance(value, Static) and isinstance(value.object, np.dtype)
        if isinstance(value, Static) and (asked or written.is_callable(value)):
            return self.e.constant(bool(value.object), "py_bool")
        count = self.count_of(value)
        return scalars.truth(self.e, value if count is None else count)

    def count_of(self, value: Value) -> Scalar | None:
        """`len(value)` of a list, a range, and of what is known while compiling; None of anything else."""
        if isinstance(value, Static) and getattr(value.object, "bounds", None) is not None:
            return value.object.count
        if (seq := self.list_of(value)) is not None:
            return lists.length(self.e, seq)
        if isinstance(value, Static) and isinstance(value.object, str | enum.EnumMeta):
            return self.e.constant(len(value.object), "py_int")
        return self.e.constant(len(value.items), "py_int") if isinstance(value, Tuple) else None

    def bool_op(
        self, op: ast.boolop, nodes: Sequence[ast.expr], value: Callable[[ast.expr], Value]
    ) -> Value:
        """`a and b`: the `value` of the operand that decides."""
        first = value(nodes[0])
        if len(nodes) == 1:
            return first
        word = "and" if isinstance(op, ast.And) else "or"
        return self.both(
            word,
            first,
            lambda: self.refined(
                nodes[0], word == "and", lambda: self.bool_op(op, nodes[1:], value)
            ),
            assigned(*nodes[1:]),
            nodes[1],
        )

    def both(
        self,
        word: str,
        first: Value,
        second: Callable[[], Value],
        names: Names,
        place: ast.AST,
    ) -> Value:
        """`first and second()` or `first or second()`; the second is evaluated only where it decides.

        `names` are those that the second, which begins at `place`, may bind.

        Where both are bools and the second is cheap code that cannot raise, both are evaluated.
        """
        test = self.truth(first)
        if test.constant is not None:
            return second() if test.constant == (word == "and") else first

        def keep() -> Value:
            return first

        key = self.frame.place, id(place)
        if names or key in self.facts.asking:
            return self.chosen(test, (second, keep) if word == "and" else (keep, second), names)
        block, before = Block(), dict(self.frame.env)
        frame, depth, dead, arm = self.frame, len(self.calls), self.dead, self.arm_block
        self.arm_block = block
        try:
            with self.e.at(block), self.catching.scope(frozenset({VALUE})) as scope:
                self.frame.env[VALUE] = second()
        except Unready:
            for op in block.walk():  # nothing is left of them
                op.operands = ()
            self.frame, self.frame.env = frame, before
            self.dead, self.arm_block = dead, arm
            del self.calls[depth:]
            return self.chosen(test, (second, keep) if word == "and" else (keep, second))
        self.arm_block = arm
        value = self.frame.env.pop(VALUE)
        assert not isinstance(value, Maybe)
        if any(not same_binding(b, before.get(n)) for n, b in fields_in(self.frame.env).items()):
            self.facts.asking.add(key)
            self.facts.changed = True
        self.frame.env = before
        ops = list(block.ops)

        def spliced() -> Value:
            for op in ops:
                op.detach()
                self.e.block.add_op(op)
            self.catching.announce(scope.pending)
            return value

        match first, value:
            case Scalar("py_bool" | "b1" as kind), Scalar(other) if kind == other and all(
                map(is_speculatable, ops)
            ):
                spliced()
                return self.conjunction(word, first, value)
            case _:
                pass
        return self.chosen(test, (spliced, keep) if word == "and" else (keep, spliced))

    def conjunction(self, word: str, a: Scalar, b: Scalar) -> Scalar:
        for known, other in ((a, b), (b, a)):
            if known.constant is not None:
                return other if bool(known.constant) == (word == "and") else known
        op = arith.AndIOp if word == "and" else arith.OrIOp
        return Scalar(a.type, self.e.emit(op(a.ssa, b.ssa)), None, 0, 1)

    # What a test tells of the names in it

    def refined(self, test: ast.expr, outcome: bool, run: Callable[[], Value]) -> Value:
        """`run()` where `test` came out as `outcome`."""
        before = dict(self.frame.env)
        self.refine(test, outcome)
        value = run()
        for name, binding in before.items():
            now = self.frame.env.get(name)
            same = (
                isinstance(now, Scalar) and isinstance(binding, Scalar) and now.ssa is binding.ssa
            )
            narrowed = isinstance(binding, Choice) and any(now is o for o in binding.options)
            if same or narrowed:
                self.frame.env[name] = binding
        return value

    def refine(self, test: ast.expr, outcome: bool) -> None:
        """Narrow the ranges of the ints that `test` compared."""
        match test:
            case ast.UnaryOp(ast.Not(), operand):
                self.refine(operand, not outcome)
            case ast.Compare(
                ast.Name() | ast.Attribute() as tested,
                [ast.Is() | ast.IsNot() as op],
                [ast.Constant(None)],
            ):
                self.narrow_none(tested, isinstance(op, ast.Is) is outcome)
            case ast.Name() | ast.Attribute() if outcome:
                self.narrow_none(test, False)
            case ast.BoolOp(op, values) if isinstance(op, ast.And) == outcome:
                for value in values:
                    self.refine(value, outcome)
            case ast.Compare(left, ops, comparators) if outcome or len(ops) == 1:
                for lhs, op, rhs in zip([left, *comparators], ops, comparators, strict=False):
                    name = type(op).__name__ if outcome else OPPOSITE.get(type(op).__name__)
                    if name in MIRRORED:
                        self.narrow(lhs, name, self.observed.get(rhs))
                        self.narrow(rhs, MIRRORED[name], self.observed.get(lhs))
            case _:
                pass

    def narrow_none(self, node: ast.expr, is_none: bool) -> None:
        name = self.place_of(node)
        value = None if name is None else self.frame.env.get(name)
        if name is not None and isinstance(value, Choice):
            self.frame.env[name] = choices.narrowed(value, is_none)

    def place_of(self, node: ast.expr) -> str | None:
        """Under which name the frame keeps a variable or a field; None for anything else."""
        match node:
            case ast.Name(name):
                return name
            case ast.Attribute(owner, key):
                place = self.place_of(owner)
                record = None if place is None else record_in(self.frame.env.get(place))
                return None if record is None else self.objects.known_name(record, key)
            case _:
                return None

    def narrow(self, node: ast.expr, op: str, bound: Value | None) -> None:
        if not isinstance(node, ast.Name) or node.id not in self.frame.locals:
            return
        value = self.frame.env.get(node.id)
        if not isinstance(value, Scalar) or value.type != "py_int" or value.constant is not None:
            return
        if not isinstance(bound, Scalar) or bound.type != "py_int":
            return
        low, high = value.low, value.high
        if op in ("Lt", "LtE", "Eq"):
            high = min(high, bound.high - (op == "Lt"))
        if op in ("Gt", "GtE", "Eq"):
            low = max(low, bound.low + (op == "Gt"))
        if low <= high:
            self.frame.env[node.id] = replace(value, low=low, high=high)


def is_speculatable(op: Operation) -> bool:
    """Cheap and pure: may run where Python would not have evaluated it."""
    return op.has_trait(Pure) and not op.regions and op.name.startswith(("arith.", "array.cast"))
