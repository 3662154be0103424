"""Write nests of two loops that add products of numbers as products of matrices. Part of `collect_products`.

::

    for k in range(p):                                    c[:p, :q] += outer(a[:p], s * b[:q])
        for j in range(q):
            c[k, j] += a[k] * s * b[j]

So are a matrix times a vector, and the two sums that the adjoint of one statement is. Additions must be free
to come in any order, and nothing that the nest reads may be stored to in it. What is a number for each j, or
each k, is computed before, into a vector, where it is no array's already. The inner loop may be a map, and
what it adds up may go through a cell, from which it is added to an element::

    for k in range(p):
        total[] = 0
        map(j < q): total[] += x[j] * a[j, k]
        c[k] += s * total[]

Whether it pays the caller sees: nests are raised only where their products are collected.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import FloatAttr, MemRefType, f32, f64
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..analysis.additions import additions_in, is_cell, place_of
from ..analysis.affine import Affine, Subscripts, extreme
from ..analysis.dependence import Dependence
from ..analysis.footprint import Point
from ..analysis.slabs import at, is_outside
from ..rules import Access, accesses
from .hoist_checks import Before, is_counted
from .interchange import body_like, known_before, loop_of
from .maps_as_loops import as_loop, is_scalar_code, may_be_loop

LEAST = 8
"""Loops of fewer iterations, where that is known, are kept."""

PAIRS = 400
"""Nests in which more pairs of accesses would have to be compared are kept."""


def raised(loop: array.LoopOp, dependence: Dependence, fastmath: bool) -> list[array.MatmulOp]:
    """The products that nests directly in the loop are now."""
    found: list[array.MatmulOp] = []
    for nest in list(nests_in(loop)):
        found += Nest(nest, dependence, fastmath).raised()
    return found


def nests_in(loop: array.LoopOp | func.FuncOp) -> Iterator[array.LoopOp]:
    """The nests directly in it that look like products: one loop, or map, and scalar code in each."""
    for op in loop.body.block.ops:
        if isinstance(op, array.LoopOp) and is_plain(op) and inner_of(op) is not None:
            yield op


def inner_of(outer: array.LoopOp) -> array.LoopOp | array.MapOp | None:
    """The one loop, or map, that is in the loop beside scalar code, where it is no more than that itself."""
    ops = list(outer.body.block.ops)[:-1]
    inner = [op for op in ops if isinstance(op, array.LoopOp | array.MapOp)]
    if len(inner) != 1 or not all(is_scalar_code(op) for op in ops if op is not inner[0]):
        return None
    (op,) = inner
    fits = may_be_loop(op) if isinstance(op, array.MapOp) else is_leaf(op)
    return op if fits else None


@dataclass(frozen=True)
class Element:
    """An element of an array from outside of the nest."""

    base: SSAValue
    subscripts: tuple[Affine, ...]

    def axis(self, counter: SSAValue) -> int | None:
        """The one axis along which it moves with the counter."""
        found = [k for k, form in enumerate(self.subscripts) if form.terms.get(counter, 0)]
        return found[0] if len(found) == 1 else None


@dataclass(frozen=True)
class Product:
    """Factors, and whether the product is taken negative."""

    factors: tuple[SSAValue, ...]
    negative: bool = False

    def times(self, other: Product) -> Product:
        return Product(self.factors + other.factors, self.negative != other.negative)


@dataclass(frozen=True)
class Sum:
    """A statement `target += product` in which additions may come in any order."""

    target: Element
    product: Product


class Nest:
    """One nest of two loops; the inner one may be a map."""

    def __init__(self, outer: array.LoopOp, dependence: Dependence, fastmath: bool) -> None:
        self.outer = outer
        self.dependence = dependence
        self.fastmath = fastmath
        self.forms = Subscripts()

    def raised(self) -> list[array.MatmulOp]:
        """The products in the place of the nest; none where it is kept."""
        op = inner_of(self.outer)
        assert op is not None
        if isinstance(op, array.LoopOp):
            return self._raised(op)
        loop = as_loop(op, self.fastmath)
        block = loop.parent
        assert block is not None
        op.detach()
        found = self._raised(loop)
        if found:
            op.erase()
        else:
            block.insert_op_before(op, loop)
            loop.detach()
            loop.erase(safe_erase=False)
        return found

    def _raised(self, inner: array.LoopOp) -> list[array.MatmulOp]:
        self.inner = inner
        self.k, self.j = self.outer.induction, inner.induction
        assert self.outer.count is not None
        assert inner.count is not None
        self.counts = {
            self.k: self.forms.affine(self.outer.count),
            self.j: self.forms.affine(inner.count),
        }
        counts = self.counts.values()
        if not all(known_before(count, self.outer) for count in counts):
            return []
        if any(c.is_constant and c.constant < LEAST for c in counts):
            return []
        sums = self._sums()
        shapes = [self._shape(one) for one in sums]
        if not sums or any(shape is None for shape in shapes):
            return []
        writer = Raised(self, sums)
        found = [writer.write(shape) for shape in shapes if shape is not None]
        self.outer.detach()
        self.outer.erase(safe_erase=False)
        return found

    # What the nest adds.

    def _sums(self) -> list[Sum]:
        """Its statements, where they are sums of products and nothing else; else nothing."""
        alias = self.dependence.alias
        self.ops = [*self.outer.body.block.ops, *self.inner.body.block.ops]
        free = additions_in(self.outer, alias.may_alias, self.fastmath)
        stores = [op for op in self.ops if isinstance(op, memref.StoreOp)]
        own: set[Operation] = set()
        self.totals: dict[SSAValue, Product] = {}
        for cell in {op.memref for op in stores if is_cell(op.memref)}:
            total = self._total(cell, own)
            if total is None:
                return []
            self.totals[cell] = total
        found: list[Sum] = []
        used: set[SSAValue] = set()
        for op in stores:
            if is_cell(op.memref):
                continue
            target = self.element(op)
            if op not in free or target is None:
                return []
            load, term = parts_of_addition(op)
            own.add(load)
            if op.parent is not self.inner.body.block:
                cells = self._cells_of(term)
                if len(cells) != 1:
                    return []  # of two sums the product is another one
                used |= cells
            found.append(Sum(target, self._product(term)))
        if used != set(self.totals) or not self._is_apart(own, stores):
            return []
        return found

    def _cells_of(self, term: SSAValue) -> set[SSAValue]:
        """The totals that are among the factors."""
        owner = term.owner
        match owner:
            case arith.MulfOp():
                return self._cells_of(owner.lhs) | self._cells_of(owner.rhs)
            case arith.NegfOp():
                return self._cells_of(owner.operand)
            case memref.LoadOp() if owner.memref in self.totals:
                return {owner.memref}
            case _:
                return set()

    def _total(self, cell: SSAValue, own: set[Operation]) -> Product | None:
        """What is added up in a cell, from 0 on, and read once; the cell has no other use."""
        users = list(users_of(cell))
        outside, inside = self.outer.body.block, self.inner.body.block
        stores = [op for op in users if isinstance(op, memref.StoreOp)]
        loads = [op for op in users if isinstance(op, memref.LoadOp)]
        if len(users) != 4 or len(stores) != 2 or len(loads) != 2:
            return None
        first = [op for op in stores if op.parent is outside and is_zero(op.value)]
        each = [op for op in stores if op.parent is inside]
        read = [op for op in loads if op.parent is outside]
        if not (len(first) == len(each) == len(read) == 1 and read[0].res.has_one_use()):
            return None
        in_order = first[0].is_before_in_block(self.inner) and self.inner.is_before_in_block(
            read[0]
        )
        total = each[0].value.owner
        if not in_order or not isinstance(total, arith.AddfOp) or not self._is_free(total):
            return None
        (old,) = [op for op in loads if op.parent is inside] or [None]
        if old is None or old.res not in total.operands or not old.res.has_one_use():
            return None
        own |= {old, read[0]}
        return self._product(total.rhs if total.lhs is old.res else total.lhs)

    def _is_free(self, total: arith.AddfOp) -> bool:
        return self.fastmath or "ad.adjoint" in total.attributes

    def _product(self, term: SSAValue) -> Product:
        owner = term.owner
        match owner:
            case arith.MulfOp() if owner in self.ops:
                return self._product(owner.lhs).times(self._product(owner.rhs))
            case arith.NegfOp() if owner in self.ops:
                return self._product(owner.operand).times(Product((), negative=True))
            case memref.LoadOp() if owner.memref in self.totals:
                return self.totals[owner.memref]
            case _:
                return Product((term,))

    def element(self, op: memref.LoadOp | memref.StoreOp) -> Element | None:
        (access,) = accesses(op)
        region = self.dependence.region(access)
        points = [d.at for d in region.dimensions if isinstance(d, Point)]
        if len(points) < len(region.dimensions) or not is_outside(region.base, self.outer):
            return None
        forms = [form - Affine({c: form.terms.get(c, 0) for c in self.counts}) for form in points]
        if not all(known_before(form, self.outer) for form in forms):
            return None
        return Element(region.base, tuple(points))

    def _is_apart(self, own: set[Operation], stores: Sequence[memref.StoreOp]) -> bool:
        """True when no iteration reads what one stores, but to add to it."""
        reads = [op for op in self.ops if isinstance(op, memref.LoadOp) and op not in own]
        writes = [op for op in stores if not is_cell(op.memref)]
        if len(reads) * len(writes) > PAIRS:
            return False
        return not any(self._meet(read, write) for read in reads for write in writes)

    def _meet(self, read: memref.LoadOp, write: memref.StoreOp) -> bool:
        if read.memref in self.totals:
            return True
        if not self.dependence.alias.may_alias(read.memref, write.memref):
            return False
        (a,), (b,) = accesses(read), accesses(write)
        inside = self.inner.body.block
        levels: list[array.LoopOp | None] = [None, self.outer]
        if read.parent is inside and write.parent is inside:
            levels.append(self.inner)
        return any(self._either(a, b, level) for level in levels)

    def _either(self, a: Access, b: Access, level: array.LoopOp | None) -> bool:
        meet = self.dependence.may_meet
        return meet(a, b, level) or meet(b, a, level)

    # What product of matrices it is.

    def counters_of(self, value: SSAValue) -> frozenset[SSAValue]:
        """The counters that a number of the nest depends on."""
        if value in self.counts:
            return frozenset([value])
        owner = value.owner
        if isinstance(owner, Block) or owner not in self.ops:
            return frozenset()
        return frozenset().union(*(self.counters_of(o) for o in owner.operands))

    def _shape(self, one: Sum) -> Shape | None:
        assert isinstance(one.target.base.type, MemRefType)
        if one.target.base.type.element_type not in (f64, f32):
            return None
        groups: dict[frozenset[SSAValue], list[SSAValue]] = {}
        for factor in one.product.factors:
            groups.setdefault(self.counters_of(factor), []).append(factor)
        both = frozenset([self.k, self.j])
        moving = frozenset(c for c in both if any(f.terms.get(c, 0) for f in one.target.subscripts))
        along = groups.get(both, [])
        vectors = [c for c in (self.k, self.j) if frozenset([c]) in groups]
        if any(one.target.axis(c) is None for c in moving):
            return None
        if moving == both:
            axes = {one.target.axis(c) for c in both}
            fits = not along and len(axes) == 2 and len(vectors) == 2
            return Shape(one, None, groups) if fits else None
        if len(moving) != 1 or len(along) != 1 or vectors != [*(both - moving)]:
            return None
        load = along[0].owner
        matrix = self.element(load) if isinstance(load, memref.LoadOp) else None
        if matrix is None or None in (axes := {matrix.axis(c) for c in both}) or len(axes) < 2:
            return None
        return Shape(one, matrix, groups)


@dataclass(frozen=True)
class Shape:
    """A sum as a product: an outer one, or that of the matrix with a vector."""

    sum: Sum
    matrix: Element | None
    groups: dict[frozenset[SSAValue], list[SSAValue]]
    """Its factors, by the counters that they depend on."""


class Raised:
    """Writes products before the nest."""

    def __init__(self, nest: Nest, sums: Sequence[Sum]) -> None:
        self.nest = nest
        self.here = Before(nest.outer)
        self.extents = {
            c: self.here.number(extreme("max", count, Affine())) for c, count in nest.counts.items()
        }
        slopes = {
            c: {
                f.terms.get(c, 0) > 0
                for s in sums
                for f in s.target.subscripts
                if f.terms.get(c, 0)
            }
            for c in nest.counts
        }
        self.turned = {c for c, found in slopes.items() if found == {False}}
        """Counters that targets go down with: they run from the other end."""

    def write(self, shape: Shape) -> array.MatmulOp:
        one, k, j = shape.sum, self.nest.k, self.nest.j
        scale = shape.groups.get(frozenset(), [])
        if shape.matrix is None:
            left = self._vector(k, shape, [], one.product.negative)
            right = self._vector(j, shape, scale, negative=False)
            a, b = self._view(left, [k, None]), self._view(right, [None, j])
            c = self._view(one.target, [k, j])
        else:
            (row,) = [c for c in (k, j) if one.target.axis(c) is not None]
            (summed,) = {k, j} - {row}
            vector = self._vector(summed, shape, scale, one.product.negative)
            a, b = self._view(shape.matrix, [row, summed]), self._view(vector, [summed, None])
            c = self._view(one.target, [row, None])
        made = array.MatmulOp(a, b, c, accumulate=True)
        self.here.insert(made)
        return made

    def _view(self, element: Element, counters: Sequence[SSAValue | None]) -> SSAValue:
        """The elements for all values of the counters, one a dimension."""
        here, forms = self.here, list(element.subscripts)
        dims, extents, steps = list[int](), list[SSAValue](), list[SSAValue]()
        for counter in counters:
            axis = None if counter is None else element.axis(counter)
            if counter is None or axis is None:
                dims.append(-1)
                extents.append(here.constant(1))
                steps.append(here.constant(0))
                continue
            factor = forms[axis].terms[counter]
            dims.append(axis)
            extents.append(self.extents[counter])
            steps.append(here.constant(-factor if counter in self.turned else factor))
            first = self.nest.counts[counter] - 1 if counter in self.turned else Affine()
            forms[axis] = at(forms[axis], counter, first)
        offsets = [here.number(form) for form in forms]
        view = array.ViewOp(element.base, offsets, dims, extents, steps)
        here.insert(view)
        view.result.name_hint = element.base.name_hint
        return view.result

    def _vector(
        self, counter: SSAValue, shape: Shape, scale: Sequence[SSAValue], negative: bool
    ) -> Element:
        """The product of the factors for each value of the counter: an array's elements, or a vector."""
        factors = [*shape.groups[frozenset([counter])], *scale]
        if len(factors) == 1 and not negative:
            owner = factors[0].owner
            if isinstance(owner, memref.LoadOp):
                element = self.nest.element(owner)
                if element is not None and element.axis(counter) is not None:
                    return element
        return self._computed(counter, factors, negative)

    def _computed(self, counter: SSAValue, factors: Sequence[SSAValue], negative: bool) -> Element:
        here, nest = self.here, self.nest
        trips = self._trips(counter)
        memory = array.AllocOp([trips], factors[0].type)
        here.insert(memory)
        memory.memref.name_hint = factors[0].name_hint
        body, writer = body_like(nest.outer)
        values: dict[SSAValue, SSAValue] = {counter: body.args[0]}
        writer.copy(list(self._slice(factors)), values)
        found = [values.get(f, f) for f in factors]
        total = found[0]
        for factor in found[1:]:
            total = writer.emit(arith.MulfOp(total, factor))
        if negative:
            total = writer.emit(arith.NegfOp(total))
        body.add_op(memref.StoreOp.get(total, memory.memref, [body.args[0]]))
        loop = loop_of(trips, body, nest.outer)
        here.insert(loop)
        return Element(memory.memref, (Affine.of(counter),))

    def _trips(self, counter: SSAValue) -> SSAValue:
        """How often the factors are read; never, as in the nest, where the other loop does not run."""
        here, zero = self.here, self.here.constant(0)
        ((_, other),) = [(c, e) for c, e in self.extents.items() if c is not counter]
        runs = here.compare("sgt", other, zero)
        return here.emit(arith.SelectOp(runs, self.extents[counter], zero))

    def _slice(self, values: Sequence[SSAValue]) -> Iterator[Operation]:
        """The nest's ops that compute the values, in order."""
        wanted = set(values)
        found: list[Operation] = []
        for op in reversed(self.nest.ops):
            if any(r in wanted for r in op.results):
                found.append(op)
                wanted.update(op.operands)
        return reversed(found)


# What may be in a nest.


def is_plain(loop: array.LoopOp) -> bool:
    return is_counted(loop) and not loop.carried and loop.trips.first_use is None


def is_leaf(loop: array.LoopOp) -> bool:
    return is_plain(loop) and all(map(is_scalar_code, loop.body.block.ops))


def is_zero(value: SSAValue) -> bool:
    owner = value.owner
    number = owner.value if isinstance(owner, arith.ConstantOp) else None
    return isinstance(number, FloatAttr) and number.value.data == 0


def users_of(cell: SSAValue) -> Iterator[Operation]:
    """What uses a cell, but for copies of the code beside the function, and views that only they have."""
    for op in (use.operation for use in cell.uses):
        if isinstance(op, array.ViewOp) and not any(users_of(op.result)):
            continue
        if is_attached(op):
            yield op


def is_attached(op: Operation) -> bool:
    top: Operation | None = op
    while top is not None and not isinstance(top, func.FuncOp):
        top = top.parent_op()
    return top is not None


def parts_of_addition(store: memref.StoreOp) -> tuple[memref.LoadOp, SSAValue]:
    """The load of what is added to, and the term."""
    total = store.value.owner
    assert isinstance(total, arith.AddfOp)
    for value, other in ((total.lhs, total.rhs), (total.rhs, total.lhs)):
        load = value.owner
        if isinstance(load, memref.LoadOp) and place_of(load) == place_of(store):
            return load, other
    raise AssertionError(store)
