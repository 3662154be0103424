"""The passes of devices, as `mutad-opt -p` knows them."""

from __future__ import annotations

from xdsl.passes import ModulePass

from .block_sums import BlockSums
from .check_spaces import CheckSpaces
from .choose_loads import ChooseLoads
from .count_on_device import CountOnDevice
from .defer_raises import DeferRaises
from .emulate_launches import EmulateLaunches
from .fold_equal_yields import FoldEqualYields
from .inspect_checks import InspectChecks
from .outline_kernels import OutlineKernels
from .recognize_extremes import RecognizeExtremes
from .running_sums import RunningSums
from .save_bytes import SaveBytes
from .scalars_on_device import ScalarsOnDevice
from .size_tapes import SizeTapes
from .tile_loads import TileLoads
from .while_on_device import WhileOnDevice

DEVICE_PASSES: tuple[type[ModulePass], ...] = (
    RecognizeExtremes,
    SaveBytes,
    FoldEqualYields,
    ChooseLoads,
    SizeTapes,
    InspectChecks,
    DeferRaises,
    RunningSums,
    OutlineKernels,
    CheckSpaces,
    BlockSums,
    TileLoads,
    WhileOnDevice,
    ScalarsOnDevice,
    CountOnDevice,
    EmulateLaunches,
)
