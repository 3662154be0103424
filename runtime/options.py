"""The options of `mutad.compile`."""

from __future__ import annotations

import os
from typing import Any, Literal, TypedDict

from . import budgets
from .foreign_idioms import OPTIONS


class Options(TypedDict, total=False):
    """The options of `mutad.compile` besides `grad`: see there."""

    saves: Literal["minimal", "fewest", "all", "forbid"]
    memory: int | str | tuple[int | str, str] | None
    fastmath: bool
    boundscheck: bool
    cache: bool
    opt: Literal[0, 1, 2, 3]
    sanitize: Literal["", "grad"]
    parallel: bool
    debug: bool
    deterministic: bool
    target: str | None


DEFAULTS: dict[str, Any] = {
    "saves": "minimal",
    "fastmath": False,
    "boundscheck": True,
    "opt": 3,
    "cache": True,
    "debug": False,
    "parallel": False,
    "sanitize": "",
    "memory": None,
    "deterministic": False,
    "target": "cpu",
}


def checked_target(target: Any) -> str:
    """What code is made for: the CPU, kernels that it runs as a device would, or a kind of device."""
    if target is None:
        return "cpu"
    if target in ("cpu", "cuda:host", *(f"cuda:{kind}" for kind in DEVICES)):
        return target
    shown = ", ".join(f"'cuda:{kind}'" for kind in DEVICES)
    raise ValueError(f"target={target!r}: use 'cpu', 'cuda:host', {shown}")


DEVICES = (
    *("sm_70", "sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_90a"),
    *("sm_100", "sm_103", "sm_120"),
)
"""Kinds of NVIDIA's devices, as its assembler names them."""


def check_options(options: dict[str, Any]) -> dict[str, Any]:
    """All options, with their defaults; TypeError or ValueError for what is not supported."""
    asked = {
        "debug": os.environ.get("MUTAD_DEBUG") == "1",
        "sanitize": os.environ.get("MUTAD_SANITIZE", ""),
    }
    result, spill = {**DEFAULTS, **asked, **options}, ""
    if result["sanitize"] not in ("", "grad"):
        raise ValueError(f"sanitize={result['sanitize']!r}: use '' or 'grad' (MUTAD_SANITIZE=grad)")
    for name, value in options.items():
        if name == "target":
            result["target"] = checked_target(value)
        elif name not in DEFAULTS:
            known = ", ".join([*DEFAULTS, "grad"])
            advice = f" ({OPTIONS[name]})" if name in OPTIONS else ""
            raise TypeError(f"compile() has no option {name!r}{advice}; there are {known}")
        elif name == "saves":
            if value not in ("minimal", "fewest", "all", "forbid"):
                raise ValueError(f"saves={value!r}: use 'minimal', 'fewest', 'all' or 'forbid'")
        elif name == "opt":
            if isinstance(value, bool) or value not in (0, 1, 2, 3):
                raise ValueError(f"opt={value!r}: use 0, 1, 2 or 3")
        elif name == "memory":
            result["memory"], spill = budgets.budget_of(value)
        elif name != "sanitize" and not isinstance(value, bool):
            raise TypeError(f"{name}={value!r}: use True or False")
    if result["sanitize"]:
        result["fastmath"] = False  # which assumes that all is finite
    for name in ("memory", "parallel"):
        if result[name] and result["target"] != "cpu":
            raise ValueError(
                f"{name}= is of the CPU: target={result['target']!r} has no such choice"
            )
    return {**{name: result[name] for name in DEFAULTS}, "spill": spill}
