"""Compiled methods: bound to an object or a class in every mode, and what `compile` stands above."""

from __future__ import annotations

import copy
import functools
import inspect
import pickle
import pydoc
import sys
import types
from typing import Any

import numpy as np
import pytest

import mutad
from mutad import Active, Const, Duplicated, compile
from mutad.runtime.bound import BoundMethod


class Spring:
    rate = 4.0

    def __init__(self, k: float) -> None:
        self.k = k

    @compile(grad=True, opt=1)
    def energy(self, x, scale=2.0):
        return (self.k * x * x * scale).sum()

    @compile(grad=True, opt=1)
    def own(self):
        return self.k * self.k

    @compile(opt=1)
    def without(self, x):
        """What leaves the spring as it is."""
        return self.k * x

    @compile(grad=True, opt=1)
    def calls(self, x):
        self.k = self.k * 3.0
        return self.energy(x) * 2.0

    def plain(self, x):
        return self.k * x * x

    @compile(grad=True, opt=1)
    @staticmethod
    def thrice(x):
        return 3.0 * x

    @compile(grad=True, opt=1)
    @classmethod
    def rated(cls, x, y=1.0):
        return x * cls.rate * y

    slope = mutad.grad(energy, wrt="x")


class Stiff(Spring):
    rate = 5.0

    def energy(self, x):
        return super().energy(x) + 1.0


X = np.array([1.0, 2.0])


def test_self_is_given_in_every_mode() -> None:
    s = Spring(2.0)
    value, gradient = s.energy(X), s.energy.grad(X)
    assert value == s.energy.__wrapped__(X) == 20.0
    np.testing.assert_array_equal(gradient, [8.0, 16.0])
    got, again = s.energy.value_and_grad(X)
    assert got == value
    np.testing.assert_array_equal(again, gradient)
    got, back = s.energy.vjp(X)
    assert got == value
    np.testing.assert_array_equal(back(1.0), gradient)
    shadow = np.zeros(2)
    assert s.energy.pullback(Duplicated(X, shadow), Active(2.0), cotangent=1.0) == (20.0, (10.0,))
    np.testing.assert_array_equal(shadow, gradient)
    assert s.energy.pullback(Duplicated(X, shadow), Const(2.0), cotangent=0.0) == (20.0, ())
    assert s.energy.explain(X).saved_bytes == s.energy.explain().saved_bytes == 0
    assert s.energy.explain(X, plan="split").saved_bytes == X.nbytes
    assert s.energy.inspect("adjoint", X, wrt=0) == Spring.energy.inspect("adjoint", s, X, wrt="x")
    assert s.energy.inspect("adjoint", wrt="x") == s.energy.inspect("adjoint", X, wrt=0)
    assert s.own() == 4.0
    assert s.own.inspect("simplify") == Spring.own.inspect("simplify", s)
    assert s.own.explain(wrt="self.k").saved_bytes == 0
    mutad.assert_saved_bytes(s.energy, X, at_most=0)
    mutad.check_gradient(s.energy, X)
    mutad.check_gradient(s.calls, X, wrt=("x", "self.k"))
    assert s.k == 2.0
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'x'"):
        s.energy()
    with pytest.raises(AttributeError, match="compiled without gradient"):
        s.without.grad(1.0)


@pytest.mark.parametrize(
    ("wrt", "want"),
    [
        (0, "x"), (1, "scale"), (-1, "scale"), (-2, "x"), ("scale", "scale"), ((1, 0), ("scale", "x")),
        ([0], ["x"]), ("self.k", "self.k"), (("self.k", 0), ("self.k", "x")),
    ],
)  # fmt: skip
def test_positions_do_not_count_self(wrt: Any, want: Any) -> None:
    s = Spring(2.0)
    for mode in ("grad", "value_and_grad"):
        theirs = getattr(Spring.energy, mode)(s, X, 3.0, wrt=want)
        np.testing.assert_equal(getattr(s.energy, mode)(X, 3.0, wrt=wrt), theirs)
    np.testing.assert_equal(mutad.grad(s.energy, wrt)(X, 3.0), s.energy.grad(X, 3.0, wrt=wrt))


@pytest.mark.parametrize("wrt", [2, -3, True, "other", (0, "x"), ()])
def test_what_is_no_parameter(wrt: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="wrt"):
        Spring(2.0).energy.grad(X, wrt=wrt)


def test_a_gradient_with_respect_to_self_is_an_object() -> None:
    found = Spring(2.0).energy.grad(X, wrt="self")
    assert type(found) is Spring
    assert found.k == 10.0


def test_the_functions_of_the_package_take_them() -> None:
    s = Spring(2.0)
    np.testing.assert_array_equal(mutad.grad(s.energy)(X), [8.0, 16.0])
    assert mutad.value_and_grad(s.without)(3.0) == (6.0, 2.0)  # compiled anew, with its gradient
    assert mutad.vjp(s.without)(3.0)[1](1.0) == 2.0
    assert mutad.grad(s.plain)(3.0) == 12.0
    assert compile(s.plain, opt=1)(3.0) == 18.0
    assert compile(s.energy, grad=True, opt=1, saves="all").grad(X, wrt="scale") == 10.0
    np.testing.assert_array_equal(s.slope(X), Spring.slope(s, X))
    np.testing.assert_array_equal(functools.partial(s.energy, scale=1.0)(X), 10.0)


def test_overridden_and_inherited_methods() -> None:
    assert Stiff(2.0).energy(X) == 21.0
    assert Stiff(2.0).calls(X) == Stiff(2.0).calls.__wrapped__(X)
    np.testing.assert_array_equal(Stiff(2.0).calls.grad(X), [48.0, 96.0])


def test_one_object_that_looks_like_a_method() -> None:
    s = Spring(2.0)
    bound = s.energy
    assert (bound.__self__, bound.__func__) == (s, Spring.energy)
    assert bound == s.energy
    assert hash(bound) == hash(s.energy)
    assert bound != Spring(2.0).energy
    assert bound != s.own
    assert repr(bound) == f"<bound compiled method Spring.energy of {s!r}>"
    assert (bound.__name__, bound.__qualname__) == ("energy", "Spring.energy")
    assert str(inspect.signature(bound)) == str(inspect.signature(s.energy.__wrapped__))
    assert type(bound.__wrapped__) is types.MethodType
    assert (bound.has_gradient, bound.options["opt"]) == (True, 1)


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda m: pickle.loads(pickle.dumps(m))]
)
def test_copies_and_pickles(copied: Any) -> None:
    s = Spring(2.0)
    for bound in (s.energy, mutad.grad(s.energy), compile(s.plain, opt=1)):
        np.testing.assert_array_equal(copied(bound)(X), bound(X))
    assert copied(Stiff.rated)(2.0) == 10.0
    assert copied(Spring.thrice)(2.0) == 6.0


def test_static_and_class_methods() -> None:
    s = Spring(2.0)
    assert Spring.thrice(2.0) == s.thrice(2.0) == 6.0
    assert Spring.thrice.grad(2.0) == 3.0
    for owner, rate in ((Spring, 4.0), (Stiff, 5.0), (s, 4.0)):
        assert owner.rated(2.0) == 2.0 * rate
        assert owner.rated.grad(2.0) == rate
        assert owner.rated.grad(2.0, wrt="y") == 2.0 * rate
        assert owner.rated.value_and_grad(2.0, 3.0) == (6.0 * rate, 3.0 * rate)
    assert Stiff.rated.explain(2.0).saved_bytes == 0
    mutad.check_gradient(Stiff.rated, 2.0)


def test_a_method_that_python_itself_binds() -> None:
    """As `classmethod` above `compile` does since Python 3.13."""
    bound = types.MethodType(Spring.energy, Spring(2.0))
    assert bound(X) == 20.0
    np.testing.assert_array_equal(mutad.grad(bound)(X), [8.0, 16.0])
    assert mutad.grad(bound).function.__func__ is Spring.energy  # pyright: ignore[reportFunctionMemberAccess]
    mutad.check_gradient(bound, X, wrt=0)
    with pytest.raises(TypeError, match="check_gradient takes a compiled function"):
        mutad.check_gradient(Spring(2.0).plain, 1.0)


class Below:
    rate = 2.0

    @classmethod
    @compile(grad=True, opt=1)
    def rated(cls, x, y=1.0):
        return (x * x).sum() * cls.rate * y


class BelowThat(Below):
    rate = 3.0


def local_class() -> type:
    class Local(Below):
        @classmethod
        @compile(grad=True, opt=1)
        def scaled(cls, x, y=1.0):
            return x.sum() * cls.rate * y

    return Local


@pytest.mark.parametrize("kind", ["grad", "value_and_grad", "vjp"])
def test_classmethod_above_compile_never_takes_an_argument_for_the_class(kind: str) -> None:
    local = local_class()
    assert (Below.rated(X), BelowThat.rated(X, 2.0), local.scaled(X)) == (10.0, 30.0, 6.0)
    np.testing.assert_array_equal(mutad.grad(BelowThat.rated)(X), [6.0, 12.0])
    for method, args in ((BelowThat.rated, (X,)), (Below.rated, (X, 2.0)), (local.scaled, (X, X))):
        if sys.version_info < (3, 13):
            assert getattr(method, kind)(*args[:1]) is not None
        else:
            with pytest.raises(TypeError, match=r"above @classmethod|missing 1 required"):
                getattr(method, kind)(*args)
    grad = Below.__dict__["rated"].__func__.grad
    np.testing.assert_array_equal(grad(Below, X, wrt=1), [4.0, 8.0])


def test_what_a_class_method_reads_of_the_class_is_seen_at_each_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Base:
        rate = 2.0
        count = 3

        @compile(opt=1)
        @classmethod
        def total(cls, x):
            return x * cls.rate * cls.count

    class Derived(Base):
        pass

    assert (Base.total(1.0), Derived.total(1.0)) == (6.0, 6.0)
    monkeypatch.setattr(Base, "rate", 5.0)
    assert (Base.total(1.0), Derived.total(1.0)) == (15.0, 15.0)
    monkeypatch.setattr(Derived, "count", 7, raising=False)
    assert (Base.total(1.0), Derived.total(1.0)) == (15.0, 35.0)
    monkeypatch.setattr(Base, "count", 1)
    assert (Base.total(1.0), Derived.total(1.0)) == (5.0, 35.0)


@compile(opt=1)
def calls_it(function, x):
    return function(x) + 1.0


def test_a_method_of_a_class_as_an_argument() -> None:
    assert [calls_it(f, 2.0) for f in (Spring.rated, Stiff.rated, Spring.rated)] == [9.0, 11.0, 9.0]
    with pytest.raises(mutad.CompileError, match="objects is not compiled"):
        calls_it(Spring(2.0).without, 2.0)


def test_help_of_a_method_is_that_of_its_function() -> None:
    assert "leaves the spring" in pydoc.plain(pydoc.render_doc(Spring(2.0).without))
    assert "`k.m.grad(x)`" in (BoundMethod.__doc__ or "")
