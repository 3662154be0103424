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

Arrays that an iteration permutes (`u, v = v, u`) are carried by the loop. Those that it rebinds in a
way that is known only at run time are kept in cells too, as numbers (see `forms`, `descriptors`). An array
variable that is bound to a fresh array in each iteration lives in a buffer into which the new array is
copied (see `rebinding`). Loops over tuples are unrolled.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IndexType, MemRefType, i1
from xdsl.ir import Attribute, Block, Operation, SSAValue

from ...dialects import array
from ..analysis.views import strip_casts
from ..names import as_hint
from . import catching, choices, weak
from .bindings import nonlocals, peeling, pooling, resizing
from .bindings.forms import End, Forms
from .bindings.rebinding import Place, Variable, only_layout_of_kept, retyped, uncast
from .bindings.roots import roots
from .calling import coroutines
from .context import Rebinding, hint, is_late
from .data import fixed_items
from .data.list_access import Asked
from .data.lists import lists_in
from .data.object_phis import is_value_template
from .emitter import Carried
from .facts import Key
from .frames import RESULT, VALUE, LateName, Unready
from .joins import (
    Binding,
    MaybeT,
    Mismatch,
    Template,
    coerced,
    deepened,
    ir_types,
    join,
    loosened,
    presence,
    rebuilt,
    template_of,
)
from .library.ranges import claim
from .syntax.exits import LeavableFor, runs_once
from .syntax.liveness import assigned, reads
from .syntax.nodes import binds, negated
from .values import (
    Scalar,
    Static,
    Value,
)


class Loops(Forms):
    """Lowers `for` and `while`."""

    def for_statement(self, s: ast.For) -> None:
        iterable = self.iterable(s.iter)
        until = s.until if isinstance(s, LeavableFor) else None
        items = iterable.items
        if iterable.resumed is not None:
            coroutines.loop(self, s, iterable.resumed)
            self.block(s.orelse)
            return
        if items is None:
            items = fixed_items.rounds_of(self, s, iterable)
        if items is not None:
            with fixed_items.written_out(self, len(items)):
                self.unrolled(s, items, until)
        elif iterable.count.constant is None or iterable.count.constant > 0:
            counters = list[SSAValue]()

            def body(i: SSAValue) -> None:
                counters.append(i)
                fixed_items.note(self, s, i, iterable)
                with self.located(s.target):
                    self.bind(s.target, iterable.item(i))
                self.block(s.body)

            condition = None if until is None else negated(until.id, until)
            if iterable.lists:
                self.list_loop(s, iterable, condition, body)
            else:
                self.loop(s, iterable.count, condition, body)
            for counter in counters if iterable.claimed else ():
                claim(counter)
        else:
            self.leave_out(s.target, *s.body)
        self.block(s.orelse)

    def unrolled(self, s: ast.For, items: Sequence[Value], until: ast.Name | None) -> None:
        """The body once for each item, as long as nothing has left the loop."""
        for k in range(len(items)):
            if self.dead:
                return
            if k and until is not None:

                def others(k: int = k) -> None:
                    self.unrolled(s, items[k:], until)

                names = assigned(s.target, *s.body) & self.frame.liveness.head[s]
                self.conditional(self.expression(until), (lambda: None, others), names)
                return
            self.bind(s.target, items[k])
            self.block(s.body)

    def while_statement(self, s: ast.While) -> None:
        def body(_: SSAValue) -> None:
            self.refine(s.test, True)
            self.block(s.body)

        if binds(s.test):
            raise self.refusal(
                s.test, "`:=` in the condition of a `while` with `else` is not compiled",
                "assign before the loop and at the end of its body",
            )  # fmt: skip
        if (self.frame.place, id(s)) in self.facts.asking:
            self.asking_loop(s)
        else:
            self.loop(s, None, s.test, body)
            self.refine(s.test, False)
        self.block(s.orelse)

    def asking_loop(self, s: ast.While) -> None:
        """A loop whose test assigns to objects: its body begins with the test."""
        goes = self.e.cell(i1, "goes")
        self.e.store(self.e.constant(True, "py_bool").ssa, goes)
        test = ast.copy_location(Asked(), s.test)
        test.answer = lambda: Scalar("py_bool", self.e.load(goes))
        names = assigned(*s.body) & self.frame.liveness.head[s]

        def body(_: SSAValue) -> None:
            condition = self.test(s.test)
            self.e.store(condition.ssa, goes)
            self.conditional(
                condition, (lambda: self.block(s.body), lambda: None), names | {RESULT}
            )

        self.loop(s, None, test, body)

    # The loop itself

    def loop(
        self,
        s: ast.For | ast.While,
        count: Scalar | None,
        condition: ast.expr | None,
        body: Callable[[SSAValue], None],
    ) -> None:
        peeling.lower(self, s, count, condition, body)

    def iterate(
        self,
        s: ast.For | ast.While,
        peeled: peeling.Peeled,
        count: Scalar | None,
        condition: ast.expr | None,
        body: Callable[[SSAValue], None],
    ) -> None:
        """Emit a loop."""
        changed = assigned(s.target, *s.body) if isinstance(s, ast.For) else assigned(*s.body)
        own_fields = self.fields_assigned(s)
        living = sorted((changed & self.frame.liveness.head[s]) | own_fields)
        changed |= own_fields
        older = len(self.objects.keys)
        certain = count.low >= 1 if count is not None else runs_once(s)
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
        if count is not None:
            self.e.counts[blocks[0].args[0]] = count.ssa
        span, pending, depth = self.e.span, catching.NOTHING, len(self.homes)
        if condition is not None:
            with self.e.at(blocks[1]):
                self.enter_iteration(before, variables, late, blocks[1])
                start = dict(self.frame.env)
                with self.catching.scope(frozenset({VALUE})) as asking:
                    self.frame.env[VALUE] = self.test_that_ends(condition)
                    self.require_unchanged(start, s)
                test = self.frame.env.pop(VALUE)
                assert isinstance(test, Scalar)
                self.e.insert(array.ConditionOp(test.ssa))
                pending |= asking.pending
        with self.e.at(blocks[0]):
            self.enter_iteration(before, variables, late, blocks[0])
            outer_cells = nonlocals.fresh_cells(self, s)
            self.loops.append((peeled.key, depth))
            with self.catching.scope(frozenset(living)) as inside:
                body(blocks[0].args[0])
            self.loops.pop()
            self.dead = self.dead and not inside.pending
            self.e.span = span
            ends = self.frame.env
            if not self.dead:
                self.learn_fields(s, before, ends, own_fields, older)
            yielded = list[SSAValue](blocks[0].args[1:])
            copies = list[tuple[Variable, Place, SSAValue]]()
            arrays = list[End]()
            copied = {}
            if not self.dead:
                for variable in variables:
                    self.leave_iteration(variable, ends.get(variable.name), arrays, copies, peeled)
                with pooling.instead(self, variables):
                    self.settle(variables, arrays, blocks[0], before, yielded)
                    copied = {} if self.facts.changed else self.copy_back(copies)
                    pooling.leave(self, variables, blocks[0], before)
            late_variables = (
                [] if self.dead else self.late_variables(s, late, before, ends, certain)
            )
            for variable in late_variables:
                leaves = coerced(self.e, ends[variable.name], variable.template)
                for k, leaf in enumerate(leaves):
                    self.stored(variable.name, k, leaf)
            self.e.insert(array.YieldOp(yielded))
        del self.homes[depth:]
        self.frame.shared.update(outer_cells)
        self.dead = False
        self.frame.env = before
        for variable in late_variables:
            self.initialize_late(variable)
        self.catching.end_with(blocks, inside.pending)
        loop = array.LoopOp(None if count is None else count.ssa, initial, *blocks)
        self.e.insert(loop, "trips")
        initially = {v.name: self.frame.env.get(v.name) for v in variables}
        for name in changed:
            self.frame.env.pop(name, None)
        self.remake((*variables, *late_variables))
        for variable in (*variables, *late_variables):
            self.leave_loop(variable, loop)
        if not certain:
            self.remember_python(initially, loop, None if condition is not None else count)
        for variable, place, leaf in copies if copied else ():
            if place.initial is None or place.moved is not None:
                continue
            always = self.is_new_array(leaf, place.ssa, blocks[0])
            sources = roots(self.e, leaf)
            start = copied[place.ssa][0]
            self.rebindings.append(
                Rebinding(
                    variable.name,
                    place.ssa,
                    place.initial,
                    start,
                    (*place.own, *copied[place.ssa][1]),
                    span,
                    loop.trips if always else None,
                    peeled,
                    (variable.key, place.leaf)
                    if place.ssa in sources and not place.sizes
                    else None,
                    sources,
                    place.now,
                    place.leaf,
                )
            )
        self.catching.announce(pending | inside.pending)

    def test_that_ends(self, condition: ast.expr) -> Scalar:
        """The condition of a loop; False behind what raises wherever it runs."""
        frame, depth = self.frame, len(self.calls)
        try:
            return self.test(condition)
        except Unready:
            if not self.dead:
                raise
            self.frame, self.dead = frame, False
            del self.calls[depth:]
            return self.e.constant(False, "py_bool")

    def name_induction(self, induction: SSAValue, s: ast.For | ast.While) -> None:
        target = s.target if isinstance(s, ast.For) else None
        name = self.frame.named(target.id) if isinstance(target, ast.Name) else "iteration"
        induction.name_hint = as_hint(name)

    def variables(
        self, s: ast.stmt, living: Sequence[str], before: dict[str, Binding]
    ) -> tuple[list[Variable], dict[str, Key]]:
        """The names bound before the loop, put in their places; the names that the loop will bind."""
        variables, late = list[Variable](), dict[str, Key]()
        keys = {name: (self.frame.place, id(s), name) for name in living}
        for key in keys.values() & self.facts.widened.keys():
            self.outgrow(self.facts.widened[key])
        for name, key in keys.items():
            binding = None if is_late(before.get(name)) else before.get(name)
            learnt = self.facts.widened.get(key)
            learnt = learnt and self.begun_outside(name, learnt)
            if binding is not None and is_value_template(learnt):
                binding = self.as_value(binding, before)
            if binding is None and learnt is None:
                late[name] = key
                continue
            if binding is None and learnt is not None:
                self.keep_around(before.get(name), learnt)
            try:
                known = learnt if binding is None else template_of(binding)
                assert known is not None
                if learnt is not None:
                    known = join(known, learnt)
            except Mismatch as mismatch:
                self.refuse_mismatch(name, mismatch, "loop")
            template = loosened(known)
            leaves = coerced(self.e, binding, template)
            optional = [one is not None for one in presence(self.e, template, iter(leaves))]
            places = list[Place]()
            for k, leaf in enumerate(leaves):
                if not isinstance(leaf.type, MemRefType):
                    places.append(Place("cell", self.stored(name, k, leaf)))
                elif (key, k) in self.facts.pooled:
                    places.append(Place("pooled", leaf, initial=leaf))
                elif (key, k) in self.facts.resized:
                    places.append(resizing.place_of(self, leaf, name))
                elif (key, k) in self.facts.buffered:
                    if optional[k] and resizing.is_shapeless(leaf):
                        self.facts.resize(key, k)
                    stays = (key, k) in self.facts.staying
                    places.append(self.place_in_buffer(leaf, name, stays=stays))
                elif (key, k) in self.facts.forms:
                    places.append(self.described(leaf, name, (key, k), before))
                else:
                    places.append(Place("carried", leaf))
            for k, place in enumerate(places):
                place.leaf = k
            variables.append(Variable(name, key, known, template, places))
        pooling.enter(self, variables, before)
        carried = [p for variable in variables for p in variable.places if p.kind == "carried"]
        for number, place in enumerate(carried):
            place.number = number
        return variables, late

    def cell_key(self, name: str, leaf: int, type_: Attribute) -> tuple[int, str, int, Attribute]:
        return self.frame.serial, name, leaf, type_

    def stored(self, name: str, leaf: int, value: SSAValue) -> SSAValue:
        """The cell of a scalar variable, holding `value`."""
        key = self.cell_key(name, leaf, value.type)
        cell, held = self.cells.get(key, (None, None))
        if cell is None:
            cell = self.e.cell(value.type, self.frame.named(name))
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
        self,
        before: dict[str, Binding],
        variables: list[Variable],
        late: dict[str, Key],
        block: Block,
    ) -> None:
        """The names as an iteration finds them."""
        env = dict(before)
        self.homes.append(block)
        self.remake(variables)
        for variable in variables:
            env[variable.name] = self.found(variable, block.args[1:])
        for name, key in late.items():
            env[name] = Static(LateName(key))
        self.frame.env = env

    def found(self, variable: Variable, carried: Sequence[SSAValue]) -> Binding:
        """A variable where it was kept, as an iteration or the code after the loop finds it."""
        leaves = list[SSAValue]()
        for k, place in enumerate(variable.places):
            if place.kind == "cell":
                leaves.append(self.loaded(variable.name, k, place.ssa))
            elif place.kind == "carried":
                leaves.append(carried[place.number])
            elif place.described is not None:
                assert place.described.now is not None
                leaves.append(place.described.now)
            elif place.now is not None:
                leaves.append(place.now)
            else:
                leaves.append(place.ssa)
        variable.template = retyped(variable.template, iter(leaves))
        return rebuilt(variable.template, iter(leaves))

    def leave_iteration(
        self,
        variable: Variable,
        end: Binding | None,
        arrays: list[End],
        copies: list[tuple[Variable, Place, SSAValue]],
        peeled: peeling.Peeled,
    ) -> None:
        """Keep a variable's value for the next iteration."""
        if end is None:
            return
        end = self.one_object(variable, end)
        try:
            wider = join(variable.known, template_of(end))
            self.use_heap(*deepened(wider, variable.known, template_of(end)))
            template = loosened(wider)
            require_lasting(template)
        except Mismatch as mismatch:
            with peeled.one_more(self.facts):
                self.refuse_mismatch(variable.name, mismatch, "loop")
            raise Unready from None
        settled = template == variable.template or only_layout_of_kept(variable, template)
        if not settled:
            self.facts.widen(variable.key, template)
        leaves = coerced(self.e, end, template)
        if len(leaves) != len(variable.places):
            return
        there = list(presence(self.e, template, iter(leaves)))
        for k, (leaf, place) in enumerate(zip(leaves, variable.places, strict=True)):
            place.end = leaf
            if place.kind in ("carried", "described"):
                arrays.append(End(variable, place, uncast(leaf)))
            elif place.kind == "buffer":
                place.there = there[k]
                copies.append((variable, place, leaf))
            elif settled:
                self.stored(variable.name, k, leaf)

    def leave_loop(self, variable: Variable, loop: array.LoopOp) -> None:
        for place in variable.places:
            if place.sizes:
                place.now = resizing.outlived(self, place)
        binding = self.found(
            variable,
            [
                first if strip_casts(last) is argument else result
                for first, argument, last, result in zip(
                    loop.carried, loop.body_carried, loop.yielded, loop.results_carried, strict=True
                )
            ],
        )
        hint(binding, self.frame.named(variable.name))
        self.frame.env[variable.name] = binding

    def remember_python(
        self, initially: dict[str, Binding | None], loop: array.LoopOp, count: Scalar | None
    ) -> None:
        """Python scalars that a loop makes NumPy's are Python's still where it does not run."""
        env = self.frame.env
        kept = [n for n, b in initially.items() if n in env and weak.may_stay(b, env[n])]
        if kept:
            trips = loop.trips if count is None else count.ssa
            never = self.e.emit(arith.CmpiOp(trips, self.e.index(0), "sle"))
            for name in kept:
                env[name] = weak.after_loop(self.e, never, initially[name], env[name])

    # Names that the loop binds first

    def late_variables(
        self,
        s: ast.For | ast.While,
        late: dict[str, Key],
        before: dict[str, Binding],
        ends: dict[str, Binding],
        certain: bool,
    ) -> list[Variable]:
        """Scalars that every iteration binds, and no earlier one is asked for; the next build knows
        the others from the start."""
        found = list[Variable]()
        exits = self.frame.liveness.after[s] | reads(*s.orelse)
        for name, key in late.items():
            binding = ends.get(name)
            if binding is None or is_late(binding):
                continue
            if name not in exits and key not in self.facts.early:
                continue
            binding = ends[name] = self.outliving(binding, ends)
            try:
                template = loosened(template_of(binding))
                require_lasting(template)
            except Mismatch as mismatch:
                self.refuse_mismatch(name, mismatch, "loop")
            template = choices.with_forms(template)
            arrays = any(isinstance(type_, MemRefType) for type_ in ir_types(template))
            inner = any(self.is_gone(one, self.homes[:-1]) for one in lists_in(template))
            if arrays or inner or key in self.facts.early:
                known = template if isinstance(template, MaybeT) else MaybeT(template)
                self.keep_from_start(key, known)
                continue
            if not certain and not isinstance(template, MaybeT):
                template = MaybeT(template)
            if isinstance(template, MaybeT):
                self.keep_around(before.get(name), template)
            places = list[Place]()
            for k, type_ in enumerate(ir_types(template)):
                cell = self.cells.get(self.cell_key(name, k, type_), (None, None))[0]
                places.append(Place("cell", self.e.cell(type_, name) if cell is None else cell))
                self.cells[self.cell_key(name, k, type_)] = places[-1].ssa, None
            found.append(Variable(name, key, template, template, places))
        return found

    def initialize_late(self, variable: Variable) -> None:
        """Before the loop the name is unbound: a placeholder, and false."""
        for place, leaf in zip(
            variable.places, coerced(self.e, None, variable.template), strict=True
        ):
            self.e.store(leaf, place.ssa)


def require_lasting(template: Template) -> None:
    """A loop's variable is no nested function or another."""
    if not choices.is_lasting(template):
        raise Mismatch("a nested function on one path and another object on another")
