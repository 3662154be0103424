"""What the entry makes of the kernel's results: Python floats, NumPy scalars, arrays, tuples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from .guard import ArrayValue
from .several import as_the_flag_says, fill_numbers, new_numbers, seen_lanes_first
from .writer import (
    ALIGNED,
    ARRAY_FLAGS,
    ARRAY_HANDLER,
    ITEM_SIZE,
    LLVM_TYPE,
    OWNS_DATA,
    SCALAR_TYPE,
    SCALAR_VALUE,
    TYPE_NUMBERS,
    WRITEABLE,
    Writer,
    undo_function,
)

MAKE = {
    "py_bool": "PyBool_FromLong",
    "py_int": "PyLong_FromLongLong",
    "py_float": "PyFloat_FromDouble",
}
"""What makes a Python scalar of an i64 or a double."""

ResultSpec = dict[str, Any]
"""The metadata's description of what the function returns."""

OBJECTS = "OBJECTS"
"""Stands for a number that is known when an entry's code is complete."""


def leaves_of(spec: ResultSpec) -> Iterator[ResultSpec]:
    """The scalars and arrays among the results, in the kernel's order."""
    if spec["kind"] == "tuple":
        for item in spec["items"]:
            yield from leaves_of(item)
    elif spec["kind"] in ("scalar", "array"):
        yield spec


def stored_leaves(spec: ResultSpec) -> Iterator[ResultSpec]:
    """All that the kernel stores: `leaves_of`, then what is hidden."""
    yield from leaves_of(spec)
    yield from hidden(spec)


def hidden(spec: ResultSpec) -> Iterator[ResultSpec]:
    """The owners of memory that are not returned, then the flags that tell Python's scalars from NumPy's."""
    yield from spec.get("owners", ())
    yield from ({"kind": "flag"} for _ in range(spec.get("flags", 0)))


def arrays_and_scalars(spec: ResultSpec) -> Iterator[ResultSpec]:
    """All results but None, in order: `leaves_of`, and arguments that are returned themselves."""
    if spec["kind"] == "tuple":
        for item in spec["items"]:
            yield from arrays_and_scalars(item)
    elif spec["kind"] != "none":
        yield spec


def is_fresh(leaf: ResultSpec) -> bool:
    """True for an array that starts where fresh memory does, unless it is an argument at run time."""
    return leaf["kind"] == "array" and leaf.get("base") is None and "owner" not in leaf


def is_one_object(a: ResultSpec, b: ResultSpec) -> bool:
    """Two fresh results over one block are one object: neither is a view, and their types agree."""
    alike = a["rank"] == b["rank"] and a["dtype"] == b["dtype"]
    return alike and not (a.get("view") or b.get("view"))


def slots_of(spec: ResultSpec) -> int:
    """8-byte slots that a leaf takes among the kernel's results."""
    return 1 + 2 * spec["rank"] if spec["kind"] == "array" else 1


def slot_count(spec: ResultSpec) -> int:
    return sum(slots_of(leaf) for leaf in stored_leaves(spec))


def has_cotangent(leaf: ResultSpec) -> bool:
    """True for float results: the gradient function takes a cotangent for each of them."""
    return leaf.get("type", leaf.get("dtype")) in ("py_float", "f32", "f64")


@dataclass
class Fresh:
    """An array object over fresh memory."""

    spec: ResultSpec
    data: str
    object: str


@dataclass
class Boxes:
    """Makes the objects to return; `%failed` undoes what was made when memory runs out.

    `%made` holds the objects, `%pending` the memory of fresh arrays that no object owns yet. Both
    are filled with null on entry, so the code at `%failed` is straight.
    """

    w: Writer
    driver: str = ""
    """Whose memory fresh arrays have; "" is the host's."""
    made: list[str] = field(default_factory=list[str])
    """The objects we hold; "" where the reference was given away."""
    pending: dict[int, int] = field(default_factory=dict[int, int])
    """The place in `%pending` of each fresh array among the results, by the identity of its description."""
    fresh: list[Fresh] = field(default_factory=list["Fresh"])
    """The arrays over fresh memory: a later result over the same memory is that object, or a view."""
    stacked: bool = False
    """Whether several tangents are returned along first axes, and not as the kernel has them."""
    beside: str = ""
    """The flag that says that they are returned as the kernel has them all the same; "" where none does."""
    stacks: dict[int, str] = field(default_factory=dict[int, str])
    """By the place among all arrays the stack of which one was made, which is the caller's."""
    most: int = 1
    """The words that `%made` needs."""

    def begin(self) -> None:
        """Allocate `%made`, as large as it turns out to be."""
        self.w.do(f"%made = alloca [{OBJECTS} x i64], align 64")
        self.w.do(f"store [{OBJECTS} x i64] zeroinitializer, ptr %made")

    def end(self) -> None:
        """The code is complete: it is known how many objects it makes."""
        self.w.lines = [line.replace(OBJECTS, str(self.most)) for line in self.w.lines]

    def put(self, obj: str, index: int) -> None:
        """Store an object in `%made`."""
        self.w.store("ptr", obj, "%made", 8 * index)
        self.most = max(self.most, index + 1)

    def keep(self, obj: str) -> str:
        """Fail if `obj` is null, else note that it is ours."""
        w = self.w
        w.require(w.value(f"icmp ne ptr {obj}, null"), "failed")
        self.put(obj, len(self.made))
        self.made.append(obj)
        return obj

    def claim(self, specs: Iterable[ResultSpec], arguments: dict[int, ArrayValue]) -> None:
        """Note the memory of the fresh arrays among all that the kernel stores, each block once.

        What may be an argument itself is none of ours where it is one.
        """
        w = self.w
        slot, claimed = 0, list[str]()
        for leaf in (leaf for spec in specs for leaf in stored_leaves(spec)):
            if is_fresh(leaf):
                data = block = w.field("%results", 8 * slot, hint="block")
                for earlier in (*claimed, *(arguments[p].data for p in leaf.get("among", ()))):
                    same = w.value(f"icmp eq ptr {data}, {earlier}")
                    block = w.value(f"select i1 {same}, ptr null, ptr {block}")
                w.store("ptr", block, "%pending", 8 * len(claimed))
                self.pending[id(leaf)] = len(claimed)
                claimed.append(data)
            slot += slots_of(leaf)

    def give(self, obj: str) -> str:
        """`obj` again; its reference is taken over."""
        index = self.made.index(obj)
        self.made[index] = ""
        self.put("null", index)
        return obj

    def scalar(self, type_: str, address: str) -> str:
        """The scalar stored at `address` as a Python object."""
        w = self.w
        if type_ in ("py_bool", "b1"):
            byte = w.value(f"load i8, ptr {address}")
            if type_ == "py_bool":
                return self.keep(w.call("PyBool_FromLong", w.value(f"zext i8 {byte} to i64")))
            true = w.value(f"icmp ne i8 {byte}, 0")
            symbols = w.object("mutad_numpy_true"), w.object("mutad_numpy_false")
            chosen = w.value(f"select i1 {true}, ptr {symbols[0]}, ptr {symbols[1]}")
            w.call("Py_IncRef", chosen)
            return self.keep(chosen)
        llvm = LLVM_TYPE[type_]
        value = w.value(f"load {llvm}, ptr {address}", "result")
        if type_ in MAKE:
            return self.keep(w.call(MAKE[type_], value))
        obj = self.keep(w.call("PyType_GenericAlloc", w.object(SCALAR_TYPE[type_]), "0"))
        w.store(llvm, value, obj, SCALAR_VALUE)
        return obj

    def either(self, type_: str, python: str, address: str, flag: str) -> str:
        """The scalar stored at `address`: a Python scalar where `flag` says so, else NumPy's."""
        w, index = self.w, len(self.made)
        weak, strong, done = w.fresh("weak"), w.fresh("strong"), w.fresh("either")
        holds = w.value(f"icmp ne i8 {w.value(f'load i8, ptr {flag}')}, 0")
        w.do(f"br i1 {holds}, label %{weak}, label %{strong}")
        incoming = list[str]()
        for label in (weak, strong):
            w.label(label)
            if label == weak:
                obj = self.keep(w.call(MAKE[python], self.as_python(type_, python, address)))
            else:
                obj = self.scalar(type_, address)
            end = w.fresh("boxed")
            w.do(f"br label %{end}")
            w.label(end)
            w.do(f"br label %{done}")
            incoming.append(f"[ {obj}, %{end} ]")
            del self.made[index:]
        w.label(done)
        self.made.append(w.value(f"phi ptr {', '.join(incoming)}", "scalar"))
        return self.made[index]

    def as_python(self, type_: str, python: str, address: str) -> str:
        """The operand that a Python scalar is made of, of a NumPy scalar stored at `address`."""
        w, llvm = self.w, "i8" if type_ == "b1" else LLVM_TYPE[type_]
        value = w.value(f"load {llvm}, ptr {address}")
        if python == "py_bool":
            test = "fcmp une" if type_ in ("f32", "f64") else "icmp ne"
            zero = "0.0" if type_ in ("f32", "f64") else "0"
            return w.value(f"zext i1 {w.value(f'{test} {llvm} {value}, {zero}')} to i64")
        conversions = {
            ("f32", "py_float"): "fpext float {} to double",
            ("f32", "py_int"): "fptosi float {} to i64",
            ("f64", "py_int"): "fptosi double {} to i64",
            **{(f"i{n}", "py_int"): f"sext i{n} {{}} to i64" for n in (8, 16, 32)},
            **{(f"u{n}", "py_int"): f"zext i{n} {{}} to i64" for n in (8, 16, 32)},
        }
        conversion = conversions.get((type_, python))
        return w.value(conversion.format(value)) if conversion else value

    def zero(self, type_: str) -> str:
        """A float scalar 0 of this type."""
        w = self.w
        if type_ == "py_float":
            return self.keep(w.call("PyFloat_FromDouble", "0.0"))
        # PyType_GenericAlloc zeroes the memory.
        return self.keep(w.call("PyType_GenericAlloc", w.object(SCALAR_TYPE[type_]), "0"))

    def array(
        self,
        spec: ResultSpec,
        address: str,
        arguments: dict[int, ArrayValue],
        owner: str | None = None,
    ) -> str:
        """The array described at `address`: one of the arguments itself, a result that is there already,
        a view (of an argument, or of the `owner` of fresh memory), or fresh memory."""
        w = self.w
        data = w.value(f"load ptr, ptr {address}", "data")
        known = [
            (self.is_argument(address, arguments[p]), arguments[p].object)
            for p in spec.get("among", ())
        ]
        for earlier in self.fresh:
            if is_fresh(spec) and is_one_object(spec, earlier.spec):
                known.append((w.value(f"icmp eq ptr {data}, {earlier.data}"), earlier.object))
        index, chosen, incoming = len(self.made), w.fresh("chosen"), list[str]()
        for condition, obj in known:
            given, other = w.fresh("given"), w.fresh("other")
            w.do(f"br i1 {condition}, label %{given}, label %{other}")
            w.label(given)
            w.call("Py_IncRef", obj)
            self.put(obj, index)
            w.do(f"br label %{chosen}")
            incoming.append(f"[ {obj}, %{given} ]")
            w.label(other)
        obj = self.made_array(spec, address, data, arguments, owner)
        if incoming:
            made = w.fresh("made")
            w.do(f"br label %{made}")
            w.label(made)
            w.do(f"br label %{chosen}")
            w.label(chosen)
            obj = w.value(f"phi ptr {', '.join(incoming)}, [ {obj}, %{made} ]", "array")
            self.made[index] = obj
        if is_fresh(spec):
            self.fresh.append(Fresh(spec, data, obj))
        return obj

    def is_argument(self, address: str, argument: ArrayValue) -> str:
        """Whether the array described at `address` is this argument: the same view of the same memory.

        Any stride will do along an axis of one element, and in an array of none.
        """
        w = self.w
        same = [w.value(f"icmp eq ptr {w.field(address, 0)}, {argument.data}")]
        empty = [w.value(f"icmp eq i64 {n}, 0") for n in argument.extents]
        rank = len(argument.extents)
        for i, n in enumerate(argument.extents):
            stride = w.field(address, 8 + 8 * (rank + i), "i64")
            alike = w.value(f"icmp eq i64 {stride}, {argument.strides[i]}")
            for reason in (w.value(f"icmp eq i64 {n}, 1"), *empty):
                alike = w.value(f"or i1 {alike}, {reason}")
            same += [w.value(f"icmp eq i64 {w.field(address, 8 + 8 * i, 'i64')}, {n}"), alike]
        return w.all_of(same)

    def made_array(
        self,
        spec: ResultSpec,
        address: str,
        data: str,
        arguments: dict[int, ArrayValue],
        owner: str | None,
    ) -> str:
        """A new array object: it owns its fresh memory, or is a view of an argument or a result."""
        w = self.w
        rank, dtype = spec["rank"], spec["dtype"]
        extents = w.value(f"getelementptr i8, ptr {address}, i64 8", "extents")
        strides = w.value(f"getelementptr i8, ptr {address}, i64 {8 + 8 * rank}", "strides")
        lanes = spec.get("lanes", 1)
        for d in range(rank):
            elements = w.field(strides, 8 * d, "i64")
            size = ITEM_SIZE[dtype] * lanes
            w.store("i64", w.value(f"mul i64 {elements}, {size}"), strides, 8 * d)
        if lanes > 1:
            extents = self.with_last(extents, rank, str(lanes))
            strides = self.with_last(strides, rank, str(ITEM_SIZE[dtype]))
            rank += 1
        position = spec.get("base")
        flags = str(ALIGNED if spec.get("read_only") else ALIGNED | WRITEABLE)
        if position is not None and not spec.get("read_only"):
            theirs = w.field(arguments[position].object, ARRAY_FLAGS, "i32")
            writeable = w.value(f"and i32 {theirs}, {WRITEABLE}")
            flags = w.value(f"or i32 {writeable}, {ALIGNED}")
        obj = self.keep(
            w.call(
                "PyArray_New", w.object("mutad_numpy_ndarray"), str(rank), extents,
                str(TYPE_NUMBERS[dtype][0]), strides, data, "0", flags, "null",
            )
        )  # fmt: skip
        if position is not None:
            self.view(obj, arguments[position].object)
        elif owner is not None:
            self.view(obj, owner)
        else:
            self.own(obj, data, self.pending[id(spec)])
        return obj

    def with_last(self, numbers: str, count: int, last: str) -> str:
        """A copy of so many numbers in memory, with one more behind them."""
        w = self.w
        copy = w.value(f"alloca [{count + 1} x i64]")
        for k in range(count):
            w.store("i64", w.field(numbers, 8 * k, "i64"), copy, 8 * k)
        w.store("i64", last, copy, 8 * count)
        return copy

    def lanes_first(self, dtype: str, rank: int, beside: str) -> str:
        """A view of tangents that lie side by side, along a last axis: along a first one."""
        if not self.beside:
            obj = self.keep(seen_lanes_first(self.w, dtype, rank, beside))
            self.view(obj, beside)
            return obj
        return as_the_flag_says(self, dtype, rank, beside)

    def numbers(self, specs: list[ResultSpec], address: str) -> str:
        """An array of scalars of one type that are stored one after the other; zeros without `address`."""
        type_ = specs[0]["type"]
        dtype = "f64" if type_ == "py_float" else type_
        obj = self.keep(new_numbers(self.w, dtype, len(specs)))
        fill_numbers(self.w, dtype, len(specs), obj, address)
        return obj

    def view(self, obj: str, base: str) -> None:
        w = self.w
        w.call("Py_IncRef", base)
        status = w.call("PyArray_SetBaseObject", obj, base)
        w.require(w.value(f"icmp eq i32 {status}, 0"), "failed")

    def own(self, obj: str, data: str, place: int) -> None:
        """Give the memory at `data` to `obj`, unless an earlier result owns it: then share."""
        w = self.w
        done = w.fresh("owned")
        for earlier in self.fresh:
            shared, alone = w.fresh("shared"), w.fresh("alone")
            same = w.value(f"icmp eq ptr {data}, {earlier.data}")
            w.do(f"br i1 {same}, label %{shared}, label %{alone}")
            w.label(shared)
            self.view(obj, earlier.object)
            w.do(f"br label %{done}")
            w.label(alone)
        flags = w.field(obj, ARRAY_FLAGS, "i32")
        w.store("i32", w.value(f"or i32 {flags}, {OWNS_DATA}"), obj, ARRAY_FLAGS)
        if self.driver:
            handler = w.device("mutad_device_handler", self.driver)
            w.call("Py_IncRef", handler)
            w.store("ptr", handler, obj, ARRAY_HANDLER)
        w.store("ptr", "null", "%pending", 8 * place)
        w.do(f"br label %{done}")
        w.label(done)

    def list(self, item: str, array: str) -> str:
        """A list of the items in an array, which are Python's where `item` is one of Python's types."""
        function = "PyArray_ToList" if item in MAKE else "PySequence_List"
        return self.keep(self.w.call(function, array))

    def tuple(self, items: list[str]) -> str:
        """A tuple that takes over the items' references."""
        result = self.keep(self.w.call("PyTuple_New", str(len(items))))
        for i, item in enumerate(items):
            self.w.call("PyTuple_SetItem", result, str(i), self.give(item))
        return result

    def result(
        self,
        spec: ResultSpec,
        first_slot: int,
        arguments: dict[int, ArrayValue],
    ) -> str:
        """The object that the function returns, its leaves stored from `first_slot` on."""
        slot = first_slot
        places = list[tuple[ResultSpec, str]]()
        for one in (*arrays_and_scalars(spec), *hidden(spec)):
            address = ""
            if one["kind"] != "argument":
                address = self.w.value(f"getelementptr i64, ptr %results, i64 {slot}", "at")
                slot += slots_of(one)
            places.append((one, address))
        arrays = [(one, address) for one, address in places if one["kind"] in ("array", "argument")]
        flags = [address for one, address in places if one["kind"] == "flag"]
        boxed = dict[int, str]()

        def array(index: int) -> str:
            """The array of this number among the results, after the owner of its memory."""
            if index not in boxed:
                one, address = arrays[index]
                if one["kind"] == "argument":
                    boxed[index] = arguments[one["leaf"]].object
                    self.w.call("Py_IncRef", boxed[index])
                    self.keep(boxed[index])
                else:
                    owner = array(one["owner"]) if "owner" in one else None
                    boxed[index] = self.array(one, address, arguments, owner)
            return boxed[index]

        numbers, scalars = count(), (a for one, a in places if one["kind"] == "scalar")

        def box(spec: ResultSpec) -> str:
            match spec["kind"]:
                case "none":
                    none = self.w.object("_Py_NoneStruct")
                    self.w.call("Py_IncRef", none)
                    return self.keep(none)
                case "tuple" if self.stacked and "lanes" in spec:
                    first, *_ = [next(scalars) for _ in spec["items"]]
                    return self.numbers(spec["items"], first)
                case "tuple":
                    return self.tuple([box(item) for item in spec["items"]])
                case "scalar" if "flag" in spec:
                    flag = flags[spec["flag"]]
                    return self.either(spec["type"], spec["python"], next(scalars), flag)
                case "scalar":
                    return self.scalar(spec["type"], next(scalars))
                case _ if "list" in spec:
                    return self.list(spec["list"], array(next(numbers)))
                case "argument" if spec["leaf"] in self.stacks:
                    next(numbers)
                    self.w.call("Py_IncRef", self.stacks[spec["leaf"]])
                    return self.keep(self.stacks[spec["leaf"]])
                case "array" if self.stacked and spec.get("lanes", 1) > 1:
                    return self.lanes_first(spec["dtype"], spec["rank"], array(next(numbers)))
                case _:
                    return array(next(numbers))

        return box(spec)

    def finish(self, result: str) -> None:
        """Return `result`, and drop whatever else we hold."""
        self.give(result)
        for obj in self.made:
            if obj:
                self.w.call("Py_DecRef", obj)
        self.w.do(f"ret ptr {result}")

    def undo(self) -> None:
        """The code at `%failed`: an exception is set; drop everything and return null."""
        self.w.label("failed")
        self.drop()
        self.w.do("ret ptr null")

    def drop(self) -> None:
        """Give back all that was made so far."""
        w = self.w
        blocks = f"ptr %pending, i64 {len(self.pending)}" if self.pending else "ptr null, i64 0"
        self.most = max(self.most, len(self.made))
        w.do(f"call void @{undo_function(self.driver)}({blocks}, ptr %made, i64 {len(self.made)})")
