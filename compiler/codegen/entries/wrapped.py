"""What users hand to `jvp`, and to `pushforward` in wrappers: the arguments, and the tangents of some.

::

    f.jvp(u, 0.1, tangents={"u": u_dot})     f.pushforward(Duplicated(u, u_dot), Const(0.1))

Both are one function (`mutad_tangent`): a flag says how it was called. Wrappers are of our own classes, whose
slots lie where their objects begin.
"""

from __future__ import annotations

from collections.abc import Callable

from .cold import function
from .guard import require_type
from .keywords import keywords
from .plan import EntryPlan, Signature
from .writer import HEADER, TYPE, Writer

WRAPPED = "%wrapped"
"""The flag."""
CONST, MOVING = 0, 1
"""The places of classes in the link's slot `wrappers`."""


def handed_in(
    w: Writer, plan: EntryPlan, positional: Callable[[Writer, Signature, int], str]
) -> tuple[str, list[str]]:
    """The array of all arguments, and the tangents of those in `wrt`, in its order.

    `positional` writes what finds the arguments of a call without wrappers.
    """
    count = plan.signature.parameters
    for name, words in (("arguments", 1), ("primals", count), ("tangents", len(plan.wrt))):
        w.do(f"%{name}.at = alloca [{max(words, 1)} x ptr]")
    w.do(f"br i1 {WRAPPED}, label %in.wrappers, label %apart")
    w.label("in.wrappers")
    operands = "ptr %self, ptr %args, i64 %nargs, ptr %kwnames, ptr %primals.at, ptr %tangents.at"
    w.require(w.value(f"call i1 @mutad_unwrapped({operands})"))
    w.store("ptr", "%primals.at", "%arguments.at", 0)
    w.do("br label %handed.in")
    w.label("apart")
    _, given = keywords(w, plan, "jvp")
    w.require(w.value(f"call i1 @mutad_named(ptr %self, ptr {given}, ptr %tangents.at)"))
    w.store("ptr", positional(w, plan.signature, plan.inputs), "%arguments.at", 0)
    w.do("br label %handed.in")
    w.label("handed.in")
    tangents = [w.field("%tangents.at", 8 * i, hint="tangent") for i in range(len(plan.wrt))]
    return w.field("%arguments.at", 0, hint="arguments"), tangents


def naming(plan: EntryPlan, symbols: dict[str, str]) -> str:
    """The function that takes the tangents out of a dict that has one for each name in `wrt`, and no more."""
    w = Writer(symbols)
    require_type(w, "%given", "PyDict_Type")
    w.require(w.value(f"icmp eq i64 {w.call('PyDict_Size', '%given')}, {len(plan.wrt)}"))
    names = w.slot("names")
    for i in range(len(plan.wrt)):
        obj = w.call("PyDict_GetItem", "%given", w.call("PyTuple_GetItem", names, str(i)))
        w.require(w.value(f"icmp ne ptr {obj}, null"))
        w.store("ptr", obj, "%tangents", 8 * i)
    return predicate("mutad_named(ptr %self, ptr %given, ptr %tangents)", w)


def unwrapping(plan: EntryPlan, symbols: dict[str, str]) -> str:
    """The function that takes all arguments out of their wrappers, and the tangents of those in `wrt`."""
    w = Writer(symbols)
    w.require(str(max(plan.wrt) < plan.signature.parameters).lower())  # inputs have no wrappers
    w.require(w.value("icmp eq ptr %kwnames, null"))
    w.require(w.value(f"icmp eq i64 %nargs, {plan.signature.parameters}"))
    wrappers = w.slot("wrappers")
    classes = [w.call("PyTuple_GetItem", wrappers, str(i)) for i in (CONST, MOVING)]
    for p in range(plan.signature.parameters):
        obj, moves = w.field("%args", 8 * p), p in plan.wrt
        w.require(w.value(f"icmp eq ptr {w.field(obj, TYPE)}, {classes[moves]}"))
        w.store("ptr", w.field(obj, HEADER), "%primals", 8 * p)
        if moves:
            w.store("ptr", w.field(obj, HEADER + 8), "%tangents", 8 * plan.wrt.index(p))
    parameters = "ptr %self, ptr %args, i64 %nargs, ptr %kwnames, ptr %primals, ptr %tangents"
    return predicate(f"mutad_unwrapped({parameters})", w)


def predicate(signature: str, w: Writer) -> str:
    """A function of this text, which says whether it came to its end."""
    w.lines += ["  ret i1 true", "mismatch:", "  ret i1 false"]
    return function(f"i1 @{signature}", w)
