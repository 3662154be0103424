"""A wheel of the package: an archive for one platform, and for every Python 3.

The same package makes the same bytes: files are in order, and dated by `SOURCE_DATE_EPOCH`, else by the first
day that an archive knows.
"""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import time
import zipfile
from collections.abc import Mapping

from .elf import Needs, needs_of
from .library import Library
from .outputs import Output
from .python_package import Package, package_files

FIRST_DAY = 315532800
"""1980-01-01, as seconds since 1970."""
NUMPY = "numpy>=2.0"
SCIPY = "scipy>=1.13"
OLDEST = {"x86_64": (2, 5), "aarch64": (2, 17)}
"""The oldest glibc for which there is a tag."""
GLIBC = {"libc.so.6", "libm.so.6", "libmvec.so.1", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
LIBMVEC = (2, 24)
"""From this glibc on, wheels may rely on libmvec."""
VERSION = re.compile(
    r"(\d+!)?\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?(\+[a-z0-9]+(\.[a-z0-9]+)*)?\Z"
)


def wheel_files(library: Library, sources: Mapping[str, str]) -> dict[str, Output]:
    """The wheel, by its name."""
    files = package_files(library, sources)
    package, name = Package.of(library), library.name
    version = package.version if VERSION.match(package.version) else "0.0.0"
    needs = needs_of(files[f"{name}/lib{name}.so"].data)
    tag = f"py3-none-{platform_tag(needs, native=library.options.target is None)}"
    project = project_name(name)
    info = f"{project}-{version}.dist-info"
    files[f"{info}/METADATA"] = Output(metadata(package, version).encode())
    files[f"{info}/WHEEL"] = Output(wheel_text(tag).encode())
    files[f"{info}/RECORD"] = Output(record(files, f"{info}/RECORD").encode())
    return {f"{project}-{version}-{tag}.whl": Output(archive(files))}


def project_name(name: str) -> str:
    """What a project may be called, of the name of a module."""
    return re.sub(r"_+", "_", name).strip("_").lower() or "model"


def metadata(package: Package, version: str) -> str:
    """What the wheel is, and what it needs."""
    doc = package.globals.get("__doc__")
    summary = doc.strip().splitlines()[0] if isinstance(doc, str) and doc.strip() else ""
    lines = [
        "Metadata-Version: 2.1",
        f"Name: {project_name(package.library.name)}",
        f"Version: {version}",
        f"Summary: {summary or 'Compiled by mutadc.'}",
        "Requires-Python: >=3.11",
        f"Requires-Dist: {NUMPY}",
        *([f"Requires-Dist: {SCIPY}"] if package.blas else []),
    ]
    return "\n".join([*lines, ""])


def wheel_text(tag: str) -> str:
    return f"Wheel-Version: 1.0\nGenerator: mutadc\nRoot-Is-Purelib: false\nTag: {tag}\n"


def record(files: Mapping[str, Output], own: str) -> str:
    """Every file with its hash and size, but this one."""
    lines: list[str] = []
    for path, output in sorted(files.items()):
        digest = base64.urlsafe_b64encode(hashlib.sha256(output.data).digest()).rstrip(b"=")
        lines.append(f"{path},sha256={digest.decode()},{len(output.data)}")
    return "\n".join([*lines, f"{own},,", ""])


def archive(files: Mapping[str, Output]) -> bytes:
    """The bytes of the archive; what describes the package comes last, as tools expect."""
    seconds = max(int(os.environ.get("SOURCE_DATE_EPOCH", FIRST_DAY)), FIRST_DAY)
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path in sorted(files, key=lambda p: (".dist-info/" in p, p)):
            entry = zipfile.ZipInfo(path, time.gmtime(seconds)[:6])
            mode = 0o100755 if files[path].executable else 0o100644
            entry.create_system, entry.external_attr = 3, mode << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            wheel.writestr(entry, files[path].data)
    return made.getvalue()


def platform_tag(needs: Needs, *, native: bool) -> str:
    """The platforms on which the library runs: by the glibc that it needs, where that is all it needs.

    Code for the CPU that compiled it is for no other machine: such a wheel is not for distribution.
    """
    oldest = OLDEST.get(needs.machine)
    if native or oldest is None or not needs.libraries <= GLIBC or needs.others:
        return f"linux_{needs.machine}"
    mvec = [LIBMVEC] if "libmvec.so.1" in needs.libraries else []
    major, minor = max([oldest, needs.glibc, *mvec])
    return f"manylinux_{major}_{minor}_{needs.machine}"
