"""Exported functions, compiled to one LLVM module.

Each export goes through the compiler's stages as a call's request does; its kernel has no Python and no
malloc in it (`codegen.kernel_memory`). The modules of all exports are linked into one, in which only the
promised symbols are visible.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

import llvmlite.binding as llvm
import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp

from ...dialects import activation, array, foreign
from ..argument_keys import ArrayKey, Key, ScalarKey, TupleKey, leaves, parse
from ..codegen.entries.guard import ArrayValue, Leaf, ScalarValue
from ..codegen.entries.plan import GradientSignature, Tangents, gradient_signature
from ..codegen.entries.result import (
    ResultSpec,
    arrays_and_scalars,
    is_fresh,
    leaves_of,
    slot_count,
    slots_of,
    stored_leaves,
)
from ..codegen.entries.tangents import tangents_of
from ..codegen.entries.writer import LLVM_TYPE
from ..codegen.kernel_memory import KernelMemory
from ..codegen.kernel_module import KernelText
from ..codegen.llvm_module import Target, assembly, optimize_and_emit, optimized_ir
from ..codegen.module_to_llvm import kernel_text
from ..codegen.scalar_text import float_text
from ..collection import without_collection
from ..compilation import Compilation, last_function, with_time
from ..deep_stack import with_deep_stack
from ..derivative.hessian_products import shadow_arguments
from ..diagnostics import CompileError, line_of_function, refusal
from ..frontend.data.boundary import NeedsStructure
from ..pass_hooks import within
from ..pipeline import own_faults, stages_for
from ..print_ir import module_text
from ..request import Options, Request
from ..rules.calls import listed
from ..sizes.work_size import WorkSize, measure_work
from ..stages.machine_code import subject_of
from . import python_entry
from .c_entry import MOST_FLAGS, KernelCall, Stored, entry_text, size_text
from .c_names import is_the_librarys
from .exports import Export, span_in
from .levels import Level, Together
from .owned_shadows import OwnShadows
from .signature import (
    C_TYPE,
    ArrayParameter,
    CFunction,
    OutParameter,
    Parameter,
    ScalarParameter,
    SizeParameter,
    c_name,
    c_names,
)
from .statuses import Statuses

MODES = {
    "primal": "primal",
    "grad": "gradient",
    "value_and_grad": "gradient",
    "vjp": "pullback",
    "jvp": "tangent",
    "hvp": "product",
}
"""What the pipeline calls each mode."""


GROUPS = ("arguments", "cotangents", "tangents", "results", "gradients")
"""The order of C parameters: what is the function's own, what comes in beside it, what goes out."""


class Readable(Protocol):
    """A place outside of the function."""

    def read(self) -> Any: ...


Tree = Any
"""What a function returns: None, the name of a result, the position of an argument that is returned itself
(of tangents: of the argument whose tangent it is), or a tuple of trees."""
Returned = tuple[bool, tuple[str, ...]]
"""Of a result that is an array: whether it is memory that the function makes, and which arrays it may be."""


@dataclass(frozen=True)
class Either:
    """A number among the results that is Python's where a flag says so (`runtime.library_entries`)."""

    name: str
    type: str
    flag: int


@dataclass(frozen=True)
class Face:
    """An exported function as Python calls it."""

    export: Export
    function: CFunction
    roles: dict[str, tuple[str, int]]
    """Of each C parameter its group (`GROUPS`), and in derivatives the position that it belongs to."""
    trees: dict[str, Tree]
    """The result at "", its tangent at "_dot"."""
    sites: list[tuple[int, dict[str, Any]]]
    """What may be raised, with the status."""
    arrays: dict[str, Returned]


@dataclass
class Library:
    """The exports of one library, compiled."""

    name: str
    options: Options
    functions: list[CFunction]
    llvm: str
    """The text of the module before LLVM has optimized it."""
    mlir: str
    """The IR of all kernels after `optimize`."""
    statuses: Statuses
    symbols: dict[str, str]
    """External symbols, and where each comes from: "libm", "libmvec", "blas" or "libc"."""
    faces: list[Face]
    """What a Python package has to know of each function."""
    levels: tuple[Level, ...] = ()
    """The whole again for each of several CPUs, of which one is chosen at load."""
    for_python: bool = False
    """Whether it has the entries that a package calls."""

    @property
    def promised(self) -> list[str]:
        """The symbols that the library has for others."""
        sized = [f for f in self.functions if f.memory is KernelMemory.AREA]
        return sorted(
            [f"{self.name}_strerror"]
            + [f.symbol for f in self.functions]
            + [f"{f.symbol}_worksize" for f in sized]
        )

    @property
    def uses_blas(self) -> bool:
        return "blas" in self.symbols.values()

    @property
    def uses_libmvec(self) -> bool:
        return "libmvec" in self.symbols.values()

    @property
    def triple(self) -> str:
        """LLVM's triple of the machine and system; "" are ours."""
        return self.options.target.triple if self.options.target else ""

    def object_code(self, more: str = "") -> bytes:
        """The object; `more` is LLVM text to be part of it."""
        if self.levels:
            return self.together(more).object_code()
        text = linked([self.llvm, more]) if more else self.llvm
        return optimize_and_emit(text, self.options.opt, self.options.target)

    def optimized_llvm(self) -> str:
        if self.levels:
            return self.together().llvm
        return optimized_ir(self.llvm, self.options.opt, self.options.target)

    def assembly(self) -> str:
        if self.levels:
            return self.together().assembly()
        return assembly(self.llvm, self.options.opt, self.options.target)

    def together(self, more: str = "") -> Together:
        """The code for all levels."""
        chosen = [f.symbol for f in self.functions]
        chosen += [python_entry.entry_name(symbol) for symbol in chosen] if self.for_python else []
        lowest, *others = self.levels
        if more:
            lowest = replace(lowest, llvm=linked([lowest.llvm, more]))
        return Together.of([lowest, *others], chosen, self.options.opt)


def compile_exports(
    name: str,
    exports: Sequence[Export],
    options: Options,
    done: Callable[[Export, Compilation], None] = lambda export, c: None,
    levels: Sequence[Target | None] = (),
    *,
    for_python: bool = False,
) -> Library:
    """The library of this name; CompileError where a function is outside of what C can call.

    `done` is told of each export that is compiled. With `levels`, code is made for these CPUs, too, and the
    best for the CPU at hand is chosen when the library is loaded. A library `for_python` has the entries that
    a package calls (`python_entry`) besides.
    """
    statuses, parts = Statuses(), list[Unit]()
    for export in exports:
        if is_the_librarys(export.symbol, name):
            message = f"{export.symbol!r} is a name that the header of {name} gives to something of its own"
            way_out = "rename the function, or put something before all names: --prefix NAME"
            raise CompileError(line_of_function(export.function), message, way_out)
        own = options_of(export, options)
        parts.append(Unit(export, own, statuses, (own.target, *levels), for_python).compiled())
        done(export, parts[-1].c)
    lowest, *others = (linked([part.texts[k] for part in parts]) for k in range(1 + len(levels)))
    kernels = [kernel for part in parts for kernel in part.kernels]
    symbols = {s: origin for kernel in kernels for s, origin in kernel.symbols.items()}
    whole = linked([lowest, statuses.function(name)])
    targets = cast(Sequence[Target], (options.target, *levels))
    return Library(
        name,
        options,
        [part.function for part in parts],
        whole,
        "// -----\n".join(part.mlir for part in parts),
        statuses,
        dict(sorted(renamed(symbols).items())),
        [part.face() for part in parts],
        tuple(map(Level, targets, [whole, *others])) if levels else (),
        for_python,
    )


def options_of(export: Export, options: Options) -> Options:
    """What is chosen for the library, and for the function."""
    fastmath = options.fastmath or export.options.get("fastmath", False)
    return replace(options, **{**export.options, "fastmath": fastmath, "memory": None})


@with_deep_stack
def run_stages(request: Request, unit: Unit) -> None:
    """Take one export as far as LLVM text."""
    c = unit.c
    with without_collection(), own_faults(request):
        for stage in stages_for(request):
            if stage.name == "llvm":
                break
            try:
                with with_time(c, stage.name), within(f"the stage {stage.name}"):
                    stage.run(c)
            except NeedsStructure:
                raise unit.refuse(
                    "the function returns more than numbers and arrays (text, None in some cases, an object, "
                    "a dict, a list of arrays)",
                    "return the numbers and arrays in it, or a tuple of them",
                ) from None
            if stage.name == "frontend":
                unit.check_frontend()
            if stage.name == "adjoint":
                unit.own_shadows()
        with with_time(c, "llvm"):
            unit.write()


def linked(modules: Sequence[str]) -> str:
    """One module: internal symbols of one name get numbers."""
    context = llvm.create_context()
    first, *others = (llvm.parse_assembly(text, context) for text in modules)
    for other in others:
        first.link_in(other)
    return str(first)


def renamed(symbols: dict[str, str]) -> dict[str, str]:
    """External symbols as linkers know them."""
    return {blas_symbol(s) if origin == "blas" else s: origin for s, origin in symbols.items()}


def blas_symbol(symbol: str) -> str:
    """Fortran's name of a routine: `dgemm_` of `mutad_dgemm`."""
    return f"{symbol.removeprefix('mutad_')}_"


LETTERS = {"gemm": 2, "gemv": 1, "ger": 0, "trsm": 4, "syrk": 2}
"""How many of a routine's arguments are letters, each a string of one."""


def with_blas(declarations: Sequence[str], symbols: dict[str, str]) -> Iterator[str]:
    """Calls of BLAS by the standard symbols, with the lengths of strings behind, as Fortran has them."""
    for line in declarations:
        found = re.match(r"declare void @(mutad_[sd](\w+))\((.*)\)", line)
        if found is None or symbols.get(found[1]) != "blas":
            yield line
            continue
        count, lengths = len(found[3].split(", ")), LETTERS[found[2]]
        given = ", ".join(f"ptr %{k}" for k in range(count))
        more, ones = ", i64" * lengths, ", i64 1" * lengths
        yield f"declare void @{blas_symbol(found[1])}({found[3]}{more})"
        yield f"define internal void @{found[1]}({given}) alwaysinline nounwind {{"
        yield f"  call void @{blas_symbol(found[1])}({given}{ones})\n  ret void\n}}"


def shape_of_key(key: Key) -> str:
    """What C sees of a key: "double", "double[2]", "(double, void)"."""
    match key:
        case ArrayKey():
            return f"{C_TYPE[key.dtype]}[{key.rank}]"
        case ScalarKey():
            return C_TYPE.get(key.type, "void")
        case TupleKey(items):
            return f"({', '.join(map(shape_of_key, items))})"


def shape_of_result(spec: ResultSpec, arguments: Sequence[ArrayKey | ScalarKey]) -> str:
    """The same of a result."""
    match spec["kind"]:
        case "tuple":
            return f"({', '.join(shape_of_result(s, arguments) for s in spec['items'])})"
        case "array":
            return f"{C_TYPE[spec['dtype']]}[{spec['rank']}]"
        case "argument":
            return shape_of_key(arguments[spec["leaf"]])
        case "scalar":
            return C_TYPE[spec["type"]]
        case _:
            return "void"


def refuse_python(module: ModuleOp) -> None:
    """CompileError for what only a Python process can do."""
    for op in module.walk():
        if isinstance(op, array.PrintOp):
            raise refusal(
                op, "print is not there in a library", "leave it out, or return the value"
            )
        if isinstance(op, foreign.CallOp):
            name = op.origin.data.partition(":")[2] or op.callee.data
            shown = name if op.convention.data == "c" else "a Python function"
            raise refusal(
                op,
                f"this calls {shown}, which is not compiled: a library has no Python",
                "write it with NumPy's functions, or pass what it returns as an argument",
            )


@dataclass
class Unit:
    """One export on its way."""

    export: Export
    options: Options
    statuses: Statuses
    targets: Sequence[Target | None]
    for_python: bool = False
    texts: list[str] = field(default_factory=list[str])
    """For each target."""
    mlir: str = ""
    kernels: list[KernelText] = field(default_factory=list[KernelText])
    function: CFunction = field(init=False)
    size: WorkSize = field(init=False)
    like: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    order: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """Of each parameter its group, and its rank in that."""
    roles: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """Of each parameter its group, and the position of the parameter that it belongs to."""
    trees: dict[str, Tree] = field(default_factory=dict[str, Tree])
    among: dict[str, Returned] = field(default_factory=dict[str, Returned])
    before: list[str] = field(default_factory=list[str])
    """Definitions of constants."""

    # What Python sees.

    def face(self) -> Face:
        """What a package has to know."""
        listed = [self.statuses.raised(site) for site in self.kernels[0].sites]
        sites = list(zip(listed, self.kernels[0].sites, strict=True))
        return Face(self.export, self.function, self.roles, self.trees, sites, self.among)

    # Stages.

    def compiled(self) -> Unit:
        """All of it."""
        e = self.export
        self.inputs = [*self.baked_inputs()]
        keys = (*(p.key for p in e.parameters), *(key for key, _ in self.inputs))
        mode, single = MODES[e.mode], len(e.wrt) == 1
        request = Request(e.function, keys, (), mode, e.wrt, single, self.options, e.captured)
        self.c = Compilation(request)
        run_stages(request, self)
        return self

    @property
    def names(self) -> list[str]:
        """Of the parameters, then of what is baked in."""
        e = self.export
        own = c_names([p.name for p in e.parameters], e.symbol.removesuffix(f"_{e.mode}"))
        return [*own, *(f"@{e.symbol}_outside_{k}" for k in range(len(self.inputs)))]

    @property
    def keys(self) -> list[ArrayKey | ScalarKey]:
        """Of the IR arguments."""
        return [leaf for text in self.c.request.arguments for leaf in leaves(parse(text))]

    def operand_keys(self, call: KernelCall) -> list[ArrayKey | ScalarKey]:
        """Of the kernel's operands."""
        own = dict(zip(call.leaves, self.keys, strict=True))
        for p in self.function.parameters:
            if isinstance(p, ArrayParameter):
                own[p.name] = p.key
            elif isinstance(p, ScalarParameter):
                own[p.name] = ScalarKey(p.type)
        nothing = ScalarKey("None")
        return [nothing if kind == "text" else own[name] for kind, name in call.operands]

    def refuse(self, message: str, way_out: str) -> CompileError:
        return CompileError(span_in(self.export.function), message, way_out)

    def baked_inputs(self) -> Iterator[tuple[str, Leaf]]:
        """Of all that is read from outside the key, and what the kernel gets for it: the value of now."""
        e = self.export
        if e.captured is None:
            return
        for place, name, text in zip(e.captured.inputs, e.captured.names, e.inputs, strict=True):
            yield self.baked(cast(Readable, place).read(), name, parse(text))

    def baked(self, value: Any, name: str, key: Key) -> tuple[str, Leaf]:
        """An input as a constant."""
        if isinstance(key, ScalarKey) and key.type in LLVM_TYPE and key.type != "rng":
            type_ = LLVM_TYPE[key.type]
            floats = ("float", "double")
            shown = float_text(float(value), type_) if type_ in floats else str(int(value))
            return key.type, ScalarValue(key, shown)
        if not isinstance(key, ArrayKey):
            raise self.refuse(
                f"{name}, which the function reads from outside, is no number and no array",
                f"pass {name} as an argument, or what is computed of it",
            )
        value = np.ascontiguousarray(value).reshape(value.shape)
        key = replace(key, layout="C", read_only=False)
        symbol = f"{self.export.symbol}_outside_{len(self.before)}"
        shown = "".join(f"\\{byte:02X}" for byte in value.tobytes())
        self.before.append(
            f'@{symbol} = internal constant [{value.nbytes} x i8] c"{shown}", align 64'
        )
        steps = [str(s // value.itemsize) for s in value.strides]
        leaf = ArrayValue(key, "", f"@{symbol}", tuple(map(str, value.shape)), tuple(steps))
        return f"{key.dtype}[{','.join(key.extents)}]C", leaf

    def check_frontend(self) -> None:
        """What the frontend made is what C can call."""
        built, e = self.c.built, self.export
        refuse_python(self.c.module)
        for spec in arrays_and_scalars(built.results):
            if "list" in spec:
                raise self.refuse("the function returns a list", "return an array: `np.array(x)`")
        if built.records is not None:
            raise self.refuse(
                "the function returns, or changes, an object", "return the numbers and arrays in it"
            )
        for position, parameter in enumerate(e.parameters):
            key = parse(parameter.key)
            if not isinstance(key, ArrayKey) and (
                not isinstance(key, ScalarKey) or key.type not in LLVM_TYPE or key.type == "rng"
            ):
                raise self.refuse(
                    f"the parameter {parameter.name} is no number and no array ({parameter.key})",
                    "pass what is in it as arguments of their own",
                )
            if isinstance(key, ArrayKey) and key.read_only and position in built.written:
                raise self.refuse(
                    f"the function stores to {parameter.name}, which is read-only", "copy it first"
                )
        for position in built.written:
            if position >= len(e.parameters):
                assert e.captured is not None
                name = e.captured.names[position - len(e.parameters)]
                raise self.refuse(
                    f"the function stores to {name}, which is outside of it: a library has no globals",
                    f"pass {name} as an argument",
                )
        is_float = built.results.get("type") in ("py_float", "f32", "f64")
        if e.mode in ("grad", "value_and_grad", "hvp") and not is_float:
            raise self.refuse(
                f"{e.mode} is of a function that returns one float",
                "return the float alone, or export the vjp or jvp",
            )
        self.check_promise()

    def check_promise(self) -> None:
        """The function returns what its signature says."""
        promised, made = self.export.result, shape_of_result(self.c.built.results, self.keys)
        if promised is not None and shape_of_key(parse(promised)) != made:
            shown = shape_of_key(parse(promised))
            raise CompileError(
                span_in(self.export.function, "return"),
                f"the function returns {made}, and its signature promises {shown}",
                "correct the signature, or what is returned",
            )

    def own_shadows(self) -> None:
        """Which shadows and tangents come from the caller, and which are the function's own."""
        e, function = self.export, last_function(self.c.module)
        if e.mode in ("vjp", "jvp", "primal"):
            return
        positions = self.gradient_of(function).shadows
        filled = listed(function, "filled") if "filled" in function.attributes else []
        function.attributes.pop("filled", None)  # what is filled stays so: nobody hands in zeros
        zeroed, inner, copied = list[int](), list[int](), list[int]()
        if e.mode != "hvp":
            for k, position in zip(shadow_arguments(function), positions, strict=True):
                (zeroed if position in e.wrt else inner).append(k)
        else:
            inner += shadow_arguments(function)
            moving = self.tangents(function).moving
            first = len(function.body.block.args) - len(moving)
            for k, (of, position) in enumerate(moving, first):
                if of == "shadow":
                    (zeroed if position in e.wrt else inner).append(k)
                elif position not in e.wrt:
                    inner.append(k)
                elif position in self.c.built.written:
                    copied.append(k)
        OwnShadows(function).apply(zeroed, inner, copied, filled)

    def gradient_of(self, function: func.FuncOp) -> GradientSignature:
        if self.export.mode in ("primal", "jvp"):
            return GradientSignature((), (), ())
        return gradient_signature(function, self.c.request.arguments)

    def tangents(self, function: func.FuncOp) -> Tangents:
        if self.export.mode not in ("jvp", "hvp"):
            return Tangents()
        request, built = self.c.request, self.c.built
        signature = None if self.export.mode == "jvp" else self.gradient_of(function)
        return tangents_of(function, request.arguments, built.results, signature, 1)

    def write(self) -> None:
        """The text of the export's module: kernel, entry, constants."""
        e = self.export
        memory = self.write_kernel()
        self.mlir = module_text(self.c.module, True)
        raised = f"{e.symbol}_statuses"
        listed = [self.statuses.raised(site) for site in self.kernels[0].sites] or [0]
        numbers = ", ".join(f"i32 {n}" for n in listed)
        self.before.append(f"@{raised} = internal constant [{len(listed)} x i32] [{numbers}]")
        span = span_in(e.function)
        code = e.function.__code__
        self.function = CFunction(
            e.symbol,
            e.mode,
            tuple(self.names[p] for p in e.wrt),
            f"{e.function.__name__}, line {span.line if span else code.co_firstlineno}",
            memory,
        )
        call = KernelCall(f"{e.symbol}_kernel", raised=raised, assumed=self.c.built.assumed)
        call.lines = self.kernels[0].entry
        call.recursive = bool(activation.calls(self.c.module))
        self.describe(call)
        self.size_parameters(call)
        entry = entry_text(self.function, call, self.statuses, self.like)
        if self.for_python:
            watched = f"{e.symbol}_watched"
            entry += entry_text(self.function, call, self.statuses, self.like, watched)
            entry += python_entry.frame_text(self.function, watched)
        if memory is KernelMemory.AREA:
            entry += f"\n{size_text(self.function, call, self.operand_keys(call))}"
        for kernel in self.kernels:
            declared = with_blas(kernel.declarations, kernel.symbols)
            self.texts.append("\n".join([*declared, *self.before, kernel.text, entry]))

    def write_kernel(self) -> KernelMemory:
        """The kernel, for each target; with an area as memory where its size is known."""
        self.size = measure_work(last_function(self.c.module), self.c.built.assumed)
        memory = KernelMemory.AREA if self.size.function else KernelMemory.ALLOCATOR
        name = f"{self.export.symbol}_kernel"
        subject = subject_of(self.c.request) if self.options.debug else None
        for target in self.targets:
            options = replace(self.options, target=target)
            self.kernels.append(kernel_text(self.c.module, options, name, memory, subject))
        return memory

    def size_parameters(self, call: KernelCall) -> None:
        """What `_worksize` takes: the extents and integers that the size depends on, each name once."""
        f = self.function
        f.unknown, f.is_bound = str(self.size.unknown or ""), self.size.bound is not None
        extents = {p.name: p.extents for p in f.arrays()}
        taken = {p.name for p in f.parameters if isinstance(p, ScalarParameter)}
        for read in self.size.reads:
            kind, name = call.operands[read.argument]
            if kind == "text" or name in call.baked:
                continue
            if read.axis is None:
                f.sizes.append(SizeParameter(name, name, None))
                continue
            wanted = extents[name][read.axis]
            shown = c_name(wanted) if isinstance(wanted, str) else f"{name}_{read.axis}"
            shown = f"{shown}_extent" if shown in taken else shown
            if not isinstance(wanted, int) and shown not in {s.name for s in f.sizes}:
                f.sizes.append(SizeParameter(shown, name, read.axis))

    # What the kernel takes and returns, and the C parameters for it.

    def add(self, parameter: Parameter, group: str, position: int = 0) -> None:
        """A further C parameter: in the order of `GROUPS`, and of `wrt` and parameters within one."""
        wrt = self.export.wrt
        self.roles[parameter.name] = group, position
        rank = wrt.index(position) if position in wrt else len(wrt) + position
        self.order[parameter.name] = GROUPS.index(group), rank
        self.function.parameters.append(parameter)

    def describe(self, call: KernelCall) -> None:
        function = last_function(self.c.module)
        signature, tangents = self.gradient_of(function), self.tangents(function)
        self.primal_arguments(call, signature, tangents)
        self.shadow_parameters(call, signature)
        self.cotangent_parameters(call, signature)
        self.tangent_parameters(call, tangents)
        self.result_parameters(call, signature, tangents)
        self.function.parameters.sort(key=lambda p: self.order[p.name])

    def key(self, position: int) -> ArrayKey | ScalarKey:
        key = parse(self.c.request.arguments[position])
        assert isinstance(key, ArrayKey | ScalarKey)
        return key

    def primal_arguments(
        self, call: KernelCall, signature: GradientSignature, tangents: Tangents
    ) -> None:
        written = set(self.c.built.written)
        active = {*self.export.wrt, *signature.shadows, *(p for _, p in tangents.moving)}
        for position, parameter in enumerate(self.export.parameters):
            key = self.key(position)
            if isinstance(key, ArrayKey):
                changed = position in written
                watched = changed or position in active
                comment = "read and written" if changed else "read"
                extents = parameter.extents or (None,) * key.rank
                made = ArrayParameter(
                    self.names[position], key, extents, changed, watched, False, comment
                )
            else:
                made = ScalarParameter(self.names[position], key.type, "")
            self.add(made, "arguments")
        for position, name in enumerate(self.names):
            if position >= len(self.export.parameters):
                call.baked[name] = self.inputs[position - len(self.export.parameters)][1]
            if list(leaves(parse(self.c.request.arguments[position]))):
                call.operands.append(("parameter", name))
                call.leaves.append(name)

    def beside(self, position: int, suffix: str, comment: str, *, written: bool = True) -> str:
        """A further array parameter of the shape of one; its name."""
        p, key = self.export.parameters[position], self.key(position)
        assert isinstance(key, ArrayKey)
        name = f"{self.names[position]}_{suffix}"
        extents = p.extents or (None,) * key.rank
        made = ArrayParameter(name, key, extents, written, True, False, comment)
        self.add(made, "tangents" if suffix == "dot" else "gradients", position)
        self.like.append((name, self.names[position]))
        return name

    def shadow_parameters(self, call: KernelCall, signature: GradientSignature) -> None:
        e = self.export
        for position in signature.shadows:
            if e.mode == "vjp":
                comment = (
                    f"in: the cotangent of the final {self.names[position]} (zeros if it has none);"
                    " out: that of the initial one is added to it"
                    if position not in self.c.built.written
                    else f"in: the cotangent of the final {self.names[position]};"
                    " out: that of the initial one"
                )
                call.operands.append(("parameter", self.beside(position, "bar", comment)))
            elif e.mode != "hvp" and position in e.wrt:
                comment = f"out: the gradient with respect to {self.names[position]}, overwritten"
                call.operands.append(("parameter", self.beside(position, "grad", comment)))
            else:
                call.operands.append(("like", self.names[position]))

    def cotangent_parameters(self, call: KernelCall, signature: GradientSignature) -> None:
        """One for each float result that the adjoint starts from."""
        results = list(leaves_of(self.c.built.results))
        names = self.shown_names(self.c.built.results, "result")
        for k, leaf in enumerate(results):
            if k not in signature.cotangents:
                continue
            if self.export.mode != "vjp":
                type_ = LLVM_TYPE[leaf["type"]]
                call.operands.append(("text", f"{type_} 1.0"))
                continue
            name = f"{names[id(leaf)]}_bar"
            comment = f"the cotangent of {names[id(leaf)]}"
            if leaf["kind"] == "scalar":
                made = ScalarParameter(name, leaf["type"], comment)
            else:
                key = ArrayKey(leaf["dtype"], ("?",) * leaf["rank"], "S")
                any_shape = (None,) * leaf["rank"]
                comment += ", or NULL"
                made = ArrayParameter(name, key, any_shape, False, False, True, comment)
            self.add(made, "cotangents")
            call.operands.append(("parameter", name))

    def tangent_parameters(self, call: KernelCall, tangents: Tangents) -> None:
        e, taken = self.export, dict[int, str]()
        product = e.mode == "hvp"
        rows = {
            position: self.beside(
                position,
                "hvp",
                f"out: the Hessian's product, rows of {self.names[position]}, overwritten",
            )
            for position in (e.wrt if product else ())
            if isinstance(self.key(position), ArrayKey)
        }
        moving = {position for of, position in tangents.moving if of == "shadow"}
        call.zeroed += [name for position, name in rows.items() if position not in moving]
        for of, position in tangents.moving:
            name, key = self.names[position], self.key(position)
            if of == "shadow":
                if position in e.wrt:
                    call.operands.append(("parameter", rows[position]))
                else:
                    call.operands.append(("like", name))
            elif product and position not in e.wrt:
                zero = f"{LLVM_TYPE[key.type]} 0.0" if isinstance(key, ScalarKey) else ""
                call.operands.append(("text", zero) if zero else ("like", name))
            else:
                taken[position] = self.tangent_parameter(position)
                call.operands.append(("parameter", taken[position]))
        for position in e.wrt if e.mode in ("jvp", "hvp") else ():
            if position not in taken:
                self.tangent_parameter(position)

    def tangent_parameter(self, position: int) -> str:
        """The tangent of an argument; its name."""
        name, key = self.names[position], self.key(position)
        if isinstance(key, ScalarKey):
            comment = "the direction" if self.export.mode == "hvp" else f"the tangent of {name}"
            made = ScalarParameter(f"{name}_dot", key.type, comment)
            self.add(made, "tangents", position)
            return f"{name}_dot"
        if self.export.mode == "hvp":
            return self.beside(position, "dot", "the direction", written=False)
        if position in self.c.built.written:
            comment = f"in: the tangent of the initial {name}; out: that of the final one"
            return self.beside(position, "dot", comment)
        return self.beside(position, "dot", f"the tangent of {name}", written=False)

    # Results.

    def result_parameters(
        self, call: KernelCall, signature: GradientSignature, tangents: Tangents
    ) -> None:
        e, spec = self.export, self.c.built.results
        shows_value = e.mode in ("primal", "value_and_grad", "vjp", "jvp")
        self.results_of(call, spec, 0, "", wanted=shows_value)
        slot = slot_count(spec)
        suffix = "bar" if e.mode == "vjp" else "grad"
        if e.mode in ("grad", "value_and_grad", "vjp"):
            slot = self.scalar_gradients(call, signature, slot, suffix)
        elif e.mode == "jvp":
            (dots,) = tangents.more
            self.results_of(call, dots, slot, "_dot", wanted=True)
            slot += slot_count(dots)
        elif e.mode == "hvp":
            bars, value, dots = tangents.more
            slot += slot_count(bars) + slot_count(value)
            slot = self.scalar_products(call, signature, dots, slot)
        call.slots = slot

    def scalar_gradients(
        self, call: KernelCall, signature: GradientSignature, slot: int, suffix: str
    ) -> int:
        """The gradients of numbers, in the order of `wrt`; what does not matter is 0."""
        slots = {p: slot + k for k, p in enumerate(signature.scalars)}
        for position in self.export.wrt:
            key = self.key(position)
            if isinstance(key, ScalarKey):
                name = self.names[position]
                out = OutParameter(
                    f"{name}_{suffix}", key.type, None,
                    f"out: the gradient with respect to {name}, or NULL",
                )  # fmt: skip
                self.place(call, out, slots.get(position), "gradients", position)
        return slot + len(signature.scalars)

    def scalar_products(
        self, call: KernelCall, signature: GradientSignature, dots: ResultSpec, slot: int
    ) -> int:
        slots: dict[int, int] = {}
        for position, spec in zip(signature.scalars, dots["items"], strict=False):
            if spec["kind"] == "scalar":
                slots[position] = slot
                slot += 1
        for position in self.export.wrt:
            key = self.key(position)
            if isinstance(key, ScalarKey):
                name = self.names[position]
                out = OutParameter(
                    f"{name}_hvp",
                    key.type,
                    None,
                    f"out: the Hessian's product, row of {name}, or NULL",
                )
                self.place(call, out, slots.get(position), "gradients", position)
        return slot

    def place(
        self,
        call: KernelCall,
        out: OutParameter,
        slot: int | None,
        group: str = "results",
        position: int = 0,
    ) -> None:
        """A place for a number or an array that the kernel stores at `slot`; for zero without one."""
        self.add(out, group, position)
        if slot is None:
            call.zeros.append(out)
        else:
            call.stored.append(Stored(out, slot))

    def results_of(
        self, call: KernelCall, spec: ResultSpec, slot: int, suffix: str, *, wanted: bool
    ) -> None:
        """Parameters for all results that the kernel stores from `slot` on, if they are `wanted`."""
        names = self.shown_names(spec, f"result{suffix}")
        if wanted:
            self.trees[suffix] = self.tree(call, spec, names)
        slots: dict[int, int] = {}
        for leaf in stored_leaves(spec):
            slots[id(leaf)] = slot
            if leaf["kind"] == "flag":
                call.flags.append(slot)
            slot += slots_of(leaf)
        for leaf in arrays_and_scalars(spec) if wanted else ():
            name = names[id(leaf)]
            match leaf["kind"]:
                case "scalar":
                    out = OutParameter(name, leaf["type"], None, "out, or NULL")
                    self.place(call, out, slots[id(leaf)])
                case "argument":
                    self.returned_argument(call, leaf, name)
                case _:
                    self.function.has_arrays = True
                    self.refuse_views(leaf, spec)
                    comment = "out: filled in, its data lies in memory of the call; or NULL"
                    out = OutParameter(name, leaf["dtype"], leaf["rank"], comment)
                    self.place(call, out, slots[id(leaf)])

    def tree(self, call: KernelCall, spec: ResultSpec, names: dict[int, str]) -> Tree:
        """What is returned, as a package builds it."""
        match spec["kind"]:
            case "none":
                return None
            case "tuple":
                return tuple(self.tree(call, item, names) for item in spec["items"])
            case "argument":
                position = self.position_of(call, spec["leaf"])
                return names[id(spec)] if position is None else position
            case "scalar" if spec.get("flag", MOST_FLAGS) < MOST_FLAGS:
                return Either(names[id(spec)], spec["python"], spec["flag"])
            case "array":
                found = [self.position_of(call, leaf) for leaf in spec.get("among", ())]
                inside = [k for k in found if k is not None]
                fresh = is_fresh(spec) and len(inside) == len(found)
                dot = "_dot" if names[id(spec)].startswith("result_dot") else ""
                self.among[names[id(spec)]] = fresh, tuple(f"{self.names[k]}{dot}" for k in inside)
            case _:
                pass
        return names[id(spec)]

    def position_of(self, call: KernelCall, leaf: int) -> int | None:
        """The position of an array argument, or of that of which it is the tangent; None of a constant."""
        if leaf < len(call.leaves):
            position = self.names.index(call.leaves[leaf])
        else:
            moving = self.tangents(last_function(self.c.module)).moving
            shadows = self.gradient_of(last_function(self.c.module)).shadows
            position = moving[leaf - len(call.leaves) - len(shadows)][1]
        return position if position < len(self.export.parameters) else None

    @staticmethod
    def shown_names(spec: ResultSpec, base: str) -> dict[int, str]:
        """What C calls each result, by the identity of its description: `result`, `result_0_1`."""
        found: dict[int, str] = {}

        def visit(one: ResultSpec, name: str) -> None:
            if one["kind"] == "tuple":
                for k, item in enumerate(one["items"]):
                    visit(item, f"{name}_{k}")
            else:
                found[id(one)] = name

        visit(spec, base)
        return found

    def returned_argument(self, call: KernelCall, leaf: ResultSpec, name: str) -> None:
        """An argument that is returned itself: the struct that came in (tangents: has its own parameter)."""
        if leaf["leaf"] >= len(call.leaves):
            return
        argument = call.leaves[leaf["leaf"]]
        key = self.key(self.names.index(argument))
        assert isinstance(key, ArrayKey)
        out = OutParameter(name, key.dtype, key.rank, f"out: {argument} itself, or NULL")
        self.add(out, "results")
        call.stored.append(Stored(out, 0, argument))

    def refuse_views(self, leaf: ResultSpec, spec: ResultSpec) -> None:
        """Memory that nobody could release: views into it are returned, and not it itself."""
        if self.function.memory is KernelMemory.ALLOCATOR and (
            spec.get("owners") or "owner" in leaf
        ):
            raise self.refuse(
                "the function returns a view of an array that it has made",
                "return a copy: `return x.copy()`",
            )
