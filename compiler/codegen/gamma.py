"""Gamma and the polygamma functions as LLVM text: functions of doubles, for the modules that use them.

`gamma` is the C library's `tgamma`, which misses some factorials by a unit in the last place: those that a
double holds come from a table, as in Python and SciPy (`int(gamma(13.0))`).

`psi_0` is digamma, the derivative of the logarithm of gamma; `psi_n` its n-th derivative. Formulas of the
Digital Library of Mathematical Functions, https://dlmf.nist.gov/5.15 and 5.11, with the Bernoulli numbers B:

- below 0, 5.15.6:      psi_n(x) = (-1)^n psi_n(1 - x) - d^n/dx^n (pi cot(pi x))
- to the right, 5.15.5: psi_n(x) = psi_n(x + 1) - (-1)^n n! / x^(n+1), until x is at least `FAR`
- there, 5.15.9 (5.11.2 for n = 0, with log(x) in the place of the first term):
  (-1)^(n-1) psi_n(x) ~ (n-1)! / x^n + n! / (2 x^(n+1)) + sum_k B_2k (2k+n-1)! / ((2k)! x^(2k+n))

Eight Bernoulli numbers leave an error below the rounding of a double. Near the zero of digamma at 1.46 it is
an absolute one, 4e-16, for there terms of size 2 cancel.
"""

from __future__ import annotations

from fractions import Fraction
from math import factorial, pi
from struct import pack, unpack

BERNOULLI = [
    Fraction(1, 6), Fraction(-1, 30), Fraction(1, 42), Fraction(-1, 30),
    Fraction(5, 66), Fraction(-691, 2730), Fraction(7, 6), Fraction(-3617, 510),
]  # fmt: skip
"""B_2, B_4, ..., B_16."""


def number(value: float | Fraction) -> str:
    """A double in LLVM's text, exact."""
    return f"0x{unpack('<Q', pack('<d', float(value)))[0]:016X}"


def cotangent_derivative(order: int) -> list[int]:
    """Coefficients in c = cot(u), lowest first, of the derivative of that order of cot(u)."""
    polynomial = [0, 1]
    for _ in range(order):
        slopes = [k * a for k, a in enumerate(polynomial)][1:]
        polynomial = [0] * (len(slopes) + 2)
        for k, a in enumerate(slopes):  # d/du p(c) = -(1 + c^2) p'(c)
            polynomial[k] -= a
            polynomial[k + 2] -= a
    return polynomial


def horner(name: str, variable: str, coefficients: list[str]) -> list[str]:
    """Lines that leave a polynomial, lowest coefficient first, in `%name`."""
    lines, value = list[str](), coefficients[-1]
    for k, coefficient in enumerate(reversed(coefficients[:-1])):
        product, result = f"%{name}.m{k}", f"%{name}.a{k}"
        lines.append(f"  {product} = fmul double {value}, {variable}")
        lines.append(f"  {result} = fadd double {product}, {coefficient}")
        value = result
    return [*lines, f"  %{name} = fadd double {value}, -0.0"]


def power(name: str, base: str, exponent: int) -> list[str]:
    """Lines that leave `base ** exponent` in `%name`, for an exponent of at least 0."""
    value, lines = number(1.0), list[str]()
    for k in range(exponent):
        lines.append(f"  %{name}.{k} = fmul double {value}, {base}")
        value = f"%{name}.{k}"
    return [*lines, f"  %{name} = fadd double {value}, -0.0"]


EXACT = 23
"""`gamma` of the integers up to this one is a double."""


def gamma() -> str:
    """`mutad_gamma`; calls `tgamma`."""
    table = ", ".join(f"double {number(float(factorial(n)))}" for n in range(EXACT))
    return f"""\
@mutad_factorials = internal unnamed_addr constant [{EXACT} x double] [{table}]
define internal double @mutad_gamma(double %x) nounwind willreturn memory(none) {{
  %low = fcmp oge double %x, 1.0
  %high = fcmp ole double %x, {number(float(EXACT))}
  %inside = and i1 %low, %high
  br i1 %inside, label %look, label %other
look:
  %n = fptosi double %x to i64
  %back = sitofp i64 %n to double
  %whole = fcmp oeq double %back, %x
  br i1 %whole, label %known, label %other
known:
  %place = sub i64 %n, 1
  %at = getelementptr [{EXACT} x double], ptr @mutad_factorials, i64 0, i64 %place
  %exact = load double, ptr %at
  ret double %exact
other:
  %found = call double @tgamma(double %x)
  ret double %found
}}"""


def polygamma(order: int) -> str:
    """`mutad_polygamma_<order>`; calls `log`, `tan` and `llvm.roundeven.f64`."""
    n = order
    far = 10.0 + 2.0 * n
    sign = -1.0 if n % 2 else 1.0
    series = [
        number(b * factorial(2 * k + n - 1) / factorial(2 * k)) for k, b in enumerate(BERNOULLI, 1)
    ]
    polynomial = [number(pi ** (n + 1) * a) for a in cotangent_derivative(n)]
    lead = (
        ["  %lead = call double @log(double %at)"]
        if n == 0
        else [f"  %lead = fmul double {number(-sign * factorial(n - 1))}, %inverse.n"]
    )
    lines = [
        f"define internal double @mutad_polygamma_{n}(double %x) nounwind willreturn memory(none) {{",
        "entry:",
        "  %negative = fcmp olt double %x, 0.0",
        "  %one.less = fsub double 1.0, %x",
        "  %start = select i1 %negative, double %one.less, double %x",
        "  br label %look",
        "look:",
        "  %at = phi double [ %start, %entry ], [ %next, %step ]",
        "  %sum = phi double [ 0.0, %entry ], [ %more, %step ]",
        f"  %near = fcmp olt double %at, {number(far)}",
        "  br i1 %near, label %step, label %there",
        "step:",
        "  %over = fdiv double 1.0, %at",
        *power("over.n", "%over", n + 1),
        f"  %term = fmul double {number(-sign * factorial(n))}, %over.n",
        "  %more = fadd double %sum, %term",
        "  %next = fadd double %at, 1.0",
        "  br label %look",
        "there:",
        "  %inverse = fdiv double 1.0, %at",
        "  %square = fmul double %inverse, %inverse",
        *power("inverse.n", "%inverse", n),
        *lead,
        *horner("bernoulli", "%square", ["0.0", *series]),
        f"  %half = fmul double {number(0.5 * factorial(n))}, %inverse",
        "  %rest = fadd double %half, %bernoulli",
        f"  %scaled = fmul double {number(-sign)}, %inverse.n",
        "  %small = fmul double %scaled, %rest",
        "  %tail = fadd double %sum, %small",
        "  %right = fadd double %lead, %tail",
        "  br i1 %negative, label %reflect, label %done",
        "reflect:",
        "  %whole = call double @llvm.roundeven.f64(double %x)",
        "  %part = fsub double %x, %whole",
        "  %at.pole = fcmp oeq double %part, 0.0",
        f"  %angle = fmul double %part, {number(pi)}",
        "  %tangent = call double @tan(double %angle)",
        "  %cotangent = fdiv double 1.0, %tangent",
        *horner("slope", "%cotangent", polynomial),
        f"  %other = fmul double {number(sign)}, %right",
        "  %left = fsub double %other, %slope",
        "  %value = select i1 %at.pole, double 0x7FF8000000000000, double %left",
        "  ret double %value",
        "done:",
        "  ret double %right",
        "}",
    ]
    return "\n".join(lines)
