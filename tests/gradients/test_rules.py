"""User rules: the adjoint of a function, written by hand, saved for and inlined as any other."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import cffi
import numpy as np
import pytest
from scipy.special import cython_special

import mutad
from mutad import check_gradient

# The golden one: a function that mutates its argument, in three kinds.


def axpy_in_python(a, x, y):
    y[:] = a * x + y


def product_in_python(a, x, y):
    y[:] = a * x * y


def rules_of_axpy(function: Any) -> Any:
    @mutad.rule(function, reads=("x", "y"), overwrites="y", needs=("a", "x"))
    def axpy_rule(a, x, y):
        a.cotangent += (x.value * y.shadow).sum()
        x.shadow += a.value * y.shadow

    return function


def rules_of_product(function: Any) -> Any:
    @mutad.rule(function, overwrites="y", needs=("a", "x", "y"))
    def product_rule(a, x, y):
        a.cotangent += (x.value * y.value * y.shadow).sum()
        x.shadow += a.value * y.value * y.shadow
        y.shadow *= a.value * x.value

    return function


vector = np.ctypeslib.ndpointer(np.float64, ndim=1, flags="C_CONTIGUOUS")
pointer = ctypes.POINTER(ctypes.c_double)
signature = ctypes.CFUNCTYPE(None, ctypes.c_long, ctypes.c_double, pointer, pointer)


@signature
def _axpy(n, a, x, y):
    for i in range(n):
        y[i] = a * x[i] + y[i]


@signature
def _product(n, a, x, y):
    for i in range(n):
        y[i] = a * x[i] * y[i]


for _one in (_axpy, _product):
    _one.argtypes = [ctypes.c_long, ctypes.c_double, vector, vector]


@mutad.rule(_axpy, overwrites="y")
def _axpy_rule(n, a, x, y):
    a.cotangent += x.value @ y.shadow
    x.shadow += a.value * y.shadow


@mutad.rule(_product, overwrites="y")
def _product_rule(n, a, x, y):
    for i in range(n.value):
        y_bar = y.shadow[i]
        a.cotangent += x.value[i] * y.value[i] * y_bar
        x.shadow[i] += a.value * y.value[i] * y_bar
        y.shadow[i] = a.value * x.value[i] * y_bar


def axpy_in_c(a, x, y):
    _axpy(x.size, a, x, y)


def product_in_c(a, x, y):
    _product(x.size, a, x, y)


AXPYS = {
    "opaque": rules_of_axpy(mutad.opaque(axpy_in_python)),
    "compiled": rules_of_axpy(axpy_in_python),
    "ctypes": axpy_in_c,
}
PRODUCTS = {
    "opaque": rules_of_product(mutad.opaque(product_in_python)),
    "compiled": rules_of_product(product_in_python),
    "ctypes": product_in_c,
}


def once(step: Any) -> Callable[..., Any]:
    def loss(a, x, y):
        step(a, x, y)
        return (y**2).sum()

    return loss


def repeated(step: Any) -> Callable[..., Any]:
    def loss(a, x, y):
        total = 0.0
        for k in range(4):
            step(a, x, y)
            if k % 2 == 1:
                total += (y * x).sum()
            x *= 0.9
        return total

    return loss


def of_rows(step: Any) -> Callable[..., Any]:
    def loss(a, x, y):
        m = np.empty((3, x.size))
        for i in range(3):
            m[i] = y * (i + 1)
            step(a + i, x, m[i])
            step(a, m[i], y)
        return (m * m).sum() * y.sum()

    return loss


def while_small(step: Any) -> Callable[..., Any]:
    def loss(a, x, y):
        trips = 0
        while abs(y[0]) < 30.0 and trips < 20:
            step(a, x, y)
            trips += 1
        return (y * y).sum() + trips

    return loss


def of_items(step: Any) -> Callable[..., Any]:
    """Of a list whose length is known at run time only."""

    def loss(a, x, y):
        rows = [y * 1.0]
        while rows[-1].sum() < 30.0 and len(rows) < 9:
            rows.append(rows[-1] * 1.5 + 1.0)
        total = 0.0
        for k in range(1, len(rows)):
            step(a, x, rows[k])
            step(a, rows[k], rows[k - 1])
            total += (rows[k] * rows[k - 1]).sum()
            rows[k][:] = x
        return total

    return loss


@pytest.mark.parametrize("kind", AXPYS)
@pytest.mark.parametrize("program", [once, repeated, of_rows, while_small, of_items])
@pytest.mark.parametrize("steps", [AXPYS, PRODUCTS], ids=["axpy", "product"])
def test_a_function_that_mutates(steps: dict[str, Any], program: Any, kind: str) -> None:
    loss = mutad.compile(program(steps[kind]), grad=True)
    n = 1 if program is while_small else 3
    check_gradient(loss, 1.5, np.linspace(0.7, 1.3, n), np.linspace(1.0, 1.4, n))


@pytest.mark.parametrize("n", [0, 1])
def test_empty_arrays_and_single_elements(n: int) -> None:
    loss = mutad.compile(repeated(PRODUCTS["opaque"]), grad=True)
    check_gradient(loss, 1.5, np.linspace(0.7, 1.3, n), np.linspace(1.0, 1.4, n))


@pytest.mark.parametrize("wrt", ["a", "x", "y", ("a", "y")])
def test_only_some_arguments_are_active(wrt: Any) -> None:
    loss = mutad.compile(repeated(PRODUCTS["opaque"]), grad=True)
    check_gradient(loss, 1.5, np.linspace(0.7, 1.3, 3), np.ones(3), wrt=wrt)


def test_what_is_needed_and_overwritten_is_saved_and_nothing_else() -> None:
    a, x, y = 1.5, np.ones(5), np.ones(5)
    wrt = ("a", "x", "y")

    def linear(a, x, y):
        axpy(a, x, y)
        return y.sum()

    def product(a, x, y):
        times(a, x, y)
        return y.sum()

    axpy, times = AXPYS["opaque"], PRODUCTS["opaque"]
    assert mutad.compile(linear, grad=True).explain(a, x, y, wrt=wrt).saved_bytes == 0
    receipt = mutad.compile(product, grad=True).explain(a, x, y, wrt=wrt)
    assert receipt.saved_bytes == y.nbytes
    assert "`times(a, x, y)`" in str(receipt)


def test_a_value_after_the_call_is_reloaded() -> None:
    @mutad.opaque
    def exponential(x):
        np.exp(x, out=x)

    @exponential.rule(overwrites="x", needs="x.after")
    def exponential_rule(x):  # pyright: ignore[reportUnusedFunction]
        x.shadow *= x.after

    def once(x):
        exponential(x)
        return x.sum()

    def twice(x):
        exponential(x)
        exponential(x)
        return x.sum()

    x = np.linspace(0.0, 0.5, 4)
    for program, saved in ((once, 0), (twice, 1)):
        compiled = mutad.compile(program, grad=True)
        check_gradient(compiled, x)
        assert compiled.explain(x).saved_bytes == saved * x.nbytes


# Numbers.


@mutad.rule(cython_special.j0)
def j0_rule(x, result):
    x.cotangent -= cython_special.j1(x.value) * result.cotangent


@mutad.rule(cython_special.gamma, needs=("x", "result"))
def gamma_rule(x, result):
    x.cotangent += result.value * cython_special.psi(x.value) * result.cotangent


ffi = cffi.FFI()
ffi.cdef("double lgamma(double); double hypot(double, double);")
c_lgamma = ffi.dlopen("libm.so.6").lgamma
hypot = ctypes.CDLL("libm.so.6").hypot
hypot.argtypes, hypot.restype = [ctypes.c_double] * 2, ctypes.c_double


@mutad.rule(c_lgamma)
def lgamma_rule(x, result):
    x.cotangent += cython_special.psi(x.value) * result.cotangent


@mutad.rule(hypot)
def hypot_rule(x, y, r):
    x.cotangent += x.value / r.value * r.cotangent
    y.cotangent += y.value / r.value * r.cotangent


@mutad.opaque
def cube(x: float) -> float:
    return float(x) ** 3


@cube.rule
def cube_rule(x, result):
    x.cotangent += 3.0 * x.value**2 * result.cotangent


def special(x, out):
    for i in range(x.size):
        out[i] = cython_special.j0(x[i]) * cython_special.gamma(x[i])
    return (out * out).sum()


def of_c(x):
    total = 0.0
    for v in x:
        total = hypot(total, v) + c_lgamma(v)
    return total


def callback_in_a_loop(x):
    s = 1.0
    for i in range(x.size):
        if x[i] > 0.8:
            s = cube(s * x[i])
            x[i] = s
    return s + cube(2.0) * x.sum()


@pytest.mark.parametrize("program", [special, of_c, callback_in_a_loop])
def test_numbers_through_foreign_functions(program: Any) -> None:
    x = np.linspace(0.5, 1.5, 5)
    args = (x, np.zeros(5)) if program is special else (x,)
    check_gradient(mutad.compile(program, grad=True), *args)


def test_an_opaque_function_runs_once_for_a_gradient() -> None:
    calls = []

    @mutad.opaque
    def counted(x: float) -> float:
        calls.append(x)
        return x * x

    @counted.rule
    def counted_rule(x, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent += 2.0 * x.value * result.cotangent

    @mutad.compile(grad=True)
    def loss(x, n):
        for _ in range(n):
            x = counted(x) * 0.5
        return x

    loss(2.0, 1)
    calls.clear()
    assert loss.grad(3.0, 2) == 3.0 * 4.5 / 2 * 2
    assert calls == [3.0, 4.5]


# Compiled functions: the primal as usual, the adjoint replaced.


def clipped(x, low):
    """As `np.maximum`, whose gradient passes where the value is clipped, too."""
    return np.maximum(x, low)


@mutad.rule(clipped, needs=())
def clipped_rule(x, low, result):
    x.shadow += result.shadow


def moments(x, w):
    return (x * w).sum(), (x * x * w).sum()


@mutad.rule(moments)
def moments_rule(x, w, result):
    first, second = result.cotangent
    x.shadow += w.value * first + 2 * x.value * w.value * second
    w.shadow += x.value * first + x.value**2 * second


def two_arrays(x, k=2.0, *, shift=0.0):
    s = np.sin(x * k)
    return s, s * x + shift


@mutad.rule(two_arrays)
def two_arrays_rule(x, k, shift, result):
    sine, product = result.shadow
    inner = (sine + x.value * product) * np.cos(x.value * k.value)
    x.shadow += inner * k.value + np.sin(x.value * k.value) * product
    k.cotangent += (inner * x.value).sum()
    shift.cotangent += product.sum()


class Spread(NamedTuple):
    mean: float
    rest: np.ndarray
    square: float


def spread(x, weights):
    n, w = weights
    mean = (w * x).sum() / n
    rest = x - mean
    return Spread(mean, rest, (rest * rest).sum())


@mutad.rule(spread)
def spread_rule(x, weights, result):
    mean, rest, _ = result
    n, w = weights.value
    rest_bar = rest.shadow + 2 * rest.value * result.square.cotangent
    mean_bar = mean.cotangent - rest_bar.sum()
    x.shadow += rest_bar + mean_bar * w / n
    weights[1].shadow += mean_bar * x.value / n


def of_spread(x, w):
    first = spread(x, (3, w))
    x *= first.rest
    second = spread(x, (2, first[1]))
    return first.mean * first.square + (second.rest * w).sum() * second[2]


def of_moments(x, w):
    a, b = moments(x, w)
    x[0] = a * b
    c, d = moments(x[1:], w[1:])
    return a * b + c * d + x.sum()


def of_two_arrays(x, k):
    total = 0.0
    for i in range(3):
        s, p = two_arrays(x, k, shift=x[0])
        s *= p
        x += 0.1 * s
        total += two_arrays(x[i:])[1].sum()
    return total + (s * p).sum()


@pytest.mark.parametrize("program", [of_moments, of_two_arrays, of_spread])
def test_a_rule_of_a_compiled_function(program: Any) -> None:
    second = 1.3 if program is of_two_arrays else np.linspace(1.0, 2.0, 4)
    check_gradient(mutad.compile(program, grad=True), np.linspace(0.2, 1.4, 4), second)


def test_the_rule_is_used_and_not_what_the_compiler_derives() -> None:
    @mutad.compile(grad=True)
    def loss(x, low):
        return clipped(x * x, low).sum()

    x = np.array([1.0, 3.0])
    np.testing.assert_array_equal(loss.grad(x, 4.0), 2 * x)
    assert loss.grad(x, 4.0, wrt="low") == 0.0


def test_the_rule_of_the_function_itself() -> None:
    @mutad.compile(grad=True)
    def square(x):
        return x * x

    @square.rule
    def square_rule(x, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent += 100.0 * result.cotangent

    assert square(3.0) == 9.0
    assert square.grad(3.0) == 100.0

    @mutad.compile(grad=True)
    def calls(x):
        return 2.0 * square(x)

    assert calls.grad(3.0) == 200.0


def test_a_rule_that_is_given_later_or_replaced_is_used() -> None:
    def helper(x):
        return x * x

    @mutad.compile(grad=True)
    def loss(x):
        return helper(x) + 1.0

    assert loss.grad(3.0) == 6.0
    for slope in (10.0, 20.0):

        @mutad.rule(helper)
        def helper_rule(x, result):  # pyright: ignore[reportUnusedFunction]
            x.cotangent += slope * result.cotangent

        assert loss.grad(3.0) == slope


def test_a_rule_is_not_handed_on_to_what_wraps_the_function() -> None:
    """`functools.wraps` copies attributes: the rule among them is of the function itself."""

    def square(x):
        return x * x

    @mutad.rule(square)
    def square_rule(x, result):  # pyright: ignore[reportUnusedFunction]
        x.cotangent += 100.0 * result.cotangent

    @functools.wraps(square)
    def cube(x):
        return x * x * x

    @mutad.compile(grad=True)
    def loss(x):
        return cube(x) + square(x)

    assert loss.grad(3.0) == 27.0 + 100.0


RATE = 0.5
TABLE = np.array([1.0, 2.0, 3.0])


def outside(x, y):
    y[:] = RATE * x * TABLE


@mutad.rule(outside)
def outside_rule(x, y):
    x.shadow += RATE * TABLE * y.shadow
    y.shadow[:] = 0.0


def reads_outside(x, y):
    total = 0.0
    for _ in range(2):
        outside(x, y)
        x *= y
        total += y.sum()
    return total


def test_what_function_and_rule_read_from_outside() -> None:
    loss = mutad.compile(reads_outside, grad=True)
    check_gradient(loss, np.linspace(0.5, 1.0, 3), np.ones(3))
    with pytest.raises(mutad.CompileError, match="reads from outside"):
        loss.grad(np.ones(3), np.ones(3), wrt="TABLE")
    with pytest.raises(mutad.CompileError, match="make `RATE` a parameter"):
        loss.grad(np.ones(3), np.ones(3), wrt="RATE")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dtypes(dtype: Any) -> None:
    loss = mutad.compile(repeated(PRODUCTS["opaque"]), grad=True)
    x = np.linspace(0.7, 1.3, 3).astype(dtype)
    check_gradient(loss, dtype(1.5), x, np.ones(3, dtype))


def test_an_array_of_integers_is_needed() -> None:
    @mutad.opaque
    def gather(x, index, y):
        y[:] = x[index]

    @gather.rule(reads=("x", "index"), overwrites="y")
    def gather_rule(x, index, y):  # pyright: ignore[reportUnusedFunction]
        for i in range(index.value.size):
            x.shadow[index.value[i]] += y.shadow[i]
            y.shadow[i] = 0.0

    @mutad.compile(grad=True)
    def loss(x, index):
        y = np.empty(index.size)
        gather(x * x, index, y)
        index[:] = 0
        return (y * y).sum()

    check_gradient(loss, np.linspace(1.0, 2.0, 4), np.array([3, 1, 1]), wrt="x")


# No gradient flows.


def test_stop_gradient() -> None:
    @mutad.compile(grad=True)
    def loss(x, k):
        y = mutad.stop_gradient(x)
        y[0] = 3.0
        return (mutad.stop_gradient(x * k) * x).sum() + mutad.stop_gradient(k) * k + y.sum()

    x = np.array([1.0, 2.0])
    value, (dx, dk) = loss.value_and_grad(x, 5.0, wrt=("x", "k"))
    assert value == 5.0 * 5.0 + 25.0 + 5.0
    np.testing.assert_array_equal(dx, 5.0 * x)
    assert dk == 5.0


def stopped(u, k):
    total = 0.0
    for i in range(3):
        w = mutad.stop_gradient(u) if i % 2 else mutad.stop_gradient(u * 2)
        total += (w * u).sum() * mutad.stop_gradient(k)
        t = mutad.stop_gradient(u)
        t *= u
        total += t.sum()
        u *= mutad.stop_gradient(u[0]) + k
    return total + mutad.stop_gradient((u, k))[0].sum()


def given(u, k, c, k_c):
    """The same with the stopped values as arguments of their own."""
    total = 0.0
    for i in range(3):
        w = c if i % 2 else c * 2
        total += (w * u).sum() * k_c
        total += (c * u).sum()
        u *= c[0] + k
        c *= c[0] + k_c
    return total + c.sum()


def test_stop_gradient_in_a_loop_that_mutates() -> None:
    u, k = np.linspace(0.5, 1.0, 3), 0.7
    ours = mutad.compile(stopped, grad=True).value_and_grad(u.copy(), k, wrt=("u", "k"))
    theirs = mutad.compile(given, grad=True).value_and_grad(
        u.copy(), k, u.copy(), k, wrt=("u", "k")
    )
    assert ours[0] == pytest.approx(theirs[0])
    np.testing.assert_allclose(ours[1][0], theirs[1][0])
    assert ours[1][1] == pytest.approx(theirs[1][1])


def ping_pong(a, u, v):
    for _ in range(5):
        product(a, u, v)
        u, v = v, u
    return (u * v).sum()


def one_or_the_other(a, u, v):
    t = np.ones_like(u)
    for i in range(4):
        w = u if i % 2 == 0 else v
        product(a, w, t)
        w += t
    return (t * u * v).sum()


def views(a, u, v):
    m = np.ones((3, u.size))
    m[1] = u
    product(a, u[::-1], m[2])
    product(a, m[0, ::2], v[::2])
    product(a, v, m[1, ::-1])
    return (m * m).sum() + v.sum()


product = PRODUCTS["opaque"]


@pytest.mark.parametrize("program", [ping_pong, one_or_the_other, views])
def test_arrays_that_are_swapped_chosen_or_seen_as_views(program: Any) -> None:
    compiled = mutad.compile(program, grad=True)
    check_gradient(compiled, 0.8, np.linspace(0.4, 1.2, 4), np.linspace(1.3, 0.5, 4))


def test_what_is_not_active_needs_no_rule() -> None:
    lines = []

    @mutad.opaque
    def log(x):
        lines.append(x.sum())

    @mutad.opaque
    def weight(n: int) -> float:
        return 2.0 * n

    @mutad.compile(grad=True)
    def loss(x, n):
        log(x)
        return (x * x).sum() * weight(n)

    @log.rule(reads="x")
    def log_rule(x):  # pyright: ignore[reportUnusedFunction]
        pass

    np.testing.assert_array_equal(loss.grad(np.ones(2), 3), [12.0, 12.0])
    assert lines == [2.0]


def square(v):
    return v * v


@mutad.rule(square)
def square_rule(v, result):
    v.cotangent += 2.0 * v.value * result.cotangent


@mutad.opaque
def scale(a, x):
    x *= a


@scale.rule(overwrites="x", needs=("a", "x"))
def scale_rule(a, x):
    a.cotangent += (x.value * x.shadow).sum()
    x.shadow *= a.value


def descend(a, x, n):
    if n == 0:
        return (x * x).sum()
    scale(a, x)
    return square(x[0]) * a + descend(a * 0.9, x, n - 1)


def test_in_a_function_that_calls_itself() -> None:
    def loss(a, x, n):
        return descend(a, x, n)

    check_gradient(mutad.compile(loss, grad=True), 1.1, np.linspace(0.7, 1.3, 3), 3)


def above(x, k):
    found = []
    for v in x:
        if v > 0.9:
            found.append(v * v * k)
    total = 0.0
    for v in found:
        total += v
    return total


@mutad.rule(above)
def above_rule(x, k, result):
    slopes = []
    for v in x.value:
        if v > 0.9:
            slopes.append(2 * v * k.value)
    taken = 0
    for i in range(x.value.size):
        if x.value[i] > 0.9:
            x.shadow[i] += slopes[taken] * result.cotangent
            k.cotangent += x.value[i] ** 2 * result.cotangent
            taken += 1


def rebinding(x, n):
    y = x * 2
    for _ in range(n):
        y = y * x
    return y


@mutad.rule(rebinding)
def rebinding_rule(x, n, result):
    slope = 2 * result.shadow
    for _ in range(n.value):
        slope = slope * x.value
    x.shadow += slope * (n.value + 1)


def of_lists_and_rebound_arrays(x, k):
    total = 0.0
    for n in range(3):
        total += above(x, k) * rebinding(x[1:], n).sum()
        x *= 1.1
    return total + above(x, total)


def test_lists_and_rebound_arrays_in_functions_and_rules() -> None:
    compiled = mutad.compile(of_lists_and_rebound_arrays, grad=True)
    check_gradient(compiled, np.array([0.5, 0.8, 0.95, 1.2]), 0.7)


def test_a_rule_that_calls_opaque_functions() -> None:
    @mutad.opaque
    def exponential(x, y):
        y[:] = np.exp(x)

    @mutad.opaque
    def times_slope(x, y_bar, out):
        out[:] = np.exp(x) * y_bar

    @times_slope.rule(overwrites="out")
    def times_slope_rule(x, y_bar, out):  # pyright: ignore[reportUnusedFunction]
        pass

    @exponential.rule(reads="x", overwrites="y")
    def exponential_rule(x, y):  # pyright: ignore[reportUnusedFunction]
        x_bar = np.empty(y.shadow.size)
        times_slope(x.value, y.shadow, x_bar)
        x.shadow += x_bar
        y.shadow[:] = 0.0

    @mutad.compile(grad=True)
    def loss(x):
        y = np.empty(x.size)
        total = 0.0
        for _ in range(3):
            exponential(x, y)
            x *= 0.5
            total += (y * x).sum()
        return total

    check_gradient(loss, np.linspace(0.0, 1.0, 4))
