"""Kernels of many maps: the loops of each map are an LLVM function of its own.

Why: LLVM's time for a function grows faster than the function (the vectorizer, for one, looks at the
whole of it again after every loop), so one function for hundreds of maps would take minutes. The
function of a map sees its own memory only, so the lists of what may not meet stay short as well::

    define internal void @map_7(ptr %ctx, i64 %n, ptr %a, ptr %b, double %x) noinline { ... }
    ...
    call void @map_7(ptr %ctx, i64 %n.3, ptr %p.20, ptr %p.21, double %v.22)

A call costs a few nanoseconds, so small kernels, whose compilation gains nothing, keep their loops. Maps that
are the same but for their operands have one function: fills and copies are, and much of an adjoint.
"""

from __future__ import annotations

import re
from dataclasses import replace

from xdsl.dialects import func, vector
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import array
from ...dialects.within import ops_of_kind
from .debug_info import without_lines
from .kernel_state import Descriptor, KernelState, value_type
from .llvm_text import ALIGNED, FunctionText, Metadata

MANY = 12
"""Maps in a kernel from which on each is a function."""


class OutlinedMap:
    """The function of one map while its loops are written, with `inside` as the state."""

    def __init__(self, outer: KernelState, op: array.MapOp) -> None:
        self.outer = outer
        self.name = f"map_{len(outer.functions)}"
        self.parameters: dict[tuple[str, str], str] = {}
        """Type and operand of the call -> parameter."""
        self.inside = replace(
            outer,
            text=FunctionText(outer.metadata),
            scalars={},
            memrefs={},
            buffers={},
            registers={},
            returns="i32",
            debug=outer.debug.function(f"{outer.debug.name}.{self.name}") if outer.debug else None,
        )
        if self.inside.debug is not None:
            self.inside.text.tag = self.inside.debug.at(op.location) or self.inside.debug.start
        captured = captured_by(op)
        memory = [v for v in captured if isinstance(v.type, MemRefType)]
        self.inside.emit, self.inside.scopes = outer.emit, outer.scopes.among(memory)
        for value in captured:
            if isinstance(value.type, MemRefType):
                self.inside.memrefs[value] = self.descriptor(outer.memrefs[value])
            else:
                own = self.parameter(value_type(value.type), outer.scalars[value])
                self.inside.scalars[value] = own

    def descriptor(self, given: Descriptor) -> Descriptor:
        return Descriptor(
            self.parameter("ptr", given.pointer),
            tuple(self.parameter("i64", n) for n in given.extents),
            tuple(self.parameter("i64", s) for s in given.strides),
            given.element,
        )

    def parameter(self, type_: str, operand: str) -> str:
        """What the function calls the operand; what is no SSA name means the same everywhere."""
        if not operand.startswith("%"):
            return operand
        if (type_, operand) not in self.parameters:
            self.parameters[type_, operand] = self.inside.text.name("p")
        return self.parameters[type_, operand]

    def call(self) -> None:
        """Add the function to the module and call it where the map stands."""
        text = self.outer.text
        body = self.inside.text.text()
        leaves = "ret i32" in body
        result = "i32" if leaves else "void"
        used = {found[0] for found in NAME.finditer(body)}
        given = {typed: own for typed, own in self.parameters.items() if own in used}
        shown = [f"{type_} {own}" for (type_, _), own in given.items()]
        head = f"define internal {result} @{self.name}({', '.join(['ptr noalias %ctx', *shown])})"
        end = "  ret i32 0" if leaves else "  ret void"
        lines = self.inside.debug.attachment if self.inside.debug else ""
        begin = f"{head} noinline nounwind {ALIGNED} {lines}{{"
        definition = "\n".join([begin, self.inside.text.text(end), "}"])
        plain = without_lines(definition) if lines else definition
        same = essence(plain.replace(f"@{self.name}(", "@(", 1), self.outer.metadata)
        self.name = self.outer.alike.setdefault(same, self.name)
        self.outer.functions.setdefault(self.name, definition)
        call = f"call {result} @{self.name}({', '.join(['ptr %ctx', *map(' '.join, given)])})"
        if not leaves:
            text.do(call)
            return
        status, label = text.value(call, "status"), text.label("leave")
        with text.in_cold(label):
            self.outer.leave(status)
        text.branch_if_unlikely(text.value(f"icmp ne i32 {status}, 0"), label)


NAME = re.compile(r"(%|^)[A-Za-z_]\w*\.(\d+)", re.MULTILINE)
NODE = re.compile(r"!(\d+)")
SCOPE = re.compile(r'distinct !\{(!\d+, !\d+), !"')


def essence(text: str, metadata: Metadata) -> str:
    """The text of a function without what its names and the numbers of its metadata happen to be.

    Two functions that have it in common do the same: each name and each distinct node of metadata has the
    number of its first appearance, and every node stands where it is first met.
    """
    met: dict[str, str] = {}
    names: dict[str, str] = {}

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

    def name(found: re.Match[str]) -> str:
        return names.setdefault(found[2], f"%{len(names)}")

    return NODE.sub(node, NAME.sub(name, text))


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
