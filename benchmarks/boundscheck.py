"""What the bounds checks of subscripts cost: `boundscheck=True` (the default) over False."""

from __future__ import annotations

import numpy as np

from mutad import compile

from .kernels import KERNELS
from .primal import WHOLE_ARRAYS, finish
from .timing import interleaved, ratio, seconds, table


def gather(x, index, rounds):
    """Subscripts that come from memory, so that no range proves them: the checks stay."""
    total = 0.0
    for _ in range(rounds):
        for i in range(index.size):
            total += x[index[i]]
    return total


def main() -> None:
    rng = np.random.default_rng(0)
    cases = [(k.function, k.make()) for k in KERNELS if k.name not in WHOLE_ARRAYS]
    cases.append((gather, (rng.normal(size=20_000), rng.integers(0, 20_000, 20_000), 5)))
    found = table("bounds checks", "kernel", "unchecked", "checked", "checked / unchecked")
    ratios: list[float] = []
    for function, arguments in cases:
        checked, unchecked = compile(function), compile(function, boundscheck=False)
        np.testing.assert_allclose(checked(*arguments), unchecked(*arguments), rtol=1e-12)
        times = interleaved(
            {
                "checked": lambda f=checked, a=arguments: f(*a),
                "unchecked": lambda f=unchecked, a=arguments: f(*a),
            }
        )
        ratios.append(times["checked"] / times["unchecked"])
        found.add_row(
            function.__name__,
            seconds(times["unchecked"]),
            seconds(times["checked"]),
            ratio(ratios[-1]),
        )
    finish(found, ratios)


if __name__ == "__main__":
    main()
