"""Each scalar op gives in the interpreter what compiled code gives, to the bit, on every edge."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from lit_programs import context
from xdsl.parser import Parser

from mutad.compiler.codegen.loops_to_llvm import CONTROL, LOWERINGS
from mutad.compiler.codegen.scalars_to_llvm import SCALAR_OPS
from mutad.compiler.interpreter.execution import OPS
from mutad.compiler.interpreter.scalars import LIBM, SCALARS
from mutad.compiler.pipeline import Options
from mutad.compiler.program_calls import call_of
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
    "i32": [2**31 - 1, -(2**31)],
    "i64": [2**63 - 1, -(2**63)],
    "index": [2**62, -(2**62)],
}

FLOAT_OPS = """
arith.addf 2|arith.subf 2|arith.mulf 2|arith.divf 2|arith.negf 1|arith.maximumf 2|arith.minimumf 2
arith.minnumf 2|arith.maxnumf 2|ad.mul 2|ad.mul 2 both|ad.div 2|array.floordiv 2|array.floormod 2|math.absf 1
math.ceil 1|math.floor 1|math.trunc 1|math.round 1|math.roundeven 1|math.copysign 2|math.sqrt 1|math.rsqrt 1
math.fma 3|special.gamma 1|special.digamma 1|special.trigamma 1|special.tetragamma 1|special.erfc 1
special.log_gamma 1
math.exp 1|math.exp2 1|math.expm1 1|math.log 1|math.log2 1|math.log10 1|math.log1p 1|math.sin 1|math.cos 1
math.tan 1|math.asin 1|math.acos 1|math.atan 1|math.sinh 1|math.cosh 1|math.tanh 1|math.asinh 1|math.acosh 1
math.atanh 1|math.atan2 2|math.powf 2|math.cbrt 1|math.erf 1
""".strip().replace("\n", "|").split("|")  # fmt: skip
INTEGER_OPS = """
addi subi muli divsi remsi divui remui ceildivsi ceildivui floordivsi minsi maxsi minui maxui andi ori xori
shli shrsi shrui
""".split()  # fmt: skip
PREDICATES = {
    "arith.cmpf": "oeq ogt oge olt ole one ord ueq ugt uge ult ule une uno".split(),
    "arith.cmpi": "eq ne slt sle sgt sge ult ule ugt uge".split(),
}
NUMBERS = ("i1", "i8", "i32", "i64", "index", "f32", "f64")


def lines_of(type_: str) -> list[tuple[str, str]]:
    """Ops on %x, %y of a type: their text, and the type of what they give."""
    found: list[tuple[str, str]] = []
    is_float = type_ in ("f32", "f64")
    if is_float:
        for row in FLOAT_OPS:
            name, count, *rest = row.split()
            operands = ", ".join(["%x", "%y", "%x"][: int(count)])
            found.append((" ".join([name, operands, *rest]) + f" : {type_}", type_))
    else:
        found += [(f"arith.{name} %x, %y : {type_}", type_) for name in INTEGER_OPS]
        if type_ != "i1":
            found += [
                (f"{n} %x, %y : {type_}", type_)
                for n in ("array.floordiv", "array.floormod", "math.ipowi")
            ]
        if type_ not in ("i1", "index"):
            counting = ("math.ctlz", "math.cttz", "math.ctpop", "math.absi")
            found += [(f"{n} %x : {type_}", type_) for n in counting]
    if type_ != "i1":
        compare = "arith.cmpf" if is_float else "arith.cmpi"
        found += [(f"{compare} {p}, %x, %y : {type_}", "i1") for p in PREDICATES[compare]]
    for to in NUMBERS:
        for unsigned in ("", " unsigned"):
            found.append((f"array.cast %x{unsigned} : {type_} -> {to}", to))
    return found


def program(type_: str, lines: list[tuple[str, str]]) -> str:
    """One map that computes all of them."""
    outs = [f"%o{k} : memref<?x{to}>" for k, (_, to) in enumerate(lines)]
    memrefs = ", ".join(f"memref<?x{to}>" for _, to in lines)
    names = ", ".join(f"%o{k}" for k in range(len(lines)))
    kinds = ", ".join(['"store"'] * len(lines))
    body = "\n".join(f"    %r{k} = {text}" for k, (text, _) in enumerate(lines))
    yields = ", ".join(f"%r{k}" for k in range(len(lines)))
    types = ", ".join(to for _, to in lines)
    return f"""
func.func @f(%n : index, %a : memref<?x{type_}>, %b : memref<?x{type_}>, {", ".join(outs)}) {{
  array.map(%n) ins(%a, %b : memref<?x{type_}>, memref<?x{type_}>)
      outs({names} : {memrefs}) kinds [{kinds}] {{
  ^bb0(%x : {type_}, %y : {type_}):
{body}
    array.yield {yields} : {types}
  }}
  func.return
}}"""


def operands(type_: str) -> tuple[Any, Any]:
    numbers = FLOATS if type_[0] == "f" else [0, 1] if type_ == "i1" else [*INTEGERS, *EDGES[type_]]
    with np.errstate(all="ignore"):
        values = np.array(numbers).astype(dtype_named(type_))
    a, b = np.meshgrid(values, values)
    return a.ravel(), b.ravel()


@pytest.mark.parametrize("type_", NUMBERS)
def test_each_op_gives_what_compiled_code_gives(type_: str) -> None:
    lines = lines_of(type_)
    module = Parser(CONTEXT, program(type_, lines)).parse_module()
    call, (a, b) = call_of(module), operands(type_)
    left: list[dict[str, Any]] = []
    for options in (None, Options(opt=0)):
        outs = [np.zeros(a.size, dtype_named(to)) for _, to in lines]
        left.append(run_call(module, call, [a.size, a, b, *outs], options).values)
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
