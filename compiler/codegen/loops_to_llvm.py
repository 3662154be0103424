"""Loops to LLVM text, in two versions where their checks can be decided on entry.

Straight from structured IR to text::

    %trips = array.loop %i to %n do {          body.3:
      %j = array.index %i, %m ...                %i.4 = phi i64 [ 0, %entry ], [ %v.9, %ok.7 ]
      %x = memref.load %a[%j]                    ...
      memref.store %x, %b[%j]                    %v.9 = add nuw nsw i64 %i.4, 1
    }                                            br i1 %v.10, label %body.3, label %exit.5

A loop nest whose subscript checks can be decided on entry is written twice, see `analysis/nest_proofs`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

from xdsl.dialects import scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ...dialects.within import every_op
from ..analysis.affine import Subscripts
from ..analysis.alias import if_blocks
from ..analysis.dependence import Dependence
from ..analysis.independence import Independence
from ..analysis.nest_proofs import NestProofs, all_of, has_whole_array_work
from ..rules import is_whole_array
from ..rules.math import is_transcendental
from .batched_calls import Batch, batches_of
from .entries.conditions import EntryConditions
from .kernel_state import Descriptor, KernelState, memory_type
from .leaf_loops import (
    LeafFacts,
    are_side_by_side,
    is_bounded_by_memory,
    is_recurrence,
    leaf_facts,
    may_be_narrow,
    only_adds_in_order,
)
from .llvm_text import FunctionText, integer
from .map_nest import combine, identity
from .memory_to_llvm import RUNTIME_MEMORY, place_in_memory, support_call, takes_scratch
from .nests_apart import CHECKED, FAST, SMALL, OpCounts, is_in_huge_loop, write_apart
from .parallel_loops import independent_loop, parallel_loop
from .polls import poll, poll_every, poll_if, poll_when_spent, spend_trips
from .unguarded_runs import Run, emit_run, may_be_vector_code, runs_of

WHILE_POLL_MASK = (1 << 14) - 1
CHUNK = 1 << 16
"""The iterations of an innermost loop between two polls."""
LAUNCH = "device.launch"
"""An op of a dialect that code for the CPU does not load."""


class LoopWriter(ABC):
    """Writes the loops of a function; what stands in them its subclass writes."""

    state: KernelState
    text: FunctionText
    subscripts: Subscripts
    dependence: Dependence
    independence: Independence
    may_version: bool
    """Whether a nest may still be written twice."""
    parallel: bool
    """Whether what is written now may go to threads: not what one of them runs."""
    counts: OpCounts
    nests_apart = True
    """Whether nests may be functions of their own."""

    @abstractmethod
    def emit(self, op: Operation) -> None:
        """Write one op."""

    @abstractmethod
    def emit_batch(self, batch: Batch) -> None:
        """Write several ops as one call."""

    @abstractmethod
    def within(self, state: KernelState, write: Callable[[], None]) -> None:
        """Write into another state what one thread runs."""

    @abstractmethod
    def iterations(self, op: array.LoopOp, count: str) -> str:
        """How many iterations of a loop run, where so many are asked for."""

    @abstractmethod
    def begin_iteration(self, op: array.LoopOp, number: str) -> None:
        """Written where an iteration begins."""

    @abstractmethod
    def end_iterations(self, op: array.LoopOp) -> None:
        """Written behind a loop."""

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
        """A loop, in a function of its own where that around it is huge."""
        if self.parallel or not is_in_huge_loop(op, self.counts):
            self.versions(op)
        else:
            attributes = CHECKED if self.state.scalar_only else FAST
            write_apart(self, op, attributes, lambda: self.versions(op))

    def versions(self, op: array.LoopOp) -> None:
        """A loop, in two versions where its checks can be decided on entry."""
        if array.SMALL in op.attributes:
            self.checked_loop(op, SMALL)
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

    def checked_loop(self, op: array.LoopOp, attributes: str = CHECKED) -> None:
        """A loop whose checks do not all hold: compiled to be small, not fast."""
        before = self.may_version, self.state.scalar_only
        self.may_version, self.state.scalar_only = False, True
        if is_in_loop(op):
            self.plain_loop(op)
        else:
            write_apart(self, op, attributes, lambda: self.plain_loop(op))
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
        facts = LeafFacts(sequential=True)
        if leaf and not state.scalar_only:
            facts = leaf_facts(op, self.dependence, self.state.proved, state.fastmath)
        side_by_side = are_side_by_side(op, facts) if leaf else None
        if side_by_side is False:
            self.before_calls(op)
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
        around = state.side_by_side, state.recurrent
        waits = leaf and (facts.chained or is_recurrence(op))
        state.side_by_side, state.recurrent = side_by_side, waits
        self.loop_body(op, vectors=leaf and facts.parallel and may_be_vector_code(op))
        state.side_by_side, state.recurrent = around
        self.state.group = ""
        if not leaf:
            self.poll_iteration(op)
        yielded = [state.memrefs[y] for y in op.yielded]
        following = [yielded[slot].fields[k] for slot, k in moving]
        final = text.end_loop(
            loop,
            following,
            state.loop_properties(
                parallel_group=parallel,
                innermost=leaf,
                since=before if leaf else None,
                body=loop,
                chained=facts.chained,
                own_width=not leaf or may_be_narrow(op, facts, state.fastmath),
                scalar=leaf and not state.fastmath and only_adds_in_order(op),
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

    def before_calls(self, op: array.LoopOp) -> None:
        """Where a loop calls functions one by one, vectors are left before it, not in each iteration.

        LLVM clears the upper halves of registers (`vzeroupper`) before each call that vector code may come
        to, so in the loop as well, behind one that it has vectorized. That takes 1.05x of the time of a
        chain of `exp` and `log`.
        """
        if "avx" in self.state.features and any(map(is_transcendental, every_op(op))):
            clear = self.state.intrinsic("llvm.x86.avx.vzeroupper", "void", "")
            self.text.do(f"call void @{clear}()")

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
        if not contains_work(op):
            self.before_calls(op)
        text.branch(head)
        text.start(head)
        text.depth += 1
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
        text.depth -= 1
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
        for inner in batches_of(self.state, op.body.block.ops if whole else runs_of(op.body.block)):
            if isinstance(inner, Run):
                emit_run(self.state, inner)
            elif isinstance(inner, Batch):
                self.emit_batch(inner)
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
            poll(self.state)  # how long a product takes is unknown
        else:
            poll_when_spent(self.state)


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
