"""What type checkers tell users: the lines of their file that say `# wrong`, and no others."""

import json
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("users_file.py")
STATIC = Path(__file__).with_name("static_methods.py")


def wrong(file: Path) -> set[int]:
    lines = file.read_text().splitlines()
    return {n for n, line in enumerate(lines, 1) if line.endswith("# wrong")}


def run(*command: str) -> str:
    asked = [sys.executable, "-m", *command]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


def test_pyright_reports_the_wrong_lines():
    found = json.loads(run("pyright", "--outputjson", str(FILE), str(STATIC)))["generalDiagnostics"]
    for file in (FILE, STATIC):
        reported = [d for d in found if d["file"] == str(file)]
        assert {d["range"]["start"]["line"] + 1 for d in reported} == wrong(file)


def test_mypy_reports_the_wrong_lines(tmp_path: Path):
    options = "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}"
    lines = run("mypy", *options, str(FILE), str(STATIC)).splitlines()
    for file in (FILE, STATIC):
        reported = [line for line in lines if file.name in line and ": error:" in line]
        assert {int(line.split(":")[1]) for line in reported} == wrong(file)
