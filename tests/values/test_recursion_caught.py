"""Exceptions that leave recursive functions: caught by callers, on the way, and not at all."""

import math
import sys

import numpy as np
import pytest
from python_oracle import Case, Programs

from mutad import compile

programs = Programs()
on = programs.on


def roots(x, i):
    if i >= x.size:
        return 0.0
    if x[i] < 0:
        raise ValueError(f"negative at {i}")
    return math.sqrt(x[i]) + roots(x, i + 1)


@on("f64[5]:pos", "f64[5]")
def the_caller_catches(x):
    try:
        return roots(x, 0)
    except ValueError:
        return -1.0


@on("f64[5]:pos", "f64[5]")
def the_caller_says_it_again(x):
    try:
        return roots(x, 0)
    except ValueError as error:
        x[0] = 9.0
        raise ArithmeticError("no roots") from error


@on("f64[4]", "f64[4]:pos")
def raises_what_it_caught(x):
    try:
        return roots(x, 0)
    except ValueError:
        x[0] = 9.0
        raise


@on("f64[5]:pos n", "f64[5] n", n="0 7")
def a_handler_for_all(x, i):
    try:
        return roots(x, i)
    except Exception:
        return 7.0


@on("f64[5]", "f64[5]:pos")
def handlers_for_other_exceptions(x):
    try:
        return roots(x, 0)
    except (IndexError, ZeroDivisionError):
        return 7.0


@on("f64[6]", "f64[6]:pos")
def each_activation_catches(x):
    def go(i):
        if i >= x.size:
            return 0.0
        try:
            if x[i] < 0:
                raise ValueError("negative")
            y = go(i + 1)
            if y > 1.0:
                raise IndexError("large")
        except ValueError:
            y = 0.25
        finally:
            x[i] += 1.0
        return y + x[i] * 0.5

    try:
        return go(0)
    except IndexError:
        return x.sum()


@on("f64[6] n", n="0 2 4 5")
def a_finally_in_each_activation(x, k):
    log = np.zeros(6)

    def go(i):
        try:
            if i == 3:
                raise ZeroDivisionError("three")
            if i == 5:
                return x[i]
            return go(i + 1) * 2
        finally:
            log[i] += 1.0

    try:
        y = go(k)
    except ZeroDivisionError:
        y = -1.0
    return y, log


@on("f64[6]:pos v", v="0.5 1.5 1000.0", terms=lambda x, limit: 64.0 * x)
def leaves_a_search_by_an_exception(x, limit):
    def search(i, s):
        if s > limit:
            raise OverflowError("found")
        if i < x.size:
            x[i] *= 2
            search(i + 1, s + x[i])
            x[i] *= 0.5
            search(i + 1, s)

    try:
        search(0, 0.0)
    except OverflowError:
        return x.sum()
    return -1.0


@on("f64[5] n", n="0 5")
def in_a_loop(x, n):
    total = 0.0
    for i in range(n):
        try:
            total += roots(x, i)
        except (ValueError, RecursionError):
            total += 0.5
            continue
        finally:
            total += 1.0
        if total > 4.0:
            break
    return total


@on("f64[2]", "f64[5]")
def a_new_array_or_an_exception(x):
    def go(i):
        if i == 3:
            raise KeyError("deep")
        return x * 2 if i == x.size else go(i + 1) + 1.0

    try:
        y = go(0)
    except KeyError:
        y = x * 10.0
    return y * 3


@on("f64[3] n", n="0 3 7")
def subscripts_and_divisors(x, n):
    def go(i):
        return x[i] / (i - 5) + go(i + 1) if i < n else x[0]

    try:
        return go(0)
    except IndexError:
        return -1.0
    except ZeroDivisionError:
        return -2.0


@on("n", n="0 3 20")
def never_returns(n):
    def go(i):
        if i == 0:
            raise ValueError("always")
        go(i - 1)
        raise KeyError("never")

    try:
        go(n)
    except ValueError:
        return 1
    return 2


@on("f64[4]", "f64[4]:pos")
def mutual(x):
    def one(i):
        if x[i] < 0:
            raise ValueError("one")
        return 1.0 if i == 3 else two(i + 1) + x[i]

    def two(i):
        try:
            return one(i) * 2.0
        except ValueError:
            if i == 2:
                raise
            return 0.125

    try:
        return one(0)
    except ValueError:
        return -3.0


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


def depth(n):
    return 0 if n == 0 else 1 + depth(n - 1)


def test_recursion_errors_are_caught() -> None:
    @compile
    def depth_or(n):
        try:
            return depth(n)
        except RecursionError:
            return -1

    assert depth_or(10) == 10
    assert depth_or(sys.getrecursionlimit() - 100) == sys.getrecursionlimit() - 100
    assert depth_or(10**9) == -1


def test_every_activation_sees_a_recursion_error() -> None:
    @compile
    def unwound(x):
        def down(i):
            try:
                return down(i + 1)
            finally:
                x[0] += 1.0

        try:
            return down(0)
        except RecursionError:
            return 0.5

    x = np.zeros(1)
    assert unwound(x) == 0.5
    assert sys.getrecursionlimit() - 5 <= x[0] <= sys.getrecursionlimit()


class Diverged(ArithmeticError):
    pass


def test_exceptions_of_users_classes_arrive_with_their_words() -> None:
    def settle(x, n):
        if x > 8.0:
            raise Diverged(f"{x} after {n}")
        return settle(x * x, n + 1)

    @compile
    def settled(x):
        try:
            return settle(x, 0)
        except KeyError:
            return 0.0

    with pytest.raises(Diverged, match=r"16\.0 after 2"):
        settled(2.0)
