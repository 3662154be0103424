"""One IR function to the LLVM text of `@kernel`: parameters, dispatch of ops, branches, results.

LLVM does what a chain of lowerings would do, faster: structured IR goes straight to text.

The kernel takes `(ptr ctx, arguments..., ptr results)` and returns 0, or 1 (a raise record is in the
context), 2 (a Python exception is set) or 3 (out of memory). A memref argument is a pointer, its
extents and its strides, in elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import MemRefType, VectorType, i1
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import activation, array, foreign
from ...dialects.ad import TapeType
from ..analysis.affine import Subscripts
from ..analysis.alias import AliasAnalysis, if_blocks
from ..analysis.dependence import Dependence
from ..analysis.independence import Independence
from ..names import as_hint
from ..rules.table import ADJOINT
from . import vector_math
from .activation_calls import begin, lower_activation, lower_too_deep
from .alias_scopes import AliasScopes
from .array_to_loops import lower_map
from .batched_calls import Batch, write_batch
from .checks_to_llvm import CHECK_OPS
from .debug_info import DebugInfo, Subject, around
from .debug_variables import described
from .dense_to_llvm import DENSE_OPS
from .foreign_to_llvm import lower_call
from .handles import HANDLE_OPS, Record, tape_words
from .kernel_memory import KernelMemory
from .kernel_state import (
    OK,
    Descriptor,
    KernelState,
    lanes_of,
    number_type,
    value_type,
)
from .llvm_module import Target, host
from .llvm_text import ALIGNED, FunctionText, Metadata
from .loops_to_llvm import LoopWriter, is_in_loop
from .matmul_to_blas import lower_matmul
from .memory_to_llvm import MEMORY_OPS
from .nests_apart import RAISING, OpCounts, write_apart
from .outlined_maps import OutlinedMap, has_many_maps
from .parallel_maps import axes_of, parallel_map
from .polls import spend_map
from .scalars_to_llvm import SCALAR_OPS
from .steps_to_llvm import closing, lower_reverse_steps, lower_stack, lower_steps


def is_derivative(function: func.FuncOp) -> bool:
    """Whether it is in a module with an adjoint."""
    module = function.parent_op()
    return module is not None and any(ADJOINT in op.attributes for op in module.walk())


class CodegenOptions(Protocol):
    """What code generation reads of the compilation's options."""

    @property
    def fastmath(self) -> bool: ...
    @property
    def opt(self) -> int: ...
    @property
    def parallel(self) -> bool: ...
    @property
    def target(self) -> Target | None: ...
    @property
    def driver(self) -> str:
        """Whose kernels the host launches; "" where there are none."""
        ...


class KernelWriter(LoopWriter):
    """Writes one function."""

    def __init__(
        self,
        function: func.FuncOp,
        options: CodegenOptions,
        name: str,
        beside: KernelState | None = None,
        record: Record | None = None,
        memory: KernelMemory = KernelMemory.SYSTEM,
        subject: Subject | None = None,
    ) -> None:
        self.function = function
        self.name = name
        self.record = record
        alias = AliasAnalysis(function)
        if beside is None:
            cpu = options.target or host()
            text = FunctionText(Metadata())
            state = KernelState(text, alias, options.fastmath, vector_math.features(cpu), memory)
            state.optimized = options.opt >= 2
            state.in_vectors = state.optimized and is_derivative(function)
            state.debug = DebugInfo.of(state.metadata, subject) if subject else None
        else:
            state = beside.beside(alias)
        state.scopes = AliasScopes(function, alias, state.metadata)
        state.emit = self.emit
        if state.debug is not None:
            state.debug = state.debug.function(self.shown_name(state.debug.subject))
            state.text.tag = state.debug.start
        self.state = state
        self.text = state.text
        self.counts = OpCounts()
        self.subscripts = Subscripts()
        self.may_version = True
        self.outlines = has_many_maps(function)
        self.dependence = Dependence(function, alias)
        self.independence = Independence(function, self.dependence, fastmath=options.fastmath)
        self.parallel = options.parallel and memory is KernelMemory.SYSTEM
        """Whether what is written now may go to threads: not what one of them runs."""
        self.result_slots: tuple[int, ...] = ()
        state.escaping = escaping_allocations(function, alias)

    # The whole.

    def write(self) -> list[str]:
        """The definition; what it needs in its module the state says."""
        parameters = self.parameters()
        state = self.state
        if activation.goes_deep(self.function):
            begin(state, activation.calls(self.function))
        self.emit_block(self.function.body.block)
        shown = ", ".join(["ptr noalias %ctx", *parameters, "ptr noalias %results"])
        allocates = not state.support.isdisjoint(state.memory.ending)
        body = f"{self.name}_body" if allocates else self.name
        # Its one caller has it before LLVM's other passes run, which would look at all of it twice.
        joined = "alwaysinline " if allocates else ""
        attributes = f"{joined}nounwind {ALIGNED} {self.attachment()}"
        head = f"define internal i32 @{body}({shown}) {attributes}{{"
        parts = [head, self.text.text(), "}"]
        if allocates:
            state.support.add("mutad_end")
            forwarded = shown.replace(" noalias", "")
            lines, tag = around(state.debug)
            parts += [
                f"define internal i32 @{self.name}({shown}) nounwind {ALIGNED} {lines}{{",
                f"  %status = call i32 @{body}({forwarded}){tag}",
                *closing(self.function, state),
                "  call void @mutad_end(ptr %ctx, i32 %status)",
                "  ret i32 %status",
                "}",
            ]
        return parts

    def shown_name(self, subject: Subject) -> str:
        """What users read for the function, in debuggers."""
        return subject.name if self.record is None else subject.backward

    def attachment(self) -> str:
        """What stands in the function's head where its lines are wanted."""
        return self.state.debug.attachment if self.state.debug else ""

    def parameters(self) -> list[str]:
        """The parameter list between context and results; binds the function's arguments."""
        shown: list[str] = []
        arguments = list(self.function.body.block.args)
        if self.record is not None:
            shown.append(self.record.bind(self.state, arguments))
            arguments = arguments[len(self.record.slots) :]
        return [*shown, *self.parameters_of(arguments)]

    def parameters_of(self, arguments: Sequence[SSAValue]) -> list[str]:
        """The parameters that are these arguments."""
        shown: list[str] = []
        for k, argument in enumerate(arguments):
            hint = self.text.name(argument.name_hint or f"arg{k}")
            type_ = argument.type
            if not isinstance(type_, MemRefType):
                shown.append(f"{value_type(type_)} {hint}")
                self.state.scalars[argument] = hint
                continue
            rank = type_.get_num_dims()
            extents = tuple(f"{hint}.n{d}" for d in range(rank))
            strides = tuple(f"{hint}.s{d}" for d in range(rank))
            shown.append(f"ptr {hint}")
            shown += [f"i64 {x}" for x in (*extents, *strides)]
            given = None if array.is_contiguous(type_) else strides
            self.state.memrefs[argument] = self.state.descriptor(type_, hint, extents, given)
        if self.state.debug is not None:
            self.describe_parameters(self.state.debug)
        return shown

    def describe_parameters(self, debug: DebugInfo) -> None:
        """Variables for debuggers. (What the second kernel of a split gradient takes is no parameter.)"""
        known = debug.subject.parameters if self.record is None else ()
        arguments = zip(known, self.function.body.block.args, strict=False)
        variables: list[str] = []
        for number, (parameter, argument) in enumerate(arguments, 1):
            if parameter is not None and argument.name_hint == as_hint(parameter.name):
                array_ = self.state.memrefs.get(argument)
                value = self.state.typed(argument) if array_ is None else array_
                variable, records = described(debug, number, parameter, value)
                variables.append(variable)
                self.text.lines += records
        debug.retain(variables)

    # Dispatch.

    def emit_block(self, block: Block) -> None:
        for op in block.ops:
            self.emit(op)

    def emit(self, op: Operation) -> None:
        if self.state.debug is None:
            self.write_op(op)
        else:
            self.tagged(self.state.debug, op, lambda: self.write_op(op))

    def emit_batch(self, batch: Batch) -> None:
        if self.state.debug is None:
            write_batch(self.state, batch)
        else:
            self.tagged(self.state.debug, batch.ops[0], lambda: write_batch(self.state, batch))

    def tagged(self, debug: DebugInfo, op: Operation, write: Callable[[], None]) -> None:
        """Write what has the place of an op in the source."""
        text, before = self.text, self.text.tag
        text.tag = debug.at(op.location) or before
        write()
        text.tag = before

    def write_op(self, op: Operation) -> None:
        rule = SCALAR_OPS.get(type(op))
        if rule is not None:
            args = [self.state.scalars[o] for o in op.operands]
            self.state.scalars[op.results[0]] = rule(self.state, op, args)
            return
        lower = LOWERINGS.get(type(op))
        if lower is not None:
            lower(self.state, op)
            return
        handler = CONTROL.get(type(op))
        if handler is None:
            raise AssertionError(f"no LLVM for {op.name}")
        handler(self, op)

    def within(self, state: KernelState, write: Callable[[], None]) -> None:
        """Write into another state what one thread runs."""
        before = self.state, self.text, self.parallel
        self.state, self.text, self.parallel = state, state.text, False
        write()
        self.state, self.text, self.parallel = before

    def map(self, op: array.MapOp) -> None:
        """The loops of a map, where it is large in threads."""
        axes = axes_of(self.state, op) if self.parallel and not self.state.scalar_only else None
        if axes is None:
            self.map_here(op)
        else:
            parallel_map(self, op, axes, lambda: self.map_here(op))

    def map_here(self, op: array.MapOp) -> None:
        """The loops of a map, here or in a function of their own."""
        if is_in_loop(op):
            spend_map(self.state, tuple(op.extents))
        if not self.outlines:
            lower_map(self.state, op)
            return
        outlined = OutlinedMap(self.state, op)
        self.within(outlined.inside, lambda: lower_map(outlined.inside, op))
        outlined.call()

    # Loops: each iteration runs once, by itself.

    def iterations(self, op: array.LoopOp, count: str) -> str:
        return count

    def begin_iteration(self, op: array.LoopOp, number: str) -> None: ...

    def end_iterations(self, op: array.LoopOp) -> None: ...

    # Branches.

    def branch(self, op: scf.IfOp) -> None:
        if array.RAISES in op.attributes:
            self.raising_branch(op)
            return
        text = self.text
        blocks = list(if_blocks(op))
        then, merge = text.label("then"), text.label("merge")
        otherwise = text.label("else") if len(blocks) > 1 else merge
        weights = weights_of(op)
        text.branch_if(self.state.scalars[op.cond], then, otherwise, weights)
        ends: list[tuple[str, tuple[SSAValue, ...]]] = []
        for label, block in zip((then, otherwise), blocks, strict=False):
            text.start(label)
            self.emit_block(block)
            last = block.last_op
            ends.append((text.block, tuple(last.operands) if isinstance(last, scf.YieldOp) else ()))
            text.branch(merge)
        text.start(merge)
        for k, result in enumerate(op.results):
            came = [(label, values[k]) for label, values in ends]
            if isinstance(result.type, MemRefType):
                joined = [(label, self.state.memrefs[v]) for label, v in came]
                self.state.memrefs[result] = self.join(joined)
            else:
                type_ = value_type(result.type)
                scalars = [(label, self.state.scalars[v]) for label, v in came]
                self.state.scalars[result] = self.phi(type_, scalars, result.name_hint)

    def raising_branch(self, op: scf.IfOp) -> None:
        """A branch that ends in an exception: compiled to be small, not fast."""
        text = self.text
        then, merge = text.label("raising"), text.label("merge")
        text.branch_if(self.state.scalars[op.cond], then, merge, (1, OFTEN))
        text.start(then)
        before = self.may_version, self.state.scalar_only
        self.may_version, self.state.scalar_only = False, True
        write_apart(self, op, RAISING, lambda: self.emit_block(op.true_region.block))
        self.may_version, self.state.scalar_only = before
        text.branch(merge)
        text.start(merge)

    # Leaving.

    def finish(self, op: func.ReturnOp) -> None:
        """Fill the result slots and return."""
        state, text = self.state, self.text
        slot = 0
        starts: list[int] = []
        for value in op.arguments:
            starts.append(slot)
            if isinstance(value.type, MemRefType):
                d = state.memrefs[value]
                fields = [f"ptr {d.pointer}", *(f"i64 {x}" for x in (*d.extents, *d.strides))]
                if any(isinstance(r.owner, array.AllocOp) for r in state.alias.roots(value)):
                    self.hand_over(value, d)
            elif isinstance(value.type, TapeType):
                fields = tape_words(state, value)
            else:
                number = number_type(value.type)
                fields = [state.widened(x, number) for x in numbers_of(state, value)]
            for field in fields:
                at = text.value(f"getelementptr inbounds i64, ptr %results, i64 {slot}")
                text.do(f"store {field}, ptr {at}, align 8")
                slot += 1
        self.result_slots = tuple(starts)
        text.do(f"ret i32 {OK}")

    def hand_over(self, value: SSAValue, memref: Descriptor) -> None:
        """Memory that is returned is the caller's."""
        self.text.do(f"call void @mutad_keep(ptr %ctx, ptr {memref.pointer})")


def numbers_of(state: KernelState, value: SSAValue) -> list[str]:
    """The numbers that a value is: itself, or a vector's."""
    if not isinstance(value.type, VectorType):
        return [state.scalars[value]]
    typed = state.typed(value)
    lanes = range(lanes_of(value.type))
    return [state.text.value(f"extractelement {typed}, i64 {lane}") for lane in lanes]


def escaping_allocations(function: func.FuncOp, alias: AliasAnalysis) -> set[Operation]:
    """The allocations that the function may return."""
    last = function.body.block.last_op
    assert isinstance(last, func.ReturnOp)
    return {
        root.owner
        for value in last.arguments
        if isinstance(value.type, MemRefType)
        for root in alias.roots(value)
        if isinstance(root.owner, array.AllocOp)
    }


def nothing(writer: KernelWriter, op: Operation) -> None:
    """Terminators whose operands their parent reads."""


def weights_of(op: scf.IfOp) -> tuple[int, int] | None:
    """How often each side is taken, where that is plain: one that raises a flag happens once.

    So `break` stays a jump: LLVM would compute both sides and select, which makes every iteration wait.
    """
    if array.SHORTENED in op.attributes:
        return (OFTEN, 1)
    yields = [region.block.last_op for region in op.regions if region.blocks]
    if len(yields) < 2:
        return None
    sides = zip(*(end.operands for end in yields if end is not None), strict=True)
    for then, otherwise in sides:
        raised = [array.constant_value(v) for v in (then, otherwise)]
        if then.type == i1 and raised.count(None) == 1 and any(raised):
            return (1, OFTEN) if raised[0] else (OFTEN, 1)
    return None


OFTEN = 2**20 - 1
"""The weight of a branch whose other side is taken once."""

LOWERINGS: dict[type[Operation], Callable[[KernelState, Any], None]] = {
    **MEMORY_OPS,
    **HANDLE_OPS,
    **CHECK_OPS,
    **DENSE_OPS,
    array.MatmulOp: lower_matmul,
    foreign.CallOp: lower_call,
    activation.CallOp: lower_activation,
    activation.TooDeepOp: lower_too_deep,
    activation.StackOp: lower_stack,
    activation.StepsOp: lower_steps,
    activation.ReverseStepsOp: lower_reverse_steps,
}
"""Ops without control flow around other ops."""

CONTROL: dict[type[Operation], Callable[[KernelWriter, Any], None]] = {
    array.MapOp: KernelWriter.map,
    array.LoopOp: KernelWriter.loop,
    scf.IfOp: KernelWriter.branch,
    scf.YieldOp: nothing,
    func.ReturnOp: lambda writer, op: writer.finish(op),
}
