"""Loops: `for` and `while` become `array.loop`.

A scalar that lives across iterations is kept in a cell: stored before the loop and at the end of
each iteration, loaded at the start of each and after the loop. In between it is an SSA value::

    s = 0.0                        memref.store %zero, %s[]
    for i in range(n):             %trips = array.loop %i to %n do {
        s += x[i]                    %s_1 = memref.load %s[]
                                     %s_2 = arith.addf %s_1, %x_i
                                     memref.store %s_2, %s[]
                                     array.yield }
    return s                       %s_3 = memref.load %s[]

Arrays that an iteration permutes (`u, v = v, u`) are carried by the loop. An array variable that is
bound to a fresh array in each iteration lives in a buffer into which the new array is copied
(Note [Rebinding by copy]). Loops over tuples are unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, memref, scf
from xdsl.dialects.builtin import IndexType, MemRefType
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from . import scalars
from .context import Key, LateName, Rebinding, hint
from .emitter import Carried
from .joins import (
    ArrayT,
    Binding,
    MaybeT,
    Mismatch,
    Template,
    coerced,
    ir_types,
    join,
    loosened,
    rebuilt,
    template_of,
)
from .liveness import assigned, reads
from .roots import is_fresh_in, roots
from .statements import Statements
from .values import (
    EXTENT_MAX,
    INT64_MAX,
    INT64_MIN,
    Array,
    NoneValue,
    Scalar,
    Static,
    Tuple,
    Value,
)


@dataclass(frozen=True)
class Iterable:
    """What a `for` runs over: how many items, and the item of each count."""

    count: Scalar
    item: Callable[[SSAValue], Value]
    items: tuple[Value, ...] | None = None


@dataclass
class Variable:
    """A name that lives across the iterations of one loop."""

    name: str
    key: Key
    known: Template
    """Its form before the loop, joined with what an earlier build has learnt."""
    template: Template
    """Its form around the loop."""
    places: list[Place]


@dataclass
class Place:
    """Where one leaf of a variable is kept: in a cell, carried by the loop, or in a buffer."""

    kind: str
    ssa: SSAValue
    number: int = -1
    initial: SSAValue | None = None


class Loops(Statements):
    """Lowers `for` and `while`."""

    def for_statement(self, s: ast.For) -> None:
        iterable = self.iterable(s.iter)
        if iterable.items is not None:
            for item in iterable.items:
                if self.dead:
                    return
                self.bind(s.target, item)
                self.block(s.body)
        elif iterable.count.constant is None or iterable.count.constant > 0:

            def body(i: SSAValue) -> None:
                with self.located(s.target):
                    self.bind(s.target, iterable.item(i))
                self.block(s.body)

            self.loop(s, iterable.count, None, body)
        self.block(s.orelse)

    def while_statement(self, s: ast.While) -> None:
        def body(_: SSAValue) -> None:
            self.refine(s.test, True)
            self.block(s.body)

        self.loop(s, None, s.test, body)
        self.refine(s.test, False)
        self.block(s.orelse)

    # The loop itself

    def loop(
        self,
        s: ast.For | ast.While,
        count: Scalar | None,
        condition: ast.expr | None,
        body: Callable[[SSAValue], None],
    ) -> None:
        changed = assigned(s.target, *s.body) if isinstance(s, ast.For) else assigned(*s.body)
        living = sorted(changed & self.frame.liveness.head[s])
        certain = count is not None and count.low >= 1
        before = dict(self.frame.env)
        variables, late = self.variables(s, living, before)
        carried = [p for v in variables for p in v.places if p.kind == "carried"]
        initial = [p.ssa for p in carried]
        blocks = [
            Block(arg_types=[IndexType(), *(c.type for c in initial)])
            for _ in range(1 if condition is None else 2)
        ]
        for block in blocks:
            arguments = tuple(block.args[1:])
            for argument, place in zip(arguments, carried, strict=True):
                argument.name_hint = place.ssa.name_hint
                self.e.carried[argument] = Carried(arguments, tuple(initial))
            self.name_induction(block.args[0], s)
        span = self.e.span
        if condition is not None:
            with self.e.at(blocks[1]):
                self.enter_iteration(before, variables, late, blocks[1])
                test = self.test(condition)
                self.e.insert(array.ConditionOp(test.ssa))
        with self.e.at(blocks[0]):
            self.enter_iteration(before, variables, late, blocks[0])
            body(blocks[0].args[0])
            self.e.span = span
            ends = self.frame.env
            yielded = list[SSAValue](blocks[0].args[1:])
            copies = list[tuple[Variable, Place, SSAValue]]()
            if not self.dead:
                for variable in variables:
                    self.leave_iteration(variable, ends.get(variable.name), yielded, copies)
                copied = self.copy_back(copies)
            else:
                copied = {}
            late_variables = [] if self.dead else self.late_variables(s, late, ends, certain)
            for variable in late_variables:
                self.store_late(variable, ends[variable.name], certain)
            self.check_permutation(variables, carried, blocks[0], yielded)
            self.e.insert(array.YieldOp(yielded))
        self.dead = False
        self.frame.env = before
        for variable in late_variables:
            self.initialize_late(variable)
        loop = array.LoopOp(None if count is None else count.ssa, initial, *blocks)
        self.e.insert(loop, "trips")
        for name in changed:
            self.frame.env.pop(name, None)
        for variable in (*variables, *late_variables):
            self.leave_loop(variable, loop, carried)
        for variable, place, _ in copies:
            assert place.initial is not None
            start = copied[place.ssa][0]
            self.rebindings.append(
                Rebinding(
                    variable.name,
                    place.ssa,
                    place.initial,
                    start,
                    tuple(copied[place.ssa][1]),
                    span,
                )
            )

    def name_induction(self, induction: SSAValue, s: ast.For | ast.While) -> None:
        match s:
            case ast.For(ast.Name(name)):
                induction.name_hint = name
            case _:
                induction.name_hint = "iteration"

    def variables(
        self, s: ast.stmt, living: Sequence[str], before: dict[str, Binding]
    ) -> tuple[list[Variable], list[str]]:
        """The names bound before the loop, put in their places; the names that the loop will bind."""
        variables, late = list[Variable](), list[str]()
        for name in living:
            binding = before.get(name)
            if binding is None or (
                isinstance(binding, Static) and isinstance(binding.object, LateName)
            ):
                late.append(name)
                continue
            key = (self.frame.path, id(s), name)
            try:
                known = template_of(binding)
                if key in self.facts.widened:
                    known = join(known, self.facts.widened[key])
            except Mismatch as mismatch:
                self.refuse_mismatch(name, str(mismatch), "loop")
            template = loosened(known)
            leaves = coerced(self.e, binding, template)
            places = list[Place]()
            for k, leaf in enumerate(leaves):
                if not isinstance(leaf.type, MemRefType):
                    places.append(Place("cell", self.stored(name, k, leaf)))
                elif (key, k) in self.facts.buffered:
                    places.append(self.buffer(leaf, name))
                else:
                    places.append(Place("carried", leaf))
            variables.append(Variable(name, key, known, template, places))
        number = 0
        for variable in variables:
            for place in variable.places:
                if place.kind == "carried":
                    place.number, number = number, number + 1
        return variables, late

    def cell_key(self, name: str, leaf: int, type_: Attribute) -> tuple[int, str, int, Attribute]:
        return self.frame.serial, name, leaf, type_

    def stored(self, name: str, leaf: int, value: SSAValue) -> SSAValue:
        """The cell of a scalar variable, holding `value`."""
        key = self.cell_key(name, leaf, value.type)
        cell, held = self.cells.get(key, (None, None))
        if cell is None:
            cell = self.e.cell(value.type, name)
        if held is not value:
            self.e.store(value, cell)
        self.cells[key] = cell, value
        return cell

    def loaded(self, name: str, leaf: int, cell: SSAValue) -> SSAValue:
        assert isinstance(cell.type, MemRefType)
        value = self.e.load(cell, name)
        assert isinstance(value.owner, Operation)
        self.loads.append(value.owner)
        self.cells[self.cell_key(name, leaf, cell.type.element_type)] = cell, value
        return value

    def enter_iteration(
        self, before: dict[str, Binding], variables: list[Variable], late: list[str], block: Block
    ) -> None:
        """The names as an iteration finds them."""
        env = dict(before)
        for variable in variables:
            leaves = list[SSAValue]()
            for k, place in enumerate(variable.places):
                if place.kind == "cell":
                    leaves.append(self.loaded(variable.name, k, place.ssa))
                elif place.kind == "carried":
                    leaves.append(block.args[1 + place.number])
                else:
                    leaves.append(place.ssa)
            env[variable.name] = rebuilt(variable.template, iter(leaves))
        for name in late:
            env[name] = Static(LateName())
        self.frame.env = env

    def leave_iteration(
        self,
        variable: Variable,
        end: Binding | None,
        yielded: list[SSAValue],
        copies: list[tuple[Variable, Place, SSAValue]],
    ) -> None:
        """Keep a variable's value for the next iteration."""
        if end is None:
            return
        try:
            template = loosened(join(variable.known, template_of(end)))
        except Mismatch as mismatch:
            self.refuse_mismatch(variable.name, str(mismatch), "loop")
        settled = template == variable.template or only_layout_of_buffers(variable, template)
        if not settled:
            self.facts.widen(variable.key, template)
        leaves = coerced(self.e, end, template)
        if len(leaves) != len(variable.places):
            return
        for k, (leaf, place) in enumerate(zip(leaves, variable.places, strict=True)):
            if place.kind == "carried":
                yielded[place.number] = uncast(leaf)
            elif place.kind == "buffer":
                copies.append((variable, place, leaf))
            elif settled:
                self.stored(variable.name, k, leaf)

    def leave_loop(self, variable: Variable, loop: array.LoopOp, carried: list[Place]) -> None:
        leaves = list[SSAValue]()
        for k, place in enumerate(variable.places):
            if place.kind == "cell":
                leaves.append(self.loaded(variable.name, k, place.ssa))
            elif place.kind == "carried":
                result = loop.results_carried[place.number]
                result.name_hint = variable.name
                leaves.append(result)
            else:
                leaves.append(place.ssa)
        binding = rebuilt(variable.template, iter(leaves))
        hint(binding, variable.name)
        self.frame.env[variable.name] = binding

    # Names that the loop binds first

    def late_variables(
        self, s: ast.For | ast.While, late: list[str], ends: dict[str, Binding], certain: bool
    ) -> list[Variable]:
        found = list[Variable]()
        exits = self.frame.liveness.after[s] | reads(*s.orelse)
        for name in late:
            binding = ends.get(name)
            if binding is None or (
                isinstance(binding, Static) and isinstance(binding.object, LateName)
            ):
                continue
            if name not in exits:
                continue
            try:
                template = loosened(template_of(binding))
            except Mismatch as mismatch:
                self.refuse_mismatch(name, str(mismatch), "loop")
            if not certain and not isinstance(template, MaybeT):
                template = MaybeT(template)
            key = (self.frame.path, id(s), name)
            places = list[Place]()
            for k, type_ in enumerate(ir_types(template)):
                if isinstance(type_, MemRefType):
                    raise self.refusal(
                        s,
                        f"the array `{name}` is first bound inside the loop and read after it",
                        f"bind `{name}` before the loop, with the shape it will have",
                    )
                cell = self.cells.get(self.cell_key(name, k, type_), (None, None))[0]
                places.append(Place("cell", self.e.cell(type_, name) if cell is None else cell))
                self.cells[self.cell_key(name, k, type_)] = places[-1].ssa, None
            found.append(Variable(name, key, template, template, places))
        return found

    def store_late(self, variable: Variable, end: Binding, certain: bool) -> None:
        for k, leaf in enumerate(coerced(self.e, end, variable.template)):
            self.stored(variable.name, k, leaf)

    def initialize_late(self, variable: Variable) -> None:
        """Before the loop the name is unbound: a placeholder, and false."""
        for place, leaf in zip(
            variable.places, coerced(self.e, None, variable.template), strict=True
        ):
            self.e.store(leaf, place.ssa)

    # Arrays

    def check_permutation(
        self, variables: list[Variable], carried: list[Place], block: Block, yielded: list[SSAValue]
    ) -> None:
        """What a loop carries must be a permutation; what is not gets a buffer in the next build."""
        arguments = set(block.args[1:])
        owners = [
            (v.key, k, p) for v in variables for k, p in enumerate(v.places) if p.kind == "carried"
        ]
        kept = dict[int, SSAValue](enumerate(yielded))
        while True:
            allowed = {block.args[1 + n] for n in kept}
            seen = list(kept.values())
            bad = [n for n, y in kept.items() if y not in allowed or seen.count(y) > 1]
            if not bad:
                break
            for n in bad:
                del kept[n]
        for key, k, place in owners:
            if place.number not in kept:
                self.facts.buffer(key, k)
                yielded[place.number] = block.args[1 + place.number]
        assert arguments >= set(yielded) or self.facts.changed

    def buffer(self, initial: SSAValue, name: str) -> Place:
        """A buffer that holds a copy of `initial`."""
        assert isinstance(initial.type, MemRefType)
        fresh = self.e.emit(array.AllocOp(self.e.extents(initial), initial.type.element_type), name)
        self.copy(initial, fresh)
        return Place("buffer", fresh, initial=initial)

    def copy(self, source: SSAValue, target: SSAValue) -> Operation:
        """Copy an array into another of the same shape."""
        assert isinstance(source.type, MemRefType)
        block = Block(arg_types=[source.type.element_type])
        with self.e.at(block):
            self.e.insert(array.YieldOp([block.args[0]]))
        return self.e.insert(
            array.MapOp(self.e.extents(target), [source], [target], ["store"], block)
        )

    def copy_back(
        self, copies: list[tuple[Variable, Place, SSAValue]]
    ) -> dict[SSAValue, tuple[Operation, list[Operation]]]:
        """Copy each variable's new array into its buffer, a buffer that is read before it is written."""
        buffers = {place.ssa for _, place, _ in copies}
        done = dict[SSAValue, tuple[Operation, list[Operation]]]()
        sources = {place.ssa: roots(self.e, leaf) for _, place, leaf in copies}
        self.check_copies(copies, sources, buffers)
        waiting = [c for c in copies if c[2] is not c[1].ssa]
        while waiting:
            ready = [
                c
                for c in waiting
                if not any(c[1].ssa in sources[other[1].ssa] for other in waiting if other is not c)
            ]
            if not ready:
                raise self.refusal(
                    None,
                    f"the arrays {', '.join(f'`{v.name}`' for v, _, _ in waiting)} change places in a way"
                    " that is not the same in each iteration",
                    "swap all of them in each iteration, or copy the contents: a[...] = b",
                )
            for variable, place, leaf in ready:
                done[place.ssa] = self.copy_one(variable, place, leaf)
            waiting = [c for c in waiting if c[1].ssa not in done]
        for _, place, _ in copies:
            if place.ssa not in done:
                first = next(
                    u.operation for u in place.ssa.uses if isinstance(u.operation, array.MapOp)
                )
                done[place.ssa] = first, [first]
        return done

    def copy_one(
        self, variable: Variable, place: Place, leaf: SSAValue
    ) -> tuple[Operation, list[Operation]]:
        first = next(
            u.operation
            for u in place.ssa.uses
            if isinstance(u.operation, array.MapOp) and u.operation.parent is not self.e.block
        )
        wrong: SSAValue | None = None
        for new, old in zip(self.e.extents(leaf), self.e.extents(place.ssa), strict=True):
            if new is not old:
                differs = self.e.emit(arith.CmpiOp(new, old, "ne"))
                wrong = differs if wrong is None else self.e.emit(arith.OrIOp(wrong, differs))
        if wrong is not None:
            text = f"mutad: the array '{variable.name}' changes its shape in a loop"
            self.e.insert(array.RaiseIfOp(wrong, "NotImplementedError", text))
        return first, [first, self.copy(leaf, place.ssa)]

    def check_copies(
        self,
        copies: list[tuple[Variable, Place, SSAValue]],
        sources: dict[SSAValue, frozenset[SSAValue]],
        buffers: set[SSAValue],
    ) -> None:
        """Each new array is fresh in this iteration or another's buffer, and no two share memory."""
        seen = set[SSAValue]()
        for variable, place, leaf in copies:
            for root in sources[place.ssa]:
                own = root is place.ssa
                if own and not self.same_array(leaf, place.ssa):
                    self.refuse_rebinding(variable.name, "a view of its own array")
                if root in seen and root in buffers:
                    what = "the array of another variable, in some iterations only"
                    self.refuse_rebinding(variable.name, what)
                if root in seen:
                    self.refuse_rebinding(variable.name, "an array that has another name too")
                if not own and root not in buffers and not is_fresh_in(root, self.e.block):
                    self.refuse_rebinding(variable.name, "an array that was made before the loop")
            seen |= sources[place.ssa]

    def same_array(self, leaf: SSAValue, buffer: SSAValue) -> bool:
        """True when `leaf` is either the very buffer or memory apart from it."""
        if leaf is buffer:
            return True
        owner = leaf.owner
        if isinstance(owner, memref.CastOp):
            return self.same_array(owner.source, buffer)
        if isinstance(owner, scf.IfOp):
            number = list(owner.results).index(leaf)  # pyright: ignore
            lasts = [region.block.last_op for region in owner.regions]
            return all(
                last is not None and self.same_array(last.operands[number], buffer)
                for last in lasts
            )
        return buffer not in roots(self.e, leaf)

    def refuse_rebinding(self, name: str, what: str) -> None:
        raise self.refusal(
            None,
            f"in this loop `{name}` is rebound to {what}",
            f"change the array in place: {name}[...] = ..., or bind a copy",
        )

    # What a `for` runs over

    def iterable(self, node: ast.expr) -> Iterable:
        with self.located(node):
            if isinstance(node, ast.Call):
                function = self.expression(node.func)
                kind = function.object if isinstance(function, Static) else None
                if kind in (range, enumerate, zip, reversed):
                    return self.iterator(kind, node)
            return self.iterable_value(self.value(node), node)

    def iterator(self, kind: object, node: ast.Call) -> Iterable:
        if any(isinstance(a, ast.Starred) for a in node.args):
            raise self.refusal(node, "`*` in a call is not compiled", "write the arguments out")
        if kind is range:
            if node.keywords or not 1 <= len(node.args) <= 3:
                raise self.refusal(node, "range takes 1 to 3 positional arguments")
            return self.range(node)
        if kind is zip:
            if node.keywords:
                raise self.refusal(node, "`zip` is compiled without keyword arguments")
            return self.zipped([self.iterable(a) for a in node.args], node)
        if not node.args:
            raise self.refusal(node, "an iterator of nothing")
        inner = self.iterable(node.args[0])
        if kind is reversed:
            return self.reversed(inner)
        starts = [*node.args[1:], *(k.value for k in node.keywords if k.arg == "start")]
        if len(starts) > 1 or len(starts) < len(node.args) - 1 + len(node.keywords):
            raise self.refusal(node, "enumerate takes an iterable and `start`")
        start = self.int_value(starts[0]) if starts else self.e.constant(0, "py_int")
        if inner.items is not None:
            numbered = tuple(
                Tuple((scalars.integer(self.e, "Add", start, self.e.constant(k, "py_int")), v))
                for k, v in enumerate(inner.items)
            )
            return Iterable(inner.count, lambda i: NoneValue(), numbered)
        high = max(inner.count.high - 1, 0)

        def item(i: SSAValue) -> Value:
            number = scalars.integer(self.e, "Add", start, Scalar("py_int", i, None, 0, high))
            return Tuple((number, inner.item(i)))

        return Iterable(inner.count, item)

    def iterable_value(self, value: Value, node: ast.expr) -> Iterable:
        if isinstance(value, Tuple):
            count = self.e.constant(len(value.items), "py_int")
            return Iterable(count, lambda i: NoneValue(), value.items)
        if not isinstance(value, Array):
            raise self.refusal(
                node, "this is not something a loop can run over", "use range, an array or a tuple"
            )
        if value.rank == 0:
            raise self.refusal(node, "iteration over a 0-d array")
        extents = self.e.extents(value.memref)
        known = array.constant_value(extents[0])
        count = (
            Scalar("py_int", extents[0], None, 0, EXTENT_MAX)
            if known is None
            else Scalar("py_int", extents[0], known, known, known)
        )
        return Iterable(count, lambda i: self.row(value, extents, i))

    def row(self, value: Array, extents: Sequence[SSAValue], i: SSAValue) -> Value:
        """Item `i` of an array: an element, or a view of one rank less. `i` is in range."""
        if value.rank == 1:
            return Scalar(value.dtype, self.e.emit(memref.LoadOp.get(value.memref, [i])))
        zero, one = self.e.index(0), self.e.index(1)
        rest = range(1, value.rank)
        op = array.ViewOp(
            value.memref, [i, *(zero for _ in rest)], list(rest), extents[1:], [one] * len(rest)
        )
        return Array(self.e.emit(op), value.dtype)

    def int_value(self, node: ast.expr) -> Scalar:
        value = self.value(node)
        if isinstance(value, Scalar) and not scalars.is_float(value.type):
            return scalars.convert(self.e, value, "py_int")
        raise self.refusal(node, "an integer is needed here", "convert with int(...)")

    def range(self, node: ast.Call) -> Iterable:
        parts = [self.int_value(a) for a in node.args]
        zero, one = self.e.constant(0, "py_int"), self.e.constant(1, "py_int")
        start, stop, step = (
            (zero, parts[0], one)
            if len(parts) == 1
            else (*parts, one)
            if len(parts) == 2
            else parts
        )
        if step.low <= 0 <= step.high:
            is_zero = scalars.compare(self.e, "Eq", step, zero)
            scalars.raise_if(self.e, is_zero.ssa, ("ValueError", "range() arg 3 must not be zero"))
        if step.constant == 0:
            return Iterable(zero, lambda i: start, ())
        count = self.range_count(start, stop, step)
        if step.low > 0:
            low, high = start.low, max(start.low, stop.high - 1)
        elif step.high < 0:
            low, high = min(start.high, stop.low + 1), start.high
        else:
            low, high = min(start.low, stop.low), max(start.high, stop.high)

        def item(i: SSAValue) -> Value:
            if step.constant != 1:
                i = self.e.emit(arith.MuliOp(i, step.ssa))
            if start.constant != 0:
                i = self.e.emit(arith.AddiOp(start.ssa, i))
            return Scalar("py_int", i, None, low, high)

        return Iterable(count, item)

    def range_count(self, start: Scalar, stop: Scalar, step: Scalar) -> Scalar:
        """How many ints the range has: max(0, ceil((stop - start) / step))."""
        if start.constant is not None and stop.constant is not None and step.constant is not None:
            return self.e.constant(
                len(range(int(start.constant), int(stop.constant), int(step.constant))), "py_int"
            )
        if step.low > 0:
            span = self.distance(start, stop)
            size: Scalar = step
        elif step.high < 0:
            span = self.distance(stop, start)
            size = scalars.unary(self.e, "USub", step)
        else:
            up = scalars.compare(self.e, "Gt", step, self.e.constant(0, "py_int"))
            span = self.select(up, self.distance(start, stop), self.distance(stop, start))
            size = self.select(up, step, scalars.unary(self.e, "USub", step))
        if size.constant == 1:
            return span
        less = scalars.integer(self.e, "Sub", size, self.e.constant(1, "py_int"))
        padded = self.e.emit(arith.AddiOp(span.ssa, less.ssa))
        ssa = self.e.emit(arith.DivSIOp(padded, size.ssa), "count")
        return Scalar(
            "py_int",
            ssa,
            None,
            -(-span.low // max(size.high, 1)),
            -(-span.high // max(size.low, 1)),
        )

    def select(self, condition: Scalar, a: Scalar, b: Scalar) -> Scalar:
        ssa = self.e.emit(arith.SelectOp(condition.ssa, a.ssa, b.ssa))
        return Scalar("py_int", ssa, None, min(a.low, b.low), max(a.high, b.high))

    def distance(self, start: Scalar, stop: Scalar) -> Scalar:
        """max(stop - start, 0)."""
        low, high = stop.low - start.high, stop.high - start.low
        bounds = max(low, 0), min(max(high, 0), INT64_MAX)
        if start.constant == 0:
            ssa = stop.ssa
        else:
            ssa = self.e.emit(arith.SubiOp(stop.ssa, start.ssa))
        if low >= 0 and high <= INT64_MAX:
            return Scalar("py_int", ssa, None, *bounds)
        zero = self.e.index(0)
        if low >= INT64_MIN and high <= INT64_MAX:
            return Scalar("py_int", self.e.emit(arith.MaxSIOp(ssa, zero), "count"), None, *bounds)
        ahead = scalars.compare_ssa(self.e, "Lt", start.ssa, stop.ssa, "py_int")
        return Scalar(
            "py_int", self.e.emit(arith.SelectOp(ahead, ssa, zero), "count"), None, *bounds
        )

    def zipped(self, parts: list[Iterable], node: ast.Call) -> Iterable:
        """Items side by side, as many as the shortest has."""
        if not parts:
            return Iterable(self.e.constant(0, "py_int"), lambda i: NoneValue(), ())
        if all(p.items is not None for p in parts):
            rows = tuple(Tuple(row) for row in zip(*(p.items or () for p in parts), strict=False))
            return Iterable(self.e.constant(len(rows), "py_int"), lambda i: NoneValue(), rows)
        if any(p.items is not None for p in parts):
            raise self.refusal(
                node, "`zip` of a tuple and an array", "loop over range, and index both"
            )
        count = parts[0].count
        for part in parts[1:]:
            if part.count.ssa is not count.ssa:
                ssa = self.e.emit(arith.MinSIOp(count.ssa, part.count.ssa), "count")
                count = Scalar(
                    "py_int",
                    ssa,
                    None,
                    min(count.low, part.count.low),
                    min(count.high, part.count.high),
                )
        return Iterable(count, lambda i: Tuple(tuple(p.item(i) for p in parts)))

    def reversed(self, inner: Iterable) -> Iterable:
        if inner.items is not None:
            return Iterable(inner.count, inner.item, inner.items[::-1])
        last = scalars.integer(self.e, "Sub", inner.count, self.e.constant(1, "py_int"))
        return Iterable(inner.count, lambda i: inner.item(self.e.emit(arith.SubiOp(last.ssa, i))))


def uncast(value: SSAValue) -> SSAValue:
    """The array under its first type. (All that a loop permutes get one type, in the next build.)"""
    owner = value.owner
    return uncast(owner.source) if isinstance(owner, memref.CastOp) else value


def has_buffer(variable: Variable) -> bool:
    return any(p.kind == "buffer" for p in variable.places)


def only_layout_of_buffers(variable: Variable, template: Template) -> bool:
    """True when all that the new template forgets is the layout of an array that is copied anyway."""
    return (
        has_buffer(variable)
        and isinstance(template, ArrayT)
        and isinstance(variable.template, ArrayT)
        and template.dtype == variable.template.dtype
    )
