"""A page in headless Chromium, driven over its own pipe: no driver and no library between."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
QUIET = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-default-apps", "--disable-sync", "--no-first-run",
    "--mute-audio", "--remote-debugging-pipe",
)  # fmt: skip
START = """
import fcntl, os, sys
first, second = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(first, 3)
os.dup2(second, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads its commands from file descriptor 3 and answers on 4."""
LIMIT = 60.0
"""Seconds for an answer."""


def found() -> str | None:
    """The browser of this machine."""
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab. What it writes to the console, throws and asks of the network is kept."""

    def __init__(self, commands: int, answers: int) -> None:
        self._commands, self._answers = commands, answers
        self._number, self._read = 0, b""
        self._session = ""
        self.errors: list[str] = []
        self.requests: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and wait for its result; what happens in between is kept."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        until = time.monotonic() + LIMIT
        while (answer := self._next(until)).get("id") != self._number:
            self._note(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def _next(self, until: float) -> dict[str, Any]:
        while b"\0" not in self._read:
            ready, _, _ = select.select([self._answers], [], [], max(0, until - time.monotonic()))
            more = os.read(self._answers, 1 << 16) if ready else b""
            assert more, "Chromium does not answer"
            self._read += more
        first, _, self._read = self._read.partition(b"\0")
        return json.loads(first)

    def _note(self, event: dict[str, Any]) -> None:
        told = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(str(told["exceptionDetails"]))
            case "Runtime.consoleAPICalled":
                self.errors.append(str(told["args"]))
            case "Log.entryAdded":
                self.errors.append(str(told["entry"]))
            case "Network.requestWillBeSent":
                self.requests.append(told["request"]["url"])

    def open(self, path: Path, width: int, height: int = 800, scheme: str = "light") -> None:
        """Show a file in a window of this size."""
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)  # fmt: skip
        features = [{"name": "prefers-color-scheme", "value": scheme},
                    {"name": "prefers-reduced-motion", "value": "reduce"}]  # fmt: skip
        self.ask("Emulation.setEmulatedMedia", features=features)
        self.ask("Page.navigate", url=path.as_uri())
        self.evaluate("new Promise(done => document.readyState === 'complete' ? done() : "
                      "addEventListener('load', done))")  # fmt: skip
        self.settle()

    def settle(self) -> None:
        """Wait until what the script put off is drawn."""
        self.evaluate("new Promise(done => setTimeout(() => requestAnimationFrame(() => "
                      "requestAnimationFrame(done)), 30))")  # fmt: skip

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of the page; of a promise what it promises."""
        answer = self.ask(
            "Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True
        )
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def hover(self, selector: str, *, click: bool = False) -> None:
        """Move the mouse to the middle of an element, in the part of it that is seen; perhaps click."""
        x, y = self.evaluate(
            f"(() => {{ const b = document.querySelector({json.dumps(selector)}).getBoundingClientRect();"
            " return [Math.min(b.left + 60, innerWidth - 5), b.top + b.height / 2]; })()"
        )
        self.ask("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        for kind in ("mousePressed", "mouseReleased") if click else ():
            self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)
        self.settle()

    def press(self, key: str) -> None:
        """Press and release a key: "Tab", "ArrowDown", "Enter", "Escape"."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowUp": 38, "ArrowDown": 40}
        for kind in ("rawKeyDown", "keyUp"):
            self.ask(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=codes[key],
            )
        self.settle()

    def screenshot(self, path: Path) -> None:
        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))


@contextmanager
def page(profile: Path) -> Generator[Page]:
    """A tab of a browser whose profile is that folder, which ends with it."""
    browser = found()
    assert browser is not None
    its_input, commands = os.pipe()
    answers, its_output = os.pipe()
    start = [sys.executable, "-c", START, str(its_input), str(its_output)]
    process = subprocess.Popen(
        [*start, browser, *QUIET, f"--user-data-dir={profile}"],
        pass_fds=(its_input, its_output),
        stderr=subprocess.DEVNULL,
    )
    os.close(its_input)
    os.close(its_output)
    try:
        yield Page(commands, answers)
    finally:
        os.close(commands)  # which ends it
        try:
            process.wait(LIMIT)
        finally:
            process.kill()
            os.close(answers)
