"""Programs of the tests with names, literals and nesting changed by chance: compiled, or refused at a line.

Any other exception of the compiler is a failure, the faults that it tells as its own among them. Nothing is
run. In CI a few programs, always the same ones; with `HYPOTHESIS_PROFILE=dev` thousands, others each time.
"""

from __future__ import annotations

import os
from itertools import islice
from random import Random
from typing import Any

import numpy as np
from mutations import Mutant, mutants

import mutad
from mutad.compiler.diagnostics import is_library

LARGE = os.environ.get("HYPOTHESIS_PROFILE") == "dev"
SEED = Random().randrange(2**32) if LARGE else 12
COUNT = 3000 if LARGE else 50


def compiled(program: Mutant, stage: str) -> None:
    """The program as LLVM's IR, its gradient's where it may have one, and its receipt as text."""
    function, arguments = program.function(), program.arguments()
    primal = mutad.compile(function, grad=True, cache=False, opt=0)
    primal.inspect(stage, *arguments)
    if arguments and is_float(arguments[0]):
        str(primal.explain(*arguments))
        primal.inspect(stage, *arguments, wrt=0)


def is_float(value: Any) -> bool:
    return isinstance(value, float) or (isinstance(value, np.ndarray) and value.dtype.kind == "f")


def test_whatever_is_not_compiled_is_refused_at_a_line() -> None:
    refused: list[tuple[mutad.CompileError, Mutant]] = []
    for number, program in enumerate(islice(mutants(SEED), COUNT)):
        try:
            compiled(program, "llvm-opt" if number % 5 == 0 else "llvm")
        except mutad.CompileError as error:
            refused.append((error, program))
        except Exception as error:
            raise AssertionError(f"seed {SEED}, program {number}: {program}") from error
    for error, program in refused:
        assert error.span is not None, f"seed {SEED}: {program}"
        assert not is_library(error.span.file), f"seed {SEED}: {program}"
        assert error.span.source(), f"seed {SEED}: {program}"
        assert str(error).startswith(str(error.span))
    assert COUNT // 5 < len(refused) < 4 * COUNT // 5
