"""Calls of other people's packages, as a user writes them: the function, the numbers, what else is passed."""

from __future__ import annotations

import types
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import fluids
import numpy as np
import numpy_financial as npf
from generated import function_of

Values = dict[str, Any]


@dataclass(frozen=True)
class Call:
    """`module.name(**numbers, **rest)` as a function of the numbers."""

    module: types.ModuleType
    name: str
    numbers: Values
    rest: Values = field(default_factory=Values)

    def function(self) -> Callable[..., Any]:
        """`def f(a, b): return module.name(a=a, b=b, method="...")`."""
        given = [*(f"{n}={n}" for n in self.numbers), *(f"{k}={v!r}" for k, v in self.rest.items())]
        source = f"def f({', '.join(self.numbers)}):\n    return library.{self.name}({', '.join(given)})\n"
        return function_of(source, "f", {"library": self.module})

    def scaled(self) -> Callable[..., Any]:
        """The same as a function of factors of the numbers, all near 1: steps of one size serve them all."""
        given = [f"{n}={n}_ * scale[{k}]" for k, n in enumerate(self.numbers)]
        given += [f"{k}={v!r}" for k, v in self.rest.items()]
        source = f"def f(scale):\n    return library.{self.name}({', '.join(given)})\n"
        around = {f"{n}_": value for n, value in self.numbers.items()}
        return function_of(source, "f", {"library": self.module, **around})

    @property
    def label(self) -> str:
        return f"{self.module.__name__}.{self.name}"


CALLS = (
    Call(fluids, "Reynolds", {"V": 2.5, "D": 0.25, "rho": 1.1613, "mu": 1.9e-5}),
    Call(fluids, "friction_factor", {"Re": 1e5, "eD": 1e-4}),
    Call(fluids, "friction_factor", {"Re": 900.0, "eD": 1e-4}),
    Call(fluids, "friction_factor", {"Re": 1e5, "eD": 1e-4}, {"Method": "Swamee_Jain_1976"}),
    Call(fluids, "bend_rounded", {"Di": 0.05, "angle": 30.0, "fd": 0.02, "bend_diameters": 5.0}),
    Call(fluids, "contraction_conical", {"Di1": 0.1, "Di2": 0.04, "l": 0.04, "Re": 1e6}),
    Call(fluids, "diffuser_sharp", {"Di1": 0.5, "Di2": 1.0}),
    Call(fluids, "drag_sphere", {"Re": 200.0}),
    Call(fluids, "Friedel", {"m": 0.6, "x": 0.1, "rhol": 915.0, "rhog": 2.67, "mul": 180e-6, "mug": 14e-6,
                             "sigma": 0.0487, "D": 0.05, "L": 1.0}),
    Call(fluids, "V_horiz_conical", {"D": 108.0, "L": 156.0, "a": 42.0, "h": 36.0}),
    Call(fluids, "dP_packed_bed", {"dp": 8e-4, "voidage": 0.4, "vs": 1e-3, "rho": 1e3, "mu": 1e-3, "L": 1.0}),
    Call(fluids, "isentropic_work_compression", {"T1": 300.0, "k": 1.4, "P1": 1e5, "P2": 1e6, "eta": 0.78}),
    Call(npf, "fv", {"rate": 0.05 / 12, "nper": 120.0, "pmt": -100.0, "pv": -1000.0}),
    Call(npf, "fv", {"rate": np.array([0.01, 0.02]), "nper": 12.0, "pmt": -100.0, "pv": -1000.0},
         {"when": "begin"}),
    Call(npf, "pmt", {"rate": 0.01, "nper": 60.0, "pv": 5000.0, "fv": 500.0}),
    Call(npf, "pv", {"rate": 0.01, "nper": 60.0, "pmt": -50.0}),
    Call(npf, "npv", {"rate": 0.08, "values": np.array([-400.0, 50.0, 80.0, 120.0, 300.0])}),
)  # fmt: skip
