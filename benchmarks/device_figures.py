"""What can be said of kernels without a device: launches, bytes a point, registers, spills, shared memory.

Launches and bytes are those of `explain`; `ptxas -v` (wheel nvidia-cuda-nvcc-cu12, or a CUDA toolkit) says
the rest, for sm_90. Bytes are held against the least that must go through memory. A second table has what an
iteration of a loop over a tile does (n-body: an interaction), by the IR and, with `nvdisasm` (wheel
nvidia-cuda-nvdisasm), by the machine code.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

import mutad

from .gpu import bodies
from .kernels import burgers, jacobi_slices
from .timing import console

KIND = "sm_90"


def heat(u, k, steps):
    """A linear stencil in place."""
    for _ in range(steps):
        u[1:-1, 1:-1] += k * (
            u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4 * u[1:-1, 1:-1]
        )
    return (u * u).sum()


def pairs(x, y, f):
    """Forces between all pairs."""
    for i in range(x.size):
        total = 0.0
        for j in range(x.size):
            dx = x[j] - x[i]
            dy = y[j] - y[i]
            total += dx / (0.01 + dx * dx + dy * dy)
        f[i] = total
    return (f * f).sum()


def gathered(x, k):
    """An index array with repeats."""
    return (x[k] ** 2).sum()


GRID, LINE = np.ones((64, 64)), np.ones(64)
PROGRAMS: tuple[tuple[Callable[..., Any], tuple[Any, ...], str], ...] = (
    (heat, (GRID, 0.1, 3), "u"),
    (jacobi_slices, (GRID, 3), "start"),
    (burgers, (LINE, 0.1, 3), "start"),
    (pairs, (LINE, 2 * LINE, 0 * LINE), "x"),
    (gathered, (LINE, np.zeros(9, np.int64)), "x"),
)


@dataclass(frozen=True)
class Interaction:
    """What a thread does in an iteration of a loop over a tile, by the kernel's IR."""

    operations: int
    """Sums, differences, products, quotients and roots, each once."""
    fused: int
    """Those that a multiplication may be fused with: none, unless `fastmath` or in an adjoint."""
    divided: int
    """Quotients and roots, which a device computes in about ten instructions each, exactly."""
    shared: int
    """Bytes from shared memory."""
    memory: float
    """Bytes from the device's memory, for a block of threads of which each loads one element for all."""


def interactions(shown: str) -> dict[str, Interaction]:
    """By kernel, of `inspect("kernels")`."""
    found: dict[str, Interaction] = {}
    for kernel in shown.split("func.func private @")[1:]:
        head, _, behind = kernel.partition("array.loop")
        for loop in behind.split("array.loop")[:]:
            body, tiled, _ = loop.partition("} {tile}")
            if tiled:
                found[head.partition("(")[0]] = counted(body)
    return found


def counted(body: str) -> Interaction:
    operations = re.findall(r"(?:arith\.(?:add|sub|mul|div)f|math\.sqrt) .*", body)
    fused = [
        op for op in operations if "contract" in op or "fastmath<fast>" in op or "ad.adjoint" in op
    ]
    divided = [op for op in operations if op.startswith(("arith.divf", "math.sqrt"))]
    tiles = re.findall(r"memref\.load .* : memref<256xf(32|64), 3 : i64>", body)
    shared = sum(int(bits) // 8 for bits in tiles)
    return Interaction(len(operations), len(fused), len(divided), shared, shared / 256)


@dataclass(frozen=True)
class MachineLoop:
    """An iteration of such a loop in machine code, per interaction."""

    instructions: float
    floats: float
    """Those of the loop's type: sums, products, both fused, and comparisons."""
    rate: int
    """How many of `floats` a multiprocessor begins a clock, each for a warp."""

    @property
    def clocks(self) -> float:
        """At least: either the units for `floats` are busy, or the schedulers are."""
        return max(self.floats / self.rate, self.instructions / ISSUED)

    def share(self, operations: int) -> float:
        """Of the device's peak, at most, which is `rate` fused multiplications and additions a clock.

        Slow paths that rarely run are calls, whose instructions are not counted.
        """
        return operations / (2 * self.rate * self.clocks)


ISSUED = 4
"""Instructions a clock that the schedulers of a multiprocessor of sm_90 issue, each for a warp of 32 threads.

The CUDA C++ Programming Guide, "Compute Capability 9.0", has four schedulers there."""
RATE_OF_DOUBLES, RATE_OF_SINGLES = 64 // 32, 128 // 32
"""The same guide, "Throughput of Native Arithmetic Instructions": sums, products and both fused, a clock."""


LABEL, BRANCH = re.compile(r"(\.L_x_\d+):"), re.compile(r"BRA `\((\.L_x_\d+)\)")
OPERATION = re.compile(r"\*/\s+(?:@!?U?P\w+ )?([A-Z0-9]+[\w.]*)")


def machine_loops(shown: str, bytes_each: dict[str, int]) -> dict[str, MachineLoop]:
    """By kernel, of `inspect("sass")`: the innermost loop that loads from a tile, so many bytes each time."""
    found: dict[str, MachineLoop] = {}
    for section in shown.split("\n.text.")[1:]:
        kernel, lines = section.partition(":")[0], section.splitlines()
        labels = {m[1]: n for n, line in enumerate(lines) if (m := LABEL.match(line))}
        targets = [
            (labels.get(m[1], n), n) for n, line in enumerate(lines) if (m := BRANCH.search(line))
        ]
        loops = [(start, end) for start, end in targets if start < end]
        for start, end in loops:
            if any(start <= a and b <= end and (a, b) != (start, end) for a, b in loops):
                continue
            names = [m[1] for line in lines[start : end + 1] if (m := OPERATION.search(line))]
            loaded = sum(width_of(name) for name in names if name.startswith("LDS"))
            if kernel in bytes_each and loaded:
                each = loaded / bytes_each[kernel]
                plain = [name.partition(".")[0] for name in names]
                floats, rate = sum(n in DOUBLES for n in plain), RATE_OF_DOUBLES
                if not floats:
                    floats, rate = sum(n in SINGLES for n in plain), RATE_OF_SINGLES
                found[kernel] = MachineLoop(len(names) / each, floats / each, rate)
    return found


DOUBLES, SINGLES = ("DADD", "DMUL", "DFMA", "DSETP"), ("FADD", "FMUL", "FFMA", "FSETP")


def width_of(load: str) -> int:
    """The bytes that a thread loads from shared memory."""
    return int(m[1]) // 8 if (m := re.search(r"\.(64|128)\b", load)) else 4


@dataclass(frozen=True)
class Resources:
    """What the assembler gives a kernel."""

    registers: int
    spilled: int
    """Bytes."""
    shared: int


def tool(name: str) -> str | None:
    """One of NVIDIA's, if it is there: `ptxas`, which assembles, or `nvdisasm`."""
    wheels = [str(w) for p in sys.path for w in Path(p).glob(f"nvidia/*/bin/{name}")]
    return wheels[0] if wheels else shutil.which(name)


def ptxas() -> str | None:
    """NVIDIA's assembler, if there is one."""
    return tool("ptxas")


def resources(ptx: str, kind: str = KIND) -> dict[str, Resources]:
    """By kernel, as `ptxas -v` says; nothing without it."""
    assembler = ptxas()
    if assembler is None:
        return {}
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "k.ptx"
        source.write_text(ptx)
        asked = [assembler, "-v", f"-arch={kind}", str(source), "-o", str(source) + ".cubin"]
        said = subprocess.run(asked, capture_output=True, text=True, check=True).stderr
    return dict(parsed(said))


def parsed(said: str) -> list[tuple[str, Resources]]:
    """Each kernel's lines: its name, its spills, what it uses."""
    found: list[tuple[str, Resources]] = []
    for part in said.split("Compiling entry function '")[1:]:
        spills = re.findall(r"(\d+) bytes spill", part)
        used, shared = (
            re.search(r"Used (\d+) registers", part),
            re.search(r"(\d+) bytes smem", part),
        )
        assert used is not None
        size = 0 if shared is None else int(shared.group(1))
        found.append(
            (part.partition("'")[0], Resources(int(used.group(1)), sum(map(int, spills)), size))
        )
    return found


def table_of_interactions() -> Table:
    """n-body, its gradient as well, in float64 and float32, exact and with `fastmath`."""
    table = Table(title="an interaction of n-body")
    for name in ("type", "kernel", "operations", "fused", "quotients, roots", "shared bytes"):
        table.add_column(name, overflow="fold")
    for name in ("bytes of memory", "registers", "spilled"):
        table.add_column(name)
    for name in ("instructions", "of floats", "peak at most"):
        table.add_column(name)
    for fastmath in (False, True):
        compiled = mutad.compile(bodies, grad=True, target=f"cuda:{KIND}", fastmath=fastmath)
        for dtype in ("f8", "f4"):
            shown = f"{dtype} fastmath" if fastmath else dtype
            for row in rows_of_interactions(compiled, dtype):
                table.add_row(shown, *row)
    return table


def rows_of_interactions(compiled: Any, dtype: str) -> Iterator[tuple[str, ...]]:
    """A row each kernel that has a loop over a tile."""
    given = tuple(np.arange(64, dtype=dtype) for _ in range(3))
    assembled = resources(compiled.inspect("ptx", *given, wrt="x"))
    each = interactions(compiled.inspect("kernels", *given, wrt="x"))
    loops: dict[str, MachineLoop] = {}
    if ptxas() is not None and tool("nvdisasm") is not None:
        shown = compiled.inspect("sass", *given, wrt="x")
        loops = machine_loops(shown, {kernel: one.shared for kernel, one in each.items()})
    for kernel, one in each.items():
        has = assembled.get(kernel)
        told = [str(has.registers), str(has.spilled)] if has else ["?"] * 2
        row = (one.operations, one.fused, one.divided, one.shared, one.memory)
        code = ["?"] * 3
        if loop := loops.get(kernel):
            share = f"{100 * loop.share(one.operations):.0f} %"
            code = [f"{loop.instructions:g}", f"{loop.floats:g}", share]
        yield (kernel.removeprefix("bodies_"), *map(str, row), *told, *code)


def main() -> None:
    table = Table(title=f"kernels of gradients, {KIND}, without a device")
    for name in ("program", "kernel", "launches"):
        table.add_column(name, overflow="fold")
    for name in ("bytes a point", "least", "registers", "spilled"):
        table.add_column(name)
    table.add_column("shared")
    table.add_column("threads meet by")
    from mutad.compiler.kernels.figures import meeting

    for function, arguments, wrt in PROGRAMS:
        compiled = mutad.compile(function, grad=True, target=f"cuda:{KIND}")
        given = resources(compiled.inspect("ptx", *arguments, wrt=wrt))
        for k in compiled.explain(*arguments, wrt=wrt).kernels:
            has = given.get(k.name)
            told = [str(x) for x in (has.registers, has.spilled, has.shared)] if has else ["?"] * 3
            size = str(k.loads + k.stores)
            name = function.__name__
            row = (
                name,
                k.name.removeprefix(f"{name}_"),
                k.launched,
                size,
                str(k.least),
                *told,
                meeting(k),
            )
            table.add_row(*row)
    console.print(table)
    console.print(table_of_interactions())
    if ptxas() is None:
        console.print("registers and spills: install nvidia-cuda-nvcc-cu12, which has ptxas")
