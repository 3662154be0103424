"""The entries: functions with CPython's calling convention around a kernel, as LLVM text.

An entry checks the arguments (`entry_guard`), calls the kernel without the GIL, and makes Python
objects of its results (`entry_result`). There is one for each *kind* of call:

- `primal` takes the function's arguments;
- `grad` and `value_and_grad` take the function's arguments (and `wrt=`), allocate the shadows and
  return the gradients. They exist where the result is a float scalar and no active arguments
  share memory;
- `pullback` takes the arguments, one shadow for each active array, one cotangent for each float
  result, and returns `(result, cotangents of the active scalars)`. Python code validates them.

Each is a method of its *link* (`mutad.runtime.dispatch.Link`), whose slots it reads: on a mismatch
it calls the link's `next`. So a call costs one guard for each specialization that is older.

Example, for `def f(x): ...` with the key `f64[?]C`::

    define ptr @mutad_entry_primal(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) {
      ...                                                     ; the guard
      %thread = call ptr @PyEval_SaveThread()
      %status = call i32 @kernel(ptr %ctx, ptr %data, i64 %n, i64 %stride, ptr %results)
      call void @PyEval_RestoreThread(ptr %thread)
      ...                                                     ; status, then the result
    }

The text refers to Python and NumPy by external symbols only, so the object code can be cached.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.dialects import func
from xdsl.dialects.builtin import DenseArrayBase

from .entry_captures import constants_hold, inputs, read_place, require_constants
from .entry_guard import (
    ArrayKey,
    ArrayValue,
    Key,
    ScalarKey,
    TupleKey,
    check_sharing,
    load_array,
    parse_key,
    unpack,
)
from .entry_result import Boxes, ResultSpec, leaves_of, slot_count
from .entry_writer import (
    ARRAY_DTYPE,
    ARRAY_EXTENTS,
    FLOATS,
    HEADER,
    LINK_SLOTS,
    LLVM_TYPE,
    TYPE,
    Writer,
    declarations,
)

CTX_BYTES, CTX_POLL, CTX_PRINT, CTX_THREAD, CTX_SITE, CTX_PAYLOAD, CTX_LINK, CTX_POOL = (
    256,
    56,
    64,
    72,
    80,
    96,
    232,
    248,
)


@dataclass(frozen=True)
class Signature:
    """How Python code may call the function by position."""

    parameters: int
    positional: int
    """The parameters that are not keyword-only."""


def signature_of(function: Callable[..., Any]) -> Signature:
    code = function.__code__
    return Signature(code.co_argcount + code.co_kwonlyargcount, code.co_argcount)


@dataclass(frozen=True)
class GradientSignature:
    """What the gradient function takes and returns beside the primal's arguments and results."""

    shadows: tuple[int, ...]
    """Parameters with a shadow: the arrays in `wrt`, and those that active values are written to."""
    cotangents: tuple[int, ...]
    """Results (of the IR function) with a cotangent."""
    scalars: tuple[int, ...]
    """Parameters whose cotangent is returned: the scalars in `wrt` that matter."""

    def as_metadata(self) -> dict[str, list[int]]:
        return {
            "shadows": list(self.shadows),
            "cotangents": list(self.cotangents),
            "scalars": list(self.scalars),
        }


def gradient_signature(gradient: func.FuncOp, arguments: Sequence[str]) -> GradientSignature:
    """Read the signature from the attributes that the derivative leaves on the gradient function.

    `shadows`, `scalars` list IR arguments of the primal, `cotangents` IR results.
    """
    position_of = [p for p, key in enumerate(arguments) for _ in range(_leaf_count(parse_key(key)))]

    def indices(name: str) -> tuple[int, ...]:
        listed = gradient.attributes[name]
        assert isinstance(listed, DenseArrayBase)
        return tuple(int(v) for v in listed.get_values())

    return GradientSignature(
        tuple(position_of[i] for i in indices("shadows")),
        indices("cotangents"),
        tuple(position_of[i] for i in indices("scalars")),
    )


def _leaf_count(key: Key) -> int:
    match key:
        case ArrayKey():
            return 1
        case ScalarKey(type):
            return 0 if type == "None" else 1
        case TupleKey(items):
            return sum(map(_leaf_count, items))


@dataclass(frozen=True)
class Entries:
    """The entries of one module."""

    text: str
    """Definitions. They need `declarations` and `@kernel` in the same module."""
    declarations: tuple[str, ...]
    """One line for each external symbol; disjoint from what kernels declare."""
    entries: dict[str, str]
    """Kind of call -> exported symbol."""
    symbols: dict[str, str]
    """External symbol -> kind: "python", "numpy" or "libc"."""


def entries(
    arguments: Sequence[str],
    overlaps: Sequence[tuple[int, int, str]],
    mode: str,
    wrt: Sequence[int],
    results: ResultSpec,
    written: Sequence[int],
    signature: Signature,
    gradient: GradientSignature | None = None,
) -> Entries:
    """The entries for a kernel of this key, mode and result.

    `gradient` is that of the kernel, where the mode is "gradient".
    """
    if mode == "gradient" and gradient is None:
        raise TypeError("the entries of a gradient need the gradient function's signature")
    parsed = tuple(parse_key(a) for a in arguments)
    plan = _Plan(
        parsed,
        {(i, j): kind for i, j, kind in overlaps},
        tuple(wrt),
        results,
        frozenset(written),
        signature,
        gradient or GradientSignature((), (), ()),
    )
    symbols: dict[str, str] = {}
    kinds = ["primal"] if mode == "primal" else ["pullback"]
    if mode == "gradient" and plan.has_fast_gradient():
        kinds += ["grad", "value_and_grad"]
    functions = [_poll(symbols), _print(symbols)]
    if kinds != ["pullback"]:
        functions += [read_place(symbols), constants_hold(symbols)]
    if "grad" in kinds:
        functions.append(_match_wrt(symbols, len(wrt)))
    functions += [_entry(plan, kind, symbols) for kind in kinds]
    return Entries(
        "\n\n".join(functions) + "\n",
        tuple(declarations(symbols)),
        {kind: f"mutad_entry_{kind}" for kind in kinds},
        symbols,
    )


@dataclass(frozen=True)
class _Plan:
    keys: tuple[Key, ...]
    overlaps: dict[tuple[int, int], str]
    wrt: tuple[int, ...]
    results: ResultSpec
    written: frozenset[int]
    signature: Signature
    gradient: GradientSignature

    @property
    def inputs(self) -> int:
        """The arguments that nobody passes: they follow the parameters."""
        return len(self.keys) - self.signature.parameters

    def wrt_scalars(self) -> list[int]:
        """The scalars in `wrt`, in the order of parameters."""
        return [p for p in sorted(self.wrt) if isinstance(self.keys[p], ScalarKey)]

    def watched(self) -> set[int]:
        """The parameters whose sharing of memory matters."""
        active = {*self.wrt, *self.gradient.shadows} if self.wrt else set[int]()
        return set(self.written) | active

    def has_fast_gradient(self) -> bool:
        shared = {p for pair in self.overlaps for p in pair}
        return self.results.get("type") in FLOATS and not shared & self.watched()


def _entry(plan: _Plan, kind: str, symbols: dict[str, str]) -> str:
    """The text of one entry."""
    w = Writer(symbols)
    count = len(plan.keys)
    slots = slot_count(plan.results) + len(plan.gradient.scalars)
    objects = 8 + 2 * slots + 2 * len(plan.wrt) + len(plan.gradient.shadows) + plan.inputs
    words_of = {
        "ctx": CTX_BYTES // 8,
        "results": slots,
        "made": objects,
        "pending": slots,
        "filled": count,
    }
    for name, words in words_of.items():
        w.do(f"%{name} = alloca [{max(words, 1)} x i64], align 64")
    w.do("%overflow = alloca i32")
    w.do(f"store [{objects} x i64] zeroinitializer, ptr %made")
    w.do(f"store [{max(slots, 1)} x i64] zeroinitializer, ptr %pending")
    proved = w.slot("proved")
    w.do(f"%is_proved = icmp ne ptr {proved}, null")
    form = _keywords(w, plan, kind)
    boxes = Boxes(w)
    if kind == "pullback":
        w.require("%is_proved")
        objects_in = [w.field("%args", 8 * i, hint="arg") for i in range(count)]
    else:
        require_constants(w)
        arguments = _positional(w, plan.signature, plan.inputs)
        given = plan.signature.parameters
        objects_in = [w.field(arguments, 8 * i, hint="arg") for i in range(given)]
        boxes.made += inputs(w, plan.inputs, given)
        objects_in += boxes.made
    unpacked = [
        unpack(w, key, obj, written=i in plan.written)
        for i, (key, obj) in enumerate(zip(plan.keys, objects_in, strict=True))
    ]
    in_memory = [(i, a) for i, u in enumerate(unpacked) for a in u if isinstance(a, ArrayValue)]
    arrays = {i: a for i, a in in_memory if isinstance(plan.keys[i], ArrayKey)}
    check_sharing(w, in_memory, plan.overlaps, plan.watched())

    operands = [text for leaf in unpacked for one in leaf for text in one.operands()]
    shadows: dict[int, str] = {}
    if kind != "primal":
        shadows = _shadows(w, plan, kind, boxes, objects_in)
        for position, shadow in shadows.items():
            operands += _shadow_operands(w, plan.keys[position], shadow)
        operands += _cotangents(w, plan, kind, count + len(shadows))
    _run(w, operands, kind)

    boxes.claim(plan.results, arrays)
    value = "" if kind == "grad" else boxes.result(plan.results, 0, objects_in, arrays)
    slot = slot_count(plan.results)
    gradients: dict[int, str] = dict(shadows)
    for position in plan.gradient.scalars if kind != "primal" else ():
        address = w.value(f"getelementptr i64, ptr %results, i64 {slot}")
        gradients[position] = boxes.scalar(_scalar_type(plan, position), address)
        slot += 1
    if kind != "primal":
        for position in plan.wrt_scalars():
            if position not in gradients:
                gradients[position] = boxes.zero(_scalar_type(plan, position))
    if kind == "primal":
        boxes.finish(value)
    elif kind == "pullback":
        bars = boxes.tuple([gradients[p] for p in plan.wrt_scalars()])
        boxes.finish(boxes.tuple([value, bars]))
    else:
        in_order = [gradients[p] for p in plan.wrt]
        _return_gradients(w, boxes, in_order, value, form)
    _endings(w, boxes, 0 if kind == "pullback" else plan.inputs)
    body = "\n".join(w.lines)
    return (
        f"define ptr @mutad_entry_{kind}(ptr %self, ptr %args, i64 %nargs, ptr %kwnames) "
        f"{{\nentry:\n{body}\n}}"
    )


def _scalar_type(plan: _Plan, position: int) -> str:
    key = plan.keys[position]
    assert isinstance(key, ScalarKey)
    return key.type


def _keywords(w: Writer, plan: _Plan, kind: str) -> str:
    """Keywords: none; `grad` and `value_and_grad` take `wrt`. Yields how it was written (1 or 2)."""
    none = w.value("icmp eq ptr %kwnames, null", "plain")
    if kind in ("primal", "pullback"):
        w.require(none)
        return ""
    by_default = "1" if plan.wrt == (0,) else "0"
    w.do(f"br i1 {none}, label %plain, label %named")
    w.label("named")
    at = w.value("getelementptr ptr, ptr %args, i64 %nargs")
    value = w.value(f"load ptr, ptr {at}")
    found = w.value(f"call i32 @mutad_match_wrt(ptr %self, ptr %kwnames, ptr {value})")
    w.do("br label %plain")
    w.label("plain")
    form = w.value(f"phi i32 [ {by_default}, %entry ], [ {found}, %named ]", "form")
    w.require(w.value(f"icmp ne i32 {form}, 0"))
    return form


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
    defaults = w.slot("defaults", "defaults")
    size = w.call("PyTuple_Size", defaults)
    w.require(w.value(f"icmp sle i64 %nargs, {signature.positional}"))
    missing = w.value(f"sub i64 {count}, %nargs", "missing")
    w.require(w.value(f"icmp sge i64 {size}, {missing}"))
    w.require(w.value(f"icmp sgt i64 {missing}, 0"))
    offset = w.value(f"sub i64 {size}, {count}", "offset")
    w.do("br label %fill")
    w.label("fill")
    done = "fill"
    for i in range(count):
        own, default, done = w.fresh("own"), w.fresh("default"), w.fresh("filled")
        is_own = w.value(f"icmp slt i64 {i}, %nargs")
        w.do(f"br i1 {is_own}, label %{own}, label %{default}")
        w.label(own)
        given = w.field("%args", 8 * i)
        w.do(f"br label %{done}")
        w.label(default)
        fallback = w.call("PyTuple_GetItem", defaults, w.value(f"add i64 {offset}, {i}"))
        w.do(f"br label %{done}")
        w.label(done)
        chosen = w.value(f"phi ptr [ {given}, %{own} ], [ {fallback}, %{default} ]")
        w.store("ptr", chosen, "%filled", 8 * i)
    w.do("br label %given.or.filled")
    w.label("given")
    w.do("br label %given.or.filled")
    w.label("given.or.filled")
    return w.value(f"phi ptr [ %args, %given ], [ %filled, %{done} ]", "arguments")


def _shadows(w: Writer, plan: _Plan, kind: str, boxes: Boxes, objects: list[str]) -> dict[int, str]:
    """The shadow objects of the active arrays: fresh zeros, or (`pullback`) what was handed in."""
    result: dict[int, str] = {}
    for i, position in enumerate(plan.gradient.shadows):
        if kind == "pullback":
            result[position] = w.field("%args", 8 * (len(plan.keys) + i), hint="shadow")
            continue
        key = plan.keys[position]
        assert isinstance(key, ArrayKey)
        dtype = w.field(objects[position], ARRAY_DTYPE)
        extents = w.field(objects[position], ARRAY_EXTENTS)
        w.call("Py_IncRef", dtype)
        zeros = w.call("PyArray_Zeros", str(key.rank), extents, dtype, "0", hint="shadow")
        result[position] = boxes.keep(zeros)
    return result


def _shadow_operands(w: Writer, key: Key, shadow: str) -> list[str]:
    assert isinstance(key, ArrayKey)
    return ArrayValue(key, shadow, *load_array(w, key, shadow)).operands()


def _cotangents(w: Writer, plan: _Plan, kind: str, first: int) -> list[str]:
    """One for each float result: 1.0, or (`pullback`) the arguments from `first` on."""
    operands: list[str] = []
    active = [
        leaf for i, leaf in enumerate(leaves_of(plan.results)) if i in plan.gradient.cotangents
    ]
    for i, leaf in enumerate(active):
        if leaf["kind"] == "scalar":
            type_ = LLVM_TYPE[leaf["type"]]
            value = "1.0"
            if kind == "pullback":
                value = w.call("PyFloat_AsDouble", w.field("%args", 8 * (first + i)))
                if type_ == "float":
                    value = w.value(f"fptrunc double {value} to float")
            operands.append(f"{type_} {value}")
        else:
            key = ArrayKey(leaf["dtype"], ("?",) * leaf["rank"], "S")
            obj = w.field("%args", 8 * (first + i), hint="cotangent")
            operands += ArrayValue(key, obj, *load_array(w, key, obj)).operands()
    return operands


def _run(w: Writer, operands: list[str], kind: str) -> None:
    """Call the kernel without the GIL and branch on its status; goes on where it succeeded."""
    w.do(f"store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx")
    w.store("ptr", "@mutad_runtime_poll", "%ctx", CTX_POLL)
    w.store("ptr", "@mutad_runtime_print", "%ctx", CTX_PRINT)
    w.store("ptr", "%self", "%ctx", CTX_LINK)
    w.store("ptr", w.pool(), "%ctx", CTX_POOL)
    w.store("ptr", w.call("PyEval_SaveThread", hint="thread"), "%ctx", CTX_THREAD)
    shown = ", ".join(["ptr %ctx", *operands, "ptr %results"])
    never = "" if kind == "primal" else " noinline"
    status = w.value(f"call i32 @kernel({shown}){never}", "status")
    w.call("PyEval_RestoreThread", w.field("%ctx", CTX_THREAD))
    exits = "i32 0, label %succeeded i32 1, label %raised i32 3, label %exhausted"
    w.do(f"switch i32 {status}, label %failed [ {exits} ]")
    w.label("succeeded")


def _return_gradients(w: Writer, boxes: Boxes, gradients: list[str], value: str, form: str) -> None:
    """Return the gradient or the tuple of them, behind the value if that is wanted."""

    def finish(gradient: str) -> None:
        boxes.finish(boxes.tuple([value, gradient]) if value else gradient)

    if len(gradients) > 1:
        finish(boxes.tuple(gradients))
        return
    single = w.value(f"icmp eq i32 {form}, 1")
    w.do(f"br i1 {single}, label %one, label %many")
    held = list(boxes.made)
    w.label("one")
    finish(gradients[0])
    count = len(boxes.made)
    boxes.made = held
    w.label("many")
    finish(boxes.tuple(gradients))
    boxes.made += [""] * (count - len(boxes.made))


def _endings(w: Writer, boxes: Boxes, inputs: int) -> None:
    """The exits that a call seldom takes; a mismatch gives back the inputs that were read."""
    report = HEADER + 8 * LINK_SLOTS.index("report")
    w.label("raised")
    site = w.call("PyLong_FromLongLong", w.field("%ctx", CTX_SITE, "i64"))
    payload = w.value(f"getelementptr i8, ptr %ctx, i64 {CTX_PAYLOAD}")
    exception = _call_back(w, "%self", report, site, payload)
    w.require(w.value(f"icmp ne ptr {exception}, null"), "failed")
    w.call("PyErr_SetObject", w.field(exception, TYPE), exception)
    w.call("Py_DecRef", exception)
    w.do("br label %failed")
    w.label("exhausted")
    w.call("PyErr_NoMemory")
    w.do("br label %failed")
    boxes.undo()
    w.label("mismatch")
    for k in range(inputs):
        w.call("Py_DecRef", w.field("%made", 8 * k))
    following = w.slot("next")
    onward = w.call("PyObject_Vectorcall", following, "%args", "%nargs", "%kwnames")
    w.do(f"ret ptr {onward}")


def _call_back(w: Writer, link: str, slot: int, site: str, payload: str) -> str:
    """Call the Python function in a slot of the link with (site, address); its result or null.

    Takes over the reference to `site`. Null operands (out of memory) end in null as well.
    """
    address = w.value(f"ptrtoint ptr {payload} to i64")
    number = w.call("PyLong_FromLongLong", address)
    pair = w.value("alloca [2 x ptr]", "pair")
    w.store("ptr", site, pair, 0)
    w.store("ptr", number, pair, 8)
    function = w.field(link, slot)
    missing = w.value(f"icmp eq ptr {site}, null")
    missing = w.value(f"or i1 {missing}, {w.value(f'icmp eq ptr {number}, null')}")
    here, ready, done = w.fresh("here"), w.fresh("ready"), w.fresh("done")
    w.do(f"br label %{here}")
    w.label(here)
    w.do(f"br i1 {missing}, label %{done}, label %{ready}")
    w.label(ready)
    answer = w.call("PyObject_Vectorcall", function, pair, "2", "null", hint="answer")
    w.do(f"br label %{done}")
    w.label(done)
    result = w.value(f"phi ptr [ null, %{here} ], [ {answer}, %{ready} ]")
    w.call("Py_DecRef", site)
    w.call("Py_DecRef", number)
    return result


def _poll(symbols: dict[str, str]) -> str:
    """Run pending signal handlers; nonzero when one raised (Ctrl-C)."""
    w = Writer(symbols)
    w.call("PyEval_RestoreThread", w.field("%ctx", CTX_THREAD))
    raised = w.call("PyErr_CheckSignals")
    w.store("ptr", w.call("PyEval_SaveThread"), "%ctx", CTX_THREAD)
    w.do(f"ret i32 {raised}")
    return "\n".join(["define internal i32 @mutad_runtime_poll(ptr %ctx) {", *w.lines, "}"])


def _print(symbols: dict[str, str]) -> str:
    """Print what the site describes, through Python's `print`; nonzero when that raised."""
    w = Writer(symbols)
    w.call("PyEval_RestoreThread", w.field("%ctx", CTX_THREAD))
    link = w.field("%ctx", CTX_LINK)
    slot = HEADER + 8 * LINK_SLOTS.index("show")
    answer = _call_back(w, link, slot, w.call("PyLong_FromLongLong", "%site"), "%payload")
    w.call("Py_DecRef", answer)
    w.store("ptr", w.call("PyEval_SaveThread"), "%ctx", CTX_THREAD)
    failed = w.value(f"icmp eq ptr {answer}, null")
    w.do(f"ret i32 {w.value(f'zext i1 {failed} to i32')}")
    return "\n".join(
        [
            "define internal i32 @mutad_runtime_print(ptr %ctx, i64 %site, ptr %payload) {",
            *w.lines,
            "}",
        ]
    )


def _match_wrt(symbols: dict[str, str], count: int) -> str:
    """Is the only keyword `wrt`, and its value ours? 0 no, 1 one name or position, 2 a tuple of them.

    Compares identities: names in source code are interned, and small ints exist once. Anything else
    goes to Python code, which finds the same entry by equality.
    """
    w = Writer(symbols)

    def is_ours(obj: str, index: int) -> str:
        name = w.call("PyTuple_GetItem", names, str(index))
        position = w.call("PyTuple_GetItem", positions, str(index))
        by_name = w.value(f"icmp eq ptr {obj}, {name}")
        by_position = w.value(f"icmp eq ptr {obj}, {position}")
        return w.value(f"or i1 {by_name}, {by_position}")

    names, positions = w.slot("names"), w.slot("positions")
    size = w.call("PyTuple_Size", "%kwnames")
    w.require(w.value(f"icmp eq i64 {size}, 1"), "no")
    keyword = w.call("PyTuple_GetItem", "%kwnames", "0")
    w.require(w.value(f"icmp eq ptr {keyword}, {w.slot('keyword')}"), "no")
    if count == 1:
        w.do(f"br i1 {is_ours('%value', 0)}, label %single, label %several")
        w.label("single")
        w.do("ret i32 1")
        w.label("several")
    actual = w.field("%value", TYPE)
    w.require(w.value(f"icmp eq ptr {actual}, {w.object('PyTuple_Type')}"), "no")
    given = w.call("PyTuple_Size", "%value")
    w.require(w.value(f"icmp eq i64 {given}, {count}"), "no")
    w.require(
        w.all_of([is_ours(w.call("PyTuple_GetItem", "%value", str(i)), i) for i in range(count)]),
        "no",
    )
    w.do("ret i32 2")
    w.label("no")
    w.do("ret i32 0")
    return "\n".join(
        [
            "define internal i32 @mutad_match_wrt(ptr %self, ptr %kwnames, ptr %value) {",
            *w.lines,
            "}",
        ]
    )
