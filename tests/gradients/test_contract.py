"""What gradients promise: side effects, shadows, selection of arguments, types, refusals."""

import numpy as np
import pytest
from python_oracle import compiled

import mutad
from mutad import Active, Const, Duplicated


def squared_in_place(x):
    for i in range(x.size):
        x[i] = x[i] ** 2
    return x.sum()


def weighted(x, w, k, n):
    s = 0.0
    for _ in range(n):
        x *= w
        s += (x * x).sum() * k
    return s


def scaled_in_place(x, a):
    x *= a * x


def arguments():
    return np.array([1.0, 2.0, -3.0]), np.array([0.5, -1.0, 2.0]), 1.5, 2


# Selection of arguments.


def test_wrt_by_position_name_and_tuple() -> None:
    f = compiled(weighted, grad=True)
    everything = f.grad(*arguments(), wrt=("x", "w", "k"))
    assert isinstance(everything, tuple)
    assert len(everything) == 3
    for k, name in enumerate(("x", "w", "k")):
        by_position, by_name = f.grad(*arguments(), wrt=k), f.grad(*arguments(), wrt=name)
        (in_a_tuple,) = f.grad(*arguments(), wrt=(name,))
        for got in (by_position, by_name, in_a_tuple):
            assert np.array_equal(got, everything[k]), name
    mixed = f.grad(*arguments(), wrt=(2, "x"))
    assert mixed[0] == everything[2]
    assert np.array_equal(mixed[1], everything[0])


def test_wrt_is_the_first_argument_by_default() -> None:
    f = compiled(weighted, grad=True)
    assert np.array_equal(f.grad(*arguments()), f.grad(*arguments(), wrt=0))
    value, gradient = f.value_and_grad(*arguments())
    assert value == f(*arguments())
    assert np.array_equal(gradient, f.grad(*arguments()))


def test_negative_positions_count_from_the_end() -> None:
    f = compiled(weighted, grad=True)
    assert f.grad(*arguments(), wrt=-2) == f.grad(*arguments(), wrt="k")


def test_arguments_by_keyword() -> None:
    f = compiled(weighted, grad=True)
    x, w, k, n = arguments()
    want = f.grad(*arguments(), wrt="w")
    assert np.array_equal(f.grad(x, n=n, w=w, k=k, wrt="w"), want)


def test_functions_as_well_as_methods() -> None:
    x, w, k, n = arguments()
    want = compiled(weighted, grad=True).grad(*arguments(), wrt="w")
    for got in (
        mutad.grad(weighted, wrt="w")(*arguments()),
        mutad.value_and_grad(weighted, wrt="w")(*arguments())[1],
        mutad.grad(compiled(weighted, grad=True), wrt="w")(*arguments()),
    ):
        assert np.array_equal(got, want)
    out, back = mutad.vjp(weighted, wrt="w")(x, w, k, n)
    assert out == weighted(*arguments())
    assert np.array_equal(back(1.0), want)


# Types.


@pytest.mark.parametrize("scalar", [1.5, np.float64(1.5), np.float32(1.5)])
def test_a_scalar_gradient_has_the_scalar_s_type(scalar) -> None:
    def product(v, x):
        return (v * x * v).sum()

    gradient = compiled(product, grad=True).grad(scalar, np.arange(3.0))
    assert type(gradient) is type(scalar)
    assert gradient == 2 * 1.5 * 3


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_an_array_gradient_has_the_array_s_dtype_and_shape(dtype) -> None:
    x = np.arange(6, dtype=dtype).reshape(2, 3)
    gradient = compiled(squares, grad=True).grad(x)
    assert gradient.dtype == dtype
    assert np.array_equal(gradient, 2 * x)
    for view in (x.T, x[:, ::-1], x[:, ::2]):
        assert np.array_equal(compiled(squares, grad=True).grad(view), 2 * view)


def squares(x):
    return (x * x).sum()


def test_a_gradient_is_fresh_and_writable() -> None:
    f = compiled(squares, grad=True)
    x = np.arange(3.0)
    first, second = f.grad(x), f.grad(x)
    assert not np.shares_memory(first, second)
    assert not np.shares_memory(first, x)
    first += 1
    assert np.array_equal(second, 2 * x)


# Effects.


def test_a_gradient_call_mutates_as_the_plain_call_does() -> None:
    f = compiled(squared_in_place, grad=True)
    for call in (f, f.grad, f.value_and_grad, f.vjp):
        x = np.array([1.0, 2.0, -3.0])
        call(x)
        assert x.tolist() == [1.0, 4.0, 9.0]


def test_an_unwritten_read_only_argument_is_accepted() -> None:
    x = np.arange(3.0)
    x.flags.writeable = False
    assert np.array_equal(compiled(squares, grad=True).grad(x), 2 * x)


def raises_after_a_store(x, i):
    x[0] = x[0] * x[1]
    return x[i] * x[i]


def test_a_gradient_call_raises_where_the_plain_call_does() -> None:
    f = compiled(raises_after_a_store, grad=True)
    x = np.array([2.0, 3.0])
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        f.value_and_grad(x, 2)
    assert x.tolist() == [6.0, 3.0]
    shadow = np.array([7.0, 8.0])
    with pytest.raises(IndexError):
        f.pullback(Duplicated(x, shadow), Const(5), cotangent=1.0)
    assert shadow.tolist() == [7.0, 8.0]
    assert x.tolist() == [18.0, 3.0]


def guarded_sum(x, y):
    s = 0.0
    for i in range(x.size):
        x[i] = x[i] * y[i]
        s += x[i]
    return s


def test_a_raise_in_mid_loop_leaves_the_shadows() -> None:
    f = compiled(guarded_sum, grad=True)
    x, y = np.arange(1.0, 5.0), np.array([2.0, 3.0])
    dx, dy = np.full(4, 5.0), np.full(2, 6.0)
    with pytest.raises(IndexError):
        f.pullback(Duplicated(x, dx), Duplicated(y, dy), cotangent=1.0)
    assert x.tolist() == [2.0, 6.0, 3.0, 4.0]
    assert dx.tolist() == [5.0] * 4
    assert dy.tolist() == [6.0] * 2


# pullback.


def test_a_shadow_goes_from_the_final_cotangent_to_the_initial_one() -> None:
    f = compiled(scaled_in_place, grad=True)
    x, dx = np.array([1.0, 2.0, -3.0]), np.array([1.0, 10.0, 100.0])
    result, bars = f.pullback(Duplicated(x, dx), Active(0.5))
    assert result is None
    assert x.tolist() == [0.5, 2.0, 4.5]
    assert dx.tolist() == [1.0, 20.0, -300.0]
    assert bars == (1.0 + 40.0 + 900.0,)


def test_a_shadow_accumulates_what_is_read_only() -> None:
    f = compiled(squares, grad=True)
    x, dx = np.array([1.0, 2.0]), np.array([10.0, 10.0])
    f.pullback(Duplicated(x, dx), cotangent=1.0)
    assert dx.tolist() == [12.0, 14.0]
    f.pullback(Duplicated(x, dx), cotangent=0.5)
    assert dx.tolist() == [13.0, 16.0]


def test_the_shadow_of_a_view_is_a_view_of_the_shadow() -> None:
    f = compiled(product_of_two, grad=True)
    x = np.arange(1.0, 6.0)
    dx = np.zeros(5)
    f.pullback(Duplicated(x[:-1], dx[:-1]), Duplicated(x[1:], dx[1:]), cotangent=1.0)
    want = np.zeros(5)
    want[:-1] += x[1:]
    want[1:] += x[:-1]
    assert np.array_equal(dx, want)


def product_of_two(x, y):
    return (x * y).sum()


def returned(x):
    x *= x
    return x


def test_an_argument_that_is_returned_has_its_cotangent_in_its_shadow() -> None:
    f = compiled(returned, grad=True)
    x, dx = np.array([1.0, 2.0]), np.array([10.0, 20.0])
    result, _ = f.pullback(Duplicated(x, dx))
    assert result is x
    assert dx.tolist() == [20.0, 80.0]
    with pytest.raises(ValueError, match="shadow"):
        f.pullback(Duplicated(x, dx), cotangent=np.ones(2))
    _, back = f.vjp(np.array([1.0, 2.0]))
    assert back(np.array([10.0, 20.0])).tolist() == [20.0, 80.0]


def test_cotangents_of_results_are_only_read() -> None:
    f = compiled(sum_and_difference, grad=True)
    x, y = np.arange(3.0), np.ones(3)
    dx, dy = np.zeros(3), np.zeros(3)
    s_bar, d_bar = np.full(3, 2.0), np.full(3, 5.0)
    f.pullback(Duplicated(x, dx), Duplicated(y, dy), cotangent=(s_bar, d_bar))
    assert dx.tolist() == [7.0] * 3
    assert dy.tolist() == [-3.0] * 3
    assert s_bar.tolist() == [2.0] * 3
    assert d_bar.tolist() == [5.0] * 3


def sum_and_difference(x, y):
    return x + y, x - y


def test_the_two_cotangents_of_a_pair_may_be_one_array() -> None:
    f = compiled(sum_and_difference, grad=True)
    x, y = np.arange(3.0), np.ones(3)
    dx, dy, bar = np.zeros(3), np.zeros(3), np.full(3, 2.0)
    f.pullback(Duplicated(x, dx), Duplicated(y, dy), cotangent=(bar, bar))
    assert dx.tolist() == [4.0] * 3
    assert dy.tolist() == [0.0] * 3


def test_constants_have_no_shadow() -> None:
    f = compiled(weighted, grad=True)
    x, w, k, n = arguments()
    want = f.grad(*arguments(), wrt="w")
    dw = np.zeros(3)
    f.pullback(Const(x), Duplicated(w, dw), Const(k), Const(n), cotangent=1.0)
    assert np.array_equal(dw, want)


MISUSES = {
    "a shadow of another shape": lambda x: (
        Duplicated(x, np.zeros(4)),
        Duplicated(x.copy(), np.zeros(3)),
    ),
    "a shadow of another dtype": lambda x: (
        Duplicated(x, np.zeros(3, np.float32)),
        Const(x.copy()),
    ),
    "a shadow that is its primal": lambda x: (Duplicated(x, x), Const(x.copy())),
    "a shadow that overlaps another primal": lambda x: overlapping_primal(x),
    "one shadow for two disjoint primals": lambda x: one_shadow_for_two(x),
    "two shadows for one primal": lambda x: (
        Duplicated(x, np.zeros(3)),
        Duplicated(x, np.zeros(3)),
    ),
    "shared memory both constant and active": lambda x: (Duplicated(x, np.zeros(3)), Const(x)),
    "shadows that do not overlap as the primals do": lambda x: other_offset(),
    "a read-only shadow": lambda x: (Duplicated(x, read_only(3)), Const(x.copy())),
}


def overlapping_primal(x):
    y = np.arange(3.0)
    return Duplicated(x, y), Duplicated(y, np.zeros(3))


def one_shadow_for_two(x):
    shadow = np.zeros(3)
    return Duplicated(x, shadow), Duplicated(x.copy(), shadow)


def other_offset():
    x, dx = np.arange(8.0), np.zeros(8)
    return Duplicated(x[:4], dx[:4]), Duplicated(x[2:6], dx[1:5])


def read_only(n):
    a = np.zeros(n)
    a.flags.writeable = False
    return a


@pytest.mark.parametrize("misuse", MISUSES)
def test_shadows_that_do_not_mirror_the_primals_are_refused(misuse: str) -> None:
    x = np.arange(3.0)
    wrapped = MISUSES[misuse](x)
    shadows = [w.shadow.copy() for w in wrapped if isinstance(w, Duplicated)]
    with pytest.raises((ValueError, TypeError)):
        compiled(product_of_two, grad=True).pullback(*wrapped, cotangent=1.0)
    for w, before in zip((w for w in wrapped if isinstance(w, Duplicated)), shadows, strict=True):
        assert np.array_equal(w.shadow, before)


# vjp.


def test_back_takes_the_cotangent_of_a_final_value() -> None:
    f = compiled(scaled_in_place, grad=True)
    x = np.array([1.0, 2.0, -3.0])
    out, back = f.vjp(x, 0.5, wrt=("x", "a"))
    assert out is None
    x[:] = 0  # the caller may change what it owns
    for factor in (1.0, 2.0):
        dx, da = back(x=factor * np.array([1.0, 10.0, 100.0]))
        assert dx.tolist() == [factor * v for v in (1.0, 20.0, -300.0)]
        assert da == factor * 941.0


# Refusals.


REFUSED = {
    "wrt an integer": lambda f, a: f.grad(*a, wrt="n"),
    "wrt an integer among others": lambda f, a: f.value_and_grad(*a, wrt=("x", "n")),
    "wrt an unknown name": lambda f, a: f.grad(*a, wrt="nobody"),
    "wrt a position out of range": lambda f, a: f.grad(*a, wrt=9),
    "wrt a float": lambda f, a: f.grad(*a, wrt=1.0),
    "wrt the same twice": lambda f, a: f.grad(*a, wrt=("x", 0)),
    "vjp wrt an integer": lambda f, a: f.vjp(*a, wrt=3),
}


@pytest.mark.parametrize("refused", REFUSED)
def test_wrt_that_names_nothing_differentiable_is_refused(refused: str) -> None:
    made = arguments()
    words = "with respect to floats" if "integer" in refused else "wrt"
    with pytest.raises(TypeError if "twice" not in refused else ValueError, match=words):
        REFUSED[refused](compiled(weighted, grad=True), made)
    assert np.array_equal(made[0], arguments()[0])


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.bool_])
def test_wrt_an_integer_or_boolean_array_is_refused(dtype) -> None:
    with pytest.raises(TypeError):
        compiled(squares, grad=True).grad(np.ones(3, dtype))


@pytest.mark.parametrize("function", [sum_and_difference, scaled_in_place])
def test_grad_needs_a_scalar_result(function) -> None:
    second = 2.0 if function is scaled_in_place else np.ones(3)
    x = np.arange(3.0)
    for method in ("grad", "value_and_grad"):
        with pytest.raises(TypeError):
            getattr(compiled(function, grad=True), method)(x, second)
    assert x.tolist() == [0.0, 1.0, 2.0]


def counts(x):
    return x.size


def test_grad_needs_a_float_result() -> None:
    with pytest.raises(TypeError):
        compiled(counts, grad=True).grad(np.arange(3.0))


def test_an_argument_that_overlaps_itself_is_refused() -> None:
    x = np.lib.stride_tricks.sliding_window_view(np.arange(5.0), 2)
    for array in (x, np.broadcast_to(np.arange(3.0), (2, 3))):
        with pytest.raises((ValueError, TypeError)):
            compiled(squares, grad=True).grad(array)


# Independence of results.


def test_a_gradient_that_is_zero_is_zero() -> None:
    def ignores(x, y):
        y[0] = x[0]
        return (y[1:] * y[1:]).sum()

    gx, gy = compiled(ignores, grad=True).grad(np.arange(3.0), np.arange(3.0), wrt=(0, 1))
    assert gx.tolist() == [0.0, 0.0, 0.0]
    assert gy.tolist() == [0.0, 2.0, 4.0]


def test_a_constant_result_has_gradient_zero() -> None:
    def constant(x):
        x[:] = 2.0
        return x.sum()

    assert compiled(constant, grad=True).grad(np.arange(3.0)).tolist() == [0.0, 0.0, 0.0]
