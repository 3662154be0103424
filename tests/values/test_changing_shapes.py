"""Arrays of which a loop changes the shape: they grow, are halved, filtered, padded."""

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from python_oracle import Case, Programs, compiled

programs = Programs()
on = programs.on


@on("f64[5] N", "f64[5]S 3", N="0 1 4")
def appended_to(x, n):
    a = np.zeros(0)
    for i in range(n):
        a = np.append(a, x[i] * 2.0)
    return a, a.size


@on("f64[5] N", "f32[5] 2", N="0 1 3")
def put_together(x, n):
    a = x
    for i in range(n):
        a = np.concatenate([a[1:], x[:2] * i, a[:1]])
    return a


@on("f64[16]", "f64[1]", "f64[7]R")
def halved_until_one_is_left(x):
    s = 0.0 * x[0]
    while x.size > 1:
        x = 0.5 * (x[: x.size // 2 * 2 : 2] + x[1::2])
        s += x[0]
    return s, x


@on("f64[9,9] N", "f64[6,5]F 2", N="0 1 2 3")
def coarser_and_coarser_grids(u, n):
    norms = 0.0 * u[0, 0]
    for _ in range(n):
        u[0] = 0.0
        u = 0.25 * (u[:-1:2, :-1:2] + u[1::2, :-1:2] + u[:-1:2, 1::2] + u[1::2, 1::2])
        norms += u[-1, -1]
        u[0, 0] += 1.0
        if u.shape[0] < 2 or u.shape[1] < 2:
            break
        if u.shape[0] % 2:
            u = u[:-1] * 1.0
        if u.shape[1] % 2:
            u = u[:, :-1] * 1.0
    return norms, u


@on("f64[4] N", N="0 1 2 4")
def the_positive_ones(x, n):
    a = x - 0.5
    for _ in range(n):
        a = a[a > 0] - 0.125
    return a


@on("f64[4] M N", M="0 1 3", N="0 1 2")
def in_an_inner_loop(x, m, n):
    total = 0.0 * x[0]
    for i in range(m):
        row = x[:1]
        for _ in range(n):
            row = np.append(row, row + i)
        total += row[-1]
        x = np.concatenate([x, row[:1]])
    return total, x


@on("f64[2,3] N", "f64[2,3]F 2", N="0 1 3")
def more_and_more_rows(a, n):
    for i in range(n):
        a = np.vstack([a, a[-1] * 0.5 + i])
        a[0, 0] = i
    return a


@on("f64[2,3] N", N="0 1 2 3")
def turned_over(a, n):
    for i in range(n):
        a = (a * 2.0).T
        a[0, 1] += i
    return a


@on("f64[4] f64[6] N", N="0 1 2 3")
def two_of_different_shape_change_places(a, b, n):
    for _ in range(n):
        a, b = b[1:] * 0.5, np.append(a, b[0])
    return a, b


@on("f64[4] f64[2] N", N="0 2 3")
def longer_in_some_iterations(a, b, n):
    for i in range(n):
        if i % 2 == 1:
            a = np.append(a, b)
        else:
            a = a * 0.5
    return a


@on("f64[4] N", N="2 3 5")
def an_error_of_numpys_when_the_shapes_no_longer_meet(x, n):
    a = x
    for i in range(n):
        a = a[1:] * 1.0
        x[i] = a.max()
    return a


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_like_python(case: Case) -> None:
    case.check()


@dataclass
class Track:
    points: np.ndarray
    length: float = 0.0


def follow(track: Track, n: int) -> None:
    for i in range(n):
        step = np.full((1, 2), float(i))
        track.points = np.concatenate((track.points, track.points[-1:] + step))
        track.length += float(track.points[-1, 0])


def test_a_field_of_the_callers_object_grows() -> None:
    tracks = [Track(np.ones((1, 2))) for _ in range(2)]
    compiled(follow)(tracks[0], 4)
    follow(tracks[1], 4)
    assert tracks[0].points.tolist() == tracks[1].points.tolist()
    assert tracks[0].length == tracks[1].length


def test_the_room_of_an_inner_loop_is_given_back() -> None:
    def many(x: np.ndarray, m: int) -> float:
        total = 0.0
        for i in range(m):
            a = x
            while a.size < 8:
                a = np.append(a, x * i)
            total += a[-1]
        return total

    assert compiled(many)(np.ones(2), 20_000) == many(np.ones(2), 20_000)


def test_the_shape_of_another_array_is_expected_to_be_the_same() -> None:
    def f(u: np.ndarray, v: np.ndarray, n: int) -> np.ndarray:
        w = None
        for i in range(n):
            u = v * 2.0 if i % 2 else u + 1.0
            w = None if i % 3 == 1 else u * 0.5 if i % 2 else v * 3.0
        return u if w is None else w

    for v, n in itertools.product((np.ones(3), np.ones(4), np.ones(0)), range(5)):
        assert compiled(f)(np.ones(3), v, n).tolist() == f(np.ones(3), v, n).tolist()
