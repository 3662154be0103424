"""Several derivatives at once of functions of objects: what has an axis more, and what cannot have.

Of k derivatives each array and number in an object is an array with a first axis of k. A list of numbers has
no place for that: it is refused, as an argument that moves and among results.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from .objects import Flat


def refused(call: str, what: str, way_out: str) -> TypeError:
    return TypeError(f"{call}: {what}, whose numbers have no room for several: {way_out}")


def is_stackable(recipe: Any, without: Collection[str] = ()) -> bool:
    """Whether a result is made of numbers, arrays, tuples and objects, which may stand for several each."""
    match recipe:
        case [kind, *_] if kind in without:
            return False
        case ["tuple" | "list", *_, items] | ["object", _, _, _, items]:
            return all(is_stackable(item, without) for item in items)
        case ["kept", _, inner]:
            return is_stackable(inner, without)
        case ["choice", options]:
            return all(is_stackable(one, without) for one in options)
        case _:
            return recipe[0] in ("flat", "static", "again", "argument")


def require_stackable(
    call: str, flat: Flat, values: tuple[Any, ...], without: Collection[str] = ()
) -> None:
    """TypeError where lists of numbers, which cannot hold several of each, are made or assigned."""
    records = flat.records_for(values)
    if records is None:
        return
    recipes = [records["result"], *(recipe for _, _, recipe in records["changes"])]
    if records["stores"] or not all(is_stackable(one, without) for one in recipes):
        raise refused(
            call,
            f"{flat.dispatcher.function.__qualname__} makes a list, or changes one",
            "make an array, or call it for each",
        )


def require_no_numbers(call: str, flat: Flat, positions: Collection[int]) -> None:
    """TypeError where one of these leaves is the numbers of a list."""
    for node in flat.structure.objects.values():
        if node.kind == "numbers" and any(item.index in positions for item in node.items):
            raise refused(call, f"{node.name!r} is a list of numbers", "use an array in its place")
