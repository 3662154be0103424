"""Gradients of programs that leave their loops: of the path that ran."""

import math

from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[6] v", v="0.3 9.0 -9.0")
def skipped_and_stopped(x, limit):
    s = x[0] * limit
    for i in range(x.size):
        if x[i] < -0.2:
            continue
        if x[i] > limit:
            break
        s += x[i] ** 2
    else:
        s *= 3.0
    return s


@on("f64[6]")
def the_largest_and_where(x):
    best, at = x[0], 0
    for i in range(1, x.size):
        if x[i] <= best:
            continue
        best, at = x[i], i
    return best * best * (at + 1)


@on("f64[6] v", v="0.1 9.0")
def returned_from_two_loops(x, limit):
    s = x[0] * 0.5
    for i in range(x.size):
        for j in range(i):
            if x[i] * x[j] > limit:
                return s * x[i] * x[j]
            s += x[i] * x[j] ** 2
    return s


@on("f64[3]")
def iterated_until_it_settles(x):
    y = abs(x[0]) + 1.0
    trips = 0
    while True:
        following = 0.5 * (y + (2.0 + x[1] ** 2) / y)
        trips += 1
        if abs(following - y) < 1e-13 or trips > 50:
            break
        y = following
    return y * x[2]


@on("f64[8] v", v="0.4 9.0")
def in_place_until_a_value(u, limit):
    for i in range(u.size - 1):
        u[i] = u[i + 1] * u[i + 1] + math.sin(u[i])
        if u[i] > limit:
            break
    else:
        u[0] = u[1] * u[2]
    return (u * u).sum()


@on("f64[5]")
def what_an_earlier_iteration_kept(x):
    s = x[0] * 0.0
    for i in range(x.size):
        if i % 2 == 0:
            kept = x[i] * x[i]
        s += kept * x[i]
    return s


ALWAYS = True


@on("f64[4] f64[4]#1")
def arrays_that_keep_their_places_in_the_loop_after_all(x, y):
    for _ in range(2):
        if ALWAYS:
            return (x * y).sum()
        x, y = y, x
    return (x * y).sum()


TestGradients = gradient_tests(programs, tangents=True)
