"""`match` as `if` and `elif`.

What is matched is evaluated once; a pattern is a test of it and some names bound to its parts::

    match point:                  subject$1 = point
        case (0, y):              if is_sequence(subject$1) and len(subject$1) == 2
            return y                      and subject$1[0] == 0:
        case (x, _) if x > 0:         y = subject$1[1]
            return x                  return y
        case _:                   elif is_sequence(subject$1) and len(subject$1) == 2
            return 0.0                    and subject$1[0] > 0:
                                      ...

Types are known while compiling, and so are such tests: only comparisons of numbers are left.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn, TypeVar

from ...diagnostics import CompileError
from .source import Source

ExpressionT = TypeVar("ExpressionT", bound=ast.expr)

SEQUENCE = 1 << 5
"""The flag of classes that sequence patterns match (`Py_TPFLAGS_SEQUENCE`)."""

MAPPING = 1 << 6
"""The flag of classes that mapping patterns match (`Py_TPFLAGS_MAPPING`)."""

SELF_MATCHING = ("bool", "float", "int", "str", "tuple")
"""Classes whose pattern `int(x)` binds what is matched itself."""


def plain(statements: Sequence[ast.stmt], source: Source) -> list[ast.stmt]:
    """The statements of a function without `match`."""
    return _Plain(source).block(statements)


@dataclass
class _Pattern:
    """When a pattern matches, and what it binds."""

    tests: list[ast.expr] = field(default_factory=list[ast.expr])
    bound: dict[str, ast.expr] = field(default_factory=dict[str, ast.expr])


class _Plain:
    def __init__(self, source: Source) -> None:
        self.source = source
        self.subjects = 0

    def block(self, statements: Sequence[ast.stmt]) -> list[ast.stmt]:
        done = list[ast.stmt]()
        for s in statements:
            match s:
                case ast.If():
                    made: ast.stmt = ast.If(s.test, self.block(s.body), self.block(s.orelse))
                    done.append(ast.copy_location(made, s))
                case ast.For():
                    made = ast.For(s.target, s.iter, self.block(s.body), self.block(s.orelse))
                    done.append(ast.copy_location(made, s))
                case ast.While():
                    made = ast.While(s.test, self.block(s.body), self.block(s.orelse))
                    done.append(ast.copy_location(made, s))
                case ast.Try():
                    done.append(self.attempted(s))
                case ast.Match():
                    done += self.matched(s)
                case _:
                    done.append(s)
        return done

    def attempted(self, s: ast.Try) -> ast.stmt:
        handlers = [
            ast.copy_location(ast.ExceptHandler(h.type, h.name, self.block(h.body)), h)
            for h in s.handlers
        ]
        body, orelse, final = (self.block(part) for part in (s.body, s.orelse, s.finalbody))
        return ast.copy_location(ast.Try(body, handlers, orelse, final), s)

    # match

    def matched(self, s: ast.Match) -> list[ast.stmt]:
        self.subjects += 1
        name = f"subject${self.subjects}"
        target = ast.copy_location(ast.Name(name, ast.Store()), s.subject)
        subject = ast.copy_location(ast.Name(name, ast.Load()), s.subject)
        chain = list[ast.stmt]()
        for case in reversed([part for c in s.cases for part in alternatives(c)]):
            pattern = self.pattern(case.pattern, subject)
            tests = [*pattern.tests]
            if case.guard is not None:
                tests.append(Bound(pattern.bound).visit(case.guard))
            body = [assigned(n, value, case.pattern) for n, value in pattern.bound.items()]
            body += self.block(case.body)
            if not tests:
                chain = body
                continue
            test = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
            test = ast.fix_missing_locations(ast.copy_location(test, case.pattern))
            chain = list[ast.stmt]([ast.copy_location(ast.If(test, body, chain), case.body[0])])
        evaluated = ast.copy_location(ast.Assign([target], s.subject), s.subject)
        return [evaluated, *chain]

    def pattern(self, p: ast.pattern, subject: ast.expr) -> _Pattern:
        found = _Pattern()
        match p:
            case ast.MatchValue(value):
                found.tests.append(placed(ast.Compare(subject, [ast.Eq()], [value]), p))
            case ast.MatchSingleton(value):
                wanted = constant(value, p)
                compared: ast.cmpop = ast.Is()
                if value is not None:  # a `bool` of Python's, not one of NumPy's
                    found.tests.append(call(isinstance, [subject, constant(bool, p)], p))
                    compared = ast.Eq()
                found.tests.append(placed(ast.Compare(subject, [compared], [wanted]), p))
            case ast.MatchAs(None, name):
                if name is not None:
                    found.bound[name] = subject
            case ast.MatchAs(pattern, str(name)) if pattern is not None:
                found = self.pattern(pattern, subject)
                found.bound[name] = subject
            case ast.MatchOr(patterns):
                self.either([self.pattern(part, subject) for part in patterns], p, found)
            case ast.MatchSequence(patterns):
                self.sequence(p, patterns, subject, found)
            case ast.MatchMapping(keys, patterns, rest):
                if rest is not None:
                    self.refuse(p, "`**` in a pattern is not compiled")
                found.tests.append(call(is_mapping, [subject], p))
                for key, part in zip(keys, patterns, strict=True):
                    found.tests.append(placed(ast.Compare(key, [ast.In()], [subject]), p))
                    self.part(part, placed(ast.Subscript(subject, key, ast.Load()), part), found)
            case ast.MatchClass():
                self.attributes(p, subject, found)
            case _:
                self.refuse(p, "this pattern is not compiled")
        return found

    def either(self, parts: list[_Pattern], p: ast.pattern, found: _Pattern) -> None:
        """Alternatives: what a name is bound to depends on which of them matches."""
        tests = [conjunction(part.tests, p) for part in parts]
        if all(part.tests for part in parts):
            found.tests.append(placed(ast.BoolOp(ast.Or(), tests), p))
        for name, value in parts[-1].bound.items():
            for part, test in zip(parts[-2::-1], tests[-2::-1], strict=True):
                value = placed(ast.IfExp(test, part.bound[name], value), p)
            found.bound[name] = value

    def attributes(self, p: ast.MatchClass, subject: ast.expr, found: _Pattern) -> None:
        """`Point(0, y)`, `Point(x=0)`: an instance, and patterns of its attributes."""
        cls = p.cls
        found.tests.append(call(isinstance, [subject, cls], p))
        if len(p.patterns) == 1 and isinstance(cls, ast.Name) and cls.id in SELF_MATCHING:
            self.part(p.patterns[0], subject, found)
        else:
            for k, part in enumerate(p.patterns):
                at = [subject, cls, constant(k, part)]
                self.part(part, call(positional_attribute, at, part), found)
        for name, part in zip(p.kwd_attrs, p.kwd_patterns, strict=True):
            found.tests.append(call(hasattr, [subject, constant(name, part)], part))
            self.part(part, placed(ast.Attribute(subject, name, ast.Load()), part), found)

    def sequence(
        self, p: ast.pattern, patterns: Sequence[ast.pattern], subject: ast.expr, found: _Pattern
    ) -> None:
        found.tests.append(call(is_sequence, [subject], p))
        stars = [k for k, part in enumerate(patterns) if isinstance(part, ast.MatchStar)]
        fixed = len(patterns) - len(stars)
        compared: ast.cmpop = ast.GtE() if stars else ast.Eq()
        length = constant(fixed, p)
        found.tests.append(placed(ast.Compare(call(len, [subject], p), [compared], [length]), p))
        for k, part in enumerate(patterns):
            if isinstance(part, ast.MatchStar):
                if part.name is not None:
                    after = k + 1 - len(patterns)
                    stop = constant(after, part) if after else None
                    middle = placed(ast.Slice(constant(k, part), stop), part)
                    items = placed(ast.Subscript(subject, middle, ast.Load()), part)
                    found.bound[part.name] = call(list, [items], part)
                continue
            place = k if not stars or k < stars[0] else k - len(patterns)
            index = constant(place, part)
            self.part(part, placed(ast.Subscript(subject, index, ast.Load()), part), found)

    def part(self, p: ast.pattern, subject: ast.expr, found: _Pattern) -> None:
        inner = self.pattern(p, subject)
        found.tests += inner.tests
        found.bound |= inner.bound

    def refuse(self, p: ast.pattern, message: str) -> NoReturn:
        raise CompileError(self.source.span(p), message, "use if and elif")


def alternatives(case: ast.match_case) -> list[ast.match_case]:
    """A case whose alternatives bind names, as cases of its own: what they bind need not be of one type.

    With a guard it stays one case, for a guard that fails ends it.
    """
    if not isinstance(case.pattern, ast.MatchOr) or case.guard is not None:
        return [case]
    binding = ast.MatchAs | ast.MatchStar | ast.MatchMapping
    if not any(isinstance(part, binding) for part in ast.walk(case.pattern)):
        return [case]
    return [
        ast.match_case(part, None, copy.deepcopy(case.body) if k else case.body)
        for k, part in enumerate(case.pattern.patterns)
    ]


class Bound(ast.NodeTransformer):
    """Reads what a pattern binds from where it is: a guard runs before anything is bound."""

    def __init__(self, bound: dict[str, ast.expr]) -> None:
        self.bound = bound

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.bound.get(node.id, node)


def is_sequence(value: object) -> bool:
    """What CPython asks of the subject of a sequence pattern. (NumPy's arrays are one since 2.5.)"""
    return bool(type(value).__flags__ & SEQUENCE)


def is_mapping(value: object) -> bool:
    """What CPython asks of the subject of a mapping pattern."""
    return bool(type(value).__flags__ & MAPPING)


def positional_attribute(value: object, cls: type, k: int) -> object:
    """What a pattern of the class matches at place `k`."""
    return getattr(value, cls.__match_args__[k])  # pyright: ignore[reportAttributeAccessIssue]


def conjunction(tests: list[ast.expr], like: ast.pattern) -> ast.expr:
    if not tests:
        return constant(True, like)
    return tests[0] if len(tests) == 1 else placed(ast.BoolOp(ast.And(), tests), like)


def call(function: object, arguments: list[ast.expr], like: ast.AST) -> ast.expr:
    """A call of a builtin, whatever its name means in the program."""
    return placed(ast.Call(constant(function, like), arguments, []), like)


def constant(value: Any, like: ast.AST) -> ast.expr:
    return placed(ast.Constant(value), like)


def assigned(name: str, value: ast.expr, like: ast.AST) -> ast.stmt:
    target = placed(ast.Name(name, ast.Store()), like)
    made = ast.Assign([target], value)
    return ast.copy_location(made, like)


def placed(node: ExpressionT, like: ast.AST) -> ExpressionT:
    return ast.copy_location(node, like)
