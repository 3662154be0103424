"""What entries do seldom, or beside calls into Python that take longer: functions that are not optimized.

Most of a small program's machine code is its entries; what is outlined here is compiled in next to no time.
"""

from __future__ import annotations

from .run import CTX_LINK, CTX_PAYLOAD, CTX_SITE, CTX_THREAD
from .writer import HEADER, LINK_SLOTS, TYPE, Writer, undo_function

COLD = "noinline optnone nounwind "
"""The attributes of a function that LLVM translates as it is."""


def function(signature: str, w: Writer) -> str:
    """The definition of one of these functions."""
    return "\n".join([f"define internal {signature} {COLD}{{", "entry:", *w.lines, "}"])


def completed(symbols: dict[str, str]) -> str:
    """`@mutad_completed(self, args, nargs, filled, count, positional)`: fewer arguments than parameters, in
    `filled`, with the defaults of those that are missing; null where they do not fit."""
    w = Writer(symbols)
    defaults = w.slot("defaults", "defaults")
    size = w.call("PyTuple_Size", defaults)
    w.require(w.value("icmp sle i64 %nargs, %positional"))
    missing = w.value("sub i64 %count, %nargs", "missing")
    w.require(w.value(f"icmp sge i64 {size}, {missing}"))
    w.require(w.value(f"icmp sgt i64 {missing}, 0"))
    offset = w.value(f"sub i64 {size}, %count", "offset")
    w.do("%at = alloca i64")
    w.do("store i64 0, ptr %at")
    w.do("br label %next")
    w.label("next")
    i = w.value("load i64, ptr %at", "i")
    over = w.value(f"icmp sge i64 {i}, %count")
    w.do(f"br i1 {over}, label %all, label %one")
    w.label("one")
    place = w.value(f"getelementptr ptr, ptr %filled, i64 {i}")
    own = w.value(f"icmp slt i64 {i}, %nargs")
    w.do(f"br i1 {own}, label %own, label %default")
    w.label("own")
    theirs = w.value(f"getelementptr ptr, ptr %args, i64 {i}")
    w.do(f"store ptr {w.value(f'load ptr, ptr {theirs}')}, ptr {place}")
    w.do("br label %stored")
    w.label("default")
    fallback = w.call("PyTuple_GetItem", defaults, w.value(f"add i64 {offset}, {i}"))
    w.do(f"store ptr {fallback}, ptr {place}")
    w.do("br label %stored")
    w.label("stored")
    w.do(f"store i64 {w.value(f'add i64 {i}, 1')}, ptr %at")
    w.do("br label %next")
    w.label("all")
    w.do("ret ptr %filled")
    w.label("mismatch")
    w.do("ret ptr null")
    parameters = "ptr %self, ptr %args, i64 %nargs, ptr %filled, i64 %count, i64 %positional"
    return function(f"ptr @mutad_completed({parameters})", w)


def raise_(symbols: dict[str, str]) -> str:
    """`@mutad_raise(self, ctx)`: set the exception that the kernel has described."""
    w = Writer(symbols)
    report = HEADER + 8 * LINK_SLOTS.index("report")
    site = w.call("PyLong_FromLongLong", w.field("%ctx", CTX_SITE, "i64"))
    payload = w.value(f"getelementptr i8, ptr %ctx, i64 {CTX_PAYLOAD}")
    exception = _call_back(w, "%self", report, site, payload)
    w.require(w.value(f"icmp ne ptr {exception}, null"), "failed")
    w.call("PyErr_SetObject", w.field(exception, TYPE), exception)
    w.call("Py_DecRef", exception)
    w.do("br label %failed")
    w.label("failed")
    w.do("ret void")
    return function("void @mutad_raise(ptr %self, ptr %ctx)", w)


def undo(symbols: dict[str, str], driver: str = "") -> str:
    """`@mutad_undo(pending, blocks, made, objects)`: give back memory that no object owns, and objects.

    Memory of a device is its driver's.
    """
    w = Writer(symbols)
    free = "mutad_entry_free"
    if driver:
        free = w.device("mutad_device_forget", driver)[1:]
    for what, count, function_ in (
        ("%pending", "%blocks", free),
        ("%made", "%objects", "Py_DecRef"),
    ):
        at, again, one, done = (w.fresh(hint) for hint in ("at", "again", "one", "done"))
        w.do(f"%{at} = alloca i64")
        w.do(f"store i64 0, ptr %{at}")
        w.do(f"br label %{again}")
        w.label(again)
        i = w.value(f"load i64, ptr %{at}")
        over = w.value(f"icmp sge i64 {i}, {count}")
        w.do(f"br i1 {over}, label %{done}, label %{one}")
        w.label(one)
        place = w.value(f"getelementptr ptr, ptr {what}, i64 {i}")
        w.call(function_, w.value(f"load ptr, ptr {place}"))
        w.do(f"store i64 {w.value(f'add i64 {i}, 1')}, ptr %{at}")
        w.do(f"br label %{again}")
        w.label(done)
    w.do("ret void")
    name = undo_function(driver)
    return function(f"void @{name}(ptr %pending, i64 %blocks, ptr %made, i64 %objects)", w)


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


def poll(symbols: dict[str, str]) -> str:
    """Run pending signal handlers; nonzero when one raised (Ctrl-C)."""
    w = Writer(symbols)
    w.call("PyEval_RestoreThread", w.field("%ctx", CTX_THREAD))
    raised = w.call("PyErr_CheckSignals")
    w.store("ptr", w.call("PyEval_SaveThread"), "%ctx", CTX_THREAD)
    w.do(f"ret i32 {raised}")
    return function("i32 @mutad_runtime_poll(ptr %ctx)", w)


def print_(symbols: dict[str, str]) -> str:
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
    return function("i32 @mutad_runtime_print(ptr %ctx, i64 %site, ptr %payload)", w)
