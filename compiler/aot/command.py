"""What the command does with what it is asked: import, compile, write all outputs or none."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from .. import receipts
from ..codegen.llvm_module import Target
from ..request import Options, Request
from . import dependencies, model, option_values
from .device_library import DeviceLibrary, compile_device
from .emitters import (
    DEVICE_EMITTERS,
    EMITTERS,
    FOLDERS,
    LAUNCHERS,
    DeviceEmitter,
    Emitter,
    kind_of_file,
)
from .exports import Export, Reader, Wanted, exports_of
from .library import Library, compile_exports, options_of
from .option_values import WrongUsage
from .outputs import STDOUT, Output, write_all
from .report import Report, shown
from .unit import MODES


@dataclass(frozen=True)
class Command:
    """One command line."""

    model: str
    functions: tuple[str, ...] = ()
    signatures: tuple[str, ...] = ()
    derivatives: tuple[tuple[str, str], ...] = ()
    """Mode, and `loss:u,kappa`."""
    prefix: str = ""
    output: str | None = None
    emit: str | None = None
    header: str | None = None
    deps: str | None = None
    options: Options = field(default_factory=Options)
    explain_saves: bool = False
    time_passes: bool = False
    verbose: bool = False
    levels: tuple[Target | None, ...] = ()
    """Beside the target of `options`: one of them is chosen at load."""

    @property
    def emitters(self) -> Mapping[str, Emitter | DeviceEmitter]:
        """What can be written for the target."""
        return DEVICE_EMITTERS if self.options.device else EMITTERS

    @property
    def wanted(self) -> Wanted:
        signatures = [option_values.signature(text, n) for n, text in enumerate(self.signatures, 1)]
        derivatives = [option_values.derivative(mode, text) for mode, text in self.derivatives]
        if re.fullmatch(r"|[A-Za-z][A-Za-z0-9_]*", self.prefix) is None:
            raise WrongUsage(f"--prefix {self.prefix}: no name in C begins so")
        return Wanted(self.functions, tuple(signatures), tuple(derivatives), self.prefix)

    @property
    def library(self) -> str:
        """What the library is called: as the module; read from standard input, as the output."""
        if self.model == model.STDIN and self.output not in (None, STDOUT):
            assert self.output is not None
            return model.name_of(Path(self.output).name.removeprefix("lib"))
        return model.name_of(self.model)


def run(command: Command, runtime: Reader) -> None:
    """Compile and write. WrongUsage, CompileError, CompilerFault, NoTool or OSError where that fails."""
    wanted, places = command.wanted, places_of(command)
    report = Report(command.verbose, command.time_passes)
    with model.imported(command.model) as (module, own_files):
        exports = exports_of(module, wanted, runtime)
        with report.compiling(exports) as done:
            for_python = not FOLDERS.keys().isdisjoint(places.values())
            library = (
                compile_device(command.library, exports, command.options, runtime.launching(), done)
                if command.options.device
                else compile_exports(
                    command.library,
                    exports,
                    command.options,
                    done,
                    command.levels,
                    for_python=for_python,
                )
            )
        outputs: dict[str, Output] = {}
        for path, kind in places.items():
            with report.timed(f"{kind} {path}"):
                outputs |= written(library, kind, path, runtime, [*places.values()])
        if command.deps is not None:
            targets = [path for path in outputs if path != STDOUT]
            sources = {*report.sources, *own_files()}
            shorten = not Path(command.model).is_absolute()
            text = dependencies.rules(targets, sources, shorten=shorten)
            outputs[command.deps] = Output(text.encode())
        if command.explain_saves:
            for one in exports:
                tell_saves(one, command.options)
    write_all(outputs)
    report.wrote(outputs)


def tell_saves(export: Export, options: Options) -> None:
    """Print what a derivative saves, if the export is one."""
    if export.mode == "primal":
        return
    mode = {"product": "hvp"}.get(MODES[export.mode], MODES[export.mode])
    request = Request(
        export.function,
        (*(p.key for p in export.parameters), *export.inputs),
        mode=mode,
        wrt=export.wrt,
        options=replace(options_of(export, options), launched=False),
        captured=export.captured,
    )
    print(f"{shown(export)}\n{receipts.explain_request(request, None)}\n", file=sys.stderr)


def written(
    library: Library | DeviceLibrary, kind: str, place: str, runtime: Reader, beside: Sequence[str]
) -> dict[str, Output]:
    """What is written there: one file, or several below a folder; `beside`: all kinds that are."""
    if isinstance(library, DeviceLibrary):
        alone = kind == "header" and not {"ptx", "cubin"}.isdisjoint(beside)
        one = LAUNCHERS if alone else DEVICE_EMITTERS[kind]
        return {place: Output(one.write(library), one.is_executable)}
    if kind in FOLDERS:
        files = FOLDERS[kind].write(library, runtime.sources())
        found = {str(Path(place) / path): output for path, output in files.items()}
        refuse_foreign(library.name, found)
        return found
    emitter = EMITTERS[kind]
    return {place: Output(emitter.write(library), emitter.is_executable)}


def refuse_foreign(name: str, files: Iterable[str]) -> None:
    """WrongUsage where a package would be written over one that is not ours."""
    for path in map(Path, files):
        is_ours = (path.parent / "_mutad").exists()
        if path.parts[-2:] == (name, "__init__.py") and path.exists() and not is_ours:
            raise WrongUsage(f"{path} is there, and not of mutadc: name another folder: -o DIR")


def places_of(command: Command) -> dict[str, str]:
    """The kind of what is written at each place; WrongUsage where a place cannot be, or has two."""
    output = command.output
    emitters = command.emitters
    told = None if output is None else kind_of_file(output, emitters)
    kind = command.emit or told or next(iter(emitters))
    if kind not in emitters and (command.options.device or kind not in FOLDERS):
        hint = "" if command.options.device else "; name a device: --target sm_90"
        of = f"--target {command.options.device}" if command.options.device else "a CPU"
        raise WrongUsage(f"--emit {kind}: of {of} there are {', '.join(emitters)}{hint}")
    if kind in FOLDERS:
        output = folder_of(command)
    elif output is None or names_folder(output):
        output = str(Path(output or "") / emitters[kind].file.format(command.library))
    elif command.emit is not None and told not in (None, kind):
        raise WrongUsage(f"-o {output}: the name says {told}, --emit {kind}")
    elif output == STDOUT and command.emit is None:
        raise WrongUsage(
            f"-o -: say with --emit what is written to standard output: {texts(emitters)}"
        )
    if output == STDOUT and (kind in FOLDERS or not emitters[kind].is_text):
        raise WrongUsage(
            f"--emit {kind}: it is not text, name a file: -o FILE; as text there are {texts(emitters)}"
        )
    others = [path for path in (command.header, command.deps) if path is not None]
    made = Path(command.output or "")
    for path in (output, *others):
        if path != STDOUT and not Path(path).parent.is_dir() and Path(path).parent != made:
            raise WrongUsage(f"{path}: there is no folder {Path(path).parent}")
    names = [path if path == STDOUT else str(Path(path).resolve()) for path in (output, *others)]
    if len({*names}) < len(names):
        raise WrongUsage("two outputs go to one place: name another")
    if command.model != model.STDIN and str(Path(command.model).resolve()) in names:
        raise WrongUsage(f"{command.model} would be overwritten: name another output")
    return {output: kind} | ({} if command.header is None else {command.header: "header"})


def names_folder(output: str) -> bool:
    """A folder that is there, or, by the `/` at the end of its name, one that is to be made."""
    return Path(output).is_dir() or (output.endswith("/") and not Path(output).exists())


def folder_of(command: Command) -> str:
    """Where a kind of several files goes: `-o` names a folder, which is made if it is not there."""
    output = command.output or "."
    if output != STDOUT and Path(output).exists() and not Path(output).is_dir():
        raise WrongUsage(f"--emit {command.emit} writes to a folder: {output} is a file")
    if output.endswith(".whl"):
        raise WrongUsage("-o names the folder of a wheel, whose own name says what it runs on")
    return output


def texts(emitters: Mapping[str, Emitter | DeviceEmitter]) -> str:
    return ", ".join(kind for kind, one in emitters.items() if one.is_text)
