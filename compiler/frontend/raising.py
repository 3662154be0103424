"""`raise`, `assert` and `try`."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import SSAValue

from ...dialects import array
from . import exceptions, scalars
from .calling import context_managers
from .calling.calls import Calls
from .catching import STRIDE
from .catching_scopes import Arm, Attempt, Branch, Caught, Scope
from .frames import RESULT
from .joins import Maybe
from .syntax.liveness import Names, assigned, reads
from .syntax.trying import Guarded, inner
from .values import IR_TYPE, NoneValue, Scalar, Static, Tuple, Value


class Raising(Calls):
    """Lowers statements that raise and that catch."""

    @abstractmethod
    def shown(self, value: Value, *, quoted: bool) -> tuple[str, list[Scalar]]:
        """How `str` (or `repr`, when quoted) shows a value: a format and its operands."""

    @abstractmethod
    def statement(self, s: ast.stmt) -> None:
        """Lower one statement."""

    def assert_statement(self, s: ast.Assert) -> None:
        condition = self.test(s.test)
        failed = scalars.unary(self.e, "Not", condition)
        self.raise_if(failed.ssa, self.assertion(s.msg, s), s)
        self.refine(s.test, True)

    def raise_if(self, condition: SSAValue, one: exceptions.What, s: ast.stmt) -> None:
        if any(isinstance(v.type, MemRefType) for v in one.shown):
            what = "an array in the message of an exception is not compiled"
            raise self.refusal(s, what, "show numbers of it: x[0], x.max(), x.shape[0]")
        self.e.insert(array.RaiseIfOp(condition, one.exception, one.message, one.shown))

    def assertion(self, message: ast.expr | None, s: ast.stmt) -> exceptions.What:
        """What an `assert` raises."""
        if message is None:
            return exceptions.What("AssertionError", "", ())
        if isinstance(message, ast.JoinedStr | ast.Call):
            text, shown = self.text(message)
        else:
            value = self.expression(message)
            if isinstance(value, Scalar | NoneValue | Tuple):
                made = exceptions.Made(AssertionError, (value,))
                return exceptions.what(self, made, None, (), s)
            text, shown = self.shown(value, quoted=False)
        return exceptions.What("AssertionError", text, tuple(v.ssa for v in shown))

    # raise

    def raise_statement(self, s: ast.Raise) -> None:
        caught = self.caught_exception(s)
        if caught is not None:
            cause = s.cause and exceptions.only_cause(self, s.cause)
            if cause is None:
                self.catching.raise_again(caught.attempt, caught.raises)
                return
            recipe, own = cause
            again = [exceptions.caused(one, recipe) for one in caught.raises]
            self.catching.raise_again(caught.attempt, again, own)
            return
        self.raise_when(self.e.constant(True, "py_bool"), s)
        self.dead = True

    def caught_exception(self, s: ast.stmt) -> Caught | None:
        """What `raise`, or `raise e` of what a handler caught, raises again."""
        match s:
            case ast.Raise(None):
                for frame, caught in reversed(self.handling):
                    if frame is self.frame:
                        return caught
                raise self.refusal(
                    s, "`raise` without an exception is compiled in an `except` clause only"
                )
            case ast.Raise(ast.Name(name)) if self.is_caught_exception(name):
                bound = self.frame.env[name]
                assert isinstance(bound, Static)
                return bound.object
            case _:
                return None

    def is_caught_exception(self, name: str) -> bool:
        """True for a name that `except ... as name` binds."""
        bound = self.frame.env.get(name)
        return isinstance(bound, Static) and isinstance(bound.object, Caught)

    def raise_when(self, condition: Scalar, s: ast.stmt) -> None:
        """`raise Exception("message")` where `condition` holds."""
        assert isinstance(s, ast.Raise)
        assert s.exc is not None
        value = self.expression(s.exc)
        found: object = value.object if isinstance(value, Static) else None
        if isinstance(found, type) and issubclass(found, BaseException):
            called = ast.copy_location(ast.Call(s.exc, [], []), s)
            value = exceptions.made(self, found, [], {}, called)
            found = value.object if isinstance(value, Static) else None
        if not isinstance(found, exceptions.Made) or not issubclass(found.cls, Exception):
            raise self.refusal(
                s,
                "this `raise` is not compiled",
                'raise an exception: raise ValueError("message")',
            )
        for here, cause, own in exceptions.causes(self, s.cause):
            one = exceptions.what(self, found, cause, own, s)
            both = condition.ssa
            if here is not None:
                both = self.e.emit(arith.AndIOp(both, here))
            self.raise_if(both, one, s)

    # try

    def try_statement(self, s: ast.Try) -> None:
        """`try ... except ... else`."""
        kinds = [self.classes_of(h) for h in s.handlers]
        bodies = [list(h.body) for h in s.handlers]
        keeps = any(is_kept(h, body) for h, body in zip(s.handlers, bodies, strict=True))
        attempt = self.new_attempt(s, kinds, keeps=keeps)
        names = assigned(*s.body) & self.frame.liveness.done[s]
        with self.catching.attempt(attempt, names) as scope:
            self.block(s.body)
            bound = [n for n, b in self.frame.env.items() if not isinstance(b, Maybe)]
            only = self.catching.only_branch(scope, attempt)
        if not attempt.raises:
            self.forget(attempt)
            self.leave_out(*s.handlers)
            if not self.dead:
                self.block(s.orelse)
            return
        used = sorted({r.handler for r in attempt.raises})
        self.leave_out(*(h for k, h in enumerate(s.handlers) if k not in used))
        live = self.frame.liveness.after[s]
        changed = assigned(s)
        after = frozenset(changed & live) | {RESULT}

        def handle(left: Sequence[int]) -> None:
            if len(left) == 1:
                self.handler(s.handlers[left[0]], Caught(attempt, left[0]))
                return
            which = self.e.load(attempt.cell)
            bound = self.e.index((left[0] + 2) * STRIDE)
            first = Scalar("py_bool", self.e.emit(arith.CmpiOp(which, bound, "slt")))
            self.conditional(first, (lambda: handle(left[:1]), lambda: handle(left[1:])), after)

        def otherwise() -> None:
            if self.dead:
                self.leave_out(*s.orelse)
                return
            for name in bound:
                binding = self.frame.env.get(name)
                if isinstance(binding, Maybe):
                    self.frame.env[name] = binding.value
            self.block(s.orelse)

        if only is not None:
            self.branch_on(only, (lambda: handle(used), otherwise), after)
        elif (fails := self.is_caught(scope, attempt)) is None:
            self.leave_out(*s.orelse)
            handle(used)
        else:
            self.conditional(Scalar("py_bool", fails), (lambda: handle(used), otherwise), after)
        for name in changed - live:
            self.frame.env.pop(name, None)

    def branch_on(
        self, only: Branch, arms: tuple[Callable[[], None], Callable[[], None]], names: Names
    ) -> None:
        """A `try` whose body raises in one place: the handler goes where it does."""

        def resumed(way: Arm, arm: Callable[[], None]) -> Callable[[], None]:
            def run() -> None:
                for op in tuple(way.block.ops):
                    op.detach()
                    self.e.block.add_op(op)
                self.frame.env, self.dead = way.env, way.dead
                arm()

            return run

        ways = resumed(only.raised, arms[0]), resumed(only.tail, arms[1])
        self.conditional(Scalar("py_bool", only.condition), ways, names)

    def handler(self, h: ast.ExceptHandler, caught: Caught) -> None:
        self.handling.append((self.frame, caught))
        if h.name is not None:
            self.frame.env[h.name] = Static(caught)
        self.block(h.body)
        if h.name is not None:
            self.frame.env.pop(h.name, None)
        self.handling.pop()

    def guarded(self, s: Guarded) -> None:
        """`try ... finally`: an exception of the body is raised again behind the `finally`."""
        attempt = self.new_attempt(s, [(BaseException,)], keeps=True)
        names = assigned(*s.body) & self.frame.liveness.done[s]
        with self.catching.attempt(attempt, names) as scope:
            self.block(s.body)
        if not attempt.raises:
            self.forget(attempt)
            if not self.dead:
                self.block(s.finalbody)
            return
        fails = self.is_caught(scope, attempt)
        self.block(s.finalbody)
        if self.dead:
            return
        if fails is None and s.completes is None:
            self.catching.raise_again(attempt, attempt.raises)
            return
        condition = Scalar("py_bool", self.raised(attempt))
        if s.completes is not None:
            condition = self.conjunction("and", condition, self.test(completed(s)))
        self.conditional(
            condition,
            (lambda: self.catching.raise_again(attempt, attempt.raises), lambda: None),
            frozenset(),
        )

    def new_attempt(
        self,
        s: ast.stmt,
        kinds: Sequence[tuple[type[BaseException], ...]],
        *,
        keeps: bool,
    ) -> Attempt:
        cell = self.e.cell(IndexType(), "raised")
        self.e.store(self.e.index(0), cell)
        return Attempt(self.frame, kinds, self.frame.liveness.raised[s], keeps, cell)

    def forget(self, attempt: Attempt) -> None:
        """Nothing is raised in the body."""
        owner = attempt.cell.owner
        for op in (*(u.operation for u in tuple(attempt.cell.uses)), owner):
            op.detach()  # pyright: ignore
            op.erase()  # pyright: ignore

    def is_caught(self, scope: Scope, attempt: Attempt) -> SSAValue | None:
        """Whether the body raised; None where it certainly did, if nothing around caught it."""
        never_ends, self.dead = self.dead, False
        self.catching.announce(scope.pending - {attempt})
        return None if never_ends else self.raised(attempt)

    def raised(self, attempt: Attempt) -> SSAValue:
        return self.e.emit(arith.CmpiOp(self.e.load(attempt.cell), self.e.index(0), "ne"))

    def classes_of(self, h: ast.ExceptHandler) -> tuple[type[BaseException], ...]:
        if h.type is None:
            return (BaseException,)
        value = self.expression(h.type)
        if isinstance(value, Static) and isinstance(value.object, context_managers.Suppressing):
            value = Tuple(value.object.classes)
        parts = value.items if isinstance(value, Tuple) else (value,)
        found = [p.object for p in parts if isinstance(p, Static)]
        known = [c for c in found if isinstance(c, type) and issubclass(c, BaseException)]
        if len(known) < len(parts):
            raise self.refusal(
                h.type,
                "the exceptions of an `except` must be known while compiling",
                "name classes of exceptions",
            )
        return tuple(known)


def is_kept(h: ast.ExceptHandler, body: Sequence[ast.stmt]) -> bool:
    """True where a handler raises again what it caught, or looks at it."""
    again = any(isinstance(n, ast.Raise) and n.exc is None for n in inner(body))
    return again or (h.name is not None and h.name in reads(*body))


def scalar_type(cell: SSAValue) -> str:
    """Our name of the type of what a cell holds."""
    assert isinstance(cell.type, MemRefType)
    return next(name for name, type_ in IR_TYPE.items() if type_ == cell.type.element_type)


def completed(s: Guarded) -> ast.expr:
    assert s.completes is not None
    return ast.copy_location(ast.Name(s.completes, ast.Load()), s)
