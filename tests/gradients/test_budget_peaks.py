"""What the memory of a process grows by within a budget, as the system counts it.

In the second call: the first one also loads code, and makes the tables of schedules, which stay.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

MEASURED = """
import sys
import numpy as np
from budget_programs import {name} as program
import mutad

def status(key):
    lines = open("/proc/self/status").read().splitlines()
    return 1024 * int(next(one for one in lines if one.startswith(key)).split()[1])

def arguments(size):
    arrays = [np.linspace(0.2, 0.9, size) for _ in range({arrays})]
    return (*arrays, *{others})

function = mutad.compile(program, grad=True, opt=1, memory={memory})
call = getattr(function, "{method}")
keywords = {keywords}
call(*arguments(50), **keywords(50))
call(*arguments({size}), **keywords({size}))
mutad.release_memory()
given, more = arguments({size}), keywords({size})
receipt = function.explain(*given, mode="{mode}")
open("/proc/self/clear_refs", "w").write("5")
before = status("VmRSS")
call(*given, **more)
print(status("VmHWM") - before, receipt.shadow_bytes + receipt.temporary_bytes, receipt.saved_bytes or 0)
"""
SLACK = 4 << 20


@pytest.mark.parametrize(
    ("name", "arrays", "others", "method", "budget", "disk"),
    [
        ("stencil", 1, "(0.1, 60)", "grad", 24 << 20, True),
        ("after_each_other", 2, "(25, 20)", "grad", 24 << 20, False),
        ("sweeps", 2, "(12, 9)", "grad", 36 << 20, True),
        ("three_deep", 2, "(4, 5, 4)", "grad", 64 << 20, False),
        ("stencil", 1, "(0.1, 40)", "hvp", 24 << 20, True),
    ],
)
def test_a_process_grows_by_no_more(
    name: str, arrays: int, others: str, method: str, budget: int, disk: bool, tmp_path: Path
) -> None:
    memory = f"({budget}, 'disk:{tmp_path}')" if disk else str(budget)
    of_product = method == "hvp"
    keywords = "lambda n: {'direction': np.ones(n)}" if of_product else "lambda n: {}"
    text = MEASURED.format(
        name=name, arrays=arrays, others=others, memory=memory, size=200_000, method=method,
        mode="hvp" if of_product else "gradient", keywords=keywords,
    )  # fmt: skip
    support = str(Path(__file__).parents[1] / "support")
    found = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {support!r})\n{text}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    grown, beside, saved = map(int, found.stdout.split())
    assert saved > 2 * budget
    assert 0.5 * budget < grown <= budget + beside + SLACK
