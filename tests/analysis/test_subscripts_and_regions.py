"""Affine subscripts, regions, views compared, versions, and the solver behind them."""

from __future__ import annotations

from itertools import product
from random import Random

from memory_trace import parse
from xdsl.dialects import memref
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from mutad.compiler.analysis.affine import Affine, Extent, affine, equal_numbers, extent
from mutad.compiler.analysis.alias import AliasAnalysis
from mutad.compiler.analysis.feasibility import Fixed, System, feasible
from mutad.compiler.analysis.footprint import Point, Range, Region, covers, disjoint, footprint
from mutad.compiler.analysis.memory_ssa import MemorySSA
from mutad.compiler.rules import accesses

VIEWS = """
!mat = memref<?x?xf64>
!row = memref<?xf64, strided<[1]>>
!any = memref<?xf64, strided<[?]>>
func.func @f(%a : !mat, %i : index, %s : index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c2 = arith.constant 2 : index
  %n = memref.dim %a, %c0 : !mat
  %m = arith.subi %n, %c1 : index
  %m2 = arith.subi %n, %c1 : index
  %row = array.view %a[%i, %c1] dims [1] extents(%m) steps(%c1) : !mat -> !row
  %same = array.view %a[%i, %c1] dims [1] extents(%m2) steps(%c1) : !mat -> !row
  %other = array.view %a[%i, %c0] dims [1] extents(%m) steps(%c1) : !mat -> !row
  %odd = array.view %row[%c0] dims [0] extents(%m) steps(%s) : !row -> !any
  %twice = arith.muli %i, %c2 : index
  %square = arith.muli %i, %i : index
  %clipped = arith.maxsi %m, %c0 : index
  %clipped2 = arith.maxsi %c0, %m2 : index
  %half = array.floordiv %n, %c2 : index
  %rest = array.floormod %n, %c2 : index
  %d = memref.dim %row, %c0 : !row
  %x = memref.load %odd[%i] : !any
  func.return
}
"""


def values(function: FuncOp) -> dict[str, SSAValue]:
    named = {r.name_hint: r for op in function.walk() for r in op.results}
    named |= {
        a.name_hint: a
        for op in function.walk()
        for r in op.regions
        for b in r.blocks
        for a in b.args
    }
    return {k: v for k, v in named.items() if k is not None}


def test_affine_of_arithmetic() -> None:
    v = values(parse(VIEWS))
    n = Affine.of(Extent(v["a"], 0))
    assert affine(v["n"]) == n
    assert affine(v["m"]) == n - 1 == affine(v["d"]) == extent(v["row"], 0)
    assert affine(v["twice"]) == Affine.of(v["i"]) * 2
    assert affine(v["clipped"]) == affine(v["clipped2"])
    assert affine(v["half"]) * 2 + affine(v["rest"]) == n
    assert not affine(v["square"]).is_constant
    assert str(affine(v["m"]) - Affine.of(v["i"]) * 3) == "dim(%a, 0) - 3 * %i - 1"


def test_the_same_view_written_twice_is_the_same() -> None:
    function = parse(VIEWS)
    v, alias = values(function), AliasAnalysis(function)
    assert alias.same_view(v["row"], v["same"])
    assert not alias.same_view(v["row"], v["other"])
    assert not alias.same_view(v["row"], v["a"])
    assert alias.base(v["odd"]) is v["a"]
    assert alias.may_alias(v["row"], v["other"])


MERGED = """
func.func @f(%a : memref<?xf64>, %b : memref<?xf64>, %c : memref<?xf64>, %p : i1, %n : index)
    attributes {overlaps = [[0, 2]]} {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %either = scf.if %p -> (memref<?xf64>) {
    scf.yield %a : memref<?xf64>
  } else {
    scf.yield %b : memref<?xf64>
  }
  %of_a = array.view %a[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64>
  %of_either = array.view %either[%c1] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64>
  %first = array.view %either[%c0] dims [0] extents(%n) steps(%c1) : memref<?xf64> -> memref<?xf64>
  %view = scf.if %p -> (memref<?xf64>) {
    scf.yield %of_a : memref<?xf64>
  } else {
    scf.yield %b : memref<?xf64>
  }
  func.return
}
"""


def test_a_merge_of_arrays_is_one_of_them_or_apart_from_it() -> None:
    function = parse(MERGED)
    v, alias = values(function), AliasAnalysis(function)
    assert alias.same_or_apart(v["a"], v["either"])
    assert alias.same_or_apart(v["of_a"], v["of_either"])
    assert not alias.same_view(v["a"], v["either"])
    assert not alias.same_or_apart(v["of_a"], v["first"])  # one place later
    assert not alias.same_or_apart(v["a"], v["view"])  # a part of it
    assert not alias.same_or_apart(v["c"], v["either"])  # may overlap by any number of places


def test_a_step_known_at_run_time_makes_a_dimension_nonlinear_not_wrong() -> None:
    v = values(parse(VIEWS))
    owner = v["x"].owner
    assert isinstance(owner, memref.LoadOp)
    region = footprint(accesses(owner)[0])
    assert region is not None
    assert region.dimensions[0] == Point(Affine.of(v["i"]))
    assert region.dimensions[1] != Point(Affine.of(v["i"]) + 1)


def test_regions_cover_and_miss_each_other() -> None:
    v = values(parse(VIEWS))
    a, n, i = v["a"], Affine.of(Extent(v["a"], 0)), Affine.of(v["i"])
    whole = Region(a, (Range(Affine(), n, 1),))
    inner = Region(a, (Range(Affine(constant=1), n - 2, 1),))
    first, second = Region(a, (Point(Affine()),)), Region(a, (Point(Affine(constant=1)),))
    anywhere = Region(a, (Point(i),))
    evens = Region(a, (Range(Affine(), n, 2),))
    assert covers(whole, inner)
    assert covers(whole, whole)
    assert covers(evens, evens)
    assert not covers(inner, whole)
    assert not covers(whole, anywhere)
    assert not covers(evens, inner)
    assert not covers(Region(a, whole.dimensions, exact=False), inner)
    assert disjoint(first, second)
    assert disjoint(first, inner)
    assert not disjoint(second, inner)
    assert not disjoint(first, anywhere)


VERSIONS = """
func.func @f(%a : memref<?xf64>, %b : memref<?xf64>, %n : index, %v : f64) {
  %c0 = arith.constant 0 : index
  %x0 = memref.load %a[%c0] : memref<?xf64>
  %x1 = memref.load %a[%c0] : memref<?xf64>
  %t = array.loop %i to %n do {
    %x2 = memref.load %a[%i] : memref<?xf64>
    %y2 = memref.load %b[%i] : memref<?xf64>
    %s = array.loop %j to %n do {
      %x3 = memref.load %a[%j] : memref<?xf64>
      %y3 = memref.load %b[%j] : memref<?xf64>
      array.yield
    }
    memref.store %v, %b[%i] : memref<?xf64>
    array.yield
  }
  %y4 = memref.load %b[%c0] : memref<?xf64>
  memref.store %v, %a[%c0] : memref<?xf64>
  %x5 = memref.load %a[%c0] : memref<?xf64>
  func.return
}
"""


def test_versions_are_equal_exactly_while_nothing_writes() -> None:
    function = parse(VERSIONS)
    v, ssa = values(function), MemorySSA(function)

    def version(name: str) -> object:
        return ssa.version(v[name[0].replace("x", "a").replace("y", "b")], owner(v[name]))

    assert version("x0") == version("x1") == version("x2") == version("x3")
    assert version("x3") != version("x5")
    assert version("y2") == version("y3")
    assert version("y2") != version("y4")
    assert version("x0") != version("y2")


def test_a_version_is_copied_as_far_out_as_it_is_current() -> None:
    function = parse(VERSIONS)
    v, ssa = values(function), MemorySSA(function)
    top, outer = function.body.block, owner(v["x2"]).parent
    assert ssa.version_block(v["a"], owner(v["x3"])) is top
    assert ssa.version_block(v["b"], owner(v["y3"])) is outer
    assert ssa.version_block(v["b"], owner(v["y2"])) is outer


def owner(value: SSAValue) -> Operation:
    assert isinstance(value.owner, Operation)
    return value.owner


def test_the_solver_against_enumeration() -> None:
    """Infeasible is never said of a system that a small point satisfies; and it is said often enough."""
    random = Random(7)
    refuted = empty = 0
    for _ in range(400):
        system = System()
        for variable in "xyz":
            system.at_least_zero({variable: 1}, 4)
            system.at_least_zero({variable: -1}, 4)
        for _ in range(random.randint(1, 4)):
            terms = {v: random.randint(-3, 3) for v in "xyz"}
            add = random.choice([system.zero, system.at_least_zero, system.at_least_zero])
            add(terms, random.randint(-8, 8))
        satisfied = any(
            all(value(r, p) == 0 for r in system.zeros)
            and all(value(r, p) >= 0 for r in system.at_least_zeros)
            for p in product(range(-4, 5), repeat=3)
        )
        answer = feasible(system)
        assert answer or not satisfied
        empty += not satisfied
        refuted += not answer
    assert refuted > 0.9 * empty


def value(row: Fixed, point: tuple[int, ...]) -> int:
    terms, constant = row
    return constant + sum(factor * point[v] for v, factor in terms)


def test_a_system_states_what_one_of_its_inequalities_says() -> None:
    """And what follows from all of them, only the solver finds."""
    system = System()
    system.at_least_zero({"n": 1, "i": -1}, -1)
    system.at_least_zero({"i": 1}, 0)
    copied = system.copy()
    assert copied.states({"i": -1, "n": 1}, -1)
    assert copied.states({"n": 1, "i": -1, "j": 0}, 2)
    assert copied.states({"i": 1}, 1)
    assert not copied.states({"i": 1}, -1)
    assert not copied.states({"n": 1}, -1)
    assert not copied.states({"i": 1, "n": 1}, 0)
    for terms, constant in (({"n": 1, "i": -1}, -1), ({"i": 1}, 0), ({"n": 1}, -1)):
        denied = system.copy()
        denied.at_least_zero({v: -c for v, c in terms.items()}, -constant - 1)
        assert not feasible(denied)


def test_numbers_that_are_certainly_equal() -> None:
    function = parse(VIEWS)
    named = values(function)
    assert equal_numbers(named["m"], named["m2"])
    assert equal_numbers(named["clipped"], named["clipped2"])
    assert equal_numbers(named["x"], named["x"])
    assert not equal_numbers(named["m"], named["n"])
    assert not equal_numbers(named["half"], named["rest"])
