"""Functions of numbers as calls: of LLVM's intrinsics, of libm, of the module's own."""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from math import frexp

from xdsl.ir import Operation

from ...dialects import special
from . import gamma, one_version, own_math, vector_math
from .kernel_state import KernelState, value_type
from .llvm_text import integer
from .scalar_text import Rule, fast_flags, float_text, vector_suffix


def intrinsic(stem: str, flags: str = "") -> Rule:
    """An LLVM intrinsic overloaded on the result type."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        suffix = {"double": "f64", "float": "f32"}.get(type_, type_)
        if type_.startswith("<"):
            suffix = vector_suffix(type_)
        name = state.intrinsic(f"llvm.{stem}.{suffix}", type_, ", ".join([type_] * len(args)))
        fast = "" if type_.startswith("i") else fast_flags(state, op)
        if flags and flags not in fast:
            fast += flags
        shown = ", ".join(f"{type_} {a}" for a in args)
        return state.text.value(f"call{fast} {type_} @{name}({shown})")

    return rule


def with_poison_flag(stem: str) -> Rule:
    """An intrinsic with a second operand that says whether its edge case is poison: it is not."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        name = state.intrinsic(f"llvm.{stem}.{type_}", type_, f"{type_}, i1")
        return state.text.value(f"call {type_} @{name}({type_} {args[0]}, i1 false)")

    return rule


PAIR = 2
"""libmvec takes as long for two numbers as libm does twice: LLVM must not pair calls of straight code."""


def libm(function: str) -> Rule:
    """A function of the C math library, with its vector versions."""

    def rule(state: KernelState, op: Operation, args: list[str]) -> str:
        type_ = value_type(op.results[0].type)
        if type_.startswith("<"):
            return call_of_lanes(state, function, type_, args)
        return call_libm(state, function, type_, args, fast_flags(state, op))

    return rule


def call_of_lanes(state: KernelState, function: str, type_: str, args: list[str]) -> str:
    """A call for the doubles of a vector, of a version that LLVM would call in a loop."""
    text, lanes = state.text, lanes_in(type_)
    widest = vector_math.variants(function, state.features)
    single, found = one_version.calls(state, function, "double", widest, side_by_side=True)
    group = state.attribute_group("nounwind willreturn memory(none)")
    if lanes > 1:
        name = next(name for name, count in found if count == lanes)
        shown = ", ".join(f"{type_} {a}" for a in args)
        return text.value(f"call {type_} @{name}({shown}) {group}")
    numbers = [text.value(f"extractelement {type_} {a}, i64 0") for a in args]
    shown = ", ".join(f"double {n}" for n in numbers)
    made = text.value(f"call double @{single}({shown}) {group}")
    return text.value(f"insertelement {type_} poison, double {made}, i64 0")


def lanes_in(type_: str) -> int:
    """Of LLVM's type of a vector."""
    return int(type_.strip("<>").partition(" x ")[0])


def call_libm(
    state: KernelState, function: str, type_: str, args: list[str], fast: str = ""
) -> str:
    """A call that LLVM may vectorize; in gradients its bits do not depend on whether it does.

    The gradient within a budget has other loops, and the same bits. Where it is certain that LLVM may not
    vectorize, there are no vector versions, for LLVM would pair calls of straight code. Functions of our own
    are inlined there, in any code where iterations wait for each other if they are faster than libm's. Some
    powers by a constant LLVM writes as products, or as other functions.
    """
    symbol = function if type_ == "double" else f"{function}f"
    known = all(a.startswith("0x") for a in args)  # LLVM computes it
    found = () if known else vector_math.variants(symbol, state.features)
    versioned = found and not (function == "pow" and is_rewritten(args, fast))
    ours = versioned and (state.in_vectors or is_faster_alone(state, symbol, found))
    single = one_version.alone(state, symbol, found) if ours and not state.side_by_side else None
    if single is not None:
        symbol, found = single, ()
    elif ours:
        symbol, found = one_version.calls(
            state, symbol, type_, found, side_by_side=bool(state.side_by_side)
        )
    else:
        parameters = ", ".join([type_] * len(args))
        state.declare(symbol, f"declare {type_} @{symbol}({parameters})", "libm")
        if state.side_by_side is False:
            found = tuple(version for version in found if version[1] > PAIR)
        found = one_version.provided(state, symbol, type_, found)
    attributes = "nounwind willreturn memory(none)"
    if single is not None:
        attributes = f"alwaysinline {attributes}"
    if found:
        state.last_bits = state.last_bits.more(calls=1)
        attributes += f" {vector_math.attribute(symbol, found)}"
    shown = ", ".join(f"{type_} {a}" for a in args)
    return state.text.value(
        f"call{fast} {type_} @{symbol}({shown}) {state.attribute_group(attributes)}"
    )


def is_faster_alone(state: KernelState, symbol: str, found: one_version.Versions) -> bool:
    """Whether one of ours is to be inlined where last bits are free: what waits for it is the next iteration.
    Elsewhere calls of libm overlap.
    """
    waits = state.optimized and state.recurrent and not state.side_by_side
    return waits and symbol in own_math.FASTER_ALONE and own_math.is_own(found[-1][0])


def is_rewritten(args: Sequence[str], fast: str) -> bool:
    """Whether LLVM knows something better than `pow` with one of these as a constant."""
    base, power = (constant_of(a) for a in args)
    if fast and (base is not None or power is not None):
        return True
    return power in (-1.0, 0.0, 0.5, 1.0, 2.0) or (
        base is not None and (base == 10.0 or abs(frexp(base)[0]) == 0.5)
    )


def constant_of(argument: str) -> float | None:
    """The number that LLVM's text of an argument is."""
    if not argument.startswith("0x"):
        return None
    (number,) = struct.unpack("<d", int(argument, 16).to_bytes(8, "little"))
    return float(number)


def rsqrt(state: KernelState, op: Operation, args: list[str]) -> str:
    root = intrinsic("sqrt")(state, op, args)
    type_ = value_type(op.results[0].type)
    return state.text.value(f"fdiv{fast_flags(state, op)} {type_} {float_text(1.0, type_)}, {root}")


def float_to_integer_power(state: KernelState, op: Operation, args: list[str]) -> str:
    type_, power = value_type(op.results[0].type), value_type(op.operands[1].type)
    exponent = state.text.value(f"sitofp {power} {args[1]} to {type_}")
    return call_libm(state, "pow", type_, [args[0], exponent], fast_flags(state, op))


def integer_power(state: KernelState, op: Operation, args: list[str]) -> str:
    """Repeated squaring; unrolled for a small constant exponent."""
    type_ = value_type(op.results[0].type)
    exponent = integer(args[1])
    if exponent is not None and 0 <= exponent <= 16:
        result, power = "1", args[0]
        while exponent:
            if exponent & 1:
                result = state.text.value(f"mul {type_} {result}, {power}")
            exponent >>= 1
            if exponent:
                power = state.text.value(f"mul {type_} {power}, {power}")
        return result
    function = f"mutad_ipow_{type_}"
    state.support.add(function)
    return state.text.value(f"call {type_} @{function}({type_} {args[0]}, {type_} {args[1]})")


def gamma_of(state: KernelState, op: Operation, args: list[str]) -> str:
    return call_own(state, op, args, "mutad_gamma", gamma.gamma, ("tgamma",))


def polygamma_of(state: KernelState, op: Operation, args: list[str]) -> str:
    assert isinstance(op, special.PolygammaOp)
    order = op.ORDER
    state.intrinsic("llvm.roundeven.f64", "double", "double")
    name = f"mutad_polygamma_{order}"
    return call_own(state, op, args, name, lambda: gamma.polygamma(order), ("log", "tan"))


def call_own(
    state: KernelState,
    op: Operation,
    args: list[str],
    name: str,
    text: Callable[[], str],
    uses: tuple[str, ...],
) -> str:
    """A call of a function of doubles that the module has once; `uses`: of the C library."""
    if name not in state.functions:
        state.functions[name] = text()
        for symbol in uses:
            state.declare(symbol, f"declare double @{symbol}(double)", "libm")
    (x,), type_ = args, value_type(op.results[0].type)
    if type_ == "double":
        return state.text.value(f"call double @{name}(double {x})")
    wide = state.text.value(f"fpext {type_} {x} to double")
    found = state.text.value(f"call double @{name}(double {wide})")
    return state.text.value(f"fptrunc double {found} to {type_}")
