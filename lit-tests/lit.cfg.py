"""lit's configuration: every `.mlir` and `.py` file below runs its RUN lines with this checkout's tools."""

import os
import sys
import warnings
from typing import Any

config: Any = globals()["config"]  # lit puts it here
_here = os.path.dirname(__file__)
sys.path[:0] = [_here, os.path.dirname(_here)]
with warnings.catch_warnings():
    warnings.simplefilter("error")
    from forked import Forked

config.name = "mutad"
config.test_format = Forked()
config.suffixes = [".mlir", ".py"]
config.excludes = ["lit.cfg.py", "forked.py"]
config.test_source_root = _here
config.environment["PYTHONWARNINGS"] = "error"
config.environment["PYTHONPATH"] = os.path.dirname(_here)

_bin = os.path.dirname(sys.executable)
config.substitutions += [
    ("mutad-opt", f"{sys.executable} -m mutad.opt"),
    ("mutadc", f"{sys.executable} -m mutad.aot"),
    ("filecheck", os.path.join(_bin, "filecheck")),
]
