"""What is done around each pass: it is timed, what it leaves is written or compared, a failure names it.

A hook is a context manager that gets the pass and the module. `hooked` enters several, in a compilation and
in `mutad-opt` alike.
"""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field

from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from .diagnostics import versions
from .print_ir import module_text

Hook = Callable[[ModulePass, ModuleOp], AbstractContextManager[None]]


@contextmanager
def hooked(hooks: Sequence[Hook], one: ModulePass, module: ModuleOp) -> Generator[None]:
    """Around one pass, all hooks; an exception remembers the innermost pass that it left."""
    with ExitStack() as stack:
        for hook in hooks:
            stack.enter_context(hook(one, module))
        try:
            yield
        except Exception as error:
            remember(error, f"the pass {spec_of(one)}")
            raise


@contextmanager
def within(what: str) -> Generator[None]:
    """An exception from here remembers the pass or stage, the innermost."""
    try:
        yield
    except Exception as error:
        remember(error, what)
        raise


def remember(error: Exception, what: str) -> None:
    error.__dict__.setdefault("within", what)


def what_failed(error: BaseException) -> str | None:
    """The pass or the stage that failed with this."""
    return error.__dict__.get("within")


def spec_of(one: ModulePass) -> str:
    return str(one.pipeline_pass_spec())


def is_said(one: ModulePass) -> bool:
    """Whether the pass's specification says all its options: an empty tuple is read as none given."""
    return type(one).from_pass_spec(one.pipeline_pass_spec()) == one


def after(tell: Callable[[ModulePass, ModuleOp], None]) -> Hook:
    """The hook that tells what each pass left."""

    @contextmanager
    def hook(one: ModulePass, module: ModuleOp) -> Generator[None]:
        yield
        tell(one, module)

    return hook


@dataclass
class Only:
    """The IR of some functions, or of all if none is named."""

    names: frozenset[str] = frozenset()
    seen: set[str] = field(default_factory=set[str])
    """Every function that there was."""

    def text(self, module: ModuleOp) -> str:
        if not self.names:
            return str(module)
        functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}
        self.seen |= functions.keys()
        return "\n".join(str(op) for name, op in functions.items() if name in self.names)

    @property
    def missing(self) -> list[str]:
        return sorted(self.names - self.seen)


def dumps(only: Only, write: Callable[[str], object]) -> Hook:
    """Writes the IR after each pass."""

    def tell(one: ModulePass, module: ModuleOp) -> None:
        if text := only.text(module):
            write(f"// ----- after {spec_of(one)}\n{text}\n")

    return after(tell)


def changes(only: Only, write: Callable[[str], object]) -> Hook:
    """Writes what each pass changed as a unified diff, and nothing where it changed nothing."""
    import difflib  # which most processes do without

    @contextmanager
    def hook(one: ModulePass, module: ModuleOp) -> Generator[None]:
        before = only.text(module)
        yield
        names = f"before {spec_of(one)}", f"after {spec_of(one)}"
        lines = before.splitlines(), only.text(module).splitlines()
        if found := list(difflib.unified_diff(*lines, *names, lineterm="")):
            write("\n".join(found) + "\n")

    return hook


@dataclass
class Reproducer:
    """Keeps the IR that the failing pass began with. It prints all IR: for what has failed once."""

    found: tuple[str, str] | None = None
    """The pass, and the IR."""

    @contextmanager
    def __call__(self, one: ModulePass, module: ModuleOp) -> Generator[None]:
        text = module_text(module)
        try:
            yield
        except Exception:
            if is_said(one):
                self.found = self.found or (spec_of(one), text)
            raise

    def write(self) -> str | None:
        """Write the IR to a new file; the command that runs the pass on it."""
        if self.found is None:
            return None
        spec, text = self.found
        arguments = f"-p {shlex.quote(spec)}"
        return write_reproducer(spec.partition("{")[0], f"// {arguments}\n{text}", arguments)


def write_reproducer(name: str, text: str, arguments: str) -> str:
    """Write a new file, to `MUTAD_DUMP_DIR` or among the temporary ones; the command that takes it."""
    folder = os.environ.get("MUTAD_DUMP_DIR")
    if folder is not None:
        os.makedirs(folder, exist_ok=True)
    handle, path = tempfile.mkstemp(".mlir", f"mutad-{name}-", folder)
    with open(handle, "w", encoding="utf-8") as file:
        file.write(f"{text}\n// {versions()}\n")
    return f"mutad-opt {shlex.quote(path)} {arguments}"
