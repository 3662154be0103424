"""In which form a loop keeps each array: carried, in numbers, or in a buffer.

The first build of a loop carries every array. What the iteration leaves then says more::

    u, v = v, u                     a permutation, the same in each iteration: carried
    for j in range(k): u, v = v, u  a permutation known at run time: in numbers, chosen together
    if better: best = trial         one of two arrays: in numbers
    v = v[1:]                       a view of an array: in numbers
    u = step(u)                     a fresh array: in a buffer (see `rebinding`)

Forms only ever change downwards in this list, so the restarts end (Note [Widening by restart]).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects import memref, scf
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import array
from ...analysis.affine import equal_numbers
from ...analysis.views import strip_casts
from ...rules.rule import rank_of
from ..joins import Binding, Maybe
from ..values import Array, Struct, Tuple
from . import copy_on_rebind, pooling, resizing
from .descriptors import (
    BaseName,
    Described,
    Describer,
    Descriptor,
    Form,
    Leaf,
    Undescribed,
    arrays_now,
    last_of,
    nothing_of,
    of_one_rank,
    orders_of,
    result_index,
    unwound,
)
from .rebinding import Place, Rebindings, Variable
from .roots import is_made_in, is_placeholder, roots

TOGETHER = 4
"""At most so many arrays are chosen by one `scf.if`: it has a branch for each of their orders."""


@dataclass
class End:
    """An array leaf of a variable at the end of an iteration, and what it may be."""

    variable: Variable
    place: Place
    value: SSAValue
    slots: set[Leaf] = field(default_factory=set[Leaf])
    """Arrays as the iteration found them."""
    outer: list[SSAValue] = field(default_factory=list[SSAValue])
    """Arrays from before the loop."""
    fresh: bool = False
    view: bool = False


class Forms(Rebindings):
    """Chooses the forms, and keeps arrays in numbers."""

    # Bases.

    def base_names(self, before: dict[str, Binding]) -> dict[SSAValue, BaseName]:
        """What is no view, by the names that it has before the loop."""
        found = dict[SSAValue, BaseName]()
        for name, binding in sorted(before.items()):
            for k, one in enumerate(arrays_in(binding)):
                found.setdefault(base_of(one.memref), (name, k))
        for k, argument in enumerate(self.e.entry.args):
            if isinstance(argument.type, MemRefType):
                found.setdefault(argument, ("", k))
        return found

    def bases(self, form: Form, before: dict[str, Binding]) -> tuple[SSAValue, ...]:
        """The bases of a form; without those of names that are not bound here in this build."""
        found = list[SSAValue]()
        for name, k in form.bases:
            arrays = [a.memref for a in arrays_in(before[name])] if name in before else []
            found += map(base_of, arrays[k : k + 1] if name else [self.e.entry.args[k]])
        return tuple(dict.fromkeys(b for b in found if roots(self.e, b)))

    # An array in numbers.

    def described(
        self, leaf: SSAValue, variable: str, key: Leaf, before: dict[str, Binding]
    ) -> Place:
        """Put the numbers of an array, as it is before the loop, in cells."""
        form = self.facts.forms[key]
        bases = self.bases(form, before)
        if not bases or len(bases) < len(form.group):
            self.facts.describe(*key, replace(form, group=()))
            return Place("carried", leaf)
        like = nothing_of(self.e, bases, form, rank_of(leaf))
        if roots(self.e, leaf):
            try:
                like = Describer(self.e, bases, entire=form.entire).describe(leaf)
            except Undescribed:
                self.add_base(leaf, variable, key, before)
                return Place("carried", leaf)
            form = self.with_orders(key, form, like)
        like = like.in_orders(self.e, form.orders)
        described = Described(form, bases, like, of_one_rank(self.e, bases))
        for k in sorted(form.moving & {*range(len(like.numbers))}):
            number = like.numbers[k]
            described.cells[k] = self.e.cell(
                number.type, f"{variable}_{'which' if k == 0 else 'view'}"
            )
            self.e.store(number, described.cells[k])
        return Place("described", leaf, described=described)

    def add_base(
        self, leaf: SSAValue, variable: str, key: Leaf, before: dict[str, Binding]
    ) -> None:
        """What the variable is before the loop was not known to the build that chose the bases."""
        form, base = self.facts.forms[key], base_of(leaf)
        name = self.base_names(before).get(base)
        if name is None or (name in form.bases and not form.entire):
            self.refuse_rebinding(variable, "an array that was made before the loop")
        bases = tuple(sorted({*form.bases, name}))
        moving = form.moving | ({0} if len(bases) > 1 else set())
        entire = form.entire and is_entire(leaf)
        self.facts.describe(*key, Form(bases, entire, moving, (), form.orders))

    def with_orders(self, key: Leaf, form: Form, found: Descriptor) -> Form:
        """The form, with the orders of axes that a view was found to have; the next build has those."""
        form = replace(form, orders=tuple(dict.fromkeys((*form.orders, *orders_of([found])))))
        self.facts.describe(*key, form)
        return form

    def remake(self, variables: Sequence[Variable]) -> None:
        """Make the arrays kept in numbers, and those that may have moved or changed, here and now."""
        for place in (p for v in variables for p in v.places if p.moved is not None):
            place.now = copy_on_rebind.present(self, place)
        for place in (p for v in variables for p in v.places if p.sizes):
            place.now = resizing.present(self, place)
        for place in (p for v in variables for p in v.places if p.pool is not None):
            place.now = pooling.present(self, place)
        places = {
            (v.key, k): p.described
            for v in variables
            for k, p in enumerate(v.places)
            if p.described is not None
        }
        done = set[Leaf]()
        for leaf, described in places.items():
            if leaf in done:
                continue
            members = [m for m in described.form.group if m in places] or [leaf]
            group = [places[m] for m in members]
            # Of a permutation, the last array is what the others leave.
            known = group[:-1] if len(group) > 1 else group
            numbers = [self.numbers_of(d) for d in known]
            numbers += [list(d.like.numbers) for d in group[len(known) :]]
            found = arrays_now(self.e, list(zip(group, numbers, strict=True)))
            for one, now in zip(group, found, strict=True):
                one.now = now
            done.update(members)

    def numbers_of(self, d: Described) -> list[SSAValue]:
        numbers = list(d.like.numbers)
        for k, cell in d.cells.items():
            number = self.e.load(cell)
            assert isinstance(number.owner, Operation)
            self.loads.append(number.owner)
            numbers[k] = number
        return numbers

    def keep_numbers(self, end: End) -> None:
        """Put the numbers of an array, as an iteration leaves it, in cells."""
        d = end.place.described
        assert d is not None
        try:
            found = Describer(self.e, d.bases, entire=d.form.entire).describe(end.value)
        except Undescribed:
            what = "what `reshape`, `ravel` or `diagonal` makes in it"
            way_out = "make that before the loop: flat = a.reshape(-1), or bind a copy"
            raise self.refused_rebinding(end.variable.name, what, way_out) from None
        form = self.with_orders((end.variable.key, end.place.leaf), d.form, found)
        if form.orders != d.form.orders:
            return
        found = found.in_orders(self.e, form.orders)
        moved = {
            k
            for k, (old, new) in enumerate(zip(d.like.numbers, found.numbers, strict=True))
            if k not in d.cells and not equal_numbers(old, new)
        }
        if moved:
            moving = replace(form, moving=form.moving | moved)
            self.facts.describe(end.variable.key, end.place.leaf, moving)
        for k, cell in d.cells.items():
            self.e.store(found.numbers[k], cell)

    # Which form.

    def settle(
        self,
        variables: list[Variable],
        ends: list[End],
        block: Block,
        before: dict[str, Binding],
        yielded: list[SSAValue],
    ) -> None:
        """Decide from what an iteration leaves; keep it where that is the form already."""
        buffers = {p.ssa for v in variables for p in v.places if p.kind == "buffer"}
        heads = {head_of(end.place, block): (end.variable.key, end.place.leaf) for end in ends}
        by_leaf = {(end.variable.key, end.place.leaf): end for end in ends}
        for end in ends:
            self.look(end, heads, buffers, block)
        kept = permuted_alike(ends, block)
        for leaf in kept:
            yielded[by_leaf[leaf].place.number] = by_leaf[leaf].value
        open_ = [leaf for leaf in by_leaf if leaf not in kept]
        reach = {leaf: reached(leaf, by_leaf) for leaf in by_leaf}
        fresh = {leaf for leaf in open_ if any(by_leaf[r].fresh for r in reach[leaf])}
        for key, k in fresh:
            self.facts.forms.pop((key, k), None)
            self.facts.buffer(key, k)
        reachable = {r for leaf in open_ if leaf not in fresh for r in reach[leaf]}
        wanted = [leaf for leaf in by_leaf if leaf in reachable]
        names = self.base_names(before)
        for leaf in wanted:
            self.facts.describe(*leaf, self.form_of(leaf, by_leaf, reach, names, block))
        if not self.facts.changed:
            for leaf in wanted:
                self.keep_numbers(by_leaf[leaf])

    def look(
        self, end: End, heads: dict[SSAValue, Leaf], buffers: set[SSAValue], block: Block
    ) -> None:
        """Find what the array may be."""
        pending, seen = [end.value], set[SSAValue]()
        while pending:
            value = strip_casts(pending.pop())
            if value in seen:
                continue
            seen.add(value)
            owner = value.owner
            if value in heads:
                end.slots.add(heads[value])
            elif value in buffers:
                end.fresh = True
            elif not is_made_in(value, block):
                end.outer.append(value)
            elif isinstance(owner, array.AnyView):
                end.view = True
                pending.append(owner.source)
            elif isinstance(owner, scf.IfOp):
                number = result_index(value)
                pending += [last_of(r.block).operands[number] for r in owner.regions]
            elif isinstance(owner, array.LoopOp):
                pending += owner.carried
            elif not is_placeholder(value):
                end.fresh = True

    def form_of(
        self,
        leaf: Leaf,
        ends: dict[Leaf, End],
        reach: dict[Leaf, set[Leaf]],
        names: dict[SSAValue, BaseName],
        block: Block,
    ) -> Form:
        end = ends[leaf]
        name = end.variable.name
        found = dict[SSAValue, None]()
        entire = True
        for one in (leaf, *sorted(reach[leaf] - {leaf}, key=str)):
            other = ends[one]
            entire = entire and not other.view and is_entire(other.place.ssa)
            for value in (other.place.ssa, *other.outer):
                entire = entire and is_entire(value)
                if roots(self.e, value):
                    found[base_of(value)] = None
        if any(b not in names for b in found):
            self.refuse_rebinding(name, "an array that was made before the loop and has no name")
        old = self.facts.forms.get(leaf)
        bases = tuple(sorted({*(old.bases if old else ()), *(names[b] for b in found)}))
        moving = (old.moving if old else frozenset[int]()) | ({0} if len(bases) > 1 else set())
        if len(set(map(rank_of, found))) > 1 or (old is not None and not old.entire):
            entire = False
        if old is not None and old.entire and not entire:
            moving = moving & {0}
        group = self.group_of(leaf, ends, reach, len(found), block) if entire else ()
        if old is not None and old.group != group:
            group = ()
        orders = old.orders if old is not None and not entire else ()
        return Form(bases, entire, moving, group, orders)

    def group_of(
        self,
        leaf: Leaf,
        ends: dict[Leaf, End],
        reach: dict[Leaf, set[Leaf]],
        bases: int,
        block: Block,
    ) -> tuple[Leaf, ...]:
        """The leaves that are one permutation of the bases with `leaf`."""
        members = [m for m in ends if m in reach[leaf] and leaf in reach[m]]
        if not 1 < len(members) == bases <= TOGETHER:
            return ()
        heads = frozenset(head_of(ends[m].place, block) for m in members)
        if unwound([ends[m].value for m in members], heads) != heads:
            return ()
        return tuple(members)


def base_of(value: SSAValue) -> SSAValue:
    """What an array is a view of; one that a reshape made is a base of its own."""
    while isinstance(value.owner, array.ViewOp | memref.CastOp):
        value = value.owner.source
    return value


def head_of(place: Place, block: Block) -> SSAValue:
    """The array as the iteration finds it."""
    if place.kind == "carried":
        return block.args[1 + place.number]
    assert place.described is not None
    assert place.described.now is not None
    return strip_casts(place.described.now)


def permuted_alike(ends: list[End], block: Block) -> set[Leaf]:
    """The leaves that are carried and take each other's arrays, the same in every iteration."""
    heads: dict[SSAValue, Leaf] = {
        block.args[1 + end.place.number]: (end.variable.key, end.place.leaf)
        for end in ends
        if end.place.kind == "carried"
    }
    kept = {
        (end.variable.key, end.place.leaf): heads.get(strip_casts(end.value))
        for end in ends
        if end.place.kind == "carried"
    }
    while True:
        taken = list(kept.values())
        bad = [k for k, v in kept.items() if v is None or v not in kept or taken.count(v) > 1]
        if not bad:
            return set(kept)
        for k in bad:
            del kept[k]


def reached(leaf: Leaf, ends: dict[Leaf, End]) -> set[Leaf]:
    """The leaves whose arrays `leaf` may be after some iterations, itself included."""
    found, pending = {leaf}, [leaf]
    while pending:
        for other in ends[pending.pop()].slots:
            if other not in found:
                found.add(other)
                pending.append(other)
    return found


def is_entire(value: SSAValue) -> bool:
    return strip_casts(value) is base_of(value)


def arrays_in(binding: Binding) -> Iterable[Array]:
    match binding:
        case Array():
            yield binding
        case Tuple(items) | Struct(items):
            for item in items:
                yield from arrays_in(item)
        case Maybe(value, _):
            yield from arrays_in(value)
        case _:
            pass
