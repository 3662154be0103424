"""Ops that no pass names, in all that a program may do with them: see `squares`."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import numpy as np
import pytest
import squares
from budget_programs import compiled, copies, least_of, outcome
from gradient_oracle import GradientCase, GradientPrograms, assert_close
from gradient_tests import gradient_tests
from squares import energy, energy_shown, square_in_place, square_into
from xdsl.dialects import func, memref, test

import mutad
from mutad import CompileError, prange
from mutad.compiler.rules import is_repeatable
from mutad.dialects import ad, array, foreign

programs = GradientPrograms()
on = programs.on


@pytest.fixture(autouse=True)
def new_ops() -> Generator[None]:
    with squares.known():
        yield


@on("f64[4]L", L="C R S")
@on("f64[2,3]L", L="C F")
@on("f64[0]")
def chained(x):
    y = np.empty_like(x)
    square_into(x, y)
    square_in_place(y)
    x[:1] = 0.0
    return energy(y) + energy(x)


@on("f64[4]")
def overwritten_before_it_is_used(x):
    y = x * 3.0
    square_into(x, y)
    return (y * x).sum()


@on("f64[3] n", n="0 1 4")
def of_items_that_are_killed(x, n):
    items = []
    for k in range(n):
        items.append(x * (0.5 + k))
    y = np.zeros(3)
    s = 0.0
    for k in range(n):
        square_into(items[k], y)
        items[k][:] = x
        s += (y * items[k]).sum()
    return s


@on("f64[3] n", n="0 1 4")
def items_in_place(x, n):
    items = []
    for k in range(n):
        items.append(x * (0.5 + k))
    s = 0.0
    for k in range(n):
        square_in_place(items[k])
        s += energy(items[k]) * x[0]
        items[k][1] = s
    return s


@on("f64[3] n", n="0 1 4")
def into_items(x, n):
    items = []
    for k in range(n):
        items.append(x * (0.5 + k))
    for k in range(1, n):
        square_into(items[k - 1], items[k])
    s = 0.0
    for one in items:
        s += energy(one)
        one[:] = 0.0
    return s


@on("f64[3] n", n="1 4")
def until_the_list_is_empty(x, n):
    items = []
    for k in range(n):
        items.append(x * (0.3 + 0.1 * k))
    s = 0.0
    while items:
        last = items.pop()
        square_in_place(last)
        s += energy(last)
        if items:
            items[-1] += last * x
    return s


@on("f64[3] n n", n="2 3")
def in_nested_loops(u, n, m):
    w = np.empty_like(u)
    for _ in range(n):
        for _ in range(m):
            square_into(u, w)
            u[:] = 0.3 * w + 0.5 * u
        square_in_place(u)
    return energy(u)


@on("f64[4] n", n="0 3")
def in_turn(u, n):
    v = np.empty_like(u)
    for _ in range(n):
        square_into(u, v)
        u, v = v, u
    return energy(u)


@on("f64[4] n", n="3")
def in_branches(u, n):
    s = 0.0
    for k in range(n):
        if energy(u) > 1.0:
            u *= 0.5
            square_in_place(u)
        else:
            square_into(u * 2.0, u)
        s += u[k]
    return s


@on("f64[4,4]L", L="C F")
def of_rows_and_columns(a):
    s = 0.0
    for k in range(4):
        square_into(a[k], a[:, (k + 1) % 4].copy())
        square_in_place(a[:, k])
        a[k, 0] = 0.5 * energy(a[k, ::-1])
        s += a[k, 0]
    return s


@on("f64[6]& f64[6]&", "f64[6]& f64[6]&[::-1]", "f64[7]&[:-1] f64[7]&[1:]", "f64[6] f64[6]")
def of_what_may_be_shared(x, y):
    w = np.empty_like(y)
    square_into(y, w)
    x[2] = w[0]
    square_in_place(x)
    return (w[:3] * y[:3]).sum() + energy(x)


@on("f64[5]")
def of_a_view(x):
    y = np.zeros((2, 5))
    square_into(x, y[1])
    y[0] = np.sin(y[1])
    square_in_place(y)
    return (y * y[::-1]).sum()


def sink(x, depth):
    if depth == 0:
        return energy(x)
    y = np.empty_like(x)
    square_into(x, y)
    x[0] = y[1]
    square_in_place(x)
    return sink(y * 0.5 + x * 0.1, depth - 1) + y[0]


@on("f64[3] n", n="0 2")
def recursive(x, n):
    return sink(x, n)


def grown(x):
    """A list whose length is known at run time only."""
    items = []
    u = x * 1.0
    while u.sum() < 30.0:
        items.append(u * 1.0)
        u = u * 1.5
    return items


@on("f64[3]:unit")
def of_items_of_a_growing_list(x):
    items = grown(x)
    y = np.zeros(3)
    s = 0.0
    for k in range(len(items)):
        square_into(items[k], y)
        square_in_place(items[k])
        s += (y * items[k]).sum()
    return s


@on("f64[3]:unit")
def growing_items_in_place(x):
    items = grown(x)
    s = 0.0
    for k in range(len(items)):
        square_in_place(items[k])
        s += energy(items[k]) * x[0]
        items[k][:] = x
    return s


@on("f64[3]:unit")
def from_a_growing_item_to_the_next(x):
    items = grown(x)
    s = 0.0
    for k in range(1, len(items)):
        square_into(items[k - 1] * 0.1, items[k])
        s += energy(items[k])
        square_into(x, items[k - 1])
    return s


@on("f64[3]:unit n", n="2")
def of_an_item_in_a_recursive_function(x, n):
    items = grown(x * 0.5)
    s = 0.0
    for k in range(len(items)):
        s += sink(items[k], n)
        square_in_place(items[k])
    return s


@on("f64[40]")
def compared_with_its_largest(x):
    y = np.sin(x)
    z = np.empty_like(y)
    square_into(y, z)
    top = z.max()
    s = 0.0
    for k in range(40):
        s += y[k] if z[k] == top else 0.5 * z[k]
    return s


TestGradients = gradient_tests(programs, tangents=True)


def random(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(0.1, 0.9, shape)


@pytest.mark.parametrize(
    ("program", "arguments", "saved"),
    [(in_nested_loops, (random(300), 10, 8), 216_000), (in_turn, (random(300), 20), 48_000)],
)
def test_within_the_least_budget(program: Any, arguments: tuple[Any, ...], saved: int) -> None:
    without = compiled(program, None)
    least, found = least_of(program, arguments, ("u",))
    assert found == outcome(without, arguments, ("u",))
    assert least < saved / 3
    assert without.explain(*copies(arguments), wrt="u").saved_bytes == saved


@pytest.mark.parametrize("case", programs.twice, ids=str)
def test_the_adjoint_of_the_adjoint(case: GradientCase) -> None:
    active, function = case.active(), case.compiled(opt=1)
    numbers = np.random.default_rng(1)
    shapes = [np.shape(a) for k, a in enumerate(case.arguments()) if k in active]
    along = tuple(numbers.uniform(size=shape) for shape in shapes)
    if "&" in case.row:
        along = tuple(np.ones(shape) for shape in shapes)
    hvp = [
        function.hvp(*case.arguments(), wrt=active, direction=along, mode=mode)
        for mode in ("forward-over-reverse", "reverse-over-reverse")
    ]
    assert_close(hvp[1], hvp[0], str(case))


@pytest.mark.parametrize("case", programs.first, ids=str)
def test_devices_refuse_it_by_line(case: GradientCase) -> None:
    with pytest.raises(CompileError) as raised:
        case.compiled(opt=1, target="cuda:host").grad(*case.arguments(), wrt=case.active())
    assert raised.value.span is not None


def appended_and_changed(x):
    y = x * 2.0
    items = []
    for _ in range(2):
        items.append(y)
        square_in_place(y)
    return energy(items[0])


def last_item_changed(x):
    y = x * 2.0
    items = [y]
    while len(items) < 3:
        items.append(y)
        square_in_place(items[-1])
    return energy(y)


@pytest.mark.parametrize("program", [appended_and_changed, last_item_changed])
def test_the_frontend_sees_what_it_changes(program: Any) -> None:
    with pytest.raises(CompileError, match="one of the two is changed afterwards"):
        mutad.compile(program)(random(3))


def rows_apart(a, n):
    for _ in range(n):
        for i in prange(a.shape[0]):
            square_in_place(a[i])
            a[i, 0] = 0.1 * energy(a[i])
    return energy(a)


def into_rows(a, n):
    b = np.empty_like(a)
    for i in prange(a.shape[0]):
        square_into(a[0], b[i])
        b[i] *= a[i]
    return energy(b)


def test_what_nothing_is_known_of_runs_once_and_in_order() -> None:
    known = (memref.LoadOp, array.LoopOp, array.MapOp, array.RaiseIfOp, func.ReturnOp)
    assert all(map(is_repeatable, known))
    kinds = (foreign.CallOp, array.PrintOp, ad.PushOp, test.TestOp, squares.EnergyShownOp)
    assert not any(map(is_repeatable, kinds))


def shown_in_steps(u, n):
    for _ in range(n):
        u[:] = np.sin(u) * np.exp(1e-3 * energy_shown(u) * u)
    return energy(u)


def shown_before_steps(u, n):
    s = energy_shown(u)
    for _ in range(n):
        u[:] = np.sin(u) * np.exp(u)
    return energy(u) * s


def test_no_budget_runs_it_again(capsys: pytest.CaptureFixture[str]) -> None:
    u = random(200)
    options: dict[str, Any] = {"grad": True, "opt": 1, "cache": False}
    f = mutad.compile(shown_in_steps, memory=100_000, **options)
    want = mutad.compile(shown_in_steps, **options).grad(u.copy(), 30)
    assert_close(f.grad(u.copy(), 30), want, "shown in steps")
    assert capsys.readouterr().out.count("energy") == 60
    with pytest.raises(MemoryError, match="at least"):
        mutad.compile(shown_in_steps, memory=20_000, **options).grad(u.copy(), 30)
    f = mutad.compile(shown_before_steps, memory=20_000, **options)
    f.grad(u.copy(), 30)
    assert capsys.readouterr().out.count("energy") == 1
    with pytest.raises(MemoryError, match="at least"):  # the pullback would run all of it again
        f.vjp(u.copy(), 30)
    assert not capsys.readouterr().out


def shown_product(x):
    return energy_shown(x) * x[0]


def test_no_derivative_of_a_derivative_runs_it_again() -> None:
    inner = mutad.compile(shown_product, grad=True, opt=1)

    def outer(x):
        g = inner.grad(x)
        return (g * g).sum()

    assert np.isfinite(mutad.compile(outer, opt=1)(random(4)))
    with pytest.raises(CompileError, match="cannot run once more"):
        mutad.compile(outer, grad=True, opt=1).grad(random(4))


@pytest.mark.parametrize("program", [rows_apart, into_rows])
def test_threads_run_it(program: Any) -> None:
    a = random(40, 300)
    options = {"grad": True, "opt": 1, "cache": False}
    alone, together = (mutad.compile(program, parallel=p, **options) for p in (False, True))
    assert together.inspect("llvm", a, 2, wrt="a").count("call i32 @mutad_threads_run") > 1
    assert_close(together.grad(a.copy(), 2), alone.grad(a.copy(), 2), program.__name__)


def squared(x):
    y = np.empty(3)
    square_into(x, y)
    return y


def test_memory_that_a_new_op_fills_becomes_an_item_without_a_copy() -> None:
    def kept(x, n):
        items = []
        for _ in range(n):
            items.append(squared(x))
        return energy(items[-1])

    f = mutad.compile(kept, cache=False, opt=1)
    assert f(np.full(3, 2.0), 2) == 48.0
    text = f.inspect("frontend", np.ones(3), 2)
    assert "mine.square" in text
    assert "array.map" not in text
