"""Kernels are outlined, and run by the CPU or loaded by a driver."""

from __future__ import annotations

from base64 import b64encode

from ..compilation import Compilation
from ..request import HOST_DRIVER
from .machine_code import level_and_target


def kernels(c: Compilation) -> None:
    from ..kernels.block_sums import BlockSums
    from ..kernels.check_spaces import CheckSpaces
    from ..kernels.choose_loads import ChooseLoads
    from ..kernels.defer_raises import DeferRaises
    from ..kernels.fold_equal_yields import FoldEqualYields
    from ..kernels.inspect_checks import InspectChecks
    from ..kernels.outline_kernels import OutlineKernels
    from ..kernels.running_sums import RunningSums
    from ..kernels.size_tapes import SizeTapes
    from ..kernels.tile_loads import TileLoads
    from ..transforms.hoist_allocs import HoistAllocs
    from ..transforms.hoist_invariants import HoistInvariants

    fixed, fast = c.request.options.deterministic, c.request.options.fastmath
    choices = FoldEqualYields(), ChooseLoads(), SizeTapes(fast)
    checks = InspectChecks(fixed), DeferRaises(fixed)
    # what blocks leave of a sum is allocated before the loop, so that a graph can replay it
    hoists = HoistInvariants(divisions=True), HoistAllocs()
    c.run(
        [
            *choices,
            *checks,
            RunningSums(),
            OutlineKernels(fixed),
            *hoists,
            CheckSpaces(),
            BlockSums(),
            TileLoads(),
        ]
    )


def emulated(c: Compilation) -> None:
    from ..kernels.emulate_launches import EmulateLaunches

    c.run([EmulateLaunches()])


def launches(c: Compilation) -> None:
    """Kernels leave the module: as PTX, or as machine code that the emulated driver loads."""
    from ..codegen.launches_to_llvm import multiplies, number_kernels, repeats
    from ..codegen.llvm_module import optimize_and_emit
    from ..kernels.count_on_device import CountOnDevice
    from ..kernels.host_kernels import (
        host_text,
        kinds_of_parameters,
        ranks_of_parameters,
        sizes_of_parameters,
    )
    from ..kernels.scalars_on_device import ScalarsOnDevice
    from ..kernels.while_on_device import WhileOnDevice

    c.run([WhileOnDevice(), ScalarsOnDevice(), CountOnDevice()])
    text = "" if c.request.options.device == HOST_DRIVER else ptx(c)
    made = number_kernels(c.module)
    c.image = {"kernels": [k.sym_name.data for k in made], "ptx": text}
    c.image["products"] = multiplies(c.module)
    c.image["conditions"] = repeats(c.module)
    if made and c.request.options.device == HOST_DRIVER:
        c.image["ir"] = "\n".join(map(str, made))
        written = host_text(made, c.request.options)
        code = optimize_and_emit(written.module(), *level_and_target(c))
        c.image |= {"code": b64encode(code).decode(), "symbols": written.symbols}
        c.image["parameters"] = [kinds_of_parameters(k) for k in made]
        c.image["ranks"] = [ranks_of_parameters(k) for k in made]
        c.image["sizes"] = [sizes_of_parameters(k) for k in made]


def ptx(c: Compilation) -> str:
    from ..codegen.ptx import ptx_of

    options = c.request.options
    return ptx_of(c.module, options.device, fastmath=options.fastmath)


def sass(c: Compilation) -> str:
    from ..aot.device_tools import sass_of

    text = c.image["ptx"] if c.image else ptx(c)
    return sass_of(text, c.request.options.device) if text else ""
