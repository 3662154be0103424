"""What tapes mean, and `ad.derivative`."""

from __future__ import annotations

from ...dialects import ad
from . import memory_ops
from .calls import kept
from .frame import Frame
from .memory import Memref, Tape, Undefined, fresh, lanes_of


def tape(frame: Frame, op: ad.TapeOp) -> None:
    reserved = None if op.reserved is None else int(frame.get(op.reserved))
    frame.values[op.tape] = Tape(reserved=reserved)


def push(frame: Frame, op: ad.PushOp) -> None:
    made = fresh(op.memref.type, memory_ops.shape_of(frame, op.extents))
    frame.get(op.tape).push(made)
    frame.values[op.memref] = made


def pop(frame: Frame, op: ad.PopOp) -> None:
    segments = frame.get(op.tape).segments
    if not segments:
        raise Undefined("the tape is empty")
    found: Memref = segments.pop()
    shape = memory_ops.shape_of(frame, op.extents)
    lanes = lanes_of(op.memref.type.element_type)
    if found.shape != shape or found.root.cells.shape[1:] != lanes:
        raise Undefined(f"the segment was pushed with the shape {found.shape}, not {shape}")
    frame.values[op.memref] = found


def reader(frame: Frame, op: ad.ReaderOp) -> None:
    frame.values[op.tape] = kept(frame.get(op.source))


def derivative(frame: Frame, op: ad.DerivativeOp) -> None:
    """What the pass that expands derivatives puts in its place."""
    from .derivatives import run_derivative

    run_derivative(frame, op)
