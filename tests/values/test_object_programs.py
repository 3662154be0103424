"""Programs around objects, small and odd: CPython says what they do."""

from dataclasses import dataclass

import numpy as np
import pytest
from object_oracle import agrees
from sample_objects import Params, Plain, Point, Vec, particle, vector, world


@dataclass
class State:
    x: np.ndarray
    t: float = 0.5
    n: int = 2


def made_in_a_recursion(x, n):
    def go(k, y):
        if k == 0:
            return y
        p = State(x, y)
        p.t *= 2.0
        return go(k - 1, p.t)

    return go(n, 1.0)


def unpacked_into_fields(s):
    s.x, s.t = s.x * 2, s.t + 1
    (s.n, y) = (5, 3)
    return s.n + y


def field_as_loop_target(s):
    for s.n in range(4):
        s.t += s.n
    return s.n


def comprehension_of_a_field(s, n):
    xs = [s.t * k for k in range(n)]
    return sum(xs) + sum(s.t for _ in range(n))


def shown_and_raised(s):
    assert s.t > 0, f"t is {s.t}"
    print(s.t, s.n)
    raise ValueError(f"bad {s.n}")


def chosen_and_read(a, b):
    x = a if a.t > b.t else b
    return x.t, x.x.sum()


def swapped_with_a_name(s, k):
    s.t, t = 9.0, s.t
    if (u := s.t) > k:
        s.n += int(u)
    return t


def made_of_its_own_class(s):
    f = s.__class__
    q = f(s.x, t=s.t * 2)
    return q.t, isinstance(q, State), type(s) is State


def generators_over_objects(ps):
    return sum(p.t for p in ps), max(p.t for p in ps), [p.n for p in ps]


def leaves_nested_loops(s, n):
    total = 0.0
    for i in range(n):
        for j in range(i):
            if s.x[j] > 1.5:
                continue
            s.t += s.x[j]
            if s.t > 3:
                s.n = j
                return s.t
        s.n += 1
    return -1.0


def swap_arrays(a, b):
    a.pos, b.pos = b.pos, a.pos
    a.pos[0] = 3.0


def takes_view(p):
    p.pos = p.pos[1:]
    p.pos[0] = -1.0


def swap_in_loop(p, n):
    for _ in range(n):
        p.pos, p.vel = p.vel, p.pos
        p.pos *= 2.0
    return p.pos[0]


def tuple_of_objects(ps, dt):
    total = 0.0
    for p in ps:
        p.pos += dt * p.vel
        p.age += 1
        total += p.energy
    return total


def closure(p, n):
    k = 2.0

    def bump(x):
        p.mass += x * k
        return p.mass

    s = 0.0
    for i in range(n):
        s += bump(1.0) if i % 2 else bump(0.5)
    return s


def none_to_float(w, x):
    w.extra = x * 2
    if w.t > 1:
        w.extra = 0.0
    return w.extra


def late_field(w, n):
    for k in range(n):
        q = Vec(1.0 * k, 2.0)
        w.t = q.x + q.y
    return w.t, q.x


def bool_field(p, xs):
    p.found = False
    for x in xs:
        if x > 2:
            p.found = True
            break
    return p.found


CFG = Params(3.0, 4.0)
PT = Point(1, 2.5)


def captured(x):
    return CFG.scaled(x) + PT.y + PT.x


def lambda_on(p):
    return (lambda q, k=2.0: q.mass * k)(p) + max(p.mass, 3.0)


def ternary_attr(p, c):
    p.mass = 1.0 if c > 0 else p.mass * 2
    return p.mass


def both_or_either(p, x):
    if (p.mass > 1 and p.energy > x) or p.age == 0:
        return 1
    return 2


def chained_comparisons(p):
    return 0 < p.mass < 3, p.age <= p.mass


def index_attr(p, k):
    p.pos[k] += p.vel[k] * p.mass
    p.pos[1:] = p.pos[:-1]
    return p.pos[k], p.pos.shape[0], len(p.pos)


def nested_while(w, n):
    k = 0
    while k < n:
        j = 0
        while j < k:
            w.a.mass += 0.1 * j
            if w.a.mass > 4:
                w.b.age += 1
                break
            j += 1
        k += 1
    return w.a.mass, w.b.age


def early_in_method(p, xs):
    def find(q, xs):
        for i in range(xs.size):
            q.age = i
            if xs[i] > q.mass:
                return i
        return -1

    return find(p, xs), p.age


def reraises(p, n):
    try:
        p.mass += 1.0
        p.pos[n] = 1.0
    finally:
        p.age = 7
    return p.mass


def self_ref(p):
    p.me = p
    return p.me.x


def two_dicts(d):
    e = d["inner"]
    e["k"] += 1
    d["other"] = e["k"] * 2
    return e is d["inner"]


def bound_to_none(p):
    p.pos = None


def assigned_through_another_name(w):
    q = w.a
    w.a = w.b
    q.mass = 11.0
    w.a.mass = 12.0
    return q.mass


def stores_object_in_dict(x):
    d = {"p": Plain(x)}
    d["p"].step(0.1)
    return d["p"].x, d


def defaults(x, p=Params(2.0)):
    return p.scaled(x)


def cond_struct_mut(x, n):
    v = Vec(x, 0.0)
    for k in range(n):
        v.x += 1.0
        if v.x > 3:
            v.y = v.x
    return v


class Sneaky:
    def __init__(self, x):
        self.x = x

    @property
    def bumped(self):
        self.x += 1.0
        return self.x.size

    def sum(self):
        self.x *= 2.0
        return self.x.size

    def __mul__(self, k):
        self.x -= k
        return k


def operands_before_side_effects(s, y):
    a = s.x * y + s.bumped
    b = s.x * y + s.sum()
    c = s.x * y + s * 2.0
    s.x[...] = s.x * y + s.bumped * s.sum()
    return a, b, c


class Account:
    __rate = 3.0

    def __init__(self, start):
        self.__value = start

    @property
    def __scaled(self):
        return self.__value * Account.__rate

    def __twice(self, __by):
        return self.__scaled * 2.0 + __by

    def asked(self, v):
        __kept = v * 2.0

        def __inner(__q):
            nonlocal __kept
            __kept += __q
            return __kept

        return self.__twice(v) + __inner(1.0) + sum([__w * v for __w in (1.0, 2.0)])


class Savings(Account):
    def __init__(self, start):
        super().__init__(start)
        self.__value = 5.0

    def both(self, v):
        self.__value += v
        return self.__value * self.asked(v)


def private_names(v):
    account = Savings(v[0])
    return account.both(v[1]), account._Account__value, hasattr(account, "__value")


class Pair:
    def __init__(self):
        self.items = [1.0, None]

    def __getitem__(self, k):
        return self.items[k]

    def __setitem__(self, k, v):
        self.items[k] = v


class Sum:
    def __init__(self, v):
        self.v = v

    def __iadd__(self, other):
        self.v += other
        return self


def changed_wherever_they_are(v):
    d = {"list": [1], "number": 1.0, "array": v * 1.0, "sum": Sum(v[0])}
    d["list"] += [2, 3]
    d["number"] /= 4.0
    d["array"] -= v[0]
    d["sum"] += v[1]
    p, nested = Pair(), [[1], [2, 3], Sum(2.0)]
    p[0] += v[0]
    nested[0] += [4]
    nested[1] *= 2
    nested[2] += v[1]
    return d["list"], d["number"], d["array"], d["sum"].v, p[0], nested[0], nested[1], nested[2].v


def repeated_after_a_change(v, n):
    bag, total = {"list": [1]}, 0
    for i in range(n):
        many = bag["list"] * 2
        total += len(many) * 10 + many[-1]
        bag["list"].append(i + 5)
    return total, bag["list"] * 3


def none_of_a_list(v):
    items = [None, 1]
    items[0] += 1
    return v


def none_of_a_dict(v):
    d = {"a": None}
    d["a"] -= 1
    return v


def none_of_an_object(v):
    p = Pair()
    p[1] **= 2
    return v


def none_and_a_number_of_numpy(v):
    items = [None, 1.0]
    items[0] *= v[0]
    return v


CASES = [
    (operands_before_side_effects, (Sneaky(np.ones(3)), vector(1, 2, 3))),
    (made_in_a_recursion, (vector(1, 2), 3)),
    (unpacked_into_fields, (State(vector(1, 2)),)),
    (field_as_loop_target, (State(vector(1, 2)),)),
    (comprehension_of_a_field, (State(vector(1, 2)), 3)),
    (shown_and_raised, (State(vector(1, 2)),)),
    (chosen_and_read, (State(vector(1, 2)), State(vector(3, 4), 0.1))),
    (swapped_with_a_name, (State(vector(1, 2)), 3)),
    (made_of_its_own_class, (State(vector(1, 2)),)),
    (generators_over_objects, ((State(vector(1)), State(vector(2), 1.5)),)),
    (swap_arrays, (particle(), particle())),
    (takes_view, (particle(),)),
    (swap_in_loop, (particle(), 3)),
    (swap_in_loop, (particle(), 4)),
    (tuple_of_objects, ((particle(), particle()), 0.1)),
    (tuple_of_objects, ((q := particle(), q), 0.1)),
    (closure, (particle(), 3)),
    (none_to_float, (world(), 2.0)),
    (late_field, (world(), 3)),
    (bool_field, (Plain(1.0), vector(1, 2, 3))),
    (captured, (2.0,)),
    (lambda_on, (particle(),)),
    (ternary_attr, (particle(), 1.0)),
    (ternary_attr, (particle(), -1.0)),
    (both_or_either, (particle(), 1.0)),
    (chained_comparisons, (particle(),)),
    (index_attr, (particle(), 1)),
    (index_attr, (particle(), 5)),
    (nested_while, (world(), 5)),
    (early_in_method, (particle(), vector(1, 1, 5))),
    (early_in_method, (particle(), vector(1, 1, 1))),
    (reraises, (particle(), 1)),
    (reraises, (particle(), 7)),
    (self_ref, (Plain(2.0),)),
    (two_dicts, ({"inner": {"k": 1}, "other": 0},)),
    (bound_to_none, (particle(),)),
    (assigned_through_another_name, (world(),)),
    (stores_object_in_dict, (2.0,)),
    (defaults, (2.0,)),
    (cond_struct_mut, (1.0, 4)),
    (private_names, (vector(2, 3),)),
    (changed_wherever_they_are, (vector(2, 3),)),
    (repeated_after_a_change, (vector(2, 3), 3)),
    (none_of_a_list, (vector(1),)),
    (none_of_a_dict, (vector(1),)),
    (none_of_an_object, (vector(1),)),
    (none_and_a_number_of_numpy, (vector(1),)),
    (leaves_nested_loops, (State(vector(1, 2, 1, 1)), 4)),
    (leaves_nested_loops, (State(vector(1, 2, 1, 1)), 3)),
]


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_python_agrees(function, args):
    agrees(function, *args, calls=2)
