"""Networks in JAX."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import lax

loop = lax.fori_loop


class Written:
    @staticmethod
    def lstm(inputs, weights, bias):
        steps, cells = inputs.shape

        def sigmoid(g, x, h):
            return 1.0 / (1.0 + jnp.exp(-(weights[g, 0] * x + weights[g, 1] * h + bias[g])))

        def step(t, state):
            h, c, total = state
            x = inputs[t]
            forget, enter, leave = sigmoid(0, x, h), sigmoid(1, x, h), sigmoid(2, x, h)
            new = jnp.tanh(weights[3, 0] * x + weights[3, 1] * h + bias[3])
            c = forget * c + enter * new
            h = leave * jnp.tanh(c)
            return h, c, total + (h * h).sum()

        return loop(0, steps, step, (jnp.zeros(cells), jnp.zeros(cells), 0.0))[2]

    lstm_loops = lstm

    @staticmethod
    def softmax(x, target):
        most = jnp.max(x, axis=1, keepdims=True)
        e = jnp.exp(x - most)
        share = e / jnp.sum(e, axis=1, keepdims=True)
        return -(target * jnp.log(share + 1e-12)).sum()

    @staticmethod
    def layer_norm(x, gain, bias, target):
        mean = jnp.mean(x, axis=1, keepdims=True)
        away = x - mean
        variance = jnp.mean(away * away, axis=1, keepdims=True)
        y = gain * away / jnp.sqrt(variance + 1e-5) + bias
        return ((y - target) * (y - target)).sum()

    @staticmethod
    def attention(x, wq, wk, wv, heads):
        n, d = x.shape
        each = d // heads
        q, k, v = x @ wq, x @ wk, x @ wv
        out = jnp.zeros((n, d))
        for h in range(heads):
            s = slice(h * each, (h + 1) * each)
            score = q[:, s] @ k[:, s].T / jnp.sqrt(1.0 * each)
            e = jnp.exp(score - jnp.max(score, axis=1, keepdims=True))
            out = out.at[:, s].set(e / jnp.sum(e, axis=1, keepdims=True) @ v[:, s])
        return (out * out).sum()

    @staticmethod
    def mlp(x, w1, b1, w2, b2, w3, b3, target):
        h1 = jnp.maximum(x @ w1 + b1, 0.0)
        h2 = jnp.tanh(h1 @ w2 + b2)
        y = h2 @ w3 + b3
        return ((y - target) * (y - target)).sum()

    @staticmethod
    def conv2d(image, kernel):
        """The loops over the kernel stay; those over the image are slices."""
        n, m, channels = image.shape
        size, _, _, filters = kernel.shape
        n, m = n - size + 1, m - size + 1
        out = jnp.zeros((n, m, filters))
        for a in range(size):
            for b in range(size):
                for c in range(channels):
                    out = out + image[a : a + n, b : b + m, c, None] * kernel[a, b, c]
        return (out * out).sum()


class Expert:
    @staticmethod
    def lstm(inputs, weights, bias):
        """All gates as one array, what depends on the inputs before the loop."""
        before = weights[:, 0] * inputs[:, None] + bias
        cells = inputs.shape[1]

        def step(state, before):
            h, c = state
            gates = before + weights[:, 1] * h
            forget, enter, leave = jax.nn.sigmoid(gates[:3])
            c = forget * c + enter * jnp.tanh(gates[3])
            h = leave * jnp.tanh(c)
            return (h, c), h

        _, h = lax.scan(step, (jnp.zeros(cells), jnp.zeros(cells)), before)
        return (h * h).sum()

    lstm_loops = lstm

    @staticmethod
    def attention(x, wq, wk, wv, heads):
        n, d = x.shape
        each = d // heads
        q, k, v = ((x @ w).reshape(n, heads, each) for w in (wq, wk, wv))
        score = jnp.einsum("nhe,mhe->hnm", q, k) / jnp.sqrt(1.0 * each)
        out = jnp.einsum("hnm,mhe->nhe", jax.nn.softmax(score, axis=-1), v)
        return (out * out).sum()

    @staticmethod
    def conv2d(image, kernel):
        names = ("NHWC", "HWIO", "NHWC")
        out = lax.conv_general_dilated(
            image[None], kernel, (1, 1), "VALID", dimension_numbers=names
        )
        return (out * out).sum()
