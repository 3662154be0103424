"""`jacobian`, `hessian` and `linear_operator` of functions of objects.

The blocks are those of the function of the parts (`objects`). Where the result, or what `wrt` names, is an
object, so is the Jacobian: it has the form of the result, with the form of the argument in the place of each
float. A list of numbers becomes a list of blocks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from . import jacobians, linear_operators, sparse_jacobians
from .jacobians import Start, started
from .list_columns import Form, Rows, as_rows, items_of
from .object_batches import require_no_numbers
from .object_tangents import with_none
from .objects import (
    Flat,
    Recipe,
    Records,
    Selection,
    finished,
    flat_names,
    flat_of,
    journaled,
    selected,
)
from .sparsity import Sparsity
from .structures import Assembly, Node, Parts
from .union_results import nothing_of

if TYPE_CHECKING:
    from .dispatch import Dispatcher


@dataclass
class Call:
    """One call: the function of the parts, what it starts from, what `wrt` names."""

    flat: Flat
    made: Parts
    selection: Selection
    start: Start
    values: tuple[Any, ...]
    records: Records | None

    def run(self, work: Callable[[Start, tuple[Any, ...]], tuple[Any, Any]]) -> tuple[Any, Any]:
        """The result of the plain call, which has its effects, and what is made beside it."""
        with journaled(self.flat, self.values, self.made):
            value, found = work(self.start, self.values)
        self.whole = value
        return finished(self.flat, self.records, value, self.made), found

    def refuse_lists(self) -> None:
        """TypeError where what `wrt` names holds a list of numbers: there are no blocks of its numbers."""
        call = f"{self.start.call} with sparsity="
        require_no_numbers(call, self.flat, self.selection.positions)

    def assembled(self, blocks: Sequence[Any]) -> Any:
        """Blocks, one for each float that `wrt` names, in its form."""
        known = dict(zip(self.selection.positions, blocks, strict=True))
        parts = [known.get(k, leaf) for k, leaf in enumerate(self.made.leaves)]
        assembly = Blocks(self.flat.structure, parts, self.made.others, kept=self.made.leaves)
        items = self.selection.items
        found = [known[n] if isinstance(n, int) else assembly.make(n) for n in items]
        return found[0] if self.selection.single else tuple(found)


class Blocks(Assembly):
    """Makes arguments of blocks: of a list of numbers, which is one array, a list of what is in the block."""

    def __init__(self, *args: Any, kept: Sequence[Any]) -> None:
        super().__init__(*args)
        self.kept = kept

    def make(self, node: Node) -> Any:
        if node.kind != "numbers" or node.index in self.made:
            return super().make(node)
        blocks = [self.leaves[item.index] for item in node.items]
        ranks = [self.kept[item.index].ndim for item in node.items]
        arrays = [
            np.moveaxis(b, range(b.ndim - rank, b.ndim), range(rank))
            for b, rank in zip(blocks, ranks, strict=True)
        ]
        is_wider = any(
            a.ndim > rank or a.dtype == object for a, rank in zip(arrays, ranks, strict=True)
        )
        form = of_any(node.value) if is_wider else node.value
        made = self.made[node.index] = items_of(form, iter(arrays))
        return made


def of_any(form: Form | None) -> Form | None:
    """The form of a list whose items are no numbers, but what stands for each of them."""
    if (of_rows := as_rows(form)) is not None:
        return Rows(of_any(of_rows.form), of_rows.even)
    if isinstance(form, tuple):
        return tuple([of_any(one) or one for one in form])
    return "f64" if form == "py_float" else form


def call_of(dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any, call: str) -> Call:
    """What a call starts from; TypeError where its result holds lists."""
    flat, made = flat_of(dispatcher, bound)
    selection = selected(flat, made, wrt)
    own = flat.dispatcher
    parts = flat.values_of(made)
    values = own.values_of(*parts)
    records = flat.records_for(parts)
    start = started(own, values, flat_names(flat, selection), call)
    if records is not None:
        if call != "hessian" and not is_open(records["result"]):
            raise TypeError(
                f"{call} of {dispatcher.function.__qualname__}: its result holds a list, or something "
                "whose kind is known at run time only: return numbers, arrays, tuples or objects"
            )
        start = replace(start, parts=len(list(nothing_of(records["result"]))))
    return Call(flat, made, selection, start, values, records)


def is_open(recipe: Recipe) -> bool:
    """Whether each number and array of a result is a part of what the kernel returns."""
    match recipe:
        case ["tuple" | "list", *_, items] | ["object", _, _, _, items]:
            return all(map(is_open, items))
        case ["kept", _, inner]:
            return is_open(inner)
        case ["flat" | "static", *_] | ["again", _]:
            return True
        case _:
            return False


def sparse_jacobian(
    dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any, mode: str, sparsity: Any
) -> Any:
    """`f.jacobian(..., sparsity=)` with objects: blocks in CSC form in the place of the floats of both."""
    call = call_of(dispatcher, bound, wrt, "jacobian")
    call.refuse_lists()
    value, blocks = call.run(
        lambda start, values: sparse_jacobians.blocks_by(start, values, mode, sparsity)
    )
    own = call.start.own(call.whole)
    leaves = jacobians.leaves_of(own)
    return of_results(
        call, value, (call.assembled(next(blocks)) if jacobians.is_float(a) else a for a in leaves)
    )


def jacobian_sparsity(
    dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any, mode: str
) -> Sparsity:
    """`f.jacobian_sparsity` with objects: their floats one after another."""
    call = call_of(dispatcher, bound, wrt, "jacobian_sparsity")
    return call.run(lambda start, values: sparse_jacobians.pattern_by(start, values, mode))[1]


def sparse_hessian(dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any, sparsity: Any) -> Any:
    """`f.hessian(..., sparsity=)` with objects."""
    call = call_of(dispatcher, bound, wrt, "hessian")
    call.refuse_lists()
    _, rows = call.run(
        lambda start, values: sparse_jacobians.blocks_of_hessian(start, values, sparsity)
    )
    return call.assembled([call.assembled(row) for row in rows])


def jacobian(dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any, mode: str) -> Any:
    """`f.jacobian` with objects."""
    call = call_of(dispatcher, bound, wrt, "jacobian")
    value, blocks = call.run(lambda start, values: jacobians.blocks_by(start, values, mode))
    arguments = [call.start.values[p] for p in call.start.wrt]
    own = call.start.own(call.whole)
    rows = (
        call.assembled(
            [jacobians.finished(b, leaf, a) for b, a in zip(row, arguments, strict=True)]
        )
        if jacobians.is_float(leaf)
        else leaf
        for leaf, row in zip(jacobians.leaves_of(own), blocks, strict=True)
    )
    return of_results(call, value, rows)


def of_results(call: Call, value: Any, rows: Iterator[Any]) -> Any:
    """What there is for each part of a result, in its form."""
    found = jacobians.with_leaves(call.start.own(call.whole), rows)
    if call.records is None:
        return with_none(value, found)
    recipe = {"result": call.records["result"], "changes": [], "stores": []}
    shown = call.flat.finisher(recipe)(found, call.made.objects, call.made.leaves)
    return with_none(value, shown)


def hessian(dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any) -> Any:
    """`f.hessian` with objects: in the place of each float of the argument the form of the argument."""
    call = call_of(dispatcher, bound, wrt, "hessian")
    _, blocks = call.run(jacobians.blocks_of_hessian)
    arguments = [call.start.values[p] for p in call.start.wrt]
    rows: list[Any] = []
    for position, one, row in zip(call.start.wrt, arguments, blocks, strict=True):
        of = [jacobians.finished(b, one, a) for b, a in zip(row, arguments, strict=True)]
        rows.append(items_in(call, one, row) if is_in_list(call, position) else call.assembled(of))
    return call.assembled(rows)


def is_in_list(call: Call, position: int) -> bool:
    """Whether a part is the numbers of a list."""
    lists = (n for n in call.flat.structure.objects.values() if n.kind == "numbers")
    return any(item.index == position for node in lists for item in node.items)


def items_in(call: Call, numbers: Any, row: Sequence[Any]) -> Any:
    """For each number of a list its own row of the Hessian, as an array of these."""
    made = np.empty(numbers.shape, object)
    for place in np.ndindex(numbers.shape):
        found = [b[place] for b in row]
        made[place] = call.assembled([b if np.ndim(b) else float(b) for b in found])
    return made


def linear_operator(dispatcher: Dispatcher, bound: tuple[Any, ...], wrt: Any) -> Any:
    """`f.linear_operator` with objects: their floats one after another."""
    return call_of(dispatcher, bound, wrt, "linear_operator").run(linear_operators.operator_of)[1]
