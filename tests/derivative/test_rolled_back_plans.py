"""What the receipt says of integers that are rolled back, and of what that takes."""

import inspect
from typing import Any

import numpy as np

from mutad import compile

X = np.linspace(-1.0, 1.0, 12)


def receipt(function: Any, *arguments: Any, wrt: Any = 0, **options: Any) -> Any:
    return compile(function, grad=True, cache=False, **options).explain(*arguments, wrt=wrt)


def counted(function: Any, *arguments: Any, wrt: Any = 0) -> list[tuple[str, str]]:
    """The names that are rolled back, each with the text of the line that counts."""
    found = receipt(function, *arguments, wrt=wrt).rolled_back
    return [(r.name, r.source) for r in found]


def compacted(x):
    out = np.zeros(x.size)
    k = 0
    for i in range(x.size):
        if x[i] > 0.0:
            out[k] = x[i] * x[i]
            k += 1
    return (out * out).sum()


def test_the_line_that_counts_is_listed_with_no_bytes() -> None:
    made = receipt(compacted, X)
    assert made.saved_bytes == 0
    assert [(r.name, r.source, r.bytes) for r in made.rolled_back] == [("k", "k += 1", 0)]
    line = inspect.getsourcelines(compacted)[1] + 6
    assert f"line {line}: `k` is rolled back, 0 bytes" in str(made).splitlines()
    assert made.to_dict()["rolled_back"][0]["line"] == line


def test_what_is_rolled_back_is_no_save_that_could_be_forbidden() -> None:
    assert receipt(compacted, X, saves="forbid").saves == ()


def test_saving_everything_rolls_nothing_back() -> None:
    assert receipt(compacted, X, saves="all").rolled_back == ()


def merged(x, y, out):
    i = j = k = 0
    while i < x.size and j < y.size:
        if x[i] <= y[j]:
            out[k] = x[i] * 2.0
            i += 1
        else:
            out[k] = y[j] * y[j]
            j += 1
        k += 1
    return (out * out).sum()


def test_a_condition_on_the_counters_is_saved_in_place_of_three_of_them() -> None:
    made = receipt(merged, X, X + 0.1, np.zeros(24), wrt=(0, 1, 2))
    (save,) = made.saves
    assert save.name == "x[i] <= y[j]"
    assert save.formula.startswith("trips@")
    assert {r.name for r in made.rolled_back} == {"i", "j", "k"}


def by_rows(x):
    s = 0.0
    at = np.zeros(x.shape)
    for r in range(x.shape[0]):
        k = 0
        for c in range(x.shape[1]):
            if x[r, c] > 0.0:
                at[r, k] = x[r, c] ** 2
                k += 1
        s += at[r, 0] * x[r, k - 1]
    return s


def test_one_value_for_each_time_that_the_count_begins_anew() -> None:
    made = receipt(by_rows, X.reshape(3, 4))
    assert made.formula == "8*(x.shape[0]-1)"
    assert [r.source for r in made.rolled_back] == ["k += 1"]


def remainders(x):
    s, k = 0.0, 0
    for i in range(x.size):
        if x[i] > 0.0:
            k = (k + 3) % 5
        s += x[k] * x[i]
    return s


def test_a_remainder_cannot_be_undone() -> None:
    made = receipt(remainders, X)
    assert made.rolled_back == ()
    assert made.saved_bytes in (8 * X.size, 8 * (X.size - 1))


def only_read_after(x):
    s, k = 0.0, 0
    for i in range(x.size):
        if x[i] > 0.0:
            k += 1
        s += x[i] * x[i]
    return s * x[k]


def test_a_counter_of_which_only_the_end_matters_is_not_rolled_back() -> None:
    assert counted(only_read_after, X) == []
    assert receipt(only_read_after, X).saved_bytes == 0
