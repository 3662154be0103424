"""README and docs are true: every Python snippet runs, and prints what the page says it prints.

The snippets of a page share one namespace, in order. A block marked `python` is executed; a block
marked `text`, `mlir`, `llvm` or `asm` right after it is its expected output, `...` standing for anything.
One below `<!-- needs jax -->` is executed where that package is installed.

`python tests/test_docs.py docs/pipeline.md ...` runs pages and writes what changed into them.
"""

from __future__ import annotations

import contextlib
import difflib
import doctest
import io
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

FENCE = re.compile(r"^```(\w*)[^\n]*\n(.*?)^```$", re.S | re.M)
NEEDS = re.compile(r"<!-- needs (\w+) -->\n+\Z")
OUTPUT_KINDS = ("text", "mlir", "llvm", "asm")


@dataclass(frozen=True)
class Snippet:
    """A block of Python, its first line in the page, and the output that the page shows."""

    line: int
    code: str
    output: str | None
    where: slice
    """The output's place in the page."""


def snippets(page: Path) -> Iterator[Snippet]:
    text = page.read_text()
    blocks = list(FENCE.finditer(text))
    for block, after in zip_longest(blocks, blocks[1:]):
        needed = NEEDS.search(text, 0, block.start())
        if block[1] != "python" or (needed is not None and find_spec(needed[1]) is None):
            continue
        shown, where = None, slice(0, 0)
        if (
            after is not None
            and after[1] in OUTPUT_KINDS
            and not text[block.end() : after.start()].strip()
        ):
            shown, where = after[2], slice(*after.span(2))
        yield Snippet(text.count("\n", 0, block.start()) + 2, block[2], shown, where)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_snippets_run_and_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for snippet in snippets(page):
        where = f"{page.relative_to(ROOT)}:{snippet.line}"
        printed = run(snippet, namespace, tmp_path, where)
        if snippet.output is not None and not same(snippet.output, printed):
            lines = difflib.unified_diff(
                snippet.output.splitlines(), printed.splitlines(), "page", "run", lineterm=""
            )
            pytest.fail(f"{where} prints something else:\n" + "\n".join(lines), pytrace=False)


def run(snippet: Snippet, namespace: dict[str, Any], folder: Path, where: str) -> str:
    """What the snippet prints. It lies in a file of its own, since the compiler reads the source."""
    file = folder / f"line-{snippet.line}" / "example.py"
    file.parent.mkdir()
    file.write_text(snippet.code)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(snippet.code, str(file), "exec"), namespace)
        except Exception as error:
            error.add_note(f"in the snippet at {where}")
            raise
    return re.sub(r"[^\s\"']*/line-\d+/", "", out.getvalue())


WIDEST, WIDEST_CODE, LONGEST = 110, 120, 150
"""Columns of prose, those of code and of what it prints, lines of a page."""
REFERENCES = {"api", "contract", "language", "performance", "supported"}
"""Pages that nobody reads from start to end."""


def same(shown: str, printed: str) -> bool:
    def tidy(text: str) -> str:
        return "\n".join(line.rstrip() for line in text.strip("\n").splitlines()) + "\n"

    return doctest.OutputChecker().check_output(
        tidy(shown), tidy(printed), doctest.ELLIPSIS | doctest.DONT_ACCEPT_BLANKLINE
    )


def test_a_wrong_output_is_noticed() -> None:
    assert same("saved 8 bytes\n", "saved 8 bytes\n")
    assert same("saved ... bytes\n", "saved 8 bytes\n")
    assert not same("saved 8 bytes\n", "saved 16 bytes\n")


def test_every_page_is_in_the_navigation() -> None:
    listed = set(re.findall(r"[\w/-]+\.md", (ROOT / "mkdocs.yml").read_text()))
    assert listed == {
        str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")
    }


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_inside_the_repository_lead_somewhere(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", prose)
    local = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in local if not (page.parent / link).exists()] == []


def headings(page: Path) -> set[str]:
    """The anchors of a page: its headings, as the site spells them."""
    found = re.findall(r"^#+ (.+)$", FENCE.sub("", page.read_text()), re.M)
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", h).strip().lower()) for h in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_anchors_are_headings(page: Path) -> None:
    prose = FENCE.sub("", page.read_text())
    links = re.findall(r"\]\(([^)#\s:]*)#([^)]+)\)", prose)
    assert [
        (to, at) for to, at in links if at not in headings(page.parent / to if to else page)
    ] == []


def sentences(page: Path) -> Iterator[str]:
    """What is said in prose, but for a few words."""
    lines = FENCE.sub("", page.read_text()).splitlines()
    prose = "\n".join(line for line in lines if not line.startswith(("|", "#", "    ")))
    for paragraph in re.split(r"\n\s*\n|\n(?=- )", prose):
        for sentence in re.split(r"(?<=[.!?:]) ", " ".join(paragraph.split())):
            if len(sentence) > 45:
                yield sentence


def test_each_sentence_stands_once() -> None:
    said = Counter(sentence for page in PAGES for sentence in sentences(page))
    assert [sentence for sentence, times in said.items() if times > 1] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_lines_fit_into_a_window(page: Path) -> None:
    text = page.read_text()
    prose = FENCE.sub(lambda code: "\n" * code[0].count("\n"), text)
    if page.stem != "performance":
        assert [k for k, line in enumerate(prose.splitlines(), 1) if len(line) > WIDEST] == []
    assert [k for k, line in enumerate(text.splitlines(), 1) if len(line) > WIDEST_CODE] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_pages_are_short(page: Path) -> None:
    assert page.stem in REFERENCES or len(page.read_text().splitlines()) <= LONGEST


def refresh(page: Path, folder: Path) -> None:
    """Write what the page's snippets print into the page, where it shows something else."""
    text, namespace = page.read_text(), {"__name__": "__main__"}
    changes: list[tuple[slice, str]] = []
    for snippet in snippets(page):
        printed = run(snippet, namespace, folder, f"{page}:{snippet.line}")
        if snippet.output is not None and not same(snippet.output, printed):
            changes.append((snippet.where, printed.strip("\n") + "\n"))
    for where, printed in reversed(changes):
        text = text[: where.start] + printed + text[where.stop :]
    page.write_text(text)
    print(f"{page}: {len(changes)} outputs changed")


if __name__ == "__main__":
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            refresh(Path(name), Path(folder))
