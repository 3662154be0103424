"""What is refused of objects found at run time: the place and the way out."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad


class Node:
    def __init__(self, x: float) -> None:
        self.x = x
        self.next: Any = None


SENTINEL = Node(1.0)


def stacked(x: np.ndarray) -> Any:
    head = None
    for v in x:
        node = Node(v)
        node.next = head
        head = node
    return head


def returns_objects_that_refer_to_others(x):
    return stacked(x)


def gives_one_more_attribute(x):
    head = stacked(x)
    head.extra = 1.0
    return head.extra


def puts_one_from_outside_among_them(x):
    head = stacked(x)
    head.next = SENTINEL
    return head.next.x


def changes_the_argument_or_another(x, node):
    other = Node(x[0])
    chosen = node if x[0] > 0.0 else other
    chosen.x += 1.0
    return other.x


def shares_an_array_that_changes(x):
    buffer, head = np.zeros(2), None
    for v in x:
        node = Node(buffer)
        node.next = head
        head = node
        buffer[0] += v
    return head.x[0]


def keeps_words_and_numbers_in_a_field(x):
    head = stacked(x)
    head.x = "word"
    return x[0]


CASES = [
    (returns_objects_that_refer_to_others, "a Node chosen at run time", "returns_objects"),
    (gives_one_more_attribute, "where it is made", "Node(v)"),
    (puts_one_from_outside_among_them, "pass it as an argument", "head.next = SENTINEL"),
    (changes_the_argument_or_another, "one object or another", "chosen.x += 1.0"),
    (shares_an_array_that_changes, "slice the array where they are used", "Node(buffer)"),
    (keeps_words_and_numbers_in_a_field, "the same type in all objects", 'head.x = "word"'),
]


@pytest.mark.parametrize(("function", "says", "at"), CASES, ids=[c[0].__name__ for c in CASES])
def test_refused(function: Callable[..., Any], says: str, at: str) -> None:
    arguments = (np.array([0.5, 0.2]), Node(2.0))[: function.__code__.co_argcount]
    with pytest.raises(mutad.CompileError) as caught:
        mutad.compile(function)(*arguments)
    assert says in str(caught.value)
    assert at in str(caught.value)
