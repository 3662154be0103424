"""Compiled functions in other processes: those of a script travel by value, with their source."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import cloudpickle
import numpy as np
import pytest

import mutad
from mutad.runtime import pickles

SCRIPT = """
import functools, sys
import cloudpickle, numpy as np, mutad
from mutad import compile

K = 3.0

def helper(x):
    return K * x

@compile(grad=True, opt=1)
def inner(x):
    return helper(x) + 1.0

@compile(grad=True, opt=1)
def f(x, k=2.0):
    return (inner(x) ** 2).sum() * k

@compile(grad=True, opt=1)
def power(x, n):
    return 1.0 if n == 0 else x * power(x, n - 1)

class Model:
    def __init__(self, k):
        self.k = k
    def scaled(self, x):
        return self.k * x
    @compile(grad=True, opt=1)
    def energy(self, x):
        return (self.scaled(x) ** 2).sum()
    @classmethod
    @compile(grad=True, opt=1)
    def cubes(cls, x):
        return (x ** 3).sum()

def doubled(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return 2.0 * function(*args, **kwargs)
    return call

@compile(grad=True, opt=1)
@doubled
def twice(x):
    return (x * x).sum()

def made(k):
    return compile(lambda x: k * x.sum(), grad=True, opt=1)

def loss(model, x):
    return model.energy(x) + K

X = np.array([1.0, 2.0])
CALLS = {
    "f": (f, (X,)),
    "grad": (f.grad, (X,)),
    "recursive": (power.grad, (1.5, 3)),
    "method": (Model(2.0).energy, (X,)),
    "method's gradient": (Model(2.0).energy.grad, (X,)),
    "class method": (Model.cubes, (X,)),
    "decorated": (twice, (X,)),
    "closure": (made(4.0).grad, (X,)),
    "of a plain function": (compile(loss, grad=True, opt=1), (Model(3.0), X)),
    "derivative": (mutad.grad(f), (X,)),
    "batch": (mutad.batch(inner, in_axes=0), (X,)),
    "partial": (compile(functools.partial(f, k=5.0), grad=True, opt=1), (X,)),
}
found = {name: function(*args) for name, (function, args) in CALLS.items()}
if __name__ == "__main__":
    with open(sys.argv[1], "wb") as file:
        cloudpickle.dump((CALLS, found), file)
"""
CALLER = """
import pickle, sys
import numpy as np
with open(sys.argv[1], "rb") as file:
    calls, wanted = pickle.load(file)
for name, (function, args) in calls.items():
    np.testing.assert_array_equal(function(*args), wanted[name], err_msg=name)
"""


def run(text: str, folder: Path, name: str) -> str:
    """What a script says on its standard error."""
    script = folder / f"{name}.py"
    script.write_text(text)
    cache = folder / "cache"
    cache.mkdir(mode=0o700, exist_ok=True)
    environment = {**os.environ, "MUTAD_LOG": "info", "MUTAD_CACHE_DIR": str(cache)}
    call = [sys.executable, str(script), str(folder / "sent")]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, cwd=folder)
    assert done.returncode == 0, done.stderr
    script.unlink()
    return done.stderr


def test_functions_of_a_script_run_elsewhere_and_load_what_was_compiled(tmp_path: Path) -> None:
    here = run(SCRIPT, tmp_path, "here")
    assert "mutad: compiled in" in here
    there = run(CALLER, tmp_path, "there")
    assert "mutad: loaded from the disk cache" in there
    assert "mutad: compiled in" not in there


@mutad.compile(grad=True, opt=1)
def importable(x):
    return x.sum()


def test_what_can_be_imported_is_sent_by_name() -> None:
    sent = cloudpickle.dumps(importable)
    assert pickle.loads(sent) is importable
    assert len(sent) < 200
    assert pickle.loads(pickle.dumps(importable)) is importable


def test_modules_may_be_registered_to_be_sent_by_value() -> None:
    module: Any = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    try:
        sent = cloudpickle.dumps(importable)
    finally:
        cloudpickle.unregister_pickle_by_value(module)
    again: Any = pickle.loads(sent)
    assert again is not importable
    np.testing.assert_array_equal(again.grad(np.ones(3)), np.ones(3))
    assert again.options == importable.options


def test_pickle_itself_finds_names() -> None:
    local = mutad.compile(lambda x: x.sum(), grad=True)
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(local)


def test_sources_that_are_there_stay(tmp_path: Path) -> None:
    file = tmp_path / "there.py"
    file.write_text("a = 1\n")
    pickles.show_sources({str(file): "a = 1\n"})
    import linecache

    file.write_text("a = 22\n")  # an edit is seen: the text was not pinned
    linecache.checkcache(str(file))
    assert linecache.getline(str(file), 1) == "a = 22\n"
    pickles.show_sources({str(file): "b = 3\n", "<elsewhere>": "c = 4\n"})
    assert linecache.getline(str(file), 1) == "b = 3\n"
    assert linecache.getline("<elsewhere>", 1) == "c = 4\n"


def test_what_arrived_is_sent_on(tmp_path: Path) -> None:
    run(SCRIPT, tmp_path, "here")
    passed_on = f"{CALLER.split('for name')[0]}import cloudpickle\n"
    passed_on += (
        'with open(sys.argv[1], "wb") as file:\n    cloudpickle.dump((calls, wanted), file)\n'
    )
    run(passed_on, tmp_path, "between")
    assert "mutad: loaded from the disk cache" in run(CALLER, tmp_path, "there")


def test_functions_that_differ_in_a_constant_keep_their_files() -> None:
    one, other = (
        compile(f"def f(x):\n    return x * {k}\n", f"{k}.py", "exec") for k in (2.0, 3.0)
    )
    assert pickles.named(one.co_consts[0]) != pickles.named(other.co_consts[0])
    assert pickles.named(one) == pickles.named(one.replace(co_filename="<dynamic-code>"))
