"""Arrays that are others from some place on, under all their names: what `y.shape = ...` comes to.

y = x * 2                    %y = array.alloc ...
z = y                        y and z are %y
y.shape = (2, -1)            %v = array.view %y ...     from here on y and z are %v
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any

from xdsl.dialects import func, memref, scf

from ....dialects import array
from ..joins import Binding, Maybe
from ..values import Array, Struct, Tuple

if TYPE_CHECKING:
    from ..context import Context

OURS = __name__.rpartition(".library")[0]
KEEPING = (scf.YieldOp, array.YieldOp, array.LoopOp, memref.CastOp, func.CallOp)
"""Where an array goes with its identity, under another name."""


def become(lowering: Context, old: Array, made: Array) -> None:
    """Rebind all names of an array; refused where a reference that is not known may hold it."""
    if made == old:
        return
    maker = old.memref.owner
    frames = list(lowering.frames.values())
    bound = [b for frame in frames for b in frame.env.values()]
    holders = sum(b == old for b in bound)
    is_found = (
        isinstance(maker, array.AllocOp | array.AnyView)
        and maker.parent is lowering.e.block
        and not any(isinstance(use.operation, KEEPING) for use in old.memref.uses)
        and not (old.whole and holders > 1)
        and not any(keeps(b, old) for b in bound)
        and not is_in_list(lowering, old)
    )
    if not is_found:
        raise lowering.refusal(
            None,
            "this changes the shape of an array that the caller, another path, an object or a list may hold",
            "bind what .reshape() gives: y = y.reshape(...)",
        )
    for frame in frames:
        frame.env = {
            name: with_arrays(b, lambda one: made if one == old else one)
            for name, b in frame.env.items()
        }


def keeps(binding: Binding, one: Array) -> bool:
    """Whether an object keeps an array where `with_arrays` does not find it: a method, a default."""
    match binding:
        case Maybe(value):
            return keeps(value, one)
        case Tuple(items) | Struct(items):
            return any(keeps(item, one) for item in items)
        case Array():
            return False
        case _:
            return is_part(one, binding)


def is_part(one: Array, whole: object) -> bool:
    """Whether an object of the frontend consists of an array; of an iterator that is unknown."""
    return any(p == one or getattr(p, "made", None) is not None for p in parts_of(whole))


def parts_of(whole: object) -> Iterator[object]:
    """An object of the frontend and all that it consists of: its fields, unless it says otherwise."""
    pending: list[Any] = [whole]
    seen: dict[int, object] = {}  # what holds one another, or is held twice, is visited once
    while pending:
        part = pending.pop()
        if id(part) in seen:
            continue
        seen[id(part)] = part
        yield part
        if isinstance(part, tuple | list):
            pending += part
        elif isinstance(part, dict):
            pending += part.values()
        elif hasattr(part, "consists_of"):
            pending += part.consists_of()
        elif is_dataclass(part) and type(part).__module__.startswith(OURS):
            pending += [getattr(part, f.name) for f in fields(part)]


def is_in_list(lowering: Context, one: Array) -> bool:
    """Whether an array is, or was copied to, an item of a list."""
    if one.memref in lowering.e.became.values():
        return True
    return any(
        one.memref in seq.loaded or any(copy.source is one.memref for copy in seq.copies)
        for seq in lowering.lists.values()
    )


def with_arrays(binding: Binding, now: Callable[[Array], Array]) -> Binding:
    """The binding, each array in it what it is now."""
    match binding:
        case Maybe(value, defined):
            inner = with_arrays(value, now)
            assert not isinstance(inner, Maybe)
            return Maybe(inner, defined)
        case Array():
            return now(binding)
        case Tuple(items) | Struct(items):
            return replace(binding, items=tuple(with_arrays(item, now) for item in items))
        case _:
            return binding
