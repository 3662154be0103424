"""Which primal values the adjoint reads.

An op *has an adjoint* when a cotangent can flow through it: active arithmetic, reads and writes of
active memory, and the control flow around them. For each such op this analysis lists what its
adjoint reads of the primal:

- active arithmetic: what the rule of each active operand names (a product: the other factor; a
  quotient or a root: its result);
- memory access: the subscripts, and the numbers in the views between the access and its root;
- control: trip counts and conditions;
- `array.matmul`, products, minima and maxima of whole arrays: the contents of memory.

Nothing is said here about how a value is had again: see `derivative/plan.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.ir import Block, Operation

from ...dialects import array
from ..rules import Need, rule_of
from .activity import Activity


class Needed:
    """For each op with an adjoint, the primal values and contents that its adjoint reads."""

    def __init__(self, function: func.FuncOp, activity: Activity) -> None:
        self.function = function
        self.activity = activity
        self._with_adjoint: set[Operation] = set()
        self.by: dict[Need, Operation] = {}
        """Each needed value with the first op that needs it."""
        self._collect(function.body.block)

    def has_adjoint(self, op: Operation) -> bool:
        """True when a cotangent may flow through `op`, or through what it contains."""
        return op in self._with_adjoint

    def _collect(self, block: Block) -> bool:
        """Visit the ops of a block; true when any has an adjoint."""
        found = False
        for op in block.ops:
            if array.RAISES in op.attributes:
                continue
            rule = rule_of(type(op))
            inner = False
            if not rule.evaluates_body:
                for region in op.regions:
                    for nested in region.blocks:
                        inner = self._collect(nested) or inner
            if inner or rule.has_derivative(op, self.activity):
                self._with_adjoint.add(op)
                found = True
                for needing in (op, *self._evaluated(op)):
                    for need in rule_of(type(needing)).needs(needing, self.activity):
                        self.by.setdefault(need, needing)
        return found

    def _evaluated(self, op: Operation) -> Iterator[Operation]:
        """The ops with a derivative of a body that the rule of `op` evaluates."""
        if rule_of(type(op)).evaluates_body:
            for inner in op.regions[0].block.ops:
                if rule_of(type(inner)).has_derivative(inner, self.activity):
                    yield inner
