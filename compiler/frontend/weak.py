"""Scalars that are Python's on one path and NumPy's on another, where the paths meet.

Such a variable is a NumPy scalar in the code, and a boolean tells for which of the two it stands::

    s = 0.0                    %s = memref.load %s_cell[]          f64
    for v in x:                %never = arith.cmpi sle, %n, %c0
        s += v                 func.return %s, %never              Python's 0.0 where %never, else np.float64
    return s

The result's type depends on it, and whether a division by zero raises. Sums, products and quotients of such
scalars, and Python's, are such scalars again where they are floats; anything else is NumPy's. So is the value
where an iteration hands it to the next, and where the NumPy type does not hold the Python value exactly.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from ..scalar_types import RANGE
from .emitter import Emitter
from .joins import Binding, Maybe, MaybeT, ScalarT, Template, TupleT
from .scalars import (
    FLOAT_DIVISION,
    FLOAT_FLOOR_DIVISION,
    FLOAT_MODULO,
    INT_DIVISION,
    INT_MODULO,
    INT_TRUE_DIVISION,
    compare_ssa,
    converted_constant,
    logical_not,
    raise_if,
)
from .values import DTYPES, IR_TYPE, PYTHON_SCALARS, Scalar, Struct, Tuple, Value, Weak

EXACT = {**RANGE, "f32": (-(2**24), 2**24), "f64": (-(2**53), 2**53)}
"""Ints between these bounds are exact in the type."""


Path = tuple[int, ...]
"""Where a scalar is in a tuple of tuples: the subscripts; of a scalar itself none."""


def may_stay(before: Binding | None, after: Binding) -> bool:
    """True for a Python scalar, or one that may be, that was joined with NumPy scalars."""
    return any(
        isinstance(old := part(before, path), Scalar)
        and (old.type in PYTHON_SCALARS or old.python is not None)
        for path in numpy_scalars(after)
    )


def after_loop(e: Emitter, never: SSAValue, before: Binding | None, after: Binding) -> Binding:
    """A variable after a loop, which was `before` where the loop `never` ran."""
    return joined(e, never, before, None, after)


def joined(
    e: Emitter, test: SSAValue, here: Binding | None, other: Binding | None, merged: Binding
) -> Binding:
    """What `here` (where `test` holds) and `other` were joined to, with what tells whose scalar it is."""
    for path, type_ in numpy_scalars(merged).items():
        sides = [weak_side(e, part(side, path), type_) for side in (here, other)]
        found = [side for side in sides if side is not None]
        if not found or len({python for python, _ in found}) > 1:
            continue
        conditions = [test, logical_not(e, test)] if sides[1] is not None else [test]
        when: SSAValue | None = None
        for side, condition in zip(sides, conditions, strict=False):
            if side is None:
                continue
            if side[1] is not None:
                condition = e.emit(arith.AndIOp(condition, side[1]))
            when = condition if when is None else e.emit(arith.OrIOp(when, condition))
        assert when is not None
        merged = marked(merged, path, Weak(found[0][0], when))
    return merged


def carried_out(
    e: Emitter, here: Binding | None, other: Binding | None, template: Template
) -> dict[Path, str]:
    """The scalars that were joined on one of two branches already, and their Python types: the branches
    must hand out what tells whose they are. Of the others the condition of the branch tells it."""
    found = dict[Path, str]()
    for path, type_ in numpy_scalars(template).items():
        sides = [weak_side(e, part(side, path), type_) for side in (here, other)]
        types = {side[0] for side in sides if side is not None}
        if len(types) == 1 and any(side is not None and side[1] is not None for side in sides):
            found[path] = types.pop()
    return found


def flag(e: Emitter, side: Binding | None, path: Path, template: Template) -> SSAValue:
    """Whether the scalar at `path` of `side` is Python's, at the end of its branch."""
    found = weak_side(e, part(side, path), numpy_scalars(template)[path])
    if found is not None and found[1] is not None:
        return found[1]
    return e.constant(found is not None, "py_bool").ssa


# Arithmetic.


def operands(lhs: Value, rhs: Value) -> tuple[Scalar, Scalar] | None:
    """The operands where both may be Python's; None otherwise: NumPy's rules hold then."""
    if not isinstance(lhs, Scalar) or not isinstance(rhs, Scalar):
        return None
    if any(x.python is None and x.type not in PYTHON_SCALARS for x in (lhs, rhs)):
        return None
    return lhs, rhs


def check_division(e: Emitter, op: str, lhs: Scalar, rhs: Scalar) -> None:
    """Raise ZeroDivisionError where both operands are Python's and the divisor is 0."""
    of_ints = {"Div": INT_TRUE_DIVISION, "FloorDiv": INT_DIVISION, "Mod": INT_MODULO}
    of_floats = {"Div": FLOAT_DIVISION, "FloorDiv": FLOAT_FLOOR_DIVISION, "Mod": FLOAT_MODULO}
    if op not in of_ints or rhs.constant or (rhs.type == "py_int" and rhs.low > 0):
        return
    zero = compare_ssa(e, "Eq", rhs.ssa, e.constant(0, rhs.type).ssa, rhs.type)
    texts = of_floats if "py_float" in (python_type(lhs), python_type(rhs)) else of_ints
    raise_if(e, e.emit(arith.AndIOp(both_python(e, lhs, rhs), zero)), texts[op])


def result(e: Emitter, op: str, lhs: Scalar, rhs: Scalar, value: Value) -> Value:
    """The value, computed as NumPy does, of `lhs op rhs`; a Python float where both are Python's."""
    is_float = op == "Div" or "py_float" in (python_type(lhs), python_type(rhs))
    if not isinstance(value, Scalar) or value.type != "f64" or not is_float or op not in EXACT_OPS:
        return value
    return replace(value, python=Weak("py_float", both_python(e, lhs, rhs)))


EXACT_OPS = ("Add", "Sub", "Mult", "Div")
"""The operators that compute the same for Python's floats and NumPy's."""


def python_type(x: Scalar) -> str:
    return x.type if x.python is None else x.python.type


def both_python(e: Emitter, lhs: Scalar, rhs: Scalar) -> SSAValue:
    """Whether both operands are Python's, at least one of which need not be."""
    first, *others = [x.python.when for x in (lhs, rhs) if x.python is not None]
    return e.emit(arith.AndIOp(first, others[0])) if others else first


# What is known of one side.


def numpy_scalars(value: Binding | Template) -> dict[Path, str]:
    """The NumPy scalars in a value or in its form, and their types."""
    match value:
        case Maybe(inner) | MaybeT(inner):
            return numpy_scalars(inner)
        case Scalar() | ScalarT():
            return {(): value.type} if value.type in DTYPES else {}
        case Tuple(items) | Struct(items) | TupleT(items):
            return {
                (k, *path): type_
                for k, item in enumerate(items)
                for path, type_ in numpy_scalars(item).items()
            }
        case _:
            return {}


def part(value: Binding | None, path: Path) -> Value | None:
    """What is at `path` of a value, None where it is unbound or of another form."""
    found = value.value if isinstance(value, Maybe) else value
    for k in path:
        if not isinstance(found, Tuple | Struct) or k >= len(found.items):
            return None
        found = found.items[k]
    return found


def marked(value: Binding, path: Path, weak: Weak) -> Binding:
    """The value, of whose scalar at `path` `weak` is known."""
    if isinstance(value, Maybe):
        return Maybe(marked_value(value.value, path, weak), value.defined)
    return marked_value(value, path, weak)


def marked_value(value: Value, path: Path, weak: Weak) -> Value:
    if not path:
        assert isinstance(value, Scalar)
        return replace(value, python=weak)
    assert isinstance(value, Tuple | Struct)
    items = list(value.items)
    items[path[0]] = marked_value(items[path[0]], path[1:], weak)
    return replace(value, items=tuple(items))


def weak_side(e: Emitter, side: Value | None, type_: str) -> tuple[str, SSAValue | None] | None:
    """The Python type of a side, and when it is of that type (None: always); None where it never is."""
    if not isinstance(side, Scalar):
        return None
    if side.type in PYTHON_SCALARS:
        return (side.type, None) if is_kept(side, type_) else None
    if side.python is None or side.type != type_:
        return None
    return side.python.type, side.python.when


def is_kept(side: Scalar, type_: str) -> bool:
    """True when the type holds the very value of the Python scalar."""
    if IR_TYPE[side.type] == IR_TYPE[type_] or side.type == "py_bool":
        return True
    if side.constant is not None:
        return converted_constant(side.constant, type_) == side.constant
    if side.type == "py_int":
        return EXACT[type_][0] <= side.low <= side.high <= EXACT[type_][1]
    return False
