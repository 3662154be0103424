"""What the command tells while it works, on standard error: progress, what is compiled, times, receipts."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import perf_counter

from ..compilation import Compilation, print_times
from .exports import Export
from .outputs import Output


@dataclass
class Report:
    """What is told of one run of the command."""

    verbose: bool = False
    times: bool = False
    sources: set[str] = field(default_factory=set[str])
    """The files of all functions that were compiled in."""

    @contextmanager
    def compiling(
        self, exports: Sequence[Export]
    ) -> Generator[Callable[[Export, Compilation], None]]:
        """What is to be called after each export; several have a bar of progress, on a terminal."""
        from rich.console import Console
        from rich.progress import Progress

        for one in exports:
            self.say(shown(one))
        hidden = len(exports) < 2 or self.verbose or self.times
        console = Console(stderr=True)
        with Progress(
            console=console, transient=True, disable=hidden or not console.is_terminal
        ) as bar:
            task = bar.add_task("compiling", total=len(exports))

            def done(export: Export, c: Compilation) -> None:
                self.sources.update(file for file, _, _ in c.built.sources)
                if self.times:
                    print_times(c, export.symbol)
                bar.update(task, advance=1, description=export.symbol)

            yield done

    @contextmanager
    def timed(self, what: str) -> Generator[None]:
        """Tell how long it takes."""
        started = perf_counter()
        yield
        if self.times:
            print(f"{what:<40}{1e3 * (perf_counter() - started):10.1f} ms", file=sys.stderr)

    def wrote(self, outputs: Mapping[str, Output]) -> None:
        for path, one in outputs.items():
            self.say(f"wrote {path}, {len(one.data):,} bytes")

    def say(self, line: str) -> None:
        if self.verbose:
            print(f"mutadc: {line}", file=sys.stderr)


def shown(export: Export) -> str:
    """An export in a line: `loss_grad(u: f64[?]C, steps: py_int) with respect to u`."""
    parameters = ", ".join(f"{p.name}: {p.key}" for p in export.parameters)
    names = ", ".join(export.parameters[position].name for position in export.wrt)
    return f"{export.symbol}({parameters})" + (f" with respect to {names}" if names else "")
