"""Context managers: classes with `__enter__` and `__exit__`, generators, those of `contextlib`."""

import contextlib
import math
import warnings

import numpy as np
import pytest
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


class Guard:
    def __init__(self, x, log, keep=False):
        self.x, self.log, self.keep = x, log, keep

    def __enter__(self):
        self.x *= 2.0
        self.log[0] += 1
        return self

    def __exit__(self, kind, error, trace):
        self.x /= 2.0
        self.log[1] += 1
        if kind is None:
            return None
        self.log[2] += 1
        if isinstance(error, ZeroDivisionError):
            self.log[3] += 1
        return self.keep and issubclass(kind, ArithmeticError)


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def a_loop_is_left_in_a_with(x, log):
    s = 0.0
    for i in range(x.size):
        with Guard(x, log) as g:
            if x[i] > 4.5:
                break
            if x[i] < 0.6:
                continue
            s += g.x[i] * math.sqrt(x[i])
        s += 1.0
    return s * x[0]


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def a_with_returns(x, log):
    for i in range(x.size):
        with Guard(x, log):
            if x[i] > 2.5:
                return x[i] * x[i]
    return x.sum()


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def exceptions_are_kept(x, log):
    s = x[0]
    x *= 3.0
    for i in range(x.size):
        with Guard(x, log, True) as g:
            s += float(x[i]) / (i - 1)
            log[4] += 1
    return s


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def others_go_on(x, log):
    s = x[0]
    with Guard(x, log, True):
        s += math.sqrt(0.3 - x[1])
    return s


@contextlib.contextmanager
def trans(x, log, i):
    log[0] += 1
    try:
        yield x[i:]
        log[1] += 1
    except ZeroDivisionError as e:
        log[2] += 1
    finally:
        log[3] += 1
    log[5] += 1


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero", ulp=8)
def a_generator_catches(x, log):
    s = x[0]
    for i in range(x.size):
        with trans(x, log, i) as v, Guard(x, log):
            if i == 1:
                continue
            s += float(v.sum()) / (i - 2)
            if i == 3:
                break
        s += 1.0
    return s


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def a_generator_is_resumed_by_return(x, log):
    for i in range(x.size):
        with trans(x, log, i) as v:
            for w in v:
                if w > 2.0:
                    return w * i
    return x.sum()


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def a_nested_generator(x, log):
    @contextlib.contextmanager
    def local(k):
        x[k] += 1.0
        yield
        x[k] -= 1.0

    with local(0), local(1):
        s = (x * x).sum()
    try:
        with local(2):
            s += math.sqrt(-x[2])
    except ValueError as e:
        s += len(e.args)
    return s * x[2]


@contextlib.contextmanager
def twice():
    yield 1
    yield 2


@contextlib.contextmanager
def never(x):
    if x[0] > 1e9:
        yield 1


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def a_generator_that_goes_on(x, log):
    with twice():
        x[0] += 1.0
    return x.sum()


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def a_generator_that_never_yields(x, log):
    with never(x):
        x[0] += 1.0
    return x.sum()


@contextlib.contextmanager
def keep(x):
    old = x.copy()
    try:
        yield old
    finally:
        x[:] = old


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def what_a_with_over_a_generator_returns(x, log):
    with keep(x) as old:
        x *= 3.0
        return (x * old).sum()


class Method:
    def __init__(self, k):
        self.k = k

    @contextlib.contextmanager
    def doubled(self, x):
        self.k *= 2.0
        yield self.k
        self.k /= 2.0


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def a_method_is_a_manager(x, log):
    m = Method(x[0])
    with m.doubled(x) as k, m.doubled(x) as kk:
        s = k * kk
    return s * m.k


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def suppressing(x, log):
    s = x[0]
    for v in x:
        with contextlib.suppress(ValueError, ZeroDivisionError):
            s += 1.0 / math.sqrt(v - 1.0)
            if v > 2.0:
                break
            continue
        s += 10.0
    return s


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def managers_that_do_nothing(x, log):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with np.errstate(divide="ignore", invalid="ignore"), contextlib.nullcontext(x * 2.0) as y:
            return (y / x).sum() + x.sum()


class Quiet:
    def __enter__(self):
        pass

    def __exit__(self, *a):
        return False


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def arguments_of_exit_in_a_tuple(x, log):
    with Quiet():
        with Quiet() as q:
            s = x.sum()
    return s if q is None else 0.0


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def managers_in_managers_in_finally(x, log):
    s = x[0]
    try:
        with Guard(x, log):
            with Guard(x, log, True) as g:
                s += float(x[1]) / float(s - s)
            s += math.sqrt(-1.0)
    except ValueError:
        s += 3.0
    finally:
        s *= 2.0
    return s


@on("f64[4]:pos f64[6]:zero", "f64[4]:pos#3 f64[6]:zero")
def the_inner_one_asks_first(x, log):
    with Guard(x, log), Guard(x, log, True):
        raise ValueError("a", 3)
    return x.sum()


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()
