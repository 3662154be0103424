"""What is refused of objects: the place, and the words that matter."""

import enum
from dataclasses import dataclass, replace

import numpy as np
import pytest

import mutad


@dataclass
class Body:
    x: np.ndarray
    mass: float = 1.0
    label: object = None


class Setting:
    def __setattr__(self, name, value):
        super().__setattr__(name, value)


class Made:
    def __new__(cls):
        return object.__new__(cls)


class Mode(enum.Enum):
    A = 1
    B = 2


class Logger:
    def __init__(self):
        self.lines = set()

    def write(self, text):
        self.lines.add(text)


def body(mass=2.0):
    return Body(np.ones(3), mass)


def assigns_after_a_join(a, b, c):
    s = a if c > 0 else b
    s.mass = 3.0
    return a.mass


def assigns_to_one_of_two(a, b, c):
    s = a if c > 0 else b
    a.mass = 3.0
    return s.mass


def returns_what_may_be_an_argument(a, c):
    if c > 0:
        a = replace(a, mass=1.0)
    return a


def first_assigned_in_a_loop(a, n):
    for k in range(n):
        a.extra = k
    return a.mass


def depends_on_the_path(a, c):
    if c > 0:
        a.extra = 1.0
    return a.mass


def changes_type(a, c):
    if c > 0:
        a.mass = a.x
    return 1.0


def unknown_attribute(a):
    return a.weight


def unknown_method(a):
    return a.weigh()


def reads_a_set(a):
    return a.label.lines.add(1)


def computed_key(d, k):
    return d["a"] + d[k]


def missing_key(d):
    return d["z"]


def key_added_in_a_loop(d, n):
    for _ in range(n):
        d["new"] = 1.0
    return d["a"]


def arithmetic(a):
    return a + 1


def length(a):
    return len(a)


def loops_over(a):
    for _ in a:
        pass


def unpacks(a):
    x, y = a
    return x


def of_strange_classes(x):
    return Made()


def strings_by_path(x):
    kind = "positive" if x > 0 else "negative"
    return kind + "ly"


def enum_by_number(k):
    return 1.0 if Mode(k) is Mode.A else 2.0


def replaces_unknown(a):
    return replace(a, weight=1.0)


CASES = [
    (assigns_after_a_join, (body(), body(), 1.0), "one object or another", "s.mass"),
    (assigns_to_one_of_two, (body(), body(), 1.0), "this Body is one object or another", "a.mass"),
    (returns_what_may_be_an_argument, (body(), 1.0), "is an argument depends on the path", ""),
    (
        first_assigned_in_a_loop,
        (body(), 3),
        "`a.extra` is assigned for the first time in a loop",
        "",
    ),
    (depends_on_the_path, (body(), 1.0), "whether `a` has `extra`", ""),
    (changes_type, (body(), 1.0), "`a.mass` is", "if c > 0"),
    (unknown_attribute, (body(),), "'Body' object has no attribute 'weight'", "a.weight"),
    (unknown_method, (body(),), "'Body' object has no attribute 'weigh'", "a.weigh"),
    (
        reads_a_set,
        (Body(np.ones(2), 1.0, Logger()),),
        "objects of class set are not compiled",
        "",
    ),
    (computed_key, ({"a": 1.0}, 2), "key is known only at run time", "d[k]"),
    (missing_key, ({"a": 1.0},), "the dict has no key 'z'", "d["),
    (key_added_in_a_loop, ({"a": 1.0}, 3), "the key 'new' is added to a dict in a branch", ""),
    (arithmetic, (body(),), "`+` of `a`, a Body and a number", "a + 1"),
    (length, (body(),), "object of type 'Body' has no len()", "len(a)"),
    (loops_over, (body(),), "a loop over `a`, a Body", "a"),
    (unpacks, (body(),), "a loop over `a`, a Body", ""),
    (of_strange_classes, (1.0,), "its class defines __new__", "Made()"),
    (strings_by_path, (1.0,), "this is the string 'positive' or", ""),
    (enum_by_number, (1,), "which Mode this is depends on a run-time value", "Mode(k)"),
    (replaces_unknown, (body(),), "Body has no field 'weight'", "replace("),
]


@pytest.mark.parametrize(
    ("function", "args", "words", "source"), CASES, ids=lambda v: getattr(v, "__name__", "")
)
def test_refused(function, args, words, source):
    with pytest.raises(mutad.CompileError) as caught:
        mutad.compile(function)(*args)
    assert words in str(caught.value)
    assert source in str(caught.value)
    assert caught.value.span is not None


def test_arguments_of_classes_with_a_will_of_their_own():
    with pytest.raises(mutad.CompileError, match="its class defines __setattr__"):
        mutad.compile(lambda s: s)(Setting())


def test_objects_are_handed_through_but_not_looked_into():
    def f(a):
        a.mass += 1.0
        return a.mass

    a = Body(np.ones(2), 1.0, Logger())
    logger = a.label
    assert mutad.compile(f)(a) == 2.0
    assert a.label is logger


def test_sets_are_no_arguments():
    for kind in (set, frozenset):
        with pytest.raises(
            TypeError, match=f"argument 'xs': .*{kind.__name__} is not supported: pass"
        ):
            mutad.compile(lambda xs: len(xs))(kind([1.0]))


def test_long_lists_of_objects_are_handed_through():
    def f(h):
        h["n"] += 1
        return h["n"]

    def g(h):
        return len(h["lines"])

    h = {"n": 1, "lines": [{"line": k} for k in range(1000)]}
    assert mutad.compile(f)(h) == 2
    with pytest.raises(mutad.CompileError):
        mutad.compile(g)(h)
