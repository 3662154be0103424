"""Which gradient programs a device refuses: `refused_on_devices.txt`, by the kind of reason.

A program that is newly refused fails its test, and so does one that is refused no longer. After changes of
what becomes a kernel, write the list again (ten minutes), or what it has of some programs:

    make refused
    MUTAD_ON_DEVICES=list python -m pytest -q tests/gradients -k "test_kernels and NAME"

That compiles each program for each derivative up to `outline-kernels`, which is what refuses.
"""

from __future__ import annotations

import textwrap
from collections import defaultdict
from collections.abc import Mapping
from functools import cache
from pathlib import Path

KINDS = {
    "grows": "grows, and a kernel reads it",
    "recursive": "is recursive",
    "needs": "arrays that one thread alone cannot have",
    "does more": "does more in each iteration than a thread",
    "saves": "is known only when it has run",
    "views": "one may be a view of another",
    "variable": "a variable here and an element of an array there",
    "host": "where Python runs",
    "outside": "is an array of the host",
}
"""What reasons say, by a word for each."""
LIST = Path(__file__).with_name("refused_on_devices.txt")
TABLES = Path(__file__).parents[1] / "gradients"
OTHER = "another reason"


def kind_of(error: Exception) -> str:
    """The word for why a program is refused."""
    return next((word for word, said in KINDS.items() if said in str(error)), OTHER)


@cache
def listed() -> dict[str, str]:
    """The kind of reason by the program (`table.program`), and by the call that alone is refused.

    An entry of the list is `table, kind: programs`; indented lines go on with it.
    """
    found: dict[str, str] = {}
    for entry in LIST.read_text().replace("\n ", " ").splitlines():
        head, _, names = entry.partition(": ")
        table, _, kind = head.partition(", ")
        found |= {f"{table}.{name}": kind for name in names.split()}
    return found


def written(found: Mapping[str, str]) -> str:
    """The list of these, as it is kept."""
    entries: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, kind in found.items():
        table, _, program = name.partition(".")
        entries[table, kind].append(program)
    lines = [
        f"{t}, {kind}: {' '.join(sorted(names))}" for (t, kind), names in sorted(entries.items())
    ]
    return "".join(textwrap.fill(line, 110, subsequent_indent=" ") + "\n" for line in lines)


def assert_as_listed(program: str, tried: Mapping[str, str | None]) -> None:
    """Calls are refused that the list has, for its reason, and no others.

    `tried`: by call, why it was refused; None where it ran.
    """
    again = "write the list again: make refused"
    for call, found in tried.items():
        wanted = listed().get(program, listed().get(f"{program}.{call}"))
        if found is not None and wanted is None:
            raise AssertionError(
                f"a device newly refuses {call} of {program} ({found}); if so, {again}"
            )
        if found is None and wanted is not None:
            raise AssertionError(
                f"a device no longer refuses {call} of {program} ({wanted}): {again}"
            )
        assert found == wanted, f"a device refuses {call} of {program} for another reason: {again}"


def relist(program: str, found: Mapping[str, str]) -> None:
    """Write what the list has of a program; `found` is by the call.

    What is refused in place and of `pulled_back`, for one reason, is refused as a whole.
    """
    others = {
        n: kind for n, kind in listed().items() if n != program and not n.startswith(f"{program}.")
    }
    first = found.get("pulled_back")
    first = first if first == found.get("in_place") else None
    own = (
        {f"{program}.{call}": kind for call, kind in found.items()}
        if first is None
        else {program: first}
    )
    LIST.write_text(written(others | own))
    listed.cache_clear()
