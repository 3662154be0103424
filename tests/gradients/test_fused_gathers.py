"""Shadows that are gathered from the same points by one map (`fuse-gathers`)."""

from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[N,M] f64[N,M]", N="6 3 2", M="7 3 4")
def crossed(x, y):
    """Both shadows read the cotangent, and what the other array holds, at both shifts."""
    above, below = x[2:, 1:-1], x[:-2, 1:-1]
    right, left = y[2:, 1:-1], y[:-2, 1:-1]
    return (above * left - below * right * above).sum()


@on("f64[N] f64[N] S", N="20 0 1 2 3", S="2 1 0")
def both(x, y, steps):
    u, v = x.copy(), y.copy()
    for _ in range(steps):
        t = u[1:-1] * v[1:-1]
        w = 0.1 * (u[2:] * v[:-2] - u[:-2] * v[2:])
        u[1:-1] += w
        v[1:-1] -= w * t
    return (u * u).sum() + (v * v).sum()


@on("f64[N] f64[N]", N="12 3 2")
def divided(x, y):
    """What is 0 outside for one is divided by for the other."""
    q = x[2:] / (2.0 + y[:-2]) - x[:-2] / (2.0 + y[2:])
    return (q * q).sum()


TestGradients = gradient_tests(programs, tangents=True)
