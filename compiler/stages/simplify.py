"""From Python to the IR that the analyses read."""

from __future__ import annotations

from ..compilation import Compilation
from ..pass_order import FOR_THREADS, SIMPLIFY
from ..transforms.vectorize_outer import VectorizeOuter


def frontend(c: Compilation) -> None:
    from ..frontend.build import build_function
    from ..frontend.library.plans import FOR_DEVICE

    r = c.request
    gradient = r.mode != "primal"
    before = FOR_DEVICE.set(bool(r.options.device))
    try:
        c.built = build_function(
            r.function, r.arguments, r.overlaps, r.options, r.captured, with_rules=gradient
        )
    finally:
        FOR_DEVICE.reset(before)
    c.module = c.built.module


def simplify(c: Compilation) -> None:
    device = bool(c.request.options.device)
    c.run([p for p in SIMPLIFY if not (device and isinstance(p, VectorizeOuter))])
    if c.request.options.parallel or c.request.options.device:
        c.run(FOR_THREADS)
    if c.request.options.device:
        from ..kernels.recognize_extremes import RecognizeExtremes
        from ..kernels.save_bytes import SaveBytes

        c.run([RecognizeExtremes(), SaveBytes()])
