"""Names that nested functions rebind: `nonlocal`.

Such a name is a field of an object that the function around makes when it is called, as CPython keeps it in
a cell: whoever reads or binds it, in whatever call, branch or loop, reads or assigns that field::

    def f(x):                          s = <cell>; s$0.0 = 0.0
        s = 0.0
        def add(v):
            nonlocal s
            s += v                     s$0.0 = s$0.0 + v
        for v in x:                    a loop that assigns the field s$0.0
            add(v)
        return s

So a cell outlives the call that made it (a counter that a function returns), and whatever is known of fields
holds of it.
"""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from ..joins import Binding
from ..values import Record

if TYPE_CHECKING:
    from ..context import Context
    from ..frames import Frame


class Cell:
    """The class of these objects."""


def share(lowering: Context, frame: Frame) -> None:
    """A call begins: make the cells of its names, its arguments in them."""
    frame.shared = {}
    for name in sorted(frame.liveness.rebound & frame.locals):
        frame.shared[name] = frame.cells.get(name) or cell_of(lowering, name)
        given = frame.env.pop(name, None)
        if given is not None:
            bind_in(lowering, frame, name, given)


def binding_of(lowering: Context, frame: Frame, name: str) -> Binding | None:
    """What a name of `frame` is bound to."""
    cell = frame.shared.get(name)
    if cell is None:
        return frame.env.get(name)
    if lowering.importer is not None:
        lowering.importer(frame, cell)  # refuses the cells of functions around a recursive one
    return lowering.frame.env.get(lowering.objects.name(cell, name))


def bind(lowering: Context, name: str, value: Binding) -> None:
    """Bind a name in the function that owns it."""
    frame: Frame | None = lowering.frame
    while frame is not None and name not in frame.locals:
        frame = frame.parent
    bind_in(lowering, frame or lowering.frame, name, value)


def bind_in(lowering: Context, frame: Frame, name: str, value: Binding) -> None:
    cell = frame.shared.get(name)
    if cell is None:
        frame.env[name] = value
        return
    if lowering.importer is not None:
        lowering.importer(frame, cell)
    lowering.objects.give(cell, name, lowering.frame.env, value)  # pyright: ignore


def learn_fresh(lowering: Context, s: ast.stmt, field: str) -> bool:
    """Each iteration of a loop binds a shared name of this function that was unbound before: let the next
    build make a cell in each iteration. False where the field is no such name."""
    frame = lowering.frame
    for name, cell in frame.shared.items():
        if lowering.objects.name(cell, name) == field:
            names = lowering.facts.fresh.setdefault((frame.place, id(s)), set[str]())
            lowering.facts.changed |= name not in names
            names.add(name)
            return True
    return False


def fresh_cells(lowering: Context, s: ast.stmt) -> dict[str, Record]:
    """An iteration begins: new cells for the names that only it binds; those that there were."""
    frame = lowering.frame
    names = sorted(lowering.facts.fresh.get((frame.place, id(s)), ()))
    outer = {
        name: frame.shared[name] for name in names if binding_of(lowering, frame, name) is None
    }
    for name in outer:
        frame.shared[name] = cell_of(lowering, name)
    return outer


def is_in_cell(field: str) -> bool:
    """True for the name of the field in which a cell keeps what a name is bound to."""
    return "$0." in field


def cell_of(lowering: Context, name: str) -> Record:
    """A new cell for a name."""
    made = lowering.objects.make(Cell, "", lowering.e.block)
    lowering.objects.names[made.serial, (str, name)] = f"{name}$0.{made.serial}"
    return made
