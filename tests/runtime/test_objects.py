"""Calls with objects: what is compiled once and what anew, what is shared, what is cached, how fast."""

import enum
import os
import subprocess
import sys
import textwrap
from dataclasses import dataclass, replace

import numpy as np
import pytest

import mutad


@dataclass
class Body:
    x: np.ndarray
    v: np.ndarray
    mass: float = 1.0
    kind: str = "point"


@dataclass
class Other(Body):
    pass


class Mode(enum.Enum):
    A = 1
    B = 2


def body():
    return Body(np.arange(4.0), np.ones(4))


def compiled(function):
    made = mutad.compile(function, grad=True, cache=False)
    return made, made._dispatcher


def moved(b, dt):
    b.x += dt * b.v
    return b.mass


def specializations(dispatcher):
    return sum(len(flat.dispatcher.table) for flat in dispatcher.flats.values())


def test_one_class_is_compiled_once():
    f, dispatcher = compiled(moved)
    for mass in (1.0, 2.0, 3.0):
        f(replace(body(), mass=mass), 0.1)
    assert specializations(dispatcher) == 1
    f(replace(body(), mass=3), 0.1)
    assert specializations(dispatcher) == 2
    assert len(dispatcher.flats) == 1


def test_classes_strings_and_enum_members_are_part_of_the_key():
    def f(b, mode):
        return (mode.value, b.kind == "point", isinstance(b, Other))

    f, dispatcher = compiled(f)
    assert f(body(), Mode.A) == (1, True, False)
    assert f(body(), Mode.B) == (2, True, False)
    assert f(replace(body(), kind="line"), Mode.B) == (2, False, False)
    assert f(Other(np.ones(2), np.ones(2)), Mode.A) == (1, True, True)
    assert len(dispatcher.flats) == 4


def test_plain_calls_keep_their_entry():
    def f(x, y):
        return x.sum() if y is None else x.sum() * y

    f, dispatcher = compiled(f)
    f(np.ones(3), 2.0)
    assert not dispatcher.flats
    assert type(f).__call__ is dispatcher.heads["primal"]


def test_shared_arrays_are_seen_at_each_call():
    def f(a, b):
        a.x[1:] = b.x[:-1]
        b.v[0] = 5.0
        return a.v[0]

    made, _ = compiled(f)
    for make in (
        lambda: (body(), body()),
        lambda: (b := body(), b),
        lambda: (b := body(), replace(b)),
        lambda: (b := body(), Body(b.x[::-1], b.v)),
        lambda: (b := body(), Body(b.v, b.x)),
        lambda: (b := body(), Body(b.x, b.x)),
    ):
        mine, theirs = make(), make()
        assert made(*mine) == f(*theirs)
        for one, other in zip(mine, theirs, strict=True):
            np.testing.assert_array_equal(one.x, other.x)
            np.testing.assert_array_equal(one.v, other.v)


def test_gradients_share_memory_as_the_fields_do():
    def f(a, b):
        return (a.x * b.x).sum() + (a.v * b.x).sum()

    made, _ = compiled(f)
    a = body()
    ga, gb = made.grad(a, Body(a.x[::-1], a.v), wrt=("a", "b"))
    assert np.shares_memory(ga.x, gb.x)
    np.testing.assert_array_equal(ga.x[::-1], gb.x)
    np.testing.assert_allclose(ga.x, 2 * a.x[::-1] + a.v)
    g, again = made.grad(a, a, wrt=("a", "b"))
    assert g is again
    np.testing.assert_allclose(g.x, 2 * a.x + a.v)


def test_methods_are_never_stale():
    class Model:
        scale = 2.0

        def __init__(self, k):
            self.k = k

        def value(self, x):
            return self.k * x * self.scale

    f, _ = compiled(lambda m, x: m.value(x))
    m = Model(3.0)
    assert f(m, 1.0) == 6.0
    Model.scale = 5.0
    assert f(m, 1.0) == 15.0
    Model.value = lambda self, x: self.k - x
    assert f(m, 1.0) == 2.0


def test_a_compiled_method():
    class Model:
        def __init__(self, w):
            self.w = w
            self.calls = 0

        @mutad.compile(grad=True)
        def loss(self, x):
            self.calls += 1
            return (self.w * x).sum() ** 2

    m, x = Model(np.array([1.0, 2.0])), np.array([3.0, 4.0])
    assert m.loss(x) == 121.0
    value, g = m.loss.value_and_grad(x)
    assert value == 121.0
    assert type(g) is Model
    np.testing.assert_allclose(g.w, 22 * x)
    assert m.calls == 2


def test_read_only_fields_are_not_written():
    b = body()
    b.x.flags.writeable = False
    f, _ = compiled(moved)
    with pytest.raises(ValueError, match=r"read-only \(argument 'b.x'\)"):
        f(b, 0.1)


@mutad.opaque
def failing(k: int) -> int:
    raise KeyError(k)


def test_what_another_function_raises_has_a_note():
    def f(b, items, k):
        b.mass = 4.0
        b.x = b.x * 2
        items.append(1.0)
        return failing(k)

    b, items = body(), [0.0]
    x = b.x
    with pytest.raises(KeyError) as caught:
        mutad.compile(f)(b, items, 9)
    assert b.mass == 4.0
    assert b.x is x
    notes = "\n".join(caught.value.__notes__)
    assert "`x` of Body was bound to a new array" in notes
    assert "what was done to lists" in notes


def test_check_gradient_takes_objects():
    report = mutad.check_gradient(mutad.compile(moved_far, grad=True), body(), 0.3)
    assert report.error < 1e-6


def moved_far(b, dt):
    b.x += dt * b.v
    b.mass *= b.mass + dt
    return (b.x**2).sum() * b.mass


def test_another_process_finds_the_code(tmp_path):
    (tmp_path / "model.py").write_text(
        textwrap.dedent("""
        import numpy as np, mutad
        from dataclasses import dataclass
        from mutad.runtime import disk_cache

        @dataclass
        class State:
            x: np.ndarray
            t: float = 0.0
            def half(self):
                return 0.5 * self.t

        @mutad.compile
        def step(s):
            s.t += 1.0
            return State(s.x * 2, s.half())

        read, hits = disk_cache.read, []
        def counted(place):
            found = read(place)
            hits.append(found is not None)
            return found
        disk_cache.read = counted
        s = State(np.ones(2))
        r = step(s)
        assert type(r) is State and r.t == 0.5 and s.t == 1.0
        print(any(hits))
        """)
    )
    environment = {**os.environ, "MUTAD_CACHE_DIR": str(tmp_path / "cache")}
    found = [
        subprocess.run(
            [sys.executable, "model.py"],
            cwd=tmp_path,
            env=environment,
            text=True,
            capture_output=True,
        )
        for _ in range(2)
    ]
    assert [f.stdout.strip() for f in found] == ["False", "True"], found[-1].stderr


def test_explain_and_inspect_without_arguments_speak_of_the_latest_call():
    def squared(b, steps):
        for _ in range(steps):
            b.x[1:-1] = b.x[1:-1] ** 2 * b.mass
        return b.x.sum()

    f, _ = compiled(squared)
    with pytest.raises(ValueError, match="never called"):
        f.explain()
    f.grad(body(), 3)
    assert f.explain().formula == "8*steps*(b.x.shape[0]-2)"
    assert f.explain(wrt="b.x").formula == f.explain().formula
    assert f.inspect("simplify") == f.inspect("simplify", body(), 3)
    assert f.inspect("adjoint", wrt="b") == f.inspect("adjoint", body(), 3, wrt="b")
