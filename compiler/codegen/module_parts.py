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
"""Marks functions from which no loop is extracted: they are not optimized, either, until the mark goes."""
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
    kept = {f.name for f in module.functions.values() if is_kept(f.head)}
    for name in kept:
        function = module.functions[name]
        function.lines[0] = function.head.replace(" noinline", f" noinline {KEPT}", 1)
    parsed = llvm.parse_assembly(module.text(), llvm.create_context())
    parsed.verify()
    parsed.data_layout = str(machine.target_data)
    across, extract = llvm.create_new_module_pass_manager(), llvm.create_new_module_pass_manager()
    across.add_sroa_pass()
    across.add_ipsccp_pass()  # what is the same in all calls, and what calls change: parts do not see it
    across.add_dead_arg_elimination_pass()
    across.add_argument_promotion_pass()
    across.add_post_order_function_attributes_pass()
    extract.add_simplify_cfg_pass()
    extract.add_loop_simplify_pass()
    extract.add_loop_extract_pass()
    with llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()) as builder:
        across.run(parsed, builder)
        for function in parsed.functions:
            if function.name in kept:
                function.add_function_attribute("optnone")
        extract.run(parsed, builder)
    extracted = Module.of(str(parsed))
    extracted.others = [without_mark(line) for line in extracted.others]
    for name in extracted.functions.keys() - module.functions.keys():
        function = extracted.functions[name]
        large = len(function.lines) >= LEAST_LOOP
        attributes = ATTRIBUTES if large else ATTRIBUTES.replace("noinline", "alwaysinline")
        function.lines[0] = re.sub(r"( #\d+)? \{$", attributes, function.head)
    for function in [*extracted.functions.values()]:
        tell_of_variables(function, extracted)
    return extracted


def tell_of_variables(caller: Function, module: Module) -> None:
    """Write into the heads of loops what they no longer see: that a variable of their caller, or the context,
    is apart from all other memory; of a variable how large it is, and where it begins."""
    calls = [found for line in caller.lines if "call " in line and (found := CALL.search(line))]
    if not calls:
        return
    variables = {m[1]: attributes_of(m[2]) for line in caller.lines if (m := VARIABLE.match(line))}
    addresses = addresses_in(caller, variables)
    known = {name: variables[name] for name in variables.keys() - shared(caller, addresses)}
    if f"ptr noalias {CONTEXT}" in caller.head:
        known[CONTEXT] = "noalias"
        addresses |= addresses_in(caller, [CONTEXT])
    for call in calls:
        callee = module.functions.get(call[1])
        if callee is None or " noinline " not in callee.head or " optnone " in callee.head:
            continue
        given, own = call[2].split(", "), callee.head.split("(", 1)[1].split(")")[0]
        roots = [addresses.get(argument.rpartition(" ")[2]) for argument in given]
        parameters = own.split(", ")
        if len(parameters) != len(given):
            continue
        for k, (argument, root) in enumerate(zip(given, roots, strict=True)):
            alone = root in known and argument == f"ptr {root}" and roots.count(root) == 1
            if alone and "noalias" not in parameters[k]:
                parameters[k] = parameters[k].replace("ptr", f"ptr {known[root]}", 1)
        callee.lines[0] = callee.head.replace(own, ", ".join(parameters), 1)


CONTEXT = "%ctx"
VARIABLE = re.compile(r"\s+(%\S+) = alloca (.*)$")
CALL = re.compile(r"call [^@]*@(kernel[-\w.$]*|backward[-\w.$]*)\((.*)\)")
LOCAL = re.compile(r"%[-\w.$]+")
STEP = re.compile(r"(%\S+) = getelementptr [^%]*(%[-\w.$]+)")
KNOWN_USE = re.compile(
    r"= (?:alloca|load|getelementptr) |store |call [^@]*@(?:llvm\.|mutad_tape_|kernel|backward|map_|nest_)"
)
"""Ways to use the address of a variable after which no one else knows it."""
STORED = re.compile(r"store ptr (%[-\w.$]+),")
SIZED = re.compile(r"(?:\[(\d+) x (\w+)\]|(\w+)), align")
SIZES = {"i8": 1, "i1": 1, "i16": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}


def attributes_of(variable: str) -> str:
    """What is known of the memory of a variable, by what follows its `alloca`."""
    align, sized = variable.rpartition("align ")[2], SIZED.match(variable)
    size = SIZES.get(sized[2] or sized[3]) if sized else None
    if sized is None or size is None:
        return f"noalias align {align}"
    return f"noalias writable align {align} dereferenceable({size * int(sized[1] or 1)})"


def addresses_in(caller: Function, variables: Iterable[str]) -> dict[str, str]:
    """The addresses in these variables, with the variable."""
    found = {name: name for name in variables}
    for line in caller.lines:
        step = STEP.search(line) if "getelementptr" in line else None
        if step and step[2] in found:
            found[step[1]] = found[step[2]]
    return found


def shared(caller: Function, addresses: dict[str, str]) -> set[str]:
    """The variables whose addresses may be known to others."""
    found = set[str]()
    for line in caller.lines[1:] if addresses else ():
        named = addresses.keys() & LOCAL.findall(line)
        if named and not KNOWN_USE.search(line):
            found |= {addresses[name] for name in named}
        elif (stored := STORED.search(line)) and stored[1] in addresses:
            found.add(addresses[stored[1]])
    return found


def is_kept(head: str) -> bool:
    """Whether no loop of a function is to be extracted: it is not inlined itself."""
    return " noinline" in head and " optnone" not in head and " optsize" not in head


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
