"""Which CPU code is made for: the one that we run on, or the one that `MUTAD_TARGET_CPU` names.

A name is one of the levels of x86-64, as the psABI defines them: code for `x86-64-v3` runs on every CPU
that has at least these instructions, and is the same wherever it is compiled. Code for a CPU that has more
than ours can be made and read (`inspect`), not run.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

VARIABLE = "MUTAD_TARGET_CPU"

_ADDED = {
    "x86-64": ("sse2",),
    "x86-64-v2": ("cx16", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3"),
    "x86-64-v3": ("avx", "avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe", "xsave"),
    "x86-64-v4": ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl"),
}
"""What each level has beyond the one before it, by LLVM's names."""

LEVELS: dict[str, frozenset[str]] = dict(
    zip(_ADDED, accumulate(map(frozenset, _ADDED.values()), frozenset[str].union), strict=True)
)


@dataclass(frozen=True)
class Target:
    """A CPU that is not (or need not be) the one that we run on."""

    cpu: str
    features: frozenset[str]
    """What it has, by LLVM's names: "avx2", ..."""


def chosen() -> Target | None:
    """The CPU that the environment names; None is the one that we run on."""
    name = os.environ.get(VARIABLE, "")
    if not name:
        return None
    try:
        return named(name)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}={name}: {error}, or unset it") from None


def named(name: str) -> Target:
    """The CPU of this name."""
    import platform

    if platform.machine() not in ("x86_64", "AMD64"):
        raise ValueError("only the levels of x86-64 can be named")
    if name not in LEVELS:
        raise ValueError(f"use one of {', '.join(LEVELS)}")
    return Target(name, LEVELS[name])


@cache
def host() -> Target:
    """The CPU that we run on."""
    from llvmlite import binding

    features = binding.get_host_cpu_features()
    return Target(binding.get_host_cpu_name(), frozenset(k for k, has in features.items() if has))


def missing(target: Target) -> list[str]:
    """What the CPU that we run on lacks to be that one."""
    return sorted(target.features - host().features)


def runnable() -> list[str]:
    """The levels that the CPU that we run on has, the lowest first."""
    return [name for name, has in LEVELS.items() if has <= host().features]


def require_runnable() -> None:
    """RuntimeError where code is made for a CPU that has more than the one that we run on."""
    target = chosen()
    if target is not None and (lacking := missing(target)):
        raise RuntimeError(
            f"{VARIABLE}={target.cpu}: code for it cannot run here: this CPU ({host().cpu}) has no "
            f"{', '.join(lacking)}; use one of {', '.join(runnable())}, or unset it"
        )
