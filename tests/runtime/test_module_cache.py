"""Modules from the disk cache: those that Python would import, and no others."""

from __future__ import annotations

import importlib
import marshal
import os
import sys
from collections.abc import Iterator
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path
from types import ModuleType

import pytest

from mutad.runtime import disk_cache, module_cache
from mutad.runtime.module_cache import Finder, kept_modules

NAME = "kept_for_test"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package whose modules are kept, on Python's path."""
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(module_cache, "PACKAGES", (NAME,))
    monkeypatch.syspath_prepend(tmp_path / "here")
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    folder = tmp_path / "here" / NAME
    (folder / "inner").mkdir(parents=True)
    for path, text in (
        ("__init__.py", ""),
        ("inner/__init__.py", "here = __path__"),
        ("inner/leaf.py", "value = 1\ndef f():\n    raise ValueError(value)\n"),
    ):
        (folder / path).write_text(text)
    yield folder
    forget()


def forget() -> None:
    for name in [n for n in sys.modules if n.partition(".")[0] == NAME]:
        del sys.modules[name]
    importlib.invalidate_caches()


def imported(monkeypatch: pytest.MonkeyPatch, name: str = "inner.leaf") -> tuple[ModuleType, int]:
    """A module of the package as it is imported anew, and how many Python's own loader has read."""
    read: list[str] = []
    own = SourceFileLoader.get_code

    def get_code(loader: SourceFileLoader, fullname: str) -> object:
        if fullname.startswith(f"{NAME}."):
            read.append(fullname)
        return own(loader, fullname)

    forget()
    with monkeypatch.context() as patched, kept_modules(cached=True):
        patched.setattr(SourceFileLoader, "get_code", get_code)
        module = importlib.import_module(f"{NAME}.{name}")
    return module, len(read)


def test_modules_are_read_once_and_are_as_python_imports_them(
    package: Path, monkeypatch: pytest.MonkeyPatch
):
    first, read = imported(monkeypatch)
    assert read == 2
    kept, read = imported(monkeypatch)
    assert read == 0
    plain = importlib.import_module(f"{NAME}.inner")
    assert list(plain.here) == [str(package / "inner")]
    for name in ("__file__", "__cached__", "__package__", "__name__"):
        assert vars(kept).get(name) == vars(first).get(name)  # Python 3.15 has no `__cached__`
    assert kept is not first
    assert kept.__spec__ is not None
    assert kept.__spec__.submodule_search_locations is None
    with pytest.raises(ValueError, match="1") as caught:
        kept.f()
    assert str(caught.traceback[-1].path) == str(package / "inner/leaf.py")
    assert importlib.reload(kept).value == 1


def test_a_changed_source_is_read_again_whatever_its_time(
    package: Path, monkeypatch: pytest.MonkeyPatch
):
    imported(monkeypatch)
    leaf = package / "inner/leaf.py"
    before = leaf.stat()
    leaf.write_text(leaf.read_text().replace("1", "2"))
    os.utime(leaf, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert leaf.stat().st_mtime_ns == before.st_mtime_ns
    assert leaf.stat().st_size == before.st_size
    module, read = imported(monkeypatch)
    assert (module.value, read) == (2, 1)
    assert imported(monkeypatch)[1] == 0


def test_a_module_that_is_gone_is_not_found(package: Path, monkeypatch: pytest.MonkeyPatch):
    imported(monkeypatch)
    (package / "inner/leaf.py").unlink()
    with pytest.raises(ModuleNotFoundError):
        imported(monkeypatch)
    assert not any(isinstance(one, Finder) for one in sys.meta_path)


def test_a_package_elsewhere_is_not_the_kept_one(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    imported(monkeypatch)
    other = tmp_path / "there" / NAME
    (other / "inner").mkdir(parents=True)
    (other / "__init__.py").touch()
    (other / "inner/__init__.py").touch()
    (other / "inner/leaf.py").write_text("value = 3")
    monkeypatch.syspath_prepend(tmp_path / "there")
    assert imported(monkeypatch)[0].value == 3


def test_finders_in_front_of_pythons_come_first(package: Path, monkeypatch: pytest.MonkeyPatch):
    imported(monkeypatch)
    asked: list[str] = []

    class Watching:
        def find_spec(self, name: str, *_: object) -> None:
            asked.append(name)

    monkeypatch.setattr(sys, "meta_path", [Watching(), *sys.meta_path])
    imported(monkeypatch)
    assert f"{NAME}.inner.leaf" in asked
    monkeypatch.setattr(sys, "meta_path", [one for one in sys.meta_path if one is not PathFinder])
    with pytest.raises(ModuleNotFoundError):
        imported(monkeypatch)


def test_what_is_on_a_disk_that_is_never_written_is_not_kept(
    package: Path, monkeypatch: pytest.MonkeyPatch
):
    status = os.statvfs(package)
    fixed = os.statvfs_result((*status[:8], os.ST_RDONLY, *status[9:]))
    with monkeypatch.context() as patched:
        patched.setattr(os, "statvfs", lambda path: fixed)
        imported(monkeypatch)
    assert imported(monkeypatch)[1] == 2


def test_nothing_is_kept_where_nothing_may_be_cached(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with kept_modules(cached=False):
        importlib.import_module(f"{NAME}.inner.leaf")
    assert not (tmp_path / "cache").exists()
    monkeypatch.setenv("MUTAD_DUMP", "all")
    imported(monkeypatch)
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("content", [b"no code", marshal.dumps({})])
def test_a_file_that_is_not_of_the_cache_is_not_read(
    package: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
):
    imported(monkeypatch)
    (file,) = (tmp_path / "cache").glob("modules-*")
    file.write_bytes(content)
    assert imported(monkeypatch)[1] == 2
    assert disk_cache.read(file.name) is not None
