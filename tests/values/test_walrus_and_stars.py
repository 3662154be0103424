"""`:=` in comprehensions, `zip(*m)`, `max(*l)`, lists that are printed, and stored in arrays."""

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

programs = WholePrograms()
on = programs.on
POINT = (0.5, 1.5, 2.5, 0.25)


@on(POINT)
def names_that_comprehensions_bind(x):
    v, y = 3.0, 1.0
    s = sum([y * w for w in x if (y := w * v) > 1.0]) + v
    for k in range(2):
        s += max(y := u * k + y for u in x)
    if any((w := a * b) > 1.0 for a in x for b in x if a > 0.3):
        s += w
    partial = [s := s + a for a in x]
    return s * y + partial[1] if all((z := a) < 3.0 for a in x) and z > 0.0 else y


@on(POINT)
def lists_that_change_are_stored(x):
    items = [x[0], x[1]]
    for _ in range(2):
        x[2:] = items
        items.reverse()
        items[0] += 1.0
    x[:2] += items
    x[np.array([0, 1])] = items
    items.append(x[2] * x[3])
    x[1:] = items
    return (x * x).sum()


@on(POINT)
def stars_and_prints(x):
    m = [[x[0], x[1]], [x[2], x[3]]]
    s = 0.0
    for a, b in zip(*m):
        s += a * b
    found = [v * v for v in x if v > 0.3]
    print(found, [s, 2, "a"], (x[0], [1.0]), x.shape, [], (1,), f"{found} of {len(found)}")
    return s + max(*found) * min(*[s, x[0]])


@on(POINT)
def dtypes_and_classes_are_texts(x):
    if str(x.dtype) != "float64" or x.ndim > 1:
        raise TypeError(f"{x.dtype} of {type(x)} and {x.ndim} axes")
    print(x.dtype, f"{x.dtype!r}: {type(x)}", [x.dtype], f"{float} {np.float32}")
    return x.astype(np.promote_types(x.dtype, np.dtype("f4"))).sum() * np.can_cast(int, x.dtype)


@on(POINT)
def the_largest_of_one(x):
    found = [v for v in x if v > 2.0]
    return max(*found)


@on(POINT)
def the_least_of_none(x):
    found = [v for v in x if v > 20.0]
    return min(*found)


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_python_agrees(function, point):
    agrees(function, point)
