"""What a function reads from outside is read at each call: nothing goes stale."""

from __future__ import annotations

import colorsys
import gc
import importlib
import logging
import pickle
import subprocess
import sys
import threading
import traceback
import types
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from generated import function_of

import mutad
from mutad.runtime.captures import captures_of

FACTOR = 2.0
COUNT = 3
WEIGHTS = np.arange(4.0)
COEFFICIENTS = (1.0, 2.0)
settings = types.ModuleType("settings")
settings.SHIFT = 0.25  # pyright: ignore[reportAttributeAccessIssue]


class Scheme:
    STEP = 0.5


class Finer(Scheme):
    pass


def helper(v):
    return v * FACTOR + Scheme.STEP + settings.SHIFT  # pyright: ignore


def weighted(x):
    s = 0.0
    for i in range(COUNT):
        s += x[i] * WEIGHTS[i] * helper(x[i])
    return s + COEFFICIENTS[0] + Finer.STEP


@pytest.fixture(autouse=True)
def outside() -> Generator[None]:
    """What the tests change outside is as it was afterwards."""
    before, step, weights = dict(globals()), Scheme.STEP, WEIGHTS.copy()
    yield
    globals().pop("range", None)
    globals().update(before)
    WEIGHTS[...] = weights
    Scheme.STEP = step
    settings.SHIFT = 0.25  # pyright: ignore[reportAttributeAccessIssue]
    if "STEP" in vars(Finer):
        del Finer.STEP


def put(**names: Any) -> Callable[[], None]:
    return lambda: globals().update(names)


def helper_of_another_kind(v):
    return v * v


CHANGES = {
    "a float": put(FACTOR=5.0),
    "a float that becomes an int": put(FACTOR=5),
    "a float that becomes a NumPy scalar": put(FACTOR=np.float64(5.0)),
    "a float32": put(FACTOR=np.float32(5.0)),
    "an int": put(COUNT=2),
    "another int of the same value": put(COUNT=int("3")),
    "an array": put(WEIGHTS=np.ones(4)),
    "an array of another layout": put(WEIGHTS=np.arange(8.0)[::-2]),
    "an array of another dtype": put(WEIGHTS=np.arange(4)),
    "the contents of an array": lambda: WEIGHTS.__setitem__(0, 7.0),
    "a tuple": put(COEFFICIENTS=(3.0, 2.0)),
    "a function": put(helper=helper_of_another_kind),
    "a module's attribute": lambda: setattr(settings, "SHIFT", 1.0),
    "a class's attribute": lambda: setattr(Scheme, "STEP", 1.0),
    "an attribute that a class inherited": lambda: setattr(Finer, "STEP", 3.0),
    "a name that hides a builtin": put(range=lambda n: (n - 1, n - 2)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_outside_is_seen(change: str):
    x = np.array([1.0, 2.0, 3.0, 4.0])
    f = mutad.compile(weighted, grad=True)
    assert f(x) == weighted(x)
    f.grad(x)
    CHANGES[change]()
    expected = weighted(x)
    assert f(x) == expected
    assert type(f(x)) is type(expected)
    assert f.value_and_grad(x)[0] == expected
    mutad.check_gradient(f, x)


def test_a_change_back_compiles_nothing(monkeypatch: pytest.MonkeyPatch):
    global COUNT
    x = np.ones(4)
    f = mutad.compile(weighted)
    results = []
    for count in (3, 2, 3, 2):
        COUNT = count
        results.append(f(x))
    dispatcher = f._dispatcher  # pyright: ignore[reportPrivateUsage]
    assert results[:2] == results[2:]
    assert len(dispatcher.eras) == 2
    monkeypatch.setattr(dispatcher, "primal", None)
    assert f(x) == results[-1]


def test_a_float_that_changes_compiles_nothing():
    global FACTOR
    x = np.ones(4)
    f = mutad.compile(weighted)
    for FACTOR in (1.0, 2.0, 3.0):
        assert f(x) == weighted(x)
    assert len(f._dispatcher.table) == 1  # pyright: ignore[reportPrivateUsage]


def test_a_missing_name_is_found_when_it_comes():
    def reads(x):
        return x * COMES_LATER  # pyright: ignore[reportUndefinedVariable]  # noqa: F821

    f = mutad.compile(reads)
    with pytest.raises(mutad.CompileError, match="'COMES_LATER' is not defined"):
        f(2.0)
    globals()["COMES_LATER"] = 3.0
    try:
        assert f(2.0) == 6.0
    finally:
        del globals()["COMES_LATER"]
    with pytest.raises(NameError, match="'COMES_LATER' is not defined") as caught:
        f(2.0)
    there = pickle.loads(pickle.dumps(caught.value))
    assert "".join(traceback.format_exception_only(there)) == f"NameError: {caught.value}\n"


# Closures.


def scaled(a: Any, k: Any) -> tuple[Any, Callable[[Any], None]]:
    @mutad.compile(grad=True)
    def f(x):
        return (x * a * k).sum()

    def set_k(value: Any) -> None:
        nonlocal k
        k = value

    return f, set_k


def test_closure_variables_are_read_at_each_call():
    f, set_k = scaled(np.arange(3.0), 2.0)
    x = np.ones(3)
    assert f(x) == 6.0
    set_k(3.0)
    assert f(x) == 9.0
    set_k(4)
    assert f(x) == 12.0
    assert f.grad(x).tolist() == [0.0, 4.0, 8.0]


def test_an_array_from_outside_is_kept_alive_by_a_call_only():
    a = np.ones(5)
    f, _ = scaled(a, 2.0)
    x = np.ones(5)
    f(x), f.grad(x), f.grad(x, wrt="a")
    gc.collect()
    before = sys.getrefcount(a)
    for _ in range(100):
        f(x), f.grad(x), f.value_and_grad(x, wrt=("x", "a"))
        with pytest.raises(ValueError, match="broadcast"):
            f(np.ones(4))
    assert sys.getrefcount(a) == before


def test_an_array_that_another_thread_replaces_outlives_the_call():
    f, _ = scaled(np.ones(200_000), 1.0)
    cell = f.__wrapped__.__closure__[0]
    x = np.ones(200_000)
    results: list[float] = []
    done = threading.Event()

    def replace() -> None:
        while not done.is_set():
            cell.cell_contents = np.ones(200_000)

    thread = threading.Thread(target=replace)
    thread.start()
    results = [float(f(x)) for _ in range(200)]
    done.set()
    thread.join()
    assert set(results) == {200_000.0}


# Memory.


def test_a_store_to_an_array_from_outside_is_seen_outside():
    buffer = np.zeros(3)

    @mutad.compile(grad=True)
    def accumulate(x):
        buffer[:] += x * x
        return buffer.sum()

    x = np.array([1.0, 2.0, 3.0])
    assert accumulate(x) == 14.0
    assert accumulate(x) == 28.0
    assert accumulate.grad(x).tolist() == [2.0, 4.0, 6.0]
    assert buffer.tolist() == [3.0, 12.0, 27.0]
    mutad.check_gradient(accumulate, x)
    buffer.flags.writeable = False
    with pytest.raises(ValueError, match="read-only"):
        accumulate(x)


def test_an_array_from_outside_that_is_passed_as_well_is_one_array():
    shared = np.array([1.0, 2.0, 3.0])

    @mutad.compile(grad=True)
    def product(x):
        x[0] = 5.0
        return (x * shared).sum()

    assert product.grad(np.array([1.0, 1.0, 1.0])).tolist() == [0.0, 2.0, 3.0]
    assert product(shared) == 38.0
    assert product.grad(shared).tolist() == [0.0, 4.0, 6.0]
    mutad.check_gradient(product, shared)
    mutad.check_gradient(product, shared[::-1])
    with pytest.raises(ValueError, match="shared"):
        product.pullback(mutad.Duplicated(shared, np.zeros(3)), cotangent=1.0)


def test_an_array_from_outside_is_returned_itself():
    kept = np.ones(3)

    @mutad.compile
    def itself(i):
        return kept, kept[i:]

    whole, part = itself(1)
    assert whole is kept
    assert part.base is kept


# Gradients.


def test_what_is_outside_is_an_input_of_the_gradient_by_name():
    x = np.array([1.0, 2.0, 3.0, 4.0])
    f = mutad.compile(weighted, grad=True)
    mutad.check_gradient(f, x, wrt=("x", "WEIGHTS", "FACTOR", "Scheme.STEP", "settings.SHIFT"))
    dx, dw, df = f.grad(x, wrt=("x", "WEIGHTS", "FACTOR"))
    assert dx.shape == dw.shape == (4,)
    assert df == float((x[:3] ** 2 * WEIGHTS[:3]).sum())
    out, back = f.vjp(x, wrt="WEIGHTS")
    assert out == weighted(x)
    assert back(2.0).tolist() == (2.0 * dw).tolist()
    for _ in range(2):
        assert f.grad(x, wrt="FACTOR") == df
    assert f.explain(x, wrt="WEIGHTS").saved_bytes == 0
    assert "WEIGHTS" in f.inspect("adjoint", x, wrt="WEIGHTS")


def test_what_is_outside_has_no_position():
    f = mutad.compile(weighted, grad=True)
    x = np.ones(4)
    f.grad(x, wrt="FACTOR")
    with pytest.raises(TypeError, match="there is no parameter 1"):
        f.grad(x, wrt=1)
    with pytest.raises(TypeError, match="WEIGHTS"):
        f.grad(x, wrt="WEIGHT")


def test_a_pullback_takes_what_is_outside_as_constant():
    x, x_bar = np.ones(4), np.zeros(4)
    f = mutad.compile(weighted, grad=True)
    value, bars = f.pullback(mutad.Duplicated(x, x_bar), cotangent=1.0)
    assert (value, bars) == (weighted(x), ())
    assert np.array_equal(x_bar, f.grad(x))


def test_the_places_of_names_are_found_through_what_is_called():
    found = captures_of(weighted)
    assert set(found.names) == {"WEIGHTS", "FACTOR", "Scheme.STEP", "settings.SHIFT", "Finer.STEP"}
    assert {"COUNT", "helper", "COEFFICIENTS", "range"} <= {p.path for p in found.constants}


def test_the_standard_library_is_compiled_along_and_not_watched():
    def luma(r, g, b):
        if COUNT < 0:
            logging.info("never")
        return colorsys.rgb_to_yiq(r, g, b)[0] + colorsys.ONE_THIRD

    found = captures_of(luma)  # pyright: ignore[reportArgumentType]
    assert {p.path for p in found.constants} == {"COUNT", "logging", "colorsys", "luma.__code__"}
    f = mutad.compile(luma, grad=True, cache=False)
    assert f(0.5, 0.25, 1.0) == luma(0.5, 0.25, 1.0)
    assert f.grad(0.5, 0.25, 1.0, wrt=("r", "g", "b")) == (0.30, 0.59, 0.11)


def test_two_globals_of_one_name_are_told_apart():
    other: dict[str, Any] = {"__name__": "other"}
    source = types.FunctionType(helper_of_factor.__code__, other, "other_helper")
    other["FACTOR"] = 10.0

    def both(x):
        return x * FACTOR + source(x)

    assert captures_of(both).names == ("FACTOR", "FACTOR.2")  # pyright: ignore[reportArgumentType]
    f = mutad.compile(both, grad=True, cache=False)
    assert f(1.0) == 12.0
    assert f.grad(1.5, wrt=("x", "FACTOR", "FACTOR.2")) == (12.0, 1.5, 1.5)
    other["FACTOR"] = 20.0
    assert f(1.0) == 22.0


def helper_of_factor(x):
    return x * FACTOR


def test_methods_of_classes_in_cells_are_followed() -> None:
    """As of those that are typed into IPython, whose files are called `<ipython-input-1-...>`."""
    source = """
class Plain:
    def __init__(self, x):
        self.x = x

    def scaled(self):
        return scale(self.x)

def scale(v):
    return v * RATE

def f(p):
    return p.scaled()
"""
    f = function_of(source, "f", {"RATE": 2.0})
    compiled = mutad.compile(f)
    p = f.__globals__["Plain"](3.0)
    assert compiled(p) == 6.0
    f.__globals__["RATE"] = 5.0
    assert compiled(p) == 15.0


def test_what_is_imported_from_beside_is_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "beside"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "settings.py").write_text("step = 2\nrate = 0.5\n")
    (package / "work.py").write_text(
        "def f(x):\n    from . import settings\n    from .settings import rate\n"
        "    return x[0] * settings.step + rate\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    for name in ("beside", "beside.settings", "beside.work"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    f = importlib.import_module("beside.work").f
    settings = importlib.import_module("beside.settings")
    compiled = mutad.compile(f, opt=1)
    for step, rate in ((2, 0.5), (5, 0.5), (5, 0.25)):
        settings.step, settings.rate = step, rate
        assert compiled(np.array([3.0])) == f(np.array([3.0])) == 3.0 * step + rate


@pytest.mark.skipif(sys.version_info < (3, 15), reason="the syntax is new")
def test_a_lazy_import_takes_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lazily.py").write_text(
        "lazy import math\nlazy import numpy as np\nlazy from math import sin\n"
        "def f(x):\n    return math.cos(x[0]) + sin(x[1]) + np.sum(x * x)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lazily", raising=False)
    lazily = importlib.import_module("lazily")
    compiled = mutad.compile(lazily.f, opt=1)
    x = np.array([1.0, 2.0])
    found = compiled(x)
    assert vars(lazily)["np"] is np
    assert found == lazily.f(x)


@pytest.mark.skipif(sys.version_info < (3, 15), reason="the option is new")
def test_all_imports_may_be_lazy(tmp_path: Path) -> None:
    """Names of packages and of functions in them stay apart, and our own NumPy code finds its names."""
    (tmp_path / "model.py").write_text(
        "import numpy as np, mutad\n"
        "def f(x):\n    return (x[np.argsort(x)] * np.cumsum(x)).sum() + np.linalg.norm(x)\n"
        "x = np.array([2.0, 1.0, 3.0])\n"
        "compiled = mutad.compile(f, grad=True, opt=1, cache=False)\n"
        "assert np.isclose(compiled(x), f(x))\n"
        "mutad.check_gradient(compiled, x)\n"
        "print(len(str(compiled.explain(x))) > 0)\n"
    )
    command = [sys.executable, "-X", "lazy_imports=all", str(tmp_path / "model.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr
