"""`exp`, `expm1`, `tanh`, `log`, `sin`, `cos` as LLVM text, for CPUs with AVX-512, in the place of libmvec's.

They are functions of one number, too, with the same bits. Where each waits for the one before, `exp` takes
as long as libm's, `log` 1.1x, `sin` and `cos` 0.66x to 1.1x (they mispredict no branch), `expm1` and `tanh`
0.55x to 0.8x. Numbers beyond 2^20 libm computes the `sin` and `cos` of; else none has a slow way for large,
small or special numbers, which are often what `np.where` leaves.
`exp` and `tanh` begin with exp(x) = 2^n exp(r) for the integer n next to x / log(2), and with

    exp(r) - 1 = r + r^2 p(r),    |r| <= log(2) / 2

where p interpolates at the Chebyshev nodes of that interval, behind 1/2: its error is 3e-17 of exp(r).

- `exp` is within 1.9 ulp (libmvec's: 2.6). VSCALEFPD multiplies by 2^n, and rounds as it should.
- `tanh` is e / (e + 2) with e = exp(2|x|) - 1 = 2^n (exp(r) - 1) + (2^n - 1), within 2.8 ulp.
- `log` is that of 2^k (1 + f), where VGETMANTPD has -1/4 <= f < 1/2, and with s = f / (2 + f) it is

      log(1 + f) = f - (f^2 / 2 - s (f^2 / 2 + s^2 q(s^2)))

  as in fdlibm, where q interpolates at Chebyshev nodes (error 1e-18); it is within 1 ulp. What the additions
  before the quotient lose to rounding is added to what comes after it.
- `expm1` is made of what `exp` is, within 2.7 ulp.
- `sin` and `cos` are, but for their signs, that of r = |x| - n pi / 2, where pi / 2 has three parts, or

      sin(r) = r + r^3 s(r^2),    cos(r) = 1 - r^2 / 2 + r^4 c(r^2),    |r| <= pi / 4

  where s and c interpolate at Chebyshev nodes (errors 2e-17 of sin(r), 1e-18); they are within 1.6 ulp.

(`log1p` by the same means has one more division's worth of work, and is slower than libmvec's.)
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, log, pi

from .kernel_state import KernelState
from .scalar_text import float_text

LANES = 8
"""Of the widest registers; narrower ones take AVX-512VL."""

P = (
    0.5, 0.16666666666666666, 0.04166666666665131, 0.008333333333332152, 0.0013888888905922382,
    0.00019841269854370018, 2.480153630713628e-05, 2.755728000429909e-06, 2.7613852100963253e-07,
    2.5095589467479502e-08,
)  # fmt: skip
"""Coefficients of p, lowest first."""

Q = (
    0.6666666666666666, 0.4000000000000794, 0.28571428567275936, 0.2222222304835159, 0.18181737626302938,
    0.15388867805613718, 0.13209708242059462, 0.13609030262858499,
)  # fmt: skip
"""Coefficients of q, lowest first."""

SINE = (
    -0.16666666666666666, 0.008333333333330946, -0.0001984126983675497, 2.755731610068303e-06,
    -2.5051131455427946e-08, 1.591810123027412e-10,
)  # fmt: skip
"""Coefficients of s, lowest first."""

COSINE = (
    0.041666666666666664, -0.0013888888888887395, 2.4801587298763433e-05, -2.7557317270560326e-07,
    2.0876146024689747e-09, -1.1382614868556325e-11,
)  # fmt: skip
"""Coefficients of c, lowest first."""

QUARTER = (1.5707963267341256, 6.077100506506192e-11, 3.5215598651832e-27)
"""Each part is what pi / 2 has besides those before; the first, of 33 bits, times 2^20 is exact."""
FAR = 2.0**20
"""Beyond, what a multiple of pi leaves has too few digits."""

LOG2 = log(2.0)
LOG2_LOW = 2.3190468138462996e-17
"""What log(2) has besides `LOG2`."""
LOG2_SHORT, LOG2_REST = 0.6931471805592082, 7.371002565167799e-13
"""log(2) in two parts: any exponent times the first one, of 40 bits, is exact."""
ROUNDING = 1.5 * 2.0**52
"""A number that is added, and subtracted again, leaves the integer next to it."""
SCALED = "llvm.x86.avx512.mask.scalef.pd"
EXPONENT = "llvm.x86.avx512.mask.getexp.pd"
MANTISSA = "llvm.x86.avx512.mask.getmant.pd"
AROUND_ONE = 0b1011
"""Mantissas from 3/4 to 3/2, NaN of negative numbers."""
FINITE = 1000.0
"""The exponential of no number beyond is finite, or other than 0."""
ONE = 44.0
"""The hyperbolic tangent of half of it is 1, and so is 1 less the exponential of its opposite."""


class Lines:
    """The body of a function of vectors, of which the first `numbers` lanes matter, line by line."""

    def __init__(self, lanes: int, numbers: int) -> None:
        self.lines: list[str] = []
        self.lanes, self.numbers = lanes, numbers
        self.vector = vector_of(lanes)

    def value(self, text: str) -> str:
        self.lines.append(f"  %v{len(self.lines)} = {text}")
        return f"%v{len(self.lines) - 1}"

    def op(self, name: str, a: str, b: str) -> str:
        return self.value(f"{name} {self.vector} {a}, {b}")

    def call(self, name: str, *arguments: str) -> str:
        passed = ", ".join(f"{self.vector} {a}" for a in arguments)
        return self.value(f"call {self.vector} @llvm.{name}.v{self.lanes}f64({passed})")

    def least(self, a: str, number: float) -> str:
        """The smaller one; NaN stays."""
        return self.bounded("fcmp ogt", a, number)

    def most(self, a: str, number: float) -> str:
        """The larger one; NaN stays."""
        return self.bounded("fcmp olt", a, number)

    def bounded(self, beyond: str, a: str, number: float) -> str:
        return self.chosen(self.op(beyond, a, all_of(number)), all_of(number), a)

    def chosen(self, condition: str, a: str, b: str) -> str:
        v = self.vector
        return self.value(f"select <{self.lanes} x i1> {condition}, {v} {a}, {v} {b}")

    def scaled(self, a: str, n: str) -> str:
        """a * 2^n."""
        return self.masked(SCALED, f"{self.vector} {a}, {self.vector} {n}")

    def exponent(self, a: str) -> str:
        return self.masked(EXPONENT, f"{self.vector} {a}")

    def mantissa(self, a: str) -> str:
        return self.masked(MANTISSA, f"{self.vector} {a}, i32 {AROUND_ONE}")

    # Bits of the numbers.

    def integer(self, name: str, a: str, b: str | int) -> str:
        other = f"splat (i64 {b})" if isinstance(b, int) else b
        return self.value(f"{name} <{self.lanes} x i64> {a}, {other}")

    def bits(self, a: str) -> str:
        return self.value(f"bitcast {self.vector} {a} to <{self.lanes} x i64>")

    def sign_of(self, a: str) -> str:
        return self.integer("and", self.bits(a), -(1 << 63))

    def signed(self, a: str, sign: str) -> str:
        """a with its sign changed where the other one has the bit of the sign."""
        changed = self.integer("xor", self.bits(a), sign)
        return self.value(f"bitcast <{self.lanes} x i64> {changed} to {self.vector}")

    def far(self, function: str, size: str, found: str) -> str:
        """What was found, but for numbers of such a size that libm computes it."""
        beyond = self.op("fcmp ogt", size, all_of(FAR))
        truths = self.value(f"bitcast <{self.lanes} x i1> {beyond} to i{self.lanes}")
        some = self.value(f"icmp ne i{self.lanes} {truths}, 0")
        self.lines += [f"  br i1 {some}, label %far, label %near", "far:"]
        slow = found
        for lane in range(self.numbers):
            x = self.value(f"extractelement {self.vector} %x, i64 {lane}")
            y = self.value(f"call double @{function}(double {x})")
            slow = self.value(f"insertelement {self.vector} {slow}, double {y}, i64 {lane}")
        slow = self.chosen(beyond, slow, found)
        self.lines += ["  br label %near", "near:"]
        return self.value(f"phi {self.vector} [ {found}, %entry ], [ {slow}, %far ]")

    def masked(self, name: str, arguments: str) -> str:
        """An instruction of AVX-512, of which the widest registers alone may set the rounding."""
        rounding = ", i32 4" if self.lanes == LANES else ""
        rest = f"{self.vector} zeroinitializer, i8 -1{rounding}"
        return self.value(f"call {self.vector} @{name}.{64 * self.lanes}({arguments}, {rest})")


def all_of(number: float) -> str:
    return f"splat (double {float_text(number, 'double')})"


def less_multiple(lines: Lines, x: str) -> tuple[str, str]:
    """The integer n, and r."""
    moved = lines.call("fma", x, all_of(1.0 / LOG2), all_of(ROUNDING))
    n = lines.op("fsub", moved, all_of(ROUNDING))
    r = lines.call("fma", n, all_of(-LOG2), x)
    return n, lines.call("fma", n, all_of(-LOG2_LOW), r)


def reduced(lines: Lines, x: str) -> tuple[str, str]:
    """The integer n, and exp(r) - 1."""
    n, r = less_multiple(lines, x)
    square = lines.op("fmul", r, r)
    return n, lines.call("fma", square, polynomial(lines, P, r, square), r)


def polynomial(lines: Lines, coefficients: tuple[float, ...], x: str, square: str) -> str:
    """A polynomial by Estrin's scheme: pairs side by side, then pairs of these."""
    terms, power = [all_of(c) for c in coefficients], x
    while len(terms) > 1:
        pairs = [
            lines.call("fma", power, b, a) for a, b in zip(terms[::2], terms[1::2], strict=False)
        ]
        terms = pairs + terms[2 * len(pairs) :]
        if len(terms) > 1:
            power = square if power is x else lines.op("fmul", power, power)
    return terms[0]


def exp(lines: Lines) -> str:
    """The factor 2^n, and the first terms of p, are there before the last ones of p are."""
    n, r = less_multiple(lines, "%x")
    square = lines.op("fmul", r, r)
    fourth = lines.op("fmul", square, square)
    low, high = (polynomial(lines, part, r, square) for part in (P[:4], P[4:]))
    scaled = lines.scaled(square, n)
    found = lines.scaled(lines.op("fadd", r, all_of(1.0)), n)
    found = lines.call("fma", scaled, low, found)
    found = lines.call("fma", lines.op("fmul", scaled, fourth), high, found)
    below = lines.op("fcmp olt", "%x", all_of(-FINITE))
    above = lines.op("fcmp ogt", "%x", all_of(FINITE))
    return lines.chosen(above, all_of(inf), lines.chosen(below, all_of(0.0), found))


def tanh(lines: Lines) -> str:
    size = lines.call("fabs", "%x")
    n, rest = reduced(lines, lines.least(lines.op("fadd", size, size), ONE))
    scale = lines.scaled(all_of(1.0), n)
    e = lines.call("fma", scale, rest, lines.op("fsub", scale, all_of(1.0)))
    found = lines.op("fdiv", e, lines.op("fadd", e, all_of(2.0)))
    return lines.call("copysign", found, "%x")


def expm1(lines: Lines) -> str:
    """2^n ((exp(r) - 1) + (1 - 2^-n)), with the sign of x."""
    n, rest = reduced(lines, lines.most(lines.least("%x", FINITE), -ONE))
    down = lines.scaled(all_of(1.0), lines.op("fsub", all_of(0.0), n))
    rest = lines.op("fadd", rest, lines.op("fsub", all_of(1.0), down))
    return lines.call("copysign", lines.scaled(rest, n), "%x")


def logarithm(lines: Lines) -> str:
    """The parts that wait for the quotient are few: what rounding lost of the others is added to them."""
    mantissa = lines.mantissa("%x")
    below = lines.op("fcmp olt", mantissa, all_of(1.0))
    exponent = lines.exponent("%x")
    k = lines.chosen(below, lines.op("fadd", exponent, all_of(1.0)), exponent)
    f = lines.op("fsub", mantissa, all_of(1.0))
    s = lines.op("fdiv", f, lines.op("fadd", mantissa, all_of(1.0)))
    half = lines.op("fmul", lines.op("fmul", f, all_of(0.5)), f)
    first = lines.op("fsub", f, half)
    lost = lines.op("fsub", lines.op("fsub", f, first), half)
    whole = lines.op("fmul", k, all_of(LOG2_SHORT))
    total = lines.op("fadd", whole, first)
    lost = lines.op("fadd", lost, lines.op("fadd", lines.op("fsub", whole, total), first))
    lost = lines.call("fma", k, all_of(LOG2_REST), lost)
    z = lines.op("fmul", s, s)
    q = polynomial(lines, Q, z, lines.op("fmul", z, z))
    rest = lines.call("fma", lines.op("fmul", s, z), q, lines.call("fma", s, half, lost))
    infinite = lines.op("fcmp oeq", lines.call("fabs", exponent), all_of(inf))
    edge = lines.op("fmul", exponent, lines.call("fabs", mantissa))
    return lines.chosen(infinite, edge, lines.op("fadd", total, rest))


def sin(lines: Lines) -> str:
    return circular(lines, "sin", 0)


def cos(lines: Lines) -> str:
    return circular(lines, "cos", 1)


def circular(lines: Lines, function: str, ahead: int) -> str:
    """The sine of |x| and so many quarters of a circle; that of x has its sign."""
    size = lines.call("fabs", "%x")
    moved = lines.call("fma", size, all_of(2.0 / pi), all_of(ROUNDING))
    n, r = lines.op("fsub", moved, all_of(ROUNDING)), size
    for part in QUARTER:
        r = lines.call("fma", n, all_of(-part), r)
    z = lines.op("fmul", r, r)
    square = lines.op("fmul", z, z)
    near = lines.call("fma", lines.op("fmul", r, z), polynomial(lines, SINE, z, square), r)
    top = lines.call("fma", z, all_of(-0.5), all_of(1.0))
    top = lines.call("fma", square, polynomial(lines, COSINE, z, square), top)
    quarters = lines.bits(moved)
    if ahead:
        quarters = lines.integer("add", quarters, ahead)
    odd = lines.integer("icmp ne", lines.integer("and", quarters, 1), 0)
    sign = lines.integer("shl", lines.integer("lshr", quarters, 1), 63)
    if not ahead:
        sign = lines.integer("xor", sign, lines.sign_of("%x"))
    return lines.far(function, size, lines.signed(lines.chosen(odd, top, near), sign))


FUNCTIONS: dict[str, Callable[[Lines], str]] = {
    "exp": exp,
    "expm1": expm1,
    "tanh": tanh,
    "log": logarithm,
    "sin": sin,
    "cos": cos,
}

FASTER_ALONE = frozenset(["expm1", "tanh", "sin", "cos"])
"""Of a single number, than libm's."""
FASTER_TOGETHER = FASTER_ALONE | {"exp"}
"""Of two numbers or more."""


def vector_of(lanes: int) -> str:
    return f"<{lanes} x double>"


def declared(lanes: int) -> dict[str, str]:
    """What they call, with its parameters."""
    v = vector_of(lanes)
    last = f"{v}, i8{', i32' if lanes == LANES else ''}"
    width = 64 * lanes
    return {
        f"llvm.fma.v{lanes}f64": f"{v}, {v}, {v}",
        f"llvm.fabs.v{lanes}f64": v,
        f"llvm.copysign.v{lanes}f64": f"{v}, {v}",
        f"{SCALED}.{width}": f"{v}, {v}, {last}",
        f"{EXPONENT}.{width}": f"{v}, {last}",
        f"{MANTISSA}.{width}": f"{v}, i32, {last}",
    }


PREFIX = "_ZGVeN8v_mutad_vector_"


def version(function: str, features: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """The version of a function for these features, if it is one of ours."""
    has = function in FUNCTIONS and "avx512f" in features
    return ((PREFIX + function, LANES),) if has else ()


def is_own(symbol: str) -> bool:
    return symbol.startswith(PREFIX)


def define(state: KernelState, symbol: str) -> bool:
    """Write one of ours into the module; False for any other symbol."""
    if not is_own(symbol):
        return False
    if symbol not in state.functions:
        state.functions[symbol] = written(state, symbol, symbol.removeprefix(PREFIX), LANES)
        state.kept_alive.append(symbol)
    return True


def define_narrow(state: KernelState, name: str, lanes: int, symbol: str) -> bool:
    """Write one of ours for fewer lanes, with the same bits; False where the CPU lacks the instructions."""
    if not is_own(symbol) or "avx512vl" not in state.features:
        return False
    function = symbol.removeprefix(PREFIX)
    state.functions[name] = written(state, name, function, lanes)
    return True


def written(state: KernelState, name: str, function: str, lanes: int) -> str:
    registers, text = max(lanes, 2), text_of(name, function, lanes)
    for called, parameters in declared(registers).items():
        if f"@{called}(" in text:
            state.intrinsic(called, vector_of(registers), parameters)
    if f"call double @{function}(" in text:
        state.declare(function, f"declare double @{function}(double)", "libm")
    return text


def text_of(name: str, function: str, lanes: int = LANES) -> str:
    """It names the feature that it needs: LLVM aborts where it cannot select VSCALEFPD.

    One number goes through a vector of two.
    """
    lines = Lines(max(lanes, 2), lanes)
    type_, parameter, ending = lines.vector, "%x", []
    if lanes == 1:
        type_, parameter = "double", "%alone"
        ending = [f"  %first = extractelement {lines.vector} {{}}, i64 0"]
        both = f"insertelement {lines.vector} splat (double 0.5), double %alone, i64 0"
        lines.lines.append(f"  %x = {both}")
    result = FUNCTIONS[function](lines)
    ending = [line.format(result) for line in ending]
    features = "+avx512f" if lanes == LANES else "+avx512f,+avx512vl"
    attributes = f'noinline nounwind willreturn memory(none) "target-features"="{features}"'
    head = f"define internal {type_} @{name}({type_} {parameter}) {attributes} {{"
    end = f"  ret {type_} {'%first' if ending else result}"
    return "\n".join([head, "entry:", *lines.lines, *ending, end, "}"])
