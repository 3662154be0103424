"""What one build of a function teaches the next (Note [Widening by restart])."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..diagnostics import CompileError, Span
from .bindings.descriptors import BaseName, Form, Leaf
from .data.lists import Kind, ListKey, Reference, StoreKey
from .joins import Template
from .syntax import generator_loops
from .syntax.liveness import Liveness, Names
from .syntax.source import Source

Key = tuple[tuple[int, ...], int, str]
"""A loop's variable: the calls that lead to the loop, the loop, the name."""


MOST_POOLED = 4
"""At most so many variables of a loop have one pool of arrays."""

LoopKey = tuple[tuple[int, ...], int]
"""A loop: the calls that lead to it, its statement."""


LocalName = tuple[tuple[int, ...], str]
"""A variable of one inlined call: the path of its frame, and its name."""


@dataclass
class Facts:
    """What one build teaches the next (Note [Widening by restart]), and what it read on the way."""

    widened: dict[Key, Template] = field(default_factory=dict[Key, Template])
    buffered: set[tuple[Key, int]] = field(default_factory=set[tuple[Key, int]])
    resized: set[tuple[Key, int]] = field(default_factory=set[tuple[Key, int]])
    """Those buffered of which the loop changes the shape."""
    staying: set[tuple[Key, int]] = field(default_factory=set[tuple[Key, int]])
    """Those buffered that are the array before the loop until they are rebound."""
    forms: dict[tuple[Key, int], Form] = field(default_factory=dict[tuple[Key, int], Form])
    pooled: dict[Leaf, frozenset[Leaf]] = field(default_factory=dict[Leaf, frozenset[Leaf]])
    """The arrays of loops' variables that may be one array, and be changed: with which others (`pooling`)."""
    pool_bases: dict[Leaf, frozenset[BaseName]] = field(
        default_factory=dict[Leaf, frozenset[BaseName]]
    )
    """The arrays from before the loop that those become in it."""
    trees: dict[types.CodeType, tuple[Source, Sequence[ast.stmt], Liveness, Names]] = field(
        default_factory=dict[types.CodeType, tuple[Source, Sequence[ast.stmt], Liveness, Names]]
    )
    nested: dict[ast.AST, tuple[Sequence[ast.stmt], Liveness, Names]] = field(
        default_factory=dict[ast.AST, tuple[Sequence[ast.stmt], Liveness, Names]]
    )
    lists: dict[ListKey, Template] = field(default_factory=dict[ListKey, Template])
    """The forms of the items of lists."""
    grown: set[tuple[tuple[int, ...], int]] = field(
        default_factory=set[tuple[tuple[int, ...], int]]
    )
    """The displays of arrays that make lists which can grow."""
    outgrown: set[tuple[tuple[int, ...], int]] = field(
        default_factory=set[tuple[tuple[int, ...], int]]
    )
    """Those that were lists of known length to loops."""
    changed_arguments: set[int] = field(default_factory=set[int])
    """The caller's lists of arrays or objects that change: places, not items of known number."""
    assigned_arguments: set[int] = field(default_factory=set[int])
    """Those of which items are assigned, where it is known which (`assigned_items`)."""
    with_rows: set[StoreKey] = field(default_factory=set[StoreKey])
    """The stores that hold more than the caller's items (`argument_items`)."""
    given: dict[StoreKey, dict[Reference, None]] = field(
        default_factory=dict[StoreKey, "dict[Reference, None]"]
    )
    """The caller's arrays and objects that are put in stores, besides those of lists."""
    changed_lists: set[int] = field(default_factory=set[int])
    """The caller's lists that change behind, or in a loop with, a check that may raise."""
    sharing: set[tuple[ListKey, int]] = field(default_factory=set[tuple[ListKey, int]])
    """The appends of arrays that become rows though they have a name."""
    popped: set[ListKey] = field(default_factory=set[ListKey])
    """The lists from which arrays are popped."""
    placed: set[Kind] = field(default_factory=set[Kind])
    """The lists that know their items by their places in stores."""
    same_store: dict[StoreKey, StoreKey] = field(default_factory=dict[StoreKey, StoreKey])
    """The stores that are others': those of lists that have items in common."""
    heaps: dict[type, ListKey] = field(default_factory=dict[type, ListKey])
    """The classes whose objects are known by their places in a store (`data.heaps`)."""
    heap_stores: dict[StoreKey, None] = field(default_factory=dict[StoreKey, None])
    """Stores of objects that recursive functions need, because of what the fields hold."""
    field_numbers: dict[object, int] = field(default_factory=dict[object, int])
    """The numbers of the stores of what is in their fields."""
    ragged: set[ListKey] = field(default_factory=set[ListKey])
    """The lists of lists of several lengths."""
    uneven: set[ListKey] = field(default_factory=set[ListKey])
    """The lists of arrays of several shapes."""
    shared_lists: set[ListKey] = field(default_factory=set[ListKey])
    """The lists that have several names at a time."""
    unbounded_lists: set[ListKey] = field(default_factory=set[ListKey])
    """The lists that stay growable, though an array was to keep their memory."""
    changed_displays: set[ListKey] = field(default_factory=set[ListKey])
    """The lists that do not stay what their displays made."""
    merged_lists: dict[LocalName, ast.AST] = field(default_factory=dict[LocalName, ast.AST])
    """The names that are one list on one path and another on another: all are moved into one."""
    growing: set[tuple[tuple[int, ...], int]] = field(
        default_factory=set[tuple[tuple[int, ...], int]]
    )
    """The loops over lists that change the lists' lengths."""
    consumers: dict[tuple[ast.AST, object], ast.FunctionDef] = field(
        default_factory=dict[tuple[ast.AST, object], ast.FunctionDef]
    )
    """The functions written out for what consumes items."""
    algorithms: dict[tuple[ast.AST, str], ast.FunctionDef] = field(
        default_factory=dict[tuple[ast.AST, str], ast.FunctionDef]
    )
    """Those for what is done with lists."""
    stand_ins: dict[tuple[int, str], Any] = field(default_factory=dict[tuple[int, str], Any])
    """What is lowered in the places of nodes, by their identity."""
    hashed: set[tuple[tuple[int, ...], int]] = field(
        default_factory=set[tuple[tuple[int, ...], int]]
    )
    """The dicts whose keys are known at run time only (`data.hashed`)."""
    written_out: set[int] = field(default_factory=set[int])
    """The comprehensions of few arrays whose shapes are known one by one."""
    unrolled: set[tuple[tuple[int, ...], int]] = field(
        default_factory=set[tuple[tuple[int, ...], int]]
    )
    """The loops that are written out, for their counters index arrays that have names of their own."""
    generators: set[generator_loops.Place] = field(default_factory=set[generator_loops.Place])
    """The generators that loops run over."""
    managers: dict[generator_loops.Place, str] = field(
        default_factory=dict[generator_loops.Place, str]
    )
    """The context managers that do something, and of which kind they are."""
    stepped: dict[object, ast.AST] = field(default_factory=dict[object, ast.AST])
    """The places of generators that are asked for their items one by one (`calling.coroutines`)."""
    inner_generators: dict[object, dict[object, Any]] = field(
        default_factory=dict[object, dict[object, Any]]
    )
    """By the place of a generator, those of generators that it makes: their kept names."""
    stepping: dict[object, Any] = field(default_factory=dict[object, Any])
    """Their functions, made ready for that."""
    indirect: set[object] = field(default_factory=set[object])
    """Those that run over objects of which `iter` makes something else."""
    forgotten: list[object] = field(default_factory=list[object])
    """Trees of earlier builds, kept: what is known of statements is known by their identity."""
    constants: dict[str, str] = field(default_factory=dict[str, str])
    early: set[Key] = field(default_factory=set[Key])
    """The names that a loop binds and reads before it does: in the next iteration, perhaps."""
    unready: list[CompileError] = field(default_factory=list[CompileError])
    """Reads of names that nothing is bound to: refused where the next build does not know better."""
    wanted: set[LocalName] = field(default_factory=set[LocalName])
    """The names that those read."""
    left_out: set[LocalName] = field(default_factory=set[LocalName])
    """The names that code which constants leave out would bind: CPython would compile their reads."""
    fields: dict[tuple[tuple[int, ...], int], set[str]] = field(
        default_factory=dict[tuple[tuple[int, ...], int], set[str]]
    )
    """By loop, the fields of objects that it assigns."""
    peeled: dict[LoopKey, tuple[int, CompileError]] = field(
        default_factory=dict[LoopKey, tuple[int, CompileError]]
    )
    """By loop, how many of its first iterations are on their own, and why."""
    asking: set[tuple[tuple[int, ...], int]] = field(
        default_factory=set[tuple[tuple[int, ...], int]]
    )
    """The loops whose tests, and the operands of `and` and `or` that, assign to objects."""
    fresh: dict[tuple[tuple[int, ...], int], set[str]] = field(
        default_factory=dict[tuple[tuple[int, ...], int], set[str]]
    )
    """By loop, the names shared with nested functions that each iteration binds for the first time."""
    implied: dict[tuple[Span | None, object], ast.Call] = field(
        default_factory=dict[tuple[Span | None, object], ast.Call]
    )
    """The calls that stand for operators and attributes of objects, by place and function."""
    recursive: set[object] = field(default_factory=set[object])
    """The recursive functions (`recursion`)."""
    outcomes: dict[object, Any] = field(default_factory=dict[object, Any])
    """The forms of their results."""
    numbers: dict[object, int] = field(default_factory=dict[object, int])
    """Their numbers, by form."""
    strided: set[tuple[object, str]] = field(default_factory=set[tuple[object, str]])
    """The recursive functions with strided arrays, and the parameters that those are."""
    changed: bool = False
    provisional: bool = False
    """What this build goes by may be found wrong: it refuses nothing for certain."""

    def number_of(self, part: object) -> int:
        return self.field_numbers.setdefault(part, len(self.field_numbers))

    def forget(self, is_stale: Callable[[Template], bool]) -> None:
        """Forget the forms that the next build does not have any more."""
        for known in (self.widened, self.lists):
            for key in [key for key, form in known.items() if is_stale(form)]:
                del known[key]  # pyright: ignore[reportArgumentType]
        self.outcomes.clear()

    def learn_generator(self, place: generator_loops.Place) -> bool:
        """Let the next build rewrite the loop over the generator here; False where this one did."""
        if place in self.generators:
            return False
        self.generators.add(place)
        self.rewrite()
        return True

    def learn_manager(self, place: generator_loops.Place, kind: str) -> bool:
        """Let the next build rewrite the `with` here; False where this one did."""
        if place in self.managers:
            return False
        self.managers[place] = kind
        self.rewrite()
        return True

    def rewrite(self) -> None:
        """Bodies of functions are made ready anew."""
        self.forgotten += [*self.trees.values(), *self.nested.items(), *self.consumers.items()]
        self.forgotten += self.stepping.values()
        for known in (self.trees, self.nested, self.consumers, self.stepping):
            known.clear()
        self.changed = True

    def leave_out(self, names: Iterable[LocalName]) -> None:
        found = set(names) - self.left_out
        self.left_out |= found
        self.changed |= not found.isdisjoint(self.wanted)

    def let_grow(self, made: Iterable[Any]) -> bool:
        """Let the next build make lists that can grow at some places; False where this one did."""
        places = set(made) - {None} - self.grown
        self.grown |= places
        self.changed |= bool(places)
        return bool(places)

    def merge_lists(self, path: tuple[int, ...], name: str) -> bool:
        """Let the next build keep all lists that a name is in one; False where this one did."""
        known = (path, name) in self.merged_lists
        self.merged_lists.setdefault((path, name), ast.Pass())
        self.changed |= not known
        return not known

    def widen(self, key: Key, template: Template) -> None:
        self.widened[key] = template
        self.changed = True

    def buffer(self, key: Key, leaf: int) -> None:
        if (key, leaf) not in self.buffered:
            self.buffered.add((key, leaf))
            self.changed = True

    def resize(self, key: Key, leaf: int) -> None:
        self.changed |= (key, leaf) not in self.resized
        self.resized.add((key, leaf))

    def pool(self, leaves: Iterable[Leaf]) -> bool:
        """Let the next build keep these in one pool; False where this one did, or they are too many."""
        group = frozenset(leaves)
        group |= {other for leaf in group for other in self.pooled.get(leaf, ())}
        if len(group) > MOST_POOLED or all(self.pooled.get(leaf) == group for leaf in group):
            return False
        self.pooled |= dict.fromkeys(group, group)
        self.changed = True
        return True

    def pool_base(self, leaf: Leaf, base: BaseName) -> None:
        known = self.pool_bases.get(leaf, frozenset())
        self.changed |= base not in known
        self.pool_bases[leaf] = known | {base}

    def describe(self, key: Key, leaf: int, form: Form) -> None:
        if self.forms.get((key, leaf)) != form:
            self.forms[key, leaf] = form
            self.changed = True
