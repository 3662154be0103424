"""What Python's lists do with comparisons and slices, as Python: lowered like any local function.

Sorting is a merge sort of places, stable as Python's, so a gradient flows through the permutation that it
finds and through nothing else.
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

ORDER = """
def order(keys, reverse, len, list, range, min):
    n = len(keys)
    places = list(range(n))
    other = list(range(n))
    width = 1
    while width < n:
        for start in range(0, n, 2 * width):
            middle = min(start + width, n)
            end = min(middle + width, n)
            i = start
            j = middle
            for k in range(start, end):
                left = i < middle
                if left and j < end:
                    if reverse:
                        left = not keys[places[i]] < keys[places[j]]
                    else:
                        left = not keys[places[j]] < keys[places[i]]
                if left:
                    other[k] = places[i]
                    i = i + 1
                else:
                    other[k] = places[j]
                    j = j + 1
        for k in range(n):
            places[k] = other[k]
        width = width * 2
    return places
"""
KEYS = """
def keys(items, key):
    made = []
    for item in items:
        made.append(key(item))
    return made
"""
PERMUTE = """
def permute(items, places, len, range):
    old = items.copy()
    for k in range(len(places)):
        items[k] = old[places[k]]
"""
EQUAL = """
def equal(a, b, len, range):
    if len(a) != len(b):
        return False
    for k in range(len(a)):
        if a[k] != b[k]:
            return False
    return True
"""
LESS = """
def less(a, b, len, range, min):
    for k in range(min(len(a), len(b))):
        if a[k] != b[k]:
            return a[k] {sign} b[k]
    return len(a) {sign} len(b)
"""
EXTREME = """
def {name}(items, key, ValueError):
    found = False
    for item in items:
        value = key(item)
        if not found or value {sign} rank:
            best = item
            rank = value
            found = True
    if not found:
        raise ValueError("{message}")
    return best
"""
SUM = """
def sum_(items, total, NotImplementedError, len, range):
    if len(items) == 0:
        raise NotImplementedError("mutad: the sum of an empty list of arrays")
    total = total + items[0]
    for k in range(1, len(items)):
        total = total + items[k]
    return total
"""
BEST = """
def {name}(items, key, ValueError, len, range):
    best = -1
    for k in range(len(items)):
        value = key(items[k])
        if best < 0 or value {sign} rank:
            best = k
            rank = value
    if best < 0:
        raise ValueError("{message}")
    return items[best]
"""
LEAST = """
def {name}(items, key, ValueError, len, range):
    best = -1
    for k in range(len(items)):
        if best < 0 or items[k] {sign} items[best]:
            best = k
    if best < 0:
        raise ValueError("{message}")
    return items[best]
"""
EXTREME_OR = """
def {name}(items, key, default):
    found = False
    for item in items:
        value = key(item)
        if not found or value {sign} rank:
            best = item
            rank = value
            found = True
    if not found:
        return default
    return best
"""
IS_EQUAL, IS_OR_EQUAL = "items[k] == wanted", "items[k] is wanted or items[k] == wanted"
FIND = """
def find(items, wanted, len, range):
    number = 0
    at = len(items)
    for k in range(len(items)):
        if {test}:
            number = number + 1
            if number == 1:
                at = k
    return number, at
"""
DELETE = """
def delete(items, start, count, step, len, range):
    place = 0
    for k in range(len(items)):
        if k < start or (k - start) % step != 0 or (k - start) // step >= count:
            items[place] = items[k]
            place = place + 1
    return place
"""


def itself(item: Any) -> Any:
    """The key of items that are compared as they are."""
    return item


def written(text: str, like: ast.AST) -> ast.FunctionDef:
    """The function, its names apart from those of the program, at the place of `like`."""
    (made,) = ast.parse(text).body
    assert isinstance(made, ast.FunctionDef)
    for node in ast.walk(made):
        match node:
            case ast.Name(name):
                node.id = f"{name}$"
            case ast.arg(name):
                node.arg = f"{name}$"
            case _:
                pass
        if isinstance(node, ast.expr | ast.stmt | ast.arg):
            ast.copy_location(node, like)
    return made


def builtins_of(function: ast.FunctionDef) -> list[Any]:
    """The builtins that the function takes as its last arguments."""
    names = [a.arg.removesuffix("$") for a in function.args.args]
    return [getattr(builtins, name) for name in names if hasattr(builtins, name)]
