"""Every pass, in the order in which it runs, with its reason. Read `SIMPLIFY`, then `OPTIMIZE`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from xdsl.passes import ModulePass

from .analysis.print_analyses import PASSES as PRINTED_ANALYSES
from .compilation import Compilation
from .derivative.checkpoint_loops import CheckpointLoops
from .derivative.drop_guards import DropGuards
from .derivative.expand_derivatives import ExpandDerivatives
from .derivative.factor_cotangents import FactorCotangents
from .derivative.hessian_products import KeepProduct
from .derivative.keep_tangents import KeepTangents
from .derivative.passes import Forward, PrintNeeded, PrintPlan, Reverse
from .derivative.raise_recurrences import RaiseRecurrences
from .derivative.sanitize_derivatives import SanitizeDerivatives
from .sizes.reserve_tapes import ReserveTapes
from .sizes.step_sizes import MeasureSteps
from .sizes.work_size import MeasureWork
from .transforms.assume_extents import AssumeExtents
from .transforms.assume_lengths import AssumeLengths
from .transforms.block_rows import BlockRows
from .transforms.carried_extents import CarriedExtents
from .transforms.check_claims import CheckClaims
from .transforms.close_counters import CloseCounters
from .transforms.collect_products import CollectProducts
from .transforms.collect_step_products import CollectStepProducts
from .transforms.describe_calls import DescribeCalls
from .transforms.distribute_loops import DistributeLoops
from .transforms.drop_argument_fills import DropArgumentFills
from .transforms.drop_carried import DropCarried
from .transforms.drop_overwritten import DropOverwritten
from .transforms.eliminate_common import EliminateCommon
from .transforms.eliminate_dead_stores import EliminateDeadStores
from .transforms.exchange_arrays import ExchangeArrays
from .transforms.exchange_copied import ExchangeCopied
from .transforms.finish_rows import FinishRows
from .transforms.fold_bounds import FoldBounds
from .transforms.fold_constants import FoldConstants
from .transforms.fold_orders import FoldOrders
from .transforms.forward_stores import ForwardStores
from .transforms.fuse_adjacent_nests import FuseAdjacentNests
from .transforms.fuse_elementwise import FuseElementwise
from .transforms.fuse_gathers import FuseGathers
from .transforms.fuse_reductions import FuseReductions
from .transforms.fuse_rows import FuseRows
from .transforms.gather_adds import GatherAdds
from .transforms.gather_sums import GatherSums
from .transforms.hoist_allocs import HoistAllocs
from .transforms.hoist_branch_allocs import HoistBranchAllocs
from .transforms.hoist_checks import HoistChecks
from .transforms.hoist_invariants import HoistInvariants
from .transforms.hoist_loads import HoistLoads
from .transforms.hoist_raises import HoistRaises
from .transforms.jam_maps import JamMaps
from .transforms.lift_choices import LiftChoices
from .transforms.localize_cells import LocalizeCells
from .transforms.merge_additions import MergeAdditions
from .transforms.move_conditions import MoveConditions
from .transforms.order_sums import OrderSums
from .transforms.pack_columns import PackColumns
from .transforms.pair_mirrored import PairMirrored
from .transforms.peel_boundaries import PeelBoundaries
from .transforms.privatize_cells import PrivatizeCells
from .transforms.promote_scalars import PromoteScalars
from .transforms.raise_adjoints import RaiseAdjoints
from .transforms.raise_loops import RaiseLoops
from .transforms.read_originals import ReadOriginals
from .transforms.remove_dead import RemoveDead
from .transforms.reorder_loops import ReorderLoops
from .transforms.resolve_overlap import ResolveOverlap
from .transforms.reuse_allocs import ReuseAllocs
from .transforms.reverse_arrays import ReverseArrays
from .transforms.rotate_sums import RotateSums
from .transforms.save_in_place import SaveInPlace
from .transforms.scalar_replace_carried import ScalarReplaceCarried
from .transforms.select_stores import SelectStores
from .transforms.select_values import SelectValues
from .transforms.separate_sums import SeparateSums
from .transforms.shorten_recurrences import ShortenRecurrences
from .transforms.sink_maps import SinkMaps
from .transforms.skew_steps import SkewSteps
from .transforms.skew_vectors import SkewVectors
from .transforms.split_maps import SplitMaps
from .transforms.step_on_rows import StepOnRows
from .transforms.step_on_tape import StepOnTape
from .transforms.step_on_tapes import StepOnTapes
from .transforms.store_first import StoreFirst
from .transforms.store_parts import StoreParts
from .transforms.tile_registers import TileRegisters
from .transforms.transpose_columns import TransposeColumns
from .transforms.transpose_matrices import TransposeMatrices
from .transforms.transpose_rows import TransposeRows
from .transforms.unify_extents import UnifyExtents
from .transforms.unroll_and_jam import UnrollAndJam
from .transforms.unroll_steps import UnrollSteps
from .transforms.vectorize_outer import VectorizeOuter
from .transforms.write_products import WriteProducts

SIMPLIFY: tuple[ModulePass, ...] = (
    EliminateCommon(),  # the others compare subscripts and index spaces by identity
    UnifyExtents(),  # past a check of shapes there is one index space
    FuseElementwise(),  # one map for each operation of NumPy is many
    FoldConstants(),  # slices and shapes shrink to what is not known
    DropCarried(),  # an array that keeps its place has one name
    CarriedExtents(),  # arrays that change places have one index space
    MoveConditions(),  # the reverse sweep reverses bodies
    PromoteScalars(),  # stores kill cells, never values
    CloseCounters(),  # the length of a list that grows is affine in the iteration
    EliminateCommon(),  # what folding and promotion made equal
    ForwardStores(),  # an element read back is a value
    FoldBounds(),  # slices by counters have one extent each, and those of one length the same
    FoldOrders(),  # a check that never raises keeps nothing from vectors
    FoldConstants(),  # flags that are values now
    ResolveOverlap(),  # from here on a map may go through its points in any order
    UnifyExtents(),  # past a check of shapes there is one index space
    EliminateCommon(),
    FuseElementwise(),  # a temporary that does not exist has no shadow
    HoistInvariants(),  # an invariant is computed once, for both sweeps
    EliminateCommon(),  # what hoisting brought together
    HoistBranchAllocs(),  # an array that leaves a branch has its shadow outside
    LiftChoices(),  # the reverse sweep chooses the shadow before it reverses the branch
    HoistChecks(),  # neither sweep checks what was checked on entry
    SelectStores(),  # a loop without branches may be a map
    SelectValues(),  # or is vectorized, with its adjoint
    VectorizeOuter(),  # serial inner loops run for many points at once
    HoistRaises(),  # a loop without exits may be a map, too
    RaiseLoops(),  # independent iterations are a map, whose adjoint is one
    EliminateCommon(),  # the views that raising made
    WriteProducts(),  # a product is saved or overwritten at its destination
    RemoveDead(),  # a store that is never read kills nothing
    DescribeCalls(),  # nor does a call that no longer stores
)

FOR_THREADS: tuple[ModulePass, ...] = (
    PrivatizeCells(unset=True),  # iterations that share no variable share no save
    CheckClaims(),  # after promote-scalars and privatize-cells: cells look like dependences
)
"""What runs at the end of `simplify` with `parallel=True`, and for devices."""

ROW_BY_ROW: tuple[ModulePass, ...] = (
    FinishRows(),  # the reverse sweep needs what one row was, not all of them
)
"""What runs before the plan of a gradient: not with `parallel=True`, and not for devices, where all rows that
a step updates are updated at once."""

POINT_BY_POINT: tuple[ModulePass, ...] = (
    EliminateCommon(),  # the rules of several ops ask for the same values
    FoldConstants(),
    PromoteScalars(),  # cotangents of scalars come in cells
    UnifyExtents(),  # the checks of the forward sweep hold in the reverse sweep
    EliminateCommon(),
    ForwardStores(),
    EliminateDeadStores(),  # a cotangent that is only read stays where it is
    DropOverwritten(),  # a temporary's shadow is filled once
    FuseElementwise(),
    HoistInvariants(),
)
"""What runs on adjoints: maps are point by point."""

OPTIMIZE: tuple[ModulePass, ...] = (
    LocalizeCells(),  # as in the loop, numbers that steps hand on are variables
    EliminateCommon(),
    AssumeLengths(),  # maps over equally many points can be fused, without checks
    *POINT_BY_POINT,
    EliminateCommon(),
    RaiseAdjoints(),  # raised loops fuse with maps, and store over fills
    SinkMaps(),  # maps are fused with maps; the rest may go into loops
    RemoveDead(),
    DropCarried(),  # the reverse sweep swaps the arrays that it reads
    GatherAdds(),  # passes before this take maps point by point
    SeparateSums(),  # after gather-adds: what it gathers needs no temporary
    StoreFirst(),  # after gathering and separating, a map touches each element once
    StoreParts(),  # what store-first leaves: sums that each touch a part of the zeros
    SaveInPlace(),  # saves are maps of their own; a step may be one from a copy that is saved
    StepOnTape(),  # what is saved still goes to temporaries
    StepOnRows(),  # as step-on-tape, of steps that run again
    StepOnTapes(),  # as step-on-rows, where each row has a tape
    ReadOriginals(),  # what a step copied to overwrite it, the tape has
    FuseElementwise(),  # without the fill, a map reads the old contents in place
    EliminateCommon(),  # views of what is gathered
    PairMirrored(),  # what cannot be read in place; before fuse-rows, which splits maps
    FuseReductions(),  # maps read what they will; before fuse-rows, which splits them
    SkewSteps(),  # before fuse-rows, which does one step of those that are left
    UnrollSteps(),  # as skew-steps, of steps with temporaries, which fuse-rows then rolls
    FuseRows(),  # arrays between maps stay in the cache; before hoist-allocs, which moves them
    FuseGathers(),  # after fuse-rows, which takes a map for each array
    BlockRows(),  # maps are fused; what is in loops stays in the cache, too
    HoistInvariants(),
    HoistAllocs(),  # nothing allocates inside of loops
    EliminateCommon(),
    ExchangeArrays(),  # both arrays are there before the loop, and nothing shares their memory yet
    ExchangeCopied(),  # as exchange-arrays
    SkewVectors(),  # after exchange-copied: without copies a step may stay behind another
    ReuseAllocs(),  # shadows take the memory of dead temporaries of the forward sweep
    PeelBoundaries(),  # reordering and vectorization need a body without branches
    TransposeRows(),  # transposed rows need no assumption about their length
    AssumeExtents(),  # strides become constants
    ReorderLoops(),  # no later pass needs the program's own order
    FuseAdjacentNests(),  # both nests go along rows
    CollectProducts(),  # after reorder-loops, products are innermost
    CollectStepProducts(),  # steps of a budget have the products of blocks, too
    TransposeMatrices(),  # after collect-products: its operands need no copies
    TransposeColumns(),  # after transpose-matrices, which also handles stores
    PackColumns(),  # functions of steps pack as their nests do
    ReverseArrays(),  # loops and their maps are final, and lie as they go through matrices
    GatherSums(),  # the sums that are no products, and that no loop order helps
    TileRegisters(),  # loop orders are final; before unroll-and-jam, which does less
    MergeAdditions(),  # maps are final; iterations that jam-maps runs at once add in their order
    JamMaps(),  # matrices lie as nests go through them; loops of one update are for unroll-and-jam
    RotateSums(),  # sums and updates of four rows are one map each
    UnrollAndJam(),  # innermost loops go along rows by now
    HoistLoads(),  # loops are where they stay; before passes over innermost loops
    ScalarReplaceCarried(),  # bodies and directions of loops are final
    ShortenRecurrences(),  # after scalar-replace-carried; what is beside chains may be vectors
    DistributeLoops(),  # after interchanges, which may make it unnecessary
    DropArgumentFills(),  # last: the fills that no pass removed
    OrderSums(),  # maps are final
)

FOR_CACHES = (
    *(
        SinkMaps,
        SeparateSums,
        StoreParts,
        SaveInPlace,
        StepOnTape,
        StepOnRows,
        StepOnTapes,
        ReadOriginals,
        PairMirrored,
        FuseReductions,
        SkewSteps,
        UnrollSteps,
        FuseRows,
        FuseGathers,
        BlockRows,
        ExchangeCopied,  # on a device, the elements that it copies are one more launch
        SkewVectors,
        PeelBoundaries,
        TransposeRows,
        AssumeExtents,
        ReorderLoops,
    ),
    *(
        FuseAdjacentNests,
        CollectProducts,
        CollectStepProducts,
        TransposeMatrices,
        TransposeColumns,
        PackColumns,
        ReverseArrays,
        GatherSums,
    ),
    *(
        TileRegisters,
        MergeAdditions,
        JamMaps,
        RotateSums,
        UnrollAndJam,
        HoistLoads,
        ScalarReplaceCarried,
        ShortenRecurrences,
        DistributeLoops,
        OrderSums,
    ),
)
"""Passes that are about caches, registers and vectors."""

FOR_KERNELS = tuple(one for one in OPTIMIZE if type(one) not in FOR_CACHES)
"""What runs where kernels are made of the program."""

OF_THE_LAST = (
    *(
        LocalizeCells,
        AssumeLengths,
        RaiseAdjoints,
        GatherAdds,
        StoreFirst,
        HoistAllocs,
        ExchangeArrays,
    ),
    *(ReuseAllocs, DropArgumentFills, *FOR_CACHES),
)
"""Passes that run behind the last derivative alone."""

BEFORE_ANOTHER: tuple[ModulePass, ...] = (
    *(one for one in OPTIMIZE if type(one) not in OF_THE_LAST),
    SplitMaps(),
)
"""What runs between two derivatives: arrays are whole, memory leaves loops and is shared, and loops are
reordered, after the last, and maps are as rules take them."""

PASSES: tuple[type[ModulePass], ...] = (
    AssumeExtents,
    AssumeLengths,
    BlockRows,
    EliminateCommon,
    ExchangeArrays,
    ExchangeCopied,
    FoldConstants,
    FoldOrders,
    PromoteScalars,
    PeelBoundaries,
    ForwardStores,
    FuseElementwise,
    FuseRows,
    SkewSteps,
    SkewVectors,
    UnrollSteps,
    GatherAdds,
    GatherSums,
    ScalarReplaceCarried,
    HoistInvariants,
    HoistLoads,
    HoistAllocs,
    HoistBranchAllocs,
    JamMaps,
    FuseGathers,
    FuseReductions,
    FuseAdjacentNests,
    DropArgumentFills,
    FinishRows,
    LiftChoices,
    LocalizeCells,
    MergeAdditions,
    PrivatizeCells,
    MoveConditions,
    OrderSums,
    PackColumns,
    PairMirrored,
    WriteProducts,
    HoistChecks,
    HoistRaises,
    RaiseAdjoints,
    RaiseLoops,
    ReadOriginals,
    CarriedExtents,
    CheckClaims,
    CloseCounters,
    CollectProducts,
    CollectStepProducts,
    DescribeCalls,
    DistributeLoops,
    DropCarried,
    DropOverwritten,
    EliminateDeadStores,
    RemoveDead,
    ReorderLoops,
    ResolveOverlap,
    ReuseAllocs,
    ReverseArrays,
    RotateSums,
    SaveInPlace,
    SelectStores,
    SelectValues,
    SeparateSums,
    ShortenRecurrences,
    FoldBounds,
    SinkMaps,
    SplitMaps,
    StepOnRows,
    StepOnTape,
    StepOnTapes,
    StoreFirst,
    StoreParts,
    TileRegisters,
    TransposeColumns,
    TransposeMatrices,
    TransposeRows,
    UnifyExtents,
    UnrollAndJam,
    VectorizeOuter,
    *PRINTED_ANALYSES,
    PrintNeeded,
    PrintPlan,
    RaiseRecurrences,
    Reverse,
    Forward,
    KeepProduct,
    KeepTangents,
    ExpandDerivatives,
    SanitizeDerivatives,
    DropGuards,
    FactorCotangents,
    MeasureWork,
    ReserveTapes,
    CheckpointLoops,
    MeasureSteps,
)
"""Every pass that `mutad-opt -p` knows by name."""


REORDERING = (
    ReorderLoops
    | FuseAdjacentNests
    | CollectProducts
    | CollectStepProducts
    | GatherSums
    | UnrollAndJam
    | ShortenRecurrences
    | DistributeLoops
)
"""The passes that `fastmath` lets change the order of sums."""


THREADED = (
    HoistAllocs | CollectProducts | TransposeMatrices | GatherSums | TileRegisters | UnrollAndJam
)
"""The passes that leave threads memory, or iterations, of their own."""


def for_threads(c: Compilation, passes: Sequence[ModulePass]) -> list[ModulePass]:
    """The passes, with `parallel=True` such that threads have memory, and large maps, of their own."""
    if not c.request.options.parallel:
        return [*passes]
    # Loops over blocks go step by step, and a sum alone has its order.
    by_rows = SkewSteps | SkewVectors | UnrollSteps | FuseRows | BlockRows
    alone = by_rows | SinkMaps | FuseReductions | JamMaps | RotateSums | CollectStepProducts
    kept = [p for p in passes if not isinstance(p, alone)]
    return [replace(p, threads=True) if isinstance(p, THREADED) else p for p in kept]


def with_options(c: Compilation, passes: Sequence[ModulePass]) -> list[ModulePass]:
    """The passes as threads, `fastmath` and derivatives have them."""
    alone, free = c.request.mode == "primal", c.request.options.fastmath

    def with_option(p: ModulePass) -> ModulePass:
        if isinstance(p, ReverseArrays):
            return replace(p, sums=True) if alone else p
        return replace(p, fastmath=True) if free and isinstance(p, REORDERING) else p

    # Of a function alone two steps in one body gain 2 %, and take twice as long to compile.
    kept = [p for p in passes if not (alone and isinstance(p, UnrollSteps))]
    return [with_option(p) for p in for_threads(c, kept)]
