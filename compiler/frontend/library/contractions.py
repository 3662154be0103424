"""Sums of products of arrays of any rank: stacks of matrices, `tensordot`, `inner`, `einsum`.

Each axis of an operand has a label; what is asked for are some labels, the others are summed over. Operands
are taken two at a time::

    ij,jk->ik       array.matmul                                   one product
    bij,bjk->bik    a loop over b, array.matmul of views           a product for each matrix of the stacks
    i,j->ij         array.map                                      broadcast
    ij,ij->i        array.map into an output that stands still     a fused reduction
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import memref
from xdsl.dialects.builtin import IndexType
from xdsl.ir import Block, SSAValue

from ....dialects import array
from ..emitter import Emitter
from ..values import Array, Scalar, Static, Value
from . import diagonals, elementwise, reductions, shapes, views
from .assignment import assign_view
from .cases import Case
from .dtypes import common_dtype, dtype_argument, dtype_of, element_type_cast
from .maps import Operand, allocate, broadcast, converted, extents_of, load, operand
from .reshape import seen_as

MISMATCH = "operands have different extents along an axis that is summed over or shared"


@dataclass(frozen=True)
class Labelled:
    """An array, and the label of each axis, no label twice; or a number, which has no axes."""

    value: Operand
    labels: tuple[str, ...]

    def extents(self, e: Emitter) -> dict[str, SSAValue]:
        return dict(zip(self.labels, extents_of(e, self.value), strict=True))


# --- The contraction --------------------------------------------------------------------------


def contract(e: Emitter, operands: Sequence[Labelled], wanted: Sequence[str]) -> Operand:
    """The sum over all labels that are not `wanted` of the product of the operands."""
    first, *others = in_one_shape(e, operands)
    for k, other in enumerate(others, 1):
        needed = {*wanted, *(label for o in others[k:] for label in o.labels)}
        first = pair(e, first, other, needed)
    found = summed(e, first, set(wanted))
    a = found.value
    order = [found.labels.index(label) for label in wanted]
    if isinstance(a, Scalar) or order == list(range(len(order))):
        return a
    return views.transposed(e, a, order)


def in_one_shape(e: Emitter, operands: Sequence[Labelled]) -> list[Labelled]:
    """The operands, those with one element along an axis stretched where others have more."""
    by_label = dict[str, list[SSAValue]]()
    for o in operands:
        for label, n in o.extents(e).items():
            by_label.setdefault(label, []).append(n)
    extents = {
        label: shapes.broadcast_extents(e, [[n] for n in found], MISMATCH)[0]
        for label, found in by_label.items()
    }
    return [
        Labelled(broadcast(e, o.value, [extents[label] for label in o.labels]), o.labels)
        for o in operands
    ]


def summed(e: Emitter, a: Labelled, needed: set[str]) -> Labelled:
    """Without unused labels."""
    axes = [k for k, label in enumerate(a.labels) if label not in needed]
    if not axes or isinstance(a.value, Scalar):
        return a
    found = reductions.reduce(e, reductions.SUM, a.value, axes)
    return Labelled(found, tuple(label for label in a.labels if label in needed))


def pair(e: Emitter, a: Labelled, b: Labelled, needed: set[str]) -> Labelled:
    """The product of two operands, summed over labels that are not used again."""
    left, right = (summed(e, x, needed | {*other.labels}) for x, other in ((a, b), (b, a)))
    shared = [label for label in left.labels if label in right.labels]
    batch = [label for label in shared if label in needed]
    inner = [label for label in shared if label not in needed]
    rows = [label for label in left.labels if label not in shared]
    columns = [label for label in right.labels if label not in shared]
    if inner and (rows or columns):
        return matrices(e, left, right, (batch, rows, inner, columns))
    labels = (*batch, *rows, *columns, *inner)
    parts = [spread(e, x, labels) for x in (left, right)]
    product = elementwise.apply(e, np.multiply, parts)
    return summed(e, Labelled(product, labels), needed)


def spread(e: Emitter, x: Labelled, labels: Sequence[str]) -> Operand:
    """The operand with an axis for each label, of extent 1 where it has none."""
    a = x.value
    if isinstance(a, Scalar):
        return a
    own = x.extents(e)
    axes = [x.labels.index(label) if label in own else -1 for label in labels]
    extents = [own.get(label, e.index(1)) for label in labels]
    steps = [e.index(0 if axis < 0 else 1) for axis in axes]
    return views.view(e, a, [e.index(0)] * a.rank, axes, extents, steps)


Groups = tuple[list[str], list[str], list[str], list[str]]


def matrices(e: Emitter, a: Labelled, b: Labelled, groups: Groups) -> Labelled:
    """By products of matrices: one for each item of the batch."""
    batch, rows, inner, columns = groups
    extents = {**a.extents(e), **b.extents(e)}
    lead = [extents[label] for label in batch]
    n, k, m = (
        shapes.product(e, [extents[label] for label in group]) for group in (rows, inner, columns)
    )
    left = in_groups(e, a, batch, (rows, inner), [*lead, n, k])
    right = in_groups(e, b, batch, (inner, columns), [*lead, k, m])
    labels = (*batch, *rows, *columns)
    found = stack_of_products(e, left, right, lead)
    return Labelled(seen_as(e, found, [extents[label] for label in labels]), labels)


def in_groups(
    e: Emitter,
    x: Labelled,
    batch: list[str],
    groups: tuple[list[str], list[str]],
    extents: Sequence[SSAValue],
) -> Array:
    """The axes in this order, those of a group as one: a stack of matrices."""
    order = [x.labels.index(label) for label in (*batch, *groups[0], *groups[1])]
    assert isinstance(x.value, Array)
    a = views.transposed(e, x.value, order)
    return a if all(len(group) == 1 for group in groups) else seen_as(e, a, extents)


def stack_of_products(e: Emitter, a: Array, b: Array, lead: Sequence[SSAValue]) -> Array:
    """`a @ b` for each of the matrices that lie along the leading axes, which both have."""
    n, m = extents_of(e, a)[-2], extents_of(e, b)[-1]
    result = allocate(e, [*lead, n, m], a.dtype, "product")

    def multiply(at: Sequence[SSAValue]) -> None:
        x, y, z = (matrix_at(e, v, at).memref for v in (a, b, result))
        e.insert(array.MatmulOp(x, y, z))

    visit(e, lead, multiply)
    return result


def matrix_at(e: Emitter, a: Array, at: Sequence[SSAValue]) -> Array:
    zero, one = e.index(0), e.index(1)
    if not at:
        return a
    axes = [a.rank - 2, a.rank - 1]
    return views.view(e, a, [*at, zero, zero], axes, extents_of(e, a)[-2:], [one, one])


def visit(
    e: Emitter, extents: Sequence[SSAValue], do: Callable[[Sequence[SSAValue]], None]
) -> None:
    """Nested loops over these extents."""

    def level(at: list[SSAValue]) -> None:
        if len(at) == len(extents):
            do(at)
            return
        body = Block(arg_types=[IndexType()])
        body.args[0].name_hint = "i"
        with e.at(body):
            level([*at, body.args[0]])
            e.insert(array.YieldOp())
        e.insert(array.LoopOp(extents[len(at)], [], body), "trips")

    level([])


# --- NumPy's functions ------------------------------------------------------------------------


def letters(first: int, count: int) -> tuple[str, ...]:
    return tuple(f"axis {k}" for k in range(first, first + count))


def of_one_dtype(e: Emitter, name: str, values: Sequence[Value]) -> list[Operand]:
    """The operands, converted to the dtype of the result."""
    given = [operand(e, v) for v in values]
    dtype = common_dtype(e, given)
    if dtype == "b1":
        e.fail(f"{name} of bools is not compiled", way_out="convert to int64 first")
    return [in_dtype(e, g, dtype) for g in given]


def in_dtype(e: Emitter, value: Operand, dtype: str) -> Operand:
    is_number = isinstance(value, Scalar)
    return element_type_cast(e, value, dtype) if is_number else converted(e, value, dtype)


def stacks(e: Emitter, left: Array, right: Array, message: str) -> Value:
    """`left @ right`, of which one at least has more than two axes."""
    a, b = (v for v in of_one_dtype(e, "matmul", [left, right]) if isinstance(v, Array))
    n, m = extents_of(e, a)[-1], extents_of(e, b)[-2 if b.rank > 1 else -1]
    if not shapes.equal(n, m):
        differ = shapes.compare(e, "ne", n, m)
        e.insert(array.RaiseIfOp(differ, "ValueError", message, [m, n]))
    x = a if a.rank > 1 else spread(e, Labelled(a, ("k",)), ("n", "k"))
    y = b if b.rank > 1 else spread(e, Labelled(b, ("k",)), ("k", "m"))
    assert isinstance(x, Array)
    assert isinstance(y, Array)
    own = [extents_of(e, v) for v in (x, y)]
    lead = shapes.broadcast_extents(e, [o[:-2] for o in own])
    x, y = (views.broadcast_to(e, v, [*lead, *o[-2:]]) for v, o in zip((x, y), own, strict=True))
    found = stack_of_products(e, x, y, lead)
    gone = [len(lead)] if a.rank == 1 else [len(lead) + 1] if b.rank == 1 else []
    kept = [d for d in range(found.rank) if d not in gone]
    extents = extents_of(e, found)
    zeros, ones = [e.index(0)] * found.rank, [e.index(1)] * len(kept)
    return views.view(e, found, zeros, kept, [extents[d] for d in kept], ones) if gone else found


def along(
    e: Emitter, name: str, left: Value, right: Value, axes: Sequence[tuple[int, int]]
) -> Value:
    """The sum of products along pairs of axes, all other axes side by side."""
    a, b = (v for v in of_one_dtype(e, name, [left, right]) if isinstance(v, Array))
    first, second = letters(0, a.rank), list(letters(a.rank, b.rank))
    for i, j in axes:
        second[j] = first[i]
        n, m = extents_of(e, a)[i], extents_of(e, b)[j]
        if not shapes.equal(n, m):
            wrong = shapes.compare(e, "ne", n, m)
            e.insert(array.RaiseIfOp(wrong, "ValueError", f"{name}: {MISMATCH}"))
    gone = {first[i] for i, _ in axes}
    wanted = [label for label in (*first, *second) if label not in gone]
    return contract(e, [Labelled(a, first), Labelled(b, tuple(second))], wanted)


def inner(e: Emitter, left: Value, right: Value) -> Value:
    """`np.inner`: along the last axes."""
    a, b = operand(e, left), operand(e, right)
    if isinstance(a, Scalar) or isinstance(b, Scalar):
        return elementwise.apply(e, np.multiply, [a, b])
    return along(e, "inner", a, b, [(a.rank - 1, b.rank - 1)])


def einsum(e: Emitter, args: list[Value], kwargs: dict[str, Value]) -> Value:
    """`np.einsum("ij,jk->ik", a, b)`, the subscripts a constant."""
    kwargs = {k: v for k, v in kwargs.items() if k != "optimize"}
    out, dtype = kwargs.pop("out", None), kwargs.pop("dtype", None)
    if kwargs:
        e.fail(f"einsum: the argument {next(iter(kwargs))!r} is not supported")
    text = args[0].object if args and isinstance(args[0], Static) else None
    if not isinstance(text, str):
        e.fail("einsum takes its subscripts as a constant string", 'write np.einsum("ij,jk", a, b)')
    values = of_one_dtype(e, "einsum", args[1:])
    inputs, wanted = parsed(e, text, [len(extents_of(e, v)) for v in values])
    if dtype is not None:
        to = dtype_argument(e, dtype, dtype_of(values[0]))
        values = [in_dtype(e, v, to) for v in values]
    operands = [
        without_repeats(e, v, i, f"operand {k}")
        for k, (v, i) in enumerate(zip(values, inputs, strict=True))
    ]
    only = values[0] if len(values) == 1 else None
    if isinstance(only, Array) and {*inputs[0]} == {*wanted} and len(inputs[0]) > len(wanted):
        return diagonal_view(e, only, inputs[0], wanted)
    found = contract(e, operands, wanted)
    if not isinstance(out, Array):
        return found
    assign_view(e, out, found)
    return out


def parsed(e: Emitter, text: str, ranks: Sequence[int]) -> tuple[list[tuple[str, ...]], list[str]]:
    """The labels of each operand's axes, and those of the result."""
    left, arrow, right = text.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(ranks):
        e.fail("einsum: more operands provided than specified in the subscripts string, or fewer")
    most = 0
    inputs = list[tuple[str, ...]]()
    for term, rank in zip(terms, ranks, strict=True):
        more = rank - len(term.replace("...", ""))
        if more < 0 or (more > 0 and "..." not in term):
            e.fail(f"einsum: the subscripts {term!r} do not fit an operand of rank {rank}")
        most = max(most, more)
        inputs.append(expanded(term, more))
    plain = [label for term in inputs for label in term if len(label) == 1]
    if not all(label.isalpha() for label in plain):
        e.fail("einsum: subscripts are letters")
    if arrow:
        wanted = expanded(right, most)
    else:
        once = sorted({label for label in plain if plain.count(label) == 1})
        wanted = (*expanded("..." if "..." in left else "", most), *once)
    known = {label for term in inputs for label in term}
    if len({*wanted}) < len(wanted) or not {*wanted} <= known:
        e.fail("einsum: the output's subscripts must be among the operands', each once")
    return inputs, list(wanted)


def expanded(term: str, more: int) -> tuple[str, ...]:
    """The labels of a term; those of `...` are counted from the right."""
    before, dots, behind = term.partition("...")
    return (*before, *(f"...{k}" for k in range(more, 0, -1) if dots), *behind)


def diagonal_view(e: Emitter, a: Array, labels: Sequence[str], wanted: Sequence[str]) -> Array:
    """`np.einsum("ii->i", a)`: a view, to be stored to as well."""
    extents_by_label(e, a, labels, "single operand")
    for label in wanted:
        while labels.count(label) > 1:
            *others, p, q = sorted(range(a.rank), key=lambda d: labels[d] == label)
            a = diagonals.diagonal(e, views.transposed(e, a, [*others, p, q]))
            labels = [*(labels[d] for d in others), label]
    return views.transposed(e, a, [labels.index(label) for label in wanted])


def extents_by_label(e: Emitter, a: Array, labels: Sequence[str], name: str) -> dict[str, SSAValue]:
    """The extent of each label; ValueError where one has two."""
    extents = dict[str, SSAValue]()
    for label, n in zip(labels, extents_of(e, a), strict=True):
        known = extents.setdefault(label, n)
        if not shapes.equal(known, n):
            wrong = shapes.compare(e, "ne", known, n)
            message = (
                f"dimensions in {name} for collapsing index '{label}' don't match ({{}} != {{}})"
            )
            e.insert(array.RaiseIfOp(wrong, "ValueError", message, [known, n]))
    return extents


def without_repeats(e: Emitter, a: Operand, labels: tuple[str, ...], name: str) -> Labelled:
    """The diagonal of an operand that has a label twice."""
    unique = tuple(dict.fromkeys(labels))
    if isinstance(a, Scalar) or len(unique) == len(labels):
        return Labelled(a, labels)
    extents = extents_by_label(e, a, labels, name)
    result = allocate(e, [extents[label] for label in unique], a.dtype, "diagonal")

    def move(at: Sequence[SSAValue]) -> None:
        element = load(e, a, [at[unique.index(label)] for label in labels])
        e.insert(memref.StoreOp.get(element.ssa, result.memref, list(at)))

    visit(e, [extents[label] for label in unique], move)
    return Labelled(result, unique)


CASES: tuple[Case, ...] = (
    *(
        Case(f"np.einsum({text!r}, x, y)", {"x": "matrix", "y": "matrix"})
        for text in (
            "ij,jk->ik",
            "ij,jk",
            "ij,ij->i",
            "ij,kj->ki",
            "ii,jk->k",
            "ij,kl->iljk",
        )
    ),
    *(
        Case(f"np.einsum({text!r}, x)", {"x": "matrix"})
        for text in ("ij->j", "ij->", "ii", "ij->ji")
    ),
    Case("np.einsum('ij,ij', x, x * y * y)", {"x": "matrix", "y": "matrix"}),
    Case("np.einsum('i,ij,j->', x, m, y)", {"x": "vector", "m": "matrix", "y": "vector"}),
    Case("np.einsum('bi,bij->bj', x, x[:, :, None] * y)", {"x": "matrix", "y": "matrix"}),
    Case("np.einsum('...i,...i->...', x, y[0])", {"x": "matrix", "y": "matrix"}),
    Case("np.tensordot(x[None] * y[:, None], y, axes=1)", {"x": "matrix", "y": "matrix"}),
    Case("np.tensordot(x, y)", {"x": "matrix", "y": "matrix"}),
    Case(
        "np.tensordot(x, x[None] * y[:, None], axes=([0, 1], [2, 0]))",
        {"x": "matrix", "y": "matrix"},
    ),
    Case("np.inner(x, y)", {"x": "matrix", "y": "matrix"}),
    Case("np.inner(x, m)", {"x": "vector", "m": "matrix"}),
    Case("np.vdot(x, y.T)", {"x": "matrix", "y": "matrix"}),
    Case("np.vdot(x, y)", {"x": "real", "y": "real"}),
    Case("np.dot(x[None] * y[:, None], y)", {"x": "matrix", "y": "matrix"}),
    Case("(x[None] * y[:, None]) @ y", {"x": "matrix", "y": "matrix"}),
    Case("x @ (x[None] * y[:, None])", {"x": "matrix", "y": "matrix"}),
    Case("(x[None] * y[:, None]) @ y[0]", {"x": "matrix", "y": "matrix"}),
    Case("x[0] @ (x[None] * y[:, None])[:, None]", {"x": "matrix", "y": "matrix"}),
    Case("np.outer(x, y[:, 0])", {"x": "matrix", "y": "matrix"}),
)
