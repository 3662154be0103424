"""`*t` and `**d` in calls, displays and assignments, `**kwargs` parameters, dicts made of dicts."""

import functools

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

from mutad import CompileError, compile

programs = WholePrograms()
on = programs.on


def keywords_only(v, *, p=1.0, q=2.0):
    return v * p + q


def collected(a, /, **more):
    more["t"] = more.get("t", 1.0) * 2.0
    return a * more["s"] + more["t"] + len(more)


def handed_on(f, *args, **kwargs):
    return f(*args, **kwargs)


def doubled(f):
    @functools.wraps(f)
    def wrapper(*args, **kwargs):
        return 2.0 * f(*args, **kwargs)

    return wrapper


@doubled
def of_two(v, w=3.0):
    return v * v * w


@doubled
def of_doubled(v):
    return of_two(v) + v


def polynomial(t, a, b, c):
    return a + t * (b + t * c)


@on()
def keywords_that_are_no_parameters(x):
    return collected(x[0], s=x[1], t=x[2]) + collected(x[1], s=x[2])


@on()
def hands_arguments_on(x):
    return handed_on(keywords_only, x[0], p=x[1]) + handed_on(keywords_only, *(x[2],), q=x[0])


@on()
def a_dict_in_a_call(x):
    d = {"p": x[1], "q": x[2]}
    return keywords_only(x[0], **d) + keywords_only(x[1], **{**d, "q": 2.0})


@on()
def a_dict_call_in_a_call(x):
    return keywords_only(*[x[0]], **dict(p=x[1]))


@on()
def partial_with_keywords(x):
    g = functools.partial(keywords_only, p=3.0)
    return g(x[0]) + g(x[1], p=2.0)


@on()
def a_decorated_function(x):
    return of_two(x[0]) + of_two(x[1], w=x[2]) + of_doubled(x[1])


@on()
def inner_function_with_keywords(x):
    def scaled(v, **options):
        return v * options["k"]

    return scaled(x[0], k=x[1])


@on()
def first_and_rest_of_a_tuple(x):
    a, *b = (x[0], x[1], x[2])
    *c, d = b
    return a * b[0] + b[1] * len(c) + d


@on((0.5,), (0.5, 1.5), (0.5, 1.5, 2.5, 3.5), ())
def first_and_rest_of_a_vector(x):
    first, *rest = x
    return first * sum(rest) + len(rest)


@on((0.5,), (0.5, 1.5), (0.5, 1.5, 2.5, 3.5))
def both_ends_of_a_vector(x):
    a, *_, b = x
    return a * b


@on()
def tuples_in_displays(x):
    t = (1.0, *(x[0], x[1]))
    items = [*t, x[2]]
    return t[1] * t[2] + items[3] * items[1]


@on((0.5, 1.5, 2.5), (0.5, 1.5), (0.5, 1.5, 2.5, 3.5), ())
def a_vector_as_arguments(x):
    return polynomial(0.5, *x)


@on((0.5, 1.5), (0.5,), (0.5, 1.5, 2.5))
def a_vector_beside_a_keyword(x):
    return polynomial(0.5, *x, c=2.0)


POINTS = (), (0.5,), (0.5, 1.5), (0.5, 1.5, 2.5), (0.5, 1.5, 2.5, 3.5)


def with_defaults(a, b=1.5, c=2.0):
    return a * 2.0 + b * 3.0 + c * 5.0


def with_none(a, b=None, c=None):
    if b is None:
        return a * a
    return a * b if c is None else a * b * c


def keyword_too(a, b=1.5, *, k=3.0):
    return a * b + b * k


def nothing():
    return 1.0


class Scaled:
    def __init__(self, s):
        self.s = s

    def times(self, a, b=2.0):
        return a * b * self.s


@on(*POINTS)
def a_vector_and_defaults(x):
    return with_defaults(*x)


@on(*POINTS)
def a_vector_or_none(x):
    return with_none(*x)


@on(*POINTS)
def a_vector_behind_arguments(x):
    return with_defaults(x.sum(), *x)


@on(*POINTS)
def a_vector_before_the_last_keyword(x):
    return with_defaults(*x, c=7.0)


@on(*POINTS)
def a_vector_before_a_keyword_in_the_middle(x):
    return with_defaults(*x, b=7.0)


@on((0.5,), (0.5, 1.5), (0.5, 1.5, 2.5))
def a_vector_before_keywords_in_another_order(x):
    return with_defaults(*x, c=x[0], b=2.0)


@on((), (0.5, 1.5), (0.5, 1.5, 2.5))
def a_vector_and_a_keyword_only_argument(x):
    return keyword_too(*x, k=2.0)


@on((), (0.5,), (0.5, 1.5))
def a_vector_for_nothing(x):
    return nothing(*x)


@on(*POINTS)
def a_list_and_defaults(x):
    squares = [v * v for v in x if v > 0.0]
    return with_defaults(*squares)


@on((0.5,), (0.5, 1.5, 2.5))
def a_list_of_exactly_as_many(x):
    made = []
    for v in x:
        made.append(2.0 * v)
    return polynomial(0.5, *made)


@on((), (0.5, 1.5), (0.5, 1.5, 2.5))
def a_vector_for_a_method(x):
    return Scaled(3.0).times(*x)


@on((0.5,), (0.5, 1.5, 2.5, 3.5))
def a_vector_for_nested_functions(x):
    def inner(a, b=x[0], c=x.sum()):
        def deeper(p=2.0):
            return p * c

        return a * b * deeper(*x[1:2])

    return inner(*x)


@on((0.5, 1.5), (0.5, 1.5, 2.5))
def rows_of_a_matrix(x):
    def first(a, b=None):
        return a.sum() if b is None else (a * b).sum()

    return first(*np.outer(x, x)[:1]) + first(*np.outer(x, x))


@on((0.5, 1.5), (0.5, 1.5, 2.5, 3.5))
def a_wrong_number_is_caught(x):
    try:
        return with_defaults(*x)
    except TypeError:
        return -x[0]


@on(*POINTS)
def a_view_after_a_store(x):
    y = x[1:]
    y[:] = y * y
    return with_defaults(*y)


@on()
def dict_comprehensions(x):
    d = {k: x[i] for i, k in enumerate(("a", "b", "c")) if k != "b"}
    squares = {i: x[i] * x[i] for i in range(3)}
    return d["a"] * d["c"] + squares[1] * len(d)


@on()
def dicts_lose_items(x):
    d = {"a": x[0], "b": x[1]}
    t = d.pop("a")
    u = d.pop("z", 3.0)
    d.setdefault("c", x[2])
    return t * u * d["b"] * d["c"] * len(d)


@on()
def dicts_are_joined(x):
    d = {"a": x[0], "b": 1.0} | {"b": x[1]}
    d |= {"c": x[2]}
    return d["a"] * d["b"] * d["c"]


@on()
def membership_in_a_set(x):
    return x.sum() if x.size in {1, 2, 3} and x.size not in {4} else 0.0


@on()
def prints_items(x):
    print(*(x.size, "a"), *[1, 2])
    return x.sum()


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_as_in_cpython_and_differences(function, point):
    agrees(function, point)


def taking_all(*a):
    return a[0]


def unknown_length(x):
    return taking_all(*x)


def no_fixed_places(x):
    return with_defaults(*x, 2.0)


def twice_the_same_keyword(x):
    d = {"p": 1.0}
    return keywords_only(x[0], p=2.0, **d)


def removed_in_a_branch(x):
    d = {"a": 1.0, "b": 2.0}
    if x[0] > 0.5:
        d.pop("a")
    return d["b"] * x.sum()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (unknown_length, "of a sequence of run-time length"),
        (no_fixed_places, "of a sequence of run-time length"),
        (twice_the_same_keyword, "multiple values for keyword argument 'p'"),
        (removed_in_a_branch, "is removed from a dict"),
    ],
)
def test_refused(function, words):
    with pytest.raises(CompileError, match=words) as caught:
        compile(function)(np.array([0.7, 1.3]))
    assert caught.value.span is not None
