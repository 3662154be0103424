"""The statuses of a library: `kind | site << 8`, and what `model_strerror` says of each.

A kind is one of Python's exceptions, or a breach of the C contract; its number is the same in all libraries.
A site is a place that can fail: a line of the source with its message, or a check of an argument::

    site 3: "model.py:12: IndexError: index ? is out of bounds for axis 0 with size ?"
    site 4: "loss: u.shape[1] is not m, that of v.shape[0]"
"""

from __future__ import annotations

import builtins
import json
import re
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

EXCEPTIONS = (
    "Exception", "ValueError", "IndexError", "TypeError", "ZeroDivisionError", "OverflowError",
    "AssertionError", "RuntimeError", "KeyError", "FloatingPointError", "RecursionError",
    "NotImplementedError", "AttributeError", "StopIteration", "MemoryError", "LookupError",
    "ArithmeticError", "UnboundLocalError", "NameError",
)  # fmt: skip
"""Numbered from 1; the first stands for all others."""
DEVICE_ERROR = "DEVICE_ERROR"
"""What the driver of a device refuses: in libraries that launch kernels."""
BREACHES = ("BAD_SHAPE", "BAD_LAYOUT", "OVERLAP", "WORK_TOO_SMALL")
"""What no Python call can do; numbered from 64."""
KINDS = {name: number for number, name in enumerate(EXCEPTIONS, 1)} | {
    name: number for number, name in enumerate((*BREACHES, DEVICE_ERROR), 64)
}
DOUBLED = ("{{", "}}")
"""Braces in a format that stand for themselves."""
MARK = "\x1fexception "
"""How the message of an exception with arguments of its own begins (`runtime.raised_exceptions`)."""


def enumerator(kind: str) -> str:
    """What C calls a kind: `VALUE_ERROR` of `ValueError`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", kind).upper()


@dataclass
class Statuses:
    """The sites of one library, numbered in the order in which they are met."""

    messages: list[str] = field(default_factory=lambda: ["success"])
    known: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])

    def status(self, kind: str, message: str) -> int:
        """The status of this kind and message."""
        found = self.known.get((kind, message))
        if found is None:
            found = KINDS[kind] | len(self.messages) << 8
            self.known[kind, message] = found
            self.messages.append(message)
        return found

    def raised(self, site: dict[str, Any]) -> int:
        """The status of what a kernel raises."""
        kind = str(site.get("exception", "Exception"))
        name = kind.rpartition(":")[2].rpartition(".")[2]
        message = shown(str(site.get("message", "")), quoted=name == "KeyError")
        place = f"{Path(site['file']).name}:{site['line']}: " if site.get("file") else ""
        return self.status(base_of(kind), f"{place}{name}{': ' if message else ''}{message}")

    def function(self, name: str) -> str:
        """The LLVM text of `model_strerror`."""
        encoded = [message.encode() + b"\0" for message in self.messages]
        starts = [sum(map(len, encoded[:k])) for k in range(len(encoded))]
        blob = b"".join(encoded)
        text = "".join(chr(b) if 32 <= b < 127 and b not in b'"\\' else f"\\{b:02X}" for b in blob)
        count = len(starts)
        return f"""
@{name}_messages = internal unnamed_addr constant [{len(blob)} x i8] c"{text}"
@{name}_starts = internal unnamed_addr constant [{count} x i32] [{", ".join(f"i32 {s}" for s in starts)}]
@{name}_unknown = internal unnamed_addr constant [15 x i8] c"unknown status\\00"
define ptr @{name}_strerror(i32 %status) nounwind {{
  %site = lshr i32 %status, 8
  %known = icmp ult i32 %site, {count}
  br i1 %known, label %found, label %unknown
found:
  %wide = zext i32 %site to i64
  %at = getelementptr inbounds i32, ptr @{name}_starts, i64 %wide
  %start = load i32, ptr %at
  %offset = zext i32 %start to i64
  %message = getelementptr inbounds i8, ptr @{name}_messages, i64 %offset
  ret ptr %message
unknown:
  ret ptr @{name}_unknown
}}
"""


def base_of(kind: str) -> str:
    """The nearest of `EXCEPTIONS` that an exception is: a builtin's name, or `module:name`, `module.name`."""
    module, _, inside = kind.rpartition(":" if ":" in kind else ".")
    cls: Any = sys.modules.get(module, builtins) if module else builtins
    for part in inside.split("."):
        cls = getattr(cls, part, Exception)
    names: Sequence[str] = [base.__name__ for base in getattr(cls, "__mro__", ())]
    return next((name for name in names if name in EXCEPTIONS), "Exception")


def shown(message: str, *, quoted: bool = False) -> str:
    """What `str` makes of an exception; numbers known at run time only are shown as `?`.

    `quoted`: of one argument it shows the `repr`, as KeyError does.
    """
    if not message.startswith(MARK):
        text = re.sub(
            r"\{\{|\}\}|\{[^{}]*\}", lambda m: m[0][0] if m[0] in DOUBLED else "?", message
        )
        return repr(text) if quoted and text else text
    items = json.loads(message.removeprefix(MARK))["args"]
    if len(items) == 1:
        return shown_item(items[0], repr if quoted else str)
    return f"({', '.join(shown_item(item, repr) for item in items)})" if items else ""


def shown_item(item: Sequence[Any], form: Callable[[object], str]) -> str:
    """One argument of an exception (`runtime.raised_exceptions`)."""
    match item:
        case ["c", known]:
            return form(known)
        case ["s", text, _]:
            return form(shown(text))
        case ["t", parts]:
            comma = "," if len(parts) == 1 else ""
            return f"({', '.join(shown_item(part, repr) for part in parts)}{comma})"
        case _:
            return "?"
