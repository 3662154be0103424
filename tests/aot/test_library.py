"""Compiled libraries, called from C: primals, derivatives, statuses, what is in the files."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_client import Client, Failed, export

import mutad
from mutad.compiler.aot.header import header_text
from mutad.compiler.aot.library import compile_exports
from mutad.compiler.aot.linking import NoTool, static_library, tool
from mutad.compiler.codegen.kernel_memory import KernelMemory
from mutad.compiler.diagnostics import CompileError
from mutad.compiler.request import Options

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="builds with a C compiler")

SCALE = 2.5
WEIGHTS = np.array([1.0, 2.0, 3.0])


def loss(u, kappa, steps):
    for _ in range(steps):
        u[1:-1] += kappa * (u[:-2] - 2 * u[1:-1] + u[2:]) * u[1:-1]
    return (u**2).sum() * SCALE


def through(u, v):
    """Values flow through `v`, of which no derivative is taken."""
    v[:] = np.exp(u) * WEIGHTS[1]
    v *= u
    return (v * v).sum()


def pick(u, i):
    return u[i]


def make(u, v):
    return u * v + 1.0, u.sum(), 3, None


def rows(a, k):
    return a[k], a


def grow(u):
    u *= 2.0


def quotient(a, b):
    return a // b


def product(a, b):
    return a @ b


def factored(a, b):
    x = np.linalg.solve(a, b)
    return (x * b).sum() + np.linalg.slogdet(a)[1] + (np.linalg.cholesky(a) ** 2)[-1, 0]


def widest(a, b, flag):
    return 1000 * int(a) + int(b) if flag else int(a)


def mixed(u, n, flag, x):
    return u[0] + n if flag else u[1] + x


def positive(u):
    return np.sqrt(u[u > 0]) * 2, u


def total_of(u):
    kept = u[u > 0]
    return (kept**3).sum()


def fresh_view(u):
    v = u[u > 0] * 2
    return v[1:]


def chosen(u, v):
    if u.sum() < 0:
        raise ValueError("it is negative")
    return np.where(u > v, u, v)


def flat(u):
    f = u.reshape(-1)
    f[1:] *= f[:-1]
    return (u * u).sum()


N = "f64[?]C n"
LOSS = {"u": N, "kappa": "py_float", "steps": "py_int"}
MATRICES = {"a": "f64[?,?]C n n", "b": "f64[?,?]C n m"}
EXPORTS = (
    export(loss, LOSS),
    *(export(loss, LOSS, mode, (0, 1)) for mode in ("grad", "value_and_grad", "vjp", "jvp", "hvp")),
    export(through, {"u": N, "v": N}, "grad", (0,)),
    export(through, {"u": N, "v": N}, "vjp", (0,)),
    export(through, {"u": N, "v": N}, "jvp", (0,)),
    export(through, {"u": N, "v": N}, "hvp", (0,)),
    export(pick, {"u": "f64[?]C", "i": "py_int"}),
    export(make, {"u": N, "v": "f64[?]S n"}),
    export(make, {"u": N, "v": "f64[?]S n"}, "vjp", (0,)),
    export(make, {"u": N, "v": "f64[?]S n"}, "jvp", (0,)),
    export(rows, {"a": "f32[?,?]F _ 3", "k": "py_int"}),
    export(grow, {"u": "f64[?]S"}),
    export(quotient, {"a": "i32", "b": "i32"}, result="i32"),
    export(product, {"a": "f64[?,?]C n m", "b": "f64[?,?]C m k"}),
    *(export(factored, MATRICES, mode, wrt) for mode, wrt in (("primal", ()), ("grad", (0, 1)))),
    export(mixed, {"u": "i16[?]C", "n": "py_int", "flag": "py_bool", "x": "f32"}),
    export(chosen, {"u": N, "v": N}),
    export(positive, {"u": N}),
    export(total_of, {"u": N}, "value_and_grad", (0,)),
    export(flat, {"u": "f64[?,?]S"}, "jvp", (0,)),
)

DGEMM = """
#include <stddef.h>
static double at(const double *a, char t, int i, int j, int ld) {
    return t == 'N' ? a[i + j * ld] : a[j + i * ld];
}
void dgemm_(const char *ta, const char *tb, const int *m, const int *n, const int *k, const double *alpha,
            const double *a, const int *lda, const double *b, const int *ldb, const double *beta, double *c,
            const int *ldc, size_t la, size_t lb) {
    if (la != 1 || lb != 1) return;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            double total = 0;
            for (int l = 0; l < *k; l++) total += at(a, *ta, i, l, *lda) * at(b, *tb, l, j, *ldb);
            c[i + j * *ldc] = *alpha * total + (*beta == 0 ? 0 : *beta * c[i + j * *ldc]);
        }
}
void dsyrk_(const char *uplo, const char *t, const int *n, const int *k, const double *alpha, const double *a,
            const int *lda, const double *beta, double *c, const int *ldc, size_t lu, size_t lt) {
    if (lu != 1 || lt != 1 || *uplo != 'U' || *t != 'T') return;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i <= j; i++) {
            double total = 0;
            for (int l = 0; l < *k; l++) total += a[l + i * *lda] * a[l + j * *lda];
            c[i + j * *ldc] = *alpha * total + *beta * c[i + j * *ldc];
        }
}
void dtrsm_(const char *side, const char *uplo, const char *t, const char *diag, const int *m, const int *n,
            const double *alpha, const double *a, const int *lda, double *b, const int *ldb, size_t ls,
            size_t lu, size_t lt, size_t ld) {
    if (ls * lu * lt * ld != 1 || *side != 'L' || *uplo != 'U' || *t != 'T' || *diag != 'N') return;
    for (int j = 0; j < *n; j++)
        for (int i = 0; i < *m; i++) {
            double total = *alpha * b[i + j * *ldb];
            for (int l = 0; l < i; l++) total -= a[l + i * *lda] * b[l + j * *ldb];
            b[i + j * *ldb] = total / a[i + i * *lda];
        }
}
void dgemv_(void) {}
void dger_(void) {}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("aot")


@pytest.fixture(scope="module")
def client(folder: Path) -> Client:
    """The library, with a BLAS of a few lines."""
    (folder / "blas.c").write_text(DGEMM)
    built(folder, "-shared", "-fPIC", "blas.c", "-o", "libblas.so")
    ctypes.CDLL(str(folder / "libblas.so"), mode=ctypes.RTLD_GLOBAL)
    return Client(folder, "model", *EXPORTS, opt=2)


def built(folder: Path, *arguments: str) -> None:
    subprocess.run(["cc", *arguments], cwd=folder, check=True)


def start(n: int = 12) -> Any:
    return np.sin(np.arange(n) * 0.7) + 0.2


def test_primals_are_those_of_numpy(client: Client) -> None:
    u, v = start(), start()
    assert client("loss", u, 0.1, 4)["result"] == pytest.approx(loss(v, 0.1, 4), rel=1e-14)
    np.testing.assert_allclose(u, v, rtol=1e-14)
    assert client("pick", start(), -1)["result"] == start()[-1]
    every_other = np.arange(24.0)[::-2]
    made = client("make", start(), every_other)
    expected = make(start(), every_other)
    np.testing.assert_array_equal(made["result_0"], expected[0])
    assert made["result_1"] == pytest.approx(expected[1], rel=1e-14)
    assert made["result_2"] == 3
    assert "result_3" not in made
    matrix = np.asfortranarray(np.arange(12, dtype="f4").reshape(4, 3))
    made = client("rows", matrix, 2)
    np.testing.assert_array_equal(made["result_0"], matrix[2])
    np.testing.assert_array_equal(made["result_1"], matrix)
    spread = np.arange(8.0)
    assert client("grow", spread[::-2]) == {}
    np.testing.assert_array_equal(spread, [0, 2, 2, 6, 4, 10, 6, 14])
    assert client("quotient", -7, 2) == {"result": -4}
    small = np.array([3, 4], "i2")
    for flag in (True, False):
        assert client("mixed", small, 5, flag, 0.5)["result"] == mixed(small, 5, flag, 0.5)
    np.testing.assert_array_equal(
        client("chosen", start(), -start() + 0.5)["result"], chosen(start(), -start() + 0.5)
    )


@pytest.mark.parametrize("size", [(3, 4, 5), (20, 17, 30)])
def test_products_of_matrices_are_those_of_blas(client: Client, size: tuple[int, ...]) -> None:
    n, m, k = size
    a, b = np.cos(np.arange(n * m)).reshape(n, m), np.sin(np.arange(m * k)).reshape(m, k)
    np.testing.assert_allclose(client("product", a, b)["result"], a @ b, rtol=1e-12, atol=1e-12)
    blas = {s for s, origin in client.library.symbols.items() if origin == "blas"}
    assert blas == {"dgemm_", "dgemv_", "dger_", "dsyrk_", "dtrsm_"}


@pytest.mark.parametrize("n", [3, 45])
def test_factors_are_on_top_of_blas(client: Client, n: int) -> None:
    a = np.cos(np.arange(n * n)).reshape(n, n)
    a, b = a @ a.T + np.eye(n), np.sin(np.arange(2.0 * n)).reshape(n, 2)
    found = client("factored", a, b)["result"]
    assert found == pytest.approx(factored(a, b), rel=1e-10)
    slopes = mutad.compile(factored, grad=True, opt=1).grad(a, b, wrt=("a", "b"))
    found = np.empty_like(a), np.empty_like(b)
    client("factored_grad", a, b, *found)
    for one, slope in zip(found, slopes, strict=True):
        np.testing.assert_allclose(one, slope, rtol=1e-9, atol=1e-9)


def test_gradients_are_those_of_the_just_in_time_compiler(client: Client) -> None:
    compiled = mutad.compile(loss, grad=True, opt=2)
    a, b = start(), start()
    value, (du, dk) = compiled.value_and_grad(a, 0.1, 4, wrt=("u", "kappa"))
    grad = np.full(12, np.nan)
    found = client("loss_value_and_grad", b, 0.1, 4, grad)
    np.testing.assert_array_equal(b, a)
    np.testing.assert_allclose(grad, du, rtol=1e-13)
    assert found["result"] == pytest.approx(value, rel=1e-14)
    assert found["kappa_grad"] == pytest.approx(dk, rel=1e-13)
    again = np.full(12, np.nan)
    assert client("loss_grad", start(), 0.1, 4, again, skip=("kappa_grad",)) == {}
    np.testing.assert_array_equal(again, grad)


def test_vjp_starts_from_cotangents(client: Client) -> None:
    compiled = mutad.compile(loss, grad=True, opt=2)
    out_bar, u_bar = 0.7, np.cos(np.arange(12.0))
    _, back = compiled.vjp(start(), 0.1, 4, wrt=("u", "kappa"))
    du, dk = back(out_bar, u=u_bar)
    given = u_bar.copy()
    found = client("loss_vjp", start(), 0.1, 4, out_bar, given)
    np.testing.assert_allclose(given, du, rtol=1e-12)
    assert found["kappa_bar"] == pytest.approx(dk, rel=1e-12)
    v, bars = start() + 1, np.cos(np.arange(12.0))
    given = np.zeros(12)
    client("make_vjp", start(), v, bars, 2.0, given)
    np.testing.assert_allclose(given, bars * v + 2.0, rtol=1e-14)
    client("make_vjp", start(), v, None, 2.0, given)
    np.testing.assert_allclose(given, bars * v + 4.0, rtol=1e-14)


def test_jvp_and_hvp_move_in_a_direction(client: Client) -> None:
    compiled = mutad.compile(loss, grad=True, opt=2)
    direction = np.cos(np.arange(12.0))
    dot = direction.copy()
    value, value_dot = compiled.jvp(start(), 0.1, 4, tangents={"u": dot, "kappa": 0.3})
    given = direction.copy()
    found = client("loss_jvp", start(), 0.1, 4, given, 0.3)
    assert found["result"] == pytest.approx(value, rel=1e-14)
    assert found["result_dot"] == pytest.approx(value_dot, rel=1e-13)
    np.testing.assert_allclose(given, dot, rtol=1e-13)
    du, dk = compiled.hvp(start(), 0.1, 4, wrt=("u", "kappa"), direction=(direction, 0.3))
    product, given = np.full(12, np.nan), direction.copy()
    found = client("loss_hvp", start(), 0.1, 4, given, 0.3, product)
    np.testing.assert_allclose(product, du, rtol=1e-11)
    assert found["kappa_hvp"] == pytest.approx(dk, rel=1e-11)
    np.testing.assert_array_equal(given, direction)


def test_arrays_that_values_flow_through_need_no_shadow(client: Client) -> None:
    compiled = mutad.compile(through, grad=True, opt=2)
    expected = compiled.grad(start(), np.zeros(12))
    grad, v = np.full(12, np.nan), np.zeros(12)
    client("through_grad", start(), v, grad)
    np.testing.assert_allclose(grad, expected, rtol=1e-13)
    np.testing.assert_allclose(v, np.exp(start()) * 2 * start(), rtol=1e-14)
    direction = np.cos(np.arange(12.0))
    product = np.full(12, np.nan)
    client("through_hvp", start(), v, direction, product)
    wanted = compiled.hvp(start(), np.zeros(12), direction=direction)
    np.testing.assert_allclose(product, wanted, rtol=1e-11)
    u_bar, v_bar = np.zeros(12), np.ones(12)
    client("through_vjp", start(), v, 1.0, u_bar, v_bar)
    also = np.exp(start()) * 2 * (1 + start())
    np.testing.assert_allclose(u_bar, expected + also, rtol=1e-12)
    np.testing.assert_array_equal(v_bar, np.zeros(12))
    dot, v_dot = direction.copy(), np.zeros(12)
    found = client("through_jvp", start(), v, dot, v_dot)
    assert found["result_dot"] == pytest.approx(float((expected * direction).sum()), rel=1e-12)


def test_a_work_area_of_the_size_that_is_said_is_enough(client: Client) -> None:
    """Every call above has such an area; with less nothing is stored."""
    memory = client.functions["loss_grad"].memory
    assert memory is KernelMemory.AREA
    assert [s.name for s in client.functions["loss_grad"].sizes] == ["n", "steps"]
    u, grad = start(), np.full(12, np.nan)
    with pytest.raises(Failed, match="loss_grad: the work area is too small"):
        client("loss_grad", u, 0.1, 4, grad, less=64)
    np.testing.assert_array_equal(u, start())
    assert np.isnan(grad).all()


def test_sizes_that_data_decides_come_from_an_allocator(client: Client) -> None:
    u = start() - 0.4
    assert client.functions["positive"].memory is KernelMemory.ALLOCATOR
    made = client("positive", u)
    np.testing.assert_array_equal(made["result_0"], np.sqrt(u[u > 0]) * 2)
    np.testing.assert_array_equal(made["result_1"], u)
    grad = np.full(12, np.nan)
    found = client("total_of_value_and_grad", u, grad)
    np.testing.assert_allclose(grad, np.where(u > 0, 3 * u**2, 0), rtol=1e-14)
    assert found["result"] == pytest.approx((u[u > 0] ** 3).sum(), rel=1e-14)


def test_nothing_is_assumed_of_the_upper_bits_of_small_arguments(tmp_path: Path) -> None:
    """Where a caller does not extend them there is anything."""
    made = Client(tmp_path, "narrow", export(widest, {"a": "i8", "b": "u16", "flag": "py_bool"}))
    call = made.loaded.widest
    call.argtypes = [ctypes.c_uint64] * 3 + [ctypes.c_void_p] * 2 + [ctypes.c_int64]
    result, dirt = ctypes.c_int64(), 0xABCD_1234_5678_0000
    for a, b, flag in ((-3, 65535, True), (127, 0, False)):
        assert call(dirt | (a & 255), dirt | b, dirt | flag, ctypes.byref(result), None, 0) == 0
        assert result.value == (1000 * a + b if flag else a)


def refused(client: Client, symbol: str, *arguments: Any) -> Failed:
    with pytest.raises(Failed) as error:
        client(symbol, *arguments)
    return error.value


def test_exceptions_are_statuses_with_the_line(client: Client) -> None:
    header = header_text(client.library)
    for name, kind, arguments, words in (
        ("pick", "INDEX_ERROR", (start(), 12), "IndexError: index ? is out of bounds for axis 0"),
        ("chosen", "VALUE_ERROR", (-np.ones(3), np.ones(3)), "ValueError: it is negative"),
    ):
        error = refused(client, name, *arguments)
        assert f"MODEL_{kind} = {error.kind}," in header
        lines = [k for k, line in enumerate(Path(__file__).read_text().splitlines(), 1)
                 if line in ("    return u[i]", '        raise ValueError("it is negative")')]  # fmt: skip
        assert words in error.words
        assert error.words.startswith(tuple(f"test_library.py:{k}: " for k in lines))
    assert client.strerror(0) == "success"
    assert client.strerror(1 << 30) == client.strerror(-1) == "unknown status"


BREACHES = (
    ("chosen", (start(3), start(4)), "BAD_SHAPE", "chosen: v.shape[0] is not n, that of u.shape[0]"),
    ("loss", (start(12)[::2], 0.1, 1), "BAD_LAYOUT", "loss: u is not contiguous in C order"),
    ("rows", (np.zeros((4, 3), "f4"), 0), "BAD_LAYOUT", "rows: a is not contiguous in Fortran order"),
    ("rows", (np.zeros((4, 5), "f4", "F"), 0), "BAD_SHAPE", "rows: a.shape[1] is not 3"),
    ("loss_grad", (start(), 0.1, 1, start(5)), "BAD_SHAPE", "loss_grad: u_grad.shape[0] is not that of u"),
    ("flat_jvp", (start().reshape(4, 3), start(24).reshape(4, 6)[:, :3]), "BAD_LAYOUT",
     "flat_jvp: u_dot is not contiguous in C order"),
    ("grow", (np.broadcast_to(np.zeros(1), 4),), "OVERLAP", "grow: u overlaps itself"),
)  # fmt: skip


@pytest.mark.parametrize(("symbol", "arguments", "kind", "words"), BREACHES)
def test_a_breach_of_the_contract_is_a_status(
    client: Client, symbol: str, arguments: Any, kind: str, words: str
) -> None:
    error = refused(client, symbol, *arguments)
    assert error.words == words
    assert f"MODEL_{kind} = {error.kind}," in header_text(client.library)


def test_overlap_is_refused_where_it_matters_alone(client: Client) -> None:
    memory = start(20)
    error = refused(client, "loss_grad", memory[:12], 0.1, 1, memory[8:])
    assert error.words == "loss_grad: u and u_grad share memory"
    np.testing.assert_array_equal(memory, start(20))
    np.testing.assert_array_equal(client("chosen", memory[:5], memory[1:6])["result"].shape, (5,))


C_PROGRAM = """
#include <stdio.h>
#include <string.h>
#include "model.h"
int main(void) {
    double u[12], g[12], value, k;
    model_f64_1 a = {u, {12}, {1}}, grad = {g, {12}, {1}};
    int i, status;
    for (i = 0; i < 12; i++) u[i] = 0.1 * i;
    status = loss_value_and_grad_alloc(&a, 0.1, 4, &value, &grad, &k);
    printf("%d %.17g %.17g %.17g\\n", status, value, g[3], k);
    status = pick_alloc(&a, 12, &value);
    printf("%d %s\\n", (status & 0xff) == MODEL_INDEX_ERROR, strstr(model_strerror(status), "index"));
    return 0;
}
"""


def test_a_c_program_links_what_nm_shows(client: Client, folder: Path) -> None:
    """C99 and C++17 without a warning, with the static library; the files have the promised symbols alone."""
    (folder / "model.h").write_text(header_text(client.library))
    (folder / "main.c").write_text(C_PROGRAM)
    (folder / "libmodel.a").write_bytes(static_library("model", client.library.object_code()))
    strict = ("-Wall", "-Wextra", "-Werror", "-pedantic")
    built(folder, "-std=c99", *strict, "main.c", "libmodel.a", "blas.c", "-lm", "-o", "main")
    if shutil.which("c++"):
        command = ["c++", "-std=c++17", "-x", "c++", *strict, "-fsyntax-only", "main.c"]
        subprocess.run(command, cwd=folder, check=True)
    shown = subprocess.run(["./main"], cwd=folder, check=True, capture_output=True, text=True)
    first, second = shown.stdout.splitlines()
    u = 0.1 * np.arange(12)
    value, (du, dk) = mutad.compile(loss, grad=True, opt=2).value_and_grad(
        u, 0.1, 4, wrt=("u", "kappa")
    )
    np.testing.assert_allclose(np.fromstring(first, sep=" "), [0, value, du[3], dk], rtol=1e-13)
    assert second == "1 index ? is out of bounds for axis 0 with size ?"
    for file, dynamic in (("libmodel.so", "-D"), ("libmodel.a", "-g")):
        lines = subprocess.run(
            ["nm", dynamic, file], cwd=folder, check=True, capture_output=True, text=True
        ).stdout.splitlines()
        names = [line.split() for line in lines if line and not line.endswith(":")]
        own = sorted(name[-1] for name in names if name[-2] not in "Uw")
        assert own == client.library.promised
        needed = {name[-1].partition("@")[0] for name in names if name[-2] == "U"}
        assert not {n for n in needed if n.startswith(("Py", "mutad", "malloc", "free"))}
        assert not needed & {"mmap", "munmap", "madvise"}


TWICE = """
import sys, hashlib
from pathlib import Path
sys.path[:0] = {path!r}
from c_client import export
from mutad.compiler.aot.header import header_text
from mutad.compiler.aot.library import compile_exports
from mutad.compiler.aot.linking import shared_library
from mutad.compiler.request import Options
import determinism_model as m
keys = dict(u="f64[?]C n", v="f64[?]C n", k="py_float")
exports = [export(m.f, keys, mode, (0, 2)) for mode in ("grad", "vjp", "jvp", "hvp")] + [export(m.f, keys)]
made = compile_exports("model", exports, Options())
code = made.object_code()
shared = shared_library("model", code, made.promised)
parts = made.llvm, made.mlir, header_text(made), made.assembly(), code, shared
print([hashlib.sha256(p if isinstance(p, bytes) else p.encode()).hexdigest() for p in parts])
"""

MODEL = """
import numpy as np
TABLE = np.arange(4.0)
def f(u, v, k):
    total = 0.0
    for i in range(1, len(u) - 1):
        if u[i] > v[i]:
            total += np.exp(u[i - 1] * k) / v[i] + TABLE[i % 4]
        else:
            v[i] = u[i + 1] ** 2
    a, b = u * v, np.sqrt(v * v + 1.0)
    return total + (a @ b) + np.tanh(a).sum()
"""


def test_the_same_input_gives_the_same_bytes(tmp_path: Path, root: Path) -> None:
    (tmp_path / "determinism_model.py").write_text(MODEL)
    script = TWICE.format(path=[str(tmp_path), str(root / "tests" / "support")])
    outputs = [
        subprocess.run(
            [sys.executable, "-c", script], cwd=tmp_path, check=True, capture_output=True, text=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert outputs[0].count(",") == 5
    assert outputs[0] == outputs[1]


def says(x):
    print(x)
    return x


def lists(n):
    return [1.0] * n


def stores(x):
    WEIGHTS[0] = x
    return x


def two(u):
    return u.sum(), u


def objects(x):
    return x


REFUSED = (
    (says, {"x": "py_float"}, "primal", "print is not there in a library", "leave it out"),
    (lists, {"n": "py_int"}, "primal", "returns a list", "np.array"),
    (stores, {"x": "py_float"}, "primal", "stores to WEIGHTS", "pass WEIGHTS as an argument"),
    (two, {"u": "f64[?]C"}, "grad", "returns one float", "vjp or jvp"),
    (fresh_view, {"u": "f64[?]C"}, "primal", "returns a view of an array", "copy"),
    (
        objects,
        {"x": "(f64,f64)"},
        "primal",
        "neither a number nor an array",
        "arguments of their own",
    ),
)


@pytest.mark.parametrize(("function", "parameters", "mode", "words", "way_out"), REFUSED)
def test_what_needs_python_is_refused_with_its_line(
    function: Any, parameters: Any, mode: str, words: str, way_out: str
) -> None:
    with pytest.raises(CompileError) as error:
        compile_exports("model", [export(function, parameters, mode, (0,))], Options(opt=0))
    assert words in str(error.value)
    assert way_out in str(error.value)
    span, first = error.value.span, function.__code__.co_firstlineno
    assert span is not None
    assert span.file == __file__
    assert first <= span.line <= first + 2


def test_what_was_promised_is_returned() -> None:
    wrong = export(loss, LOSS, result="py_int")
    with pytest.raises(CompileError, match=r"returns double, and its signature promises int64_t"):
        compile_exports("model", [wrong], Options(opt=0))


def test_a_missing_compiler_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(NoTool, match="no-such-compiler: not found"):
        tool("CC", "cc")
