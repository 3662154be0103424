"""`vjp`: the primal runs once; `back` runs as often as wanted, whatever becomes of the arguments."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import Active, Const, Duplicated
from mutad.runtime.measure import measure_vjp

N = 1 << 15


def made(function: Any) -> Any:
    return mutad.compile(function, grad=True, cache=False)


def squares(x):
    return (x**2).sum()


def smooth(u, steps):
    v = np.empty_like(u)
    for _ in range(steps):
        v[1:-1] = u[1:-1] + 0.5 * (u[:-2] - u[2:])
        v[0] = u[0]
        v[-1] = u[-1]
        u, v = v, u
    return u.sum()


def steepen(u, steps):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return u.sum()


def relaxed(u, steps):
    v = np.empty_like(u)
    for _ in range(steps):
        v[1:-1] = u[1:-1] * u[:-2] + u[2:]
        v[0] = u[0]
        v[-1] = u[-1]
        u, v = v, u
    return u.sum()


def gathered(x, index):
    total = 0.0
    for i in range(index.size):
        total += 3.0 * x[index[i]]
    return total


def own(x):
    y = np.sin(x)
    for i in range(1, x.size):
        y[i] *= y[i - 1]
    return y[-1]


def returned(x, k):
    return np.exp(k * x), x * k


def announced(x):
    print("primal", x[0])
    x *= 2.0
    return (x * x).sum()


def until_large(x):
    y = 1.0
    while y < 2.0:
        y = y + x[0] * y * y
    return y


def fails_late(u):
    for i in range(u.size + 1):
        u[i] = u[i] * u[i]
    return u.sum()


# How much is saved.


PLANS = [
    (smooth, (np.ones(N), 4), 0, "0"),
    (squares, (np.ones(N),), 8 * N, "8*x.shape[0]"),
    (squares, (np.ones(N, np.float32),), 4 * N, "4*x.shape[0]"),
    (steepen, (np.ones(N), 4), None, None),
    (gathered, (np.ones(8), np.arange(N) % 8), 8 * N, "8*index.shape[0]"),
]


@pytest.mark.parametrize(("function", "arguments", "size", "formula"), PLANS)
def test_the_split_plan_saves_what_the_caller_could_change(
    function, arguments, size, formula
) -> None:
    f = made(function)
    plan = f.explain(*arguments, plan="split")
    if size is None:
        size, formula = (getattr(f.explain(*arguments), n) for n in ("saved_bytes", "formula"))
    assert (plan.saved_bytes, plan.formula) == (size, formula), str(plan)


def test_ping_pong_saves_each_step_once() -> None:
    steps = 5
    joint = made(relaxed).explain(np.ones(N), steps)
    split = made(relaxed).explain(np.ones(N), steps, plan="split")
    assert joint.saved_bytes <= split.saved_bytes <= joint.saved_bytes + 8 * N


def test_the_receipt_says_that_it_is_for_the_caller() -> None:
    (save,) = made(squares).explain(np.ones(3), plan="split").saves
    assert save.killed_by is None
    assert save.way_out is None
    assert "the caller may change `x` before `back`" in save.why


def test_an_unknown_plan_is_refused() -> None:
    with pytest.raises(ValueError, match="'joint'"):
        made(squares).explain(np.ones(3), plan="both")


def test_forbidding_saves_forbids_those_of_grad_alone() -> None:
    f = mutad.compile(squares, grad=True, cache=False, saves="forbid")
    assert f.grad(np.ones(3)).tolist() == [2.0, 2.0, 2.0]
    _, back = f.vjp(np.ones(3))
    assert back(1.0).tolist() == [2.0, 2.0, 2.0]
    assert f.explain(np.ones(3), plan="split").saved_bytes == 24
    with pytest.raises(mutad.CompileError):
        mutad.compile(steepen, grad=True, cache=False, saves="forbid").vjp(np.ones(4), 2)


@pytest.mark.parametrize(("function", "arguments", "size", "formula"), PLANS[:3])
def test_what_is_kept_is_what_the_plan_says(function, arguments, size, formula) -> None:
    kept = measure_vjp(made(function), *arguments)
    assert size <= kept <= size + 8192


def test_arrays_of_the_function_s_own_are_kept_without_a_copy() -> None:
    f = made(own)
    assert f.explain(np.ones(N)).saved_bytes == 0, "what is overwritten is computed again from x"
    assert f.explain(np.ones(N), plan="split").saved_bytes == 8 * N + 8 * (N - 1)
    assert measure_vjp(f, np.ones(N)) <= 3 * 8 * N + 16384


def test_memory_is_given_back_when_the_primal_raises() -> None:
    with pytest.raises(IndexError):
        measure_vjp(made(fails_late), np.ones(N))


def test_memory_is_given_back_with_back() -> None:
    f = made(squares)
    x = np.ones(1 << 21)
    f.vjp(x)
    before = resident()
    for _ in range(50):
        f.vjp(x)[1](1.0)
    gc.collect()
    assert resident() < before + 6 * x.nbytes


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


# The time between.


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (squares, (np.linspace(0.5, 1.5, 9),)),
        (smooth, (np.linspace(0.5, 1.5, 9), 3)),
        (steepen, (np.linspace(0.5, 1.5, 9), 4)),
        (relaxed, (np.linspace(0.5, 1.5, 9), 3)),
        (own, (np.linspace(0.5, 1.5, 9),)),
        (until_large, (np.array([0.01, 1.0]),)),
        (gathered, (np.linspace(0.5, 1.5, 9), np.array([3, 3, 8, -9]))),
    ],
)
@pytest.mark.parametrize("saves", ["minimal", "all"])
def test_back_gives_the_gradient_after_the_arguments_are_gone(function, arguments, saves) -> None:
    f = mutad.compile(function, grad=True, cache=False, saves=saves)
    want = f.grad(*copy.deepcopy(arguments))
    mine = copy.deepcopy(arguments)
    _, back = f.vjp(*mine)
    for array in mine:
        if isinstance(array, np.ndarray):
            array.fill(0)
    del mine
    gc.collect()
    for _ in range(3):
        np.testing.assert_allclose(back(1.0), want, rtol=1e-14)
    np.testing.assert_allclose(back(-2.0), -2 * want, rtol=1e-14)


def test_results_belong_to_the_caller() -> None:
    x = np.linspace(0.0, 1.0, 5)
    (first, second), back = made(returned).vjp(x, 2.0, wrt=("x", "k"))
    want = 2 * np.exp(2 * x) + 2.0, (x * np.exp(2 * x)).sum() + x.sum()
    first[:] = second[:] = x[:] = 0
    x_bar, k_bar = back((np.ones(5), np.ones(5)))
    np.testing.assert_allclose(x_bar, want[0], rtol=1e-14)
    np.testing.assert_allclose(k_bar, want[1], rtol=1e-14)
    x_bar, k_bar = back((None, np.ones(5)))
    assert x_bar.tolist() == [2.0] * 5
    assert k_bar == 2.5


def test_all_memory_of_a_returned_view_belongs_to_the_caller() -> None:
    def half(x):
        y = np.exp(x)
        s = 1.0
        for i in range(x.size // 2):
            s += y[2 * i + 1] * s
        return y[::2], s

    f, x = made(half), np.linspace(0.0, 1.0, 6)
    x_bar = np.zeros(6)
    f.pullback(Duplicated(x, x_bar), cotangent=(None, 1.0))
    (view, _), back = f.vjp(x)
    np.lib.stride_tricks.as_strided(view, (6,), (8,)).fill(0.0)
    np.testing.assert_allclose(back((None, 1.0)), x_bar, rtol=1e-14)


def test_the_primal_runs_once(capfd) -> None:
    x = np.array([1.0, 2.0])
    _, back = made(announced).vjp(x)
    for _ in range(3):
        assert back(1.0).tolist() == [8.0, 16.0]
    assert capfd.readouterr().out == "primal 1.0\n"
    assert x.tolist() == [2.0, 4.0]


def test_a_pullback_with_an_array_result_runs_the_primal_once(capfd) -> None:
    def doubled(x):
        print("primal")
        return 2.0 * x

    x_bar = np.zeros(3)
    made(doubled).pullback(Duplicated(np.ones(3), x_bar), cotangent=np.arange(3.0))
    assert x_bar.tolist() == [0.0, 2.0, 4.0]
    assert capfd.readouterr().out == "primal\n"


def test_calls_of_back_do_not_disturb_each_other() -> None:
    """Many threads read the tapes of two runs, in turn and at once."""
    f = made(until_large)
    runs = [(x, *f.vjp(np.array([x]))) for x in (1e-4, 3e-4)]
    want = {x: f.grad(np.array([x]))[0] for x, _, _ in runs}
    wrong: list[Any] = []

    def work() -> None:
        for _ in range(20):
            for x, _, back in runs:
                if back(1.0)[0] != want[x]:
                    wrong.append(x)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_handle_outlives_its_function() -> None:
    _, back = made(steepen).vjp(np.linspace(0.0, 1.0, 6), 3)
    gc.collect()
    want = made(steepen).grad(np.linspace(0.0, 1.0, 6), 3)
    np.testing.assert_array_equal(back(1.0), want)


def test_what_is_kept_can_be_neither_copied_nor_pickled() -> None:
    _, back = made(squares).vjp(np.ones(3))
    with pytest.raises(TypeError, match="memory of this process"):
        pickle.dumps(back.handle)
    with pytest.raises(TypeError, match="memory of this process"):
        copy.deepcopy(back.handle)


def test_an_exception_of_the_primal_leaves_what_python_leaves() -> None:
    u, v = np.full(3, 2.0), np.full(3, 2.0)
    with pytest.raises(IndexError):
        fails_late(u)
    with pytest.raises(IndexError):
        made(fails_late).vjp(v)
    np.testing.assert_array_equal(u, v)


# Cotangents of final values.


def test_final_values_of_what_wrt_does_not_name() -> None:
    def spread(x, y, k):
        y[:] = x * k
        x[:] = 0.0

    x, y = np.arange(3.0), np.ones(3)
    _, back = made(spread).vjp(x, y, 3.0, wrt="k")
    assert back(y=np.ones(3)) == 3.0
    assert back(y=np.ones(3), x=np.ones(3)) == 3.0
    assert back() == 0.0
    with pytest.raises(ValueError, match="shape"):
        back(x=np.ones(2))


def test_lone_and_sharing_arguments_get_their_own_shadows() -> None:
    def mixed(z, x, y):
        x *= y
        return (x * z).sum()

    z, memory = np.array([1.0, 2.0, 3.0]), np.linspace(1.0, 2.0, 4)
    f = made(mixed)
    want = f.grad(z, memory[:3].copy(), memory[1:].copy(), wrt="z")
    _, back = f.vjp(z, memory[:3], memory[1:], wrt=("z", "x", "y"))
    z_bar, x_bar, y_bar = back(1.0)
    assert np.shares_memory(x_bar, y_bar)
    assert not np.shares_memory(z_bar, x_bar)
    again = np.linspace(1.0, 2.0, 4)
    shadow, z_shadow = np.zeros(4), np.zeros(3)
    f.pullback(
        Duplicated(z, z_shadow), Duplicated(again[:3], shadow[:3]), Duplicated(again[1:], shadow[1:]),
        cotangent=1.0,
    )  # fmt: skip
    np.testing.assert_array_equal(z_bar, z_shadow)
    np.testing.assert_array_equal(x_bar, shadow[:3])
    np.testing.assert_array_equal(y_bar, shadow[1:])
    assert want.shape == z_bar.shape


def test_arguments_with_shadows_may_share_memory_though_wrt_names_neither() -> None:
    def stored(x, y, k):
        y[:] = k * k
        return x[0]

    f, x = made(stored), np.ones(4)
    assert f.grad(x, x[:-1], 2.0, wrt="k") == 4.0
    out, back = f.vjp(x, x[:-1], 3.0, wrt="k")
    assert (out, back(1.0), back(0.0, x=np.ones(4))) == (9.0, 6.0, 18.0)
    assert x.tolist() == [9.0, 9.0, 9.0, 1.0]


def test_shadows_that_would_share_memory_in_two_dtypes_are_refused() -> None:
    def stored(x, y, k):
        y[:] = k * k
        return x[0]

    x = np.ones(3)
    for method in ("vjp", "grad"):
        with pytest.raises(TypeError, match="differ in dtype"):
            getattr(made(stored), method)(x, x.view(np.float32), np.float32(2.0), wrt="k")
    assert x.tolist() == [1.0] * 3


def test_arrays_inside_of_tuples_that_active_values_go_to_are_refused() -> None:
    def filled(pair, k):
        pair[0][:] = k * k
        return pair[0].sum()

    for method in ("vjp", "grad"):
        with pytest.raises(mutad.CompileError, match="inside of a tuple"):
            getattr(made(filled), method)((np.ones(3), 1), 2.0, wrt="k")


# Shapes of cotangents in pullback.


def shifted(x, k):
    x *= k
    return x[1:] + k


def filtered(x, n):
    x += 1.0
    kept = 0
    for i in range(n):
        if x[i] > 1.5:
            kept += 1
    y = np.zeros(kept)
    for i in range(kept):
        y[i] = x[i] * x[i]
    return y


def test_a_wrong_shape_is_seen_before_the_primal_runs() -> None:
    x, x_bar = np.ones(4), np.ones(4)
    for wrong in (np.ones(4), np.ones(1), np.ones((3, 1)), 1.0):
        with pytest.raises(ValueError, match="shape"):
            made(shifted).pullback(Duplicated(x, x_bar), Active(2.0), cotangent=wrong)
    assert x.tolist() == x_bar.tolist() == [1.0] * 4


def test_a_shape_that_only_the_primal_tells_is_compared_before_shadows_are_written() -> None:
    x, x_bar = np.arange(4.0), np.ones(4)
    with pytest.raises(ValueError, match=r"has shape \(4,\), not \(3,\)"):
        made(filtered).pullback(Duplicated(x, x_bar), Const(4), cotangent=np.ones(4))
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0]
    assert x_bar.tolist() == [1.0] * 4
    x = np.arange(4.0)
    made(filtered).pullback(Duplicated(x, x_bar), Const(4), cotangent=np.ones(3))
    assert x_bar.tolist() == [3.0, 5.0, 7.0, 1.0]


def test_no_cotangent_for_one_of_two_arrays() -> None:
    x_bar = np.zeros(3)
    result, (k_bar,) = made(returned).pullback(
        Duplicated(np.zeros(3), x_bar), Active(2.0), cotangent=(None, np.ones(3))
    )
    assert x_bar.tolist() == [2.0] * 3
    assert k_bar == 0.0
    assert result[0].tolist() == [1.0] * 3


# Views of the compiler.


def test_inspect_shows_both_halves() -> None:
    text = made(squares).inspect("adjoint", np.ones(3), wrt="x", plan="split")
    assert "@squares_forward" in text
    assert "@squares_backward" in text
    f = made(squares)
    f.vjp(np.ones(3))
    assert "ad.detach" in f.inspect("optimize")


def test_a_second_process_finds_the_code_on_disk(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path / "cache"))
    x = np.arange(3.0)
    mutad.compile(squares, grad=True).vjp(x)
    again = mutad.compile(squares, grad=True)
    again._dispatcher.compiler = None  # pyright: ignore[reportAttributeAccessIssue, reportPrivateUsage]
    _, back = again.vjp(x)
    assert back(1.0).tolist() == [0.0, 2.0, 4.0]


def scaled_by_nothing(x, y):
    n = x.size
    y[n:0] = 0.5 * x[n:0] * y[n:0]
    s = (x[n:1] * x[0:1]).sum()
    return (x * y).sum() + s


def test_slices_that_are_always_empty_keep_nothing() -> None:
    """Code for them seems to read the caller's arrays, which may be gone by then."""
    x, y = np.arange(1.0, 6), np.linspace(1, 2, 5)
    value, back = made(scaled_by_nothing).vjp(x.copy(), y.copy(), wrt=("x", "y"))
    assert value == x @ y
    dx, dy = back(1.0)
    assert (dx == y).all()
    assert (dy == x).all()


def test_back_says_that_it_cannot_be_pickled_or_copied() -> None:
    _, back = made(squares).vjp(np.ones(3))
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="neither copied nor pickled"):
            attempt(back)
