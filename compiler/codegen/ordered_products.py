"""Products that are added to a matrix in the order of their inner dimension. LLVM text.

What a loop adds iteration by iteration, an outer product each, `collect_products` collects into products of
matrices. They have the bits that the loop has: within a budget, the iterations run one by one. So an element
of the result is loaded, and adds up its products one after the other, each fused with its sum where the CPU
fuses them. BLAS adds up products first::

    define internal void @mutad_ordered_double(i64 %n, i64 %k, i64 %m, ptr %a, i64 %a0, i64 %a1,
                                               ptr %b, i64 %b0, i64 %b1, ptr %c, i64 %c0, i64 %c1)

A tile of the result stays in registers while a loop goes along the inner dimension: some rows, of three
registers each, for three loads of `b` and a number of `a` a row. The columns of `b` for such a tile are read
where they lie, or from a copy (a panel) where they do not lie side by side, and at the end of the rows, where
tiles are narrow, and what the last one has too much is masked. At the last rows a tile computes its last row
several times, and stores the same numbers there each time: all are read before any is written. Where columns
of the result lie side by side, it is c' = b' a'.

Addresses go from element to element (`strided_loops` tells why), and LLVM leaves the loops as they are.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import MemRefType, f32, f64
from xdsl.ir import SSAValue

from ...dialects import array
from .kernel_state import ITEM_BYTES, Descriptor, KernelState, value_type
from .narrow_products import NARROW, NarrowProduct
from .ordered_tiles import WIDE, Tile, added_product
from .strided_loops import AS_WRITTEN

ACROSS = 3
"""Registers of a row of a tile."""
NAMES = ("outer", "inner", "row", "y0", "y1", "x0", "x1")
"""Sizes and strides that are other ones for c' = b' a'."""


def is_ordered(op: array.MatmulOp) -> bool:
    """Whether products are added one by one, to what is there: also where there is only one."""
    assert isinstance(op.c.type, MemRefType)
    if op.accumulate is None or op.c.type.element_type not in (f64, f32):
        return False
    return array.IN_ORDER in op.attributes or is_single(op.a, 1) or is_single(op.b, 0)


def is_single(matrix: SSAValue, axis: int) -> bool:
    """Whether the IR says that an axis of a matrix has one element."""
    assert isinstance(matrix.type, MemRefType)
    view = matrix.owner
    known = matrix.type.get_shape()[axis]
    if known == -1 and isinstance(view, array.ViewOp):
        known = array.constant_value(view.extents[axis])
    return known == 1


def lower_ordered(
    state: KernelState, operands: tuple[Descriptor, ...], sizes: Sequence[str]
) -> None:
    number = value_type(operands[2].element)
    function = function_name(number)
    shown = [f"i64 {n}" for n in sizes]
    for d in operands:
        shown += [f"ptr {d.pointer}", *(f"i64 {s}" for s in d.strides)]
    if state.shares:
        parameters = ", ".join(["i64"] * 3 + ["ptr, i64, i64"] * 3)
        line = f"declare void @{function}({parameters}) nounwind"
        state.declare_shared(function, line, "ordered", number)
    else:
        define(state, number)
    state.text.do(f"call void @{function}({', '.join(shown)})")


def function_name(type_: str) -> str:
    return f"mutad_ordered_{type_}"


def define(state: KernelState, type_: str) -> str:
    """The name of the function for an LLVM type, in the module."""
    name = function_name(type_)
    if name not in state.functions:
        size = WIDE if "avx512vl" in state.features else 32 if "avx2" in state.features else 16
        rows = 8 if size == WIDE else 4
        scope = state.metadata.node(state.metadata.distinct(state.metadata.distinct()))
        tiles = {"low": (1, ACROSS, True), "high": (rows, ACROSS, False), "edge": (rows, 1, True)}
        for shape, of in tiles.items():
            tile = Tile(state, type_, size, *of, scope)
            state.functions[f"{name}_{shape}"] = tile.function(f"{name}_{shape}")
        added, width = f"mutad_add_rows_{type_}", ACROSS * size // ITEM_BYTES[type_]
        if added not in state.functions:
            state.functions[added] = NarrowProduct(state, type_).write(added)
        state.functions[name] = text(state, name, type_, rows, width, added)
        state.intrinsic("llvm.smin.i64", "i64", "i64, i64")
    return name


def text(state: KernelState, name: str, type_: str, rows: int, width: int, added: str) -> str:
    """The function, which calls those of tiles, or for one product, or goes from element to element."""
    parameters = "i64 %n, i64 %k, i64 %m"
    for x in "abc":
        parameters += f", ptr %{x}, i64 %{x}0, i64 %{x}1"
    pairs = [("%n", "%m"), ("%m", "%n"), ("%c0", "%c1")]
    pairs += [("%a0", "%b1"), ("%a1", "%b0"), ("%b0", "%a1"), ("%b1", "%a0")]
    chosen = [
        f"  %{chosen_} = select i1 %turned, i64 {other}, i64 {own}"
        for chosen_, (own, other) in zip(NAMES, pairs, strict=True)
    ]
    given = "i64 %outer, i64 %inner, i64 %k, ptr %c, i64 %row, ptr %y, i64 %y0, i64 %y1"
    given += ", ptr %x, i64 %x0, i64 %x1"
    at_edge = given.replace("%inner", "%over").replace("ptr %c", "ptr %c.edge")
    at_edge = at_edge.replace("ptr %x", "ptr %x.edge")
    parameters = parameters.replace("ptr %c", "ptr noalias %c")
    return f"""define internal void @{name}({parameters}) {AS_WRITTEN} {{
entry:
  %columns = icmp eq i64 %c0, 1
  %apart = icmp ne i64 %c1, 1
  %single = icmp eq i64 %m, 1
  %no.rows = or i1 %apart, %single
  %turned = and i1 %columns, %no.rows
{chr(10).join(chosen)}
  %y = select i1 %turned, ptr %b, ptr %a
  %x = select i1 %turned, ptr %a, ptr %b
  %beside = icmp eq i64 %c1, 1
  %vectors = or i1 %turned, %beside
  br i1 %vectors, label %tiles, label %elements
tiles:
  %one = icmp eq i64 %k, 1
  %some.inner = icmp sgt i64 %inner, 0
  %quick = and i1 %one, %some.inner
  br i1 %quick, label %part, label %sized
part:
  %p = phi i64 [ 0, %tiles ], [ %p.next, %part ]
  %left = sub i64 %inner, %p
  %length = call i64 @llvm.smin.i64(i64 %left, i64 {NARROW})
  %c.part = getelementptr {type_}, ptr %c, i64 %p
  %p.x = mul i64 %p, %x1
  %x.part = getelementptr {type_}, ptr %x, i64 %p.x
  call void @{added}(i64 %length, i64 %outer, ptr %c.part, i64 %row, ptr %x.part, i64 %x1, ptr %y, i64 %y0)
  %p.next = add i64 %p, {NARROW}
  %p.more = icmp slt i64 %p.next, %inner
  br i1 %p.more, label %part, label %done
sized:
  %few = icmp slt i64 %outer, {rows // 2 + 1}
  br i1 %few, label %low, label %high
low:
  call void @{name}_low({given})
  ret void
high:
  %over = urem i64 %inner, {width}
  %whole = sub i64 %inner, %over
  call void @{name}_high({given.replace("%inner", "%whole")})
  %edge = icmp sgt i64 %over, 0
  br i1 %edge, label %edges, label %done
edges:
  %c.edge = getelementptr {type_}, ptr %c, i64 %whole
  %x.whole = mul i64 %whole, %x1
  %x.edge = getelementptr {type_}, ptr %x, i64 %x.whole
  call void @{name}_edge({at_edge})
  ret void
elements:
  %some.n = icmp sgt i64 %n, 0
  %some.m = icmp sgt i64 %m, 0
  %some.k = icmp sgt i64 %k, 0
  %some.c = and i1 %some.n, %some.m
  %some = and i1 %some.c, %some.k
  br i1 %some, label %i.loop, label %done
i.loop:
  %i = phi i64 [ 0, %elements ], [ %i.next, %i.end ]
  br label %j.loop
j.loop:
  %j = phi i64 [ 0, %i.loop ], [ %j.next, %j.end ]
  %at.i = mul i64 %i, %c0
  %at.j = mul i64 %j, %c1
  %at = add i64 %at.i, %at.j
  %place = getelementptr {type_}, ptr %c, i64 %at
  %old = load {type_}, ptr %place
  %a.i = mul i64 %i, %a0
  %b.j = mul i64 %j, %b1
  %a.row = getelementptr {type_}, ptr %a, i64 %a.i
  %b.column = getelementptr {type_}, ptr %b, i64 %b.j
  br label %l.loop
l.loop:
  %l = phi i64 [ 0, %j.loop ], [ %l.next, %l.loop ]
  %sum = phi {type_} [ %old, %j.loop ], [ %sum.next, %l.loop ]
  %a.place = phi ptr [ %a.row, %j.loop ], [ %a.next, %l.loop ]
  %b.place = phi ptr [ %b.column, %j.loop ], [ %b.next, %l.loop ]
  %a.one = load {type_}, ptr %a.place
  %b.one = load {type_}, ptr %b.place
  %a.next = getelementptr {type_}, ptr %a.place, i64 %a1
  %b.next = getelementptr {type_}, ptr %b.place, i64 %b0
{chr(10).join(added_product(state, type_, "%sum.next", "%sum", "%a.one", "%b.one"))}
  %l.next = add i64 %l, 1
  %l.more = icmp slt i64 %l.next, %k
  br i1 %l.more, label %l.loop, label %j.end
j.end:
  store {type_} %sum.next, ptr %place
  %j.next = add i64 %j, 1
  %j.more = icmp slt i64 %j.next, %m
  br i1 %j.more, label %j.loop, label %i.end
i.end:
  %i.next = add i64 %i, 1
  %i.more = icmp slt i64 %i.next, %n
  br i1 %i.more, label %i.loop, label %done
done:
  ret void
}}"""
