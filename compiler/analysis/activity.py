"""Which values carry a derivative: varied (depends on an active input) and useful (an output depends on it).

Both spread to a fixpoint over SSA values and memory roots; memory is one value per root, whatever
the order of its reads and writes. In ::

    %y = arith.mulf %x, %k : f64          // varied, because %x is; useful, because it is stored to an output
    memref.store %y, %u[%i]
    %z = arith.addf %y, %k : f64          // varied, but nothing that matters reads it: not active

Only floats are ever active. Roots that one memref may denote in turn (a swap, an `scf.if`) or that may
share memory are active together, for their shadows must exist together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from functools import cached_property

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from ...dialects import activation, ad
from ...dialects.within import every_op
from ..rules import rule_of
from ..rules.rule import is_float_kind, is_float_scalar
from ..rules.table import EDGE
from .alias import AliasAnalysis


def is_float(value: SSAValue) -> bool:
    """A float, a memref of floats, or a tape, which may have some."""
    type_ = value.type
    if isinstance(type_, ad.TapeType):
        return True
    if isinstance(type_, MemRefType):
        return is_float_kind(type(type_.element_type))
    return is_float_kind(type(type_))


class Activity:
    """Varied, useful and active values and roots of one function.

    Active arguments that are memrefs are inputs (their contents on entry) and outputs (their final
    contents); `final_arguments` are more outputs. `active_results` are positions of results, by default
    all floats among them.
    """

    def __init__(
        self,
        function: func.FuncOp,
        alias: AliasAnalysis,
        active_arguments: Collection[SSAValue],
        active_results: Iterable[int] | None = None,
        final_arguments: Iterable[SSAValue] = (),
    ) -> None:
        self.function, self.alias = function, alias
        self._groups: dict[SSAValue, SSAValue] = {}
        self._forward: dict[SSAValue, list[SSAValue]] = {}
        self._backward: dict[SSAValue, list[SSAValue]] = {}
        records: list[SSAValue] = [call.record for call in activation.calls(function)]
        self._records = dict.fromkeys(records)
        """What activations keep: other functions may put things there, and use them."""
        returned = self._build(function)
        inputs = [a for a in active_arguments if is_float(a)]
        outputs = [a for a in (*inputs, *final_arguments) if is_float(a) and not is_float_scalar(a)]
        chosen = range(len(returned)) if active_results is None else active_results
        outputs += [returned[i] for i in chosen if is_float(returned[i])]
        self._varied = self._spread([*inputs, *self._records], self._forward)
        self._useful = self._spread([*outputs, *self._records], self._backward)

    def varied(self, value: SSAValue) -> bool:
        """The float (or the memory of the memref) depends on an active input."""
        return any(n in self._varied for n in self._nodes(value))

    def useful(self, value: SSAValue) -> bool:
        """An active output depends on the float (or on the memory of the memref)."""
        return any(n in self._useful for n in self._nodes(value))

    def active(self, value: SSAValue) -> bool:
        """Varied and useful."""
        return self.varied(value) and self.useful(value)

    def decides(self, value: SSAValue) -> bool:
        """The function compares the float, or what is made of it."""
        return any(n in self._deciding for n in self._nodes(value))

    @cached_property
    def _deciding(self) -> set[SSAValue]:
        ops = (op for op in every_op(self.function) if EDGE not in op.attributes)
        compared = (value for op in ops for value in rule_of(type(op)).compared(op))
        return self._spread(compared, self._backward)

    def moves(self, value: SSAValue) -> bool:
        """Active, with a tangent of its own: the record of an activation has none, what is in it has."""
        return is_float(value) and self.active(value)

    def depending_on(self, value: SSAValue, others: Sequence[SSAValue]) -> list[int]:
        """Which of the others depend on the float, or on what is in the memref on entry."""
        reached = self._spread([value], self._forward)
        return [k for k, other in enumerate(others) if not reached.isdisjoint(self._nodes(other))]

    def may_alias(self, a: SSAValue, b: SSAValue) -> bool:
        """Whether two memrefs may share an element."""
        return self.alias.may_alias(a, b)

    def active_memref(self, memref: SSAValue) -> bool:
        """The memref needs a shadow."""
        return self.active(memref)

    def active_root(self, root: SSAValue) -> bool:
        """The root needs a shadow."""
        return self.active(root)

    # Nodes: float scalars, and one root of each group of roots.

    def _nodes(self, value: SSAValue) -> list[SSAValue]:
        if value in self._records:
            return list(self._records)[:1]
        if not is_float(value):
            return []
        if not isinstance(value.type, MemRefType):
            return [value]
        return list({self._group(root) for root in self.alias.roots(value)})

    def _group(self, root: SSAValue) -> SSAValue:
        """The representative of all roots that are active together with `root`."""
        path: list[SSAValue] = []
        while (next_root := self._groups.get(root, root)) is not root:
            path.append(root)
            root = next_root
        for passed in path:
            self._groups[passed] = root
        return root

    def _join(self, roots: Iterable[SSAValue]) -> None:
        first: SSAValue | None = None
        for root in roots:
            if first is None:
                first = self._group(root)
            elif (other := self._group(root)) is not first:
                self._groups[other] = first

    def _build(self, function: func.FuncOp) -> list[SSAValue]:
        """The edges of the flow of values; returns what the function returns."""
        returned: list[SSAValue] = []
        ops = every_op(function)
        for op in ops:
            for value in (*op.results, *(a for r in op.regions for b in r.blocks for a in b.args)):
                if isinstance(value.type, MemRefType):
                    roots = self.alias.roots(value)
                    self._join(roots)
                    for root in roots:
                        self._join(self.alias.interfering(root))
        for op in ops:
            if isinstance(op, func.ReturnOp):
                returned = list(op.operands)
            for source, target in rule_of(type(op)).flows(op):
                self._flow(source, target)
        return returned

    def _flow(self, source: SSAValue, target: SSAValue) -> None:
        for s in self._nodes(source):
            for t in self._nodes(target):
                self._forward.setdefault(s, []).append(t)
                self._backward.setdefault(t, []).append(s)

    def _spread(
        self, start: Iterable[SSAValue], edges: dict[SSAValue, list[SSAValue]]
    ) -> set[SSAValue]:
        pending = [n for value in start for n in self._nodes(value)]
        reached = set(pending)
        while pending:
            for following in edges.get(pending.pop(), ()):
                if following not in reached:
                    reached.add(following)
                    pending.append(following)
        return reached


def active_by_default(function: func.FuncOp) -> list[SSAValue]:
    """All float arguments."""
    block = function.body.blocks.first
    return [] if block is None else [a for a in block.args if is_float(a)]
