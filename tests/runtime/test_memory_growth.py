"""What a compilation leaves behind once it is dropped: nothing that adds up in a process that goes on."""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from llvmlite.binding.orcjit import ResourceTracker

import mutad
from mutad.runtime import dispatch, engine

SCRIPT = '''
import ctypes, gc, json, linecache, sys
from pathlib import Path
import numpy as np
import mutad
from mutad.runtime import engine

SOURCE = """
@mutad.compile(grad=True, cache=False, opt=1)
def f(x, k):
    for i in range(1, len(x)):
        x[i] = x[i - 1] * k
    return x.sum()
"""
OBJECT = """
class Spring:
    def __init__(self, k): self.k = k

    @mutad.compile(grad=True, cache=False, opt=1)
    def energy(self, x): return self.k * x * x
"""
RULE = """
def square(x): return x * x

@mutad.rule(square)
def square_rule(x, y): x.cotangent += 2 * x.value * y.cotangent

@mutad.compile(grad=True, cache=False, opt=1)
def f(x): return square(x)
"""
REQUESTS = [
    (SOURCE, lambda f, **_: f(np.ones(3), 0.5)),
    (SOURCE, lambda f, **_: f.grad(np.ones(3), 0.5, wrt="k")),
    (SOURCE, lambda f, **_: f.vjp(np.ones(3), 0.5)[1](1.0)),
    (SOURCE, lambda f, **_: [f.explain(np.ones(3), 0.5) for _ in range(2)]),
    (SOURCE, lambda f, **_: f.inspect("assembly", np.ones(3), 0.5)),
    (SOURCE.replace("x.sum()", "x.no"), lambda f, **_: refused(f, np.ones(3), 0.5)),
    (OBJECT, lambda Spring, **_: Spring(2.0).energy(3.0)),
    (RULE, lambda f, **_: f.grad(3.0)),
]


def refused(f, *arguments):
    try:
        f(*arguments)
    except mutad.CompileError:
        return
    raise AssertionError


def serve(numbers):
    """Each request has a file of its own, as the cells of a notebook do."""
    for number in numbers:
        source, call = REQUESTS[number % len(REQUESTS)]
        path = Path(sys.argv[1]) / f"request{number}.py"
        path.write_text(source)
        found = {"mutad": mutad, "np": np, "__name__": path.stem}
        exec(compile(source, str(path), "exec"), found)
        call(**{k: v for k, v in found.items() if k in ("f", "Spring")})
        linecache.clearcache()
        path.unlink()


class Heap(ctypes.Structure):
    names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_ = [(name, ctypes.c_size_t) for name in names.split()]


libc = ctypes.CDLL(None)


def state():
    gc.collect()
    libc.mallinfo2.restype = Heap
    heap = libc.mallinfo2()
    libc.malloc_trim(0)
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    resident = 1024 * int(status["RssAnon"].split()[0])
    return {
        "objects": len(gc.get_objects()), "heap": heap.uordblks + heap.hblkhd, "resident": resident,
    }


def at_linker(number):
    """As many requests as begin a linker: where one is given up, and where it fills up, is no growth."""
    engine._counter = iter(range(64 * number, 1 << 60))


serve(range(3, 131, 8))  # what is kept of the last 16 files that `explain` read
serve(range(0, 32))
at_linker(1)
serve([32])
before = state()
serve(range(33, 136))
at_linker(2)
serve([136])
print(json.dumps({name: (value - before[name]) / 104 for name, value in state().items()}))
'''


def test_a_server_that_compiles_per_request_stays_flat(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        env={**os.environ, "PYTHONMALLOC": "malloc"},  # the heap is Python's memory and LLVM's
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    grown = json.loads(done.stdout)
    assert grown["objects"] < 1, grown
    assert grown["heap"] < 4096, grown
    assert grown["resident"] < 64 * 1024, grown


def test_code_for_what_is_no_more_is_let_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A constant from outside, or a word among the arguments, that is another one in each request."""
    for name in ("MOST_KEPT", "LONGEST_CHAIN"):
        monkeypatch.setattr(dispatch, name, 2)
    power = 0

    @mutad.compile(cache=False, opt=0)
    def of_word(x, word):
        return x + len(word)

    @mutad.compile(cache=False, opt=0)
    def of_constant(x):
        return x**power

    for power in (1, 2, 3, 4, 5, 1):
        assert of_constant(2.0) == 2.0**power
        assert of_word(2.0, "w" * power) == 2.0 + power
    assert loaded("of_constant") <= 3
    assert loaded("of_word") <= 3


def loaded(name: str) -> int:
    """How many modules of functions with this name are in memory."""
    gc.collect()
    # Of its type, for `isinstance` would ask a proxy of what is no more.
    trackers = [o for o in gc.get_objects() if issubclass(type(o), ResourceTracker)]
    return sum(t.name.endswith(f".{name}") for t in trackers)


def test_code_outlives_the_place_of_its_linker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Linkers are given up while code that they have linked is in use."""
    monkeypatch.setattr(engine, "LIBRARIES", 1)

    def made(power: int) -> Any:
        return mutad.compile(lambda x: x**power, grad=True, cache=False, opt=0)

    functions = [made(power) for power in (2, 3, 4)]
    for _ in range(2):
        assert [f(2.0) for f in functions] == [4.0, 8.0, 16.0]
        assert [f.grad(2.0) for f in functions] == [4.0, 12.0, 32.0]
        gc.collect()


def test_definitions_of_builtins_outlive_the_collection_that_unloads_them() -> None:
    held: list[int] = []

    def at_end(phase: str, _: dict[str, int]) -> None:
        if phase == "stop":
            held.append(len(engine._retired))

    twice = mutad.compile(lambda x: 2.0 * x, cache=False, opt=1)
    gc.collect()
    assert twice(3.0) == 6.0
    gc.callbacks.insert(0, at_end)  # before those of the engine
    try:
        del twice
        gc.collect()
        gc.collect()
    finally:
        gc.callbacks.remove(at_end)
    assert held[0] > 0
    assert held[-1] == 0
