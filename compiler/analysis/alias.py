"""Which memory a memref may denote.

A *root* is memory that came from one place: a memref argument of the function, or the result of
`array.alloc`, `memref.alloca`, `ad.push` or `ad.pop`. Every memref value resolves to the set of
roots it may denote. Loop-carried memrefs are resolved through the permutation that the loop applies
to them, so that a swap stays a swap::

    %trips, %a, %b = array.loop %t to %n carry(%u = %x : T, %v = %y : T) do {
      ...                               // roots(%u) = roots(%v) = {%x, %y}; never the same memory at once
      array.yield %v, %u : T, T
    }

So are memrefs that one `scf.if` yields together: `%u, %v = scf.if %c { yield %x, %y } else { yield %y, %x }`.

Two arguments share memory only where the function's attribute `overlaps` lists the pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import func, memref, scf
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue

from ...dialects import ad, array
from ...dialects.within import ops_of_kinds
from .affine import equal_numbers
from .views import is_memref, strip_casts, strip_views

ROOT_OPS = (array.AllocOp, memref.AllocaOp, memref.AllocOp, ad.PushOp, ad.PopOp)
"""Ops whose memref result is memory of its own."""


class AliasAnalysis:
    """Roots of every memref of a function, and what follows from them."""

    def __init__(self, function: func.FuncOp) -> None:
        self.function = function
        self._groups: dict[SSAValue, frozenset[SSAValue]] = {}
        self._permutations: dict[array.LoopOp, tuple[int | None, ...]] = {}
        self._overlapping = overlapping_arguments(function)
        self._compute(function)

    def base(self, memref: SSAValue) -> SSAValue:
        """The value that `memref` is a view of: views and casts stripped."""
        return strip_views(memref)

    def roots(self, memref: SSAValue) -> frozenset[SSAValue]:
        """All roots whose memory `memref` may denote."""
        base = strip_views(memref)
        return self._groups.get(base) or frozenset([base])

    def interferes(self, root_a: SSAValue, root_b: SSAValue) -> bool:
        """True when the two roots may share memory."""
        return root_a is root_b or root_b in self._overlapping.get(root_a, ())

    def interfering(self, root: SSAValue) -> frozenset[SSAValue]:
        """`root` and the roots that may share memory with it."""
        return self._overlapping.get(root, frozenset()) | {root}

    def may_alias(self, a: SSAValue, b: SSAValue) -> bool:
        """True when some element of `a` may be an element of `b`, judged by their roots."""
        others = self.roots(b)
        return any(not others.isdisjoint(self.interfering(r)) for r in self.roots(a))

    def same_view(self, a: SSAValue, b: SSAValue) -> bool:
        """True when `a` and `b` certainly are the same elements in the same order."""
        a, b = without_equal_views(a, b)
        return a is b

    def same_or_apart(self, a: SSAValue, b: SSAValue) -> bool:
        """True when `a` and `b` are the same elements in the same order, or share none.

        Of two merges of whole arrays, each element is at one place in both, whichever arrays they are.
        """
        a, b = without_equal_views(a, b)
        if a is b:
            return True
        if not self.whole(a) or not self.whole(b):
            return not self.may_alias(a, b)
        pairs = ((x, y) for x in self.roots(a) for y in self.roots(b))
        return not any(x is not y and self.interferes(x, y) for x, y in pairs)

    def permutation(self, loop: array.LoopOp) -> tuple[int | None, ...]:
        """For each carried slot the slot whose memref it takes over at the end of an iteration.

        None where the loop yields something else than one of its carried memrefs.
        """
        return self._permutations[loop]

    def slot(self, base: SSAValue) -> tuple[array.LoopOp, int] | None:
        """The loop and slot that `base` is carried in, seen from the loop's regions."""
        if not isinstance(base, BlockArgument):
            return None
        loop = base.owner.parent_op()
        return (loop, base.index - 1) if isinstance(loop, array.LoopOp) and base.index > 0 else None

    def turn(self, base: SSAValue) -> tuple[array.LoopOp, int] | None:
        """`slot`, or the loop and slot that `base` comes out of."""
        if isinstance(base, OpResult) and isinstance(base.owner, array.LoopOp) and base.index > 0:
            return base.owner, base.index - 1
        return self.slot(base)

    def held(self, base: SSAValue) -> SSAValue:
        """`base`, or the memref that entered the loop where the loop always carries the same one."""
        if isinstance(base, OpResult) and isinstance(base.owner, array.LoopOp):
            loop, slot = base.owner, base.index - 1
        elif (carried := self.slot(base)) is not None:
            loop, slot = carried
        else:
            return base
        return loop.carried[slot] if self.permutation(loop)[slot] == slot else base

    def distinct(self, loop: array.LoopOp) -> bool:
        """True when the memrefs that enter the loop share no memory and are only permuted."""
        permutation = self.permutation(loop)
        if None in permutation or len(set(permutation)) < len(permutation):
            return False
        inits = list(loop.carried)
        return not any(
            self.may_alias(a, b) and not self.apart_in_turn(a, b)
            for i, a in enumerate(inits)
            for b in inits[i + 1 :]
        )

    def apart_in_turn(self, a: SSAValue, b: SSAValue) -> bool:
        """True when `a` and `b` are (views of) different memrefs that one loop swaps, or one branch.

        Each may be any of them in the course of the loop, but never both the same at once.
        """
        a, b = strip_views(a), strip_views(b)
        if (choice := one_choice(a, b)) is not None:
            return all(not self.may_alias(x, y) or self.apart_in_turn(x, y) for x, y in choice)
        of_a, of_b = self.turn(a), self.turn(b)
        if of_a is None or of_b is None or of_a[0] is not of_b[0]:
            return False
        return of_a[1] != of_b[1] and self.distinct(of_a[0])

    def whole(self, base: SSAValue) -> bool:
        """True when `base` is always one of its roots entire, never a view of one.

        Then its subscripts are the root's subscripts.
        """
        seen: set[SSAValue] = set()
        pending = [base]
        while pending:
            value = strip_casts(pending.pop())
            if value in seen:
                continue
            seen.add(value)
            if isinstance(value.owner, array.AnyView):
                return False
            sources = self._sources(value)
            pending.extend(sources)
            if not sources and not self._is_root(value):
                return False
        return True

    def _is_root(self, value: SSAValue) -> bool:
        if isinstance(value, BlockArgument):
            return value.owner.parent_op() is self.function
        return isinstance(value.owner, ROOT_OPS)

    def _sources(self, value: SSAValue) -> tuple[SSAValue, ...]:
        """The memrefs one of which `value` is; empty for a root."""
        if isinstance(value, OpResult) and isinstance(value.owner, scf.IfOp):
            return tuple(
                block.last_op.operands[value.index]
                for block in if_blocks(value.owner)
                if block.last_op is not None
            )
        if isinstance(value, OpResult) and isinstance(value.owner, array.LoopOp):
            loop, slot = value.owner, value.index - 1
        elif (carried := self.slot(value)) is not None:
            loop, slot = carried
        else:
            return ()
        return (loop.carried[slot], loop.yielded[slot])

    def _compute(self, function: func.FuncOp) -> None:
        """Resolve every carried memref and every memref result of `scf.if`, inside out of views.

        The values that merge memrefs form a graph; the roots of a value are those it reaches.
        A value is visited once for each root that it can denote.
        """
        merges: list[SSAValue] = []
        users: dict[SSAValue, list[SSAValue]] = {}
        for op in ops_of_kinds(function, array.LoopOp, scf.IfOp):
            if isinstance(op, array.LoopOp):
                args = op.body_carried
                slots = {a: i for i, a in enumerate(args)}
                self._permutations[op] = tuple(slots.get(strip_casts(y)) for y in op.yielded)
                merges.extend(args)
                merges.extend(op.results[1:])
                if op.condition_block is not None:
                    merges.extend(op.condition_block.args[1:])
            elif isinstance(op, scf.IfOp):
                merges.extend(r for r in op.results if is_memref(r))
        reached: dict[SSAValue, set[SSAValue]] = {m: set() for m in merges}
        pending: list[tuple[SSAValue, SSAValue]] = []
        for merge in merges:
            for source in self._sources(merge):
                base = strip_views(source)
                if base in reached:
                    users.setdefault(base, []).append(merge)
                else:
                    pending.append((merge, base))
        while pending:
            merge, root = pending.pop()
            if root not in reached[merge]:
                reached[merge].add(root)
                pending.extend((user, root) for user in users.get(merge, ()))
        self._groups = {m: frozenset(rs) for m, rs in reached.items()}


def without_equal_views(a: SSAValue, b: SSAValue) -> tuple[SSAValue, SSAValue]:
    """What two memrefs are views of, without those that choose the same elements of any array."""
    a, b = strip_casts(a), strip_casts(b)
    while a is not b:
        va, vb = a.owner, b.owner
        if not isinstance(va, array.AnyView) or not isinstance(vb, array.AnyView):
            break
        if type(va) is not type(vb) or va.dims != vb.dims or len(va.operands) != len(vb.operands):
            break
        numbers = zip(va.operands[1:], vb.operands[1:], strict=True)
        if not all(equal_numbers(x, y) for x, y in numbers):
            break
        a, b = strip_casts(va.source), strip_casts(vb.source)
    return a, b


def one_choice(a: SSAValue, b: SSAValue) -> list[tuple[SSAValue, SSAValue]] | None:
    """Where one `scf.if` yields both memrefs, what it yields for them in either branch."""
    if not isinstance(a, OpResult) or not isinstance(b, OpResult) or a is b:
        return None
    if not isinstance(a.owner, scf.IfOp) or a.owner is not b.owner:
        return None
    ends = [block.last_op for block in if_blocks(a.owner)]
    return [(end.operands[a.index], end.operands[b.index]) for end in ends if end is not None]


def if_blocks(op: scf.IfOp) -> Iterator[Block]:
    """The branches of an `scf.if` that exist, then before else."""
    for region in (op.true_region, op.false_region):
        if region.blocks.first is not None:
            yield region.blocks.first


def overlapping_arguments(function: func.FuncOp) -> dict[SSAValue, frozenset[SSAValue]]:
    """For each argument that may share memory with others, those others."""
    listed = function.attributes.get("overlaps")
    if not isinstance(listed, ArrayAttr) or function.body.blocks.first is None:
        return {}
    args = function.body.blocks.first.args
    overlapping: dict[SSAValue, set[SSAValue]] = {}
    for pair in listed:
        assert isinstance(pair, ArrayAttr)
        i, j = (n.value.data for n in pair if isinstance(n, IntegerAttr))
        overlapping.setdefault(args[i], set()).add(args[j])
        overlapping.setdefault(args[j], set()).add(args[i])
    return {k: frozenset(v) for k, v in overlapping.items()}


def enclosing_loops(op: Operation) -> tuple[array.LoopOp, ...]:
    """The loops around `op`, outermost first."""
    loops: list[array.LoopOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, array.LoopOp):
            loops.append(parent)
        parent = parent.parent_op()
    return tuple(reversed(loops))


def permutation_order(permutation: Sequence[int]) -> int:
    """After how many applications the permutation is the identity."""
    current, order = list(permutation), 1
    while current != list(range(len(permutation))):
        current = [permutation[c] for c in current]
        order += 1
    return order
