"""The shape that `reshape` is asked for: -1 filled in, ValueError where the sizes differ.

A number known at run time may be -1, too. The function is compiled for arguments with which it is
not, where that depends on them alone; else both are compiled in, and the run chooses.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ....dialects import array
from ....dialects.array import constant_value
from ...analysis.affine import Affine, affine, extreme
from ..emitter import Emitter
from ..values import EXTENT_MAX, Scalar, Tuple, Value
from . import shapes
from .indexing import as_index

UNKNOWN = "can only specify one unknown dimension"


def wanted_extents(e: Emitter, shape: Sequence[Value], own: Sequence[SSAValue]) -> list[SSAValue]:
    """The extents asked for of an array with the extents `own`."""
    if len(shape) == 1 and isinstance(shape[0], Tuple):
        shape = shape[0].items
    lengths = [as_index(e, n) for n in shape]
    unknown = [k for k, n in enumerate(lengths) if n.constant is not None and n.constant < 0]
    if len(unknown) > 1:
        e.fail(UNKNOWN)
    if not lengths:
        e.fail("reshape to a number is not compiled", way_out="use an index")
    open_ = [k for k, n in enumerate(lengths) if n.constant is None and may_be_negative(e, n)]
    size = shapes.product(e, own)
    if open_:
        return filled_at_run_time(e, lengths, unknown, open_, size)
    given = [n for k, n in enumerate(lengths) if k not in unknown]
    product = e.index(1)
    for n in given:
        product = counted(e, product, n)
    if not unknown:
        if not shapes.equal(product, size):
            differs = shapes.compare(e, "ne", product, size)
            e.insert(
                array.RaiseIfOp(differs, "ValueError", message(lengths, None), shown(size, given))
            )
        return [n.ssa for n in lengths]
    (place,) = unknown
    rest = cancelled(e, own, given)
    if rest is None:
        rest = e.emit(array.FloorDivOp(size, product))
        wrong = unfit(e, size, product, rest)
        e.insert(array.RaiseIfOp(wrong, "ValueError", message(lengths, place), shown(size, given)))
    elif constant_value(product) is None:
        none = shapes.compare(e, "eq", product, e.index(0))
        e.insert(array.RaiseIfOp(none, "ValueError", message(lengths, place), shown(size, given)))
    return [rest if k == place else n.ssa for k, n in enumerate(lengths)]


def may_be_negative(e: Emitter, n: Scalar) -> bool:
    """False where it never is, or the function is compiled for arguments with which it is not."""
    if n.low >= 0:
        return False
    if e.assumed is None:
        return True
    conditions = shapes.conditions_for(e, extreme("min", affine(n.ssa), Affine()), Affine())
    if conditions is None:
        return True
    e.assumed |= conditions
    return False


def cancelled(e: Emitter, own: Sequence[SSAValue], given: Sequence[Scalar]) -> SSAValue | None:
    """What is left of the size for -1 where the other numbers are extents of the array themselves."""
    left = list(own)
    for n in given:
        same = next((m for m in left if shapes.equal(m, n.ssa)), None)
        if same is not None:
            left.remove(same)
        elif n.constant != 1:
            return None
    return shapes.product(e, left)


def filled_at_run_time(
    e: Emitter,
    lengths: Sequence[Scalar],
    unknown: Sequence[int],
    open_: Sequence[int],
    size: SSAValue,
) -> list[SSAValue]:
    """The extents where any of the numbers `open_` may be -1."""
    zero, one = e.index(0), e.index(1)
    negative = {k: shapes.compare(e, "slt", lengths[k].ssa, zero) for k in open_}
    count, product = e.index(len(unknown)), one
    for k, n in enumerate(lengths):
        if k in unknown:
            continue
        part = n
        if k in negative:
            known = e.emit(arith.SelectOp(negative[k], one, n.ssa))
            part = Scalar("py_int", known, None, 0)
            count = e.emit(arith.AddiOp(count, e.emit(arith.SelectOp(negative[k], one, zero))))
        product = counted(e, product, part)
    e.insert(array.RaiseIfOp(shapes.compare(e, "sgt", count, one), "ValueError", UNKNOWN))
    rest = e.emit(array.FloorDivOp(size, product))
    wrong = unfit(e, size, product, rest)
    places = {**negative, **{k: shapes.compare(e, "eq", count, one) for k in unknown}}
    for place, is_unknown in places.items():
        others = [n for k, n in enumerate(lengths) if k != place]
        both = e.emit(arith.AndIOp(is_unknown, wrong))
        text = message(lengths, place)
        e.insert(array.RaiseIfOp(both, "ValueError", text, shown(size, others)))
    none = shapes.compare(e, "eq", count, zero)
    differs = e.emit(arith.AndIOp(none, shapes.compare(e, "ne", product, size)))
    e.insert(array.RaiseIfOp(differs, "ValueError", message(lengths, None), shown(size, lengths)))
    return [
        e.emit(arith.SelectOp(places[k], rest, n.ssa)) if k in places else n.ssa
        for k, n in enumerate(lengths)
    ]


def unfit(e: Emitter, size: SSAValue, product: SSAValue, rest: SSAValue) -> SSAValue:
    """Whether no extent makes the others' product the array's size."""
    differs = shapes.compare(e, "ne", shapes.times(e, rest, product), size)
    if constant_value(product) is not None and constant_value(product):
        return differs
    return shapes.either(e, [differs, shapes.compare(e, "eq", product, e.index(0))])


def message(lengths: Sequence[Scalar], place: int | None) -> str:
    """NumPy's words, which leave a -1 in front out."""
    named = range(1 if place == 0 else 0, len(lengths))
    words = ",".join("newaxis" if k == place else "{}" for k in named)
    comma = "," if len(lengths) == 1 else ""
    return f"cannot reshape array of size {{}} into shape ({words}{comma})"


def shown(size: SSAValue, given: Sequence[Scalar]) -> list[SSAValue]:
    return [size, *(n.ssa for n in given)]


def counted(e: Emitter, product: SSAValue, n: Scalar) -> SSAValue:
    """product * n, OverflowError where that is no int64."""
    small = constant_value(product) is not None and n.high <= EXTENT_MAX
    if constant_value(product) == 1 or small:
        return shapes.times(e, product, n.ssa)
    return e.emit(array.CheckedMulOp(product, n.ssa))
