"""The pages without a browser: they are whole, load nothing, and say the line of every op."""

from __future__ import annotations

import functools
import html
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from html_pages import columns_of, edges_of, loads_nothing, palettes_of, tags_of

from mutad import CompiledFunction, batch, compile
from mutad.compiler.codegen.llvm_lines import llvm_lines
from mutad.compiler.compilation import Compilation
from mutad.compiler.pages.listing import Edge, Row, edges_json, folded, short
from mutad.compiler.pages.page import asset
from mutad.compiler.pipeline import stages_for
from mutad.compiler.print_ir import module_text
from mutad.compiler.request import Options, Request

Array = np.ndarray


def flux(k: float, u: Array) -> Array:
    return k * u[1:-1] * (u[2:] - u[:-2])


@compile(grad=True, opt=1)
def steepen(u, k, steps):
    for _ in range(steps):
        u[1:-1] -= flux(k, u)
    total = 0.0
    for i in range(u.size):
        if u[i] < 1e3 and "</script><b>&" != "<!--":
            total += u[i] * u[i]
    return total


ARGUMENTS = (np.ones(50), 0.1, 7)
FIRST = steepen.__wrapped__.__code__.co_firstlineno
FLUX = flux.__code__.co_firstlineno


@pytest.fixture(scope="module")
def view(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("pages") / "view.html"
    steepen.inspect.html(path, *ARGUMENTS, wrt="u")
    return path.read_text(encoding="utf-8")


def test_the_page_is_whole_and_loads_nothing(view: str) -> None:
    assert loads_nothing(view)
    assert "default-src 'none'" in view
    names = [a["id"] for _, a in tags_of(view) if "id" in a]
    assert len(names) == len(set(names))


def test_each_stage_is_a_column_with_a_box(view: str) -> None:
    request = Request(steepen.__wrapped__, (), mode="gradient")
    stages = [stage.name for stage in stages_for(request)]
    assert list(columns_of(view)) == ["source", *stages]
    boxes = [a["value"] for tag, a in tags_of(view) if tag == "input"]
    assert boxes == [f"stage-{name}" for name in stages]


def test_columns_of_ir_are_what_inspect_returns(view: str) -> None:
    columns = columns_of(view)
    for stage in ("frontend", "simplify", "plan", "adjoint", "optimize"):
        text = "\n".join(row.text for row in columns[stage])
        assert text == steepen.inspect(stage, *ARGUMENTS, wrt="u"), stage


def test_every_op_has_its_line() -> None:
    arguments = ("f64[?]C", "py_float", "py_int")
    from mutad.compiler.pages.browser_view import of_module

    options = Options(opt=1)
    c = Compilation(
        Request(steepen.__wrapped__, arguments, mode="gradient", wrt=(0,), options=options)
    )
    for stage in stages_for(c.request)[:5]:
        stage.run(c)
        rows = of_module(stage, c).column.rows
        located = module_text(c.module).splitlines()
        lines = {name: int(line) for name, line in re.findall(r"^(#\S+) = loc\(.*:(\d+):\d+\)$",
                                                              "\n".join(located), re.MULTILINE)}  # fmt: skip
        body = located[len(lines) :]
        said = [
            re.search(r"[^}] loc\((#\S+)\)$", line) for line in body
        ]  # a region's is behind its end
        assert len(body) == len(rows)
        known = [(k, lines[found[1]]) for k, found in enumerate(said) if found is not None]
        assert len(known) > 20
        assert [(k, row.place and row.place[1]) for (k, _), row in
                zip(known, (rows[k] for k, _ in known), strict=True)] == known  # fmt: skip
        opened = [
            row for row in rows if row.text.endswith("{") and "builtin.module" not in row.text
        ]
        assert all(row.place is not None for row in opened if not row.text.lstrip().startswith("}"))


def test_code_says_the_lines_that_compute(view: str) -> None:
    columns = columns_of(view)
    computing = {FLUX + 1, FIRST + 3, FIRST + 7}
    for stage in ("llvm", "llvm-opt", "assembly"):
        assert computing <= {row.line for row in columns[stage]}, stage
        text = "\n".join(row.text for row in columns[stage])
        assert "!dbg" not in text
        assert "!DI" not in text
        assert ".loc" not in text
    shown = [
        row.text for row in columns["assembly"] if "gap" not in (row.attributes["class"] or "")
    ]
    plain = steepen.inspect("assembly", *ARGUMENTS, wrt="u").expandtabs(8).splitlines()
    assert set(shown) <= set(plain)


def test_llvm_without_lines_is_what_it_is_without_debug_metadata() -> None:
    def text(debug: bool) -> str:
        made = compile(steepen.__wrapped__, grad=True, opt=1, debug=debug)
        return made.inspect("llvm", *ARGUMENTS, wrt="u")

    def unnumbered(lines: list[str]) -> list[str]:
        kept = [re.sub(r"!\d+", "!", line) for line in lines]
        return sorted(line for line in kept if not line.startswith("!"))

    read = llvm_lines(text(True))
    assert unnumbered([line for line, _ in read]) == unnumbered(text(False).splitlines())
    assert {place[0] for _, place in read if place is not None} == {__file__}


def test_the_source_is_shown_as_it_is_written(view: str) -> None:
    rows = {row.number: row for row in columns_of(view)["source"]}
    lines = Path(__file__).read_text().splitlines()
    for line in (*range(FLUX, FLUX + 2), *range(FIRST, FIRST + 9)):
        assert rows[str(line)].text == lines[line - 1]
        assert rows[str(line)].line == line
    assert any("</script><b>&" in row.text for row in rows.values())


def test_what_is_saved_has_its_bytes_and_edges(view: str) -> None:
    rows = {
        row.attributes["id"]: (name, row) for name, rows in columns_of(view).items() for row in rows
    }
    saved = [row for _, row in rows.values() if row.note]
    assert [row.line for row in saved] == [FLUX + 1]
    assert saved[0].note == "u: 8*steps*u.shape[0] = 2,800 bytes"
    assert "2.8 kB" in view
    kinds = [edge["kind"] for edge in edges_of(view)]
    assert kinds == ["kill", "need", "reload", "reload"]
    for edge in edges_of(view):
        assert edge["start"] in rows
        assert edge["end"] in rows
    column, read = rows[edges_of(view)[2]["end"]]
    assert column == "adjoint"
    assert read.attributes["class"] == "row reads"
    first_adjoint = next(
        k for k, row in enumerate(columns_of(view)["adjoint"]) if "ad.adjoint" in row.text
    )
    assert int((read.attributes["id"] or "").rpartition("-")[2]) > first_adjoint


def test_edges_of_a_split_gradient_end_in_its_second_function(tmp_path: Path) -> None:
    steepen.inspect.html(tmp_path / "split.html", *ARGUMENTS, wrt="u", plan="split")
    text = (tmp_path / "split.html").read_text()
    adjoint = columns_of(text)["adjoint"]
    second = next(k for k, row in enumerate(adjoint) if "@steepen_backward" in row.text)
    ends = [e["end"] for e in edges_of(text) if e["kind"] == "reload" and "adjoint" in e["end"]]
    assert ends
    assert all(int(end.rpartition("-")[2]) > second for end in ends)


def test_a_primal_has_no_edges(tmp_path: Path) -> None:
    steepen.inspect.html(tmp_path / "primal.html", *ARGUMENTS)
    text = (tmp_path / "primal.html").read_text()
    assert edges_of(text) == []
    assert "adjoint" not in columns_of(text)
    assert loads_nothing(text)


@pytest.mark.parametrize("derive", ["jvp", "hvp", "hvp-twice-reverse", "vjp"])
def test_every_mode_has_a_page_after_its_call(derive: str) -> None:
    f: CompiledFunction = compile(steepen.__wrapped__, grad=True, opt=1)
    u, *others = np.ones(9), *ARGUMENTS[1:]
    match derive:
        case "jvp":
            f.jvp(u, *others, tangents={"u": np.ones(9)})
        case "hvp":
            f.hvp(u, *others, direction=np.ones(9))
        case "hvp-twice-reverse":
            f.hvp(u, *others, direction=np.ones(9), mode="reverse-over-reverse")
        case _:
            f.vjp(u, *others)
    page = re.search(r'srcdoc="([^"]*)"', f.inspect._repr_html_() or "")
    assert page is not None
    columns = columns_of(html.unescape(page[1]))
    assert {"source", "adjoint", "assembly"} <= columns.keys()
    assert {FLUX + 1} <= {row.line for row in columns["assembly"]}


def test_what_explain_counts_with_is_no_latest_call() -> None:
    f: CompiledFunction = compile(product.__wrapped__, grad=True, opt=1)
    f.grad(np.ones(3), np.ones(3))
    shown = f.inspect("adjoint")
    f.explain(np.ones(3), np.ones(3), run=True)
    assert f.inspect("adjoint") == shown


class Spring:
    def __init__(self, k: float) -> None:
        self.k = k

    @compile(grad=True, opt=1)
    def energy(self, x):
        return (self.k * x * x).sum()


@compile(grad=True, opt=1)
def product(x, y):
    return (x * y).sum()


def doubled(function: Any) -> Any:
    @functools.wraps(function)
    def inner(*args: Any) -> Any:
        return 2 * function(*args)

    return inner


ASKED: list[tuple[Any, tuple[Any, ...]]] = [
    (Spring(2.0).energy, (np.ones(3),)),
    (compile(doubled(product.__wrapped__), grad=True, opt=1), (np.ones(3), np.ones(3))),
    (batch(product, in_axes=(0, None)), (np.ones((2, 3)), np.ones(3))),
]


@pytest.mark.parametrize(("function", "arguments"), ASKED)
def test_whatever_has_inspect_has_the_page(function: Any, arguments: Any, tmp_path: Path) -> None:
    assert "func.func" in function.inspect("simplify", *arguments, wrt=0)
    function.inspect.html(tmp_path / "page.html", *arguments, wrt=0)
    assert "adjoint" in columns_of((tmp_path / "page.html").read_text())
    assert "inspect.html(path, ...)" in repr(function.inspect)


def test_a_notebook_shows_the_page_of_the_latest_call() -> None:
    f: CompiledFunction = compile(product.__wrapped__, grad=True, opt=1)
    assert f.inspect._repr_html_() is None
    f.grad(np.ones(3), np.ones(3))
    shown = f.inspect._repr_html_()
    assert shown is not None
    ((tag, attributes),) = tags_of(shown)
    assert (tag, attributes["sandbox"]) == ("iframe", "allow-scripts")
    page = attributes["srcdoc"] or ""
    assert "adjoint" in columns_of(page)
    assert loads_nothing(page)


def test_a_notebook_shows_the_page_of_a_receipt(tmp_path: Path) -> None:
    receipt = steepen.explain(*ARGUMENTS, wrt="u")
    receipt.to_html(tmp_path / "receipt.html")
    shown = re.search(r'srcdoc="([^"]*)"', receipt._repr_html_())
    assert shown is not None
    assert html.unescape(shown[1]) == (tmp_path / "receipt.html").read_text()


def test_text_of_edges_cannot_end_the_script() -> None:
    made = edges_json([Edge("kill", "a", "b", "x < y </script>"), Edge("kill", "a", "b", "z")])
    assert "<" not in made
    page = f'<script type="application/json" id="edges">{made}</script>'
    assert edges_of(page)[0]["title"] == "x < y </script>; z"


def test_long_stretches_without_lines_are_folded() -> None:
    placed, plain = Row("x", ("f", 1)), Row("y")
    texts = [row.text for row in folded([placed, *[plain] * 20, placed, *[plain] * 16])]
    assert texts == ["x", "y", "y", "y", "(14 lines that come from no line of the source)",
                     "y", "y", "y", "x", *["y"] * 16]  # fmt: skip


@pytest.mark.parametrize(
    ("size", "said"),
    [(0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_600, "1 MB"), (5_120_000, "5.12 MB")],
)
def test_bytes_in_three_digits(size: int, said: str) -> None:
    assert short(size) == said


def test_colours_can_be_told_apart() -> None:
    for palette in palettes_of(asset("page.css")):
        for back in ("back", "panel", "lit", "saves", "reads"):
            for ink in ("text", "soft", "cost", "need", "name"):
                assert palette.contrast(ink, back) >= 4.5, (ink, back)
        for ink in ("kill", "need", "reload"):
            assert palette.contrast(ink, "back") >= 4.5
            assert palette.contrast(ink, "panel") >= 4.5
        assert palette.contrast("text", "bar") >= 4.5
        assert palette.contrast("focus", "panel") >= 3
