"""Gradient programs on a device: in place (`target="cuda:host"`), and on arrays of the device that is in use.

Both are held against the CPU's code: cotangents, tangents, products, what is left of the arguments. What is
refused says where, and what to do, and is in the list of `device_refusals`. `MUTAD_ON_DEVICES=programs` looks
at one row of every program of every table, `MUTAD_ON_DEVICES=rows` at all of them; then no thread of any
launch may race with another (`race_oracle`), which else is looked at for a part of the programs.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any

import numpy as np
import pytest
from assembled_kernels import assembled
from device_refusals import OTHER, kind_of
from gradient_oracle import GradientCase, GradientPrograms, Memory, assert_close, random_cotangent
from on_device import on_device, on_host
from python_oracle import arrays_in, run
from race_oracle import watched
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp

import mutad
from mutad import Active, CompileError, Const, Duplicated
from mutad.compiler.kernels.outline_kernels import OutlineKernels

ASKED = os.environ.get("MUTAD_ON_DEVICES", "some")
CPU_ONLY = {"memory", "parallel"}


def device_cases(programs: GradientPrograms) -> list[GradientCase]:
    """A row of each program, of which `--devices` chooses another part each day; or all rows."""
    rows = programs.cases if ASKED == "rows" else programs.first
    return [c for c in rows if CPU_ONLY.isdisjoint(dict(c.options))]


def check_kernels(case: GradientCase) -> dict[str, str | None]:
    """The kernels give the cotangents of the CPU's code, in place and on a device; there all calls do.

    Returns why calls were refused, by the name of each that was tried; None for those that ran.
    """
    bar = cotangent_of(case)
    wanted = pulled_back(case, case.compiled(opt=1), bar)
    tried: dict[str, str | None] = {}
    try:
        found = pulled_back(case, case.compiled(opt=1, target="cuda:host"), bar)
    except CompileError as error:
        assert_located(error)
        tried["in_place"] = kind_of(error)
    else:
        assert_close(found, wanted, "kernels", single=case.is_single)
        tried["in_place"] = None
    return tried | check_on_device(case)


def calls_of(case: GradientCase) -> list[Callable[..., Any]]:
    """What a device is asked for; what refuses the first of these refuses all."""
    return [pulled_back, pulled_later, pushed_forward, *[multiplied] * case.is_scalar_valued]


def check_on_device(case: GradientCase) -> dict[str, str | None]:
    """Calls on arrays of a device, real where there is one: all, where more is asked for than some."""
    bar = cotangent_of(case)
    function = case.compiled(opt=1)
    calls = calls_of(case)
    if ASKED == "some":  # and one of the others
        calls[1:] = [calls[1 + zlib.crc32(str(case).encode()) % (len(calls) - 1)]]
    tried: dict[str, str | None] = {}
    with device_for(case), assembled(str(case)):
        for call in calls:
            wanted = outcome(lambda: call(case, function, bar))
            found = outcome(lambda: call(case, function, bar, on_device))
            if isinstance(wanted, CompileError):  # a function with a rule has no tangent
                assert isinstance(found, CompileError)
            elif isinstance(found, CompileError | TypeError):
                assert_located(found)
                tried[call.__name__] = kind_of(found)
                if call is pulled_back:
                    break
            else:
                assert_close(found, wanted, call.__name__, single=case.is_single)
                tried[call.__name__] = None
    return tried


class Outlined(BaseException):
    """A program has become kernels."""


def refusals_of(case: GradientCase) -> dict[str, str]:
    """Why calls are refused, by their names: compiled as far as that says."""
    outline = OutlineKernels.apply

    def apply(self: OutlineKernels, ctx: Context, op: ModuleOp) -> None:
        outline(self, ctx, op)
        raise Outlined

    bar, function, found = cotangent_of(case), case.compiled(opt=1, cache=False), dict[str, str]()
    with mutad.cuda.emulated(), pytest.MonkeyPatch.context() as patch:
        patch.setattr(OutlineKernels, "apply", apply)
        in_place = case.compiled(opt=1, cache=False, target="cuda:host")
        with suppress(Outlined):
            error = outcome(lambda: pulled_back(case, in_place, bar))
            if isinstance(error, Exception) and (kind := kind_of(error)) != OTHER:
                found["in_place"] = kind
        for call in calls_of(case):
            try:
                error = outcome(lambda: call(case, function, bar, on_device))
            except Outlined:
                continue
            if isinstance(error, Exception) and (kind := kind_of(error)) != OTHER:
                found[call.__name__] = kind  # another one: the CPU refuses it as well
    return found


@contextmanager
def strict() -> Generator[None]:
    """The emulated device, of which no call may break a rule."""
    with mutad.cuda.emulated() as driver:
        yield
        assert not driver.unexpected


def device_for(case: GradientCase) -> AbstractContextManager[Any]:
    """The device in use; the emulated one, its launches looked at, where there is none."""
    if mutad.cuda.is_available():
        return nullcontext()
    looks = ASKED != "some" or zlib.crc32(str(case).encode()) % 4 == 0
    return watched() if looks else strict()


def outcome(call: Callable[[], Any]) -> Any:
    """What a call returns, or why it is refused."""
    try:
        return call()
    except CompileError as error:
        return error
    except TypeError as error:
        if "is an array of the host" in str(error):
            return error
        raise


def assert_located(error: Exception) -> None:
    """A refusal names the place, and a way out."""
    if isinstance(error, CompileError):
        assert error.span is not None
        assert error.way_out


def cotangent_of(case: GradientCase) -> Any:
    plain = run(case.function, case.row)
    assert plain.exception is None
    return random_cotangent(np.random.default_rng(1), plain.result, plain.arguments)


Place = Callable[[tuple[Any, ...]], tuple[Any, ...]]


def stays(values: tuple[Any, ...]) -> tuple[Any, ...]:
    return values


def beside(
    case: GradientCase, place: Place, start: float
) -> tuple[tuple[Any, ...], dict[int, Any], Sequence[Any]]:
    """The arguments where they are to be, of active arrays what lies as they do, and that as a whole."""
    memory = Memory(case.arguments(), case.active())
    owned = [np.linspace(start, 1.5, s.size).astype(s.dtype) for s in memory.like()]
    arrays = [k for k in memory.active if isinstance(memory.arguments[k], np.ndarray)]
    moved = place((*memory.arguments, *(memory.view(k, owned) for k in arrays), *owned))
    count = len(memory.arguments)
    views = moved[count : count + len(arrays)]
    return moved[:count], dict(zip(arrays, views, strict=True)), moved[count + len(arrays) :]


def left(result: Any, arguments: tuple[Any, ...], owned: Sequence[Any]) -> tuple[Any, ...]:
    """All that a call has computed, on the host."""
    return on_host((result, *owned, *arrays_in(on_host(arguments))))


def placed(bar: Any, place: Place) -> Any:
    if isinstance(bar, tuple):
        return tuple(placed(b, place) for b in bar)
    return place((bar,))[0]


def has_some(bar: Any) -> bool:
    return any(map(has_some, bar)) if isinstance(bar, tuple) else bar is not None


def pulled_back(case: GradientCase, function: Any, bar: Any, place: Place = stays) -> Any:
    arguments, shadows, owned = beside(case, place, 0.5)
    active = case.active()
    wrapped = [
        Const(a) if k not in active else Duplicated(a, shadows[k]) if k in shadows else Active(a)
        for k, a in enumerate(arguments)
    ]
    given = {"cotangent": placed(bar, place)} if has_some(bar) else {}
    return left(function.pullback(*wrapped, **given), arguments, owned)


def pulled_later(case: GradientCase, function: Any, bar: Any, place: Place = stays) -> Any:
    arguments, _, _ = beside(case, place, 0.5)
    result, back = function.vjp(*arguments, wrt=case.active())
    given = (placed(bar, place),) if has_some(bar) else ()
    return left((result, back(*given), back(*given)), arguments, ())


def pushed_forward(case: GradientCase, function: Any, bar: Any, place: Place = stays) -> Any:
    arguments, dots, owned = beside(case, place, 0.5)
    active = case.active()
    wrapped = [
        Const(a) if k not in active else Duplicated(a, dots.get(k, 0.7))
        for k, a in enumerate(arguments)
    ]
    return left(function.pushforward(*wrapped), arguments, owned)


def multiplied(case: GradientCase, function: Any, bar: Any, place: Place = stays) -> Any:
    arguments, along, _ = beside(case, place, 0.5)
    direction = tuple(along.get(k, 0.7) for k in case.active())
    made = function.value_grad_hvp(*arguments, wrt=case.active(), direction=direction)
    return left(made, arguments, ())
