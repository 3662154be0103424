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


class Rate(enum.IntEnum):
    ONE = 1

    def factor(self):
        return 2.0


class Count(enum.IntEnum):
    ONE = 1

    def factor(self):
        return 3.0


class Word(enum.StrEnum):
    A = "a"


def of_member(x, m):
    return x * m.factor()


def of_word(x, w):
    return x * 2.0 if isinstance(w, Word) else x * 3.0


def of_word_key(x, d):
    for k in d:
        x = x * (2.0 if isinstance(k, Word) else 3.0) + d[k]
    return x


@pytest.mark.parametrize(
    ("function", "values"),
    [
        (of_member, (Rate.ONE, Count.ONE)),
        (of_word, (Word.A, "a")),
        (of_word_key, ({"a": 2}, {Word.A: 2})),
    ],
)
@pytest.mark.parametrize("turned", [False, True])
def test_what_is_equal_and_of_another_type_is_another_key(function, values, turned):
    f = mutad.compile(function, cache=False, opt=0)
    for value in (*(reversed(values) if turned else values), *values):
        assert f(1.0, value) == function(1.0, value)


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
    value, g = m.loss.value_and_grad(x, wrt="self")
    assert value == 121.0
    assert type(g) is Model
    np.testing.assert_allclose(g.w, 22 * x)
    assert m.calls == 2


def test_read_only_fields_are_not_written():
    b = body()
    b.x.flags.writeable = False
    f, _ = compiled(moved)
    with pytest.raises(ValueError, match="output array is read-only"):
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


def weighed(b, dt):
    return (b.x * b.x * dt).sum() * b.mass


def looked_up(monkeypatch, flat):
    """The look-ups of code from here on."""
    found = []
    look_up = flat.dispatcher.specialize
    monkeypatch.setattr(
        flat.dispatcher, "specialize", lambda *a, **k: found.append(a) or look_up(*a, **k)
    )
    return found


def test_a_gradient_that_came_before_is_not_looked_up(monkeypatch):
    f, dispatcher = compiled(weighed)
    b = body()
    first = f.value_and_grad(b, 0.5, wrt=("dt", "b"))
    assert f.grad(b, 0.5).mass == first[1][1].mass
    found = looked_up(monkeypatch, dispatcher.latest)
    again = f.value_and_grad(b, 0.5, wrt=("dt", "b"))
    assert again[0] == first[0]
    assert again[1][0] == first[1][0]
    np.testing.assert_array_equal(again[1][1].x, first[1][1].x)
    assert again[1][1].kind == "point"
    assert f.value_and_grad(b, 0.5, wrt=["dt", "b"])[1][0] == first[1][0]
    np.testing.assert_array_equal(f.grad(b, 0.5).x, first[1][1].x)
    assert not found
    f.grad(b, 0.5, wrt="b.mass")
    assert found


def test_a_gradient_of_other_kinds_of_parts_is_looked_up(monkeypatch):
    f, dispatcher = compiled(weighed)
    others = [body(), replace(body(), mass=2), replace(body(), x=np.arange(8.0)[::2])]
    single = replace(body(), x=np.ones(4, np.float32))
    for b in (*others, single, *others):
        expected = 2 * 0.5 * b.x * b.mass
        np.testing.assert_allclose(f.grad(b, 0.5).x, expected)
        assert f.grad(b, 0.5).x.dtype == b.x.dtype
    found = looked_up(monkeypatch, dispatcher.latest)
    for b in (*others, single):
        f.grad(b, 0.5)
    assert not found


def test_a_gradient_that_came_before_sees_what_is_outside():
    scale = 2.0
    kind = "square"

    def f(b):
        return scale * (b.x * b.x).sum() if kind == "square" else b.x.sum()

    made, _ = compiled(f)
    b = body()
    np.testing.assert_allclose(made.grad(b).x, 4 * b.x)
    np.testing.assert_allclose(made.grad(b, wrt=("scale", "b"))[0], (b.x**2).sum())
    scale = 3.0
    np.testing.assert_allclose(made.grad(b).x, 6 * b.x)
    np.testing.assert_allclose(made.grad(b, wrt=("scale", "b"))[1].x, 6 * b.x)
    kind = "plain"
    np.testing.assert_array_equal(made.grad(b).x, np.ones(4))
    kind = "square"
    np.testing.assert_allclose(made.grad(b).x, 6 * b.x)


def test_a_gradient_that_came_before_sees_what_is_shared():
    def f(a, b):
        return (a.x * b.x).sum()

    made, _ = compiled(f)
    a, b = body(), body()
    for _ in range(2):
        np.testing.assert_array_equal(made.grad(a, b).x, b.x)
    shared = Body(a.x[::-1], a.v)
    for _ in range(2):
        ga, gb = made.grad(a, shared, wrt=("a", "b"))
        assert np.shares_memory(ga.x, gb.x)
        np.testing.assert_array_equal(ga.x, 2 * a.x[::-1])
    np.testing.assert_array_equal(made.grad(a, b).x, b.x)


def test_a_bool_is_no_position_although_it_is_one():
    f, _ = compiled(weighed)
    b = body()
    f.grad(b, 0.5, wrt=1)
    with pytest.raises(TypeError, match="wrt takes names and positions"):
        f.grad(b, 0.5, wrt=True)
    f.grad(b, 0.5, wrt=(1, "b"))
    with pytest.raises(TypeError, match="wrt takes names and positions"):
        f.grad(b, 0.5, wrt=(True, "b"))


def test_a_gradient_that_assigns_to_fields_is_not_looked_up_again(monkeypatch):
    def f(b, dt, k):
        b.x += dt * b.v
        b.mass *= b.mass + dt
        b.x[k] += 1.0
        b.kind = "moved"
        return (b.x**2).sum() * b.mass

    made, dispatcher = compiled(f)
    wrt = ("b", "dt")
    a, b = body(), body()
    first = made.value_and_grad(a, 0.3, 1, wrt=wrt)
    found = looked_up(monkeypatch, dispatcher.latest)
    again = made.value_and_grad(b, 0.3, 1, wrt=wrt)
    assert not found
    assert again[0] == first[0]
    assert again[1][1] == first[1][1]
    for one, other in ((again[1][0], first[1][0]), (b, a)):
        assert (one.mass, one.kind) == (other.mass, other.kind)
        np.testing.assert_array_equal(one.x, other.x)
        np.testing.assert_array_equal(one.v, other.v)
    assert b.kind == "moved"

    raised = body()
    with pytest.raises(IndexError):
        made.grad(raised, 0.3, 9, wrt=wrt)
    assert not found
    assert (raised.mass, raised.kind) == (1.3, "point")
    np.testing.assert_allclose(raised.x, body().x + 0.3)

    shared = body()
    shared.v = shared.x
    expected = body()
    expected.v = expected.x
    value, (gradient, _) = made.value_and_grad(shared, 0.3, 1, wrt=wrt)
    assert value == pytest.approx(f(expected, 0.3, 1))
    assert np.shares_memory(gradient.x, gradient.v)
    assert found
    value, _ = made.value_and_grad(replace(body(), mass=2), 0.3, 1, wrt=wrt)
    assert value == pytest.approx(f(replace(body(), mass=2), 0.3, 1))
    np.testing.assert_array_equal(made.grad(body(), 0.3, 1).x, first[1][0].x)


def test_gradients_of_lists_that_came_before():
    def f(pairs, weights, b):
        total = b.mass
        for k, v in pairs:
            total += k * v * v
        for w in weights:
            total *= w
        return total + (b.x**2).sum()

    made, dispatcher = compiled(f)
    for rounds in range(3):
        pairs, weights = [(1, 2.0), (3, 0.5)], [2.0, 0.5, 3.0][: 3 - rounds]
        g, w, b = made.grad(pairs, weights, body(), wrt=("pairs", "weights", "b"))
        scale = np.prod(weights)
        assert g == [(1, pytest.approx(4.0 * scale)), (3, pytest.approx(3.0 * scale))]
        assert w == pytest.approx(
            [f(pairs, [], replace(body(), x=np.zeros(1))) * scale / v for v in weights]
        )
        np.testing.assert_allclose(b.x, 2 * np.arange(4.0))


def test_pullback_takes_defaults_as_they_are() -> None:
    @mutad.compile(grad=True, opt=1)
    def scaled(p, k=3.0, how="twice"):
        return (p["x"] ** 2).sum() * k if how == "twice" else 0.0

    p, shadow = {"x": np.array([1.0, 2.0])}, {"x": np.zeros(2)}
    assert scaled.pullback(mutad.Duplicated(p, shadow), cotangent=1.0) == (15.0, ())
    np.testing.assert_array_equal(shadow["x"], [6.0, 12.0])


class Answering:
    """Has an attribute of every name, by its own words."""

    __slots__ = ("n",)

    def __init__(self):
        self.n = 1.0

    def __getattr__(self, name: str) -> int:
        return 3


def test_an_object_that_has_every_attribute():
    @mutad.compile
    def doubled(x, _other):
        return x * 2.0

    with pytest.raises(mutad.CompileError, match="its class defines __getattr__"):
        doubled(np.ones(2), Answering())


def test_defaults_are_enough_to_look_at_a_function():
    @mutad.compile(grad=True)
    def chosen(n=1.0, mode="twice"):
        return n * n if mode == "twice" else n

    @mutad.compile(grad=True)
    def named(n=1.0):
        return {"square": n * n}

    for function in (chosen, named):
        assert function.explain().saved_bytes == 0
        assert "func.func" in function.inspect("frontend")
