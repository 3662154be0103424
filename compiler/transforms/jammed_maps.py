"""Writes what `jam-maps` makes of a nest: four iterations at once, with one map for four of them."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Block, Operation, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Subscripts
from ..analysis.carried_cells import cell_of
from ..analysis.in_place import stands_still
from ..analysis.loop_order import Jam
from ..analysis.views import is_memref
from ..diagnostics import locate
from ..rules.builders import element_of
from ..rules.table import ADJOINT
from .interchange import LoopPair, Writer, body_like, is_outside, loop_of
from .map_outputs import is_pure
from .unroll_and_jam import TIMES, Jammed

Out = tuple[Operation, SSAValue]
"""What a map stores or adds to, of its `outs`."""


class JammedMaps(Jammed):
    """Writes the nest, with one map for those of four iterations."""

    few_is_small = False

    def __init__(
        self, pair: LoopPair, jam: Jam, cells: set[SSAValue | None], added: set[Out]
    ) -> None:
        super().__init__(pair, jam)
        self.cells = cells
        self.added = added
        self.numbers: dict[Affine, SSAValue] = {}
        """Of the common loop, by what they are: equal ones are one."""
        self.forms = Subscripts()
        self.own: dict[tuple[SSAValue, int], SSAValue] = {}
        """The cells, and views of them, of each of the four iterations."""

    def blocks(self) -> SSAValue:
        """How many times four iterations there are."""
        before = self.before
        times = before.emit(arith.FloorDivSIOp(self.count, before.constant(TIMES)))
        return before.emit(arith.MaxSIOp(times, before.constant(0)))

    def common(self, first: SSAValue, count: SSAValue) -> array.LoopOp:
        pair = self.pair
        body, writer = body_like(pair.inner)
        shifts = [self.slope * (d - self.shortest) * self.jam.from_end for d in range(TIMES)]
        values = [
            {
                pair.outer.induction: writer.sum(first, d),
                pair.inner.induction: writer.sum(body.args[0], shift),
            }
            for d, shift in enumerate(shifts)
        ]
        for op in pair.inside:
            if pair.inner.count in op.results:  # here all loops run: none is less than 0
                for d, known in enumerate(values):
                    known[op.results[0]] = self.trips(first, d, writer)
                continue
            for d, known in enumerate(values):
                for operand in dict.fromkeys(filter(is_memref, op.operands)):
                    known.setdefault(operand, self.cell(operand, d))
            if isinstance(op, array.MapOp):
                body.add_op(merged(op, values, self.added))
            else:
                self.copy(op, values, writer)
        return loop_of(count, body, pair.inner)

    def copy(
        self, op: Operation, values: Sequence[dict[SSAValue, SSAValue]], writer: Writer
    ) -> None:
        """Copy an op for each of the iterations, and once for those for which it is the same."""
        made: dict[tuple[SSAValue, ...], Operation] = {}
        for known in values:
            operands = tuple(known.get(o, o) for o in op.operands)
            if operands in made and is_pure(op):
                known.update(zip(op.results, made[operands].results, strict=True))
                continue
            writer.copy([op], known)
            last = writer.block.last_op
            assert last is not None
            made[operands] = last
            if isinstance(last, arith.AddiOp | arith.SubiOp):
                known[op.results[0]] = self.numbers.setdefault(
                    self.forms.affine(last.result), last.result
                )

    def cell(self, memref_: SSAValue, d: int) -> SSAValue:
        """The memref in an iteration: of a scalar that each of them sets, its own."""
        if cell_of(memref_) not in self.cells or not is_outside(memref_, self.pair.outer):
            return memref_
        if (memref_, d) not in self.own:
            owner = memref_.owner
            assert isinstance(owner, memref.AllocaOp | array.ViewOp)
            source = owner.source if isinstance(owner, array.ViewOp) else None
            made = owner.clone({} if source is None else {source: self.cell(source, d)})
            made.results[0].name_hint = memref_.name_hint
            self.before.insert(made)
            self.own[memref_, d] = made.results[0]
        return self.own[memref_, d]


def is_of_adjoint(value: SSAValue) -> bool:
    return isinstance(value.owner, Operation) and ADJOINT in value.owner.attributes


def merged(
    op: array.MapOp, values: Sequence[dict[SSAValue, SSAValue]], shared: set[Out]
) -> array.MapOp:
    """One map for that of all iterations, whose values these are; `shared` are rows to which all add."""
    body = Block()
    element: dict[SSAValue, SSAValue] = {}

    def read(memref_: SSAValue) -> SSAValue:
        if memref_ not in element:
            element[memref_] = body.insert_arg(element_of(memref_), len(body.args))
        return element[memref_]

    computed: list[list[SSAValue]] = []
    for known in values:
        inside = dict(known)
        for memref_, argument in zip(op.ins, op.body.block.args, strict=True):
            inside[argument] = read(known.get(memref_, memref_))
            inside[argument].name_hint = argument.name_hint
        *computing, _ = op.body.block.ops
        for inner in computing:
            body.add_op(inner.clone(inside))
        computed.append([inside.get(v, v) for v in op.yielded])
    outs, kinds, yielded = list[SSAValue](), list[array.MapKind](), list[SSAValue]()
    for k, (out, kind) in enumerate(zip(op.outs, op.out_kinds, strict=True)):
        places = [known.get(out, out) for known in values]
        terms = [each[k] for each in computed]
        if (op, out) in shared:
            # The same row for all, whatever computes its number (`MapNest.is_shared`).
            del places[1:]
            total = read(places[0])
            for term in terms:  # in the order of the iterations
                total = added(body, total, term, op.yielded[k], op)
            terms, kind = [total], "store"
        elif len({*places}) == 1:
            del places[1:]
            while len(terms) > 1:
                pairs = zip(terms[::2], terms[1::2], strict=True)
                terms = [added(body, a, b, op.yielded[k], op) for a, b in pairs]
        elif kind == "add" and not stands_still(out):
            pairs = zip(places, terms, strict=True)
            terms = [added(body, read(place), term, op.yielded[k], op) for place, term in pairs]
            kind = "store"
        outs += places
        kinds += [kind] * len(places)
        yielded += terms
    end = array.YieldOp(yielded)
    locate(end, op.location)
    body.add_op(end)
    made = array.MapOp([*op.extents], list(element), outs, kinds, body)
    locate(made, op.location)
    return made


def added(body: Block, a: SSAValue, b: SSAValue, like: SSAValue, op: array.MapOp) -> SSAValue:
    """A sum of the adjoint, where what is added is of it."""
    made = arith.AddfOp(a, b)
    if is_of_adjoint(like):
        made.attributes[ADJOINT] = UnitAttr()
    locate(made, op.location)
    body.add_op(made)
    return made.result
