"""Code of a kernel that is an LLVM function of its own: what it takes from the kernel are its parameters."""

from __future__ import annotations

import re
from dataclasses import replace

from .kernel_state import Descriptor, KernelState
from .llvm_text import FunctionText

NAME = re.compile(r"([%\n])[A-Za-z_]\w*\.(\d+)")
"""An SSA name, or a label: at the beginning of a line."""
PARAMETER = re.compile(r"%p\.\d+")
"""What `Outlined.given` names."""


class Outlined:
    """The function while it is written, with `inside` as the state; `call` is written where it stands."""

    def __init__(self, outer: KernelState, name: str) -> None:
        self.outer = outer
        self.name = name
        self.parameters: dict[tuple[str, str], str] = {}
        """Type and operand of the call -> parameter."""
        self.inside = replace(
            outer,
            text=FunctionText(outer.metadata),
            scalars={},
            memrefs={},
            products={},
            buffers={},
            registers={},
            returns="i32",
            debug=outer.debug.function(f"{outer.debug.name}.{name}") if outer.debug else None,
        )
        self.inside.text.depth = outer.text.depth
        self.inside.emit, self.inside.scopes = outer.emit, outer.scopes
        if self.inside.debug is not None:
            self.inside.text.tag = self.inside.debug.start

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
        return self.given(type_, operand)

    def given(self, type_: str, operand: str) -> str:
        """The same of an operand that may be a number, where other callers may hand in another."""
        if (type_, operand) not in self.parameters:
            self.parameters[type_, operand] = self.inside.text.name("p")
        return self.parameters[type_, operand]

    def definition(self, attributes: str, pointers: str = "ptr") -> tuple[str, str]:
        """The function, and its call; `pointers`: the type of its parameters that are pointers."""
        body = self.inside.text.text()
        leaves = "ret i32" in body
        result = "i32" if leaves else "void"
        used = set(PARAMETER.findall(body))
        given = {typed: own for typed, own in self.parameters.items() if own in used}
        shown = [
            f"{pointers if type_ == 'ptr' else type_} {own}" for (type_, _), own in given.items()
        ]
        head = f"define internal {result} @{self.name}({', '.join(['ptr noalias %ctx', *shown])})"
        end = "  ret i32 0" if leaves else "  ret void"
        lines = self.inside.debug.attachment if self.inside.debug else ""
        begin = f"{head} {attributes} {lines}{{"
        call = f"call {result} @{self.name}({', '.join(['ptr %ctx', *map(' '.join, given)])})"
        return "\n".join([begin, self.inside.text.text(end), "}"]), call

    def write_call(self, call: str) -> None:
        """The call, and what follows from its status."""
        text = self.outer.text
        if not call.startswith("call i32"):
            text.do(call)
            return
        status, label = text.value(call, "status"), text.label("leave")
        with text.in_cold(label):
            self.outer.leave(status)
        text.branch_if_unlikely(text.value(f"icmp ne i32 {status}, 0"), label)
