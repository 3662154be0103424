"""Generated programs of every family in every mode: tangents, Hessian-vector products both ways, exact fits.

`MUTAD_MODES=200` looks at as many programs of each family, `MUTAD_MODES=500:600` at those of these seeds.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import numpy as np
import pytest
from chain_programs import chain_program
from control_programs import control_programs
from counter_programs import counter_programs
from fit_oracle import check_exact_fit
from generated import Drawn, function_of, seeds_of
from gradient_oracle import GradientCase, NotSmoothHereError
from list_programs import list_programs
from nest_programs import nest_program
from nested_programs import nested_programs
from point_programs import point_program
from product_programs import product_program
from python_oracle import run
from raising_programs import ROWS, raising_programs
from refusals import unless_refused
from row_programs import row_program
from slice_programs import slice_program
from small_programs import small_programs
from stencil_programs import stencil_program
from sweep_programs import sweep_program
from tangent_oracle import check_hvp, check_tangent

import mutad

IN_CI = "0:1"
LISTS = "s + sum(l) * 0.5 + sum(m)"
NESTED = (
    "s + sum([sum(r) for r in rows]) + sum([v.sum() for v in arrays]) * 0.5"
    " + sum([q.u * q.v for q in things])"
)
Case = tuple[Callable[..., Any], Any]


def chains(seed: int) -> Case:
    function = function_of(chain_program(random.Random(seed)), "program")
    return function, "f64[13]#0 f64[13]#1 f64[13]#2 f64[13,3]#3 13"


def nests(seed: int) -> Case:
    function = function_of(nest_program(random.Random(seed)), "program")
    return function, "f64[6,6]:unit#0 f64[6,6]:unit#1 f64[6,6]:unit#2 f64[6]:unit 5 4"


def products(seed: int) -> Case:
    function = function_of(product_program(random.Random(seed)), "program", {"np": np})
    return function, "f64[5,5]:unit f64[5,3]:unit f64[5,5]:unit#1 f64[5,3]:unit#1 f64[5]:unit"


def control(seed: int) -> Case:
    program = Drawn(seed)(control_programs())
    return program.open_function(), program.open_arguments


def lists(seed: int) -> Case:
    program = Drawn(seed)(list_programs())
    return program.function(LISTS), program.arguments


def nested(seed: int) -> Case:
    program = Drawn(seed)(nested_programs())
    return program.function(NESTED), program.arguments


def raising(seed: int) -> Case:
    return Drawn(seed)(raising_programs()).function(), ROWS[seed % len(ROWS)]


def plain(program: Any) -> Case:
    return program.function(), program.arguments


FAMILIES: dict[str, Callable[[int], Case]] = {
    "small": lambda seed: plain(Drawn(seed)(small_programs())),
    "counters": lambda seed: plain(Drawn(seed)(counter_programs())),
    "points": lambda seed: plain(point_program(seed)),
    "rows": lambda seed: plain(row_program(seed)),
    "stencils": lambda seed: plain(stencil_program(seed)),
    "sweeps": lambda seed: plain(sweep_program(seed)),
    "slices": lambda seed: plain(slice_program(seed)),
    "chains": chains,
    "products": products,
    "nests": nests,
    "control": control,
    "lists": lists,
    "nested": nested,
    "raising": raising,
}
"""Recursive programs, and those with objects, take no rows of arrays: `check_gradient` has their modes."""


def case_of(family: str, number: int) -> GradientCase:
    """The first of a hundred programs of a family that runs to its end, compiled too, with finite numbers."""
    for seed in range(100 * number, 100 * number + 100):
        function, row = FAMILIES[family](seed)
        want = run(function, row)
        if want.exception is None and abs(total_of(want.result)) < 1e6:
            compiled = mutad.compile(function, cache=False, opt=0)
            if run(compiled, row).exception is None:
                options = (("cache", False), ("opt", 1))
                return GradientCase(function, row, relative=1e-5, options=options, first=True)
    raise AssertionError(f"no program of {family} runs to its end")


@contextmanager
def wherever_it_is_smooth() -> Iterator[None]:
    """Both ways to a product agree at kinks as well; differences do not."""
    with suppress(NotSmoothHereError), unless_refused():
        yield


def total_of(result: Any) -> float:
    """The sum of all numbers of a result; NaN where one is."""
    if isinstance(result, tuple | list):
        return sum(map(total_of, result))
    return 0.0 if result is None else float(np.sum(result))


@pytest.mark.parametrize("number", seeds_of("MUTAD_MODES", IN_CI))
@pytest.mark.parametrize("family", FAMILIES)
def test_every_mode(family: str, number: int) -> None:
    case = case_of(family, number)
    with wherever_it_is_smooth():
        check_tangent(case)
    if isinstance(run(case.function, case.row).result, float):
        with wherever_it_is_smooth():
            check_hvp(case)
    with wherever_it_is_smooth():
        check_exact_fit(case)
