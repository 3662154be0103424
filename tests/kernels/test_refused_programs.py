"""The list of what a device refuses of the gradient programs: it is held against each program that runs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import device_refusals
import pytest
from device_refusals import TABLES, assert_as_listed, listed, relist, written


@pytest.fixture
def some(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[dict[str, str]]:
    """A short list in place of ours."""
    found = {"test_a.one": "grows", "test_b.two.pulled_later": "does more", "test_b.three": "host"}
    place = tmp_path / "list.txt"
    place.write_text(written(found))
    monkeypatch.setattr(device_refusals, "LIST", place)
    listed.cache_clear()
    yield found
    listed.cache_clear()


def test_the_list_is_read_as_it_was_written(some: dict[str, str]) -> None:
    assert listed() == some


def test_what_is_listed_may_be_refused(some: dict[str, str]) -> None:
    assert_as_listed("test_a.one", {"in place": "grows", "pulled_back": "grows"})
    assert_as_listed("test_b.two", {"pulled_back": None, "pulled_later": "does more"})
    assert_as_listed("test_b.four", {"in place": None, "pulled_back": None})


@pytest.mark.parametrize(
    ("program", "call", "kind", "said"),
    [
        ("test_b.four", "pulled_back", "grows", "newly refuses pulled_back of test_b.four"),
        ("test_b.two", "pulled_back", "does more", "newly refuses pulled_back of test_b.two"),
        ("test_a.one", "pulled_back", None, "no longer refuses pulled_back of test_a.one"),
        ("test_b.two", "pulled_later", None, "no longer refuses pulled_later of test_b.two"),
        ("test_a.one", "in place", "host", "for another reason"),
    ],
)
@pytest.mark.usefixtures("some")
def test_what_is_not_as_listed_fails(program: str, call: str, kind: str | None, said: str) -> None:
    with pytest.raises(AssertionError, match=f"{said}.*make refused"):
        assert_as_listed(program, {call: kind})


def test_a_program_is_listed_again(some: dict[str, str]) -> None:
    relist("test_b.two", {})
    relist("test_b.three", dict.fromkeys(("in_place", "pulled_back", "pulled_later"), "grows"))
    relist("test_c.apart", {"pulled_back": "outside"})
    relist("test_c.new", {"multiplied": "host"})
    assert listed() == {
        "test_a.one": "grows",
        "test_b.three": "grows",
        "test_c.apart.pulled_back": "outside",
        "test_c.new.multiplied": "host",
    }


def test_what_is_listed_is_there() -> None:
    texts = {path.stem: path.read_text() for path in TABLES.glob("test_*.py")}
    for name in listed():
        table, program = name.split(".")[:2]
        assert program in texts[table], f"no {name}: make refused"
