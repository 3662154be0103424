"""Calling a kernel: the context that it is handed, what its status means, and what it calls back."""

from __future__ import annotations

from collections.abc import Callable

from .result import Boxes
from .writer import Writer

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
    recursive: bool = False,
    tag: str = "",
    retries: bool = False,
    lengthens: bool = False,
) -> None:
    """Call a kernel without the GIL and branch on its status; goes on where it succeeded.

    A `recursive` one is told how deep calls may be nested. `tag` says which line the call is of. One that
    `retries` may ask for another to be called, one that `lengthens` for that of long tapes.
    """
    address = w.code(kernel)
    fill_context(w)
    if recursive:
        limit = w.value(f"sext i32 {w.call('Py_GetRecursionLimit')} to i64")
        w.store("i64", limit, "%ctx", CTX_RECURSION_LIMIT)
    w.store("ptr", w.call("PyEval_SaveThread", hint="thread"), "%ctx", CTX_THREAD)
    shown = ", ".join(["ptr %ctx", *operands, "ptr %results"])
    status = w.value(f"call i32 {address}({shown}){tag}", "status")
    w.call("PyEval_RestoreThread", w.field("%ctx", CTX_THREAD))
    exits = "i32 0, label %succeeded i32 1, label %raised i32 3, label %exhausted"
    exits += " i32 4, label %retry" if retries else ""
    exits += " i32 5, label %longer" if lengthens else ""
    w.do(f"switch i32 {status}, label %failed [ {exits} ]")
    w.label("succeeded")


def fill_context(w: Writer) -> None:
    """A fresh context in `%ctx`."""
    w.do(f"store [{CTX_BYTES // 8} x i64] zeroinitializer, ptr %ctx")
    w.store("ptr", "@mutad_runtime_poll", "%ctx", CTX_POLL)
    w.store("ptr", "@mutad_runtime_print", "%ctx", CTX_PRINT)
    w.store("ptr", "%self", "%ctx", CTX_LINK)
    w.store("ptr", w.code("pool"), "%ctx", CTX_POOL)


def endings(
    w: Writer,
    boxes: Boxes,
    inputs: int,
    *,
    retries: bool = False,
    lengthens: bool = False,
    before_raising: Callable[[], None] = lambda: None,
    before_retrying: Callable[[], None] = lambda: None,
) -> None:
    """The exits that a call seldom takes; a mismatch gives back the inputs that were read.

    Where the kernel `retries`, everything is dropped, and the next entry called; where it `lengthens`, that
    of the code for long tapes. `before_raising` writes what is done first where it has raised,
    `before_retrying` where the next entry is called.
    """
    w.label("raised")
    before_raising()
    w.do("call void @mutad_raise(ptr %self, ptr %ctx)")
    w.do("br label %failed")
    w.label("exhausted")
    before_raising()
    w.call("PyErr_NoMemory")
    w.do("br label %failed")
    boxes.undo()
    if retries:
        w.label("retry")
        before_retrying()
        boxes.drop()
        w.do("br label %onward")
    if lengthens:  # nothing was stored yet
        w.label("longer")
        boxes.drop()
        call_instead(w, "longer")
    w.label("mismatch")
    for k in range(inputs):
        w.call("Py_DecRef", w.field("%made", 8 * k))
    w.do("br label %onward")
    w.label("onward")
    call_instead(w, "next")
    boxes.end()


def call_instead(w: Writer, slot: str) -> None:
    """Return what another callable makes of the call."""
    made = w.call("PyObject_Vectorcall", w.slot(slot), "%args", "%nargs", "%kwnames")
    w.do(f"ret ptr {made}")
