"""Every case of the library, compiled, against NumPy: several cases a function, several shapes."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from generated import function_of
from scipy import linalg, special

import mutad
from mutad.compiler.frontend.library import CASES, MAKERS

Arguments = tuple[tuple[str, str], ...]
SHAPES = ((4, 3), (5, 5), (1, 2), (1, 1), (0, 3), (7, 8))
TIED = (4, 3)


def groups(size: int = 12) -> Iterator[tuple[Arguments, tuple[str, ...]]]:
    """Cases of the same arguments, a few at a time: parameters, and the expressions over them."""
    by_arguments: dict[Arguments, list[str]] = {}
    for case in CASES:
        by_arguments.setdefault(tuple(case.arguments.items()), []).append(case.expression)
    for arguments, expressions in by_arguments.items():
        for k in range(0, len(expressions), size):
            yield arguments, tuple(expressions[k : k + size])


def function_of_cases(arguments: Arguments, expressions: tuple[str, ...]) -> Callable[..., Any]:
    """A function that returns the tuple of the expressions."""
    names = ", ".join(name for name, _ in arguments)
    source = f"def cases({names}):\n    return (\n" + "".join(
        f"        ({text}),\n" for text in expressions
    )
    source += "    )\n"
    return function_of(source, "cases", {"np": np, "linalg": linalg, "special": special})


def arguments_for(arguments: Arguments, shape: tuple[int, ...]) -> list[Any]:
    """Those of one shape are multiples of a half: many are equal, and equal to what a case compares with."""
    rng = np.random.default_rng(11)
    made = [MAKERS[kind](rng, shape) for _, kind in arguments]
    return [np.round(2 * x) / 2 if shape == TIED and is_float(x) else x for x in made]


def is_float(x: Any) -> bool:
    return isinstance(x, np.ndarray) and x.dtype == np.float64


def applicable(
    arguments: Arguments, expressions: tuple[str, ...], shape: tuple[int, ...]
) -> tuple[str, ...]:
    """The expressions that NumPy evaluates for this shape (no extreme of an empty array)."""
    found: list[str] = []
    for text in expressions:
        try:
            function_of_cases(arguments, (text,))(*arguments_for(arguments, shape))
        except (ValueError, IndexError):
            continue
        found.append(text)
    return tuple(found)


@pytest.mark.parametrize("group", list(groups()), ids=lambda g: f"{g[1][0]} and {len(g[1])}")
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_cases_have_numpys_values_and_dtypes(group: tuple[Arguments, tuple[str, ...]]) -> None:
    arguments, expressions = group
    compiled: dict[tuple[str, ...], Any] = {}
    for shape in SHAPES:
        chosen = applicable(arguments, expressions, shape)
        if not chosen:
            continue
        function = function_of_cases(arguments, chosen)
        fast = compiled.setdefault(chosen, mutad.compile(function))
        want = function(*arguments_for(arguments, shape))
        got = fast(*arguments_for(arguments, shape))
        for text, a, b in zip(chosen, got, want, strict=True):
            assert isinstance(a, tuple) == isinstance(b, tuple), text
            for one, other in zip(parts(a), parts(b), strict=True):
                assert type(one) is type(other), text
                assert np.asarray(one).dtype == np.asarray(other).dtype, text
                assert np.shape(one) == np.shape(other), text
                assert close(np.asarray(one), np.asarray(other)), f"{text} of {shape}: {a}, not {b}"


def parts(result: Any) -> tuple[Any, ...]:
    """The numbers and arrays of a result, in order."""
    if not isinstance(result, tuple):
        return (result,)
    return tuple(part for item in result for part in parts(item))


def close(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> bool:
    """Equal but for libm (4 ulp) and the order of sums."""
    if b.dtype.kind != "f":
        return bool((a == b).all())
    scale = float(np.max(np.abs(b), initial=0.0, where=np.isfinite(b)))
    cancelled = 4e-16 if b.dtype == np.float64 else 0.0  # of terms of about 1
    return np.allclose(a, b, rtol=4 * 2.3e-16, atol=max(scale * 1e-14, cancelled), equal_nan=True)


def test_numbers_at_the_edge_of_their_dtype_are_numpys() -> None:
    def results(x, y, ks, total):
        return (
            np.median(x), np.median(x, axis=0), np.isclose(x, y), np.isclose(x, x - x), np.allclose(x, y),
            x ** x[::-1], np.power(ks, 3), np.intersect1d(ks, [4, 3, 3]), np.add.outer(ks, 1),
            np.multiply.outer(ks, 0.5), np.nan_to_num(x), np.nan_to_num(x[0, 0]), np.diff(x), np.ediff1d(x),
            np.sum(x, axis=0, out=total).copy(), np.mean(x, axis=0, out=total).copy(), np.nanmean(x, axis=0),
            np.diff(x, n=0, append=0.5), np.select([x > 1], [x], y),
        )  # fmt: skip

    compiled = mutad.compile(results)
    rng = np.random.default_rng(3)
    for dtype in (np.int8, np.uint8, np.uint64):
        i = np.iinfo(dtype)
        x, y = (rng.integers(i.min, i.max, (4, 3), dtype, endpoint=True) for _ in range(2))
        x[0], ks = i.max, np.arange(5).astype(dtype)
        x = np.maximum(x, 0)  # no negative powers
        got, want = (f(x, y, ks, np.zeros(3)) for f in (compiled, results))
        for k, (a, b) in enumerate(zip(got, want, strict=True)):
            assert (type(a), np.asarray(a).dtype) == (type(b), np.asarray(b).dtype), (k, dtype)
            np.testing.assert_array_equal(a, b, f"{k} of {dtype}")


def test_sums_are_computed_in_the_dtype_of_their_output() -> None:
    def results(x, y):
        return (
            np.sum(x, axis=0, out=y).copy(),
            np.mean(x, axis=0, out=y).copy(),
            np.prod(x, axis=0, out=y),
        )

    x = (np.ones((1000, 2)) + 1e-3).astype(np.float32)
    for a, b in zip(mutad.compile(results)(x, np.zeros(2)), results(x, np.zeros(2)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_dtypes_of_choices_are_those_of_all() -> None:
    def results(x, y):
        total = np.zeros(3, np.result_type(x, y))
        return (
            np.select([x > 1, x < 0], [x, 1], 0.5),
            np.select([x > 1], [x], y),
            np.around(x),
            total,
        )

    x, y = np.array([0.5, 2.0, -1.0], np.float32), np.array([1.0, 2.0, 3.0])
    for a, b in zip(mutad.compile(results)(x, y), results(x, y), strict=True):
        assert (type(a), np.asarray(a).dtype) == (type(b), np.asarray(b).dtype)
        np.testing.assert_array_equal(a, b)


def test_bools_are_numbers_where_numpy_takes_them_for_some() -> None:
    def results(x, y):
        return (
            np.median(x), np.isclose(x, y), np.nan_to_num(x), np.concatenate((x, x[0], x[0, 0]), axis=None)
        )  # fmt: skip

    x, y = np.array([[True, True], [True, False]]), np.array([True, False])
    for a, b in zip(mutad.compile(results)(x, y), results(x, y), strict=True):
        assert (type(a), a.dtype) == (type(b), b.dtype)
        np.testing.assert_array_equal(a, b)


def test_dtypes_are_numpys() -> None:
    def results(x, y, c, s):
        return (
            np.var(x), x.std(ddof=1), np.nansum(x), np.nan_to_num(x), np.round(x), np.round(s),
            np.linspace(s, 2, 4), np.linspace(s, s + s, 4), np.arange(s), np.arange(s, s + s),
            np.polyval([1, 2, 3], x), np.polyval([1.0, 2.5], x), np.polyval(x, s), np.polyval(c, 2),
            np.nan_to_num(s), np.nan_to_num(c, nan=np.inf), *np.meshgrid(x, y),
            np.linalg.det(np.outer(x, y)[:2, :2]),
        )  # fmt: skip

    compiled = mutad.compile(results)
    c = np.array([1.5, np.nan, -np.inf])
    for dtype in (np.float64, np.float32, np.int64, np.int32):
        x, y = np.array([2, 1, 5], dtype), np.array([3, 1], dtype)
        got, want = compiled(x, y, c, x[0]), results(x, y, c, x[0])
        for a, b in zip(got, want, strict=True):
            assert (type(a), a.dtype) == (type(b), b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-6)


def test_histograms_have_numpys_edges() -> None:
    def own(x, bins, w):
        return *np.histogram(x, bins), *np.histogram(x, bins, weights=w)

    def between(x, bins, low, high):
        return np.histogram(x, bins, (low, high))

    compiled = {function: mutad.compile(function, opt=1) for function in (own, between)}
    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.uint8):
        for size, bins in ((1, 3), (7, 1), (150, 9), (200, 40)):
            near = 9 * rng.choice(np.linspace(0.0, 1.0, bins + 1), size)
            for x in (rng.gamma(2.0, 3.0, size).astype(dtype), near.astype(dtype)):
                calls = [(own, (x, bins, rng.normal(size=size))), (between, (x, bins, 0, 5))]
                calls.append((between, (x, bins, 0.1, np.float32(7.3))))
                for function, arguments in calls:
                    got, want = compiled[function](*arguments), function(*arguments)
                    for a, b in zip(got, want, strict=True):
                        assert a.dtype == b.dtype
                        np.testing.assert_allclose(a, b, rtol=1e-13 if a.dtype == float else 0.0)
    for low, high in ((0.0, np.inf), (np.nan, 1.0), (2.0, 1.0)):
        with pytest.raises(ValueError, match=" ") as theirs:
            between(np.ones(3), 2, low, high)
        with pytest.raises(ValueError, match=re.escape(str(theirs.value))):
            compiled[between](np.ones(3), 2, low, high)


def test_medians_and_quantiles_of_any_order() -> None:
    def results(x, q):
        return np.median(x), np.quantile(x, q), np.median(x.reshape(1, -1), axis=1)

    compiled, rng = mutad.compile(results, opt=1), np.random.default_rng(0)
    for n in (1, 2, 3, 20, 21, 3000):
        x = rng.normal(size=n)
        ends = np.sort(x)
        for y in (
            x,
            ends,
            ends[::-1].copy(),
            np.round(x),
            np.append(ends, ends[::-1]),
            np.append(x, np.nan),
        ):
            for q in (0.0, 0.37, 1.0):
                for a, b in zip(compiled(y, q), results(y, q), strict=True):
                    np.testing.assert_allclose(a, b, rtol=1e-14)


def test_partitions_raise_outside_of_an_axis() -> None:
    def parts(x, kth):
        return np.partition(x, kth), np.argpartition(x, kth, axis=0)

    compiled = mutad.compile(parts, opt=1)
    assert compiled(np.array([2.0, 1.0]), -1)[0].tolist() == [1.0, 2.0]
    for kth in (2, -3):
        with pytest.raises(ValueError, match="out of bounds") as theirs:
            parts(np.ones(2), kth)
        with pytest.raises(ValueError, match=re.escape(str(theirs.value))):
            compiled(np.ones(2), kth)


def test_copyto_casts_within_a_kind() -> None:
    def copied(x, y):
        np.copyto(x, y)
        return x

    compiled = mutad.compile(copied)
    small = np.zeros(2, np.float32), np.zeros(2, np.int8)
    for x, y in zip(small, (np.full(2, 0.1), np.array([3, 200], np.int64)), strict=True):
        np.testing.assert_array_equal(compiled(x.copy(), y), copied(x, y))
    assert compiled(np.zeros(2, np.uint8), 3).tolist() == [3, 3]
    for x, y in (
        (small[1], np.ones(2)),
        (small[1], 2.5),
        (np.zeros(2, np.uint8), np.ones(2, np.int16)),
    ):
        with pytest.raises(TypeError):
            copied(x.copy(), y)
        with pytest.raises(mutad.CompileError, match="same kind"):
            compiled(x.copy(), y)
