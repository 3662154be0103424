"""Networks as they are written by hand in NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from .program import Program


def lstm(inputs, weights, bias):
    """A recurrent layer whose gates look at their own cell alone, in slices.

    weights[g, 0] is of the input, weights[g, 1] of the state; g: forget, input, output, candidate.
    """
    steps, cells = inputs.shape
    h = np.zeros(cells)
    c = np.zeros(cells)
    total = 0.0
    for t in range(steps):
        x = inputs[t]
        forget = 1.0 / (1.0 + np.exp(-(weights[0, 0] * x + weights[0, 1] * h + bias[0])))
        enter = 1.0 / (1.0 + np.exp(-(weights[1, 0] * x + weights[1, 1] * h + bias[1])))
        leave = 1.0 / (1.0 + np.exp(-(weights[2, 0] * x + weights[2, 1] * h + bias[2])))
        new = np.tanh(weights[3, 0] * x + weights[3, 1] * h + bias[3])
        c = forget * c + enter * new
        h = leave * np.tanh(c)
        total += (h * h).sum()
    return total


def lstm_loops(inputs, weights, bias):
    """The same in scalar loops."""
    steps, cells = inputs.shape
    h = np.zeros(cells)
    c = np.zeros(cells)
    total = 0.0
    for t in range(steps):
        for i in range(cells):
            x = inputs[t, i]
            forget = 1.0 / (
                1.0 + math.exp(-(weights[0, 0, i] * x + weights[0, 1, i] * h[i] + bias[0, i]))
            )
            enter = 1.0 / (
                1.0 + math.exp(-(weights[1, 0, i] * x + weights[1, 1, i] * h[i] + bias[1, i]))
            )
            leave = 1.0 / (
                1.0 + math.exp(-(weights[2, 0, i] * x + weights[2, 1, i] * h[i] + bias[2, i]))
            )
            new = math.tanh(weights[3, 0, i] * x + weights[3, 1, i] * h[i] + bias[3, i])
            c[i] = forget * c[i] + enter * new
            h[i] = leave * math.tanh(c[i])
            total += h[i] * h[i]
    return total


def softmax(x, target):
    """Cross entropy of rows."""
    most = np.max(x, axis=1, keepdims=True)
    e = np.exp(x - most)
    share = e / np.sum(e, axis=1, keepdims=True)
    return -(target * np.log(share + 1e-12)).sum()


def layer_norm(x, gain, bias, target):
    """Rows normalized, scaled, and held against a target."""
    mean = np.mean(x, axis=1, keepdims=True)
    away = x - mean
    variance = np.mean(away * away, axis=1, keepdims=True)
    y = gain * away / np.sqrt(variance + 1e-5) + bias
    return ((y - target) * (y - target)).sum()


def attention(x, wq, wk, wv, heads):
    """Self-attention, one head after the other."""
    n, d = x.shape
    each = d // heads
    q = x @ wq
    k = x @ wk
    v = x @ wv
    out = np.zeros((n, d))
    for h in range(heads):
        s = slice(h * each, (h + 1) * each)
        score = q[:, s] @ k[:, s].T / np.sqrt(1.0 * each)
        e = np.exp(score - np.max(score, axis=1, keepdims=True))
        out[:, s] = e / np.sum(e, axis=1, keepdims=True) @ v[:, s]
    return (out * out).sum()


def mlp(x, w1, b1, w2, b2, w3, b3, target):
    """Three layers and a squared error."""
    h1 = np.maximum(x @ w1 + b1, 0.0)
    h2 = np.tanh(h1 @ w2 + b2)
    y = h2 @ w3 + b3
    return ((y - target) * (y - target)).sum()


def conv2d(image, kernel):
    """A convolution in six loops."""
    n, m, channels = image.shape
    size, _, _, filters = kernel.shape
    out = np.zeros((n - size + 1, m - size + 1, filters))
    for i in range(n - size + 1):
        for j in range(m - size + 1):
            for a in range(size):
                for b in range(size):
                    for c in range(channels):
                        for f in range(filters):
                            out[i, j, f] += image[i + a, j + b, c] * kernel[a, b, c, f]
    return (out * out).sum()


def _mlp(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    wide = [n, max(n // 2, 4), max(n // 4, 3), 10 if n > 20 else 2]
    layers = []
    for a, b in itertools.pairwise(wide):
        layers += [r.normal(size=(a, b)) / np.sqrt(a), 0.1 * r.normal(size=b)]
    rows = 64 if n > 20 else 5
    return (r.normal(size=(rows, n)), *layers, r.normal(size=(rows, wide[-1])))


def _rows(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.normal(size=(n, n)), r.random((n, n)))


def _normed(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.normal(size=(n, n)), r.normal(size=n), r.normal(size=n), r.normal(size=(n, n)))


def _heads(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    d = 64 if n > 20 else 4
    weights = (r.normal(size=(d, d)) / np.sqrt(d) for _ in range(3))
    return (r.normal(size=(n, d)), *weights, 4 if n > 20 else 2)


def _image(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    return (r.normal(size=(n, n, 3)), 0.1 * r.normal(size=(3, 3, 3, 8 if n > 20 else 2)))


def _lstm(r: np.random.Generator, n: int) -> tuple[Any, ...]:
    steps = 50 if n > 20 else 4
    weights = 0.5 * r.normal(size=(4, 2, n))
    return (r.normal(size=(steps, n)), weights, 0.1 * r.normal(size=(4, n)))


NETWORKS = (
    Program(lstm, _lstm, (64, 1024, 8192, 32_768), 3, ("weights", "bias"), by_hand="lstm"),
    Program(
        lstm_loops,
        _lstm,
        (64, 1024, 8192, 32_768),
        3,
        ("weights", "bias"),
        loops=True,
        by_hand="lstm",
    ),
    Program(softmax, _rows, (64, 512, 1024, 2048), 4, ("x",)),
    Program(layer_norm, _normed, (64, 512, 1024, 2048), 4, ("x", "gain", "bias")),
    Program(attention, _heads, (64, 256, 512, 1024), 5, ("x", "wq", "wk", "wv")),
    Program(mlp, _mlp, (64, 512, 1024, 2048), 6, ("w1", "b1", "w2", "b2", "w3", "b3")),
    Program(conv2d, _image, (24, 64, 128, 300), 5, ("image", "kernel"), loops=True),
)
