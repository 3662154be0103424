"""Gradients through lists of arrays that grow: what they keep is not saved once more."""

import numpy as np
from gradient_oracle import GradientPrograms
from gradient_tests import gradient_tests

programs = GradientPrograms()
on = programs.on


@on("f64[3] n", "f64[2,2] n", "f32[3] n", n="0 1 3")
def copies_of_a_state(x, n):
    u = x.copy()
    states = [u.copy()]
    for _ in range(n):
        u = np.sin(u) + 0.1 * x
        states.append(u.copy())
    s = 0.0
    for v in states:
        s += (v * v).sum()
    return s


@on("f64[3] n", "f64[2,2] n", n="0 1 3", saved=0)
def each_state_from_the_last(x, n):
    """The list is the trajectory: nothing is overwritten."""
    states = [x.copy()]
    for _ in range(n):
        states.append(np.sin(states[-1]) * x)
    return sum((s * s).sum() for s in states)


@on("f64[3] n", n="1 3")
def summed_backwards(x, n):
    u = x
    path = []
    for _ in range(n):
        u = np.tanh(u * x)
        path.append(u)
    s = 0.0
    for k in range(len(path) - 1, -1, -1):
        s = s * 0.5 + (path[k] * path[k]).sum()
    return s


@on("f64[2,2] n", n="1 3")
def while_it_pays(x, n):
    powers = [x @ x]
    while len(powers) < n and powers[-1].sum() < 10.0:
        powers.append(powers[-1] @ x)
    return sum(p.sum() for p in powers)


@on("f64[3] n", n="1 3")
def items_changed_in_place(x, n):
    rows = []
    for _ in range(n):
        rows.append(np.zeros(3))
    for k in range(n):
        rows[k] += x * x * k
        rows[k][0] *= x[1]
    rows[0][:] = rows[-1] * x
    s = 0.0
    for a, b in zip(rows, reversed(rows)):
        s += (a * b).sum()
    return s


@on("f64[3] n", n="0 3")
def times_and_states(x, n):
    history = []
    t = x[0] * 0.0
    for k in range(n):
        t = t + x[k % 3] * x[0]
        history.append((t, x * t))
    s = 0.0
    for t, u in history:
        s += t * u.sum()
    return s


@on("f64[3] n", n="0 3")
def an_adjoint_by_hand(x, n):
    """What many programs do themselves: keep the states, and pop them backwards."""
    u = x.copy()
    states = []
    for _ in range(n):
        states.append(u)
        u = u + 0.1 * np.sin(u)
    bar = 2.0 * u
    while states:
        bar = bar + 0.1 * np.cos(states.pop()) * bar
    return (bar * x).sum()


@on("f64[4] n", n="1 3")
def stacked(x, n):
    rows = [x * x * k for k in range(n)]
    a = np.stack(rows)
    return (a * a).sum() + np.concatenate(rows)[-1] + rows[-1][0]


@on("f64[2,3] 3")
def joined_along_other_axes(x, n):
    wide = [x[:, : k + 1] * x[0, 0] for k in range(n)]
    a = np.stack([r * r for r in x], axis=1)
    b, c = np.concatenate(wide, axis=1), np.hstack(wide)
    d = np.column_stack([r * r[0] for r in x])
    return (a * d).sum() + (b * b)[1, 2] + c[0, -1] ** 2


@on("f64[3]")
def grids_of_numbers(x):
    g, h = np.mgrid[x[0] : x[1] : 4j, : x[2] : 3j]
    (p,) = (np.ogrid[x[0] : x[0] + 1.0 : 0.3] * x[1],)
    return (g * h * h).sum() + (p * p).sum()


@on("f64[3] n", n="0 3")
def under_a_condition(x, n):
    path = [x]
    u = x
    for k in range(n):
        u = u * 0.5 + x * x
        if k % 2 == 0:
            path.append(u)
    return sum([p.sum() ** 2 for p in path])


@on("f64[5] 2", "f64[4] 1")
def levels_of_a_multigrid(x, sweeps):
    us, n = [], x.size
    while n > 1:
        us.append(np.zeros(n))
        n = (n + 1) // 2
    us[0][:] = x
    for _ in range(sweeps):
        for k in range(len(us) - 1):
            us[k + 1][:] = us[k][::2] * 2.0 + us[k + 1]
        for k in range(len(us) - 2, -1, -1):
            us[k][::2] += 0.3 * us[k + 1] * us[k][0]
    return sum((u * u).sum() for u in us) + len(us)


@on("f64[4]")
def layers_of_several_sizes(x):
    acts = [x]
    for w in (np.full((2, 4), 0.3), np.full((3, 2), 0.2), np.ones((1, 3))):
        acts.append(np.tanh(w @ acts[-1]))
    return acts[-1][0] * acts[1][0] + acts[0][2]


@on("f64[4]")
def shapes_mixed_and_moved(x):
    rows = [x * 1.0, x[1:] * 2.0, x[:2] * 3.0]
    a = rows.pop()
    rows.append(np.concatenate([x, a]) * 1.0)
    flat = np.concatenate(rows)
    rows.insert(0, x[:1] * 3.0)
    rows[1] = x[2:] * x[0]
    tables = []
    for k in range(1, 4):
        m = np.zeros((k, 5 - k))
        m[0, 0] = x[k]
        m[-1, -1] += x[0] * k
        tables.append(m)
    tables.reverse()
    s = 0.0
    for i, v in enumerate(rows):
        s += (i + 1) * (v * v).sum()
    for m in tables:
        m *= x[1]
        s += m.sum() * m.shape[0]
    return s + flat.sum() * len(flat) + tables[0][-1, 0]


@on("f64[5]")
def stacked_of_shapes_that_turn_out_to_be_one(x):
    rows = []
    for k in range(3):
        rows.append(x[: 3 + k // 2] if k < 2 else x[2:] * x[0])
    return (np.stack(rows) * np.array(rows)[1, 2]).sum()


@on("f64[3,3] f64[3] n", n="0 1 4", saved=lambda A, b, n: 8 * n * b.size)
def products_of_items_under_a_condition(A, b, n):
    """An appended item overwrites nothing: of the items, nothing is saved."""
    basis = [b * b]
    for j in range(n):
        w = A @ basis[j % len(basis)]
        if w[0] > 0.1:
            basis.append(w * w)
    return basis[-1].sum()


@on("f64[3] n", n="1 10", saved=lambda x, n: -(-n // 8))
def squares_under_a_condition(x, n):
    """What is appended is recomputed from the items, of each round, a bit is saved."""
    steps = [x]
    for j in range(n):
        w = steps[-1] * steps[-1]
        if w[0] > 1e-3:
            steps.append(w * 0.9)
    return steps[-1].sum()


@on("f64[3,3] f64[3] n", n="1 7")
def products_of_items_that_are_overwritten(A, b, n):
    basis = [b * b]
    s = 0.0
    for j in range(n):
        w = A @ basis[-1]
        if w[0] > 0.3:
            basis.append(w * w * 0.1)
        else:
            basis.append(w + 1.0)
            basis.append(w * 0.5)
        if j % 3 == 2:
            s += (A @ basis.pop(0)).sum()
    return basis[-1].sum() + s


@on("f64[4,4] f64[4] n", n="1 3")
def gmres(A, b, n):
    """Arnoldi's basis in a list, Givens rotations in place."""
    A = A + 3.0 * np.eye(4)
    beta = np.linalg.norm(b)
    basis = [b / beta]
    H = np.zeros((n + 1, n))
    g = np.zeros(n + 1)
    g[0] = beta
    for j in range(n):
        w = A @ basis[j]
        for i in range(j + 1):
            H[i, j] = w @ basis[i]
            w = w - H[i, j] * basis[i]
        H[j + 1, j] = np.linalg.norm(w)
        if H[j + 1, j] > 1e-12:
            basis.append(w / H[j + 1, j])
    y = np.linalg.solve(H.T @ H, H.T @ g)
    x = sum(c * v for c, v in zip(y, basis))
    return (x**2).sum()


class CompressedRows:
    def __init__(self, data, columns, starts):
        self.data, self.columns, self.starts = data, columns, starts

    def __matmul__(self, x):
        y = np.zeros(len(self.starts) - 1)
        for i in range(len(y)):
            for p in range(self.starts[i], self.starts[i + 1]):
                y[i] += self.data[p] * x[self.columns[p]]
        return y


@on("f64[7] f64[3]")
def conjugate_gradients(data, b):
    """The old residual is recomputed from a version of the solution that is free."""
    A = CompressedRows(
        data + np.array([4.0, 0, 0, 5, 0, 0, 6]),
        np.array([0, 1, 0, 1, 2, 1, 2]),
        np.array([0, 2, 5, 7]),
    )
    x = np.zeros_like(b)
    r = b - A @ x
    p = r.copy()
    rs = r @ r
    log = []
    for k in range(3):
        q = A @ p
        a = rs / (p @ q)
        x += a * p
        r -= a * q
        new = r @ r
        log.append((k, new))
        if new < 1e-20:
            break
        p = r + new / rs * p
        rs = new
    return x @ x + log[0][1]


TestGradients = gradient_tests(programs, tangents=True)
