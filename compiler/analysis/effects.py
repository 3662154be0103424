"""Effects of calls: which of its arrays each private function reads and writes, and which may overlap.

All three are found for the module as a whole, from nothing upwards, and written on the IR: as `reads` and
`writes` of each `activation.call`, as the attribute `overlaps` of each private function::

    func.func private @walk(%a : memref<?xf64>, %next : memref<?xi64>, %i : index) -> f64 ...
    %r, %y = activation.call @walk(%a, %next, %j ...) frames 1 reads [0, 1] writes [] -> f64
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, MemRefType, i64
from xdsl.ir import SSAValue

from ...dialects import activation
from ..rules import accesses
from .alias import AliasAnalysis

Pairs = set[tuple[int, int]]


def describe_calls(functions: Sequence[func.FuncOp]) -> None:
    """Write what calls touch on the functions of a module; other ops than calls say it themselves."""
    called = {call.target for f in functions for call in activation.calls(f)}
    private = {f.sym_name.data: f for f in functions if f.sym_name.data in called}
    list_overlaps(functions, private)
    list_effects(functions, private)


def is_private(function: func.FuncOp) -> bool:
    visibility = function.sym_visibility
    return visibility is not None and visibility.data == "private"


def list_overlaps(functions: Sequence[func.FuncOp], private: dict[str, func.FuncOp]) -> None:
    """Two arguments may share memory where those of some call may."""
    pairs: dict[str, Pairs] = {name: set() for name in private}
    calls = {f: activation.calls(f) for f in functions}
    changed = True
    while changed:
        changed = False
        for name, function in private.items():
            mark_overlaps(function, pairs[name])
        for function in functions:
            alias = AliasAnalysis(function) if calls[function] else None
            for call in calls[function]:
                assert alias is not None
                new = set(sharing(call.arguments, alias)) - pairs[call.target]
                pairs[call.target] |= new
                changed = changed or bool(new)


def sharing(arguments: Sequence[SSAValue], alias: AliasAnalysis) -> Iterator[tuple[int, int]]:
    """The pairs of arrays among arguments that may share memory."""
    arrays = [(k, a) for k, a in enumerate(arguments) if isinstance(a.type, MemRefType)]
    for (i, a), (j, b) in combinations(arrays, 2):
        if alias.may_alias(a, b):
            yield i, j


def mark_overlaps(function: func.FuncOp, pairs: Iterable[tuple[int, int]]) -> None:
    """Write on a function which of its arguments may share memory."""
    function.attributes["overlaps"] = ArrayAttr(
        [ArrayAttr([IntegerAttr(i, i64), IntegerAttr(j, i64)]) for i, j in sorted(set(pairs))]
    )


def list_effects(functions: Sequence[func.FuncOp], private: dict[str, func.FuncOp]) -> None:
    """A function touches what its ops touch, calls included."""
    calls = [call for f in functions for call in activation.calls(f)]
    touched: dict[str, tuple[frozenset[int], frozenset[int]]] = {
        name: (frozenset(), frozenset()) for name in private
    }
    alias = {name: AliasAnalysis(function) for name, function in private.items()}
    while True:
        for call in calls:
            reads, writes = touched[call.target]
            call.touch(sorted(reads), sorted(writes))
        found = {name: effects_of(f, alias[name]) for name, f in private.items()}
        if found == touched:
            return
        touched = found


def effects_of(
    function: func.FuncOp, alias: AliasAnalysis
) -> tuple[frozenset[int], frozenset[int]]:
    """Which arguments the ops of a function read and write."""
    places: dict[SSAValue, int] = {a: k for k, a in enumerate(function.body.block.args)}
    found: dict[str, set[int]] = {"read": set(), "write": set()}
    for op in function.walk():
        for access in accesses(op):
            roots = (places.get(root) for root in alias.roots(access.memref))
            found[access.kind] |= {k for k in roots if k is not None}
    return frozenset(found["read"]), frozenset(found["write"])
