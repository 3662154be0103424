"""Lists and comprehensions outside the language are refused: where, what, and the way out."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from mutad.compiler.diagnostics import CompileError
from mutad.compiler.frontend.build import build_function

CASES: list[tuple[Callable[..., Any], tuple[str, ...], str, str]] = []


def refused(
    *arguments: str, at: str, says: str
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """The function is refused for these arguments, at the text `at`, with the words `says`."""

    def record(function: Callable[..., Any]) -> Callable[..., Any]:
        CASES.append((function, arguments, at, says))
        return function

    return record


@refused("f64[?]C", at="rows.append(u)", says="slice the array where they are used")
def changes_an_array_that_is_in_a_list(x):
    u = x * 2.0
    rows = [x * 0.5]
    for _ in range(3):
        rows.append(u)
        u += 1.0
    return rows[0].sum()


@refused("f64[?]C", at="rows.append(x)", says="slice the array where they are used")
def changes_an_item_that_is_an_argument(x):
    rows = []
    rows.append(x)
    rows[0][0] = 1.0
    return rows[0].sum()


@refused("f64[?]C", at="def returns_an_item", says="return a copy")
def returns_an_item_that_is_an_argument(x):
    rows = []
    rows.append(x)
    return rows[0]


@refused("f64[?]C", at="rows.append(row)", says="append a copy")
def puts_one_list_in_a_list_again_and_again(x):
    row = [x[0]]
    rows = []
    for _ in range(3):
        rows.append(row)
    return len(rows)


@refused("f64[?]C", at="row.append(1.0)", says="append a copy")
def puts_a_list_in_a_list_on_a_path(x):
    row = [x[0]]
    rows = []
    if x[1] > 0.0:
        rows.append(row)
    row.append(1.0)
    return len(rows)


@refused("f64[?]C", at="def returns_two_items", says="return copies")
def returns_two_items(x):
    rows = [[v] for v in x]
    return rows[0], rows[-1]


@dataclass
class Body:
    pos: Any
    vel: Any


@refused("f64[?]C", at="b.pos = b.pos * 2.0", says="in place")
def replaces_an_array_that_is_in_use(x):
    bodies = [Body(x * k, x + k) for k in range(3)]
    s = 0.0
    for b in bodies:
        old = b.pos
        b.pos = b.pos * 2.0
        s += old.sum()
    return s


@refused("f64[?]C", at="bodies[0].mass = 1.0", says="before the object is put")
def adds_an_attribute(x):
    bodies = [Body(v, v) for v in x]
    bodies[0].mass = 1.0
    return bodies[0].mass


@refused("f64[?]C", at="rows.append((x, 1.0, len))", says="tuples of them")
def appends_a_function(x):
    rows = []
    rows.append((x, 1.0, len))
    return rows[0][1]


@refused("f64[?]C", at="rows.append(x[None])", says="of rank 1 on one path")
def appends_arrays_of_two_ranks(x):
    rows = []
    rows.append(x * 2.0)
    rows.append(x[None])
    return rows[0].sum()


@refused("f64[?]C", at="made.append((1.0, 2.0))", says="one type in a list")
def mixes_numbers_and_tuples(x):
    made = [x[0]]
    made.append((1.0, 2.0))
    return made[0]


@refused("f32[?]C", at="made.append(0.1)", says="convert the items")
def mixes_precisions(x):
    made = [x[0]]
    made.append(0.1)
    return made[0]


@refused("f64[?]C", at="for v in x", says="before the loop")
def keeps_the_list_of_an_iteration_in_a_tuple(x):
    for v in x:
        last = (v, [v])
    return last[1][0]


@refused("f64[?]C", at="for i in range(3)", says="before the loop")
def keeps_the_method_of_a_list(x):
    s = 0.0
    for i in range(3):
        if i == 0:
            made = [x[0]]
            append = made.append
        append(x[i])
        s += made[-1]
    return s


@refused("f64[?]C", at="if i == 0", says="m[:] = ...")
def gives_a_list_of_a_loop_two_names(x):
    s = 0.0
    for i in range(3):
        if i == 0:
            made = [x[0]]
            other = made
        other.append(x[i])
        s += made[-1]
    return s


@refused("f64[?]C", at="for i in range(x.size)", says="m[:] = ...")
def changes_a_list_that_has_another_name(x):
    s, old = 0.0, [x[0]]
    for i in range(x.size):
        new = [x[i]]
        s += new[0] * old[-1]
        old = new
        new.append(x[0])
    return s


class Holder:
    def __init__(self, made):
        self.made = made


@refused("f64[?]C", at="if x[0] > 0", says="m[:] = ...")
def rebinds_the_list_of_an_object(x):
    held = Holder([x[0]])
    made = held.made
    if x[0] > 0:
        made = [x[1], x[2]]
    return sum(held.made) + sum(made)


@refused("f64[?]C", at="if x[0] > 0", says="m[:] = ...")
def rebinds_the_list_of_a_dict(x):
    made = [x[0]]
    table = {"made": made}
    if x[0] > 0:
        made = [x[1], x[2]]
    return sum(table["made"]) + sum(made)


@refused("f64[?]C", at="if x[0] > 0", says="m[:] = ...")
def rebinds_the_list_of_a_method(x):
    made = [x[0]]
    append = made.append
    if x[0] > 0:
        made = [x[1], x[2]]
        append(x[0])
    return sum(made)


@refused("f64[?]C", at="if x[0] > 0", says="m[:] = ...")
def rebinds_the_list_of_an_iterator(x):
    made = [x[0]]
    items = enumerate(made)
    if x[0] > 0:
        made = [x[1], x[2]]
    return sum(v for _, v in items) + sum(made)


@refused("f64[?]C", at="if x[0] > 0", says="m[:] = ...")
def rebinds_the_list_of_a_partial_call(x):
    made = [x[0]]
    total = functools.partial(sum, made)
    if x[0] > 0:
        made = [x[1], x[2]]
    return total() + sum(made)


@refused("f64[?]C", at="if x[0] > 0", says="m[:] = ...")
def rebinds_the_list_of_a_default(x):
    made = [x[0]]

    def first(of=made):
        return of[0]

    if x[0] > 0:
        made = [x[1], x[2]]
    return first() + sum(made)


@refused("f64[?]C", at="if x[0] > 0", says="m[:] = ...")
def binds_the_list_in_a_tuple(x):
    made, s = [x[2]], 0.0
    if x[0] > 0:
        pair = ([x[0]], x[1])
        made = pair[0]
        made.append(x[1])
        s += len(pair[0])
    return s + sum(made)


@refused("f64[?]C", at="made[1:2] += [1.0]", says="assign the slice")
def extends_a_slice(x):
    made = [v for v in x]
    made[1:2] += [1.0]
    return made[0]


@refused("f64[?]C", at="go(3)", says="one more axis")
def reads_a_list_in_another_order_in_a_function_that_calls_itself(x):
    rows = [x * k for k in range(4)]
    rows.reverse()

    def go(k):
        return 0.0 if k == 0 else rows[k].sum() + go(k - 1)

    return go(3)


@refused("f64[?]C", at="x in rows", says="write the loop")
def looks_for_an_array(x):
    rows = [x * k for k in range(x.size)]
    return x in rows


@refused("f64[?]C", at="rows == rows[1:]", says="np.stack(l)")
def compares_lists_of_arrays(x):
    rows = [x * k for k in range(x.size)]
    return rows == rows[1:]


@refused("f64[?]C", at="sorted([x, x])", says="are sorted")
def sorts_arrays(x):
    return sorted([x, x])[0]


@refused("f64[?]C", at="made.sort(cmp=max)", says="`key` and `reverse`")
def sorts_by_comparing(x):
    made = [v for v in x]
    made.sort(cmp=max)
    return made[0]


@refused("f64[?]C", at="made < x", says="np.array(l)")
def compares_with_an_array(x):
    made = [v for v in x]
    return made < x


@refused("f64[?]C", at="tuple(made)", says="use a list")
def makes_a_tuple_of_unknown_length(x):
    made = [v for v in x]
    return tuple(made)


@refused("f64[?]C", at="made + x[0]", says="np.array(l)")
def adds_a_number(x):
    made = [v for v in x]
    return made + x[0]


@refused("f64[?]C", at="[(w := v) for v in x]", says="write the loop")
def binds_in_a_comprehension_behind_a_call(x):
    return other(x), [(w := v) for v in x], w


def other(made):
    return made


@refused("f64[?]C", "py_int", at="if n", says="a list of its own")
def is_one_of_two_lists_with_other_names(x, n):
    a = [x[0]]
    b = [x[1]]
    if n > 0:
        made = a
    else:
        made = b
    made.append(1.0)
    return len(a) + len(b)


@pytest.mark.parametrize(
    ("function", "arguments", "at", "says"), CASES, ids=[c[0].__name__ for c in CASES]
)
def test_refused(
    function: Callable[..., Any], arguments: tuple[str, ...], at: str, says: str
) -> None:
    with pytest.raises(CompileError) as caught:
        build_function(function, arguments)
    error = caught.value
    assert says in str(error), str(error)
    lines, first = inspect.getsourcelines(function)
    span = error.span
    assert span is not None
    assert lines[span.line - first][span.column :].startswith(at), str(error)


def test_lists_have_no_methods_of_arrays() -> None:
    import mutad

    with pytest.raises(CompileError, match=r"np\.array"):
        mutad.compile(lambda x: x.sum())([1.0, 2.0])


def test_fixed_lists_are_read_like_tuples() -> None:
    import mutad

    def total(x):
        s = 0.0
        for row in [x, x * 2.0]:
            s += row.sum()
        return s

    assert mutad.compile(total)(np.ones(2)) == 6.0


def appended(rows, u):
    u[0] = 1.0
    rows.append(u)
    u[1] = 2.0


def changed_by_its_caller(x):
    rows = [x * 0.5]
    for k in range(3):
        u = x * k
        appended(rows, u)
        u += 1.0
    return rows[0].sum()


def test_an_array_that_a_function_appends_and_its_caller_changes_is_refused() -> None:
    with pytest.raises(CompileError, match="a function that it is passed to"):
        build_function(changed_by_its_caller, ("f64[?]C",))


def turns(items):
    items.reverse()


@pytest.mark.parametrize("items", [[[np.ones(2)], [np.ones(3)]], [np.ones(2), np.ones((2, 2))]])
def test_lists_of_lists_of_arrays_that_are_arguments_do_not_change(items: Any) -> None:
    import mutad

    with pytest.raises(CompileError, match="way out: change its arrays in place"):
        mutad.compile(turns)(items)


def takes_any(items, k):
    return items[k] * 2


def test_an_item_chosen_at_run_time_among_arrays_of_two_ranks_is_refused() -> None:
    import mutad

    with pytest.raises(CompileError, match=r"index of this item is dynamic.*rank 1.*rank 2"):
        mutad.compile(takes_any)([np.ones(2), np.ones((3, 3))], 1)


def an_argument(x, n):
    out = [x * 2.0]
    out.append(x)
    return out


def a_row_of_an_argument(x, n):
    out = []
    for row in x:
        out.append(row[1:])
    return out


def one_array_in_each_round(x, n):
    v, out = x * 2.0, []
    for _ in range(n):
        out.append(v)
    return out


def not_always_a_new_array(x, n):
    out, u = [], x * 2.0
    for i in range(n):
        if i % 2:
            u = u + 1.0
        out.append(u)
    return out


def its_first_array_twice(x, n):
    u = x * 2.0
    out = [u]
    for _ in range(n):
        out.append(u)
        u = u + 1.0
    return out


def starts_with_an_argument(x, n):
    out = []
    for _ in range(n):
        out.append(x)
        x = x + 1.0
    return out


def in_two_lists(x, n):
    p, q = [], []
    for i in range(n):
        v = x * i
        p.append(v)
        q.append((i, v))
    return p, q


def beside_the_list(x, n):
    out = []
    for _ in range(n):
        x = x * 2.0
        out.append(x)
    return out, x


@pytest.mark.parametrize(
    "function",
    [
        an_argument,
        a_row_of_an_argument,
        one_array_in_each_round,
        not_always_a_new_array,
        its_first_array_twice,
        starts_with_an_argument,
        in_two_lists,
        beside_the_list,
    ],
    ids=lambda f: f.__name__,
)
def test_an_array_in_a_returned_list_that_has_another_place_is_refused(function: Any) -> None:
    import mutad

    with pytest.raises(
        CompileError, match=r"(?s)list that is returned.*append\(.*way out: append a copy"
    ):
        mutad.compile(function)(np.ones((3, 3)), 3)


def a_list_and_its_row(x, n):
    rows = [[1.0], [2.0]]
    rows.append([x[0, 0]])
    return rows, rows[n - 2]


def a_list_and_its_array(x, n):
    out = []
    for i in range(n):
        out.append(x * i)
    return out, out[0]


def a_list_and_its_object(x, n):
    out, first = [], Body(x.sum(), 0.5)
    out.append(first)
    return out, first


@pytest.mark.parametrize(
    "function", [a_list_and_its_row, a_list_and_its_array, a_list_and_its_object]
)
def test_a_list_and_one_of_its_items_are_not_returned_together(function: Any) -> None:
    import mutad

    with pytest.raises(CompileError, match=r"a list and one of its"):
        mutad.compile(function)(np.ones((3, 3)), 3)


@pytest.mark.parametrize(
    "use", [lambda ws: ws[0], len, lambda ws: [w for w in ws]], ids=["item", "len", "loop"]
)
def test_a_long_list_of_arrays_is_not_looked_into(use: Any) -> None:
    import mutad

    with pytest.raises(
        CompileError, match=r"(?s)at most 256 items.*way out: pass one array of them"
    ):
        mutad.compile(lambda items: use(items))([np.ones(2)] * 257)


def lists_or_none(x):
    rows = [[x[0]]]
    rows.append(None)
    return len(rows)


def none_in_place_of_an_array(x):
    rows = [x * v for v in x]
    rows[0] = None
    return len(rows)


def an_array_in_place_of_none(x):
    rows = [None] * 3
    rows[1] = x * 2.0
    return len(rows)


def none_before_arrays(x):
    rows = [x * v for v in x]
    first = rows[0]
    rows.insert(0, None)
    return first.sum()


def arrays_or_none_that_change_places(x):
    rows = []
    rows.append(None)
    rows.append(x * 2.0)
    rows.reverse()
    return len(rows)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lists_or_none, "a list or None"),
        (none_in_place_of_an_array, "an array of f64, rank 1 in a list or None"),
        (an_array_in_place_of_none, "None or an array of f64, rank 1"),
        (none_before_arrays, "an array of f64, rank 1 in a list or None"),
        (arrays_or_none_that_change_places, "None or an array of f64, rank 1, and change places"),
    ],
)
def test_lists_and_arrays_that_move_are_not_mixed_with_none(function: Any, words: str) -> None:
    with pytest.raises(CompileError, match=rf"(?s)items of this list are {words}.*way out: keep"):
        build_function(function, ("f64[?]C",))


def of_numbers_or_none(x):
    items = [x[0]]
    items.append(None)
    return np.array(items).sum()


def of_pairs_with_none(x):
    items = [(x[0], None)]
    items.append((x[1], 1.0))
    return np.array(items).sum()


def of_objects(x):
    items = []
    for v in x:
        items.append(Body(v, 0.5))
    return np.array(items).sum()


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (of_numbers_or_none, "way out: use a list"),
        (of_pairs_with_none, "way out: make arrays of their items"),
        (of_objects, "way out: use a list"),
    ],
)
def test_no_array_is_made_of_what_is_no_number(function: Any, words: str) -> None:
    with pytest.raises(CompileError, match=rf"(?s)np.array\(items\).*{words}"):
        build_function(function, ("f64[?]C",))


def pops_without_a_key(x):
    return {"a": x[0]}.pop()


def updates_with_two(x):
    d = {"a": x[0]}
    d.update({"a": x[1]}, {"a": x[2]})
    return d["a"]


@pytest.mark.parametrize("function", [pops_without_a_key, updates_with_two])
def test_methods_of_dicts_that_are_called_with_other_arguments(function: Any) -> None:
    import mutad

    with pytest.raises(CompileError, match=r"the arguments of \."):
        mutad.compile(function, opt=1)(np.ones(3))
