"""Threads that meet in elements: values and gradients are the CPU's, and where atomics are is known."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from device_checks import assemble, close
from meeting_programs import KS, MEETING, Meeting, added_at

import mutad

NAMES = [m.function.__name__ for m in MEETING]


def outcome(program: Meeting, target: str, *, deterministic: bool) -> list[Any]:
    compiled = mutad.compile(
        program.function, grad=True, target=target, deterministic=deterministic, opt=1
    )
    given, again = program.arguments(), program.arguments()
    found = [compiled(*given), *given]
    if program.wrt and (program.deterministic or not deterministic):
        value, gradients = compiled.value_and_grad(*again, wrt=program.wrt)
        found += [value, *gradients, *again]
    return found


@pytest.mark.parametrize("program", MEETING, ids=NAMES)
def test_values_and_gradients_are_the_hosts(program: Meeting) -> None:
    for deterministic in (False, True):
        found = outcome(program, "cuda:host", deterministic=deterministic)
        wanted = outcome(program, "cpu", deterministic=deterministic)
        for one, other in zip(found, wanted, strict=True):
            close(one, other)
        plain = program.arguments()
        close(found[0], program.function(*plain))
        for one, other in zip(found[1 : 1 + len(plain)], plain, strict=True):
            assert np.array_equal(one, other)  # primals keep the order of the program


@pytest.mark.parametrize("program", MEETING, ids=NAMES)
def test_atomics_are_where_they_must_be(program: Meeting, tmp_path: Path) -> None:
    for how, atomics in zip(({}, {"wrt": program.wrt}), program.atomics, strict=True):
        if "wrt" in how and not program.wrt:
            continue
        kernels = shown(program, "kernels", how)
        assert kernels.count("device.atomic_add") == atomics
        if atomics:
            text = shown(program, "ptx", how)
            found = re.findall(r"\b(?:atom|red)\.\S+", text)
            assert found
            assert all(".global.add." in one for one in found)
            assemble(text, "sm_80", tmp_path)
            if program.deterministic:
                assert "device.atomic_add" not in shown(program, "kernels", how, deterministic=True)


def shown(program: Meeting, stage: str, how: dict[str, Any], **options: Any) -> str:
    compiled = mutad.compile(program.function, grad=True, target="cuda:sm_80", **options)
    return compiled.inspect(stage, *program.arguments(), **how)


def test_gradients_that_need_atomics_run_in_one_thread_where_they_are_forbidden() -> None:
    program = next(m for m in MEETING if not m.deterministic)
    assert "atomic_add" not in shown(program, "kernels", {"wrt": program.wrt}, deterministic=True)
    slopes = [
        mutad.compile(
            program.function, grad=True, target="cuda:host", opt=1, deterministic=alike
        ).grad(*program.arguments(), wrt=program.wrt)
        for alike in (False, True)
    ]
    for one, other in zip(*slopes, strict=True):
        close(one, other)


def test_iterations_that_are_claimed_to_be_independent_add_atomically() -> None:
    def in_any_order(u, k, v):
        for i in mutad.prange(k.size):
            u[k[i]] += v[i]

    given = np.zeros(5), KS, np.ones(6)
    compiled = mutad.compile(in_any_order, target="cuda:host", opt=1)
    assert "atomic_add" in compiled.inspect("kernels", *given)
    compiled(*given)
    assert given[0].tolist() == [1.0, 1.0, 0.0, 3.0, 1.0]
    fast = mutad.compile(added_at, target="cuda:host", fastmath=True, opt=1)
    assert "atomic_add" not in fast.inspect("kernels", *given)


@pytest.mark.parametrize("dtype", ["i1", "i2", "i4", "i8", "f4", "f8"])
def test_every_kind_of_number_is_added_atomically(dtype: str, tmp_path: Path) -> None:
    def less(u, k, v):
        for i in mutad.prange(k.size):
            u[k[i]] -= v[i]

    given = np.zeros(5, dtype), KS, np.ones(6, dtype)
    mutad.compile(less, target="cuda:host", opt=1)(*given)
    assert given[0].tolist() == [-1, -1, 0, -3, -1]
    text = mutad.compile(less, target="cuda:sm_80").inspect("ptx", *given)
    assert re.search(r"\b(atom|red)\.", text)
    assemble(text, "sm_80", tmp_path)


def test_exceptions_of_subscripts_that_repeat() -> None:
    compiled = mutad.compile(added_at, target="cuda:host", opt=1)
    for one in (added_at, compiled):
        u = np.zeros(4)
        with pytest.raises(IndexError, match="index 9 is out of bounds for axis 0 with size 4"):
            one(u, np.array([0, 3, 9]), np.ones(3))
        assert u.tolist() == [0.0, 0.0, 0.0, 0.0]


def test_threads_of_a_block_add_up_what_they_add_to_one_element() -> None:
    """In an inner loop, which they go through together: one atomic addition of each block."""
    for program in (m for m in MEETING if not m.deterministic):
        compiled = mutad.compile(program.function, grad=True, target="cuda:sm_90")
        told = compiled.explain(*program.arguments(), wrt=program.wrt)
        assert sum(k.atomics for k in told.kernels) == 0
        assert sum(k.block_atomics for k in told.kernels) == program.atomics[1]
        assert "a block" in str(told)
