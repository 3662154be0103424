"""The axis along which the innermost loop of a map goes: that along which elements lie side by side."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import AnyFloat, MemRefType
from xdsl.ir import Attribute

from ...dialects import array

INNERMOST = "innermost"
"""The attribute of an `array.map` with a sum: the axis along which its innermost loop goes."""


def innermost_of(axes: Sequence[int], strides: Sequence[Sequence[str]]) -> int:
    """One of the axes, by the strides of the operands that count.

    Unit strides decide. Operands that are reduced or broadcast decide where the others do not: they stand
    still in one loop and go along in the other.
    """

    def score(axis: int) -> tuple[int, int]:
        along = [s for s in strides if s[axis] == "1"]
        still = sum(any(s[a] == "0" for a in axes) for s in along)
        return len(along) - still, still

    return max(axes, key=lambda a: (score(a), a))


def known_innermost(op: array.MapOp) -> int | None:
    """The axis of a sum, as the types of its operands tell it; None where there is one axis, or no sum.

    Only what is read counts: that something is saved beside a sum must not change the order of its terms.
    """
    axes = [k for k, n in enumerate(op.extents) if array.constant_value(n) != 1]
    if len(axes) < 2 or op.gathers is not None or not summed_axes(op):
        return None
    return innermost_of(axes, [known_strides(m.type) for m in op.ins])


def summed_axes(op: array.MapOp) -> list[tuple[int, ...]]:
    """The axes over which each sum, or product, of floats goes."""
    found: list[tuple[int, ...]] = []
    for out, kind in zip(op.outs, op.out_kinds, strict=True):
        assert isinstance(out.type, MemRefType)
        strides = known_strides(out.type)
        if kind in ("add", "mul") and isinstance(out.type.element_type, AnyFloat):
            found.append(tuple(k for k, s in enumerate(strides) if s == "0"))
    return [over for over in found if over]


def known_strides(type_: Attribute) -> list[str]:
    """The strides of an array; "" where only a call knows them."""
    assert isinstance(type_, MemRefType)
    pairs = zip(array.strides_of(type_), type_.get_shape(), strict=True)
    return ["0" if n == 1 else "" if s is None else str(s) for s, n in pairs]
