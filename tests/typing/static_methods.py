"""More of a user's file: static methods, with the decorators in either order."""

from typing import assert_type

import numpy as np
import numpy.typing as npt

from mutad import compile

Array = npt.NDArray[np.float64]


class Model:
    @compile(grad=True)
    @staticmethod
    def total(u: Array) -> float:
        return float(u.sum())

    @staticmethod
    @compile(grad=True)
    def total_so(u: Array) -> float:
        return float(u.sum())


u, model = np.ones(9), Model()
assert_type(Model.total(u), float)
assert_type(model.total(u), float)
assert_type(Model.total_so(u), float)
assert_type(model.total_so(u), float)
Model.total.grad(u)
model.total_so.grad(u)
model.total("u")  # wrong
Model.total_so(u, 3)  # wrong
