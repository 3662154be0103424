"""The methods of dataclasses, kept between processes: half of the time that importing the compiler takes.

`@dataclass` writes the methods of a class as text and compiles that, at each import: Python keeps compiled
modules, not these. xDSL and the compiler have hundreds of such classes. While they are imported,
`dataclasses` finds its compiled texts here: from the disk cache, where another process has put them. What a
text compiles to depends on the text and on Python alone, so a file that is there is never stale, whatever is
edited or installed.

Nor does it take the signature of a class to make a docstring of it, where that has none: parsing the types in
it is 5% of that time. The docstring is the class's name.
"""

from __future__ import annotations

import dataclasses
import inspect
import marshal
import types
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from . import disk_cache

MOST = 8000
"""More texts than this are not kept together: those that this process has not met are left out."""


@contextmanager
def kept_dataclasses(*, cached: bool) -> Generator[None]:
    """What is imported here has the methods of its dataclasses from the disk cache, if that may be used."""
    place = disk_cache.place_of_imports() if cached else None
    known = read(place)
    met: dict[str, types.CodeType] = {}

    def execute(text: str, *scopes: Any) -> None:
        """`exec`, of texts whose code may be known."""
        code = met.get(text) or known.get(text)
        if code is None:
            code = compile(text, "<string>", "exec", dont_inherit=True)
        met[text] = code
        exec(code, *scopes)

    names: dict[str, Any] = dataclasses.__dict__
    names["exec"] = execute  # in the place of the builtin
    names["inspect"] = WithoutSignatures()
    try:
        yield
    finally:
        names.pop("exec", None)
        names["inspect"] = inspect
    if not met.keys() <= known.keys():
        both = {**known, **met}
        disk_cache.write(place, marshal.dumps(both if len(both) <= MOST else met), {})


class WithoutSignatures:
    """`inspect`, but that nothing has a signature."""

    def __getattr__(self, name: str) -> Any:
        return getattr(inspect, name)

    def signature(self, of: Any) -> Any:
        raise ValueError(of)


def read(place: disk_cache.Place) -> dict[str, types.CodeType]:
    """The code of each text."""
    stored = disk_cache.read(place)
    return {} if stored is None else marshal.loads(stored[0])
