"""Views are views: a store to the source is seen in the result, and one to the result in the source.

Each group of expressions is called once for stores to `x` after all of them, once for stores to each result;
NumPy decides which results are views, which are copies, and which are read-only.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from generated import function_of

import mutad

GROUPS = {
    "diagonals": """
        np.diag(x)   np.diag(x, 1)   np.diagonal(x, -1)   np.linalg.diagonal(x)   x.diagonal(2)
        np.diagonal(x[1:, :2])   np.diagonal(x.T)   np.diagonal(x[::-1, ::2])   np.diagonal(x + 1)
        np.diag(x[0])   np.diagonal(np.stack((x, x)), 0, 1, 2)   np.diagonal(x, axis1=1, axis2=0)
        np.diagonal(x, 9)   np.diagonal(x[None], -1, -1, 1)   np.trace(x)
    """,
    "more diagonals": """
        np.einsum("ii->i", x)   np.einsum("iij->ji", x[:, :, None])   np.einsum("ii->i", x[::-1])
        np.einsum("iijj->ji", x[:2, :2, None, None])   np.einsum("ii->i", np.broadcast_to(x[1], (4, 4)))
        np.einsum("ij->ji", x)   np.einsum("ij", x)   np.einsum("ij->ij", x)   np.einsum("ii", x)
        np.diagonal(np.broadcast_to(x[:, :1], (4, 4)))   np.diagonal(np.stack((x, x))[:, 1:, 2:])
    """,
    "axes": """
        np.swapaxes(x, 0, 1)   x.swapaxes(0, 1)   np.moveaxis(x, 0, 1)   np.rollaxis(x, 1)   np.transpose(x)
        np.matrix_transpose(x)   x.T   x.transpose(1, 0)   np.expand_dims(x, 1)   np.squeeze(x)
        np.squeeze(x[None])   x[None].squeeze(0)   np.flip(x)   np.flip(x, 0)   np.fliplr(x)   np.flipud(x)
        np.rot90(x)   np.rot90(x, 0)   np.rot90(x, 2)   np.rot90(x, 3)
    """,
    "parts": """
        np.split(x, 2)[0]   np.split(x, [1, 2], axis=1)[0]   np.array_split(x, 3)[1]   np.hsplit(x, 2)[0]
        np.vsplit(x, 2)[1]   np.take(x, [0, 1])   x.take(0, axis=0)   np.extract(x > -9, x)   x[...]   x[()]
        np.compress(np.array([True, False, True, False]), x, axis=0)   x[1]   x[1:2, None]   x[[0, 1]]
        x[x > -9]   next(iter(x))
    """,
    "shapes": """
        np.ravel(x)   x.ravel()   np.ravel(x.T)   np.ravel(x[1:])   np.ravel(x[:, 1:])
        np.ravel(x, order="F")   x.reshape(-1)   np.reshape(x, (2, 8))   np.reshape(x[:2], 8)   x.flatten()
        np.reshape(x[:, :2], 8)
        x.reshape((4, 2, 2), order="F")   np.atleast_1d(x)   np.atleast_2d(x[0])   np.atleast_3d(x)
        np.atleast_1d(x, x)[1]   np.broadcast_arrays(x, x[0])[0]   np.resize(x, (4, 4))
    """,
    "copies": """
        np.asarray(x)   np.asarray(x, dtype=np.float32)   np.asanyarray(x)   np.array(x)   np.copy(x)
        np.array(x, copy=False)   np.array(x, copy=None)   np.asarray(x, copy=True)   np.asarray(x, copy=None)
        np.ascontiguousarray(x)   np.ascontiguousarray(x[1:])   np.ascontiguousarray(x.T)
        np.ascontiguousarray(x[:, 1:])   np.ascontiguousarray(x[2])   np.ascontiguousarray(x[:, :n])
        np.float64(x)   np.float32(x)   np.float64(x[::2])   x.astype(float)   x.real   np.real(x)   x.conj()
    """,
    "results": """
        np.nan_to_num(x)   np.nan_to_num(x, copy=False)   np.positive(x)   +x   np.clip(x, -9, 99)
        np.diff(x, 0)   np.concatenate((x,))   np.stack((x,))   np.vstack((x,))   np.tile(x, 1)
        np.repeat(x, 1)   np.roll(x, 0)   np.pad(x, 0)   np.tril(x, 4)   np.sort(x)   np.where(x > -9, x, 0)
        np.meshgrid(x[0], x[0])[0]   np.linalg.matrix_power(x, 1)   np.sum(x[None], axis=0)
    """,
    "rank 0": """
        np.atleast_1d(z)   np.atleast_2d(z)   np.atleast_3d(z)   z.reshape(1)   np.reshape(z, (1, 1))
        z.ravel()   np.ravel(z)   z[...]   z[None]   np.expand_dims(z, 0)   np.squeeze(z)   z.T
        np.asarray(z)   np.ascontiguousarray(z)   z.real
        np.broadcast_arrays(z, z)[0]   z.reshape(())   z.flatten()
        z.reshape(-1)   z.copy()   np.array(z)
    """,
}
READ_ONLY = {
    "np.broadcast_to(x, (2, 4, 4))", "np.diagonal(x)", "x.diagonal(1)", "np.linalg.diagonal(x)", "x.imag",
    "np.imag(x)",
    'np.einsum("ii->i", np.broadcast_to(x, (4, 4)))',
}  # fmt: skip
NUMBERS = {"np.trace(x)", 'np.einsum("ii", x)'}
LAYOUTS = {
    "C": lambda: np.arange(16.0).reshape(4, 4) * 0.5 + 1,
    "F": lambda: np.asfortranarray(np.arange(16.0).reshape(4, 4) * 0.5 + 1),
}


def expressions(group: str) -> list[str]:
    lines = GROUPS[group].strip().split("\n")
    return [text for line in lines for text in line.strip().split("   ")]


def stores_to_the_source(group: str) -> str:
    lines = [f"r{k} = {text}" for k, text in enumerate(expressions(group))]
    source = "z" if group == "rank 0" else "x"
    results = ", ".join(f"r{k} * 1.0" for k in range(len(lines)))
    return program([*lines, f"{source}[...] = {source} * 2.0 + 7.0", f"return {results}"])


def stores_to_results(group: str) -> str:
    """`k + 2` times the result: what is no view leaves the source as it is."""
    source = "z" if group == "rank 0" else "x"
    lines, sums = list[str](), list[str]()
    for k, text in enumerate(t for t in expressions(group) if t not in NUMBERS):
        lines.append(f"r{k} = {text}")
        lines += [
            "try:",
            f"    r{k}[...] = 1.0 - r{k} / {k + 2}",
            "except ValueError:",
            f"    {source}[...] = {source} / {k + 3}",
        ]
        lines.append(f"s{k} = {source} * 1.0")
        sums.append(f"s{k}")
    return program([*lines, f"return {', '.join(sums)}"])


def program(lines: list[str]) -> str:
    return "def f(x, z, n):\n" + "".join(f"    {line}\n" for line in lines)


def agree(source: str, make: Callable[[], Any]) -> None:
    function = function_of(source, "f", {"np": np})
    want_from, got_from = ((make(), np.array(2.5), 2) for _ in range(2))
    want = function(*want_from)
    got = mutad.compile(function, opt=1)(*got_from)
    for k, (w, g) in enumerate(zip(want, got, strict=True)):
        np.testing.assert_allclose(g, w, rtol=1e-12, err_msg=str(k))
    np.testing.assert_allclose(got_from[0], want_from[0])
    np.testing.assert_allclose(got_from[1], want_from[1])


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("program", [stores_to_the_source, stores_to_results])
@pytest.mark.parametrize("group", GROUPS)
def test_views(group: str, program: Callable[[str], str], layout: str) -> None:
    agree(program(group), LAYOUTS[layout])


@pytest.mark.parametrize("text", sorted(READ_ONLY))
def test_views_that_are_read_only(text: str) -> None:
    source = program([f"r = {text}", "x[0, 0] = 3.0", "r[...] = 9.0"])
    function = function_of(source, "f", {"np": np})
    for call in (function, mutad.compile(function, opt=1)):
        x = LAYOUTS["C"]()
        with pytest.raises(ValueError, match="assignment destination is read-only"):
            call(x, np.array(2.5), 2)
        assert x[0, 0] == 3.0


def returned(x):
    return np.diagonal(x), np.einsum("ii->i", x), np.ascontiguousarray(x[1:])


def test_results_share_the_callers_memory() -> None:
    x = LAYOUTS["C"]()
    for got, want in zip(mutad.compile(returned, opt=1)(x), returned(x), strict=True):
        assert np.shares_memory(got, x)
        assert (got.shape, got.strides) == (want.shape, want.strides)
