"""Writing whole arrays: `x[...] = value`, `out=`, `x += value`, with NumPy's casts and copies.

`u[1:-1] = u[:-2] + u[2:]` reads what it overwrites. As in NumPy the source is whole before the first store:
that is what a map says that `reads_first`. Where no temporary is needed for it, `resolve-overlap` finds out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ..emitter import Emitter
from ..values import NUMPY_DTYPE, Array, Scalar, Tuple, Value
from . import shapes, views
from .maps import Operand, broadcast, extents_of, map_into, operand, same

ASSIGN = "could not broadcast input array from shape {source} into shape {destination}"
OPERANDS = (
    "operands could not be broadcast together with shapes {destination} {source} {destination} "
)
OUTPUT = (
    "non-broadcastable output operand with shape {destination} doesn't match"
    " the broadcast shape {source}"
)


def assign_view(e: Emitter, destination: Array, value: Value) -> None:
    """`destination[...] = value`: broadcast, cast as `astype` does, safe where they overlap."""
    source = operand(e, value, "the assigned value")
    if not isinstance(source, Scalar):
        extra = len(extents_of(e, source)) - destination.rank
        if extra > 0:
            target = shapes.extents_of(e, destination.memref)
            source = without_leading_units(e, source, target, extra, ASSIGN)
    write(e, destination, source, ASSIGN)


def write(e: Emitter, destination: Array, source: Operand, message: str) -> None:
    """Evaluate `source` into `destination`, broadcasting it; `message` is NumPy's ValueError."""
    extents = shapes.extents_of(e, destination.memref)
    if not isinstance(source, Scalar):
        require_broadcast(e, extents_of(e, source), extents, message)
    seen = broadcast(e, source, extents)
    map_into(e, [seen], [destination.dtype], same, destination.memref, extents, reads_first=True)


def without_leading_units(
    e: Emitter, source: Operand, target: Sequence[SSAValue], extra: int, message: str
) -> Operand:
    """`source` with its first `extra` dimensions dropped, which NumPy allows where they are 1."""
    assert not isinstance(source, Scalar)
    own = extents_of(e, source)
    wrong = [shapes.compare(e, "ne", n, e.index(1)) for n in own[:extra] if constant_value(n) != 1]
    fail_if(e, wrong, message, own, target)
    kept = range(extra, len(own))
    zeros, ones = [e.index(0)] * len(own), [e.index(1)] * len(kept)
    return views.view(e, source, zeros, kept, own[extra:], ones)


def require_broadcast(
    e: Emitter, source: Sequence[SSAValue], target: Sequence[SSAValue], message: str
) -> None:
    """ValueError where `source` does not broadcast to the fixed extents `target`."""
    found = shapes.Mismatches()
    for n, t in zip(source, target[len(target) - len(source) :], strict=True):
        found.require(e, n, t)
    found.raise_all(e, *shown(message, source, target))


def shown(
    message: str, source: Sequence[SSAValue], destination: Sequence[SSAValue]
) -> tuple[str, list[SSAValue]]:
    """The message with "{source}" and "{destination}" as shapes, and the extents to format."""
    extents: list[SSAValue] = []
    text = ""
    for piece in message.replace("}", "{").split("{"):
        if piece in ("source", "destination"):
            named = source if piece == "source" else destination
            text += shapes.shape_format(len(named))
            extents.extend(named)
        else:
            text += piece
    return text, extents


def fail_if(
    e: Emitter,
    wrong: Sequence[SSAValue],
    message: str,
    source: Sequence[SSAValue],
    destination: Sequence[SSAValue],
) -> None:
    if wrong:
        text, extents = shown(message, source, destination)
        e.insert(array.RaiseIfOp(shapes.either(e, wrong), "ValueError", text, extents))


def write_out(e: Emitter, name: str, result: Operand, out: Array) -> None:
    """`ufunc(..., out=out)`: the result must broadcast to `out`, whose dtype is of the same kind."""
    require_same_kind(
        e, name, result.type if isinstance(result, Scalar) else result.dtype, out.dtype
    )
    if isinstance(result, Scalar):
        write(e, out, result, OUTPUT)
        return
    if result.rank > out.rank:
        own, target = extents_of(e, result), shapes.extents_of(e, out.memref)
        fail_if(e, [e.constant(True, "b1").ssa], OUTPUT, own, target)
        return
    write(e, out, result, output_message(e, result, out))


def output_message(e: Emitter, result: Array, out: Array) -> str:
    """NumPy's words where `result` does not broadcast to `out`; ValueError where it is larger."""
    own, target = extents_of(e, result), shapes.extents_of(e, out.memref)
    pairs = list(zip(own[::-1], target[::-1], strict=False))
    stretched = any(constant_value(t) == 1 and constant_value(n) != 1 for n, t in pairs)
    if not stretched:
        fail_if(e, [w for n, t in pairs for w in outgrows(e, n, t)], OUTPUT, own, target)
    return OUTPUT if stretched else OPERANDS


def outgrows(e: Emitter, extent: SSAValue, target: SSAValue) -> list[SSAValue]:
    """The condition under which `target` is 1 at run time and `extent` is not, where that may be."""
    if shapes.never_one(e, target) or constant_value(target) is not None:
        return []
    if shapes.equal(extent, target) or shapes.agree(e, extent, target):
        return []
    one = shapes.compare(e, "eq", target, e.index(1))
    more = shapes.compare(e, "ne", extent, e.index(1))
    return [e.emit(arith.AndIOp(one, more))]


def require_same_kind(e: Emitter, name: str, from_: str, to: str) -> None:
    source, target = NUMPY_DTYPE[from_], NUMPY_DTYPE[to]
    if not np.can_cast(source, target, casting="same_kind"):
        e.fail(
            f"Cannot cast ufunc '{name}' output from {source!r} to {target!r}"
            " with casting rule 'same_kind'",
            way_out="assign with x[...] = ..., which converts, or give the array the result's dtype",
        )


def fill(e: Emitter, destination: Array, value: Value) -> None:
    """`destination.fill(value)`."""
    if isinstance(value, Tuple):
        e.fail("fill takes a number")
    assign_view(e, destination, value)
