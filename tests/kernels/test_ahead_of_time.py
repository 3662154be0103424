"""`mutadc --target sm_90`: kernels as files, launchers in C, and libraries that launch kernels.

No device is at hand: a driver of the host (`support/libcuda_stub.c`) runs the kernels on the CPU.
"""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from c_client import Failed, export
from c_oracle import DERIVATIVES
from device_client import (
    STUB_NAME,
    DeviceCase,
    DeviceClient,
    build_kernels,
    build_stub,
    counter,
    stub,
)
from device_programs import PROGRAMS, Arguments, bodies, waves

import mutad
from mutad import aot
from mutad.compiler.aot.device_library import DeviceLibrary, compile_device
from mutad.compiler.aot.statuses import DEVICE_ERROR, KINDS
from mutad.compiler.diagnostics import CompileError
from mutad.compiler.request import Options

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="builds with a C compiler")

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
    for kind in ("cubin", "mlir", "ptx"):
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


# Libraries: their numbers are those of the just-in-time compiler for the CPU.


@pytest.mark.parametrize("place", [k for k, p in enumerate(PROGRAMS) if p[0] is not bodies])
def test_libraries_compute_what_the_cpu_does(place: int) -> None:
    function, arguments, wrt = PROGRAMS[place]
    derivative = DERIVATIVES[place % len(DERIVATIVES)]
    check(function, arguments, ("primal", derivative) if wrt else ("primal",))


def check(function: Callable[..., Any], arguments: Arguments, modes: tuple[str, ...]) -> None:
    case = DeviceCase(function, arguments, modes)
    assert case.check() == []
    assert case.calls
    assert not case.refused


def of_another(u, v):
    v[:] = 1.0
    return u.sum()


def raising(u, k):
    u[0] = 7.0
    if u[1] > 1.0:
        raise ValueError(f"at {k}")
    return u[k]


def long(u, k, steps):
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
    return u.sum()


def made_of(u):
    w = np.zeros(int(u.sum()) + 3)
    w[:] = u[0]
    return w, (w * w).sum()


@pytest.mark.parametrize(
    ("function", "arguments", "modes"),
    [
        (of_another, lambda: (waves(9)[::2], waves(12)[::-3]), ("grad", "hvp")),
        (of_another, lambda: (waves(3, 4).T, waves(3, 4).T), ("vjp",)),
        (raising, lambda: (waves(4), 2), ("primal",)),
        (raising, lambda: (waves(4) - 2.0, 9), ("primal",)),
        (raising, lambda: (waves(4) - 2.0, 3), ("primal", "value_and_grad")),
        (made_of, lambda: (waves(4),), ("primal", "vjp")),
    ],
)
def test_what_libraries_do_beside(
    function: Callable[..., Any], arguments: Arguments, modes: tuple[str, ...]
) -> None:
    check(function, arguments, modes)


LONG = {"u": "f64[?]C n", "k": "py_float", "steps": "py_int"}


def test_loops_are_replayed_on_streams_that_can_be_captured(tmp_path: Path) -> None:
    client = DeviceClient(tmp_path, "own", export(long, LONG), export(long, LONG, "grad", (0,)))
    for stream, replays in ((5, True), (0, False)):
        client.stream = ctypes.c_void_p(stream)
        before = counter("graphs").value
        u, slope = waves(40), np.empty(40)
        found = client("long", u, 0.1, 300)["result"]
        assert found == pytest.approx(long(waves(40), 0.1, 300))
        client("long_grad", waves(40), 0.1, 300, slope)
        assert np.allclose(slope, mutad.compile(long, grad=True).grad(waves(40), 0.1, 300))
        assert (counter("graphs").value > before) == replays


def walls(u, k, steps):
    t = 0.0
    for _ in range(steps):
        u[1:-1] += k * (u[:-2] - 2 * u[1:-1] + u[2:])
        u[0] = u[1]
        u[-1] = u[-2]
        dt = 0.1 / (1.0 + np.abs(u).max())
        u -= dt * u
        t += dt
    return (u * u).sum() + t


def test_scalars_of_loops_are_the_devices(tmp_path: Path) -> None:
    client = DeviceClient(tmp_path, "walls", export(walls, LONG), export(walls, LONG, "grad", (0,)))
    client.stream = ctypes.c_void_p(5)
    before = counter("graphs").value
    slope = np.empty(40)
    found = client("walls", waves(40), 0.1, 300)["result"]
    assert found == pytest.approx(walls(waves(40), 0.1, 300))
    client("walls_grad", waves(40), 0.1, 300, slope)
    assert np.allclose(slope, mutad.compile(walls, grad=True).grad(waves(40), 0.1, 300))
    assert counter("graphs").value > before


def test_what_the_driver_refuses_is_a_status(tmp_path: Path) -> None:
    client = DeviceClient(tmp_path, "sad", export(long, LONG))
    with pytest.raises(Failed, match="CUDA_ERROR_ILLEGAL_ADDRESS"):
        failing_next(lambda: client("long", waves(40), 0.1, 3))
    with pytest.raises(Failed, match="the work area is too small"):
        client("long", waves(40), 0.1, 3, less=64)
    made = DeviceClient(tmp_path, "pool", export(made_of, {"u": "f64[?]C"}))
    with pytest.raises(Failed, match="pool: the device has no memory left") as failed:
        failing_next(lambda: made("made_of", waves(4)))
    assert failed.value.kind == KINDS["MemoryError"]
    assert made("made_of", waves(4))["result_0"].size == int(waves(4).sum()) + 3


def multiplied(a, b, c):
    c += a @ b.T
    return (c * c).sum()


def stepped(a, x, steps):
    for _ in range(steps):
        x[:] = a @ x
    return x.sum()


def apart(a, b, c):
    c[:, :4] = a[::2, ::2] @ b[::2, ::2]
    return c.sum()


PRODUCTS = {
    "multiplied": (multiplied, lambda t: (waves(5, 7, dtype=t), waves(6, 7, dtype=t), waves(5, 6, dtype=t))),
    "stepped": (stepped, lambda t: (0.1 * waves(4, 4, dtype=t), waves(4, 3, dtype=t), 5)),
    "apart": (apart, lambda t: (waves(8, 6, dtype=t), waves(6, 8, dtype=t), waves(4, 6, dtype=t))),
}  # fmt: skip


@pytest.mark.parametrize("dtype", ["f64", "f32"])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_go_to_the_cublas_of_a_handle(tmp_path: Path, name: str, dtype: str) -> None:
    function, made = PRODUCTS[name]
    given = partial(made, {"f64": "f8", "f32": "f4"}[dtype])
    keys = {
        p: f"{dtype}[?,?]C" if p != "steps" else "py_int"
        for p in mutad.compile(function).parameters
    }
    exports = export(function, keys), export(function, keys, "value_and_grad", (0, 1))
    client = DeviceClient(tmp_path, "own", *exports)
    compiled = mutad.compile(function, grad=True)
    tolerance = 1e-12 if dtype == "f64" else 1e-5
    handle = ctypes.c_void_p(99)
    expected, total = {"multiplied": (1, 3), "stepped": (5, 15), "apart": (0, 0)}[name]
    for own in (None, ctypes.byref(handle)):
        assert client.loaded["own_cublas"](ctypes.byref(client.device), own) == 0
        before = counter("products").value
        arguments = given()
        found = client(name, *arguments)["result"]
        here = given()
        assert found == pytest.approx(float(compiled(*here)), rel=tolerance)
        np.testing.assert_allclose(arguments[1], here[1], rtol=tolerance)
        assert counter("products").value - before == (expected if own else 0)
        arguments = given()
        slopes = [np.empty_like(arguments[0]), np.empty_like(arguments[1])]
        client(f"{name}_value_and_grad", *arguments, *slopes)
        wanted = compiled.grad(*given(), wrt=(0, 1))
        for one, other in zip(slopes, wanted, strict=True):
            np.testing.assert_allclose(one, other, rtol=tolerance)
        assert counter("products").value - before == (expected + total if own else 0)
    assert handle.value == client.stream.value


def test_what_cublas_refuses_is_a_status(tmp_path: Path) -> None:
    client = DeviceClient(tmp_path, "own", export(multiplied, dict.fromkeys("abc", "f64[?,?]C")))
    handle = ctypes.c_void_p()
    client.loaded["own_cublas"](ctypes.byref(client.device), ctypes.byref(handle))
    counter("refuses").value = 1
    try:
        with pytest.raises(Failed, match="own: cuBLAS refuses"):
            client("multiplied", waves(5, 7), waves(6, 7), waves(5, 6))
    finally:
        counter("refuses").value = 0


def failing_next(work: Callable[[], object]) -> None:
    """The next call of the driver fails, of those that may (`cuMemAllocAsync`, `cuStreamSynchronize`)."""
    counter("fails_at").value = 1
    try:
        work()
    finally:
        counter("fails_at").value = 0


def test_opening_says_what_is_missing(tmp_path: Path) -> None:
    client = DeviceClient(tmp_path, "shut", export(long, LONG))
    opened, closed = client.loaded["shut_open"], client.loaded["shut_close"]
    stub().stub_leave(1)
    try:
        words = client.strerror(opened(ctypes.byref(client.device)))
        assert words.startswith("shut_open: no context is current: ")
    finally:
        stub().stub_leave(0)
    live = counter("live").value
    assert opened(ctypes.byref(client.device)) == 0
    assert closed(ctypes.byref(client.device)) == 0
    assert closed(ctypes.byref(client.device)) == 0
    assert counter("live").value == live
    script = f"import ctypes; m = ctypes.CDLL({str(client.path)!r}); f = m.shut_strerror; "
    script += (
        "f.restype = ctypes.c_char_p; print(f(m.shut_open((ctypes.c_void_p * 99)())).decode())"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"shut_open: {STUB_NAME}, NVIDIA's driver, is not there\n"


WEIGHTS = np.array([1.0, 2.0])


def weighted(u):
    return (u * WEIGHTS[0]).sum()


def test_arrays_from_outside_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match="WEIGHTS, which the function reads from outside"):
        DeviceClient(tmp_path, "out", export(weighted, {"u": "f64[?]C"}))


CLIENT = """
#include "model.h"
#include <stdio.h>
typedef uint64_t Address;
#ifdef __cplusplus
extern "C" {
#endif
int cuMemAlloc(Address *, size_t);
int cuMemcpyDtoHAsync(void *, Address, size_t, void *);
int cuMemsetD32Async(Address, unsigned, size_t, void *);
#ifdef __cplusplus
}
#endif
int main(void) {
    model_device device;
    Address u = 0, k = 0;
    double value = 0, slope[6];
    int status = model_open(&device);
    if (status) { puts(model_strerror(status)); return 1; }
    cuMemAlloc(&u, 48); cuMemAlloc(&k, 16);
    cuMemsetD32Async(u, 0, 12, NULL); cuMemsetD32Async(k, 0, 4, NULL);
    {
        model_f64_2 a = model_f64_2_of((double *)(uintptr_t)u, 3, 2), g;
        model_i64_1 b = model_i64_1_of((int64_t *)(uintptr_t)k, 2);
        void *block = NULL;
        status = model_allocate(&device, NULL, 48, &block);
        g = model_f64_2_of((double *)block, 3, 2);
        if (!status) status = scatter_alloc(&device, NULL, &a, &b, 1.5, true, &value);
        printf("%d %g\\n", status, value);
        status = scatter_grad_alloc(&device, NULL, &a, &b, 1.5, true, &g);
        cuMemcpyDtoHAsync(slope, (Address)(uintptr_t)block, 48, NULL);
        printf("%d %g %g\\n", status, slope[0], slope[1]);
        status = model_release(&device, NULL, block);
    }
    return status || model_close(&device);
}
"""


@pytest.mark.parametrize("compiler", [["cc", "-std=c99"], ["c++", "-std=c++17"]])
def test_c_calls_a_library(tmp_path: Path, compiler: list[str]) -> None:
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"no {compiler[0]}")
    (tmp_path / "model.py").write_text(MODEL)
    driver = build_stub(tmp_path)
    asked = ["--target=sm_90", "--grad", "scatter:u", "-o", str(tmp_path), "--emit=static"]
    asked += ["--header", str(tmp_path / "model.h"), str(tmp_path / "model.py")]
    images = property(lambda library: [str(build_kernels(library, tmp_path)).encode()])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DeviceLibrary, "images", images)
        assert aot.main(asked) == 0
    source = tmp_path / ("main.c" if compiler[0] == "cc" else "main.cpp")
    source.write_text(CLIENT)
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    given = [source, "libmodel.a", driver, "-ldl", "-lm", f"-Wl,-rpath,{tmp_path}", "-o", "main"]
    subprocess.run([*compiler, *warnings, *given], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout == "0 20.25\n0 33.75 0\n"


FORTRAN = """
program main
    use model
    implicit none
    interface
        function allocate_at(place, bytes) bind(c, name="cuMemAlloc") result(code)
            import
            type(c_ptr), intent(out) :: place
            integer(c_size_t), value :: bytes
            integer(c_int) :: code
        end function allocate_at
        function clear(at, what, count, stream) bind(c, name="cuMemsetD32Async") result(code)
            import
            type(c_ptr), value :: at, stream
            integer(c_int), value :: what
            integer(c_size_t), value :: count
            integer(c_int) :: code
        end function clear
        function fetch(to, at, bytes, stream) bind(c, name="cuMemcpyDtoHAsync") result(code)
            import
            type(c_ptr), value :: to, at, stream
            integer(c_size_t), value :: bytes
            integer(c_int) :: code
        end function fetch
    end interface
    type(model_device) :: device
    type(c_ptr) :: u, k, block
    real(c_double) :: total
    real(c_double), target :: slope(6)
    real(c_double), pointer :: there(:, :)
    integer(c_int64_t), pointer :: places(:)
    integer(c_int) :: status
    status = model_open(device)
    if (status /= MODEL_OK) error stop model_strerror(status)
    status = model_cublas(device, c_null_ptr)
    status = allocate_at(u, 48_c_size_t) + allocate_at(k, 16_c_size_t)
    status = clear(u, 0, 12_c_size_t, c_null_ptr) + clear(k, 0, 4_c_size_t, c_null_ptr)
    status = model_allocate(device, c_null_ptr, 48_c_int64_t, block)
    call c_f_pointer(u, there, [2, 3])
    call c_f_pointer(k, places, [2])
    status = scatter_alloc(device, c_null_ptr, model_transposed(there), model_array(places), &
        1.5_c_double, .true._c_bool, total)
    print '(i0, 1x, f0.2)', status, total
    status = scatter_grad_alloc(device, c_null_ptr, model_f64_2_of(u, 3_c_int64_t, 2_c_int64_t), &
        model_i64_1_of(k, 2_c_int64_t), 1.5_c_double, .true._c_bool, &
        model_f64_2_of(block, 3_c_int64_t, 2_c_int64_t))
    status = status + fetch(c_loc(slope), block, 48_c_size_t, c_null_ptr)
    print '(i0, 2(1x, f0.2))', status, slope(1), abs(slope(2))
    status = model_release(device, c_null_ptr, block) + model_close(device)
    print '(i0, 1x, i0)', status, MODEL_DEVICE_ERROR
end program main
"""


@pytest.mark.skipif(shutil.which("gfortran") is None, reason="no gfortran")
def test_fortran_calls_a_library(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    driver = build_stub(tmp_path)
    images = property(lambda library: [str(build_kernels(library, tmp_path)).encode()])
    for kind in ("static", "fortran"):
        asked = ["--target=sm_90", "--grad", "scatter:u", "-o", str(tmp_path), f"--emit={kind}"]
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DeviceLibrary, "images", images)
            assert aot.main([*asked, str(tmp_path / "model.py")]) == 0
    (tmp_path / "main.f90").write_text(FORTRAN)
    warnings = ["-Wall", "-Wextra", "-Werror", "-pedantic", "-std=f2018"]
    given = ["model.f90", "main.f90", "libmodel.a", driver, "-ldl", "-lm", f"-Wl,-rpath,{tmp_path}"]
    subprocess.run(["gfortran", *warnings, *given, "-o", "main"], cwd=tmp_path, check=True)
    done = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    assert done.stdout == f"0 20.25\n0 33.75 .00\n0 {KINDS[DEVICE_ERROR]}\n"


def test_libraries_hold_their_kernels(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(MODEL)
    asked = ["--target=sm_90", "-o", str(tmp_path), str(tmp_path / "model.py")]
    assert aot.main([*asked, "--emit=shared"]) == 0
    data = (tmp_path / "libmodel.so").read_bytes()
    assert b".visible .entry scatter_0(" in data
    assert aot.main([*asked, "--emit=ptx"]) == 0
    assert (tmp_path / "model.ptx").read_bytes() in data
    assert aot.main([*asked, "--emit=pkg-config"]) == 0
    assert "Libs.private: -lm -ldl" in (tmp_path / "model.pc").read_text()
    loaded = ctypes.CDLL(str(tmp_path / "libmodel.so"))
    assert loaded.scatter_worksize
    assert not hasattr(loaded, "mutad_device_launch")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["--emit=ptx"],
            "--emit ptx: of a CPU there are shared, .*; name a device: --target sm_90",
        ),
        (
            ["--target=sm_90", "--emit=wheel"],
            "--emit wheel: of --target sm_90 there are shared, object",
        ),
        (["--target=sm_12"], "--target sm_12: devices are sm_70"),
        (["--target=cuda:sm_12"], "--target sm_12: devices are sm_70"),
        (["--target=cuda:sm_90", "--emit=wheel"], "of --target sm_90 there are shared, object"),
        (["--target=gpu"], "use x86_64-linux-gnu, .*, or a device: sm_90"),
        (["--target=sm_90", "-g"], "--cpu and -g are of CPUs"),
        (["--target=sm_90", "-o", "-", "--emit=cubin"], "it is not text"),
    ],
)
def test_what_devices_have_not_is_wrong_usage(
    made: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
) -> None:
    assert aot.main([*arguments, str(made / "model.py")]) == 2
    assert re.search(said, capsys.readouterr().err)


def test_names_of_the_header_are_taken(tmp_path: Path) -> None:
    def own_open(u):
        return u.sum()

    with pytest.raises(CompileError, match="'own_open' is a name that the header of own gives"):
        compile_device(
            "own",
            [export(own_open, {"u": "f64[?]C"})],
            Options(device="sm_90", launched=True),
            aot.Runtime().launching(),
        )
