"""How wide vectors are: as the registers where that pays, narrower where loops wait for divisions."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

from mutad import compile
from mutad.compiler.codegen.llvm_module import host
from mutad.compiler.codegen.vector_width import Leaf, is_wide, narrow_lanes, width_pays
from mutad.runtime.target import LEVELS

needs_wide = pytest.mark.skipif(not is_wide(host().features), reason="narrower registers")


@pytest.fixture(autouse=True)
def code_for_this_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUTAD_TARGET_CPU", raising=False)


@compile
def line(x: Any, y: Any) -> Any:
    x[:] = x * 3.0 + y


@compile
def quotient(x: Any, y: Any) -> Any:
    x[:] = x / y


@compile
def mixed(x: Any, y: Any) -> Any:
    """Narrow divisions beside wide products."""
    x[:] = x / y
    y[:] = np.exp(x) * np.exp(x * 3.0)


@compile
def total(x: Any) -> Any:
    return x.sum()


@compile
def shares(x: Any) -> Any:
    x[:] = np.exp(x) / 6.0


@compile
def in_order(x: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        total += x[i] * x[i]
    return total


@compile
def much_in_order(x: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        square = x[i] * x[i]
        total += square * square * (square + x[i]) * (square - x[i]) * (x[i] + 1.0)
    return total


@compile
def stored_in_order(x: Any, y: Any) -> Any:
    total = 0.0
    for i in range(x.size):
        y[i] = 2.0 * x[i]
        total += y[i]
    return total


X, Y = np.linspace(1.0, 2.0, 100), np.linspace(2.0, 3.0, 100)


def widths(text: str, operation: str) -> set[int]:
    return {int(n) for n in re.findall(rf" = {operation} (?:reassoc )?<(\d+) x double>", text)}


def test_first_cpus_with_avx512_keep_their_clock() -> None:
    assert not is_wide(LEVELS["x86-64-v4"])
    assert not is_wide(LEVELS["x86-64-v3"])
    assert is_wide(LEVELS["x86-64-v4"] | {"avx512vbmi2"})


@needs_wide
def test_loops_have_vectors_as_wide_as_the_registers() -> None:
    assert 8 in widths(line.inspect("llvm-opt", X, Y), "fmul")


@needs_wide
def test_loops_that_wait_for_divisions_have_not() -> None:
    assert widths(quotient.inspect("llvm-opt", X, Y), "fdiv") == {4}
    text = mixed.inspect("llvm-opt", X, Y)
    assert widths(text, "fdiv") == {4}
    assert 8 in widths(text, "fmul")


@needs_wide
def test_sums_have_as_many_partial_sums_as_with_narrow_vectors() -> None:
    text = total.inspect("llvm-opt", X)
    assert len(re.findall(r"= phi <8 x double>", text)) == 2


@needs_wide
def test_divisions_beside_functions_stay_with_them() -> None:
    assert 8 in widths(shares.inspect("llvm-opt", X), "fdiv")


def test_sums_in_order_of_few_products_are_scalar() -> None:
    assert not widths(in_order.inspect("llvm-opt", X), "fmul")


def test_products_are_vectors_where_there_are_many_or_they_are_stored() -> None:
    assert widths(much_in_order.inspect("llvm-opt", X), "fmul")
    assert widths(stored_in_order.inspect("llvm-opt", X, Y), "fmul")


def test_lanes_of_single_precision() -> None:
    assert narrow_lanes(["  %v.1 = fdiv float %a, %b"]) == 8
    assert narrow_lanes(["  %v.1 = fdiv double %a, %b"]) == 4
    assert narrow_lanes(["  %v.1 = call double @llvm.sqrt.f64(double %a)"]) == 4
    assert narrow_lanes(["  %v.1 = fmul double %a, %b"]) is None
    line = ["  %v.1 = fmul double %a, %b"]
    assert narrow_lanes([*line * 20, "  %v.1 = fdiv double %a, %b"]) is None
    called = ["  %v.1 = fdiv double %a, %b", "  %v.2 = call double @exp(double %v.1)"]
    assert narrow_lanes(called) is None


def late(x: Any, y: Any) -> Any:
    for i in range(1, x.size):
        x[i] = x[i - 1] / y[i] + np.sqrt(y[i])
    for i in range(x.size):
        if y[i] > 1.5:
            x[i] = x[i] // y[i]
    x[:] = np.floor(x / y) % y + np.cbrt(x) / y
    return (x / y).sum()


def test_nothing_is_said_of_loops_that_stay_scalar(capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM prints a remark about each loop of which it was told a width, and makes no vectors."""
    compile(late, grad=True, cache=False).grad(X.copy(), Y.copy(), wrt=("x", "y"))
    assert "remark" not in capfd.readouterr().err


@compile
def scatter(x: Any, counts: Any) -> Any:
    """A few sums beside a loop that stays scalar, whose clock they would lower."""
    for i in range(x.size):
        counts[int(x[i]) % counts.size] += 1.0 - x[i]
    return counts.sum()


@compile
def solve(x: Any, rows: Any) -> Any:
    """Divisions in the inner loop, a sum beside it."""
    for _ in range(3):
        rows[:] = rows / x
    return rows.sum()


@compile
def chain(x: Any) -> Any:
    """Elements that wait for the one before, a sum beside them."""
    for i in range(2, x.size):
        x[i] = 0.5 * (x[i] + x[i - 1]) - x[i - 2]
    return x.sum()


@compile
def delayed(x: Any) -> None:
    """Nothing waits: each element reads old ones."""
    left = x[0]
    for i in range(1, x.size - 1):
        middle = x[i]
        x[i] = 0.5 * (left + x[i + 1]) - middle
        left = middle


@needs_wide
def test_modules_that_wait_for_elements_have_no_wide_vectors() -> None:
    assert "<8 x double>" not in chain.inspect("llvm-opt", X)
    assert 8 in widths(delayed.inspect("llvm-opt", X), "fmul")


@needs_wide
def test_modules_whose_work_stays_narrow_have_no_wide_vectors_at_all() -> None:
    rows = np.ones((4, 100))
    for text in (scatter.inspect("llvm-opt", X, Y), solve.inspect("llvm-opt", X, rows)):
        assert "<8 x double>" not in text
        assert "<4 x double>" in text


@needs_wide
def test_narrow_sums_have_as_many_partial_sums() -> None:
    text = scatter.inspect("llvm-opt", X, Y)
    assert len(re.findall(r"= phi <4 x double>", text)) >= 4


def test_width_pays_where_the_innermost_work_gains() -> None:
    quick, slow = Leaf(2, 5, True), Leaf(2, 6, False)
    assert width_pays([])
    assert width_pays([quick])
    assert not width_pays([quick, slow])
    assert width_pays([quick, Leaf(1, 60, False)])
    assert not width_pays([slow, Leaf(1, 60, True)])
    assert width_pays([quick, Leaf(3, 0, False)])
    assert width_pays([quick, quick, slow])


@needs_wide
def test_loops_of_lanes_have_no_width(capfd: pytest.CaptureFixture[str]) -> None:
    """LLVM prints where it cannot give a loop the width that it should have."""
    f = compile(quotient.__wrapped__, grad=True, cache=False)
    x, y = np.linspace(1.0, 2.0, 40), np.linspace(2.0, 3.0, 40)
    tangents = {"x": np.ones((8, 40)), "y": np.arange(320.0).reshape(8, 40)}
    expected = tangents["x"] / y - tangents["y"] * x / y**2
    f.jvp(x, y, tangents=tangents, batch=8)
    np.testing.assert_allclose(tangents["x"], expected, rtol=1e-12)
    assert capfd.readouterr().err == ""


def relaxed(y: Any, p: float) -> float:
    """A filter: each step divides by what the one before left."""
    total = 0.0
    for k in range(y.size):
        p = p / (p + 1.0)
        total += np.log(p + y[k] * y[k])
    return total


@needs_wide
def test_recurrences_have_no_width(capfd: pytest.CaptureFixture[str]) -> None:
    f = compile(relaxed, grad=True, cache=False)
    y = np.linspace(1.0, 2.0, 40)
    both = [
        f.hvp(y, 0.3, wrt=("y", "p"), direction=(y, 1.0), mode=mode)
        for mode in ("forward-over-reverse", "reverse-over-reverse")
    ]
    for one, other in zip(*both, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
    assert capfd.readouterr().err == ""


def quotients_into(x: Any, y: Any, out: Any) -> Any:
    for i in range(x.size):
        out[0] += x[i] / (1.0 + y[i] * y[i])
    return out[0]


def quotients_of_one(x: Any, y: Any, out: Any) -> Any:
    for i in range(x.size):
        out[0] = out[0] / (1.5 + x[i] * y[i])
    return out[0]


def quotients_below_a_diagonal(x: Any, y: Any, out: Any) -> Any:
    a = np.zeros((5, 5))
    for j in range(5):
        for i in range(j):
            a[j, i] = x[i] / y[j]
    return a.sum() + out[0]


def quotients_of_few(x: Any, y: Any, out: Any) -> Any:
    for i in range(7):
        x[i] = x[i] / y[i]
    for k in range(9):
        x[:k] = x[:k] / y[k]
    return x.sum() + out[0]


def quotients_where_few(x: Any, y: Any, out: Any) -> Any:
    if y.size < 10:
        x[:] = x / y
    if out.size <= 12:
        for i in range(out.size):
            out[i] = out[i] / y[i]
    return x.sum() + out[0]


def test_sums_in_order_get_no_width() -> None:
    """LLVM adds up in any order where it is told how wide to do it."""
    given, expected = np.zeros(1), np.zeros(1)
    compile(quotients_into)(X, Y, given)
    quotients_into(X, Y, expected)
    assert given[0] == expected[0]


@pytest.mark.parametrize(
    "function",
    [
        quotients_into,
        quotients_of_one,
        quotients_below_a_diagonal,
        quotients_of_few,
        quotients_where_few,
    ],
)
def test_llvm_prints_nothing(function: Any, capfd: pytest.CaptureFixture[str]) -> None:
    """As it does where it cannot make vectors as wide as it is told."""
    f: Any = compile(function, grad=True, cache=False)
    f(X.copy(), Y, np.ones(1))
    f.grad(X.copy(), Y, np.ones(1), wrt=("x", "y", "out"))
    assert capfd.readouterr().err == ""
