"""Programs with products in loops: rows, columns and triangles of matrices, states, sums of outer products.

What a loop's products read and write in other iterations decides whether they may be one: matrices that
change as the loop goes on, vectors that depend on the one before, results that are read again.
"""

from __future__ import annotations

import random

HEAD = "def program(w, u, a, x, h0):"
START = (
    "n, m = x.shape",
    "s = 0.0",
    "h = h0.copy()",
    "c = np.zeros((n, n))",
    "y = x.copy()",
    "b = a.copy()",
)
RESULT = "return s + (c * c).sum() + np.sin(h).sum() + (y * y).sum() + 0.5 * (b * b).sum()"
RANGES = ("n", "n - 1", "n - 1, -1, -1", "1, n", "0, n, 2")
STATEMENTS = (
    "h = np.tanh(w @ h)",
    "h = np.tanh(w @ h + u @ x[i])",
    "h = h + u @ y[i]",
    "c[i + 1 :, i] = a[:, i] @ a[:, i + 1 :]",
    "c[i, :i] = a[i] @ w[:, :i]",
    "c[:i, i] = w[:i, :] @ a[:, i]",
    "c[i] = w @ h",
    "c[:, i] += w @ a[i]",
    "y[i] = h @ u",
    "y[i, :] += a[:, i] @ u",
    "s += a[i] @ h",
    "c[i, 0] = a[i] @ w[:, i]",
    "c[i + 1 :, i + 1 :] += np.outer(a[i + 1 :, i], h[i + 1 :])",
    "h[i] = a[i, :i] @ h[:i]",
    "b[:, i] = w @ b[:, i]",
    "b[i] = b[i] @ w",
    "c[i:, i] = a[i:, :] @ h",
    "c[i, : i + 1] = u[i] @ u[: i + 1, :].T",
    "y[:, :] = y + np.outer(h, x[i])",
)
NESTS = (
    (
        "for j in range(i + 1, n):",
        "c[i, j] = a[:, i] @ b[:, j]",
        "b[:, j] = b[:, j] - a[:, i] * c[i, j] * 0.1",
    ),
    ("for j in range(i):", "b[i, j] = b[i, :j] @ c[:j, j]", "c[j] = w @ b[j]"),
    ("for k in range(m):", "c[i, : i + 1] += 0.5 * u[i, k] * u[: i + 1, k]"),
    ("for k in range(n):", "y[i, :] += a[k, i] * u[k]"),
    ("for k in range(i + 1):", "h[k] += 0.5 * (a[k, :i] * w[i, :i]).sum()"),
    ("for j in range(m):", "for k in range(i + 1, n):", "    y[i, j] += a[k, i] * y[k, j]"),
    ("for j in range(i + 1):", "for k in range(m):", "    c[i, j] += x[i, k] * u[j, k]"),
    ("for j in range(m):", "for k in range(n):", "    y[i, j] += a[i, k] * u[k, j] * h[k]"),
)


def product_program(rng: random.Random) -> str:
    """One program."""
    body: list[str] = []
    for _ in range(rng.randint(1, 3)):
        if rng.random() < 0.6:
            body.append(rng.choice(STATEMENTS))
        else:
            first, *rest = rng.choice(NESTS)
            body += [first, *(f"    {line}" for line in rest)]
    lines = [
        *START,
        f"for i in range({rng.choice(RANGES)}):",
        *(f"    {line}" for line in body),
        RESULT,
    ]
    return "\n".join([HEAD, *(f"    {line}" for line in lines), ""])
