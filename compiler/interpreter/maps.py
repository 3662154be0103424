"""`array.map`: the body for all points at once, on arrays of the elements that they load, then the writes.

Points may be evaluated in any order, for no point reads what another writes: that is looked at here.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any, cast

import numpy as np
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute

from ...dialects import array
from .frame import Frame
from .memory import Array, Memref, Undefined
from .scalars import SCALARS

COMBINED: dict[str, tuple[Any, Any]] = {
    "add": (np.add, np.logical_or),
    "mul": (np.multiply, np.logical_and),
    "min": (np.minimum, np.logical_and),
    "max": (np.maximum, np.logical_or),
}
"""How each kind combines: numbers, and truth values."""


def run_map(frame: Frame, op: array.MapOp) -> None:
    shape = tuple(int(frame.get(e)) for e in op.extents)
    if any(n <= 0 for n in shape):
        return
    targets = [spread(frame.get(m), shape) for m in op.outs]
    if op.gathers is None:
        sources = [spread(frame.get(m), shape) for m in op.ins]
        if array.READS_FIRST not in op.attributes:
            look_at_sharing(op, sources, targets)
        elements = [m.read() for m in sources]
    else:
        elements = gathered(frame, op, op.gathers, shape, targets)
        clear(frame, op.gathers, shape, targets)
    points = all_points if all(type(o) in SCALARS for o in body_of(op)) else each_point
    for kind, target, values in zip(
        op.out_kinds, targets, points(frame, op, shape, elements), strict=True
    ):
        write(kind, target, values)


def gathered(
    frame: Frame,
    op: array.MapOp,
    how: array.Gathers,
    shape: tuple[int, ...],
    targets: list[Memref],
) -> list[Array]:
    """What the points read of each input: the element nearest, or 0 where there is none."""
    window = tuple(int(frame.get(n)) for n in how.window)
    origin = origin_of(frame, how)
    found: list[Array] = []
    for number, (operand, shift) in enumerate(zip(op.ins, how.shifts, strict=True)):
        m = spread(frame.get(operand), window)
        if any(t.root is m.root and np.isin(t.places(), m.places()).any() for t in targets):
            raise Undefined("a map that gathers writes to what it reads")
        at = [np.arange(n) + o - s for n, o, s in zip(shape, origin, shift, strict=True)]
        inside = [(i >= 0) & (i < n) for i, n in zip(at, window, strict=True)]
        nearest = [np.clip(i, 0, n - 1) for i, n in zip(at, window, strict=True)]
        cells = m.root.cells
        values = np.zeros((*shape, *cells.shape[1:]), cells.dtype)
        if all(window):
            values = m.read()[np.ix_(*nearest)]
        if number in how.zeros:
            values[~np.logical_and.reduce(np.meshgrid(*inside, indexing="ij"))] = 0
        found.append(values)
    return found


def origin_of(frame: Frame, how: array.Gathers) -> tuple[int, ...]:
    return tuple(int(frame.get(n)) for n in how.origin) or (0,) * len(how.window)


def clear(frame: Frame, how: array.Gathers, shape: tuple[int, ...], targets: list[Memref]) -> None:
    """Zero where a map stores what it would add."""
    if how.fresh is None:
        return
    first = [s - o for s, o in zip(how.fresh, origin_of(frame, how), strict=True)]
    ends = [at + int(frame.get(n)) for at, n in zip(first, how.window, strict=True)]
    inner = tuple(slice(max(a, 0), max(b, 0)) for a, b in zip(first, ends, strict=True))
    for m in targets:
        m.root.cells[m.places()[inner]] = 0


def body_of(op: array.MapOp) -> list[Any]:
    return [o for o in op.body.block.ops if not isinstance(o, array.YieldOp)]


def spread(m: Memref, shape: tuple[int, ...]) -> Memref:
    """The operand's element at each point: the extents are the map's."""
    return Memref(m.root, m.offset, shape, m.strides)


def all_points(
    frame: Frame, op: array.MapOp, shape: tuple[int, ...], elements: list[Array]
) -> list[Any]:
    """What the body yields, for all points at once."""
    frame.bind(op.body.block.args, elements)
    return frame.run(op.body.block)


def each_point(
    frame: Frame, op: array.MapOp, shape: tuple[int, ...], elements: list[Array]
) -> list[Any]:
    """The same, a point after the other: for bodies with branches."""
    rows: list[list[Any]] = []
    for point in product(*map(range, shape)):
        frame.bind(op.body.block.args, [e[point] for e in elements])
        rows.append(frame.run(op.body.block))
    columns = [np.array(column) for column in zip(*rows, strict=True)]
    return [c.reshape(*shape, *c.shape[1:]) for c in columns]


def write(kind: str, target: Memref, values: Any) -> None:
    """Write elements in the order of the points, or combine them with what is there."""
    cells, places = target.root.cells, target.places()
    values = np.broadcast_to(values, (*places.shape, *cells.shape[1:]))
    if kind == "store":
        cells[places] = values
        return
    numbers, truths = COMBINED[kind]
    combine: Callable[..., None] = (truths if cells.dtype.kind == "b" else numbers).at
    combine(cells, places, values)


def look_at_sharing(op: array.MapOp, sources: list[Memref], targets: list[Memref]) -> None:
    """Undefined where a point reads what another writes, or two outputs store to one place."""
    for number, (target, kind) in enumerate(zip(targets, op.out_kinds, strict=True)):
        if not any(m.root is target.root for m in (*sources, *targets[:number])):
            continue
        written = target.places().ravel()
        shared = len(np.unique(written)) < written.size
        for source, type_ in zip(sources, (m.type for m in op.ins), strict=True):
            if source.root is not target.root:
                continue
            by = writers_of(written, source)
            own = (by < 0) | (by == np.arange(by.size))
            if not own.all() or (shared and (by >= 0).any()):
                element = cast(MemRefType[Attribute], type_).element_type
                raise Undefined(f"a point reads an element ({element}) that another point writes")
        for other, earlier in zip(targets[:number], op.out_kinds, strict=False):
            stored = (kind, earlier) == ("store", "store")
            if stored and other.root is target.root and (writers_of(written, other) >= 0).any():
                raise Undefined("two outputs store to one place")


def writers_of(written: Array, m: Memref) -> Array:
    """The last point that writes each element of a memref, or -1; `written` has the place of each point."""
    order = np.argsort(written, kind="stable")
    places, known = m.places().ravel(), written[order]
    last = np.searchsorted(known, places, side="right") - 1
    found = (last >= 0) & (known[last] == places)
    return np.where(found, order[last], -1)
