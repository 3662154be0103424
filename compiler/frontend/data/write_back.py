"""What an exception leaves of the caller's objects and lists, handed over before it is raised.

Numbers that are assigned to fields of the caller's objects are in the journal (`fields`). Arrays, objects and
lists that were bound to fields, and what was done to lists, are in memory that ends with the call: a check
that may raise while there is such a thing becomes a branch, which hands it over first::

    s.pos = s.pos + v          %bad = ...
    check(s)                   scf.if %bad {
                                 array.print "" leaves 0 (%pos)
                                 array.raise_if %true, "ValueError", "..."
                               }

Python copies what it is handed, and assigns it by the recipes of the *state*, here number 0, as it does with
results. Where nothing but numbers has changed, checks stay what they are, and so they do for exceptions that
only memory or the machine raises (MemoryError, Ctrl-C), and for calls of functions that are not looked into.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from xdsl.dialects import scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Block, Operation, Region, SSAValue

from ....dialects import array
from ...diagnostics import CompileError
from ..catching import constant_truth
from ..checks import described, is_inside, outside, overflows, wrapped
from ..context import same_binding
from ..joins import Maybe
from ..values import Array, NoneValue, Scalar, Tuple, Value
from .argument_lists import ITEMS
from .lists import FixedList, ListObject
from .references import key_reference
from .result_recipes import Flattening, Recipe

State = dict[str, Any]
"""`changes`: object, key and recipe of each; `stores`: those of which they have items; `types`: of the
numbers among what is handed over, else None."""


@dataclass
class Handing(Flattening):
    """Takes apart what is handed over: lists by the arrays that they are, tuples item by item."""

    def recipe(self, value: Value) -> Recipe:
        match value:
            case NoneValue():
                return ["static", {"value": None}]
            case FixedList():
                return super().recipe(value)
            case Tuple(items, None):
                return ["tuple", None, [self.recipe(item) for item in items]]
            case _:
                return super().recipe(value)

    def items(self, seq: ListObject) -> Recipe:
        if seq.item is None:
            return ["numbers", None]
        return self.columns(seq, copied=False)


@dataclass
class Leaving:
    """Lowers checks that may raise while the caller's objects or lists are changed."""

    lowering: Any
    states: list[State] = field(default_factory=list[State])
    unchanged: set[int] = field(default_factory=set[int])
    """The lists that had not changed at some check."""
    busy: bool = False

    def lowered(self, op: Operation) -> Operation | None:
        """The op by which a check is lowered; None where it stays what it is."""
        e = self.lowering.e
        if self.busy or (e.block is not e.entry and is_of_elements(e.block)):
            return None
        exception, message, shown = described(op)
        if exception == "MemoryError" or not self.is_any():
            return None
        self.busy = True
        try:
            match op:
                case array.IndexOp():
                    sign, axis = op.sign.data, op.axis.value.data
                    made = array.IndexOp(op.index, op.extent, axis, sign, unchecked=True)
                    condition = None
                    if not is_inside(e, op.index, op.extent, sign):
                        condition = outside(e, op.index, op.extent, sign)
                case array.CheckedIntOp():
                    condition, made = overflows(e, op), wrapped(op)
                case _:
                    assert isinstance(op, array.RaiseIfOp)
                    condition, made = op.condition, op
            op.drop_all_references()
            if condition is not None:
                self.raise_when(condition, exception, message, list(shown))
            return made if made is op else e.insert(made)
        finally:
            self.busy = False

    def raise_when(
        self, condition: SSAValue, exception: str, message: str, shown: list[SSAValue]
    ) -> None:
        e = self.lowering.e
        known = constant_truth(condition)
        if known is False:
            return
        block = e.block if known else Block()
        with e.at(block):
            self.hand_over()
            always = e.constant(True, "py_bool").ssa
            e.insert(array.RaiseIfOp(always, exception, message, shown))
            if not known:
                e.insert(scf.YieldOp())
        if not known:
            e.insert(scf.IfOp(condition, [], Region(block), Region()))

    def hand_over(self) -> None:
        """Hand over what has changed but for numbers, and note how it is put together."""
        make = Handing(self.lowering, exact=False)
        changes = list[list[Any]]()
        for number, key, value in self.changed():
            before = len(make.flat)
            try:
                recipe = make.items(value) if isinstance(value, ListObject) else make.recipe(value)
            except CompileError:  # refused where the function ends, if it ends
                del make.flat[before:]
                continue
            changes.append([number, key, recipe])
        stores = make.finish()
        types = [
            v.type if isinstance(v, Scalar) else v.dtype if isinstance(v, Array) else None
            for v in make.flat
        ]
        values = [ssa for v in make.flat for ssa in ssa_of(v)]
        state: State = {"changes": changes, "types": types, "stores": stores}
        if state not in self.states:
            self.states.append(state)
        self.lowering.e.insert(array.PrintOp("", values, leaves=self.states.index(state)))

    def is_any(self) -> bool:
        return next(iter(self.changed()), None) is not None

    def changed(self) -> list[tuple[int, Any, Value | ListObject]]:
        """What is not as the caller handed it in: object, key, what is there."""
        objects, env = self.lowering.objects, self.lowering.frame.env
        found = list[tuple[int, Any, Value | ListObject]]()
        for number, seq in sorted(objects.lists.items()):
            if seq.changed or number in self.lowering.facts.changed_lists:
                found.append((number, ITEMS, seq))
            else:
                self.unchanged.add(number)
        for number, record in objects.assigned_to():
            initial = objects.initial.get(number, {})
            for key in objects.keys[record.serial]:
                binding = env.get(objects.name(record, key))
                if binding is None or isinstance(binding, Maybe):
                    continue
                if isinstance(binding, Scalar) and record.cls is not list:
                    continue
                if number in objects.initial and not same_binding(binding, initial.get(key)):
                    found.append((number, key_reference(key), binding))
        return found

    def settle(self) -> None:
        """Tell the next build which lists change: a check before that may run again after it."""
        late = {n for n in self.unchanged if self.lowering.objects.lists[n].changed}
        if late - self.lowering.facts.changed_lists:
            self.lowering.facts.changed_lists |= late
            self.lowering.facts.changed = True


def ssa_of(value: Value) -> tuple[SSAValue, ...]:
    match value:
        case Scalar():
            return (value.ssa,)
        case Array():
            return (value.memref,)
        case _:
            raise AssertionError("neither number nor array")


def is_of_elements(block: Block) -> bool:
    """True for the body of a map, which computes one element."""
    return any(not isinstance(a.type, IndexType | MemRefType) for a in block.args)
