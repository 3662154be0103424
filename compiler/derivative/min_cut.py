"""Minimum vertex cut of a small directed graph.

Shortest augmenting paths (Edmonds and Karp 1972) on the split graph. Written here, not taken from
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
    graph.saturate("source", "sink")
    reach = graph.reaching("sink")
    return {node for node in capacity if (node, 0) not in reach and (node, 1) in reach}


class _FlowGraph:
    """Residual capacities, forward and backward."""

    def __init__(self) -> None:
        self.residual: dict[Hashable, dict[Hashable, float]] = {}

    def connect(self, a: Hashable, b: Hashable, capacity: float) -> None:
        out = self.residual.setdefault(a, {})
        out[b] = out.get(b, 0.0) + capacity
        self.residual.setdefault(b, {}).setdefault(a, 0.0)

    def saturate(self, source: Hashable, sink: Hashable) -> None:
        """Push flow along shortest paths until none is left."""
        while (path := self._shortest_path(source, sink)) is not None:
            flow = min(self.residual[a][b] for a, b in path)
            if flow == INFINITE:
                raise ValueError("no finite cut separates the sources from the sinks")
            for a, b in path:
                self.residual[a][b] -= flow
                self.residual[b][a] += flow

    def _shortest_path(
        self, source: Hashable, sink: Hashable
    ) -> list[tuple[Hashable, Hashable]] | None:
        came_from: dict[Hashable, Hashable] = {source: source}
        queue = deque([source])
        while queue:
            node = queue.popleft()
            if node == sink:
                path: list[tuple[Hashable, Hashable]] = []
                while node != source:
                    path.append((came_from[node], node))
                    node = came_from[node]
                return path
            for target, left in self.residual.get(node, {}).items():
                if left > 0 and target not in came_from:
                    came_from[target] = node
                    queue.append(target)
        return None

    def reaching(self, sink: Hashable) -> set[Hashable]:
        """The nodes from which the sink can still be reached with residual capacity."""
        seen = {sink}
        queue = deque([sink])
        while queue:
            node = queue.popleft()
            for origin in self.residual.get(node, {}):
                if origin not in seen and self.residual[origin].get(node, 0.0) > 0:
                    seen.add(origin)
                    queue.append(origin)
        return seen
