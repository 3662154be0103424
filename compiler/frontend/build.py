"""From a Python function and the types of its arguments to typed array IR.

One pass over the syntax tree emits the IR of one `func.func`, everything that the function calls
inlined. Types flow forwards; where a loop turns out to need a wider type for a variable, the whole
function is lowered again with what was learnt (Note [Widening by restart])::

    def total(x):                     func.func @total(%x : memref<?xf64>) -> f64 {
        s = 0                           %s = memref.alloca() : memref<f64>
        for v in x:                     ...
            s += v                      %trips = array.loop %v to %x_0 do { ... }
        return s                        func.return %s_2 : f64 }
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType
from typing import Any, Protocol

from xdsl.dialects import arith, func, memref
from xdsl.dialects.builtin import IntegerAttr, MemRefType, ModuleOp, i64
from xdsl.ir import Attribute, Block, BlockArgument, Operation, Region, SSAValue
from xdsl.traits import Pure

from ...dialects import array
from .. import argument_keys
from ..analysis.effects import mark_overlaps
from ..diagnostics import CompileError
from ..names import as_hint, as_symbol
from . import signature
from .bindings import pooling
from .bindings.observable_copies import Visibility, outermost
from .bindings.roots import choices, is_inside, is_root, roots, writes
from .calling import coroutines, recursion, special_calls
from .choices import unknown
from .context import Purpose, Rebinding
from .data import boundary, fields, list_rows, lists, object_lists, returned_lists
from .data.list_room import make_room
from .data.lists import FixedList, ReturnedList
from .emitter import Emitter, Form
from .facts import Facts
from .frames import Captured, Scope
from .library import overlap, read_only
from .loops import Loops
from .syntax.source import Source
from .values import Array, Choice, NoneValue, Scalar, Tuple, Value

MAX_RESTARTS = 40


class BuildOptions(Protocol):
    """What the frontend asks of the options."""

    @property
    def boundscheck(self) -> bool: ...
    @property
    def stretch(self) -> bool: ...
    @property
    def library(self) -> bool: ...


@dataclass
class Built:
    """A function's IR, and what its caller must know besides.

    `results` says how the IR's results make the Python result, `written` which parameters are
    stored to, `sources` and `constants` what the code depends on.
    """

    module: ModuleOp
    results: dict[str, Any]
    written: list[int]
    sources: list[tuple[str, str, str]]
    constants: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    assumed: list[Form] = field(default_factory=list[Form])
    """What callers of the code must have found to be 0."""
    records: dict[str, Any] | None = None
    """How objects are made of the results, and which fields of arguments are assigned (`boundary`)."""
    depends_on_purpose: bool = True
    """Whether another IR is made where the derivative is not taken, or is."""


def build_function(
    function: FunctionType,
    arguments: Sequence[str],
    overlaps: Iterable[tuple[int, int, str]] = (),
    options: BuildOptions | None = None,
    captured: Captured | None = None,
    *,
    with_rules: bool = False,
) -> Built:
    """Lower `function` for arguments of the given keys; CompileError where it is outside the language.

    `arguments` has one key for each parameter, then one for each input that is `captured`. `with_rules`: the
    derivative will be taken, so calls of functions with a rule are kept (`rule_calls`).
    """
    facts = Facts()
    boundscheck = True if options is None else options.boundscheck
    assumes = True if options is None else not options.stretch
    keys, purpose = [argument_keys.parse(text) for text in arguments], Purpose(with_rules)
    for last in range(MAX_RESTARTS - 1, -1, -1):
        facts.changed = facts.provisional = False
        facts.unready.clear()
        build = Build(function, keys, tuple(overlaps), boundscheck, assumes, facts, captured)
        build.lowering.purpose = purpose
        build.emitter.scattered = options is None or not options.library
        try:
            built = build.run()
        except recursion.Again:
            continue
        except CompileError:
            if last and facts.provisional:
                continue
            raise
        if not facts.changed:
            return replace(built, depends_on_purpose=purpose.asked)
    raise CompileError(None, f"the types of {function.__qualname__} do not settle")


class Build:
    """One attempt to lower a function."""

    def __init__(
        self,
        function: FunctionType,
        keys: Sequence[argument_keys.Key],
        overlaps: tuple[tuple[int, int, str], ...],
        boundscheck: bool,
        assumes: bool,
        facts: Facts,
        captured: Captured | None,
    ) -> None:
        self.captured = captured
        self.structure: boundary.Structure | None = getattr(function, "structure", None)
        self.function = function if self.structure is None else self.structure.function
        self.keys, self.overlaps, self.facts = keys, overlaps, facts
        types = [signature.ir_types(key) for key in keys]
        self.entry = Block(arg_types=[t for part in types for t in part])
        self.positions = [k for k, part in enumerate(types) for _ in part]
        self.emitter = Emitter(self.entry, self.entry, None, boundscheck)
        self.emitter.assumed = set() if assumes else None
        parts = (leaf for key in keys for leaf in argument_keys.leaves(key))
        for argument, part in zip(self.entry.args, parts, strict=True):
            if isinstance(part, argument_keys.ArrayKey) and part.read_only:
                self.emitter.read_only.add(argument)
        self.emitter.before = self.check_stores
        self.lowering = Loops(self.emitter, facts)
        self.returned: list[Array] = []
        self.owners: list[Array] = []
        self.flags: list[SSAValue] = []

    def run(self) -> Built:
        lowering = self.lowering
        own, body, liveness, names = lowering.function_parts(self.function)
        a = own.node.args
        if a.vararg or a.kwarg:
            lowering.frame = lowering.new_frame(own, Scope.of(self.function), names, liveness, None)
            raise lowering.refusal(
                own.node, "`*args` and `**kwargs` are not compiled", "name the parameters"
            )
        own_names = [p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs)]
        parameters = list(own_names if self.structure is None else self.structure.names)
        own_count = len(parameters)
        if self.captured is not None:
            parameters += self.captured.names
        if len(parameters) != len(self.keys):
            raise CompileError(
                own.span(own.node),
                f"{len(self.keys)} argument types for {len(parameters)} parameters",
            )
        self.emitter.span = own.span(own.node)
        ir_name = as_symbol(self.function.__name__, "function")
        ir_types = [x.type for x in self.entry.args], list[Attribute]()
        ir_function = func.FuncOp(ir_name, ir_types, Region(self.entry))
        if pairs := self.overlapping_pairs():
            mark_overlaps(ir_function, pairs)
        ir_function.location = self.emitter.span.location()
        frame = lowering.new_frame(own, Scope.of(self.function), names, liveness, None)
        lowering.make_heaps()
        values = self.parameter_values(parameters)
        self.provide(values[own_count:])
        lowering.frame = frame
        own_values = values[:own_count]
        if self.structure is not None:
            own_values = boundary.parameters(lowering, self.structure, own_names, own_values)
        frame.env.update(zip(own_names, own_values, strict=True))
        own_rule = special_calls.own_rule(lowering, self.function, own_values, own.node)
        definition = recursion.definition_of(self.function)
        lowering.calls.append(definition)
        if own_rule is None:
            result = lowering.run_call(frame, body, definition, own.node)
        else:
            result = own_rule
        coroutines.require_ends(lowering)
        if self.facts.unready and not self.facts.changed:
            raise self.facts.unready[0]
        if lowering.objects.leaving is not None:
            lowering.objects.leaving.settle()
        result = lowering.without_rows(result)
        records = None
        if self.facts.changed:  # what is built is thrown away
            result = result if fields.is_plain(result) else NoneValue()
        else:
            result, records = boundary.results(lowering, result, self.structure is not None)
        result = self.with_identity(self.with_lists(result))
        self.returned = arrays_of(result)
        leaves, spec = self.results(result, own)
        if hidden := self.hidden_results(spec, own):
            leaves += hidden
            ir_function.attributes["hidden"] = IntegerAttr(len(hidden), i64)
        self.emitter.insert(func.ReturnOp(*leaves))
        lowering.settle_displays()
        make_room(self.lowering.lists.values(), self.facts)
        private = self.private_functions(ir_function)
        if not self.facts.changed:
            for made in (self, *self.lowering.registry.every):
                read_only.check_calls(made.emitter, getattr(made, "private", ir_function))
        self.erase_dead_loads()
        self.check_rebindings()
        ir_function.update_function_type()
        return Built(
            ModuleOp([ir_function, *lowering.routines, *private]),
            spec,
            self.written(ir_function),
            [s.fingerprint for s in unique(s for s, *_ in self.facts.trees.values())],
            sorted(self.facts.constants.items()),
            sorted(self.emitter.assumed or (), key=repr),
            records,
        )

    def private_functions(self, main: func.FuncOp) -> list[func.FuncOp]:
        """The recursive functions."""
        if not self.lowering.registry.every or self.facts.changed:
            return []
        from .calling.activations import complete

        return complete(main, self.lowering.registry.every)

    # Arguments

    def provide(self, inputs: Sequence[Value]) -> None:
        """Let the lowering find the inputs from outside at their places."""
        if self.captured is None:
            return
        places = [p.key for p in self.captured.inputs]
        self.lowering.inputs = dict(zip(places, inputs, strict=True))
        self.lowering.fixed, self.lowering.outside = self.captured.fixed, self.captured
        self.lowering.watched = frozenset(p.key for p in self.captured.constants)

    def parameter_values(self, parameters: Sequence[str]) -> list[Value]:
        arguments = iter(self.entry.args)
        values = list[Value]()
        hinted = iter(self.entry.args)
        for name, key in zip(parameters, self.keys, strict=True):
            values.append(signature.value_of(key, arguments))
            for text in signature.hints(key, as_hint(name)):
                next(hinted).name_hint = text
        for i, j, kind in self.overlaps:
            if kind == "same":
                values[max(i, j)] = values[min(i, j)]
        return values

    def overlapping_pairs(self) -> list[tuple[int, int]]:
        """The pairs of IR arguments that may share memory."""
        pairs = list[tuple[int, int]]()
        for i, j, kind in self.overlaps:
            if kind == "same":
                continue
            for m in self.arrays_of(i):
                pairs += [(min(m, n), max(m, n)) for n in self.arrays_of(j) if m != n]
        return pairs

    def arrays_of(self, position: int) -> list[int]:
        return [
            k
            for k, p in enumerate(self.positions)
            if p == position and isinstance(self.entry.args[k].type, MemRefType)
        ]

    # The result

    def with_lists(self, result: Value) -> Value:
        """The result, each list in it as an array of its items."""
        if isinstance(result, FixedList):
            raise self.lowering.refusal(
                None, "a list of arrays or of lists is returned", "return a tuple"
            )
        if isinstance(result, Tuple):
            return replace(result, items=tuple(self.with_lists(item) for item in result.items))
        seq = self.lowering.list_of(result)
        return result if seq is None else self.lowering.returned_list(seq)

    def with_identity(self, result: Value) -> Value:
        """The result, where loops that did not run leave the arrays that were there before them."""
        arrays = arrays_of(result)

        def visit(value: Value) -> Value:
            match value:
                case Tuple(items):
                    return replace(value, items=tuple(visit(item) for item in items))
                case Array():
                    others = {
                        r for a in arrays if a is not value for r in roots(self.emitter, a.memref)
                    }
                    found = self.lowering.unless_rebound(value.memref, others)
                    return value if found is value.memref else replace(value, memref=found)
                case _:
                    return value

        return visit(result)

    def results(self, value: Value, own: Source) -> tuple[list[SSAValue], dict[str, Any]]:
        """The IR results, flattened, and the description of the Python result."""
        match value:
            case NoneValue():
                return [], {"kind": "none"}
            case Scalar():
                spec: dict[str, Any] = {"kind": "scalar", "type": value.type}
                if value.python is not None:
                    spec |= {"python": value.python.type, "flag": len(self.flags)}
                    self.flags.append(value.python.when)
                return [value.ssa], spec
            case Tuple(items):
                parts = [self.results(item, own) for item in items]
                return [v for leaves, _ in parts for v in leaves], {
                    "kind": "tuple",
                    "items": [spec for _, spec in parts],
                }
            case ReturnedList():
                leaves, spec = self.array_result(value, own)
                return leaves, {**spec, "list": value.item}
            case Array():
                return self.array_result(value, own)
            case Choice():
                what, _ = unknown(value)
                raise CompileError(
                    own.span(own.node),
                    f"the function's result is one of several kinds: {what}",
                    "give it the same type on every path",
                )
            case _:
                raise CompileError(
                    own.span(own.node),
                    "the function returns something that is not a number, array, tuple or None",
                    "return numbers and arrays",
                )

    def hidden_results(self, spec: dict[str, Any], own: Source) -> list[SSAValue]:
        """What the entry needs to make the results, and does not return: Note [Owners], `weak`."""
        owners = [self.array_result(owner, own) for owner in self.owners]
        if owners:
            spec["owners"] = [one for _, one in owners]
        if self.flags:
            spec["flags"] = len(self.flags)
        return [*(leaf for part, _ in owners for leaf in part), *self.flags]

    def array_result(self, value: Array, own: Source) -> tuple[list[SSAValue], dict[str, Any]]:
        """The array that is returned: an argument itself, a view of one, or fresh memory.

        Where that is dynamic, the result names the arguments `among` which it may be. Arguments
        are named by their place among the function's IR arguments. See Note [Owners].
        """
        value = self.out_of_lists(value, own)
        sources = [value.memref] if value.whole else choices(value.memref)
        itself = {self.place_of(s) for s in sources} - {None}
        if value.whole:
            itself = set[int | None]()
        others = [s for s in sources if value.whole or self.place_of(s) is None]
        bases = {self.place_of(r) for s in others for r in roots(self.emitter, s)}
        if not others and len(itself) == 1:
            return [], self.argument_result(next(p for p in itself if p is not None))
        base = next(iter(bases)) if len(bases) == 1 else None
        owner = None
        is_view = value.whole or not all(isinstance(s.owner, array.AllocOp) for s in others)
        if base is None and is_view:
            owner = self.owner_of(value)
        if owner is None and base is None and not all(map(starts_its_block, others)):
            if len(bases) > 1 or self.is_shared(value):
                raise CompileError(
                    own.span(own.node),
                    "the function returns a view of an array that is chosen at run time",
                    "return a copy: `return x.copy()`",
                )
            value = self.copied(value)
            itself = set[int | None]()
        spec: dict[str, Any] = {
            "kind": "array",
            "dtype": value.dtype,
            "rank": value.rank,
            "base": base,
        }
        if owner is not None:
            spec["owner"] = owner
        if base is None and is_view:
            spec["view"] = True
        if read_only.is_certain(self.emitter, value.memref):
            spec["read_only"] = True
        if itself:
            spec["among"] = sorted(p for p in itself if p is not None)
        return [value.memref], spec

    def out_of_lists(self, value: Array, own: Source) -> Array:
        """The array, copied where it is an item of a list: the list's memory ends with the call."""
        mine = roots(self.emitter, value.memref)
        every = self.lowering.lists.values()
        kept = (one for seq in every if not seq.lent for one in seq.copies)
        copies = [one for one in kept if mine & roots(self.emitter, one.buffer)]
        if mine.isdisjoint(b for seq in every if lists.holds_arrays(seq) for b in seq.memories):
            return value
        handed = [seq for seq in every if seq.key in self.lowering.handed_out]
        if any(b in mine for seq in handed for b in seq.memories):
            raise CompileError(
                own.span(own.node),
                "the function returns a list and one of its arrays",
                "return a copy: `return l, l[0].copy()`",
            )
        others = {r for a in self.returned for r in roots(self.emitter, a.memref)}
        sources = {r for one in copies for r in roots(self.emitter, one.source)}
        if (
            self.is_shared(value)
            or sources & others
            or any(self.place_of(r) is not None for r in sources)
        ):
            raise CompileError(
                own.span(own.node),
                "the function returns an item of a list that may be an array of the caller's, or"
                " returns it twice",
                "return a copy: `return l[0].copy()`",
            )
        return self.copied(value)

    def argument_result(self, place: int) -> dict[str, Any]:
        """An argument that is returned itself; `position` is its parameter, unless a tuple holds it."""
        position = self.positions[place]
        in_tuple = isinstance(self.keys[position], argument_keys.TupleKey)
        return {"kind": "argument", "leaf": place, "position": None if in_tuple else position}

    def owner_of(self, value: Array) -> int | None:
        """Which array, of those that are returned and then of `owners`, owns the memory of a view;
        None where no value is that array."""
        candidate = next(self.owner_candidates(value), None)
        if candidate is None:
            return None
        for k, other in enumerate((*self.returned, *self.owners)):
            if other.memref is candidate and not other.whole:
                return k
        self.owners.append(Array(candidate, value.dtype))
        return len(self.returned) + len(self.owners) - 1

    def is_shared(self, value: Array) -> bool:
        """True when another result is of the same memory: a copy would show."""
        mine = roots(self.emitter, value.memref)
        return any(
            other is not value
            and mine & roots(self.emitter, other.memref)
            and not overlap.disjoint(self.emitter, value.memref, other.memref)
            for other in self.returned
        )

    def owner_candidates(self, value: Array) -> Iterator[SSAValue]:
        """The arrays that a view may have for its base: what it is a view of, or the one allocation."""
        viewed = value.memref
        while isinstance(viewed.owner, array.AnyView | memref.CastOp):
            viewed = viewed.owner.source
        alternatives = choices(viewed)
        if all(is_root(s) for s in alternatives):
            yield viewed
        mine = roots(self.emitter, value.memref)
        if len(mine) == 1:
            yield from (
                r for r in mine if isinstance(r.owner, Operation) and r.owner.parent is self.entry
            )

    def copied(self, value: Array) -> Array:
        """A compact copy: what is returned must start where its memory does, for NumPy to free it."""
        fresh = array.AllocOp(self.emitter.extents(value.memref), value.type.element_type)
        self.emitter.insert(fresh, "result")
        self.lowering.copy(value.memref, fresh.memref)
        return Array(fresh.memref, value.dtype)

    def place_of(self, root: SSAValue) -> int | None:
        """The place among the IR arguments of a root that is one, or None."""
        return root.index if isinstance(root, BlockArgument) and root.owner is self.entry else None

    def written(self, function: func.FuncOp) -> list[int]:
        found = set[int]()
        for op in function.walk():
            for target in writes(op):
                refused = self.emitter.read_only - self.emitter.stored_anyway
                own = roots(self.emitter, target) - refused
                places = (self.place_of(r) for r in own)
                found |= {self.positions[p] for p in places if p is not None}
        for i, j, kind in self.overlaps:
            if kind == "same" and (i in found or j in found):
                found |= {i, j}
        return sorted(found)

    def check_stores(self, op: Operation) -> None:
        for target in writes(op):
            read_only.before_store(self.emitter, op, target)

    # What the lowering left

    def erase_dead_loads(self) -> None:
        """Drop the loads of cells that were never read, and constants that were folded away."""
        for op in reversed(self.lowering.loads):
            if not op.results[0].uses and op.parent is not None:
                op.detach()
                op.erase()
        self.lowering.loads = []
        for op in reversed(list(self.entry.walk())):
            dead = isinstance(op, arith.ConstantOp | memref.DimOp) or op.has_trait(Pure)
            if (
                dead
                and op.results
                and not any(r.uses for r in op.results)
                and op.parent is not None
            ):
                op.detach()
                op.erase()

    def check_rebindings(self) -> None:
        """Refuse the rebindings by copy that the program could tell from real ones."""
        if not self.facts.changed:
            self.lowering.require_known()
        rebindings = self.lowering.rebindings
        copied = [seq for seq in self.lowering.lists.values() if seq.copies]
        if not (rebindings or copied) or self.facts.changed:
            return
        order = {op: k for k, op in enumerate(self.entry.walk())}
        visibility = Visibility(self.emitter, rebindings, order)
        sharing = self.facts.sharing
        own = visibility.own | {*self.lowering.pool_copies}
        self.facts.changed |= list_rows.refuse_visible_copies(
            self.emitter, copied, order, own, outermost, sharing, self.facts.placed
        )
        if not self.facts.changed:
            handed = [seq for seq in copied if seq.key in self.lowering.handed_out]
            returned_lists.refuse_shared_rows(
                self.emitter, handed, self.returned, rebindings, order, outermost
            )
        for seq in copied:
            self.facts.changed |= object_lists.refuse_stale_rows(seq, order, self.facts.placed)
        known_better = list[Operation]()
        for rebinding in rebindings:
            body = rebinding.copies[-1].parent
            if body is None or any(is_inside(op, body) for op in known_better):
                continue  # what a loop in this one does is not known
            if visibility.is_visible(rebinding):
                self.rebind_otherwise(rebinding)
                known_better.append(rebinding.start)

    def rebind_otherwise(self, r: Rebinding) -> None:
        """Let the next build keep the array before the loop until it is rebound, take the first iteration
        out of the loop, or make a pool of arrays; refuse where none is of use."""
        if r.stays is not None and r.stays not in self.facts.staying:
            self.facts.staying.add(r.stays)
            self.facts.changed = True
            return
        name = fields.shown(r.name)
        try:
            with r.loop.one_more(self.facts):
                raise CompileError(
                    r.span,
                    f"`{name}` is rebound to a new array in this loop, and changed in place as well",
                    f"bind a copy before the loop ({name} = {name}.copy()),"
                    f" or assign elements: {name}[...] = ...",
                )
        except CompileError:
            if not pooling.is_of_use(self.facts, r):
                raise


def arrays_of(value: Value) -> list[Array]:
    """The arrays among the results, in order."""
    if isinstance(value, Tuple):
        return [a for item in value.items for a in arrays_of(item)]
    return [value] if isinstance(value, Array) else []


def starts_its_block(value: SSAValue) -> bool:
    """True when element (0, ..., 0) of the array is the first of its allocation."""
    owner = value.owner
    if isinstance(owner, array.CollapseOp):
        return all(map(starts_its_block, choices(owner.source)))
    if isinstance(owner, array.ViewOp):
        return all(array.constant_value(o) == 0 for o in owner.offsets) and all(
            map(starts_its_block, choices(owner.source))
        )
    return isinstance(owner, array.AllocOp)


def unique(sources: Iterable[Source]) -> list[Source]:
    return list({s.fingerprint: s for s in sources}.values())


# Note [Widening by restart]
#
# A loop's variable needs one type, one layout and one range before its body is lowered, but they
# follow from the body. The first build guesses those that the variable has before the loop. At the
# end of a body the guess is joined with what the body leaves; where that is wider, the wider
# template is recorded under (calls, loop, name), the build goes on to collect more of them, and the
# function is lowered again. Templates only ever widen and have few steps to go (int, float; range
# known, sign known, nothing known; compact, strided; carried, in numbers, buffered), so this ends, after one
# or two restarts in practice. A build whose facts changed is thrown away whole.

# Note [Owners]
#
# A view of fresh memory that is returned has a base in Python, the array that owns the memory. The caller
# may never have asked for that array (`y = x * 2; return y[1:], y[2:]`): then it is handed out as a
# result that the entry makes an object of, the base of the views, and does not return. These `owners`
# follow the other results; they have no cotangents.
