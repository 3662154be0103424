"""Print the analyses into the IR, as attributes, for tests and for people.

`print-memory-ssa`, for one, turns ::

    memref.store %x, %a[%i] : memref<?xf64>
    %y = memref.load %a[%j] : memref<?xf64>

into ::

    memref.store %x, %a[%i] {memory = "1 = MemoryDef(liveOnEntry)"} : memref<?xf64>
    %y = memref.load %a[%j] {memory = "MemoryUse(1)", clobber = "1"} : memref<?xf64>

Nothing reads these attributes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from ...dialects import array
from ..diagnostics import line_of
from ..rules import accesses, reads
from .activity import Activity, active_by_default
from .affine import name
from .alias import AliasAnalysis
from .footprint import Footprints
from .kills import Kills
from .memory_ssa import MemorySSA, label
from .views import is_memref


@dataclass(frozen=True)
class PrintAlias(ModulePass):
    """`alias = "%u: %x | %y"`: the roots of each memref that an op defines or accesses."""

    name = "print-alias"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            alias = AliasAnalysis(function)
            for inner in function.walk():
                values = [r for r in inner.results if is_memref(r)]
                values += [a for a in loop_arguments(inner) if is_memref(a)]
                values += [a.memref for a in accesses(inner) if a.memref not in values]
                note(inner, "alias", [f"{name(v)}: {roots(alias, v)}" for v in values])


@dataclass(frozen=True)
class PrintFootprints(ModulePass):
    """`footprint = "write %a[%i + 1]"`: what each access touches, in subscripts of its base."""

    name = "print-footprints"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            footprints = Footprints(AliasAnalysis(function))
            for inner in function.walk():
                note(
                    inner,
                    "footprint",
                    [
                        f"{'' if a.must else 'may '}{a.kind} {footprints.of(a)}"
                        for a in accesses(inner)
                    ],
                )


@dataclass(frozen=True)
class PrintMemorySSA(ModulePass):
    """`memory = "2 = MemoryDef(1)"` as LLVM numbers them; `clobber` on reads: what the walker finds."""

    name = "print-memory-ssa"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            ssa = MemorySSA(function)
            for inner in function.walk():
                shown = ssa.definition(inner) or ssa.use(inner) or ssa.phi(inner)
                note(inner, "memory", [] if shown is None else [str(shown)])
                found = [(a, label(ssa.clobber(a))) for a in reads(inner)]
                if len(found) == 1:
                    note(inner, "clobber", [found[0][1]])
                else:
                    note(inner, "clobber", [f"{name(a.memref)}: {c}" for a, c in found])


@dataclass(frozen=True)
class PrintActivity(ModulePass):
    """`activity = "%y: active, %z: varied"` on what an op defines, for arguments `wrt` (all floats)."""

    name = "print-activity"
    wrt: tuple[str, ...] = ()

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            chosen = [
                a for a in active_by_default(function) if not self.wrt or a.name_hint in self.wrt
            ]
            activity = Activity(function, AliasAnalysis(function), chosen)
            for inner in function.walk():
                values: list[SSAValue] = list(inner.results)
                values += [a for r in inner.regions for b in r.blocks for a in b.args]
                shown = [(name(v), status(activity, v)) for v in values]
                note(inner, "activity", [f"{n}: {s}" for n, s in shown if s])


def status(activity: Activity, value: SSAValue) -> str:
    varied, useful = activity.varied(value), activity.useful(value)
    return "active" if varied and useful else "varied" if varied else "useful" if useful else ""


@dataclass(frozen=True)
class PrintKills(ModulePass):
    """`kill = "read %u[%i + 1]: killed by line 12"` (or by the op's tag) on each access."""

    name = "print-kills"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            kills = Kills(function)
            footprints = kills.dependence.footprints
            for inner in function.walk():
                note(
                    inner,
                    "kill",
                    [
                        f"{a.kind} {footprints.of(a)}: {shown_killer(inner, kills.killer(a))}"
                        for a in accesses(inner)
                    ],
                )


def shown_killer(op: Operation, killer: Operation | None) -> str:
    """ "kept", or the killer by its attribute `tag`, its line, or its name."""
    if killer is None:
        return "kept"
    if isinstance(killer, array.YieldOp | array.ConditionOp):
        return "released at the end of the iteration"
    if killer is op:
        return "killed by itself"
    tag = killer.attributes.get("tag")
    if isinstance(tag, StringAttr):
        return f"killed by {tag.data}"
    line = line_of(killer)
    return f"killed by {killer.name}" if line is None else f"killed by line {line[1]}"


def functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    return (op for op in module.walk() if isinstance(op, func.FuncOp))


def loop_arguments(op: Operation) -> tuple[BlockArgument, ...]:
    return tuple(op.body.block.args) if isinstance(op, array.LoopOp) else ()


def roots(alias: AliasAnalysis, value: SSAValue) -> str:
    return " | ".join(sorted(name(r) for r in alias.roots(value)))


def note(op: Operation, key: str, lines: list[str]) -> None:
    """Write the lines as one attribute; none where there is nothing to say."""
    if lines:
        op.attributes[key] = StringAttr(", ".join(lines))


PASSES = (PrintAlias, PrintFootprints, PrintMemorySSA, PrintActivity, PrintKills)
