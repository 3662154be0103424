"""How compiled functions travel to other processes: by name, or by value with their source.

Pickle sends the name of a function, which the other process imports. What stands in a script or in a
notebook, or within another function, it cannot import: cloudpickle, which Dask and joblib use, sends the code
of such a function and what it reads. The compiler needs its source as well, which the other process may not
have: it goes along. With the same source comes the same name on disk (`disk_cache`), so what one process has
compiled others load.
"""

from __future__ import annotations

import linecache
import sys
import types
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import wrappers

if TYPE_CHECKING:
    from types import FrameType

Sources = dict[str, str]
"""Of files, or of cells of a notebook, the text."""


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
    for one in [own, *functions_in(list(own.__globals__.values()), own.__module__)]:
        file = one.__code__.co_filename
        if file not in found and (lines := linecache.getlines(file)):
            found[file] = "".join(lines)
    return found


def functions_in(values: list[Any], module: str) -> Iterator[types.FunctionType]:
    """The functions of a module among these, and those of its classes."""
    for value in values:
        if isinstance(value, type):
            if value.__module__ == module:
                inner = [getattr(v, "__func__", v) for v in vars(value).values()]
                yield from functions_in([v for v in inner if not isinstance(v, type)], module)
            continue
        function = wrappers.plain(value)
        if isinstance(function, types.FunctionType) and function.__module__ == module:
            yield function


def show_sources(sources: Sources) -> None:
    """Let the compiler, and tracebacks, read these texts, where they are not there, or others are."""
    for file, text in sources.items():
        linecache.checkcache(file)
        if "".join(linecache.getlines(file)) != text:
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
