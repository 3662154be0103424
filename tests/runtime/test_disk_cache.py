"""The disk cache: found again, never stale, never another user's, never in the way."""

from __future__ import annotations

import linecache
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.runtime import disk_cache, entry_code, target
from mutad.runtime.fingerprint import place_of

SCRIPT = """
import sys
import numpy as np
import mutad
from helper import helper, FACTOR

@mutad.compile(grad=True)
def f(x):
    return helper(x).sum() * FACTOR

print(f(np.arange(4.0)), f.grad(np.ones(2))[0], any(m.startswith("xdsl") for m in sys.modules))
"""
HELPER = """
import numpy as np
FACTOR = 2.0
def helper(x):
    return x * x
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(tmp_path / "cache"))
    return tmp_path / "cache"


def run(folder: Path, helper: str = HELPER, script: str = SCRIPT) -> list[str]:
    """Run the script in a process of its own: what it prints."""
    (folder / "helper.py").write_text(helper)
    (folder / "script.py").write_text(script)
    done = subprocess.run(
        [sys.executable, "-B", str(folder / "script.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    return done.stdout.split()


def test_the_second_process_loads_without_the_compiler(cache: Path, tmp_path: Path):
    assert run(tmp_path) == ["28.0", "4.0", "True"]
    entries = sorted(cache.iterdir())
    names = ["entries", "entries", "f", "f", "imports", "modules", "runtime", "support"]
    assert [e.name.split("-")[0] for e in entries] == names
    assert run(tmp_path) == ["28.0", "4.0", "False"]
    assert sorted(cache.iterdir()) == entries
    assert cache.stat().st_mode & 0o777 == 0o700
    assert {e.stat().st_mode & 0o777 for e in entries} == {0o600}


def test_the_value_of_a_float_from_outside_does_not_count(cache: Path, tmp_path: Path):
    run(tmp_path)
    assert run(tmp_path, HELPER.replace("2.0", "3.0")) == ["42.0", "6.0", "False"]


def test_whatever_is_compiled_along_counts(cache: Path, tmp_path: Path):
    run(tmp_path)
    assert run(tmp_path, HELPER.replace("x * x", "x * x * x")) == ["72.0", "6.0", "True"]
    assert run(tmp_path, HELPER.replace("2.0", "3")) == ["42.0", "6.0", "True"]
    assert run(tmp_path, HELPER.replace("2.0", "4")) == ["56.0", "8.0", "True"]
    other = SCRIPT.replace("compile(grad=True)", "compile(grad=True, fastmath=True)")
    assert run(tmp_path, script=other)[2] == "True"


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign", "directory", "link"])
def test_damaged_entries_are_ignored(cache: Path, tmp_path: Path, damage: str):
    disk_cache.write("name.mutad", b"code" * 100, {"a": 1})
    entry = cache / "name.mutad"
    data = bytearray(entry.read_bytes())
    match damage:
        case "truncate":
            entry.write_bytes(data[: len(data) // 2])
        case "flip":
            data[-100] ^= 1
            entry.write_bytes(data)
        case "empty":
            entry.write_bytes(b"")
        case "foreign":
            entry.write_bytes(b"hello")
        case "directory":
            entry.unlink()
            entry.mkdir()
        case _:
            entry.rename(tmp_path / "target")
            entry.symlink_to(tmp_path / "target")
    assert disk_cache.read("name.mutad") is None
    disk_cache.write("name.mutad", b"code", {})
    assert disk_cache.read("name.mutad") == (None if damage == "directory" else (b"code", {}))


def test_no_part_of_an_entry_may_be_missing_or_another(cache: Path):
    disk_cache.write("name.mutad", b"code" * 9, {"a": 1})
    entry = cache / "name.mutad"
    data = entry.read_bytes()
    for k in range(len(data)):
        entry.write_bytes(data[:k])
        assert disk_cache.read("name.mutad") is None
        entry.write_bytes(data[:k] + bytes([data[k] ^ 1]) + data[k + 1 :])
        assert disk_cache.read("name.mutad") is None
    entry.write_bytes(data + b"more")
    assert disk_cache.read("name.mutad") is None
    entry.write_bytes(data)
    assert disk_cache.read("name.mutad") == (b"code" * 9, {"a": 1})


def twice(x):
    return 2.0 * x


def thrice(x):
    return 3.0 * x


def test_an_entry_under_the_name_of_another_is_none(cache: Path):
    """Valid files that are exchanged: of functions, of a primal and its gradient, of kinds of arguments."""

    def answers() -> list[Any]:
        entry_code._loaded.clear()  # as in another process
        entry_code._support.clear()
        f, g = (mutad.compile(h, grad=True, opt=0) for h in (twice, thrice))
        return [f(1.0), g(1.0), f(np.float32(1)), f.grad(1.0), g.grad(1.0), f.vjp(1.0)[1](1.0)]

    want = [2.0, 3.0, np.float32(2), 2.0, 3.0, 2.0]
    assert answers() == want
    entries = sorted(cache.iterdir())
    shared = [entry for entry in entries if entry.name.startswith(("entries-", "support-"))]
    assert len(entries) - len(shared) == len(want) > len(shared) == 4 + 1
    contents = [entry.read_bytes() for entry in entries]
    for turn in (1, 2):
        for entry, content in zip(entries, contents[turn:] + contents[:turn], strict=True):
            entry.write_bytes(content)
        assert answers() == want
        assert [entry.read_bytes()[:48] for entry in entries] == [c[:48] for c in contents]


def test_entries_are_shared_and_stored_with_each_function_that_needs_them(cache: Path):
    """In memory by functions that are called alike; on disk also where they were in memory before."""
    made: list[tuple[int, str]] = []

    def answer(function: Any, opt: int = 0, **options: Any) -> float:
        f = mutad.compile(function, opt=opt, **options)
        compiler = f._dispatcher.compiler

        class Watched(type(compiler)):
            def entries(self, convention: str, opt: int) -> Any:
                made.append((opt, convention))
                return super().entries(convention, opt)

        f._dispatcher.compiler = Watched()
        return f(np.arange(3, dtype=np.int16), 2, 3.0)

    def first(x, n, k):
        return k * x[n]

    def second(y, m, k):
        return k - y[m]

    assert answer(first, cache=False) == 6.0
    assert len(made) == 1
    assert not cache.exists()
    assert answer(second) == 1.0
    assert len(made) == 1
    assert sorted(p.name.split("-")[0] for p in cache.iterdir()) == ["entries", "second", "support"]
    mutad.clear_cache()
    assert answer(first) == 6.0
    assert len(made) == 1
    (stored,) = cache.glob("entries-*")
    assert answer(second, opt=2, cache=False) == 1.0
    assert [opt for opt, _ in made] == [1, 3]
    assert answer(first, opt=1, cache=False) == 6.0  # the better ones will do
    assert len(made) == 2
    code, metadata = disk_cache.read(stored.name) or (b"", {})
    assert code
    assert metadata["entries"] == {"primal": "mutad_entry_primal"}


def test_the_key_has_all_that_the_code_depends_on(monkeypatch: pytest.MonkeyPatch):
    """The versions of what makes the code, the CPU, libc, mutad's own sources, the call and the options."""

    def place(function: Any = twice, **changed: Any) -> disk_cache.Place:
        parts = {"arguments": ("f64",), "overlaps": (), "mode": "primal", "wrt": ()} | changed
        options = {"cache": True, "opt": 3, "fastmath": changed.pop("fast", False)}
        named = {k: v for k, v in parts.items() if k != "fast"}
        return place_of(function, options=options, **named)

    def fresh() -> disk_cache.Place:
        disk_cache.machine.cache_clear()
        disk_cache.sources.cache_clear()
        return place()

    places = [
        place(), place(thrice), place(arguments=("f32",)), place(overlaps=((0, 1, "same"),)),
        place(mode="gradient"), place(mode="gradient", wrt=(0,)), place(fast=True),
    ]  # fmt: skip
    v2 = target.Target("x86-64-v2", target.LEVELS["x86-64-v2"])
    for owner, name, other in (
        (sys, "version", "another Python"),
        (np, "__version__", "99.0"),
        (disk_cache, "version_of", lambda package: f"another {package}"),
        (os, "confstr", lambda name: "another libc"),
        (target, "host", lambda: v2),
        (target, "host", lambda: target.Target("x86-64-v2", v2.features | {"avx"})),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(owner, name, other)
            places.append(fresh())
    assert fresh() == places[0]
    assert None not in places
    assert len(set(places)) == len(places)


def test_sources_count_by_what_is_in_them(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    """Also where an installer gives all files one time."""
    (tmp_path / "runtime").mkdir()
    (tmp_path / "compiler" / "codegen").mkdir(parents=True)
    file = tmp_path / "compiler" / "codegen" / "signs.py"
    monkeypatch.setattr(disk_cache, "__file__", str(tmp_path / "runtime" / "disk_cache.py"))

    def digest(text: str) -> str:
        file.write_text(text)
        os.utime(file, ns=(0, 0))
        disk_cache.sources.cache_clear()
        return disk_cache.sources()

    assert digest("a + b") == digest("a + b") != digest("a - b")
    monkeypatch.undo()
    disk_cache.sources.cache_clear()


ALIKE = [
    ("T = {}\ndef f(x):\n    for g in T: x = g(x)\n    return x", "(a, b, a)", "(a, b, b)"),
    ("T = {}\ndef f(x):\n    for g in T: x = g(x)\n    return x", "[a, b, a]", "[a, b, b]"),
    (
        "class P:\n    __match_args__ = {}\n    def __init__(self, u, v): self.u = u; self.v = v\n"
        "def f(x):\n    match P(x, 2 * x):\n        case P(m, n): return m - n\n    return 0.0",
        "('u', 'v')", "('v', 'u')",
    ),
    ("@dataclass\nclass P:\n    u: float\n    k: object = {}\ndef f(x): return P(x).k * x",
     "np.float32(2)", "np.float32(3)"),
    ("@dataclass\nclass P:\n    u: float\n    k: object = field(default_factory={})\n"
     "def f(x): return len(P(x).k) * x", "partial(list, (1, 2))", "partial(list, (1, 2, 3))"),
    ("class E({}):\n    A = 2\ndef f(x): return E.A.value * x + isinstance(E.A, int)",
     "enum.Enum", "enum.IntEnum"),
    ("class P:\n    class C:\n        k = 2.0\nclass Q:\n    class C:\n        k = 3.0\nT = {}.C\n"
     "def f(x): return x if T is P.C else -x", "P", "Q"),
    ("class K({}): pass\ndef f(x): return K().k() * x", "P, Q", "Q, P"),
]  # fmt: skip
HEAD = """
import enum
from dataclasses import dataclass, field
from functools import partial
import numpy as np
def a(x): return x * 2.0
def b(x): return x + 3.0
class P:
    def k(self): return 2.0
class Q:
    def k(self): return 3.0
"""


def test_programs_that_are_nearly_alike_have_entries_of_their_own(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """One file, edited: what the function itself says stays the same, what it reads does not."""
    file = tmp_path / "edited.py"
    for number, (text, *versions) in enumerate(ALIKE):
        for version in versions:
            program = HEAD + text.replace("{}", version) + f"\n# {number}"
            file.write_text(program)
            linecache.checkcache(str(file))
            module = ModuleType("edited")
            monkeypatch.setitem(sys.modules, "edited", module)
            exec(compile(program, str(file), "exec", dont_inherit=True), found := vars(module))
            want, got = found["f"](2.0), mutad.compile(found["f"], opt=0)(2.0)
            assert got == want, (text, version)


@pytest.mark.parametrize("bit", [0o020, 0o002])
def test_what_others_could_have_written_is_not_loaded(cache: Path, bit: int):
    for path, mode in ((cache / "name.mutad", 0o600), (cache, 0o700)):
        disk_cache.write("name.mutad", b"code", {})
        assert disk_cache.read("name.mutad") == (b"code", {})
        path.chmod(mode | bit)
        assert disk_cache.read("name.mutad") is None
        path.chmod(mode)


def test_another_owner_is_not_trusted(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    disk_cache.write("name.mutad", b"code", {})
    assert disk_cache.read("name.mutad") == (b"code", {})
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert disk_cache.read("name.mutad") is None


@pytest.mark.parametrize("place", ["/dev/null/cache", "/proc/1/cache"])
def test_an_unusable_directory_breaks_no_call(monkeypatch: pytest.MonkeyPatch, place: str):
    monkeypatch.setenv("MUTAD_CACHE_DIR", place)

    @mutad.compile
    def f(x):
        return x[0] + 1.0

    assert f(np.ones(3)) == 2.0
    mutad.clear_cache()


def test_no_home_breaks_no_call(monkeypatch: pytest.MonkeyPatch):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    for variable in ("MUTAD_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert disk_cache.directory() is None
    disk_cache.write("name.mutad", b"code", {})
    assert disk_cache.read("name.mutad") is None
    mutad.clear_cache()


def test_clear_cache(cache: Path):
    disk_cache.write("name.mutad", b"code", {})
    (cache / "mine.txt").write_text("not mutad's")
    mutad.clear_cache()
    assert [p.name for p in cache.iterdir()] == ["mine.txt"]


def test_nothing_half_written_is_left(cache: Path):
    disk_cache.write("name.mutad", b"code", {"not": object()})
    assert not list(cache.iterdir())


def test_options_that_bypass_the_cache(
    cache: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    def f(x):
        return x[0] * 2.0

    assert mutad.compile(f, cache=False)(np.ones(2)) == 2.0
    assert not cache.exists()
    monkeypatch.setenv("MUTAD_DUMP", "llvm")
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path / "dump"))
    assert mutad.compile(f)(np.ones(2)) == 2.0
    assert not cache.exists()
    assert list((tmp_path / "dump").iterdir())


def make(n: Any):
    def inner(x):
        return x * n

    return inner


def test_fingerprints_tell_constants_apart_and_not_inputs():
    from mutad.runtime.fingerprint import Uncacheable, fingerprint

    one, two, again = make(1), make(2), make(1)
    assert fingerprint(one) == fingerprint(again) != fingerprint(two)
    assert fingerprint(make(np.ones(2))) == fingerprint(make(np.zeros(1 << 20)))
    assert fingerprint(make(1.0)) == fingerprint(make(2.0))
    assert fingerprint(make(make(1))) != fingerprint(make(make(2)))
    assert fingerprint(make(1)) != fingerprint(make(1.0)) != fingerprint(make(True))
    assert fingerprint(make([1])) != fingerprint(make([2])) != fingerprint(make([2.0]))
    assert fingerprint(make({"a": 1})) != fingerprint(make({"a": 2}))
    for value in (object(), [object()], {"a": object()}):
        with pytest.raises(Uncacheable):
            fingerprint(make(value))


def test_concurrent_writers(cache: Path):
    writer = (
        "import sys; from mutad.runtime import disk_cache\n"
        "for i in range(200): disk_cache.write('a.mutad', bytes([i]) * 50000, {'i': i})"
    )
    processes = [subprocess.Popen([sys.executable, "-c", writer]) for _ in range(3)]
    seen = 0
    while any(p.poll() is None for p in processes):
        found = disk_cache.read("a.mutad")
        if found is not None:
            code, metadata = found
            assert code == bytes([metadata["i"]]) * 50000
            seen += 1
    assert seen
    assert [p.name for p in cache.iterdir()] == ["a.mutad"]
