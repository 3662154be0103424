"""Which numbers and memory a NaN reaches that a guard of a strong zero would have prevented.

The NaN is followed through a whole module. Private functions (recursive ones, the steps of a checkpointed
loop) take it in arguments and pass it on in shadows and results. What it reaches of what the caller sees
is an *outcome*. A check finds the NaN there, unless an op on the way may turn it into a number::

    %p = ad.mul %y_bar, %x                          %p may be one
    memref.store %p, %x_shadow[%i]                  %x_shadow may hold one: an outcome
    %c = arith.cmpf ogt, %p, %k                     a branch on %c does not see it: refused
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import AnyFloat, MemRefType, VectorType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from ...dialects import activation, ad, array
from ...dialects.within import every_op
from ..analysis.alias import AliasAnalysis
from ..analysis.effects import is_private
from ..analysis.views import is_memref
from ..rules import rule_of
from ..rules.calls import argument_of, count_in_record

Checkpointed = activation.StepsOp | activation.ReverseStepsOp


class NanFlow:
    """Where NaNs may be in the functions of a module, of which private ones are called by the others."""

    def __init__(self, functions: Sequence[func.FuncOp]) -> None:
        self.private = {f.sym_name.data: f for f in functions if is_private(f)}
        self.alias = {f: AliasAnalysis(f) for f in functions}
        self.home = {op: f for f in functions for op in every_op(f)}
        self.numbers: set[SSAValue] = set()
        self.memory: set[SSAValue] = set()
        """Roots."""
        self.outcomes: dict[func.FuncOp, dict[SSAValue, None]] = {
            f: {} for f in functions if not is_private(f)
        }
        """By function that the caller calls, the numbers and arrays that a NaN reaches."""
        self.waiting: list[SSAValue] = []
        self.calls: dict[str, list[Operation]] = {}
        """By private function, the ops that call it."""
        self.readers: dict[SSAValue, list[tuple[Operation, SSAValue | None]]] = {}
        """By root, what reads it: the op, and what it makes of that; None where nobody knows."""
        for op, function in self.home.items():
            for name in activation.called_by(op) if is_call(op) else ():
                self.calls.setdefault(name, []).append(op)
            for source, target in self.sources_of(op):
                for root in self.alias[function].roots(source):
                    self.readers.setdefault(root, []).append((op, target))

    def follow(self, guards: Iterable[Operation]) -> bool:
        """Follow what these ops make; whether it comes to nothing that makes a number of a NaN."""
        for guard in guards:
            self.reach(guard.results[0])
        while self.waiting:
            value = self.waiting.pop()
            if not all(self.use(use.operation, use.index) for use in value.uses):
                return False
        return True

    # Numbers.

    def reach(self, value: SSAValue) -> bool:
        if value not in self.numbers:
            self.numbers.add(value)
            self.waiting.append(value)
        return True

    def use(self, op: Operation, index: int) -> bool:
        """Follow one use of a number; False where it cannot be followed."""
        match op:
            case memref.StoreOp():
                return index == 0 and self.reach_memory(op.memref)
            case array.YieldOp() if isinstance(over := op.parent_op(), array.MapOp):
                return over.out_kinds[index] in ("store", "add") and self.reach_memory(
                    over.outs[index]
                )
            case scf.YieldOp():
                branch = op.parent_op()
                return isinstance(branch, scf.IfOp) and self.reach(branch.results[index])
            case func.ReturnOp():
                return self.leave(op, index)
            case activation.CallOp():
                callee = self.private[op.target]
                return all(
                    self.reach(argument)
                    for k, argument in enumerate(callee.body.block.args)
                    if argument_of(callee, k) == index
                )
            case _:
                known = bool(op.results) and index in rule_of(type(op)).keeps_nan
                return known and is_float(op.results[0]) and self.reach(op.results[0])

    def leave(self, op: func.ReturnOp, index: int) -> bool:
        """A number is returned: to the caller, or to each call in the module."""
        function = self.home[op]
        if function in self.outcomes:
            self.outcomes[function][op.arguments[index]] = None
            return True
        if index >= len(op.arguments) - count_in_record(function, "keeps"):
            return self.keep(function, op, index)
        calls = self.calls.get(function.sym_name.data, ())
        return all(isinstance(c, activation.CallOp) and self.reach(c.called[index]) for c in calls)

    def keep(self, function: func.FuncOp, op: Operation, index: int) -> bool:
        """Follow what a step keeps to what its backward function is given first; it returns nothing else."""
        name, own = function.sym_name.data, len(op.operands) - count_in_record(function, "keeps")
        backward = self.private.get(f"{name.removesuffix(activation.FORWARD)}{activation.BACKWARD}")
        if index < own or backward is None or not self.is_step(name):
            return False
        held = backward.body.block.args[index - own]
        return self.reach_root(held) if is_memref(held) else self.reach(held)

    def is_step(self, name: str) -> bool:
        """Whether a function runs as a step of checkpointed loops alone."""
        return all(isinstance(call, Checkpointed) for call in self.calls.get(name, ()))

    # Memory.

    def reach_memory(self, memory: SSAValue) -> bool:
        """Follow what is stored."""
        alias = self.alias[self.home_of(memory)]
        roots = {one for root in alias.roots(memory) for one in alias.interfering(root)}
        return all(self.reach_root(root) for root in roots)

    def reach_root(self, root: SSAValue) -> bool:
        """Follow what memory holds; what is pushed on a tape comes back where that is popped."""
        if root in self.memory:
            return True
        self.memory.add(root)
        if isinstance(root, BlockArgument):
            held = self.hand_back(root)
        elif isinstance(root.owner, ad.SegmentOp):
            held = self.reach_popped(root.owner)
        else:
            held = isinstance(root.owner, array.AllocOp | memref.AllocaOp)
        return (
            held
            and self.hand_out(root)
            and all(self.read(target) for _, target in self.readers.get(root, ()))
        )

    def reach_popped(self, segment: ad.SegmentOp) -> bool:
        """Follow what a tape of the function's own holds to all that is popped of it."""
        users = [use.operation for use in segment.tape.uses]
        if not isinstance(segment.tape.owner, ad.TapeOp):
            return False
        return all(
            isinstance(op, ad.PushOp) or (isinstance(op, ad.PopOp) and self.reach_root(op.memref))
            for op in users
        )

    def hand_back(self, root: BlockArgument) -> bool:
        """An argument's memory is the caller's."""
        function = root.owner.parent_op()
        if not isinstance(function, func.FuncOp):
            return False
        if function in self.outcomes:
            self.outcomes[function][root] = None
            return True
        calls = self.calls.get(function.sym_name.data, ())
        return all(self.reach_operands(function, root, call) for call in calls)

    def reach_operands(self, callee: func.FuncOp, root: BlockArgument, call: Operation) -> bool:
        """What a call hands in for an argument; shadows take turns from step to step."""
        if isinstance(call, Checkpointed):
            handed = handed_in(callee, call)
            return root not in handed or all(map(self.reach_memory, handed[root]))
        if not isinstance(call, activation.CallOp):
            return False
        place = argument_of(callee, root.index)
        return place is not None and self.reach_memory(call.arguments[place])

    def hand_out(self, root: SSAValue) -> bool:
        """Arrays that are returned."""
        function = self.home_of(root)
        last = function.body.block.last_op
        assert last is not None
        roots = self.alias[function].roots
        for index, value in enumerate(last.operands):
            if not isinstance(value.type, MemRefType) or root not in roots(value):
                continue
            if function in self.outcomes and not is_growable(root):
                self.outcomes[function][value] = None
            elif function in self.outcomes or not self.keep(function, last, index):
                return False
        return True

    def read(self, target: SSAValue | None) -> bool:
        if target is None:
            return False
        if not isinstance(target.type, MemRefType):
            return self.reach(target)
        own = isinstance(target, BlockArgument) and isinstance(
            target.owner.parent_op(), func.FuncOp
        )
        return self.reach_root(target) if own else self.reach_memory(target)

    def sources_of(self, op: Operation) -> Iterator[tuple[SSAValue, SSAValue | None]]:
        """What an op reads, each with the number that it is, or with the memory that it comes to."""
        match op:
            case activation.CallOp():
                callee = self.private[op.target]
                for k, argument in enumerate(callee.body.block.args):
                    place = argument_of(callee, k)
                    if place is not None and isinstance(argument.type, MemRefType):
                        yield op.arguments[place], argument
            case activation.StepsOp() | activation.ReverseStepsOp():
                for name in activation.called_by(op):
                    for argument, ones in handed_in(self.private[name], op).items():
                        yield from ((one, argument) for one in ones)
            case _:
                yield from rule_of(type(op)).nan_flows(op)

    def home_of(self, value: SSAValue) -> func.FuncOp:
        """The function that a value is of."""
        owner = value.owner.parent_op() if isinstance(value.owner, Block) else value.owner
        assert owner is not None
        return self.home[owner]


def is_call(op: Operation) -> bool:
    return isinstance(op, activation.CallOp | activation.CheckpointedOp)


def handed_in(callee: func.FuncOp, op: Checkpointed) -> dict[SSAValue, list[SSAValue]]:
    """The memory that each argument of a step's function may be: arrays take turns from step to step.

    The backward function is given what steps keep, then shadows.
    """
    args = callee.body.block.args
    if callee.sym_name.data.endswith(activation.BACKWARD):
        shadows = list(op.shadows) if isinstance(op, activation.ReverseStepsOp) else []
        return dict.fromkeys(args[len(args) - len(shadows) :], shadows)
    found: dict[SSAValue, list[SSAValue]] = {}
    for k, argument in enumerate(args[len(args) - len(op.arguments) :]):
        if is_memref(argument):
            found[argument] = [op.arguments[j] for j in activation.in_turns([k], op.permutation)]
    return found


def is_growable(root: SSAValue) -> bool:
    """Whether memory may be larger than what it holds."""
    return isinstance(root.owner, Operation) and array.GROWABLE in root.owner.attributes


def is_float(value: SSAValue) -> bool:
    return isinstance(value.type, AnyFloat | VectorType)
