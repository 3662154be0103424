"""LLVM: from text to optimized machine code.

Why llvmlite's new pass manager with the O3 pipeline and the target machine at hand: loop and SLP
vectorization know the CPU, and the libm variants of `vector_math` are seen. The code is position
independent with the small code model, which every JIT linker loads anywhere: calls go through stubs,
data through the global offset table.

LLVM is not taken on trust. Two of its errors would make our numbers wrong: see `Note [Masked loads]` and
`Note [Compressed masks]` at the end. Which options and errors there are depends on the version, so only known
versions are used.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from typing import Protocol, TypeVar

import llvmlite.binding as llvm
from llvmlite import __version__ as llvmlite_version

from .llvm_options import Vectorized, options_of, reduction, set_reduction
from .llvm_threads import CacheOfThread, Rest, Task, at_once, begun
from .module_parts import parts_of
from .strength_reduction import reduced
from .vector_width import IN_WIDE_VECTORS, WIDE

LLVM_VERSIONS = ((22, 1),)
"""Those whose options and errors `tests/codegen/test_llvm_errors.py` knows."""
LLVMLITE = ">=0.48,<0.51"
"""The releases that carry them, as in `pyproject.toml`."""


class Target(Protocol):
    """A CPU, in a machine with a system."""

    @property
    def cpu(self) -> str: ...
    @property
    def features(self) -> frozenset[str]: ...
    @property
    def triple(self) -> str:
        """LLVM's triple; "" is that of the system that we run on."""
        ...


@dataclass(frozen=True)
class Host:
    """The CPU that we run on."""

    cpu: str
    features: frozenset[str]
    """What it has, by LLVM's names."""
    triple: str = ""


@cache
def host() -> Host:
    names = llvm.get_host_cpu_features()
    return Host(llvm.get_host_cpu_name(), frozenset(name for name, has in names.items() if has))


def require_known_llvm(version: tuple[int, ...]) -> None:
    """ImportError for an LLVM that our code was never tested with."""
    if version[:2] not in LLVM_VERSIONS:
        raise ImportError(
            f"llvmlite {llvmlite_version} carries LLVM {'.'.join(map(str, version))}, which mutad "
            f"does not know: pip install 'llvmlite{LLVMLITE}'"
        )


@cache
def initialize_targets(*, everywhere: bool) -> None:
    """Make LLVM know the machine that we run on, or all. (Once: other threads may be at work later.)"""
    if everywhere:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@CacheOfThread
def target_machine(
    opt: int = 3, cpu: str = "", features: str = "", triple: str = ""
) -> llvm.TargetMachine:
    """The CPU of that name, else the one that we run on; `features` are added or taken away.

    No other thread may use it.

    Up to the first level it translates instruction by instruction, which takes a fourth of the time.
    """
    require_known_llvm(tuple(llvm.llvm_version_info))
    initialize_targets(everywhere=bool(triple))
    own = "" if cpu else llvm.get_host_cpu_features().flatten()
    return llvm.Target.from_triple(triple or llvm.get_default_triple()).create_target_machine(
        cpu=cpu or host().cpu,
        features=",".join(filter(None, (own, features))),
        opt=opt if opt >= 2 else 0,
        reloc="pic",
        codemodel="small",
    )


# The optimizer. -----------------------------------------------------------------------------------


NOTHING = Vectorized(anything=False, branches=False)
ATTEMPTS = (Vectorized(), Vectorized(branches=False), NOTHING)
"""In this order, until no load of the module is `made_anew`. The last makes no masks."""


def optimized(text: str, opt: int = 3, target: Target | None = None) -> llvm.ModuleRef:
    """The module after LLVM's pipeline for `opt` (0 to 3)."""
    for vectorized in attempts(opt):
        module = after_passes(text, opt, target, vectorized)
        if not made_anew(module):
            return module
    raise AssertionError("unreachable")


def attempts(opt: int) -> Iterator[Vectorized]:
    """What may become vectors, until no load is `made_anew`."""
    yield from ATTEMPTS if opt >= 2 else (NOTHING,)
    raise AssertionError("LLVM reads memory under masks where nothing is vectorized")


def after_passes(
    text: str, opt: int, target: Target | None, vectorized: Vectorized
) -> llvm.ModuleRef:
    """The module after the passes of LLVM's pipeline."""
    with options_of(vectorized):
        return run_passes(text, opt, target, vectorized)


def run_passes(
    text: str, opt: int, target: Target | None, vectorized: Vectorized
) -> llvm.ModuleRef:
    """The same where the options are set.

    The module has a context of its own: what LLVM interns (types, constants, metadata) is gone with it.
    """
    machine = machine_of(opt, target, wide=IN_WIDE_VECTORS in text)
    module = parsed(text, machine)
    with passes(machine, opt, vectorized) as (manager, builder):
        manager.run(module, builder)
    return module


def parsed(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module, for this machine."""
    module = llvm.parse_assembly(text, llvm.create_context())
    module.verify()  # LLVM aborts the process where it meets IR that is not well formed.
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return module


@contextmanager
def passes(
    machine: llvm.TargetMachine, opt: int, vectorized: Vectorized
) -> Generator[tuple[llvm.ModulePassManager, llvm.PassBuilder]]:
    """LLVM's default pipeline, at level 1 a few passes of it, and what runs it.

    A pass manager keeps the work lists of its passes, a hundred KiB and more, and llvmlite frees none: its
    class inherits `_dispose` of the wrong base first.
    """
    tuning = llvm.create_pipeline_tuning_options(speed_level=opt)
    tuning.loop_vectorization = tuning.slp_vectorization = vectorized.anything
    tuning.loop_interleaving = vectorized.anything
    tuning.loop_unrolling = opt >= 2
    with llvm.create_pass_builder(machine, tuning) as builder:
        manager = quick_passes() if opt == 1 else builder.getModulePassManager()
        try:
            yield manager, builder
        finally:
            llvm.NewPassManager._dispose(manager)  # pyright: ignore[reportPrivateUsage]
            manager.detach()


def quick_passes() -> llvm.ModulePassManager:
    """What pays where code is to be there soon: values instead of memory, fewer jumps.

    LLVM's own first level takes thirty times as long, mostly on loops, which are then translated instruction
    by instruction; the code is faster by a tenth. InstCombine is no part of this: without what runs before it
    there it makes other code, which was never looked at (signs of zeros, see `compared_wide`).
    """
    manager = llvm.create_new_module_pass_manager()
    manager.add_always_inliner_pass()
    manager.add_sroa_pass()
    manager.add_simplify_cfg_pass()
    return manager


def machine_of(
    opt: int, target: Target | None, features: str = "", *, wide: bool = False
) -> llvm.TargetMachine:
    """What makes code; `wide`: in vectors as wide as the registers."""
    return target_machine(*described(opt, target, features, wide=wide))


def new_machine(opt: int, target: Target | None) -> llvm.TargetMachine:
    """The same for any thread, if only one has it."""
    return target_machine.make(*described(opt, target))


def described(
    opt: int, target: Target | None, features: str = "", *, wide: bool = False
) -> tuple[int, str, str, str]:
    if wide:
        features = ",".join(filter(None, (WIDE, features)))
    if target is None:
        return opt, "", features, ""
    return opt, target.cpu, features, target.triple


def made_anew(module: llvm.ModuleRef) -> list[str]:
    """The masked loads that InstCombine has made, see `Note [Masked loads]`."""
    if not any(f.name.startswith("llvm.masked.load.") for f in module.functions):
        return []
    loads = re.findall(r"^.* call .*@llvm\.masked\.load\..*$", str(module), re.MULTILINE)
    return [load for load in loads if "!alias.scope" not in load and not GAPS.search(load)]


GAPS = re.compile(r"<\d+ x i1> <i1 [^%]*>, <[^>]*> poison\)")
"""The mask of a load that leaves out what lies between the words of a record, whatever the data are."""


# Machine code. ------------------------------------------------------------------------------------

MOVMSK = re.compile(
    rb"\xc5[\x78\x79\x7c\x7d\xf8\xf9\xfc\xfd][\x50\xd7]"
    rb"|\xc4[\x41\x61\xc1\xe1][\x78\x79\x7c\x7d\xf8\xf9\xfc\xfd][\x50\xd7]"
)
"""The encodings of VMOVMSKPS, VMOVMSKPD and VPMOVMSKB (two or three bytes before the opcode, 50 or D7)."""

UNCOMPRESSED = "-avx512dq,-avx512bw"

Code = TypeVar("Code", bytes, str)


def emitted(
    emit: Callable[[llvm.TargetMachine], Code],
    compressed: Callable[[Code], object],
    opt: int,
    target: Target | None,
    *,
    wide: bool,
    machine: llvm.TargetMachine | None = None,
) -> Code:
    """What `emit` makes, without compressed masks; see `Note [Compressed masks]`."""
    made = emit(machine or machine_of(opt, target, wide=wide))
    if "avx512vl" in (target or host()).features and compressed(made):
        return emit(machine_of(opt, target, UNCOMPRESSED, wide=wide))
    return made


@dataclass(frozen=True)
class Ready:
    """A module to be emitted."""

    module: llvm.ModuleRef
    wide: bool
    reduces: bool
    """Whether LLVM is to reduce the strength of its loops."""
    size: int = 0
    """That of its text: about as long it takes to emit."""


def ready(text: str, opt: int, target: Target | None) -> Ready:
    """The optimized module, with its loops' strength reduced."""
    return in_strength(optimized(text, opt, target), text, opt, target)


def in_strength(module: llvm.ModuleRef, text: str, opt: int, target: Target | None) -> Ready:
    """The optimized module of this text, with its loops' strength reduced (`strength_reduction`), unless
    LLVM is to do that."""
    wide = IN_WIDE_VECTORS in text
    if opt < 2:
        return Ready(module, wide, reduces=True)
    before = str(module)
    after = reduced(before)
    if after is not None and after is not before:
        module = parsed(after, machine_of(opt, target, wide=wide))
    return Ready(module, wide, reduces=after is None, size=len(before))


def withheld(module: llvm.ModuleRef, opt: int, target: Target) -> str:
    """The features that `emitted` does without for this module."""
    if "avx512vl" not in target.features:
        return ""
    return UNCOMPRESSED if MOVMSK.search(machine_of(opt, target).emit_object(module)) else ""


def optimize_and_emit(text: str, opt: int = 3, target: Target | None = None) -> bytes:
    """Object code."""
    return emitted_at_once([text], opt, target)[0]


def optimize_in_parts(
    text: str, opt: int = 3, target: Target | None = None, beside: Sequence[str] = ()
) -> list[bytes]:
    """Object code, that of a large module in parts: a library is linked of all of them.

    Before it that of the modules `beside` this one.
    """
    parts = parts_of(text, machine_of(opt, target)) if opt >= 2 else [text]
    return emitted_at_once([*beside, *parts], opt, target)


def emitted_at_once(texts: Sequence[str], opt: int, target: Target | None) -> list[bytes]:
    """The object code of modules, made in threads.

    A module is optimized in one step and emitted in another, the largest first, so that all threads end at
    about the same time. Options hold for both steps. Only where LLVM is to reduce the strength of loops is
    the code emitted when all else is done.
    """
    done: dict[int, bytes | Ready] = {}
    for vectorized in attempts(opt):
        left = [k for k in range(len(texts)) if k not in done]

        def made(
            k: int, vectorized: Vectorized = vectorized
        ) -> Rest[bytes | Ready | None] | Ready | None:
            module = run_passes(texts[k], opt, target, vectorized)
            if made_anew(module):
                return None
            one = in_strength(module, texts[k], opt, target)
            return one if one.reduces else Rest(partial(object_of, opt, target, one), one.size)

        with options_of(vectorized), reduction(by_llvm=False):
            found = zip(left, at_once(made, left), strict=True)
        done |= {k: one for k, one in found if one is not None}
        if len(done) == len(texts):
            break
    later = {k: one for k, one in done.items() if isinstance(one, Ready)}
    if later:
        with reduction(by_llvm=True):
            code = at_once(partial(object_of, opt, target), later.values())
        done |= zip(later, code, strict=True)
    return [one for k in range(len(texts)) if isinstance(one := done[k], bytes)]


def object_of(
    opt: int, target: Target | None, one: Ready, machine: llvm.TargetMachine | None = None
) -> bytes:
    return emitted(
        lambda machine: machine.emit_object(one.module),
        MOVMSK.search,
        opt,
        target,
        wide=one.wide,
        machine=machine,
    )


def emit_entries(text: str, opt: int, target: Target | None) -> bytes:
    """The object code of functions that go through no array, and wait for Python's.

    `quick_passes` do for them at any level, and take a tenth of the time. They are emitted as the level says.
    """
    module = after_passes(text, 1, target, NOTHING)
    with reduction(by_llvm=False):
        return object_of(opt, target, Ready(module, wide=False, reduces=False))


def entries_begun(text: str, opt: int, target: Target | None) -> Task[bytes]:
    """What `emit_entries` makes, by another thread from now on: within `ended`.

    Each call into LLVM lets go of Python's lock, which that thread would then wait for. So all that is short
    is done here. The thread has a machine of its own.
    """
    one = Ready(after_passes(text, 1, target, NOTHING), wide=False, reduces=False)
    machine = new_machine(opt, target)
    set_reduction(by_llvm=False)
    return begun(partial(object_of, opt, target, one, machine))


def optimized_ir(text: str, opt: int = 3, target: Target | None = None) -> str:
    """LLVM IR after optimization, to read."""
    return str(optimized(text, opt, target))


def assembly(text: str, opt: int = 3, target: Target | None = None) -> str:
    """The assembly of what `optimize_and_emit` emits."""
    one = ready(text, opt, target)
    with reduction(by_llvm=one.reduces):
        return emitted(
            lambda machine: machine.emit_assembly(one.module),
            lambda made: "movmsk" in made,
            opt,
            target,
            wide=one.wide,
        )


# Note [Masked loads]
#
# InstCombine of LLVM 22 makes, of a masked load and a choice under the same mask,
#
#     %x = masked.load %p, %mask, poison          masked.store 0, %p, %mask
#     masked.store 0, %p, %mask                   %y = masked.load %p, %mask, %other
#     %y = select %mask, %x, %other
#
# a new load at the place of the choice, and whatever was stored between them is read (llvm-project issue
# 215453; mended in LLVM 23). "Read a shadow, then store zero" is what every adjoint of a store does.
# Masked loads come from the loop vectorizer alone: of loops with branches (with AVX2), and of loops of
# provably few trips whose tail it folds into the body (with AVX-512).
#
# Tails are not folded: loops of few trips stay scalar, and their lines may become vectors. The others are
# found: every load of an array's element has `!alias.scope` (`alias_scopes`), the vectorizer hands it on,
# and what InstCombine makes has no metadata at all. (Nor has what the SLP vectorizer makes of the words of a
# record. Its masks are constants, and it chooses nothing for what is left out.) A module with such a load is
# optimized again without vectorizing branches. A load that lost its metadata in another way costs time, never
# a number.
#
# Note [Compressed masks]
#
# On CPUs with AVX-512 the pass X86CompressEVEX of LLVM 22 makes, of a mask that goes to a general register,
#
#     vpmovq2m %ymm0, %k0                         vmovmskpd %ymm0, %eax
#     kmovd    %k0, %eax
#
# also where a later instruction still reads %k0 and overwrites it (`kshiftrb $2, %k0, %k0`), or where the
# vector is in a register that VMOVMSKPD cannot name, %ymm16 to %ymm31 (llvm-project issues 198197 and
# 191304, mended in LLVM 23). All that the pass makes is a VMOVMSKPS, VMOVMSKPD or VPMOVMSKB, and nothing
# else is likely to make one on these CPUs: where the code has one, it is emitted without the extensions
# that VPMOVQ2M and its kind belong to. Bytes that only look like one cost time, never a number.
