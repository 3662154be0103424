"""Libraries that a process has once for many modules: products of matrices, and functions of numbers.

Products (`matmul_to_blas`), and the versions of a libm function for vectors (`one_version`), are the same in
every module, and translating them takes as long as a kernel. So a kernel of a process declares what it calls,
and says in its metadata how the library was to be written::

    declare i32 @mutad_matmul_double(ptr, i64, ...)    {"kind": "any", "type": "double", "wide": true, ...}
    declare <8 x double> @_ZGVeN8v_mutad_vector_sin(<8 x double>)    {"kind": "function", "name": "sin"}

For products, that is what their last bits depend on: what the arithmetic may do, how wide the module's
vectors are, and whether LLVM may have versions for strides of 1. Versions of a function have one text.
Libraries ahead of time have functions of their own.
"""

from __future__ import annotations

import json

from xdsl.dialects import func
from xdsl.dialects.builtin import FunctionType
from xdsl.ir import Block, Region

from ..analysis.alias import AliasAnalysis
from . import one_version, ordered_products
from .kernel_memory import KernelMemory
from .kernel_module import KernelText, module_text
from .kernel_state import KernelState
from .llvm_module import Target, host
from .llvm_text import FunctionText, Metadata
from .matmul_to_blas import MatmulWriter, function_name
from .vector_math import features


def shared_text(asked: str, target: Target | None) -> tuple[KernelText, list[str]]:
    """The library that a kernel asks for, and the functions that it exports.

    `asked`: the `kind`; of a "function" its `name` in the C library; of products in "any" order or "ordered"
    (`ordered_products`) the LLVM `type` of the numbers, whether there is `fastmath`, the module is `spread`,
    and `wide`.
    """
    how = json.loads(asked)
    nothing = func.FuncOp("shared", FunctionType.from_lists([], []), Region(Block()))
    cpu = features(target or host())
    text, alias = FunctionText(Metadata()), AliasAnalysis(nothing)
    state = KernelState(text, alias, how.get("fastmath", False), cpu, KernelMemory.SYSTEM)
    if how["kind"] == "function":
        names = one_version.library(state, how["name"])
        state.kept_alive.clear()  # they are exported
        definitions = [[exported(state.functions.pop(name))] for name in names]
        return module_text(state, definitions, (), wide=False).beside_library(), names
    state.spread = how["spread"]
    if how["kind"] == "ordered":
        name = ordered_products.define(state, how["type"])
        written = state.functions.pop(name)
    else:
        name = function_name(how["type"])
        written = MatmulWriter(state, how["type"], name).write()
    return module_text(state, [[exported(written)]], (), wide=how["wide"]).beside_library(), [name]


def exported(written: str) -> str:
    """A function that can be called from outside."""
    return written.replace("define internal ", "define ", 1)
