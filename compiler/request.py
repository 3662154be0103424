"""What can be compiled: one function, for one kind of arguments, in one mode, with the user's options."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .codegen.llvm_module import Target
    from .frontend.frames import Captured

JOINT = ("gradient", "pullback")
"""The modes that take a gradient in one call: into shadows that hold nothing before, or in the caller's."""

HESSIAN = ("hvp", "product")
"""The modes that take a gradient's tangent."""

TANGENT = ("tangent", "tangent-alone")
"""The modes that take tangents: with the primal's results, or without."""

WITHIN_BUDGETS = (*JOINT, *HESSIAN)
"""The modes whose functions run steps again where a budget is too small for what they save."""

LONGEST_TAPE = 2_000_000
"""Bytes that tapes must lose for a gradient to run updates again: about what a second-level cache holds."""

RETRIED = (*JOINT, "vjp", *TANGENT, *HESSIAN)
"""The modes whose calls can be made anew, with guards."""

COUNTS = ("count", "count-split")
"""The modes that count what a gradient, or `vjp`, saves."""

EMULATED = "host"
"""The device whose kernels the CPU runs, in an order of threads that is shuffled."""

HOST_DRIVER = "emulated"
"""The device of the emulated driver, whose kernels are loaded as functions of the host."""


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
    library: bool = False
    """For `mutadc`: an array of any strides may be contiguous; no user's choice."""
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
    replays: bool = True
    """Gradients with long tapes may run updates again (`derivative.replays`)."""
    long: int = 0
    """Code for long tapes alone, beside that for short ones; the runtime asks for it where tapes are long.

    The number is one more than how many sites the other has, which come first in the table of both."""
    launched: bool = False
    """Kernels are launched through a driver, on arrays of its device; no user's choice."""

    @property
    def plan(self) -> str:
        """What plans go by: bytes alone where these are scarce, or cost more than functions (on devices)."""
        bytes_alone = self.memory is not None or bool(self.device)
        return "fewest" if bytes_alone and self.saves == "minimal" else self.saves

    @property
    def on_host(self) -> bool:
        """Whether the CPU computes, not a device."""
        return not (self.device or self.launched)

    @property
    def longest_tape(self) -> int | None:
        """How many bytes a gradient must save more than one that runs updates again; None: there is none."""
        may = self.replays and self.on_host and self.memory is None and not self.sanitize
        return LONGEST_TAPE if may else None

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
    """Object files, one after the other; the metadata have their sizes where there are several (`parts`)."""
    metadata: dict[str, Any]
