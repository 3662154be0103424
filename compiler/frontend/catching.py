"""Exceptions that a handler of the function catches, as ordinary control flow.

Which handler an exception reaches is known while compiling: every check says what it raises. A check
that no handler wants stays what it is outside a `try`, an `array.raise_if`. Any other sets the flag of
its `try`, and what follows it in its block goes where nothing was raised::

    try:                            memref.store %c0, %raised[]
        y = math.sqrt(x)            %bad = arith.cmpf olt, %x, %zero
        z[0] = y                    scf.if %bad {
    except ValueError:                memref.store %c1, %raised[]
        y = 0.0                     } else {
                                      %y = math.sqrt %x
                                      memref.store %y, %z[%c0]
                                    }
                                    %which = memref.load %raised[]
                                    %caught = arith.cmpi ne, %which, %c0
                                    scf.if %caught { ... } else { ... }

So are the statements behind a branch or a loop, in the function itself or in one that it calls, in which
something may have been raised; and such a loop goes on only while the flag is not set. See Note [Nests].
"""

from __future__ import annotations

import builtins
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from xdsl.dialects import arith, scf
from xdsl.dialects.builtin import IntegerAttr, i1
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue

from ...dialects import array
from .bindings import roots
from .catching_scopes import NOTHING, Arm, Attempt, Branch, Nest, Pending, Raise, Scope
from .checks import described, is_inside, outside, overflows, wrapped
from .data.fields import fields_in
from .joins import Binding
from .scalars import COMPLEX_POWER, logical_not
from .syntax.liveness import Names
from .values import Array, Choice, Item, NoneValue, Record, Scalar, Static, Struct, Tuple

if TYPE_CHECKING:
    from .context import Context

STRIDE = 2**20
"""Exceptions of the handlers k and k + 1 have numbers that are so far apart."""

OURS = ("mutad:", COMPLEX_POWER[1])
"""How the messages of exceptions begin that Python would not raise: no handler gets them."""
What = tuple[str, str, Sequence[SSAValue]]
"""What is raised: the class, the message, what it shows."""


class Catching:
    """The attempts and scopes around the current point."""

    def __init__(self, owner: Context) -> None:
        self.owner = owner
        self.attempts: list[Attempt] = []
        self.scopes: list[Scope] = []
        self.classes: dict[str, type[BaseException]] = {}
        """The exceptions that are no builtins, by the name that compiled code has for them."""

    def blocks(self) -> list[Block]:
        """The blocks that are being written, from the outside in, those with an open nest among them."""
        e, opened = self.owner.e, {s.block: [n.outer for n in s.nests] for s in self.scopes}
        return [b for block in (*e.around, e.block) for b in (*opened.get(block, ()), block)]

    # Scopes

    @contextmanager
    def scope(self, names: Names) -> Generator[Scope]:
        """Lower a block, in which `names` live on; afterwards it is one block again."""
        owner = self.owner
        scope = Scope(owner.frame, owner.e.block)
        if not self.attempts:
            yield scope
            return
        self.scopes.append(scope)
        try:
            yield scope
            self.close(scope, names)
        finally:
            self.scopes.pop()

    @contextmanager
    def attempt(self, attempt: Attempt, names: Names) -> Generator[Scope]:
        """Lower the body of a `try`."""
        self.attempts.append(attempt)
        hook, self.owner.e.catch = self.owner.e.catch, self.caught
        settled = {block: set(pairs) for block, pairs in self.owner.e.settled.items()}
        try:
            with self.scope(names) as scope:
                yield scope
        finally:
            self.attempts.pop()
            self.owner.e.catch, self.owner.e.settled = hook, settled

    def close(self, scope: Scope, names: Names) -> None:
        """Join the names where something was raised and where nothing was."""
        owner, e = self.owner, self.owner.e
        tail = Arm(e.block, scope.frame.env, owner.dead, scope.ending if owner.dead else NOTHING)
        span = e.span
        for nest in reversed(scope.nests):
            e.block, e.span = nest.outer, nest.span
            pending = nest.raised.pending | tail.pending
            relevant = {n for a in pending if a.frame is scope.frame for n in a.relevant}
            env = owner.merged(
                nest.condition, (nest.raised, tail), names | relevant, nest.raised.env, sparing=True
            )
            tail = Arm(nest.outer, env, tail.dead, pending)
        e.span = span
        scope.frame.env, scope.pending = tail.env, tail.pending

    def only_branch(self, scope: Scope, attempt: Attempt) -> Branch | None:
        """The one branch on which the body of a `try` raises, if only its handlers catch it: taken out."""
        if len(scope.nests) != 1 or scope.ending or not attempt.raises:
            return None
        (nest,) = scope.nests
        if nest.raised.pending != frozenset({attempt}):
            return None
        owner = self.owner
        tail = Arm(owner.e.block, scope.frame.env, owner.dead)
        scope.nests.clear()
        scope.frame.env = dict(nest.raised.env)
        owner.e.block, owner.dead = nest.outer, False
        if owner.statement_block is tail.block:
            owner.statement_block = nest.outer
        raised = Arm(nest.raised.block, dict(nest.raised.env), dead=False)
        return Branch(nest.condition, raised, tail)

    def announce(self, pending: Pending) -> None:
        """Something in what was just lowered may have raised: what follows runs where it did not."""
        if not pending:
            return
        if self.owner.dead:
            self.end(pending)
            return
        self.open(self.is_raised(pending), Block(), pending)

    def end(self, pending: Pending) -> None:
        """Nothing follows: all that goes on does so from handlers."""
        scope = self.scopes[-1]
        scope.ending |= pending
        scope.frame.env.update(fields_in(self.owner.frame.env))
        self.owner.dead = True

    def is_raised(self, pending: Pending) -> SSAValue:
        """Whether one of the attempts is left."""
        e = self.owner.e
        total: SSAValue | None = None
        for attempt in sorted(pending, key=self.attempts.index):
            flag = e.emit(arith.CmpiOp(e.load(attempt.cell), e.index(0), "ne"))
            total = flag if total is None else e.emit(arith.OrIOp(total, flag))
        assert total is not None
        return total

    def open(self, condition: SSAValue, raised: Block, pending: Pending) -> None:
        scope, owner = self.scopes[-1], self.owner
        arm = Arm(raised, scope.frame.env | fields_in(owner.frame.env), True, pending)
        scope.nests.append(Nest(condition, owner.e.block, arm, owner.e.span))
        tail = Block()
        if owner.statement_block is owner.e.block:
            owner.statement_block = tail
        if owner.arm_block is owner.e.block:
            owner.arm_block = tail
        owner.e.block = scope.block = tail

    def end_with(self, blocks: list[Block], pending: Pending) -> None:
        """Let a loop go on only while nothing is raised in its body.

        `blocks` are its body and its condition, or its body alone.
        """
        if not pending:
            return
        e = self.owner.e
        if len(blocks) == 1:
            blocks.append(Block(arg_types=[a.type for a in blocks[0].args]))
            with e.at(blocks[1]):
                goes_on = logical_not(e, self.is_raised(pending))
                e.insert(array.ConditionOp(goes_on))
            return
        *asked, last = blocks[1].ops
        assert isinstance(last, array.ConditionOp)
        inner, left = Block(), Block()
        for op in asked:
            op.detach()
            inner.add_op(op)
        test = last.condition
        last.detach()
        last.erase()
        with e.at(inner):
            e.insert(scf.YieldOp(test))
        with e.at(left):
            e.insert(scf.YieldOp(e.constant(False, "py_bool").ssa))
        with e.at(blocks[1]):
            branch = scf.IfOp(self.is_raised(pending), [i1], Region(left), Region(inner))
            e.insert(array.ConditionOp(e.emit(branch)))

    # Raising

    def target(self, exception: str, message: str) -> tuple[Attempt, int] | None:
        """The handler that catches an exception."""
        if message.startswith(OURS):
            return None
        raised = self.class_of(exception)
        for attempt in reversed(self.attempts):
            handler = attempt.handler_of(raised)
            if handler is not None:
                return attempt, handler
        return None

    def class_of(self, exception: str) -> type[BaseException]:
        """The class that has this name in compiled code."""
        return self.classes.get(exception) or getattr(builtins, exception, Exception)

    def caught(self, op: Operation) -> Operation | None:
        """Lower an op that may raise; None where nothing catches what it raises."""
        exception, message, shown = described(op)
        target = self.target(exception, message)
        if target is None:
            return None
        if self.scopes[-1].block is not self.owner.e.block:
            raise self.owner.refusal(
                None,
                f"a {exception} that is caught cannot be raised here",
                "compute this outside the `try`",
            )
        match op:
            case array.IndexOp():
                sign, axis = op.sign.data, op.axis.value.data
                made = array.IndexOp(op.index, op.extent, axis, sign, unchecked=True)
                if is_inside(self.owner.e, op.index, op.extent, sign):
                    op.drop_all_references()
                    return self.owner.e.insert(made)
                condition = outside(self.owner.e, op.index, op.extent, sign)
            case array.CheckedIntOp():
                condition, made = overflows(self.owner.e, op), wrapped(op)
            case _:
                assert isinstance(op, array.RaiseIfOp)
                condition, made = op.condition, op
        op.drop_all_references()
        self.leave_when(condition, target, (exception, message, shown))
        return made if made is op else self.owner.e.insert(made)

    def leave_when(
        self,
        condition: SSAValue,
        target: tuple[Attempt, int],
        what: What,
    ) -> None:
        """Set the flag where `condition` holds; what follows runs where it does not."""
        e, (attempt, handler) = self.owner.e, target
        pending = frozenset({attempt})
        known = constant_truth(condition)
        if known is False:
            return
        if known:
            self.set_flag(attempt, handler, what)
            self.end(pending)
            return
        raised = Block()
        with e.at(raised):
            self.set_flag(attempt, handler, what)
        self.open(condition, raised, pending)

    def leave_with(self, status: SSAValue, first: int, whats: Sequence[What]) -> None:
        """Leave where `status` is not 0, by what has its number, counted from `first`."""
        e = self.owner.e
        groups: dict[Attempt | None, list[tuple[int, int, What]]] = {}
        for number, what in enumerate(whats, first):
            attempt, handler = self.target(*what[:2]) or (None, 0)
            groups.setdefault(attempt, []).append((number, handler, what))
        for number, _, (exception, message, shown) in groups.pop(None, []):
            e.insert(array.RaiseIfOp(self.is_number(status, number), exception, message, shown))
        for attempt, raises in groups.items():
            assert attempt is not None
            if len(groups) == 1:
                left = e.emit(arith.CmpiOp(status, e.index(0), "ne"))
            else:
                left = self.is_number(status, raises[0][0])
                for number, *_ in raises[1:]:
                    left = e.emit(arith.OrIOp(left, self.is_number(status, number)))
            raised = Block()
            with e.at(raised):
                self.set_one_flag(attempt, status, raises)
            self.open(left, raised, frozenset({attempt}))

    def is_number(self, status: SSAValue, number: int) -> SSAValue:
        e = self.owner.e
        return e.emit(arith.CmpiOp(status, e.index(number), "eq"))

    def set_one_flag(
        self, attempt: Attempt, status: SSAValue, raises: Sequence[tuple[int, int, What]]
    ) -> None:
        """Set the flag to the one whose number the status is."""
        (number, handler, what), *others = raises
        if not others:
            self.set_flag(attempt, handler, what)
            return
        e, blocks = self.owner.e, (Block(), Block())
        with e.at(blocks[0]):
            self.set_flag(attempt, handler, what)
            e.insert(scf.YieldOp())
        with e.at(blocks[1]):
            self.set_one_flag(attempt, status, others)
            e.insert(scf.YieldOp())
        test = self.is_number(status, number)
        e.insert(scf.IfOp(test, [], Region(blocks[0]), Region(blocks[1])))

    def set_flag(self, attempt: Attempt, handler: int, what: What) -> None:
        e, (exception, message, shown) = self.owner.e, what
        noted = self.note(attempt, handler, (exception, message, [v.type for v in shown]))
        for value, cell in zip(shown, noted.shown, strict=False):
            e.store(value, cell)
        e.store(e.index(noted.number), attempt.cell)

    def note(
        self, attempt: Attempt, handler: int, what: tuple[str, str, Sequence[Attribute]]
    ) -> Raise:
        """One more place that raises."""
        exception, message, types = what
        number = (handler + 1) * STRIDE + (len(attempt.raises) if attempt.keeps else 0)
        cells = self.cells_for(attempt, message, types) if attempt.keeps else ()
        made = Raise(handler, number, exception, message, cells, self.owner.e.span)
        for known in attempt.raises if attempt.merges else ():
            if (known.exception, known.message, known.shown) == (exception, message, cells):
                return known
        attempt.raises.append(made)
        return made

    def cells_for(
        self, attempt: Attempt, message: str, types: Sequence[Attribute]
    ) -> tuple[SSAValue, ...]:
        """Where to keep what a message shows: the same cells for all that say the same."""
        for other in attempt.raises:
            if other.message == message and [c.type.element_type for c in other.shown] == [*types]:  # pyright: ignore
                return other.shown
        return tuple(self.owner.e.cell(type_, "shown") for type_ in types)

    def raise_again(
        self, attempt: Attempt, raises: Sequence[Raise], own: Sequence[SSAValue] = ()
    ) -> None:
        """Raise what was raised, which is one of these; their messages show `own` besides."""
        e, span = self.owner.e, self.owner.e.span
        which = e.load(attempt.cell)
        for k, again in enumerate(raises):
            if k + 1 < len(raises):
                condition = e.emit(arith.CmpiOp(which, e.index(again.number), "eq"))
            else:
                condition = e.constant(True, "py_bool").ssa
            shown = [*(e.load(cell) for cell in again.shown), *own]
            e.span = again.span
            e.insert(array.RaiseIfOp(condition, again.exception, again.message, shown))
            e.span = span
        self.owner.dead = True


def constant_truth(condition: SSAValue) -> bool | None:
    owner = condition.owner
    if isinstance(owner, arith.ConstantOp) and isinstance(owner.value, IntegerAttr):
        return bool(owner.value.value.data)
    return None


def is_made_in(binding: Binding, block: Block) -> bool:
    """True when what a name is bound to, or what tells whose scalar it is, was made in the block."""
    match binding:
        case Scalar() if binding.python is not None and roots.is_made_in(
            binding.python.when, block
        ):
            return True
        case Scalar(_, ssa) | Array(ssa):
            return roots.is_made_in(ssa, block)
        case Tuple(items) | Struct(items):
            return any(is_made_in(item, block) for item in items)
        case Item(at=at):
            return roots.is_made_in(at, block)
        case NoneValue() | Static() | Record():
            return False
        case Choice(number, options):
            return roots.is_made_in(number, block) or any(is_made_in(o, block) for o in options)
        case _:
            return True


# Note [Nests]
#
# A check in the middle of an expression ends the block that is being filled: it becomes the condition
# of an `scf.if`, and whatever is lowered next, the rest of the expression, of the statement and of the
# block, goes into its else. Where the block ends, so do all branches that were opened in it
# (`Catching.close`), each of them joining the names as a branch of the program does: those that live on
# where nothing was raised, and those that a handler of this function reads. An inlined call needs no
# block of its own: its checks nest in the block of its caller, and its own branches and loops, once
# closed, say to which attempts they may have left (`announce`).
