"""Programs of 20 to 60 lines with lists, objects and calls: what the time to compile is measured on.

An optimizer that keeps its history in lists, one with objects, recursion, and the kind of code that comes
from a package: functions that call each other, with defaults, constants and early returns.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

# --- A quasi-Newton method with limited memory: lists of arrays that grow and are cut ---------------------


def valley(x):
    return np.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2) + np.sum((1.0 - x[:-1]) ** 2)


def slope(x):
    g = np.zeros_like(x)
    bend = x[1:] - x[:-1] ** 2
    g[1:] += 20.0 * bend
    g[:-1] -= 40.0 * x[:-1] * bend + 2.0 * (1.0 - x[:-1])
    return g


def quasi_newton(start, steps):
    moves, changes = [], []
    x, g = start.copy(), slope(start)
    for _ in range(steps):
        q, weights = g.copy(), []
        for s, y in zip(reversed(moves), reversed(changes)):
            w = np.dot(s, q) / np.dot(y, s)
            weights.append(w)
            q = q - w * y
        if moves:
            q = q * (np.dot(moves[-1], changes[-1]) / np.dot(changes[-1], changes[-1]))
        for s, y, w in zip(moves, changes, reversed(weights)):
            q = q + s * (w - np.dot(y, q) / np.dot(y, s))
        rate, before = 1.0, valley(x)
        while rate > 1e-6 and valley(x - rate * q) > before - 1e-4 * rate * np.dot(g, q):
            rate = 0.5 * rate
        new = x - rate * q
        new_g = slope(new)
        if np.dot(new - x, new_g - g) > 1e-12:
            moves.append(new - x)
            changes.append(new_g - g)
            if len(moves) > 4:
                moves.pop(0)
                changes.pop(0)
        x, g = new, new_g
    return valley(x)


# --- An optimizer of objects: parameters with their moments, a schedule ------------------------------------


class Parameter:
    def __init__(self, value):
        self.value = value
        self.mean = np.zeros_like(value)
        self.spread = np.zeros_like(value)

    def step(self, gradient, rate, count):
        self.mean = 0.9 * self.mean + 0.1 * gradient
        self.spread = 0.99 * self.spread + 0.01 * gradient**2
        mean = self.mean / (1.0 - 0.9**count)
        spread = self.spread / (1.0 - 0.99**count)
        self.value = self.value - rate * mean / (np.sqrt(spread) + 1e-8)


class Schedule:
    def __init__(self, rate, patience):
        self.rate, self.patience, self.waited = rate, patience, 0

    def update(self, loss, best):
        self.waited = 0 if loss < best else self.waited + 1
        if self.waited >= self.patience:
            self.rate, self.waited = 0.5 * self.rate, 0


def trained(data, target, steps):
    weights = Parameter(np.full(data.shape[1], 0.1))
    offset = Parameter(np.zeros(1))
    schedule = Schedule(0.1, 3)
    best, history = math.inf, []
    for count in range(1, steps + 1):
        wrong = np.tanh(data @ weights.value + offset.value[0]) - target
        loss = np.mean(wrong**2)
        back = 2.0 * wrong * (1.0 - (wrong + target) ** 2) / target.size
        weights.step(data.T @ back, schedule.rate, count)
        offset.step(np.full(1, np.sum(back)), schedule.rate, count)
        schedule.update(loss, best)
        best = min(best, loss)
        history.append(loss)
    return best + sum(history[-3:]) / 3.0


# --- Recursion --------------------------------------------------------------------------------------------


def adaptive(f, a, b, whole, depth):
    middle = 0.5 * (a + b)
    left = (middle - a) * (f(a) + 4.0 * f(0.5 * (a + middle)) + f(middle)) / 6.0
    right = (b - middle) * (f(middle) + 4.0 * f(0.5 * (middle + b)) + f(b)) / 6.0
    if depth == 0 or abs(left + right - whole) < 1e-9:
        return left + right + (left + right - whole) / 15.0
    return adaptive(f, a, middle, left, depth - 1) + adaptive(f, middle, b, right, depth - 1)


def recursive_integral(sharpness, shift):
    def peak(x):
        return 1.0 / (1.0 + sharpness * (x - shift) ** 2)

    rough = 2.0 * (peak(-1.0) + 4.0 * peak(0.0) + peak(1.0)) / 6.0
    return adaptive(peak, -1.0, 1.0, rough, 12)


# --- As from a package of engineering formulas --------------------------------------------------------------

GRAVITY, LAMINAR = 9.80665, 2040.0
FITTINGS = {"bend": 0.3, "valve": 2.1, "tee": 0.9}


def reynolds(speed, diameter, density=998.0, viscosity=1e-3):
    return density * speed * diameter / viscosity


def explicit_factor(re, roughness):
    a = (2.457 * math.log(1.0 / ((7.0 / re) ** 0.9 + 0.27 * roughness))) ** 16
    b = (37530.0 / re) ** 16
    return 8.0 * ((8.0 / re) ** 12 + 1.0 / (a + b) ** 1.5) ** (1.0 / 12.0)


def friction_factor(re, roughness=0.0, method=None):
    if re < LAMINAR:
        return 64.0 / re
    if method == "explicit":
        return explicit_factor(re, roughness)
    guess = 1.0 / math.sqrt(explicit_factor(re, roughness))
    for _ in range(50):
        inside = roughness / 3.7 + 2.51 * guess / re
        error = guess + 2.0 * math.log10(inside)
        change = error / (1.0 + 2.0 * 2.51 / (re * inside * math.log(10.0)))
        guess -= change
        if abs(change) < 1e-13:
            return 1.0 / guess**2
    raise ValueError("the friction factor does not converge")


def fitting_loss(speed, name, count=1):
    if name not in FITTINGS:
        raise KeyError(name)
    return count * FITTINGS[name] * speed**2 / (2.0 * GRAVITY)


def pipe_head(flow, diameter, length, roughness):
    speed = flow / (math.pi * diameter**2 / 4.0)
    factor = friction_factor(reynolds(speed, diameter), roughness / diameter)
    head = factor * length / diameter * speed**2 / (2.0 * GRAVITY)
    head += fitting_loss(speed, "bend", 4) + fitting_loss(speed, "valve")
    if speed > 1.0:
        head += fitting_loss(speed, "tee", 2)
    return head


PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[[], tuple[Any, ...]]]] = {
    "quasi_newton": (quasi_newton, lambda: (np.linspace(-1.0, 1.0, 6), 8)),
    "trained": (
        trained,
        lambda: (np.sin(np.arange(24.0)).reshape(8, 3), np.cos(np.arange(8.0)), 10),
    ),
    "recursive_integral": (recursive_integral, lambda: (25.0, 0.3)),
    "pipe_head": (pipe_head, lambda: (0.01, 0.1, 50.0, 4.5e-5)),
}
"""By name, the program and its arguments; gradients are with respect to the first."""
