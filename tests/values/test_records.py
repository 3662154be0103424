"""Objects: dataclasses, plain classes, named tuples, enums, dicts and strings do what they do in CPython."""

import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest
from object_oracle import agrees
from sample_objects import (
    Charged,
    Level,
    Mode,
    Normal,
    Pair,
    Params,
    Particle,
    Plain,
    Point,
    Slotted,
    Vec,
    World,
    particle,
    vector,
    world,
)

import mutad

# Mutation.


def push(p, dt, n):
    for _ in range(n):
        p.pos += dt * p.vel
        p.vel *= 1.0 - dt * Particle.drag
        p.age += 1
    return p.pos.sum()


def rebinds_an_array(p, dt):
    p.pos = p.pos + dt * p.vel
    p.pos[0] = 7.0


def rebinds_in_a_loop(p, dt, n):
    for _ in range(n):
        p.pos = p.pos + dt * p.vel
        p.mass = p.mass * 1.5
    return p.mass


def rebinds_where(p, c):
    if c > 0:
        p.mass = c
        p.pos = p.vel * 2
    elif c < -1:
        p.mass = -c
    return p.mass


def methods(p, force):
    p.kick(force).kick(force, dt=0.2)
    p.weight = p.weight + 1.0
    return p.energy + p.doubled(p.mass) + p.drag + Particle.doubled(1.0)


def mutates_in_calls(w, n):
    def advance(p, dt):
        for _ in range(2):
            p.pos += dt * p.vel
            p.age += 1

    for k in range(n):
        advance(w.a, 0.1)
        if k % 2:
            advance(w.b, 0.2)
            w.t += 0.1
    return w.t


def swaps_objects(w):
    w.a, w.b = w.b, w.a
    w.a.mass = 5.0


def makes_a_field(w):
    w.a = Particle(np.zeros(2), w.b.vel, 3.0)
    w.extra = 4
    w.a.vel[0] = -1.0


def aliases(p, n):
    q = p
    for _ in range(n):
        q.mass += 1.0
        p.mass *= 2.0
    return q is p, p.mass


def two_arguments(p, q):
    p.mass += 1.0
    q.mass *= 3.0
    p.pos[0] = 9.0
    return p is q, q.pos[0]


def raises_on_the_way(p, n):
    for k in range(n):
        p.mass += 0.5
        p.age = k
        p.pos[k] = 100.0
    return p.mass


def catches_on_the_way(p, n):
    try:
        for k in range(n):
            p.mass += 0.5
            p.pos[k] = 100.0
    except IndexError:
        p.age = 99
    return p.mass, p.age


def catches_in_a_call(p, x):
    def root(p, x):
        p.age += 1
        if x < 0:
            raise ValueError("negative")
        p.mass = x**0.5

    try:
        root(p, x)
    except ValueError:
        p.mass = -1.0
    return p.mass, p.age


def frozen_raises(p):
    p.rate = 3.0


def frozen_raises_late(s, x):
    x[0] = 5.0
    if x[1] > 0:
        s.scale += 1.0
    x[1] = 6.0


def while_with_fields(p, limit):
    while p.mass < limit:
        p.mass *= 1.5
        if p.age > 3:
            break
        p.age += 1
    else:
        p.age = -1
    return p.age


def returns_early(p, x):
    for k in range(3):
        p.age += 1
        if x[k] < 0:
            return p.age
        p.mass += x[k]
    return -1


# Making and returning.


def makes(x):
    p = Particle(x, np.ones_like(x), age=3)
    p.kick(x)
    return p


def makes_others(x):
    c = Charged(x, np.ones_like(x), 2.0).kick(x)
    return c, c.charge, Particle.resting(x * 2), replace(c, mass=7.0)


def returns_one_twice(x):
    p = Plain(x)
    return p, p, (p.x, 1)


def returns_arguments(w):
    return w.a, w, w.a.pos


def makes_in_branches(x):
    if x > 0:
        s = Params(x, 1.0)
    else:
        s = Params(-x, 3.0)
    return s.scaled(2.0), s


def makes_mutable_in_branches(x):
    if x > 0:
        p = Plain(x)
    else:
        p = Plain(1.0, k=x)
    return p.x + p.k, p(2.0)


def returns_from_branches(x):
    if x > 0:
        return Vec(x, 1.0)
    return Vec(1.0, x)


def replaces_in_a_loop(s, n):
    for k in range(n):
        s = replace(s, rate=s.rate * 1.5 + k)
    return s, s.rate


def replaces_mutable_in_a_loop(v, n):
    total = Vec(0.0, 0.0)
    for k in range(n):
        total = total + v * k
    return total.x, total.y


def makes_in_a_loop(x):
    total = 0.0
    for k in range(x.size):
        p = Plain(x[k])
        p.step(0.1)
        total += p.total
    return total


def post_init(x):
    a = Normal(x, 4.0)
    return a.norm, a


def slots(s):
    s.x += 1.0
    s.v[0] = s.x
    return Slotted(s.x, s.v * 2)


def plain(p, n):
    for _ in range(n):
        p.step(0.25)
    return p(2.0) + len(p) + p[3] + p.count


def operators(v, w):
    u = v + w * 2.0
    return u, 3.0 * u, -u, u == v, u != v, v == v


def attributes_by_name(p):
    setattr(p, "mass", getattr(p, "mass") + 1.0)
    return hasattr(p, "mass"), hasattr(p, "colour"), getattr(p, "colour", 4.0)


def new_attribute(p):
    p.extra = p.x * 2
    return p.extra


def equality(a, b):
    return a == b, a != b, a == None  # noqa: E711


def asks_for_classes(p, q, t, d):
    return (
        isinstance(p, Particle), isinstance(q, Particle), isinstance(q, Charged), isinstance(t, tuple),
        isinstance(t, Pair), isinstance(d, dict), isinstance(p, (Params, dict)),
    )  # fmt: skip


def optional(w):
    if w.extra is None:
        return 0.0
    return w.extra * 2


def copies(p):
    q = copy.copy(p)
    q.mass = 9.0
    q.pos[0] = 4.0
    return p.mass, q.mass


# Named tuples.


def named_tuples(p, q):
    x, y = p
    r = Pair(x=y) if False else Pair(x)
    return (
        p.dot(q),
        p[1],
        len(p),
        r,
        Point(1, 2),
        Point(3),
        p._replace(y=9.0),
        p == q,
        p == (1.0, 2.0),
    )


def named_tuple_in_a_loop(p, n):
    for _ in range(n):
        p = Pair(p.x + p.y, p.x)
    return p


def named_tuple_of_arrays(p, n):
    for _ in range(n):
        p.x[1:] += p.y
    return p, Point(p.x, 2.0).x.sum()


def named_tuple_is_constant(p):
    p.x = 3.0


# Enums, strings.


def by_mode(x, mode):
    if mode is Mode.FAST:
        return x * mode.factor
    if mode == Mode.SLOW:
        return x * mode.value + mode.factor
    return 0.0


def matches(mode, name):
    match mode:
        case Mode.FAST:
            k = 1
        case Mode.SLOW:
            k = 2
    match name:
        case "left" | "right":
            return k * 10
        case _:
            return k


def levels(x, level):
    return (
        x[level],
        level + 1,
        level == Level.HIGH,
        level >= Level.LOW,
        Mode(2) is Mode.SLOW,
        level.name,
    )


def strings(x, kind):
    if kind == "square":
        return x * x, kind
    if kind in ("cube", "third") or kind.startswith("cub"):
        return x**3, kind.upper()
    if "o" in kind and kind not in {"a": 1}:
        return -x, "none"
    return x, kind


# Dicts.


def dicts(d, x):
    d["a"] += x
    d["b"] = d["b"] * 2
    d["w"][0] = 7.0
    total = 0.0
    for key in d:
        if key != "w":
            total += d[key]
    for key, value in d.items():
        if isinstance(value, float):
            total += value
    return total, len(d), "a" in d, "z" in d, d.get("z", 3.0), d.get("a")


def makes_dicts(x, n):
    d = {"x": x, "n": 0, 3: 1.5, Mode.FAST: 2.5}
    for _ in range(n):
        d["n"] += 1
        d["x"] = d["x"] * d[3]
    e = dict(d, y=2)
    e["z"] = x
    return d, e, d[Mode.FAST], e["y"]


def dict_of_arrays(d, rate):
    for name in d:
        d[name] -= rate * d[name]
    return sum(v.sum() for v in d.values()) if False else d["w"].sum() + d["b"].sum()


def nested(config, x):
    config["model"]["w"] += x
    return config["model"]["w"] * config["scale"]


PAIR = (Pair(1.0, 2.0), Pair(3.0, 4.0))

CASES = [
    (push, (particle(), 0.1, 4)),
    (push, (particle(), 0.1, 0)),
    (rebinds_an_array, (particle(), 0.5)),
    (rebinds_in_a_loop, (particle(), 0.5, 3)),
    (rebinds_in_a_loop, (particle(), 0.5, 0)),
    *((rebinds_where, (particle(), c)) for c in (2.0, -2.0, 0.0)),
    (methods, (particle(), vector(1, 1, 1))),
    (methods, (Charged(vector(1, 2), vector(3, 4)), vector(1, -1))),
    (mutates_in_calls, (world(), 5)),
    (swaps_objects, (world(),)),
    (makes_a_field, (world(),)),
    (aliases, (particle(), 3)),
    (two_arguments, (particle(), particle())),
    (two_arguments, (p := particle(), p)),
    (two_arguments, (particle(), replace(p))),
    (raises_on_the_way, (particle(), 3)),
    (raises_on_the_way, (particle(), 5)),
    (catches_on_the_way, (particle(), 3)),
    (catches_on_the_way, (particle(), 5)),
    (catches_in_a_call, (particle(), 4.0)),
    (catches_in_a_call, (particle(), -4.0)),
    (frozen_raises, (Params(1.0),)),
    (frozen_raises_late, (Params(1.0), vector(1, 2))),
    (frozen_raises_late, (Params(1.0), vector(1, -2))),
    (while_with_fields, (particle(), 5.0)),
    (while_with_fields, (particle(), 500.0)),
    (returns_early, (particle(), vector(1, -2, 3))),
    (returns_early, (particle(), vector(1, 2, 3))),
    (makes, (vector(1, 2),)),
    (makes_others, (vector(1, 2),)),
    (returns_one_twice, (2.0,)),
    (returns_arguments, (world(),)),
    (makes_in_branches, (2.0,)),
    (makes_in_branches, (-2.0,)),
    (makes_mutable_in_branches, (2.0,)),
    (makes_mutable_in_branches, (-2.0,)),
    (returns_from_branches, (2.0,)),
    (returns_from_branches, (-2.0,)),
    (replaces_in_a_loop, (Params(1.0), 3)),
    (replaces_mutable_in_a_loop, (Vec(1.0, 2.0), 4)),
    (makes_in_a_loop, (vector(1, 2, 3),)),
    (post_init, (3.0,)),
    (slots, (Slotted(1.0, vector(1, 2)),)),
    (plain, (Plain(4.0), 3)),
    (operators, (Vec(1.0, 2.0), Vec(3.0, 4.0))),
    (attributes_by_name, (particle(),)),
    (new_attribute, (Plain(2.0),)),
    (equality, (Params(1.0), Params(1.0))),
    (equality, (Params(1.0), Params(2.0))),
    (asks_for_classes, (particle(), Charged(vector(1), vector(2)), Pair(1.0), {"a": 1})),
    (optional, (world(),)),
    (optional, (World(particle(), particle(), extra=3.0),)),
    (copies, (particle(),)),
    (named_tuples, PAIR),
    (named_tuple_in_a_loop, (Pair(1.0, 1.0), 5)),
    (named_tuple_of_arrays, (Point(vector(1, 2, 3), 2.0), 2)),
    (named_tuple_is_constant, (Pair(1.0),)),
    (by_mode, (2.0, Mode.FAST)),
    (by_mode, (2.0, Mode.SLOW)),
    (matches, (Mode.FAST, "left")),
    (matches, (Mode.SLOW, "up")),
    (levels, (vector(1, 2, 3), Level.HIGH)),
    *((strings, (3.0, kind)) for kind in ("square", "cube", "cubic", "other", "x")),
    (dicts, ({"a": 1.0, "b": 2, "w": vector(1, 2)}, 0.5)),
    (makes_dicts, (2.0, 3)),
    (dict_of_arrays, ({"w": vector(1, 2), "b": vector(3)}, 0.1)),
    (nested, ({"model": {"w": vector(1, 2)}, "scale": 2.0}, 1.0)),
]  # fmt: skip


@pytest.mark.parametrize(("function", "args"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_python_agrees(function, args):
    agrees(function, *args, calls=2)


@dataclass
class Path:
    at: Any
    steps: list[float] = field(default_factory=list)

    def walk(self, k):
        self.steps.append(self.at.sum())
        self.at = self.at * k
        return self


def test_a_factory_makes_a_list_for_each_object() -> None:
    @mutad.compile(grad=True)
    def walked(x, k, n):
        first, rest = Path(x), list()
        for _ in range(n):
            first = first.walk(k)
            rest.append(Path(x).walk(k).steps[0])
        second = Path(first.at).walk(2.0).walk(k)
        return sum(first.steps) * len(second.steps) + sum(second.steps) + sum(rest)

    mutad.check_gradient(walked, np.arange(1.0, 4.0), 1.5, 3)
