"""Programs of the tests, changed by chance: other names, other literals, deeper nesting, parts exchanged.

What comes out is Python, but hardly ever a program that somebody would write: the compiler takes it, or
refuses it at a line, and fails in no other way.
"""

from __future__ import annotations

import ast
import builtins
import copy
import importlib.util
import inspect
import keyword
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random
from typing import Any
from unicodedata import normalize

from argument_rows import Row, make_arguments
from generated import function_of
from python_oracle import Programs
from whole_programs import WholePrograms

TESTS = Path(__file__).parent.parent

NAMES = (
    "μ", "größe_1", "значение", "値", "x_1", "x_10", "_", "__", "_0", "a" * 70, "match", "type",
    "len", "sum", "range", "self", "np", "math", "result", "shape", "list", "l", "O", "ﬁ",
    "ñ_shadow", "index", "float", "e", "v", "i", "k_bar",
)  # fmt: skip
LITERALS: tuple[Any, ...] = (
    0, 1, -1, 2, 3, 7, 2**31, 2**53 + 1, 2**63 - 1, 2**63, -(2**63), 10**30, 0.0, -0.0, 0.5, 1e308,
    5e-324, 1e309, True, False, None, ..., "", "μ", "a b", "%d {}", b"x", 1j, (), (1,), (1, 2.0),
    ((0, 1), (2,)), ("a", None),
)  # fmt: skip
OPERATORS = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult, ast.BitAnd, ast.BitOr,
    ast.BitXor, ast.LShift, ast.RShift,
)  # fmt: skip
KEYWORDS = ("axis", "dtype", "out", "key", "where", "μ")
BUILTINS = sorted(
    {n for n in dir(builtins) if n.islower()} - {"exit", "quit", "input", "breakpoint"}
)
COMPARISONS = (ast.Eq, ast.NotEq, ast.Lt, ast.GtE, ast.Is, ast.IsNot, ast.In, ast.NotIn)
EXPRESSIONS = re.split(
    r"\s{3,}",
    """
    (({0}))   -{0}   not {0}   ~{0}   +{0}   ({0},)   [{0}]   [{0}][0]   ({0}, 1)[0]
    {0} if {0} else {0}   (lambda: {0})()   (lambda v: v)({0})   [{0} for _ in range(2)]   {{'k': {0}}}
    {{'k': {0}}}['k']   {{{0}}}   {0}[0]   {0}[:]   {0}[None]   {0}[::-1]   {0}[...]   {0}.T   {0}.shape
    {0}.nope   {0}()   {0}({0})   ({0} and {0})   ({0} or 1)   ({0} == {0})   ({0} < 1 < {0})
    f'{{{0}}}'   [*{0}]   (*{0}, 1)   abs({0})   len({0})   sum({0})   max({0}, {0})   float({0})
    int({0})   list({0})   tuple({0})   str({0})   bool({0})   sorted({0})   range({0})   zip({0}, {0})
    enumerate({0})   isinstance({0}, float)   type({0})   ({0}).sum()   (w := {0})   {0}.append({0})
    dict(a={0})   set({0})   next(iter({0}))   any(v for v in {0})   {0} @ {0}   sum(v * v for v in {0})
    {0} + (({0}) * (({0}) - 1))   print({0})   ({0})[{0}]   {0} in ({0}, 1)
    """.strip(),
)
"""What an expression stands in, at each {0}."""
STATEMENTS = (
    "if 1 > 0:\n    {0}",
    "if w > 0:\n    {0}\nelse:\n    pass",
    "for _ in range(2):\n    {0}",
    "for w in (1.0, 2.0):\n    {0}\nelse:\n    w = 1",
    "for w in []:\n    {0}",
    "while True:\n    {0}\n    break",
    "while False:\n    {0}",
    "try:\n    {0}\nexcept ValueError as w:\n    raise",
    "try:\n    {0}\nexcept (KeyError, ZeroDivisionError):\n    pass\nelse:\n    pass\nfinally:\n    w = 1",
    "try:\n    raise ValueError\nexcept ValueError:\n    {0}",
    "with np.errstate(all='ignore') as w:\n    {0}",
    "def w():\n    {0}\nw()",
    "def w(v=1, *a, k=2, **b):\n    nonlocal_ = v\n    {0}\n    return w",
    "class W:\n    {0}",
    "match w:\n    case 0:\n        {0}\n    case (1, [v, *_]) | {'k': v} if v:\n        pass",
    "{0}\n{0}",
    "{0}\nreturn w",
    "del w\n{0}",
    "global w\n{0}",
    "assert w, 'μ'\n{0}",
    "yield w\n{0}",
    "import math as w\n{0}",
    "w: float = 1\n{0}",
    "w += 1\n{0}",
    "w[0] = w[1:] = 2.0\n{0}",
    "w, (v, *u) = w\n{0}",
    "raise ValueError(w) from None\n{0}",
)


@dataclass(frozen=True)
class Mutant:
    """A program of the tests after some changes, and the arguments that the program is called with."""

    source: str
    name: str
    names: Any
    row: Row
    of: str

    def __repr__(self) -> str:
        return f"Mutant(of={self.of!r}, row={self.row!r}, source='''\n{self.source}''')"

    def function(self) -> Callable[..., Any]:
        return function_of(self.source, self.name, self.names)

    def arguments(self) -> tuple[Any, ...]:
        return make_arguments(self.row)


@cache
def corpus() -> tuple[Mutant, ...]:
    """The programs of the tables of `tests/values` and `tests/gradients`, as they are."""
    found: dict[str, Mutant] = {}
    for path in sorted((*TESTS.glob("values/test_*.py"), *TESTS.glob("gradients/test_*.py"))):
        if "Programs()" not in path.read_text():
            continue
        for function, row in cases(module_of(path)):
            made = program(function, row)
            if made is not None:
                found.setdefault(made.of, made)
    return tuple(found.values())


def module_of(path: Path) -> Any:
    name = f"corpus_{path.parent.name}_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def cases(module: Any) -> Iterator[tuple[Callable[..., Any], Row]]:
    for table in list(vars(module).values()):
        if isinstance(table, Programs):
            yield from ((case.function, case.row) for case in table.cases)
        if isinstance(table, WholePrograms):
            yield from ((f, lambda point=point: (point.copy(),)) for f, point in table.cases)


def program(function: Any, row: Row) -> Mutant | None:
    """The program as it is; None where it is not a plain function of its module."""
    if not inspect.isfunction(function) or function.__closure__ or hasattr(function, "__wrapped__"):
        return None
    tree = ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    if not isinstance(tree, ast.FunctionDef):
        return None
    tree.decorator_list = []
    of = f"{Path(inspect.getfile(function)).name}: {tree.name}"
    return Mutant(ast.unparse(tree), tree.name, function.__globals__, row, of)


def mutants(seed: int) -> Iterator[Mutant]:
    """Programs without end, each changed in one to four places; those that are not Python left out."""
    rng = Random(seed)
    programs = corpus()
    while True:
        one, other = rng.choice(programs), rng.choice(programs)
        tree = ast.parse(one.source)
        try:
            for _ in range(rng.choice((1, 1, 2, 4))):
                rng.choice(CHANGES)(rng, tree, other)
            source = ast.unparse(ast.fix_missing_locations(tree))
            compile(source, "<mutant>", "exec")
        except (SyntaxError, ValueError, RecursionError):
            continue
        name = normalize("NFKC", tree.body[0].name)  # pyright: ignore[reportAttributeAccessIssue]
        yield Mutant(source, name, {**one.names, "w": 1.0}, one.row, one.of)


# The changes.


def rename(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """A name that the program binds is called otherwise, everywhere."""
    bound = {
        n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
    }
    bound |= {n.arg for n in ast.walk(tree) if isinstance(n, ast.arg)}
    bound |= {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
    names = {before: rng.choice(NAMES) for before in bound if rng.random() < 0.5}
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if getattr(node, field, None) in names:
                setattr(node, field, names[getattr(node, field)])
        if isinstance(node, ast.Nonlocal | ast.Global):
            node.names = [names.get(n, n) for n in node.names]


def literal(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """A number or a text is another."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Constant)]
    if found:
        node = rng.choice(found)
        node.value = rng.choice(LITERALS)


def operator(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """An operator is another."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.BinOp | ast.AugAssign | ast.Compare)]
    if not found:
        return
    node = rng.choice(found)
    if isinstance(node, ast.Compare):
        node.ops = [rng.choice(COMPARISONS)() for _ in node.ops]
    else:
        node.op = rng.choice(OPERATORS)()


def wrap_expression(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """An expression stands in another, up to three deep."""
    where = places(tree, ast.expr)
    if not where:
        return
    parent, field, at = rng.choice(where)
    text = ast.unparse(get(parent, field, at))
    for _ in range(rng.choice((1, 1, 1, 3))):
        text = f"({rng.choice(EXPRESSIONS).format(text)})"
    if len(text) < 4000:
        put(parent, field, at, ast.parse(text, mode="eval").body)


def wrap_statement(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """A statement stands in another."""
    where = [p for p in places(tree, ast.stmt) if p[0] is not tree]
    parent, field, at = rng.choice(where)
    text = ast.unparse(get(parent, field, at))
    lines = rng.choice(STATEMENTS).split("\n")
    wrapped = [
        textwrap.indent(text, line[: len(line) - 3]) if line.strip() == "{0}" else line
        for line in lines
    ]  # fmt: skip
    getattr(parent, field)[at : at + 1] = ast.parse("\n".join(wrapped)).body


def exchange(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """An expression is another one of the program, or of another program."""
    where = places(tree, ast.expr)
    source = tree if rng.random() < 0.7 else ast.parse(other.source)
    given = [get(*p) for p in places(source, ast.expr)]
    if where and given:
        put(*rng.choice(where), copy.deepcopy(rng.choice(given)))


def move_statement(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """A statement is left out, or stands at another place."""
    where = [p for p in places(tree, ast.stmt) if p[0] is not tree]
    parent, field, at = rng.choice(where)
    moved = getattr(parent, field).pop(at)
    if not getattr(parent, field):
        getattr(parent, field).append(ast.Pass())
    if rng.random() < 0.5:
        parent, field, at = rng.choice([p for p in places(tree, ast.stmt) if p[0] is not tree])
        getattr(parent, field).insert(at, moved)


def call_otherwise(rng: Random, tree: ast.Module, other: Mutant) -> None:
    """A call has other arguments, or is of another function."""
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Call)]
    if not found:
        return
    node = rng.choice(found)
    match rng.randrange(5):
        case 0:
            node.args = node.args[::-1] if len(node.args) > 1 else [*node.args, *node.args]
        case 1:
            node.args = node.args[:-1]
        case 2:
            value = ast.Constant(rng.choice(LITERALS))
            node.keywords.append(ast.keyword(rng.choice(KEYWORDS), value))
        case 3:
            node.args.append(ast.Starred(ast.Name(rng.choice(("w", "np")), ast.Load()), ast.Load()))
        case _:
            node.func = ast.Name(rng.choice(BUILTINS), ast.Load())


CHANGES = (
    rename, rename, literal, literal, operator, wrap_expression, wrap_expression, wrap_expression,
    wrap_statement, wrap_statement, exchange, exchange, move_statement, call_otherwise,
)  # fmt: skip

Place = tuple[Any, str, int | None]


def places(tree: ast.AST, kind: type[ast.AST]) -> list[Place]:
    """Where a node of this kind stands that may be another: its parent, the field, the place in a list."""
    found: list[Place] = []
    for parent in ast.walk(tree):
        for field, value in ast.iter_fields(parent):
            if isinstance(value, list):
                found += [(parent, field, k) for k, v in enumerate(value) if is_free(v, kind)]
            elif is_free(value, kind):
                found.append((parent, field, None))
    return found


def is_free(value: Any, kind: type[ast.AST]) -> bool:
    """What is assigned to is left as it is: what stands there may be little else."""
    return isinstance(value, kind) and not isinstance(
        getattr(value, "ctx", None), ast.Store | ast.Del
    )


def get(parent: Any, field: str, at: int | None) -> Any:
    return getattr(parent, field) if at is None else getattr(parent, field)[at]


def put(parent: Any, field: str, at: int | None, value: Any) -> None:
    if at is None:
        setattr(parent, field, value)
    else:
        getattr(parent, field)[at] = value


assert not any(keyword.iskeyword(name) for name in NAMES)
