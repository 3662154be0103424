"""What type checkers tell users: the lines of `users_file.py` that say `# wrong`, and no others."""

import json
import subprocess
import sys
from pathlib import Path

FILE = Path(__file__).with_name("users_file.py")
WRONG = {n for n, line in enumerate(FILE.read_text().splitlines(), 1) if line.endswith("# wrong")}


def run(*command: str) -> str:
    asked = [sys.executable, "-m", *command, str(FILE)]
    return subprocess.run(asked, capture_output=True, text=True, check=False).stdout


def test_pyright_reports_the_wrong_lines():
    reported = json.loads(run("pyright", "--outputjson"))["generalDiagnostics"]
    assert {d["range"]["start"]["line"] + 1 for d in reported} == WRONG


def test_mypy_reports_the_wrong_lines(tmp_path: Path):
    lines = run(
        "mypy", "--strict", "--follow-imports=silent", f"--cache-dir={tmp_path}"
    ).splitlines()
    reported = [line for line in lines if line.startswith(str(FILE)) or FILE.name in line]
    assert {int(line.split(":")[1]) for line in reported if ": error:" in line} == WRONG
