"""Calls at the limits: extents and counts that overflow, areas that are none, memory that ends."""

from __future__ import annotations

import ctypes
import shutil
from typing import Any

import numpy as np
import pytest
from c_client import FREE, MALLOC, Allocator, Client, export

from mutad.compiler.aot.statuses import KINDS

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="builds with a C compiler")
INT = ctypes.c_int64
LARGEST = 2**63 - 1


def scratch(n, x):
    w = np.zeros((n, n))
    w += x
    return 0.5 * (w + w.T).sum()


def total(a):
    return (a * a).sum()


def outer(u, v):
    return np.sin(u[:, None] * v[None, :])


def positive(u):
    return u[u > 0] * 2


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    numbers, table = {"n": "py_int", "x": "py_float"}, {"a": "f64[?,?]S"}
    return Client(
        tmp_path_factory.mktemp("limits"), "limits",
        export(scratch, numbers), export(scratch, numbers, "grad", (1,)),
        export(total, table), export(total, table, "grad", (0,)),
        export(outer, {"u": "f64[?]C", "v": "f64[?]C"}), export(positive, {"u": "f64[?]C"}),
        opt=1,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("n", "bytes_"),
    [(-(2**63), 0), (-1, 0), (0, 0), (1, 64), (9, 704), (2**20, 2**43), (2**31, -1), (2**32, -1),
     (2**62, -1), (LARGEST, -1)],
)  # fmt: skip
@pytest.mark.parametrize("symbol", ["scratch", "scratch_grad"])
def test_a_size_that_overflows_is_none(client: Client, symbol: str, n: int, bytes_: int) -> None:
    f = client.functions[symbol]
    assert client.work_size(f, {"n": n}) == bytes_


def scratched(client: Client, n: int, work: int | None, bytes_: int) -> tuple[int, float]:
    out = ctypes.c_double(-1.0)
    status = client.loaded["scratch"](
        INT(n), ctypes.c_double(2.0), ctypes.byref(out), ctypes.c_void_p(work), INT(bytes_)
    )
    return status & 0xFF, out.value


@pytest.mark.parametrize(
    ("n", "offset", "bytes_", "kind"),
    [
        (3, 0, 128, None), (3, 0, 127, "WORK_TOO_SMALL"), (3, 0, 0, "WORK_TOO_SMALL"),
        (3, 0, -1, "WORK_TOO_SMALL"), (3, 0, -(2**63), "WORK_TOO_SMALL"), (3, 0, LARGEST, None),
        (3, 8, 192, "BAD_LAYOUT"), (3, None, 1 << 40, "WORK_TOO_SMALL"), (0, None, 0, None),
        (2**33, 0, 128, "WORK_TOO_SMALL"), (LARGEST, 0, LARGEST, "WORK_TOO_SMALL"),
        (-1, 0, 128, "ValueError"), (-(2**63), None, 0, "ValueError"),
    ],
)  # fmt: skip
def test_areas(client: Client, n: int, offset: int | None, bytes_: int, kind: str | None) -> None:
    room = np.zeros(64)
    start = -(-room.ctypes.data // 64) * 64
    status, value = scratched(client, n, None if offset is None else start + offset, bytes_)
    assert status == (0 if kind is None else KINDS[kind])
    assert value == (2.0 * n * n if kind is None else -1.0)


@pytest.mark.parametrize(
    ("shape", "strides", "kind"),
    [
        ((-1, 2), (2, 1), "BAD_SHAPE"), ((2**62, 2**62), (0, 0), "BAD_SHAPE"),
        ((LARGEST, 0), (0, 0), "BAD_SHAPE"), ((2**40, 0), (1, 1), None), ((2, 2), (2, 1), None),
        ((2, 2), (0, 1), "OVERLAP"), ((2, 2), (2**62, 2**62), "BAD_SHAPE"),
        ((2**31, 2**31), (2**31, 1), "BAD_SHAPE"), ((2**31, 2**31), (-(2**31), 1), "BAD_SHAPE"),
        ((2, 1), (-(2**63), 1), "BAD_SHAPE"), ((2**27, 2**27), (2**27, 1), "OVERLAP"),
        ((2**40, 0), (2**62, 2**62), None),
    ],
)  # fmt: skip
def test_descriptors(client: Client, shape: Any, strides: Any, kind: str | None) -> None:
    """No element is touched of an array that cannot be: a gradient that overlaps itself, or the argument."""
    u, grad, area = np.ones(8), np.full(8, 7.0), np.zeros(64)
    words = [(INT * 5)(a.ctypes.data, *shape, *strides) for a in (u, grad)]
    start = -(-area.ctypes.data // 64) * 64
    status = client.loaded["total_grad"](*words, ctypes.c_void_p(start), INT(384))
    assert status & 0xFF == (0 if kind is None else KINDS[kind])
    assert list(grad) == ([2.0] * 4 + [7.0] * 4 if shape == (2, 2) and kind is None else [7.0] * 8)


def test_results_too_large_have_no_size(client: Client) -> None:
    size = client.loaded["outer_worksize"]
    size.restype = INT
    sizes = [size(INT(n), INT(m)) for n, m in ((2**33, 2**33), (2**60, 8), (0, LARGEST), (2, 3))]
    assert sizes == [-1, -1, 0, 64]


@pytest.mark.parametrize("granted", [0, 1, 2])
def test_an_allocator_that_ends_gets_all_back(client: Client, granted: int) -> None:
    live: dict[int, Any] = {}
    asked = [0]

    def allocate(state: Any, size: int) -> int:
        asked[0] += 1
        if asked[0] > granted:
            return 0
        block = ctypes.create_string_buffer(size)
        live[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def release(state: Any, block: int, size: int) -> None:
        assert len(live.pop(block)) == size

    u = np.arange(64.0)
    given = Allocator(MALLOC(allocate), FREE(release), None)
    out = (INT * 3)()
    status = client.loaded["positive"]((INT * 3)(u.ctypes.data, 64, 1), out, ctypes.byref(given))
    assert status & 0xFF == KINDS["MemoryError"]
    assert not live
