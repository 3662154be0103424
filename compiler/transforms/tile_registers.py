"""Keep a tile of what a nest adds up in registers: some rows of it, and a vector of each.

Where the inner loops add to a row again and again, each time it is loaded and stored. Its elements are
independent, and so are those of the next rows: a few rows of one vector's width stay in registers from
the first addition to the last one, and what goes along the row is loaded once for all of them. Each element
has its additions in the order in which they were.

Before::

    func.func @f(%c : memref<?x?xf64>, %a : memref<?x?xf64>, %b : memref<?x?xf64>, %n : index, %l : index) {
      %trips = array.loop %i to %n do {
        %trips_1 = array.loop %k to %n do {
          %trips_2 = array.loop %j to %l do {
            %x = memref.load %a[%i, %k] : memref<?x?xf64>
            %y = memref.load %b[%k, %j] : memref<?x?xf64>
            %z = arith.mulf %x, %y : f64
            %old = memref.load %c[%i, %j] : memref<?x?xf64>
            %sum = arith.addf %old, %z : f64
            memref.store %sum, %c[%i, %j] : memref<?x?xf64>
            array.yield
          }
          array.yield
        }
        array.yield
      }
      func.return
    }

After, in short::

    for i in range(0, n - 5, 6):
        for j in range(0, l - 7, 8):
            t = [c[i + d, j : j + 8] for d in range(6)]          # in registers
            for k in range(n):
                y = b[k, j : j + 8]
                t = [t[d] + a[i + d, k] * y for d in range(6)]
            c[i : i + 6, j : j + 8] = t
    for i in range(n - n % 6, n): ...                           # a row at a time, in vectors as well
    for i in range(n): ...                                      # as it was, from column l - l % 8 on

Kept: nests whose inner loops differ in length from row to row, that read what they store otherwise, or that
have more than such additions in them; rows that share nothing. Where there are fewer rows or columns, or the
inner loops are short, the nest runs as it was. Runs before `unroll_and_jam`, which is for nests that cannot
be tiled, and after `reorder_loops`: innermost loops go along rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerType, MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import array
from ..analysis.loop_order import LoopOrder
from ..analysis.strides import stride
from ..rules import Access, accesses, evaluates_body
from .hoist_checks import is_counted
from .interchange import body_like, loop_of
from .maps_as_loops import is_adjoint, is_scalar_code
from .memory_effects import functions
from .register_tiles import write_tiles
from .scalar_nests import ScalarNest, accesses_of, are_many

ELEMENTWISE = (arith.AddfOp, arith.SubfOp, arith.MulfOp, arith.DivfOp, arith.NegfOp)
"""What is computed in vectors."""


@dataclass(frozen=True)
class TileRegisters(ModulePass):
    """Keep tiles of sums in registers."""

    name = "tile-registers"
    threads: bool = False
    """Blocks of rows are for threads."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for function in functions(op):
            for leaf in innermost(function.body.block):
                chain = chain_around(leaf)
                if len(chain) > 1:
                    tile(function, leaf, chain, self.threads)


Leaf = array.LoopOp | array.MapOp


def innermost(block: Block) -> list[Leaf]:
    """The counted loops without loops in them, and the maps over vectors, that do not only raise."""
    found: list[Leaf] = []
    for op in block.ops:
        if array.RAISES in op.attributes:
            continue
        if isinstance(op, array.MapOp):
            if may_be_loop(op):
                found.append(op)
            continue
        if evaluates_body(op):
            continue
        if isinstance(op, array.LoopOp):
            if array.SMALL in op.attributes:
                continue
            if is_plain(op) and not any(o.regions for o in op.body.block.ops):
                found.append(op)
                continue
        for region in op.regions:
            for inner in region.blocks:
                found += innermost(inner)
    return found


def is_plain(loop: array.LoopOp) -> bool:
    kept = {array.CLAIMED, array.EXCLUSIVE, array.SMALL, array.OWN_BYTES}
    return is_counted(loop) and not loop.carried and not kept & loop.attributes.keys()


def may_be_loop(op: array.MapOp) -> bool:
    """True of a map over a vector that updates one number for each point, in scalar code."""
    plain = op.gathers is None and not op.window and not op.origin
    if not plain or array.READS_FIRST in op.attributes or len(op.extents) != 1:
        return False
    match list(op.out_kinds):
        case ["add"]:
            pass
        case ["store"] if op.outs[0] in op.ins:
            pass
        case _:
            return False
    return all(map(is_scalar_code, op.body.block.ops))


def as_loop(op: array.MapOp) -> array.LoopOp:
    """The loop that does what such a map does, before it."""
    body, writer = body_like(op)
    place, values = [body.args[0]], dict[SSAValue, SSAValue]()
    for argument, source in zip(op.body.block.args, op.ins, strict=True):
        values[argument] = writer.emit(memref.LoadOp.get(source, place))
    writer.copy(list(op.body.block.ops)[:-1], values)
    (value,) = (values.get(v, v) for v in op.yielded)
    (target,) = op.outs
    if list(op.out_kinds) == ["add"]:
        old = writer.emit(memref.LoadOp.get(target, place))
        total = arith.AddfOp(old, value)
        if all(map(is_adjoint, op.yielded)):
            total.attributes["ad.adjoint"] = UnitAttr()
        value = writer.emit(total)
    writer.block.add_op(memref.StoreOp.get(value, target, place))
    for made in body.ops:
        made.location = op.location
    loop = loop_of(op.extents[0], body, op)
    block = op.parent
    assert block is not None
    block.insert_op_before(loop, op)
    return loop


def chain_around(leaf: Leaf) -> list[array.LoopOp]:
    """The plain loops around it, the innermost first, that have one loop in them each."""
    found: list[array.LoopOp] = []
    inner: Operation = leaf
    while isinstance(outer := inner.parent_op(), array.LoopOp) and is_plain(outer):
        others = [o for o in outer.body.block.ops if o is not inner]
        if any(o.regions or isinstance(o, memref.StoreOp) for o in others):
            break
        found.append(outer)
        inner = outer
    return found


def tile(function: func.FuncOp, leaf: Leaf, chain: Sequence[array.LoopOp], threads: bool) -> None:
    """Tile the nest around an innermost loop, or a map, where that is exact and pays."""
    if isinstance(leaf, array.LoopOp):
        tile_loop(function, leaf, chain, threads)
        return
    loop = as_loop(leaf)
    leaf.detach()
    if tile_loop(function, loop, chain, threads):
        leaf.erase()
        return
    block = loop.parent
    assert block is not None
    block.insert_op_before(leaf, loop)
    Rewriter.erase_op(loop)


def tile_loop(
    function: func.FuncOp, leaf: array.LoopOp, chain: Sequence[array.LoopOp], threads: bool
) -> bool:
    """The same for a loop; whether it was."""
    if not adds_to_an_element(leaf):
        return False
    nest = ScalarNest(function, chain[-1], fastmath=False)
    (store,) = stores_in(leaf)
    (access,) = accesses(store)
    still = 0
    while still < len(chain) and stride(nest.dependence, access, chain[still]) == "still":
        still += 1
    if not 0 < still < len(chain):
        return False
    nest = ScalarNest(function, chain[still], fastmath=False)
    found = Tiled(nest, leaf, tuple(reversed(chain[:still])), store)
    if not found.pays() or not found.is_exact() or not nest.committed():
        return False
    nest.look_again()
    write_tiles(found, threads=threads)
    return True


def stores_in(leaf: array.LoopOp) -> list[memref.StoreOp]:
    return [op for op in leaf.body.block.ops if isinstance(op, memref.StoreOp)]


def adds_to_an_element(leaf: array.LoopOp) -> bool:
    """Whether all that is stored may go to where something was loaded."""
    stores = stores_in(leaf)
    loads = [op.memref for op in leaf.body.block.ops if isinstance(op, memref.LoadOp)]
    return (
        len(stores) == 1
        and stores[0].memref in loads
        and isinstance(stores[0].value.type, AnyFloat)
    )


class Tiled:
    """A nest: the loop over rows, the loops in it that add, and the one along a row."""

    def __init__(
        self,
        nest: ScalarNest,
        leaf: array.LoopOp,
        adding: tuple[array.LoopOp, ...],
        store: memref.StoreOp,
    ) -> None:
        self.nest = nest
        self.rows = nest.loop
        self.adding = adding
        self.leaf = leaf
        self.store = store

    @property
    def levels(self) -> tuple[array.LoopOp, ...]:
        """All loops, the outermost first."""
        return (self.rows, *self.adding, self.leaf)

    def ops(self) -> list[Operation]:
        """What is in them beside loops, in order."""
        return [op for loop in self.levels for op in self.beside(loop)]

    def beside(self, loop: array.LoopOp) -> list[Operation]:
        return [o for o in loop.body.block.ops if not isinstance(o, array.LoopOp | array.YieldOp)]

    def is_own(self, op: Operation) -> bool:
        """Whether an op loads, or stores, the element that the leaf adds to."""
        if op is self.store:
            return True
        if not isinstance(op, memref.LoadOp) or op.memref is not self.store.memref:
            return False
        if op.parent is not self.leaf.body.block:
            return False
        forms = self.nest.dependence.footprints.subscripts
        return [forms.affine(i) for i in op.indices] == [
            forms.affine(i) for i in self.store.indices
        ]

    # Whether.

    def pays(self) -> bool:
        """Whether all goes along a row in vectors, which are the same for all rows."""
        inner = self.levels[1:]
        if any(loop.count is None or not is_outside(loop.count, self.rows) for loop in inner):
            return False
        if any(loop.trips.first_use is not None for loop in inner):
            return False
        ops = self.ops()
        if not all(isinstance(op, array.ViewOp) or self.nest.movable(op) for op in ops):
            return False
        kinds = self.kinds()
        if kinds is None or self.store.value not in kinds.wide:
            return False
        adding = dependents(ops, [loop.induction for loop in self.adding])
        if adding & {self.store.memref, *self.store.indices}:
            return False
        rows = self.among_rows()
        alongside = [
            op
            for op in self.beside(self.leaf)
            if isinstance(op, memref.LoadOp) and op.res in kinds.wide and not self.is_own(op)
        ]
        return bool(alongside) and not any(op.res in rows for op in alongside)

    def among_rows(self) -> set[SSAValue]:
        """What differs from row to row."""
        own = [r for op in self.beside(self.leaf) if self.is_own(op) for r in op.results]
        return dependents(self.ops(), [self.rows.induction, *own])

    def kinds(self) -> Kinds | None:
        """Which values of the leaf's body are vectors; None where some can be neither vector nor number."""
        found = Kinds({self.leaf.induction})
        for op in self.beside(self.leaf):
            placed = [o for o in op.operands if o in found.places]
            wide = [o for o in op.operands if o in found.wide]
            match op:
                case memref.LoadOp() if placed and self.stands_still(op):
                    pass
                case memref.LoadOp() if placed:
                    if wide or not self.is_row(op, op.memref, placed):
                        return None
                    found.wide.add(op.res)
                case memref.StoreOp():
                    if not self.is_row(op, op.memref, placed):
                        return None
                case _ if placed:
                    if wide or not all(is_place(r) for r in op.results):
                        return None
                    found.places.update(op.results)
                case _ if wide:
                    if not isinstance(op, ELEMENTWISE):
                        return None
                    found.wide.update(op.results)
                case _:
                    pass
        return found

    def stands_still(self, op: memref.LoadOp) -> bool:
        """Whether all elements of a row read one."""
        (access,) = accesses(op)
        return stride(self.nest.dependence, access, self.leaf) == "still"

    def is_row(
        self, op: memref.LoadOp | memref.StoreOp, source: SSAValue, placed: Sequence[SSAValue]
    ) -> bool:
        """Whether elements of the tile's type lie side by side."""
        (access,) = accesses(op)
        type_ = source.type
        assert isinstance(type_, MemRefType)
        alongside = list(op.indices)[-1:] == list(placed)
        same = type_.element_type == self.store.value.type and array.strides_of(type_)[-1] == 1
        return alongside and same and stride(self.nest.dependence, access, self.leaf) == "unit"

    def is_exact(self) -> bool:
        """Whether rows, and elements of a row, are independent, and nothing else reads them."""
        found = accesses_of(self.ops())
        if are_many(found):
            return False
        order = LoopOrder(self.nest.dependence, set())
        if not order.independent(found, self.rows):
            return False
        (mine,) = accesses(self.store)
        others = [a for a in found if not self.is_own(a.op)]
        own: list[Access] = [a for a in found if self.is_own(a.op)]
        if not order.independent(own, self.leaf):
            return False
        return not any(
            order.any_meet([mine], others, level) or order.any_meet(others, [mine], level)
            for level in (None, *self.levels)
        )


@dataclass
class Kinds:
    """What values of a leaf's body are, beside numbers that are the same along a row."""

    places: set[SSAValue]
    """Subscripts made of its counter."""
    wide: set[SSAValue] = field(default_factory=set[SSAValue])
    """Vectors."""


def is_place(value: SSAValue) -> bool:
    return isinstance(value.type, IndexType | IntegerType)


def is_outside(value: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a value is there before the loop."""
    block = value.owner if isinstance(value.owner, Block) else value.owner.parent
    while block is not None:
        parent = block.parent_op()
        if parent is loop:
            return False
        block = None if parent is None else parent.parent
    return True


def dependents(ops: Sequence[Operation], seeds: Sequence[SSAValue]) -> set[SSAValue]:
    """The values that are computed from some of the seeds, and these."""
    found = set(seeds)
    for op in ops:
        if any(o in found for o in op.operands):
            found.update(op.results)
    return found
