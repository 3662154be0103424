"""Python lists in memory: the ops that reading and changing one emits.

A list whose items are numbers, or tuples of numbers, is one flat buffer for each number of an item,
and a cell that holds its length::

    l = []                %l_len = memref.alloca() : memref<index>      %l = array.alloc(%room)
                          memref.store %c0, %l_len[]
    l.append(v)           %n = memref.load %l_len[]
                          memref.store %v, %l[%n]
                          %m = arith.addi %n, %c1
                          memref.store %m, %l_len[]
    l.pop()               the element at %n - 1, and %l_len = %n - 1

So nothing below the frontend knows lists: elements are memory like any other, and the length is an integer
variable, whose updates the reverse sweep undoes exactly. How long the buffer must be is decided when the
function has been built (`list_room`). Items that are arrays are the rows of a buffer with more axes
(`list_rows`).
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol

from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    FloatAttr,
    IndexType,
    MemRefType,
    UnitAttr,
    f64,
)
from xdsl.ir import Block, Operation, SSAValue

from ....dialects import array
from ...diagnostics import CompileError, Span
from ...scalar_types import UNSIGNED
from .. import choices, library, scalars
from ..emitter import Emitter
from ..joins import (
    ArrayT,
    ChoiceT,
    FixedT,
    ListT,
    Maybe,
    MaybeT,
    Mismatch,
    ObjectT,
    RowT,
    ScalarT,
    Template,
    TupleT,
    classes_that_meet,
    describe,
    is_one_class,
    join,
    place_in_store,
    rebuilt,
    tuple_items,
)
from ..values import (
    EXTENT_MAX,
    IR_TYPE,
    Array,
    Choice,
    Item,
    NoneValue,
    Record,
    Row,
    Scalar,
    SliceValue,
    Static,
    Struct,
    Tuple,
    Value,
)
from . import pools

if TYPE_CHECKING:
    from .argument_items import Given

ListKey = tuple[tuple[int, ...], int, int]
"""A list: the calls that lead to its maker, the maker, how often it has been lowered there."""

Kind = tuple[ListKey, bool]
"""The items of a list, or those of the lists that are its items."""
StoreKey = tuple[Kind, int]
"""Where the items of a list are kept that are known by their places (`places`): the first, second, ... part
of an item that has an identity."""

Reference = tuple[Any, ...]
"""Which item of which argument list, and which part of that: indices, and names of fields. Or an object that
is an argument, or (LEAF, k) for the array that is the k-th of all that the arguments hold."""

STORED = {"py_bool": "b1", "py_int": "i64", "py_float": "f64"}
"""The dtypes in which Python's scalars are kept."""

METHODS = (
    "append", "clear", "copy", "count", "extend", "index", "insert", "pop", "remove", "reverse", "sort",
)  # fmt: skip
"""The methods of lists that are compiled."""

OUT_OF_RANGE = "list index out of range"
POP_OUT_OF_RANGE = "pop index out of range"
POP_FROM_EMPTY = "pop from empty list"
ASSIGN_OUT_OF_RANGE = "list assignment index out of range"


@dataclass(frozen=True)
class Growth:
    """Where a list may become longer: by how many items, and the check that there is room."""

    at: Operation
    amount: SSAValue
    check: array.RaiseIfOp


class Memory(Protocol):
    """Where a list is that is an item of another (`nested_lists`)."""

    def length(self, e: Emitter) -> SSAValue: ...
    def set_length(self, e: Emitter, n: SSAValue) -> Operation: ...
    def buffers(self, e: Emitter) -> list[SSAValue]: ...
    def reserve(self, e: Emitter, n: SSAValue) -> None:
        """Make room for n items."""
        ...


@dataclass(eq=False)
class ListObject:
    """One list. Names that are the same list share the object; it is found again by its key.

    `home` is the block whose end ends its memory (a loop's body, or the function), `born` the block
    where the list was made, `start` an op of `home` before which the memory is not needed.
    """

    described = "a list of its own"

    def consists_of(self) -> tuple[()]:
        """Nothing: of its items, which are in memory, it is asked itself."""
        return ()

    key: ListKey
    home: Block
    born: Block
    start: Operation
    length: SSAValue
    item: Template | None = None
    buffers: list[SSAValue] = field(default_factory=list[SSAValue])
    growths: list[Growth] = field(default_factory=list[Growth])
    shrinks: bool = False
    names: set[tuple[int, str]] = field(default_factory=set[tuple[int, str]])
    iterated: int = 0
    display: tuple[Value, ...] | None = None
    """The items that a display wrote out, while the list is what it made."""
    relied_on: bool = False
    """Whether the list must stay what the display made."""
    read_untyped: bool = False
    lent: bool = False
    """Whether an array that may be kept is the list's memory."""
    unknown: dict[SSAValue, tuple[SSAValue, ...]] = field(
        default_factory=dict[SSAValue, tuple[SSAValue, ...]]
    )
    """What stands for the numbers of the buffers of rows whose shape no item has told yet."""
    first_stores: dict[Operation, SSAValue | None] = field(
        default_factory=dict[Operation, "SSAValue | None"]
    )
    """The ops that write a row before it is an item: by copying, or to the array that becomes the row."""
    copies: list[RowCopy] = field(default_factory=list["RowCopy"])
    became: dict[SSAValue, tuple[SSAValue, Span | None]] = field(
        default_factory=dict[SSAValue, tuple[SSAValue, Span | None]]
    )
    """The arrays that have become rows, those rows, and where that was."""
    appended: list[Operation] = field(default_factory=list[Operation])
    """The stores of appended items, and the views that are stored to."""
    appends: int = 0
    """How many places append arrays to it."""
    memory: Memory | None = None
    row: Row | None = None
    """Which item of a list it is, and where that is."""
    uneven: bool = False
    """Whether the arrays in it have shapes of their own: then there is a pool for each."""
    own_shapes: dict[SSAValue, pools.Pool] = field(default_factory=dict[SSAValue, pools.Pool])
    """Those pools, by the buffers that say where each array begins."""
    ragged: bool = False
    """Whether the lists in it have lengths of their own."""
    taken_over: bool = False
    """Whether it is given the items of other lists: how many at a time, is not counted."""
    popped: bool = False
    """Whether arrays leave it: then the next to come overwrite them."""
    column: bool = False
    """Whether it is but one field of the items of a list of objects."""
    replaced: list[RowCopy] = field(default_factory=list["RowCopy"])
    """The copies that overwrite a field's array."""
    pools: list[SSAValue] = field(default_factory=list[SSAValue])
    """The buffers of the items of those, which lie one after the other, up to `pool_end`."""
    pool_end: SSAValue | None = None
    moved: Row | None = None
    """Which item of another list it has become."""
    origin: int | None = None
    """Which argument it is, among those with an identity."""
    changed: bool = False
    """Whether something was done to its length or items."""
    passed: bool = False
    """Whether recursive functions may change it (`list_parameters`)."""
    touched: int = 0
    """How many calls of such functions there are so far."""
    keeps: StoreKey | None = None
    """Whose items it keeps, if it is a store (`places`)."""
    given: Given | None = None
    """The first of those, where they are the caller's arrays or objects (`argument_items`)."""
    cls: type = object
    is_heap: bool = False
    """Whether it keeps all objects of the class `cls` (`heaps`)."""
    copied: tuple[int, SSAValue] | None = None
    """The argument that those are the lists of with which it begins, and how many they are."""
    loaded: dict[SSAValue, tuple[int, SSAValue]] = field(
        default_factory=dict[SSAValue, tuple[int, SSAValue]]
    )
    """The arrays that are rows of it: of which buffer, and where."""

    @property
    def kind(self) -> Kind:
        return self.key, self.row is not None

    @property
    def memories(self) -> list[SSAValue]:
        """Its buffers, and the pools of arrays."""
        return [*self.buffers, *(pool.memory for pool in self.own_shapes.values())]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ListObject) and other.key == self.key and other.row == self.row

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return "a list"


@dataclass(frozen=True)
class RowCopy:
    """An array that may have other names, and was copied into a list at `at`."""

    source: SSAValue
    buffer: SSAValue
    at: Operation
    span: Span | None
    number: tuple[ListKey, int] | None = None
    """Which of the list's appends it is."""
    arrays: frozenset[SSAValue] = frozenset()
    """The memory that the array was when it was copied."""
    before: frozenset[Operation] = frozenset()
    """What had been stored to it until then, since it was made."""
    moves: Kind | None = None
    """The list that is to know its items by their places, where the copy can be told."""


@dataclass(frozen=True)
class ListMethod:
    """`l.append` before its call."""

    receiver: ListObject
    name: str


@dataclass(frozen=True)
class FixedList(Tuple):
    """A list of arrays or of lists, which does not change: a tuple but for its class.

    Of what may grow it knows where it was `made`: if the program does more than to read items that are known
    while compiling, the next build makes a list of it. `origin` is which argument it is, among those with an
    identity.
    """

    made: tuple[tuple[int, ...], int] | None = field(default=None, compare=False)
    origin: int | None = field(default=None, compare=False)


def sequence_like(of: Tuple, items: tuple[Value, ...]) -> Tuple:
    """A tuple of these items, or a list where `of` is one."""
    return FixedList(items, made=of.made) if isinstance(of, FixedList) else Tuple(items)


@dataclass(frozen=True)
class ReturnedList(Array):
    """The items of a list that the compiled function returns, in an array of their own."""

    item: str = ""


# The type of the items.


def bare(t: Template) -> Template:
    """The form in which a list keeps an item: nothing is known of ints' ranges, arrays are compact."""
    match t:
        case ScalarT(type_):
            return ScalarT(type_)
        case ArrayT(type_, dtype):
            rank = type_.get_num_dims()
            return ArrayT(MemRefType(type_.element_type, [DYNAMIC_INDEX] * rank), dtype)
        case TupleT(items):
            return replace(t, items=tuple(bare(item) for item in items))
        case ListT(item):
            return ListT(None if item is None else bare(item))
        case ChoiceT(options):
            return ChoiceT(tuple(map(bare, options)))
        case _:
            return t


def is_storable(value: Value) -> bool:
    """True for what a list's buffers can hold."""
    match value:
        case Scalar() | NoneValue() | Static(str()):
            return True
        case Choice(_, options):
            return all(map(is_storable, options))
        case Tuple(items):
            return not isinstance(value, FixedList) and all(map(is_storable, items))
        case _:
            return False


def is_item(value: Value) -> bool:
    """True for what the items of a list can be: what `is_storable`, and arrays."""
    if isinstance(value, Tuple | Struct) and not isinstance(value, FixedList):
        return all(map(is_item, value.items))
    if isinstance(value, Static) and isinstance(value.object, ListObject):
        return value.object.item is None or not holds_arrays(value.object)
    if isinstance(value, Choice):
        return all(map(is_item, value.options))
    if isinstance(value, Static) and isinstance(value.object, enum.Enum):
        return True
    return is_storable(value) or isinstance(value, Array | Row | Record)


def joined(a: Template, b: Template) -> Template:
    """The form of a list that has items of both forms; Mismatch where one would lose digits."""
    match a, b:
        case ScalarT(x), ScalarT(y):
            result = join(a, b)
            assert isinstance(result, ScalarT)
            if result.type == "f32" and x != y:
                raise Mismatch(
                    "a list of np.float32 on one path and of another type on another: convert the items"
                )
            return bare(result)
        case TupleT(xs), TupleT(ys) if len(xs) == len(ys) and is_one_class(a, b):
            items = tuple(joined(x, y) for x, y in zip(xs, ys, strict=True))
            return replace(a, items=items)
        case ListT(x), ListT(y):
            return ListT(y if x is None else x if y is None else joined(x, y))
        case _:
            both = join(a, b)
            if isinstance(both, ChoiceT) and any(map(is_apart, both.options)):
                raise Mismatch(describe(both), objects=classes_that_meet(both, both))
            return bare(both)


def is_apart(t: Template) -> bool:
    """True for the form of items that have memory of their own: no list keeps one of such or None."""
    stores = [leaf.store for leaf in leaves_of(t) if isinstance(leaf, RowT)]
    return isinstance(t, ListT | ObjectT) or any(isinstance(s.item, ArrayT) for s in stores)


Leaf = ScalarT | ArrayT | RowT


def leaves_of(t: Template) -> list[Leaf]:
    """The numbers and arrays of an item, and the places of items of other lists."""
    match t:
        case ScalarT() | ArrayT() | RowT():
            return [t]
        case TupleT(items):
            return [leaf for item in items for leaf in leaves_of(item)]
        case ChoiceT(options):
            return [ScalarT("py_int"), *(leaf for one in options for leaf in leaves_of(one))]
        case _:
            return []


def parts_of(e: Emitter, value: Value, t: Template) -> list[Value]:
    """The numbers and arrays of a value that is an item."""
    match t:
        case ScalarT() | ArrayT() | RowT():
            return [value]
        case TupleT(items):
            pairs = zip(tuple_items(value), items, strict=True)
            return [part for v, item in pairs for part in parts_of(e, v, item)]
        case ChoiceT():
            found = rebuilt(t, iter(choices.coerced(e, value, t)))
            assert isinstance(found, Choice)
            pairs = zip(found.options, t.options, strict=True)
            number = Scalar("py_int", found.number)
            return [number, *(part for v, option in pairs for part in parts_of(e, v, option))]
        case _:
            return []


def is_of_numbers(seq: ListObject) -> bool:
    """True for a list of numbers, which the entry makes of one array."""
    return seq.item is None or isinstance(seq.item, ScalarT)


def holds_arrays(seq: ListObject) -> bool:
    """True for a list whose items are arrays, tuples with arrays in them, or lists."""
    if seq.item is None or isinstance(seq.item, ListT | ObjectT):
        return seq.item is not None
    return any(isinstance(t, ArrayT) for t in leaves_of(seq.item))


def holds_list(value: Value) -> bool:
    """True for a list, and for a tuple with one in it."""
    if isinstance(value, Tuple):
        return isinstance(value, FixedList) or any(map(holds_list, value.items))
    return isinstance(value, Row) or (
        isinstance(value, Static) and isinstance(value.object, ListObject)
    )


def displays_in(t: Template) -> Iterator[tuple[tuple[int, ...], int]]:
    """Where the lists of known length were made that a form has."""
    if isinstance(t, MaybeT):
        yield from displays_in(t.inner)
    elif isinstance(t, TupleT):
        if t.made is not None:
            yield t.made
        for item in t.items:
            yield from displays_in(item)


def lists_in(t: Template) -> Iterator[ListObject]:
    """The lists that a value of a form is, or that are in it."""
    match t:
        case FixedT(Static(ListObject() as one)) | FixedT(Static(ListMethod(one))) | RowT(one):
            yield one
        case TupleT(items) | ChoiceT(items):
            for item in items:
                yield from lists_in(item)
        case MaybeT(inner):
            yield from lists_in(inner)
        case _:
            pass


def columns_of(seq: ListObject) -> list[tuple[str, int]]:
    """The dtypes of the buffers that grow with the list, and how many axes an item has in each."""
    if isinstance(seq.item, ListT):
        inner = [] if seq.item.item is None else leaves_of(seq.item.item)
        if seq.ragged:
            return [("i64", 0)] * 3
        return [(dtype_of_leaf(leaf), 1) for leaf in inner]
    leaves = [] if seq.item is None else leaves_of(seq.item)
    if seq.uneven:
        return [("i64" if isinstance(t, ArrayT) else dtype_of_leaf(t), 0) for t in leaves]
    ranks = [t.type.get_num_dims() if isinstance(t, ArrayT) else 0 for t in leaves]
    return [(dtype_of_leaf(t), rank) for t, rank in zip(leaves, ranks, strict=True)]


def dtype_of_leaf(leaf: Leaf) -> str:
    if isinstance(leaf, RowT):
        return "i64"
    return leaf.dtype if isinstance(leaf, ArrayT) else STORED.get(leaf.type, leaf.type)


def type_of_leaf(leaf: ScalarT | RowT) -> str:
    return leaf.type if isinstance(leaf, ScalarT) else "py_int"


# Memory.


def allocate(e: Emitter, seq: ListObject, hint: str) -> None:
    """Buffers for items of the form `l.item`, at the list's start.

    The buffers of rows have extents which an item tells (`list_rows.tell_shape`): until then, loads of a cell
    that nobody writes stand for these.
    """
    block = seq.start.parent
    assert block is not None
    for dtype, rank in columns_of(seq):
        cells = [e.cell(IndexType(), f"{hint}_extent") for _ in range(1 + rank if rank else 0)]
        loads: list[Operation] = [memref.LoadOp.get(cell, []) for cell in cells]
        op = growable(e, dtype, [x.results[0] for x in loads] or [e.index(array.UNBOUNDED)])
        for made in (op, *reversed(loads)):
            made.location = seq.start.location
            block.insert_op_after(made, seq.start)
        seq.buffers.append(op.memref)
        if rank:
            seq.unknown[op.memref] = tuple(x.results[0] for x in loads)
    if seq.uneven and seq.item is not None:
        for leaf, buffer in zip(leaves_of(seq.item), seq.buffers, strict=True):
            if isinstance(leaf, ArrayT):
                rank = leaf.type.get_num_dims()
                made = [
                    growable(e, d, [e.index(array.UNBOUNDED)])
                    for d in [leaf.dtype] + ["i64"] * rank
                ]
                for op in made:
                    op.location = seq.start.location
                    block.insert_op_after(op, seq.start)
                memory, *extents = [op.memref for op in made]
                seq.own_shapes[buffer] = pools.Pool(memory, tuple(extents))


def growable(e: Emitter, dtype: str, extents: Sequence[SSAValue]) -> array.AllocOp:
    """An array that grows; not put anywhere yet."""
    return array.AllocOp.create(
        operands=list(extents),
        result_types=[MemRefType(IR_TYPE[dtype], [DYNAMIC_INDEX] * len(extents))],
        attributes={array.GROWABLE: UnitAttr()},
    )


def width(seq: ListObject) -> int:
    """How many numbers and arrays an item has."""
    return 0 if seq.item is None else len(leaves_of(seq.item))


def ready(e: Emitter, seq: ListObject) -> None:
    """Memory for the items, before the first of them is stored or read.

    That of arrays is made as late as that, where their extents may be known.
    """
    if seq.item is None or seq.buffers or seq.memory is not None or seq.column:
        return
    if holds_arrays(seq):
        with e.at(seq.home):
            seq.start = e.insert(arith.ConstantOp(FloatAttr(0.0, f64)))
    allocate(e, seq, "list")


def form_read(seq: ListObject) -> Template | None:
    """The form of the items; where there is none yet, the next build knows, if some code appends to it."""
    seq.read_untyped |= seq.item is None
    return seq.item


def length(e: Emitter, seq: ListObject) -> Scalar:
    n = e.load(seq.length) if seq.memory is None else seq.memory.length(e)
    return Scalar("py_int", n, None, 0, EXTENT_MAX)


def buffers_of(e: Emitter, seq: ListObject) -> list[SSAValue]:
    """The memory of the items, one for each number or array of an item."""
    if seq.memory is not None:
        return seq.memory.buffers(e)
    ready(e, seq)
    return seq.buffers


def mark_changed(seq: ListObject) -> None:
    """Note that the length or the items are others now: of the list in which it is, too."""
    seq.changed = True
    if seq.row is not None:
        seq.row.store.changed = True


def set_length(e: Emitter, seq: ListObject, n: SSAValue) -> Operation:
    mark_changed(seq)
    if seq.memory is not None:
        return seq.memory.set_length(e, n)
    return e.insert(memref.StoreOp.get(n, seq.length, []))


def extents_of(e: Emitter, buffer: SSAValue) -> Sequence[SSAValue]:
    """The extents of a buffer; one that was handed over is of numbers, and grows."""
    if isinstance(buffer.owner, array.AllocOp):
        return tuple(buffer.owner.extents)
    return [e.index(array.UNBOUNDED)]


def row(e: Emitter, buffer: SSAValue, at: SSAValue) -> SSAValue:
    """The view of one row of a buffer."""
    assert isinstance(buffer.owner, array.AllocOp)
    extents = buffer.owner.extents[1:]
    zero, one = e.index(0), e.index(1)
    axes = range(1, 1 + len(extents))
    op = array.ViewOp(buffer, [at, *(zero for _ in axes)], axes, extents, [one for _ in axes])
    found = e.emit(op, buffer.name_hint)
    assert isinstance(op.result.type, MemRefType)
    compact = MemRefType(op.result.type.element_type, op.result.type.get_shape())
    made = e.emit(memref.CastOp.get(found, compact), buffer.name_hint)
    e.dims |= {(made, d): n for d, n in enumerate(extents)}
    return made


def row_of(e: Emitter, seq: ListObject, buffer: SSAValue, at: SSAValue) -> SSAValue:
    """The view of one array in a list."""
    pool = seq.own_shapes.get(buffer)
    if pool is None:
        return row(e, buffer, at)
    offset, *extents = [
        e.emit(arith.IndexCastOp(e.emit(memref.LoadOp.get(b, [at])), IndexType()))
        for b in (buffer, *pool.extents)
    ]
    return pools.view(e, pool, offset, extents)


def memory_of(seq: ListObject, buffer: SSAValue) -> SSAValue:
    """Where the arrays of a list are."""
    pool = seq.own_shapes.get(buffer)
    return buffer if pool is None else pool.memory


def load_item(e: Emitter, seq: ListObject, at: SSAValue) -> Value:
    """The item at a place that exists: numbers are loaded, arrays are views of rows."""
    assert seq.item is not None
    if isinstance(seq.item, ListT):
        return Row(seq, at)
    if isinstance(seq.item, ObjectT) and seq.item.cls is not None:
        return Item(-1, seq.item.cls, seq.item.cls.__name__, None, seq, at)
    if seq.given is not None and isinstance(seq.item, ArrayT):
        return seq.given.array(e, seq, at)
    return row_item(e, seq, at)


def row_item(e: Emitter, seq: ListObject, at: SSAValue) -> Value:
    """The numbers and arrays of an item, from the buffers."""
    assert seq.item is not None
    found = list[SSAValue]()
    for leaf, buffer in zip(leaves_of(seq.item), buffers_of(e, seq), strict=True):
        if isinstance(leaf, ArrayT):
            found.append(row_of(e, seq, buffer, at))
            if not seq.column:
                seq.loaded[found[-1]] = seq.buffers.index(buffer), at
        else:
            found.append(load_number(e, leaf, buffer, at))
    value = rebuilt(seq.item, iter(found))
    assert not isinstance(value, Maybe)
    return referred(e, value)


def load_number(e: Emitter, leaf: ScalarT | RowT, buffer: SSAValue, at: SSAValue) -> SSAValue:
    """A number of an item."""
    loaded = e.emit(memref.LoadOp.get(buffer, [at]), buffer.name_hint)
    return scalars.convert(e, Scalar(dtype_of_leaf(leaf), loaded), type_of_leaf(leaf)).ssa


def referred(e: Emitter, value: Value) -> Value:
    """The value, arrays in the place of references to them."""
    match value:
        case Row(store, at) if isinstance(store.item, ArrayT):
            return load_item(e, store, at)
        case Tuple(items) | Struct(items):
            return replace(value, items=tuple(referred(e, item) for item in items))
        case _:
            return value


def form_of_items(seq: ListObject) -> Template | None:
    """The form of the items, wherever they are kept."""
    return seq.item.store.item if isinstance(seq.item, RowT) else seq.item


def parts_of_form(seq: ListObject) -> list[Template]:
    """The parts of an item, arrays and objects and lists among them, wherever they are kept."""
    found, pending = list[Template](), [seq.item]
    while pending:
        match pending.pop():
            case RowT(store):
                pending.append(store.item)
            case ObjectT() | ListT() | ScalarT() | ArrayT() as part:
                found.append(part)
            case TupleT(items):
                pending += items
            case _:
                pass
    return found


def holds_places(t: Template) -> bool:
    """True for the form of items parts of which are known by their places."""
    return any(isinstance(leaf, RowT) for leaf in leaves_of(t))


def as_numbers(seq: ListObject) -> ListObject:
    """A list whose items are about to move, with places as numbers."""
    mark_changed(seq)
    leaves = [] if seq.item is None else leaves_of(seq.item)
    if not any(isinstance(leaf, RowT) for leaf in leaves):
        return seq
    items = tuple(ScalarT("i64") if isinstance(leaf, RowT) else leaf for leaf in leaves)
    return replace(seq, item=TupleT(items))


def appended(seq: ListObject, op: Operation) -> None:
    """Note that a store, or a view that is stored to, is of the item behind the last.

    Where nothing is ever taken away, nobody has touched that before: so it is in stores of items, and
    `only_grows` tells of other lists when they are done.
    """
    if seq.keeps is not None:
        op.attributes[array.FRESH] = UnitAttr()
    else:
        seq.appended.append(op)


def only_grows(seq: ListObject) -> bool:
    """True for a list that lives as long as its memory does and from which nothing is taken."""
    known = seq.memory is None and seq.home is seq.born
    return known and not (seq.shrinks or seq.popped or seq.passed or seq.taken_over)


def store_item(
    e: Emitter,
    seq: ListObject,
    at: SSAValue,
    value: Value,
    skipping: Collection[SSAValue] = (),
    *,
    last: bool = False,
) -> list[tuple[SSAValue, array.MapOp]]:
    """Put an item of the list's form at a place that exists, the `last`, perhaps; but for the buffers that
    have it already.

    Arrays are copied: the ops that do this, and the buffers that they write to.
    """
    assert seq.item is not None
    mark_changed(seq)
    buffers = buffers_of(e, seq)
    parts = parts_of(e, value, seq.item)
    copies = list[tuple[SSAValue, array.MapOp]]()
    for leaf, part, buffer in zip(leaves_of(seq.item), parts, buffers, strict=True):
        if isinstance(leaf, ArrayT):
            assert isinstance(part, Array)
            if buffer not in skipping:
                target = row_of(e, seq, buffer, at)
                if last and isinstance(target.owner, memref.CastOp):
                    appended(seq, target.owner)
                copies.append((memory_of(seq, buffer), copy(e, part, target)))
            continue
        if isinstance(leaf, RowT):
            part = Scalar("py_int", place_in_store(e, part))
        assert isinstance(part, Scalar)
        type_ = type_of_leaf(leaf)
        kept = scalars.convert(e, scalars.convert(e, part, type_), dtype_of_leaf(leaf)).ssa
        stored = e.insert(memref.StoreOp.get(kept, buffer, [at]))
        if last:
            appended(seq, stored)
    return copies


def views(e: Emitter, seq: ListObject, n: SSAValue | None = None) -> list[Array]:
    """The items as arrays, one for each number or array of an item: no copy."""
    assert seq.item is not None
    buffers = buffers_of(e, seq)
    count = length(e, seq).ssa if n is None else n
    zero, one = e.index(0), e.index(1)
    made = list[Array]()
    inner = seq.item.item if isinstance(seq.item, ListT) else seq.item
    assert inner is not None
    for leaf, buffer in zip(leaves_of(inner), buffers, strict=True):
        extents = [count, *extents_of(e, buffer)[1:]]
        axes = range(len(extents))
        op = array.ViewOp(buffer, [zero for _ in axes], axes, extents, [one for _ in axes])
        made.append(Array(e.emit(op, buffer.name_hint), dtype_of_leaf(leaf)))
    return made


def copy(e: Emitter, source: Array, target: SSAValue) -> array.MapOp:
    """Copy an array to another place of its own length, converting its elements."""
    assert isinstance(target.type, MemRefType)
    body = Block(arg_types=[source.type.element_type])
    with e.at(body):
        value: SSAValue = body.args[0]
        if value.type != target.type.element_type:
            unsigned = source.dtype in UNSIGNED
            value = e.emit(array.CastOp(value, target.type.element_type, unsigned=unsigned))
        e.insert(array.YieldOp([value]))
    extents = e.extents(target)
    return e.insert(array.MapOp(extents, [source.memref], [target], ["store"], body))


@contextmanager
def counted(e: Emitter, count: SSAValue) -> Generator[SSAValue]:
    """Emit a loop meanwhile: which iteration it is."""
    body = Block(arg_types=[IndexType()])
    with e.at(body):
        yield body.args[0]
        e.insert(array.YieldOp())
    e.insert(array.LoopOp(count, [], body))


# Subscripts.


def place(e: Emitter, index: Scalar, n: SSAValue, message: str) -> SSAValue:
    """A subscript made ready for memory; IndexError with the list's words."""
    sign = "nonneg" if index.low >= 0 else "negative" if index.high < 0 else "any"
    unchecked = not e.boundscheck
    op = array.IndexOp(index.ssa, n, 0, sign, unchecked=unchecked, message=message)
    return e.emit(op, "at")


def item_at(e: Emitter, seq: ListObject, index: Scalar) -> Value:
    return load_item(e, seq, place(e, index, length(e, seq).ssa, OUT_OF_RANGE))


def sliced(e: Emitter, seq: ListObject, part: SliceValue) -> list[Array]:
    """The items of a slice, where they are."""
    found = list[Array]()
    for view in views(e, seq):
        selected = library.subscript(e, view, (part,))
        assert isinstance(selected, Array)
        found.append(selected)
    return found


def length_stores(seq: ListObject) -> int:
    """How many places store the length so far, or call what may."""
    return seq.touched + sum(isinstance(u.operation, memref.StoreOp) for u in seq.length.uses)


# Searching.


def count_equal(
    e: Emitter, seq: ListObject, equal: Equality, first_only: bool
) -> tuple[SSAValue, SSAValue]:
    """How many items are equal to something, and the place of the first of them (or the length)."""
    number, at = e.cell(IndexType(), "number"), e.cell(IndexType(), "at")
    n = length(e, seq).ssa
    e.store(e.index(0), number)
    e.store(n, at)
    with counted(e, n) as i:
        same = equal(load_item(e, seq, i))
        step = e.emit(array.CastOp(same, IndexType()))
        e.store(e.emit(arith.AddiOp(e.load(number), step)), number)
        if first_only:
            before = e.load(at)
            here = e.emit(arith.SelectOp(same, i, n))
            e.store(e.emit(arith.MinSIOp(before, here)), at)
    return e.load(number), e.load(at)


class Equality:
    """`item == wanted`, as a bit."""

    def __init__(self, e: Emitter, wanted: Scalar) -> None:
        self.e, self.wanted = e, wanted

    def __call__(self, item: Value) -> SSAValue:
        if not isinstance(item, Scalar):
            raise CompileError(
                self.e.span, "tuples in a list are searched", "compare their items in a loop"
            )
        if scalars.is_python(item) and scalars.is_python(self.wanted):
            same: Value = scalars.compare(self.e, "Eq", item, self.wanted)
        else:
            same = library.compare(self.e, "Eq", item, self.wanted)
        if not isinstance(same, Scalar):
            same = library.subscript(self.e, same, ())  # pyright: ignore
            assert isinstance(same, Scalar)
        return scalars.truth(self.e, same).ssa
