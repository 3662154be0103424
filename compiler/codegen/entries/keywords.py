"""The keywords of a call: `wrt`, and `direction` or `tangents` of the calls that take one."""

from __future__ import annotations

from .cold import function
from .plan import EntryPlan
from .writer import TYPE, Writer

TAKES_WRT = ("grad", "hvp", "value_grad_hvp", "recorded", "rows")
"""The kinds that take `wrt`."""
TAKES = {"jvp": "tangents", "hvp": "direction", "value_grad_hvp": "direction"}
"""What each kind takes besides, by the slot of the link that has its name."""


def keywords(w: Writer, plan: EntryPlan, kind: str) -> tuple[str, str]:
    """Check the keywords. Yields how `wrt` was written (1: one name, 2: a tuple), and what else is given."""
    none = w.value("icmp eq ptr %kwnames, null", "plain")
    if kind not in (*TAKES_WRT, *TAKES):
        w.require(none)
        return "", ""
    by_default = "1" if plan.wrt == (0,) or kind not in TAKES_WRT else "0"
    values = w.value("getelementptr ptr, ptr %args, i64 %nargs")
    if kind in TAKES:
        w.require(w.value(f"xor i1 {none}, true"))
        place = w.value("alloca ptr")
        called = w.slot(TAKES[kind])
        wrt = w.slot("keyword") if kind in TAKES_WRT else "null"
        operands = f"ptr {called}, ptr {wrt}, ptr {values}, i32 {by_default}, ptr {place}"
        form = matched(w, operands, w.slot("lanes") if plan.directions > 1 else "null")
        w.require(w.value(f"icmp ne i32 {form}, 0"))
        return form, w.value(f"load ptr, ptr {place}", "given")
    w.do(f"br i1 {none}, label %plain, label %named")
    w.label("named")
    operands = f"ptr null, ptr {w.slot('keyword')}, ptr {values}, i32 0, ptr null"
    found = matched(w, operands, "null")
    w.do("br label %plain")
    w.label("plain")
    form = w.value(f"phi i32 [ {by_default}, %entry ], [ {found}, %named ]", "form")
    w.require(w.value(f"icmp ne i32 {form}, 0"))
    return form, ""


def with_mode(w: Writer, plan: EntryPlan) -> str:
    """The same of a call that gives the mode that is ours, too; how `wrt` was written."""
    mode, values, place = (
        w.slot("mode"),
        w.value("getelementptr ptr, ptr %args, i64 %nargs"),
        w.value("alloca ptr"),
    )
    w.require(w.value("icmp ne ptr %kwnames, null"))
    called, wanted = (w.call("PyTuple_GetItem", mode, str(k)) for k in (0, 1))
    by_default = int(plan.wrt == (0,))
    operands = f"ptr {called}, ptr {w.slot('keyword')}, ptr {values}, i32 {by_default}, ptr {place}"
    form = matched(w, operands, "null")
    w.require(w.value(f"icmp ne i32 {form}, 0"))
    w.require(w.value(f"icmp eq ptr {w.value(f'load ptr, ptr {place}')}, {wanted}"))
    return form


def matched(w: Writer, operands: str, lanes: str) -> str:
    """What `match_keywords` returns."""
    operands = f"ptr %self, ptr %kwnames, {operands}, ptr {lanes}"
    return w.value(f"call i32 @mutad_match_keywords({operands})", "form")


def match_keywords(symbols: dict[str, str]) -> str:
    """Are the keywords `%wrt`, with a value that is ours, and `%other`, each where it is no null, and `batch`
    where `%lanes`, the number of directions, is none?

    0: no. Else how `wrt` was written, 1 for one name or position, 2 for a tuple, `%form` where it was not;
    and the value of `%other` in `%place`, which is not left out.

    Compares identities: names in source code are interned, and small ints exist once. Anything else
    goes to Python code, which finds the same entry by equality.
    """
    w = Writer(symbols)
    w.do("%form.at = alloca i32")
    w.do("store i32 %form, ptr %form.at")
    for place in ("i", "k"):
        w.do(f"%{place}.at = alloca i64")
        w.do(f"store i64 0, ptr %{place}.at")
    w.do("%found.at = alloca ptr")
    w.do("store ptr null, ptr %found.at")
    w.do("%batched.at = alloca i1")
    w.do(f"store i1 {w.value('icmp eq ptr %lanes, null', 'alone')}, ptr %batched.at")
    size = w.call("PyTuple_Size", "%kwnames")
    w.do("br label %next")
    w.label("next")
    i = counted(w, "i")
    w.do(f"br i1 {w.value(f'icmp sge i64 {i}, {size}')}, label %all, label %one")
    w.label("one")
    keyword = w.call("PyTuple_GetItem", "%kwnames", i)
    at = w.value(f"getelementptr ptr, ptr %values, i64 {i}")
    w.do(f"%value = load ptr, ptr {at}")
    w.do(f"br i1 {w.value(f'icmp eq ptr {keyword}, %other')}, label %store, label %else")
    w.label("store")
    w.do("store ptr %value, ptr %found.at")
    w.do("br label %next")
    w.label("else")
    is_batch = w.value(f"icmp eq ptr {keyword}, {w.slot('batch')}")
    w.do(f"br i1 {is_batch}, label %batch, label %other.keyword")
    w.label("batch")
    w.require(w.value("icmp eq ptr %value, %lanes"), "no")
    w.do("store i1 true, ptr %batched.at")
    w.do("br label %next")
    w.label("other.keyword")
    w.require(w.value(f"icmp eq ptr {keyword}, %wrt"), "no")
    how_written(w)
    w.label("all")
    w.do(f"br i1 {w.value('icmp eq ptr %other, null')}, label %yes, label %needed")
    w.label("needed")
    found = w.value("load ptr, ptr %found.at")
    w.require(w.value(f"icmp ne ptr {found}, null"), "no")
    w.require(w.value("load i1, ptr %batched.at"), "no")
    w.do(f"store ptr {found}, ptr %place")
    w.do("br label %yes")
    w.label("yes")
    w.do(f"ret i32 {w.value('load i32, ptr %form.at')}")
    w.label("no")
    w.do("ret i32 0")
    parameters = "ptr %self, ptr %kwnames, ptr %other, ptr %wrt, ptr %values, i32 %form, ptr %place"
    return function(f"i32 @mutad_match_keywords({parameters}, ptr %lanes)", w)


def counted(w: Writer, place: str) -> str:
    """A counter, which is one more the next time."""
    now = w.value(f"load i64, ptr %{place}.at", place)
    w.do(f"store i64 {w.value(f'add i64 {now}, 1')}, ptr %{place}.at")
    return now


def how_written(w: Writer) -> None:
    """Of a `%value` for `wrt` that is ours: store 1 for one name or position, 2 for a tuple."""
    names, positions = w.slot("names"), w.slot("positions")

    def is_ours(obj: str, index: str) -> str:
        name = w.call("PyTuple_GetItem", names, index)
        position = w.call("PyTuple_GetItem", positions, index)
        by_name = w.value(f"icmp eq ptr {obj}, {name}")
        by_position = w.value(f"icmp eq ptr {obj}, {position}")
        return w.value(f"or i1 {by_name}, {by_position}")

    count = w.call("PyTuple_Size", names)
    w.do(f"br i1 {w.value(f'icmp eq i64 {count}, 1')}, label %single, label %several")
    w.label("single")
    w.do(f"br i1 {is_ours('%value', '0')}, label %as.one, label %several")
    w.label("as.one")
    w.do("store i32 1, ptr %form.at")
    w.do("br label %next")
    w.label("several")
    actual = w.field("%value", TYPE)
    w.require(w.value(f"icmp eq ptr {actual}, {w.object('PyTuple_Type')}"), "no")
    given = w.call("PyTuple_Size", "%value")
    w.require(w.value(f"icmp eq i64 {given}, {count}"), "no")
    w.do("store i64 0, ptr %k.at")
    w.do("br label %next.item")
    w.label("next.item")
    k = counted(w, "k")
    w.do(f"br i1 {w.value(f'icmp sge i64 {k}, {count}')}, label %as.tuple, label %item")
    w.label("item")
    w.require(is_ours(w.call("PyTuple_GetItem", "%value", k), k), "no")
    w.do("br label %next.item")
    w.label("as.tuple")
    w.do("store i32 2, ptr %form.at")
    w.do("br label %next")
