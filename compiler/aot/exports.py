"""What a library exports: functions of a module, each with the arguments that it is compiled for.

Which functions, the command line says, or the module: those that `@compile` decorates and whose parameters
are annotated. The kinds of arguments come from annotations and defaults, as those that `explain` reads, or
from a `--signature`. Each derivative is one more export of its function.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from .. import argument_keys
from ..argument_keys import ArrayKey, ScalarKey, TupleKey
from ..diagnostics import CompileError, Span, line_of_function
from ..frontend.syntax import source
from .c_names import refused_symbol
from .option_values import Asked, Signature, WrongUsage

if TYPE_CHECKING:
    from ..frontend.frames import Captured
    from .device_words import Launching


@dataclass(frozen=True)
class Parameter:
    """One parameter of an exported function."""

    name: str
    key: str
    """The argument key (`compiler.argument_keys`): "f64[?,?]C", "py_float", "py_int", "py_bool", ..."""
    extents: tuple[str | int | None, ...] = ()
    """Of an array, by axis: a name (extents of one name are checked equal), a number (checked), or None."""


@dataclass(frozen=True)
class Export:
    """One C function."""

    symbol: str
    """What C calls it: `loss`, `loss_grad`, `loss_value_and_grad`, `loss_vjp`, `loss_jvp`, `loss_hvp`."""
    function: Callable[..., Any]
    """The plain Python function."""
    parameters: tuple[Parameter, ...]
    mode: str = "primal"
    """One of "primal", "grad", "value_and_grad", "vjp", "jvp" and "hvp"."""
    wrt: tuple[int, ...] = ()
    """The positions of the parameters that the derivative is taken with respect to."""
    captured: Captured | None = None
    """What the function reads from outside, as `Request.captured`."""
    inputs: tuple[str, ...] = ()
    """The argument keys of the captured inputs: floats and arrays, whose values `captured.inputs` read."""
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What `@compile` was told: `saves`, `fastmath`, `boundscheck`."""
    name: str = ""
    """What the module calls the function; "" where that is the symbol's beginning."""
    result: str | None = None
    """The promised kind of the primal's result, as an argument key: "f64", "f64[?]C", "(f64,f64)", "None"."""


@dataclass(frozen=True)
class Wanted:
    """What the command line names."""

    functions: tuple[str, ...] = ()
    signatures: tuple[Signature, ...] = ()
    derivatives: tuple[Asked, ...] = ()
    prefix: str = ""
    """What stands before the names of all C functions."""


class Told(Protocol):
    """What annotations tell of an argument."""

    @property
    def key(self) -> str: ...
    @property
    def extents(self) -> tuple[str | int | None, ...]: ...


class Reader(Protocol):
    """What the runtime knows of functions, which the compiler does not import (`mutad.aot.Runtime`)."""

    def plain(self, value: Any) -> FunctionType | None:
        """The Python function behind a function, compiled or not; None of anything else."""
        ...

    def is_compiled(self, value: Any) -> bool:
        """Whether `@compile` made it."""
        ...

    def options(self, value: Any) -> Mapping[str, Any]:
        """What `@compile` was told (`Export.options`); nothing of what it did not make."""
        ...

    def parameters(self, function: FunctionType) -> tuple[str, ...]:
        """The names of the parameters; TypeError where there are `*args` or `**kwargs`."""
        ...

    def kinds(self, function: FunctionType, instead: Mapping[str, str]) -> Sequence[Told]:
        """What annotations (those given `instead` come first) and defaults tell of each parameter.

        ValueError, which says of which `parameter`, where they do not.
        """
        ...

    def kind(self, annotation: Any, function: FunctionType) -> Told:
        """What one annotation tells; ValueError where it does not."""
        ...

    def captured(self, function: FunctionType) -> tuple[Captured, tuple[str, ...]]:
        """What the function reads from outside, and the argument keys of the inputs among it."""
        ...

    def launching(self) -> Launching:
        """What compiled code calls to launch kernels."""
        ...

    def sources(self) -> Mapping[str, str]:
        """The texts of the runtime's modules, of which a Python package takes some, by their names."""
        ...


def exports_of(module: ModuleType, wanted: Wanted, runtime: Reader) -> list[Export]:
    """The exports of a module.

    WrongUsage where what is wanted is not there, CompileError where it is, and has no C function.
    """
    given = {s.function: s for s in wanted.signatures}
    if len(given) < len(wanted.signatures):
        raise WrongUsage("--signature: a function has two signatures")
    named = (*wanted.functions, *given)
    chosen = named or tuple(annotated(module, runtime))
    names = tuple(dict.fromkeys((*chosen, *(d.function for d in wanted.derivatives))))
    if not names:
        raise CompileError(
            Span(module.__file__ or "", 1, 0, 1, 0),
            "there is nothing to export: no function is decorated with @compile and has annotations",
            'annotate its parameters, as in `u: "f64[:, :]"`, or name it: --function, --signature',
        )
    primals = {name: primal(module, name, given.get(name), runtime) for name in names}
    primals = {n: replace(p, symbol=f"{wanted.prefix}{n}") for n, p in primals.items()}
    made = [
        *primals.values(),
        *(differentiated(primals[d.function], d) for d in wanted.derivatives),
    ]
    require_symbols(made)
    return made


def annotated(module: ModuleType, runtime: Reader) -> Iterator[str]:
    """The names of the module's own compiled functions that have annotations, or need none."""
    seen: set[int] = set()
    for name, value in vars(module).items():
        function = runtime.plain(value) if runtime.is_compiled(value) else None
        if function is None or function.__module__ != module.__name__ or id(value) in seen:
            continue
        seen.add(id(value))
        kinds = {*function.__annotations__} - {"return"}
        if not name.startswith("_") and (kinds or not runtime.parameters(function)):
            yield name


def primal(module: ModuleType, name: str, signature: Signature | None, runtime: Reader) -> Export:
    """The export of a function itself."""
    value = getattr(module, name, None)
    function = runtime.plain(value)
    if function is None:
        there = [n for n, value in vars(module).items() if own(value, module, runtime)]
        listed = f"there are {', '.join(there)}" if there else "it has none"
        raise WrongUsage(f"{module.__file__} has no function {name!r}; {listed}")
    try:
        names = runtime.parameters(function)
    except TypeError as error:
        raise CompileError(line_of_function(function), str(error)) from None
    if signature is not None and signature.parameters != names:
        raise WrongUsage(f"the parameters of {name} are ({', '.join(names)})", signature.spans[""])
    annotations = {} if signature is None else signature.annotations
    try:
        kinds = runtime.kinds(function, annotations)
    except (ValueError, TypeError, OverflowError) as error:
        parameter = getattr(error, "parameter", "")
        message = str(error)
        if isinstance(error, TypeError) and parameter:
            message = f"the default of parameter {parameter!r} is not a number: C passes numbers and arrays"
        raise untold(function, name, parameter, signature, message) from None
    found = tuple(Parameter(n, k.key, k.extents) for n, k in zip(names, kinds, strict=True))
    for one in found:
        if refused := without_c_form(argument_keys.parse(one.key)):
            why, _, instead = refused.partition(": ")
            raise untold(
                function, name, one.name, signature, f"parameter {one.name!r}: {why}", instead
            )
    try:
        captured, inputs = runtime.captured(function)
    except (TypeError, ValueError) as error:
        raise CompileError(span_in(function), f"read from outside: {error}") from None
    return Export(
        name,
        function,
        found,
        captured=captured,
        inputs=inputs,
        options=runtime.options(value),
        name=name,
        result=promised(function, signature, runtime),
    )


def own(value: Any, module: ModuleType, runtime: Reader) -> bool:
    """Whether the module defines this function."""
    function = runtime.plain(value)
    return function is not None and function.__module__ == module.__name__


def without_c_form(key: argument_keys.Key) -> str | None:
    """Why an argument of this kind cannot come from C."""
    match key:
        case TupleKey():
            return "a tuple is no argument of a C function: make each item a parameter"
        case ScalarKey("None"):
            return "None is no argument of a C function: annotate what comes in its place"
        case ScalarKey("rng"):
            return "a random generator is no argument of a C function: pass random numbers"
        case ArrayKey(extents=()):
            return "an array without dimensions is no argument of a C function: pass a number"
        case _:
            return None


def promised(function: FunctionType, signature: Signature | None, runtime: Reader) -> str | None:
    """The kind of the result that a signature promises, or an annotation that tells it."""
    if signature is not None and signature.result is not None:
        try:
            return runtime.kind(signature.result, function).key
        except ValueError as error:
            raise WrongUsage(f"the result: {error}", signature.spans["return"]) from None
    if "return" not in function.__annotations__:
        return None
    try:
        return runtime.kind(function.__annotations__["return"], function).key
    except ValueError:
        return None  # an annotation may be for other readers


def differentiated(primal: Export, asked: Asked) -> Export:
    """The export of a derivative."""
    names = [one.name for one in primal.parameters]
    for name in asked.wrt:
        if name not in names:
            there = ", ".join(names)
            raise WrongUsage(f"{asked.option} {asked.function}:{name}: the parameters are {there}")
    if not names:
        raise WrongUsage(f"{asked.option} {asked.function}: it has no parameters")
    positions = tuple(names.index(name) for name in asked.wrt or names[:1])
    for position in positions:
        one = primal.parameters[position]
        if not is_float(argument_keys.parse(one.key)):
            raise WrongUsage(
                f"{asked.option} {asked.function}: {one.name!r} is not a float, and has no derivative; write "
                f"{asked.option} {asked.function}:NAME,..."
            )
    if asked.mode != "jvp" and primal.options.get("memory") is not None:
        raise WrongUsage(
            f"{asked.option} {asked.function}: libraries keep to no budget, for what decides which steps are "
            f"run again is in Python: compile {asked.function} without memory=",
            span_in(primal.function),
        )
    symbol = f"{primal.symbol}_{asked.mode}"
    return replace(primal, symbol=symbol, mode=asked.mode, wrt=positions, result=None)


def is_float(key: argument_keys.Key) -> bool:
    match key:
        case ArrayKey(dtype):
            return dtype in ("f64", "f32")
        case ScalarKey(type):
            return type in ("py_float", "f64", "f32")
        case TupleKey():
            return False


SUFFIXES = ("", "_worksize", "_alloc")
"""What the header declares for an export."""


def require_symbols(exports: Sequence[Export]) -> None:
    """An error where a C function would have no name of its own."""
    taken: dict[str, Export] = {}
    for one in exports:
        at = span_in(one.function)
        if why := refused_symbol(one.symbol):
            way_out = "rename the function, or put something before all names: --prefix NAME"
            raise CompileError(at, f"{one.symbol!r} {why}", way_out)
        for suffix in SUFFIXES:
            other = taken.setdefault(f"{one.symbol}{suffix}", one)
            if other is not one:
                raise WrongUsage(
                    f"two exports have the symbol {one.symbol}{suffix}: name each derivative once"
                )


def untold(
    function: FunctionType,
    name: str,
    parameter: str,
    signature: Signature | None,
    message: str,
    instead: str = "",
) -> CompileError | WrongUsage:
    """A parameter's kind is not known, or not one that C can pass: an error at its annotation."""
    if signature is not None and parameter in signature.annotations:
        return WrongUsage(
            f"{message}{': ' if instead else ''}{instead}", signature.spans[parameter]
        )
    way_out = instead or f'annotate it, or: --signature "{name}(...)"'
    return CompileError(span_in(function, parameter), message, way_out)


def span_in(function: Callable[..., Any], parameter: str = "") -> Span | None:
    """Where a parameter, or "return", stands: its annotation, if there is one; else the function."""
    try:
        read = source.read(function)
    except CompileError:
        return line_of_function(function)
    if parameter == "return" and (result := getattr(read.node, "returns", None)) is not None:
        return read.span(result)
    for one in ast.walk(read.node.args):
        if isinstance(one, ast.arg) and one.arg == parameter:
            return read.span(one.annotation or one)
    return read.span(read.node)
