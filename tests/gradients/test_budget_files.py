"""Budgets with a file for what memory has no room for: the same gradients, and nothing left behind."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import signal
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from budget_programs import ROWS, compiled, least_of, outcome, stencil, until_small

import mutad
from mutad.runtime import spill_file
from mutad.runtime.measure import measure_gradient

U = np.linspace(0.2, 0.9, 1000)
ARGUMENTS = U, 0.1, 60
WRITTEN = (0, 5, 10, 13, 17, 21, 23, 24, 27, 31, 33, 34, 35, 36, 38, 49, 51)
"""Rows of all kinds: several loops, in branches, within each other, `while`, exceptions."""


def descriptors() -> int:
    return len(os.listdir("/proc/self/fd"))


@pytest.mark.parametrize("row", WRITTEN)
def test_gradients_are_the_same_bit_for_bit(row: int, tmp_path: Path) -> None:
    function, arguments, wrt = ROWS[row]
    wanted, before = outcome(compiled(function, None), arguments, wrt), descriptors()
    least, found = least_of(function, arguments, wrt, f"disk:{tmp_path}")
    assert found == wanted
    tight = compiled(function, (least + least // 2, f"disk:{tmp_path}"))
    assert outcome(tight, arguments, wrt) == wanted
    assert descriptors() == before
    assert not list(tmp_path.iterdir())


def test_steps_are_run_less_often_with_a_file(tmp_path: Path) -> None:
    in_memory = compiled(stencil, "40kB").explain(*ARGUMENTS).budget
    assert (in_memory.folder, in_memory.disk_bytes) == ("", 0)
    filed = compiled(stencil, ("40kB", f"disk:{tmp_path}")).explain(*ARGUMENTS).budget
    assert filed.executed < 0.7 * in_memory.executed
    assert filed.disk_bytes % (U.nbytes + 32) == 0
    assert f"40,000 bytes, and {filed.disk_bytes:,} bytes in a file in {tmp_path}: " in str(filed)
    assert filed.to_dict()["disk_bytes"] == filed.disk_bytes
    plenty = compiled(stencil, ("1GB", f"disk:{tmp_path}")).explain(*ARGUMENTS).budget
    assert (plenty.disk_bytes, plenty.executed) == (0, 60)
    unknown = compiled(until_small, ("1kB", f"disk:{tmp_path}")).explain(U, 0.5).budget
    assert "as many as it takes in a file" in str(unknown)


def test_memory_holds_no_more_than_the_budget(tmp_path: Path) -> None:
    arguments = np.linspace(0.0, 1.0, 10_000), 0.01, 200
    function = compiled(stencil, ("600kB", f"disk:{tmp_path}"))
    receipt = function.explain(*arguments)
    beside = receipt.temporary_bytes + receipt.shadow_bytes - arguments[0].nbytes
    assert measure_gradient(function, *arguments).kernel <= 600_000 + beside + (1 << 18)
    assert receipt.budget.disk_bytes > 600_000


@contextmanager
def on_write(action: Callable[[int], None]) -> Generator[None]:
    """Do something in the midst of a gradient: before each state that is written."""
    original, count = spill_file.SpillFile.write, 0

    def write(self: spill_file.SpillFile, address: int, size: int, place: int) -> None:
        nonlocal count
        count += 1
        action(count)
        original(self, address, size, place)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(spill_file.SpillFile, "write", write)
        yield
    assert count > 1


def test_where_there_can_be_no_file_nothing_is_run(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("")
    for folder, kind in ((tmp_path / "none", FileNotFoundError), (plain, NotADirectoryError)):
        u = U.copy()
        tight = compiled(stencil, ("40kB", f"disk:{folder}"))
        with pytest.raises(
            kind, match=r"for the states that `memory=` leaves no room for: '.*'"
        ) as caught:
            tight.grad(u, 0.1, 60)
        assert caught.value.filename == str(folder)
        assert np.array_equal(u, U)
    for folder in ("/proc", "/sys"):  # nobody has a right to write there
        with pytest.raises(OSError, match="leaves no room for"):
            compiled(stencil, ("40kB", f"disk:{folder}")).grad(U.copy(), 0.1, 60)


@contextmanager
def smallest_files(size: int) -> Generator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_full_disk_is_an_error_before_anything_is_run(tmp_path: Path) -> None:
    tight, u, before = compiled(stencil, ("40kB", f"disk:{tmp_path}")), U.copy(), descriptors()
    wanted = tight.grad(U.copy(), 0.1, 60)
    with (
        smallest_files(20_000),
        pytest.raises(OSError, match=r"a file of [\d,]+ bytes for the states"),
    ):
        tight.grad(u, 0.1, 60)
    assert np.array_equal(u, U)
    assert np.array_equal(tight.grad(u, 0.1, 60), wanted)
    assert descriptors() == before
    assert not list(tmp_path.iterdir())


def test_so_it_is_where_nobody_knows_how_many_states_there_are(tmp_path: Path) -> None:
    function = compiled(until_small, (60_000, f"disk:{tmp_path}"))
    wanted, before = function.grad(U.copy(), 9.0), descriptors()
    with (
        smallest_files(20_000),
        pytest.raises(OSError, match=r"a file of [\d,]+ bytes for the states"),
    ):
        function.grad(U.copy(), 9.0)
    assert descriptors() == before
    assert np.array_equal(function.grad(U.copy(), 9.0), wanted)


def test_interrupts_end_the_call_and_its_file(tmp_path: Path) -> None:
    tight = compiled(stencil, ("40kB", f"disk:{tmp_path}"))
    wanted, before = tight.grad(U.copy(), 0.1, 60), descriptors()

    def interrupt(count: int) -> None:
        if count == 2:
            os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    try:
        with on_write(interrupt), pytest.raises(KeyboardInterrupt):
            tight.grad(U.copy(), 0.1, 60)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert descriptors() == before
    assert np.array_equal(tight.grad(U.copy(), 0.1, 60), wanted)


def test_exceptions_that_python_has_outlive_the_file(tmp_path: Path) -> None:
    def printing(u, k, steps):
        for _ in range(steps):
            u[1:-1] += k * u[1:-1] * (u[2:] - u[:-2])
        print(u[0])
        return (u * u).sum()

    class Closed(io.StringIO):
        def write(self, text: str) -> int:
            raise KeyboardInterrupt

    tight, before = compiled(printing, ("40kB", f"disk:{tmp_path}")), descriptors()
    with contextlib.redirect_stdout(Closed()), pytest.raises(KeyboardInterrupt):
        tight.grad(U.copy(), 0.1, 60)
    assert descriptors() == before


def test_callers_have_files_of_their_own(tmp_path: Path) -> None:
    tight = compiled(stencil, ("40kB", f"disk:{tmp_path}"))
    shifts = range(4)
    wanted = [tight.grad(U + 0.01 * k, 0.1, 60) for k in shifts]
    barrier, found = threading.Barrier(len(shifts)), [[np.zeros(0)] for _ in shifts]

    def call(k: int) -> None:
        barrier.wait()
        found[k] = [tight.grad(U + 0.01 * k, 0.1, 60) for _ in range(10)]

    threads = [threading.Thread(target=call, args=(k,)) for k in shifts]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for k in shifts:
        assert all(np.array_equal(one, wanted[k]) for one in found[k])
    assert not spill_file.files


def test_a_child_of_the_process_has_no_part_in_the_file(tmp_path: Path) -> None:
    """It cannot go on with the gradient within which it was forked, nor does it touch the parent's states."""
    tight = compiled(stencil, ("40kB", f"disk:{tmp_path}"))
    wanted, child = tight.grad(U.copy(), 0.1, 60), -1

    def fork(count: int) -> None:
        nonlocal child
        if count == 2:
            child = os.fork()

    with on_write(fork):
        try:
            found = tight.grad(U.copy(), 0.1, 60)
        except BaseException as error:
            assert child == 0
            same = np.array_equal(tight.grad(U.copy(), 0.1, 60), wanted)
            os._exit(0 if same and isinstance(error, RuntimeError | OSError) else 1)
    assert np.array_equal(found, wanted)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.mark.parametrize(
    "memory",
    [
        ("1MB",),
        ("1MB", "tape:/tmp"),
        ("1MB", 5),
        (None, "disk:/tmp"),
        ("1MB", "disk:/tmp", 1),
        ("x", "disk"),
    ],
)
def test_what_is_no_budget_with_a_file_is_refused(memory: Any) -> None:
    with pytest.raises(ValueError, match="memory="):
        mutad.compile(stencil, memory=memory)


def test_a_folder_is_that_of_when_the_function_was_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert mutad.compile(stencil, memory=("1MB", "disk:.")).options["spill"] == str(tmp_path)
    assert Path(mutad.compile(stencil, memory=("1MB", "disk")).options["spill"]).is_dir()
