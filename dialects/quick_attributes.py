"""Attributes of xDSL, made, verified and hashed in less time (`quick_xdsl.install`)."""

# pyright: reportPrivateUsage=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

from xdsl.dialects.arith import FastMathFlagsAttr
from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    FileLineColLoc,
    Float32Type,
    Float64Type,
    FloatAttr,
    IndexType,
    IntAttr,
    IntegerAttr,
    IntegerType,
    MemRefType,
    NoneAttr,
    StringAttr,
    UnitAttr,
)
from xdsl.ir import Attribute, ParametrizedAttribute

HASHED_OFTEN = (
    *(IntegerType, IndexType, Float32Type, Float64Type, MemRefType),
    *(IntegerAttr, FloatAttr, StringAttr, UnitAttr, NoneAttr, ArrayAttr, DenseArrayBase),
    FastMathFlagsAttr,
)
"""Classes of attributes."""


def hashed_once(kind: Any) -> Callable[[Any], int]:
    """The hash of an attribute, which never changes: that of all its parts, and of its class, taken once.

    (Of attributes without parts, `index`, `f64` and `unit` among them, xDSL's is the same.)
    """
    taken = kind.__hash__

    def hash_of(self: Any) -> int:
        known = vars(self)
        if "_hash" not in known:
            known["_hash"] = hash((kind, taken(self)))
        return known["_hash"]

    return hash_of


verify_attribute = ParametrizedAttribute._verify


@lru_cache(maxsize=1024)
def verified(attribute: ParametrizedAttribute) -> None:
    """VerifyException where the attribute is none; what is equal has the same parameters."""
    verify_attribute(attribute)


def verify_once(self: ParametrizedAttribute) -> None:
    try:
        verified(self)
    except TypeError:  # what is no attribute may have no hash
        verify_attribute(self)


def init_attribute(self: ParametrizedAttribute, *parameters: Any) -> None:
    """What is frozen is set in its dictionary."""
    held, declared = vars(self), self.get_irdl_definition().parameters
    for (name, how), one in zip(declared, parameters, strict=True):
        held[name] = one if how.converter is None else how.converter(one)
    self._verify()


def verify_new(self: Attribute) -> None:
    """That it is one of the two kinds of attributes, its class says."""
    self._verify()


NONE = NoneAttr()


def init_memref_type(
    self: Any, element_type: Any, shape: Any, layout: Any = NONE, memory_space: Any = NONE
) -> None:
    if not isinstance(shape, ArrayAttr):
        shape = ArrayAttr([IntAttr(dim) if isinstance(dim, int) else dim for dim in shape])
    ParametrizedAttribute.__init__(self, shape, element_type, layout, memory_space)


def install() -> None:
    ParametrizedAttribute.__init__, Attribute.__post_init__ = init_attribute, verify_new
    ParametrizedAttribute._verify, MemRefType.__init__ = verify_once, init_memref_type
    FileLineColLoc._verify = verify_attribute  # each is made once: to keep it serves nobody
    for kind in HASHED_OFTEN:
        kind.__hash__ = hashed_once(kind)
