"""`MUTAD_LOG=info`, and the line that shows what a long compilation is doing."""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path
from time import sleep
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.compiler import pipeline, progress
from mutad.compiler.compilation import Compilation
from mutad.compiler.transforms.forward_stores import ForwardStores

K = 2


def helper(x):
    return x * K


def f(x, k=1.0):
    return (helper(x) ** 2).sum() * k


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Any:
    """What a call tells, a line for each piece of code."""
    monkeypatch.setenv("MUTAD_LOG", "info")

    def tell(call: Any) -> list[str]:
        capsys.readouterr()
        call()
        lines = capsys.readouterr().err.splitlines()
        return [re.sub(r" in \d+ ms", "", line.removeprefix("mutad: ")) for line in lines]

    return tell


def test_what_was_new(told: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    g = mutad.compile(f, grad=True, cache=False, opt=0)
    first = "new: the first call of its kind"
    x = np.ones(3)
    assert told(lambda: g(x)) == [f"compiled: f(x: f64[?]C, k: float); {first}"]
    assert told(lambda: g(x)) == []
    new = "new: x: f64[?,?]C, was f64[?]C"
    assert told(lambda: g(np.ones((2, 3)))) == [f"compiled: f(x: f64[?,?]C, k: float); {new}"]
    assert told(lambda: g(x, 2)) == ["compiled: f(x: f64[?]C, k: int); new: k: int, was float"]
    assert told(lambda: g.grad(x)) == [f"compiled: f.grad(x: f64[?]C, k: float); {first}"]
    (line,) = told(lambda: g.grad(x, wrt="k"))
    assert line.endswith("new: wrt: k")
    monkeypatch.setitem(globals(), "K", 3)
    (line,) = told(lambda: g(x))
    assert line.endswith("new: K outside")
    (line,) = told(lambda: g.jvp(x, tangents={"x": x.copy()}))
    assert line == f"compiled: f.jvp(x: f64[?]C, k: float); {first}"


def test_what_was_loaded(
    told: Any, monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    cache = tmp_path_factory.mktemp("cache")
    cache.chmod(0o700)
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(cache))
    x = np.ones(3)
    (line,) = told(lambda: mutad.compile(f, opt=0)(x))
    assert line.startswith("compiled: f(")
    (line,) = told(lambda: mutad.compile(f, opt=0)(x))
    assert line.startswith("loaded from the disk cache: f(")


def test_nothing_is_told_otherwise(capsys: pytest.CaptureFixture[str]) -> None:
    mutad.compile(f, cache=False, opt=0)(np.ones(3))
    assert capsys.readouterr().err == ""


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_long_compilation_shows_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(progress, "EVERY", 0.001)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    original = ForwardStores.apply

    def slow(self: Any, *given: Any) -> None:
        for _ in range(10_000):  # until it has been shown
            if "forward-stores" in terminal.getvalue():
                break
            sleep(0.001)
        original(self, *given)

    monkeypatch.setattr(ForwardStores, "apply", slow)

    def long(x):  # so far unknown to the compiler, which remembers what it simplified
        for k in range(x.size):
            x[k] = np.sin(x[k]) * x[k - 1]
        return x.sum()

    mutad.compile(long, grad=True, cache=False, opt=0)(np.ones(3))
    written = terminal.getvalue()
    assert re.search(r"\rmutad: compiling long, \d+ s: forward-stores *\r", written)
    *_, last, empty = written.split("\r")
    assert empty == ""
    assert last.isspace()
    assert len(last) >= max(map(len, written.split("\r")[:-2]))


@pytest.mark.parametrize("patience", [0.0, 60.0])
def test_it_goes_when_the_compilation_fails(
    monkeypatch: pytest.MonkeyPatch, patience: float
) -> None:
    def broken(c: Compilation, name: str) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(progress, "PATIENCE", patience)
    monkeypatch.setattr(pipeline, "with_time", broken)
    monkeypatch.setattr(sys, "stderr", terminal := Terminal())
    with pytest.raises(KeyboardInterrupt):
        mutad.compile(f, cache=False, opt=0)(np.ones(3))
    assert terminal.getvalue().split("\r")[-1] == ""


def test_nobody_is_told_where_nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "PATIENCE", 0.0)
    monkeypatch.setattr(sys, "stderr", file := io.StringIO())
    mutad.compile(f, cache=False, opt=0)(np.ones(3))
    assert file.getvalue() == ""


def test_receipts_and_programs_are_shown_in_notebooks() -> None:
    g: Any = mutad.compile(f, grad=True, opt=0)
    assert "<" in g.explain(np.ones(3))._repr_html_()
    g(np.ones(3))
    assert "<" in g.inspect._repr_html_()


def squares(x):
    x **= 2
    x **= 2
    return x.sum()


def test_receipts_are_texts_in_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    """There rich would display what is printed to a file of ours."""
    receipt: Any = mutad.compile(squares, grad=True, opt=0).explain(np.ones(3))
    expected = repr(receipt)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert repr(receipt) == expected
    assert "x **= 2" in expected


def test_a_cache_that_keeps_nothing_is_told_once(
    told: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path / "file" / "below"))
    g = mutad.compile(f, opt=0)
    lines = told(lambda: g(np.ones(3)))
    kept = [line for line in lines if line.startswith("not kept in the disk cache ")]
    assert len(kept) == 1
    assert kept[0].endswith("file'")
    assert any(line.startswith("compiled: f(") for line in lines)
