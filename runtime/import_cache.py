"""The methods of dataclasses, kept between processes: half of the time that importing the compiler takes.

`@dataclass` writes the methods of a class as text and compiles that, at each import: Python keeps compiled
modules, not these. xDSL and the compiler have hundreds of such classes. While they are imported,
`dataclasses` finds its compiled texts here: from the disk cache, where another process has put them. What a
text compiles to depends on the text and on Python alone, so a file that is there is never stale, whatever is
edited or installed.

The runtime's own classes have a file of their own, a tenth as long, which `import mutad` reads. It writes
none: what it did not find is written with the first compilation that may be kept.

Nor does it take the signature of a class to make a docstring of it, where that has none: parsing the types in
it is 5% of that time. The docstring is the class's name. (Python 3.15 makes one when it is asked for, and the
pattern below with the first class that needs it.) And it asks three times for the first names in the
text of each field's type: these are found once. What no compilation waits for, the text of an instance and
the refusal to change one, are closures, of which no text is made (Python 3.13 makes one of each class's
methods; there they are its own).
"""

from __future__ import annotations

import dataclasses
import inspect
import marshal
import re
import sys
import types
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from functools import cache
from threading import get_ident
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
    instead: dict[str, Any] = {}
    if "inspect" in names:
        instead["inspect"] = WithoutSignatures()
    if (pattern := names.get("_MODULE_IDENTIFIER_RE")) is not None:
        instead["_MODULE_IDENTIFIER_RE"] = MatchedOnce(pattern)
    if sys.version_info < (3, 13):
        instead |= {"_repr_fn": repr_of, "_frozen_get_del_attr": frozen_of}
    own = {name: names[name] for name in instead}
    names.update(instead, exec=execute)  # that one in the place of the builtin
    try:
        yield
    finally:
        names.pop("exec", None)
        names.update(own)


class MatchedOnce:
    """A pattern that remembers what it matched. (Python 3.15 asks for `prefixmatch`.)"""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.match = self.prefixmatch = cache(pattern.match)


class WithoutSignatures:
    """`inspect`, but all signatures are empty. (Python 3.11.2 expects each class to have one.)"""

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def signature(self, *of: object, **options: object) -> str:
        return ""


def repr_of(fields: Sequence[dataclasses.Field[Any]], _: object) -> Callable[[Any], str]:
    """The method that shows an instance; within itself, as Python's does."""
    shown, running = [f.name for f in fields], set[tuple[int, int]]()

    def __repr__(self: Any) -> str:
        key = id(self), get_ident()
        if key in running:
            return "..."
        running.add(key)
        try:
            parts = ", ".join([f"{name}={getattr(self, name)!r}" for name in shown])
        finally:
            running.discard(key)
        return f"{self.__class__.__qualname__}({parts})"

    return __repr__


def frozen_of(
    kind: type, fields: Sequence[dataclasses.Field[Any]], _: object
) -> tuple[Callable[..., None], ...]:
    """The methods that refuse to change the fields of an instance."""
    fixed = frozenset([f.name for f in fields])

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if type(self) is kind or name in fixed:
            raise dataclasses.FrozenInstanceError(f"cannot assign to field {name!r}")
        super(kind, self).__setattr__(name, value)

    def __delattr__(self: Any, name: str) -> None:
        if type(self) is kind or name in fixed:
            raise dataclasses.FrozenInstanceError(f"cannot delete field {name!r}")
        super(kind, self).__delattr__(name)

    return __setattr__, __delattr__


def read(place: disk_cache.Place) -> Texts:
    """The code of each text."""
    stored = disk_cache.view(place)
    return {} if stored is None else marshal.loads(stored[0])


def write(place: disk_cache.Place, known: Texts, met: Texts) -> None:
    """Keep what was met, if anything of it was not known."""
    if not met.keys() <= known.keys():
        both = {**known, **met}
        disk_cache.write(place, marshal.dumps(both if len(both) <= MOST else met), {})
