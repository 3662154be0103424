"""Objects where control flow meets: after branches, around loops.

An object that every path leaves under a name stays that object. Where paths leave different ones, each of
them becomes a value, a copy of its fields::

    if better:                       best: the object of the one branch or of the other: a `Struct`,
        best = Fit(a, error)         its fields joined one by one
    else:
        best = Fit(b, other)         best.error = 0.0 is refused afterwards, and so are assignments
    return best.error                to the two, which `best` would have to see
"""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from xdsl.ir import Block

from ..bindings import nonlocals
from ..bindings.roots import is_inside
from ..context import Context, is_late, same_binding
from ..joins import (
    Binding,
    FixedT,
    Maybe,
    MaybeT,
    Mismatch,
    Template,
    TupleT,
    deepened,
    join,
    loosened,
    template_of,
)
from ..values import Item, Record, Static, Struct, Value
from .fields import fields_in, record_in, serial_of, shown
from .lists import ListObject

if TYPE_CHECKING:
    from ..bindings.rebinding import Variable


class Meeting(Context):
    """Joins objects, and knows which fields a loop assigns."""

    # Copies.

    def snapshot(
        self,
        value: Record,
        env: Mapping[str, Binding],
        *,
        mark: bool = True,
        around: tuple[Record, ...] = (),
    ) -> Struct:
        """The object as a value: its fields as they are, and those of the objects in them."""
        now = self.item_now(value)
        if isinstance(now, Item):
            return self.copy_of_item(now)
        names, items = list[str](), list[Value]()
        for key in self.objects.keys[value.serial]:
            binding = env.get(self.objects.name(value, key))
            binding = binding.value if isinstance(binding, Maybe) else binding
            if binding is None:
                continue
            names.append(key)
            if isinstance(binding, Record):
                binding = self.item_now(binding)
            on_heap = isinstance(binding, Item) and binding.store.is_heap
            inner = isinstance(binding, Record) and mark and not on_heap
            if inner and (binding is value or binding in around):
                self.use_heap(value.cls)
                raise self.refusal(
                    None, f"objects of class {value.cls.__name__} refer to each other in a cycle, and"
                    " a name is one of them depending on the path",
                    "keep numbers in the place of references: indices into lists",
                )  # fmt: skip
            here = (*around, value)
            items.append(self.snapshot(binding, env, around=here) if inner else binding)  # pyright: ignore
        if mark:
            self.objects.snapshots.add(value.serial)
        return Struct(tuple(items), tuple(names), value.cls, value.origin)

    def as_value(
        self, binding: Binding, env: Mapping[str, Binding], *, mark: bool = True
    ) -> Binding:
        """The binding, an object in it as a value."""
        match binding:
            case Item() | Maybe(Item()):
                return binding
            case Record():
                now = self.item_now(binding)
                return now if isinstance(now, Item) else self.snapshot(now, env, mark=mark)
            case Maybe(Record() as record, defined):
                return Maybe(self.snapshot(record, env, mark=mark), defined)
            case _:
                return binding

    @abstractmethod
    def copy_of_item(self, item: Item) -> Struct:
        """The fields of an object in a list as a value."""

    # Branches.

    def meet(self, name: str, ends: list[dict[str, Binding]], deads: list[bool]) -> None:
        """Make values of the objects that a name is bound to after two branches, where they differ, or where
        an earlier iteration may have bound it to another."""
        alive = [end for end, dead in zip(ends, deads, strict=True) if not dead and name in end]
        bound = [end for end in alive if not is_late(end[name])]
        values = [without_maybe(end[name]) for end in bound]
        if any(isinstance(v, Item) or not isinstance(v, Record | Struct) for v in values):
            return
        if len(bound) == len(alive) and all(v is values[0] for v in values):
            return
        for end in bound:
            end[name] = self.as_value(end[name], end)

    # Loops.

    def fields_assigned(self, s: ast.stmt) -> frozenset[str]:
        """The fields that a loop is known to assign."""
        path = self.frame.place
        known = self.facts.fields.get((path, id(s)), set[str]())
        return frozenset(
            n for n in known if n in self.frame.env or (path, id(s), n) in self.facts.widened
        )

    def learn_fields(
        self,
        s: ast.stmt,
        before: Mapping[str, Binding],
        ends: Mapping[str, Binding],
        known: frozenset[str],
        older: int,
    ) -> None:
        """Tell the next build which fields of `older` objects an iteration assigns."""
        for name, binding in fields_in(ends).items():
            if name in known:
                continue
            if name in before:
                if not same_binding(binding, before[name]):
                    self.facts.fields.setdefault((self.frame.place, id(s)), set()).add(name)
                    self.facts.changed = True
            elif serial_of(name) < older and not nonlocals.learn_fresh(self, s, name):
                if nonlocals.is_in_cell(name):
                    late = template_of(self.as_value(binding, ends))
                    late = late if isinstance(late, MaybeT) else MaybeT(late)
                    self.facts.fields.setdefault((self.frame.place, id(s)), set()).add(name)
                    self.facts.widen((self.frame.place, id(s), name), loosened(late))
                    continue
                raise self.refusal(
                    s,
                    f"`{shown(name)}` is assigned for the first time in a loop",
                    f"give `{shown(name)}` a value of the same type before the loop",
                )

    def require_unchanged(self, start: Mapping[str, Binding], s: ast.stmt) -> None:
        """The test of a loop assigns to no object; the next build knows where it does."""
        for name, binding in fields_in(self.frame.env).items():
            if not same_binding(binding, start.get(name)):
                self.facts.asking.add((self.frame.place, id(s)))
                self.facts.changed = True

    def one_object(self, variable: Variable, end: Binding) -> Binding:
        """What an iteration leaves under a name, a value where the name is not the same object always."""
        value = without_maybe(end)
        if isinstance(value, Record) and value is not (now := self.item_now(value)):
            end = Maybe(now, end.defined) if isinstance(end, Maybe) else now
            value = now
        template = variable.template
        known = template.inner if isinstance(template, MaybeT) else template
        if not isinstance(value, Record | Struct) or isinstance(value, Item):
            return end
        if isinstance(known, TupleT):
            return self.as_value(end, self.frame.env)
        first = known.value if isinstance(known, FixedT) else None
        if not isinstance(first, Record) or first is value:
            return end
        env = self.frame.env
        try:
            ends = [template_of(self.as_value(v, env, mark=False)) for v in (first, end)]
            wider = join(*ends)
            self.use_heap(*deepened(wider, *ends))
        except Mismatch as mismatch:
            self.refuse_mismatch(variable.name, mismatch, "loop")
        if isinstance(template, MaybeT) and not isinstance(wider, MaybeT):
            wider = MaybeT(wider)
        self.facts.widen(variable.key, loosened(wider))
        return Maybe(first, end.defined) if isinstance(end, Maybe) else first

    def outliving(self, binding: Binding, ends: Mapping[str, Binding]) -> Binding:
        """A binding that is read after the iteration: an object that this makes, as a value."""
        if isinstance(binding, Static) and isinstance(binding.object, ListObject):
            one = self.lists.get(binding.object.key)
            return binding if one is None or one.moved is None else one.moved
        record = record_in(binding)
        if record is None or not is_block_in(self.objects.homes[record.serial], self.e.block):
            return binding
        return self.as_value(binding, ends)


def without_maybe(binding: Binding) -> Value:
    return binding.value if isinstance(binding, Maybe) else binding


def is_value_template(template: Template | None) -> bool:
    """True for the form of an object that is a value."""
    inner = template.inner if isinstance(template, MaybeT) else template
    return isinstance(inner, TupleT) and inner.names is not None


def is_block_in(block: Block, outer: Block) -> bool:
    if block is outer:
        return True
    above = block.parent_op()
    return above is not None and is_inside(above, outer)
