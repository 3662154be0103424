"""The entries: functions with CPython's calling convention around a kernel, as LLVM text.

What they are depends on how the kernel is called alone (`convention`), not on what it does, so entries are
modules of their own, each compiled once for all kernels that are called alike.

An entry checks the arguments (`guard`), calls the kernel without the GIL, and makes Python
objects of its results (`result`). There is one for each *kind* of call:

- `primal` takes the function's arguments;
- `grad` and `value_and_grad` take the function's arguments (and `wrt=`), allocate the shadows and
  return the gradients. They exist where the result is a float scalar and no active arguments
  share memory;
- `pullback` takes the arguments, one shadow for each active array, one cotangent for each float
  result, and returns `(result, cotangents of the active scalars)`. Python code validates them;
- `pulled` is what users call `pullback` (`pulled`);
- `pushforward` takes what `pullback` takes, where there are shadows, and the tangents of what moves; it
  returns a tuple of the result and what else the kernel has computed (`tangents`);
- `jvp`, `pushed` (what users call `pushforward`), `hvp` and `value_grad_hvp` take what users hand to them
  (`directions`, `wrapped`). They exist where an entry can make all that they return;
- `recorded` is what users call `vjp`: it checks the arguments, and calls the link's `record` with them;
  so does `rows`, which is `jacobian` by rows;
- `forward` takes the arguments and the address of a record, which it fills; `back` takes that address,
  shadows and cotangents; `drop` gives back the memory that the record refers to (`handles`); `pull` does what
  `back` is asked for by users (`pull`).

Each is a method of its *link* (`mutad.runtime.link.Link`), whose slots it reads: on a mismatch
it calls the link's `next`. So a call costs one guard for each specialization that is older.

Example, for `def f(x): ...` with the key `f64[?]C`::

    define ptr @mutad_entry_primal(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
      ...                                                     ; the guard
      %thread = call ptr @PyEval_SaveThread()
      %status = call i32 %kernel(ptr %ctx, ptr %data, i64 %n, i64 %stride, ptr %results)
      call void @PyEval_RestoreThread(ptr %thread)
      ...                                                     ; status, then the result
    }

The text refers to Python and NumPy by external symbols only, so the object code can be cached. Where the
kernel is the link says, in its slot `code`; `exported` is what a module of kernels has for that.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from ...request import JOINT
from ..kernel_module import WHOLE
from ..support.library import linked
from .captures import inputs, require_constants
from .cold import COLD, undo
from .directions import (
    Directions,
    direction_objects,
    fresh_seconds,
    moving_objects,
    return_products,
    stacks_of,
    stored_directions,
    tangent_objects,
)
from .guard import ArrayValue, check_assumed, check_sharing, unpack
from .handles import back, drop, handed_address
from .keywords import keywords, with_mode
from .matrices import MATRICES, filling, has_matrix, match, matrix
from .plan import (
    EntryPlan,
    GradientSignature,
    Signature,
    convention,
    gradient_signature,
    signature_of,
)
from .pull import MEMORY, has_pull, pull
from .pulled import MEMCPY, Handed, bar_operands, has_pulled, restored, unwrapped
from .result import Boxes, slot_count
from .run import CTX_BYTES, endings, run_kernel
from .shadows import cotangent_operands, shadow_objects, shadow_operands, tangent_operands
from .stacked import turned_back
from .tangents import in_lanes, scalar_spec
from .wrapped import WRAPPED, handed_in, naming, unwrapping
from .writer import Writer, declarations, undo_function

__all__ = [
    "Entries", "GradientSignature", "convention", "entries", "entry_symbols", "exported", "exports",
    "gradient_signature", "signature_of",
]  # fmt: skip

GIVEN_ALL = ("pullback", "forward", "pushforward")
"""The kinds whose caller hands in everything, in order, and has proved the key."""
PRODUCTS = ("hvp", "value_grad_hvp")
"""The kinds that return Hessian-vector products."""
PUSHING = ("pushforward", "jvp", *PRODUCTS)
"""The kinds that call a kernel with tangents."""
DERIVING = ("pullback", "pulled", "grad", *PUSHING)
"""The kinds that call a kernel with shadows, cotangents or tangents."""
FAST = ("grad", "value_and_grad", "jvp", "pushed", "recorded", *PRODUCTS)
"""The kinds whose caller is the user, and which exist where `EntryPlan.has_fast` says so."""


@dataclass(frozen=True)
class Entries:
    """The entries of one module."""

    text: str
    """Definitions. They need `declarations` in the same module."""
    declarations: tuple[str, ...]
    """One line for each external symbol; disjoint from what kernels declare."""
    symbols: dict[str, str]
    """External symbol -> kind: "python", "numpy", "arrays", "libc" or "support"."""

    def module(self) -> str:
        """The text that can be compiled alone."""
        return "\n".join([*self.declarations, self.text])


def entries(convention: str, debug: tuple[str, str] = ("", "")) -> Entries:
    """The entries for kernels that are called like this; `debug` is the `entry` of the kernel's text."""
    plan = EntryPlan.of(convention, debug)
    symbols: dict[str, str] = {}
    kinds = kinds_of(plan)
    functions: list[str] = []
    if set(MATRICES) & set(kinds):
        functions += filling(plan)
    if "pulled" in kinds:
        functions.append(MEMCPY)
    if "pull" in kinds:
        functions.append(MEMORY)
    if plan.driver:
        functions.append(undo(symbols, plan.driver))
    if "grad" in kinds:
        functions.append(_shared(plan, "grad", "mutad_gradient", "%valued", symbols))
    if "jvp" in kinds:
        functions += [unwrapping(plan, symbols), naming(plan, symbols)]
        functions.append(_shared(plan, "jvp", "mutad_tangent", WRAPPED, symbols))
    functions += [_definition(plan, kind, symbols) for kind in kinds]
    text = "\n\n".join(functions) + "\n"
    shared = linked(text)
    declared = (*declarations(symbols), *shared.declarations.values())
    return Entries(text, declared, {**symbols, **shared.symbols})


def entry_symbols(convention: str) -> dict[str, str]:
    """Kind of call -> exported symbol."""
    return {kind: f"mutad_entry_{kind}" for kind in kinds_of(EntryPlan.of(convention))}


def kinds_of(plan: EntryPlan) -> list[str]:
    """The kinds of entries that a module has."""
    users = USERS.get(plan.mode, ()) if plan.has_fast() else ()
    matrices = MATRIX.get(plan.mode, ()) if users and has_matrix(plan) else ()
    pulls = ("pull",) if has_pull(plan) else ("pulled",) if has_pulled(plan) else ()
    rows = ("rows",) if plan.has_rows() else ()
    kinds = [*KINDS[plan.mode], *users, *matrices, *pulls, *rows]
    return [kind for kind in kinds if plan.takes(fresh=kind in users)]


KINDS = {
    "primal": ("primal",),
    "gradient": ("pullback",),
    "pullback": ("pullback",),
    "vjp": ("forward", "back", "drop"),
    "tangent": ("pushforward",),
    "tangent-alone": ("pushforward",),
    "hvp": ("pushforward",),
    "product": ("pushforward",),
    "reverse-hvp": ("pushforward",),
    "count": ("primal",),
    "count-split": ("primal",),
}
"""The kinds of entries that a module has in any case."""

USERS = {
    "gradient": ("grad", "value_and_grad"),
    "tangent": ("jvp", "pushed"),
    "hvp": ("value_grad_hvp",),
    "product": ("hvp",),
    "vjp": ("recorded",),
}
"""The kinds that it has besides, for calls that need no more than an entry."""

MATRIX = {"tangent": ("jacobian",), "product": ("hessian",)}
"""The kinds that it has besides these, where several tangents go along."""

KERNELS = {"vjp": {"kernel": "kernel", "backward": "backward", "drop": "mutad_drop"}}
"""By mode, what of a module its entries call, by the names in `CODE`; elsewhere the kernel alone."""


def exports(mode: str, *, short: bool = False) -> dict[str, str]:
    """The exported symbols of what the entries of a mode call, by the names in `CODE`; and of a kernel for
    `short` tapes, which that for long ones calls."""
    return {name: f"mutad_exported_{name}" for name in called_by(mode, short=short)}


def exported(mode: str, *, short: bool = False) -> str:
    """The definitions of these symbols, behind kernels that nothing else calls."""
    called, symbols = called_by(mode, short=short), exports(mode, short=short)
    lines = (f"@{symbol} = alias i32 (), ptr @{called[n]}" for n, symbol in symbols.items())
    return "\n".join(lines) + "\n"


def called_by(mode: str, *, short: bool) -> dict[str, str]:
    """What of a module others call."""
    called = KERNELS.get(mode, {"kernel": "kernel"})
    return {**called, "whole": WHOLE} if short else called


CALLED = "(ptr %self, ptr %args, i64 %nargs, ptr %kwnames"
"""What CPython hands to an entry."""


def _definition(plan: EntryPlan, kind: str, symbols: dict[str, str]) -> str:
    """One entry. What Python code of ours calls, and takes longer than any entry, is not optimized."""
    attributes = ""
    match kind:
        case "grad" | "value_and_grad":
            valued = str(kind == "value_and_grad").lower()
            body = f"  %made = call ptr @mutad_gradient{CALLED}, i1 {valued})\n  ret ptr %made"
        case "jvp" | "pushed":
            wrapped = str(kind == "pushed").lower()
            body = f"  %made = call ptr @mutad_tangent{CALLED}, i1 {wrapped})\n  ret ptr %made"
        case "primal":
            body, attributes = _entry(plan, kind, symbols), plan.debug[0]
        case "hvp" | "value_grad_hvp":
            body = _entry(plan, kind, symbols)
        case "pull":
            body, attributes = pull(plan, symbols), COLD
        case "pulled":
            body, attributes = _entry(plan, kind, symbols), COLD
        case "recorded" | "rows":
            body, attributes = _recorded(plan, kind, symbols), COLD
        case "back":
            body, attributes = back(plan, symbols), COLD
        case "drop":
            body, attributes = drop(symbols), COLD
        case _:
            body, attributes = _entry(plan, kind, symbols), COLD
    return f"define ptr @mutad_entry_{kind}{CALLED}) {attributes}{{\nentry:\n{body}\n}}"


def _shared(plan: EntryPlan, kind: str, name: str, flag: str, symbols: dict[str, str]) -> str:
    """What two entries both are. `%valued` says whether `grad` returns the value, too; `%wrapped` whether
    what `jvp` takes comes in wrappers."""
    head = f"define internal ptr @{name}{CALLED}, i1 {flag}) noinline"
    return f"{head} {{\nentry:\n{_entry(plan, kind, symbols)}\n}}"


def _entry(plan: EntryPlan, kind: str, symbols: dict[str, str]) -> str:
    """The body of one entry that takes the function's arguments."""
    w = Writer(symbols)
    count = len(plan.keys)
    behind = plan.tangents.more if kind in (*PUSHING, *MATRICES) else ()
    slots = slot_count(plan.results) + plan.lanes * len(plan.gradient.scalars)
    slots += sum(map(slot_count, behind))
    words_of = {
        "ctx": CTX_BYTES // 8,
        "results": slots,
        "pending": slots,
        "filled": count,
        "nothing": plan.lanes,
    }
    if kind == "forward":
        del words_of["results"]
    for name, words in words_of.items():
        w.do(f"%{name} = alloca [{max(words, 1)} x i64], align 64")
    w.do("%overflow = alloca i32")
    boxes = Boxes(w, plan.driver, stacked=plan.directions > 1 and kind in FAST)
    boxes.beside = WRAPPED if kind == "jvp" else ""
    boxes.begin()
    w.do(f"store [{max(slots, 1)} x i64] zeroinitializer, ptr %pending")
    w.do(f"store [{plan.lanes} x i64] zeroinitializer, ptr %nothing")
    proved = w.slot("proved")
    w.do(f"%is_proved = icmp ne ptr {proved}, null")
    by_themselves = kind in ("jvp", "pulled", *MATRICES)
    form, given = ("", "") if by_themselves else keywords(w, plan, kind)
    if kind in MATRICES:
        match(w, plan, kind)
    tangents: list[str] = []
    wrapped = Handed()
    if kind in GIVEN_ALL:
        w.require("%is_proved")
        objects_in = [w.field("%args", 8 * i, hint="arg") for i in range(count)]
        if kind == "forward":
            w.do(f"%results = getelementptr i8, ptr {handed_address(w, count)}, i64 0")
    else:
        require_constants(w)
        if kind == "jvp":
            arguments, tangents = handed_in(w, plan, _positional)
        elif kind == "pulled":
            wrapped = unwrapped(w, plan)
            arguments = wrapped.primals
        else:
            arguments = _positional(w, plan.signature, plan.inputs)
        named = plan.signature.parameters
        objects_in = [w.field(arguments, 8 * i, hint="arg") for i in range(named)]
        boxes.made += inputs(w, boxes, plan.inputs, named)
        objects_in += boxes.made
    unpacked = [
        unpack(w, key, obj, written=i in plan.written)
        for i, (key, obj) in enumerate(zip(plan.keys, objects_in, strict=True))
    ]
    in_memory = [(i, a) for i, u in enumerate(unpacked) for a in u if isinstance(a, ArrayValue)]
    leaves = [leaf for part in unpacked for leaf in part if leaf.operands()]
    arrays = {k: a for k, a in enumerate(leaves) if isinstance(a, ArrayValue)}
    check_sharing(w, in_memory, plan.overlaps, plan.watched())
    check_assumed(w, leaves, plan.assumed)
    directions = Directions()
    if kind == "jvp":
        directions = tangent_objects(w, plan, tangents, objects_in, in_memory)
    elif kind in PRODUCTS:
        directions = direction_objects(w, plan, form, given, objects_in)

    operands = [text for leaf in leaves for text in leaf.operands()]
    if kind in MATRICES:
        matrix(w, plan, kind, boxes, objects_in, operands)
        return "\n".join(w.lines)
    shadows: dict[int, str] = {}
    seconds: dict[int, str] = {}
    if kind in PRODUCTS:
        seconds = fresh_seconds(w, plan, boxes, objects_in)
    if kind in DERIVING:
        bars: list[str] = []
        if kind == "pulled":
            bars = bar_operands(w, plan, wrapped, objects_in, in_memory)
            shadows = {p: wrapped.shadows[p] for p in plan.gradient.shadows}
        else:
            instead = seconds if kind == "hvp" else {}
            shadows = shadow_objects(w, plan, kind, boxes, objects_in, instead)
            bars = cotangent_operands(w, plan, kind, count + len(shadows))
        for position, shadow in shadows.items():
            operands += shadow_operands(w, plan, position, shadow)
        operands += bars
    moving: list[str] = []
    if kind in PUSHING:
        first = count + len(shadows) + len(plan.gradient.cotangents)
        if kind == "pushforward":
            moving = [
                w.field("%args", 8 * (first + i), hint="tangent")
                for i in range(len(plan.tangents.keys))
            ]
        else:
            moving = moving_objects(w, plan, boxes, directions, seconds, objects_in)
        handed, own = tangent_operands(w, plan, moving)
        if boxes.stacked:
            boxes.stacks = stacks_of(plan, directions)
        operands += handed
        arrays |= own
    tag = plan.debug[1] if kind == "primal" else ""
    retries, lengthens = kind in DERIVING, plan.mode in JOINT
    run_kernel(w, operands, recursive=plan.recursive, tag=tag, retries=retries, lengthens=lengthens)

    boxes.claim((plan.results, *behind), arrays)
    value = "" if kind in ("grad", "hvp") else boxes.result(plan.results, 0, arrays)
    slot = slot_count(plan.results)
    if kind in PRODUCTS:
        return_products(w, plan, boxes, form, value, shadows, seconds)
        endings(w, boxes, plan.inputs, retries=True)
        return "\n".join(w.lines)
    if kind in ("pushforward", "jvp"):
        others: list[str] = []
        for spec in behind:
            others.append(boxes.result(spec, slot, arrays))
            slot += slot_count(spec)
        stored = stored_directions(plan, directions, moving) if kind == "jvp" else []
        turned_back(w, stored, WRAPPED)
        boxes.finish(boxes.tuple([value, *others]))
        endings(
            w,
            boxes,
            0 if kind in GIVEN_ALL else plan.inputs,
            retries=True,
            before_raising=lambda: turned_back(w, stored, WRAPPED),
        )
        return "\n".join(w.lines)
    gradients: dict[int, str] = dict(shadows)
    for position in plan.gradient.scalars if kind in DERIVING else ():
        spec = in_lanes(scalar_spec(plan.keys[position]), plan.lanes)
        gradients[position] = boxes.result(spec, slot, arrays)
        slot += plan.lanes
    if kind in DERIVING:
        for position in plan.wrt_scalars():
            if position not in gradients:
                gradients[position] = boxes.zero(plan.scalar_type(position))
    if kind not in DERIVING:
        boxes.finish(value)
    elif kind in ("pullback", "pulled"):
        scalars = boxes.tuple([gradients[p] for p in plan.wrt_scalars()])
        boxes.finish(boxes.tuple([value, scalars]))
    else:
        in_order = [gradients[p] for p in plan.wrt]
        _return_gradients(w, boxes, in_order, partial(boxes.result, plan.results, 0, arrays), form)
    held = 0 if kind in GIVEN_ALL else plan.inputs
    again = partial(restored, w, wrapped)
    endings(w, boxes, held, retries=retries, lengthens=lengthens, before_retrying=again)
    return "\n".join(w.lines)


def _recorded(plan: EntryPlan, kind: str, symbols: dict[str, str]) -> str:
    """The body of an entry that leaves its own calls, of `vjp` or of `jacobian`, to its link's `record`.

    Of one float there are fewer rows than columns; else rows must have been asked for.
    """
    w, count = Writer(symbols), len(plan.keys)
    w.do(f"%filled = alloca [{max(count, 1)} x i64], align 64")
    w.do(f"%handed = alloca [{1 + count} x ptr], align 64")
    w.do("%overflow = alloca i32")
    w.do(f"%is_proved = icmp ne ptr {w.slot('proved')}, null")
    if kind == "rows" and plan.results["kind"] != "scalar":
        form = with_mode(w, plan)
    else:
        form, _ = keywords(w, plan, kind)
    require_constants(w)
    arguments = _positional(w, plan.signature, 0)
    objects = [w.field(arguments, 8 * i, hint="arg") for i in range(count)]
    unpacked = [
        unpack(w, key, obj, written=i in plan.written)
        for i, (key, obj) in enumerate(zip(plan.keys, objects, strict=True))
    ]
    in_memory = [(i, a) for i, u in enumerate(unpacked) for a in u if isinstance(a, ArrayValue)]
    check_sharing(w, in_memory, plan.overlaps, plan.watched())
    check_assumed(w, [leaf for part in unpacked for leaf in part if leaf.operands()], plan.assumed)
    known = [w.object(name) for name in ("_Py_TrueStruct", "_Py_FalseStruct")]
    is_one = w.value(f"icmp eq i32 {form}, 1")
    single = w.value(f"select i1 {is_one}, ptr {known[0]}, ptr {known[1]}")
    for k, obj in enumerate((single, *objects)):
        w.store("ptr", obj, "%handed", 8 * k)
    operands = w.slot("record"), "%handed", str(1 + count), "null"
    w.do(f"ret ptr {w.call('PyObject_Vectorcall', *operands)}")
    w.label("mismatch")
    onward = w.call("PyObject_Vectorcall", w.slot("next"), "%args", "%nargs", "%kwnames")
    w.do(f"ret ptr {onward}")
    return "\n".join(w.lines)


def _positional(w: Writer, signature: Signature, inputs: int) -> str:
    """The array of the arguments for all parameters: the caller's, or a copy completed with defaults.

    Who has proved the key hands in the captured inputs as well, behind the arguments.
    """
    count = signature.parameters
    if inputs:
        wanted = w.value(f"select i1 %is_proved, i64 {count + inputs}, i64 {count}", "wanted")
    else:
        wanted = str(count)
    if count == 0:
        w.require(w.value(f"icmp eq i64 %nargs, {wanted}"))
        return "%args"
    complete = w.value(f"icmp eq i64 %nargs, {wanted}")
    if signature.positional < count:
        complete = w.value(f"and i1 {complete}, %is_proved")
    w.do(f"br i1 {complete}, label %given, label %fewer")
    w.label("fewer")
    filled = w.value(
        f"call ptr @mutad_completed(ptr %self, ptr %args, i64 %nargs, ptr %filled, "
        f"i64 {count}, i64 {signature.positional})"
    )
    unknown = w.value(f"icmp eq ptr {filled}, null")
    w.do(f"br i1 {unknown}, label %mismatch, label %given.or.filled")
    w.label("given")
    w.do("br label %given.or.filled")
    w.label("given.or.filled")
    return w.value(f"phi ptr [ %args, %given ], [ {filled}, %fewer ]", "arguments")


def _return_gradients(
    w: Writer, boxes: Boxes, gradients: list[str], value: Callable[[], str], form: str
) -> None:
    """Return the gradient or the tuple of them, behind the value if that is wanted."""
    before, most = list(boxes.made), 0

    def finish(gradient: str, shown: str) -> None:
        nonlocal most
        boxes.finish(boxes.tuple([shown, gradient]) if shown else gradient)
        most = max(most, len(boxes.made))

    def both_forms(shown: str) -> None:
        held = list(boxes.made)
        if len(gradients) == 1:
            single, one, many = w.fresh("single"), w.fresh("one"), w.fresh("many")
            w.do(f"%{single} = icmp eq i32 {form}, 1")
            w.do(f"br i1 %{single}, label %{one}, label %{many}")
            w.label(one)
            finish(gradients[0], shown)
            boxes.made = held
            w.label(many)
        finish(boxes.tuple(gradients), shown)

    w.do("br i1 %valued, label %behind.value, label %alone")
    w.label("behind.value")
    both_forms(value())
    boxes.made = before
    w.label("alone")
    if boxes.pending:
        undo = undo_function(boxes.driver)
        w.do(f"call void @{undo}(ptr %pending, i64 {len(boxes.pending)}, ptr null, i64 0)")
    both_forms("")
    boxes.made = [""] * most
