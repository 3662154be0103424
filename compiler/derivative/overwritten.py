"""Old contents: what stores overwrite, saved in the stores' own iteration domains.

They serve every read, of any iteration, whose location a store is the first to overwrite. How an instance is
found and proved to be the first: `first_overwrites`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Attribute, SSAValue

from ...dialects import array
from ..analysis.affine import Affine, Extent, Symbol, Term
from ..rules import Access
from .segments import Margins
from .store_iterations import Conditions


@dataclass(frozen=True)
class Overwritten:
    """The old contents of a store: what its instances overwrite. Of a map, what it overwrites of `target`."""

    store: memref.StoreOp | array.MapOp
    target: SSAValue

    @property
    def extents(self) -> list[SSAValue]:
        """The extents of the store's own index space: the inner dimensions of its segment."""
        return list(self.store.extents) if isinstance(self.store, array.MapOp) else []

    @property
    def element(self) -> Attribute:
        assert isinstance(self.target.type, MemRefType)
        return self.target.type.element_type


@dataclass(frozen=True)
class Instance:
    """An instance of a store: the counters that index its segment, and when it exists.

    The counters are those of loops, outermost first, and then those of the store's own index space.
    """

    of: Overwritten
    at: tuple[Affine, ...]
    where: Conditions
    margins: Margins
    """For each of these loops, how many first and last iterations never are this instance."""


@dataclass(frozen=True)
class Answer:
    """The first of `instances` whose condition holds overwrites what was read; without one it survives.

    `dims` stand for the subscripts of what is read as a whole: by a map, those of its index space.
    """

    access: Access
    instances: tuple[Instance, ...]
    dims: tuple[SSAValue, ...]

    @property
    def may_survive(self) -> bool:
        return bool(self.instances[-1].where)


def served(answer: Answer, saved: Collection[object]) -> bool:
    """True when all old contents that the answer may speak of are saved."""
    return all(one.of in saved for one in answer.instances)


def margins_of(answers: Mapping[Any, Answer]) -> dict[Overwritten, Margins]:
    """The iterations of each store whose old contents none of these answers speaks of."""
    margins: dict[Overwritten, Margins] = {}
    for one in (i for a in answers.values() for i in a.instances):
        pairs = zip(margins.get(one.of, one.margins), one.margins, strict=True)
        margins[one.of] = tuple((min(a, c), min(b, d)) for (a, b), (c, d) in pairs)
    return margins


def symbols_of(answer: Answer) -> Iterator[SSAValue]:
    """The values that the numbers of an answer are computed from."""
    for one in answer.instances:
        yield from symbols_in(*one.at, *one.where)


def symbols_in(*numbers: Affine) -> Iterator[SSAValue]:
    """The values that these numbers are computed from."""
    pending = list(numbers)
    while pending:
        for symbol in pending.pop().terms:
            if isinstance(symbol, Term):
                pending.extend(symbol.args)
            elif isinstance(symbol, Extent):
                yield symbol.memref
            else:
                yield symbol


def is_view(answer: Answer) -> bool:
    """True when what is read as a whole is one view of a segment, or of the memory: no point decides."""
    return not any(decides(n, answer.dims) for one in answer.instances for n in one.where) and all(
        walks_once(one, answer.dims) for one in answer.instances
    )


def is_mosaic(answer: Answer) -> bool:
    """True when each instance is a box of what is read as a whole: the boxes can be put together."""
    numbers = [n for one in answer.instances for n in one.where]
    return all(bounds_one(n, answer.dims) for n in numbers) and all(
        walks_once(one, answer.dims) for one in answer.instances
    )


def decides(number: Affine, dims: Collection[SSAValue]) -> bool:
    return any(symbol in dims for symbol in symbols_in(number))


def bounds_one(number: Affine, dims: Collection[SSAValue]) -> bool:
    """Whether "at least 0" is a bound of one of `dims`, or says nothing of them."""
    here = [s for s in number.terms if s in dims]
    rest = Affine({s: f for s, f in number.terms.items() if s not in here}, number.constant)
    return (
        len(here) <= 1 and all(abs(number.terms[s]) == 1 for s in here) and not decides(rest, dims)
    )


def walks_once(one: Instance, dims: Collection[SSAValue]) -> bool:
    """Each of `dims` is at most one counter of the instance, times a constant."""
    walked: list[Symbol] = []
    for q in one.at:
        here = [s for s in q.terms if s in dims]
        if len(here) > 1 or any(isinstance(s, Term) for s in q.terms):
            return False
        walked += here
    return len(walked) == len(set(walked))
