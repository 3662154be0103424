"""Generators and iterators that are asked for some items here and for others there, against CPython's."""

from itertools import chain

import numpy as np
import pytest
from whole_programs import WholePrograms, outcome

from mutad import CompileError, check_gradient, compile

X = np.array([0.13, 0.31, 0.47, 0.62, 0.81])

programs = WholePrograms()
on = programs.on


def counted(x):
    k = 0
    while True:
        yield x[k % x.size] * k
        k += 1


def logged(x, log, k):
    for v in x:
        log.append(k)
        yield v * v
    log.append(-k)


def over(items, k):
    """A generator that runs over what its argument's `__iter__` makes, once."""
    for v in items:
        yield v * k


class Acc:
    def __init__(self, x):
        self.x, self.n, self.t = x, 0, 0.0

    def steps(self):
        for v in self.x:
            self.n += 1
            self.t += v
            yield self.t

    def __iter__(self):
        return self.steps()


class Down:
    def __init__(self, x):
        self.x, self.i = x, x.size

    def __iter__(self):
        return self

    def __next__(self):
        if self.i == 0:
            raise StopIteration
        self.i -= 1
        return self.x[self.i]


@on(X)
def effects_of_a_zip_come_in_order(x):
    log, s = [], 0.0
    for a, b, c in zip(logged(x, log, 1), x, logged(x[:2], log, 2)):
        s += a * b * c
    for k, c in enumerate(log):
        s += k * c
    return s + len(log)


@on(X)
def instances_are_apart(x):
    def take(g, n):
        t = 0.0
        for _ in range(n):
            t += next(g)
        return t

    gs = (counted(x), counted(x[1:]))
    s = take(gs[0], 3) + take(gs[1], 2) * 2
    a, b = gs
    for i in range(4):
        s += next(a) * next(b)
        if x[i] > 0.4:
            s += next(b)
        g = counted(x)
        next(g)
        for v in g:
            if v > 1.0:
                break
            s += v
        s += next(g)
    return s + take(b, 2) * 3


@on(X)
def values_are_sent(x):
    def mean():
        total, n, avg = 0.0, 0, None
        while True:
            v = yield avg
            total += v
            n += 1
            avg = total / n

    def weighted(a, n):
        t = 0.0
        for i in range(n):
            t += yield a * i
        return t

    def both():
        r = yield from weighted(x[0], 2)
        yield r
        r = (yield r * 2.0) + (yield from weighted(x[1], 3))
        yield r

    g, h, s = mean(), both(), 0.0
    next(g)
    s += next(h)
    for v in x:
        s += g.send(v) ** 2 + h.send(v) * v
    return s


@on(X)
def loops_go_on_where_others_stopped(x):
    def row(i):
        for j in range(i):
            yield x[j] * i

    def rows(n):
        for i in range(n):
            for v in row(i):
                yield 2.0 * v
            yield from row(i)

    g, s = rows(4), 0.0
    s += next(g)
    for k in range(4):
        s += next(g) * (k + 1)
    for v in g:
        s = s * 0.9 + v
        if v > 1.2:
            break
    else:
        s = 0.0
    return s + next(g, 7.0)


@on(X)
def what_has_ended_stays_so(x):
    g, s = (v * 2 for v in x), 0.0
    pairs = zip(x, x)
    for _ in range(2):
        for a, b in pairs:
            s += a * b
    for v in g:
        s += v
    for v in g:
        s += 100.0
    return s + next(g, 7.0) + next(g, 5.0)


@on(X)
def pipelines(x):
    def scaled(g, k):
        for v in g:
            yield v * k

    def evens(g):
        skipped = True
        for v in g:
            skipped = not skipped
            if not skipped:
                yield v

    g = scaled(evens(x), 3.0)
    s = next(g)
    for v in g:
        s = s * 0.5 + v
    m = filter(lambda v: v > 0.1, map(lambda v: v * v, x))
    s += 2 * next(m)
    it = chain(x[:2], (1.0, 2.0))
    s += next(it) * next(it)
    return s + next(m) * 3 + sum(it)


@on(X)
def iterators_of_arrays_lists_and_ranges(x):
    it, found = iter(x), [v for v in x]
    s = next(it)
    for a in it:
        s += a * next(it, 0.5)
    late, places = iter(found), iter(range(1, x.size, 2))
    s += next(late)
    found.append(4.0)
    for v in late:
        s = s * 0.9 + v
    e, z = enumerate(x, 2), zip(x, x[2:])
    k, v = next(e)
    for k, v in e:
        s += k * v
        if k > 3:
            break
    a, b = next(z)
    for k, v in e:
        s -= k * v * a
    for a, b in z:
        s += a - 2 * b * a
    for k in places:
        s += x[k] * x[next(places, 0)]
    return s


@on(X)
def objects_and_exceptions(x):
    def g():
        for v in x:
            if v > 0.5:
                raise ValueError("big")
            yield v

    it, o, d, s = g(), Acc(x), Down(x), 0.0
    try:
        for v in it:
            s += v
        s = 0.0
    except ValueError:
        s += 10.0 + next(it, -1.0)
    steps = o.steps()
    s += next(steps) + next(steps) * o.t + o.n
    s += next(d)
    for v in over(d, 2.0):
        s = s * 0.3 + v
    a, b = iter(o), iter(x[:2])
    try:
        while True:
            s += next(a) * next(b)
    except StopIteration:
        s *= 2.0
    return s + o.t


@on(X)
def yields_in_a_try(x):
    log = np.zeros(1)

    def g():
        for k in range(5):
            try:
                try:
                    if k == 1:
                        raise ValueError
                    if k == 3:
                        raise KeyError
                    yield x[k]
                except ValueError:
                    yield 10.0 * x[0]
                    continue
                else:
                    yield 0.5
            except KeyError:
                yield 20.0

    def closing():
        try:
            for v in x:
                if v > 0.6:
                    return 5.0
                yield v
        finally:
            log[0] += 1.0

    def outer():
        r = yield from closing()
        yield r * log[0]

    it, s = g(), 0.0
    s += next(it)
    for k, v in enumerate(it):
        s += v * (k + 2)
    h = outer()
    s += next(h)
    for v in h:
        s += v * (1.0 + log[0])
    return s


@on(X)
def arrays_are_yielded(x):
    def states(u, dt):
        t = 0.0
        while True:
            yield t, u
            u = u + dt * np.sin(u)
            t += dt

    def doubled(u):
        for k in range(3):
            u *= 2.0
            yield k

    y, s = x.copy(), 0.0
    h = doubled(y)
    next(h)
    s += y.sum()
    for k in h:
        s += y.sum() * k
    g = states(x, 0.1)
    next(g)
    for _ in range(4):
        t, u = next(g)
        s += (u * u).sum() * t
    return s


@on(X)
def stages_send_to_each_other(x):
    out, k = np.zeros(2 * x.size), 1.0

    def sink():
        at = 0
        while True:
            v = yield
            out[at] = v * k
            at += 1

    def twice(target):
        while True:
            v = yield
            target.send(v * 2)
            target.send(v * v)

    s = sink()
    next(s)
    d = twice(s)
    next(d)
    for v in x:
        d.send(v)
        k += v
    d.close()
    return (out * np.arange(out.size)).sum() + next(d, 9.0)


VALUES = WholePrograms()


@VALUES.on(X)
def what_nobody_catches_stops(x):
    g = (v for v in x[:2])
    return next(g) + next(g) + next(g)


def by_two(it):
    while True:
        yield next(it) + next(it)


@VALUES.on(X)
def a_stop_in_a_generator_is_an_error(x):
    s = 0.0
    for v in by_two(iter(x)):
        s += v
    return s


@VALUES.on(X)
def that_error_is_caught(x):
    s, g = 0.0, by_two(iter(x))
    try:
        for v in g:
            s += v
    except RuntimeError:
        s *= 2
    return s + next(g, 0.25)


@VALUES.on(X)
def nothing_is_sent_at_first(x):
    return counted(x).send(1.0)


@VALUES.on(X)
def what_a_loop_raises_is_not_caught_by_the_generator(x):
    def tried():
        for v in x:
            try:
                yield v
            except ZeroDivisionError:
                x[0] = 100.0

    for v in tried():
        x[1] += 1 // int(v > 0.4)
    return x[0]


@pytest.mark.parametrize(("function", "point"), programs.cases, ids=programs.names)
def test_values_and_gradients(function, point):
    compiled = compile(function, grad=True, cache=False, opt=1)
    assert compiled(point.copy()) == pytest.approx(function(point.copy()), rel=1e-13)
    check_gradient(compiled, point.copy())


@pytest.mark.parametrize(("function", "point"), VALUES.cases, ids=VALUES.names)
def test_exceptions_are_cpythons(function, point):
    compiled = compile(function, cache=False, opt=1)
    got, want = (outcome(f, point.copy())[0] for f in (compiled, function))
    assert got == (want if isinstance(want, tuple) else pytest.approx(want, rel=1e-13))


def finishing(x):
    try:
        for v in x:  # noqa: UP028
            yield v
    finally:
        x[0] = 0.0


def inner(x, k):
    for v in x:
        yield v * k


def refers_to_the_one_before(x):
    def outer():
        before = inner(x, 0.5)
        for k in range(3):
            g = inner(x, k + 1.0)
            yield next(g) + next(before)
            before = g

    g = outer()
    return next(g) + sum(g)


def one_or_the_other(x):
    g = inner(x * 3.0, 1.0) if x[0] > 0.1 else inner(x, 2.0)
    return next(g) + next(g)


def of_the_last_iteration(x):
    s = 0.0
    for v in x:
        g = counted(x * v)
        s += next(g)
    return s + next(g)


def closed(x):
    g = finishing(x)
    s = next(g)
    g.close()
    return s


def thrown(x):
    g = inner(x, 1.0)
    next(g)
    return g.throw(ValueError)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (refers_to_the_one_before, "while a name may hold the one before"),
        (one_or_the_other, "a generator on each path"),
        (of_the_last_iteration, "that another iteration of a loop has made"),
        (closed, "with a `yield` in `try ... finally`"),
        (thrown, "`.throw` of a generator"),
    ],
)
def test_refused(function, words):
    with pytest.raises(CompileError, match=words) as caught:
        compile(function, cache=False)(X.copy())
    assert caught.value.span is not None


def test_a_generator_left_in_a_try_whose_finally_is_due_raises():
    def left(x):
        g = finishing(x)
        return next(g)

    with pytest.raises(NotImplementedError, match="`finally` has not run"):
        compile(left, cache=False)(X.copy())
