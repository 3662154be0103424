"""Calls with objects, each as one Python function that is written for a structure of the arguments.

The chain of entries (`dispatch`) has such a function where a builtin entry would be: it takes the arguments
apart, calls the entry for the parts, assigns what the call has changed and puts the result together. For
`step(State(pos, vel, t), dt)`::

    def step(s, dt):
        try: ... v0, v1, v2, v3                 the fields of s and dt, classes checked
        except KeyError: miss = True            (as `object_code.taker`)
        else: miss = False
        if miss: return N(s, dt)                the next in the chain
        j = P.pop() if P else Z(26, I)          the journal
        try: result = D.heads["primal"](v0, v1, v2, v3, j)
        except BaseException as raised: ...     what was changed until then
        P.append(j)
        ...                                     (as `object_code.finisher`)
        return value

`grad` and `value_and_grad` are functions of the same kind, one for each `wrt`, which put the gradient
together as well.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import numpy as np

from .list_columns import items_of
from .object_code import Results, take_arguments
from .structures import Node, Parts, Structure, has_plain_attributes, new_object, set_field
from .union_results import is_choice, require_float

if TYPE_CHECKING:
    from .objects import Flat, Records, Selection

Following = Callable[..., Any]

ABSENT = object()
"""Stands for an argument that is not given."""


def signature_of(function: Callable[..., Any]) -> tuple[str, list[str], str]:
    """How the parameters are written, their names, and how they are handed on."""
    code = function.__code__
    count = code.co_argcount
    names = [f"a{k}" for k in range(count + code.co_kwonlyargcount)]
    shown = list(names)
    named = code.co_varnames[count : len(names)]
    if named:
        shown.insert(count, "*")
    if code.co_posonlyargcount:
        shown.insert(code.co_posonlyargcount, "/")
    onward = [*names[:count], *(f"{n}={a}" for n, a in zip(named, names[count:], strict=True))]
    return ", ".join(shown), names, ", ".join(onward)


class Call(Results):
    """Writes one of these functions."""

    def __init__(self, flat: Flat, found: Callable[[Any], Any], following: Following) -> None:
        super().__init__(found, "o{}".format, "v{}".format)
        self.flat, self.structure = flat, flat.structure
        self.names |= {
            "N": following, "P": flat.journals, "Z": np.zeros, "I": np.int64,
            "F": flat, "D": flat.dispatcher, "Parts": Parts, "O": flat.owner,
            "R": flat.dispatcher.recipes,
        }  # fmt: skip

    def function(self, header: str) -> Any:
        """The function, which is called what the user's is and has its defaults."""
        own: Any = self.structure.function
        lines = [line[4:] for line in (*self.defaults(own), *self.lines)]
        source = f"def f({header}):\n" + "\n".join(lines)
        namespace = dict(self.names)
        exec(source, namespace)
        made: FunctionType = namespace["f"]
        count = len(self.structure.parameters)
        code = made.__code__
        renamed = code.replace(
            co_varnames=(*self.structure.parameters, *code.co_varnames[count:]),
            co_name=own.__name__,
            co_qualname=own.__qualname__,
        )
        absent = (ABSENT,) * len(own.__defaults__ or ())
        called = FunctionType(renamed, namespace, own.__name__, absent or None)
        called.__qualname__ = own.__qualname__
        called.__kwdefaults__ = dict.fromkeys(own.__kwdefaults__ or {}, ABSENT)
        if code.co_kwonlyargcount + code.co_argcount > count:
            called.__kwdefaults__["wrt"] = 0
        return called

    def defaults(self, own: Any) -> Iterator[str]:
        """Lines that give parameters without arguments the defaults that the function has now."""
        code, given = own.__code__, own.__defaults__ or ()
        names = [f"a{k}" for k in range(code.co_argcount + code.co_kwonlyargcount)]
        first = code.co_argcount - len(given)
        for k in range(len(given)):
            now = f"{self.known(own)}.__defaults__[{k}]"
            yield f"        if {names[first + k]} is {self.known(ABSENT)}: {names[first + k]} = {now}"
        for at in range(code.co_argcount, len(names)):
            if (key := code.co_varnames[at]) in (own.__kwdefaults__ or {}):
                now = f"{self.known(own)}.__kwdefaults__[{key!r}]"
                yield f"        if {names[at]} is {self.known(ABSENT)}: {names[at]} = {now}"

    def take(self, arguments: Sequence[str], onward: str) -> str:
        """Take the arguments apart, or hand them on."""
        start = len(self.lines)
        parts = take_arguments(self, self.structure, arguments)
        self.lines[start:] = [f"    {line}" for line in self.lines[start:]]
        self.lines.insert(start, "        try:")
        self.add("except (KeyError, AttributeError): miss = True")
        self.add("else: miss = False")
        self.add(f"if miss: return N({onward})")
        self.add("O.latest = F")
        return parts

    def run(self, parts: str, called: str) -> None:
        """Call the entry; what it had changed where it raises."""
        leaves = "".join(f"v{k}, " for k in range(len(self.structure.names) - 1))
        words = 2 * self.structure.room
        self.add(f"j = P.pop() if P else Z({words}, I)" if words else "j = None")
        self.add("try:")
        self.add(f"    {called.format(leaves=leaves)}")
        self.add("except BaseException as raised:")
        self.add(f"    F.replay(raised, ({leaves}j), Parts({parts}))")
        self.add("    raise")
        self.add("if j is not None: P.append(j)")

    def results(self, records: Records | None, parts: str) -> None:
        """The value, of `result`."""
        leaves = "".join(f"v{k}, " for k in range(len(self.structure.names) - 1))
        self.add("if D.recipes is R:")
        start = len(self.lines)
        if records is None:
            self.add("value = result")
        else:
            self.finish(records)
        self.lines[start:] = [f"    {line}" for line in self.lines[start:]]
        self.add("else:")
        self.add(f"    value = F.finished(result, ({leaves}None), Parts({parts}))")


def primal(flat: Flat, found: Callable[[Any], Any], following: Following) -> Any:
    """The function that calls the primal with arguments of this structure."""
    call = Call(flat, found, following)
    header, arguments, onward = signature_of(flat.structure.function)
    parts = call.take(arguments, onward)
    call.run(parts, 'result = D.heads["primal"]({leaves}j)')
    call.results(flat.dispatcher.recipes[0], parts)
    call.add("return value")
    return call.function(header)


def gradient(
    flat: Flat,
    found: Callable[[Any], Any],
    following: Following,
    kind: str,
    wrt: Any,
    selection: Selection,
    leaves: Sequence[Any],
    names: tuple[str, ...],
) -> Any:
    """The function that calls `grad` or `value_and_grad` with this `wrt`, for leaves of these types."""
    call = Call(flat, found, following)
    header, arguments, onward = signature_of(flat.structure.function)
    onward = f"{onward}, wrt=wrt" if onward else "wrt=wrt"
    other = f"type(wrt) is not {call.known(type(wrt))} or wrt != {call.known(wrt)}"
    if isinstance(wrt, tuple) and int in map(type, wrt):  # True is equal to 1
        other += f" or tuple(map(type, wrt)) != {call.known(tuple(map(type, wrt)))}"
    call.add(f"if {other}: return N({onward})")
    parts = call.take(arguments, onward)
    kinds = [f"type(v{k}) is {call.known(type(v))}" for k, v in enumerate(leaves)]
    kinds += [
        f"v{k}.dtype is {call.known(v.dtype)}"
        for k, v in enumerate(leaves)
        if isinstance(v, np.ndarray)
    ]
    if kinds:
        call.add(f"if not ({' and '.join(kinds)}): return N({onward})")
    call.run(parts, f'result, g = D.heads["value_and_grad"]({{leaves}}j, wrt={call.known(names)})')
    call.results(flat.dispatcher.recipes[0], parts)
    if is_choice(flat.dispatcher.recipes[0]):
        call.add(f"{call.known(require_float)}(value)")
    shown = Gradient(call, flat.structure, selection.positions)
    items = [shown.of(item) for item in selection.items]
    made = items[0] if selection.single else f"({''.join(f'{item}, ' for item in items)})"
    call.add(f"return {made}" if kind == "grad" else f"return value, {made}")
    star = "" if "*" in header else "*, "
    return call.function(f"{header}, {star}wrt=0" if header else f"{star}wrt=0")


class Gradient:
    """Writes the gradient with respect to a part: as `structures.Assembly` makes it."""

    def __init__(self, code: Call, structure: Structure, positions: Sequence[int]) -> None:
        self.code, self.structure = code, structure
        self.places = {p: k for k, p in enumerate(positions)}
        self.made = set[int]()

    def of(self, node: Node | int) -> str:
        if isinstance(node, int):
            return f"g[{self.places[node]}]"
        code = self.code
        match node.kind:
            case "leaf":
                place = self.places.get(node.index)
                return f"v{node.index}" if place is None else f"g[{place}]"
            case "opaque":
                return f"x{node.index}"
            case "static":
                return code.known(node.value)
            case "tuple":
                items = "".join(f"{self.of(item)}, " for item in node.items)
                if node.cls is None:
                    return f"({items})"
                return f"{code.known(tuple.__new__)}({code.known(node.cls)}, ({items}))"
            case _ if node.index in self.made:
                return f"m{node.index}"
            case "again":
                return self.of(self.structure.objects[node.index])
            case _:
                self.made.add(node.index)
                self.object(node, f"m{node.index}")
                return f"m{node.index}"

    def object(self, node: Node, name: str) -> None:
        """Lines that make an object, a dict or a list."""
        code = self.code
        if node.kind == "numbers":
            arrays = "".join(f"{self.of(item)}, " for item in node.items)
            code.add(f"{name} = {code.known(items_of)}({code.known(node.value)}, iter(({arrays})))")
            return
        if node.kind == "list":
            code.add(f"{name} = []")
            for item in node.items:
                code.add(f"{name}.append({self.of(item)})")
            return
        code.add(f"{name} = {code.known(new_object)}({code.known(node.cls)})")
        if node.cls is not dict and has_plain_attributes(node.cls):
            code.add(f"f{node.index} = {name}.__dict__")
        for key, item in zip(node.keys, node.items, strict=True):
            value = self.of(item)
            if node.cls is dict:
                code.add(f"{name}[{code.known(key)}] = {value}")
            elif has_plain_attributes(node.cls):
                code.add(f"f{node.index}[{key!r}] = {value}")
            else:
                code.add(f"{code.known(set_field)}({name}, {code.known(key)}, {value})")
