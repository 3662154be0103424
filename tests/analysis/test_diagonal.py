"""Which tangent functions go from each element to the one in its place alone."""

from __future__ import annotations

import pytest
from xdsl.dialects import func

from mutad.bisect import read_module
from mutad.compiler.analysis.diagonal import is_diagonal

HEAD = """
func.func @f(%x_dot : memref<?xvector<8xf64>>, %w : memref<?xf64>, %n : index) -> memref<?xvector<8xf64>> {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %y_dot = array.alloc(%n) : memref<?xvector<8xf64>>
"""
END = """
  func.return %y_dot : memref<?xvector<8xf64>>
}
"""


def mapped(source: str, target: str, *body: str, inside: str = "%e") -> str:
    return "\n".join(
        [
            f'  array.map(%n) ins({source}) outs({target}) kinds ["store"] {{',
            "  ^bb0(%e : vector<8xf64>):",
            *body,
            f"    array.yield {inside} : vector<8xf64>",
            "  }",
        ]
    )


X, Y = "%x_dot : memref<?xvector<8xf64>>", "%y_dot : memref<?xvector<8xf64>>"
VIEW = "  %v = array.view %x_dot[{}] dims [{}] extents(%n) steps({})"
VIEW += " : memref<?xvector<8xf64>> -> memref<?xvector<8xf64>, strided<[{}], offset: ?>>"
OF_VIEW = "%v : memref<?xvector<8xf64>, strided<[{}], offset: ?>>"
NUMBER = (
    "    %a = memref.load %w[%n] : memref<?xf64>",
    "    %s = vector.broadcast %a : f64 to vector<8xf64>",
    "    %p = arith.mulf %e, %s : vector<8xf64>",
)
LOOP = "  %t = array.loop %i to %n do {{\n{}\n    array.yield\n  }}"

DIAGONAL = {
    "a copy": mapped(X, Y),
    "times numbers from anywhere": mapped(X, Y, *NUMBER, inside="%p"),
    "in a loop": LOOP.format(mapped(X, Y)),
    "a view of all": VIEW.format("%c0", "0", "%c1", "1") + "\n" + mapped(OF_VIEW.format(1), Y),
}
OTHERS = {
    "a view from the second on": VIEW.format("%c1", "0", "%c1", "1")
    + "\n"
    + mapped(OF_VIEW.format(1), Y),
    "a view of one": VIEW.format("%c0", "-1", "%c0", "0") + "\n" + mapped(OF_VIEW.format(0), Y),
    "a view in steps": VIEW.format("%c0", "0", "%n", "?") + "\n" + mapped(OF_VIEW.format("?"), Y),
    "a load in a map": mapped(
        X, Y, "    %o = memref.load %x_dot[%c0] : memref<?xvector<8xf64>>", inside="%o"
    ),
    "a load in a loop": LOOP.format(
        "    %o = memref.load %x_dot[%c0] : memref<?xvector<8xf64>>\n"
        "    memref.store %o, %y_dot[%i] : memref<?xvector<8xf64>>"
    ),
    "lanes that meet": mapped(
        X,
        Y,
        "    %o = vector.extract %e[%c0] : f64 from vector<8xf64>",
        "    %s = vector.broadcast %o : f64 to vector<8xf64>",
        inside="%s",
    ),
}


def function(body: str) -> func.FuncOp:
    (found,) = read_module(HEAD + body + END, "test").ops
    assert isinstance(found, func.FuncOp)
    return found


@pytest.mark.parametrize("body", DIAGONAL.values(), ids=DIAGONAL)
def test_by_points(body: str) -> None:
    assert is_diagonal(function(body))


@pytest.mark.parametrize("body", OTHERS.values(), ids=OTHERS)
def test_not_by_points(body: str) -> None:
    assert not is_diagonal(function(body))
