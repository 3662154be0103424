"""What pyproject.toml cannot say: in the source distribution the rooms are links, as in the repository."""

import shutil
from pathlib import Path

from setuptools import setup
from setuptools.command.sdist import sdist

ROOMS = ("compiler", "dialects", "runtime")


class WithLinks(sdist):
    """`mutad/compiler` is `compiler`, not a copy: whoever edits one edits the other."""

    def make_release_tree(self, base_dir: str, files: list[str]) -> None:
        super().make_release_tree(base_dir, files)
        for room in ROOMS:
            link = Path(base_dir, "mutad", room)
            shutil.rmtree(link)
            link.symlink_to(Path("..", room))


setup(cmdclass={"sdist": WithLinks})
