"""The methods of dataclasses from the disk cache: the same as Python makes, and nobody else's."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import marshal
import subprocess
import sys
from pathlib import Path
from typing import Any, ClassVar

import pytest

from mutad.runtime import disk_cache
from mutad.runtime.import_cache import kept_dataclasses, known_dataclasses

IMPORT = """
import sys
import numpy as np
import mutad

@mutad.compile(cache=CACHED)
def f(x):
    return x[0]

assert f(np.ones(1)) == 1.0
mentioned = sys.modules["mutad.compiler.request"].Options
print(mentioned(opt=2), mentioned() == mentioned(), hash(mentioned()) == hash(mentioned()))
try:
    mentioned().opt = 1
except AttributeError as error:
    print(type(error).__name__)
print(hasattr(sys.modules["dataclasses"], "exec"))
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(folder: Path, cached: bool) -> str:
    script = folder / "script.py"
    script.write_text(IMPORT.replace("CACHED", str(cached)))
    done = subprocess.run(
        [sys.executable, "-B", str(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_compiler_is_the_same_with_and_without(cache: Path, tmp_path: Path):
    want = run(tmp_path, cached=False)
    assert not cache.exists()
    assert want.split()[-3:] == ["True", "FrozenInstanceError", "False"]
    assert run(tmp_path, cached=True) == want
    (stored,) = cache.glob("imports-*")
    before = stored.stat()
    mutad_only = [p for p in cache.iterdir() if p != stored]
    for path in mutad_only:
        path.unlink()  # the compiler is imported again
    assert run(tmp_path, cached=True) == want
    assert stored.stat().st_ino == before.st_ino  # nothing was new


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that were compiled, as none was known."""
    texts: list[str] = []
    monkeypatch.setattr(
        "mutad.runtime.import_cache.compile",
        lambda text, *a, **k: texts.append(text) or compile(text, *a, **k),
        raising=False,
    )
    return texts


def defined(**defaults: Any) -> type:
    """A class that is defined now."""

    @dataclasses.dataclass(frozen=True, order=True)
    class Pair:
        first: int = defaults.get("first", 1)
        second: Any = dataclasses.field(default_factory=list)

    return Pair


def test_classes_from_the_cache_are_as_python_makes_them(cache: Path, compiled: list[str]):
    with kept_dataclasses(cached=True):
        defined()
    assert compiled
    for first in (1, 7):  # what a text names is each class's own
        compiled.clear()
        with kept_dataclasses(cached=True):
            found = defined(first=first)
        assert not compiled
        made = found()
        assert (made.first, made.second) == (first, [])
        assert made < found(first + 1)
        with pytest.raises(dataclasses.FrozenInstanceError):
            made.first = 2
    assert "exec" not in vars(dataclasses)


def test_a_failed_import_leaves_no_trace_and_loses_nothing(cache: Path):
    with pytest.raises(ImportError), kept_dataclasses(cached=True):
        importlib.import_module("mutad.no_such_module")
    assert "exec" not in vars(dataclasses)
    with pytest.raises(TypeError, match="non-default argument"), kept_dataclasses(cached=True):
        dataclasses.make_dataclass("Wrong", [("a", int, 1), ("b", int)])
    with kept_dataclasses(cached=True):
        assert defined()().first == 1


@pytest.mark.parametrize("content", [b"no code", marshal.dumps({})])
def test_a_file_that_is_not_of_the_cache_is_not_read(cache: Path, content: bytes):
    place = disk_cache.place_of_imports()
    assert place is not None
    cache.mkdir(mode=0o700)
    (cache / place).write_bytes(content)
    with kept_dataclasses(cached=True):
        assert defined()().first == 1
    assert disk_cache.read(place) is not None


def test_what_another_python_has_not_is_not_replaced(cache: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delattr(dataclasses, "inspect", raising=False)  # as in 3.15
    monkeypatch.setattr(dataclasses, "_MODULE_IDENTIFIER_RE", None)
    own = dict(vars(dataclasses))
    with kept_dataclasses(cached=True):
        assert "inspect" not in vars(dataclasses)
        assert vars(dataclasses)["_MODULE_IDENTIFIER_RE"] is None
    assert vars(dataclasses) == own


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="there docstrings are made when asked for")
def test_a_class_without_a_docstring_has_its_name_for_one(cache: Path):
    python = dataclasses.__dict__["inspect"]
    with kept_dataclasses(cached=True):
        made = defined()
        signature = dataclasses.__dict__["inspect"].signature(made)
    assert str(signature) == ""  # no exception, which Python 3.11.2 does not catch
    assert made.__doc__ == "Pair"
    assert dataclasses.__dict__["inspect"] is python
    assert str(inspect.signature(made)) == str(inspect.signature(defined()))
    assert str(defined().__doc__).startswith("Pair(first: 'int' = 1")


def test_instances_are_shown_and_refuse_changes_as_pythons_do(cache: Path):
    def derived(pair: Any) -> Any:
        class Derived(pair):
            extra = 0

        return Derived

    python = defined()
    with kept_dataclasses(cached=True):
        kept = defined()
    assert repr(kept()).endswith("Pair(first=1, second=[])")
    for one, other in ((python(), kept()), (derived(python)(), derived(kept)())):
        one.second.append(one)
        other.second.append(other)
        assert repr(one) == repr(other)
        for name in ("first", "extra"):
            said: list[str] = []
            for instance in (one, other):
                for change in (lambda i, n: setattr(i, n, 2), delattr):
                    try:
                        change(instance, name)
                    except AttributeError as error:
                        said.append(f"{type(error).__name__}: {error}")
                    else:
                        said.append("done")
            assert said[:2] == said[2:]
    assert kept.__setattr__.__qualname__ == python.__setattr__.__qualname__


AT_START = """
import marshal, sys
import mutad
from mutad.runtime import disk_cache
stored = disk_cache.read(disk_cache.place_of_imports("runtime"))
print(0 if stored is None else len(marshal.loads(stored[0])), "mutad.compiler" in sys.modules)
"""


def test_importing_mutad_reads_what_the_first_compilation_wrote(cache: Path, tmp_path: Path):
    script = tmp_path / "start.py"
    script.write_text(AT_START)

    def start() -> list[str]:
        return subprocess.check_output([sys.executable, "-B", str(script)], text=True).split()

    assert start() == ["0", "False"]
    assert not cache.exists()
    run(tmp_path, cached=False)
    assert not cache.exists()
    run(tmp_path, cached=True)
    assert int(start()[0]) > 40  # from 3.13 on one for each class, not for each method


def test_code_that_was_written_is_not_made_again_by_import(
    cache: Path, compiled: list[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("mutad.runtime.import_cache._of_runtime", {})
    with known_dataclasses():
        defined()
    assert compiled
    assert not cache.exists()  # as long as nothing is compiled
    with kept_dataclasses(cached=False):
        pass
    assert not cache.exists()
    with kept_dataclasses(cached=True):
        pass
    compiled.clear()
    with known_dataclasses():
        assert defined()().first == 1
    assert not compiled


def test_the_types_of_fields_are_read_as_python_reads_them(cache: Path):
    defined()  # Python 3.15 makes the pattern with the first class
    pattern = vars(dataclasses)["_MODULE_IDENTIFIER_RE"]
    with kept_dataclasses(cached=True):

        @dataclasses.dataclass
        class Kinds:
            own: int
            number: ClassVar[int] = 2
            again: ClassVar[int] = 3
            given: dataclasses.InitVar[int] = 4

    assert [f.name for f in dataclasses.fields(Kinds)] == ["own"]
    assert list(inspect.signature(Kinds).parameters) == ["own", "given"]
    assert vars(dataclasses)["_MODULE_IDENTIFIER_RE"] is pattern
