"""What of a map's body values are computed from."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Block, Operation, SSAValue


def inputs_of(values: Sequence[SSAValue], body: Block) -> set[SSAValue]:
    """The elements of inputs that values are computed from."""
    steps = slice_of(values, body)
    read = {o for step in steps for inner in step.walk() for o in inner.operands}
    return (read | set(values)) & set[SSAValue](body.args)


def slice_of(values: Sequence[SSAValue], body: Block) -> list[Operation]:
    """The ops of a body that values are computed by, in order."""
    found: set[Operation] = set()
    pending = list(values)
    while pending:
        op = pending.pop().owner
        if isinstance(op, Block) or op.parent is not body or op in found:
            continue
        found.add(op)
        pending.extend(op.operands)
        pending.extend(o for inner in op.walk() if inner is not op for o in inner.operands)
    return [op for op in body.ops if op in found]
