"""What a user sees of a refusal beside its text: the line of the call, and nothing of the compiler."""

from __future__ import annotations

import dis
import functools
import inspect
import pickle
import pydoc
import traceback
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import mutad
from mutad.scipy import Problem


def refused(x):
    return np.linalg.eigvals(x).sum()


def around(x):
    return refused(x + 1.0)


def decorated(function):
    @functools.wraps(function)
    def call(*args, **kwargs):
        return function(*args, **kwargs)

    return call


class Model:
    @mutad.compile(grad=True)
    def method(self, x):
        return around(x)

    @mutad.compile(grad=True)
    @classmethod
    def of_class(cls, x):
        return around(x)

    @staticmethod
    @mutad.compile(grad=True)
    def static(x):
        return around(x)


MODEL = mutad.compile(around, grad=True)
CALLED = {
    "function": MODEL,
    "wrapper": mutad.compile(decorated(around), grad=True),
    "partial": mutad.compile(functools.partial(lambda k, x: around(x) * k, 2.0), grad=True),
    "method": Model().method,
    "class method": Model.of_class,
    "static method": Model.static,
    "batch": mutad.batch(MODEL),
}
X = np.ones((2, 2, 2))
DX = {"x": X.copy()}
MODES: dict[str, Callable[[Any], Any]] = {
    "call": lambda f: f(X),
    "inspect": lambda f: f.inspect("frontend", X),
    "html": lambda f: f.inspect.html("/dev/null", X),
    "grad": lambda f: f.grad(X),
    "value_and_grad": lambda f: f.value_and_grad(X),
    "vjp": lambda f: f.vjp(X),
    "jvp": lambda f: f.jvp(X, tangents=DX),
    "hvp": lambda f: f.hvp(X, direction=X),
    "value_grad_hvp": lambda f: f.value_grad_hvp(X, direction=X),
    "jacobian": lambda f: f.jacobian(X),
    "pullback": lambda f: f.pullback(mutad.Duplicated(X, X.copy()), cotangent=X[:, 0, 0]),
    "pushforward": lambda f: f.pushforward(mutad.Duplicated(X, X.copy())),
    "explain": lambda f: f.explain(X),
    "saved bytes": lambda f: mutad.assert_saved_bytes(f, X, at_most=0),
    "mutad.grad": lambda f: mutad.grad(f)(X),
    "mutad.vjp": lambda f: mutad.vjp(f)(X),
    "mutad.jvp": lambda f: mutad.jvp(f)(X, tangents=DX),
    "mutad.hvp": lambda f: mutad.hvp(f)(X, direction=X),
    "mutad.jacobian": lambda f: mutad.jacobian(f)(X),
}
MORE: dict[str, Callable[[Any], Any]] = {
    "hessian": lambda f: f.hessian(X),
    "sparse": lambda f: f.jacobian(X, sparsity="auto"),
    "sparsity": lambda f: f.jacobian_sparsity(X),
    "operator": lambda f: f.linear_operator(X),
    "count": lambda f: f.explain(X, run=True),
    "mutad.hessian": lambda f: mutad.hessian(f)(X),
    "check_gradient": lambda f: mutad.check_gradient(f, X),
    "scipy": lambda f: Problem(f, X).grad(X.ravel()),
}
"""What is not there of a batch."""


def not_here(error: BaseException) -> list[traceback.FrameSummary]:
    return [e for e in traceback.extract_tb(error.__traceback__) if e.filename != __file__]


@pytest.mark.parametrize("called", CALLED)
def test_nothing_of_ours_is_in_it(called: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("MUTAD_FULL_TRACEBACK", raising=False)
    for mode in MODES if called == "batch" else {**MODES, **MORE}:
        with pytest.raises(mutad.CompileError, match="eigvals is not compiled") as caught:
            (MODES | MORE)[mode](CALLED[called])
        assert not not_here(caught.value), mode
        shown = "".join(traceback.format_exception(caught.value))
        assert "During handling" not in shown
        assert "<" + "mutad: " not in shown
        assert shown.count("called here") == 1 + (called not in ("function", "batch"))
        assert "__array_wrap__" not in shown  # NumPy's own code has it


def test_the_compiler_is_in_it_where_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MUTAD_FULL_TRACEBACK", "1")
    with pytest.raises(mutad.CompileError) as caught:
        MODEL(X)
    entries = traceback.extract_tb(caught.value.__traceback__)
    assert any("compiler" in e.filename for e in entries)


@mutad.opaque
def foreign(x):
    raise KeyError("mine")


def element(x):
    return x[x.size]


def through(x):
    return element(x) * x.sum()


def asking(x):
    return foreign(x.sum()) + x.sum()


@pytest.mark.parametrize(
    "mode", ["call", "grad", "value_and_grad", "vjp", "jvp", "hvp", "jacobian"]
)
def test_what_compiled_code_raises_comes_with_lines_of_the_program(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MUTAD_FULL_TRACEBACK", raising=False)
    x = np.ones(3)
    given = {"jvp": {"tangents": {"x": x + 1.0}}, "hvp": {"direction": x + 1.0}}.get(mode, {})
    for program, name, raised in ((through, "element", IndexError), (asking, "foreign", KeyError)):
        if program is asking and mode not in ("call", "jvp"):
            continue  # there is no rule
        function: Any = mutad.compile(program, grad=True, cache=False, opt=0)
        for _ in range(2):  # the first call compiles
            with pytest.raises(raised) as caught:
                (function if mode == "call" else getattr(function, mode))(x, **given)
            assert not not_here(caught.value)
            entry = [at for at, _ in traceback.walk_tb(caught.value.__traceback__)][-1]
            place = traceback.extract_tb(caught.value.__traceback__)[-1]
            assert place.name == name
            assert entry.f_lineno == place.lineno  # what asks the frame sees the same line
            assert ".0" not in entry.f_code.co_varnames  # IPython shows the arguments of a frame
            assert caught.value.__context__ is None


@mutad.compile
def element_behind(x, i):
    i += 1
    return x[i]


def test_an_entry_has_the_function_and_an_instruction() -> None:
    """IPython shows the function's source, from the line that its code begins at. Its `executing` looks for
    the instruction, and goes back until it finds one."""
    lines, first = inspect.getsourcelines(element_behind.__wrapped__)
    for _ in range(2):
        with pytest.raises(IndexError) as caught:
            element_behind(np.ones(3), 5)
        last: Any = caught.value.__traceback__
        while last.tb_next is not None:
            last = last.tb_next
        frame = last.tb_frame
        assert inspect.getsourcelines(frame) == (lines, first)
        assert (frame.f_lineno, last.tb_lineno) == (first + 3, first + 3)
        assert last.tb_lasti in [one.offset for one in dis.get_instructions(frame.f_code)]
        traceback.clear_frames(caught.value.__traceback__)


def test_what_is_checked_raises_with_lines_of_the_program() -> None:
    with pytest.raises(IndexError) as caught:
        mutad.check_gradient(mutad.compile(through, grad=True, cache=False, opt=0), np.ones(3))
    assert not not_here(caught.value)


@pytest.mark.parametrize(
    "call",
    [
        lambda: MODEL(X, 3),
        lambda: MODEL.grad(X, wrt="y"),
        lambda: MODEL.hvp(X),
        lambda: MODEL.jvp(X, tangent=X),
        lambda: CALLED["partial"].grad(X, wrt="y"),
        lambda: CALLED["wrapper"].grad(X, wrt="y"),
        lambda: mutad.grad(MODEL, argnums=0),
        lambda: mutad.compile(around).grad,
        lambda: mutad.jit,
        lambda: mutad.opaque(3),
        lambda: mutad.rule(3),
        lambda: mutad.check_rule(around, X),
        lambda: mutad.check_gradient(around, X),
        lambda: mutad.set_num_threads(0),
        lambda: mutad.compile(around)(2**70),
        lambda: mutad.vjp(lambda x: x + x)(X)[1](np.ones(4)),
        lambda: mutad.vjp(lambda xs: xs[0] + 1.0)([1.0])[1](1.0, ys=2.0),
        lambda: mutad.assert_saved_bytes(
            mutad.compile(lambda x: (np.sin(x) * x).sum(), grad=True), X, at_most=-1
        ),
    ],
)
def test_errors_about_a_call_have_nothing_of_ours(call: Callable[[], Any]) -> None:
    with pytest.raises(
        (TypeError, ValueError, AttributeError, AssertionError, OverflowError)
    ) as caught:
        call()
    assert not not_here(caught.value)


def test_faults_of_ours_show_where(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> Any:
        return np.ones(2) @ np.ones(3)

    function: Any = mutad.compile(lambda x: x.sum(), grad=True)
    monkeypatch.setattr(type(function.dispatcher), "specialize", broken)
    with pytest.raises(ValueError, match="matmul") as caught:
        function(X)
    assert any("dispatch" in e.filename for e in not_here(caught.value))


def test_what_there_is() -> None:
    assert {*mutad.__all__} <= {*dir(mutad)}
    assert not [n for n in dir(mutad) if n.startswith("_") and not n.startswith("__")]
    assert all(hasattr(mutad, name) for name in dir(mutad))


@mutad.compile(grad=True, opt=1)
def cubed(x):
    return (x**3).sum()


def test_a_prompt_shows_what_is_for_users() -> None:
    """`dir` has what one may ask an object for; what calls return shows in a line, a receipt as its table."""
    back = cubed.vjp(X)[1]
    held = Model().method
    made = [cubed, mutad.batch(cubed), mutad.grad(cubed), held, Model.of_class, cubed.inspect, back]
    for one in made:
        assert not [n for n in dir(one) if n.startswith("_") and not n.startswith("__")]
        assert {"dispatcher", "found", "loops", "shown"}.isdisjoint(dir(one))
        assert "__call__" in dir(one)
        assert len(repr(one).splitlines()[0]) < 140
    assert {"grad", "explain", "inspect", "__wrapped__", "__doc__"} <= {*dir(cubed)}
    receipt = cubed.explain(X)
    assert repr(receipt) == str(receipt)
    assert "saved: 0 bytes" in repr(receipt)


def test_help_shows_what_there_is() -> None:
    def spring(x, k=2.0):
        """The energy of a spring."""
        return k * x * x

    shown = pydoc.render_doc(mutad.compile(spring, grad=True), renderer=pydoc.plaintext)
    for words in ("spring(x, k=2.0)", "The energy of a spring.", "value_and_grad", "`explain`"):
        assert words in shown
    shown = pydoc.render_doc(mutad.compile(around), renderer=pydoc.plaintext)
    assert "around(x)" in shown
    assert "compile(grad=True)" in shown


@mutad.opaque(returns=float)
def squared(x):
    return float(x) ** 2


@mutad.rule(squared)
def squared_rule(x, y):
    x.cotangent += 2.0 * x.value * y.cotangent


REFUSALS: dict[str, Callable[[], Any]] = {
    "a program": lambda: mutad.compile(refused)(X[0]),
    "no tangent": lambda: mutad.compile(lambda x: squared(x), grad=True).hvp(1.0, direction=1.0),
}


@pytest.mark.parametrize("title", REFUSALS)
def test_a_refusal_has_a_name_that_users_know_and_goes_to_other_processes(title: str) -> None:
    with pytest.raises(mutad.CompileError) as caught:
        REFUSALS[title]()
    error = caught.value
    assert "".join(traceback.format_exception_only(error)) == f"mutad.CompileError: {error}\n"
    there = pickle.loads(pickle.dumps(error))
    assert (type(there), str(there)) == (type(error), str(error))
