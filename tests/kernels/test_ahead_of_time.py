"""`mutadc --target sm_90`: kernels as files; launchers in C, against a driver that notes what it is asked."""

from __future__ import annotations

import ctypes
import re
import subprocess
from pathlib import Path

import pytest

from mutad import aot

MODEL = """
from mutad import compile

@compile
def scatter(u: "f64[:, :]", k: "i64[:]", x: float, flag: bool):
    for i in range(k.size):
        u[k[i], 0] += x
    if flag:
        u *= x
    return (u * u).sum()
"""

CUDA_H = """
#include <stdint.h>
#include <stdio.h>
#include <string.h>
typedef int CUresult; typedef void *CUmodule, *CUstream, *CUfunction; typedef unsigned long long CUdeviceptr;
#define CUDA_SUCCESS 0
static char asked[200];
static CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name) {
  (void)m; strcpy(asked, name); *f = asked; return strstr(name, "_") == 0;
}
static CUresult cuLaunchKernel(CUfunction f, unsigned bx, unsigned by, unsigned bz, unsigned tx, unsigned ty,
                               unsigned tz, unsigned shared, CUstream s, void **arguments, void **extra) {
  printf("%s %u %u %u %u %u %u %u %d %d\\n", (char *)f, bx, by, bz, tx, ty, tz, shared, s != 0, extra != 0);
  return arguments[0] == 0;
}
"""

CALLER = """
#include "model.h"
#include <stdio.h>
int main(void) {{
  {calls}
  return 0;
}}
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kernels")
    (folder / "model.py").write_text(MODEL)
    for kind in ("ptx", "cubin", "shared", "mlir"):
        asked = ["--target=sm_90", f"--emit={kind}", "-o", str(folder), str(folder / "model.py")]
        more = ["--grad", "scatter:u", "--header", str(folder / "model.h")]
        assert aot.main([*asked, *more]) == 0
    return folder


def test_kernels_are_called_after_functions_of_c(made: Path) -> None:
    ptx = (made / "model.ptx").read_text()
    assert ".visible .entry scatter_0(" in ptx
    assert ".visible .entry scatter_grad_0(" in ptx
    assert ".target sm_90" in ptx
    assert (made / "model.cubin").read_bytes().startswith(b"\x7fELF")
    assert "device.launch @scatter_grad_0" in (made / "model.mlir").read_text()
    library = ctypes.CDLL(str(made / "libmodel.so"))
    held = ctypes.string_at(ctypes.addressof(ctypes.c_char.in_dll(library, "model_ptx")))
    assert held.decode() == ptx


def test_launchers_hand_over_what_kernels_take(made: Path) -> None:
    (made / "cuda.h").write_text(CUDA_H)
    header, ptx = (made / "model.h").read_text(), (made / "model.ptx").read_text()
    calls, names = list[str](), list[str]()
    for line in header.splitlines():
        if line.startswith("static inline"):
            head, _, taken = line.partition("(")
            given = len(taken.split(",")) - 3
            name = head.split()[-1]
            names.append(name.removesuffix("_launch"))
            ones = ", 1" * given
            calls.append(f"if ({name}(0, 0, 3{ones}) || {name}(0, 0, 0{ones})) return 1;")
            entry = ptx.partition(f".entry {names[-1]}(")[2].partition(")")[0]
            assert entry.count(".param") == given
    (made / "main.c").write_text(CALLER.format(calls="\n  ".join(calls)))
    warnings = ["-Wall", "-Wextra", "-Werror", "-Wno-unused-function"]
    subprocess.run(
        ["cc", "-std=c99", *warnings, "-I.", "-o", "main", "main.c"], cwd=made, check=True
    )
    said = subprocess.run([made / "main"], capture_output=True, text=True, check=True).stdout
    assert said.splitlines() == [f"{name} 3 1 1 256 1 1 0 0 0" for name in names]
    assert len(names) == len(set(names)) > 4


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--emit=ptx"],
            "--emit ptx: of a CPU there are shared, .*; name a device: --target sm_90",
        ),
        (
            ["--target=sm_90", "--emit=static"],
            "--emit static: of --target sm_90 there are ptx, cubin",
        ),
        (["--target=sm_12"], "--target sm_12: devices are sm_70"),
        (["--target=sm_90", "-g"], "--cpu and -g are of CPUs"),
        (["--target=sm_90", "-o", "-", "--emit=cubin"], "it is no text"),
    ],
)
def test_what_devices_have_not_is_wrong_usage(
    made: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert aot.main([*arguments, str(made / "model.py")]) == 2
    assert re.search(said, capsys.readouterr().err)
