"""Factors of dense matrices: by elimination with pivots, and Cholesky's; what is solved with them.

Small matrices, and those that do not lie by rows, are factored by loops. Large ones are halved until BLAS has
most of the work (Toledo, SIAM J. Matrix Anal. Appl. 18, 1997, 1065): of elimination the columns, down to
panels whose rows are one vector each, of Cholesky's factor the matrix.
"""

from __future__ import annotations

from .dense_routine import INT_MAX, MATRIX, Routine, Written
from .dense_triangles import SOLVE_TRIANGLE, SUBTRACT_PRODUCT
from .llvm_text import FunctionText

SMALL = 24
"""Matrices with so many rows are factored by loops."""
PANEL = 8
"""As many columns at a time are eliminated: their elements in a row are one vector."""


# Elimination with pivots.


def factor(r: Routine) -> None:
    """The factors of an n x n matrix in its place; 0, or one more than the step of the first pivot of 0."""
    t = r.text
    together = r.all_of(
        r.less(str(PANEL), "%n"),
        r.less("%n", str(INT_MAX)),
        r.equal("%a1", "1"),
        r.leads("%n", "%a0"),
    )
    rows, panels, loops, apart = (t.label(x) for x in ("rows", "panels", "loops", "apart"))
    t.branch_if(together, rows, apart)
    t.start(rows)
    t.branch_if(r.less(str(SMALL), "%n"), panels, loops)
    t.start(panels)
    r.give(r.call(FACTOR_PANEL, "%n", "%n", "%a", "%a0", "%pivots", "%p0"))
    t.start(loops)
    r.give(eliminated(r, "%n", "%n", "1"))
    t.start(apart)
    r.give(eliminated(r, "%n", "%n", "%a1"))


def eliminated(r: Routine, rows: str, columns: str, a1: str) -> str:
    """Write the elimination of so many columns by loops; the first of their pivots that is 0."""
    t = r.text
    opened = t.begin_loop(columns, [("i64", "0")])
    k, found = opened.counter, opened.values[0]
    own, pivot, bad = pivot_of(r, k, rows, columns, a1)
    number = t.add(k, "1")
    first = r.all_of(bad, r.equal(found, "0"))
    found = r.choose(first, number, found)
    rest = t.sub(columns, number)
    source = r.at(own, (number, a1))

    def row(i: str) -> None:
        at = r.at("%a", (t.add(number, i), "%a0"))
        head = r.at(at, (k, a1))
        multiple = t.value(f"fdiv double {r.load(head)}, {pivot}")
        r.store(multiple, head)
        r.subtract_rows(rest, r.at(at, (number, a1)), [multiple], [source], a1)

    r.loop(r.choose(bad, "0", t.sub(rows, number)), row)
    (found,) = t.end_loop(opened, [found])
    return found


def pivot_of(r: Routine, k: str, rows: str, columns: str, a1: str) -> tuple[str, str, str]:
    """Swap the row with the largest element of column k to row k: its address, the pivot, if that is 0."""
    t = r.text
    own = r.at("%a", (k, "%a0"))
    column = r.at(own, (k, a1))
    start = r.size(r.load(column))
    search = t.begin_loop(t.sub(t.sub(rows, k), "1"), [("double", start), ("i64", k)])
    i = t.add(t.add(k, search.counter), "1")
    size = r.size(r.load(r.at("%a", (i, "%a0"), (k, a1))))
    more = t.value(f"fcmp ogt double {size}, {search.values[0]}")
    largest = r.choose(more, size, search.values[0], "double")
    following = [largest, r.choose(more, i, search.values[1])]
    _, best = t.end_loop(search, following, r.properties(vectors=False))
    slot = t.value(f"getelementptr inbounds i64, ptr %pivots, i64 {t.mul(k, '%p0')}")
    r.store(best, slot, "i64")
    other = r.at("%a", (best, "%a0"))
    r.when(r.not_(r.equal(best, k)), lambda: r.swap(columns, own, other, a1))
    pivot = r.load(column)
    return own, pivot, t.value(f"fcmp oeq double {pivot}, 0.0")


def factor_panel(r: Routine) -> None:
    """The same of the first w columns of m rows that lie together: the left half, then what is left."""
    t = r.text
    narrow, halves, full, edge = (t.label(x) for x in ("narrow", "halves", "full", "edge"))
    t.branch_if(r.less("%w", str(PANEL + 1)), narrow, halves)
    t.start(narrow)
    t.branch_if(r.equal("%w", str(PANEL)), full, edge)
    t.start(edge)
    r.give(eliminated(r, "%m", "%w", "1"))
    t.start(full)
    r.give(eliminated_vectors(r))
    t.start(halves)
    half = t.mul(t.value(f"sdiv i64 {t.add('%w', str(2 * PANEL - 1))}, {2 * PANEL}"), str(PANEL))
    under, right = t.sub("%m", half), t.sub("%w", half)
    left = r.call(FACTOR_PANEL, "%m", half, "%a", "%a0", "%pivots", "%p0")
    top = r.moved("%a", half)
    swap_rows(r, half, top, "0", right)
    r.call(SOLVE_TRIANGLE, half, right, "%a", "%a0", "1", top, "%a0", "1", "false", "true")
    below = r.at("%a", (half, "%a0"))
    rest = r.moved(below, half)
    r.call(SUBTRACT_PRODUCT, under, half, right, below, "%a0", "1", top, "%a0", rest, "%a0")
    behind = t.value(f"getelementptr inbounds i64, ptr %pivots, i64 {t.mul(half, '%p0')}")
    found = r.call(FACTOR_PANEL, under, right, rest, "%a0", behind, "%p0")
    swap_rows(r, right, "%a", half, half)
    later = r.choose(r.equal(found, "0"), "0", t.add(found, half))
    r.give(r.choose(r.equal(left, "0"), later, left))


def swap_rows(r: Routine, count: str, a: str, first: str, columns: str) -> None:
    """Swap rows from `first` on as `count` steps have in other columns, which counted from there."""
    t = r.text

    def one(k: str) -> None:
        row = t.add(first, k)
        slot = t.value(f"getelementptr inbounds i64, ptr %pivots, i64 {t.mul(row, '%p0')}")
        other = t.add(r.load(slot, "i64"), first)
        r.store(other, slot, "i64")
        own, theirs = r.at(a, (row, "%a0")), r.at(a, (other, "%a0"))
        r.when(r.not_(r.equal(row, other)), lambda: r.swap(columns, own, theirs, vectors=True))

    r.loop(count, one)


def eliminated_vectors(r: Routine) -> str:
    """`eliminated` of a panel: a row of it is one vector, zeros in place of what is done in the pivot's."""
    t = r.text
    wide, mask = f"<{PANEL} x double>", f"<{PANEL} x i64>"
    opened = t.begin_loop(str(PANEL), [("i64", "0")])
    k, found = opened.counter, opened.values[0]
    own, pivot, bad = pivot_of(r, k, "%m", str(PANEL), "1")
    number = t.add(k, "1")
    found = r.choose(r.all_of(bad, r.equal(found, "0")), number, found)
    lanes = ", ".join(f"i64 {i}" for i in range(PANEL))
    spread = splat(t, "i64", k)
    open_ = t.value(f"icmp sgt {mask} <{lanes}>, {spread}")
    source = t.value(
        f"select <{PANEL} x i1> {open_}, {wide} {r.load(own, wide)}, {wide} zeroinitializer"
    )

    def row(i: str) -> None:
        at = r.at("%a", (t.add(number, i), "%a0"))
        head = r.moved(at, k)
        multiple = t.value(f"fdiv double {r.load(head)}, {pivot}")
        spread = splat(t, "double", multiple)
        r.store(r.minus_product(r.load(at, wide), spread, source, wide), at, wide)
        r.store(multiple, head)

    r.loop(r.choose(bad, "0", t.sub("%m", number)), row)
    (found,) = t.end_loop(opened, [found])
    return found


def splat(t: FunctionText, type_: str, value: str) -> str:
    one = t.value(f"insertelement <{PANEL} x {type_}> poison, {type_} {value}, i64 0")
    zeros = f"<{PANEL} x i32> zeroinitializer"
    wide = f"<{PANEL} x {type_}>"
    return t.value(f"shufflevector {wide} {one}, {wide} poison, {zeros}")


PIVOTS = "ptr %pivots, i64 %p0"
FACTOR = Written(factor, f"i64 %n, {MATRIX.format('a')}, {PIVOTS}", "i64")
FACTOR_PANEL = Written(factor_panel, f"i64 %m, i64 %w, ptr %a, i64 %a0, {PIVOTS}", "i64")


def solve(r: Routine) -> None:
    """`x` of n x m becomes the solution of the matrix of these factors, or its transpose, times it."""
    t = r.text
    few = r.all_of(r.equal("%m", "1"), r.less("%n", str(PANEL + 1)))
    transposed, straight = t.label("transposed"), t.label("straight")
    t.branch_if("%transposed", transposed, straight)
    for block in (straight, transposed):
        turned = block == transposed
        short, long, done = (t.label(x) for x in ("short", "long", "done"))
        s0, s1 = ("%a1", "%a0") if turned else ("%a0", "%a1")
        t.start(block)
        if not turned:
            r.loop("%n", lambda k: swap_right(r, k))
        t.branch_if(few, short, long)
        t.start(short)
        short_triangle(r, s0, s1, upper=False, unit=not turned)
        short_triangle(r, s0, s1, upper=True, unit=turned)
        t.branch(done)
        t.start(long)
        flags = (
            [("false", "false"), ("true", "true")]
            if turned
            else [("false", "true"), ("true", "false")]
        )
        for ends in flags:
            r.call(SOLVE_TRIANGLE, "%n", "%m", "%a", s0, s1, "%x", "%x0", "%x1", *ends)
        t.branch(done)
        t.start(done)
        if turned:
            r.loop("%n", lambda k: swap_right(r, t.sub(t.sub("%n", "1"), k)))
        r.give()


def short_triangle(r: Routine, s0: str, s1: str, *, upper: bool, unit: bool) -> None:
    """Solve for one right-hand side in so small a triangle that a call of the routine would cost as much."""
    t = r.text

    def solved(step: str) -> None:
        row = t.sub(t.sub("%n", "1"), step) if upper else step
        first = t.add(row, "1") if upper else "0"
        left, right = r.at("%a", (row, s0), (first, s1)), r.at("%x", (first, "%x0"))
        known = r.dot(
            step,
            lambda k: (r.load(r.at(left, (k, s1))), r.load(r.at(right, (k, "%x0")))),
            vectors=False,
        )
        target = r.at("%x", (row, "%x0"))
        rest = t.value(f"fsub double {r.load(target)}, {known}")
        if not unit:
            pivot = r.load(r.at("%a", (row, s0), (row, s1)))
            rest = t.value(f"fdiv double {rest}, {pivot}")
        r.store(rest, target)

    r.loop("%n", solved)


def swap_right(r: Routine, k: str) -> None:
    """The swap of step k in the right-hand sides."""
    slot = r.text.value(f"getelementptr inbounds i64, ptr %pivots, i64 {r.text.mul(k, '%p0')}")
    other = r.load(slot, "i64")
    own, theirs = r.at("%x", (k, "%x0")), r.at("%x", (other, "%x0"))
    r.when(r.not_(r.equal(k, other)), lambda: r.swap("%m", own, theirs, "%x1"))


SOLVE = Written(
    solve,
    f"i64 %n, i64 %m, {MATRIX.format('a')}, {PIVOTS}, {MATRIX.format('x')}, i1 %transposed",
)


def log_determinant(r: Routine) -> None:
    """The sum of the logarithms of the sizes of the pivots."""
    t = r.text
    r.state.declare("log", "declare double @log(double)", "libm")
    opened = t.begin_loop("%n", [("double", "0.0")])
    pivot = r.load(r.at("%a", (opened.counter, t.add("%a0", "%a1"))))
    log = t.value(f"call double @log(double {r.size(pivot)})")
    (total,) = t.end_loop(opened, [t.value(f"fadd double {opened.values[0]}, {log}")])
    r.give(total)


LOG_DETERMINANT = Written(log_determinant, f"i64 %n, {MATRIX.format('a')}", "double")


# Cholesky's factors.


def cholesky(r: Routine) -> None:
    """The lower factor in the place of the lower triangle; 0, or one more than the row that stops it."""
    t = r.text
    large = r.all_of(
        r.less(str(3 * PANEL), "%n"),
        r.equal("%a1", "1"),
        r.leads("%n", "%a0"),
        r.less("%n", str(INT_MAX)),
    )
    halves, loops, rest = t.label("halves"), t.label("loops"), t.label("rest")
    t.branch_if(large, halves, loops)
    t.start(loops)
    by_rows(r)
    t.start(halves)
    half = t.mul(t.value(f"sdiv i64 %n, {2 * PANEL}"), str(PANEL))
    under = t.sub("%n", half)
    first = r.call(CHOLESKY, half, "%a", "%a0", "1")
    stop = t.label("stop")
    t.branch_if(r.equal(first, "0"), rest, stop)
    t.start(stop)
    r.give(first)
    t.start(rest)
    below = r.at("%a", (half, "%a0"))
    corner = r.moved(below, half)
    r.blas(
        "trsm", "letter L", "letter U", "letter T", "letter N", f"i64 {half}", f"i64 {under}",
        "double 1.0", "ptr %a", "i64 %a0", f"ptr {below}", "i64 %a0",
    )  # fmt: skip
    r.blas(
        "syrk", "letter U", "letter T", f"i64 {under}", f"i64 {half}", "double -1.0", f"ptr {below}",
        "i64 %a0", "double 1.0", f"ptr {corner}", "i64 %a0",
    )  # fmt: skip
    second = r.call(CHOLESKY, under, corner, "%a0", "1")
    r.give(r.choose(r.equal(second, "0"), "0", t.add(second, half)))


def by_rows(r: Routine) -> None:
    """Cholesky's factor by loops, each row by those above it."""
    t = r.text
    root = r.state.intrinsic("llvm.sqrt.double", "double", "double")

    def row(i: str) -> None:
        own = r.at("%a", (i, "%a0"))

        def dot(other: str, count: str) -> str:
            return r.dot(
                count,
                lambda k: (r.load(r.at(own, (k, "%a1"))), r.load(r.at(other, (k, "%a1")))),
            )

        def element(j: str) -> None:
            above, target = r.at("%a", (j, "%a0")), r.at(own, (j, "%a1"))
            rest = t.value(f"fsub double {r.load(target)}, {dot(above, j)}")
            pivot = r.load(r.at(above, (j, "%a1")))
            r.store(t.value(f"fdiv double {rest}, {pivot}"), target)

        r.loop(i, element)
        target = r.at(own, (i, "%a1"))
        rest = t.value(f"fsub double {r.load(target)}, {dot(own, i)}")
        positive = t.value(f"fcmp ogt double {rest}, 0.0")
        stop, on = t.label("stop"), t.label("on")
        t.branch_if(positive, on, stop)
        t.start(stop)
        r.give(t.add(i, "1"))
        t.start(on)
        r.store(t.value(f"call double @{root}(double {rest})"), target)

    r.loop("%n", row)
    r.give("0")


CHOLESKY = Written(cholesky, f"i64 %n, {MATRIX.format('a')}", "i64")


def lower(r: Routine) -> None:
    """Zeros above the diagonal, and this multiple of the diagonal; m numbers are an element."""
    t = r.text
    still = t.value("fcmp oeq double %times, 0.0")

    def row(i: str) -> None:
        at = r.at("%a", (i, "%a0"))

        def lane(of: str) -> None:
            target = r.moved(r.at(at, (i, "%a1")), of)
            product = t.value(f"fmul double {r.load(target)}, %times")
            r.store(r.choose(still, "0.0", product, "double"), target)

        r.loop("%m", lane)
        behind = t.add(i, "1")

        def element(j: str) -> None:
            target = r.at(at, (t.add(behind, j), "%a1"))
            r.loop("%m", lambda of: r.store("0.0", r.moved(target, of)))

        r.loop(t.sub("%n", behind), element)

    r.loop("%n", row)
    r.give()


LOWER = Written(lower, f"i64 %n, i64 %m, {MATRIX.format('a')}, double %times")
