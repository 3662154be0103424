"""Overlapping sources and destinations, shared arguments, ping-pong buffers."""

import numpy as np
from argument_rows import elements
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[n]", n="6 2 1 0")
@on("f64[6]L", L="R S")
@on("f32[6]", saved=0)
def shift_up(x):
    x[1:] = x[:-1]
    return (x * x).sum()


@on("f64[n]", n="6 2 1")
@on("f64[6]R", saved=0)
def shift_down(x):
    x[:-1] = x[1:]
    return (x * x).sum()


@on("f64[n]", n="6 2 1 0")
@on("f64[6]S", saved=0)
def add_shifted(x):
    x[1:] += x[:-1]
    return (x * x).sum()


@on("f64[6]", "f64[6]R", "f64[2]")
def multiply_shifted(x):
    x[1:] *= x[:-1]
    x[:-1] *= x[1:]


@on("f64[n]", n="7 3 2")
@on("f64[7]R", "f32[7]", saved=0)
def stencil(u):
    u[1:-1] = u[:-2] - 2 * u[1:-1] + u[2:]
    return (u * u).sum()


@on("f64[7]:unit 3", "f64[7]:unit 0", "f64[7]S:unit 2")
def nonlinear_stencil(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.2 * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])


@on("f64[5,6]:unit 2", "f64[5,6]F:unit 2", "f64[3,3]R:unit 1")
def nonlinear_stencil_of_a_matrix(u, steps):
    for _ in range(steps):
        u[1:-1, 1:-1] += 0.1 * (u[:-2, 1:-1] * u[2:, 1:-1] - u[1:-1, :-2] * u[1:-1, 2:])
    return (u**2).sum()


@on("f64[n]", n="6 1 0")
@on("f64[6]R", saved=0)
def running_sum(x):
    for i in range(1, x.size):
        x[i] += x[i - 1]
    return (x * x).sum()


@on("f64[6]", "f64[5]R")
def reversed_onto_itself(x):
    x[:] = x[::-1]
    x *= x[::-1]
    return x[0] + 3 * x[-1]


@on("f64[4,4]", "f64[4,4]F", "f64[1,1]")
def transposed_onto_itself(a):
    a[:] = a.T * a
    a += a.T


@on("f64[4,5]", "f64[4,5]R")
def broadcast_of_itself(a):
    a *= a[0]
    a[1:] -= a[:, 2:3][1:] * a[:1]


@on("f64[5,5] f64[2,2]", "f64[5,5]F f64[2,2]R", "f32[5,5] f32[2,2]T")
def block_assignment(b, a):
    b[:2, :2] = a * a
    b[3:, 3:] *= a.T
    return (b * b).sum()


@on("f64[6]:unit", "f64[6]R:unit")
def writes_through_views(x):
    v = x[::-1]
    v[1:] *= x[:-1]
    w = v[::2]
    w[0] = np.sin(x[0])
    w += x[3:]
    return (v * x).sum()


@on("f64[3,4]:unit", "f64[3,4]F:unit", "f64[3,4]S:unit")
def writes_through_a_transposed_view(a):
    t = a.T
    t[1] = a[:, 0] * a[:, 2]
    t[2:, 1] *= a[0, 2:]
    for row in a:
        row *= row[0]


@on("f64[7]:unit f64[7]:unit#1 N", N="0 1 2 5")
@on(
    "f32[7]:unit f32[7]:unit#1 3",
    "f64[7]R:unit f64[7]S:unit#1 4",
    saved=lambda u, v, steps: steps * u.nbytes,
)
def ping_pong(u, v, steps):
    for _ in range(steps):
        for i in range(1, u.size - 1):
            v[i] = 0.5 * u[i - 1] * u[i + 1] + 0.25 * u[i]
        u, v = v, u
    return (u * u).sum()


@on("f64[7]:unit N", N="0 1 4")
def ping_pong_with_a_buffer(u, steps):
    v = u.copy()
    for _ in range(steps):
        v[1:-1] = u[1:-1] * (u[:-2] + u[2:])
        u, v = v, u
    return u.sum()


@on("f64[5]:unit f64[5]:unit#1 N", N="0 1 3")
def ping_pong_of_results(u, v, steps):
    for _ in range(steps):
        v[:] = u * u - v
        u, v = v, u
    return u * v, v[1:].copy()


@on("f64[4]:unit f64[4]:unit#1 f64[4]:unit#2 N", N="0 1 2 5")
def rotation_of_three(a, b, c, steps):
    for k in range(steps):
        a[:] = b * c + a
        a, b, c = b, c, a
    return (a * b).sum() + c[0]


# Arguments that share memory: gradients share it as they do.


VECTOR_PAIRS = (
    "f64[6]& f64[6]&[::-1]",
    "f64[7]&[:-1] f64[7]&[1:]",
    "f64[7]&[2:] f64[7]&[:-2]",
    "f64[6]& f64[6]&",
    "f64[12]&[::2] f64[12]&[1::2]",
)
TRANSPOSE = "f64[4,4]& f64[4,4]&.T"


@on(*VECTOR_PAIRS, TRANSPOSE, saved=0)
def product_of_arguments(x, y):
    return (x * y).sum()


@on(TRANSPOSE, saved=0)
def weighted_transpose(x, xt):
    return (xt * x * x).sum()


@on(*VECTOR_PAIRS)
def written_through_one_read_through_the_other(x, y):
    x *= 0.5
    for i in range(x.size):
        y[i] += x[i] * y[i]
    return (x * x).sum() + y[0]


@on(*VECTOR_PAIRS)
def assigned_from_each_other(x, y):
    x[:] = y * y
    y[1:] = np.sin(x[:-1])


@on("f64[9]:unit&[:5] f64[9]:unit&[4:] f64[9]:unit&[2:7:2] 0.5")
def three_sharing_arguments(x, y, z, k):
    y[:] = k * x * y
    z *= x[:3]
    return (x * x).sum() + (y * k).sum()


def test_gradient_of_a_product_with_its_transpose() -> None:
    """In the shared memory: one gradient, both paths."""
    from python_oracle import compiled

    x = elements(np.float64, (3, 3))
    gx, gxt = compiled(product_of_arguments, grad=True).grad(x, x.T, wrt=(0, 1))
    assert np.allclose(gx, 2 * x.T, rtol=1e-14)
    assert np.shares_memory(gx, gxt)
    assert np.array_equal(gxt, gx.T)


TestGradients = gradient_tests(programs, tangents=True)
