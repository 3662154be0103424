"""Compiled functions of objects: `structures` says what their parts are, `boundary` what comes back.

A call flattens its arguments, runs the function of the parts, puts the result together and assigns what the
function assigned to its arguments' fields; where it raises, what it had assigned until then. The
gradient with respect to an object is an object of the same class: its float fields hold cotangents, the
others what they held.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import FunctionType
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from . import keys, object_calls, write_back
from .list_columns import parts_of
from .object_code import finisher, taker
from .placed_lists import met_stores
from .structures import (
    Assembly,
    Node,
    Parts,
    Structure,
    flatten,
    get_field,
    set_field,
)
from .union_results import is_choice, nothing_of, option_of, require_float

if TYPE_CHECKING:
    from .dispatch import Dispatcher
    from .function import CompiledFunction

Recipe = list[Any]
Records = dict[str, Any]
Finisher = Callable[[Any, list[Any], Sequence[Any]], Any]


def number_of(kind: type[Any]) -> Callable[[int], Any]:
    """What makes a number of this type of the 64 bits that stand for it: a double's, or an integer's."""
    made = cast("Callable[[Any], Any]", kind)
    if kind is float or issubclass(kind, np.floating):
        return lambda bits: made(struct.unpack("d", struct.pack("q", bits))[0])
    return (lambda bits: made(bits % 2**64)) if issubclass(kind, np.unsignedinteger) else made


CODES: tuple[Callable[[int], Any], ...] = (
    lambda bits: None,
    *(number_of(kind) for kind in keys.SCALARS.values()),
)
"""By type code in the journal: what the bits stand for."""


@dataclass(eq=False)
class Flat:
    """The function of the parts, for one structure of the arguments."""

    structure: Structure
    compiled: CompiledFunction
    dispatcher: Dispatcher
    take: Callable[[tuple[Any, ...]], Any]
    """Takes arguments of this structure apart; None for others."""
    owner: Dispatcher
    """That of the function itself."""
    finishers: dict[int, Finisher] = field(default_factory=dict[int, Finisher])
    """By the identity of a recipe."""
    journals: list[Any] = field(default_factory=list[Any])
    """Those that no call is using: compiled code empties what it writes to."""

    def journal(self) -> Any:
        return np.zeros(2 * self.structure.room, np.int64) if self.structure.room else None

    def values_of(self, made: Parts) -> tuple[Any, ...]:
        return (*made.leaves, self.journal())

    def records_for(self, values: tuple[Any, ...]) -> Records | None:
        """How results are put together, for parts of these kinds."""
        recipes = self.dispatcher.recipes
        if len(recipes) == 1:
            return recipes[0]
        return self.dispatcher.specialize(self.dispatcher.values_of(*values)).metadata["records"]

    def call(self, made: Parts) -> Any:
        """The primal."""
        values = self.values_of(made)
        try:
            result = self.dispatcher.heads["primal"](*values)
        except BaseException as raised:
            self.replay(raised, values, made)
            raise
        return self.finished(result, values, made)

    def finished(self, result: Any, values: tuple[Any, ...], made: Parts) -> Any:
        """The result of a call, after its assignments to the arguments' fields."""
        return finished(self, self.records_for(values), result, made)

    def finisher(self, records: Records) -> Finisher:
        """Puts results of this recipe together."""
        if id(records) not in self.finishers:
            self.finishers[id(records)] = finisher(records, found)
        return self.finishers[id(records)]

    def replay(self, raised: BaseException, values: tuple[Any, ...], made: Parts) -> None:
        """Leave the fields of arguments as the call that raised had assigned them until then."""
        if not self.dispatcher.recipes:
            return  # it was not compiled: nothing has run
        is_exact = self.is_exact(raised)
        state, journal = write_back.left(raised), values[len(made.leaves)]
        if state is None and is_exact and (journal is None or not journal.any()):
            return
        records = self.records_for(values)
        if records is None:
            return
        changes_lists = any(type(made.objects[number]) is list for number, *_ in records["changes"])
        if state is None and changes_lists and not is_exact:
            raised.add_note(
                "mutad: what was done to lists before this was raised has not reached the caller's"
            )
        known = set[tuple[int, Any]]() if state is None else self.restore(*state, records, made)
        noted: list[tuple[int, int]] = []
        if journal is not None:
            noted = journal.reshape(-1, 2).tolist()
        for (number, key), (code, bits) in zip(records["slots"], noted, strict=False):
            name, target = key_of(key), made.objects[number]
            if 0 < code < len(CODES):
                set_field(target, name, CODES[code](bits))
            elif code and (number, name) not in known:
                raised.add_note(
                    f"mutad: `{name}` of {type(target).__name__} was bound to a new array or object"
                    " before this was raised: it is still bound to what it was before the call"
                )

    def is_exact(self, raised: BaseException) -> bool:
        """Whether compiled code has handed over all that had changed."""
        recipes = [r for r in self.dispatcher.recipes if r is not None]
        return write_back.is_checked(raised) and not any(r["calls"] for r in recipes)

    def restore(
        self, number: int, given: list[Any], records: Records, made: Parts
    ) -> set[tuple[int, Any]]:
        """Assign what the exception left besides numbers; the fields that this was."""
        state = records["states"][number]
        known = (*made.leaves, *self.dispatcher.era.captures.values())
        values = write_back.values_of(state, given, known)
        nothing = {"result": ["static", {"value": None}], "changes": state["changes"]}
        nothing["stores"] = state["stores"]
        finisher(nothing, found)(values, made.objects, made.leaves)
        return {(number, key_of(key)) for number, key, _ in state["changes"]}


@contextmanager
def journaled(flat: Flat, values: tuple[Any, ...], made: Parts) -> Generator[None]:
    """Where a call raises, its arguments' fields are as it had assigned them until then."""
    try:
        yield
    except BaseException as raised:
        flat.replay(raised, values, made)
        raise


def flat_of(dispatcher: Dispatcher, bound: tuple[Any, ...]) -> tuple[Flat, Parts]:
    """The function of the parts for these arguments, and the parts."""
    latest: Flat | None = dispatcher.latest
    if latest is not None:
        taken = latest.take(bound)
        if taken is not None:
            return latest, Parts(*taken)
    shapes, kinds, made = flatten(bound)
    flat = dispatcher.flats.get((shapes, kinds))
    if flat is None:
        structure = Structure(dispatcher.function, shapes, dispatcher.parameters)
        flat = make(dispatcher, structure)
        dispatcher.keep((shapes, kinds), flat)
    dispatcher.latest = flat
    return flat, made


def make(dispatcher: Dispatcher, structure: Structure) -> Flat:
    function = function_of_parts(structure)
    with_gradient = dispatcher.checks_gradient
    made = dispatcher.make(function, dispatcher.options, dispatcher.compiler, with_gradient)
    own = made._dispatcher  # pyright: ignore[reportPrivateUsage]
    flat = Flat(structure, made, own, taker(structure), dispatcher)
    function.__globals__["flat"] = flat
    return flat


def function_of_parts(structure: Structure) -> FunctionType:
    """A Python function of the parts, which calls the function itself with objects made of them."""
    own = structure.function
    count = len(structure.names)
    names = [f"p{i}" for i in range(count)]
    source = f"def f({', '.join(names)}): return run(flat, ({''.join(n + ', ' for n in names)}))"
    namespace: dict[str, Any] = {"run": run_python}
    exec(compile(source, f"<mutad: parts of {own.__name__}>", "exec"), namespace)
    code: Any = namespace["f"].__code__
    renamed = code.replace(
        co_varnames=structure.names, co_name=own.__name__, co_qualname=own.__qualname__
    )
    made = FunctionType(renamed, namespace, own.__name__)
    made.__qualname__, made.__module__, made.__doc__ = own.__qualname__, own.__module__, own.__doc__
    made.structure = structure  # pyright: ignore[reportFunctionMemberAccess]
    return made


def run_python(flat: Flat, parts: tuple[Any, ...]) -> Any:
    """What CPython makes of the parts, in the form of the compiled function's result."""
    structure = flat.structure
    others = [None for n in structure.by_name.values() if n.kind == "opaque"]
    assembly = Assembly(structure, list(parts[:-1]), others)
    arguments = [assembly.make(node) for node in structure.nodes]
    records = flat.dispatcher.specialize(flat.dispatcher.values_of(*parts)).metadata["records"]
    stores = [] if records is None else met_stores(records["stores"], assembly.made, parts)
    result = call_by_position(structure.function, arguments)  # pyright: ignore[reportArgumentType]
    if records is None:
        return result
    parted = list(parts_by(records["result"], result, stores))
    for number, key, recipe in records["changes"]:
        parted += parts_by(recipe, get_field(assembly.made[number], key_of(key)), stores)
    return (*parted, *(part for store in stores for part in store.parts()))


def call_by_position(function: FunctionType, arguments: Sequence[Any]) -> Any:
    code = function.__code__
    first = code.co_argcount
    named = code.co_varnames[first : first + code.co_kwonlyargcount]
    return function(*arguments[:first], **dict(zip(named, arguments[first:], strict=True)))


# Results.


def finished(flat: Flat, records: Records | None, result: Any, made: Parts) -> Any:
    """The result of a call, after its assignments to the arguments' fields."""
    return result if records is None else flat.finisher(records)(result, made.objects, made.leaves)


def parts_by(recipe: Recipe, value: Any, stores: Sequence[Any] = ()) -> Iterator[Any]:
    """What the kernel returns, of a result; `stores` say what the places of items are."""
    match recipe:
        case ["flat"]:
            yield value
        case ["tuple", _, items]:
            for item, part in zip(items, value, strict=True):
                yield from parts_by(item, part, stores)
        case ["choice", options]:
            taken = option_of([known_of(one) for one in options], value)
            yield taken
            for k, one in enumerate(options):
                yield from parts_by(one, value, stores) if k == taken else nothing_of(one)
        case ["item", _]:
            yield 0
        case ["picked", number]:
            yield stores[number].number(value)
        case ["kept", _, inner]:
            yield from parts_by(inner, value, stores)
        case ["numbers" | "placed", form]:
            yield from parts_of(form, value, stores)
        case ["list", items]:
            for item, part in zip(items, value, strict=True):
                yield from parts_by(item, part, stores)
        case ["object", _, _, names, items]:
            for name, item in zip(names, items, strict=True):
                yield from parts_by(item, get_field(value, key_of(name)), stores)
        case _:
            pass


def known_of(recipe: Recipe) -> tuple[Any, ...]:
    """The object that a recipe is of, where it is known while compiling."""
    return (found(recipe[1]),) if recipe[0] == "static" else ()


def key_of(key: Any) -> Any:
    """The name of a field, or the key of a dict."""
    return key if isinstance(key, str) else found(key[1])


def found(reference: dict[str, Any]) -> Any:
    """The object that `boundary.reference` refers to."""
    if "value" in reference:
        return reference["value"]
    if "object" in reference:
        return reference["object"]
    cls: Any = sys.modules[reference["module"]]
    for part in reference["name"].split("."):
        cls = getattr(cls, part)
    return cls[reference["member"]] if "member" in reference else cls


# wrt.


@dataclass(frozen=True)
class Selection:
    """What `wrt` names: parts of the arguments, or inputs from outside."""

    items: tuple[Node | int, ...]
    """A part, or the position of an input among the flat function's values."""
    single: bool
    positions: tuple[int, ...]
    """Of the floats in them, in order."""

    def gradients(self, by_position: dict[int, Any], flat: Flat, made: Parts) -> Any:
        """The gradients, in the form of what `wrt` names."""
        parts = [by_position.get(k, leaf) for k, leaf in enumerate(made.leaves)]
        assembly = Assembly(flat.structure, parts, made.others)
        found = [by_position[n] if isinstance(n, int) else assembly.make(n) for n in self.items]
        return found[0] if self.single else tuple(found)


def selected(flat: Flat, made: Parts, wrt: Any, *, some: bool = False) -> Selection:
    """What `wrt` names: parameters by name or position, parts by path; `some` may hold no floats."""
    single = not isinstance(wrt, tuple | list)
    names: Sequence[Any] = (wrt,) if single else wrt
    if not names:
        raise ValueError("wrt is empty: name at least one parameter")
    items = tuple([part_named(flat, name) for name in names])
    if len({n if isinstance(n, int) else id(n) for n in items}) < len(items) and len(
        set(map(repr, names))
    ) < len(items):
        raise ValueError(f"wrt names a parameter twice: {wrt!r}")
    positions = dict[int, None]()
    for item in items:
        if isinstance(item, int):
            positions[item] = None
            continue
        floats = [k for k in all_leaves(flat.structure, item) if is_float(made.leaves[k])]
        if not floats and not some:
            what = "holds no floats" if item.items else "is not a float"
            raise TypeError(
                f"{item.name!r} has no derivative, it {what}: derivatives are with respect to floats"
                f"{others_with_floats(flat, made)}"
            )
        positions.update(dict.fromkeys(floats))
    return Selection(items, single, tuple(positions))


def others_with_floats(flat: Flat, made: Parts) -> str:
    """The parameters that `wrt` may name, in words; "" if there are none."""
    structure = flat.structure
    of_parameters = zip(structure.parameters, structure.nodes, strict=True)
    named = [
        repr(name)
        for name, node in of_parameters
        if any(is_float(made.leaves[k]) for k in all_leaves(structure, node))
    ]
    return f", wrt= may name {' or '.join(named)}" if named else ""


def all_leaves(structure: Structure, node: Node) -> Iterator[int]:
    """The leaves in a part, and in the objects that it holds again."""
    pending, seen = [node], set[int]()
    while pending:
        one = structure.original(pending.pop(0))
        if one.kind == "leaf":
            yield one.index
        elif id(one) not in seen:
            seen.add(id(one))
            pending = [*one.items, *pending]


def is_float(leaf: Any) -> bool:
    if isinstance(leaf, np.ndarray):
        return leaf.dtype in (np.float64, np.float32)
    return type(leaf) in (float, np.float64, np.float32)


def part_named(flat: Flat, name: Any, option: str = "wrt") -> Node | int:
    """The part, or the position of an input, that an option of a call names."""
    structure, dispatcher = flat.structure, flat.dispatcher
    count = len(structure.parameters)
    if isinstance(name, str):
        node = structure.find(name)
        if node is not None:
            return node
        if name in dispatcher.names:
            return dispatcher.names.index(name)
        known = ", ".join((*structure.parameters, *dispatcher.era.captures.names))
        raise TypeError(
            f"{option}: no parameter or part of one is called {name!r}; there are {known}"
        )
    if isinstance(name, int) and not isinstance(name, bool):
        if -count <= name < count:
            return structure.original(structure.nodes[name % count])
        raise TypeError(f"{option}: there is no parameter {name}; there are {count}")
    raise TypeError(f"{option} takes names and positions of parameters, not {name!r}")


def flat_names(flat: Flat, selection: Selection) -> tuple[str, ...]:
    names = flat.dispatcher.names
    return tuple([names[p] for p in selection.positions])


def float_names(flat: Flat, wrt: Any) -> tuple[str, ...]:
    """The names of the floats among the parts that `wrt` names, as of the latest compilation."""
    names, kinds = flat.dispatcher.names, list(flat.dispatcher.table)[-1][0]
    found: list[str] = []
    for name in wrt if isinstance(wrt, tuple | list) else (wrt,):
        item = part_named(flat, name)
        leaves = [item] if isinstance(item, int) else all_leaves(flat.structure, item)
        found += [names[k] for k in leaves if kinds[k].startswith(keys.FLOATS)]
    return tuple(found)


# Calls.


def primal(dispatcher: Dispatcher, bound: tuple[Any, ...]) -> Any:
    """A call with objects."""
    flat, made = flat_of(dispatcher, bound)
    result = flat.call(made)
    if len(flat.dispatcher.recipes) == 1:
        dispatcher.lead("primal", (id(flat),), lambda n: object_calls.primal(flat, found, n))
    return result


def gradient(dispatcher: Dispatcher, kind: str, wrt: Any, bound: tuple[Any, ...]) -> Any:
    """`grad` and `value_and_grad` with objects."""
    flat, made = flat_of(dispatcher, bound)
    selection = selected(flat, made, wrt)
    names, own = flat_names(flat, selection), flat.dispatcher
    values = flat.values_of(made)
    with journaled(flat, values, made):
        result, gradient = own.heads["value_and_grad"](*values, wrt=names)
    value = flat.finished(result, values, made)
    if len(own.recipes) != 1 or is_choice(own.recipes[0]):
        require_float(value)
    shown = selection.gradients(dict(zip(selection.positions, gradient, strict=True)), flat, made)
    if len(own.recipes) == 1 and isinstance(wrt, str | int | tuple):
        kinds = tuple([(type(v), getattr(v, "dtype", None)) for v in made.leaves])
        dispatcher.lead(
            kind,
            (id(flat), repr(wrt), kinds),
            lambda n: object_calls.gradient(
                flat, found, n, kind, wrt, selection, made.leaves, names
            ),
        )
    return shown if kind == "grad" else (value, shown)
