"""How lit cases are run: what is wrong in one fails it, in a forked tool as in lit's own shell."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

CASES = {
    "holds": "// RUN: mutad-opt %s -p remove-dead | filecheck %s\n// CHECK: @kept\n// CHECK-NOT: addi",
    "holds_in_the_shell": "// RUN: mutad-opt %s -p remove-dead > %t && filecheck %s < %t\n// CHECK: @kept",
    "holds_in_a_quoted_pipe": (
        "// RUN: mutad-opt %s -p \"remove-dead\" | mutad-opt -p 'fold-constants' | filecheck %s"
        " --check-prefix=BOTH\n// BOTH: @kept"
    ),
    "claims_what_is_not_there": "// RUN: mutad-opt %s | filecheck %s\n// CHECK: @missing",
    "has_no_such_pass": "// RUN: mutad-opt %s -p remove-nothing | filecheck %s\n// CHECK-NOT: nothing",
    "fails_in_its_second_line": (
        "// RUN: mutad-opt %s | filecheck %s\n// RUN: mutad-opt %s | filecheck %s --check-prefix OTHER\n"
        "// CHECK: @kept\n// OTHER: @missing"
    ),
    "fails_before_a_tool_that_does_not": (
        "// RUN: mutad-opt no-such-file | mutad-opt %s | filecheck %s\n// CHECK: @kept"
    ),
    "fails_in_the_shell": "// RUN: mutad-opt %s > %t && filecheck %s < %t\n// CHECK: @missing",
    "has_no_line_to_run": "// CHECK: @kept",
}
PROGRAM = """
func.func @kept(%n: i64) -> i64 {
  %unused = arith.addi %n, %n : i64
  return %n : i64
}
"""


def test_a_case_fails_where_a_tool_or_a_claim_does(root: Path, tmp_path: Path):
    for name, text in CASES.items():
        (tmp_path / f"{name}.mlir").write_text(f"{text}\n{PROGRAM}")
    ours = root / "lit-tests" / "lit.cfg.py"
    (tmp_path / "lit.cfg.py").write_text(
        f"exec({ours.read_text()!r}, globals() | {{'__file__': {str(ours)!r}}})\n"
        f"config.test_source_root = {str(tmp_path)!r}\nconfig.name = 'cases'\n"
    )
    command = [sys.executable, "-c", "from lit.main import main; main()", "-v", "-j", "1", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    told = re.findall(r"^(PASS|FAIL|UNRESOLVED): cases :: (\w+)\.mlir", done.stdout, re.MULTILINE)
    assert told, done.stdout + done.stderr
    outcomes = {name: what for what, name in told}
    assert outcomes == {
        name: "PASS"
        if name.startswith("holds")
        else ("UNRESOLVED" if name.startswith("has_no_line") else "FAIL")
        for name in CASES
    }, done.stdout
    assert "mutad-opt ends with 1" in done.stdout
    assert "remove-nothing" in done.stdout
