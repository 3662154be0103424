"""Derivatives that the program asks for: `ad.derivative`, whose own derivatives are ops of its kind.

No adjoint of an adjoint is taken. The gradient of `g` along the cotangent `w` of `g.grad(x)` is the Hessian
times `w`, and that is the tangent of the gradient function in the direction `w`. In general: let `P` map the
arguments `x`, shadows `s` and cotangents `c` to what a gradient function leaves. It is linear in `s` and `c`,
and for each cotangent of what it leaves, one tangent of it gives the cotangents of all that it was given ::

    P(x, s, c) -> (y, x', s')        s' = J^T (s, c)
    adjoint      x_dot := the cotangent of s'     s_dot := that of x'     c_dot := that of y
                 then s_dot' is the cotangent of x, x_dot' that of s, y_dot that of c

because the second derivatives of a function are symmetric. In memory it is all in place: what the shadow of
`x` holds before and after is `s_dot` before and after. With tangents in directions 1 to n the same holds of
each part: the shadow of what is a derivative along some of the directions is along all of the others. So a
loop of `x -= g.grad(x)` saves an `x` in each iteration, and nothing of what `g` computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Operation, SSAValue

from ...dialects import activation, ad, array, foreign
from ...dialects.ad import Part
from ..diagnostics import refusal
from .access import Access, Activity, Contents, Need
from .builders import element_of, extents_of, fill, transfer
from .descriptors import descriptor_values
from .each_lane import Alone, Lane, in_each_lane
from .routines import routine
from .rule import Rule, Rules, memrefs
from .sweeps import SHADOW, ReverseSweep, TangentSweep, bind_with_tangents

DUAL = {"argument": "shadow", "shadow": "argument"}
"""What the shadow of an array is."""
INPUT = {"result": "cotangent", "gradient": "argument"}
"""What the cotangent of a number that is given becomes."""
OUTPUT = {"argument": "gradient", "cotangent": "result"}
"""What the cotangent of a number that is taken comes as."""


class Derivative(Rule[ad.DerivativeOp]):
    """`ad.derivative`."""

    smooth = True  # what it compares it makes itself

    def __init__(self, runs_once: Callable[[Operation], bool]) -> None:
        self.runs_once = runs_once

    def effects(self, op: ad.DerivativeOp) -> list[Access]:
        found: list[Access] = []
        for memref, effect in zip(op.operands, op.effects, strict=True):
            if "read" in effect.data:
                found.append(Access(op, memref, "read", must=False))
        for memref, effect in zip(op.operands, op.effects, strict=True):
            if "write" in effect.data:
                whole = effect.data == "write"
                found.append(Access(op, memref, "write", must=whole, whole=whole))
        return found

    def needs(self, op: ad.DerivativeOp, activity: Activity) -> Iterator[Need]:
        require_repeatable(op, self.runs_once)
        require_known_strides(op)
        for k, (_, operand, effect) in enumerate(op.taken()):
            if not is_in_memory(operand):
                yield operand
            elif "read" in effect:
                yield Contents(op, k)
        for memref in memrefs(op.operands):
            yield from descriptor_values(memref)

    def adjoint(self, op: ad.DerivativeOp, sweep: ReverseSweep) -> None:
        Adjoint(op, sweep).emit()

    def tangent(self, op: ad.DerivativeOp, sweep: TangentSweep) -> None:
        """The same derivative in one more direction."""
        if not self.has_derivative(op, sweep.activity):
            sweep.clone(op)
            return
        assert op.lanes is None, "no derivative is taken of several tangents at once"
        require_known_strides(op)
        direction = op.directions + 1
        takes = [(part, sweep.value(v), effect) for part, v, effect in op.taken()]
        for part, value, effect in op.taken():
            if (dot := sweep.dot(value)) is not None:
                takes.append((part.moving(direction), dot, effect))
        gives = [(part, r.type) for part, r in op.given()]
        moved = [(part, r) for part, r in op.given() if sweep.activity.active(r)]
        gives += [(part.moving(direction), sweep.wide(r.type)) for part, r in moved]
        made = ad.DerivativeOp(
            op.target,
            direction,
            takes,
            gives,
            reverse=op.reverse is not None,
            silent=op.silent is not None,
            lanes=sweep.lanes,
        )
        sweep.append(made)
        bind_with_tangents(sweep, op.results, made.results, [r for _, r in moved])


class Adjoint:
    """The adjoint of one op."""

    def __init__(self, op: ad.DerivativeOp, sweep: ReverseSweep) -> None:
        self.op, self.sweep = op, sweep
        self.changed = {
            part.number for part, _, e in op.taken() if part.kind == "argument" and "write" in e
        }
        """The arguments that the function stores to."""
        last = op.directions + (op.reverse is not None)
        self.directions = frozenset(range(1, last + 1))
        self.numbers: list[SSAValue] = []
        """The numbers among the operands whose cotangents it makes, in order."""

    def dual(self, part: Part, kinds: dict[str, str]) -> Part:
        """What the cotangent of a part is, in the op that makes it."""
        return Part(kinds[part.kind], part.number, self.directions - part.along)

    def emit(self) -> None:
        """All cotangents at once where they are along the last direction, which is the adjoint's own.

        Of others one after another.
        """
        op, sweep = self.op, self.sweep
        if op.reverse is not None:
            bars = self.emit_lane(Alone(), sweep.lanes)
        else:
            bars = in_each_lane(sweep, op, self.emit_lane)
        for operand, bar in zip(self.numbers, bars, strict=True):
            sweep.add_bar(operand, bar)

    def emit_lane(self, lane: Lane, lanes: int = 1) -> list[SSAValue]:
        """The derivative with the cotangents of `lane`, which may be several `lanes`; those of numbers."""
        op, sweep = self.op, self.sweep
        again = [(p, v) for p, o, e in op.taken() for v in self.again(p, o, e)]
        takes = [(p, v, self.effect(p) if is_in_memory(v) else "none") for p, v in again]
        asked: list[SSAValue] = []
        gives = list[tuple[Part, SSAValue]]()
        for part, operand, effect in op.taken():
            if not sweep.activity.active(operand):
                continue
            if is_in_memory(operand):
                dual, memory = self.dual(part, DUAL), sweep.primal.memref(operand, SHADOW)
                shadow = lane.array(operand, memory, written=True)
                takes.append((dual, shadow, self.effect(dual)))
                asked += [shadow] if effect == "write" else []
            else:
                gives.append((self.dual(part, OUTPUT), operand))
        for part, result in op.given():
            if (bar := sweep.take_bar(result)) is not None:
                takes.append((self.dual(part, INPUT), lane.number(bar), "none"))
        made = ad.DerivativeOp(
            op.target,
            len(self.directions),
            takes,
            [(part, ad.wide(operand.type, lanes)) for part, operand in gives],
            reverse=True,
            silent=True,
            lanes=lanes,
        )
        sweep.append(made)
        for shadow in asked:  # of what was overwritten: what it held before has no cotangent
            sweep.append(fill(shadow, extents_of(shadow, sweep.emit), op))
        self.numbers = [operand for _, operand in gives]
        return list(made.results)

    def effect(self, part: Part) -> str:
        """What the adjoint does to a part's memory: shadows are added to."""
        if part.kind == "shadow" or part.number in self.changed:
            return "readwrite"
        return "read"

    def again(self, part: Part, operand: SSAValue, effect: str) -> Iterator[SSAValue]:
        """What the op was given, once more; nothing where it was 0, or is not asked for."""
        sweep = self.sweep
        if not is_in_memory(operand):
            yield sweep.primal.get(operand)
        elif "read" in effect:
            index = next(k for k, v in enumerate(self.op.operands) if v is operand)
            found = sweep.primal.contents(Contents(self.op, index), operand)
            yield self.copied(found) if "write" in effect else found
        elif part == Part("argument", part.number):
            yield sweep.emit(array.AllocOp(self.extents(operand), element_of(operand)))

    def extents(self, operand: SSAValue) -> list[SSAValue]:
        block = self.op.parent_block()
        assert block is not None
        assert isinstance(operand.type, MemRefType)
        axes = range(operand.type.get_num_dims())
        return [self.sweep.primal.extent(operand, axis, block) for axis in axes]

    def copied(self, memref: SSAValue) -> SSAValue:
        sweep = self.sweep
        extents = extents_of(memref, sweep.emit)
        copy = sweep.emit(array.AllocOp(extents, element_of(memref)))
        copy.name_hint = memref.name_hint
        sweep.append(transfer(memref, copy, extents))
        return copy


def require_repeatable(op: ad.DerivativeOp, runs_once: Callable[[Operation], bool]) -> None:
    """Refuse the adjoint where the function cannot run once more, or its rules need not be symmetric."""
    for inner in routine(op, op.target).walk():
        if isinstance(inner, foreign.RuleCallOp):
            what = "a function with a rule, whose second derivatives need not be symmetric"
        elif runs_once(inner) and not isinstance(inner, SILENT) and not is_special(inner):
            what = "what the compiler cannot see into, and so cannot run once more"
        else:
            continue
        raise refusal(
            op,
            f"the derivative of this derivative is asked for, and the function calls {what}",
            "keep it from being asked for: mutad.stop_gradient(...) of what this returns",
        )


def require_known_strides(op: ad.DerivativeOp) -> None:
    """Refuse the derivative where strides decide what is computed: copies and tangents have others."""
    if any(isinstance(inner, array.StrideOp) for inner in routine(op, op.target).walk()):
        raise refusal(
            op,
            "the derivative of this derivative is asked for, and whether the function reshapes an argument "
            "in place depends on the strides",
            "pass a copy of the argument: x.copy()",
        )


SILENT = (array.PrintOp, func.FuncOp, ad.DerivativeOp, activation.CallOp, activation.TooDeepOp)
"""What runs once more without printing, and calls of functions of the program."""


def is_special(op: Operation) -> bool:
    """Whether it calls a function of SciPy, which does nothing but compute."""
    return isinstance(op, foreign.CallOp) and op.callee.data.startswith("mutad_special_")


def is_in_memory(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType)


def rules(runs_once: Callable[[Operation], bool]) -> Rules:
    """`runs_once`: what the whole registry says of an op (`rules.runs_once`)."""
    return {ad.DerivativeOp: Derivative(runs_once)}
