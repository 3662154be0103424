"""The `activation` dialect: calls of recursive functions, which cannot be inlined.

Each such function is a private function of the module. In a gradient it becomes two: one that runs and
keeps what its adjoint needs in a *record*, and one that is given the record and runs backwards::

    %r, %y = activation.call @tree(%a, %i : memref<?xf64>, index) -> f64            the primal
    %r, %y = activation.call @tree_forward(%a, %i : memref<?xf64>, index) -> f64    %r is the record
    %b, %i_bar = activation.call @tree_backward(%r, %a_shadow, %y_bar : ...) -> ()
"""

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    ArrayAttr,
    DenseArrayBase,
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    SymbolRefAttr,
    UnitAttr,
    i1,
    i64,
)
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    AttrSizedOperandSegments,
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    result_def,
    var_operand_def,
    var_result_def,
)

from .within import every_op, is_kind, ops_of_kind

FORWARD, BACKWARD = "_forward", "_backward"
"""How the names of the two functions end."""

CHECKPOINTED, OVERWRITTEN, FLAG, FOLLOWED = "checkpointed", "overwritten", "flag", "followed"
"""The attributes of a loop whose steps may be run again: the budget in bytes, the arguments whose arrays the
function writes later, the argument that says whether the loop goes on, and that other such loops follow."""

FLOWS = "flows"
"""The attribute of what runs a step: pairs of its arguments, of which a derivative flows from the first to
the second."""

LONGEST = "longest"
"""The attribute of gradients for tapes of at most so many bytes, and of those beside them for longer ones,
which are `CHECKPOINTED`."""

RECORDS, REVERSED_TWICE = "records", "reversed_twice"
"""The attributes of a function that is given several records, how many of its first arguments each of them
holds, and of those that the adjoint of a gradient function calls."""

CHANGING, LIVE, COPIED = "changing", "live", "copied"
"""Of its body's function, the arguments whose arrays some step may write, those of which a step may read what
it finds, and those that are contiguous copies, though their types do not say so."""


@irdl_op_definition
class CallOp(IRDLOperation):
    """A call of a private function: `%record, %y = activation.call @f(%a, %x : memref<?xf64>, f64) -> f64`.

    The callee may read the arrays among the arguments that `reads` lists, and write those that `writes`
    lists (all, where nothing is listed); it may raise what any code may, and RecursionError. `frames` is
    how many calls of the Python program it stands for. `record` names what the activation has kept for its
    adjoint; where there is no gradient it is 0. The backward function is given the record in place of what
    it was kept from.
    """

    name = "activation.call"
    callee = prop_def(SymbolRefAttr)
    arguments = var_operand_def()
    frames = prop_def(IntegerAttr)
    reads = opt_prop_def(ArrayAttr[IntegerAttr])
    writes = opt_prop_def(ArrayAttr[IntegerAttr])
    record = result_def(IndexType())
    called = var_result_def()
    assembly_format = (
        "$callee (`(` $arguments^ `:` type($arguments) `)`)? `frames` $frames"
        " (`reads` $reads^)? (`writes` $writes^)? (`->` type($called)^)? attr-dict"
    )

    def __init__(
        self,
        callee: str,
        arguments: Sequence[SSAValue],
        results: Sequence[Attribute],
        frames: int = 1,
    ) -> None:
        super().__init__(
            operands=[list(arguments)],
            properties={"callee": SymbolRefAttr(callee), "frames": IntegerAttr(frames, i64)},
            result_types=[IndexType(), list(results)],
        )
        self.record.name_hint = "record"

    @property
    def target(self) -> str:
        """The name of the function."""
        return self.callee.string_value()

    @property
    def keeps_record(self) -> bool:
        """Whether it is the forward function that is called, which keeps a record."""
        return self.target.endswith(FORWARD)

    @property
    def takes_record(self) -> bool:
        """Whether it is the backward function that is called, whose first argument is a record."""
        return self.target.endswith(BACKWARD)

    def keep_record(self) -> None:
        """Call the forward function instead."""
        self.properties["callee"] = SymbolRefAttr(f"{self.target}{FORWARD}")

    def read(self) -> list[SSAValue]:
        """The arrays that the callee may read."""
        return self._listed(self.reads)

    def written(self) -> list[SSAValue]:
        """The arrays that the callee may write."""
        return self._listed(self.writes)

    def _listed(self, listed: ArrayAttr[IntegerAttr] | None) -> list[SSAValue]:
        if listed is None:
            return [a for a in self.arguments if isinstance(a.type, MemRefType)]
        return [self.arguments[i.value.data] for i in listed]

    def touch(self, reads: Sequence[int], writes: Sequence[int]) -> None:
        """Say which arguments the callee reads and writes."""
        self.properties["reads"] = numbers(reads)
        self.properties["writes"] = numbers(writes)


@irdl_op_definition
class TooDeepOp(IRDLOperation):
    """Whether a call now would raise RecursionError: `%deep = activation.too_deep frames 1`.

    It says nothing of any other place or time, so it is never computed again.
    """

    name = "activation.too_deep"
    frames = prop_def(IntegerAttr)
    deep = result_def(i1)
    assembly_format = "`frames` $frames attr-dict"

    def __init__(self, frames: int) -> None:
        super().__init__(properties={"frames": IntegerAttr(frames, i64)}, result_types=[i1])
        self.deep.name_hint = "deep"


class CheckpointedOp(IRDLOperation):
    """What the two sweeps over a checkpointed loop have in common.

    `@step` is the loop's body, a private function of the iteration's number and the `arguments`; `moves`: for
    each argument the one whose array it is in the next iteration; `live`: of which arguments a step may read
    what is in them when it begins. With `upwards` the reverse sweep begins with the first step, not the last:
    each is run again, keeps its values, and is reversed. So the forward sweep keeps one restart state.
    """

    callee = prop_def(SymbolRefAttr)
    moves = prop_def(ArrayAttr[IntegerAttr])
    reads = prop_def(ArrayAttr[IntegerAttr])
    writes = prop_def(ArrayAttr[IntegerAttr])
    live = prop_def(ArrayAttr[IntegerAttr])
    upwards = opt_prop_def(UnitAttr)

    @property
    def target(self) -> str:
        """The name of the function."""
        return self.callee.string_value()

    @property
    def permutation(self) -> list[int]:
        return [k.value.data for k in self.moves]

    @property
    def read(self) -> list[int]:
        """The arguments that a step may read."""
        return [k.value.data for k in self.reads]

    @property
    def written(self) -> list[int]:
        """The arguments that a step may write."""
        return [k.value.data for k in self.writes]

    @property
    def changing(self) -> list[int]:
        """The arguments that some step may write: those that turns bring to its places included."""
        return in_turns(self.written, self.permutation)

    @property
    def states(self) -> list[int]:
        """The changing arguments of which some step may read what it finds: what a restart state holds."""
        live = in_turns([k.value.data for k in self.live], self.permutation)
        return [k for k in self.changing if k in live]

    def move(self, callee: str, places: Sequence[int]) -> None:
        """Let the loop be that with tangents, behind the other arguments: of those in these places."""
        dots = {k: len(self.permutation) + i for i, k in enumerate(places)}

        def both(listed: Sequence[int]) -> list[int]:
            return [*listed, *(dots[k] for k in listed if k in dots)]

        moves = [*self.permutation, *(dots[self.permutation[k]] for k in places)]
        live = [k.value.data for k in self.live]
        listed = both(self.read), both(self.written), both(live)
        self.properties.update(properties_of(callee, moves, *listed))

    def turn_upwards(self) -> None:
        """Let the reverse sweep begin with the first step."""
        self.properties["upwards"] = UnitAttr()


@irdl_op_definition
class StackOp(IRDLOperation):
    """Take the memory in which the steps of this function, and of its steps, are kept.

    `activation.stack within %budget beside %others or %whole`

    It holds what the `others`, the tapes of the function itself, leave of the budget. `whole` is what the
    gradient saves that runs no step again, for the words of errors. `spilling` names a folder: restart states
    that there is no room for go to a file there, for as long as the call takes.
    """

    name = "activation.stack"
    budget = operand_def(IndexType)
    others = operand_def(IndexType)
    whole = operand_def(IndexType)
    folder = opt_prop_def(StringAttr)
    assembly_format = (
        "`within` $budget `beside` $others `or` $whole (`spilling` $folder^)? attr-dict"
    )

    def __init__(
        self, budget: SSAValue, others: SSAValue, whole: SSAValue, folder: str = ""
    ) -> None:
        properties = {"folder": StringAttr(folder)} if folder else {}
        super().__init__(operands=[budget, others, whole], properties=properties)


@irdl_op_definition
class StepsOp(CheckpointedOp):
    """Run the steps of a loop, and keep on the way what the reverse sweep begins with.

    `%kept, %trips = activation.steps @f_step %count state %a saved %b to %c around %d %e %f %g
    (%u, %k : memref<?xf64>, f64) within 1000 moves [0, 1] reads [0] writes [0] live [0]`

    What is kept are items of two kinds: a restart state takes `state` bytes, the values that @f_step_forward
    saves of one step from `saved` bytes to `full`: where the step has such loops of its own, they take what
    they are given. `around`: what they need; of the largest the count and the sizes. Raises MemoryError where
    there is too little. A loop that goes on while an argument says so, its `flag`, has no other count than a
    bound, -1 for none; a loop that is `followed` by others leaves them what they need.
    """

    name = "activation.steps"
    count = operand_def(IndexType)
    state = operand_def(IndexType)
    saved = operand_def(IndexType)
    full = operand_def(IndexType)
    inner_least = operand_def(IndexType)
    inner_count = operand_def(IndexType)
    inner_state = operand_def(IndexType)
    inner_saved = operand_def(IndexType)
    arguments = var_operand_def()
    memory = prop_def(IntegerAttr)
    flag = opt_prop_def(IntegerAttr)
    followed = opt_prop_def(UnitAttr)
    kept = result_def(IndexType())
    trips = result_def(IndexType())
    assembly_format = (
        "$callee $count `state` $state `saved` $saved `to` $full"
        " `around` $inner_least $inner_count $inner_state $inner_saved"
        " (`(` $arguments^ `:` type($arguments) `)`)? `within` $memory (`while` $flag^)?"
        " (`followed` $followed^)? (`upwards` $upwards^)?"
        " `moves` $moves `reads` $reads `writes` $writes `live` $live attr-dict"
    )

    def __init__(
        self,
        callee: str,
        numbers: Sequence[SSAValue],
        arguments: Sequence[SSAValue],
        moves: Sequence[int],
        reads: Sequence[int],
        writes: Sequence[int],
        live: Sequence[int],
        memory: int,
        flag: int | None = None,
        *,
        followed: bool = False,
        upwards: bool = False,
    ) -> None:
        """`numbers`: the count, the sizes of a state and of a step, and what is said of its loops."""
        properties = properties_of(callee, moves, reads, writes, live)
        properties["memory"] = IntegerAttr(memory, i64)
        if flag is not None:
            properties["flag"] = IntegerAttr(flag, i64)
        if followed:
            properties["followed"] = UnitAttr()
        if upwards:
            properties["upwards"] = UnitAttr()
        super().__init__(
            operands=[*numbers, list(arguments)],
            properties=properties,
            result_types=[IndexType(), IndexType()],
        )
        self.kept.name_hint = "kept"
        self.trips.name_hint = "trips"

    @property
    def goes_on(self) -> SSAValue | None:
        """The cell that says whether there is another step."""
        return None if self.flag is None else self.arguments[self.flag.value.data]


@irdl_op_definition
class ReverseStepsOp(CheckpointedOp):
    """Reverse the steps of a loop, the last first or `upwards`, from what its `activation.steps` kept.

    `activation.reverse_steps @f_step %kept (%u, %k : memref<?xf64>, f64) shadows (%u_shadow : memref<?xf64>)
    of [0] moves [0, 1] reads [0] writes [0] live [0]`

    The shadows are those that @f_step_backward takes, in order, each of the argument that `of` lists. The
    arguments are as the loop's end left them, and stay so: steps are run again on copies. Behind the shadows
    it takes what is `shared` by all steps, if anything is: first a cell, which is given their count.
    """

    name = "activation.reverse_steps"
    kept = operand_def(IndexType)
    arguments = var_operand_def()
    shadows = var_operand_def(MemRefType)
    shared = var_operand_def(MemRefType)
    shadowed = prop_def(ArrayAttr[IntegerAttr])
    irdl_options = (AttrSizedOperandSegments(as_property=True),)
    assembly_format = (
        "$callee $kept (`(` $arguments^ `:` type($arguments) `)`)?"
        " `shadows` (`(` $shadows^ `:` type($shadows) `)`)? `of` $shadowed"
        " (`shared` `(` $shared^ `:` type($shared) `)`)? (`upwards` $upwards^)?"
        " `moves` $moves `reads` $reads `writes` $writes `live` $live attr-dict"
    )

    def __init__(
        self,
        loop: CheckpointedOp,
        kept: SSAValue,
        arguments: Sequence[SSAValue],
        shadows: Sequence[SSAValue],
        of: Sequence[int],
        shared: Sequence[SSAValue] = (),
    ) -> None:
        super().__init__(
            operands=[[kept], list(arguments), list(shadows), list(shared)],
            properties={
                **properties_of(
                    loop.target,
                    loop.permutation,
                    loop.read,
                    loop.written,
                    [k.value.data for k in loop.live],
                ),
                "shadowed": numbers(of),
            },
        )
        if loop.upwards is not None:
            self.turn_upwards()

    @property
    def of(self) -> list[int]:
        """For each shadow the argument that it is of."""
        return [k.value.data for k in self.shadowed]


def properties_of(
    callee: str,
    moves: Sequence[int],
    reads: Sequence[int],
    writes: Sequence[int],
    live: Sequence[int],
) -> dict[str, Attribute]:
    return {
        "callee": SymbolRefAttr(callee),
        "moves": numbers(moves),
        "reads": numbers(reads),
        "writes": numbers(writes),
        "live": numbers(live),
    }


def flows(op: Operation) -> list[tuple[int, int]] | None:
    """From which argument of a step to which a derivative flows; None where nothing is known."""
    pairs = op.attributes.get(FLOWS)
    if not isinstance(pairs, DenseArrayBase):
        return None
    numbers = [int(k) for k in pairs.get_values()]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def in_turns(listed: Sequence[int], moves: Sequence[int]) -> list[int]:
    """The arguments that are among these in some iteration."""
    found = set(listed)
    while more := {moves[k] for k in found} - found:
        found |= more
    return sorted(found)


def numbers(of: Sequence[int]) -> ArrayAttr[IntegerAttr]:
    return ArrayAttr([IntegerAttr(k, i64) for k in of])


def calls(function: Operation) -> list[CallOp]:
    """The calls in a function."""
    return ops_of_kind(function, CallOp)


def checkpointed(function: Operation) -> list[StepsOp | ReverseStepsOp]:
    """The checkpointed loops of a function, in both sweeps."""
    return [op for op in function.walk() if isinstance(op, StepsOp | ReverseStepsOp)]


def called_by(function: Operation) -> list[str]:
    """The names of the functions that a function calls."""
    names: list[str] = []
    for op in every_op(function):
        match op:
            case CallOp():
                names.append(op.target)
            case StepsOp():
                names += [op.target, f"{op.target}{FORWARD}"]
            case ReverseStepsOp():
                names += [op.target, f"{op.target}{FORWARD}", f"{op.target}{BACKWARD}"]
            case _:
                pass
    return names


def goes_deep(function: Operation) -> bool:
    """Whether private functions are called, which are told how deep calls may be nested."""
    return any(is_kind(type(op), CallOp, CheckpointedOp) for op in every_op(function))


Activation = Dialect("activation", [CallOp, TooDeepOp, StackOp, StepsOp, ReverseStepsOp], [])
