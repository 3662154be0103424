"""Tables that a program finds outside: lists, dicts, sets, tuples of constants, and arrays in them."""

import builtins

import numpy as np
import pytest
from whole_programs import WholePrograms, agrees

from mutad import CompileError, compile

programs = WholePrograms()
on = programs.on

KNOTS = [0.0, 0.25, 0.5, 1.0, 1.5, 2.5, 4.0, 6.0, 9.0, 12.0]
HEIGHTS = [1.0, 3.0, 2.0, 5, 4.0, 0.5, 7.0, 8.0, 1.0, 2.0]
COUNTS = [3, 1, 4, 1, 5]
ROUGHNESS = {"steel": 4.5e-5, "glass": 1.0e-6, "concrete": [3.0e-4, 3.0e-3]}
AXES = {"sxyz": (0, 0, 0, 0), "szyx": (2, 1, 0, 1)}
SPLINE = (np.array([0.5, 1.5, 2.5]), [2.0, 4.0, 8.0, 16.0], 3)
SMOOTH = {"drawn", "glass"}
PAIRS = [(0.1, 1), (0.2, 2), (0.4, 3)]
SHAPES = frozenset({1, 3})
OPERATIONS = {"double": lambda v: 2.0 * v, "square": lambda v: v * v}


class Solver:
    nodes = [-0.7745966692414834, 0.0, 0.7745966692414834]
    weights = np.array([0.5555555555555556, 0.8888888888888888, 0.5555555555555556])

    def integral(self, f, a, b):
        half, middle, s = (b - a) / 2, (b + a) / 2, 0.0
        for k, node in enumerate(self.nodes):
            s += Solver.weights[k] * f(middle + half * node)
        return s * half


@on((0.7, 1.3, 0.4), (3.0, 0.2, 11.0))
def interpolates_in_lists(x):
    s = 0.0
    for v in x:
        k = 0
        while k < len(KNOTS) - 2 and KNOTS[k + 1] < v:
            k += 1
        slope = (HEIGHTS[k + 1] - HEIGHTS[k]) / (KNOTS[k + 1] - KNOTS[k])
        s += HEIGHTS[k] + slope * (v - KNOTS[k])
    return s


@on()
def looks_up_constants(x):
    eps = ROUGHNESS["steel"] + ROUGHNESS["concrete"][1] + ROUGHNESS.get("wood", 1.0)
    first, parity, repetition, frame = AXES["szyx"]
    if "glass" in SMOOTH and "steel" not in SMOOTH and "wood" not in ROUGHNESS:
        eps *= 2.0
    return eps * x[first] + parity * x[1] + (repetition + frame) * x[2]


@on()
def runs_over_tables(x):
    s = 0.0
    for a, b in zip(KNOTS, HEIGHTS):
        s += a * b * x[0]
    for a, b in zip(KNOTS, x):
        s += a * b
    for k, h in enumerate(HEIGHTS):
        s += k * h * x[1]
    for height in reversed(HEIGHTS):
        s = 0.5 * s + height * x[2]
    for name, value in AXES.items():
        s += value[0] * x[0] * (name == "szyx")
    return s


@on()
def indexes_tuples_at_run_time(x):
    s = 0.0
    for k in range(-3, 3):
        a, b = PAIRS[k]
        s += (x[0], 2.0, 3)[k] * a + b * x[1]
    return s


@on()
def keeps_pythons_numbers(x):
    try:
        for k in range(5):
            s = 1.0 / (COUNTS[k] - 4) * x[k % 3]
    except ZeroDivisionError:
        s = 100.0
    return s * x[0]


@on((0.5, 1.0, 2.0), (8.0, 1.0, 2.0))
def raises_beyond_the_end(x):
    return KNOTS[int(x[0]) + 3] * x[0]


@on()
def hands_tables_to_numpy(x):
    return (
        (np.array(KNOTS[:3]) * x).sum() + np.sum(HEIGHTS) + len(COUNTS) + max(COUNTS) + sum(KNOTS)
    )


@on()
def reads_arrays_in_tuples(x):
    knots, coefficients, degree = SPLINE
    return (knots * x).sum() ** degree + coefficients[-1] * x[0] + SPLINE[0][1]


@on()
def has_tables_in_classes(x):
    return Solver().integral(lambda t: t * t * x[0], x[1], x[2])


@on()
def chooses_functions(x):
    return OPERATIONS["double"](x[0]) * OPERATIONS["square"](x[1])


@on()
def has_default_tables(x):
    def weighted(v, weights=(0.5, 0.25, 0.125, 2.0)):
        return v * weights[int(v * 3)]

    return scaled(x[0]) + weighted(x[1])


def scaled(v, options={}, factors=[1.0, 2.0, 3.0, 4.0]):
    return v * factors[int(4 * v)] * options.get("scale", 3.0)


@on()
def holds_sets_of_ints(x):
    return sum([v for k, v in enumerate(x) if k in SHAPES])


@pytest.mark.parametrize("case", programs.cases, ids=programs.names)
def test_agrees_with_cpython_and_differences(case):
    agrees(*case)


def test_a_table_that_changes_is_never_stale():
    table, nested, known = [1.0, 2.0, 3.0, 4.0], {"a": [1.0, (2.0, [3.0])]}, {1}
    arrays = (np.array([1.0]), np.array([2.0]))

    def f(x, k):
        member = 1.0 if 2 in known else 0.0
        return x * table[k] + nested["a"][1][1][0] + table[0] + arrays[1][0] + member

    compiled = compile(f, cache=False)

    def agree():
        for k in range(4):
            assert compiled(0.5, k) == f(0.5, k)

    agree()
    code = compiled._dispatcher.era
    table[2] = 30.0
    agree()
    nested["a"][1][1][0] = 7.0
    agree()
    table[0] = 5
    agree()
    arrays[1][0] = 11.0
    agree()
    known.add(2)
    agree()
    nested["a"] = [0.0, (0.0, [1.0])]
    agree()
    table[:] = [1.0, 2.0, 3.0, 4.0]
    nested["a"] = [1.0, (2.0, [3.0])]
    known.discard(2)
    agree()
    assert compiled._dispatcher.era is code, "the same contents: the same code"


def test_an_array_in_a_tuple_is_an_input():
    arrays = (np.array([1.0, 2.0]), np.array([2.0, 5.0]))

    def f(x):
        return (x * arrays[0] * arrays[1]).sum()

    compiled = compile(f, grad=True, cache=False)
    assert compiled(np.ones(2)) == 12.0
    arrays[0][0] = 10.0
    assert compiled(np.ones(2)) == 30.0
    np.testing.assert_array_equal(compiled.grad(np.ones(2), wrt="arrays[1]"), [10.0, 2.0])


@pytest.mark.parametrize(
    ("store", "words"),
    [
        ("table[0] = x", "list is from outside"),
        ("table.append(x)", "append"),
        ("large[0]", "changes of so many are not watched"),
    ],
)
def test_what_is_not_compiled_is_refused(store, words, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        f"table = [1.0, 2.0]\nlarge = list(range(10_000))\n\n\ndef f(x):\n    {store}\n    return x\n"
    )
    names = {"__name__": "program"}
    exec(builtins.compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(CompileError, match=words):
        compile(names["f"], cache=False)(1.0)
