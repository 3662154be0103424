"""Objects that the run refers to: CPython says what they do. (Their gradients' tests compare values, too.)"""

from dataclasses import dataclass

import pytest
from heap_programs import Node, State
from python_oracle import Case, Programs

programs = Programs()
on = programs.on


@dataclass
class Body:
    pos: float
    mass: float


@on("f64[2]")
def one_object_in_a_list_again_and_again(x):
    b = Body(x[0], x[1])
    bodies = []
    for k in range(3):
        bodies.append(b)
        bodies[k].mass += 1.0
    bodies[0].pos = 7.0 * x[0]
    return len(bodies), b.mass, b.pos, bodies[2] is b


@on("f64[2]")
def in_a_list_on_a_path(x):
    b = Body(x[0], x[1])
    bodies = []
    if x[1] > 0.0:
        bodies.append(b)
    b.pos = 1.5 * x[1]
    return len(bodies), sum(c.pos for c in bodies)


@on("f64[3]")
def numbers_of_several_types(x):
    head = None
    for k in range(4):
        n = Node(k, k)
        n.left, head = head, n
    p = head
    while p is not None:
        p.m = p.m * x[0]
        p.x += 1
        p = p.left
    s, t, p = 0, 0.0, head
    while p is not None:
        s += p.x
        t += p.m
        p = p.left
    return s, t, s // 3


@on("f64[2]")
def the_attribute_of_none(x):
    a = Node(0.0, x[0])
    for v in x:
        a.left = a if v > 10 else None
        a.left.m = v
    return a.m


@on("f64[2]")
def an_object_is_returned(x):
    a, b = State(1, x[0]), State(2, x[1])
    c = a if x[0] > x[1] else b
    c.count += 5
    return c.count, c.weight


@pytest.mark.parametrize("case", programs.cases, ids=str)
def test_python_agrees(case: Case) -> None:
    case.check()
