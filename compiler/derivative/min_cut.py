"""Minimum vertex cut of a small directed graph.

Blocking flows along shortest paths (Dinic 1970) on the split graph. Written here, not taken from
SciPy, because importing `scipy.sparse.csgraph` costs more than the compilation it would serve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

NodeT = TypeVar("NodeT", bound=Hashable)

INFINITE = float("inf")


def min_vertex_cut(
    capacity: Mapping[NodeT, float],
    edges: Mapping[NodeT, Iterable[NodeT]],
    sources: Iterable[NodeT],
    sinks: Iterable[NodeT],
) -> set[NodeT]:
    """The cheapest nodes whose removal separates every source from every sink.

    Sources and sinks may themselves be removed. Of several minimum cuts the one nearest to the
    sinks is returned: what is cut is what is needed, with the least left to recompute.
    Raises ValueError when no finite cut exists.
    """
    return cut_with_work(capacity, edges, sources, sinks, {})[0]


def cut_with_work(
    capacity: Mapping[NodeT, float],
    edges: Mapping[NodeT, Iterable[NodeT]],
    sources: Iterable[NodeT],
    sinks: Iterable[NodeT],
    work: Mapping[NodeT, float],
) -> tuple[set[NodeT], float]:
    """The minimum vertex cut where nodes that are neither cut nor cut off cost their `work`.

    A node has work to do where everything that it is made of is had: an edge from the source, which is cut
    then. The second result is the work that is left.
    """
    graph = _FlowGraph()
    for node, limit in capacity.items():
        graph.connect((node, 0), (node, 1), limit)
    for node, targets in edges.items():
        for target in targets:
            graph.connect((node, 1), (target, 0), INFINITE)
    for node in sources:
        graph.connect("source", (node, 0), INFINITE)
    for node in sinks:
        graph.connect((node, 1), "sink", INFINITE)
    for node, effort in work.items():
        graph.connect("source", (node, 0), effort)
    graph.saturate("source", "sink")
    reach = graph.reaching("sink")
    cut = {node for node in capacity if (node, 0) not in reach and (node, 1) in reach}
    return cut, sum(effort for node, effort in work.items() if (node, 0) in reach)


class _FlowGraph:
    """Residual capacities, forward and backward.

    Nodes are numbered; edge e and its reverse e ^ 1 stand side by side.
    """

    def __init__(self) -> None:
        self.numbers: dict[Hashable, int] = {}
        self.edges_of: list[list[int]] = []
        self.target: list[int] = []
        self.residual: list[float] = []

    def number(self, node: Hashable) -> int:
        found = self.numbers.setdefault(node, len(self.edges_of))
        if found == len(self.edges_of):
            self.edges_of.append([])
        return found

    def connect(self, a: Hashable, b: Hashable, capacity: float) -> None:
        start, end = self.number(a), self.number(b)
        self.edges_of[start].append(len(self.target))
        self.edges_of[end].append(len(self.target) + 1)
        self.target += (end, start)
        self.residual += (capacity, 0.0)

    def saturate(self, source: Hashable, sink: Hashable) -> None:
        """Push flow until no path is left, all shortest paths of one length at a time."""
        start, end = self.number(source), self.number(sink)
        while (distance := self._distances(start))[end] >= 0:
            tried = [0] * len(self.edges_of)
            while path := self._path(start, end, distance, tried):
                flow = min(self.residual[e] for e in path)
                if flow == INFINITE:
                    raise ValueError("no finite cut separates the sources from the sinks")
                for e in path:
                    self.residual[e] -= flow
                    self.residual[e ^ 1] += flow

    def _distances(self, start: int) -> list[int]:
        """How many edges with residual capacity lead to each node; -1 where none do."""
        distance = [-1] * len(self.edges_of)
        distance[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for e in self.edges_of[node]:
                if self.residual[e] > 0 and distance[self.target[e]] < 0:
                    distance[self.target[e]] = distance[node] + 1
                    queue.append(self.target[e])
        return distance

    def _path(self, start: int, end: int, distance: list[int], tried: list[int]) -> list[int]:
        """The edges of a path on which the distance grows; empty where none is left.

        `tried` counts the first edges of each node that are part of no such path any more.
        """
        path: list[int] = []
        node = start
        while node != end:
            edges, at = self.edges_of[node], tried[node]
            while at < len(edges) and not self._leads_on(edges[at], node, distance):
                at += 1
            tried[node] = at
            if at < len(edges):
                path.append(edges[at])
                node = self.target[edges[at]]
            elif path:
                node = self.target[path.pop() ^ 1]
                tried[node] += 1
            else:
                break
        return path

    def _leads_on(self, e: int, node: int, distance: list[int]) -> bool:
        return self.residual[e] > 0 and distance[self.target[e]] == distance[node] + 1

    def reaching(self, sink: Hashable) -> set[Hashable]:
        """The nodes from which the sink can still be reached with residual capacity."""
        seen = {self.number(sink)}
        queue = deque(seen)
        while queue:
            for e in self.edges_of[queue.popleft()]:
                origin = self.target[e]
                if origin not in seen and self.residual[e ^ 1] > 0:
                    seen.add(origin)
                    queue.append(origin)
        return {node for node, number in self.numbers.items() if number in seen}
