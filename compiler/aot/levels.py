"""One library for several CPUs of a kind: each exported function once for every level, one chosen at load.

    @loss = ifunc i32 (...), ptr @loss.resolver

What loads the library calls the resolver, and binds `loss` to what it returns, for the time of the process:
the library itself keeps nothing. (So does glibc for its own functions; an ELF `ifunc` is there in shared and
static libraries and in objects. Other C libraries for Linux have none.) A resolver asks the CPU alone, for
the library is not yet relocated when it runs.

The code of each level is what a library for that level has: it is optimized on its own, and emitted with the
CPU as an attribute of each function.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import llvmlite.binding as llvm

from ..codegen.llvm_module import Target, machine_of, optimized, parsed, withheld

_CLOBBERED = "~{dirflag},~{fpsr},~{flags}"
_CPUID = (
    'call { i32, i32, i32, i32 } asm "cpuid", '
    f'"={{ax}},={{bx}},={{cx}},={{dx}},{{ax}},{{cx}},{_CLOBBERED}"'
)


def _bits(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


# By leaf of CPUID: ECX of 1, EBX of 7, ECX of 0x80000001; then the state that the system saves (XCR0).
_NEEDED = {
    "x86-64": (0, 0, 0, 0),
    "x86-64-v2": (_bits(0, 9, 13, 19, 20, 23), 0, _bits(0), 0),
    "x86-64-v3": (_bits(12, 22, 27, 28, 29), _bits(3, 5, 8), _bits(5), _bits(1, 2)),
    "x86-64-v4": (0, _bits(16, 17, 28, 30, 31), 0, _bits(1, 2, 5, 6, 7)),
}
"""What each level needs beyond the one before it: SSE3, SSSE3, CMPXCHG16B, SSE4.1, SSE4.2, POPCNT, LAHF; FMA,
MOVBE, OSXSAVE, AVX, F16C, BMI1, AVX2, BMI2, LZCNT; AVX-512 F, DQ, CD, BW and VL."""


@dataclass(frozen=True)
class Level:
    """The whole library for one CPU."""

    target: Target
    llvm: str


@dataclass(frozen=True)
class Together:
    """All levels in one module."""

    llvm: str
    """Optimized."""
    lowest: Target
    opt: int

    @staticmethod
    def of(levels: Sequence[Level], symbols: Sequence[str], opt: int) -> Together:
        """One module in which each of `symbols` is chosen at load; `levels` have the lowest first."""
        context = llvm.create_context()
        first, *others = (
            llvm.parse_assembly(of_level(level, symbols, opt, is_lowest=k == 0), context)
            for k, level in enumerate(levels)
        )
        for other in others:
            first.link_in(other)
        names = [level.target.cpu for level in levels]
        for symbol in symbols:
            for name in names:  # (what is internal before that is not linked in)
                first.get_function(f"{symbol}.{name}").linkage = "internal"
        merge_constants(first, machine_of(opt, levels[0].target))
        text = str(first)
        types = [type_of(text, f"{symbol}.{names[0]}") for symbol in symbols]
        chosen = [resolver(s, t, names) for s, t in zip(symbols, types, strict=True)]
        lowest = levels[0].target
        return Together("\n".join([text, level_of_cpu(names), *chosen]), lowest, opt)

    def object_code(self) -> bytes:
        return self.machine().emit_object(self.module())

    def assembly(self) -> str:
        return self.machine().emit_assembly(self.module())

    def module(self) -> llvm.ModuleRef:
        return parsed(self.llvm, self.machine())

    def machine(self) -> llvm.TargetMachine:
        llvm.initialize_native_asmparser()  # for CPUID
        return machine_of(self.opt, self.lowest)


def merge_constants(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """What levels have in common is there once."""
    with llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()) as builder:
        manager = llvm.create_new_module_pass_manager()
        manager.add_constant_merge_pass()
        manager.run(module, builder)


def of_level(level: Level, symbols: Sequence[str], opt: int, *, is_lowest: bool) -> str:
    """The optimized text of one level: `loss` is `loss.x86-64-v3`; the lowest has the other symbols."""
    module = llvm.parse_assembly(level.llvm, llvm.create_context())
    for function in module.functions:
        if function.is_declaration or function.linkage is not llvm.Linkage.external:
            continue
        if function.name in symbols:
            function.name = f"{function.name}.{level.target.cpu}"
        elif not is_lowest:
            function.linkage = "internal"
    made = optimized(str(module), opt, level.target)
    without = withheld(made, opt, level.target)
    attributes = f'"target-cpu"="{level.target.cpu}"'
    attributes += f' "target-features"="{without}"' if without else ""
    return "\n".join(
        with_attributes(line, attributes) if line.startswith("define ") else line
        for line in str(made).splitlines()
    )


def with_attributes(line: str, attributes: str) -> str:
    """The head of a definition with further attributes of the function."""
    head = re.match(r"define .*\)(?: local_unnamed_addr| unnamed_addr)?", line)
    assert head is not None
    return f"{head[0]} {attributes}{line[head.end() :]}"


def type_of(text: str, symbol: str) -> str:
    """The type of a function: `i32 (ptr, i64)`."""
    module = llvm.parse_assembly(text, llvm.create_context())
    return str(module.get_function(symbol).global_value_type)


def level_of_cpu(names: Sequence[str]) -> str:
    """`@cpu.level`: which of these levels, by number, the CPU at hand has; the first if it has none."""
    total, needs = [0, 0, 0, 0], list[list[int]]()
    for name, more in _NEEDED.items():
        total = [a | b for a, b in zip(total, more, strict=True)]
        if name in names:
            needs.append(total)
    lines: list[str] = []
    has = "true"
    level = "0"
    for number, masks in enumerate(needs):
        if number == 0:
            continue
        for kind, mask in zip(("one", "seven", "extended", "saved"), masks, strict=True):
            lines += [
                f"  %{kind}.{number} = and i32 %{kind}, {mask}",
                f"  %{kind}.{number}.all = icmp eq i32 %{kind}.{number}, {mask}",
                f"  %{kind}.{number}.has = and i1 {has}, %{kind}.{number}.all",
            ]
            has = f"%{kind}.{number}.has"
        lines.append(f"  %level.{number} = select i1 {has}, i32 {number}, i32 {level}")
        level = f"%level.{number}"
    shown = "\n".join(lines)
    return f"""
define internal i32 @cpu.level() nounwind {{
entry:
  %leaves = {_CPUID}(i32 0, i32 0)
  %last = extractvalue {{ i32, i32, i32, i32 }} %leaves, 0
  %first.leaf = {_CPUID}(i32 1, i32 0)
  %one = extractvalue {{ i32, i32, i32, i32 }} %first.leaf, 2
  %extended.leaf = {_CPUID}(i32 -2147483647, i32 0)
  %extended = extractvalue {{ i32, i32, i32, i32 }} %extended.leaf, 2
  %has.seven = icmp uge i32 %last, 7
  br i1 %has.seven, label %ask.seven, label %ask.saved
ask.seven:
  %seven.leaf = {_CPUID}(i32 7, i32 0)
  %seven.there = extractvalue {{ i32, i32, i32, i32 }} %seven.leaf, 1
  br label %ask.saved
ask.saved:
  %seven = phi i32 [ 0, %entry ], [ %seven.there, %ask.seven ]
  %osxsave = and i32 %one, 134217728
  %tells = icmp ne i32 %osxsave, 0
  br i1 %tells, label %read.saved, label %compare
read.saved:
  %pair = call {{ i32, i32 }} asm "xgetbv", "={{ax}},={{dx}},{{cx}},{_CLOBBERED}"(i32 0)
  %saved.there = extractvalue {{ i32, i32 }} %pair, 0
  br label %compare
compare:
  %saved = phi i32 [ 0, %ask.saved ], [ %saved.there, %read.saved ]
{shown}
  ret i32 {level}
}}"""


def resolver(symbol: str, type_: str, names: Sequence[str]) -> str:
    """The symbol as an `ifunc`."""
    *cases, last = [f'ptr @"{symbol}.{name}"' for name in names]
    tests = "\n".join(
        f"  %is.{k} = icmp eq i32 %level, {k}\n"
        f"  %f.{k} = select i1 %is.{k}, {case}, ptr {f'%f.{k + 1}' if k + 1 < len(cases) else last[4:]}"
        for k, case in reversed([*enumerate(cases)])
    )
    return f"""
@{symbol} = ifunc {type_}, ptr @{symbol}.resolver
define internal ptr @{symbol}.resolver() nounwind {{
  %level = call i32 @cpu.level()
{tests}
  ret ptr %f.0
}}"""
