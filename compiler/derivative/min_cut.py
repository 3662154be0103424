"""Minimum vertex cut of a small directed graph.

Blocking flows along shortest paths (Dinic 1970) on the split graph. Written here, not taken from
SciPy, because importing `scipy.sparse.csgraph` costs more than the compilation it would serve.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

NodeT = TypeVar("NodeT", bound=Hashable)

INFINITE = float("inf")


@dataclass(frozen=True)
class Vertex(Generic[NodeT]):
    """A node, what leads to it and what asks for it."""

    capacity: float
    made_of: Sequence[NodeT] = ()
    """The nodes behind which it stands; those that are not in the graph are none."""
    is_source: bool = False
    is_sink: bool = False
    work: float = 0.0
    """What it costs where it is neither cut nor cut off: an edge from the source, which is cut then."""


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
    made_of: dict[NodeT, list[NodeT]] = {node: [] for node in capacity}
    for node, targets in edges.items():
        for target in targets:
            made_of[target].append(node)
    sources, sinks = set(sources), set(sinks)
    vertices = {n: Vertex(c, made_of[n], n in sources, n in sinks) for n, c in capacity.items()}
    return Cuts(capacity, vertices).cut({})[0]


class Cuts(Generic[NodeT]):
    """The minimum vertex cuts of graphs that have most vertices in common.

    The flow through those that all graphs have is found once: it is a flow in each of them.
    """

    def __init__(self, nodes: Iterable[NodeT], common: Mapping[NodeT, Vertex[NodeT]]) -> None:
        self._way_in = {
            node: 2 * k for k, node in enumerate(nodes)
        }  # and out, the number behind it
        self._source, self._sink = 2 * len(self._way_in), 2 * len(self._way_in) + 1
        self._graph = _FlowGraph(self._sink + 1)
        self._common = common
        self._connect(common)

    def cut(self, others: Mapping[NodeT, Vertex[NodeT]]) -> tuple[set[NodeT], float]:
        """The minimum cut of the graph that has these vertices, too, and the work that is left.

        Nodes of which there is no vertex are not in the graph.
        """
        before = self._graph.state()
        self._connect(others)
        reach = self._graph.reaching(self._sink)
        cut, left = set[NodeT](), 0.0
        for node, k in self._way_in.items():
            if k + 1 in reach and (vertex := others.get(node) or self._common.get(node)):
                if k not in reach:
                    cut.add(node)
                else:
                    left += vertex.work
        self._graph.restore(before)
        return cut, left

    def _connect(self, vertices: Mapping[NodeT, Vertex[NodeT]]) -> None:
        way_in, graph = self._way_in, self._graph
        for node, vertex in vertices.items():
            entry = way_in[node]
            graph.connect(entry, entry + 1, vertex.capacity)
            for origin in vertex.made_of:
                if (start := way_in.get(origin)) is not None:
                    graph.connect(start + 1, entry, INFINITE)
            if vertex.is_source:
                graph.connect(self._source, entry, INFINITE)
            if vertex.is_sink:
                graph.connect(entry + 1, self._sink, INFINITE)
            if vertex.work:
                graph.connect(self._source, entry, vertex.work)
        graph.saturate(self._source, self._sink)


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

    def state(self) -> list[float]:
        """What `restore` takes to forget later edges, and the flow pushed since."""
        return self.residual.copy()

    def restore(self, residual: list[float]) -> None:
        for e in range(len(self.target) - 1, len(residual) - 1, -1):
            self.edges_of[self.target[e ^ 1]].pop()
        del self.target[len(residual) :]
        self.residual = residual

    def saturate(self, start: int, end: int) -> None:
        """Push flow until no path is left, all shortest paths of one length at a time."""
        while (distance := self._distances(start, end))[end] >= 0:
            tried = [0] * len(self.edges_of)
            while path := self._path(start, end, distance, tried):
                flow = min(self.residual[e] for e in path)
                if flow == INFINITE:
                    raise ValueError("no finite cut separates the sources from the sinks")
                for e in path:
                    self.residual[e] -= flow
                    self.residual[e ^ 1] += flow

    def _distances(self, start: int, end: int) -> list[int]:
        """How many edges with residual capacity lead to each node; -1 where none do, or no fewer to `end`."""
        target, residual = self.target, self.residual
        distance = [-1] * len(self.edges_of)
        distance[start] = 0
        queue = deque([start])
        while queue and distance[end] < 0:
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
