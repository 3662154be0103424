"""`mutad-opt`: run any pass on textual IR, as `xdsl-opt` does, ours included.

What it cannot read, and a pass that fails, end in one message; `--traceback` shows where in the compiler.
"""

from __future__ import annotations

import argparse
import sys
import textwrap
from collections.abc import Iterable, Sequence
from io import BytesIO
from typing import IO, Any, ClassVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import ArgSpecParseError, DiagnosticException, ParseError
from xdsl.xdsl_opt_main import xDSLOptMain

import mutad
from mutad.compiler.diagnostics import CompileError, CompilerFault, line_of_function, place_of
from mutad.compiler.interpreter import Undefined, Unknown
from mutad.compiler.kernels.passes import DEVICE_PASSES
from mutad.compiler.pass_hooks import (
    Hook,
    Only,
    Reproducer,
    changes,
    dumps,
    hooked,
    what_failed,
    within,
)
from mutad.compiler.pass_order import PASSES
from mutad.compiler.print_ir import module_text
from mutad.compiler.program_calls import WrongInputs
from mutad.compiler.request import Options
from mutad.compiler.stage_dumps import (
    RUN,
    NotResumed,
    dump_of,
    read_head,
    resumed,
    stages_between,
    stand_in,
)
from mutad.dialects.activation import Activation
from mutad.dialects.ad import Ad
from mutad.dialects.array import Array
from mutad.dialects.dense import Dense
from mutad.dialects.device import Device
from mutad.dialects.foreign import Foreign
from mutad.dialects.special import Special

EXAMPLES = """\
examples:
  mutad-opt program.mlir -p forward-stores,fuse-elementwise
  mutad-opt program.mlir -p print-memory-ssa
  mutad-opt dump.mlir --to=llvm                        go on from a dump of MUTAD_DUMP
  mutad-opt dump.mlir --run --args 'u=[1, 2], k=0.5'   run it in the interpreter

exit status: 0; 1 input that cannot be read, or a pass that fails; 2 wrong usage
"""


class Unreadable(Exception):
    """The input, or what was asked for, is not what `mutad-opt` takes."""


class MutadOpt(xDSLOptMain):
    """`xdsl-opt` that also knows our dialects and passes."""

    version_format: ClassVar[str] = f"mutad-opt {mutad.__version__}, with xDSL {{xdsl_version}}"
    head: dict[str, Any] | None = None
    """What the head of the dump says that is read."""
    shown: str | None = None
    """What the stage shows that the dump was taken to."""

    def register_all_dialects(self) -> None:
        super().register_all_dialects()
        for dialect in (Array, Ad, Foreign, Activation, Dense, Special, Device):
            self.ctx.register_dialect(dialect.name, lambda d=dialect: d)

    def register_all_passes(self) -> None:
        super().register_all_passes()
        for p in (*PASSES, *DEVICE_PASSES):
            self.register_pass(p.name, lambda p=p: p)

    def register_all_arguments(self, arg_parser: argparse.ArgumentParser) -> None:
        super().register_all_arguments(arg_parser)
        arg_parser.prog = "mutad-opt"
        arg_parser.conflict_handler = "resolve"
        arg_parser.formatter_class = argparse.RawDescriptionHelpFormatter
        arg_parser.epilog = f"{EXAMPLES}\n{listed(self.available_passes)}"
        add = arg_parser.add_argument_group("passes").add_argument
        add("-p", "--passes", default="", help="passes to run, with commas between (listed below)")
        add(
            "--dump-after-each",
            action="store_true",
            help="write the IR after each pass to standard error",
        )
        add(
            "--dump-changed",
            action="store_true",
            help="write what each pass changed to standard error, as a unified diff",
        )
        add(
            "--only",
            metavar="FUNCTION",
            default="",
            help="of these functions (with commas between) dump the IR, not of all; run this function",
        )
        add(
            "--traceback", action="store_true", help="show where in the compiler a failure happened"
        )
        add("--from", dest="first", metavar="STAGE", default="", help="the stage that a dump is of")
        add(
            "--to",
            metavar="STAGE",
            default="",
            help="go on from a dump, up to this stage; to `run`, run what it makes",
        )
        add(
            "--interpret",
            action="store_true",
            help="with --to=run: run the IR as it stands, in the interpreter",
        )
        add("--run", action="store_true", help="the same as --to=run --interpret")
        add(
            "--args",
            metavar="INPUTS",
            default="",
            help="what the program is run with: a file x.npz, or a text such as 'u=[1, 2], k=0.5'",
        )
        add(
            "--out", metavar="FILE.npz", default="", help="write what a run leaves, do not print it"
        )
        add(
            "--no-locs",
            action="store_true",
            help="print no locations, not those that the input has",
        )

    def output_resulting_program(self, prog: ModuleOp) -> str:
        """IR with the locations that it has, unless the options ask for another print."""
        args = self.args
        if self.shown is not None:
            return self.shown
        if args.print_debuginfo or args.syntax_highlight or args.target != "mlir":
            return super().output_resulting_program(prog)
        text = module_text(
            prog,
            not args.no_locs,
            self.ctx.loaded_dialects,
            print_generic_format=args.print_op_generic,
            print_properties_as_attributes=args.print_no_properties,
        )
        return f"{text}\n"

    def setup_pipeline(self) -> None:
        try:
            super().setup_pipeline()
        except (ArgSpecParseError, ValueError, TypeError) as error:
            raise Unreadable(f"-p {self.args.passes}: {error}") from error
        if self.args.run:
            self.args.to, self.args.interpret = RUN, True
        if self.args.first and not self.args.to:
            raise Unreadable("--from needs --to, the stage to go on to")
        runs, dumped = self.args.to == RUN, self.args.dump_after_each or self.args.dump_changed
        if not runs and (self.args.args or self.args.out or self.args.interpret):
            raise Unreadable("--args, --out and --interpret are of runs: --run, or --to=run")
        self.only = Only(frozenset(self.args.only.split(",")) - {""})
        if self.only.names and not (dumped or runs):
            raise Unreadable(
                "--only says what --dump-after-each and --dump-changed write, or what is run"
            )
        self.reproducer = Reproducer()
        self.hooks: list[Hook] = [self.reproducer]
        if self.args.dump_after_each:
            self.hooks.append(dumps(self.only, sys.stderr.write))
        if self.args.dump_changed:
            self.hooks.append(changes(self.only, sys.stderr.write))

    def prepare_input(self) -> tuple[list[tuple[IO[bytes], int]], str]:
        try:
            return super().prepare_input()
        except (OSError, ValueError) as error:
            raise Unreadable(str(error)) from error

    def parse_chunk(
        self, chunk: IO[bytes], file_extension: str, start_offset: int = 0
    ) -> ModuleOp | None:
        try:
            text = chunk.read()
            self.head = read_head(text.decode())
            return super().parse_chunk(BytesIO(text), file_extension, start_offset)
        except DiagnosticException:
            raise
        except Exception as error:
            raise Unreadable(f"{self.get_input_name()} is not IR: {error}") from error

    def apply_passes(self, prog: ModuleOp) -> None:
        """Each pass with its hooks; the IR is verified (`callback`) as a part of the pass that left it."""
        passes, told = self.pipeline.passes, self.pipeline.callback
        assert told is not None
        told(None, prog, passes[0] if passes else None)
        for one, following in zip(passes, (*passes[1:], None), strict=False):
            with hooked(self.hooks, one, prog):
                one.apply(self.ctx, prog)
                told(one, prog, following)
        self.shown = self.go_on(prog) if self.args.to else None
        if self.only.missing and self.only.seen:
            raise Unreadable(f"--only: no function is named {', '.join(self.only.missing)}")

    def go_on(self, prog: ModuleOp) -> str:
        """Run the stages that the dump has before it, with the same hooks; what the last one shows."""
        if self.args.interpret:
            return self.run_program(prog, None)
        try:
            stages = stages_between(self.head, self.args.first, self.args.to)
        except NotResumed as error:
            raise Unreadable(f"{self.get_input_name()}: {error}") from error
        assert self.head is not None
        c = resumed(self.head, prog)
        c.hooks += self.hooks
        c.locations = not self.args.no_locs
        for stage in stages:
            with within(f"the stage {stage.name}"):
                stage.run(c)
        if self.args.to == RUN:
            return self.run_program(c.module, c.request.options)
        return f"{dump_of(c, stages[-1])}\n"

    def run_program(self, module: ModuleOp, options: Options | None) -> str:
        """Run a function, as compiled code if there are options; what it leaves, shown."""
        from .running import inputs_of, run, shown, write

        try:
            outcome = run(module, self.head, inputs_of(self.args.args), options, self.args.only)
            if not self.args.out:
                return shown(outcome)
            write(self.args.out, outcome)
        except (WrongInputs, Undefined, Unknown, OSError) as error:
            raise Unreadable(f"{self.get_input_name()}: {error}") from error
        return ""

    def message_of(self, error: Exception) -> str:
        """What went wrong, in one message: of the input, of the program, or of a pass."""
        failed = what_failed(error)
        if isinstance(error, CompileError):
            return str(error)
        if isinstance(error, (Unreadable, ParseError)):
            return str(error)
        if failed is None:
            lines = [f"{self.get_input_name()}: {type(error).__name__}: {error}"]
            return "\n".join([*lines, *getattr(error, "__notes__", ())])
        alone = len(self.pipeline.passes) == 1 and not self.args.to
        command = None if alone else self.reproducer.write()
        at = place_of(error) or (line_of_function(stand_in(self.head)) if self.head else None)
        return str(CompilerFault(at, error, failed, command))


def listed(available: Iterable[str]) -> str:
    """Our passes with a line each, then the names of xDSL's."""
    ours = {p.name: (p.__doc__ or "").partition("\n")[0] for p in (*PASSES, *DEVICE_PASSES)}
    width = max(map(len, ours))
    lines = [f"  {name:<{width}}  {line}" for name, line in sorted(ours.items())]
    others = ", ".join(sorted({*available} - ours.keys()))
    wrapped = textwrap.wrap(others, 100, break_on_hyphens=False)
    rows = (f"  {row}" for row in wrapped)
    return "\n".join(["passes of mutad:", *lines, "", "passes of xDSL:", *rows])


def main(args: Sequence[str] | None = None) -> None:
    try:
        driver = MutadOpt("Run passes, mutad's and xDSL's, on textual IR.", args)
    except Unreadable as error:
        sys.exit(f"mutad-opt: {error}")
    try:
        driver.run()
    except Exception as error:
        if driver.args.traceback:
            raise
        sys.exit(f"mutad-opt: {driver.message_of(error)}")


if __name__ == "__main__":
    main()
