"""Nests whose adjoints add to elements again and again get a nest for each sum (`gather-sums`)."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[5,6,C] f64[3,2,C,F]", C="3 0 1 2 7", F="8 0 1 17")
@on("f64[2,6,3] f64[2,6,3,8]")
@on("f32[4,4,4] f32[2,2,4,18]", relative=1e-2)
def convolution(image, kernel):
    """What is added to an element of the image comes from a window."""
    n, m, channels = image.shape
    high, wide, _, filters = kernel.shape
    out = np.zeros((n - high + 1, m - wide + 1, filters), image.dtype)
    for i in range(n - high + 1):
        for j in range(m - wide + 1):
            for a in range(high):
                for b in range(wide):
                    for c in range(channels):
                        for f in range(filters):
                            out[i, j, f] += image[i + a, j + b, c] * kernel[a, b, c, f]
    return (out * out).sum()


@on("f64[11,9] f64[N,9]", N="1 3 11")
def of_one_dimension(x, w):
    out = np.zeros((x.shape[0] - w.shape[0] + 1, x.shape[1]))
    for i in range(out.shape[0]):
        for a in range(w.shape[0]):
            for f in range(x.shape[1]):
                out[i, f] += x[i + a, f] * w[a, f]
    return (out * out).sum()


@on("f64[7,9] f64[3,9]")
def downwards(x, w):
    out = np.zeros((5, 9))
    for i in range(4, -1, -1):
        for a in range(2, -1, -1):
            for f in range(9):
                out[i, f] += x[i + a, f] * w[a, f]
    return (out * out).sum()


@on("f64[7,9] f64[3,9]")
def against_each_other(x, w):
    out = np.zeros((5, 9))
    for i in range(5):
        for a in range(3):
            for f in range(9):
                out[i, f] += x[i - a + 2, f] * w[a, f]
    return (out * out).sum()


@on("f64[9,9] f64[3,9]")
def every_other_row(x, w):
    out = np.zeros((4, 9))
    for i in range(4):
        for a in range(3):
            for f in range(9):
                out[i, f] += x[2 * i + a, f] * w[a, f]
    return (out * out).sum()


@on("f64[5,9] f64[4,9]")
def with_itself(x, w):
    """Both factors' cotangents go to one array."""
    out = np.zeros((3, 4, 9))
    for i in range(3):
        for k in range(4):
            for f in range(9):
                out[i, k, f] += x[i, f] * x[k, f] * w[k, f]
    return (out * out).sum()


@on("f64[4,5,10] f64[5,10] f64[4] 2.5")
def of_several_factors(x, y, z, s):
    total = np.zeros(4)
    for i in range(4):
        for k in range(5):
            for f in range(10):
                total[i] += -(x[i, k, f] * y[k, f] / s) * z[i]
    return (total * total).sum()


@on("f64[3,4,9] f64[9]")
def all_for_one_row(x, w):
    total = 0.0
    for i in range(3):
        for k in range(4):
            for f in range(9):
                total += x[i, k, f] * w[f] * x[i, k, 0]
    return total


@on("f64[2,6,8] f64[3,8] 3")
def again_and_again(x, w, steps):
    """The image of each step is that of the one before."""
    for _ in range(steps):
        out = np.zeros((2, 4, 8))
        for s in range(2):
            for i in range(4):
                for a in range(3):
                    for f in range(8):
                        out[s, i, f] += x[s, i + a, f] * w[a, f]
        x *= 1.0 + 0.1 * np.tanh(out.sum())
    return (x * x).sum()


@on("f64[5,3,8] f64[3,8]")
def of_triangles(x, w):
    out = np.zeros((5, 8))
    for i in range(5):
        for a in range(min(i, 3)):
            for f in range(8):
                out[i, f] += x[i, a, f] * w[a, f]
    return (out * out).sum()


@on("f64[2,6,7] f64[3,2,2,9]")
def channels_first(image, kernel):
    out = np.zeros((3, 5, 7))
    for f in range(3):
        for i in range(5):
            for j in range(7 - 1):
                for c in range(2):
                    for a in range(2):
                        for b in range(2):
                            out[f, i, j] += image[c, i + a, j + b] * kernel[f, c, a, b]
    return (out * out).sum()


TestGradients = gradient_tests(programs, tangents=True)
