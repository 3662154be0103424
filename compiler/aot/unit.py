"""One export on its way: through the stages as a call's request, then to an entry that C calls."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, cast

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
)
from ..codegen.entries.tangents import tangents_of
from ..codegen.entries.writer import LLVM_TYPE
from ..codegen.kernel_memory import KernelMemory
from ..codegen.kernel_module import KernelText
from ..codegen.llvm_module import Target
from ..codegen.module_to_llvm import kernel_text
from ..codegen.scalar_text import float_text
from ..collection import without_collection
from ..compilation import Compilation, last_function, with_time
from ..deep_stack import with_deep_stack
from ..derivative.hessian_products import shadow_arguments
from ..diagnostics import CompileError, refusal
from ..frontend.data.boundary import NeedsStructure
from ..pass_hooks import within
from ..pipeline import Stage, own_faults, stages_for
from ..print_ir import module_text
from ..request import Options, Request
from ..rules.calls import listed
from ..sizes.work_size import WorkSize, measure_work
from ..stages.machine_code import subject_of
from . import python_entry
from .blas_symbols import with_blas
from .c_entry import EntryText, KernelCall, entry_text, size_text
from .exports import Export, span_in
from .owned_shadows import OwnShadows
from .package_functions import Face
from .parameters import Parameters
from .signature import (
    C_TYPE,
    ArrayParameter,
    CFunction,
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


class Readable(Protocol):
    """A place outside of the function."""

    def read(self) -> Any: ...


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
                    unit.run(stage)
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
    reshapes: bool = False
    """Whether the function sees an array in another shape, which asks how its dimensions lie."""
    function: CFunction = field(init=False)
    parameters: Parameters = field(init=False)
    size: WorkSize = field(init=False)
    before: list[str] = field(default_factory=list[str])
    """Definitions of constants."""

    @property
    def writer(self) -> Callable[[Statuses, str], EntryText]:
        """What writes the entry."""
        return EntryText

    def run(self, stage: Stage) -> None:
        """One stage of the compiler."""
        stage.run(self.c)

    # What Python sees.

    def face(self) -> Face:
        """What a package has to know."""
        listed = [self.statuses.raised(site) for site in self.kernels[0].sites]
        sites = list(zip(listed, self.kernels[0].sites, strict=True))
        p = self.parameters
        return Face(self.export, self.function, p.roles, p.trees, sites, p.among)

    # Stages.

    def compiled(self) -> Unit:
        """All of it."""
        e = self.export
        self.inputs = [*self.baked_inputs()]
        keys = (*(p.key for p in e.parameters), *(key for key, _ in self.inputs))
        mode, single = MODES[e.mode], len(e.wrt) == 1
        options = replace(self.options, library=True)
        request = Request(e.function, keys, (), mode, e.wrt, single, options, e.captured)
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
                f"{name}, which the function reads from outside, is neither a number nor an array",
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
        self.reshapes = any(isinstance(op, array.CollapseOp) for op in self.c.module.walk())
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
                    f"the parameter {parameter.name} is neither a number nor an array ({parameter.key})",
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
        function.attributes.pop(
            "filled", None
        )  # what is filled stays so: callers do not hand in zeros
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
        function = last_function(self.c.module)
        self.parameters = Parameters(
            e, self.c.request.arguments, self.names, self.inputs, self.c.built,
            self.gradient_of(function), self.tangents(function), self.function, call, self.reshapes,
        )  # fmt: skip
        self.parameters.describe()
        self.size_parameters(call)
        entry = entry_text(
            self.function, call, self.statuses, self.parameters.like, writer=self.writer
        )
        if self.for_python:
            watched = f"{e.symbol}_watched"
            entry += entry_text(self.function, call, self.statuses, self.parameters.like, watched)
            entry += python_entry.frame_text(self.function, watched)
        if self.function.sized:
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
