"""`exp`, `expm1`, `tanh`, `log`, `sin` and `cos` of ours: how exact they are, and numbers at the edges."""

from __future__ import annotations

import ctypes
import math
import re
from functools import cache

import llvmlite.binding as llvm
import numpy as np
import pytest

import mutad
from mutad.compiler.codegen import own_math, vector_math
from mutad.compiler.codegen.llvm_module import assembly, host, optimize_and_emit
from mutad.runtime.target import LEVELS, Target, chosen

Array = np.ndarray
V4 = Target("x86-64-v4", LEVELS["x86-64-v4"])
DRAWN = np.random.default_rng(5)
FIRST = DRAWN.bit_generator.state
FAR = ("sin", "cos")
"""Those that call libm for large numbers."""
EDGES = [
    np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 5e-324, -5e-324, 1e-310, 1e-16, 1e-8, 0.34657359, 0.34657360,
    709.782712893384, 709.782712893385, -708.39641853226, -708.4, -745.13321910194, -745.13321910195,
    999.0, 1000.0, 1001.0, -1001.0, 1e300, -1e300, 18.9, 19.1, 21.9, 22.1, -22.5, 44.5, 1.0, -1.0,
]  # fmt: skip


def text(name: str, lanes: int = own_math.LANES) -> str:
    vector = "double" if lanes == 1 else own_math.vector_of(lanes)
    symbol = own_math.PREFIX + name
    declared = [
        f"declare {own_math.vector_of(max(lanes, 2))} @{f}({p})"
        for f, p in own_math.declared(max(lanes, 2)).items()
    ]
    declared += [f"declare double @{f}(double)" for f in FAR]
    return "\n".join(
        [*declared, own_math.text_of(symbol, name, lanes), "define void @run(ptr %x, ptr %y) {",
         f"  %v = load {vector}, ptr %x, align 8", f"  %r = call {vector} @{symbol}({vector} %v)",
         f"  store {vector} %r, ptr %y, align 8", "  ret void", "}"]
    )  # fmt: skip


@cache
def linked(name: str, lanes: int) -> tuple[object, int]:
    made = optimize_and_emit(text(name, lanes))
    builder = llvm.JITLibraryBuilder().add_object_img(made).export_symbol("run")
    builder.add_current_process()
    library = builder.link(llvm.create_lljit_compiler(), f"own_{name}_{lanes}")
    return library, library["run"]


def of(name: str, x: Array, lanes: int = own_math.LANES) -> Array:
    call = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(linked(name, lanes)[1])
    x = np.resize(x, -(-x.size // 8) * 8)
    y = np.empty_like(x)
    for k in range(0, x.size, lanes):
        call(x.ctypes.data + 8 * k, y.ctypes.data + 8 * k)
    return y


@pytest.fixture(autouse=True)
def drawn_anew() -> None:
    """Each test has its numbers, whichever ran before."""
    DRAWN.bit_generator.state = FIRST


def ulps(name: str, x: Array) -> float:
    """The largest error, in units of the last place."""
    found = of(name, x)
    exact = getattr(np, name)(np.resize(x, found.size).astype(np.longdouble))
    return float((np.abs(found - exact) / np.spacing(np.abs(exact.astype(float)))).max())


needs_registers = pytest.mark.skipif("avx512f" not in host().features, reason="no AVX-512 here")


@needs_registers
@pytest.mark.parametrize("lanes", [1, 2, 4])
@pytest.mark.parametrize("name", own_math.FUNCTIONS)
def test_fewer_lanes_have_the_same_bits(name: str, lanes: int) -> None:
    x = np.concatenate(
        [EDGES, DRAWN.uniform(-30, 30, 4000), np.exp(DRAWN.uniform(-700, 700, 4000))]
    )
    wide, narrow = of(name, x), of(name, x, lanes)
    assert np.array_equal(
        wide.view(np.int64)[~np.isnan(wide)], narrow.view(np.int64)[~np.isnan(wide)]
    )
    assert np.array_equal(np.isnan(wide), np.isnan(narrow))


@needs_registers
@pytest.mark.parametrize(
    ("low", "high"), [(-1, 1), (-40, 40), (-708, 709), (-745, -708), (-1e-6, 1e-6)]
)
def test_exp_is_within_two(low: float, high: float) -> None:
    assert ulps("exp", DRAWN.uniform(low, high, 200_000)) < 2.0


@needs_registers
@pytest.mark.parametrize("size", [1e-300, 1e-9, 1e-3, 0.3, 1.0, 3.0, 25.0])
def test_tanh_is_within_three(size: float) -> None:
    assert ulps("tanh", DRAWN.uniform(-size, size, 40_000)) < 3.0


@needs_registers
@pytest.mark.parametrize(("low", "high"), [(0.5, 2), (0.99, 1.01), (1e-3, 1e3), (1e-12, 0.1)])
def test_log_has_one_unit_in_the_last_place(low: float, high: float) -> None:
    assert ulps("log", DRAWN.uniform(low, high, 40_000)) < 1.0
    assert ulps("log", np.exp(DRAWN.uniform(-744, 709, 40_000))) < 1.0


@needs_registers
@pytest.mark.parametrize("size", [1e-300, 1e-17, 1e-12, 1e-6, 0.01, 0.5, 0.99, 3.0, 50.0])
def test_small_ones_are_exact_relatively(size: float) -> None:
    x = DRAWN.uniform(-size, size, 40_000)
    assert ulps("expm1", x) < 2.75
    assert ulps("expm1", DRAWN.uniform(-40, 709.7, 40_000)) < 2.75


@needs_registers
@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("size", [1e-300, 1e-8, 0.3, 0.8, 2.0, 7.0, 1e3, 1e6, 2e6])
def test_sine_and_cosine_are_within_one_and_six_tenths(name: str, size: float) -> None:
    assert ulps(name, DRAWN.uniform(-size, size, 40_000)) < 1.6


@needs_registers
@pytest.mark.parametrize("name", FAR)
def test_next_to_multiples_of_a_quarter_they_are_exact_relatively(name: str) -> None:
    x = np.round(DRAWN.uniform(-6e5, 6e5, 40_000)) * (np.pi / 2)
    assert ulps(name, np.concatenate([x, np.nextafter(x, 0.0), np.nextafter(x, np.inf)])) < 1.5


@needs_registers
@pytest.mark.parametrize("name", FAR)
@pytest.mark.parametrize("lanes", [1, 2, 4, 8])
def test_large_numbers_do_not_change_those_beside(name: str, lanes: int) -> None:
    x = DRAWN.uniform(-3.0, 3.0, 4000)
    alone, large = of(name, x, lanes), DRAWN.uniform(size=4000) < 0.3
    x[large] *= 1e300
    found = of(name, x, lanes)
    assert np.array_equal(found[~large], alone[~large])
    np.testing.assert_allclose(found, getattr(np, name)(x), rtol=4e-16)


@needs_registers
@pytest.mark.parametrize("name", own_math.FUNCTIONS)
def test_edges(name: str) -> None:
    x = np.array(EDGES)
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(x)
    found = of(name, x)[: x.size]
    special = ~np.isfinite(x) | (x == 0)
    special |= (x < 0) if name == "log" else (np.abs(x) < 1e-300)
    if name not in FAR:
        special |= (x > 709.8) | (x < -745.2)
    np.testing.assert_array_equal(found[special], expected[special])
    np.testing.assert_array_equal(np.signbit(found[x == 0]), np.signbit(expected[x == 0]))
    np.testing.assert_allclose(found, expected, rtol=5e-16, atol=5e-324)


def test_narrower_registers_have_versions_of_the_c_library() -> None:
    for features in (LEVELS["x86-64-v2"], LEVELS["x86-64-v3"]):
        assert not own_math.version("exp", features)
        assert not any(
            s.startswith(own_math.PREFIX) for s, _ in vector_math.variants("exp", features)
        )
    assert not own_math.version("expf", LEVELS["x86-64-v4"])
    assert not own_math.version("atan", LEVELS["x86-64-v4"])


@pytest.mark.parametrize("name", own_math.FUNCTIONS)
def test_no_calls_and_no_stack(name: str) -> None:
    """Code for AVX-512 that any machine can look at."""
    code = assembly(text(name), target=V4)
    body = code[code.index(own_math.PREFIX + name + ":") :]
    body = body[: body.index("retq")]
    instruction = {"log": "vgetmantpd", "sin": "vfmadd", "cos": "vfmadd"}.get(name, "vscalefpd")
    assert instruction in body
    before = body[: body.index("kortest")] if name in FAR else body
    assert not re.search(r"call|rsp", before)


@pytest.mark.skipif("avx512f" not in (chosen() or host()).features, reason="no AVX-512 here")
@pytest.mark.skipif(not vector_math.variants("exp", host().features), reason="no libmvec here")
def test_programs_take_them() -> None:
    def waves(x):
        return (np.exp(x) * np.tanh(x) * np.log(x) * np.expm1(x) * np.sin(x) * np.cos(x)).sum()

    function, x = mutad.compile(waves, grad=True), np.linspace(0.2, 2, 77)
    optimized = function.inspect("llvm-opt", x)
    for name in own_math.FUNCTIONS:
        assert f"@{own_math.PREFIX}{name}(<8 x double> %" in optimized
    np.testing.assert_allclose(function(x), waves(x), rtol=1e-14)
    mutad.check_gradient(function, x)


def chain(x: np.ndarray, state: float) -> float:
    for i in range(x.size):
        state = (
            math.sin(state) + math.cos(x[i] * state) + math.tanh(state) * math.expm1(-abs(state))
        )
    return state


def roots_apart(x: float) -> float:
    while abs(math.sin(x)) > 1e-12:
        x -= math.tan(x)
    return x


def once(x: float) -> float:
    return math.sin(x)


@pytest.mark.skipif("avx512vl" not in (chosen() or host()).features, reason="code without AVX-512")
def test_loops_that_stay_scalar_inline_those_that_are_faster_alone() -> None:
    x = DRAWN.uniform(-3.0, 3.0, 200)
    f = mutad.compile(chain, cache=False)
    text = f.inspect("llvm-opt", x, 0.5)
    assert not re.search(r"call .*@(tanh|expm1|mutad_\w+_alone)\(", text)
    assert "_ZGV" not in text  # nothing that no loop calls
    assert f(x, 0.5) == pytest.approx(chain(x, 0.5), rel=1e-9)
    assert mutad.compile(roots_apart, cache=False)(3.0) == pytest.approx(math.pi, rel=1e-15)


def test_their_large_and_special_numbers() -> None:
    f = mutad.compile(chain, cache=False)
    for x in ([1e300], [1e18, -(2.0**21)], [float("nan")], [0.0, -0.0, 5e-324]):
        np.testing.assert_allclose(f(np.array(x), 0.5), chain(np.array(x), 0.5), rtol=1e-12)
    with pytest.raises(ValueError, match=r"input|error") as python:
        chain(np.array([np.inf]), 0.5)
    with pytest.raises(ValueError, match=re.escape(str(python.value))):
        f(np.array([np.inf]), 0.5)


def test_a_call_outside_of_loops_is_libms() -> None:
    f = mutad.compile(once, cache=False)
    assert "@sin(double" in f.inspect("llvm", 0.3)
    assert f(0.3) == math.sin(0.3)
