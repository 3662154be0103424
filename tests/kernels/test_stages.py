"""Stages of devices are shown, dumped and run as those of the CPU are."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import device_checks
import numpy as np
import pytest
from device_programs import heat, waves

import mutad
from mutad import opt
from mutad.compiler.aot import device_tools

GIVEN = waves(9), 0.1, 2


def test_dumps_show_kernels_and_what_the_cpu_runs_of_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MUTAD_DUMP", "kernels,emulated,llvm")
    monkeypatch.setenv("MUTAD_DUMP_DIR", str(tmp_path))
    value = mutad.compile(heat, target="cuda:host", opt=1)(*GIVEN)
    names = sorted(p.name.split(".", 1)[1] for p in tmp_path.iterdir())
    assert names == ["6-emulated.mlir", "6-kernels.mlir", "6-llvm.ll"]
    np.savez(tmp_path / "in.npz", u=waves(9), k=0.1, steps=2)
    for name in ("emulated", "kernels"):
        (dump,) = tmp_path.glob(f"*-{name}.mlir")
        opt.main([str(dump), "--run", "--args", str(tmp_path / "in.npz")])
        shown = capsys.readouterr().out.splitlines()[0]
        assert np.isclose(float(shown.removeprefix("result = ")), value, rtol=1e-12)


def test_a_page_shows_ptx(tmp_path: Path) -> None:
    compiled = mutad.compile(heat, grad=True, target="cuda:sm_90")
    compiled.inspect.html(tmp_path / "page.html", *GIVEN, wrt="u")
    page = (tmp_path / "page.html").read_text()
    assert "device.launch" in page
    assert "stage-ptx" in page
    assert "heat_gradient_0" in page


def test_stages_of_other_targets_are_named() -> None:
    with pytest.raises(ValueError, match=r"no stage named .llvm.; .*; of devices kernels"):
        mutad.compile(heat, target="cuda:sm_90").inspect("llvm", *GIVEN)
    with pytest.raises(ValueError, match="no stage named 'ptx'"):
        mutad.compile(heat).inspect("ptx", *GIVEN)


def test_machine_code_of_a_primal_fuses_nothing() -> None:
    """The contract, behind NVIDIA's own assembler: products and sums are rounded one by one."""

    def operations(**options: Any) -> set[str]:
        shown = mutad.compile(heat, target="cuda:sm_90", **options).inspect("sass", *GIVEN)
        return set(re.findall(r"\b(DADD|DMUL|DFMA)\b", shown))

    assert operations() == {"DADD", "DMUL"}
    assert "DFMA" in operations(fastmath=True)


def test_machine_code_is_shown_where_the_tools_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`ptxas` is the real one; the disassembler of this test says what it was given."""
    compiled = mutad.compile(heat, target="cuda:sm_90")
    there = {"ptxas": device_checks.ptxas()}
    monkeypatch.setattr(device_tools, "of_packages", there.get)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RuntimeError, match=r"nvdisasm: not found, .*pip install"):
        compiled.inspect("sass", *GIVEN)
    there["nvdisasm"] = str(tool := tmp_path / "disassembler")
    tool.write_text(f"#!{sys.executable}\nprint(open('k.cubin', 'rb').read()[:4])\n")
    tool.chmod(0o755)
    assert "ELF" in compiled.inspect("sass", *GIVEN)
    with pytest.raises(ValueError, match="no stage named 'sass'"):
        mutad.compile(heat).inspect("sass", *GIVEN)
