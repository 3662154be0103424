"""`mutadc`: compile functions of a Python module to a library that C links, and its header.

Exit status: 0, 1 where the program cannot be compiled (or a file not be written), 2 where the command line is
wrong.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

import mutad

if TYPE_CHECKING:
    from .compiler.aot.command import Command
    from .compiler.aot.device_words import Launching
    from .runtime.annotations import Kind
    from .runtime.captures import Captures

DERIVATIVES = {
    "grad": "the gradient: F_grad",
    "value-and-grad": "value and gradient: F_value_and_grad",
    "vjp": "vector-Jacobian product, cotangents in: F_vjp",
    "jvp": "Jacobian-vector product, tangents in: F_jvp",
    "hvp": "Hessian-vector product: F_hvp",
}
KINDS = (
    "shared", "object", "static", "llvm", "asm", "mlir", "header", "fortran", "pkg-config", "ptx", "cubin",
    "python", "wheel",
)  # fmt: skip
"""What `--emit` takes, as `compiler.aot.emitters` has it: the parser loads no compiler."""
FILES = ("-o", "--output", "--header", "--deps")
"""The options that take the name of a file."""
EPILOG = """\
Without --function and --signature: every function that @compile decorates and
that has annotations. Exit status: 0; 1 error in the program; 2 wrong usage.
Example: mutadc model.py --grad loss:u,k -o build/ --header build/model.h"""


class Form(argparse.HelpFormatter):
    """Help that fits a screen."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26, width=80)


class Raw(Form, argparse.RawDescriptionHelpFormatter):
    """With an end whose lines are as written."""


def parser() -> argparse.ArgumentParser:
    """The options, in groups."""
    made = argparse.ArgumentParser(
        "mutadc", usage="mutadc [options] model.py", epilog=EPILOG, formatter_class=Raw,
        description="Compile functions of a Python module, and derivatives, to a C library.",
        allow_abbrev=False, add_help=False,
    )  # fmt: skip
    made.add_argument("model", nargs="?", help=argparse.SUPPRESS)
    add = made.add_argument_group("functions").add_argument
    add(
        "--function",
        metavar="F",
        action="append",
        default=[],
        help="export F; repeatable, as all here",
    )
    add("--signature", metavar="TEXT", action="append", default=[],
        help='export, as "loss(u: f64[:,:], n: i64) -> f64"')  # fmt: skip
    for name, told in DERIVATIVES.items():
        add(f"--{name}", metavar="F[:u,k]", action="append", default=[], help=told)
    add("--prefix", metavar="NAME", default="", help="put NAME before the names of functions")
    add = made.add_argument_group("output").add_argument
    add("-o", "--output", metavar="FILE", help="the output, or a folder (build/); - is stdout")
    add("--emit", choices=KINDS, metavar="KIND", help=", ".join(KINDS))
    add("--header", metavar="FILE", help="write the C header, too")
    add("--deps", metavar="FILE", help="write what the output depends on, for make")
    add = made.add_argument_group("code generation").add_argument
    add("-O", dest="opt", type=int, choices=range(4), default=3, metavar="LEVEL",
        help="optimization: -O0 to -O3 (the default)")  # fmt: skip
    add("--target", metavar="T[,T..]", help="a triple, sm_90, or levels: x86-64-v2,x86-64-v3")
    add("--cpu", metavar="NAME", help="a CPU of the target, or native (the default)")
    add("--fastmath", action="store_true", help="the primal may contract and reassociate")
    add("-g", dest="debug", action="store_true", help="lines of the Python source, for debuggers")
    add = made.add_argument_group("reports").add_argument
    add("--explain-saves", action="store_true", help="what each derivative saves, and why")
    add("--time-passes", action="store_true", help="milliseconds of each stage and pass")
    add("-v", "--verbose", action="store_true", help="what is compiled and written")
    add("--completion", metavar="SHELL", choices=("bash", "zsh", "fish"),
        help="print completions: bash, zsh or fish")  # fmt: skip
    add(
        "--version",
        action="version",
        version=f"mutadc {mutad.__version__}",
        help="print the version",
    )
    add("-h", "--help", action="help", help="print this")
    return made


WORDS_OF_CALLS = (
    *("ERROR", "PLACE", "STREAM", "CONTEXT", "UNIT", "LEAST", "HANDLE", "TABLE", "WORDS"),
)
"""The state of launches, as far as calls of a library fill it in."""


class Runtime:
    """What the compiler asks of the runtime, which it does not import (`compiler.aot.exports.Reader`)."""

    def plain(self, value: Any) -> FunctionType | None:
        from .runtime import wrappers

        found = wrappers.plain(value)
        return found if isinstance(found, FunctionType) else None

    def is_compiled(self, value: Any) -> bool:
        return isinstance(value, mutad.CompiledFunction)

    def options(self, value: Any) -> dict[str, Any]:
        if not self.is_compiled(value):
            return {}
        return {
            name: value.options[name] for name in ("saves", "fastmath", "boundscheck", "memory")
        }

    def parameters(self, function: FunctionType) -> tuple[str, ...]:
        return mutad.compile(function).parameters

    def kinds(self, function: FunctionType, instead: Mapping[str, str]) -> Sequence[Kind]:
        from .runtime import annotations, signatures

        defaults = signatures.trailing_defaults(function)
        return annotations.annotated_kinds(function, self.parameters(function), defaults, instead)

    def kind(self, annotation: Any, function: FunctionType) -> Kind:
        from .runtime import annotations

        return annotations.kind_of(annotations.evaluated(annotation, function))

    def captured(self, function: FunctionType) -> tuple[Captures, tuple[str, ...]]:
        from .runtime import captures, keys

        found = captures.captures_of(function)
        inputs = zip(found.values(), found.names, strict=True)
        return found, tuple(keys.argument_key(value, name) for value, name in inputs)

    def launching(self) -> Launching:
        from .compiler.aot.device_words import Launching
        from .runtime import device_products, device_text

        words = {name: getattr(device_text, name) for name in WORDS_OF_CALLS}
        return Launching(
            device_text.TEXT, words, device_text.DRIVER, device_products.TEXT, device_text.GEMMS
        )

    def sources(self) -> Mapping[str, str]:
        from . import runtime

        folder = Path(runtime.__path__[0])
        return {path.stem: path.read_text(encoding="utf-8") for path in folder.glob("*.py")}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; its exit status."""
    made = parser()
    chosen = made.parse_args(arguments)
    if chosen.completion:
        from .compiler.aot import completion

        print(completion.script(chosen.completion, made, FILES), end="")
        return 0
    if chosen.model is None:
        made.error("name a module: mutadc model.py")
    try:
        return run(chosen)
    except KeyboardInterrupt:
        return ended("interrupted", 130)


def run(chosen: argparse.Namespace) -> int:
    """Compile and write; what goes wrong is a message, never a traceback of ours."""
    from .compiler.aot import command
    from .compiler.aot.linking import NoTool
    from .compiler.aot.option_values import WrongUsage
    from .compiler.diagnostics import CompileError, CompilerFault

    try:
        command.run(understood(chosen), Runtime())
    except WrongUsage as error:
        return ended(str(error), 2)
    except (CompileError, CompilerFault, NoTool) as error:
        return ended(str(error), 1)
    except OSError as error:
        return ended(f"{error.filename or 'the output'}: {error.strerror or error}", 1)
    except Exception as error:
        return ended(str(CompilerFault(None, error)), 1)
    return 0


def understood(chosen: argparse.Namespace) -> Command:
    """The command that the options make."""
    from .compiler.aot.command import Command
    from .compiler.aot.option_values import WrongUsage
    from .compiler.request import Options
    from .runtime import target

    device = chosen.target if is_device(chosen) else ""
    try:
        targets = (None,) if device else target.asked(chosen.target, chosen.cpu)
    except ValueError as error:
        raise WrongUsage(str(error)) from None
    modes = [name.replace("-", "_") for name in DERIVATIVES]
    return Command(
        chosen.model,
        tuple(chosen.function),
        tuple(chosen.signature),
        tuple((mode, text) for mode in modes for text in getattr(chosen, mode)),
        chosen.prefix,
        chosen.output,
        chosen.emit,
        chosen.header,
        chosen.deps,
        Options(
            fastmath=chosen.fastmath,
            opt=chosen.opt,
            guards=True,  # who calls from C has no other code to call
            debug=chosen.debug,
            target=targets[0],
            device=device,
            launched=bool(device),
        ),
        chosen.explain_saves,
        chosen.time_passes,
        chosen.verbose,
        targets[1:],
    )


def is_device(chosen: argparse.Namespace) -> bool:
    """Whether code is for a device of NVIDIA; WrongUsage where it is, and for a CPU as well."""
    from .compiler.aot.option_values import WrongUsage
    from .runtime.options import DEVICES

    if (chosen.target or "").startswith("cuda:sm_"):
        chosen.target = chosen.target.removeprefix("cuda:")  # as `compile` names devices
    if not (chosen.target or "").startswith("sm_"):
        return False
    if chosen.target not in DEVICES:
        raise WrongUsage(f"--target {chosen.target}: devices are {', '.join(DEVICES)}")
    if chosen.cpu is not None or chosen.debug:
        raise WrongUsage(f"--target {chosen.target}: --cpu and -g are of CPUs")
    return True


def ended(message: str, status: int) -> int:
    """Say why the command ends; a place in the source comes first, as editors look for it."""
    is_located = re.match(r"\S.*:\d+:\d+: ", message) is not None
    print(message if is_located else f"mutadc: {message}", file=sys.stderr)
    return status


if __name__ == "__main__":
    sys.exit(main())
