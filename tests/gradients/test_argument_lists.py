"""Gradients with respect to lists: a list of floats for floats, of arrays for arrays, nested alike."""

from dataclasses import dataclass

import numpy as np
import pytest
from object_oracle import gradient_agrees

import mutad
from mutad import Const, Duplicated


@dataclass
class History:
    xs: list[float]
    t: float = 0.0


def total(items):
    s = 0.0
    for v in items:
        s += v * v
    return s


def pushes(items, v):
    items.append(v * items[0])
    items[0] = 2 * v
    return sum(items)


def pops(items):
    x = items.pop()
    return x * x * items[0]


def filters(items, limit):
    kept = [v * v for v in items if v > limit]
    items.clear()
    for v in kept:
        items.append(v * limit)
    return sum(items)


def table(rows):
    s = 0.0
    for a, b in rows:
        s += a * b * b
    return s


def table_grows(rows, x):
    rows.append((3, x * x))
    rows[0] = (rows[0][0], 2 * rows[1][1])
    return rows[0][1] * rows[2][1]


def network(params, x):
    for w, b in params:
        x = np.tanh(w @ x + b)
    return x.sum()


def ragged(rows):
    s = 0.0
    for row in rows:
        s += sum(row) * row[0]
    rows[1].append(3.0)
    return s


def table_of_lists(rows, weights, k):
    s = 0.0
    for i in range(len(rows)):
        for j in range(len(rows[i])):
            rows[i][j] *= weights[(i + j) % 2][0]
            s += rows[i][j] ** 2
    rows[k].append(s * weights[k][0])
    return sum(rows[k]) * s


def steps(h, v):
    h.xs.append(h.t * v)
    h.t += v * h.xs[0]
    return h.xs[-1] * h.t


def tree(p, x):
    return (np.tanh(p["first"]["W"] @ x) * p["scale"][0]).sum() + p["scale"][1]


def params():
    rng = np.random.default_rng(0)
    return [
        (rng.normal(size=(3, 2)), rng.normal(size=3)),
        (rng.normal(size=(2, 3)), rng.normal(size=2)),
    ]


@pytest.mark.parametrize(
    ("function", "args", "wrt"),
    [
        (total, ([1.0, 2.0, 3.0],), 0),
        (total, ([np.float64(1.0)],), 0),
        (pushes, ([1.0, 2.0, 3.0], 0.5), ("items", "v")),
        (pops, ([1.0, 2.0, 3.0],), 0),
        (filters, ([1.0, 2.0, 3.0], 1.5), ("items", "limit")),
        (table, ([(1.0, 2.0), (3.0, 4.0)],), 0),
        (table, ([(1, 2.0), (3, 4.0)],), 0),
        (table_grows, ([(1, 2.0), (3, 4.0)], 0.5), ("rows", "x")),
        (network, (params(), np.ones(2)), (0, 1)),
        (ragged, ([[1.0], [2.0, 3.0]],), 0),
        (table_of_lists, ([[1.0], [2.0, 3.0]], [[0.5], [1.5]], 1), ("rows", "weights")),
        (steps, (History([1.0], 2.0), 0.5), ("h", "v")),
        (tree, ({"first": {"W": np.eye(2)}, "scale": [2.0, 3.0]}, np.ones(2)), 0),
    ],
)
def test_gradients(function, args, wrt):
    gradient_agrees(function, *args, wrt=wrt)


def test_the_gradient_is_a_list():
    f = mutad.compile(pushes, grad=True)
    assert f.grad([1.0, 2.0, 3.0], 0.5, wrt=("items", "v")) == ([0.5, 1.0, 1.0], 3.0)
    assert mutad.compile(table, grad=True).grad([(1, 2.0), (3, 4.0)]) == [(1, 4.0), (3, 24.0)]
    g = mutad.compile(network, grad=True).grad(params(), np.ones(2))
    assert [[type(part) for part in layer] for layer in g] == [[np.ndarray] * 2] * 2
    assert [type(layer) for layer in g] == [tuple, tuple]
    d = mutad.compile(tree, grad=True).grad(
        {"first": {"W": np.eye(2)}, "scale": [2.0, 3.0]}, np.ones(2)
    )
    assert list(d) == ["first", "scale"]
    assert d["scale"][1] == 1.0


def test_parts_by_path():
    f = mutad.compile(network, grad=True)
    whole = f.grad(params(), np.ones(2))
    np.testing.assert_array_equal(f.grad(params(), np.ones(2), wrt="params[0][1]"), whole[0][1])
    h = mutad.compile(steps, grad=True)
    both = h.grad(History([1.0], 2.0), 0.5)
    assert h.grad(History([1.0], 2.0), 0.5, wrt="h.xs") == both.xs


def test_one_list_has_one_gradient():
    def product(a, b):
        return sum(a) * b[0]

    f = mutad.compile(product, grad=True)
    one = [1.0, 2.0]
    da, db = f.grad(one, one, wrt=("a", "b"))
    assert da is db
    assert da == [1.0 + 3.0, 1.0]


def test_vjp_takes_cotangents_of_the_final_items():
    f = mutad.compile(pushes, grad=True)
    items = [1.0, 2.0, 3.0]
    out, back = f.vjp(items, 0.5, wrt=("items", "v"))
    assert (out, items) == (6.5, [1.0, 2.0, 3.0, 0.5])
    items.clear()
    assert back(1.0) == ([0.5, 1.0, 1.0], 3.0)
    assert back(0.0, items=[1.0, 0.0, 0.0, 1.0]) == ([0.5, 0.0, 0.0], 3.0)
    g = mutad.compile(table, grad=True).vjp([(1.0, 2.0)])[1]
    assert g(0.0, rows=[(1.0, 5.0)]) == [(1.0, 5.0)]


def test_pullback_leaves_cotangents_in_the_shadow():
    f = mutad.compile(pushes, grad=True)
    items, bars = [1.0, 2.0, 3.0], [0.0, 0.0, 0.0, 1.0]
    f.pullback(Duplicated(items, bars), Const(0.5), cotangent=1.0)
    assert bars == [1.0, 1.0, 1.0]
    bars = [1.0, 1.0, 1.0]
    mutad.compile(total, grad=True).pullback(Duplicated([1.0, 2.0, 3.0], bars), cotangent=1.0)
    assert bars == [3.0, 5.0, 7.0]
    shadows = [(np.zeros_like(w), np.zeros_like(b)) for w, b in params()]
    g = mutad.compile(network, grad=True)
    g.pullback(Duplicated(params(), shadows), Const(np.ones(2)), cotangent=1.0)
    for mine, theirs in zip(shadows, g.grad(params(), np.ones(2)), strict=True):
        np.testing.assert_allclose(mine[0], theirs[0])
        np.testing.assert_allclose(mine[1], theirs[1])


def test_gradients_of_tables_are_tables():
    f = mutad.compile(table_of_lists, grad=True)
    rows, weights = [[1.0], [2.0, 3.0]], [[0.5], [1.5]]
    d_rows, d_weights = f.grad(rows, weights, 0, wrt=("rows", "weights"))
    assert [len(row) for row in (*rows, *d_rows, *d_weights)] == [2, 2, 1, 2, 1, 1]
    _, back = f.vjp([[1.0], [2.0, 3.0]], weights, 0)
    assert back(0.0, rows=[[2.0, 0.0], [1.0, 0.0]]) == [[1.0], [1.5, 0.0]]
    bars = [[0.0], [0.0, 1.0]]
    own = list(bars)
    g = mutad.compile(ragged_square, grad=True)
    g.pullback(Duplicated([[1.0], [2.0, 3.0]], bars), cotangent=1.0)
    assert bars == [[2.0], [4.0, 7.0]]
    assert bars[0] is own[0]


def ragged_square(rows):
    return sum(sum(v * v for v in row) for row in rows)


def test_shadows_of_another_kind_are_refused():
    f = mutad.compile(total, grad=True)
    with pytest.raises(TypeError, match="is no list"):
        f.pullback(Duplicated([1.0, 2.0], np.zeros(2)), cotangent=1.0)
    with pytest.raises(ValueError, match="another length"):
        f.pullback(Duplicated([1.0, 2.0], [0.0]), cotangent=1.0)
    g = mutad.compile(network, grad=True)
    with pytest.raises(ValueError, match="another length"):
        g.pullback(Duplicated(params(), []), Const(np.ones(2)), cotangent=1.0)
    with pytest.raises(TypeError, match="holds no floats"):
        mutad.compile(lambda items: items[0] * 1.0, grad=True).grad([1, 2])
