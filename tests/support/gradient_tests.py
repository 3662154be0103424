"""The checks that every table of gradient programs goes through, written once.

A test file defines its programs and ends with one line::

    TestGradients = gradient_tests(programs)

With `tangents=True` its programs run in forward mode, too, and have Hessian-vector products; a part of them
several at once. With `fits=True` the programs have second derivatives at exact fits as well.
"""

from __future__ import annotations

import pytest
from device_oracle import ASKED, check_kernels, device_cases, refusals_of
from device_refusals import assert_as_listed, relist
from fit_oracle import check_exact_fit
from gradient_oracle import GradientCase, GradientPrograms
from lane_oracle import check_cotangents_together
from reach_oracle import (
    check_cotangents_reach,
    check_lanes_reach,
    check_products_reach,
    check_tangents_reach,
)
from tangent_oracle import (
    check_batch,
    check_hvp,
    check_hvp_batch,
    check_saved_by_products,
    check_tangent,
)

PART = slice(3, None, 8)
"""The programs whose cotangents go along together: other ones than those whose tangents do."""


def gradient_tests(
    programs: GradientPrograms, *, tangents: bool = False, fits: bool = False
) -> type:
    """A test class of all checks: each case is a claim, named after its program and its arguments."""

    class TestGradients:
        @pytest.mark.parametrize("case", programs.called, ids=str)
        def test_value_and_grad(self, case: GradientCase) -> None:
            case.check_gradient()

        @pytest.mark.parametrize("case", programs.cases, ids=str)
        def test_pullback(self, case: GradientCase) -> None:
            case.check_pullback()
            check_cotangents_reach(case)

        @pytest.mark.parametrize("case", programs.first, ids=str)
        def test_saving_everything_changes_nothing(self, case: GradientCase) -> None:
            case.check_saves_all()

        @pytest.mark.parametrize("case", programs.first, ids=str)
        def test_vjp(self, case: GradientCase) -> None:
            case.check_vjp()

        @pytest.mark.parametrize("case", programs.first[PART], ids=str)
        def test_several_cotangents_at_once(self, case: GradientCase) -> None:
            check_cotangents_together(case)

        @pytest.mark.parametrize("case", device_cases(programs), ids=str)
        def test_kernels(self, case: GradientCase, request: pytest.FixtureRequest) -> None:
            program = f"{request.path.stem}.{case.function.__name__}"
            if ASKED == "list":
                relist(program, refusals_of(case))
                return
            tried = check_kernels(case)
            if case.first:
                assert_as_listed(program, tried)

        @pytest.mark.parametrize("case", programs.accounted, ids=str)
        def test_saved_bytes(self, case: GradientCase) -> None:
            case.check_saved()

    class TestTangents(TestGradients):
        @pytest.mark.parametrize("case", programs.first, ids=str)
        def test_pushforward(self, case: GradientCase) -> None:
            check_tangent(case)
            check_tangents_reach(case)

        @pytest.mark.parametrize("case", programs.twice, ids=str)
        def test_hvp(self, case: GradientCase) -> None:
            check_hvp(case)
            check_products_reach(case)

        @pytest.mark.parametrize("case", programs.accounted, ids=str)
        def test_products_save_at_most_twice_as_much(self, case: GradientCase) -> None:
            check_saved_by_products(case)

        @pytest.mark.parametrize("case", programs.first[::5], ids=str)
        def test_several_tangents_at_once(self, case: GradientCase) -> None:
            check_batch(case)
            check_lanes_reach(case)

        @pytest.mark.parametrize("case", programs.twice[::8], ids=str)
        def test_several_products_at_once(self, case: GradientCase) -> None:
            check_hvp_batch(case)

    class TestFits(TestTangents):
        @pytest.mark.parametrize("case", [c for c in programs.first if c.numeric], ids=str)
        def test_where_all_cotangents_are_zero(self, case: GradientCase) -> None:
            check_exact_fit(case)

    if fits:
        return TestFits
    return TestTangents if tangents else TestGradients
