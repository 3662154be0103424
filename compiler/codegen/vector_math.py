"""Which C math functions have vector versions here, and how to tell LLVM.

glibc's libmvec holds versions of `exp`, `sin`, ... for whole vector registers, accurate to 4 ulp. Of two
functions there are faster ones of ours for the widest registers (`own_math`).
LLVM's loop vectorizer calls them where a scalar call carries::

    call double @exp(double %x) #0
    attributes #0 = { ... "vector-function-abi-variant"="_ZGVdN4v_exp(_ZGVdN4v_exp)" }

and the vector function is declared. Elsewhere than on x86-64 Linux with glibc the scalar libm is used. (On
AArch64 libmvec came with glibc 2.38: code for it would run on new systems alone.)
"""

from __future__ import annotations

import ctypes
import platform
import re
from functools import cache
from typing import TYPE_CHECKING

from . import own_math

if TYPE_CHECKING:
    from .llvm_module import Target

UNARY = [
    "exp",
    "exp2",
    "expm1",
    "log",
    "log2",
    "log10",
    "log1p",
    "sin",
    "cos",
    "tan",
    "asin",
    "acos",
    "atan",
    "sinh",
    "cosh",
    "tanh",
    "asinh",
    "acosh",
    "atanh",
    "cbrt",
    "erf",
]
BINARY = ("pow", "atan2", "hypot")

# Instruction set letter of the vector ABI, the CPU feature it needs, lanes of f64 and f32.
_SETS = (("b", "sse4.2", 2, 4), ("d", "avx2", 4, 8), ("e", "avx512f", 8, 16))


def features(target: Target) -> frozenset[str]:
    """What a target has that vector versions may be called with: nothing where glibc has none."""
    if target.triple and not re.fullmatch(r"x86_64-.*linux-gnu", target.triple):
        return frozenset()
    return target.features


@cache
def _library() -> ctypes.CDLL | None:
    if platform.machine() != "x86_64" or platform.system() != "Linux":
        return None
    try:
        return ctypes.CDLL("libmvec.so.1")
    except OSError:
        return None


def is_single(function: str) -> bool:
    """Whether a libm function is one of f32."""
    return function.endswith("f") and function not in ("erf",)


@cache
def variants(function: str, features: frozenset[str]) -> tuple[tuple[str, int], ...]:
    """The vector versions of a libm function ("exp", "expf"): symbol and lanes, the widest last."""
    library = _library()
    single = is_single(function)
    stem = function[:-1] if single else function
    if library is None or stem not in (*UNARY, *BINARY):
        return ()
    arguments = "vv" if stem in BINARY else "v"
    found: list[tuple[str, int]] = []
    for letter, feature, doubles, floats in _SETS:
        lanes = floats if single else doubles
        symbol = f"_ZGV{letter}N{lanes}{arguments}_{function}"
        if feature in features and hasattr(library, symbol):
            found.append((symbol, lanes))
    own = own_math.version(function, features)
    return (*found[: len(found) - len(own)], *own)


def declaration(symbol: str, lanes: int, type_: str, arity: int) -> str:
    """The LLVM declaration of a vector version."""
    vector = f"<{lanes} x {type_}>"
    return f"declare {vector} @{symbol}({', '.join([vector] * arity)})"


def attribute(function: str, found: tuple[tuple[str, int], ...]) -> str:
    """The call-site attribute that names the vector versions of a function.

    LLVM takes one only where what stands before it ends with the function's own name.
    """
    named = ",".join(f"{s[: s.index('v_') + 2]}{function}({s})" for s, _ in found)
    return f'"vector-function-abi-variant"="{named}"'
