"""Conditional nodes of the emulated driver: graphs with a body that is repeated as long as a number is not 0.

Each graph that is launched sets the numbers that belong to it to their defaults; kernels set them to others.
A node comes behind the last one of its graph, or it is refused: what it would wait for otherwise is unknown.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .device_text import CONDITIONAL_NODE, REPEATED
from .emulated_functions import INVALID_VALUE, Function, Refused
from .emulated_streams import Graph

if TYPE_CHECKING:
    from .emulated_driver import EmulatedDriver

ASSIGN_DEFAULT = 1
"""The flag of a number that is set where its graph is launched."""


@dataclass(eq=False)
class Node:
    """A node with a condition: the graph that it is in, and its own."""

    graph: Graph
    body: Graph


class ConditionalGraphs:
    """The numbers of an emulated driver that conditions are, and the nodes that they decide on."""

    def __init__(self, driver: EmulatedDriver) -> None:
        self.driver = driver
        self.values: dict[int, int] = {}
        """By their handles."""
        self.owners: dict[int, Graph] = {}
        self.nodes: list[Node] = []
        self.lists: list[Any] = []
        """Memory that the driver has told the addresses of."""
        self.repeated = 0
        """How often a body was run."""

    def new_handle(self, graph: Graph, place: int, default: int, flags: int) -> None:
        if flags != ASSIGN_DEFAULT:
            self.refuse()
        self.driver.made += 16
        handle = self.driver.made
        self.values[handle], self.owners[handle] = default, graph
        graph.steps.append(lambda: self.values.update({handle: default}))
        self.put(place, handle)

    def setter(self) -> Function:
        """The kernel that sets a number: of a flag in memory."""

        def run(parameters: Any, blocks: int, shift: int) -> None:
            handle, flag = (self.word(parameters[k]) for k in range(2))
            assert handle in self.values, "this is no condition of a graph"
            self.values[handle] = int(self.word(flag + shift) != 0)

        return Function("mutad_set_condition", run, ["i64", "ptr"], [0], [8])

    def tell(self, graph: Graph, places: Sequence[int]) -> None:
        """What is captured, and behind which node the next one comes."""
        status, _, _, last, count = places
        ctypes.c_int.from_address(status).value = 1
        self.put(last, self.kept(len(graph.steps)))
        self.put(count, 1)

    def add(
        self, graph: Graph, place: int, last: int, edges: int | None, count: int, params: int
    ) -> None:
        """A node, behind the last one, with a body that is still empty."""
        words = [self.word(params + 8 * k) for k in range(32)]
        kind, handle, form, bodies, context = words[0], *words[2:6]
        if edges or count != 1 or self.word(last) != len(graph.steps):
            self.refuse()
        if kind != CONDITIONAL_NODE or form != REPEATED | 1 << 32 or bodies or any(words[6:]):
            self.refuse()
        if self.owners.get(handle) is not graph or context != self.driver.current + 1:
            self.refuse()
        body = Graph()

        def repeat() -> None:
            while self.values[handle]:
                self.repeated += 1
                for step in body.steps:
                    step()

        graph.steps.append(repeat)
        slot = self.kept(0)
        self.driver.handle(body, slot)
        self.put(params + 32, slot)
        self.driver.handle(node := Node(graph, body), place)
        self.nodes.append(node)

    def within(self, graph: Graph) -> list[Any]:
        """What goes with a graph that is destroyed."""
        nodes = [node for node in self.nodes if node.graph is graph]
        self.nodes = [node for node in self.nodes if node.graph is not graph]
        return [graph, *nodes, *(node.body for node in nodes)]

    def kept(self, value: int) -> int:
        """The address of a word that stays."""
        self.lists.append(ctypes.c_uint64(value))
        return ctypes.addressof(self.lists[-1])

    def refuse(self) -> None:
        raise Refused(INVALID_VALUE)

    @staticmethod
    def word(place: int) -> int:
        return ctypes.c_uint64.from_address(place).value

    @staticmethod
    def put(place: int, value: int) -> None:
        ctypes.c_uint64.from_address(place).value = value
