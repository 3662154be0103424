"""No two threads of a kernel meet: the interpreter looks at every element that each of them touches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from device_checks import close
from device_programs import PROGRAMS, Arguments, bodies, heat, named, rows_in_order, waves
from meeting_programs import KS, MEETING, added_at, gathered
from race_oracle import watched
from xdsl.context import Context
from xdsl.dialects.builtin import DenseArrayBase
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

import mutad
from mutad.compiler.compilation import Compilation
from mutad.compiler.interpreter import Undefined, interpret
from mutad.compiler.kernels.outline_kernels import OutlineKernels
from mutad.compiler.pipeline import OUTLINED, stages_for
from mutad.compiler.request import Options, Request
from mutad.kernels import World
from mutad.runtime.emulated_driver import Function
from mutad.runtime.keys import address_of

KERNEL = """
func.func @f(%u : memref<?xf64, 1 : i64>, %b : index) {{
  device.launch @k blocks(%b) (%u : memref<?xf64, 1 : i64>)
  func.return
}}
func.func private @k(%u : memref<?xf64, 1 : i64>) attributes {{kernel}} {{
  %t = device.thread
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %next = arith.addi %t, %c1 : index
  {body}
  func.return
}}
"""
ELEMENT = "memref<?xf64, 1 : i64>"
RACING = {
    "reads_what_a_neighbour_writes": f"""
      %x = memref.load %u[%next] : {ELEMENT}
      memref.store %x, %u[%t] : {ELEMENT}""",
    "all_write_one_element": f"""
      %x = arith.constant 1.0 : f64
      memref.store %x, %u[%c0] : {ELEMENT}""",
}
RACING["one_reads_what_all_add_to"] = f"""
      %x = memref.load %u[%c0] : {ELEMENT}
      device.atomic_add %x, %u[%c0] : f64, {ELEMENT}"""
APART = {
    "a_barrier_is_between": f"""
      %x = memref.load %u[%next] : {ELEMENT}
      device.barrier
      memref.store %x, %u[%t] : {ELEMENT}""",
    "all_add_to_one_element": f"""
      %x = arith.constant 0.0 : f64
      device.atomic_add %x, %u[%c0] : f64, {ELEMENT}""",
    "all_read_one_element": f"""
      %x = memref.load %u[%c0] : {ELEMENT}""",
}


def run(body: str, blocks: int, context: Context) -> np.ndarray:
    module = Parser(context, KERNEL.format(body=body)).parse_module()
    u = np.arange(300.0)
    interpret(module, "f", [u, blocks], World())
    return u


@pytest.mark.parametrize("body", RACING.values(), ids=RACING.keys())
def test_threads_that_meet_are_found(body: str, context: Context) -> None:
    with pytest.raises(Undefined, match=r"a race: thread .* are at one element"):
        run(body, 1, context)


@pytest.mark.parametrize("body", APART.values(), ids=APART.keys())
def test_threads_of_a_block_may_meet_past_a_barrier(body: str, context: Context) -> None:
    u = run(body, 1, context)
    assert u.tolist() in ([*range(1, 257), *range(256, 300)], [*range(300)])


UNEQUAL = """
  %zero = arith.constant 0.0 : f64
  %trips = array.loop %i to %t do {
    device.barrier
    memref.store %zero, %u[%t] : memref<?xf64, 1 : i64>
    array.yield
  }"""


def test_threads_come_to_a_barrier_equally_often(context: Context) -> None:
    with pytest.raises(Undefined, match="differently often"):
        run(UNEQUAL, 1, context)


def test_a_barrier_is_none_for_other_blocks(context: Context) -> None:
    with pytest.raises(Undefined, match="a race"):
        run(APART["a_barrier_is_between"], 2, context)


@pytest.mark.parametrize(
    ("function", "keys", "arguments", "wrt"),
    [
        (heat, ("f64[?]C", "py_float", "py_int"), (waves(12), 0.1, 2), (0, 1)),
        (rows_in_order, ("f64[?,?]C",) * 3, (waves(3, 4), waves(3, 4), 3 + waves(3, 4)), (0, 1, 2)),
        (gathered, ("f64[?]C", "i64[?]C", "i64[?]C"), (waves(5), KS, KS[::-1]), (0,)),
        (added_at, ("f64[?]C", "i64[?]C", "f64[?]C"), (waves(5), KS, waves(6)), (0, 2)),
        (bodies, ("f64[?]C", "f64[?]C"), (waves(7), waves(7)), (0,)),
    ],
)
@pytest.mark.parametrize("deterministic", [False, True])
def test_gradients_have_no_races(
    function: Any,
    keys: tuple[str, ...],
    arguments: tuple[Any, ...],
    wrt: tuple[int, ...],
    deterministic: bool,
) -> None:
    compare_stages(function, keys, arguments, wrt, deterministic=deterministic)


LONG = ("products", "layers", "diagonals", "bodies")
"""Their kernels have many points, or are those of `test_threads_that_share_a_tile_do_not_race`."""
TABLE = [
    (function, arguments, wrt)
    for function, arguments, wrt in (
        *PROGRAMS,
        *((m.function, m.arguments, m.wrt) for m in MEETING),
    )
    if wrt and function.__name__ not in LONG
]


@pytest.mark.parametrize(("function", "arguments", "wrt"), TABLE, ids=map(named, TABLE))
def test_no_gradient_of_the_tables_has_races(
    function: Any, arguments: Arguments, wrt: tuple[str, ...]
) -> None:
    names = function.__code__.co_varnames
    given = arguments()
    places = tuple(names.index(name) for name in wrt)
    compare_stages(function, tuple(map(key_of, given)), given, places, deterministic=False)


def key_of(value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return {float: "py_float", int: "py_int"}[type(value)]
    element = {"f8": "f64", "f4": "f32", "i8": "i64"}[value.dtype.str[1:]]
    return f"{element}[{','.join('?' * value.ndim)}]C"


def compare_stages(
    function: Any,
    keys: tuple[str, ...],
    arguments: tuple[Any, ...],
    wrt: tuple[int, ...],
    *,
    deterministic: bool,
) -> None:
    """Without and with kernels a gradient is the same, and nothing of it is undefined."""
    found: dict[str, list[Any]] = {}
    name = f"{function.__name__}_gradient"
    options = Options(device="host", deterministic=deterministic)
    c = Compilation(Request(function, keys, mode="gradient", wrt=wrt, options=options))
    for stage in stages_for(c.request):
        stage.run(c)
        if stage.name in ("optimize", OUTLINED.name):
            given = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
            (gradient,) = (f for f in c.module.ops if isinstance(f, FuncOp) and name_of(f) == name)
            shadows = gradient.attributes["shadows"]
            assert isinstance(shadows, DenseArrayBase)
            values = [*given, *(np.zeros_like(given[int(k)]) for k in shadows.get_values()), 1.0]
            found[stage.name] = [*interpret(c.module, name, values, World()), *values]
        if stage is OUTLINED:
            break
    for one, other in zip(*found.values(), strict=True):
        close(one, other)


def name_of(function: FuncOp) -> str:
    return function.sym_name.data


def test_threads_that_share_a_tile_do_not_race(context: Context) -> None:
    """A product of matrices, and one with a vector."""
    matrix = "memref<?x?xf64>"
    text = f"""
func.func @f(%a : {matrix}, %b : {matrix}, %x : memref<?x1xf64>, %c : {matrix}, %y : memref<?x1xf64>) {{
  array.matmul %a, %b into %c accumulate : {matrix}, {matrix}, {matrix}
  array.matmul %a, %x into %y : {matrix}, memref<?x1xf64>, memref<?x1xf64>
  func.return
}}"""
    module = Parser(context, text).parse_module()
    OutlineKernels().apply(context, module)
    a, b, x = waves(3, 18), waves(18, 4), waves(18, 1)
    c, y = np.ones((3, 4)), np.zeros((3, 1))
    interpret(module, "f", [a, b, x, c, y], World())
    assert np.allclose(c, a @ b + 1, rtol=1e-14)
    assert np.allclose(y, a @ x, rtol=1e-14)


def test_launches_are_looked_at() -> None:
    """A race in what is launched is an error of the call."""
    f = mutad.compile(heat, grad=True, opt=1, cache=False)
    with watched() as watch:
        f.grad(mutad.device_array(waves(20)), 0.1, 2)
        assert watch.kernels > 5
        u = mutad.device_array(waves(300))
        racing = KERNEL.format(body=RACING["all_write_one_element"])
        kernel = Function("k", lambda *_: None, ["ptr", "i64", "i64"], [1], [8], racing)
        with pytest.raises(Undefined, match="a race"):
            watch(kernel, [address_of(u.taken.array), 300, 1], 1)
