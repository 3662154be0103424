"""Which constructs of Python are compiled, and which are refused: one row each, with an example.

The lowering refuses by these rows, the documentation prints them, and a test runs every example: a
compiled one must agree with CPython, a refused one must be refused in these words. No construct
of the grammar is without a row.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

Node = type[ast.AST]


@dataclass(frozen=True)
class Compiled:
    """A construct that is compiled. `example` defines `f(x)`, for a vector of floats, and what it needs."""

    what: str
    nodes: tuple[Node, ...]
    example: str


@dataclass(frozen=True)
class Refused:
    """A construct that is refused: why, and what to do instead."""

    nodes: tuple[Node, ...]
    reason: str
    way_out: str | None
    example: str


def version_nodes(*names: str) -> tuple[Node, ...]:
    """These node types; for one that this version of Python does not have, one that never occurs."""
    return tuple(getattr(ast, name, None) or type(name, (ast.AST,), {}) for name in names)


COMPILED: tuple[Compiled, ...] = (
    Compiled(
        "assignment to names, tuples of them, elements, slices, attributes",
        (ast.Assign, ast.AnnAssign, ast.Name, ast.Tuple, ast.Subscript, ast.Slice, ast.Constant),
        """
def f(x):
    a, (b, c) = x[0], (x[1], 2.0)
    first, *rest = x
    n: int = x.size
    x[1:] = x[:-1]
    return a * b * c + x[n - 1] * first * len(rest)
""",
    ),
    Compiled(
        "augmented assignment with every operator",
        (ast.AugAssign,),
        """
def f(x):
    x *= 2.0
    x[1:] += x[:-1]
    x[0] **= 2
    return x.sum()
""",
    ),
    Compiled(
        "arithmetic, comparisons (chained, too), `and`, `or`, `not`, `is None`",
        (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare),
        """
def f(x):
    if 0.0 < x[0] <= 9.0 and not x[1] == x[2]:
        return -x[0] ** 2 % 7.0 + x[1] // 1.0
    return x @ x
""",
    ),
    Compiled(
        "conditions",
        (ast.If, ast.IfExp, ast.Expr, ast.Pass),
        """
def f(x):
    if x[0] > 0.5:
        y = x * 2.0
    elif x[0] < -0.5:
        y = x * x
    else:
        pass
        y = x
    return y.sum() if x.size > 2 else 0.0
""",
    ),
    Compiled(
        "`for` over ranges in any direction, arrays, tuples, lists, `enumerate`, `zip`, `reversed`",
        (ast.For,),
        """
def f(x):
    s = 0.0
    for i in range(x.size - 1, 0, -2):
        s += x[i] * x[i - 1]
    for k, (a, b) in enumerate(zip(x, reversed(x))):
        s += k * a * b
    return s
""",
    ),
    Compiled(
        "`while`",
        (ast.While,),
        """
def f(x):
    t, u = 0.0, x[0]
    while t < 1.0:
        dt = min(0.3, 1.0 - t)
        u += dt * u * x[1]
        t += dt
    return u
""",
    ),
    Compiled(
        "`break`, `continue`, `return` anywhere; `else` of loops",
        (ast.Break, ast.Continue, ast.Return),
        """
def f(x):
    s = 0.0
    for v in x:
        if v < 0.0:
            continue
        if v > 100.0:
            break
        s += v * v
    else:
        return 2.0 * s
    return s
""",
    ),
    Compiled(
        "`match` of constants, sequences, mappings, classes and their attributes; guards, alternatives",
        (ast.Match,),
        """
def f(x):
    match (x.size % 3, x.ndim):
        case (0, 1):
            return x[0] * x[1]
        case (k, _) if k > 1:
            return x[0] + k
    return x.sum()
""",
    ),
    Compiled(
        "exceptions with several arguments, causes; `e.args` (and attributes that an `__init__` assigns)",
        (ast.Raise, ast.ExceptHandler),
        """
def f(x):
    s = 0.0
    for k in range(x.size):
        try:
            if x[k] > 0.7:
                raise OverflowError(k, x[k])
            s += float(x[k]) / k
        except OverflowError as e:
            step, value = e.args
            s += value * step
        except ZeroDivisionError as e:
            if s > 1e9:
                raise RuntimeError("too large", s) from e
    return s
""",
    ),
    Compiled(
        "`try`, `except`, `else`, `finally`; `raise`; `assert`",
        (ast.Try, ast.Raise, ast.Assert),
        """
import math

def root(v):
    if v < 0.0:
        raise ValueError("negative")
    return math.sqrt(v)

def f(x):
    s = 0.0
    for v in x:
        try:
            s += root(v - 1.0)
        except ValueError:
            s += 0.1 * v
        finally:
            s += 1.0
    assert s > -1e9, "far too small"
    return s
""",
    ),
    Compiled(
        "`with`: classes with `__exit__`, `contextmanager`, `suppress`, `nullcontext`, `np.errstate`",
        (ast.With,),
        """
import contextlib
import numpy as np

class Logged:
    def __init__(self):
        self.ends = 0

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        self.ends += 1
        return kind is not None and issubclass(kind, ZeroDivisionError)

@contextlib.contextmanager
def scaled(x, k):
    x *= k
    try:
        yield k
    finally:
        x /= k

def f(x):
    s, log = 0.0, Logged()
    for i in range(x.size):
        with scaled(x, 2.0) as k, log:
            s += float(k * x[i]) / i
            if i == 3:
                break
        with np.errstate(divide="ignore"), contextlib.suppress(ValueError):
            s += x[0]
    return s * log.ends
""",
    ),
    Compiled(
        "`del` of names that are not read afterwards",
        (ast.Delete,),
        """
def f(x):
    y = x * x
    s = y.sum()
    del y
    return s
""",
    ),
    Compiled(
        "calls: defaults, keywords, `*args`, `**kwargs`, functions as values, closures, `lambda`, `def`",
        (ast.Call, ast.FunctionDef, ast.Lambda, ast.Starred),
        """
def scaled(v, factor=2.0, *rest, **more):
    return v * factor + sum(rest) + more.get("shift", 0.0)

def handed_on(g, *args, **kwargs):
    return g(*args, **kwargs)

def f(x):
    k = x[0]

    def twice(g, v):
        return g(g(v))

    parts = (x[1], x[2])
    s = twice(lambda v: k * v, x[1]) + scaled(x[2], factor=3.0)
    return s + handed_on(scaled, x[0], 1.0, *parts, shift=x[1])
""",
    ),
    Compiled(
        "`nonlocal`: a nested function rebinds names of the functions around it",
        (ast.Nonlocal,),
        """
def f(x):
    s, calls = 0.0, 0

    def area(v):
        nonlocal s, calls
        calls += 1
        if v > 0.0:
            s += v * v

    for v in x:
        area(v)
    return s / calls
""",
    ),
    Compiled(
        "functions chosen at run time; None or a value",
        (),
        """
import math

OPERATIONS = [math.sin, math.cos, lambda v: v * v]

def f(x):
    best, s = None, 0.0
    for i, v in enumerate(x):
        s += OPERATIONS[i % 3](v)
        if best is None or v < best:
            best = v
    g = math.exp if x[0] > 0.5 else math.tanh
    return g(s) if best is None else g(s) * best
""",
    ),
    Compiled(
        "recursion",
        (),
        """
def tree(x, i):
    if i >= x.size:
        return 1.0
    return x[i] * (tree(x, 2 * i + 1) + 0.5 * tree(x, 2 * i + 2))

def f(x):
    return tree(x, 0)
""",
    ),
    Compiled(
        "recursion that returns new arrays, shares lists and objects, raises",
        (),
        """
import numpy as np

def haar(x):
    if x.size < 2:
        return x.copy()
    low = haar((x[::2] + x[1::2]) * 0.5)
    return np.concatenate([low, (x[::2] - x[1::2]) * 0.5])

def f(x):
    path, state = [], {"best": 0.0}

    def search(i):
        if i == x.size:
            raise StopIteration("deep enough")
        path.append(x[i])
        search(i + 1)

    try:
        search(0)
    except StopIteration:
        state["best"] += sum(path)
    return (haar(x[:2] * x[1:3]) ** 2).sum() * state["best"]
""",
    ),
    Compiled(
        "`:=`",
        (ast.NamedExpr,),
        """
def f(x):
    if (s := x.sum()) > 0.0:
        return sum([y for v in x if (y := v * v) > 0.1]) * y + s * s
    return s
""",
    ),
    Compiled(
        "lists of arrays, of lists and of objects: they grow, and a name of an item is the item",
        (ast.List, ast.ListComp),
        """
def f(x):
    states = [x * 0.5]
    table = [[0.0] * 3 for _ in range(x.size)]
    for i in range(x.size):
        states.append(states[-1] * x)
        row = table[i]
        row[0] += states[-1][i]
    return sum(row[0] for row in table)
""",
    ),
    Compiled(
        "lists of arrays, of lists and of objects: items are moved, replaced, shared by several lists",
        (ast.Delete, ast.Slice),
        """
def f(x):
    states = [x * k for k in range(4)]
    states[0], states[3] = states[3], states[0]
    del states[1]
    kept = states[1:] + [x * 0.5]
    kept[0][0] = x[1]
    kept.sort(key=lambda s: s[0])
    return states[1][0] + kept.pop(0).sum()
""",
    ),
    Compiled(
        "items of lists and tuples of arrays, by a run-time index: the item itself",
        (ast.Subscript,),
        """
def f(x):
    y = x * 2.0
    both = [x, y]
    for i in range(6):
        both[i * i % 4 % 2][i % 2] *= x[2]
    for i in range(len(both)):
        y = y + both[i]
    return y.sum()
""",
    ),
    Compiled(
        "lists sorted, compared, and changed by slices",
        (ast.Slice, ast.Delete),
        """
def f(x):
    found = sorted([v * v for v in x], reverse=True)
    found[1:] = found[:1]
    del found[:1]
    return found[0] if found == found[:1] else 0.0
""",
    ),
    Compiled(
        "lists: they grow and shrink",
        (ast.List,),
        """
def f(x):
    found = []
    for v in x:
        if v > 0.0:
            found.append(v * v)
    found.append(1.0)
    last = found.pop()
    return last + sum(found) + len(found)
""",
    ),
    Compiled(
        "comprehensions of lists, generator expressions",
        (ast.ListComp, ast.GeneratorExp, ast.comprehension),
        """
def f(x):
    squares = [v * v for v in x if v > 0.0]
    return sum(squares) + sum(a * b for a, b in zip(x, squares))
""",
    ),
    Compiled(
        "generators, consumed whole or in parts by `for`, `sum`, `next`, `send` and the like; `itertools`",
        (ast.Yield, ast.YieldFrom),
        """
from itertools import combinations

def f(x):
    def steps(v, n):
        for _ in range(n):
            yield v
            v = v * 0.5
        yield from x
    s = sum(steps(x[0], 4)) * max(steps(x[1], 2))
    for k, v in enumerate(steps(x[2], 3)):
        if k > 5:
            break
        s += k * v
    g = steps(x[3], 2)
    s += next(g)
    for v in g:
        s = s * 0.5 + v
    return s + sum(a * b for a, b in combinations(x, 2))
""",
    ),
    Compiled(
        "dicts with constant keys, chosen at run time; dict comprehensions over constants",
        (ast.Dict, ast.DictComp),
        """
def f(x):
    p = {"rate": x[0], "size": x.size}
    p["rate"] *= 2.0
    s = 0.0
    for value in p.values():
        s += value
    q = {**{k: 2.0 * v for k, v in p.items() if k != "size"}, "more": x[1]}
    q["rate" if x[0] > x[1] else "more"] += s
    return s * q["rate"] * q["more"]
""",
    ),
    Compiled(
        "`in` of tuples, lists, dicts, strings, sets that are written out",
        (ast.Set,),
        """
def f(x):
    return x.sum() if x.size in {3, 5} and "a" in "abc" else x[0]
""",
    ),
    Compiled(
        "sets of run-time values, and comprehensions of them; dicts with run-time keys",
        (ast.Set, ast.SetComp, ast.Dict, ast.DictComp),
        """
def f(x):
    seen, memo = {0}, {}
    for i in range(12):
        k = i * i % 5
        memo[i] = x[k % 3] if i < 2 else 0.5 * memo[i - 1] + memo[i - 2] * x[0]
        if k not in seen:
            seen.add(k)
    s = sum(memo.values()) * len(seen | {i % 3 for i in range(4)})
    for k in sorted(seen):
        s = s * 0.5 + memo.get(k, 0.0)
    return s
""",
    ),
    Compiled(
        "attributes: of modules, classes, arrays, objects",
        (ast.Attribute,),
        """
import math
from dataclasses import dataclass
from typing import Any

@dataclass
class State:
    position: Any
    time: float = 0.0

    def step(self, dt):
        self.position += dt * self.position
        self.time += dt

def f(x):
    s = State(x)
    for _ in range(3):
        s.step(0.1)
    return (s.position * s.time * math.pi).sum()
""",
    ),
    Compiled(
        "objects chosen at run time: linked lists, trees, None",
        (ast.Attribute, ast.While, ast.Is),
        """
class Node:
    def __init__(self, value):
        self.value = value
        self.left = self.right = None

def insert(node, value):
    if node is None:
        return Node(value)
    if value < node.value:
        node.left = insert(node.left, value)
    else:
        node.right = insert(node.right, value)
    return node

def f(x):
    root = None
    for v in x:
        root = insert(root, v)
    least = root
    while least.left is not None:
        least = least.left
    least.value *= 2.0
    return root.value * least.value
""",
    ),
    Compiled(
        "`import` of modules and their names",
        (ast.Import, ast.ImportFrom),
        """
def f(x):
    import math as m
    from math import sin
    return m.cos(x[0]) * sin(x[1])
""",
    ),
    Compiled(
        "strings as constants; f-strings, `%` and `.format` in `print` and `raise`",
        (ast.JoinedStr, ast.FormattedValue),
        """
def f(x):
    kind = "square"
    if x.size < 0:
        raise ValueError(f"{x.size} elements")
    if x[0] > 1e9:
        raise ValueError("%g is too large" % x[0])
    return (x * x).sum() if kind == "square" else x.sum()
""",
    ),
)

COROUTINES = "coroutines are not compiled"

REFUSED: tuple[Refused, ...] = (
    Refused(
        (ast.AsyncFunctionDef, ast.AsyncFor, ast.AsyncWith, ast.Await),
        COROUTINES,
        "write it with plain `def`, and call that where you await",
        """
def f(x):
    async def later():
        return x
    return x.sum()
""",
    ),
    Refused(
        (ast.ClassDef,),
        "a class inside a function is not compiled",
        "define the class outside",
        """
def f(x):
    class Local:
        pass
    return x.sum()
""",
    ),
    Refused(
        version_nodes("TryStar"),
        "`except*` is not compiled",
        "use `except`",
        """
def f(x):
    try:
        return x.sum()
    except* ValueError:
        pass
""",
    ),
    Refused(
        (ast.Global,),
        "`global` is not compiled: a compiled function assigns to no name of a module",
        "return the value, or store to an element of an array of the module: COUNT[0] += 1",
        """
def f(x):
    global total
    total = x.sum()
    return total
""",
    ),
    Refused(
        version_nodes("TypeAlias"),
        "a type alias inside a function is not compiled",
        "write it at the top of the module",
        """
def f(x):
    type Number = float
    return x.sum()
""",
    ),
    Refused(
        version_nodes("TemplateStr", "Interpolation"),
        "template strings are not compiled",
        None,
        """
def f(x):
    t"{x.size}"
    return x.sum()
""",
    ),
)

REASONS: dict[Node, Refused] = {node: row for row in REFUSED for node in row.nodes}
"""The row by which each refused construct is refused."""


OUT_OF_PLACE: dict[Node, tuple[str, str]] = {
    ast.Starred: ("`*` is not compiled here", "write the items out"),
}
"""Why a construct that is compiled is refused where it stands."""


def why_refused(node: Node) -> tuple[str, str | None]:
    """The reason and the way out for a construct that is not lowered."""
    if node in REASONS:
        return REASONS[node].reason, REASONS[node].way_out
    return OUT_OF_PLACE.get(node, (f"{node.__name__} is not compiled here", None))
