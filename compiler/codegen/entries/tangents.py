"""What the entry of a tangent function takes and returns beside what the primal's, or the gradient's, does.

Behind the primal's arguments (and, for Hessian-vector products, the shadows and cotangents of the gradient)
come the tangents of what moves. Behind the primal's result come, each a result of its own: for Hessian-vector
products the gradients of scalars; then the tangents of all that the function returns. Of several tangents at
once, those of arrays have an axis more, the last, and those of scalars are tuples.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from xdsl.dialects import func, memref
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.ir import SSAValue

from ...analysis.diagonal import DIAGONAL
from ...argument_keys import ArrayKey, Key, ScalarKey, TupleKey, parse
from .plan import GradientSignature, Tangents, leaf_positions, refuse_in_tuples
from .result import ResultSpec, arrays_and_scalars, stored_leaves

NONE: ResultSpec = {"kind": "none"}


def tangents_of(
    function: func.FuncOp,
    arguments: Sequence[str],
    results: ResultSpec,
    of_gradient: GradientSignature | None,
    lanes: int,
) -> Tangents:
    """Read what moves from the attributes that the derivative leaves on the tangent function.

    It is the tangent of the function itself, or `of_gradient`, which may have nothing that moves.
    """
    keys = [parse(a) for a in arguments]
    positions = leaf_positions(keys)
    gradient = of_gradient or GradientSignature((), (), ())
    count, shadows = len(positions), gradient.shadows
    taken: list[Key] = []
    moving: list[tuple[str, int]] = []
    leaves: dict[int, int] = {}
    for index in indices(function, "moving"):
        position = positions[index] if index < count else shadows[index - count]
        key = keys[position]
        if index < count and isinstance(key, ArrayKey):
            leaves[index] = count + len(shadows) + len(taken)
        assert isinstance(key, ArrayKey | ScalarKey | TupleKey)
        taken.append(key if isinstance(key, TupleKey) else replace(key, lanes=lanes))
        moving.append(("argument" if index < count else "shadow", position))
    refuse_in_tuples(arguments, [p for _, p in moving], "forward mode", "tangents")
    moved = set(indices(function, "moved"))
    total = len(list(stored_leaves(results)))
    bars = [scalar_spec(keys[p]) for p in gradient.scalars]
    dots = [in_lanes(bar, lanes) if total + k in moved else NONE for k, bar in enumerate(bars)]
    more = [tangent_spec(results, moved, leaves, lanes)]
    if of_gradient is not None:
        more = [{"kind": "tuple", "items": bars}, *more, {"kind": "tuple", "items": dots}]
    args = function.body.block.args
    idle = tuple(p for k, p in enumerate(shadows) if is_idle(args[count + k]))
    listed = {*indices(function, "filled")} if "filled" in function.attributes else set[int]()
    first = len(args) - len(moving)
    unread = tuple(
        p for k, (of, p) in enumerate(moving, first) if of == "argument" and is_idle(args[k])
    )
    filled = tuple(p for k, (_, p) in enumerate(moving, first) if k in listed)
    places = {p: k for k, (of, p) in enumerate(moving, first) if of == "shadow"}
    zeros = tuple(p for p in shadows if p not in places or is_idle(args[places[p]]))
    return Tangents(
        tuple(taken),
        tuple(more),
        tuple(moving),
        leaves,
        idle,
        unread,
        filled,
        zeros,
        diagonal=DIAGONAL in function.attributes,
    )


def is_idle(shadow: SSAValue) -> bool:
    """Whether of an array only the extents are read."""
    return all(isinstance(use.operation, memref.DimOp) for use in shadow.uses)


def in_lanes(spec: ResultSpec, lanes: int) -> ResultSpec:
    """The tangents of a scalar."""
    return spec if lanes == 1 else {"kind": "tuple", "items": [spec] * lanes, "lanes": True}


def scalar_spec(key: Key) -> ResultSpec:
    assert isinstance(key, ScalarKey)
    return {"kind": "scalar", "type": key.type}


def tangent_spec(
    spec: ResultSpec, moved: set[int], leaves: Mapping[int, int], lanes: int
) -> ResultSpec:
    """The description of the tangents of a result: as it is described, None in place of what does not move.

    `moved` are places among the IR results, `leaves` maps places of arguments to those of their tangents.
    """
    numbers = iter(range(len(list(stored_leaves(spec)))))
    arrays = [s for s in (*arrays_and_scalars(spec), *spec.get("owners", ())) if is_array(s)]
    kept: dict[int, ResultSpec] = {}

    def dotted(one: ResultSpec) -> ResultSpec:
        match one["kind"]:
            case "tuple":
                return {"kind": "tuple", "items": [dotted(item) for item in one["items"]]}
            case "argument" if one["leaf"] in leaves:
                made = {"kind": "argument", "leaf": leaves[one["leaf"]], "position": None}
            case "scalar":
                tangent = {"kind": "scalar", "type": one["type"]}
                return in_lanes(tangent, lanes) if next(numbers) in moved else NONE
            case "array" if next(numbers) in moved:
                made = {k: v for k, v in one.items() if k not in ("base", "among")}
                made["lanes"] = lanes
                made["base"] = leaves.get(one["base"]) if one.get("base") is not None else None
                if "among" in one:
                    made["among"] = sorted(leaves[a] for a in one["among"])
            case _:
                return NONE
        kept[id(one)] = made
        return made

    made = dotted(spec)
    owners = [dotted(owner) for owner in spec.get("owners", ())]
    renumber(arrays, kept)
    if any(owner is not NONE for owner in owners):
        made = {**made, "owners": [owner for owner in owners if owner is not NONE]}
    return made


def renumber(arrays: Sequence[ResultSpec], kept: Mapping[int, ResultSpec]) -> None:
    """Owners are named by their number among all arrays; those that do not move have no tangents."""
    places = {id(one): k for k, one in enumerate(one for one in arrays if id(one) in kept)}
    for one in arrays:
        if id(one) in kept and "owner" in one:
            kept[id(one)]["owner"] = places[id(arrays[one["owner"]])]


def is_array(spec: ResultSpec) -> bool:
    return spec["kind"] in ("array", "argument")


def indices(function: func.FuncOp, name: str) -> Iterator[int]:
    listed = function.attributes[name]
    assert isinstance(listed, DenseArrayBase)
    return (int(v) for v in listed.get_values())
