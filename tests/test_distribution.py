"""What is published: the source distribution holds the repository, the wheel works where nothing else is."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

VERSIONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]
ROOMS = ("compiler", "dialects", "runtime")
PROGRAM = """
import mutad, numpy as np
from mutad.scipy import Problem

@mutad.compile(grad=True)
def f(x):
    x[1:] *= x[:-1]
    return x.sum()

print(mutad.__file__)
np.testing.assert_allclose(f.grad(np.array([2.0, 3.0])), [4.0, 2.0])
assert "save" in str(f.explain(np.ones(3)))
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the source distribution, and the wheel that is built from it."""
    root, folder = Path(__file__).parent.parent, tmp_path_factory.mktemp("distribution")
    copy = folder / "copy"
    kept = [p for p in root.iterdir() if not re.match(r"\.(?!ci|gitignore)|build|dist", p.name)]
    copy.mkdir()
    for path in kept:
        if path.is_dir():
            left_out = shutil.ignore_patterns("__pycache__", "Output", "out")
            shutil.copytree(path, copy / path.name, symlinks=True, ignore=left_out)
        else:
            shutil.copy(path, copy)
    run("setup.py", "-q", "sdist", "-d", str(folder), at=copy)
    (source,) = folder.glob("*.tar.gz")
    build = ["wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    run("-m", "pip", *build, str(source), at=folder)
    return folder


def run(*command: str, at: Path, path: Path | None = None) -> str:
    environment = {**os.environ, "PYTHONPATH": "" if path is None else str(path)}
    found = subprocess.run(
        [sys.executable, *command], capture_output=True, text=True, cwd=at, env=environment
    )
    assert found.returncode == 0, found.stdout + found.stderr
    return found.stdout


def test_the_source_distribution_holds_the_repository(made: Path, root: Path) -> None:
    (file,) = made.glob("*.tar.gz")
    with tarfile.open(file) as archive:
        members = {m.name.partition("/")[2]: m for m in archive.getmembers()}
    for room in ROOMS:
        assert members[f"mutad/{room}"].issym()
        assert members[f"mutad/{room}"].linkname == f"../{room}"
    for folder in ("tests", "docs", "lit-tests", "examples", "benchmarks", *ROOMS):
        suffixes = {".py", ".md", ".mlir", ".png", ".c", ".css", ".js", ".html"}
        files = [p for p in (root / folder).rglob("*") if p.suffix in suffixes]
        wanted = {str(p.relative_to(root)) for p in files if not {"out", "Output"} & {*p.parts}}
        assert wanted
        assert wanted <= members.keys()
    assert {"Makefile", "CHANGELOG.md", "mkdocs.yml", "LICENSE", ".ci/run"} <= members.keys()
    assert not [name for name in members if "__pycache__" in name or name.endswith(".pyc")]


def test_the_wheel_works_where_it_is_installed(made: Path, tmp_path: Path) -> None:
    (wheel,) = made.glob("*.whl")
    site = tmp_path / "site"
    run("-m", "pip", "install", "-q", "--no-deps", "--target", str(site), str(wheel), at=tmp_path)
    assert not list(site.glob("tests*"))
    assert not (site / "mutad" / "compiler").is_symlink()
    (tmp_path / "program.py").write_text(PROGRAM)
    printed = run("program.py", at=tmp_path, path=site)
    assert printed.strip() == str(site / "mutad" / "__init__.py")
    assert "usage: mutadc" in run("-m", "mutad.aot", "--help", at=tmp_path, path=site)


def test_every_version_of_python_is_tested(root: Path) -> None:
    """Each that is claimed is one of the workflow's, and of `make test-all`."""
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    claimed = [c.rpartition(" ")[2] for c in project["classifiers"] if re.search(r":: 3\.\d", c)]
    assert claimed == VERSIONS
    assert project["requires-python"] == f">={VERSIONS[0]}"
    assert f"Python {VERSIONS[0]} to {VERSIONS[-1]}" in (root / "README.md").read_text()
    assert (
        re.search(r"^PYTHONS \?= (.*)", (root / "Makefile").read_text(), re.M)[1].split()
        == VERSIONS
    )
    workflow = root / ".github" / "workflows" / "ci.yml"
    if workflow.exists():  # the source distribution has none
        (tested,) = re.findall(r"python: \[(.*)\]", workflow.read_text())
        assert [v.strip(' "') for v in tested.split(",")] == VERSIONS
