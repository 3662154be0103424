"""What the frontend makes of statements and expressions: one claim a test, on the printed IR."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects import memref, scf
from xdsl.ir import Operation

from mutad.compiler.diagnostics import line_of
from mutad.compiler.frontend.build import Built, build_function
from mutad.compiler.transforms.eliminate_common import EliminateCommon
from mutad.compiler.transforms.fuse_elementwise import FuseElementwise
from mutad.compiler.transforms.unify_extents import UnifyExtents
from mutad.dialects import array


def build(function: Callable[..., Any], *arguments: str, **options: Any) -> Built:
    built = build_function(function, arguments, **options)  # pyright: ignore
    built.module.verify()
    return built


def fused(function: Callable[..., Any], *arguments: str) -> Built:
    """What is left of the maps that each operation is, once they are fused."""
    built = build(function, *arguments)
    for one in (EliminateCommon(), UnifyExtents(), FuseElementwise()):
        one.apply(Context(), built.module)
    return built


def ops(built: Built, kind: type[Operation]) -> list[Any]:
    return [op for op in built.module.walk() if isinstance(op, kind)]


def text(built: Built) -> str:
    return str(built.module)


# Scalars


def test_an_accumulator_is_one_cell_loaded_and_stored_once_an_iteration() -> None:
    def total(x):
        s = 0.0
        for v in x:
            t = v * v
            s += t
        return s

    built = build(total, "f64[?]C")
    assert len(ops(built, memref.AllocaOp)) == 1
    (loop,) = ops(built, array.LoopOp)
    inside = [type(op) for op in loop.body.block.ops]
    assert inside.count(memref.StoreOp) == 1
    assert inside.count(memref.LoadOp) == 2  # the cell and the element


def test_an_int_that_becomes_a_float_in_a_loop_is_a_float_cell() -> None:
    def total(x):
        s = 0
        for v in x:
            s += v
        return s

    built = build(total, "f64[?]C")
    assert "memref.alloca() : memref<f64>" in text(built)
    assert built.results == {
        "kind": "scalar",
        "type": "f64",
        "python": "py_int",
        "flag": 0,
        "flags": 1,
    }


def test_a_counter_bounded_by_the_condition_needs_no_overflow_check() -> None:
    def count(x, n):
        i = 0
        while i < n:
            x[i] = 1.0
            i += 1

    built = build(count, "f64[?]C", "py_int")
    assert "checked" not in text(built)
    (index,) = ops(built, array.IndexOp)
    assert index.sign.data == "nonneg"


def test_arithmetic_that_may_exceed_64_bits_is_checked() -> None:
    def product(a, b):
        return a * b + 1

    built = build(product, "py_int", "py_int")
    assert "array.checked_mul" in text(built)
    assert "array.checked_add" in text(built)


def test_extents_are_small_enough_for_plain_arithmetic() -> None:
    def middle(x):
        return (x.shape[0] + x.shape[1]) * 2 - 1

    assert "checked" not in text(build(middle, "f64[?,?]C"))


def test_a_negative_constant_subscript_says_so() -> None:
    def last(x):
        return x[-1] + x[0]

    signs = [op.sign.data for op in ops(build(last, "f64[?]C"), array.IndexOp)]
    assert signs == ["negative", "nonneg"]


def test_a_subscript_of_unknown_sign_says_so() -> None:
    def item(x, i):
        return x[i]

    (index,) = ops(build(item, "f64[?]C", "py_int"), array.IndexOp)
    assert index.sign.data == "any"


def test_division_of_python_floats_raises_and_of_numpy_scalars_does_not() -> None:
    def quotient(a, b):
        return a / b

    assert "ZeroDivisionError" in text(build(quotient, "py_float", "py_float"))
    assert "ZeroDivisionError" not in text(build(quotient, "f64", "f64"))


def test_a_divisor_known_not_to_be_zero_is_not_checked() -> None:
    def halves(a, n):
        return a / 2, n // 3, n % 5

    assert "raise_if" not in text(build(halves, "py_float", "py_int"))


def test_constants_are_folded() -> None:
    def constant():
        return 2 * math.pi + 3**2 - 7 // 2

    built = build(constant)
    assert len(list(built.module.walk())) == 4  # module, function, constant, return


def test_math_raises_outside_its_domain() -> None:
    def root(x):
        return math.sqrt(x)

    built = text(build(root, "py_float"))
    assert '"ValueError", "math domain error"' in built or "expected a nonnegative input" in built


# Control flow


def test_a_branch_yields_what_is_live_after_it() -> None:
    def pick(x, c):
        if c:
            unused = x * 3
            y = unused + 1
        else:
            y = 2
        return y

    (branch,) = ops(build(pick, "py_float", "py_bool"), scf.IfOp)
    assert [str(r.type) for r in branch.results] == ["f64"]


def test_a_condition_known_while_compiling_leaves_one_branch() -> None:
    def optional(x, w):
        if w is None:
            return x.sum()
        return (x * w).sum()

    assert not ops(build(optional, "f64[?]C", "None"), scf.IfOp)
    assert not ops(build(optional, "f64[?]C", "f64[?]C"), scf.IfOp)


def test_an_early_return_becomes_a_branch() -> None:
    def guarded(x, n):
        if n == 0:
            return 0.0
        s = x * n
        return s + 1

    built = build(guarded, "py_float", "py_int")
    assert len(ops(built, scf.IfOp)) == 1
    assert built.results == {"kind": "scalar", "type": "py_float"}


def test_a_raise_under_a_condition_is_one_check() -> None:
    def guarded(n):
        if n < 0:
            raise ValueError(f"{n} is negative")
        return n

    built = build(guarded, "py_int")
    assert not ops(built, scf.IfOp)
    (check,) = ops(built, array.RaiseIfOp)
    assert check.message.data == "{} is negative"


def test_a_name_that_may_be_unbound_raises_where_it_is_read() -> None:
    def last(x):
        for v in x:
            t = v
        return t

    assert "UnboundLocalError" in text(build(last, "f64[?]C"))


def test_a_loop_that_certainly_runs_binds_its_names() -> None:
    def last():
        for i in range(3):
            t = i
        return t

    assert "UnboundLocalError" not in text(build(last))


def test_short_circuit_guards_what_may_raise() -> None:
    def guarded(x, i):
        return 0 <= i and x[i] > 0

    built = build(guarded, "f64[?]C", "py_int")
    (branch,) = ops(built, scf.IfOp)
    assert any(isinstance(op, array.IndexOp) for op in branch.walk())


def test_cheap_conditions_are_joined_without_a_branch() -> None:
    def inside(a, b):
        return 0 < a < 5 and b > 2

    assert not ops(build(inside, "py_int", "py_float"), scf.IfOp)


def test_a_loop_over_a_tuple_is_unrolled() -> None:
    def total(x):
        s = 0.0
        for k in (1, 2, 5):
            s += x[k]
        return s, k

    built = build(total, "f64[?]C")
    assert not ops(built, array.LoopOp)
    assert len(ops(built, array.IndexOp)) == 3


def test_a_while_loop_has_a_condition_region() -> None:
    def halve(x):
        while x > 1.0:
            x = x / 2
        return x

    (loop,) = ops(build(halve, "py_float"), array.LoopOp)
    assert loop.count is None
    assert loop.condition_block is not None


# Arrays


def test_a_swap_is_carried_by_the_loop() -> None:
    def ping_pong(u, v, n):
        for _ in range(n):
            v[:] = 2 * u
            u, v = v, u
        return u.sum()

    (loop,) = ops(build(ping_pong, "f64[?]C", "f64[?]C", "py_int"), array.LoopOp)
    assert len(loop.carried) == 2
    assert loop.yielded == tuple(reversed(loop.body_carried))


def test_a_swap_of_different_layouts_is_carried_under_one_type() -> None:
    def ping_pong(u, n):
        v = u.copy()
        for _ in range(n):
            v[0] = 2 * u[1]
            u, v = v, u
        return u.sum()

    built = build(ping_pong, "f64[?]S", "py_int")
    (loop,) = ops(built, array.LoopOp)
    assert len({str(c.type) for c in loop.carried}) == 1
    assert len(ops(built, memref.CastOp)) == 1


def test_a_swap_in_a_nest_copies_nothing_and_is_chosen_by_one_branch() -> None:
    def nest(u, v, m, n):
        for _ in range(m):
            for _ in range(n):
                v[0] = 2 * u[0]
                u, v = v, u
        return u[0]

    built = build(nest, "f64[?]C", "f64[?]C", "py_int", "py_int")
    assert not ops(built, array.MapOp)
    outer, inner = ops(built, array.LoopOp)
    assert not outer.carried
    assert len(inner.carried) == 2
    (choice,) = {c.owner for c in inner.carried}
    assert isinstance(choice, scf.IfOp)
    assert len(choice.results) == 2


def test_a_stencil_on_swapped_arrays_needs_no_temporary() -> None:
    """Arrays that are as long when they enter the loop are as long whenever they have changed places."""

    def nest(u, v, m, n):
        for _ in range(m):
            for _ in range(n):
                v[1:-1] = u[1:-1] + 0.2 * (u[:-2] + u[2:])
                u, v = v, u
        return u[0]

    built = fused(nest, "f64[?]C", "f64[?]C", "py_int", "py_int")
    assert not ops(built, array.AllocOp)
    assert len(ops(built, array.MapOp)) == 1


def test_an_array_that_a_loop_binds_first_is_made_once_before_it() -> None:
    def residual(x, y, n):
        for i in range(n):
            r = x - y * i
        return r

    built = fused(residual, "f64[?]C", "f64[?]C", "py_int")
    (made,) = [a for a in ops(built, array.AllocOp) if a.memref.name_hint == "r"]
    (loop,) = ops(built, array.LoopOp)
    assert made.parent is loop.parent
    assert [m.outs[0] for m in ops(built, array.MapOp)] == [made.memref]


def test_a_rebound_array_lives_in_a_buffer() -> None:
    def euler(u, n):
        for _ in range(n):
            u = u + 0.1 * u
        return u.sum()

    built = build(euler, "f64[?]C", "py_int")
    (loop,) = ops(built, array.LoopOp)
    assert not loop.carried
    assert built.written == []


def test_leapfrog_copies_the_old_buffer_before_it_is_overwritten() -> None:
    def wave(u, n):
        old = u.copy()
        for _ in range(n):
            new = 2 * u - old
            old = u
            u = new
        return u.sum()

    (loop,) = ops(build(wave, "f64[?]C", "py_int"), array.LoopOp)
    copies = [op for op in loop.body.block.ops if isinstance(op, array.MapOp)][-2:]
    assert copies[0].ins[0] is copies[1].outs[0]


def test_a_local_array_may_be_rebound_and_changed() -> None:
    def drive(u, n):
        u = u.copy()
        for _ in range(n):
            u[0] = 0.0
            u = 2.0 * u
        return u.sum()

    assert build(drive, "f64[?]C", "py_int").written == []


def test_a_slice_assignment_is_one_map() -> None:
    def scale(x):
        x[1:] = 2 * x[1:] + 1

    built = fused(scale, "f64[?]C")
    assert len(ops(built, array.MapOp)) == 1
    assert not ops(built, array.AllocOp)


def test_branches_with_different_layouts_agree_on_a_strided_type() -> None:
    def pick(x, c):
        y = x[::2] if c else x
        return y.sum()

    (branch,) = ops(build(pick, "f64[?]C", "py_bool"), scf.IfOp)
    assert str(branch.results[0].type) == "memref<?xf64, strided<[?]>>"


# Functions


def scaled(v, by=2.0, *, plus=0.0):
    return by * v + plus


def test_calls_are_inlined_with_defaults_and_keywords() -> None:
    def outer(x):
        return scaled(x) + scaled(x, 3.0, plus=1.0) + scaled(by=x, v=x)

    built = build(outer, "py_float")
    assert "call" not in text(built)
    assert [s[1].rpartition(".")[2] for s in built.sources] == ["outer", "scaled"]


def test_closures_see_the_names_of_their_function() -> None:
    def outer(x, k):
        def f(v):
            return k * v

        k = k + 1
        return f(x) + (lambda v: v - k)(x)

    built = text(build(outer, "py_float", "py_float"))
    assert built.count("arith.addf") == 2


def test_globals_are_constants_and_noted() -> None:
    def outer(x):
        return x * FACTOR

    built = build(outer, "py_float")
    assert [(d.rpartition(":")[2], r) for d, r in built.constants] == [("FACTOR", "2.5")]
    assert "2.500000e+00" in text(built)


FACTOR = 2.5


# The interface


def test_results_and_written_parameters() -> None:
    def everything(x, y, n):
        y[0] = 1.0
        return x, x[1:], n + 1, (y * 2, None)

    built = build(everything, "f64[?]C", "f64[?]C", "py_int")
    assert built.written == [1]
    assert built.results == {
        "kind": "tuple",
        "items": [
            {"kind": "argument", "leaf": 0, "position": 0},
            {"kind": "array", "dtype": "f64", "rank": 1, "base": 0},
            {"kind": "scalar", "type": "py_int"},
            {
                "kind": "tuple",
                "items": [
                    {"kind": "array", "dtype": "f64", "rank": 1, "base": None},
                    {"kind": "none"},
                ],
            },
        ],
    }


def test_a_swapped_argument_may_come_back_itself() -> None:
    def ping_pong(u, n):
        v = u.copy()
        for _ in range(n):
            u, v = v, u
        return u

    built = build(ping_pong, "f64[?]C", "py_int")
    assert built.results == {
        "kind": "array",
        "dtype": "f64",
        "rank": 1,
        "base": None,
        "among": [0],
    }


def test_a_view_of_all_of_an_argument_is_a_view() -> None:
    def whole(x):
        return x[:], x

    first, second = build(whole, "f64[?]C").results["items"]
    assert (first["kind"], first["base"]) == ("array", 0)
    assert second["kind"] == "argument"


def test_a_returned_part_of_a_local_array_comes_with_the_owner_of_its_memory() -> None:
    def part(n):
        return np.ones(n)[1:]

    built = build(part, "py_int")
    assert len(ops(built, array.AllocOp)) == 1
    (owner,) = built.results["owners"]
    assert (built.results["owner"], owner["base"]) == (1, None)
    assert "hidden = 1 : i64" in text(built)


def test_overlapping_arguments_are_an_attribute_and_identical_ones_are_one() -> None:
    def add(x, y):
        y[:] = x + y

    overlap = build(add, "f64[?]C", "f64[?]C", overlaps=((0, 1, "overlap"),))
    assert "overlaps = [[0 : i64, 1 : i64]]" in text(overlap)
    same = build(add, "f64[?]C", "f64[?]C", overlaps=((0, 1, "same"),))
    assert same.written == [0, 1]
    assert "overlaps" not in text(same)


def test_tuple_arguments_are_flattened() -> None:
    def total(pair, k):
        x, (a, _) = pair
        return x.sum() * a + k

    built = build(total, "(f64[?]C,(py_float,None))", "py_int")
    assert "@total(%pair: memref<?xf64>, %pair_1: f64, %k: index)" in text(built)


def test_every_op_knows_its_line() -> None:
    def smooth(u, n):
        for _ in range(n):
            u[1:-1] += 0.1 * (u[2:] - u[:-2])
        return math.sqrt(u.sum() / max(n, 1))

    for op in build(smooth, "f64[?]C", "py_int").module.walk():
        if op.name != "builtin.module":
            place = line_of(op)
            assert place is not None, op
            assert place[0] == __file__


def test_each_lambda_of_a_line_is_found() -> None:
    # fmt: off
    f, g, h = (lambda x: x + 1), (lambda x, c=3.0: x * c if x > 0 else (lambda v: v - x)(c)), lambda x: x
    # fmt: on
    assert "arith.addf" in text(build(f, "py_float"))
    assert "arith.mulf" in text(build(g, "py_float", "py_float"))
    assert build(h, "py_float").results == {"kind": "scalar", "type": "py_float"}


def test_a_lambda_over_several_lines_is_found() -> None:
    f = lambda x: (  # noqa: E731
        x + 1
        if x > 0
        else x
    )  # fmt: skip
    assert "scf.if" in text(build(f, "py_float"))


# What is assumed of extents


def test_an_array_that_a_path_has_not_is_as_long_as_those_of_the_others() -> None:
    def pulled(x):
        points = [x * float(k) for k in range(len(x))]
        points.sort(key=lambda p: p[0])
        middle = sum(p for p in points[:-1]) / 2.0
        return middle + (middle - points[-1])

    assert build(pulled, "f64[?]C").assumed == []
