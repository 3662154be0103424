"""How many generated programs a property looks at.

In CI a few, always the same ones; with `HYPOTHESIS_PROFILE=dev` many more, and other ones each time.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings


def profile(few: int, many: int = 1000) -> settings:
    """A decorator: `few` programs in CI, `many` under development."""
    unhurried = settings(deadline=None, suppress_health_check=list(HealthCheck))
    if os.environ.get("HYPOTHESIS_PROFILE") == "dev":
        return settings(unhurried, max_examples=many, print_blob=True)
    return settings(unhurried, max_examples=few, derandomize=True, database=None)
