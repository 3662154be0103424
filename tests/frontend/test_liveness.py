"""Liveness: which names must outlive a branch, an iteration, a loop."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from textwrap import dedent

from mutad.compiler.frontend.syntax.liveness import Liveness, assigned, reads


def statements(text: str) -> list[ast.stmt]:
    return ast.parse(dedent(text)).body


def test_a_name_assigned_before_it_is_read_in_each_iteration_is_dead_at_its_end() -> None:
    loop, *rest = body = statements("for i in r:\n    t = i\n    s = s + t\nprint(s)")
    live = Liveness.of(body)
    assert live.head[loop] & {"i", "t", "s"} == {"s"}
    assert "s" in live.after[loop]
    assert rest


def test_a_name_read_at_the_start_of_the_next_iteration_is_live_around() -> None:
    (loop,) = body = statements("while c:\n    use(p)\n    p = q\n    q = 1")
    assert {"p", "q", "c"} <= Liveness.of(body).head[loop]


def test_after_a_branch_only_what_is_read_later_is_live() -> None:
    branch, _ = body = statements("if c:\n    a = 1\n    b = a\nelse:\n    b = 2\nuse(b)")
    live = Liveness.of(body).after[branch]
    assert "b" in live
    assert "a" not in live


def test_what_a_local_function_captures_is_always_live() -> None:
    first, *_ = body = statements("k = 1\ndef f(v):\n    w = v\n    return k * w\nuse(f)")
    live = Liveness.of(body).after[first]
    assert "k" in live
    assert not {"v", "w"} & live


def test_an_augmented_assignment_reads_its_target() -> None:
    (statement,) = statements("x += y")
    assert reads(statement) == {"x", "y"}
    assert assigned(statement) == {"x"}


def test_a_deep_nest_is_walked_once_for_each_loop_around() -> None:
    depth, walks = 30, 0

    class Counted(Liveness):
        def block(
            self, statements: Sequence[ast.stmt], live: frozenset[str], always: frozenset[str]
        ) -> frozenset[str]:
            nonlocal walks
            walks += 1
            return super().block(statements, live, always)

    nest = "".join(f"{' ' * d}for i{d} in r:\n" for d in range(depth)) + f"{' ' * depth}s = s + i0"
    Counted.of(statements(nest))
    assert walks < 3 * depth**2
