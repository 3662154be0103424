"""What a function reads from outside, in its entries: inputs are read at each call, constants compared.

Both are found at places (`mutad.runtime.captures`): a module's dict, a closure's cell, a class. The
link holds them as tuples: `inputs` as (holder, name) pairs, `constants` as MISSING and then (holder,
name, expected value) triples. Neither their number nor their kinds are part of the code.
"""

from __future__ import annotations

from .cold import function
from .result import Boxes
from .writer import TYPE, Writer


def read_place(symbols: dict[str, str]) -> str:
    """`@mutad_read_place(holder, name)`: a new reference to what is there now, or null."""
    w = Writer(symbols)
    kind = w.field("%holder", TYPE, hint="kind")
    is_dict = w.value(f"icmp eq ptr {kind}, {w.object('PyDict_Type')}")
    w.do(f"br i1 {is_dict}, label %dict, label %other")
    w.label("dict")
    item = w.call("PyDict_GetItem", "%holder", "%name")
    there = w.value(f"icmp ne ptr {item}, null")
    w.do(f"br i1 {there}, label %found, label %none")
    w.label("found")
    w.call("Py_IncRef", item)
    w.do(f"ret ptr {item}")
    w.label("none")
    w.do("ret ptr null")
    w.label("other")
    is_cell = w.value(f"icmp eq ptr {kind}, {w.object('PyCell_Type')}")
    w.do(f"br i1 {is_cell}, label %cell, label %class")
    w.label("cell")
    w.do(f"ret ptr {w.call('PyCell_Get', '%holder')}")
    w.label("class")
    attribute = w.call("PyObject_GetAttr", "%holder", "%name")
    missing = w.value(f"icmp eq ptr {attribute}, null")
    w.do(f"br i1 {missing}, label %clear, label %got")
    w.label("clear")
    w.call("PyErr_Clear")
    w.do("ret ptr null")
    w.label("got")
    w.do(f"ret ptr {attribute}")
    return function("ptr @mutad_read_place(ptr %holder, ptr %name)", w)


def constants_hold(symbols: dict[str, str]) -> str:
    """`@mutad_constants_hold(self)`: each captured constant is the object that it was.

    Looking up a class's attribute may run any code, so another thread may meanwhile give the link
    another tuple: this one is held. A function's code, the constant that each has, is read without a name.
    """
    w = Writer(symbols)
    constants = w.slot("constants", "constants")
    w.call("Py_IncRef", constants)
    count = w.call("PyTuple_Size", constants, hint="count")
    nothing = w.call("PyTuple_GetItem", constants, "0", hint="missing")
    w.do("br label %header")
    w.label("header")
    w.do("%i = phi i64 [ 1, %entry ], [ %i.next, %same ]")
    over = w.value(f"icmp sge i64 %i, {count}")
    w.do(f"br i1 {over}, label %yes, label %body")
    w.label("body")
    holder = w.call("PyTuple_GetItem", constants, "%i")
    name = w.call("PyTuple_GetItem", constants, w.value("add i64 %i, 1"))
    expected = w.call("PyTuple_GetItem", constants, w.value("add i64 %i, 2"))
    is_function = w.value(
        f"icmp eq ptr {w.field(holder, TYPE, hint='kind')}, {w.object('PyFunction_Type')}"
    )
    w.do(f"br i1 {is_function}, label %function, label %read")
    w.label("function")
    code = w.call("PyFunction_GetCode", holder)
    is_code = w.value(f"icmp eq ptr {code}, {expected}")
    w.do(f"br i1 {is_code}, label %same, label %read")
    w.label("read")
    now = w.value(f"call ptr @mutad_read_place(ptr {holder}, ptr {name})", "now")
    w.call("Py_DecRef", now)
    absent = w.value(f"icmp eq ptr {now}, null")
    object_ = w.value(f"select i1 {absent}, ptr {nothing}, ptr {now}")
    same = w.value(f"icmp eq ptr {object_}, {expected}")
    w.do(f"br i1 {same}, label %same, label %no")
    w.label("same")
    w.do("%i.next = add i64 %i, 3")
    w.do("br label %header")
    w.label("yes")
    w.do("br label %done")
    w.label("no")
    w.do("br label %done")
    w.label("done")
    w.do("%hold = phi i1 [ true, %yes ], [ false, %no ]")
    w.call("Py_DecRef", constants)
    w.do("ret i1 %hold")
    return function("i1 @mutad_constants_hold(ptr %self)", w)


def require_constants(w: Writer) -> None:
    """Ask the next entry where a captured constant has changed. (Who has proved the key has looked.)"""
    size = w.call("PyTuple_Size", w.slot("constants"))
    none = w.value(f"icmp eq i64 {size}, 1", "none")
    w.do(f"br i1 {none}, label %constant, label %compared")
    w.label("compared")
    hold = w.value("call i1 @mutad_constants_hold(ptr %self)", "hold")
    held = w.value(f"or i1 {hold}, %is_proved")
    w.do(f"br i1 {held}, label %constant, label %mismatch")
    w.label("constant")


def inputs(w: Writer, boxes: Boxes, count: int, first: int) -> list[str]:
    """The captured inputs: new references, kept in the first words of `%made`.

    Read from their places, or handed in from argument `first` on by a caller who has proved the key.
    """
    result: list[str] = []
    for k in range(count):
        given, looked, ready = w.fresh("given"), w.fresh("looked"), w.fresh("ready")
        w.do(f"br i1 %is_proved, label %{given}, label %{looked}")
        w.label(given)
        handed = w.field("%args", 8 * (first + k))
        w.call("Py_IncRef", handed)
        w.do(f"br label %{ready}")
        w.label(looked)
        places = w.slot("inputs")
        holder = w.call("PyTuple_GetItem", places, str(2 * k))
        name = w.call("PyTuple_GetItem", places, str(2 * k + 1))
        read = w.value(f"call ptr @mutad_read_place(ptr {holder}, ptr {name})")
        w.do(f"br label %{ready}")
        w.label(ready)
        found = w.value(f"phi ptr [ {handed}, %{given} ], [ {read}, %{looked} ]", "input")
        boxes.put(found, k)
        w.require(w.value(f"icmp ne ptr {found}, null"))
        result.append(found)
    return result
