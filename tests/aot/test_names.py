"""What C calls parameters; the header is C99, C11, C++98 and C++17 whatever their names and kinds."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_client import Client, export
from c_oracle import DERIVATIVES

from mutad.compiler.aot.c_names import is_the_librarys
from mutad.compiler.aot.exports import Export
from mutad.compiler.aot.header import header_text
from mutad.compiler.aot.signature import c_names

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="builds with a C compiler")
STRICT = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Wundef", "-Werror",
          "-Wno-unused-function", "-fsyntax-only")  # fmt: skip
V, F = "f64[?]C", "py_float"


def beside(work, result, u_grad, u, u_bar, u_dot, u_hvp, double):
    work[0] += u[0] * result
    return (u * u).sum() * double + (u_grad * u_bar * u_dot * u_hvp).sum()


def macros(int64_t, NULL, INT64_MAX, malloc, free, errno, NAN, I, linux, result_0, été, _X):  # noqa: E741
    return (
        int64_t * NULL + INT64_MAX * malloc * free + errno * NAN - I * linux * result_0 + été * _X
    )


def itself(itself, itself_worksize):
    return itself * itself_worksize


def extents(u, n, u_0):
    made = np.zeros(n * u_0)
    made[: u.size] = u
    return np.zeros(u.size + n), made


def kinds(a, b, c, d, e, f, n, m, k, g):
    size = np.zeros(n).sum() + np.zeros(m).sum() + np.zeros(2 if k else 1).sum()
    return size + a[0] + b[0] + c[0] + d[0] + e[0] * g, f, k, m, a


def nothing():
    return 1.5


def exports() -> list[Export]:
    keys = dict.fromkeys(("work", "u_grad", "u", "u_bar", "u_dot", "u_hvp"), V)
    own = {n: keys.get(n, F) for n in beside.__code__.co_varnames[:8]}
    floats = dict.fromkeys(macros.__code__.co_varnames[:12], F)
    some = dict(zip("abcdefnmkg", ("i8[?]C", "u16[?]F", "f32[?,?]S", "b1[?]C", "u64[?,?,?]S", "f32", "i32",
                                   "u8", "py_bool", "f64"), strict=True))  # fmt: skip
    return [
        *(export(beside, own, mode, (3, 0, 2, 4, 7)) for mode in DERIVATIVES),
        *(export(macros, floats, mode, (0, 3, 7)) for mode in DERIVATIVES),
        *(
            export(itself, dict.fromkeys(("itself", "itself_worksize"), F), m, (0,))
            for m in DERIVATIVES
        ),
        export(beside, own),
        export(macros, floats),
        export(itself, dict.fromkeys(("itself", "itself_worksize"), F)),
        export(extents, {"u": f"{V} n", "n": "py_int", "u_0": "py_int"}),
        export(kinds, some),
        export(kinds, some, "jvp", (2, 5, 9)),
        export(nothing, {}),
    ]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Client:
    return Client(tmp_path_factory.mktemp("names"), "names", *exports(), opt=1)


@pytest.mark.parametrize(
    "standard", ["c99", "c11", "gnu17", "c++98", "c++17"], ids=lambda name: str(name)
)
def test_the_header_is_without_a_warning(client: Client, tmp_path: Path, standard: str) -> None:
    is_c = "+" not in standard
    if not is_c and shutil.which("c++") is None:
        pytest.skip("needs a C++ compiler")
    (tmp_path / "names.h").write_text(header_text(client.library))
    before = "#include <complex.h>\n#include <math.h>\n#include <errno.h>\n" if is_c else ""
    (tmp_path / "main.c").write_text(f'{before}#include "names.h"\n#include "names.h"\n')
    command = ["cc", "-Wstrict-prototypes"] if is_c else ["c++", "-x", "c++"]
    subprocess.run([*command, f"-std={standard}", *STRICT, "main.c"], cwd=tmp_path, check=True)


def test_no_two_parameters_are_called_alike() -> None:
    assert c_names(["u", "u_grad", "u_0", "double", "double_", "T", "NAN"], "f") == [
        "u", "u_grad_", "u_0_", "double_", "double__", "T", "NAN_"]  # fmt: skip
    assert c_names(["v_grad", "f", "result", "a_1"], "f") == ["v_grad", "f_", "result_", "a_1"]


def test_integers_called_as_extents_are_not_taken_for_them(client: Client) -> None:
    u: Any = np.arange(1.0, 4.0)
    made = client("extents", u, 2, 5)
    np.testing.assert_array_equal(made["result_0"], np.zeros(5))
    np.testing.assert_array_equal(made["result_1"], [*u, *np.zeros(7)])
    assert [s.name for s in client.functions["extents"].sizes] == ["n_extent", "n", "u_0_"]


def test_names_of_the_header_are_not_for_functions() -> None:
    of = "strerror", "allocator", "aligned", "f64_2", "f64_2_of"
    assert all(is_the_librarys(f"m_{name}", "m") for name in of)
    assert not any(
        is_the_librarys(name, "m") for name in ("m_step", "n_strerror", "strerror", "m_f64")
    )
