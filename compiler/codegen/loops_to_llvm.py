"""One IR function to the LLVM text of `@kernel`: control flow, memory, checks, results.

Straight from structured IR to text: LLVM does what a chain of lowerings would do, faster::

    %trips = array.loop %i to %n do {          body.3:
      %j = array.index %i, %m ...                %i.4 = phi i64 [ 0, %entry ], [ %v.9, %ok.7 ]
      %x = memref.load %a[%j]                    ...
      memref.store %x, %b[%j]                    %v.9 = add nuw nsw i64 %i.4, 1
    }                                            br i1 %v.10, label %body.3, label %exit.5

The kernel takes `(ptr ctx, arguments..., ptr results)` and returns 0, or 1 (a raise record is in the
context), 2 (a Python exception is set) or 3 (out of memory). A memref argument is a pointer, its
extents and its strides, in elements. A loop nest whose subscript checks can be decided on entry is
written twice, see `analysis/nest_proofs`.
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
from ..analysis.nest_proofs import NestProofs, all_of, has_whole_array_work
from ..names import as_hint
from ..rules import is_whole_array
from . import vector_math
from .activation_calls import begin, lower_activation, lower_too_deep
from .alias_scopes import AliasScopes
from .array_to_loops import lower_map
from .checks_to_llvm import CHECK_OPS
from .debug_info import DebugInfo, Subject, around
from .debug_variables import described
from .dense_to_llvm import DENSE_OPS
from .entries.conditions import EntryConditions
from .foreign_to_llvm import lower_call
from .handles import HANDLE_OPS, Record, tape_words
from .kernel_memory import KernelMemory
from .kernel_state import (
    OK,
    Descriptor,
    KernelState,
    lanes_of,
    memory_type,
    number_type,
    value_type,
)
from .leaf_loops import LeafFacts, is_bounded_by_memory, leaf_facts
from .llvm_module import Target, host
from .llvm_text import FunctionText, Metadata, integer
from .map_nest import combine, identity
from .matmul_to_blas import lower_matmul
from .memory_to_llvm import MEMORY_OPS, RUNTIME_MEMORY, place_in_memory, support_call, takes_scratch
from .outlined_maps import OutlinedMap, has_many_maps
from .parallel_loops import independent_loop, parallel_loop
from .parallel_maps import axes_of, parallel_map
from .polls import poll, poll_every, poll_if, poll_when_spent, spend_map, spend_trips
from .scalars_to_llvm import SCALAR_OPS
from .steps_to_llvm import closing, lower_reverse_steps, lower_stack, lower_steps
from .unguarded_runs import Run, emit_run, may_be_vector_code, runs_of

WHILE_POLL_MASK = (1 << 14) - 1
CHUNK = 1 << 16
"""The iterations of an innermost loop between two polls."""
LAUNCH = "device.launch"
"""An op of a dialect that code for the CPU does not load."""


class CodegenOptions(Protocol):
    """What code generation reads of the compilation's options."""

    @property
    def fastmath(self) -> bool: ...
    @property
    def parallel(self) -> bool: ...
    @property
    def target(self) -> Target | None: ...
    @property
    def driver(self) -> str:
        """Whose kernels the host launches; "" where there are none."""
        ...


class KernelWriter:
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
        head = f"define internal i32 @{body}({shown}) nounwind {self.attachment()}{{"
        parts = [head, self.text.text(), "}"]
        if allocates:
            state.support.add("mutad_end")
            forwarded = shown.replace(" noalias", "")
            lines, tag = around(state.debug)
            parts += [
                f"define internal i32 @{self.name}({shown}) nounwind {lines}{{",
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
            return
        text, before = self.text, self.text.tag
        text.tag = self.state.debug.at(op.location) or before
        self.write_op(op)
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

    # Control flow.

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
        self.emit_block(op.true_region.block)
        self.may_version, self.state.scalar_only = before
        text.branch(merge)
        text.start(merge)

    def phi(self, type_: str, came: list[tuple[str, str]], hint: str | None = None) -> str:
        """One value for what came from each block; no phi where all are the same."""
        if len({value for _, value in came}) == 1:
            return came[0][1]
        shown = ", ".join(f"[ {value}, %{label} ]" for label, value in came)
        return self.text.value(f"phi {type_} {shown}", hint)

    def join(self, came: list[tuple[str, Descriptor]]) -> Descriptor:
        first = came[0][1]
        fields = [
            self.phi("ptr" if k == 0 else "i64", [(label, d.fields[k]) for label, d in came])
            for k in range(len(first.fields))
        ]
        return rebuilt(first, fields)

    def loop(self, op: array.LoopOp) -> None:
        """A loop, in two versions where its checks can be decided on entry."""
        if array.SMALL in op.attributes:
            self.checked_loop(op)
            return
        if not self.may_version or has_whole_array_work(op):
            self.plain_loop(op)
            return
        provable = NestProofs(op, self.subscripts, self.state.alias).provable(self.state.proved)
        self.state.proved.update(
            check for check, condition in provable.items() if condition is True
        )
        open_ = {check: c for check, c in provable.items() if c is not True}
        if not open_:
            self.plain_loop(op)
            return
        text = self.text
        condition = EntryConditions(self.state).decide(all_of(list(open_.values())))
        fast, slow, merge = text.label("proved"), text.label("checked"), text.label("merge")
        text.branch_if(condition, fast, slow)

        text.start(fast)
        self.state.proved.update(open_)
        self.plain_loop(op)
        ends = [self.end_of_version(op, merge)]
        self.state.proved.difference_update(open_)

        text.start(slow)
        self.checked_loop(op)
        ends.append(self.end_of_version(op, merge))

        text.start(merge)
        self.state.scalars[op.trips] = self.phi("i64", [(label, t) for label, t, _ in ends])
        for k, result in enumerate(op.results[1:]):
            self.state.memrefs[result] = self.join([(label, ds[k]) for label, _, ds in ends])

    def checked_loop(self, op: array.LoopOp) -> None:
        """A loop whose checks do not all hold: compiled to be small, not fast."""
        before = self.may_version, self.state.scalar_only
        self.may_version, self.state.scalar_only = False, True
        self.plain_loop(op)
        self.may_version, self.state.scalar_only = before

    def end_of_version(self, op: array.LoopOp, merge: str) -> tuple[str, str, list[Descriptor]]:
        end = (
            self.text.block,
            self.state.scalars[op.trips],
            [self.state.memrefs[r] for r in op.results[1:]],
        )
        self.text.branch(merge)
        return end

    def plain_loop(self, op: array.LoopOp) -> None:
        moving = self.moving_fields(op)
        if op.condition_block is not None:
            self.condition_loop(op, op.condition_block, moving)
            return
        told = independent_loop(self, op) if self.parallel else None
        if told is None and self.may_run_long(op, moving):
            self.chunked_loop(op)
        elif told is None:
            self.counted_loop(op, moving)
        else:
            parallel_loop(self, op, told, lambda: self.counted_loop(op, moving))

    def moving_fields(self, op: array.LoopOp) -> list[tuple[int, int]]:
        """(slot, field) of the carried descriptors that may differ from iteration to iteration."""
        inits = [self.state.memrefs[c] for c in op.carried]
        permutation = self.state.alias.permutation(op)
        moving: list[tuple[int, int]] = []
        for slot, init in enumerate(inits):
            cycle: set[int] | None = set()
            at: int | None = slot
            while at is not None and at not in cycle:
                cycle.add(at)
                at = permutation[at]
            if at is None:
                cycle = None
            for k, field in enumerate(init.fields):
                if cycle is None or any(inits[c].fields[k] != field for c in cycle):
                    moving.append((slot, k))
        return moving

    def bind_carried(
        self,
        args: tuple[SSAValue, ...],
        op: array.LoopOp,
        moving: list[tuple[int, int]],
        values: list[str],
    ) -> None:
        """Give carried memrefs the initial descriptors with the moving fields replaced."""
        fields = [list(self.state.memrefs[c].fields) for c in op.carried]
        for (slot, k), value in zip(moving, values, strict=True):
            fields[slot][k] = value
        for arg, init, now in zip(args, op.carried, fields, strict=True):
            self.state.memrefs[arg] = rebuilt(self.state.memrefs[init], now)

    def counted_loop(
        self,
        op: array.LoopOp,
        moving: list[tuple[int, int]],
        part: tuple[str, str] | None = None,
    ) -> None:
        """All iterations, or a part: from the first of these on, before the second."""
        text, state = self.text, self.state
        assert op.count is not None
        count = state.scalars[op.count] if part is None else text.sub(part[1], part[0])
        inits = [state.memrefs[c] for c in op.carried]
        carried = [("i64" if k else "ptr", inits[slot].fields[k]) for slot, k in moving]
        leaf, before = not contains_work(op), state.last_bits
        facts = LeafFacts()
        if leaf and not state.scalar_only:
            facts = leaf_facts(op, self.dependence, self.state.proved, state.fastmath)
        loop = text.begin_loop(
            self.iterations(op, count),
            carried,
            op.induction.name_hint or "i",
            (lambda: self.load_registers(facts)) if facts.accumulators or facts.constants else None,
        )
        parallel = None
        if facts.parallel:
            parallel = state.metadata.empty()
            self.state.group = f", !llvm.access.group {parallel}"
        state.scalars[op.induction] = (
            loop.counter if part is None else text.add(part[0], loop.counter)
        )
        self.bind_carried(op.body_carried, op, moving, list(loop.values))
        self.begin_iteration(op, loop.counter)
        self.loop_body(op, vectors=leaf and facts.parallel and may_be_vector_code(op))
        self.state.group = ""
        if not leaf:
            self.poll_iteration(op)
        yielded = [state.memrefs[y] for y in op.yielded]
        following = [yielded[slot].fields[k] for slot, k in moving]
        final = text.end_loop(
            loop,
            following,
            state.loop_properties(
                parallel_group=parallel, innermost=leaf, since=before if leaf else None
            ),
            (lambda: self.store_accumulators(facts)) if facts.accumulators else None,
        )
        for place in facts.constants:
            del state.registers[place]
        state.scalars[op.trips] = self.at_least_zero(count) if op.trips.first_use else count
        self.bind_carried(tuple(op.results[1:]), op, moving, list(final))
        self.end_iterations(op)
        if leaf and is_in_loop(op):
            spend_trips(state, self.at_least_zero(count))

    def may_run_long(self, op: array.LoopOp, moving: list[tuple[int, int]]) -> bool:
        """Whether a loop that no other loop polls for may go on for more than a moment."""
        assert op.count is not None
        if not self.state.memory.polls or moving or contains_work(op):
            return False
        count = integer(self.state.scalars[op.count])
        return (count is None or count > CHUNK) and not is_bounded_by_memory(op)

    def chunked_loop(self, op: array.LoopOp) -> None:
        """A poll in an innermost loop would keep LLVM from vectorizing it: so there is one between chunks."""
        text, state = self.text, self.state
        assert op.count is not None
        count = self.at_least_zero(state.scalars[op.count])
        last = text.value(f"ashr i64 {text.sub(count, '1')}, {CHUNK.bit_length() - 1}")
        chunks = text.begin_loop(text.add(last, "1"), (), "chunk")
        first = text.value(f"mul nuw nsw i64 {chunks.counter}, {CHUNK}")
        poll_if(state, text.value(f"icmp sgt i64 {first}, 0"), CHUNK)
        least = state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
        most = text.value(f"add nuw nsw i64 {first}, {CHUNK}")
        end = text.value(f"call i64 @{least}(i64 {most}, i64 {count})")
        self.counted_loop(op, [], (first, end))
        text.end_loop(chunks)
        state.scalars[op.trips] = count

    def iterations(self, op: array.LoopOp, count: str) -> str:
        """How many iterations of a loop run, where so many are asked for."""
        return count

    def begin_iteration(self, op: array.LoopOp, number: str) -> None:
        """Written where an iteration begins."""

    def end_iterations(self, op: array.LoopOp) -> None:
        """Written behind a loop."""

    def load_registers(self, facts: LeafFacts) -> None:
        """What the loop accumulates at one place, or reads there all the time, goes into a register."""
        places = [(a.place, a.from_zero) for a in facts.accumulators]
        places += [(place, False) for place in facts.constants]
        for place, from_zero in places:
            memref = self.state.memrefs[place[0]]
            if from_zero:
                value = identity("add", memref.element)
            else:
                value = self.state.load(*place_in_memory(self.state, place, memref))
            slot = self.text.alloca(memory_type(memref.element), "register")
            self.state.store(value, slot, memref.element, "")
            self.state.registers[place] = slot

    def store_accumulators(self, facts: LeafFacts) -> None:
        for accumulator in facts.accumulators:
            place = accumulator.place
            memref = self.state.memrefs[place[0]]
            value = self.state.load(self.state.registers.pop(place), memref.element, "")
            target = place_in_memory(self.state, place, memref)
            if accumulator.from_zero:
                old = self.state.load(*target)
                value = combine(self.state, "add", memref.element, old, value, free=True)
            self.state.store(value, *target)

    def at_least_zero(self, count: str) -> str:
        known = integer(count)
        if known is not None:
            return str(max(known, 0))
        name = self.state.intrinsic("llvm.smax.i64", "i64", "i64, i64")
        return self.text.value(f"call i64 @{name}(i64 {count}, i64 0)", "trips")

    def condition_loop(
        self, op: array.LoopOp, condition: Block, moving: list[tuple[int, int]]
    ) -> None:
        text, state = self.text, self.state
        inits = [state.memrefs[c] for c in op.carried]
        before, head, body, exit_ = (
            text.block,
            text.label("head"),
            text.label("body"),
            text.label("exit"),
        )
        text.branch(head)
        text.start(head)
        counter = text.name(op.induction.name_hint or "trip")
        values = [text.name("carried") for _ in moving]
        phis = len(text.lines)
        text.lines.append("")
        state.scalars[op.induction] = state.scalars[condition.args[0]] = counter
        self.bind_carried(op.body_carried, op, moving, values)
        self.bind_carried(tuple(condition.args[1:]), op, moving, values)
        self.declare_scopes(op)
        if op.count is not None:
            more = text.value(f"icmp slt i64 {counter}, {state.scalars[op.count]}")
            test = text.label("test")
            text.branch_if(more, test, exit_)
            text.start(test)
        mark = self.mark(condition)
        for inner in condition.ops:
            if not isinstance(inner, array.ConditionOp):
                self.emit(inner)
        self.release(mark)
        last = condition.last_op
        assert isinstance(last, array.ConditionOp)
        text.branch_if(state.scalars[last.condition], body, exit_)
        text.start(body)
        self.loop_body(op, declare=False)
        if contains_work(op):
            self.poll_iteration(op)
        else:
            poll_every(state, counter, WHILE_POLL_MASK)
        step = text.value(f"add nuw nsw i64 {counter}, 1")
        properties = state.loop_properties(innermost=not contains_work(op))
        mark_ = f", !llvm.loop {state.metadata.distinct(*properties)}" if properties else ""
        latch = text.block
        text.do(f"br label %{head}{mark_}")
        yielded = [state.memrefs[y] for y in op.yielded]
        lines = [f"  {counter} = phi i64 [ 0, %{before} ], [ {step}, %{latch} ]"]
        for name, (slot, k) in zip(values, moving, strict=True):
            type_ = "i64" if k else "ptr"
            first, next_ = inits[slot].fields[k], yielded[slot].fields[k]
            lines.append(f"  {name} = phi {type_} [ {first}, %{before} ], [ {next_}, %{latch} ]")
        text.lines[phis] = "\n".join(lines)
        text.start(exit_)
        state.scalars[op.trips] = counter
        self.bind_carried(tuple(op.results[1:]), op, moving, values)

    def loop_body(self, op: array.LoopOp, *, declare: bool = True, vectors: bool = False) -> None:
        """The body's ops; scratch memory that they take is given back.

        `vectors`: LLVM may compute several iterations at once.
        """
        if declare:
            self.declare_scopes(op)
        mark = self.mark(op.body.block)
        whole = vectors or self.state.scalar_only or self.state.fastmath
        for inner in op.body.block.ops if whole else runs_of(op.body.block):
            if isinstance(inner, Run):
                emit_run(self.state, inner)
            elif not isinstance(inner, array.YieldOp):
                self.emit(inner)
        self.release(mark)

    def declare_scopes(self, op: array.LoopOp) -> None:
        for declared in self.state.scopes.declare_iteration(op):
            name = "llvm.experimental.noalias.scope.decl"
            self.state.intrinsic(name, "void", "metadata")
            self.text.do(f"call void @{name}(metadata {declared})")

    def mark(self, block: Block) -> str | None:
        """Where scratch memory stands now, if the block takes any."""
        if not self.takes_scratch(block):
            return None
        return support_call(self.state, "mutad_mark", "ptr %ctx")

    def release(self, mark: str | None) -> None:
        if mark is not None:
            self.state.support.add("mutad_release")
            group = self.state.attribute_group(RUNTIME_MEMORY)
            self.text.do(f"call void @mutad_release(ptr %ctx, ptr {mark}) {group}")

    def takes_scratch(self, block: Block) -> bool:
        """True when the block allocates outside of the loops in it."""
        for op in block.ops:
            if takes_scratch(self.state, op):
                return True
            if isinstance(op, scf.IfOp) and any(self.takes_scratch(b) for b in if_blocks(op)):
                return True
        return False

    # Interrupts.

    def poll_iteration(self, op: array.LoopOp) -> None:
        """Poll at the end of an iteration of a loop that contains loops or whole-array work."""
        if any(is_whole_array(o) and not isinstance(o, array.MapOp) for o in op.walk()):
            poll(self.state)  # nobody knows what a product takes
        else:
            poll_when_spent(self.state)

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


def rebuilt(like: Descriptor, fields: list[str]) -> Descriptor:
    """A descriptor of the same rank and element with other fields."""
    rank = len(like.extents)
    return Descriptor(
        fields[0], tuple(fields[1 : 1 + rank]), tuple(fields[1 + rank :]), like.element
    )


def contains_work(op: array.LoopOp) -> bool:
    """True when loops, whole-array ops or launches of kernels run inside the loop."""
    return any(
        inner is not op
        and (isinstance(inner, array.LoopOp) or is_whole_array(inner) or inner.name == LAUNCH)
        for inner in op.walk()
    )


def is_in_loop(op: Operation) -> bool:
    """Whether a loop of the function runs `op` again and again."""
    above = op.parent_op()
    while above is not None and not isinstance(above, array.LoopOp):
        above = above.parent_op()
    return above is not None


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
