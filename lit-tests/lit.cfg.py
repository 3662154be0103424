"""lit's configuration: every `.mlir` file below runs its RUN lines with this checkout's mutad-opt."""

import os
import sys
from typing import Any

import lit.formats

config: Any = globals()["config"]  # lit puts it here
config.name = "mutad"
config.test_format = lit.formats.ShTest()
config.suffixes = [".mlir"]
config.excludes = ["lit.cfg.py"]
config.test_source_root = os.path.dirname(__file__)
config.environment["PYTHONWARNINGS"] = "error"
config.environment["PYTHONPATH"] = os.path.dirname(config.test_source_root)

_bin = os.path.dirname(sys.executable)
config.substitutions += [
    ("mutad-opt", f"{sys.executable} -m mutad.opt"),
    ("filecheck", os.path.join(_bin, "filecheck")),
]
