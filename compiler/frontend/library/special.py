"""SciPy's special functions, elementwise as NumPy's are, and those of them that `math` has.

SciPy is not imported for them: a ufunc is one of these where `scipy.special` is loaded and has it so named.
"""

from __future__ import annotations

import math as python_math
import sys
from collections.abc import Callable

import numpy as np
from xdsl.dialects import arith, math
from xdsl.ir import Operation, SSAValue

from ....dialects import special
from ..emitter import Emitter
from .cases import Case
from .maps import Lowering

Elements = list[SSAValue]
Condition = Callable[[Emitter, SSAValue], SSAValue]


def constant(e: Emitter, value: float, like: SSAValue) -> SSAValue:
    return e.constant(value, "f32" if str(like.type) == "f32" else "f64").ssa


def expit(e: Emitter, xs: Elements) -> SSAValue:
    """1 / (1 + exp(-x))."""
    one = constant(e, 1.0, xs[0])
    grown = e.emit(math.ExpOp(e.emit(arith.NegfOp(xs[0]))))
    return e.emit(arith.DivfOp(one, e.emit(arith.AddfOp(one, grown))))


def logit(e: Emitter, xs: Elements) -> SSAValue:
    """log(x / (1 - x)); near 1/2, where that loses digits, log1p(s) - log1p(-s) with s = 2 (x - 1/2)."""
    (x,) = xs
    one, half = constant(e, 1.0, x), constant(e, 0.5, x)
    odds = e.emit(arith.DivfOp(x, e.emit(arith.SubfOp(one, x))))
    off = e.emit(arith.SubfOp(x, half))
    s = e.emit(arith.MulfOp(constant(e, 2.0, x), off))
    up, down = (e.emit(math.Log1pOp(v)) for v in (s, e.emit(arith.NegfOp(s))))
    size = e.emit(math.AbsFOp(off))
    near = e.emit(arith.CmpfOp(size, constant(e, 0.15, x), "olt"))
    middle = e.emit(arith.SubfOp(up, down))
    return e.emit(arith.SelectOp(near, middle, e.emit(math.LogOp(odds))))


def times_log(kind: Callable[[SSAValue], Operation]) -> Lowering:
    """x * log(y), or 0 where x is 0 and y a number.

    Its slope in x is log(y) there, too: so the logarithm is replaced where it is not finite, not the product.
    """

    def lower(e: Emitter, xs: Elements) -> SSAValue:
        x, y = xs
        zero, minus_zero = constant(e, 0.0, x), constant(e, -0.0, x)
        none = e.emit(arith.CmpfOp(x, zero, "oeq"))
        number = e.emit(arith.CmpfOp(y, y, "ord"))
        is_zero = e.emit(arith.AndIOp(none, number))
        log = e.emit(kind(y))
        size = e.emit(math.AbsFOp(log))
        endless = e.emit(arith.CmpfOp(size, constant(e, python_math.inf, x), "uge"))
        factor = e.emit(arith.SelectOp(e.emit(arith.AndIOp(is_zero, endless)), zero, log))
        sign = e.emit(arith.SelectOp(is_zero, zero, minus_zero))  # 0 where a product would be -0
        return e.emit(arith.AddfOp(e.emit(arith.MulfOp(x, factor)), sign))

    return lower


def op(kind: Callable[[SSAValue], Operation]) -> Lowering:
    return lambda e, xs: e.emit(kind(xs[0]))


def log_gamma(e: Emitter, xs: Elements) -> SSAValue:
    """-infinity at -infinity, where `math.lgamma` has infinity."""
    lowest = constant(e, -python_math.inf, xs[0])
    at_lowest = e.emit(arith.CmpfOp(xs[0], lowest, "oeq"))
    return e.emit(arith.SelectOp(at_lowest, lowest, e.emit(special.LogGammaOp(xs[0]))))


ROWS: dict[str, Lowering] = {
    "erf": op(math.ErfOp),
    "erfc": op(special.ErfcOp),
    "gamma": op(special.GammaOp),
    "gammaln": log_gamma,
    "psi": op(special.DigammaOp),
    "expit": expit,
    "logit": logit,
    "xlogy": times_log(math.LogOp),
    "xlog1py": times_log(math.Log1pOp),
}
"""By SciPy's name, the code for one element."""


def lowering(ufunc: np.ufunc) -> Lowering | None:
    """The code of a special function; None for any other."""
    name = ufunc.__name__
    if name not in ROWS or getattr(sys.modules.get("scipy.special"), name, None) is not ufunc:
        return None
    return ROWS[name]


# --- `math` -----------------------------------------------------------------------------------


def is_pole(e: Emitter, x: SSAValue) -> SSAValue:
    """0 and the negative integers, -infinity not among them."""
    whole = e.emit(arith.CmpfOp(x, e.emit(math.FloorOp(x)), "oeq"))
    low = e.emit(arith.CmpfOp(x, constant(e, 0.0, x), "ole"))
    finite = e.emit(arith.CmpfOp(x, constant(e, -python_math.inf, x), "ogt"))
    return e.emit(arith.AndIOp(e.emit(arith.AndIOp(whole, low)), finite))


def is_pole_or_infinite(e: Emitter, x: SSAValue) -> SSAValue:
    """0, the negative integers, -infinity."""
    lowest = e.emit(arith.CmpfOp(x, constant(e, -python_math.inf, x), "oeq"))
    return e.emit(arith.OrIOp(is_pole(e, x), lowest))


def beyond(e: Emitter, x: SSAValue, largest: float) -> SSAValue:
    """The finite numbers above `largest`."""
    above = e.emit(arith.CmpfOp(x, constant(e, largest, x), "ogt"))
    finite = e.emit(arith.CmpfOp(x, constant(e, python_math.inf, x), "olt"))
    return e.emit(arith.AndIOp(above, finite))


def gamma_overflows(e: Emitter, x: SSAValue) -> SSAValue:
    """Above 171.62, and so near to 0 that 1 / x overflows."""
    near = e.emit(arith.CmpfOp(e.emit(math.AbsFOp(x)), constant(e, 2.0**-1024, x), "ole"))
    return e.emit(arith.OrIOp(beyond(e, x, 171.62437695630272), near))


def log_gamma_overflows(e: Emitter, x: SSAValue) -> SSAValue:
    return beyond(e, x, 2.5599833278516383e305)


MATH: dict[object, tuple[Callable[[SSAValue], Operation], Condition | None, Condition | None]] = {
    python_math.erfc: (special.ErfcOp, None, None),
    python_math.gamma: (special.GammaOp, is_pole_or_infinite, gamma_overflows),
    python_math.lgamma: (special.LogGammaOp, is_pole, log_gamma_overflows),
}
"""The op of a function of `math`, the arguments outside its domain, those where it overflows."""


CASES: tuple[Case, ...] = (
    *(Case(f"special.{name}(x)", {"x": "real"}) for name in ("erf", "erfc", "expit")),
    *(Case(f"special.{name}(x)", {"x": "positive"}) for name in ("gamma", "gammaln")),
    Case("special.gamma(x + 0.3)", {"x": "integer"}),
    Case("special.psi(4.0 * x)", {"x": "above_one"}),
    Case("special.digamma(x + 0.3)", {"x": "integer"}),
    Case("special.gammaln(x)", {"x": "special"}),
    Case("special.gamma(np.abs(x))", {"x": "special"}),
    Case("special.logit(0.5 + 0.5 * x)", {"x": "unit"}),
    Case("special.xlogy(x, y)", {"x": "real", "y": "positive"}),
    Case("special.xlogy(x, np.abs(x))", {"x": "special"}),
    Case("special.xlog1py(x, y)", {"x": "real", "y": "positive"}),
)
