"""The compiler's modules, kept in one file: half of the time that Python takes to find and read them.

Some 600 modules are imported with the compiler, its own and xDSL's. For each of them Python looks into a
folder, opens a file, and reads its code, with names that hundreds of other modules have as well. Where it
keeps no bytecode (`PYTHONDONTWRITEBYTECODE`, an installation that may not be written) it compiles them all:
1 s. Here they are read at once, from the disk cache, where another process has put them.

A module is taken from there if its source is the same file, unchanged: with the times of its contents and of
its place (`st_ctime`, which no installer can set), its size and its number. On a file system that is never
written the times may all be the same, so its modules are not kept. All others are imported as ever, through
Python's own finder, whose place this one is in front of: what others have put before that comes first.
"""

from __future__ import annotations

import marshal
import os
import sys
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType

from . import disk_cache

PACKAGES = __name__.partition(".")[0], "xdsl"

Unchanged = tuple[int, int, int, int]
Kept = tuple[str, bool, Unchanged, CodeType]
"""Of a module: its source file, whether it is a package, what tells that the file is the same, its code."""

Modules = dict[str, Kept]


@contextmanager
def kept_modules(*, cached: bool) -> Generator[None]:
    """What is imported here comes from the disk cache, if that may be used and Python's finder is there."""
    place = disk_cache.place_of_imports("modules", __file__, sys.prefix) if cached else None
    if place is None or PathFinder not in sys.meta_path:
        yield
        return
    finder = Finder(read(place))
    sys.meta_path.insert(sys.meta_path.index(PathFinder), finder)
    try:
        yield
        if found := on_writable_disks(finder.found):
            disk_cache.write(place, marshal.dumps({**read(place), **found}), {})
    finally:
        sys.meta_path.remove(finder)
        finder.known, finder.found = {}, {}  # modules keep their loaders, and these the finder


def read(place: disk_cache.Place) -> Modules:
    stored = disk_cache.view(place)
    return {} if stored is None else marshal.loads(stored[0])


class Finder:
    """Finds modules of some packages where they were, or where Python's finder finds them."""

    def __init__(self, known: Modules) -> None:
        self.known = known
        self.found: Modules = {}
        """Those that were not known, or have changed."""

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if path is None or name.partition(".")[0] not in PACKAGES:
            return None
        kept = self.known.get(name)
        if kept is not None and is_current(kept, path):
            file, package, _, _ = kept
            spec = ModuleSpec(name, Loader(name, file, self), origin=file, is_package=package)
            spec.has_location = True
            if package:
                spec.submodule_search_locations = [os.path.dirname(file)]
            return spec
        self.known.pop(name, None)
        found = PathFinder.find_spec(name, path, target)
        if found is not None and type(found.loader) is SourceFileLoader:
            found.loader = Loader(name, found.loader.path, self)
        return found


class Loader(SourceFileLoader):
    """Python's own, but for code that a finder knows; it tells the finder what that does not know."""

    def __init__(self, name: str, path: str, finder: Finder) -> None:
        super().__init__(name, path)
        self.finder = finder

    def get_code(self, fullname: str) -> CodeType | None:
        if kept := self.finder.known.pop(fullname, None):
            return kept[3]
        before = unchanged(self.path)
        code = super().get_code(fullname)
        if code is not None and before is not None:
            package = self.is_package(fullname)
            self.finder.found[fullname] = self.path, package, before, code
        return code


def is_current(kept: Kept, path: Sequence[str]) -> bool:
    """Whether this is what Python would find on a package's path, and read."""
    file, package, same, _ = kept
    folder = os.path.dirname(os.path.dirname(file) if package else file)
    return list(path) == [folder] and unchanged(file) == same


def unchanged(file: str) -> Unchanged | None:
    """What is equal while a file is the same; None where there is none."""
    try:
        status = os.stat(file)
    except OSError:
        return None
    return status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino


def on_writable_disks(modules: Modules) -> Modules:
    """Those whose file's times tell that it has changed."""
    folders = {os.path.dirname(file) for file, _, _, _ in modules.values()}
    fixed = {folder for folder in folders if os.statvfs(folder).f_flag & os.ST_RDONLY}
    return {name: kept for name, kept in modules.items() if os.path.dirname(kept[0]) not in fixed}
