"""Dumps of `MUTAD_DUMP`: each is a program, whose head says all that the stages after it must know.

The head is a comment, a line each: the function, how it is called, the arguments' types, the mode, the
options, the stages so far, and what the frontend found out besides the IR. With it a compilation goes on
from the dump as it did from the stage: `mutad-opt dump.mlir --from=simplify --to=llvm`.
"""

from __future__ import annotations

import ast
import os
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import FunctionType
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .compilation import Compilation
from .diagnostics import line_of_function
from .pass_hooks import Reproducer, spec_of, write_reproducer
from .pipeline import STAGES, Stage, stages_for, stages_of
from .print_ir import module_text
from .request import Options, Request

TITLE = "// mutad dump"
RESUMED = ("frontend", "simplify", "adjoint", "optimize")
"""The stages after which there is IR to go on from; the plan is only shown."""


FIELDS = frozenset(
    [
        "function",
        "place",
        "parameters",
        "keyword-only",
        "inputs",
        "arguments",
        "overlaps",
        "mode",
        "wrt",
        "single",
        "options",
        "target",
        "stages",
        "passes",
        "results",
        "written",
        "assumed",
        "records",
    ]
)
"""What a head says."""

RUN = "run"
"""What `--to` calls running the program; its stages end where LLVM's begin."""


class NotResumed(Exception):
    """A compilation cannot go on from this file, or not so."""


def write_dump(c: Compilation, stage: Stage) -> str:
    """Write what `stage` left to the dump directory: `<function>-<mode>-<key>.<n>-<stage>.<suffix>`."""
    c.locations = True
    return write_to(c, f"{number_of(stage.name)}-{stage.name}.{stage.suffix}", dump_of(c, stage))


def dump_of(c: Compilation, stage: Stage) -> str:
    """What a stage left as text, under its head if it is IR."""
    head = head_of(c, stages_until(c.request, stage.name)) if stage.suffix == "mlir" else ""
    return head + stage.show(c)


@dataclass
class PassDumps:
    """Writes what each pass left: `<function>-<mode>-<key>.<n>-<stage>.<m>-<pass>.mlir`."""

    c: Compilation
    stage: str = ""
    passes: tuple[str, ...] = ()
    """Those of the stage so far."""

    def __call__(self, one: ModulePass, module: ModuleOp) -> None:
        stage, before = self.c.stage, self.passes if self.c.stage == self.stage else ()
        self.stage, self.passes = stage, (*before, spec_of(one))
        name = f"{number_of(stage)}-{stage}.{len(self.passes):02}-{one.name}.mlir"
        head = head_of(self.c, stages_until(self.c.request, stage)[:-1], self.passes)
        write_to(self.c, name, head + module_text(module))


def number_of(stage: str) -> int:
    """Those of devices come where the CPU's code would."""
    names = [s.name for s in STAGES]
    return names.index(stage if stage in names else "llvm") + 1


def stages_until(request: Request, stage: str) -> tuple[str, ...]:
    names = [s.name for s in stages_for(request)]
    return tuple(names[: names.index(stage) + 1])


def dump_frontend(request: Request) -> str:
    """Write the program as the frontend makes it; the file."""
    c = Compilation(request)
    STAGES[0].run(c)
    return write_dump(c, STAGES[0])


def write_to(c: Compilation, end: str, text: str) -> str:
    """Write one file of the dump directory, named by the request and what it shows; its path."""
    r = c.request
    key = zlib.crc32(repr((r.arguments, r.overlaps, r.wrt, r.options)).encode())
    name = r.function.__qualname__.replace("<", "").replace(">", "")
    directory = Path(os.environ.get("MUTAD_DUMP_DIR", "mutad-dump"))
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / f"{name}-{r.mode}-{key:08x}.{end}"
    path.write_text(text + "\n", encoding="utf-8")
    return str(path)


def head_of(c: Compilation, stages: tuple[str, ...], passes: tuple[str, ...] = ()) -> str:
    """The head of a dump: after these stages, and these passes of the next."""
    r, at, code = c.request, line_of_function(c.request.function), c.request.function.__code__
    target = r.options.target
    positional, every = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    fields: dict[str, object] = {
        "function": r.function.__qualname__,
        "place": (at.file, at.line) if at is not None else ("", 1),
        "parameters": code.co_varnames[:positional],
        "keyword-only": code.co_varnames[positional:every],
        "inputs": c.inputs,
        "arguments": r.arguments,
        "overlaps": r.overlaps,
        "mode": r.mode,
        "wrt": r.wrt,
        "single": r.single,
        "options": {**vars(r.options), "target": None},
        "target": None if target is None else (target.cpu, sorted(target.features), target.triple),
        "stages": stages,
        "passes": passes,
        "results": c.built.results,
        "written": c.built.written,
        "assumed": c.built.assumed,
        "records": c.built.records,
    }
    return "".join(f"{line}\n" for line in (TITLE, *(f"// {k}: {v!r}" for k, v in fields.items())))


def read_head(text: str) -> dict[str, Any] | None:
    """The head of a dump, or None where the file is another."""
    title, *lines = text.splitlines() or [""]
    if title != TITLE:
        return None
    fields = dict[str, Any]()
    for line in lines:
        name, colon, value = line.removeprefix("// ").partition(": ")
        if not line.startswith("// ") or not colon:
            break
        fields[name] = ast.literal_eval(value)
    return fields


def reproducing(request: Request) -> str | None:
    """The command that runs what failed alone, which a second compilation finds.

    That is a pass on what it began with, or the stages after the last dump. None for the frontend's faults,
    and for those that do not happen again.
    """
    c, reproducer, last = Compilation(request), Reproducer(), ""
    c.hooks.append(reproducer)
    c.locations = True
    for stage in stages_for(request):
        try:
            stage.run(c)
        except Exception:
            again = f"--to={stage.name}"
            return reproducer.write() or (
                write_reproducer(stage.name, last, again) if last else None
            )
        if stage.name in RESUMED:
            last = dump_of(c, stage)
    return None


def resumed(head: dict[str, Any], module: ModuleOp) -> Compilation:
    """The compilation that the dump is of, as far as it came."""
    from .frontend.build import Built

    options = Options(**head["options"])
    if head["target"] is not None:
        from .codegen.llvm_module import Host

        cpu, features, triple = head["target"]
        options = replace(options, target=Host(cpu, frozenset(features), triple))
    c = Compilation(
        Request(
            stand_in(head),
            head["arguments"],
            head["overlaps"],
            head["mode"],
            head["wrt"],
            head["single"],
            options,
        )
    )
    c.module, c.inputs = module, head["inputs"]
    found = head["results"], head["written"], [], [], head["assumed"], head["records"]
    c.built = Built(module, *found)
    return c


def stand_in(head: dict[str, Any]) -> Callable[..., Any]:
    """A function that is called like the one of the dump, which need not be there, and has its place."""
    names = (*head["parameters"], *head["keyword-only"])
    file, line = head["place"]
    code = (lambda: None).__code__.replace(
        co_name=head["function"].rpartition(".")[2],
        co_filename=file,
        co_firstlineno=line,
        co_argcount=len(head["parameters"]),
        co_kwonlyargcount=len(head["keyword-only"]),
        co_varnames=names,
        co_nlocals=len(names),
    )
    function = FunctionType(code, {})
    function.__qualname__ = head["function"]
    return function


def stages_between(head: dict[str, Any] | None, first: str, last: str) -> Sequence[Stage]:
    """The stages after `first`, or after those of the dump if none is named, up to `last`."""
    if head is None:
        raise NotResumed("this is no dump that MUTAD_DUMP wrote: it does not begin with a head")
    if missing := FIELDS - head.keys():
        raise NotResumed(f"the head does not say: {', '.join(sorted(missing))}")
    done = head["stages"][-1] if head["stages"] else ""
    if head["passes"]:
        raise NotResumed(f"this dump is within a stage, after the pass {head['passes'][-1]}")
    if first not in ("", done):
        raise NotResumed(f"this is a dump of {done}: --from={done}")
    if done not in RESUMED:
        raise NotResumed(f"{done} only shows: go on from one of {', '.join(RESUMED)}")
    stages = stages_of(head["mode"], head["options"].get("device", ""))
    left = stages[[s.name for s in stages].index(done) + 1 :]
    names = [s.name for s in left]
    if last == RUN:
        return left[: names.index("llvm" if "llvm" in names else "kernels")]
    if last not in names:
        raise NotResumed(f"--to={last}: the stages after {done} are {', '.join(names)}, and {RUN}")
    return left[: names.index(last) + 1]
