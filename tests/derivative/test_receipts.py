"""A receipt in all its forms: the table, the page, the dictionary; before and after calls."""

import importlib
import json
from pathlib import Path

import numpy as np
import pytest
from html_pages import columns_of, edges_of, loads_nothing

from mutad import CompileError, compile


def steepen(u, steps):
    for _ in range(steps):
        u[1:-1] -= 0.1 * u[1:-1] * (u[2:] - u[:-2])
    return u.sum()


def filled_after_a_product(x):
    y = x * x
    x.fill(0)
    return y.sum()


def until_large(x):
    y = 1.0
    while y < 100.0:
        y = y * y + x[0]
    return y


def scaled(x, factor=2.0):
    x *= factor
    return x.sum()


def red_black(u, steps):
    for _ in range(steps):
        u[1:-1:2] = u[:-2:2] * u[2::2] * u[1:-1:2]
    return u.sum()


def line_of(function, text):
    lines = Path(__file__).read_text().splitlines()
    first = function.__code__.co_firstlineno
    return next(n for n, line in enumerate(lines, 1) if n >= first and text in line)


def receipt(function, *args, **options):
    return compile(function, grad=True, cache=False, **options).explain(*args)


def test_operations_are_named_as_in_python() -> None:
    (save,) = receipt(steepen, np.ones(100), 7).saves
    line, product = line_of(steepen, "u[1:-1] -="), "0.1 * u[1:-1] * (u[2:] - u[:-2])"
    assert (save.line, save.killed_by, save.needed_by) == (line, line, (line, product))
    assert save.why == f"line {line} overwrites `u`, `{product}` on line {line} needs `u`"
    assert save.way_out is None


class Field:
    def __init__(self, u):
        self.u = u

    def step(self):
        self.u[1:-1] = self.u[1:-1] + 0.1 * (self.u[2:] - self.u[:-2]) ** 2


def stepped(field, n):
    for _ in range(n):
        field.step()
    return field.u.sum()


def test_slices_with_steps_are_shown_as_they_are_written() -> None:
    """Names of emoji are like them: `:-1:`."""
    table = repr(receipt(red_black, np.ones(9), 3))
    assert "u[1:-1:2] = u[:-2:2] * u[2::2] * u[1:-1:2]" in table
    assert table.isascii()


def test_what_has_no_name_is_the_expression_that_made_it() -> None:
    (save,) = receipt(stepped, Field(np.ones(100)), 7, opt=1).saves
    line, slope = line_of(Field.step, "self.u[1:-1] ="), "self.u[2:] - self.u[:-2]"
    assert save.name == slope
    needs = f"`({slope}) ** 2` on line {line} needs `{slope}`"
    assert save.why == f"line {line} overwrites `field.u`, {needs}"


def kept_in_a_branch(x):
    if x[0] > 0.1:
        big = x[x > 0.5]
        x[0] = (big * big).sum()
    return x.sum()


def test_the_end_of_a_branch_releases_what_it_allocates() -> None:
    line = line_of(kept_in_a_branch, "if x[0]")
    for save in receipt(kept_in_a_branch, np.ones(5)).saves:
        assert save.why.startswith(
            f"`{save.name}` is freed at the end of the block of line {line}, "
        )
        assert save.way_out is None
    with pytest.raises(CompileError, match="the end of this block frees a value") as refused:
        receipt(kept_in_a_branch, np.ones(5), saves="forbid")
    assert refused.value.span.line == line


def test_shadows_and_temporaries_are_counted_apart() -> None:
    plan = receipt(steepen, np.ones(100), 7)
    assert plan.saved_bytes == 8 * 7 * 100
    assert plan.shadow_bytes == 8 * (100 + 98)  # of u, and of the right-hand side, which overlaps u
    before = 8 * 100  # what u was, should the call have to be made anew
    line = 8 * 8  # what waits is at the end of a cache line: blocks begin with one
    # The right-hand side has 98 elements, and its last one is stored a step later than computed.
    assert plan.temporary_bytes == before + line + 8 * 99
    # A large one is there block by block.
    assert receipt(steepen, np.ones(10**6), 1).temporary_bytes == 8 * 10**6 + line + 8 * 1024


def test_shadows_of_shared_memory_count_once() -> None:
    def product(x, y):
        return (x * y).sum()

    made = compile(product, grad=True, cache=False)
    x = np.ones(10)
    assert made.explain(x, x[::-1], wrt=("x", "y")).shadow_bytes == 80
    assert made.explain(x[:6], x[4:], wrt=("x", "y")).shadow_bytes == 80
    assert made.explain(x[:5].copy(), x[5:], wrt=("x", "y")).shadow_bytes == 80


def test_equal_terms_of_the_formula_are_added_up() -> None:
    def two_sweeps(x):
        for _ in range(3):
            x[1:] *= x[:-1]
        for _ in range(3):
            x[:-1] *= x[1:]
        return x.sum()

    plan = receipt(two_sweeps, np.ones(10))
    assert len(plan.saves) > 1
    assert plan.formula == f"{24 * len(plan.saves)}*x.shape[0]"


def test_what_only_a_run_can_tell_is_named_by_its_line() -> None:
    plan = receipt(until_large, np.ones(3))
    assert plan.saved_bytes is None
    assert plan.formula == f"8*trips@{line_of(until_large, 'while')}"
    assert "= ?; shadows: 24 bytes" in str(plan)


def steepen_annotated(u: "f64[:]", nu: float, factor: "np.float32", steps: int, power=2):  # pyright: ignore  # noqa: F821
    for _ in range(steps):
        u[1:-1] += nu * factor * u[:-2] ** power
    return u.sum()


def test_before_any_call_annotations_tell_the_kinds_of_arguments() -> None:
    made = compile(steepen_annotated, grad=True, cache=False)
    plan = made.explain()
    assert plan.formula == "8*steps*(u.shape[0]-2)"
    assert [s.name for s in plan.saves] == ["u"]
    assert "%factor : f32" in made.inspect("frontend")

    def wrong(u: np.ndarray):
        return u.sum()

    with pytest.raises(ValueError, match=r"ndarray.* of parameter 'u' does not tell its kind"):
        compile(wrong, grad=True).explain()


def test_without_arguments_the_formula_alone() -> None:
    made = compile(steepen, grad=True, cache=False)
    with pytest.raises(ValueError, match=r"never called.*'u' has no annotation.*\(u, steps\)"):
        made.explain()
    made(np.ones(5), 1)
    plan = made.explain()
    assert (plan.saved_bytes, plan.formula) == (None, "8*steps*u.shape[0]")
    assert plan.shadow_bytes is None
    with pytest.raises(TypeError, match="steps"):
        made.explain(wrt="steps")


def test_a_parameter_with_a_default_may_be_left_out() -> None:
    assert receipt(scaled, np.ones(5)).saved_bytes == 0


def test_explain_runs_nothing() -> None:
    u = np.ones(5)
    receipt(filled_after_a_product, u)
    np.testing.assert_array_equal(u, np.ones(5))


def test_the_dictionary_is_json() -> None:
    told = receipt(steepen, np.ones(100), 7).to_dict()
    assert json.loads(json.dumps(told)) == told
    assert told["saves"][0]["needed_by"] == [
        line_of(steepen, "u[1:-1] -="),
        "0.1 * u[1:-1] * (u[2:] - u[:-2])",
    ]


def test_the_page_draws_kill_and_need_and_loads_nothing(tmp_path: Path) -> None:
    page = tmp_path / "plan.html"
    receipt(filled_after_a_product, np.ones(5)).to_html(page)
    text = page.read_text()
    assert loads_nothing(text)
    assert [edge["kind"] for edge in edges_of(text)] == ["kill", "need"]
    assert "x: 8*x.shape[0] = 40 bytes" in text
    assert "y = x * x" in text


def test_a_page_of_nothing(tmp_path: Path) -> None:
    receipt(scaled, np.ones(5)).to_html(tmp_path / "plan.html")
    assert "Nothing is saved." in (tmp_path / "plan.html").read_text()


def test_forbidding_saves_shows_both_lines_with_carets() -> None:
    with pytest.raises(CompileError) as raised:
        receipt(filled_after_a_product, np.ones(5), saves="forbid")
    lines = str(raised.value).splitlines()
    kill, need = (line_of(filled_after_a_product, t) for t in ("x.fill(0)", "y = x * x"))
    assert f":{kill}:5: error: this store kills" in lines[0]
    assert lines[1].strip() == "x.fill(0)"
    assert lines[2].strip() == "^^^^^^^^^"
    assert f":{need}:9: the value is read at line {need} and `x * x` on line {need}" in lines[3]
    assert lines[4].strip() == "y = x * x"
    assert lines[5].strip() == "^^^^^"
    assert lines[6].startswith(f"  way out: line {kill}: write to an array other than `x`")
    assert lines[6].endswith("8*x.shape[0] bytes")


def by_a_quotient(x, a, b, c, d):
    for _ in range(a // (b * c * d)):
        x[:] = x * x
    for _ in range((a // b) * c * (a - (b - 2))):
        x[:] = x * x
    return x.sum()


def by_a_step(x, a, b):
    for i in range(a, b, 3):
        for _ in range(i // 2, -1, -1):
            x[:] = x * x
    return x.sum()


def by_a_number_that_is_computed(x, n):
    h = int(x[0])
    for i in range(n):
        k = int(x[i]) + h
        y = np.full((k, 2), x[1])
        for _ in range(3):
            y[:] = y * y
        x[1] = y.sum()
    return x.sum()


@pytest.mark.parametrize(
    ("function", "arguments", "formula"),
    [
        (
            by_a_quotient,
            (20, 2, 2, 2),
            "8*(a//(b*c*d))*x.shape[0] + 8*(a+2-b)*(a//b)*c*x.shape[0]",
        ),
        (
            by_a_step,
            (0, 7),
            "8*sum(((a+3*i)//2+1)*x.shape[0] for i in range(ceil((max(a, b)-a)/3)))",
        ),
    ],
)
def test_formulas_have_the_parentheses_that_they_need(function, arguments, formula) -> None:
    """What is printed is an expression of Python's, with the value that is printed beside it."""
    x = np.ones(3)
    plan = receipt(function, x, *arguments, opt=1)
    assert plan.formula == formula
    names = dict(zip(function.__code__.co_varnames, (x, *arguments), strict=False))
    assert eval(formula, {"ceil": lambda q: -int(-q // 1), **names}) == plan.saved_bytes


def test_sizes_that_only_a_run_can_tell_have_their_line() -> None:
    plan = receipt(by_a_number_that_is_computed, np.ones(3), 2, opt=1)
    formulas = [s.formula for s in plan.saves]
    line = line_of(by_a_number_that_is_computed, "k = int(x[i]) + h")
    assert any(f"@{line}" in formula for formula in formulas)
    assert "@?" not in plan.formula
    assert not any(formula.startswith("@") for formula in formulas)


def with_library_code(x, n):
    for _ in range(n):
        x[:] = np.cumsum(x) * np.var(x)
        a, b = np.linalg.solve(np.outer(x[:2], x[:2]) + np.eye(2), x[:2])
        x[0] = a * b
    return x.sum()


def test_lines_and_names_are_the_program_s() -> None:
    """What the library computes inside is of the line that calls it, under its function's name."""
    plan = receipt(with_library_code, np.array([1.0, 2.0, 3.0]), 2, opt=1)
    lines = range(line_of(with_library_code, "for _"), line_of(with_library_code, "return x.sum()"))
    for save in plan.saves:
        assert save.file == __file__
        assert {save.line, save.needed_by[0], save.killed_by or lines[0]} <= set(lines)
        owner = save.name.partition(".")[0]
        assert owner in {"x", "a", "b", "np", "solve", "cumsum", "var", "x[:] * x[:]"}, save.name
    assert any(save.name.startswith("solve.") for save in plan.saves)


def descends(a, i):
    if i == a.size:
        return 1.0
    return np.sin(a[i] * descends(a, i + 1))


def test_records_of_products_hold_tangents() -> None:
    def whole(a):
        return descends(a, 0)

    compiled = compile(whole, grad=True)
    sizes = [
        int(compiled.explain(np.ones(3), mode=mode).saves[0].formula.split("*")[0])
        for mode in ("gradient", "hvp")
    ]
    assert sizes[0] < sizes[1] <= 2 * sizes[0]


FLUX = """
def flux(h):
    return h[1:] * h[:-1]
"""
MOVED = """
from receipt_flux import flux


def moved(h, steps):
    for _ in range(steps):
        h[1:] -= 0.1 * flux(h)
    return h.sum()
"""


def test_lines_of_other_files_are_told_and_drawn_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "receipt_flux.py").write_text(FLUX)
    (tmp_path / "receipt_moved.py").write_text(MOVED)
    monkeypatch.syspath_prepend(tmp_path)
    plan = receipt(importlib.import_module("receipt_moved").moved, np.ones(9), 3, opt=1)
    (save,) = plan.saves
    store, read = (str(tmp_path / f"receipt_{name}.py") for name in ("moved", "flux"))
    assert (save.file, save.line, save.needed_in, save.killed_in) == (read, 3, read, store)
    assert save.why.startswith("line 7 of receipt_moved.py overwrites `h`, ")
    assert "` on line 3 needs `h`" in save.why
    assert "\nreceipt_flux.py:3 " in str(plan)
    plan.to_html(tmp_path / "receipt.html")
    text = (tmp_path / "receipt.html").read_text()
    rows = {row.attributes["id"]: row.text.strip() for row in columns_of(text)["source"]}
    kill, need = edges_of(text)
    assert rows[kill["start"]] == "h[1:] -= 0.1 * flux(h)"
    assert rows[kill["end"]] == rows[need["start"]] == rows[need["end"]] == "return h[1:] * h[:-1]"
