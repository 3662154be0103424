"""Put the code of the derivatives that the program asks for in the place of the ops that stand for them.

Why here: after the derivative of the whole has been taken, for `ad.derivative` has rules of its own, which
need less than its code would (`rules.derivatives`); before the passes that simplify what that wrote.

Before::

    func.func @f(%x : f64) -> f64 {
      %one = arith.constant 1.0 : f64
      %y, %x_bar = ad.derivative @g reverse order 0 (%x, %one : f64, f64) takes ["argument 0", "cotangent 0"]
        effects ["none", "none"] gives ["result 0", "gradient 0"] -> f64, f64
      func.return %x_bar : f64
    }
    func.func private @g(%x : f64) -> f64 {
      %y = arith.mulf %x, %x : f64
      func.return %y : f64
    }

After::

    func.func @f(%x : f64) -> f64 {
      %one = arith.constant 1.0 : f64
      %y = arith.mulf %x, %x : f64
      %x_bar = ad.mul %one, %x : f64
      %x_bar_1 = ad.mul %one, %x : f64
      %x_bar_2 = arith.addf %x_bar, %x_bar_1 : f64
      func.return %x_bar_2 : f64
    }
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects import func, memref
from xdsl.dialects.builtin import MemRefType, ModuleOp, UnitAttr
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from ...dialects import activation, ad, array, foreign
from ...dialects.ad import Part
from ...dialects.within import every_op, ops_of_kind
from ..rules.builders import extents_of, fill
from ..rules.calls import listed, private_functions
from ..rules.routines import inline_rules, inlined
from ..rules.table import float_constant
from .forward import tangent_functions
from .reverse import gradient_of, only_function


@dataclass(frozen=True)
class PassesOfDerivatives:
    """The passes that derivatives have around them."""

    ahead: Callable[[ModuleOp, Sequence[int]], None] = lambda module, active: None
    """Of a gradient, with respect to these arguments."""
    behind: Callable[[ModuleOp], None] = lambda module: None
    """Of a gradient."""
    between: Callable[[ModuleOp], None] = lambda module: None
    """Of one derivative and the next."""


@dataclass(frozen=True)
class ExpandDerivatives(ModulePass):
    """Replace `ad.derivative` by the code of the derivative."""

    name = "expand-derivatives"
    saves: str = "minimal"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        expand(op, self.saves)


NONE = PassesOfDerivatives()


def expand(module: ModuleOp, saves: str, passes: PassesOfDerivatives = NONE) -> None:
    """Expand all `ad.derivative` of a module, and drop the private functions that are no longer called."""
    expansion = Expansion(module, saves, passes)
    while asked := list(expansion.pending()):
        for op in asked:
            expansion.expand(op)
    drop_uncalled(module)


@dataclass
class Derived:
    """A function that was derived, and what its arguments and results are."""

    function: func.FuncOp
    takes: list[Part]
    gives: list[Part]


@dataclass
class Expansion:
    """The expansion of one module."""

    module: ModuleOp
    saves: str
    passes: PassesOfDerivatives = NONE
    made: dict[tuple[object, ...], Derived] = field(
        default_factory=dict[tuple[object, ...], Derived]
    )

    def pending(self) -> Iterator[ad.DerivativeOp]:
        """Those in functions that are no derivative's own."""
        private = private_functions(self.module)
        every = ops_of_kind(self.module, ad.DerivativeOp)
        targets = {private[op.target] for op in every}
        for op in every:
            if function_of(op) not in targets:
                yield op

    def expand(self, op: ad.DerivativeOp) -> None:
        derived = self.derived(op)
        code = Emission(op)
        given = {part: operand for part, operand, _ in op.taken()}
        for part, operand, effect in op.taken():
            if part.kind == "shadow" and effect == "write":
                code.fill(operand)
        parameters = zip(derived.takes, derived.function.body.block.args, strict=True)
        arguments = [code.argument(given, part, p.type) for part, p in parameters]
        entry = function_of(op).body.block
        made = inlined(derived.function, arguments, code.ops.append, entry)
        found = dict(zip(derived.gives, made, strict=True))
        results = [found.get(part) or code.zero(r.type) for part, r in op.given()]
        Rewriter.replace_op(op, code.ops, results)

    def derived(self, op: ad.DerivativeOp) -> Derived:
        """The derivative of the op's function; made once for all ops that ask for the same."""
        key = (op.callee, op.order, op.lanes, op.reverse, op.silent, op.takes, op.gives)
        if key not in self.made:
            self.made[key] = self.derive(op)
        return self.made[key]

    def derive(self, op: ad.DerivativeOp) -> Derived:
        asked = [*(part for part, *_ in op.taken()), *(part for part, _ in op.given())]
        fresh = {part for part, _, effect in op.taken() if effect == "write"}
        scratch = apart(self.module, op.target)
        if op.silent is not None:
            silence(only_function(scratch))
        derived = plain(scratch)
        if op.reverse is not None:
            active = active_of(op)
            self.passes.ahead(scratch, active)
            derived = reversed_of(derived, active, self.saves)
            self.passes.behind(scratch)
        for direction in range(1, op.directions + 1):
            self.passes.between(scratch)
            is_last = direction == op.directions
            lanes = 1 if op.lanes is None or not is_last else op.lanes.value.data
            derived = tangent_of(derived, asked, direction, fresh, lanes)
        inline_rules(derived.function)  # which a gradient keeps for the sake of their tangents
        return derived


def apart(module: ModuleOp, name: str) -> ModuleOp:
    """A module with a copy of a function, public, and of those that it calls."""
    private = private_functions(module)
    own = private[name].clone()
    del own.properties["sym_visibility"]
    called: list[func.FuncOp] = []
    if any(isinstance(op, foreign.RuleCallOp | ad.DerivativeOp) for op in own.walk()):
        called = [f.clone() for other, f in private.items() if other != name]
    return ModuleOp([own, *called])


def silence(function: func.FuncOp) -> None:
    """Let a function that runs once more print nothing."""
    for op in every_op(function):
        if isinstance(op, array.PrintOp):
            op.detach()
            op.erase()
        elif isinstance(op, ad.DerivativeOp):
            op.properties["silent"] = UnitAttr()


def plain(scratch: ModuleOp) -> Derived:
    """The function itself."""
    function = only_function(scratch)
    last = function.body.block.last_op
    assert last is not None
    takes = [Part("argument", k) for k in range(len(function.body.block.args))]
    return Derived(function, takes, [Part("result", k) for k in range(len(last.operands))])


def active_of(op: ad.DerivativeOp) -> list[int]:
    """The arguments with respect to which a gradient is asked for."""
    asked = [*(part for part, *_ in op.taken()), *(part for part, _ in op.given())]
    return sorted({part.number for part in asked if part.kind in ("shadow", "gradient")})


def reversed_of(source: Derived, active: Sequence[int], saves: str) -> Derived:
    """The gradient function, with respect to the active arguments."""
    made = gradient_of(source.function, active, saves)
    takes = [*source.takes, *(Part("shadow", k) for k in listed(made, "shadows"))]
    takes += [Part("cotangent", k) for k in listed(made, "cotangents")]
    gives = [*source.gives, *(Part("gradient", k) for k in listed(made, "scalars"))]
    return Derived(instead(made, source.function), takes, gives)


def tangent_of(
    source: Derived, asked: Sequence[Part], direction: int, fresh: Collection[Part], lanes: int
) -> Derived:
    """The tangent function, in a direction in which what is asked for moves; what is `fresh` not at first."""
    moving = {
        Part(p.kind, p.number, frozenset(d for d in p.along if d < direction))
        for p in asked
        if direction in p.along
    }
    places = {k: part for k, part in enumerate(source.takes) if part in moving}
    still = [k for k, part in places.items() if part.moving(direction) in fresh]
    active = [k for k in places if k not in still]
    made, *_ = tangent_functions(source.function, active, still, lanes)
    takes = [*source.takes, *(source.takes[k].moving(direction) for k in listed(made, "moving"))]
    gives = [*source.gives, *(source.gives[k].moving(direction) for k in listed(made, "moved"))]
    return Derived(instead(made, source.function), takes, gives)


def instead(made: func.FuncOp, source: func.FuncOp) -> func.FuncOp:
    """The derived function, in the place of the one that it is derived from."""
    block = source.parent_block()
    assert block is not None
    block.insert_op_before(made, source)
    source.detach()
    source.erase()
    return made


class Emission:
    """The code that takes the place of an op."""

    def __init__(self, op: ad.DerivativeOp) -> None:
        self.op = op
        self.ops: list[Operation] = []

    def emit(self, op: Operation) -> SSAValue:
        op.location = self.op.location
        self.ops.append(op)
        return op.results[0]

    def fill(self, target: SSAValue) -> None:
        """Zeros."""
        extents = extents_of(target, self.emit)
        self.ops.append(fill(target, extents, self.op))

    def zero(self, type_: Attribute) -> SSAValue:
        return self.emit(float_constant(0.0, type_))

    def argument(self, given: dict[Part, SSAValue], part: Part, type_: Attribute) -> SSAValue:
        """An argument of the derived function: what the op takes, else 0."""
        value = given.get(part)
        if not isinstance(type_, MemRefType):
            return value or self.zero(type_)
        if value is None:
            like = given[Part("argument", part.number)]
            value = self.emit(array.AllocOp(extents_of(like, self.emit), type_.element_type))
            value.name_hint = f"{like.name_hint or 'array'}_unused"
            self.fill(value)
        return value if value.type == type_ else self.emit(memref.CastOp.get(value, type_))


def function_of(op: Operation) -> func.FuncOp:
    """The function that an op stands in."""
    above = op.parent_op()
    while not isinstance(above, func.FuncOp):
        assert above is not None
        above = above.parent_op()
    return above


def drop_uncalled(module: ModuleOp) -> None:
    """Erase the private functions that no function of the module calls."""
    private = private_functions(module)
    reached = [op for op in module.ops if op not in private.values()]
    for function in reached:  # which grows
        names = activation.called_by(function)
        reached += [private[n] for n in names if n in private and private[n] not in reached]
    for function in private.values():
        if function not in reached:
            function.detach()
            function.erase()
