"""Lists as arguments and results do what they do in CPython, whoever else holds them."""

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from object_oracle import agrees

import mutad

Pair = namedtuple("Pair", "a b")


@dataclass
class History:
    xs: list[float]
    tags: list[str] = field(default_factory=list)
    t: float = 0.0


@dataclass
class Layer:
    weights: list[Any]
    rate: float = 0.5


def total(items):
    s = 0.0
    for v in items:
        s += v * v
    return s, len(items)


def pushes(items, v):
    items.append(v * items[0])
    items[0] = 2 * v
    return sum(items)


def pops(items):
    x = items.pop()
    items.insert(0, x)
    del items[1]
    items.reverse()
    return x * items[0]


def only_reads(items, v):
    copy = items[:]
    copy.append(v)
    return sum(copy)


def appends_while(items, n):
    while len(items) < n:
        items.append(items[-1] * 0.5)


def fills(items, v):
    items.append(v)
    items.append(2 * v)
    return items[1]


def empties(items):
    while items:
        items.pop()
    return len(items)


def clears_in_a_branch(items, v):
    if v > 0:
        items.clear()
    items.append(v)


def rebinds_its_name(items, v):
    items.append(v)
    items = [v]
    items.append(v)
    return items


def extends_itself(items):
    items.extend(items)
    items += items
    return items


def repeats_itself(items, n):
    other = items
    items *= n
    return len(other)


def table(rows):
    s = 0.0
    for a, b in rows:
        s += a * b * b
    return s


def table_grows(rows, x):
    rows.append((3, x * x))
    rows[0] = (rows[0][0], 2 * rows[1][1])
    return rows[0][1]


@pytest.mark.parametrize(
    ("function", "args"),
    [
        (total, ([1.0, 2.0, 3.0],)),
        (total, ([],)),
        (total, ([1, 2],)),
        (total, ([True, False],)),
        (total, ([np.float64(1.5)],)),
        (total, ([np.float32(1.5), np.float32(2)],)),
        (total, ([np.int32(2)],)),
        (pushes, ([1.0, 2.0, 3.0], 0.5)),
        (pops, ([1.0, 2.0, 3.0],)),
        (pops, ([1, 2, 3],)),
        (only_reads, ([1.0, 2.0], 3.0)),
        (appends_while, ([1.0], 7)),
        (fills, ([], 2.0)),
        (fills, ([], 2)),
        (empties, ([1.0, 2.0],)),
        (clears_in_a_branch, ([1.0, 2.0], 1.0)),
        (clears_in_a_branch, ([1.0, 2.0], -1.0)),
        (rebinds_its_name, ([1.0, 2.0], -1.0)),
        (extends_itself, ([1.0, 2.0],)),
        (repeats_itself, ([1.0, 2.0], 3)),
        (repeats_itself, ([1.0, 2.0], -1)),
        (table, ([(1, 2.0), (3, 4.0)],)),
        (table_grows, ([(1, 2.0), (3, 4.0)], 0.5)),
    ],
)
def test_numbers(function, args):
    agrees(function, *args, calls=2)


def test_one_compilation_serves_all_lengths():
    f = mutad.compile(lambda items: sum(items))
    for n in (2, 3, 5, 100):
        assert f([1.0] * n) == float(n)
    (flat,) = f._dispatcher.flats.values()
    assert len(flat.dispatcher.table) == 1


def test_ints_among_floats_stay_where_nothing_is_stored():
    def doubles_the_last(items):
        items[-1] *= 2

    items = [1, 0.5, 3, 2.0]
    mutad.compile(doubles_the_last)(items)
    assert repr(items) == "[1, 0.5, 3, 4.0]"


def test_ints_of_more_than_64_bits_are_refused():
    with pytest.raises(OverflowError, match="64 bits"):
        mutad.compile(total)([2**70])


def test_one_list_is_one_list():
    def grows_both(a, b, h):
        a.append(1.0)
        b.append(2.0)
        h.xs.append(3.0)
        return len(a), a is b, h.xs is a, len(h.xs)

    one, other = [0.0], [0.0]
    agrees(grows_both, one, one, History(one))
    agrees(grows_both, one, other, History(one))
    agrees(grows_both, one, other, History([5.0]))


def test_a_list_that_is_returned_is_the_argument():
    def f(items, n):
        items.append(1.0)
        made = [float(k) for k in range(n)]
        return made, items, made

    items = [1.0]
    made, same, again = mutad.compile(f)(items, 2)
    assert same is items
    assert again is made
    assert (made, items) == ([0.0, 1.0], [1.0, 1.0])


def steps(h, v):
    h.xs.append(h.t * v)
    h.t += v
    return h.xs[-1]


def binds_anew(h, v):
    h.xs = [v, v * 2]
    return h.xs


def binds_the_other(h, items):
    h.xs = items
    items.append(1.0)
    return h


def test_lists_in_objects():
    agrees(steps, History([1.0], ["a", "b"]), 2.0, calls=3)
    agrees(binds_anew, History([1.0]), 2.0, calls=2)
    agrees(binds_the_other, History([1.0]), [2.0], calls=2)
    agrees(lambda d: d["a"].append(d["b"][0]), {"a": [1.0], "b": [2.0]}, calls=2)


def network(params, x):
    for w, b in params:
        x = np.maximum(w @ x + b, 0.0)
    return x


def descends(params, grads):
    for p, g in zip(params, grads, strict=False):
        p -= 0.5 * g
    return len(params)


def ragged(rows):
    s = 0.0
    for row in rows:
        s += sum(row) * len(row)
    rows[1].append(3.0)
    return s


def moves(layers, dt):
    for layer in layers:
        layer.rate += dt
        layer.weights[0] *= layer.rate
    return layers


def params():
    w, v = np.arange(6.0).reshape(3, 2), np.arange(6.0).reshape(2, 3)
    return [(w, np.ones(3)), (v, np.ones(2))]


def test_lists_of_anything():
    agrees(network, params(), np.ones(2))
    agrees(descends, [np.ones(2), np.ones((2, 2))], [np.ones(2), np.ones((2, 2))])
    shared = np.ones(2)
    agrees(descends, [shared, shared], [np.ones(2), np.ones(2)])
    agrees(ragged, [[1.0], [2.0, 3.0]], calls=2)
    agrees(moves, [Layer([np.ones(2)]), Layer([np.ones(3), 2.0])], 0.5, calls=2)
    layer = Layer([np.ones(2)])
    agrees(moves, [layer, layer], 0.5)
    agrees(lambda ps: ps[0].a * ps[1].b, [Pair(1.0, 2.0), Pair(3.0, 4.0)])
    agrees(lambda xs: xs[0] + xs[1].sum(), [2.0, np.ones(2)])


def test_results():
    agrees(lambda x: [(v, 2 * v) for v in x], np.arange(3.0))
    agrees(lambda x: [(k, (v, v > 1)) for k, v in enumerate(x)], np.arange(3.0))
    agrees(lambda x: [x, 2 * x, [x.sum()]], np.ones(2))
    agrees(lambda a, b: [a, (b, "name")], np.ones(2), 1.0)
    agrees(lambda items: (items, [items]), [np.ones(2)])
    agrees(lambda items: items[:1] + items, [np.ones(2), 1.0])
    agrees(lambda items: 2 * items, [np.ones(2), 1.0])


def test_what_is_in_itself_is_refused():
    items: list[Any] = [np.ones(2)]
    items.append(items)
    with pytest.raises(mutad.CompileError, match="a list in itself"):
        mutad.compile(lambda items: items[0].sum())(items)
