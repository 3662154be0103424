"""LLVM's options: how it is asked what its pass managers have no parameters for.

They are LLVM's as a whole, so they are set for a while. Other threads may be at work meanwhile
(`llvm_threads`): those of the vectorizer are set before the modules that read them are begun, and entries,
which nothing vectorizes, do not read them; how loops are emitted is set when no thread emits anything.
"""

from __future__ import annotations

import platform
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import llvmlite.binding as llvm

from .llvm_threads import complete, completed


@dataclass(frozen=True)
class Vectorized:
    """What may become vector code."""

    anything: bool = True
    branches: bool = True
    """Also loops with branches, under masks."""

    @property
    def options(self) -> dict[str, str]:
        return {
            "-force-ordered-reductions": "true",
            "-force-tail-folding-style": "none",
            "-enable-if-conversion": str(self.branches).lower(),
            "-unswitch-threshold": "1",
            "-enable-mem-access-versioning": "false",
        }


DEFAULTS = {
    "-force-ordered-reductions": str(platform.machine() not in ("x86_64", "AMD64")).lower(),
    "-force-tail-folding-style": "data-without-lane-mask",
    "-enable-if-conversion": "true",
    "-unswitch-threshold": "50",
    "-enable-mem-access-versioning": "true",
    "-disable-lsr": "false",
}
"""What LLVM does for the CPU that we run on when it is not asked."""
WITHOUT_REDUCTION = {"-disable-lsr": "true"}


@contextmanager
def options_of(vectorized: Vectorized) -> Generator[None]:
    """What follows is optimized with these options; they are LLVM's, not ours alone, and reset afterwards.

    Ordered reductions: the terms of a sum that must stay in order (`total += math.sqrt(v)`) are computed as
    vectors, and added one by one; LLVM itself does so on other CPUs than x86. Tail folding: loops of few
    trips would be vectorized under masks. Access versioning: a loop would be written again for strides of 1,
    where sums have another order (steps within a budget run on contiguous copies of arrays that are not).
    Unswitching: a loop with a condition that is the same in each iteration would be written twice; ours have
    versions of their own (`map_nest`, `hoist_checks`), and what is left is cold. (The same for every target:
    an option that was set once overrides what LLVM would do for a CPU.) Each takes a while to set: where
    nothing becomes vectors none is.
    """
    if not vectorized.anything:
        yield
        return
    set_options(vectorized.options)
    try:
        yield
    finally:
        reset_options(vectorized.options)


def set_options(values: dict[str, str]) -> None:
    """(Where an option does not exist LLVM ends the process: all are in every one of `LLVM_VERSIONS`.)"""
    for name, value in values.items():
        llvm.set_option("mutad", f"{name}={value}")


def reset_options(values: dict[str, str]) -> None:
    """What these have changed is LLVM's own again."""
    set_options({name: DEFAULTS[name] for name, value in values.items() if value != DEFAULTS[name]})


@contextmanager
def reduction(*, by_llvm: bool) -> Generator[None]:
    """Whether LLVM reduces the strength of loops in what is emitted here: see `ready`."""
    before = Reduction.by_llvm
    set_reduction(by_llvm=by_llvm)
    try:
        yield
    finally:
        set_reduction(by_llvm=before)


class Reduction:
    """As it is set."""

    by_llvm = True


def set_reduction(*, by_llvm: bool) -> None:
    if by_llvm is not Reduction.by_llvm:
        complete()  # what other threads emit
        (reset_options if by_llvm else set_options)(WITHOUT_REDUCTION)
        Reduction.by_llvm = by_llvm


@contextmanager
def ended() -> Generator[None]:
    """What is begun in here has ended behind it."""
    try:
        with completed():
            yield
    finally:
        set_reduction(by_llvm=True)
