"""The minimum vertex cut, held against the best of all sets of nodes of small random graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mutad.compiler.derivative.min_cut import INFINITE, Cuts, Vertex, min_vertex_cut


@dataclass(frozen=True)
class Graph:
    """Nodes are numbers; each has a capacity."""

    capacity: dict[int, float]
    edges: dict[int, list[int]]
    sources: list[int]
    sinks: list[int]

    def cut(self) -> set[int]:
        return min_vertex_cut(self.capacity, self.edges, self.sources, self.sinks)

    def cost(self, cut: Iterable[int]) -> float:
        return sum(self.capacity[n] for n in cut)

    def separates(self, cut: Iterable[int]) -> bool:
        return not self.reached(self.edges, self.sources, set(cut)) & set(self.sinks)

    def reached(
        self, edges: Mapping[int, Iterable[int]], starts: Iterable[int], cut: set[int]
    ) -> set[int]:
        """The nodes on ways from `starts` that avoid `cut`."""
        seen: set[int] = set()
        pending = [n for n in starts if n not in cut]
        while pending:
            node = pending.pop()
            if node not in seen:
                seen.add(node)
                pending += [n for n in edges.get(node, ()) if n not in cut]
        return seen

    def behind(self, cut: set[int]) -> set[int]:
        """The nodes that a sink still depends on when `cut` is there: what is left to recompute."""
        operands: dict[int, list[int]] = {}
        for node, users in self.edges.items():
            for user in users:
                operands.setdefault(user, []).append(node)
        return self.reached(operands, self.sinks, cut)

    def all_minimum_cuts(self) -> list[set[int]]:
        """By trying every set of nodes of finite capacity; none where there is no cut."""
        nodes = [n for n, c in self.capacity.items() if c != INFINITE]
        subsets = chain.from_iterable(combinations(nodes, k) for k in range(len(nodes) + 1))
        cuts = [set(s) for s in subsets if self.separates(s)]
        least = min(map(self.cost, cuts), default=INFINITE)
        return [c for c in cuts if self.cost(c) == least]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Up to seven nodes; integer capacities, so that sums are exact and ties are many."""
    n = draw(st.integers(1, 7))
    nodes = list(range(n))
    capacity = {k: draw(st.sampled_from([1.0, 2.0, 3.0, 8.0, INFINITE])) for k in nodes}
    pairs = st.lists(st.tuples(st.sampled_from(nodes), st.sampled_from(nodes)), max_size=14)
    edges: dict[int, list[int]] = {}
    for a, b in draw(pairs):
        if a != b:
            edges.setdefault(a, []).append(b)
    some = st.lists(st.sampled_from(nodes), unique=True, max_size=3)
    return Graph(capacity, edges, draw(some), draw(some))


@settings(max_examples=250, derandomize=True, deadline=None, database=None)
@given(graphs())
def test_the_cut_is_the_cheapest_of_all_and_the_nearest_to_the_sinks(graph: Graph) -> None:
    minima = graph.all_minimum_cuts()
    if not minima:
        with pytest.raises(ValueError, match="no finite cut"):
            graph.cut()
        return
    cut = graph.cut()
    assert cut in minima
    left = graph.behind(cut)
    assert all(left <= graph.behind(other) for other in minima)


@settings(max_examples=250, derandomize=True, deadline=None, database=None)
@given(graphs(), st.lists(st.sets(st.integers(0, 7)), min_size=2, max_size=2))
def test_cuts_of_graphs_that_have_vertices_in_common_are_those_of_each(
    graph: Graph, varying: list[set[int]]
) -> None:
    """Each graph lacks some of the vertices that vary; none sees what was asked of the one before."""
    made_of = {n: [k for k, targets in graph.edges.items() if n in targets] for n in graph.capacity}
    vertices: dict[int, Vertex[int]] = {
        n: Vertex(min(c, 16.0), made_of[n], n in graph.sources, n in graph.sinks, float(n % 3))
        for n, c in graph.capacity.items()
    }
    every = set[int]().union(*varying)
    cuts = Cuts(vertices, {n: v for n, v in vertices.items() if n not in every})
    for taken in (*varying, every, set[int]()):
        others = {n: v for n, v in vertices.items() if n in taken}
        whole = {n: v for n, v in vertices.items() if n in taken or n not in every}
        assert cuts.cut(others) == Cuts(whole, {}).cut(whole)


def test_one_value_behind_many_reads_is_cut_in_one_place() -> None:
    graph = Graph(
        {0: 8.0, 1: 8.0, 2: 8.0, 3: 8.0, 4: 8.0}, {0: [3], 1: [3], 2: [3], 3: [4]}, [0, 1, 2], [4]
    )
    assert graph.cut() == {4}


def test_a_read_that_two_needs_share_is_cut_itself() -> None:
    graph = Graph({0: 8.0, 1: 8.0, 2: 8.0}, {0: [1, 2]}, [0], [1, 2])
    assert graph.cut() == {0}


def test_of_equal_cuts_the_one_nearest_to_the_sinks() -> None:
    chain_of_four = Graph(dict.fromkeys(range(4), 1.0), {0: [1], 1: [2], 2: [3]}, [0], [3])
    assert chain_of_four.cut() == {3}


def test_a_source_that_is_needed_is_cut_itself() -> None:
    assert Graph({0: 1.0}, {}, [0], [0]).cut() == {0}


def test_nothing_is_cut_without_a_way_from_source_to_sink() -> None:
    assert Graph({0: 1.0, 1: 1.0}, {1: [0]}, [0], [1]).cut() == set()
    assert Graph({0: 1.0, 1: 1.0}, {0: [1]}, [], [1]).cut() == set()


def test_values_that_cannot_be_saved_are_passed_by() -> None:
    assert Graph({0: 5.0, 1: INFINITE}, {0: [1]}, [0], [1]).cut() == {0}


def test_no_finite_cut_is_an_error() -> None:
    with pytest.raises(ValueError, match="no finite cut"):
        Graph({0: INFINITE, 1: INFINITE}, {0: [1]}, [0], [1]).cut()
