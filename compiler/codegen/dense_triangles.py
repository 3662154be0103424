"""Solving with triangles of matrices, for one right-hand side or several.

Large triangles are halved until products have most of the work, which are BLAS's. For one right-hand side,
and for those that do not lie by rows, each column goes by itself: by products of rows of the triangle, or,
where that lies by columns, by taking multiples of them off.
"""

from __future__ import annotations

from .dense_routine import INT_MAX, MATRIX, Routine, Written

BLOCK = 8
"""Halves are multiples of so many rows."""
TRIANGLE = 32
"""Triangles with so many rows are solved with by loops, where right-hand sides lie by rows."""
FEW = 3
"""So are so many right-hand sides, whatever the triangle."""
PRODUCT = 16**3
"""So are products of so many terms."""


def subtract_product(r: Routine) -> None:
    """`c -= a b` for n x k and k x m; `b` and `c` lie by rows."""
    t = r.text
    work = t.mul(t.mul("%n", "%m"), "%k")
    by_rows = r.equal("%a1", "1")
    large = r.all_of(
        r.less(str(PRODUCT), work),
        t.value(f"or i1 {by_rows}, {r.equal('%a0', '1')}"),
        *(r.less(size, str(INT_MAX)) for size in ("%n", "%m", "%k", "%a0", "%a1", "%b0", "%c0")),
    )
    blas, loops = t.label("blas"), t.label("loops")
    t.branch_if(large, blas, loops)
    t.start(blas)
    r.blas(
        "gemm", "letter N", r.letter(by_rows, "N", "T"), "i64 %m", "i64 %n", "i64 %k", "double -1.0",
        "ptr %b", "i64 %b0", "ptr %a", f"i64 {r.choose(by_rows, '%a0', '%a1')}", "double 1.0", "ptr %c",
        "i64 %c0",
    )  # fmt: skip
    r.give()
    t.start(loops)

    def row(i: str) -> None:
        target = r.at("%c", (i, "%c0"))

        r.subtract_sum(
            "%k",
            "%m",
            target,
            lambda k: r.load(r.at("%a", (i, "%a0"), (k, "%a1"))),
            lambda k: r.at("%b", (k, "%b0")),
        )

    r.loop("%n", row)
    r.give()


def solve_triangle(r: Routine) -> None:
    """`x` of n x m becomes the solution of a triangle of `t` times it: in halves, if both are large."""
    t = r.text
    beside = r.all_of(r.equal("%x1", "1"), r.less("1", "%m"))
    large = r.all_of(beside, r.less(str(TRIANGLE), "%n"), r.less(str(FEW), "%m"))
    halves, loops, rows, columns = (t.label(x) for x in ("halves", "loops", "rows", "columns"))
    t.branch_if(large, halves, loops)
    t.start(halves)
    in_halves(r)
    t.start(loops)
    t.branch_if(beside, rows, columns)
    t.start(rows)
    r.loop("%n", lambda step: solved_row(r, step))
    r.give()
    t.start(columns)
    along = t.both([r.equal("%t1", "1"), r.equal("%x0", "1")])
    across = t.both([r.equal("%t0", "1"), r.equal("%x0", "1")])
    along_, other, across_, any_ = (t.label(x) for x in ("along", "other", "across", "any"))
    t.branch_if(along, along_, other)
    t.start(along_)
    r.loop("%m", lambda j: column_of_dots(r, j, "1", "1"))
    r.give()
    t.start(other)
    t.branch_if(across, across_, any_)
    t.start(across_)
    r.loop("%m", lambda j: column_of_sums(r, j))
    r.give()
    t.start(any_)
    r.loop("%m", lambda j: column_of_dots(r, j, "%t1", "%x0"))
    r.give()


def in_halves(r: Routine) -> None:
    """Solve for half of the rows, take it off the others, and solve for those."""
    t = r.text
    top = t.mul(t.value(f"sdiv i64 {t.add('%n', str(2 * BLOCK - 1))}, {2 * BLOCK}"), str(BLOCK))
    bottom = t.sub("%n", top)
    rest, below = r.at("%t", (top, "%t0"), (top, "%t1")), r.at("%x", (top, "%x0"))

    def solved(count: str, of: str, x: str) -> None:
        ends = ("%x0", "%x1", "%upper", "%unit")
        r.call(SOLVE_TRIANGLE, count, "%m", of, "%t0", "%t1", x, *ends)

    upper, lower_ = t.label("upper"), t.label("lower")
    t.branch_if("%upper", upper, lower_)
    t.start(upper)
    solved(bottom, rest, below)
    aside = r.at("%t", (top, "%t1"))
    r.call(SUBTRACT_PRODUCT, top, bottom, "%m", aside, "%t0", "%t1", below, "%x0", "%x", "%x0")
    solved(top, "%t", "%x")
    r.give()
    t.start(lower_)
    solved(top, "%t", "%x")
    under = r.at("%t", (top, "%t0"))
    r.call(SUBTRACT_PRODUCT, bottom, top, "%m", under, "%t0", "%t1", "%x", "%x0", below, "%x0")
    solved(bottom, rest, below)
    r.give()


def place(r: Routine, step: str) -> tuple[str, str]:
    """The row of a step, and the first of the rows that are done, which follow each other."""
    t = r.text
    last = t.sub("%n", "1")
    row = r.choose("%upper", t.sub(last, step), step)
    return row, r.choose("%upper", t.add(row, "1"), "0")


def solved_row(r: Routine, step: str) -> None:
    """Row `step` of all right-hand sides, which lie by rows."""
    t = r.text
    row, first = place(r, step)
    own = r.at("%x", (row, "%x0"))

    r.subtract_sum(
        step,
        "%m",
        own,
        lambda k: r.load(r.at("%t", (row, "%t0"), (t.add(first, k), "%t1"))),
        lambda k: r.at("%x", (t.add(first, k), "%x0")),
    )

    def divide() -> None:
        pivot = r.load(r.at("%t", (row, "%t0"), (row, "%t1")))

        def element(j: str) -> None:
            target = r.moved(own, j)
            r.store(t.value(f"fdiv double {r.load(target)}, {pivot}"), target)

        r.loop("%m", element, vectors=True)

    r.when(r.not_("%unit"), divide)


def divided(r: Routine, value: str, row: str) -> str:
    """A number by the pivot of a row, but of a unit triangle: there nothing waits for a division."""
    t = r.text
    by_pivot, on, before = t.label("by.pivot"), t.label("on"), t.block
    t.branch_if("%unit", on, by_pivot)
    t.start(by_pivot)
    pivot = r.load(r.at("%t", (row, "%t0"), (row, "%t1")))
    quotient = t.value(f"fdiv double {value}, {pivot}")
    t.branch(on)
    t.start(on)
    return t.value(f"phi double [ {value}, %{before} ], [ {quotient}, %{by_pivot} ]")


def column_of_dots(r: Routine, column: str, t1: str, x0: str) -> None:
    """One right-hand side, each element by a product of a row with those before it."""
    t = r.text
    x = r.at("%x", (column, "%x1"))

    def solved(step: str) -> None:
        row, first = place(r, step)
        left = r.at("%t", (row, "%t0"), (first, t1))
        right = r.at(x, (first, x0))
        known = r.dot(
            step,
            lambda k: (r.load(r.at(left, (k, t1))), r.load(r.at(right, (k, x0)))),
            vectors=t1 == "1",
        )
        target = r.at(x, (row, x0))
        rest = t.value(f"fsub double {r.load(target)}, {known}")
        r.store(divided(r, rest, row), target)

    r.loop("%n", solved)


def column_of_sums(r: Routine, column: str) -> None:
    """One right-hand side, each element taken off those behind it: of a triangle that lies by columns."""
    t = r.text
    x = r.at("%x", (column, "%x1"))

    def solved(step: str) -> None:
        row, _ = place(r, step)
        own = r.moved(x, row)
        value = divided(r, r.load(own), row)
        r.store(value, own)
        first = r.choose("%upper", "0", t.add(row, "1"))
        rest = t.sub(t.sub("%n", "1"), step)
        source, target = r.at("%t", (first, "1"), (row, "%t1")), r.moved(x, first)

        def subtract(k: str) -> None:
            place_ = r.moved(target, k)
            factor = r.load(r.moved(source, k))
            r.store(r.minus_product(r.load(place_), factor, value), place_)

        r.loop(rest, subtract, vectors=True)

    r.loop("%n", solved)


SUBTRACT_PRODUCT = Written(
    subtract_product,
    f"i64 %n, i64 %k, i64 %m, {MATRIX.format('a')}, ptr %b, i64 %b0, ptr %c, i64 %c0",
)
SOLVE_TRIANGLE = Written(
    solve_triangle,
    f"i64 %n, i64 %m, {MATRIX.format('t')}, {MATRIX.format('x')}, i1 %upper, i1 %unit",
)
