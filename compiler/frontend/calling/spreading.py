"""`*t` and `**d` wherever they may stand: calls and displays.

f(*t, **d)     the items of tuples, and of lists and dicts as they are known while compiling
(a, *t)        a tuple, or list, of more items
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from ....dialects import array
from .. import library, scalars
from ..data.classes import class_name
from ..data.list_access import Asked
from ..frames import LocalFunction
from ..values import Array, Record, Scalar, Static, Struct, Tuple, Value


@dataclass(frozen=True)
class Needed:
    """What a call must hand over by `*v`, of a function without defaults."""

    function: str
    names: tuple[str, ...]
    """The parameters that are left."""
    total: int
    named: str | None
    """The first that a keyword names."""


def needed(called: object, others: Sequence[object]) -> Needed | None:
    """What `*v` must be as long as, beside all other arguments; None where the function does not tell."""
    if isinstance(called, LocalFunction):
        a, name = called.node.args, getattr(called.node, "name", "<lambda>")
        names = [p.arg for p in (*a.posonlyargs, *a.args)]
        fixed = not (a.vararg or a.defaults)
    elif isinstance(called, FunctionType):
        code, name = called.__code__, called.__qualname__
        names = list(code.co_varnames[: code.co_argcount])
        fixed = not (code.co_flags & 0x04 or called.__defaults__)
    else:
        return None
    plain = [o for o in others if not isinstance(o, ast.keyword)]
    given = {o.arg for o in others if isinstance(o, ast.keyword)}
    if not fixed or None in given or any(isinstance(o, ast.Starred) for o in plain):
        return None
    left = names[len(plain) :]
    while left and left[-1] in given:
        left.pop()
    if not given.isdisjoint(left):
        return None
    return Needed(name, tuple(left), len(names), next((n for n in names if n in given), None))


def vector_items(lowering: Any, value: Array, count: Needed) -> Sequence[Value]:
    """The elements of a vector as arguments; TypeError where there are too few or too many."""
    e, names = lowering.e, count.names
    extent = Scalar("py_int", e.extents(value.memref)[0], None, 0)
    for k in range(len(names)):
        fewer = scalars.compare(e, "Eq", extent, e.constant(k, "py_int"))
        scalars.raise_if(e, fewer.ssa, ("TypeError", missing(count.function, names[k:])))
    more = scalars.compare(e, "Gt", extent, e.constant(len(names), "py_int"))
    other = e.constant(count.total - len(names), "py_int")
    given = scalars.integer(e, "Add", extent, other)
    takes = f"{count.total} positional argument" + ("" if count.total == 1 else "s")
    if count.named is None:
        text = f"{count.function}() takes {takes} but {{}} were given"
        e.insert(array.RaiseIfOp(more.ssa, "TypeError", text, [given.ssa]))
    else:
        text = f"{count.function}() got multiple values for argument '{count.named}'"
        scalars.raise_if(e, more.ssa, ("TypeError", text))
    index = [e.constant(k, "py_int") for k in range(len(names))]
    return [lowering.settled(library.subscript(e, value, (i,))) for i in index]


def missing(function: str, names: Sequence[str]) -> str:
    """CPython's words for arguments that are missing."""
    shown = [f"'{n}'" for n in names]
    some = f"{', '.join(shown[:-1])}{',' * (len(names) > 2)} and {shown[-1]}"
    argument = "argument" if len(names) == 1 else "arguments"
    listed = shown[0] if len(names) == 1 else some
    return f"{function}() missing {len(names)} required positional {argument}: {listed}"


def items(
    lowering: Any, node: ast.expr, value: Value, count: Needed | None = None
) -> Sequence[Value]:
    """The values that `*value` stands for; in a call of which `count` is known, of a vector, too."""
    if isinstance(value, Record | Struct):
        return lowering.items_of_iterable(value, node)
    if isinstance(value, Tuple):
        return value.items
    seq = lowering.list_of(value)
    shown = None if seq is None else lowering.written_items(seq)
    if shown is not None:
        return shown
    if isinstance(value, Array) and value.rank and count is not None:
        return vector_items(lowering, value, count)
    if isinstance(value, Array) and value.rank:
        known = array.constant_value(lowering.e.extents(value.memref)[0])
        if known is not None:
            return lowering.rows(value, known)
    raise lowering.refusal(
        node, "`*` of something whose length only the run knows is not compiled",
        "write the items out, or pass the array itself",
    )  # fmt: skip


def written_out(node: ast.Call) -> list[ast.keyword]:
    """The keyword arguments of a call, `**{"a": x, "b": y}` as `a=x, b=y`."""
    found = list[ast.keyword]()
    for keyword in node.keywords:
        known = keyword.value if keyword.arg is None else None
        if isinstance(known, ast.Dict) and all(map(is_text, known.keys)):
            pairs = zip(known.keys, known.values, strict=True)
            found += [
                ast.copy_location(ast.keyword(k.value, v), v)  # pyright: ignore
                for k, v in pairs
            ]
        else:
            found.append(keyword)
    return found


def is_text(key: ast.expr | None) -> bool:
    return isinstance(key, ast.Constant) and isinstance(key.value, str)


def keywords(lowering: Any, named: Iterable[tuple[ast.keyword, Value]]) -> dict[str, Value]:
    """The keyword arguments, dicts after `**` by their items."""
    found = dict[str, Value]()
    for keyword, value in named:
        whole = keyword.arg is None
        given = lowering.items_of(value, keyword.value) if whole else {keyword.arg: value}
        for key, item in given.items():
            if not isinstance(key, str):
                raise lowering.refusal(keyword.value, "keywords must be strings")
            if key in found:
                raise lowering.refusal(
                    keyword.value, f"got multiple values for keyword argument '{key}'"
                )
            found[key] = item
    return found


def whole(lowering: Any, function: Value, node: ast.Call) -> Value | None:
    """`zip(*m)`, and `min(*l)` and `max(*l)` of as many items as only the run knows; None for other calls."""
    called = function.object if isinstance(function, Static) else None
    if called not in (zip, min, max) or len(node.args) != 1 or node.keywords:
        return None
    starred = node.args[0]
    if not isinstance(starred, ast.Starred):
        return None
    value = lowering.value(starred.value)
    if called is zip:
        parts = [answered(item, starred) for item in items(lowering, starred, value)]
        place = lowering.e.span, (zip, id(node))
        made = lowering.facts.implied.setdefault(
            place, ast.copy_location(ast.Call(node.func, [], []), node)
        )
        made.args = parts
        return lowering.consumed(zip, made)
    seq = lowering.list_of(value)
    if seq is None or lowering.written_items(seq) is not None:
        return lowering.call(function, list(items(lowering, starred, value)), {}, node)
    count, name = lowering.builtin_len([value], node), "min" if called is min else "max"
    shown = class_name(Scalar(getattr(seq.item, "type", "py_float"), count.ssa))
    none = scalars.compare(lowering.e, "Eq", count, lowering.e.constant(0, "py_int"))
    only = scalars.compare(lowering.e, "Eq", count, lowering.e.constant(1, "py_int"))
    scalars.raise_if(
        lowering.e, none.ssa, ("TypeError", f"{name} expected at least 1 argument, got 0")
    )
    scalars.raise_if(lowering.e, only.ssa, ("TypeError", f"'{shown}' object is not iterable"))
    return lowering.consume_value(called, value, [], node)


def answered(value: Value, like: ast.expr) -> ast.expr:
    made = Asked()
    made.answer = lambda: value
    return ast.copy_location(made, like)
