"""Where LLVM's loop strength reduction pays: in loops that multiply.

The pass makes an addition of the multiplication that finds an element along an axis whose stride only the
call knows (`a[i, j]` in a loop over `i`). It looks at every way to write every address of a loop, which takes
40% of the time to make machine code of a stencil. Where no innermost loop multiplies there is nothing for it
to reduce: addresses are a base and a counter, which the CPU adds. The code is as fast without it, or faster:
fewer registers hold addresses. Nor does it pay where a loop calls a function each time (rows that are copied
or filled, tiles of maps that are functions): the call takes longer than the multiplication. Functions that
LLVM does not optimize (rare paths) it leaves as they are in any case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

NAME = r'(?:[\w.$-]+|"[^"]*")'
BLOCK = re.compile(rf"({NAME}):")
SUCCESSOR = re.compile(rf"label %({NAME})")
PRODUCT = re.compile(r"= mul [a-z ]*i64 ")
CALL = re.compile(r"call [^@]*@(?!llvm\.(?!mem)|mutad_poll\()")
"""A call that is made. (Polls are seldom.)"""
UNOPTIMIZED = re.compile(r"^attributes (#\d+) = {[^}]*\boptnone\b", re.MULTILINE)
GROUPS = re.compile(r"#\d+")


@dataclass
class Blocks:
    """The blocks of a function."""

    successors: dict[str, list[str]] = field(default_factory=lambda: {"": []})
    """By name, in order; "" is the entry where that has none."""
    multiplying: set[str] = field(default_factory=set[str])
    calling: set[str] = field(default_factory=set[str])

    def innermost(self) -> Iterator[set[str]]:
        """The blocks of each loop that has no other in it."""
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
        return (body for header, body in loops.items() if not (body & loops.keys()) - {header})

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


def multiplies_in_loops(text: str) -> bool:
    """Whether an innermost loop of this module, without calls, multiplies addresses, or numbers like them."""
    return any(
        loop & function.multiplying and not loop & function.calling
        for one in candidates(text)
        for function in functions_of(one)
        if function.multiplying
        for loop in function.innermost()
    )


def candidates(text: str) -> Iterator[str]:
    """The functions that multiply at all, and are optimized: the text of most need not be searched."""
    unoptimized = {*UNOPTIMIZED.findall(text)}
    for function in f"\n{text}".split("\ndefine ")[1:]:
        if " = mul " in function:
            head, _, _ = function.partition("\n")
            if unoptimized.isdisjoint(GROUPS.findall(head)):
                yield f"define {function}"


def functions_of(text: str) -> Iterator[Blocks]:
    """The functions of a module as LLVM prints it."""
    function, block = Blocks(), ""
    for line in text.splitlines():
        if line.startswith("define "):
            yield function
            function, block = Blocks(), ""
        elif not line.startswith(" "):
            if (name := BLOCK.match(line)) is not None:
                block = name[1]
                if function.successors == {"": []}:  # the entry has this name
                    function.successors.clear()
                function.successors[block] = []
        elif "label %" in line:
            function.successors[block] += SUCCESSOR.findall(line)
        elif " = mul " in line and PRODUCT.search(line):
            function.multiplying.add(block)
        elif "call " in line and CALL.search(line):
            function.calling.add(block)
    yield function
