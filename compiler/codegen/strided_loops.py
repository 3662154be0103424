"""Loops over the elements of matrices that lie as they may: what products of matrices do beside BLAS.

Strides are numbers of elements that only the call knows. LLVM makes vector code of a loop that multiplies by
them, for strides of 1, unrolls the rest, and reduces its strength: two thirds of the time to compile a
product, whose copies and tiny sizes gain nothing. So addresses go from element to element here, in functions
whose loops stay as they are::

    define internal void @mutad_put_double(i64 %n, i64 %m, ptr %x, i64 %x0, i64 %x1,
                                           ptr %y, i64 %y0, i64 %y1, i1 %accumulate)
    define internal void @mutad_column_double(i64 %n, i64 %k, ptr %a, i64 %a0, i64 %a1, ptr %b, i64 %b0,
                                              ptr %c, i64 %c0, i1 %accumulate, i1 %apart)

The second multiplies a matrix by a column: sums of products, in vectors where both factors lie side by side,
and their types do not say that they may lie `apart`.
"""

from __future__ import annotations

from dataclasses import dataclass

from .kernel_state import ITEM_BYTES, KernelState
from .llvm_text import FunctionText, OpenLoop
from .scalar_text import FAST, float_text

FUSED = {"double": "llvm.fma.f64", "float": "llvm.fma.f32"}
AS_WRITTEN = "noinline optsize nounwind align 64"
"""Of a function whose loops LLVM leaves alone. It would begin anywhere: loops took up to 1.5x of the time."""


@dataclass(frozen=True)
class Along:
    """An open loop over elements, and where those of this iteration are."""

    loop: OpenLoop
    at: tuple[str, ...]
    following: tuple[str, ...]


class Elements:
    """Writes a function that reads and stores elements of one type."""

    def __init__(self, state: KernelState, type_: str, *, in_vectors: bool = False) -> None:
        self.state = state
        self.type = type_
        self.memory = "i8" if type_ == "i1" else type_
        self.size = ITEM_BYTES[type_]
        self.text = FunctionText(state.metadata)
        self.in_vectors = in_vectors
        """Whether `along` is to become vector code where strides are 1."""

    def load(self, pointer: str) -> str:
        found = self.text.value(f"load {self.memory}, ptr {pointer}, align {self.size}")
        return self.text.value(f"icmp ne i8 {found}, 0") if self.type == "i1" else found

    def store(self, value: str, pointer: str) -> None:
        if self.type == "i1":
            value = self.text.value(f"zext i1 {value} to i8")
        self.text.do(f"store {self.memory} {value}, ptr {pointer}, align {self.size}")

    @property
    def zero(self) -> str:
        if self.type in ("double", "float"):
            return float_text(0.0, self.type)
        return "false" if self.type == "i1" else "0"

    def plus(self, x: str, y: str) -> str:
        flags = FAST if self.state.fastmath else " reassoc contract"
        form = {"double": f"fadd{flags}", "float": f"fadd{flags}", "i1": "or"}.get(self.type, "add")
        return self.text.value(f"{form} {self.type} {x}, {y}")

    def times(self, x: str, y: str) -> str:
        form = {"double": "fmul contract", "float": "fmul contract", "i1": "and"}.get(
            self.type, "mul"
        )
        return self.text.value(f"{form} {self.type} {x}, {y}")

    def plus_product(self, total: str, x: str, y: str) -> str:
        """A sum and a product, fused where the CPU fuses them, at each level of optimization."""
        if self.type not in FUSED or "fma" not in self.state.features:
            return self.plus(total, self.times(x, y))
        name = self.state.intrinsic(FUSED[self.type], self.type, ", ".join([self.type] * 3))
        return self.text.value(
            f"call {self.type} @{name}({self.type} {x}, {self.type} {y}, {self.type} {total})"
        )

    def behind(self, pointer: str, elements: str) -> str:
        return self.text.value(
            f"getelementptr inbounds {self.memory}, ptr {pointer}, i64 {elements}"
        )

    def after(self, pointer: str, elements: str) -> str:
        """The next address, which may be beyond the last element."""
        return self.text.value(f"getelementptr {self.memory}, ptr {pointer}, i64 {elements}")

    # Loops.

    def along(self, count: str, *rows: tuple[str, str]) -> Along:
        """A loop over the elements of rows, each given as its first element and the stride."""
        t = self.text
        if self.in_vectors:
            loop = t.begin_loop(count, (), "j")
            at = tuple(self.behind(first, t.mul(loop.counter, step)) for first, step in rows)
            return Along(loop, at, ())
        loop = t.begin_loop(count, [("ptr", first) for first, _ in rows], "j")
        steps = zip(loop.values, rows, strict=True)
        following = tuple(self.after(at, step) for at, (_, step) in steps)
        return Along(loop, loop.values, following)

    def end(self, along: Along) -> None:
        self.text.end_loop(along.loop, along.following)


class StridedCopy(Elements):
    """Writes the function that copies, or adds, a matrix to another."""

    def write(self, function: str) -> str:
        t = self.text
        add, copy, done = t.label("add"), t.label("copy"), t.label("done")
        t.branch_if("%accumulate", add, copy)
        for label in (add, copy):
            t.start(label)
            i = t.begin_loop("%n")
            rows = (self.behind(f"%{m}", t.mul(i.counter, f"%{m}0")) for m in "xy")
            along = self.along("%m", *zip(rows, ("%x1", "%y1"), strict=True))
            source, target = along.at
            new = self.load(source)
            self.store(self.plus(self.load(target), new) if label == add else new, target)
            self.end(along)
            t.end_loop(i)
            t.branch(done)
        t.start(done)
        t.do("ret void")
        parameters = "i64 %n, i64 %m"
        for m in "xy":
            parameters += f", ptr %{m}, i64 %{m}0, i64 %{m}1"
        head = f"define internal void @{function}({parameters}, i1 %accumulate) {AS_WRITTEN}"
        return f"{head} {{\n{t.text()}\n}}"


class ColumnProduct(Elements):
    """Writes the function that multiplies a matrix by a column."""

    def write(self, function: str) -> str:
        t = self.text
        nothing = t.alloca(self.memory, "zero")
        self.store(self.zero, nothing)
        # Not a choice for each element: LLVM would write the loops twice.
        start = t.value("select i1 %accumulate, ptr %c, ptr " + nothing)
        start_step = t.value("select i1 %accumulate, i64 %c0, i64 0")
        near, far, done = (t.label(name) for name in ("beside", "apart", "done"))
        paths = {near: self.beside, far: self.apart}
        if self.state.spread:  # LLVM has no version for strides of 1 there either
            del paths[near]
            t.branch(far)
        else:
            sure = t.value("xor i1 %apart, true")
            steps = [t.value(f"icmp eq i64 {step}, 1") for step in ("%a1", "%b0")]
            t.branch_if(t.both([*steps, sure]), near, far)
        for label, sum_up in paths.items():
            t.start(label)
            i = t.begin_loop("%n", [("ptr", "%a"), ("ptr", "%c"), ("ptr", start)])
            row, target, old = i.values
            total = sum_up(row)
            self.store(self.plus(self.load(old), total), target)
            steps = zip(i.values, ("%a0", "%c0", start_step), strict=True)
            t.end_loop(i, [self.after(place, step) for place, step in steps])
            t.branch(done)
        t.start(done)
        t.do("ret void")
        parameters = "i64 %n, i64 %k, ptr %a, i64 %a0, i64 %a1, ptr %b, i64 %b0, ptr %c, i64 %c0"
        parameters += ", i1 %accumulate, i1 %apart"
        head = f"define internal void @{function}({parameters}) noinline nounwind"
        return f"{head} {{\n{t.text()}\n}}"

    def beside(self, row: str) -> str:
        """The sum of the products of a row and the column."""
        t = self.text
        loop = t.begin_loop("%k", [(self.type, self.zero)], "l")
        x, y = (self.load(self.behind(first, loop.counter)) for first in (row, "%b"))
        (total,) = t.end_loop(loop, [self.plus(loop.values[0], self.times(x, y))])
        return total

    def apart(self, row: str) -> str:
        t = self.text
        carried = [(self.type, self.zero), ("ptr", row), ("ptr", "%b")]
        loop = t.begin_loop("%k", carried, "l")
        total, x, y = loop.values
        new = self.plus(total, self.times(self.load(x), self.load(y)))
        following = [new, self.after(x, "%a1"), self.after(y, "%b0")]
        total, *_ = t.end_loop(loop, following)
        return total
