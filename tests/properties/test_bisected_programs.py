"""No pass changes what a generated program means: `mutad bisect` finds none that is wrong."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from profiles import profile
from small_programs import small_programs
from sweep_programs import sweep_program

from mutad.bisect import bisect
from mutad.compiler.request import Options, Request
from mutad.compiler.stage_dumps import dump_frontend
from mutad.runtime import keys

PROFILE = profile(few=3)


def dumped(function: Callable[..., Any], arguments: tuple[Any, ...], mode: str) -> str:
    """The dump of a program that is called like this."""
    found = tuple(keys.argument_key(a, "?") for a in arguments)
    wrt = tuple(k for k, key in enumerate(found) if keys.is_active_key(key))
    overlaps, options = keys.overlaps_of(arguments), Options(opt=1, stretch=True)
    request = Request(
        function, found, overlaps, mode, () if mode == "primal" else wrt, options=options
    )
    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.dict(os.environ, MUTAD_DUMP_DIR=folder),
    ):
        return Path(dump_frontend(request)).read_text()


def no_pass_is_wrong(function: Callable[..., Any], arguments: tuple[Any, ...], mode: str) -> None:
    code = function.__code__
    names = code.co_varnames[: code.co_argcount]
    inputs = {n: np.array(a) for n, a in zip(names, arguments, strict=True)}
    text = dumped(function, arguments, mode)
    wrong, _ = bisect(text, "dump.mlir", inputs)
    assert wrong is None, f"{wrong}"


MODES = st.sampled_from(["gradient", "vjp", "tangent", "hvp"])


@PROFILE
@given(small_programs(), MODES)
def test_small_programs(program: Any, mode: str) -> None:
    no_pass_is_wrong(program.function(), program.arguments(), mode)


@PROFILE
@given(st.integers(0, 2**30), MODES)
def test_sweeps(seed: int, mode: str) -> None:
    program = sweep_program(seed)
    no_pass_is_wrong(program.function(), program.arguments(), mode)
