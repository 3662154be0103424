"""How precise a function is: the narrowest floats on the way from its arguments to its results.

Rounding to them limits how closely two ways of computing a result agree, and, where they depend on
arguments, how closely differences of results agree with a gradient::

    y = x.astype(np.float32)                # float32, and depends on the argument
    return (y * y).sum().astype(np.float64)
"""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import Float32Type, MemRefType
from xdsl.ir import SSAValue

from ..dialects.within import every_op
from .compilation import Compilation
from .deep_stack import with_deep_stack
from .derivative.activations import activity_of
from .derivative.reverse import only_function
from .pipeline import STAGES, advance, own_faults, simplified
from .request import Request
from .rules.calls import private_functions


@with_deep_stack
def precision_of(request: Request) -> tuple[str, str]:
    """Of what the results are made of, and of that what depends on the active arguments: "f32" or "f64".

    The mode of the request is "vjp": the final contents of arguments are results, too.
    """
    with own_faults(request):
        c = simplified(request)
        for stage in STAGES[:2]:
            advance(c, stage)
        return narrowest(c)


def narrowest(c: Compilation) -> tuple[str, str]:
    """The two of a simplified program. In functions that it calls every float counts."""
    called = [v for f in private_functions(c.module).values() for v in single_values(f)]
    if called:
        return "f32", "f32"
    function = only_function(c.module)
    single = list(single_values(function))
    if not single:
        return "f64", "f64"
    activity = activity_of(function, c.active_arguments, c.final_arguments)
    useful = any(map(activity.useful, single))
    return ("f32" if useful else "f64"), ("f32" if any(map(activity.active, single)) else "f64")


def single_values(function: func.FuncOp) -> Iterator[SSAValue]:
    """The values of float32, and the arrays of them."""
    yield from filter(is_single, function.body.block.args)
    for op in every_op(function):
        yield from filter(is_single, op.results)
        for block in (b for region in op.regions for b in region.blocks):
            yield from filter(is_single, block.args)


def is_single(value: SSAValue) -> bool:
    type_ = value.type
    return isinstance(type_.element_type if isinstance(type_, MemRefType) else type_, Float32Type)
