"""What `pkg-config` tells of a library: the file `model.pc`, beside the library and its header.

pkg-config --cflags --libs model                                       PKG_CONFIG_PATH names its folder
pkg-config --define-variable=blas=-lopenblas --libs model              another BLAS than -lblas
pkg-config --static --libs model                                       with libmodel.a
"""

from __future__ import annotations

from .header import blas_of
from .library import Library


def pkg_config_text(library: Library) -> str:
    """The whole file. A shared library does not say which BLAS it calls, so its clients link one."""
    name = library.name
    blas = ["", f"# {', '.join(blas_of(library))}", "blas=-lblas"] if library.uses_blas else []
    shared = f"-L${{libdir}} -l{name}" + (" ${blas}" if blas else "")
    private = "-lmvec -lm" if library.uses_libmvec else "-lm"
    private += " -ldl" if library.launches else ""
    lines = [
        "prefix=${pcfiledir}",
        "libdir=${prefix}",
        "includedir=${prefix}",
        *blas,
        "",
        f"Name: {name}",
        f"Description: {', '.join(f.symbol for f in library.functions)}, compiled by mutadc",
        "Version: 0",
        f"Libs: {shared}",
        f"Libs.private: {private}",
        "Cflags: -I${includedir}",
    ]
    return "\n".join(lines) + "\n"
