"""Classes of many kinds, for tests of objects."""

import enum
from collections import namedtuple
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import numpy as np

GRAVITY = 9.81


def vector(*numbers):
    return np.array(numbers, float)


@dataclass
class Particle:
    pos: np.ndarray
    vel: np.ndarray
    mass: float = 1.0
    age: int = 0

    drag: ClassVar[float] = 0.5

    def kick(self, force, dt=0.1):
        self.vel += dt * force / self.mass
        self.age += 1
        return self

    @property
    def energy(self):
        return 0.5 * self.mass * (self.vel**2).sum()

    @property
    def weight(self):
        return self.mass * GRAVITY

    @weight.setter
    def weight(self, value):
        self.mass = value / GRAVITY

    @staticmethod
    def doubled(x):
        return 2 * x

    @classmethod
    def resting(cls, pos):
        return cls(pos, np.zeros_like(pos))


@dataclass
class Charged(Particle):
    charge: float = -1.0

    def kick(self, force, dt=0.1):
        super().kick(force * self.charge, dt)
        return self


@dataclass
class World:
    a: Particle
    b: Particle
    t: float = 0.0
    name: str = "world"
    extra: float | None = None


@dataclass(frozen=True)
class Params:
    rate: float
    scale: float = 2.0
    weights: np.ndarray | None = None

    def scaled(self, x):
        return self.scale * self.rate * x


@dataclass(frozen=True)
class Normal:
    x: float
    y: float
    norm: float = field(init=False)

    def __post_init__(self):
        object.__setattr__(self, "norm", (self.x**2 + self.y**2) ** 0.5)


@dataclass(slots=True)
class Slotted:
    x: float
    v: np.ndarray


class Plain:
    count = 3

    def __init__(self, x, k=2.0):
        self.x = x
        self.k = k
        self.total = 0.0

    def step(self, dt):
        self.x = self.x - dt * self.k * self.x
        self.total += self.x

    def __call__(self, y):
        return self.k * y

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.k * i


class Vec:
    __slots__ = ("x", "y")

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vec(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vec(self.x * k, self.y * k)

    __rmul__ = __mul__

    def __neg__(self):
        return Vec(-self.x, -self.y)

    def __eq__(self, other):
        return self.x == other.x and self.y == other.y

    __hash__ = None


class Pair(NamedTuple):
    x: float
    y: float = 2.0

    def dot(self, other):
        return self.x * other.x + self.y * other.y


Point = namedtuple("Point", "x y", defaults=(0.5,))


class Mode(enum.Enum):
    FAST = 1
    SLOW = 2

    @property
    def factor(self):
        return 10.0 if self is Mode.FAST else 0.1


class Level(enum.IntEnum):
    LOW = 0
    HIGH = 2


def particle():
    return Particle(vector(1, 2, 3), vector(0.5, -1, 2), 2.0)


def world():
    return World(particle(), Particle(vector(0, 1, 0), vector(1, 1, 1)))
