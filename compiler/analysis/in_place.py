"""May a map write its outputs while it still has to read inputs?

The points run in any order. So no point may read what another point writes. An output and an input must
be different memory, or the same view (a point reads what it writes itself), or parts of one array that never
meet: `x[::2]` and `x[1::2]`, a row and the rows below it.

"Allowed" is proved. Otherwise all inputs have to be read first.
"""

from __future__ import annotations

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import array
from ..rules import Access
from .alias import AliasAnalysis
from .dependence import Dependence


class InPlace:
    """Answers the question for the maps of one function."""

    def __init__(self, function: func.FuncOp) -> None:
        self.alias = AliasAnalysis(function)
        self._dependence = Dependence(function, self.alias)

    def allows(self, reader: array.MapOp, writer: array.MapOp) -> bool:
        """True where a point may read what `reader` reads after another has written what `writer` writes.

        Both maps have the same points, and may be one.
        """
        return all(
            not self.alias.may_alias(out, read)
            or (self.alias.same_view(out, read) and not stands_still(out))
            or self.apart(reader, read, writer, out)
            for out in writer.outs
            for read in reader.ins
        )

    def apart(
        self, reader: array.MapOp, read: SSAValue, writer: array.MapOp, out: SSAValue
    ) -> bool:
        """True when no element is read and written, by the extents of the maps or by those of the views."""
        return any(
            not self._dependence.may_meet(
                Access(reader, read, "read", whole=whole),
                Access(writer, out, "write", whole=whole),
                None,
            )
            for whole in (False, True)
        )


def stands_still(memref: SSAValue) -> bool:
    """True when several points are the same element: what one writes, another would read."""
    assert isinstance(memref.type, MemRefType)
    axes = zip(memref.type.get_shape(), array.strides_of(memref.type), strict=True)
    return any(stride == 0 and extent != 1 for extent, stride in axes)
