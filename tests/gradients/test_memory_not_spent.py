"""Programs that need to save little or nothing: gradients from reloads and recomputation."""

import math

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[5,3]:unit", "f64[1,3]:unit", "f64[2,1]:unit", saved=0)
def time_expanded(a):
    for t in range(a.shape[0] - 1):
        a[t + 1] = np.sin(a[t]) * a[t]
    return a[-1].sum()


@on("f64[5,6]:unit", "f64[5,6]F:unit", saved=0)
def time_expanded_by_elements(a):
    for t in range(a.shape[0] - 1):
        for i in range(1, a.shape[1] - 1):
            a[t + 1, i] = a[t, i - 1] * a[t, i + 1] + np.tanh(a[t, i])
    return (a[-1] * a[-1]).sum()


@on("f64[7] 4", "f64[7] 0", "f64[3] 1", "f32[7] 4", saved=0)
def linear_stencil(u, steps):
    for _ in range(steps):
        u[1:-1] += 0.2 * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u * u).sum()


@on("f64[7] 4", "f64[7]R 2", saved=0)
def linear_stencil_by_elements(u, steps):
    v = u.copy()
    for _ in range(steps):
        for i in range(1, u.size - 1):
            v[i] = 0.5 * u[i] + 0.25 * (u[i - 1] + u[i + 1])
        u, v = v, u
    return u[3] * u[2]


@on(
    "f64[7]:unit f64[7]:pos 3",
    "f64[7]:unit f64[7]:pos 0",
    "f32[7]:unit f32[7]:pos 2",
    saved=lambda u, kappa, steps: steps * u.nbytes,
)
def stencil_with_one_nonlinear_factor(u, kappa, steps):
    for _ in range(steps):
        u[1:-1] += 0.1 * kappa[1:-1] * u[1:-1] * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u * u).sum()


@on("f64[5,6]:unit f64[5,6]:pos 0.1 2", "f64[5,6]F:unit f64[5,6]:pos 0.1 2")
def diffusion_with_a_field(z, kappa, dt, steps):
    for _ in range(steps):
        slope = z[1:, :] - z[:-1, :]
        flux = 0.5 * (kappa[1:, :] + kappa[:-1, :]) * slope / (1 + slope * slope)
        z[1:-1, :] += dt * (flux[1:, :] - flux[:-1, :])
    return (z * z).mean()


@on("f64[n]", n="5 1 0")
@on("f64[5]R", "f32[5]", saved=0)
def pure_accumulation(x):
    s = 0.0
    for i in range(x.size):
        s += np.sin(x[i]) * x[i]
    return s


@on("f64[5]", "f64[1]", "f32[5]S", saved=0)
def accumulation_over_an_array(x):
    s = 0.0
    for v in x:
        s += math.exp(0.3 * v) / (1 + v * v)
    return s


@on("f64[5] 4", "f64[2] 1", saved=0)
def values_from_indices(x, n):
    s = 0.0
    for k in range(n):
        w = math.cos(0.5 * k) / (k + 1)
        for i in range(x.size):
            s += w * (i + 1) * x[i] * x[i]
    return s


@on("f64[5] f64[3]:unit", "f64[5] f64[0]")
def values_from_unmodified_inputs(x, w):
    s = 0.0
    for k in range(w.size):
        g = np.exp(w[k]) * np.sin(w[k])
        for i in range(x.size):
            x[i] = x[i] * g + s * 0.1
        s = x[0] * g
    return s


@on("f64[5]:unit f64[4]:unit", saved=lambda x, w: 8 * w.size + 8 * w.size * x.size)
def invariant_in_the_inner_loop(x, w):
    p = 1.0
    for k in range(w.size):
        p = np.tanh(p * w[k]) + 1
        for i in range(x.size):
            x[i] = x[i] * p * p
    return x.sum() * p


def diagonally_dominant(n):
    def made():
        from argument_rows import elements

        return (elements(np.float64, (n, n), "unit") + 2 * n * np.eye(n),)

    return made


def symmetric(n):
    def made():
        from argument_rows import elements

        a = elements(np.float64, (n, n), "unit")
        return (a + a.T + 4 * n * np.eye(n),)

    return made


@on(diagonally_dominant(5), diagonally_dominant(1), diagonally_dominant(2), saved=0)
def lu_in_place(a):
    n = a.shape[0]
    for k in range(n):
        for i in range(k + 1, n):
            a[i, k] /= a[k, k]
            for j in range(k + 1, n):
                a[i, j] -= a[i, k] * a[k, j]


@on(diagonally_dominant(5))
def lu_by_slices(a):
    n = a.shape[0]
    for k in range(n - 1):
        a[k + 1 :, k] /= a[k, k]
        a[k + 1 :, k + 1 :] -= a[k + 1 :, k : k + 1] * a[k, k + 1 :]


@on(symmetric(5), symmetric(1), saved=0)
def cholesky_in_place(a):
    n = a.shape[0]
    for j in range(n):
        for k in range(j):
            a[j, j] -= a[j, k] * a[j, k]
        a[j, j] = math.sqrt(a[j, j])
        for i in range(j + 1, n):
            for k in range(j):
                a[i, j] -= a[i, k] * a[j, k]
            a[i, j] /= a[j, j]


@on(symmetric(4), saved=0)
def ldl_in_two_passes(a):
    n = a.shape[0]
    for j in range(n):
        for i in range(j + 1, n):
            a[i, j] /= a[j, j]
        for i in range(j + 1, n):
            for k in range(j + 1, i + 1):
                a[i, k] -= a[i, j] * a[k, j] * a[j, j]


@on(symmetric(4), saved=lambda a: 8 * a.shape[0] * (a.shape[0] - 1) // 2)
def ldl_scaling_inside_the_update(a):
    n = a.shape[0]
    for j in range(n):
        for i in range(j + 1, n):
            w = a[i, j]
            a[i, j] = w / a[j, j]
            for k in range(j + 1, i + 1):
                a[i, k] -= a[i, j] * a[k, j] * a[j, j] if k < i else a[i, j] * w


@on(
    "f64[5]:unit f64[5]:unit#1 f64[5]:unit#2 f64[5]:unit#3",
    "f64[1] f64[1] f64[1] f64[1]",
    saved=lambda lower, diagonal, upper, b: 8 * (b.size - 1),
)
def thomas_in_place(lower, diagonal, upper, b):
    n = b.size
    for i in range(n):
        diagonal[i] += 4.0
    for i in range(1, n):
        w = lower[i] / diagonal[i - 1]
        diagonal[i] -= w * upper[i - 1]
        b[i] -= w * b[i - 1]
    b[-1] /= diagonal[-1]
    for i in range(n - 2, -1, -1):
        b[i] = (b[i] - upper[i] * b[i + 1]) / diagonal[i]


@on("f64[5]:unit f64[4]:unit", "f64[1]:unit f64[1]:unit", "f64[5]:unit f64[0]", saved=0)
def scratch_from_unmodified_inputs(x, w):
    tmp = np.zeros_like(x)
    s = 0.0
    for k in range(w.size):
        tmp[:] = x * w[k]
        s += np.exp(tmp).sum()
    return s


@on("f64[4,3]:unit f64[4]:pos 0.01 3")
def bodies_under_gravity(p, m, dt, steps):
    v = np.zeros_like(p)
    for _ in range(steps):
        for i in range(p.shape[0]):
            for j in range(p.shape[0]):
                if i != j:
                    dx = p[j, 0] - p[i, 0]
                    dy = p[j, 1] - p[i, 1]
                    dz = p[j, 2] - p[i, 2]
                    r2 = dx * dx + dy * dy + dz * dz + 0.1
                    f = m[j] / (r2 * math.sqrt(r2))
                    v[i, 0] += dt * f * dx
                    v[i, 1] += dt * f * dy
                    v[i, 2] += dt * f * dz
        p += dt * v
    return (v * v).sum()


TestGradients = gradient_tests(programs, tangents=True)
