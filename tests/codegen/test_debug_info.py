"""Debug metadata: the code is the same with it, and each instruction says its line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from llvmlite import binding

from mutad.compiler import pipeline
from mutad.compiler.codegen.assembly_lines import source_lines, without_debugging
from mutad.compiler.codegen.llvm_module import assembly, optimize_and_emit
from mutad.compiler.compilation import Compilation
from mutad.compiler.pipeline import advance, stages_for
from mutad.compiler.request import Options, Request

Array = np.ndarray


def smooth(u: Array, k: float) -> None:
    u[1:-1] += k * u[:-2]


def heat(u: Array, k: float) -> Any:
    for _ in range(3):
        smooth(u, k)
        u[0] = u[1] * u[1]
    return (u**2).sum()


def several(u: Array, k: float) -> Any:
    a, b, c = np.sin(u), np.cumsum(u), u[::-1].copy()
    a[1:] += b[:-1] * k
    b[2:] *= a[:-2]
    c[3:] -= b[:-3]
    d = np.outer(a, b) @ np.outer(b, c)
    c[::2] = np.exp(-d[0, ::2])
    total = 0.0
    for i in range(len(c)):
        if c[i] > k:
            total += c[i] * a[i] / b[i]
    return total


def sheds(u: Array, k: float, depth: int = 3) -> float:
    if depth == 0:
        return k
    u[0] = u[0] * k
    return sheds(u, k, depth - 1) * u[0]


def request(
    function: Any, mode: str = "primal", wrt: tuple[int, ...] = (0,), **how: Any
) -> Request:
    wrt = () if mode == "primal" else wrt
    arguments = ("f64[?]C", "py_float", *(["py_int"] if function is sheds else []))
    return Request(function, arguments, mode=mode, wrt=wrt, options=Options(**how))


def kernel_of(one: Request) -> Compilation:
    made = Compilation(one)
    for stage in stages_for(one):
        advance(made, stage)
    return made


def code_of(object_code: bytes) -> list[tuple[bytes, bytes]]:
    """The code and the constants of an object file."""
    file = binding.ObjectFileRef.from_data(object_code)
    named = [(section.name() or b"", section.data()) for section in file.sections()]
    return [(name, data) for name, data in named if name.startswith((b".text", b".rodata"))]


WAYS: list[tuple[Any, str, int]] = [
    (heat, "primal", 3),
    (heat, "gradient", 3),
    (heat, "vjp", 3),
    (heat, "tangent", 1),
    (heat, "product", 1),
    (several, "gradient", 3),
    (several, "primal", 0),
    (sheds, "gradient", 3),
]


@pytest.mark.parametrize(("function", "mode", "opt"), WAYS)
def test_the_code_is_the_same_with_debug_information(function: Any, mode: str, opt: int) -> None:
    """(Of the module as a whole: without it large modules are compiled in parts.)"""
    plain = optimize_and_emit(kernel_of(request(function, mode, opt=opt)).llvm, opt)
    with_lines = kernel_of(request(function, mode, opt=opt, debug=True))
    assert "mutad_entry" in with_lines.own_entries  # of other modules elsewhere
    told = optimize_and_emit(with_lines.llvm, opt)
    assert b"test_debug_info.py" in told
    assert b"test_debug_info.py" not in plain
    assert code_of(told) == code_of(plain)


def lines_of(function: Any, mode: str = "primal", opt: int = 1) -> set[int | None]:
    """The lines of this file that the assembly names, from the first of `heat`'s helper on."""
    made = kernel_of(request(function, mode, opt=opt, debug=True))
    places = [place for _, place in source_lines(assembly(made.llvm, opt)) if place is not None]
    assert {file for file, _ in places} == {__file__}
    return {line for _, line in places}


@pytest.mark.parametrize("mode", ["primal", "gradient"])
def test_each_line_that_computes_has_instructions(mode: str) -> None:
    first = heat.__code__.co_firstlineno
    helper = smooth.__code__.co_firstlineno + 1
    assert {helper, first + 3, first + 4} <= lines_of(heat, mode)


def bound_anew(u: Array, k: float, n: int) -> Any:
    v = u
    for n in range(3):
        k = k * 2
    return v[0] * k + n


def in_another(u: Array, k: float, n: int) -> Any:
    def change() -> None:
        nonlocal k
        k = 2.0

    change()
    return u[0] * k + n


def unchanged(u: Array, k: float, n: int) -> Any:
    u[0] = k
    u[1:] += n
    return u.sum()


@pytest.mark.parametrize(
    ("function", "names"),
    [(bound_anew, ["u"]), (in_another, ["u", "n"]), (unchanged, ["u", "k", "n"])],
)
@pytest.mark.parametrize("mode", ["primal", "gradient", "vjp"])
def test_parameters_that_stay_what_they_are_are_variables(
    function: Any, names: list[str], mode: str
) -> None:
    wrt = () if mode == "primal" else (0,)
    one = Request(
        function, ("f64[?]C", "py_float", "u8"), mode=mode, wrt=wrt, options=Options(debug=True)
    )
    text = pipeline.run_stages(one, "llvm")
    assert re.findall(r'DILocalVariable\(name: "(\w+)"', text) == names
    assert ('!DIBasicType(name: "uint8", size: 8, encoding: DW_ATE_unsigned)' in text) == (
        "n" in names
    )


@pytest.mark.parametrize(
    ("key", "fields"), [("f64[?,1]C", 5), ("i32[?]S", 3), ("b1[]C", 1), ("(f64,py_int)", 0)]
)
def test_arrays_are_descriptors(key: str, fields: int) -> None:
    def f(u: Any) -> Any:
        return 1.0

    text = pipeline.run_stages(Request(f, (key,), options=Options(debug=True)), "llvm")
    assert text.count("#dbg_value(") == fields
    kernel_of(Request(f, (key,), options=Options(debug=True, opt=1)))


def test_assembly_is_shown_as_it_is_without_debug_information() -> None:
    plain = pipeline.run_stages(request(heat, "gradient", opt=1), "assembly")
    shown = pipeline.run_stages(request(heat, "gradient", opt=1, debug=True), "assembly")
    assert shown == without_debugging(plain)
    assert ".loc" not in shown
    assert len(shown.splitlines()) > 100


@pytest.mark.parametrize(
    ("mode", "names"),
    [
        ("primal", ["heat"]),
        ("gradient", ["heat.grad"]),
        ("vjp", ["heat.back", "heat.vjp"]),
        ("tangent", ["heat.jvp"]),
        ("product", ["heat.hvp"]),
        ("reverse-hvp", ["heat.hvp"]),
    ],
)
def test_functions_have_pythons_names(mode: str, names: list[str]) -> None:
    text = pipeline.run_stages(request(heat, mode, opt=1, debug=True), "llvm")
    attached = re.findall(r"^define .*!dbg !(\d+) ", text, re.MULTILINE)
    nodes = [re.search(rf'^!{n} = .*?name: "([^"]*)"', text, re.MULTILINE) for n in attached]
    shown = {node[1].removesuffix(".__call__") for node in nodes if node}
    assert sorted(name for name in shown if ".map_" not in name) == names


def test_what_is_compiled_along_has_lines_of_its_own_file_whatever_that_is_called(
    tmp_path: Path,
) -> None:
    files = [tmp_path / 'é "x" \\ %d.py', tmp_path / "caller.py"]
    files[0].write_text("def helper(u, k):\n    u[0] = k * k\n")
    files[1].write_text("def caller(u, k):\n    helper(u, k)\n    return u[0] / k\n")
    scope: dict[str, Any] = {}
    for file in files:
        exec(compile(file.read_text(), str(file), "exec"), scope)
    made = kernel_of(request(scope["caller"], debug=True, opt=1))
    places = {place for _, place in source_lines(assembly(made.llvm, 1)) if place is not None}
    assert {(str(files[0]), 2), (str(files[1]), 3)} <= places
