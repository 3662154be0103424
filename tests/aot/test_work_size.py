"""The work area that a kernel asks for is what it takes, to the byte, and what `explain` counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gradient_oracle import GradientCase
from sweep_programs import sweep_program
from work_area import AreaKernel, Counting, empty_context

from benchmarks.memory_programs import PROGRAMS
from mutad.compiler import codegen
from mutad.compiler.codegen.kernel_memory import KernelMemory

MODES = ("primal", "gradient", "tangent", "hvp", "product")
LINE = 64


def energy(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u**2).sum()


def two_layers(x, w):
    h = np.tanh(x @ w)
    return (h * h).sum()


def transposed_products(x, w):
    return ((x.T @ w[::2]) ** 2).sum() + (x[::-1] @ x.T).sum()


def strided_product(x, w):
    y = np.zeros((2 * x.shape[0], 2 * w.shape[1]))
    np.matmul(x, w, out=y[::2, ::2])
    return (y * y).sum()


def shorter_and_shorter(x):
    s = 0.0
    for i in range(x.size):
        y = np.sin(x[i:])
        s += (y * y[::-1]).sum() * x[i]
    return s


def triangle(x):
    n = x.size
    for i in range(n):
        for j in range(i):
            x[j] = x[j] * x[i]
    return x.sum()


def booleans(x, steps):
    for _ in range(steps):
        x[...] = np.where(x > 0.5, x * x, x)
    return x.sum()


def returned(x, n):
    y = np.zeros((n, x.size))
    for i in range(n):
        y[i] = x**i
    return y


def halves(x):
    return x[: x.size // 2] * 2, np.float32(1) * x.astype(np.float32)


def known_branch(x, wide):
    if wide:
        y = np.outer(x, x)
        return (y * y).sum()
    return (x * x).sum()


def single(x, steps):
    for _ in range(steps):
        x[1:] = np.float32(0.5) * x[1:] * x[:-1]
    return x.sum()


def points(x, w):
    total = 0.0
    t = np.zeros(w.size)
    for i in range(x.shape[1]):
        s = 0.0
        for e in range(w.size):
            t[e] = x[e, i] - w[e]
        for e in range(w.size):
            s += np.exp(t[e] * w[e])
        total += s * s
    return total


CASES: list[tuple[Callable[..., Any], tuple[tuple[Any, ...], ...]]] = [
    (energy, ((np.ones(20), 0.1, 3), (np.ones(2), 0.1, 3), (np.ones(1000), 0.1, 0))),
    (two_layers, ((np.ones((40, 30)), np.full((30, 50), 0.1)), (np.ones((3, 2)), np.ones((2, 4))))),
    (transposed_products, ((np.ones((9, 9)), np.ones((17, 8))), (np.ones((1, 1)), np.ones((2, 9))))),
    (strided_product, ((np.ones((9, 20)), np.ones((20, 11))), (np.ones((1, 20)), np.ones((20, 11))))),
    (shorter_and_shorter, ((np.linspace(0, 1, 37),), (np.ones(1),), (np.ones(0),))),
    (triangle, ((np.linspace(0.9, 1, 23),), (np.ones(2),))),
    (booleans, ((np.linspace(0, 1, 77), 5), (np.ones(0), 5))),
    (known_branch, ((np.ones(9), True), (np.ones(9), False))),
    (points, ((np.ones((3, 130)), np.ones(3)), (np.ones((3, 5)), np.ones(3)), (np.ones((0, 5)), np.ones(0)))),
    (single, ((np.ones(33, np.float32), 3), (np.ones(1, np.float32), 3))),
]  # fmt: skip


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("function", "rows"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_the_size_is_what_a_call_takes(function, rows, mode) -> None:
    kernel = AreaKernel(function, rows[0], mode)
    assert (kernel.found.unknown, kernel.found.bound) == (None, None)
    for arguments in rows:
        called = kernel(*arguments)
        assert (called.status, called.used) == (0, called.size)
        if called.size:
            assert kernel(*arguments, room=called.size - LINE).status == 3


@pytest.mark.parametrize("mode", ["gradient", "tangent", "hvp"])
@pytest.mark.parametrize(("function", "rows"), CASES, ids=lambda c: getattr(c, "__name__", ""))
def test_the_size_is_what_explain_counts(function, rows, mode) -> None:
    if function in NOT_EXPLAINED:
        return
    kernel = AreaKernel(function, rows[0], mode)
    for arguments in rows:
        agrees_with_explain(kernel, arguments)


NOT_EXPLAINED = (
    transposed_products, strided_product,  # BLAS packs what it cannot walk: no array of the program
)  # fmt: skip


def agrees_with_explain(kernel: AreaKernel, arguments: tuple[Any, ...]) -> None:
    """Saved, shadow and temporary bytes without the caller's, each array rounded up to a line."""
    called, counted = kernel(*arguments), kernel.explained(*arguments)
    assert called.size is not None
    assert counted <= called.size <= counted + LINE * kernel.allocations


@pytest.mark.parametrize("function", [returned, halves])
def test_results_lie_in_the_area(function) -> None:
    arguments = (np.ones(13), 4) if function is returned else (np.ones(13),)
    called = AreaKernel(function, arguments, "primal")(*arguments)
    assert (called.status, called.used) == (0, called.size)
    assert called.size == {"returned": 448, "halves": 128}[function.__name__]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.function.__name__)
@pytest.mark.parametrize("mode", ["gradient", "hvp"])
def test_programs_of_the_memory_benchmark(program, mode) -> None:
    arguments = program.make()
    kernel = AreaKernel(program.function, arguments, mode, wrt=program.wrt)
    if kernel.found.function is None:
        assert program.function.__name__ in DATA_DECIDES, kernel.found.unknown
        return
    called = kernel(*arguments)
    assert (called.status, called.used, kernel.found.bound) == (0, called.size, None)
    agrees_with_explain(kernel, arguments)


DATA_DECIDES = {"adaptive"}
"""Programs of the benchmark that loop until a condition holds."""


def test_a_product_of_arguments_with_any_strides_takes_at_most_its_copies() -> None:
    square = np.ones((18, 18))
    kernel = AreaKernel(two_layers, (square[::2, ::2], np.ones((9, 9))), "primal")
    assert kernel.found.bound is not None
    assert kernel.found.bound.reason == "the strides of an argument"
    for first, copied in ((square[::2, ::2], True), (square[:9, :9], False)):
        called = kernel(first, np.ones((9, 9)))
        assert called.size is not None
        assert called.status == 0
        assert called.size - called.used == (0 if copied else 8 * 81 + 56)


def grows_with_the_data(x):
    y = x[0]
    while y < 2.0:
        y = y + x[0] * y * y
    return y


def appended(x):
    found = [x[0]]
    while found[-1] < 2.0:
        found.append(found[-1] * 1.5)
    return sum(found)


def tree(x, n):
    if n == 0:
        return x[0] * x[0]
    return tree(x[1:], n - 1) * x[0]


@pytest.mark.parametrize(
    ("function", "arguments", "reason", "line"),
    [
        (grows_with_the_data, (np.ones(3),), "how often a loop runs that may end early", 2),
        (appended, (np.ones(3),), "a list, or an array that grows", 1),
        (tree, (np.ones(3), 2), "how deep a recursive function goes", 0),
    ],
)
def test_what_data_decides_says_so(function, arguments, reason, line) -> None:
    found = AreaKernel(function, arguments, "gradient").found
    assert found.function is None
    assert found.unknown is not None
    first = function.__code__.co_firstlineno
    assert (found.unknown.reason, found.unknown.line - first) == (reason, line)


def test_numbers_that_64_bits_do_not_hold_have_no_size() -> None:
    kernel = AreaKernel(energy, (np.ones(3), 0.1, 1), "gradient", wrt="k")
    called = kernel(np.ones(3), 0.1, 2**62, room=0)
    assert (called.status, called.size) == (3, None)


def test_every_request_for_memory_is_said() -> None:
    """The sizes are read off the IR and off `scratch`: nothing else of the code generator may allocate."""
    folder = Path(codegen.__file__).parent
    asking = {
        path.stem
        for path in folder.glob("*.py")
        if re.search(r"mutad_(alloc|alloc_result|reserve|tape_push)\b", path.read_text())
    }
    support = {name for name in asking if name.startswith("support")}
    assert asking - support == {
        "memory_to_llvm",  # array.alloc, ad.tape, ad.push
        "packed_matrices", "products_of_vectors",  # scratch.SCRATCH
        "arena",  # recursive functions
        "steps_to_llvm", "parallel_loops",  # budgets and threads, which libraries do not have
    }  # fmt: skip


def growing(x):
    found = [x[0]]
    while found[-1] < 4.0:
        found.append(found[-1] * x[1])
    return found[-1] * found[-2]


def summed_tree(x, low, high):
    if high - low == 1:
        return x[low] * np.ones(2)
    middle = (low + high) // 2
    left, right = summed_tree(x, low, middle), summed_tree(x, middle, high)
    return left * right + left


def root(x):
    return summed_tree(x, 0, x.size).sum()


ANYWHERE = [
    (energy, (np.linspace(0, 1, 20), 0.1, 5)),
    (transposed_products, (np.ones((9, 9)), np.ones((17, 8)))),
    (shorter_and_shorter, (np.linspace(0, 1, 37),)),
    (grows_with_the_data, (np.full(3, 0.1),)),
    (growing, (np.array([1.0, 1.1]),)),
    (root, (np.linspace(1, 2, 7),)),
]


@pytest.mark.parametrize("mode", ["primal", "gradient", "hvp"])
@pytest.mark.parametrize(
    ("function", "arguments"), ANYWHERE, ids=lambda c: getattr(c, "__name__", "")
)
def test_memory_of_any_kind_holds_the_same_numbers(function, arguments, mode) -> None:
    host = {kind for kind in KernelMemory if not kind.launches}
    kernels = {kind: AreaKernel(function, arguments, mode, source=kind) for kind in host}
    expected = kernels[KernelMemory.SYSTEM].run(arguments, empty_context())
    counting = Counting()
    found = [kernels[KernelMemory.ALLOCATOR].run(arguments, counting.context())]
    assert not counting.live
    area = kernels[KernelMemory.AREA]
    if area.found.function is not None:
        area(*arguments)
        found.append(area.ran)
    for ran in found:
        assert (ran.status, ran.numbers) == (0, expected.numbers)
        for mine, theirs in zip(ran.arrays, expected.arrays, strict=True):
            np.testing.assert_array_equal(mine, theirs)


@pytest.mark.parametrize("seed", range(100, 106))
def test_generated_sweeps(seed: int) -> None:
    program = sweep_program(seed)
    case = GradientCase(program.function(), program.arguments)
    arguments, mode = case.arguments(), ("gradient", "hvp", "tangent")[seed % 3]
    kernel = AreaKernel(case.function, arguments, mode, case.active())
    assert (kernel.found.unknown, kernel.found.bound) == (None, None)
    called = kernel(*arguments)
    assert (called.status, called.used) == (0, called.size)
