"""What the command line asks for in a notation of its own.

--signature "loss(u: f64[:, :], steps: i64) -> f64"        a function, and the kinds of its arguments
--grad loss:u,kappa                                        a derivative, and with respect to what
"""

from __future__ import annotations

import ast
import linecache
from dataclasses import dataclass

from ..diagnostics import Span, told

MODES = ("grad", "value_and_grad", "vjp", "jvp", "hvp")


class WrongUsage(Exception):
    """The command line asks for something that is not there, or cannot be understood."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        super().__init__(message if span is None else told(span, message, None, ()))


@dataclass(frozen=True)
class Signature:
    """A function, its parameters in order, and the annotations that are given instead of its own."""

    function: str
    parameters: tuple[str, ...]
    annotations: dict[str, str]
    result: str | None
    spans: dict[str, Span]
    """Of each parameter, of "" the whole, of "return" the result."""


@dataclass(frozen=True)
class Asked:
    """A derivative of a function; without names, with respect to the first parameter."""

    mode: str
    function: str
    wrt: tuple[str, ...]

    @property
    def option(self) -> str:
        """As the command line has it."""
        return "--" + self.mode.replace("_", "-")


def signature(text: str, number: int = 1) -> Signature:
    """The signature that `text` spells: the head of a Python function; the `number`-th of a command."""
    file = f"<signature {number}>"
    linecache.cache[file] = (len(text), None, [f"{text}\n"], file)
    whole = Span(file, 1, 0, 1, len(text.encode()))
    found = head(text, whole)
    args = found.args
    if args.vararg or args.kwarg or args.defaults or any(args.kw_defaults):
        raise WrongUsage("a signature has parameters with kinds, no `*` and no defaults", whole)
    parameters = (*args.posonlyargs, *args.args, *args.kwonlyargs)
    spans = {"": whole} | {p.arg: within(p.annotation or p, file) for p in parameters}
    annotations = {p.arg: ast.unparse(p.annotation) for p in parameters if p.annotation}
    result = None
    if found.returns is not None:
        result, spans["return"] = ast.unparse(found.returns), within(found.returns, file)
    return Signature(found.name, tuple(p.arg for p in parameters), annotations, result, spans)


def head(text: str, whole: Span) -> ast.FunctionDef:
    """The syntax tree of a function with this head."""
    try:
        (found,) = ast.parse(f"def {text}: ...").body
    except (SyntaxError, ValueError):
        found = None
    if not isinstance(found, ast.FunctionDef) or "\n" in text:
        raise WrongUsage("write a signature as in `loss(u: f64[:, :], steps: i64) -> f64`", whole)
    return found


def within(node: ast.expr | ast.arg, file: str) -> Span:
    """The span of a part of a signature, which `head` has read behind `def `."""
    end = (node.end_col_offset or 0) - len("def ")
    return Span(file, 1, node.col_offset - len("def "), 1, end)


def derivative(mode: str, text: str) -> Asked:
    """The derivative that `text` spells, `loss` or `loss:u,kappa`."""
    function, colon, names = text.partition(":")
    wrt = tuple(name.strip() for name in names.split(",")) if colon else ()
    asked = Asked(mode, function.strip(), wrt)
    if not all(name.isidentifier() for name in (asked.function, *wrt)):
        raise WrongUsage(f"{asked.option} {text}: write a function, or {asked.option} loss:u,kappa")
    if len(set(wrt)) < len(wrt):
        raise WrongUsage(f"{asked.option} {text}: a parameter is named twice")
    return asked
