"""Stores to arrays that NumPy makes, or was given, read-only: raised where the store is reached.

Whether an argument is read-only is part of its key, where the function may store to it (`runtime.dispatch`):
code for writable arrays has no trace of this. What a store goes to is asked of the IR: views are as
read-only as what they are views of, and an array that paths join is asked for at run time::

    x[0] = 1.0                       array.raise_if %true, "ValueError", "assignment destination is read-only"
    (a if c else x)[0] = 1.0         array.raise_if (array.overlap %chosen, %x), "ValueError", ...

Each op that stores is preceded by its check (`Emitter.before`); what NumPy says in other words, or before it
looks at subscripts and operands, calls `require_writable` itself. Private functions (recursive ones, those
with rules) are made for arguments that are read-only, and raise by themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from xdsl.dialects import arith, memref, scf
from xdsl.ir import Operation, SSAValue

from ....dialects import activation, array, foreign
from ....dialects.array import constant_value
from ...diagnostics import Span, line_of
from ..emitter import Emitter, is_placeholder
from ..values import Array, BoundMethod, Value
from . import overlap
from .numpy_version import BEFORE_2_5


def said(store: Callable[[np.ndarray[Any, Any]], object]) -> str:
    """What the running NumPy says to a store to a read-only array."""
    x = np.zeros((1, 1))
    x.flags.writeable = False
    try:
        store(x)
    except ValueError as error:
        return str(error)
    return "assignment destination is read-only"


def by_ufunc(x: np.ndarray[Any, Any]) -> object:
    return np.negative(x, out=x)


DESTINATION = said(lambda x: x.fill(1.0))
OUTPUT = said(by_ufunc)
BY_ROWS = said(lambda x: np.add.at(np.broadcast_to(x, (1, 2)), [0], 1.0))
DOT = said(lambda x: np.dot(x, x, out=x))
WRITTEN = {
    "sort": said(lambda x: x.sort()),
    "partition": said(lambda x: x.partition(0)),
    "put": said(lambda x: x.put(0, 1.0)),
    "putmask": said(lambda x: np.putmask(x, x == 0, 1.0)),
    "place": said(lambda x: np.place(x, x == 0, [1.0])),
    "fill_diagonal": said(lambda x: np.fill_diagonal(x, 1.0)),
}
"""By the name of a function or method that is written in Python."""
FUNCTIONS = (np.put, np.putmask, np.place, np.fill_diagonal)
KNOWN_LATE = "whether this array is read-only is known only at run time"
WAY_OUT = "pass arrays that are writable, or copies"
DRAWN = "Supplied output array must be contiguous, writable, aligned, and in machine byte-order."
SHUFFLED = "array is read-only"


def require_writable(
    e: Emitter,
    target: SSAValue,
    message: str = DESTINATION,
    exception: str = "ValueError",
    when: SSAValue | None = None,
) -> None:
    """Raise where a store to `target` is one to a read-only array, and `when` is true."""
    if not e.read_only:
        return
    refused, others = origins(e, target)
    if not refused:
        return
    zero = e.index(0)
    condition = e.emit(
        arith.CmpiOp(zero, zero, "eq")
    )  # folded later: the store behind it is lowered, too
    if others:
        for part in refused:
            if not (is_visible(e, part) and all(overlap.disjoint(e, part, o) for o in others)):
                e.fail(KNOWN_LATE, WAY_OUT)
        tests = [e.emit(array.OverlapOp(target, part)) for part in refused]
        condition = tests[0]
        for test in tests[1:]:
            condition = e.emit(arith.OrIOp(condition, test))
    if when is not None:
        condition = e.emit(arith.AndIOp(condition, when))
    e.insert(array.RaiseIfOp(condition, exception, message))


def origins(e: Emitter, value: SSAValue) -> tuple[list[SSAValue], list[SSAValue]]:
    """What `value` may be a view of: read-only arrays, and other memory."""
    refused, others = list[SSAValue](), list[SSAValue]()
    pending, seen = [value], set[SSAValue]()
    while pending:
        value = e.now(pending.pop())
        if value in seen:
            continue
        seen.add(value)
        owner = value.owner
        carried = overlap.carried_by(e, value)
        if value in e.read_only:
            refused.append(value)
        elif carried is not None:
            pending += carried.initial
        elif isinstance(owner, array.AnyView | memref.CastOp):
            pending.append(owner.source)
        elif isinstance(owner, scf.IfOp):
            position = next(k for k, r in enumerate(owner.results) if r is value)
            ends = (region.block.last_op for region in owner.regions)
            pending += [end.operands[position] for end in ends if end is not None]
        elif not is_placeholder(value):
            others.append(value)
    return refused, others


def is_visible(e: Emitter, value: SSAValue) -> bool:
    """Whether the array is known where code is being written."""
    home = value.owner.parent if isinstance(value.owner, Operation) else value.owner
    return home in (e.entry, e.block, *e.around)


def mark(e: Emitter, view: Array) -> Array:
    """The array as one of its own that is read-only: another object, even where it is all of an array."""
    found = e.emit(memref.CastOp.get(view.memref, view.type))
    e.read_only.add(found)
    return Array(found, view.dtype, whole=True)


def is_certain(e: Emitter, value: SSAValue) -> bool:
    """True for an array that is read-only whichever path was taken."""
    refused, others = origins(e, value) if e.read_only else ([], [])
    return bool(refused) and not others


# Calls.


def before_call(e: Emitter, callee: object, args: Sequence[Value]) -> None:
    """A NumPy function that is written in Python (`written`) is called: does it store to its argument?"""
    name = callee.name if isinstance(callee, BoundMethod) else getattr(callee, "__name__", "")
    is_in_place = isinstance(callee, BoundMethod) or callee in FUNCTIONS
    if is_in_place and name in WRITTEN and args and isinstance(args[0], Array):
        require_writable(e, args[0].memref, WRITTEN[name])


def effect_on(e: Emitter, value: Array, stated: str, convention: str) -> str:
    """What a foreign call does to an array: Python code that stores to a read-only one raises by itself."""
    refused, others = origins(e, value.memref)
    if not refused or convention != "python" or stated not in ("write", "readwrite"):
        return stated
    if others:
        e.fail(KNOWN_LATE, WAY_OUT)
    return "read"


def hand_on(e: Emitter, value: SSAValue, inner: Emitter, argument: SSAValue) -> None:
    """An argument of a private function is as read-only as what the call gives."""
    if is_certain(e, value):
        inner.read_only.add(argument)


def before_store(e: Emitter, op: Operation, target: SSAValue) -> None:
    """What is about to store to a read-only array raises; functions that are called do so by themselves."""
    if not isinstance(op, foreign.CallOp | foreign.RuleCallOp | activation.CallOp):
        require_writable(e, target)
    elif e.read_only and all(origins(e, target)):
        e.fail(KNOWN_LATE, WAY_OUT)


def check_calls(e: Emitter, function: Operation) -> None:
    """Recursive functions, which are known to store once they are complete, know what is read-only for
    certain: refused is what may be, where they store to it."""
    for op in function.walk() if e.read_only else ():
        if isinstance(op, activation.CallOp) and any(all(origins(e, a)) for a in op.written()):
            place = line_of(op)
            span = None if place is None else Span(*place[:2], place[2] - 1, place[1], place[2] - 1)
            e.fail(KNOWN_LATE, WAY_OUT, span)


@contextmanager
def at_elements(e: Emitter, target: SSAValue, size: SSAValue) -> Generator[None]:
    """`ufunc.at` stored to read-only arrays, too, but where what each index selects has not one element.

    From NumPy 2.5 on it has been asked before.
    """
    if e.read_only and BEFORE_2_5:
        if constant_value(size) != 1:
            rows = e.emit(arith.CmpiOp(size, e.index(1), "ne"))
            require_writable(e, target, BY_ROWS, when=rows)
        e.stored_anyway |= {*origins(e, target)[0]}
    asked, e.read_only = e.read_only, set()
    try:
        yield
    finally:
        e.read_only |= asked
