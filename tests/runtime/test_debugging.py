"""gdb steps through compiled code, perf names it, faulthandler names its caller."""

from __future__ import annotations

import gc
import os
import re
import shutil
import subprocess
import sys
import traceback
import weakref
from collections import OrderedDict
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.runtime import debugging, entry_code
from mutad.runtime.traceback_entries import entry_at, function_at

MODEL = """
import numpy as np
from mutad import compile


def smooth(u, k):
    u[1:-1] += k * u[:-2]


@compile(grad=True, opt=2)
def heat(u, k, steps):
    for _ in range(steps):
        smooth(u, k)
        u[0] = u[1] * u[1]
    return (u**2).sum()


u = np.linspace(0.0, 1.0, 50)
heat(u, 0.5, 3)
heat.grad(u, 0.5, 3)
"""


def line_of(text: str) -> int:
    """The line of the model that has this text."""
    return MODEL[: MODEL.index(text)].count("\n") + 1


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "model.py"
    path.write_text(MODEL)
    return path


Run = Callable[..., str]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs a command with debug information and a cache of its own; what it prints."""

    def run(*command: str, **environment: str) -> str:
        own = {"MUTAD_DEBUG": "1", "MUTAD_CACHE_DIR": str(tmp_path / "cache")}
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=600, cwd=tmp_path,
            env={**os.environ, **own, **environment}, check=False,
        )  # fmt: skip
        return done.stdout + done.stderr

    return run


def gdb(run: Run, model: Path, *commands: str) -> str:
    before = ("set breakpoint pending on", "set pagination off", "set debuginfod enabled off")
    steps = [part for command in (*before, *commands) for part in ("-ex", command)]
    return run("gdb", "-nx", "-batch", *steps, "--args", sys.executable, str(model))


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb")
def test_gdb_steps_from_line_to_line(run: Run, model: Path) -> None:
    inside, behind = line_of("u[1:-1] +="), line_of("u[0] = u[1]")
    shown = gdb(
        run, model, f"break model.py:{inside}", "run", "backtrace 1", "print u.shape[0]",
        "print u.data[49]", f"tbreak {behind}", "continue",
        "next", "break heat.grad", "continue", "backtrace 1",
    )  # fmt: skip
    # Of a process with several threads gdb says which one "hit" it: BLAS has threads where there are CPUs.
    assert re.search(rf"Breakpoint 1, heat \(.*\) at .*model\.py:{inside}\n{inside}\t", shown)
    assert re.search(rf"^#0 +heat \(.*\) at .*model\.py:{inside}$", shown, re.MULTILINE)
    assert "$1 = 50\n$2 = 1\n" in shown
    assert f"{behind}\t        u[0] = u[1] * u[1]\n" in shown
    assert re.search(
        rf"^({line_of('for _')}|{inside})\t", shown.split(f"{behind}\t")[1], re.MULTILINE
    )
    assert re.search(r"Breakpoint \d, heat\.grad \(", shown)
    assert re.search(r"^#0 +heat\.grad \(.*\) at .*model\.py:", shown, re.MULTILINE)


@pytest.mark.skipif(shutil.which("gdb") is None, reason="there is no gdb")
def test_gdb_knows_code_from_the_disk_cache(run: Run, model: Path, tmp_path: Path) -> None:
    run(sys.executable, str(model))
    stored = sorted((tmp_path / "cache").iterdir())
    shown = gdb(run, model, "break heat", "run", "backtrace 3")
    assert [p.name.split("-")[0] for p in stored] == [
        "heat",
        "heat",
        "imports",
        "modules",
        "runtime",
        "support",
    ]
    assert sorted((tmp_path / "cache").iterdir()) == stored
    assert re.search(r"^#0 +heat \(.*\) at .*model\.py:", shown, re.MULTILINE)
    assert re.search(r"^#\d +0x\w+ in heat\.__call__ \(\) at .*model\.py:", shown, re.MULTILINE)


@pytest.mark.skipif(shutil.which("perf") is None, reason="there is no perf")
def test_perf_names_the_functions(run: Run, model: Path, tmp_path: Path) -> None:
    model.write_text(
        MODEL.replace("(0.0, 1.0, 50)", "(0.0, 1.0, 5000)").replace("0.5, 3)", "0.5, 9999)")
    )
    record = ("perf", "record", "-q", "-e", "cpu-clock", "-o", str(tmp_path / "data"))
    told = run(*record, sys.executable, str(model), MUTAD_PERF="1", MUTAD_DEBUG="0")
    if not (tmp_path / "data").exists():
        pytest.skip(f"perf may not record here: {told}")
    shown = run("perf", "report", "-i", str(tmp_path / "data"), "--stdio", "--no-children")
    for name in ("heat", "heat.grad"):
        # A loop that LLVM compiles apart from the rest is `heat.grad.body.12`.
        symbol = rf"\] py::{name}(\.body\.\d+)?:{model}$"
        assert re.search(symbol, shown.replace(" \n", "\n"), re.MULTILINE)


@pytest.fixture
def perf_map() -> Generator[Path]:
    path = Path(f"/tmp/perf-{os.getpid()}.map")
    before = path.read_bytes() if path.exists() else None
    yield path
    path.unlink(missing_ok=True)
    if before is not None:
        path.write_bytes(before)


@pytest.fixture
def nothing_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    """No entries are loaded that other tests share: a map names those once a process."""
    monkeypatch.setattr(entry_code, "_loaded", {})
    monkeypatch.setattr(entry_code, "_latest", OrderedDict())
    monkeypatch.setattr(entry_code, "_support", {})


def entries_of(path: Path) -> dict[str, tuple[int, int]]:
    """Address and size of each function in a map of perf's."""
    rows = [line.split(" ", 2) for line in path.read_text().splitlines()]
    return {name: (int(address, 16), int(size, 16)) for address, size, name in rows}


def fresh(**options: Any) -> Any:
    def scaled(x: Any, k: float) -> Any:
        return (x * k).sum()

    return mutad.compile(scaled, grad=True, cache=False, opt=1, **options)


@pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")
@pytest.mark.usefixtures("nothing_shared")
@pytest.mark.parametrize("debug", [False, True])
def test_the_map_has_each_function_where_it_is(
    debug: bool, perf_map: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: dict[str, int] = {}
    name_functions = debugging.name_functions

    def noted(code: bytes, addresses: dict[str, int], source: dict[str, Any]) -> None:
        loaded.update(addresses)
        name_functions(code, addresses, source)

    monkeypatch.setattr(debugging, "name_functions", noted)
    monkeypatch.setenv("MUTAD_PERF", "1")
    f = fresh(debug=debug)
    f.grad(np.ones(3), 2.0)
    f.pullback(mutad.Duplicated(np.ones(3), np.zeros(3)), mutad.Const(2.0), cotangent=1.0)
    entries = entries_of(perf_map)
    name = f"py::{f.__qualname__}.grad:{__file__}"
    assert {name, "mutad_gradient"} <= entries.keys()
    for kind in ("grad", "value_and_grad", "pullback"):
        address, size = entries[f"mutad_entry_{kind}"]
        assert address == loaded[f"mutad_entry_{kind}"]
        assert 0 < size < 10_000


@pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")
@pytest.mark.usefixtures("nothing_shared")
def test_the_map_has_shared_functions_that_were_loaded_before(
    perf_map: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fresh().grad(np.ones(3), 2.0)
    monkeypatch.setenv("MUTAD_PERF", "1")
    for _ in range(2):
        fresh().grad(np.ones(3), 2.0)
    names = [line.split(" ", 2)[2] for line in perf_map.read_text().splitlines()]
    assert names.count("mutad_gradient") == names.count("mutad_alloc") == 1


@pytest.mark.skipif(sys.platform != "linux", reason="perf is Linux's")
def test_the_map_is_written_where_python_writes_its_own(
    perf_map: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUTAD_PERF", raising=False)
    monkeypatch.setattr(sys, "is_stack_trampoline_active", lambda: False, raising=False)
    fresh()(np.ones(3), 2.0)
    assert "scaled" not in (perf_map.read_text() if perf_map.exists() else "")
    monkeypatch.setattr(sys, "is_stack_trampoline_active", lambda: True, raising=False)
    fresh()(np.ones(3), 2.0)
    assert "scaled" in perf_map.read_text()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes do not fork here")
def test_a_child_has_a_map_of_its_own(run: Run) -> None:
    script = (
        "import os\n"
        "from mutad.runtime import debugging\n"
        "debugging._written.append(b'10 20 py::f:f.py\\n')\n"
        "child = os.fork()\n"
        "if child:\n"
        "    os.waitpid(child, 0)\n"
        "    print(child)\n"
    )
    path = Path(f"/tmp/perf-{int(run(sys.executable, '-c', script))}.map")
    assert path.read_text() == "10 20 py::f:f.py\n"
    path.unlink()


def test_a_map_that_cannot_be_written_is_no_error(
    perf_map: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MUTAD_PERF", "1")
    perf_map.unlink(missing_ok=True)
    perf_map.symlink_to(tmp_path / "elsewhere")
    assert fresh()(np.ones(3), 2.0) == 6.0
    assert not (tmp_path / "elsewhere").exists()


def test_only_elf_files_have_functions_to_name() -> None:
    assert list(debugging.functions_of(b"\xcf\xfa\xed\xfe" + bytes(100))) == []


def test_code_with_debug_information_is_unloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    closed: list[int] = []
    close = debugging.DebuggedLibrary.close

    def noted(self: debugging.DebuggedLibrary) -> None:
        closed.append(1)
        close(self)

    gc.collect()  # those of other tests
    monkeypatch.setattr(debugging.DebuggedLibrary, "close", noted)
    f = fresh(debug=True)
    assert f(np.ones(3), 2.0) == 6.0
    np.testing.assert_array_equal(f.grad(np.ones(3), 2.0), [2.0, 2.0, 2.0])
    out, back = f.vjp(np.ones(3), 2.0)
    assert out == 6.0
    np.testing.assert_array_equal(back(1.0), [2.0, 2.0, 2.0])
    del f, back
    gc.collect()
    assert len(closed) == 3


def test_exceptions_and_vector_math_work_with_debug_information() -> None:
    def f(x: Any, i: int) -> Any:
        y = np.exp(x) @ np.sin(x)
        return y * x[i]

    f = mutad.compile(f, grad=True, cache=False, debug=True)
    x = np.linspace(0.0, 1.0, 100)
    mutad.check_gradient(f, x, 3)
    with pytest.raises(IndexError, match="index 100 is out of bounds"):
        f(x, 100)


def test_the_variable_is_read_when_a_function_is_decorated(monkeypatch: pytest.MonkeyPatch) -> None:
    assert fresh().options["debug"] is False
    monkeypatch.setenv("MUTAD_DEBUG", "1")
    assert fresh().options["debug"] is True
    assert fresh(debug=False).options["debug"] is False
    with pytest.raises(TypeError, match="debug='yes': use True or False"):
        fresh(debug="yes")


def test_faulthandler_shows_the_line_that_called(run: Run, tmp_path: Path) -> None:
    script = tmp_path / "crash.py"
    script.write_text(
        "import numpy as np\n"
        "from mutad import compile\n"
        "@compile(boundscheck=False, opt=0)\n"
        "def store(u, i):\n"
        "    u[i] = 1.0\n"
        "def call(i):\n"
        "    store(np.ones(3), i)\n"
        "call(0)\n"
        "call(2**40)\n"
    )
    first = r"Segmentation fault\n(?s:.*)most recent call first\):\n"
    caller = rf'  File "{script}", line 7 in call\n  File "{script}", line 9 in <module>\n'
    command = (sys.executable, "-X", "faulthandler", str(script))
    assert re.search(first + caller, run(*command, MUTAD_DEBUG="0"))
    assert re.search(rf'{first}  File "{script}", line 3 in store\n{caller}', run(*command))


def helper(u: Any, i: int) -> None:
    u[i] = 1.0


class Namespace:
    @staticmethod
    def other(u: Any, i: int) -> None:
        if i < 0:
            raise ValueError("negative")


def raising(u: Any, i: int) -> Any:
    other(u, i)
    helper(u, i)
    return u[0]


other = Namespace.other


@pytest.mark.parametrize(
    ("index", "name", "line"),
    [
        (7, "helper", helper.__code__.co_firstlineno + 1),
        (-1, "other", Namespace.other.__code__.co_firstlineno + 3),
    ],
)
@pytest.mark.parametrize("debug", [False, True])
def test_tracebacks_end_in_the_line_that_raised(
    index: int, name: str, line: int, debug: bool
) -> None:
    f = mutad.compile(raising, cache=False, opt=1, debug=debug)
    f(np.ones(3), 0)
    with pytest.raises((IndexError, ValueError)) as caught:
        f(np.ones(3), index)
    entries = traceback.extract_tb(caught.value.__traceback__)
    own = [("raising", raising.__code__.co_firstlineno)] if debug else []
    shown = [(entry.name, entry.lineno) for entry in entries if entry.filename == __file__]
    assert shown[1:] == [*own, (name, line)]
    assert entries[-1].line == Path(__file__).read_text().splitlines()[line - 1].strip()


def test_an_entry_of_a_traceback_holds_nothing_of_the_caller() -> None:
    class Large:
        pass

    def held() -> weakref.ref[Any]:
        large = Large()
        entry_at(__file__, 1)
        return weakref.ref(large)

    found = held()
    gc.collect()
    assert found() is None


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        ("x = 1\n", 1, "<module>"),
        ("class A:\n  def f():\n    def g():\n      pass\n    pass\n", 4, "A.f.g"),
        ("class A:\n  def f():\n    def g():\n      pass\n    pass\n", 5, "A.f"),
        ("if True:\n  async def f():\n    pass\n", 3, "f"),
        ("def f(:\n", 1, "<compiled>"),
    ],
)
def test_the_function_around_a_line(tmp_path: Path, text: str, line: int, name: str) -> None:
    (tmp_path / "code.py").write_text(text)
    assert function_at(str(tmp_path / "code.py"), line)[0] == name


def test_the_function_in_front_of_an_entry_is_called_as_the_users() -> None:
    f = mutad.compile(helper, cache=False, debug=True)
    f(np.ones(3), 1)
    assert type(f).__call__.__module__ == __name__
    assert type(f).__call__.__qualname__ == "helper"
