"""A package over a library: functions with the signatures of the model's, which need NumPy and no mutad.

    model/__init__.py       loss(u, kappa, steps=10), loss.grad(u, kappa, steps=10, *, wrt=0), ...
    model/__init__.pyi      their types
    model/py.typed
    model/libmodel.so
    model/_mutad/           what the functions of the library take, and how they are called

What calls the library is `runtime.library_calls` with the modules that it imports, copied as they are.
"""

from __future__ import annotations

import builtins
import inspect
import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from types import FunctionType
from typing import Any, cast

from ..argument_keys import ArrayKey, ScalarKey, parse
from ..codegen.kernel_memory import KernelMemory
from ..codegen.llvm_module import host
from .library import Library
from .linking import shared_library
from .outputs import Output
from .package_functions import Either, Face, Tree
from .package_signatures import NUMPY, beside, keywords, literal, returned, shown
from .python_entry import entry_name
from .signature import ArrayParameter, OutParameter, Parameter, ScalarParameter
from .statuses import MARK

ENGINE = (
    "keys", "raised_exceptions", "sites", "traceback_entries", "library_arguments", "library_entries",
    "library_calls",
)  # fmt: skip
"""The modules of the runtime that a package has a copy of."""
NOTICE = "# Part of mutad. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception\n"
DOCUMENTED = {
    "grad": "The gradient with respect to {wrt}: `wrt` is one name or position, or a tuple of them.",
    "value_and_grad": "The result, and the gradient with respect to {wrt}, as `wrt` chooses among them.",
    "vjp": "The result, and `back(out_bar, ...)`, which pulls cotangents back to {wrt}.",
    "jvp": 'The result and its tangent, for `tangents={{"name": ...}}` of {wrt}.',
    "hvp": "The Hessian times a direction, with respect to {wrt}, as `wrt` chooses among them.",
}
KEYWORDS = """
    def __init__(self, *args, **kwargs):
        super().__init__(*args)
        self.__dict__.update(kwargs)""".splitlines()
"""What stands for the `__init__` of an exception of the model's."""
FLAGS = {
    **{name: name for name in ("ssse3", "popcnt", "avx", "avx2", "bmi2", "f16c", "fma", "movbe")},
    **{name: name for name in ("avx512bw", "avx512cd", "avx512dq", "avx512f", "avx512vl")},
    "sse4.1": "sse4_1", "sse4.2": "sse4_2", "bmi": "bmi1", "lzcnt": "abm",
}  # fmt: skip
"""What the levels of x86-64 have beyond the first: LLVM's names, and those in /proc/cpuinfo."""
PYTHON = {"py_float": "float", "py_int": "int", "py_bool": "bool"}


@dataclass(frozen=True)
class Package:
    """The functions of one library, by name."""

    library: Library
    functions: dict[str, dict[str, Face]]
    """Of each the faces by mode: "primal", "grad", ..."""

    @classmethod
    def of(cls, library: Library) -> Package:
        functions: dict[str, dict[str, Face]] = {}
        for face in library.faces:
            symbol, mode = face.export.symbol, face.export.mode
            name = face.export.name or symbol.removesuffix(f"_{mode}")
            functions.setdefault(name, {})[mode] = face
        return cls(library, functions)

    @property
    def globals(self) -> dict[str, Any]:
        """Those of the model; where all functions are imported, those of the first."""
        found = [cast(FunctionType, f.export.function).__globals__ for f in self.library.faces]
        own = [
            one
            for one in found
            if str(one.get("__name__")).strip("_") == self.library.name.strip("_")
        ]
        return (own or found)[0]

    @property
    def tables(self) -> str:
        """What a package calls its tables: as no parameter is called."""
        taken = {p.name for face in self.library.faces for p in face.export.parameters}
        name = "__mutad__"
        while name in taken:
            name = f"_{name}"
        return name

    @property
    def version(self) -> str:
        """The model's `__version__`."""
        found = self.globals.get("__version__", "0.0.0")
        return found if isinstance(found, str) else "0.0.0"

    @property
    def blas(self) -> list[str]:
        """The routines of BLAS that the library calls."""
        return [s for s, origin in self.library.symbols.items() if origin == "blas"]


def package_files(library: Library, sources: Mapping[str, str]) -> dict[str, Output]:
    """All files, by their paths; `sources` are texts of modules of the runtime."""
    package, name = Package.of(library), library.name
    texts = {
        "__init__.py": init_text(package),
        "__init__.pyi": types_text(package),
        "py.typed": "",
        "_mutad/__init__.py": f'{NOTICE}"""How the functions of the library are called."""\n',
        "_mutad/tables.py": tables_text(package),
    }
    for module in (*ENGINE, *(["blas"] if package.blas else [])):
        texts[f"_mutad/{module}.py"] = NOTICE + sources[module]
    files = {f"{name}/{path}": Output(text.encode()) for path, text in texts.items()}
    files[f"{name}/lib{name}.so"] = Output(python_library(package), executable=True)
    return files


def python_library(package: Package) -> bytes:
    """The shared library: the entries of Python are promised, and BLAS comes from a table."""
    library, routines = package.library, package.blas
    code = library.object_code(jumps(package) if routines else "")
    entries = [entry_name(f.symbol) for f in library.functions]
    table = [blas_table(library.name)] if routines else []
    promised = sorted([*library.promised, *entries, *table])
    return shared_library(library.name, code, promised, triple=library.triple)


def blas_table(name: str) -> str:
    return f"{name}_blas"


def jumps(package: Package) -> str:
    """BLAS, as jumps to addresses that the package writes into a table."""
    routines, table = package.blas, blas_table(package.library.name)
    lines = [f"@{table} = global [{len(routines)} x ptr] zeroinitializer"]
    for k, routine in enumerate(routines):
        declared = re.search(rf"declare void @{routine}\((.*)\)", package.library.llvm)
        assert declared is not None
        types = [text.split()[0] for text in declared[1].split(", ")]
        given = ", ".join(f"{type_} %{n}" for n, type_ in enumerate(types))
        lines += [
            f"define void @{routine}({given}) nounwind {{",
            f"  %at = getelementptr inbounds [{len(routines)} x ptr], ptr @{table}, i64 0, i64 {k}",
            "  %routine = load ptr, ptr %at",
            f"  call void %routine({given})",
            "  ret void",
            "}",
        ]
    return "\n".join(lines)


# What is imported. --------------------------------------------------------------------------------


def init_text(package: Package) -> str:
    """`__init__.py`."""
    doc = package.globals.get("__doc__")
    about = doc if isinstance(doc, str) else f"{package.library.name}, compiled by mutadc."
    lines = [
        f"{literal(about)}",
        "",
        "import numpy as np",
        "",
        "from ._mutad.library_calls import named as __named__",
        f"from ._mutad.tables import FUNCTIONS as {package.tables}",
        "",
        f"__version__ = {package.version!r}",
        f"__all__ = {[*package.functions, *raised_classes(package)]!r}",
    ]
    for name, cls in raised_classes(package).items():
        lines += ["", "", f"class {name}({', '.join(map(base_name, cls.__bases__))}):"]
        lines += [f"    {literal(inspect.cleandoc(cls.__doc__ or name))}"]
        if "__init__" in vars(cls):
            lines += KEYWORDS
    for name, faces in package.functions.items():
        function = cast(FunctionType, faces["primal"].export.function)
        signature = inspect.signature(function)
        lines += ["", "", f"def {name}({shown(signature)}){returned(signature)}:"]
        if function.__doc__ is not None:
            lines.append(f"    {literal(function.__doc__)}")
        lines.append(
            f"    return {package.tables}[{name!r}].primal({handed(signature.parameters)})"
        )
        for mode, face in faces.items():
            if mode != "primal":
                lines += derivative(name, mode, face, signature, package.tables)
    return "\n".join([*lines, ""])


def derivative(
    name: str, mode: str, face: Face, signature: inspect.Signature, tables: str
) -> Iterator[str]:
    """The function `loss.grad`, ..."""
    signature = beside(signature, mode)
    own = [p for p in signature.parameters if p not in keywords(mode)]
    wrt = ", ".join(face.export.parameters[k].name for k in face.export.wrt)
    yield from ("", "")
    yield f"def __derivative__({shown(signature)}):"
    yield f"    {literal(DOCUMENTED[mode].format(wrt=wrt))}"
    yield f"    return {tables}[{name!r}].{mode}({handed(own)}, {', '.join(keywords(mode))})"
    yield from ("", "")
    yield f"{name}.{mode} = __named__(__derivative__, {f'{name}.{mode}'!r}, __name__)"
    yield "del __derivative__"


def handed(names: Iterable[str]) -> str:
    """A tuple of the arguments."""
    listed = [*names]
    return f"({', '.join(listed)}{',' if len(listed) == 1 else ''})"


# Exceptions. --------------------------------------------------------------------------------------


def class_of(name: str) -> Any:
    """The class that a site names, while the model is there."""
    module, _, inside = name.rpartition(":" if ":" in name else ".")
    found = sys.modules.get(module) if module else builtins
    try:
        return reduce(getattr, inside.split("."), cast(Any, found))
    except AttributeError:
        return Exception


def is_known(cls: type) -> bool:
    """Whether a package can import it: Python's own and NumPy's."""
    return cls.__module__ == "builtins" or cls.__module__.partition(".")[0] == "numpy"


def raised_classes(package: Package) -> dict[str, type]:
    """The exceptions that the model defines and raises, bases first."""
    found: dict[str, type] = {}

    def take(cls: type) -> None:
        if not is_known(cls):
            for base in cls.__bases__:
                take(base)
            found.setdefault(cls.__name__, cls)

    for face in package.library.faces:
        for _, site in face.sites:
            take(class_of(site.get("exception", "Exception")))
    return found


def base_name(cls: type) -> str:
    """A base of such a class, as a package names it."""
    if cls.__module__ == "builtins" or not is_known(cls):
        return cls.__name__
    return f"np{cls.__module__.removeprefix('numpy')}.{cls.__name__}"


def exception_text(name: str) -> str:
    """The expression for what a site raises: a class of the package's own is found there."""
    cls = class_of(name)
    return repr(name) if is_known(cls) else f'f"{{PACKAGE}}:{cls.__name__}"'


def message_of(site: Mapping[str, Any]) -> str:
    """The message of a site; where an exception has a cause, by the nearest class that Python has."""
    message = str(site.get("message", ""))
    if not message.startswith(MARK):
        return message
    recipe = json.loads(message.removeprefix(MARK))
    cause = recipe.get("cause")
    if isinstance(cause, dict) and not is_known(cls := class_of(cause["class"])):
        known = next(base.__name__ for base in cls.__mro__ if base.__module__ == "builtins")
        recipe["cause"] = {**cause, "class": known}
    return MARK + json.dumps(recipe)


# Tables. ------------------------------------------------------------------------------------------


def tables_text(package: Package) -> str:
    """What each function of the library takes and returns."""
    name = package.library.name
    lines = [
        f"{NOTICE}import os",
        "",
        "from .library_arguments import ArrayParameter, NumberParameter",
        "from .library_calls import Function",
        "from .library_entries import Either, Entry, Library, Site, Slot",
        "",
        'PACKAGE = __name__.rpartition("._mutad")[0]',
        "FOLDER = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))",
        f"LIBRARY = Library(FOLDER, {name!r}, {instructions(package.library)!r})",
    ]
    if package.blas:
        routines = [f"mutad_{r.removesuffix('_')}" for r in package.blas]
        lines.append(f"LIBRARY.take({blas_table(name)!r}, {routines!r})")
    lines.append("FUNCTIONS = {")
    for function, faces in package.functions.items():
        lines += [f"    {function!r}: Function(", f"        {function!r},", "        ("]
        primal = faces["primal"]
        lines += [f"            {parameter_text(p)}," for p in described(primal)]
        lines += ["        ),", "        {"]
        for mode, face in faces.items():
            lines += [f"            {mode!r}: Entry(", *entry_lines(face), "            ),"]
        wrt = {mode: face.export.wrt for mode, face in faces.items() if mode != "primal"}
        names = tuple(n for n, (group, _) in primal.roles.items() if group == "arguments")
        lines += ["        },", f"        {wrt!r},", f"        {names!r},", "    ),"]
    return "\n".join([*lines, "}", ""])


def instructions(library: Library) -> tuple[str, ...]:
    """What the code may use of a CPU, of the sets of instructions that not all have, as Linux calls them."""
    features = (library.options.target or host()).features
    return tuple(sorted(flag for feature, flag in FLAGS.items() if feature in features))


def described(face: Face) -> Iterator[tuple[str, ArrayKey | ScalarKey, bool]]:
    """The function's parameters: name, kind, and whether it is written."""
    inputs = {p.name: p for p in face.function.arrays()}
    names = [n for n, (group, _) in face.roles.items() if group == "arguments"]
    for parameter, name in zip(face.export.parameters, names, strict=True):
        key = parse(parameter.key)
        assert isinstance(key, ArrayKey | ScalarKey)
        yield parameter.name, key, name in inputs and inputs[name].written


def parameter_text(described: tuple[str, ArrayKey | ScalarKey, bool]) -> str:
    name, key, written = described
    if isinstance(key, ScalarKey):
        return f"NumberParameter({name!r}, {key.type!r})"
    return f"ArrayParameter({name!r}, {key.dtype!r}, {key.rank}, {key.layout!r}, {written})"


def entry_lines(face: Face) -> Iterator[str]:
    """One function of the library."""
    f, indent = face.function, " " * 16
    yield f"{indent}LIBRARY,"
    yield f"{indent}{f.symbol!r},"
    yield f"{indent}("
    yield from (f"{indent}    {slot_text(p, face)}," for p in f.parameters)
    yield f"{indent}),"
    sizes = tuple((s.parameter, s.axis) for s in f.sizes)
    yield f"{indent}{sizes if f.memory is KernelMemory.AREA else None!r},"
    yield f"{indent}("
    for status, site in face.sites:
        place = ""
        if site.get("file"):
            file = Path(site["file"]).name
            place = f"{file}:{site['line']}:{site['column']}: {site.get('source', '').strip()}"
        exception = exception_text(str(site.get("exception", "Exception")))
        operands = list(site.get("operands", ()))
        yield f"{indent}    Site({status}, {exception}, {message_of(site)!r}, {operands!r}, {place!r}),"
    yield f"{indent}),"
    yield f"{indent}{face.trees.get('')!r},"
    yield f"{indent}{face.trees.get('_dot')!r},"


def slot_text(p: Parameter, face: Face) -> str:
    match p:
        case ScalarParameter():
            return f"Slot('number', {p.name!r}, {p.type!r})"
        case ArrayParameter():
            return f"Slot('array', {p.name!r}, {p.key.dtype!r}, {p.key.rank})"
        case OutParameter(rank=None):
            return f"Slot('out', {p.name!r}, {p.type!r})"
        case OutParameter():
            fresh, among = face.arrays.get(p.name, (False, ()))
            return f"Slot('out', {p.name!r}, {p.type!r}, {p.rank}, {fresh}, {among!r})"


# Types. -------------------------------------------------------------------------------------------


def types_text(package: Package) -> str:
    """`__init__.pyi`."""
    modes = {mode for faces in package.functions.values() for mode in faces}
    lines = [
        *(["from collections.abc import Mapping, Sequence"] if modes - {"primal"} else []),
        "from typing import Any, Protocol, overload",
        "",
        "import numpy as np",
        "from numpy.typing import NDArray",
        "",
        "__version__: str",
    ]
    for name, cls in raised_classes(package).items():
        lines += ["", f"class {name}({', '.join(map(base_name, cls.__bases__))}): ..."]
    for name, faces in package.functions.items():
        lines += ["", f"class _{name}(Protocol):", "    __name__: str", "    __qualname__: str"]
        for mode, face in faces.items():
            lines += typed(mode, face)
        lines += ["", f"{name}: _{name}"]
    return "\n".join([*lines, ""])


def typed(mode: str, face: Face) -> Iterator[str]:
    """A function, or a derivative of it, with types."""
    function = cast(FunctionType, face.export.function)
    signature = inspect.signature(function)
    kinds = {p: key for p, (_, key, _) in zip(signature.parameters, described(face), strict=True)}

    def annotation(p: inspect.Parameter) -> str:
        match p.name:
            case "wrt" if p.name in added:
                return chosen
            case "tangents" if p.name in added:
                return "Mapping[str, Any]"
            case "direction" if p.name in added:
                return "Any"
            case name:
                return taken(kinds[name] if name in kinds else kinds[name.removesuffix("_")])

    added: tuple[str, ...] = ()
    if mode == "primal":
        yield f"    def __call__(__self, {shown(signature, annotation, values=False)}) -> {made(face)}: ..."
        return
    added = keywords(mode)
    whole = beside(signature, mode)
    one = " | ".join(dict.fromkeys(gradient_type(kinds_of(face)[k]) for k in face.export.wrt))
    forms = [("str | int", one), ("Sequence[str | int]", "tuple[Any, ...]")]
    for chosen, gradient in forms if "wrt" in added else [("", "")]:
        if "wrt" in added:
            yield "    @overload"
        if chosen.startswith("Sequence"):
            whole = without_default(whole)
        result = {
            "grad": gradient,
            "value_and_grad": f"tuple[{made(face)}, {gradient}]",
            "vjp": f"tuple[{made(face)}, Any]",
            "jvp": f"tuple[{made(face)}, Any]",
            "hvp": gradient,
        }[mode]
        yield f"    def {mode}(__self, {shown(whole, annotation, values=False)}) -> {result}: ..."


def without_default(signature: inspect.Signature) -> inspect.Signature:
    """A signature in which `wrt` is to be given."""
    parameters = dict(signature.parameters)
    parameters["wrt"] = parameters["wrt"].replace(default=inspect.Parameter.empty)
    return signature.replace(parameters=[*parameters.values()])


def kinds_of(face: Face) -> Sequence[ArrayKey | ScalarKey]:
    return [key for _, key, _ in described(face)]


def taken(key: ArrayKey | ScalarKey) -> str:
    """The type of what an argument may be."""
    if isinstance(key, ArrayKey):
        return f"NDArray[{NUMPY[key.dtype]}]"
    if key.type in PYTHON:
        return PYTHON[key.type]
    weak = {"b1": "bool", "f32": "float", "f64": "float"}.get(key.type, "int")
    return f"{weak} | {NUMPY[key.type]}"


def gradient_type(key: ArrayKey | ScalarKey) -> str:
    if isinstance(key, ArrayKey):
        return f"NDArray[{NUMPY[key.dtype]}]"
    return PYTHON.get(key.type) or NUMPY[key.type]


def made(face: Face) -> str:
    """The type of a result."""
    outs = {p.name: p for p in face.function.parameters if isinstance(p, OutParameter)}

    def of(tree: Tree) -> str:
        if tree is None:
            return "None"
        if isinstance(tree, tuple):
            items = cast(tuple[Tree, ...], tree)
            return f"tuple[{', '.join(map(of, items)) or '()'}]"
        if isinstance(tree, int):
            return gradient_type(kinds_of(face)[tree])
        if isinstance(tree, Either):
            return f"{PYTHON[tree.type]} | {of(tree.name)}"
        out = outs[tree]
        name = PYTHON.get(out.type) or NUMPY[out.type]
        return name if out.rank is None else f"NDArray[{name}]"

    return of(face.trees.get(""))
