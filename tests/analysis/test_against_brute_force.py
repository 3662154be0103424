"""The memory analyses against a brute-force oracle on generated loop nests.

Sound: what an analysis denies never happens in a run. Precise: it affirms little that no run shows;
how much is counted and bounded.
"""

from __future__ import annotations

import random

import pytest
from memory_trace import Buffer, Trace, parse
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from mutad.compiler.analysis.kills import Kills
from mutad.compiler.analysis.memory_ssa import LiveOnEntry, MemoryDef, MemorySSA
from mutad.compiler.rules import accesses, reads

SEEDS = range(40)


class Program:
    """Writes a random function of memrefs u, v (rank 1), a (rank 2) and indices n, m."""

    def __init__(self, seed: int, overlap: bool = False) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.count = 0
        self.statements = self.random.randint(2, 4)
        body_start = len(self.lines)
        self.block(["%n"], ["%u", "%v"], 0)
        attributes = " attributes {overlaps = [[0, 1]]}" if overlap else ""
        consts = [f"  %k{c} = arith.constant {c} : index" for c in range(-2, 4)]
        consts = [c.replace("%k-", "%km") for c in consts]
        head = (
            "func.func @f(%u : memref<?xf64>, %v : memref<?xf64>, %a : memref<?x?xf64>,"
            f" %n : index, %x : f64){attributes} {{"
        )
        self.text = "\n".join([head, *consts, *self.lines[body_start:], "  func.return", "}"])

    def name(self, stem: str) -> str:
        self.count += 1
        return f"%{stem}{self.count}"

    def emit(self, line: str) -> None:
        self.lines.append("  " + line)

    def constant(self, low: int = -2, high: int = 3) -> str:
        c = self.random.randint(low, high)
        return f"%k{c}".replace("-", "m")

    def op(self, text: str) -> str:
        result = self.name("t")
        self.emit(f"{result} = {text}")
        return result

    def subscript(self, indices: list[str]) -> str:
        pick = self.random.random
        value = self.random.choice(indices[1:] or ["%k1"]) if pick() < 0.9 else self.constant(0)
        if pick() < 0.25:
            value = self.op(f"arith.muli {value}, %k2 : index")
        if len(indices) > 2 and pick() < 0.2:
            kind = self.random.choice(["addi", "addi", "subi"])
            value = self.op(f"arith.{kind} {value}, {self.random.choice(indices[1:])} : index")
        if pick() < 0.6:
            value = self.op(
                f"arith.addi {value}, {self.constant(-1 if pick() < 0.1 else 0)} : index"
            )
        if pick() < 0.05:
            value = self.op(f"arith.subi %n, {value} : index")
        return value

    def bound(self, indices: list[str]) -> str:
        pick = self.random.random()
        if pick < 0.4:
            return "%n"
        if pick < 0.5:
            return self.constant(1, 3)
        outer = self.random.choice(indices)
        if pick < 0.7:
            below = self.op(f"arith.subi %n, {outer} : index")
            return self.op(f"arith.subi {below}, %k1 : index")
        if pick < 0.8:
            less = self.op(f"arith.subi %n, {self.constant(0, 3)} : index")
            return self.op(f"arith.maxsi {less}, %k0 : index")
        if pick < 0.9:
            return self.op(f"array.floordiv {outer}, %k2 : index")
        return outer

    def block(self, indices: list[str], vectors: list[str], depth: int) -> None:
        for _ in range(self.random.randint(1, 2) if depth else self.statements):
            pick = self.random.random()
            if depth < 3 and pick < (0.8 if depth == 0 else 0.35):
                self.loop(indices, vectors, depth)
            elif 0 < depth < 4 and pick < 0.45:
                self.branch(indices, vectors, depth)
            elif pick < 0.6:
                self.map(indices, vectors)
            else:
                self.access(indices, vectors)

    def loop(self, indices: list[str], vectors: list[str], depth: int) -> None:
        bound = self.bound(indices)
        i, trips = self.name("i"), self.name("trips")
        if self.random.random() < 0.25 and vectors[0] in ("%u",) and depth < 2:
            p, q, r, s = (self.name(x) for x in "pqrs")
            t = "memref<?xf64>"
            self.emit(
                f"{trips}, {p}, {q} = array.loop {i} to {bound} carry({r} = %u : {t}, {s} = %v : {t}) do {{"
            )
            self.block([*indices, i], [r, s], depth + 1)
            self.emit(f"array.yield {s}, {r} : {t}, {t} }}")
            return
        self.emit(f"{trips} = array.loop {i} to {bound} do {{")
        inner = list(vectors)
        if self.random.random() < 0.2:
            w = self.name("w")
            self.emit(f"%cap{w[1:]} = arith.addi %n, %n : index")
            self.emit(f"{w} = array.alloc(%cap{w[1:]}) : memref<?xf64>")
            inner.append(w)
        self.block([*indices, i], inner, depth + 1)
        self.emit("array.yield }")

    def branch(self, indices: list[str], vectors: list[str], depth: int) -> None:
        predicate = self.random.choice(["slt", "sle", "eq", "ne", "sgt"])
        left, right = self.random.choice(indices), self.subscript(indices)
        condition = self.op(f"arith.cmpi {predicate}, {left}, {right} : index")
        self.emit(f"scf.if {condition} {{")
        self.block(indices, vectors, depth + 1)
        if self.random.random() < 0.5:
            self.emit("} else {")
            self.block(indices, vectors, depth + 1)
        self.emit("}")

    def access(self, indices: list[str], vectors: list[str]) -> None:
        if self.random.random() < 0.3:
            target = f"%a[{self.subscript(indices)}, {self.subscript(indices)}] : memref<?x?xf64>"
        elif self.random.random() < 0.2:
            view = self.view(indices, vectors)
            target = f"{view}[{self.subscript(indices)}] : memref<?xf64, strided<[?]>>"
        else:
            vector = self.random.choice(vectors)
            target = f"{vector}[{self.subscript(indices)}] : memref<?xf64>"
        if self.random.random() < 0.5:
            self.op(f"memref.load {target}")
        else:
            self.emit(f"memref.store %x, {target}")

    def view(self, indices: list[str], vectors: list[str], count: str | None = None) -> str:
        count = count or self.op(f"arith.maxsi {self.bound(indices)}, %k0 : index")
        offset = self.subscript(indices)
        step = self.random.choice(["%k1", "%k1", "%k1", "%k2", "%k2", "%km1"])
        result = self.name("view")
        type_ = "memref<?xf64, strided<[?]>>"
        if self.random.random() < 0.3:
            dims, row = self.random.choice([0, 1]), self.subscript(indices)
            offsets = f"{offset}, {row}" if dims == 0 else f"{row}, {offset}"
            source, source_type = f"%a[{offsets}] dims [{dims}]", "memref<?x?xf64>"
        else:
            source = f"{self.random.choice(vectors)}[{offset}] dims [0]"
            source_type = "memref<?xf64>"
        self.emit(
            f"{result} = array.view {source} extents({count}) steps({step}) : {source_type} -> {type_}"
        )
        return result

    def map(self, indices: list[str], vectors: list[str]) -> None:
        count = self.op(f"arith.maxsi {self.bound(indices)}, %k0 : index")
        source, target = self.view(indices, vectors, count), self.view(indices, vectors, count)
        kind = self.random.choice(["store", "store", "add"])
        t = "memref<?xf64, strided<[?]>>"
        self.emit(
            f'array.map({count}) ins({source} : {t}) outs({target} : {t}) kinds ["{kind}"]'
            " { ^bb0(%e : f64): array.yield %e : f64 }"
        )


def runs(function: FuncOp, overlap: bool) -> list[Trace]:
    """Runs with several sizes; u and v overlap, or do not."""
    found: list[Trace] = []
    for n in (1, 2, 3, 4, 5):
        extent = 7 * n + 12
        second = 2 if overlap else 1000
        u, v = Buffer(0, (extent,), (1,)), Buffer(second, (extent,), (1,))
        a = Buffer(5000, (extent, extent), (extent, 1))
        found.append(Trace(function, [u, v, a, n, 0]))
    return found


def killed(trace: Trace) -> set[tuple[Operation, object, str]]:
    """The accesses some element of which a later event overwrites or releases."""
    found: set[tuple[Operation, object, str]] = set()
    gone: set[int] = set()
    for position in range(len(trace.events) - 1, -1, -1):
        event = trace.events[position]
        if event.kind == "op":
            continue
        # An op reads before it writes: its own writes stand later in the trace.
        if event.kind in ("read", "write") and not gone.isdisjoint(event.addresses):
            found.add((event.op, event.memref, event.kind))
        if event.kind in ("write", "release"):
            gone |= event.addresses
    return found


def check_kills(function: FuncOp, traces: list[Trace]) -> tuple[int, int, int]:
    """(affirmed although no run shows it, denied, all): raises where a denial is wrong."""
    kills = Kills(function)
    truly = set().union(*(killed(t) for t in traces))
    executed = {(e.op, e.memref, e.kind) for t in traces for e in t.events if e.addresses}
    spurious = denied = total = 0
    for op in function.walk():
        for access in accesses(op):
            key = (access.op, access.memref, access.kind)
            if key not in executed:
                continue
            total += 1
            killer = kills.killer(access)
            if killer is None:
                denied += 1
                assert key not in truly, f"{op} is overwritten"
            elif key not in truly:
                spurious += 1
    return spurious, denied, total


def above(ssa: MemorySSA, access: object) -> set[Operation]:
    """The ops whose definitions stand at or above a memory access."""
    found: set[Operation] = set()
    seen: set[int] = set()
    pending = [access]
    while pending:
        current = pending.pop()
        if id(current) in seen or isinstance(current, LiveOnEntry):
            continue
        seen.add(id(current))
        if isinstance(current, MemoryDef):
            found.add(current.op)
            pending.append(current.before)
        else:
            pending.extend(current.incoming)  # pyright: ignore
    return found


def check_clobbers(function: FuncOp, traces: list[Trace]) -> tuple[int, int]:
    """(reads that see liveOnEntry, all reads); raises where a read sees a write not above its clobber."""
    ssa = MemorySSA(function)
    permitted = {
        (a.op, a.memref): above(ssa, ssa.clobber(a)) for op in function.walk() for a in reads(op)
    }
    for trace in traces:
        writer: dict[int, Operation] = {}
        for event in trace.events:
            if event.kind == "read":
                for address in event.addresses:
                    if address in writer:
                        assert writer[address] in permitted[event.op, event.memref], str(event.op)
            elif event.kind == "write":
                writer.update(dict.fromkeys(event.addresses, event.op))
    return sum(not p for p in permitted.values()), len(permitted)


def check_versions(function: FuncOp, traces: list[Trace]) -> int:
    """Memory is untouched from the op of the version block until the read. Counts blocks moved out."""
    ssa = MemorySSA(function)
    alias = ssa.alias
    moved = 0
    where: dict[tuple[Operation, object], Operation] = {}
    for op in function.walk():
        for access in reads(op):
            block = ssa.version_block(access.memref, op)
            anchor = op
            while anchor.parent is not block:
                outer = anchor.parent_op()
                assert outer is not None
                anchor = outer
            moved += anchor is not op
            where[op, access.memref] = anchor
    for trace in traces:
        last_begun: dict[Operation, tuple[int, dict[object, object]]] = {}
        written: list[tuple[int, frozenset[int]]] = []
        for time, event in enumerate(trace.events):
            if event.kind == "op":
                last_begun[event.op] = (time, event.environment)  # pyright: ignore
            elif event.kind == "write":
                written.append((time, event.addresses))
            elif event.kind == "read":
                begun, environment = last_begun[where[event.op, event.memref]]
                base = alias.base(event.memref)  # pyright: ignore
                assert base in environment, "the base is not defined there"
                elements = environment[base].all()  # pyright: ignore
                for then, addresses in reversed(written):
                    if then < begun:
                        break
                    assert elements.isdisjoint(addresses), str(event.op)
    return moved


@pytest.mark.parametrize("overlap", [False, True])
def test_what_is_denied_never_happens(overlap: bool) -> None:
    denied = total = 0
    for seed in SEEDS:
        program = Program(seed, overlap)
        function = parse(program.text)
        traces = runs(function, overlap)
        try:
            _, d, t = check_kills(function, traces)
            check_clobbers(function, traces)
            check_versions(function, traces)
        except AssertionError as error:
            raise AssertionError(f"seed {seed}: {error}\n{program.text}") from error
        denied, total = denied + d, total + t
    assert denied > total / 10


class Pair(Program):
    """A load and a store somewhere in a nest of loops; they never leave the array."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines = []
        self.count = 0
        accesses = ["load", "store"]
        self.random.shuffle(accesses)
        self.nest(["%n"], accesses, 0)
        consts = [f"  %k{c} = arith.constant {c} : index" for c in range(4)]
        head = "func.func @f(%u : memref<?x?xf64>, %n : index, %x : f64) {"
        self.text = "\n".join([head, *consts, *self.lines, "  func.return", "}"])

    def nest(self, indices: list[str], accesses: list[str], depth: int) -> None:
        if not accesses:
            return
        if depth == 0 or (depth < 3 and self.random.random() < 0.6):
            split = self.random.choice([0, len(accesses), len(accesses), 1])
            for part in (accesses[:split], accesses[split:]):
                if part:
                    i = self.name("i")
                    self.emit(
                        f"{self.name('trips')} = array.loop {i} to {self.limit(indices)} do {{"
                    )
                    self.nest([*indices, i], part, depth + 1)
                    self.emit("array.yield }")
            return
        for access in accesses:
            target = f"%u[{self.linear(indices)}, {self.linear(indices)}] : memref<?x?xf64>"
            if access == "load":
                self.op(f"memref.load {target}")
            else:
                self.emit(f"memref.store %x, {target}")

    def limit(self, indices: list[str]) -> str:
        outer = self.random.choice(indices)
        match self.random.randint(0, 4):
            case 0 | 1:
                return "%n"
            case 2:
                left = self.op(f"arith.subi %n, {outer} : index")
                return self.op(f"arith.subi {left}, %k1 : index")
            case 3:
                return outer
            case _:
                return self.op(f"arith.addi {outer}, %k1 : index")

    def linear(self, indices: list[str]) -> str:
        value = self.random.choice([*indices[1:], *indices[1:], *indices[1:], "%k0", "%n"])
        if self.random.random() < 0.2:
            value = self.op(f"arith.muli {value}, %k2 : index")
        if self.random.random() < 0.3:
            value = self.op(f"arith.addi {value}, {self.random.choice(indices[1:])} : index")
        if self.random.random() < 0.5:
            value = self.op(f"arith.addi {value}, {self.constant(1)} : index")
        return value


def test_little_is_affirmed_that_no_run_shows() -> None:
    spurious = denied = total = 0
    for seed in range(120):
        program = Pair(seed)
        function = parse(program.text)
        traces = [Trace(function, [Buffer(0, (64, 64), (64, 1)), n, 0]) for n in range(1, 8)]
        s, d, t = check_kills(function, traces)
        spurious, denied, total = spurious + s, denied + d, total + t
    assert denied > total / 3
    assert spurious <= total / 50
