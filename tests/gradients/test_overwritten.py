"""Values that are overwritten before the adjoint reads them."""

import math

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


def all_but_two(u):
    """One for each trip but that whose read nothing overwrites."""
    return u.itemsize * max(u.size - 2, 0)


@on("f64[n] f64[n]#1", n="5 0 1", exact=lambda a, c: (2 * a, 1.0))
@on(
    "f64[5]R f64[5]S#1",
    "f64[3,4] f64[3,4]#1",
    "f32[5] f32[5]",
    exact=lambda a, c: (2 * a, 1.0),
    saved=lambda a, c: a.nbytes,
)
def square_then_overwrite_by_an_array(a, c):
    b = a * a
    a[:] = c
    return b.sum() + a.sum()


@on("f64[n] 1.5", n="5 1", exact=lambda a, c: (2 * a, a.size))
@on("f64[5]R f64(1.5)", exact=lambda a, c: (2 * a, a.size), saved=lambda a, c: a.nbytes)
def square_then_overwrite_by_a_scalar(a, c):
    b = a * a
    a[:] = c
    return b.sum() + a.sum()


@on("f64[n] f64[n]#1", n="5 0 1", exact=lambda a, b: (2 * a, 0.0))
@on(
    "f64[5]R f64[5]S#1",
    "f32[5] f32[5]",
    exact=lambda a, b: (2 * a, 0.0),
    saved=lambda a, b: a.nbytes,
)
def square_into_another_then_store(a, b):
    for i in range(a.size):
        b[i] = a[i] * a[i]
        a[i] = 1.0
    return b.sum()


@on("f64[5]L", L="C R", exact=lambda a: np.cos(a))
@on("f32[5]", "f64[1]", "f64[0]", exact=lambda a: np.cos(a))
def stored_twice_by_each_iteration(a):
    for i in range(a.size):
        old = a[i]
        a[i] = old * old
        a[i] = np.sin(old)
    return a.sum()


@on("f64[5] f64[5]#1", "f64[5]R f64[5]S#1")
def cleared_and_then_added_to(a, b):
    for i in range(a.size):
        old = b[i]
        b[i] = 0.0
        b[i] += old * a[i]
        b[i] += a[i]


@on("f64[5]& f64[5]&", "f64[5]& f64[5]&[::-1]", "f64[6]&[:-1] f64[6]&[1:]")
def stored_through_two_names(a, b):
    for i in range(a.size):
        b[i] = a[i] * a[i]
        a[i] = 1.0
    return (b * b).sum() + a.sum()


@on("f64[6]:unit i64[3]", "f64[6]:unit i32[3]", "f64[6]:unit i64[0]")
def trip_counts_mutated_by_the_loop(x, counts):
    for j in range(counts.size):
        counts[j] = (counts[j] + 7) % 5
        for i in range(counts[j]):
            x[i] *= x[i - 1]
            counts[j] += i
        counts[:] = counts[j] % 4


@on("f64[6]:unit i64[3]:pos")
def lengths_mutated_by_the_loop(x, lengths):
    for j in range(lengths.size):
        positions = np.zeros(lengths[j], dtype=np.int64)
        lengths[j] = 0
        for i in range(positions.size):
            positions[i] = i + 1
        for i in range(positions.size):
            x[i] *= x[positions[i] % x.size]
            positions[i] += 1
            x[0] *= x[positions[i] % x.size]


@on("f64[n] f64[n]#1", n="5 0 1", exact=lambda a, b: (b, a))
@on("f64[5]R f64[5]S#1", "f32[5] f32[5]", exact=lambda a, b: (b, a))
def multiply_in_place_by_elements(a, b):
    for i in range(a.size):
        a[i] *= b[i]
    return a.sum()


@on(
    "f64[5]:pos f64[5]:pos#1",
    "f32[5]:pos f32[5]:pos#1",
    exact=lambda a, b: (1 / b, -a / b**2),
    saved=0,
)
def divide_in_place(a, b):
    a /= b
    return a.sum()


@on("f64[5]", "f64[3,4]F", "f32[5]", exact=lambda a: 2 * a)
def square_in_place(a):
    a **= 2
    return a.sum()


@on("f64[5]", exact=lambda a: np.cos(a))
@on("f64[5]S", "f64[3,4]T", exact=lambda a: np.cos(a))
def sine_in_place(a):
    a[...] = np.sin(a)
    return a.sum()


@on("f64[5]", "f64[5]R")
def a_chain_in_place(a):
    a *= a

    a[...] = np.exp(-a)
    a += 1
    a **= 3
    a /= a[0] + 2
    return (a * a).sum()


@on("f64[n]:pos", n="3 1", exact=lambda x: np.prod(x) / x)
@on("f32[4]:pos", "f64[4]R", exact=lambda x: np.prod(x) / x)
@on("f64[0]", saved=lambda x: x.nbytes)
def product_of_an_array(x):
    p = 1.0
    for v in x:
        p *= v
    return p


def test_product_of_twos_gives_fours() -> None:
    from python_oracle import compiled

    gradient = compiled(product_of_an_array, grad=True).grad(np.full(3, 2.0))
    assert gradient.tolist() == [4.0, 4.0, 4.0]


@on("f64[4] 3", "f64[4] 0", "f32[4] 2")
def a_name_reused_by_a_loop(x, n):
    v = np.sin(x[0])
    kept = v * x[1]
    for k in range(n):
        v = v * x[2] + k
    return kept * kept + v * v


@on("1.5 2.0", "f64(1.5) f64(2)", exact=lambda x, y: (2 * x * y, x**2))
def scalar_updates(x, y):
    loss = 0.0
    loss += x**2
    loss *= y
    return loss


@on("f64[5] f64[5]#1", exact=lambda x, b: (b, x))
def overwritten_factor(x, b):
    loss = x * b
    b += 100
    return loss.sum()


@on("f64[5] 3", "f64[1] 2", "f64[5] 0", "f32[5]:unit 2")
def scratch_reused(x, n):
    tmp = np.ones(x.size)
    s = 0.0
    for _ in range(n):
        for k in range(x.size):
            tmp[k] *= x[k]
        s += (tmp * tmp).sum()
    return s


@on("f64[6] 3", "f64[2] 2")
def scratch_reused_wholly(x, n):
    tmp = np.empty_like(x)
    s = 0.0
    for k in range(n):
        tmp[:] = x * x[k % 2]
        tmp[0] = np.sin(tmp[1])
        s += np.exp(tmp * 0.3).sum()
        x[1:] = tmp[:-1]
    return s


@on("0.0 1.0 0.3 1.2", "0.0 1.0 0.35 f64(1.2)", "0.6 0.5 0.3 1.2")
def adaptive_steps(t, end, dt, u):
    while t < end:
        dt = min(dt, end - t)
        u += dt * (math.sin(t) - u * u)
        t += dt
    return u


@on("0.0 1.0 f64[4]", "0.0 0.9 f64[4]R")
def adaptive_steps_of_an_array(t, end, u):
    while t < end:
        dt = min(0.3 / (1 + u[0] * u[0]), end - t)
        u += dt * (np.cos(u) - t * u)
        t += dt
    return (u * u).sum()


@on("f64[4] f64[4]#1")
def stored_twice_and_overwritten_once(a, b):
    for i in range(a.size):
        t = np.exp(a[i])
        a[i] = t
        b[i] = t
    s = (a * 3).sum()
    a[0] = 7.0
    return s + b.sum()


@on("f64[6] 6.2", "f64[6] 2.3", "f64[6] -0.2")
def while_changes_its_bound(x, bound):
    i = 0
    s = 0.0
    while i < bound and i < x.size:
        s += x[i] * x[i] * bound
        bound -= 0.5
        x[i] = s
        i += 1
    return s


@on("1.3", "f64(0.7)")
def newton_iterations(a):
    x = a
    for _ in range(6):
        x = 0.5 * (x + a / x)
    return x


@on("2.0", exact=lambda a: 0.5 / math.sqrt(a), relative=1e-5)
def newton_until_converged(a):
    x = a
    while abs(x * x - a) > 1e-14:
        x = 0.5 * (x + a / x)
    return x


@on("f64[5]:pos i64[4]:pos", "f64[9]:pos i32[4]:pos")
def index_array_mutated_after(x, index):
    s = 0.0
    for k in range(index.size):
        s += x[index[k] % x.size] ** 2
    index[:] = 0
    x[index[0]] = 0
    return s


@on("f64[5] i64[3]:pos")
def loop_bound_mutated_after(x, counts):
    s = 1.0
    for k in range(counts[0]):
        s *= x[k % x.size] * x[0]
        counts[0] = 99
    return s


# Reading ahead, behind, both; ascending, descending; sweeps; two dimensions; triangles.


@on("f64[n]", n="6 2 1 0")
@on("f64[6]R", "f32[6]:unit", saved=all_but_two)
def reads_ahead(u):
    for i in range(u.size - 1):
        u[i] = u[i + 1] * u[i + 1]


@on("f64[n]:unit", n="6 2 1")
@on("f64[6]S:unit", saved=0)
def reads_behind(u):
    for i in range(1, u.size):
        u[i] = u[i - 1] * u[i - 1] + u[i]


@on("f64[n]:unit", n="6 3 2")
def reads_both(u):
    for i in range(1, u.size - 1):
        u[i] = u[i - 1] * u[i + 1] + np.sin(u[i])


@on("f64[n]:unit", n="6 2 1", saved=0)
def descending_reads_ahead(u):
    for i in range(u.size - 2, -1, -1):
        u[i] = u[i + 1] * u[i + 1] - u[i]


@on("f64[n]", n="6 2 1", saved=all_but_two)
def descending_reads_behind(u):
    for i in range(u.size - 1, 0, -1):
        u[i] = u[i - 1] * u[i - 1]


@on("f64[7]:unit 3", "f64[7]:unit 0", "f64[7]R:unit 2", "f32[7]:unit 2")
def repeated_sweeps(u, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.size - 1):
            u[i] = 0.5 * u[i] * u[i + 1] + 0.5 * u[i - 1]


@on("f64[7]:unit 3")
def sweeps_there_and_back(u, sweeps):
    for _ in range(sweeps):
        for i in range(u.size - 1):
            u[i] *= u[i + 1]
        for i in range(u.size - 1, 0, -1):
            u[i] += u[i - 1] ** 2


@on("f64[7]:unit 3", "f64[3]:unit 2", "f64[2]:unit 2", "f64[7]R:unit 1", "f64[7]:unit 0")
def sweeps_with_ends_of_their_own(u, sweeps):
    n = u.size
    for _ in range(sweeps):
        for i in range(1, n - 1):
            u[i] = 0.5 * u[i - 1] * u[i + 1]
        u[0] = u[1] * u[1]
        u[n - 1] = u[n - 2] * 0.5


@on("f64[8]:unit 3", "f64[4]:unit 2", "f64[3]:unit 2", "f32[8]:unit 2")
def red_and_black_sweeps(u, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.size - 1, 2):
            u[i] = 0.8 * u[i] * u[i - 1] * u[i + 1] + 0.1
        for i in range(2, u.size - 1, 2):
            u[i] = 0.7 * u[i] * u[i - 1] * u[i + 1] + 0.1


@on("f64[n]:unit", n="6 1 0")
@on("f64[6]S:unit", saved=lambda u: u.itemsize * u.size)
def suffixes(u):
    s = 0.0
    for i in range(u.size):
        s += (u[i:] * u[i:]).sum()
        u[i] = 0.5 * u[i]
    return s


@on("f64[6]:unit f64[2]:unit 3", "f64[1]:unit f64[2]:unit 3", "f64[0] f64[2]:unit 3")
def elements_used_by_the_inner_loop(x, c, steps):
    for k in range(steps):
        for i in range(1, x.size):
            x[i] = x[i] * c[0] + x[i - 1] * c[k % 2]
        c[0] = np.sin(c[0]) * c[1]
        if k > 0:
            c[1] *= c[0]


@on("f64[8]:unit", "f64[8]R:unit")
def in_steps_of_two(u):
    for i in range(0, u.size - 2, 2):
        u[i] = u[i + 2] * u[i + 1]
        u[i + 1] = u[i] * u[i + 2]


@on("f64[6]:unit")
def reads_two_ahead_and_mirrored(u):
    n = u.size
    for i in range(n - 2):
        u[i] = u[i + 2] * u[n - 1 - i]


@on("f64[4,5]L:unit", L="C F R S")
@on("f64[2,2]:unit", "f64[4,3]:unit", saved=lambda u: 8 * (u.shape[0] - 2) * (u.shape[1] - 1))
@on("f64[1,5]:unit", saved=0)
def sweep_of_a_matrix(u):
    for i in range(u.shape[0] - 1):
        for j in range(1, u.shape[1]):
            u[i, j] = u[i + 1, j] * u[i, j - 1] + 0.5 * u[i + 1, j - 1]


@on("f64[4,5]:unit 2", "f64[4,5]F:unit 1")
def sweeps_of_a_matrix_both_ways(u, sweeps):
    for _ in range(sweeps):
        for i in range(1, u.shape[0]):
            for j in range(u.shape[1] - 2, -1, -1):
                u[i, j] *= u[i - 1, j + 1] + u[i, j + 1]


@on("f64[5,5]:unit", "f64[5,5]F:unit", "f64[1,1]:unit")
def triangle(a):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] = a[j, i] * a[i, i]
        for j in range(i + 1, a.shape[0]):
            a[i, j] *= a[i, j - 1]


@on("f64[6]:unit")
def every_element_from_all_before(u):
    for i in range(1, u.size):
        for j in range(i):
            u[i] += u[j] * u[i]


@on("f64[6]:unit 4")
def one_element_rewritten(u, n):
    for k in range(n):
        u[0] = np.sin(u[0]) * u[k + 1]
        u[k + 1] = u[0] ** 2


@on("f64[6]:unit i64[6]:pos")
def scattered_stores(u, index):
    for k in range(index.size):
        j = index[k] % u.size
        u[j] = u[j] * u[k] + 0.5 * u[k - 1]


TestGradients = gradient_tests(programs, tangents=True)
