"""Packages that `mutadc --emit python` and `--emit wheel` write, used where mutad cannot be imported.

The same calls are made of the functions that `@compile` makes, and of the package's: what they return, leave
in their arguments and raise is compared bit for bit.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.util
import inspect
import io
import pickle
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import raising_programs
from c_client import export
from generated import Drawn

import mutad
from mutad import aot
from mutad.compiler.aot import outputs
from mutad.compiler.aot.elf import Needs, needs_of
from mutad.compiler.aot.library import compile_exports
from mutad.compiler.aot.outputs import Output, write_all
from mutad.compiler.aot.python_package import package_files
from mutad.compiler.aot.wheel import archive, platform_tag
from mutad.compiler.request import Options
from mutad.runtime.keys import argument_key

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="builds with a C compiler")

MODEL = '''
"""Heat, and more.

Its second line."""
import numpy as np
from mutad import compile

__version__ = "1.2"
WEIGHTS = np.array([1.0, 2.0, 3.0])


class Failure(RuntimeError):
    """A run ends."""


class Unstable(Failure):
    """It grew."""

    def __init__(self, *args, why):
        super().__init__(*args)
        self.why = why


@compile(opt=1, grad=True)
def loss(u: "f64[:]", kappa: float, steps: int = 3) -> "f64":
    r"""The loss of `u`.

    A "quoted" line, and a back\\\\slash.
    """
    for _ in range(steps):
        u[1:-1] += kappa * u[1:-1] * (u[:-2] - 2 * u[1:-1] + u[2:])
    return (u**2).sum()


@compile(opt=1)
def pick(u: "f64[:]", i: int):
    if i == 77:
        raise Unstable("step", i, u[0], why="size")
    if i == 78:
        raise ValueError(f"no {i} for {u[0]}")
    return u[i]


@compile(opt=1, grad=True)
def many(u: "f64[:]", v: "f64[::]", x: np.float32, *, flag: bool = True):
    if flag:
        u *= v
    return u * 2, u, (x, u.shape[0], None), u[1:], v


@compile(opt=1)
def positive(u: "f64[:]"):
    kept = u[u > 0] * 2.0
    return kept, u


@compile(opt=1)
def constants(i: int, scale: np.int16 = np.int16(3), more: float = float("inf")):
    return WEIGHTS, WEIGHTS[i:], scale, more > 1.0, i


@compile(opt=1)
def rows(a: "f32[::1, :]", k: int) -> "f32[:]":
    return a[:, k] * 2 + a[:, 0]


@compile(opt=1)
def store(u: "i32[:]", v: "i32[:]"):
    u += v


@compile(opt=1, grad=True)
def moved(u: "f64[:]", v: "f64[:]"):
    v[:] = u * 2
    return v, u * v


@compile(opt=1, grad=True)
def idle(u: "f64[:]", v: "f64[::, ::]"):
    return (v**2).sum()


@compile(opt=1, grad=True)
def flat(u: "f64[::, ::]"):
    f = u.reshape(-1)
    u[0] = u[1] * u[1]
    return (f * f).sum()


@compile(opt=1, grad=True)
def shared(u: "f64[::, ::]"):
    f, c = u.ravel(), np.ascontiguousarray(u)
    f[0] = 3.0 * f[1] * c[1, 1]
    c[0] *= c[1]
    return (u * u).sum() + f.sum() + c.sum()


@compile(opt=1)
def either(u: "i32[:]", k: int, __mutad__: int = 0):
    return (7 if k > 0 else u[0]), k, (1.5 if k > 1 else u[1])


@compile(opt=1)
def product(a: "f64[:, :]", b: "f64[:, :]"):
    return a @ b
'''
DERIVATIVES = (
    *("--grad", "loss:u,kappa", "--value-and-grad", "loss:kappa,u", "--vjp", "loss:u,kappa"),
    *("--jvp", "loss:u,kappa", "--hvp", "loss:u,kappa", "--vjp", "many:u,x", "--jvp", "many:u,x"),
    *("--vjp", "moved:u", "--jvp", "moved:u", "--grad", "idle:u,v", "--hvp", "idle:u,v"),
    *("--vjp", "idle:u,v", "--jvp", "idle:u,v", "--vjp", "flat:u", "--jvp", "flat:u"),
    *("--grad", "shared:u"),
)
CALLS = '''
import numpy as np

def wave(n=7):
    return np.sin(np.arange(1.0, n + 1.0))

def called(f, *args, **kwargs):
    """What a call returns or raises, and what it leaves in its arguments."""
    try:
        result = f(*args, **kwargs)
    except Exception as error:
        result = type(error).__name__, str(error)
    return result, args, kwargs

def pulled(f, bars, *args, final=(), **kwargs):
    value, back = f(*args, **kwargs)
    for argument in args:
        if isinstance(argument, np.ndarray):
            argument += 1
    return value, [back(bar, **dict(final)) for bar in bars], args

def itself(value, *args):
    return [[part is a for a in args] for part in value]

CASES = {
    "primal": lambda m: called(m.loss, wave(), 0.1),
    "no steps": lambda m: called(m.loss, wave(), 0.1, steps=0),
    "keywords": lambda m: called(m.loss, steps=2, kappa=0.25, u=wave()),
    "grad": lambda m: called(m.loss.grad, wave(), 0.1, 2),
    "grad of both": lambda m: called(m.loss.grad, wave(), 0.1, 2, wrt=("kappa", "u")),
    "grad of one": lambda m: called(m.loss.grad, wave(), 0.1, 2, wrt="kappa"),
    "grad by number": lambda m: called(m.loss.grad, wave(), 0.1, 2, wrt=(-2, 0)),
    "value": lambda m: called(m.loss.value_and_grad, wave(), 0.1, wrt=["u"]),
    "vjp": lambda m: pulled(m.loss.vjp, (1.0, 2.0, None), wave(), 0.1, final={"u": wave() + 1}),
    "vjp of both": lambda m: pulled(m.loss.vjp, (0.5,), wave(), 0.1, wrt=("u", "kappa")),
    "vjp of a tuple": lambda m: pulled(
        m.many.vjp, ((wave(), None, (0.5, None, None), wave(6), None), None), wave(), wave(), np.float32(2),
        wrt=("x", "u"), final={"u": wave()}),
    "vjp of an argument": lambda m: pulled(m.moved.vjp, ((wave(), wave()),), wave(), wave()),
    "jvp": lambda m: called(m.loss.jvp, wave(), 0.1, tangents={"u": wave() + 1, "kappa": 2}),
    "jvp of one": lambda m: called(m.loss.jvp, wave(), 0.1, tangents={"kappa": 2.0}),
    "jvp elsewhere": lambda m: called(m.loss.jvp, wave(), 0.1, tangents={"u": np.repeat(wave(), 2)[::2]}),
    "jvp of a tuple": lambda m: called(m.many.jvp, wave(), wave(), np.float32(2), tangents={"u": wave() + 1}),
    "jvp of an argument": lambda m: called(m.moved.jvp, wave(), wave(), tangents={"u": wave() + 1}),
    "hvp": lambda m: called(m.loss.hvp, wave(), 0.1, direction=wave() + 1),
    "hvp of both": lambda m: called(m.loss.hvp, wave(), 0.1, wrt=("u", "kappa"), direction=(wave(), 2.0)),
    "hvp of a number": lambda m: called(m.loss.hvp, wave(), 0.1, wrt="kappa", direction=1.5),
    "idle": lambda m: called(m.idle.grad, np.ones(2), wave(6).reshape(2, 3).T, wrt=("u", "v")),
    "idle hvp": lambda m: called(
        m.idle.hvp, np.ones(2), np.ones((2, 3)), wrt=("v", "u"), direction=(np.eye(2, 3), np.ones(2))),
    "vjp of a copy": lambda m: pulled(m.flat.vjp, (1.0,), wave(24).reshape(4, 6)[:, :3]),
    "contiguous": lambda m: called(m.shared, wave(12).reshape(4, 3)),
    "not contiguous": lambda m: called(m.shared, wave(12).reshape(3, 4)[:, :3]),
    "grad of a copy": lambda m: called(m.shared.grad, wave(12).reshape(3, 4)[:, :3]),
    "grad of a view": lambda m: called(m.shared.grad, wave(12).reshape(4, 3)),
    "jvp of a view": lambda m: called(m.flat.jvp, wave(12).reshape(4, 3),
                                      tangents={"u": wave(24).reshape(4, 6)[:, :3]}),
    "vjp of a view": lambda m: pulled(m.flat.vjp, (1.0,), wave(12).reshape(4, 3)),
    "idle vjp": lambda m: pulled(m.idle.vjp, (2.0,), np.ones(2), np.ones((2, 3)), wrt=("u", "v")),
    "idle jvp": lambda m: called(m.idle.jvp, np.ones(2), np.ones((2, 3)), tangents={"u": np.ones(2)}),
    "either": lambda m: [called(m.either, np.arange(2, dtype=np.int32), k) for k in range(3)],
    "pick": lambda m: called(m.pick, wave(), -1),
    "out of bounds": lambda m: called(m.pick, wave(), 9),
    "raised": lambda m: called(m.pick, wave(), 78),
    "raised class": lambda m: called(m.pick, wave(), 77),
    "many": lambda m: called(m.many, wave(), wave(14)[::2], np.float32(0.1), flag=False),
    "views": lambda m: itself(*(lambda u, v: (m.many(u, v, np.float32(1)), u, v))(wave(), wave(14)[::2])),
    "negative strides": lambda m: called(m.many, wave(), wave()[::-1], np.float32(0.1)),
    "no elements": lambda m: called(m.many, np.zeros(0), np.zeros(0), np.float32(0.1)),
    "positive": lambda m: called(m.positive, wave(20)),
    "positive itself": lambda m: itself(*(lambda u: (m.positive(u), u))(wave())),
    "nothing positive": lambda m: called(m.positive, -np.ones(3)),
    "constants": lambda m: called(m.constants, 1),
    "constants given": lambda m: called(m.constants, 1, np.int16(-4), -1.0),
    "rows": lambda m: called(m.rows, np.asfortranarray(wave(12).reshape(3, 4).astype("f4")), -1),
    "store": lambda m: called(m.store, np.arange(5, dtype=np.int32), np.arange(5, dtype=np.int32)),
    "broadcast": lambda m: called(m.store, np.arange(5, dtype=np.int32), np.arange(4, dtype=np.int32)),
    "product": lambda m: called(m.product, wave(6).reshape(2, 3), wave(6).reshape(3, 2)),
    "large product": lambda m: called(m.product, wave(6400).reshape(80, 80), wave(6400).reshape(80, 80)),
    "too many arguments": lambda m: called(m.pick, wave(), 1, 2),
    "cotangent's shape": lambda m: called(m.moved.vjp(wave(), wave())[1], (wave(3), None)),
    "tangent's kind": lambda m: called(m.loss.jvp, wave(), 0.1, tangents={"u": 1.0}),
    "tangent's shape": lambda m: called(m.loss.jvp, wave(), 0.1, tangents={"u": wave(3)}),
    "direction's shape": lambda m: called(m.loss.hvp, wave(), 0.1, direction=wave(3)),
    "no such parameter": lambda m: called(m.loss.grad, wave(), 0.1, wrt="q"),
    "not native": lambda m: called(m.pick, wave().astype(">f8"), 1),
}

def plain(value):
    """A value as what can be compared: types, dtypes, shapes and bytes."""
    if isinstance(value, np.ndarray):
        return "array", value.dtype.str, value.shape, value.flags.writeable, value.tobytes()
    if isinstance(value, (tuple, list)):
        return type(value).__name__, [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (float, np.generic)):
        return type(value).__name__, value.tobytes() if isinstance(value, np.generic) else value.hex()
    return type(value).__name__, value

def answers(m):
    return {name: plain(case(m)) for name, case in CASES.items()}
'''
CHILD = (
    """
import sys
sys.modules["mutad"] = None
sys.path.insert(0, sys.argv[1])
import pickle
import model
"""
    + CALLS
    + """
with open(sys.argv[2], "wb") as file:
    pickle.dump(answers(model), file)
assert not [name for name in sys.modules if name.startswith(("xdsl", "llvmlite", "mutad."))]
"""
)


def run_apart(script: str, *arguments: object) -> str:
    """What a fresh process prints that cannot import mutad."""
    head = "import sys\nsys.modules['mutad'] = None\nsys.path.insert(0, sys.argv[1])\n"
    done = subprocess.run(
        [sys.executable, "-c", head + script, *map(str, arguments)],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the model, and the package below `out`."""
    made = tmp_path_factory.mktemp("stub")
    (made / "model.py").write_text(MODEL)
    command = [str(made / "model.py"), "--emit", "python", "-o", str(made / "out"), "-O1"]
    assert aot.main([*command, *DERIVATIVES]) == 0
    return made


@pytest.fixture(scope="module")
def answers(folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Of the package, and of the compiled functions, in a process of its own and in this one."""
    run_apart(CHILD, folder / "out", folder / "answers")
    found = pickle.loads((folder / "answers").read_bytes())
    names: dict[str, Any] = {}
    exec(CALLS, names)
    spec = importlib.util.spec_from_file_location("stubbed_model", folder / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["stubbed_model"] = module
    try:
        spec.loader.exec_module(module)
        return found, names["answers"](module)
    finally:
        del sys.modules["stubbed_model"]


def nearly(one: Any, other: Any) -> bool:
    """Whether two answers are the same up to the last bits of arrays of float64."""
    if isinstance(one, tuple | list) and one[:2] == ("array", "<f8"):
        a, b = (np.frombuffer(x[-1]) for x in (one, other))
        return one[:-1] == other[:-1] and np.allclose(a, b, rtol=1e-14, atol=1e-14, equal_nan=True)
    if isinstance(one, tuple | list):
        return len(one) == len(other) and all(map(nearly, one, other))
    return one == other


def test_calls_agree(answers: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Primals bit for bit; in adjoint code LLVM chooses what it contracts."""
    stub, compiled = answers
    assert len(stub) > 40
    loose = {name for name in stub if name.startswith(("grad", "value", "vjp", "idle", "hvp"))}
    different = {
        name: (stub[name], compiled[name])
        for name in stub
        if stub[name] != compiled[name]
        and not (name in loose and nearly(stub[name], compiled[name]))
    }
    assert not different, "\n".join(f"{k}:\n  {a}\n  {b}" for k, (a, b) in different.items())


COPIED = "and copy back what the function stores to it"
REFUSED = {
    "m.loss(np.ones(4, 'f4'), 0.1)":
        "TypeError: argument 'u' is an array of float32, and the library was compiled for float64: "
        f"pass u.astype(np.float64), {COPIED}",
    "m.loss(np.ones(8)[::2], 0.1)":
        f"TypeError: argument 'u' is not contiguous in C order: pass np.ascontiguousarray(u), {COPIED}",
    "m.loss(np.ones((2, 2)), 0.1)":
        "TypeError: argument 'u' has 2 dimensions, and the library was compiled for 1",
    "m.loss(5, 0.1)": "TypeError: argument 'u' is int: pass an array, float64[?]",
    "m.loss([1.0], 0.1)": "TypeError: argument 'u': a list has no dtype and no shape: pass np.asarray(u)",
    "m.loss(np.ma.array([1.0]), 0.1)": "TypeError: argument 'u': numpy.ma.MaskedArray has a mask: pass",
    "m.loss(np.ones(4), True)": "TypeError: argument 'kappa' is bool, and the library was compiled for float",
    "m.loss(np.ones(4), 1j)": "TypeError: argument 'kappa' is complex, and the library was compiled for",
    "m.loss(np.ones(4), 0.1, 2.0)":
        "TypeError: argument 'steps' is float, and the library was compiled for int: pass int(steps)",
    "m.loss(np.ones(4), 0.1, 2**63)": "OverflowError: argument 'steps': Python int too large",
    "m.loss(np.frombuffer(bytes(32)), 0.1)":
        "ValueError: argument 'u' is read-only, and the function stores to it: pass u.copy()",
    "m.loss()": "TypeError: loss() missing 2 required positional arguments: 'u' and 'kappa'",
    "m.loss.grad(np.ones(4), 0.1, wrt='steps')":
        "ValueError: loss.grad was compiled with respect to u, kappa, not to 'steps': "
        "mutadc --grad loss:u,kappa,steps",
    "m.loss.grad(np.ones(4), 0.1, wrt=())": "ValueError: wrt is empty",
    "m.moved.vjp(np.ones(4), np.ones(4), wrt='v')":
        "ValueError: moved.vjp was compiled with respect to u, not to 'v'",
    "m.loss.jvp(np.ones(4), 0.1, tangents={'steps': 1.0})":
        "ValueError: loss.jvp was compiled with respect to u",
    "m.many(np.ones(4), np.ones(4), np.float64(1.5))":
        "TypeError: argument 'x' is float64, and the library was compiled for np.float32: pass np.float32(x)",
    "m.constants(1, 40000)": "OverflowError: argument 'scale': 40000 does not fit in int16",
    "m.rows(np.ones((2, 3), 'f4'), 0)":
        "TypeError: argument 'a' is not contiguous in Fortran order: pass np.asfortranarray(a)",
    "(lambda u: m.store(u, u))(np.ones(4, 'i4'))": "ValueError: store: u and v share memory: pass a copy",
    "(lambda u: m.moved.vjp(u, u))(np.ones(4))":
        "ValueError: moved.vjp: u and v share memory: pass a copy",
    "(lambda u: m.many(u, u[::-1], np.float32(1)))(np.ones(4))":
        "ValueError: many: u and v share memory",
}  # fmt: skip
APART = """
import inspect, pickle, threading, traceback
import numpy as np
import model as m

for call in {calls!r}:
    try:
        print(eval(call))
    except Exception as error:
        print(f"{{type(error).__name__}}: {{error}}")
"""


def test_other_arguments_are_refused(folder: Path) -> None:
    printed = run_apart(APART.format(calls=list(REFUSED)), folder / "out").splitlines()
    for call, line, expected in zip(REFUSED, printed, REFUSED.values(), strict=True):
        assert line.startswith(expected), call


def test_functions_look_as_the_original(folder: Path) -> None:
    script = """
import inspect, pickle, pydoc, traceback
import model as m

print(inspect.signature(m.loss), inspect.signature(m.loss.grad), inspect.signature(m.many), sep="\\n")
print(inspect.signature(m.constants).parameters["scale"].default.dtype)
assert inspect.cleandoc(m.loss.__doc__) == inspect.cleandoc(DOC)  # 3.13 compiles it so
shown = pydoc.render_doc(m.loss, renderer=pydoc.plaintext)
assert "(u: f64[:], kappa: float" in shown.replace("'", "")  # 3.14 shows such types without quotes
assert all(pickle.loads(pickle.dumps(f)) is f for f in (m.loss, m.loss.grad, m.many.vjp))
assert not hasattr(m.pick, "grad")
assert m.__version__ == "1.2" and "loss" in m.__all__ and m.__doc__.startswith("\\nHeat") is False
try:
    m.pick(m.np.ones(2), 77)
except m.Unstable as error:
    assert isinstance(error, m.Failure) and isinstance(error, RuntimeError)
    assert error.why == 'size'
    print("".join(traceback.format_exception_only(error)))
"""
    doc = 'The loss of `u`.\n\n    A "quoted" line, and a back\\\\slash.\n    '
    printed = run_apart(script.replace("DOC", repr(doc)).replace("\\\\n", "\\n"), folder / "out")
    assert printed.splitlines()[:4] == [
        "(u: 'f64[:]', kappa: float, steps: int = 3) -> 'f64'",
        "(u: 'f64[:]', kappa: float, steps: int = 3, *, wrt=0)",
        "(u: 'f64[:]', v: 'f64[::]', x: numpy.float32, *, flag: bool = True)",
        "int16",
    ]
    assert (
        "model.Unstable: ('step', 77, np.float64(1.0))\nmodel.py:38:9: raise Unstable(" in printed
    )


def test_results_keep_their_memory(folder: Path) -> None:
    """Results outlive the call and their siblings; a small one does not keep a large work area."""
    script = """
import gc, tracemalloc
import numpy as np
import model as m

def fill():
    return m.positive(np.arange(1.0, 1000.0))[0]

kept = [fill() for _ in range(50)]
views = [m.many(np.ones(500), np.ones(500), np.float32(1))[3] for _ in range(50)]
constant = m.constants(1)[1]
constant += 1
gc.collect()
noise = [np.full(999, 7.0) for _ in range(200)]
assert all((k == 2 * np.arange(1.0, 1000.0)).all() for k in kept)
assert all((v == 1).all() for v in views)
assert m.constants(1)[1].tolist() == [2.0, 3.0]
tracemalloc.start()
for _ in range(300):
    fill(), m.loss.grad(np.ones(1000), 0.1)
gc.collect()
assert tracemalloc.get_traced_memory()[0] < 100_000, tracemalloc.get_traced_memory()
"""
    run_apart(script, folder / "out")


def test_threads_call_at_once(folder: Path) -> None:
    script = """
import threading
import numpy as np
import model as m

def work(k):
    for _ in range(200):
        u = np.linspace(0, k, 50)
        found[k] = m.loss.value_and_grad(u, 0.01 * k, wrt=("u", "kappa"))

expected, found = {}, {}
for k in range(6):
    work(k)
expected, found = found, {}
threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
for t in threads: t.start()
for t in threads: t.join()
for k, (value, (u, kappa)) in expected.items():
    assert found[k][0] == value and (found[k][1][0] == u).all() and found[k][1][1] == kappa
"""
    run_apart(script, folder / "out")


def test_types_are_those_of_the_arguments(folder: Path) -> None:
    text = (folder / "out" / "model" / "__init__.pyi").read_text()
    compile(text, "__init__.pyi", "exec")
    assert (folder / "out" / "model" / "py.typed").exists()
    assert (
        "def __call__(__self, u: NDArray[np.float64], kappa: float, steps: int = ...) -> np.float64: ..."
        in text
    )
    assert "x: float | np.float32, *, flag: bool = ...) -> tuple[NDArray[np.float64], " in text
    assert "def store" not in text
    assert "def __call__(__self, u: NDArray[np.int32], v: NDArray[np.int32]) -> None: ..." in text


def test_the_package_is_alone(folder: Path) -> None:
    """Its files, and the symbols of its library."""
    package = folder / "out" / "model"
    assert {path.name for path in package.iterdir()} - {"__pycache__"} == {
        "__init__.py", "__init__.pyi", "py.typed", "libmodel.so", "_mutad",
    }  # fmt: skip
    shown = subprocess.run(
        ["nm", "-D", "--defined-only", str(package / "libmodel.so")],
        capture_output=True,
        text=True,
        check=True,
    )
    names = {line.split()[-1].partition("@")[0] for line in shown.stdout.splitlines()}
    assert {"loss", "loss_python", "loss_grad_python", "model_strerror", "model_blas"} <= names
    assert all(name.startswith(("loss", "pick", "many", "positive", "constants", "rows", "store", "moved",
                                "product", "idle", "either", "flat", "shared", "model_"))
               for name in names)  # fmt: skip


SMALL = """
__version__ = "2.0rc1"
from mutad import compile

@compile
def total(u: "f64[:]"):
    return (u * u).sum()
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("wheel")
    (made / "small.py").write_text(SMALL)
    for place, more in (
        ("w", ()),
        ("again", ()),
        ("native", ("--cpu", "native", "--prefix", "p_", "-g")),
    ):
        command = [str(made / "small.py"), "--emit", "wheel", "-o", str(made / place), "-O1", *(
            more or ("--cpu", "x86-64-v2"))]  # fmt: skip
        assert aot.main([*command, "--grad", "total:u"]) == 0
    return made


def test_a_wheel_is_what_installers_expect(wheels: Path) -> None:
    (found,) = (wheels / "w").iterdir()
    subprocess.run([sys.executable, "-m", "zipfile", "-t", str(found)], check=True)
    with zipfile.ZipFile(found) as archive:
        names = archive.namelist()
        texts = {n.rpartition("/")[2]: archive.read(n).decode() for n in names if "dist-info" in n}
        for line in texts["RECORD"].splitlines()[:-1]:
            path, digest, size = line.split(",")
            data = archive.read(path)
            hashed = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
            assert (digest, int(size)) == (f"sha256={hashed}", len(data))
        recorded = {line.split(",")[0] for line in texts["RECORD"].splitlines()}
        assert recorded == set(names)
    assert texts["METADATA"].splitlines()[:3] == [
        "Metadata-Version: 2.1",
        "Name: small",
        "Version: 2.0rc1",
    ]
    assert "Requires-Dist: numpy>=2.0" in texts["METADATA"]
    assert "scipy" not in texts["METADATA"]
    tag = texts["WHEEL"].splitlines()[-1].removeprefix("Tag: ")
    assert found.name == f"small-2.0rc1-{tag}.whl"
    packaging = pytest.importorskip("packaging.utils")
    name, version, _, tags = packaging.parse_wheel_filename(found.name)
    assert (name, str(version), [str(t) for t in tags]) == ("small", "2.0rc1", [tag])


def test_a_wheel_is_installed(wheels: Path) -> None:
    (found,) = (wheels / "w").iterdir()
    target = wheels / "site"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-compile",
         "--target", str(target), str(found)],
        check=True,
    )  # fmt: skip
    script = (
        "import small, numpy as np; print(small.total(np.ones(3)), small.total.grad(np.ones(3)))"
    )
    assert run_apart(script, target) == "3.0 [2. 2. 2.]\n"


def test_what_a_cpu_lacks_is_said_on_import(wheels: Path) -> None:
    """Names of functions are the module's, whatever stands before them in C."""
    (found,) = (wheels / "native").iterdir()
    target = wheels / "native-site"
    with zipfile.ZipFile(found) as archive:
        archive.extractall(target)
    script = "import small, numpy as np; print(small.total.grad(np.ones(2)))"
    assert run_apart(script, target) == "[2. 2.]\n"
    tables = target / "small" / "_mutad" / "tables.py"
    text = tables.read_text()
    assert "'popcnt'" in text
    tables.write_text(text.replace("'popcnt'", "'avx1024'"))
    script = "try: import small\nexcept ImportError as error: print(error)"
    assert run_apart(script, target).startswith(
        "small was compiled for CPUs with avx1024, which this CPU lacks: compile it for a lower level"
    )


def test_the_same_model_makes_the_same_wheel(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (next((wheels / place).iterdir()).read_bytes() for place in ("w", "again"))
    assert first == second
    files = {"a": Output(b"1"), "b.dist-info/RECORD": Output(b"2")}
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    plain = archive(files)
    assert plain == archive(dict(reversed(files.items())))
    with zipfile.ZipFile(io.BytesIO(plain)) as made:
        assert [i.date_time for i in made.infolist()] == [(2023, 11, 14, 22, 13, 20)] * 2


def test_the_platform_is_what_the_library_needs(wheels: Path) -> None:
    """A tag of manylinux says which glibc; code for this machine alone has none."""
    names = {place: next((wheels / place).iterdir()).name for place in ("w", "native")}
    assert re.search(r"-py3-none-manylinux_2_\d+_x86_64\.whl$", names["w"])
    assert names["native"].endswith("-py3-none-linux_x86_64.whl")
    libc = Needs("x86_64", frozenset({"libc.so.6", "libm.so.6"}), (2, 29), frozenset())
    assert platform_tag(libc, native=False) == "manylinux_2_29_x86_64"
    assert platform_tag(replace(libc, glibc=(0, 0)), native=False) == "manylinux_2_5_x86_64"
    mvec = replace(libc, libraries=libc.libraries | {"libmvec.so.1"}, glibc=(2, 22))
    assert platform_tag(mvec, native=False) == "manylinux_2_24_x86_64"
    assert (
        platform_tag(replace(libc, libraries=frozenset({"libgomp.so.1"})), native=False)
        == "linux_x86_64"
    )
    assert (
        platform_tag(replace(libc, others=frozenset({"GCC_3.0"})), native=False) == "linux_x86_64"
    )
    assert platform_tag(replace(libc, machine="aarch64"), native=False) == "manylinux_2_29_aarch64"


def test_needs_are_those_that_readelf_shows(folder: Path) -> None:
    library = folder / "out" / "model" / "libmodel.so"
    needs = needs_of(library.read_bytes())
    shown = [
        subprocess.run(
            ["readelf", option, "-W", str(library)], capture_output=True, text=True, check=True
        ).stdout
        for option in ("-d", "-V")
    ]
    assert needs.libraries == {*re.findall(r"\(NEEDED\).*\[(.*)\]", shown[0])}
    versions = {(int(a), int(b)) for a, b in re.findall(r"Name: GLIBC_(\d+)\.(\d+)", shown[1])}
    assert needs.glibc == max(versions, default=(0, 0))
    assert needs.machine == "x86_64"


def test_where_packages_go(
    folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`-o` is a folder, which is made; other people's packages stay; where a file fails nothing is left."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.py").write_text(SMALL)
    (tmp_path / "file").write_text("")
    (tmp_path / "own" / "small").mkdir(parents=True)
    (tmp_path / "own" / "small" / "__init__.py").write_text("")
    for arguments, words in {
        ("python", "file"): "writes to a folder",
        ("wheel", "x.whl"): "names the folder of a wheel",
        ("python", "-"): "it is not text",
        ("python", "no/where"): "there is no folder no",
        ("python", "own"): "is there, and not of mutadc",
    }.items():
        kind, place = arguments
        assert aot.main(["small.py", "--emit", kind, "-o", place, "-O0"]) == 2
        assert words in capsys.readouterr().err
    with pytest.raises(OSError, match="broken"):
        break_writing(monkeypatch, tmp_path)
    assert not (tmp_path / "new").exists()


def break_writing(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """The second of two files cannot be written."""
    written: list[str] = []

    def beside(path: str, output: Output) -> str:
        written.append(path)
        if len(written) == 2:
            raise OSError("broken")
        return made(path, output)

    made = outputs.beside
    monkeypatch.setattr(outputs, "beside", beside)
    outputs.write_all({str(folder / "new" / "a" / name): Output(b"") for name in "xy"})


@pytest.mark.parametrize("seed", [21, 39])
def test_generated_programs_raise_as_compiled_ones(seed: int, tmp_path: Path) -> None:
    """The class, the message and its numbers, and the arrays as the exception leaves them."""
    function = Drawn(seed)(raising_programs.raising_programs()).function()
    names, name = [*inspect.signature(function).parameters], f"raising_{seed}"

    def arguments(flag: int) -> list[Any]:
        rng = np.random.default_rng(seed)
        x, y, z = (rng.uniform(-2, 2, shape) for shape in (4, 4, (4, 4)))
        return [x, y, z, rng.integers(-4, 4, 4), 0.7, flag]

    kinds = {p: argument_key(a, p) for p, a in zip(names, arguments(0), strict=True)}
    exports = export(function, kinds), export(function, kinds, "value_and_grad", (0, 1, 4))
    library = compile_exports(name, exports, Options(opt=1), for_python=True)
    write_all(
        {str(tmp_path / p): o for p, o in package_files(library, aot.Runtime().sources()).items()}
    )
    sys.path.insert(0, str(tmp_path))
    try:
        stub = getattr(importlib.import_module(name), function.__name__)
    finally:
        sys.path.pop(0)
    calls: dict[str, Any] = {}
    exec(CALLS, calls)
    compiled, raised = mutad.compile(function, grad=True, opt=1), set[str]()
    for flag in range(-2, 3):
        got, expected = (calls["called"](f, *arguments(flag)) for f in (stub, compiled))
        assert calls["plain"](got) == calls["plain"](expected)
        wrt = (names[1], 0, 4)
        got, expected = (
            calls["called"](f.value_and_grad, *arguments(flag), wrt=wrt) for f in (stub, compiled)
        )
        if isinstance(expected[0][0], str):
            raised.add(expected[0][0])
            assert calls["plain"](got) == calls["plain"](expected)
        else:
            np.testing.assert_allclose(got[0][1][0], expected[0][1][0], 1e-12, 1e-14)
    assert raised
