"""How compiled functions travel to other processes: by name, or by value with their source.

Pickle sends the name of a function, which the other process imports. What stands in a script or in a
notebook, or within another function, it cannot import: cloudpickle, which Dask and joblib use, sends the code
of such a function and what it reads. The compiler needs its source as well, which the other process may not
have: it goes along. With the same source comes the same name on disk (`disk_cache`), so what one process has
compiled others load. cloudpickle 3.1.3 calls the file of all code that it sends "<dynamic-code>": the true
names go along, too.
"""

from __future__ import annotations

import hashlib
import linecache
import sys
import types
from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from . import wrappers

if TYPE_CHECKING:
    from types import FrameType

Sources = dict[str, str]
"""Of files, or of cells of a notebook, the text."""
Files = dict[str, str]
"""By a name of a function's code, the file that it stands in."""
Sent = tuple[Sources, Files]
"""What goes along."""

ARRIVED: Files = {}
"""Of all code that was sent here."""


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


def sent_with(function: Any) -> Sent:
    """What goes along: of the functions of its module the files; a notebook has one for each cell."""
    sources, files = Sources(), Files()
    for one in functions_around(function.__wrapped__):
        settle(one)  # it may have arrived itself: Dask's scheduler passes on what it gets
        for code in codes_in(one.__code__):
            files[named(code)] = code.co_filename
        file = one.__code__.co_filename
        if file not in sources and (lines := linecache.getlines(file)):
            sources[file] = "".join(lines)
    return sources, files | {name: file for name, file in ARRIVED.items() if file in sources}


def named(code: types.CodeType) -> str:
    """What tells code from other code, wherever its file is."""
    facts = (
        code.co_qualname, code.co_firstlineno, code.co_code, code.co_linetable, code.co_names,
        code.co_varnames, code.co_freevars, [shown(c) for c in code.co_consts],
    )  # fmt: skip
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def shown(constant: Any) -> Any:
    """A constant of some code, the same in each process."""
    match constant:
        case types.CodeType():
            return named(constant)
        case tuple():
            return tuple(map(shown, constant))
        case frozenset():
            return sorted(map(repr, map(shown, constant)))
        case _:
            return constant


def codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    """A function's code, and that of the functions in it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes_in(constant)


def functions_around(own: types.FunctionType) -> Iterator[types.FunctionType]:
    """A function, those of its module, and those that they have in closures."""
    pending, seen = deque([own]), set[int]()
    pending += functions_in(list(own.__globals__.values()), own.__module__)
    while pending:
        one = pending.popleft()
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        held = [cell.cell_contents for cell in one.__closure__ or () if is_full(cell)]
        pending += functions_in(held, own.__module__)


def is_full(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False


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


def receive(sent: Sent) -> None:
    """Sources and names of files, as they go along with a function."""
    sources, files = sent
    show_sources(sources)
    ARRIVED.update(files)


def settle(function: types.FunctionType) -> None:
    """Let code that was sent have its file again."""
    if ARRIVED:
        code = placed(function.__code__)
        if code is not function.__code__:
            function.__code__ = code


def placed(code: types.CodeType) -> types.CodeType:
    """The same object where all files are right."""
    file = ARRIVED.get(named(code), code.co_filename)
    inner = [placed(c) if isinstance(c, types.CodeType) else c for c in code.co_consts]
    if file == code.co_filename and all(a is b for a, b in zip(inner, code.co_consts, strict=True)):
        return code
    return code.replace(co_filename=file, co_consts=tuple(inner))


def show_sources(sources: Sources) -> None:
    """Let the compiler, and tracebacks, read these texts, where they are not there, or others are."""
    for file, text in sources.items():
        linecache.checkcache(file)
        if "".join(linecache.getlines(file)) != text:
            linecache.cache[file] = (len(text), None, text.splitlines(keepends=True), file)
