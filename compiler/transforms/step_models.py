"""A loop that does what the steps of a checkpointed loop do backwards. Part of `collect_step_products` and
`reorder_loops`.

What steps are given alike (arguments that no step writes, and their extents) stands outside of the loop. The
number of a step is what is left of the count, or of steps that go upwards, that of the iteration. What else a
step has kept is memory of its iteration::

    func.func @step_forward(%i, %w) -> (%saved, %w, %i)     for t in range(count):
    func.func @step_backward(%saved, %w, %i, %w_shadow)         saved = alloc()
                                                                i = count - 1 - t
                                                                ...
"""

from __future__ import annotations

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import ArrayAttr, IndexType, MemRefType, ModuleOp
from xdsl.ir import Attribute, Block, Operation, Region, SSAValue
from xdsl.traits import Pure

from ...dialects import activation, array
from ..rules.calls import listed
from ..rules.table import index_constant


class Model:
    """A function of a loop's arguments, shadows and count, with a loop over what its steps do backwards."""

    def __init__(
        self, steps: activation.ReverseStepsOp, forward: func.FuncOp, backward: func.FuncOp
    ) -> None:
        self.steps, self.forward, self.backward = steps, forward, backward
        given, shadows = [a.type for a in steps.arguments], [s.type for s in steps.shadows]
        self.entry = Block(arg_types=[*given, *shadows, IndexType()])
        self.arguments = self.entry.args[: len(given)]
        self.shadows = self.entry.args[len(given) : -1]
        self.count = self.entry.args[-1]
        self.body = Block(arg_types=[IndexType()])
        self.known: dict[SSAValue, SSAValue | None] = {}
        """Values of the forward function, in the model."""
        last = forward.body.block.last_op
        assert isinstance(last, func.ReturnOp)
        taken = backward.body.block.args
        kept = len(taken) - len(shadows)
        items = last.arguments[len(last.arguments) - kept :]
        self.own: list[Operation] = []
        """What stands for what a step has kept."""
        self.values: dict[SSAValue, SSAValue] = {}
        """Values of the backward function, in the model."""
        for argument, item in zip(taken, items, strict=False):
            self.values[argument] = self.item(item, argument)
        for k, (argument, shadow) in enumerate(zip(taken[kept:], self.shadows, strict=True)):
            place = steps.of[k]
            moves = steps.permutation[place] != place
            self.values[argument] = self.unknown(argument) if moves else shadow
        for op in backward.body.block.ops:
            if not isinstance(op, func.ReturnOp):
                self.add(op.clone(self.values))
        self.body.add_op(array.YieldOp())
        self.loop = array.LoopOp(self.count, (), self.body)
        self.loop.location = steps.location
        self.entry.add_ops([self.loop, func.ReturnOp()])
        types = [a.type for a in self.entry.args]
        self.function = func.FuncOp("model", (types, []), Region(self.entry))
        self.function.attributes["overlaps"] = ArrayAttr[Attribute]([])
        self.module = ModuleOp([self.function])

    def add(self, op: Operation) -> None:
        """What is the same in all steps stands outside."""
        fixed = is_plain(op) and not any(map(self.is_inside, op.operands))
        (self.entry if fixed else self.body).add_op(op)

    def is_inside(self, value: SSAValue) -> bool:
        owner = value.owner
        return (owner if isinstance(owner, Block) else owner.parent) is self.body

    def item(self, item: SSAValue, argument: SSAValue) -> SSAValue:
        """What a step has kept."""
        found = self.again(item)
        return (
            found if found is not None and found.type == argument.type else self.unknown(argument)
        )

    def again(self, value: SSAValue) -> SSAValue | None:
        """A value of the forward function; None where only the step knows it."""
        if value not in self.known:
            self.known[value] = self.computed(value)
        return self.known[value]

    def computed(self, value: SSAValue) -> SSAValue | None:
        op, given = value.owner, list[SSAValue](self.forward.body.block.args)
        if value in given:
            k = given.index(value) - 1
            if k < 0 and self.steps.upwards is not None:
                return self.body.args[0]
            if k < 0:
                one = index_constant(1)
                last = arith.SubiOp(self.count, one.result)
                number = arith.SubiOp(last.result, self.body.args[0])
                for each in (one, last, number):
                    self.add(each)
                return number.result
            changing = k + 1 in listed(self.forward, activation.CHANGING)
            return None if changing or self.steps.permutation[k] != k else self.arguments[k]
        if not isinstance(op, Operation) or not is_plain(op):
            return None
        if not isinstance(value.type, IndexType):
            return None
        operands = {o: self.extent_of(op, o) or self.again(o) for o in op.operands}
        if None in operands.values():
            return None
        again = op.clone({o: v for o, v in operands.items() if v is not None})
        self.add(again)
        return again.results[0]

    def extent_of(self, op: Operation, source: SSAValue) -> SSAValue | None:
        """The extents of an argument are the same in all steps, also where its elements change."""
        given = list[SSAValue](self.forward.body.block.args)
        if not isinstance(op, memref.DimOp) or source not in given or op.source is not source:
            return None
        k = given.index(source) - 1
        return self.arguments[k] if self.steps.permutation[k] == k else None

    def unknown(self, argument: SSAValue) -> SSAValue:
        """Something of a step's own."""
        type_ = argument.type
        if not isinstance(type_, MemRefType):
            return self.put(memref.LoadOp.get(self.put(memref.AllocaOp.get(type_, shape=[])), []))
        if not type_.get_num_dims():
            return self.put(memref.AllocaOp.get(type_.element_type, shape=[]))
        cell = memref.AllocaOp.get(IndexType(), shape=[])
        extent = self.put(memref.LoadOp.get(self.put(cell), []))
        extents = [extent] * type_.get_num_dims()
        made = self.put(array.AllocOp(extents, type_.element_type))
        return made if made.type == type_ else self.put(memref.CastOp.get(made, type_))

    def put(self, op: Operation) -> SSAValue:
        self.own.append(op)
        self.body.add_op(op)
        return op.results[0]


def is_plain(op: Operation) -> bool:
    """Whether an op is the same wherever its operands are there."""
    return (op.has_trait(Pure) or isinstance(op, memref.DimOp | memref.CastOp)) and not op.regions
