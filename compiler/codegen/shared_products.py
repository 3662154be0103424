"""The functions for products of matrices (`matmul_to_blas`) as a library: a process has one for each kind.

They are the same in every module, and translating them takes as long as a kernel. So a kernel of a process
declares the one for its dtype, and says in its metadata how it was to be written::

    declare i32 @mutad_matmul_double(ptr, i64, ...)    {"kind": "any", "type": "double", "wide": true, ...}

That is what their last bits depend on: what the arithmetic may do, how wide the module's vectors are, and
whether LLVM may have versions for strides of 1. Libraries ahead of time have functions of their own.
"""

from __future__ import annotations

import json

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Region

from ..analysis.alias import AliasAnalysis
from . import ordered_products
from .kernel_memory import KernelMemory
from .kernel_module import KernelText, module_text
from .kernel_state import KernelState
from .llvm_module import SPREAD, Target, host
from .llvm_text import FunctionText, Metadata
from .matmul_to_blas import MatmulWriter, function_name
from .vector_math import features


def products_text(asked: str, target: Target | None) -> tuple[KernelText, str]:
    """The library that a kernel asks for, and the function that it exports.

    `asked`: the `kind`, in "any" order or "ordered" (`ordered_products`), the LLVM `type` of the numbers,
    whether there is `fastmath`, the module is `spread`, and `wide`.
    """
    how = json.loads(asked)
    nothing = func.FuncOp("products", FunctionType.from_lists([], []), Region(Block()))
    cpu = features(target or host())
    text, alias = FunctionText(Metadata()), AliasAnalysis(nothing)
    state = KernelState(text, alias, how["fastmath"], cpu, KernelMemory.SYSTEM)
    state.spread = how["spread"]
    if how["kind"] == "ordered":
        name = ordered_products.define(state, how["type"])
        written = state.functions.pop(name)
    else:
        name = function_name(how["type"])
        written = MatmulWriter(state, how["type"], name).write()
    exported = written.replace("define internal ", "define ", 1)
    definitions = [[exported], *([[SPREAD]] if how["spread"] else [])]
    return module_text(state, definitions, (), wide=how["wide"]).beside_library(), name
