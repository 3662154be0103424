"""What depends on the version of NumPy: compiled code does what the one does that is installed."""

from __future__ import annotations

import numpy as np

BEFORE_2_5 = tuple(int(part) for part in np.__version__.split(".")[:2]) < (2, 5)
