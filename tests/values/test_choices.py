"""Values whose kind is known at run time only: functions chosen at run time, None or a number."""

import enum
import functools
import math

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees, outcome

from mutad import CompileError, check_gradient, compile

programs = WholePrograms()
on = programs.on


def square(v):
    return v * v


def cube(v):
    return v * v * v


def powered(v, n):
    return v**n


POWERS = (square, cube, math.sin)
LISTED = [square, cube, functools.partial(powered, n=2.0)]
ACTIVATIONS = {"square": square, "cube": cube, "tanh": np.tanh, "same": lambda v: v}


class Kind(enum.Enum):
    LINEAR = 1
    QUADRATIC = 2


class Layer:
    def __init__(self, w, activation):
        self.w = w
        self.activation = activation

    def __call__(self, v):
        return self.activation(self.w * v)

    def twice(self, v):
        return self(self(v))

    def once(self, v):
        return self(v)


@on((0.7, 1.3, 0.4), (0.3, 1.3, 0.4))
def one_function_or_another(x):
    g = math.sin if x[0] > 0.5 else math.cos
    return g(x[1]) * g(x[2])


@on()
def an_item_of_a_tuple_of_functions(x):
    s = 0.0
    for k in range(x.size):
        s += POWERS[k](x[k]) + LISTED[-1 - k](x[k])
    return s


@on()
def an_item_of_a_list_of_functions(x):
    functions = [math.sin, square, lambda v: 2.0 * v]
    s = 0.0
    for i in range(x.size):
        s += functions[(i + int(x[0])) % 3](x[i])
    return s


@on((1.5, 1.3, 0.4), (3.5, 1.3, 0.4), (-3.5, 1.3, 0.4), (-4.5, 1.0, 1.0))
def a_subscript_that_may_be_out_of_range(x):
    return POWERS[int(x[0])](x[1])


@on()
def functions_by_name(x):
    s = 0.0
    for name in ("square", "tanh", "same"):
        s += ACTIVATIONS[name](x[1])
    return s + ACTIVATIONS["cube"](x).sum()


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def a_name_that_the_path_chooses(x):
    kind = "square" if x[1] > 1.0 else "tanh"
    s = ACTIVATIONS[kind](x[0])
    if kind == "square":
        s *= 2.0
    return s


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def a_function_that_a_loop_changes(x):
    f = square
    s = 0.0
    for v in x:
        s += f(v)
        if v > 1.0:
            f = cube
    return s


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def a_function_or_none(x):
    f = None
    if x[1] > 1.0:
        f = square
    return f(x[0]) if f is not None else 2.0 * x[2]


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def none_is_not_callable(x):
    f = None
    if x[1] > 1.0:
        f = square
    return f(x[0])


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def nested_functions(x):
    k = x[2]

    def double(v):
        return k * v

    def half(v):
        return v / k

    g = double if x[1] > 1.0 else half
    return g(x[0]) + (lambda f: f(x[1]))(g)


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def methods_and_attributes(x):
    layer = Layer(x[0], math.tanh if x[1] > 1.0 else square)
    step = layer.twice if x[1] > 0.5 else layer.once
    return step(x[2])


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def members_of_an_enumeration(x):
    kind = Kind.QUADRATIC if x[1] > 1.0 else Kind.LINEAR
    scale = kind.value
    return scale * x[0] if kind is Kind.LINEAR else scale * x[0] * x[0]


@on((0.7, 1.3, 0.4), (0.4, 1.3, 0.7), (0.5,))
def none_until_something_is_found(x):
    best = None
    for v in x:
        if best is None or v < best:
            best = v
    return best * best if best is not None else 0.0


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def a_helper_that_may_find_nothing(x):
    def find(limit):
        for v in x:
            if v > limit:
                return v * v
        return None

    found = find(1.0)
    if found is None:
        return x.sum()
    return found * 2.0


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def the_value_of_the_step_before(x):
    before, s = None, 0.0
    for v in x:
        if before is not None:
            s += (v - before) ** 2
        if v > 0.35:
            before = v
    return s


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def an_array_or_none(x):
    y = x * 2.0 if x[1] > 1.0 else None
    if y is None:
        return x.sum()
    return (y * y).sum()


@on((0.7, 1.3, 0.4), (0.7, 0.3, 0.4))
def isinstance_of_a_choice(x):
    y = 2.0 if x[1] > 1.0 else None
    return x[0] * 3.0 if isinstance(y, float) else x[2]


@on((0.7, 0.3, 0.9))
def words_in_tuples_of_a_list(x):
    book = [("call", 0.2, 3.0), ("put", 0.5, 2.0)]
    kinds = {"call": lambda s, k: max(s - k, 0.0), "put": lambda s, k: max(k - s, 0.0)}
    stack, s = [("start", 0, 1.0)], 0.0
    while stack:
        kind, i, w = stack.pop()
        if kind == "leaf":
            s += w * x[i]
        elif i < 2:
            stack.append(("leaf", i, w * x[i]))
            stack.append(("node", i + 1, w * 0.5))
    return s * sum(q * kinds[n](x[0], k) for n, k, q in book)


@on((0.7, 0.3, 0.9))
def members_and_none_in_lists(x):
    kinds, found = [], [None] * 3
    for i, v in enumerate(x):
        kinds.append(Kind.LINEAR if v > 0.5 else Kind.QUADRATIC)
        if v > 0.5:
            found[i] = v * 2.0
    found.append(None)
    found.reverse()
    s = 0.0
    for kind, v in zip(kinds, x):
        s += v if kind is Kind.LINEAR else v * v
    return s * sum(v * v for v in found if v is not None) + len(found)


@on((0.7, 0.3, 0.9))
def lists_of_other_words_joined(x):
    a = ["p", "p", "p"]
    b, c = a[1:], [*a, "q"]
    d, e = c * 2, [None] * 2 + [1.0]
    e[0] = x[0]
    g = e[::2]
    g[1] = None
    b[0] = "z"
    c[1:3] = ["u", "v", "w"]
    d[::4] = ["s", "t"]
    s = 0.0
    for k, n in enumerate(b + c + d):
        if n == "p":
            s += k
        elif n in ("z", "w"):
            s += x[1] * k
    for v in e + g:
        if v is not None:
            s += v * x[2]
    return s + len(b) + 10 * len(c) + 100 * len(d) + 1000 * len(g)


@on((0.7, 0.3, 0.9))
def dicts_asked_for_keys_that_the_run_decides(x):
    kind, acc = Kind.LINEAR, 0.0
    counts = {Kind.LINEAR: 0, Kind.QUADRATIC: 0}
    rates = {0: 0.5, 2: x[0], 5: 1.5}
    for i in range(6):
        counts[kind] += 1
        if i in rates:
            acc += rates[i] * x[i % 3]
        acc += rates.get(i, 0.1) * i
        if i == 2:
            rates[i] += x[1]
        kind = Kind.LINEAR if x[i % 3] > 0.5 else Kind.QUADRATIC
        counts[kind] = counts[kind] + (kind in counts)
    return acc * counts[Kind.LINEAR] + counts[Kind.QUADRATIC]


@on((0.7, 0.3, 0.9), (0.1, 0.2, 0.2))
def two_of_which_only_the_run_knows(x):
    """A machine's state and the one before, compared."""
    kind, old, switches, acc = Kind.LINEAR, None, 0, 0.0
    for v in x:
        old = kind
        kind = Kind.QUADRATIC if v > 0.5 else Kind.LINEAR
        switches += kind is not old
        if kind == old:
            acc += v
        if kind != old and kind is Kind.QUADRATIC:
            acc += 2.0 * v * v
    return acc * switches


@on((0.4, 0.6, 0.7), (0.7, 0.3, 0.4))
def an_item_is_read_before_what_is_added_to_it(x):
    d = {0: x[0], 1: x[1]}

    def changes_it():
        d[1] = d[1] * 10.0
        return 1.0

    d[1 if x[2] > 0.5 else 0] += changes_it()
    rows = {"p": x * 1.0, "q": x * 2.0}
    which = "p" if x[2] > 0.5 else "q"
    rows[which] *= x[0]
    old = rows[which]
    old[0] = 3.0 * x[1]
    return d[0] * d[1] + rows["p"].sum() + 2.0 * rows["q"].sum()


class Moments:
    def __init__(self):
        self.mean, self.best = None, None

    def see(self, v):
        if self.mean is None:
            self.mean = v * 1.0
        else:
            self.mean = 0.5 * self.mean + 0.5 * v
        if self.best is None or v[0] < self.best:
            self.best = v[0]


@on((0.7, 1.3, 0.4))
def fields_that_are_none_at_first(x):
    seen = Moments()
    for k in range(3):
        seen.see(x * (k + 1))
        if seen.best is not None and seen.best > 0.5:
            seen.best = seen.best * x[1]
    return (seen.mean * x).sum() + seen.best


@on((0.7, 1.3, 0.4))
def a_field_assigned_where_another_was_none(x):
    seen = Moments()
    for _ in range(3):
        if seen.mean is None:
            seen.mean, seen.best = np.zeros_like(x), np.zeros_like(x)
        seen.mean = 0.9 * seen.mean + x
        seen.best = 0.5 * seen.best + seen.mean * x
    return (seen.mean * seen.best).sum()


def none_where_a_value_is_asked_for(x):
    k = int(x[0] + 0.5)
    a, b = (x * 2.0, x[1]) if k > 15 else (None, None)
    match k:
        case 0:
            return 2.0 * b
        case 1:
            return a.sum()
        case 2:
            return a[0]
        case 3:
            return -b
        case 4:
            return float(b < 1.0)
        case 5:
            return np.sqrt(b)
        case 6:
            x[0] += b
        case 7:
            return len(a) * 1.0
        case 8:
            return a @ x
        case 9:
            b += 1.0
        case 10:
            a += x
        case 11:
            return sum(v for v in a)
        case 12:
            return x[0] ** b
        case 13:
            return max(b, 1.0)
        case 14:
            a[0] = 1.0
        case 15:
            return math.sin(b)
    return a.sum() + 2.0 * b + max(b, 1.0) + np.sqrt(b)


# Nested functions with defaults.


@on((0.7, 1.3, 0.4), (0.3, 1.3, 0.4), (-0.5, 0.2, 0.6))
def nested_functions_with_defaults_on_two_paths(x):
    a = x * 2.0
    if x[0] > 0.5:
        k = x[0]

        def g(v, k=k, *, w=a):
            return (v * k * w).sum()

    elif x[0] > 0:

        def g(v, k=x[1] * 2.0, *, w=1.0):
            return (v + k * w).sum()

    else:
        g = None
    a[0] = k = 7.0
    return x[2] * k if g is None else g(x) + g(x, 1.0, w=2.0)


@on()
def nested_functions_that_iterations_define(x):
    total = 0.0 * x[0]
    for i in range(4):
        for j in range(2):

            def g(v, k=x[j] * i):
                return v * k

            def h(v, f=g):
                return f(v) + 1.0

        if i % 2:

            def g(v, k=x[2], b=i):
                return v - k + b

        total += g(x[2]) * h(x[1])
    return total


def region(v):
    if v > 1.0:
        return 3
    if v > 0.5:
        return 5
    return None


@on((0.3, 1.3, 0.4), (0.7, 0.9, 0.4), (1.7, 1.3, 0.4))
def compares_what_may_be_none(x):
    found, second = region(x[0]), region(x[1])
    least = None if x[0] > 1.5 else x[2]
    scale = 7.0
    if found == 3:
        scale = 2.0
    elif 5.0 == found and found != second:
        scale = x[0]
    if least != x[2] or second == found:
        scale = scale + x[1]
    return scale * x[2] * x[2]


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_as_in_cpython_and_differences(function, point):
    agrees(function, point)


def test_none_where_a_value_is_asked_for_raises_what_python_raises():
    compiled = compile(none_where_a_value_is_asked_for, grad=True, cache=False)
    for k in range(17):
        mine, theirs = np.array([k, 1.3, 0.4]), np.array([k, 1.3, 0.4])
        got, want = outcome(compiled, mine), outcome(none_where_a_value_is_asked_for, theirs)
        assert got == want, k
        np.testing.assert_array_equal(mine, theirs)
    check_gradient(compiled, np.array([16.0, 1.3, 0.4]))


def stores_what_may_be_none(x):
    x[0] = x[2] if x[1] > 1.0 else None
    return x[0]


def numbers_or_functions(x):
    return x[0] if x[1] > 1.0 else square


def functions_of_finished_calls(x):
    def times(k):
        return lambda v: k * v

    g = times(x[0]) if x[1] > 1.0 else times(x[2])
    return g(x[1])


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (stores_what_may_be_none, "test `is None` first"),
        (numbers_or_functions, "an object on another"),
        (functions_of_finished_calls, "an object on each path"),
    ],
)
def test_refused(function, words):
    with pytest.raises(CompileError, match=words) as caught:
        compile(function)(np.array([0.7, 1.3, 0.4]))
    assert caught.value.span is not None
