"""Runs of scalar ops between two effects, written without the guards of strong zeros, and checked.

In scalar code the guard of a product (`ad.mul`) costs more than the product. But a plain product is not
finite where a factor is not, and neither is what is added up from it, or multiplied by more. So the run is
computed with plain products, and what leaves it is looked at once. Where that is finite, all guards would
have changed nothing; elsewhere a cold copy computes the run with its guards::

    %a = ad.mul %x_dot, %p             a = x_dot * p
    %b = ad.div %y_dot, %q             b = y_dot / q
    %c = arith.addf %a, %b             c = a + b               if not |c| < inf: a', b', c' with guards
    memref.store %c, ...               store (c or c')

Loops that LLVM may vectorize are left alone: there a guard is one instruction for a whole vector, and a
branch would make them scalar.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import Float32Type, Float64Type
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import ad, array
from ..analysis.made_of import all_made_of
from ..rules.arith import NOT_FINITE
from ..rules.table import ADJOINT
from .kernel_state import KernelState, value_type
from .scalars_to_llvm import SCALAR_OPS

CHOOSING = {arith.SelectOp: (1, 2)}
"""Where such an operand is dropped, the guarded one would be, too."""


@dataclass(frozen=True)
class Run:
    """Consecutive ops of a block, and what of them depends on a guard."""

    ops: Sequence[Operation]
    guarded: tuple[Operation, ...]
    """In order: the ops that the cold copy has."""

    @property
    def leaving(self) -> list[SSAValue]:
        """Values of guarded ops that are read outside."""
        own = set(self.ops)
        results = (r for op in self.guarded for r in op.results)
        return [r for r in results if any(use.operation not in own for use in r.uses)]

    @property
    def checked(self) -> list[SSAValue]:
        """The fewest values that tell whether all are finite that matter."""
        results = {r for op in self.guarded for r in op.results}
        wanted = dict.fromkeys(v for v in self.leaving if is_float(v))
        for op in self.guarded:
            kept = {**NOT_FINITE, **CHOOSING}.get(type(op), ())
            for k, operand in enumerate(op.operands):
                if k not in kept and operand in results and is_float(operand):
                    wanted[operand] = None
        told: set[SSAValue] = set()
        for op in reversed(self.guarded):
            if any(r in wanted or r in told for r in op.results):
                told.update(op.operands[k] for k in NOT_FINITE.get(type(op), ()))
        return [v for v in wanted if v not in told]

    @property
    def worthwhile(self) -> bool:
        """Whether the check costs less than the guards."""
        guards = sum(map(has_guard, self.guarded))
        return guards >= LEAST and guards >= len(self.checked) + 2


LEAST = 4
"""A cold copy for fewer guards would be more code than it is worth."""


def has_guard(op: Operation) -> bool:
    """Whether it is a guarded product or quotient of numbers: those of vectors, which are not looked at, keep
    their guards."""
    return isinstance(op, ad.MulOp | ad.DivOp) and is_float(op.result)


def is_float(value: SSAValue) -> bool:
    return isinstance(value.type, Float32Type | Float64Type)


def runs_of(block: Block) -> Iterator[Run | Operation]:
    """The ops of a block in order: runs, and each op that is in none."""
    pending: list[Operation] = []
    guarded: dict[Operation, None] = {}

    def flush() -> Iterator[Run | Operation]:
        run = Run(tuple(pending), tuple(guarded))
        if run.worthwhile:
            yield run
        else:
            yield from run.ops
        pending.clear()
        guarded.clear()

    for op in block.ops:
        depends = any(o.owner in guarded for o in op.operands)
        scalar = type(op) in SCALAR_OPS
        depends = depends or has_guard(op)
        if not scalar and (depends or not isinstance(op, memref.LoadOp | array.IndexOp)):
            yield from flush()
            yield op
            continue
        pending.append(op)
        if scalar and depends:
            guarded[op] = None
    yield from flush()


def may_be_vector_code(loop: array.LoopOp) -> bool:
    """Whether LLVM may find it worthwhile to compute several iterations of a parallel loop at once.

    Not where it would have to gather elements, and to add up numbers one by one in their order as well.
    """
    ops = [op for op in loop.body.block.ops if isinstance(op, memref.LoadOp | memref.StoreOp)]
    gathers = any(depends_on(index, loop) for op in ops for index in tuple(op.indices)[:-1])
    return not (gathers and any(is_ordered(op, loop) for op in ops))


def is_ordered(op: Operation, loop: array.LoopOp) -> bool:
    """Whether each iteration stores a number that the primal computes at the same place."""
    if not isinstance(op, memref.StoreOp) or isinstance(
        op.value.owner, Block | arith.ConstantOp | memref.LoadOp
    ):
        return False
    if ADJOINT in op.value.owner.attributes:
        return False
    return not any(depends_on(index, loop) for index in op.indices)


def depends_on(value: SSAValue, loop: array.LoopOp) -> bool:
    """Whether a subscript is made of the loop's counter."""

    def sources(v: SSAValue) -> Sequence[SSAValue] | None:
        if v is loop.induction:
            return None
        owner = v.owner
        if isinstance(owner, Block) or owner.parent is not loop.body.block:
            return ()
        return owner.operands

    return not all_made_of([value], sources)


def emit_run(state: KernelState, run: Run) -> None:
    """The run without guards, the check, and the guarded copy among the cold blocks."""
    text = state.text
    outer = state.plain
    for op in run.ops:
        state.plain = outer or has_guard(op)
        state.emit(op)
    state.plain = outer
    bad = not_finite(state, run.checked)
    fast: dict[SSAValue, str] = {v: state.scalars[v] for op in run.guarded for v in op.results}
    before, cold, on = text.block, text.label("guarded"), text.label("on")
    weights = text.metadata.node('!"branch_weights", i32 1, i32 1048575')
    text.do(f"br i1 {bad}, label %{cold}, label %{on}, !prof {weights}")
    with text.in_cold(cold):
        for op in run.guarded:
            state.emit(op)
        end = text.block
        text.branch(on)
    text.start(on)
    slow = {v: state.scalars[v] for v in run.leaving}
    state.scalars.update(fast)
    for value, other in slow.items():
        came = f"[ {fast[value]}, %{before} ], [ {other}, %{end} ]"
        state.scalars[value] = text.value(f"phi {value_type(value.type)} {came}")


def not_finite(state: KernelState, values: Sequence[SSAValue]) -> str:
    """Whether the sum of all is infinite or no number."""
    text, total = state.text, ""
    for value in values:
        number = state.scalars[value]
        if value_type(value.type) == "float":
            number = text.value(f"fpext float {number} to double")
        total = text.value(f"fadd double {total}, {number}") if total else number
    fabs = state.intrinsic("llvm.fabs.f64", "double", "double")
    size = text.value(f"call double @{fabs}(double {total})")
    return text.value(f"fcmp uge double {size}, 0x7FF0000000000000")
