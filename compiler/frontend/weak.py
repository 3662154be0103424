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

from .emitter import Emitter
from .joins import Binding, Maybe, MaybeT, ScalarT, Template
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
from .values import DTYPES, IR_TYPE, PYTHON_SCALARS, Scalar, Value, Weak

EXACT = {"i32": 2**31, "f32": 2**24, "f64": 2**53}
"""Ints below this bound are exact in the type."""


def may_stay(before: Binding | None, after: Binding) -> bool:
    """True for a Python scalar, or one that may be, that was joined with NumPy scalars."""
    before = before.value if isinstance(before, Maybe) else before
    after = after.value if isinstance(after, Maybe) else after
    if not isinstance(before, Scalar) or not isinstance(after, Scalar):
        return False
    return after.type in DTYPES and (before.type in PYTHON_SCALARS or before.python is not None)


def after_loop(e: Emitter, never: SSAValue, before: Binding | None, after: Binding) -> Binding:
    """A variable after a loop, which was `before` where the loop `never` ran."""
    return joined(e, never, before, None, after)


def joined(
    e: Emitter, test: SSAValue, here: Binding | None, other: Binding | None, merged: Binding
) -> Binding:
    """What `here` (where `test` holds) and `other` were joined to, with what tells whose scalar it is."""
    type_ = type_of(merged)
    if type_ is None:
        return merged
    sides = [weak_side(e, side, type_) for side in (here, other)]
    found = [side for side in sides if side is not None]
    if not found or len({python for python, _ in found}) > 1:
        return merged
    conditions = [test, logical_not(e, test)] if sides[1] is not None else [test]
    when: SSAValue | None = None
    for side, condition in zip(sides, conditions, strict=False):
        if side is None:
            continue
        if side[1] is not None:
            condition = e.emit(arith.AndIOp(condition, side[1]))
        when = condition if when is None else e.emit(arith.OrIOp(when, condition))
    assert when is not None
    return marked(merged, Weak(found[0][0], when))


def carried_out(
    e: Emitter, here: Binding | None, other: Binding | None, template: Template
) -> str | None:
    """The Python type of a variable that was joined on one of two branches already, so that they must
    hand out what tells whose scalar it is; None where the condition of the branch is enough."""
    t = template.inner if isinstance(template, MaybeT) else template
    if not isinstance(t, ScalarT) or t.type not in DTYPES:
        return None
    sides = [weak_side(e, side, t.type) for side in (here, other)]
    types = {side[0] for side in sides if side is not None}
    if len(types) != 1 or all(side is None or side[1] is None for side in sides):
        return None
    return types.pop()


def flag(e: Emitter, side: Binding | None, template: Template) -> SSAValue:
    """Whether `side` is Python's, at the end of its branch."""
    t = template.inner if isinstance(template, MaybeT) else template
    assert isinstance(t, ScalarT)
    found = weak_side(e, side, t.type)
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


def marked(value: Binding, weak: Weak) -> Binding:
    if isinstance(value, Maybe):
        inner = marked(value.value, weak)
        assert not isinstance(inner, Maybe)
        return Maybe(inner, value.defined)
    assert isinstance(value, Scalar)
    return replace(value, python=weak)


def type_of(value: Binding) -> str | None:
    """The type of a NumPy scalar; None of anything else."""
    value = value.value if isinstance(value, Maybe) else value
    return value.type if isinstance(value, Scalar) and value.type in DTYPES else None


def weak_side(e: Emitter, side: Binding | None, type_: str) -> tuple[str, SSAValue | None] | None:
    """The Python type of a side, and when it is of that type (None: always); None where it never is."""
    if isinstance(side, Maybe):
        side = side.value
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
        return type_ == "i64" or -EXACT[type_] <= side.low <= side.high <= EXACT[type_]
    return False
