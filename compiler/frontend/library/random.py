"""Draws from a `numpy.random.Generator`: NumPy's own C functions on the caller's stream.

A draw is a call that is never moved, dropped or repeated, so the stream is CPython's to the bit; an array
is filled by a loop of them. What depends on parameters is written out, as NumPy's C does it::

    rng.normal(mu, s, n)     array.loop %i to %n do {
                               %z = foreign.call "c" "mutad_random_standard_normal" ... (%rng) ...
                               memref.store %z, %standard[%i]
                             }
                             mu + s * standard

So gradients flow through parameters (the draws are *reparameterized*) and not through draws, and the
reverse sweep draws nothing: what it needs of a draw is saved, or still in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from xdsl.dialects import arith, memref
from xdsl.dialects.builtin import IndexType, f32, f64, i64
from xdsl.ir import Attribute, Block, SSAValue

from ....dialects import array, foreign
from ..emitter import Emitter
from ..values import INT64_MAX, Array, NoneValue, Scalar, Static, Value
from . import creation, elementwise, gather, read_only, reductions, shapes
from .assignment import assign_view
from .dtypes import dtype_argument, element_type_cast
from .indexing import as_index
from .maps import Operand, allocate, copy, extents_of, mapped, operand
from .read_only import require_writable
from .reshape import collapsed
from .selection import row

WAY_OUT = "draw outside of compiled code, and pass the array"

OUTCOMES: dict[str, tuple[str, Attribute]] = {
    "f64": ("py_float", f64),
    "f32": ("c_float", f32),
    "i64": ("py_int", i64),
}
"""What a C function returns: its type's name, and that in the IR."""


@dataclass(frozen=True)
class Source:
    """A C function of the generator's state, and the dtype that it draws."""

    function: str
    dtype: str = "f64"

    def draw(self, e: Emitter, state: SSAValue, arguments: Sequence[SSAValue] = ()) -> SSAValue:
        """One number."""
        name, type_ = OUTCOMES[self.dtype]
        values = [state, *arguments]
        types = ["py_int" if isinstance(v.type, IndexType) else "b1" for v in values]
        op = foreign.CallOp(
            "c",
            f"mutad_{self.function}",
            f"numpy_random:{self.function}",
            values,
            types,
            ["none"] * len(values),
            name,
            [type_],
        )
        return e.insert(op, "drawn").called[0]

    def fill(
        self, e: Emitter, state: SSAValue, target: Array, arguments: Sequence[SSAValue] = ()
    ) -> None:
        """All elements of a contiguous array, in C order."""
        flat = collapsed(e, target, range(target.rank)) if target.rank > 1 else target
        count = shapes.product(e, shapes.extents_of(e, target.memref))
        each(
            e,
            count,
            lambda k: e.insert(
                memref.StoreOp.get(self.draw(e, state, arguments), flat.memref, [k][: flat.rank])
            ),
        )


def each(e: Emitter, count: SSAValue, visit: Callable[[SSAValue], object]) -> None:
    """A loop over 0 ... count - 1."""
    body = Block(arg_types=[IndexType()])
    body.args[0].name_hint = "k"
    with e.at(body):
        visit(body.args[0])
        e.insert(array.YieldOp())
    e.insert(array.LoopOp(count, [], body), "trips")


UNIFORM, NORMAL, EXPONENTIAL = (
    f"random_standard_{name}" for name in ("uniform", "normal", "exponential")
)
BOUNDED = Source("random_bounded_uint64", "i64")
INTERVAL = Source("random_interval", "i64")


# --- Draws without parameters -------------------------------------------------------------------


def standard(
    e: Emitter,
    state: SSAValue,
    function: str,
    size: Value | None,
    dtype: Value | None = None,
    out: Value | None = None,
) -> Value:
    """Draws by a function without parameters."""
    name = dtype_argument(e, dtype, "f64")
    if name not in ("f64", "f32"):
        e.fail("floats are drawn in float64 and float32")
    source = Source(function if name == "f64" else f"{function}_f", name)
    if out is not None:
        return into(e, state, source, size, out)
    if size is None:
        drawn = source.draw(e, state)
        wide = drawn if name == "f64" else e.emit(arith.ExtFOp(drawn, f64))
        return Scalar("py_float", wide)
    return filled(e, state, source, size)


def uniform_draws(
    e: Emitter, state: SSAValue, size: Value | None, dtype: Value | None, out: Value | None
) -> Value:
    """`rng.random`."""
    return standard(e, state, UNIFORM, size, dtype, out)


def normal_draws(
    e: Emitter, state: SSAValue, size: Value | None, dtype: Value | None, out: Value | None
) -> Value:
    """`rng.standard_normal`."""
    return standard(e, state, NORMAL, size, dtype, out)


def standard_exponential(
    e: Emitter,
    state: SSAValue,
    size: Value | None,
    dtype: Value | None,
    method: Value | None,
    out: Value | None,
) -> Value:
    """`rng.standard_exponential`, by the default method."""
    if method is not None and not (isinstance(method, Static) and method.object == "zig"):
        e.fail('rng.standard_exponential is compiled with method="zig"')
    return standard(e, state, EXPONENTIAL, size, dtype, out)


def filled(
    e: Emitter, state: SSAValue, source: Source, size: Value, arguments: Sequence[SSAValue] = ()
) -> Array:
    """A fresh array of draws."""
    result = allocate(e, creation.extents_argument(e, size, source.dtype), source.dtype, "drawn")
    source.fill(e, state, result, arguments)
    return result


def into(e: Emitter, state: SSAValue, source: Source, size: Value | None, out: Value) -> Array:
    """`out=`: the draws are written there."""
    if not isinstance(out, Array) or out.dtype != source.dtype or size is not None:
        e.fail("out= takes an array of the dtype that is drawn, without size=")
    if not array.is_contiguous(out.type) and array.strides_of(out.type) != (1,):
        e.fail("out= takes an array in C order without gaps", way_out="draw, and assign x[...] =")
    require_writable(e, out.memref, read_only.DRAWN)
    source.fill(e, state, out)
    return out


# --- Draws with parameters ----------------------------------------------------------------------


def normal(
    e: Emitter, state: SSAValue, loc: Value | None, scale: Value | None, size: Value | None
) -> Value:
    """`rng.normal(loc, scale, size)`."""
    shift, factor = parameter(e, loc, 0.0), parameter(e, scale, 1.0)
    require_not_negative(e, factor, "scale < 0")
    return spread(e, state, NORMAL, shift, factor, size)


def uniform(
    e: Emitter, state: SSAValue, low: Value | None, high: Value | None, size: Value | None
) -> Value:
    """`rng.uniform(low, high, size)`."""
    first, last = parameter(e, low, 0.0), parameter(e, high, 1.0)
    width = value_of(e, np.subtract, last, first)
    raise_where(e, width, is_not_finite, "OverflowError", "high - low range exceeds valid bounds")
    require_not_negative(e, width, "high - low < 0")
    return spread(e, state, UNIFORM, first, width, size)


def exponential(e: Emitter, state: SSAValue, scale: Value | None, size: Value | None) -> Value:
    """`rng.exponential(scale, size)`."""
    factor = parameter(e, scale, 1.0)
    require_not_negative(e, factor, "scale < 0")
    return spread(e, state, EXPONENTIAL, None, factor, size)


def parameter(e: Emitter, value: Value | None, default: float) -> Scalar | Array:
    """A parameter in float64."""
    if value is None:
        return e.constant(default, "py_float")
    given = operand(e, value)
    if isinstance(given, Scalar):
        return Scalar("py_float", element_type_cast(e, given, "f64").ssa)
    return given


def value_of(e: Emitter, ufunc: np.ufunc, left: Operand, right: Operand) -> Scalar | Array:
    """left op right, computed."""
    found = elementwise.apply(e, ufunc, [left, right])
    return Scalar("py_float", found.ssa) if isinstance(found, Scalar) else found


def spread(
    e: Emitter,
    state: SSAValue,
    function: str,
    shift: Scalar | Array | None,
    factor: Scalar | Array,
    size: Value | None,
) -> Value:
    """shift + factor * draw, one draw for each element."""
    arrays = [p for p in (shift, factor) if isinstance(p, Array)]
    source = Source(function)
    drawn: Operand
    if size is not None and arrays:
        e.fail(
            "size= and parameters that are arrays", way_out="leave size out, or broadcast before"
        )
    if arrays:
        shape = shapes.broadcast_extents(e, [extents_of(e, p) for p in arrays], mismatch(arrays))
        drawn = allocate(e, shape, "f64", "drawn")
        source.fill(e, state, drawn)
    elif size is None:
        drawn = Scalar("f64", source.draw(e, state))
    else:
        drawn = filled(e, state, source, size)
    scaled = elementwise.apply(e, np.multiply, [factor, drawn])
    result = scaled if shift is None else elementwise.apply(e, np.add, [shift, scaled])
    return Scalar("py_float", result.ssa) if isinstance(result, Scalar) else result


def mismatch(arrays: Sequence[Array]) -> str:
    """NumPy's words for parameters that do not go together."""
    ranks = [shapes.shape_format(a.rank) for a in arrays]
    named = " and ".join(f"arg {k} with shape {shape}" for k, shape in enumerate(ranks))
    return (
        "shape mismatch: objects cannot be broadcast to a single shape.  "
        f"Mismatch is between {named}."
    )


Test = Callable[[Emitter, SSAValue], SSAValue]


def require_not_negative(e: Emitter, value: Scalar | Array, message: str) -> None:
    """ValueError where a parameter is negative; NumPy takes -0.0 for that, and NaN not."""
    constant = value.constant if isinstance(value, Scalar) else None
    if constant is None or not constant >= 0:
        raise_where(e, value, is_negative, "ValueError", message)


def is_negative(e: Emitter, x: SSAValue) -> SSAValue:
    signed = elementwise.TABLE[np.signbit].lowering("f64")
    assert signed is not None
    number = e.emit(arith.CmpfOp(x, x, "oeq"))
    return e.emit(arith.AndIOp(signed(e, [x]), number))


def is_not_finite(e: Emitter, x: SSAValue) -> SSAValue:
    finite = elementwise.TABLE[np.isfinite].lowering("f64")
    assert finite is not None
    return e.emit(arith.XOrIOp(finite(e, [x]), e.constant(True, "py_bool").ssa))


def raise_where(
    e: Emitter, value: Scalar | Array, test: Test, exception: str, message: str
) -> None:
    """Raise where the test holds for a number, or for an element of an array."""
    if isinstance(value, Scalar):
        wrong = test(e, value.ssa)
    else:
        loop = ("f64", "b1")
        found = mapped(e, [value], loop, extents_of(e, value), lambda e, xs: test(e, xs[0]))
        some = reductions.call(e, "any", found, [], {})
        assert isinstance(some, Scalar)
        wrong = some.ssa
    e.insert(array.RaiseIfOp(wrong, exception, message))


# --- Integers, and what is made of them -----------------------------------------------------------


def integers(
    e: Emitter,
    state: SSAValue,
    low: Value,
    high: Value | None,
    size: Value | None,
    dtype: Value | None,
    endpoint: Value | None,
) -> Value:
    """`rng.integers(low, high, size)` of int64."""
    plain = dtype is None or (isinstance(dtype, Static) and dtype.object is int)
    if dtype is not None and dtype_argument(e, dtype, "i64") != "i64":
        e.fail("rng.integers draws int64 here", way_out="leave dtype out, and convert")
    closed = endpoint is not None and truth_of(e, endpoint)
    first = as_index(e, low) if high is not None else zero(e)
    last = as_index(e, low if high is None else high)
    top = last.ssa if closed else e.emit(array.CheckedSubOp(last.ssa, e.index(1)))
    wrong = shapes.compare(e, "sgt", first.ssa, top)
    if size is not None:  # an empty array is returned unseen
        count = shapes.product(e, creation.extents_argument(e, size))
        wrong = e.emit(arith.AndIOp(wrong, shapes.compare(e, "ne", count, e.index(0))))
    for condition, text in comparisons(e, first, closed):
        both = wrong if condition is None else e.emit(arith.AndIOp(wrong, condition))
        e.insert(array.RaiseIfOp(both, "ValueError", text))
    width = e.emit(arith.SubiOp(top, first.ssa))
    no = e.constant(False, "py_bool").ssa
    arguments = [first.ssa, width, e.index(0), no]
    if size is not None:
        return filled(e, state, BOUNDED, size, arguments)
    drawn = BOUNDED.draw(e, state, arguments)
    if not plain or dtype is None:
        return Scalar("i64", drawn)
    return Scalar("py_int", e.emit(array.CastOp(drawn, IndexType())))


def comparisons(e: Emitter, first: Scalar, closed: bool) -> list[tuple[SSAValue | None, str]]:
    """NumPy's words for an empty range, which are others where it starts at 0."""
    of_zero = f"high {'<' if closed else '<='} 0"
    of_others = f"low {'>' if closed else '>='} high"
    if first.constant is not None:
        return [(None, of_others if first.constant else of_zero)]
    starts = shapes.compare(e, "eq", first.ssa, e.index(0))
    return [(starts, of_zero), (None, of_others)]


def zero(e: Emitter) -> Scalar:
    return Scalar("py_int", e.index(0), 0, 0, 0)


def truth_of(e: Emitter, value: Value) -> bool:
    if not isinstance(value, Scalar) or value.type != "py_bool" or value.constant is None:
        e.fail("a flag of rng's methods must be written as True or False")
    return bool(value.constant)


def shuffle(e: Emitter, state: SSAValue, x: Value, axis: Value | None) -> Value:
    """`rng.shuffle(x)`: rows are swapped from the last to the first."""
    if not isinstance(x, Array) or x.rank == 0:
        e.fail("rng.shuffle is compiled for arrays")
    require_writable(e, x.memref, read_only.SHUFFLED)
    if axis is not None and as_index(e, axis).constant != 0:
        e.fail("rng.shuffle is compiled for axis=0", way_out="shuffle x.T")
    extents = shapes.extents_of(e, x.memref)
    n = extents[0]
    last = e.emit(arith.SubiOp(n, e.index(1)))
    if x.rank > 1:  # without elements there is nothing to draw
        some = shapes.compare(e, "ne", shapes.product(e, extents), e.index(0))
        last = e.emit(arith.SelectOp(some, last, e.index(0)))
    held = None if x.rank == 1 else allocate(e, extents[1:], x.dtype, "row")

    def swap(k: SSAValue) -> None:
        i = e.emit(arith.SubiOp(last, k))
        j = e.emit(array.CastOp(INTERVAL.draw(e, state, [i]), IndexType()))
        if held is None:
            values = [e.emit(memref.LoadOp.get(x.memref, [at])) for at in (i, j)]
            for value, at in zip(values, (j, i), strict=True):
                e.insert(memref.StoreOp.get(value, x.memref, [at]))
            return
        ends = [e.index(0)] * (x.rank - 1)
        one, other = (row(e, x, [at, *ends], range(1, x.rank)) for at in (i, j))
        assign_view(e, held, other)
        assign_view(e, other, one)
        assign_view(e, one, held)

    each(e, last, swap)
    return NoneValue()


def permutation(e: Emitter, state: SSAValue, x: Value, axis: Value | None) -> Array:
    """`rng.permutation(x)` of an int, or of the rows of an array."""
    source = operand(e, x)
    if isinstance(source, Scalar):
        result = creation.arange(e, [source], {})
        shuffle(e, state, result, None)
        return result
    if axis is not None and as_index(e, axis).constant != 0:
        e.fail("rng.permutation is compiled for axis=0", way_out="permute x.T")
    if source.rank == 1:
        result = copy(e, source)
        shuffle(e, state, result, None)
        return result
    n = shapes.extents_of(e, source.memref)[0]
    order = creation.arange(e, [Scalar("py_int", n, None, 0, INT64_MAX)], {})
    shuffle(e, state, order, None)
    taken = gather.subscript(e, source, [order])
    assert isinstance(taken, Array)
    return taken


def choice(
    e: Emitter,
    state: SSAValue,
    a: Value,
    size: Value | None,
    replace: Value | None,
    p: Value | None,
) -> Value:
    """`rng.choice(a, size)` with replacement, all as likely."""
    if p is not None or (replace is not None and not truth_of(e, replace)):
        e.fail("rng.choice is compiled with replacement and without p=", way_out=WAY_OUT)
    source = operand(e, a)
    if isinstance(source, Scalar):
        found = integers(e, state, source, None, size, None, None)
        if not isinstance(found, Scalar):
            return found
        return Scalar("py_int", e.emit(array.CastOp(found.ssa, IndexType())))
    if source.rank != 1:
        e.fail("rng.choice is compiled for ints and vectors", way_out="use rng.integers")
    n = Scalar("py_int", shapes.extents_of(e, source.memref)[0], None, 0, INT64_MAX)
    places = integers(e, state, n, None, size, None, None)
    return gather.subscript(e, source, [places])
