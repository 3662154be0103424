"""What the entries of a module are written from: keys, results, and what a gradient takes and returns."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase

from ...argument_keys import ArrayKey, Key, ScalarKey, TupleKey, leaves, parse
from ...diagnostics import CompileError
from .guard import Form
from .result import ResultSpec, is_fresh
from .writer import FLOATS


@dataclass(frozen=True)
class Signature:
    """How Python code may call the function by position."""

    parameters: int
    positional: int
    """The parameters that are not keyword-only."""


def signature_of(function: Callable[..., Any]) -> Signature:
    code = function.__code__
    return Signature(code.co_argcount + code.co_kwonlyargcount, code.co_argcount)


@dataclass(frozen=True)
class GradientSignature:
    """What the gradient function takes and returns beside the primal's arguments and results."""

    shadows: tuple[int, ...]
    """Parameters with a shadow: the arrays in `wrt`, and those that active values are written to."""
    cotangents: tuple[int, ...]
    """Results (of the IR function) with a cotangent."""
    scalars: tuple[int, ...]
    """Parameters whose cotangent is returned: the scalars in `wrt` that matter."""
    filled: tuple[int, ...] = ()
    """Of the parameters with a shadow those whose shadow may hold anything before."""

    def as_metadata(self) -> dict[str, list[int]]:
        return {
            "shadows": list(self.shadows),
            "cotangents": list(self.cotangents),
            "scalars": list(self.scalars),
            "filled": list(self.filled),
        }


def gradient_signature(gradient: func.FuncOp, arguments: Sequence[str]) -> GradientSignature:
    """Read the signature from the attributes that the derivative leaves on the gradient function.

    `shadows`, `scalars` list IR arguments of the primal, `cotangents` IR results.
    """
    position_of = leaf_positions([parse(a) for a in arguments])

    def indices(name: str) -> tuple[int, ...]:
        listed = gradient.attributes.get(name)
        if listed is None and name == "filled":
            return ()
        assert isinstance(listed, DenseArrayBase)
        return tuple(int(v) for v in listed.get_values())

    shadows = tuple(position_of[i] for i in indices("shadows"))
    refuse_in_tuples(arguments, shadows, "the gradient", "shadow")
    return GradientSignature(
        shadows,
        indices("cotangents"),
        tuple(position_of[i] for i in indices("scalars")),
        tuple(p for k, p in enumerate(shadows, len(position_of)) if k in indices("filled")),
    )


def refuse_in_tuples(
    arguments: Sequence[str], positions: Sequence[int], mode: str, beside: str
) -> None:
    """CompileError where an array in a tuple would have a shadow or tangents."""
    for position in positions:
        if isinstance(parse(arguments[position]), TupleKey):
            raise CompileError(
                None,
                f"values that {mode} follows are stored to an array inside of a tuple "
                f"(argument {position}), which has no {beside}",
                "pass the array as an argument of its own",
            )


def leaf_positions(keys: Sequence[Key]) -> list[int]:
    """Of each IR argument the parameter that it is of."""
    return [p for p, key in enumerate(keys) for _ in leaves(key)]


@dataclass(frozen=True)
class Tangents:
    """The tangents that an entry takes, and the results behind the first."""

    keys: tuple[Key, ...] = ()
    """Of the tangents that are handed in, in order."""
    more: tuple[ResultSpec, ...] = ()
    moving: tuple[tuple[str, int], ...] = ()
    """Of each tangent handed in what it is of: the "argument" or the "shadow" of a parameter."""
    leaves: dict[int, int] = field(default_factory=dict[int, int])
    """By the place among the primal's IR arguments that of an array's tangents among all arrays."""
    idle: tuple[int, ...] = ()
    """Parameters whose shadows are neither read nor written."""
    unread: tuple[int, ...] = ()
    """Parameters whose own tangents are neither read nor written."""
    filled: tuple[int, ...] = ()
    """Parameters the tangents of whose shadows may hold anything before."""
    zeros: tuple[int, ...] = ()
    """Parameters whose shadows have no tangents, or some that are neither read nor written: of products with
    the Hessian those that are zero."""
    diagonal: bool = False
    """Whether each element of what is returned moves with the argument's element in its place alone."""

    def as_metadata(self) -> dict[str, Any]:
        moving = [list(m) for m in self.moving]
        names = ("more", "idle", "unread", "filled", "zeros")
        found = {"moving": moving, "diagonal": self.diagonal}
        return {**found, **{name: list(getattr(self, name)) for name in names}}


@dataclass(frozen=True)
class EntryPlan:
    """What all entries of a module are written from, and nothing else is: see `convention`."""

    mode: str
    keys: tuple[Key, ...]
    overlaps: dict[tuple[int, int], str]
    wrt: tuple[int, ...]
    results: ResultSpec
    written: frozenset[int]
    signature: Signature
    gradient: GradientSignature
    assumed: tuple[Form, ...]
    """What the kernel assumes of the extents and ints among its arguments."""
    recursive: bool = False
    """Whether functions of the module are recursive."""
    of_parts: bool = False
    """Whether the first of several results is the function's own, the others what it has assigned."""
    tangents: Tangents = field(default_factory=Tangents)
    """What a tangent function takes and returns besides."""
    lanes: int = 1
    """How many shadows each array has, side by side, and how many cotangents each number."""
    driver: str = ""
    """Whose memory arrays are that are not the host's: "cuda", "emulated"."""
    debug: tuple[str, str] = ("", "")
    """Where lines are wanted: what goes into the head of `primal`, and behind its call of the kernel."""
    part: str = ""
    """Which of a gradient's entries: `FRESH`, `GIVEN`, or all."""

    @classmethod
    def of(cls, convention: str, debug: tuple[str, str] = ("", "")) -> EntryPlan:
        """The plan of a description that `convention` made."""
        said = json.loads(convention)
        lanes = said["tangents"]["lanes"]
        tangents = (with_lanes(parse(text), lanes) for text in said["tangents"]["keys"])
        return cls(
            said["mode"],
            tuple(map(parse, said["arguments"])),
            {(i, j): kind for i, j, kind in said["overlaps"]},
            tuple(said["wrt"]),
            said["results"],
            frozenset(said["written"]),
            Signature(*said["signature"]),
            GradientSignature(**{k: tuple(v) for k, v in said["gradient"].items()}),
            tuple(said["assumed"]),
            said["recursive"],
            said["of_parts"],
            Tangents(
                tuple(tangents),
                tuple(said["tangents"]["more"]),
                tuple((of, position) for of, position in said["tangents"]["moving"]),
                idle=tuple(said["tangents"]["idle"]),
                unread=tuple(said["tangents"]["unread"]),
                filled=tuple(said["tangents"]["filled"]),
                diagonal=said["tangents"]["diagonal"],
            ),
            said["lanes"],
            said["driver"],
            debug,
            said.get("part", ""),
        )

    def takes(self, *, fresh: bool) -> bool:
        """Whether entries are wanted that allocate shadows (`fresh`), or those that take the caller's."""
        return self.part in ("", FRESH if fresh else GIVEN)

    @property
    def inputs(self) -> int:
        """The arguments that no caller passes: they follow the parameters."""
        return len(self.keys) - self.signature.parameters

    def wrt_scalars(self) -> list[int]:
        """The scalars in `wrt`, in the order of parameters."""
        return [p for p in sorted(self.wrt) if isinstance(self.keys[p], ScalarKey)]

    def watched(self) -> set[int]:
        """The parameters whose sharing of memory matters."""
        active = {*self.wrt, *self.gradient.shadows} if self.wrt else set[int]()
        return set(self.written) | active

    def has_fast(self) -> bool:
        """Whether an entry does all that a user's call asks for."""
        shared = {p for pair in self.overlaps for p in pair}
        if shared & self.watched() or self.lanes > 1:
            return False
        match self.mode:
            case "gradient":
                result = self.results
                if self.of_parts and result["kind"] == "tuple" and result["items"]:
                    result = result["items"][0]
                return result.get("type") in FLOATS
            case "tangent":
                return self.are_plain() and all_move(self.results, self.tangents.more[0])
            case "vjp":
                return self.is_recorded()
            case "hvp" | "product":
                moving = {p for _, p in self.tangents.moving}
                return (
                    self.are_plain()
                    and self.results.get("type") in FLOATS
                    and (
                        not self.written
                        and moving <= {*self.wrt}
                        and {*self.wrt} == {*self.gradient.shadows, *self.wrt_scalars()}
                    )
                )
            case _:
                return False

    def is_recorded(self) -> bool:
        """Whether all that a call of `vjp` asks for is known by the keys of arrays and numbers."""
        if self.overlaps or self.inputs or self.driver or self.of_parts or not self.wrt:
            return False
        if any(isinstance(key, TupleKey) for key in self.keys):
            return False
        arrays = {p for p in self.wrt if isinstance(self.keys[p], ArrayKey)}
        whole = (
            isinstance(k, ArrayKey) and k.layout in "CF" for k in map(self.keys.__getitem__, arrays)
        )
        return {*self.gradient.shadows} <= arrays and all(whole)

    def has_rows(self) -> bool:
        """Whether Jacobians by rows need no more: of a float, or of a new array by several cotangents."""
        draws = any(isinstance(key, ScalarKey) and key.type == "rng" for key in self.keys)
        if self.mode != "vjp" or self.written or draws or not self.is_recorded():
            return False
        keys = [self.keys[p] for p in self.wrt]
        if not all(isinstance(key, ArrayKey) and key.layout == "C" for key in keys):
            return False
        result = self.results
        plain = result["kind"] == "scalar" or (
            self.lanes > 1
            and is_fresh(result)
            and not {"among", "list", "owners", "read_only"} & result.keys()
        )
        return plain and is_float(result)

    @property
    def directions(self) -> int:
        """How many tangents go along, side by side."""
        lanes = (one.lanes for one in self.tangents.keys if not isinstance(one, TupleKey))
        return max(lanes, default=1)

    def are_plain(self) -> bool:
        """Whether tangents go along of arrays and numbers alone; several of those that an entry turns."""
        if self.of_parts or not self.wrt:
            return False
        return self.directions == 1 or not any(map(is_turned_by_python, self.tangents.keys))

    def scalar_type(self, position: int) -> str:
        key = self.keys[position]
        assert isinstance(key, ScalarKey)
        return key.type


def is_turned_by_python(key: Key) -> bool:
    """Whether tangents of it are brought side by side in another order, or with another type."""
    if isinstance(key, ArrayKey):
        return key.layout == "F"
    return not isinstance(key, ScalarKey) or key.type not in ("py_float", "f64")


def all_move(result: ResultSpec, dot: ResultSpec) -> bool:
    """Whether every float among the results has a tangent that the kernel computes; of several tangents,
    which are arrays of their own."""
    if result["kind"] == "tuple":
        pairs = zip(result["items"], dot["items"], strict=True)
        return all(all_move(one, its) for one, its in pairs)
    if dot.get("lanes", 1) > 1 and dot["kind"] == "array" and "among" in dot:
        return False
    return dot["kind"] != "none" or not (result["kind"] == "argument" or is_float(result))


def is_float(leaf: ResultSpec) -> bool:
    return leaf.get("type", leaf.get("dtype")) in FLOATS


def convention(
    arguments: Sequence[str],
    overlaps: Sequence[tuple[int, int, str]],
    mode: str,
    wrt: Sequence[int],
    results: ResultSpec,
    written: Sequence[int],
    signature: Signature,
    gradient: GradientSignature | None = None,
    assumed: Sequence[Form] = (),
    recursive: bool = False,
    of_parts: bool = False,
    tangents: Tangents | None = None,
    lanes: int = 1,
    driver: str = "",
) -> str:
    """How Python code calls these kernels, as text: modules of which it is the same share their entries.

    `gradient` is that of the kernel where the mode is "gradient", of `@backward` where it is "vjp"; its
    shadows and cotangents have as many `lanes`.
    """
    if mode in ("gradient", "pullback", "vjp") and gradient is None:
        raise TypeError("the entries of a gradient need the gradient function's signature")
    tangents = tangents or Tangents()
    keys = tangents.keys
    moving = {1 if isinstance(key, TupleKey) else key.lanes for key in keys} or {1}
    said = {
        "mode": mode,
        "arguments": list(arguments),
        "overlaps": [list(overlap) for overlap in overlaps],
        "wrt": list(wrt),
        "results": results,
        "written": sorted(written),
        "signature": [signature.parameters, signature.positional],
        "gradient": (gradient or GradientSignature((), (), ())).as_metadata(),
        "assumed": list(assumed),
        "recursive": recursive,
        "of_parts": of_parts,
        "lanes": lanes,
        "driver": driver,
        "tangents": {
            **tangents.as_metadata(),
            "keys": list(map(str, keys)),
            "lanes": max(moving),
        },
    }
    return json.dumps(said, sort_keys=True)


FRESH, GIVEN = "fresh", "given"
"""The entries that allocate the shadows, `grad` and `value_and_grad`, and those that take the caller's."""


def in_parts(convention: str) -> tuple[str, str | None]:
    """The conventions of the entries that a kernel is loaded with, and of those that wait until they are
    called: a gradient's that take the caller's shadows, which few programs call. None where nothing waits."""
    plan, said = EntryPlan.of(convention), json.loads(convention)
    if plan.mode != "gradient" or plan.driver or not plan.has_fast():
        return convention, None
    first, later = (json.dumps({**said, "part": p}, sort_keys=True) for p in (FRESH, GIVEN))
    return first, later


def with_lanes(key: Key, lanes: int) -> Key:
    """The key of so many tangents, of which this is one."""
    return replace(key, lanes=lanes) if isinstance(key, ArrayKey | ScalarKey) else key
