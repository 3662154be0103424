"""Calling a kernel: the context that it is handed, what its status means, and what it calls back."""

from __future__ import annotations

from .entry_result import Boxes
from .entry_writer import HEADER, LINK_SLOTS, TYPE, Writer

CTX_BYTES, CTX_POLL, CTX_PRINT, CTX_THREAD, CTX_SITE, CTX_PAYLOAD, CTX_LINK, CTX_POOL = (
    288,
    56,
    64,
    72,
    80,
    96,
    232,
    248,
)
CTX_RECURSION_LIMIT = 264


def run_kernel(
    w: Writer,
    operands: list[str],
    kernel: str = "kernel",
    *,
    inline: bool = False,
    recursive: bool = False,
) -> None:
    """Call a kernel without the GIL and branch on its status; goes on where it succeeded.

    A `recursive` one is told how deep calls may be nested.
    """
    fill_context(w)
    if recursive:
        limit = w.value(f"sext i32 {w.call('Py_GetRecursionLimit')} to i64")
        w.store("i64", limit, "%ctx", CTX_RECURSION_LIMIT)
    w.store("ptr", w.call("PyEval_SaveThread", hint="thread"), "%ctx", CTX_THREAD)
    shown = ", ".join(["ptr %ctx", *operands, "ptr %results"])
    never = "" if inline else " noinline"
    status = w.value(f"call i32 @{kernel}({shown}){never}", "status")
    w.call("PyEval_RestoreThread", w.field("%ctx", CTX_THREAD))
    exits = "i32 0, label %succeeded i32 1, label %raised i32 3, label %exhausted"
    w.do(f"switch i32 {status}, label %failed [ {exits} ]")
    w.label("succeeded")


def fill_context(w: Writer) -> None:
    """A fresh context in `%ctx`."""
    w.do(f"store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx")
    w.store("ptr", "@mutad_runtime_poll", "%ctx", CTX_POLL)
    w.store("ptr", "@mutad_runtime_print", "%ctx", CTX_PRINT)
    w.store("ptr", "%self", "%ctx", CTX_LINK)
    w.store("ptr", w.pool(), "%ctx", CTX_POOL)


def endings(w: Writer, boxes: Boxes, inputs: int) -> None:
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


def poll(symbols: dict[str, str]) -> str:
    """Run pending signal handlers; nonzero when one raised (Ctrl-C)."""
    w = Writer(symbols)
    w.call("PyEval_RestoreThread", w.field("%ctx", CTX_THREAD))
    raised = w.call("PyErr_CheckSignals")
    w.store("ptr", w.call("PyEval_SaveThread"), "%ctx", CTX_THREAD)
    w.do(f"ret i32 {raised}")
    return "\n".join(["define internal i32 @mutad_runtime_poll(ptr %ctx) {", *w.lines, "}"])


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
    return "\n".join(
        [
            "define internal i32 @mutad_runtime_print(ptr %ctx, i64 %site, ptr %payload) {",
            *w.lines,
            "}",
        ]
    )
