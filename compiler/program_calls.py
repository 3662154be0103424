"""How the function of a module is called by names: what it takes, returns, and leaves in its arrays.

Arguments are named as the parameters, an item of a tuple `p.0`, of what a dump does not name as the IR does.
Derivatives add their suffix: `u_shadow` are the cotangents of what `u` holds, at first of its final, in the
end of its initial value; `result_bar` is the cotangent of the result, `k_bar` that of a number, `u_dot` a
tangent. The two halves of a split gradient (`vjp`) are called as one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from xdsl.dialects import func
from xdsl.dialects.builtin import (
    DYNAMIC_INDEX,
    AnyFloat,
    IntegerAttr,
    MemRefType,
    ModuleOp,
    VectorType,
)
from xdsl.ir import Attribute

from ..dialects.array import is_contiguous, strides_of
from .analysis.effects import is_private
from .argument_keys import Key, ScalarKey, TupleKey, leaves, parse
from .codegen.kernel_module import SIZES
from .interpreter.memory import dtype_of, lanes_of
from .rules.calls import listed

Array = np.ndarray[Any, np.dtype[Any]]


class WrongInputs(Exception):
    """What was given is not what the program takes; the message says which input, and what it should be."""


class Engine(Protocol):
    """Runs a call: the values of the parameters, in order, to those of the results."""

    def __call__(self, call: Call, values: Sequence[Any]) -> list[Any]: ...


@dataclass(frozen=True)
class Parameter:
    """What a function takes."""

    name: str
    type: Attribute
    like: str = ""
    """Of a shadow, or of an array's tangents, the name of the array."""
    is_generator: bool = False
    default: float | None = None
    """What it is where nothing is given."""
    unsigned: bool = False


@dataclass(frozen=True)
class Call:
    """The functions of a call: one, or the two halves of a split gradient."""

    functions: tuple[func.FuncOp, ...]
    parameters: tuple[Parameter, ...]
    results: tuple[str, ...]
    same: tuple[tuple[int, int], ...] = ()
    """Parameters that are the identical array."""

    @property
    def kept(self) -> int:
        """How many values the first half hands to the second."""
        return count_of(self.functions[-1], "kept") if len(self.functions) > 1 else 0

    @property
    def first(self) -> int:
        """How many parameters the first half takes."""
        return len(self.functions[0].body.block.args)


def count_of(function: func.FuncOp, name: str) -> int:
    found = function.attributes.get(name)
    return cast("IntegerAttr[Any]", found).value.data if found is not None else 0


def public_functions(module: ModuleOp) -> list[func.FuncOp]:
    return [op for op in module.ops if isinstance(op, func.FuncOp) and not is_private(op)]


def call_of(
    module: ModuleOp,
    head: Mapping[str, Any] | None = None,
    name: str = "",
    same: Sequence[tuple[str, str]] = (),
) -> Call:
    """How a module is called, or the function of it that is named; some arguments may be the same array."""
    same = [*same, *same_names(head)]
    functions = public_functions(module)
    names = [f.sym_name.data for f in functions]
    if name:
        if name not in names:
            raise WrongInputs(f"no function is named {name}: there are {', '.join(names)}")
        functions = [functions[names.index(name)]]
    functions = [f for f in functions if name or SIZES not in f.attributes]
    if len(functions) > 1 and "kept" in functions[1].attributes and len(functions) == 2:
        return split_call(functions[0], functions[1], head, same)
    if len(functions) != 1:
        raise WrongInputs(f"there are {', '.join(names) or 'no functions'}: name one with --only")
    return whole_call(functions[0], head, same)


Same = Sequence[tuple[str, str]]


def whole_call(function: func.FuncOp, head: Mapping[str, Any] | None, same: Same) -> Call:
    types = [a.type for a in function.body.block.args]
    moving, gradient = attribute(function, "moving"), "shadows" in function.attributes
    bars = attribute(function, "cotangents") if gradient else ()
    shadows = attribute(function, "shadows") if gradient else ()
    count = len(types) - len(moving) - len(bars) - len(shadows)
    last = function.body.block.last_op
    assert last is not None
    moved = attribute(function, "moved")
    scalars = attribute(function, "scalars") if gradient else ()
    own = result_names(len(last.operands) - len(moved) - len(scalars))
    parameters = primal_parameters(function, types[:count], head)
    parameters += derived(parameters, shadows, bars, types[count : len(types) - len(moving)], own)
    for place, type_ in zip(moving, types[len(types) - len(moving) :], strict=True):
        of = parameters[place]
        default = 0.0 if of.like or of.name.endswith("_bar") else None
        parameters.append(Parameter(f"{of.name}_dot", type_, of.name, default=default))
    results = [*own, *(f"{parameters[k].name}_bar" for k in scalars)]
    results += [f"{results[k]}_dot" for k in moved]
    return Call((function,), tuple(parameters), tuple(results), same_arrays(parameters, same))


def split_call(
    first: func.FuncOp, second: func.FuncOp, head: Mapping[str, Any] | None, same: Same
) -> Call:
    types = [a.type for a in first.body.block.args]
    kept = count_of(second, "kept")
    parameters = primal_parameters(first, types, head)
    left = [a.type for a in second.body.block.args][kept:]
    shadows, bars = attribute(second, "shadows"), attribute(second, "cotangents")
    last = first.body.block.last_op
    assert last is not None
    own = result_names(len(last.operands) - kept - 1)
    parameters += derived(parameters, shadows, bars, left, own)
    results = [*own]
    results += [f"{parameters[k].name}_bar" for k in attribute(second, "scalars")]
    return Call((first, second), tuple(parameters), tuple(results), same_arrays(parameters, same))


def attribute(function: func.FuncOp, name: str) -> Sequence[int]:
    return listed(function, name) if name in function.attributes else ()


def result_names(count: int) -> list[str]:
    return ["result"] if count == 1 else [f"result_{k}" for k in range(count)]


def primal_parameters(
    function: func.FuncOp, types: Sequence[Attribute], head: Mapping[str, Any] | None
) -> list[Parameter]:
    """The primal's own: named by the head of a dump, else by the IR."""
    named = [] if head is None else named_leaves(head)
    if len(named) == len(types):
        return [
            Parameter(name, t, is_generator=key == ScalarKey("rng"), unsigned=is_unsigned(key))
            for (name, key), t in zip(named, types, strict=True)
        ]
    found: list[Parameter] = []
    for k, (argument, type_) in enumerate(zip(function.body.block.args, types, strict=False)):
        name = argument.name_hint or f"arg{k}"
        taken = {p.name for p in found}
        while name in taken:
            name = f"{name}_{k}"
        found.append(Parameter(name, type_))
    return found


def named_leaves(head: Mapping[str, Any]) -> list[tuple[str, Key]]:
    """The names and the keys of what the arguments hand to compiled code."""
    names = [*head["parameters"], *head["keyword-only"], *head.get("inputs", ())]
    found: list[tuple[str, Key]] = []
    for k, text in enumerate(head["arguments"]):
        name = names[k] if k < len(names) else f"input{k}"
        found += leaves_of(name, parse(text))
    return found


def leaves_of(name: str, key: Key) -> list[tuple[str, Key]]:
    if isinstance(key, TupleKey):
        items = enumerate(key.items)
        return [leaf for k, item in items for leaf in leaves_of(f"{name}.{k}", item)]
    return [(name, leaf) for leaf in leaves(key)]


def is_unsigned(key: Key) -> bool:
    kind = (
        "" if isinstance(key, TupleKey) else key.type if isinstance(key, ScalarKey) else key.dtype
    )
    return kind in ("u8", "u16", "u32", "u64")


def derived(
    parameters: Sequence[Parameter],
    shadows: Sequence[int],
    bars: Sequence[int],
    types: Sequence[Attribute],
    results: Sequence[str],
) -> list[Parameter]:
    """The shadows of a gradient function, and the cotangents of some of its results."""
    found = [
        Parameter(f"{parameters[k].name}_shadow", t, parameters[k].name, default=0.0)
        for k, t in zip(shadows, types, strict=False)
    ]
    for number, type_ in zip(bars, types[len(shadows) :], strict=True):
        lone = len(bars) == 1 and isinstance(type_, AnyFloat)
        alone = len(bars) == 1 and len(results) <= 1
        name = "result_bar" if alone else f"result_{number}_bar"
        found.append(Parameter(name, type_, default=1.0 if lone else None))
    return found


def same_arrays(
    parameters: Sequence[Parameter], pairs: Sequence[tuple[str, str]]
) -> tuple[tuple[int, int], ...]:
    """The pairs of parameters that are one array, their shadows and tangents included."""
    places = {p.name: k for k, p in enumerate(parameters)}
    found = [(f"{a}{end}", f"{b}{end}") for a, b in pairs for end in ENDS]
    return tuple((places[a], places[b]) for a, b in found if a in places and b in places)


def same_names(head: Mapping[str, Any] | None) -> list[tuple[str, str]]:
    """The arguments that a dump says are the identical array."""
    if head is None:
        return []
    names = [*head["parameters"], *head["keyword-only"], *head.get("inputs", ())]
    return [(names[i], names[j]) for i, j, kind in head["overlaps"] if kind == "same"]


ENDS = ("", "_shadow", "_dot", "_shadow_dot")


# Values.


def values_of(call: Call, inputs: Mapping[str, Any]) -> list[Any]:
    """The values of the parameters, copied from the inputs; WrongInputs where these are not right."""
    known = [p.name for p in call.parameters]
    if unknown := [name for name in inputs if name not in known]:
        raise WrongInputs(
            f"no input is named {', '.join(unknown)}; the program takes {described(call)}"
        )
    shared = {j: i for i, j in call.same}
    values: list[Any] = []
    for place, parameter in enumerate(call.parameters):
        if place in shared:
            values.append(values[shared[place]])
            if parameter.name in inputs and not np.array_equal(inputs[parameter.name], values[-1]):
                first = call.parameters[shared[place]].name
                raise WrongInputs(
                    f"inputs {first!r} and {parameter.name!r} are one array: give the first"
                )
            continue
        like = values[known.index(parameter.like)] if parameter.like in known else None
        values.append(value_of(parameter, inputs.get(parameter.name), like, call))
    return values


def value_of(parameter: Parameter, given: Any, like: Any, call: Call) -> Any:
    type_ = parameter.type
    lanes = lanes_of(element_of(type_))
    if given is None and parameter.default is not None:
        shape = np.shape(like)[: rank_of(type_)] if like is not None else ()
        given = np.full((*shape, *lanes), parameter.default, dtype_of(element_of(type_)))
    if given is None:
        raise WrongInputs(
            f"there is no input {parameter.name!r}; the program takes {described(call)}"
        )
    if parameter.is_generator:
        return np.random.default_rng(int(np.asarray(given)))
    return laid_out(parameter, np.asarray(given))


def element_of(type_: Attribute) -> Attribute:
    return cast(Attribute, type_.element_type) if isinstance(type_, MemRefType) else type_


def rank_of(type_: Attribute) -> int:
    return type_.get_num_dims() if isinstance(type_, MemRefType) else 0


def laid_out(parameter: Parameter, given: Array) -> Any:
    """A copy of the input, with the dtype and in the order that the type wants."""
    type_, dtype = parameter.type, dtype_of(element_of(parameter.type))
    lanes = lanes_of(element_of(type_))
    wanted = np.dtype(dtype.str.replace("i", "u")) if parameter.unsigned else dtype
    exact = given.dtype == wanted or np.can_cast(given.dtype, wanted, "safe")
    fits = exact or (given.dtype.kind in "iu" and given.size and holds(wanted, given))
    if not fits and not (given.dtype.kind in "iub" and wanted.kind == "f"):
        raise WrongInputs(f"input {parameter.name!r} is {given.dtype}: it must be {wanted}")
    if not isinstance(type_, MemRefType):
        if given.shape != lanes:
            shape = f"an array of shape {given.shape}" if given.ndim else "a number"
            raise WrongInputs(f"input {parameter.name!r} is {shape}: it must be {said(parameter)}")
        return given.astype(wanted).view(dtype)[()] if lanes else wanted.type(given).view(dtype)
    shape = (*type_.get_shape(), *lanes)
    agree = len(shape) == given.ndim and all(
        n in (DYNAMIC_INDEX, m) for n, m in zip(shape, given.shape, strict=True)
    )
    if not agree:
        raise WrongInputs(
            f"input {parameter.name!r} has the shape {given.shape}: it must be {said(parameter)}"
        )
    strides = strides_of(type_)
    fortran = not is_contiguous(type_) and len(strides) > 1 and strides[0] == 1 and not lanes
    return np.array(given, wanted, order="F" if fortran else "C")


def holds(dtype: np.dtype[Any], given: Array) -> bool:
    """Whether integers fit into a dtype of integers."""
    if dtype.kind not in "iu":
        return False
    limits = np.iinfo(dtype)
    return bool(limits.min <= int(given.min()) and int(given.max()) <= limits.max)


def said(parameter: Parameter) -> str:
    """What a parameter must be, in words."""
    dtype, lanes = dtype_of(element_of(parameter.type)), lanes_of(element_of(parameter.type))
    if parameter.is_generator:
        return "the seed of a random generator"
    kind = dtype.name.replace("int", "uint") if parameter.unsigned else dtype.name
    if not isinstance(parameter.type, MemRefType):
        return f"{kind}[{lanes[0]}]" if lanes else kind
    shape = ["?" if n == DYNAMIC_INDEX else str(n) for n in parameter.type.get_shape()]
    return f"{kind}[{', '.join([*shape, *map(str, lanes)])}]"


def described(call: Call) -> str:
    """The parameters in a line, those with a default in parentheses."""
    shown = [
        f"{p.name}: {said(p)}" if p.default is None else f"({p.name}: {said(p)} = {p.default:g})"
        for p in call.parameters
    ]
    return ", ".join(shown) or "nothing"


def named_outcome(
    call: Call, values: Sequence[Any], results: Sequence[Any] | None
) -> dict[str, Any]:
    """The results of a call, if it has returned, and the arrays among its arguments, by name."""
    found = {} if results is None else dict(zip(call.results, results, strict=True))
    for parameter, value in zip(call.parameters, values, strict=True):
        if isinstance(value, np.ndarray) and not isinstance(parameter.type, VectorType):
            found[parameter.name] = value
    return found
