"""The contents of whole arrays between stores."""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from ...dialects import array
from ..analysis.memory_ssa import Version as MemoryVersion


@dataclass(frozen=True)
class Version:
    """The contents of a whole array while no store changes them."""

    base: SSAValue
    token: MemoryVersion


def is_growable(base: SSAValue) -> bool:
    """True for memory that is mostly addresses: nobody copies it whole."""
    return isinstance(base.owner, Operation) and array.GROWABLE in base.owner.attributes
