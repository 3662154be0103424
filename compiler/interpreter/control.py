"""What branches and loops mean."""

from __future__ import annotations

import numpy as np
from xdsl.dialects import scf

from ...dialects import array
from .frame import Frame


def branch(frame: Frame, op: scf.IfOp) -> None:
    region = op.true_region if frame.get(op.cond) else op.false_region
    values = frame.run(region.block) if region.blocks else []
    frame.bind(op.results, values)


def loop(frame: Frame, op: array.LoopOp) -> None:
    count = None if op.count is None else int(frame.get(op.count))
    carried, trips = frame.all(op.carried), 0
    body, condition = op.body.block, op.condition_block
    while count is None or trips < count:
        now = [np.int64(trips), *carried]
        if condition is not None:
            frame.bind(condition.args, now)
            if not frame.run(condition)[0]:
                break
        frame.machine.step()
        frame.bind(body.args, now)
        carried = frame.run(body)
        trips += 1
    frame.bind(op.results, [np.int64(trips), *carried])
