"""Gradients through sorted lists and slices that are assigned: they follow the items."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[6]", "f64[1]", "f32[5]")
def weighted_in_order(x):
    made = [v * v * v for v in x]
    made.sort()
    s = 0.0
    for k, v in enumerate(made):
        s += (k + 1) * v * v
    return s


@on("f64[6]")
def sorted_by_another_quantity(x):
    pairs = [(v * v, np.sin(v)) for v in x]
    pairs.sort(key=lambda p: p[1], reverse=True)
    s = 0.0
    for k, (a, b) in enumerate(pairs):
        s += k * a * b
    return s + min(pairs, key=lambda p: p[0])[1]


@on("f64[6] n", n="1 3")
def slices(x, n):
    made = [v * v for v in x]
    made[1:n] = [x[0] * x[1], x[2]]
    made[::2] = [v * 0.5 for v in made[::2]]
    del made[n : n + 1]
    made[n:] = made
    s = x[0]
    for v in made:
        s = s * 0.5 + v * v
    return s


TestGradients = gradient_tests(programs, tangents=True)
