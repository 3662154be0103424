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
    way_in = {node: 2 * k for k, node in enumerate(capacity)}  # and out, the number behind it
    source, sink = 2 * len(way_in), 2 * len(way_in) + 1
    graph = _FlowGraph(sink + 1)
    for entry, limit in zip(way_in.values(), capacity.values(), strict=True):
        graph.connect(entry, entry + 1, limit)
    for node, targets in edges.items():
        for target in targets:
            graph.connect(way_in[node] + 1, way_in[target], INFINITE)
    for node in sources:
        graph.connect(source, way_in[node], INFINITE)
    for node in sinks:
        graph.connect(way_in[node] + 1, sink, INFINITE)
    for node, effort in work.items():
        graph.connect(source, way_in[node], effort)
    graph.saturate(source, sink)
    reach = graph.reaching(sink)
    cut = {node for node, k in way_in.items() if k not in reach and k + 1 in reach}
    return cut, sum(effort for node, effort in work.items() if way_in[node] in reach)


class _FlowGraph:
    """Residual capacities, forward and backward.

    Nodes are numbers; edge e and its reverse e ^ 1 stand side by side.
    """

    def __init__(self, nodes: int) -> None:
        self.edges_of: list[list[int]] = [[] for _ in range(nodes)]
        self.target: list[int] = []
        self.residual: list[float] = []

    def connect(self, start: int, end: int, capacity: float) -> None:
        self.edges_of[start].append(len(self.target))
        self.edges_of[end].append(len(self.target) + 1)
        self.target += (end, start)
        self.residual += (capacity, 0.0)

    def saturate(self, start: int, end: int) -> None:
        """Push flow until no path is left, all shortest paths of one length at a time."""
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
        target, residual = self.target, self.residual
        distance = [-1] * len(self.edges_of)
        distance[start] = 0
        queue = deque([start])
        while queue:
            node = queue.popleft()
            for e in self.edges_of[node]:
                if residual[e] > 0 and distance[target[e]] < 0:
                    distance[target[e]] = distance[node] + 1
                    queue.append(target[e])
        return distance

    def _path(self, start: int, end: int, distance: list[int], tried: list[int]) -> list[int]:
        """The edges of a path on which the distance grows; empty where none is left.

        `tried` counts the first edges of each node that are part of no such path any more.
        """
        target, residual = self.target, self.residual
        path: list[int] = []
        node = start
        while node != end:
            edges, at, following = self.edges_of[node], tried[node], distance[node] + 1
            while at < len(edges) and not (
                residual[edges[at]] > 0 and distance[target[edges[at]]] == following
            ):
                at += 1
            tried[node] = at
            if at < len(edges):
                path.append(edges[at])
                node = target[edges[at]]
            elif path:
                node = target[path.pop() ^ 1]
                tried[node] += 1
            else:
                break
        return path

    def reaching(self, sink: int) -> set[int]:
        """The nodes from which the sink can still be reached with residual capacity."""
        seen = {sink}
        queue = deque(seen)
        while queue:
            for e in self.edges_of[queue.popleft()]:
                origin = self.target[e]
                if origin not in seen and self.residual[e ^ 1] > 0:
                    seen.add(origin)
                    queue.append(origin)
        return seen
