"""Which CPU code is made for: the one that we run on, or the one that `MUTAD_TARGET_CPU` names.

A name is one of the levels of x86-64, as the psABI defines them: code for `x86-64-v3` runs on every CPU
that has at least these instructions, and is the same wherever it is compiled. Code for a CPU that has more
than ours can be made and read (`inspect`), not run.

Ahead of time there are more: other machines and systems, by their triples, and CPUs by LLVM's names.
"""

from __future__ import annotations

import os
import re
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

_OF_LEVEL = {
    "x86-64-v2": "nehalem westmere sandybridge ivybridge silvermont goldmont tremont btver2 bdver1",
    "x86-64-v3": "haswell broadwell skylake alderlake raptorlake gracemont znver1 znver2 znver3",
    "x86-64-v4": "skylake-avx512 cascadelake icelake-server sapphirerapids graniterapids znver4 znver5",
}
CPUS: dict[str, dict[str, frozenset[str]]] = {
    "x86_64": {
        **LEVELS,
        **{cpu: LEVELS[name] for name, cpus in _OF_LEVEL.items() for cpu in cpus.split()},
    },
    "aarch64": dict.fromkeys(
        ("generic", "cortex-a53", "cortex-a55", "cortex-a57", "cortex-a72", "cortex-a73", "cortex-a76",
         "neoverse-n1", "ampere1", "apple-m1"),
        frozenset({"neon"}),
    ),
}  # fmt: skip
"""Of each machine the CPUs, by LLVM's names, and what of `LEVELS` (or NEON) they have; none has SVE."""
SYSTEMS = ("linux-gnu", "linux-musl")


@dataclass(frozen=True)
class Target:
    """A CPU that is not (or need not be) the one that we run on."""

    cpu: str
    features: frozenset[str]
    """What it has, by LLVM's names: "avx2", ..."""
    triple: str = ""
    """LLVM's triple of its machine and system; "" are ours."""


def chosen() -> Target | None:
    """The CPU that the environment names; None is the one that we run on."""
    name = os.environ.get(VARIABLE, "")
    if not name:
        return None
    try:
        return named(name)
    except ValueError as error:
        raise ValueError(f"{VARIABLE}={name}: {error}, or unset it") from None


def asked(targets: str | None, cpu: str | None) -> tuple[Target | None, ...]:
    """What code is made for ahead of time, as options say it: one target, or levels, the lowest first.

    None is the CPU that we run on. ValueError where that cannot be.
    """
    if targets is None:
        if cpu == "native":
            return (None,)
        return (chosen() if cpu is None else with_cpu(machine(), "", cpu),)
    names = targets.split(",")
    if not LEVELS.keys() >= {*names}:
        if len(names) > 1:
            raise ValueError(
                f"--target {targets}: several are levels of x86-64: {', '.join(LEVELS)}"
            )
        return (with_triple(targets, cpu),)
    if cpu is not None:
        raise ValueError(f"--cpu {cpu}: --target {targets} names the CPU")
    if len({*names}) < len(names):
        raise ValueError(f"--target {targets}: name each level once")
    if len(names) > 1 and not can_choose():
        raise ValueError(
            f"--target {targets}: several levels are for glibc, and made on x86-64 Linux: name one"
        )
    triple = "" if machine() == "x86_64" else "x86_64-unknown-linux-gnu"
    return tuple(Target(n, has, triple) for n, has in LEVELS.items() if n in names)


def with_triple(text: str, cpu: str | None) -> Target:
    """The machine and system that a triple names, `aarch64-linux-gnu` or with a vendor in it."""
    found = re.fullmatch(r"([a-z0-9_]+)(?:-[a-z0-9]+)?-(linux-[a-z]+)", text)
    if found is None or found[1] not in CPUS or found[2] not in SYSTEMS:
        triples = [f"{machine}-{system}" for machine in CPUS for system in SYSTEMS]
        raise ValueError(
            f"--target {text}: use {', '.join(triples)}, or {', '.join(LEVELS)}, or a device: sm_90"
        )
    if cpu == "native":
        raise ValueError("--cpu native: it is that of no --target")
    triple = f"{found[1]}-unknown-{found[2]}"
    return with_cpu(found[1], triple, next(iter(CPUS[found[1]])) if cpu is None else cpu)


def with_cpu(of: str, triple: str, cpu: str) -> Target:
    """A CPU of a machine."""
    known = CPUS.get(of, {})
    if cpu not in known:
        names = ", ".join([*known, *([] if triple else ["native"])])
        raise ValueError(f"--cpu {cpu}: use one of {names}")
    return Target(cpu, known[cpu], triple)


def machine() -> str:
    """The machine that we run on, as triples name it."""
    import platform

    found = platform.machine()
    return {"AMD64": "x86_64", "arm64": "aarch64"}.get(found, found)


def can_choose() -> bool:
    """Whether the system that we run on, and make libraries for, chooses functions at load (`ifunc`)."""
    from llvmlite import binding

    return re.match(r"x86_64-.*linux-gnu", binding.get_default_triple()) is not None


def named(name: str) -> Target:
    """The level of x86-64 of this name."""
    if machine() != "x86_64":
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
