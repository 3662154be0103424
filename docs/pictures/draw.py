"""Draw the pictures of tutorials and gallery, from what their own snippets compute: `make pictures`."""

from __future__ import annotations

import re
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

HERE = Path(__file__).parent
BLUE, RED, GREY = "#2563eb", "#dc2626", "#9ca3af"
Namespace = dict[str, Any]


def computed(page: Path) -> Namespace:
    """The names that the page's snippets leave; the compiler reads their sources from files."""
    namespace: Namespace = {"__name__": "__main__"}
    with tempfile.TemporaryDirectory() as folder:
        for k, code in enumerate(
            re.findall(r"^```python\n(.*?)^```$", page.read_text(), re.S | re.M)
        ):
            file = Path(folder) / f"{k}.py"
            file.write_text(code)
            exec(compile(code, str(file), "exec"), namespace)
    return namespace


def panels(count: int) -> list[Axes]:
    figure, axes = plt.subplots(1, count, figsize=(8.0, 2.9), squeeze=False, layout="constrained")
    for axis in axes[0]:
        axis.spines[["top", "right"]].set_visible(False)
    assert figure is plt.gcf()
    return list(axes[0])


def inverse_problem(at: Namespace) -> None:
    record, profile = panels(2)
    record.plot(at["seen"], color=BLUE, lw=1)
    record.set(xlabel="step", ylabel="pressure at the surface", ylim=(-0.15, 0.25))
    profile.plot(at["depth"], at["guess"], color=GREY, label="guess")
    profile.plot(at["depth"], at["true_speed"], color=RED, lw=4, alpha=0.4, label="truth")
    profile.plot(at["depth"], at["found"].x, color=BLUE, label="found")
    profile.set(xlabel="depth", ylabel="speed")
    profile.legend(frameon=False)


def optimal_control(at: Namespace) -> None:
    torque, angle = panels(2)
    ends = np.linspace(0, 12, at["best"].x.size + 1)
    torque.stairs(at["best"].x, ends, color=BLUE)
    torque.set(xlabel="time", ylabel="torque")
    for values, color, label in ((at["torque"], GREY, "first"), (at["best"].x, BLUE, "best")):
        states = np.zeros((values.size + 1, 2))
        for k in range(1, values.size + 1):
            at["swing"](values[:k], states[k], ends[k], 1e-4)
        angle.plot(ends, states[:, 0], color=color, label=label)
    angle.axhline(np.pi, color=RED, lw=1, ls=":")
    angle.set(xlabel="time", ylabel="angle")
    angle.legend(frameon=False)


def gaussian_process(at: Namespace) -> None:
    (axis,) = panels(1)
    x, mean, spread = at["at"], at["mean"], at["spread"]
    axis.fill_between(x, mean - 2 * spread, mean + 2 * spread, color=BLUE, alpha=0.2, lw=0)
    axis.plot(x, mean, color=BLUE)
    axis.plot(at["x"], at["y"], ".", color=RED, ms=4)
    axis.set(xlabel="x", ylabel="y")


def recurrent_network(at: Namespace) -> None:
    loss, said = panels(2)
    loss.semilogy(at["losses"], color=BLUE, lw=0.7)
    loss.set(xlabel="step", ylabel="loss")
    series, wanted = at["example"](np.random.default_rng(5), 60)
    states, out = np.zeros((61, at["network"].bias.size)), np.empty(60)
    at["network"].run(series, states, out)
    said.step(range(60), wanted, color=RED, lw=4, alpha=0.4, where="mid", label="wanted")
    said.step(range(60), out, color=BLUE, where="mid", label="said")
    said.set(xlabel="time")
    said.legend(frameon=False)


def orbits(at: Namespace) -> None:
    tracks, masses = panels(2)
    for k in range(4):
        tracks.plot(*at["seen"][:, k].T, ".", ms=3)
    tracks.plot(0, 0, "*", color=RED)
    tracks.set_aspect("equal")
    masses.bar(range(4), at["true_mass"], width=0.7, color=RED, alpha=0.4, label="truth")
    masses.plot(at["fit"].x[:4], "o", color=BLUE, label="found")
    masses.axhline(at["guess"][0], color=GREY, label="guess")
    masses.set(xlabel="planet", ylabel="mass", xticks=range(4))
    masses.legend(frameon=False)


def pytorch_model(at: Namespace) -> None:
    river, soil = panels(2)
    days = slice(100, 160)
    river.plot(at["seen"][days, 33], color=RED, lw=4, alpha=0.4, label="seen")
    river.plot(at["found"][days, 3], color=BLUE, label="model")
    river.set(xlabel="day", ylabel="flow of an unseen river")
    river.legend(frameon=False)
    true = at["true_capacity"][at["kept"]]
    soil.axline((20, 20), slope=1, color=GREY, lw=1)
    soil.plot(true, at["capacity"], "o", color=BLUE)
    soil.set(xlabel="true capacity", ylabel="capacity found")


def epidemic(at: Namespace) -> None:
    cases, strength = panels(2)
    fitted = at["residuals"](at["fit"].x, at["cases"]) * np.sqrt(at["cases"] + 1) + at["cases"]
    cases.plot(at["cases"], ".", color=RED, ms=4, label="reported")
    cases.plot(fitted, color=BLUE, label="model")
    cases.set(xlabel="day", ylabel="cases a day")
    cases.legend(frameon=False)
    days = np.linspace(0, 80, 400)
    for unknown, color, label in ((at["true"], RED, "truth"), (at["fit"].x, BLUE, "found")):
        rate, slower, day = unknown
        values = rate * (1 - slower / (1 + np.exp(day - days)))
        width, alpha = (4, 0.4) if color == RED else (1.5, 1.0)
        strength.plot(days, values, color=color, lw=width, alpha=alpha, label=label)
    strength.set(xlabel="day", ylabel="infections by one, a day", ylim=(0, 0.4))
    strength.legend(frameon=False)


def fin(at: Namespace) -> None:
    (axis,) = panels(1)
    for thickness, color, label in (
        (at["even"], GREY, "even"),
        (at["parabola"], RED, "Schmidt's parabola"),
        (at["best"].x, BLUE, "found"),
    ):
        width, alpha = (5, 0.4) if color == RED else (1.5, 1.0)
        for side in (-0.5, 0.5):
            shown = label if side > 0 else None
            axis.plot(at["x"], side * thickness, color=color, lw=width, alpha=alpha, label=shown)
    axis.set(xlabel="distance from the wall", ylabel="thickness")
    axis.legend(frameon=False)


def smoothing(at: Namespace) -> None:
    smoothed = at["noisy"].copy()
    at["smooth"](smoothed, *np.exp(at["found"].x), 40)
    shown = (("noisy", at["noisy"]), ("smoothed", smoothed), ("clean", at["other"]))
    for axis, (name, image) in zip(panels(3), shown):
        axis.imshow(image, cmap="gray", vmin=-0.1, vmax=1.1)
        axis.set(title=name, xticks=[], yticks=[])


PICTURES: dict[str, Callable[[Namespace], None]] = {
    "inverse-problem": inverse_problem,
    "optimal-control": optimal_control,
    "gaussian-process": gaussian_process,
    "recurrent-network": recurrent_network,
    "orbits": orbits,
    "pytorch-model": pytorch_model,
    "epidemic": epidemic,
    "fin": fin,
    "smoothing": smoothing,
}


def main(names: list[str]) -> None:
    for name in names or PICTURES:
        (page,) = HERE.parent.glob(f"[tg]*/{name}.md")
        PICTURES[name](computed(page))
        plt.savefig(HERE / f"{name}.png", dpi=120)
        print(f"{name}.png")


if __name__ == "__main__":
    main(sys.argv[1:])
