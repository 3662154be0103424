"""Stores that are undone exactly cost no memory: negation, integers that count, exclusive or."""

from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[6]", "f32[6]", "f64[6]R", "f64[1]", saved=0)
def negated_in_place(x):
    s = x[0] * 0.0
    for i in range(x.size):
        s += x[i] ** 3
        x[i] = -x[i]
    return s


@on("f64[6]", "f64[6]S", saved=0)
def multiplied_by_minus_one(x):
    s = x[0] * 0.0
    for i in range(x.size):
        s += x[i] ** 3
        x[i] *= -1.0
    return s


@on("f64[6] i64[3]", "f64[6] i32[3]", saved=0)
def counted_up(x, places):
    s = x[0] * 0.0
    for k in range(places.size):
        s += x[places[k] % x.size] ** 2
        places[k] += 3
    return s


@on("f64[6] i64[3]", saved=0)
def counted_down_from_a_constant(x, places):
    s = x[0] * 0.0
    for k in range(places.size):
        s += x[places[k] % x.size] ** 2
        places[k] = 7 - places[k]
    return s


@on("f64[6] i64[3]", saved=0)
def bits_flipped(x, places):
    s = x[0] * 0.0
    for k in range(places.size):
        s += x[places[k] % x.size] ** 2
        places[k] ^= 5
    return s


@on("f64[6] i64[3]")
def counted_twice(x, places):
    """What undoes the first count does not survive the second."""
    s = x[0] * 0.0
    for k in range(places.size):
        s += x[places[k] % x.size] ** 2
        places[k] += 1
        s += x[places[k] % x.size] ** 3
        places[k] += 1
    return s


@on("f64[6]")
def negated_and_overwritten(x):
    """The negated value is lost as well."""
    s = x[0] * 0.0
    for i in range(x.size - 1):
        s += x[i] ** 3
        x[i] = -x[i]
        x[i + 1] = s
    return s


@on("f64[6] f64[6]#1", saved=lambda x, y: x.nbytes)
def a_float_that_is_added_is_no_inverse(x, y):
    s = x[0] * 0.0
    for i in range(x.size):
        s += x[i] ** 3
        x[i] += y[i]
    return s


@on("f64[4]")
def counted_up_in_one_branch_only(x):
    """The operation that could be undone has not run where the value is needed."""
    made = [x[0]]
    s = 0.0
    for i in range(x.size):
        last = made[-1]
        s += last * last
        if i == 2:
            made.append(x[2] * last)
    return s


TestGradients = gradient_tests(programs, tangents=True)
