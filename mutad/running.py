"""Running dumps: inputs from a file or a text, and what a run leaves, shown or written."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast
from zipfile import BadZipFile

import numpy as np
from xdsl.dialects.builtin import ModuleOp

from mutad.compiler.interpreter import Undefined, Unknown
from mutad.compiler.program_calls import (
    Call,
    WrongInputs,
    call_of,
    named_outcome,
    values_of,
)
from mutad.compiler.request import Options
from mutad.kernels import Compiled, Interpreted


@dataclass(frozen=True)
class Outcome:
    """What a run leaves: results and arrays by name, or the exception, and the arrays as they are then."""

    values: dict[str, Any]
    raised: BaseException | None = None


def inputs_of(text: str) -> dict[str, Any]:
    """Inputs by name: of a file, or of a text `name=value, name=value`. WrongInputs where it is neither."""
    if text.endswith(".npz"):
        try:
            with np.load(text) as file:
                return {name: file[name] for name in file.files}
        except (ValueError, BadZipFile) as error:
            raise WrongInputs(f"{text} is no file of arrays: {error}") from error
    try:
        call = ast.parse(f"_({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        if call.args or any(k.arg is None for k in call.keywords):
            raise WrongInputs(f"--args {text!r}: write name=value, with commas between")
        given = [(str(k.arg), ast.literal_eval(k.value)) for k in call.keywords]
        return dict(item for name, value in given for item in items_of(name, value))
    except (SyntaxError, ValueError) as error:
        raise WrongInputs(
            f"--args {text!r} is no file x.npz, and no text such as 'u=[1, 2], k=0.5': {error}"
        ) from error


def items_of(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """An input; of a tuple each item, by a name of its own."""
    if not isinstance(value, tuple):
        yield name, np.asarray(value)
        return
    for k, item in enumerate(cast("tuple[Any, ...]", value)):
        yield from items_of(f"{name}.{k}", item)


def run(
    module: ModuleOp,
    head: Mapping[str, Any] | None,
    inputs: Mapping[str, Any],
    options: Options | None,
    name: str = "",
) -> Outcome:
    """Run the function of a module, or the one that is named: as machine code if there are options."""
    call = call_of(module, head, name)
    return run_call(module, call, values_of(call, inputs), options)


def run_call(
    module: ModuleOp,
    call: Call,
    values: list[Any],
    options: Options | None = None,
    steps: int | None = None,
) -> Outcome:
    """Run a call with these values, which it changes; the interpreter takes so many `steps` at most."""
    engine = Interpreted(module, steps) if options is None else Compiled(module, options)
    try:
        results = engine(call, values)
    except (Undefined, Unknown):
        raise
    except Exception as error:
        return Outcome(named_outcome(call, values, None), error)
    return Outcome(named_outcome(call, values, results))


def shown(outcome: Outcome) -> str:
    """A line for each value, of ten digits."""
    lines = [f"{name} = {number_text(value)}" for name, value in outcome.values.items()]
    if (error := outcome.raised) is not None:
        notes = [f"  {note}" for note in getattr(error, "__notes__", ())]
        lines = [f"raises {type(error).__name__}: {error}", *notes, *lines]
    return "\n".join(lines) + "\n"


def number_text(value: Any) -> str:
    def one(number: Any) -> str:
        return f"{number:.10g}" if isinstance(number, float | np.floating) else str(number)

    if not isinstance(value, np.ndarray):
        return one(value)
    return np.array2string(value, separator=", ", formatter={"float_kind": one}, max_line_width=100)


def write(path: str, outcome: Outcome) -> None:
    """Write the values to a file of arrays; raises what the program has raised."""
    if outcome.raised is not None:
        raise outcome.raised
    save(path, outcome.values)


def save(path: str, values: Mapping[str, Any]) -> None:
    """Write numbers and arrays to a file of arrays."""
    write_arrays: Any = np.savez  # whose stub takes names for its options
    write_arrays(Path(path), **{name: np.asarray(value) for name, value in values.items()})
