"""Where LLVM's loop strength reduction pays: in loops that multiply.

The pass makes an addition of the multiplication that finds an element along an axis whose stride only the
call knows (`a[i, j]` in a loop over `i`). It looks at every way to write every address of a loop, which takes
40% of the time to make machine code of a stencil. Where no innermost loop multiplies there is nothing for it
to reduce: addresses are a base and a counter, which the CPU adds. The code is as fast without it, or faster:
fewer registers hold addresses. Nor does it pay where a loop calls a function each time (rows that are copied
or filled, tiles of maps that are functions): the call takes longer than the multiplication.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

NAME = r'(?:[\w.$-]+|"[^"]*")'
LANDMARKS = re.compile(
    rf"^(?P<function>define) |^(?P<block>{NAME}):"
    rf"|label %(?P<successor>{NAME})|= (?P<product>mul) [a-z ]*i64 "
    r"|(?P<call>call) [^\n@]*@(?!llvm\.(?!mem)|mutad_poll\()",
    re.MULTILINE,
)
"""What is looked at in a module's text: where blocks begin, where they go, whether they multiply or call.
(Polls are seldom made.)"""


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
        for function in functions_of(text)
        if function.multiplying
        for loop in function.innermost()
    )


def functions_of(text: str) -> Iterator[Blocks]:
    """The functions of a module as LLVM prints it."""
    function, block = Blocks(), ""
    for found in LANDMARKS.finditer(text):
        match found.lastgroup:
            case "function":
                yield function
                function, block = Blocks(), ""
            case "block":
                block = found["block"]
                if function.successors == {"": []}:  # the entry has this name
                    function.successors.clear()
                function.successors[block] = []
            case "successor":
                function.successors[block].append(found["successor"])
            case "call":
                function.calling.add(block)
            case _:
                function.multiplying.add(block)
    yield function
