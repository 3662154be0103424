"""Functions of libm that have the same bits in every loop."""

from __future__ import annotations

import ctypes
import re
from dataclasses import dataclass, field

import llvmlite.binding as llvm
import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import one_version, vector_math
from mutad.compiler.codegen.llvm_module import host, optimize_and_emit
from mutad.runtime.engine import load_vector_math
from mutad.runtime.target import chosen, runnable

Array = np.ndarray

FUNCTIONS = (*vector_math.UNARY, *vector_math.BINARY)


@dataclass
class Texts:
    """What `one_version` asks of a kernel's state."""

    functions: dict[str, str]
    declarations: dict[str, str]
    kept_alive: list[str]
    features: frozenset[str]
    in_vectors: bool = False
    shares: bool = False
    shared: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def declare(self, symbol: str, line: str, origin: str) -> None:
        assert origin == ("libmvec" if symbol.startswith("_ZGV") else "libm")
        self.declarations[symbol] = line

    def declare_shared(self, symbol: str, line: str, kind: str, name: str) -> None:
        self.declarations[symbol] = line
        self.shared.add((kind, name))

    def intrinsic(self, name: str, result: str, arguments: str) -> None:
        self.declarations[name] = f"declare {result} @{name}({arguments})"


def elementwise(name: str, callee: str, lanes: int, arity: int) -> str:
    """A function of addresses that calls one of vectors."""
    type_ = "double" if lanes == 1 else f"<{lanes} x double>"
    loads = [f"  %v{k} = load {type_}, ptr %p{k}, align 8" for k in range(arity)]
    passed = ", ".join(f"{type_} %v{k}" for k in range(arity))
    parameters = ", ".join(f"ptr %p{k}" for k in range(arity))
    return "\n".join(
        [f"define void @{name}(ptr %out, {parameters}) {{", *loads,
         f"  %r = call {type_} @{callee}({passed})",
         f"  store {type_} %r, ptr %out, align 8", "  ret void", "}"]
    )  # fmt: skip


@pytest.mark.skipif(not vector_math.variants("exp", host().features), reason="no libmvec here")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_every_width_has_the_same_bits(function: str) -> None:
    found = vector_math.variants(function, host().features)
    texts = Texts({}, {}, [], host().features)
    alone, versions = all_of(texts, function, found)
    arity = 2 if function in vector_math.BINARY else 1
    compare(function, texts, [(alone, 1), *versions], arity)


@pytest.mark.skipif(not vector_math.variants("exp", host().features), reason="no libmvec here")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_libraries_have_the_same_bits(function: str) -> None:
    """Modules declare what the library of a function defines, and call it as it wants to be called."""
    found = vector_math.variants(function, host().features)
    library, kernel = (Texts({}, {}, [], host().features) for _ in range(2))
    kernel.shares = True
    names = one_version.library(library, function)  # pyright: ignore[reportArgumentType]
    alone, versions = all_of(kernel, function, found)
    assert kernel.shared == {("function", function)}
    assert sorted(names) == sorted(
        s for s, line in kernel.declarations.items() if "nonlazy" in line
    )
    for name in names:
        assert kernel.declarations[name].split(f"@{name}")[0].removeprefix("declare ") in (
            library.functions[name].removeprefix("define internal ")
        )
    arity = 2 if function in vector_math.BINARY else 1
    compare(function, library, [(alone, 1), *versions], arity)


def all_of(
    texts: Texts, function: str, found: one_version.Versions
) -> tuple[str, one_version.Versions]:
    """What is called for one number, and for several."""
    return one_version.calls(texts, function, "double", found, side_by_side=True)  # pyright: ignore


def compare(function: str, texts: Texts, callees: list[tuple[str, int]], arity: int) -> None:
    """The versions of so many lanes are the same function."""
    text = "\n".join(
        [*texts.declarations.values(), *texts.functions.values()]
        + [elementwise(f"run_{lanes}", callee, lanes, arity) for callee, lanes in callees]
    )
    widest = callees[-1][1]
    rng = np.random.default_rng(1)
    x = rng.normal(size=64 * widest) * 3 + (8 if function == "acosh" else 0)
    x[1::9] = np.resize([-np.inf, np.inf, np.nan, -0.0, 0.0, 1e300, 5e-324, 1.0], len(x[1::9]))
    y = rng.normal(size=x.size)
    results = run(text, callees, (x, y)[:arity])
    for lanes, result in results.items():
        np.testing.assert_array_equal(result.view(np.int64), results[1].view(np.int64), str(lanes))


def run(
    text: str, callees: list[tuple[str, int]], arguments: tuple[Array, ...]
) -> dict[int, Array]:
    load_vector_math()
    made = optimize_and_emit(text)
    linker = llvm.create_lljit_compiler()
    library = llvm.JITLibraryBuilder().add_object_img(made).add_current_process()
    for _, lanes in callees:
        library.export_symbol(f"run_{lanes}")
    linked = library.link(linker, "versions")
    results: dict[int, Array] = {}
    for _, lanes in callees:
        pointers = [ctypes.c_void_p] * (1 + len(arguments))
        call = ctypes.CFUNCTYPE(None, *pointers)(linked[f"run_{lanes}"])
        results[lanes] = np.empty_like(arguments[0])
        for k in range(0, arguments[0].size, lanes):
            call(*(a.ctypes.data + 8 * k for a in (results[lanes], *arguments)))
    return results


def bounded(x: Array, bound: float) -> float:
    """The reverse sweep asks again on which side of the bound the exponential was."""
    y = np.exp(x)
    total = np.where(y > bound, bound * y - bound, y * y).sum()
    return float(total * total)


@pytest.mark.skipif(not vector_math.variants("exp", host().features), reason="no libmvec here")
def test_what_both_sweeps_compare_is_vector_code() -> None:
    function, x = mutad.compile(bounded, grad=True), np.linspace(-1, 1, 50)
    features = (chosen() or host()).features
    optimized = function.inspect("llvm-opt", x, 0.7, wrt="x")
    kernel = optimized[optimized.index("@kernel(") :]
    kernel = kernel[: kernel.index("\n}")]
    vectors = "|".join(symbol for symbol, _ in vector_math.variants("exp", features))
    assert len(re.findall(rf"call <\d+ x double> @({vectors})(_\d+)?\(", kernel)) >= 2
    assert not re.search(r"@exp\(|llvm\.exp", optimized)
    mutad.check_gradient(function, x, 0.7)


def test_without_vector_versions_it_is_the_scalar_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_math, "features", lambda target: frozenset())
    function = mutad.compile(bounded, grad=True, cache=False)
    assert "@mutad_exp(" not in function.inspect("llvm", np.ones(3), 0.7, wrt="x")


def test_edges_do_not_move() -> None:
    """At the bound itself the branch is the one that was taken, in vectors and behind them."""
    x = np.full(37, 0.3)
    function = mutad.compile(bounded, grad=True)
    for step in range(-8, 9):
        bound = float(np.exp(0.3)) * (1 + step * 2.0**-52)
        slopes = function.grad(x, bound)
        assert len(set(slopes)) == 1


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    "function",
    [
        lambda x: (1.5**x).sum(),
        lambda x: (x**2.7).sum(),
        lambda x: np.arctan2(x, 0.5).sum(),
        lambda x: (x * np.sin(2.0)).sum() + np.log(1.5),
    ],
)
def test_an_argument_that_is_a_constant(monkeypatch, function, cpu):
    """LLVM would drop the parameter of a function that all calls hand the same number, and then abort."""
    if cpu not in runnable():
        pytest.skip(f"no {cpu}")
    monkeypatch.setenv("MUTAD_TARGET_CPU", cpu)
    x = np.linspace(0.5, 1.5, 37)
    found = mutad.compile(function, grad=True, cache=False).grad(x)
    step = 1e-5
    expected = [(function(x + step * e) - function(x - step * e)) / (2 * step) for e in np.eye(37)]
    np.testing.assert_allclose(found, expected, rtol=1e-7)
