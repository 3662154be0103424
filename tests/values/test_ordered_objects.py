"""Objects that a class orders, and classes of members, as CPython has them: `<`, `sort`, `min`, loops."""

import enum
from dataclasses import dataclass, field

import numpy as np
import pytest
from object_oracle import agrees, gradient_agrees


class Scheme(enum.Enum):
    EULER = 1
    MIDPOINT = "mid"
    RK4 = 3


class Weight(enum.IntEnum):
    LIGHT = 1
    HEAVY = 4


@dataclass(order=True)
class Individual:
    fitness: float
    place: int
    genes: np.ndarray = field(compare=False)


class Job:
    def __init__(self, cost, weight):
        self.cost = cost
        self.weight = weight

    def __lt__(self, other):
        return self.cost < other.cost


def loops_over_members(x):
    total = 0.0
    for k, scheme in enumerate(Scheme):
        total += k * x[0] if scheme is Scheme.MIDPOINT else x[1] ** 2
    for weight in Weight:
        total += weight * x[2]
    return total + len(Scheme) * x[0]


def members_by_name_and_value(x):
    if Scheme["RK4"] is Scheme(3) and Scheme.EULER in Scheme:
        return x.sum()
    return 0.0


def dataclasses_in_order(x):
    people = [Individual(v * v, i, x * v) for i, v in enumerate(x)]
    people.sort()
    best, worst = min(people), max(people)
    falling = sorted(people, reverse=True)
    if people[0] < people[1] and people[1] >= people[0]:
        return best.fitness * 3 + worst.place + people[1].genes.sum() + falling[0].fitness
    return best.fitness


def equal_first_fields(x):
    people = [Individual(1.0, 2 - i, x[i] * x) for i in range(3)]
    people.sort()
    return people[0].genes[0] + 2.0 * min(people).genes[1] + 3.0 * max(people).genes[2]


def ordered_by_one_method(x):
    jobs = [Job(v, k) for k, v in enumerate(x)]
    jobs.sort()
    total = jobs[0].cost * 2 + jobs[1].cost ** 2 + min(jobs).cost
    if jobs[0] > jobs[1]:
        total += 100.0
    return total + jobs[2].weight


def empty(x):
    jobs = [Job(v, 0) for v in x if v > 100.0]
    return min(jobs).cost


PROGRAMS = [
    loops_over_members,
    members_by_name_and_value,
    dataclasses_in_order,
    equal_first_fields,
    ordered_by_one_method,
]


@pytest.mark.parametrize("function", [*PROGRAMS, empty])
def test_python_agrees(function):
    agrees(function, np.array([0.5, -0.2, 0.8]))


@pytest.mark.parametrize("function", PROGRAMS)
def test_gradient(function):
    gradient_agrees(function, np.array([0.5, -0.2, 0.8]))
