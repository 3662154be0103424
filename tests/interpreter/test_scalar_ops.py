"""Each scalar op gives in the interpreter what compiled code gives, to the bit, on every edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lit_programs import context
from scalar_lines import NUMBERS, lines_of, lines_with_constants, program
from xdsl.parser import Parser

from mutad.compiler.codegen.function_to_llvm import CONTROL, LOWERINGS
from mutad.compiler.codegen.scalars_to_llvm import SCALAR_OPS
from mutad.compiler.interpreter.execution import OPS
from mutad.compiler.interpreter.scalars import LIBM, SCALARS
from mutad.compiler.program_calls import call_of
from mutad.compiler.request import Options
from mutad.compiler.rules import RULES
from mutad.running import run_call

CONTEXT = context()
FLOATS = [
    0.0, -0.0, 1.0, -1.0, 0.5, -0.5, -2.5, 3.0, 7.25, 0.49999999999999994, 23.0, -3.5, 170.0, 1e300, -1e300,
    1e10, -1e10, 2.0**31, -(2.0**31) - 1, 2.0**63, -(2.0**63), 3e38, 1e-310, np.inf, -np.inf, np.nan,
]  # fmt: skip
INTEGERS = [0, 1, -1, 2, -2, 3, 7, -7, 31, 33, 63, 64, 100, 127, -128]
EDGES = {
    "i8": [],
    "i16": [2**15 - 1, -(2**15)],
    "i32": [2**31 - 1, -(2**31)],
    "i64": [2**63 - 1, -(2**63)],
    "index": [2**62, -(2**62)],
}


def operands(type_: str) -> tuple[Any, Any]:
    numbers = FLOATS if type_[0] == "f" else [0, 1] if type_ == "i1" else [*INTEGERS, *EDGES[type_]]
    with np.errstate(all="ignore"):
        values = np.array(numbers).astype(dtype_named(type_))
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("type_", NUMBERS)
def test_each_op_gives_what_compiled_code_gives(type_: str) -> None:
    compare(type_, lines_of(type_))


@pytest.mark.parametrize("type_", [t for t in NUMBERS if t[0] == "i"])
def test_constants_are_operands_like_others(type_: str) -> None:
    compare(type_, lines_with_constants(type_))


def compare(type_: str, lines: list[tuple[str, str]]) -> None:
    module = Parser(CONTEXT, program(type_, lines)).parse_module()
    call, (a, b) = call_of(module), operands(type_)
    left: list[dict[str, Any]] = []
    for options in (None, Options(opt=0)):
        outs = [np.zeros(a.size, dtype_named(to)) for _, to in lines]
        outcome = run_call(module, call, [a.size, a, b, *outs], options)
        assert outcome.raised is None, repr(outcome.raised)
        left.append(outcome.values)
    for k, (text, to) in enumerate(lines):
        one, other = left[0][f"o{k}"], left[1][f"o{k}"]
        if to[0] != "f":
            wrong = one != other
        else:
            loose = 0.0 if text.split()[0] not in LOOSE else 1e-13 if to == "f64" else 1e-6
            with np.errstate(all="ignore"):
                near = np.abs(one - other) <= loose * np.maximum(1, np.abs(one))
                sign = (np.signbit(one) == np.signbit(other)) | (one != 0)
                same = (one == other) & (sign | (text.split()[0] in UNSIGNED_ZEROS))
            wrong = ~(same | near | (np.isnan(one) & np.isnan(other)))
        shown = [(a[i], b[i], one[i], other[i]) for i in np.flatnonzero(wrong)[:3]]
        assert not wrong.any(), f"{text}: operands, interpreted, compiled: {shown}"


LOOSE = ({kind.name for kind in LIBM} - {"math.fma", "math.round"}) | {
    f"special.{n}gamma" for n in ("di", "tri", "tetra", "")
}
"""Ops of which compiled code may call a vector version, or sums in another order."""
UNSIGNED_ZEROS = {f"arith.{n}f" for n in ("minimum", "maximum", "minnum", "maxnum")}
"""Those of two zeros may give either."""


def dtype_named(name: str) -> Any:
    kinds = {"i1": np.bool_, "index": np.int64}
    return kinds.get(name) or np.dtype(name.replace("f", "float").replace("i", "int"))


def test_no_op_is_without_meaning() -> None:
    """What code is generated for, and what has a rule, the interpreter runs."""
    terminators = {"scf.yield", "func.return"}
    known = {*SCALARS, *OPS}
    ops = [*SCALAR_OPS, *LOWERINGS, *CONTROL, *(kind for kind in RULES if hasattr(kind, "name"))]
    missing = {kind.name for kind in ops if kind not in known} - terminators
    assert missing == {"func.func", "builtin.module"}
