"""Lists that cross the boundary: arguments become the lists of the frontend, and results Python's again.

A list of numbers comes as one array for each number of an item (`mutad.runtime.columns`), and is a list
like any other from there on: the buffers are filled from the arrays. What the function does to the
length or the items of such a list it returns as one more result, which the caller's list is given::

    def push(l, v):                     push(l : memref<?xf64>, v)
        l.append(v)                       the items of a list that is l with v behind them
                                        recipe: the result is None; l[:] is the first

Lists of arrays or objects are `FixedList`: of a length that is known, they are taken apart like tuples.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..joins import ScalarT, Template, TupleT
from ..values import Array, Static, Value
from . import lists
from .list_methods import Lists

ITEMS = "[:]"
"""The key under which all items of a list are assigned."""
CALLER = (-1, "")
"""The name that the caller's lists have, beside those that the function gives them."""


def template_of_form(form: Any) -> Template:
    """What one item is."""
    if isinstance(form, str):
        return ScalarT(form)
    return TupleT(tuple(template_of_form(one) for one in form))


def argument_list(lowering: Lists, number: int, form: Any, values: Iterator[Value]) -> Value:
    """The list that is argument `number`, of which the arrays are the next `values`."""
    made = lowering.make_list(lowering.frame.source.node)
    made.origin = number
    made.names.add(CALLER)
    lowering.mark_shared(made)
    if form is not None:
        template = template_of_form(form)
        found = [next(values) for _ in lists.leaves_of(template)]
        arrays = [a for a in found if isinstance(a, Array)]
        lowering.learn(made, template)
        if len(made.buffers) == len(arrays):
            count = lowering.e.extents(arrays[0].memref)[0]
            lists.extend(lowering.e, made, arrays, count)
    made.changed = False
    lowering.objects.lists[number] = made
    return Static(made)
