"""Every stage of the compiler, in order, with its reason. Read `STAGES` top to bottom.

A stage has a name that users type (`f.inspect("simplify")`, `MUTAD_DUMP=simplify,adjoint`) and takes
a `Compilation` one step further. Each pass of a stage runs alone as well: `mutad-opt -p <name>`.

Environment: `MUTAD_DUMP=stage[,stage]` writes what each named stage leaves, one file a stage and
function, to `MUTAD_DUMP_DIR` (else `./mutad-dump`); `MUTAD_DUMP=all` what every stage and pass leaves;
`MUTAD_TIME=1` prints seconds per stage.
"""

from __future__ import annotations

import os
import sys
from base64 import b64encode
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from time import perf_counter
from typing import TYPE_CHECKING, Any

from xdsl.context import Context
from xdsl.dialects import func
from xdsl.dialects.builtin import IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.passes import ModulePass

from ..dialects import activation, ad
from . import progress, remembered
from .analysis.effects import is_private
from .analysis.print_analyses import PASSES as PRINTED_ANALYSES
from .collection import without_collection
from .deep_stack import with_deep_stack
from .derivative.activation_pairs import activation_pairs
from .derivative.checkpoint_loops import CheckpointLoops
from .derivative.counting import counting_function
from .derivative.drop_guards import DropGuards
from .derivative.expand_derivatives import ExpandDerivatives, expand
from .derivative.hessian_products import KeepProduct, shadow_arguments
from .derivative.keep_tangents import KeepTangents
from .derivative.marks import watch
from .derivative.passes import Forward, PrintNeeded, PrintPlan, Reverse
from .derivative.reverse import activities_of, only_function
from .derivative.sanitize_derivatives import SanitizeDerivatives
from .derivative.symmetric import Symmetric
from .diagnostics import CompileError, CompilerFault, line_of_function, place_of
from .pass_hooks import Hook, after, hooked, what_failed, within
from .print_ir import module_text
from .rules.calls import private_functions
from .rules.routines import inline_rules
from .sizes.step_sizes import MeasureSteps, measure_saved, measure_steps, refuse_large
from .sizes.work_size import MeasureWork
from .transforms.assume_extents import AssumeExtents
from .transforms.assume_lengths import AssumeLengths
from .transforms.check_claims import CheckClaims
from .transforms.close_counters import CloseCounters
from .transforms.collect_products import CollectProducts
from .transforms.describe_calls import DescribeCalls
from .transforms.distribute_loops import DistributeLoops
from .transforms.drop_carried import DropCarried
from .transforms.drop_overwritten import DropOverwritten
from .transforms.drop_restored import DropRestored
from .transforms.eliminate_common import EliminateCommon
from .transforms.fold_constants import FoldConstants
from .transforms.forward_stores import ForwardStores
from .transforms.fuse_elementwise import FuseElementwise
from .transforms.fuse_rows import FuseRows
from .transforms.gather_adds import GatherAdds
from .transforms.hoist_allocs import HoistAllocs
from .transforms.hoist_branch_allocs import HoistBranchAllocs
from .transforms.hoist_checks import HoistChecks
from .transforms.hoist_invariants import HoistInvariants
from .transforms.hoist_raises import HoistRaises
from .transforms.leave_fills import LeaveFills
from .transforms.lift_choices import LiftChoices
from .transforms.localize_cells import LocalizeCells
from .transforms.move_conditions import MoveConditions
from .transforms.peel_boundaries import PeelBoundaries
from .transforms.promote_scalars import PromoteScalars
from .transforms.raise_adjoints import RaiseAdjoints
from .transforms.raise_loops import RaiseLoops
from .transforms.remove_dead import RemoveDead
from .transforms.reorder_loops import ReorderLoops
from .transforms.resolve_overlap import ResolveOverlap
from .transforms.reuse_allocs import ReuseAllocs
from .transforms.select_stores import SelectStores
from .transforms.select_values import SelectValues
from .transforms.settle_bounds import SettleBounds
from .transforms.split_maps import SplitMaps
from .transforms.store_first import StoreFirst
from .transforms.transpose_columns import TransposeColumns
from .transforms.unify_extents import UnifyExtents
from .transforms.unroll_and_jam import UnrollAndJam
from .transforms.vectorize_outer import VectorizeOuter
from .transforms.write_products import WriteProducts

# Frontend and code generator are imported where their stage runs: `mutad-opt` needs neither.
if TYPE_CHECKING:
    from .codegen.debug_info import Subject
    from .codegen.entry import GradientSignature
    from .codegen.entry_plan import Tangents
    from .codegen.llvm_module import Target
    from .codegen.loops_to_llvm import KernelText
    from .frontend.build import Built
    from .frontend.frames import Captured


JOINT = ("gradient", "pullback")
"""The modes that take a gradient in one call: into shadows that hold nothing before, or in the caller's."""

HESSIAN = ("hvp", "product")
"""The modes that take a gradient's tangent."""

TANGENT = ("tangent", "tangent-alone")
"""The modes that take tangents: with the primal's results, or without."""

WITHIN_BUDGETS = (*JOINT, *HESSIAN)
"""The modes whose functions run steps again where a budget is too small for what they save."""

RETRIED = (*JOINT, "vjp", *TANGENT, *HESSIAN)
"""The modes whose calls can be made anew, with guards."""

COUNTS = ("count", "count-split")
"""The modes that count what a gradient, or `vjp`, saves."""

EMULATED = "host"
"""The device whose kernels the CPU runs, in an order of threads that is shuffled."""

HOST_DRIVER = "emulated"
"""The device of the emulated driver, whose kernels are loaded as functions of the host."""

EVERYTHING = "all"
"""What `MUTAD_DUMP` calls all stages, and their passes."""


@dataclass(frozen=True)
class Options:
    """What the user may choose about one compilation; part of its cache key."""

    saves: str = "minimal"  # "minimal" | "fewest" | "all" | "forbid"
    fastmath: bool = False
    boundscheck: bool = True
    opt: int = 3
    cache: bool = True
    stretch: bool = False
    """Nothing is assumed of the arguments' extents (`frontend.library.shapes`); no user's choice."""
    debug: bool = False
    """Object code says which line of Python each instruction comes from."""
    parallel: bool = False
    """Independent iterations and large maps run in threads."""
    lanes: int = 1
    """How many tangents, or cotangents, go along at once; the call says it."""
    sanitize: str = ""
    """"grad": derivatives raise where they are not finite."""
    guards: bool = False
    """Gradients keep the guards of strong zeros; the runtime asks for it where they turn out to be needed."""
    memory: int | None = None
    """The bytes that a gradient may save; None: as many as it likes."""
    spill: str = ""
    """The folder where restart states go that memory has no room for; "" for none."""
    target: Target | None = None
    """The CPU that `MUTAD_TARGET_CPU` names; None is the one that we run on."""
    deterministic: bool = False
    """Kernels add nothing atomically."""
    device: str = ""
    """What runs kernels: "sm_90" and the like, `EMULATED`, or `HOST_DRIVER`; without any there are none."""
    launched: bool = False
    """Kernels are launched through a driver, on arrays of its device; no user's choice."""

    @property
    def plan(self) -> str:
        """What plans go by: bytes alone where these are scarce, or cost more than functions (on devices)."""
        bytes_alone = self.memory is not None or bool(self.device)
        return "fewest" if bytes_alone and self.saves == "minimal" else self.saves

    @property
    def driver(self) -> str:
        """Whose functions compiled host code calls; "" for none."""
        if not self.launched:
            return ""
        return self.device if self.device == HOST_DRIVER else "cuda"


@dataclass(frozen=True)
class Request:
    """One function to compile for one kind of arguments."""

    function: Callable[..., Any]
    arguments: tuple[str, ...]
    """One key for each parameter: `f64[?,?]C`, `py_int`, `(f64,None)`, ...; then for each input."""
    overlaps: tuple[tuple[int, int, str], ...] = ()
    """Parameter positions i < j that share memory: "same" (the identical view) or "overlap"."""
    mode: str = "primal"
    """"primal", "gradient", "pullback" (a gradient that is added to shadows), "vjp" (a gradient in two
    functions), "tangent", "tangent-alone" (without the primal's results), "hvp" (a gradient's tangent),
    "product" (of that the Hessian-vector product alone), "reverse-hvp" (a gradient's adjoint, in its place),
    "count" and "count-split" (the primal, which counts what the gradient or `vjp` saves)."""
    wrt: tuple[int, ...] = ()
    """gradient, vjp: parameter positions, in the order of the returned gradients."""
    single: bool = True
    """gradient: return one gradient rather than a tuple (wrt was one name)."""
    options: Options = field(default_factory=Options)
    captured: Captured | None = None
    """What the function reads from outside; its inputs have keys behind those of the parameters."""


@dataclass(frozen=True)
class Artifact:
    """What remains of a compilation: machine code, and what the runtime must know (JSON-able)."""

    object_code: bytes
    metadata: dict[str, Any]


class Compilation:
    """One request on its way through the stages."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.context = Context()
        self.stage = ""
        self.done: set[str] = set()
        """The stages that need not run: an earlier compilation did."""
        self.seconds: dict[tuple[str, str], float] = {}
        """By stage, then by what of it: the stage's own name, or a pass within it."""
        self.locations = False
        """Whether IR is shown with the places in the source: where a file is written."""
        self.inputs = () if request.captured is None else tuple(request.captured.names)
        """What the arguments behind the parameters are called."""
        self.hooks: list[Hook] = []
        """What is done around each pass, beside timing it."""
        self.built: Built
        self.module: ModuleOp
        self.gradient: GradientSignature | None = None
        self.tangents: Tangents | None = None
        self.kernel: KernelText
        self.convention: str
        """How the kernel's entries call it."""
        self.own_entries = ""
        """Entries that are in the kernel's module, where they have lines."""
        self.symbols: dict[str, str] = {}
        self.llvm: str
        self.object_code: bytes
        self.image: dict[str, Any] | None = None
        """The module that a driver loads, and the names of its kernels."""

    @property
    def active_arguments(self) -> list[int]:
        """The IR arguments that the gradient is taken with respect to."""
        from .argument_keys import parse
        from .frontend.signature import ir_types

        first, indices = 0, list[int]()
        for position, key in enumerate(self.request.arguments):
            count = len(ir_types(parse(key)))
            if position in self.request.wrt:
                indices += range(first, first + count)
            first += count
        return indices

    @property
    def final_arguments(self) -> list[int] | None:
        """vjp: the IR arguments whose final contents may have cotangents: parameters, and those returned."""
        from .argument_keys import ArrayKey, parse
        from .frontend.signature import ir_types

        if self.request.mode not in ("vjp", COUNTS[1]):
            return None
        first, indices = 0, [*returned_arguments(self.built.results)]
        for key in map(parse, self.request.arguments):
            if isinstance(key, ArrayKey):
                indices.append(first)
            first += len(ir_types(key))
        return sorted(set(indices))

    def run(self, passes: Sequence[ModulePass], module: ModuleOp | None = None) -> None:
        """Run passes, on the compilation's module if no other is given."""
        module = self.module if module is None else module
        for one in passes:
            with self.around(one, module):
                one.apply(self.context, module)

    def around(self, one: ModulePass, module: ModuleOp) -> AbstractContextManager[None]:
        """What is done around a pass."""
        timed = partial(timed_pass, self)
        return hooked((timed, *self.hooks), one, module)


# What the stages do. Each is a few lines; the work is in the packages.


def frontend(c: Compilation) -> None:
    from .frontend.build import build_function

    r = c.request
    gradient = r.mode != "primal"
    c.built = build_function(
        r.function, r.arguments, r.overlaps, r.options, r.captured, with_rules=gradient
    )
    c.module = c.built.module


def simplify(c: Compilation) -> None:
    device = bool(c.request.options.device)
    c.run([p for p in SIMPLIFY if not (device and isinstance(p, VectorizeOuter))])
    if c.request.options.parallel or c.request.options.device:
        c.run(FOR_THREADS)
    if c.request.options.device:
        from .kernels.find_extremes import FindExtremes
        from .kernels.save_bytes import SaveBytes

        c.run([FindExtremes(), SaveBytes()])


def adjoint(c: Compilation) -> None:
    r, active = c.request, tuple(c.active_arguments)
    finals = c.final_arguments
    if r.options.sanitize:
        watch(c.module.ops)
    reverse = Reverse(
        r.options.plan,
        active,
        finals is not None,
        None if finals is None else tuple(finals),
        r.mode in HESSIAN,
        cotangents_at_once(r),
        fresh=r.mode in (*HESSIAN, "gradient") and not r.options.memory,
    )
    match r.mode:
        case "tangent" | "tangent-alone":
            finals = tuple(returned_arguments(c.built.results))
            c.run([Forward(active, finals, r.options.lanes)])
            if r.mode == "tangent-alone":
                c.run([KeepTangents(), RemoveDead()])
        case "reverse-hvp":
            c.run([replace(reverse, adjoints=True), *for_threads(c, BEFORE_ANOTHER)])
            symmetric = Symmetric(last_function(c.module))
            c.run([Reverse(r.options.plan, symmetric.differentiated)])
            symmetric.turn(last_function(c.module))
        case "count" | "count-split":
            count_saves(c, active, finals)
        case _ if r.options.memory and r.mode in WITHIN_BUDGETS:
            within_budget(c, reverse)
        case _:
            differentiate(c, reverse, c.module)
    expand_derivatives(c)


def cotangents_at_once(r: Request) -> int:
    """How many cotangents go along: in a gradient's tangent the lanes are those of tangents."""
    return r.options.lanes if r.mode in ("pullback", "vjp") else 1


def differentiate(c: Compilation, reverse: Reverse, module: ModuleOp) -> None:
    """The gradient of the module's function, or the tangent of that."""
    c.run([reverse], module)
    if c.request.mode not in HESSIAN:
        return
    number_tapes(last_function(module))
    c.run(for_threads(c, BEFORE_ANOTHER), module)
    # Shadows are zero at first: their tangents are what the reverse sweep makes of them.
    finals = tuple(shadow_arguments(last_function(module)))
    c.run([Forward(reverse.active, finals, c.request.options.lanes)], module)
    if c.request.mode == "product":
        c.run([KeepProduct(), RemoveDead()], module)


def within_budget(c: Compilation, reverse: Reverse) -> None:
    """Two derivatives, where a loop can be checkpointed: the one that saves all, and the one in steps."""
    memory, active = c.request.options.memory or 0, reverse.active or ()
    in_steps = c.module.clone()
    # A variable that steps do not hand on is a step's own: its plan knows what the variable held.
    c.run([LocalizeCells(), CheckpointLoops(memory, active, reverse.saves)], in_steps)
    differentiate(c, reverse, c.module)
    if not any(activation.CHECKPOINTED in op.attributes for op in in_steps.walk()):
        return
    differentiate(c, reverse, in_steps)
    function = last_function(in_steps)
    function.properties["sym_name"] = StringAttr(f"{function.sym_name.data}_in_steps")
    function.attributes[activation.CHECKPOINTED] = IntegerAttr(memory, i64)
    for op in list(in_steps.ops):
        op.detach()
        c.module.body.block.add_op(op)


def measure_budget(c: Compilation) -> None:
    """Write the sizes of what is saved, by which a gradient keeps to its budget."""
    functions = [op for op in c.module.ops if isinstance(op, func.FuncOp) and not is_private(op)]
    spill = c.request.options.spill
    memory, assumed = c.request.options.memory or 0, c.built.assumed
    if (
        c.request.mode == "reverse-hvp"
    ):  # its adjoint would ask for the values of steps in another order
        way_out = (
            'use `mode="forward-over-reverse"`, which runs steps again, or leave out `memory=`'
        )
        measure_saved(functions[0], assumed, memory, alone=True, way_out=way_out)
        return
    measure_steps(functions[-1], functions[0], assumed, spill)
    measure_saved(functions[0], assumed, memory, alone=len(functions) < 2)


def count_saves(c: Compilation, active: Sequence[int], finals: Sequence[int] | None) -> None:
    """Put the primal that counts in the place of the function."""
    saves = c.request.options.plan
    if finals is not None and saves == "forbid":
        saves = "minimal"
    function = only_function(c.module)
    made = counting_function(function, active, saves, finals)
    activities = activities_of(function, active, finals)
    pairs = activation_pairs(function, activities, saves, owned=finals is None)
    others = [one.clone() for one in private_functions(c.module).values()]
    c.module = ModuleOp([made, *(pairs or others)])
    for op in c.module.ops:
        if isinstance(op, func.FuncOp):
            inline_rules(op)
    count = {"kind": "scalar", "type": "py_int"}
    results = {"kind": "tuple", "items": [count for _ in made.function_type.outputs]}
    c.built = replace(c.built, module=c.module, results=results, records=None)


@dataclass(frozen=True, eq=False)
class ExpandSimplified(ExpandDerivatives):
    """The pass with others between two derivatives: equal to none that a specification says."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def expand_derivatives(c: Compilation) -> None:
    """Put code in the place of derivatives that the program asks for."""

    saves = c.request.options.plan
    if c.request.options.sanitize:
        watch(c.module.ops)
    with c.around(ExpandSimplified(saves), c.module):
        expand(c.module, saves, lambda module: c.run(for_threads(c, BEFORE_ANOTHER), module))
    if c.request.options.sanitize:
        c.run([SanitizeDerivatives()])


def number_tapes(gradient: func.FuncOp) -> None:
    """Number the tapes in the order of the plan's saves: those with tangents are there twice afterwards."""
    for number, op in enumerate(op for op in gradient.body.block.ops if isinstance(op, ad.TapeOp)):
        op.attributes[SAVE] = IntegerAttr(number, i64)


SAVE = "save"
"""The attribute that says to which save of the plan a tape belongs."""


def returned_arguments(spec: dict[str, Any]) -> Iterator[int]:
    """The IR arguments that the function returns themselves: the caller gets their tangents, too."""
    if spec["kind"] == "tuple":
        for item in spec["items"]:
            yield from returned_arguments(item)
    elif spec["kind"] == "argument":
        yield spec["leaf"]


def optimize(c: Compilation) -> None:
    r = c.request
    if r.mode == "primal":
        expand_derivatives(c)
    if r.options.fastmath:
        c.run([DropGuards(unchecked=True)])
    elif r.mode in RETRIED and not (r.options.guards or r.options.sanitize or r.options.launched):
        c.run([DropGuards()])
    c.run(with_options(c, FOR_KERNELS if r.options.device else OPTIMIZE))
    if r.options.memory:
        if r.mode in (*WITHIN_BUDGETS, "reverse-hvp"):
            measure_budget(c)
        elif r.mode == "vjp":
            refuse_large(c.module, c.built.assumed, r.options.memory)


def for_threads(c: Compilation, passes: Sequence[ModulePass]) -> list[ModulePass]:
    """The passes, with `parallel=True` such that threads have memory, and large maps, of their own."""
    if not c.request.options.parallel:
        return [*passes]
    kept = [p for p in passes if not isinstance(p, FuseRows)]  # its steps follow each other
    return [
        replace(p, threads=True)
        if isinstance(p, HoistAllocs | CollectProducts | UnrollAndJam)
        else p
        for p in kept
    ]


def with_options(c: Compilation, passes: Sequence[ModulePass]) -> list[ModulePass]:
    """The passes as threads, and `fastmath`, have them."""
    free = c.request.options.fastmath
    reordering = ReorderLoops | CollectProducts | UnrollAndJam | DistributeLoops
    return [
        replace(p, fastmath=free) if isinstance(p, reordering) else p
        for p in for_threads(c, passes)
    ]


def kernels(c: Compilation) -> None:
    from .kernels.block_sums import BlockSums
    from .kernels.choose_loads import ChooseLoads
    from .kernels.inspect_checks import InspectChecks
    from .kernels.outline_kernels import OutlineKernels
    from .kernels.same_choices import SameChoices

    fixed = c.request.options.deterministic
    choices = SameChoices(), ChooseLoads()
    c.run([*choices, InspectChecks(fixed), OutlineKernels(fixed), BlockSums()])


def emulated(c: Compilation) -> None:
    from .kernels.emulate_launches import EmulateLaunches

    c.run([EmulateLaunches()])


def launches(c: Compilation) -> None:
    """Kernels leave the module: as PTX, or as machine code that the emulated driver loads."""
    from .codegen.launches_to_llvm import multiplies, number_kernels
    from .codegen.llvm_module import optimize_and_emit
    from .kernels.host_kernels import (
        host_text,
        kinds_of_parameters,
        ranks_of_parameters,
        sizes_of_parameters,
    )

    text = "" if c.request.options.device == HOST_DRIVER else ptx(c)
    made = number_kernels(c.module)
    c.image = {"kernels": [k.sym_name.data for k in made], "ptx": text}
    c.image["products"] = multiplies(c.module)
    if made and c.request.options.device == HOST_DRIVER:
        c.image["ir"] = "\n".join(map(str, made))
        written = host_text(made, c.request.options)
        code = optimize_and_emit(written.module(), *level_and_target(c))
        c.image |= {"code": b64encode(code).decode(), "symbols": written.symbols}
        c.image["parameters"] = [kinds_of_parameters(k) for k in made]
        c.image["ranks"] = [ranks_of_parameters(k) for k in made]
        c.image["sizes"] = [sizes_of_parameters(k) for k in made]


def ptx(c: Compilation) -> str:
    from .codegen.ptx import ptx_of

    options = c.request.options
    return ptx_of(c.module, options.device, fastmath=options.fastmath)


def llvm(c: Compilation) -> None:
    from .codegen.entry import (
        GradientSignature,
        convention,
        entries,
        exported,
        gradient_signature,
        signature_of,
    )
    from .codegen.entry_tangents import tangents_of
    from .codegen.kernel_memory import KernelMemory
    from .codegen.loops_to_llvm import kernel_text, split_text

    r, built = c.request, c.built
    subject = subject_of(r) if r.options.debug else None
    memory = KernelMemory.DEVICE if r.options.launched else KernelMemory.SYSTEM
    if r.mode == "vjp":
        c.kernel = split_text(c.module, r.options, memory, subject)
    else:
        c.kernel = kernel_text(c.module, r.options, memory=memory, subject=subject)
    if not r.options.launched:
        c.kernel = c.kernel.beside_library()
    function = last_function(c.module)
    if r.mode in (*JOINT, "vjp", *HESSIAN, "reverse-hvp"):
        c.gradient = gradient_signature(function, r.arguments)
    if r.mode in (*TANGENT, *HESSIAN, "reverse-hvp"):
        c.gradient = c.gradient or GradientSignature((), (), ())
        c.tangents = tangents_of(function, r.arguments, built.results, c.gradient, r.options.lanes)
    called_by = signature_of(r.function)
    c.convention = convention(
        r.arguments, r.overlaps, r.mode, r.wrt, built.results, built.written, called_by, c.gradient,
        built.assumed, activation.goes_deep(c.module),
        built.records is not None and built.records["result"] == ["flat"], c.tangents, cotangents_at_once(r),
        r.options.driver,
    )  # fmt: skip
    c.symbols = c.kernel.symbols
    c.llvm = "\n".join((*c.kernel.declarations, c.kernel.text, exported(r.mode)))
    if r.options.debug:
        made = entries(c.convention, c.kernel.entry)
        c.symbols = {**c.symbols, **made.symbols}
        missing = (one for one in made.declarations if one not in c.kernel.declarations)
        c.own_entries = "\n".join((*missing, made.text))


def subject_of(r: Request) -> Subject:
    """What debuggers and profilers call the code: `heat`, `heat.grad`, and where it comes from."""
    from .argument_keys import parse
    from .codegen.debug_info import Subject
    from .codegen.debug_variables import parameters_of

    source = source_of(r)
    keys = [parse(key) for key in r.arguments]
    parameters = parameters_of(r.function.__code__, keys)
    return Subject(source["name"], source["file"], source["line"], source["backward"], parameters)


def source_of(r: Request) -> dict[str, Any]:
    """The same for the runtime, and whether the code has debug information."""
    name, at = r.function.__qualname__, line_of_function(r.function)
    file, line = (at.file, at.line) if at is not None else ("", 0)
    return {
        "name": name + CALLED[r.mode],
        "backward": f"{name}.back",
        "module": r.function.__module__,
        "file": file,
        "line": line,
        "debug": r.options.debug,
    }


CALLED = {
    "primal": "",
    "gradient": ".grad",
    "pullback": ".grad",
    "vjp": ".vjp",
    **dict.fromkeys(TANGENT, ".jvp"),
    **dict.fromkeys((*HESSIAN, "reverse-hvp"), ".hvp"),
    **dict.fromkeys(COUNTS, ".explain"),
}
"""By mode, which method of a compiled function the kernel is the work of."""


def level_and_target(c: Compilation) -> tuple[int, Target | None]:
    return c.request.options.opt, c.request.options.target


def machine_code(c: Compilation) -> None:
    from .codegen.llvm_module import optimize_and_emit

    c.object_code = optimize_and_emit(c.llvm + c.own_entries, *level_and_target(c))


def optimized_llvm(c: Compilation) -> str:
    from .codegen.llvm_module import optimized_ir

    return optimized_ir(c.llvm, *level_and_target(c))


def assembly(c: Compilation) -> str:
    from .codegen.assembly_lines import without_debugging

    text = assembly_for_debuggers(c)
    return without_debugging(text) if c.request.options.debug else text


def assembly_for_debuggers(c: Compilation) -> str:
    from .codegen.llvm_module import assembly

    return assembly(c.llvm, *level_and_target(c))


def plan(c: Compilation) -> str:
    return module_text(planned(c), c.locations)


def planned(c: Compilation) -> ModuleOp:
    """A copy of the module that shows its plan."""
    from .derivative.passes import annotate

    shown = c.module.clone()
    annotate(shown, c.active_arguments, c.request.options.plan, c.final_arguments)
    return shown


def show_module(c: Compilation) -> str:
    return module_text(c.module, c.locations)


def show_llvm(c: Compilation) -> str:
    return c.llvm


def nothing(c: Compilation) -> None:
    """For a stage that only shows."""


@dataclass(frozen=True)
class Stage:
    """One step, the reason for it, and how users see what it leaves."""

    name: str
    run: Callable[[Compilation], None]
    why: str
    show: Callable[[Compilation], str] = show_module
    suffix: str = "mlir"
    gradient_only: bool = False


SIMPLIFY: tuple[ModulePass, ...] = (
    EliminateCommon(),  # the others compare subscripts and index spaces by identity
    UnifyExtents(),  # past a check of shapes there is one index space
    FuseElementwise(),  # one map for each operation of NumPy is many
    FoldConstants(),  # slices and shapes shrink to what is not known
    DropCarried(),  # an array that keeps its place has one name
    MoveConditions(),  # the reverse sweep reverses bodies
    PromoteScalars(),  # stores kill cells, never values
    CloseCounters(),  # the length of a list that grows is affine in the iteration
    EliminateCommon(),  # what folding and promotion made equal
    ForwardStores(),  # an element read back is a value
    SettleBounds(),  # slices by counters have one extent each, and those of one length the same
    FoldConstants(),  # flags that are values now
    ResolveOverlap(),  # from here on a map may go through its points in any order
    UnifyExtents(),  # past a check of shapes there is one index space
    EliminateCommon(),
    FuseElementwise(),  # a temporary that does not exist has no shadow
    HoistInvariants(),  # an invariant is there once, for both sweeps
    EliminateCommon(),  # what hoisting brought together
    HoistBranchAllocs(),  # an array that leaves a branch has its shadow outside
    LiftChoices(),  # which shadow it is, is known before the branch is reversed
    HoistChecks(),  # neither sweep checks what was checked on entry
    SelectStores(),  # a loop without branches may be a map
    SelectValues(),  # or is vectorized, with its adjoint
    VectorizeOuter(),  # inner loops that go step by step do so for many points at once
    HoistRaises(),  # where nothing raises, too
    RaiseLoops(),  # independent iterations are a map, whose adjoint is one
    EliminateCommon(),  # the views that raising made
    WriteProducts(),  # a product is saved, or overwritten, where it goes
    RemoveDead(),  # a store that nobody reads kills nothing
    DescribeCalls(),  # nor does a call that no longer stores
)

FOR_THREADS: tuple[ModulePass, ...] = (
    CheckClaims(),  # once variables that are no more than names are gone
    LocalizeCells(),  # iterations that share no variable share no save
)
"""What runs at the end of `simplify` with `parallel=True`, and for devices."""

POINT_BY_POINT: tuple[ModulePass, ...] = (
    EliminateCommon(),  # the rules of several ops ask for the same values
    FoldConstants(),
    PromoteScalars(),  # cotangents of scalars come in cells
    UnifyExtents(),  # the checks of the forward sweep hold in the reverse sweep
    EliminateCommon(),
    ForwardStores(),
    DropRestored(),  # a cotangent that is only read stays where it is
    DropOverwritten(),  # a temporary's shadow is filled once
    FuseElementwise(),
    HoistInvariants(),
)
"""What runs on adjoints: maps are point by point."""

OPTIMIZE: tuple[ModulePass, ...] = (
    EliminateCommon(),
    AssumeLengths(),  # what is over as many points can be joined, and need not be checked
    *POINT_BY_POINT,
    EliminateCommon(),
    RaiseAdjoints(),  # they meet maps to share a loop with, and fills to store over
    RemoveDead(),
    DropCarried(),  # the reverse sweep swaps the arrays that it reads
    GatherAdds(),  # passes before this take maps point by point
    StoreFirst(),  # a map that gathers touches each element once
    EliminateCommon(),  # views of what is gathered
    FuseRows(),  # what maps hand on stays in the cache; scratch arrays are still in their loops
    HoistInvariants(),
    HoistAllocs(),  # nothing allocates inside of loops
    EliminateCommon(),
    ReuseAllocs(),  # shadows take the memory of what the forward sweep has done with
    PeelBoundaries(),  # what reordering and vectors need is a body without branches
    AssumeExtents(),  # how far apart elements are, is known
    ReorderLoops(),  # nothing that comes reads the program in its own order
    CollectProducts(),  # nests are in the order in which products stand out
    TransposeColumns(),  # what products read is no map any more
    UnrollAndJam(),  # innermost loops go along rows by now
    DistributeLoops(),  # what an interchange would free need not be taken apart
    LeaveFills(),  # what is still filled may as well come as zeros
)

FOR_KERNELS = tuple(
    one
    for one in OPTIMIZE
    if not isinstance(one, (FuseRows, PeelBoundaries, AssumeExtents))
    and not isinstance(one, (ReorderLoops, UnrollAndJam, DistributeLoops))
    and not isinstance(one, (CollectProducts, TransposeColumns))
)
"""What runs where kernels are made of the program: without what is about caches and vectors."""

OF_THE_LAST = (
    *(AssumeLengths, RaiseAdjoints, FuseRows, GatherAdds, StoreFirst, ReuseAllocs, PeelBoundaries),
    *(AssumeExtents, ReorderLoops, CollectProducts, TransposeColumns, UnrollAndJam),
    *(DistributeLoops, LeaveFills),
)
"""Passes that run behind the last derivative alone."""

BEFORE_ANOTHER: tuple[ModulePass, ...] = (
    *(one for one in OPTIMIZE if not isinstance(one, OF_THE_LAST)),
    SplitMaps(),
)
"""What runs between two derivatives: arrays are whole, memory is shared, and loops are reordered, after the
last, and maps are as rules take them."""

STAGES: tuple[Stage, ...] = (
    Stage(
        "frontend", frontend, "Python to typed array IR: one function, a source span on every op"
    ),
    Stage(
        "simplify", simplify, "before the analyses: the less goes through memory, the less to save"
    ),
    Stage(
        "plan", nothing, "what the adjoint needs and stores kill: shown", plan, gradient_only=True
    ),
    Stage(
        "adjoint", adjoint, "the primal with its saves, then the reverse sweep", gradient_only=True
    ),
    Stage("optimize", optimize, "the adjoint is ordinary IR again: fuse, hoist, allocate once"),
    Stage(
        "llvm",
        llvm,
        "structured IR straight to LLVM text: the kernel; its entries are shared",
        show_llvm,
        "ll",
    ),
    Stage(
        "llvm-opt", machine_code, "LLVM's O3, vector math calls, object code", optimized_llvm, "ll"
    ),
    Stage("assembly", nothing, "the machine code of this CPU, to read", assembly, "s"),
)

OUTLINED = Stage(
    "kernels", kernels, "what a device runs, and launches: the host touches no array any more"
)
AFTER_KERNELS = {
    EMULATED: Stage("emulated", emulated, "launches are loops over threads, shuffled"),
    "cuda": Stage("ptx", nothing, "the kernels in NVIDIA's assembler, to read", ptx, "ptx"),
}
LAUNCHED = Stage(
    "launches", launches, "the kernels are a driver's to load: the host is what is left"
)
"""Stages of devices, behind `optimize`; emulated kernels go on as code of the CPU."""

PASSES: tuple[type[ModulePass], ...] = (
    AssumeExtents,
    AssumeLengths,
    EliminateCommon,
    FoldConstants,
    PromoteScalars,
    PeelBoundaries,
    ForwardStores,
    FuseElementwise,
    FuseRows,
    GatherAdds,
    HoistInvariants,
    HoistAllocs,
    HoistBranchAllocs,
    LeaveFills,
    LiftChoices,
    LocalizeCells,
    MoveConditions,
    WriteProducts,
    HoistChecks,
    HoistRaises,
    RaiseAdjoints,
    RaiseLoops,
    CheckClaims,
    CloseCounters,
    CollectProducts,
    DescribeCalls,
    DistributeLoops,
    DropCarried,
    DropOverwritten,
    DropRestored,
    RemoveDead,
    ReorderLoops,
    ResolveOverlap,
    ReuseAllocs,
    SelectStores,
    SelectValues,
    SettleBounds,
    SplitMaps,
    StoreFirst,
    TransposeColumns,
    UnifyExtents,
    UnrollAndJam,
    VectorizeOuter,
    *PRINTED_ANALYSES,
    PrintNeeded,
    PrintPlan,
    Reverse,
    Forward,
    KeepProduct,
    KeepTangents,
    ExpandDerivatives,
    SanitizeDerivatives,
    DropGuards,
    MeasureWork,
    CheckpointLoops,
    MeasureSteps,
)
"""Every pass that `mutad-opt -p` knows by name."""


@with_deep_stack
def compile_request(
    request: Request, wanted: Callable[[Sequence[Any]], bool] | None = None
) -> Artifact:
    """Compile for the runtime: every stage that makes something.

    Where the code would not be `wanted` with what it assumes of the arguments' extents, there is none, and
    of the metadata only that.
    """
    from . import stage_dumps

    c = Compilation(request)
    dump = frozenset(os.environ.get("MUTAD_DUMP", "").split(",")) - {""}
    unknown = dump - {s.name for s in (*STAGES, *stages_for(request))} - {EVERYTHING}
    if unknown:
        raise ValueError(
            f"MUTAD_DUMP: no stage named {', '.join(sorted(unknown))}; {stage_names()}"
        )
    with without_collection(), own_faults(request):
        if not dump:
            c = begun(request)
        if EVERYTHING in dump:
            c.hooks.append(after(stage_dumps.PassDumps(c)))
        for stage in stages_for(request):
            advance(c, stage)
            if dump & {stage.name, EVERYTHING}:
                stage_dumps.write_dump(c, stage)
            if stage.name == "frontend" and wanted is not None and not wanted(c.built.assumed):
                return Artifact(b"", {"assumed": c.built.assumed})
    if os.environ.get("MUTAD_TIME") == "1":
        print_times(c)
    return Artifact(c.object_code, metadata_of(c))


def compile_entries(convention: str, opt: int, target: Target | None) -> Artifact:
    """The entries of all kernels that are called like this, for the runtime."""
    from .codegen.entry import entries, entry_symbols
    from .codegen.llvm_module import optimize_and_emit

    made = entries(convention)
    metadata = {"symbols": made.symbols, "entries": entry_symbols(convention)}
    with without_collection():
        return Artifact(optimize_and_emit(made.module(), opt, target), metadata)


def compile_support(opt: int, target: Target | None) -> Artifact:
    """What kernels and entries of a process call, for the runtime."""
    from .codegen.llvm_module import optimize_and_emit
    from .codegen.support_library import library

    made = library()
    metadata = {"symbols": made.symbols, "entries": {name: name for name in made.exports}}
    with without_collection():
        return Artifact(optimize_and_emit(made.text, opt, target), metadata)


def begun(request: Request) -> Compilation:
    """A compilation that goes on from the most that earlier ones made (`remembered`)."""
    checked = remembered.take_checked(request)
    if checked is None:
        return simplified(request)
    checked.request = request
    return checked


def simplified(request: Request) -> Compilation:
    """A compilation that need not come as far as `simplify`, if an earlier one did."""
    c, known = Compilation(request), remembered.recall(request)
    if known is not None:
        c.built, c.module = known.built, known.module.clone()
        c.done = {"frontend", "simplify"}
    return c


def advance(c: Compilation, stage: Stage) -> None:
    """Run a stage, unless that was done."""
    if stage.name in c.done:
        return
    with with_time(c, stage.name), within(f"the stage {stage.name}"):
        stage.run(c)
    c.done.add(stage.name)
    if stage.name == "simplify":
        remembered.remember(c)


@with_deep_stack
def check_request(request: Request, wanted: Callable[[Sequence[Any]], bool]) -> None:
    """CompileError where the gradient cannot be compiled, and is `wanted`; makes no code."""
    with without_collection(), own_faults(request):
        c = begun(request)
        for stage in stages_for(request):
            advance(c, stage)
            if stage.name == "frontend" and not wanted(c.built.assumed):
                return
            if stage.name == "adjoint":
                remembered.remember_checked(c)
                return


@contextmanager
def own_faults(request: Request) -> Generator[None]:
    """What the compiler did not foresee is its own fault, and says so at the line that it worked on.

    Not that memory runs out, nor that what it is built on is missing or unknown (`require_known_llvm`).
    """
    try:
        yield
    except (CompilerFault, MemoryError, ImportError, RecursionError):
        raise
    except Exception as error:
        span = place_of(error) or line_of_function(request.function)
        if not isinstance(error, CompileError):
            from .stage_dumps import reproducing

            raise CompilerFault(span, error, what_failed(error), reproducing(request)) from error
        error.span = error.span or span
        raise


@with_deep_stack
def run_stages(request: Request, upto: str) -> str:
    """What stage `upto` leaves, as text. ValueError where this request has no such stage."""
    c = Compilation(request)
    stages = stages_for(request)
    if upto not in {s.name for s in stages}:
        if upto in {s.name for s in STAGES if s.gradient_only}:
            raise ValueError(f"stage {upto!r} is one of gradients: the function has none here")
        raise ValueError(f"no stage named {upto!r}; {stage_names()}")
    with own_faults(request):
        for stage in stages:
            with within(f"the stage {stage.name}"):
                stage.run(c)
            if stage.name == upto:
                return stage.show(c)
    raise AssertionError("unreachable")


def last_function(module: ModuleOp) -> func.FuncOp:
    """The function that runs backwards: the only one, or the second half of a split gradient."""
    functions = [op for op in module.ops if isinstance(op, func.FuncOp) and not is_private(op)]
    return functions[-1]


def retries(module: ModuleOp) -> bool:
    """Whether calls may have to be made anew, with guards."""
    return any(isinstance(op, ad.RetryIfOp) for op in module.walk())


def stages_for(request: Request) -> list[Stage]:
    return stages_of(request.mode, request.options.device, launched=request.options.launched)


def stages_of(mode: str, device: str, *, launched: bool = False) -> list[Stage]:
    stages = [s for s in STAGES if mode != "primal" or not s.gradient_only]
    if not device:
        return stages
    before = 1 + [s.name for s in stages].index("optimize")
    behind = [OUTLINED]
    if device != HOST_DRIVER:
        behind.append(AFTER_KERNELS["cuda" if device != EMULATED else device])
    if launched:
        behind.append(LAUNCHED)
    goes_on = launched or device == EMULATED
    return [*stages[:before], *behind, *(stages[before:] if goes_on else ())]


def stage_names() -> str:
    every = (*STAGES, OUTLINED, *AFTER_KERNELS.values())
    return (
        "stages are "
        + ", ".join(s.name for s in every[: len(STAGES)])
        + (f"; of devices {', '.join(s.name for s in every[len(STAGES) :])}")
    )


def metadata_of(c: Compilation) -> dict[str, Any]:
    """What the runtime must know of the module beside its code.

    Of the entries too: the `convention` that `compile_entries` makes them of, unless they are in the module.
    """
    from .codegen.entry import entry_symbols, exports
    from .codegen.streaming import repeats, streams

    return {
        "sites": c.kernel.sites,
        "results": c.built.results,
        "written": list(c.built.written),
        "assumed": c.built.assumed,
        "records": c.built.records,
        "sources": [list(s) for s in c.built.sources],
        "constants": [list(k) for k in c.built.constants],
        "source": source_of(c.request),
        "symbols": c.symbols,
        "image": c.image,
        "entries": entry_symbols(c.convention),
        "code": exports(c.request.mode),
        "convention": None if c.request.options.debug else c.convention,
        "gradient": c.gradient.as_metadata() if c.gradient is not None else None,
        "tangents": c.tangents.as_metadata() if c.tangents is not None else None,
        "record": c.kernel.result_slots[-1] + 1 if c.request.mode == "vjp" else None,
        "retries": retries(c.module),
        "streams": c.request.options.lanes > 1 and streams(c.module),
        "repeats": c.request.options.lanes > 1 and repeats(c.module),
    }


@contextmanager
def with_time(c: Compilation, name: str) -> Generator[None]:
    """Do the work and add its seconds to the stage (a pass: to its line below the stage)."""
    progress.doing = name.strip()
    if not name.startswith(" "):
        c.stage = name
    key = (c.stage, name)
    c.seconds.setdefault(key, 0.0)
    started = perf_counter()
    yield
    c.seconds[key] += perf_counter() - started


def timed_pass(c: Compilation, one: ModulePass, module: ModuleOp) -> AbstractContextManager[None]:
    return with_time(c, f"  {one.name}")


def print_times(c: Compilation, name: str = "") -> None:
    """The table of `MUTAD_TIME=1`: milliseconds for each stage, and for each pass within one."""
    stages = sum(seconds for (stage, name), seconds in c.seconds.items() if stage == name)
    title = name or f"{c.request.function.__qualname__} ({c.request.mode})"
    rows = [(title, stages)]
    rows += [(name, seconds) for (_, name), seconds in c.seconds.items()]
    for name, seconds in rows:
        print(f"{name:<40}{1e3 * seconds:10.1f} ms", file=sys.stderr)
