"""Expressions with hundreds of operands and levels: compiled as CPython compiles them."""

import contextvars
import importlib.util
import signal
import sys
import threading
import time
from _thread import interrupt_main
from pathlib import Path
from types import FunctionType

import numpy as np
import pytest

from mutad import CompileError, compile
from mutad.compiler import deep_stack


def function_of(source: str, folder: Path) -> FunctionType:
    """The function `f` of a module with this source."""
    file = folder / "deep.py"
    file.write_text(source)
    spec = importlib.util.spec_from_file_location("deep", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.f


def returned(expression: str) -> str:
    return f"import numpy as np\ndef f(x):\n    return {expression}\n"


def nested(before: str, inner: str, after: str, depth: int) -> str:
    return returned(before * depth + inner + after * depth)


PROGRAMS = {
    "400 operands": returned(" + ".join(f"x[{k % 5}]" for k in range(400))),
    "400 array operands": returned(" + ".join(["x"] * 400)),
    "180 parentheses": nested("(", "x[0]", " + 1)", 180),
    "180 parentheses on the right": nested("x[0] - (", "x[1]", ")", 180),
    "190 signs": nested("-", "x[0]", "", 190),
    "100 conditional expressions": nested("(x[1] if x[0] > 0 else ", "x[2]", ")", 100),
    "200 comparisons": returned("x[0]" + " <= x[2]" * 200),
    "400 strings": returned("x[0] if " + " + ".join(["'a'"] * 400) + " == 'a' else x[1]"),
    "100 calls": nested("np.where(x > 1, x, ", "x", ")", 100),
    "90 tuples": nested("(", "x[0]", ",)", 90),
    "150 tuples": nested("(", "x", ",)", 150),
    "a tuple of 100 pairs": returned(f"({'(x, x), ' * 100})"),
    "a tuple of 200 empty ones": returned(f"({'(), ' * 200})"),
}


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_like_python(source: str, tmp_path: Path) -> None:
    f = function_of(source, tmp_path)
    x = np.array([0.5, 0.25, 2.0, 3.0, 4.0])
    assert repr(compile(f, opt=1)(x)) == repr(f(x))


def test_gradients_and_receipts(tmp_path: Path) -> None:
    f = compile(function_of(PROGRAMS["400 operands"], tmp_path), grad=True, opt=1)
    x = np.ones(5)
    assert (f.grad(x) == 80.0).all()
    assert f.explain(x).saved_bytes == 0
    assert f.inspect("optimize", x).count("arith.addf") == 399


def test_what_is_too_deep_says_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deep_stack, "FRAMES", 0)
    source = nested("(x[1] if x[0] > 0 else ", "x[2]", ")", 190)
    f = function_of(source, tmp_path)
    with pytest.raises(CompileError, match="nested too deeply") as caught:
        compile(f, opt=1)(np.ones(5))
    assert caught.value.span is not None
    assert (caught.value.span.file, caught.value.span.line) == (str(tmp_path / "deep.py"), 3)
    assert caught.value.way_out is not None


def frames(n: int) -> int:
    return 0 if n == 0 else 1 + frames(n - 1)


def fails() -> None:
    raise ValueError("no")


def test_the_deep_stack_leaves_the_process_as_it_was() -> None:
    before = sys.getrecursionlimit(), threading.stack_size()
    seen = contextvars.ContextVar[int]("seen")
    seen.set(7)
    assert deep_stack.on_deep_stack(lambda: frames(50_000)) == 50_000
    assert deep_stack.on_deep_stack(seen.get) == 7
    with pytest.raises(ValueError, match="no"):
        deep_stack.on_deep_stack(fails)
    assert (sys.getrecursionlimit(), threading.stack_size()) == before


def test_the_deep_stack_can_be_interrupted() -> None:
    ended = threading.Event()

    def works() -> None:
        try:
            interrupt_main()
            for _ in range(10_000):
                time.sleep(0.001)
        finally:
            ended.set()

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in background jobs
    try:
        with pytest.raises(KeyboardInterrupt):
            deep_stack.on_deep_stack(works)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert ended.is_set()
