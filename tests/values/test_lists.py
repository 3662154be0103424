"""Lists: made, grown, shrunk, indexed, passed around, returned. CPython is the oracle of each."""

import numpy as np
import pytest
from python_oracle import Case, Programs

import mutad

programs = Programs()
on = programs.on


@on("f64[0]", "f64[1]", "f64[5]", "f32[4]", "i64[3]", "b1[3]")
def squares_appended(x):
    made = []
    for v in x:
        made.append(v * v)
    return len(made), made


@on("f64[1]", "f64[4]", "f64[0]")
def popped_again(x):
    made = []
    for v in x:
        made.append(v * v)
    last = made.pop()
    return last, made, len(made)


@on("f64[5] n", n="-9 -5 -1 0 3 4 5 7")
def item_of_any_sign(x, n):
    made = [v for v in x]
    return made[n]


@on("f64[5] n", n="-9 -5 -1 0 3 4 5 7")
def item_assigned(x, n):
    made = [v for v in x]
    made[n] = 7.5
    made[n] *= 2.0
    return made


@on("f64[4] n", n="-7 -4 -1 0 2 3 4")
def popped_in_the_middle(x, n):
    made = list(x)
    v = made.pop(n)
    del made[-1]
    return v, made


@on("f64[4] n", n="-9 -4 -1 0 2 4 9")
def inserted(x, n):
    made = list(x)
    made.insert(n, x[0] * 10.0)
    return made


@on("f64[5] n", n="-3 0 2 9")
def sliced(x, n):
    made = list(x)
    return made[n:], made[:n], made[::-1], made[1:4:2], made[:]


@on("f64[3]", "f64[0]")
def added_and_repeated(x):
    made = list(x)
    return made + made, made * 3, [1.0, 2.0] * 2, [0] * len(made), 2 * made, made * -1


@on("f64[4]")
def extended(x):
    made = [x[0]]
    made.extend(x)
    made.extend(made)
    made += [x[1], x[2]]
    made.extend((x[3], x[0]))
    made.extend(v * 2.0 for v in x)
    return made


@on("i64[6]")
def searched(x):
    made = list(x)
    first = made[2]
    return first in made, 99 in made, 99 not in made, made.index(first), made.count(first)


@on("i64[4]")
def looked_for_in_vain(x):
    return list(x).index(99)


@on("i64[4] n", n="1 99")
def removed(x, n):
    made = [1, 2, 1, 3]
    made.remove(n)
    made.reverse()
    return made, made.copy()


@on("f64[3]")
def emptied(x):
    made = list(x)
    made.clear()
    empty = not made
    made.append(x[0])
    return empty, bool(made), made, 1 if made else 2


@on("f64[5]")
def iterated_in_every_way(x):
    made = [v for v in x]
    s = 0.0
    for v in made:
        s = s * 0.5 + v
    for i, v in enumerate(made, 1):
        s += i * v
    for a, b in zip(made, x[1:], strict=False):
        s += a * b
    for v in reversed(made):
        s = s * 0.5 - v
    return s


@on("f64[3]")
def grown_while_it_is_iterated(x):
    queue = [1]
    total = 0
    for v in queue:
        total += v
        if v < 20:
            queue.append(v * 3)
    return total, queue


@on("f64[3]")
def shrunk_while_it_is_iterated(x):
    made = [1, 2, 3, 4, 5]
    seen = 0
    for v in made:
        seen = seen * 10 + v
        made.pop()
    return seen, made


@on("f64[6]")
def a_stack_in_a_loop(x):
    stack = []
    s = 0.0
    for v in x:
        stack.append(v)
        if len(stack) > 2:
            a, b = stack.pop(), stack.pop()
            stack.append(a * b)
    while stack:
        s = s * 0.5 + stack.pop()
    return s


@on("n", n="0 1 7 40")
def a_sequence_of_unknown_length(n):
    made = [1, 1]
    while made[-1] < n:
        made.append(made[-1] + made[-2])
    return made


@on("f64[7] n", n="2 3 9")
def filled_and_begun_again(x, n):
    batch = []
    s = x[0]
    for v in x:
        batch.append(v)
        if len(batch) == n:
            s += batch[0] * batch[-1]
            batch = []
    return s, len(batch)


@on("f64[4]")
def rebuilt_from_itself(x):
    made = list(x)
    for _ in range(3):
        made = [v * 2.0 for v in made]
        made = made[1:] + [made[0]]
    return made


@on("f64[4]")
def two_names_of_one_list(x):
    a = []
    b = a
    for v in x:
        b.append(v)
    a.append(x[0])
    return len(a), len(b), a is b, b[-1]


def appended_to(made, v):
    made.append(v)
    made.append(v * 2.0)
    return made


def doubled(made):
    return [v * 2.0 for v in made]


@on("f64[3]")
def passed_to_functions(x):
    made = []
    for v in x:
        same = appended_to(made, v)
    more = doubled(made)
    return len(same), len(made), more[-1]


@on("f64[4]")
def tuples_in_a_list(x):
    made = []
    for i, v in enumerate(x):
        made.append((v, i))
    s = 0.0
    for v, i in made:
        s += v * i
    first, _ = made[0]
    made[1] = (v, 7)
    return s, first, made[1], made.pop()


@on("f64[2,3]")
def rows_of_a_list(x):
    rows = [x[0], x[1] * 2.0]
    s = 0.0
    for row in rows:
        s += row[0] * row[2]
    return s, len(rows), rows[-1][1]


@on("f64[4] n", n="0 2")
def appended_in_a_nested_loop(x, n):
    made = []
    for i in range(n):
        for v in x:
            if v > 0:
                made.append(v * i)
    return made


@on("f64[4]")
def a_row_in_each_iteration(x):
    s = 0.0
    for i in range(len(x)):
        row = []
        for j in range(i + 1):
            row.append(x[j] * i)
        s += sum(row) * len(row)
    return s


@on("f64[5] n", n="0 1")
def one_of_two_lists(x, n):
    if n == 1:
        made = [x[0]]
    else:
        made = []
        made.append(x[1])
        made.append(x[2])
    made.append(x[3])
    return made


@on("f64[5] n", n="0 1 2")
def returned_from_branches(x, n):
    if n == 1:
        return [x[0]]
    made = list(x)
    if n == 2:
        return made
    return [v * 2.0 for v in made]


@on("f64[5]")
def as_arrays(x):
    made = [v * 2.0 for v in x]
    a = np.array(made)
    made[0] = 100.0
    return a, np.square(made), np.array(made) * x


@on("f64[3]")
def as_an_array_of_rows(x):
    return np.array([(v, v * v) for v in x])


@on("f64[4]")
def unpacked(x):
    a, b, c, d = [v + 1.0 for v in x]
    return a * b, c - d


@on("f64[4]")
def too_many_to_unpack(x):
    a, b = [v + 1.0 for v in x]
    return a * b


@on("f64[1]")
def too_few_to_unpack(x):
    a, b = [v + 1.0 for v in x]
    return a * b


@on("f64[2]")
def popped_from_nothing(x):
    made = [x[0]]
    made.pop()
    x[1] = 5.0
    return made.pop()


@on("f64[2]")
def deleted_out_of_range(x):
    made = [x[0]]
    del made[3]
    return made


@on("f64[3]")
def of_ints_and_bools(x):
    return [1, 2, 3], [True, False], [int(v * 10) for v in x]


@on("f64[3]")
def isinstance_of_list(x):
    made = [v for v in x]
    return isinstance(made, list), isinstance(made, tuple)


@on("f64[6] n", n="0 3")
def left_early(x, n):
    made = []
    for v in x:
        if len(made) > n:
            break
        made.append(v)
    return made


@on("f64[4] n", n="0 -1 3 9")
def augmented_while_it_shrinks(x, n):
    """The item is found anew where it is stored."""
    made = list(x)
    made[n] += made.pop() * 2.0
    return made


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()


def test_ints_and_floats_in_one_list_are_floats():
    @mutad.compile
    def mixed(x):
        made = [1, 2]
        made.append(x)
        return made

    result = mixed(0.5)
    assert result == [1.0, 2.0, 0.5]
    assert [type(v) for v in result] == [float, float, float]


def test_a_list_past_its_reserve_raises_memory_error():
    @mutad.compile
    def endless(n):
        made = [0.0]
        while len(made) < n:
            made.extend(made)
        return len(made)

    assert endless(1000) == 1024
    with pytest.raises(MemoryError):
        mutad.compile(repeated_beyond_memory)(2**40)


def repeated_beyond_memory(n):
    made = [0.0] * n
    return made[0]


def test_thousands_of_calls_leave_no_address_space_behind():
    """Each call reserves more than a thousandth of all addresses."""
    compiled = mutad.compile(a_sequence_of_unknown_length)
    for _ in range(5000):
        assert compiled(5) == [1, 1, 2, 3, 5]


def test_a_long_list_of_unknown_length():
    def collatz(n):
        path = [n]
        while path[-1] != 1 and len(path) < 100_000:
            v = path[-1]
            path.append(v // 2 if v % 2 == 0 else v + 1)
            path.append(v)
        return len(path)

    assert mutad.compile(collatz)(27) == collatz(27)
