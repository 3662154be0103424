"""Arrays that each step saves go from row to row of their tape (`step-on-tape`); what it copied is there, too
(`read-originals`), and what it computes anew is computed there (`save-in-place`)."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

import mutad
from mutad.runtime.measure import measure_gradient

programs = GradientPrograms()
on = programs.on


@on("f64[N] 0.3 S", N="40 0 1 2 3", S="3 1 0")
@on("f32[40] 0.3 2", relative=1e-2)
def burgers(x, nu, steps):
    u = x.copy()
    for _ in range(steps):
        u[1:-1] += nu * (u[2:] - 2.0 * u[1:-1] + u[:-2]) - 0.05 * u[1:-1] * (u[2:] - u[:-2])
    return (u * u).sum()


@on("f64[N,M] 2", N="9 0 1 2 3", M="7 1 2")
def crossed(x, steps):
    """Edges on all four sides."""
    c = x.copy()
    for _ in range(steps):
        mid = c[1:-1, 1:-1]
        c[1:-1, 1:-1] = mid + 0.1 * mid * (c[:-2, 1:-1] - c[1:-1, 2:]) * c[2:, 1:-1]
    return (c * c).sum()


@on("f64[N,5,4] 2", N="6 1 0")
def one_sided(x, steps):
    """Other edges on each axis; none along the last."""
    c = x.copy()
    for _ in range(steps):
        c[2:, :-1] = c[2:, :-1] * c[:-2, 1:]
    return (c * c).sum()


@on("f64[N] 3", N="12 0 1")
def whole(x, steps):
    """A store of all leaves no edges."""
    u = x.copy()
    for _ in range(steps):
        u[:] = 0.5 * u * u[::-1] + u
    return (u * u).sum()


@on("f64[N,M] 3", N="6 1 0", M="4 1")
def columns_first(x, steps):
    """The first store behind the save is of one column."""
    u = x.copy()
    total = 0.0
    for _ in range(steps):
        total += (u * u * u).sum()
        u[:, 0] = 0.3 * np.sin(x[:, -1])
        u *= 0.9 + 0.1 * u
    return total + u.sum()


@on("f64[N] f64[3]", N="12 2")
def read_behind_the_store(x, w):
    """Of the next version: what is read, and stored, once the step has stored."""
    u = x.copy()
    total = 0.0
    for t in range(w.size):
        u[1:] = u[1:] * u[:-1]
        total += w[t] * u[-1] * u[0]
        u[0] = np.sin(total)
    return total + (u * u).sum()


@on("f64[N] 3", N="12 4")
def stored_before_it_is_saved(x, steps):
    """The edge is set first: it is part of what is saved."""
    u = x.copy()
    for t in range(steps):
        u[0] = 0.1 * t + u[-1]
        u[1:-1] = u[1:-1] * (u[2:] + u[:-2])
    return (u * u).sum()


@on("f64[N,N] 2", N="7 3")
def two_fields(x, steps):
    u, v = x.copy(), x * 0.5
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * v[1:-1, 1:-1] * u[:-2, 1:-1]
        v[1:, :] -= 0.2 * u[1:, :] * v[:-1, :]
        u[0, :] = 0.0
    return (u * v).sum() + (u * u).sum()


@on("f64[N] 4", N="10 3")
def under_a_condition(x, steps):
    """Some steps leave it as it is."""
    u = x.copy()
    for t in range(steps):
        if t % 2 == 1:
            u[1:-1] = 0.3 * u[1:-1] * (u[2:] + u[:-2])
    return (u * u).sum()


@on("f64[N] 3", N="10 3")
def looked_at_between(x, steps):
    """What is read before the loop, in it and behind it; a view of before the loop is used in all three."""
    u = x.copy()
    inner = u[1:-1]
    total = inner.sum() + u[0]
    for _ in range(steps):
        total += (inner * inner).sum()
        inner[:] = inner * (u[2:] + u[:-2])
        total += inner.sum() * u[0]
    return total + (inner * inner).sum()


@on("f64[N,M] 3", N="8 3 2", M="7")
def of_a_copy(x, steps):
    """The idiom of courses: the old field is copied, and read."""
    u, v = x.copy(), 0.5 * x
    for _ in range(steps):
        un, vn = u.copy(), v.copy()
        mid = un[1:-1, 1:-1]
        u[1:-1, 1:-1] = mid - 0.1 * mid * (mid - un[:-2, 1:-1]) + 0.1 * vn[1:-1, 2:] * mid
        v[1:-1, 1:-1] = vn[1:-1, 1:-1] - 0.1 * mid * (vn[1:-1, 1:-1] - vn[1:-1, :-2])
        u[0, :] = 1.0
        v[:, -1] = 0.5 * vn[:, 0]
    return (u * u).sum() + (u * v).sum()


@on("f64[N] 3", N="9 2")
def of_a_copy_that_changes(x, steps):
    u = x.copy()
    for _ in range(steps):
        un = u.copy()
        un[0] = 0.3
        u[1:] = un[1:] * un[:-1]
        u[0] += un[-1]
    return (u * u).sum()


@on("f64[N] 3", N="9 2")
def of_a_copy_of_what_changes(x, steps):
    """The copy is read behind a store to what was copied."""
    u = x.copy()
    total = 0.0
    for _ in range(steps):
        un = u.copy()
        u[1:] = u[1:] * u[:-1]
        total += (un * u).sum()
    return total


@on("f64[N] 3", N="9 2")
def of_arrays_made_anew(x, steps):
    """Arrays of each step, saved as a whole: of sums in place, and of a product that stays."""
    u = x.copy()
    for _ in range(steps):
        speed = np.zeros_like(u)
        for k in range(2):
            speed += (k + 1.0) * u * u
        ratio = np.sqrt(1.0 + speed)
        ratio /= 1.0 + u * u
        u[:] = 0.5 * np.sin(speed) * ratio + u
        u[0] = ratio[-1] * ratio[0]
    return (u * u).sum()


@on("f64[N] 3", N="10 3")
def two_loops(x, steps):
    u = x.copy()
    for _ in range(steps):
        u[1:-1] = u[1:-1] * (u[2:] + u[:-2])
    u[0] += 1.0
    for _ in range(steps):
        u[1:] = u[1:] * u[:-1]
    return (u * u).sum()


@on("f64[N] 2 3", N="10 3")
def a_loop_of_loops(x, outer, steps):
    total = 0.0
    for _ in range(outer):
        u = x.copy()
        for _ in range(steps):
            u[1:-1] = u[1:-1] * (u[2:] + u[:-2])
        total += (u * u).sum()
    return total


@on("f64[N] 3", N="10 3")
def returned(x, steps):
    u = x.copy()
    for _ in range(steps):
        u[1:-1] = u[1:-1] * (u[2:] + u[:-2])
    return u


@on("f64[N] S", N="10 3 2 1 0", S="3 1 0")
@on("f64[20]S 3")
@on("f64[20]R 3")
def of_the_caller(u, steps):
    for _ in range(steps):
        u[1:-1] = u[1:-1] * (u[2:] + u[:-2])


@on("f64[12]& f64[12]& 3")
@on("f64[13]&[:-1] f64[13]&[1:] 3")
@on("f64[12] f64[12] 3")
def seen_by_another_name(u, v, steps):
    total = 0.0
    for _ in range(steps):
        u[1:-1] = u[1:-1] * (u[2:] + u[:-2])
        total += v[1]
    return total


TestGradients = gradient_tests(programs)


def test_takes_no_memory_beside_the_versions():
    """The tape, one version more, the shadow and what is taken out of it: no copy, no temporary."""
    x, steps = np.random.default_rng(0).normal(size=4_000), 8
    compiled = mutad.compile(burgers, grad=True)
    kernel = measure_gradient(compiled, x, 0.1, steps).kernel
    assert kernel < x.nbytes * (steps + 1 + 2) + 4096
