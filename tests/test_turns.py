"""What takes long is done in turns: a part of it each day, and all parts together are everything."""

from __future__ import annotations

import pytest
from generated import seeds_of
from turns import Turns, has_turn, in_turn

NAMES = [f"tests/gradients/test_{k % 7}.py::test[{k}]" for k in range(300)]


def test_each_name_has_its_turn_in_one_part(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[str] = []
    for k in range(3):
        monkeypatch.setattr(Turns, "part", (k, 3))
        mine = [name for name in NAMES if has_turn(name)]
        assert 60 < len(mine) < 140
        taken += mine
    assert sorted(taken) == sorted(NAMES)


def test_without_parts_everything_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turns, "part", (0, 1))
    assert all(map(has_turn, NAMES))
    assert in_turn(NAMES) == NAMES


def test_one_of_a_few_has_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[list[str]] = []
    for k in range(24):
        monkeypatch.setattr(Turns, "part", (k, 24))
        taken.append(in_turn(["v2", "v3", "v4"]))
        assert in_turn([]) == []
    assert taken == [["v2"], ["v3"], ["v4"]] * 8


def test_each_run_has_seeds_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUTAD_ANY", raising=False)
    taken: list[int] = []
    for run in range(4):
        monkeypatch.setattr(Turns, "seeds", run)
        taken += seeds_of("MUTAD_ANY", "0:6")
    assert taken == [*range(24)]


def test_seeds_that_are_asked_for_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Turns, "seeds", 1000)
    monkeypatch.setenv("MUTAD_ANY", "17:18")
    assert [*seeds_of("MUTAD_ANY", "0:6")] == [17]
    monkeypatch.setenv("MUTAD_ANY", "3")
    assert [*seeds_of("MUTAD_ANY", "0:6")] == [0, 1, 2]
