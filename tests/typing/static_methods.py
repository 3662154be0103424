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

# Derivatives are there through the class, and through an object.
value, gradient = Model.total_so.value_and_grad(u)
assert_type(value, float)
Model.total_so.jvp(u, tangents={"u": u})
model.total.explain(u)
Model.total.gradient(u)  # wrong
Model.total_so.gradient(u)  # wrong


class Plain:
    """Without derivatives."""

    @compile
    @staticmethod
    def total(u: Array) -> float:
        return float(u.sum())

    @staticmethod
    @compile
    def total_so(u: Array) -> float:
        return float(u.sum())

    def both(self, u: Array) -> float:
        return self.total(u) + self.total_so(u) + Plain.total_so(u)


assert_type(Plain.total(u), float)
assert_type(Plain().total_so(u), float)
Plain.total.grad(u)  # wrong
Plain.total_so.grad(u)  # wrong
Plain.total_so("u")  # wrong
