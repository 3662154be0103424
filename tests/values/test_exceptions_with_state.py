"""Exceptions with a state: arguments, attributes, an `__init__` of the program's, causes, classes."""

import math
from dataclasses import dataclass

import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


class Unstable(ArithmeticError):
    limit = 2.0

    def __init__(self, step, value, *, name="u"):
        super().__init__(f"{name} is unstable in step {step}")
        self.step, self.value = step, value
        self.excess = value - self.limit

    def scaled(self, factor):
        return factor * self.value

    @property
    def twice(self):
        return 2.0 * self.excess


class Blowup(Unstable):
    def __init__(self, value):
        Unstable.__init__(self, 7, value, name="blow-up")


class Several(Exception):
    pass


class Special(Several):
    pass


@dataclass
class Coded(Exception):
    code: int
    text: str = "coded"


def advance(x, k):
    if x[k] > 4.0:
        raise Blowup(x[k])
    if x[k] > Unstable.limit:
        raise Unstable(k, x[k])
    return math.sqrt(x[k])


# What the caller gets.


@on("f64[4]:pos 1.0", "f64[4]:pos 3.0", "f64[4]:pos 9.0")
def an_init_of_the_program(x, scale):
    x *= scale
    s = 0.0
    for k in range(x.size):
        s += advance(x * x, k)
        x[k] = s
    return s


@on("v", v="0.5 1.5 2.5 3.5 4.5 5.5 6.5 7.5")
def arguments_keep_their_types(v):
    k = int(v)
    if k == 0:
        raise Several("a", 2, v)
    if k == 1:
        raise ValueError(v)
    if k == 2:
        raise Special()
    if k == 3:
        raise Special((k, "b", None), True)
    if k == 4:
        raise ValueError("")
    if k == 5:
        raise Coded(k)
    if k == 6:
        raise StopIteration(f"{k} of {v}", k)
    raise Special


@on("v", v="0.5 1.5 2.5 3.5")
def keys_that_are_missing(v):
    k = int(v)
    d = {1: v, 2: 3.0}
    if k == 3:
        return d.pop(7)
    return d[2 * k]


@on("v", v="1.5 2.5")
def missing_keys_are_caught(v):
    d = {"b": v}
    try:
        return d["b"] if v > 2.0 else d["a"]
    except KeyError as e:
        raise ValueError(*e.args) from e


@on("v", v="-1.0 0.0 4.0")
def causes(v):
    try:
        if v == 0.0:
            raise Several(1, v)
        return math.sqrt(v) / (v - 4.0)
    except ValueError as e:
        raise RuntimeError("no root", v) from e
    except ZeroDivisionError:
        raise Special("no quotient") from None
    except Several as e:
        raise KeyError(3) from e


# What handlers read.


@on("f64[4]:pos 1.0", "f64[4]:pos 3.0", "f64[4]:pos 9.0")
def handlers_read_the_fields(x, scale):
    x *= scale
    s = 0.0
    for k in range(x.size):
        try:
            s += advance(x, k)
        except Unstable as e:
            s += e.value * e.step + e.excess + e.scaled(0.5) + e.twice + e.limit
            if isinstance(e, Blowup):
                s += 100.0
    return s * x[0]


@on("v", v="-1.0 0.0 0.5 2.0 3.0")
def handlers_read_the_arguments(v):
    try:
        if v == 2.0:
            raise Several(2, v)
        if v == 3.0:
            raise Special(5, v * v)
        if v == 0.5:
            raise Coded(4)
        return math.sqrt(v) / v
    except Several as e:
        n, w = e.args
        return w * n + len(e.args)
    except Coded as e:
        return e.code + v
    except (ValueError, ZeroDivisionError) as e:
        raise RuntimeError(f"not {e}", len(e.args)) from e


@on("f64[3]:pos 1.0", "f64[3]:pos 9.0")
def fields_survive_being_raised_again(x, scale):
    x *= scale
    log = []
    try:
        try:
            for k in range(3):
                advance(x, k)
        except Unstable as e:
            log.append(e.value)
            raise
        finally:
            log.append(1.0)
    except ArithmeticError as e:
        x[0] = e.excess
        print(e, e.args)
        if len(log) == 2:
            raise e
    return sum(log) * x[0]


@on("f64[3]:pos 1.0", "f64[3]:pos 9.0")
def an_exception_is_made_before_it_is_raised(x, scale):
    x *= scale
    error = Several("largest", x.max())
    try:
        if x[0] > 1.0:
            raise error
    except Several as e:
        return e.args[1]
    return error.args[1] * 2.0 if len(error.args) == 2 else x[0]


class Chained(Exception):
    def __init__(self, a, b=None):
        self.a = a
        if b is not None:
            self.b = b
        super().__init__(*([a] if b is None else [a, b]))


@on("v", v="-1.0 0.5 1.5 2.5 3.5")
def attributes_that_some_have(v):
    k = int(v)
    try:
        if k % 2:
            raise Chained(v, k)
        if k == 2:
            raise Chained(v)
        return math.sqrt(v)
    except Chained as e:
        if hasattr(e, "b"):
            raise e from KeyError(e.b, v)
        return getattr(e, "b", e.a * 2.0)
    except ValueError as e:
        raise e from None


# Loops that are left by `return` alone.


@on("f64[5]:pos 1.0", "f64[5]:pos 9.0")
def the_else_of_a_loop_returns(x, scale):
    x *= scale
    for i, v in enumerate(x):
        if v > 2.0:
            return i, v
    else:
        return -1, x[0]


@on("f64[5]:pos 1.0", "f64[5]:pos 9.0", "f64[0] 1.0")
def a_loop_that_only_returns_end(x, scale):
    x *= scale
    s, i = scale * x[:0].sum(), 0
    while True:
        try:
            v = x[i]
            if v > 3.0:
                return s * v
            s += math.sqrt(v)
            i += 1
        except IndexError:
            return s
        except ValueError:
            for w in x:
                if w > 0.0:
                    return w
            else:
                return s - 1.0


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()
