"""The first iterations of a loop on their own, where names are something else in them than later.

    for _ in range(n):              if n > 0:
        u[0] = 0.0                      u[0] = 0.0          the caller's array
        u = u + f(u)                    u = u + f(u)        memory of the loop's own, from here on
                                        for _ in range(n - 1):
                                            u[0] = 0.0
                                            u = u + f(u)

So a name has one type, and one memory, in all iterations that the loop is left with: an array that is
changed in place and then bound anew is the function's own, `s = s + x` adds arrays though `s` began as 0.
Which loops, the builds before this one have found out (Note [Widening by restart]).

Where the loop may make no iteration, and a name that is read after it would then be of a type that does not
meet the other, compiled code raises NotImplementedError.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ...diagnostics import CompileError
from .. import scalars
from ..data.fields import fields_in, shown
from ..joins import Binding, Mismatch, describe, join, template_of
from ..syntax.liveness import assigned, reads
from ..values import Scalar

if TYPE_CHECKING:
    from ..facts import Facts, LoopKey
    from ..frames import Frame
    from ..loops import Loops

MOST = 3
"""So many iterations at most are on their own, of a loop that makes many."""
UNROLLED = 8
"""A loop that is known to make no more than these may be unrolled."""

Body = Callable[[SSAValue], None]


@dataclass(frozen=True)
class Peeled:
    """A loop that is being lowered: how to make it afterwards, and what a later build may do instead."""

    key: LoopKey
    most: int

    @contextmanager
    def one_more(self, facts: Facts) -> Generator[None]:
        """Let the next build take one iteration more out of the loop, rather than refuse it. Where that is
        no use, the loop is refused as it was at first."""
        try:
            yield
        except CompileError as error:
            turns, first = facts.peeled.get(self.key, (0, error))
            if turns >= self.most:
                raise first from None
            facts.peeled[self.key] = turns + 1, first
            facts.changed = True


def lower(
    lowering: Loops,
    s: ast.For | ast.While,
    count: Scalar | None,
    condition: ast.expr | None,
    body: Body,
) -> None:
    """Lower a loop, its first iterations on their own where that was found necessary."""
    frame = lowering.frame
    key = frame.place, id(s)
    known = None if count is None or not isinstance(count.constant, int) else count.constant
    most = known if known is not None and known <= UNROLLED else MOST
    turns, _ = lowering.facts.peeled.get(key, (0, None))
    if not turns:
        lowering.iterate(s, Peeled(key, most), count, condition, body)
        return
    changed = assigned(*([s.target] if isinstance(s, ast.For) else []), *s.body)
    names = changed & (frame.liveness.after[s] | reads(*s.orelse))

    def from_on(turn: int, left: Scalar | None) -> None:
        test = goes_on(lowering, s, left, condition)
        later = None if left is None else one_less(lowering, left)

        def another() -> None:
            with turned(frame, turn):
                body(lowering.e.index(turn))
            if not lowering.dead:
                following(later)
            ends.append(dict(frame.env))

        def following(rest: Scalar | None) -> None:
            if turn + 1 < turns:
                from_on(turn + 1, rest)
            elif rest is None or rest.constant != 0:
                with turned(frame, turns):
                    lowering.iterate(
                        s, Peeled(key, most), rest, condition, lambda i: body(shifted(i))
                    )

        def nothing() -> None:
            if ends:
                require_meeting(lowering, names, frame.env, ends[0])

        ends = list[dict[str, Binding]]()
        lowering.conditional(test, (another, nothing), names)

    def shifted(i: SSAValue) -> SSAValue:
        return lowering.e.emit(arith.AddiOp(i, lowering.e.index(turns)), i.name_hint)

    from_on(0, count)


def goes_on(
    lowering: Loops, s: ast.For | ast.While, left: Scalar | None, condition: ast.expr | None
) -> Scalar:
    """Whether there is another iteration."""
    e, start = lowering.e, dict(lowering.frame.env)
    test = e.constant(True, "py_bool")
    if left is not None:
        test = scalars.compare(e, "Gt", left, e.constant(0, "py_int"))
    if condition is None or test.constant is False:
        return test
    asked = lowering.test(condition)
    lowering.require_unchanged(start, s)
    if test.constant is True or asked.constant is False:
        return asked
    if asked.constant is True:
        return test
    return Scalar("py_bool", e.emit(arith.AndIOp(test.ssa, asked.ssa)), None, 0, 1)


def one_less(lowering: Loops, count: Scalar) -> Scalar:
    e = lowering.e
    if isinstance(count.constant, int):
        return e.constant(count.constant - 1, "py_int")
    return Scalar("py_int", e.emit(arith.SubiOp(count.ssa, e.index(1))), None, 0, count.high)


@contextmanager
def turned(frame: Frame, turn: int) -> Generator[None]:
    """What is learnt meanwhile, of loops and calls, is of this iteration; `turn` counts them."""
    outer = frame.turns
    frame.turns = (*outer, -1 - turn)
    try:
        yield
    finally:
        frame.turns = outer


def require_meeting(
    lowering: Any, names: Iterable[str], before: dict[str, Binding], after: dict[str, Binding]
) -> None:
    """Raise where no iteration is made, if a name would then be what no iteration leaves."""
    for name in sorted({*names, *fields_in(after)}):
        here, there = before.get(name), after.get(name)
        if here is None or there is None or here is there:
            continue
        try:
            join(template_of(here), template_of(there))
        except Mismatch:
            lowering.always(
                "NotImplementedError",
                f"mutad: '{shown(name)}' would stay {describe(template_of(here))}, for this loop makes no"
                f" iteration, where it is {describe(template_of(there))} otherwise",
            )
            return
