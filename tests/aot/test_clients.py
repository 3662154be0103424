"""Programs that use a library as its users do: in C, C++, Fortran and Python, with strict compilers."""

from __future__ import annotations

import ctypes
import itertools
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_client import export
from c_files import STRICT, needs, run, sanitizers, write_files

import mutad
from mutad.compiler.aot.emitters import EMITTERS
from mutad.compiler.aot.library import Library
from mutad.compiler.aot.symbol_versions import FIRST, NEWER

pytestmark = needs("cc")
CLIENTS = Path(__file__).parent / "clients"


def loss(u, kappa, steps):
    for _ in range(steps):
        u[1:-1] += kappa * np.tanh(u[:-2] - 2 * u[1:-1] + u[2:]) * u[1:-1]
    return (u**2).sum()


def positive(u):
    return np.sqrt(u[u > 0]) * 2


def weighted(a, w):
    total = np.zeros(a.shape[1])
    for i in range(a.shape[0]):
        total += w[i] * a[i]
    return total, a * 2


def ordered(a, k):
    return a[k] + 0.5


def grow(a, flags):
    for j in range(a.shape[1]):
        if flags[j]:
            a[:, j] += 100.0


def rounding(x, y):
    return math.lgamma(x) + np.exp(x) + np.log(x) + x**y + np.exp2(y) + np.log2(x)


N = "f64[?]C n"
LOSS = {"u": N, "kappa": "py_float", "steps": "py_int"}
EXPORTS = (
    export(loss, LOSS),
    export(loss, LOSS, "value_and_grad", (0, 1)),
    export(positive, {"u": "f64[?]C"}),
    export(weighted, {"a": "f64[?,?]C n m", "w": N}),
    export(ordered, {"a": "f64[?,?]F", "k": "py_int"}),
    export(grow, {"a": "f64[?,?]S n m", "flags": "b1[?]C m"}),
    export(rounding, {"x": "py_float", "y": "py_float"}),
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("clients")


@pytest.fixture(scope="module")
def library(folder: Path) -> Library:
    """In `folder` in all forms that clients take."""
    kinds = ("object", "static", "shared", "header", "fortran", "pkg-config")
    return write_files(folder, "model", EXPORTS, kinds)


def expected(kappa: float, u: Any, steps: int) -> tuple[float, Any, float]:
    value, (du, dk) = mutad.compile(loss, grad=True, opt=1).value_and_grad(
        u, kappa, steps, wrt=("u", "kappa")
    )
    return value, du, dk


def test_threads_with_areas_between_guards(library: Library, folder: Path) -> None:
    """Eight at once find what one alone does, sanitizers on, in areas of exactly the size that is said."""
    source = str(CLIENTS / "threads.c")
    for form in ("model.o", "libmodel.a"):
        flags = (*STRICT, "-std=c99", "-pthread", *sanitizers(folder, "cc"), "-I.")
        run(folder, "cc", *flags, source, form, "-lm", "-o", "threads")
        shown = np.fromstring(run(folder, "./threads"), sep=" ")
    value, du, dk = expected(0.01, 0.01 * np.arange(301), 20)
    np.testing.assert_allclose(shown, [value, dk, du[7]], rtol=1e-12)


@needs("c++")
def test_a_client_in_cpp(library: Library, folder: Path) -> None:
    source, flags = str(CLIENTS / "client.cpp"), (*STRICT, *sanitizers(folder, "c++"))
    run(folder, "c++", "-std=c++17", *flags, "-I.", source, "libmodel.a", "-lm", "-o", "cpp")
    first, second, third = run(folder, "./cpp").splitlines()
    value, du, _ = expected(0.05, 0.1 * np.arange(50), 6)
    np.testing.assert_allclose(np.fromstring(first, sep=" "), [value, du[7]], rtol=1e-12)
    count, fourth = second.split()
    assert int(count) == 49
    u = 0.1 * np.arange(50)
    loss(u, 0.05, 6)
    assert float(fourth) == pytest.approx(2 * np.sqrt(u[u > 0][3]), rel=1e-13)
    assert third == "loss_value_and_grad: u_grad.shape[0] is not that of u"


@needs("gfortran")
def test_a_client_in_fortran(library: Library, folder: Path) -> None:
    wrong = "-Wno-maybe-uninitialized"  # gfortran's warning of what is allocated by assignment
    flags = (*STRICT, wrong, "-std=f2018", "-fcheck=all", *sanitizers(folder, "gfortran"))
    source = str(CLIENTS / "client.f90")
    run(folder, "gfortran", *flags, "model.f90", source, "libmodel.a", "-lm", "-o", "fortran")
    shown = run(folder, "./fortran").splitlines()
    value, du, dk = expected(0.05, 0.1 * np.arange(50), 6)
    np.testing.assert_allclose(np.fromstring(shown[0], sep=" "), [value, du[7], dk], rtol=1e-12)
    assert shown[1] == "T loss_value_and_grad: u is not contiguous in C order"
    table = np.arange(1.0, 13).reshape(3, 4)
    totals, _ = weighted(table, np.array([1.0, 10.0, 100.0]))
    np.testing.assert_allclose(np.fromstring(shown[2], sep=" "), totals)
    assert shown[3].split() == ["3", "4", "T"]
    assert shown[4] == "T"
    np.testing.assert_allclose(np.fromstring(shown[5], sep=" "), table[2] + 0.5)
    grow(table.T[::-2], np.array([True, False, True]))
    np.testing.assert_allclose(np.fromstring(" ".join(shown[6:9]), sep=" "), table.ravel())
    u = 0.1 * np.arange(50)
    loss(u, 0.05, 6)
    u[2] = -1
    kept = positive(u)
    found = np.fromstring(shown[9], sep=" ")
    np.testing.assert_allclose(found, [len(kept), kept[0], kept[47]], rtol=1e-12)


def test_clients_in_python(library: Library, folder: Path) -> None:
    """`cffi` reads the header's own declarations; `ctypes` is told."""
    import cffi

    header = (folder / "model.h").read_text()
    types = re.findall(r"typedef struct \{.*?\} \w+;", header, re.DOTALL)
    functions = re.findall(r"^(?:int|int64_t|const char \*) ?\w+\([^{}]*?\);", header, re.MULTILINE)
    assert len(functions) == 2 * len(EXPORTS)  # one has no _worksize, and there is _strerror
    ffi = cffi.FFI()
    ffi.cdef("\n".join([*types, *functions]).replace("MODEL_RESTRICT", ""))
    model: Any = ffi.dlopen(str(folder / "libmodel.so"))
    value, du, dk = expected(0.05, 0.1 * np.arange(50), 6)

    u, slope = 0.1 * np.arange(50), np.full(50, np.nan)
    a, grad = (
        ffi.new("model_f64_1 *", (ffi.from_buffer("double[]", x), [50], [1])) for x in (u, slope)
    )
    bytes_ = model.loss_value_and_grad_worksize(50, 6)
    area = ffi.new_allocator(should_clear_after_alloc=False)("char[]", bytes_ + 64)
    at = ffi.cast("void *", -(-int(ffi.cast("uintptr_t", area)) // 64) * 64)
    result, kappa_grad = ffi.new("double *"), ffi.new("double *")
    assert model.loss_value_and_grad(a, 0.05, 6, result, grad, kappa_grad, at, bytes_) == 0
    np.testing.assert_allclose([result[0], kappa_grad[0]], [value, dk], rtol=1e-12)
    np.testing.assert_allclose(slope, du, rtol=1e-12)
    status = model.loss_value_and_grad(a, 0.05, 6, result, grad, kappa_grad, at, bytes_ - 64)
    assert ffi.string(model.model_strerror(status)).endswith(b"the work area is too small")

    class Array(ctypes.Structure):
        _fields_ = [
            ("data", ctypes.c_void_p), ("shape", ctypes.c_int64 * 1), ("strides", ctypes.c_int64 * 1)
        ]  # fmt: skip

    by_ctypes = ctypes.CDLL(str(folder / "libmodel.so"))
    size = by_ctypes.loss_worksize
    size.restype = ctypes.c_int64
    u = 0.1 * np.arange(50)
    struct, out = Array(u.ctypes.data, (50,), (1,)), ctypes.c_double()
    room = np.zeros(size(ctypes.c_int64(50)) + 64, np.uint8)
    place = ctypes.c_void_p(-(-room.ctypes.data // 64) * 64)
    more = ctypes.byref(out), place, ctypes.c_int64(room.size - 64)
    steps = ctypes.c_int64(6)
    assert by_ctypes.loss(ctypes.byref(struct), ctypes.c_double(0.05), steps, *more) == 0
    assert out.value == pytest.approx(value, rel=1e-13)


@needs("pkg-config")
def test_pkg_config_tells_what_to_link(library: Library, folder: Path) -> None:
    (folder / "pc.c").write_text(
        '#include "model.h"\nint main(void) { return rounding_alloc(1.0, 2.0, NULL); }\n'
    )
    ask = f"PKG_CONFIG_PATH={folder} pkg-config"
    run(folder, "sh", "-c", f"cc pc.c $({ask} --cflags --libs model) -Wl,-rpath,. -o pc && ./pc")
    static = run(folder, "sh", "-c", f"{ask} --static --libs model")
    assert static.split()[-1] == "-lm"
    assert ("-lmvec" in static) == library.uses_libmvec


def test_blas_is_named(tmp_path: Path) -> None:
    def product(a, b):
        return a @ b

    matrix = "f64[?,?]C"
    made = write_files(tmp_path, "blas", [export(product, {"a": matrix, "b": matrix})], (), 0)
    text = EMITTERS["pkg-config"].write(made).decode()
    assert "# dgemm_, dgemv_, dger_\nblas=-lblas\n" in text
    assert "Libs: -L${libdir} -lblas ${blas}\n" in text
    assert "BLAS (dgemm_, dgemv_, dger_)" in EMITTERS["fortran"].write(made).decode()


def model(N, n, c_double, _under, result, area, u_0, U_0):
    return N * n + c_double + _under + result[0] + area.sum() + u_0 + U_0


def _own(x_own, flag, small):
    return (x_own[()], small + 1) if flag else (x_own[()], small)


@needs("gfortran")
def test_names_that_fortran_does_not_have(tmp_path: Path) -> None:
    """It knows no case, no `_` in front, and no module that is called as what is in it."""
    names = ("N", "n", "c_double", "_under")
    numbers = dict.fromkeys(names, "py_float") | {"result": "f32[?]C", "area": "u8[?,?,?]S"}
    keys = numbers | {"u_0": "py_int", "U_0": "i16"}
    own = export(_own, {"x_own": "i64[]C", "flag": "py_bool", "small": "i8"})
    exports = [export(model, keys), export(model, keys, "jvp", (0, 4)), own]
    made = write_files(tmp_path, "model", exports, ("fortran",), 0)
    assert [f.symbol for f in made.functions] == ["model", "model_jvp", "_own"]
    run(tmp_path, "gfortran", *STRICT, "-std=f2018", "-c", "model.f90")
    assert (tmp_path / "model_module.mod").exists()


def test_symbols_are_of_the_first_version_that_there_is(library: Library, folder: Path) -> None:
    """The library loads on older systems; what it calls there is the same function."""
    shown = run(folder, "readelf", "-W", "--dyn-syms", "libmodel.so")
    found = dict(re.findall(r" UND (\w+)@(GLIBC_[\d.]+)", shown))
    first = FIRST[int.from_bytes((folder / "libmodel.so").read_bytes()[18:20], "little")]
    called = {"exp", "log", "pow", "exp2", "log2"}
    assert {name: found[name] for name in called} == dict.fromkeys(called, first)
    assert not re.search(r"(?m)GLOBAL +DEFAULT +UND \w+$", shown)  # every symbol has a version
    newer = {version for name, version in found.items() if not name.startswith("_ZGV")} - {first}
    assert newer <= {"GLIBC_2.14", "GLIBC_2.23"}  # memcpy, lgamma
    libm: Any = ctypes.CDLL("libm.so.6")
    dlvsym = ctypes.CDLL(None).dlvsym
    dlvsym.restype, dlvsym.argtypes = (
        ctypes.c_void_p,
        [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_char_p],
    )
    special = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.5,
        -3.0,
        1e-320,
        1e308,
        -1e308,
        710.0,
        -746.0,
        np.inf,
        -np.inf,
        np.nan,
    ]
    for name in NEWER:
        address = dlvsym(libm._handle, name.encode(), first.encode())
        if address is None:  # exp10 on a machine whose glibc has it as an extension alone
            continue
        number = ctypes.c_float if name.endswith("f") else ctypes.c_double
        arguments = 2 if name.startswith(("pow", "hypot", "fmod")) else 1
        old = ctypes.CFUNCTYPE(number, *[number] * arguments)(address)
        now = libm[name]
        now.restype, now.argtypes = number, [number] * arguments
        points = itertools.product([*special, *np.linspace(-30, 30, 41)], repeat=arguments)
        for point in points:
            np.testing.assert_equal(old(*point), now(*point), err_msg=f"{name}{point}")
