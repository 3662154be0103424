"""How compiled functions travel to other processes: by name, or by value with their source.

Pickle sends the name of a function, which the other process imports. What stands in a script or in a
notebook, or within another function, it cannot import: cloudpickle, which Dask and joblib use, sends the code
of such a function and what it reads. The compiler needs its source as well, which the other process may not
have: it goes along. With the same source comes the same name on disk (`disk_cache`), so what one process has
compiled others load.

From 3.1.3 on cloudpickle leaves out which file a function was in. So the files of functions go along as well,
by what their code is (`give_file`).
"""

from __future__ import annotations

import hashlib
import linecache
import sys
import types
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from . import wrappers

if TYPE_CHECKING:
    from types import FrameType

NO_FILE = "<dynamic-code>"
"""What cloudpickle says instead of a file."""

files: dict[bytes, str] = {}
"""Of functions that were sent here, by `digest`."""


@dataclass(frozen=True)
class Sources:
    """What goes along with functions."""

    texts: dict[str, str] = field(default_factory=dict[str, str])
    """Of files, or of cells of a notebook."""
    files: dict[bytes, str] = field(default_factory=dict[bytes, str])
    """The file of each function, by `digest`."""


came_with: WeakKeyDictionary[types.FunctionType, Sources] = WeakKeyDictionary()
"""What functions were sent here with: a scheduler sends it on."""


def is_sent_by_value(function: Any, at_its_name: Any) -> bool:
    """Whether cloudpickle asks, and sends this function by value."""
    asking = asking_frame()
    if asking is None:
        return False
    registered: Any = asking.f_globals.get("list_registry_pickle_by_value", set[str])
    if function.__module__ == "__main__" or wrappers.plain(at_its_name) is not function.__wrapped__:
        return True
    return any(f"{function.__module__}.".startswith(f"{name}.") for name in registered())


def asking_frame() -> FrameType | None:
    """The frame of cloudpickle's `dump`, where that asks; joblib has a cloudpickle of its own."""
    frame = sys._getframe(1)  # pyright: ignore[reportPrivateUsage]
    while frame is not None and frame.f_globals.get("__package__") == __package__:
        frame = frame.f_back
    if frame is None or "cloudpickle" not in frame.f_globals.get("__name__", "").split("."):
        return None
    return frame


def sources_of(function: Any) -> Sources:
    """The text of the files that the functions of its module stand in: a notebook has one for each cell."""
    own, found = function.__wrapped__, Sources()
    if (before := came_with.get(own)) is not None:
        found.texts.update(before.texts)
        found.files.update(before.files)
    for one in functions_in([own, *own.__globals__.values()], own.__module__):
        give_file(one)
        file = one.__code__.co_filename
        if file not in found.texts and (lines := linecache.getlines(file)):
            found.texts[file] = "".join(lines)
        found.files.update((digest(code), file) for code in codes_in(one.__code__))
    return found


def functions_in(values: Iterable[Any], module: str) -> Iterator[types.FunctionType]:
    """The functions of a module among these, those of its classes, and those that they have in cells."""
    work, seen = list(values), set[int]()
    while work:
        value = work.pop(0)
        if isinstance(value, type):
            if value.__module__ == module:
                inner = [getattr(v, "__func__", v) for v in vars(value).values()]
                work += [v for v in inner if not isinstance(v, type)]
            continue
        function = wrappers.plain(value)
        if not isinstance(function, types.FunctionType) or id(function) in seen:
            continue
        seen.add(id(function))
        if function.__module__ == module:
            yield function
            work += [c.cell_contents for c in function.__closure__ or () if not is_empty(c)]


def is_empty(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is None
    except ValueError:
        return True


def take(function: Any, sources: Sources) -> None:
    """What has come with a function."""
    show_sources(sources)
    give_file(function)
    if isinstance(function, types.FunctionType):
        came_with[function] = sources


def show_sources(sources: Sources) -> None:
    """Let the compiler, and tracebacks, read these texts, where they are not there, or others are."""
    files.update(sources.files)
    for file, text in sources.texts.items():
        linecache.checkcache(file)
        if "".join(linecache.getlines(file)) != text:
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)


def give_file(function: Any) -> None:
    """Have the code of a function that was sent here say its file again."""
    code = getattr(function, "__code__", None)
    if code is not None and code.co_filename == NO_FILE and (file := files.get(digest(code))):
        function.__code__ = in_file(code, file)


def in_file(code: types.CodeType, file: str) -> types.CodeType:
    """The code, and that in it, as if read from a file."""
    constants = (in_file(c, file) if isinstance(c, types.CodeType) else c for c in code.co_consts)
    return code.replace(co_filename=file, co_consts=tuple(constants))


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """The code, and that of all functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def digest(code: types.CodeType) -> bytes:
    """What makes a function this one, wherever it is."""
    name = code.co_qualname, code.co_firstlineno, code.co_names, code.co_varnames
    return hashlib.sha256(repr(name).encode() + code.co_code).digest()
