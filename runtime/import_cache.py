"""The methods of dataclasses, kept between processes: half of the time that importing the compiler takes.

`@dataclass` writes the methods of a class as text and compiles that, at each import: Python keeps compiled
modules, not these. xDSL and the compiler have hundreds of such classes. While they are imported,
`dataclasses` finds its compiled texts here: from the disk cache, where another process has put them. What a
text compiles to depends on the text and on Python alone, so a file that is there is never stale, whatever is
edited or installed.

The runtime's own classes have a file of their own, a tenth as long, which `import mutad` reads. It writes
none: what it did not find is written with the first compilation that may be kept.

Nor does it take the signature of a class to make a docstring of it, where that has none: parsing the types in
it is 5% of that time. The docstring is the class's name. And it asks three times for the first names in the
text of each field's type: these are found once.
"""

from __future__ import annotations

import dataclasses
import inspect
import marshal
import re
import types
from collections.abc import Generator
from contextlib import contextmanager
from functools import cache
from typing import Any

from . import disk_cache

MOST = 8000
"""More texts than this are not kept together: those that this process has not met are left out."""

Texts = dict[str, types.CodeType]

_of_runtime: Texts = {}
"""What `import mutad` has met, where its file is to be written."""


@contextmanager
def kept_dataclasses(*, cached: bool) -> Generator[None]:
    """What is imported here has the methods of its dataclasses from the disk cache, if that may be used."""
    place = disk_cache.place_of_imports() if cached else None
    known, met = read(place), Texts()
    with looked_up(known, met):
        yield
    write(place, known, met)
    if cached and _of_runtime:
        write(disk_cache.place_of_imports("runtime"), {}, _of_runtime)
        _of_runtime.clear()


@contextmanager
def known_dataclasses() -> Generator[None]:
    """The same for the runtime's own classes, from a file that is only read for now."""
    known, met = read(disk_cache.place_of_imports("runtime")), Texts()
    with looked_up(known, met):
        yield
    if not met.keys() <= known.keys():
        _of_runtime.update(met)


@contextmanager
def looked_up(known: Texts, met: Texts) -> Generator[None]:
    """Classes that are made here have what is `known`; all that is asked for is then `met`."""

    def execute(text: str, *scopes: Any) -> None:
        """`exec`, of texts whose code may be known."""
        code = met.get(text) or known.get(text)
        if code is None:
            code = compile(text, "<string>", "exec", dont_inherit=True)
        met[text] = code
        exec(code, *scopes)

    names: dict[str, Any] = dataclasses.__dict__
    pattern = names["_MODULE_IDENTIFIER_RE"]
    names["exec"] = execute  # in the place of the builtin
    names["inspect"] = WithoutSignatures()
    names["_MODULE_IDENTIFIER_RE"] = MatchedOnce(pattern)
    try:
        yield
    finally:
        names.pop("exec", None)
        names["inspect"] = inspect
        names["_MODULE_IDENTIFIER_RE"] = pattern


class MatchedOnce:
    """A pattern that remembers what it matched."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.match = cache(pattern.match)


class WithoutSignatures:
    """`inspect`, but that nothing has a signature."""

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def signature(self, of: Any) -> Any:
        raise ValueError(of)


def read(place: disk_cache.Place) -> Texts:
    """The code of each text."""
    stored = disk_cache.read(place)
    return {} if stored is None else marshal.loads(stored[0])


def write(place: disk_cache.Place, known: Texts, met: Texts) -> None:
    """Keep what was met, if anything of it was not known."""
    if not met.keys() <= known.keys():
        both = {**known, **met}
        disk_cache.write(place, marshal.dumps(both if len(both) <= MOST else met), {})
