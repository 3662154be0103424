"""What the compiler knows of one kind of op: one rule, one registry.

A rule answers five questions about an op. The analyses and the sweeps ask them; none of them matches ops
by their class.

- *effects*: which memory the op reads and writes;
- *flows*: from which values a derivative flows to which;
- *needs*: which primal values and contents the adjoint reads;
- *adjoint*: the op's adjoint, emitted into a reverse sweep;
- *tangent*: the op with its tangent, emitted into a forward sweep.

Further answers let passes do more: whether the op computes and does nothing else (`whole_array`), which NaNs
it hands on (`keeps_nan`), what it compares, to what it only adds (`added`), and whether it could store that
(`store_instead`), how long it takes (`work`).

The base class answers for an op of which nothing is known: it may touch all its memrefs, it may compare
what it reads and lose a NaN, and where a derivative flows through it, it is refused. So a kind without a
rule is never silently left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, ClassVar, Generic, TypeAlias, TypeVar

from xdsl.dialects.builtin import AnyFloat, MemRefType
from xdsl.ir import Operation, SSAValue

from ..diagnostics import refusal
from .access import Access, Activity, Flow, Need
from .sweeps import ReverseSweep, TangentSweep

Op = TypeVar("Op", bound=Operation)


class Rule(Generic[Op]):
    """The rule of an op of which nothing is known, and the base of all others."""

    evaluates_body: ClassVar[bool] = False
    """Whether the op's region is scalar code that the rule itself applies the rules of (a map's)."""
    whole_array: ClassVar[bool] = False
    """Whether the op is a loop over elements by itself. It touches the memory that it names, and does nothing
    else: it can run again, in threads, and need not run where nobody reads what it makes."""
    smooth: ClassVar[bool] = False
    """Whether another last bit in what the op reads changes what it makes, and its adjoint, by a few bits."""
    keeps_nan: Sequence[int] = ()
    """The operands of which a NaN is one in what the op makes or writes, where that depends on it at all."""
    repeatable: ClassVar[bool] = False
    """Whether the op leaves nothing behind but what it stores: it can run again, be there twice, run in
    threads. (All `whole_array` ops can.)"""
    opaque: ClassVar[bool] = False
    """Whether the op may touch memory that it does not name."""

    def effects(self, op: Op) -> list[Access]:
        """What `op` itself reads and writes, reads first; what its regions do is theirs."""
        touched = memrefs(op.operands)
        return touching(op, touched, touched, must=False) if touched else []

    def flows(self, op: Op) -> Iterator[Flow]:
        """From each value or memory that `op` reads to each that it makes or writes."""
        effects = self.effects(op)
        sources = self.sources(op, effects)
        for target in self.targets(op, effects):
            for source in sources:
                yield source, target

    def sources(self, op: Op, effects: Sequence[Access] | None = None) -> list[SSAValue]:
        """What a derivative may come from: the memory that `op` reads, and its float operands."""
        read = [a.memref for a in effects or self.effects(op) if a.kind == "read"]
        return [*read, *filter(is_float_scalar, op.operands)]

    def targets(self, op: Op, effects: Sequence[Access] | None = None) -> list[SSAValue]:
        """What a derivative may flow to: the memory that `op` writes, and its float results."""
        written = [a.memref for a in effects or self.effects(op) if a.kind == "write"]
        return [*written, *filter(is_float_scalar, op.results)]

    def has_derivative(self, op: Op, activity: Activity) -> bool:
        """Whether a cotangent or a tangent flows through `op` itself."""
        return any(map(activity.active, self.targets(op)))

    def compared(self, op: Op) -> Iterator[SSAValue]:
        """The floats and the memory of which another last bit may make another number altogether."""
        yield from () if self.smooth else self.sources(op)

    def nan_flows(self, op: Op) -> Iterator[tuple[SSAValue, SSAValue | None]]:
        """Each memref that `op` reads, and where a NaN in it goes: to None where it may become a number."""
        effects = self.effects(op)
        kept = {op.operands[k] for k in self.keeps_nan}
        for read in (a.memref for a in effects if a.kind == "read"):
            yield from ((read, t) for t in self.targets(op, effects) if read in kept)
            if read not in kept:
                yield read, None

    def added(self, op: Op) -> Sequence[SSAValue]:
        """The memrefs to whose elements `op` adds, and does nothing else."""
        return ()

    def store_instead(self, op: Op) -> bool:
        """Let `op` store what it adds to the memref that is `added`, which holds zeros; whether it can."""
        return False

    def work(self, op: Op) -> Sequence[tuple[SSAValue, int]]:
        """The axes whose extents, multiplied, are about the operations of a `whole_array` op."""
        largest = max(memrefs(op.operands), key=rank_of, default=None)
        return [] if largest is None else [(largest, axis) for axis in range(rank_of(largest))]

    def needs(self, op: Op, activity: Activity) -> Iterator[Need]:
        """What the adjoint of `op` reads of the primal, where it has one."""
        raise unknown(op)

    def adjoint(self, op: Op, sweep: ReverseSweep) -> None:
        """Emit the adjoint of `op` at the sweep's current place."""
        raise unknown(op)

    def tangent(self, op: Op, sweep: TangentSweep) -> None:
        """Emit `op` and its tangent at the sweep's current place."""
        if self.has_derivative(op, sweep.activity):
            raise unknown(op)
        sweep.clone(op)


class Unknown(Rule[Operation]):
    """Ops of which nothing is known at all."""

    opaque = True


class WithoutDerivative(Rule[Operation]):
    """Ops that touch no elements, and through which no derivative flows by itself: views, extents, branches
    of control flow that only name things, what ends a block."""

    smooth = True

    def effects(self, op: Operation) -> list[Access]:
        return []

    def flows(self, op: Operation) -> Iterator[Flow]:
        yield from ()

    def has_derivative(self, op: Operation, activity: Activity) -> bool:
        return False


class LeavesNothing(WithoutDerivative):
    """Of these, the ones that can be there twice: extents, checks, questions about layouts."""

    repeatable = True


Rules: TypeAlias = dict[type[Operation], Rule[Any]]
"""A part of the registry: each kind with its rule."""


def unknown(op: Operation) -> Exception:
    return refusal(
        op,
        f"the derivative of `{op.name}` is not known",
        "write what it computes in other operations",
    )


def is_float_scalar(value: SSAValue) -> bool:
    return is_float_kind(type(value.type))


@cache
def is_float_kind(kind: type) -> bool:
    """Whether a class is one of float types."""
    return issubclass(kind, AnyFloat)


def memrefs(values: Sequence[SSAValue]) -> list[SSAValue]:
    return unique([v for v in values if isinstance(v.type, MemRefType)])


def rank_of(value: SSAValue) -> int:
    assert isinstance(value.type, MemRefType)
    return value.type.get_num_dims()


def unique(values: Sequence[SSAValue]) -> list[SSAValue]:
    return list(dict.fromkeys(values))


def touching(
    op: Operation, read: Sequence[SSAValue], written: Sequence[SSAValue], *, must: bool = True
) -> list[Access]:
    """The accesses of an op that reads and writes these memrefs."""
    return [
        *(Access(op, m, "read", must) for m in unique(read)),
        *(Access(op, m, "write", must) for m in unique(written)),
    ]
