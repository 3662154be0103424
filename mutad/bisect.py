"""`mutad bisect`: the first pass after which the answer of a dumped program is wrong.

The passes that the dump has before it run one by one. After each the program runs in the interpreter (with
`--compiled`, as machine code) and is compared with what it was (`pass_checks`): it returns, leaves and raises
the same up to rounding, and a derivative agrees with differences. With `--expect` it is compared with a file
of what it should return and leave instead. In the end machine code is compared, without and with LLVM's
optimization.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
import tempfile
from collections import Counter
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.context import Context
from xdsl.dialects import get_all_dialects
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ParseError

from mutad.compiler.compilation import Compilation
from mutad.compiler.diagnostics import CompileError, CompilerFault, place_of, versions
from mutad.compiler.interpreter import Undefined, Unknown
from mutad.compiler.pass_hooks import Reproducer, spec_of, what_failed, within
from mutad.compiler.print_ir import module_text
from mutad.compiler.program_calls import WrongInputs, call_of, values_of
from mutad.compiler.stage_dumps import (
    RUN,
    NotResumed,
    head_of,
    read_head,
    resumed,
    stages_between,
    stages_until,
)
from mutad.dialects.activation import Activation
from mutad.dialects.ad import Ad
from mutad.dialects.array import Array
from mutad.dialects.dense import Dense
from mutad.dialects.foreign import Foreign
from mutad.dialects.special import Special
from mutad.pass_checks import PassCheck, compiled, differing, interpreted
from mutad.running import Outcome, inputs_of, save


@dataclass(frozen=True)
class Wrong:
    """A step after which the answer is wrong."""

    step: str
    """In words."""
    what: str
    """The difference."""
    reproduce: tuple[str, ...] = ()
    """The file with the IR before it, and the command."""

    def __str__(self) -> str:
        lines = [f"{self.step} makes the answer wrong:", f"  {self.what}"]
        return "\n".join([*lines, *(f"  {line}" for line in self.reproduce)])


class Found(Exception):
    """The step is found."""

    def __init__(self, wrong: Wrong) -> None:
        super().__init__(str(wrong))
        self.wrong = wrong


def read_module(text: str, name: str) -> ModuleOp:
    context = Context()
    for dialect_name, dialect in get_all_dialects().items():
        context.register_dialect(dialect_name, dialect)
    for dialect in (Array, Ad, Foreign, Activation, Dense, Special):
        context.load_dialect(dialect)
    return Parser(context, text, name).parse_module()


@dataclass
class Bisection:
    """The steps of one dump, each checked."""

    c: Compilation
    head: Mapping[str, Any]
    check: PassCheck
    expected: dict[str, Any] | None = None
    stage: str = ""
    passes: list[str] = field(default_factory=list[str])
    """Those of the stage so far."""
    seen: Counter[str] = field(default_factory=Counter[str])
    """The passes of each stage that changed the program, and kept its answer."""
    latest: ModuleOp | None = None
    """What the latest pass left."""
    gradient: ModuleOp | None = None
    """The gradient function, where the gradient of that is taken."""

    def hook(self, one: ModulePass, module: ModuleOp) -> Any:
        return self.around(one, module)

    @contextmanager
    def around(self, one: ModulePass, module: ModuleOp) -> Generator[None]:
        """Check what a pass does to the program; others work on code that is no program yet."""
        if module is not self.c.module:
            yield
            return
        if self.latest is not None:
            self.between(module)
        before, passes = module.clone(), tuple(self.passes)
        yield
        self.passes.append(spec_of(one))
        if module_text(before, False) != module_text(module, False):
            name = f"the pass {spec_of(one)} of the stage {self.stage}"
            wrong = self.compare(one, before, module)
            if wrong is not None:
                raise Found(Wrong(name, wrong, self.reproducing(one, before, module, passes)))
            self.seen[self.stage] += 1
        if type(one).name == "reverse" and "shadows" not in last_attributes(before):
            self.gradient = None
        elif type(one).name == "reverse":
            self.gradient = before
        self.latest = module.clone()

    def between(self, module: ModuleOp) -> None:
        """Check what a stage has done since the latest pass: the gradient of a gradient is its tangent."""
        assert self.latest is not None
        if self.gradient is None or "moving" not in last_attributes(module):
            return
        gradient, self.gradient = self.gradient, None
        wrong = self.said(lambda: self.check.forward(gradient, module))
        if wrong is not None:
            raise Found(Wrong(f"the stage {self.stage}, after its passes,", wrong))

    def compare(self, one: ModulePass | None, before: ModuleOp, after: ModuleOp) -> str | None:
        if self.expected is not None:
            expected = self.expected
            return self.said(lambda: self.unexpected(after, expected))
        return self.said(lambda: self.check.of(one, before, after))

    def said(self, check: Any) -> str | None:
        """What a check says; that a program has no meaning any more is wrong, too."""
        try:
            return check()
        except Undefined as error:
            return f"it has no meaning: {error}"

    def unexpected(self, module: ModuleOp, expected: Mapping[str, Any]) -> str | None:
        """What is not as it should be, of what there is."""
        call = call_of(module, self.head)
        names = {p.name for p in call.parameters}
        inputs = {name: v for name, v in self.check.inputs.items() if name in names}
        left = self.check.run(module, call, values_of(call, inputs))
        if left.raised is not None:
            return f"it raises {type(left.raised).__name__}: {left.raised}"
        known = {name: v for name, v in expected.items() if name in left.values}
        if wrong := differing(Outcome(known), left, list(known), self.check.slopes):
            return wrong.replace("before", "expected").replace("after", "found")
        return None

    def reproducing(
        self, one: ModulePass, before: ModuleOp, after: ModuleOp, passes: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Write the IR before a pass, and the inputs after it; the lines that say what to do with them."""
        stages = stages_until(self.c.request, self.stage)[:-1]
        folder = os.environ.get("MUTAD_DUMP_DIR")
        if folder is not None:
            os.makedirs(folder, exist_ok=True)
        handle, path = tempfile.mkstemp(".mlir", f"mutad-{one.name}-", folder)
        head = head_of(self.c, stages, passes)
        with open(handle, "w", encoding="utf-8") as file:
            file.write(f"{head}{module_text(before)}\n// {versions()}\n")
        call = call_of(after, self.head)
        names = [p.name for p in call.parameters]
        values = zip(names, self.check.values(call), strict=True)
        inputs = f"{path.removesuffix('.mlir')}.npz"
        save(inputs, {name: value for name, value in values if not hasattr(value, "bit_generator")})
        arguments = f"-p {shlex.quote(spec_of(one))} --run --args {shlex.quote(inputs)}"
        return (
            f"the IR before it: {path}",
            f"again, alone: mutad-opt {shlex.quote(path)} {arguments}",
        )

    def run(self) -> None:
        """Run the stages; raises Found."""
        self.c.hooks.append(self.hook)
        if self.expected is not None:
            expected = self.expected
            wrong = self.said(lambda: self.unexpected(self.c.module, expected))
            if wrong is not None:
                raise Found(Wrong("what made the dump", wrong))
        else:
            call = call_of(self.c.module, self.head)
            self.check.outcome(self.c.module, call)
        for stage in stages_between(dict(self.head), "", RUN):
            self.stage, self.passes = stage.name, []
            with within(f"the stage {stage.name}"):
                stage.run(self.c)
        self.machine_code()

    def machine_code(self) -> None:
        """Compare machine code with the interpreter, without LLVM's optimization and with it."""
        module, options = self.c.module, self.c.request.options
        call = call_of(module, self.head)
        found = self.check.outcome(module, call)
        steps = [
            ("the stage llvm", 0),
            (f"LLVM's optimization (the level {options.opt})", options.opt),
        ]
        for step, level in dict.fromkeys(steps):
            run = compiled(replace(options, opt=level))
            try:
                other = run(module, call, self.check.values(call))
            except Unknown:
                return
            if wrong := differing(found, other, list(found.values), 1e-6):
                raise Found(Wrong(step, wrong))


def last_attributes(module: ModuleOp) -> Mapping[str, Any]:
    """The attributes of the program's function."""
    return call_of(module).functions[-1].attributes


def bisect(
    text: str,
    name: str,
    inputs: Mapping[str, Any],
    expected: dict[str, Any] | None = None,
    *,
    machine: bool = False,
) -> tuple[Wrong | None, Counter[str]]:
    """The first step that is wrong, if any; and how many passes of each stage changed the program before.

    Raises WrongInputs, NotResumed, Undefined or Unknown where the dump cannot be run as it is.
    """
    head = read_head(text)
    stages_between(head, "", RUN)  # which refuses what is no dump
    assert head is not None
    c = resumed(head, read_module(text, name))
    c.locations = True
    run = compiled(c.request.options) if machine else interpreted()
    bisection = Bisection(c, head, PassCheck(inputs, head, run), expected)
    reproducer = Reproducer()
    c.hooks.append(reproducer)
    try:
        bisection.run()
    except Found as found:
        return found.wrong, bisection.seen
    except (Undefined, Unknown, WrongInputs, CompileError):
        raise
    except Exception as error:
        if (failed := what_failed(error)) is None:
            raise
        raise CompilerFault(place_of(error), error, failed, reproducer.write()) from error
    return None, bisection.seen


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add(
        "dump", metavar="DUMP.mlir", help="what MUTAD_DUMP=frontend (or =simplify, ...) has written"
    )
    add(
        "--inputs",
        metavar="INPUTS",
        required=True,
        help="what the program is run with: a file x.npz, or a text such as 'u=[1, 2], k=0.5'",
    )
    add(
        "--expect",
        metavar="EXPECTED",
        help="what it should return and leave, as mutad-opt --out writes it",
    )
    add("--compiled", action="store_true", help="run it as machine code: faster where it runs long")


def main(args: argparse.Namespace) -> int:
    """0 where every pass keeps the answer, 1 where one does not, 2 with a message where none can tell."""
    try:
        with open(args.dump, encoding="utf-8") as file:
            text = file.read()
        expected = None if args.expect is None else inputs_of(args.expect)
        inputs = inputs_of(args.inputs)
        wrong, seen = bisect(text, args.dump, inputs, expected, machine=args.compiled)
    except OSError as error:
        return failed(f"{error.filename or args.dump}: {error.strerror or error}")
    except (WrongInputs, NotResumed, Undefined, Unknown, ParseError, UnicodeDecodeError) as error:
        return failed(f"{args.dump}: {error}")
    except (CompileError, CompilerFault) as error:
        return failed(str(error))
    for stage, count in seen.items():
        passes = "pass" if count == 1 else "passes"
        print(f"{stage}: {count} {passes} changed the program and kept its answer")
    print(wrong or "every pass keeps the answer, and so does machine code")
    return 0 if wrong is None else 1


def failed(message: str) -> int:
    print(f"mutad bisect: {message}", file=sys.stderr)
    return 2


COMMANDS = """\
example:
  MUTAD_DUMP=frontend MUTAD_DUMP_DIR=dumps python model.py
  mutad bisect dumps/f-gradient-1f3a09c2.1-frontend.mlir --inputs 'u=[1, 2], k=0.5'

other commands:
  mutadc      compile functions to a library for C, ahead of time
  mutad-opt   run passes on textual IR

exit status: 0 no pass is wrong; 1 one is; 2 wrong usage, or the dump cannot be run"""


def entry(arguments: Sequence[str] | None = None) -> None:
    """The command `mutad`."""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        "mutad",
        description="Tools for programs that mutad compiles.",
        epilog=COMMANDS,
        formatter_class=raw,
    )
    told = "the versions of mutad, Python and the packages that make code"
    parser.add_argument("--version", action="version", version=versions(), help=f"print {told}")
    commands = parser.add_subparsers(dest="command", metavar="command")
    told = "find the first pass after which the answer of a dump is wrong"
    add_arguments(
        commands.add_parser("bisect", help=told, description=f"{told[0].upper()}{told[1:]}.")
    )
    asked = parser.parse_args(arguments)
    if asked.command is None:
        parser.print_help(sys.stderr)
        sys.exit(2)
    sys.exit(main(asked))
