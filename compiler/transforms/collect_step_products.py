"""Collect the products of the steps of a checkpointed loop as those of the loop itself are.

The backward function of a step keeps the vectors of its products in memory that the steps share. The last
step of a block adds the product of all. Without that BLAS had other sums within a budget than without, and
what a step adds to a matrix by products and by itself would come in another order. Runs after
`collect_products`, which says which products the gradient without a budget collects.

Before::

    func.func @whole(%w_shadow : memref<?x?xf64>, %g : memref<?x?xf64>, %x : memref<?x?xf64>) {
      array.matmul %g, %x into %w_shadow accumulate
          : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
      func.return
    }
    func.func @in_steps(%w : memref<?x?xf64>, %w_shadow : memref<?x?xf64>, %kept : index) {
      activation.reverse_steps @step %kept (%w : memref<?x?xf64>)
          shadows (%w_shadow : memref<?x?xf64>) of [0] moves [0] reads [0] writes [] live []
      func.return
    }
    func.func private @step_forward(%i : index, %w : memref<?x?xf64>)
        -> (memref<?x1xf64>, memref<1x?xf64>) attributes {overlaps = [], keeps = 2 : i64} {
      %0 = ad.tape
      %n = arith.constant 8 : index
      %1 = ad.push %0(%n) : memref<?x1xf64>
      %2 = ad.push %0(%n) : memref<1x?xf64>
      func.return %1, %2 : memref<?x1xf64>, memref<1x?xf64>
    }
    func.func private @step_backward(%g : memref<?x1xf64>, %x : memref<1x?xf64>,
        %w_shadow : memref<?x?xf64>) attributes {overlaps = [], kept = 2 : i64} {
      array.matmul %g, %x into %w_shadow accumulate
          : memref<?x1xf64>, memref<1x?xf64>, memref<?x?xf64>
      func.return
    }

After::

    func.func @whole(%w_shadow: memref<?x?xf64>, %g: memref<?x?xf64>, %x: memref<?x?xf64>) {
      array.matmul %g, %x into %w_shadow accumulate : memref<?x?xf64>, memref<?x?xf64>, memref<?x?xf64>
      func.return
    }
    func.func @in_steps(%w: memref<?x?xf64>, %w_shadow: memref<?x?xf64>, %kept: index) {
      %0 = arith.constant 32 : index
      %1 = arith.constant 0 : index
      %total = memref.alloca() : memref<index>
      %done = memref.alloca() : memref<index>
      memref.store %1, %total[] : memref<index>
      memref.store %1, %done[] : memref<index>
      %2 = arith.constant 0 : index
      %3 = arith.maxsi %0, %2 : index
      %4 = arith.constant 1 : index
      %5 = memref.dim %w_shadow, %2 : memref<?x?xf64>
      %6 = memref.dim %w_shadow, %4 : memref<?x?xf64>
      %7 = arith.maxsi %5, %6 : index
      %8 = arith.maxsi %7, %4 : index
      %9 = arith.constant 262144 : index
      %10 = arith.floordivsi %9, %8 : index
      %11 = arith.constant 32 : index
      %12 = arith.minsi %10, %11 : index
      %13 = arith.maxsi %12, %4 : index
      %14 = arith.minsi %13, %3 : index
      %15 = arith.minsi %13, %3 : index
      %row_kept = array.alloc(%14, %5) : memref<?x?xf64>
      %row_kept_1 = array.alloc(%15, %6) : memref<?x?xf64>
      activation.reverse_steps @step %kept(%w : memref<?x?xf64>) shadows(%w_shadow : memref<?x?xf64>) of [0
          : i64] shared(%total, %done, %row_kept, %row_kept_1 : memref<index>, memref<index>,
          memref<?x?xf64>, memref<?x?xf64>) moves [0 : i64] reads [0 : i64] writes [] live []
      func.return
    }
    func.func private @step_forward(%i: index, %w: memref<?x?xf64>) -> (memref<?x1xf64>,
        memref<1x?xf64>) attributes {overlaps = [], keeps = 2 : i64} {
      %0 = ad.tape
      %n = arith.constant 8 : index
      %1 = ad.push %0(%n) : memref<?x1xf64>
      %2 = ad.push %0(%n) : memref<1x?xf64>
      func.return %1, %2 : memref<?x1xf64>, memref<1x?xf64>
    }
    func.func private @step_backward(%g: memref<?x1xf64>, %x: memref<1x?xf64>, %w_shadow: memref<?x?xf64>,
        %total: memref<index>, %done: memref<index>, %row_kept: memref<?x?xf64>,
        %row_kept_1: memref<?x?xf64>) attributes {overlaps = [], kept = 2 : i64} {
      %0 = memref.load %total[] : memref<index>
      %1 = memref.load %done[] : memref<index>
      %2 = arith.constant 1 : index
      %3 = arith.addi %1, %2 : index
      memref.store %3, %done[] : memref<index>
      %4 = arith.constant 0 : index
      %5 = arith.maxsi %0, %4 : index
      %6 = arith.constant 1 : index
      %7 = memref.dim %w_shadow, %4 : memref<?x?xf64>
      %8 = memref.dim %w_shadow, %6 : memref<?x?xf64>
      %9 = arith.maxsi %7, %8 : index
      %10 = arith.maxsi %9, %6 : index
      %11 = arith.constant 262144 : index
      %12 = arith.floordivsi %11, %10 : index
      %13 = arith.constant 32 : index
      %14 = arith.minsi %12, %13 : index
      %15 = arith.maxsi %14, %6 : index
      %16 = arith.floordivsi %1, %15 : index
      %17 = arith.remsi %1, %15 : index
      %18 = arith.muli %16, %15 : index
      %19 = arith.subi %5, %18 : index
      %20 = arith.minsi %15, %19 : index
      %21 = arith.constant 0 : index
      %22 = memref.dim %w_shadow, %21 : memref<?x?xf64>
      %23 = arith.constant 1 : index
      %24 = memref.dim %w_shadow, %23 : memref<?x?xf64>
      %25 = arith.constant 0 : index
      %26 = arith.constant 1 : index
      %27 = array.view %row_kept[%25, %25] dims [1, 0] extents(%22, %20) steps(%26, %26) : memref<?x?xf64>
          -> memref<?x?xf64, strided<[1, ?]>>
      %28 = array.view %row_kept_1[%25, %25] dims [0, 1] extents(%20, %24) steps(%26, %26)
          : memref<?x?xf64> -> memref<?x?xf64, strided<[?, 1]>>
      %29 = arith.constant 0 : index
      %30 = arith.constant 1 : index
      %31 = array.view %row_kept[%17, %29] dims [1] extents(%22) steps(%30) : memref<?x?xf64>
          -> memref<?xf64, strided<[1]>>
      %32 = array.view %g[%29, %29] dims [0] extents(%22) steps(%30) : memref<?x1xf64> -> memref<?xf64,
          strided<[1]>>
      array.map(%22) ins(%32 : memref<?xf64, strided<[1]>>) outs(%31 : memref<?xf64,
          strided<[1]>>) kinds ["store"] {
      ^bb0(%33: f64):
        array.yield %33 : f64
      }
      %34 = array.view %row_kept_1[%17, %29] dims [1] extents(%24) steps(%30) : memref<?x?xf64>
          -> memref<?xf64, strided<[1]>>
      %35 = array.view %x[%29, %29] dims [1] extents(%24) steps(%30) : memref<1x?xf64> -> memref<?xf64,
          strided<[1]>>
      array.map(%24) ins(%35 : memref<?xf64, strided<[1]>>) outs(%34 : memref<?xf64,
          strided<[1]>>) kinds ["store"] {
      ^bb0(%36: f64):
        array.yield %36 : f64
      }
      %37 = arith.subi %20, %2 : index
      %38 = arith.cmpi eq, %17, %37 : index
      scf.if %38 {
        array.matmul %27, %28 into %w_shadow accumulate {in_order} : memref<?x?xf64, strided<[1, ?]>>,
            memref<?x?xf64, strided<[?, 1]>>, memref<?x?xf64>
      } else {
      }
      func.return
    }

`collect_products` collects those of a loop that does what the steps do (`step_models`), with nests that are
products. Of that loop the blocks are taken apart into steps again. Kept: functions of which the gradient
without a budget collects other products, and those with products of all steps at once, or of vectors that
differ in length.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import arith, func, memref, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, LocationAttr, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import activation, array
from ...dialects.within import every_op
from ..analysis.effects import is_private
from ..rules.calls import private_functions
from ..rules.table import index_constant
from .collect_products import collected
from .product_blocks import BLOCK
from .product_stacks import stacks_of
from .raise_products import nests_in
from .step_models import Model, is_plain


@dataclass(frozen=True)
class CollectStepProducts(ModulePass):
    """Collect products of the steps of checkpointed loops into products of blocks of steps."""

    name = "collect-step-products"
    fastmath: bool = False
    """The primal's additions may come in any order, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        loops: dict[str, list[activation.ReverseStepsOp]] = {}
        for one in op.walk():
            if isinstance(one, activation.ReverseStepsOp):
                loops.setdefault(one.target, []).append(one)
        for ops in loops.values():
            if len(ops) == 1:
                collect(op, ops[0], self.fastmath)


def collect(module: ModuleOp, steps: activation.ReverseStepsOp, fastmath: bool) -> None:
    private = private_functions(module)
    forward = private[f"{steps.target}{activation.FORWARD}"]
    backward = private[f"{steps.target}{activation.BACKWARD}"]
    none = ArrayAttr[Attribute]([])
    if any(f.attributes.get("overlaps") != none for f in (forward, backward)):
        return
    if not any(nests_in(backward)) and not any(
        isinstance(op, array.MatmulOp) for op in backward.walk()
    ):
        return
    for merged in (True, False):
        model = Model(steps, forward, backward)
        if any(stack.ragged for stack in stacks_of(model.loop)):
            return
        if not collected(model.function, model.loop, fastmath, merged=merged):
            return
        blocks = model.loop.parent_op()
        if isinstance(blocks, array.LoopOp) and is_of_the_whole(model, blocks, module):
            apart = Apart(model, blocks)
            if apart.is_possible():
                apart.write()
            return


def is_of_the_whole(model: Model, blocks: array.LoopOp, module: ModuleOp) -> bool:
    """Whether the gradient that runs no step again has collected the same products, and no other is moved.

    There those are not left of which nobody reads the sum; none of them is left alone, either.
    """
    products = products_of(model.function)
    made = [op for op in products if op.parent is blocks.body.block]
    left = [op for op in products if model.loop.is_ancestor(op)]
    if len(made) + len(left) < len(products):
        return False
    single = products_of(model.backward)
    places = {op.location for op in (*made, *single) if op in made or not is_of_matrices(op)}
    there = [
        op
        for function in whole_functions(module)
        for op in products_of(function)
        if op.accumulate is not None and op.location in places
    ]
    mine, others = places_of(made), places_of(op for op in there if is_of_matrices(op))
    if mine == others:
        return True
    # Of tangents the forward sweep adds products to others, too.
    left += [op for op in products_of(model.forward) if op.accumulate is not None]
    alone = [places_of(op for op in ops if not is_of_matrices(op)) for ops in (there, left)]
    return others <= mine and alone[0] <= alone[1]


def products_of(function: func.FuncOp) -> list[array.MatmulOp]:
    return [op for op in function.walk() if isinstance(op, array.MatmulOp)]


def places_of(products: Iterable[array.MatmulOp]) -> Counter[LocationAttr]:
    return Counter(op.location for op in products)


def whole_functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    for op in module.ops:
        if isinstance(op, func.FuncOp) and not is_private(op) and not activation.checkpointed(op):
            yield op


def is_of_matrices(op: array.MatmulOp) -> bool:
    """Whether no operand of a product is a vector, for all that is known."""
    types = [v.type for v in (op.a, op.b, op.c)]
    return not any(isinstance(t, MemRefType) and 1 in t.get_shape() for t in types)


# --- The blocks of that loop, as steps ---------------------------------------------------------


@dataclass
class Apart:
    """Writes the backward function again, from the model whose loop goes block by block."""

    model: Model
    blocks: array.LoopOp
    rows: list[array.AllocOp] = field(init=False)
    """The memory that steps share."""

    def __post_init__(self) -> None:
        entry = self.model.entry
        self.rows = [op for op in entry.ops if isinstance(op, array.AllocOp)]
        others = [op for op in entry.ops if op is not self.blocks and op not in self.rows]
        self.outside = [op for op in others if not isinstance(op, func.ReturnOp)]
        every = list(self.blocks.body.block.ops)
        at = every.index(self.model.loop)
        self.head, self.tail = every[:at], every[at + 1 : -1]

    def is_possible(self) -> bool:
        """Whether all that is written can be, and nothing that has effects is used elsewhere."""
        if not all(map(is_plain, self.outside)):
            return False
        around = [op for op in (*self.head, *self.tail) if not is_plain(op)]
        if any(op.results for op in around):
            return False
        return self.backward(Block()) is not None and self.in_parent(Block()) is not None

    def write(self) -> None:
        backward, steps = self.model.backward, self.model.steps
        before, after = Block(), Block()
        shared, there = self.in_parent(before), self.backward(after)
        assert shared is not None
        assert there is not None
        block = steps.parent
        assert block is not None
        for op in list(before.ops):
            op.detach()
            op.location = steps.location
            block.insert_op_before(op, steps)
        backward.detach_region(backward.body)
        backward.add_region(Region(after))
        backward.update_function_type()
        made = activation.ReverseStepsOp(
            steps, steps.kept, steps.arguments, steps.shadows, steps.of, shared
        )
        made.location = steps.location
        Rewriter.replace_op(steps, made)

    def in_parent(self, into: Block) -> list[SSAValue] | None:
        """What is shared, where the loop stands: the count of steps, how many are done, and the rows."""
        model = self.model
        values: dict[SSAValue, SSAValue] = {}
        most, zero = index_constant(BLOCK), index_constant(0)
        cells = [memref.AllocaOp.get(IndexType(), shape=[]) for _ in range(2)]
        stores = [memref.StoreOp.get(zero.result, cell, []) for cell in cells]
        for cell, hint in zip(cells, ("total", "done"), strict=True):
            cell.memref.name_hint = hint
        into.add_ops([most, zero, *cells, *stores])
        pairs = zip(
            (*model.arguments, *model.shadows, model.count),
            (*model.steps.arguments, *model.steps.shadows, most.result),
            strict=True,
        )
        values.update(pairs)
        copy_pure(self.outside, values, into)
        for op in self.rows:
            if not can_be_copied(op, values):
                return None
            into.add_op(copy := op.clone(values))
            copy.memref.name_hint = op.memref.name_hint
            values[op.memref] = copy.memref
        sweep_unused(into)
        return [*(cell.memref for cell in cells), *(values[op.memref] for op in self.rows)]

    def backward(self, into: Block) -> Block | None:
        """The body of the backward function; None where it needs what the step does not have."""
        model, blocks = self.model, self.blocks
        values: dict[SSAValue, SSAValue] = {}

        def take(type_: Attribute, like: SSAValue | None, hint: str | None) -> SSAValue:
            made = into.insert_arg(type_, len(into.args))
            made.name_hint = hint
            if like is not None:
                values[like] = made
            return made

        extents = Extents()
        for argument in model.backward.body.block.args:
            made = take(argument.type, model.values[argument], argument.name_hint)
            extents.note(model.values[argument], made)
        for k, shadow in zip(model.steps.of, model.shadows, strict=True):
            if shadow in values:
                extents.alike[model.arguments[k]] = values[shadow]
        cell = MemRefType(IndexType(), [])
        total, done = (take(cell, None, hint) for hint in ("total", "done"))
        for op in self.rows:
            take(op.memref.type, op.memref, op.memref.name_hint)
        count, now = memref.LoadOp.get(total, []), memref.LoadOp.get(done, [])
        one = index_constant(1)
        following = arith.AddiOp(now.res, one.result)
        into.add_ops([count, now, one, following, memref.StoreOp.get(following.result, done, [])])
        values[model.count] = count.res
        copy_pure(self.outside, values, into, extents)
        step = self.step_of_blocks(values)
        if step is None:
            return None
        number, place = arith.FloorDivSIOp(now.res, step), arith.RemSIOp(now.res, step)
        into.add_ops([number, place])
        values[blocks.induction] = number.result
        values[model.loop.induction] = place.result
        zero = index_constant(0)
        first = arith.CmpiOp(place.result, zero.result, "eq")
        copy_pure([op for op in (*self.head, *self.tail) if is_plain(op)], values, into, extents)
        if model.loop.count not in values or not self.under(first, [zero], self.head, values, into):
            return None
        for op in model.loop.body.block.ops:
            if isinstance(op, array.YieldOp) or op in model.own:
                continue
            if (known := extents.find(op, values, into)) is not None:
                values[op.results[0]] = known
            elif can_be_copied(op, values):
                into.add_op(op.clone(values))
            else:
                return None
        assert model.loop.count is not None
        length = values[model.loop.count]
        ends = arith.SubiOp(length, one.result)
        last = arith.CmpiOp(place.result, ends.result, "eq")
        if not self.under(last, [ends], self.tail, values, into):
            return None
        into.add_op(func.ReturnOp())
        for op in into.ops:
            op.location = op.location or model.steps.location
        sweep_unused(into)
        return into

    def step_of_blocks(self, values: dict[SSAValue, SSAValue]) -> SSAValue | None:
        """How many steps a block has: the first of a block is its number times that."""
        for op in self.blocks.body.block.ops:
            if isinstance(op, arith.MuliOp) and op.lhs is self.blocks.induction:
                return values.get(op.rhs)
        return None

    def under(
        self,
        condition: arith.CmpiOp,
        before: list[Operation],
        ops: list[Operation],
        values: dict[SSAValue, SSAValue],
        into: Block,
    ) -> bool:
        """Write the ops with effects in a branch; False where one needs what is not there."""
        some = [op for op in ops if not is_plain(op)]
        if not some:
            return True
        if not all(can_be_copied(op, values) for op in some):
            return False
        branch = Block([*(op.clone(values) for op in some), scf.YieldOp()])
        made = scf.IfOp(condition.result, [], [branch], [Block([scf.YieldOp()])])
        into.add_ops([*before, condition, made])
        return True


def can_be_copied(op: Operation, values: dict[SSAValue, SSAValue]) -> bool:
    """Whether all that an op needs of what is around it is known."""
    own = set(every_op(op))
    return all(
        operand in values or operand.owner in own or is_argument_within(operand, op)
        for inner in own
        for operand in inner.operands
    )


def is_argument_within(value: SSAValue, op: Operation) -> bool:
    owner = value.owner
    above = owner.parent_op() if isinstance(owner, Block) else None
    return above is not None and op.is_ancestor(above)


class Extents:
    """The extents of arguments that a step does not have."""

    def __init__(self) -> None:
        self.kept: dict[tuple[SSAValue, int | None], SSAValue] = {}
        """Those that it has kept, by array and axis."""
        self.alike: dict[SSAValue, SSAValue] = {}
        """The shadows of arguments."""

    def note(self, value: SSAValue, kept: SSAValue) -> None:
        if isinstance(value.owner, memref.DimOp):
            self.kept[value.owner.source, array.constant_value(value.owner.index)] = kept

    def find(self, op: Operation, values: dict[SSAValue, SSAValue], into: Block) -> SSAValue | None:
        if not isinstance(op, memref.DimOp) or op.source in values:
            return None
        axis = array.constant_value(op.index)
        if axis is None or (op.source, axis) in self.kept:
            return self.kept.get((op.source, axis))
        if op.source not in self.alike or op.index not in values:
            return None
        made = memref.DimOp(self.alike[op.source], values[op.index])
        into.add_op(made)
        return made.result


def copy_pure(
    ops: list[Operation],
    values: dict[SSAValue, SSAValue],
    into: Block,
    extents: Extents | None = None,
) -> None:
    """Copy what can be, and is not known already."""
    for op in ops:
        if all(r in values for r in op.results):
            continue
        if extents is not None and (found := extents.find(op, values, into)) is not None:
            values[op.results[0]] = found
        elif can_be_copied(op, values):
            into.add_op(op.clone(values))


def sweep_unused(block: Block) -> None:
    for op in reversed(list(block.ops)):
        if is_plain(op) and not any(r.first_use for r in op.results):
            op.detach()
            op.erase()
