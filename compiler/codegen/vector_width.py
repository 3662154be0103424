"""How wide the vectors of loops are, on CPUs with AVX-512.

LLVM makes vectors of 256 bits on Intel's CPUs. Since Ice Lake (which is told by AVX512_VBMI2) most loops gain
by vectors of 512: stencils in the first-level cache take 0.6x to 0.8x of the time, functions and blocks of
points 0.7x to 0.9x. What they cost is paid by all code: sums and products of 512 bits lower the clock. On a
Xeon of today a chain of integer multiplications takes 1.07x of the time when eight of them run every 20
microseconds. (Loads, stores and logic of 512 bits lower nothing.) So a module has wide vectors only if most
of the work of its innermost loops gains (`width_pays`), or if it has a gradient: its last bits, which hang on
the width, are the same within a budget, whose loops are others. Two kinds of loops do not gain:

- One that waits for divisions or roots, with little else to do: these take twice as long on twice as many
  numbers, and what comes behind them waits longer. Its vectors stay at 256 bits in any case.
- One that stays scalar: iterations that read what the one before wrote, subscripts that the data decide,
  checks that may fail.

A sum is as long as four vectors of 256 bits side by side, or two of 512, so that as little is left at its
end, and it has as many partial sums. (In gradients its end goes to them, too: `lane_sums`.) Which loops wait
for memory is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, scf
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..analysis.equal_extents import equalities

IN_WIDE_VECTORS = "!mutad.wide = !{}"
"""In modules for which vectors as wide as the registers pay."""
WIDE = "-prefer-256-bit"
"""The feature of a target machine by which LLVM makes vectors as wide as the registers."""
QUICK = re.compile(r" = f(?:add|sub|mul)\b|@llvm\.fma|@llvm\.fmuladd")
"""Sums and products, which take half as long in wide vectors."""
SLOW = re.compile(r" = fdiv |@llvm\.sqrt\.|call (?:double|float) @(?!llvm)")
VECTOR = re.compile(r"<\d+ x ")
FEW = 64
"""Iterations of a loop that is short."""
LESS = (2, 3)
"""The predicates of `arith.cmpi` that mean `slt` and `sle`."""
AMONG = 10
"""So many of them take as long as a division, or as a function."""


def is_wide(features: frozenset[str]) -> bool:
    """Whether vectors of 512 bits may pay on a CPU with these features, by LLVM's names."""
    return {"avx512vl", "avx512vbmi2"} <= features


@dataclass(frozen=True)
class Leaf:
    """An innermost loop."""

    depth: int
    work: int
    """Of an iteration, in sums and products."""
    gains: bool
    """Whether it may become vectors that are faster if they are wide."""


def width_pays(leaves: Sequence[Leaf]) -> bool:
    """Whether among the innermost of a module's loops, which run most often, those that gain do as much."""
    working = [leaf for leaf in leaves if leaf.work]
    deepest = max((leaf.depth for leaf in working), default=0)
    gain = sum(leaf.work if leaf.gains else -leaf.work for leaf in working if leaf.depth == deepest)
    return gain >= 0


def in_wide_vectors(node: str) -> str:
    """The metadata of a loop of which two vectors are as long as four were."""
    return node.replace(
        '"llvm.loop.interleave.count", i32 4', '"llvm.loop.interleave.count", i32 2'
    )


def work_of(body: Sequence[str]) -> int:
    """Sums and products, and what takes as long as some."""
    return sum(
        1 if QUICK.search(line) else AMONG
        for line in body
        if QUICK.search(line) or SLOW.search(line)
    )


def narrow_lanes(body: Sequence[str]) -> int | None:
    """The lanes that a loop should have less than LLVM would give it, by the lines of its only block."""
    slow = [line for line in body if " = fdiv " in line or "@llvm.sqrt." in line]
    if not slow or any("call " in line and "@llvm." not in line for line in body):
        return None  # a function has a version for eight numbers, which takes less for each
    if sum(bool(QUICK.search(line)) for line in body) > AMONG * len(slow):
        return None
    return 8 if any(" float " in line for line in slow) else 4


def may_be_long(count: SSAValue, at: Operation) -> bool:
    """Whether a loop with this count, which stands there, may have more than a few iterations.

    Of a loop that has never more than these LLVM makes straight code, or something that is no loop to its
    vectorizer. Of a loop with a width of its own, it prints that.
    """
    if not is_large(count):
        return False
    short = {number for branch in branches_around(at) for number in below(branch)}
    return not short or short.isdisjoint(equal_numbers(count, at))


def equal_numbers(number: SSAValue, at: Operation) -> set[SSAValue]:
    """The numbers that checks around `at` find equal to this one."""
    names, block = {number}, at.parent
    while block is not None:
        for op in block.ops:
            if isinstance(op, array.RaiseIfOp):
                for pair in equalities(op.condition):
                    if not names.isdisjoint(pair):
                        names.update(pair)
        around = block.parent_op()
        block = None if around is None else around.parent
    return names


def is_large(count: SSAValue) -> bool:
    """Whether a number may be large, whatever the program asks before it comes to its loop."""
    known, op = array.constant_value(count), count.owner
    if known is not None:
        return known > FEW
    if isinstance(op, Block):
        loop = op.parent_op()
        if isinstance(loop, array.LoopOp) and count is loop.induction and loop.count is not None:
            return is_large(loop.count)
        return True
    if isinstance(op, arith.MinSIOp):
        return all(map(is_large, op.operands))
    if isinstance(op, arith.AddiOp | arith.SubiOp | arith.MaxSIOp):
        return any(map(is_large, op.operands))
    return True


def branches_around(at: Operation) -> Iterator[SSAValue]:
    """The conditions that hold there."""
    block = at.parent
    while block is not None and (around := block.parent_op()) is not None:
        if isinstance(around, scf.IfOp) and block.parent is around.true_region:
            yield around.cond
        block = around.parent


def below(condition: SSAValue) -> Iterator[SSAValue]:
    """The numbers that are small where a condition holds."""
    asked = condition.owner
    if isinstance(asked, arith.AndIOp):
        for one in asked.operands:
            yield from below(one)
    elif (
        isinstance(asked, arith.CmpiOp)
        and asked.predicate.value.data in LESS
        and not is_large(asked.rhs)
    ):
        yield asked.lhs


def has_vectors(body: Sequence[str]) -> bool:
    """Whether a loop computes with vectors as it is, so that LLVM cannot make vectors of its iterations.

    Of a loop with a width of its own, LLVM prints that it could not.
    """
    return any(VECTOR.search(line) for line in body)
