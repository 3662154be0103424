"""Forward mode: the tangent function of a function.

Each op is followed by its tangent, in the program's own order; memory has tangents beside it, in memory of
its own::

    x = load a[i]       x_dot = load a_dot[i]
    store x, a[i]       store x_dot, a_dot[i]
    z = x * y           z_dot = x_dot * y + y_dot * x

Nothing is saved: what a tangent reads of the primal is still there. Arguments of the result: the primal's,
then the tangents of each active memref argument, then that of each active scalar. Results: the primal's, then
the tangent of each active result. Tangents of memory have the memory's type, and share memory where it does.

Several tangents can go along at once, in as many *lanes*: then each is a vector, and the memory of tangents
holds vectors. The rules are the same: what multiplies a tangent is a number of the primal, in all lanes::

    z_dot = x_dot * broadcast(y) + y_dot * broadcast(x) : vector<8xf64>

A gradient function has a tangent function like any other: its shadows and cotangents are arguments, its tapes
have rules. That is how Hessian-vector products are made: the tangents of the shadows, in a direction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import cast, overload

from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DenseArrayBase,
    IntegerAttr,
    MemRefType,
    StringAttr,
    i64,
)
from xdsl.ir import Block, Operation, Region, SSAValue
from xdsl.rewriter import Rewriter

from ...dialects import activation, array
from ..analysis.activity import Activity
from ..rules import rule_of
from ..rules.builders import extents_of
from ..rules.calls import (
    SIGNATURE,
    count_in_record,
    has_derivative_function,
    listed,
    private_functions,
    tangent_name,
)
from ..rules.routines import without_rules
from .activations import RECORDED, Activities, activity_of, describe_activities
from .emission import Emission
from .function_attributes import inherit_locations, mirror_overlaps, move_overlaps
from .sanitizer_marks import is_whole, looking, mark, mark_sums, touched


def tangent_functions(
    function: func.FuncOp,
    active_arguments: Sequence[int],
    finals: Sequence[int] | None = None,
    lanes: int = 1,
) -> list[func.FuncOp]:
    """The tangent function, then those of the recursive functions that it calls, and these themselves.

    `active_arguments` are indices of IR arguments with a float (element) type; `finals` those whose final
    contents matter beside them, `lanes` how many tangents there are of each value. Raises CompileError for
    what has no derivative.
    """
    activity = activity_of(function, active_arguments, finals)
    activities = describe_activities(function, activity)
    made = [TangentSweep(function, activity, lanes).function_with_tangents()]
    still = set[str]() if activities is None else still_steps(activities)
    for name, own in ({} if activities is None else activities.of).items():
        callee = private_functions(function.parent_op())[name]
        if has_derivative_function(callee) and name not in still:
            tangent = TangentSweep(callee, own, lanes).function_with_tangents()
            tangent.sym_visibility = StringAttr("private")
            for key in (*SIGNATURE, RECORDED, "moving", "moved"):
                tangent.attributes.pop(key, None)
            made.append(tangent)
        primal = without_rules(callee)
        for key in (*SIGNATURE, RECORDED):
            primal.attributes.pop(key, None)
        made.append(primal)
    return made


def still_steps(activities: Activities) -> set[str]:
    """The functions of checkpointed loops that move nothing."""
    ends = ("", activation.FORWARD, activation.BACKWARD)
    return {
        f"{op.target}{end}"
        for function in activities.functions()
        for op in activation.checkpointed(function)
        for end in ends
        if not activities.asked[op.target].arguments
    }


class TangentSweep(Emission):
    """Emits the tangent function of one function."""

    def __init__(self, function: func.FuncOp, activity: Activity, lanes: int) -> None:
        super().__init__(function, lanes)
        self.activity = activity
        self.swept: Operation = function
        """The op whose tangent is being emitted."""
        self._recorded_results = 0
        """How many tangents a forward function keeps."""
        self._values: dict[SSAValue, SSAValue] = {}
        self._dots: dict[SSAValue, SSAValue] = {}

    def function_with_tangents(self) -> func.FuncOp:
        """The tangent function."""
        source = self.function.body.block
        kept = source.args[: count_in_record(self.function, "kept")]
        own = source.args[len(kept) :]
        active = [a for a in own if self.activity.active(a)]
        memory = [a for a in active if isinstance(a.type, MemRefType)]
        moving = [*memory, *(a for a in active if not isinstance(a.type, MemRefType))]
        recorded = [kept[k] for k in listed(self.function, RECORDED)] if kept else []
        groups = [
            (kept, [a.type for a in kept]),
            (recorded, [self.wide(a.type) for a in recorded]),
            (own, [a.type for a in own]),
            (moving, [self.wide(a.type) for a in moving]),
        ]
        types = [t for _, group in groups for t in group]
        self.entry = self.block = Block(arg_types=types)
        fresh = iter(self.entry.args)
        for (olds, _), name in zip(
            groups, (self.bind, self.set_dot, self.bind, self.set_dot), strict=True
        ):
            for old in olds:
                name(old, next(fresh))
        self.run(source, self.entry, self._finish)
        last = self.entry.last_op
        assert isinstance(last, func.ReturnOp)
        made = func.FuncOp(
            tangent_name(self.function.sym_name.data),
            (types, [r.type for r in last.arguments]),
            Region(self.entry),
        )
        made.location = self.function.location
        made.attributes.update(self.function.attributes)
        places = {a: k for k, a in enumerate(source.args)}
        first = len(places) + len(recorded)
        move_overlaps(made, len(kept), len(recorded))
        mirror_overlaps(made, {places[a] + len(recorded): first + k for k, a in enumerate(memory)})
        if kept:
            made.attributes["kept"] = IntegerAttr(len(kept) + len(recorded), i64)
        if "keeps" in made.attributes:
            count = count_in_record(self.function, "keeps")
            made.attributes["keeps"] = IntegerAttr(count + self._recorded_results, i64)
        described = {
            "moving": [places[a] for a in moving],
            "moved": self._moving_results(cast(Operation, source.last_op)),
        }
        if "filled" in made.attributes:
            filled = listed(self.function, "filled")
            dots = [first + k for k, a in enumerate(moving) if places[a] in filled]
            described["filled"] = [*filled, *dots]
        for name, indices in described.items():
            made.attributes[name] = DenseArrayBase.from_list(i64, indices)
        inherit_locations(made)
        return made

    def _moving_results(self, terminator: Operation) -> list[int]:
        return [k for k, r in enumerate(terminator.operands) if self.activity.moves(r)]

    def _finish(self, terminator: Operation) -> None:
        """The results and their tangents; then what is kept, and the tangents of that."""
        own = len(terminator.operands) - count_in_record(self.function, "keeps")
        moving = self._moving_results(terminator)
        results = self.values(terminator.operands)
        dots = [self.dot(terminator.operands[k], zero=True) for k in moving]
        count = sum(k < own for k in moving)
        self._recorded_results = len(dots) - count
        self.append(func.ReturnOp(*results[:own], *dots[:count], *results[own:], *dots[count:]))

    # Emission.

    def append(self, op: Operation) -> None:
        if self.watched and isinstance(op, array.MapOp):
            mark_sums(op, "tangent", set(self._dots.values()))
        super().append(op)

    def clone(self, op: Operation) -> Operation:
        made = op.clone_without_regions({o: self.value(o) for o in op.operands})
        self.append(made)
        for old, fresh in zip(op.results, made.results, strict=True):
            self.bind(old, fresh)
        return made

    def run(self, source: Block, target: Block, end: Callable[[Operation], None]) -> None:
        with self.at(target):
            for op in source.ops:
                self.location, self.swept = op.location, op
                if op is source.last_op:
                    end(op)
                else:
                    rule_of(type(op)).tangent(op, self)
                if self.watched and is_whole(op):
                    self._look(op)
        parent = source.parent_op()
        assert parent is not None
        self.location = parent.location

    def _look(self, op: Operation) -> None:
        """Mark the tangents that an op makes without a map."""
        for written in filter(self.activity.active, touched(op, "write")):
            dots = self.dot(written, zero=True)
            self.append(looking(dots, extents_of(dots, self.emit), "tangent", written, op))

    # Values and their tangents.

    def bind(self, old: SSAValue, fresh: SSAValue) -> None:
        fresh.name_hint = old.name_hint
        self._values[old] = fresh

    def value(self, value: SSAValue) -> SSAValue:
        return self._values[value]

    def values(self, values: Sequence[SSAValue]) -> list[SSAValue]:
        return [self._values[v] for v in values]

    def set_dot(self, value: SSAValue, dot: SSAValue | None) -> None:
        """`dot` is the tangent of `value`; None for 0."""
        if dot is None:
            self._dots.pop(value, None)
            return
        if self.watched:
            mark(dot, "tangent", value, self.swept)
        if dot.name_hint is None or dot.name_hint == value.name_hint:
            dot.name_hint = f"{value.name_hint or 'v'}_dot"
        self._dots[value] = dot

    @overload
    def dot(self, value: SSAValue) -> SSAValue | None: ...
    @overload
    def dot(self, value: SSAValue, *, zero: bool) -> SSAValue: ...
    def dot(self, value: SSAValue, *, zero: bool = False) -> SSAValue | None:
        """The tangent of a value or memref; where it has none, None, or a `zero`."""
        found = self._dots.get(value)
        if found is None and zero:
            assert not isinstance(value.type, MemRefType), f"no tangents of {value}"
            return self.scalars.constant(0.0, self.wide(value.type))
        return found

    def clone_dot(self, op: Operation, operands: Mapping[SSAValue, SSAValue]) -> SSAValue:
        """The op once more, for the tangents of the memory that it makes."""
        clone = op.clone(dict(operands))
        for result in tuple(clone.results):
            if isinstance(result.type, MemRefType):
                Rewriter.replace_value_with_new_type(result, self.wide(result.type))
        return self.emit(clone)
