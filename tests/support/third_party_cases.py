"""Calls of other people's packages, as a user writes them: the function, the numbers, what else is passed."""

from __future__ import annotations

import importlib
import types
import warnings
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


@dataclass(frozen=True)
class Kernel:
    """A numerical function inside a package, `module:name`, jitted or not, on arguments made by chance."""

    path: str
    arguments: Callable[[np.random.Generator], tuple[Any, ...]]
    wrt: tuple[str, ...]

    def function(self) -> Any:
        module, _, name = self.path.partition(":")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the packages' own
            return getattr(importlib.import_module(module), name)

    def made(self) -> tuple[Any, ...]:
        return self.arguments(np.random.default_rng(7))


def spd(rng: np.random.Generator) -> Any:
    """A covariance."""
    a = rng.normal(size=(2, 2))
    return a @ a.T + np.eye(2)


KERNELS = (
    Kernel("filterpy.kalman:unscented_transform",
           lambda rng: (rng.normal(size=(5, 2)), np.full(5, 0.2), np.full(5, 0.2), np.eye(2)),
           ("sigmas", "Wm", "Wc")),
    Kernel("filterpy.stats:multivariate_multiply",
           lambda rng: (rng.normal(size=2), spd(rng), rng.normal(size=2), spd(rng)),
           ("m1", "c1", "m2", "c2")),
    Kernel("galpy.util.coords:rectgal_to_sphergal", lambda rng: tuple(rng.uniform(0.5, 2.0, 6).tolist()),
           ("X", "Y", "Z", "vx", "vy", "vz")),
    Kernel("pykalman.standard:_smooth_update",
           lambda rng: (0.9 * np.eye(2), rng.normal(size=2), spd(rng), rng.normal(size=2), spd(rng),
                        rng.normal(size=2), spd(rng)),
           ("transition_matrix", "predicted_state_covariance", "next_smoothed_state_mean")),
    Kernel("pykalman.utils:log_multivariate_normal_density",
           lambda rng: (rng.normal(size=(3, 2)), rng.normal(size=(1, 2)), spd(rng)[None]), ("X", "covars")),
    Kernel("quantecon.markov.approximation:_fill_tauchen",
           lambda rng: (np.linspace(-1.0, 1.0, 4), np.zeros((4, 4)), 4, 0.9, 0.3, 0.25),
           ("x", "rho", "sigma", "half_step")),
    Kernel("quantecon._inequality:gini_coefficient", lambda rng: (rng.uniform(1.0, 2.0, 7),), ("y",)),
    Kernel("stumpy.core:_welford_nanvar",
           lambda rng: (rng.normal(size=12), 4, np.ones(9, bool)), ("a",)),
    Kernel("stumpy.core:_p_norm_distance_profile",
           lambda rng: (rng.normal(size=4), rng.normal(size=12), 3.0), ("Q", "T")),
)  # fmt: skip
"""With `pinv`, `cholesky`, `erfc`, `prange`, functions of numba that call each other."""
