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
