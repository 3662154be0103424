"""Segments pushed before loops whose counts an inner block computes."""

import numpy as np

from mutad import check_gradient, compile


def multiplied_along_a_triangle(a, x, m):
    for i in range(0, m, 2):
        for j in range(2 * i + 1, 7):
            for k in range(3, m - 2):  # pure, but computed inside of the loop over j
                x[i + j + 2 * k + 3] *= a[j, 1 - j - k]
    return (x * 0.3).sum()


def test_a_count_that_an_inner_block_computes_is_known_to_the_reverse_sweep() -> None:
    rng = np.random.default_rng(0)
    a, x = rng.uniform(0.5, 1.5, (8, 12)), rng.uniform(0.5, 1.5, 40)
    check_gradient(compile(multiplied_along_a_triangle, grad=True), a, x, 6, wrt=("a", "x"))


def arguments_that_take_turns(u, v, k, steps):
    for _ in range(steps):
        v[1:-1] = u[1:-1] + k * u[2:] * u[:-2]
        u, v = v, u
    return (u * u).sum() + v[:1].sum()


def test_what_arguments_hold_that_take_turns_is_one_segment() -> None:
    """Their interiors fit together, so they have one extent; where they have not, nothing is assumed."""
    made = compile(arguments_that_take_turns, grad=True)
    for m, n in ((7, 7), (2, 2), (0, 0), (1, 2), (2, 1), (0, 2), (2, 0)):
        for steps in (0, 3, 4):
            check_gradient(
                made,
                np.linspace(0.5, 1, m),
                np.linspace(0.2, 1, n),
                0.1,
                steps,
                wrt=("u", "v", "k"),
            )
    u, v = np.ones(7), np.ones(7)
    assert made.explain(u, v, 0.1, 5, run=True).saved_bytes == 8 * 5 * 7
    adjoint = made.inspect("adjoint", u, v, 0.1, 5, wrt=("u", "v", "k"))
    assert "ad.push" in adjoint
    assert "ad.pop" not in adjoint


def test_a_receipt_is_of_the_code_that_a_call_runs() -> None:
    """These interiors fit together, and the arrays do not: each iteration saves as much as there is."""
    made = compile(arguments_that_take_turns, grad=True)
    given = np.ones(2), np.ones(0), 0.1, 5
    assert made.explain(*given, run=True).saved_bytes == 8 * (3 * 2 + 2 * 0)
    assert made.explain(np.ones(1), np.ones(2), 0.1, 5, run=True).saved_bytes >= 0


def orthogonal_rows(a, q):
    for k in range(a.shape[0]):
        q[k] = a[k] / np.sqrt(np.dot(a[k], a[k]))
        for j in range(k + 1, a.shape[0]):
            a[j] -= q[k] * np.dot(q[k], a[j])
    return (q * q * q).sum()


def changing_rows(a, q):
    """The inner loop writes to the row that it reads."""
    for k in range(a.shape[0]):
        for j in range(a.shape[0]):
            a[j] += np.sin(q[k]) * a[j]
            q[k] += 0.1 * a[j]
    return (q * a).sum()


def test_a_row_that_an_inner_loop_reads_again_and_again_is_saved_once() -> None:
    """What the caller may change has a place for each iteration of the loops in which it is another row."""
    given = np.random.default_rng(0).normal(size=(2, 5, 7))
    made = compile(orthogonal_rows, grad=True)
    plan = made.explain(*given.copy(), wrt=("a", "q"), plan="split")
    assert {s.bytes for s in plan.saves if s.name == "q"} == {8 * 5 * 7}
    check_gradient(made, *given.copy(), wrt=("a", "q"))
    other = compile(changing_rows, grad=True)
    plan = other.explain(*given.copy(), wrt=("a", "q"), plan="split")
    assert 8 * 5 * 5 * 7 in {s.bytes for s in plan.saves if s.name == "q"}
    check_gradient(other, *given.copy(), wrt=("a", "q"))
