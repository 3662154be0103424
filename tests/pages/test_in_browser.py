"""The pages in headless Chromium, where there is one: lines light, arrows stand, no network is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import chromium
import numpy as np
import pytest
from html_pages import edges_of

from mutad import compile

pytestmark = pytest.mark.skipif(chromium.found() is None, reason="there is no Chromium")
WIDTHS = (900, 1300, 1920)


@compile(grad=True, opt=1)
def wave(u, speed, steps):
    for _ in range(steps):
        u[1:-1] -= speed * u[1:-1] * (u[2:] - u[:-2])
        u[0] = u[1] * u[2] * np.exp(-u[0] * u[0]) + np.sin(u[1]) * np.cos(u[2]) / (1 + speed * u[2])
    total = 0.0
    for i in range(u.size):
        total += u[i] * u[i] * speed
    return total


ARGUMENTS = (np.ones(50), 0.1, 7)
UPDATE = wave.__wrapped__.__code__.co_firstlineno + 3


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("view") / "view.html"
    wave.inspect.html(path, *ARGUMENTS, wrt="u")
    return path


@pytest.fixture(scope="module")
def receipt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("receipt") / "receipt.html"
    wave.explain(*ARGUMENTS, wrt="u").to_html(path)
    return path


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[chromium.Page]:
    with chromium.page(tmp_path_factory.mktemp("profile")) as page:
        yield page


@pytest.fixture
def tab(browser: chromium.Page) -> Iterator[chromium.Page]:
    """The tab; nothing may have gone wrong in it, and it may have asked for files alone."""
    yield browser
    assert browser.errors == []
    assert [url for url in browser.requests if not url.startswith("file:///")] == []


ARROWS = """[...document.querySelectorAll("path.edge")].map((path) => {
    const box = path.getBoundingClientRect(), around = path.closest("svg").getBoundingClientRect();
    const row = (id) => document.getElementById(id).getBoundingClientRect();
    const ends = path.getAttribute("d").match(/-?[0-9.]+,-?[0-9.]+/g).map((p) => p.split(",").map(Number));
    const middle = (id) => row(id).top + row(id).height / 2 - around.top;
    return {
        across: path.parentElement.classList.contains("overlay"),
        start: path.dataset.start, end: path.dataset.end,
        width: box.width, away: path.classList.contains("away"),
        inside: box.left >= around.left - 1 && box.right <= around.right + 1 && box.left >= 0
            && box.right <= innerWidth,
        starts: Math.abs(ends[0][1] - middle(path.dataset.start)),
        ends: Math.abs(ends[3][1] - middle(path.dataset.end)),
        colour: getComputedStyle(path).stroke, drawn: getComputedStyle(path).visibility === "visible",
    };
})"""


def arrows(tab: chromium.Page) -> list[dict[str, Any]]:
    return tab.evaluate(ARROWS)


def within(column: str, edge: dict[str, str]) -> bool:
    return edge["start"].startswith(column) and edge["end"].startswith(column)


@pytest.mark.parametrize("width", WIDTHS)
def test_arrows_of_the_receipt_stand(tab: chromium.Page, receipt: Path, width: int) -> None:
    tab.open(receipt, width)
    drawn = arrows(tab)
    assert {(a["start"], a["end"]) for a in drawn} == {
        (e["start"], e["end"]) for e in edges_of(receipt.read_text())
    }
    for one in drawn:
        assert one["inside"]
        assert one["drawn"]
        assert one["width"] > 8
        assert max(one["starts"], one["ends"]) <= 8  # above the middle of its row, or below
    # The long line scrolls within the listing, not with the page.
    box = "document.querySelector('.scroll')"
    assert tab.evaluate(f"{box}.scrollWidth > {box}.clientWidth") is (width <= 1300)
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("width", WIDTHS)
def test_arrows_of_the_view_stand(tab: chromium.Page, view: Path, width: int) -> None:
    tab.open(view, width)
    expected = [e for e in edges_of(view.read_text()) if within("source", e)]
    drawn = arrows(tab)
    assert len([a for a in drawn if not a["across"]]) == len(expected)
    across = [a for a in drawn if a["across"]]
    assert {a["end"].rpartition("-")[0] for a in across} == {"stage-adjoint"}
    for one in drawn:
        assert one["inside"]
        assert one["width"] > 8
        assert one["starts"] <= 8
        assert one["ends"] <= 8 or one["away"]
    assert tab.evaluate("document.documentElement.scrollWidth <= innerWidth")
    columns = "[...document.querySelectorAll('.column:not([hidden])')]"
    widths = tab.evaluate(f"{columns}.map((column) => column.getBoundingClientRect().width)")
    assert len(widths) == {900: 2, 1300: 3, 1920: 4}[width]
    assert min(widths) > 300


LIT = """Object.fromEntries([...document.querySelectorAll(".column:not([hidden])")].map((column) =>
    [column.dataset.name, [...column.querySelectorAll(".row.lit")].map((row) => row.dataset.at)]))"""


def line(number: int) -> str:
    return f"#source .row[data-at='0:{number}']"


def test_a_line_lights_its_ops_in_each_column(tab: chromium.Page, view: Path) -> None:
    tab.open(view, 1920)
    tab.hover(line(UPDATE))
    lit = tab.evaluate(LIT)
    assert [*lit] == ["source", "simplify", "adjoint", "assembly"]
    assert lit["source"] == [f"0:{UPDATE}"]
    for column in ("simplify", "adjoint", "assembly"):
        assert len(lit[column]) >= 3
        assert set(lit[column]) == {f"0:{UPDATE}"}
    tab.hover(line(UPDATE + 4))
    assert set(tab.evaluate(LIT)["adjoint"]) == {f"0:{UPDATE + 4}"}
    lit_edges = "[...document.querySelectorAll('path.edge.lit')].length"
    assert tab.evaluate(lit_edges) == 0
    tab.hover("h1")
    assert not any(tab.evaluate(LIT).values())


def test_an_op_lights_its_line(tab: chromium.Page, view: Path) -> None:
    tab.open(view, 1300)
    tab.hover("#stage-adjoint .row[data-at]")
    lit = tab.evaluate(LIT)
    assert len(lit["source"]) == 1
    assert set(lit["adjoint"]) == set(lit["source"])


def test_a_click_keeps_a_line_lit_and_brings_the_end_of_its_arrow(
    tab: chromium.Page, view: Path
) -> None:
    tab.open(view, 1300)
    tab.hover(line(UPDATE), click=True)
    tab.hover(line(UPDATE + 4))
    assert tab.evaluate(LIT)["source"] == [f"0:{UPDATE}"]
    ((edge),) = [a for a in arrows(tab) if a["across"] and not a["away"]][:1]
    assert edge["ends"] <= 1
    assert edge["start"] == tab.evaluate(f'document.querySelector("{line(UPDATE)}").id')
    assert "saves u" in tab.evaluate("document.querySelector('#status').textContent")
    tab.hover(line(UPDATE), click=True)
    tab.hover(line(UPDATE + 4))
    assert tab.evaluate(LIT)["source"] == [f"0:{UPDATE + 4}"]


def test_the_keyboard_does_all_of_it(tab: chromium.Page, view: Path) -> None:
    tab.open(view, 1300)
    focused = "document.activeElement.dataset.at ?? document.activeElement.value ?? ''"
    for _ in range(9):  # eight boxes, then the source
        tab.press("Tab")
    assert tab.evaluate(focused) == f"0:{UPDATE - 3}"
    for _ in range(3):
        tab.press("ArrowDown")
    assert tab.evaluate(focused) == f"0:{UPDATE}"
    assert set(tab.evaluate(LIT)["assembly"]) == {f"0:{UPDATE}"}
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert tab.evaluate(outline) == "solid"
    tab.press("Enter")
    tab.press("ArrowDown")
    assert tab.evaluate(LIT)["source"] == [f"0:{UPDATE}"]
    tab.press("Escape")
    assert tab.evaluate(LIT)["source"] == [f"0:{UPDATE + 1}"]
    tab.press("Tab")
    assert tab.evaluate("document.activeElement.closest('.column').id") == "stage-adjoint"


def test_boxes_choose_the_stages(tab: chromium.Page, view: Path) -> None:
    tab.open(view, 1300)
    tab.hover("input[value='stage-simplify']")
    tab.evaluate("document.querySelector(\"input[value='stage-simplify']\").click()")
    tab.evaluate("document.querySelector(\"input[value='stage-adjoint']\").click()")
    tab.settle()
    tab.hover(line(UPDATE))
    lit = tab.evaluate(LIT)
    assert [*lit] == ["source", "simplify", "assembly"]
    assert len(lit["simplify"]) >= 3
    assert not any(a["across"] for a in arrows(tab))


def test_dark_is_dark(tab: chromium.Page, view: Path) -> None:
    back = "getComputedStyle(document.body).backgroundColor"
    tab.open(view, 1300)
    light, stroke = tab.evaluate(back), arrows(tab)[0]["colour"]
    tab.open(view, 1300, scheme="dark")
    assert light == "rgb(255, 255, 255)"
    assert tab.evaluate(back) != light
    assert arrows(tab)[0]["colour"] != stroke


def test_a_notebook_shows_it(tab: chromium.Page, receipt: Path, tmp_path: Path) -> None:
    shown = wave.explain(*ARGUMENTS, wrt="u")._repr_html_()
    (tmp_path / "notebook.html").write_text(f"<!doctype html><title>cells</title>{shown}")
    tab.open(tmp_path / "notebook.html", 1300)
    assert tab.evaluate("document.querySelector('iframe').getBoundingClientRect().height") > 300


def test_nothing_but_the_files_was_asked_for(browser: chromium.Page, view: Path) -> None:
    browser.open(view, 1300)
    assert browser.requests[-1] == view.as_uri()
    assert browser.errors == []
    assert {url.partition(":")[0] for url in browser.requests} <= {"file", "about"}
