"""Kernels of many maps: the loops of each map are an LLVM function of its own.

Why: LLVM's time for a function grows faster than the function (the vectorizer, for one, looks at the
whole of it again after every loop), so one function for hundreds of maps would take minutes. The
function of a map sees its own memory only, so the lists of what may not meet stay short as well::

    define internal void @map_7(ptr %ctx, i64 %n, ptr %a, ptr %b, double %x) noinline { ... }
    ...
    call void @map_7(ptr %ctx, i64 %n.3, ptr %p.20, ptr %p.21, double %v.22)

A call costs a few nanoseconds, so small kernels, whose compilation gains nothing, keep their loops. Maps that
are the same but for their operands have one function: fills and copies are, and much of an adjoint. Maps that
gather for all rows and for some (`skew-steps`) are, too: the first row is an operand.
"""

from __future__ import annotations

import re
from functools import partial

from xdsl.dialects import func, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import array
from ...dialects.within import ops_of_kind
from .debug_info import without_lines
from .kernel_state import KernelState, value_type
from .llvm_text import ALIGNED, Metadata
from .outlined import NAME, Outlined

MANY = 12
"""Maps in a kernel from which on each is a function."""


class OutlinedMap(Outlined):
    """The function of one map."""

    def __init__(self, outer: KernelState, op: array.MapOp) -> None:
        super().__init__(outer, f"map_{len(outer.functions)}")
        if self.inside.debug is not None:
            self.inside.text.tag = self.inside.debug.at(op.location) or self.inside.debug.start
        captured = captured_by(op)
        memory = [v for v in captured if isinstance(v.type, MemRefType)]
        self.inside.scopes = outer.scopes.among(memory)
        self.inside.shared_number = partial(self.given, "i64")
        for value in captured:
            if isinstance(value.type, MemRefType):
                self.inside.memrefs[value] = self.descriptor(outer.memrefs[value])
            else:
                own = self.parameter(value_type(value.type), outer.scalars[value])
                self.inside.scalars[value] = own

    def call(self) -> None:
        """Add the function to the module and call it where the map stands."""
        definition, call = self.definition(f"noinline nounwind {ALIGNED}")
        plain = without_lines(definition) if self.inside.debug else definition
        same = essence(plain.replace(f"@{self.name}(", "@(", 1), self.outer.metadata)
        name = self.outer.alike.setdefault(same, self.name)
        self.outer.functions.setdefault(name, definition)
        self.write_call(call.replace(f"@{self.name}(", f"@{name}(", 1))


NODE = re.compile(r"!(\d+)")
SCOPE = re.compile(r'distinct !\{(!\d+, !\d+), !"')


def essence(text: str, metadata: Metadata) -> str:
    """The text of a function without what its names and the numbers of its metadata happen to be.

    Two functions that have it in common do the same: each name and each distinct node of metadata has the
    number of its first appearance, and every node stands where it is first met.
    """
    met: dict[str, str] = {}

    def node(found: re.Match[str]) -> str:
        number = found[1]
        if number in met:
            return met[number]
        shown = metadata.nodes[int(number)].partition(" = ")[2]
        if not shown.startswith("distinct"):
            return NODE.sub(node, shown)
        met[number] = f"!#{len(met)}"
        if scope := SCOPE.match(shown):
            shown = f"distinct !{{{scope[1]}}}"
        return f"{met[number]} = {NODE.sub(node, shown)}"

    pieces = NAME.split(text)  # what is between names, and of each its sign and its number
    numbers = pieces[2::3]
    places = {number: str(k) for k, number in enumerate(dict.fromkeys(numbers))}
    pieces[2::3] = [places[number] for number in numbers]
    return NODE.sub(node, "".join(pieces))


def captured_by(op: array.MapOp) -> list[SSAValue]:
    """The values from outside that the map uses, and the numbers that vectors among them are made of, which
    `map_stages.guards_of` looks at."""
    own: set[SSAValue] = set(op.body.block.args)
    used = dict.fromkeys(op.operands)
    for inner in op.body.walk():
        own.update(inner.results)
        own.update(a for r in inner.regions for b in r.blocks for a in b.args)
        used.update(dict.fromkeys(inner.operands))
    vectors = [v.owner for v in used if isinstance(v.owner, vector.BroadcastOp)]
    used.update(dict.fromkeys(broadcast.source for broadcast in vectors))
    return [v for v in used if v not in own]


def has_many_maps(function: func.FuncOp) -> bool:
    """True when the function is large enough for its maps to be functions."""
    return len(ops_of_kind(function, array.MapOp)) >= MANY
