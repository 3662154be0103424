"""Which functions of the frontend the generated programs of the tests reach, and which they do not.

python benchmarks/program_reach.py 200        # as many programs of each kind
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FRONTEND = ROOT / "compiler" / "frontend"
sys.path.insert(0, str(ROOT / "tests" / "support"))

import control_programs  # noqa: E402
import small_programs  # noqa: E402
from generated import Drawn  # noqa: E402

import mutad  # noqa: E402


def programs(count: int) -> Any:
    for seed in range(count):
        draw = Drawn(seed)
        yield control_programs.written(
            control_programs.ControlWriter(draw, 3 + seed % 7, bool(seed % 2))
        )
        yield small_programs.written(small_programs.Writer(draw, 2 + seed % 7, bool(seed % 3 == 0)))


def functions() -> dict[tuple[str, int], str]:
    """All functions of the frontend: file and line, name."""
    found: dict[tuple[str, int], str] = {}
    for path in sorted(FRONTEND.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                line = min([node.lineno, *(d.lineno for d in node.decorator_list)])
                found[str(path), line] = node.name
    return found


def main(count: int) -> None:
    reached, kinds, refused = set[CodeType](), Counter[str](), Counter[str]()

    def profile(frame: FrameType, event: str, _: Any) -> None:
        if event == "call":
            reached.add(frame.f_code)

    for program in programs(count):
        kinds.update(type(node).__name__ for node in ast.walk(ast.parse(program.source)))
        compiled = mutad.compile(program.function(), cache=False)
        sys.setprofile(profile)
        try:
            compiled.inspect("frontend", *program.arguments())
        except mutad.CompileError as error:
            refused[str(error).splitlines()[0].partition("error: ")[2]] += 1
        finally:
            sys.setprofile(None)
    here = {(str(Path(c.co_filename).resolve()), c.co_firstlineno) for c in reached}
    everything = functions()
    print(
        f"{2 * count} programs reach {len(everything.keys() & here)} of {len(everything)} functions"
    )
    for path in sorted({path for path, _ in everything}):
        missing = [n for (p, line), n in everything.items() if p == path and (p, line) not in here]
        print(f"{Path(path).relative_to(FRONTEND)!s:28} never: {', '.join(missing) or '-'}")
    print("\nnodes:", ", ".join(f"{name} {n}" for name, n in kinds.most_common()))
    print("refused:", dict(refused) or "-")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
