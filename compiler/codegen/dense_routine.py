"""How routines of dense linear algebra are written: functions of numbers, once in a module.

Matrices are an address and the strides of rows and columns. BLAS stores by columns: what lies by rows is the
transposed matrix to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from .kernel_state import KernelState
from .llvm_text import FunctionText

INT_MAX = 2**31 - 1
SUM = "reassoc contract"
"""How sums are written, as those of products of matrices."""
MATRIX = "ptr %{0}, i64 %{0}0, i64 %{0}1"
"""Its parameters, by a letter."""


class Routine:
    """A function that is being written; `head` has its parameters, as LLVM does."""

    def __init__(self, state: KernelState, name: str, head: str, result: str) -> None:
        self.state, self.name, self.head, self.result = state, name, head, result
        self.text = FunctionText(state.metadata)

    def finish(self) -> None:
        """Put the function into the module."""
        define = f"define internal {self.result} @{self.name}({self.head}) noinline nounwind"
        self.state.functions[self.name] = f"{define} {{\n{self.text.text()}\n}}"

    def give(self, value: str = "") -> None:
        self.text.do(f"ret {self.result} {value}".rstrip())

    # Elements.

    def at(self, base: str, *steps: tuple[str, str]) -> str:
        """The address of an element: so many steps of so many elements each."""
        offset = "0"
        for count, step in steps:
            offset = self.text.add(offset, self.text.mul(count, step))
        return self.moved(base, offset)

    def moved(self, base: str, elements: str) -> str:
        if elements == "0":
            return base
        return self.text.value(f"getelementptr inbounds double, ptr {base}, i64 {elements}")

    def load(self, pointer: str, type_: str = "double") -> str:
        return self.text.value(f"load {type_}, ptr {pointer}, align 8")

    def store(self, value: str, pointer: str, type_: str = "double") -> None:
        self.text.do(f"store {type_} {value}, ptr {pointer}, align 8")

    def minus_product(self, x: str, y: str, z: str, type_: str = "double") -> str:
        """`x - y * z`."""
        product = self.text.value(f"fmul contract {type_} {y}, {z}")
        return self.text.value(f"fsub contract {type_} {x}, {product}")

    def not_(self, condition: str) -> str:
        return self.text.value(f"xor i1 {condition}, true")

    def all_of(self, *conditions: str) -> str:
        return self.text.both(conditions)

    def letter(self, condition: str, yes: str, no: str) -> str:
        """A letter for BLAS."""
        chosen = self.choose(condition, str(ord(yes)), str(ord(no)), "i8")
        return f"letter {chosen}"

    def leads(self, count: str, stride: str) -> str:
        """Rows of so many elements, so far from each other, are what BLAS can walk."""
        fits = self.less(stride, str(INT_MAX))
        return self.text.both([self.not_(self.less(stride, count)), fits])

    def subtract_rows(
        self,
        count: str,
        target: str,
        factors: Sequence[str],
        sources: Sequence[str],
        step: str = "1",
    ) -> None:
        """Subtract multiples of rows from another one."""
        t = self.text
        group = t.metadata.empty()
        opened = t.begin_loop(count)

        def load(row: str) -> str:
            at = self.at(row, (opened.counter, step))
            return t.value(f"load double, ptr {at}, align 8, !llvm.access.group {group}")

        rest = load(target)
        for factor, source in zip(factors, sources, strict=True):
            rest = self.minus_product(rest, factor, load(source))
        at = self.at(target, (opened.counter, step))
        t.do(f"store double {rest}, ptr {at}, align 8, !llvm.access.group {group}")
        apart = t.metadata.node(f'!"llvm.loop.parallel_accesses", {group}')
        t.end_loop(opened, (), [apart, *self.properties(vectors=step == "1")])

    def subtract_sum(
        self,
        terms: str,
        count: str,
        target: str,
        factor: Callable[[str], str],
        source: Callable[[str], str],
    ) -> None:
        """Subtract so many multiples of rows from another one, which is stored once for four of them."""
        t = self.text
        fours = t.value(f"lshr i64 {terms}, 2")
        done = t.value(f"shl i64 {fours}, 2")

        def four(block: str) -> None:
            first = t.mul(block, "4")
            ks = [t.add(first, str(i)) for i in range(4)]
            self.subtract_rows(count, target, [factor(k) for k in ks], [source(k) for k in ks])

        def one(extra: str) -> None:
            k = t.add(done, extra)
            self.subtract_rows(count, target, [factor(k)], [source(k)])

        self.loop(fours, four)
        self.loop(t.sub(terms, done), one)

    def size(self, x: str) -> str:
        name = self.state.intrinsic("llvm.fabs.double", "double", "double")
        return self.text.value(f"call double @{name}(double {x})")

    def less(self, a: str, b: str) -> str:
        return self.text.value(f"icmp slt i64 {a}, {b}")

    def equal(self, a: str, b: str) -> str:
        return self.text.value(f"icmp eq i64 {a}, {b}")

    def choose(self, condition: str, a: str, b: str, type_: str = "i64") -> str:
        return self.text.value(f"select i1 {condition}, {type_} {a}, {type_} {b}")

    # Control.

    def loop(self, count: str, body: Callable[[str], None], *, vectors: bool = False) -> None:
        """Run `body` with 0, 1, ... below `count`; with `vectors` for several at once."""
        opened = self.text.begin_loop(count)
        body(opened.counter)
        self.text.end_loop(opened, (), self.properties(vectors=vectors))

    def properties(self, *, vectors: bool) -> list[str]:
        """Of a loop: most are as small as they are written, which LLVM is to leave so."""
        node = self.text.metadata.node
        if vectors:
            return []
        never = node('!"llvm.loop.vectorize.enable", i1 false')
        return [never, node('!"llvm.loop.unroll.disable"')]

    def when(self, condition: str, body: Callable[[], None]) -> None:
        t = self.text
        then, on = t.label("then"), t.label("on")
        t.branch_if(condition, then, on)
        t.start(then)
        body()
        t.branch(on)
        t.start(on)

    def dot(
        self, count: str, factors: Callable[[str], tuple[str, str]], *, vectors: bool = True
    ) -> str:
        """The sum of products of pairs of numbers, in any order."""
        t = self.text
        loop = t.begin_loop(count, [("double", "0.0")])
        x, y = factors(loop.counter)
        product = t.value(f"fmul {SUM} double {x}, {y}")
        total = t.value(f"fadd {SUM} double {loop.values[0]}, {product}")
        (total,) = t.end_loop(loop, [total], self.properties(vectors=vectors))
        return total

    def swap(
        self, count: str, first: str, second: str, step: str = "1", *, vectors: bool = False
    ) -> None:
        """Swap rows of so many elements."""

        def one(j: str) -> None:
            a, b = self.at(first, (j, step)), self.at(second, (j, step))
            x, y = self.load(a), self.load(b)
            self.store(y, a)
            self.store(x, b)

        self.loop(count, one, vectors=vectors)

    def blas(self, stem: str, *arguments: str) -> None:
        """Call BLAS: letters, `i64`s and numbers as Fortran takes them, addresses as they are."""
        symbol = f"mutad_d{stem}"
        types = ", ".join(["ptr"] * len(arguments))
        self.state.declare(symbol, f"declare void @{symbol}({types})", "blas")
        shown = ", ".join(f"ptr {self.argument(a)}" for a in arguments)
        self.text.do(f"call void @{symbol}({shown})")

    def argument(self, value: str) -> str:
        kind, _, what = value.partition(" ")
        if kind == "ptr":
            return what
        if kind == "i64":
            kind, what = "i32", self.text.value(f"trunc i64 {what} to i32")
        if kind == "letter":
            kind, what = "i8", what if what.startswith("%") else str(ord(what))
        slot = self.text.alloca(kind, "arg")
        self.text.do(f"store {kind} {what}, ptr {slot}")
        return slot

    def call(self, routine: Written, *arguments: str) -> str:
        """Call another routine, or this one; what it returns."""
        types = (p.split()[0] for p in routine.head.split(", "))
        shown = ", ".join(f"{type_} {a}" for type_, a in zip(types, arguments, strict=True))
        call = f"call {routine.result} @{routine.name_in(self.state)}({shown})"
        if routine.result != "void":
            return self.text.value(call)
        self.text.do(call)
        return ""


@dataclass(frozen=True)
class Written:
    """A routine, which a module has once it is called there."""

    write: Callable[[Routine], None]
    head: str
    result: str = "void"

    def name_in(self, state: KernelState) -> str:
        name = f"mutad_dense_{self.write.__name__}"
        if name not in state.functions:
            state.functions[name] = ""
            routine = Routine(state, name, self.head, self.result)
            self.write(routine)
            routine.finish()
        return name
