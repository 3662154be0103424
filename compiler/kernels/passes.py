"""The passes of devices, as `mutad-opt -p` knows them."""

from __future__ import annotations

from xdsl.passes import ModulePass

from .emulate_launches import EmulateLaunches
from .inspect_checks import InspectChecks
from .outline_kernels import OutlineKernels

DEVICE_PASSES: tuple[type[ModulePass], ...] = (InspectChecks, OutlineKernels, EmulateLaunches)
