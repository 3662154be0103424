"""A large module in parts, which LLVM compiles at once, each in a thread.

More than half of the time to compile is LLVM's, and LLVM serves as many threads as there are modules. So what
stands in a function of its own already (the maps of `outlined_maps`) is shared out, and large loops of the
rest become such functions first, by LLVM's own loop extraction::

    kernel: loop 1, loop 2, calls of @map_0, @map_1          part 1: kernel, @kernel.loop_1, @map_1
                                                             part 2: @kernel.loop_2, @map_0

Which parts there are depends on the module alone. How many processors there are says how many threads compile
them, so the code is the same everywhere.

A function that may be inlined is copied into each part that calls it. One that may not be is in one part, and
a symbol of the library that the parts are linked to, if another part calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import llvmlite.binding as llvm

LEAST_MODULE = 600
"""Lines of functions below which a module stays whole: to take it apart would take as long as it gains."""
LEAST_LOOP = 60
"""Lines of a loop that becomes a function; smaller ones are inlined again."""
PART = 250
"""About how many lines a part has at least: each is set up on its own."""
MOST_PARTS = 4

DEFINITION = re.compile(r'^define .*?@("[^"]+"|[-\w.$]+)\(')
REFERENCE = re.compile(r'@("[^"]+"|[-\w.$]+)')
ALIAS = re.compile(r'^@(?:"[^"]+"|[-\w.$]+) = alias .*@("[^"]+"|[-\w.$]+)$')
STATE = re.compile(r"^@(?!llvm\.)\S+ = (?!.*\bconstant\b)(?!.*\balias\b)")
"""A variable."""
DEBUGGED = "!llvm.dbg.cu"
KEPT = '"mutad-kept"'
"""What marks functions from which no loop is extracted: LLVM leaves those alone that it may not optimize."""
ATTRIBUTES = " noinline nounwind alignstack(64) {"


@dataclass
class Function:
    name: str
    lines: list[str]

    @property
    def head(self) -> str:
        return self.lines[0]

    @cached_property
    def calls(self) -> set[str]:
        """The functions and variables that it names."""
        return {
            found for line in self.lines[1:] if "@" in line for found in REFERENCE.findall(line)
        }

    def declaration(self) -> str:
        return re.sub(r"^define (internal )?", "declare ", self.head).removesuffix(" {")

    def definition(self, *, called_elsewhere: bool) -> Iterator[str]:
        yield self.head.replace("define internal ", "define ", 1) if called_elsewhere else self.head
        yield from self.lines[1:]


@dataclass
class Module:
    """The text of a module: its functions, and all other lines."""

    functions: dict[str, Function] = field(default_factory=dict)
    others: list[str] = field(default_factory=list)

    @staticmethod
    def of(text: str) -> Module:
        made = Module()
        function: Function | None = None
        for line in text.splitlines():
            if function is not None:
                function.lines.append(line)
                function = None if line == "}" else function
            elif found := DEFINITION.match(line):
                function = made.functions[found[1]] = Function(found[1], [line])
            elif line and not line.startswith(";"):
                made.others.append(line)
        return made

    @property
    def size(self) -> int:
        return sum(len(function.lines) for function in self.functions.values())

    def text(self) -> str:
        bodies = (line for function in self.functions.values() for line in function.lines)
        return "\n".join((*self.others, *bodies))


def parts_of(text: str, machine: llvm.TargetMachine) -> list[str]:
    """The modules that together are this one; it alone where it is small, or cannot be taken apart."""
    if text.count("\n") < LEAST_MODULE:
        return [text]
    module = Module.of(text)
    if module.size < LEAST_MODULE or any(binds(line, module) for line in module.others):
        return [text]
    return list(shared_out(with_loops_extracted(module, machine)))


def binds(line: str, module: Module) -> bool:
    """Whether a line outside functions keeps the module together: it defines a variable, which each part
    would have for itself, or a table of functions, or is of debug information."""
    if line.startswith(DEBUGGED):
        return True
    if not line.startswith("@") or ALIAS.match(line):
        return False
    named = REFERENCE.findall(line)[1:]
    return STATE.match(line) is not None or not module.functions.keys().isdisjoint(named)


# Loops become functions. ---------------------------------------------------------------------------


def with_loops_extracted(module: Module, machine: llvm.TargetMachine) -> Module:
    """The module whose large loops outside all loops are functions."""
    for function in module.functions.values():
        function.lines[0] = marked(function.head)
    parsed = llvm.parse_assembly(module.text(), llvm.create_context())
    parsed.verify()
    parsed.data_layout = str(machine.target_data)
    with llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()) as builder:
        manager = llvm.create_new_module_pass_manager()
        manager.add_sroa_pass()
        manager.add_simplify_cfg_pass()
        manager.add_loop_simplify_pass()
        manager.add_loop_extract_pass()
        manager.run(parsed, builder)
    extracted = Module.of(str(parsed))
    extracted.others = [without_mark(line) for line in extracted.others]
    for name in extracted.functions.keys() - module.functions.keys():
        function = extracted.functions[name]
        large = len(function.lines) >= LEAST_LOOP
        attributes = ATTRIBUTES if large else ATTRIBUTES.replace("noinline", "alwaysinline")
        function.lines[0] = re.sub(r"( #\d+)? \{$", attributes, function.head)
    return extracted


def marked(head: str) -> str:
    """The head of a function, if it is one that is not inlined, with the mark that LLVM leaves it alone."""
    if " noinline" not in head or " optnone" in head or " optsize" in head:
        return head
    return head.replace(" noinline", f" noinline optnone {KEPT}", 1)


def without_mark(line: str) -> str:
    """The line; of a group of attributes without the mark, and what the mark is about."""
    if KEPT not in line:
        return line
    return line.replace(f" {KEPT}", "").replace(" optnone", "")


# Functions are shared out. -------------------------------------------------------------------------


def shared_out(module: Module) -> Iterator[str]:
    """The parts: what is exported, and the functions that are not inlined, the largest first, where there is
    least so far."""
    functions, attributes = module.functions, groups(module.others)
    aliased = {found[1] for line in module.others if (found := ALIAS.match(line))}
    alone = {f.name for f in functions.values() if is_alone(f, attributes)} - aliased
    exported = [name for name in functions if name in aliased or is_exported(functions[name])]
    units = [exported, *([name] for name in alone if name not in exported)]
    weights = [sum(len(functions[f].lines) for f in inlined(functions, u, alone)) for u in units]
    count = min(MOST_PARTS, max(1, sum(weights) // PART), len(units))
    bins: list[list[str]] = [[] for _ in range(count)]
    filled = [0] * count
    for k in sorted(range(len(units)), key=lambda k: (k > 0, -weights[k], units[k])):
        least = filled.index(min(filled))
        bins[least] += units[k]
        filled[least] += weights[k]
    held = [inlined(functions, names, alone) for names in bins]
    called = [set().union(*(functions[f].calls for f in names)) for names in held]
    for k, names in enumerate(held):
        elsewhere = set().union(*(called[j] for j in range(count) if j != k)) & alone
        first = exported and exported[0] in names
        yield "\n".join(
            (
                *(line for line in module.others if first or not ALIAS.match(line)),
                *(functions[f].declaration() for f in sorted(called[k] & alone - set(names))),
                *(
                    line
                    for f in names
                    for line in functions[f].definition(called_elsewhere=f in elsewhere)
                ),
            )
        )


def groups(lines: Iterable[str]) -> set[str]:
    """The numbers of the groups of attributes that forbid to inline."""
    found = (re.match(r"attributes (#\d+) = \{(.*)\}", line) for line in lines)
    return {group[1] for group in found if group and " noinline " in group[2]}


def is_alone(function: Function, attributes: set[str]) -> bool:
    """Whether it is not inlined."""
    if " noinline" in function.head:
        return True
    group = re.search(r"(#\d+) \{$", function.head)
    return group is not None and group[1] in attributes


def is_exported(function: Function) -> bool:
    return not re.match(r"define (internal|private) ", function.head)


def inlined(functions: dict[str, Function], names: Sequence[str], alone: set[str]) -> list[str]:
    """These functions, and those that may be inlined into them, in the order of the module."""
    found, left = set(names), list(names)
    while left:
        more = functions[left.pop()].calls & functions.keys() - alone - found
        found |= more
        left += more
    return [name for name in functions if name in found]
