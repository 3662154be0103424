"""Fixtures of all tests."""

from __future__ import annotations

import gc
import io
import os
import re
import signal
import sys
import zlib
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from filecheck.finput import FInput
from filecheck.matcher import Matcher
from filecheck.options import Options
from filecheck.parser import Parser, pattern_for_opts
from turns import Turns, has_turn
from xdsl.context import Context
from xdsl.dialects import get_all_dialects

import mutad
from mutad.dialects.activation import Activation
from mutad.dialects.ad import Ad
from mutad.dialects.array import Array
from mutad.dialects.dense import Dense
from mutad.dialects.device import Device
from mutad.dialects.special import Special
from mutad.runtime.options import DEFAULTS
from mutad.runtime.target import VARIABLE

mutad._import_compiler(
    cached=False
)  # so that no test finds in its cache what the first import leaves

gc.disable()  # what is imported and collected stays; see `pytest_collection_finish`

RunFilecheck = Callable[[str, str], None]


@pytest.fixture(autouse=True)
def cache_of_its_own(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No test reads what another run compiled; the workers of one run read what others did."""
    base = tmp_path_factory.getbasetemp()
    base = (base.parent if hasattr(request.config, "workerinput") else base) / "mutad-cache"
    base.mkdir(mode=0o700, exist_ok=True)
    monkeypatch.setenv("MUTAD_CACHE_DIR", str(base))


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--part",
        metavar="K/N",
        help="the K-th of N parts of the tests; `today/N`: another one each day",
    )
    parser.addoption(
        "--modes",
        metavar="K/N",
        help="of the modes of each gradient program beside the gradient itself, and of the tests that are "
        "compiled as users' programs are, the K-th of N parts",
    )
    parser.addoption(
        "--rows",
        metavar="K/N",
        help="of the rows of the tables of values (tests/values), the K-th of N parts",
    )
    parser.addoption(
        "--tables",
        metavar="K/N",
        help="of the rows of tables of kernels and budgets, and of generated programs, the K-th of N parts",
    )
    parser.addoption(
        "--devices",
        metavar="K/N",
        help="of the gradient programs that run as kernels, too, the K-th of N parts",
    )
    parser.addoption(
        "--seeds",
        metavar="K",
        help="generated programs of the K-th run; `today`: other ones each day",
    )


def pytest_configure(config: pytest.Config) -> None:
    Turns.part = part_of(config, "--modes") or Turns.part
    Turns.seeds = run_of(config)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--part`, the tests of one part: which test is in which, its name says.

    The checks of one gradient program follow each other: the compiler still knows its IR then.
    """
    first: dict[object, int] = {}
    places = {item: first.setdefault(program_of(item), k) for k, item in enumerate(items)}
    items.sort(key=places.__getitem__)
    if (part := part_of(config, "--part")) is not None:
        keep(config, items, [item for item in items if is_in(part, item)])
    if (part := part_of(config, "--modes")) is not None:
        keep(
            config,
            items,
            [item for item in items if not is_further_mode(item) or is_in(part, item)],
        )
    if (part := part_of(config, "--rows")) is not None:
        keep(config, items, [item for item in items if not is_value_row(item) or is_in(part, item)])
    if (part := part_of(config, "--tables")) is not None:
        keep(config, items, [item for item in items if not is_table_row(item) or is_in(part, item)])
    if (part := part_of(config, "--devices")) is not None:
        keep(config, items, [item for item in items if not is_on_device(item) or is_in(part, item)])


def is_in(part: tuple[int, int], item: pytest.Item) -> bool:
    k, n = part
    return zlib.crc32(item.nodeid.encode()) % n == k


def keep(config: pytest.Config, items: list[pytest.Item], chosen: list[pytest.Item]) -> None:
    """Leave only the tests that are chosen."""
    left_out = set(items).difference(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item in left_out])
    items[:] = chosen


def is_further_mode(item: pytest.Item) -> bool:
    """Whether a test runs a gradient program in a mode beside the gradient, or with other options."""
    name = getattr(item, "originalname", item.name)
    return "::TestGradients::" in item.nodeid and name not in FIRST and not is_on_device(item)


def is_on_device(item: pytest.Item) -> bool:
    """Whether a test runs a gradient program as kernels."""
    name = getattr(item, "originalname", item.name)
    return "::TestGradients::" in item.nodeid and name == "test_kernels"


def is_value_row(item: pytest.Item) -> bool:
    """Whether a test is a row of a table of values."""
    return item.nodeid.startswith("tests/values/") and hasattr(item, "callspec")


def is_table_row(item: pytest.Item) -> bool:
    """Whether a test is a row of a table of kernels or budgets, or a generated program."""
    return item.nodeid.startswith(TABLES) and hasattr(item, "callspec")


def pytest_collection_finish(session: pytest.Session) -> None:
    """The modules and the thousands of tests live to the end: Python's collector need not look at them each
    time that it looks for garbage, which was a tenth of the time of all tests. Compilations leave large webs
    that live for some tests: looking less often is a further twentieth, and takes 10 MB."""
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    gc.enable()


def program_of(item: pytest.Item) -> object:
    """The program of a table that a test is about; a test of none is alone."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    function = getattr(parameters.get("case"), "function", None)
    return item if function is None else (item.parent, function)


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Which part it was, for who runs it again."""
    for option in ("--part", "--modes", "--rows", "--tables", "--devices"):
        if (part := part_of(config, option)) is not None:
            terminalreporter.write_line(f"this was {option}={part[0]}/{part[1]}")
    if Turns.seeds:
        terminalreporter.write_line(f"this was --seeds={Turns.seeds}")


def run_of(config: pytest.Config) -> int:
    """Which run of generated programs it is; on one day each of five versions of Python has one."""
    which = config.getoption("--seeds") or "0"
    today = 5 * date.today().toordinal() + sys.version_info.minor % 5
    return today if which == "today" else int(which)


def part_of(config: pytest.Config, option: str) -> tuple[int, int] | None:
    """Which of how many parts is asked for: each day the next; five versions of Python take five fifths."""
    which, _, of = (config.getoption(option) or "").partition("/")
    if not of:
        return None
    count = int(of)
    today = date.today().toordinal() + sys.version_info.minor * count // 5
    return (today if which == "today" else int(which)) % count, count


FIRST = ("test_value_and_grad", "test_saved_bytes")
"""What every run asks of each gradient program."""

TABLES = ("tests/kernels/", "tests/gradients/test_budget", "tests/properties/")
"""Where each row of a table compiles several times: a program for devices, within budgets, in all modes."""

OPTIMIZED = re.compile(
    r"^```(llvm|asm)|\bopt=|llvm-opt|assembly|timeit|perf_counter|minimize\(", re.M
)
"""What a page has that shows code of LLVM, or times, or ends where the last digits lead."""

FRONT = ("derivative", "errors", "frontend", "gradients", "kernels", "runtime", "values")
"""The directories whose tests are about what is compiled and how it is called, not about the machine code."""

SHOWN = ("test_examples",)
"""Tests of programs that are examples."""


@pytest.fixture(autouse=True)
def level_of_llvm(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """There five of six tests, always the same ones, use LLVM's first level unless they ask for one, or run
    for a CPU that is named: what LLVM makes for that is the point then. Of those others a part each day
    does not."""
    if os.environ.get(VARIABLE):
        return
    name: str = request.node.nodeid
    is_sixth = zlib.crc32(name.encode()) % 6 == 0
    if request.path.parent.name in FRONT and not (is_sixth and has_turn(name)):
        monkeypatch.setitem(DEFAULTS, "opt", 1)
    elif (is_of_plain_page(request.node) or request.path.stem in SHOWN) and not has_turn(name):
        monkeypatch.setitem(DEFAULTS, "opt", 1)


def is_of_plain_page(item: pytest.Item) -> bool:
    """Whether a test is about a page of the docs on which nobody sees what LLVM has optimized."""
    page = getattr(getattr(item, "callspec", None), "params", {}).get("page")
    return isinstance(page, Path) and not OPTIMIZED.search(page.read_text())


@pytest.fixture
def context() -> Context:
    """An xDSL context that knows every dialect, ours included."""
    ctx = Context()
    for name, dialect in get_all_dialects().items():
        ctx.register_dialect(name, dialect)
    for ours in (Array, Ad, Activation, Dense, Special, Device):
        ctx.register_dialect(ours.name, lambda d=ours: d)
    return ctx


@pytest.fixture
def run_filecheck(capsys: pytest.CaptureFixture[str]) -> RunFilecheck:
    """`run_filecheck(text, checks)`: hold a text against CHECK lines, in this process.

    The checks are lines such as `CHECK: %y = arith.mulf`; write them without `//`.
    """

    def check(text: str, checks: str) -> None:
        options = Options(match_filename="<checks>")
        pattern, comment = pattern_for_opts(options)
        parser = Parser(options, io.StringIO(checks), pattern, comment)
        failed = Matcher(options, FInput("<text>", text), parser).run()
        report = capsys.readouterr()
        assert not failed, f"{report.out}{report.err}\n{text}"

    return check


@pytest.fixture
def root() -> Path:
    """The top of the repository."""
    return Path(__file__).parents[1]


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Ctrl-C raises KeyboardInterrupt, also where the tests run in the background with it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
