"""A store to a read-only array raises where it is reached, in NumPy's words; until then all is done."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import CompileError, Const, Duplicated


def stores_if(x, y, n):
    y[0] = 5.0
    if n > 1:
        x[0] = 1.0
    return x[0] + y[0]


def in_a_loop(x, y, n):
    for i in range(n):
        y[i] += 1
        x[i] = y[i]
    return y.sum()


def beyond_the_end(x, y, n):
    y[1] = n
    x[9] = 1.0


def reads_before_it_stores(x, y, n):
    x[0] = y[9]


def updates_beyond_the_end(x, y, n):
    x[9] += 1.0


def adds_in_place(x, y, n):
    y[1] = n
    x += y


def adds_what_does_not_fit(x, y, n):
    x += y[:3]


def assigns_what_does_not_fit(x, y, n):
    x[...] = y[:3]


def updates_an_element(x, y, n):
    y[1] = n
    x[2] *= 3.0


def updates_a_view_of_a_view(x, y, n):
    w = x[1:][::-1]
    w[:2] -= y[:2]


def through_the_transpose(x, y, n):
    x.T[0] = 1.0


def an_empty_slice(x, y, n):
    x[0:0] = 1.0


def in_a_function(x, y, n):
    y[2] = 1.0
    stores(x)


def stores(z):
    z[0] = 1.0


def caught(x, y, n):
    try:
        y[1] = 3.0
        x[0] = 1.0
    except ValueError:
        y[2] = 4.0
        return 1.0
    return 2.0


def chosen(x, y, n):
    (x if n > 1 else y)[0] = 1.0
    return y.sum()


def swapped(x, y, n):
    a, b = y, x
    for i in range(n):
        a[i] = b[i] + 1
        a, b = b, a
    return b.sum()


def an_item_of_a_list(x, y, n):
    arrays = [x, y]
    arrays[n % 2][0] = 1.0
    return y.sum()


def rebound(x, y, n):
    for _ in range(n):
        x = x * 2
        x[0] = 1.0
    return x.sum()


def stored_to_and_rebound(x, y, n):
    for _ in range(n):
        x[0] = 1.0
        x = x * 2
    return x.sum()


def masked(x, y, n):
    x[y > 100] = 1.0


def updates_a_mask(x, y, n):
    x[y > 100] += 1.0


def by_an_index_array(x, y, n):
    x[[0, 1]] = 1.0


def updates_by_an_index_array(x, y, n):
    x[[0, 1]] += 1.0


def filled(x, y, n):
    x.fill(1.0)


def sorted_in_place(x, y, n):
    x.sort()


def partitioned(x, y, n):
    x.partition(1)


def copied_to(x, y, n):
    np.copyto(x, y)


def put(x, y, n):
    np.put(x, 0, 1.0)


def placed(x, y, n):
    np.place(x, y > 0, 1.0)


def put_by_a_mask(x, y, n):
    np.putmask(x, y > 0, 1.0)


def diagonal_filled(x, y, n):
    np.fill_diagonal(x.reshape(1, 5), 1.0)


def out_of_a_ufunc(x, y, n):
    y[0] = 1.0
    np.add(y, y, out=x)


def out_of_a_product(x, y, n):
    np.matmul(np.ones((5, 5)), y, out=x)


def a_broadcast_view(x, y, n):
    y[0] = 2.0
    np.broadcast_to(y, (2, 5))[0, 0] = 1.0


def a_broadcast_view_of_the_same_shape(x, y, n):
    b = np.broadcast_to(y, (5,))
    y[0] = 4.0
    b[1] = b[0]


def a_diagonal(x, y, n):
    np.diagonal(y.reshape(1, 5))[0] = 1.0


def only_read(x, y, n):
    y[0] = x[0]
    return x


def counts_down(z, w, k):
    if k == 0:
        return z[0]
    w[k] += 1.0
    if k == 2:
        z[1] = 7.0
    return z[-1] + counts_down(z[1:] if k % 2 else z, w, k - 1)


def by_a_recursive_function(x, y, n):
    return counts_down(x, y, n) + y.sum()


def caught_around_a_recursive_function(x, y, n):
    try:
        return counts_down(x, y, n)
    except ValueError:
        y[0] = 9.0
    return -1.0


def change_places(z, w, k):
    if k == 0:
        return z[0] - w[1]
    if k == 2:
        w[0] += 1.0
    return change_places(w, z, k - 1)


def by_a_recursive_function_that_swaps(x, y, n):
    return change_places(x, y, n)


def by_a_recursive_closure(x, y, n):
    def inner(k):
        if k == 0:
            return x[0]
        y[0] += 1.0
        if k == 2:
            x[1] = 3.0
        return inner(k - 1)

    return inner(n) + y[0]


class Held:
    def __init__(self, first, second):
        self.first = first
        self.second = second


def walks(held, k):
    if k == 0:
        return held.first[0]
    held.second[0] += 1.0
    if k == 2:
        held.first[0] += 1.0
    return walks(held, k - 1)


def by_a_recursive_function_through_a_field(x, y, n):
    return walks(Held(x, y), n)


def at_elements(x, y, n):
    np.add.at(x, [0, 0], y[n])
    np.multiply.at(x, x > 2.0, 2.0)
    np.subtract.at(x, 1, y[2])
    return x.sum()


def at_rows_of_one_element(x, y, n):
    np.add.at(x.reshape(5, 1), [0, 1], 1.0)
    np.add.at(x, slice(1, 2), np.ones(1))
    np.add.at(x, (None, 0), 2.0)
    return x.sum()


def at_rows(x, y, n):
    y[0] = 3.0
    if n > 0:
        np.add.at(x, slice(1, n), 1.0)
    np.add.at(np.broadcast_to(x, (2, 5)), [9], 1.0)


def at_a_subscript_beyond_the_end(x, y, n):
    np.add.at(x, n * 3, 1.0)


@mutad.opaque
def may_store(y, x, n):
    if n > 1:
        y[:] = x * n


@mutad.rule(may_store, overwrites="y", reads=("x", "y"))
def may_store_rule(y, x, n):
    if n.value > 1:
        x.shadow += y.shadow * n.value
        y.shadow[...] = 0.0


def by_a_function_with_a_rule(x, y, n):
    may_store(x, y, n)
    return x.sum()


def stores_some_times(y, x, n):
    if n > 1:
        y[:] = x * n


@mutad.rule(stores_some_times)
def stores_some_times_rule(y, x, n):
    if n.value > 1:
        x.shadow += y.shadow * n.value
        y.shadow[...] = 0.0


def by_a_compiled_function_with_a_rule(x, y, n):
    stores_some_times(x, y, n)
    return x.sum()


PROGRAMS = [
    stores_if, in_a_loop, beyond_the_end, reads_before_it_stores, updates_beyond_the_end, adds_in_place,
    adds_what_does_not_fit, assigns_what_does_not_fit, updates_an_element, updates_a_view_of_a_view,
    through_the_transpose, an_empty_slice, in_a_function, caught, chosen, swapped, an_item_of_a_list, rebound,
    stored_to_and_rebound, masked, updates_a_mask, by_an_index_array, updates_by_an_index_array, filled,
    sorted_in_place, partitioned, copied_to, put, placed, put_by_a_mask, diagonal_filled, out_of_a_ufunc,
    out_of_a_product, a_broadcast_view, a_broadcast_view_of_the_same_shape, a_diagonal, only_read,
    by_a_recursive_function, caught_around_a_recursive_function, by_a_recursive_function_that_swaps,
    by_a_recursive_closure, by_a_recursive_function_through_a_field, by_a_function_with_a_rule,
    by_a_compiled_function_with_a_rule,
]  # fmt: skip
STORE_ANYWAY = [at_elements, at_rows_of_one_element, at_rows, at_a_subscript_beyond_the_end]


def read_only(a: np.ndarray) -> np.ndarray:
    a.flags.writeable = False
    return a


def writable() -> np.ndarray:
    return np.arange(5.0)[::-1] + 0.5


ARRAYS: dict[str, Callable[[], np.ndarray]] = {
    "writable": writable,
    "read-only": lambda: read_only(np.array([3.5, 0.5, 2.5, 1.5, 4.5])),
    "a view of read-only memory": lambda: read_only(np.arange(10.0))[::2],
    "a broadcast": lambda: np.broadcast_to(2.5, 5),
    "bytes": lambda: np.frombuffer(np.arange(5.0).tobytes()),
}


def outcome(function: Callable[..., Any], args: tuple[Any, ...]) -> str:
    """What is returned or raised, and what the arguments are then."""
    try:
        result = function(*args)
    except Exception as error:
        result = type(error).__name__, str(error)
    return repr((result, args))


@pytest.mark.parametrize("program", [*PROGRAMS, *STORE_ANYWAY], ids=lambda p: p.__name__)
def test_like_numpy(program: Callable[..., Any]) -> None:
    compiled = mutad.compile(program, opt=1)
    for title, make in ARRAYS.items():
        if title == "a broadcast" and program in STORE_ANYWAY:
            continue  # an array that overlaps itself is never written: ValueError
        for n in (0, 1, 3):
            want = outcome(program, (make(), np.arange(5.0), n))
            assert outcome(compiled, (make(), np.arange(5.0), n)) == want, (title, n)


GRADIENTS = [
    stores_if,
    in_a_loop,
    adds_in_place,
    updates_an_element,
    chosen,
    swapped,
    rebound,
    caught,
    by_a_recursive_function,
    by_a_recursive_function_that_swaps,
    by_a_recursive_closure,
    at_elements,
    by_a_function_with_a_rule,
    by_a_compiled_function_with_a_rule,
]


def loss(program: Callable[..., Any]) -> Callable[..., Any]:
    def of_program(x, y, n):
        program(x, y, n)
        return (x * y).sum()

    return of_program


@pytest.mark.parametrize("program", GRADIENTS, ids=lambda p: p.__name__)
def test_gradient_calls_do_what_plain_calls_do(program: Callable[..., Any]) -> None:
    plain = loss(program)
    compiled = mutad.compile(plain, grad=True, opt=1)
    for n in (0, 1, 3):
        args, seen = ((ARRAYS["read-only"](), np.arange(5.0), n) for _ in range(2))
        want = outcome(plain, seen)
        shadows = np.full(5, 2.0), np.full(5, 3.0)
        parts = *map(Duplicated, args[:2], shadows), Const(n)
        if "ValueError" in want:
            for call in (compiled.value_and_grad, compiled.vjp):
                assert outcome(call, args) == want
                args[1][:] = np.arange(5.0)
            with pytest.raises(ValueError, match="read-only"):
                compiled.pullback(*parts, cotangent=1.0)
            np.testing.assert_array_equal(args[1], seen[1])
            assert (shadows[0] == 2.0).all()
            assert (shadows[1] == 3.0).all()
        else:
            value, gradients = compiled.value_and_grad(*args, wrt=("x", "y"))
            assert repr((None, args))[5:] == want[want.index(", (array") :]
            np.testing.assert_allclose(gradients, differences(plain, n), atol=1e-6)
            assert value == plain(ARRAYS["read-only"](), np.arange(5.0), n)


def differences(f: Callable[..., Any], n: int) -> list[list[float]]:
    """Central differences with respect to both arrays, the first of which is read-only."""
    found: list[list[float]] = []
    for k in range(2):
        found.append([])
        for i in range(5):
            ends: list[float] = []
            for h in (1e-4, -1e-4):
                arrays = ARRAYS["read-only"]().copy(), np.arange(5.0)
                arrays[k][i] += h
                ends.append(f(read_only(arrays[0]), arrays[1], n))
            found[-1].append((ends[0] - ends[1]) / 2e-4)
    return found


def test_writable_arrays_take_the_code_that_checks_nothing() -> None:
    compiled = mutad.compile(in_a_loop, opt=1)
    assert "read-only" not in compiled.inspect("frontend", writable(), writable(), 2)
    x, y = ARRAYS["read-only"](), np.arange(5.0)
    assert outcome(compiled, (x, y, 0)) == outcome(in_a_loop, (x, y, 0))
    assert compiled(writable(), np.arange(5.0), 3) == 13.0
    x.flags.writeable = True
    assert compiled(x, y, 1) == 11.0
    x.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        compiled(x, y, 1)


def test_one_memory_under_two_names() -> None:
    """A read-only view of an array is another argument than the array itself."""
    compiled = mutad.compile(stores_if, opt=1)
    for order in (1, -1):
        for n in (0, 3):
            pairs = []
            for _ in range(2):
                x = np.arange(5.0)
                pairs.append((x, read_only(x.view()))[::order])
            assert outcome(compiled, (*pairs[0], n)) == outcome(stores_if, (*pairs[1], n))


@dataclass
class Body:
    x: np.ndarray
    t: float = 0.0


def moves(b, v, n):
    b.t += 1.0
    if n > 1:
        b.x += v
    return b.x.sum()


def of_a_pair(p, y, n):
    p[1][0] = 7.0
    if n > 1:
        p[0][1] = 8.0
    return p[0].sum()


def test_fields_and_tuples() -> None:
    for make, program in (
        (lambda a: Body(a), moves),
        (lambda a: (a, np.zeros(2)), of_a_pair),
    ):
        compiled = mutad.compile(program, opt=1)
        for array in (writable, ARRAYS["read-only"], writable):
            for n in (0, 3):
                want = outcome(program, (make(array()), np.ones(5), n))
                assert outcome(compiled, (make(array()), np.ones(5), n)) == want


def test_arrays_from_outside() -> None:
    buffer = np.zeros(3)

    def accumulates(x, n):
        x[0] = 9.0
        if n > 0:
            buffer[:] += x
        return buffer.sum()

    compiled = mutad.compile(accumulates, grad=True, opt=1)
    assert compiled(np.ones(3), 1) == 11.0
    buffer.flags.writeable = False
    assert compiled(np.ones(3), 0) == 11.0
    assert compiled.grad(np.ones(3), 0).tolist() == [0.0, 0.0, 0.0]
    x = np.ones(3)
    for call in (compiled, compiled.grad, compiled.vjp):
        with pytest.raises(ValueError, match="output array is read-only"):
            call(x, 1)
        assert x[0] == 9.0


def test_random_draws() -> None:
    def draws(rng, x, n):
        if n > 0:
            rng.random(out=x)
        if n < 0:
            rng.shuffle(x)
        return x.sum()

    compiled = mutad.compile(draws, opt=1)
    for n in (0, 1, -1):
        generators = np.random.default_rng(3), np.random.default_rng(3)
        want, got = (
            outcome(lambda x, f=f, rng=rng: f(rng, x, n), (ARRAYS["read-only"](),))
            for f, rng in zip((draws, compiled), generators, strict=True)
        )
        assert got == want
        assert generators[0].random() == generators[1].random()


def test_functions_that_are_not_compiled() -> None:
    @mutad.opaque
    def may_store(x, n):
        if n > 1:
            x[0] = 1.0

    compiled = mutad.compile(lambda x, n: may_store(x, n), opt=1)
    compiled(ARRAYS["read-only"](), 0)
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        compiled(ARRAYS["read-only"](), 3)


def descends(z, k):
    if k == 0:
        return z[0]
    z[0] += 1.0
    return descends(z, k - 1)


def test_what_is_not_known_is_refused() -> None:
    def called(x, n):
        return descends(x if n > 1 else np.zeros(2), n)

    def with_a_rule(x, n):
        stores_some_times(x if n > 1 else np.zeros(2), np.ones(2), n)
        return x.sum()

    for program, line in (called, "descends(x if"), (with_a_rule, "stores_some_times(x if"):
        compiled = mutad.compile(program, grad=True, opt=1)
        compiled.grad(np.ones(2), 3)
        with pytest.raises(CompileError, match="known only at run time") as caught:
            compiled.grad(read_only(np.ones(2)), 0)
        assert line in str(caught.value)
    x = np.ones(5)
    with pytest.raises(CompileError, match="known only at run time"):
        mutad.compile(chosen, opt=1)(x, read_only(x.view()), 0)
