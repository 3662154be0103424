"""`exp` and `tanh` of vectors as LLVM text, for CPUs with AVX-512, in the place of libmvec's.

Both begin with exp(x) = 2^n exp(r) for the integer n next to x / log(2), and with

    exp(r) - 1 = r + r^2 p(r),    |r| <= log(2) / 2

where p interpolates at the Chebyshev nodes of that interval, behind 1/2: its error is 3e-17 of exp(r).

- `exp` is within 1.2 ulp (libmvec's: 2.6), and has no slow way for large, small or special numbers: VSCALEFPD
  multiplies by 2^n, and rounds as it should.
- `tanh` is e / (e + 2) with e = exp(2|x|) - 1 = 2^n (exp(r) - 1) + (2^n - 1), within 2.8 ulp.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log

from .kernel_state import KernelState
from .scalar_text import float_text

LANES = 8
VECTOR = f"<{LANES} x double>"

P = (
    0.5, 0.16666666666666666, 0.04166666666665131, 0.008333333333332152, 0.0013888888905922382,
    0.00019841269854370018, 2.480153630713628e-05, 2.755728000429909e-06, 2.7613852100963253e-07,
    2.5095589467479502e-08,
)  # fmt: skip
"""Coefficients of p, lowest first."""

LOG2 = log(2.0)
LOG2_LOW = 2.3190468138462996e-17
"""What log(2) has besides `LOG2`."""
ROUNDING = 1.5 * 2.0**52
"""A number that is added, and subtracted again, leaves the integer next to it."""
SCALED = "llvm.x86.avx512.mask.scalef.pd.512"
FINITE = 1000.0
"""The exponential of no number beyond is finite, or other than 0."""
ONE = 44.0
"""The hyperbolic tangent of half of it is 1."""


class Lines:
    """The body of a function of vectors, line by line."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def value(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def op(self, name: str, a: str, b: str) -> str:
        return self.value(f"{name} {VECTOR} {a}, {b}")

    def call(self, name: str, *arguments: str) -> str:
        passed = ", ".join(f"{VECTOR} {a}" for a in arguments)
        return self.value(f"call {VECTOR} @llvm.{name}.v8f64({passed})")

    def least(self, a: str, number: float) -> str:
        """The smaller one; NaN stays."""
        above = self.op("fcmp ogt", a, all_of(number))
        return self.value(f"select <{LANES} x i1> {above}, {VECTOR} {all_of(number)}, {VECTOR} {a}")

    def scaled(self, a: str, n: str) -> str:
        """a * 2^n."""
        return self.value(
            f"call {VECTOR} @{SCALED}({VECTOR} {a}, {VECTOR} {n}, {VECTOR} zeroinitializer,"
            " i8 -1, i32 4)"
        )


def all_of(number: float) -> str:
    return f"splat (double {float_text(number, 'double')})"


def reduced(lines: Lines, x: str) -> tuple[str, str]:
    """The integer n, and exp(r) - 1."""
    moved = lines.call("fma", x, all_of(1.0 / LOG2), all_of(ROUNDING))
    n = lines.op("fsub", moved, all_of(ROUNDING))
    r = lines.call("fma", n, all_of(-LOG2), x)
    r = lines.call("fma", n, all_of(-LOG2_LOW), r)
    square = lines.op("fmul", r, r)
    return n, lines.call("fma", square, polynomial(lines, r, square), r)


def polynomial(lines: Lines, x: str, square: str) -> str:
    """p(x) by Estrin's scheme: pairs side by side, then pairs of these."""
    terms, power = [all_of(c) for c in P], x
    while len(terms) > 1:
        pairs = [
            lines.call("fma", power, b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)
        ]
        terms = pairs + terms[2 * len(pairs) :]
        if len(terms) > 1:
            power = square if power is x else lines.op("fmul", power, power)
    return terms[0]


def exp(lines: Lines) -> str:
    bounded = lines.least("%x", FINITE)
    below = lines.op("fcmp olt", bounded, all_of(-FINITE))
    bounded = lines.value(
        f"select <{LANES} x i1> {below}, {VECTOR} {all_of(-FINITE)}, {VECTOR} {bounded}"
    )
    n, rest = reduced(lines, bounded)
    return lines.scaled(lines.op("fadd", rest, all_of(1.0)), n)


def tanh(lines: Lines) -> str:
    size = lines.call("fabs", "%x")
    n, rest = reduced(lines, lines.least(lines.op("fadd", size, size), ONE))
    scale = lines.scaled(all_of(1.0), n)
    e = lines.call("fma", scale, rest, lines.op("fsub", scale, all_of(1.0)))
    found = lines.op("fdiv", e, lines.op("fadd", e, all_of(2.0)))
    return lines.call("copysign", found, "%x")


FUNCTIONS: dict[str, Callable[[Lines], str]] = {"exp": exp, "tanh": tanh}
PREFIX = "_ZGVeN8v_mutad_vector_"


def version(function: str, features: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """The version of a function for these features, if it is one of ours."""
    has = function in FUNCTIONS and "avx512f" in features
    return ((PREFIX + function, LANES),) if has else ()


def define(state: KernelState, symbol: str) -> bool:
    """Write one of ours into the module; False for any other symbol."""
    if not symbol.startswith(PREFIX):
        return False
    if symbol not in state.functions:
        for name, arity in (("fma", 3), ("fabs", 1), ("copysign", 2)):
            state.intrinsic(f"llvm.{name}.v8f64", VECTOR, ", ".join([VECTOR] * arity))
        state.intrinsic(SCALED, VECTOR, f"{VECTOR}, {VECTOR}, {VECTOR}, i8, i32")
        state.functions[symbol] = text_of(symbol)
        state.kept_alive.append(symbol)
    return True


def text_of(symbol: str) -> str:
    """It names the feature that it needs: LLVM aborts where it cannot select VSCALEFPD."""
    lines = Lines()
    result = FUNCTIONS[symbol.removeprefix(PREFIX)](lines)
    attributes = 'noinline nounwind willreturn memory(none) "target-features"="+avx512f"'
    head = f"define internal {VECTOR} @{symbol}({VECTOR} %x) {attributes} {{"
    return "\n".join([head, *lines.lines, f"  ret {VECTOR} {result}", "}"])
