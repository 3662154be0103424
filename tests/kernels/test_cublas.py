"""Products of matrices by cuBLAS: what it is asked, through what stands for it in the emulated driver."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from device_checks import close
from device_programs import waves

import mutad
from mutad.cuda import CudaError
from mutad.runtime import device, device_products, drivers
from mutad.runtime.device import Driver
from mutad.runtime.emulated_driver import EmulatedDriver, emulated


@pytest.fixture
def emulation() -> Iterator[EmulatedDriver]:
    with emulated(cublas=True) as found:
        yield found
        found.failing.clear()
        assert not found.unexpected


def driver() -> Driver:
    return drivers.begun["emulated"]


def plain(a, b, c):
    c[...] = a @ b
    return (c * c).sum()


def all_transposed(a, b, c):
    c.T[...] = b.T @ a.T
    c[...] += a @ b
    return (c * c).sum()


def of_blocks(a, b, c):
    c[1:, 2:] = a[1:] @ b[:, 2:]
    c[:1, ::2] = a[:1] @ b[:, ::2]
    return (c * c).sum()


def of_vectors(a, b, c):
    c[0] = a[0] @ b
    c[:, 1] = a @ b[:, 1]
    return (c * c).sum()


def repeated(a, b, c):
    for _ in range(300):
        c += 0.01 * (a @ b)
    return (c * c).sum()


PROGRAMS = (
    (plain, 1),
    (all_transposed, 2),
    (of_blocks, 1),  # no unit stride: a kernel
    (of_vectors, 0),
)


@pytest.mark.parametrize(
    ("function", "count", "dtype"),
    [*((*p, "f8") for p in PROGRAMS), (plain, 1, "f4")],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_products_of_matrices_go_to_cublas(
    function: Any, count: int, dtype: str, emulation: EmulatedDriver
) -> None:
    given = waves(9, 7, dtype=dtype), waves(7, 12, dtype=dtype), waves(9, 12, dtype=dtype)
    compiled = mutad.compile(function, grad=True, opt=1)
    there, here = [mutad.device_array(x) for x in given], [x.copy() for x in given]
    before = driver().state[device_products.PRODUCTS]
    value = compiled(*there)
    assert driver().state[device_products.PRODUCTS] - before == count
    close(value, compiled(*here))
    wrt = ("a", "b", "c")
    there, here = [mutad.device_array(x) for x in given], [x.copy() for x in given]
    value, gradients = compiled.value_and_grad(*there, wrt=wrt)
    wanted, exact = compiled.value_and_grad(*here, wrt=wrt)
    close(value, wanted)
    for one, other in zip((*gradients, *there), (*exact, *here), strict=True):
        close(one.copy_to_host(), other)


def test_a_captured_product_is_replayed(emulation: EmulatedDriver) -> None:
    compiled = mutad.compile(repeated, opt=1)
    given = waves(9, 7), waves(7, 12), waves(9, 12)
    graphs = driver().replays
    unit, least = driver().state[device.UNIT], driver().state[device.LEAST]
    driver().state[device.UNIT], driver().state[device.LEAST] = 4, 2
    try:
        value = compiled(*map(mutad.device_array, given))
    finally:
        driver().state[device.UNIT], driver().state[device.LEAST] = unit, least
    close(value, repeated(*given))
    assert driver().replays > graphs


def test_its_errors_are_named(emulation: EmulatedDriver) -> None:
    compiled = mutad.compile(plain, opt=1)
    given = [mutad.device_array(x) for x in (waves(9, 7), waves(7, 12), waves(9, 12))]
    emulation.fail("cublasDgemm_v2", 13)
    with pytest.raises(CudaError, match=r"cublasDgemm_v2: status 13 of cuBLAS"):
        compiled(*given)
    compiled(*given)


def test_where_it_cannot_begin_kernels_multiply(emulation: EmulatedDriver) -> None:
    assert mutad.cuda.has_cublas()
    find = driver().find_products
    driver().end_products()
    driver().find_products = find
    emulation.fail("cublasCreate_v2", 1)
    found = mutad.cuda.has_cublas()
    assert not found
    assert found.reason == "cublasCreate_v2: status 1 of cuBLAS"
    compiled = mutad.compile(plain, opt=1)
    given = waves(9, 7), waves(7, 12), waves(9, 12)
    before = driver().state[device_products.PRODUCTS]
    value = compiled(*map(mutad.device_array, given))
    assert driver().state[device_products.PRODUCTS] == before
    close(value, plain(*given))


def test_its_work_is_ours_alone(emulation: EmulatedDriver) -> None:
    """One stream, memory that we gave, no atomics: what its manual asks for if runs are to be the same."""
    calls: dict[str, tuple[Any, ...]] = {}
    driver().end_products()
    emulation.log = lambda name, given: calls.setdefault(name, given) and None
    try:
        driver().begin_products()
    finally:
        emulation.log = None
    assert list(calls).index("cublasSetStream_v2") < list(calls).index("cublasSetWorkspace_v2")
    assert calls["cublasSetStream_v2"][1] == driver().stream
    assert calls["cublasSetWorkspace_v2"][2] == device_products.WORKSPACE
    assert calls["cublasSetAtomicsMode"][1] == device_products.NO_ATOMICS


def test_it_is_found_in_a_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "nvidia" / "cublas" / "lib"
    folder.mkdir(parents=True)
    names = (*device_products.FUNCTIONS, *device_products.GEMMS)
    source = tmp_path / "cublas.c"
    source.write_text("\n".join(f"int {name}(void) {{ return 0; }}" for name in names))
    made = folder / "libcublas.so.13"
    subprocess.run(["cc", "-shared", "-fPIC", str(source), "-o", str(made)], check=True)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    addresses, reason = device_products.find()
    assert addresses.keys() == set(names)
    assert all(addresses.values())
    assert not reason
    monkeypatch.setenv("MUTAD_CUBLAS", "0")
    assert device_products.find() == ({}, "MUTAD_CUBLAS=0 is set")


def test_the_receipt_says_what_may_go_there() -> None:
    compiled = mutad.compile(plain, grad=True, target="cuda:sm_90")
    told = compiled.explain(waves(9, 7), waves(7, 12), waves(9, 12), wrt="a")
    assert [k.library for k in told.kernels if k.intensity > 1] == [True, True]
    assert "shared memory, or cuBLAS" in str(told)
