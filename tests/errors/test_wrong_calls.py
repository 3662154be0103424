"""Wrong calls get an exception that says what is wrong; none crashes, none computes a wrong number."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import wrong_calls
from python_oracle import compiled
from wrong_calls import WRONG


def test_there_are_many() -> None:
    assert len(WRONG) >= 200


@pytest.mark.parametrize("title", WRONG)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_a_wrong_call_is_refused(title: str) -> None:
    case = WRONG[title]
    with pytest.raises(case.exception, match=case.words):
        case.call()


def test_nothing_crashes_the_interpreter() -> None:
    support = Path(wrong_calls.__file__)
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", str(support)],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHONPATH": str(support.parent)},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["survived", str(2 * len(WRONG))], done.stdout


# Odd arrays that are no mistake: the answer is NumPy's.

AROUND = np.lib.stride_tricks.as_strided


def huge_strides_of_nothing():
    return AROUND(np.zeros(1), (0, 3), (2**62, -(2**62)))


def huge_stride_of_one_element():
    return AROUND(np.ones(1), (1,), (2**62,))


def odd_strides_of_unit_extents():
    return AROUND(np.ones(4), (1, 4, 1), (-12345, 8, 7))


def no_stride_at_all():
    return np.broadcast_to(2.0, (3, 4))


def every_extent_zero():
    return np.zeros((0, 0, 0))


def many_dimensions():
    return np.arange(64.0).reshape((2,) * 6)


def sliding_window():
    return np.lib.stride_tricks.sliding_window_view(np.arange(6.0), 3)


def inside_of_a_record():
    return np.zeros(4, [("a", float), ("b", float)])["b"]


def a_read_only_array():
    x = np.arange(3.0)
    x.flags.writeable = False
    return x


def real_part_of_complex():
    return np.arange(4.0).astype(complex).real


ODD = (
    huge_strides_of_nothing,
    huge_stride_of_one_element,
    odd_strides_of_unit_extents,
    no_stride_at_all,
    every_extent_zero,
    many_dimensions,
    sliding_window,
    inside_of_a_record,
    a_read_only_array,
    real_part_of_complex,
)


@pytest.mark.parametrize("make", ODD)
def test_an_odd_array_is_read_as_numpy_reads_it(make) -> None:
    x = make()
    total, product = compiled(wrong_calls.total), compiled(wrong_calls.product)
    assert total(x) == x.sum()
    assert product(x, 2.0) == (x * 2.0).sum()


def test_huge_indices_are_out_of_bounds() -> None:
    get = compiled(element)
    for i in (2**62, -(2**62), 2**63 - 1, -(2**63), 5, -6):
        with pytest.raises(IndexError, match=f"index {i} is out of bounds for axis 0 with size 5"):
            get(np.zeros(5), i)


def element(x, i):
    return x[i]


def test_huge_slices_are_clipped() -> None:
    cut = compiled(part)
    x = np.arange(5.0)
    big = 2**63 - 1
    for i, j, k in [
        (-big, big, 1),
        (big, -big, -1),
        (0, big, big),
        (-big - 1, big, 2),
        (big, big, 1),
        (4, -big, -3),
    ]:
        assert np.array_equal(cut(x, i, j, k), x[i:j:k])


def part(x, i, j, k):
    return x[i:j:k]


def test_too_much_memory_is_a_memory_error() -> None:
    with pytest.raises(MemoryError):
        compiled(allocate)(2**55)


def test_impossible_shapes_are_refused() -> None:
    with pytest.raises((ValueError, MemoryError)):
        compiled(allocate)(2**62)


def allocate(n):
    return np.zeros(n)


def use_scratch(n, i):
    a = np.zeros((n, n))
    for k in range(3):
        a[k, i] = k + i
        a[i, k] += a[k, i]
    return a[i, 1]


def test_too_much_scratch_is_a_memory_error() -> None:
    for n in (2**25, 2**30, 2**40):
        with pytest.raises((MemoryError, ValueError)):
            compiled(use_scratch)(n, 2)
    assert compiled(use_scratch)(3, 2) == use_scratch(3, 2)
