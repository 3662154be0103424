"""Python code written for one structure: taking arguments apart, and putting results together, fast.

For `step(State(pos, vel, t), dt)` whose result is None and which assigns `s.t`::

    def take(values):                                   def finish(result, objects):
        a0, a1 = values                                     r0, r1 = result
        o0 = a0                                             objects[0].t = r1
        if type(o0) is not C0: return None                  return r0
        d0 = o0.__dict__
        if len(d0) != 3: return None
        v0 = d0['pos'] ...
        return (v0, v1, v2, a1), [o0], []

`take` returns None for arguments of another structure.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from .keys import is_generator
from .list_columns import (
    LEAF,
    as_rows,
    columns,
    items_of,
    kept_rows,
    refill,
    replace,
    resolved,
    stores_of,
    width,
)
from .structures import (
    ITEMS,
    LEAVES,
    Node,
    Structure,
    has_plain_attributes,
    layout_of,
    new_object,
    set_field,
)

Taken = tuple[tuple[Any, ...], list[Any], list[Any]]
"""The leaves, the objects, what is handed through."""


@dataclass
class Code:
    """Lines of a function, and the objects that they name."""

    lines: list[str] = field(default_factory=list[str])
    names: dict[str, Any] = field(default_factory=dict[str, Any])

    def known(self, value: Any) -> str:
        """A name for an object."""
        name = f"K{len(self.names)}"
        self.names[name] = value
        return name

    def add(self, line: str) -> None:
        self.lines.append(f"        {line}")

    def require(self, condition: str) -> None:
        self.add(f"if not ({condition}): raise KeyError")

    def function(self, header: str) -> Any:
        body = "\n".join(self.lines)
        source = f"def f({header}):\n    if True:\n{body}\n"
        if header == "values":
            after = "    except (KeyError, AttributeError): return None"
            source = f"def f({header}):\n    try:\n{body}\n{after}\n"
        namespace = dict(self.names)
        exec(source, namespace)
        return namespace["f"]


def taker(structure: Structure) -> Callable[[tuple[Any, ...]], Taken | None]:
    """Takes arguments of this structure apart."""
    code = Code()
    code.add("".join(f"a{k}, " for k in range(len(structure.nodes))) + "= values")
    taken = take_arguments(code, structure, [f"a{k}" for k in range(len(structure.nodes))])
    code.add(f"return {taken}")
    return code.function("values")


def take_arguments(code: Code, structure: Structure, arguments: Sequence[str]) -> str:
    """Lines that take arguments apart and raise KeyError where they are of another structure; how to write
    the parts: the leaves are v0, v1, ..., the objects o0, ..., what is handed through x0, ..."""
    leaves, generators = code.known(LEAVES), code.known(is_generator)
    counts = {"leaf": 0, "opaque": 0}
    met: list[tuple[int, Any]] = []

    def take(node: Node, expression: str) -> None:
        match node.kind:
            case "leaf":
                code.add(f"v{node.index} = {expression}")
                known = f"type(v{node.index}) in {leaves}"
                code.require(f"{known} or {generators}(v{node.index})")
                counts["leaf"] += 1
            case "opaque":
                code.add(f"x{node.index} = {expression}")
                code.require(f"type(x{node.index}) is {code.known(node.cls)}")
                counts["opaque"] += 1
            case "static" if not isinstance(node.value, str) or isinstance(node.value, enum.Enum):
                code.require(f"({expression}) is {code.known(node.value)}")
            case "static":
                known = code.known(node.value)
                code.require(f"type({expression}) is str and ({expression}) == {known}")
            case "again":
                code.require(f"({expression}) is o{node.index}")
            case "numbers":
                take_numbers(node, expression)
            case "tuple":
                name = f"t{len(code.lines)}"
                code.add(f"{name} = {expression}")
                cls = code.known(tuple if node.cls is None else node.cls)
                code.require(f"type({name}) is {cls} and len({name}) == {len(node.items)}")
                for k, item in enumerate(node.items):
                    take(item, f"{name}[{k}]")
            case _:
                take_object(node, expression)

    def take_numbers(node: Node, expression: str) -> None:
        own = take_itself(node, expression)
        if node.value is None:
            code.require(f"not {own}")
            return
        code.add(f"c = {own} and {code.known(columns)}({own})")
        code.require(f"c and c[0] == {code.known(node.value)}")
        code.add("".join(f"v{item.index}, " for item in node.items) + "= c[1]")
        counts["leaf"] += len(node.items)

    def take_itself(node: Node, expression: str) -> str:
        own = f"o{node.index}"
        code.add(f"{own} = {expression}")
        others = "".join(f" and {own} is not o{n}" for n, cls in met if cls is node.cls)
        code.require(f"type({own}) is {code.known(node.cls)}{others}")
        met.append((node.index, node.cls))
        return own

    def take_object(node: Node, expression: str) -> None:
        own = take_itself(node, expression)
        if node.cls is list:
            code.require(f"len({own}) == {len(node.items)}")
            places = [f"{own}[{k}]" for k in range(len(node.items))]
        elif node.cls is dict:
            code.require(f"tuple({own}) == {code.known(node.keys)}")
            code.require(f"[*map(type, {own})] == {code.known([*map(type, node.keys)])}")
            places = [f"{own}[{code.known(key)}]" for key in node.keys]
        elif has_plain_attributes(node.cls):
            code.add(f"d{node.index} = {own}.__dict__")
            code.require(f"len(d{node.index}) == {len(node.keys)}")
            places = [f"d{node.index}[{key!r}]" for key in node.keys]
        else:
            slots = code.known(node.keys)
            code.require(f"{code.known(_names_of)}({own}) == {slots}")
            places = [f"{own}.{key}" for key in node.keys]
        for item, place in zip(node.items, places, strict=True):
            take(item, place)

    for node, argument in zip(structure.nodes, arguments, strict=True):
        take(node, argument)
    require_own_rows(code, structure, [number for number, cls in met if cls is list])
    parts = "".join(f"v{k}, " for k in range(counts["leaf"]))
    objects = ", ".join(f"o{k}" for k in range(len(structure.objects)))
    others = ", ".join(f"x{k}" for k in range(counts["opaque"]))
    return f"({parts}), [{objects}], [{others}]"


def require_own_rows(code: Code, structure: Structure, lists: Sequence[int]) -> None:
    """Lines that hold where the lists that are items of a list are nothing else."""
    kept: list[str] = []
    for number in (n for n in lists if as_rows(structure.objects[n].value) is not None):
        own, others = f"w{number}", ", ".join(f"id(o{n})" for n in lists if n != number)
        code.add(f"{own} = set(map(id, o{number}))")
        code.require(f"{own}.isdisjoint(({others},))" if others else "True")
        for other in kept:
            code.require(f"{own}.isdisjoint({other})")
        kept.append(own)


def _names_of(value: Any) -> tuple[str, ...]:
    layout = layout_of(type(value))
    return () if layout is None else layout.names(value)


def finisher(
    records: dict[str, Any], found: Callable[[Any], Any]
) -> Callable[[Any, list[Any], Sequence[Any]], Any]:
    """Puts a result together, and assigns to the fields of arguments; `found` resolves references."""
    code = Results(found, "objects[{}]".format, "leaves[{}]".format)
    code.finish(records)
    code.add("return value")
    return code.function("result, objects, leaves")


class Results(Code):
    """Writes the expressions that results are made by; `object_of` and `leaf_of` arguments."""

    def __init__(
        self,
        found: Callable[[Any], Any],
        object_of: Callable[[int], str],
        leaf_of: Callable[[int], str],
    ) -> None:
        super().__init__()
        self.leaf_of = leaf_of
        self.found = found
        self.object_of = object_of
        self.count = 0

    def finish(self, records: dict[str, Any]) -> None:
        """Lines that make `value` of `result`, and assign to the arguments."""
        start = len(self.lines)
        value = self.expression(records["result"])
        changed = [(*change, self.expression(change[2])) for change in records["changes"]]
        for k, made in enumerate([self.store(one) for one in records.get("stores", ())]):
            self.lines.insert(start, f"        s{k} = {made}")
        for number, key, recipe, made in changed:
            name = key if isinstance(key, str) else self.found(key[1])
            how = refill if recipe[0] == "placed" else assign
            shown = "" if recipe[0] == "placed" else f" {self.known(name)},"
            self.add(f"{self.known(how)}({self.object_of(number)},{shown} {made})")
        self.add(f"value = {value}")
        parts = "".join(f"r{k}, " for k in range(self.count))
        self.lines.insert(start, f"        {parts}= result" if parts else "        pass")

    def expression(self, recipe: list[Any]) -> str:
        match recipe:
            case ["flat"]:
                self.count += 1
                return f"r{self.count - 1}"
            case ["static", reference]:
                return self.known(self.found(reference))
            case ["choice", options]:
                which = self.expression(["flat"])
                *parts, last = [self.expression(one) for one in options]
                tests = "".join(f"{p} if {which} == {k} else " for k, p in enumerate(parts))
                return f"({tests}{last})"
            case ["argument", number]:
                return self.object_of(number)
            case ["item", number]:
                return f"{self.object_of(number)}[{self.expression(['flat'])}]"
            case ["again", number]:
                return f"n{number}"
            case ["kept", number, inner]:
                self.add(f"n{number} = {self.expression(inner)}")
                return f"n{number}"
            case ["numbers", form]:
                parts = "".join(f"{self.expression(['flat'])}, " for _ in range(width(form)))
                known = self.known(resolved(form, self.found))
                return f"{self.known(items_of)}({known}, iter(({parts})))"
            case ["placed", form]:
                parts = "".join(f"{self.expression(['flat'])}, " for _ in range(width(form)))
                known = self.known(resolved(form, self.found))
                stores = "".join(f"s{k}, " for k in range(1 + max(stores_of(form), default=-1)))
                return f"{self.known(items_of)}({known}, iter(({parts})), ({stores}))"
            case ["picked", number]:
                return f"s{number}[{self.expression(['flat'])}]"
            case ["list", items]:
                return f"[{', '.join([self.expression(item) for item in items])}]"
            case ["tuple", cls, items]:
                parts = "".join(f"{self.expression(item)}, " for item in items)
                if cls is None:
                    return f"({parts})"
                return f"{self.known(tuple.__new__)}({self.known(self.found(cls))}, ({parts}))"
            case _:
                return self.object(recipe)

    def store(self, store: list[Any]) -> str:
        """The items that lists have places of: those that were given, then new ones."""
        references, form, left_out, copied = store
        given = "".join(f"{self.given(*one)}, " for one in references)
        parts = "".join(f"{self.expression(['flat'])}, " for _ in range(width(form)))
        known = self.known(resolved(form, self.found))
        rest = f"[{left_out}:]" if left_out else ""
        items = f"{self.known(items_of)}({known}, iter(({parts}))){rest}"
        if copied is not None:
            return f"{self.known(kept_rows)}({self.object_of(copied)}, {items})"
        return f"[{given}*{items}]"

    def given(self, number: Any, *path: Any) -> str:
        """An argument, an item of one, or a part of that."""
        if number == LEAF:
            return self.leaf_of(path[0])
        steps = [f".{step}" if isinstance(step, str) else f"[{step}]" for step in path]
        return self.object_of(number) + "".join(steps)

    def object(self, recipe: list[Any]) -> str:
        _, number, cls, keys, items = recipe
        self.add(f"n{number} = {self.known(new_object)}({self.known(self.found(cls))})")
        for key, item in zip(keys, items, strict=True):
            name = self.known(key if isinstance(key, str) else self.found(key[1]))
            made = self.expression(item)
            self.add(f"{self.known(set_field)}(n{number}, {name}, {made})")
        return f"n{number}"


def assign(target: Any, key: Any, value: Any) -> None:
    """Assign to a field or an item of an argument."""
    if type(target) is list and key == ITEMS:
        replace(target, value)  # pyright: ignore[reportUnknownArgumentType]
    elif type(target) in (dict, list):
        target[key] = value
    else:
        setattr(target, key, value)
