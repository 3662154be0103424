"""Reduce the strength of multiplications in innermost loops, once LLVM has optimized them.

The address of an element along an axis whose stride only the call knows is a product (`a[i, j]` in a loop
over `i`). Where one factor is a counter and the other stays as it is, the product is an addition::

    loop:                                          before: %first = mul i64 %init, %n
      %i = phi i64 [ %init, ... ], [ %i.1, ... ]   loop:
      %k = mul i64 %i, %n                            %r = phi i64 [ %first, ... ], [ %r.1, ... ]
      ...                                            %k = add i64 %r, 0
      %i.1 = add i64 %i, 1                           ...
      %k.1 = mul i64 %i.1, %n                        %k.1 = add i64 %k, %n

LLVM's own pass would do this while it emits the module. But it looks at every way to write every address of
every loop: it took half of the time to emit the machine code of an LU factorization, and 40% of a stencil's,
where there is nothing to reduce: addresses are a base and a counter, which the CPU adds. Without it the code
is as fast. It runs only for modules in which a loop that multiplies has so many addresses that registers are
few (a convolution's, with six rows of the image): these it writes as sums of a few.

Integers wrap, so the numbers are the same whatever overflows. Not handled: products of two factors that
change, counters that step by what only the call knows, and loops with a call in each iteration (rows that are
copied or filled, tiles of maps that are functions): the call takes longer than the multiplication. Functions
that LLVM does not optimize (rare paths) stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

NAME = r'(?:[\w.$-]+|"[^"]*")'
OPERAND = rf"(?:%{NAME}|-?\d+)"
BLOCK = re.compile(rf"({NAME}):")
SUCCESSOR = re.compile(rf"label %({NAME})")
PRODUCT = re.compile(r"= mul [a-z ]*i64 ")
CALL = re.compile(r"call [^@]*@(?!llvm\.(?!mem)|mutad_poll\()")
"""A call that is made. (Polls are seldom.)"""
DEFINED = re.compile(rf"  (%{NAME}) = ")
LINEAR = re.compile(
    rf"  (%{NAME}) = (add|sub|mul|or disjoint)(?: n[us]w)* i64 ({OPERAND}), ({OPERAND})(?=,|$)"
)
PHI = re.compile(
    rf"  (%{NAME}) = phi i64 \[ ({OPERAND}), %({NAME}) \], \[ ({OPERAND}), %({NAME}) \](?=,|$)"
)
UNOPTIMIZED = re.compile(r"^attributes (#\d+) = {[^}]*\boptnone\b", re.MULTILINE)
GROUPS = re.compile(r"#\d+")
DEFINE = "\ndefine "
ADDRESS = re.compile(rf"getelementptr [^,]*, ptr (%{NAME})")
MANY = 6
"""A loop with more addresses than this lacks registers."""


@dataclass
class Blocks:
    """The blocks of a function."""

    lines: list[str]
    successors: dict[str, list[str]] = field(default_factory=lambda: {"": []})
    """By name, in order; "" is the entry where that has none."""
    places: dict[str, list[int]] = field(default_factory=lambda: {"": []})
    """The lines of each block."""
    multiplying: set[str] = field(default_factory=set[str])
    calling: set[str] = field(default_factory=set[str])

    def innermost(self) -> Iterator[tuple[str, set[str]]]:
        """The header and the blocks of each loop that has no other in it."""
        loops: dict[str, set[str]] = {}
        predecessors = self.predecessors()
        for latch, header in self.back_edges():
            body = loops.setdefault(header, {header})
            pending = [latch]
            while pending:
                block = pending.pop()
                if block not in body:
                    body.add(block)
                    pending += predecessors[block]
        for header, body in loops.items():
            if not (body & loops.keys()) - {header}:
                yield header, body

    def predecessors(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {name: [] for name in self.successors}
        for name, successors in self.successors.items():
            for successor in successors:
                found[successor].append(name)
        return found

    def back_edges(self) -> Iterator[tuple[str, str]]:
        """The jumps to a block on the way to where they are, in a search from the entry."""
        entry = next(iter(self.successors))
        on_the_way, seen = {entry}, {entry}
        path = [(entry, iter(self.successors[entry]))]
        while path:
            block, successors = path[-1]
            for successor in successors:
                if successor in on_the_way:
                    yield block, successor
                elif successor not in seen:
                    on_the_way.add(successor)
                    seen.add(successor)
                    path.append((successor, iter(self.successors[successor])))
                    break
            else:
                on_the_way.discard(block)
                path.pop()


def blocks_of(function: str) -> Blocks:
    """The blocks of a function as LLVM prints it."""
    made, block = Blocks(function.splitlines()), ""
    for number, line in enumerate(made.lines[1:], 1):
        if line == "}":
            break
        if not line.startswith(" "):
            if (name := BLOCK.match(line)) is not None:
                block = name[1]
                if made.places == {"": []}:  # the entry has this name
                    made.successors.clear()
                    made.places.clear()
                made.successors[block], made.places[block] = [], []
            continue
        made.places[block].append(number)
        if "label %" in line:
            made.successors[block] += SUCCESSOR.findall(line)
        elif " = mul " in line and PRODUCT.search(line):
            made.multiplying.add(block)
        elif "call " in line and CALL.search(line):
            made.calling.add(block)
    return made


def reduced(text: str) -> str | None:
    """The module without multiplications that are additions: the same text where there are none.

    None where LLVM's pass pays: a loop has so many addresses that they should have registers in common.
    """
    attributes = max(text.find("\nattributes #"), 0)  # behind all functions
    unoptimized = {*UNOPTIMIZED.findall(text, attributes)}
    head, *functions = f"\n{text}".split(DEFINE)
    made = [head]
    for one in functions:
        multiplies = " = mul " in one and is_optimized(one, unoptimized)
        if (function := reduced_function(one) if multiplies else one) is None:
            return None
        made.append(function)
    return text if made[1:] == functions else DEFINE.join(made)[1:]


def is_optimized(function: str, unoptimized: set[str]) -> bool:
    head, _, _ = function.partition("\n")
    return unoptimized.isdisjoint(GROUPS.findall(head))


def reduced_function(function: str) -> str | None:
    blocks, numbers = blocks_of(function), count()
    if not blocks.multiplying:
        return function
    predecessors = blocks.predecessors()
    before: dict[int, list[str]] = {}
    """What is written before each line."""
    for header, body in blocks.innermost():
        if body & blocks.multiplying and not body & blocks.calling:
            outside = [p for p in predecessors[header] if p not in body]
            latches = [p for p in predecessors[header] if p in body]
            if len(outside) == len(latches) == 1:
                loop = Loop(blocks, header, body, latches[0], outside[0])
                if loop.is_crowded():
                    return None
                if loop.jumps:
                    loop.reduce(before, numbers)
    if not before:
        return function
    lines: list[str] = []
    for number, line in enumerate(blocks.lines):
        lines += before.get(number, ())
        lines.append(line)
    return "\n".join(lines) + "\n" * function.endswith("\n")


@dataclass(frozen=True)
class Affine:
    """`sign * counter + constant`, and invariants, added or subtracted."""

    counter: str = ""
    sign: int = 0
    constant: int = 0
    invariants: tuple[tuple[int, str], ...] = ()

    def plus(self, other: Affine, factor: int) -> Affine | None:
        if self.counter and other.counter:
            return None
        theirs = tuple((factor * sign, name) for sign, name in other.invariants)
        return Affine(
            self.counter or other.counter,
            self.sign or factor * other.sign,
            self.constant + factor * other.constant,
            tuple(sorted((*self.invariants, *theirs))),
        )


@dataclass(frozen=True)
class Counter:
    """A number that each iteration adds a constant to."""

    first: str
    outside: str
    """Where that comes from: as the program's text calls the block."""
    step: int


@dataclass
class Reduced:
    """A product that was reduced: what others add to."""

    name: str
    constant: int


class Loop:
    """An innermost loop that is entered from one block, and closed by one."""

    def __init__(
        self, blocks: Blocks, header: str, body: set[str], latch: str, outside: str
    ) -> None:
        self.lines, self.header, self.latch = blocks.lines, header, latch
        self.entry, self.end = blocks.places[outside][-1], blocks.places[latch][-1]
        self.jumps = all(self.lines[n].startswith("  br ") for n in (self.entry, self.end))
        """(What chooses among several is more than one line.)"""
        self.places = {name: at for name, at in blocks.places.items() if name in body}
        self.defined: set[str] = set()
        self.linear: dict[str, tuple[str, str, str]] = {}
        for number in (n for at in self.places.values() for n in at):
            line = self.lines[number]
            if (name := DEFINED.match(line)) is not None:
                self.defined.add(name[1])
                if (found := LINEAR.match(line)) is not None:
                    self.linear[found[1]] = found[2], found[3], found[4]
        self.counters = dict(self.counters_of())

    def is_crowded(self) -> bool:
        lines = (self.lines[n] for at in self.places.values() for n in at)
        addresses = {found[1] for line in lines if (found := ADDRESS.search(line)) is not None}
        return len(addresses - self.defined) > MANY

    def counters_of(self) -> Iterator[tuple[str, Counter]]:
        for number in self.places[self.header]:
            if (phi := PHI.match(self.lines[number])) is None:
                continue
            name, a, of_a, b, of_b = phi.groups()
            first, outside, following = (b, of_b, a) if of_a == self.latch else (a, of_a, b)
            step = self.affine(following, {name})
            if step is not None and step.sign == 1 and not step.invariants:
                yield name, Counter(first, outside, step.constant)

    def affine(self, operand: str, counters: set[str]) -> Affine | None:
        """The operand in terms of one of these counters; None where it is none, or not of that form."""
        if not operand.startswith("%"):
            return Affine(constant=int(operand))
        if operand in counters:
            return Affine(operand, 1)
        if operand not in self.defined:
            return Affine(invariants=((1, operand),))
        op, a, b = self.linear.get(operand, ("", "", ""))
        if op in ("", "mul"):
            return None
        one, other = self.affine(a, counters), self.affine(b, counters)
        if one is None or other is None:
            return None
        return one.plus(other, -1 if op == "sub" else 1)

    def reduce(self, before: dict[int, list[str]], numbers: Iterator[int]) -> None:
        """Reduce the products; `before` is what to write before each line."""
        known: dict[tuple[tuple[Affine, str], str], Reduced] = {}
        """The last one of each kind in each block. That in the header is there in all blocks."""
        for block, at in self.places.items():
            for number in at:
                if (found := LINEAR.match(self.lines[number])) is None or found[2] != "mul":
                    continue
                product = self.product(found[3], found[4]) or self.product(found[4], found[3])
                if product is None:
                    continue
                form, factor = product
                of = Affine(form.counter, form.sign, 0, form.invariants), factor
                base = known.get((of, block)) or known.get((of, self.header))
                if base is None:
                    base = Reduced(self.start(form, factor, before, numbers), form.constant)
                    known[of, self.header] = base
                added = self.added(form.constant - base.constant, factor, before, numbers)
                rest = self.lines[number][found.end() :]
                self.lines[number] = f"  {found[1]} = add i64 {base.name}, {added}{rest}"
                known[of, block] = Reduced(found[1], form.constant)

    def product(self, changing: str, factor: str) -> tuple[Affine, str] | None:
        """Of the product of these: the form of the one that changes, and the other one."""
        if factor in self.defined:
            return None
        form = self.affine(changing, {*self.counters})
        return None if form is None or not form.counter else (form, factor)

    def start(
        self, form: Affine, factor: str, before: dict[int, list[str]], numbers: Iterator[int]
    ) -> str:
        """The name of the number that is `form * factor` in each iteration."""
        counter, name = self.counters[form.counter], f"%$.{next(numbers)}"
        entry = before.setdefault(self.entry, [])
        sign = "add" if form.sign > 0 else "sub"
        entry.append(f"  {name}.0 = {sign} i64 {form.constant}, {counter.first}")
        at = 0
        for at, (sign_of, invariant) in enumerate(form.invariants, 1):
            op = "add" if sign_of > 0 else "sub"
            entry.append(f"  {name}.{at} = {op} i64 {name}.{at - 1}, {invariant}")
        entry.append(f"  {name}.first = mul i64 {name}.{at}, {factor}")
        entry.append(f"  {name}.step = mul i64 {factor}, {form.sign * counter.step}")
        before.setdefault(self.places[self.header][0], []).append(
            f"  {name} = phi i64 [ {name}.first, %{counter.outside} ], [ {name}.next, %{self.latch} ]"
        )
        before.setdefault(self.end, []).append(f"  {name}.next = add i64 {name}, {name}.step")
        return name

    def added(
        self, difference: int, factor: str, before: dict[int, list[str]], numbers: Iterator[int]
    ) -> str:
        """`difference * factor`."""
        if difference in (0, 1):
            return factor if difference else "0"
        name = f"%$.{next(numbers)}"
        entry = before.setdefault(self.entry, [])
        entry.append(f"  {name} = mul i64 {factor}, {difference}")
        return name
