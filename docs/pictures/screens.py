"""Photograph the receipt and the browser view in headless Chromium: `make screens`."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np

from mutad import compile

HERE = Path(__file__).parent
NAMES = ("chromium", "chromium-browser", "google-chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--virtual-time-budget=4000",
)  # fmt: skip


@compile(grad=True)
def steepen(u, k, steps):
    north = np.empty_like(u)
    for _ in range(steps):
        north[:-1] = u[1:]
        north[-1] = 0.0
        u *= 1.0 - k * north
        for i in range(1, u.size):
            u[i] += 0.1 * u[i - 1]
    return (u**2).sum()


def photograph(page: Path, picture: Path, width: int, height: int) -> None:
    program = next((found for name in NAMES if (found := shutil.which(name))), None)
    if program is None:
        raise SystemExit("there is no Chromium: install it, or leave the pictures as they are")
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(
            [program, *QUIET, f"--user-data-dir={profile}", f"--window-size={width},{height}",
             f"--screenshot={picture}", page.as_uri()],
            check=True, capture_output=True, timeout=120,
        )  # fmt: skip
    print(picture.name)


def main() -> None:
    arguments = np.full(1000, 0.5), 0.1, 100
    with tempfile.TemporaryDirectory() as folder:
        receipt, view = Path(folder, "receipt.html"), Path(folder, "view.html")
        steepen.explain(*arguments, wrt="u").to_html(str(receipt))
        steepen.inspect.html(str(view), *arguments, wrt="u")
        photograph(receipt, HERE / "receipt.png", 1100, 560)
        photograph(view, HERE / "view.png", 1500, 800)


if __name__ == "__main__":
    main()
