"""One request on its way through the stages of `pipeline`, and the seconds that each takes."""

from __future__ import annotations

import sys
from collections.abc import Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from . import progress
from .analysis.effects import is_private
from .pass_hooks import Hook, hooked
from .request import COUNTS, Request

if TYPE_CHECKING:
    from .beside import Beside
    from .codegen.entries.entry import GradientSignature
    from .codegen.entries.plan import Tangents
    from .codegen.kernel_module import KernelText
    from .frontend.build import Built


class Compilation:
    """One request on its way through the stages."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.context = Context()
        self.stage = ""
        self.done: set[str] = set()
        """The stages that need not run: an earlier compilation did."""
        self.seconds: dict[tuple[str, str], float] = {}
        """By stage, then by what of it: the stage's own name, or a pass within it."""
        self.locations = False
        """Whether IR is shown with the places in the source: where a file is written."""
        self.inputs = () if request.captured is None else tuple(request.captured.names)
        """What the arguments behind the parameters are called."""
        self.hooks: list[Hook] = []
        """What is done around each pass, beside timing it."""
        self.built: Built
        self.module: ModuleOp
        self.gradient: GradientSignature | None = None
        self.tangents: Tangents | None = None
        self.kernel: KernelText
        self.convention: str
        """How the kernel's entries call it."""
        self.own_entries = ""
        """Entries that are in the kernel's module, where they have lines."""
        self.symbols: dict[str, str] = {}
        self.llvm: str
        self.beside: Beside | None = None
        """What is compiled at the same time."""
        self.object_code: bytes
        self.parts: list[int]
        """The sizes of its object files, which stand one after the other."""
        self.image: dict[str, Any] | None = None
        """The module that a driver loads, and the names of its kernels."""

    @property
    def active_arguments(self) -> list[int]:
        """The IR arguments that the gradient is taken with respect to."""
        from .argument_keys import parse
        from .frontend.signature import ir_types

        first, indices = 0, list[int]()
        for position, key in enumerate(self.request.arguments):
            count = len(ir_types(parse(key)))
            if position in self.request.wrt:
                indices += range(first, first + count)
            first += count
        return indices

    @property
    def final_arguments(self) -> list[int] | None:
        """vjp: the IR arguments whose final contents may have cotangents: parameters, and those returned."""
        from .argument_keys import ArrayKey, parse
        from .frontend.signature import ir_types

        if self.request.mode not in ("vjp", COUNTS[1]):
            return None
        first, indices = 0, [*returned_arguments(self.built.results)]
        for key in map(parse, self.request.arguments):
            if isinstance(key, ArrayKey):
                indices.append(first)
            first += len(ir_types(key))
        return sorted(set(indices))

    def run(self, passes: Sequence[ModulePass], module: ModuleOp | None = None) -> None:
        """Run passes, on the compilation's module if no other is given."""
        module = self.module if module is None else module
        for one in passes:
            with self.around(one, module):
                one.apply(self.context, module)

    def around(self, one: ModulePass, module: ModuleOp) -> AbstractContextManager[None]:
        """What is done around a pass."""
        timed = partial(timed_pass, self)
        return hooked((timed, *self.hooks), one, module)


def returned_arguments(spec: dict[str, Any]) -> Iterator[int]:
    """The IR arguments that the function returns themselves: the caller gets their tangents, too."""
    if spec["kind"] == "tuple":
        for item in spec["items"]:
            yield from returned_arguments(item)
    elif spec["kind"] == "argument":
        yield spec["leaf"]


def last_function(module: ModuleOp) -> func.FuncOp:
    """The function that runs backwards: the only one, or the second half of a split gradient."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and not is_private(op)]
    return functions[-1]


@contextmanager
def with_time(c: Compilation, name: str) -> Generator[None]:
    """Do the work and add its seconds to the stage (a pass: to its line below the stage)."""
    progress.doing = name.strip()
    if not name.startswith(" "):
        c.stage = name
    key = (c.stage, name)
    c.seconds.setdefault(key, 0.0)
    started = perf_counter()
    yield
    c.seconds[key] += perf_counter() - started


def timed_pass(c: Compilation, one: ModulePass, module: ModuleOp) -> AbstractContextManager[None]:
    return with_time(c, f"  {one.name}")


def print_times(c: Compilation, name: str = "") -> None:
    """The table of `MUTAD_TIME=1`: milliseconds for each stage, and for each pass within one."""
    stages = sum(seconds for (stage, name), seconds in c.seconds.items() if stage == name)
    title = name or f"{c.request.function.__qualname__} ({c.request.mode})"
    rows = [(title, stages)]
    rows += [(name, seconds) for (_, name), seconds in c.seconds.items()]
    for name, seconds in rows:
        print(f"{name:<40}{1e3 * seconds:10.1f} ms", file=sys.stderr)
