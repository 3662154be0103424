"""Every stage of the compiler, in order, with its reason. Read `STAGES` top to bottom.

A stage has a name that users type (`f.inspect("simplify")`, `MUTAD_DUMP=simplify,adjoint`) and takes
a `Compilation` one step further. Passes within a stage run alone as well: `mutad-opt -p <name>`.

Environment: `MUTAD_DUMP=stage[,stage]` writes what each named stage leaves, one file a stage and
function, to `MUTAD_DUMP_DIR` (else `./mutad-dump`); `MUTAD_TIME=1` prints seconds per stage.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from xdsl.passes import ModulePass

from .transforms.eliminate_common import EliminateCommon
from .transforms.fold_constants import FoldConstants
from .transforms.forward_stores import ForwardStores
from .transforms.fuse_elementwise import FuseElementwise
from .transforms.hoist_allocs import HoistAllocs
from .transforms.hoist_invariants import HoistInvariants
from .transforms.promote_scalars import PromoteScalars
from .transforms.remove_dead import RemoveDead


@dataclass(frozen=True)
class Options:
    """What the user may choose about one compilation; part of its cache key."""

    saves: str = "minimal"  # "minimal" | "all" | "forbid"
    fastmath: bool = False
    boundscheck: bool = True
    opt: int = 3
    cache: bool = True


@dataclass(frozen=True)
class Request:
    """One function to compile for one kind of arguments."""

    function: Callable[..., Any]
    arguments: tuple[str, ...]
    """One key for each parameter: `f64[?,?]C`, `py_int`, `(f64,None)`, ..."""
    overlaps: tuple[tuple[int, int, str], ...] = ()
    """Parameter positions i < j that share memory: "same" (the identical view) or "overlap"."""
    mode: str = "primal"  # "primal" | "gradient"
    wrt: tuple[int, ...] = ()
    """gradient: parameter positions, in the order of the returned gradients."""
    single: bool = True
    """gradient: return one gradient rather than a tuple (wrt was one name)."""
    options: Options = field(default_factory=Options)


@dataclass(frozen=True)
class Artifact:
    """What remains of a compilation: machine code, and what the runtime must know (JSON-able)."""

    object_code: bytes
    metadata: dict[str, Any]


PASSES: tuple[type[ModulePass], ...] = (
    PromoteScalars,
    EliminateCommon,
    FoldConstants,
    ForwardStores,
    FuseElementwise,
    HoistInvariants,
    HoistAllocs,
    RemoveDead,
)
"""Every pass that `mutad-opt -p` knows by name."""
