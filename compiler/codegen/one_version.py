"""Calls of the C math library whose last bits do not depend on the loop around them.

The scalar version of a function and its vector versions have different last bits, and LLVM says which of
them runs. In loops that LLVM may vectorize, some numbers are left behind the vectors; which, depends on what
is around. A gradient has the same bits within a budget, where its loops are others, and both of its sweeps
find the same values: its calls are of the widest version alone, in loops that LLVM may vectorize and in all
others. One number goes through it in the first lane, and so do narrower vectors::

    define internal double @mutad_exp(double %x) {
      %wide = insertelement <8 x double> splat (double 0.5), double %x, i64 0
      %found = call <8 x double> @_ZGVeN8v_exp(<8 x double> %wide)
      %result = extractelement <8 x double> %found, i64 0
      ret double %result
    }

This costs about as much as the scalar version does, and half as much again where each call waits for the one
before: there a function of our own is written for a single number, and inlined. (A call that is to preserve
registers, `preserve_allcc`, would not do: LLVM 22 clears the upper lanes of a caller's vectors all the same.)
The others are not inlined: the loop vectorizer knows them by name. They are in a library that the process has
once (`shared_code`); libraries ahead of time have functions of their own.
"""

from __future__ import annotations

from collections.abc import Sequence

from . import own_math, vector_math
from .kernel_state import KernelState
from .vector_width import is_wide

PAIR = 2
"""Vectors so short are rare: the wider version serves them."""

PLAIN = {"acosh": 2.0}
"""What the other lanes hold, 0.5 elsewhere: no number that the vector version leaves to the scalar one."""

Versions = tuple[tuple[str, int], ...]
"""Symbols, and the lanes of each."""


def calls(
    state: KernelState, symbol: str, type_: str, versions: Versions, *, side_by_side: bool
) -> tuple[str, Versions]:
    """What to call instead of a libm function, and the vector versions of calls that may be side by side; the
    last of `versions` is used.

    LLVM must not drop a parameter that is the same constant in all calls: the vector versions have it.
    """
    single = f"mutad_{symbol}"
    if define(state, single, 1, versions[-1], type_, symbol):
        state.kept_alive.append(single)
    if not side_by_side and state.shares:
        return single, ()
    found = alike(state, symbol, type_, versions)
    return single, found if side_by_side else ()


def alone(state: KernelState, symbol: str, versions: Versions) -> str | None:
    """One of our functions for a single number, to be inlined; None for one of others."""
    name = f"mutad_{symbol}_alone"
    if name in state.functions or own_math.define_narrow(state, name, 1, versions[-1][0]):
        return name
    return None


def provided(state: KernelState, symbol: str, type_: str, versions: Versions) -> Versions:
    """The vector versions, in the module; beside one of ours all have its bits."""
    if versions and own_math.is_own(versions[-1][0]):
        return alike(state, symbol, type_, versions)
    for name, lanes in versions:
        declare(state, name, lanes, type_, symbol)
    return versions


def alike(state: KernelState, symbol: str, type_: str, versions: Versions) -> Versions:
    """The widest version, and calls of it for narrower vectors."""
    widest, width = versions[-1]
    declare(state, widest, width, type_, symbol)
    made = renamed(versions)
    for name, lanes in made:
        if define(state, name, lanes, versions[-1], type_, symbol):
            state.kept_alive.append(name)
    return (*made, versions[-1])


def renamed(versions: Versions) -> Versions:
    """The narrower versions, as calls of the widest are named."""
    return tuple((f"{name}_{versions[-1][1]}", lanes) for name, lanes in versions[:-1])


def define(
    state: KernelState, name: str, lanes: int, version: tuple[str, int], type_: str, symbol: str
) -> bool:
    """Write a call of a wider version into the module, or of a library; False where there is one.

    Ours for fewer lanes pay where loops may have such vectors: they take a few milliseconds to translate. In
    libraries they always do.
    """
    if name in state.functions or name in state.declarations:
        return False
    if state.shares:
        share(state, name, lanes, type_, symbol)
        return True
    wide = state.in_vectors and is_wide(state.features)
    if lanes > PAIR and not wide and own_math.define_narrow(state, name, lanes, version[0]):
        return True
    plain = PLAIN.get(symbol.removesuffix("f"), 0.5)
    state.functions[name] = narrow(name, lanes, version, type_, arity_of(symbol), plain)
    return True


def arity_of(symbol: str) -> int:
    return 2 if symbol.removesuffix("f") in vector_math.BINARY else 1


def declare(state: KernelState, name: str, lanes: int, type_: str, symbol: str) -> None:
    """Have a vector version in the module, and keep it for the vectorizer."""
    if name in state.declarations:
        return
    if state.shares and own_math.is_own(name):
        share(state, name, lanes, type_, symbol)
        state.kept_alive.append(name)
    elif not own_math.define(state, name):
        line = vector_math.declaration(name, lanes, type_, arity_of(symbol))
        state.declare(name, line, "libmvec")
        state.kept_alive.append(name)


def share(state: KernelState, name: str, lanes: int, type_: str, symbol: str) -> None:
    """Declare a version that is in a library of the process (`shared_code`)."""
    own = type_ if lanes == 1 else f"<{lanes} x {type_}>"
    parameters = ", ".join([own] * arity_of(symbol))
    line = f"declare {own} @{name}({parameters}) nonlazybind nounwind willreturn memory(none)"
    state.declare_shared(name, line, "function", symbol)


def library(state: KernelState, symbol: str) -> list[str]:
    """Write all versions of a libm function into the module; their names, but for those of libmvec.

    Ours for fewer lanes have bodies of their own.
    """
    type_ = "float" if vector_math.is_single(symbol) else "double"
    versions = vector_math.variants(symbol, state.features)
    widest = versions[-1][0]
    own_math.define_narrow(state, f"mutad_{symbol}", 1, widest)
    for name, lanes in renamed(versions):
        own_math.define_narrow(state, name, lanes, widest)
    calls(state, symbol, type_, versions, side_by_side=True)
    return list(state.functions)


def narrow(
    name: str, lanes: int, version: tuple[str, int], type_: str, arity: int, plain: float
) -> str:
    """A function of so many numbers that calls a wider version."""
    widest, width = version
    wide, own = f"<{width} x {type_}>", type_ if lanes == 1 else f"<{lanes} x {type_}>"
    arguments = ["%x", "%y"][:arity]
    parameters = ", ".join(f"{own} {a}" for a in arguments)
    lines = [f"define internal {own} @{name}({parameters}) noinline nounwind {{"]
    for a in arguments:
        lines += widened(a, lanes, width, type_, plain)
    passed = ", ".join(f"{wide} {a}.wide" for a in arguments)
    lines.append(f"  %found = call {wide} @{widest}({passed}) nounwind willreturn memory(none)")
    lines.append(f"  %result = {first_lanes(lanes, width, type_)}")
    return "\n".join([*lines, f"  ret {own} %result", "}"])


def widened(value: str, lanes: int, width: int, type_: str, plain: float) -> Sequence[str]:
    """Lines that make `{value}.wide`: the numbers first, and others that are no trouble."""
    wide = f"<{width} x {type_}>"
    others = f"{wide} splat ({type_} {plain})"
    if lanes == 1:
        return [f"  {value}.wide = insertelement {others}, {type_} {value}, i64 0"]
    first = ", ".join(f"i32 {k}" if k < lanes else "i32 poison" for k in range(width))
    chosen = ", ".join(f"i32 {k if k < lanes else width + k}" for k in range(width))
    narrow_type = f"<{lanes} x {type_}>"
    return [
        f"  {value}.long = shufflevector {narrow_type} {value}, {narrow_type} poison,"
        f" <{width} x i32> <{first}>",
        f"  {value}.wide = shufflevector {wide} {value}.long, {others}, <{width} x i32> <{chosen}>",
    ]


def first_lanes(lanes: int, width: int, type_: str) -> str:
    wide = f"<{width} x {type_}> %found"
    if lanes == 1:
        return f"extractelement {wide}, i64 0"
    kept = ", ".join(f"i32 {k}" for k in range(lanes))
    return f"shufflevector {wide}, <{width} x {type_}> poison, <{lanes} x i32> <{kept}>"
